//! The conversation as a long strip of items, of which only what is visible is ever laid out.
//!
//! The view is anchored to an item and a row inside it, never to a distance from the top: what happens elsewhere cannot
//! move what the reader looks at. It follows the end only while the end is in view.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher},
};

use crate::{
    protocol::{Change, Document, FinishReason, Kind, View},
    text::{Clean, Colours, Row, Span},
    transcript::{Exchange, Moved, Place, Transcript},
    tui::{
        app::{Asking, Citation},
        doc::{self, Fold, Look, Sheet},
        filter::Filter,
        image::Images,
        paint::key::{self, Quick},
    },
};

/// Sheets kept beyond those in view.
const KEPT: usize = 600;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Item {
    /// The user's message of an exchange.
    Message(usize),
    /// A stretch of thinking of an exchange.
    Thinking(usize, usize),
    Document(Place),
    /// How an exchange ended, where that needs saying.
    Ending(usize),
}

impl Item {
    /// The same, where so many exchanges have come in front.
    fn behind(self, by: usize) -> Self {
        match self {
            Self::Message(it) => Self::Message(it + by),
            Self::Thinking(it, nth) => Self::Thinking(it + by, nth),
            Self::Ending(it) => Self::Ending(it + by),
            Self::Document(place) => Self::Document(Place {
                exchange: place.exchange + by,
                ..place
            }),
        }
    }

    pub fn exchange(self) -> usize {
        match self {
            Self::Message(it) | Self::Thinking(it, _) | Self::Ending(it) => it,
            Self::Document(place) => place.exchange,
        }
    }
}

/// What is on a line of the pane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    Blank,
    Row { item: Item, row: usize },
}

impl Shown {
    pub fn item(&self) -> Option<Item> {
        match self {
            Self::Row { item, .. } => Some(*item),
            Self::Blank => None,
        }
    }
}

/// Looked into for every line of every frame; what the keys are is decided here and by nobody else.
type ByItem<T> = HashMap<Item, T, BuildHasherDefault<Quick>>;

/// Everything that looks depend on besides the documents.
pub struct Context<'a> {
    pub transcript: &'a Transcript,
    pub asking: &'a Asking,
    pub colours: &'a dyn Colours,
    pub colours_version: u64,
    pub now_ms: u64,
    /// Columns of content.
    pub width: usize,
    pub show_thinking: bool,
    pub has_focus: bool,
    pub root: Option<&'a str>,
    pub images: &'a Images,
    pub has_nerd_font: bool,
}

#[derive(Default)]
pub struct Pane {
    pub items: Vec<Item>,
    pub selected: Option<Item>,
    /// The todo that is selected in the plan that is.
    pub todo: Option<usize>,
    /// Documents that opened while the reader was elsewhere.
    pub unseen: usize,
    pub follow: Following,
    /// What is listed; nothing in it: everything is.
    pub filter: Filter,
    sheets: ByItem<Kept>,
    /// What the sheets of messages and endings were made for.
    plain_keys: ByItem<u64>,
    folds: ByItem<Fold>,
    anchor: Anchor,
    /// What is on the lines, from the top, as of the last `measure`.
    pub lines: Vec<Shown>,
    height: usize,
    width: usize,
    laid_out: u64,
    /// Counts what is done to the pane; nothing that looks depend on changes in between.
    round: u64,
}

/// A sheet with the keys of its rows.
#[derive(Default)]
struct Kept {
    sheet: Sheet,
    keys: Vec<u64>,
    /// When it was brought up to date.
    round: u64,
}

impl Kept {
    /// Works out the keys of the rows from `first` on.
    fn rekey(&mut self, first: Option<usize>) {
        if let Some(first) = first {
            self.keys.truncate(first);
            let rows = self.sheet.rows.iter().skip(self.keys.len());
            self.keys.extend(rows.map(key::of_row));
        }
    }
}

/// Whether the end is to stay in view.
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

impl Pane {
    /// Takes note of what an entry did to the transcript.
    pub fn moved(&mut self, moved: Moved, transcript: &Transcript) {
        let Some(exchange) = transcript.exchanges.get(moved.exchange) else {
            return;
        };
        let at = moved.exchange;
        if !self.filter.is_empty() {
            self.moved_under_filter(moved, transcript);
            return;
        }
        match moved.change {
            Change::Nothing | Change::Notice | Change::Grew(_) | Change::Ended(_) | Change::Updated(_) => {}
            Change::Opened(document) => {
                if self.follow != Following::End {
                    self.unseen += 1;
                }
                if document + 1 == exchange.response.documents.len() {
                    self.append(Item::Document(Place { exchange: at, document }), transcript);
                } else {
                    // It went in between: places behind it are other documents now.
                    self.sheets.retain(|item, _| item.exchange() != at);
                    self.plain_keys.retain(|item, _| item.exchange() != at);
                    self.list(at, transcript);
                }
            }
            Change::Thinking => {
                let thought = Item::Thinking(at, exchange.response.thinking.len().saturating_sub(1));
                if self.items.last() != Some(&thought) {
                    self.append(thought, transcript);
                }
            }
            Change::Response => {
                let message = Item::Message(at);
                if exchange.message.is_some() && self.items.last().is_none_or(|it| it.exchange() < at) {
                    self.append(message, transcript);
                }
            }
            Change::Finished => {
                if has_ending(exchange) {
                    self.append(Item::Ending(at), transcript);
                }
            }
        }
    }

    /// What an entry did may let an item pass, or not any more.
    fn moved_under_filter(&mut self, moved: Moved, transcript: &Transcript) {
        match moved.change {
            Change::Nothing | Change::Notice | Change::Grew(_) | Change::Thinking => return,
            Change::Response | Change::Opened(_) | Change::Ended(_) | Change::Updated(_) | Change::Finished => {}
        }
        let anchor = self.items.get(self.anchor.item).copied();
        let count = self.items.len();
        if let Change::Opened(document) = moved.change
            && transcript
                .exchanges
                .get(moved.exchange)
                .is_some_and(|it| document + 1 < it.response.documents.len())
        {
            self.sheets.retain(|item, _| item.exchange() != moved.exchange);
            self.plain_keys.retain(|item, _| item.exchange() != moved.exchange);
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
            Item::Ending(at) => (at, usize::MAX),
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
                    .map(|document| Item::Document(Place { exchange: at, document }))
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
            for document in 0..exchange.response.documents.len() {
                while let Some((n, _)) = thoughts.next_if(|(_, it)| it.before <= document) {
                    self.items.push(Item::Thinking(at, n));
                }
                self.items.push(Item::Document(Place { exchange: at, document }));
            }
            self.items.extend(thoughts.map(|(n, _)| Item::Thinking(at, n)));
            if has_ending(exchange) {
                self.items.push(Item::Ending(at));
            }
        }
        if self.selected.is_some_and(|it| !self.items.contains(&it)) {
            self.selected = None;
        }
    }

    /// Forgets everything remembered about looks (another theme needs none of this; another conversation does).
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// So many exchanges have come in front of all others. What is in view stays there.
    pub fn put_in_front(&mut self, by: usize, transcript: &Transcript) {
        let anchor = self.items.get(self.anchor.item).map(|it| it.behind(by));
        self.selected = self.selected.map(|it| it.behind(by));
        self.folds = self.folds.drain().map(|(it, fold)| (it.behind(by), fold)).collect();
        self.sheets.clear();
        self.plain_keys.clear();
        self.items.clear();
        self.list(0, transcript);
        self.anchor.item = anchor.and_then(|it| self.index_of(it)).unwrap_or_default();
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
    pub fn rows_of(&mut self, item: Item, context: &Context<'_>) -> &[Row] {
        self.round += 1;
        self.update(item, context);
        self.sheets.get(&item).map_or(&[], |it| &it.sheet.rows)
    }

    /// Selects an item and brings a row of it into view, with some of what stands above it.
    pub fn show_row(&mut self, item: Item, row: usize, context: &Context<'_>) {
        self.selected = Some(item);
        let is_shown = |it: &Shown| *it == Shown::Row { item, row };
        if self.lines.iter().any(is_shown) && self.width == context.width {
            self.follow = Following::Pinned;
            return;
        }
        let Some(at) = self.index_of(item) else { return };
        self.round += 1;
        let gap = self.gap(at, context);
        self.anchor = Anchor { item: at, line: 0 };
        self.scroll((gap + row) as isize - (self.height / 3) as isize, context);
        self.follow = Following::Pinned;
    }

    /// How often an item was looked at to be laid out, for the tests that hold work to what is visible.
    pub fn laid_out(&self) -> u64 {
        self.laid_out
    }

    pub fn sheet(&self, item: Item) -> Option<&Sheet> {
        self.sheets.get(&item).map(|it| &it.sheet)
    }

    /// Lays out what is in view and fills `lines`.
    pub fn measure(&mut self, context: &Context<'_>, height: usize) {
        self.round += 1;
        if self.width != 0 && self.width != context.width {
            self.rescale(context);
        }
        self.width = context.width;
        self.height = height;
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
        let is_short = self.lines.len() < self.height;
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
    pub fn scroll(&mut self, by: isize, context: &Context<'_>) {
        if self.items.is_empty() {
            return;
        }
        self.round += 1;
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

    /// The reader left: nothing is selected, and the end is followed again when it is in view.
    pub fn release(&mut self) {
        if self.follow == Following::Pinned {
            self.follow = Following::Here;
        }
    }

    pub fn page(&self) -> isize {
        (self.height as isize - 2).max(1)
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
    pub fn select(&mut self, item: Item, context: &Context<'_>) {
        self.round += 1;
        self.selected = Some(item);
        let Some(at) = self.items.iter().position(|it| *it == item) else {
            return;
        };
        self.follow = if at + 1 == self.items.len() {
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
            .position(|it| matches!(it, Shown::Row { item: of, .. } if *of == item));
        let gap = self.gap(at, context);
        let extent = self.extent(at, context);
        match first {
            // All of it is in view, or as much as there is room for.
            Some(y) if y + (extent - gap) <= self.height || y <= 1 => {
                let is_cut_above = matches!(self.lines.get(y), Some(Shown::Row { row, .. }) if *row > 0);
                if is_cut_above {
                    self.anchor = Anchor { item: at, line: 0 };
                }
            }
            Some(y) => {
                let missing = y + (extent - gap) - self.height;
                self.scroll(missing.min(y) as isize, context);
                self.follow = Following::Pinned;
            }
            None => {
                let is_above = at <= self.anchor.item;
                self.anchor = Anchor { item: at, line: 0 };
                if !is_above && extent < self.height {
                    self.scroll(extent as isize - self.height as isize, context);
                    self.follow = Following::Pinned;
                }
            }
        }
    }

    /// The item on a line of the pane.
    pub fn item_at(&self, y: usize) -> Option<Item> {
        match self.lines.get(y)? {
            Shown::Row { item, .. } => Some(*item),
            Shown::Blank => None,
        }
    }

    /// The next item from the selected one for which `wanted` holds; from the view's end when nothing is selected.
    pub fn find(&self, forward: bool, wanted: impl Fn(Item) -> bool) -> Option<Item> {
        let from = self.selected.and_then(|it| self.items.iter().position(|at| *at == it));
        match (forward, from) {
            (true, Some(at)) => self.items.iter().skip(at + 1).copied().find(|it| wanted(*it)),
            (true, None) => {
                let first = self.lines.iter().find_map(|it| match it {
                    Shown::Row { item, .. } => Some(*item),
                    Shown::Blank => None,
                })?;
                let at = self.items.iter().position(|it| *it == first)?;
                self.items.iter().skip(at).copied().find(|it| wanted(*it))
            }
            (false, Some(at)) => self.items.iter().take(at).rev().copied().find(|it| wanted(*it)),
            (false, None) => {
                let last = self.lines.iter().rev().find_map(|it| match it {
                    Shown::Row { item, .. } => Some(*item),
                    Shown::Blank => None,
                })?;
                let at = self.items.iter().position(|it| *it == last)?;
                self.items.iter().take(at + 1).rev().copied().find(|it| wanted(*it))
            }
        }
    }

    /// Whether something in view shows how long it has been running.
    pub fn needs_clock(&self, transcript: &Transcript) -> bool {
        self.lines.iter().any(|it| match it {
            Shown::Row {
                item: Item::Document(place),
                row: 0,
            } => transcript
                .get(*place)
                .is_some_and(|it| it.is_open() && doc::needs_clock(it)),
            Shown::Row { .. } | Shown::Blank => false,
        })
    }

    /// The rows of a line, and what stands in its gutter.
    pub fn row<'a>(&'a self, shown: &Shown) -> Option<(&'a Row, Option<&'a Span>)> {
        let Shown::Row { item, row } = shown else { return None };
        let sheet = &self.sheets.get(item)?.sheet;
        let glyph = (*row == 0 || sheet.is_bar).then_some(&sheet.glyph);
        Some((sheet.rows.get(*row)?, glyph))
    }

    /// What identifies the row of a line, and what stands in its gutter.
    pub fn row_key<'a>(&'a self, shown: &Shown) -> Option<(u64, Option<&'a Span>)> {
        let Shown::Row { item, row } = shown else { return None };
        let kept = self.sheets.get(item)?;
        let glyph = (*row == 0 || kept.sheet.is_bar).then_some(&kept.sheet.glyph);
        Some((*kept.keys.get(*row)?, glyph))
    }

    fn anchor_to_end(&mut self, context: &Context<'_>) {
        let mut item = self.items.len();
        let mut above = 0;
        while item > 0 && above < self.height {
            item -= 1;
            above += self.extent(item, context);
        }
        self.anchor = Anchor {
            item,
            line: above.saturating_sub(self.height),
        };
    }

    /// Fills `lines` from the anchor; whether the end of the conversation is among them.
    fn fill(&mut self, context: &Context<'_>) -> bool {
        self.lines.clear();
        let mut skip = self.anchor.line;
        for at in self.anchor.item..self.items.len() {
            let Some(item) = self.items.get(at).copied() else {
                break;
            };
            let extent = self.extent(at, context);
            let gap = self.gap(at, context);
            for line in skip..extent {
                if self.lines.len() >= self.height {
                    return false;
                }
                self.lines.push(if line < gap {
                    Shown::Blank
                } else {
                    Shown::Row { item, row: line - gap }
                });
            }
            skip = 0;
        }
        true
    }

    /// Lines of an item with the blank line above it.
    fn extent(&mut self, at: usize, context: &Context<'_>) -> usize {
        let Some(item) = self.items.get(at).copied() else {
            return 0;
        };
        self.update(item, context);
        let rows = self.sheets.get(&item).map_or(0, |it| it.sheet.rows.len());
        if rows == 0 { 0 } else { rows + self.gap(at, context) }
    }

    /// Single lines stand together; everything else has a blank line above.
    /// Blank lines above the item at `at`.
    pub fn gap(&mut self, at: usize, context: &Context<'_>) -> usize {
        let Some(before) = at.checked_sub(1).and_then(|it| self.items.get(it)).copied() else {
            return 1;
        };
        let Some(item) = self.items.get(at).copied() else {
            return 1;
        };
        self.update(before, context);
        let is_line = |it: &Item| self.sheets.get(it).is_some_and(|it| it.sheet.is_line);
        let is_joined = matches!(item, Item::Document(place) if joined(context.transcript, place));
        usize::from(!(is_joined || is_line(&before) && is_line(&item)))
    }

    fn update(&mut self, item: Item, context: &Context<'_>) {
        let fold = self.fold_of(item);
        let selected = context.has_focus && self.selected == Some(item);
        let kept = self.sheets.entry(item).or_default();
        if kept.round == self.round {
            return;
        }
        kept.round = self.round;
        self.laid_out += 1;
        let Some(exchange) = context.transcript.exchanges.get(item.exchange()) else {
            return;
        };
        let mut mode = exchange.response.mode;
        // Only there does anything depend on what the mode became meanwhile.
        if let Item::Document(place) = item
            && mode.is_some_and(crate::protocol::Mode::is_read_only)
            && exchange
                .response
                .documents
                .get(place.document)
                .is_some_and(|it| matches!(it.kind, Kind::FileEdit | Kind::TerminalCommand))
        {
            mode = exchange.response.mode_at(place.document);
        }
        let mut look = Look {
            width: context.width,
            fold,
            selected,
            read_only: mode.is_some_and(crate::protocol::Mode::is_read_only),
            joined: false,
            newest: item.exchange() + 1 == context.transcript.exchanges.len(),
            turn: exchange.turn,
            colours: context.colours,
            colours_version: context.colours_version,
            todos: &context.transcript.todos,
            progress: None,
            now_ms: context.now_ms,
            form: None,
            todo: self.todo.filter(|_| selected),
            cited: doc::Cited::Unread,
            root: context.root,
        };
        match item {
            Item::Message(_) => {
                let shown = (exchange.message.is_some(), look.width, look.fold);
                let key = key_of(shown);
                if self.plain_keys.insert(item, key) != Some(key)
                    && let Some(message) = &exchange.message
                {
                    kept.sheet = Sheet::message(message, &clock(exchange.at_ms), &look);
                    if look.fold != Fold::Folded {
                        kept.sheet.rows.extend(context.images.rows(message, look.width));
                    }
                    kept.rekey(Some(0));
                }
            }
            Item::Thinking(_, at) => {
                if context.show_thinking && look.fold == Fold::Usual {
                    look.fold = Fold::Full;
                }
                let Some(thinking) = exchange.response.thinking.get(at) else {
                    return;
                };
                let is_last = at + 1 == exchange.response.thinking.len();
                let goes_on =
                    is_last && exchange.response.is_running() && thinking.before == exchange.response.documents.len();
                let ended = exchange
                    .response
                    .documents
                    .get(thinking.before)
                    .map_or(exchange.last_ms, |it| it.started_ms);
                let took = (!goes_on).then(|| ended.saturating_sub(if at == 0 { exchange.at_ms } else { ended }));
                let changed = kept.sheet.think(&thinking.text, took, &look);
                kept.rekey(changed);
            }
            Item::Ending(_) => {
                let Some(ending) = &exchange.response.ending else {
                    return;
                };
                let key = key_of((ending.finish_reason.as_str(), look.width, look.newest));
                if self.plain_keys.insert(item, key) != Some(key) {
                    let documents = &exchange.response.documents;
                    // What broke the stream off is the last thing in it; an error before that was another one.
                    let has_error = match ending.finish_reason {
                        FinishReason::Interrupted => documents.last().is_some_and(|it| it.kind == Kind::Error),
                        _ => documents.iter().any(|it| it.kind == Kind::Error),
                    };
                    kept.sheet = Sheet::ending(ending, has_error, &look).unwrap_or_default();
                    kept.rekey(Some(0));
                }
            }
            Item::Document(place) => {
                let Some(document) = context.transcript.get(place) else {
                    return;
                };
                if document.kind == Kind::Text {
                    look.width = look.width.min(doc::MEASURE);
                }
                look.joined = joined(context.transcript, place);
                if document.kind == Kind::Plan {
                    look.newest = is_newest_plan(context.transcript, place);
                }
                look.progress = context.transcript.progress_at(place);
                let key = (exchange.turn, document.id.clone());
                look.cited = context
                    .asking
                    .cited
                    .get(&key)
                    .map(Citation::as_cited)
                    .unwrap_or_default();
                if context.transcript.is_waiting(place.exchange, document) {
                    look.form = context.asking.forms.get(&key);
                }
                let changed = kept.sheet.update(document, &look);
                if changed.is_some() && look.fold != Fold::Folded {
                    let drawn = context.images.rows_of_tool(exchange.turn, document, look.width);
                    kept.sheet.is_line &= drawn.is_empty();
                    kept.sheet.rows.extend(drawn);
                }
                kept.rekey(changed);
            }
        }
    }

    /// After a change of width the reader should see what they saw: the same item, as far down in it.
    fn rescale(&mut self, context: &Context<'_>) {
        let Some(item) = self.items.get(self.anchor.item).copied() else {
            return;
        };
        let old = self.sheets.get(&item).map_or(0, |it| it.sheet.rows.len());
        let new = self.extent(self.anchor.item, context);
        if old > 0 {
            self.anchor.line = self.anchor.line * new / (old + 1);
        }
    }

    /// What an item looks like depends on something else now.
    pub fn forget(&mut self, item: Item) {
        self.sheets.remove(&item);
        self.plain_keys.remove(&item);
    }

    /// What some items look like depends on something else now.
    pub fn forget_all(&mut self, is_one: impl Fn(Item) -> bool) {
        self.sheets.retain(|item, _| !is_one(*item));
        self.plain_keys.retain(|item, _| !is_one(*item));
    }

    /// Rows far from the view are made again when they are needed.
    fn forget_far(&mut self) {
        if self.sheets.len() <= KEPT * 2 {
            return;
        }
        let from = self.anchor.item.saturating_sub(KEPT / 2);
        let near: std::collections::HashSet<_> = self.items.iter().skip(from).take(KEPT).copied().collect();
        self.sheets.retain(|item, _| near.contains(item));
        self.plain_keys.retain(|item, _| near.contains(item));
    }
}

fn key_of(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

fn has_ending(exchange: &Exchange) -> bool {
    exchange
        .response
        .ending
        .as_ref()
        .is_some_and(|it| !matches!(it.finish_reason, FinishReason::Stop | FinishReason::AwaitingInput))
}

/// Hours and minutes of the user's own clock.
fn clock(at_ms: u64) -> Clean {
    let time = i64::try_from(at_ms)
        .ok()
        .and_then(chrono::DateTime::from_timestamp_millis);
    time.map_or_else(Clean::default, |it| {
        Clean::new(&it.with_timezone(&chrono::Local).format("%H:%M").to_string())
    })
}

/// Whether the document is a further hunk of the edit that the document before it belongs to.
fn joined(transcript: &Transcript, place: Place) -> bool {
    let Some(before) = place.document.checked_sub(1) else {
        return false;
    };
    let (Some(this), Some(before)) = (
        transcript.get(place),
        transcript.get(Place {
            document: before,
            ..place
        }),
    ) else {
        return false;
    };
    is_same_edit(before, this)
}

fn is_same_edit(before: &Document, this: &Document) -> bool {
    if before.kind != Kind::FileEdit || this.kind != Kind::FileEdit {
        return false;
    }
    match (before.view(), this.view()) {
        (View::FileEdit(before), View::FileEdit(this)) => {
            this.tool_call_id.is_some()
                && before.tool_call_id == this.tool_call_id
                && before.file_path == this.file_path
        }
        _ => false,
    }
}

fn is_newest_plan(transcript: &Transcript, place: Place) -> bool {
    let newest = transcript
        .exchanges
        .iter()
        .enumerate()
        .rev()
        .find_map(|(exchange, it)| {
            let document = it.response.documents.iter().rposition(|it| it.kind == Kind::Plan)?;
            Some(Place { exchange, document })
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
        Item::Thinking(..) | Item::Ending(_) => String::new(),
    }
}
