//! Bytes to events as they stand: nothing is mended, everything has its place.
//!
//! The decoder's reader (`net::sse`) takes what comes; this one says what is wrong with it. Both know the same limit.

use super::{
    report::{ByteRange, Findings},
    rule,
};
use crate::net::sse::LINE_LIMIT_BYTES;

/// An event that a blank line, or the end, dispatched.
#[derive(Clone, Debug, Default)]
pub struct SseFrame {
    pub event: Option<String>,
    /// The data lines, joined by LF.
    pub data: String,
    /// Its first byte and how many there are, with its blank line.
    pub place: ByteRange,
    /// Offsets of the lines in `data`, each with its offset in the stream.
    lines: Vec<(usize, u64)>,
}

impl SseFrame {
    /// Returns the place in the stream of a range of the data.
    pub fn locate(&self, range: &std::ops::Range<usize>) -> ByteRange {
        let line = self.lines.iter().rev().find(|(start, _)| *start <= range.start);
        let (start, offset) = line.copied().unwrap_or((0, self.place.offset));
        ByteRange {
            offset: offset + (range.start - start) as u64,
            length: range.len() as u64,
        }
    }
}

/// Splits a stream into events. Bytes may arrive in any pieces.
#[derive(Default)]
pub struct Scanner {
    line: Vec<u8>,
    /// The place of the first byte of `line`.
    line_at: u64,
    /// Number of bytes received.
    seen: u64,
    after_cr: bool,
    /// True if the line is too long; its rest is dropped.
    too_long: bool,
    event: Option<Pending>,
    last_id: Option<u64>,
    pub comments: u64,
    is_first_line: bool,
    has_begun: bool,
}

#[derive(Default)]
struct Pending {
    frame: SseFrame,
    has_data: bool,
    /// True if the data is too long; its rest is dropped.
    is_full: bool,
}

/// Cost of a data line beside its text, in bytes, so that a flood of empty ones meets the limit too.
const DATA_LINE_BYTES: usize = 32;

impl Scanner {
    pub fn bytes(&self) -> u64 {
        self.seen
    }

    /// The events that `bytes` complete.
    pub fn push(&mut self, bytes: &[u8], found: &mut Findings) -> Vec<SseFrame> {
        if !self.has_begun {
            self.has_begun = true;
            self.is_first_line = true;
        }
        let mut frames = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_cr)
                && let Some(more) = rest.strip_prefix(b"\n")
            {
                self.seen += 1;
                self.line_at = self.seen;
                rest = more;
                continue;
            }
            let end = rest.iter().position(|it| matches!(it, b'\n' | b'\r'));
            let (piece, more) = rest.split_at(end.unwrap_or(rest.len()));
            self.seen += piece.len() as u64;
            self.keep(piece, found);
            rest = more;
            if let Some((&byte, more)) = more.split_first() {
                rest = more;
                self.seen += 1;
                self.after_cr = byte == b'\r';
                let line = std::mem::take(&mut self.line);
                frames.extend(self.line(&line, found));
                self.line_at = self.seen;
                self.too_long = false;
            }
        }
        frames
    }

    /// Adds to the line, as far as a line may go.
    fn keep(&mut self, piece: &[u8], found: &mut Findings) {
        let room = LINE_LIMIT_BYTES.saturating_sub(self.line.len()).min(piece.len());
        self.line.extend_from_slice(piece.get(..room).unwrap_or_default());
        if room < piece.len() && !std::mem::replace(&mut self.too_long, true) {
            let place = ByteRange {
                offset: self.line_at,
                length: self.seen - self.line_at,
            };
            found.add(&rule::LINE_LIMIT, "this line is longer", None, Some(place), "");
        }
    }

    /// The input has ended.
    pub fn finish(&mut self, found: &mut Findings) -> Option<SseFrame> {
        let line = std::mem::take(&mut self.line);
        let had_line = !line.is_empty();
        let early = if had_line { self.line(&line, found) } else { None };
        let pending = self.event.take()?;
        let what = if had_line {
            "the stream ends in the middle of a line"
        } else {
            "the stream ends without the blank line of its last event"
        };
        let frame = pending.frame;
        found.add(&rule::UNENDED, what, None, Some(frame.place), &frame.data);
        early.or_else(|| pending.has_data.then_some(frame))
    }

    fn line(&mut self, bytes: &[u8], found: &mut Findings) -> Option<SseFrame> {
        let mut at = self.line_at;
        let mut bytes = bytes;
        let mark = b"\xef\xbb\xbf";
        if std::mem::take(&mut self.is_first_line) && bytes.starts_with(mark) {
            bytes = bytes.get(mark.len()..).unwrap_or_default();
            at += mark.len() as u64;
        }
        if bytes.starts_with(mark) {
            let place = ByteRange { offset: at, length: 3 };
            found.add(&rule::BOM, "a byte order mark begins this line", None, Some(place), "");
        }
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => std::borrow::Cow::from(text),
            Err(error) => {
                let place = ByteRange {
                    offset: at + error.valid_up_to() as u64,
                    length: error.error_len().unwrap_or(1) as u64,
                };
                let text = String::from_utf8_lossy(bytes);
                found.add(&rule::UTF8, "these bytes are not UTF-8", None, Some(place), &text);
                text
            }
        };
        if text.is_empty() {
            return self.dispatch(found);
        }
        let place = ByteRange {
            offset: at,
            length: bytes.len() as u64,
        };
        let (name, value) = text.split_once(':').unwrap_or((&text, ""));
        let gap = usize::from(value.starts_with(' '));
        let value_at = at + (text.len() - value.len() + gap) as u64;
        let value = value.get(gap..).unwrap_or_default();
        if name.is_empty() {
            self.comments += 1;
            return None;
        }
        let pending = self.event.get_or_insert_default();
        if pending.frame.place == ByteRange::default() {
            pending.frame.place.offset = at;
        }
        pending.frame.place.length = at + place.length - pending.frame.place.offset;
        match name {
            "data" => {
                let frame = &mut pending.frame;
                if pending.has_data {
                    frame.data.push('\n');
                }
                pending.has_data = true;
                let weight = frame.data.len() + value.len() + DATA_LINE_BYTES * frame.lines.len();
                if weight <= LINE_LIMIT_BYTES {
                    frame.lines.push((frame.data.len(), value_at));
                    frame.data.push_str(value);
                } else if !std::mem::replace(&mut pending.is_full, true) {
                    found.add(&rule::LINE_LIMIT, "this event is larger", None, Some(place), "");
                }
            }
            "event" => pending.frame.event = Some(value.to_owned()),
            "id" => match number(value) {
                Some(id) => {
                    if self.last_id.is_some_and(|last| last >= id) {
                        found.add(&rule::EVENT_ID, "the id does not grow", None, Some(place), &text);
                    } else {
                        self.last_id = Some(id);
                    }
                }
                None => found.add(
                    &rule::EVENT_ID,
                    "the id is not a whole number",
                    None,
                    Some(place),
                    &text,
                ),
            },
            "retry" => {}
            _ => {
                let what = format!(
                    "unknown field `{}`",
                    name.get(..name.floor_char_boundary(80)).unwrap_or(name)
                );
                found.add(&rule::FIELD, &what, None, Some(place), &text);
            }
        }
        None
    }

    fn dispatch(&mut self, found: &mut Findings) -> Option<SseFrame> {
        let pending = self.event.take()?;
        if pending.has_data {
            return Some(pending.frame);
        }
        if let Some(name) = pending.frame.event {
            let what = format!("`{name}` has no data");
            found.add(&rule::NO_DATA, &what, None, Some(pending.frame.place), "");
        }
        None
    }
}

/// `7`, and neither `07` nor `7.2`.
fn number(id: &str) -> Option<u64> {
    id.parse::<u64>().ok().filter(|number| number.to_string() == id)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The event of a frame, its data and where it begins.
    type Scanned = (Option<String>, String, u64);

    fn scanned(pieces: &[&[u8]]) -> (Vec<Scanned>, Vec<&'static str>) {
        let (mut scanner, mut found) = (Scanner::default(), Findings::default());
        let mut frames = Vec::new();
        for piece in pieces {
            frames.extend(scanner.push(piece, &mut found));
        }
        frames.extend(scanner.finish(&mut found));
        let frames = frames.into_iter().map(|it| (it.event, it.data, it.place.offset));
        (frames.collect(), found.rules())
    }

    #[test]
    fn events_are_found_with_their_places() {
        let (frames, rules) =
            scanned(&[b"\xef\xbb\xbf: hello\r\n\r\nevent: a\r\ndata: x\r\ndata:y\r\n\r\nid: 1\ndata: z\n\n"]);
        assert_eq!(rules, Vec::<&str>::new());
        assert_eq!(
            frames,
            [
                (Some("a".to_owned()), "x\ny".to_owned(), 14),
                (None, "z".to_owned(), 43)
            ]
        );
    }

    #[test]
    fn a_part_of_the_data_has_its_place_in_the_stream() {
        let (mut scanner, mut found) = (Scanner::default(), Findings::default());
        let stream = b"event: a\ndata: {\"b\":\ndata: 1}\n\n";
        let frame = scanner.push(stream, &mut found).remove(0);
        let at = frame.data.find('1').expect("it is there");
        let place = frame.locate(&(at..at + 1));
        assert_eq!(stream[place.offset as usize], b'1');
        let at = frame.data.find('b').expect("it is there");
        assert_eq!(stream[frame.locate(&(at..at + 1)).offset as usize], b'b');
    }

    proptest! {
        #[test]
        fn the_pieces_do_not_matter(bytes in proptest::collection::vec(prop_oneof![
            Just(b'\n'), Just(b'\r'), Just(b':'), Just(b'd'), Just(0xef_u8), any::<u8>()
        ], 0..60), at in 0_usize..60) {
            let at = at.min(bytes.len());
            let (one, two) = bytes.split_at(at);
            prop_assert_eq!(scanned(&[&bytes]), scanned(&[one, two]));
        }
    }
}
