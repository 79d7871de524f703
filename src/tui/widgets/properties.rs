//! What holds for every document at every width: no row is too wide, growing gives the same picture as laying out at
//! once, nothing panics.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{
    Cited, DocumentState, Fold, Form, RenderContext, code_only, copy_text, summary,
    testing::{look, members, too_wide},
};
use crate::{
    protocol::{Document, DocumentStart, Event, Kind, Response, document::normalise},
    text::{CodeLine, Colours, highlight::code_lines},
};

/// Text that wraps, stands wide, joins, hides and breaks rules.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z]{1,12}",
        2 => Just(" ".to_owned()),
        1 => Just("\n".to_owned()),
        1 => proptest::sample::select(vec![
            "漢字かな", "👨‍👩‍👧‍👦", "שלום עולם", "مرحبا", "\t", "\x1b[31m", "\x1b[2J", "\r", "\u{202e}", "e\u{301}", "**", "`", "```\n", "# ", "- ", "|",
            "> ", "src/cart.rs:21", "https://example.org/a/very/long/path", "─", "\u{200b}", "    ", "\r\n", "❤\u{fe0f}",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..30).prop_map(|it| it.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((name(), inner), 0..4).prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

/// Names that looks ask for, so that they meet values of any type.
fn name() -> impl Strategy<Value = String> {
    proptest::sample::select(vec![
        "toolName",
        "arguments",
        "result",
        "data",
        "status",
        "command",
        "output",
        "exitCode",
        "state",
        "permissions",
        "title",
        "overview",
        "todos",
        "id",
        "content",
        "dependencies",
        "questions",
        "options",
        "label",
        "kind",
        "subject",
        "outcome",
        "answers",
        "filePath",
        "newFilePath",
        "operation",
        "diff",
        "oldString",
        "newString",
        "startLine",
        "endLine",
        "language",
        "purpose",
        "errorCode",
        "source",
        "details",
        "format",
        "applied",
        "hunk",
        "matches",
        "text",
        "path",
        "pattern",
        "offset",
        "limit",
        "progress",
        "url",
        "description",
        "x",
    ])
    .prop_map(str::to_owned)
}

fn metadata() -> impl Strategy<Value = Value> {
    let todo = (
        text(),
        proptest::sample::select(vec!["pending", "in_progress", "completed", "cancelled", "odd"]),
    )
        .prop_map(
            |(content, status)| json!({ "id": content, "content": content, "status": status, "dependencies": ["a"] }),
        );
    let question = (text(), proptest::collection::vec(text(), 0..12), any::<bool>()).prop_map(
        |(text, options, many)| json!({ "id": text, "text": text, "options": options, "allowMultiple": many }),
    );
    prop_oneof![
        2 => proptest::collection::vec((name(), value()), 0..8).prop_map(|it| Value::Object(it.into_iter().collect())),
        1 => (text(), text(), any::<u32>()).prop_map(|(old, new, line)| {
            json!({ "filePath": new, "diff": { "oldString": old, "newString": new, "startLine": line } })
        }),
        1 => (text(), text(), text(), any::<u32>()).prop_map(|(old, new, around, line)| {
            let around = format!("{around}\n");
            json!({ "filePath": new, "diff": {
                "oldString": old, "newString": new, "startLine": line, "contextBefore": around, "contextAfter": around,
            } })
        }),
        1 => (text(), proptest::option::of(any::<i32>()), proptest::sample::select(vec!["running", "completed", "killed"]))
            .prop_map(|(text, code, state)| json!({ "command": text, "exitCode": code, "state": state, "output": text })),
        1 => (text(), proptest::collection::vec(todo, 0..5)).prop_map(|(title, todos)| {
            json!({ "title": title, "overview": title, "todos": todos })
        }),
        1 => (proptest::collection::vec(question, 1..4), proptest::sample::select(vec!["question", "approval"]))
            .prop_map(|(questions, kind)| json!({ "questions": questions, "kind": kind })),
        1 => (text(), value(), any::<bool>()).prop_map(|(text, value, failed)| {
            let status = if failed { "error" } else { "success" };
            json!({ "toolName": text, "arguments": { "path": text, "x": value }, "result": { "status": status, "data": value } })
        }),
        1 => (text(), text()).prop_map(|(command, reach)| json!({
            "kind": "approval",
            "subject": {
                "type": "terminal_command",
                "metadata": { "command": command, "permissions": ["network"], "wouldReach": [reach] },
            },
            "questions": [{ "id": "q", "text": "Allow?", "options": [
                { "id": "allow_once", "label": "x" }, { "id": "allow_always", "label": "y", "description": reach }] }],
        })),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    let mut kinds: Vec<Kind> = Kind::KNOWN.iter().map(|it| Kind::parse(it)).collect();
    kinds.push(Kind::parse("mind_map"));
    proptest::sample::select(kinds)
}

/// Colours at once, without a thread.
struct AtOnce;

impl Colours for AtOnce {
    fn code(&self, _block: u64, language: &str, source: &str, closed: bool) -> Arc<Vec<CodeLine>> {
        let complete = if closed {
            source.len()
        } else {
            source.rfind('\n').map_or(0, |it| it + 1)
        };
        Arc::new(code_lines(language, source.get(..complete).unwrap_or_default()))
    }
}

fn begin(kind: &Kind, metadata: Value) -> Response {
    let mut response = Response::default();
    let start = DocumentStart {
        id: "doc_001".into(),
        kind: kind.clone(),
        sequence: None,
        content: None,
        metadata: normalise(kind, members(metadata)),
    };
    response.apply(&Event::DocumentStart(start), 0);
    response
}

fn end(response: &mut Response) {
    let end = Event::DocumentEnd {
        document: "doc_001".into(),
        final_content: None,
        metadata: Map::new(),
    };
    response.apply(&end, 0);
}

fn folds() -> impl Strategy<Value = Fold> {
    proptest::sample::select(vec![Fold::Folded, Fold::Usual, Fold::Full])
}

fn laid(document: &Document, look: &RenderContext<'_>) -> DocumentState {
    let mut sheet = DocumentState::default();
    sheet.lay_out(document, look);
    sheet
}

fn plain(sheet: &DocumentState) -> Vec<String> {
    sheet.rows.iter().map(|it| it.plain().trim_end().to_owned()).collect()
}

#[test]
fn a_line_of_ten_thousand_columns_is_laid_out_at_any_width() {
    for kind in Kind::KNOWN {
        let kind = Kind::parse(kind);
        for unit in ["x", "word ", "漢", "\t"] {
            let text = unit.repeat(10_000);
            let metadata = json!({ "output": text, "message": text, "command": text, "title": text, "filePath": text });
            let mut response = begin(&kind, metadata);
            let delta = text.clone();
            response.apply(
                &Event::ContentDelta {
                    document: "doc_001".into(),
                    delta,
                },
                0,
            );
            end(&mut response);
            for width in [1, 40, 300] {
                let sheet = laid(&response.documents[0], &look(width));
                assert_eq!(too_wide(&sheet, width), None, "{kind:?} of {unit:?} at {width}");
            }
        }
    }
}

#[test]
fn facts_beside_nothing_are_no_wider_than_the_row() {
    let permission = "one\ntwo ".repeat(8);
    for metadata in [
        json!({ "command": "", "permissions": [permission] }),
        json!({ "command": "\n", "permissions": [permission], "exitCode": 0 }),
        json!({ "command": "", "state": permission }),
        json!({ "command": "ls", "state": "running", "permissions": [permission] }),
    ] {
        let mut response = begin(&Kind::TerminalCommand, metadata.clone());
        end(&mut response);
        for (width, fold) in (1..100).flat_map(|it| [(it, Fold::Folded), (it, Fold::Usual), (it, Fold::Full)]) {
            let sheet = laid(&response.documents[0], &RenderContext { fold, ..look(width) });
            assert_eq!(too_wide(&sheet, width), None, "{metadata} at {width}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn no_row_is_too_wide(
        kind in kind(), metadata in metadata(), content in text(), width in 1usize..=300, fold in folds(),
        is_open in any::<bool>(), flags in any::<(bool, bool, bool, bool)>(),
    ) {
        let mut response = begin(&kind, metadata);
        response.apply(&Event::ContentDelta { document: "doc_001".into(), delta: content }, 0);
        if !is_open {
            end(&mut response);
        }
        let form = Form::new("doc_001".into());
        let (selected, read_only, joined, newest) = flags;
        let look = RenderContext {
            fold, selected, read_only, joined, newest, colours: &AtOnce, form: selected.then_some(&form),
            root: Some("/home/kim/shop"), cited: Cited::Lines("x"), ..look(width)
        };
        let document = &response.documents[0];
        for width in [width, width % 12 + 1] {
            let look = RenderContext { width, ..look };
            let sheet = laid(document, &look);
            prop_assert_eq!(too_wide(&sheet, width), None, "{}", width);
            let mut spans = sheet.rows.iter().flat_map(|it| it.spans.iter().chain(&it.facts));
            prop_assert!(!spans.any(|it| it.text.chars().any(char::is_control)), "a break or tab in a row");
            prop_assert!(!sheet.rows.is_empty() || kind == Kind::Text);
            prop_assert!(fold != Fold::Folded || sheet.rows.len() == 1);
        }
        summary(document);
        copy_text(document);
        code_only(document);
    }

    /// Deltas, a change of width and of fold on the way, and the end: what a fresh sheet would show, and every row
    /// that changed is reported.
    #[test]
    fn growing_shows_what_laying_out_at_once_shows(
        kind in kind(), metadata in metadata(), deltas in proptest::collection::vec(text(), 0..12),
        widths in (1usize..90, 1usize..90), folds in (folds(), folds()), turn in 0usize..12,
    ) {
        let mut response = begin(&kind, metadata);
        let mut sheet = DocumentState::default();
        for (at, delta) in deltas.iter().enumerate() {
            let id = "doc_001".into();
            let event = if kind == Kind::TerminalCommand {
                Event::MetadataDelta { document: id, metadata: Map::new(), append: vec![("output".to_owned(), delta.clone())] }
            } else {
                Event::ContentDelta { document: id, delta: delta.clone() }
            };
            response.apply(&event, 0);
            if at + 1 == deltas.len() {
                end(&mut response);
            }
            let (width, fold) = if at < turn { (widths.0, folds.0) } else { (widths.1, folds.1) };
            let look = RenderContext { fold, colours: &AtOnce, ..look(width) };
            let before = sheet.rows.clone();
            let changed = sheet.lay_out(&response.documents[0], &look).unwrap_or(usize::MAX);
            let kept = sheet.rows.iter().zip(&before).take_while(|(new, old)| new == old).count();
            let same = kept == sheet.rows.len() && kept == before.len();
            prop_assert!(same || kept >= changed.min(sheet.rows.len()), "row {kept} changed, {changed} was said");
            prop_assert_eq!(sheet.lay_out(&response.documents[0], &look), None);
            let is_settled = !response.documents[0].is_open() || !matches!(kind, Kind::Text | Kind::Plan);
            if is_settled {
                let fresh = laid(&response.documents[0], &look);
                if matches!(kind, Kind::Text | Kind::Plan) {
                    // Markdown may keep blanks at the end of a row that it laid while it was open.
                    prop_assert_eq!(plain(&sheet), plain(&fresh));
                } else {
                    prop_assert_eq!(&sheet.rows, &fresh.rows);
                }
                prop_assert_eq!(&sheet.glyph, &fresh.glyph);
                prop_assert_eq!(sheet.is_line, fresh.is_line);
            }
        }
    }
}
