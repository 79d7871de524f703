//! Questions and approvals of a run: printed, decided by a program, answered from standard input, or declined.

use std::collections::HashSet;

use futures::future::{BoxFuture, FutureExt as _};
use serde_json::Value;

use super::{
    Format, Printer,
    approver::{self, Approver, Decision},
    json,
};
use crate::{
    protocol::{
        ClarificationResponse, Command, Document, DocumentId, Kind, Message, Outcome, QuestionAnswer, Response, Turn,
        View,
        document::{Question, QuestionOption},
    },
    transcript::{DocumentIndex, Transcript, is_approval},
};

/// Refused questions and permissions of the run.
pub(super) struct Questions {
    /// True while questions can be answered from standard input.
    pub(super) is_heard: bool,
    pub(super) approver: Option<Approver>,
    /// True if the run began with somebody who may answer: a program, or who writes standard input.
    pub(super) may_answer: bool,
    /// The question that the run was ended for.
    pub(super) unanswered: Option<DocumentIndex>,
    /// The decision of the program that is being waited for.
    pub(super) approval: Option<BoxFuture<'static, (Turn, DocumentId, Decision)>>,
    /// Questions that were printed or given to the program.
    pub(super) asked: HashSet<(Turn, DocumentId)>,
    /// True if questions are for us to answer; those of a recording are not.
    pub(super) is_asked: bool,
    /// True for a recording, which takes answers whatever it says.
    pub(super) is_replay: bool,
    /// True if a server runs the calls: no flag of ours allows them.
    pub(super) is_afar: bool,
    pub(super) wants_sandbox: bool,
    pub(super) no_sandbox: bool,
    pub(super) refused: bool,
}

impl Questions {
    /// Returns true if somebody may answer the question: a program, or who writes standard input.
    pub(super) fn is_answerable(&self, document: &Document) -> bool {
        self.is_heard || (self.approver.is_some() && is_for_program(document))
    }
}

/// Returns true for an approval that a program may decide: of a single call, and not of another mode.
fn is_for_program(document: &Document) -> bool {
    let subject = document.metadata.get("subject").and_then(|it| it.get("metadata"));
    let tool = subject.and_then(|it| it.get("toolName")).and_then(Value::as_str);
    is_approval(document) && tool != Some("switch_mode")
}

/// Returns what a question is about, for a line: of an approval the action, otherwise the words of the question.
fn what_is_asked(document: &Document) -> String {
    let subject = document.metadata.get("subject").and_then(|it| it.get("metadata"));
    let member = |name: &str| subject.and_then(|it| it.get(name));
    let text = |name: &str| member(name).and_then(Value::as_str);
    let action = if let Some(command) = text("command") {
        Some(command.to_owned())
    } else if let Some(path) = text("filePath") {
        Some(format!("{} {path}", text("operation").unwrap_or("edit")))
    } else {
        let arguments = member("arguments").map(Value::to_string).unwrap_or_default();
        text("toolName").map(|it| format!("{it} {arguments}").trim_end().to_owned())
    };
    action.unwrap_or_else(|| {
        let View::Clarification(it) = document.view() else {
            return String::new();
        };
        it.questions.first().map_or(it.content, |it| it.text).to_owned()
    })
}

/// Returns a message that follows a question which ended the last answer, as its answer: the option that it names, or its words.
/// Other messages, and those after an approval, stay as they are.
pub(super) fn answering(transcript: &Transcript, message: Message) -> Message {
    let place = transcript.open_question();
    let document = place.and_then(|it| transcript.get(it)).filter(|it| !is_approval(it));
    let asked = document.and_then(|it| Some((it, it.clarification()?)));
    let Some((document, asked)) = asked.filter(|_| message.clarification_response.is_none()) else {
        return message;
    };
    let words = message.content.trim();
    let answer = |question: &Question<'_>, option: Option<&QuestionOption<'_>>| QuestionAnswer {
        question_id: question.id.to_owned(),
        selected_option_ids: option.map(|it| it.id.to_owned()).into_iter().collect(),
        free_text: option.is_none().then(|| words.to_owned()),
        hunks: Vec::new(),
    };
    let is_meant = |it: &&QuestionOption<'_>| [it.id, it.label].iter().any(|it| it.eq_ignore_ascii_case(words));
    let chosen = asked.questions.iter();
    let chosen = chosen.filter_map(|it| Some(answer(it, Some(it.options.iter().find(is_meant)?))));
    let mut answers: Vec<QuestionAnswer> = chosen.collect();
    if answers.is_empty() {
        // Words that name no option go to the first question that takes words.
        let free = asked.questions.iter().find(|it| it.allow_free_text);
        answers.extend(free.map(|it| answer(it, None)));
    }
    if answers.is_empty() {
        return message;
    }
    let response = ClarificationResponse::new(document.id.clone(), Outcome::Answered, answers);
    Message {
        content: asked.readable(&response),
        clarification_response: Some(response),
        ..message
    }
}

impl Printer<'_> {
    /// The open question of a running answer that can only be answered after its end, while nobody could give an answer.
    pub(super) fn deaf_question(&self) -> Option<DocumentIndex> {
        if !self.questions.is_asked || self.questions.is_heard || self.questions.unanswered.is_some() {
            return None;
        }
        let exchange = self
            .transcript
            .exchanges
            .len()
            .checked_sub(1)
            .filter(|it| *it >= self.first)?;
        let response = &self.transcript.exchanges.get(exchange)?.response;
        if !response.is_running() || self.is_hearing(response) {
            return None;
        }
        let is_open = |it: &Document| it.kind == Kind::Clarification && it.is_open();
        let document = response.documents.iter().position(is_open)?;
        Some(DocumentIndex { exchange, document })
    }

    /// Returns true if the answer takes answers to its questions while it is made.
    fn is_hearing(&self, response: &Response) -> bool {
        self.questions.is_replay || response.origin.capabilities.iter().any(|it| it == "live_input")
    }

    /// Refuses an open approval, and ends the answer at an open question, since nobody can answer. A run that had somebody who
    /// answers skips the question instead: what it started goes on.
    ///
    /// Only while the response runs and can take it. An answer that has to be the next message is not given: nobody wrote it.
    pub(super) fn decline(&mut self) -> Option<Command> {
        let place = self
            .transcript
            .open_question()
            .filter(|it| self.questions.is_asked && it.exchange >= self.first)?;
        let exchange = self.transcript.exchanges.get(place.exchange)?;
        let document = self.transcript.get(place).filter(|it| it.is_open())?;
        let number = place.document as u64 + 1;
        let is_hearing = self.is_hearing(&exchange.response);
        let is_new = !self.questions.asked.contains(&(exchange.turn, document.id.clone()));
        if self.questions.is_heard || (is_hearing && self.questions.is_answerable(document)) {
            self.announce(place);
        }
        let exchange = self.transcript.exchanges.get(place.exchange)?;
        let document = self.transcript.get(place)?;
        self.questions.asked.insert((exchange.turn, document.id.clone()));
        // A program's answer to what has ended would be a message that nobody wrote.
        let approver = self.questions.approver.as_ref().filter(|_| is_hearing);
        if let Some(approver) = approver.filter(|_| is_for_program(document)) {
            if is_new {
                let (turn, id) = (exchange.turn, document.id.clone());
                let asked = approver.clone().ask(document.clone(), number);
                self.questions.approval = Some(asked.map(move |it| (turn, id, it)).boxed());
            }
            return None;
        }
        if self.questions.is_heard || !is_hearing {
            return None;
        }
        let reason = "the question could not be shown: sheaf runs without a screen";
        if is_approval(document) {
            let what = what_is_asked(document);
            if !std::mem::replace(&mut self.questions.refused, true) {
                self.outputs.say("refused", &what);
            }
        } else if !self.questions.may_answer {
            self.questions.unanswered = Some(place);
            return Some(Command::Cancel);
        } else if is_new {
            let what = what_is_asked(document);
            self.outputs.say("skipped", &what);
        }
        let document = self.transcript.get(place)?;
        Some(Command::Answer {
            turn: exchange.turn,
            response: ClarificationResponse {
                document_id: document.id.clone(),
                outcome: Outcome::Skipped,
                answers: Vec::new(),
                reason: Some(reason.to_owned()),
            },
        })
    }

    /// Prints the line for a question that waits, once.
    fn announce(&mut self, place: DocumentIndex) {
        let exchange = self.transcript.exchanges.get(place.exchange);
        let (Some(exchange), Some(document)) = (exchange, self.transcript.get(place)) else {
            return;
        };
        let is_new = self.questions.asked.insert((exchange.turn, document.id.clone()));
        if is_new && self.format == Format::StreamJson {
            let line = self.stream.question(exchange.turn, document, place.document as u64 + 1);
            self.is_broken |= self.outputs.answer(&json::line(&line)).is_err();
        }
    }

    /// Prints the line for the question that the answer has ended with, for who may answer it.
    pub(super) fn announce_last(&mut self) {
        if let Some(place) = self.waiting_question().filter(|_| self.questions.is_heard) {
            self.announce(place);
        }
    }

    /// Returns the answer to an approval that the program decided, and reports what it refused.
    pub(super) fn decided(&mut self, turn: Turn, id: &DocumentId, decision: &Decision) -> Option<Command> {
        self.questions.approval = None;
        let mut exchanges = self.transcript.exchanges.iter();
        let document = exchanges.find(|it| it.turn == turn)?.response.get(id)?.clone();
        let why = match decision {
            Decision::Allow => None,
            Decision::Deny(message) => Some(format!("the program that decides approvals said no: {message}")),
            Decision::Failed(why) => {
                self.questions.refused = true;
                Some(format!("the program that decides approvals gave no answer: {why}"))
            }
        };
        if let Some(why) = why {
            let what = what_is_asked(&document);
            let why = why.trim_end_matches([':', ' ']);
            self.outputs.say("refused", &format!("{what}\n{why}"));
        }
        Some(Command::Answer {
            turn,
            response: approver::response(&document, decision),
        })
    }

    /// Returns the command for an answer from standard input. `None`, and a message, if there is no such open question.
    pub(super) fn answer(&mut self, response: ClarificationResponse) -> Option<Command> {
        let exchange = self.transcript.exchanges.last()?;
        let is_open = exchange.response.get(&response.document_id).is_some_and(|it| {
            self.transcript
                .is_open_question(self.transcript.exchanges.len() - 1, it)
        });
        if !is_open {
            let id = &response.document_id;
            self.outputs.say(
                "warning",
                &format!("`{id}` is not an open question; the answer is left out"),
            );
            return None;
        }
        Some(Command::Answer {
            turn: exchange.turn,
            response,
        })
    }
}
