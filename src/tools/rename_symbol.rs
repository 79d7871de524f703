//! `rename_symbol`: a new name for a symbol, wherever it is used, as a language server works it out.

use serde_json::{Map, Value, json};

use super::{
    edit::file,
    symbol,
    tool::{Class, Context, Fault, Input, Proposal, Tool, Work, schema},
    walk,
};
use crate::{
    lsp::{Answer, Question},
    protocol::CallSubject,
    sandbox::Place,
};

/// The name of the tool.
pub const NAME: &str = "rename_symbol";
/// The description that a model is shown.
const ABOUT: &str = "\
    Rename a symbol wherever the project uses it, as its language server works it out. The changes are shown and \
    made like other edits.";
/// Files that one call changes.
const MOST_FILES: usize = 100;

/// The tool `rename_symbol`.
pub fn tool() -> Tool {
    let mut properties = symbol::properties();
    properties["new_name"] = json!({ "type": "string" });
    Tool {
        about: ABOUT.into(),
        schema: schema(properties, &["file_path", "symbol", "new_name"]),
        synonyms: symbol::SYNONYMS,
        word: "rename".into(),
        subject: CallSubject::File,
        runs_code: true,
        rule: Some(("Write", &[])),
        examples: &[r#"{ "file_path": "a.py", "line": 3, "symbol": "total", "new_name": "sum_of" }"#],
        ..Tool::new(NAME, Class::Writes, Work::change(propose))
    }
}

async fn propose(input: Input, context: Context) -> Result<Proposal, Fault> {
    let new = input.text("new_name").unwrap_or_default().trim().to_owned();
    if new.is_empty() {
        return Err(Fault::arguments("the argument `new_name` is empty"));
    }
    let own = (input, context.clone());
    // Nothing has been judged yet: only what tools may write is looked into.
    let find = move |_: &_| {
        let file = file::located(&own.0, "file_path", &own.1)?;
        symbol::named(&own.0, file, &own.1)
    };
    let symbol = walk::away(&context, find).await?;
    let question = Question::Rename {
        old: symbol.name.clone(),
        new: new.clone(),
    };
    let place = (symbol.file.path.clone(), symbol.spot);
    let asked = context.servers.ask(context.around(), place, question, symbol::LIMIT);
    let renamed = match asked.await.map_err(symbol::failed)? {
        Answer::Renamed(renamed) => renamed,
        Answer::Places(_) => Vec::new(),
    };
    let own = context.clone();
    walk::away(&context, move |_| changes(&symbol.name, &new, renamed, &own)).await
}

fn changes(
    name: &str,
    new: &str,
    renamed: Vec<(std::path::PathBuf, String, String)>,
    context: &Context,
) -> Result<Proposal, Fault> {
    if renamed.is_empty() {
        return Err(symbol::failed(format!("the language server does not rename `{name}`")));
    }
    if renamed.len() > MOST_FILES {
        let message = format!(
            "`{name}` is used in {} files; at most {MOST_FILES} are changed at once",
            renamed.len()
        );
        return Err(symbol::failed(message));
    }
    let mut changes = Vec::new();
    for (path, old, text) in renamed {
        let file = context.workspace.located(&path)?;
        if !matches!(file.place, Place::Inside | Place::Added) {
            let message = format!("it is used in `{}`, outside of the workspace", file.shown);
            return Err(symbol::failed(message));
        }
        let opened = file::open(&file, context)?;
        // Line ends and marks are the file's own.
        let [old, text] = [&old, &text].map(|it| it.trim_start_matches('\u{feff}').replace("\r\n", "\n"));
        if old == text {
            continue;
        }
        if opened.text.text != old {
            return Err(symbol::failed(format!("`{}` has changed meanwhile", file.shown)));
        }
        changes.push(file::replaced(&opened, &text)?);
    }
    let count = changes.len();
    let mut proposal = file::proposals(changes, "");
    let more = Map::from_iter([
        ("symbol".to_owned(), Value::from(name)),
        ("newName".to_owned(), Value::from(new)),
        ("files".to_owned(), Value::from(count)),
    ]);
    proposal.data.extend(more);
    Ok(proposal)
}
