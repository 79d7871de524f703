//! `write`: a whole file.

use serde_json::json;

use super::{
    arguments,
    cursor::{CursorCall, PATH},
    edit::{
        file,
        text::{plain, settle},
    },
    tool::{Class, Context, Fault, Input, Proposal, Tool, names, schema},
};
use crate::protocol::CallSubject;

/// The description that a model is shown.
const ABOUT: &str = "\
    Write a whole file; folders on the way are made. A file that is there must have been read before, and everything \
    in it is replaced: to change a part of a file, use the tools that edit.";

/// The tool `write`.
pub fn tool() -> Tool {
    Tool {
        aliases: names(["Write", "write_file", "create_file"]),
        about: ABOUT.into(),
        schema: schema(
            json!({ "file_path": { "type": "string" }, "contents": { "type": "string" } }),
            &["file_path", "contents"],
        ),
        synonyms: &[
            ("file_path", arguments::FILE),
            ("contents", &["content", "text", "file_text", "code"]),
        ],
        word: "write".into(),
        subject: CallSubject::File,
        is_basic: true,
        cursor: Some(CursorCall {
            has_id: true,
            subject: Some(("path", PATH)),
            ..CursorCall::new(
                "writeToolCall",
                &[("path", PATH), ("fileText", &["contents", "content", "file_text"])],
            )
        }),
        examples: &[
            r#"{ "file_path": "a.txt", "contents": "gone" }"#,
            r#"{ "path": "deep/new.txt", "content": "new" }"#,
            r#"{ "file_path": "{outside}/trace", "contents": "outside" }"#,
        ],
        ..Tool::new("write", Class::Writes, file::work(propose))
    }
}

fn propose(input: &Input, context: &Context) -> Result<Proposal, Fault> {
    let target = file::located(input, "file_path", context)?;
    let contents = input.text("contents").unwrap_or_default();
    let Some(opened) = file::find(&target, context)? else {
        return Ok(file::proposal(file::created(target, contents), ""));
    };
    let new = settle(&opened.text.text, &plain(contents));
    Ok(file::proposal(file::edited(&opened, &new, context)?, ""))
}
