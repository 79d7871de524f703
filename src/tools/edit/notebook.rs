//! The cells of a Jupyter notebook, changed inside of its JSON without touching anything else.
//!
//! The file is not written anew from what was read: the values that change are cut out of its text and others are put in
//! their place. So the order of keys, the indentation, numbers and escapes of everything else stay as they were, whatever
//! program wrote them.

use std::ops::Range;

use serde_json::Value;

use super::{
    replace::{Edit, Mismatch, replace},
    text::plain,
};

/// A change of a notebook. Cells count from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub cell: usize,
    /// `code`, `markdown` or `raw`.
    pub kind: CellKind,
    pub what: CellEdit,
}

/// The change of one cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellEdit {
    /// A new cell that will have this number.
    Insert {
        source: String,
    },
    Edit(Edit),
}

/// The kind of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    Code,
    Markdown,
    Raw,
}

impl CellKind {
    /// The kind of a cell in a language.
    pub fn of(language: &str) -> Self {
        match language {
            "markdown" => Self::Markdown,
            "raw" => Self::Raw,
            _ => Self::Code,
        }
    }

    /// The word in the notebook's JSON: `code`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
            Self::Raw => "raw",
        }
    }
}

/// A notebook that was changed: its text, and the source of the cell before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    pub text: String,
    pub old: String,
    pub new: String,
}

/// The reason why a notebook is not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("it is no notebook: {0}")]
    Form(String),
    #[error("it has {count} cells, counted from 0; cell {cell} does not exist")]
    Range { cell: usize, count: usize },
    #[error("cell {cell} is a {found} cell and not a {wanted} cell")]
    Kind {
        cell: usize,
        found: String,
        wanted: &'static str,
    },
    #[error("the text could not be replaced in cell {cell}")]
    Mismatch { cell: usize, mismatch: Mismatch },
}

/// `text`, a notebook of format 4, after the change. `salt` makes the id of a new cell, where cells have one.
pub fn change(text: &str, change: &Change, salt: &str) -> Result<Changed, Refusal> {
    let form = |it: &str| Refusal::Form(it.to_owned());
    let value: Value = serde_json::from_str(text).map_err(|it| Refusal::Form(it.to_string()))?;
    if value.get("nbformat").and_then(Value::as_u64) != Some(4) {
        return Err(form("its `nbformat` is not 4"));
    }
    let cells = value
        .get("cells")
        .and_then(Value::as_array)
        .ok_or_else(|| form("it has no list of `cells`"))?;
    // The last of equal names counts for both readers.
    let places = members(text, 0).ok_or_else(|| form("it is no object"))?;
    let list = places
        .iter()
        .rev()
        .find(|it| it.name == "cells")
        .ok_or_else(|| form("it has no list of `cells`"))?;
    let items = items(text, list.value.start).ok_or_else(|| form("its `cells` are no list"))?;
    if items.len() != cells.len() {
        return Err(form("its `cells` cannot be told apart"));
    }
    match &change.what {
        CellEdit::Insert { source } => {
            if change.cell > cells.len() {
                return Err(Refusal::Range {
                    cell: change.cell,
                    count: cells.len(),
                });
            }
            let source = plain(source);
            let cell = new_cell(&value, change.kind, &source, salt);
            let text = inserted(text, &list.value, &items, change.cell, &cell);
            Ok(Changed {
                text,
                old: String::new(),
                new: source,
            })
        }
        CellEdit::Edit(edit) => {
            let (Some(cell), Some(place)) = (cells.get(change.cell), items.get(change.cell)) else {
                return Err(Refusal::Range {
                    cell: change.cell,
                    count: cells.len(),
                });
            };
            edited(text, change, edit, cell, place)
        }
    }
}

fn edited(text: &str, change: &Change, edit: &Edit, cell: &Value, place: &Range<usize>) -> Result<Changed, Refusal> {
    let found = cell.get("cell_type").and_then(Value::as_str).unwrap_or_default();
    if found != change.kind.as_str() {
        return Err(Refusal::Kind {
            cell: change.cell,
            found: found.to_owned(),
            wanted: change.kind.as_str(),
        });
    }
    let form = |it: &str| Refusal::Form(format!("cell {} {it}", change.cell));
    let old = source(cell).ok_or_else(|| form("has no `source`"))?;
    let new = replace(&old, edit).map_err(|mismatch| Refusal::Mismatch {
        cell: change.cell,
        mismatch,
    })?;
    let new = new.text;
    let members = members(text, place.start).ok_or_else(|| form("is no object"))?;
    let last = |name: &str| members.iter().rev().find(|it| it.name == name);
    let place = last("source").ok_or_else(|| form("has no `source`"))?;
    let indent = indent_of(text, place.value.start);
    let step = step_of(text);
    let is_list = cell.get("source").is_some_and(Value::is_array);
    let mut cuts = vec![(
        place.value.clone(),
        written_source(&new, is_list, indent.as_deref(), step.as_deref()),
    )];
    if change.kind == CellKind::Code {
        for (name, empty) in [("outputs", "[]"), ("execution_count", "null")] {
            cuts.extend(last(name).map(|it| (it.value.clone(), empty.to_owned())));
        }
    }
    cuts.sort_by_key(|it| it.0.start);
    let mut done = String::with_capacity(text.len());
    let mut at = 0;
    for (range, value) in cuts {
        done.push_str(part(text, at..range.start));
        done.push_str(&value);
        at = range.end;
    }
    done.push_str(part(text, at..text.len()));
    Ok(Changed { text: done, old, new })
}

/// The kind and the source of a cell; `None` if there is no such cell.
pub fn source_of(text: &str, cell: usize) -> Option<(CellKind, String)> {
    let value: Value = serde_json::from_str(text).ok()?;
    let cell = value.get("cells")?.get(cell)?;
    let kind = match cell.get("cell_type")?.as_str()? {
        "code" => CellKind::Code,
        "markdown" => CellKind::Markdown,
        "raw" => CellKind::Raw,
        _ => return None,
    };
    Some((kind, source(cell)?))
}

/// The source of a cell: one text, or its lines.
fn source(cell: &Value) -> Option<String> {
    match cell.get("source")? {
        Value::String(source) => Some(source.clone()),
        Value::Array(lines) => lines.iter().map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// A new cell, its members in the order in which Jupyter writes them: name and value, the source last.
fn new_cell(notebook: &Value, kind: CellKind, source: &str, salt: &str) -> Vec<(&'static str, Part)> {
    let cells = notebook.get("cells").and_then(Value::as_array);
    let sources: Vec<&Value> = cells.into_iter().flatten().filter_map(|it| it.get("source")).collect();
    let is_list = sources.is_empty() || sources.iter().any(|it| it.is_array());
    let minor = notebook
        .get("nbformat_minor")
        .and_then(Value::as_u64)
        .unwrap_or_default();
    let code = kind == CellKind::Code;
    let mut members = vec![("cell_type", Part::Plain(written(kind.as_str())))];
    if code {
        members.push(("execution_count", Part::Plain("null".to_owned())));
    }
    if minor >= 5 {
        members.push(("id", Part::Plain(written(&fresh_id(notebook, salt)))));
    }
    members.push(("metadata", Part::Plain("{}".to_owned())));
    if code {
        members.push(("outputs", Part::Plain("[]".to_owned())));
    }
    members.push(("source", Part::Source(source.to_owned(), is_list)));
    members
}

enum Part {
    Plain(String),
    Source(String, bool),
}

/// An id that no cell has: eight letters of a hash.
fn fresh_id(notebook: &Value, salt: &str) -> String {
    let cells = notebook.get("cells").and_then(Value::as_array);
    let taken: Vec<&str> = cells
        .into_iter()
        .flatten()
        .filter_map(|it| it.get("id").and_then(Value::as_str))
        .collect();
    let mut id = String::new();
    // One more than there are ids: one of them is free.
    for round in 0..=taken.len() {
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for byte in salt.bytes().chain(round.to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        id = format!("{:08x}", (hash ^ (hash >> 32)) as u32);
        if !taken.contains(&id.as_str()) {
            break;
        }
    }
    id
}

/// The text of a notebook with a cell before the one with the number `at`.
fn inserted(
    text: &str,
    list: &Range<usize>,
    items: &[Range<usize>],
    at: usize,
    cell: &[(&'static str, Part)],
) -> String {
    let step = step_of(text);
    let outer = indent_of(text, list.start);
    let indent = match (items.first(), &step) {
        (Some(first), Some(_)) => indent_of(text, first.start),
        (None, Some(step)) => outer.as_ref().map(|it| format!("{it}{step}")),
        (_, None) => None,
    };
    let inner = indent
        .as_ref()
        .zip(step.as_ref())
        .map(|(indent, step)| format!("{indent}{step}"));
    let line = |indent: &Option<String>| indent.as_ref().map(|it| format!("\n{it}"));
    let mut new = String::from("{");
    for (index, (name, value)) in cell.iter().enumerate() {
        if index > 0 {
            new.push_str(if inner.is_some() { "," } else { ", " });
        }
        new.push_str(&line(&inner).unwrap_or_default());
        new.push_str(&format!("\"{name}\": "));
        match value {
            Part::Plain(value) => new.push_str(value),
            Part::Source(source, is_list) => {
                new.push_str(&written_source(source, *is_list, inner.as_deref(), step.as_deref()));
            }
        }
    }
    new.push_str(&line(&indent).unwrap_or_default());
    new.push('}');
    let break_here = line(&indent);
    let (at, new) = match (items.get(at), items.last()) {
        (Some(next), _) => {
            let gap = break_here.unwrap_or_else(|| " ".to_owned());
            (next.start, format!("{new},{gap}"))
        }
        (None, Some(last)) => {
            let gap = break_here.unwrap_or_else(|| " ".to_owned());
            (last.end, format!(",{gap}{new}"))
        }
        (None, None) => {
            let close = line(&outer.filter(|_| indent.is_some())).unwrap_or_default();
            let inside = format!("[{}{new}{close}]", break_here.unwrap_or_default());
            return [part(text, 0..list.start), &inside, part(text, list.end..text.len())].concat();
        }
    };
    [part(text, 0..at), &new, part(text, at..text.len())].concat()
}

/// A source as JSON: one text, or a list of its lines with a line each where the file is indented.
fn written_source(source: &str, is_list: bool, indent: Option<&str>, step: Option<&str>) -> String {
    if !is_list {
        return written(source);
    }
    let lines: Vec<String> = source.split_inclusive('\n').map(written).collect();
    if lines.is_empty() {
        return "[]".to_owned();
    }
    match indent.zip(step) {
        Some((indent, step)) => {
            let inner = format!("\n{indent}{step}");
            format!("[{inner}{}\n{indent}]", lines.join(&format!(",{inner}")))
        }
        None => format!("[{}]", lines.join(", ")),
    }
}

/// A text as JSON, as Python writes it when it keeps characters that are not ASCII.
fn written(text: &str) -> String {
    // A string always becomes one.
    serde_json::to_string(text).unwrap_or_default()
}

/// The additional indentation of a line over the one that encloses it; `None` for a file on one line.
fn step_of(text: &str) -> Option<String> {
    let first = text.split('\n').nth(1)?;
    let step = first
        .split_at(first.len() - first.trim_start_matches([' ', '\t']).len())
        .0;
    Some(step.to_owned())
}

/// The blanks at the start of the line that a place is in; `None` if anything but one member stands before it there.
fn indent_of(text: &str, at: usize) -> Option<String> {
    let before = part(text, 0..at);
    let (_, line) = before.rsplit_once('\n')?;
    Some(
        line.split_at(line.len() - line.trim_start_matches([' ', '\t']).len())
            .0
            .to_owned(),
    )
}

fn part(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or_default()
}

/// A member of an object in a text.
struct Member {
    name: String,
    value: Range<usize>,
}

/// The members of the object that begins at or behind `at`, in a text that is known to be JSON.
fn members(text: &str, at: usize) -> Option<Vec<Member>> {
    let mut scan = Scan {
        bytes: text.as_bytes(),
        at,
    };
    scan.expect(b'{')?;
    let mut members = Vec::new();
    loop {
        scan.skip();
        if scan.expect(b'}').is_some() {
            return Some(members);
        }
        let name = scan.value()?;
        scan.expect(b':')?;
        scan.skip();
        let value = scan.value()?;
        let name = serde_json::from_str(part(text, name)).ok()?;
        members.push(Member { name, value });
        scan.expect(b',');
    }
}

/// The items of the list that begins at `at`.
fn items(text: &str, at: usize) -> Option<Vec<Range<usize>>> {
    let mut scan = Scan {
        bytes: text.as_bytes(),
        at,
    };
    scan.expect(b'[')?;
    let mut items = Vec::new();
    loop {
        scan.skip();
        if scan.expect(b']').is_some() {
            return Some(items);
        }
        items.push(scan.value()?);
        scan.expect(b',');
    }
}

/// Finds where values of JSON end. It need not know whether they are right: that was checked before.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn skip(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.skip();
        (self.bytes.get(self.at) == Some(&byte)).then(|| self.at += 1)
    }

    /// The value that begins here.
    fn value(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match self.bytes.get(self.at)? {
                b'"' => self.string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                _ => self.word(),
            }
            if depth == 0 {
                return Some(start..self.at);
            }
        }
    }

    fn string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.bytes.get(self.at)? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }

    /// A number, or one of the three words.
    fn word(&mut self) {
        let is_end = |it: &u8| matches!(it, b',' | b':' | b'}' | b']' | b'"') || it.is_ascii_whitespace();
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at += rest.iter().position(is_end).unwrap_or(rest.len()).max(1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As Jupyter writes it, with numbers, escapes and members that no reader of ours would write alike.
    const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "aa",
   "metadata": {"zoom": 1.50, "tags": []},
   "source": "# Title\nText"
  },
  {
   "cell_type": "code",
   "execution_count": 7,
   "id": "bb",
   "metadata": {},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "1\u00e4 ] } \" \\\n"
     ]
    }
   ],
   "source": [
    "x = 1\n",
    "print(x)"
   ]
  }
 ],
 "metadata": {
  "big": 123456789012345678901234567890,
  "kernelspec": {"name": "python3", "display_name": "P"}
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

    fn edit(cell: usize, kind: CellKind, old: &str, new: &str) -> Change {
        let edit = Edit {
            old: old.to_owned(),
            new: new.to_owned(),
            is_all: false,
        };
        Change {
            cell,
            kind,
            what: CellEdit::Edit(edit),
        }
    }

    fn insert(cell: usize, kind: CellKind, source: &str) -> Change {
        Change {
            cell,
            kind,
            what: CellEdit::Insert {
                source: source.to_owned(),
            },
        }
    }

    #[track_caller]
    fn check(text: &str, asked: &Change, wants: &str) {
        let changed = change(text, asked, "call_1").expect("a change");
        assert_eq!(changed.text, wants);
    }

    #[test]
    fn code_loses_what_it_had_printed_and_nothing_else_changes() {
        let outputs = NOTEBOOK.split_once("\"outputs\": ").expect("outputs").1;
        let outputs = outputs.split_once(",\n   \"source\"").expect("a source").0;
        let wants = NOTEBOOK
            .replace(outputs, "[]")
            .replace("\"execution_count\": 7", "\"execution_count\": null")
            .replace("    \"x = 1\\n\",\n", "    \"x = 2\\n\",\n    \"y = 'ä'\\n\",\n");
        let asked = edit(1, CellKind::Code, "x = 1\n", "x = 2\ny = 'ä'\n");
        check(NOTEBOOK, &asked, &wants);
        let changed = change(NOTEBOOK, &asked, "").expect("a change");
        assert_eq!(
            (changed.old.as_str(), changed.new.as_str()),
            ("x = 1\nprint(x)", "x = 2\ny = 'ä'\nprint(x)")
        );
    }

    #[test]
    fn a_source_stays_what_it_was() {
        check(
            NOTEBOOK,
            &edit(0, CellKind::Markdown, "Text", "More\ntext"),
            &NOTEBOOK.replace("# Title\\nText", "# Title\\nMore\\ntext"),
        );
        // Whatever the file is indented with.
        let tabbed = |text: &str| -> String {
            let line = |line: &str| {
                let rest = line.trim_start_matches(' ');
                "\t".repeat(line.len() - rest.len()) + rest
            };
            text.split_inclusive('\n').map(line).collect()
        };
        let asked = edit(1, CellKind::Code, "print(x)", "print(\n  x)");
        let plain = change(NOTEBOOK, &asked, "").expect("a change").text;
        check(&tabbed(NOTEBOOK), &asked, &tabbed(&plain));
    }

    #[test]
    fn a_new_cell_stands_where_it_was_asked_for() {
        let id = fresh_id(&Value::Null, "call_1");
        let cell = format!(
            "  {{\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"{id}\",\n   \"metadata\": {{}},\n   \
             \"outputs\": [],\n   \"source\": [\n    \"a\\n\",\n    \"b\"\n   ]\n  }}"
        );
        let new = insert(1, CellKind::Code, "a\nb");
        check(
            NOTEBOOK,
            &new,
            &NOTEBOOK.replace("  },\n  {\n", &format!("  }},\n{cell},\n  {{\n")),
        );
        let new = insert(0, CellKind::Code, "a\r\nb");
        check(
            NOTEBOOK,
            &new,
            &NOTEBOOK.replacen("  {\n", &format!("{cell},\n  {{\n"), 1),
        );
        let new = insert(2, CellKind::Code, "a\nb");
        check(
            NOTEBOOK,
            &new,
            &NOTEBOOK.replace("  }\n ],", &format!("  }},\n{cell}\n ],")),
        );
    }

    #[test]
    fn a_notebook_may_be_empty_old_or_on_one_line() {
        check(
            "{\n \"cells\": [],\n \"nbformat\": 4,\n \"nbformat_minor\": 4\n}",
            &insert(0, CellKind::Markdown, "hi"),
            "{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n   \"metadata\": {},\n   \"source\": [\n    \"hi\"\n   ]\n  }\n ],\n \
             \"nbformat\": 4,\n \"nbformat_minor\": 4\n}",
        );
        let line = r#"{"cells":[{"cell_type":"raw","metadata":{},"source":"x"}],"nbformat":4,"nbformat_minor":2}"#;
        check(
            line,
            &edit(0, CellKind::Raw, "x", "y\nz"),
            &line.replace("\"x\"", r#""y\nz""#),
        );
        check(
            line,
            &insert(1, CellKind::Raw, "y"),
            &line.replace("}],", r#"}, {"cell_type": "raw", "metadata": {}, "source": "y"}],"#),
        );
        let bare = r#"{"cells":[],"nbformat":4}"#;
        check(
            bare,
            &insert(0, CellKind::Code, ""),
            r#"{"cells":[{"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [], "source": []}],"nbformat":4}"#,
        );
    }

    #[test]
    fn an_id_is_new() {
        let taken = fresh_id(&Value::Null, "call");
        let notebook = serde_json::json!({ "cells": [{ "id": taken }] });
        let other = fresh_id(&notebook, "call");
        assert_ne!(other, taken);
        assert_eq!(other.len(), 8);
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        let refused = |text: &str, asked: &Change| change(text, asked, "").expect_err("refused");
        let any = edit(0, CellKind::Markdown, "Text", "x");
        for text in [
            "",
            "[]",
            "{}",
            "{\"nbformat\": 3, \"cells\": []}",
            "{\"nbformat\": 4}",
            "{\"nbformat\": 4, \"cells\": {}}",
        ] {
            assert!(matches!(refused(text, &any), Refusal::Form(_)), "{text}");
        }
        for cell in [
            "1",
            "{}",
            "{\"cell_type\":\"markdown\"}",
            "{\"cell_type\":\"markdown\",\"source\":[1]}",
        ] {
            let text = format!("{{\"nbformat\":4,\"cells\":[{cell}]}}");
            assert!(
                matches!(refused(&text, &any), Refusal::Form(_) | Refusal::Kind { .. }),
                "{text}"
            );
        }
        assert_eq!(
            refused(NOTEBOOK, &edit(2, CellKind::Code, "x", "y")),
            Refusal::Range { cell: 2, count: 2 }
        );
        assert_eq!(
            refused(NOTEBOOK, &insert(3, CellKind::Code, "x")),
            Refusal::Range { cell: 3, count: 2 }
        );
        assert!(matches!(
            refused(NOTEBOOK, &edit(0, CellKind::Code, "Text", "x")),
            Refusal::Kind { .. }
        ));
        for (old, new) in [("nowhere", "x"), ("x", "y"), ("", "y")] {
            let refused = refused(NOTEBOOK, &edit(1, CellKind::Code, old, new));
            assert!(matches!(refused, Refusal::Mismatch { cell: 1, .. }), "{refused:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn what_is_cut_out_is_what_a_parser_reads(
            sources in proptest::collection::vec("[a\"\\\\{}\\[\\],: \n]{0,8}", 1..4),
            cell in 0_usize..4,
            new in "[b\"\\\\{}\n]{1,8}",
            pretty: bool,
        ) {
            let cells: Vec<Value> = sources
                .iter()
                .map(|it| serde_json::json!({ "source": it, "cell_type": "raw", "x": [{ "a\"}": "]\\" }, 1.5e3] }))
                .collect();
            let notebook = serde_json::json!({ "cells": cells, "nbformat": 4, "nbformat_minor": 5 });
            let text = if pretty { serde_json::to_string_pretty(&notebook) } else { serde_json::to_string(&notebook) };
            let changed = change(&text.expect("JSON"), &insert(cell, CellKind::Raw, &new), "salt");
            prop_assert_eq!(changed.is_ok(), cell <= sources.len());
            if let Ok(changed) = changed {
                let mut after: Value = serde_json::from_str(&changed.text).expect("JSON");
                let cells = after["cells"].as_array_mut().expect("cells");
                let one = cells.remove(cell);
                prop_assert_eq!(source(&one), Some(new));
                prop_assert_eq!(after, notebook);
            }
        }
    }
}
