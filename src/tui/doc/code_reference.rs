//! `code_reference`: code that exists, with its place, its line numbers and whether the file still says so.

use std::sync::Arc;

use url::Url;

use super::{
    Leaf, Look, Sheet,
    code::{Code, Gutter, grow as grow_code},
    heading::{Facts, Weight, path_heading, sign},
};
use crate::{
    protocol::{Document, document::CodeReference},
    text::{Clean, Mark, Role, Row, Span},
};

pub(super) fn grow(
    reference: &CodeReference<'_>,
    document: &Document,
    look: &Look<'_>,
    sheet: &mut Sheet,
) -> Option<usize> {
    let code = Code {
        glyph: glyph(),
        head: head(reference, document, look),
        numbers: Some((reference.start_line, reference.end_line)),
        language: reference.language,
        content: reference.content,
        gutter: Gutter::Plain,
    };
    grow_code(code, document, look, sheet)
}

pub(super) fn folded(reference: &CodeReference<'_>, document: &Document, look: &Look<'_>) -> Leaf {
    Leaf {
        glyph: glyph(),
        rows: vec![head(reference, document, look)],
        is_line: true,
    }
}

pub(super) fn summary(reference: &CodeReference<'_>) -> Clean {
    Clean::line(&format!("{}{}", reference.file_path, lines(reference)))
}

/// Whether the file holds something else than what was cited. A citation may be indented otherwise at its end, and that
/// is no difference.
pub(super) fn differs(reference: &CodeReference<'_>, document: &Document, cited: Option<&str>) -> bool {
    let Some(cited) = cited.filter(|_| !document.is_open()) else {
        return false;
    };
    let trimmed = |text: &'_ str| {
        text.trim_end()
            .lines()
            .map(|it| it.trim_end().to_owned())
            .collect::<Vec<_>>()
    };
    cited != reference.content && trimmed(cited) != trimmed(reference.content)
}

fn glyph() -> Span {
    sign("↗", Role::Link)
}

fn head(reference: &CodeReference<'_>, document: &Document, look: &Look<'_>) -> Row {
    let mut facts = Facts::default();
    if differs(reference, document, look.cited) {
        facts.word(Weight::Heavy, "differs from file", Role::Waiting);
    }
    if document.is_incomplete() {
        facts.word(Weight::Heavy, "broken off", Role::Error);
    }
    facts.word(Weight::Light, reference.language, Role::Faint);
    let path = Span::new(Clean::line(reference.file_path), Role::Link)
        .marked(Mark::UNDERLINE)
        .linked(look.root.and_then(|root| file_link(root, reference.file_path)));
    path_heading("", &path, &[Span::new(lines(reference), Role::Dim)], facts, look.width)
}

fn lines(reference: &CodeReference<'_>) -> String {
    let (first, last) = (reference.start_line, reference.end_line);
    if first == last {
        format!(":{first}")
    } else {
        format!(":{first}–{last}")
    }
}

/// Where a click on a path of the workspace goes; none for a path that leads out of it.
pub(super) fn file_link(root: &str, path: &str) -> Option<Arc<str>> {
    let inside = !path.is_empty()
        && !path.starts_with('/')
        && !path.chars().any(char::is_control)
        && path.split(['/', '\\']).all(|it| it != "..");
    let url = inside.then(|| Url::from_file_path(std::path::Path::new(root).join(path)).ok())??;
    Some(Arc::from(url.as_str()))
}
