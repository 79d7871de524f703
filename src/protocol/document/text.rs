//! `text`: what the model says.

use super::{
    ContentRule, Document, KindRow,
    MemberForm::Word,
    Need::{Free, Structure},
    member,
};
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
    members: &[
        (
            "format",
            Word(TextFormat::KNOWN),
            Structure,
            "`markdown` may contain fences and links; `plain` is shown as it is",
        ),
        (
            "role",
            Word(&["user"]),
            Free,
            "`user`: words of the user, sent while the answer was made",
        ),
    ],
    content: ContentRule::NotEmpty,
    label: "plain-kind-text",
    sign: ("·", Role::Faint),
    fill: |metadata, _| member::default(metadata, "format", "markdown"),
    ..KindRow::DEFAULT
};
