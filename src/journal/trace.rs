//! Raw frames and the events made from them: a ring for the inspector.
//!
//! A log keeps what is settled; the trace keeps what happened last, deltas included, and forgets the oldest when it
//! is full. It costs nothing until [`Log::watch`](super::Log::watch) starts one.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::run::size_of_piece;
use crate::protocol::{Entry, Turn};

/// Maximum number of steps.
const MOST_STEPS: usize = 1_000;

/// Nor more than this.
const MOST_BYTES: usize = 1 << 20;

/// Bytes of a frame that are stored; the rest is only counted.
const RAW_BYTES: usize = 16 << 10;

/// A request that is larger cannot be repeated from here.
const REQUEST_BYTES: usize = 1 << 20;

/// Cost of a step beside its text, in bytes.
const STEP_BYTES: usize = 256;

/// Events stored per frame.
const MOST_MADE: usize = 64;

/// A received frame or local action, and the entries made from it.
#[derive(Clone, Debug)]
pub struct TraceStep {
    /// Counted from 1 since the trace began.
    pub number: u64,
    /// Milliseconds since the Unix epoch.
    pub at_ms: u64,
    pub turn: Turn,
    /// `None` if nothing was received: the event was made here.
    pub raw: Option<Raw>,
    pub made: Vec<Arc<Entry>>,
    weight: usize,
}

/// Data that was sent or received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Raw {
    /// A request that went out.
    Request(Sent),
    /// An event of a stream, as its lines were.
    Frame {
        /// Its `event:` field.
        name: Option<String>,
        text: String,
        /// Size of the entire frame in bytes.
        bytes: usize,
    },
    /// A complete answer.
    Body { text: String, bytes: usize },
}

/// A request, with everything that it takes to send it again but the secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub method: &'static str,
    pub url: String,
    /// Values of headers that may be secret are not here.
    pub headers: Vec<(String, Option<String>)>,
    /// `None` if it was too large to store.
    pub body: Option<String>,
    pub bytes: usize,
}

impl Sent {
    pub fn post(url: String, headers: Vec<(String, Option<String>)>, body: &str) -> Self {
        Self {
            method: "POST",
            url,
            headers,
            bytes: body.len(),
            body: (body.len() <= REQUEST_BYTES).then(|| body.to_owned()),
        }
    }

    /// The command that sends it again. Secrets are variables, named after their headers.
    pub fn to_curl(&self) -> Option<String> {
        let body = self.body.as_ref()?;
        let mut text = format!("curl -sS -N -X {} {}", self.method, quoted(&self.url));
        for (name, value) in &self.headers {
            match value {
                Some(value) => text.push_str(&format!(" \\\n  -H {}", quoted(&format!("{name}: {value}")))),
                None if name.eq_ignore_ascii_case("authorization") => {
                    text.push_str(" \\\n  -H \"Authorization: Bearer $SHEAF_TOKEN\"");
                }
                None => {
                    let plain = |c: char| {
                        if c.is_ascii_alphanumeric() {
                            c.to_ascii_uppercase()
                        } else {
                            '_'
                        }
                    };
                    let variable: String = name.chars().map(plain).collect();
                    text.push_str(&format!(" \\\n  -H {}\"${variable}\"", quoted(&format!("{name}: "))));
                }
            }
        }
        text.push_str(&format!(" \\\n  --data-raw {}\n", quoted(body)));
        Some(text)
    }
}

/// As one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

impl Raw {
    pub fn frame(name: Option<&str>, data: &str, id: Option<&str>) -> Self {
        let names = [name, id].into_iter().flatten();
        let room = data.len() + names.map(|it| it.len() + 8).sum::<usize>() + 8;
        let mut text = String::with_capacity(room.min(RAW_BYTES + 64));
        let mut line = |field: &str, value: &str| {
            let room = RAW_BYTES.saturating_sub(text.len());
            let cut = value.get(..value.floor_char_boundary(room)).unwrap_or_default();
            text.push_str(field);
            text.push_str(": ");
            text.push_str(cut);
            text.push('\n');
        };
        if let Some(id) = id {
            line("id", id);
        }
        if let Some(name) = name {
            line("event", name);
        }
        for part in data.split('\n').take(100) {
            line("data", part);
        }
        Self::Frame {
            name: name.map(str::to_owned),
            text,
            bytes: data.len(),
        }
    }

    pub fn body(text: &str) -> Self {
        Self::Body {
            text: text
                .get(..text.floor_char_boundary(RAW_BYTES))
                .unwrap_or_default()
                .to_owned(),
            bytes: text.len(),
        }
    }

    fn weight(&self) -> usize {
        match self {
            Self::Request(it) => it.url.len() + it.body.as_ref().map_or(0, String::len),
            Self::Frame { text, .. } | Self::Body { text, .. } => text.len(),
        }
    }
}

/// The last steps.
#[derive(Debug, Default)]
pub struct Trace(Mutex<Ring>);

#[derive(Debug, Default)]
pub struct Ring {
    pub steps: VecDeque<TraceStep>,
    bytes: usize,
    count: u64,
    /// True if new entries belong to the last step.
    is_open: bool,
    /// The last request, however long ago it was.
    request: Option<(u64, Sent)>,
}

impl Trace {
    /// Adds a received frame; entries from now on belong to it.
    pub fn came(&self, at_ms: u64, turn: Turn, raw: Raw) {
        let mut ring = self.lock();
        ring.push(at_ms, turn, Some(raw));
        ring.is_open = true;
    }

    /// Ends the step: entries from now on have no frame.
    pub fn over(&self) {
        self.lock().is_open = false;
    }

    pub(super) fn made(&self, entry: &Arc<Entry>) {
        let mut ring = self.lock();
        if !ring.is_open {
            ring.push(entry.at_ms, entry.turn, None);
        }
        let weight = size_of_piece(entry);
        if let Some(step) = ring.steps.back_mut().filter(|it| it.made.len() < MOST_MADE) {
            step.made.push(Arc::clone(entry));
            step.weight += weight;
            ring.bytes += weight;
        }
        ring.trim();
    }

    /// Reads the ring, oldest first.
    pub fn read<R>(&self, look: impl FnOnce(&Ring) -> R) -> R {
        look(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    /// Returns the number of steps so far, forgotten ones included.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The number of the oldest step that is still there.
    pub fn first(&self) -> u64 {
        self.steps.front().map_or(self.count, |it| it.number)
    }

    pub fn get(&self, number: u64) -> Option<&TraceStep> {
        let at = number.checked_sub(self.first())?;
        self.steps.get(usize::try_from(at).ok()?)
    }

    /// The request that a step is part of the answer to.
    pub fn request(&self, number: u64) -> Option<&Sent> {
        let before = self.steps.iter().rev().skip_while(|it| it.number > number);
        let found = before.filter_map(|it| match &it.raw {
            Some(Raw::Request(sent)) => Some(sent),
            Some(Raw::Frame { .. } | Raw::Body { .. }) | None => None,
        });
        let kept = self.request.as_ref().filter(|it| it.0 <= number).map(|it| &it.1);
        found.into_iter().next().or(kept)
    }

    fn push(&mut self, at_ms: u64, turn: Turn, raw: Option<Raw>) {
        self.count += 1;
        if let Some(Raw::Request(sent)) = &raw {
            self.request = Some((self.count, sent.clone()));
        }
        let weight = STEP_BYTES + raw.as_ref().map_or(0, Raw::weight);
        self.bytes += weight;
        self.steps.push_back(TraceStep {
            number: self.count,
            at_ms,
            turn,
            raw,
            made: Vec::new(),
            weight,
        });
        self.trim();
    }

    fn trim(&mut self) {
        while self.steps.len() > 1 && (self.steps.len() > MOST_STEPS || self.bytes > MOST_BYTES) {
            if let Some(step) = self.steps.pop_front() {
                self.bytes -= step.weight;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::{
        journal::Log,
        protocol::{Event, Message},
    };

    fn thought(text: &str) -> Event {
        Event::ThinkingDelta { delta: text.to_owned() }
    }

    fn shape(trace: &Trace) -> Vec<(u64, bool, usize)> {
        trace.read(|ring| {
            ring.steps
                .iter()
                .map(|it| (it.number, it.raw.is_some(), it.made.len()))
                .collect()
        })
    }

    #[test]
    fn what_is_made_of_a_frame_stands_beside_it() {
        let log = Log::new();
        log.append(1, thought("nobody looks"));
        let trace = log.watch();
        log.append(2, Event::UserMessage(Message::user("x")));
        trace.came(3, log.turn(), Raw::frame(Some("thinking_delta"), "{}", None));
        log.append(3, thought("a"));
        log.append(3, thought("b"));
        trace.came(4, log.turn(), Raw::frame(None, "", Some("7")));
        trace.over();
        log.append(5, thought("c"));
        assert_eq!(
            shape(&trace),
            [(1, false, 1), (2, true, 2), (3, true, 0), (4, false, 1)]
        );
        assert!(Arc::ptr_eq(&trace, &log.watch()), "there is one trace");
        trace.read(|ring| {
            let Some(Raw::Frame { text, .. }) = &ring.get(3).expect("a step").raw else {
                panic!("a frame")
            };
            assert_eq!(text, "id: 7\ndata: \n");
        });
    }

    #[test]
    fn a_flood_costs_no_more_than_its_share() {
        let trace = Trace::default();
        let long = "x".repeat(40 << 10);
        let log = Log::new();
        trace.came(
            0,
            log.turn(),
            Raw::Request(Sent::post("http://a/b".to_owned(), Vec::new(), "{}")),
        );
        for at in 0..20_000 {
            trace.came(
                at,
                log.turn(),
                Raw::frame(None, if at % 50 == 0 { &long } else { "{}" }, None),
            );
        }
        trace.read(|ring| {
            assert!(ring.bytes <= MOST_BYTES && ring.steps.len() <= MOST_STEPS);
            assert_eq!(ring.bytes, ring.steps.iter().map(|it| it.weight).sum::<usize>());
            assert_eq!(ring.count(), 20_001);
            assert_eq!(ring.get(ring.first()).map(|it| it.number), Some(ring.first()));
            assert!(ring.get(1).is_none() && ring.get(ring.count() + 1).is_none());
            assert_eq!(ring.request(ring.count()).map(|it| it.url.as_str()), Some("http://a/b"));
        });
    }

    #[test]
    fn requests_are_stored_with_their_bodies_up_to_the_limit() {
        let trace = Trace::default();
        let log = Log::new();
        let (url, body) = ("http://a/b", "x".repeat(100 << 10));
        for at in 0..20 {
            let sent = Sent::post(url.to_owned(), Vec::new(), &body);
            trace.came(at, log.turn(), Raw::Request(sent));
        }
        trace.read(|ring| {
            let stored: usize = ring
                .steps
                .iter()
                .map(|it| match &it.raw {
                    Some(Raw::Request(sent)) => sent.url.len() + sent.body.as_ref().map_or(0, String::len),
                    other => panic!("{other:?}"),
                })
                .sum();
            assert!(stored <= MOST_BYTES && stored > MOST_BYTES - 2 * body.len(), "{stored}");
        });
    }

    #[test]
    fn a_request_is_repeated_by_a_command_without_its_secrets() {
        let headers = vec![
            ("Content-Type".to_owned(), Some("application/json".to_owned())),
            ("Authorization".to_owned(), None),
            ("X-Api-Key".to_owned(), None),
        ];
        let sent = Sent::post("http://127.0.0.1:1/api".to_owned(), headers, "{\"a\":\"it's\"}");
        assert_eq!(
            sent.to_curl().expect("it is small"),
            "curl -sS -N -X POST 'http://127.0.0.1:1/api' \\\n  -H 'Content-Type: application/json' \\\n  \
             -H \"Authorization: Bearer $SHEAF_TOKEN\" \\\n  -H 'X-Api-Key: '\"$X_API_KEY\" \\\n  \
             --data-raw '{\"a\":\"it'\\''s\"}'\n"
        );
        assert_eq!(
            Sent::post(String::new(), Vec::new(), &"x".repeat(2 << 20)).to_curl(),
            None
        );
    }
}
