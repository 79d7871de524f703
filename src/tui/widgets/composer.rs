//! The draft.

use ratatui::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};

use super::styled_line::put_spans;
use crate::{
    protocol::Mode,
    text::{Background, Role, Sanitized, Span, width},
    theme::Theme,
    tui::{areas::DRAFT, editor::field::Drawn, terminal::surface::Links},
};

/// Most rows of a draft; a third of a tall screen, if that is more.
pub const MOST_ROWS: u16 = 8;

/// The draft, or its placeholder.
pub struct ComposerWidget<'a> {
    /// `None`: the draft is empty.
    pub drawn: Option<&'a Drawn>,
    pub mode: Mode,
    /// Shown instead of an empty draft.
    pub placeholder: &'a str,
    pub theme: &'a Theme,
}

impl StatefulWidget for ComposerWidget<'_> {
    type State = Links;

    fn render(self, area: Rect, buf: &mut Buffer, links: &mut Links) {
        let mut put = |x: u16, spans: &[Span]| {
            let area = Rect {
                x: area.x + x,
                width: area.width.saturating_sub(x),
                ..area
            };
            put_spans(buf, area, spans, Background::Plain, self.theme, links);
        };
        // More of it stands above.
        let above = if self.drawn.is_some_and(|it| it.is_cut) {
            "↑"
        } else {
            " "
        };
        let sign = Span::new(Sanitized::literal("›"), role_of(self.mode));
        put(0, &[Span::new(Sanitized::literal(above), Role::Faint), sign]);
        let x = DRAFT as u16;
        match self.drawn {
            Some(drawn) => {
                let area = Rect {
                    x: area.x + x,
                    width: area.width.saturating_sub(x),
                    ..area
                };
                drawn.copy(area, buf);
            }
            None => {
                let columns = usize::from(area.width).saturating_sub(DRAFT + 1);
                put(
                    x,
                    &[Span::new(
                        Sanitized::new(fitting(self.placeholder, columns)),
                        Role::Faint,
                    )],
                );
            }
        }
    }
}

/// As many of a placeholder's parts, which two blanks separate, as fit into `columns`; of the first one its beginning.
fn fitting(text: &str, columns: usize) -> &str {
    let ends = text.match_indices("  ").map(|it| it.0).chain([text.len()]);
    let parts = ends.filter_map(|it| text.get(..it));
    let whole = parts.filter(|it| width::width(it) <= columns).last();
    whole.unwrap_or_else(|| width::cut(text, columns))
}

/// The role of a mode's name.
pub const fn role_of(mode: Mode) -> Role {
    match mode {
        Mode::Agent => Role::ModeAgent,
        Mode::Plan => Role::ModePlan,
        Mode::Ask => Role::ModeAsk,
        Mode::Debug => Role::ModeDebug,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::{editor::field::Field, widgets::testing::text_of};

    fn check(draft: &str, width: u16, height: u16, expected: &str) {
        let theme = Theme::built_in("sheaf-dark").unwrap();
        let mut field = Field::default();
        field.set(draft);
        let drawn = field.draw(width.saturating_sub(4), height, ratatui::style::Style::new());
        let widget = ComposerWidget {
            drawn: (!draft.is_empty()).then_some(&drawn),
            mode: Mode::Agent,
            placeholder: crate::t!("composer-placeholder"),
            theme: &theme,
        };
        assert_eq!(text_of(widget, width, height), expected);
    }

    #[test]
    fn the_draft_stands_behind_its_sign_and_says_that_more_is_above() {
        check("one\ntwo", 12, 2, " › one\n   two\n");
        check("one\ntwo\nthree", 12, 2, "↑› two\n   three\n");
        check("", 12, 1, " › Ask anyt\n");
        check("", 20, 1, " › Ask anything.\n");
        check("", 32, 1, " › Ask anything.  / commands\n");
        check("one", 1, 1, "↑\n");
    }
}
