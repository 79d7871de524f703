//! `text`: Markdown, or plain words where the writer says so.

use super::{
    Leaf, Look, Sheet,
    heading::{Facts, Weight, first_line, line, sign},
    seed,
};
use crate::{
    protocol::{Document, TextFormat, document::Text},
    say,
    text::{Clean, Role, Span, markdown, markdown::Flow, wrap::wrap},
};

/// `is_whole`: nothing of the text is left out at its end.
pub(super) fn grow(text: &Text<'_>, is_whole: bool, document: &Document, look: &Look<'_>, sheet: &mut Sheet) -> usize {
    let signed = if is_users(document) {
        sheet.is_bar = true;
        sheet.sign(sign("▌", Role::User), false)
    } else {
        sheet.sign(Span::default(), false)
    };
    let first = match text.format {
        TextFormat::Markdown | TextFormat::Other(_) => {
            let flow = sheet.memo.flow.get_or_insert_with(|| Flow::new(seed(document, look)));
            let lines = &mut sheet.memo.lines;
            lines.take(text.content, document.is_open());
            flow.update(
                lines.text(),
                // What breaks off is never read as if it had come to its end: that would lay all of it out once more.
                is_whole && !document.is_open(),
                look.width,
                look.colours,
                &mut sheet.rows,
            )
        }
        TextFormat::Plain => plain(text, document, look, sheet),
    };
    if signed { 0 } else { first }
}

fn plain(text: &Text<'_>, document: &Document, look: &Look<'_>, sheet: &mut Sheet) -> usize {
    let lines = &mut sheet.memo.lines;
    lines.take(text.content, document.is_open());
    lines.lay(&mut sheet.rows, 0, &[], |_, line, _| {
        let span = if is_users(document) {
            Span::new(Clean::new(line), Role::Strong).bold()
        } else {
            Span::new(Clean::new(line), Role::Text)
        };
        wrap(&[span], look.width, &[], &[])
    })
}

/// What the user said while the answer was being made.
fn is_users(document: &Document) -> bool {
    document.metadata.get("role").is_some_and(|it| it == "user")
}

pub(super) fn folded(text: &Text<'_>, look: &Look<'_>) -> Leaf {
    let mut facts = Facts::default();
    let lines = text.content.trim().lines().count();
    if lines > 1 {
        facts.word(Weight::Light, say!("count-lines", count = lines), Role::Faint);
    }
    Leaf {
        glyph: Span::default(),
        rows: vec![line(&[Span::new(summary(text), Role::Dim)], facts, look.width)],
        is_line: true,
    }
}

pub(super) fn summary(text: &Text<'_>) -> Clean {
    match text.format {
        TextFormat::Markdown | TextFormat::Other(_) => markdown::summary(text.content),
        TextFormat::Plain => first_line(text.content),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{
        Fold, Look,
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
        let folded = Look {
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
