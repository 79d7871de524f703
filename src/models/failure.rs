//! Why a model gave no answer, or only a part of one, and what the user can do about it.

use serde::{Deserialize, de::value::StrDeserializer};
use serde_json::Value;

use crate::{net::client, text::redact::redact};

/// A failure, in our words and in the server's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub kind: FailureKind,
    /// Our message, on one line.
    pub message: Box<str>,
    /// The server's own words, shortened; untrusted.
    pub said: Option<Box<str>>,
    /// The system's words, where it was not the server.
    pub cause: Option<Box<str>>,
    /// Request id, for the provider's support.
    pub request_id: Option<Box<str>>,
    /// Advice beyond that of the kind.
    pub hint: Option<Box<str>>,
}

/// Sorted by who must act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The user: no key, a wrong key, or one that may not do this.
    Key,
    /// The user: nothing left to spend.
    Credit,
    /// The user: no such model or no such address.
    NotFound,
    /// The user: the conversation does not fit into the model's window.
    TooLong,
    /// Us: the server refuses the request as it stands.
    Request,
    /// Time: too many requests.
    Busy,
    /// Time: the server is loading or has too much to do.
    Overloaded,
    /// The network or the server: no connection, no answer, an internal error.
    Unreachable,
    /// The server: what came is no answer in this format.
    Garbled,
    /// The network or the server: the answer broke off.
    Interrupted,
    /// The server: more in one line or event than we read.
    Oversized,
}

impl FailureKind {
    /// The code of an `error` document.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Key => "LLM_AUTH",
            Self::Credit | Self::Busy => "LLM_RATE_LIMITED",
            Self::NotFound | Self::Unreachable => "LLM_UNAVAILABLE",
            Self::TooLong => "LLM_CONTEXT_LENGTH",
            Self::Request | Self::Garbled => "LLM_BAD_RESPONSE",
            Self::Overloaded => "LLM_OVERLOADED",
            Self::Interrupted => "STREAM_INTERRUPTED",
            Self::Oversized => "STREAM_PROTOCOL",
        }
    }

    const fn next_step(self) -> &'static str {
        match self {
            Self::Key => "check the key: `sheaf login` shows where it comes from and stores another",
            Self::Credit => "see the provider's billing page, or choose another model",
            Self::NotFound => "check the model's name and the base URL: `/model` lists what the server offers",
            Self::TooLong => "start a new conversation, send less, or choose a model with a larger window",
            Self::Request => "the server refused this request: another model or provider may accept it",
            Self::Busy => "wait a moment and send the message again",
            Self::Overloaded => "the server is busy or still loading its model: retry in a moment",
            Self::Unreachable => "is the server running, and is the base URL right?",
            Self::Garbled => "check that the base URL and the provider's `kind` belong together",
            Self::Interrupted => "the partial answer is kept; send the message again for a whole one",
            Self::Oversized => "the partial answer is kept; the server's format is invalid",
        }
    }
}

/// Maximum characters kept of a server's message.
const SAID_LIMIT_CHARACTERS: usize = 600;

impl Failure {
    pub fn new(kind: FailureKind, message: impl Into<Box<str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            said: None,
            cause: None,
            request_id: None,
            hint: None,
        }
    }

    /// Adds advice for the user.
    pub fn hint(self, hint: impl Into<Box<str>>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// From an error of ours whose first line says what happened, and the others what to do.
    pub fn from_error(kind: FailureKind, error: &dyn std::error::Error) -> Self {
        let text = error.to_string();
        let (message, hint) = match text.split_once('\n') {
            Some((message, hint)) => (message, Some(hint.trim().into())),
            None => (text.as_str(), None),
        };
        let causes = std::iter::successors(error.source(), |it| it.source());
        let causes = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
        Self {
            hint,
            cause: (!causes.is_empty()).then(|| causes.into()),
            ..Self::new(kind, message)
        }
    }

    /// Adds the server's words; nothing when there are none.
    pub fn saying(mut self, said: &str) -> Self {
        // Servers like to repeat the key that they refuse.
        let said = redact(said);
        let said = said.trim();
        if !said.is_empty() {
            let mut short: String = said.chars().take(SAID_LIMIT_CHARACTERS).collect();
            if short.len() < said.len() {
                short.push('…');
            }
            self.said = Some(short.into());
        }
        self
    }

    /// For `details` of an `error` document: what the server said, then what to do.
    pub fn details(&self) -> String {
        let mut lines = Vec::new();
        if let Some(cause) = &self.cause {
            lines.push(format!("cause: {cause}"));
        }
        if let Some(said) = &self.said {
            lines.push(format!("the server says: {said}"));
        }
        if let Some(id) = &self.request_id {
            lines.push(format!("request id: {id}"));
        }
        lines.push(self.hint.as_deref().unwrap_or(self.kind.next_step()).to_owned());
        lines.join("\n")
    }

    /// From an error object or text of a server, and its HTTP status if it was not 200.
    ///
    /// A number in `code` counts as a status when there is no other: gateways put an upstream's there.
    pub fn from_server(status: Option<u16>, error: &Value) -> Self {
        let mut said = words(error);
        // Groq: what the model wrote in place of a call.
        if let Some(wrote) = error.get("failed_generation").and_then(Value::as_str) {
            said = format!("{said}\n{wrote}");
        }
        let in_body = ["code", "status"].iter().find_map(|name| number(error.get(name)?));
        let status = status.filter(|it| *it >= 400).or(in_body);
        let names = ["code", "type", "status"]
            .iter()
            .filter_map(|name| error.get(name)?.as_str())
            .collect::<Vec<_>>()
            .join(" ");
        let kind = classify(status, &format!("{names} {said}").to_lowercase());
        let message = match (kind, status) {
            (FailureKind::Key, _) => "the server does not accept the key".to_owned(),
            (FailureKind::Credit, _) => "the account has no credit left".to_owned(),
            (FailureKind::NotFound, _) => "the server does not know the model or the address".to_owned(),
            (FailureKind::TooLong, _) => "the conversation is too long for the model".to_owned(),
            (FailureKind::Busy, _) => "too many requests".to_owned(),
            (FailureKind::Overloaded, _) => "the server has no capacity at the moment".to_owned(),
            (FailureKind::Request, Some(status)) => format!("the server refused the request ({status})"),
            (FailureKind::Unreachable, Some(status)) => format!("the server failed ({status})"),
            (
                FailureKind::Request
                | FailureKind::Unreachable
                | FailureKind::Garbled
                | FailureKind::Interrupted
                | FailureKind::Oversized,
                _,
            ) => "the server reported an error".to_owned(),
        };
        Self::new(kind, message).saying(&said)
    }
}

/// Returns an error's text, in whichever of the known shapes: text, `message`, `error`, `detail`.
fn words(error: &Value) -> String {
    match error {
        Value::String(text) => text.clone(),
        Value::Object(members) => ["message", "error", "detail", "msg", "title"]
            .iter()
            .filter_map(|name| members.get(*name))
            .find(|it| !it.is_null())
            .map_or_else(|| error.to_string(), words),
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join("; "),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) => error.to_string(),
    }
}

/// An HTTP status, as a number or in quotes.
fn number(value: &Value) -> Option<u16> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok()?,
        other => u16::try_from(other.as_u64()?).ok()?,
    };
    (400..600).contains(&number).then_some(number)
}

/// Words weigh more than the status, because gateways answer 400 or 500 for everything; vague ones weigh less.
fn classify(status: Option<u16>, words: &str) -> FailureKind {
    let found = |signs: &str| {
        let mut signs = signs.lines().filter_map(|it| it.split_once(": "));
        let (kind, _) = signs.find(|(_, sign)| words.contains(sign))?;
        FailureKind::deserialize(StrDeserializer::<serde::de::value::Error>::new(kind)).ok()
    };
    found(SIGNS).unwrap_or_else(|| match status {
        Some(401 | 403 | 407) => FailureKind::Key,
        Some(402) => FailureKind::Credit,
        Some(404 | 405 | 410) => FailureKind::NotFound,
        Some(413) => FailureKind::TooLong,
        Some(429) => FailureKind::Busy,
        Some(503 | 529) => FailureKind::Overloaded,
        Some(408 | 500..) => FailureKind::Unreachable,
        Some(_) => FailureKind::Request,
        None => found(VAGUE_SIGNS).unwrap_or(FailureKind::Garbled),
    })
}

/// Lines of a kind, a colon and a text in lower case. The first hit wins.
const SIGNS: &str = include_str!("../../assets/failures.txt");

/// Texts that gateways use for many failures.
const VAGUE_SIGNS: &str = "\
unreachable: internal_server_error
unreachable: server_error
unreachable: api_error
unreachable: timeout_error
unreachable: connection error
request: invalid_request_error
request: bad_request";

impl From<&client::Error> for Failure {
    fn from(error: &client::Error) -> Self {
        let kind = match error {
            client::Error::Address { .. }
            | client::Error::PlainHttp { .. }
            | client::Error::PublicHttp { .. }
            | client::Error::Redirect { .. } => FailureKind::NotFound,
            client::Error::Header { .. } => FailureKind::Key,
            client::Error::File { .. }
            | client::Error::Certificate { .. }
            | client::Error::Proxy { .. }
            | client::Error::Trust { .. }
            | client::Error::Refused { .. }
            | client::Error::Name { .. }
            | client::Error::Tls { .. }
            | client::Error::Connect { .. }
            | client::Error::ConnectTimeout { .. }
            | client::Error::FirstByteTimeout { .. }
            | client::Error::Closed { .. }
            | client::Error::Request { .. } => FailureKind::Unreachable,
            client::Error::IdleTimeout { .. } | client::Error::Cut { .. } => FailureKind::Interrupted,
            client::Error::NotHttp { .. } | client::Error::Compressed { .. } => FailureKind::Garbled,
            client::Error::HeadersTooLarge { .. } | client::Error::TooLarge { .. } => FailureKind::Oversized,
        };
        Self::from_error(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_server_is_understood_by_its_words_and_then_by_its_status() {
        let cases = [
            ("a wrong key", Some(401), json!({ "message": "no" }), FailureKind::Key),
            (
                "a wrong key as 400",
                Some(400),
                json!({ "message": "Invalid API key" }),
                FailureKind::Key,
            ),
            ("a forbidden model", Some(403), json!("no"), FailureKind::Key),
            ("no money", Some(402), json!("pay"), FailureKind::Credit),
            (
                "no money as 429",
                Some(429),
                json!({ "code": "insufficient_quota" }),
                FailureKind::Credit,
            ),
            ("too fast", Some(429), json!("slow down"), FailureKind::Busy),
            (
                "too fast, in tokens",
                Some(429),
                json!("Request too large: tokens per min (TPM)"),
                FailureKind::Busy,
            ),
            (
                "too long",
                Some(400),
                json!({ "code": "context_length_exceeded" }),
                FailureKind::TooLong,
            ),
            (
                "too long, in words",
                Some(500),
                json!("prompt is too long: 9 > 8"),
                FailureKind::TooLong,
            ),
            ("too large", Some(413), json!("no"), FailureKind::TooLong),
            (
                "an unknown model",
                Some(400),
                json!({ "code": "model_not_found" }),
                FailureKind::NotFound,
            ),
            (
                "an unknown path",
                Some(404),
                json!("<h1>Not Found</h1>"),
                FailureKind::NotFound,
            ),
            ("loading", Some(503), json!("Loading model"), FailureKind::Overloaded),
            (
                "overloaded as 500",
                Some(500),
                json!({ "type": "overloaded_error" }),
                FailureKind::Overloaded,
            ),
            ("broken", Some(502), json!("Bad Gateway"), FailureKind::Unreachable),
            ("refused", Some(422), json!("extra_forbidden"), FailureKind::Request),
            (
                "refused, though it says so of a server",
                Some(400),
                json!({ "type": "server_error" }),
                FailureKind::Request,
            ),
            (
                "in the stream, with a number",
                None,
                json!({ "code": 503 }),
                FailureKind::Overloaded,
            ),
            (
                "in the stream, with a number in quotes",
                None,
                json!({ "code": "401" }),
                FailureKind::Key,
            ),
            (
                "in the stream, with a type",
                None,
                json!({ "type": "server_error" }),
                FailureKind::Unreachable,
            ),
            (
                "in the stream, with nothing",
                None,
                json!({ "message": "boom" }),
                FailureKind::Garbled,
            ),
            (
                "a number that is no status",
                None,
                json!({ "code": 7 }),
                FailureKind::Garbled,
            ),
            (
                "200 is no failure's status",
                Some(200),
                json!({ "code": 429 }),
                FailureKind::Busy,
            ),
            ("null", Some(500), json!(null), FailureKind::Unreachable),
        ];
        for (name, status, error, want) in cases {
            assert_eq!(Failure::from_server(status, &error).kind, want, "{name}");
        }
    }

    #[test]
    fn its_words_are_found_in_every_shape() {
        let cases = [
            (json!("text"), Some("text")),
            (json!({ "message": "text" }), Some("text")),
            (json!({ "message": null, "detail": "text" }), Some("text")),
            (json!({ "error": { "message": "text" } }), Some("text")),
            (
                json!({ "detail": [{ "loc": ["body"], "msg": "text" }, { "msg": "more" }] }),
                Some("text; more"),
            ),
            (json!({ "odd": 1 }), Some("{\"odd\":1}")),
            (json!(null), None),
            (json!("  "), None),
        ];
        for (error, want) in cases {
            assert_eq!(Failure::from_server(Some(400), &error).said.as_deref(), want, "{error}");
        }
        let long = Failure::from_server(None, &json!("é".repeat(10_000)))
            .said
            .expect("words");
        assert_eq!(long.chars().count(), SAID_LIMIT_CHARACTERS + 1);
    }

    #[test]
    fn details_end_with_what_to_do() {
        let failure = Failure::from_server(Some(401), &json!("no"));
        let details = failure.details();
        assert!(details.starts_with("the server says: no\ncheck the key"), "{details}");
        let hinted = Failure {
            request_id: Some("r-1".into()),
            ..failure
        }
        .hint("do this");
        assert_eq!(hinted.details(), "the server says: no\nrequest id: r-1\ndo this");
    }
}
