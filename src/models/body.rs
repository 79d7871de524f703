//! From the bytes of an answer's body to pieces, whatever its media type says.
//!
//! Proxies label streams as JSON and JSON as streams, so the first visible byte decides: `{`, `[` or `<` starts one
//! body that is read to its end, everything else is a stream of events.

use serde_json::{Map, Value};

use super::{
    Failure, FailureKind, Piece,
    lenient::{AnswerState, BAD_JSON, broken_off, something_else, values},
    tap,
};
use crate::net::sse::{Frame, FrameError, Frames};

/// Reads the body of one answer. The end or an error comes once, and nothing after it.
pub trait Read: Send {
    fn push(&mut self, chunk: &[u8]) -> Vec<Piece>;

    /// From now on a [`Piece::Seen`] precedes what is made of each event of a stream. Bodies of another kind are recorded by
    /// [`Watched`](super::tap::Watched).
    fn watch(&mut self) {}

    /// The body ended.
    fn finish(self: Box<Self>) -> Vec<Piece>;

    /// The body cannot be read further.
    fn cut(self: Box<Self>, failure: Failure) -> Vec<Piece>;

    /// The answer is whole: at most a count of tokens is missing.
    fn is_finished(&self) -> bool;
}

/// Decodes the events of a stream, or one body, into pieces. Formats differ in the required methods only.
pub trait Decode: Send {
    /// Name of the format in messages: `chat completions`.
    const FORMAT: &'static str;

    fn answer(&mut self) -> &mut AnswerState;

    /// Returns true if something of an answer came.
    fn has_answer(&self) -> bool;

    /// Returns true if the answer is whole: at most a count of tokens is missing.
    fn is_finished(&self) -> bool;

    /// Decodes an object. `event` is the name of its event, empty if it has none.
    fn object(&mut self, value: &Value, members: &Map<String, Value>, event: &str, out: &mut Vec<Piece>);

    /// Decodes an event without parsing its JSON. Returns false if it cannot.
    fn fast_path(&mut self, frame: &Frame, data: &str, out: &mut Vec<Piece>) -> bool {
        let _ = (frame, data, out);
        false
    }

    /// Handles `[DONE]`.
    fn done(&mut self, out: &mut Vec<Piece>);

    /// Ends an answer that is finished.
    fn end(&mut self, out: &mut Vec<Piece>);

    /// Gives text that was held back, before a failure.
    fn flush(&mut self, out: &mut Vec<Piece>) {
        let _ = out;
    }

    fn push(&mut self, frame: &Frame, out: &mut Vec<Piece>) {
        let data = frame.data.trim();
        // Proxies turn comments into data.
        if self.answer().is_over || data.is_empty() || data.starts_with(':') {
            return;
        }
        if data.trim_matches('"') == "[DONE]" {
            return self.done(out);
        }
        if self.fast_path(frame, data, out) {
            return;
        }
        let event = frame.event.as_deref().unwrap_or_default();
        match values(data) {
            Ok(values) => {
                if values.len() > 1 {
                    let message = "several JSON objects came in one event";
                    self.answer().notice("glued-json", message, out);
                }
                for value in values {
                    self.value(&value, event, out);
                }
            }
            Err(_) if event == "error" => {
                let failure = Failure::from_server(None, &Value::String(data.to_owned()));
                self.answer().fail(failure, out);
            }
            Err(_) => {
                let message = "a line of the answer is no JSON and was skipped";
                self.answer().notice(BAD_JSON, message, out);
            }
        }
    }

    fn value(&mut self, value: &Value, event: &str, out: &mut Vec<Piece>) {
        match value {
            _ if self.answer().is_over => {}
            Value::Object(members) => self.object(value, members, event, out),
            // Some gateways wrap an error, or everything, into a list of one.
            Value::Array(items) => {
                for item in items.iter().filter(|it| it.is_object()) {
                    self.value(item, event, out);
                }
            }
            _ if event == "error" => self.answer().fail(Failure::from_server(None, value), out),
            _ => {
                let message = "an event of the answer is no JSON object and was skipped";
                self.answer().notice(BAD_JSON, message, out);
            }
        }
    }

    /// Handles the end of the body. That alone is no end of an answer.
    fn finish(&mut self) -> Vec<Piece> {
        let has_answer = self.has_answer();
        let failure = broken_off(has_answer, self.answer(), Self::FORMAT);
        self.cut(failure)
    }

    /// Handles a body that cannot be read further. An answer that was whole already ends well all the same.
    fn cut(&mut self, failure: Failure) -> Vec<Piece> {
        let mut out = Vec::new();
        if self.answer().is_over {
            return out;
        }
        if self.is_finished() {
            self.end(&mut out);
        } else {
            self.flush(&mut out);
            self.answer().fail(failure, &mut out);
        }
        out
    }

    /// Decodes an answer that was not streamed: one JSON body, an error or a whole answer.
    fn whole(mut self, body: &str) -> Vec<Piece>
    where
        Self: Sized,
    {
        let mut out = Vec::new();
        let body = body.trim_start_matches('\u{feff}').trim();
        let values = values(body);
        let is_json = values.is_ok();
        for value in values.unwrap_or_default() {
            self.value(&value, "", &mut out);
        }
        if !self.answer().is_over && is_json && self.has_answer() && !Self::ENDS_BY_EVENT {
            self.end(&mut out);
        }
        self.answer().fail(something_else(Self::FORMAT).saying(body), &mut out);
        out
    }

    /// True if an answer ends by an event of its own, even in a whole body.
    const ENDS_BY_EVENT: bool = false;
}

/// A body that is no stream: a whole answer, an error, a page of HTML.
pub const WHOLE_LIMIT_BYTES: usize = 16 << 20;

/// White space in front of anything visible.
const BLANK_LIMIT_BYTES: usize = 64 << 10;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The state between two chunks.
pub struct Reading<D> {
    decoder: D,
    form: BodyKind,
    is_watched: bool,
}

enum BodyKind {
    /// Nothing visible came yet.
    Unknown(Vec<u8>),
    Events(Box<Frames>),
    Whole(Vec<u8>),
}

impl<D: Decode> Reading<D> {
    pub fn new(decoder: D) -> Self {
        Self {
            decoder,
            form: BodyKind::Unknown(Vec::new()),
            is_watched: false,
        }
    }

    fn event(&mut self, frame: Result<Frame, FrameError>, out: &mut Vec<Piece>) {
        match frame {
            Ok(frame) => {
                out.extend(self.is_watched.then(|| tap::event(&frame)));
                self.decoder.push(&frame, out);
            }
            Err(error) => out.extend(self.decoder.cut(oversized(error))),
        }
    }
}

impl<D: Decode> Read for Reading<D> {
    fn push(&mut self, chunk: &[u8]) -> Vec<Piece> {
        match &mut self.form {
            BodyKind::Unknown(begun) => {
                begun.extend_from_slice(chunk);
                let begun = std::mem::take(begun);
                match first_visible(&begun) {
                    None if begun.len() <= BLANK_LIMIT_BYTES => {
                        self.form = BodyKind::Unknown(begun);
                        Vec::new()
                    }
                    Some(b'{' | b'[' | b'<') => {
                        self.form = BodyKind::Whole(Vec::new());
                        self.push(&begun)
                    }
                    Some(_) | None => {
                        self.form = BodyKind::Events(Box::default());
                        self.push(&begun)
                    }
                }
            }
            BodyKind::Events(frames) => {
                let mut pieces = Vec::new();
                for frame in frames.push(chunk) {
                    self.event(frame, &mut pieces);
                }
                pieces
            }
            BodyKind::Whole(body) if body.len() + chunk.len() > WHOLE_LIMIT_BYTES => {
                body.clear();
                let message = format!(
                    "the answer is no stream and larger than {} MiB",
                    WHOLE_LIMIT_BYTES >> 20
                );
                self.decoder.cut(Failure::new(FailureKind::Oversized, message))
            }
            BodyKind::Whole(body) => {
                body.extend_from_slice(chunk);
                Vec::new()
            }
        }
    }

    fn watch(&mut self) {
        self.is_watched = true;
    }

    fn finish(mut self: Box<Self>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        if let BodyKind::Events(frames) = &mut self.form
            && let Some(last) = frames.finish()
        {
            self.event(last, &mut pieces);
        }
        match self.form {
            BodyKind::Unknown(_) | BodyKind::Events(_) => pieces.extend(self.decoder.finish()),
            BodyKind::Whole(body) => pieces.extend(self.decoder.whole(&String::from_utf8_lossy(&body))),
        }
        pieces
    }

    fn cut(mut self: Box<Self>, failure: Failure) -> Vec<Piece> {
        self.decoder.cut(failure)
    }

    fn is_finished(&self) -> bool {
        self.decoder.is_finished()
    }
}

fn oversized(error: FrameError) -> Failure {
    Failure::from_error(FailureKind::Oversized, &error)
}

/// The first byte that is neither white space nor part of a byte order mark.
fn first_visible(bytes: &[u8]) -> Option<u8> {
    if BYTE_ORDER_MARK.starts_with(bytes) {
        return None;
    }
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    bytes.iter().copied().find(|it| !it.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config,
        models::{EndReason, ModelRequest, openai::Chat, request::Wire},
    };

    fn reading() -> Box<dyn Read> {
        Chat::default().read(&ModelRequest::default(), &config::Provider::default())
    }

    /// The text and how it ended: whole, cut everywhere, byte by byte.
    fn check(name: &str, body: &[u8], text: &str, end: &Piece) {
        let read = |chunks: &[&[u8]]| {
            let mut reading = reading();
            let mut pieces: Vec<Piece> = chunks.iter().flat_map(|it| reading.push(it)).collect();
            pieces.extend(reading.finish());
            let said: String = pieces
                .iter()
                .filter_map(|it| match it {
                    Piece::Text(text) => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            (said, pieces.pop())
        };
        let want = (text.to_owned(), Some(end.clone()));
        assert_eq!(read(&[body]), want, "{name}");
        for at in 0..=body.len() {
            let (head, tail) = body.split_at(at);
            assert_eq!(read(&[head, tail]), want, "{name}, cut at {at}");
        }
        assert_eq!(read(&body.chunks(1).collect::<Vec<_>>()), want, "{name}, byte by byte");
    }

    #[test]
    fn the_first_visible_byte_decides() {
        let stop = Piece::End(EndReason::Stop);
        let events = "data: {\"choices\":[{\"delta\":{\"content\":\"hé\"},\"finish_reason\":\"stop\"}]}\n\n";
        let whole = "{\"choices\":[{\"message\":{\"content\":\"hé\"},\"finish_reason\":\"stop\"}]}";
        let cases = [
            ("events", events.to_owned()),
            ("events after blank lines", format!("\r\n\n{events}")),
            ("events after a comment", format!(": ping\n\n{events}")),
            ("events with a byte order mark", format!("\u{feff}{events}")),
            ("one body", whole.to_owned()),
            ("one body after blank lines", format!("\n \r\n{whole}\n")),
            ("one body with a byte order mark", format!("\u{feff}{whole}")),
            ("one body in a list", format!("[{whole}]")),
        ];
        for (name, body) in cases {
            check(name, body.as_bytes(), "hé", &stop);
        }
        let silent = Failure::new(
            FailureKind::Interrupted,
            "the server ended the stream without an answer",
        );
        check("nothing", b"", "", &Piece::Error(silent.clone()));
        check("blank lines", b"\n\n \n", "", &Piece::Error(silent));
        let page = Failure::new(
            FailureKind::Garbled,
            "the server answered with something else than chat completions",
        );
        let page = page.saying("<html>hello</html>");
        check("a page", b"<html>hello</html>", "", &Piece::Error(page));
    }

    #[test]
    fn a_body_without_end_meets_a_limit() {
        let mut reading = reading();
        reading.push(b"{\"a\":\"");
        let chunk = vec![b'x'; 1 << 20];
        let pieces: Vec<Piece> = (0..17).flat_map(|_| reading.push(&chunk)).collect();
        let Some(Piece::Error(failure)) = pieces.first() else {
            panic!("{pieces:?}")
        };
        assert_eq!(failure.kind, FailureKind::Oversized);
        assert_eq!(pieces.len(), 1, "and it is said once");
    }
}
