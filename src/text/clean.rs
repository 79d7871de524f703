//! The one sanitiser: what passes here can be written to a terminal and does nothing there but appear.
//!
//! Two stages look at every character. The first drops escape sequences as a whole, so that `ESC [ 2 J` leaves no
//! `[2J` behind; a newline ends any sequence, so an unclosed one costs the rest of its line and never a document.
//! The second drops what has no shape of its own or moves other characters: controls, bidi overrides, zero-width
//! characters, tags. Joiners and variation selectors stay where writing needs them and go where they only hide.
//!
//! Cleaning clean text changes nothing, and a [`Cleaner`] fed in pieces says the same as [`sanitize`] on the whole.

use std::{borrow::Cow, fmt, ops::Deref};

use unicode_width::UnicodeWidthChar as _;

/// Text without escape sequences, controls (but `\n` and `\t`), bidi overrides or invisible characters.
///
/// The only ways to make one are [`Sanitized::new`], which sanitises, and a literal of our own.
/// A part of a clean text is clean: [`Sanitized::slice`].
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sanitized(Cow<'static, str>);

impl Sanitized {
    /// Sanitises `text`.
    pub fn new(text: &str) -> Self {
        Self(Cow::Owned(sanitize(text).into_owned()))
    }

    /// A literal of our own source code.
    pub const fn literal(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// Sanitises `text` for one row: each line break or tab becomes a space.
    pub fn line(text: &str) -> Self {
        let mut text = sanitize(text);
        if text.bytes().any(|it| it == b'\n' || it == b'\t') {
            text = Cow::Owned(text.replace(['\n', '\t'], " "));
        }
        Self(Cow::Owned(text.into_owned()))
    }

    /// Returns a cell of a picture: a character of private use with the position in the picture and the highest byte
    /// of its number. Rows, columns and bytes go up to 63.
    pub fn picture_cell(row: usize, column: usize, highest: u8) -> Self {
        let mark = |it: usize| PICTURE_MARKS.get(it).copied().unwrap_or('\u{305}');
        Self(Cow::Owned(String::from_iter([
            PICTURE,
            mark(row),
            mark(column),
            mark(usize::from(highest)),
        ])))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bytes of `range` as clean text; empty when the range does not lie on character borders.
    pub fn slice(&self, range: std::ops::Range<usize>) -> Self {
        Self(Cow::Owned(self.0.get(range).unwrap_or_default().to_owned()))
    }

    /// Appends another clean text.
    pub fn push(&mut self, other: &Self) {
        self.0.to_mut().push_str(&other.0);
    }

    pub fn into_string(self) -> String {
        self.0.into_owned()
    }
}

/// Character that terminals replace with a picture.
const PICTURE: char = '\u{10eeee}';

/// Marks for the numbers from 0, as kitty's protocol lists them.
const PICTURE_MARKS: [char; 64] = [
    '\u{305}', '\u{30d}', '\u{30e}', '\u{310}', '\u{312}', '\u{33d}', '\u{33e}', '\u{33f}', '\u{346}', '\u{34a}',
    '\u{34b}', '\u{34c}', '\u{350}', '\u{351}', '\u{352}', '\u{357}', '\u{35b}', '\u{363}', '\u{364}', '\u{365}',
    '\u{366}', '\u{367}', '\u{368}', '\u{369}', '\u{36a}', '\u{36b}', '\u{36c}', '\u{36d}', '\u{36e}', '\u{36f}',
    '\u{483}', '\u{484}', '\u{485}', '\u{486}', '\u{487}', '\u{592}', '\u{593}', '\u{594}', '\u{595}', '\u{597}',
    '\u{598}', '\u{599}', '\u{59c}', '\u{59d}', '\u{59e}', '\u{59f}', '\u{5a0}', '\u{5a1}', '\u{5a8}', '\u{5a9}',
    '\u{5ab}', '\u{5ac}', '\u{5af}', '\u{5c4}', '\u{610}', '\u{611}', '\u{612}', '\u{613}', '\u{614}', '\u{615}',
    '\u{616}', '\u{617}', '\u{657}', '\u{658}',
];

/// Returns the position of a cell in a picture: row, column, and the highest byte of the picture's number. `None` for
/// every other cell.
pub fn picture_place(cell: &str) -> Option<(usize, usize, u8)> {
    let mut marks = cell.strip_prefix(PICTURE)?.chars();
    let mut number = || PICTURE_MARKS.binary_search(&marks.next()?).ok();
    Some((number()?, number()?, number()? as u8))
}

impl Deref for Sanitized {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Sanitized {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Sanitized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Sanitized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl PartialEq<str> for Sanitized {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Sanitized {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl From<&str> for Sanitized {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Sanitized {
    /// Sanitises `text`; keeps its buffer when there is nothing to remove.
    fn from(text: String) -> Self {
        let kept = match sanitize(&text) {
            Cow::Borrowed(it) if it.len() == text.len() => None,
            other => Some(other.into_owned()),
        };
        Self(Cow::Owned(kept.unwrap_or(text)))
    }
}

impl From<Sanitized> for String {
    fn from(text: Sanitized) -> Self {
        text.into_string()
    }
}

/// Removes control sequences and hidden characters. Borrows if there are none.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    let plain = plain_prefix(text.as_bytes());
    if plain == text.len() {
        return Cow::Borrowed(text);
    }
    let mut sink = Sink {
        source: text,
        same: 0,
        own: None,
    };
    Cleaner::default().run(text, &mut sink);
    match sink.own {
        Some(own) => Cow::Owned(own),
        None => Cow::Borrowed(text.get(..sink.same).unwrap_or_default()),
    }
}

/// The sanitiser for text that arrives in pieces: keeps an open escape sequence or joiner across their borders.
#[derive(Clone, Debug, Default)]
pub struct Cleaner {
    escape: Escape,
    /// The character before was `\r`, which already gave a newline.
    after_return: bool,
    /// Last character that was written.
    last: Option<char>,
    /// Zero-width characters since the last one with a width.
    marks: u8,
    /// Emoji joined to one so far.
    joins: u8,
    /// A joiner that waits for its right neighbour to decide.
    joiner: Option<char>,
}

impl Cleaner {
    /// Returns the clean part of `chunk`; a joiner at its end is held back until the next call.
    pub fn push(&mut self, chunk: &str) -> Sanitized {
        let mut out = String::new();
        self.push_to(chunk, &mut out);
        Sanitized(Cow::Owned(out))
    }

    /// [`Cleaner::push`] to the end of `out`.
    pub fn push_to(&mut self, chunk: &str, out: &mut String) {
        out.reserve(chunk.len());
        self.run(chunk, out);
    }

    /// Ends the text: an open sequence or a joiner without a right neighbour is dropped, the next push starts afresh.
    pub fn finish(&mut self) {
        *self = Self::default();
    }

    fn run(&mut self, mut rest: &str, out: &mut impl Out) {
        loop {
            if self.escape == Escape::No && !self.after_return && self.joiner.is_none() {
                let (plain, other) = rest.split_at(plain_prefix(rest.as_bytes()));
                if let Some(last) = plain.chars().next_back() {
                    out.text(plain);
                    self.last = Some(last);
                    self.marks = 0;
                    self.joins = 0;
                }
                rest = other;
            }
            let mut chars = rest.chars();
            let Some(c) = chars.next() else { return };
            rest = chars.as_str();
            if self.passes(c) {
                self.keep(c, out);
            }
        }
    }

    /// Steps the escape machine; whether `c` is text and not part of a sequence.
    #[expect(clippy::match_same_arms, reason = "which arm comes first decides")]
    fn passes(&mut self, c: char) -> bool {
        if self.escape == Escape::No && !c.is_control() {
            return true;
        }
        self.escape = match (c, self.escape) {
            // Line ends stop every sequence and stay.
            ('\n' | '\r', _) | ('\t', Escape::No) => {
                self.escape = Escape::No;
                return true;
            }
            // CAN, SUB and the string terminator.
            ('\x18' | '\x1a' | '\u{9c}', _) | ('\x07', Escape::String) => Escape::No,
            ('\x1b', _) => Escape::Started,
            // Inside of a string a C1 control is payload: UTF-8 terminals disagree about it, and staying inside is safe.
            (_, Escape::String) => Escape::String,
            ('\u{9b}', _) => Escape::Control,
            ('\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}', _) => Escape::String,
            (_, now) if c.is_control() => now,
            ('[', Escape::Started) => Escape::Control,
            (']' | 'P' | 'X' | '^' | '_', Escape::Started) => Escape::String,
            (' '..='/', Escape::Started | Escape::Intermediate) => Escape::Intermediate,
            ('0'..='~', Escape::Started | Escape::Intermediate) | ('@'..='~', Escape::Control) => Escape::No,
            (' '..='?', Escape::Control) => Escape::Control,
            // No sequence holds anything beyond ASCII: it was broken off.
            (_, Escape::No | Escape::Started | Escape::Intermediate | Escape::Control) => {
                self.escape = Escape::No;
                return true;
            }
        };
        false
    }

    /// Writes `c` if it may follow the text so far.
    fn keep(&mut self, c: char, out: &mut impl Out) {
        let c = match c {
            '\r' => {
                self.line_end(out);
                self.after_return = true;
                return;
            }
            '\n' if self.after_return => {
                self.after_return = false;
                return;
            }
            '\n' | '\u{2028}' | '\u{2029}' => return self.line_end(out),
            _ if is_hidden(c) => return,
            ZWNJ | ZWJ => {
                if self.joiner.is_none() && self.may_join(c) {
                    self.joiner = Some(c);
                }
                return;
            }
            _ => c,
        };
        let zero = c.width() == Some(0);
        if is_selector(c) {
            if self.marks >= MOST_MARKS || !self.last.is_some_and(|it| takes_selector(it, c)) {
                return;
            }
        } else if zero && self.marks >= MOST_MARKS {
            return;
        }
        self.after_return = false;
        let joined = self.joiner.take().filter(|&joiner| match joiner {
            ZWJ if self.last.is_some_and(is_emoji) => is_emoji(c) && !zero,
            _ => is_joining_script(c),
        });
        if let Some(joiner) = joined {
            out.char(joiner);
            self.marks = self.marks.saturating_add(1);
            self.joins = self.joins.saturating_add(1);
        }
        if zero {
            self.marks = self.marks.saturating_add(1);
        } else {
            self.marks = 0;
            if joined.is_none() && !is_skin(c) {
                self.joins = 0;
            }
        }
        out.char(c);
        self.last = Some(c);
    }

    fn line_end(&mut self, out: &mut impl Out) {
        out.char('\n');
        *self = Self {
            last: Some('\n'),
            ..Self::default()
        };
    }

    fn may_join(&self, joiner: char) -> bool {
        let Some(last) = self.last else { return false };
        let emoji = joiner == ZWJ && is_emoji(last) && self.joins < MOST_MARKS;
        emoji || (is_joining_script(last) && self.marks + 1 < MOST_MARKS)
    }
}

/// Position inside an escape sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Escape {
    #[default]
    No,
    /// After ESC.
    Started,
    /// After ESC and a space or one of `!"#$%&'()*+,-./`.
    Intermediate,
    /// After CSI.
    Control,
    /// After OSC, DCS, SOS, PM or APC, up to BEL, ST or the end of the line.
    String,
}

/// Output of the sanitizer.
trait Out {
    fn char(&mut self, c: char);
    fn text(&mut self, text: &str);
}

impl Out for String {
    fn char(&mut self, c: char) {
        self.push(c);
    }
    fn text(&mut self, text: &str) {
        self.push_str(text);
    }
}

/// Copies only once the output differs from the source.
struct Sink<'a> {
    source: &'a str,
    /// While `own` is empty: how many bytes of the source have been repeated.
    same: usize,
    own: Option<String>,
}

impl Out for Sink<'_> {
    fn char(&mut self, c: char) {
        self.text(c.encode_utf8(&mut [0; 4]));
    }

    fn text(&mut self, text: &str) {
        if let Some(own) = &mut self.own {
            own.push_str(text);
            return;
        }
        let (done, rest) = self.source.split_at(self.same);
        if rest.starts_with(text) {
            self.same += text.len();
        } else {
            let mut own = String::with_capacity(self.source.len());
            own.push_str(done);
            own.push_str(text);
            self.own = Some(own);
        }
    }
}

/// Zero-width characters on one base, and emoji joined to one: more is no writing but an attack on the row above.
const MOST_MARKS: u8 = 8;

pub(super) const ZWNJ: char = '\u{200c}';
pub(super) const ZWJ: char = '\u{200d}';

/// Returns the number of bytes at the start that are printable ASCII, newlines or tabs. Reads entire blocks first,
/// because those loops vectorise.
fn plain_prefix(bytes: &[u8]) -> usize {
    const BLOCK: usize = 64;
    let plain = |it: &u8| matches!(it, b' '..=b'~' | b'\n' | b'\t');
    let blocks = bytes
        .chunks_exact(BLOCK)
        .take_while(|it| it.iter().fold(true, |all, byte| all & plain(byte)))
        .count();
    let start = blocks * BLOCK;
    start + bytes.iter().skip(start).take_while(|it| plain(it)).count()
}

/// Characters that never appear: they reorder, hide, or carry text that only a model reads.
pub(super) fn is_hidden(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control() && c != '\n' && c != '\t';
    }
    matches!(
        c,
        '\u{80}'..='\u{9f}'               // C1 controls
            | '\u{ad}'                    // soft hyphen
            | '\u{34f}'                   // combining grapheme joiner
            | '\u{61c}'                   // Arabic letter mark
            | '\u{180e}'                  // Mongolian vowel separator
            | '\u{200b}'                  // zero-width space
            | '\u{200e}' | '\u{200f}'     // left-to-right and right-to-left mark
            | '\u{202a}'..='\u{202e}'     // bidi embeddings and overrides
            | '\u{2060}'..='\u{206f}'     // word joiner, invisible operators, bidi isolates, deprecated controls
            | '\u{feff}'                  // byte order mark
            | '\u{fff0}'..='\u{fffb}'     // unassigned ignorables, interlinear annotation
            | '\u{1bca0}'..='\u{1bca3}'   // shorthand format controls
            | '\u{1d173}'..='\u{1d17a}'   // musical format controls
            | '\u{e0000}'..='\u{e00ff}'   // tags and unassigned ignorables
            | PICTURE                    // would show a picture where none belongs
            | '\u{e01f0}'..='\u{e0fff}'
    )
}

pub(super) fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Returns true if `selector` has a meaning after `base`.
fn takes_selector(base: char, selector: char) -> bool {
    if selector > '\u{ffff}' {
        return matches!(base, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}');
    }
    match base {
        '0'..='9' | '#' | '*' => true,
        _ => !base.is_ascii() && !base.is_whitespace() && base.width() != Some(0),
    }
}

fn is_skin(c: char) -> bool {
    matches!(c, '\u{1f3fb}'..='\u{1f3ff}')
}

/// Returns true for pictographs and for the selector that makes a symbol one: the neighbours of a joiner in an emoji.
fn is_emoji(c: char) -> bool {
    matches!(
        c,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
            | '\u{2190}'..='\u{21ff}'
            | '\u{2300}'..='\u{23ff}'
            | '\u{24c2}'
            | '\u{25aa}'..='\u{27bf}'
            | '\u{2934}' | '\u{2935}'
            | '\u{2b05}'..='\u{2b55}'
            | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
            | '\u{fe0f}'
            | '\u{1f000}'..='\u{1faff}'
    )
}

/// Returns true for letters and marks of scripts whose spelling uses joiners: Arabic and related scripts, those of
/// India and South-East Asia, Mongolian.
fn is_joining_script(c: char) -> bool {
    let block = matches!(
        c,
        '\u{600}'..='\u{8ff}'
            | '\u{900}'..='\u{109f}'
            | '\u{1700}'..='\u{18af}'
            | '\u{1900}'..='\u{1cff}'
            | '\u{a800}'..='\u{a8ff}'
            | '\u{a900}'..='\u{a9ff}'
            | '\u{aa00}'..='\u{aaff}'
            | '\u{abc0}'..='\u{abff}'
            | '\u{fb50}'..='\u{fdff}'
            | '\u{fe70}'..='\u{fefe}'
            | '\u{10a00}'..='\u{11fff}'
            | '\u{1e900}'..='\u{1e95f}'
    );
    block && (c.is_alphabetic() || c.width() == Some(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_stays_and_what_goes() {
        let cases = [
            ("plain text is untouched", "fn main() {\n\tx\n}", "fn main() {\n\tx\n}"),
            ("a colour goes as a whole", "a\x1b[1;31mb\x1b[0mc", "abc"),
            ("the eight-bit introducer too", "a\u{9b}31mb", "ab"),
            ("a title that ends with BEL", "a\x1b]0;owned\x07b", "ab"),
            ("a title that ends with ST", "a\x1b]0;owned\x1b\\b", "ab"),
            ("an eight-bit title with eight-bit end", "a\u{9d}0;owned\u{9c}b", "ab"),
            ("the clipboard", "\x1b]52;c;cm0gLXJmIC8=\x07", ""),
            (
                "a link keeps its text",
                "\x1b]8;;http://x.y\x1b\\here\x1b]8;;\x1b\\",
                "here",
            ),
            ("device control", "a\x1bPq#0;2;0;0;0\x1b\\b", "ab"),
            ("an eight-bit device control string", "a\u{90}q#0\u{9c}b", "ab"),
            (
                "application, privacy and start of string",
                "a\x1b_G\x1b\\b\x1b^p\x1b\\c\x1bXs\x1b\\d",
                "abcd",
            ),
            ("two-byte escapes", "a\x1bcb\x1b7c\x1b(Bd", "abcd"),
            ("a sequence inside of a string ends it", "\x1b]0;x\x1b[31my", "y"),
            (
                "a hostile open string costs its line only",
                "\x1b]0;abc\nnext",
                "\nnext",
            ),
            (
                "an open control sequence costs its line at most",
                "\x1b[12;34\nnext",
                "\nnext",
            ),
            ("escape at the end", "abc\x1b", "abc"),
            ("escape before a letter beyond ASCII", "\x1bé", "é"),
            ("cancel ends a sequence", "\x1b[3\x181m", "1m"),
            ("a control inside of a sequence is swallowed", "\x1b[3\x081mx", "x"),
            ("bell, backspace and delete", "a\x07b\x08c\x7fd\0e", "abcde"),
            ("next line is a C1 control", "a\u{85}b", "ab"),
            ("returns become newlines", "a\r\nb\rc\r\r\nd", "a\nb\nc\n\nd"),
            ("a return parted from its newline by a sequence", "a\r\x1b[K\nb", "a\nb"),
            ("line separators become newlines", "a\u{2028}b\u{2029}c", "a\nb\nc"),
            ("bidi overrides", "a\u{202e}b\u{2066}c\u{200f}d\u{61c}e", "abcde"),
            ("zero width", "a\u{200b}b\u{2060}c\u{feff}d\u{ad}e", "abcde"),
            ("tags, of a flag too", "\u{1f3f4}\u{e0067}\u{e007f}x", "\u{1f3f4}x"),
            ("interlinear annotation", "a\u{fff9}b\u{fffa}c\u{fffb}d", "abcd"),
            (
                "a family stays joined",
                "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
                "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
            ),
            (
                "a joined emoji with skin and selector",
                "\u{1f469}\u{1f3fd}\u{200d}\u{2764}\u{fe0f}\u{200d}\u{1f468}",
                "\u{1f469}\u{1f3fd}\u{200d}\u{2764}\u{fe0f}\u{200d}\u{1f468}",
            ),
            (
                "a joiner before a selector",
                "\u{2764}\u{200d}\u{fe0f}x",
                "\u{2764}\u{fe0f}x",
            ),
            (
                "a joiner between letters of Latin",
                "pass\u{200d}word\u{200c}s",
                "passwords",
            ),
            (
                "a joiner at the start, doubled, at the end",
                "\u{200d}\u{1f468}\u{200d}\u{200d}\u{1f469}\u{200d}",
                "\u{1f468}\u{200d}\u{1f469}",
            ),
            (
                "Persian keeps its non-joiner",
                "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}",
                "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}",
            ),
            (
                "Devanagari keeps joiners after a virama",
                "\u{915}\u{94d}\u{200d}\u{937} \u{915}\u{94d}\u{200c}\u{937}",
                "\u{915}\u{94d}\u{200d}\u{937} \u{915}\u{94d}\u{200c}\u{937}",
            ),
            ("a selector on a heart", "\u{2764}\u{fe0f}", "\u{2764}\u{fe0f}"),
            ("a keycap", "1\u{fe0f}\u{20e3}", "1\u{fe0f}\u{20e3}"),
            ("a selector on nothing, on a letter", "\u{fe0f}a\u{fe01}b", "ab"),
            (
                "bytes hidden in selectors",
                "\u{1f600}\u{fe00}\u{fe05}\u{e0101}\u{e0122}",
                "\u{1f600}\u{fe00}",
            ),
            (
                "a variant of an ideograph",
                "\u{845b}\u{e0100}\u{57ce}",
                "\u{845b}\u{e0100}\u{57ce}",
            ),
            ("accents stay", "e\u{301}a\u{308}\u{323}", "e\u{301}a\u{308}\u{323}"),
        ];
        for (name, dirty, clean) in cases {
            assert_eq!(sanitize(dirty), clean, "{name}");
        }
    }

    #[test]
    fn marks_beyond_eight_are_dropped() {
        let zalgo = format!("a{}b{}", "\u{301}".repeat(100), "\u{302}".repeat(3));
        let calm = format!("a{}b{}", "\u{301}".repeat(8), "\u{302}".repeat(3));
        assert_eq!(sanitize(&zalgo), calm);
    }

    #[test]
    fn emoji_do_not_join_without_end() {
        let chain = "\u{1f468}\u{200d}".repeat(1000);
        let clean = sanitize(&chain);
        let longest = clean
            .split("\u{1f468}\u{1f468}")
            .map(|it| it.matches(ZWJ).count())
            .max();
        assert_eq!(longest, Some(8));
    }

    #[test]
    fn clean_text_is_borrowed() {
        for text in [
            "",
            "plain\n\ttext",
            "Grüße, 世界 \u{1f468}\u{200d}\u{1f469}",
            "tail goes\x1b[m",
        ] {
            assert!(matches!(sanitize(text), Cow::Borrowed(_)), "{text:?}");
        }
    }

    #[test]
    fn an_owned_text_keeps_its_buffer() {
        let text = String::from("nothing to remove, ä");
        let buffer = text.as_ptr();
        let clean = Sanitized::from(text);
        assert_eq!(clean.as_str().as_ptr(), buffer);
    }

    #[test]
    fn one_row_has_no_line_breaks() {
        assert_eq!(Sanitized::line("a\r\nb\tc\u{2028}d\x1b[31m"), "a b c d");
    }

    #[test]
    fn a_new_text_starts_outside_of_sequences() {
        let mut cleaner = Cleaner::default();
        assert_eq!(cleaner.push("a\x1b]0;title"), "a");
        cleaner.finish();
        assert_eq!(cleaner.push("b"), "b");
    }

    /// Characters that meet each other's rules, far more often than any text would have them.
    fn nasty() -> impl Strategy<Value = String> {
        let one = prop_oneof![
            proptest::sample::select(vec![
                "\x1b",
                "\x1b[",
                "\x1b]",
                "\x1b\\",
                "\x1bP",
                "\x07",
                "\u{9b}",
                "\u{9c}",
                "\u{9d}",
                "\u{90}",
                "\r",
                "\n",
                "\r\n",
                "\t",
                "\x18",
                "m",
                "[",
                "0;1",
                "\u{200d}",
                "\u{200c}",
                "\u{fe0f}",
                "\u{fe00}",
                "\u{e0100}",
                "\u{301}",
                "\u{301}\u{301}\u{301}\u{301}",
                "\u{1f468}",
                "\u{1f3fd}",
                "\u{2764}",
                "\u{915}",
                "\u{94d}",
                "\u{6cc}",
                "\u{845b}",
                "\u{202e}",
                "\u{e0041}",
                "\u{2028}",
                "1",
                "a",
                " ",
                "\u{1160}",
                "\u{feff}",
            ])
            .prop_map(str::to_owned),
            any::<char>().prop_map(String::from),
        ];
        proptest::collection::vec(one, 0..40).prop_map(|it| it.concat())
    }

    fn is_forbidden(c: char) -> bool {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c,
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{200b}'
                | '\u{2060}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}' | '\u{2028}' | '\u{2029}'
                | '\u{fff9}'..='\u{fffb}' | '\u{ad}')
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn cleaning_twice_changes_nothing(text in nasty()) {
            let once = sanitize(&text).into_owned();
            prop_assert_eq!(sanitize(&once), once.as_str());
        }

        #[test]
        fn nothing_forbidden_is_left(text in nasty()) {
            prop_assert_eq!(sanitize(&text).chars().find(|&c| is_forbidden(c)), None);
        }

        #[test]
        fn pieces_clean_like_the_whole(text in nasty(), size in 1usize..5) {
            let mut cleaner = Cleaner::default();
            let chars: Vec<char> = text.chars().collect();
            let mut pieces = String::new();
            for chunk in chars.chunks(size) {
                pieces.push_str(&cleaner.push(&chunk.iter().collect::<String>()));
            }
            prop_assert_eq!(pieces, sanitize(&text));
        }
    }
}
