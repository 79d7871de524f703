//! The messages that wait, one on a line above the draft.

use std::hash::{Hash, Hasher};

use ratatui::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};
use rustc_hash::FxHasher;

use super::styled_line::put_spans;
use crate::{
    protocol::Submit,
    t,
    text::{Background, Role, Sanitized, Span, width},
    theme::Theme,
    tui::{areas::MARGIN, terminal::surface::Links},
};

/// As many messages as its area has lines; the last line says how many more there are.
pub struct QueueWidget<'a> {
    /// Messages to the running answer that it has not read yet.
    pub said: &'a [String],
    /// Messages for the next turns.
    pub queue: &'a [Submit],
    /// Columns before the first word.
    pub indent: usize,
    pub theme: &'a Theme,
}

impl<'a> QueueWidget<'a> {
    /// Returns a hash of all that it shows on so many lines.
    pub fn version(&self, lines: u16) -> u64 {
        let mut hasher = FxHasher::default();
        (self.said.len(), self.queue.len(), self.indent).hash(&mut hasher);
        self.texts()
            .take(usize::from(lines))
            .for_each(|it| it.1.hash(&mut hasher));
        hasher.finish()
    }

    /// The messages, each with the word for how it waits.
    fn texts(&self) -> impl Iterator<Item = (&'static str, &'a str)> {
        let said = self.said.iter().map(|it| (t!("queue-next"), it.as_str()));
        let queue = self.queue.iter();
        said.chain(queue.map(|it| (t!("queue-queued"), it.message.content.as_str())))
    }
}

impl StatefulWidget for QueueWidget<'_> {
    type State = Links;

    fn render(self, area: Rect, buf: &mut Buffer, links: &mut Links) {
        let columns = usize::from(area.width);
        let wide = width::width(t!("queue-next")).max(width::width(t!("queue-queued"))) + 2;
        let hidden = (self.said.len() + self.queue.len()).saturating_sub(usize::from(area.height));
        for (row, (word, text)) in area.rows().zip(self.texts()) {
            let is_last = row.y + 1 == area.bottom();
            let more = match hidden {
                count @ 1.. if is_last => format!("  {}", t!("queue-more", count = count)),
                _ => String::new(),
            };
            let taken = self.indent + wide + width::width(&more) + MARGIN;
            let text = width::cut_end(&text.replace('\n', " "), columns.saturating_sub(taken));
            let spans = [
                Span::new(width::pad(word, wide), Role::Faint),
                Span::new(Sanitized::line(&text), Role::Dim),
                Span::new(more, Role::Faint),
            ];
            let row = Rect {
                x: area.x + self.indent as u16,
                width: area.width.saturating_sub(self.indent as u16),
                ..row
            };
            put_spans(buf, row, &spans, Background::Plain, self.theme, links);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::widgets::testing::text_of;

    #[test]
    fn the_last_line_says_how_many_more_wait() {
        let theme = Theme::built_in("sheaf-dark").unwrap();
        let said = ["one".to_owned(), "two\nlines".to_owned(), "three".to_owned()];
        let draw = |width, height| {
            let widget = QueueWidget {
                said: &said,
                queue: &[],
                indent: 3,
                theme: &theme,
            };
            text_of(widget, width, height)
        };
        assert_eq!(draw(40, 3), "   next    one\n   next    two lines\n   next    three\n");
        assert_eq!(draw(40, 2), "   next    one\n   next    two lines  (and 1 more)\n");
        assert_eq!(draw(1, 3), "\n\n\n");
    }
}
