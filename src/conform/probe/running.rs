//! A response while it runs: who comes back to it, and who stops it.

use std::time::Duration;

use futures::StreamExt as _;
use serde_json::Value;
use tokio::time::timeout;

use super::{JSON, Judged, Probe, REFUSAL_LIMIT_BYTES, STREAM};
use crate::{
    conform::{Findings, Rule, rule},
    link::http::{COMPLETIONS, below_response},
    net::{
        client::{Body, Request, Response},
        sse::{Frame, Frames},
    },
    protocol::Dialect,
};

/// A request whose answer takes long enough to be stopped.
const LONG_MESSAGE: &str = "Count from 1 to 300, one number on each line, and nothing else.";

/// Silence after which a response is left alone; it may wait for an answer.
const QUIET: Duration = Duration::from_secs(2);

/// Time for a stopped answer to end.
const STOPPING: Duration = Duration::from_secs(10);

/// A stream that was read for comparison; it is not judged.
struct Heard {
    body: Body,
    frames: Frames,
    said: Vec<Frame>,
    bytes: u64,
    is_over: bool,
}

impl Heard {
    fn new(response: Response) -> Self {
        Self {
            body: response.body,
            frames: Frames::new(),
            said: Vec::new(),
            bytes: 0,
            is_over: false,
        }
    }

    /// Reads until `enough`, the end, or a silence of `patience`.
    async fn until(&mut self, patience: Duration, enough: impl Fn(&[Frame]) -> bool) {
        while !self.is_over && !enough(&self.said) {
            match timeout(patience, self.body.next()).await {
                Ok(Some(Ok(chunk))) => {
                    self.bytes += chunk.len() as u64;
                    self.said.extend(self.frames.push(&chunk).into_iter().flatten());
                }
                Ok(Some(Err(_)) | None) => {
                    self.said.extend(self.frames.finish().into_iter().flatten());
                    self.is_over = true;
                }
                Err(_) => return,
            }
        }
    }

    fn judged(&self, what: &str, findings: Findings) -> Judged {
        Judged {
            what: what.to_owned(),
            form: "a stream".to_owned(),
            events: self.said.len(),
            documents: 0,
            bytes: self.bytes,
            findings,
        }
    }
}

/// Returns the index in `found` of the first event that `wanted` does not explain; `None` where the streams say the same.
/// A stream that is resumed may lack deltas of documents that have ended by then: their end has the whole content.
fn first_difference(found: &[Frame], wanted: &[Frame]) -> Option<usize> {
    let is_same = |one: &Frame, other: &Frame| one.event == other.event && one.data == other.data;
    let mut at = 0;
    for (index, event) in wanted.iter().enumerate() {
        if found.get(at).is_some_and(|it| is_same(it, event)) {
            at += 1;
        } else if !is_replaced(event, wanted.get(index + 1..).unwrap_or_default()) {
            return Some(at);
        }
    }
    (at < found.len()).then_some(at)
}

/// Returns true for a delta whose document ends in one of the `later` events.
fn is_replaced(event: &Frame, later: &[Frame]) -> bool {
    let document = |it: &Frame| {
        let data: Value = serde_json::from_str(&it.data).ok()?;
        Some(data.get("documentId")?.as_str()?.to_owned())
    };
    let is_delta = matches!(
        event.event.as_deref(),
        Some("content_delta" | "metadata_delta" | "tool_call_arguments")
    );
    let Some(id) = document(event).filter(|_| is_delta) else {
        return false;
    };
    let ends = |it: &Frame| it.event.as_deref() == Some("document_end") && document(it).as_ref() == Some(&id);
    later.iter().any(ends)
}

/// Returns the members of the response at the start of a stream.
fn start(heard: &[Frame]) -> Option<Value> {
    let first = heard.iter().find(|it| it.event.as_deref() == Some("response_start"))?;
    serde_json::from_str(&first.data).ok()
}

fn id(start: &Value) -> Option<&str> {
    start.get("id").and_then(Value::as_str)
}

fn can(start: &Value, what: &str) -> bool {
    let capabilities = start.get("capabilities").and_then(Value::as_array);
    capabilities.is_some_and(|it| it.iter().any(|it| it == what))
}

impl Probe<'_> {
    async fn begin(&mut self, what: &str, message: &str) -> Option<Heard> {
        let mut body = self.wish.body(self.wish.mode, true, Some(Dialect::Named));
        if let Some(content) = body.pointer_mut("/messages/0/content") {
            *content = message.into();
        }
        let request = Request::post(COMPLETIONS, body.to_string()).accept(STREAM);
        match self.open(request, self.wish.token.as_deref()).await {
            // What is no stream has been judged before.
            Ok((head, response)) if head.is_stream() && head.status == 200 => Some(Heard::new(response)),
            Ok(_) => None,
            Err(error) => {
                self.unread(what, &error);
                None
            }
        }
    }

    /// Reads a stream twice: the second reader connects when the first has received a part.
    pub(super) async fn come_back(&mut self, tell: &mut dyn FnMut(&str)) {
        let what = "a stream, taken up with `Last-Event-ID`";
        tell(what);
        let message = self.wish.message.clone();
        let Some(mut first) = self.begin(what, &message).await else {
            return;
        };
        let has_part = |heard: &[Frame]| heard.iter().filter(|it| it.id.is_some()).count() >= 3;
        first.until(QUIET, has_part).await;
        let begun = start(&first.said);
        let Some(path) = begun.as_ref().and_then(id).and_then(|it| below_response(it, "stream")) else {
            return;
        };
        // Ids are sent where one can come back, and only there.
        let Some(had) = first.said.iter().rev().find_map(|it| it.id.clone()) else {
            return;
        };
        let request = Request::get(path).accept(STREAM).header("last-event-id", &had);
        let mut findings = Findings::default();
        let mut say = |said: &str, bytes: &str| findings.add(&rule::COME_BACK, said, None, None, bytes);
        match self.open(request, self.wish.token.as_deref()).await {
            Ok((head, response)) if head.status == 200 && head.is_stream() => {
                let mut second = Heard::new(response);
                first.until(QUIET, |_| false).await;
                second.until(QUIET, |_| false).await;
                let behind = first.said.iter().rposition(|it| it.id.as_deref() == Some(&had));
                let wanted = first.said.get(behind.map_or(0, |it| it + 1)..).unwrap_or_default();
                if let Some(at) = first_difference(&second.said, wanted) {
                    let said = format!(
                        "after {had}, the second reader got {} events and the first {}; event {} differs",
                        second.said.len(),
                        wanted.len(),
                        at + 1
                    );
                    say(&said, second.said.get(at).map_or("", |it| it.data.as_str()));
                }
                let judged = second.judged(what, findings);
                self.report.answers.push(judged);
            }
            // It may have ended, and then nobody need keep it.
            Ok((head, _)) if head.status == 410 => {}
            Ok((head, response)) => {
                let bytes = response.body.beginning(REFUSAL_LIMIT_BYTES).await;
                let said = format!(
                    "ids are sent, and who comes back with {had} is refused with {}",
                    head.status
                );
                say(&said, &String::from_utf8_lossy(&bytes));
                let judged = first.judged(what, findings);
                self.report.answers.push(judged);
            }
            Err(error) => self.unread(what, &error),
        }
    }

    /// A response that is stopped, twice.
    pub(super) async fn cancel(&mut self, tell: &mut dyn FnMut(&str)) {
        let what = "a stream that is stopped";
        tell(what);
        let Some(mut stream) = self.begin(what, LONG_MESSAGE).await else {
            return;
        };
        stream.until(QUIET, |it| start(it).is_some()).await;
        let begun = start(&stream.said).unwrap_or_default();
        let Some(path) = id(&begun).and_then(|it| below_response(it, "cancel")) else {
            return;
        };
        let is_offered = can(&begun, "cancel");
        let mut findings = Findings::default();
        let mut say = |rule: &'static Rule, said: &str| findings.add(rule, said, None, None, "");
        for time in ["", " a second time"] {
            let request = Request::post(&*path, "{}").accept(JSON);
            match self.open(request, self.wish.token.as_deref()).await {
                Ok((head, _)) if (200..300).contains(&head.status) => {}
                // What was never offered need not be there.
                Ok(_) if !is_offered => return,
                // What has ended may be forgotten.
                Ok((head, _)) if head.status == 410 => {}
                Ok((head, _)) => say(&rule::CANCEL, &format!("it was refused{time} with {}", head.status)),
                Err(error) => return self.unread(what, &error),
            }
        }
        stream.until(STOPPING, |_| false).await;
        let done = stream.said.iter().find(|it| it.event.as_deref() == Some("done"));
        match done.and_then(|it| serde_json::from_str::<Value>(&it.data).ok()) {
            None => say(&rule::CANCEL, "the stream has no `done` afterwards"),
            Some(done) => {
                let status = done.get("status").and_then(Value::as_str).unwrap_or("completed");
                let reason = done.pointer("/metadata/finishReason").and_then(Value::as_str);
                if reason == Some("cancelled") && status != "completed" {
                    say(&rule::CANCEL, &format!("a wanted stop has the status {status}"));
                }
            }
        }
        let judged = stream.judged(what, findings);
        self.report.answers.push(judged);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(events: &[(&str, &str)]) -> Vec<Frame> {
        let frame = |(event, data): &(&str, &str)| Frame {
            event: Some((*event).to_owned()),
            data: (*data).to_owned(),
            id: None,
        };
        events.iter().map(frame).collect()
    }

    #[test]
    fn a_resumed_stream_lacks_only_deltas_of_documents_that_have_ended() {
        let start = ("document_start", r#"{"id":"a","type":"text"}"#);
        let delta = ("content_delta", r#"{"documentId":"a","delta":"x"}"#);
        let other = ("content_delta", r#"{"documentId":"b","delta":"x"}"#);
        let end = ("document_end", r#"{"documentId":"a","finalContent":"x"}"#);
        let done = ("done", "{}");
        for (found, wanted, differs) in [
            (&[start, delta, end, done][..], &[start, delta, end, done][..], None),
            (&[start, end, done], &[start, delta, delta, end, done], None),
            (&[end, done], &[delta, end, done], None),
            // A document that is still open, or one that was never begun, loses nothing.
            (&[start, done], &[start, delta, done], Some(1)),
            (&[end, done], &[other, end, done], Some(0)),
            // What is not a delta is never left out, nothing comes twice, and nothing is added.
            (&[delta, end], &[start, delta, end], Some(0)),
            (&[delta, end], &[delta, end, done], Some(2)),
            (&[delta, delta, end], &[delta, end], Some(1)),
            (&[delta, end, done, done], &[delta, end, done], Some(3)),
        ] {
            assert_eq!(
                first_difference(&frames(found), &frames(wanted)),
                differs,
                "{found:?} {wanted:?}"
            );
        }
    }
}
