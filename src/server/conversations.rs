//! Stored conversations of a stateful gateway: the list, the documents, the diff, undo, and their events as they happen.
//!
//! Only conversations with this gateway are seen: they have a store of their own.

use std::{collections::HashMap, sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Path, RawQuery, State},
    http::{HeaderMap, Response as HttpResponse, StatusCode},
};
use serde_json::{Map, Value, json};
use tokio::{
    sync::{OwnedSemaphorePermit, watch},
    time::{Instant, sleep_until, timeout},
};

use super::{
    chat::{accepted, event_stream, give_answer, last_event_id, read_answer},
    chunk_channel::ChunkSender,
    events,
    facade::{Answer, refused},
    now_ms,
    reader::{CHUNK_BYTES, EVENTS_PER_BATCH, StreamBody, send},
    refusal::{self, Refusal},
    sessions::{Conversation, Conversations},
    state::{ServerState, read},
    turn::ReaderGuard,
};
use crate::{
    export::{DocumentFormat, format_document},
    journal::file::Listed,
    link::AskError,
    protocol::{
        Applied, Command, ConversationId, DocumentId, Entry, Event, FileChange, Notice, Position, Query, Reply,
        Restore, RestoreConflict, RestoreTarget, Severity, Turn, UNDO_FINISHED, View, codec::PING,
    },
    transcript::{Transcript, object},
};

/// Entries of a page, unless the client wants another number.
const PAGE: usize = 50;
const MAX_PAGE: usize = 200;

/// Maximum size of a request to undo, in bytes.
const UNDO_LIMIT_BYTES: usize = 1 << 20;

/// Time limit for an undo.
const UNDO_TIMEOUT: Duration = Duration::from_mins(2);

fn kept(state: &ServerState) -> Result<&Conversations, Refusal> {
    state.conversations.as_ref().ok_or_else(|| {
        Refusal::new(StatusCode::NOT_FOUND, "this server stores no conversations").details("start it with --stateful")
    })
}

/// Parameters of a query.
struct Parameters<'a>(HashMap<&'a str, &'a str>);

impl<'a> Parameters<'a> {
    fn of(query: Option<&'a str>) -> Self {
        let pairs = query.unwrap_or_default().split('&');
        Self(pairs.filter_map(|it| it.split_once('=')).collect())
    }

    fn limit(&self) -> Result<usize, Refusal> {
        match self.0.get("limit") {
            None => Ok(PAGE),
            Some(text) => {
                let limit = text.parse().ok().filter(|it| (1..=MAX_PAGE).contains(it));
                limit.ok_or_else(|| refused("limit", format!("`limit` has to be a number from 1 to {MAX_PAGE}")))
            }
        }
    }
}

/// `GET /api/v1/conversations`: a page of the list, the last changed one first.
pub async fn list(State(state): State<Arc<ServerState>>, RawQuery(query): RawQuery) -> Answer {
    let kept = kept(&state)?;
    let parameters = Parameters::of(query.as_deref());
    let limit = parameters.limit()?;
    let after = match parameters.0.get("after") {
        None => None,
        Some(text) => Some(cursor(text).ok_or_else(|| {
            refused("after", "`after` is no place in the list").details("send the `next` of the page before")
        })?),
    };
    let (listed, open_ones) = kept.list().await?;
    let is_after = |it: &&Listed| after.is_none_or(|after| (it.changed, it.session.id.as_str()) < after);
    let mut page: Vec<&Listed> = listed.iter().filter(is_after).take(limit + 1).collect();
    let next = (page.len() > limit).then(|| {
        page.truncate(limit);
        page.last().map(|it| format!("{}-{}", it.changed, it.session.id))
    });
    let entries: Vec<Value> = page
        .into_iter()
        .map(|it| {
            let open = open_ones.get(&ConversationId::from(it.session.id.as_str()));
            let mut entry = head(&it.session.id, it.session.created, it.title.as_deref(), open);
            entry.insert("changed".to_owned(), it.changed.into());
            entry.insert("turns".to_owned(), it.turns.into());
            entry.into()
        })
        .collect();
    let mut list = json!({ "conversations": entries });
    if let Some(next) = next.flatten() {
        list["next"] = next.into();
    }
    Ok(refusal::json(StatusCode::OK, list.to_string()))
}

/// Reads a place in the list: the time of the last change, and the id.
fn cursor(text: &str) -> Option<(u64, &str)> {
    let (changed, id) = text.split_once('-')?;
    Some((changed.parse().ok()?, id))
}

/// Returns the members that the list and a conversation share.
fn head(id: &str, created: u64, title: Option<&str>, open: Option<&Arc<Conversation>>) -> Map<String, Value> {
    let running = open.and_then(|it| it.running());
    let status = match &running {
        None => "idle",
        Some(it) if it.is_waiting() => "awaiting_input",
        Some(_) => "streaming",
    };
    let mut head = Map::new();
    head.insert("id".to_owned(), id.into());
    head.extend(title.map(|it| ("title".to_owned(), it.into())));
    head.insert("created".to_owned(), created.into());
    head.insert("status".to_owned(), status.into());
    let response = running.map(|it| it.identity.id.as_str().to_owned());
    head.extend(response.map(|it| ("responseId".to_owned(), it.into())));
    head
}

/// A conversation as it is now.
struct Snapshot {
    created: u64,
    transcript: Transcript,
    last: Position,
    open: Option<Arc<Conversation>>,
}

impl Snapshot {
    async fn of(kept: &Conversations, id: &str) -> Result<Self, Refusal> {
        let id = ConversationId::from(id);
        let open = kept.find(&id).await;
        let (created, entries) = match &open {
            // What is in memory may not be on the disk yet.
            Some(open) => (open.created, open.link.log().after(Position(0))),
            None => {
                let stored = kept.read(&id).await?;
                let created = stored.session.created;
                (created, stored.closed().into_iter().map(Arc::new).collect())
            }
        };
        Ok(Self {
            created,
            transcript: Transcript::from_entries(&entries),
            last: entries.last().map_or(Position(0), |it| it.position),
            open,
        })
    }
}

/// `GET /api/v1/conversations/{id}`: a page of turns, each with its message and the documents of its response.
pub async fn one(State(state): State<Arc<ServerState>>, Path(id): Path<String>, RawQuery(query): RawQuery) -> Answer {
    let kept = kept(&state)?;
    let parameters = Parameters::of(query.as_deref());
    let limit = parameters.limit()?;
    let after: u32 = match parameters.0.get("after") {
        None => 0,
        Some(text) => text
            .parse()
            .map_err(|_| refused("after", "`after` has to be the number of a turn"))?,
    };
    let found = Snapshot::of(kept, &id).await?;
    let transcript = &found.transcript;
    let mut whole = head(&id, found.created, transcript.title(), found.open.as_ref());
    let later = transcript
        .exchanges
        .iter()
        .filter(|it| it.turn.0 > after && !it.is_margin());
    let mut page: Vec<_> = later.take(limit + 1).collect();
    let is_more = page.len() > limit;
    page.truncate(limit);
    let next = page.last().filter(|_| is_more).map(|it| it.turn.0);
    let turns: Vec<Value> = page.into_iter().map(object::turn).collect();
    whole.insert("lastEventId".to_owned(), found.last.0.into());
    whole.insert("turns".to_owned(), turns.into());
    whole.extend(next.map(|it| ("next".to_owned(), it.into())));
    Ok(refusal::json(StatusCode::OK, Value::Object(whole).to_string()))
}

/// `GET /api/v1/conversations/{id}/diff`: the changes of files that are in effect or were undone, in their order.
pub async fn diff(State(state): State<Arc<ServerState>>, Path(id): Path<String>) -> Answer {
    let found = Snapshot::of(kept(&state)?, &id).await?;
    let mut edits = Vec::new();
    for exchange in &found.transcript.exchanges {
        for (at, document) in exchange.response.documents.iter().enumerate() {
            let View::FileEdit(edit) = document.view() else {
                continue;
            };
            if edit.applied != Applied::Applied && !document.is_undone() {
                continue;
            }
            let number = exchange.response.number(at);
            edits.push(json!({
                "address": format!("{}.{number}", exchange.turn),
                "turn": exchange.turn.0,
                "documentId": document.id,
                "filePath": edit.file_path,
                "operation": edit.operation,
                "undone": document.is_undone(),
                "patch": format_document(document, number, DocumentFormat::Patch).unwrap_or_default(),
            }));
        }
    }
    Ok(refusal::json(StatusCode::OK, json!({ "edits": edits }).to_string()))
}

/// `POST /api/v1/conversations/{id}/undo`: undoes or redoes what the agent did to files, or says what that would do.
pub async fn undo(State(state): State<Arc<ServerState>>, Path(id): Path<String>, body: Body) -> Answer {
    let body = read(&state, body, UNDO_LIMIT_BYTES.min(state.limits.body_bytes)).await?;
    let kept = kept(&state)?;
    let (restore, is_dry) = restore(&body)?;
    if !state.can_undo {
        return Err(
            Refusal::new(StatusCode::FORBIDDEN, "this server changes no files for clients")
                .details("start it with --tools all"),
        );
    }
    let claim = kept
        .claim_idle(&ConversationId::from(id.as_str()), &*state.open, now_ms())
        .await?;
    let link = &claim.conversation().link;
    let nothing = |details: &str| Err(Refusal::new(StatusCode::CONFLICT, "nothing was undone").details(details));
    let preview = match link.ask(Query::RestorePreview(restore.clone())).await {
        Ok(Reply::RestorePreview(preview)) => preview,
        Ok(_) | Err(AskError::Unsupported { .. }) => return nothing("the agent has no files here"),
        Err(error) => return nothing(&error.to_string()),
    };
    let files: Vec<Value> = preview.files.iter().map(file_change).collect();
    let mut answer = json!({ "done": false, "files": files, "isPartial": preview.is_partial, "message": "" });
    if !is_dry {
        let log = link.log();
        let mut follower = log.follow(log.last());
        link.send(Command::Restore(restore));
        let notice = timeout(UNDO_TIMEOUT, async {
            let mut batch = Vec::new();
            while follower.next(&mut batch).await {
                for entry in batch.drain(..) {
                    // What is said of another conversation is no answer.
                    if let Event::Notice(notice) = &entry.event
                        && notice.code != UNDO_FINISHED
                    {
                        return Some(notice.clone());
                    }
                }
            }
            None
        });
        match notice.await {
            Ok(Some(notice)) if notice.severity == Severity::Info => {
                answer["done"] = true.into();
                answer["message"] = in_words(&notice).into();
            }
            Ok(Some(notice)) => return nothing(&notice.message),
            Ok(None) | Err(_) => return nothing("the agent did not answer"),
        }
    }
    Ok(refusal::json(StatusCode::OK, answer.to_string()))
}

/// Says what an undo or redo has done. The notice holds facts, which each screen puts into its own language.
fn in_words(notice: &Notice) -> String {
    let verb = if notice.code.contains("redo") {
        "redone"
    } else {
        "undone"
    };
    let mut facts = notice.message.split('\n');
    let (first, second) = (facts.next().unwrap_or_default(), facts.next().unwrap_or_default());
    if notice.code.ends_with("document") {
        return format!("{verb}: {second}");
    }
    let more = match second.parse::<u64>() {
        Ok(count @ 2..) => format!(" and {} more", count - 1),
        Ok(_) | Err(_) => String::new(),
    };
    let unchanged = facts.next().filter(|it| !it.is_empty());
    let unchanged = unchanged.map_or_else(String::new, |it| format!("; unchanged: {it}"));
    format!("{verb}: {first}{more}{unchanged}")
}

fn file_change(file: &FileChange) -> Value {
    let mut change = json!({
        "path": file.path,
        "operation": file.operation,
        "added": file.added,
        "removed": file.removed,
        "patch": file.patch,
        "lost": file.is_lost,
    });
    match file.conflict {
        None => {}
        Some(RestoreConflict::User) => change["conflict"] = "user".into(),
        Some(RestoreConflict::Turn(turn)) => {
            change["conflict"] = "agent".into();
            change["conflictTurn"] = turn.0.into();
        }
    }
    change
}

/// Reads a request to undo. The second element is true for a request that only asks what would happen.
fn restore(body: &Value) -> Result<(Restore, bool), Refusal> {
    let members = body
        .as_object()
        .ok_or_else(|| Refusal::new(StatusCode::BAD_REQUEST, "the request is not a JSON object"))?;
    let get = |name: &str| members.get(name).filter(|it| !it.is_null());
    let flag = |name: &str| match get(name) {
        None => Ok(false),
        Some(it) => it
            .as_bool()
            .ok_or_else(|| refused(name, format!("`{name}` has to be true or false"))),
    };
    let turn = match get("turn") {
        None => None,
        Some(it) => {
            let turn = it.as_u64().and_then(|it| u32::try_from(it).ok()).filter(|it| *it > 0);
            Some(Turn(turn.ok_or_else(|| {
                refused("turn", "`turn` has to be the number of a turn")
            })?))
        }
    };
    let document = match get("documentId") {
        None => None,
        Some(Value::String(id)) => Some(DocumentId::from(id.as_str())),
        Some(_) => return Err(refused("documentId", "`documentId` has to be a text")),
    };
    let target = match (turn, document, flag("redo")?) {
        (None, None, false) => RestoreTarget::Last,
        (None, None, true) => RestoreTarget::RedoLast,
        (Some(turn), None, false) => RestoreTarget::Turn(turn),
        (Some(turn), Some(document), false) => RestoreTarget::Document { turn, document },
        (Some(turn), Some(document), true) => RestoreTarget::RedoDocument { turn, document },
        (Some(_), None, true) => {
            return Err(refused("redo", "`redo` redoes the last undo, or one document").details("leave `turn` out"));
        }
        (None, Some(_), _) => {
            return Err(refused(
                "turn",
                "`turn` is missing: ids of documents repeat in each turn",
            ));
        }
    };
    let except = match get("except") {
        None => Vec::new(),
        Some(Value::Array(paths)) => {
            let paths = paths.iter().map(|it| it.as_str().map(str::to_owned));
            let paths: Option<Vec<_>> = paths.collect();
            paths.ok_or_else(|| refused("except", "`except` has to be a list of paths"))?
        }
        Some(_) => return Err(refused("except", "`except` has to be a list of paths")),
    };
    let restore = Restore {
        target,
        except,
        overwrite: flag("overwrite")?,
        seen: None,
    };
    Ok((restore, flag("dryRun")?))
}

/// `POST /api/v1/conversations/{id}/input`: answers a question of the running turn.
pub async fn input(State(state): State<Arc<ServerState>>, Path(id): Path<String>, body: Body) -> Answer {
    let response = read_answer(&state, body).await?;
    let conversation = known(&state, &id).await?;
    match conversation.and_then(|it| it.running()) {
        Some(served) => give_answer(&served, response),
        None => {
            Err(Refusal::new(StatusCode::CONFLICT, "no answer is running")
                .details("send the answer with the next message"))
        }
    }
}

/// `POST /api/v1/conversations/{id}/cancel`: stops the running turn. Succeeds as well if none runs.
pub async fn cancel(State(state): State<Arc<ServerState>>, Path(id): Path<String>) -> Answer {
    let conversation = known(&state, &id).await?;
    match conversation.and_then(|it| it.running()) {
        Some(served) => {
            served.cancel();
            Ok(accepted(&served))
        }
        None => Ok(refusal::json(StatusCode::ACCEPTED, json!({ "id": null }).to_string())),
    }
}

/// Returns the conversation if it is open; `None` if it is only stored. 404 for an unknown one.
async fn known(state: &ServerState, id: &str) -> Result<Option<Arc<Conversation>>, Refusal> {
    let kept = kept(state)?;
    let id = ConversationId::from(id);
    match kept.find(&id).await {
        Some(open) => Ok(Some(open)),
        None => kept.read(&id).await.map(|_| None),
    }
}

/// `GET /api/v1/conversations/{id}/stream`: everything that is said in a conversation, from the start or after the
/// reader's `Last-Event-ID`, and then as it happens.
pub async fn stream(State(state): State<Arc<ServerState>>, Path(id): Path<String>, headers: HeaderMap) -> Answer {
    let permit = state.acquire_stream()?;
    known(&state, &id).await?;
    let reader = ConversationReader {
        id: ConversationId::from(id.as_str()),
        since: Position(last_event_id(&headers)?.unwrap_or(0)),
        guard: None,
        out: Output::new(&state, permit),
        state,
    };
    Ok(event_stream(StreamBody::of(|out| reader.write(out))))
}

/// `GET /api/v1/events`: the events of all conversations as they happen, or after the reader's `Last-Event-ID`.
pub async fn all(State(state): State<Arc<ServerState>>, headers: HeaderMap) -> HttpAnswer {
    let permit = state.acquire_stream()?;
    kept(&state)?.gather_events().await;
    let since = last_event_id(&headers)?;
    let out = Output::new(&state, permit);
    Ok(event_stream(StreamBody::of(|sender| {
        write_events(state, since, out, sender)
    })))
}

type HttpAnswer = Result<HttpResponse<Body>, Refusal>;

/// What a stream gathers before it is sent, and when it is to end.
struct Output {
    text: String,
    ping: Duration,
    next_ping: Instant,
    stop: watch::Receiver<bool>,
    /// Held until the stream ends.
    _permit: Arc<OwnedSemaphorePermit>,
}

impl Output {
    fn new(state: &ServerState, permit: Arc<OwnedSemaphorePermit>) -> Self {
        let ping = state.limits.ping_interval;
        Self {
            text: String::new(),
            ping,
            next_ping: Instant::now() + ping,
            stop: state.stop.clone(),
            _permit: permit,
        }
    }

    /// Adds an event. Returns false if the reader has gone.
    async fn add(&mut self, frame: &str, out: &ChunkSender) -> bool {
        self.text.push_str(frame);
        self.text.len() < CHUNK_BYTES || self.flush(out).await
    }

    async fn flush(&mut self, out: &ChunkSender) -> bool {
        if self.text.is_empty() {
            return true;
        }
        self.next_ping = Instant::now() + self.ping;
        send(out, std::mem::take(&mut self.text)).await
    }

    /// Waits until something is due besides events. Returns false if the stream has to end.
    async fn idle(&mut self, out: &ChunkSender) -> bool {
        tokio::select! {
            biased;
            () = out.closed() => false,
            // An error means that the server is gone.
            _ = self.stop.wait_for(|it| *it) => false,
            () = sleep_until(self.next_ping) => {
                self.text.push_str(PING);
                true
            }
        }
    }
}

/// A reader of one conversation.
struct ConversationReader {
    state: Arc<ServerState>,
    id: ConversationId,
    /// Position in the conversation's log up to which the reader has everything.
    since: Position,
    /// Makes the reader one of the running response's, so that it is not stopped for lack of readers.
    guard: Option<ReaderGuard>,
    out: Output,
}

impl ConversationReader {
    async fn write(mut self, out: ChunkSender) {
        let state = Arc::clone(&self.state);
        let Some(kept) = &state.conversations else { return };
        loop {
            let mut openings = kept.openings();
            let is_on = match kept.find(&self.id).await {
                Some(open) => self.follow(&open, &out).await,
                None => self.read_stored(kept, &out).await && self.wait(&mut openings, &out).await,
            };
            if !is_on {
                return;
            }
        }
    }

    /// Sends what is stored and not sent yet. Returns false if the stream has to end.
    async fn read_stored(&mut self, kept: &Conversations, out: &ChunkSender) -> bool {
        let Ok(stored) = kept.read(&self.id).await else {
            return false;
        };
        let last = stored.entries.last().map_or(Position(0), |it| it.position);
        if self.since > last && !self.reset(last, out).await {
            return false;
        }
        // Nobody goes on with an answer that has no end.
        for entry in stored.closed() {
            if entry.position > self.since && !self.send(&entry, out).await {
                return false;
            }
        }
        self.out.flush(out).await
    }

    /// Says that the server was killed before it stored the last records that the reader has: others take their numbers.
    async fn reset(&mut self, last: Position, out: &ChunkSender) -> bool {
        self.since = last;
        let reset = format!("id: {}\nevent: reset\ndata: {{}}\n\n", last.0);
        self.out.add(&reset, out).await
    }

    /// Waits until a conversation is opened, which may be this one.
    async fn wait(&mut self, openings: &mut watch::Receiver<u64>, out: &ChunkSender) -> bool {
        loop {
            tokio::select! {
                biased;
                changed = openings.changed() => return changed.is_ok(),
                is_on = self.out.idle(out) => if !is_on || !self.out.flush(out).await {
                    return false;
                },
            }
        }
    }

    /// Follows an open conversation until it is closed. Returns false if the stream has to end.
    async fn follow(&mut self, open: &Arc<Conversation>, out: &ChunkSender) -> bool {
        let last = open.link.log().last();
        if self.since > last && !self.reset(last, out).await {
            return false;
        }
        let mut follower = open.link.log().follow_closely(self.since);
        let mut batch = Vec::new();
        loop {
            let mut is_closed = false;
            tokio::select! {
                biased;
                more = follower.next_some(EVENTS_PER_BATCH, &mut batch) => is_closed = !more,
                is_on = self.out.idle(out) => if !is_on {
                    return false;
                },
                () = open.closed() => is_closed = true,
            }
            for entry in batch.drain(..) {
                if !self.send(&entry, out).await {
                    return false;
                }
            }
            if !self.out.flush(out).await {
                return false;
            }
            self.guard = match (open.running(), self.guard.take()) {
                (None, _) => None,
                (Some(running), Some(guard)) if guard.is_of(&running) => Some(guard),
                (Some(running), _) => Some(running.add_reader(None)),
            };
            if is_closed {
                return self.wait_until_closed(open, out).await;
            }
        }
    }

    /// Waits until a conversation in which nothing more happens is closed. Returns false if the stream has to end.
    async fn wait_until_closed(&mut self, open: &Conversation, out: &ChunkSender) -> bool {
        loop {
            tokio::select! {
                biased;
                () = open.closed() => return true,
                is_on = self.out.idle(out) => if !is_on || !self.out.flush(out).await {
                    return false;
                },
            }
        }
    }

    async fn send(&mut self, entry: &Entry, out: &ChunkSender) -> bool {
        // Only what was sent counts: other entries are not stored, and a stored conversation ends before them.
        let Some(frame) = events::frame(entry.position.0, &self.id, entry) else {
            return true;
        };
        self.since = entry.position;
        self.out.add(&frame, out).await
    }
}

/// Writes the events of all conversations.
async fn write_events(state: Arc<ServerState>, since: Option<u64>, mut output: Output, out: ChunkSender) {
    let Some(kept) = &state.conversations else { return };
    let hub = Arc::clone(&kept.events);
    let mut changes = hub.changes();
    let mut since = match since {
        Some(since) => since,
        None => {
            let last = hub.last();
            let ready = format!("id: {last}\nevent: ready\ndata: {{}}\n\n");
            if !output.add(&ready, &out).await {
                return;
            }
            last
        }
    };
    loop {
        changes.mark_unchanged();
        let (is_gap, events) = hub.after(since);
        if is_gap {
            // The id is that of the last event before the next one.
            since = events.first().map_or_else(|| hub.last(), |it| it.number - 1);
            let reset = format!("id: {since}\nevent: reset\ndata: {{}}\n\n");
            if !output.add(&reset, &out).await {
                return;
            }
        }
        let is_all = events.len() < EVENTS_PER_BATCH.get();
        for it in events {
            since = it.number;
            let frame = events::frame(it.number, &it.conversation, &it.entry);
            if !output.add(&frame.unwrap_or_default(), &out).await {
                return;
            }
        }
        if !output.flush(&out).await {
            return;
        }
        if is_all {
            tokio::select! {
                biased;
                _ = changes.changed() => {}
                is_on = output.idle(&out) => if !is_on {
                    return;
                },
            }
        }
    }
}
