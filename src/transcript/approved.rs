//! Approvals of changes and the changes that followed them. Both stay in the conversation; a reader shows them as one.
//!
//! They belong together if they name the same call and the same file, in one answer.

use serde_json::Value;

use crate::protocol::{Document, Kind, Outcome, QuestionKind, Response, View, document::Clarification};

/// Indexes of the approvals that the edit at `edit` followed, the last one first; none if nobody was asked.
pub fn approvals_of(response: &Response, edit: usize) -> Vec<usize> {
    let Some(document) = response.documents.get(edit).filter(|it| it.kind == Kind::FileEdit) else {
        return Vec::new();
    };
    let before = response.documents.iter().enumerate().take(edit).rev();
    let found = before.filter(|(_, it)| it.kind == Kind::Clarification && is_followed_by(it, document));
    found.map(|it| it.0).collect()
}

/// Returns true if the document at `at` is an approval that an edit followed.
pub fn is_followed(response: &Response, at: usize) -> bool {
    let Some(approval) = response.documents.get(at).filter(|it| is_decided(it)) else {
        return false;
    };
    let mut after = response.documents.iter().skip(at + 1);
    after.any(|it| it.kind == Kind::FileEdit && is_followed_by(approval, it))
}

/// Returns true for an approval of a change that was allowed or rejected: the change is still to come, or its rejection.
pub fn is_decided(document: &Document) -> bool {
    document.kind == Kind::Clarification && matches!(document.view(), View::Clarification(it) if subject(&it).is_some())
}

fn is_followed_by(approval: &Document, edit: &Document) -> bool {
    let (View::Clarification(asked), View::FileEdit(made)) = (approval.view(), edit.view()) else {
        return false;
    };
    asked.tool_call_id.is_some() && asked.tool_call_id == made.tool_call_id && subject(&asked) == Some(made.file_path)
}

/// The file of a change that was decided on.
fn subject<'a>(view: &Clarification<'a>) -> Option<&'a str> {
    let is_decided = matches!(view.outcome, Some(Outcome::Answered | Outcome::Skipped));
    let subject = view
        .subject
        .filter(|_| is_decided && view.kind == QuestionKind::Approval)?;
    let member = |name: &str| subject.get(name).or_else(|| subject.get("metadata")?.get(name));
    let is_edit = subject.get("type").and_then(Value::as_str) == Some("file_edit");
    member("filePath")?.as_str().filter(|_| is_edit)
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
