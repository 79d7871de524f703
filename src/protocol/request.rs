//! Requests, messages and answers, from a client to a gateway.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ConversationId, DocumentId, Mode, Outcome, Role};

/// Member of a message: the parts of its content that were not typed, in bytes: `[[start, end], …]`. A part that was not pasted
/// either has a third member, the word of its [`PartKind`].
pub const PASTES: &str = "pastes";
/// Member of a message: the plan that it builds, as `{ "plan": "1.4", "edited": true }`.
pub const BUILDS: &str = "builds";

/// Member of a message: the command or skill that it asks for, as `{ "name": "review", "arguments": "src/a.rs" }`.
pub const COMMAND: &str = "command";

/// Member of a message: the name of the custom mode that it is sent in.
pub const CUSTOM_MODE: &str = "customMode";

/// Origin of a part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    Typed,
    Pasted,
    /// Instructions that a command of the screen adds.
    Instructions,
    /// The plan as the user has edited it.
    Plan,
}

impl PartKind {
    /// Returns the word that a range names it by; empty for what needs none.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Typed | Self::Pasted => "",
            Self::Instructions => "instructions",
            Self::Plan => "plan",
        }
    }

    /// Returns the sort of a range with this word.
    fn of_range(word: Option<&str>) -> Self {
        let kinds = [Self::Instructions, Self::Plan];
        kinds
            .into_iter()
            .find(|it| word == Some(it.as_str()))
            .unwrap_or(Self::Pasted)
    }
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    pub role: Role,
    #[serde(default)]
    pub content: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub clarification_response: Option<ClarificationResponse>,
    /// The response's documents, when an earlier answer travels back.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub documents: Vec<Value>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Message {
    pub fn user(content: impl Into<String>) -> Self {
        Self {
            role: Role::User,
            content: content.into(),
            clarification_response: None,
            documents: Vec::new(),
            extra: Map::new(),
        }
    }

    /// Returns the parts of the content in their order. Impossible ranges are ignored.
    pub fn parts(&self) -> Vec<(&str, PartKind)> {
        let mut parts = Vec::new();
        let mut at = 0;
        let pastes = self.extra.get(PASTES).and_then(Value::as_array);
        for range in pastes.into_iter().flatten() {
            let number = |nth: usize| usize::try_from(range.get(nth)?.as_u64()?).ok();
            let (Some(start), Some(end)) = (number(0), number(1)) else {
                continue;
            };
            if let (Some(typed), Some(pasted)) = (self.content.get(at..start), self.content.get(start..end)) {
                let kind = PartKind::of_range(range.get(2).and_then(Value::as_str));
                parts.extend(
                    [(typed, PartKind::Typed), (pasted, kind)]
                        .into_iter()
                        .filter(|it| !it.0.is_empty()),
                );
                at = end;
            }
        }
        parts.extend(
            self.content
                .get(at..)
                .filter(|it| !it.is_empty())
                .map(|it| (it, PartKind::Typed)),
        );
        parts
    }

    /// Marks a part of the content, from the byte `start` to its end, as not typed. It has to be after all others.
    pub fn mark_end(&mut self, start: usize, kind: PartKind) {
        let range = match kind.as_str() {
            "" => serde_json::json!([start, self.content.len()]),
            word => serde_json::json!([start, self.content.len(), word]),
        };
        match self.extra.get_mut(PASTES).and_then(Value::as_array_mut) {
            Some(ranges) => ranges.push(range),
            None => drop(self.extra.insert(PASTES.to_owned(), Value::Array(vec![range]))),
        }
    }

    /// Returns the typed words; all of the content if nothing was typed.
    pub fn typed(&self) -> String {
        let parts = self.parts();
        let typed: Vec<&str> = parts
            .iter()
            .filter(|it| it.1 == PartKind::Typed)
            .map(|it| it.0)
            .collect();
        let typed = typed.join(" ");
        if typed.trim().is_empty() {
            self.content.clone()
        } else {
            typed
        }
    }

    /// A message of a user that asks for a command or a skill: `/name arguments`.
    pub fn invoking(typed: &str, name: &str, arguments: &str) -> Self {
        let mut message = Self::user(typed);
        let command = serde_json::json!({ "name": name, "arguments": arguments });
        message.extra.insert(COMMAND.to_owned(), command);
        message
    }

    /// A message of a user without a screen: `/name arguments` asks for a command or a skill, if there is one with this name.
    pub fn typed_line(text: impl Into<String>) -> Self {
        let text = text.into();
        let Some(body) = text.strip_prefix('/') else {
            return Self::user(text);
        };
        let (name, rest) = body.split_once(char::is_whitespace).unwrap_or((body, ""));
        let is_name = !name.is_empty()
            && name
                .chars()
                .all(|it| it.is_alphanumeric() || matches!(it, '-' | '_' | ':' | '.'));
        if !is_name {
            return Self::user(text);
        }
        Self::invoking(&text, name, rest.trim())
    }

    /// Returns the name and the arguments of the command or skill that the message asks for. `None` for others.
    pub fn command(&self) -> Option<(&str, &str)> {
        let command = self.extra.get(COMMAND)?;
        let arguments = command.get("arguments").and_then(Value::as_str);
        Some((command.get("name")?.as_str()?, arguments.unwrap_or_default()))
    }

    /// Returns the message as one that is sent in a custom mode.
    pub fn in_custom_mode(mut self, name: Option<&str>) -> Self {
        if let Some(name) = name {
            self.extra.insert(CUSTOM_MODE.to_owned(), name.into());
        }
        self
    }

    /// Returns the name of the custom mode that it is sent in. `None`: in one of the program's own.
    pub fn custom_mode(&self) -> Option<&str> {
        self.extra.get(CUSTOM_MODE)?.as_str()
    }

    /// Returns the address of the plan that the message builds, and true if the user edited it. `None` for others.
    pub fn builds(&self) -> Option<(&str, bool)> {
        let plan = self.extra.get(BUILDS)?;
        Some((
            plan.get("plan")?.as_str()?,
            plan.get("edited").and_then(Value::as_bool) == Some(true),
        ))
    }

    #[cfg(test)]
    pub fn assistant(content: impl Into<String>) -> Self {
        Self {
            role: Role::Assistant,
            ..Self::user(content)
        }
    }
}

/// The user's answer to a clarification or approval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClarificationResponse {
    pub document_id: DocumentId,
    pub outcome: Outcome,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub answers: Vec<QuestionAnswer>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

impl ClarificationResponse {
    /// An answer without a reason.
    pub fn new(document_id: DocumentId, outcome: Outcome, answers: Vec<QuestionAnswer>) -> Self {
        Self {
            document_id,
            outcome,
            answers,
            reason: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionAnswer {
    pub question_id: String,
    #[serde(default)]
    pub selected_option_ids: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub free_text: Option<String>,
    /// Decisions on the hunks of a change. The option beside them is a rejection unless all hunks are accepted
    /// unchanged, so that a reader that does not know hunks writes nothing.
    #[serde(skip_serializing_if = "Vec::is_empty", default, deserialize_with = "hunks")]
    pub hunks: Vec<HunkAnswer>,
}

/// The user's decision on one hunk of a change that needs approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HunkAnswer {
    /// Which hunk of the change, counted from 1.
    pub index: u64,
    /// True if the hunk is to be written. A hunk without a decision is not.
    pub accepted: bool,
    /// Text to write instead of the proposed one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub new_string: Option<String>,
    /// For the model.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub comment: Option<String>,
}

impl HunkAnswer {
    /// Reads a list of decisions. An unreadable one becomes a rejection of no hunk, so that a non-empty list never
    /// becomes an empty one, which would accept everything.
    pub fn list(value: &Value) -> Vec<Self> {
        let items = value.as_array().into_iter().flatten();
        let unread = Self {
            index: 0,
            accepted: false,
            new_string: None,
            comment: None,
        };
        items
            .map(|it| Self::deserialize(it).unwrap_or_else(|_| unread.clone()))
            .collect()
    }
}

fn hunks<'de, D: serde::Deserializer<'de>>(source: D) -> Result<Vec<HunkAnswer>, D::Error> {
    Ok(HunkAnswer::list(&Value::deserialize(source)?))
}

/// The body of `POST /api/v1/chat/completions`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    pub model: String,
    pub mode: Mode,
    pub context: Option<Value>,
    pub messages: Vec<Message>,
    /// `None`: all tools that the mode permits.
    pub tools: Option<Vec<String>>,
    pub available_tools: Option<Value>,
    pub stream: bool,
    pub conversation_id: Option<ConversationId>,
    /// `None`: the gateway's own choice.
    pub dialect: Option<Dialect>,
    pub extra: Map<String, Value>,
}

/// Framing of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// A: the event's name in the `event:` line.
    #[default]
    Named,
    /// B: the name as `type` inside the data, `[DONE]` at the end.
    Data,
}

impl Dialect {
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "named" => Some(Self::Named),
            "data" => Some(Self::Data),
            _ => None,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Named => "named",
            Self::Data => "data",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_parts_of_a_message_are_what_was_typed_and_what_was_pasted() {
        let check = |content: &str, pastes: Value, parts: &[(&str, PartKind)], typed: &str| {
            let mut message = Message::user(content);
            message.extra.insert(PASTES.to_owned(), pastes);
            assert_eq!(message.parts(), parts, "{content}");
            assert_eq!(message.typed(), typed, "{content}");
        };
        let (typed, pasted) = (PartKind::Typed, PartKind::Pasted);
        check(
            "fix AAA now",
            json!([[4, 7]]),
            &[("fix ", typed), ("AAA", pasted), (" now", typed)],
            "fix   now",
        );
        check(
            "fix PPP",
            json!([[4, 7, "plan"]]),
            &[("fix ", typed), ("PPP", PartKind::Plan)],
            "fix ",
        );
        check("AAA", json!([[0, 3, "novelty"]]), &[("AAA", pasted)], "AAA");
        check("AAA", json!([[0, 3]]), &[("AAA", pasted)], "AAA");
        check("", json!([]), &[], "");
        // Another program may have written anything.
        check(
            "föx",
            json!([[0, 2], [9, 4], "x", [1, 99], [3, 1], null, [-1, 2]]),
            &[("föx", typed)],
            "föx",
        );
        check("abc", json!("no list"), &[("abc", typed)], "abc");
        check(
            "abcd",
            json!([[2, 3], [0, 1]]),
            &[("ab", typed), ("c", pasted), ("d", typed)],
            "ab d",
        );
    }
}
