//! From the bytes of an answer's body to pieces, whatever its media type says.
//!
//! Proxies label streams as JSON and JSON as streams, so the first visible byte decides: `{`, `[` or `<` starts one
//! body that is read to its end, everything else is a stream of events.

use super::{Failure, FailureKind, Piece};
use crate::net::sse::{Frame, FrameError, Frames};

/// Reads the body of one answer. The end or an error comes once, and nothing after it.
pub trait Read: Send {
    fn push(&mut self, chunk: &[u8]) -> Vec<Piece>;

    /// The body ended.
    fn finish(self: Box<Self>) -> Vec<Piece>;

    /// The body cannot be read further.
    fn cut(self: Box<Self>, failure: Failure) -> Vec<Piece>;

    /// The answer is whole: at most a count of tokens is missing.
    fn is_finished(&self) -> bool;
}

/// From the frames of a stream of events, or from one body, to pieces.
pub trait Decode: Send {
    fn push(&mut self, frame: &Frame) -> Vec<Piece>;

    /// The body ended. That alone is no end of an answer.
    fn finish(&mut self) -> Vec<Piece>;

    /// The body cannot be read further. An answer that was whole already ends well all the same.
    fn cut(&mut self, failure: Failure) -> Vec<Piece>;

    /// The answer is whole: at most a count of tokens is missing.
    fn is_finished(&self) -> bool;

    /// An answer that was not streamed: one JSON body, an error or a whole answer.
    fn whole(self, body: &str) -> Vec<Piece>;
}

/// A body that is no stream: a whole answer, an error, a page of HTML.
pub const WHOLE_LIMIT_BYTES: usize = 16 << 20;

/// White space in front of anything visible.
const BLANK_LIMIT_BYTES: usize = 64 << 10;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The state between two chunks.
pub struct Reading<D> {
    decoder: D,
    form: Form,
}

enum Form {
    /// Nothing visible came yet.
    Unknown(Vec<u8>),
    Events(Box<Frames>),
    Whole(Vec<u8>),
}

impl<D: Decode> Reading<D> {
    pub fn new(decoder: D) -> Self {
        Self {
            decoder,
            form: Form::Unknown(Vec::new()),
        }
    }
}

impl<D: Decode> Read for Reading<D> {
    fn push(&mut self, chunk: &[u8]) -> Vec<Piece> {
        match &mut self.form {
            Form::Unknown(begun) => {
                begun.extend_from_slice(chunk);
                let begun = std::mem::take(begun);
                match first_visible(&begun) {
                    None if begun.len() <= BLANK_LIMIT_BYTES => {
                        self.form = Form::Unknown(begun);
                        Vec::new()
                    }
                    Some(b'{' | b'[' | b'<') => {
                        self.form = Form::Whole(Vec::new());
                        self.push(&begun)
                    }
                    Some(_) | None => {
                        self.form = Form::Events(Box::default());
                        self.push(&begun)
                    }
                }
            }
            Form::Events(frames) => {
                let mut pieces = Vec::new();
                for frame in frames.push(chunk) {
                    pieces.extend(match frame {
                        Ok(frame) => self.decoder.push(&frame),
                        Err(error) => self.decoder.cut(oversized(error)),
                    });
                }
                pieces
            }
            Form::Whole(body) if body.len() + chunk.len() > WHOLE_LIMIT_BYTES => {
                body.clear();
                let message = format!(
                    "the answer is no stream and larger than {} MiB",
                    WHOLE_LIMIT_BYTES >> 20
                );
                self.decoder.cut(Failure::new(FailureKind::Oversized, message))
            }
            Form::Whole(body) => {
                body.extend_from_slice(chunk);
                Vec::new()
            }
        }
    }

    fn finish(mut self: Box<Self>) -> Vec<Piece> {
        match self.form {
            Form::Unknown(_) => self.decoder.finish(),
            Form::Events(mut frames) => {
                let mut pieces = match frames.finish() {
                    Some(Ok(frame)) => self.decoder.push(&frame),
                    Some(Err(error)) => self.decoder.cut(oversized(error)),
                    None => Vec::new(),
                };
                pieces.extend(self.decoder.finish());
                pieces
            }
            Form::Whole(body) => self.decoder.whole(&String::from_utf8_lossy(&body)),
        }
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
