//! The request body: the conversation so far, and the options around it. Pure.

use std::{borrow::Cow, fmt, io};

use serde_json::{Map, Value, json};

use super::Settings;
use crate::{
    net::client::Url,
    os::long_text::LongText,
    protocol::{
        CUSTOM_MODE, ClarificationResponse, ConversationId, Document, Event, Kind, Message, Mode, Response, Turn,
    },
};

/// Path of the endpoint for a turn.
pub const COMPLETIONS: &str = "api/v1/chat/completions";
/// Path of the endpoint for a turn in plan mode.
pub const PLAN: &str = "api/v1/chat/plan";

/// Bodies above this leave out the documents of old answers, whose text is enough. A gateway of ours takes 32 MiB.
const BODY_LIMIT_BYTES: usize = 24 << 20;

/// The server's root: paths of the protocol at the end of a pasted address are taken off.
pub fn root(mut url: Url) -> Url {
    let path = url.path().trim_end_matches('/').to_owned();
    let ends = [
        "/api/v1/chat/completions",
        "/api/v1/chat/plan",
        "/api/v1/chat",
        "/api/v1",
    ];
    let path = ends.iter().find_map(|end| path.strip_suffix(end)).unwrap_or(&path);
    url.set_path(path);
    url
}

/// The path below a running response, or `None` for an id that is no plain name: it comes from the gateway, and must
/// not lead the token to another endpoint.
pub fn below_response(id: &str, end: &str) -> Option<String> {
    is_plain_name(id).then(|| format!("api/v1/chat/responses/{id}/{end}"))
}

/// Returns true for an id that is one segment of a path and nothing else.
pub fn is_plain_name(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~' | ':');
    (1..=256).contains(&id.len()) && id.chars().all(is_plain) && id.chars().any(|it| it != '.')
}

/// The turns so far, each as the JSON text that travels.
#[derive(Debug, Default)]
pub struct History {
    turns: Vec<Past>,
}

#[derive(Debug)]
struct Past {
    turn: Turn,
    question: Option<Message>,
    /// `None`: nothing was said.
    answer: Option<Answer>,
}

/// An answer as a message, which may be longer than memory should hold.
#[derive(Debug)]
struct Answer {
    json: LongText,
    /// Length in bytes of the beginning that lacks the documents, and the last brace.
    lean_bytes: usize,
}

impl History {
    /// Adds a turn that is over.
    pub fn push(&mut self, turn: Turn, question: Option<Message>, response: &Response) {
        let answer = answer(response);
        // Who tries again after a failure says the same once more; the gateway need not hear it twice.
        if let (Some(last), Some(question)) = (self.turns.last(), &question)
            && last.answer.is_none()
            && last.question.as_ref() == Some(question)
        {
            self.turns.pop();
        }
        self.turns.push(Past { turn, question, answer });
    }

    /// Puts older turns before the first one.
    pub fn put_in_front(&mut self, before: Self) {
        self.turns.splice(0..0, before.turns);
    }

    /// The answer of a turn has changed after its end.
    pub fn update(&mut self, turn: Turn, response: &Response) {
        if let Some(past) = self.turns.iter_mut().find(|it| it.turn == turn) {
            past.answer = answer(response);
        }
    }

    /// The messages up to and with `message`, in JSON, without brackets around them.
    fn messages(&self, message: &Message, only_new: bool, limit_bytes: usize) -> String {
        let mut all: Vec<Cow<'_, str>> = vec![text_of(message).into()];
        let mut weight = all.iter().map(|it| it.len()).sum::<usize>();
        // From the newest to the oldest, so that it is the old ones that are shortened.
        for past in self.turns.iter().rev() {
            if only_new && past.answer.is_some() {
                break;
            }
            let repeated = past.answer.is_none() && all.len() == 1 && past.question.as_ref() == Some(message);
            if repeated {
                continue;
            }
            if let Some(answer) = &past.answer {
                weight += answer.json.len();
                all.push(if weight > limit_bytes {
                    answer.lean().into()
                } else {
                    answer.json.as_str().into()
                });
            }
            if let Some(question) = &past.question {
                let question = text_of(question);
                weight += question.len();
                all.push(question.into());
            }
        }
        all.reverse();
        all.join(",")
    }
}

/// Options of a request.
pub struct Ask<'a> {
    pub message: &'a Message,
    pub mode: Mode,
    /// `None`: the gateway's own.
    pub model: Option<&'a str>,
    /// The gateway's own name for the conversation.
    pub conversation: Option<&'a ConversationId>,
    /// The gateway remembers what was said before.
    pub only_new: bool,
    /// The workspace, as it is now.
    pub context: Option<Value>,
}

/// The body of a request.
pub fn body(ask: &Ask<'_>, history: &History, settings: &Settings) -> String {
    body_within(ask, history, settings, BODY_LIMIT_BYTES)
}

fn body_within(ask: &Ask<'_>, history: &History, settings: &Settings, limit_bytes: usize) -> String {
    let mut members = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            members.insert(name.to_owned(), value);
        }
    };
    put("model", ask.model.map(Into::into));
    put("mode", Some(ask.mode.as_str().into()));
    put("context", ask.context.clone());
    put("tools", settings.tools.as_ref().map(|it| json!(it)));
    put("availableTools", settings.available_tools.clone());
    put("stream", Some(true.into()));
    put("conversationId", ask.conversation.map(|it| json!(it)));
    put(
        "metadata",
        ask.message.custom_mode().map(|it| json!({ CUSTOM_MODE: it })),
    );
    let mut options = Map::new();
    if let Some(dialect) = settings.dialect {
        options.insert("dialect".to_owned(), dialect.as_str().into());
    }
    if !settings.accepts_answers {
        options.insert("liveInput".to_owned(), false.into());
    }
    put("streamOptions", (!options.is_empty()).then(|| options.into()));
    let mut text = Value::Object(members).to_string();
    // The messages are JSON already; parsing a long conversation to print it again would cost more than the rest.
    text.pop();
    text.push_str(r#","messages":["#);
    text.push_str(&history.messages(ask.message, ask.only_new, limit_bytes));
    text.push_str("]}");
    text
}

fn text_of(message: &Message) -> String {
    // A message is made of strings and JSON values only.
    serde_json::to_string(message).unwrap_or_else(|_| json!({ "role": "user", "content": message.content }).to_string())
}

/// An answer as a message: its text for any model, its documents for a gateway that knows them. Where there are only
/// errors, nothing was said.
fn answer(response: &Response) -> Option<Answer> {
    let documents = || response.documents.iter().enumerate().filter(|(_, it)| !is_ours(it));
    documents().find(|(_, it)| it.kind != Kind::Error)?;
    let documents: Vec<_> = documents().map(|(at, it)| (response.number(at), it)).collect();
    let mut json = LongText::from(r#"{"role":"assistant","content":"#);
    push_json(&mut json, &format_args!("{}", Said(&documents)));
    let lean_bytes = json.len();
    json.push_str(r#","documents":["#);
    for (at, (number, document)) in documents.iter().enumerate() {
        json.push_str(if at == 0 { "" } else { "," });
        push_json(&mut json, &document.strict(*number));
    }
    json.push_str("]}");
    Some(Answer {
        json: json.settled(),
        lean_bytes,
    })
}

/// Appends a value as JSON.
fn push_json(text: &mut LongText, value: &impl serde::Serialize) {
    /// Bytes that are gathered for one step of a long text.
    const STEP_BYTES: usize = 64 << 10;
    struct Sink<'a>(&'a mut LongText, String);
    impl io::Write for Sink<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1.push_str(std::str::from_utf8(bytes).map_err(io::Error::other)?);
            if self.1.len() >= STEP_BYTES {
                self.flush()?;
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0.push_str(&self.1);
            self.1.clear();
            Ok(())
        }
    }
    let mut sink = Sink(text, String::new());
    let is_written = serde_json::to_writer(&mut sink, value).is_ok() && io::Write::flush(&mut sink).is_ok();
    debug_assert!(is_written, "texts and plain values become JSON");
}

/// The text of documents, with a blank line between them.
struct Said<'a>(&'a [(u64, &'a Document)]);

impl fmt::Display for Said<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        for (_, document) in self.0 {
            let pieces = document.plain_pieces();
            if pieces.iter().all(|it| it.is_empty()) {
                continue;
            }
            formatter.write_str(before)?;
            pieces.iter().try_for_each(|it| formatter.write_str(it))?;
            before = "\n\n";
        }
        Ok(())
    }
}

/// Returns true if we wrote the document ourselves, about a failure: it is no part of the conversation.
fn is_ours(document: &Document) -> bool {
    document.kind == Kind::Error
        && matches!(
            document.metadata.get("source").and_then(Value::as_str),
            Some("client" | "stream")
        )
}

impl Answer {
    /// The message without its documents.
    fn lean(&self) -> String {
        format!("{}}}", self.json.get(..self.lean_bytes).unwrap_or_default())
    }
}

/// An answer to a question of a turn that is over, as the message that carries it.
pub fn answering(document: &Document, response: ClarificationResponse) -> Message {
    let asked = document.clarification();
    let content = asked.map_or_else(|| response.outcome.to_string(), |it| it.readable(&response));
    Message {
        clarification_response: Some(response),
        ..Message::user(content)
    }
}

/// Returns true if the document can still be answered.
pub fn is_open_question(document: &Document) -> bool {
    document.clarification().is_some_and(|it| it.outcome.is_none())
}

/// The response of one turn, from the entries of a log.
pub fn response_of<'a>(events: impl Iterator<Item = (&'a Event, u64)>) -> Response {
    let mut response = Response::default();
    for (event, at_ms) in events {
        response.apply(event, at_ms);
    }
    response
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::{net::client::Peer, protocol::DocumentStart};

    #[test]
    fn an_address_may_be_pasted_with_the_path_of_an_endpoint() {
        for (pasted, expected) in [
            ("http://h:1", "http://h:1/"),
            ("http://h:1/", "http://h:1/"),
            ("http://h:1/api/v1", "http://h:1/"),
            ("http://h:1/api/v1/chat", "http://h:1/"),
            ("http://h:1/api/v1/chat/completions/", "http://h:1/"),
            ("http://h:1/api/v1/chat/plan", "http://h:1/"),
            ("http://h:1/team/api/v1/chat/completions?key=1", "http://h:1/team?key=1"),
            ("http://h:1/chat", "http://h:1/chat"),
            ("http://h:1/v1/chat/completions", "http://h:1/v1/chat/completions"),
        ] {
            assert_eq!(root(pasted.parse().unwrap()).as_str(), expected, "{pasted}");
        }
    }

    #[test]
    fn an_id_never_leads_to_another_endpoint() {
        assert_eq!(
            below_response("chat_5b1d", "cancel").as_deref(),
            Some("api/v1/chat/responses/chat_5b1d/cancel")
        );
        for id in [
            "",
            ".",
            "..",
            "a/b",
            "../x",
            "a?b",
            "a#b",
            "a b",
            "%2e%2e",
            "é",
            "a\\b",
            &"x".repeat(257),
        ] {
            assert_eq!(below_response(id, "cancel"), None, "{id}");
        }
    }

    fn said(text: &str, kind: Kind, source: &str) -> Response {
        let mut response = Response::default();
        let metadata = Map::from_iter([("source".to_owned(), source.into())]);
        let start = DocumentStart {
            id: "doc_001".into(),
            kind,
            sequence: Some(1),
            content: Some(text.into()),
            metadata,
        };
        response.apply(&Event::DocumentStart(start), 0);
        response
    }

    fn settings() -> Settings {
        Settings::new(Peer::new("http://localhost".parse().unwrap()))
    }

    /// The messages as `role: content`, `+` where documents travel along.
    fn sent(history: &History, message: &str, only_new: bool, limit_bytes: usize) -> Vec<String> {
        let message = Message::user(message);
        let ask = Ask {
            message: &message,
            mode: Mode::Agent,
            model: Some("m"),
            conversation: None,
            only_new,
            context: None,
        };
        let text = body_within(&ask, history, &settings(), limit_bytes);
        let body: Value = serde_json::from_str(&text).unwrap();
        let show = |it: &Value| {
            let more = if it.get("documents").is_some() { " +" } else { "" };
            format!(
                "{}: {}{more}",
                it["role"].as_str().unwrap(),
                it["content"].as_str().unwrap()
            )
        };
        body["messages"].as_array().unwrap().iter().map(show).collect()
    }

    #[test]
    fn the_whole_conversation_travels_unless_the_gateway_keeps_it() {
        let mut history = History::default();
        for (turn, text) in [(1, "one"), (2, "two")] {
            let response = said(&format!("answer {text}"), Kind::Text, "");
            history.push(Turn(turn), Some(Message::user(text)), &response);
        }
        assert_eq!(
            sent(&history, "three", false, BODY_LIMIT_BYTES),
            [
                "user: one",
                "assistant: answer one +",
                "user: two",
                "assistant: answer two +",
                "user: three"
            ]
        );
        assert_eq!(sent(&history, "three", true, BODY_LIMIT_BYTES), ["user: three"]);
    }

    #[test]
    fn the_name_of_a_custom_mode_travels_beside_the_nearest_mode() {
        let message = Message::user("q").in_custom_mode(Some("docs"));
        let ask = Ask {
            message: &message,
            mode: Mode::Ask,
            model: None,
            conversation: None,
            only_new: false,
            context: None,
        };
        let body: Value = serde_json::from_str(&body(&ask, &History::default(), &settings())).unwrap();
        assert_eq!(
            (&body["mode"], &body["metadata"]),
            (&json!("ask"), &json!({ "customMode": "docs" }))
        );
    }

    #[test]
    fn failures_are_no_part_of_the_conversation_and_a_second_try_is_said_once() {
        let mut history = History::default();
        history.push(
            Turn(1),
            Some(Message::user("one")),
            &said("no connection", Kind::Error, "client"),
        );
        assert_eq!(sent(&history, "one", false, BODY_LIMIT_BYTES), ["user: one"]);
        history.push(
            Turn(2),
            Some(Message::user("one")),
            &said("too many", Kind::Error, "gateway"),
        );
        assert_eq!(
            sent(&history, "two", false, BODY_LIMIT_BYTES),
            ["user: one", "user: two"]
        );
        assert_eq!(
            sent(&history, "two", true, BODY_LIMIT_BYTES),
            ["user: one", "user: two"]
        );
    }

    #[test]
    fn a_conversation_that_is_too_large_loses_old_documents_first() {
        let mut history = History::default();
        for turn in 1..4 {
            let text = format!("answer {turn}");
            history.push(Turn(turn), Some(Message::user("q")), &said(&text, Kind::Text, ""));
        }
        let one = answer(&said("answer 1", Kind::Text, "")).unwrap().json.len();
        assert_eq!(
            sent(&history, "q", false, 2 * one + 150),
            [
                "user: q",
                "assistant: answer 1",
                "user: q",
                "assistant: answer 2 +",
                "user: q",
                "assistant: answer 3 +",
                "user: q"
            ]
        );
    }

    #[test]
    fn an_answer_that_changed_later_travels_as_it_is_now() {
        let mut history = History::default();
        history.push(Turn(1), Some(Message::user("one")), &said("before", Kind::Text, ""));
        history.update(Turn(1), &said("after", Kind::Text, ""));
        assert_eq!(
            sent(&history, "two", false, BODY_LIMIT_BYTES),
            ["user: one", "assistant: after +", "user: two"]
        );
    }
}
