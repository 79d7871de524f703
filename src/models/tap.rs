//! Provider traffic for the inspector: requests without their secrets, and each event of an answer as it came.
//!
//! It costs nothing unless the answer is watched. Readers record the events of a stream themselves ([`event`]), so that nothing is
//! parsed twice; [`Watched`] records every other kind of body, whose bytes pass unchanged, cut after each line.

use super::Piece;
use crate::{
    journal::{Raw, Sent},
    net::{
        client::{HeaderName, Peer, Request, Url},
        sse::Frame,
    },
    text::redact::redact,
};

/// The beginning of a body that is no stream.
const BODY_BYTES: usize = 16 << 10;

/// Values of these are no secrets; whoever sets another header may set one.
const OPEN_HEADERS: &[&str] = &["content-type", "accept", "anthropic-version", "anthropic-beta"];

/// The request as it goes out to `peer`, as it may be shown.
pub fn request(request: &Request, peer: &Peer) -> Piece {
    let mut headers: Vec<(String, Option<String>)> = request
        .headers()
        .map(|(name, value)| {
            let is_open = OPEN_HEADERS.contains(&name);
            (name.to_owned(), value.filter(|_| is_open).map(str::to_owned))
        })
        .collect();
    // Those of the configuration.
    for name in peer.headers.keys().map(HeaderName::as_str) {
        if headers.iter().all(|it| it.0 != name) {
            headers.push((name.to_owned(), None));
        }
    }
    let body = String::from_utf8_lossy(request.body());
    let sent = Sent::post(address(request, &peer.base), headers, &redact(&body));
    Piece::Seen(Box::new(Raw::Request(sent)))
}

/// Keys may stand in an address, too.
fn address(request: &Request, base: &Url) -> String {
    let mut url = request.url(base);
    // It fails for addresses that can have no password.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    redact(url.as_str()).into_owned()
}

/// An answer that is no stream.
pub fn body(text: &str) -> Piece {
    Piece::Seen(Box::new(Raw::body(text)))
}

/// An event of a stream.
pub fn event(frame: &Frame) -> Piece {
    seen_frame(frame.event.as_deref(), &frame.data)
}

/// Cuts the bytes of an answer that is no stream of events after its lines, and says what each was.
pub struct Watched {
    form: BodyKind,
}

enum BodyKind {
    /// Nothing visible came yet.
    Unknown {
        lines: bool,
    },
    /// Their reader records them.
    Events,
    /// A line for each: the rest of one that has not ended.
    Lines(Vec<u8>),
    Whole(Vec<u8>),
}

impl Watched {
    /// `media_type`: what was asked for. A stream of events may turn out to be a whole body.
    pub fn new(media_type: &str) -> Self {
        let lines = media_type != "text/event-stream" && media_type != "application/json";
        Self {
            form: BodyKind::Unknown { lines },
        }
    }

    /// The bytes in parts, each with what it brings to an end.
    pub fn cut<'a>(&mut self, chunk: &'a [u8]) -> Vec<(Vec<Piece>, &'a [u8])> {
        if let BodyKind::Unknown { lines } = self.form {
            let Some(first) = chunk
                .iter()
                .find(|it| !it.is_ascii_whitespace() && !(0xBB..=0xEF).contains(*it))
            else {
                return vec![(Vec::new(), chunk)];
            };
            self.form = match first {
                _ if lines => BodyKind::Lines(Vec::new()),
                b'{' | b'[' | b'<' => BodyKind::Whole(Vec::new()),
                _ => BodyKind::Events,
            };
        }
        match &mut self.form {
            BodyKind::Unknown { .. } | BodyKind::Events => vec![(Vec::new(), chunk)],
            BodyKind::Whole(body) => {
                let room = BODY_BYTES.saturating_sub(body.len());
                body.extend_from_slice(chunk.get(..room).unwrap_or(chunk));
                vec![(Vec::new(), chunk)]
            }
            BodyKind::Lines(rest) => chunk
                .split_inclusive(|it| *it == b'\n')
                .map(|part| {
                    rest.extend_from_slice(part);
                    if !part.ends_with(b"\n") {
                        return (Vec::new(), part);
                    }
                    let line = std::mem::take(rest);
                    let line = String::from_utf8_lossy(&line);
                    let is_blank = line.trim().is_empty();
                    let seen = (!is_blank).then(|| seen_frame(None, line.trim()));
                    (seen.into_iter().collect(), part)
                })
                .collect(),
        }
    }

    /// The rest, once nothing more comes.
    pub fn finish(self) -> Option<Piece> {
        match self.form {
            BodyKind::Unknown { .. } | BodyKind::Events => None,
            BodyKind::Lines(rest) | BodyKind::Whole(rest) if rest.is_empty() => None,
            BodyKind::Lines(rest) => Some(seen_frame(None, &String::from_utf8_lossy(&rest))),
            BodyKind::Whole(text) => Some(body(String::from_utf8_lossy(&text).trim_start())),
        }
    }
}

fn seen_frame(name: Option<&str>, data: &str) -> Piece {
    Piece::Seen(Box::new(Raw::frame(name, data, None)))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::{
        config,
        models::{ModelRequest, openai::Chat, request::Wire as _},
        net::client::Peer,
    };

    /// Returns what `Watched` and a reader record of `text` when it arrives in pieces of `size` bytes; asserts that the bytes
    /// pass unchanged.
    fn told(media_type: &str, text: &str, size: usize) -> Vec<String> {
        let mut watched = Watched::new(media_type);
        let mut reading = Chat::default().read(&ModelRequest::default(), &config::Provider::default());
        reading.watch();
        let (mut told, mut bytes) = (Vec::new(), Vec::new());
        let mut hear = |piece: Piece| {
            if let Piece::Seen(raw) = piece {
                told.push(match *raw {
                    Raw::Frame { text, .. } => text,
                    Raw::Body { text, .. } => format!("whole {text}"),
                    Raw::Request(_) => panic!("nobody asked"),
                });
            }
        };
        for chunk in text.as_bytes().chunks(size) {
            for (seen, part) in watched.cut(chunk) {
                seen.into_iter().for_each(&mut hear);
                reading.push(part).into_iter().for_each(&mut hear);
                bytes.extend_from_slice(part);
            }
        }
        watched.finish().into_iter().for_each(&mut hear);
        reading.finish().into_iter().for_each(&mut hear);
        assert_eq!(String::from_utf8_lossy(&bytes), text);
        told
    }

    #[test]
    fn each_event_is_told_however_the_bytes_are_cut() {
        for size in [1, 2, 7, 1000] {
            let stream = "event: a\r\ndata: 1\r\n\r\n: note\n\ndata: 2\n\ndata: [DONE]";
            assert_eq!(
                told("text/event-stream", stream, size),
                ["event: a\ndata: 1\n", "data: 2\n", "data: [DONE]\n"],
                "{size}"
            );
            assert_eq!(
                told("application/x-ndjson", "{\"a\":1}\n\n{\"b\":\n2}", size),
                ["data: {\"a\":1}\n", "data: {\"b\":\n", "data: 2}\n"],
                "{size}"
            );
            assert_eq!(
                told("text/event-stream", " {\"error\":\n{}}", size).concat().trim(),
                "whole {\"error\":\n{}}",
                "{size}"
            );
        }
        assert!(told("text/event-stream", " \n", 1).is_empty());
    }

    #[test]
    fn no_secret_is_in_a_request_that_is_shown() {
        let url = "https://me:password1234@models.example/v1?x=1";
        let mut peer = Peer::new(url.parse().expect("an address"));
        peer.headers.insert("x-team", "secret-team".parse().expect("a value"));
        let asked = Request::post("chat/completions", "{\"a\":\"it's\"}")
            .bearer("sk-secret")
            .header("x-api-key", "secret-key")
            .header("anthropic-version", "2023-06-01");
        let Piece::Seen(raw) = request(&asked, &peer) else {
            panic!("it is seen")
        };
        let Raw::Request(sent) = *raw else { panic!("a request") };
        let curl = sent.to_curl().expect("it is small");
        assert!(!curl.contains("secret") && !curl.contains("password"), "{curl}");
        for wanted in [
            "'https://models.example/v1/chat/completions?x=1'",
            "-H \"Authorization: Bearer $SHEAF_TOKEN\"",
            "-H 'x-api-key: '\"$X_API_KEY\"",
            "-H 'anthropic-version: 2023-06-01'",
            "-H 'x-team: '\"$X_TEAM\"",
            r#"--data-raw '{"a":"it'\''s"}'"#,
        ] {
            assert!(curl.contains(wanted), "{wanted}: {curl}");
        }
    }
}
