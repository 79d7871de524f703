//! Bytes to server-sent events.
//!
//! `eventsource-stream` reads the fields, but it is never fed raw bytes: it panics on a byte order mark, stops at
//! invalid UTF-8, loses the last line that ends in CR and copies its whole buffer once per line. In front of it
//! stands a normaliser that hands it whole, valid lines ended by LF, one at a time, and counts them.
//!
//! ```text
//! bytes ─► Lines: BOM, CR LF CRLF, 16 MiB ─► Gauge: what one event may weigh ─► eventsource-stream ─► Frame
//! ```
//!
//! An event of one data line and nothing else, as nearly all of a model's answer is, has nothing left to be read in it:
//! it goes around the crate.
//!
//! [`Frames`] is pushed by hand; [`Reader`] wraps a stream of bytes. `retry:` is ignored: when to come back is
//! decided in [`super::retry`].

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

use eventsource_stream::{Event, EventStream};
use futures::{Stream, TryStream};

/// The longest line that is read, without its end.
pub const LINE_LIMIT_BYTES: usize = 16 << 20;

/// The heaviest event that is read: the bytes of its data lines and 32 more for each of them.
pub const EVENT_LIMIT_BYTES: usize = 16 << 20;

/// What a data line costs beside its text, so that a flood of empty ones meets the limit too.
const DATA_LINE_BYTES: usize = 32;

/// An `id:` line longer than this is ignored, because the last id is copied into every frame after it.
const ID_LIMIT_BYTES: usize = 1024;

/// A partial line's buffer above this size is given back once the line is done.
const KEPT_BUFFER_BYTES: usize = 64 << 10;

/// How many chunks without a frame [`Reader`] takes before it lets other tasks run.
const CHUNKS_PER_POLL: usize = 64;

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The `event:` field; `None` when it is absent, empty or `message`, which mean the same.
    pub event: Option<String>,
    /// The `data:` lines, joined by LF. Empty for a bare `data:`.
    pub data: String,
    /// The last `id:` seen so far in the stream, in this event or an earlier one.
    pub id: Option<String>,
}

/// Why a stream of events cannot be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("a line of the event stream is longer than {} MiB", LINE_LIMIT_BYTES >> 20)]
    LineTooLong,
    #[error("an event of the stream is larger than {} MiB", EVENT_LIMIT_BYTES >> 20)]
    EventTooLarge,
}

/// A push parser: bytes in, frames out.
///
/// The pieces in which the bytes come never matter. After an error it stays silent.
pub struct Frames {
    lines: Lines,
    gauge: Gauge,
    /// The only line of the event so far, when that is data; `events` has not seen it.
    alone: Option<String>,
    /// `events` has lines of the event, or an id for all that follow.
    is_shared: bool,
    has_id: bool,
    /// The line that `events` reads next.
    slot: Slot,
    events: EventStream<Slot>,
    failed: bool,
    comments: u64,
}

impl Default for Frames {
    fn default() -> Self {
        Self::new()
    }
}

impl Frames {
    pub fn new() -> Self {
        let slot = Slot::default();
        let mut frames = Self {
            lines: Lines::default(),
            gauge: Gauge::default(),
            alone: None,
            is_shared: false,
            has_id: false,
            events: EventStream::new(slot.clone()),
            slot,
            failed: false,
            comments: 0,
        };
        // The parser panics on a byte order mark in the first line it sees. No line of unknown name is handed to it, so
        // none can begin with one; this second guard holds should that filter ever change.
        frames.read(":\n".to_owned());
        frames
    }

    /// Reads `bytes`; gives the frames that they complete, in order. An error is the last thing a stream gives.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Result<Frame, FrameError>> {
        let mut found = Vec::new();
        let mut rest = bytes;
        while !self.failed {
            match self.lines.next(&mut rest) {
                Ok(None) => break,
                Ok(Some(line)) => match self.line(line) {
                    Ok(None) => {}
                    Ok(Some(frame)) => found.push(Ok(frame)),
                    Err(error) => found.push(self.fail(error)),
                },
                Err(error) => found.push(self.fail(error)),
            }
        }
        found
    }

    /// Ends the stream. An event that lacks only its blank line is given when its data is whole: JSON or `[DONE]`.
    pub fn finish(&mut self) -> Option<Result<Frame, FrameError>> {
        if self.failed {
            return None;
        }
        self.failed = true;
        if let Some(line) = self.lines.rest()
            && let Err(error) = self.line(line)
        {
            return Some(Err(error));
        }
        let frame = self.blank()?;
        let data = frame.data.trim();
        let whole = data == "[DONE]" || serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok();
        whole.then_some(Ok(frame))
    }

    /// How many comment lines have been seen. Writers send them to show that they live.
    pub fn comments(&self) -> u64 {
        self.comments
    }

    fn fail(&mut self, error: FrameError) -> Result<Frame, FrameError> {
        self.failed = true;
        self.lines = Lines::default();
        Err(error)
    }

    /// Takes one line without its end.
    fn line(&mut self, line: String) -> Result<Option<Frame>, FrameError> {
        match Field::of(&line) {
            Field::Comment => {
                self.comments += 1;
                Ok(None)
            }
            Field::Ignored => Ok(None),
            Field::Data => {
                self.gauge.add(&line)?;
                if self.alone.is_none() && !self.is_shared && !self.has_id {
                    self.alone = Some(line);
                    return Ok(None);
                }
                Ok(self.share(line))
            }
            Field::Kept => {
                self.has_id |= line.starts_with("id");
                Ok(self.share(line))
            }
            Field::Blank => {
                self.gauge = Gauge::default();
                Ok(self.blank())
            }
        }
    }

    /// Hands a line of an event to the parser that is to read it.
    fn share(&mut self, mut line: String) -> Option<Frame> {
        self.is_shared = true;
        if let Some(mut first) = self.alone.take() {
            first.push('\n');
            self.read(first);
        }
        line.push('\n');
        self.read(line)
    }

    /// Ends an event.
    fn blank(&mut self) -> Option<Frame> {
        self.is_shared = false;
        match self.alone.take() {
            Some(line) => Some(Frame {
                data: value(line),
                ..Frame::default()
            }),
            None => self.read("\n".to_owned()),
        }
    }

    /// Hands one ended line to the parser, which is then always ready to say whether an event is complete.
    fn read(&mut self, line: String) -> Option<Frame> {
        self.slot.fill(line);
        match Pin::new(&mut self.events).poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(Ok(event))) => Some(event.into()),
            // The slot never ends and never fails, and every line is valid UTF-8 that some rule of the parser takes.
            Poll::Ready(None | Some(Err(_))) | Poll::Pending => None,
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

/// What stands behind the name of a field and its colon.
fn value(mut line: String) -> String {
    let name = line.find(':').map_or(line.len(), |it| it + 1);
    let blank = usize::from(line.get(name..).is_some_and(|it| it.starts_with(' ')));
    line.drain(..name + blank);
    line
}

/// What a line is good for.
enum Field {
    Blank,
    Comment,
    Data,
    /// `event` or `id`.
    Kept,
    /// `retry`, unknown fields and ids of absurd length.
    Ignored,
}

impl Field {
    fn of(line: &str) -> Self {
        if line.is_empty() {
            return Self::Blank;
        }
        match line.split_once(':').map_or(line, |(name, _)| name) {
            "" => Self::Comment,
            "data" => Self::Data,
            "event" => Self::Kept,
            "id" if line.len() <= ID_LIMIT_BYTES => Self::Kept,
            _ => Self::Ignored,
        }
    }
}

/// Weighs the event that is being read.
#[derive(Default)]
struct Gauge {
    bytes: usize,
}

impl Gauge {
    fn add(&mut self, line: &str) -> Result<(), FrameError> {
        self.bytes = self.bytes.saturating_add(line.len() + DATA_LINE_BYTES);
        // A line of just the limit is still an event of its own.
        if self.bytes > EVENT_LIMIT_BYTES + DATA_LINE_BYTES {
            return Err(FrameError::EventTooLarge);
        }
        Ok(())
    }
}

/// Splits bytes into lines, whatever their ends and wherever the pieces are cut.
#[derive(Default)]
struct Lines {
    /// The part of a line that came in earlier pieces.
    partial: Vec<u8>,
    /// The last piece ended in CR: an LF at the start of the next belongs to it.
    after_cr: bool,
    /// A byte order mark is looked for in the first line only.
    begun: bool,
}

impl Lines {
    /// The next line of `rest`, which shrinks; `None` when it ends within a line. Looks at each byte once.
    fn next(&mut self, rest: &mut &[u8]) -> Result<Option<String>, FrameError> {
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            *rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        let end = rest.iter().position(|&byte| byte == b'\n' || byte == b'\r');
        let piece = &rest[..end.unwrap_or(rest.len())];
        if self.partial.len() + piece.len() > LINE_LIMIT_BYTES {
            return Err(FrameError::LineTooLong);
        }
        let Some(end) = end else {
            self.partial.extend_from_slice(piece);
            *rest = &[];
            return Ok(None);
        };
        self.after_cr = rest[end] == b'\r';
        *rest = &rest[end + 1..];
        if self.partial.is_empty() {
            return Ok(Some(self.text(piece)));
        }
        self.partial.extend_from_slice(piece);
        Ok(self.rest())
    }

    /// The line begun so far, if any.
    fn rest(&mut self) -> Option<String> {
        if self.partial.is_empty() {
            return None;
        }
        let mut line = std::mem::take(&mut self.partial);
        let text = self.text(&line);
        if line.capacity() <= KEPT_BUFFER_BYTES {
            line.clear();
            self.partial = line;
        }
        Some(text)
    }

    fn text(&mut self, line: &[u8]) -> String {
        let first = !std::mem::replace(&mut self.begun, true);
        let line = if first {
            line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)
        } else {
            line
        };
        String::from_utf8_lossy(line).into_owned()
    }
}

/// The stream that the parser reads: at most one line, then nothing until the next is filled in.
#[derive(Clone, Default)]
struct Slot(Arc<Mutex<Option<String>>>);

impl Slot {
    fn fill(&self, line: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(line);
    }
}

impl Stream for Slot {
    type Item = Result<String, std::convert::Infallible>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(line) => Poll::Ready(Some(Ok(line))),
            None => Poll::Pending,
        }
    }
}

/// Why a body gave no further frame.
#[derive(Debug, thiserror::Error)]
pub enum ReadError<E> {
    /// The bytes are there and cannot be read as events.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The bytes stopped coming.
    #[error(transparent)]
    Body(E),
}

/// A stream of frames over a stream of bytes. A body that fails gives its last whole event first, then the error.
pub struct Reader<S: TryStream> {
    /// `None` after its end or an error.
    body: Option<S>,
    frames: Frames,
    ready: VecDeque<Result<Frame, ReadError<S::Error>>>,
}

impl<S: TryStream> Reader<S> {
    pub fn new(body: S) -> Self {
        Self {
            body: Some(body),
            frames: Frames::new(),
            ready: VecDeque::new(),
        }
    }

    /// How many comment lines have been seen.
    pub fn comments(&self) -> u64 {
        self.frames.comments()
    }
}

// Nothing in here is ever pinned but the body, and that is `Unpin` itself.
impl<S: TryStream + Unpin> Unpin for Reader<S> {}

impl<S> Stream for Reader<S>
where
    S: TryStream + Unpin,
    S::Ok: AsRef<[u8]>,
{
    type Item = Result<Frame, ReadError<S::Error>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        for _ in 0..CHUNKS_PER_POLL {
            if let Some(frame) = this.ready.pop_front() {
                if matches!(frame, Err(ReadError::Frame(_))) {
                    this.body = None;
                }
                return Poll::Ready(Some(frame));
            }
            let Some(body) = &mut this.body else {
                return Poll::Ready(None);
            };
            match Pin::new(body).try_poll_next(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(bytes))) => {
                    let frames = this.frames.push(bytes.as_ref());
                    this.ready
                        .extend(frames.into_iter().map(|it| it.map_err(ReadError::Frame)));
                }
                Poll::Ready(end) => {
                    this.body = None;
                    this.ready
                        .extend(this.frames.finish().map(|it| it.map_err(ReadError::Frame)));
                    if let Some(Err(error)) = end {
                        this.ready.push_back(Err(ReadError::Body(error)));
                    }
                }
            }
        }
        // A body that is always ready with comments must not keep the thread for itself.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::StreamExt;
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

    /// Lines as streams have them, in any order.
    fn lines() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            4 => "data: ?[ -~é\0:]{0,6}",
            2 => Just(String::new()),
            1 => proptest::sample::select(vec!["data", "event: x", "event:", "id: 7", "id", ":", ": ping", "retry: 1", "foo: b", "\u{feff}data: a"]).prop_map(str::to_owned),
        ];
        proptest::collection::vec(line, 0..14).prop_map(|it| it.join("\n") + "\n")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn an_event_that_goes_around_the_crate_is_what_the_crate_reads(input in lines(), size in 1_usize..9) {
            let mut shared = Frames::new();
            let mut expected = Vec::new();
            for piece in input.as_bytes().chunks(size) {
                // As if an id had been seen, every line is shared.
                shared.has_id = true;
                expected.extend(shared.push(piece).iter().map(show));
            }
            expected.extend(shared.finish().iter().map(show));
            prop_assert_eq!(read(input.as_bytes().chunks(size)), expected);
        }
    }

    #[test]
    fn comments_are_counted() {
        let mut frames = Frames::new();
        assert!(frames.push(b": ping\n\n:\ndata: a\n").is_empty());
        assert_eq!(frames.comments(), 2);
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

    fn body(
        pieces: &[&'static str],
        error: Option<&'static str>,
    ) -> Reader<impl TryStream<Ok = &'static str, Error = &'static str> + Unpin> {
        Reader::new(futures::stream::iter(
            pieces.iter().copied().map(Ok).chain(error.map(Err)).collect::<Vec<_>>(),
        ))
    }

    async fn shown(reader: Reader<impl TryStream<Ok = &'static str, Error = &'static str> + Unpin>) -> Vec<String> {
        let all: Vec<_> = reader.collect().await;
        all.iter()
            .map(|it| match it {
                Ok(frame) => frame.data.clone(),
                Err(ReadError::Body(error)) => format!("body: {error}"),
                Err(ReadError::Frame(error)) => format!("frame: {error:?}"),
            })
            .collect()
    }

    #[tokio::test]
    async fn a_body_is_read_to_its_end_or_its_error() {
        assert_eq!(
            shown(body(&["data: a\n", "\ndata: b\n\ndata: {", "}"], None)).await,
            ["a", "b", "{}"]
        );
        assert_eq!(
            shown(body(&["data: a\n\ndata: {}"], Some("reset"))).await,
            ["a", "{}", "body: reset"]
        );
        assert_eq!(
            shown(body(&["data: a\n\ndata: {"], Some("reset"))).await,
            ["a", "body: reset"]
        );
        let comments = vec![": ping\n"; 3 * CHUNKS_PER_POLL];
        assert_eq!(
            shown(body(&[&comments[..], &["data: a\n\n"]].concat(), None)).await,
            ["a"]
        );
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
