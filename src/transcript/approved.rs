//! Approvals and the documents of what was decided: a change, a command or a call. Both stay in the conversation; a reader
//! shows them as one.
//!
//! They belong together if they name the same call, and for a change the same file, in one answer. The error of a change or
//! command that failed is shown with it, too.

use serde_json::Value;

use crate::protocol::{Document, Kind, Outcome, QuestionKind, Response, View, document::Clarification};

/// Returns true for the kinds that an approval gives way to.
pub fn is_action(document: &Document) -> bool {
    matches!(document.kind, Kind::FileEdit | Kind::TerminalCommand | Kind::ToolCall)
}

/// Indexes of the approvals that the action at `action` followed, the last one first; none if nobody was asked.
pub fn approvals_of(response: &Response, action: usize) -> Vec<usize> {
    let Some(document) = response.documents.get(action).filter(|it| is_action(it)) else {
        return Vec::new();
    };
    let mut found = response.approvals_before(action);
    found.retain(|it| {
        let approval = response.documents.get(*it);
        approval.is_some_and(|it| is_followed_by(it, document))
    });
    found
}

/// Returns true if the document at `at` is an approval that its action followed.
pub fn is_followed(response: &Response, at: usize) -> bool {
    let Some(approval) = response.documents.get(at).filter(|it| is_decided(it)) else {
        return false;
    };
    let mut after = response.actions_after(at).filter_map(|it| response.documents.get(it));
    after.any(|it| is_action(it) && is_followed_by(approval, it))
}

/// Returns true for an approval of an action that was allowed or rejected: the action is still to come, or its rejection.
pub fn is_decided(document: &Document) -> bool {
    document.kind == Kind::Clarification && matches!(document.view(), View::Clarification(it) if subject(&it).is_some())
}

/// Returns true for an error that the action before it tells of: the action names its code in `failure`.
pub fn is_told_before(response: &Response, at: usize) -> bool {
    let error = response.documents.get(at).filter(|it| it.kind == Kind::Error);
    let action = at.checked_sub(1).and_then(|it| response.documents.get(it));
    let (Some(error), Some(action)) = (error, action.filter(|it| is_action(it))) else {
        return false;
    };
    let code = action.metadata.get("failure").and_then(|it| it.get("errorCode"));
    code.is_some() && code == error.metadata.get("errorCode")
}

fn is_followed_by(approval: &Document, action: &Document) -> bool {
    let View::Clarification(asked) = approval.view() else {
        return false;
    };
    let Some(subject) = subject(&asked).filter(|_| asked.tool_call_id.is_some()) else {
        return false;
    };
    match action.view() {
        View::FileEdit(it) => asked.tool_call_id == it.tool_call_id && subject == Subject::File(it.file_path),
        View::TerminalCommand(it) => asked.tool_call_id == it.tool_call_id && subject == Subject::Command,
        View::ToolCall(it) => asked.tool_call_id == it.tool_call_id && subject == Subject::Call,
        _ => false,
    }
}

/// The action that was decided on.
#[derive(PartialEq)]
enum Subject<'a> {
    /// A change of the file at this path.
    File(&'a str),
    Command,
    Call,
}

fn subject<'a>(view: &Clarification<'a>) -> Option<Subject<'a>> {
    let is_decided = matches!(view.outcome, Some(Outcome::Answered | Outcome::Skipped));
    let subject = view
        .subject
        .filter(|_| is_decided && view.kind == QuestionKind::Approval)?;
    let member = |name: &str| subject.get(name).or_else(|| subject.get("metadata")?.get(name));
    match Kind::parse(subject.get("type").and_then(Value::as_str)?) {
        Kind::FileEdit => member("filePath")?.as_str().map(Subject::File),
        Kind::TerminalCommand => Some(Subject::Command),
        Kind::ToolCall => Some(Subject::Call),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::protocol::{DocumentStart, Event};

    fn add(response: &mut Response, kind: Kind, metadata: Value) {
        let Value::Object(metadata) = metadata else {
            panic!("it is an object")
        };
        let id = format!("d{}", response.documents.len());
        response.apply(
            &Event::DocumentStart(DocumentStart {
                id: id.as_str().into(),
                kind,
                sequence: None,
                content: None,
                metadata,
            }),
            0,
        );
        response.apply(
            &Event::DocumentEnd {
                document: id.as_str().into(),
                final_content: None,
                metadata: Map::new(),
            },
            0,
        );
    }

    fn approval(call: &str, path: &str, outcome: &str) -> Value {
        json!({
            "kind": "approval", "toolCallId": call, "outcome": outcome,
            "subject": { "type": "file_edit", "metadata": { "filePath": path } },
            "questions": [{ "id": "approval", "text": "Allow it?", "options": [] }],
        })
    }

    #[test]
    fn an_edit_follows_the_approvals_of_its_call_and_file() {
        let mut response = Response::default();
        add(&mut response, Kind::Clarification, approval("1", "a.rs", "answered"));
        add(&mut response, Kind::Clarification, approval("1", "b.rs", "skipped"));
        add(&mut response, Kind::Clarification, approval("2", "a.rs", "answered"));
        add(&mut response, Kind::Clarification, approval("1", "a.rs", "answered"));
        add(&mut response, Kind::Clarification, approval("1", "c.rs", "cancelled"));
        for path in ["a.rs", "a.rs", "b.rs", "c.rs"] {
            add(
                &mut response,
                Kind::FileEdit,
                json!({ "filePath": path, "toolCallId": "1" }),
            );
        }
        let followed: Vec<bool> = (0..9).map(|it| is_followed(&response, it)).collect();
        assert_eq!(followed, [true, true, false, true, false, false, false, false, false]);
        let approvals: Vec<Vec<usize>> = (0..9).map(|it| approvals_of(&response, it)).collect();
        let none = Vec::new;
        assert_eq!(approvals[..5], [none(), none(), none(), none(), none()]);
        assert_eq!(approvals[5..], [vec![3, 0], vec![3, 0], vec![1], none()]);
    }

    #[test]
    fn commands_and_calls_follow_the_approval_of_their_call() {
        let mut response = Response::default();
        for kind in ["terminal_command", "tool_call"] {
            let mut asked = approval(kind, "", "answered");
            asked["subject"] = json!({ "type": kind, "metadata": {} });
            add(&mut response, Kind::Clarification, asked);
        }
        let call = |call: &str| json!({ "toolCallId": call, "toolName": "web_fetch", "command": "ls" });
        add(&mut response, Kind::TerminalCommand, call("terminal_command"));
        add(&mut response, Kind::ToolCall, call("terminal_command"));
        add(&mut response, Kind::TerminalCommand, call("another"));
        add(&mut response, Kind::ToolCall, call("tool_call"));
        let followed: Vec<bool> = (0..6).map(|it| is_followed(&response, it)).collect();
        assert_eq!(followed, [true, true, false, false, false, false]);
        let approvals: Vec<Vec<usize>> = (2..6).map(|it| approvals_of(&response, it)).collect();
        assert_eq!(approvals, [vec![0], vec![], vec![], vec![1]]);
    }

    #[test]
    fn a_failed_action_tells_of_the_error_after_it() {
        let mut response = Response::default();
        let failed = json!({ "filePath": "a.rs", "failure": { "errorCode": "EDIT_NO_MATCH" } });
        add(&mut response, Kind::FileEdit, failed.clone());
        add(&mut response, Kind::Error, json!({ "errorCode": "EDIT_NO_MATCH" }));
        add(&mut response, Kind::Error, json!({ "errorCode": "EDIT_NO_MATCH" }));
        add(&mut response, Kind::FileEdit, failed);
        add(&mut response, Kind::Error, json!({ "errorCode": "LLM_AUTH" }));
        add(&mut response, Kind::FileEdit, json!({ "filePath": "a.rs" }));
        add(&mut response, Kind::Error, json!({}));
        let told: Vec<usize> = (0..7).filter(|it| is_told_before(&response, *it)).collect();
        assert_eq!(told, [1]);
    }

    #[test]
    fn approvals_of_other_things_stand_by_themselves() {
        let mut response = Response::default();
        let mut command = approval("1", "a.rs", "answered");
        command["subject"]["type"] = "terminal_command".into();
        add(&mut response, Kind::Clarification, command);
        let mut question = approval("1", "a.rs", "answered");
        question["kind"] = "question".into();
        add(&mut response, Kind::Clarification, question);
        let mut unnamed = approval("1", "a.rs", "answered");
        unnamed["toolCallId"] = Value::Null;
        add(&mut response, Kind::Clarification, unnamed);
        add(
            &mut response,
            Kind::FileEdit,
            json!({ "filePath": "a.rs", "toolCallId": "1" }),
        );
        add(&mut response, Kind::FileEdit, json!({ "filePath": "a.rs" }));
        assert!((0..5).all(|it| !is_followed(&response, it) && approvals_of(&response, it).is_empty()));
    }
}
