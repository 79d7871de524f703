//! `code_block`: new or suggested code that has no file.

use std::borrow::Cow;

use super::{
    Document, KindRow,
    MemberForm::{Text, Word},
    Need::{Free, Structure},
    member,
    normal::fenced_pieces,
};
use crate::{protocol::Purpose, text::Role};

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

    pub(super) fn plain_text(&self) -> String {
        self.plain_pieces().concat()
    }

    pub(super) fn plain_pieces(&self) -> [Cow<'a, str>; 3] {
        fenced_pieces(self.language, self.content)
    }
}

pub(super) static ROW: KindRow = KindRow {
    aliases: &["code"],
    members: &[
        ("language", Text, Structure, "fence tag; `\"\"` is plain text"),
        (
            "purpose",
            Word(Purpose::KNOWN),
            Structure,
            "sheaf writes `example` in ask mode, `suggestion` in plan mode, otherwise `new_code`",
        ),
        (
            "info",
            Text,
            Free,
            "whole first line of the fence, if it says more than the language",
        ),
    ],
    label: "plain-kind-code-block",
    heading: Some("code-word"),
    sign: ("≡", Role::Dim),
    fill: |metadata, _| {
        member::default(metadata, "language", "");
        member::default(metadata, "purpose", "new_code");
    },
    ..KindRow::DEFAULT
};
