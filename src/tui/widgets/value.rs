//! JSON values for readers: texts as text, lists as lines, members as `name: value`, everything else as JSON. Long values
//! show head and tail; the middle is not read.

use std::{io, ops::Range};

use serde_json::{Map, Value};

use super::heading::sign;
use crate::{
    t,
    text::{Role, Sanitized, Span, StyledLine, wrap::wrap},
};

const HEAD: usize = 80;
const TAIL: usize = 40;
/// A line without end is no line.
const LINE_BYTES: usize = 4000;
const JSON_BYTES: usize = 16_000;
/// Deeper than this is JSON.
const DEPTH: usize = 2;

/// The indent of each row, and the columns of rows.
#[derive(Clone, Copy)]
pub(super) struct ValueFrame<'a> {
    pub columns: usize,
    pub indent: &'a [Span],
    pub role: Role,
}

/// The rows of a value; none for null.
pub(super) fn rows(value: &Value, frame: ValueFrame<'_>) -> Vec<StyledLine> {
    let mut rows = Vec::new();
    add(value, frame, 0, &mut rows);
    rows
}

/// Members as `name: value` lines.
pub(super) fn member_rows(members: &Map<String, Value>, frame: ValueFrame<'_>) -> Vec<StyledLine> {
    let mut rows = Vec::new();
    add_members(members, frame, 0, &mut rows);
    rows
}

/// A text of many lines, its middle left out when it is long.
pub(super) fn text_rows(text: &str, frame: ValueFrame<'_>) -> Vec<StyledLine> {
    let mut rows = Vec::new();
    add_text(text, frame, &mut rows);
    rows
}

/// A value as JSON, its end left out when it is long.
pub(super) fn json_rows(value: &impl serde::Serialize, frame: ValueFrame<'_>) -> Vec<StyledLine> {
    let mut head = TextStart::default();
    // The only error that it can have is that there is no more room.
    let is_whole = serde_json::to_writer_pretty(&mut head, value).is_ok();
    let mut rows = text_rows(&String::from_utf8_lossy(&head.0), frame);
    if !is_whole {
        rows.push(note(t!("value-more"), frame));
    }
    rows
}

/// A scalar in one line; `None` for lists, objects and texts of several lines.
pub(super) fn short(value: &Value) -> Option<Sanitized> {
    match value {
        Value::Null => Some(Sanitized::literal("null")),
        Value::Bool(it) => Some(Sanitized::literal(if *it { "true" } else { "false" })),
        Value::Number(it) => Some(Sanitized::from(it.to_string())),
        Value::String(text) => {
            let text = text.trim_end_matches(['\n', '\r']);
            (text.len() <= LINE_BYTES && !text.contains(['\n', '\r'])).then(|| Sanitized::line(text))
        }
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// The first `head` and the last `tail` of `count` things, and how many are between: none if that would save nothing.
pub(super) fn ends(count: usize, head: usize, tail: usize) -> (Range<usize>, usize, Range<usize>) {
    if count <= head + tail + 1 {
        (0..count, 0, count..count)
    } else {
        (0..head, count - head - tail, count - tail..count)
    }
}

fn add(value: &Value, frame: ValueFrame<'_>, depth: usize, rows: &mut Vec<StyledLine>) {
    match value {
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) => rows.extend(wrapped(&short(value).unwrap_or_default(), frame)),
        Value::String(text) => add_text(text, frame, rows),
        Value::Array(items) => add_items(items, frame, depth, rows),
        Value::Object(members) => add_members(members, frame, depth, rows),
    }
}

fn add_text(text: &str, frame: ValueFrame<'_>, rows: &mut Vec<StyledLine>) {
    let text = text.trim_end_matches(['\n', '\r']);
    if text.is_empty() {
        return;
    }
    let count = text.matches('\n').count() + 1;
    let (head, hidden, tail) = ends(count, HEAD, TAIL);
    for line in text.split('\n').take(head.len()) {
        rows.extend(wrapped(&bounded(line), frame));
    }
    if hidden > 0 {
        rows.push(note(&format!("… {}", t!("count-lines", count = hidden)), frame));
    }
    let mut last: Vec<&str> = text.rsplit('\n').take(tail.len()).collect();
    last.reverse();
    for line in last {
        rows.extend(wrapped(&bounded(line), frame));
    }
}

fn add_items(items: &[Value], frame: ValueFrame<'_>, depth: usize, rows: &mut Vec<StyledLine>) {
    let (head, hidden, tail) = ends(items.len(), HEAD, TAIL);
    for (at, item) in items.iter().enumerate() {
        if at == head.end && hidden > 0 {
            rows.push(note(&format!("… {}", t!("count-items", count = hidden)), frame));
        }
        if !head.contains(&at) && !tail.contains(&at) {
            continue;
        }
        match item {
            Value::Object(members) => match place(members) {
                Some(line) => rows.extend(wrap_line(&line, frame)),
                None => add_item(item, frame, depth, rows),
            },
            Value::Array(_) => add_item(item, frame, depth, rows),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                let text = short(item).unwrap_or_else(|| bounded(item.as_str().unwrap_or_default()));
                rows.extend(wrap_line(
                    &[sign("• ", Role::Faint), Span::new(text, frame.role)],
                    frame,
                ));
            }
        }
    }
}

fn add_members(members: &Map<String, Value>, frame: ValueFrame<'_>, depth: usize, rows: &mut Vec<StyledLine>) {
    let (head, hidden, tail) = ends(members.len(), HEAD, TAIL);
    for (at, (name, value)) in members.iter().enumerate() {
        if at == head.end && hidden > 0 {
            rows.push(note(&format!("… {}", t!("count-members", count = hidden)), frame));
        }
        if !head.contains(&at) && !tail.contains(&at) {
            continue;
        }
        let name = Span::new(format!("{}: ", bounded(name)), Role::Dim);
        if let Some(text) = short(value) {
            rows.extend(wrap_line(&[name, Span::new(text, frame.role)], frame));
        } else {
            rows.extend(wrap_line(&[name], frame));
            add_nested(value, frame, depth, rows);
        }
    }
}

/// An item of several rows, the first of them behind its bullet.
fn add_item(value: &Value, frame: ValueFrame<'_>, depth: usize, rows: &mut Vec<StyledLine>) {
    let first = rows.len();
    add_nested(value, frame, depth, rows);
    let indent = rows.get_mut(first).and_then(|it| it.spans.get_mut(frame.indent.len()));
    if let Some(indent) = indent.filter(|it| it.text == "  ") {
        *indent = sign("• ", Role::Faint);
    }
}

/// Adds the rows of a nested value, indented by two columns.
fn add_nested(value: &Value, frame: ValueFrame<'_>, depth: usize, rows: &mut Vec<StyledLine>) {
    let indent: Vec<Span> = frame.indent.iter().cloned().chain([sign("  ", Role::Text)]).collect();
    let inner = ValueFrame {
        indent: &indent,
        ..frame
    };
    if depth < DEPTH || value.is_string() {
        add(value, inner, depth + 1, rows);
    } else {
        rows.extend(json_rows(value, inner));
    }
}

/// A hit in a file or on the web in one line: `src/cart.rs:21  pub fn total`, `Title  https://…`.
fn place(members: &Map<String, Value>) -> Option<Vec<Span>> {
    let text = |name: &str| members.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
    let mut line = Vec::new();
    if let Some(path) = text("filePath").or_else(|| text("path")) {
        line.push(Span::new(bounded(path), Role::Link));
        let number = |name: &str| members.get(name).and_then(Value::as_u64);
        match (number("line").or_else(|| number("startLine")), number("endLine")) {
            (Some(first), Some(last)) if last > first => line.push(Span::new(format!(":{first}–{last}"), Role::Dim)),
            (Some(first), _) => line.push(Span::new(format!(":{first}"), Role::Dim)),
            (None, _) => {}
        }
        if let Some(hit) = text("text").or_else(|| text("message")) {
            line.push(Span::new(format!("  {}", super::heading::first_line(hit)), Role::Text));
        }
        return Some(line);
    }
    let address = text("url")?;
    if let Some(title) = text("title") {
        line.push(Span::new(format!("{}  ", bounded(title)), Role::Text));
    }
    line.push(Span::new(bounded(address), Role::Link));
    Some(line)
}

fn bounded(line: &str) -> Sanitized {
    match line.get(..line.floor_char_boundary(LINE_BYTES)) {
        Some(head) if head.len() < line.len() => Sanitized::from(format!("{}…", Sanitized::line(head))),
        Some(_) | None => Sanitized::line(line),
    }
}

fn wrapped(text: &Sanitized, frame: ValueFrame<'_>) -> Vec<StyledLine> {
    wrap(
        &[Span::new(text.clone(), frame.role)],
        frame.columns,
        frame.indent,
        frame.indent,
    )
}

/// A line whose continuation stands two columns to the right.
fn wrap_line(spans: &[Span], frame: ValueFrame<'_>) -> Vec<StyledLine> {
    let rest: Vec<Span> = frame.indent.iter().cloned().chain([sign("  ", Role::Text)]).collect();
    wrap(spans, frame.columns, frame.indent, &rest)
}

fn note(text: &str, frame: ValueFrame<'_>) -> StyledLine {
    let mut rows = wrap(&[Span::new(text, Role::Dim)], frame.columns, frame.indent, frame.indent);
    rows.truncate(1);
    rows.pop().unwrap_or_default()
}

/// The first bytes of what is written.
#[derive(Default)]
struct TextStart(Vec<u8>);

impl io::Write for TextStart {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = JSON_BYTES.saturating_sub(self.0.len());
        let taken = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        self.0.extend_from_slice(taken);
        if taken.len() < bytes.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
