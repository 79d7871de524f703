//! `delete_file`: a file, or a folder with nothing in it.

use serde_json::json;

use super::{
    Change, arguments,
    cursor::{CursorCall, PATH, words},
    edit::{file, hunks::hunks, text::Text},
    tool::{Class, Context, Fault, Input, Proposal, Tool, names, schema},
};
use crate::{
    protocol::{CallSubject, Operation},
    sandbox::{Located, Refused},
};

/// As much as can be kept to be brought back.
const MOST_BYTES: u64 = 50 << 20;

/// The description that a model is shown.
const ABOUT: &str = "Delete a file, or a folder that is empty. The user can bring it back.";

/// The tool `delete_file`.
pub fn tool() -> Tool {
    Tool {
        aliases: names(["Delete"]),
        about: ABOUT.into(),
        schema: schema(
            json!({ "target_file": { "type": "string" }, "explanation": { "type": "string" } }),
            &["target_file"],
        ),
        synonyms: &[("target_file", arguments::FILE)],
        word: "delete".into(),
        subject: CallSubject::File,
        rule: Some(("Delete", &["delete", "delete_file", "remove"])),
        cursor: Some(CursorCall {
            has_id: true,
            subject: Some(("path", PATH)),
            result: |it| json!({ "path": it.absolute(it.arguments.text(PATH)), "message": words(it.data) }),
            ..CursorCall::new("deleteToolCall", &[("path", PATH)])
        }),
        examples: &[r#"{ "target_file": "a.txt" }"#, r#"{ "path": "empty.txt" }"#],
        ..Tool::new("delete_file", Class::Writes, file::work(propose))
    }
}

fn propose(input: &Input, context: &Context) -> Result<Proposal, Fault> {
    let target = file::located(input, "target_file", context)?;
    let written = input.text("target_file").unwrap_or_default();
    let link = context.workspace.root().join(written);
    if std::fs::symlink_metadata(&link).is_ok_and(|it| it.is_symlink()) {
        let message = format!("`{written}` is a link to `{}`, which would be deleted", target.shown);
        return Err(Fault::new("TOOL_FAILED", message)
            .hint("Name the file itself to delete it, or remove the link with a command."));
    }
    Ok(file::proposal(deleted(target, context)?, ""))
}

/// The change that takes a file away, or an empty folder.
pub fn deleted(file: Located, context: &Context) -> Result<Change, Fault> {
    let bytes = match context.workspace.read(&file, MOST_BYTES) {
        Ok(bytes) => Some(bytes),
        Err(Refused::Directory(shown)) => {
            let is_empty = std::fs::read_dir(&file.path).is_ok_and(|mut it| it.next().is_none());
            if !is_empty {
                return Err(
                    Fault::new("TOOL_FAILED", format!("`{shown}` is a directory that is not empty"))
                        .hint("Delete the files in it first, each by itself."),
                );
            }
            None
        }
        Err(refused) => return Err(refused.into()),
    };
    let text = bytes.as_deref().and_then(|it| Text::read(it).ok());
    Ok(Change {
        file,
        operation: Operation::Delete,
        to: None,
        hunks: text.map(|it| hunks(&it.text, "")).unwrap_or_default(),
        cell: None,
        old: bytes.map(Into::into),
        new: None,
    })
}
