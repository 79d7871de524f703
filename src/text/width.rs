//! Width of text in columns, and cutting text to a number of columns.
//!
//! The unit is the grapheme, as in the painter: an emoji family is one sign of two columns. A tab counts to the next
//! stop of four columns but cannot be painted: call [`expand_tabs`] first. Line breaks take no column. Nothing here
//! splits a grapheme or returns more columns than asked for.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::{Sanitized, Span};

/// Columns from one tab stop to the next.
pub const TAB: usize = 4;

/// Sign in place of text that was cut away.
pub const ELLIPSIS: &str = "…";

/// Columns that `text` takes when it starts at a tab stop.
pub fn width(text: &str) -> usize {
    if text.bytes().all(|it| (0x20..0x7f).contains(&it)) {
        return text.len();
    }
    Graphemes::new(text).fold(0, |column, it| column + it.columns_at(column))
}

/// Columns that the spans take one after the other.
pub fn spans_width(spans: &[Span]) -> usize {
    spans.iter().map(|it| width(&it.text)).sum()
}

/// One grapheme: the content of one cell, or of two for wide ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grapheme<'a> {
    /// Byte at which it starts.
    pub start: usize,
    pub text: &'a str,
    /// Columns; 1 for a tab.
    pub width: usize,
}

impl Grapheme<'_> {
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Returns its width at `column`: a tab reaches to its stop.
    pub fn columns_at(&self, column: usize) -> usize {
        if self.text == "\t" {
            TAB - column % TAB
        } else {
            self.width
        }
    }
}

/// The graphemes of a text with their widths; much faster than the general segmentation on ASCII.
#[derive(Clone, Debug)]
pub struct Graphemes<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Graphemes<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Passes over bytes that are known to be whole graphemes.
    pub(super) fn skip_bytes(&mut self, count: usize) {
        self.at += count;
    }
}

impl<'a> Iterator for Graphemes<'a> {
    type Item = Grapheme<'a>;

    fn next(&mut self) -> Option<Grapheme<'a>> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let byte = *bytes.get(start)?;
        let alone = byte.is_ascii() && byte != b'\r' && bytes.get(start + 1).is_none_or(u8::is_ascii);
        let rest = self.text.get(start..).expect("graphemes end on character borders");
        let (text, width) = if alone {
            let text = rest.get(..1).expect("the byte is ASCII");
            (text, usize::from(byte != b'\n'))
        } else {
            // A grapheme starts here, so what came before cannot matter and the search stays local.
            let text = rest.graphemes(true).next().expect("the rest is not empty");
            let width = if text.starts_with(['\n', '\r']) {
                0
            } else {
                columns(text)
            };
            (text, width)
        };
        self.at += text.len();
        Some(Grapheme { start, text, width })
    }
}

/// Columns of one grapheme as ratatui counts them: it adds one for each halfwidth sound mark, which
/// `unicode-width` before 0.2.3 took for combining. Counting less than the painter would lose the row's end.
fn columns(grapheme: &str) -> usize {
    let marks = grapheme
        .chars()
        .filter(|it| matches!(it, '\u{ff9e}' | '\u{ff9f}'))
        .count();
    grapheme.width() + marks
}

/// `text` with spaces instead of tabs, for a text that starts at `column`.
pub fn expand_tabs(text: &Sanitized, column: usize) -> Sanitized {
    if !text.contains('\t') {
        return text.clone();
    }
    let mut expanded = String::with_capacity(text.len() + 16);
    let mut column = column;
    for grapheme in Graphemes::new(text) {
        let columns = grapheme.columns_at(column);
        match grapheme.text {
            "\t" => expanded.extend(std::iter::repeat_n(' ', columns)),
            other => expanded.push_str(other),
        }
        column = if grapheme.text == "\n" { 0 } else { column + columns };
    }
    Sanitized::from(expanded)
}

/// As much of the start of `text` as fits into `columns`. Reads no more of it than that.
pub fn cut(text: &str, columns: usize) -> &str {
    let (end, _) = fitting(text, columns);
    text.get(..end).expect("graphemes end on character borders")
}

/// Returns the text; its start and an ellipsis if it is wider than `columns`.
pub fn cut_end(text: &str, columns: usize) -> String {
    let start = cut(text, columns);
    if start.len() == text.len() {
        text.to_owned()
    } else if columns == 0 {
        String::new()
    } else {
        format!("{}{ELLIPSIS}", cut(text, columns - 1))
    }
}

/// Returns the text; an ellipsis and its end if it is wider than `columns`.
pub fn cut_start(text: &str, columns: usize) -> String {
    if cut(text, columns).len() == text.len() {
        text.to_owned()
    } else if columns == 0 {
        String::new()
    } else {
        format!("{ELLIPSIS}{}", tail(&flat(text), columns - 1))
    }
}

/// Returns the text; both ends with an ellipsis between if it is wider than `columns`. A path keeps its first folder
/// and its last names if they fit: `src/…/cart.rs`.
pub fn cut_middle(text: &str, columns: usize) -> String {
    if cut(text, columns).len() == text.len() {
        return text.to_owned();
    }
    let text = &*flat(text);
    if let Some(path) = cut_path(text, columns) {
        return path;
    }
    if columns == 0 {
        return String::new();
    }
    let kept = columns - 1;
    format!("{}{ELLIPSIS}{}", cut(text, kept / 2), tail(text, kept - kept / 2))
}

/// Appends spaces up to `columns`; wider text is unchanged.
pub fn pad(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(missing))
}

/// Prepends spaces up to `columns`; wider text is unchanged.
pub fn pad_start(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(width(text));
    format!("{}{text}", " ".repeat(missing))
}

/// As much of the start of the spans as fits into `columns`, without an ellipsis.
pub fn clip_spans(spans: &[Span], columns: usize) -> Vec<Span> {
    let mut left = columns;
    let mut kept = Vec::with_capacity(spans.len());
    for span in spans {
        let (end, used) = fitting(&span.text, left);
        if end < span.text.len() {
            if end > 0 {
                kept.push(part(span, 0..end));
            }
            break;
        }
        left -= used;
        kept.push(span.clone());
    }
    kept
}

/// Returns the spans; their start and an ellipsis in the style of the cut text if they are wider than `columns`.
pub fn cut_spans(spans: &[Span], columns: usize) -> Vec<Span> {
    if spans.iter().any(|it| it.text.contains('\t')) {
        let without_tab = |it: &Span| Span {
            text: Sanitized::from(it.text.replace('\t', " ")),
            ..it.clone()
        };
        let spans: Vec<Span> = spans.iter().map(without_tab).collect();
        return cut_spans(&spans, columns);
    }
    let mut left = columns;
    let fits = spans.iter().all(|it| {
        let (end, used) = fitting(&it.text, left);
        left -= used;
        end == it.text.len()
    });
    if fits {
        return spans.to_vec();
    }
    if columns == 0 {
        return Vec::new();
    }
    let mut kept = clip_spans(spans, columns - 1);
    let whole = kept
        .iter()
        .zip(spans)
        .take_while(|(kept, span)| kept.text.len() == span.text.len());
    let cut = &spans[whole.count().min(spans.len() - 1)];
    kept.push(Span {
        text: Sanitized::literal(ELLIPSIS),
        ..look(cut)
    });
    kept
}

/// A part of a span in the span's look.
pub fn part(span: &Span, range: std::ops::Range<usize>) -> Span {
    let text = if range == (0..span.text.len()) {
        span.text.clone()
    } else {
        span.text.slice(range)
    };
    Span { text, ..look(span) }
}

/// A span without its text.
fn look(span: &Span) -> Span {
    Span {
        text: Sanitized::default(),
        role: span.role,
        modifier: span.modifier,
        background: span.background,
        link: span.link.clone(),
    }
}

/// The bytes and columns of the longest start of `text` that fits into `columns`.
fn fitting(text: &str, columns: usize) -> (usize, usize) {
    let mut used = 0;
    for grapheme in Graphemes::new(text) {
        let next = used + grapheme.columns_at(used);
        if next > columns {
            return (grapheme.start, used);
        }
        used = next;
    }
    (text.len(), used)
}

/// Replaces tabs with single spaces: after an ellipsis they would reach to other stops.
fn flat(text: &str) -> Cow<'_, str> {
    if text.contains('\t') {
        text.replace('\t', " ").into()
    } else {
        text.into()
    }
}

/// Returns the longest end of `text` that fits into `columns`. Reads forward, where finding graphemes is linear.
fn tail(text: &str, columns: usize) -> &str {
    let mut left = Graphemes::new(text).map(|it| it.width).sum::<usize>();
    let mut graphemes = Graphemes::new(text);
    while left > columns {
        let Some(grapheme) = graphemes.next() else { break };
        left -= grapheme.width;
    }
    text.get(graphemes.at..).expect("graphemes end on character borders")
}

/// `src/…/cart.rs`, else `…/cart.rs`, else nothing.
fn cut_path(path: &str, columns: usize) -> Option<String> {
    let root = path.find('/').filter(|&it| it + 1 < path.len())?;
    let first = path.get(..root)?;
    let shorten = |head: &str| {
        let room = columns.checked_sub(width(head))?;
        let names = tail(path.get(root + 1..)?, room);
        let start = path.len() - names.len();
        // The tail begins inside a name unless a slash stands before it.
        let whole = if path.get(..start)?.ends_with('/') {
            names
        } else {
            names.split_once('/')?.1
        };
        (!whole.is_empty()).then(|| format!("{head}{whole}"))
    };
    shorten(&format!("{first}/{ELLIPSIS}/")).or_else(|| shorten(&format!("{ELLIPSIS}/")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::Role;

    const FAMILY: &str = "👨‍👩‍👧‍👦";

    #[test]
    fn text_is_as_wide_as_the_terminal_makes_it() {
        for (name, text, columns) in [
            ("nothing", "", 0),
            ("ascii", "cart.rs", 7),
            ("an umlaut in two characters", "u\u{308}ber", 4),
            ("ideographs", "漢字", 4),
            ("an emoji family", FAMILY, 2),
            ("a flag", "🇩🇪", 2),
            ("a heart in colour", "❤\u{fe0f}", 2),
            ("a tab from the start", "\tx", 5),
            ("a tab after three columns", "abc\tx", 5),
            ("a tab after a wide sign", "漢\tx", 5),
            ("a line break", "a\nb", 2),
            ("a halfwidth sound mark as the painter counts it", "ｶﾞ", 3),
        ] {
            assert_eq!(width(text), columns, "{name}");
        }
    }

    #[test]
    fn tabs_reach_to_the_next_stop() {
        let expand = |text: &str, column| expand_tabs(&Sanitized::new(text), column).to_string();
        assert_eq!(expand("a\tb\tc", 0), "a   b   c");
        assert_eq!(expand("\tb", 3), " b");
        assert_eq!(expand("漢\tb\n\tc", 0), "漢  b\n    c");
    }

    #[test]
    fn a_cut_text_says_so_and_fits() {
        for (text, columns, end, start, middle) in [
            ("cart.rs", 7, "cart.rs", "cart.rs", "cart.rs"),
            ("cart.rs", 6, "cart.…", "…rt.rs", "ca….rs"),
            ("cart.rs", 1, "…", "…", "…"),
            ("cart.rs", 0, "", "", ""),
            ("漢字漢字", 6, "漢字…", "…漢字", "漢…字"),
            ("漢字漢字", 2, "…", "…", "…"),
        ] {
            assert_eq!(cut_end(text, columns), end, "{text} to {columns}");
            assert_eq!(cut_start(text, columns), start, "{text} to {columns}");
            assert_eq!(cut_middle(text, columns), middle, "{text} to {columns}");
        }
    }

    #[test]
    fn a_path_loses_its_middle_folders_first() {
        let path = "src/shop/checkout/cart.rs";
        for (columns, expected) in [
            (25, "src/shop/checkout/cart.rs"),
            (24, "src/…/checkout/cart.rs"),
            (22, "src/…/checkout/cart.rs"),
            (21, "src/…/cart.rs"),
            (13, "src/…/cart.rs"),
            (12, "…/cart.rs"),
            (9, "…/cart.rs"),
            (8, "src…t.rs"),
        ] {
            assert_eq!(cut_middle(path, columns), expected, "{columns} columns");
        }
    }

    #[test]
    fn cut_spans_keep_their_looks() {
        let spans = [Span::new("read ", Role::Dim), Span::new("cart.rs", Role::Text).bold()];
        assert_eq!(cut_spans(&spans, 12), spans);
        let expected = [
            Span::new("read ", Role::Dim),
            Span::new("car", Role::Text).bold(),
            Span::new("…", Role::Text).bold(),
        ];
        assert_eq!(cut_spans(&spans, 9), expected);
        let expected = [Span::new("read", Role::Dim), Span::new("…", Role::Dim)];
        assert_eq!(cut_spans(&spans, 5), expected);
        assert_eq!(cut_spans(&spans, 0), []);
    }

    #[test]
    fn ten_megabytes_on_one_line_are_measured_in_linear_time() {
        for unit in ["0123456789", "🇩🇪", "e\u{301}\u{301}"] {
            let text = unit.repeat(10_000_000 / unit.len() / if unit.is_ascii() { 1 } else { 10 });
            assert!(width(&text) >= text.len() / 8);
            assert!(width(cut(&text, 80)) <= 80);
            assert!(width(&cut_end(&text, 80)) <= 80);
            assert!(width(&cut_start(&text, 80)) <= 80);
            assert!(width(&cut_middle(&text, 80)) <= 80);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn no_cut_is_wider_than_asked(text in crate::text::wrap::tests::mixed(), columns in 0_usize..40) {
            for cut in [cut(&text, columns).to_owned(), cut_end(&text, columns), cut_start(&text, columns), cut_middle(&text, columns)] {
                prop_assert!(width(&cut) <= columns, "{cut:?}");
            }
            let spans = [Span::new(text.as_str(), Role::Text), Span::new(text.as_str(), Role::Dim)];
            prop_assert!(spans_width(&cut_spans(&spans, columns)) <= columns);
            prop_assert!(width(&pad(&text, columns)) >= columns);
        }

        #[test]
        fn graphemes_are_those_of_the_general_segmentation(text in "[a-z\r\n\t漢é🇩🇪👍\u{1f3fd}\u{200d}\u{301}\u{fe0f}]{0,24}") {
            let ours: Vec<&str> = Graphemes::new(&text).map(|it| it.text).collect();
            let theirs: Vec<&str> = text.graphemes(true).collect();
            prop_assert_eq!(ours, theirs);
        }
    }
}
