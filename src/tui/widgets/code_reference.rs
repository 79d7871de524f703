//! `code_reference`: existing code with its path and line numbers, and a note if the file has changed.

use std::sync::Arc;

use url::Url;

use super::{
    Cited, DocumentKind, DocumentState, Key, Leaf, RenderContext,
    code::{Code, Gutter, grow as grow_code},
    copy,
    heading::{Facts, Weight, path_heading, sign},
};
use crate::{
    protocol::{Document, document::CodeReference},
    t,
    text::{Modifier, Role, Sanitized, Span, StyledLine},
};

impl DocumentKind for CodeReference<'_> {
    fn lay_out(
        &mut self,
        document: &Document,
        context: &RenderContext<'_>,
        state: &mut DocumentState,
    ) -> Option<usize> {
        state.limit(&mut self.content, document.is_open());
        let code = Code {
            glyph: glyph(),
            head: head(self, document, context),
            numbers: Some((self.start_line, self.end_line)),
            language: self.language,
            content: self.content,
            gutter: Gutter::Plain,
        };
        grow_code(code, document, context, state)
    }

    fn folded(&self, document: &Document, context: &RenderContext<'_>) -> Leaf {
        Leaf::line(glyph(), head(self, document, context))
    }

    fn summary(&self, _: &Document) -> Sanitized {
        Sanitized::line(&format!("{}{}", self.file_path, lines(self)))
    }

    fn depends(&self, document: &Document, context: &RenderContext<'_>, key: &mut Key) {
        key.links = context.root.is_some();
        key.said_of_file = said_of_file(self, document, context.cited);
    }

    fn copy_text(&self, _: &Document) -> Sanitized {
        Sanitized::new(self.content)
    }

    fn markdown(&self, _: &Document) -> String {
        let head = format!("`{}:{}-{}`", self.file_path, self.start_line, self.end_line);
        format!(
            "{}\n\n{}",
            Sanitized::line(&head),
            copy::fenced(self.language, self.content)
        )
    }

    fn code(&self) -> Option<Sanitized> {
        Some(Sanitized::new(self.content))
    }
}

fn trimmed(text: &str) -> impl Iterator<Item = &str> {
    text.trim_end().lines().map(str::trim_end)
}

/// A note that the cited file is missing or has changed; `None` if it is as cited, up to the indentation of its last line,
/// or if only a place was cited.
pub(super) fn said_of_file(
    reference: &CodeReference<'_>,
    document: &Document,
    cited: Cited<'_>,
) -> Option<&'static str> {
    match cited {
        _ if document.is_open() => None,
        Cited::Unread => None,
        Cited::Missing => Some(t!("citation-no-file")),
        Cited::Lines(_) if reference.content.trim().is_empty() => None,
        Cited::Lines(lines) => {
            let differs = lines != reference.content && !trimmed(lines).eq(trimmed(reference.content));
            differs.then(|| t!("citation-differs"))
        }
    }
}

fn glyph() -> Span {
    sign("↗", Role::Link)
}

fn head(reference: &CodeReference<'_>, document: &Document, look: &RenderContext<'_>) -> StyledLine {
    let mut facts = Facts::default();
    if let Some(word) = said_of_file(reference, document, look.cited) {
        facts.word(Weight::Heavy, word, Role::Waiting);
    }
    if document.is_incomplete() {
        facts.word(Weight::Heavy, t!("document-broken-off"), Role::Error);
    }
    facts.word(Weight::Light, reference.language, Role::Faint);
    let path = Span::new(Sanitized::line(reference.file_path), Role::Link)
        .modified(Modifier::UNDERLINE)
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

/// The `file:` URL of a path of the workspace; `None` for a path that leads out of it.
pub(super) fn file_link(root: &str, path: &str) -> Option<Arc<str>> {
    let inside = !path.is_empty()
        && !path.starts_with('/')
        && !path.chars().any(char::is_control)
        && path.split(['/', '\\']).all(|it| it != "..");
    let url = inside.then(|| Url::from_file_path(std::path::Path::new(root).join(path)).ok())??;
    Some(Arc::from(url.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{
        DocumentState, Fold, RenderContext,
        testing::{closed, look, open, pictures, roles},
    };
    use super::*;
    use crate::protocol::View;

    const TOTAL: &str = "pub fn total(&self) -> Money {\n    self.items.iter().map(Item::price).sum()\n}";

    fn cited() -> Document {
        let place = json!({ "filePath": "src/cart.rs", "startLine": 21, "endLine": 23 });
        closed("code_reference", Some(TOTAL), place)
    }

    #[test]
    fn a_place_without_words_does_not_differ_from_the_file() {
        let differs = Some("differs from file");
        for (content, said) in [(None, None), (Some("  \n"), None), (Some("other"), differs)] {
            let document = closed("code_reference", content, json!({ "filePath": "a.rs", "startLine": 1 }));
            let View::CodeReference(reference) = document.view() else {
                panic!("{document:?}")
            };
            assert_eq!(
                said_of_file(&reference, &document, Cited::Lines("words")),
                said,
                "{content:?}"
            );
        }
    }

    #[test]
    fn citations() {
        let deep = json!({ "filePath": "crates/shop/src/discounts/storage/redis.rs", "startLine": 1008 });
        let deep = closed("code_reference", Some("let key = format!(\"code:{code}\");\n"), deep);
        let begun = open(
            "code_reference",
            Some("pub fn to"),
            json!({ "filePath": "src/cart.rs", "startLine": 21, "endLine": 23 }),
        );
        let broken = closed(
            "code_reference",
            Some("pub fn to"),
            json!({ "filePath": "a.rs", "startLine": 1, "incomplete": true }),
        );
        let cited = cited();
        let states = [
            ("whole", &cited, look(0)),
            (
                "the file says something else",
                &cited,
                RenderContext {
                    cited: Cited::Lines("pub fn total() {}"),
                    ..look(0)
                },
            ),
            (
                "there is no such file",
                &cited,
                RenderContext {
                    cited: Cited::Missing,
                    ..look(0)
                },
            ),
            ("a long path, a high line", &deep, look(0)),
            ("begun", &begun, look(0)),
            ("broken off", &broken, look(0)),
            (
                "folded",
                &cited,
                RenderContext {
                    fold: Fold::Folded,
                    ..look(0)
                },
            ),
        ];
        insta::assert_snapshot!(pictures(&states), @r#"
40=====================================
-- whole
↗ src/cart.rs:21–23                rust
   21   pub fn total(&self) -> Money {
   22       self.items.iter().map(Item:
        :price).sum()
   23   }
-- the file says something else
↗ src/cart.rs:21–23   differs from file
   21   pub fn total(&self) -> Money {
   22       self.items.iter().map(Item:
        :price).sum()
   23   }
-- there is no such file
↗ src/cart.rs:21–23  no such file  rust
   21   pub fn total(&self) -> Money {
   22       self.items.iter().map(Item:
        :price).sum()
   23   }
-- a long path, a high line
↗ crates/…/storage/redis.rs:1008   rust
  1008   let key = format!("code:{code}
         ");
-- begun
↗ src/cart.rs:21–23                rust
   21   pub fn to
-- broken off
↗ a.rs:1               incomplete  rust
    1   pub fn to
-- folded
↗ src/cart.rs:21–23                rust
80=======================================================================
-- whole
↗ src/cart.rs:21–23                                                  rust
   21   pub fn total(&self) -> Money {
   22       self.items.iter().map(Item::price).sum()
   23   }
-- the file says something else
↗ src/cart.rs:21–23                               differs from file  rust
   21   pub fn total(&self) -> Money {
   22       self.items.iter().map(Item::price).sum()
   23   }
-- there is no such file
↗ src/cart.rs:21–23                                    no such file  rust
   21   pub fn total(&self) -> Money {
   22       self.items.iter().map(Item::price).sum()
   23   }
-- a long path, a high line
↗ crates/shop/src/discounts/storage/redis.rs:1008                    rust
  1008   let key = format!("code:{code}");
-- begun
↗ src/cart.rs:21–23                                                  rust
   21   pub fn to
-- broken off
↗ a.rs:1                                                 incomplete  rust
    1   pub fn to
-- folded
↗ src/cart.rs:21–23                                                  rust
120==============================================================================================================
-- whole
↗ src/cart.rs:21–23                                                                                          rust
   21   pub fn total(&self) -> Money {
   22       self.items.iter().map(Item::price).sum()
   23   }
-- the file says something else
↗ src/cart.rs:21–23                                                                       differs from file  rust
   21   pub fn total(&self) -> Money {
   22       self.items.iter().map(Item::price).sum()
   23   }
-- there is no such file
↗ src/cart.rs:21–23                                                                            no such file  rust
   21   pub fn total(&self) -> Money {
   22       self.items.iter().map(Item::price).sum()
   23   }
-- a long path, a high line
↗ crates/shop/src/discounts/storage/redis.rs:1008                                                            rust
  1008   let key = format!("code:{code}");
-- begun
↗ src/cart.rs:21–23                                                                                          rust
   21   pub fn to
-- broken off
↗ a.rs:1                                                                                         incomplete  rust
    1   pub fn to
-- folded
↗ src/cart.rs:21–23                                                                                          rust
"#);
    }

    #[test]
    fn the_path_can_be_followed() {
        let mut sheet = DocumentState::default();
        let look = RenderContext {
            root: Some("/home/kim/my shop"),
            ..look(60)
        };
        sheet.lay_out(&cited(), &look);
        assert_eq!(
            roles(&sheet.rows[0]),
            "src/cart.rs:Link+underline :21–23:Dim | rust:Faint"
        );
        assert_eq!(
            sheet.rows[0].spans[0].link.as_deref(),
            Some("file:///home/kim/my%20shop/src/cart.rs")
        );
        assert_eq!(roles(&sheet.rows[1]), "21:Faint pub fn total(&self) -> Money {:Text");
    }

    #[test]
    fn links_stay_inside_the_workspace() {
        for path in ["", "/etc/passwd", "../x", "a/../../x", "a\\..\\x", "a\nb"] {
            assert_eq!(file_link("/home/kim/shop", path), None, "{path:?}");
        }
        assert_eq!(file_link("not absolute", "a.rs"), None);
    }

    #[test]
    fn a_citation_differs_by_what_it_says_only() {
        let cases = [
            ("the same", Some(TOTAL.to_owned()), false),
            ("a last line break", Some(format!("{TOTAL}\n")), false),
            ("blanks at the ends of lines", Some(TOTAL.replace('\n', "  \n")), false),
            ("line ends of another system", Some(TOTAL.replace('\n', "\r\n")), false),
            ("another indent", Some(TOTAL.replace("    self", "  self")), true),
            ("shortened", Some(TOTAL.lines().take(2).collect()), true),
            ("nothing is known", None, false),
        ];
        let document = cited();
        let View::CodeReference(reference) = document.view() else {
            panic!("it is a citation");
        };
        for (name, file, expected) in cases {
            let cited = file.as_deref().map_or(Cited::Unread, Cited::Lines);
            let said = said_of_file(&reference, &document, cited);
            assert_eq!(said.is_some(), expected, "{name}");
        }
    }
}
