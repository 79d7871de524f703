//! A kind that this program does not know: kept whole, shown as its name and JSON.

use serde_json::{Map, Value};

use super::Document;

#[derive(Clone, Debug, PartialEq)]
pub struct Unknown<'a> {
    pub kind: &'a str,
    pub content: Option<&'a str>,
    pub metadata: &'a Map<String, Value>,
}

impl<'a> Unknown<'a> {
    pub(super) fn read(it: &'a Document) -> Self {
        Self {
            kind: it.kind.as_str(),
            content: it.content.as_deref(),
            metadata: &it.metadata,
        }
    }
}
