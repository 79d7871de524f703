//! Blocks to rows of a width.

use std::iter;

use super::{
    room,
    table::{self, Shape},
    tree::{Block, Code, List, ListItem},
    words::Leaf,
};
use crate::text::{
    CodeLine, Colours, Role, Sanitized, Span, StyledLine,
    width::{clip_spans, width},
    wrap::{wrap, wrap_code},
};

/// A horizontal line is no longer than this.
const RULE: usize = 40;

/// Code in the rows that may get its colours later.
#[derive(Debug)]
pub(super) struct Fence {
    /// Number by which [`Colours`] knows the block.
    block: u64,
    language: String,
    pub source: String,
    /// Bytes of `source` in lines that are laid out.
    laid: usize,
    /// Index of the first row of each line, and the end of the last one's rows.
    starts: Vec<usize>,
    /// Lines that have their colours.
    coloured: usize,
    pub closed: bool,
    first: Vec<Span>,
    rest: Vec<Span>,
}

impl Fence {
    pub fn new(block: u64, language: &str, first: &[Span], rest: &[Span], row: usize) -> Self {
        Self {
            block,
            language: language.to_owned(),
            source: String::new(),
            laid: 0,
            starts: vec![row],
            coloured: 0,
            closed: false,
            first: first.to_vec(),
            rest: rest.to_vec(),
        }
    }

    /// Returns true if colours are still to come.
    pub fn is_waiting(&self) -> bool {
        !self.language.is_empty() && self.coloured + 1 < self.starts.len()
    }

    /// The row after its last complete line.
    pub fn end(&self) -> usize {
        self.starts.last().copied().unwrap_or_default()
    }

    fn colours(&self, colours: &dyn Colours) -> std::sync::Arc<Vec<CodeLine>> {
        if self.language.is_empty() {
            return std::sync::Arc::default();
        }
        colours.code(self.block, &self.language, &self.source, self.closed)
    }

    /// Brings its rows, the last ones in `rows`, up to date with its source; the line that `partial`
    /// adds to it may still grow. Returns the first row that changed.
    pub fn grow(
        &mut self,
        partial: Option<&str>,
        columns: usize,
        colours: &dyn Colours,
        rows: &mut Vec<StyledLine>,
    ) -> usize {
        let complete = self.source.len();
        rows.truncate(self.end());
        let mut changed = rows.len();
        self.source.push_str(partial.unwrap_or_default());
        let lines = self.colours(colours);
        self.source.truncate(complete);
        changed = changed.min(self.recolour(&lines, columns, rows));
        let mut laid = self.laid;
        while let Some(rest) = self.source.get(laid..).filter(|it| !it.is_empty()) {
            let line = rest.split_inclusive('\n').next().unwrap_or(rest);
            laid += line.len();
            let index = self.starts.len() - 1;
            if lines.len() > index && self.coloured == index {
                self.coloured += 1;
            }
            rows.extend(self.line(index, line, &lines, columns));
            self.starts.push(rows.len());
        }
        self.laid = laid;
        if let Some(line) = partial {
            rows.extend(self.line(self.starts.len() - 1, line, &lines, columns));
        }
        if rows.len() == self.starts[0] {
            let label = self.label(0);
            rows.push(StyledLine::of(room(&self.first, columns).0).facts(label));
        }
        changed
    }

    /// Colours plain lines whose colours have arrived. Returns the first row that changed.
    pub fn poll(&mut self, columns: usize, colours: &dyn Colours, rows: &mut [StyledLine]) -> usize {
        if !self.is_waiting() {
            return usize::MAX;
        }
        let lines = self.colours(colours);
        self.recolour(&lines, columns, rows)
    }

    fn recolour(&mut self, lines: &[CodeLine], columns: usize, rows: &mut [StyledLine]) -> usize {
        let known = lines.len().min(self.starts.len() - 1);
        if known <= self.coloured {
            return usize::MAX;
        }
        let changed = self.starts[self.coloured];
        for index in self.coloured..known {
            let coloured = self.line(index, "", lines, columns);
            let place = self.starts[index]..self.starts[index + 1];
            // Colours do not change where a line breaks; were it otherwise, it would stay plain.
            if let Some(plain) = rows.get_mut(place).filter(|it| it.len() == coloured.len()) {
                plain.iter_mut().zip(coloured).for_each(|(old, new)| *old = new);
            }
        }
        self.coloured = known;
        changed
    }

    fn line(&self, index: usize, source: &str, lines: &[CodeLine], columns: usize) -> Vec<StyledLine> {
        let plain;
        let spans = if let Some(line) = lines.get(index) {
            &**line
        } else {
            plain = [Span::new(source.trim_end_matches(['\n', '\r']), Role::Text)];
            &plain
        };
        let first = if index == 0 { &self.first } else { &self.rest };
        let first = indented(first, "  ");
        let rest = indented(&self.rest, "    ");
        let mut rows = wrap_code(spans, columns, &first, &rest);
        if let Some(row) = rows.first_mut() {
            row.facts = self.label(index);
            row.gutter = first.len() as u8;
        }
        rows
    }

    fn label(&self, index: usize) -> Vec<Span> {
        let label = Some(self.language.as_str()).filter(|it| index == 0 && !it.is_empty());
        label.map(|it| Span::new(it, Role::Faint)).into_iter().collect()
    }
}

/// Lays blocks out at the end of `rows`.
pub(super) struct Layout<'a> {
    pub width: usize,
    pub colours: &'a dyn Colours,
    /// Seed of the numbers of code blocks.
    pub seed: u64,
    /// Blocks of code before the next one.
    pub fences: u64,
    /// True if the last of the blocks is complete.
    pub closed: bool,
    pub rows: &'a mut Vec<StyledLine>,
    /// Code that got no colours for all its lines.
    pub waiting: &'a mut Vec<Fence>,
    /// Shape that the next table continues.
    pub table: Option<Shape>,
    /// The leaf of text that the rows end with.
    pub leaf: Option<Leaf>,
}

impl Layout<'_> {
    /// Lays out an outermost block, after a blank row if there is something above it.
    pub fn outermost(&mut self, block: &Block) {
        if !self.rows.is_empty() {
            self.rows.push(StyledLine::blank());
        }
        self.block(block, &[], &[]);
    }

    fn blocks(&mut self, blocks: &[Block], first: &[Span], rest: &[Span], loose: bool) {
        if blocks.is_empty() {
            self.leaf = None;
            self.rows.push(StyledLine::of(room(first, self.width).0));
        }
        for (index, block) in blocks.iter().enumerate() {
            if index == 0 {
                self.block(block, first, rest);
                continue;
            }
            if loose {
                self.gap(rest);
            }
            self.block(block, rest, rest);
        }
    }

    /// A row without text between two blocks; the bars of quotes go through it.
    pub fn gap(&mut self, rest: &[Span]) {
        let until = rest.iter().rposition(|it| it.role == Role::Rule).map_or(0, |it| it + 1);
        self.rows.push(StyledLine::of(clip_spans(&rest[..until], self.width)));
    }

    pub fn block(&mut self, block: &Block, first: &[Span], rest: &[Span]) {
        self.leaf = None;
        match block {
            Block::Text(spans) | Block::Heading(spans) => {
                self.leaf = Some(Leaf {
                    row: self.rows.len(),
                    first: first.to_vec(),
                    rest: rest.to_vec(),
                });
                self.rows.extend(wrap(spans, self.width, first, rest));
            }
            Block::Html(spans) => {
                let mut spans = spans.clone();
                if let Some(last) = spans.last_mut() {
                    last.text = last.text.slice(0..last.text.trim_end().len());
                }
                self.rows.extend(wrap(&spans, self.width, first, rest));
            }
            Block::Code(code) => self.code(code, first, rest),
            Block::Quote(blocks) => {
                let bar = Span::new(Sanitized::literal("│ "), Role::Rule);
                let with_bar = |indent: &[Span]| indent.iter().chain(iter::once(&bar)).cloned().collect::<Vec<_>>();
                self.blocks(blocks, &with_bar(first), &with_bar(rest), true);
            }
            Block::List(list) => self.list(list, first, rest),
            Block::Table(it) => {
                let continued = self.table.take();
                table::lay(it, self.width, first, rest, continued.as_ref(), self.rows);
            }
            Block::Rule => {
                let (first, room) = room(first, self.width);
                let mut spans = first;
                spans.push(Span::new("─".repeat(room.min(RULE)), Role::Rule));
                self.rows.push(StyledLine::of(spans));
            }
        }
    }

    fn code(&mut self, code: &Code, first: &[Span], rest: &[Span]) {
        let block = name(self.seed, self.fences);
        self.fences += 1;
        let mut fence = Fence::new(block, &code.language, first, rest, self.rows.len());
        fence.closed = self.closed;
        fence.source.clone_from(&code.source);
        fence.grow(None, self.width, self.colours, self.rows);
        if fence.is_waiting() {
            self.waiting.push(fence);
        }
    }

    pub fn list(&mut self, list: &List, first: &[Span], rest: &[Span]) {
        let last = list
            .start
            .map(|it| it.saturating_add(list.items.len().saturating_sub(1) as u64));
        let digits = last.map_or(0, |it| it.to_string().len());
        for (index, item) in list.items.iter().enumerate() {
            if index > 0 && list.loose {
                self.gap(rest);
            }
            let number = list.start.map(|it| it.saturating_add(index as u64));
            self.item(
                item,
                number,
                digits,
                list.loose,
                if index == 0 { first } else { rest },
                rest,
            );
        }
    }

    fn item(
        &mut self,
        item: &ListItem,
        number: Option<u64>,
        digits: usize,
        loose: bool,
        first: &[Span],
        rest: &[Span],
    ) {
        let sign = match item.task {
            Some(true) => "☑ ",
            Some(false) => "☐ ",
            None => "• ",
        };
        let marker = match number {
            Some(number) if item.task.is_some() => format!("{number:>digits$}. {sign}"),
            Some(number) => format!("{number:>digits$}. "),
            None => sign.to_owned(),
        };
        let hanging = indented(rest, &" ".repeat(width(&marker)));
        let mut first = first.to_vec();
        first.push(Span::new(marker, Role::Faint));
        self.blocks(&item.blocks, &first, &hanging, loose);
    }
}

/// The name of a document's `index`th block of code.
pub(super) fn name(seed: u64, index: u64) -> u64 {
    // Any mixing will do that keeps neighbours of one document and equals of two apart.
    seed.rotate_left(17) ^ (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn indented(indent: &[Span], more: &str) -> Vec<Span> {
    let mut indent = indent.to_vec();
    indent.push(Span::new(more, Role::Text));
    indent
}
