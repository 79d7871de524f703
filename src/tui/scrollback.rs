//! The conversation as lines in the terminal's own scrollback: they outlive the program, and the terminal's search and
//! selection work on them.

use std::ops::Range;

use ratatui::{buffer::Buffer, layout::Rect, widgets::Widget};

use super::{
    app::App,
    areas::MARGIN,
    glyph,
    terminal::{ansi_backend::print_row, strips::print_pictures, surface::Links},
    widgets::transcript::{Pane, TranscriptContext, VisibleLine, address},
    widgets::{
        MEASURE,
        styled_line::{StyledLineWidget, put_spans},
    },
};
use crate::{
    text::{Background, Role, Sanitized, Span, width},
    theme::Theme,
};

impl App {
    /// Prints the items that pass the filter as styled lines without cursor movement, for the terminal's own lines.
    pub fn printed(&mut self, items: Range<usize>) -> String {
        let columns = self.viewport.areas.columns.max(1);
        let gutter = self.viewport.areas.gutter;
        let theme = self.appearance.theme.clone();
        self.with_pane(|pane, context| {
            let context = TranscriptContext {
                // What is selected says which keys there are: nobody presses them there.
                has_focus: false,
                review_key: None,
                is_preview: false,
                builds_plans: false,
                ..*context
            };
            let mut text = String::new();
            let mut line = Buffer::empty(Rect::new(0, 0, columns as u16, 1));
            for at in items {
                print(pane, at, 0..usize::MAX, &context, gutter, &theme, &mut line, &mut text);
            }
            text
        })
    }

    /// Some rows of one item, in the same way; the gap above it stands before its first row.
    pub fn printed_rows(&mut self, at: usize, rows: Range<usize>) -> String {
        let columns = self.viewport.areas.columns.max(1);
        let gutter = self.viewport.areas.gutter;
        let theme = self.appearance.theme.clone();
        self.with_pane(|pane, context| {
            let context = TranscriptContext {
                has_focus: false,
                review_key: None,
                is_preview: false,
                builds_plans: false,
                ..*context
            };
            let (mut text, mut line) = (String::new(), Buffer::empty(Rect::new(0, 0, columns as u16, 1)));
            print(pane, at, rows, &context, gutter, &theme, &mut line, &mut text);
            text
        })
    }
}

#[expect(clippy::too_many_arguments, reason = "what stands on a line, and where")]
fn print(
    pane: &mut Pane,
    at: usize,
    rows: Range<usize>,
    context: &TranscriptContext<'_>,
    gutter: usize,
    theme: &Theme,
    line: &mut Buffer,
    text: &mut String,
) {
    let Some(item) = pane.items.get(at).copied() else {
        return;
    };
    let count = pane.rows_of(item, context).len();
    if count == 0 {
        return;
    }
    if rows.start == 0 {
        for _ in 0..pane.gap(at, context) {
            text.push_str("\r\n");
        }
    }
    // The gap looks at what stands before it.
    pane.rows_of(item, context);
    for row in rows.start..rows.end.min(count) {
        let Some((content, glyph)) = pane.row(&VisibleLine::StyledLine { item, row }) else {
            continue;
        };
        if content.is_picture() && !context.images.do_stay() {
            continue;
        }
        line.reset();
        let area = line.area;
        let mut put = |x: usize, width: usize, span: &Span| {
            let area = Rect {
                x: x as u16,
                width: width as u16,
                ..area
            };
            let spans = std::slice::from_ref(span);
            put_spans(line, area, spans, Background::Plain, theme, &mut Links::new());
        };
        if row == 0 && gutter >= 8 {
            let number = width::pad_start(&address(context.transcript, item), 5);
            put(0, 5, &Span::new(Sanitized::line(&number), Role::Faint));
        }
        if let Some(glyph) = glyph {
            put(gutter.saturating_sub(2), 2, &glyph::shown(glyph, context.has_nerd_font));
        }
        let line_widget = StyledLineWidget {
            line: content,
            under: Background::Plain,
            measure: MEASURE as u16,
            theme,
        };
        let content_area = Rect {
            x: gutter as u16,
            width: area.width.saturating_sub((gutter + MARGIN) as u16),
            ..area
        };
        Widget::render(line_widget, content_area, line);
        match context.images.strips() {
            Some(strips) if content.is_picture() => print_pictures(&mut line.content, strips, text),
            _ => {
                print_row(&mut line.content, text);
                text.push_str("\r\n");
            }
        }
    }
}
