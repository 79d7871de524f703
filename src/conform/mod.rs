//! Judges what a documents gateway sends: the bytes as they are, not what the tolerant decoder makes of them.
//!
//! ```text
//! bytes ─► frame::Scanner ─► stream: dialects, members, order ─► document: members of each type ─► Findings
//! object ─────────────────► response ──────────────────────────►─┘
//! ```
//!
//! Nothing here is shared with the decoder but words and limits, so that a mistake in one is seen by the other. Every
//! complaint names a rule of the one table, the bytes and the document. [`probe`] asks a live gateway; the rest is pure.

mod document;
mod frame;
pub mod head;
mod json;
pub mod probe;
pub mod report;
mod response;
pub mod rule;
mod stream;
#[cfg(test)]
mod tests;

pub use self::{
    document::ALIASES,
    report::{Findings, Judged, Report},
    response::{compare, object, refusal},
    rule::{RULES, Rule},
    stream::Stream,
};
use self::{document::Seen, head::AnswerHead};
use crate::{
    journal::file::read_lines,
    protocol::{Dialect, Mode},
};

/// Facts about the request whose answer is judged.
#[derive(Clone, Debug, Default)]
pub struct RequestFacts {
    /// Dialect that was requested.
    pub dialect: Option<Dialect>,
    pub mode: Option<Mode>,
    /// True if the response may still be running; its object may then have the status `streaming`.
    pub may_stream: bool,
}

/// Content of an entire answer, for comparing it with another one of the same response.
#[derive(Debug, Default)]
pub struct Whole {
    pub id: Option<String>,
    pub mode: Option<Mode>,
    documents: Vec<Seen>,
    /// True if nothing was dropped and the answer reached its end.
    pub is_whole: bool,
}

/// Why a file is nothing that could be judged.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NotJudged {
    #[error("{0} is a session of sheaf's, which never travels\n  sheaf serve --replay {0}  sends it; judge that")]
    Session(String),
    #[error("{0} is empty")]
    Empty(String),
}

/// Judges a recording: an event stream or an object, with its HTTP head before it if `curl -i` wrote it.
pub fn recording(name: &str, bytes: &[u8]) -> Result<Judged, NotJudged> {
    let asked = RequestFacts::default();
    let Some((head, at)) = AnswerHead::read(bytes) else {
        return body(name, bytes, &asked);
    };
    let rest = bytes.get(at..).unwrap_or_default();
    let mut judged = if head.status >= 400 {
        refusal(name, head.status, rest)
    } else if head.media_type() == "application/json" {
        object(name, rest, &asked).0
    } else {
        body(name, rest, &asked)?
    };
    head.judge(&mut judged.findings);
    Ok(judged)
}

fn body(name: &str, bytes: &[u8], asked: &RequestFacts) -> Result<Judged, NotJudged> {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    if text.is_empty() {
        return Err(NotJudged::Empty(name.to_owned()));
    }
    if text.starts_with(b"{") || text.starts_with(b"[") || text.starts_with(b"<") {
        let is_one = serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok();
        if !is_one && read_lines(name, text).is_some_and(|it| !it.entries.is_empty()) {
            return Err(NotJudged::Session(name.to_owned()));
        }
        return Ok(object(name, bytes, asked).0);
    }
    let mut stream = Stream::new(asked.clone());
    stream.push(bytes, None);
    Ok(stream.finish(name).0)
}
