//! `text`: Markdown, or plain text where the document says so.

use super::{
    DocumentKind, DocumentState, Leaf, MEASURE, RenderContext, copy,
    heading::{Facts, Weight, first_line, line, sign},
    seed,
};
use crate::{
    protocol::{Document, TextFormat, document::Text},
    t,
    text::{Role, Sanitized, Span, markdown, markdown::Flow, wrap::wrap},
};

impl DocumentKind for Text<'_> {
    fn lay_out(
        &mut self,
        document: &Document,
        context: &RenderContext<'_>,
        state: &mut DocumentState,
    ) -> Option<usize> {
        let is_whole = state.limit(&mut self.content, document.is_open());
        let signed = if is_users(document) {
            state.is_bar = true;
            state.sign(sign("▌", Role::User), false)
        } else {
            state.sign(Span::default(), false)
        };
        let first = match self.format {
            TextFormat::Markdown | TextFormat::Other(_) => {
                let flow = state
                    .memo
                    .flow
                    .get_or_insert_with(|| Flow::new(seed(document, context)));
                let lines = &mut state.memo.lines;
                lines.take(self.content, document.is_open());
                flow.update(
                    lines.text(),
                    // What breaks off is never read as if it had come to its end: that would lay all of it out once more.
                    is_whole && !document.is_open(),
                    context.width.min(MEASURE),
                    context.colours,
                    &mut state.rows,
                )
            }
            TextFormat::Plain => plain(self, document, context, state),
        };
        Some(if signed { 0 } else { first })
    }

    fn folded(&self, document: &Document, context: &RenderContext<'_>) -> Leaf {
        let mut facts = Facts::default();
        let lines = self.content.trim().lines().count();
        if lines > 1 {
            facts.word(Weight::Light, t!("count-lines", count = lines), Role::Faint);
        }
        Leaf::line(
            Span::default(),
            line(
                &[Span::new(self.summary(document), Role::Dim)],
                facts,
                context.width.min(MEASURE),
            ),
        )
    }

    fn summary(&self, _: &Document) -> Sanitized {
        match self.format {
            TextFormat::Markdown | TextFormat::Other(_) => markdown::summary(self.content),
            TextFormat::Plain => first_line(self.content),
        }
    }

    fn copy_text(&self, _: &Document) -> Sanitized {
        Sanitized::new(self.content)
    }

    fn code(&self) -> Option<Sanitized> {
        copy::fences(self.content)
    }
}

fn plain(text: &Text<'_>, document: &Document, look: &RenderContext<'_>, state: &mut DocumentState) -> usize {
    let lines = &mut state.memo.lines;
    lines.take(text.content, document.is_open());
    lines.lay(&mut state.rows, 0, &[], |_, line, _| {
        let span = if is_users(document) {
            Span::new(Sanitized::new(line), Role::Strong).bold()
        } else {
            Span::new(Sanitized::new(line), Role::Text)
        };
        wrap(&[span], look.width.min(MEASURE), &[], &[])
    })
}

/// Returns true for a message of the user to a running answer.
fn is_users(document: &Document) -> bool {
    document.metadata.get("role").is_some_and(|it| it == "user")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{
        Fold, RenderContext,
        testing::{closed, look, picture, pictures},
    };

    #[test]
    fn texts() {
        let prose = "The cart has **no** discount field yet. I will read the module and its callers, then change `Cart::total`.";
        let markdown = closed("text", Some(prose), json!({}));
        let plain = closed(
            "text",
            Some("*Stars* stay in plain text,\n  and so do blanks at the start."),
            json!({ "format": "plain" }),
        );
        let long = closed(
            "text",
            Some("## Findings\n\nThe cart copies its discount.\n\n- once\n- twice"),
            json!({}),
        );
        let folded = RenderContext {
            fold: Fold::Folded,
            ..look(0)
        };
        let states = [
            ("markdown", &markdown, look(0)),
            ("plain", &plain, look(0)),
            ("folded", &long, folded),
        ];
        insta::assert_snapshot!(pictures(&states), @r#"
40=====================================
-- markdown
  The cart has no discount field yet. I
  will read the module and its callers,
  then change Cart::total.
-- plain
  *Stars* stay in plain text,
    and so do blanks at the start.
-- folded
  Findings                      6 lines
80=======================================================================
-- markdown
  The cart has no discount field yet. I will read the module and its
  callers, then change Cart::total.
-- plain
  *Stars* stay in plain text,
    and so do blanks at the start.
-- folded
  Findings                                                        6 lines
120==============================================================================================================
-- markdown
  The cart has no discount field yet. I will read the module and its callers, then change Cart::total.
-- plain
  *Stars* stay in plain text,
    and so do blanks at the start.
-- folded
  Findings                                                                                                6 lines
"#);
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        for format in ["markdown", "plain"] {
            let hostile = closed(
                "text",
                Some("safe \x1b[2Jand\x07 sound\u{202e}"),
                json!({ "format": format }),
            );
            assert_eq!(picture(&hostile, &look(40)), "  safe and sound\n", "{format}");
        }
    }
}
