//! What was said so far, as messages for a model.

mod calls;
pub mod compaction;
pub mod message_history;
pub mod summary;
pub mod told;
pub mod truncate;

use std::{collections::HashSet, sync::Arc};

use serde_json::Value;

pub use self::calls::{Called, called};
use self::message_history::MessageHistory;
use crate::{
    agent::tags::guard,
    models::{Call, CallResult, ModelMessage, Part, Said},
    os::long_text::LongText,
    protocol::{ASIDE, Address, Document, DocumentId, Entry, Kind, Turn, document::COMPACT},
    transcript::{Exchange, Transcript, is_approval},
};

/// The conversation in `entries`, with calls as calls and results as results.
///
/// What was said becomes Markdown again, with fences and citations as the model wrote them; what failed outside of a call
/// is left out, because the model did not say it. A message that got no answer joins the next one: many servers refuse two
/// messages of the same side in a row. Where room was made, it is made again.
pub fn with_calls(entries: &[Arc<Entry>]) -> MessageHistory {
    let mut told = MessageHistory::default();
    add_with_calls(&folded(entries), None, &mut told);
    told
}

/// Adds what was said after `upto`, a turn and how many documents of its answer are told already; `None`: all of it.
pub fn add_with_calls(transcript: &Transcript, upto: Option<(Turn, usize)>, told: &mut MessageHistory) {
    let mut ids: HashSet<String> = told
        .messages
        .iter()
        .flat_map(ModelMessage::call_ids)
        .map(str::to_owned)
        .collect();
    for (exchange, first) in since(transcript, upto) {
        let documents = &exchange.response.documents;
        if !is_of_model(exchange) {
            make_room(documents.get(first..).unwrap_or_default(), told);
            continue;
        }
        if upto.is_none_or(|it| it.0 != exchange.turn) {
            open(exchange, told);
        }
        // Where an answer was cut, its message ends: one may cut there again.
        let cuts: Vec<DocumentId> = documents.iter().filter_map(|it| it.compaction()?.0.behind).collect();
        let mut step = ModelStep::default();
        for (at, document) in documents.iter().enumerate().skip(first) {
            if let Some((mark, summary)) = document.compaction() {
                step.end(&mut told.messages);
                compaction::apply(told, &mark, summary);
            } else if text_of_user(document) {
                step.end(&mut told.messages);
                push(&mut told.messages, ModelMessage::user(document.text()));
            } else {
                // An edit that failed says why in the document behind it.
                let error = documents.get(at + 1).filter(|it| it.kind == Kind::Error);
                match called(document, error) {
                    Some(called) if called.name == COMPACT => {}
                    Some(called) => {
                        let id = step.call(called, &mut ids);
                        let place = Address {
                            turn: exchange.turn,
                            number: exchange.response.number(at),
                        };
                        told.places.insert(id, place);
                    }
                    None if is_said(document) => step.say(&document.plain_text(), &mut told.messages),
                    None => {}
                }
            }
            if cuts.contains(&document.id) {
                step.end(&mut told.messages);
                told.border(exchange.turn, Some(document.id.clone()));
            }
        }
        step.end(&mut told.messages);
    }
}

/// The conversation as what was said in it alone, for those who have no tools.
pub fn text_only(entries: &[Arc<Entry>]) -> MessageHistory {
    let mut told = MessageHistory::default();
    add_text_only(&folded(entries), None, &mut told);
    told
}

/// Adds what was said after `upto` as [`text_only`] does.
pub fn add_text_only(transcript: &Transcript, upto: Option<(Turn, usize)>, told: &mut MessageHistory) {
    for (exchange, first) in since(transcript, upto) {
        if is_of_model(exchange) && upto.is_none_or(|it| it.0 != exchange.turn) {
            open(exchange, told);
        }
        let documents = exchange.response.documents.get(first..).unwrap_or_default();
        make_room(documents, told);
        if is_of_model(exchange) {
            push(&mut told.messages, ModelMessage::assistant(markdown(documents)));
        }
    }
}

/// The exchanges after `upto`, each with its first document that counts.
fn since(transcript: &Transcript, upto: Option<(Turn, usize)>) -> impl Iterator<Item = (&Exchange, usize)> {
    let at = upto.and_then(|(turn, _)| transcript.exchanges.iter().position(|it| it.turn == turn));
    let exchanges = transcript.exchanges.iter().enumerate().skip(at.unwrap_or_default());
    exchanges.map(move |(nth, it)| {
        let first = upto.filter(|_| Some(nth) == at).map_or(0, |it| it.1);
        (it, first.min(it.response.documents.len()))
    })
}

/// The message that opens a turn.
fn open(exchange: &Exchange, told: &mut MessageHistory) {
    let Some(message) = exchange.message.as_ref().filter(|it| !it.content.trim().is_empty()) else {
        return;
    };
    let message = ModelMessage::user(&message.content);
    if told.ends_with_summary() || !matches!(told.messages.last(), Some(ModelMessage::User(_))) {
        told.border(exchange.turn, None);
        told.messages.push(message);
    } else {
        // It joins a message without an answer, and is a turn all the same: turns are counted where one cuts.
        told.join_turn(exchange.turn);
        push(&mut told.messages, message);
    }
}

fn make_room(documents: &[Document], told: &mut MessageHistory) {
    for (mark, summary) in documents.iter().filter_map(Document::compaction) {
        compaction::apply(told, &mark, summary);
    }
}

/// Returns false for exchanges between the user and the program, which the model is not told.
pub fn is_of_model(exchange: &Exchange) -> bool {
    let message = exchange.message.as_ref();
    let is_aside = message.is_some_and(|it| it.extra.contains_key(ASIDE));
    let documents = &exchange.response.documents;
    !is_aside && (documents.is_empty() || !documents.iter().all(|it| it.metadata.contains_key(ASIDE)))
}

/// The fold of the entries.
pub fn folded(entries: &[Arc<Entry>]) -> Transcript {
    let mut transcript = Transcript::default();
    transcript.apply_all(entries);
    transcript
}

/// Returns true if a document that is no call is text of the model: errors and approvals are not.
fn is_said(document: &Document) -> bool {
    document.kind != Kind::Error && !is_approval(document)
}

/// Returns true for a message that the user sent while the answer was being made.
fn text_of_user(document: &Document) -> bool {
    let role = document.metadata.get("role").and_then(Value::as_str);
    document.kind == Kind::Text && role == Some("user")
}

/// One request's worth of an answer: text, then calls, then their results.
#[derive(Default)]
struct ModelStep {
    text: String,
    calls: Vec<Said>,
    results: Vec<CallResult>,
}

impl ModelStep {
    fn say(&mut self, text: &str, messages: &mut Vec<ModelMessage>) {
        if text.is_empty() {
            return;
        }
        if !self.calls.is_empty() {
            self.end(messages);
        }
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(text);
    }

    /// The id that the call has now.
    fn call(&mut self, called: Called, ids: &mut HashSet<String>) -> String {
        let Called {
            id,
            name,
            arguments,
            result,
            is_error,
        } = called;
        let id = unique(&id, ids);
        self.calls.push(Said::Call(Call {
            id: id.clone(),
            name: name.clone(),
            arguments,
            opaque: None,
        }));
        self.results.push(CallResult {
            call: id.clone(),
            name,
            text: result,
            is_error,
            images: Vec::new(),
        });
        id
    }

    fn end(&mut self, messages: &mut Vec<ModelMessage>) {
        let Self { text, calls, results } = std::mem::take(self);
        let mut said = Vec::new();
        if !text.trim().is_empty() {
            said.push(Said::Text(LongText::from(text).settled()));
        }
        said.extend(calls);
        push(messages, ModelMessage::Assistant(said));
        push(messages, ModelMessage::Results(results));
    }
}

/// An id that every server takes.
pub(super) fn plain_id(id: &str) -> String {
    let plain = |it: char| {
        if it.is_ascii_alphanumeric() || it == '-' {
            it
        } else {
            '_'
        }
    };
    let mut id: String = id.chars().take(ID_CHARACTERS).map(plain).collect();
    if id.is_empty() {
        id.push_str("call");
    }
    id
}

/// One that no other call of the conversation has, either.
fn unique(id: &str, ids: &mut HashSet<String>) -> String {
    let id = plain_id(id);
    let mut unique = id.clone();
    let mut number = 1;
    while !ids.insert(unique.clone()) {
        number += 1;
        unique = format!("{id}-{number}");
    }
    unique
}

/// Servers refuse longer ids; some room is left for a number.
const ID_CHARACTERS: usize = 48;

/// Adds a message, to the one before it if that is from the same side. A blank one is none.
pub fn push(messages: &mut Vec<ModelMessage>, message: ModelMessage) {
    let is_blank = match &message {
        ModelMessage::User(parts) => parts
            .iter()
            .all(|it| matches!(it, Part::Text(it) if it.trim().is_empty())),
        ModelMessage::Assistant(said) => said
            .iter()
            .all(|it| matches!(it, Said::Text(it) if it.trim().is_empty())),
        ModelMessage::Results(results) => results.is_empty(),
    };
    if is_blank {
        return;
    }
    match (messages.last_mut(), message) {
        (Some(ModelMessage::User(last)), ModelMessage::User(more)) => match (last.last_mut(), more.as_slice()) {
            (Some(Part::Text(last)), [Part::Text(more)]) => {
                last.push_str("\n\n");
                last.push_str(more);
            }
            _ => last.extend(more),
        },
        (Some(ModelMessage::Assistant(last)), ModelMessage::Assistant(more)) => {
            match (last.last_mut(), more.as_slice()) {
                (Some(Said::Text(last)), [Said::Text(more)]) => {
                    last.push_str("\n\n");
                    last.push_str(more);
                }
                _ => last.extend(more),
            }
        }
        (_, message) => messages.push(message),
    }
}

/// The messages for a server that is offered no tools, and may refuse calls of tools that it was not offered: calls and their
/// results as text. Reasoning belongs to calls that are none any more.
pub fn calls_as_text(messages: Vec<ModelMessage>) -> Vec<ModelMessage> {
    let mut plain = Vec::with_capacity(messages.len());
    for message in messages {
        let message = match message {
            ModelMessage::Assistant(said) => {
                let has_calls = said.iter().any(|it| matches!(it, Said::Call(_)));
                let said = said
                    .into_iter()
                    .filter(|it| !has_calls || !matches!(it, Said::Opaque(_)));
                ModelMessage::Assistant(said.map(call_as_text).collect())
            }
            ModelMessage::Results(results) => {
                ModelMessage::User(results.into_iter().flat_map(result_as_text).collect())
            }
            message @ ModelMessage::User(_) => message,
        };
        push(&mut plain, message);
    }
    plain
}

fn call_as_text(said: Said) -> Said {
    match said {
        Said::Call(call) => {
            let arguments = Value::Object(call.arguments);
            Said::Text(LongText::from(format!(
                "(called the tool {} with {arguments})",
                call.name
            )))
        }
        said @ (Said::Text(_) | Said::Opaque(_)) => said,
    }
}

fn result_as_text(result: CallResult) -> impl Iterator<Item = Part> {
    let what = if result.is_error { "failed" } else { "returned" };
    let text = format!("(the tool {} {what}: {})", result.name, guard(&result.text));
    std::iter::once(Part::Text(text)).chain(result.images.into_iter().map(Part::Image))
}

fn markdown(documents: &[Document]) -> String {
    let said = documents.iter();
    let said = said.filter(|it| is_said(it) && it.compaction().is_none());
    let parts: Vec<String> = said.map(Document::plain_text).filter(|it| !it.is_empty()).collect();
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use serde_json::{Map, json};

    use super::*;
    use crate::{
        agent::writer::Writer,
        journal::Log,
        protocol::{DocumentId, DocumentStart, Done, Event, Message, Mode, Position, Response},
    };

    fn user(text: &str) -> ModelMessage {
        ModelMessage::user(text)
    }

    fn assistant(text: &str) -> ModelMessage {
        ModelMessage::assistant(text)
    }

    /// A conversation of questions and what the model wrote; an answer that starts with `!` failed.
    fn check(exchanges: &[(&str, &str)], want: &[ModelMessage]) {
        let log = Log::new();
        for (question, answer) in exchanges {
            log.append(0, Event::UserMessage(Message::user(*question)));
            let mut writer = Writer::new(Mode::Agent);
            let mut events = match answer.strip_prefix('!') {
                Some(message) => writer.error("LLM_AUTH", "llm", message, ""),
                None => writer.text(answer),
            };
            events.extend(writer.flush());
            events.push(Event::Done(Done::default()));
            for event in events {
                log.append(0, event);
            }
        }
        assert_eq!(with_calls(&log.after(Position(0))).messages, want);
    }

    #[test]
    fn answers_are_markdown_again() {
        let answer = "Look:\n\n```12:14:src/cart.rs\na\n```\n\nand\n\n````md\n```\nx\n```\n````";
        check(
            &[("hi", answer), ("thanks", "Done.")],
            &[user("hi"), assistant(answer), user("thanks"), assistant("Done.")],
        );
    }

    #[test]
    fn a_message_without_an_answer_joins_the_next() {
        check(
            &[("one", "!no key"), ("two", ""), ("three", "ok")],
            &[user("one\n\ntwo\n\nthree"), assistant("ok")],
        );
    }

    #[test]
    fn a_turn_without_an_answer_counts_where_one_cuts() {
        let log = Log::new();
        for (question, answer) in [("huge", "ok"), ("stopped", ""), ("again", "ok"), ("last", "ok")] {
            log.append(0, Event::UserMessage(Message::user(question)));
            let mut writer = Writer::new(Mode::Agent);
            let mut events = writer.text(answer);
            events.extend(writer.flush());
            events.push(Event::Done(Done::default()));
            for event in events {
                log.append(0, event);
            }
        }
        let told = with_calls(&log.after(Position(0)));
        assert_eq!(told.openings().collect::<Vec<_>>(), [0, 2, 2, 4]);
        let cut = |turns| told.messages.get(told.cut(turns, None)).cloned();
        assert_eq!(cut(3), Some(user("stopped\n\nagain")));
        assert_eq!((cut(1), cut(4)), (Some(user("last")), Some(user("huge"))));
        let mut shorter = told.clone();
        shorter.summarise(told.cut(3, None), "In short.");
        assert_eq!(shorter.messages.len(), 5);
        assert_eq!(shorter.turns_from(1), 3);
    }

    fn call(id: &str, name: &str, arguments: Value) -> Said {
        let Value::Object(arguments) = arguments else {
            panic!("arguments are an object");
        };
        Said::Call(Call {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments,
            opaque: None,
        })
    }

    fn result(id: &str, name: &str, text: &str, is_error: bool) -> CallResult {
        CallResult {
            call: id.to_owned(),
            name: name.to_owned(),
            text: text.to_owned(),
            is_error,
            images: Vec::new(),
        }
    }

    /// One answer of whole documents: kind, content, metadata.
    fn answered(documents: &[(&str, Option<&str>, Value)]) -> Vec<ModelMessage> {
        with_calls(&log_of(documents).after(Position(0))).messages
    }

    fn log_of(documents: &[(&str, Option<&str>, Value)]) -> Arc<Log> {
        let log = Log::new();
        log.append(0, Event::UserMessage(Message::user("go")));
        for (nth, (kind, content, metadata)) in documents.iter().enumerate() {
            let id: DocumentId = format!("d{nth}").as_str().into();
            log.append(
                0,
                Event::DocumentStart(DocumentStart {
                    id: id.clone(),
                    kind: Kind::parse(kind),
                    sequence: None,
                    content: None,
                    metadata: Map::new(),
                }),
            );
            log.append(
                0,
                Event::DocumentEnd {
                    document: id,
                    final_content: content.map(Into::into),
                    metadata: metadata.as_object().cloned().unwrap_or_default(),
                },
            );
        }
        log.append(0, Event::Done(Done::default()));
        log
    }

    #[test]
    fn what_was_asked_before_a_call_is_not_what_the_model_said() {
        let asked = json!({ "kind": "approval", "toolCallId": "c1", "outcome": "answered",
            "subject": { "type": "terminal_command", "metadata": { "command": "rm x" } },
            "questions": [{ "id": "approval", "text": "Run this command?", "options": ["allow_once"] }],
            "answers": [{ "questionId": "approval", "selectedOptionIds": ["allow_once"] }] });
        let documents = [
            ("text", Some("I look."), json!({})),
            ("clarification", Some("it is not known"), asked),
            ("text", Some("I see."), json!({})),
        ];
        assert_eq!(answered(&documents), [user("go"), assistant("I look.\n\nI see.")]);
        assert_eq!(
            text_only(&log_of(&documents).after(Position(0))).messages,
            [user("go"), assistant("I look.\n\nI see.")]
        );
    }

    #[test]
    fn calls_come_back_as_calls_and_results_as_results() {
        let read = json!({ "toolName": "read_file", "toolCallId": "c1", "arguments": { "target_file": "a" },
            "result": { "status": "success", "data": { "content": "A" } } });
        let ran = json!({ "command": "ls", "toolCallId": "c2", "exitCode": 1, "output": "no\n", "state": "completed" });
        let said = answered(&[
            ("text", Some("I look."), json!({})),
            ("tool_call", None, read),
            ("terminal_command", None, ran),
            ("text", Some("I see."), json!({})),
        ]);
        assert_eq!(
            said,
            [
                user("go"),
                ModelMessage::Assistant(vec![
                    Said::Text("I look.".into()),
                    call("c1", "read_file", json!({ "target_file": "a" })),
                    call("c2", "run_terminal_cmd", json!({ "command": "ls" })),
                ]),
                ModelMessage::Results(vec![
                    result("c1", "read_file", "A", false),
                    result("c2", "run_terminal_cmd", "no\nexit code 1", false),
                ]),
                assistant("I see."),
            ]
        );
    }

    #[test]
    fn each_place_of_a_change_is_a_call_of_its_own_and_what_was_refused_says_so() {
        let hunk = |old: &str, new: &str, applied: &str| {
            json!({ "filePath": "a", "operation": "edit", "toolCallId": "c\n1", "toolName": "edit_file", "applied": applied,
                "reason": "no rule", "diff": { "oldString": old, "newString": new, "startLine": 1, "endLine": 1 } })
        };
        let said = answered(&[
            ("file_edit", Some("y"), hunk("x", "y", "applied")),
            ("file_edit", Some("w"), hunk("v", "w", "rejected")),
        ]);
        let change = |id: &str, old: &str, new: &str| {
            call(
                id,
                "search_replace",
                json!({ "file_path": "a", "old_string": old, "new_string": new }),
            )
        };
        assert_eq!(
            said,
            [
                user("go"),
                ModelMessage::Assistant(vec![change("c_1", "x", "y"), change("c_1-2", "v", "w")]),
                ModelMessage::Results(vec![
                    result("c_1", "search_replace", "`a` is changed.", false),
                    result("c_1-2", "search_replace", "Error [TOOL_REJECTED]: no rule", true),
                ]),
            ]
        );
    }

    #[test]
    fn what_failed_says_why_and_what_the_user_said_meanwhile_is_theirs() {
        let failed = json!({ "filePath": "a", "operation": "edit", "toolCallId": "c1", "toolName": "search_replace",
            "applied": "failed", "arguments": { "file_path": "a", "old_string": "x", "new_string": "y" } });
        let error = json!({ "errorCode": "EDIT_NO_MATCH", "source": "search_replace", "details": "Read it." });
        let said = answered(&[
            ("file_edit", None, failed),
            ("error", Some("not found"), error),
            ("text", Some("wait"), json!({ "format": "plain", "role": "user" })),
            ("text", Some("Well."), json!({})),
        ]);
        let arguments = json!({ "file_path": "a", "old_string": "x", "new_string": "y" });
        let why = "Error [EDIT_NO_MATCH]: not found\nRead it.";
        assert_eq!(
            said,
            [
                user("go"),
                ModelMessage::Assistant(vec![call("c1", "search_replace", arguments)]),
                ModelMessage::Results(vec![result("c1", "search_replace", why, true)]),
                user("wait"),
                assistant("Well."),
            ]
        );
    }

    #[test]
    fn what_is_between_the_user_and_the_program_is_not_told() {
        let log = Log::new();
        for (words, is_aside) in [("one", false), ("!! cat secret", true), ("two", false)] {
            let mut message = Message::user(words);
            if is_aside {
                message.extra.insert(ASIDE.to_owned(), true.into());
            }
            log.append(0, Event::UserMessage(message));
            let mut writer = Writer::new(Mode::Agent);
            let mut events = writer.text("answer");
            events.extend(writer.flush());
            events.push(Event::Done(Done::default()));
            for event in events {
                log.append(0, event);
            }
        }
        assert_eq!(
            with_calls(&log.after(Position(0))).messages,
            [user("one"), assistant("answer"), user("two"), assistant("answer")]
        );
    }

    #[test]
    fn an_empty_conversation_has_no_messages() {
        check(&[], &[]);
        check(&[("", "")], &[]);
    }

    fn documents(text: &str) -> Vec<(Kind, String)> {
        let mut writer = Writer::new(Mode::Agent);
        let mut events = writer.text(text);
        events.extend(writer.flush());
        let mut response = Response::default();
        for event in &events {
            response.apply(event, 0);
        }
        response
            .documents
            .iter()
            .map(|it| (it.kind.clone(), it.text().to_owned()))
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        /// Whatever documents there are: every call has a result under the same id, behind it, and no id comes twice.
        #[test]
        fn calls_and_results_pair(documents in prop::collection::vec(
            (
                prop::sample::select(vec!["text", "tool_call", "terminal_command", "file_edit", "plan", "todo_update", "error", "x"]),
                "[a-b \n]{0,3}",
                "[c\u{0}é/]{0,3}",
            ),
            0..10,
        )) {
            let documents: Vec<_> = documents
                .iter()
                .map(|(kind, text, id)| (*kind, Some(text.as_str()), json!({ "toolCallId": id, "command": "ls" })))
                .collect();
            let said = answered(&documents);
            let mut ids = HashSet::new();
            for (at, message) in said.iter().enumerate() {
                let ModelMessage::Assistant(parts) = message else { continue };
                let calls: Vec<&String> = parts.iter().filter_map(|it| match it {
                    Said::Call(call) => Some(&call.id),
                    _ => None,
                }).collect();
                for id in &calls {
                    prop_assert!(ids.insert((*id).clone()) && !id.is_empty());
                }
                let results: Vec<&String> = match said.get(at + 1) {
                    Some(ModelMessage::Results(results)) => results.iter().map(|it| &it.call).collect(),
                    _ => Vec::new(),
                };
                prop_assert_eq!(calls, results);
            }
        }

        /// Text that goes back to the model is cut into the same documents as the text that came from it.
        #[test]
        fn markdown_and_documents_are_the_same_thing(parts in prop::collection::vec(
            prop::sample::select(vec![
                "Some text.", "- a\n- b", "1. one\n\n   two", "```rust\nfn a() {}\n```", "```1:2:a b.rs\nx\n\ny\n```",
                "~~~\n```\n~~~", "````\n```\n````", "> ```\n> x\n> ```", "`code`", "```\n```",
            ]),
            0..8,
        )) {
            let whole = parts.join("\n\n");
            let mut response = Response::default();
            let mut writer = Writer::new(Mode::Agent);
            let mut events = writer.text(&whole);
            events.extend(writer.flush());
            for event in &events {
                response.apply(event, 0);
            }
            prop_assert_eq!(documents(&markdown(&response.documents)), documents(&whole));
        }
    }
}
