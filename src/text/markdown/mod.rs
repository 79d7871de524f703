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

mod lay;
mod table;
mod tail;
mod tree;

use std::collections::HashSet;

use self::{
    lay::{Fence, Layout, name},
    table::Shape,
    tail::Scan,
    tree::{Block, Definitions, List, Tree},
};
use super::{Clean, Colours, Role, Row, Span, wrap::wrap, wrap::wrap_open};

/// An open block longer than this puts its beginning aside, in bytes.
const LONG: usize = 2048;

/// What stays open of a long paragraph at least, in bytes.
const OPEN: usize = 512;

/// An open block longer than this that cannot put anything aside is laid out only now and then.
const HEAVY: usize = 8 * 1024;

/// Such a block must have grown by this part of itself.
const GROWTH: usize = 64;

/// Bytes compared to see that a source was only added to.
const EDGE: usize = 64;

/// Frozen blocks of code that are asked for new colours while the source grows.
const RECENT: usize = 4;

/// A summary has at most this many characters, and is looked for in this many bytes.
const SUMMARY: usize = 400;
const SUMMARY_SOURCE: usize = 8 * 1024;

/// Markdown on its way to the screen: keeps what is settled, so that each piece of source costs
/// only as much as the block that is still open.
#[derive(Debug, Default)]
pub struct Flow {
    seed: u64,
    width: usize,
    closed: bool,
    /// Length of the source last seen, and its first and last bytes.
    seen: usize,
    edges: (Vec<u8>, Vec<u8>),
    /// Rows that the last update left.
    rows: usize,
    /// Bytes of the source, and rows, that are settled.
    frozen: usize,
    frozen_rows: usize,
    /// Blocks of code in the frozen part.
    fences: u64,
    definitions: Definitions,
    unresolved: HashSet<String>,
    /// Frozen code that has not got all its colours.
    waiting: Vec<Fence>,
    /// The same in the open block.
    open_waiting: Vec<Fence>,
    open: Open,
    /// The open block cannot put its beginning aside.
    stiff: bool,
    /// Length of the open part when it was last laid out.
    laid: usize,
}

/// How the block at the end of the source is dealt with.
#[derive(Debug, Default)]
enum Open {
    #[default]
    Whole,
    /// Code between fences, line by line.
    Code(OpenCode),
    /// The beginning of a long block is put aside.
    Long(Long),
}

#[derive(Debug)]
struct OpenCode {
    fence: Fence,
    /// The closing line has at least `length` of `sign`.
    sign: char,
    length: usize,
    /// Spaces taken from the start of each line.
    indent: usize,
    /// Bytes of the source that were read.
    at: usize,
}

#[derive(Debug)]
struct Long {
    /// Bytes of the source, rows and blocks of code that are put aside.
    at: usize,
    rows: usize,
    fences: u64,
    waiting: Vec<Fence>,
    /// Whether rows of the block are among those put aside.
    begun: bool,
    rest: Rest,
}

/// What must be known to go on with a long block.
#[derive(Debug)]
enum Rest {
    /// The paragraph's last row, which is laid out again with what follows.
    Paragraph(Vec<Span>),
    /// The number of the next item, and whether blank rows part the items.
    List { number: Option<u64>, loose: bool },
    /// The table's head and delimiter row.
    Table { head: String, shape: Shape },
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
        rows: &mut Vec<Row>,
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
        } else if self.seen == source.len() && self.closed == closed {
            return self.poll(usize::MAX, colours, rows).min(changed);
        } else {
            changed = changed.min(self.poll(RECENT, colours, rows));
        }
        let lines = source.get(self.seen..).is_none_or(|it| it.contains('\n'));
        changed = changed.min(self.advance(source, closed, lines, colours, rows));
        if closed && self.unresolved.iter().any(|it| self.definitions.contains_key(it)) {
            rows.clear();
            changed = 0;
            let definitions = std::mem::take(&mut self.definitions);
            *self = Self {
                width,
                definitions,
                ..Self::new(self.seed)
            };
            self.advance(source, closed, true, colours, rows);
        }
        self.closed = closed;
        self.seen = source.len();
        self.edges = edges(source);
        self.rows = rows.len();
        changed.min(rows.len())
    }

    /// Whether the source was only added to.
    fn goes_on(&self, source: &str, closed: bool, width: usize, rows: &[Row]) -> bool {
        let before = source.get(..self.seen);
        self.width == width
            && self.rows == rows.len()
            && (!self.closed || closed && self.seen == source.len())
            && before.is_some_and(|it| edges(it) == self.edges)
    }

    /// Rows before this one stay as they are.
    fn border(&self) -> usize {
        match &self.open {
            Open::Whole => self.frozen_rows,
            Open::Code(open) => open.fence.end(),
            Open::Long(long) => long.rows,
        }
    }

    /// Picks up new colours of the last `most` frozen blocks of code and of the open ones.
    fn poll(&mut self, most: usize, colours: &dyn Colours, rows: &mut [Row]) -> usize {
        let width = self.width;
        let mut changed = usize::MAX;
        let mut ask = |fence: &mut Fence| changed = changed.min(fence.poll(width, colours, rows));
        self.waiting.iter_mut().rev().take(most).for_each(&mut ask);
        match &mut self.open {
            Open::Whole => {}
            Open::Code(open) => ask(&mut open.fence),
            Open::Long(long) => long.waiting.iter_mut().for_each(&mut ask),
        }
        self.open_waiting.iter_mut().for_each(&mut ask);
        self.waiting.retain(Fence::is_waiting);
        changed
    }

    /// `lines` says whether a line was completed since the last time. Returns the first row laid out anew.
    fn advance(
        &mut self,
        source: &str,
        closed: bool,
        lines: bool,
        colours: &dyn Colours,
        rows: &mut Vec<Row>,
    ) -> usize {
        let mut lines = lines || closed;
        let mut first = self.border();
        loop {
            let done = match std::mem::take(&mut self.open) {
                Open::Code(open) => self.advance_code(open, source, closed, colours, rows),
                Open::Long(long) => self.advance_long(long, source, closed, lines, colours, rows),
                Open::Whole => {
                    let heavy = source.len() - self.frozen;
                    if !closed && self.stiff && heavy > HEAVY && heavy - self.laid < heavy / GROWTH {
                        return rows.len();
                    }
                    // What was put aside of the block is laid out again, too.
                    first = first.min(self.frozen_rows);
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

    /// Settles the blocks that are complete. Says whether the open one goes on as code between fences.
    fn freeze(&mut self, source: &str, closed: bool, colours: &dyn Colours, rows: &mut Vec<Row>) -> bool {
        let tail = from(source, self.frozen);
        let tree = tree::read(tail, &self.definitions);
        let Some((last, range)) = tree.blocks.last() else {
            return false;
        };
        // A block that has only begun in the last line may turn out to belong to the one before.
        let begun = from(tail, range.start).contains('\n');
        let complete = tree.blocks.len() - if closed { 0 } else { 1 + usize::from(!begun) }.min(tree.blocks.len());
        let until = match tree.blocks.get(complete) {
            Some((_, range)) => line_start(tail, range.start),
            None => tail.len(),
        };
        if complete > 0 {
            self.settle(&tree, complete, until, colours, rows);
        }
        let fenced = matches!(last, Block::Code(code) if code.fenced) && begun && !closed;
        fenced && complete + 1 == tree.blocks.len() && self.open_code(source, rows)
    }

    /// Lays the first `complete` blocks out for good.
    fn settle(&mut self, tree: &Tree, complete: usize, until: usize, colours: &dyn Colours, rows: &mut Vec<Row>) {
        rows.truncate(self.frozen_rows);
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut layout = self.layout(true, colours, rows, &mut waiting);
        for (block, _) in tree.blocks.iter().take(complete) {
            layout.outermost(block);
        }
        self.fences = layout.fences;
        self.waiting = waiting;
        self.open_waiting.clear();
        self.frozen += until;
        self.frozen_rows = rows.len();
        self.stiff = false;
        self.laid = 0;
        for (label, url, _) in tree.definitions.iter().filter(|it| it.2 < until) {
            self.definitions.entry(label.clone()).or_insert_with(|| url.clone());
        }
        self.unresolved.extend(tree.unresolved.iter().cloned());
    }

    fn layout<'a>(
        &self,
        closed: bool,
        colours: &'a dyn Colours,
        rows: &'a mut Vec<Row>,
        waiting: &'a mut Vec<Fence>,
    ) -> Layout<'a> {
        Layout {
            width: self.width,
            colours,
            seed: self.seed,
            fences: self.fences,
            closed,
            rows,
            waiting,
            table: None,
        }
    }

    /// Lays the open block out as far as its marks are decided.
    fn lay_open(&mut self, source: &str, closed: bool, colours: &dyn Colours, rows: &mut Vec<Row>) {
        rows.truncate(self.frozen_rows);
        let tail = from(source, self.frozen);
        self.laid = tail.len();
        if closed {
            return;
        }
        let tree = tree::read_open(tail, &self.definitions);
        let mut waiting = std::mem::take(&mut self.open_waiting);
        waiting.clear();
        let mut layout = self.layout(false, colours, rows, &mut waiting);
        for (block, _) in &tree.blocks {
            layout.outermost(block);
        }
        self.open_waiting = waiting;
        if tail.len() > LONG && !self.stiff {
            self.stiff = !self.put_aside(source, colours, rows);
        }
    }

    /// Begins to read the block of code at the border line by line.
    fn open_code(&mut self, source: &str, rows: &mut Vec<Row>) -> bool {
        let tail = from(source, self.frozen);
        let Some((line, _)) = tail.split_once('\n') else {
            return false;
        };
        let rest = line.trim_start_matches(' ');
        let Some(sign @ ('`' | '~')) = rest.chars().next() else {
            return false;
        };
        let info = rest.trim_start_matches(sign);
        rows.truncate(self.frozen_rows);
        if !rows.is_empty() {
            rows.push(Row::blank());
        }
        let decoded = match tree::read(&format!("{rest}\n"), &self.definitions).blocks.pop() {
            Some((Block::Code(code), _)) => code.language,
            _ => tree::language(info),
        };
        self.open_waiting.clear();
        self.open = Open::Code(OpenCode {
            fence: Fence::new(name(self.seed, self.fences), &decoded, &[], &[], rows.len()),
            sign,
            length: rest.len() - info.len(),
            indent: line.len() - rest.len(),
            at: self.frozen + line.len() + 1,
        });
        true
    }

    /// Says whether nothing is left to do.
    fn advance_code(
        &mut self,
        mut open: OpenCode,
        source: &str,
        closed: bool,
        colours: &dyn Colours,
        rows: &mut Vec<Row>,
    ) -> bool {
        let mut partial = None;
        let mut ended = closed;
        while let Some(line) = from(source, open.at).split_inclusive('\n').next() {
            let complete = closed || line.ends_with('\n');
            let text = line.trim_end_matches(['\n', '\r']);
            let closes = open.closes(text, complete);
            if !complete {
                partial = Some(open.unindented(text)).filter(|_| !closes);
                break;
            }
            open.at += line.len();
            if closes {
                ended = true;
                break;
            }
            let text = open.unindented(text);
            open.fence.source.push_str(text);
            open.fence.source.push('\n');
        }
        open.fence.closed = ended;
        open.fence.grow(partial, self.width, colours, rows);
        if !ended {
            self.open = Open::Code(open);
            return true;
        }
        self.frozen = open.at;
        self.frozen_rows = rows.len();
        self.fences += 1;
        self.laid = 0;
        self.stiff = false;
        if open.fence.is_waiting() {
            self.waiting.push(open.fence);
        }
        false
    }

    /// Puts the beginning of the open block aside where it can be done.
    fn put_aside(&mut self, source: &str, colours: &dyn Colours, rows: &mut Vec<Row>) -> bool {
        let tail = from(source, self.frozen);
        let mut tree = tree::read(tail, &self.definitions);
        let (Some((block, range)), true) = (tree.blocks.pop(), tree.blocks.is_empty()) else {
            return false;
        };
        let start = line_start(tail, range.start);
        let text = from(tail, start);
        let mut long = Long {
            at: self.frozen + start,
            rows: self.frozen_rows,
            fences: self.fences,
            waiting: Vec::new(),
            begun: false,
            rest: match block {
                Block::Text(_) => Rest::Paragraph(Vec::new()),
                Block::List(list) => Rest::List {
                    number: list.start,
                    loose: list.loose,
                },
                Block::Table(table) => {
                    let end = text.match_indices('\n').nth(1).map_or(text.len(), |it| it.0 + 1);
                    let head = upto(text, end).to_owned();
                    Rest::Table {
                        head,
                        shape: Shape::of(&table, self.width),
                    }
                }
                Block::Heading(_) | Block::Code(_) | Block::Html(_) | Block::Quote(_) | Block::Rule => return false,
            },
        };
        let mut kept = std::mem::take(rows);
        kept.truncate(self.frozen_rows);
        if !kept.is_empty() {
            kept.push(Row::blank());
        }
        if let Rest::Table { head, shape } = &long.rest {
            let mut tree = tree::read(head, &self.definitions);
            if let Some((Block::Table(table), _)) = tree.blocks.pop() {
                // Only the head: the rows follow in the shape that all of them have together.
                if let Shape::Grid(widths) = shape {
                    table::head(&table, widths, &mut kept);
                }
            }
            long.at += head.len();
        }
        long.rows = kept.len();
        *rows = kept;
        let moved = self.move_aside(&mut long, source, colours, rows);
        if moved {
            self.lay_long(&mut long, source, colours, rows);
            self.open = Open::Long(long);
        } else {
            self.laid = 0;
            rows.truncate(self.frozen_rows);
            let tree = tree::read_open(tail, &self.definitions);
            let mut waiting = std::mem::take(&mut self.open_waiting);
            waiting.clear();
            let mut layout = self.layout(false, colours, rows, &mut waiting);
            tree.blocks.iter().for_each(|(block, _)| layout.outermost(block));
            self.open_waiting = waiting;
            self.laid = tail.len();
        }
        moved
    }

    /// Says whether the block goes on; otherwise it is read again as a whole.
    fn advance_long(
        &mut self,
        mut long: Long,
        source: &str,
        closed: bool,
        lines: bool,
        colours: &dyn Colours,
        rows: &mut Vec<Row>,
    ) -> bool {
        if closed || lines && !self.goes_on_long(&long, source) {
            return false;
        }
        if source.len() - long.at > LONG && !self.move_aside(&mut long, source, colours, rows) {
            let open = source.len() - long.at;
            if open > HEAVY && open - self.laid < open / GROWTH {
                self.open = Open::Long(long);
                return true;
            }
        }
        let going_on = self.lay_long(&mut long, source, colours, rows);
        if going_on {
            self.laid = source.len() - long.at;
            self.open = Open::Long(long);
        }
        going_on
    }

    /// Whether the source behind what is put aside still belongs to the same block.
    fn goes_on_long(&self, long: &Long, source: &str) -> bool {
        let text = long.source(source);
        let tree = tree::read(&text, &self.definitions);
        match (tree.blocks.as_slice(), &long.rest) {
            ([(Block::Text(_), _)], Rest::Paragraph(_)) => !ends_blank(&text),
            ([(Block::List(list), _)], Rest::List { number, .. }) => list.start.is_some() == number.is_some(),
            ([(Block::Table(_), _)], Rest::Table { .. }) => !ends_blank(&text),
            _ => false,
        }
    }

    /// Moves the border inside a long block on, as far as it is safe.
    fn move_aside(&self, long: &mut Long, source: &str, colours: &dyn Colours, rows: &mut Vec<Row>) -> bool {
        let text = from(source, long.at);
        match &mut long.rest {
            Rest::Paragraph(carried) => {
                let Some(cut) = neutral(text) else {
                    return false;
                };
                let Some((Block::Text(spans), _)) = tree::read(upto(text, cut), &self.definitions).blocks.pop() else {
                    return false;
                };
                carried.extend(spans);
                // The parser takes the space at the end of a paragraph.
                carried.push(Span::new(Clean::literal(" "), Role::Text));
                let (mut laid, last) = wrap_open(carried, self.width);
                laid.pop();
                if long.begun
                    && let Some(first) = laid.first_mut()
                {
                    first.continues = true;
                }
                *carried = last;
                rows.truncate(long.rows);
                rows.extend(laid);
                long.at += cut;
            }
            Rest::List { number, loose } => {
                let mut tree = tree::read(text, &self.definitions);
                let Some((Block::List(mut list), _)) = tree.blocks.pop() else {
                    return false;
                };
                let Some(last) = list.items.pop().filter(|_| !list.items.is_empty()) else {
                    return false;
                };
                let cut = line_start(text, last.start);
                *loose |= list.loose;
                list.loose = *loose;
                list.start = *number;
                rows.truncate(long.rows);
                *number = number.map(|it| it.saturating_add(list.items.len() as u64));
                long.fences = self.lay_items(&list, long.begun, long.fences, colours, rows, &mut long.waiting);
                long.at += cut;
            }
            Rest::Table { head, shape } => {
                let Some(cut) = text.rfind('\n').map(|it| it + 1) else {
                    return false;
                };
                let read = format!("{head}{}", upto(text, cut));
                let Some((Block::Table(table), _)) = tree::read(&read, &self.definitions).blocks.pop() else {
                    return false;
                };
                rows.truncate(long.rows);
                // Records stand apart; the first needs no row before it.
                let apart = usize::from(!long.begun && matches!(shape, Shape::Records));
                let mut laid = Vec::new();
                table::lay(&table, self.width, &[], &[], Some(shape), &mut laid);
                rows.extend(laid.drain(apart.min(laid.len())..));
                long.at += cut;
            }
        }
        long.rows = rows.len();
        long.begun = true;
        true
    }

    /// Lays out what is not put aside of a long block; says whether it is still the same block.
    fn lay_long(&mut self, long: &mut Long, source: &str, colours: &dyn Colours, rows: &mut Vec<Row>) -> bool {
        rows.truncate(long.rows);
        let text = long.source(source);
        let mut tree = tree::read_open(&text, &self.definitions);
        let block = tree.blocks.pop().map(|(block, _)| block);
        if !tree.blocks.is_empty() {
            return false;
        }
        self.open_waiting.clear();
        match (block, &long.rest) {
            (None, Rest::Paragraph(carried)) => rows.extend(wrap(carried, self.width, &[], &[])),
            (None, Rest::List { .. } | Rest::Table { .. }) => {}
            (Some(Block::Text(spans)), Rest::Paragraph(carried)) => {
                let mut all = carried.clone();
                all.extend(spans);
                rows.extend(wrap(&all, self.width, &[], &[]));
            }
            (Some(Block::List(mut list)), Rest::List { number, loose }) => {
                list.loose |= loose;
                list.start = *number;
                let mut waiting = Vec::new();
                self.lay_items(&list, long.begun, long.fences, colours, rows, &mut waiting);
                self.open_waiting = waiting;
            }
            (Some(Block::Table(table)), Rest::Table { shape, .. }) => {
                table::lay(&table, self.width, &[], &[], Some(shape), rows);
            }
            (Some(_), _) => return false,
        }
        if matches!(long.rest, Rest::Paragraph(_))
            && long.begun
            && let Some(first) = rows.get_mut(long.rows)
        {
            first.continues = true;
        }
        true
    }

    /// Lays items out behind those that stand already.
    fn lay_items(
        &self,
        list: &List,
        begun: bool,
        fences: u64,
        colours: &dyn Colours,
        rows: &mut Vec<Row>,
        waiting: &mut Vec<Fence>,
    ) -> u64 {
        let mut layout = Layout {
            fences,
            ..self.layout(false, colours, rows, waiting)
        };
        if list.loose && begun {
            layout.gap(&[]);
        }
        layout.list(list, &[], &[]);
        layout.fences
    }
}

impl OpenCode {
    /// Whether a line ends the block; one that may still grow: whether it could come to.
    fn closes(&self, line: &str, complete: bool) -> bool {
        let rest = line.trim_start_matches(' ');
        let after = rest.trim_start_matches(self.sign);
        let length = rest.len() - after.len();
        line.len() - rest.len() <= 3
            && after.trim().is_empty()
            && if complete { length >= self.length } else { length > 0 }
    }

    fn unindented<'a>(&self, line: &'a str) -> &'a str {
        let spaces = line.bytes().take(self.indent).take_while(|&it| it == b' ').count();
        from(line, spaces)
    }
}

impl Long {
    /// What is not put aside, as Markdown of its own.
    fn source<'a>(&self, source: &'a str) -> std::borrow::Cow<'a, str> {
        let text = from(source, self.at);
        match &self.rest {
            Rest::Table { head, .. } => format!("{head}{text}").into(),
            Rest::Paragraph(_) | Rest::List { .. } => text.into(),
        }
    }
}

/// One line for the folded state: the first prose of `source` without its marks.
pub fn summary(source: &str) -> Clean {
    let mut end = source.len().min(SUMMARY_SOURCE);
    while !source.is_char_boundary(end) {
        end -= 1;
    }
    let tree = tree::read(upto(source, end), &Definitions::new());
    let blocks: Vec<&Block> = tree.blocks.iter().map(|(block, _)| block).collect();
    let text = prose(&blocks).unwrap_or_else(|| {
        let mut text = String::new();
        for (block, _) in &tree.blocks {
            lay::plain(std::slice::from_ref(block), "", &mut text);
        }
        text
    });
    let line = text
        .lines()
        .map(str::trim)
        .find(|it| !it.is_empty())
        .unwrap_or_default();
    Clean::from(line.chars().take(SUMMARY).collect::<String>())
}

fn prose(blocks: &[&Block]) -> Option<String> {
    blocks.iter().find_map(|block| match block {
        Block::Text(spans) | Block::Heading(spans) => {
            Some(spans.iter().map(|it| it.text.as_str()).collect::<String>()).filter(|it| !it.trim().is_empty())
        }
        Block::Quote(blocks) => prose(&blocks.iter().collect::<Vec<_>>()),
        Block::List(list) => list
            .items
            .iter()
            .find_map(|it| prose(&it.blocks.iter().collect::<Vec<_>>())),
        Block::Code(_) | Block::Html(_) | Block::Table(_) | Block::Rule => None,
    })
}

/// The text of `source` without marks, for copying.
pub fn plain(source: &str) -> String {
    let tree = tree::read(source, &Definitions::new());
    let mut text = String::new();
    for (index, (block, _)) in tree.blocks.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        lay::plain(std::slice::from_ref(block), "", &mut text);
    }
    text
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

fn ends_blank(text: &str) -> bool {
    let mut lines = text.rsplit('\n');
    lines.next();
    lines.next().is_some_and(|it| it.trim().is_empty())
}

fn edges(source: &str) -> (Vec<u8>, Vec<u8>) {
    let bytes = source.as_bytes();
    let length = bytes.len().min(EDGE);
    (bytes[..length].to_vec(), bytes[bytes.len() - length..].to_vec())
}

/// A place inside a paragraph, between two words of a line, where no mark is open.
fn neutral(text: &str) -> Option<usize> {
    let most = text.len().checked_sub(OPEN)?;
    // One of the last two lines may turn out to be the head of a table.
    let last = line_start(text, line_start(text, text.len()).saturating_sub(1));
    let most = if from(text, last).contains('|') {
        most.min(last)
    } else {
        most
    };
    [4, 3, 2, 1].into_iter().find_map(|part| {
        let bytes = text.as_bytes();
        let cut = (2..most * part / 4)
            .rev()
            .take(OPEN)
            .find(|&it| bytes[it].is_ascii_alphabetic() && bytes[it - 1] == b' ' && bytes[it - 2].is_ascii_graphic())?;
        let before = upto(text, cut);
        Scan::of(before).is_settled(before).then_some(cut)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::{NoColours, width::spans_width};

    const SAMPLE: &str = include_str!("sample.md");

    fn whole(source: &str, width: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        Flow::new(7).update(source, true, width, &NoColours, &mut rows);
        rows
    }

    fn picture(rows: &[Row], width: usize) -> String {
        let mut text = String::new();
        for row in rows {
            let left = row.plain();
            let right: String = row.facts.iter().map(|it| it.text.as_str()).collect();
            let free = width.saturating_sub(spans_width(&row.spans) + spans_width(&row.facts));
            text.push_str(format!("{left}{}{right}", " ".repeat(free)).trim_end());
            text.push('\n');
        }
        text
    }

    /// Streams `source` in pieces and calls `each` with what is shown after each of them.
    fn stream(
        source: &str,
        width: usize,
        pieces: impl Iterator<Item = usize>,
        mut each: impl FnMut(&Flow, &str, &[Row]),
    ) -> Vec<Row> {
        let mut flow = Flow::new(7);
        let mut rows = Vec::new();
        let mut end = 0;
        let mut before: Vec<Row> = Vec::new();
        for piece in pieces {
            if end >= source.len() {
                break;
            }
            end = (end + piece.max(1)).min(source.len());
            while !source.is_char_boundary(end) {
                end += 1;
            }
            let changed = flow.update(&source[..end], false, width, &NoColours, &mut rows);
            assert!(
                before.iter().take(changed).eq(rows.iter().take(changed)),
                "rows before {changed} changed at {:?}",
                &source[..end]
            );
            each(&flow, &source[..end], &rows);
            before.clone_from(&rows);
        }
        flow.update(source, true, width, &NoColours, &mut rows);
        rows
    }

    fn text(rows: &[Row]) -> String {
        rows.iter().map(|it| it.plain() + "\n").collect()
    }

    /// What is shown of `source` while more may come.
    fn open(source: &str) -> String {
        let mut rows = Vec::new();
        Flow::new(7).update(source, false, 60, &NoColours, &mut rows);
        text(&rows).trim_end().to_owned()
    }

    #[test]
    fn marks_are_hidden_until_they_are_decided() {
        for (source, shown) in [
            ("this is **bo", "this is bo"),
            ("this is **", "this is"),
            ("this is **bold*", "this is bold"),
            ("this is *it", "this is it"),
            ("both ***bo", "both bo"),
            ("a ~~str", "a str"),
            ("call `co", "call co"),
            ("call ``co`", "call co"),
            ("call `", "call"),
            ("see [te", "see te"),
            ("see [text]", "see text"),
            ("see [text](http", "see text"),
            ("see [text](http://x.y \"ti", "see text"),
            ("see [text](http://x.y)", "see text (x.y)"),
            ("see [text][re", "see text"),
            ("see ![al", "see"),
            ("see ![alt](http://x.y/", "see"),
            ("see <https://x.y", "see"),
            ("see <https://x.y>", "see https://x.y"),
            ("cats &am", "cats"),
            ("cats &amp;", "cats &"),
            ("a \\", "a"),
            ("a \\*", "a *"),
            ("wow!", "wow"),
            ("2 * 3", "2 * 3"),
            ("a_b_c and snake_case", "a_b_c and snake_case"),
            ("index [0] of", "index [0] of"),
            ("a < b", "a < b"),
            ("if a <b and", "if a <b and"),
            ("text\n#", "text"),
            ("text\n##", "text"),
            ("text\n## He", "text\n\nHe"),
            ("text\n-", "text"),
            ("text\n--", "text"),
            ("text\n- ", "text"),
            ("text\n- a", "text\n\n• a"),
            ("text\n- [", "text"),
            ("- a\n- [x", "• a"),
            ("- [x] do", "☑ do"),
            ("text\n1", "text"),
            ("text\n1.", "text"),
            ("text\n``", "text"),
            ("text\n```ru", "text"),
            ("- item\n\n  ```ru", "• item"),
            ("text\n>", "text"),
            ("> a\n> > ", "│ a"),
            ("> a **b", "│ a b"),
            ("***", ""),
            ("# Title #", "Title"),
            ("[a]: http://x", ""),
            ("| a | b |", ""),
            ("| a | b |\n", ""),
            ("| a | b |\n|--", ""),
            ("| a | b |\n|---|---|\n| **x** | `y", "a  b\n─  ─\nx  y"),
            ("| a | b |\n|---|---|\n|", "a  b\n─  ─"),
            ("see a | b", "see a  b"),
            ("see a | b\n", "see a  b"),
            ("see a | b\nand", "see a | b and"),
            ("see a | b\n--", "see a  b"),
            ("text\n| a", "text"),
            ("see `a | b` and", "see a | b and"),
            ("| no table\nmore", "| no table more"),
            ("```\nlet a = 1;\n``", "  let a = 1;"),
            ("```\n# not a heading", "  # not a heading"),
            ("**bold** and _it_ and `code`", "bold and it and code"),
            ("**a *b", "a b"),
            ("**a [b", "a b"),
            ("a **[b](http://x", "a b"),
        ] {
            assert_eq!(open(source), shown, "{source:?}");
        }
    }

    #[test]
    fn an_open_mark_already_looks_like_what_it_will_be() {
        let mut rows = Vec::new();
        Flow::new(7).update("this is **bo", false, 60, &NoColours, &mut rows);
        let expected = [Span::new("this is ", Role::Text), Span::new("bo", Role::Strong).bold()];
        assert_eq!(rows, [Row::of(expected)]);
    }

    fn check(source: &str, width: usize, expected: &str) {
        let shown = picture(&whole(source, width), width);
        assert_eq!(shown.trim_end(), expected.trim_matches('\n'), "{source}");
    }

    #[test]
    fn the_sample_reads_well() {
        insta::assert_snapshot!(picture(&whole(SAMPLE, 40), 40));
        insta::assert_snapshot!(picture(&whole(SAMPLE, 80), 80));
    }

    #[test]
    fn a_table_gives_way_to_narrow_screens() {
        let table = "| Step | Cost | Remark |\n|---|--:|---|\n| dry run | 2 s | nothing is written |\n| migrate | 40 s | one lock |\n";
        check(
            table,
            40,
            "
Step     Cost  Remark
───────  ────  ──────────────────
dry run   2 s  nothing is written
migrate  40 s  one lock",
        );
        check(
            table,
            24,
            "
Step     Cost  Remark
───────  ────  ─────────
dry run   2 s  nothing
               is
               written
migrate  40 s  one lock",
        );
        check(
            table,
            19,
            "
Step: dry run
Cost: 2 s
Remark: nothing is
  written

Step: migrate
Cost: 40 s
Remark: one lock",
        );
    }

    #[test]
    fn blocks_look_calm() {
        for (source, width, expected) in [
            ("9. nine\n10. ten\n", 20, " 9. nine\n10. ten"),
            (
                "> a quote that wraps\n>\n> - item\n",
                14,
                "│ a quote that\n│ wraps\n│\n│ • item",
            ),
            ("one\ntwo  \nthree\n", 20, "one two\nthree"),
            ("```\na long line of code\n```\n", 14, "  a long line\n    of code"),
            ("```sh\nls\n```\n", 12, "  ls      sh"),
            ("- a\n\n  b\n- c\n", 20, "• a\n\n  b\n\n• c"),
            ("- [x] done\n- [ ] not\n", 20, "☑ done\n☐ not"),
            ("***\n", 60, "────────────────────────────────────────"),
            ("<b>\nraw\n</b>\n", 20, "<b>\nraw\n</b>"),
            ("Title\n=====\ntext\n", 20, "Title\n\ntext"),
            ("", 20, ""),
        ] {
            check(source, width, expected);
        }
    }

    #[test]
    fn a_link_says_where_it_leads() {
        for (source, expected) in [
            ("[docs](https://a.b/c)", "docs (a.b)"),
            ("[https://a.b/c](https://a.b/c)", "https://a.b/c"),
            ("[see a.b](https://a.b/c)", "see a.b"),
            (
                "[https://microsoft.com](https://t.co/x)",
                "https://microsoft.com (t.co)",
            ),
            (
                "[github.com](https://github.com.evil.org)",
                "github.com (github.com.evil.org)",
            ),
            ("[github.com](https://github.com@evil.org)", "github.com (evil.org)"),
            ("<me@a.b>", "me@a.b"),
            ("[write](mailto:me@a.b)", "write (me@a.b)"),
            ("[cart](src/cart.rs:41)", "cart"),
            ("[run](javascript:alert(1))", "run"),
            ("![a](https://a.b/c.png)", "[image: a] (a.b)"),
            ("[![a](https://i.j/c.png)](https://a.b)", "[image: a] (i.j) (a.b)"),
        ] {
            check(source, 80, expected);
        }
        let rows = whole("[docs](https://a.b/c) [run](javascript:x)", 80);
        let links = rows[0]
            .spans
            .iter()
            .filter_map(|it| it.link.as_deref().map(|link| (it.text.as_str(), link)));
        assert_eq!(links.collect::<Vec<_>>(), [("docs", "https://a.b/c")]);
    }

    #[test]
    fn a_late_definition_links_when_the_document_closes() {
        let source = "see [docs]\n\nmore\n\n[docs]: https://a.b\n";
        let mut rows = Vec::new();
        let mut flow = Flow::new(7);
        for end in 0..=source.len() {
            flow.update(&source[..end], false, 60, &NoColours, &mut rows);
        }
        assert_eq!(text(&rows), "see [docs]\n\nmore\n");
        flow.update(source, true, 60, &NoColours, &mut rows);
        assert_eq!(text(&rows), "see docs (a.b)\n\nmore\n");
    }

    #[test]
    fn an_early_definition_links_in_later_blocks() {
        let mut rows = Vec::new();
        let mut flow = Flow::new(7);
        for source in [
            "[docs]: https://a.b\n\none\n\n",
            "[docs]: https://a.b\n\none\n\ntwo\n\n",
            "[docs]: https://a.b\n\none\n\ntwo\n\nsee [docs] now",
        ] {
            flow.update(source, false, 60, &NoColours, &mut rows);
        }
        assert_eq!(text(&rows), "one\n\ntwo\n\nsee docs (a.b) now\n");
    }

    /// Colours as many lines as it was told to.
    struct Few(std::cell::Cell<usize>);

    impl Colours for Few {
        fn code(&self, _: u64, language: &str, source: &str, _: bool) -> std::sync::Arc<Vec<crate::text::CodeLine>> {
            assert_eq!(language, "rust");
            let lines = source.lines().take(self.0.get());
            std::sync::Arc::new(lines.map(|it| vec![Span::new(it, Role::Keyword)].into()).collect())
        }
    }

    fn coloured(rows: &[Row]) -> Vec<usize> {
        let is = |row: &Row| row.spans.iter().any(|it| it.role == Role::Keyword);
        rows.iter()
            .enumerate()
            .filter(|(_, row)| is(row))
            .map(|(index, _)| index)
            .collect()
    }

    #[test]
    fn colours_that_come_later_are_picked_up() {
        for (name, source, closed) in [
            ("open code", "text\n\n```rust\na\nb\nc\n", false),
            ("closed code", "text\n\n```rust\na\nb\nc\n```\n", true),
            ("frozen code", "text\n\n```rust\na\nb\nc\n```\n\nmore\n", false),
            ("code in an open item", "text\n\n- ```rust\n  a\n  b\n  c\n", false),
            (
                "code in a frozen quote",
                "text\n\n> ```rust\n> a\n> b\n> c\n> ```\n\nmore\n",
                false,
            ),
        ] {
            let colours = Few(std::cell::Cell::new(1));
            let mut rows = Vec::new();
            let mut flow = Flow::new(7);
            flow.update(source, closed, 60, &colours, &mut rows);
            assert_eq!(coloured(&rows), [2], "{name}");
            assert_eq!(
                flow.update(source, closed, 60, &colours, &mut rows),
                rows.len(),
                "{name}"
            );
            colours.0.set(3);
            assert_eq!(flow.update(source, closed, 60, &colours, &mut rows), 3, "{name}");
            assert_eq!(coloured(&rows), [2, 3, 4], "{name}");
        }
    }

    #[test]
    fn colours_come_while_the_code_grows() {
        let colours = Few(std::cell::Cell::new(0));
        let mut rows = Vec::new();
        let mut flow = Flow::new(7);
        let source: String = (0..20).map(|it| format!("line {it}\n")).collect();
        let source = format!("```rust\n{source}");
        for end in 8..source.len() {
            flow.update(&source[..end], false, 60, &colours, &mut rows);
            colours.0.set(source[..end].matches('\n').count() / 2);
        }
        flow.update(&source, false, 60, &colours, &mut rows);
        assert_eq!(coloured(&rows), (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn a_summary_is_the_first_line_of_prose() {
        for (source, expected) in [
            ("# The **title** of it\n\ntext", "The title of it"),
            ("- [x] do `this` [now](https://a.b)\n- that", "do this now (a.b)"),
            ("```\ncode\n```\n\nThen prose.  \nMore", "Then prose."),
            ("```\n\n  only code\n```\n", "only code"),
            ("> quoted", "quoted"),
            ("&#27;[31m red", "red"),
            ("", ""),
        ] {
            assert_eq!(&*summary(source), expected, "{source:?}");
        }
    }

    #[test]
    fn plain_text_has_no_marks() {
        let source = "# A *title*\n\ntext `code` [link](https://a.b)\n\n1. one\n   - two\n2. [ ] three\n\n> quote\n\n```rust\nfn a() {}\n```\n\n|a|b|\n|-|-|\n|1|**2**|\n";
        let expected =
            "A title\n\ntext code link (a.b)\n\n1. one\n   • two\n☐ three\n\n> quote\n\nfn a() {}\n\na\tb\n1\t2\n";
        assert_eq!(plain(source), expected);
    }

    /// What is shown, without what depends on widths: spaces, lines and bars.
    fn squeeze(rows: &[Row]) -> String {
        let text = rows.iter().flat_map(|it| &it.spans).flat_map(|it| it.text.chars());
        text.filter(|it| !it.is_whitespace() && !matches!(it, '─' | '│'))
            .collect()
    }

    #[test]
    fn each_frame_shows_a_beginning_of_what_is_shown_in_the_end() {
        let samples = [
            SAMPLE,
            "Plain words, with (parens), a colon: and *emphasis*, **strong**, ***both***, `code` and ``co`de``.\n",
            "**Bold start** then [a link](https://a.b/c \"title\") and [an address](<https://a.b/d e>)!\n\nNext.\n",
            "- a **b\n  c** d\n- `x\n  y`\n\n1) one\n2) two\n\n   more\n",
            "> quoted *text\n> over* lines\nlazy\n\nafter\n",
            "a *b **c** d* e **f *g* h** i\n",
            "math 2 * 3 * 4, snake_case_name, __init__ and a_b\n",
            "~~~python\nx = '`' * 3\n```\n~~~\n\ntext\n",
            "| a | b |\n|---|---|\n| **x** | `y` |\n| [l](http://m.n) | z |\n\ntail\n",
            "1. one\n\n   ```sh\n   ls | wc\n   ```\n\n2. two\n",
            "Ends with a mark: *\n\n\\*not emphasis\\* &lt;tag&gt; &amp; &copy;\n",
            "Term\n====\n\nOther\n---\n\nText - with dash -- and more\n",
            "see ![a picture](https://i.j/k.png) and <https://l.m> or <b>raw</b> x\n",
            "[ref]: https://r.s\n\n[ref] and [text][ref]\n",
        ];
        for source in samples {
            let last = squeeze(&whole(source, 60));
            stream(source, 60, std::iter::repeat(1), |_, prefix, rows| {
                let shown = squeeze(rows);
                assert!(
                    last.starts_with(&shown),
                    "{prefix:?}\nshows {shown:?}\nbut ends as {last:?}"
                );
            });
        }
    }

    /// Long blocks of each kind, in pieces of ten bytes.
    fn long_blocks() -> [(&'static str, String); 9] {
        let words = "some **bold words** and `code` then [a link](https://a.b/c) in a row. ";
        let lines: String = (0..2_000).map(|it| format!("    let value_{it} = {it};\n")).collect();
        let items: String = (0..1_500)
            .map(|it| format!("- item *number* {it} of the list\n"))
            .collect();
        let numbers: String = (0..1_500)
            .map(|it| format!("{}. item number {it}\n\n", it + 1))
            .collect();
        let table: String = (0..1_500)
            .map(|it| format!("| row {it} | `cell` | {} |\n", it * 7))
            .collect();
        let quote: String = (0..1_500).map(|it| format!("> quoted line {it} of many\n")).collect();
        [
            ("a paragraph", words.repeat(40_000 / words.len())),
            (
                "a paragraph of lines",
                words.replace(". ", ".\n").repeat(40_000 / words.len()),
            ),
            (
                "a paragraph with a stray asterisk",
                format!("*{}", "word ".repeat(8_000)),
            ),
            ("one word", "x".repeat(40_000)),
            ("code", format!("```rust\n{lines}")),
            ("a list", items),
            ("a loose list of numbers", numbers),
            ("a table", format!("| a | b | c |\n|---|---|--:|\n{table}")),
            ("a quote", quote),
        ]
    }

    #[test]
    fn a_long_open_block_costs_little_per_piece_and_ends_as_it_does_at_once() {
        for (name, source) in long_blocks() {
            for width in [76, 14] {
                let mut flow = Flow::new(7);
                let mut rows = Vec::new();
                let mut shown = 0;
                // The work of one piece is bound by what is laid out again for it.
                let mut work = 0;
                for end in (0..source.len()).step_by(60) {
                    let before = rows.len();
                    let changed = flow.update(&source[..end], false, width, &NoColours, &mut rows);
                    work += before.max(rows.len()) - changed;
                    shown = shown.max(rows.len());
                }
                flow.update(&source, true, width, &NoColours, &mut rows);
                let at_once = whole(&source, width);
                assert!(rows == at_once, "{name} in {width}");
                assert!(
                    shown * 20 > at_once.len() * 19,
                    "{name} in {width}: {shown} of {}",
                    at_once.len()
                );
                let each = work * 60 / source.len();
                assert!(each < 800, "{name} in {width}: {each} rows for each piece");
            }
        }
    }

    #[test]
    fn bombs_do_no_harm() {
        let nested: String = (0..1_000).map(|it| format!("{}- x\n", "  ".repeat(it))).collect();
        let table = format!("|a|b|\n|-|-|\n{}", "|some cell|another|\n".repeat(50_000));
        let wide = format!(
            "{}\n{}\n{}",
            "|a".repeat(20_000),
            "|-".repeat(20_000),
            "|b\n".repeat(20)
        );
        for (name, source) in [
            ("quotes", ">".repeat(5_000)),
            ("quotes with text", format!("{}x", "> ".repeat(10_000))),
            ("brackets", "[".repeat(50_000)),
            ("links in links", "[a](".repeat(20_000)),
            ("pictures", "![".repeat(20_000)),
            ("asterisks", "*".repeat(10_000)),
            ("emphases", "*a ".repeat(50_000)),
            ("mixed emphases", "*a _b **c __d ~~e ".repeat(5_000)),
            (
                "closed emphases",
                format!("{}{}", "*a **b".repeat(5_000), "b** a*".repeat(5_000)),
            ),
            ("backticks", (1..300).map(|it| "`".repeat(it) + " ").collect()),
            ("angles", "<".repeat(50_000)),
            ("tags", "<a ".repeat(20_000)),
            ("entities", "&#".repeat(20_000)),
            ("backslashes", "\\".repeat(20_001)),
            ("nested lists", nested),
            ("lists in a line", "- ".repeat(5_000)),
            ("lists and quotes", "> - ".repeat(3_000)),
            ("a table", table),
            ("a wide table", wide),
            ("definitions", "[a]: b\n".repeat(10_000)),
            ("headings", "# x\n".repeat(5_000)),
            ("line breaks", "\n".repeat(100_000)),
            ("returns", "a\r".repeat(10_000)),
        ] {
            for width in [1, 80] {
                let rows = whole(&source, width);
                assert!(
                    rows.iter().all(|it| spans_width(&it.spans) <= width),
                    "{name} in {width}"
                );
            }
            let mut rows = Vec::new();
            let mut flow = Flow::new(7);
            for end in (0..=source.len()).step_by(1 + source.len() / 20) {
                flow.update(&source[..end], false, 60, &NoColours, &mut rows);
            }
            summary(&source);
            plain(&source);
        }
    }

    fn hidden(it: char) -> bool {
        it.is_control() && it != '\n'
    }

    fn markdown() -> impl Strategy<Value = String> {
        let unit = prop_oneof![
            8 => "[a-z]{1,7} ",
            4 => Just("\n".to_owned()),
            3 => Just("\n\n".to_owned()),
            1 => "[ -~]{1,5}",
            10 => proptest::sample::select(vec![
                "**", "*", "_", "`", "``", "```", "~~", "[", "](", ")", "](http://x.y/z)", "[a][b]", "\n\n[b]: http://q.r\n\n", "![", "<", "<b>", "</b>",
                "<https://x.y>", "&amp;", "&#27;", "&", "\\", "#", "# ", "## ", "- ", "\n- ", "\n  - ", "\n* ", "1. ", "\n2) ", "> ", "\n> ", ">", "---\n", "===\n", "\n---\n",
                "\n```rust\n", "\n~~~\n", "\n| a | b |\n|---|:-:|\n", "| x | y |\n", "|", "    ", "\t", "[ ] ", "[x] ", "漢字", "。", "👨‍👩‍👧‍👦", "🇩🇪", "e\u{301}", "!", ":", "\r\n",
            ]).prop_map(str::to_owned),
        ];
        proptest::collection::vec(unit, 0..40).prop_map(|it| it.concat())
    }

    /// Markdown in which each mark is closed in its place.
    fn well_formed() -> impl Strategy<Value = String> {
        let word = prop_oneof![
            6 => "[a-z]{1,6}",
            1 => "[a-z][A-Za-z0-9.,:;()'\"/-]{1,6}x",
            1 => "`[a-z*_ |<&]{1,6}z`",
            1 => Just("\\#".to_owned()),
            1 => Just("&amp;".to_owned()),
            1 => Just("<https://x.y>".to_owned()),
            1 => Just("![alt](http://x.y/z.png)".to_owned()),
            1 => Just("漢字。".to_owned()),
            1 => Just("2 * 3 < 4".to_owned()),
            1 => Just("wow! snake_case".to_owned()),
        ];
        let inline = word.prop_recursive(3, 12, 4, |inner| {
            let words = proptest::collection::vec(inner, 1..4).prop_map(|it| it.join(" "));
            (words, 0..8).prop_map(|(words, kind)| match kind {
                0 => format!("**{}**", words.replace('*', "")),
                1 => format!("*{}*", words.replace('*', "")),
                2 => format!("~~{}~~", words.replace('~', "")),
                6 => format!("_{}_", words.replace('_', "")),
                3 => format!(
                    "[{}](https://x.y/{})",
                    words.replace(['<', '[', ']', '!'], ""),
                    words.len()
                ),
                _ => words,
            })
        });
        let line = proptest::collection::vec(inline, 1..6).prop_map(|it| it.join(" "));
        let block = (proptest::collection::vec(line, 1..4), 0..10).prop_map(|(lines, kind)| {
            let bare = |it: &str| it.replace('|', "");
            match kind {
                0 => format!("## w {}", lines[0]),
                1 => lines.iter().map(|it| format!("- w {it}\n")).collect(),
                2 => lines
                    .iter()
                    .enumerate()
                    .map(|(index, it)| format!("{}. w {it}\n", index + 1))
                    .collect(),
                3 => lines.iter().map(|it| format!("> w {it}\n")).collect(),
                4 => format!("```rust\n{}\n```", lines.join("\n")),
                5 => format!("| h | {} |\n|---|---|\n", bare(&lines[0])),
                6 => "---".to_owned(),
                7 => format!("- w {}\n  - w {}\n\n  w more", lines[0], lines[0]),
                _ => lines.iter().map(|it| format!("w {it}\n")).collect(),
            }
        });
        proptest::collection::vec(block, 1..5).prop_map(|it| it.join("\n\n") + "\n")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn streamed_it_ends_as_it_does_at_once(source in markdown(), width in 1_usize..120, piece in 1_usize..9) {
            let streamed = stream(&source, width, std::iter::repeat(piece), |_, _, rows| {
                let wide = rows.iter().find(|it| spans_width(&it.spans) > width);
                assert_eq!(wide, None, "in {width} columns");
            });
            prop_assert_eq!(text(&streamed), text(&whole(&source, width)));
            prop_assert_eq!(streamed, whole(&source, width));
        }

        #[test]
        fn each_frame_of_well_formed_markdown_shows_a_beginning_of_the_end(source in well_formed()) {
            let last = squeeze(&whole(&source, 90));
            stream(&source, 90, std::iter::repeat(1), |_, prefix, rows| {
                let shown = squeeze(rows);
                assert!(last.starts_with(&shown), "{prefix:?}\nshows {shown:?}\nbut ends as {last:?}");
            });
        }

        #[test]
        fn frozen_rows_never_change(source in markdown(), width in 8_usize..60) {
            let mut frozen: Vec<Row> = Vec::new();
            stream(&source, width, std::iter::repeat(1), |flow, prefix, rows| {
                assert!(rows.get(..frozen.len()) == Some(&frozen[..]), "at {prefix:?}");
                frozen = rows[..flow.frozen_rows].to_vec();
            });
        }

        #[test]
        fn no_control_character_gets_through(codes in proptest::collection::vec(0_u32..0x2100, 1..20), width in 1_usize..300) {
            let entities: String = codes.iter().map(|it| format!("&#{it};`&#{it};`[x&#x{it:x};](http://x.y/&#{it};) ")).collect();
            for row in whole(&entities, width) {
                for span in row.spans {
                    prop_assert_eq!(&*crate::text::clean::sanitize(&span.text), &*span.text);
                    prop_assert!(!span.text.contains(hidden));
                    prop_assert!(span.link.is_none_or(|it| it.is_ascii() && !it.contains(char::is_control)));
                }
            }
        }
    }
}
