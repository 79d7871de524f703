//! What must not leave with an export: keys of the usual services, and whatever the rules of the user name.
//!
//! Every text of every event is gone through, so that each form of an export is the fold of the same words. A rule that cannot
//! be read stops the export: it is there because something has to stay.

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

/// What is taken out beside keys.
#[derive(Clone, Debug, Default)]
pub struct Rules(Vec<Regex>);

/// A rule that is no regular expression.
#[derive(Debug, thiserror::Error)]
#[error("`{rule}` is no regular expression, and nothing was exported")]
pub struct RuleError {
    pub rule: String,
    #[source]
    pub source: regex::Error,
}

impl Rules {
    pub fn new<'a>(rules: impl IntoIterator<Item = &'a str>) -> Result<Self, RuleError> {
        let regex = |rule: &str| {
            Regex::new(rule).map_err(|source| RuleError {
                rule: rule.to_owned(),
                source,
            })
        };
        rules.into_iter().map(regex).collect::<Result<_, _>>().map(Self)
    }

    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = redact(text);
        for rule in &self.0 {
            if rule.is_match(&text) {
                text = Cow::Owned(rule.replace_all(&text, REDACTED).into_owned());
            }
        }
        text
    }

    /// The same conversation without it.
    pub fn entries(&self, entries: Vec<Entry>) -> Vec<Entry> {
        joined(entries).into_iter().filter_map(|it| self.entry(it)).collect()
    }

    /// What cannot be read any more without it is left out.
    fn entry(&self, entry: Entry) -> Option<Entry> {
        let Some(mut written) = record::to_json(&entry) else {
            return Some(entry);
        };
        let is_changed = written.get_mut("data").is_some_and(|it| self.value(it, true));
        if is_changed {
            record::from_json(written).ok()
        } else {
            Some(entry)
        }
    }

    /// Whether there was something to take out. `is_ours`: the members are the protocol's, and not somebody's data.
    fn value(&self, value: &mut Value, is_ours: bool) -> bool {
        match value {
            Value::String(text) => match self.text(text) {
                Cow::Owned(without) if without != *text => {
                    *text = without;
                    true
                }
                Cow::Owned(_) | Cow::Borrowed(_) => false,
            },
            // A telephone number is one, too.
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
            if is_ours && is_bone(name) && !value.is_object() && !value.is_array() {
                continue;
            }
            // A tool's own words: any name may stand for anything in there.
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

/// Members that hold the conversation together, and are no words of anybody.
fn is_bone(name: &str) -> bool {
    name.ends_with("Id")
        || matches!(
            name,
            "id" | "type" | "role" | "upto" | "outcome" | "applied" | "operation" | "mode"
        )
}

/// With pieces of a text as one: what a rule names may lie across them. Those of a document that has ended say nothing that
/// its end does not say.
fn joined(entries: Vec<Entry>) -> Vec<Entry> {
    let said = entries.iter().filter_map(|it| match &it.event {
        Event::DocumentEnd {
            document,
            final_content: Some(_),
            ..
        } => Some((it.turn, document.clone())),
        _ => None,
    });
    let said: HashSet<_> = said.collect();
    // Members that the end of a document says whole.
    let ended = entries.iter().filter_map(|it| match &it.event {
        Event::DocumentEnd { document, metadata, .. } => {
            let name = (it.turn, document.clone());
            Some(metadata.keys().map(move |it| (name.clone(), it.clone())))
        }
        _ => None,
    });
    let ended: HashSet<((Turn, DocumentId), String)> = ended.flatten().collect();
    let mut whole: Vec<Entry> = Vec::new();
    // Where the text of a document, and the newest thought of a turn, stand among these.
    let mut texts: HashMap<(Turn, DocumentId), usize> = HashMap::new();
    let mut thoughts: HashMap<Turn, usize> = HashMap::new();
    // Where what was appended to a member stands.
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
            // What is thought behind a document is another thought.
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
        export::{Form, Whole},
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
        let rules = Rules::new([r"\b030 \d+", "(?i)ada lovelace"]).expect("rules");
        let whole = Whole::new(Session::fresh("/home/ada lovelace/shop", 1), conversation());
        for form in [Form::Html, Form::Markdown, Form::Json, Form::Jsonl] {
            let before = whole.with_branches(form);
            assert!(before.contains("1234567") && before.contains("Lovelace"), "{form:?}");
            let written = whole.redacted(&rules).with_branches(form);
            for gone in ["1234567", "030 ", "Lovelace", "lovelace", "klmnopq"] {
                assert!(!written.contains(gone), "{form:?} {gone}: {written}");
            }
            for kept in ["[redacted]", "ring", "call"] {
                assert!(written.contains(kept), "{form:?} {kept}: {written}");
            }
        }
    }

    #[test]
    fn without_rules_keys_go_and_all_else_stays_as_it_was() {
        let whole = Whole::new(Session::fresh("/w", 1), conversation());
        let plain = whole.redacted(&Rules::default()).write(Form::Json);
        let key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123";
        assert!(whole.write(Form::Json).contains(key));
        assert_eq!(plain, whole.write(Form::Json).replace(key, REDACTED));
    }

    #[test]
    fn a_rule_that_cannot_be_read_is_named() {
        let error = Rules::new(["fine", "a("]).expect_err("it is no rule").to_string();
        assert!(error.contains("`a(`"), "{error}");
    }
}
