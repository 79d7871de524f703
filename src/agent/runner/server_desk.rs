//! News of servers (MCP) for the user: notes, and questions, each of which becomes a document of the answer that is being made.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::{
    agent::{served, turn::Input},
    mcp::{Ask, Asked, Form, Note, Servers, read_form},
    protocol::{ClarificationResponse, Outcome, QuestionAnswer},
};

/// Times that the user is asked again because an answer does not fit.
const MOST_TRIES: u32 = 3;

/// A question that has come, and where its answer goes.
pub type Incoming = (Ask, oneshot::Sender<Asked>);

/// Something that a server has for the user.
pub enum ServerNews {
    Note(Note),
    Asked(Incoming),
}

/// The notes and questions that come, and the questions that are open.
#[derive(Default)]
pub struct ServerDesk {
    notes: Option<mpsc::UnboundedReceiver<Note>>,
    incoming: Option<mpsc::UnboundedReceiver<Incoming>>,
    open: BTreeMap<u64, OpenForm>,
    count: u64,
}

struct OpenForm {
    form: Form,
    reply: oneshot::Sender<Asked>,
    tries: u32,
    /// Answers that fit, while others are asked for again.
    kept: Vec<QuestionAnswer>,
}

impl ServerDesk {
    /// Takes the notes of these servers, and their questions where somebody is there who can answer.
    pub fn of(servers: Option<&Arc<Servers>>, is_attended: bool) -> Self {
        let Some(servers) = servers else {
            return Self::default();
        };
        let notes = servers.notes();
        if !is_attended {
            return Self {
                notes,
                ..Self::default()
            };
        }
        let (to, incoming) = mpsc::unbounded_channel();
        servers.set_asker(Some(Arc::new(move |ask| {
            let (reply, answer) = oneshot::channel();
            let is_sent = to.send((ask, reply)).is_ok();
            Box::pin(async move {
                let answer = if is_sent { answer.await.ok() } else { None };
                answer.unwrap_or_else(|| json!({ "action": "cancel" }))
            })
        })));
        Self {
            notes,
            incoming: Some(incoming),
            ..Self::default()
        }
    }

    /// Waits for the next news; for ever where none can come. `is_begun`: something was said in the conversation; before that there
    /// is no place for notes.
    pub async fn next(&mut self, is_begun: bool) -> ServerNews {
        tokio::select! {
            Some(note) = received(self.notes.as_mut()), if is_begun => ServerNews::Note(note),
            Some(asked) = received(self.incoming.as_mut()) => ServerNews::Asked(asked),
            else => std::future::pending().await,
        }
    }

    /// Opens a question; `None`: it is not shown, and the server has heard so.
    pub fn open(&mut self, (ask, reply): Incoming, is_answering: bool) -> Option<Input> {
        let form = match read_form(&ask) {
            Ok(form) if is_answering => form,
            Ok(_) => {
                let _ = reply.send(json!({ "action": "cancel" }));
                return None;
            }
            Err(why) => {
                tracing::warn!(server = ask.server, why, "a question of a server is not shown");
                let _ = reply.send(json!({ "action": "decline" }));
                return None;
            }
        };
        self.count += 1;
        let input = asking(self.count, form.questions(), form.lead.clone());
        let open = OpenForm {
            form,
            reply,
            tries: 1,
            kept: Vec::new(),
        };
        self.open.insert(self.count, open);
        Some(input)
    }

    /// Takes the user's answers to a question. Returns those parts of it again whose answers do not fit.
    pub fn answered(&mut self, number: u64, dealt: &ClarificationResponse) -> Option<Input> {
        let mut open = self.open.remove(&number)?;
        let answer: Value = match dealt.outcome {
            Outcome::Answered => {
                let mut answers = std::mem::take(&mut open.kept);
                answers.extend(dealt.answers.iter().cloned());
                match open.form.answered(&answers) {
                    Ok(answer) => answer,
                    Err(unfit) if open.tries < MOST_TRIES => {
                        open.tries += 1;
                        let (names, reasons): (Vec<_>, Vec<_>) = unfit.into_iter().unzip();
                        let questions = open.form.questions_of(&names);
                        let lead = format!("{}\n{}", open.form.lead, reasons.join("\n"));
                        answers.retain(|it| !names.contains(&it.question_id));
                        open.kept = answers;
                        self.open.insert(number, open);
                        return Some(asking(number, questions, lead));
                    }
                    Err(_) => json!({ "action": "cancel" }),
                }
            }
            Outcome::Skipped => json!({ "action": "decline" }),
            _ => json!({ "action": "cancel" }),
        };
        if let Some(url) = open.form.url.as_ref().filter(|_| answer["action"] == "accept") {
            served::browse(url);
        }
        let _ = open.reply.send(answer);
        None
    }
}

async fn received<T>(from: Option<&mut mpsc::UnboundedReceiver<T>>) -> Option<T> {
    from?.recv().await
}

const fn asking(number: u64, questions: Value, lead: String) -> Input {
    Input::ServerAsks {
        number,
        lead,
        questions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::DocumentId;

    fn dealt(outcome: Outcome, text: &str) -> ClarificationResponse {
        ClarificationResponse {
            document_id: DocumentId::from("d"),
            outcome,
            answers: vec![QuestionAnswer {
                question_id: "n".to_owned(),
                selected_option_ids: Vec::new(),
                free_text: Some(text.to_owned()),
                hunks: Vec::new(),
            }],
            reason: None,
        }
    }

    fn ask() -> Ask {
        let schema = json!({ "properties": { "n": { "type": "integer" } }, "required": ["n"] });
        Ask {
            server: "s".to_owned(),
            params: json!({ "message": "How many?", "requestedSchema": schema }),
        }
    }

    #[test]
    fn answers_that_fit_are_kept_while_another_is_asked_for_again() {
        let schema = json!({ "properties": { "a": { "type": "string" }, "n": { "type": "integer" } } });
        let ask = Ask {
            server: "s".to_owned(),
            params: json!({ "message": "Who?", "requestedSchema": schema }),
        };
        let answer = |id: &str, text: &str| QuestionAnswer {
            question_id: id.to_owned(),
            selected_option_ids: Vec::new(),
            free_text: Some(text.to_owned()),
            hunks: Vec::new(),
        };
        let mut questions = ServerDesk::default();
        let (reply, mut got) = oneshot::channel();
        questions.open((ask, reply), true);
        let mut first = dealt(Outcome::Answered, "");
        first.answers = vec![answer("a", "Ada"), answer("n", "many")];
        let Some(Input::ServerAsks { questions: asked, .. }) = questions.answered(1, &first) else {
            panic!("it is asked again");
        };
        let ids: Vec<_> = asked.as_array().expect("a list").iter().map(|it| &it["id"]).collect();
        assert_eq!(ids, ["n"]);
        assert!(questions.answered(1, &dealt(Outcome::Answered, "3")).is_none());
        let content = json!({ "a": "Ada", "n": 3 });
        assert_eq!(got.try_recv(), Ok(json!({ "action": "accept", "content": content })));
    }

    #[test]
    fn an_answer_that_does_not_fit_is_asked_for_again() {
        let mut questions = ServerDesk::default();
        let (reply, mut answer) = oneshot::channel();
        assert!(questions.open((ask(), reply), true).is_some());
        let Some(Input::ServerAsks { number: 1, lead, .. }) = questions.answered(1, &dealt(Outcome::Answered, "many"))
        else {
            panic!("it is asked again");
        };
        assert!(lead.contains("whole number"), "{lead}");
        assert!(questions.answered(1, &dealt(Outcome::Answered, "3")).is_none());
        assert_eq!(
            answer.try_recv(),
            Ok(json!({ "action": "accept", "content": { "n": 3 } }))
        );
        for (outcome, action) in [(Outcome::Skipped, "decline"), (Outcome::Cancelled, "cancel")] {
            let (reply, mut answer) = oneshot::channel();
            questions.open((ask(), reply), true);
            let number = questions.count;
            assert!(questions.answered(number, &dealt(outcome, "")).is_none());
            assert_eq!(answer.try_recv(), Ok(json!({ "action": action })));
        }
        // Nothing is being answered: nobody looks at questions.
        let (reply, mut answer) = oneshot::channel();
        assert!(questions.open((ask(), reply), false).is_none());
        assert_eq!(answer.try_recv(), Ok(json!({ "action": "cancel" })));
    }
}
