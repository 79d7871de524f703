//! Parses bytes from the terminal into keys, pastes, wheel turns and replies.
//!
//! crossterm's reader drops `CSI 27;m;c~`, which tmux and xterm send for Ctrl+. and Shift+Enter, and passes a late colour
//! reply on as typed characters. The events are crossterm's. Pure: bytes in, events out.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::TerminalName;
use crate::theme::Rgb;

/// A paste is cut beyond this many bytes; nobody means to type more.
const PASTE_LIMIT: usize = 64 << 20;

/// Pixels of a cell on the finest screens: nobody who says more is believed.
pub const MOST_PIXELS: u16 = 100;

/// A control sequence longer than this is not one.
const SEQUENCE_LIMIT: usize = 4096;

/// An Esc after which nothing comes for this long was the key.
const ESCAPE: Duration = Duration::from_millis(25);

/// Esc and a letter that decides an approval were a chord if nothing comes for this long.
const DECIDING_CHORD: Duration = Duration::from_millis(150);

/// The same for other letters: shorter than anybody presses two keys, longer than a connection holds back a byte.
const CHORD: Duration = Duration::from_millis(40);

/// Letters in one read that make it a paste: a terminal that does not mark pastes sent it.
const PASTED_LETTERS: usize = 256;

const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// One thing that the user or the terminal did. Columns and rows count from 0 at the top left.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    Key(KeyEvent),
    /// Pasted text as it came: line ends and control characters are still in it.
    Paste(String),
    Wheel {
        down: bool,
        x: u16,
        y: u16,
    },
    /// Press of the left button.
    Click {
        x: u16,
        y: u16,
    },
    /// Movement of the pointer while the left button is down.
    Drag {
        x: u16,
        y: u16,
    },
    /// Release of the left button.
    Release {
        x: u16,
        y: u16,
    },
    /// The window got the focus (`true`) or lost it.
    Focus(bool),
    Reply(Reply),
}

/// Answer of the terminal to a question about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Its background colour.
    Background(Rgb),
    /// The keyboard protocol is spoken, with these flags.
    Keyboard(u8),
    /// The terminal went from dark to light or back (mode 2031).
    Scheme,
    /// Every terminal answers this one; what was asked before and is not answered by now will not be.
    Attributes { sixel: bool },
    /// Its way of drawing pictures, known by its name.
    Named(TerminalName),
    /// Width and height of a cell in pixels.
    Cell(u16, u16),
}

/// Turns the terminal's bytes into [`Input`]s, in whatever pieces they come.
#[derive(Debug, Default)]
pub struct InputParser {
    pending: Vec<u8>,
    paste: Option<Vec<u8>>,
    /// Esc and a letter that came alone in one read: a chord if nothing follows soon, else two keys.
    chord: Option<KeyEvent>,
}

/// Meaning of the first pending bytes.
enum Parsed {
    /// An event (or nothing worth telling) of so many bytes.
    Done(Option<Input>, usize),
    PasteStart,
    /// More bytes are needed.
    Partial,
}

impl InputParser {
    /// Takes the bytes of one read and appends the inputs that they complete to `out`.
    ///
    /// Terminals without a keyboard protocol send Alt and a letter as Esc and the letter, like somebody who presses Esc and
    /// writes on. It is a chord only if both came in one read with nothing else in it, and nothing follows for a moment.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Input>) {
        if let Some(chord) = self.chord.take().filter(|_| !bytes.is_empty()) {
            let letter = KeyEvent::new(chord.code, chord.modifiers - KeyModifiers::ALT);
            out.extend([Input::Key(KeyEvent::from(KeyCode::Esc)), Input::Key(letter)]);
        }
        let is_alone = self.pending.is_empty() && self.paste.is_none();
        self.pending.extend_from_slice(bytes);
        let Some(chord) = legacy_chord(bytes).filter(|it| is_alone && it.1 == bytes.len()) else {
            self.parse(false, out);
            return;
        };
        self.pending.clear();
        // Motions by words decide nothing, and one holds their keys down.
        if matches!(chord.0.code, KeyCode::Char('b' | 'd' | 'f')) {
            out.push(Input::Key(chord.0));
        } else {
            self.chord = Some(chord.0);
        }
    }

    /// The time after which [`flush`](Self::flush) is due if no more bytes come; `None` if nothing waits: an Esc, the start of a
    /// longer sequence, or Esc and a letter.
    pub fn waits(&self) -> Option<Duration> {
        match &self.chord {
            Some(it) if matches!(it.code, KeyCode::Char('y' | 'a' | 'n' | 'Y' | 'A' | 'N')) => Some(DECIDING_CHORD),
            Some(_) => Some(CHORD),
            None => (!self.pending.is_empty() && self.paste.is_none()).then_some(ESCAPE),
        }
    }

    /// Reads the pending bytes as they are, because no more came in time: a lone Esc is the key, Esc and a letter a chord.
    pub fn flush(&mut self, out: &mut Vec<Input>) {
        out.extend(self.chord.take().map(Input::Key));
        self.parse(true, out);
    }

    fn parse(&mut self, last: bool, out: &mut Vec<Input>) {
        let mut at = 0;
        loop {
            if self.paste.is_some() {
                match self.take_paste(&mut at) {
                    Some(text) => out.push(Input::Paste(text)),
                    None => break,
                }
                continue;
            }
            let Some(rest) = self.pending.get(at..).filter(|it| !it.is_empty()) else {
                break;
            };
            match head(rest, last) {
                Parsed::Done(event, length) => {
                    at += length.max(1);
                    out.extend(event);
                }
                Parsed::PasteStart => {
                    at += PASTE_START.len();
                    self.paste = Some(Vec::new());
                }
                Parsed::Partial => break,
            }
        }
        self.pending.drain(..at.min(self.pending.len()));
    }

    /// Moves pasted bytes out of `pending`; the text when the end was there.
    fn take_paste(&mut self, at: &mut usize) -> Option<String> {
        let rest = self.pending.get(*at..).unwrap_or_default();
        let paste = self.paste.as_mut()?;
        match find(rest, PASTE_END) {
            Some(end) => {
                paste.extend_from_slice(rest.get(..end).unwrap_or_default());
                *at += end + PASTE_END.len();
                let bytes = self.paste.take()?;
                Some(String::from_utf8_lossy(&bytes).into_owned())
            }
            None => {
                // The end mark may be cut in two: its possible beginning stays.
                let keep = (1..PASTE_END.len())
                    .rev()
                    .find(|&n| rest.ends_with(PASTE_END.get(..n).unwrap_or_default()));
                let moved = rest.len() - keep.unwrap_or(0);
                if paste.len() < PASTE_LIMIT {
                    paste.extend_from_slice(rest.get(..moved).unwrap_or_default());
                }
                *at += moved;
                None
            }
        }
    }
}

/// Esc and a printable character as a chord, with its length in bytes.
fn legacy_chord(bytes: &[u8]) -> Option<(KeyEvent, usize)> {
    let letter = bytes.strip_prefix(b"\x1b")?;
    let starts_sequence = matches!(letter.first()?, b'[' | b'O' | b']' | b'P' | b'_' | b'^');
    match head(letter, false) {
        Parsed::Done(Some(Input::Key(key)), length) if matches!(key.code, KeyCode::Char(_)) && !starts_sequence => {
            let is_letter = !key.modifiers.contains(KeyModifiers::CONTROL);
            let chord = KeyEvent::new(key.code, key.modifiers | KeyModifiers::ALT);
            is_letter.then_some((chord, length + 1))
        }
        Parsed::Done(..) | Parsed::PasteStart | Parsed::Partial => None,
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|it| it == what)
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "most callers may also find that nothing was pressed"
)]
fn key(code: KeyCode, modifiers: KeyModifiers) -> Option<Input> {
    Some(Input::Key(KeyEvent::new(code, modifiers)))
}

fn head(bytes: &[u8], last: bool) -> Parsed {
    match bytes {
        [0x1b] if last => Parsed::Done(key(KeyCode::Esc, KeyModifiers::NONE), 1),
        [0x1b] => Parsed::Partial,
        [0x1b, b'[', rest @ ..] => control_sequence(rest, last),
        [0x1b, b'O', rest @ ..] => match rest {
            [] if last => Parsed::Done(key(KeyCode::Char('O'), KeyModifiers::ALT | KeyModifiers::SHIFT), 2),
            [] => Parsed::Partial,
            [letter, ..] => Parsed::Done(single_shift(*letter).and_then(|it| key(it, KeyModifiers::NONE)), 3),
        },
        [0x1b, b']', ..] => string(bytes, last, true),
        [0x1b, b'P' | b'_' | b'^', ..] if bytes.len() > 2 || !last => string(bytes, last, false),
        // Two in one read are one: a terminal that repeats, or Alt+Esc.
        [0x1b, 0x1b] => Parsed::Done(key(KeyCode::Esc, KeyModifiers::NONE), 2),
        [0x1b, 0x1b, ..] => Parsed::Done(key(KeyCode::Esc, KeyModifiers::NONE), 1),
        // With more bytes around it, Esc and a letter are two keys.
        [0x1b, ..] if legacy_chord(bytes).is_some() => Parsed::Done(key(KeyCode::Esc, KeyModifiers::NONE), 1),
        [0x1b, rest @ ..] => match head(rest, last) {
            Parsed::Done(Some(Input::Key(mut event)), length) => {
                event.modifiers |= KeyModifiers::ALT;
                Parsed::Done(Some(Input::Key(event)), length + 1)
            }
            Parsed::Done(other, length) => Parsed::Done(other, length + 1),
            Parsed::PasteStart | Parsed::Partial => Parsed::Partial,
        },
        [byte, ..] if *byte < 0x20 || *byte == 0x7f => Parsed::Done(control(*byte), 1),
        _ => character(bytes, last),
    }
}

fn control(byte: u8) -> Option<Input> {
    let ctrl = |letter: char| key(KeyCode::Char(letter), KeyModifiers::CONTROL);
    match byte {
        b'\r' => key(KeyCode::Enter, KeyModifiers::NONE),
        b'\t' => key(KeyCode::Tab, KeyModifiers::NONE),
        0x7f | 0x08 => key(KeyCode::Backspace, KeyModifiers::NONE),
        0 => ctrl(' '),
        1..=26 => ctrl(char::from(b'a' + byte - 1)),
        0x1c => ctrl('\\'),
        0x1d => ctrl(']'),
        0x1e => ctrl('^'),
        0x1f => ctrl('/'),
        _ => None,
    }
}

fn character(bytes: &[u8], last: bool) -> Parsed {
    let length = match bytes.first() {
        Some(0xC2..=0xDF) => 2,
        Some(0xE0..=0xEF) => 3,
        Some(0xF0..=0xF4) => 4,
        _ => 1,
    };
    let Some(slice) = bytes.get(..length) else {
        return if last {
            Parsed::Done(None, bytes.len())
        } else {
            Parsed::Partial
        };
    };
    match std::str::from_utf8(slice).ok().and_then(|it| it.chars().next()) {
        Some(letter) => {
            let shift = if letter.is_uppercase() {
                KeyModifiers::SHIFT
            } else {
                KeyModifiers::NONE
            };
            Parsed::Done(key(KeyCode::Char(letter), shift), length)
        }
        None => Parsed::Done(None, 1),
    }
}

fn single_shift(letter: u8) -> Option<KeyCode> {
    Some(match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'M' => KeyCode::Enter,
        b'P' => KeyCode::F(1),
        b'Q' => KeyCode::F(2),
        b'R' => KeyCode::F(3),
        b'S' => KeyCode::F(4),
        _ => return None,
    })
}

/// Everything that begins with `ESC [`; `rest` is what follows that.
fn control_sequence(rest: &[u8], last: bool) -> Parsed {
    if let [b'M', tail @ ..] = rest {
        // The old mouse report: three bytes that may be anything.
        return if tail.len() >= 3 || last {
            Parsed::Done(None, 2 + 1 + tail.len().min(3))
        } else {
            Parsed::Partial
        };
    }
    let parameters = rest.iter().take_while(|it| (0x30..=0x3f).contains(*it)).count();
    let intermediates = rest
        .iter()
        .skip(parameters)
        .take_while(|it| (0x20..=0x2f).contains(*it))
        .count();
    let Some(&letter) = rest.get(parameters + intermediates) else {
        return match (last, rest) {
            (true, []) => Parsed::Done(key(KeyCode::Char('['), KeyModifiers::ALT), 2),
            (true, _) => Parsed::Done(None, 2 + rest.len()),
            (false, _) if rest.len() > SEQUENCE_LIMIT => Parsed::Done(None, 2 + rest.len()),
            (false, _) => Parsed::Partial,
        };
    };
    let length = 2 + parameters + intermediates + 1;
    if !(0x40..=0x7e).contains(&letter) {
        // Broken off by a control: that control is its own event.
        return Parsed::Done(None, length - 1);
    }
    let text = rest
        .get(..parameters)
        .and_then(|it| std::str::from_utf8(it).ok())
        .unwrap_or_default();
    if letter == b'~' && text == "200" {
        return Parsed::PasteStart;
    }
    Parsed::Done(
        if intermediates == 0 {
            sequence(text, letter)
        } else {
            None
        },
        length,
    )
}

fn sequence(text: &str, letter: u8) -> Option<Input> {
    if let Some(numbers) = text.strip_prefix('<') {
        return mouse(numbers, letter);
    }
    if let Some(flags) = text.strip_prefix('?') {
        return match letter {
            b'u' => Some(Input::Reply(Reply::Keyboard(flags.parse().unwrap_or_default()))),
            b'c' => Some(Input::Reply(Reply::Attributes {
                // The first number is the terminal's level.
                sixel: flags.split(';').skip(1).any(|it| it == "4"),
            })),
            b'n' if flags.starts_with("997;") => Some(Input::Reply(Reply::Scheme)),
            _ => None,
        };
    }
    if text.starts_with(['>', '=']) {
        return None;
    }
    let fields: Vec<&str> = text.split(';').collect();
    let number = |at: usize| {
        fields
            .get(at)
            .and_then(|it| it.split(':').next())
            .and_then(|it| it.parse::<u32>().ok())
    };
    if letter == b't' {
        let pixels = |at| {
            let pixels = number(at).and_then(|it| u16::try_from(it).ok());
            pixels.filter(|it| (1..=MOST_PIXELS).contains(it))
        };
        return match (number(0), pixels(1), pixels(2)) {
            (Some(6), Some(high), Some(wide)) => Some(Input::Reply(Reply::Cell(wide, high))),
            _ => None,
        };
    }
    let modifiers = modifiers(fields.get(1).copied().unwrap_or_default())?;
    let code = match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'E' => return None,
        b'P' => KeyCode::F(1),
        b'Q' => KeyCode::F(2),
        // A cursor report looks the same but for the row.
        b'R' if number(0).is_none_or(|it| it == 1) => KeyCode::F(3),
        b'S' => KeyCode::F(4),
        b'Z' => return key(KeyCode::BackTab, modifiers | KeyModifiers::SHIFT),
        b'I' => return Some(Input::Focus(true)),
        b'O' => return Some(Input::Focus(false)),
        b'~' => match number(0)? {
            27 => return typed(number(2)?, None, modifiers),
            other => tilde(other)?,
        },
        b'u' => {
            let shifted = fields
                .first()
                .and_then(|it| it.split(':').nth(1))
                .and_then(|it| it.parse().ok());
            return typed(number(0)?, shifted, modifiers);
        }
        _ => return None,
    };
    key(code, modifiers)
}

/// `1 + bits`, with `:3` for a release, which is no key for us.
fn modifiers(field: &str) -> Option<KeyModifiers> {
    let mut parts = field.split(':');
    let bits = parts
        .next()
        .and_then(|it| it.parse::<u32>().ok())
        .unwrap_or(1)
        .saturating_sub(1);
    if parts.next() == Some("3") {
        return None;
    }
    let mut modifiers = KeyModifiers::NONE;
    for (bit, modifier) in [
        (1, KeyModifiers::SHIFT),
        (2, KeyModifiers::ALT),
        (4, KeyModifiers::CONTROL),
        (8, KeyModifiers::SUPER),
        (16, KeyModifiers::HYPER),
        (32, KeyModifiers::META),
    ] {
        if bits & bit != 0 {
            modifiers |= modifier;
        }
    }
    Some(modifiers)
}

fn tilde(number: u32) -> Option<KeyCode> {
    Some(match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => KeyCode::F((number - 10) as u8),
        17..=21 => KeyCode::F((number - 11) as u8),
        23 | 24 => KeyCode::F((number - 12) as u8),
        _ => return None,
    })
}

/// A key by its Unicode code, as the newer protocols report it.
fn typed(code: u32, shifted: Option<u32>, modifiers: KeyModifiers) -> Option<Input> {
    let shift = modifiers.contains(KeyModifiers::SHIFT);
    let code = match code {
        27 => KeyCode::Esc,
        13 | 57414 => KeyCode::Enter,
        9 if shift => KeyCode::BackTab,
        9 => KeyCode::Tab,
        127 | 8 => KeyCode::Backspace,
        57399..=57408 => KeyCode::Char(char::from_digit(code - 57399, 10)?),
        57409 => KeyCode::Char('.'),
        57410 => KeyCode::Char('/'),
        57411 => KeyCode::Char('*'),
        57412 => KeyCode::Char('-'),
        57413 => KeyCode::Char('+'),
        57415 => KeyCode::Char('='),
        57417 => KeyCode::Left,
        57418 => KeyCode::Right,
        57419 => KeyCode::Up,
        57420 => KeyCode::Down,
        57421 => KeyCode::PageUp,
        57422 => KeyCode::PageDown,
        57423 => KeyCode::Home,
        57424 => KeyCode::End,
        57425 => KeyCode::Insert,
        57426 => KeyCode::Delete,
        // Modifiers, locks and media keys by themselves.
        57344..=57454 => return None,
        code => {
            let plain = char::from_u32(code)?;
            if plain.is_control() {
                return control(code as u8);
            }
            let letter = match shifted.and_then(char::from_u32) {
                Some(upper) if shift => upper,
                Some(_) | None if shift => plain.to_uppercase().next().unwrap_or(plain),
                Some(_) | None => plain,
            };
            KeyCode::Char(letter)
        }
    };
    key(code, modifiers)
}

fn mouse(numbers: &str, letter: u8) -> Option<Input> {
    let mut fields = numbers.split(';').map(str::parse::<u16>);
    let (button, x, y) = (fields.next()?.ok()?, fields.next()?.ok()?, fields.next()?.ok()?);
    let (x, y) = (x.saturating_sub(1), y.saturating_sub(1));
    match button & !0b1_1100 {
        64 => Some(Input::Wheel { down: false, x, y }),
        65 => Some(Input::Wheel { down: true, x, y }),
        0 if letter == b'M' => Some(Input::Click { x, y }),
        0 => Some(Input::Release { x, y }),
        32 => Some(Input::Drag { x, y }),
        _ => None,
    }
}

/// A paste of a terminal that does not mark it may come in several reads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Burst {
    /// When the last part of one came.
    until_ms: u64,
}

/// Parts of one paste follow each other within this time.
const BURST_MS: u64 = 40;

/// Keys in one read that, with a line break between them, make it a paste: nobody types so fast.
const BURST_KEYS: usize = 24;

/// Makes long runs of letters pastes, and shorter ones that go over a line: nobody types so many in one read, one by one
/// each costs a layout, and a break in what was pasted must not send the half of it.
pub fn gather(inputs: &mut Vec<Input>, burst: &mut Burst, now_ms: u64) {
    let mut gathered = Vec::with_capacity(inputs.len());
    let goes_on = now_ms < burst.until_ms;
    for run in inputs.chunk_by(|a, b| writes(a).is_some() && writes(b).is_some()) {
        let breaks = |it: &[Input]| it.iter().any(|it| writes(it) == Some('\n'));
        let body = run.split_last().map_or(run, |it| it.1);
        let is_paste = run.len() >= PASTED_LETTERS || run.len() >= BURST_KEYS && breaks(body);
        if (is_paste || goes_on && run.len() > 1) && run.iter().all(|it| writes(it).is_some()) {
            gathered.push(Input::Paste(run.iter().filter_map(writes).collect()));
            burst.until_ms = now_ms + BURST_MS;
        } else {
            gathered.extend(run.iter().cloned());
        }
    }
    *inputs = gathered;
}

/// Returns the character that the key would write in a paste; `None` for other inputs.
fn writes(input: &Input) -> Option<char> {
    match input {
        Input::Key(KeyEvent {
            code: KeyCode::Enter,
            modifiers: KeyModifiers::NONE,
            ..
        }) => Some('\n'),
        // Without marks a line break of a paste comes as what Ctrl+J sends.
        Input::Key(KeyEvent {
            code: KeyCode::Char('j'),
            modifiers: KeyModifiers::CONTROL,
            ..
        }) => Some('\n'),
        Input::Key(KeyEvent {
            code: KeyCode::Tab,
            modifiers: KeyModifiers::NONE,
            ..
        }) => Some('\t'),
        other => letter(other),
    }
}

/// The letter that the key types.
fn letter(input: &Input) -> Option<char> {
    match input {
        Input::Key(key) if (key.modifiers - KeyModifiers::SHIFT).is_empty() => match key.code {
            KeyCode::Char(letter) => Some(letter),
            _ => None,
        },
        _ => None,
    }
}

/// OSC, DCS, APC and PM: up to BEL or ESC \.
fn string(bytes: &[u8], last: bool, is_osc: bool) -> Parsed {
    let end = bytes.iter().enumerate().skip(2).find_map(|(at, byte)| match byte {
        0x07 if is_osc => Some((at, at + 1)),
        0x1b if bytes.get(at + 1) == Some(&b'\\') => Some((at, at + 2)),
        _ => None,
    });
    match end {
        Some((end, length)) => {
            let text = bytes
                .get(2..end)
                .and_then(|it| std::str::from_utf8(it).ok())
                .unwrap_or_default();
            let reply = if is_osc {
                let colour = text.strip_prefix("11;").and_then(Rgb::parse);
                colour.map(Reply::Background)
            } else {
                text.strip_prefix(">|").map(|name| Reply::Named(TerminalName::of(name)))
            };
            Parsed::Done(reply.map(Input::Reply), length)
        }
        None if bytes.len() > SEQUENCE_LIMIT || last => Parsed::Done(None, bytes.len()),
        None => Parsed::Partial,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_nobody_can_have_typed_are_a_paste() {
        let gathered = |bytes: &[u8]| {
            let mut inputs = parse(bytes);
            gather(&mut inputs, &mut Burst::default(), 1000);
            inputs
        };
        let typed = "a".repeat(PASTED_LETTERS - 1);
        assert_eq!(gathered(typed.as_bytes()), parse(typed.as_bytes()));
        let pasted = "Aß".repeat(PASTED_LETTERS);
        let around = format!("\x1b[Ax\r{pasted}\rx\x1b[A");
        let whole = format!("x\n{pasted}\nx");
        let expected = [parse(b"\x1b[A"), vec![Input::Paste(whole)], parse(b"\x1b[A")].concat();
        assert_eq!(gathered(around.as_bytes()), expected);
    }

    #[test]
    fn lines_that_come_at_once_are_a_paste_and_a_typed_line_is_none() {
        let mut burst = Burst::default();
        let mut gathered = |bytes: &[u8], now_ms: u64| {
            let mut inputs = parse(bytes);
            gather(&mut inputs, &mut burst, now_ms);
            inputs
        };
        let typed: &[u8] = b"one message that somebody typed far ahead of us\r";
        assert_eq!(gathered(typed, 1000), parse(typed));
        assert_eq!(gathered(b"/help\rhello\r", 1000), parse(b"/help\rhello\r"));
        let pasted = b"fn main() {\r\tlet a = 1;\r}\r";
        assert_eq!(
            gathered(pasted, 2000),
            [Input::Paste("fn main() {\n\tlet a = 1;\n}\n".into())]
        );
        assert_eq!(gathered(b"} // end\r", 2010), [Input::Paste("} // end\n".into())]);
        assert_eq!(gathered(b"ok\r", 3000), parse(b"ok\r"));
    }

    fn parse(bytes: &[u8]) -> Vec<Input> {
        let mut parser = InputParser::default();
        let mut out = Vec::new();
        parser.push(bytes, &mut out);
        parser.flush(&mut out);
        out
    }

    fn show(inputs: &[Input]) -> String {
        let one = |input: &Input| match input {
            Input::Key(it) => crate::tui::app::keymap::Chord::of(*it).to_string(),
            Input::Paste(text) => format!("paste({text:?})"),
            Input::Wheel { down, x, y } => format!("wheel {} {x},{y}", if *down { "down" } else { "up" }),
            Input::Click { x, y } => format!("click {x},{y}"),
            Input::Drag { x, y } => format!("drag {x},{y}"),
            Input::Release { x, y } => format!("release {x},{y}"),
            Input::Focus(it) => format!("focus {it}"),
            Input::Reply(Reply::Background(Rgb(r, g, b))) => format!("background {r:02x}{g:02x}{b:02x}"),
            Input::Reply(Reply::Keyboard(flags)) => format!("keyboard {flags}"),
            Input::Reply(Reply::Attributes { sixel: false }) => "attributes".into(),
            Input::Reply(Reply::Attributes { sixel: true }) => "attributes with sixel".into(),
            Input::Reply(Reply::Named(named)) => format!("named {named:?}"),
            Input::Reply(Reply::Cell(wide, high)) => format!("cell {wide},{high}"),
            Input::Reply(Reply::Scheme) => "scheme".into(),
        };
        inputs.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    const CASES: &[(&str, &[u8], &str)] = &[
        ("letters", b"aB", "a B"),
        ("umlaut, CJK and an emoji", "äß語🙂".as_bytes(), "ä ß 語 🙂"),
        (
            "enter, ctrl+j, tab, backspace twice",
            b"\r\n\t\x7f\x08",
            "enter ctrl+j tab backspace backspace",
        ),
        ("ctrl letters", b"\x03\x04\x1a\x00", "ctrl+c ctrl+d ctrl+z ctrl+space"),
        ("a lone escape", b"\x1b", "esc"),
        ("two escapes in one read", b"\x1b\x1b", "esc"),
        ("alt+enter; an escape and a letter with other bytes are two keys", b"\x1b\r\x1bx", "alt+enter esc x"),
        ("arrows in both forms", b"\x1b[A\x1bOB", "up down"),
        ("modified arrows", b"\x1b[1;5C\x1b[1;2D", "ctrl+right shift+left"),
        ("shift+tab", b"\x1b[Z", "shift+tab"),
        (
            "page and edit keys",
            b"\x1b[5~\x1b[6~\x1b[H\x1b[F\x1b[3~",
            "pgup pgdn home end delete",
        ),
        ("function keys", b"\x1bOP\x1bOQ\x1b[15~\x1b[24~", "f1 f2 f5 f12"),
        (
            "kitty: ctrl+. and shift+enter",
            b"\x1b[46;5u\x1b[13;2u",
            "ctrl+. shift+enter",
        ),
        ("kitty: a release is nothing", b"\x1b[97;5:3u", ""),
        ("kitty: ctrl+c", b"\x1b[99;5u", "ctrl+c"),
        ("kitty: shifted letter", b"\x1b[97:65;2u", "A"),
        ("kitty: esc", b"\x1b[27u", "esc"),
        (
            "modifyOtherKeys, which crossterm drops",
            b"\x1b[27;5;46~\x1b[27;2;13~",
            "ctrl+. shift+enter",
        ),
        (
            "paste keeps what it holds",
            b"\x1b[200~a\r\nb\x1b[A\x1b[201~c",
            "paste(\"a\\r\\nb\\u{1b}[A\") c",
        ),
        (
            "background in both endings",
            b"\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\\x1b]11;rgb:ff/ff/ff\x07",
            "background 1e1e1e background ffffff",
        ),
        ("replies", b"\x1b[?0u\x1b[?62;22c", "keyboard 0 attributes"),
        (
            "what it is and can",
            b"\x1bP>|kitty(0.35.2)\x1b\\\x1bP>|XTerm(379)\x1b\\\x1b[6;19;9t\x1b[8;24;80t\x1b[6;0;9t\x1b[6;60000;60000t\x1b[?63;1;2;4;6c\x1b[?4;6c",
            "named Draws(Kitty) named Other cell 9,19 attributes with sixel attributes",
        ),
        (
            "wheel and click",
            b"\x1b[<64;10;5M\x1b[<65;1;1M\x1b[<0;3;4M\x1b[<32;4;4M\x1b[<0;4;4m\x1b[<2;1;1M\x1b[<35;1;1M",
            "wheel up 9,4 wheel down 0,0 click 2,3 drag 3,3 release 3,3",
        ),
        (
            "from dark to light, and another report",
            b"\x1b[?997;2n\x1b[?15n",
            "scheme",
        ),
        ("focus", b"\x1b[I\x1b[O", "focus true focus false"),
        ("unknown sequences are nothing", b"\x1b[99;99X\x1bPabc\x1b\\x", "x"),
        ("invalid UTF-8 is nothing", b"\xff\xc3(", "("),
        ("a cursor report is no F3", b"\x1b[12;40R\x1b[1;5R", "ctrl+f3"),
    ];

    #[test]
    fn each_sequence_is_the_key_it_means() {
        for (name, bytes, expected) in CASES {
            assert_eq!(show(&parse(bytes)), *expected, "{name}");
        }
    }

    #[test]
    fn esc_and_a_letter_are_a_chord_only_alone() {
        let read = |reads: &[&[u8]], then_rest: bool| {
            let (mut parser, mut out) = (InputParser::default(), Vec::new());
            for bytes in reads {
                parser.push(bytes, &mut out);
            }
            if then_rest {
                parser.flush(&mut out);
            }
            show(&out)
        };
        for (reads, expected) in [
            (&[&b"\x1by"[..]][..], "alt+y"),
            (&[b"\x1b", b"y"], "esc y"),
            (&[b"\x1by", b"es"], "esc y e s"),
            (&[b"\x1byes"], "esc y e s"),
            (&[b"\x1b\x1by"], "esc esc y"),
            (&[b"x\x1by"], "x esc y"),
            (&[b"\x1b\xc3\xa4"], "alt+ä"),
            (&[b"\x1b\xc3\xa4n"], "esc ä n"),
            (&[b"\x1bA", b"\x1b[A"], "esc A up"),
        ] {
            assert_eq!(read(reads, true), expected, "{reads:?}");
        }
        // Nothing is decided before nothing has followed; motions do not wait.
        assert_eq!(read(&[b"\x1by"], false), "");
        assert_eq!(read(&[b"\x1bf", b"\x1bf"], false), "alt+f alt+f");
    }

    #[test]
    fn a_chord_that_decides_nothing_does_not_swallow_the_key_after_it() {
        for (bytes, expected) in [
            (b"\x1by", DECIDING_CHORD),
            (b"\x1bN", DECIDING_CHORD),
            (b"\x1br", CHORD),
        ] {
            let (mut parser, mut out) = (InputParser::default(), Vec::new());
            parser.push(bytes, &mut out);
            assert_eq!(parser.waits(), Some(expected), "{bytes:?}");
        }
    }

    #[test]
    fn it_does_not_matter_how_the_bytes_are_cut() {
        // Escapes that stand alone mean time has passed, which a cut does not say.
        for (name, bytes, expected) in CASES.iter().filter(|it| !it.0.contains("escape")) {
            for cut in 1..bytes.len() {
                let mut parser = InputParser::default();
                let mut out = Vec::new();
                parser.push(&bytes[..cut], &mut out);
                parser.push(&bytes[cut..], &mut out);
                parser.flush(&mut out);
                assert_eq!(show(&out), *expected, "{name}, cut at {cut}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_taken(chunks in proptest::collection::vec(proptest::collection::vec(0u8.., 0..12), 0..12)) {
            let mut parser = InputParser::default();
            let mut out = Vec::new();
            for chunk in chunks {
                parser.push(&chunk, &mut out);
            }
            parser.flush(&mut out);
        }
    }
}
