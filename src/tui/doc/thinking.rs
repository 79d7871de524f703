//! What the model thinks before it speaks: one dim line, its whole text when it is unfolded.

use super::{
    Fold, Key, Look, Memo, Sheet,
    heading::{Facts, heading, line, sign, word},
};
use crate::{
    locale::figure,
    say,
    text::{
        Clean, Role, Row, Span,
        width::{self, cut, cut_start},
        wrap::wrap,
    },
};

/// Enough for the widest row, at four bytes a sign.
const LAST_BYTES: usize = 1200;

impl Sheet {
    /// Brings the rows of a stretch of thinking up to date, which only grows. `took_ms`: how long it was; `None` while
    /// it goes on. The first row that may have changed.
    pub fn think(&mut self, text: &str, took_ms: Option<u64>, look: &Look<'_>) -> Option<usize> {
        let fold = if look.fold == Fold::Full {
            Fold::Full
        } else {
            Fold::Folded
        };
        let key = Key {
            version: text.len() as u64,
            is_open: took_ms.is_none(),
            second: took_ms.unwrap_or_default(),
            ..Key::shape(&Look { fold, ..*look })
        };
        if !self.turns_to(key) {
            return None;
        }
        let width = look.width.max(1);
        let head = head(text, took_ms, fold, width);
        let signed = self.sign(sign("·", Role::Faint), fold == Fold::Folded);
        let same = self.rows.first() == Some(&head);
        if self.rows.is_empty() {
            self.rows.push(head);
        } else if let Some(first) = self.rows.first_mut() {
            *first = head;
        }
        if fold == Fold::Folded {
            self.rows.truncate(1);
            return (signed || !same).then_some(0);
        }
        let Memo { lines, reach, .. } = &mut self.memo;
        lines.take(reach.of(text, took_ms.is_none()), took_ms.is_none());
        let changed = lines.lay(&mut self.rows, 1, &[], |_, line, _| {
            wrap(&[Span::new(Clean::new(line), Role::Dim)], width, &[], &[])
        });
        Some(if signed || !same { 0 } else { changed })
    }
}

fn head(text: &str, took_ms: Option<u64>, fold: Fold, width: usize) -> Row {
    match took_ms {
        Some(took) => {
            let words = match took {
                0 => Clean::literal(say!("thinking-over")),
                took => Clean::from(say!("thinking-took", time = figure::duration(took).as_str())),
            };
            line(&[Span::new(words, Role::Dim)], Facts::default(), width)
        }
        None if fold == Fold::Full => heading(say!("thinking-word"), &[], Facts::default(), width),
        None => {
            let name = say!("thinking-word");
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
fn last_words(text: &str, columns: usize) -> Clean {
    let text = text.trim_end();
    let start = text.floor_char_boundary(text.len().saturating_sub(LAST_BYTES));
    let line = Clean::line(text.get(start..).unwrap_or_default());
    let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if cut(&words, columns).len() == words.len() && start == 0 {
        return Clean::from(words);
    }
    let tail = cut_start(&words, columns);
    // What is left of the first word is no word.
    let tail = match tail.split_once(' ') {
        Some((_, rest)) if tail.starts_with('…') && !rest.is_empty() => format!("…{rest}"),
        Some(_) | None => tail,
    };
    Clean::from(tail)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{look, paint};
    use super::*;

    const THOUGHT: &str =
        "The user wants one code per cart.\nSo the field is an Option, and the total has to apply it last.";

    fn shown(took_ms: Option<u64>, fold: Fold, width: usize) -> String {
        let mut sheet = Sheet::default();
        sheet.think(THOUGHT, took_ms, &Look { fold, ..look(width) });
        paint(&sheet, width)
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
        let mut sheet = Sheet::default();
        let look = Look {
            fold: Fold::Full,
            ..look(40)
        };
        let mut text = String::new();
        for at in 0..1000 {
            text.push_str("a line of it\n");
            let changed = sheet.think(&text, None, &look);
            assert_eq!(changed, Some(if at == 0 { 0 } else { at + 1 }));
            assert_eq!(sheet.think(&text, None, &look), None);
        }
    }
}
