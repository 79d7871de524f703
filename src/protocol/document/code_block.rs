//! `code_block`: new or suggested code that has no file.

use serde_json::{Map, Value};

use super::{Document, member};
use crate::protocol::Purpose;

#[derive(Clone, Debug, PartialEq)]
pub struct CodeBlock<'a> {
    pub content: &'a str,
    /// The fence's tag; `""` is plain text.
    pub language: &'a str,
    pub purpose: Purpose,
}

impl<'a> CodeBlock<'a> {
    pub(super) fn read(it: &'a Document) -> Self {
        Self {
            content: it.text(),
            language: member::text(&it.metadata, "language").unwrap_or_default(),
            purpose: member::text(&it.metadata, "purpose").map_or(Purpose::NewCode, Purpose::parse),
        }
    }
}

pub(super) fn fill(metadata: &mut Map<String, Value>) {
    member::default(metadata, "language", "");
    member::default(metadata, "purpose", "new_code");
}
