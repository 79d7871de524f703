//! `text`: what the model says.

use serde_json::{Map, Value};

use super::{Document, member};
use crate::protocol::TextFormat;

#[derive(Clone, Debug, PartialEq)]
pub struct Text<'a> {
    pub content: &'a str,
    pub format: TextFormat,
}

impl<'a> Text<'a> {
    pub(super) fn read(it: &'a Document) -> Self {
        Self {
            content: it.text(),
            format: member::text(&it.metadata, "format").map_or(TextFormat::Markdown, TextFormat::parse),
        }
    }
}

pub(super) fn fill(metadata: &mut Map<String, Value>) {
    member::default(metadata, "format", "markdown");
}
