//! `code_reference`: a citation of code that exists.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{
    ContentRule, Document, KindRow,
    MemberForm::{Count, Text},
    Need::{Always, Structure},
    member,
    normal::{fenced_pieces, language_of, settle_path},
};
use crate::text::Role;

#[derive(Clone, Debug, PartialEq)]
pub struct CodeReference<'a> {
    /// Code as the model quoted it; may be shortened or wrong.
    pub content: &'a str,
    /// From the workspace root, `/` separators.
    pub file_path: &'a str,
    /// 1-based, inclusive; never 0 and never after `end_line`.
    pub start_line: u64,
    pub end_line: u64,
    pub language: &'a str,
}

impl<'a> CodeReference<'a> {
    pub(super) fn read(it: &'a Document) -> Self {
        let file_path = member::text(&it.metadata, "filePath").unwrap_or_default();
        let (start_line, end_line) = lines(&it.metadata);
        Self {
            content: it.text(),
            file_path,
            start_line,
            end_line,
            language: member::text(&it.metadata, "language").unwrap_or_else(|| language_of(file_path)),
        }
    }

    pub(super) fn plain_text(&self) -> String {
        self.plain_pieces().concat()
    }

    pub(super) fn plain_pieces(&self) -> [Cow<'a, str>; 3] {
        let info = format!("{}:{}:{}", self.start_line, self.end_line, self.file_path);
        fenced_pieces(&info, self.content)
    }
}

/// Clamped to 1 and swapped when reversed; a missing end is the start.
fn lines(metadata: &Map<String, Value>) -> (u64, u64) {
    let start = member::count(metadata, "startLine").unwrap_or(1).max(1);
    let end = member::count(metadata, "endLine").unwrap_or(start).max(1);
    (start.min(end), start.max(end))
}

pub(super) static ROW: KindRow = KindRow {
    aliases: &["reference", "ref"],
    members: &[
        ("filePath", Text, Always, "path from the workspace root, with `/`"),
        ("startLine", Count(1), Always, "first line, counted from 1"),
        (
            "endLine",
            Count(0),
            Always,
            "last line, included; not before `startLine`",
        ),
        (
            "language",
            Text,
            Structure,
            "fence tag; readers derive it from the path, and `\"\"` is plain text",
        ),
    ],
    content: ContentRule::Required,
    label: "plain-kind-code-reference",
    sign: ("↗", Role::Link),
    normalise: settle_path,
    fill: |metadata, _| {
        let (start, end) = lines(metadata);
        member::default(metadata, "filePath", "");
        metadata.insert("startLine".into(), start.into());
        metadata.insert("endLine".into(), end.into());
        let language = language_of(member::text(metadata, "filePath").unwrap_or_default());
        member::default(metadata, "language", language);
    },
    ..KindRow::DEFAULT
};
