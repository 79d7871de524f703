//! The grammar of an event stream: dialects, members, order. Judges events as they came; mends nothing.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::{
    RequestFacts, Whole,
    document::{self, Mark, Seen},
    frame::{Scanner, SseFrame},
    json,
    report::{Findings, Judged},
    response::{self, Ending},
    rule::{self, Rule},
};
use crate::{
    protocol::{Dialect, Mode, codec::Foreign},
    text::visible_line,
};

/// A document of more is not read on.
const DOCUMENT_BYTES: usize = 64 << 20;
const DOCUMENTS: usize = 50_000;

/// Content of all documents that is stored for the comparison with the object, in bytes.
const KEPT_BYTES: usize = 256 << 20;

/// Longest text that the end must repeat, in bytes: with a longer one it might not fit into one line.
const ONCE_BYTES: usize = 64 << 10;

/// A ping is due after 15 s; networks are given the rest.
const SILENT_MS: u64 = 20_000;

/// Events of the protocol, and the text or object that each must have besides `documentId`.
const EVENTS: [(&str, bool, &[&str]); 14] = [
    // name, is about a document, members of which one tells it from an envelope
    (
        "response_start",
        false,
        &["response", "id", "model", "conversationId", "capabilities"],
    ),
    ("document_start", false, &["document", "id"]),
    ("content_delta", true, &["delta"]),
    ("tool_call_start", true, &["toolName"]),
    ("tool_call_arguments", true, &["arguments"]),
    ("tool_result", true, &["result"]),
    ("metadata_delta", true, &["metadata", "append"]),
    ("thinking_delta", false, &["delta"]),
    ("document_end", true, &["documentId"]),
    ("document_update", true, &["metadata"]),
    ("user_message", false, &["message"]),
    ("title", false, &["title"]),
    ("done", false, &["usage", "status", "metadata"]),
    ("error", false, &["message", "code", "error"]),
];

/// A stream that is being judged.
#[derive(Default)]
pub struct Stream {
    scanner: Scanner,
    grammar: Grammar,
    found: Findings,
    last_ms: Option<u64>,
}

impl Stream {
    pub fn new(asked: RequestFacts) -> Self {
        Self {
            grammar: Grammar {
                mode: asked.mode,
                asked,
                ..Grammar::default()
            },
            ..Self::default()
        }
    }

    /// Judges more bytes. `now_ms` is for live streams; any clock that only goes forward will do.
    pub fn push(&mut self, bytes: &[u8], now_ms: Option<u64>) {
        if let (Some(last), Some(now)) = (self.last_ms, now_ms)
            && now.saturating_sub(last) > SILENT_MS
        {
            let said = format!("nothing came for {} s", (now - last) / 1000);
            let place = super::report::ByteRange {
                offset: self.scanner.bytes(),
                length: 0,
            };
            self.found.add(&rule::SILENCE, &said, None, Some(place), "");
        }
        self.last_ms = now_ms;
        for frame in self.scanner.push(bytes, &mut self.found) {
            self.grammar.frame(&frame, &mut self.found);
        }
    }

    /// Returns true if nothing more must come.
    pub fn is_over(&self) -> bool {
        let grammar = &self.grammar;
        grammar.phase.is_foreign
            || (grammar.phase.is_done && (grammar.dialect == Some(Dialect::Named) || grammar.phase.has_marker))
    }

    /// Returns the ids of the response and of its open question, if the gateway says that it can be answered now.
    /// `None` otherwise.
    pub fn question(&self) -> Option<(&str, &str)> {
        let grammar = &self.grammar;
        let asks = |it: &&Open| {
            let questions = it.seen.metadata.get("questions").and_then(Value::as_array);
            it.seen.kind == "clarification"
                && questions.is_some_and(|it| !it.is_empty())
                && !it.seen.metadata.contains_key("outcome")
        };
        let open = grammar.documents.open.values().find(asks)?;
        grammar.hears.then_some((grammar.id.as_deref()?, open.seen.id.as_str()))
    }

    /// Adds a finding about the behaviour of the gateway.
    pub fn say(&mut self, rule: &'static Rule, said: &str) {
        self.found.add(rule, said, None, None, "");
    }

    /// The input has ended.
    pub fn finish(mut self, what: &str) -> (Judged, Whole) {
        if let Some(frame) = self.scanner.finish(&mut self.found) {
            self.grammar.frame(&frame, &mut self.found);
        }
        self.grammar.finish(&mut self.found);
        let form = match self.grammar.dialect {
            _ if self.grammar.phase.is_foreign => "stream of another protocol",
            Some(Dialect::Named) => "stream in dialect A",
            Some(Dialect::Data) => "stream in dialect B",
            None => "stream",
        };
        let judged = Judged {
            what: what.to_owned(),
            form: form.to_owned(),
            events: self.grammar.events,
            documents: self.grammar.documents.started,
            bytes: self.scanner.bytes(),
            findings: self.found,
        };
        let mut documents = self.grammar.documents.ended;
        documents.sort_by_key(|it| it.0);
        let whole = Whole {
            id: self.grammar.id,
            mode: self.grammar.said_mode,
            documents: documents.into_iter().map(|it| it.1).collect(),
            is_whole: self.grammar.phase.is_done && !self.grammar.documents.has_dropped,
        };
        (judged, whole)
    }
}

#[derive(Default)]
struct Grammar {
    asked: RequestFacts,
    dialect: Option<Dialect>,
    phase: StreamPhase,
    events: usize,
    documents: Documents,
    id: Option<String>,
    /// Questions can be answered while the response is made.
    hears: bool,
    said_mode: Option<Mode>,
    /// Mode of the answer, else of the request.
    mode: Option<Mode>,
    errors: u64,
}

/// Documents of the stream so far.
#[derive(Default)]
struct Documents {
    started: usize,
    open: BTreeMap<String, Open>,
    /// Every id there was.
    known: HashSet<String>,
    /// In the order of the starts.
    ended: Vec<(usize, Seen)>,
    kept_bytes: usize,
    has_dropped: bool,
    with_sequence: usize,
    texts: HashSet<String>,
    /// An edit that failed, until an error follows.
    failed_edit: Option<(String, Mark)>,
    tool_calls: u64,
}

/// Marks of the stream that have been seen.
#[derive(Default)]
struct StreamPhase {
    is_foreign: bool,
    has_start: bool,
    is_done: bool,
    has_marker: bool,
    is_mixed: bool,
}

struct Open {
    seen: Seen,
    number: usize,
    has_patch: bool,
    phase: Phase,
}

/// Progress of the events of a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Begun,
    Named,
    Argued,
    Answered,
}

/// An event with the findings about it.
struct At<'a> {
    frame: &'a SseFrame,
    found: &'a mut Findings,
}

impl At<'_> {
    fn say(&mut self, rule: &'static Rule, document: Option<&str>, path: &[&str], said: &str) {
        let mark = self.mark(path);
        self.found.add(rule, said, document, mark.place, &mark.bytes);
    }

    /// Returns the place of a part of the event.
    fn mark(&self, path: &[&str]) -> Mark {
        let path: Vec<_> = path.iter().map(|it| (*it).into()).collect();
        let range = json::span(&self.frame.data, &path);
        let bytes = self.frame.data.get(range.clone()).unwrap_or_default();
        Mark {
            place: Some(self.frame.locate(&range)),
            bytes: bytes
                .get(..bytes.floor_char_boundary(400))
                .unwrap_or_default()
                .to_owned(),
        }
    }
}

impl Grammar {
    fn frame(&mut self, frame: &SseFrame, found: &mut Findings) {
        let mut at = At { frame, found };
        let data = frame.data.trim();
        if self.phase.is_foreign {
            return;
        }
        self.events += 1;
        if data == "[DONE]" {
            self.marker(&mut at);
            return;
        }
        if self.phase.is_done || self.phase.has_marker {
            at.say(&rule::AFTER_DONE, None, &[], "this comes after the end");
            return;
        }
        let members = match json::parse(data) {
            Err(error) => {
                at.say(&rule::BAD_JSON, None, &[], &format!("this is not JSON: {error}"));
                return;
            }
            Ok((Value::Object(members), twice)) => {
                for name in twice {
                    at.say(&rule::DUPLICATE_MEMBER, None, &[], &format!("`{name}` appears twice"));
                }
                members
            }
            Ok((other, _)) => {
                let said = format!("this is {}", document::described(&other));
                at.say(&rule::NOT_AN_OBJECT, None, &[], &said);
                return;
            }
        };
        if self.dialect.is_none()
            && let Some(what) = Foreign::of(&members)
        {
            let said = format!("this is {what} server: configure it as a provider");
            at.say(&rule::FOREIGN, None, &[], &said);
            self.phase.is_foreign = true;
            return;
        }
        let Some(name) = self.name(&members, &mut at) else {
            return;
        };
        self.event(name, members, &mut at);
    }

    fn marker(&mut self, at: &mut At<'_>) {
        if self.phase.has_marker {
            at.say(&rule::AFTER_DONE, None, &[], "a second `[DONE]`");
        } else if self.dialect == Some(Dialect::Named) {
            at.say(&rule::DONE_MARKER, None, &[], "a `[DONE]` in dialect A");
        } else if !self.phase.is_done {
            at.say(&rule::DONE_MARKER, None, &[], "a `[DONE]` without a `done` before it");
        }
        self.phase.has_marker = true;
    }

    /// The event's name, and the dialect that it is in.
    fn name(&mut self, members: &Map<String, Value>, at: &mut At<'_>) -> Option<&'static str> {
        let known = |word: &str| EVENTS.iter().find(|it| it.0 == word).map(|it| it.0);
        let outer = at
            .frame
            .event
            .as_deref()
            .filter(|it| !it.is_empty() && *it != "message");
        let own = members.get("type").and_then(Value::as_str);
        let dialect = if outer.is_some() { Dialect::Named } else { Dialect::Data };
        let name = match (outer, own) {
            (None, None) => {
                let said = "there is neither an `event:` line nor a `type`";
                at.say(&rule::NAMELESS, None, &[], said);
                return None;
            }
            (Some(outer), own) => {
                // `error` is a type of document as well.
                if let Some(own) = own.filter(|own| known(own).is_some() && *own != outer && *own != "error") {
                    let said = format!("`{outer}` outside, `{own}` inside");
                    at.say(&rule::TWO_NAMES, None, &["type"], &said);
                }
                outer
            }
            (None, Some(own)) => own,
        };
        let Some(name) = known(name) else {
            let said = format!("`{name}` is no event of the protocol");
            at.say(&rule::UNKNOWN_EVENT, None, &[], &said);
            return None;
        };
        match self.dialect {
            None => {
                self.dialect = Some(dialect);
                if self.asked.dialect.is_some_and(|it| it != dialect) {
                    at.say(&rule::DIALECT_WISH, None, &[], "the stream is in the other dialect");
                }
            }
            Some(first) if first != dialect && !self.phase.is_mixed => {
                self.phase.is_mixed = true;
                at.say(&rule::MIXED_DIALECTS, None, &[], "this event is in the other dialect");
            }
            Some(_) => {}
        }
        Some(name)
    }

    fn event(&mut self, name: &'static str, mut members: Map<String, Value>, at: &mut At<'_>) {
        if self.dialect == Some(Dialect::Data) && name != "document_start" {
            members.shift_remove("type");
        }
        let (_, is_about, needs) = *EVENTS
            .iter()
            .find(|it| it.0 == name)
            .expect("the name is from the table");
        let is_wrapped = members.get("data").is_some_and(Value::is_object)
            && (name == "document_end" || !needs.iter().any(|it| members.contains_key(*it)));
        if is_wrapped {
            at.say(&rule::ENVELOPE, None, &["data"], "the members are wrapped in `data`");
            if let Some(Value::Object(inner)) = members.shift_remove("data") {
                members.extend(inner);
            }
        }
        if name == "response_start" {
            self.response_start(members, is_wrapped, at);
            return;
        }
        if !self.phase.has_start && self.events == 1 {
            at.say(&rule::NO_START, None, &[], "the stream begins without it");
        }
        match name {
            "document_start" => self.document_start(members, is_wrapped, at),
            "thinking_delta" => {
                text_member(name, &members, "delta", at);
            }
            "user_message" | "title" => {
                let said = format!("`{name}` is for programs of one house");
                at.say(&rule::USER_MESSAGE, None, &[], &said);
            }
            "done" => self.done(&members, at),
            "error" => {
                at.say(&rule::ERROR_EVENT, None, &[], "an `error` event ends this stream");
                self.phase.is_done = true;
            }
            _ if is_about => self.about(name, members, at),
            _ => {}
        }
    }

    fn response_start(&mut self, mut members: Map<String, Value>, is_wrapped: bool, at: &mut At<'_>) {
        if self.phase.has_start {
            at.say(&rule::LATE_START, None, &[], "a second one");
            return;
        }
        self.phase.has_start = true;
        if self.events > 1 {
            at.say(&rule::LATE_START, None, &[], "other events came before it");
        }
        let mut path = Vec::new();
        let is_data = self.dialect == Some(Dialect::Data);
        match members.shift_remove("response") {
            Some(Value::Object(inner)) => {
                path.push("response");
                if !is_data {
                    let said = "dialect A has the members bare";
                    at.say(&rule::DOCUMENT_MEMBER, None, &["response"], said);
                }
                members = inner;
            }
            Some(_) | None if is_data && !is_wrapped => {
                let said = "dialect B has the members in `response`";
                at.say(&rule::DOCUMENT_MEMBER, None, &[], said);
            }
            Some(_) | None => {}
        }
        for name in ["id", "conversationId", "model", "mode", "created", "status"] {
            if !members.contains_key(name) {
                at.say(&rule::START_MEMBER, None, &path, &format!("`{name}` is missing"));
            }
        }
        if let Some(word) = members.get("status").filter(|it| it.as_str() != Some("streaming")) {
            let said = format!("the status is {}", document::described(word));
            at.say(
                &rule::START_MEMBER,
                None,
                &[path.as_slice(), &["status"]].concat(),
                &said,
            );
        }
        let is_words = |it: &Value| it.as_array().is_some_and(|it| it.iter().all(Value::is_string));
        if members.get("capabilities").is_some_and(|it| !is_words(it)) {
            let said = "`capabilities` has to be a list of texts";
            at.say(
                &rule::EVENT_MEMBER,
                None,
                &[path.as_slice(), &["capabilities"]].concat(),
                said,
            );
        }
        response::head(&members, &mut |rule, member, said| {
            let path: Vec<_> = path.iter().copied().chain([member]).collect();
            at.say(rule, None, &path, said);
        });
        self.id = members.get("id").and_then(Value::as_str).map(str::to_owned);
        let capabilities = members.get("capabilities").and_then(Value::as_array);
        self.hears = capabilities.is_some_and(|it| it.iter().any(|it| it == "live_input"));
        self.said_mode = members.get("mode").and_then(Value::as_str).and_then(Mode::parse);
        self.mode = self.said_mode.or(self.mode);
    }

    fn document_start(&mut self, mut members: Map<String, Value>, is_wrapped: bool, at: &mut At<'_>) {
        let is_data = self.dialect == Some(Dialect::Data);
        let mut path: Vec<&str> = Vec::new();
        match members.shift_remove("document") {
            Some(Value::Object(inner)) => {
                if !is_data {
                    let said = "dialect A has the members bare";
                    at.say(&rule::DOCUMENT_MEMBER, None, &["document"], said);
                }
                path.push("document");
                members = inner;
            }
            Some(_) => {
                let said = "`document` has to be an object";
                at.say(&rule::EVENT_MEMBER, None, &["document"], said);
                return;
            }
            None if is_data => {
                if !is_wrapped {
                    let said = "dialect B has the members in `document`";
                    at.say(&rule::DOCUMENT_MEMBER, None, &[], said);
                }
                if members.get("type").and_then(Value::as_str) == Some("document_start") {
                    members.shift_remove("type");
                }
            }
            None => {}
        }
        let step = |name: &'static str| [path.as_slice(), &[name]].concat();
        self.documents.started += 1;
        if self.documents.started == DOCUMENTS + 1 {
            at.say(&rule::LIMITS, None, &path, "this is one document too many");
        }
        let Some(id) = members.shift_remove("id").and_then(|it| it.as_str().map(str::to_owned)) else {
            let said = "a document starts without an `id` that is a text";
            at.say(&rule::EVENT_MEMBER, None, &step("id"), said);
            return;
        };
        if !document::is_sound(&id) {
            at.say(&rule::ID_FORM, Some(&id), &step("id"), "this is not an id");
        }
        let Some(kind) = members
            .shift_remove("type")
            .and_then(|it| it.as_str().map(str::to_owned))
        else {
            let said = "a document starts without a `type` that is a text";
            at.say(&rule::EVENT_MEMBER, Some(&id), &path, said);
            return;
        };
        self.sequence(&id, members.shift_remove("sequence").as_ref(), &step("sequence"), at);
        if !self.documents.known.insert(id.clone()) {
            let said = "there was a document of this id";
            at.say(&rule::DUPLICATE_ID, Some(&id), &step("id"), said);
        }
        let mut seen = Seen {
            kind,
            mark: at.mark(&path),
            ..Seen::default()
        };
        match members.shift_remove("content") {
            Some(Value::String(text)) => seen.content = Some(text),
            Some(Value::Null) | None => {}
            Some(other) => {
                let said = format!("`content` is {}", document::described(&other));
                at.say(&rule::CONTENT, Some(&id), &step("content"), &said);
            }
        }
        let nested = members.shift_remove("metadata");
        seen.is_concept = is_data && nested.is_none();
        if let (true, Some(Value::Object(nested))) = (is_data, &nested) {
            // Dialect B has them in both places.
            members.retain(|name, value| {
                let name = if name == "path" { "filePath" } else { name };
                nested.get(name) != Some(value)
            });
        }
        if !members.is_empty() && !seen.is_concept {
            let names: Vec<_> = members.keys().take(4).map(String::as_str).collect();
            let said = format!("{} beside `metadata`", names.join(", "));
            at.say(&rule::FLAT, Some(&id), &path, &said);
        }
        for name in members.keys() {
            let way = [path.as_slice(), &[name.as_str()]].concat();
            seen.marks.insert(name.clone(), at.mark(&way));
        }
        seen.metadata = members;
        match nested {
            Some(Value::Object(nested)) => {
                let way = step("metadata");
                take_in(&mut seen, &nested, &way, false, at);
            }
            Some(other) => {
                let said = format!("`metadata` is {}", document::described(&other));
                at.say(&rule::METADATA, Some(&id), &step("metadata"), &said);
            }
            None => {}
        }
        if seen.kind == "text" {
            if !self.documents.texts.is_empty() {
                at.say(&rule::TEXTS_OVERLAP, Some(&id), &path, "another text is open");
            }
            self.documents.texts.insert(id.clone());
        }
        if let Some((edit, mark)) = self.documents.failed_edit.take().filter(|_| seen.kind != "error") {
            let said = "no `error` document follows this edit";
            at.found
                .add(&rule::FAILED_EDIT, said, Some(&edit), mark.place, &mark.bytes);
        }
        self.documents.tool_calls += u64::from(seen.kind == "tool_call");
        self.errors += u64::from(seen.kind == "error");
        seen.id.clone_from(&id);
        let open = Open {
            seen,
            number: self.documents.started,
            has_patch: false,
            phase: Phase::Begun,
        };
        self.documents.open.insert(id, open);
    }

    fn sequence(&mut self, id: &str, sequence: Option<&Value>, path: &[&str], at: &mut At<'_>) {
        match sequence {
            Some(value) => {
                self.documents.with_sequence += 1;
                if value.as_u64() != Some(self.documents.started as u64) {
                    let said = format!(
                        "this is document {}, its sequence {}",
                        self.documents.started,
                        document::described(value)
                    );
                    at.say(&rule::SEQUENCE, Some(id), path, &said);
                }
            }
            None if self.dialect == Some(Dialect::Named) => {
                at.say(&rule::SEQUENCE_MISSING, Some(id), path, "it is missing");
            }
            None => {}
        }
        if self.documents.with_sequence != 0 && self.documents.with_sequence != self.documents.started {
            // Said once: from here on the counts can be equal no more.
            if self.documents.with_sequence + 1 == self.documents.started || self.documents.with_sequence == 1 {
                let said = "some have a sequence, some have none";
                at.say(&rule::SEQUENCE_MIXED, Some(id), path, said);
            }
        }
    }

    /// An event about a document that should be open.
    fn about(&mut self, name: &'static str, mut members: Map<String, Value>, at: &mut At<'_>) {
        let Some(id) = members
            .shift_remove("documentId")
            .and_then(|it| it.as_str().map(str::to_owned))
        else {
            let said = format!("`{name}` has no `documentId` that is a text");
            at.say(&rule::EVENT_MEMBER, None, &["documentId"], &said);
            return;
        };
        if name == "document_update" {
            self.update(&id, &members, at);
            return;
        }
        let Some(mut open) = self.documents.open.remove(&id) else {
            if self.documents.known.contains(&id) {
                let said = format!("`{name}` for a document that has ended");
                at.say(&rule::AFTER_END, Some(&id), &[], &said);
            } else {
                let said = "there was no `document_start` of it";
                at.say(&rule::UNKNOWN_DOCUMENT, Some(&id), &["documentId"], said);
            }
            return;
        };
        match name {
            "content_delta" => {
                if let Some(delta) = text_member(name, &members, "delta", at) {
                    let content = open.seen.content.get_or_insert_default();
                    if content.len() + delta.len() <= DOCUMENT_BYTES {
                        content.push_str(delta);
                    } else if content.len() <= DOCUMENT_BYTES {
                        let said = "this document is larger than 64 MiB";
                        at.say(&rule::LIMITS, Some(&id), &["delta"], said);
                        // Longer than allowed, so that it is said once.
                        content.push_str(&" ".repeat(DOCUMENT_BYTES + 1 - content.len()));
                    }
                }
                let mark = at.mark(&["delta"]);
                open.seen.marks.entry("content".to_owned()).or_insert(mark);
            }
            "tool_call_start" | "tool_call_arguments" | "tool_result" => {
                if self.dialect == Some(Dialect::Data) && !open.seen.is_concept {
                    whole_result(&mut members);
                }
                tool_event(name, &id, &mut open, members, at);
            }
            "metadata_delta" => metadata_delta(&id, &mut open, members, at),
            "document_end" => {
                self.document_end(open, members, at);
                return;
            }
            _ => {}
        }
        self.documents.open.insert(id, open);
    }

    fn document_end(&mut self, mut open: Open, mut members: Map<String, Value>, at: &mut At<'_>) {
        let seen = &mut open.seen;
        let id = seen.id.clone();
        self.documents.texts.remove(&id);
        match members.shift_remove("finalContent") {
            Some(Value::String(text)) => {
                if seen.content.as_ref().is_some_and(|it| *it != text) {
                    let said = "the deltas add up to another text";
                    at.say(&rule::FINAL_CONTENT, Some(&id), &["finalContent"], said);
                }
                seen.marks.insert("content".to_owned(), at.mark(&["finalContent"]));
                seen.content = Some(text);
            }
            Some(Value::Null) | None => {}
            Some(other) => {
                let said = format!("`finalContent` is {}", document::described(&other));
                at.say(&rule::EVENT_MEMBER, Some(&id), &["finalContent"], &said);
            }
        }
        match members.shift_remove("metadata") {
            Some(Value::Object(patch)) => {
                let can_be_told = |it: &Value| !has_null(it) && it.as_str().is_none_or(|it| it.len() < ONCE_BYTES);
                let known = seen.metadata.iter().filter(|it| can_be_told(it.1));
                let missing: Vec<_> = known
                    .map(|it| it.0.clone())
                    .filter(|it| !patch.contains_key(it))
                    .collect();
                for name in missing {
                    let said = format!("`{name}` was said before and is not here");
                    at.say(&rule::END_METADATA, Some(&id), &["metadata"], &said);
                }
                take_in(seen, &patch, &["metadata"], true, at);
            }
            Some(other) => {
                let said = format!("`metadata` is {}", document::described(&other));
                at.say(&rule::METADATA, Some(&id), &["metadata"], &said);
            }
            None if (!seen.is_concept && !seen.metadata.is_empty()) || open.has_patch => {
                at.say(&rule::END_METADATA, Some(&id), &[], "the metadata is missing");
            }
            None => {}
        }
        if !members.is_empty() {
            if !seen.is_concept {
                let names: Vec<_> = members.keys().take(4).map(String::as_str).collect();
                let said = format!("{} beside `metadata`", names.join(", "));
                at.say(&rule::FLAT, Some(&id), &[], &said);
            }
            take_in(seen, &members, &[], true, at);
        }
        if seen.mark.place.is_none() {
            seen.mark = at.mark(&[]);
        }
        document::judge(seen, self.mode, at.found);
        if seen.kind == "file_edit" && seen.metadata.get("applied").and_then(Value::as_str) == Some("failed") {
            self.documents.failed_edit = Some((id, at.mark(&["metadata"])));
        }
        let mut seen = open.seen;
        self.documents.kept_bytes += seen.content.as_ref().map_or(0, String::len);
        if self.documents.kept_bytes > KEPT_BYTES {
            seen.content = None;
            self.documents.has_dropped = true;
        }
        // Places have been told; only what it says is needed any more.
        seen.marks = HashMap::new();
        seen.mark = Mark::default();
        self.documents.ended.push((open.number, seen));
    }

    fn update(&mut self, id: &str, members: &Map<String, Value>, at: &mut At<'_>) {
        let Some(Value::Object(patch)) = members.get("metadata") else {
            let said = "`document_update` has no `metadata` that is an object";
            at.say(&rule::EVENT_MEMBER, Some(id), &[], said);
            return;
        };
        if self.documents.open.contains_key(id) {
            at.say(&rule::UPDATE_EARLY, Some(id), &[], "the document is still open");
        } else if !self.documents.known.contains(id) {
            let said = "there was no `document_start` of it";
            at.say(&rule::UNKNOWN_DOCUMENT, Some(id), &["documentId"], said);
        } else if let Some((_, seen)) = self.documents.ended.iter_mut().rev().find(|it| it.1.id == id) {
            response::merge(&mut seen.metadata, patch);
        }
    }

    fn done(&mut self, members: &Map<String, Value>, at: &mut At<'_>) {
        self.phase.is_done = true;
        let still: Vec<_> = self.documents.open.keys().take(5).cloned().collect();
        if !still.is_empty() {
            let said = format!("{} still open: {}", self.documents.open.len(), still.join(", "));
            at.say(&rule::OPEN_AT_DONE, still.first().map(String::as_str), &[], &said);
        }
        if let Some((edit, mark)) = self.documents.failed_edit.take() {
            let said = "no `error` document follows this edit";
            at.found
                .add(&rule::FAILED_EDIT, said, Some(&edit), mark.place, &mark.bytes);
        }
        let last = self.documents.ended.iter().max_by_key(|it| it.0).map(|it| &it.1);
        let ending = Ending {
            is_stream: true,
            is_concept: self.dialect == Some(Dialect::Data),
            tool_calls: self.documents.tool_calls,
            has_error: self.errors > 0,
            last,
        };
        response::end(members, &ending, &mut |rule, member, said| {
            at.say(rule, None, &[member], said);
        });
        response::head(members, &mut |rule, member, said| at.say(rule, None, &[member], said));
    }

    fn finish(&mut self, found: &mut Findings) {
        if self.phase.is_foreign {
            return;
        }
        if !self.phase.is_done {
            let said = match (self.events, self.documents.open.len()) {
                (0, _) => "there are no events".to_owned(),
                (_, 0) => "the stream ends without it".to_owned(),
                (_, open) => format!("the stream ends without it, {open} documents in the middle"),
            };
            found.add(&rule::NO_DONE, &said, None, None, "");
        } else if self.dialect == Some(Dialect::Data) && !self.phase.has_marker {
            found.add(&rule::DONE_MARKER, "the stream ends without `[DONE]`", None, None, "");
        }
    }
}

/// Takes together what dialect B says of a result: its text, and beside it the status and other data.
fn whole_result(members: &mut Map<String, Value>) {
    if !members.get("result").is_some_and(Value::is_string) {
        return;
    }
    let text = members.shift_remove("result").unwrap_or_default();
    let status = members.shift_remove("status").unwrap_or_else(|| "success".into());
    let data = members.shift_remove("data").unwrap_or(text);
    let result = Map::from_iter([("status".to_owned(), status), ("data".to_owned(), data)]);
    members.insert("result".to_owned(), result.into());
}

fn tool_event(name: &'static str, id: &str, open: &mut Open, mut members: Map<String, Value>, at: &mut At<'_>) {
    if open.seen.kind != "tool_call" {
        let said = format!("`{name}` for a {}", visible_line(&open.seen.kind));
        at.say(&rule::TOOL_EVENT, Some(id), &[], &said);
    }
    let (phase, member) = match name {
        "tool_call_start" => (Phase::Named, "toolName"),
        "tool_call_arguments" => (Phase::Argued, "arguments"),
        _ => (Phase::Answered, "result"),
    };
    if phase < open.phase {
        at.say(&rule::TOOL_ORDER, Some(id), &[], &format!("`{name}` comes late"));
    } else if phase == open.phase {
        at.say(&rule::ARGUMENTS_ONCE, Some(id), &[], &format!("a second `{name}`"));
    }
    open.phase = open.phase.max(phase);
    match members.get(member) {
        None => {
            let said = format!("`{name}` has no `{member}`");
            at.say(&rule::EVENT_MEMBER, Some(id), &[], &said);
        }
        Some(Value::String(_)) if member == "arguments" => {
            // A piece of their text: readers put it together, so that no value is known yet.
            let said = "the arguments are a text, or a piece of one";
            at.say(&rule::ARGUMENTS_ONCE, Some(id), &["arguments"], said);
            members.shift_remove("arguments");
            open.seen
                .metadata
                .entry("arguments")
                .or_insert_with(|| Map::new().into());
        }
        Some(value) if member == "toolName" && !value.is_string() => {
            let said = "`toolName` has to be a text";
            at.say(&rule::EVENT_MEMBER, Some(id), &["toolName"], said);
        }
        Some(_) => {}
    }
    take_in(&mut open.seen, &members, &[], false, at);
}

fn metadata_delta(id: &str, open: &mut Open, members: Map<String, Value>, at: &mut At<'_>) {
    open.has_patch = true;
    if !members.contains_key("metadata") && !members.contains_key("append") {
        let said = "`metadata_delta` has neither `metadata` nor `append`";
        at.say(&rule::EVENT_MEMBER, Some(id), &[], said);
    }
    match members.get("metadata") {
        Some(Value::Object(patch)) => take_in(&mut open.seen, patch, &["metadata"], true, at),
        Some(_) => at.say(
            &rule::METADATA,
            Some(id),
            &["metadata"],
            "`metadata` has to be an object",
        ),
        None => {}
    }
    match members.get("append") {
        Some(Value::Object(appended)) => {
            for (name, text) in appended {
                let known = open.seen.metadata.entry(name.clone()).or_insert_with(|| "".into());
                match (known, text) {
                    (Value::String(known), Value::String(text)) => {
                        if known.len() + text.len() <= DOCUMENT_BYTES {
                            known.push_str(text);
                        }
                    }
                    (_, Value::String(_)) => {
                        let said = format!("`{name}` is not text that could grow");
                        at.say(&rule::APPEND, Some(id), &["append"], &said);
                    }
                    (_, _) => {
                        let said = format!("what is appended to `{name}` is not text");
                        at.say(&rule::APPEND, Some(id), &["append"], &said);
                    }
                }
                let mark = at.mark(&["append"]);
                open.seen.marks.insert(name.clone(), mark);
            }
        }
        Some(_) => at.say(&rule::APPEND, Some(id), &["append"], "`append` has to be an object"),
        None => {}
    }
}

/// Merges members into the metadata, and stores where each was written.
fn take_in(seen: &mut Seen, members: &Map<String, Value>, path: &[&str], is_patch: bool, at: &At<'_>) {
    for name in members.keys() {
        let way: Vec<&str> = path.iter().copied().chain([name.as_str()]).collect();
        seen.marks.insert(name.clone(), at.mark(&way));
    }
    if is_patch {
        response::merge(&mut seen.metadata, members);
    } else {
        seen.metadata
            .extend(members.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
}

fn text_member<'a>(event: &str, members: &'a Map<String, Value>, name: &str, at: &mut At<'_>) -> Option<&'a str> {
    let found = members.get(name).and_then(Value::as_str);
    if found.is_none() {
        let said = format!("`{event}` has no `{name}` that is a text");
        at.say(&rule::EVENT_MEMBER, None, &[name], &said);
    }
    found
}

/// Returns true if the value contains a null, which a merge patch cannot set.
fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.values().any(has_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    }
}
