//! Bytes to server-sent events.
//!
//! `eventsource-stream` reads the events, but not from raw bytes: it panics on a byte order mark, stops at invalid UTF-8,
//! loses the last line that ends in CR, knows no limits and copies its whole buffer once per line. `Lines`, in front of
//! it, is a stream of whole, valid lines that end in LF, one at a time (the blank line goes with the one before it), and of
//! nothing that the parser would ignore.
//!
//! ```text
//! bytes ─► Lines: BOM, UTF-8, CR LF CRLF, 16 MiB a line and an event ─► eventsource-stream ─► Frame
//! ```
//!
//! `retry:` is ignored: when to come back is decided in [`super::retry`].

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use eventsource_stream::{Event, EventStream, EventStreamError, Eventsource as _};
use futures::Stream;

/// Maximum length of a line in bytes, without its end.
pub const LINE_LIMIT_BYTES: usize = 16 << 20;

/// Maximum weight of an event: the bytes of its data lines, and `DATA_LINE_BYTES` for each of them.
pub const EVENT_LIMIT_BYTES: usize = 16 << 20;

/// Maximum number of bytes between two events: comments, blank lines and unknown fields.
pub const SILENCE_LIMIT_BYTES: usize = 10_000_000;

/// Weight of a data line beside its text, so that a flood of empty ones meets the limit too.
const DATA_LINE_BYTES: usize = 32;

/// Maximum length of an `id:` line; a longer one is ignored, because the last id is copied into every frame after it.
const ID_LIMIT_BYTES: usize = 1024;

/// An event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The `event:` field; `None` when it is absent, empty or `message`, which mean the same.
    pub event: Option<String>,
    /// The `data:` lines, joined by LF. Empty for a bare `data:`.
    pub data: String,
    /// The last `id:` seen so far in the stream, in this event or an earlier one.
    pub id: Option<String>,
}

/// Reasons why a stream of events cannot be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("a line of the event stream is longer than {} MiB", LINE_LIMIT_BYTES >> 20)]
    LineTooLong,
    #[error("an event of the stream is larger than {} MiB", EVENT_LIMIT_BYTES >> 20)]
    EventTooLarge,
    #[error("the event stream has more than {} MB without an event", SILENCE_LIMIT_BYTES / 1_000_000)]
    NoEvent,
}

/// A push parser: bytes in, frames out.
///
/// The pieces in which the bytes come never matter. After an error it stays silent.
pub struct Frames {
    lines: Lines,
    events: EventStream<Lines>,
    has_failed: bool,
}

impl Default for Frames {
    fn default() -> Self {
        Self::new()
    }
}

impl Frames {
    /// Returns a parser at the start of a stream.
    pub fn new() -> Self {
        let lines = Lines::default();
        Self {
            events: lines.clone().eventsource(),
            lines,
            has_failed: false,
        }
    }

    /// Reads `bytes` and returns the frames that they complete, in order. An error is the last thing a stream gives.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Result<Frame, FrameError>> {
        if self.has_failed {
            return Vec::new();
        }
        self.lines.lock().push(bytes);
        let frames = std::iter::from_fn(|| self.next()).collect();
        self.lines.lock().forget_read();
        frames
    }

    /// Ends the stream. An event that lacks only its blank line is given when its data is whole: JSON or `[DONE]`.
    pub fn finish(&mut self) -> Option<Result<Frame, FrameError>> {
        if self.has_failed {
            return None;
        }
        // The end of a line that has none, and of an event that has none.
        self.lines.lock().push(b"\n\n");
        let last = self.next();
        self.has_failed = true;
        last.filter(|it| {
            let Ok(frame) = it else { return true };
            let data = frame.data.trim();
            data == "[DONE]" || serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok()
        })
    }

    /// Returns the number of comment lines so far. Writers send them to show that they live.
    #[cfg(test)]
    pub fn comments(&self) -> u64 {
        self.lines.lock().comments
    }

    /// Returns the next frame of what was pushed; `None` when more is needed, and after an error.
    fn next(&mut self) -> Option<Result<Frame, FrameError>> {
        if self.has_failed {
            return None;
        }
        match Pin::new(&mut self.events).poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(Ok(event))) => Some(Ok(event.into())),
            Poll::Ready(Some(Err(EventStreamError::Transport(error)))) => {
                self.has_failed = true;
                let mut buffer = self.lines.lock();
                *buffer = Buffer {
                    comments: buffer.comments,
                    ..Buffer::default()
                };
                Some(Err(error))
            }
            // Lines never end and are valid UTF-8, and some rule of the parser takes each of them.
            Poll::Ready(None | Some(Err(EventStreamError::Utf8(_) | EventStreamError::Parser(_)))) | Poll::Pending => {
                None
            }
        }
    }
}

impl From<Event> for Frame {
    fn from(event: Event) -> Self {
        Self {
            event: (event.event != "message").then_some(event.event),
            data: event.data,
            id: (!event.id.is_empty()).then_some(event.id),
        }
    }
}

/// The lines of the bytes that were pushed, each ended by LF, as a stream that is pending where they end.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Buffer>>);

/// Bytes that are not read yet, and what has to be known of those that were.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// Start of the next line.
    start: usize,
    /// Bytes before this hold no end of that line.
    scanned: usize,
    /// The line before ended in CR: an LF here belongs to it.
    is_after_cr: bool,
    /// The first line, where a byte order mark is looked for, has been read.
    has_begun: bool,
    /// Weight of the event that is being read.
    event_bytes: usize,
    /// Bytes since the last event that belong to no event.
    silence_bytes: usize,
    comments: u64,
}

impl Lines {
    fn lock(&self) -> MutexGuard<'_, Buffer> {
        // Nothing that runs under the lock leaves it half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream for Lines {
    type Item = Result<String, FrameError>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut buffer = self.lock();
        loop {
            match buffer.line() {
                Ok(None) => return Poll::Pending,
                Ok(Some(mut line)) => match buffer.is_wanted(&line) {
                    Ok(false) => {}
                    Ok(true) => {
                        line.push('\n');
                        if buffer.take_blank() {
                            line.push('\n');
                        }
                        return Poll::Ready(Some(Ok(line)));
                    }
                    Err(error) => return Poll::Ready(Some(Err(error))),
                },
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

impl Buffer {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Drops the lines that were read. Mostly nothing is left of a chunk, and then no room is kept until the next one comes.
    fn forget_read(&mut self) {
        self.bytes.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        if self.bytes.is_empty() {
            self.bytes = Vec::new();
        }
    }

    /// Takes the next line, without its end; `None` if it has none yet. Looks at each byte once.
    fn line(&mut self) -> Result<Option<String>, FrameError> {
        if self.is_after_cr && self.start < self.bytes.len() {
            self.is_after_cr = false;
            self.start += usize::from(self.bytes[self.start] == b'\n');
            self.scanned = self.start;
        }
        let fresh = self.bytes.get(self.scanned..).unwrap_or_default();
        let end = memchr::memchr2(b'\n', b'\r', fresh);
        self.scanned += end.unwrap_or(fresh.len());
        if self.scanned - self.start > LINE_LIMIT_BYTES {
            return Err(FrameError::LineTooLong);
        }
        if end.is_none() {
            return Ok(None);
        }
        let mut line = &self.bytes[self.start..self.scanned];
        if !std::mem::replace(&mut self.has_begun, true) {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        // With room for its end and for the end of the event.
        let mut text = String::with_capacity(line.len() + 2);
        match std::str::from_utf8(line) {
            Ok(line) => text.push_str(line),
            Err(_) => text.push_str(&String::from_utf8_lossy(line)),
        }
        self.is_after_cr = self.bytes[self.scanned] == b'\r';
        self.scanned += 1;
        self.start = self.scanned;
        Ok(Some(text))
    }

    /// Takes the blank line that ends an event, if it is there and lines end in LF: handing it on with the line before
    /// halves the work of the parser for an event of one line, as nearly all of an answer are.
    fn take_blank(&mut self) -> bool {
        let is_blank = !self.is_after_cr && self.bytes.get(self.start) == Some(&b'\n');
        if is_blank {
            self.start += 1;
            self.scanned = self.start;
            self.silence_bytes += 1;
            self.end_event();
        }
        is_blank
    }

    /// Resets the counts at a blank line.
    fn end_event(&mut self) {
        if std::mem::take(&mut self.event_bytes) > 0 {
            self.silence_bytes = 0;
        }
    }

    /// Counts a line, and returns true if the parser is to see it: blank lines, data, names and ids of bearable length.
    fn is_wanted(&mut self, line: &str) -> Result<bool, FrameError> {
        let name = line.split_once(':').map_or(line, |(name, _)| name);
        if name != "data" {
            self.silence_bytes += line.len() + 1;
            if self.silence_bytes > SILENCE_LIMIT_BYTES {
                return Err(FrameError::NoEvent);
            }
        }
        match name {
            "" if line.is_empty() => self.end_event(),
            "" => {
                self.comments += 1;
                return Ok(false);
            }
            "data" => {
                self.event_bytes += line.len() + DATA_LINE_BYTES;
                // A line of just the limit is still an event of its own.
                if self.event_bytes > EVENT_LIMIT_BYTES + DATA_LINE_BYTES {
                    return Err(FrameError::EventTooLarge);
                }
            }
            "event" => {}
            "id" => return Ok(line.len() <= ID_LIMIT_BYTES),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    /// A frame in one line: `event|data|id`, `-` for what is absent.
    fn show(frame: &Result<Frame, FrameError>) -> String {
        match frame {
            Ok(frame) => format!(
                "{}|{}|{}",
                frame.event.as_deref().unwrap_or("-"),
                frame.data,
                frame.id.as_deref().unwrap_or("-")
            ),
            Err(error) => format!("{error:?}"),
        }
    }

    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut frames = Frames::new();
        let mut found = Vec::new();
        for piece in pieces {
            found.extend(frames.push(piece).iter().map(show));
        }
        found.extend(frames.finish().iter().map(show));
        found
    }

    /// Whole, at every split, byte by byte, and with empty pieces between: the frames are the same.
    fn check(name: &str, input: &[u8], expected: &[&str]) {
        assert_eq!(read([input]), expected, "{name}: whole");
        for at in 0..=input.len() {
            let (left, right) = input.split_at(at);
            assert_eq!(read([left, right]), expected, "{name}: split at {at}");
            assert_eq!(
                read([left, b"", right, b""]),
                expected,
                "{name}: split at {at}, empty pieces"
            );
        }
        assert_eq!(read(input.chunks(1)), expected, "{name}: bytewise");
        let spaced = input.chunks(1).flat_map(|byte| [byte, b"".as_slice()]);
        assert_eq!(read(spaced), expected, "{name}: bytewise, empty pieces");
    }

    #[test]
    fn a_stream_is_read_as_the_standard_says_wherever_it_is_cut() {
        let cases: &[(&str, &[u8], &[&str])] = &[
            ("lines end in LF", b"data: a\n\ndata: b\n\n", &["-|a|-", "-|b|-"]),
            (
                "lines end in CRLF",
                b"data: a\r\n\r\ndata: b\r\n\r\n",
                &["-|a|-", "-|b|-"],
            ),
            ("lines end in CR", b"data: a\r\rdata: b\r\r", &["-|a|-", "-|b|-"]),
            (
                "line ends are mixed",
                b"event: x\rdata: a\r\ndata: b\n\r\n\n",
                &["x|a\nb|-"],
            ),
            ("LF CR is two ends", b"data: 1\n\rdata: 2\n\n", &["-|1|-", "-|2|-"]),
            ("a byte order mark is dropped", b"\xEF\xBB\xBFdata: a\n\n", &["-|a|-"]),
            (
                "only the first byte order mark is dropped",
                b"\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\ndata: b\n\n\xEF\xBB\xBFdata: c\n\n",
                &["-|b|-"],
            ),
            (
                "a byte order mark stands alone",
                b"\xEF\xBB\xBF\n\ndata: a\n\n",
                &["-|a|-"],
            ),
            (
                "half a byte order mark is no mark",
                b"\xEF\xBBdata: a\ndata: b\n\n",
                &["-|b|-"],
            ),
            (
                "comments say nothing",
                b": hello\n:\n:data: x\ndata: a\n: ping\n\n: bye\n\n",
                &["-|a|-"],
            ),
            (
                "a field without a colon is empty",
                b"data\n\ndata\ndata\n\n",
                &["-||-", "-|\n|-"],
            ),
            ("a field without a space", b"data:a\nevent:x\n\n", &["x|a|-"]),
            (
                "only one space is taken",
                b"data:  a \n\ndata:\ta\n\n",
                &["-| a |-", "-|\ta|-"],
            ),
            ("data keeps its colons", b"data: a: b: c\n\n", &["-|a: b: c|-"]),
            ("data lines are joined", b"data: a\ndata:\ndata: b\n\n", &["-|a\n\nb|-"]),
            ("empty data is an event", b"data:\n\ndata: \n\n", &["-||-", "-||-"]),
            (
                "an event without data is none",
                b"event: x\n\nid: 1\n\ndata: a\n\n",
                &["-|a|1"],
            ),
            (
                "a name is for one event",
                b"event: x\ndata: a\n\ndata: b\n\n",
                &["x|a|-", "-|b|-"],
            ),
            ("the last name counts", b"event: x\nevent: y\ndata: a\n\n", &["y|a|-"]),
            (
                "message is the default name",
                b"event: message\ndata: a\n\nevent:\ndata: b\n\n",
                &["-|a|-", "-|b|-"],
            ),
            (
                "an id stays",
                b"id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
                &["-|a|7", "-|b|7", "-|c|-"],
            ),
            ("an id with NUL is ignored", b"id: 7\nid: a\0b\ndata: a\n\n", &["-|a|7"]),
            (
                "retry is ignored",
                b"retry: 10\ndata: a\n\nretry: +5\n\nretry: x\ndata: b\n\n",
                &["-|a|-", "-|b|-"],
            ),
            (
                "unknown fields are ignored",
                b"Data: x\ndata : y\n data: z\nfoo\ndata: a\n\n",
                &["-|a|-"],
            ),
            (
                "blank lines before and between",
                b"\n\n\r\r\n\ndata: a\n\n\n\n\n",
                &["-|a|-"],
            ),
            (
                "invalid UTF-8 spoils one character",
                b"data: a\xFFb\n\ndata: c\n\n",
                &["-|a\u{FFFD}b|-", "-|c|-"],
            ),
            (
                "a character cut by a line end is spoilt alone",
                b"data: \xF0\x9F\x91\n\ndata: c\n\n",
                &["-|\u{FFFD}|-", "-|c|-"],
            ),
            ("wide characters", "data: é漢👍🏽\n\n".as_bytes(), &["-|é漢👍🏽|-"]),
            (
                "other separators are text",
                "data: a\u{2028}b\u{85}c\n\n".as_bytes(),
                &["-|a\u{2028}b\u{85}c|-"],
            ),
            (
                "an end after whole JSON",
                b"event: x\ndata: {\"a\":\ndata: 1}\n",
                &["x|{\"a\":\n1}|-"],
            ),
            ("an end within the line", b"data: {\"a\":1}", &["-|{\"a\":1}|-"]),
            ("an end after CR", b"data: {}\r", &["-|{}|-"]),
            ("an end after the marker", b"data: [DONE]", &["-|[DONE]|-"]),
            ("an end within JSON", b"data: {}\n\ndata: {\"a\":", &["-|{}|-"]),
            ("an end within text", b"data: a\n\ndata: b\n", &["-|a|-"]),
            ("an end after a name", b"event: x\n", &[]),
            ("nothing", b"", &[]),
        ];
        for (name, input, expected) in cases {
            check(name, input, expected);
        }
    }

    #[test]
    fn comments_are_counted() {
        let mut frames = Frames::new();
        assert!(frames.push(b": ping\n\n:\ndata: a\n").is_empty());
        assert_eq!(frames.comments(), 2);
    }

    #[test]
    fn a_stream_without_an_event_ends_and_one_with_events_does_not() {
        for line in [": x\n", "\n", "retry: 1\n", "event: x\n", "id: 1\n\n"] {
            let fits = SILENCE_LIMIT_BYTES / line.len() - 1;
            for with_events in [true, false] {
                let mut frames = Frames::new();
                let mut found = Vec::new();
                for part in 0..4 {
                    found.extend(frames.push(line.repeat(fits / 2).as_bytes()));
                    if with_events {
                        found.extend(frames.push(b"\ndata: a\n\n"));
                    }
                    assert!(part > 1 || found.iter().all(Result::is_ok), "{line:?} ends too early");
                }
                let errors: Vec<_> = found.into_iter().filter_map(Result::err).collect();
                let wanted: &[FrameError] = if with_events { &[] } else { &[FrameError::NoEvent] };
                assert_eq!(errors, wanted, "{line:?}");
            }
        }
        assert!(FrameError::NoEvent.to_string().contains("10 MB"));
    }

    #[test]
    fn a_line_of_the_limit_is_read_and_one_byte_more_is_an_error() {
        let fits = LINE_LIMIT_BYTES - "data:".len();
        for (length, expected) in [(fits, None), (fits + 1, Some(FrameError::LineTooLong))] {
            let mut frames = Frames::new();
            let mut found = frames.push(b"data: first\n\ndata:");
            for piece in vec![b'x'; length].chunks(1 << 16) {
                found.extend(frames.push(piece));
            }
            found.extend(frames.push(b"\n\ndata: after\n\n"));
            assert_eq!(found[0].as_ref().unwrap().data, "first");
            match expected {
                None => {
                    assert_eq!(found.len(), 3);
                    assert_eq!(found[1].as_ref().unwrap().data.len(), length);
                }
                Some(error) => assert_eq!(found[1..], [Err(error)], "nothing comes after an error"),
            }
        }
    }

    #[test]
    fn a_flood_of_data_lines_ends_however_small_they_are() {
        let cases: &[(&str, &[u8])] = &[
            ("empty", b"data\n"),
            ("one colon", b"data:\n"),
            ("a kilobyte", &[b"data: ".as_slice(), &[b'x'; 1024], b"\n"].concat()),
        ];
        for (name, line) in cases {
            let mut frames = Frames::new();
            let piece = line.repeat(1024);
            let most = EVENT_LIMIT_BYTES / (line.len() - 1 + DATA_LINE_BYTES) / 1024 + 2;
            let error = (0..most).find_map(|_| frames.push(&piece).pop());
            assert_eq!(error, Some(Err(FrameError::EventTooLarge)), "{name}");
            assert_eq!(
                frames.push(b"\n\ndata: a\n\n"),
                [],
                "{name}: nothing comes after an error"
            );
        }
    }

    #[test]
    fn blank_lines_take_the_weight_off() {
        let mut frames = Frames::new();
        let event = format!("data:{}\n\n", "x".repeat(1 << 20));
        for _ in 0..20 {
            assert!(frames.push(event.as_bytes()).iter().all(Result::is_ok));
        }
    }

    #[test]
    fn an_absurd_id_is_not_carried_along() {
        let input = [b"id: 1\nid: ".as_slice(), &[b'x'; ID_LIMIT_BYTES], b"\ndata: a\n\n"].concat();
        assert_eq!(read([input.as_slice()]), ["-|a|1"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn pieces_never_matter(
            lines in proptest::collection::vec("(data|event|id|retry|:)?:? ?[a-zé👍\\x00 ]{0,6}(\n|\r|\r\n|\n\n)", 0..12),
            cuts in proptest::collection::vec(0usize..200, 0..6),
        ) {
            let input = lines.concat().into_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(input.len())).collect();
            cuts.extend([0, input.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|pair| &input[pair[0]..pair[1]]);
            prop_assert_eq!(read(pieces), read([input.as_slice()]));
        }

        #[test]
        fn no_bytes_panic(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..8)) {
            read(pieces.iter().map(Vec::as_slice));
        }
    }
}
