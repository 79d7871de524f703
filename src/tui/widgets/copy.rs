//! The text of a document for the clipboard: whole, without gutters and wrapping.

use super::DocumentKind as _;
use crate::{
    protocol::{Document, document::with_view},
    text::Sanitized,
};

/// Returns the whole document as text.
pub fn copy_text(document: &Document) -> Sanitized {
    with_view!(document, it => it.copy_text(document))
}

/// Returns the whole document as Markdown that reads alike elsewhere.
pub fn markdown(document: &Document) -> String {
    with_view!(document, it => it.markdown(document))
}

/// Returns only the code of a document, for pasting it elsewhere. `None` if there is none.
pub fn code_only(document: &Document) -> Option<Sanitized> {
    with_view!(document, it => it.code()).filter(|it| !it.is_empty())
}

/// Joins the parts that are not empty.
pub(super) fn joined(parts: &[&str], separator: &str) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|it| !it.is_empty()).collect();
    parts.join(separator)
}

/// Returns a block of code in a fence that is longer than any in it.
pub(super) fn fenced(language: &str, code: &str) -> String {
    let code = Sanitized::new(code);
    let longest = code.lines().map(|it| {
        let line = it.trim_start();
        line.len() - line.trim_start_matches('`').len()
    });
    let fence = "`".repeat((longest.max().unwrap_or_default() + 1).max(3));
    format!(
        "{fence}{}\n{}\n{fence}",
        Sanitized::line(language),
        code.trim_end_matches('\n')
    )
}

/// Returns the code between fences, with an empty line between two blocks. `None` if there is none.
pub(super) fn fences(source: &str) -> Option<Sanitized> {
    let mut code = String::new();
    let mut open: Option<&str> = None;
    for line in source.split_inclusive('\n') {
        let start = line.trim();
        let length = start.len() - start.trim_start_matches(['`', '~']).len();
        let fence = start.get(..length).filter(|it| it.len() >= 3);
        match (open, fence) {
            (None, Some(fence)) => {
                if !code.is_empty() {
                    code.push('\n');
                }
                open = Some(fence);
            }
            (Some(begun), Some(fence)) if fence.starts_with(begun) && start.len() == fence.len() => open = None,
            (Some(_), _) => code.push_str(line),
            (None, None) => {}
        }
    }
    (!code.is_empty()).then(|| Sanitized::from(code))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::closed;
    use super::*;

    fn check(cases: Vec<(&str, Document, &str)>, copy: impl Fn(&Document) -> String) {
        for (name, document, text) in cases {
            assert_eq!(copy(&document), text, "{name}");
        }
    }

    fn edit() -> Document {
        closed(
            "file_edit",
            Some("b\n"),
            json!({
                "filePath": "a.rs", "operation": "edit", "diff": { "oldString": "a\n", "newString": "b\n", "startLine": 3 },
            }),
        )
    }

    fn command() -> Document {
        closed(
            "terminal_command",
            None,
            json!({ "command": "ls \\\n -l", "output": "\u{1b}[1ma\u{1b}[0m\r\nb\n", "exitCode": 0 }),
        )
    }

    #[test]
    fn whole_documents() {
        let call = |result: Value| {
            closed(
                "tool_call",
                None,
                json!({
                    "toolName": "grep", "arguments": { "pattern": "x" }, "result": { "status": "success", "data": result },
                }),
            )
        };
        let cases = vec![
            (
                "Markdown stays Markdown",
                closed("text", Some("**a**\n\n- b"), json!({})),
                "**a**\n\n- b",
            ),
            (
                "escape sequences go",
                closed("text", Some("a\u{1b}[2J"), json!({})),
                "a",
            ),
            (
                "a citation is its code",
                closed("code_reference", Some("a\nb"), json!({ "filePath": "x" })),
                "a\nb",
            ),
            ("code", closed("code_block", Some("\ta\n"), json!({})), "\ta\n"),
            (
                "an edit is a patch",
                edit(),
                "--- a/a.rs\n+++ b/a.rs\n@@ -3,1 +3,1 @@\n-a\n+b\n",
            ),
            (
                "a new file is its text",
                closed(
                    "file_edit",
                    Some("a\n"),
                    json!({ "filePath": "x", "operation": "create" }),
                ),
                "a\n",
            ),
            (
                "a deletion is its path",
                closed("file_edit", None, json!({ "filePath": "x", "operation": "delete" })),
                "x",
            ),
            ("a call and its text", call(json!("1:x\n2:x")), "grep \"x\"\n1:x\n2:x"),
            ("a call and its list", call(json!(["a"])), "grep \"x\"\n[\n  \"a\"\n]"),
            ("a command and what it printed", command(), "$ ls \\\n -l\na\nb\n"),
            (
                "a plan",
                closed(
                    "plan",
                    Some("Body.\n"),
                    json!({ "title": "T", "overview": "O.", "todos": ["one", { "content": "two", "status": "completed" }] }),
                ),
                "# T\n\nO.\n\n☐ one\n☑ two\n\nBody.\n",
            ),
            (
                "an error",
                closed(
                    "error",
                    Some("No."),
                    json!({ "errorCode": "X", "source": "llm", "details": "why" }),
                ),
                "No.\nX\nllm\nwhy",
            ),
            (
                "what nobody knows",
                closed("chart", Some("c"), json!({ "a": 1 })),
                "c\n{\n  \"a\": 1\n}",
            ),
        ];
        check(cases, |it| copy_text(it).into_string());
    }

    #[test]
    fn code_alone() {
        let text = "Do this:\n\n```rust\nfn a() {}\n```\n\nor\n\n~~~~\n```\ninner\n```\n~~~~\n";
        let cases = vec![
            (
                "what stands between fences",
                closed("text", Some(text), json!({})),
                "fn a() {}\n\n```\ninner\n```\n",
            ),
            (
                "a fence that was never closed",
                closed("text", Some("```\na"), json!({})),
                "a",
            ),
            ("the new text of an edit", edit(), "b\n"),
            ("the command", command(), "ls \\\n -l"),
            ("prose has none", closed("text", Some("words"), json!({})), "nothing"),
            ("an error has none", closed("error", Some("No."), json!({})), "nothing"),
        ];
        check(cases, |it| {
            code_only(it).map_or_else(|| "nothing".to_owned(), Sanitized::into_string)
        });
    }
}
