//! `sheaf replay FILE --assert OTHER`: compares the documents at the end of two recordings, so that a good conversation
//! can test a new one.
//!
//! Members that differ each time and mean nothing (ids, times, log paths) are ignored.

use serde_json::{Map, Value};

use crate::{
    link::replay::Recording,
    protocol::{Document, Entry},
    text::WordList,
    transcript::{Exchange, Transcript},
};

/// Metadata members that differ each time.
const IGNORED_MEMBERS: WordList =
    WordList("duration_ms durationMs toolCallId documentId commandId logPath incomplete sandbox workingDirectory");

/// Maximum number of characters shown of a different text.
const MAX_EXCERPT_CHARS: usize = 120;

/// Returns the differences from `wanted`, a line each. Empty: the documents are the same.
pub fn differences(found: &Recording, wanted: &Recording) -> Vec<String> {
    compare(&fold(&found.entries()), &fold(&wanted.entries()))
}

fn fold(entries: &[Entry]) -> Transcript {
    let mut transcript = Transcript::default();
    for entry in entries {
        transcript.apply(entry);
    }
    transcript
}

/// Compares all branches, and the branch at the end.
pub fn compare(found: &Transcript, wanted: &Transcript) -> Vec<String> {
    let mut said = Vec::new();
    let (ours, theirs) = (found.all(), wanted.all());
    if ours.len() != theirs.len() {
        said.push(format!("{} turns instead of {}", ours.len(), theirs.len()));
    }
    for (one, other) in ours.into_iter().zip(theirs) {
        exchange(one, other, &mut said);
    }
    // By the order of turns: each recording numbers them in its own way.
    let way = |it: &Transcript| {
        let all = it.all();
        let nth = |one: &Exchange| all.iter().position(|it| it.turn == one.turn).map_or(0, |it| it + 1);
        let turns = it.exchanges.iter().map(|it| nth(it).to_string());
        turns.collect::<Vec<_>>().join(" ")
    };
    if way(found) != way(wanted) {
        said.push(format!(
            "it follows the turns {} instead of {}",
            way(found),
            way(wanted)
        ));
    }
    said
}

fn exchange(found: &Exchange, wanted: &Exchange, said: &mut Vec<String>) {
    let turn = wanted.turn.0;
    if found.asked() != wanted.asked() {
        said.push(format!("{turn} message: {}", differ(found.asked(), wanted.asked())));
    }
    let (one, other) = (&found.response.documents, &wanted.response.documents);
    for at in 0..one.len().max(other.len()) {
        let longer = if at < other.len() { wanted } else { found };
        let number = longer.response.number(at);
        match (one.get(at), other.get(at)) {
            (Some(found), Some(wanted)) => document(&format!("{turn}.{number}"), found, wanted, said),
            (Some(found), None) => said.push(format!("{turn}.{number} {}: is too much", found.kind)),
            (None, Some(wanted)) => said.push(format!("{turn}.{number} {}: is missing", wanted.kind)),
            (None, None) => {}
        }
    }
    let ending = |it: &Exchange| it.response.ending.as_ref().map(|it| it.finish_reason.to_string());
    if ending(found) != ending(wanted) {
        let word = |it| ending(it).unwrap_or_else(|| "no end".to_owned());
        said.push(format!("{turn} end: {} instead of {}", word(found), word(wanted)));
    }
}

fn document(address: &str, found: &Document, wanted: &Document, said: &mut Vec<String>) {
    if found.kind != wanted.kind {
        said.push(format!("{address}: {} instead of {}", found.kind, wanted.kind));
        return;
    }
    if found.text() != wanted.text() {
        said.push(format!(
            "{address} {}: {}",
            wanted.kind,
            differ(found.text(), wanted.text())
        ));
    }
    let (one, other) = (without_ignored(&found.metadata), without_ignored(&wanted.metadata));
    for name in one.keys().chain(other.keys().filter(|it| !one.contains_key(*it))) {
        let (one, other) = (one.get(name), other.get(name));
        if one != other {
            let text = |it: Option<&Value>| it.map_or_else(|| "nothing".to_owned(), Value::to_string);
            said.push(format!(
                "{address} {}: {name} is {}",
                wanted.kind,
                differ(&text(one), &text(other))
            ));
        }
    }
}

/// Returns the metadata without [`IGNORED_MEMBERS`], at any depth.
fn without_ignored(metadata: &Map<String, Value>) -> Map<String, Value> {
    let kept = metadata
        .iter()
        .filter(|(name, value)| !IGNORED_MEMBERS.contains(name) && !value.is_null());
    kept.map(|(name, value)| {
        let value = match value {
            Value::Object(inner) => Value::Object(without_ignored(inner)),
            other => other.clone(),
        };
        (name.clone(), value)
    })
    .collect()
}

/// Returns excerpts of both texts from shortly before their first difference.
fn differ(found: &str, wanted: &str) -> String {
    let same = found
        .chars()
        .zip(wanted.chars())
        .take_while(|(one, other)| one == other)
        .count();
    let part = |text: &str| {
        let from = same.saturating_sub(20);
        let shown: String = text.chars().skip(from).take(MAX_EXCERPT_CHARS).collect();
        let before = if from > 0 { "…" } else { "" };
        let behind = if text.chars().count() > from + MAX_EXCERPT_CHARS {
            "…"
        } else {
            ""
        };
        format!("{before}{shown}{behind}").replace('\n', "⏎")
    };
    format!("`{}` instead of `{}`", part(found), part(wanted))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::protocol::{Branch, Done, Event, Message, Position, Turn};

    fn recording(output: &str, exit: i64, text: &str) -> Recording {
        let lines = [
            serde_json::json!({ "n": 1, "turn": 1, "at": 5, "event": "user_message", "data": { "message": { "role": "user", "content": "go" } } }),
            serde_json::json!({ "n": 2, "turn": 1, "at": 5, "event": "document_start", "data": { "id": "d1", "type": "terminal_command", "sequence": 1, "metadata": {} } }),
            serde_json::json!({ "n": 3, "turn": 1, "at": 6, "event": "document_end", "data": { "documentId": "d1", "finalContent": null,
                "metadata": { "command": "ls", "output": output, "exitCode": exit, "duration_ms": exit + 7, "toolCallId": output } } }),
            serde_json::json!({ "n": 4, "turn": 1, "at": 6, "event": "document_start", "data": { "id": "d2", "type": "text", "sequence": 2, "metadata": {} } }),
            serde_json::json!({ "n": 5, "turn": 1, "at": 7, "event": "document_end", "data": { "documentId": "d2", "finalContent": text, "metadata": {} } }),
            serde_json::json!({ "n": 6, "turn": 1, "at": 7, "event": "done", "data": {} }),
        ];
        let text: String = lines.iter().map(|it| format!("{it}\n")).collect();
        Recording::read("a recording", text.as_bytes()).expect("a recording")
    }

    #[test]
    fn what_is_not_the_same_is_named_and_what_passes_is_not() {
        let wanted = recording("a", 0, "Done.");
        assert_eq!(differences(&recording("a", 0, "Done."), &wanted), Vec::<String>::new());
        assert_eq!(
            differences(&recording("b", 1, "Done!"), &wanted),
            [
                "1.1 terminal_command: output is `\"b\"` instead of `\"a\"`",
                "1.1 terminal_command: exitCode is `1` instead of `0`",
                "1.2 text: `Done!` instead of `Done.`",
            ]
        );
    }

    #[test]
    fn what_lies_on_another_branch_is_compared_too() {
        let branched = |text: &str, after: u32| {
            let lines = recording("a", 0, text);
            let mut lines: Vec<Entry> = lines.entries().to_vec();
            let mut say = |turn: u32, event: Event| {
                lines.push(Entry {
                    position: Position(lines.len() as u64 + 1),
                    turn: Turn(turn),
                    at_ms: 9,
                    event,
                });
            };
            say(
                1,
                Event::Branch(Branch {
                    after: Turn(0),
                    ..Branch::default()
                }),
            );
            say(2, Event::UserMessage(Message::user("anew")));
            say(2, Event::Done(Done::default()));
            say(
                2,
                Event::Branch(Branch {
                    after: Turn(after),
                    ..Branch::default()
                }),
            );
            Recording::new("branched", lines)
        };
        let wanted = branched("Done.", 2);
        assert_eq!(differences(&branched("Done.", 2), &wanted), Vec::<String>::new());
        assert_eq!(
            differences(&branched("Done!", 2), &wanted),
            ["1.2 text: `Done!` instead of `Done.`"]
        );
        assert_eq!(
            differences(&branched("Done.", 1), &wanted),
            ["it follows the turns 1 instead of 2"]
        );
    }
}
