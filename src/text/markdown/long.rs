//! Long blocks while they are open: the part of a paragraph, list or table that can hardly change
//! any more is put aside, so that a piece of source costs what is left. Where that was wrong, and
//! when the block ends, it is laid out as a whole again.

use std::borrow::Cow;

use super::{
    Flow, GROWTH, HEAVY, LONG, OpenBlock, from,
    lay::{Fence, Layout},
    line_start,
    table::{self, Shape},
    tail::Scan,
    tree::{self, Block, List},
    upto,
    words::Leaf,
};
use crate::text::{
    Colours, Role, Sanitized, Span, StyledLine,
    wrap::{wrap, wrap_open},
};

/// Bytes of a long paragraph that stay open at least.
const OPEN: usize = 512;

#[derive(Debug)]
pub(super) struct Long {
    /// Bytes of the source that are put aside; `rows` and `fences` count their rows and blocks of code.
    pub(super) at: usize,
    pub(super) rows: usize,
    pub(super) fences: u64,
    pub(super) waiting: Vec<Fence>,
    /// True if rows of the block are among those put aside.
    pub(super) begun: bool,
    /// True if the row that is laid out again follows spaces that the previous row swallowed.
    spaced: bool,
    pub(super) rest: Rest,
}

/// State needed to continue a long block.
#[derive(Debug)]
pub(super) enum Rest {
    /// Spans of the paragraph's last row, which is laid out again with the text after it.
    Paragraph(Vec<Span>),
    /// The number of the next item, and whether blank rows part the items.
    List { number: Option<u64>, loose: bool },
    /// The table's head and delimiter row.
    Table { head: String, shape: Shape },
}

impl Flow {
    /// Puts the beginning of the open block aside. Returns false if that cannot be done.
    pub(super) fn put_aside(&mut self, source: &str, colours: &dyn Colours, rows: &mut Vec<StyledLine>) -> bool {
        let tail = from(source, self.frozen.bytes);
        let mut tree = tree::read(complete(tail), &self.frozen.definitions);
        let (Some((block, range)), true) = (tree.blocks.pop(), tree.blocks.is_empty()) else {
            return false;
        };
        let start = line_start(tail, range.start);
        let text = from(tail, start);
        let mut long = Long {
            at: self.frozen.bytes + start,
            rows: self.frozen.rows,
            fences: self.frozen.fences,
            waiting: Vec::new(),
            begun: false,
            spaced: false,
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
        kept.truncate(self.frozen.rows);
        if !kept.is_empty() {
            kept.push(StyledLine::blank());
        }
        if let Rest::Table { head, shape } = &long.rest {
            let mut tree = tree::read(head, &self.frozen.definitions);
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
            self.open = OpenBlock::Long(long);
        } else {
            self.laid = 0;
            rows.truncate(self.frozen.rows);
            let tree = tree::read_open(tail, &self.frozen.definitions, None);
            let mut waiting = std::mem::take(&mut self.open_waiting);
            waiting.clear();
            let mut layout = self.layout(false, colours, rows, &mut waiting);
            tree.blocks.iter().for_each(|(block, _)| layout.outermost(block));
            self.open_waiting = waiting;
            self.laid = tail.len();
        }
        moved
    }

    /// Lays out more of a long block. Returns false if it ended; then it must be read again as a whole.
    pub(super) fn advance_long(
        &mut self,
        mut long: Long,
        source: &str,
        closed: bool,
        lines: bool,
        colours: &dyn Colours,
        rows: &mut Vec<StyledLine>,
    ) -> bool {
        if closed || lines && !self.goes_on_long(&long, source) {
            return false;
        }
        if source.len() - long.at > LONG && !self.move_aside(&mut long, source, colours, rows) {
            let open = source.len() - long.at;
            if open > HEAVY && open - self.laid < open / GROWTH {
                self.open = OpenBlock::Long(long);
                return true;
            }
        }
        let going_on = self.lay_long(&mut long, source, colours, rows);
        if going_on {
            self.laid = source.len() - long.at;
            self.open = OpenBlock::Long(long);
        }
        going_on
    }

    /// Returns true if the source after the part put aside still belongs to the same block.
    pub(super) fn goes_on_long(&self, long: &Long, source: &str) -> bool {
        let text = long.source(source);
        let text = complete(&text);
        let tree = tree::read(text, &self.frozen.definitions);
        match (tree.blocks.as_slice(), &long.rest) {
            ([(Block::Text(_), _)], Rest::Paragraph(_)) | ([(Block::Table(_), _)], Rest::Table { .. }) => {
                !ends_blank(text)
            }
            ([(Block::List(list), _)], Rest::List { number, .. }) => list.start.is_some() == number.is_some(),
            _ => false,
        }
    }

    /// Puts more of a long block aside, as far as it is safe. Returns true if it did.
    pub(super) fn move_aside(
        &self,
        long: &mut Long,
        source: &str,
        colours: &dyn Colours,
        rows: &mut Vec<StyledLine>,
    ) -> bool {
        let text = from(source, long.at);
        match &mut long.rest {
            Rest::Paragraph(carried) => {
                let Some(cut) = neutral(text) else {
                    return false;
                };
                let Some((Block::Text(spans), _)) = tree::read(upto(text, cut), &self.frozen.definitions).blocks.pop()
                else {
                    return false;
                };
                carried.extend(spans);
                // The parser takes the space at the end of a paragraph.
                carried.push(Span::new(Sanitized::literal(" "), Role::Text));
                let (mut laid, last) = wrap_open(carried, self.width);
                if long.begun
                    && let Some(first) = laid.first_mut()
                {
                    first.continues = true;
                    first.spaced = long.spaced;
                }
                long.spaced = laid.pop().is_some_and(|it| it.spaced);
                *carried = last;
                rows.truncate(long.rows);
                rows.extend(laid);
                long.at += cut;
            }
            Rest::List { number, loose } => {
                let mut tree = tree::read(complete(text), &self.frozen.definitions);
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
                (long.fences, _) = self.lay_items(&list, long.begun, long.fences, colours, rows, &mut long.waiting);
                long.at += cut;
            }
            Rest::Table { head, shape } => {
                let Some(cut) = text.rfind('\n').map(|it| it + 1) else {
                    return false;
                };
                let read = format!("{head}{}", upto(text, cut));
                let Some((Block::Table(table), _)) = tree::read(&read, &self.frozen.definitions).blocks.pop() else {
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

    /// Lays out the part of a long block that is not put aside. Returns true if it is still the same block.
    pub(super) fn lay_long(
        &mut self,
        long: &mut Long,
        source: &str,
        colours: &dyn Colours,
        rows: &mut Vec<StyledLine>,
    ) -> bool {
        rows.truncate(long.rows);
        self.words = None;
        let text = long.source(source);
        let place = self.place_in(long.at);
        let mut tree = tree::read_open(&text, &self.frozen.definitions, place);
        let block = tree.blocks.pop().map(|(block, _)| block);
        let mut leaf = None;
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
                leaf = Some(Leaf {
                    row: rows.len(),
                    first: Vec::new(),
                    rest: Vec::new(),
                });
                rows.extend(wrap(&all, self.width, &[], &[]));
            }
            (Some(Block::List(mut list)), Rest::List { number, loose }) => {
                list.loose |= loose;
                list.start = *number;
                let mut waiting = Vec::new();
                (_, leaf) = self.lay_items(&list, long.begun, long.fences, colours, rows, &mut waiting);
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
            first.spaced = long.spaced;
        }
        self.expect_words(&tree, leaf, long.at, rows);
        true
    }

    /// Lays out items after those that are there.
    pub(super) fn lay_items(
        &self,
        list: &List,
        begun: bool,
        fences: u64,
        colours: &dyn Colours,
        rows: &mut Vec<StyledLine>,
        waiting: &mut Vec<Fence>,
    ) -> (u64, Option<Leaf>) {
        let mut layout = Layout {
            fences,
            ..self.layout(false, colours, rows, waiting)
        };
        if list.loose && begun {
            layout.gap(&[]);
        }
        layout.list(list, &[], &[]);
        (layout.fences, layout.leaf)
    }
}

impl Long {
    /// Returns the part that is not put aside, as Markdown of its own.
    fn source<'a>(&self, source: &'a str) -> Cow<'a, str> {
        let text = from(source, self.at);
        match &self.rest {
            Rest::Table { head, .. } => format!("{head}{text}").into(),
            Rest::Paragraph(_) | Rest::List { .. } => text.into(),
        }
    }
}

/// Returns the complete lines; an incomplete one may still change its meaning.
fn complete(text: &str) -> &str {
    text.rfind('\n').map_or(text, |it| upto(text, it + 1))
}

fn ends_blank(text: &str) -> bool {
    let mut lines = text.rsplit('\n');
    lines.next();
    lines.next().is_some_and(|it| it.trim().is_empty())
}

/// Returns a position in a paragraph, between two words of a line, at which no mark is open. `None` if there is none.
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
