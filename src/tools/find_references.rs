//! `find_references`: a question to a language server.

use super::{
    symbol,
    tool::{Class, Tool, Work, schema},
};
use crate::{lsp::Question, protocol::CallSubject};

/// The name of the tool.
pub const NAME: &str = "find_references";
/// The description that a model is shown.
const ABOUT: &str = "\
    Find all uses of a symbol, as the project's language server knows them, its definition included: before you \
    change or remove something.";

/// The tool `find_references`.
pub fn tool() -> Tool {
    Tool {
        about: ABOUT.into(),
        schema: schema(symbol::properties(), &["file_path", "symbol"]),
        synonyms: symbol::SYNONYMS,
        word: "references".into(),
        subject: CallSubject::Symbol,
        runs_code: true,
        examples: &[r#"{ "file_path": "a.py", "line": 3, "symbol": "total" }"#],
        ..Tool::new(
            NAME,
            Class::Reads,
            Work::call(symbol::touches, |input, context| {
                symbol::places(input, context, Question::References)
            }),
        )
    }
}
