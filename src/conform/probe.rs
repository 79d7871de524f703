//! Asks a live gateway what it has to answer, and judges the answers.
//!
//! Every request is one that the protocol names, or OpenAI's where the gateway has a façade; none of them asks for tools, and
//! none is repeated.

mod facade;
mod running;

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use serde_json::{Value, json};

use super::{Findings, Judged, Report, RequestFacts, Stream, Whole, compare, head::AnswerHead, object, refusal, rule};
use crate::{
    link::http::{COMPLETIONS, PLAN, below_response},
    net::client::{Client, Request, Response},
    protocol::{Dialect, Mode},
};

/// A whole answer is not larger.
const OBJECT_LIMIT_BYTES: usize = 64 << 20;

/// Longest body of a refused request that is read, in bytes.
const REFUSAL_LIMIT_BYTES: usize = 64 << 10;

/// Time in which bytes after the end must arrive.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// A stream that is quiet for so long may wait for an answer.
const QUIET: Duration = Duration::from_secs(1);

/// No answer takes longer.
const LONGEST: Duration = Duration::from_mins(10);

const STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";

/// Request for the probe.
#[derive(Clone, Debug)]
pub struct Wish {
    pub message: String,
    pub model: String,
    pub mode: Mode,
    /// `None`: both.
    pub dialect: Option<Dialect>,
    /// Token for the gateway, as it is sent in the header.
    pub token: Option<String>,
}

/// Runs all requests, one after the other; `tell` receives the name of each.
pub async fn gateway(client: &Client, wish: &Wish, tell: &mut dyn FnMut(&str)) -> Report {
    let mut probe = Probe {
        client,
        wish,
        report: Report {
            target: client.name().to_owned(),
            ..Report::default()
        },
    };
    let dialects = match wish.dialect {
        Some(dialect) => vec![dialect],
        None => vec![Dialect::Named, Dialect::Data],
    };
    for dialect in dialects {
        let what = match dialect {
            Dialect::Named => "a stream, dialect A requested",
            Dialect::Data => "a stream, dialect B requested",
        };
        tell(what);
        let body = wish.body(wish.mode, true, Some(dialect));
        let asked = Wish::asked(Some(dialect), wish.mode);
        let whole = probe.answer(what, COMPLETIONS, body, STREAM, asked).await;
        probe.again(whole, tell).await;
    }
    tell("one object");
    let body = wish.body(wish.mode, false, None);
    probe
        .answer("one object", COMPLETIONS, body, JSON, Wish::asked(None, wish.mode))
        .await;
    tell("a stream, asked for with `Accept: application/json`");
    let body = wish.body(wish.mode, true, None);
    let what = "a stream, asked for with `Accept: application/json`";
    probe
        .answer(what, COMPLETIONS, body, JSON, Wish::asked(None, wish.mode))
        .await;
    tell("a plan");
    probe.plan().await;
    probe.come_back(tell).await;
    probe.cancel(tell).await;
    probe.facade(tell).await;
    for (what, body) in [
        ("a body that is not JSON", "{\"model\": "),
        ("a body without messages", "{\"model\": \"default\"}"),
        (
            "messages that are not valid",
            "{\"model\": \"default\", \"messages\": []}",
        ),
    ] {
        tell(what);
        probe
            .refused(what, body.to_owned(), &rule::BAD_REQUEST, wish.token.as_deref())
            .await;
    }
    if wish.token.is_some() {
        tell("a wrong token");
        let body = wish.body(wish.mode, false, None).to_string();
        probe
            .refused("a wrong token", body, &rule::NO_TOKEN, Some("conformance-wrong-token"))
            .await;
    }
    probe.report
}

impl Wish {
    fn body(&self, mode: Mode, stream: bool, dialect: Option<Dialect>) -> Value {
        let mut body = json!({
            "model": self.model,
            "mode": mode.as_str(),
            "messages": [{ "role": "user", "content": self.message }],
            "tools": [],
            "stream": stream,
        });
        if let (Some(dialect), Value::Object(members)) = (dialect, &mut body) {
            let word = match dialect {
                Dialect::Named => "named",
                Dialect::Data => "data",
            };
            members.insert("streamOptions".to_owned(), json!({ "dialect": word }));
        }
        body
    }

    fn asked(dialect: Option<Dialect>, mode: Mode) -> RequestFacts {
        RequestFacts {
            dialect,
            mode: Some(mode),
            may_stream: false,
        }
    }
}

struct Probe<'a> {
    client: &'a Client,
    wish: &'a Wish,
    report: Report,
}

impl Probe<'_> {
    async fn open(&self, request: Request, token: Option<&str>) -> Result<(AnswerHead, Response), String> {
        let request = match token {
            Some(token) => request.bearer(token),
            None => request,
        };
        let response = self.client.open(request).await.map_err(|it| told(&it))?;
        let headers = response.headers.iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.as_str().to_owned(), value.into_owned())
        });
        let head = AnswerHead {
            status: response.status.as_u16(),
            headers: headers.collect(),
        };
        Ok((head, response))
    }

    /// A request that has to be answered.
    async fn answer(
        &mut self,
        what: &str,
        path: &str,
        body: Value,
        accept: &'static str,
        asked: RequestFacts,
    ) -> Option<Whole> {
        let wants_stream = body.get("stream") == Some(&Value::Bool(true));
        let request = Request::post(path, body.to_string()).accept(accept);
        let (head, response) = match self.open(request, self.wish.token.as_deref()).await {
            Ok(opened) => opened,
            Err(error) => {
                self.unread(what, &error);
                return None;
            }
        };
        if head.status >= 400 {
            let bytes = response.body.beginning(REFUSAL_LIMIT_BYTES).await;
            let mut judged = refusal(what, head.status, &bytes);
            head.judge(&mut judged.findings);
            let said = format!("the gateway refused with {}", head.status);
            let rule = if path == PLAN {
                &rule::PLAN_PATH
            } else {
                &rule::UNREADABLE
            };
            judged
                .findings
                .add(rule, &said, None, None, &String::from_utf8_lossy(&bytes));
            self.report.answers.push(judged);
            return None;
        }
        let is_stream = head.is_stream();
        let (mut judged, whole) = if is_stream {
            self.stream(what, response, asked).await
        } else {
            match response.body.read(OBJECT_LIMIT_BYTES).await {
                Ok(bytes) => {
                    let (mut judged, whole) = object(what, &bytes, &asked);
                    if is_error(&bytes) {
                        let said = format!("an error with the status {}", head.status);
                        judged.findings.add(&rule::ERROR_STATUS, &said, None, None, "");
                    }
                    (judged, whole)
                }
                Err(error) => {
                    self.unread(what, &told(&error));
                    return None;
                }
            }
        };
        head.judge(&mut judged.findings);
        if is_stream != wants_stream {
            let said = if is_stream {
                "a stream, where one object was asked for"
            } else {
                "one object, where a stream was asked for"
            };
            judged.findings.add(&rule::STREAM_AS_ASKED, said, None, None, "");
        }
        self.report.answers.push(judged);
        Some(whole)
    }

    async fn stream(&self, what: &str, response: Response, asked: RequestFacts) -> (Judged, Whole) {
        let began = Instant::now();
        let mut stream = Stream::new(asked);
        let mut body = response.body;
        let mut cut = None;
        stream.push(&[], Some(0));
        // Questions that were answered already.
        let mut answered: Vec<String> = Vec::new();
        loop {
            let patience = if stream.is_over() { AFTERWARDS } else { QUIET };
            let Ok(next) = tokio::time::timeout(patience, body.next()).await else {
                // What follows the end is judged too, if it comes at once.
                if stream.is_over() {
                    break;
                }
                if began.elapsed() > LONGEST {
                    stream.say(&rule::UNREADABLE, "it has not ended after ten minutes");
                    break;
                }
                let open = stream
                    .question()
                    .map(|(response, document)| (response.to_owned(), document.to_owned()));
                if let Some((response, document)) = open.filter(|it| !answered.contains(&it.1)) {
                    let refused = self.skip(&response, &document).await;
                    answered.push(document);
                    if let Some(said) = refused {
                        stream.say(&rule::LIVE_INPUT, &said);
                        break;
                    }
                }
                continue;
            };
            match next {
                Some(Ok(bytes)) => {
                    let now = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                    stream.push(&bytes, Some(now));
                }
                Some(Err(error)) => {
                    cut = Some(told(&error));
                    break;
                }
                None => break,
            }
        }
        let (mut judged, whole) = stream.finish(what);
        if let Some(error) = cut {
            judged.findings.add(&rule::UNREADABLE, &error, None, None, "");
        }
        (judged, whole)
    }

    /// Skips a question. Returns what was wrong with the reply.
    async fn skip(&self, response: &str, document: &str) -> Option<String> {
        let Some(path) = below_response(response, "input") else {
            return Some("the id of the response cannot stand in a path".to_owned());
        };
        let body = json!({ "documentId": document, "outcome": "skipped", "answers": [] });
        let request = Request::post(path, body.to_string()).accept(JSON);
        match self.open(request, self.wish.token.as_deref()).await {
            Ok((head, _)) if head.status == 202 => None,
            Ok((head, _)) => Some(format!("the answer to {document} was taken with {}", head.status)),
            Err(error) => Some(error),
        }
    }

    /// Compares the stored object of a response with its stream, if the gateway stores it.
    async fn again(&mut self, whole: Option<Whole>, tell: &mut dyn FnMut(&str)) {
        let Some(whole) = whole.filter(|it| it.is_whole) else {
            return;
        };
        let path = whole.id.as_deref().and_then(|id| below_response(id, ""));
        let Some(path) = path.map(|it| it.trim_end_matches('/').to_owned()) else {
            return;
        };
        let what = "the object of that response";
        let request = Request::get(path).accept(JSON);
        let Ok((head, response)) = self.open(request, self.wish.token.as_deref()).await else {
            return;
        };
        // Keeping responses is optional.
        if head.status != 200 {
            return;
        }
        tell(what);
        match response.body.read(OBJECT_LIMIT_BYTES).await {
            Ok(bytes) => {
                let asked = RequestFacts {
                    may_stream: true,
                    ..RequestFacts::default()
                };
                let (mut judged, object) = object(what, &bytes, &asked);
                head.judge(&mut judged.findings);
                compare(&whole, &object, &mut judged.findings);
                self.report.answers.push(judged);
            }
            Err(error) => self.unread(what, &told(&error)),
        }
    }

    async fn plan(&mut self) {
        // The path wins, so the body says something else.
        let body = self.wish.body(Mode::Agent, true, None);
        let whole = self
            .answer("a plan", PLAN, body, STREAM, Wish::asked(None, Mode::Plan))
            .await;
        let mode = whole.and_then(|it| it.mode);
        if let (Some(mode), Some(judged)) = (mode.filter(|it| *it != Mode::Plan), self.report.answers.last_mut()) {
            let said = format!("it was answered in {mode} mode");
            judged.findings.add(&rule::PLAN_PATH, &said, None, None, "");
        }
    }

    /// A request that has to be refused.
    async fn refused(&mut self, what: &str, body: String, rule: &'static rule::Rule, token: Option<&str>) {
        let request = Request::post(COMPLETIONS, body).accept(JSON);
        let (head, response) = match self.open(request, token).await {
            Ok(opened) => opened,
            Err(error) => {
                self.unread(what, &error);
                return;
            }
        };
        let bytes = response.body.beginning(REFUSAL_LIMIT_BYTES).await;
        let mut judged = refusal(what, head.status, &bytes);
        let is_refused = match rule.id {
            "no-token" => matches!(head.status, 401 | 403),
            _ => head.status >= 400,
        };
        if !is_refused {
            judged.findings = Findings::default();
            let said = format!("it was answered with {}", head.status);
            judged
                .findings
                .add(rule, &said, None, None, &String::from_utf8_lossy(&bytes));
        }
        head.judge(&mut judged.findings);
        self.report.answers.push(judged);
    }

    fn unread(&mut self, what: &str, error: &str) {
        let mut findings = Findings::default();
        findings.add(&rule::UNREADABLE, error, None, None, "");
        self.report.answers.push(Judged {
            what: what.to_owned(),
            form: "nothing".to_owned(),
            events: 0,
            documents: 0,
            bytes: 0,
            findings,
        });
    }
}

/// Returns true if a body reports a failure and holds no documents.
fn is_error(bytes: &[u8]) -> bool {
    let body: Option<Value> = serde_json::from_slice(bytes).ok();
    body.is_some_and(|it| it.get("error").is_some_and(|it| !it.is_null()) && it.get("documents").is_none())
}

/// An error with its causes.
fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let next_text = next.to_string();
        if !text.contains(&next_text) {
            text.push_str(": ");
            text.push_str(&next_text);
        }
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::{
        net::{
            client::Peer,
            test_server::{listen, page},
        },
        protocol::Severity,
    };

    const TOKEN: &str = "right";

    fn start(mode: &str) -> String {
        format!(
            r#"{{"id":"chat_1","conversationId":"conv_1","model":"m","mode":"{mode}","created":"2026-03-02T08:15:00Z","status":"streaming"}}"#
        )
    }

    fn events(mode: &str) -> [(&'static str, String); 5] {
        [
            ("response_start", start(mode)),
            (
                "document_start",
                r#"{"id":"doc_001","type":"text","sequence":1,"metadata":{"format":"markdown"}}"#.to_owned(),
            ),
            ("content_delta", r#"{"documentId":"doc_001","delta":"ok"}"#.to_owned()),
            (
                "document_end",
                r#"{"documentId":"doc_001","metadata":{"format":"markdown"}}"#.to_owned(),
            ),
            (
                "done",
                r#"{"usage":{"promptTokens":1,"completionTokens":1,"totalTokens":2},"status":"completed"}"#.to_owned(),
            ),
        ]
    }

    fn stream(mode: &str, is_data: bool) -> String {
        let mut out = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n".to_owned();
        for (name, data) in events(mode) {
            if is_data {
                let members = data.trim_start_matches('{');
                let data = match name {
                    "response_start" => format!("{{\"type\":\"{name}\",\"response\":{data}}}"),
                    "document_start" => format!("{{\"type\":\"{name}\",\"document\":{data}}}"),
                    _ => format!("{{\"type\":\"{name}\",{members}"),
                };
                out.push_str(&format!("data: {data}\n\n"));
            } else {
                out.push_str(&format!("event: {name}\ndata: {data}\n\n"));
            }
        }
        if is_data {
            out.push_str("data: [DONE]\n\n");
        }
        out
    }

    fn with_ids(stream: &str) -> String {
        let mut ids = 0;
        let line = |it: &str| {
            ids += u32::from(it.starts_with("event: "));
            if it.starts_with("event: ") {
                format!("id: {ids}\n{it}")
            } else {
                it.to_owned()
            }
        };
        stream.split_inclusive('\n').map(line).collect()
    }

    fn object(text: &str) -> String {
        let body = format!(
            r#"{{"id":"chat_1","conversationId":"conv_1","model":"m","mode":"ask","created":"2026-03-02T08:15:00Z","status":"completed","documents":[{{"id":"doc_001","type":"text","sequence":1,"content":"{text}","metadata":{{"format":"markdown"}}}}],"usage":{{"promptTokens":1,"completionTokens":1,"totalTokens":2}},"metadata":{{"duration_ms":1,"toolCallCount":0,"turnCount":1}}}}"#
        );
        page("200 OK", JSON, &body)
    }

    fn refused(status: &str, code: &str) -> String {
        let body = format!(r#"{{"error":{{"code":"{code}","message":"no","source":"gateway","details":""}}}}"#);
        page(status, JSON, &body).replacen("\r\n", "\r\nWWW-Authenticate: Bearer\r\n", 1)
    }

    /// A gateway as it should be, but for what the test changes.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Fault {
        None,
        /// Streams whatever is asked for.
        AlwaysStreams,
        /// Tells of errors with the status 200.
        AlwaysFine,
        /// Takes whatever comes.
        AnswersAll,
        /// Knows no token.
        Open,
        /// Plans in another mode.
        NoPlan,
        /// Its object is another one.
        Forgets,
        /// Closes in the middle.
        Cuts,
        /// Asks, and does not listen.
        Deaf,
        /// Offers to be stopped, and is not.
        Stubborn,
        /// Says everything again to those who come back.
        Repeats,
        /// Has no models for OpenAI's clients and answers them.
        HalfFacade,
    }

    fn answer(request: &str, fault: Fault) -> String {
        let (head, body) = request.split_once("\r\n\r\n").expect("a request");
        if !head.contains(&format!("Bearer {TOKEN}")) && fault != Fault::Open {
            return refused("401 Unauthorized", "UNAUTHORIZED");
        }
        if head.contains(" /v1/") && (fault != Fault::HalfFacade || head.contains("/chat/")) {
            return refused("404 Not Found", "STREAM_PROTOCOL");
        }
        if head.contains("/stream ") {
            return with_ids(&stream("ask", false));
        }
        if head.contains("/input ") {
            return refused("404 Not Found", "STREAM_PROTOCOL");
        }
        if head.starts_with("GET") {
            return object(if fault == Fault::Forgets { "another" } else { "ok" });
        }
        let body: Option<Value> = serde_json::from_str(body).ok();
        let messages = body
            .as_ref()
            .and_then(|it| it.get("messages")?.as_array().map(Vec::len));
        if messages.unwrap_or_default() == 0 && fault != Fault::AnswersAll {
            return refused("400 Bad Request", "STREAM_PROTOCOL");
        }
        let body = body.unwrap_or_default();
        if fault == Fault::AlwaysFine {
            return refused("200 OK", "INTERNAL");
        }
        let is_plan = head.starts_with("POST /api/v1/chat/plan");
        if body["stream"] != true && fault != Fault::AlwaysStreams {
            return object("ok");
        }
        let mode = if is_plan && fault != Fault::NoPlan {
            "plan"
        } else {
            "ask"
        };
        let stream = stream(mode, body["streamOptions"]["dialect"] == "data");
        match fault {
            Fault::Stubborn => stream.replace("\"status\"", "\"capabilities\":[\"cancel\"],\"status\""),
            Fault::Repeats => with_ids(&stream),
            Fault::Cuts => {
                let promised = stream.replacen("Connection: close", "Content-Length: 100000", 1);
                promised
                    .split_once("event: done")
                    .map_or(promised.clone(), |it| it.0.to_owned())
            }
            Fault::Deaf => {
                let question = "event: document_start\ndata: {\"id\":\"q\",\"type\":\"clarification\",\"sequence\":1,\
                    \"metadata\":{\"questions\":[{\"id\":\"q1\",\"text\":\"?\",\"options\":[]}]}}\n\n";
                let start = start("ask").replace("\"status\"", "\"capabilities\":[\"live_input\"],\"status\"");
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100000\r\n\r\n";
                format!("{head}event: response_start\ndata: {start}\n\n{question}")
            }
            _ => stream,
        }
    }

    async fn judged(fault: Fault) -> Report {
        let address = listen(move |mut socket| async move {
            let request = socket.request().await;
            let answer = answer(&request, fault);
            let waits = answer.contains("live_input");
            socket.send(answer).await;
            if waits {
                socket.closed().await;
            }
        })
        .await;
        let client = Client::new(Peer::new(address.parse().expect("an address"))).expect("a client");
        let wish = Wish {
            message: "ok?".to_owned(),
            model: "default".to_owned(),
            mode: Mode::Ask,
            dialect: None,
            token: Some(TOKEN.to_owned()),
        };
        gateway(&client, &wish, &mut |_| {}).await
    }

    #[tokio::test]
    async fn a_gateway_as_it_should_be_conforms() {
        let report = judged(Fault::None).await;
        assert_eq!(report.answers.len(), 11, "{}", report.to_text(100));
        for severity in [Severity::Error, Severity::Warning, Severity::Info] {
            assert_eq!(report.count(severity), 0, "{}", report.to_text(100));
        }
    }

    #[tokio::test]
    async fn what_a_gateway_does_wrong_is_seen() {
        for (fault, rule) in [
            (Fault::AlwaysStreams, "stream-as-asked"),
            (Fault::AlwaysFine, "error-status"),
            (Fault::AnswersAll, "bad-request"),
            (Fault::Open, "no-token"),
            (Fault::NoPlan, "plan-path"),
            (Fault::Forgets, "same-object"),
            (Fault::Cuts, "unreadable"),
            (Fault::Deaf, "live-input"),
            (Fault::Stubborn, "cancel"),
            (Fault::Repeats, "come-back"),
            (Fault::HalfFacade, "openai-facade"),
        ] {
            let report = judged(fault).await;
            let found: Vec<_> = report.answers.iter().flat_map(|it| it.findings.rules()).collect();
            assert!(found.contains(&rule), "{rule}: {}", report.to_text(100));
        }
    }

    #[tokio::test]
    async fn nobody_at_the_address_is_an_error_and_no_panic() {
        let client = Client::new(Peer::new(
            crate::net::test_server::nobody().await.parse().expect("an address"),
        ));
        let wish = Wish {
            message: "ok?".to_owned(),
            model: "default".to_owned(),
            mode: Mode::Ask,
            dialect: Some(Dialect::Named),
            token: None,
        };
        let report = gateway(&client.expect("a client"), &wish, &mut |_| {}).await;
        assert!(report.answers.iter().all(|it| it.findings.rules() == ["unreadable"]));
    }
}
