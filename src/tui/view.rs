//! A frame: `measure` lays out what will be seen, `draw` renders the panes into the surface from the top to the bottom.
//!
//! Each pane is a widget with a version or, where lines move, a key for each line: both are made from what the widget
//! draws, and the surface renders only what has changed.

use std::{borrow::Cow, ops::Range};

use ratatui::{
    layout::Rect,
    widgets::{StatefulWidget, Widget},
};

use super::{
    app::{App, Focus, search::Search, selection::Selection},
    areas::{Demand, MARGIN},
    overlays::{Picker, Placement, Scene},
    terminal::{
        Surface,
        surface::{Links, mix},
    },
    widgets::{
        TYPING,
        bar::{Bar, BarWidget},
        composer::{self, ComposerWidget},
        footer, header,
        queue::QueueWidget,
        row_key,
        styled_line::{LinesWidget, put_spans},
        transcript::{Context, Item, Pane, TranscriptWidget, VisibleLine},
    },
};
use crate::{
    t,
    text::{Background, Modifier, Role, Sanitized, Span, StyledLine, width, wrap::wrap},
};

/// Columns and lines below which the screen says only that it is too small.
const LEAST: (u16, u16) = (20, 5);

/// The first column of the draft.
pub(super) const DRAFT: usize = 3;

/// Columns left free beside a page.
const PAGE_LEFT: usize = 3;

/// Cells of a line of the transcript that stand out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Light {
    /// Line, counted from the transcript's first one.
    pub line: usize,
    /// Columns, counted from the first one of the content.
    pub columns: Range<usize>,
    pub kind: Lit,
}

/// Reason why cells stand out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lit {
    /// The search found it.
    Found,
    /// It is what the search found last.
    Here,
    /// The mouse marked it.
    Marked,
}

impl Lit {
    /// The colours of such cells.
    pub fn look(self) -> (Role, Modifier, Background) {
        match self {
            Self::Found => (
                Role::Waiting,
                Modifier::UNDERLINE | Modifier::BOLD,
                Background::Selection,
            ),
            Self::Here => (Role::Waiting, Modifier::REVERSE | Modifier::BOLD, Background::Plain),
            Self::Marked => (Role::Text, Modifier::REVERSE, Background::Plain),
        }
    }
}

/// The bars around the transcript and the draft, which stay as they are while an answer only grows.
#[derive(Debug, Default)]
pub struct Bars {
    header: Bar,
    rule: Bar,
    above_footer: Bar,
    footer: Bar,
}

impl Bars {
    fn of(app: &App) -> Self {
        let columns = app.viewport.areas.columns;
        let margin = MARGIN as u16;
        let (place, state) = header::spans(app, columns.saturating_sub(2));
        let (keys, news, above) = footer::spans(app, columns.saturating_sub(3));
        Self {
            header: Bar::new(place, state, (1, margin)),
            rule: Bar::new(composer::rule(app, columns), Vec::new(), (0, 0)),
            above_footer: Bar::new(above, Vec::new(), (2, margin)),
            footer: Bar::new(keys, news, (2, margin)),
        }
    }
}

/// A framed list over the panes, with the cell of its first row's beginning.
struct Popup<'a> {
    rows: Cow<'a, [StyledLine]>,
    x: usize,
    y: usize,
}

impl Popup<'_> {
    /// The cells that it covers. One over nearly the whole width leaves no letters of what is below beside it.
    fn area(&self, columns: usize) -> Rect {
        let width = self.rows.iter().map(|it| width::spans_width(&it.spans)).max();
        let end = (self.x + width.unwrap_or_default()).min(columns);
        let is_nearly_whole = self.x <= PAGE_LEFT && columns - end <= PAGE_LEFT;
        let (x, end) = if is_nearly_whole { (0, columns) } else { (self.x, end) };
        Rect::new(x as u16, self.y as u16, (end - x) as u16, self.rows.len() as u16)
    }
}

impl App {
    pub(super) fn lay_out(&mut self) {
        let size @ (columns, height) = self.terminal.size;
        let is_inline = self.terminal.inline.as_ref().is_some_and(|it| !it.is_away);
        let most_rows = if is_inline {
            (height / 2).max(1)
        } else {
            composer::MOST_ROWS.max(height / 3).min(height / 2).max(1)
        };
        let is_beside = self.overlays.last().map(|it| it.placement()) == Some(Placement::Beside);
        let beside = match outline_place(usize::from(columns)) {
            // What is written into the terminal's own lines keeps all of the width.
            (1.., wide) if is_beside && self.terminal.inline.is_none() => wide,
            _ => 0,
        };
        self.viewport.areas.solve(Demand {
            size,
            draft_rows: self.composer.field.rows(columns.saturating_sub(4)).min(most_rows),
            queued: self.composer.said.len() + self.composer.queue.len(),
            beside,
            is_inline,
        });
    }

    /// Returns true if signs of a Nerd Font are wanted.
    pub fn has_nerd_font(&self) -> bool {
        self.preferences.settings.ui.glyphs == "nerd"
    }

    /// Everything that the looks of documents depend on.
    fn context(&self) -> Context<'_> {
        let workspace = &self.conversation.workspace;
        let has_links = self.preferences.settings.links;
        Context {
            transcript: &self.conversation.transcript,
            questions: &self.questions,
            colours: self.appearance.colours.as_ref(),
            colours_version: self.appearance.colours_version,
            now_ms: self.now_ms,
            width: self.viewport.areas.content(),
            show_thinking: self.appearance.show_thinking,
            has_focus: self.viewport.focus == Focus::Transcript,
            root: has_links.then(|| workspace.folder.to_str()).flatten(),
            images: &self.terminal.images,
            has_nerd_font: self.has_nerd_font(),
            theme: &self.appearance.theme,
        }
    }

    /// Calls `f` with the pane and everything that looks depend on.
    pub fn with_pane<R>(&mut self, f: impl FnOnce(&mut Pane, &Context<'_>) -> R) -> R {
        let mut pane = std::mem::take(&mut self.viewport.pane);
        let result = f(&mut pane, &self.context());
        self.viewport.pane = pane;
        result
    }

    /// Lays out what will be seen.
    pub fn measure(&mut self) {
        self.lay_out();
        let rows = usize::from(self.viewport.areas.transcript.height);
        // One blank line keeps the newest words off the rule.
        let height = match &self.terminal.inline {
            Some(inline) if !inline.is_away => inline.live.min(rows),
            Some(_) | None if self.terminal.size.1 >= 16 => rows.saturating_sub(1),
            Some(_) | None => rows,
        };
        let before = (self.viewport.pane.unseen, self.viewport.pane.follow);
        self.with_pane(|pane, context| pane.measure(context, height));
        self.send_images();
        if before != (self.viewport.pane.unseen, self.viewport.pane.follow) {
            self.viewport.bars = None;
        }
        let viewport = &mut self.viewport;
        viewport.lights.clear();
        if let Some(search) = &viewport.search {
            light_found(search, &viewport.pane, &mut viewport.lights);
        }
        if let Some(selection) = viewport.selection.filter(|it| !it.is_empty()) {
            light_marked(&selection, &viewport.pane, &mut viewport.lights);
        }
        let scene = Scene::of(&self.conversation, &self.questions, &self.appearance, self.now_ms);
        for overlay in self.overlays.iter_mut() {
            let columns = overlay_columns(overlay.placement(), self.viewport.areas.columns);
            overlay.lay_out(&scene, columns, rows);
        }
    }

    /// Draws the measured state; the bytes for the terminal are added to `out`.
    pub fn draw(&mut self, surface: &mut Surface, out: &mut Vec<u8>) {
        let Rect { width, height, .. } = surface.area();
        let least = match self.terminal.inline {
            Some(_) => LEAST.1.min(3),
            None => LEAST.1,
        };
        if width < LEAST.0 || height < least {
            self.draw_too_small(surface, out);
            return;
        }
        let plain = self
            .appearance
            .theme
            .style(Role::Text, Modifier::NONE, Background::Plain);
        let draft_rows = self.viewport.areas.composer.height;
        let drawn = self.composer.field.draw(width.saturating_sub(4), draft_rows, plain);
        let bars = self.viewport.bars.take().unwrap_or_else(|| Bars::of(self));
        let question = self
            .viewport
            .question(&self.conversation.transcript)
            .map(Item::Document);
        let mut pane = std::mem::take(&mut self.viewport.pane);
        let areas = &self.viewport.areas;
        let theme = &self.appearance.theme;
        let context = self.context();
        let popup = self.popup();
        let mut frame = surface.frame(self.appearance.look_version, self.terminal.images.strips());
        if let Some(popup) = &popup {
            let keys: Vec<u64> = popup.rows.iter().map(row_key::of_row).collect();
            frame.overlay(popup.area(areas.columns), &keys, |buf, links| {
                let area = Rect {
                    x: popup.x as u16,
                    width: (areas.columns - popup.x) as u16,
                    ..buf.area
                };
                LinesWidget {
                    lines: &popup.rows,
                    theme,
                }
                .render(area, buf, links);
            });
        }
        let is_header_first = areas.header.y < areas.transcript.y;
        let header = BarWidget {
            bar: &bars.header,
            theme,
        };
        if is_header_first {
            frame.pane(areas.header, header.bar.version, |buf| header.render(areas.header, buf));
        }
        let page = self.overlays.iter().rev().find(|it| it.placement() == Placement::Page);
        let lines = match page {
            Some(page) => Some((Cow::Borrowed(page.rows()), PAGE_LEFT)),
            None if pane.items.is_empty() => Some((Cow::Owned(self.welcome(&pane)), areas.gutter)),
            None => None,
        };
        if let Some((lines, left)) = lines {
            let keys: Vec<u64> = lines.iter().map(row_key::of_row).collect();
            frame.rows(areas.transcript, &keys, |at, row, buf, links| {
                let area = Rect {
                    x: left as u16,
                    width: row.width.saturating_sub((left + MARGIN + areas.beside) as u16),
                    ..row
                };
                let lines = lines.get(at..=at).unwrap_or_default();
                LinesWidget { lines, theme }.render(area, buf, links);
            });
        } else {
            let widget = TranscriptWidget {
                context: &context,
                lights: &self.viewport.lights,
                gutter: areas.gutter,
                beside: areas.beside,
                show_times: self.appearance.show_times && areas.columns >= 60,
                offset: 0,
            };
            frame.rows(areas.transcript, &widget.keys(&pane), |at, row, buf, links| {
                let widget = TranscriptWidget { offset: at, ..widget };
                widget.render(row, buf, &mut pane);
                links.append(&mut pane.take_links());
            });
        }
        let queue = QueueWidget {
            said: &self.composer.said,
            queue: &self.composer.queue,
            indent: areas.gutter.saturating_sub(5),
            theme,
        };
        frame.pane(areas.queue, queue.version(areas.queue.height), |buf| {
            queue.render(areas.queue, buf);
        });
        let rule = BarWidget { bar: &bars.rule, theme };
        frame.pane(areas.rule, rule.bar.version, |buf| rule.render(areas.rule, buf));
        let version = mix(self.composer.field.version(), self.composer.mode as u64);
        let answer = question.and_then(|it| self.caret_of_answer(&pane, it));
        let caret = self.caret(popup.as_ref(), answer, drawn.caret);
        let draft = ComposerWidget {
            drawn: (!self.composer.field.is_empty()).then_some(&drawn),
            mode: self.composer.mode,
            theme,
        };
        frame.pane(areas.composer, version, |buf| draft.render(areas.composer, buf));
        for (area, bar) in [(areas.above_footer, &bars.above_footer), (areas.footer, &bars.footer)] {
            frame.pane(area, bar.version, |buf| BarWidget { bar, theme }.render(area, buf));
        }
        if !is_header_first {
            let header = BarWidget {
                bar: &bars.header,
                theme,
            };
            frame.pane(areas.header, header.bar.version, |buf| header.render(areas.header, buf));
        }
        frame.finish(caret, out);
        drop(popup);
        self.viewport.pane = pane;
        self.viewport.bars = Some(bars);
    }

    fn draw_too_small(&self, surface: &mut Surface, out: &mut Vec<u8>) {
        let area = Rect {
            height: 1,
            ..surface.area()
        };
        let mut frame = surface.frame(self.appearance.look_version, None);
        frame.pane(area, 0, |buf| {
            let span = [Span::new(Sanitized::literal(t!("view-too-small")), Role::Text)];
            put_spans(
                buf,
                area,
                &span,
                Background::Plain,
                &self.appearance.theme,
                &mut Links::new(),
            );
        });
        frame.finish(None, out);
    }

    /// The list that lies over the panes: the top overlay that is one, else what is offered for the draft.
    fn popup(&self) -> Option<Popup<'_>> {
        let areas = &self.viewport.areas;
        let rule = usize::from(areas.rule.y);
        let lines = usize::from(areas.transcript.height);
        let above_rule = |rows: Cow<'_, [StyledLine]>| (rule.saturating_sub(rows.len()), 2);
        let overlay = self.overlays.iter().rev().find(|it| it.placement() != Placement::Page);
        let columns = |most| overlay_columns(Placement::Popup(most), areas.columns);
        let rows: Cow<'_, [StyledLine]> = if let Some(overlay) = overlay {
            if overlay.placement() == Placement::Beside {
                return Some(Popup {
                    rows: overlay.rows().into(),
                    x: outline_place(areas.columns).0,
                    y: usize::from(areas.transcript.y),
                });
            }
            overlay.rows().into()
        } else if !self.overlays.is_empty() {
            return None;
        } else if let Some(mention) = self.composer.mention.as_ref().filter(|it| it.is_shown()) {
            let title = if mention.is_documents {
                t!("mention-documents")
            } else if mention.offers.iter().any(|it| !it.about.is_empty()) {
                t!("mention-files-and-code")
            } else {
                t!("mention-files")
            };
            let list = Picker::files(title, &mention.offers, mention.at);
            list.framed(columns(76), lines).into()
        } else {
            self.composer.commands.shown()?.framed(columns(90), lines).into()
        };
        let (y, x) = above_rule(Cow::Borrowed(&rows));
        Some(Popup { rows, x, y })
    }

    /// Column and line of the caret; `None` where nothing is typed. `answer` is the caret inside a question,
    /// `draft` that inside the draft.
    fn caret(&self, popup: Option<&Popup<'_>>, answer: Option<(u16, u16)>, draft: (u16, u16)) -> Option<(u16, u16)> {
        let areas = &self.viewport.areas;
        // Wherever something is typed the terminal's own caret stands: an input method writes there.
        if let Some(overlay) = self.overlays.last() {
            let (left, top) = popup.map_or((PAGE_LEFT, usize::from(areas.transcript.y)), |it| (it.x, it.y));
            let (x, y) = overlay.caret(overlay_columns(overlay.placement(), areas.columns))?;
            return Some(((left + x) as u16, (top + y) as u16));
        }
        if self.viewport.focus != Focus::Composer {
            return answer;
        }
        Some((draft.0 + DRAFT as u16, draft.1 + areas.composer.y))
    }

    /// Returns where an answer in the user's own words is being typed.
    fn caret_of_answer(&self, pane: &Pane, question: Item) -> Option<(u16, u16)> {
        let areas = &self.viewport.areas;
        (areas.transcript.y..).zip(&pane.lines).find_map(|(y, shown)| {
            let (row, _) = pane.row(shown).filter(|_| shown.item() == Some(question))?;
            let before = row.spans.iter().position(|it| it.text.as_str() == TYPING)?;
            let column = width::spans_width(row.spans.get(..before)?);
            Some(((areas.gutter + column) as u16, y))
        })
    }

    /// The rows that are shown where no conversation is yet.
    fn welcome(&self, pane: &Pane) -> Vec<StyledLine> {
        let areas = &self.viewport.areas;
        let columns = areas.columns.saturating_sub(areas.gutter + MARGIN);
        if !pane.filter.is_empty() && !self.conversation.transcript.exchanges.is_empty() {
            let text = t!("filter-nothing", filter = pane.filter.words());
            let text = [Span::new(Sanitized::line(&text), Role::Dim)];
            return std::iter::once(StyledLine::blank())
                .chain(wrap(&text, columns, &[], &[]))
                .collect();
        }
        if self.conversation.transcript.is_running() {
            return Vec::new();
        }
        let line = |spans: Vec<Span>| StyledLine::of(spans);
        let text = |text: &str, role| Span::new(Sanitized::line(text), role);
        let about = &self.conversation.about;
        let who = match self.composer.model_name(about) {
            Some(model) if about.peer.is_empty() => model.to_owned(),
            Some(model) => format!("{model}  {}", about.peer),
            None => about.peer.clone(),
        };
        let mut rows = vec![
            StyledLine::blank(),
            line(vec![
                text("sheaf ", Role::Strong).bold(),
                text(env!("CARGO_PKG_VERSION"), Role::Faint),
            ]),
        ];
        if !who.is_empty() {
            rows.push(line(vec![text(&who, Role::Dim)]));
        }
        for problem in &self.preferences.problems {
            rows.push(StyledLine::blank());
            for part in problem.lines() {
                // What names a file, a line and the right name is of no use when half of it is cut.
                let words = part.trim_start_matches(' ');
                let indent = [Span::new(
                    Sanitized::new(&" ".repeat(part.len() - words.len())),
                    Role::Waiting,
                )];
                rows.extend(wrap(&[text(words, Role::Waiting)], columns, &indent, &indent));
            }
        }
        rows
    }
}

/// Lights the cells in view that the search found.
fn light_found(search: &Search, pane: &Pane, lights: &mut Vec<Light>) {
    let mut shown = pane.lines.iter().enumerate().peekable();
    while let Some((line, it)) = shown.next() {
        let VisibleLine::StyledLine { item, row } = *it else {
            continue;
        };
        let mut last = row;
        while let Some((_, VisibleLine::StyledLine { row, .. })) =
            shown.next_if(|(_, it)| matches!(it, VisibleLine::StyledLine { item: of, .. } if *of == item))
        {
            last = *row;
        }
        let Some(state) = pane.state(item) else {
            continue;
        };
        // What is broken over the edge of the view is read as a whole.
        let mut first = row;
        while first > 0 && state.rows.get(first).is_some_and(|it| it.continues) {
            first -= 1;
        }
        let mut end = last + 1;
        while state.rows.get(end).is_some_and(|it| it.continues) {
            end += 1;
        }
        let rows = state.rows.get(first..end).unwrap_or_default();
        let found = search.needle.occurrences(rows);
        // Counting those above is only needed in the item where the reader is.
        let here = search.at.filter(|it| it.0 == item).map(|(_, n)| {
            let above = state.rows.get(..first).unwrap_or_default();
            n.wrapping_sub(search.needle.occurrences(above).len())
        });
        for (n, occurrence) in found.into_iter().enumerate() {
            let kind = if here == Some(n) { Lit::Here } else { Lit::Found };
            for (at, columns) in occurrence {
                let at = first + at;
                if (row..=last).contains(&at) {
                    let line = line + (at - row);
                    lights.push(Light { line, columns, kind });
                }
            }
        }
    }
}

/// Lights the cells in view that the mouse has marked.
fn light_marked(selection: &Selection, pane: &Pane, lights: &mut Vec<Light>) {
    let Some(marked) = selection.marked(pane) else { return };
    for (line, it) in pane.lines.iter().enumerate() {
        if let VisibleLine::StyledLine { item, row } = it
            && let Some(columns) = marked.columns(pane, *item, *row)
        {
            let kind = Lit::Marked;
            lights.push(Light { line, columns, kind });
        }
    }
}

/// The columns of an overlay on a screen of so many.
fn overlay_columns(placement: Placement, columns: usize) -> usize {
    match placement {
        Placement::Page => columns.saturating_sub(PAGE_LEFT + MARGIN),
        Placement::Popup(most) => columns.saturating_sub(4).min(most),
        Placement::Beside => outline_place(columns).1,
    }
}

/// The first column of the outline, and how wide it is: beside the conversation where there is room for both.
fn outline_place(columns: usize) -> (usize, usize) {
    if columns < 100 {
        return (0, columns);
    }
    let wide = (columns * 2 / 5).clamp(44, 72);
    (columns - wide, wide)
}
