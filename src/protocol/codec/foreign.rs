//! Servers that speak something else.

use std::fmt;

use serde_json::{Map, Value};

/// A foreign protocol, recognised by its first object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    OpenAi,
    Anthropic,
    Ollama,
    Gemini,
}

impl Foreign {
    /// Looks at a JSON answer or at the first object of a stream.
    pub fn of(members: &Map<String, Value>) -> Option<Self> {
        if members.contains_key("documents") {
            return None;
        }
        let is_text = |name: &str, start: &str| {
            members
                .get(name)
                .and_then(Value::as_str)
                .is_some_and(|it| it.starts_with(start))
        };
        let is_list = |name: &str| members.get(name).is_some_and(Value::is_array);
        let is_object = |name: &str| members.get(name).is_some_and(Value::is_object);
        if is_list("choices")
            || is_text("object", "chat.completion")
            || is_text("object", "text_completion")
            || (is_text("object", "response") && is_list("output"))
            || is_text("type", "response.")
        {
            return Some(Self::OpenAi);
        }
        let anthropic_start = is_text("type", "message_start") && is_object("message");
        let anthropic_answer = is_text("type", "message") && is_list("content") && is_text("role", "assistant");
        if anthropic_start || anthropic_answer {
            return Some(Self::Anthropic);
        }
        if is_list("candidates") {
            return Some(Self::Gemini);
        }
        let ollama = members.get("done").is_some_and(Value::is_boolean)
            && members.contains_key("created_at")
            && (is_object("message") || members.contains_key("response"));
        ollama.then_some(Self::Ollama)
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenAi => "an OpenAI-compatible",
            Self::Anthropic => "an Anthropic",
            Self::Ollama => "an Ollama",
            Self::Gemini => "a Gemini",
        })
    }
}

/// Why an answer cannot be read at all; everything less is a notice.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The user pointed the gateway client at a provider.
    #[error("this is {what} server; configure it as a provider")]
    Foreign { what: Foreign },
    /// The gateway sent a page, plain text or a piece of an answer.
    #[error("{}: {start}", if start.trim_start().starts_with('<') { "the answer is a web page" } else { "the answer is no JSON object" })]
    NotAnObject {
        /// First bytes of the body.
        start: String,
        source: Option<serde_json::Error>,
    },
    #[error("the answer is larger than {limit_bytes} bytes")]
    TooLarge { limit_bytes: usize },
}
