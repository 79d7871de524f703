//! The screen as a picture of the state: `measure` fills caches, `draw` only reads.

use std::{
    hash::{Hash, Hasher},
    ops::Range,
};

use super::{
    app::{App, Focus},
    doc::TYPING,
    field::Drawn,
    glyph,
    layer::{Layer, Picker},
    paint::{
        Frame, Line, Screen,
        key::{Quick, hash_row, hash_spans},
    },
    pane::{
        Pane, composer, footer, header,
        transcript::{Context, Shown, address},
    },
};
use crate::{
    locale::figure,
    say,
    text::{Clean, Ground, Mark, Role, Row, Span, width, wrap::wrap},
};

/// Below this the screen says only that it is too small.
const LEAST: (usize, usize) = (20, 5);

/// The first column of the draft.
pub(super) const DRAFT: usize = 3;

/// Columns left free beside a page.
const PAGE_LEFT: usize = 3;

/// Columns left free at the right.
pub(super) const MARGIN: usize = 1;

/// Which lines belong to what, from the top.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    pub transcript: Range<usize>,
    pub queue: Range<usize>,
    pub rule: usize,
    pub composer: Range<usize>,
    pub footer: Option<usize>,
    /// Where things stand: model, context, what holds commands.
    pub header: Option<usize>,
    /// Columns before the content: address and glyph.
    pub gutter: usize,
    pub columns: usize,
    /// Columns at the right that the outline has for itself.
    pub beside: usize,
}

/// Cells of a line of the transcript that stand out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Light {
    /// Counted from the transcript's first line.
    pub line: usize,
    /// From the first column of the content.
    pub columns: Range<usize>,
    pub kind: Lit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lit {
    /// The search found it.
    Found,
    /// It is what the search found last.
    Here,
    /// The mouse marked it.
    Marked,
}

impl Layout {
    /// Columns of content.
    pub fn content(&self) -> usize {
        self.columns.saturating_sub(self.gutter + MARGIN + self.beside).max(1)
    }
}

impl App {
    pub fn layout(&self) -> Layout {
        self.layout.clone()
    }

    pub(super) fn lay_out(&mut self) {
        let (columns, height) = (usize::from(self.size.0), usize::from(self.size.1));
        if self.inline.as_ref().is_some_and(|it| !it.is_away) {
            self.lay_out_inline(columns, height);
            return;
        }
        let spacious = height >= 16;
        let footer = (height >= 8).then(|| height - 1);
        let below = usize::from(footer.is_some()) + usize::from(spacious);
        let most = composer::MOST_ROWS
            .max((height / 3) as u16)
            .min((height / 2) as u16)
            .max(1);
        let rows = self.composer.field.rows(self.size.0.saturating_sub(4)).min(most);
        let end = height - below.min(height);
        let start = end.saturating_sub(usize::from(rows));
        let rule = start.saturating_sub(1);
        let waiting = self.composer.said.len() + self.composer.queue.len();
        let queued = waiting.min(3).min(rule.saturating_sub(4));
        let gutter = if columns >= 60 { 8 } else { 3 };
        self.layout = Layout {
            transcript: 1.min(rule)..rule - queued.min(rule),
            queue: rule - queued.min(rule)..rule,
            rule,
            composer: start..end,
            footer,
            header: Some(0),
            gutter,
            columns,
            beside: self.beside(columns),
        };
    }

    /// The columns of an outline that stands beside the conversation. What is written into the terminal's own lines keeps
    /// all of the width.
    fn beside(&self, columns: usize) -> usize {
        let is_outline = matches!(self.layers.last(), Some(Layer::Outline(_)));
        match outline_place(columns) {
            (left, wide) if is_outline && left > 0 && self.inline.is_none() => wide,
            _ => 0,
        }
    }

    /// Only what lives: nothing is left free, and how things stand is said below everything.
    fn lay_out_inline(&mut self, columns: usize, height: usize) {
        let gutter = if columns >= 60 { 8 } else { 3 };
        let end = height.saturating_sub(2).max(1);
        let most = (height / 2).max(1) as u16;
        let rows = self.composer.field.rows(self.size.0.saturating_sub(4)).min(most);
        let start = end.saturating_sub(usize::from(rows).max(1));
        let rule = start.saturating_sub(1);
        let waiting = self.composer.said.len() + self.composer.queue.len();
        let queued = waiting.min(3).min(rule);
        self.layout = Layout {
            transcript: 0..rule - queued,
            queue: rule - queued..rule,
            rule,
            composer: start..end,
            footer: (height >= 4).then(|| height - 2),
            header: (height >= 4).then(|| height - 1),
            gutter,
            columns,
            beside: 0,
        };
    }

    /// Whether signs of a Nerd Font are wanted.
    pub fn has_nerd_font(&self) -> bool {
        self.settings.ui.glyphs == "nerd"
    }

    /// Calls `f` with the pane and everything that looks depend on.
    pub fn with_pane<R>(&mut self, f: impl FnOnce(&mut Pane, &Context<'_>) -> R) -> R {
        let mut pane = std::mem::take(&mut self.pane);
        let context = Context {
            transcript: &self.transcript,
            asking: &self.asking,
            colours: self.colours.as_ref(),
            colours_version: self.colours_version,
            now_ms: self.now_ms,
            width: self.layout.content(),
            show_thinking: self.show_thinking,
            has_focus: self.focus == Focus::Transcript,
            root: self.settings.links.then(|| self.place.workspace.to_str()).flatten(),
            images: &self.images,
            has_nerd_font: self.has_nerd_font(),
        };
        let result = f(&mut pane, &context);
        self.pane = pane;
        result
    }

    /// Lays out what will be seen.
    pub fn measure(&mut self) {
        self.lay_out();
        let height = self.layout.transcript.len();
        // One blank line keeps the newest words off the rule.
        let height = match &self.inline {
            Some(inline) if !inline.is_away => inline.live.min(height),
            Some(_) | None if self.size.1 >= 16 => height.saturating_sub(1),
            Some(_) | None => height,
        };
        let before = (self.pane.unseen, self.pane.follow);
        self.with_pane(|pane, context| pane.measure(context, height));
        self.send_images();
        if before != (self.pane.unseen, self.pane.follow) {
            self.chrome = None;
        }
        self.light();
        let rows = self.layout.transcript.len();
        let columns = self.layout.columns.saturating_sub(PAGE_LEFT + MARGIN);
        for layer in &mut self.layers {
            match layer {
                Layer::Page(page) => page.lay_out(columns, rows),
                Layer::Inspector(it) => it.lay_out(&self.transcript, columns, rows),
                Layer::Sessions(it) => it.lay_out(columns, rows),
                Layer::Outline(outline) => {
                    let (_, wide) = outline_place(self.layout.columns);
                    outline.lay_out(&self.transcript, wide, rows);
                }
                Layer::Review(review) => {
                    let look = crate::tui::layer::review_look(
                        &self.transcript,
                        self.colours.as_ref(),
                        self.colours_version,
                        self.now_ms,
                    );
                    review.lay_out(&self.transcript, &self.asking.picks, &look, columns, rows);
                }
                Layer::Rewind(it) => it.lay_out(columns, rows),
                Layer::Branches(it) => it.lay_out(&self.transcript, columns, rows),
                Layer::Picker(_) | Layer::Prompt(_) | Layer::Waiting(_) => {}
            }
        }
    }

    /// Finds the cells in view that stand out.
    fn light(&mut self) {
        self.lights.clear();
        if let Some(search) = &self.search {
            let mut shown = self.pane.lines.iter().enumerate().peekable();
            while let Some((line, it)) = shown.next() {
                let Shown::Row { item, row } = *it else { continue };
                let mut last = row;
                while let Some((_, Shown::Row { row, .. })) =
                    shown.next_if(|(_, it)| matches!(it, Shown::Row { item: of, .. } if *of == item))
                {
                    last = *row;
                }
                let Some(sheet) = self.pane.sheet(item) else { continue };
                // What is broken over the edge of the view is read as a whole.
                let mut first = row;
                while first > 0 && sheet.rows.get(first).is_some_and(|it| it.continues) {
                    first -= 1;
                }
                let mut end = last + 1;
                while sheet.rows.get(end).is_some_and(|it| it.continues) {
                    end += 1;
                }
                let rows = sheet.rows.get(first..end).unwrap_or_default();
                let found = search.needle.occurrences(rows);
                // Counting those above is only needed in the item where the reader is.
                let here = search.at.filter(|it| it.0 == item).map(|(_, n)| {
                    let above = sheet.rows.get(..first).unwrap_or_default();
                    n.wrapping_sub(search.needle.occurrences(above).len())
                });
                for (n, occurrence) in found.into_iter().enumerate() {
                    let kind = if here == Some(n) { Lit::Here } else { Lit::Found };
                    for (at, columns) in occurrence {
                        let at = first + at;
                        if (row..=last).contains(&at) {
                            let line = line + (at - row);
                            self.lights.push(Light { line, columns, kind });
                        }
                    }
                }
            }
        }
        if let Some(selection) = self.selection.filter(|it| !it.is_empty()) {
            let marked = selection.marked(&self.pane);
            for (line, it) in self.pane.lines.iter().enumerate() {
                if let Shown::Row { item, row } = it
                    && let Some(columns) = marked.as_ref().and_then(|it| it.columns(&self.pane, *item, *row))
                {
                    let kind = Lit::Marked;
                    self.lights.push(Light { line, columns, kind });
                }
            }
        }
    }

    /// Paints the measured state into the screen; the bytes go to `out`.
    pub fn draw(&mut self, screen: &mut Screen, out: &mut Vec<u8>) {
        let (columns, height) = (screen.width(), screen.height());
        let least = if self.inline.is_some() { LEAST.1.min(3) } else { LEAST.1 };
        if columns < LEAST.0 || height < least {
            draw_too_small(self, screen, out);
            return;
        }
        let style = self.theme.style(Role::Text, Mark::NONE, Ground::Plain);
        let rows = self.layout.composer.len() as u16;
        let drawn = self
            .composer
            .field
            .draw((columns as u16).saturating_sub(4), rows, style);
        let chrome = self.chrome.take().unwrap_or_else(|| Chrome::of(self));
        let app = &*self;
        let picture = Picture::of(app, &chrome, drawn);
        let keys: Vec<u64> = (0..height).map(|y| picture.key(y)).collect();
        let frame = Frame {
            keys: &keys,
            region: app.layout.transcript.clone(),
            caret: picture.caret(),
            strips: app.images.strips(),
        };
        screen.show(&frame, out, &mut |y, line| picture.paint(y, line));
        drop(picture);
        self.chrome = Some(chrome);
    }
}

/// Everything that is about to be seen, ready to be hashed and painted line by line.
struct Picture<'a> {
    app: &'a App,
    drawn: Drawn,
    page: Option<(&'a [Row], usize)>,
    /// Rows of a picker and the line they begin at.
    picker: Option<(Vec<Row>, usize, usize)>,
    welcome: Vec<Row>,
    chrome: &'a Chrome,
}

/// The lines around the transcript and the draft. They stay as they are while an answer only grows.
#[derive(Default)]
pub struct Chrome {
    header: (Vec<Span>, Vec<Span>),
    rule: Vec<Span>,
    footer: (Vec<Span>, Vec<Span>, Vec<Span>),
    /// Keys of header, rule, footer and the line above it.
    keys: [u64; 4],
}

impl Chrome {
    fn of(app: &App) -> Self {
        let columns = app.layout.columns;
        let mut chrome = Self {
            header: header::spans(app, columns.saturating_sub(2)),
            rule: composer::rule(app, columns),
            footer: footer::spans(app, columns.saturating_sub(3)),
            keys: [0; 4],
        };
        let key = |parts: &[&[Span]]| {
            let mut hasher = Quick::default();
            for part in parts {
                hash_spans(part, &mut hasher);
            }
            hasher.finish()
        };
        chrome.keys = [
            key(&[&chrome.header.0, &chrome.header.1]),
            key(&[&chrome.rule]),
            key(&[&chrome.footer.0, &chrome.footer.1]),
            key(&[&chrome.footer.2]),
        ];
        chrome
    }
}

impl<'a> Picture<'a> {
    fn of(app: &'a App, chrome: &'a Chrome, drawn: Drawn) -> Self {
        let layout = &app.layout;
        let mut page = None;
        let mut picker = None;
        for layer in &app.layers {
            match layer {
                Layer::Page(it) => page = Some((it.rows.as_slice(), it.top)),
                Layer::Review(it) => page = Some((it.rows.as_slice(), 0)),
                Layer::Rewind(it) => page = Some((it.rows.as_slice(), 0)),
                Layer::Branches(it) => page = Some((it.rows.as_slice(), 0)),
                Layer::Inspector(it) => page = Some((it.rows.as_slice(), 0)),
                Layer::Sessions(it) => page = Some((it.rows.as_slice(), 0)),
                Layer::Picker(it) => {
                    let wide = layout.columns.saturating_sub(4).min(90);
                    let rows = it.rows(wide, layout.transcript.len());
                    let top = layout.rule.saturating_sub(rows.len());
                    picker = Some((rows, top, 2));
                }
                Layer::Waiting(it) => {
                    let rows = it.rows(layout.columns.saturating_sub(4).min(90));
                    let top = layout.rule.saturating_sub(rows.len());
                    picker = Some((rows, top, 2));
                }
                Layer::Outline(it) => {
                    let (left, _) = outline_place(layout.columns);
                    picker = Some((it.rows.clone(), layout.transcript.start, left));
                }
                Layer::Prompt(it) => {
                    let wide = layout.columns.saturating_sub(4).min(76);
                    let rows = it.rows(wide);
                    let top = layout.rule.saturating_sub(rows.len());
                    picker = Some((rows, top, 2));
                }
            }
        }
        if app.layers.is_empty()
            && let Some(list) = app.composer.commands.shown()
        {
            let rows = list.rows(layout.columns.saturating_sub(4).min(90), layout.transcript.len());
            let top = layout.rule.saturating_sub(rows.len());
            picker = Some((rows, top, 2));
        }
        if app.layers.is_empty()
            && let Some(mention) = app.composer.mention.as_ref().filter(|it| it.is_shown())
        {
            let wide = layout.columns.saturating_sub(4).min(76);
            let title = if mention.is_documents {
                say!("mention-documents")
            } else if mention.about.iter().any(|it| !it.is_empty()) {
                say!("mention-files-and-code")
            } else {
                say!("mention-files")
            };
            let rows =
                Picker::files(title, &mention.files, &mention.about, mention.at).rows(wide, layout.transcript.len());
            let top = layout.rule.saturating_sub(rows.len());
            picker = Some((rows, top, 2));
        }
        let welcome = if app.pane.items.is_empty() {
            welcome(app)
        } else {
            Vec::new()
        };
        Self {
            app,
            drawn,
            page,
            picker,
            welcome,
            chrome,
        }
    }

    /// What identifies the line at `y`; equal keys paint equal lines.
    fn key(&self, y: usize) -> u64 {
        let mut hasher = Quick::default();
        self.app.look_version.hash(&mut hasher);
        let layout = &self.app.layout;
        if let Some((rows, top, _)) = &self.picker
            && let Some(row) = y.checked_sub(*top).and_then(|it| rows.get(it))
        {
            3.hash(&mut hasher);
            hash_row(row, &mut hasher);
        }
        if layout.transcript.contains(&y) {
            let at = y - layout.transcript.start;
            if let Some((rows, top)) = self.page {
                match rows.get(top + at) {
                    Some(row) => hash_row(row, &mut hasher),
                    None => return 1,
                }
            } else if self.app.pane.items.is_empty() {
                match self.welcome.get(at) {
                    Some(row) => hash_row(row, &mut hasher),
                    None if self.picker.is_none() => return 1,
                    None => {}
                }
            } else {
                match self.app.pane.lines.get(at) {
                    Some(shown @ Shown::Row { item, row }) => {
                        let Some((key, glyph)) = self.app.pane.row_key(shown) else {
                            return 1;
                        };
                        key.hash(&mut hasher);
                        layout.beside.hash(&mut hasher);
                        glyph.map(|it| (it.text.as_str(), it.role, it.mark)).hash(&mut hasher);
                        if *row == 0 {
                            address(&self.app.transcript, *item).hash(&mut hasher);
                            self.is_selected(*item).hash(&mut hasher);
                            if let Some((times, _)) = self.times_at(at) {
                                times.as_str().hash(&mut hasher);
                            }
                        }
                        for light in self.app.lights.iter().filter(|it| it.line == at) {
                            (&light.columns, light.kind).hash(&mut hasher);
                        }
                    }
                    Some(Shown::Blank) if self.app.show_times => {
                        5.hash(&mut hasher);
                        if let Some((times, _)) = self.times_at(at) {
                            times.as_str().hash(&mut hasher);
                        }
                    }
                    Some(Shown::Blank) | None if self.picker.is_none() => return 1,
                    Some(Shown::Blank) | None => {}
                }
            }
            return hasher.finish().max(2);
        }
        y.hash(&mut hasher);
        if Some(y) == layout.header {
            self.chrome.keys[0].hash(&mut hasher);
        } else if layout.queue.contains(&y) {
            self.queued(y).hash(&mut hasher);
        } else if y == layout.rule {
            self.chrome.keys[1].hash(&mut hasher);
        } else if layout.composer.contains(&y) {
            (
                self.app.composer.field.version(),
                self.app.mode,
                layout.composer.clone(),
            )
                .hash(&mut hasher);
            (self.app.focus == Focus::Composer).hash(&mut hasher);
        } else if Some(y) == layout.footer {
            self.chrome.keys[2].hash(&mut hasher);
        } else if self.is_above_footer(y) {
            self.chrome.keys[3].hash(&mut hasher);
        }
        hasher.finish().max(2)
    }

    fn caret(&self) -> Option<(u16, u16)> {
        let layout = &self.app.layout;
        let wide = layout.columns.saturating_sub(4);
        let (left, top) = self
            .picker
            .as_ref()
            .map_or((PAGE_LEFT, layout.transcript.start), |it| (it.2, it.1));
        // Wherever something is typed the terminal's own caret stands: an input method writes there.
        let place = match self.app.layers.last() {
            Some(Layer::Prompt(it)) => Some(it.caret(wide.min(76))),
            Some(Layer::Picker(it)) => Some((it.caret(wide.min(90)), 0)),
            Some(Layer::Outline(it)) => Some((it.caret(outline_place(layout.columns).1), 0)),
            Some(Layer::Sessions(it)) => Some((it.caret(layout.columns.saturating_sub(PAGE_LEFT + MARGIN)), 0)),
            Some(
                Layer::Page(_)
                | Layer::Waiting(_)
                | Layer::Review(_)
                | Layer::Rewind(_)
                | Layer::Branches(_)
                | Layer::Inspector(_),
            ) => return None,
            None => None,
        };
        if let Some((x, y)) = place {
            return Some(((left + x) as u16, (top + y) as u16));
        }
        if self.app.focus != Focus::Composer {
            return self.caret_of_answer();
        }
        let (x, y) = self.drawn.caret;
        Some((x + 3, y + self.app.layout.composer.start as u16))
    }

    /// The line that is free between the draft and the footer.
    fn is_above_footer(&self, y: usize) -> bool {
        y >= self.app.layout.composer.end && Some(y + 1) == self.app.layout.footer
    }

    /// Where an answer in the user's own words is being typed.
    fn caret_of_answer(&self) -> Option<(u16, u16)> {
        let app = self.app;
        let question = super::pane::Item::Document(app.question()?);
        app.pane.lines.iter().enumerate().find_map(|(at, shown)| {
            let (row, _) = app.pane.row(shown).filter(|_| shown.item() == Some(question))?;
            let before = row.spans.iter().position(|it| it.text.as_str() == TYPING)?;
            let column = width::spans_width(row.spans.get(..before)?);
            Some((
                (app.layout.gutter + column) as u16,
                (app.layout.transcript.start + at) as u16,
            ))
        })
    }

    fn paint(&self, y: usize, line: &mut Line) {
        let app = self.app;
        let layout = &app.layout;
        let columns = line.width();
        if layout.transcript.contains(&y) {
            self.paint_transcript(y - layout.transcript.start, line);
        } else if Some(y) == layout.header {
            let (left, right) = &self.chrome.header;
            put_both(line, 1, left, right, app);
        } else if layout.queue.contains(&y) {
            let (word, text, more) = self.queued(y);
            let x = layout.gutter.saturating_sub(5);
            let taken = x + width::width(&word) + width::width(&more) + MARGIN;
            let text = width::cut_end(&text, columns.saturating_sub(taken));
            let spans = [
                Span::new(word, Role::Faint),
                Span::new(Clean::line(&text), Role::Dim),
                Span::new(more, Role::Faint),
            ];
            line.put(x, columns, &spans, Ground::Plain, &app.theme);
        } else if y == layout.rule {
            line.put(0, columns, &self.chrome.rule, Ground::Plain, &app.theme);
        } else if layout.composer.contains(&y) {
            self.paint_composer(y - layout.composer.start, line);
        } else if Some(y) == layout.footer {
            let (left, right, _) = &self.chrome.footer;
            put_both(line, 2, left, right, app);
        } else if self.is_above_footer(y) {
            put_both(line, 2, &self.chrome.footer.2, &[], app);
        }
        if let Some((rows, top, x)) = &self.picker
            && let Some(row) = y.checked_sub(*top).and_then(|it| rows.get(it))
        {
            let end = *x + width::spans_width(&row.spans);
            // A list over the whole width leaves no letters of what is below beside it.
            if *x <= PAGE_LEFT && columns.saturating_sub(end) <= PAGE_LEFT {
                let blank =
                    |from: usize, to: usize| Span::new(Clean::new(&" ".repeat(to.saturating_sub(from))), Role::Text);
                line.put(0, columns, &[blank(0, *x)], Ground::Plain, &app.theme);
                line.put(end, columns, &[blank(end, columns)], Ground::Plain, &app.theme);
            }
            line.put(*x, columns, &row.spans, Ground::Plain, &app.theme);
        }
    }

    fn paint_composer(&self, row: usize, line: &mut Line) {
        let app = self.app;
        if row == 0 {
            let role = super::layer::role_of(app.mode);
            // More of it stands above.
            let above = Clean::literal(if self.drawn.is_cut { "↑" } else { " " });
            let sign = [Span::new(above, Role::Faint), Span::new(Clean::literal("›"), role)];
            line.put(0, line.width(), &sign, Ground::Plain, &app.theme);
        }
        if app.composer.field.is_empty() {
            let text = width::cut(say!("composer-placeholder"), line.width().saturating_sub(4));
            line.put(
                3,
                line.width(),
                &[Span::new(Clean::new(text), Role::Faint)],
                Ground::Plain,
                &app.theme,
            );
        } else {
            self.drawn.row(row as u16, 3, line);
        }
    }

    fn paint_transcript(&self, at: usize, line: &mut Line) {
        let app = self.app;
        let gutter = app.layout.gutter;
        if let Some((rows, top)) = self.page {
            if let Some(row) = rows.get(top + at) {
                put_row(line, PAGE_LEFT, row, Ground::Plain, app);
            }
            return;
        }
        if app.pane.items.is_empty() {
            if let Some(row) = self.welcome.get(at) {
                put_row(line, gutter, row, Ground::Plain, app);
            }
            return;
        }
        if let Some((times, true)) = self.times_at(at) {
            let limit = line.width().saturating_sub(app.layout.beside);
            let x = limit.saturating_sub(MARGIN + width::width(&times));
            line.put(x, limit, &[Span::new(times, Role::Dim)], Ground::Plain, &app.theme);
        }
        let Some(shown @ Shown::Row { item, row }) = app.pane.lines.get(at) else {
            return;
        };
        let Some((content, glyph)) = app.pane.row(shown) else {
            return;
        };
        let ground = if *row == 0 && self.is_selected(*item) {
            Ground::Selection
        } else {
            Ground::Plain
        };
        line.ground(0..line.width(), ground, &app.theme);
        if *row == 0 && gutter >= 8 {
            let text = width::pad_start(&address(&app.transcript, *item), 5);
            let span = Span::new(Clean::line(&text), Role::Faint);
            line.put(0, 5, &[span], ground, &app.theme);
        }
        if let Some(glyph) = glyph {
            let glyph = glyph::shown(glyph, app.has_nerd_font());
            line.put(gutter - 2, gutter, std::slice::from_ref(&*glyph), ground, &app.theme);
        }
        if let Some((times, false)) = self.times_at(at) {
            let mut timed = content.clone();
            if !timed.facts.is_empty() {
                timed.facts.push(Span::new(Clean::literal("   "), Role::Dim));
            }
            timed.facts.push(Span::new(times, Role::Dim));
            put_row(line, gutter, &timed, ground, app);
        } else {
            put_row(line, gutter, content, ground, app);
        }
        for light in app.lights.iter().filter(|it| it.line == at) {
            let end = gutter + width::spans_width(&content.spans);
            let end = end.min(line.width().saturating_sub(MARGIN));
            let columns = light.columns.start.saturating_add(gutter)..light.columns.end.saturating_add(gutter).min(end);
            match light.kind {
                Lit::Found => line.light(
                    columns,
                    Role::Waiting,
                    Mark::UNDERLINE | Mark::BOLD,
                    Ground::Selection,
                    &app.theme,
                ),
                Lit::Here => line.light(
                    columns,
                    Role::Waiting,
                    Mark::REVERSE | Mark::BOLD,
                    Ground::Plain,
                    &app.theme,
                ),
                Lit::Marked => line.light(columns, Role::Text, Mark::REVERSE, Ground::Plain, &app.theme),
            }
        }
    }

    /// What is said about time on a line: of the document that begins there, or, where its first row is full, of the one
    /// that begins on the next line (then `true`).
    fn times_at(&self, at: usize) -> Option<(Clean, bool)> {
        let app = self.app;
        if !app.show_times || app.layout.columns < 60 {
            return None;
        }
        let begins = |at: usize| match app.pane.lines.get(at) {
            Some(shown @ Shown::Row { item, row: 0 }) => {
                let (row, _) = app.pane.row(shown)?;
                let taken = width::spans_width(&row.spans) + width::spans_width(&row.facts) + 6;
                Some((app.times(*item)?, taken))
            }
            Some(Shown::Row { .. } | Shown::Blank) | None => None,
        };
        let is_full = |(times, taken): &(Clean, usize)| taken + width::width(times) > app.layout.content();
        match app.pane.lines.get(at)? {
            Shown::Row { .. } => begins(at).filter(|it| !is_full(it)).map(|it| (it.0, false)),
            Shown::Blank => begins(at + 1).filter(is_full).map(|it| (it.0, true)),
        }
    }

    fn is_selected(&self, item: super::pane::Item) -> bool {
        self.app.focus == Focus::Transcript && self.app.pane.selected == Some(item)
    }

    /// What waits in the line at `y`: how, what it says, and how many wait that are not shown.
    fn queued(&self, y: usize) -> (String, String, String) {
        let composer = &self.app.composer;
        let at = y - self.app.layout.queue.start;
        let (next, queued) = (say!("queue-next"), say!("queue-queued"));
        let wide = width::width(next).max(width::width(queued)) + 2;
        let said = composer.said.iter().map(|it| (next, it));
        let queue = composer.queue.iter().map(|it| (queued, &it.message.content));
        let count = composer.said.len() + composer.queue.len();
        let Some((word, text)) = said.chain(queue).nth(at) else {
            return <(String, String, String)>::default();
        };
        let word = width::pad(word, wide);
        let text = text.replace('\n', " ");
        let hidden = count.saturating_sub(self.app.layout.queue.len());
        let more = if hidden > 0 && at + 1 == self.app.layout.queue.len() {
            format!("  {}", say!("queue-more", count = hidden))
        } else {
            String::new()
        };
        (word, text, more)
    }
}

impl App {
    /// When an item began and how long it took, as far as that is known.
    fn times(&self, item: super::pane::Item) -> Option<Clean> {
        let super::pane::Item::Document(place) = item else {
            return None;
        };
        let document = self.transcript.get(place)?;
        let began = clock(document.started_ms)?;
        let took = document.ended_ms.checked_sub(document.started_ms).filter(|it| *it > 0);
        Some(Clean::line(&match took {
            Some(took) => format!("{began}  {:>6}", figure::duration(took).as_str()),
            None => format!("{began}        "),
        }))
    }
}

/// Hours, minutes and seconds of the user's own clock.
fn clock(at_ms: u64) -> Option<String> {
    let time = chrono::DateTime::from_timestamp_millis(i64::try_from(at_ms).ok()?)?;
    Some(time.with_timezone(&chrono::Local).format("%H:%M:%S").to_string())
}

/// The first column of the outline, and how wide it is: beside the conversation where there is room for both.
fn outline_place(columns: usize) -> (usize, usize) {
    if columns < 100 {
        return (0, columns);
    }
    let wide = (columns * 2 / 5).clamp(44, 72);
    (columns - wide, wide)
}

fn put_row(line: &mut Line, x: usize, row: &Row, ground: Ground, app: &App) {
    let limit = line.width().saturating_sub(MARGIN + app.layout.beside);
    let under = if ground == Ground::Plain { row.ground } else { ground };
    line.ground(x..limit, row.ground, &app.theme);
    let end = line.put(x, limit, &row.spans, under, &app.theme);
    if line.width() >= 40 && !row.facts.is_empty() {
        let wants = width::spans_width(&row.facts);
        let at = limit.saturating_sub(wants);
        if at > end {
            line.put(at, limit, &row.facts, under, &app.theme);
        }
    }
}

fn put_both(line: &mut Line, x: usize, left: &[Span], right: &[Span], app: &App) {
    let limit = line.width().saturating_sub(MARGIN);
    let end = line.put(x, limit, left, Ground::Plain, &app.theme);
    let at = limit.saturating_sub(width::spans_width(right));
    if at > end || left.is_empty() {
        line.put(at, limit, right, Ground::Plain, &app.theme);
    }
}

/// What stands where no conversation is yet.
fn welcome(app: &App) -> Vec<Row> {
    let columns = app.layout.columns.saturating_sub(app.layout.gutter + MARGIN);
    if !app.pane.filter.is_empty() && !app.transcript.exchanges.is_empty() {
        let text = say!("filter-nothing", filter = app.pane.filter.words());
        let text = [Span::new(Clean::line(&text), Role::Dim)];
        return std::iter::once(Row::blank())
            .chain(wrap(&text, columns, &[], &[]))
            .collect();
    }
    if app.transcript.is_running() {
        return Vec::new();
    }
    let line = |spans: Vec<Span>| Row::of(spans);
    let text = |text: &str, role| Span::new(Clean::line(text), role);
    let who = app.model_name().map_or_else(
        || app.about.peer.clone(),
        |model| {
            if app.about.peer.is_empty() {
                model.to_owned()
            } else {
                format!("{model}  {}", app.about.peer)
            }
        },
    );
    let mut rows = vec![
        Row::blank(),
        line(vec![
            text("sheaf ", Role::Strong).bold(),
            text(env!("CARGO_PKG_VERSION"), Role::Faint),
        ]),
    ];
    if !who.is_empty() {
        rows.push(line(vec![text(&who, Role::Dim)]));
    }
    for problem in &app.problems {
        rows.push(Row::blank());
        for part in problem.lines() {
            // What names a file, a line and the right name is of no use when half of it is cut.
            let words = part.trim_start_matches(' ');
            let indent = [Span::new(
                Clean::new(&" ".repeat(part.len() - words.len())),
                Role::Waiting,
            )];
            rows.extend(wrap(&[text(words, Role::Waiting)], columns, &indent, &indent));
        }
    }
    rows
}

fn draw_too_small(app: &App, screen: &mut Screen, out: &mut Vec<u8>) {
    let keys: Vec<u64> = (0..screen.height())
        .map(|y| if y == 0 { 3 + app.look_version } else { 1 })
        .collect();
    let frame = Frame {
        keys: &keys,
        region: 0..0,
        caret: None,
        strips: None,
    };
    screen.show(&frame, out, &mut |y, line| {
        if y == 0 {
            let span = Span::new(Clean::literal(say!("view-too-small")), Role::Text);
            line.put(0, line.width(), &[span], Ground::Plain, &app.theme);
        }
    });
}
