//! Code between fences while it is open: line by line, without the parser.

use std::borrow::Cow;

use super::{
    Flow, OpenBlock, from,
    lay::{Fence, name},
    tree::{self, Block},
};
use crate::text::{Colours, StyledLine};

/// Columns between two stops of a tab.
const TAB: usize = 4;

#[derive(Debug)]
pub(super) struct OpenCode {
    pub(super) fence: Fence,
    /// The closing line has at least `length` of `sign`.
    pub(super) sign: char,
    pub(super) length: usize,
    /// Spaces taken from the start of each line.
    pub(super) indent: usize,
    /// Bytes of the source that were read.
    pub(super) at: usize,
}

impl Flow {
    /// Begins to read the block of code at the border line by line.
    pub(super) fn open_code(&mut self, source: &str, rows: &mut Vec<StyledLine>) -> bool {
        let tail = from(source, self.frozen.bytes);
        let Some((line, _)) = tail.split_once('\n') else {
            return false;
        };
        let rest = line.trim_start_matches(' ');
        let Some(sign @ ('`' | '~')) = rest.chars().next() else {
            return false;
        };
        let info = rest.trim_start_matches(sign);
        rows.truncate(self.frozen.rows);
        if !rows.is_empty() {
            rows.push(StyledLine::blank());
        }
        let decoded = match tree::read(&format!("{rest}\n"), &self.frozen.definitions).blocks.pop() {
            Some((Block::Code(code), _)) => code.language,
            _ => tree::language(info),
        };
        self.open_waiting.clear();
        self.open = OpenBlock::Code(OpenCode {
            fence: Fence::new(name(self.seed, self.frozen.fences), &decoded, &[], &[], rows.len()),
            sign,
            length: rest.len() - info.len(),
            indent: line.len() - rest.len(),
            at: self.frozen.bytes + line.len() + 1,
        });
        true
    }

    /// Lays out more of an open block of code. Returns true if nothing is left to do.
    pub(super) fn advance_code(
        &mut self,
        mut open: OpenCode,
        source: &str,
        closed: bool,
        colours: &dyn Colours,
        rows: &mut Vec<StyledLine>,
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
            if !line.ends_with('\n') && text.len() <= 3 && text.bytes().all(|it| it == b' ') {
                // Where the document breaks off, what could have been the indent of a closing line is no line of code;
                // the parser sees none there either.
                break;
            }
            let text = open.unindented(text);
            open.fence.source.push_str(&text);
            open.fence.source.push('\n');
        }
        open.fence.closed = ended;
        open.fence.grow(partial.as_deref(), self.width, colours, rows);
        if !ended {
            self.open = OpenBlock::Code(open);
            return true;
        }
        self.frozen.bytes = open.at;
        self.frozen.rows = rows.len();
        self.frozen.fences += 1;
        self.laid = 0;
        self.stiff = false;
        if open.fence.is_waiting() {
            self.frozen.waiting.push(open.fence);
        }
        false
    }
}

impl OpenCode {
    /// Returns true if a line ends the block. For an incomplete line: if it may become one that does. Only spaces may
    /// follow the marks, as the parser has it; after a tab it reads on.
    fn closes(&self, line: &str, complete: bool) -> bool {
        let rest = line.trim_start_matches(' ');
        let after = rest.trim_start_matches(self.sign);
        let length = rest.len() - after.len();
        line.len() - rest.len() <= 3
            && after.bytes().all(|it| it == b' ')
            && if complete { length >= self.length } else { length > 0 }
    }

    /// The line without the columns by which the block is indented. A tab of which only a part is taken leaves blanks, as the parser has it.
    fn unindented<'a>(&self, line: &'a str) -> Cow<'a, str> {
        let mut column = 0;
        for (at, letter) in line.bytes().enumerate() {
            let next = match letter {
                b' ' if column < self.indent => column + 1,
                b'\t' if column < self.indent => column / TAB * TAB + TAB,
                _ => return from(line, at).into(),
            };
            if next > self.indent {
                return format!("{}{}", " ".repeat(next - self.indent), from(line, at + 1)).into();
            }
            column = next;
        }
        Cow::Borrowed("")
    }
}
