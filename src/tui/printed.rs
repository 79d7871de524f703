//! The conversation as lines of the terminal's own: there they outlive the program, and the terminal's search and
//! selection work on them.

use std::ops::Range;

use super::{
    app::App,
    glyph,
    paint::{self, Line},
    pane::{
        Item,
        transcript::{Context, Pane, Shown, address},
    },
    view::MARGIN,
};
use crate::{
    text::{Clean, Ground, Role, Row, Span, width},
    theme::Theme,
};

impl App {
    /// What the filter lets through, from its first line to its last, in colours and without any movement of the cursor.
    pub fn printed(&mut self, items: Range<usize>) -> String {
        let columns = self.layout.columns.max(1);
        let gutter = self.layout.gutter;
        let theme = self.theme.clone();
        self.with_pane(|pane, context| {
            let context = Context {
                // What is selected says which keys there are: nobody presses them there.
                has_focus: false,
                ..*context
            };
            let mut text = String::new();
            let mut line = Line::blank(columns);
            for at in items {
                print(pane, at, 0..usize::MAX, &context, gutter, &theme, &mut line, &mut text);
            }
            text
        })
    }

    /// Some rows of one item, in the same way; the gap above it stands before its first row.
    pub fn printed_rows(&mut self, at: usize, rows: Range<usize>) -> String {
        let columns = self.layout.columns.max(1);
        let gutter = self.layout.gutter;
        let theme = self.theme.clone();
        self.with_pane(|pane, context| {
            let context = Context {
                has_focus: false,
                ..*context
            };
            let (mut text, mut line) = (String::new(), Line::blank(columns));
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
    context: &Context<'_>,
    gutter: usize,
    theme: &Theme,
    line: &mut Line,
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
        let Some((content, glyph)) = pane.row(&Shown::Row { item, row }) else {
            continue;
        };
        if content.is_picture() && !context.images.do_stay() {
            continue;
        }
        line.reset();
        if row == 0 && gutter >= 8 {
            number(line, context, item, theme);
        }
        if let Some(glyph) = glyph {
            let glyph = glyph::shown(glyph, context.has_nerd_font);
            let glyph = std::slice::from_ref(&*glyph);
            line.put(gutter.saturating_sub(2), gutter, glyph, Ground::Plain, theme);
        }
        put(line, gutter, content, theme);
        match context.images.strips() {
            Some(strips) if content.is_picture() => paint::print_pictures(line, strips, text),
            _ => {
                paint::line::print(line, text);
                text.push_str("\r\n");
            }
        }
    }
}

fn number(line: &mut Line, context: &Context<'_>, item: Item, theme: &Theme) {
    let number = width::pad_start(&address(context.transcript, item), 5);
    line.put(
        0,
        5,
        &[Span::new(Clean::line(&number), Role::Faint)],
        Ground::Plain,
        theme,
    );
}

fn put(line: &mut Line, x: usize, row: &Row, theme: &Theme) {
    let limit = line.width().saturating_sub(MARGIN).max(x.min(line.width()));
    line.ground(x.min(limit)..limit, row.ground, theme);
    let end = line.put(x, limit, &row.spans, row.ground, theme);
    let at = limit.saturating_sub(width::spans_width(&row.facts));
    if !row.facts.is_empty() && line.width() >= 40 && at > end {
        line.put(at, limit, &row.facts, row.ground, theme);
    }
}
