//! The inspector: provider traffic beside the documents that it produced.
//!
//! One row for each step of the trace, or for a run of deltas of one document, with the text that they make; the chosen one
//! in full: bytes, time, events, repairs, and the document as it is now. A filter leaves the rows that have its words.
//! Only what is in view is laid out, however long the trace and the document are.

use std::{collections::VecDeque, sync::Arc};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};
use serde_json::Value;

use super::frame;
use crate::{
    journal::{Raw, Ring, Trace, TraceStep},
    locale::figure,
    protocol::{Document, DocumentId, Event, Severity, codec::record},
    t,
    text::{
        Role, Sanitized, Span, StyledLine, visible, visible_line, width,
        wrap::{wrap, wrap_hard},
    },
    transcript::Transcript,
    tui::{
        app::{Answer, Effect, Overlay, Scene},
        editor::draft::Draft,
        terminal::surface::Links,
        widgets::list::{ListCursor, ListWidget},
    },
};

/// Columns from which on the list and the step stand side by side.
const BESIDE: usize = 96;

/// Most bytes of a document's text that are shown.
const TEXT_BYTES: usize = 2_000;

/// Most bytes of each metadata member that are shown.
const MEMBER_BYTES: usize = 400;

/// Rows of the chosen step that can be scrolled to.
const MOST_ROWS: usize = 1_000;

/// The page of a trace.
pub struct Inspector {
    trace: Arc<Trace>,
    /// The chosen step; `None` follows the newest one.
    chosen: Option<u64>,
    /// The first row of the chosen step that is in view.
    below: usize,
    /// Rows of the list in view as of the last drawing.
    height: usize,
    /// Deltas are shown one by one.
    is_split: bool,
    filter: Draft,
    /// Keys go to the filter.
    is_typing: bool,
}

/// A row of the list: a step, or a run of deltas of one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StepRun {
    first: u64,
    last: u64,
}

impl StepRun {
    fn is_one(self) -> bool {
        self.first == self.last
    }

    /// Returns its steps, as far as they are still in the ring.
    fn steps(self, ring: &Ring) -> impl Iterator<Item = &TraceStep> {
        (self.first..=self.last).filter_map(|it| ring.get(it))
    }
}

/// The chosen step, copied out of the ring.
struct ChosenStep {
    step: TraceStep,
    /// For a run of deltas: their number, the text that they make, and the bytes of their frames.
    run: Option<(u64, String, usize)>,
    before_ms: Option<u64>,
    since_ms: u64,
}

impl Inspector {
    pub fn new(trace: Arc<Trace>) -> Self {
        Self {
            trace,
            chosen: None,
            below: 0,
            height: 1,
            is_split: false,
            filter: Draft::default(),
            is_typing: false,
        }
    }

    fn number(&self, ring: &Ring) -> u64 {
        self.chosen
            .map_or(ring.count(), |it| it.clamp(ring.first(), ring.count()))
    }

    /// Returns the rows that pass the filter, and the index of the chosen one or of the one before it; 0 if there is none.
    fn rows(&self, ring: &Ring) -> (Vec<StepRun>, usize) {
        let mut rows: Vec<StepRun> = Vec::new();
        // The last step that is not silent, and the number of rows up to it.
        let mut last: Option<(&TraceStep, usize)> = None;
        for step in &ring.steps {
            let run = last.filter(|it| !self.is_split && is_run(it.0, step));
            if let Some((_, count)) = run {
                // The frames in between produced no event: their text is in this one.
                rows.truncate(count);
            }
            match rows.last_mut().filter(|_| run.is_some()) {
                Some(run) => run.last = step.number,
                None => rows.push(StepRun {
                    first: step.number,
                    last: step.number,
                }),
            }
            if !is_silent(step) {
                last = Some((step, rows.len()));
            }
        }
        let filter = self.filter.text().to_lowercase();
        let words: Vec<&str> = filter.split_whitespace().collect();
        if !words.is_empty() {
            rows.retain(|it| {
                let text = searched(*it, ring);
                words.iter().all(|word| text.contains(word))
            });
        }
        let number = self.number(ring);
        let at = rows.partition_point(|it| it.first <= number).saturating_sub(1);
        (rows, at)
    }

    /// Returns the row under the cursor; `None` if no step passes the filter.
    fn here(&self, ring: &Ring) -> Option<StepRun> {
        let (rows, at) = self.rows(ring);
        rows.get(at).copied()
    }

    fn go(&mut self, by: isize) {
        let found = self.trace.read(|ring| {
            let (rows, at) = self.rows(ring);
            let to = at.saturating_add_signed(by).min(rows.len().saturating_sub(1));
            Some((rows.get(to)?.last, to + 1 == rows.len()))
        });
        self.take(found);
    }

    /// Goes to the step that `find` returns; the newest one is followed from then on.
    fn choose(&mut self, find: impl FnOnce(&Ring, u64) -> Option<u64>) {
        let found = self.trace.read(|ring| {
            let to = find(ring, self.number(ring))?;
            Some((to, to == ring.count()))
        });
        self.take(found);
    }

    /// Goes to a step; `true`: it is the newest, and the newest is followed.
    fn take(&mut self, found: Option<(u64, bool)>) {
        if let Some((to, is_newest)) = found {
            self.chosen = (!is_newest).then_some(to);
            self.below = 0;
        }
    }

    /// Takes a key of the filter.
    fn filter_key(&mut self, event: KeyEvent) -> Answer {
        match event.code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.take_all();
            }
            KeyCode::Up => self.go(-1),
            KeyCode::Down => self.go(1),
            _ => {
                self.filter.edit(event);
                self.below = 0;
            }
        }
        Answer::Taken
    }
}

impl Overlay for Inspector {
    fn key(&mut self, event: KeyEvent, _: &Scene<'_>) -> Answer {
        let page = self.height as isize;
        if self.is_typing && !event.modifiers.contains(KeyModifiers::CONTROL) {
            return self.filter_key(event);
        }
        match event.code {
            KeyCode::Esc if !self.filter.is_empty() => {
                self.filter.take_all();
            }
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('d') => {
                self.is_split = !self.is_split;
                self.below = 0;
            }
            KeyCode::Esc | KeyCode::F(12) | KeyCode::Char('q') => return Answer::Close,
            KeyCode::Char('c') if event.modifiers.contains(KeyModifiers::CONTROL) => return Answer::Close,
            KeyCode::Up | KeyCode::Char('k') => self.go(-1),
            KeyCode::Down | KeyCode::Char('j') => self.go(1),
            KeyCode::PageUp => self.go(-page),
            KeyCode::PageDown | KeyCode::Char(' ') => self.go(page),
            KeyCode::Home | KeyCode::Char('g') => self.choose(|ring, _| Some(ring.first())),
            KeyCode::End | KeyCode::Char('G') => {
                self.chosen = None;
                self.below = 0;
            }
            KeyCode::Char('J') => self.below = self.below.saturating_add(1),
            KeyCode::Char('K') => self.below = self.below.saturating_sub(1),
            KeyCode::Char('n') => self.choose(|ring, from| find(ring, from, true, is_repaired)),
            KeyCode::Char('N') => self.choose(|ring, from| find(ring, from, false, is_repaired)),
            KeyCode::Char(']') => self.choose(|ring, from| same(ring, from, true)),
            KeyCode::Char('[') => self.choose(|ring, from| same(ring, from, false)),
            KeyCode::Char('y') => {
                let text = self.trace.read(|ring| {
                    let run = self.here(ring)?;
                    Some(run.steps(ring).map(raw_of).collect::<String>())
                });
                return text.map_or(Answer::Taken, |it| copy(it, t!("copied-what-came")));
            }
            KeyCode::Char('c') => {
                let sent = self
                    .trace
                    .read(|ring| ring.request(self.number(ring)).map(|it| (it.bytes, it.to_curl())));
                return match sent {
                    Some((_, Some(text))) => copy(text, t!("copied-curl")),
                    Some((bytes, None)) => {
                        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
                        Answer::Said(t!("inspector-too-much", size = figure::bytes(bytes).as_str()))
                    }
                    None => Answer::Said(t!("inspector-no-request").to_owned()),
                };
            }
            _ => {}
        }
        Answer::Taken
    }

    fn paste(&mut self, text: &str) -> Option<Answer> {
        self.is_typing = true;
        self.filter.insert(&Sanitized::line(text));
        self.below = 0;
        Some(Answer::Taken)
    }

    fn wheel(&mut self, by: isize) {
        self.go(by);
    }

    fn render(&mut self, area: Rect, buf: &mut Buffer, _: &mut Links, scene: &Scene<'_>) {
        let theme = scene.theme;
        let columns = usize::from(area.width);
        let filter = (self.is_typing || !self.filter.is_empty()).then(|| self.filter.text());
        let (count, gone) = self.trace.read(|ring| (ring.count(), ring.first().saturating_sub(1)));
        let head = title(count, gone, filter.as_deref(), columns);
        let rest = frame::lines(area, buf, &[head], theme);
        let Some(step) = self.trace.read(|ring| chosen_step(ring, self.here(ring)?)) else {
            let nothing = if count == 0 {
                t!("inspector-nothing-yet")
            } else {
                t!("list-nothing")
            };
            let nothing = Span::new(Sanitized::literal(nothing), Role::Dim);
            frame::lines(rest, buf, &[StyledLine::of([nothing])], theme);
            return;
        };
        let rows_known = self.trace.read(|ring| self.rows(ring).0.len());
        let [list, details] = if columns >= BESIDE {
            frame::beside(rest, columns * 2 / 5, buf, Role::Faint, theme)
        } else {
            let lines = usize::from(rest.height.saturating_sub(1) / 2).max(1);
            frame::below(rest, lines.min(rows_known), buf, Role::Faint, theme)
        };
        self.height = usize::from(list.height).max(1);
        self.trace.read(|ring| {
            let (rows, at) = self.rows(ring);
            let steps = ListWidget {
                count: rows.len(),
                sign: "▸ ",
                is_active: true,
                line: |at, _, columns| rows.get(at).map_or_else(Vec::new, |it| line(ring, *it, columns)),
                theme,
            };
            steps.render(list, buf, &mut ListCursor::centred(at));
        });
        let rows = step_lines(&step, scene.transcript, usize::from(details.width).max(1));
        self.below = self.below.min(rows.len().saturating_sub(usize::from(details.height)));
        frame::lines(details, buf, rows.get(self.below..).unwrap_or_default(), theme);
    }

    fn most_columns(&self) -> u16 {
        u16::MAX
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        if self.is_typing {
            return vec![
                (t!("footer-letters"), t!("footer-find")),
                ("enter", t!("footer-choose")),
                ("esc", t!("footer-everything")),
            ];
        }
        vec![
            ("↑↓", t!("footer-step")),
            ("/", t!("footer-find")),
            ("d", t!("footer-deltas")),
            ("n", t!("footer-repaired")),
            ("[ ]", t!("footer-same-document")),
            ("y", t!("footer-copy")),
            ("c", t!("footer-curl")),
            ("J K", t!("footer-scroll")),
            ("esc", t!("footer-back")),
        ]
    }
}

fn copy(text: String, what: &str) -> Answer {
    Answer::Does(Effect::Copy {
        text,
        what: what.to_owned(),
    })
}

fn title(count: u64, gone: u64, filter: Option<&str>, columns: usize) -> StyledLine {
    let said = if gone > 0 {
        let gone = figure::grouped(gone);
        t!("inspector-steps-gone", count = figure::grouped(count), gone = gone)
    } else {
        t!("inspector-steps", count = figure::grouped(count))
    };
    let mut spans = vec![Span::new(Sanitized::literal(t!("inspector-title")), Role::Strong).bold()];
    if let Some(filter) = filter {
        spans.push(Span::new(visible_line(&format!(" › {filter}")), Role::Accent));
    }
    spans.push(Span::new(Sanitized::new(&format!("   {said}")), Role::Dim));
    StyledLine::of(width::clip_spans(&spans, columns))
}

/// The document and the text of a step that is nothing but deltas of one text; `None` for any other step.
fn delta_of(step: &TraceStep) -> Option<(Option<&DocumentId>, &'static str)> {
    let mut of = argument_piece(step).map(|_| (None, "tool_call_arguments"));
    for entry in &step.made {
        let this = match &entry.event {
            Event::ContentDelta { document, .. } => (Some(document), "content_delta"),
            Event::ThinkingDelta { .. } => (None, "thinking_delta"),
            Event::ToolCallArguments {
                document,
                arguments: Value::String(_),
            } => (Some(document), "tool_call_arguments"),
            _ => return None,
        };
        if *of.get_or_insert(this) != this {
            return None;
        }
    }
    of
}

/// Returns a piece of a call's arguments in a frame of a provider that has made no event: a call is shown once it is complete.
fn argument_piece(step: &TraceStep) -> Option<String> {
    let Some(Raw::Frame { text, .. }) = &step.raw else {
        return None;
    };
    if !step.made.is_empty() {
        return None;
    }
    let delta = text.contains("function_call_arguments.delta").then_some("delta");
    ["arguments", "partial_json"].into_iter().chain(delta).find_map(|name| {
        let mut found = text.split(name).zip(text.match_indices(name));
        let (_, (at, _)) = found.find(|(before, _)| before.ends_with('"'))?;
        let value = text.get(at + name.len()..)?.strip_prefix('"')?;
        let value = value.trim_start().strip_prefix(':')?;
        let mut values = serde_json::Deserializer::from_str(value).into_iter::<String>();
        values.next()?.ok()
    })
}

/// Returns true for a frame that produced no event.
fn is_silent(step: &TraceStep) -> bool {
    matches!(step.raw, Some(Raw::Frame { .. })) && step.made.is_empty() && argument_piece(step).is_none()
}

/// Returns true if two steps in a row are deltas of the same text.
fn is_run(before: &TraceStep, step: &TraceStep) -> bool {
    let delta = delta_of(step);
    before.turn == step.turn && delta.is_some() && delta_of(before) == delta
}

/// Returns the text that the deltas of some steps make.
fn joined<'a>(steps: impl Iterator<Item = &'a TraceStep>) -> String {
    let mut text = String::new();
    for step in steps {
        text.push_str(&argument_piece(step).unwrap_or_default());
        for entry in &step.made {
            match &entry.event {
                Event::ContentDelta { delta, .. } | Event::ThinkingDelta { delta } => text.push_str(delta),
                Event::ToolCallArguments { arguments, .. } => text.push_str(arguments.as_str().unwrap_or_default()),
                _ => {}
            }
        }
    }
    text
}

/// Returns what the filter looks at, in small letters: name, document, text, and what was received.
fn searched(run: StepRun, ring: &Ring) -> String {
    let mut text = joined(run.steps(ring));
    for step in run.steps(ring) {
        let made = step.made.iter().map(|it| match &it.event {
            Event::Notice(notice) => format!("{}: {}", notice.code, notice.message),
            event => record::parts(event).0,
        });
        let document = document_of(step).map(|it| it.to_string()).unwrap_or_default();
        let raw = raw_of(step);
        for part in [name_of(step), document, raw].into_iter().chain(made) {
            text.push('\n');
            text.push_str(&part);
        }
    }
    text.to_lowercase()
}

fn size_of(step: &TraceStep) -> usize {
    match &step.raw {
        Some(Raw::Frame { bytes, .. } | Raw::Body { bytes, .. }) => *bytes,
        Some(Raw::Request(it)) => it.bytes,
        None => 0,
    }
}

/// A row of the list.
fn line(ring: &Ring, run: StepRun, columns: usize) -> Vec<Span> {
    let Some(step) = ring.get(run.first) else {
        return Vec::new();
    };
    let gap = before(ring, run.first).map_or(0, |it| step.at_ms.saturating_sub(it.at_ms));
    let gap = if gap == 0 {
        String::new()
    } else {
        format!("+{}", figure::duration(gap))
    };
    let document = document_of(step).map(|it| format!(" {it}")).unwrap_or_default();
    let size: usize = run.steps(ring).map(size_of).sum();
    let size = if size == 0 {
        String::new()
    } else {
        format!("  {}", figure::bytes(size as u64))
    };
    let mut spans = vec![Span::new(format!("{}  ", width::pad_start(&gap, 9)), Role::Faint)];
    // The word stands in the step; here there is room for a sign.
    let repairs = run.steps(ring).filter_map(repaired).max();
    spans.extend(repairs.map(|it| Span::new("! ", severity_role(it)).bold()));
    let role = if matches!(step.raw, Some(Raw::Request(_))) {
        Role::Accent
    } else {
        Role::Text
    };
    spans.push(Span::new(visible_line(&name_of(step)), role));
    spans.push(Span::new(visible_line(&document), Role::Dim));
    if !run.is_one() {
        spans.push(Span::new(
            Sanitized::from(format!(" ×{}", run.last + 1 - run.first)),
            Role::Dim,
        ));
    }
    spans.push(Span::new(Sanitized::from(size), Role::Faint));
    if delta_of(step).is_some() {
        // Only its beginning has room.
        let beginning: String = joined(run.steps(ring).take(columns)).chars().take(columns).collect();
        spans.push(Span::new(visible_line(&format!("  {beginning}")), Role::Dim));
    }
    width::cut_spans(&spans, columns)
}

fn severity_role(severity: Severity) -> Role {
    if severity == Severity::Error {
        Role::Error
    } else {
        Role::Waiting
    }
}

/// The step before another one, if it is still in the ring.
fn before(ring: &Ring, number: u64) -> Option<&TraceStep> {
    ring.get(number.saturating_sub(1)).filter(|it| it.number < number)
}

/// The name of a step in the list.
fn name_of(step: &TraceStep) -> String {
    match &step.raw {
        Some(Raw::Request(it)) => {
            let path = it.url.splitn(4, '/').nth(3).unwrap_or_default();
            format!("→ {} /{path}", it.method)
        }
        Some(Raw::Frame { name: Some(name), .. }) => name.clone(),
        Some(Raw::Frame { name: None, text, .. }) => type_of(text).unwrap_or_else(|| "data".to_owned()),
        Some(Raw::Body { .. }) => "body".to_owned(),
        None => step
            .made
            .first()
            .map_or_else(|| "event".to_owned(), |it| record::parts(&it.event).0),
    }
}

/// The name of an event in dialect B.
fn type_of(text: &str) -> Option<String> {
    let data = text.lines().find_map(|it| it.strip_prefix("data: "))?;
    if data == "[DONE]" {
        return Some(data.to_owned());
    }
    // The data may be cut, so that it is JSON no more.
    let (_, rest) = data.split_once("\"type\"")?;
    let word = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    word.split('"').next().map(str::to_owned)
}

/// The document that the step is about.
fn document_of(step: &TraceStep) -> Option<DocumentId> {
    step.made.iter().find_map(|it| match &it.event {
        Event::Notice(notice) => notice.document.clone(),
        event => event.document().cloned(),
    })
}

/// The highest severity among the repairs of a step; `None` for a step without repairs.
fn repaired(step: &TraceStep) -> Option<Severity> {
    let notices = step.made.iter().filter_map(|it| match &it.event {
        Event::Notice(notice) => Some(notice.severity),
        _ => None,
    });
    notices.max()
}

fn is_repaired(step: &TraceStep) -> bool {
    repaired(step).is_some()
}

/// The next step with a property, or the one before.
fn find(ring: &Ring, from: u64, forward: bool, has: impl Fn(&TraceStep) -> bool) -> Option<u64> {
    let steps: &VecDeque<TraceStep> = &ring.steps;
    let found = if forward {
        steps.iter().find(|it| it.number > from && has(it))
    } else {
        steps.iter().rev().find(|it| it.number < from && has(it))
    };
    found.map(|it| it.number)
}

/// The next step about the same document, or the one before.
fn same(ring: &Ring, from: u64, forward: bool) -> Option<u64> {
    let here = ring.get(from)?;
    let (turn, id) = (here.turn, document_of(here)?);
    find(ring, from, forward, |it| {
        it.turn == turn && document_of(it).as_ref() == Some(&id)
    })
}

fn chosen_step(ring: &Ring, run: StepRun) -> Option<ChosenStep> {
    // A run is dated by its last step.
    let step = ring.get(run.last)?.clone();
    let first = ring.steps.iter().find(|it| it.turn == step.turn);
    Some(ChosenStep {
        before_ms: before(ring, run.first)
            .zip(ring.get(run.first))
            .map(|(before, first)| first.at_ms.saturating_sub(before.at_ms)),
        since_ms: first.map_or(0, |it| step.at_ms.saturating_sub(it.at_ms)),
        run: (!run.is_one()).then(|| {
            let bytes = run.steps(ring).map(size_of).sum();
            (run.last + 1 - run.first, joined(run.steps(ring)), bytes)
        }),
        step,
    })
}

/// The raw text of a step; for an event of our own, its wire format.
fn raw_of(step: &TraceStep) -> String {
    match &step.raw {
        Some(Raw::Frame { text, .. } | Raw::Body { text, .. }) => text.clone(),
        Some(Raw::Request(it)) => it
            .body
            .clone()
            .unwrap_or_else(|| t!("inspector-body-too-large").to_owned()),
        None => {
            let lines = step.made.iter().map(|it| {
                let (name, data) = record::parts(&it.event);
                format!("event: {name}\ndata: {data}\n")
            });
            lines.collect()
        }
    }
}

/// The chosen step in full, as wrapped lines: no more than [`MOST_ROWS`].
fn step_lines(chosen: &ChosenStep, transcript: &Transcript, columns: usize) -> Vec<StyledLine> {
    let step = &chosen.step;
    let mut rows: Vec<StyledLine> = Vec::new();
    let mut add = |text: Sanitized, role: Role| {
        for line in text.split('\n') {
            if rows.len() < MOST_ROWS {
                rows.extend(wrap_hard(&[Span::new(Sanitized::new(line), role)], columns, &[], &[]));
            }
        }
    };
    let (number, clock) = (figure::grouped(step.number), clock(step.at_ms));
    let since = figure::duration(chosen.since_ms);
    let since = since.as_str();
    let when = match chosen.before_ms.map(figure::duration) {
        Some(gap) => {
            let gap = gap.as_str();
            t!(
                "inspector-when-after",
                step = number,
                clock = clock,
                gap = gap,
                since = since
            )
        }
        None => t!("inspector-when", step = number, clock = clock, since = since),
    };
    let when = [Span::new(Sanitized::new(&when), Role::Dim)];
    let raw = chosen.run.as_ref().map_or_else(|| raw_of(step), |it| it.1.clone());
    let what = match &step.raw {
        _ if let Some((count, _, bytes)) = &chosen.run => {
            t!(
                "inspector-run",
                count = *count,
                size = figure::bytes(*bytes as u64).as_str()
            )
        }
        Some(Raw::Request(it)) => format!(
            "{} {}, {}",
            it.method,
            visible_line(&it.url),
            figure::bytes(it.bytes as u64)
        ),
        Some(Raw::Frame { bytes, .. }) => t!("inspector-came", size = figure::bytes(*bytes as u64).as_str()),
        Some(Raw::Body { bytes, .. }) => t!("inspector-came-whole", size = figure::bytes(*bytes as u64).as_str()),
        None => t!("inspector-made-here").to_owned(),
    };
    add(Sanitized::from(what), Role::Strong);
    let beginning = raw.get(..raw.floor_char_boundary(4 * TEXT_BYTES)).unwrap_or_default();
    add(visible(beginning.trim_end()), Role::Text);
    if beginning.len() < raw.len() {
        let left = (raw.len() - beginning.len()) as u64;
        let more = t!("inspector-more", size = figure::bytes(left).as_str());
        add(Sanitized::new(&more), Role::Faint);
    }
    add(Sanitized::from(String::new()), Role::Text);
    if step.made.is_empty() && !matches!(step.raw, Some(Raw::Request(_))) {
        add(Sanitized::literal(t!("inspector-made-nothing")), Role::Dim);
    }
    for entry in &step.made {
        if let Event::Notice(notice) = &entry.event {
            let text = format!("! {}: {}", visible_line(&notice.code), visible(&notice.message));
            add(Sanitized::from(text), severity_role(notice.severity));
        } else if step.raw.is_some() && chosen.run.is_none() {
            add(visible_line(&format!("→ {}", record::parts(&entry.event).0)), Role::Dim);
        }
    }
    let exchange = transcript.exchanges.iter().find(|it| it.turn == step.turn);
    let found = document_of(step).and_then(|id| exchange?.response.get(&id).map(|it| (id, it)));
    if let Some((_, document)) = found {
        add(Sanitized::from(String::new()), Role::Text);
        let (kind, id) = (document.kind.as_str(), document.id.to_string());
        let state = if document.is_open() { "open" } else { "ended" };
        let head = if document.is_incomplete() {
            t!("inspector-document-incomplete", kind = kind, id = id, state = state)
        } else {
            t!("inspector-document", kind = kind, id = id, state = state)
        };
        add(visible_line(&head), Role::Strong);
        for (text, role) in document_lines(document) {
            add(text, role);
        }
    }
    let mut whole = wrap(&when, columns, &[], &[]);
    whole.append(&mut rows);
    whole
}

/// A document as it is now: the beginning of each member, and the end of its text.
fn document_lines(document: &Document) -> Vec<(Sanitized, Role)> {
    let mut lines = Vec::new();
    for (name, value) in &document.metadata {
        let mut text = String::new();
        write(value, &mut text);
        lines.push((visible_line(&format!("{name}: {text}")), Role::Dim));
    }
    let content = document.text();
    let from = content.ceil_char_boundary(content.len().saturating_sub(TEXT_BYTES));
    if from > 0 {
        lines.push((
            Sanitized::new(&t!("inspector-before", size = figure::bytes(from as u64).as_str())),
            Role::Faint,
        ));
    }
    lines.push((visible(content.get(from..).unwrap_or_default()), Role::Text));
    lines
}

/// Writes the beginning of a value's JSON, of whatever size.
fn write(value: &Value, out: &mut String) {
    if out.len() >= MEMBER_BYTES {
        if !out.ends_with('…') {
            out.push('…');
        }
        return;
    }
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
        Value::String(text) => {
            let cut = text.get(..text.floor_char_boundary(MEMBER_BYTES)).unwrap_or_default();
            out.push_str(&Value::from(cut).to_string());
            if cut.len() < text.len() {
                out.push('…');
            }
        }
        Value::Array(list) => {
            out.push('[');
            for (at, it) in list.iter().enumerate().take(MEMBER_BYTES) {
                if at > 0 {
                    out.push_str(", ");
                }
                write(it, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (at, (name, it)) in members.iter().enumerate().take(MEMBER_BYTES) {
                if at > 0 {
                    out.push_str(", ");
                }
                out.push_str(name);
                out.push_str(": ");
                write(it, out);
            }
            out.push('}');
        }
    }
}

/// The time of day in UTC, to the millisecond.
fn clock(at_ms: u64) -> String {
    let (seconds, ms) = (at_ms / 1000 % 86_400, at_ms % 1000);
    format!(
        "{:02}:{:02}:{:02}.{ms:03} UTC",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[cfg(test)]
mod tests;
