//! `go_to_definition`: a question to a language server.

use super::{symbol, tool::Tool};
use crate::lsp::Question;

/// The name of the tool.
pub const NAME: &str = "go_to_definition";
/// The description that a model is shown.
const ABOUT: &str = "\
    Find where a symbol is defined, as the project's language server knows it: exact where a search for the name \
    finds others of that name, too.";

/// The tool `go_to_definition`.
pub fn tool() -> Tool {
    symbol::tool(NAME, ABOUT, "definition", Question::Definition)
}
