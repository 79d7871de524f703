//! A kind that this program does not know: kept whole, shown as its name and JSON.

use serde_json::{Map, Value};

use super::{ContentRule, Document, KindGroup, KindRow};

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

    pub(super) fn plain_text(&self) -> String {
        self.content.unwrap_or_default().to_owned()
    }
}

pub(super) static ROW: KindRow = KindRow {
    content: ContentRule::Nullable,
    group: KindGroup::Unknown,
    ..KindRow::DEFAULT
};
