//! The façade for OpenAI's clients, where there is one: what they read has to be there, in their words.

use serde_json::{Value, json};

use super::{JSON, Judged, OBJECT_LIMIT_BYTES, Probe, REFUSAL_LIMIT_BYTES, STREAM};
use crate::{
    conform::{Findings, head::AnswerHead, rule},
    net::{client::Request, sse::Frames},
};

const MODELS: &str = "v1/models";
const CHAT: &str = "v1/chat/completions";

impl Probe<'_> {
    /// Probes the OpenAI façade. A gateway without one is not faulted.
    pub(super) async fn facade(&mut self, tell: &mut dyn FnMut(&str)) {
        let Some((head, bytes)) = self.fetch("OpenAI's models", Request::get(MODELS).accept(JSON)).await else {
            return;
        };
        if head.status != 200 {
            return;
        }
        tell("OpenAI's models");
        let list = read(&bytes);
        let data = list.get("data").and_then(Value::as_array);
        let names = data.map(|it| it.iter().filter_map(|it| it.get("id")?.as_str()).count());
        let is_list = list.get("object").and_then(Value::as_str) == Some("list");
        let complaint = match names {
            Some(names) if is_list && Some(names) == data.map(Vec::len) => None,
            Some(_) | None => Some("it is no `list` of models with an `id` each"),
        };
        self.say("OpenAI's models", &bytes, 0, complaint.into_iter().map(str::to_owned));

        tell("OpenAI's answer");
        let request = Request::post(CHAT, self.question(false)).accept(JSON);
        if let Some((head, bytes)) = self.fetch("OpenAI's answer", request).await {
            let complaints = refused(&head, &bytes).map_or_else(|| answer(&read(&bytes)), |it| vec![it]);
            self.say("OpenAI's answer", &bytes, 0, complaints);
        }
        tell("OpenAI's stream");
        let request = Request::post(CHAT, self.question(true)).accept(STREAM);
        if let Some((head, bytes)) = self.fetch("OpenAI's stream", request).await {
            let mut frames = Frames::new();
            let mut heard: Vec<String> = frames.push(&bytes).into_iter().flatten().map(|it| it.data).collect();
            heard.extend(frames.finish().into_iter().flatten().map(|it| it.data));
            let complaints = refused(&head, &bytes).map_or_else(|| stream(&heard), |it| vec![it]);
            self.say("OpenAI's stream", &bytes, heard.len(), complaints);
        }
        tell("OpenAI's answer to nothing");
        let request = Request::post(CHAT, json!({ "model": self.wish.model }).to_string()).accept(JSON);
        if let Some((head, bytes)) = self.fetch("OpenAI's answer to nothing", request).await {
            let message = read(&bytes).pointer("/error/message").is_some_and(Value::is_string);
            let complaint = match head.status {
                400..500 if message => None,
                400..500 => Some("the refusal has no `error.message`".to_owned()),
                status => Some(format!("a request without messages was answered with {status}")),
            };
            self.say("OpenAI's answer to nothing", &bytes, 0, complaint);
        }
    }

    fn question(&self, is_stream: bool) -> String {
        let mut body = json!({
            "model": self.wish.model,
            "messages": [{ "role": "user", "content": self.wish.message }],
            "stream": is_stream,
        });
        if is_stream && let Some(members) = body.as_object_mut() {
            members.insert("stream_options".to_owned(), json!({ "include_usage": true }));
        }
        body.to_string()
    }

    async fn fetch(&mut self, what: &str, request: Request) -> Option<(AnswerHead, Vec<u8>)> {
        let (head, response) = match self.open(request, self.wish.token.as_deref()).await {
            Ok(opened) => opened,
            Err(error) => {
                self.unread(what, &error);
                return None;
            }
        };
        if head.status >= 400 {
            let bytes = response.body.beginning(REFUSAL_LIMIT_BYTES).await;
            return Some((head, bytes));
        }
        match response.body.read(OBJECT_LIMIT_BYTES).await {
            Ok(bytes) => Some((head, bytes)),
            Err(error) => {
                self.unread(what, &super::told(&error));
                None
            }
        }
    }

    fn say(&mut self, what: &str, bytes: &[u8], events: usize, complaints: impl IntoIterator<Item = String>) {
        let mut findings = Findings::default();
        for complaint in complaints {
            findings.add(&rule::FACADE, &complaint, None, None, &String::from_utf8_lossy(bytes));
        }
        self.report.answers.push(Judged {
            what: what.to_owned(),
            form: "the façade's".to_owned(),
            events,
            documents: 0,
            bytes: bytes.len() as u64,
            findings,
        });
    }
}

fn read(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_default()
}

fn refused(head: &AnswerHead, bytes: &[u8]) -> Option<String> {
    let message = read(bytes).pointer("/error/message").map(Value::to_string);
    (head.status >= 400).then(|| format!("it was refused with {}: {}", head.status, message.unwrap_or_default()))
}

/// Returns what an entire answer lacks.
fn answer(answer: &Value) -> Vec<String> {
    let is_text = |at: &str| answer.pointer(at).is_some_and(Value::is_string);
    let is_number = |at: &str| answer.pointer(at).is_some_and(Value::is_u64);
    let mut missing = Vec::new();
    for at in [
        "/id",
        "/model",
        "/choices/0/message/content",
        "/choices/0/finish_reason",
    ] {
        if !is_text(at) {
            missing.push(format!("`{at}` is not text"));
        }
    }
    for at in [
        "/created",
        "/usage/prompt_tokens",
        "/usage/completion_tokens",
        "/usage/total_tokens",
    ] {
        if !is_number(at) {
            missing.push(format!("`{at}` is no number"));
        }
    }
    if answer.get("object").and_then(Value::as_str) != Some("chat.completion") {
        missing.push("`object` is not `chat.completion`".to_owned());
    }
    missing
}

/// Returns the defects of a stream's data.
fn stream(heard: &[String]) -> Vec<String> {
    let mut wrong = Vec::new();
    let Some((last, chunks)) = heard.split_last() else {
        return vec!["nothing came".to_owned()];
    };
    if last != "[DONE]" {
        wrong.push("`[DONE]` is not the end".to_owned());
    }
    let chunks: Vec<Value> = chunks
        .iter()
        .map(|it| serde_json::from_str(it).unwrap_or_default())
        .collect();
    let is_chunk = |it: &Value| it.get("object").and_then(Value::as_str) == Some("chat.completion.chunk");
    if !chunks.iter().all(is_chunk) {
        wrong.push("something is no `chat.completion.chunk`".to_owned());
    }
    let role = chunks.first().and_then(|it| it.pointer("/choices/0/delta/role"));
    if role.and_then(Value::as_str) != Some("assistant") {
        wrong.push("the first chunk has no role".to_owned());
    }
    let ends = |it: &&Value| it.pointer("/choices/0/finish_reason").is_some_and(Value::is_string);
    if chunks.iter().filter(ends).count() != 1 {
        wrong.push("not exactly one chunk has a `finish_reason`".to_owned());
    }
    let counts = |it: &&Value| it.get("usage").is_some_and(Value::is_object);
    if chunks.iter().filter(counts).count() != 1 {
        wrong.push("not exactly one chunk has the `usage` that was asked for".to_owned());
    }
    wrong
}
