//! Reads Markdown that is still streaming: undecided marks are hidden, and what is open is closed, so that `this is
//! **bo` shows a bold `bo` and never an asterisk.
//!
//! Only the last leaf (the paragraph, item or cell being written) can be undecided. If a mark turns out to be plain
//! text, it appears with the character that decides it.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::{HIDDEN, from, options, upto};

/// Number of open marks that a closing one is compared with.
const OPENERS: usize = 64;

/// The longest entity, `&CounterClockwiseContourIntegral;`, has 33 characters.
const ENTITY: usize = 33;

/// The part of an incomplete source that is shown.
#[derive(Debug)]
pub(super) struct Shown<'a> {
    /// Renders as the source should.
    pub source: Cow<'a, str>,
    /// End of the text, if words after it would be nothing but words.
    pub ending: Option<SettledEnd>,
    /// The leaf at its end, if no text after it in its line can change that.
    pub place: Option<LeafStart>,
}

/// Kind and start of the last leaf of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeafStart {
    kind: LeafKind,
    start: usize,
}

/// Returns the part of `source`, which begins at an outermost block, that is shown. `place` is the result for a
/// shorter source, if no line break came since.
pub(super) fn shown(source: &str, place: Option<LeafStart>) -> Shown<'_> {
    if let Some(LeafStart { kind, start }) = place {
        let leaf = LastLeaf {
            kind,
            range: start..source.len(),
        };
        return Shown {
            place,
            ..leaf.mend(source)
        };
    }
    let mut until = source.len();
    // Cutting one line uncovers the one before it; tables hold two.
    for _ in 0..3 {
        let before = upto(source, until);
        let leaf = LastLeaf::last(before);
        let line = line_start(before);
        if let Some(cut) = leaf.undecided_line(before, line) {
            until = cut;
            continue;
        }
        let shown = leaf.mend(before);
        return if until == source.len() {
            shown
        } else {
            Shown::of(shown.source)
        };
    }
    Shown::of(Cow::Borrowed(upto(source, until)))
}

impl<'a> Shown<'a> {
    fn of(source: Cow<'a, str>) -> Self {
        Self {
            source,
            ending: None,
            place: None,
        }
    }
}

/// End of a source after which words are nothing but words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SettledEnd {
    /// Spaces at its end, which are not shown yet.
    pub blanks: usize,
    /// The letter before them.
    pub last: char,
    /// True inside code, where only a backtick is a mark.
    pub in_code: bool,
    /// True if marks are open, which will be closed after the text; the text before them decides what they are.
    pub is_marked: bool,
}

/// Returns true for letters and digits that are a grapheme of their own, whatever their neighbours are.
pub(super) fn is_letter(sign: char) -> bool {
    sign.is_ascii_alphanumeric()
        || matches!(sign,
            'À'..='Ö' | 'Ø'..='ö' | 'ø'..='ɏ' // Latin
            | 'Α'..='Ρ' | 'Σ'..='ω' | 'А'..='я' // Greek, Cyrillic
            | 'ぁ'..='ゖ' | 'ァ'..='ヺ' | '\u{4e00}'..='\u{9fff}' | '가'..='힣')
}

/// Returns the byte at which the last line begins, complete or not.
fn line_start(text: &str) -> usize {
    let complete = text.strip_suffix('\n').unwrap_or(text);
    complete.rfind('\n').map_or(0, |it| it + 1)
}

/// A line without the marks of the quotes around it.
fn inside(line: &str) -> &str {
    line.trim_start_matches([' ', '\t', '>']).trim_end()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeafKind {
    None,
    Paragraph,
    /// The text of a tight item.
    Item,
    Heading,
    Table,
    Code,
    Html,
}

/// The last block that contains text.
#[derive(Debug)]
struct LastLeaf {
    kind: LeafKind,
    range: Range<usize>,
}

impl LastLeaf {
    fn last(source: &str) -> Self {
        let mut leaf = Self {
            kind: LeafKind::None,
            range: 0..0,
        };
        let mut explicit = false;
        for (event, range) in Parser::new_ext(source, options()).into_offset_iter() {
            let kind = match &event {
                Event::Start(Tag::Paragraph) => LeafKind::Paragraph,
                Event::Start(Tag::Heading { .. }) => LeafKind::Heading,
                Event::Start(Tag::Table(_)) => LeafKind::Table,
                Event::Start(Tag::CodeBlock(_)) => LeafKind::Code,
                Event::Start(Tag::HtmlBlock) => LeafKind::Html,
                Event::Start(Tag::Item | Tag::List(_) | Tag::BlockQuote(_)) | Event::Rule => {
                    explicit = false;
                    leaf = Self {
                        kind: LeafKind::None,
                        range,
                    };
                    continue;
                }
                Event::End(
                    TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::Table | TagEnd::CodeBlock | TagEnd::HtmlBlock,
                ) => {
                    explicit = false;
                    continue;
                }
                Event::End(TagEnd::Item | TagEnd::List(_) | TagEnd::BlockQuote(_)) | Event::TaskListMarker(_) => {
                    continue;
                }
                _ if explicit => continue,
                _ if leaf.kind == LeafKind::Item => {
                    leaf.range.end = leaf.range.end.max(range.end);
                    continue;
                }
                _ => {
                    leaf = Self {
                        kind: LeafKind::Item,
                        range,
                    };
                    continue;
                }
            };
            explicit = true;
            leaf = Self { kind, range };
        }
        leaf
    }

    /// Returns the byte at which to cut if the last line may still become something else. `None` if it cannot.
    fn undecided_line(&self, source: &str, start: usize) -> Option<usize> {
        let line = from(source, start);
        let complete = line.ends_with('\n');
        if self.kind == LeafKind::Code {
            if complete {
                return None;
            }
            let rest = inside(line);
            let opens = self.range.start >= start && rest.contains(['`', '~']);
            let closes = rest.starts_with(['`', '~']) && rest.chars().all(|it| it == '`' || it == '~');
            return (opens || closes).then_some(start);
        }
        if line.is_empty() {
            return None;
        }
        if !complete && self.kind != LeafKind::Html && may_be_mark(line) {
            return Some(start);
        }
        let head = self.may_hold_head() && line.trim_start_matches([' ', '\t', '>']).starts_with('|');
        head.then_some(start)
    }

    /// Returns true if the last line of the text may turn out to be the head of a table.
    fn may_hold_head(&self) -> bool {
        matches!(self.kind, LeafKind::Paragraph | LeafKind::Item)
    }

    /// Hides the marks that are open at the end of the leaf, and closes what they began.
    fn mend<'a>(&self, source: &'a str) -> Shown<'a> {
        let whole = Shown::of(Cow::Borrowed(source));
        let line = from(source, line_start(source));
        let ended = line.ends_with('\n');
        let blank = inside(line).is_empty();
        let start = match self.kind {
            LeafKind::None | LeafKind::Code | LeafKind::Html => return whole,
            LeafKind::Heading | LeafKind::Table if ended => return whole,
            _ if ended && blank => return whole,
            LeafKind::Table => match unescaped(line, '|').last() {
                Some(bar) => source.len() - line.len() + bar + 1,
                None => source.len() - line.len(),
            },
            LeafKind::Paragraph | LeafKind::Item | LeafKind::Heading => self.range.start,
        };
        let text = from(source, start);
        let text = match self.kind {
            LeafKind::Heading => {
                let trimmed = text.trim_end().trim_end_matches('#');
                if trimmed.ends_with(' ') { trimmed } else { text }
            }
            _ => text,
        };
        let mut scan = Scan::of(text);
        if self.may_hold_head() {
            let line = line_start(text);
            scan.hidden
                .extend(bars(from(text, line)).map(|it| line + it).filter(|&it| it < scan.end));
        }
        let ending = self.ending(source, start, &scan);
        let shown = if scan.changes(text) {
            let mut mended = String::with_capacity(source.len() + 16);
            mended.push_str(upto(source, start));
            scan.write(text, &mut mended);
            Cow::Owned(mended)
        } else {
            Cow::Borrowed(upto(source, start + text.len()))
        };
        // A tag that fills a line makes a block of it when it is complete.
        let stays = ending.is_some() && !text.contains('<');
        Shown {
            source: shown,
            ending,
            place: stays.then_some(LeafStart { kind: self.kind, start }),
        }
    }

    /// Returns the end of the source, if `scan` found everything in it decided and words after it mean nothing.
    fn ending(&self, source: &str, start: usize, scan: &Scan) -> Option<SettledEnd> {
        let text = source.trim_end_matches(' ');
        let last = text.chars().next_back().filter(|&it| is_letter(it))?;
        let leaf = from(text, self.range.start);
        let plain = matches!(self.kind, LeafKind::Paragraph | LeafKind::Item | LeafKind::Heading)
            && start + scan.end == text.len()
            // Not behind it, in a definition that is not shown.
            && self.range.end >= text.len()
            // What could be the rest of a definition is none as soon as it ends in another way.
            && !leaf.starts_with(['[', '(', '\'', '"'])
            // The rest of an escape sequence is no text.
            && !leaf.contains("&#")
            && !leaf.contains(|it: char| it.is_control() && it != '\n');
        plain.then_some(SettledEnd {
            blanks: source.len() - text.len(),
            last,
            in_code: scan.code.is_some(),
            is_marked: !scan.openers.is_empty(),
        })
    }
}

/// Returns true if an incomplete line contains nothing but what may become the mark of a block.
fn may_be_mark(line: &str) -> bool {
    let mut rest = inside(line);
    let mut in_item = false;
    loop {
        if rest.chars().all(|it| "-=*_+:|~`#<\\[]!& \t>".contains(it)) {
            return true;
        }
        if rest.starts_with("```") && !rest.trim_start_matches('`').contains('`') || rest.starts_with("~~~") {
            return true;
        }
        if in_item && matches!(rest, "[x" | "[X" | "[x]" | "[X]") {
            return true;
        }
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let after = from(rest, digits);
        if (1..=9).contains(&digits) && (after.is_empty() || after == "." || after == ")") {
            return true;
        }
        let item = match digits {
            0 => rest.strip_prefix(['-', '+', '*']),
            1..=9 => after.strip_prefix(['.', ')']),
            _ => None,
        };
        match item.filter(|it| it.starts_with([' ', '\t'])) {
            Some(content) => rest = content.trim_start_matches([' ', '\t', '>']),
            None => return false,
        }
        in_item = true;
    }
}

/// The signs that would part the cells if the line were the head of a table.
fn bars(line: &str) -> impl Iterator<Item = usize> {
    let mut code = false;
    line.char_indices().filter_map(move |(at, it)| {
        code ^= it == '`';
        (it == '|' && !code && !upto(line, at).ends_with('\\')).then_some(at)
    })
}

fn unescaped(line: &str, sign: char) -> impl Iterator<Item = usize> {
    line.match_indices(sign)
        .map(|(at, _)| at)
        .filter(move |&at| !upto(line, at).ends_with('\\'))
}

/// A run of emphasis signs that may open.
#[derive(Debug)]
struct Opener {
    sign: char,
    /// Byte at which the run begins; `end` is the one after it.
    at: usize,
    end: usize,
    left: usize,
    length: usize,
    closes_too: bool,
}

#[derive(Debug)]
struct Bracket {
    at: usize,
    image: bool,
    /// Openers before it.
    openers: usize,
}

/// Marks that are open at the end of a leaf's text.
#[derive(Debug, Default)]
pub(super) struct Scan {
    openers: Vec<Opener>,
    brackets: Vec<Bracket>,
    /// Length and end of a run of backticks that nothing closes.
    code: Option<(usize, usize)>,
    /// The last run of emphasis signs that neither opens nor closes anything.
    literal: Option<Range<usize>>,
    /// Signs of one byte that are not shown, besides the open brackets.
    hidden: Vec<usize>,
    /// Byte at which the shown text ends.
    end: usize,
}

/// Extent of something that may be incomplete.
enum Extent {
    Complete(usize),
    Open,
    Not,
}

impl Scan {
    pub fn of(text: &str) -> Self {
        let mut scan = Self {
            end: text.len(),
            ..Self::default()
        };
        scan.read(text);
        scan.settle(text);
        scan
    }

    fn read(&mut self, text: &str) {
        let runs = backticks(text);
        let mut at = 0;
        while let Some(sign) = from(text, at).chars().next() {
            let rest = from(text, at);
            match sign {
                '\\' if rest.trim_end().len() == 1 => return self.end = at,
                '\\' => at += 1 + from(rest, 1).chars().next().map_or(0, char::len_utf8),
                '`' => {
                    let length = rest.len() - rest.trim_start_matches('`').len();
                    let inner = at + length;
                    let same = runs.get(&length).map_or(&[][..], Vec::as_slice);
                    match same.get(same.partition_point(|&it| it < inner)) {
                        Some(&close) => at = close + length,
                        None if inner == text.len() => return self.end = at,
                        None => {
                            let content = text.trim_end_matches(|it: char| it == '`' || it.is_whitespace());
                            if content.len() <= inner {
                                return self.end = at;
                            }
                            self.code = Some((length, inner));
                            return self.end = content.len();
                        }
                    }
                }
                '<' => match angle(rest) {
                    Extent::Complete(length) => at += length,
                    Extent::Open => return self.end = at,
                    Extent::Not => at += 1,
                },
                '&' if entity(rest) => return self.end = at,
                '!' if rest.len() == 1 => return self.end = at,
                '!' if rest.starts_with("![") => {
                    self.brackets.push(Bracket {
                        at,
                        image: true,
                        openers: self.openers.len(),
                    });
                    at += 2;
                }
                '[' => {
                    self.brackets.push(Bracket {
                        at,
                        image: false,
                        openers: self.openers.len(),
                    });
                    at += 1;
                }
                ']' => match self.close_bracket(text, at) {
                    Some(after) => at = after,
                    None => return,
                },
                '*' | '_' | '~' => {
                    let length = rest.len() - rest.trim_start_matches(sign).len();
                    if at + length == text.len() {
                        return self.end = at;
                    }
                    self.delimiter(text, sign, at, length);
                    at += length;
                }
                other => at += other.len_utf8(),
            }
        }
    }

    /// Continues after a bracket that is decided. `None` if the text must not be shown beyond it.
    fn close_bracket(&mut self, text: &str, at: usize) -> Option<usize> {
        let Some(bracket) = self.brackets.pop() else {
            return Some(at + 1);
        };
        let rest = from(text, at + 1);
        let extent = match rest.chars().next() {
            None => Extent::Open,
            Some('(') => destination(rest),
            Some('[') => match from(rest, 1).find(['[', ']']) {
                Some(end) if from(rest, 1 + end).starts_with(']') => Extent::Complete(end + 2),
                Some(_) => Extent::Not,
                None => Extent::Open,
            },
            Some(':') if bracket.at == 0 && !bracket.image => definition(rest),
            Some(_) => Extent::Not,
        };
        match extent {
            Extent::Complete(length) => {
                self.openers.truncate(bracket.openers);
                Some(at + 1 + length)
            }
            Extent::Not => Some(at + 1),
            Extent::Open if rest.starts_with(':') => {
                self.end = 0;
                None
            }
            Extent::Open => {
                self.end = at;
                self.brackets.push(bracket);
                None
            }
        }
    }

    fn delimiter(&mut self, text: &str, sign: char, at: usize, length: usize) {
        if sign == '~' && length > 2 {
            return;
        }
        let end = at + length;
        let before = upto(text, at).chars().next_back().unwrap_or(' ');
        let after = from(text, end).chars().next().unwrap_or(' ');
        let (opens, closes) = flanks(sign, before, after);
        let mut left = length;
        while closes && left > 0 {
            let fitting = self.openers.iter().rev().take(OPENERS).position(|it| {
                let of_three = (it.closes_too || opens)
                    && (it.length + length).is_multiple_of(3)
                    && !(it.length.is_multiple_of(3) && length.is_multiple_of(3));
                it.sign == sign && if sign == '~' { it.left == left } else { !of_three }
            });
            let floor = self.brackets.last().map_or(0, |it| it.openers);
            let Some(index) = fitting.map(|it| self.openers.len() - 1 - it).filter(|&it| it >= floor) else {
                break;
            };
            self.openers.truncate(index + 1);
            let opener = &mut self.openers[index];
            let used = if sign == '~' {
                left
            } else {
                opener.left.min(left).min(2)
            };
            opener.left -= used;
            left -= used;
            if opener.left == 0 {
                self.openers.pop();
            }
        }
        if !opens && left == length {
            self.literal = Some(at..end);
        }
        if opens && left > 0 {
            self.openers.push(Opener {
                sign,
                at,
                end,
                left,
                length: left,
                closes_too: closes,
            });
        }
    }

    /// Moves the end before marks with nothing to show after them.
    fn settle(&mut self, text: &str) {
        if let Some(image) = self.brackets.iter().find(|it| it.image) {
            self.end = self.end.min(image.at);
        }
        loop {
            self.end = upto(text, self.end).trim_end().len();
            let end = self.end;
            self.brackets.retain(|it| it.at < end);
            if self.code.is_some_and(|(_, inner)| inner >= end) {
                self.code = None;
            }
            self.openers.retain(|it| it.at < end);
            if let Some(last) = self.openers.last().filter(|it| it.end >= end) {
                self.end = last.at;
            } else if let Some(last) = self.brackets.last().filter(|it| it.at + 1 == end) {
                self.end = last.at;
            } else if let Some(run) = self
                .literal
                .clone()
                .filter(|it| it.end == end && !self.openers.is_empty())
            {
                // What closes the openers would run into it.
                self.end = run.start;
            } else {
                return;
            }
        }
    }

    /// Returns true if everything that was opened is closed again and nothing is hidden.
    pub fn is_settled(&self, text: &str) -> bool {
        !self.changes(text.trim_end())
    }

    fn changes(&self, text: &str) -> bool {
        self.end < text.len()
            || self.code.is_some()
            || !self.openers.is_empty()
            || !self.brackets.is_empty()
            || !self.hidden.is_empty()
    }

    fn write(&self, text: &str, mended: &mut String) {
        let mut at = 0;
        let mut hidden: Vec<usize> = self
            .brackets
            .iter()
            .map(|it| it.at)
            .chain(self.hidden.iter().copied())
            .collect();
        hidden.sort_unstable();
        for sign in hidden {
            mended.push_str(text.get(at..sign).unwrap_or_default());
            mended.push(HIDDEN);
            at = sign + 1;
        }
        mended.push_str(text.get(at..self.end).unwrap_or_default());
        if let Some((length, _)) = self.code {
            mended.extend(std::iter::repeat_n('`', length));
        }
        for opener in self.openers.iter().rev() {
            mended.extend(std::iter::repeat_n(opener.sign, opener.left));
        }
    }
}

/// Returns the offsets of runs of backticks, by their length.
fn backticks(text: &str) -> HashMap<usize, Vec<usize>> {
    let mut runs: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut at = 0;
    while let Some(found) = from(text, at).find('`') {
        let start = at + found;
        let rest = from(text, start);
        let length = rest.len() - rest.trim_start_matches('`').len();
        runs.entry(length).or_default().push(start);
        at = start + length;
    }
    runs
}

/// Reads `<https://…>` and HTML tags. Those that remain text need not be held back.
fn angle(rest: &str) -> Extent {
    let inner = from(rest, 1);
    let Some(first) = inner.chars().next() else {
        return Extent::Open;
    };
    if !(first.is_ascii_alphabetic() || matches!(first, '/' | '!' | '?')) {
        return Extent::Not;
    }
    match inner.find(['<', '>']) {
        Some(end) if from(inner, end).starts_with('>') => Extent::Complete(end + 2),
        Some(_) => Extent::Not,
        None if inner.contains(char::is_whitespace) => Extent::Not,
        None => Extent::Open,
    }
}

/// Returns true if the text ends inside what may be an entity.
fn entity(rest: &str) -> bool {
    rest.len() <= ENTITY && from(rest, 1).bytes().all(|it| it.is_ascii_alphanumeric() || it == b'#')
}

/// `(url "title")`, from its parenthesis.
fn destination(rest: &str) -> Extent {
    let inner = from(rest, 1);
    let start = rest.len() - inner.trim_start().len();
    let inner = inner.trim_start();
    let length = if let Some(pointed) = inner.strip_prefix('<') {
        match pointed.find(['>', '<', '\n']) {
            Some(end) if from(pointed, end).starts_with('>') => end + 2,
            Some(_) => return Extent::Not,
            None => return Extent::Open,
        }
    } else {
        let mut depth = 0_usize;
        let mut escaped = false;
        let end = inner.char_indices().find(|&(_, it)| {
            if std::mem::take(&mut escaped) {
                return false;
            }
            match it {
                '\\' => escaped = true,
                '(' => depth += 1,
                ')' if depth == 0 => return true,
                ')' => depth -= 1,
                it => return it.is_whitespace(),
            }
            false
        });
        match end {
            Some((end, _)) => end,
            None => return Extent::Open,
        }
    };
    let behind = from(inner, length);
    let gap = behind.len() - behind.trim_start().len();
    let behind = behind.trim_start();
    let title = match behind.chars().next() {
        None => return Extent::Open,
        Some(')') => return Extent::Complete(start + length + gap + 1),
        Some('(') if gap > 0 => ')',
        Some(quote @ ('"' | '\'')) if gap > 0 => quote,
        Some(_) => return Extent::Not,
    };
    let Some(close) = from(behind, 1).find(title) else {
        return Extent::Open;
    };
    let last = from(behind, close + 2);
    match last.trim_start().chars().next() {
        None => Extent::Open,
        Some(')') => Extent::Complete(start + length + gap + close + 2 + (last.len() - last.trim_start().len()) + 1),
        Some(_) => Extent::Not,
    }
}

/// Reads `: url "title"` after the label of a definition. A complete one is not shown.
fn definition(rest: &str) -> Extent {
    let mut words = from(rest, 1).split_whitespace();
    words.next();
    match words.next() {
        None => Extent::Open,
        Some(title) if title.starts_with(['"', '\'', '(']) => Extent::Open,
        Some(_) => Extent::Not,
    }
}

/// Returns whether a run of emphasis signs between two characters can open, and whether it can close.
fn flanks(sign: char, before: char, after: char) -> (bool, bool) {
    let punctuation = |it: char| it.is_ascii_punctuation() || !it.is_alphanumeric() && !it.is_whitespace();
    let left = !after.is_whitespace() && (!punctuation(after) || before.is_whitespace() || punctuation(before));
    let right = !before.is_whitespace() && (!punctuation(before) || after.is_whitespace() || punctuation(after));
    if sign == '_' {
        (
            left && (!right || punctuation(before)),
            right && (!left || punctuation(after)),
        )
    } else {
        (left, right)
    }
}
