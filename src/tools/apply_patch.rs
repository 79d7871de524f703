//! `apply_patch`: changes of several files in the form that some models are trained on.

use std::{collections::BTreeSet, path::PathBuf};

use serde_json::json;

use super::{
    Change, cursor, delete_file,
    edit::{
        file,
        patch::{PatchChunk, Section, apply, parse},
    },
    tool::{Class, Context, Fault, Input, Proposal, Tool, schema},
};
use crate::{
    protocol::{CallSubject, NotOffered, Operation},
    sandbox::{Located, Refused},
};

/// The description that a model is shown.
const ABOUT: &str = "\
    Change files by a patch: `*** Begin Patch`, then for each file `*** Add File: path` with lines behind `+`, \
    `*** Delete File: path`, or `*** Update File: path` (with `*** Move to: path` to rename it) and chunks, then \
    `*** End Patch`. A chunk begins with `@@`, and may name a line that stands before it, such as a function's head; \
    its lines begin with a blank (they stay), `-` (they go) or `+` (they come). Give three lines that stay around each \
    change: they must stand in the file just once. All is done or nothing. Read the files first.";

/// The tool `apply_patch`.
pub fn tool() -> Tool {
    Tool {
        about: ABOUT.into(),
        schema: schema(
            json!({ "input": { "type": "string", "description": "The whole patch" } }),
            &["input"],
        ),
        synonyms: &[("input", &["patch", "diff", "patch_text", "content"])],
        word: "edit".into(),
        subject: CallSubject::File,
        cursor: Some(cursor::EDIT),
        withheld: |_, model, _| (!knows_patches(model)).then_some(NotOffered::OtherModels),
        examples: &[
            r#"{ "patch": "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** End Patch" }"#,
            r#"{ "input": "*** Begin Patch\n*** Add File: new.txt\n+new\n*** Delete File: empty.txt\n*** End Patch" }"#,
        ],
        ..Tool::new("apply_patch", Class::Writes, file::work(propose))
    }
}

/// Returns true for models that were trained on the envelope of `apply_patch`.
fn knows_patches(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let known = ["gpt-4.1", "gpt-5", "gpt-6", "codex", "o3", "o4"];
    known.iter().any(|it| name.starts_with(it))
}

fn propose(input: &Input, context: &Context) -> Result<Proposal, Fault> {
    let sections = parse(input.text("input").unwrap_or_default()).map_err(|it| {
        Fault::arguments(it.to_string())
            .hint("A patch is `*** Begin Patch`, sections of `*** Add File:`, `*** Update File:` or `*** Delete File:`, `*** End Patch`.")
    })?;
    let mut taken: BTreeSet<PathBuf> = BTreeSet::new();
    let mut take = |file: &Located| {
        if taken.insert(file.path.clone()) {
            return Ok(());
        }
        let message = format!("the patch has two sections for `{}`", file.shown);
        Err(Fault::arguments(message).hint("Put all chunks of a file into one section."))
    };
    let mut changes = Vec::new();
    for section in &sections {
        let target = file::writable(section.path(), context)?;
        take(&target)?;
        changes.push(match section {
            Section::Add { contents, .. } => {
                free(&target, context)?;
                file::created(target, contents)
            }
            Section::Delete { .. } => delete_file::deleted(target, context)?,
            Section::Update { to, chunks, .. } => {
                let change = updated(&target, chunks, to.is_some(), context)?;
                match to {
                    None => change,
                    Some(to) => {
                        let to = file::writable(to, context)?;
                        take(&to)?;
                        free(&to, context)?;
                        Change {
                            operation: Operation::Rename,
                            to: Some(to),
                            ..change
                        }
                    }
                }
            }
        });
    }
    Ok(file::proposals(changes, ""))
}

/// The file after its chunks. One that only moves has none.
fn updated(target: &Located, chunks: &[PatchChunk], moves: bool, context: &Context) -> Result<Change, Fault> {
    if chunks.is_empty() && moves {
        let bytes = delete_file::deleted(target.clone(), context)?.old;
        let bytes = bytes.ok_or_else(|| Fault::from(Refused::Directory(target.shown.clone())))?;
        return Ok(Change {
            file: target.clone(),
            operation: Operation::Rename,
            to: None,
            old: Some(bytes.clone()),
            new: Some(bytes),
            hunks: Vec::new(),
            cell: None,
        });
    }
    let opened = file::open(target, context)?;
    context.seen.check(&opened.file, &opened.bytes)?;
    let new = apply(&opened.text.text, chunks).map_err(|misfit| {
        let code = if misfit.is_ambiguous() { "EDIT_AMBIGUOUS" } else { "EDIT_NO_MATCH" };
        Fault::new(code, format!("`{}` was not patched: {misfit}", target.shown)).hint(
            "Nothing was changed. Read the file again, and give more unchanged lines, or name a line before them after `@@`.",
        )
    })?;
    file::edited(&opened, &new, context)
}

/// Nothing is at the place.
fn free(file: &Located, context: &Context) -> Result<(), Fault> {
    match context.workspace.read(file, 0) {
        Err(Refused::Missing(_)) => Ok(()),
        Ok(_) | Err(Refused::Huge { .. }) => Err(Refused::Exists(file.shown.clone()).into()),
        Err(refused) => Err(refused.into()),
    }
}
