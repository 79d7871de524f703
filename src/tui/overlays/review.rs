//! Every change of a turn or of the conversation in one place: files on the left, the change that is looked at on the
//! right, a decision for each.
//!
//! It holds places, not documents: what a decision did is seen in the conversation, like everything else. Only the change
//! that is looked at is ever laid out. A change that waits to be allowed is one of them, hunk by hunk where whoever asks
//! lists them: what is accepted is written once something is said of each.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap, HashSet},
};

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{Answer, Choice, Overlay, Scene, plain_keys};
use crate::{
    protocol::{Applied, Document, HunkAnswer, Kind, QuestionKind, View},
    t,
    text::{Background, Modifier, Role, Sanitized, Span, StyledLine, width},
    transcript::{DocumentIndex, Transcript},
    tui::{
        hunk_decisions::{self, HunkDecisions},
        update::TOO_EARLY_MS,
        widgets::{self, Cited, DocumentState, Fold, RenderContext},
    },
};

/// A terminal waits up to so long before a key that is held comes again; from then on it comes sooner than `TOO_EARLY_MS`.
const HELD_MS: u64 = 700;

/// Side by side needs this many columns for the change alone.
const SIDE_BY_SIDE: usize = 110;

/// What the user says of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Accept,
    Reject,
    Edit,
    Comment,
}

/// A change that can be decided on: a document, or a hunk of one that waits to be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    pub place: DocumentIndex,
    /// Counted from 1.
    pub hunk: Option<u64>,
}

/// How a change stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was said of it.
    Open,
    Accepted,
    Rejected,
    /// It was taken back with others.
    Undone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Turn(usize),
    All,
}

/// How the two sides stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sides {
    ByWidth,
    Unified,
    Beside,
}

pub struct Review {
    scope: Scope,
    /// The turn that it was opened on.
    turn: usize,
    /// The changes, sorted by file and then by time.
    spots: Vec<Spot>,
    /// Those that the user let be written, each by an answer of its own.
    allowed: BTreeSet<DocumentIndex>,
    /// The first change of each file in `spots`, and its path.
    files: Vec<(usize, String)>,
    at: usize,
    sides: Sides,
    /// Rows of the change above the view, and columns left of it.
    top: usize,
    left: usize,
    /// How many rows the change has, and how many are seen.
    extent: (usize, usize),
    width: usize,
    sheet: Option<(Spot, usize, DocumentState)>,
    rows: Vec<StyledLine>,
    /// Since when this change is looked at: what decides is ignored for a moment.
    since_ms: u64,
    /// Which of a and r came last, and when; and when one of them decided on something that waits.
    pressed: (KeyCode, u64),
    decided: Option<(KeyCode, u64)>,
    /// What a remark that is being written is about.
    remarking: Option<Spot>,
    /// Another change has come to stand where one was that is gone, or behind one that was decided on: nobody has read it yet.
    is_unread: bool,
}

impl Review {
    /// Opens on a change, or on the last turn that has any; `None`: nothing was changed.
    pub fn new(transcript: &Transcript, on: Option<DocumentIndex>, now_ms: u64) -> Option<Self> {
        let turn = match on {
            Some(place) => place.exchange,
            None => transcript
                .exchanges
                .iter()
                .rposition(|it| it.response.documents.iter().any(|it| changed(it).is_some()))?,
        };
        let mut review = Self {
            scope: Scope::Turn(turn),
            turn,
            spots: Vec::new(),
            allowed: BTreeSet::new(),
            files: Vec::new(),
            at: 0,
            sides: Sides::ByWidth,
            top: 0,
            left: 0,
            extent: (0, 1),
            width: 0,
            sheet: None,
            rows: Vec::new(),
            since_ms: now_ms,
            pressed: (KeyCode::Null, 0),
            decided: None,
            remarking: None,
            is_unread: false,
        };
        review.collect(transcript);
        if let Some(place) = on {
            review.at = review.spots.iter().position(|it| it.place == place).unwrap_or_default();
        }
        (!review.spots.is_empty()).then_some(review)
    }

    /// The change that is looked at.
    pub fn spot(&self) -> Option<Spot> {
        self.spots.get(self.at).copied()
    }

    /// What the remark is about that was begun.
    pub fn remarking(&self) -> Option<Spot> {
        self.remarking
    }

    /// What the remark is about that was begun; nothing if that is not what is looked at any more.
    pub fn remarked(&mut self) -> Option<Spot> {
        self.remarking.take().filter(|it| Some(*it) == self.spot())
    }

    fn collect(&mut self, transcript: &Transcript) {
        let here = self.spot();
        let behind = self.spots.get(self.at..).unwrap_or_default().to_vec();
        let exchanges = match self.scope {
            Scope::Turn(at) => at..at + 1,
            Scope::All => 0..transcript.exchanges.len(),
        };
        let mut found: Vec<(String, Spot)> = Vec::new();
        self.allowed.clear();
        for exchange in exchanges {
            let mut answered: HashSet<(&str, &str)> = HashSet::new();
            let Some(response) = transcript.exchanges.get(exchange).map(|it| &it.response) else {
                continue;
            };
            for (document, it) in response.documents.iter().enumerate() {
                let is_staged = it.kind != Kind::FileEdit;
                answered.extend(allowed(it));
                if let View::FileEdit(edit) = it.view()
                    && let Some(call) = edit.tool_call_id
                    && answered.contains(&(call, edit.file_path))
                {
                    self.allowed.insert(DocumentIndex { exchange, document });
                }
                if let Some(it) = changed(it)
                    && let View::FileEdit(edit) = it.view()
                {
                    let place = DocumentIndex { exchange, document };
                    let count = if is_staged {
                        hunk_decisions::count(&it) as u64
                    } else {
                        0
                    };
                    if count == 0 {
                        found.push((edit.file_path.to_owned(), Spot { place, hunk: None }));
                    }
                    for index in 1..=count {
                        let hunk = Some(index);
                        found.push((edit.file_path.to_owned(), Spot { place, hunk }));
                    }
                }
            }
        }
        // Files in the order in which they were touched first.
        let mut ranks: HashMap<&str, usize> = HashMap::new();
        for (path, _) in &found {
            let next = ranks.len();
            ranks.entry(path).or_insert(next);
        }
        let mut sorted: Vec<(usize, &str, Spot)> = found
            .iter()
            .map(|(path, spot)| {
                (
                    ranks.get(path.as_str()).copied().unwrap_or_default(),
                    path.as_str(),
                    *spot,
                )
            })
            .collect();
        sorted.sort_unstable_by_key(|it| (it.0, it.2));
        self.files.clear();
        for (at, (_, path, _)) in sorted.iter().enumerate() {
            if self.files.last().is_none_or(|it| it.1 != *path) {
                self.files.push((at, (*path).to_owned()));
            }
        }
        self.spots = sorted.into_iter().map(|it| it.2).collect();
        // What is gone makes room for what stood behind it.
        let place = |spot: &Spot| self.spots.iter().position(|it| it == spot);
        let found = behind.iter().find_map(place);
        if here.is_some() && found.and_then(|it| self.spots.get(it)) != here.as_ref() {
            self.is_unread = true;
            (self.top, self.left) = (0, 0);
        }
        self.at = found.unwrap_or(self.at).min(self.spots.len().saturating_sub(1));
    }

    /// Whether a key that decides does so now: what it decides on has been in view for a moment, and a key that is held
    /// decides once.
    fn decides(&mut self, event: KeyEvent, now_ms: u64, transcript: &Transcript) -> bool {
        let since = |at_ms: u64| now_ms.saturating_sub(at_ms);
        let (key, at_ms) = std::mem::replace(&mut self.pressed, (event.code, now_ms));
        let is_again = key == event.code && since(at_ms) < TOO_EARLY_MS;
        let has_decided = |it: (KeyCode, u64)| it.0 == event.code && since(it.1) < HELD_MS;
        let is_held = event.kind == KeyEventKind::Repeat || is_again || self.decided.is_some_and(has_decided);
        if is_held || self.is_unread || since(self.since_ms) < TOO_EARLY_MS {
            return false;
        }
        let document = self.spot().and_then(|it| transcript.get(it.place));
        if document.and_then(widgets::staged).is_some() {
            self.decided = Some((event.code, now_ms));
            self.is_unread = true;
        }
        true
    }

    /// What comes as a line of its own is no key that is held, and what nobody types does not come too early.
    fn let_go(&mut self, is_typed: bool) {
        (self.pressed.0, self.decided) = (KeyCode::Null, None);
        if !is_typed {
            self.since_ms = 0;
        }
    }

    fn scroll(&mut self, by: isize) {
        let last = self.extent.0.saturating_sub(self.extent.1);
        self.top = self.top.saturating_add_signed(by).min(last);
    }

    fn step(&mut self, by: isize) {
        let last = self.spots.len().saturating_sub(1);
        self.go(self.at.saturating_add_signed(by).min(last));
    }

    fn step_file(&mut self, forward: bool) {
        let here = self.files.iter().rposition(|it| it.0 <= self.at).unwrap_or_default();
        let next = if forward { here + 1 } else { here.saturating_sub(1) };
        if let Some((at, _)) = self.files.get(next.min(self.files.len().saturating_sub(1))) {
            self.go(*at);
        }
    }

    fn go(&mut self, at: usize) {
        if self.at != at {
            self.at = at;
            (self.top, self.left) = (0, 0);
        }
    }

    fn is_beside(&self) -> bool {
        match self.sides {
            Sides::ByWidth => self.width >= SIDE_BY_SIDE,
            Sides::Unified => false,
            Sides::Beside => true,
        }
    }

    /// What is looked at and how it stands; where there is little room, in few words.
    fn head(&self, (at, count): (usize, usize), accepted: usize, rejected: usize, columns: usize) -> StyledLine {
        let title = t!("review-title");
        let scope = match self.scope {
            Scope::Turn(_) => t!("review-this-turn"),
            Scope::All => t!("review-everything"),
        };
        let long = t!(
            "review-facts",
            at = at,
            count = count,
            accepted = accepted,
            rejected = rejected
        );
        let short = t!(
            "review-facts-short",
            at = at,
            count = count,
            accepted = accepted,
            rejected = rejected
        );
        let scope = format!("   {scope}");
        let wants = |scope: &str, facts: &str| width::width(title) + width::width(scope) + 2 + width::width(facts);
        let (scope, facts) = if wants(&scope, &long) <= columns {
            (scope, long)
        } else if wants(&scope, &short) <= columns {
            (scope, short)
        } else {
            (String::new(), short)
        };
        let room = columns.saturating_sub(wants(&scope, &facts) - 2);
        StyledLine::of([
            Span::new(Sanitized::literal(title), Role::Strong).bold(),
            Span::new(Sanitized::new(&scope), Role::Dim),
            Span::new(Sanitized::new(&" ".repeat(room)), Role::Text),
            Span::new(Sanitized::new(&facts), Role::Dim),
        ])
    }

    /// The files, each with how its changes stand.
    fn names(&self, states: &[State], columns: usize, height: usize) -> Vec<Vec<Span>> {
        let here = self.files.iter().rposition(|it| it.0 <= self.at).unwrap_or_default();
        let first = (here + 1).saturating_sub(height);
        let files = self.files.iter().enumerate().skip(first).take(height);
        files
            .map(|(n, (start, path))| {
                let end = self.files.get(n + 1).map_or(self.spots.len(), |it| it.0);
                let states = states.get(*start..end).unwrap_or_default();
                let accepted = states.iter().filter(|it| **it == State::Accepted).count();
                let (sign, role) = if states.contains(&State::Open) {
                    ("○", Role::Dim)
                } else if accepted > 0 {
                    ("✓", Role::Done)
                } else if states.contains(&State::Rejected) {
                    ("✗", Role::Error)
                } else {
                    ("↶", Role::Dim)
                };
                let ground = if n == here {
                    Background::Selection
                } else {
                    Background::Plain
                };
                let mark = if n == here { Modifier::BOLD } else { Modifier::NONE };
                let count = if sign == "✓" && accepted < states.len() {
                    format!("{accepted}/{}", states.len())
                } else {
                    states.len().to_string()
                };
                let room = columns.saturating_sub(3 + count.len());
                let name = width::pad(&width::cut_start(&Sanitized::line(path), room), room);
                vec![
                    Span::new(Sanitized::literal(sign), role).on(ground),
                    Span::new(Sanitized::literal(" "), Role::Text).on(ground),
                    Span::new(Sanitized::new(&name), Role::Text).modified(mark).on(ground),
                    Span::new(Sanitized::literal(" "), Role::Text).on(ground),
                    Span::new(Sanitized::new(&count), Role::Faint).on(ground),
                ]
            })
            .collect()
    }

    /// The change that is looked at, as far as it is in view.
    fn change(
        &mut self,
        document: &Document,
        said: Option<&HunkAnswer>,
        address: &str,
        look: &RenderContext<'_>,
        room: usize,
        height: usize,
    ) -> Vec<Vec<Span>> {
        let spot = self.spot();
        let is_allowed = spot.is_some_and(|it| self.allowed.contains(&it.place));
        let mut head = heading(document, said, is_allowed, address, room);
        let mut body: Vec<Vec<Span>> = Vec::new();
        let rest = height.saturating_sub(head.len());
        let pairs = if self.is_beside() {
            widgets::sides(document, look)
        } else {
            None
        };
        match pairs {
            Some(pairs) => {
                let half = room.saturating_sub(3) / 2;
                let sides = pairs.iter().flat_map(|(old, new)| [old, new]).flatten();
                self.left = self.left.min(overhang(sides, half, self.left));
                let rows = beside(pairs, half, self.left);
                self.extent = (rows.len(), rest);
                self.scroll(0);
                body.extend(rows.into_iter().skip(self.top).take(rest));
            }
            None => {
                // Long lines are cut with a mark, not broken: they are scrolled. The look gets room for all of it.
                let wide = room.max(longest(document) + 16).min(4000);
                let sheet = match self.sheet.take() {
                    Some((of, at, sheet)) if Some(of) == spot && at == wide => sheet,
                    Some(_) | None => DocumentState::default(),
                };
                let mut sheet = sheet;
                let look = RenderContext {
                    width: wide,
                    fold: Fold::Full,
                    ..*look
                };
                sheet.lay_out(document, &look);
                // Its own heading says what ours says.
                let rows = sheet.rows.get(1..).unwrap_or_default();
                self.extent = (rows.len(), rest);
                let last = self.extent.0.saturating_sub(self.extent.1);
                self.top = self.top.min(last);
                self.left = self.left.min(overhang(rows, room, self.left));
                for row in rows.iter().skip(self.top).take(rest) {
                    body.push(cut(row, self.left, room));
                }
                if let Some(spot) = spot {
                    self.sheet = Some((spot, wide, sheet));
                }
            }
        }
        head.extend(body);
        head
    }
}

impl Overlay for Review {
    fn key(&mut self, event: KeyEvent, scene: &Scene<'_>) -> Answer {
        // What decides is not taken from hands that were still writing.
        if matches!(event.code, KeyCode::Char('a' | 'r')) && !self.decides(event, scene.now_ms, scene.transcript) {
            return Answer::Said(t!("review-too-soon").to_owned());
        }
        let here = self.spot();
        let judge = |verdict| match here {
            Some(spot) => Answer::Live(Choice::Review(verdict, spot)),
            None => Answer::Taken,
        };
        match event.code {
            KeyCode::Esc | KeyCode::Char('q') => return Answer::Close,
            KeyCode::Char('c' | 'e') if event.modifiers.contains(KeyModifiers::CONTROL) => return Answer::Close,
            KeyCode::Char('a') => {
                let answer = judge(Verdict::Accept);
                self.step(1);
                return answer;
            }
            KeyCode::Char('r') => {
                let answer = judge(Verdict::Reject);
                // Nothing is undone here that one would want to see go.
                if here.is_some_and(|it| it.hunk.is_some()) {
                    self.step(1);
                }
                return answer;
            }
            KeyCode::Char('e') => return judge(Verdict::Edit),
            KeyCode::Char('c') => {
                return match here {
                    // What is said of a hunk that waits goes out with the answer.
                    Some(Spot { hunk: Some(_), .. }) => {
                        self.remarking = here;
                        judge(Verdict::Comment)
                    }
                    Some(spot) => Answer::Chosen(Choice::Review(Verdict::Comment, spot)),
                    None => Answer::Close,
                };
            }
            KeyCode::Char('j') | KeyCode::Tab => self.step(1),
            KeyCode::Char('k') | KeyCode::BackTab => self.step(-1),
            KeyCode::Char('J') => self.step_file(true),
            KeyCode::Char('K') => self.step_file(false),
            KeyCode::Char('u') => {
                self.sides = if self.is_beside() {
                    Sides::Unified
                } else {
                    Sides::Beside
                };
                self.sheet = None;
            }
            KeyCode::Char('s') => {
                self.scope = match self.scope {
                    Scope::Turn(_) => Scope::All,
                    Scope::All => Scope::Turn(self.turn),
                };
            }
            KeyCode::Down => self.scroll(1),
            KeyCode::Up => self.scroll(-1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll(self.extent.1 as isize),
            KeyCode::PageUp => self.scroll(-(self.extent.1 as isize)),
            KeyCode::Char('g') | KeyCode::Home => self.top = 0,
            KeyCode::Char('G') | KeyCode::End => self.scroll(isize::MAX / 2),
            KeyCode::Right => self.left += 8,
            KeyCode::Left => self.left = self.left.saturating_sub(8),
            _ => {}
        }
        Answer::Taken
    }

    fn wheel(&mut self, by: isize) {
        self.scroll(by * 3);
    }

    fn lay_out(&mut self, scene: &Scene<'_>, columns: usize, height: usize) {
        let (transcript, picks) = (scene.transcript, scene.hunk_decisions);
        let look = &render_context(scene);
        self.collect(transcript);
        if std::mem::take(&mut self.is_unread) {
            self.since_ms = look.now_ms;
        }
        let list = if columns >= 70 { (columns / 4).clamp(18, 36) } else { 0 };
        let room = columns.saturating_sub(if list > 0 { list + 3 } else { 0 }).max(1);
        self.width = room;
        let body_height = height.saturating_sub(2).max(1);
        let mut right = Vec::new();
        if let Some(spot) = self.spot()
            && let Some(document) = transcript.get(spot.place)
        {
            let said = said(document, spot, transcript, picks);
            let address = transcript
                .address(spot.place)
                .map(|it| it.to_string())
                .unwrap_or_default();
            let caution = widgets::caution(document, room);
            let document = changed(document).map(|it| match spot.hunk {
                Some(index) => Cow::Owned(hunk_decisions::hunk(&it, index, said)),
                None => it,
            });
            if let Some(document) = document {
                right = caution.into_iter().map(|it| it.spans).collect();
                if !right.is_empty() {
                    right.push(Vec::new());
                }
                let rest = body_height.saturating_sub(right.len()).max(1);
                right.extend(self.change(&document, said, &address, look, room, rest));
            }
        }
        let states: Vec<State> = {
            let state = |it: &Spot| state(*it, self.allowed.contains(&it.place), transcript, picks);
            self.spots.iter().map(state).collect()
        };
        let names = self.names(&states, list, body_height);
        let count = |state: State| states.iter().filter(|it| **it == state).count();
        let place = ((self.at + 1).min(self.spots.len()), self.spots.len());
        let head = self.head(place, count(State::Accepted), count(State::Rejected), columns);
        self.rows.clear();
        self.rows.push(head);
        self.rows.push(StyledLine::blank());
        for line in 0..body_height {
            let mut spans = Vec::new();
            if list > 0 {
                let name = names.get(line).cloned().unwrap_or_default();
                let rest = list.saturating_sub(width::spans_width(&name));
                spans.extend(name);
                spans.push(Span::new(Sanitized::new(&" ".repeat(rest)), Role::Text));
                spans.push(Span::new(Sanitized::literal(" │ "), Role::Rule));
            }
            if let Some(row) = right.get(line) {
                spans.extend(row.iter().cloned());
            }
            self.rows.push(StyledLine::of(spans));
        }
    }

    fn rows(&self) -> &[StyledLine] {
        &self.rows
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        vec![
            ("a", t!("footer-accept")),
            ("r", t!("footer-reject")),
            ("e", t!("footer-edit")),
            ("c", t!("footer-comment")),
            ("j k", t!("footer-hunk")),
            ("J K", t!("footer-file")),
            ("u", t!("footer-side-by-side")),
            ("s", t!("footer-turn-or-all")),
            ("esc", t!("footer-back")),
        ]
    }

    fn keys_of(&mut self, line: &str, is_typed: bool) -> Result<Vec<KeyCode>, String> {
        self.let_go(is_typed);
        Ok(plain_keys(line))
    }
}

/// The change that a document is, or asks to be allowed. One that failed changed nothing.
fn changed(document: &Document) -> Option<Cow<'_, Document>> {
    match document.view() {
        View::FileEdit(it) if it.applied == Applied::Failed => None,
        View::FileEdit(_) => Some(Cow::Borrowed(document)),
        View::Clarification(_) => widgets::staged(document).map(Cow::Owned),
        _ => None,
    }
}

/// What looks depend on besides the document; a change depends on little.
fn render_context<'a>(scene: &Scene<'a>) -> RenderContext<'a> {
    let &Scene {
        transcript,
        colours,
        colours_version,
        now_ms,
        ..
    } = scene;
    RenderContext {
        width: 80,
        fold: Fold::Full,
        selected: false,
        read_only: false,
        joined: false,
        newest: false,
        turn: transcript.exchanges.last().map(|it| it.turn).unwrap_or_default(),
        colours,
        colours_version,
        todos: &transcript.todos,
        progress: None,
        now_ms,
        form: None,
        todo: None,
        cited: Cited::Unread,
        root: None,
        theme: None,
        times: None,
    }
}

/// What was said of a hunk that waits.
fn said<'a>(
    document: &Document,
    spot: Spot,
    transcript: &Transcript,
    picks: &'a HunkDecisions,
) -> Option<&'a HunkAnswer> {
    let turn = transcript.exchanges.get(spot.place.exchange)?.turn;
    picks.get(turn, &document.id, spot.hunk?)
}

fn state(spot: Spot, is_allowed: bool, transcript: &Transcript, picks: &HunkDecisions) -> State {
    let Some(document) = transcript.get(spot.place) else {
        return State::Open;
    };
    match said(document, spot, transcript, picks) {
        Some(said) if said.accepted => State::Accepted,
        Some(_) => State::Rejected,
        None if is_rejected(document) => State::Rejected,
        None if widgets::undone(document).is_some() => State::Undone,
        None if is_allowed || is_accepted(document) => State::Accepted,
        None => State::Open,
    }
}

/// The call and the file of a change that the user let be written whole.
fn allowed(document: &Document) -> Option<(&str, &str)> {
    let View::Clarification(view) = document.view() else {
        return None;
    };
    let mut options = view.answers.iter().flat_map(|it| &it.selected_option_ids);
    let is_allowed = view.kind == QuestionKind::Approval && options.any(|it| it.starts_with("allow"));
    let path = view.subject?.pointer("/metadata/filePath")?.as_str()?;
    Some((view.tool_call_id.filter(|_| is_allowed)?, path))
}

fn is_accepted(document: &Document) -> bool {
    document.metadata.get("accepted").and_then(serde_json::Value::as_bool) == Some(true)
}

fn is_rejected(document: &Document) -> bool {
    matches!(document.view(), View::FileEdit(it) if it.applied == Applied::Rejected)
}

/// Path, lines, state; then what the user says to the model of it.
fn heading(
    document: &Document,
    said: Option<&HunkAnswer>,
    is_allowed: bool,
    address: &str,
    room: usize,
) -> Vec<Vec<Span>> {
    let View::FileEdit(edit) = document.view() else {
        return Vec::new();
    };
    let undone = widgets::undone(document);
    let (state, role) = match edit.applied {
        Applied::Pending if let Some(said) = said => match (said.accepted, &said.new_string) {
            (true, Some(_)) => (t!("review-accepted-edited"), Role::Done),
            (true, None) => (t!("review-accepted"), Role::Done),
            (false, _) => (t!("review-left-out"), Role::Error),
        },
        Applied::Rejected => (t!("review-rejected"), Role::Error),
        Applied::Failed => (t!("review-failed"), Role::Error),
        Applied::Pending => (t!("review-not-written-yet"), Role::Waiting),
        Applied::Applied | Applied::Other(_) if let Some(undone) = &undone => (undone.as_str(), Role::Dim),
        Applied::Applied | Applied::Other(_) if is_allowed || is_accepted(document) => {
            (t!("review-accepted"), Role::Done)
        }
        Applied::Applied | Applied::Other(_) => (t!("review-applied"), Role::Dim),
    };
    let target = edit.new_file_path.map_or_else(String::new, |it| format!(" → {it}"));
    let line = edit.diff.as_ref().and_then(|it| it.start_line);
    let line = line.map_or_else(String::new, |it| format!(":{it}"));
    let path = format!("{}{target}{line}", edit.file_path);
    // Where there is little room, it is for the path.
    let hunk = edit.hunk.filter(|_| edit.applied == Applied::Pending);
    let hunk = hunk.map_or_else(String::new, |it| {
        format!("   {}", t!("review-hunk", at = it.index, count = it.count))
    });
    let operation = widgets::operation(&edit.operation);
    let facts = [
        format!("{operation}   {address}{hunk}   "),
        format!("{address}{hunk}   "),
        format!("{address}   "),
    ];
    let wanted = width::width(&path) + width::width(state) + 2;
    let facts = facts
        .into_iter()
        .find(|it| room >= 60 && wanted + width::width(it) <= room);
    let facts = facts.unwrap_or_default();
    let used = width::width(&facts) + width::width(state) + 2;
    let path = width::cut_start(&Sanitized::line(&path), room.saturating_sub(used));
    let gap = room.saturating_sub(width::width(&path) + used) + 2;
    let mut rows = vec![vec![
        Span::new(Sanitized::new(&path), Role::Strong).bold(),
        Span::new(Sanitized::new(&" ".repeat(gap)), Role::Text),
        Span::new(Sanitized::line(&facts), Role::Dim),
        Span::new(Sanitized::new(state), role),
    ]];
    if let Some(comment) = said.and_then(|it| it.comment.as_deref()) {
        let comment = Sanitized::line(&t!("review-you-say", comment = comment));
        rows.push(vec![Span::new(
            Sanitized::new(&width::cut_end(&comment, room)),
            Role::User,
        )]);
    }
    rows.push(Vec::new());
    rows
}

/// Columns of the longest line of either side.
fn longest(document: &Document) -> usize {
    let View::FileEdit(edit) = document.view() else {
        return 0;
    };
    let texts = [
        edit.diff.as_ref().map(|it| it.old),
        edit.diff.as_ref().map(|it| it.new),
        edit.content.filter(|_| edit.diff.is_none()),
    ];
    let lines = texts.into_iter().flatten().flat_map(str::lines);
    // Bytes are at least as many as columns, but for tabs.
    lines
        .map(|it| it.len() + 3 * it.matches('\t').count())
        .max()
        .unwrap_or_default()
}

/// How far the longest of the rows reaches behind a view that begins at its first column; looked at only where that counts.
fn overhang<'a>(rows: impl IntoIterator<Item = &'a StyledLine>, room: usize, left: usize) -> usize {
    if left == 0 {
        return 0;
    }
    let rows = rows.into_iter();
    rows.map(|it| (width::spans_width(it.gutter()) + width::spans_width(it.content())).saturating_sub(room))
        .max()
        .unwrap_or_default()
}

/// A row from column `left` of its text on, its gutter kept, padded on its ground, with a mark on either side where it is cut.
fn cut(row: &StyledLine, left: usize, room: usize) -> Vec<Span> {
    let gutter = row.gutter().to_vec();
    let kept = room.saturating_sub(width::spans_width(&gutter));
    let mut spans = gutter;
    let is_cut = left > 0 && width::spans_width(row.content()) > 0;
    let mut text = skip_columns(row.content(), if is_cut { left + 1 } else { left });
    if is_cut {
        text.insert(0, Span::new(Sanitized::literal("…"), Role::Faint).on(row.background));
    }
    if width::spans_width(&text) > kept {
        spans.extend(width::clip_spans(&text, kept.saturating_sub(1)));
        spans.push(Span::new(Sanitized::literal("…"), Role::Faint).on(row.background));
    } else {
        spans.extend(text);
    }
    let rest = room.saturating_sub(width::spans_width(&spans));
    spans.push(Span::new(Sanitized::new(&" ".repeat(rest)), Role::Text).on(row.background));
    spans
}

fn skip_columns(spans: &[Span], mut left: usize) -> Vec<Span> {
    let mut kept = Vec::with_capacity(spans.len());
    for span in spans {
        let columns = width::width(&span.text);
        if columns <= left {
            left -= columns;
            continue;
        }
        let mut before = width::cut(&span.text, left);
        let halved = left - width::width(before);
        if halved > 0 {
            // A wide sign that is cut in two leaves its second column.
            before = width::cut(&span.text, left + 1);
            let gap = " ".repeat(width::width(before) - left);
            kept.push(Span {
                text: Sanitized::new(&gap),
                ..span.clone()
            });
        }
        let from = before.len();
        left = 0;
        kept.push(width::part(span, from..span.text.len()));
    }
    kept
}

/// Old and new beside each other: what was replaced stands on one line with what replaced it.
fn beside(pairs: Vec<(Option<StyledLine>, Option<StyledLine>)>, half: usize, left: usize) -> Vec<Vec<Span>> {
    let side = |row: Option<StyledLine>| match row {
        Some(row) => cut(&row, left, half),
        None => vec![Span::new(Sanitized::new(&" ".repeat(half)), Role::Text)],
    };
    let rows = pairs.into_iter().map(|(old, new)| {
        let mut row = side(old);
        row.push(Span::new(Sanitized::literal(" │ "), Role::Rule));
        row.extend(side(new));
        row
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_wide_signs_stay_in_their_columns_when_they_are_scrolled() {
        let spans = [
            Span::new(Sanitized::literal("a购物"), Role::Text),
            Span::new(Sanitized::literal("车b"), Role::Strong),
        ];
        let shown: Vec<String> = (0..9)
            .map(|left| skip_columns(&spans, left).iter().map(|it| it.text.as_str()).collect())
            .collect();
        assert_eq!(
            shown,
            ["a购物车b", "购物车b", " 物车b", "物车b", " 车b", "车b", " b", "b", ""]
        );
    }
}
