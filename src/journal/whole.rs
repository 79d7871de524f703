//! A `document_end` that carries the whole document, as the log needs it: it drops the deltas then.
//!
//! Foreign writers end a document with what is new, or with nothing at all.

use serde_json::{Map, Value};

use crate::protocol::{Event, Response};

/// The event as the log may keep it. `response` is the fold that has just applied it.
pub fn settled(event: Event, response: &Response) -> Event {
    let Event::DocumentEnd {
        document,
        final_content,
        metadata,
    } = event
    else {
        return event;
    };
    let Some(whole) = response.get(&document) else {
        return Event::DocumentEnd {
            document,
            final_content,
            metadata,
        };
    };
    let mut members = whole.metadata.clone();
    keep_removals(&mut members, &metadata);
    Event::DocumentEnd {
        final_content: whole.content.clone(),
        document,
        metadata: members,
    }
}

/// A member that the patch removes has to be removed for readers that have seen it in a delta.
fn keep_removals(members: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, value) in patch {
        match (value, members.get_mut(name)) {
            (Value::Null, None) => {
                members.insert(name.clone(), Value::Null);
            }
            (Value::Object(patch), Some(Value::Object(members))) => keep_removals(members, patch),
            (
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_),
                _,
            ) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::{
        journal::Log,
        protocol::{DocumentStart, Kind, Position},
    };

    fn members(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }

    #[test]
    fn a_late_reader_and_an_early_one_see_the_same_whatever_the_end_leaves_out() {
        let end = |final_content: Option<&str>, metadata| Event::DocumentEnd {
            document: "a".into(),
            final_content: final_content.map(Into::into),
            metadata: members(metadata),
        };
        for (kind, end) in [
            ("text", end(None, json!({}))),
            ("text", end(Some("other"), json!({ "format": null }))),
            ("terminal_command", end(None, json!({ "exitCode": 0, "output": null }))),
            ("terminal_command", end(None, json!({ "env": { "a": null } }))),
            ("file_edit", end(None, json!({ "diff": null, "seen": null }))),
        ] {
            let log = Log::new();
            let mut early = Response::default();
            let mut follower = log.follow(Position(0));
            let mut fold = Response::default();
            for event in [
                Event::DocumentStart(DocumentStart {
                    id: "a".into(),
                    kind: Kind::parse(kind),
                    sequence: None,
                    content: None,
                    metadata: members(json!({ "seen": 1, "env": { "a": 1, "b": 2 } })),
                }),
                Event::ContentDelta {
                    document: "a".into(),
                    delta: "one ".into(),
                },
                Event::MetadataDelta {
                    document: "a".into(),
                    metadata: members(json!({ "format": "plain", "diff": { "oldString": "x" } })),
                    append: vec![("output".into(), "ok\n".into())],
                },
                end,
            ] {
                fold.apply(&event, 0);
                log.append(0, settled(event, &fold));
                let mut batch = Vec::new();
                follower.take(&mut batch);
                for entry in batch {
                    early.apply(&entry.event, 0);
                }
            }
            let mut late = Response::default();
            let kept = log.after(Position(0));
            assert_eq!(kept.len(), 2, "deltas are gone");
            for entry in kept.iter().map(Arc::as_ref) {
                late.apply(&entry.event, 0);
            }
            assert_eq!(late.documents, fold.documents, "late {kind}");
            assert_eq!(early.documents, fold.documents, "early {kind}");
        }
    }
}
