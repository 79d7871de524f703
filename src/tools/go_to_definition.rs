//! `go_to_definition`: a question to a language server.

use super::{
    symbol,
    tool::{Class, Tool, Work, schema},
};
use crate::{lsp::Question, protocol::CallSubject};

/// The name of the tool.
pub const NAME: &str = "go_to_definition";
/// The description that a model is shown.
const ABOUT: &str = "\
    Find where a symbol is defined, as the project's language server knows it: exact where a search for the name \
    finds others of that name, too.";

/// The tool `go_to_definition`.
pub fn tool() -> Tool {
    Tool {
        about: ABOUT.into(),
        schema: schema(symbol::properties(), &["file_path", "symbol"]),
        synonyms: symbol::SYNONYMS,
        word: "definition".into(),
        subject: CallSubject::Symbol,
        runs_code: true,
        examples: &[r#"{ "file_path": "a.py", "line": 3, "symbol": "total" }"#],
        ..Tool::new(
            NAME,
            Class::Reads,
            Work::call(symbol::touches, |input, context| {
                symbol::places(input, context, Question::Definition)
            }),
        )
    }
}
