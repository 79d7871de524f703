//! The end of a response that cannot continue: stopped by the user, or cut off with the program or the stream.
//!
//! The text so far stays; every open document is closed and marked as incomplete. Nothing is run again.

use serde_json::{Map, Value, json};

use crate::protocol::{
    Applied, CommandState, Document, Done, Event, FinishReason, Kind, Outcome, Response, Status, View,
};

/// Why a response goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The user stopped it, which is no error.
    Cancelled,
    /// The program ended or the stream broke before its `done`.
    Interrupted,
}

impl Cut {
    const fn word(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The events that end `response`; none when it has ended already.
pub fn closing(response: &Response, cut: Cut) -> Vec<Event> {
    if !response.is_running() {
        return Vec::new();
    }
    let mut events: Vec<_> = response
        .documents
        .iter()
        .filter(|it| it.is_open())
        .map(|it| Event::DocumentEnd {
            document: it.id.clone(),
            final_content: it.content.clone(),
            metadata: cut_short(it, cut),
        })
        .collect();
    events.push(Event::Done(Done {
        status: Some(match cut {
            Cut::Cancelled => Status::Completed,
            Cut::Interrupted => Status::Error,
        }),
        finish_reason: Some(match cut {
            Cut::Cancelled => FinishReason::Cancelled,
            Cut::Interrupted => FinishReason::Interrupted,
        }),
        ..Done::default()
    }));
    events
}

/// Returns the complete metadata of an open document, marked as cut off in the way of its kind.
fn cut_short(it: &Document, cut: Cut) -> Map<String, Value> {
    let mut metadata = it.metadata.clone();
    let mut say = |name: &str, value: Value| {
        metadata.insert(name.to_owned(), value);
    };
    match it.view() {
        View::Clarification(view) => {
            if view.outcome.is_none() {
                say("outcome", json!(Outcome::Cancelled));
            }
        }
        View::ToolCall(view) => {
            if view.result.is_none() {
                say("result", json!({ "status": "error", "data": cut.word() }));
            }
            say("incomplete", true.into());
        }
        View::TerminalCommand(view) => {
            if view.state == CommandState::Running {
                say("state", json!(CommandState::Cancelled));
            }
            say("incomplete", true.into());
        }
        View::FileEdit(_) => {
            // An edit that did not say it was applied counts as applied, and nobody vouches for this one.
            if it.metadata.get("applied").is_none_or(|applied| applied == "pending") {
                say("applied", json!(Applied::Failed));
            }
            say("incomplete", true.into());
        }
        _ => say("incomplete", true.into()),
    }
    debug_assert!(it.kind != Kind::Clarification || metadata.contains_key("outcome"));
    metadata
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::DocumentStart;

    fn response(documents: &[(&str, &str, Value)]) -> Response {
        let mut response = Response::default();
        for (id, kind, metadata) in documents {
            let Value::Object(metadata) = metadata.clone() else {
                panic!("metadata is an object")
            };
            response.apply(
                &Event::DocumentStart(DocumentStart {
                    id: (*id).into(),
                    kind: Kind::parse(kind),
                    sequence: None,
                    content: Some("so far".into()),
                    metadata,
                }),
                0,
            );
        }
        response
    }

    #[test]
    fn every_open_kind_says_that_it_was_cut() {
        for (kind, metadata, member, says) in [
            ("text", json!({}), "incomplete", json!(true)),
            (
                "tool_call",
                json!({}),
                "result",
                json!({ "status": "error", "data": "cancelled" }),
            ),
            (
                "terminal_command",
                json!({ "state": "running" }),
                "state",
                json!("cancelled"),
            ),
            (
                "terminal_command",
                json!({ "state": "background" }),
                "state",
                json!("background"),
            ),
            ("file_edit", json!({}), "applied", json!("failed")),
            (
                "file_edit",
                json!({ "applied": "applied" }),
                "applied",
                json!("applied"),
            ),
            (
                "clarification",
                json!({ "kind": "approval" }),
                "outcome",
                json!("cancelled"),
            ),
            ("made_up", json!({}), "incomplete", json!(true)),
        ] {
            let mut response = response(&[("a", kind, metadata)]);
            for event in closing(&response, Cut::Cancelled) {
                response.apply(&event, 1);
            }
            let document = &response.documents[0];
            assert_eq!(document.metadata.get(member), Some(&says), "{kind}");
            assert_eq!(document.text(), "so far", "{kind} keeps what was said");
            assert!(!document.is_open());
        }
    }

    #[test]
    fn a_wanted_stop_is_no_error_and_a_cut_is_one() {
        for (cut, status, reason) in [
            (Cut::Cancelled, Status::Completed, FinishReason::Cancelled),
            (Cut::Interrupted, Status::Error, FinishReason::Interrupted),
        ] {
            let mut response = response(&[]);
            for event in closing(&response, cut) {
                response.apply(&event, 1);
            }
            let ending = response.ending.clone().expect("done came");
            assert_eq!((ending.status, ending.finish_reason), (status, reason));
            assert!(closing(&response, cut).is_empty(), "an ended response is left alone");
        }
    }
}
