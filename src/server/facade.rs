//! What the endpoints for clients of other APIs have in common: the answer as text, failures before it, the order of
//! both.
//!
//! Text and code of the answer are its content; thinking and tool calls are its reasoning. The agent runs its own tools
//! and never calls the client's. A question becomes text, and the next message is its answer; an action that would need
//! an approval is not done, and the model is told so.

use std::{collections::HashSet, sync::Arc};

use axum::{
    body::Body,
    http::{Response as HttpResponse, StatusCode},
};
use serde_json::Value;
use tokio::{sync::OwnedSemaphorePermit, time::sleep};

use super::{
    chat::{TurnOptions, begin, streamed},
    flatten::{Flattener, OutputPart},
    reader::StreamEncoder,
    refusal::{self, Refusal},
    state::ServerState,
    turn::ServedResponse,
};
use crate::{
    link::Asker,
    os::long_text::LongText,
    protocol::{DocumentId, Event, KindGroup, Message, Mode, Position, Request, codec::Identity, long_json::LongJson},
};

pub type Answer = Result<HttpResponse<Body>, Refusal>;

/// Prefix of accepted picture URLs. Other URLs are refused: the gateway fetches nothing for a client.
const PICTURE: &str = "data:image/";

/// Answers a request, as a stream of `encoder` or as the object that `object` makes of the whole answer.
pub async fn answer<E: StreamEncoder + 'static>(
    state: &Arc<ServerState>,
    permit: Arc<OwnedSemaphorePermit>,
    request: Request,
    encoder: impl FnOnce(&Identity) -> E,
    object: impl FnOnce(&Identity, Vec<OutputPart<LongText>>, &Flattener) -> LongJson,
) -> Answer {
    let is_stream = request.stream;
    let turn_options = TurnOptions {
        asker: Asker::Later,
        may_be_kept: false,
        is_resumable: false,
    };
    let (served, guard) = begin(state, request, turn_options, &permit).await?;
    if is_stream {
        // A failure before the first event gets its own HTTP status, which clients handle better than an error in a
        // stream.
        tokio::select! {
            () = served.ended() => {}
            () = first_event(&served) => {}
            () = sleep(state.limits.ping_interval) => {}
        }
        if served.has_ended()
            && let Some(refusal) = early_failure(&served)
        {
            return Err(refusal);
        }
        let encoder = Box::new(encoder(&served.identity));
        return Ok(streamed(state, served, guard, encoder, Position(0), permit));
    }
    served.ended().await;
    let (flat, pieces) = flattened(&served);
    drop(guard);
    if let Some(failure) = &flat.failure {
        return Err(failure.refusal());
    }
    let answer = object(&served.identity, pieces, &flat);
    Ok(refusal::long_json(StatusCode::OK, answer.to_text()))
}

/// Waits for an event that has something to show.
async fn first_event(served: &Arc<ServedResponse>) {
    let mut follower = served.follow(Position(0));
    let mut batch = Vec::new();
    while follower.next(&mut batch).await {
        if batch.iter().any(|it| !matches!(it.event, Event::ResponseStart(_))) {
            return;
        }
        batch.clear();
    }
}

/// Returns the refusal for an answer that failed before it had any text.
fn early_failure(served: &ServedResponse) -> Option<Refusal> {
    let (flat, pieces) = flattened(served);
    let failure = flat.failure.filter(|_| pieces.is_empty())?;
    Some(failure.refusal())
}

/// Reads a response as it is now. Neighbouring pieces of the same sort are one.
fn flattened(served: &ServedResponse) -> (Flattener, Vec<OutputPart<LongText>>) {
    let mut broken = BrokenTexts::default();
    let last = served.each(served.last(), |it| broken.push(&it.event));
    let dropped = broken.dropped;
    let mut flat = Flattener::default();
    let mut parts = Vec::new();
    served.each(last, |entry| {
        if entry.event.document().is_none_or(|it| !dropped.contains(it)) {
            for piece in flat.push(entry) {
                join(&mut parts, piece);
            }
        }
    });
    (flat, parts)
}

/// The texts that broke off and are followed by others: what came of them was asked for again. Who gets an answer at once need not
/// read them; a stream has had them already.
#[derive(Default)]
struct BrokenTexts {
    dropped: HashSet<DocumentId>,
    cut: Vec<DocumentId>,
    texts: HashSet<DocumentId>,
}

impl BrokenTexts {
    fn push(&mut self, event: &Event) {
        match event {
            Event::DocumentStart(start) => {
                self.dropped.extend(self.cut.drain(..));
                if start.kind.row().group == KindGroup::Text {
                    self.texts.insert(start.id.clone());
                }
            }
            Event::DocumentEnd { document, metadata, .. }
                if self.texts.contains(document) && metadata.get("incomplete") == Some(&Value::Bool(true)) =>
            {
                self.cut.push(document.clone());
            }
            _ => {}
        }
    }
}

/// Adds a piece to the last part, if that is of the same sort.
fn join(parts: &mut Vec<OutputPart<LongText>>, piece: OutputPart) {
    match (parts.last_mut(), piece) {
        (Some(OutputPart::Content(text)), OutputPart::Content(more))
        | (Some(OutputPart::Reasoning(text)), OutputPart::Reasoning(more)) => text.push_str(&more),
        (_, OutputPart::Content(text)) => parts.push(OutputPart::Content(text.into())),
        (_, OutputPart::Reasoning(text)) => parts.push(OutputPart::Reasoning(text.into())),
    }
}

/// Returns a response's id with another prefix, as `msg_…`.
pub fn id(prefix: &str, identity: &Identity) -> String {
    let id = identity.id.as_str();
    format!("{prefix}{}", id.strip_prefix("chat_").unwrap_or(id))
}

/// Refuses a request with 400 and names the member at fault.
pub fn refused(param: &str, message: impl Into<String>) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, message).param(param)
}

/// Members of a request's JSON body; null is the same as absent.
pub struct Members(serde_json::Map<String, Value>);

impl Members {
    /// Refuses a body that is no object.
    pub fn of(body: Value) -> Result<Self, Refusal> {
        match body {
            Value::Object(members) => Ok(Self(members)),
            _ => Err(Refusal::new(
                StatusCode::BAD_REQUEST,
                "the request is not a JSON object",
            )),
        }
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|it| !it.is_null())
    }

    /// Takes `stream`; false without it.
    pub fn stream(&self) -> Result<bool, Refusal> {
        match self.get("stream") {
            None => Ok(false),
            Some(it) => it
                .as_bool()
                .ok_or_else(|| refused("stream", "`stream` has to be true or false")),
        }
    }

    /// Takes `model`; empty without it.
    pub fn model(&self) -> Result<String, Refusal> {
        match self.get("model") {
            None => Ok(String::new()),
            Some(it) => it
                .as_str()
                .map(str::to_owned)
                .ok_or_else(|| refused("model", "`model` has to be a name")),
        }
    }

    /// Takes `mode`, an extension of ours: the agent's mode.
    pub fn mode(&self) -> Result<Mode, Refusal> {
        match self.get("mode") {
            None => Ok(Mode::default()),
            Some(it) => it
                .as_str()
                .and_then(Mode::parse)
                .ok_or_else(|| refused("mode", "`mode` has to be agent, plan, ask or debug")),
        }
    }

    /// Takes a list that must have entries.
    pub fn list(&self, name: &str) -> Result<&[Value], Refusal> {
        match self.get(name) {
            None => Err(refused(name, format!("`{name}` is missing"))),
            Some(Value::Array(list)) if list.is_empty() => Err(refused(name, format!("`{name}` is empty"))),
            Some(Value::Array(list)) => Ok(list),
            Some(_) => Err(refused(name, format!("`{name}` has to be a list"))),
        }
    }
}

/// Refusal of a conversation that does not end with the user's words. `is_result`: it ends with the result of a tool.
pub fn not_the_users(name: &str, is_result: bool) -> Refusal {
    let refusal = refused(name, format!("the last of `{name}` has to be the user's"));
    if is_result {
        refusal.details("this gateway runs its tools itself and asks clients for no results")
    } else {
        refusal
    }
}

/// Refusal of a `tool_choice` that forces a call.
pub fn no_choice() -> Refusal {
    refused(
        "tool_choice",
        "this gateway runs its own tools and calls none of the client's: `tool_choice` cannot be met",
    )
}

/// Text for a call in an answer from elsewhere.
pub fn call(name: &str, arguments: &str) -> String {
    format!("[called {name} with {arguments}]")
}

/// Line before the result of a call in a conversation from elsewhere.
pub fn result_of(name: &str) -> String {
    format!("[result of {name}]")
}

/// Takes an inline picture from a data URL. `place` names the part.
pub fn picture(url: Option<&str>, place: &str) -> Result<Value, Refusal> {
    let inline = url.and_then(|it| it.strip_prefix(PICTURE)?.split_once(";base64,"));
    let Some((kind, data)) = inline else {
        let message = format!("`{place}` has to bring its picture along");
        return Err(refused(place, message).details("as data:image/png;base64,…; nothing is fetched"));
    };
    Ok(serde_json::json!({ "mediaType": format!("image/{kind}"), "data": data }))
}

/// Adds pictures to a message.
pub fn with_pictures(mut message: Message, pictures: Vec<Value>) -> Message {
    if !pictures.is_empty() {
        message.extra.insert("images".to_owned(), pictures.into());
    }
    message
}

/// Adds `message` to `messages`; an answer that follows an answer continues it.
pub fn add(messages: &mut Vec<Message>, message: Message) {
    use crate::protocol::Role;
    match messages.last_mut() {
        Some(last) if last.role == Role::Assistant && message.role == Role::Assistant => {
            if !last.content.is_empty() && !message.content.is_empty() {
                last.content.push('\n');
            }
            last.content.push_str(&message.content);
        }
        _ => messages.push(message),
    }
}
