//! The changes of a turn or of the conversation: files at the left, the selected change at the right, a decision for each.
//!
//! Holds places, not documents: the result of a decision is read from the conversation, as everywhere. Only the selected
//! change is laid out. A change that waits for approval is listed hunk by hunk where the question lists its hunks; the
//! accepted ones are written once each has a decision.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap, HashSet},
};

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    widgets::{StatefulWidget, Widget},
};

use super::frame;
use crate::{
    protocol::{Applied, Document, DocumentId, HunkAnswer, Kind, QuestionKind, Turn, View, document::COMMITTED},
    t,
    text::{Background, Role, Sanitized, Span, StyledLine, width},
    theme::Theme,
    transcript::{DocumentIndex, Transcript},
    tui::{
        app::{Answer, ChangeId, Choice, Overlay, PAGE_MEASURE, Scene, TOO_EARLY_MS, Verdict, plain_keys},
        areas::PAGE_INDENT,
        hunk_decisions::{self, HunkDecisions},
        terminal::surface::Links,
        widgets::{
            self, DocumentState, DocumentWidget, Fold, RenderContext,
            list::{ListCursor, ListWidget, bold_if},
            styled_line::{StyledLineWidget, fill, put_spans},
        },
    },
};

/// Longest time before a terminal repeats a key that is held; the next repeats come sooner than `TOO_EARLY_MS`.
const HELD_MS: u64 = 700;

/// Columns of the change from which on its two sides stand beside each other.
const SIDE_BY_SIDE: usize = 110;

/// Most columns that a change is laid out for: longer lines are broken.
const MOST_COLUMNS: usize = 4000;

/// The state of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangeState {
    Undecided,
    Accepted,
    /// Accepted, and in a commit.
    Committed,
    Rejected,
    Undone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReviewScope {
    Turn,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiffLayout {
    ByWidth,
    Unified,
    SideBySide,
}

/// The review page.
pub struct Review {
    changes: ChangeList,
    view: ChangeView,
    guard: KeyGuard,
    /// The change that a comment is being written about.
    remarking: Option<ChangeId>,
    /// The list of files as of the last drawing.
    files: ListCursor,
}

/// The listed changes, and the selected one.
struct ChangeList {
    scope: ReviewScope,
    /// Index of the exchange that the page was opened on.
    turn: usize,
    /// Sorted by file, then by time.
    changes: Vec<ChangeId>,
    /// Documents whose writing the user approved.
    allowed: BTreeSet<DocumentIndex>,
    /// One of the changes is on the disk.
    is_written: bool,
    /// Index in `changes` of the first change of each file, and the file's path.
    files: Vec<(usize, String)>,
    at: usize,
}

/// The part of the selected change that is in view.
struct ChangeView {
    layout: DiffLayout,
    /// Rows of the change above the view, and columns left of it.
    top: usize,
    left: usize,
    /// Rows of the change, and rows in view.
    extent: (usize, usize),
    /// Columns in view.
    columns: usize,
    /// The rows of the change, and the columns that they were laid out for.
    document: Option<(ChangeId, usize, DocumentState)>,
}

/// Ignores keys that decide while nobody can have read what they decide on.
struct KeyGuard {
    /// When the selected change came into view, in milliseconds since the Unix epoch.
    since_ms: u64,
    /// The last key among a and r, and when it came.
    pressed: (KeyCode, u64),
    /// The last one that decided on a change that waits, and when.
    decided: Option<(KeyCode, u64)>,
    /// Another change has taken the place of the one in view.
    is_unread: bool,
    /// The selected change is marked for the editor, which Enter opens.
    is_edit_marked: bool,
}

impl ChangeList {
    fn here(&self) -> Option<ChangeId> {
        self.changes.get(self.at).copied()
    }

    /// Lists the changes anew; returns true if another one is selected then.
    fn collect(&mut self, transcript: &Transcript) -> bool {
        let here = self.here();
        let after = self.changes.get(self.at..).unwrap_or_default().to_vec();
        let exchanges = match self.scope {
            ReviewScope::Turn => self.turn..self.turn + 1,
            ReviewScope::All => 0..transcript.exchanges.len(),
        };
        let mut found: Vec<(String, ChangeId)> = Vec::new();
        self.allowed.clear();
        for exchange in exchanges {
            let mut answered: HashSet<(&str, &str)> = HashSet::new();
            let Some(response) = transcript.exchanges.get(exchange).map(|it| &it.response) else {
                continue;
            };
            for (document, it) in response.documents.iter().enumerate() {
                let place = DocumentIndex { exchange, document };
                answered.extend(allowed(it));
                if let View::FileEdit(edit) = it.view()
                    && let Some(call) = edit.tool_call_id
                    && answered.contains(&(call, edit.file_path))
                {
                    self.allowed.insert(place);
                }
                if let Some(change) = changed(it)
                    && let View::FileEdit(edit) = change.view()
                {
                    let count = if it.kind == Kind::FileEdit {
                        0
                    } else {
                        hunk_decisions::count(&change) as u64
                    };
                    let mut add = |hunk| found.push((edit.file_path.to_owned(), ChangeId { place, hunk }));
                    if count == 0 {
                        add(None);
                    }
                    (1..=count).for_each(|it| add(Some(it)));
                }
            }
        }
        // Files in the order in which they were touched first.
        let mut ranks: HashMap<&str, usize> = HashMap::new();
        for (path, _) in &found {
            let next = ranks.len();
            ranks.entry(path).or_insert(next);
        }
        let rank = |path: &str| ranks.get(path).copied().unwrap_or_default();
        let mut sorted: Vec<(usize, &str, ChangeId)> = found
            .iter()
            .map(|(path, it)| (rank(path), path.as_str(), *it))
            .collect();
        sorted.sort_unstable_by_key(|it| (it.0, it.2));
        self.files.clear();
        for (at, (_, path, _)) in sorted.iter().enumerate() {
            if self.files.last().is_none_or(|it| it.1 != *path) {
                self.files.push((at, (*path).to_owned()));
            }
        }
        self.changes = sorted.into_iter().map(|it| it.2).collect();
        let is_written = |it: &ChangeId| transcript.get(it.place).is_some_and(|it| it.kind == Kind::FileEdit);
        self.is_written = self.changes.iter().any(is_written);
        // The next change takes the place of one that is gone.
        let found = after
            .iter()
            .find_map(|it| self.changes.iter().position(|change| change == it));
        let is_other = here.is_some() && found.and_then(|it| self.changes.get(it)) != here.as_ref();
        self.at = found.unwrap_or(self.at).min(self.changes.len().saturating_sub(1));
        is_other
    }

    /// Index of the selected change's file.
    fn file(&self) -> usize {
        self.files.iter().rposition(|it| it.0 <= self.at).unwrap_or_default()
    }

    fn states(&self, transcript: &Transcript, decisions: &HunkDecisions) -> Vec<ChangeState> {
        let state = |it: &ChangeId| state(*it, self.allowed.contains(&it.place), transcript, decisions);
        self.changes.iter().map(state).collect()
    }

    /// The documents that were accepted as they were written; a change that still waits is none.
    /// The documents that a commit takes: the accepted ones or, where nothing was decided yet, all that were written.
    fn to_commit(&self, transcript: &Transcript, decisions: &HunkDecisions) -> Vec<(Turn, DocumentId)> {
        let accepted = self.accepted(transcript, decisions);
        if accepted.is_empty() {
            return self.in_state(&[ChangeState::Undecided], transcript, decisions);
        }
        accepted
    }

    fn accepted(&self, transcript: &Transcript, decisions: &HunkDecisions) -> Vec<(Turn, DocumentId)> {
        // The repository knows best what is committed: it may have been taken back there.
        self.in_state(&[ChangeState::Accepted, ChangeState::Committed], transcript, decisions)
    }

    /// The written documents in one of these states.
    fn in_state(
        &self,
        wanted: &[ChangeState],
        transcript: &Transcript,
        decisions: &HunkDecisions,
    ) -> Vec<(Turn, DocumentId)> {
        let states = self.states(transcript, decisions);
        let all = self.changes.iter().zip(states);
        all.filter(|(id, state)| id.hunk.is_none() && wanted.contains(state))
            .filter_map(|(id, _)| {
                let document = transcript.get(id.place)?;
                let turn = transcript.exchanges.get(id.place.exchange)?.turn;
                (document.kind == Kind::FileEdit).then(|| (turn, document.id.clone()))
            })
            .collect()
    }

    /// The states of the changes of a file.
    fn states_of<'a>(&self, file: usize, states: &'a [ChangeState]) -> &'a [ChangeState] {
        let start = self.files.get(file).map_or(0, |it| it.0);
        let end = self.files.get(file + 1).map_or(states.len(), |it| it.0);
        states.get(start..end).unwrap_or_default()
    }
}

impl KeyGuard {
    /// Returns true if a key that decides does so now: its change has been in view for a moment, and a key that is held
    /// decides once.
    fn lets(&mut self, event: KeyEvent, now_ms: u64, is_waiting: bool) -> bool {
        let since = |at_ms: u64| now_ms.saturating_sub(at_ms);
        let (key, at_ms) = std::mem::replace(&mut self.pressed, (event.code, now_ms));
        let is_again = key == event.code && since(at_ms) < TOO_EARLY_MS;
        let has_decided = |it: (KeyCode, u64)| it.0 == event.code && since(it.1) < HELD_MS;
        let is_held = event.kind == KeyEventKind::Repeat || is_again || self.decided.is_some_and(has_decided);
        if is_held || self.is_unread || since(self.since_ms) < TOO_EARLY_MS {
            return false;
        }
        if is_waiting {
            self.decided = Some((event.code, now_ms));
            self.is_unread = true;
        }
        true
    }

    /// Forgets held keys: a line of input is none. What nobody typed does not come too early, either.
    fn release(&mut self, is_typed: bool) {
        (self.pressed.0, self.decided) = (KeyCode::Null, None);
        if !is_typed {
            self.since_ms = 0;
        }
    }
}

/// Columns of the heading of a change, wherever the list of files ends.
const LEAST_HEADING: usize = 60;

impl ChangeView {
    fn reset(&mut self) {
        (self.top, self.left) = (0, 0);
    }

    fn scroll(&mut self, by: isize) {
        let last = self.extent.0.saturating_sub(self.extent.1);
        self.top = self.top.saturating_add_signed(by).min(last);
    }

    fn is_side_by_side(&self) -> bool {
        match self.layout {
            DiffLayout::ByWidth => self.columns >= SIDE_BY_SIDE,
            DiffLayout::Unified => false,
            DiffLayout::SideBySide => true,
        }
    }

    fn draw(&mut self, id: ChangeId, document: &Document, area: Rect, buf: &mut Buffer, context: &RenderContext<'_>) {
        let pairs = self
            .is_side_by_side()
            .then(|| widgets::sides(document, context))
            .flatten();
        match pairs {
            Some(pairs) => self.draw_sides(&pairs, area, buf, context),
            None => self.draw_unified(id, document, area, buf, context),
        }
    }

    fn draw_sides(
        &mut self,
        pairs: &[(Option<StyledLine>, Option<StyledLine>)],
        area: Rect,
        buf: &mut Buffer,
        context: &RenderContext<'_>,
    ) {
        let Some(theme) = context.theme else { return };
        let half = usize::from(area.width).saturating_sub(3) / 2;
        self.left = self.left.min(overhang(
            pairs.iter().flat_map(|(old, new)| [old, new]).flatten(),
            half,
            self.left,
        ));
        self.extent = (pairs.len(), usize::from(area.height));
        self.scroll(0);
        let shown = pairs.get(self.top..).unwrap_or_default();
        let lines = Rect {
            height: area.height.min(shown.len() as u16),
            ..area
        };
        let sides = frame::beside(lines, half, buf, Role::Rule, theme);
        for ((old, new), y) in shown.iter().zip(lines.y..lines.bottom()) {
            for (line, side) in [old, new].into_iter().zip(sides) {
                let Some(line) = line else { continue };
                let side = Rect::new(side.x, y, half as u16, 1);
                let mut drawn = Buffer::empty(Rect::new(0, 0, (half + self.left + 2) as u16, 1));
                let widget = StyledLineWidget {
                    line,
                    under: Background::Plain,
                    measure: u16::MAX,
                    theme,
                };
                Widget::render(widget, drawn.area, &mut drawn);
                put_scrolled(line, &drawn, self.left, side, buf, theme);
            }
        }
    }

    fn draw_unified(
        &mut self,
        id: ChangeId,
        document: &Document,
        area: Rect,
        buf: &mut Buffer,
        context: &RenderContext<'_>,
    ) {
        let (room, Some(theme)) = (usize::from(area.width), context.theme) else {
            return;
        };
        // Long lines are scrolled, not broken: the document is laid out for the longest one.
        let columns = room.max(longest(document) + 16).min(MOST_COLUMNS);
        let mut state = match self.document.take() {
            Some((of, at, state)) if of == id && at == columns => state,
            Some(_) | None => DocumentState::default(),
        };
        let context = &RenderContext {
            width: columns,
            fold: Fold::Full,
            ..*context
        };
        state.lay_out(document, context);
        // Its heading says what the page's says.
        self.extent = (state.rows.len().saturating_sub(1), usize::from(area.height));
        self.scroll(0);
        self.left = self.left.min(overhang(state.rows.iter().skip(1), room, self.left));
        let mut drawn = Buffer::empty(Rect::new(0, 0, columns as u16, 1));
        for (at, row) in (self.top + 1..state.rows.len()).zip(area.rows()) {
            drawn.reset();
            state.offset = at;
            DocumentWidget { document, context }.render(drawn.area, &mut drawn, &mut state);
            if let Some(line) = state.rows.get(at) {
                put_scrolled(line, &drawn, self.left, row, buf, theme);
            }
        }
        self.document = Some((id, columns, state));
    }
}

impl Review {
    /// Opens on a change, or on the last turn that has any; `None` if nothing was changed.
    pub fn new(transcript: &Transcript, on: Option<DocumentIndex>, now_ms: u64) -> Option<Self> {
        let has_change =
            |it: &crate::transcript::Exchange| it.response.documents.iter().any(|it| changed(it).is_some());
        let turn = match on {
            Some(place) => place.exchange,
            None => transcript.exchanges.iter().rposition(has_change)?,
        };
        let mut changes = ChangeList {
            scope: ReviewScope::Turn,
            turn,
            changes: Vec::new(),
            allowed: BTreeSet::new(),
            is_written: false,
            files: Vec::new(),
            at: 0,
        };
        changes.collect(transcript);
        if let Some(place) = on {
            changes.at = changes
                .changes
                .iter()
                .position(|it| it.place == place)
                .unwrap_or_default();
        }
        (!changes.changes.is_empty()).then_some(Self {
            changes,
            view: ChangeView {
                layout: DiffLayout::ByWidth,
                top: 0,
                left: 0,
                extent: (0, 1),
                columns: 0,
                document: None,
            },
            guard: KeyGuard {
                since_ms: now_ms,
                pressed: (KeyCode::Null, 0),
                decided: None,
                is_unread: false,
                is_edit_marked: false,
            },
            remarking: None,
            files: ListCursor::default(),
        })
    }

    /// The documents that a commit takes: those of the conversation that were accepted or, if none was, those of the last
    /// turn that changed a file.
    pub fn to_commit(transcript: &Transcript, decisions: &HunkDecisions) -> Vec<(Turn, DocumentId)> {
        let mut changes = ChangeList {
            scope: ReviewScope::All,
            turn: 0,
            changes: Vec::new(),
            allowed: BTreeSet::new(),
            is_written: false,
            files: Vec::new(),
            at: 0,
        };
        changes.collect(transcript);
        let accepted = changes.accepted(transcript, decisions);
        match Self::new(transcript, None, 0).filter(|_| accepted.is_empty()) {
            Some(last) => last.changes.to_commit(transcript, decisions),
            None => accepted,
        }
    }

    /// The selected change.
    pub fn selected(&self) -> Option<ChangeId> {
        self.changes.here()
    }

    /// The change that a comment is being written about.
    pub fn remarking(&self) -> Option<ChangeId> {
        self.remarking
    }

    /// Ends a comment; returns its change, if that is still selected.
    pub fn remarked(&mut self) -> Option<ChangeId> {
        self.remarking.take().filter(|it| Some(*it) == self.selected())
    }

    fn step(&mut self, by: isize) {
        let last = self.changes.changes.len().saturating_sub(1);
        self.go(self.changes.at.saturating_add_signed(by).min(last));
    }

    fn step_file(&mut self, by: isize) {
        let next = self.changes.file().saturating_add_signed(by);
        let next = next.min(self.changes.files.len().saturating_sub(1));
        if let Some((at, _)) = self.changes.files.get(next) {
            self.go(*at);
        }
    }

    fn go(&mut self, at: usize) {
        if self.changes.at != at {
            self.changes.at = at;
            self.view.reset();
        }
    }

    /// The title, the scope and the counts of decisions; shorter where there is little room.
    fn head(&self, states: &[ChangeState], transcript: &Transcript, columns: usize) -> StyledLine {
        let title = t!("review-title");
        let scope = match self.changes.scope {
            ReviewScope::Turn if self.changes.turn + 1 == transcript.exchanges.len() => {
                t!("review-this-turn").to_owned()
            }
            ReviewScope::Turn => {
                let exchange = transcript.exchanges.get(self.changes.turn);
                t!(
                    "review-turn",
                    turn = exchange.map_or_else(String::new, |it| it.turn.to_string())
                )
            }
            ReviewScope::All => t!("review-everything").to_owned(),
        };
        let number = |state: ChangeState| states.iter().filter(|it| **it == state).count();
        let accepted = number(ChangeState::Accepted) + number(ChangeState::Committed);
        let rejected = number(ChangeState::Rejected);
        let (at, count) = ((self.changes.at + 1).min(states.len()), states.len());
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
        let columns = columns.min(usize::from(PAGE_MEASURE));
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

    /// Draws the files, each with the state of its changes.
    fn draw_files(&mut self, states: &[ChangeState], area: Rect, buf: &mut Buffer, theme: &Theme) {
        let list = ListWidget {
            count: self.changes.files.len(),
            sign: "",
            is_active: true,
            line: |at, is_here, columns| match self.changes.files.get(at) {
                Some((_, path)) => file_line(path, self.changes.states_of(at, states), is_here, columns),
                None => Vec::new(),
            },
            theme,
        };
        let mut cursor = ListCursor::new(self.changes.file());
        list.render(area, buf, &mut cursor);
        self.files = cursor;
    }

    /// Draws the selected change below its heading.
    fn draw_change(&mut self, area: Rect, buf: &mut Buffer, scene: &Scene<'_>) {
        let Some((id, document)) = self
            .selected()
            .and_then(|it| Some((it, scene.transcript.get(it.place)?)))
        else {
            return;
        };
        let columns = usize::from(area.width);
        let answer = answer(document, id, scene.transcript, scene.hunk_decisions);
        let mut above: Vec<_> = widgets::caution(document, columns).into_iter().collect();
        let Some(document) = changed(document).map(|it| match id.hunk {
            Some(index) => Cow::Owned(hunk_decisions::hunk(&it, index, answer)),
            None => it,
        }) else {
            return;
        };
        if !above.is_empty() {
            above.push(StyledLine::blank());
        }
        let address = scene
            .transcript
            .address(id.place)
            .map(|it| it.to_string())
            .unwrap_or_default();
        let is_allowed = self.changes.allowed.contains(&id.place);
        let edge = usize::from(PAGE_INDENT + PAGE_MEASURE).saturating_sub(usize::from(area.x));
        let room = columns.min(edge.max(LEAST_HEADING));
        above.extend(heading(&document, answer, is_allowed, &address, room));
        let rest = frame::lines(area, buf, &above, scene.theme);
        self.view
            .draw(id, &document, rest, buf, &scene.render_context(rest.width));
    }
}

fn file_line(path: &str, states: &[ChangeState], is_here: bool, columns: usize) -> Vec<Span> {
    let is_accepted = |it: &&ChangeState| matches!(it, ChangeState::Accepted | ChangeState::Committed);
    let accepted = states.iter().filter(is_accepted).count();
    let (sign, role) = if states.contains(&ChangeState::Undecided) {
        ("○", Role::Dim)
    } else if accepted > 0 {
        ("✓", Role::Done)
    } else if states.contains(&ChangeState::Rejected) {
        ("✗", Role::Error)
    } else {
        ("↶", Role::Dim)
    };
    let count = if sign == "✓" && accepted < states.len() {
        format!("{accepted}/{}", states.len())
    } else {
        states.len().to_string()
    };
    let room = columns.saturating_sub(3 + count.len());
    let name = width::pad(&width::cut_start(&Sanitized::line(path), room), room);
    vec![
        Span::new(Sanitized::literal(sign), role),
        Span::new(Sanitized::literal(" "), Role::Text),
        Span::new(Sanitized::new(&name), Role::Text).modified(bold_if(is_here)),
        Span::new(Sanitized::new(&format!(" {count}")), Role::Faint),
    ]
}

impl Overlay for Review {
    fn key(&mut self, event: KeyEvent, scene: &Scene<'_>) -> Answer {
        let here = self.selected();
        let is_edit_marked = std::mem::take(&mut self.guard.is_edit_marked);
        // Nothing is decided by somebody who was still typing.
        if matches!(event.code, KeyCode::Char('a' | 'A' | 'r')) {
            let document = here.and_then(|it| scene.transcript.get(it.place));
            let is_waiting = document.and_then(widgets::staged).is_some();
            if !self.guard.lets(event, scene.now_ms, is_waiting) {
                return Answer::Said(t!("review-too-soon").to_owned());
            }
        }
        let judge = |verdict| match here {
            Some(change) => Answer::Live(Choice::Review(verdict, change)),
            None => Answer::Taken,
        };
        match event.code {
            KeyCode::Esc | KeyCode::Char('q') => return Answer::Close,
            KeyCode::Char('c' | 'e') if event.modifiers.contains(KeyModifiers::CONTROL) => return Answer::Close,
            KeyCode::Char('a') => {
                let answer = judge(Verdict::Accept);
                // What is brought back is still to be accepted.
                if !here.is_some_and(|it| is_taken_back(it, scene.transcript)) {
                    self.step(1);
                }
                return answer;
            }
            KeyCode::Char('A') => {
                // Only what is written: a change that waits is decided where it is seen.
                let states = self.changes.states(scene.transcript, scene.hunk_decisions);
                let all = self.changes.changes.iter().zip(states);
                let open = all.filter(|(it, state)| {
                    let document = scene.transcript.get(it.place);
                    *state == ChangeState::Undecided && document.is_some_and(|it| it.kind == Kind::FileEdit)
                });
                return Answer::Live(Choice::AcceptAll(open.map(|it| *it.0).collect()));
            }
            KeyCode::Char('C') => {
                let accepted = self.changes.to_commit(scene.transcript, scene.hunk_decisions);
                if accepted.is_empty() {
                    return Answer::Said(t!("review-none-accepted").to_owned());
                }
                return Answer::Live(Choice::Commit(accepted));
            }
            KeyCode::Char('r') => {
                let answer = judge(Verdict::Reject);
                self.step(1);
                return answer;
            }
            // A letter opens no other program: somebody may be writing a sentence.
            KeyCode::Char('e') if here.is_some() => {
                self.guard.is_edit_marked = true;
                return Answer::Said(t!("review-enter-edits").to_owned());
            }
            KeyCode::Enter if is_edit_marked => return judge(Verdict::Edit),
            KeyCode::Char('c') => {
                return match here {
                    // A comment on a hunk that waits is sent with the answer.
                    Some(ChangeId { hunk: Some(_), .. }) => {
                        self.remarking = here;
                        judge(Verdict::Comment)
                    }
                    Some(change) => Answer::Chosen(Choice::Review(Verdict::Comment, change)),
                    None => Answer::Close,
                };
            }
            KeyCode::Char(sign @ ('+' | '-')) => {
                // What is laid out was made with other lines.
                self.view.document = None;
                return Answer::Live(Choice::ContextLines(sign == '+'));
            }
            KeyCode::Char('j') | KeyCode::Tab => self.step(1),
            KeyCode::Char('k') | KeyCode::BackTab => self.step(-1),
            KeyCode::Char('J') => self.step_file(1),
            KeyCode::Char('K') => self.step_file(-1),
            KeyCode::Char('u') => {
                self.view.layout = if self.view.is_side_by_side() {
                    DiffLayout::Unified
                } else {
                    DiffLayout::SideBySide
                };
                self.view.document = None;
            }
            KeyCode::Char('s') => {
                self.changes.scope = match self.changes.scope {
                    ReviewScope::Turn => ReviewScope::All,
                    ReviewScope::All => ReviewScope::Turn,
                };
            }
            KeyCode::Down => self.view.scroll(1),
            KeyCode::Up => self.view.scroll(-1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.view.scroll(self.view.extent.1 as isize),
            KeyCode::PageUp => self.view.scroll(-(self.view.extent.1 as isize)),
            KeyCode::Char('g') | KeyCode::Home => self.view.top = 0,
            KeyCode::Char('G') | KeyCode::End => self.view.scroll(isize::MAX / 2),
            KeyCode::Right => self.view.left += 8,
            KeyCode::Left => self.view.left = self.view.left.saturating_sub(8),
            _ => {}
        }
        Answer::Taken
    }

    fn wheel(&mut self, by: isize) {
        self.view.scroll(by * 3);
    }

    /// A click on a file shows its first change.
    fn click(&mut self, cell: Position) -> bool {
        let file = self.files.entry_at(cell).and_then(|it| self.changes.files.get(it));
        let Some((at, _)) = file else { return false };
        self.go(*at);
        true
    }

    fn render(&mut self, area: Rect, buf: &mut Buffer, _: &mut Links, scene: &Scene<'_>) {
        let (transcript, theme) = (scene.transcript, scene.theme);
        if self.changes.collect(transcript) {
            self.guard.is_unread = true;
            self.view.reset();
        }
        if std::mem::take(&mut self.guard.is_unread) {
            self.guard.since_ms = scene.now_ms;
        }
        let states = self.changes.states(transcript, scene.hunk_decisions);
        let columns = usize::from(area.width);
        let head = self.head(&states, transcript, columns);
        let rest = frame::lines(area, buf, &[head, StyledLine::blank()], theme);
        self.files = ListCursor::default();
        // One file is named above its change.
        let change = if columns >= 70 && self.changes.files.len() > 1 {
            let [files, change] = frame::beside(rest, (columns / 4).clamp(18, 36), buf, Role::Rule, theme);
            self.draw_files(&states, files, buf, theme);
            change
        } else {
            rest
        };
        self.view.columns = usize::from(change.width);
        self.draw_change(change, buf, scene);
    }

    fn placeholder(&self) -> &'static str {
        t!("composer-in-review")
    }

    fn most_columns(&self) -> u16 {
        u16::MAX
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        let commit = ("C", t!("footer-commit"));
        let keys = [
            ("a", t!("footer-accept")),
            ("r", t!("footer-reject")),
            ("j k", t!("footer-hunk")),
            commit,
            ("c", t!("footer-comment")),
            ("e", t!("footer-edit")),
            ("A", t!("footer-accept-all")),
            ("J K", t!("footer-file")),
            ("u", t!("footer-side-by-side")),
            ("+ -", t!("footer-context")),
            ("s", t!("footer-turn-or-all")),
            ("esc", t!("footer-back")),
        ];
        // What is not written yet is not committed, either.
        let is_shown = |it: &(&str, &str)| *it != commit || self.changes.is_written;
        keys.into_iter().filter(is_shown).collect()
    }

    fn decisions(&self) -> usize {
        2
    }

    fn keys_of(&mut self, line: &str, is_typed: bool) -> Result<Vec<KeyCode>, String> {
        self.guard.release(is_typed);
        Ok(plain_keys(line))
    }
}

/// The change that a document made or asks to make; `None` for one that failed, and for other documents.
fn changed(document: &Document) -> Option<Cow<'_, Document>> {
    match document.view() {
        View::FileEdit(it) if it.applied == Applied::Failed => None,
        View::FileEdit(_) => Some(Cow::Borrowed(document)),
        View::Clarification(_) => widgets::staged(document).map(Cow::Owned),
        _ => None,
    }
}

/// The decision on a hunk that waits; `None` for a whole document, or without a decision.
fn answer<'a>(
    document: &Document,
    id: ChangeId,
    transcript: &Transcript,
    decisions: &'a HunkDecisions,
) -> Option<&'a HunkAnswer> {
    let turn = transcript.exchanges.get(id.place.exchange)?.turn;
    decisions.get(turn, &document.id, id.hunk?)
}

fn state(id: ChangeId, is_allowed: bool, transcript: &Transcript, decisions: &HunkDecisions) -> ChangeState {
    let Some(document) = transcript.get(id.place) else {
        return ChangeState::Undecided;
    };
    match answer(document, id, transcript, decisions) {
        Some(answer) if answer.accepted => ChangeState::Accepted,
        Some(_) => ChangeState::Rejected,
        None if is_rejected(document) => ChangeState::Rejected,
        None if widgets::undone(document).is_some() => ChangeState::Undone,
        None if document.metadata.contains_key(COMMITTED) => ChangeState::Committed,
        None if is_allowed || is_accepted(document) => ChangeState::Accepted,
        None => ChangeState::Undecided,
    }
}

/// The call and the path of a change that the user approved as a whole.
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

/// Returns true for a change that is not on the disk any more, or never was.
fn is_taken_back(id: ChangeId, transcript: &Transcript) -> bool {
    let document = transcript.get(id.place).filter(|_| id.hunk.is_none());
    document.is_some_and(|it| it.kind == Kind::FileEdit && (is_rejected(it) || it.is_undone()))
}

fn is_rejected(document: &Document) -> bool {
    matches!(document.view(), View::FileEdit(it) if it.applied == Applied::Rejected)
}

/// Path, line and state; then the user's comment to the model.
fn heading(
    document: &Document,
    answer: Option<&HunkAnswer>,
    is_allowed: bool,
    address: &str,
    room: usize,
) -> Vec<StyledLine> {
    let View::FileEdit(edit) = document.view() else {
        return Vec::new();
    };
    let undone = widgets::undone(document);
    let (state, role) = match edit.applied {
        Applied::Pending if let Some(answer) = answer => match (answer.accepted, &answer.new_string) {
            (true, Some(_)) => (t!("review-accepted-edited"), Role::Done),
            (true, None) => (t!("review-accepted"), Role::Done),
            (false, _) => (t!("review-left-out"), Role::Error),
        },
        Applied::Rejected => (t!("review-rejected"), Role::Error),
        Applied::Failed => (t!("review-failed"), Role::Error),
        Applied::Pending => (t!("review-not-written-yet"), Role::Waiting),
        Applied::Applied | Applied::Other(_) if let Some(undone) = &undone => (undone.as_str(), Role::Dim),
        Applied::Applied | Applied::Other(_) if document.metadata.contains_key(COMMITTED) => {
            (t!("review-committed"), Role::Done)
        }
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
    let mut rows = vec![StyledLine::of([
        Span::new(Sanitized::new(&path), Role::Strong).bold(),
        Span::new(Sanitized::new(&" ".repeat(gap)), Role::Text),
        Span::new(Sanitized::line(&facts), Role::Dim),
        Span::new(Sanitized::new(state), role),
    ])];
    if let Some(comment) = answer.and_then(|it| it.comment.as_deref()) {
        let comment = Sanitized::line(&t!("review-you-say", comment = comment));
        let comment = Sanitized::new(&width::cut_end(&comment, room));
        rows.push(StyledLine::of([Span::new(comment, Role::User)]));
    }
    rows.push(StyledLine::blank());
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

/// Columns by which the longest row exceeds `room`; 0 for a view that is not scrolled, without looking.
fn overhang<'a>(rows: impl IntoIterator<Item = &'a StyledLine>, room: usize, left: usize) -> usize {
    if left == 0 {
        return 0;
    }
    let rows = rows.into_iter();
    rows.map(|it| (width::spans_width(it.gutter()) + width::spans_width(it.content())).saturating_sub(room))
        .max()
        .unwrap_or_default()
}

/// Copies a line that was drawn into the first row of `drawn`, from column `left` of its text on. The gutter stays; a mark
/// stands on either side where the text is cut.
fn put_scrolled(line: &StyledLine, drawn: &Buffer, left: usize, area: Rect, buf: &mut Buffer, theme: &Theme) {
    fill(buf, area, line.background, theme);
    let gutter = width::spans_width(line.gutter());
    let text = width::spans_width(line.content());
    for (x, column) in (area.x..area.right()).zip(0..) {
        let from = if column < gutter { column } else { column + left };
        if from < gutter + text
            && let Some(cell) = drawn.cell((from as u16, 0))
        {
            buf[(x, area.y)].clone_from(cell);
        }
    }
    let mark = [Span::new(Sanitized::literal("…"), Role::Faint)];
    let mut put_mark = |x: u16| {
        let cell = Rect::new(x, area.y, 1, 1).intersection(area);
        put_spans(buf, cell, &mark, line.background, theme, &mut Links::new());
    };
    if left > 0 && text > 0 {
        put_mark(area.x + gutter as u16);
    }
    if (gutter + text).saturating_sub(left) > usize::from(area.width) && gutter < usize::from(area.width) {
        put_mark(area.right() - 1);
        let before = area.right().checked_sub(2).filter(|it| *it >= area.x);
        if let Some(cell) = before.and_then(|it| buf.cell_mut((it, area.y)))
            && width::width(cell.symbol()) > 1
        {
            cell.set_symbol(" ");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_wide_signs_stay_in_their_columns_when_they_are_scrolled() {
        let mut line = StyledLine::of([
            Span::new(Sanitized::literal("1 "), Role::Faint),
            Span::new(Sanitized::literal("a购物"), Role::Text),
            Span::new(Sanitized::literal("车b"), Role::Strong),
        ]);
        line.gutter = 1;
        let theme = Theme::built_in("sheaf-dark").unwrap();
        let mut drawn = Buffer::empty(Rect::new(0, 0, 20, 1));
        let widget = StyledLineWidget {
            line: &line,
            under: Background::Plain,
            measure: u16::MAX,
            theme: &theme,
        };
        Widget::render(widget, drawn.area, &mut drawn);
        let shown = |left, columns| {
            let mut buffer = Buffer::empty(Rect::new(0, 0, columns, 1));
            put_scrolled(&line, &drawn, left, buffer.area, &mut buffer, &theme);
            let text = crate::tui::terminal::surface::text_of(&buffer, buffer.area);
            text.trim_end().to_owned()
        };
        let all: Vec<String> = (0..9).map(|left| shown(left, 12)).collect();
        assert_eq!(
            all,
            [
                "1 a购物车b",
                "1 … 物车b",
                "1 …物车b",
                "1 … 车b",
                "1 …车b",
                "1 … b",
                "1 …b",
                "1 …",
                "1 …"
            ]
        );
        assert_eq!(
            [shown(0, 9), shown(0, 8), shown(2, 7)],
            ["1 a购物 …", "1 a购物…", "1 …物 …"]
        );
    }
}
