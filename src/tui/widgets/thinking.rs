//! The model's thinking: one dim line; unfolded, the whole text.

use ratatui::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};

use super::{
    DocumentState, Fold, Key, Memo, RenderContext,
    heading::{Facts, heading, line, sign, word},
};
use crate::{
    locale::figure,
    t,
    text::{
        Role, Sanitized, Span, StyledLine,
        width::{self, cut, cut_start},
        wrap::wrap,
    },
};

/// Enough for the widest row, at four bytes a sign.
const LAST_BYTES: usize = 1200;

/// A stretch of thinking, whose text only grows.
pub struct ThinkingWidget<'a> {
    pub text: &'a str,
    /// Duration in milliseconds; `None` while it lasts.
    pub took_ms: Option<u64>,
    pub context: &'a RenderContext<'a>,
}

impl StatefulWidget for ThinkingWidget<'_> {
    type State = DocumentState;

    fn render(self, area: Rect, buf: &mut Buffer, state: &mut DocumentState) {
        let Self { text, took_ms, .. } = self;
        let fold = match self.context.fold {
            Fold::Full => Fold::Full,
            Fold::Folded | Fold::Usual => Fold::Folded,
        };
        let context = RenderContext {
            fold,
            ..self.context.of_width(area)
        };
        let key = Key {
            version: text.len() as u64,
            is_open: took_ms.is_none(),
            second: took_ms.unwrap_or_default(),
            ..Key::shape(&context)
        };
        state.bring_up_to_date(key, &context, |state, context| {
            let width = context.width;
            let head = head(text, took_ms, fold, width);
            let signed = state.sign(sign("·", Role::Faint), fold == Fold::Folded);
            let same = state.rows.first() == Some(&head);
            match state.rows.first_mut() {
                Some(first) => *first = head,
                None => state.rows.push(head),
            }
            if fold == Fold::Folded {
                state.rows.truncate(1);
                return (signed || !same).then_some(0);
            }
            let Memo { lines, reach, .. } = &mut state.memo;
            lines.take(reach.of(text, took_ms.is_none()), took_ms.is_none());
            let changed = lines.lay(&mut state.rows, 1, &[], |_, line, _| {
                wrap(&[Span::new(Sanitized::new(line), Role::Dim)], width, &[], &[])
            });
            Some(if signed || !same { 0 } else { changed })
        });
        state.draw(area, buf, &context);
    }
}

fn head(text: &str, took_ms: Option<u64>, fold: Fold, width: usize) -> StyledLine {
    match took_ms {
        Some(took) => {
            let words = match took {
                0 => Sanitized::literal(t!("thinking-over")),
                took => Sanitized::from(t!("thinking-took", time = figure::duration(took).as_str())),
            };
            line(&[Span::new(words, Role::Dim)], Facts::default(), width)
        }
        None if fold == Fold::Full => heading(t!("thinking-word"), &[], Facts::default(), width),
        None => {
            let name = t!("thinking-word");
            let room = width.saturating_sub(width::width(&word(name).text));
            heading(
                name,
                &[Span::new(last_words(text, room), Role::Dim)],
                Facts::default(),
                width,
            )
        }
    }
}

/// As many of the last words as fit.
fn last_words(text: &str, columns: usize) -> Sanitized {
    let text = text.trim_end();
    let start = text.floor_char_boundary(text.len().saturating_sub(LAST_BYTES));
    let line = Sanitized::line(text.get(start..).unwrap_or_default());
    let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if cut(&words, columns).len() == words.len() && start == 0 {
        return Sanitized::from(words);
    }
    let tail = cut_start(&words, columns);
    // What is left of the first word is no word.
    let tail = match tail.split_once(' ') {
        Some((_, rest)) if tail.starts_with('…') && !rest.is_empty() => format!("…{rest}"),
        Some(_) | None => tail,
    };
    Sanitized::from(tail)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{drawn, look};
    use super::*;

    const THOUGHT: &str =
        "The user wants one code per cart.\nSo the field is an Option, and the total has to apply it last.";

    fn shown(took_ms: Option<u64>, fold: Fold, width: usize) -> String {
        let widget = ThinkingWidget {
            text: THOUGHT,
            took_ms,
            context: &RenderContext { fold, ..look(width) },
        };
        drawn(widget, width)
    }

    #[test]
    fn thoughts() {
        let shown = [
            shown(None, Fold::Usual, 40),
            shown(None, Fold::Usual, 80),
            shown(Some(12_400), Fold::Usual, 40),
            shown(Some(0), Fold::Usual, 40),
            shown(None, Fold::Full, 40),
            shown(Some(12_400), Fold::Full, 40),
        ];
        insta::assert_snapshot!(shown.join("--\n"), @r#"
· thinking  …total has to apply it last.
--
· thinking  …cart. So the field is an Option, and the total has to apply it last.
--
· thought for 12 s
--
· thought
--
· thinking
  The user wants one code per cart.
  So the field is an Option, and the total
  has to apply it last.
--
· thought for 12 s
  The user wants one code per cart.
  So the field is an Option, and the total
  has to apply it last.
"#);
    }

    #[test]
    fn only_what_is_new_is_laid() {
        let mut state = DocumentState::default();
        let look = RenderContext {
            fold: Fold::Full,
            ..look(40)
        };
        let mut text = String::new();
        for at in 0..1000 {
            text.push_str("a line of it\n");
            let thinking = || ThinkingWidget {
                text: &text,
                took_ms: None,
                context: &look,
            };
            let changed = state.lay_out_widget(thinking(), 40);
            assert_eq!(changed, Some(if at == 0 { 0 } else { at + 1 }));
            assert_eq!(state.lay_out_widget(thinking(), 40), None);
        }
    }
}
