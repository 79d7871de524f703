//! Checkers of files: which there are for a workspace, what they print, and what they have found in a conversation.
//!
//! Nothing here runs anything: [`read_lints`](super::read_lints) does.

pub mod checkers;
pub mod diagnostic;
pub mod findings;

pub use findings::Findings;

pub use crate::lsp::{Diagnostic, Severity};
