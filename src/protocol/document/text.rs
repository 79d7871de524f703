//! `text`: what the model says.

use super::{ContentRule, Document, KindRow, MemberForm::Word, Need::Structure, member};
use crate::{protocol::TextFormat, text::Role};

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

    pub(super) fn plain_text(&self) -> String {
        self.content.to_owned()
    }
}

pub(super) static ROW: KindRow = KindRow {
    members: &[("format", Word(TextFormat::KNOWN), Structure)],
    content: ContentRule::NotEmpty,
    label: "plain-kind-text",
    sign: ("·", Role::Faint),
    fill: |metadata, _| member::default(metadata, "format", "markdown"),
    ..KindRow::DEFAULT
};
