use std::cell::RefCell;

use serde_json::{Map, Value, json};

use super::{
    file_edit::joins,
    testing::{NOW, closed, look, open, opened, paint, picture},
    *,
};
use crate::protocol::Event;

/// Counts how often colours are asked for, which is once in each layout of code.
#[derive(Default)]
struct Asked(RefCell<Vec<u64>>);

impl Colours for Asked {
    fn code(&self, block: u64, _language: &str, _source: &str, _closed: bool) -> Arc<Vec<CodeLine>> {
        self.0.borrow_mut().push(block);
        Arc::default()
    }
}

#[test]
fn of_an_enormous_document_a_part_is_laid_out_and_all_of_it_copied() {
    let look = RenderContext {
        fold: Fold::Full,
        ..look(80)
    };
    let kinds = [
        ("text", json!({})),
        ("text", json!({ "format": "plain" })),
        ("code_block", json!({ "language": "rust" })),
        ("file_edit", json!({ "filePath": "a.rs", "operation": "create" })),
        ("plan", json!({ "title": "t" })),
    ];
    for (kind, metadata) in kinds {
        for unit in ["a\n\n", "|a|b|\n|-|-|\n", "word "] {
            let content = unit.repeat((2 << 20) / unit.len());
            let mut response = opened(kind, Some(""), metadata.clone());
            let id = response.documents[0].id.clone();
            let mut sheet = DocumentState::default();
            let mut half = "";
            for piece in [content.split_at(1 << 19).0, content.split_at(1 << 19).1] {
                let (document, delta) = (id.clone(), piece.to_owned());
                response.apply(&Event::ContentDelta { document, delta }, NOW);
                sheet.lay_out(&response.documents[0], &look);
                half = piece;
            }
            let count = sheet.rows.len();
            assert!(count < 3 * SHOWN_LINES, "{kind} {unit:?}: {count} rows");
            let last = paint(&sheet, 80);
            let last = last.lines().last().unwrap_or_default();
            assert!(last.contains("more; y copies everything"), "{kind} {unit:?}: {last:?}");
            // More of what is not shown costs no row.
            let (document, delta) = (id.clone(), half.to_owned());
            response.apply(&Event::ContentDelta { document, delta }, NOW);
            sheet.lay_out(&response.documents[0], &look);
            assert_eq!(sheet.rows.len(), count, "{kind} {unit:?}");
            let copied = copy_text(&response.documents[0]).len();
            assert!(copied >= content.len() + half.len() - 2, "{kind} {unit:?}: {copied}");
        }
    }
}

fn documents() -> Vec<(&'static str, Document)> {
    vec![
        ("text", closed("text", Some("words"), json!({}))),
        (
            "code_reference",
            closed(
                "code_reference",
                Some("a\n"),
                json!({ "filePath": "a.rs", "startLine": 1 }),
            ),
        ),
        (
            "code_block",
            closed("code_block", Some("a\n"), json!({ "language": "rust" })),
        ),
        (
            "file_edit",
            closed(
                "file_edit",
                Some("a\n"),
                json!({ "filePath": "a.rs", "operation": "create" }),
            ),
        ),
        (
            "tool_call",
            closed("tool_call", None, json!({ "toolName": "grep", "result": "x" })),
        ),
        (
            "running tool_call",
            open("tool_call", None, json!({ "toolName": "grep" })),
        ),
        (
            "terminal_command",
            closed("terminal_command", None, json!({ "command": "ls", "exitCode": 0 })),
        ),
        (
            "running terminal_command",
            open("terminal_command", None, json!({ "command": "ls" })),
        ),
        (
            "plan",
            closed("plan", Some("body"), json!({ "title": "Plan", "todos": ["a"] })),
        ),
        (
            "clarification",
            closed(
                "clarification",
                Some("?"),
                json!({ "questions": [{ "text": "a", "options": ["b"] }] }),
            ),
        ),
        (
            "error",
            closed("error", Some("failed"), json!({ "errorCode": "INTERNAL" })),
        ),
        (
            "todo_update",
            closed(
                "todo_update",
                None,
                json!({ "todos": [{ "id": "a", "status": "completed" }] }),
            ),
        ),
        ("mind_map", closed("mind_map", Some("x"), json!({}))),
    ]
}

#[test]
fn a_document_is_laid_out_again_only_for_what_it_shows() {
    let todos = Todos {
        version: 5,
        ..Todos::default()
    };
    let form = Form::new("doc_001".into());
    let other_form = Form::new("doc_002".into());
    let base = RenderContext {
        newest: false,
        superseded: false,
        waits: false,
        ..look(60)
    };
    let changes: [(&str, RenderContext<'_>, &[&str]); 9] = [
        ("nothing", base, &[]),
        (
            "a later second",
            RenderContext {
                now_ms: NOW + 1000,
                ..base
            },
            &["running tool_call", "running terminal_command"],
        ),
        (
            "the same second",
            RenderContext {
                now_ms: NOW + 1,
                ..base
            },
            &[],
        ),
        (
            "the reader arrives",
            RenderContext { selected: true, ..base },
            &["plan"],
        ),
        (
            "the mode is read-only",
            RenderContext {
                read_only: true,
                ..base
            },
            &["file_edit", "terminal_command", "running terminal_command"],
        ),
        (
            "the live list changes",
            RenderContext { todos: &todos, ..base },
            &["todo_update"],
        ),
        (
            "it is the newest",
            RenderContext { newest: true, ..base },
            &["plan", "error"],
        ),
        (
            "the file says something else",
            RenderContext {
                cited: Cited::Lines("b"),
                ..base
            },
            &["code_reference"],
        ),
        (
            "a form of its own",
            RenderContext {
                form: Some(&form),
                ..base
            },
            &["clarification"],
        ),
    ];
    for (name, document) in documents() {
        for (what, change, concerned) in &changes {
            let mut sheet = DocumentState::default();
            sheet.lay_out(&document, &base);
            let before = sheet.key;
            let changed = sheet.lay_out(&document, change);
            assert_eq!(sheet.key != before, concerned.contains(&name), "{what}: {name}");
            assert!(changed.is_none() || concerned.contains(&name), "{what}: {name}");
        }
        let mut sheet = DocumentState::default();
        sheet.lay_out(&document, &base);
        assert_eq!(
            sheet.lay_out(
                &document,
                &RenderContext {
                    form: Some(&other_form),
                    ..base
                }
            ),
            None,
            "{name}"
        );
    }
}

#[test]
fn what_is_settled_asks_for_no_colours() {
    let block = closed("code_block", Some("fn a() {}\n"), json!({ "language": "rust" }));
    let asked = Asked::default();
    let look = RenderContext {
        colours: &asked,
        ..look(60)
    };
    let mut sheet = DocumentState::default();
    assert_eq!(sheet.lay_out(&block, &look), Some(0));
    for _ in 0..10 {
        assert_eq!(sheet.lay_out(&block, &look), None);
    }
    assert_eq!(asked.0.borrow().len(), 1);
    // Colours that are still missing are asked for when some may have come.
    sheet.lay_out(
        &block,
        &RenderContext {
            colours_version: 1,
            ..look
        },
    );
    assert_eq!(asked.0.borrow().len(), 2);
}

#[test]
fn blocks_are_named_by_turn_and_document() {
    let asked = Asked::default();
    let block = closed("code_block", Some("x\n"), json!({ "language": "rust" }));
    for turn in [7, 7, 8] {
        DocumentState::default().lay_out(
            &block,
            &RenderContext {
                colours: &asked,
                turn: Turn(turn),
                ..look(60)
            },
        );
    }
    let names = asked.0.into_inner();
    assert_eq!(names[0], names[1]);
    assert_ne!(names[0], names[2]);
}

fn prose(at: usize) -> String {
    match at % 40 {
        39 => "end of it.\n\n".to_owned(),
        _ => "word ".to_owned(),
    }
}

fn code(at: usize) -> String {
    match at % 5 {
        4 => "value);\n".to_owned(),
        _ => "call(".to_owned(),
    }
}

fn line(at: usize) -> String {
    format!("line {at}\n")
}

#[test]
fn what_grows_costs_what_is_open() {
    // How many rows each piece may lay out: an open paragraph and what may join it, an open line, lines that a
    // program may still write over, head and tail of an output.
    type Case = (&'static str, Value, Fold, usize, fn(usize) -> String, usize);
    let cases: [Case; 6] = [
        ("text", json!({}), Fold::Usual, 5000, prose, 8),
        ("code_block", json!({}), Fold::Usual, 5000, code, 2),
        (
            "code_reference",
            json!({ "filePath": "a.rs" }),
            Fold::Usual,
            5000,
            code,
            2,
        ),
        ("plan", json!({ "title": "x" }), Fold::Usual, 2000, prose, 8),
        (
            "terminal_command",
            json!({ "command": "x" }),
            Fold::Full,
            1000,
            line,
            66,
        ),
        (
            "terminal_command",
            json!({ "command": "x" }),
            Fold::Usual,
            1000,
            line,
            10,
        ),
    ];
    for (kind, metadata, fold, pieces, piece, most) in cases {
        let mut response = opened(kind, None, metadata);
        let look = RenderContext { fold, ..look(80) };
        let mut sheet = DocumentState::default();
        let mut laid = 0;
        for at in 0..pieces {
            let document = "doc_001".into();
            let event = match kind {
                "terminal_command" => Event::MetadataDelta {
                    document,
                    metadata: Map::new(),
                    append: vec![("output".to_owned(), piece(at))],
                },
                _ => Event::ContentDelta {
                    document,
                    delta: piece(at),
                },
            };
            response.apply(&event, 0);
            if let Some(first) = sheet.lay_out(&response.documents[0], &look) {
                laid += sheet.rows.len() - first;
            }
        }
        assert!(
            laid <= pieces * most,
            "{kind} {fold:?}: {laid} rows laid for {pieces} pieces"
        );
    }
}

#[test]
fn the_look_of_what_runs_has_a_clock() {
    for (name, document) in documents() {
        assert_eq!(needs_clock(&document), name.starts_with("running"), "{name}");
    }
}

#[test]
fn hunks_of_one_call_and_file_share_a_header() {
    let hunk = |call: Value, path: &str| {
        closed(
            "file_edit",
            None,
            json!({
                "filePath": path, "toolCallId": call, "diff": { "oldString": "a", "newString": "b", "startLine": 3 },
            }),
        )
    };
    let first = hunk(json!("call_1"), "a.rs");
    let lines = ContextLines::default();
    for (name, second, joined) in [
        ("the same call and file", hunk(json!("call_1"), "a.rs"), true),
        ("another file", hunk(json!("call_1"), "b.rs"), false),
        ("another call", hunk(json!("call_2"), "a.rs"), false),
        ("no call named", hunk(Value::Null, "a.rs"), false),
        ("no edit", closed("text", Some("x"), json!({})), false),
    ] {
        assert_eq!(joins(&first, &second, lines).is_some(), joined, "{name}");
    }
    let later = picture(
        &first,
        &RenderContext {
            joined: true,
            ..look(60)
        },
    );
    assert!(later.starts_with("± @ line 3 "), "{later}");
}

#[test]
fn hooks_of_a_call_stand_below_it() {
    let run = |effect: &str, message: &str| {
        json!({ "hook": ".cursor/hooks.json preToolUse", "command": "x", "exitCode": 0, "duration_ms": 12,
                "effect": effect, "message": message })
    };
    let call = closed(
        "tool_call",
        None,
        json!({ "toolName": "read_file", "toolCallId": "1", "arguments": { "target_file": "a.rs" },
                "result": { "status": "error", "data": "no" },
                "hooks": [run("denied", "not \u{1b}[31mthis file"), run("", "")] }),
    );
    let shown = |fold, width| {
        let context = RenderContext { fold, ..look(width) };
        let rows = picture(&call, &context);
        rows.lines()
            .filter(|it| it.contains("hook") || it.contains("file"))
            .map(|it| it.trim().to_owned())
            .collect::<Vec<_>>()
    };
    let denied = "hook .cursor/hooks.json preToolUse (12 ms): denied: not this file";
    assert!(
        shown(Fold::Folded, 80).iter().all(|it| !it.contains("hook")),
        "{:?}",
        shown(Fold::Folded, 80)
    );
    let usual = shown(Fold::Usual, 80);
    assert!(
        usual.iter().any(|it| it == denied) && !usual.iter().any(|it| it.contains("exit code")),
        "{usual:?}"
    );
    let full = shown(Fold::Full, 80);
    assert!(full.iter().any(|it| it.ends_with("(12 ms): exit code 0")), "{full:?}");
    // Laid out again for another width and another fold, they are there once.
    let mut state = DocumentState::default();
    for (fold, width) in [
        (Fold::Usual, 80),
        (Fold::Full, 40),
        (Fold::Usual, 40),
        (Fold::Usual, 80),
    ] {
        state.lay_out(&call, &RenderContext { fold, ..look(width) });
    }
    let text: String = state
        .rows
        .iter()
        .flat_map(|it| &it.spans)
        .map(|it| it.text.as_str())
        .collect();
    assert_eq!(text.matches("denied").count(), 1, "{text}");
}
