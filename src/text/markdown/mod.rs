//! Markdown to rows, also while it is still coming in.
//!
//! A [`Flow`] freezes an outermost block as soon as the next one has begun; only the open one is read
//! again. While the source is not closed, marks that are not decided yet are held back, so a frame
//! never shows an asterisk that the next one takes away. What may still change is the open block: an
//! opened mark may turn out to be text, a paragraph a heading, a tight list a loose one. One
//! exception reaches further back: a reference defined late is linked when the document closes.
//!
//! A long open block is not read again as a whole either: the part of it that can hardly change is
//! put aside, and everything is laid out once more when the block ends.

mod address;
mod code;
mod html;
mod lay;
mod long;
mod math;
mod prose;
mod table;
mod tail;
mod tree;
mod words;

use std::collections::HashSet;

use self::{
    code::OpenCode,
    lay::{Fence, Layout},
    long::Long,
    tail::LeafStart,
    tree::{Block, Definitions, Tree},
    words::Words,
};
pub use self::{
    html::{escape, to_html},
    prose::summary,
};
use super::{
    Colours, Span, StyledLine,
    width::{clip_spans, spans_width},
};

/// An open block longer than this puts its beginning aside, in bytes.
const LONG: usize = 2048;

/// Length from which on an open block that cannot put anything aside is laid out only now and then, in bytes.
const HEAVY: usize = 8 * 1024;

/// Such a block must have grown by this part of itself.
const GROWTH: usize = 64;

/// Replaces a hidden mark in the source. Marks beside it must work as they do beside the hidden one, so it is
/// punctuation: a rare sesame dot.
const HIDDEN: char = '\u{fe45}';

/// Bytes compared to see that a source was only added to.
const EDGE: usize = 64;

/// Frozen blocks of code that are asked for new colours while the source grows.
const RECENT: usize = 4;

/// Incremental layout of Markdown: keeps the rows of settled blocks, so that each piece of source costs only as much
/// as the block that is still open.
#[derive(Debug, Default)]
pub struct Flow {
    seed: u64,
    width: usize,
    last: LastUpdate,
    frozen: Frozen,
    /// Code of the open block that has not got all its colours.
    open_waiting: Vec<Fence>,
    open: OpenBlock,
    /// True if the open block cannot put its beginning aside.
    stiff: bool,
    /// Length of the open part in bytes when it was last laid out.
    laid: usize,
    /// The plain words at the end that can be lengthened.
    words: Option<Words>,
    /// The leaf at the end and the byte that it is counted from, while its line continues.
    place: Option<(LeafStart, usize)>,
}

/// Input and output of the last update, to tell whether the next one continues it.
#[derive(Debug, Default)]
struct LastUpdate {
    closed: bool,
    /// Bytes of the source.
    length: usize,
    edges: Edges,
    /// Number of rows.
    rows: usize,
}

/// The part of the source whose rows do not change any more.
#[derive(Debug, Default)]
struct Frozen {
    bytes: usize,
    rows: usize,
    /// Number of code blocks.
    fences: u64,
    definitions: Definitions,
    unresolved: HashSet<String>,
    /// Code that has not got all its colours.
    waiting: Vec<Fence>,
}

/// Treatment of the block at the end of the source.
#[derive(Debug, Default)]
enum OpenBlock {
    #[default]
    Whole,
    /// Code between fences, line by line.
    Code(OpenCode),
    /// A long block whose beginning is put aside.
    Long(Long),
}

impl Flow {
    /// `seed` names the document: the blocks that [`Colours`] is asked for derive from it.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }

    /// Brings `rows` up to date with `source`; both are expected as the last update left them, but for
    /// what was added to the source. Otherwise, and for another width, everything is laid out anew.
    /// `closed` says that nothing will be added any more.
    ///
    /// Returns the first row that may have changed. The same source again picks up new colours.
    pub fn update(
        &mut self,
        source: &str,
        closed: bool,
        width: usize,
        colours: &dyn Colours,
        rows: &mut Vec<StyledLine>,
    ) -> usize {
        let width = width.max(1);
        let mut changed = rows.len();
        if !self.goes_on(source, closed, width, rows) {
            rows.clear();
            *self = Self {
                width,
                ..Self::new(self.seed)
            };
            changed = 0;
        } else if self.last.length == source.len() && self.last.closed == closed {
            return self.poll(usize::MAX, colours, rows).min(changed);
        } else {
            changed = changed.min(self.poll(RECENT, colours, rows));
        }
        let lengthened = if closed { None } else { self.lengthen(source, rows) };
        changed = changed.min(match lengthened {
            Some(first) => first,
            None => {
                let lines = source.get(self.last.length..).is_none_or(|it| it.contains('\n'));
                self.words = None;
                let same_line = source
                    .get(self.last.length..)
                    .is_some_and(|it| !it.contains(['\n', '\r']));
                self.place = self.place.take().filter(|_| same_line);
                self.advance(source, closed, lines, colours, rows)
            }
        });
        if closed
            && self
                .frozen
                .unresolved
                .iter()
                .any(|it| self.frozen.definitions.contains_key(it))
        {
            rows.clear();
            changed = 0;
            let definitions = std::mem::take(&mut self.frozen.definitions);
            *self = Self {
                width,
                ..Self::new(self.seed)
            };
            self.frozen.definitions = definitions;
            self.advance(source, closed, true, colours, rows);
        }
        self.last.closed = closed;
        self.last.length = source.len();
        self.last.edges.keep(source);
        self.last.rows = rows.len();
        changed.min(rows.len())
    }

    /// Returns the number of rows that cannot change any more, and the bytes of the source that they show. Zeros
    /// while code among them waits for its colours.
    pub fn settled(&self) -> (usize, usize) {
        if self.frozen.waiting.is_empty() {
            (self.frozen.rows, self.frozen.bytes)
        } else {
            (0, 0)
        }
    }

    /// Returns true if the source was only added to.
    fn goes_on(&self, source: &str, closed: bool, width: usize, rows: &[StyledLine]) -> bool {
        let before = source.get(..self.last.length);
        self.width == width
            && self.last.rows == rows.len()
            && (!self.last.closed || closed && self.last.length == source.len())
            && before.is_some_and(|it| self.last.edges.are_of(it))
    }

    /// Returns the number of rows that do not change any more.
    fn border(&self) -> usize {
        match &self.open {
            OpenBlock::Whole => self.frozen.rows,
            OpenBlock::Code(open) => open.fence.end(),
            OpenBlock::Long(long) => long.rows,
        }
    }

    /// Picks up new colours of the last `most` frozen blocks of code and of the open ones.
    fn poll(&mut self, most: usize, colours: &dyn Colours, rows: &mut [StyledLine]) -> usize {
        let width = self.width;
        let mut changed = usize::MAX;
        let mut ask = |fence: &mut Fence| changed = changed.min(fence.poll(width, colours, rows));
        self.frozen.waiting.iter_mut().rev().take(most).for_each(&mut ask);
        match &mut self.open {
            OpenBlock::Whole => {}
            OpenBlock::Code(open) => ask(&mut open.fence),
            OpenBlock::Long(long) => long.waiting.iter_mut().for_each(&mut ask),
        }
        self.open_waiting.iter_mut().for_each(&mut ask);
        self.frozen.waiting.retain(Fence::is_waiting);
        changed
    }

    /// Lays out the new part. `lines` is true if a line was completed since the last update. Returns the first row
    /// laid out anew.
    fn advance(
        &mut self,
        source: &str,
        closed: bool,
        lines: bool,
        colours: &dyn Colours,
        rows: &mut Vec<StyledLine>,
    ) -> usize {
        let mut lines = lines || closed;
        let mut first = self.border();
        loop {
            let done = match std::mem::take(&mut self.open) {
                OpenBlock::Code(open) => self.advance_code(open, source, closed, colours, rows),
                OpenBlock::Long(long) => self.advance_long(long, source, closed, lines, colours, rows),
                OpenBlock::Whole => {
                    let heavy = source.len() - self.frozen.bytes;
                    if !closed && self.stiff && heavy > HEAVY && heavy - self.laid < heavy / GROWTH {
                        return rows.len();
                    }
                    // What was put aside of the block is laid out again, too.
                    first = first.min(self.frozen.rows);
                    if (lines || self.stiff) && self.freeze(source, closed, colours, rows) {
                        false
                    } else {
                        self.lay_open(source, closed, colours, rows);
                        true
                    }
                }
            };
            if done {
                return first;
            }
            // What was put aside comes back, or the next block begins.
            lines = true;
        }
    }

    /// Settles the blocks that are complete. Returns true if the open one continues as fenced code.
    fn freeze(&mut self, source: &str, closed: bool, colours: &dyn Colours, rows: &mut Vec<StyledLine>) -> bool {
        let tail = from(source, self.frozen.bytes);
        let tree = tree::read(tail, &self.frozen.definitions);
        let Some((last, range)) = tree.blocks.last() else {
            if closed {
                self.settle(&tree, 0, tail.len(), colours, rows);
            }
            return false;
        };
        // A block that has only begun in the last line may turn out to belong to the one before.
        let begun = from(tail, range.start).contains('\n');
        let complete = tree.blocks.len() - if closed { 0 } else { 1 + usize::from(!begun) }.min(tree.blocks.len());
        let until = match tree.blocks.get(complete) {
            Some((_, range)) => line_start(tail, range.start),
            None => tail.len(),
        };
        let unfinished = !closed && tree.definitions.iter().any(|it| it.2 >= until);
        if complete > 0 && unfinished {
            // A definition that is still being written may get another target.
            let tree = tree::read(upto(tail, until), &self.frozen.definitions);
            self.settle(&tree, tree.blocks.len(), until, colours, rows);
        } else if complete > 0 {
            self.settle(&tree, complete, until, colours, rows);
        }
        let fenced = matches!(last, Block::Code(code) if code.fenced) && begun && !closed;
        fenced && complete + 1 == tree.blocks.len() && self.open_code(source, rows)
    }

    /// Lays the first `complete` blocks out for good.
    fn settle(
        &mut self,
        tree: &Tree,
        complete: usize,
        until: usize,
        colours: &dyn Colours,
        rows: &mut Vec<StyledLine>,
    ) {
        rows.truncate(self.frozen.rows);
        let mut waiting = std::mem::take(&mut self.frozen.waiting);
        let mut layout = self.layout(true, colours, rows, &mut waiting);
        for (block, _) in tree.blocks.iter().take(complete) {
            layout.outermost(block);
        }
        self.frozen.fences = layout.fences;
        self.frozen.waiting = waiting;
        self.open_waiting.clear();
        self.frozen.bytes += until;
        self.frozen.rows = rows.len();
        self.stiff = false;
        self.laid = 0;
        for (label, url, _) in tree.definitions.iter().filter(|it| it.2 < until) {
            self.frozen
                .definitions
                .entry(label.clone())
                .or_insert_with(|| url.clone());
        }
        self.frozen.unresolved.extend(tree.unresolved.iter().cloned());
    }

    fn layout<'a>(
        &self,
        closed: bool,
        colours: &'a dyn Colours,
        rows: &'a mut Vec<StyledLine>,
        waiting: &'a mut Vec<Fence>,
    ) -> Layout<'a> {
        Layout {
            width: self.width,
            colours,
            seed: self.seed,
            fences: self.frozen.fences,
            closed,
            rows,
            waiting,
            table: None,
            leaf: None,
        }
    }

    /// Lays the open block out as far as its marks are decided.
    fn lay_open(&mut self, source: &str, closed: bool, colours: &dyn Colours, rows: &mut Vec<StyledLine>) {
        rows.truncate(self.frozen.rows);
        let tail = from(source, self.frozen.bytes);
        self.laid = tail.len();
        if closed {
            return;
        }
        let tree = tree::read_open(tail, &self.frozen.definitions, self.place_in(self.frozen.bytes));
        let mut waiting = std::mem::take(&mut self.open_waiting);
        waiting.clear();
        let mut layout = self.layout(false, colours, rows, &mut waiting);
        for (block, _) in &tree.blocks {
            layout.outermost(block);
        }
        let leaf = layout.leaf;
        self.open_waiting = waiting;
        self.expect_words(&tree, leaf, self.frozen.bytes, rows);
        if tail.len() > LONG && !self.stiff {
            self.stiff = !self.put_aside(source, colours, rows);
        }
    }
}

/// Extensions of Markdown that are read.
fn options() -> pulldown_cmark::Options {
    use pulldown_cmark::Options;
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Returns the indent, cut so that it leaves room for text, and the columns that are left: at least 1.
fn room(indent: &[Span], columns: usize) -> (Vec<Span>, usize) {
    let columns = columns.max(1);
    let kept = (columns / 3).max(2).min(columns);
    let indent = clip_spans(indent, columns - kept);
    let room = columns - spans_width(&indent);
    (indent, room)
}

fn upto(text: &str, end: usize) -> &str {
    text.get(..end).unwrap_or(text)
}

fn from(text: &str, start: usize) -> &str {
    text.get(start..).unwrap_or_default()
}

fn line_start(text: &str, at: usize) -> usize {
    upto(text, at).rfind('\n').map_or(0, |it| it + 1)
}

/// The first and the last bytes of a source.
#[derive(Debug, Default)]
struct Edges {
    first: Vec<u8>,
    last: Vec<u8>,
}

impl Edges {
    fn of(source: &str) -> (&[u8], &[u8]) {
        let bytes = source.as_bytes();
        let length = bytes.len().min(EDGE);
        (&bytes[..length], &bytes[bytes.len() - length..])
    }

    fn keep(&mut self, source: &str) {
        let (first, last) = Self::of(source);
        if self.first.len() < EDGE {
            self.first = first.to_vec();
        }
        self.last.clear();
        self.last.extend_from_slice(last);
    }

    fn are_of(&self, source: &str) -> bool {
        Self::of(source) == (&self.first, &self.last)
    }
}

#[cfg(test)]
mod tests;
