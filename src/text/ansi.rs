//! Output of a command, as coloured lines.
//!
//! Most output only appends: text, line ends, colours. That goes straight into a compact store (text, line ends and
//! runs of looks; no spans until lines are asked for). The first sequence that moves the cursor starts a small
//! emulator, primed with the last lines, so that progress bars of one or many rows end as the terminal would show
//! them; what scrolls off its top goes into the store. Escape strings (titles, links, clipboard) never reach the
//! emulator, and a hostile flood of expensive sequences is ignored. The output does not depend on how the text is cut
//! into pieces.

use std::{num::NonZeroU16, ops::Range, sync::OnceLock};

mod colours;
mod store;

pub use self::colours::only_colours;
use self::store::{Look, Segment, Store};
use super::{Background, Modifier, Role, Span};

/// Columns of the emulator. Longer lines are wrapped there and joined again; only `\r` inside of one can tell.
const COLUMNS: NonZeroU16 = NonZeroU16::new(240).expect("240 is not zero");
/// Rows of the emulator: how far up a progress display can reach.
const ROWS: NonZeroU16 = NonZeroU16::new(50).expect("50 is not zero");
/// Maximum size of the stored text, in bytes; beyond it the oldest lines after the first segment are dropped.
const LIMIT_BYTES: usize = 64 << 20;
/// Size at which a new segment of the store begins.
const SEGMENT_BYTES: usize = 256 << 10;
/// Longest parameters of a control sequence; real ones have less than 40 bytes.
const LONGEST_SEQUENCE: usize = 128;
/// Line ends without a movement of the cursor after which the emulator is dropped.
const CALM_LINES: usize = 2 * ROWS.get() as usize;
/// Asks for the coloured picture of a symbol.
const EMOJI_SELECTOR: char = '\u{fe0f}';
/// Most times a character is repeated by one sequence.
const MOST_REPEATS: u32 = 200;
/// Bytes of output per expensive sequence (one that touches every cell) that is executed …
const BYTES_PER_EFFORT: u64 = 64;
/// … beyond this number, which is always allowed.
const FREE_EFFORT: u64 = 2000;

/// Output of one command, fed as it arrives.
#[derive(Debug)]
pub struct Output {
    sequence: Sequence,
    /// Parameters and intermediates of the control sequence that is being read.
    parameters: String,
    /// True after a `\r`, whose meaning depends on the next character.
    returned: bool,
    store: Store,
    emulator: Option<Box<Emulator>>,
    /// Line ends since the cursor was last moved otherwise.
    calm_lines: usize,
    /// A scroll region or the other screen was asked for: the emulator knows more than its rows tell.
    pinned: bool,
    /// The emulator's rows in the store's form, made when asked for.
    live: OnceLock<Segment>,
    seen_bytes: u64,
    effort: u64,
    limit_bytes: usize,
}

impl Default for Output {
    fn default() -> Self {
        Self {
            sequence: Sequence::No,
            parameters: String::new(),
            returned: false,
            store: Store::default(),
            emulator: None,
            calm_lines: 0,
            pinned: false,
            live: OnceLock::new(),
            seen_bytes: 0,
            effort: 0,
            limit_bytes: LIMIT_BYTES,
        }
    }
}

impl Output {
    /// A whole output at once.
    pub fn of(text: &str) -> Self {
        let mut output = Self::default();
        output.push(text);
        output.finish();
        output
    }

    /// Takes the next piece of the output.
    pub fn push(&mut self, chunk: &str) {
        self.live = OnceLock::new();
        let mut rest = chunk;
        loop {
            if self.sequence == Sequence::No {
                let (text, other) = rest.split_at(printable_prefix(rest));
                if !text.is_empty() {
                    self.text(text);
                }
                rest = other;
            }
            let mut chars = rest.chars();
            let Some(c) = chars.next() else { break };
            rest = chars.as_str();
            self.seen_bytes += c.len_utf8() as u64;
            self.control(c);
        }
        self.flush();
        self.store.shrink(self.limit_bytes);
    }

    /// Frees the emulator's memory. More output may follow; it continues below.
    pub fn finish(&mut self) {
        self.sequence = Sequence::No;
        self.returned = false;
        self.dismiss();
        self.store.look = Look::default();
    }

    /// Returns the number of lines; the last one may be unfinished.
    pub fn lines_total(&self) -> usize {
        self.store.lines_total() + self.live().lines_total()
    }

    /// The lines of `range` that exist, cleaned, without tabs; an empty line has no spans.
    pub fn lines(&self, range: Range<usize>) -> Vec<Vec<Span>> {
        let stored = self.store.lines_total();
        let total = stored + self.live().lines_total();
        (range.start..range.end.min(total))
            .map(|i| match i.checked_sub(stored) {
                None => self.store.line(i),
                Some(i) => self.live().line(i),
            })
            .collect()
    }

    /// The first lines.
    #[cfg(test)]
    pub fn head(&self, count: usize) -> Vec<Vec<Span>> {
        self.lines(0..count)
    }

    /// The last lines.
    #[cfg(test)]
    pub fn tail(&self, count: usize) -> Vec<Vec<Span>> {
        let total = self.lines_total();
        self.lines(total.saturating_sub(count)..total)
    }

    /// Returns the entire output without colours, for copying and for the model.
    pub fn plain(&self) -> String {
        let mut out = String::new();
        for line in self.lines(0..self.lines_total()) {
            for span in line {
                out.push_str(&span.text);
            }
            out.push('\n');
        }
        out
    }

    /// Bytes of memory that the lines take, roughly.
    #[cfg(test)]
    pub fn weight_bytes(&self) -> usize {
        let emulator = self.emulator.as_ref().map_or(0, |_| {
            usize::from(COLUMNS.get()) * usize::from(ROWS.get()) * size_of::<vt100::Cell>()
        });
        self.store.weight_bytes() + emulator
    }

    fn text(&mut self, text: &str) {
        self.seen_bytes += text.len() as u64;
        self.settle_return();
        match &mut self.emulator {
            Some(emulator) => emulator.feed(text, &mut self.store),
            None => self.store.text(text),
        }
    }

    /// Steps the escape machine and executes complete sequences.
    fn control(&mut self, c: char) {
        self.sequence = match (c, self.sequence) {
            ('\n' | '\x0b' | '\x0c', _) => {
                self.returned = false;
                match &mut self.emulator {
                    Some(emulator) => {
                        emulator.feed("\r\n", &mut self.store);
                        self.calm_lines += 1;
                        if self.calm_lines >= CALM_LINES && !self.pinned {
                            self.dismiss();
                        }
                    }
                    None => self.store.line_end(),
                }
                Sequence::No
            }
            ('\r', _) => {
                match &mut self.emulator {
                    Some(emulator) => emulator.feed("\r", &mut self.store),
                    None => self.returned = true,
                }
                Sequence::No
            }
            ('\t', Sequence::No) => {
                self.settle_return();
                match &mut self.emulator {
                    Some(emulator) => emulator.feed("\t", &mut self.store),
                    None => self.store.tab(),
                }
                Sequence::No
            }
            ('\x08', Sequence::No) => {
                if self.emulator.is_some() || self.store.has_open_line() {
                    self.emulate("\x08");
                }
                Sequence::No
            }
            ('\x18' | '\x1a' | '\u{9c}', _) | ('\x07', Sequence::String) => Sequence::No,
            ('\x1b', _) => Sequence::Started,
            (_, Sequence::String) => Sequence::String,
            ('\u{9b}', _) | ('[', Sequence::Started) => {
                self.parameters.clear();
                Sequence::Control
            }
            ('\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}', _) | (']' | 'P' | 'X' | '^' | '_', Sequence::Started) => {
                Sequence::String
            }
            (_, now) if c.is_control() => now,
            (' '..='/', Sequence::Started | Sequence::Intermediate) => Sequence::Intermediate,
            ('0'..='~', Sequence::Intermediate) => Sequence::No,
            ('0'..='~', Sequence::Started) => {
                self.escape(c);
                Sequence::No
            }
            (' '..='?', Sequence::Control) => {
                if self.parameters.len() < LONGEST_SEQUENCE {
                    self.parameters.push(c);
                }
                Sequence::Control
            }
            ('@'..='~', Sequence::Control) => {
                if self.parameters.len() < LONGEST_SEQUENCE {
                    self.sequence(c);
                }
                Sequence::No
            }
            (_, Sequence::No | Sequence::Started | Sequence::Intermediate | Sequence::Control) => {
                self.text(c.encode_utf8(&mut [0; 4]));
                Sequence::No
            }
        };
    }

    /// A complete two-byte escape.
    fn escape(&mut self, last: char) {
        match last {
            '7' => self.emulate("\x1b7"),
            '8' => self.emulate("\x1b8"),
            'M' => self.emulate("\x1bM"),
            'D' => self.emulate("\n"),
            'E' => self.emulate("\r\n"),
            'c' if self.affords() => self.emulate("\x1bc"),
            _ => {}
        }
    }

    /// A complete control sequence with the final byte `last`.
    fn sequence(&mut self, last: char) {
        let quiet = self.emulator.is_none();
        let first: u32 = self.parameters.split([';', ':']).next().map_or(0, number);
        let obeyed = match last {
            'm' if self.parameters.starts_with(['>', '<', '=', '?']) => false,
            'm' if quiet => {
                let mut look = self.store.look;
                look.apply(&self.parameters);
                self.store.look = look;
                false
            }
            'm' => true,
            'h' | 'l' => matches!(self.parameters.as_str(), "?47" | "?1047" | "?1049") && self.affords(),
            _ if self.parameters.contains(|c: char| !c.is_ascii_digit() && c != ';') => false,
            // Erasing behind the last character changes nothing.
            'K' if quiet && (first == 0 || !self.store.has_open_line()) => self.returned && self.store.has_open_line(),
            'J' if quiet && first == 0 => self.returned && self.store.has_open_line(),
            'A'..='H' | 'K' | 'X' | 'd' | 'f' | '`' | 'r' => true,
            'J' | 'L' | 'M' | 'P' | 'S' | 'T' | '@' => self.affords(),
            'b' => first <= MOST_REPEATS && self.affords(),
            _ => false,
        };
        if obeyed {
            self.pinned |= matches!(last, 'r' | 'h');
            let sequence = format!("\x1b[{}{last}", self.parameters);
            let calm_lines = self.calm_lines;
            self.emulate(&sequence);
            if last == 'm' {
                // Colours do not move the cursor.
                self.calm_lines = calm_lines;
            }
        }
    }

    /// Returns true if one more expensive sequence is in proportion to the output so far.
    fn affords(&mut self) -> bool {
        let affords = self.effort < FREE_EFFORT + self.seen_bytes / BYTES_PER_EFFORT;
        self.effort += u64::from(affords);
        affords
    }

    /// Executes a `\r` that was held back.
    fn settle_return(&mut self) {
        if std::mem::take(&mut self.returned) && self.store.has_open_line() {
            self.emulate("\r");
        }
    }

    /// Feeds the emulator, which is brought up when needed.
    fn emulate(&mut self, wire: &str) {
        self.calm_lines = 0;
        let store = &mut self.store;
        let returned = std::mem::take(&mut self.returned);
        let emulator = self.emulator.get_or_insert_with(|| Box::new(Emulator::primed(store)));
        if returned {
            emulator.feed("\r", store);
        }
        emulator.feed(wire, store);
    }

    /// Moves the emulator's rows into the store and frees its memory.
    fn dismiss(&mut self) {
        self.flush();
        if let Some(emulator) = self.emulator.take() {
            let live = emulator.live(&self.store);
            self.store.close_with(&live, emulator.look());
            self.pinned = false;
            self.live = OnceLock::new();
        }
    }

    fn flush(&mut self) {
        if let Some(emulator) = &mut self.emulator {
            emulator.flush(&mut self.store);
        }
    }

    /// The lines that are not in the store: the emulator's, with the start of the line that scrolled off half.
    fn live(&self) -> &Segment {
        self.live.get_or_init(|| match &self.emulator {
            Some(emulator) => emulator.live(&self.store),
            None => self.store.open_line(),
        })
    }
}

/// Returns the number of bytes before the next control character.
fn printable_prefix(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(next) = rest.iter().position(|&it| it < b' ' || it == 0x7f || it == 0xc2) else {
            return bytes.len();
        };
        at += next;
        // The C1 controls are C2 80 to C2 9F in UTF-8; other characters begin with C2 too.
        let c1 = bytes.get(at + 1).is_some_and(|it| (0x80..=0x9f).contains(it));
        if bytes.get(at) != Some(&0xc2) || c1 {
            return at;
        }
        at += 2;
    }
}

/// Parses a decimal parameter; 0 if it is empty.
fn number(text: &str) -> u32 {
    if text.is_empty() {
        0
    } else {
        text.parse().unwrap_or(u32::MAX)
    }
}

/// Position inside an escape sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sequence {
    No,
    Started,
    Intermediate,
    Control,
    String,
}

struct Emulator {
    parser: vt100::Parser<Scrolled>,
    /// Input that was not processed yet.
    wire: String,
}

impl std::fmt::Debug for Emulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Emulator").finish_non_exhaustive()
    }
}

/// Rows that left the emulator at its top: text with colour sequences and line ends.
#[derive(Default)]
struct Scrolled {
    text: String,
    state: vt100::capture::BasicFormattedCaptureState,
}

impl vt100::Callbacks for Scrolled {
    fn on_scroll(&mut self, row: vt100::capture::RowContents<'_>, alternate: bool) {
        if !alternate {
            // Writing to a string does not fail.
            let _ = row.write_formatted_basic(&mut self.text, &mut self.state);
        }
    }
}

impl Emulator {
    const WIRE_BYTES: usize = 16 << 10;

    /// Takes the last lines of `store` onto the screen.
    fn primed(store: &mut Store) -> Self {
        let wire = store.take_last(usize::from(ROWS.get()) - 1).replace(EMOJI_SELECTOR, "");
        Self {
            parser: vt100::Parser::new_with_callbacks(ROWS, COLUMNS, 0, Scrolled::default()),
            wire,
        }
    }

    fn feed(&mut self, wire: &str, store: &mut Store) {
        // vt100 0.18.1 widens a cell when this selector follows, and panics when one in the last column was widened and is
        // overwritten. This can go when `a_widened_cell_in_the_last_column` passes without it.
        self.wire.extend(wire.split(EMOJI_SELECTOR));
        if self.wire.len() >= Self::WIRE_BYTES {
            self.flush(store);
        }
    }

    fn flush(&mut self, store: &mut Store) {
        self.parser.process(self.wire.as_bytes());
        self.wire.clear();
        let scrolled = &mut self.parser.callbacks_mut().text;
        store.formatted(scrolled);
        scrolled.clear();
    }

    /// Returns the look of text that comes next.
    fn look(&self) -> Look {
        let screen = self.parser.screen();
        let mut look = Look {
            role: match screen.fgcolor() {
                vt100::Color::Default => Role::Text,
                vt100::Color::Idx(i) => Role::Indexed(i),
                vt100::Color::Rgb(r, g, b) => Role::Rgb(r, g, b),
            },
            background: match screen.bgcolor() {
                vt100::Color::Default => Background::Plain,
                vt100::Color::Idx(i) => Background::Indexed(i),
                vt100::Color::Rgb(r, g, b) => Background::Rgb(r, g, b),
            },
            modifier: Modifier::NONE,
        };
        for (is_set, mark) in [
            (screen.bold(), Modifier::BOLD),
            (screen.dim(), Modifier::FAINT),
            (screen.italic(), Modifier::ITALIC),
            (screen.underline(), Modifier::UNDERLINE),
            (screen.inverse(), Modifier::REVERSE),
        ] {
            if is_set {
                look.modifier |= mark;
            }
        }
        look
    }

    /// The screen's rows down to the cursor or the last one that shows something.
    fn live(&self, store: &Store) -> Segment {
        let screen = self.parser.screen();
        let mut rows = Store {
            look: store.look,
            whole: true,
            ..Store::default()
        };
        rows.segments.push_back(store.open_line());
        let mut text = String::new();
        let mut state = self.parser.callbacks().state.clone();
        let range = vt100::capture::BasicFormattedCaptureRange::Full(&mut state);
        // Writing to a string does not fail.
        let _ = screen.write_contents_formatted_basic(&mut text, range);
        rows.formatted(&text);
        let mut live = rows.segments.pop_back().unwrap_or_default();
        // Rows below the cursor count only where they show something; the cursor's own line stays open.
        let below = usize::from(ROWS.get() - 1).saturating_sub(screen.cursor_position().0.into());
        for _ in 0..below {
            live.trim_open_line();
            if live.open_start() < live.text.len() || live.ends.pop().is_none() {
                break;
            }
        }
        live.trim_open_line();
        live
    }
}

#[cfg(test)]
#[expect(clippy::format_collect, reason = "short texts, and read more easily")]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    use crate::text::Sanitized;
    use proptest::prelude::*;

    fn plain(output: &Output) -> Vec<String> {
        let lines = output.lines(0..output.lines_total());
        lines
            .iter()
            .map(|line| line.iter().map(|it| it.text.as_str()).collect())
            .collect()
    }

    #[test]
    fn output_reads_as_a_terminal_shows_it() {
        let cases: [(&str, &str, &[&str]); 31] = [
            ("nothing", "", &[]),
            ("one open line", "abc", &["abc"]),
            ("finished lines", "a\nb\n", &["a", "b"]),
            ("blank lines count", "a\n\n\nb\n\n", &["a", "", "", "b", ""]),
            ("windows line ends", "a\r\nb\r\n", &["a", "b"]),
            ("a progress bar", "10%\r50%\r100%\ndone\n", &["100%", "done"]),
            ("a shorter text leaves the tail", "longer\rab\n", &["abnger"]),
            ("a return that nothing follows", "abc\r", &["abc"]),
            ("a return, then erase", "longer\r\x1b[Kab\n", &["ab"]),
            ("erase the whole line", "longer\x1b[2K\rab\n", &["ab"]),
            ("erase behind the end", "a\x1b[K\nb\x1b[0K\n", &["a", "b"]),
            ("backspace", "abc\x08\x08X\n", &["aXc"]),
            ("a spinner", "|\x08/\x08-\x08ok\n", &["ok"]),
            (
                "two bars at once",
                "a 1\nb 1\n\x1b[2A\x1b[Ka 2\n\x1b[Kb 2\nend\n",
                &["a 2", "b 2", "end"],
            ),
            (
                "lines before the bars stay",
                "hello\nbar 1\n\x1b[1A\x1b[2Kbar 2\nbye",
                &["hello", "bar 2", "bye"],
            ),
            ("column set", "abcdef\x1b[3GX\n", &["abXdef"]),
            ("cursor back and forth", "abc\x1b[2DX\x1b[1CY\n", &["aXcY"]),
            ("save and restore", "ab\x1b7cd\x1b8X\n", &["abXd"]),
            ("a cleared screen", "old\n\x1b[2J\x1b[Hnew\n", &["new"]),
            (
                "a link keeps its text",
                "see \x1b]8;;http://x.y\x1b\\here\x1b]8;;\x1b\\!\n",
                &["see here!"],
            ),
            ("a title", "\x1b]0;title\x07a\n", &["a"]),
            ("an unclosed title costs its line", "a\x1b]0;title\nb\n", &["a", "b"]),
            ("a title among bars", "a\x08\x1b]0;title\nb\n", &["a", "b"]),
            ("the eight-bit introducer", "\u{9b}31mred\u{9b}0m\n", &["red"]),
            ("modes and reports", "\x1b[?25la\x1b[6n\x1b[?2004h\x1b[>c\n", &["a"]),
            ("character sets", "\x1b(Ba\x1b)0b\n", &["ab"]),
            ("a bell", "a\x07b\n", &["ab"]),
            (
                "tabs",
                "a\tb\n\u{4e16}\t|\n12345678\t|\n",
                &["a       b", "\u{4e16}      |", "12345678        |"],
            ),
            ("bidi and zero width", "a\u{202e}b\u{200b}c\n", &["abc"]),
            ("bidi in the emulator too", "x\x08a\u{202e}b\u{200b}c\n", &["abc"]),
            (
                "the alternate screen is not output",
                "a\n\x1b[?1049hfull\x1b[?1049lb\n",
                &["a", "b"],
            ),
        ];
        for (name, text, lines) in cases {
            assert_eq!(plain(&Output::of(text)), lines, "{name}");
            let mut open = Output::default();
            open.push(text);
            assert_eq!(plain(&open), lines, "{name}, not finished");
        }
    }

    #[test]
    fn colours_become_roles_and_marks() {
        let span = |text: &str, role, modifier, background| Span {
            text: Sanitized::new(text),
            role,
            modifier,
            background,
            link: None,
        };
        let none = Modifier::NONE;
        let cases = [
            ("\x1b[31mred", span("red", Role::Indexed(1), none, Background::Plain)),
            (
                "\x1b[92mbright",
                span("bright", Role::Indexed(10), none, Background::Plain),
            ),
            (
                "\x1b[38;5;208mx",
                span("x", Role::Indexed(208), none, Background::Plain),
            ),
            (
                "\x1b[38;2;1;2;3mx",
                span("x", Role::Rgb(1, 2, 3), none, Background::Plain),
            ),
            (
                "\x1b[38:2::1:2:3mx",
                span("x", Role::Rgb(1, 2, 3), none, Background::Plain),
            ),
            (
                "\x1b[38:2:1:2:3mx",
                span("x", Role::Rgb(1, 2, 3), none, Background::Plain),
            ),
            ("\x1b[48;5;7mx", span("x", Role::Text, none, Background::Indexed(7))),
            ("\x1b[107mx", span("x", Role::Text, none, Background::Indexed(15))),
            (
                "\x1b[1;3;4mx",
                span(
                    "x",
                    Role::Text,
                    Modifier::BOLD | Modifier::ITALIC | Modifier::UNDERLINE,
                    Background::Plain,
                ),
            ),
            ("\x1b[2mx", span("x", Role::Text, Modifier::FAINT, Background::Plain)),
            (
                "\x1b[7;1;22mx",
                span("x", Role::Text, Modifier::REVERSE, Background::Plain),
            ),
            ("\x1b[9mx", span("x", Role::Text, Modifier::STRIKE, Background::Plain)),
            (
                "\x1b[4:3mx",
                span("x", Role::Text, Modifier::UNDERLINE, Background::Plain),
            ),
            ("\x1b[4;4:0mx", span("x", Role::Text, none, Background::Plain)),
            (
                "\x1b[58;2;9;9;9;31mx",
                span("x", Role::Indexed(1), none, Background::Plain),
            ),
            ("\x1b[38;5mx", span("x", Role::Text, none, Background::Plain)),
            ("\x1b[31m\x1b[mx", span("x", Role::Text, none, Background::Plain)),
            ("\x1b[>4;1mx", span("x", Role::Text, none, Background::Plain)),
        ];
        for (text, expected) in cases {
            assert_eq!(Output::of(text).head(1), [[expected]], "{text:?}");
        }
    }

    #[test]
    fn a_colour_lasts_over_lines_and_into_the_emulator() {
        let red = |text: &str| Span::new(text, Role::Indexed(1));
        let output = Output::of("\x1b[31ma\nb 1\rb 2\nc\x1b[m d");
        let expected = [
            vec![red("a")],
            vec![red("b 2")],
            vec![red("c"), Span::new(" d", Role::Text)],
        ];
        assert_eq!(output.head(9), expected);
    }

    #[test]
    fn long_lines_are_not_lost() {
        let long = "0123456789".repeat(100);
        let quiet = Output::of(&format!("{long}\nnext\n"));
        assert_eq!(plain(&quiet), [long.as_str(), "next"]);
        let emulated = Output::of(&format!("x\x08{long}\nnext\n"));
        assert_eq!(plain(&emulated), [long.as_str(), "next"]);
    }

    #[test]
    fn what_scrolls_off_the_emulator_is_kept_in_order() {
        let mut text = String::from("|\x08");
        let mut expected = Vec::new();
        for i in 0..500 {
            let _ = writeln!(text, "line \x1b[3{}m{i}\x1b[m", i % 8);
            expected.push(format!("line {i}"));
        }
        let output = Output::of(&text);
        assert_eq!(plain(&output), expected);
        assert_eq!(output.tail(1)[0][1], Span::new("499", Role::Indexed(3)));
        assert_eq!(output.head(3).len(), 3);
        assert_eq!(output.lines(498..600).len(), 2);
    }

    #[test]
    fn a_progress_bar_far_down_a_long_output() {
        // Several segments of the store, the last one just begun.
        let mut output = Output::default();
        let lines = SEGMENT_BYTES / 8 * 3 / 4 + 10;
        for i in 0..lines {
            output.push(&format!("{i:07}\n"));
        }
        output.push("one\ntwo\n\x1b[2A\x1b[2KONE\n\x1b[2KTWO\n");
        output.finish();
        assert_eq!(output.lines_total(), lines + 2);
        let last: Vec<String> = plain(&output).split_off(lines - 1);
        assert_eq!(last, [format!("{:07}", lines - 1), "ONE".to_owned(), "TWO".to_owned()]);
    }

    #[test]
    fn memory_is_bounded_and_the_gap_is_shown() {
        let mut output = Output {
            limit_bytes: 3 * SEGMENT_BYTES,
            ..Output::default()
        };
        for i in 0..200_000 {
            output.push(&format!("line {i}\n"));
        }
        assert!(output.weight_bytes() <= 4 * SEGMENT_BYTES);
        assert_eq!(output.head(1), [[Span::new("line 0", Role::Text)]]);
        assert_eq!(output.tail(1), [[Span::new("line 199999", Role::Text)]]);
        let gaps = plain(&output).iter().filter(|it| it.starts_with('…')).count();
        assert_eq!(gaps, 1);
    }

    #[test]
    fn a_flood_of_expensive_sequences_is_ignored() {
        let mut output = Output::default();
        output.push(&"\x1b[2Jx\x1b[200b".repeat(20_000));
        assert!(output.effort < FREE_EFFORT + 4_000);
    }

    #[test]
    fn the_emulator_goes_when_the_cursor_rests_and_comes_again() {
        let mut output = Output::default();
        output.push("bar 1\rbar 2\n\x1b[1;31m");
        assert!(output.emulator.is_some());
        for i in 0..CALM_LINES * 3 {
            output.push(&format!("\x1b[1;31m{i}\n"));
        }
        assert!(output.emulator.is_none());
        output.push("one\n\x1b[1A\x1b[2Ktwo\n");
        assert!(output.emulator.is_some());
        let red = |text: &str| [Span::new(text, Role::Indexed(1)).bold()];
        assert_eq!(
            output.head(3),
            [
                vec![Span::new("bar 2", Role::Text)],
                red("0").to_vec(),
                red("1").to_vec()
            ]
        );
        let last = format!("{}", CALM_LINES * 3 - 1);
        assert_eq!(output.tail(2), [red(&last), red("two")]);
        assert_eq!(output.lines_total(), CALM_LINES * 3 + 2);
    }

    #[test]
    fn a_widened_cell_in_the_last_column() {
        for column in 236..=240 {
            for middle in ["", "\x1b[4@", "\x1b[7P", "\x1b[2D", "\x08", "\n\x1b[A"] {
                let text = format!("\x1b[{column}G\u{2764}\u{fe0f}{middle}\x1b[240Ga\x1b[{column}Gb\n");
                let output = Output::of(&text);
                assert!(output.plain().contains('b'), "{text:?}");
            }
        }
    }

    #[test]
    fn a_finished_output_can_go_on() {
        let mut output = Output::of("10%\r20%\n");
        output.push("more");
        assert_eq!(plain(&output), ["20%", "more"]);
        assert_eq!(output.plain(), "20%\nmore\n");
    }

    fn nasty() -> impl Strategy<Value = String> {
        let one = prop_oneof![
            3 => proptest::sample::select(vec![
                "\x1b", "\x1b[", "\x1b]8;;", "\x1b\\", "\x07", "\u{9b}", "\u{9c}", "\u{9d}", "\r", "\n", "\r\n", "\t",
                "\x08", "\x1b[A", "\x1b[3A", "\x1b[2K", "\x1b[K", "\x1b[J", "\x1b[2J", "\x1b[H", "\x1b[9;230H",
                "\x1b[99C", "\x1b[5L", "\x1b[3M", "\x1b[7P", "\x1b[4@", "\x1b[2S", "\x1b[2T", "\x1b[2;5r", "\x1b[9X",
                "\x1b[50b", "\x1bM", "\x1bD", "\x1b7", "\x1b8", "\x1bc", "\x1b[?1049h", "\x1b[?1049l", "\x1b[31m",
                "\x1b[1;7m", "\x1b[0m", "\x1b[48;5;9m", "\x1b[65535d", "\x1b[240G", "\x1b[239G", "\u{4e16}",
                "\u{1f468}\u{200d}\u{1f469}", "\u{2764}\u{fe0f}", "\u{301}", "\u{202e}", "ab", "word ", "m", "1",
            ])
            .prop_map(str::to_owned),
            1 => any::<char>().prop_map(String::from),
            1 => (0usize..300).prop_map(|it| "x".repeat(it)),
            1 => (0usize..150).prop_map(|it| "y\n".repeat(it)),
        ];
        proptest::collection::vec(one, 0..60).prop_map(|it| it.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn pieces_read_like_the_whole(text in nasty(), size in 1usize..7) {
            let mut whole = Output::default();
            whole.push(&text);
            let chars: Vec<char> = text.chars().collect();
            let mut pieces = Output::default();
            for (i, chunk) in chars.chunks(size).enumerate() {
                pieces.push(&chunk.iter().collect::<String>());
                if i % 5 == 0 {
                    let _ = pieces.tail(2);
                }
            }
            prop_assert_eq!(pieces.head(usize::MAX), whole.head(usize::MAX));
            let before = whole.head(usize::MAX);
            whole.finish();
            prop_assert_eq!(whole.head(usize::MAX), before);
        }

        #[test]
        fn simple_output_reads_the_same_in_the_emulator(
            lines in proptest::collection::vec("[a-z \u{4e16}]{0,20}", 0..80)
        ) {
            let text: String = lines.iter().map(|it| format!("\x1b[32m{it}\x1b[m\n")).collect();
            // A sequence that changes nothing but brings the emulator up.
            let emulated = format!("\x1b7\x1b8{text}");
            let trimmed: Vec<String> = plain(&Output::of(&text)).iter().map(|it| it.trim_end().to_owned()).collect();
            prop_assert_eq!(plain(&Output::of(&emulated)), trimmed);
        }
    }
}
