//! A growing text, laid out line by line: each line once.

use crate::text::{Cleaner, CodeLine, StyledLine};

/// The lines of one growing text and where their rows are.
#[derive(Default)]
pub(super) struct GrowingLines {
    /// The source so far, sanitised.
    clean: String,
    /// Bytes of the source that are in `clean`.
    raw: usize,
    cleaner: Cleaner,
    /// The end of each line that was laid out: its byte in the clean text and its row, counted from the first.
    ends: Vec<End>,
    /// Lines that had colours when they were laid out.
    coloured: usize,
    was_open: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct End {
    byte: usize,
    row: usize,
}

impl GrowingLines {
    /// Takes what is new of `source`. While the text is open the source only grows; its end may say something else.
    pub fn take(&mut self, source: &str, is_open: bool) {
        let is_settled = !is_open && !self.was_open && self.raw == source.len() && self.raw > 0;
        if is_settled {
            return;
        }
        let new = source
            .get(self.raw..)
            .filter(|_| is_open && (self.was_open || self.raw == 0));
        if let Some(new) = new {
            // A line without its line break may go on.
            if !self.clean.ends_with('\n') {
                self.ends.pop();
            }
            self.cleaner.push_to(new, &mut self.clean);
        } else {
            self.cleaner = Cleaner::default();
            self.clean.clear();
            self.cleaner.push_to(source, &mut self.clean);
            self.ends.clear();
        }
        self.raw = source.len();
        self.was_open = is_open;
    }

    /// Forgets where its rows are, for another width.
    pub fn reshape(&mut self) {
        self.ends.clear();
    }

    pub fn text(&self) -> &str {
        &self.clean
    }

    /// Lays out what is not laid yet behind the first `above` of `rows`; the first row that may have changed.
    ///
    /// `lay` gets a line's number from 0, the line, and its colours where they are ready.
    pub fn lay(
        &mut self,
        rows: &mut Vec<StyledLine>,
        above: usize,
        colours: &[CodeLine],
        mut lay: impl FnMut(usize, &str, Option<&CodeLine>) -> Vec<StyledLine>,
    ) -> usize {
        if colours.len() != self.coloured {
            // Lines that were laid plain get their colours; the last coloured one may have been a part then.
            self.ends.truncate(self.coloured.min(colours.len()).saturating_sub(1));
            self.coloured = colours.len();
        }
        let End { mut byte, mut row } = self.ends.last().copied().unwrap_or_default();
        let first = above + row;
        rows.truncate(first);
        let rest = self.clean.get(byte..).unwrap_or_default();
        for (number, line) in (self.ends.len()..).zip(rest.split_inclusive('\n')) {
            let shown = line.strip_suffix('\n').unwrap_or(line);
            let new = lay(number, shown, colours.get(number).filter(|it| says(it, shown)));
            byte += line.len();
            row += new.len();
            rows.extend(new);
            self.ends.push(End { byte, row });
        }
        first
    }
}

/// A line count of a growing text, each byte read once.
#[derive(Default)]
pub(super) struct Counted {
    bytes: usize,
    breaks: usize,
}

impl Counted {
    /// The lines of `source`, which only grows while it is open; a last line break does not begin one.
    pub fn count(&mut self, source: &str, is_open: bool) -> usize {
        if !is_open || source.len() < self.bytes {
            *self = Self::default();
        }
        let new = source.get(self.bytes..).unwrap_or_default();
        self.breaks += new.matches('\n').count();
        self.bytes = source.len();
        let open = !source.is_empty() && !source.ends_with('\n');
        self.breaks + usize::from(open)
    }
}

/// Returns true if a coloured line has this text; colours may come from a moment when it was shorter.
pub(super) fn says(coloured: &CodeLine, line: &str) -> bool {
    let mut rest = line;
    for span in coloured.iter() {
        match rest.strip_prefix(span.text.trim_end_matches('\n')) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    rest.is_empty()
}
