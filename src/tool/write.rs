//! `write`: a whole file.

use serde_json::json;

use super::{
    Class, Context, Fault, Input, Proposal, Tool, Work, arguments,
    edit::{
        file,
        text::{plain, settle},
    },
};
use crate::protocol::Mode;

pub const TOOL: Tool = Tool {
    name: "write",
    aliases: &["Write", "write_file", "create_file"],
    about: "Write a whole file; folders on the way are made. A file that is there must have been read before, and everything \
            in it is replaced: to change a part of a file, use the tools that edit.",
    class: Class::Writes,
    modes: &[Mode::Agent, Mode::Debug],
    schema: || {
        json!({
            "type": "object",
            "properties": { "file_path": { "type": "string" }, "contents": { "type": "string" } },
            "required": ["file_path", "contents"]
        })
    },
    synonyms: &[
        ("file_path", arguments::FILE),
        ("contents", &["content", "text", "file_text", "code"]),
    ],
    work: Work::Change(|input, context| file::away(input, context, propose)),
};

fn propose(input: &Input, context: &Context) -> Result<Proposal, Fault> {
    let target = file::located(input, "file_path", context)?;
    let contents = input.text("contents").unwrap_or_default();
    let Some(opened) = file::find(&target, context)? else {
        return Ok(file::proposal(file::created(target, contents), ""));
    };
    let new = settle(&opened.text.text, &plain(contents));
    Ok(file::proposal(file::edited(&opened, &new, context)?, ""))
}
