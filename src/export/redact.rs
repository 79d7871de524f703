//! Redaction of exports: removes keys of common services, and matches of the user's rules.
//!
//! The texts of all events are redacted before any format is made from them. A rule that cannot be parsed stops the
//! export, because the user meant to keep something back.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use regex::Regex;
use serde_json::{Map, Value};

use crate::{
    protocol::{DocumentId, Entry, Event, Turn, codec::record},
    text::redact::{REDACTED, redact},
};

/// The user's redaction rules. Keys are removed even without any.
#[derive(Clone, Debug, Default)]
pub struct RedactionRules(Vec<Regex>);

/// A rule that is no regular expression.
#[derive(Debug, thiserror::Error)]
#[error("`{rule}` is not a regular expression; nothing was exported")]
pub struct RuleError {
    pub rule: String,
    #[source]
    pub source: regex::Error,
}

impl RedactionRules {
    /// Compiles regular expressions.
    pub fn new<'a>(rules: impl IntoIterator<Item = &'a str>) -> Result<Self, RuleError> {
        let regex = |rule: &str| {
            Regex::new(rule).map_err(|source| RuleError {
                rule: rule.to_owned(),
                source,
            })
        };
        rules.into_iter().map(regex).collect::<Result<_, _>>().map(Self)
    }

    /// Returns a text with keys and matches replaced by `[redacted]`.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = redact(text);
        for rule in &self.0 {
            if rule.is_match(&text) {
                text = Cow::Owned(rule.replace_all(&text, REDACTED).into_owned());
            }
        }
        text
    }

    /// Redacts log entries. Deltas of one text are joined first, so that matches across them are found.
    pub fn entries(&self, entries: Vec<Entry>) -> Vec<Entry> {
        join_deltas(entries)
            .into_iter()
            .filter_map(|it| self.entry(it))
            .collect()
    }

    /// Redacts one entry. `None` if it cannot be parsed afterwards.
    fn entry(&self, entry: Entry) -> Option<Entry> {
        let Some(mut render) = record::to_json(&entry) else {
            return Some(entry);
        };
        let is_changed = render.get_mut("data").is_some_and(|it| self.value(it, true));
        if is_changed {
            record::from_json(render).ok()
        } else {
            Some(entry)
        }
    }

    /// Redacts a value. Returns true if something was removed. `is_ours`: its members are the protocol's, not a tool's
    /// data.
    fn value(&self, value: &mut Value, is_ours: bool) -> bool {
        match value {
            Value::String(text) => match self.text(text) {
                Cow::Owned(without) if without != *text => {
                    *text = without;
                    true
                }
                Cow::Owned(_) | Cow::Borrowed(_) => false,
            },
            // A telephone number may be a number in a tool's data.
            Value::Number(number) if !is_ours => match self.text(&number.to_string()) {
                Cow::Owned(without) if without != number.to_string() => {
                    *value = Value::String(without);
                    true
                }
                Cow::Owned(_) | Cow::Borrowed(_) => false,
            },
            Value::Array(items) => {
                let mut is_changed = false;
                for item in items {
                    is_changed |= self.value(item, is_ours);
                }
                is_changed
            }
            Value::Object(members) => self.members(members, is_ours),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn members(&self, members: &mut Map<String, Value>, is_ours: bool) -> bool {
        let mut is_changed = false;
        for (name, value) in members.iter_mut() {
            if is_ours && is_structural(name) && !value.is_object() && !value.is_array() {
                continue;
            }
            // Data of tools: any member may contain any text.
            let is_ours = is_ours && !matches!(name.as_str(), "arguments" | "result" | "data" | "context");
            is_changed |= self.value(value, is_ours);
        }
        if !is_ours {
            let named = |it: &String| matches!(self.text(it), Cow::Owned(without) if without != *it);
            if members.keys().any(named) {
                let old = std::mem::take(members);
                members.extend(
                    old.into_iter()
                        .map(|(name, value)| (self.text(&name).into_owned(), value)),
                );
                is_changed = true;
            }
        }
        is_changed
    }
}

/// Returns true for members that link the conversation together and contain no text.
fn is_structural(name: &str) -> bool {
    name.ends_with("Id")
        || matches!(
            name,
            "id" | "type" | "role" | "upto" | "outcome" | "applied" | "operation" | "mode"
        )
}

/// Joins deltas of the same text into one entry. Drops those of an ended document whose end contains the text.
fn join_deltas(entries: Vec<Entry>) -> Vec<Entry> {
    let said = entries.iter().filter_map(|it| match &it.event {
        Event::DocumentEnd {
            document,
            final_content: Some(_),
            ..
        } => Some((it.turn, document.clone())),
        _ => None,
    });
    let said: HashSet<_> = said.collect();
    // Metadata members that a document's end contains completely.
    let ended = entries.iter().filter_map(|it| match &it.event {
        Event::DocumentEnd { document, metadata, .. } => {
            let name = (it.turn, document.clone());
            Some(metadata.keys().map(move |it| (name.clone(), it.clone())))
        }
        _ => None,
    });
    let ended: HashSet<((Turn, DocumentId), String)> = ended.flatten().collect();
    let mut whole: Vec<Entry> = Vec::new();
    // Index in `whole` of each document's text, and of each turn's newest thought.
    let mut texts: HashMap<(Turn, DocumentId), usize> = HashMap::new();
    let mut thoughts: HashMap<Turn, usize> = HashMap::new();
    // Index in `whole` of the text appended to each metadata member.
    let mut appended: HashMap<((Turn, DocumentId), String), usize> = HashMap::new();
    for mut entry in entries {
        if let Event::MetadataDelta {
            document,
            metadata,
            append,
        } = &mut entry.event
        {
            let name = (entry.turn, document.clone());
            for member in metadata.keys() {
                appended.remove(&(name.clone(), member.clone()));
            }
            append.retain(|(member, piece)| {
                let member = (name.clone(), member.clone());
                if ended.contains(&member) {
                    return false;
                }
                let at = *appended.entry(member.clone()).or_insert(whole.len());
                let Some(Event::MetadataDelta { append, .. }) = whole.get_mut(at).map(|it| &mut it.event) else {
                    return true;
                };
                match append.iter_mut().find(|it| it.0 == member.1) {
                    Some((_, text)) => text.push_str(piece),
                    None => append.push((member.1, piece.clone())),
                }
                false
            });
            if metadata.is_empty() && append.is_empty() {
                continue;
            }
        }
        let place = match &entry.event {
            Event::ContentDelta { document, .. } => {
                let name = (entry.turn, document.clone());
                if said.contains(&name) {
                    continue;
                }
                *texts.entry(name).or_insert(whole.len())
            }
            Event::ThinkingDelta { .. } => *thoughts.entry(entry.turn).or_insert(whole.len()),
            // Thinking after a document is a new thought.
            Event::DocumentStart(_) => {
                thoughts.remove(&entry.turn);
                whole.len()
            }
            _ => whole.len(),
        };
        match (whole.get_mut(place).map(|it| &mut it.event), &entry.event) {
            (Some(Event::ContentDelta { delta: text, .. }), Event::ContentDelta { delta, .. })
            | (Some(Event::ThinkingDelta { delta: text }), Event::ThinkingDelta { delta }) => text.push_str(delta),
            _ => whole.push(entry),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        export::{ExportFormat, ExportedConversation},
        journal::{Log, file::Session},
        protocol::{DocumentStart, Done, Kind, Message, Position},
    };

    fn conversation() -> Vec<Entry> {
        let log = Log::new();
        let start = |id: &str, kind, metadata: Value| {
            Event::DocumentStart(DocumentStart {
                id: id.into(),
                kind,
                sequence: None,
                content: None,
                metadata: metadata.as_object().cloned().unwrap_or_default(),
            })
        };
        log.append(
            1,
            Event::UserMessage(Message::user("ring 030 1234567 for Ada Lovelace")),
        );
        for delta in ["Ada Love", "lace is asked"] {
            log.append(
                1,
                Event::ThinkingDelta {
                    delta: delta.to_owned(),
                },
            );
        }
        log.append(1, start("a", Kind::Text, json!({})));
        for delta in ["sk-proj-abcdefghijk", "lmnopqrstuvwxyz0123 and 030 12", "34567"] {
            log.append(
                1,
                Event::ContentDelta {
                    document: "a".into(),
                    delta: delta.to_owned(),
                },
            );
        }
        let command = json!({ "command": "call 030 1234567", "output": "Ada Lovelace\n", "exitCode": 0 });
        log.append(1, start("b", Kind::TerminalCommand, json!({})));
        log.append(
            1,
            Event::DocumentEnd {
                document: "b".into(),
                final_content: None,
                metadata: command.as_object().cloned().unwrap_or_default(),
            },
        );
        let call = json!({ "toolName": "crm", "arguments": { "customerId": "Ada Lovelace", "Ada Lovelace": { "id": ["030 1234567"] } } });
        log.append(1, start("c", Kind::ToolCall, call));
        log.append(1, start("d", Kind::TerminalCommand, json!({ "command": "call" })));
        for piece in ["Ada Love", "lace answers, sk-proj-abcdefghijk", "lmnopqrstuvwxyz0123"] {
            log.append(
                1,
                Event::MetadataDelta {
                    document: "d".into(),
                    metadata: Map::new(),
                    append: vec![("output".to_owned(), piece.to_owned())],
                },
            );
        }
        log.append(1, Event::Done(Done::default()));
        log.after(Position(0)).iter().map(|it| (**it).clone()).collect()
    }

    #[test]
    fn what_rules_name_is_in_no_form_of_an_export() {
        let rules = RedactionRules::new([r"\b030 \d+", "(?i)ada lovelace"]).expect("rules");
        let whole = ExportedConversation::new(Session::fresh("/home/ada lovelace/shop", 1), conversation());
        for form in [
            ExportFormat::Html,
            ExportFormat::Markdown,
            ExportFormat::Json,
            ExportFormat::Jsonl,
        ] {
            let before = whole.with_branches(form);
            assert!(before.contains("1234567") && before.contains("Lovelace"), "{form:?}");
            let render = whole.redacted(&rules).with_branches(form);
            for gone in ["1234567", "030 ", "Lovelace", "lovelace", "klmnopq"] {
                assert!(!render.contains(gone), "{form:?} {gone}: {render}");
            }
            for kept in ["[redacted]", "ring", "call"] {
                assert!(render.contains(kept), "{form:?} {kept}: {render}");
            }
        }
    }

    #[test]
    fn without_rules_keys_go_and_all_else_stays_as_it_was() {
        let whole = ExportedConversation::new(Session::fresh("/w", 1), conversation());
        let plain = whole.redacted(&RedactionRules::default()).write(ExportFormat::Json);
        let key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123";
        assert!(whole.write(ExportFormat::Json).contains(key));
        assert_eq!(plain, whole.write(ExportFormat::Json).replace(key, REDACTED));
    }

    #[test]
    fn a_rule_that_cannot_be_read_is_named() {
        let error = RedactionRules::new(["fine", "a("])
            .expect_err("it is no rule")
            .to_string();
        assert!(error.contains("`a(`"), "{error}");
    }
}
