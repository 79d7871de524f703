//! Reads a conversation from a request: the previous turns as a log, and the message to answer.
//!
//! A link reads its conversation from a log, so a stateless gateway builds one from the request. Documents of previous
//! answers are passed on unchanged; an answer that came as text alone becomes one text document.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::json;

use super::refusal::Refusal;
use crate::{
    journal::Log,
    protocol::{
        ConversationId, Done, Event, Message, Position, Request, ResponseStart, Role, Submit,
        codec::{Decoder, Identity},
    },
};

/// Model name that clients send when they do not choose one.
const ANY_MODEL: &str = "default";

/// Returns the last message of `request`, ready to send to a link. Refused with 400 if it is not the user's.
pub fn submit(request: &Request) -> Result<Submit, Refusal> {
    let last = request.messages.last().filter(|it| it.role == Role::User);
    let message = last
        .cloned()
        .ok_or_else(|| Refusal::new(StatusCode::BAD_REQUEST, "the last of `messages` has to be the user's"))?;
    let model = request.model.trim();
    Ok(Submit {
        message,
        mode: request.mode,
        model: (!model.is_empty() && model != ANY_MODEL).then(|| model.to_owned()),
    })
}

/// Returns true unless the client says with `streamOptions.liveInput: false` that it cannot answer questions while the
/// stream runs.
pub fn accepts_answers(request: &Request) -> bool {
    let options = request.extra.get("streamOptions");
    options
        .and_then(|it| it.get("liveInput"))
        .and_then(serde_json::Value::as_bool)
        != Some(false)
}

/// Member of a message with the client's context: workspace, open files, rules.
const CONTEXT: &str = "context";

/// Adds the client's context to a message, unless the last message in `log` that has one carries the same.
pub fn attach_context(message: &mut Message, context: Option<&serde_json::Value>, log: &Log) {
    // The protocol puts the context beside the messages; one inside a message is not trusted.
    message.extra.shift_remove(CONTEXT);
    let Some(context) = context else { return };
    let entries = log.after(Position(0));
    let told = entries.iter().rev().find_map(|it| match &it.event {
        Event::UserMessage(it) => it.extra.get(CONTEXT),
        _ => None,
    });
    if told != Some(context) {
        message.extra.insert(CONTEXT.to_owned(), context.clone());
    }
}

/// Returns a log of the conversation before the last message. `now_ms` is the time of its entries, in milliseconds
/// since the Unix epoch.
pub fn before(request: &Request, now_ms: u64) -> Arc<Log> {
    let log = Log::new();
    let earlier = request.messages.split_last().map_or(&[][..], |(_, earlier)| earlier);
    let last_answer = earlier.iter().rposition(|it| it.role == Role::Assistant);
    for (at, message) in earlier.iter().enumerate() {
        if message.role == Role::Assistant {
            // The newest answer carries the conversation's id, for a link that stores conversations elsewhere.
            let conversation = request.conversation_id.clone().filter(|_| Some(at) == last_answer);
            for event in answer(message, conversation) {
                log.append(now_ms, event);
            }
        } else {
            log.append(now_ms, Event::UserMessage(message.clone()));
        }
    }
    log
}

/// Returns the events of a previous answer.
fn answer(message: &Message, conversation: Option<ConversationId>) -> Vec<Event> {
    let start = Event::ResponseStart(ResponseStart {
        conversation_id: conversation,
        ..ResponseStart::default()
    });
    let documents = if message.documents.is_empty() {
        json!([{ "id": "doc_001", "type": "text", "content": message.content }])
    } else {
        json!(message.documents)
    };
    let body = json!({ "documents": documents }).to_string();
    let identity = Identity::local("", crate::protocol::Mode::default(), 0);
    // Text that is not a list of documents decodes to one text document, so this does not fail.
    let events = Decoder::body(identity, &body).unwrap_or_default();
    let events = events.into_iter().filter(|it| {
        !matches!(
            it,
            Event::ResponseStart(_) | Event::Done(_) | Event::Notice(_) | Event::Unknown { .. }
        )
    });
    std::iter::once(start)
        .chain(events)
        .chain([Event::Done(Done::default())])
        .collect()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::{protocol::Turn, transcript::Transcript};

    fn request(messages: serde_json::Value) -> Request {
        let body = json!({ "model": "m", "messages": messages, "conversationId": "conv_1" });
        Request::from_json(&body).unwrap().0
    }

    /// `turn: message / kind text, kind text`.
    fn shown(log: &Arc<Log>) -> Vec<String> {
        let mut transcript = Transcript::default();
        transcript.apply_all(&log.after(Position(0)));
        let exchanges = transcript.exchanges.iter().map(|it| {
            let documents = it.response.documents.iter();
            let documents: Vec<_> = documents.map(|it| format!("{} {}", it.kind, it.plain_text())).collect();
            let message = it.message.as_ref().map_or("", |it| it.content.as_str());
            format!("{}: {message} / {}", it.turn, documents.join(", "))
        });
        exchanges.collect()
    }

    #[test]
    fn a_conversation_becomes_turns() {
        let request = request(json!([
            { "role": "system", "content": "be short" },
            { "role": "user", "content": "one" },
            { "role": "assistant", "content": "two words" },
            { "role": "user", "content": "three" },
            { "role": "assistant", "content": "ignored", "documents": [
                { "id": "doc_001", "type": "text", "content": "see" },
                { "id": "doc_002", "type": "code_block", "content": "x", "language": "rust" },
            ] },
            { "role": "user", "content": "four" },
        ]));
        let log = before(&request, 7);
        assert_eq!(
            shown(&log),
            [
                "1: be short / ",
                "2: one / text two words",
                "3: three / text see, code_block ```rust\nx\n```",
            ]
        );
        assert_eq!(log.turn(), Turn(3));
        let named: Vec<_> = log
            .after(Position(0))
            .iter()
            .filter_map(|it| match &it.event {
                Event::ResponseStart(start) => Some(start.conversation_id.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(named, [None, Some("conv_1".into())]);
        assert_eq!(submit(&request).unwrap().message.content, "four");
    }

    #[test]
    fn documents_that_are_none_lose_nothing_else() {
        let request = request(json!([
            { "role": "user", "content": "one" },
            { "role": "assistant", "content": "text", "documents": [7, { "type": "text", "content": "kept" }] },
            { "role": "user", "content": "two" },
        ]));
        assert!(shown(&before(&request, 0)).join("").contains("text kept"));
    }

    #[test]
    fn the_last_word_has_to_be_the_users() {
        let refused = submit(&request(json!([
            { "role": "user", "content": "one" },
            { "role": "assistant", "content": "two" },
        ])));
        assert_eq!(refused.unwrap_err().status, StatusCode::BAD_REQUEST);
        for (model, wanted) in [("", None), ("default", None), ("m", Some("m"))] {
            let mut request = request(json!([{ "role": "user", "content": "one" }]));
            request.model = model.to_owned();
            assert_eq!(submit(&request).unwrap().model.as_deref(), wanted, "{model}");
        }
    }
}
