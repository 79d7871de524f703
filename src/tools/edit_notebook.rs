//! `edit_notebook`: the source of a cell of a Jupyter notebook, or a new cell.

use serde_json::json;

use super::{
    Cell, cursor,
    edit::{
        file,
        hunks::{counts, hunks, unified},
        notebook::{self, CellEdit, CellKind, Refusal},
        replace::Edit,
    },
    search_replace,
    tool::{Class, Context, Fault, Input, Proposal, Tool, names, schema},
};
use crate::protocol::{CallSubject, Operation};

/// The description that a model is shown.
const ABOUT: &str = "\
    Change a cell of a Jupyter notebook, or put in a new one. Cells count from 0. In a cell that is there, \
    `old_string` is replaced by `new_string`: it must stand in the cell once, copied letter by letter. With \
    `is_new_cell` a cell with the source `new_string` is put in at `cell_idx`, and `old_string` is empty. What a cell \
    has printed is cleared when its code changes. Cells cannot be deleted.";

/// The tool `edit_notebook`.
pub fn tool() -> Tool {
    Tool {
        aliases: names(["EditNotebook", "NotebookEdit"]),
        about: ABOUT.into(),
        schema: schema(
            json!({
                "target_notebook": { "type": "string" },
                "cell_idx": { "type": "integer", "description": "0-based" },
                "is_new_cell": { "type": "boolean" },
                "cell_language": {
                    "type": "string",
                    "enum": ["python", "markdown", "javascript", "typescript", "r", "sql", "shell", "raw", "other"]
                },
                "old_string": { "type": "string" },
                "new_string": { "type": "string" }
            }),
            &[
                "target_notebook",
                "cell_idx",
                "is_new_cell",
                "cell_language",
                "old_string",
                "new_string",
            ],
        ),
        synonyms: &[
            (
                "target_notebook",
                &[
                    "notebook_path",
                    "target_file",
                    "file_path",
                    "path",
                    "filePath",
                    "relative_workspace_path",
                    "absolute_path",
                    "filename",
                ],
            ),
            ("cell_idx", &["cell_index", "cellIdx", "cell_number"]),
            ("is_new_cell", &["isNewCell"]),
            ("cell_language", &["cellLanguage", "cell_type"]),
            ("old_string", &["oldString", "old_str", "search"]),
            ("new_string", &["newString", "new_str", "replace", "new_source"]),
        ],
        word: "edit".into(),
        subject: CallSubject::File,
        cursor: Some(cursor::EDIT),
        examples: &[
            r#"{ "target_notebook": "a.ipynb", "cell_idx": 0, "is_new_cell": false, "cell_language": "python",
                 "old_string": "x = 1", "new_string": "x = 2" }"#,
            r#"{ "notebook_path": "a.ipynb", "cell_idx": "1", "is_new_cell": "true", "cell_language": "python",
                 "old_string": "", "new_string": "y = 2" }"#,
        ],
        ..Tool::new("edit_notebook", Class::Writes, file::work(propose))
    }
}

fn propose(input: &Input, context: &Context) -> Result<Proposal, Fault> {
    let target = file::located(input, "target_notebook", context)?;
    let opened = file::open(&target, context)?;
    context.seen.check(&opened.file, &opened.bytes)?;
    let cell = input.integer("cell_idx").unwrap_or_default();
    let cell =
        usize::try_from(cell).map_err(|_| Fault::arguments("`cell_idx` counts from 0 and cannot be negative"))?;
    let new = input.text("new_string").unwrap_or_default().to_owned();
    let what = if input.flag("is_new_cell") {
        CellEdit::Insert { source: new }
    } else {
        CellEdit::Edit(Edit {
            old: input.text("old_string").unwrap_or_default().to_owned(),
            new,
            is_all: false,
        })
    };
    let language = input.text("cell_language").unwrap_or_default();
    let change = notebook::Change {
        cell,
        kind: CellKind::of(language),
        what,
    };
    let changed =
        notebook::change(&opened.text.text, &change, &context.call).map_err(|it| refused(&target.shown, &it))?;
    let bytes = opened.text.write(&changed.text);
    // Lines of the file say nothing to a person: what is shown are those of the cell.
    let hunks = hunks(&changed.old, &changed.new);
    let edit = super::Change {
        file: opened.file,
        operation: Operation::Edit,
        to: None,
        old: Some(opened.bytes),
        new: Some(bytes.into()),
        hunks,
        cell: Some(Cell {
            index: cell,
            source: matches!(change.what, CellEdit::Edit(_)).then(|| changed.old.clone()),
            language: language.to_owned(),
        }),
    };
    let verb = match change.what {
        CellEdit::Insert { .. } => "Put in",
        CellEdit::Edit(_) => "Changed",
    };
    let text = format!(
        "{verb} cell {cell} of `{}`. Its source is now:{}",
        target.shown,
        file::regions(&changed.new, &edit.hunks, &mut file::room())
    );
    let (added, removed) = counts(&changed.old, &changed.new);
    let data = json!({
        "filePath": target.shown,
        "operation": "edit",
        "cell": cell,
        "linesAdded": added,
        "linesRemoved": removed,
        "diffString": unified(&changed.old, &edit.hunks),
    });
    Ok(Proposal {
        changes: vec![edit],
        text,
        data: data.as_object().cloned().unwrap_or_default(),
    })
}

fn refused(shown: &str, refusal: &Refusal) -> Fault {
    let message = format!("`{shown}` was not changed: {refusal}");
    match refusal {
        Refusal::Form(_) => Fault::new("TOOL_FAILED", message),
        Refusal::Range { .. } => Fault::arguments(message).hint("Read the notebook again."),
        Refusal::Kind { .. } => {
            Fault::arguments(message).hint("See whether `cell_idx` is the cell that is meant; a cell keeps its kind.")
        }
        Refusal::Mismatch { cell, mismatch } => search_replace::refused(shown, &format!("cell {cell}: "), mismatch),
    }
}
