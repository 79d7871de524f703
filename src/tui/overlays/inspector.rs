//! The inspector: provider traffic beside the documents that it produced.
//!
//! One row for each step of the trace, the chosen one in full: bytes, time, events, repairs, and the document as it is now.
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
    /// Steps of the list in view as of the last drawing.
    height: usize,
}

/// The chosen step, copied out of the ring.
struct ChosenStep {
    step: TraceStep,
    before_ms: Option<u64>,
    since_ms: u64,
    count: u64,
    gone: u64,
}

impl Inspector {
    pub fn new(trace: Arc<Trace>) -> Self {
        Self {
            trace,
            chosen: None,
            below: 0,
            height: 1,
        }
    }

    fn number(&self, ring: &Ring) -> u64 {
        self.chosen
            .map_or(ring.count(), |it| it.clamp(ring.first(), ring.count()))
    }

    fn go(&mut self, by: isize) {
        let by = by as i64;
        self.choose(|ring, from| Some(from.saturating_add_signed(by).clamp(ring.first(), ring.count())));
    }

    /// Goes to the step that `find` returns; the newest one is followed from then on.
    fn choose(&mut self, find: impl FnOnce(&Ring, u64) -> Option<u64>) {
        let found = self.trace.read(|ring| {
            let to = find(ring, self.number(ring))?;
            Some((to, to == ring.count()))
        });
        if let Some((to, is_newest)) = found {
            self.chosen = (!is_newest).then_some(to);
            self.below = 0;
        }
    }

    fn copied(&self, what: impl FnOnce(&Ring, u64) -> Option<String>, name: &str) -> Answer {
        match self.trace.read(|ring| what(ring, self.number(ring))) {
            Some(text) => copy(text, name),
            None => Answer::Taken,
        }
    }
}

impl Overlay for Inspector {
    fn key(&mut self, event: KeyEvent, _: &Scene<'_>) -> Answer {
        let page = self.height as isize;
        match event.code {
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
                return self.copied(|ring, number| ring.get(number).map(raw_of), t!("copied-what-came"));
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

    fn wheel(&mut self, by: isize) {
        self.go(by);
    }

    fn render(&mut self, area: Rect, buf: &mut Buffer, _: &mut Links, scene: &Scene<'_>) {
        let theme = scene.theme;
        let Some(step) = self.trace.read(|ring| chosen_step(ring, self.number(ring))) else {
            let nothing = Span::new(Sanitized::literal(t!("inspector-nothing-yet")), Role::Dim);
            let rows = [title(0, 0, usize::from(area.width)), StyledLine::of([nothing])];
            frame::lines(area, buf, &rows, theme);
            return;
        };
        let head = title(step.count, step.gone, usize::from(area.width));
        let rest = frame::lines(area, buf, &[head], theme);
        let [list, details] = if usize::from(area.width) >= BESIDE {
            frame::beside(rest, usize::from(area.width) * 2 / 5, buf, Role::Faint, theme)
        } else {
            let lines = usize::from(rest.height.saturating_sub(1) / 2).max(1);
            let known = usize::try_from(step.count - step.gone).unwrap_or(lines);
            frame::below(rest, lines.min(known), buf, Role::Faint, theme)
        };
        self.height = usize::from(list.height).max(1);
        self.trace.read(|ring| {
            let first = ring.first();
            let steps = ListWidget {
                count: (ring.count() + 1 - first) as usize,
                sign: "▸ ",
                is_active: true,
                line: |at, _, columns| line(ring, first + at as u64, columns),
                theme,
            };
            let at = self.number(ring) - first;
            steps.render(list, buf, &mut ListCursor::centred(at as usize));
        });
        let rows = step_lines(&step, scene.transcript, usize::from(details.width).max(1));
        self.below = self.below.min(rows.len().saturating_sub(usize::from(details.height)));
        frame::lines(details, buf, rows.get(self.below..).unwrap_or_default(), theme);
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        vec![
            ("↑↓", t!("footer-step")),
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

fn title(count: u64, gone: u64, columns: usize) -> StyledLine {
    let said = if gone > 0 {
        let gone = figure::grouped(gone);
        t!("inspector-steps-gone", count = figure::grouped(count), gone = gone)
    } else {
        t!("inspector-steps", count = figure::grouped(count))
    };
    let spans = [
        Span::new(Sanitized::literal(t!("inspector-title")), Role::Strong).bold(),
        Span::new(Sanitized::new(&format!("   {said}")), Role::Dim),
    ];
    StyledLine::of(width::clip_spans(&spans, columns))
}

/// A row of the list.
fn line(ring: &Ring, number: u64, columns: usize) -> Vec<Span> {
    let Some(step) = ring.get(number) else {
        return Vec::new();
    };
    let gap = before(ring, number).map_or(0, |it| step.at_ms.saturating_sub(it.at_ms));
    let gap = if gap == 0 {
        String::new()
    } else {
        format!("+{}", figure::duration(gap))
    };
    let document = document_of(step).map(|it| format!(" {it}")).unwrap_or_default();
    let size = match &step.raw {
        Some(Raw::Frame { bytes, .. } | Raw::Body { bytes, .. }) => *bytes,
        Some(Raw::Request(it)) => it.bytes,
        None => 0,
    };
    let size = if size == 0 {
        String::new()
    } else {
        format!("  {}", figure::bytes(size as u64))
    };
    let mut spans = vec![Span::new(format!("{}  ", width::pad_start(&gap, 9)), Role::Faint)];
    // The word stands in the step; here there is room for a sign.
    spans.extend(repaired(step).map(|it| Span::new("! ", severity_role(it)).bold()));
    let role = if matches!(step.raw, Some(Raw::Request(_))) {
        Role::Accent
    } else {
        Role::Text
    };
    spans.push(Span::new(visible_line(&name_of(step)), role));
    spans.push(Span::new(visible_line(&document), Role::Dim));
    spans.push(Span::new(Sanitized::from(size), Role::Faint));
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

fn chosen_step(ring: &Ring, chosen: u64) -> Option<ChosenStep> {
    let step = ring.get(chosen)?.clone();
    let first = ring.steps.iter().find(|it| it.turn == step.turn);
    Some(ChosenStep {
        before_ms: before(ring, chosen).map(|it| step.at_ms.saturating_sub(it.at_ms)),
        since_ms: first.map_or(0, |it| step.at_ms.saturating_sub(it.at_ms)),
        count: ring.count(),
        gone: ring.first().saturating_sub(1),
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
    let raw = raw_of(step);
    let what = match &step.raw {
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
        } else if step.raw.is_some() {
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
