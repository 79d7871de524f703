//! Calls and their results as strict servers want them.
//!
//! Each call has one result right behind it, and an id of few characters that no other call has. What a conversation
//! with another provider, or one that was cut, has left behind is brought into this form.

use std::collections::{HashMap, HashSet, VecDeque};

use super::{Call, CallResult, ModelMessage, Part, Said};

/// The longest id and name that every server takes.
const WORD_LIMIT: usize = 64;

/// Result of a call that has none.
const NOTHING: &str = "There is no result.";

/// `messages` with every call and every result in its pair. The order stays.
pub fn paired(messages: &[ModelMessage]) -> Vec<ModelMessage> {
    let mut all = Vec::with_capacity(messages.len());
    let mut ids = Ids::default();
    let mut open = VecDeque::new();
    for message in messages {
        match message {
            ModelMessage::User(_) => {
                close(&mut open, &mut all);
                all.push(message.clone());
            }
            ModelMessage::Assistant(said) => {
                close(&mut open, &mut all);
                let said = said.iter().map(|it| match it {
                    Said::Call(call) => {
                        let fresh = Call {
                            id: ids.fresh(&call.id),
                            name: word(&call.name, "unnamed"),
                            ..call.clone()
                        };
                        open.push_back(OpenCall {
                            ours: call.id.clone(),
                            id: fresh.id.clone(),
                            name: fresh.name.clone(),
                        });
                        Said::Call(fresh)
                    }
                    Said::Text(_) | Said::Opaque(_) => it.clone(),
                });
                all.push(ModelMessage::Assistant(said.collect()));
            }
            ModelMessage::Results(results) => {
                let mut found = Vec::new();
                let mut lost = Vec::new();
                for it in results {
                    let at = open.iter().position(|call: &OpenCall| call.ours == it.call);
                    match at.and_then(|at| open.remove(at)) {
                        Some(call) => found.push(CallResult {
                            call: call.id,
                            name: call.name,
                            ..it.clone()
                        }),
                        // Its call is not in the conversation any more.
                        None => {
                            lost.push(Part::Text(format!("A result of {}:\n{}", it.name, it.text)));
                            lost.extend(it.images.iter().cloned().map(Part::Image));
                        }
                    }
                }
                found.extend(open.drain(..).map(nothing));
                if !found.is_empty() {
                    all.push(ModelMessage::Results(found));
                }
                if !lost.is_empty() {
                    all.push(ModelMessage::User(lost));
                }
            }
        }
    }
    close(&mut open, &mut all);
    all
}

/// A call that waits for its result.
struct OpenCall {
    /// The id in the conversation.
    ours: String,
    /// The id in the request.
    id: String,
    name: String,
}

fn close(open: &mut VecDeque<OpenCall>, all: &mut Vec<ModelMessage>) {
    if !open.is_empty() {
        all.push(ModelMessage::Results(open.drain(..).map(nothing).collect()));
    }
}

fn nothing(call: OpenCall) -> CallResult {
    CallResult {
        call: call.id,
        name: call.name,
        text: NOTHING.to_owned(),
        is_error: true,
        images: Vec::new(),
    }
}

#[derive(Default)]
struct Ids {
    used: HashSet<String>,
    /// Number of uses of an id, so that a thousand equal ones are not tried one after the other.
    met: HashMap<String, usize>,
}

impl Ids {
    fn fresh(&mut self, id: &str) -> String {
        let plain = word(id, "call");
        let count = self.met.entry(plain.clone()).or_default();
        let mut fresh = plain.clone();
        while !self.used.insert(fresh.clone()) {
            *count += 1;
            let ending = format!("-{count}");
            let kept = plain.len().min(WORD_LIMIT - ending.len());
            fresh = plain.get(..kept).unwrap_or_default().to_owned() + &ending;
        }
        fresh
    }
}

/// `text` in the characters that servers take, and not too long.
fn word(text: &str, empty: &str) -> String {
    let kept = |it: char| {
        if it.is_ascii_alphanumeric() || it == '_' || it == '-' {
            it
        } else {
            '_'
        }
    };
    let word: String = text.chars().take(WORD_LIMIT).map(kept).collect();
    if word.is_empty() { empty.to_owned() } else { word }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use serde_json::Map;

    use super::*;

    fn call(id: &str) -> Said {
        Said::Call(Call {
            id: id.to_owned(),
            name: "read".to_owned(),
            arguments: Map::new(),
            opaque: None,
        })
    }

    fn result(id: &str, text: &str) -> CallResult {
        CallResult {
            call: id.to_owned(),
            name: "read".to_owned(),
            text: text.to_owned(),
            is_error: false,
            images: Vec::new(),
        }
    }

    /// `user | calls a b | results a:x b!`
    fn show(messages: &[ModelMessage]) -> String {
        let words = messages.iter().map(|it| match it {
            ModelMessage::User(parts) => parts.iter().fold("user".to_owned(), |all, it| match it {
                Part::Text(text) => all + " " + text,
                Part::Image(_) => all + " image",
            }),
            ModelMessage::Assistant(said) => said.iter().fold("calls".to_owned(), |all, it| match it {
                Said::Call(call) => all + " " + &call.id,
                Said::Text(_) | Said::Opaque(_) => all,
            }),
            ModelMessage::Results(results) => results.iter().fold("results".to_owned(), |all, it| {
                all + " " + &it.call + if it.is_error { "!" } else { ":" } + if it.is_error { "" } else { &it.text }
            }),
        });
        words.collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn every_call_has_its_result_and_an_id_of_its_own() {
        let calls = |ids: &[&str]| ModelMessage::Assistant(ids.iter().map(|it| call(it)).collect());
        let results = |all: &[(&str, &str)]| ModelMessage::Results(all.iter().map(|it| result(it.0, it.1)).collect());
        let user = || ModelMessage::user("go");
        let cases = [
            (
                "pairs stay",
                vec![user(), calls(&["a", "b"]), results(&[("a", "x"), ("b", "y")]), user()],
                "user go | calls a b | results a:x b:y | user go",
            ),
            (
                "a call that was never answered, before the user speaks and at the end",
                vec![calls(&["a"]), user(), calls(&["b"])],
                "calls a | results a! | user go | calls b | results b!",
            ),
            (
                "one of two results is missing",
                vec![calls(&["a", "b"]), results(&[("b", "y")]), user()],
                "calls a b | results b:y a! | user go",
            ),
            (
                "a result without a call",
                vec![
                    results(&[("z", "x")]),
                    calls(&["a"]),
                    results(&[("a", "x"), ("z", "y")]),
                ],
                "user A result of read:\nx | calls a | results a:x | user A result of read:\ny",
            ),
            (
                "an id that comes again",
                vec![
                    calls(&["call_0"]),
                    results(&[("call_0", "x")]),
                    calls(&["call_0", "call_0"]),
                    results(&[("call_0", "y"), ("call_0", "z")]),
                ],
                "calls call_0 | results call_0:x | calls call_0-1 call_0-2 | results call_0-1:y call_0-2:z",
            ),
            (
                "ids with characters that not every server takes",
                vec![
                    calls(&["functions.read:0", ""]),
                    results(&[("functions.read:0", "x"), ("", "y")]),
                ],
                "calls functions_read_0 call | results functions_read_0:x call:y",
            ),
        ];
        for (name, messages, want) in cases {
            assert_eq!(show(&paired(&messages)), want, "{name}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn whatever_the_conversation_every_id_is_fit_and_answered_at_once(
            turns in proptest::collection::vec((0..3_u8, proptest::collection::vec("[ab.é]{0,70}", 0..4)), 0..12),
        ) {
            let messages: Vec<ModelMessage> = turns
                .iter()
                .map(|(kind, ids)| match kind {
                    0 => ModelMessage::user("go"),
                    1 => ModelMessage::Assistant(ids.iter().map(|it| call(it)).collect()),
                    _ => ModelMessage::Results(ids.iter().map(|it| result(it, "x")).collect()),
                })
                .collect();
            let all = paired(&messages);
            let mut seen = HashSet::new();
            for (at, message) in all.iter().enumerate() {
                let ModelMessage::Assistant(said) = message else { continue };
                let ids: Vec<&str> = said
                    .iter()
                    .filter_map(|it| match it {
                        Said::Call(call) => Some(call.id.as_str()),
                        Said::Text(_) | Said::Opaque(_) => None,
                    })
                    .collect();
                for id in &ids {
                    prop_assert!(seen.insert((*id).to_owned()), "twice {id}");
                    prop_assert!(!id.is_empty() && id.len() <= WORD_LIMIT && id.is_ascii(), "{id}");
                }
                let answered: HashSet<&str> = match all.get(at + 1) {
                    Some(ModelMessage::Results(results)) => results.iter().map(|it| it.call.as_str()).collect(),
                    _ => HashSet::new(),
                };
                prop_assert_eq!(ids.into_iter().collect::<HashSet<_>>(), answered);
            }
        }
    }
}
