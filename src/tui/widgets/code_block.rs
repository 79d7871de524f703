//! `code_block`: code without a file; language and purpose at the right.

use std::sync::Arc;

use super::{
    DocumentKind, DocumentState, Leaf, RenderContext,
    code::{Code, Gutter, grow as grow_code},
    copy,
    heading::{Facts, Weight, first_line, heading, sign},
    seed,
};
use crate::{
    protocol::{Document, Purpose, document::CodeBlock},
    t,
    text::{CodeLine, Role, Sanitized, Span, StyledLine},
};

/// Columns beside a diagram.
const MARGIN: usize = 2;

impl DocumentKind for CodeBlock<'_> {
    fn lay_out(
        &mut self,
        document: &Document,
        context: &RenderContext<'_>,
        state: &mut DocumentState,
    ) -> Option<usize> {
        state.limit(&mut self.content, document.is_open());
        // A diagram that is still being written would jump about: it is drawn when it is whole.
        let is_diagram = self.language.eq_ignore_ascii_case("mermaid") && !document.is_open();
        let drawn = if is_diagram && !self.content.trim().is_empty() {
            let columns = context.width.saturating_sub(MARGIN);
            context.colours.diagram(seed(document, context), self.content, columns)
        } else {
            Arc::default()
        };
        let line = |it: &CodeLine| it.iter().map(|it| it.text.as_str()).collect::<String>();
        let diagram = (!drawn.is_empty()).then(|| drawn.iter().map(line).collect::<Vec<_>>().join("\n"));
        let code = Code {
            glyph: glyph(),
            head: head(self, document, &[], Facts::default(), context),
            numbers: None,
            language: if diagram.is_some() { "" } else { self.language },
            content: diagram.as_deref().unwrap_or(self.content),
            gutter: Gutter::Plain,
        };
        grow_code(code, document, context, state)
    }

    fn folded(&self, document: &Document, context: &RenderContext<'_>) -> Leaf {
        let mut facts = Facts::default();
        facts.word(
            Weight::Light,
            t!("count-lines", count = self.content.lines().count()),
            Role::Dim,
        );
        let title = [Span::new(first_line(self.content), Role::Text)];
        Leaf::line(glyph(), head(self, document, &title, facts, context))
    }

    fn summary(&self, _: &Document) -> Sanitized {
        let language = if self.language.is_empty() {
            t!("code-word")
        } else {
            self.language
        };
        Sanitized::line(&format!("{language}  {}", first_line(self.content)))
    }

    fn copy_text(&self, _: &Document) -> Sanitized {
        Sanitized::new(self.content)
    }

    fn markdown(&self, _: &Document) -> String {
        copy::fenced(self.language, self.content)
    }

    fn code(&self) -> Option<Sanitized> {
        Some(Sanitized::new(self.content))
    }
}

fn glyph() -> Span {
    sign("»", Role::Dim)
}

fn head(
    block: &CodeBlock<'_>,
    document: &Document,
    title: &[Span],
    mut facts: Facts,
    look: &RenderContext<'_>,
) -> StyledLine {
    if document.is_incomplete() {
        facts.word(Weight::Heavy, t!("document-broken-off"), Role::Error);
    }
    facts.word(Weight::Medium, block.language, Role::Faint);
    let purpose = match &block.purpose {
        Purpose::NewCode => Sanitized::literal(t!("code-new")),
        Purpose::Example => Sanitized::literal(t!("code-example")),
        Purpose::Suggestion => Sanitized::literal(t!("code-suggestion")),
        Purpose::Other(word) => Sanitized::line(&word.replace('_', " ")),
    };
    facts.word(Weight::Light, purpose, Role::Faint);
    heading(t!("code-word"), title, facts, look.width)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{
        Fold, RenderContext,
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
                RenderContext {
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
        pub percent: u8, // between 0
      and 100, checked when it is read
    }
-- no language, broken off
» code                  incomplete  new
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
» code                                                    incomplete  new
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
» code                                                                                            incomplete  new
    漢字 and words
-- a purpose nobody knows
» code                                                                                                   dead end
    x
-- folded
» code   pub struct Discount {                                                             4 lines  rust  example
"#);
    }
}
