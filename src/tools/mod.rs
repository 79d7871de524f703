//! What a model can do: one file a tool, one line each in [`TOOLS`].
//!
//! A tool says what it would touch before it does anything, so that the call can be judged; a tool that changes files works
//! out the change first, so that it can be shown before it is made. Tools reach files and commands through
//! [`sandbox`](crate::sandbox) only. A mistake of the model's is an answer to the model ([`Fault`]), never a failure of
//! the program.

pub mod apply_patch;
pub mod arguments;
pub mod ask;
pub mod await_command;
pub mod codebase_search;
pub mod create_plan;
pub mod cursor;
pub mod delete_file;
pub mod edit;
pub mod edit_file;
pub mod edit_notebook;
pub mod find_references;
pub mod glob_file_search;
pub mod go_to_definition;
pub mod grep;
mod html;
pub mod lints;
pub mod list_dir;
pub mod read_file;
pub mod read_lints;
pub mod rename_symbol;
pub mod run_terminal_cmd;
pub mod search_replace;
pub mod skill;
pub mod stop_command;
pub mod switch_mode;
pub mod symbol;
pub mod todo_write;
mod tool;
mod walk;
pub mod web_fetch;
pub mod web_search;
pub mod write;

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use crate::protocol::ToolLabel;
pub use crate::sandbox::{Cell, Change, Hunk};

pub use codebase_search::UNINDEXED;
pub use tool::{
    Access, Class, Context, Fault, Input, OldForm, Outcome, Part, Promise, Proposal, Propose, Run, Stop, Tool, ToolSet,
    Touches, Work, names, schema,
};

/// The tools that are part of the program, in the order in which a model is shown them.
pub const TOOLS: &[fn() -> Tool] = &[
    codebase_search::tool,
    grep::tool,
    read_file::tool,
    glob_file_search::tool,
    list_dir::tool,
    go_to_definition::tool,
    find_references::tool,
    read_lints::tool,
    edit_file::tool,
    search_replace::tool,
    write::tool,
    delete_file::tool,
    edit_notebook::tool,
    rename_symbol::tool,
    apply_patch::tool,
    run_terminal_cmd::tool,
    await_command::tool,
    stop_command::tool,
    web_search::tool,
    web_fetch::tool,
    todo_write::tool,
    create_plan::tool,
    ask::tool,
    switch_mode::tool,
    skill::tool,
];

/// Names of the tools that ask a language server about a symbol.
pub const OF_SERVERS: [&str; 3] = [go_to_definition::NAME, find_references::NAME, rename_symbol::NAME];

/// The tools of [`TOOLS`], made once.
pub fn built_in() -> &'static ToolSet {
    static BUILT_IN: LazyLock<ToolSet> = LazyLock::new(|| TOOLS.iter().map(|it| Arc::new(it())).collect());
    &BUILT_IN
}

/// The words of the built-in tools, for the screen.
pub fn labels() -> Vec<ToolLabel> {
    let names = |it: &Tool| {
        let own = std::iter::once(&it.name).chain(&it.aliases).cloned();
        own.chain(it.foreign_names.iter().map(|it| (*it).to_owned())).collect()
    };
    let label = |it: &Arc<Tool>| ToolLabel {
        word: it.word.clone(),
        subject: it.subject,
        names: names(it),
    };
    built_in().iter().map(label).collect()
}

/// The members of an object; none for any other value.
pub fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_has_to_explain_itself() {
        for tool in built_in().iter() {
            let required = tool.schema.get("required").and_then(Value::as_array);
            let is_asked = required.is_some_and(|it| it.iter().any(|it| it == "explanation"));
            assert!(!is_asked, "{}", tool.name);
        }
    }
}
