//! A line with a left and a right end: the header, the footer, the rule above the draft.

use std::hash::Hasher;

use ratatui::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};
use rustc_hash::FxHasher;

use super::{row_key::hash_spans, styled_line::put_spans};
use crate::{
    text::{Background, Span, width::spans_width},
    theme::Theme,
    tui::terminal::surface::Links,
};

/// The content of a bar.
#[derive(Debug, Default)]
pub struct Bar {
    pub left: Vec<Span>,
    /// Left out where the left part leaves no room for it.
    pub right: Vec<Span>,
    /// Columns left free at both ends.
    pub padding: (u16, u16),
    /// A hash of both parts.
    pub version: u64,
}

impl Bar {
    pub fn new(left: Vec<Span>, right: Vec<Span>, padding: (u16, u16)) -> Self {
        let mut hasher = FxHasher::default();
        hash_spans(&left, &mut hasher);
        hash_spans(&right, &mut hasher);
        Self {
            left,
            right,
            padding,
            version: hasher.finish(),
        }
    }
}

/// The bars around the transcript and the draft, which stay as they are while an answer only grows.
#[derive(Debug, Default)]
pub struct Bars {
    pub earlier: Bar,
    pub header: Bar,
    /// The lines below the header.
    pub status: Vec<Bar>,
    pub trust: Bar,
    pub rule: Bar,
    pub above_footer: Bar,
    pub footer: Bar,
}

/// Draws a bar into the first row of its area.
#[derive(Clone, Copy)]
pub struct BarWidget<'a> {
    pub bar: &'a Bar,
    pub theme: &'a Theme,
}

impl StatefulWidget for BarWidget<'_> {
    type State = Links;

    fn render(self, area: Rect, buf: &mut Buffer, links: &mut Links) {
        let Bar {
            left, right, padding, ..
        } = self.bar;
        let area = Rect {
            x: area.x + padding.0,
            width: area.width.saturating_sub(padding.0 + padding.1),
            ..area
        };
        let mut put = |x: u16, spans: &[Span]| {
            let width = area.right().saturating_sub(x);
            let area = Rect { x, width, ..area };
            put_spans(buf, area, spans, Background::Plain, self.theme, links)
        };
        let end = put(area.x, left);
        let at = area.right().saturating_sub(spans_width(right) as u16);
        if at > end || left.is_empty() {
            put(at, right);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Role, Sanitized};

    fn check(left: &'static str, right: &'static str, width: u16, expected: &str) {
        let spans = |text| vec![Span::new(Sanitized::literal(text), Role::Text)];
        let bar = Bar::new(spans(left), spans(right), (1, 1));
        let theme = Theme::built_in("sheaf-dark").unwrap();
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, 1));
        BarWidget {
            bar: &bar,
            theme: &theme,
        }
        .render(buffer.area, &mut buffer, &mut Links::new());
        let shown: String = buffer.content.iter().map(ratatui::buffer::Cell::symbol).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_right_end_gives_way_to_the_left_one() {
        check("left", "right", 14, " left   right ");
        check("left", "right", 12, " left right ");
        check("left", "right", 11, " left      ");
        check("left", "right", 4, " le ");
        check("left", "right", 1, " ");
    }
}
