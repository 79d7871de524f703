//! Breaks styled text into rows of a width.
//!
//! A row ends at spaces (which are swallowed there), between ideographs, and inside a word only
//! when the word alone does not fit: then after a hyphen or slash, at last anywhere. No sign is
//! lost or doubled, no row is wider than asked. Time is linear in the text.

use std::ops::Range;

use super::{
    Sanitized, Span, StyledLine,
    width::{Grapheme, Graphemes, clip_spans, expand_tabs, part, spans_width, width},
};

/// Sign for a grapheme that is wider than the entire row.
const TOO_WIDE: &str = "▯";

/// Wraps `spans` to rows of at most `width` columns (0 counts as 1).
///
/// The first row begins with `first_indent`, the others with `rest_indent`; an indent that would
/// leave less than a third of the width is cut. A line break in a span begins a new row; only rows
/// that the width made have [`StyledLine::continues`]. There is always at least one row. Links stay on
/// every row that they reach.
pub fn wrap(spans: &[Span], width: usize, first_indent: &[Span], rest_indent: &[Span]) -> Vec<StyledLine> {
    lay(spans, width, first_indent, rest_indent, Breaks::Words)
}

/// Like [`wrap`], but for output: rows are filled to the last column, as a terminal does, and spaces count as much as letters.
pub fn wrap_hard(spans: &[Span], width: usize, first_indent: &[Span], rest_indent: &[Span]) -> Vec<StyledLine> {
    lay(spans, width, first_indent, rest_indent, Breaks::Anywhere)
}

/// Like [`wrap_hard`], but for code: where a space is in the last third of a row, the row ends behind it.
pub fn wrap_code(spans: &[Span], width: usize, first_indent: &[Span], rest_indent: &[Span]) -> Vec<StyledLine> {
    lay(spans, width, first_indent, rest_indent, Breaks::LateSpaces)
}

/// The places at which a row may end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Breaks {
    /// Between words, whose spaces are swallowed.
    #[default]
    Words,
    /// Behind a space in the last third of a row, else anywhere.
    LateSpaces,
    Anywhere,
}

/// Like [`wrap`] without indents; also returns the spans of the last row. Wrapping them with the text after them
/// gives the rows from there on.
pub(super) fn wrap_open(spans: &[Span], width: usize) -> (Vec<StyledLine>, Vec<Span>) {
    let mut paragraph = Paragraph::new(spans, width.max(1), &[], &[], Breaks::Words);
    for span in 0..spans.len() {
        paragraph.push_span(span);
    }
    paragraph.end_row(paragraph.reach());
    let Some(TextPosition { span, byte }) = paragraph.last else {
        return (paragraph.rows, Vec::new());
    };
    let mut rest = vec![part(&spans[span], byte..spans[span].text.len())];
    rest.extend_from_slice(&spans[span + 1..]);
    (paragraph.rows, rest)
}

fn lay(spans: &[Span], columns: usize, first_indent: &[Span], rest_indent: &[Span], breaks: Breaks) -> Vec<StyledLine> {
    let expanded: Vec<Span>;
    let spans = if spans.iter().any(|it| it.text.contains('\t')) {
        expanded = without_tabs(spans);
        &expanded
    } else {
        spans
    };
    let mut paragraph = Paragraph::new(spans, columns.max(1), first_indent, rest_indent, breaks);
    if paragraph.fits() {
        return vec![paragraph.whole()];
    }
    for span in 0..spans.len() {
        paragraph.push_span(span);
    }
    paragraph.end_row(paragraph.reach());
    paragraph.rows
}

/// Tab stops are those of the line before it is broken.
fn without_tabs(spans: &[Span]) -> Vec<Span> {
    let mut column = 0;
    let mut expanded = Vec::with_capacity(spans.len());
    for span in spans {
        let text = expand_tabs(&span.text, column);
        column = match text.rsplit_once('\n') {
            Some((_, last)) => width(last),
            None => column + width(&text),
        };
        expanded.push(Span { text, ..span.clone() });
    }
    expanded
}

/// A run of graphemes of one span, or the sign for one that is too wide.
#[derive(Clone, Debug)]
struct GraphemeRun {
    span: usize,
    range: Range<usize>,
    too_wide: bool,
}

impl GraphemeRun {
    fn end(&self) -> TextPosition {
        TextPosition {
            span: self.span,
            byte: self.range.end,
        }
    }
}

/// A border between two graphemes of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TextPosition {
    span: usize,
    byte: usize,
}

/// A point at which the row being filled may end.
#[derive(Clone, Copy, Debug)]
struct Break {
    /// The next row begins here.
    place: TextPosition,
    /// Columns before it.
    columns: usize,
    /// End of the visible text of the row: the spaces before `place` are swallowed.
    visible: TextPosition,
}

#[derive(Default)]
struct Paragraph<'a> {
    spans: &'a [Span],
    indents: Indents,
    breaks: Breaks,
    rows: Vec<StyledLine>,
    /// Start of the last row of `rows`; `ended` is its end.
    last: Option<TextPosition>,
    ended: Option<TextPosition>,
    /// True if the row being filled continues the one before it.
    continues: bool,
    line: Filling,
    /// First characters of the two graphemes before; they decide whether a row may end here.
    previous: Option<char>,
    before_previous: Option<char>,
}

/// Indents of the first and the other rows, and the columns that they leave.
#[derive(Default)]
struct Indents {
    first_indent: Vec<Span>,
    rest_indent: Vec<Span>,
    first_room: usize,
    rest_room: usize,
}

/// Line being filled, without its indent.
#[derive(Default)]
struct Filling {
    pieces: Vec<GraphemeRun>,
    columns: usize,
    /// The end of the row without its trailing spaces; none while it has nothing but spaces.
    visible: Option<TextPosition>,
    /// The last break between words.
    gap: Option<Break>,
    /// The last break inside the word after `gap`.
    joint: Option<Break>,
    /// There is more than spaces on the row.
    has_sign: bool,
    /// Spaces did not fit any more: the next sign belongs to the next row.
    full: bool,
}

impl<'a> Paragraph<'a> {
    fn new(spans: &'a [Span], columns: usize, first_indent: &[Span], rest_indent: &[Span], breaks: Breaks) -> Self {
        // A sign can take two columns, so they are kept free where there are two.
        let kept = (columns / 3).max(2).min(columns);
        let indent = |spans: &[Span]| {
            let indent = clip_spans(spans, columns - kept);
            let room = columns - spans_width(&indent);
            (indent, room)
        };
        let (first_indent, first_room) = indent(first_indent);
        let (rest_indent, rest_room) = indent(rest_indent);
        Self {
            spans,
            indents: Indents {
                first_indent,
                rest_indent,
                first_room,
                rest_room,
            },
            breaks,
            ..Self::default()
        }
    }

    /// Returns true if everything fits on the first row; reads no further than that.
    fn fits(&self) -> bool {
        let mut left = self.indents.first_room;
        self.spans.iter().all(|span| {
            Graphemes::new(&span.text).all(|it| {
                let fits = it.width <= left && it.text != "\n";
                left = left.saturating_sub(it.width);
                fits
            })
        })
    }

    fn whole(&self) -> StyledLine {
        let mut spans = self.indents.first_indent.clone();
        spans.extend(self.spans.iter().filter(|it| !it.text.is_empty()).cloned());
        StyledLine::of(spans)
    }

    fn room(&self) -> usize {
        if self.rows.is_empty() {
            self.indents.first_room
        } else {
            self.indents.rest_room
        }
    }

    fn push_span(&mut self, span: usize) {
        let text = &self.spans[span].text;
        let mut graphemes = Graphemes::new(text);
        while let Some(grapheme) = graphemes.next() {
            self.push(span, &grapheme);
            if self.previous.is_some_and(|it| it.is_ascii_alphanumeric()) {
                let run = letters(text.as_bytes(), grapheme.end(), self.room() - self.line.columns);
                self.push_letters(run);
                graphemes.skip_bytes(run);
            }
        }
    }

    /// Lengthens the row by ASCII letters of the word that it ends with; they offer no break and fit.
    fn push_letters(&mut self, count: usize) {
        if count > 0
            && let Some(last) = self.line.pieces.last_mut()
        {
            last.range.end += count;
            self.line.visible = Some(last.end());
            self.line.columns += count;
            // Any letter will do: joints only ask what kind of sign it is.
            self.before_previous = self.previous;
        }
    }

    fn push(&mut self, span: usize, grapheme: &Grapheme<'_>) {
        if grapheme.text.starts_with(['\n', '\r']) {
            self.end_row(self.reach());
            self.continues = false;
            self.previous = None;
            return;
        }
        if self.breaks == Breaks::Words && grapheme.text == " " {
            self.push_space(span, grapheme);
        } else {
            self.push_sign(span, grapheme);
        }
        self.before_previous = self.previous;
        self.previous = grapheme.text.chars().next();
    }

    fn push_space(&mut self, span: usize, grapheme: &Grapheme<'_>) {
        if self.line.full || self.line.columns == self.room() {
            self.line.full = true;
            return;
        }
        self.add(span, grapheme);
        // Spaces at the start of a row belong to its first word: a row never consists of them alone.
        if self.line.visible.is_some() {
            self.line.gap = self.here();
            self.line.joint = None;
        }
    }

    fn push_sign(&mut self, span: usize, grapheme: &Grapheme<'_>) {
        if self.line.full {
            self.end_visible();
        } else if self.breaks == Breaks::Words
            && let (Some(before), Some(after)) = (self.previous, grapheme.text.chars().next())
        {
            if may_part(before, after) {
                self.line.gap = self.here();
                self.line.joint = None;
            } else if is_joint(self.before_previous, before, after) {
                self.line.joint = self.here();
            }
        }
        let is_space = grapheme.text == " ";
        while self.line.columns > 0 && self.line.columns + grapheme.width > self.room() {
            if is_space {
                // The word before it fits.
                self.line.gap = None;
            }
            match self.line.gap.take().or_else(|| self.line.joint.take()) {
                Some(at) => self.end_row_at(at),
                None => self.end_visible(),
            }
        }
        self.add(span, grapheme);
        self.line.visible = self.reach();
        self.line.has_sign |= !is_space;
        let is_late = self.line.columns * 3 >= self.room() * 2;
        if self.breaks == Breaks::LateSpaces && is_space && is_late && self.line.has_sign {
            self.line.gap = self.here();
        }
    }

    fn add(&mut self, span: usize, grapheme: &Grapheme<'_>) {
        let range = grapheme.start..grapheme.end();
        if grapheme.width > self.room() {
            self.line.columns += 1;
            self.line.pieces.push(GraphemeRun {
                span,
                range,
                too_wide: true,
            });
            return;
        }
        self.line.columns += grapheme.width;
        match self.line.pieces.last_mut() {
            Some(last) if last.span == span && !last.too_wide && last.range.end == range.start => {
                last.range.end = range.end;
            }
            _ => self.line.pieces.push(GraphemeRun {
                span,
                range,
                too_wide: false,
            }),
        }
    }

    fn reach(&self) -> Option<TextPosition> {
        self.line.pieces.last().map(GraphemeRun::end)
    }

    /// Returns a break at the end of the row so far. `None` if the row would show nothing.
    fn here(&self) -> Option<Break> {
        (self.line.columns > 0).then_some(())?;
        Some(Break {
            place: self.reach()?,
            columns: self.line.columns,
            visible: self.line.visible?,
        })
    }

    /// Ends the row without its trailing spaces; a row of spaces becomes empty.
    fn end_visible(&mut self) {
        match self.line.visible {
            Some(until) => self.end_row(Some(until)),
            None => self.clear(),
        }
    }

    fn end_row(&mut self, until: Option<TextPosition>) {
        self.emit(until);
        self.clear();
    }

    fn end_row_at(&mut self, at: Break) {
        self.emit(Some(at.visible));
        let kept = self.line.pieces.partition_point(|it| it.end() <= at.place);
        let mut carried = self.line.pieces.split_off(kept);
        if let Some(first) = carried.first_mut()
            && first.span == at.place.span
        {
            first.range.start = first.range.start.max(at.place.byte);
        }
        let columns = self.line.columns - at.columns;
        let joint = self
            .line
            .joint
            .filter(|it| it.place > at.place && it.columns > at.columns);
        self.clear();
        self.line.joint = joint.map(|it| Break {
            columns: it.columns - at.columns,
            ..it
        });
        self.line.pieces = carried;
        self.line.columns = columns;
        self.line.has_sign = columns > 0;
        self.line.visible = self.reach();
    }

    fn clear(&mut self) {
        let mut pieces = std::mem::take(&mut self.line.pieces);
        pieces.clear();
        self.line = Filling {
            pieces,
            ..Filling::default()
        };
    }

    fn emit(&mut self, until: Option<TextPosition>) {
        let indent = if self.rows.is_empty() {
            &self.indents.first_indent
        } else {
            &self.indents.rest_indent
        };
        let mut spans = indent.clone();
        self.last = self.line.pieces.first().map(|it| TextPosition {
            span: it.span,
            byte: it.range.start,
        });
        for piece in &self.line.pieces {
            let Some(until) = until.filter(|it| (piece.span, piece.range.start) < (it.span, it.byte)) else {
                break;
            };
            let span = &self.spans[piece.span];
            let end = if piece.span == until.span {
                piece.range.end.min(until.byte)
            } else {
                piece.range.end
            };
            if piece.too_wide {
                spans.push(Span {
                    text: Sanitized::literal(TOO_WIDE),
                    ..part(span, 0..0)
                });
            } else {
                spans.push(part(span, piece.range.start..end));
            }
        }
        self.rows.push(StyledLine {
            spans,
            continues: self.continues,
            spaced: self.continues && self.is_behind_spaces(),
            gutter: if self.rows.is_empty() {
                0
            } else {
                self.indents.rest_indent.len().min(255) as u8
            },
            ..StyledLine::default()
        });
        self.ended = until;
        self.continues = true;
    }

    /// Returns true if spaces were left out between the previous row and the last one.
    fn is_behind_spaces(&self) -> bool {
        let (Some(before), Some(after)) = (self.ended, self.last) else {
            return false;
        };
        if before.span == after.span {
            return before.byte < after.byte;
        }
        let between = self.spans.get(before.span + 1..after.span).unwrap_or_default();
        self.spans
            .get(before.span)
            .is_some_and(|it| before.byte < it.text.len())
            || between.iter().any(|it| !it.text.is_empty())
            || after.byte > 0
    }
}

/// Counts the ASCII letters and digits from `start` on, at most `most`, without one that a combining mark may follow.
fn letters(text: &[u8], start: usize, most: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    let run = rest
        .iter()
        .take(most)
        .take_while(|it| it.is_ascii_alphanumeric())
        .count();
    if rest.get(run).is_none_or(u8::is_ascii) {
        run
    } else {
        run.saturating_sub(1)
    }
}

/// Returns true if a row may end between two characters without a space: around ideographs, but not before closing or
/// after opening punctuation.
fn may_part(before: char, after: char) -> bool {
    (is_ideographic(before) || is_ideographic(after)) && !is_one_of(CLOSING, after) && !is_one_of(OPENING, before)
}

/// Returns true if a word that is too long may be broken between `before` and `after`: after a slash or hyphen inside
/// it.
fn is_joint(before_that: Option<char>, before: char, after: char) -> bool {
    let inside = before_that.is_some_and(|it| it != ' ' && it != before);
    matches!(before, '/' | '\\' | '-' | '?' | '&' | '\u{2010}' | '\u{2013}')
        && inside
        && after != before
        && after.is_alphanumeric()
}

fn is_ideographic(sign: char) -> bool {
    matches!(sign,
        '\u{2e80}'..='\u{2fdf}' // radicals
        | '\u{3000}'..='\u{30ff}' // punctuation, kana
        | '\u{3100}'..='\u{312f}' | '\u{31a0}'..='\u{31bf}' // bopomofo
        | '\u{31f0}'..='\u{31ff}' | '\u{3200}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}' | '\u{ff00}'..='\u{ff60}'
        | '\u{20000}'..='\u{3fffd}')
}

/// Returns true if `signs`, which are all punctuation, contain the character.
fn is_one_of(signs: &str, sign: char) -> bool {
    !sign.is_ascii_alphanumeric() && signs.contains(sign)
}

/// No row begins with these.
const CLOSING: &str = ")]},.;:!?%\"'、。，．・：；？！’”）］｝〉》」』】〕〗〙｠»…‥％℃°′″～〜ー々ゝゞヽヾ゛゜ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ\u{a0}\u{202f}\u{2060}";

/// No row ends with these.
const OPENING: &str = "([{\"'‘“（［｛〈《「『【〔〖〘｟«\u{a0}\u{202f}\u{2060}";

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::text::Role;

    /// Text with everything that is hard about width.
    pub(crate) fn mixed() -> impl Strategy<Value = String> {
        let unit = prop_oneof![
            6 => "[a-z]{1,9}",
            6 => Just(" ".to_owned()),
            1 => "[ -~]{1,6}",
            1 => Just("src/shop/cart-item.rs".to_owned()),
            1 => Just("漢字、テスト。「引用」".to_owned()),
            1 => Just("한국어".to_owned()),
            1 => Just("👨\u{200d}👩\u{200d}👧\u{200d}👦".to_owned()),
            1 => Just("🇩🇪🇫🇷🇯".to_owned()),
            1 => Just("👍🏽❤\u{fe0f}".to_owned()),
            1 => Just("e\u{301}\u{323}".to_owned()),
            1 => Just("\u{301}".to_owned()),
            1 => Just("क्षि".to_owned()),
            1 => Just("ｶﾞ".to_owned()),
            1 => Just("\u{200b}".to_owned()),
            1 => Just("\t".to_owned()),
        ];
        proptest::collection::vec(unit, 0..40).prop_map(|it| it.concat())
    }

    fn check(text: &str, width: usize, expected: &[&str]) {
        let rows = wrap(&[Span::new(text, Role::Text)], width, &[], &[]);
        let rows: Vec<String> = rows.iter().map(StyledLine::plain).collect();
        assert_eq!(rows, expected, "{text:?} in {width} columns");
    }

    #[test]
    fn rows_end_at_spaces_that_are_swallowed() {
        check("the quick brown fox", 10, &["the quick", "brown fox"]);
        check("the quick brown fox", 9, &["the quick", "brown fox"]);
        check("the   quick     brown", 9, &["the", "quick", "brown"]);
        check("the   quick     brown", 11, &["the   quick", "brown"]);
        check("word        ", 6, &["word  "]);
        check("", 6, &[""]);
    }

    #[test]
    fn a_word_is_broken_only_when_it_alone_is_too_long() {
        check("see src/shop/cart.rs", 16, &["see", "src/shop/cart.rs"]);
        check("see src/shop/cart.rs", 15, &["see", "src/shop/", "cart.rs"]);
        check("run it with --dry-run", 15, &["run it with", "--dry-run"]);
        check("abcdefghij", 4, &["abcd", "efgh", "ij"]);
        check("ab abcdefghij kl", 4, &["ab", "abcd", "efgh", "ij", "kl"]);
    }

    #[test]
    fn ideographs_part_but_not_before_closing_punctuation() {
        check("漢字漢字漢字", 5, &["漢字", "漢字", "漢字"]);
        check("漢字。漢", 4, &["漢", "字。", "漢"]);
        check("あ「漢字」", 4, &["あ", "「漢", "字」"]);
        check("ab漢字", 3, &["ab", "漢", "字"]);
    }

    #[test]
    fn line_breaks_begin_rows_that_do_not_continue() {
        let rows = wrap(&[Span::new("one two\nthree", Role::Text)], 4, &[], &[]);
        let rows: Vec<(String, bool)> = rows.iter().map(|it| (it.plain(), it.continues)).collect();
        let expected = [("one", false), ("two", true), ("thre", false), ("e", true)];
        assert_eq!(rows, expected.map(|(text, continues)| (text.to_owned(), continues)));
    }

    #[test]
    fn what_was_broken_can_be_put_together_again() {
        let spans = [
            Span::new("see src/shop/", Role::Text),
            Span::new("cart.rs and", Role::Strong),
            Span::new("  then 漢字漢字", Role::Text),
        ];
        for (width, joined) in [
            (10, "see src/shop/cart.rs and then 漢字漢字"),
            (60, "see src/shop/cart.rs and  then 漢字漢字"),
        ] {
            let mut text = String::new();
            for row in wrap(&spans, width, &[], &[Span::new("  ", Role::Text)]) {
                if row.spaced {
                    text.push(' ');
                }
                text.extend(row.content().iter().map(|it| it.text.as_str()));
            }
            assert_eq!(text, joined, "{width}");
        }
    }

    #[test]
    fn indents_stand_before_the_first_and_the_other_rows() {
        let (bullet, rest) = ([Span::new("• ", Role::Faint)], [Span::new("  ", Role::Text)]);
        let rows = wrap(&[Span::new("buy milk now", Role::Text)], 10, &bullet, &rest);
        assert_eq!(
            rows.iter().map(StyledLine::plain).collect::<Vec<_>>(),
            ["• buy milk", "  now"]
        );
    }

    #[test]
    fn a_link_is_linked_on_every_row() {
        let link: Arc<str> = "https://sheaf.dev".into();
        let spans = [
            Span::new("see ", Role::Text),
            Span::new("the whole book", Role::Link).linked(Some(link)),
        ];
        let rows = wrap(&spans, 9, &[], &[]);
        let linked: Vec<(String, bool)> = rows
            .iter()
            .flat_map(|it| &it.spans)
            .map(|it| (it.text.to_string(), it.link.is_some()))
            .collect();
        let expected = [("see ", false), ("the", true), ("whole", true), ("book", true)];
        assert_eq!(linked, expected.map(|(text, linked)| (text.to_owned(), linked)));
    }

    #[test]
    fn a_word_in_two_looks_stays_one_word() {
        let spans = [
            Span::new("one t", Role::Text),
            Span::new("w", Role::Strong),
            Span::new("o", Role::Text),
        ];
        let rows = wrap(&spans, 6, &[], &[]);
        assert_eq!(rows.iter().map(StyledLine::plain).collect::<Vec<_>>(), ["one", "two"]);
    }

    #[test]
    fn a_sign_wider_than_the_row_is_replaced() {
        check("a漢b", 1, &["a", "▯", "b"]);
    }

    #[test]
    fn code_keeps_its_spaces() {
        let rows = wrap_hard(&[Span::new("if a  { b }", Role::Text)], 5, &[], &[]);
        assert_eq!(
            rows.iter().map(StyledLine::plain).collect::<Vec<_>>(),
            ["if a ", " { b ", "}"]
        );
    }

    #[test]
    fn code_is_cut_behind_a_space_where_one_is_near_the_end() {
        for (text, expected) in [
            ("let nothing = is paid out", &["let nothing ", "= is paid ", "out"][..]),
            // A space that is far from the end is none to cut at, and neither is an indent.
            ("a verylongname(argument)", &["a verylongna", "me(argument)"]),
            ("          name(argument)", &["          na", "me(argument)"]),
            // What fits exactly stays.
            ("twelve signs and", &["twelve signs", " and"]),
            ("eleven sign and", &["eleven sign ", "and"]),
        ] {
            let rows = wrap_code(&[Span::new(text, Role::Text)], 12, &[], &[]);
            assert_eq!(
                rows.iter().map(StyledLine::plain).collect::<Vec<_>>(),
                expected,
                "{text}"
            );
            assert_eq!(rows.iter().map(StyledLine::plain).collect::<String>(), text);
        }
    }

    #[test]
    fn ten_megabytes_on_one_line_wrap_in_linear_time() {
        for unit in ["0123456789", "word and ", "漢字", "a-"] {
            let text = unit.repeat(if unit.len() == 9 { 10_000_000 } else { 1_000_000 } / unit.len());
            let rows = wrap(&[Span::new(text.as_str(), Role::Text)], 80, &[], &[]);
            assert!(rows.len() >= text.len() / 160, "{unit}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn no_row_is_too_wide_and_no_sign_is_lost(
            texts in proptest::collection::vec(mixed(), 0..4), width in 1_usize..300, narrow in 1_usize..12, way in 0_usize..3,
            indent in 0_usize..8,
        ) {
            for width in [width, narrow] {
                let spans: Vec<Span> = texts.iter().map(|it| Span::new(it.as_str(), Role::Text)).collect();
                let indent = [Span::new("│ ".repeat(indent), Role::Rule)];
                let wrap = [wrap, wrap_hard, wrap_code][way];
                let rows = wrap(&spans, width, &indent, &indent);
                prop_assert!(!rows.is_empty());
                for (index, row) in rows.iter().enumerate() {
                    prop_assert!(spans_width(&row.spans) <= width, "{row:?}");
                    prop_assert_eq!(row.continues, index > 0);
                }
                if width >= 9 {
                    let squeeze = |text: &str| text.chars().filter(|it| !matches!(it, ' ' | '\t' | '│')).collect::<String>();
                    let shown: String = rows.iter().map(StyledLine::plain).collect();
                    let given: String = spans.iter().map(|it| it.text.as_str()).collect();
                    prop_assert_eq!(squeeze(&shown), squeeze(&given));
                }
            }
        }
    }
}
