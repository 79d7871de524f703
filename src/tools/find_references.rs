//! `find_references`: a question to a language server.

use super::{symbol, tool::Tool};
use crate::lsp::Question;

/// The name of the tool.
pub const NAME: &str = "find_references";
/// The description that a model is shown.
const ABOUT: &str = "\
    Find all uses of a symbol, as the project's language server knows them, its definition included: before you \
    change or remove something.";

/// The tool `find_references`.
pub fn tool() -> Tool {
    symbol::tool(NAME, ABOUT, "references", Question::References)
}
