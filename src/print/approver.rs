//! A program of the user's that decides approvals, for a run without a screen.
//!
//! It gets each approval as JSON on its standard input and answers with JSON on its standard output. Everything but a
//! sound answer is a refusal: an exit code, a timeout, words that are no answer.

use std::{path::PathBuf, time::Duration};

use serde_json::{Value, json};

use crate::{
    os::process::{self, Command},
    protocol::{ClarificationResponse, Document, Outcome, QuestionAnswer, View},
};

/// Maximum size of an answer, in bytes.
const ANSWER_BYTES: usize = 64 << 10;

/// Longest excerpt of an answer in an error, in characters.
const EXCERPT_CHARACTERS: usize = 200;

/// A command that decides approvals.
#[derive(Clone, Debug)]
pub struct Approver {
    /// Line for `sh`.
    pub command: String,
    /// Time that it has for one answer.
    pub timeout: Duration,
    /// Id of the conversation.
    pub session: String,
    /// Absolute path; the command runs there.
    pub workspace: PathBuf,
}

/// A decision about one approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Allow,
    /// The program said no, perhaps with a reason for the model.
    Deny(String),
    /// There is no answer, for this reason.
    Failed(String),
}

impl Approver {
    /// Asks the program about an open approval.
    pub async fn ask(self, document: Document, number: u64) -> Decision {
        let question = json!({
            "type": "approval",
            "session_id": self.session,
            "cwd": self.workspace,
            "document": document.to_json(number),
        });
        let command = Command::shell(&self.command)
            .folder(&self.workspace)
            .input(format!("{question}\n"))
            .timeout(self.timeout)
            .limit_bytes(ANSWER_BYTES)
            .without_terminal();
        match command.run().await {
            Ok(output) if !output.status.success() => {
                let said = String::from_utf8_lossy(&output.stderr);
                Decision::Failed(format!("it failed ({}){}", output.status, excerpt(&said)))
            }
            Ok(output) if output.truncated => {
                Decision::Failed(format!("its answer is longer than {ANSWER_BYTES} bytes"))
            }
            Ok(output) => read(&String::from_utf8_lossy(&output.stdout)),
            Err(process::Error::TimedOut { after, .. }) => Decision::Failed(format!(
                "it did not answer within {} s (approvals.program_timeout)",
                after.as_secs_f64()
            )),
            Err(error) => Decision::Failed(error.to_string()),
        }
    }
}

/// Returns the part of a text that an error shows, on a line of its own; empty for none.
fn excerpt(text: &str) -> String {
    let text: String = text.trim().chars().take(EXCERPT_CHARACTERS).collect();
    if text.is_empty() { text } else { format!(": {text}") }
}

/// Reads `{"behavior": "allow"}` or `{"behavior": "deny", "message": "…"}`.
fn read(text: &str) -> Decision {
    let Ok(Value::Object(answer)) = serde_json::from_str::<Value>(text.trim()) else {
        return Decision::Failed(format!("its answer is no JSON object{}", excerpt(text)));
    };
    let message = match answer.get("message") {
        None | Some(Value::Null) => "",
        Some(Value::String(message)) => message,
        Some(_) => return Decision::Failed("`message` in its answer is no text".to_owned()),
    };
    // Changed arguments would be run without having been judged.
    if answer.get("updatedInput").is_some_and(|it| !it.is_null()) {
        return Decision::Failed("it wants to change the call (`updatedInput`), which is not supported".to_owned());
    }
    match answer.get("behavior").and_then(Value::as_str) {
        Some("allow") => Decision::Allow,
        Some("deny") => Decision::Deny(message.to_owned()),
        Some(_) | None => Decision::Failed("`behavior` in its answer is neither \"allow\" nor \"deny\"".to_owned()),
    }
}

/// Returns the answer to an approval that the decision means.
pub fn response(document: &Document, decision: &Decision) -> ClarificationResponse {
    let questions = match document.view() {
        View::Clarification(it) => it.questions,
        _ => Vec::new(),
    };
    let option = if *decision == Decision::Allow {
        "allow_once"
    } else {
        "reject_once"
    };
    let reason = match decision {
        Decision::Allow => None,
        Decision::Deny(message) => Some(message.clone()).filter(|it| !it.trim().is_empty()),
        Decision::Failed(why) => Some(format!("the program that decides approvals gave no answer: {why}")),
    };
    let answers = questions.iter().map(|it| QuestionAnswer {
        question_id: it.id.to_owned(),
        selected_option_ids: vec![option.to_owned()],
        free_text: reason.clone(),
        hunks: Vec::new(),
    });
    ClarificationResponse {
        document_id: document.id.clone(),
        outcome: Outcome::Answered,
        answers: answers.collect(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::protocol::{DocumentStart, Event, Kind, Response};

    fn approval() -> Document {
        let mut response = Response::default();
        let metadata = json!({ "kind": "approval", "questions": [{ "id": "approval", "text": "Run?", "options": [
            { "id": "allow_once", "label": "Allow" }, { "id": "reject_once", "label": "Reject" }] }] });
        let start = DocumentStart {
            id: "q".into(),
            kind: Kind::Clarification,
            sequence: None,
            content: None,
            metadata: metadata.as_object().cloned().unwrap_or_default(),
        };
        response.apply(&Event::DocumentStart(start), 0);
        response.documents.remove(0)
    }

    async fn ask(command: &str) -> Decision {
        let approver = Approver {
            command: command.to_owned(),
            timeout: Duration::from_millis(300),
            session: "s-1".to_owned(),
            workspace: std::env::temp_dir(),
        };
        approver.ask(approval(), 3).await
    }

    #[tokio::test]
    async fn only_a_sound_answer_allows() {
        for (command, wanted) in [
            (r#"echo '{"behavior":"allow"}'"#, Ok(Decision::Allow)),
            (
                r#"grep -q '"session_id":"s-1"' && echo '{"behavior":"allow"}'"#,
                Ok(Decision::Allow),
            ),
            (
                r#"grep -q '"text":"Run?"' && echo '{"behavior":"deny","message":"not today"}'"#,
                Ok(Decision::Deny("not today".to_owned())),
            ),
            (r#"echo '{"behavior":"allow"}'; exit 1"#, Err("exit status: 1")),
            ("echo allow", Err("no JSON object: allow")),
            ("true", Err("no JSON object")),
            (r#"echo '{"behavior":"yes"}'"#, Err("neither")),
            (r#"echo '{"allow":true}'"#, Err("neither")),
            (
                r#"echo '{"behavior":"allow","updatedInput":{"command":"x"}}'"#,
                Err("updatedInput"),
            ),
            (r#"echo '{"behavior":"deny","message":7}'"#, Err("no text")),
            ("sleep 60", Err("did not answer within 0.3 s")),
            ("no-such-program-here", Err("exit status: 127")),
        ] {
            match (ask(command).await, wanted) {
                (found, Ok(wanted)) => assert_eq!(found, wanted, "{command}"),
                (Decision::Failed(why), Err(wanted)) => assert!(why.contains(wanted), "{command}: {why}"),
                (found, Err(_)) => panic!("{command}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_decision_is_an_answer_to_each_question() {
        let document = approval();
        let option = |it: &Decision| response(&document, it).answers[0].selected_option_ids[0].clone();
        assert_eq!(option(&Decision::Allow), "allow_once");
        assert_eq!(option(&Decision::Deny(String::new())), "reject_once");
        assert_eq!(option(&Decision::Failed("x".to_owned())), "reject_once");
        let denied = response(&document, &Decision::Deny("not today".to_owned()));
        assert_eq!(denied.reason.as_deref(), Some("not today"));
    }
}
