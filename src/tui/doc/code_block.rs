//! `code_block`: code without a file; its language and what it is for at the right.

use super::{
    Leaf, Look, Sheet,
    code::{Code, Gutter, grow as grow_code},
    heading::{Facts, Weight, first_line, heading, sign},
};
use crate::{
    protocol::{Document, Purpose, document::CodeBlock},
    say,
    text::{Clean, Role, Row, Span, mermaid},
};

/// Columns beside a diagram.
const MARGIN: usize = 2;

pub(super) fn grow(block: &CodeBlock<'_>, document: &Document, look: &Look<'_>, sheet: &mut Sheet) -> Option<usize> {
    // A diagram that is still being written would jump about: it is drawn when it is whole.
    let is_diagram = block.language.eq_ignore_ascii_case("mermaid") && !document.is_open();
    let diagram = is_diagram
        .then(|| mermaid::draw(block.content, look.width.saturating_sub(MARGIN)))
        .flatten();
    let code = Code {
        glyph: glyph(),
        head: head(block, document, &[], Facts::default(), look),
        numbers: None,
        language: if diagram.is_some() { "" } else { block.language },
        content: diagram.as_deref().unwrap_or(block.content),
        gutter: Gutter::Plain,
    };
    grow_code(code, document, look, sheet)
}

pub(super) fn folded(block: &CodeBlock<'_>, document: &Document, look: &Look<'_>) -> Leaf {
    let mut facts = Facts::default();
    facts.word(
        Weight::Light,
        say!("count-lines", count = block.content.lines().count()),
        Role::Dim,
    );
    let title = [Span::new(first_line(block.content), Role::Text)];
    Leaf {
        glyph: glyph(),
        rows: vec![head(block, document, &title, facts, look)],
        is_line: true,
    }
}

pub(super) fn summary(block: &CodeBlock<'_>) -> Clean {
    let language = if block.language.is_empty() {
        say!("code-word")
    } else {
        block.language
    };
    Clean::line(&format!("{language}  {}", first_line(block.content)))
}

fn glyph() -> Span {
    sign("»", Role::Dim)
}

fn head(block: &CodeBlock<'_>, document: &Document, title: &[Span], mut facts: Facts, look: &Look<'_>) -> Row {
    if document.is_incomplete() {
        facts.word(Weight::Heavy, say!("document-broken-off"), Role::Error);
    }
    facts.word(Weight::Medium, block.language, Role::Faint);
    let purpose = match &block.purpose {
        Purpose::NewCode => Clean::literal(say!("code-new")),
        Purpose::Example => Clean::literal(say!("code-example")),
        Purpose::Suggestion => Clean::literal(say!("code-suggestion")),
        Purpose::Other(word) => Clean::line(&word.replace('_', " ")),
    };
    facts.word(Weight::Light, purpose, Role::Faint);
    heading(say!("code-word"), title, facts, look.width)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{
        Fold, Look,
        testing::{closed, look, pictures},
    };

    #[test]
    fn blocks() {
        let code = "pub struct Discount {\n\tpub code: String,\n\tpub percent: u8, // between 0 and 100, checked when it is read\n}\n";
        let example = closed(
            "code_block",
            Some(code),
            json!({ "language": "rust", "purpose": "example" }),
        );
        let bare = closed("code_block", Some("漢字 and words"), json!({ "incomplete": true }));
        let odd = closed("code_block", Some("x"), json!({ "purpose": "dead_end" }));
        let states = [
            ("an example with tabs", &example, look(0)),
            ("no language, broken off", &bare, look(0)),
            ("a purpose nobody knows", &odd, look(0)),
            (
                "folded",
                &example,
                Look {
                    fold: Fold::Folded,
                    ..look(0)
                },
            ),
        ];
        insta::assert_snapshot!(pictures(&states), @r#"
40=====================================
-- an example with tabs
» code                    rust  example
    pub struct Discount {
        pub code: String,
        pub percent: u8, // between 0 a
      nd 100, checked when it is read
    }
-- no language, broken off
» code                  broken off  new
    漢字 and words
-- a purpose nobody knows
» code                         dead end
    x
-- folded
» code   pub struct Discount {     rust
80=======================================================================
-- an example with tabs
» code                                                      rust  example
    pub struct Discount {
        pub code: String,
        pub percent: u8, // between 0 and 100, checked when it is read
    }
-- no language, broken off
» code                                                    broken off  new
    漢字 and words
-- a purpose nobody knows
» code                                                           dead end
    x
-- folded
» code   pub struct Discount {                     4 lines  rust  example
120==============================================================================================================
-- an example with tabs
» code                                                                                              rust  example
    pub struct Discount {
        pub code: String,
        pub percent: u8, // between 0 and 100, checked when it is read
    }
-- no language, broken off
» code                                                                                            broken off  new
    漢字 and words
-- a purpose nobody knows
» code                                                                                                   dead end
    x
-- folded
» code   pub struct Discount {                                                             4 lines  rust  example
"#);
    }
}
