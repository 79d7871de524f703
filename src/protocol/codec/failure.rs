//! The body of an HTTP error: ours, and the forms that other servers use.

use serde_json::{Map, Value, json};

use super::payload::{cut, parse, take_text, text_of};

/// Bytes shown of a page that is not JSON.
const PAGE_BYTES: usize = 300;

/// Why a gateway refused or broke off, ready for an `error` document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// UPPER_SNAKE from gateways that follow the protocol; any text from others.
    pub code: String,
    pub message: String,
    pub source: String,
    pub details: String,
}

impl Failure {
    /// Reads the body of an answer with an error status, whatever it is.
    pub fn read(status: u16, body: &str) -> Self {
        let mut failure = match parse(body.trim()) {
            Ok((Value::Object(members), _)) => Self::of(members),
            Ok((Value::String(text), _)) => Self {
                message: text,
                ..Self::default()
            },
            Ok(_) | Err(_) => Self {
                message: page(body),
                ..Self::default()
            },
        };
        if failure.code.is_empty() || failure.code == "INTERNAL" {
            code_of(status).clone_into(&mut failure.code);
        }
        if failure.message.is_empty() {
            failure.message = format!("HTTP status {status}");
        }
        if failure.source.is_empty() {
            "gateway".clone_into(&mut failure.source);
        }
        failure
    }

    /// Reads `{error: {…}}`, `{error: "…"}`, `{message}`, `{detail}`, bare members, or a response object with an
    /// `error` document.
    pub fn of(mut members: Map<String, Value>) -> Self {
        if let Some(Value::Array(documents)) = members.get("documents")
            && let Some(found) = documents.iter().rev().find_map(of_document)
        {
            return found;
        }
        let mut inner = match members.shift_remove("error") {
            Some(Value::Object(mut inner)) => {
                for (name, value) in members {
                    inner.entry(name).or_insert(value);
                }
                inner
            }
            Some(Value::Null) | None => members,
            Some(other) => {
                members.entry("message").or_insert(Value::String(text_of(&other)));
                members
            }
        };
        let code = take_text(&mut inner, &["code", "errorCode", "type"]).unwrap_or_default();
        let message = take_text(&mut inner, &["message", "msg", "content", "title"]);
        let source = take_text(&mut inner, &["source"]).unwrap_or_else(|| "gateway".to_owned());
        let mut details: Vec<_> = ["details", "detail", "param"]
            .into_iter()
            .filter_map(|name| inner.shift_remove(name).filter(|it| !it.is_null()))
            .map(|it| match it {
                Value::String(text) => text,
                other => serde_json::to_string_pretty(&other).unwrap_or_default(),
            })
            .collect();
        let message = match message {
            Some(message) => message,
            None if details.is_empty() => String::new(),
            None => details.remove(0),
        };
        Self {
            code: if code.is_empty() { "INTERNAL".to_owned() } else { code },
            message,
            source,
            details: details.join("\n"),
        }
    }

    /// The protocol's own error body.
    pub fn to_json(&self) -> Value {
        json!({ "error": {
            "code": self.code, "message": self.message, "source": self.source, "details": self.details,
        }})
    }

    /// An `error` document without id and sequence.
    pub fn to_document(&self) -> Value {
        let message = if self.message.is_empty() {
            "the gateway reported an error"
        } else {
            &self.message
        };
        json!({
            "type": "error",
            "content": message,
            "metadata": { "errorCode": self.code, "source": self.source, "details": self.details },
        })
    }
}

fn of_document(document: &Value) -> Option<Failure> {
    if document.get("type")?.as_str()? != "error" {
        return None;
    }
    let text = |value: Option<&Value>| value.map(text_of).unwrap_or_default();
    let member = |name: &str| {
        document
            .get("metadata")
            .and_then(|it| it.get(name))
            .or_else(|| document.get(name))
    };
    Some(Failure {
        code: text(member("errorCode")),
        message: text(document.get("content")),
        source: text(member("source")),
        details: text(member("details")),
    })
}

/// The visible start of a page.
fn page(body: &str) -> String {
    let mut text = String::new();
    let mut in_tag = false;
    for c in body.trim_start_matches('\u{feff}').chars() {
        match c {
            '<' => in_tag = true,
            '>' if in_tag => {
                in_tag = false;
                text.push(' ');
            }
            _ if in_tag => {}
            other => text.push(other),
        }
        if text.len() > 16 * PAGE_BYTES {
            break;
        }
    }
    let words: Vec<_> = text.split_whitespace().collect();
    cut(&words.join(" "), PAGE_BYTES).to_owned()
}

fn code_of(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHORIZED",
        403 => "PERMISSION_DENIED",
        429 => "RATE_LIMITED",
        529 => "LLM_OVERLOADED",
        408 | 502..=504 => "LLM_UNAVAILABLE",
        _ => "INTERNAL",
    }
}
