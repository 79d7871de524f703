//! Plain words at the end of the source: they lengthen its last row without the block being read again.
//!
//! Most of what a model writes is words, and a word can mean nothing in Markdown where the text before it ends in a
//! letter that is decided: no line, mark or link can turn into something else by it. So [`Words`] is kept from one
//! update to the next only where that holds, and any sign that could mean something ends it. What comes out is what
//! reading everything again would give.

use super::{
    Flow, LONG, OpenBlock, from, room,
    tail::{LeafStart, SettledEnd, is_letter},
    tree::Tree,
};
use crate::text::{
    Sanitized, Span, StyledLine,
    width::{spans_width, width},
    wrap::wrap,
};

/// The leaf at the end of the rows, which words would lengthen.
#[derive(Debug)]
pub(super) struct Words {
    /// Spans that indent its last row.
    indent: usize,
    /// Indent of the rows after it.
    rest: Vec<Span>,
    /// Columns that the last row takes, and that it may take.
    columns: usize,
    width: usize,
    /// Spaces at the end of the source, which are shown once something follows them.
    blanks: usize,
    in_code: bool,
    is_marked: bool,
}

/// A leaf of text that was laid out last.
#[derive(Debug)]
pub(super) struct Leaf {
    /// Its first row.
    pub row: usize,
    pub first: Vec<Span>,
    pub rest: Vec<Span>,
}

impl Words {
    pub fn behind(leaf: Option<Leaf>, ending: SettledEnd, width: usize, rows: &[StyledLine]) -> Option<Self> {
        let leaf = leaf.filter(|it| it.row < rows.len())?;
        let (rest, _) = room(&leaf.rest, width);
        let indent = if leaf.row + 1 == rows.len() {
            room(&leaf.first, width).0.len()
        } else {
            rest.len()
        };
        let row = rows.last()?;
        let content = row.spans.get(indent..)?.last()?;
        // A word with such a sign may become an address by what is added to it; it may have begun in the row above.
        let word = content.text.rsplit(' ').next().filter(|it| !it.contains("://"))?;
        let begins_here = !row.continues || word.len() < content.text.len() || row.spans.len() > indent + 1;
        // In one or two columns signs give way to others, and a link grows as a whole.
        let plain = width > 2 && begins_here && content.link.is_none() && content.text.ends_with(ending.last);
        (plain && row.facts.is_empty()).then(|| Self {
            indent,
            rest,
            columns: spans_width(&row.spans),
            width,
            blanks: ending.blanks,
            in_code: ending.in_code,
            is_marked: ending.is_marked,
        })
    }

    /// Lengthens the last row. `None` if that cannot be decided from the row alone.
    fn push(&mut self, added: &str, rows: &mut Vec<StyledLine>) -> Option<()> {
        let words = added.trim_end_matches(' ');
        if words.is_empty() {
            self.blanks += added.len();
            return Some(());
        }
        if self.is_marked && !words.ends_with(is_letter) {
            return None;
        }
        let last = rows.last_mut()?;
        let mut text = " ".repeat(self.blanks);
        text.push_str(words);
        let columns = self.columns + width(&text);
        let text = Sanitized::from(text);
        if columns <= self.width {
            last.spans.last_mut()?.text.push(&text);
            self.columns = columns;
        } else {
            let content = last.spans.get(self.indent..)?;
            // The row ends between its words; where it is one word, it matters how the row before it ended.
            content
                .iter()
                .any(|it| it.text.trim_start().contains(' '))
                .then_some(())?;
            let mut content = content.to_vec();
            content.last_mut()?.text.push(&text);
            let first = last.spans.get(..self.indent)?;
            let mut laid = wrap(&content, self.width, first, &self.rest);
            laid.first_mut()?.joins_like(last);
            if laid.len() > 1 {
                self.indent = self.rest.len();
            }
            self.columns = spans_width(&laid.last()?.spans);
            rows.pop();
            rows.append(&mut laid);
        }
        self.blanks = added.len() - words.len();
        Some(())
    }
}

impl Flow {
    /// Prepares for words after `tree`, which was read from byte `begin` on and just laid out.
    pub(super) fn expect_words(&mut self, tree: &Tree, leaf: Option<Leaf>, begin: usize, rows: &[StyledLine]) {
        let is_still = !self.stiff && self.open_waiting.is_empty();
        let ending = tree.ending.filter(|_| is_still);
        self.words = ending.and_then(|it| Words::behind(leaf, it, self.width, rows));
        self.place = tree.place.map(|it| (it, begin));
    }

    /// Returns the last leaf of the source from `begin` on. `None` if it is unknown.
    pub(super) fn place_in(&self, begin: usize) -> Option<LeafStart> {
        self.place.filter(|it| it.1 == begin).map(|it| it.0)
    }

    /// Lengthens the last row if only words and hidden marks were added since the last update. Returns the first row
    /// that changed; `None` if the source must be read again.
    pub(super) fn lengthen(&mut self, source: &str, rows: &mut Vec<StyledLine>) -> Option<usize> {
        let added = source.get(self.last.length..)?;
        let begin = match &self.open {
            OpenBlock::Whole => self.frozen.bytes,
            OpenBlock::Long(long) => long.at,
            OpenBlock::Code(_) => return None,
        };
        if source.len() - begin > LONG {
            return None;
        }
        let words = self.words.as_mut()?;
        // What comes behind a mark decides it, so only the last one is hidden.
        let mark = added
            .chars()
            .next_back()
            .filter(|&it| it == '`' || !words.in_code && is_mark(it));
        let text = mark.map_or(added, |it| added.trim_end_matches(it));
        let marks = from(added, text.len());
        let shows = text.bytes().any(|it| it != b' ');
        let follows_blank = text.ends_with(' ') || text.is_empty() && words.blanks > 0;
        // Code keeps a blank before its end.
        if !text.chars().all(is_word) || marks.contains('`') && follows_blank {
            return None;
        }
        let changed = rows.len().saturating_sub(usize::from(shows));
        words.push(text, rows)?;
        if !marks.is_empty() {
            // They are hidden until it is clear what they mean.
            self.words = None;
        }
        self.laid = source.len() - begin;
        Some(changed)
    }
}

/// Returns true for a character that means nothing in Markdown and nothing to its neighbours, wherever it follows a
/// letter.
///
/// A colon makes an address of the text before it, so it is not one of them.
pub(super) fn is_word(sign: char) -> bool {
    is_letter(sign)
        || matches!(
            sign,
            ' ' | ',' | '.' | ';' | '?' | '(' | ')' | '{' | '}' | '\'' | '"' | '-' | '+' | '=' | '/' | '%' | '@' | '^'
        )
}

/// Returns true for a character that is hidden at the end of a source that is still streaming, outside of code,
/// because it opens or closes something.
fn is_mark(sign: char) -> bool {
    matches!(sign, '*' | '_' | '~')
}
