//! The conversation as a list of items, of which only those in view are laid out.
//!
//! The view is anchored to an item and a row inside it, never to a distance from the top, so changes elsewhere do not move
//! it. It follows the end only while the end is in view.

use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
    hash::{Hash, Hasher},
    ops::Range,
};

use ratatui::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};
use rustc_hash::{FxHashMap, FxHasher};

use crate::{
    locale::figure,
    protocol::{Document, DocumentId, FinishReason, Kind, ResponseChange, Turn},
    text::{Background, Colours, Modifier, Role, Sanitized, Span, StyledLine, diff::ContextLines, width},
    theme::Theme,
    transcript::{
        DocumentIndex, Exchange, ExchangeChange, Transcript,
        approved::{approvals_of, is_action, is_followed, is_told_before},
        has_done_something,
    },
    tui::{
        areas::MARGIN,
        glyph,
        image::Images,
        terminal::surface::{BLANK, Links},
        widgets::{
            self, ActionWidget, Citation, DocumentState, DocumentWidget, EndingWidget, Fold, Form, MEASURE,
            MessageWidget, RenderContext, ThinkingWidget,
            filter::Filter,
            row_key,
            styled_line::{fill, light, put_spans},
        },
    },
};

pub use super::item::Item;

/// Maximum number of states kept beyond those in view, and of rows in all of them: a row costs many times its text.
const KEPT: usize = 600;
const KEPT_ROWS: usize = 10_000;

/// A line of the pane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisibleLine {
    Blank,
    StyledLine { item: Item, row: usize },
}

impl VisibleLine {
    pub fn item(&self) -> Option<Item> {
        match self {
            Self::StyledLine { item, .. } => Some(*item),
            Self::Blank => None,
        }
    }
}

/// Looked into for every line of every frame; what the keys are is decided here and by nobody else.
type ByItem<T> = FxHashMap<Item, T>;

/// Everything that looks depend on besides the documents.
pub struct TranscriptContext<'a> {
    pub transcript: &'a Transcript,
    /// The answers that are being given, by turn and document.
    pub forms: &'a HashMap<(Turn, DocumentId), Form>,
    /// The disk's text where documents cite it.
    pub cited: &'a HashMap<(Turn, DocumentId), Citation>,
    pub colours: &'a dyn Colours,
    pub colours_version: u64,
    pub now_ms: u64,
    /// Columns of content.
    pub width: usize,
    pub show_thinking: bool,
    pub has_focus: bool,
    /// Unchanged lines around each change.
    pub context_lines: usize,
    /// Lines of a command's output that stand for it.
    pub output_rows: usize,
    pub root: Option<&'a str>,
    pub images: &'a Images,
    pub has_nerd_font: bool,
    pub theme: &'a Theme,
    /// The key that opens the review of changes; `None` where none does.
    pub review_key: Option<String>,
    /// It is not the open conversation: no key tries anything of it again.
    pub is_preview: bool,
    /// A plan waits that can be built.
    pub builds_plans: bool,
}

/// The state of the transcript's widget: its items, their rows, and the part in view.
#[derive(Default)]
pub struct Pane {
    pub items: Vec<Item>,
    pub selected: Option<Item>,
    /// The selected todo of the selected plan.
    pub todo: Option<usize>,
    /// Documents that opened while the reader was elsewhere.
    pub unseen: usize,
    pub follow: Following,
    /// The filter of the items; an empty one passes all.
    pub filter: Filter,
    states: ByItem<CachedRows>,
    folds: ByItem<Fold>,
    anchor: Anchor,
    /// The lines from the top, as of the last `measure`.
    pub lines: Vec<VisibleLine>,
    size: PaneSize,
    work: Work,
}

/// Columns of content and lines in view, as of the last `measure`.
#[derive(Default)]
struct PaneSize {
    width: usize,
    height: usize,
}

/// Counters of the work that was done, and what is left of it.
#[derive(Default)]
struct Work {
    /// Times that an item was looked at to be laid out.
    laid_out: u64,
    /// Times that something was done to the pane; nothing that looks depend on changes in between.
    round: u64,
    /// Rows in all states. Removed states may still count.
    rows: usize,
    /// Links of the lines that were drawn last.
    links: Links,
}

/// The widget of an item, whatever it is; one that is not there any more stays as it was.
struct ItemWidget<'a> {
    item: Item,
    context: &'a TranscriptContext<'a>,
    render: &'a RenderContext<'a>,
}

impl StatefulWidget for ItemWidget<'_> {
    type State = DocumentState;

    fn render(self, area: Rect, buf: &mut Buffer, state: &mut DocumentState) {
        let Self { item, render, .. } = self;
        let transcript = self.context.transcript;
        let Some(exchange) = transcript.exchanges.get(item.exchange()) else {
            return;
        };
        match item {
            Item::Message(_) => {
                if let Some(message) = &exchange.message {
                    let widget = MessageWidget {
                        message,
                        time: &Sanitized::new(&local_time(exchange.at_ms, "%H:%M").unwrap_or_default()),
                        context: render,
                    };
                    widget.render(area, buf, state);
                }
            }
            Item::Thinking(_, at) => {
                if let Some(thinking) = exchange.response.thinking.get(at) {
                    let widget = ThinkingWidget {
                        text: &thinking.text,
                        took_ms: took_ms(exchange, at),
                        context: render,
                    };
                    widget.render(area, buf, state);
                }
            }
            Item::Ending(_) => {
                if let Some(ending) = &exchange.response.ending {
                    let documents = &exchange.response.documents;
                    let is_error = |it: &Document| it.kind == Kind::Error;
                    let widget = EndingWidget {
                        exchange,
                        // What broke the stream off is the last thing in it; an error before that was another one.
                        has_error: match ending.finish_reason {
                            FinishReason::Interrupted => documents.last().is_some_and(is_error),
                            _ => documents.iter().any(is_error),
                        },
                        review_key: self.context.review_key.as_deref(),
                        context: render,
                    };
                    widget.render(area, buf, state);
                }
            }
            Item::Action(_, at) => {
                if let Some(action) = exchange.actions.get(at) {
                    ActionWidget {
                        action,
                        context: render,
                    }
                    .render(area, buf, state);
                }
            }
            Item::Document(place) => {
                if let Some(document) = transcript.get(place) {
                    let context = render;
                    DocumentWidget { document, context }.render(area, buf, state);
                }
            }
        }
    }
}

/// Returns the length of a stretch of thinking in milliseconds; `None` while it goes on.
fn took_ms(exchange: &Exchange, at: usize) -> Option<u64> {
    let response = &exchange.response;
    let before = response.thinking.get(at)?.before;
    let is_last = at + 1 == response.thinking.len();
    if is_last && response.is_running() && before == response.documents.len() {
        return None;
    }
    let ended = response
        .documents
        .get(before)
        .map_or(exchange.last_ms, |it| it.started_ms);
    Some(ended.saturating_sub(if at == 0 { exchange.at_ms } else { ended }))
}

/// The state of an item's widget with the keys of its rows.
#[derive(Default)]
struct CachedRows {
    state: DocumentState,
    keys: Vec<u64>,
    /// When it was brought up to date.
    round: u64,
}

impl CachedRows {
    /// Works out the keys of the rows from `first` on.
    fn rekey(&mut self, first: Option<usize>) {
        if let Some(first) = first {
            self.keys.truncate(first);
            let rows = self.state.rows.iter().skip(self.keys.len());
            self.keys.extend(rows.map(row_key::of_row));
        }
    }
}

/// The part of the conversation that stays in view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Following {
    #[default]
    End,
    /// Anchored; goes back to following when the end comes into view.
    Here,
    /// Anchored, whatever is in view: the reader walks through documents.
    Pinned,
}

/// The first line in view: a line of an item, the blank line above it counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Anchor {
    item: usize,
    line: usize,
}

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

/// The lines in view: address, glyph, the row of the item's own widget, times, and what stands out.
#[derive(Clone, Copy)]
pub struct TranscriptWidget<'a> {
    pub context: &'a TranscriptContext<'a>,
    pub lights: &'a [Light],
    /// Columns before the content.
    pub gutter: usize,
    /// Columns at the right that the outline has for itself.
    pub beside: usize,
    /// Each document shows when it began and how long it took.
    pub show_times: bool,
    /// Line that is drawn first, counted from the first in view.
    pub offset: usize,
}

/// Everything that a line shows.
#[derive(Default)]
struct LineView<'p, 'a> {
    /// The item, the row of it, and the row's key; `None` on a blank line.
    row: Option<(Item, usize, u64)>,
    address: Option<String>,
    glyph: Option<&'p Span>,
    is_selected: bool,
    /// Times of the document that begins here; on a blank line, of the one that begins below and has no room for them.
    times: Option<Sanitized>,
    lights: Vec<&'a Light>,
}

impl LineView<'_, '_> {
    fn key(&self, beside: usize) -> u64 {
        let mut hasher = FxHasher::default();
        (self.row.map(|it| it.2), beside, &self.address, self.is_selected).hash(&mut hasher);
        let glyph = self.glyph.map(|it| (it.text.as_str(), it.role, it.modifier));
        (glyph, self.times.as_ref().map(Sanitized::as_str)).hash(&mut hasher);
        for light in &self.lights {
            (&light.columns, light.kind).hash(&mut hasher);
        }
        hasher.finish().max(BLANK + 1)
    }
}

impl<'a> TranscriptWidget<'a> {
    /// Returns a key for each line in view; lines with equal keys look the same.
    pub fn keys(&self, pane: &Pane) -> Vec<u64> {
        let lines = (0..pane.lines.len()).map(|at| self.line(pane, at));
        lines.map(|it| it.map_or(BLANK, |it| it.key(self.beside))).collect()
    }

    /// Returns what a line in view shows; `None` if that is nothing.
    fn line<'p>(&self, pane: &'p Pane, at: usize) -> Option<LineView<'p, 'a>> {
        let shown = pane.lines.get(at)?;
        let VisibleLine::StyledLine { item, row } = *shown else {
            let times = self.times_of(pane, at + 1).filter(|it| it.1)?.0;
            return Some(LineView {
                times: Some(times),
                ..LineView::default()
            });
        };
        let (key, glyph) = pane.row_key(shown)?;
        let is_first = row == 0;
        Some(LineView {
            row: Some((item, row, key)),
            address: (is_first && self.gutter >= 8).then(|| address(self.context.transcript, item)),
            glyph,
            is_selected: is_first && self.context.has_focus && pane.selected == Some(item),
            times: self.times_of(pane, at).filter(|it| !it.1).map(|it| it.0),
            lights: self.lights.iter().filter(|it| it.line == at).collect(),
        })
    }

    /// When the document that begins on a line began, and how long it took; true if its first row has no room for that.
    fn times_of(&self, pane: &Pane, at: usize) -> Option<(Sanitized, bool)> {
        let shown = pane.lines.get(at).filter(|_| self.show_times)?;
        let VisibleLine::StyledLine {
            item: Item::Document(place),
            row: 0,
        } = *shown
        else {
            return None;
        };
        let (row, _) = pane.row(shown)?;
        let document = self.context.transcript.get(place)?;
        let began = local_time(document.started_ms, "%H:%M:%S")?;
        let took = document.ended_ms.checked_sub(document.started_ms).filter(|it| *it > 0);
        let times = Sanitized::line(&match took {
            Some(took) => format!("{began}  {:>6}", figure::duration(took).as_str()),
            None => format!("{began}        "),
        });
        let taken = width::spans_width(&row.spans) + width::spans_width(&row.facts) + 6;
        let is_full = taken + width::width(&times) > self.context.width;
        Some((times, is_full))
    }
}

impl StatefulWidget for TranscriptWidget<'_> {
    type State = Pane;

    fn render(self, area: Rect, buf: &mut Buffer, pane: &mut Pane) {
        let theme = self.context.theme;
        pane.work.links.clear();
        for (at, area) in (self.offset..).zip(area.rows()) {
            let Some(line) = self.line(pane, at) else { continue };
            let part = |columns: std::ops::Range<usize>| {
                let end = columns.end.min(usize::from(area.width));
                let start = columns.start.min(end);
                Rect {
                    x: area.x + start as u16,
                    width: (end - start) as u16,
                    ..area
                }
            };
            let mut put = |columns, span: &Span, under| {
                let spans = std::slice::from_ref(span);
                put_spans(buf, part(columns), spans, under, theme, &mut Links::new());
            };
            let Some((item, row, _)) = line.row else {
                let times = Span::new(line.times.unwrap_or_default(), Role::Dim);
                let edge = self.gutter + MEASURE + MARGIN;
                let limit = usize::from(area.width).saturating_sub(self.beside).min(edge);
                let x = limit.saturating_sub(MARGIN + width::width(&times.text));
                put(x..limit, &times, Background::Plain);
                continue;
            };
            let under = if line.is_selected {
                Background::Selection
            } else {
                Background::Plain
            };
            fill(buf, area, under, theme);
            let mut put = |columns, span: &Span| {
                let spans = std::slice::from_ref(span);
                put_spans(buf, part(columns), spans, under, theme, &mut Links::new());
            };
            if let Some(address) = &line.address {
                let number = Sanitized::line(&width::pad_start(address, 5));
                put(0..5, &Span::new(number, Role::Faint));
            }
            if let Some(glyph) = line.glyph {
                let glyph = glyph::shown(glyph, self.context.has_nerd_font);
                put(self.gutter - 2..self.gutter, &glyph);
            }
            let (times, lights) = (line.times, line.lights);
            let Some(render) = pane.render_context(item, self.context) else {
                continue;
            };
            let Some(CachedRows { state, .. }) = pane.states.get_mut(&item) else {
                continue;
            };
            state.offset = row;
            let widget = ItemWidget {
                item,
                context: self.context,
                render: &RenderContext {
                    times: times.as_ref(),
                    ..render
                },
            };
            widget.render(part(self.gutter..self.gutter + self.context.width), buf, state);
            pane.work.links.append(&mut state.links);
            let end = state.rows.get(row).map_or(0, |it| width::spans_width(&it.spans)) + self.gutter;
            let end = end.min(usize::from(area.width).saturating_sub(MARGIN));
            for lit in lights {
                let start = lit.columns.start.saturating_add(self.gutter);
                let area = part(start..lit.columns.end.saturating_add(self.gutter).min(end));
                let (role, modifier, background) = lit.kind.look();
                light(buf, area, role, modifier, background, theme);
            }
        }
    }
}

impl Pane {
    /// Takes the links of the lines that were drawn last.
    pub fn take_links(&mut self) -> Links {
        std::mem::take(&mut self.work.links)
    }

    /// Takes note of what an entry did to the transcript.
    pub fn moved(&mut self, moved: ExchangeChange, transcript: &Transcript) {
        let Some(exchange) = transcript.exchanges.get(moved.exchange) else {
            return;
        };
        let at = moved.exchange;
        if !self.filter.is_empty() {
            self.moved_under_filter(moved, transcript);
            return;
        }
        match moved.change {
            ResponseChange::Nothing | ResponseChange::Notice | ResponseChange::Grew(_) | ResponseChange::Updated(_) => {
            }
            // Only now may it be known which call it is.
            ResponseChange::Ended(document) => {
                self.replace_told(DocumentIndex { exchange: at, document }, exchange);
            }
            ResponseChange::Opened(document) => {
                if self.follow != Following::End {
                    self.unseen += 1;
                }
                if document + 1 == exchange.response.documents.len() {
                    let place = DocumentIndex { exchange: at, document };
                    self.append(Item::Document(place), transcript);
                    self.replace_told(place, exchange);
                } else {
                    // It went in between: places behind it are other documents now.
                    self.states.retain(|item, _| item.exchange() != at);
                    self.list(at, transcript);
                }
            }
            ResponseChange::Acted(nth) => self.append(Item::Action(at, nth), transcript),
            ResponseChange::Thinking => {
                let thought = Item::Thinking(at, exchange.response.thinking.len().saturating_sub(1));
                if self.items.last() != Some(&thought) {
                    self.append(thought, transcript);
                }
            }
            ResponseChange::Response => {
                let message = Item::Message(at);
                if exchange.message.is_some() && self.items.last().is_none_or(|it| it.exchange() < at) {
                    self.append(message, transcript);
                }
            }
            ResponseChange::Finished => {
                if has_ending(exchange) {
                    self.append(Item::Ending(at), transcript);
                }
            }
        }
    }

    /// Takes documents out of the list that a new one makes superfluous: the approvals of an action, which says how they were
    /// decided, and the error that a failed action tells of.
    fn replace_told(&mut self, action: DocumentIndex, exchange: &Exchange) {
        for document in approvals_of(&exchange.response, action.document) {
            self.replace(DocumentIndex { document, ..action }, action);
        }
        if is_told_before(&exchange.response, action.document) {
            let document = action.document.saturating_sub(1);
            self.replace(action, DocumentIndex { document, ..action });
        }
    }

    /// Takes a document out of the list: another one says the same.
    fn replace(&mut self, document: DocumentIndex, by: DocumentIndex) {
        let item = Item::Document(document);
        let Some(at) = self.index_of(item) else { return };
        self.items.remove(at);
        self.states.remove(&item);
        self.folds.remove(&item);
        match self.anchor.item.cmp(&at) {
            Ordering::Greater => self.anchor.item -= 1,
            Ordering::Equal => self.anchor.line = 0,
            Ordering::Less => {}
        }
        if self.selected == Some(item) {
            self.selected = Some(Item::Document(by));
        }
    }

    /// Lists an item anew whose change may let it pass the filter, or not any more.
    fn moved_under_filter(&mut self, moved: ExchangeChange, transcript: &Transcript) {
        match moved.change {
            ResponseChange::Nothing | ResponseChange::Notice | ResponseChange::Grew(_) | ResponseChange::Thinking => {
                return;
            }
            ResponseChange::Response
            | ResponseChange::Acted(_)
            | ResponseChange::Opened(_)
            | ResponseChange::Ended(_)
            | ResponseChange::Updated(_)
            | ResponseChange::Finished => {}
        }
        let anchor = self.items.get(self.anchor.item).copied();
        let count = self.items.len();
        if let ResponseChange::Opened(document) = moved.change
            && transcript
                .exchanges
                .get(moved.exchange)
                .is_some_and(|it| document + 1 < it.response.documents.len())
        {
            self.states.retain(|item, _| item.exchange() != moved.exchange);
        }
        self.list(moved.exchange, transcript);
        if self.follow != Following::End {
            self.unseen += self.items.len().saturating_sub(count);
        }
        if let Some(at) = anchor.and_then(|it| self.index_of(it)) {
            self.anchor.item = at;
        }
    }

    /// Lists only what passes, and keeps the reader where they are as well as that goes.
    pub fn sift(&mut self, filter: Filter, transcript: &Transcript) {
        let here = self.selected.or_else(|| self.items.get(self.anchor.item).copied());
        self.filter = filter;
        self.list(0, transcript);
        if self.follow == Following::End {
            return;
        }
        let place = |item: Item| match item {
            Item::Message(at) => (at, 0),
            Item::Document(it) => (it.exchange, 2 * it.document + 2),
            Item::Thinking(at, n) => {
                let thought = transcript.exchanges.get(at).and_then(|it| it.response.thinking.get(n));
                (at, thought.map_or(1, |it| 2 * it.before + 1))
            }
            Item::Ending(at) => (at, usize::MAX - 1),
            Item::Action(at, n) => {
                let action = transcript.exchanges.get(at).and_then(|it| it.actions.get(n));
                let before = action.and_then(|it| it.before);
                (at, before.map_or(usize::MAX, |it| 2 * it + 1))
            }
        };
        let near = here.map_or((0, 0), place);
        let at = self.items.partition_point(|it| place(*it) < near);
        self.anchor = Anchor {
            item: at.min(self.items.len().saturating_sub(1)),
            line: 0,
        };
        self.follow = Following::Here;
    }

    /// Puts an item at the end; lists anew what does not belong there.
    fn append(&mut self, item: Item, transcript: &Transcript) {
        if self.items.last().is_some_and(|it| it.exchange() > item.exchange()) {
            self.list(item.exchange(), transcript);
        } else {
            self.items.push(item);
        }
    }

    /// Lists the items anew from an exchange on.
    pub fn list(&mut self, from: usize, transcript: &Transcript) {
        let keep = self.items.partition_point(|it| it.exchange() < from);
        self.items.truncate(keep);
        for (at, exchange) in transcript.exchanges.iter().enumerate().skip(from) {
            if !self.filter.is_empty() {
                let documents = 0..exchange.response.documents.len();
                let passing = documents
                    .map(|document| Item::Document(DocumentIndex { exchange: at, document }))
                    .filter(|it| self.filter.passes(transcript, *it));
                let before = self.items.len();
                self.items.extend(passing);
                // The message says what the documents under it are about; or it is looked for itself.
                let is_wanted = self.items.len() > before || self.filter.passes(transcript, Item::Message(at));
                if is_wanted && exchange.message.is_some() {
                    self.items.insert(before, Item::Message(at));
                }
                continue;
            }
            if exchange.message.is_some() {
                self.items.push(Item::Message(at));
            }
            let mut thoughts = exchange.response.thinking.iter().enumerate().peekable();
            let mut actions = exchange.actions.iter().enumerate().peekable();
            for document in 0..exchange.response.documents.len() {
                while let Some((n, _)) = thoughts.next_if(|(_, it)| it.before <= document) {
                    self.items.push(Item::Thinking(at, n));
                }
                while let Some((n, _)) = actions.next_if(|(_, it)| it.before.is_some_and(|it| it <= document)) {
                    self.items.push(Item::Action(at, n));
                }
                if is_followed(&exchange.response, document) || is_told_before(&exchange.response, document) {
                    continue;
                }
                self.items
                    .push(Item::Document(DocumentIndex { exchange: at, document }));
            }
            self.items.extend(thoughts.map(|(n, _)| Item::Thinking(at, n)));
            while let Some((n, _)) = actions.next_if(|(_, it)| it.before.is_some()) {
                self.items.push(Item::Action(at, n));
            }
            if has_ending(exchange) {
                self.items.push(Item::Ending(at));
            }
            self.items.extend(actions.map(|(n, _)| Item::Action(at, n)));
        }
        if self.selected.is_some_and(|it| !self.items.contains(&it)) {
            self.selected = None;
        }
    }

    /// Forgets everything remembered about looks (another theme needs none of this; another conversation does).
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Takes note of `by` exchanges before all others. The view stays.
    pub fn put_in_front(&mut self, by: usize, transcript: &Transcript) {
        let anchor = self.items.get(self.anchor.item).map(|it| it.behind(by));
        self.selected = self.selected.map(|it| it.behind(by));
        self.folds = self.folds.drain().map(|(it, fold)| (it.behind(by), fold)).collect();
        self.states.clear();
        self.items.clear();
        self.list(0, transcript);
        self.anchor.item = anchor.and_then(|it| self.index_of(it)).unwrap_or_default();
    }

    /// Adjusts to `by` exchanges that were removed from the front. The lines in view stay, unless they were removed.
    pub fn remove_from_front(&mut self, by: usize) {
        let anchor = self.items.get(self.anchor.item).and_then(|it| it.before(by));
        self.selected = self.selected.and_then(|it| it.before(by));
        let folds = self.folds.drain();
        self.folds = folds.filter_map(|(it, fold)| Some((it.before(by)?, fold))).collect();
        let states = self.states.drain();
        self.states = states.filter_map(|(it, state)| Some((it.before(by)?, state))).collect();
        self.items = self.items.drain(..).filter_map(|it| it.before(by)).collect();
        self.lines.clear();
        self.anchor.item = anchor.and_then(|it| self.index_of(it)).unwrap_or_default();
    }

    /// Returns the exchange of the first line in view. `None` while nothing is in view.
    pub fn first_exchange(&self) -> Option<usize> {
        self.lines.iter().find_map(VisibleLine::item).map(Item::exchange)
    }

    /// The first line of all is the first line in view.
    pub fn is_at_top(&self) -> bool {
        !self.lines.is_empty() && self.anchor == Anchor::default()
    }

    pub fn fold_of(&self, item: Item) -> Fold {
        self.folds.get(&item).copied().unwrap_or_default()
    }

    pub fn set_fold(&mut self, item: Item, fold: Fold) {
        if fold == Fold::Usual {
            self.folds.remove(&item);
        } else {
            self.folds.insert(item, fold);
        }
    }

    pub fn index_of(&self, item: Item) -> Option<usize> {
        self.items.iter().position(|it| *it == item)
    }

    /// The rows of an item, laid out if need be.
    pub fn rows_of(&mut self, item: Item, context: &TranscriptContext<'_>) -> &[StyledLine] {
        self.work.round += 1;
        self.update(item, context);
        self.states.get(&item).map_or(&[], |it| &it.state.rows)
    }

    /// Selects an item and brings a row of it into view, with some of what stands above it.
    pub fn show_row(&mut self, item: Item, row: usize, context: &TranscriptContext<'_>) {
        self.selected = Some(item);
        let is_shown = |it: &VisibleLine| *it == VisibleLine::StyledLine { item, row };
        if self.lines.iter().any(is_shown) && self.size.width == context.width {
            self.follow = Following::Pinned;
            return;
        }
        let Some(at) = self.index_of(item) else { return };
        self.work.round += 1;
        let gap = self.gap(at, context);
        self.anchor = Anchor { item: at, line: 0 };
        self.scroll((gap + row) as isize - (self.size.height / 3) as isize, context);
        self.follow = Following::Pinned;
    }

    /// Returns the number of items that were looked at to be laid out, for the tests that limit work to what is visible.
    pub fn laid_out(&self) -> u64 {
        self.work.laid_out
    }

    pub fn state(&self, item: Item) -> Option<&DocumentState> {
        self.states.get(&item).map(|it| &it.state)
    }

    /// Lays out what is in view and fills `lines`.
    pub fn measure(&mut self, context: &TranscriptContext<'_>, height: usize) {
        self.work.round += 1;
        if self.size.width != 0 && self.size.width != context.width {
            self.rescale(context);
        }
        self.size.width = context.width;
        self.size.height = height;
        self.lines.clear();
        if self.items.is_empty() {
            self.anchor = Anchor::default();
            self.follow = Following::End;
            return;
        }
        if self.anchor.item >= self.items.len() {
            self.follow = Following::End;
        }
        match self.follow {
            Following::End => self.anchor_to_end(context),
            Following::Here | Following::Pinned => {
                let extent = self.extent(self.anchor.item, context);
                self.anchor.line = self.anchor.line.min(extent.saturating_sub(1));
            }
        }
        let mut is_at_end = self.fill(context);
        let is_short = self.lines.len() < self.size.height;
        if is_short && self.follow != Following::End && self.anchor != Anchor::default() {
            self.anchor_to_end(context);
            is_at_end = self.fill(context);
        }
        if is_at_end && self.follow == Following::Here {
            self.follow = Following::End;
        }
        if is_at_end {
            self.unseen = 0;
        }
        self.forget_far();
    }

    /// Moves the view by so many lines, down if positive.
    pub fn scroll(&mut self, by: isize, context: &TranscriptContext<'_>) {
        if self.items.is_empty() {
            return;
        }
        self.work.round += 1;
        self.follow = Following::Here;
        let mut line = self.anchor.line as isize + by;
        while line < 0 && self.anchor.item > 0 {
            self.anchor.item -= 1;
            line += self.extent(self.anchor.item, context) as isize;
        }
        loop {
            let extent = self.extent(self.anchor.item, context) as isize;
            if line < extent || self.anchor.item + 1 >= self.items.len() {
                break;
            }
            line -= extent;
            self.anchor.item += 1;
        }
        self.anchor.line = line.max(0) as usize;
    }

    /// Shows an item from its first row; the end is followed again when it comes into view.
    pub fn show_start(&mut self, item: Item, context: &TranscriptContext<'_>) {
        if let Some(at) = self.items.iter().position(|it| *it == item) {
            let line = self.gap(at, context);
            self.anchor = Anchor { item: at, line };
            self.follow = Following::Here;
        }
    }

    /// Returns true if the first row of an item is in view, or nothing was laid out yet.
    pub fn shows_start(&self, item: Item) -> bool {
        self.size.height == 0 || self.lines.contains(&VisibleLine::StyledLine { item, row: 0 })
    }

    /// Shows an item from one of its rows on.
    pub fn show_from(&mut self, item: Item, row: usize, context: &TranscriptContext<'_>) {
        self.show_start(item, context);
        self.scroll(row as isize, context);
    }

    /// The first and the last row of an item that are in view; `None` if none is.
    pub fn rows_in_view(&self, item: Item) -> Option<(usize, usize)> {
        let row = |it: &VisibleLine| match it {
            VisibleLine::StyledLine { item: of, row } if *of == item => Some(*row),
            VisibleLine::StyledLine { .. } | VisibleLine::Blank => None,
        };
        let rows = || self.lines.iter().filter_map(row);
        Some((rows().next()?, rows().next_back()?))
    }

    /// Lines in view, as of the last `measure`.
    pub fn height(&self) -> usize {
        self.size.height
    }

    /// Number of rows that an item was laid out to.
    pub fn rows(&self, item: Item) -> usize {
        self.states.get(&item).map_or(0, |it| it.state.rows.len())
    }

    /// The reader left: nothing is selected, and the end is followed again when it is in view.
    pub fn release(&mut self) {
        if self.follow == Following::Pinned {
            self.follow = Following::Here;
        }
    }

    pub fn page(&self) -> isize {
        (self.size.height as isize - 2).max(1)
    }

    pub fn go_to_top(&mut self) {
        self.anchor = Anchor::default();
        self.follow = Following::Here;
    }

    pub fn go_to_end(&mut self) {
        self.follow = Following::End;
        self.unseen = 0;
    }

    /// Selects an item and brings it into view.
    pub fn select(&mut self, item: Item, context: &TranscriptContext<'_>) {
        self.work.round += 1;
        self.selected = Some(item);
        let Some(at) = self.items.iter().position(|it| *it == item) else {
            return;
        };
        let mut behind = self.items.iter().skip(at + 1);
        // What sums a turn up belongs to its last document.
        self.follow = if behind.all(|it| matches!(it, Item::Ending(_) | Item::Action(..))) {
            Following::End
        } else {
            Following::Pinned
        };
        if self.follow == Following::End {
            return;
        }
        let first = self
            .lines
            .iter()
            .position(|it| matches!(it, VisibleLine::StyledLine { item: of, .. } if *of == item));
        let gap = self.gap(at, context);
        let extent = self.extent(at, context);
        match first {
            // All of it is in view, or as much as there is room for.
            Some(y) if y + (extent - gap) <= self.size.height || y <= 1 => {
                let is_cut_above = matches!(self.lines.get(y), Some(VisibleLine::StyledLine { row, .. }) if *row > 0);
                if is_cut_above {
                    self.anchor = Anchor { item: at, line: 0 };
                }
            }
            Some(y) => {
                let missing = y + (extent - gap) - self.size.height;
                self.scroll(missing.min(y) as isize, context);
                self.follow = Following::Pinned;
            }
            None => {
                let is_above = at <= self.anchor.item;
                self.anchor = Anchor { item: at, line: 0 };
                if !is_above && extent < self.size.height {
                    self.scroll(extent as isize - self.size.height as isize, context);
                    self.follow = Following::Pinned;
                }
            }
        }
    }

    /// Selects an item. One of which a good part is in view, and that is higher than the view, stays as it stands; any other one is
    /// brought into view.
    pub fn select_here(&mut self, item: Item, context: &TranscriptContext<'_>) {
        let shown = self.rows_in_view(item).map_or(0, |(first, last)| last + 1 - first);
        let is_high = self.rows(item) > self.size.height;
        if !is_high || shown * 2 < self.size.height || self.follow == Following::End {
            return self.select(item, context);
        }
        self.selected = Some(item);
        self.follow = Following::Pinned;
    }

    /// The next item from the selected one for which `wanted` holds; from the view's end when nothing is selected.
    pub fn find(&self, forward: bool, wanted: impl Fn(Item) -> bool) -> Option<Item> {
        let from = self.selected.and_then(|it| self.items.iter().position(|at| *at == it));
        match (forward, from) {
            (true, Some(at)) => self.items.iter().skip(at + 1).copied().find(|it| wanted(*it)),
            (true, None) => {
                let first = self.lines.iter().find_map(|it| match it {
                    VisibleLine::StyledLine { item, .. } => Some(*item),
                    VisibleLine::Blank => None,
                })?;
                let at = self.items.iter().position(|it| *it == first)?;
                self.items.iter().skip(at).copied().find(|it| wanted(*it))
            }
            (false, Some(at)) => self.items.iter().take(at).rev().copied().find(|it| wanted(*it)),
            (false, None) => {
                let last = self.lines.iter().rev().find_map(|it| match it {
                    VisibleLine::StyledLine { item, .. } => Some(*item),
                    VisibleLine::Blank => None,
                })?;
                let at = self.items.iter().position(|it| *it == last)?;
                self.items.iter().take(at + 1).rev().copied().find(|it| wanted(*it))
            }
        }
    }

    /// Returns true if something in view shows a running time.
    pub fn needs_clock(&self, transcript: &Transcript) -> bool {
        self.lines.iter().any(|it| match it {
            VisibleLine::StyledLine {
                item: Item::Document(place),
                row: 0,
            } => transcript
                .get(*place)
                .is_some_and(|it| it.is_open() && widgets::needs_clock(it)),
            VisibleLine::StyledLine { .. } | VisibleLine::Blank => false,
        })
    }

    /// The rows of a line, and what stands in its gutter.
    pub fn row<'a>(&'a self, shown: &VisibleLine) -> Option<(&'a StyledLine, Option<&'a Span>)> {
        let VisibleLine::StyledLine { item, row } = shown else {
            return None;
        };
        let state = &self.states.get(item)?.state;
        let glyph = (*row == 0 || state.is_bar).then_some(&state.glyph);
        Some((state.rows.get(*row)?, glyph))
    }

    /// The key of a line's row, and the glyph in its gutter.
    pub fn row_key<'a>(&'a self, shown: &VisibleLine) -> Option<(u64, Option<&'a Span>)> {
        let VisibleLine::StyledLine { item, row } = shown else {
            return None;
        };
        let kept = self.states.get(item)?;
        let glyph = (*row == 0 || kept.state.is_bar).then_some(&kept.state.glyph);
        Some((*kept.keys.get(*row)?, glyph))
    }

    fn anchor_to_end(&mut self, context: &TranscriptContext<'_>) {
        let mut item = self.items.len();
        let mut above = 0;
        while item > 0 && above < self.size.height {
            item -= 1;
            above += self.extent(item, context);
        }
        self.anchor = Anchor {
            item,
            line: above.saturating_sub(self.size.height),
        };
    }

    /// Fills `lines` from the anchor; whether the end of the conversation is among them.
    fn fill(&mut self, context: &TranscriptContext<'_>) -> bool {
        self.lines.clear();
        let mut skip = self.anchor.line;
        for at in self.anchor.item..self.items.len() {
            let Some(item) = self.items.get(at).copied() else {
                break;
            };
            let extent = self.extent(at, context);
            let gap = self.gap(at, context);
            for line in skip..extent {
                if self.lines.len() >= self.size.height {
                    return false;
                }
                self.lines.push(if line < gap {
                    VisibleLine::Blank
                } else {
                    VisibleLine::StyledLine { item, row: line - gap }
                });
            }
            skip = 0;
        }
        true
    }

    /// Lines of an item with the blank line above it.
    fn extent(&mut self, at: usize, context: &TranscriptContext<'_>) -> usize {
        let Some(item) = self.items.get(at).copied() else {
            return 0;
        };
        self.update(item, context);
        let rows = self.states.get(&item).map_or(0, |it| it.state.rows.len());
        if rows == 0 { 0 } else { rows + self.gap(at, context) }
    }

    /// Single lines stand together; everything else has a blank line above.
    /// Blank lines above the item at `at`.
    pub fn gap(&mut self, at: usize, context: &TranscriptContext<'_>) -> usize {
        let Some(before) = at.checked_sub(1).and_then(|it| self.items.get(it)).copied() else {
            return 1;
        };
        let Some(item) = self.items.get(at).copied() else {
            return 1;
        };
        self.update(before, context);
        let is_line = |it: &Item| self.states.get(it).is_some_and(|it| it.state.is_line);
        let is_joined = matches!(item, Item::Document(place) if joined(context, place).is_some());
        usize::from(!(is_joined || is_line(&before) && is_line(&item)))
    }

    fn update(&mut self, item: Item, context: &TranscriptContext<'_>) {
        let round = self.work.round;
        if self.states.get(&item).is_some_and(|it| it.round == round) {
            return;
        }
        self.work.laid_out += 1;
        let render = self.render_context(item, context);
        let cached = self.states.entry(item).or_default();
        cached.round = round;
        let Some(render) = render else { return };
        let rows_before = cached.state.rows.len();
        let changed = cached.state.lay_out_widget(
            ItemWidget {
                item,
                context,
                render: &render,
            },
            render.width,
        );
        if changed.is_some() && render.fold != Fold::Folded {
            let pictures = pictures(item, context, render.width);
            cached.state.is_line &= pictures.is_empty();
            cached.state.rows.extend(pictures);
        }
        cached.rekey(changed);
        self.work.rows = (self.work.rows + cached.state.rows.len()).saturating_sub(rows_before);
    }

    /// Returns what the look of an item depends on; `None` if there is no such item any more.
    fn render_context<'c>(&self, item: Item, context: &TranscriptContext<'c>) -> Option<RenderContext<'c>> {
        let selected = context.has_focus && self.selected == Some(item);
        let transcript = context.transcript;
        let exchange = transcript.exchanges.get(item.exchange())?;
        let mut mode = exchange.response.mode;
        let mut render = RenderContext {
            width: context.width,
            fold: self.fold_of(item),
            selected,
            elsewhere: context.has_focus && self.selected.is_some() && !selected,
            read_only: false,
            joined: false,
            context: ContextLines::new(context.context_lines),
            output_rows: context.output_rows,
            approval: None,
            newest: !context.is_preview && item.exchange() + 1 == transcript.exchanges.len(),
            superseded: false,
            waits: false,
            turn: exchange.turn,
            colours: context.colours,
            colours_version: context.colours_version,
            todos: &transcript.todos,
            progress: None,
            now_ms: context.now_ms,
            form: None,
            todo: self.todo.filter(|_| selected),
            cited: widgets::Cited::Unread,
            root: context.root,
            theme: Some(context.theme),
            times: None,
        };
        match item {
            Item::Message(_) | Item::Ending(_) | Item::Action(..) => {}
            Item::Thinking(..) => {
                if context.show_thinking && render.fold == Fold::Usual {
                    render.fold = Fold::Full;
                }
            }
            Item::Document(place) => {
                let document = transcript.get(place)?;
                // Only there does anything depend on what the mode became meanwhile.
                if mode.is_some_and(crate::protocol::Mode::is_read_only)
                    && matches!(document.kind, Kind::FileEdit | Kind::TerminalCommand)
                {
                    mode = exchange.response.mode_at(place.document);
                }
                if let Some(lines) = joined(context, place) {
                    (render.joined, render.context) = (true, lines);
                }
                if self.filter.is_empty() && is_action(document) {
                    let approval = approvals_of(&exchange.response, place.document).into_iter().next();
                    render.approval = approval.and_then(|it| exchange.response.documents.get(it));
                }
                if document.kind == Kind::Plan {
                    render.newest = is_newest_plan(transcript, place);
                    render.waits = context.builds_plans && transcript.open_plan() == Some(place);
                    render.superseded = !render.newest && transcript.newest_plan().is_some_and(|it| it > place);
                }
                render.progress = transcript.progress_at(place);
                let key = (exchange.turn, document.id.clone());
                let cited = context.cited.get(&key);
                render.cited = cited.map(Citation::as_cited).unwrap_or_default();
                if transcript.is_open_question(place.exchange, document) {
                    render.form = context.forms.get(&key);
                }
            }
        }
        render.read_only = mode.is_some_and(crate::protocol::Mode::is_read_only);
        Some(render)
    }

    /// After a change of width the reader should see what they saw: the same item, as far down in it.
    fn rescale(&mut self, context: &TranscriptContext<'_>) {
        let Some(item) = self.items.get(self.anchor.item).copied() else {
            return;
        };
        let old = self.states.get(&item).map_or(0, |it| it.state.rows.len());
        let new = self.extent(self.anchor.item, context);
        if old > 0 {
            self.anchor.line = self.anchor.line * new / (old + 1);
        }
    }

    /// Forgets the rows of an item, as something that they depend on has changed.
    pub fn forget(&mut self, item: Item) {
        self.states.remove(&item);
    }

    /// Forgets the rows of some items, as something that they depend on has changed.
    pub fn forget_all(&mut self, is_one: impl Fn(Item) -> bool) {
        self.states.retain(|item, _| !is_one(*item));
    }

    /// Rows far from the view are made again when they are needed.
    fn forget_far(&mut self) {
        if self.states.len() <= KEPT * 2 && self.work.rows <= KEPT_ROWS * 2 {
            return;
        }
        let mut near: HashSet<Item> = self.lines.iter().filter_map(VisibleLine::item).collect();
        let mut left = KEPT_ROWS;
        let middle = self.anchor.item;
        for distance in 0..KEPT / 2 {
            for at in [middle.checked_sub(distance + 1), Some(middle + distance)] {
                let Some(item) = at.and_then(|it| self.items.get(it)) else {
                    continue;
                };
                let rows = self.states.get(item).map_or(0, |it| it.state.rows.len());
                // The blank line above the first item in view depends on the one before it.
                if (distance == 0 || rows <= left) && near.insert(*item) {
                    left = left.saturating_sub(rows);
                }
            }
        }
        self.states.retain(|item, _| near.contains(item));
        self.work.rows = self.states.values().map(|it| it.state.rows.len()).sum();
    }
}

/// Returns true if a line may stand under the answer: it did not end normally, or did something.
fn has_ending(exchange: &Exchange) -> bool {
    let ending = exchange.response.ending.as_ref();
    ending.is_some_and(|it| match it.finish_reason {
        // A question is the last thing in its turn.
        FinishReason::AwaitingInput => false,
        FinishReason::Stop => has_done_something(exchange),
        FinishReason::Cancelled
        | FinishReason::MaxTurns
        | FinishReason::Length
        | FinishReason::Refusal
        | FinishReason::Error
        | FinishReason::Interrupted
        | FinishReason::Other(_) => true,
    })
}

/// Returns true if the item sums up what stands above it: who walks from document to document passes it by.
pub fn is_receipt(transcript: &Transcript, item: Item) -> bool {
    let at = match item {
        Item::Ending(at) => at,
        Item::Action(..) => return true,
        Item::Message(_) | Item::Thinking(..) | Item::Document(_) => return false,
    };
    let ending = transcript.exchanges.get(at).and_then(|it| it.response.ending.as_ref());
    ending.is_some_and(|it| it.finish_reason == FinishReason::Stop)
}

/// Returns a time of the user's own clock; `None` if there is no such time.
pub fn local_time(at_ms: u64, format: &str) -> Option<String> {
    let time = chrono::DateTime::from_timestamp_millis(i64::try_from(at_ms).ok()?)?;
    Some(time.with_timezone(&chrono::Local).format(format).to_string())
}

/// The unchanged lines to show with a document that is a further hunk of the edit that the document before it belongs to.
fn joined(context: &TranscriptContext<'_>, place: DocumentIndex) -> Option<ContextLines> {
    let before = DocumentIndex {
        document: place.document.checked_sub(1)?,
        ..place
    };
    let (before, this) = (context.transcript.get(before)?, context.transcript.get(place)?);
    widgets::joins(before, this, ContextLines::new(context.context_lines))
}

fn is_newest_plan(transcript: &Transcript, place: DocumentIndex) -> bool {
    let newest = transcript
        .exchanges
        .iter()
        .enumerate()
        .rev()
        .find_map(|(exchange, it)| {
            let document = it.response.documents.iter().rposition(|it| it.kind == Kind::Plan)?;
            Some(DocumentIndex { exchange, document })
        });
    newest == Some(place)
}

/// The address of an item as the gutter shows it.
pub fn address(transcript: &Transcript, item: Item) -> String {
    match item {
        Item::Message(at) => transcript
            .exchanges
            .get(at)
            .map(|it| it.turn.to_string())
            .unwrap_or_default(),
        Item::Document(place) => transcript.address(place).map(|it| it.to_string()).unwrap_or_default(),
        Item::Thinking(..) | Item::Ending(_) | Item::Action(..) => String::new(),
    }
}

/// The rows of an item's images.
fn pictures(item: Item, context: &TranscriptContext<'_>, width: usize) -> Vec<StyledLine> {
    let Some(exchange) = context.transcript.exchanges.get(item.exchange()) else {
        return Vec::new();
    };
    match item {
        Item::Message(_) => {
            let message = exchange.message.as_ref();
            message.map(|it| context.images.rows(it, width)).unwrap_or_default()
        }
        Item::Document(place) => {
            let document = context.transcript.get(place);
            let rows = document.map(|it| context.images.rows_of_document(exchange.turn, &it.id, width));
            rows.unwrap_or_default()
        }
        Item::Thinking(..) | Item::Ending(_) | Item::Action(..) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::test_app::TestApp;

    #[test]
    fn the_lines_in_view_are_drawn_from_the_offset_on() {
        let mut desk = TestApp::new(60, 20);
        desk.exchange("hello", &["An answer."]);
        let mut draw = |offset: usize, width: u16| {
            desk.app.with_pane(|pane, context| {
                let widget = TranscriptWidget {
                    context,
                    lights: &[],
                    gutter: 8,
                    beside: 0,
                    show_times: false,
                    offset,
                };
                assert_eq!(widget.keys(pane).len(), pane.lines.len());
                let mut buffer = Buffer::empty(Rect::new(0, 0, width, 2));
                widget.render(buffer.area, &mut buffer, pane);
                let lines = buffer.content.chunks(usize::from(width));
                lines
                    .map(|it| it.iter().map(ratatui::buffer::Cell::symbol).collect())
                    .collect::<Vec<String>>()
            })
        };
        let [first, second] = draw(0, 60).try_into().unwrap();
        assert_eq!(first.trim_end(), "");
        assert!(second.starts_with("    1 ▌ hello  "), "{second:?}");
        let [third, fourth] = draw(2, 60).try_into().unwrap();
        assert_eq!((third.trim_end(), fourth.trim_end()), ("", "  1.1   An answer."));
        assert_eq!(draw(3, 1), [" ", " "]);
    }
}
