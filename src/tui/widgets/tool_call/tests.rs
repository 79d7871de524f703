use serde_json::json;

use super::super::{
    Fold, RenderContext,
    testing::{closed, look, numbered, open, picture, pictures},
};
use super::*;
use crate::protocol::View;

#[test]
fn the_reason_of_a_failure_has_a_row_of_its_own_where_it_would_be_cut() {
    let failed = closed(
        "tool_call",
        None,
        json!({
            "toolName": "read_file", "arguments": { "target_file": "src/checkout/discounts/cart.rs" },
            "result": { "error": "no such file or directory" },
        }),
    );
    for (columns, rows) in [(100, 1), (36, 2)] {
        let shown = picture(&failed, &look(columns));
        assert!(shown.contains("no such file or directory"), "{columns}: {shown}");
        assert_eq!(shown.trim_end().lines().count(), rows, "{columns}: {shown}");
    }
}

#[test]
fn calls_are_one_line() {
    let calls = [
        closed(
            "tool_call",
            None,
            json!({
                "toolName": "read_file", "arguments": { "target_file": "src/cart.rs", "offset": 1, "limit": 80 },
                "result": "pub struct Cart {}", "duration_ms": 18,
            }),
        ),
        closed(
            "tool_call",
            None,
            json!({
                "toolName": "grep", "arguments": { "pattern": "fn total", "path": "src" },
                "result": { "status": "success", "data": { "matchCount": 3, "matches": [] } }, "duration_ms": 12,
            }),
        ),
        closed(
            "tool_call",
            None,
            json!({
                "toolName": "task", "duration_ms": 4120,
                "arguments": { "subagent_type": "explore", "description": "who calls Cart::total?", "prompt": "…" },
                "result": { "status": "success", "data": { "toolCallCount": 6, "report": "nobody" } },
            }),
        ),
        open(
            "tool_call",
            None,
            json!({
                "toolName": "codebase_search", "arguments": { "query": "where are discounts validated?" },
            }),
        ),
        closed(
            "tool_call",
            None,
            json!({
                "toolName": "Read", "arguments": { "path": "src/none.rs" }, "duration_ms": 2,
                "result": { "error": "no such file" },
            }),
        ),
        closed(
            "tool_call",
            None,
            json!({ "toolName": "github__create_issue", "arguments": { "title": "Leak" } }),
        ),
    ];
    let shown: String = calls.iter().map(|it| picture(it, &look(72))).collect();
    insta::assert_snapshot!(shown, @r#"
● read   src/cart.rs  1–80                                           18 ms
● grep   "fn total" in src                                3 matches  12 ms
● task   explore: who calls Cart::total?                    6 calls  4.1 s
◐ search where are discounts validated?                               12 s
✗ read   src/none.rs  no such file                            failed  2 ms
✗ github__create_issue  Leak                                     no result
"#);
}

#[test]
fn calls_unfold() {
    let found = closed(
        "tool_call",
        None,
        json!({
            "toolName": "grep", "duration_ms": 12, "truncated": true,
            "arguments": { "pattern": "fn total", "path": "src", "-i": true, "exclude": ["target", "dist"] },
            "result": { "status": "success", "data": { "mode": "content", "matchCount": 2, "matches": [
                { "filePath": "src/cart.rs", "line": 21, "text": "    pub fn total(&self) -> Money {" },
                { "filePath": "src/receipt.rs", "line": 8, "text": "fn total(lines: &[Line]) -> Money {" },
            ] } },
        }),
    );
    let failed = closed(
        "tool_call",
        None,
        json!({
            "toolName": "web_fetch", "arguments": { "url": "https://example.org/a" },
            "result": { "error": "the server answered 503\nafter three tries" },
        }),
    );
    let broken = closed(
        "tool_call",
        None,
        json!({ "toolName": "read_file", "arguments": "{\"target_file\": \"src/ca" }),
    );
    let odd = closed(
        "tool_call",
        None,
        json!({
            "toolName": "weather", "arguments": { "place": { "city": "Köln", "days": [1, 2] } },
            "result": { "days": [{ "high": 12, "low": 4 }], "unit": "C" }, "duration_ms": 61_000,
        }),
    );
    let running = open(
        "tool_call",
        None,
        json!({
            "toolName": "task", "arguments": { "description": "who calls Cart::total?", "subagent_type": "explore" },
            "progress": { "step": 3, "total": 10, "toolName": "codebase_search" },
        }),
    );
    let full = RenderContext {
        fold: Fold::Full,
        ..look(0)
    };
    let states = [
        ("found", &found, full),
        ("failed", &failed, full),
        ("arguments that are no JSON", &broken, full),
        ("a stranger's tool", &odd, full),
        ("running", &running, full),
    ];
    insta::assert_snapshot!(pictures(&states), @r#"
40=====================================
-- found
● grep   "fn total" in src    2 matches
  pattern: fn total
  path: src
  -i: true
  exclude:
    • target
    • dist
  │ src/cart.rs:21  pub fn total(&self)
  │   -> Money {
  │ src/receipt.rs:8  fn total(lines:
  │   &[Line]) -> Money {
-- failed
✗ fetch  https://example.org/a   failed
  url: https://example.org/a
  │ the server answered 503
  │ after three tries
-- arguments that are no JSON
✗ read   {"target_file": "s…  no result
  arguments are not valid JSON:
  {"target_file": "src/ca
-- a stranger's tool
● weather                     1 min 1 s
  place:
    city: Köln
    days:
      • 1
      • 2
  │ days:
  │   • high: 12
  │     low: 4
  │ unit: C
-- running
◐ task   explore: who calls Cart…  12 s
  description: who calls Cart::total?
  subagent_type: explore
80=======================================================================
-- found
● grep   "fn total" in src                          2 matches  cut  12 ms
  pattern: fn total
  path: src
  -i: true
  exclude:
    • target
    • dist
  │ src/cart.rs:21  pub fn total(&self) -> Money {
  │ src/receipt.rs:8  fn total(lines: &[Line]) -> Money {
-- failed
✗ fetch  https://example.org/a                                     failed
  url: https://example.org/a
  │ the server answered 503
  │ after three tries
-- arguments that are no JSON
✗ read   {"target_file": "src/ca                                no result
  arguments are not valid JSON:
  {"target_file": "src/ca
-- a stranger's tool
● weather                                                       1 min 1 s
  place:
    city: Köln
    days:
      • 1
      • 2
  │ days:
  │   • high: 12
  │     low: 4
  │ unit: C
-- running
◐ task   explore: who calls Cart::total?       step 3 of 10: search  12 s
  description: who calls Cart::total?
  subagent_type: explore
120==============================================================================================================
-- found
● grep   "fn total" in src                                                                  2 matches  cut  12 ms
  pattern: fn total
  path: src
  -i: true
  exclude:
    • target
    • dist
  │ src/cart.rs:21  pub fn total(&self) -> Money {
  │ src/receipt.rs:8  fn total(lines: &[Line]) -> Money {
-- failed
✗ fetch  https://example.org/a                                                                             failed
  url: https://example.org/a
  │ the server answered 503
  │ after three tries
-- arguments that are no JSON
✗ read   {"target_file": "src/ca                                                                        no result
  arguments are not valid JSON:
  {"target_file": "src/ca
-- a stranger's tool
● weather                                                                                               1 min 1 s
  place:
    city: Köln
    days:
      • 1
      • 2
  │ days:
  │   • high: 12
  │     low: 4
  │ unit: C
-- running
◐ task   explore: who calls Cart::total?                                               step 3 of 10: search  12 s
  description: who calls Cart::total?
  subagent_type: explore
"#);
}

#[test]
fn a_long_result_keeps_both_ends() {
    let text: String = numbered("", 1000);
    let long = closed("tool_call", None, json!({ "toolName": "read_file", "result": text }));
    let picture = picture(
        &long,
        &RenderContext {
            fold: Fold::Full,
            ..look(60)
        },
    );
    assert!(picture.contains("│ 80\n  │ … 880 lines\n  │ 961\n"), "{picture}");
    assert!(picture.ends_with("│ 1000\n"), "{picture}");
    let list: Vec<u32> = (1..=1000).collect();
    let long = closed("tool_call", None, json!({ "toolName": "x", "result": list }));
    let picture = super::super::testing::picture(
        &long,
        &RenderContext {
            fold: Fold::Full,
            ..look(60)
        },
    );
    assert!(picture.contains("│ • 80\n  │ … 880 items\n  │ • 961\n"), "{picture}");
}

#[test]
fn names_on_the_wire_have_words() {
    for (name, word) in [
        ("codebase_search", "search"),
        ("Grep", "grep"),
        ("read_file", "read"),
        ("LS", "list"),
        ("Glob", "find"),
        ("StrReplace", "edit"),
        ("run_terminal_cmd", "run"),
        ("WebFetch", "fetch"),
        ("task", "task"),
        ("github__create_issue", "github__create_issue"),
    ] {
        assert_eq!(super::word(name), word, "{name}");
    }
    let mut names: Vec<String> = crate::tools::labels().into_iter().flat_map(|it| it.names).collect();
    names.extend(
        OTHERS
            .iter()
            .flat_map(|(_, _, names)| names.iter().map(ToString::to_string)),
    );
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "a name has two words");
}

#[test]
fn the_argument_that_matters() {
    let cases = [
        ("read", json!({ "target_file": "a.rs" }), "read a.rs"),
        (
            "read",
            json!({ "path": "a.rs", "offset": 1, "limit": 80 }),
            "read a.rs  1–80",
        ),
        (
            "read",
            json!({ "file_path": "a.rs", "offset": 40 }),
            "read a.rs  from 40",
        ),
        (
            "read",
            json!({ "target_file": "a.rs", "offset": -20 }),
            "read a.rs  last 20 lines",
        ),
        (
            "read",
            json!({ "target_file": "a.rs", "offset": "5", "limit": "3" }),
            "read a.rs  5–7",
        ),
        (
            "read_file",
            json!({ "target_file": "a.rs", "start_line_one_indexed": 3, "end_line_one_indexed_inclusive": 9 }),
            "read a.rs  3–9",
        ),
        (
            "read",
            json!({ "target_file": "a.rs", "offset": 9_223_372_036_854_775_807_i64, "limit": 80 }),
            "read a.rs  9223372036854775807–9223372036854775807",
        ),
        ("grep", json!({ "pattern": "fn" }), "grep \"fn\""),
        ("grep", json!({ "pattern": "fn", "path": "." }), "grep \"fn\""),
        (
            "grep_search",
            json!({ "query": "fn", "include_pattern": "*.rs" }),
            "grep \"fn\" in *.rs",
        ),
        (
            "codebase_search",
            json!({ "query": "where?", "target_directories": ["src"] }),
            "search where?  in src",
        ),
        (
            "codebase_search",
            json!({ "query": "where?", "target_directories": [] }),
            "search where?",
        ),
        (
            "glob_file_search",
            json!({ "glob_pattern": "*.rs", "target_directory": "src" }),
            "find *.rs in src",
        ),
        ("list_dir", json!({}), "list ."),
        ("read_lints", json!({ "paths": ["a", "b"] }), "lints a b"),
        ("task", json!({ "prompt": "look\nclosely" }), "task look"),
        (
            "edit_file",
            json!({ "target_file": "a.rs", "code_edit": "x" }),
            "edit a.rs",
        ),
        ("x", json!({ "verbose": true, "n": 3 }), "x 3"),
        ("x", json!({ "zeta": "z", "query": "q" }), "x q"),
        ("x", json!({}), "x"),
    ];
    for (name, arguments, expected) in cases {
        let document = closed("tool_call", None, json!({ "toolName": name, "arguments": arguments }));
        assert_eq!(super::super::summary(&document), expected, "{name} {arguments}");
    }
}

#[test]
fn results_are_counted() {
    let cases = [
        ("grep", json!("src/a.rs:1:x\nsrc/b.rs:22:y"), "2 matches"),
        ("grep", json!("src/a.rs\n1:x\n2-context\n3:y"), "2 matches"),
        ("grep", json!({ "matchCount": 1, "matches": [] }), "1 match"),
        (
            "codebase_search",
            json!({ "chunks": [1, 2], "indexState": "ready" }),
            "2 chunks",
        ),
        (
            "glob_file_search",
            json!({ "files": ["a"], "totalFiles": 1200 }),
            "1,200 files",
        ),
        ("list_dir", json!("src/\n  a.rs\n\nCargo.toml\n"), "3 entries"),
        (
            "read_lints",
            json!({ "fileDiagnostics": [{ "diagnostics": [1] }, { "diagnostics": [2, 3] }] }),
            "3 problems",
        ),
        ("read_lints", json!({ "fileDiagnostics": [] }), "clean"),
        (
            "read_lints",
            json!({ "fileDiagnostics": [], "available": false, "failedCheckers": 2 }),
            "not checked",
        ),
        (
            "read_lints",
            json!({ "fileDiagnostics": [], "available": true, "failedCheckers": 1 }),
            "1 checker failed",
        ),
        ("web_search", json!({ "results": [{}] }), "1 result"),
        ("task", json!({ "toolCallCount": 6 }), "6 calls"),
        ("read_file", json!("a\nb"), ""),
        ("x", json!([1, 2, 3]), "3 items"),
        ("x", json!(42), "42"),
        ("x", json!({ "a": 1 }), ""),
    ];
    for (name, data, expected) in cases {
        let result = json!({ "status": "success", "data": data });
        let document = closed("tool_call", None, json!({ "toolName": name, "result": result }));
        let View::ToolCall(call) = document.view() else {
            panic!("it is a call")
        };
        assert_eq!(outcome(&call, &data), expected, "{name} {data}");
    }
}
