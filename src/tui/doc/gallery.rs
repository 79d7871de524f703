//! Every kind in every state, at three widths: pictures to be read.

use serde_json::{Value, json};

use super::{
    Fold, Form, Look, Sheet,
    testing::{closed, look, open, paint, picture},
};
use crate::{protocol::Document, text::Clean};

fn at_three_widths(document: &Document, fold: Fold) -> String {
    [40, 80, 120]
        .map(|width| format!("{width:-<width$}\n{}", picture(document, &Look { fold, ..look(width) })))
        .concat()
}

#[test]
fn dump() {
    let edit = closed(
        "file_edit",
        Some("x"),
        json!({"filePath":"src/cart.rs","operation":"edit","diff":{"oldString":"pub struct Cart {\n    pub items: Vec<Item>,\n}","newString":"pub struct Cart {\n    pub items: Vec<LineItem>,\n    pub discount: Option<Discount>,\n}","startLine":8,"endLine":10},"hunk":{"index":1,"count":2}}),
    );
    let docs: Vec<(&str, Document)> = vec![
        (
            "text",
            closed(
                "text",
                Some(
                    "The cart has **no** discount field yet. I will read the module and its callers, then change `Cart::total`.\n\n- a\n- b\n\n```rust\nfn x() {}\n```",
                ),
                json!({}),
            ),
        ),
        (
            "plain",
            closed(
                "text",
                Some(
                    "The *cart* has no discount field yet. I will read the module and its callers, then change `Cart::total`.\nx",
                ),
                json!({"format":"plain"}),
            ),
        ),
        (
            "ref",
            closed(
                "code_reference",
                Some("pub fn total(&self) -> Money {\n    self.items.iter().map(Item::price).sum()\n}"),
                json!({"filePath":"src/cart.rs","startLine":21,"endLine":23}),
            ),
        ),
        (
            "block",
            closed(
                "code_block",
                Some("pub struct Discount {\n    pub code: String,\n    pub percent: u8,\n}\n"),
                json!({"language":"rust","purpose":"example"}),
            ),
        ),
        ("edit", edit),
        (
            "create",
            closed(
                "file_edit",
                Some(&"line\n".repeat(30)),
                json!({"filePath":"src/lib.rs","operation":"create"}),
            ),
        ),
        (
            "delete",
            closed(
                "file_edit",
                None,
                json!({"filePath":"src/lib.rs","operation":"delete","applied":"rejected"}),
            ),
        ),
        (
            "rename",
            closed(
                "file_edit",
                None,
                json!({"filePath":"src/lib.rs","newFilePath":"src/library.rs","operation":"rename","applied":"failed"}),
            ),
        ),
        (
            "command",
            closed(
                "terminal_command",
                None,
                json!({"command":"cargo test cart","exitCode":0,"output":(1..20).map(|it| format!("test case_{it} ... ok\n")).collect::<String>(),"duration_ms":5310,"permissions":[]}),
            ),
        ),
        (
            "running",
            open(
                "terminal_command",
                None,
                json!({"command":"cargo run --bin migrate -- --dry-run","output":"    Finished `dev` profile in 2.31s\napplying 0007_discounts … ok\n","state":"running"}),
            ),
        ),
        (
            "plan",
            closed(
                "plan",
                Some("# Combinable discount codes\n\n## Files\n- `src/cart.rs` change\n- `src/discount.rs` change"),
                json!({"title":"Combinable discount codes","overview":"Carts accept any number of codes; they add up to at most 100 %. Codes live in Redis.","todos":[{"id":"a","content":"Store codes in Redis behind a CodeStore trait","status":"completed"},{"id":"b","content":"Let Cart hold a list of discounts","status":"completed"},{"id":"c","content":"Add them up in Cart::total, capped at 100 %","status":"in_progress"},{"id":"d","content":"Reject expired codes with a clear error","dependencies":["a"]},{"id":"e","content":"dropped","status":"cancelled"}]}),
            ),
        ),
        (
            "todo",
            closed(
                "todo_update",
                None,
                json!({"todos":[{"id":"b","content":"Let Cart hold a list of discounts","status":"completed"},{"id":"c","content":"Add them up in Cart::total","status":"in_progress"}]}),
            ),
        ),
        (
            "answered",
            closed(
                "clarification",
                Some("Two things before I finish the plan:"),
                json!({"outcome":"answered","questions":[{"id":"q1","text":"May several codes be combined?","options":[{"id":"one","label":"Only one"},{"id":"many","label":"Any number, they add up"}]},{"id":"q2","text":"Where are the codes kept?","options":["Database","File"]}],"answers":[{"questionId":"q1","selectedOptionIds":["many"]},{"questionId":"q2","freeText":"Redis"}]}),
            ),
        ),
        (
            "waiting",
            closed(
                "clarification",
                Some("One question"),
                json!({"questions":[{"id":"q1","text":"What happens to carts that already hold one code?","options":[{"id":"a","label":"Keep it as the first of the list","description":"recommended"},{"id":"b","label":"Drop it and tell the customer"}]}]}),
            ),
        ),
        (
            "several",
            closed(
                "clarification",
                Some(""),
                json!({"questions":[{"id":"q1","text":"May several codes be combined?","options":["One","Many"]},{"id":"q2","text":"Which stores?","allowMultiple":true,"options":["Redis","Postgres"]},{"id":"q3","text":"Anything else?"}]}),
            ),
        ),
        (
            "approval",
            closed(
                "clarification",
                Some("Run this command?"),
                json!({"kind":"approval","subject":{"type":"terminal_command","metadata":{"command":"git push origin main","permissions":["network","git_write"],"wouldReach":["github.com:443"],"wouldWrite":[".git/refs/remotes/origin/main"]}},"questions":[{"id":"approval","text":"Allow?","options":[{"id":"allow_once","label":"Allow once"},{"id":"allow_session","label":"s"},{"id":"allow_always","label":"Always","description":"Shell(git push origin main)  in your settings"},{"id":"reject_once","label":"Reject"}]}]}),
            ),
        ),
        (
            "error",
            closed(
                "error",
                Some("The gateway closed the stream"),
                json!({"errorCode":"STREAM_INTERRUPTED","source":"stream","details":"After 12 s and 3 documents."}),
            ),
        ),
        ("unknown", closed("mind_map", Some("root"), json!({"a":{"b":[1,2]}}))),
        (
            "call",
            closed(
                "tool_call",
                None,
                json!({"toolName":"grep","arguments":{"pattern":"fn total","path":"src","-i":true},"result":{"status":"success","data":{"matchCount":2,"matches":[{"filePath":"src/cart.rs","line":21,"text":"pub fn total(&self)"},{"filePath":"src/x.rs","line":3,"text":"fn total"}]}},"duration_ms":12}),
            ),
        ),
    ];
    for fold in [Fold::Usual, Fold::Full, Fold::Folded] {
        for (name, it) in &docs {
            eprintln!("== {name} {fold:?}");
            for width in [40, 80] {
                let form = Form::new("doc_001".into());
                let waits = ["waiting", "several", "approval"].contains(name);
                let look = Look {
                    fold,
                    selected: true,
                    newest: *name != "plan",
                    form: waits.then_some(&form),
                    ..look(width)
                };
                eprintln!("{}", picture(it, &look));
            }
        }
    }
    let _ = (
        at_three_widths as fn(&Document, Fold) -> String,
        Value::Null,
        Clean::default(),
        Sheet::default,
        paint,
    );
}
