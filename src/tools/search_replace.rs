//! `search_replace`: one text of a file for another, or several one after the other.

use serde_json::{Map, Value, json};

use super::{
    arguments, cursor,
    edit::{
        file,
        replace::{Edit, Mismatch, Rung, replace},
    },
    tool::{Class, Context, Fault, Input, OldForm, Proposal, Tool, names, schema},
};
use crate::{
    protocol::{CallSubject, NotOffered},
    sandbox::Refused,
};

/// The description that a model is shown.
const ABOUT: &str = "\
    Replace a text in a file by another one. Read the file first, and copy `old_string` from it letter by letter, \
    without the line numbers and with the indentation. It must stand in the file once: take in lines around it \
    until it does, or set `replace_all` to change every place. Nothing is changed where it is not found.";

/// The tool `search_replace`.
pub fn tool() -> Tool {
    Tool {
        aliases: names(["StrReplace", "str_replace", "Edit", "MultiEdit"]),
        about: ABOUT.into(),
        schema: schema(
            json!({
                "file_path": { "type": "string" },
                "old_string": { "type": "string", "description": "Exact text, unique in the file" },
                "new_string": { "type": "string" },
                "replace_all": { "type": "boolean" }
            }),
            &["file_path", "old_string", "new_string"],
        ),
        synonyms: &[
            ("file_path", arguments::FILE),
            ("old_string", OLD),
            ("new_string", NEW),
            ("replace_all", ALL),
        ],
        word: "edit".into(),
        subject: CallSubject::File,
        rule: Some(("Write", &["edit", "multiedit"])),
        is_basic: true,
        old_form: Some(OldForm { fold, kept: &[EDITS] }),
        cursor: Some(cursor::EDIT),
        withheld: |settings, _, _| (settings.agent.edit_style == "sketch").then_some(NotOffered::EditStyle),
        examples: &[
            r#"{ "file_path": "a.txt", "old_string": "two", "new_string": "2" }"#,
            r#"{ "file_path": "new.txt", "old_string": "", "new_string": "new\n" }"#,
            r#"{ "path": "a.txt", "old_str": "two", "new_str": "2", "replace_all": "true" }"#,
            r#"{ "file_path": "a.txt", "edits": [{ "old_string": "one", "new_string": "1" }] }"#,
            r#"{ "target_file": "a.txt", "instructions": "i", "code_edit": "one\nTWO\nthree\n" }"#,
        ],
        ..Tool::new("search_replace", Class::Writes, file::work(propose))
    }
}

const OLD: &[&str] = &["old_string", "oldString", "old_str", "search", "old_text", "oldText"];
const NEW: &[&str] = &["new_string", "newString", "new_str", "replace", "new_text", "newText"];
const ALL: &[&str] = &["replace_all", "replaceAll"];

/// A list of edits, applied one after the other.
pub const EDITS: &str = "edits";

/// `edits: [{ old_string, new_string, replace_all }]`, with or without a first edit beside it.
pub fn fold(given: &mut Map<String, Value>) {
    let list = match given.get(EDITS) {
        Some(Value::Array(_)) => None,
        Some(Value::String(text)) => serde_json::from_str(text).ok().filter(Value::is_array),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => return,
    };
    if let Some(list) = list {
        given.insert(EDITS.to_owned(), list);
    }
    for names in [OLD, NEW] {
        if !names.iter().any(|it| given.contains_key(*it)) {
            given.insert(names[0].to_owned(), Value::String(String::new()));
        }
    }
}

fn propose(input: &Input, context: &Context) -> Result<Proposal, Fault> {
    let target = file::located(input, "file_path", context)?;
    let edits = edits(input)?;
    let Some(opened) = file::find(&target, context)? else {
        return match edits.as_slice() {
            [edit] if edit.old.is_empty() => Ok(file::proposal(file::created(target, &edit.new), "")),
            _ => Err(Refused::Missing(target.shown).into()),
        };
    };
    context.seen.check(&opened.file, &opened.bytes)?;
    let mut text = opened.text.text.clone();
    let mut note = String::new();
    for (index, edit) in edits.iter().enumerate() {
        let which = if edits.len() > 1 {
            format!("edit {} of {}: ", index + 1, edits.len())
        } else {
            String::new()
        };
        let done = replace(&text, edit).map_err(|it| refused(&target.shown, &which, &it))?;
        if done.rung != Rung::Exact && note.is_empty() {
            note = format!(" `old_string` was found {}.", done.rung);
        }
        if done.count > 1 {
            note.push_str(&format!(" {} places were changed.", done.count));
        }
        text = done.text;
    }
    Ok(file::proposal(file::edited(&opened, &text, context)?, &note))
}

fn edits(input: &Input) -> Result<Vec<Edit>, Fault> {
    let own = Edit {
        old: input.text("old_string").unwrap_or_default().to_owned(),
        new: input.text("new_string").unwrap_or_default().to_owned(),
        is_all: input.flag("replace_all"),
    };
    let Some(list) = input.0.get(EDITS).and_then(Value::as_array) else {
        return Ok(vec![own]);
    };
    let mut edits = Vec::new();
    if !(own.old.is_empty() && own.new.is_empty()) {
        edits.push(own);
    }
    for (at, item) in list.iter().enumerate() {
        let member = |names: &[&str]| names.iter().find_map(|it| item.get(*it));
        let text = |names: &[&str]| {
            let text = member(names).and_then(Value::as_str);
            text.map(str::to_owned).ok_or_else(|| {
                let message = format!("edit {} of `edits` has no text `{}`", at + 1, names[0]);
                Fault::arguments(message)
            })
        };
        edits.push(Edit {
            old: text(OLD)?,
            new: text(NEW)?,
            is_all: input.flag("replace_all") || member(ALL).and_then(arguments::truth).unwrap_or_default(),
        });
    }
    if edits.is_empty() {
        return Err(Fault::arguments("`edits` is empty"));
    }
    Ok(edits)
}

/// The error for the model if its text could not be replaced. `which` names the edit where there are several.
pub fn refused(shown: &str, which: &str, mismatch: &Mismatch) -> Fault {
    match mismatch {
        Mismatch::Empty => Fault::arguments(format!("{which}`old_string` is empty, and `{shown}` is not"))
            .hint("To add text, replace a line by itself and the new text; to write the whole file, use `write`."),
        Mismatch::Same => Fault::arguments(format!(
            "{which}`old_string` and `new_string` come to the same: nothing would change in `{shown}`"
        )),
        Mismatch::Absent { tried, near } => {
            let tried: Vec<String> = tried.iter().map(Rung::to_string).collect();
            let message = format!(
                "{which}`old_string` was not found in `{shown}`; it was looked for {}",
                tried.join(", ")
            );
            let fault = Fault::new("EDIT_NO_MATCH", message);
            match near {
                Some(near) => fault.hint(format!(
                    "What comes nearest is here; copy `old_string` from it without the numbers, or read the file again:\n{}",
                    file::listed(&near.lines, near.first).trim_end()
                )),
                None => fault.hint("Nothing in the file is like it. Read the file again, or look for it with `grep`."),
            }
        }
        Mismatch::Many { count, lines, rung } => {
            let places: Vec<String> = lines.iter().map(usize::to_string).collect();
            let more = if *count > lines.len() { " and more" } else { "" };
            let message = format!(
                "{which}`old_string` occurs {count} times in `{shown}`, at lines {}{more}; it was looked for {rung}",
                places.join(", ")
            );
            Fault::new("EDIT_AMBIGUOUS", message)
                .hint("Take in lines around the one that is meant, or set `replace_all` to change every place.")
        }
    }
}
