//! What the model was told, as the journal keeps it: the messages byte for byte, the session's system prompt, and what the
//! agent knows of files. Read back, the next request begins with the bytes of the last one.
//!
//! A record ([`Event::Told`]) holds the difference to the record before it on the same branch: how many messages stay, and
//! the messages after those. Parts of more than a few hundred bytes are stored once in a session, under their SHA-256. What
//! cannot be read makes the records worthless, never the session: it is told from its documents then.

use std::{
    collections::{BTreeMap, HashMap, HashSet, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::message_history::{Border, MessageHistory};
use crate::{
    config::Fingerprint,
    models::{Call, CallResult, Image, ModelMessage, Part, Said, ToolSpec},
    protocol::{Address, DocumentId, Entry, Event, Mode, Position, Turn},
    sandbox::SeenFile,
    transcript::Transcript,
};

/// A shorter part stands in its message.
const PART_BYTES: usize = 512;

/// A longer text is not stored: no model's window holds it, and the record would need several times its memory. A session
/// in which one was told is told from its documents, until its history is rewritten whole.
const LONGEST_PART_BYTES: usize = 4 << 20;

/// A record that rewrites what was told repeats all of its parts if this many times its size was written since they were
/// repeated last: so the end of a long session can be read by itself, and the session grows by a quarter at most.
const REPEATED_AFTER: usize = 4;

/// The name of a part that stands elsewhere.
const PART: &str = "part";

/// Stands for the hash of a text that is too long to be stored: no part has this name, so the record cannot be read.
const TOO_LONG: &str = "too long";

/// The prompt of a session: it stays the same as long as the same model answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPrompt {
    /// Format, server and model that it was written for.
    pub maker: String,
    pub system: Arc<str>,
    /// SHA-256 of the prompt as the settings and rules make it now; what differs was told in a message.
    pub newest: String,
    /// Each tool with the SHA-256 of its description, in the order of the request.
    pub tools: Arc<[(String, String)]>,
}

impl SessionPrompt {
    /// The prompt of a request to `maker`.
    pub fn new(maker: &str, system: Arc<str>, tools: &[Arc<ToolSpec>]) -> Self {
        Self {
            maker: maker.to_owned(),
            newest: hash_of(system.as_bytes()),
            system,
            tools: described(tools),
        }
    }

    /// The names of tools that are not described as in `other`, or not there; empty: the lists are the same.
    pub fn changed_tools(&self, other: &Self) -> Vec<String> {
        if self.tools == other.tools {
            return Vec::new();
        }
        let only = |these: &Self, those: &Self| {
            let changed = these.tools.iter().filter(|it| !those.tools.contains(it));
            changed.map(|it| it.0.clone()).collect::<Vec<_>>()
        };
        let mut changed = only(self, other);
        changed.extend(only(other, self));
        changed.sort();
        changed.dedup();
        if changed.is_empty() {
            changed.push("order".to_owned());
        }
        changed
    }
}

/// Each tool with the SHA-256 of its description. Conversations with the same tools, as those of a gateway, share the list.
fn described(tools: &[Arc<ToolSpec>]) -> Arc<[(String, String)]> {
    type Described = (Vec<Arc<ToolSpec>>, Arc<[(String, String)]>);
    static LAST: Mutex<Option<Described>> = Mutex::new(None);

    // It is replaced whole.
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, described)) = &*last
        && known == tools
    {
        return Arc::clone(described);
    }
    let tool = |it: &Arc<ToolSpec>| {
        let description = json!([it.about, it.parameters]).to_string();
        (it.name.clone(), hash_of(description.as_bytes()))
    };
    let described: Arc<[(String, String)]> = tools.iter().map(tool).collect();
    *last = Some((tools.to_vec(), Arc::clone(&described)));
    described
}

/// Lines that had marks of instrumentation before debugging began, by file: they are the user's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkBaseline(pub BTreeMap<String, Vec<String>>);

/// Facts that decide what is told with the next message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToldContext {
    /// Rules that were said in a message.
    pub rules: BTreeMap<String, Fingerprint>,
    /// Files that the user has named, the last one first.
    pub open: Vec<String>,
    /// The mode that the model was told last.
    pub mode: Option<Mode>,
    /// The custom mode that it was told last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_mode: Option<String>,
    /// Marks of instrumentation from before debugging began; `None`: nothing is debugged.
    pub marks: Option<MarkBaseline>,
}

/// Facts beside the messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToldFacts {
    pub prompt: Option<Arc<SessionPrompt>>,
    /// Contents and lines of files that the model has read or written.
    pub files: BTreeMap<PathBuf, SeenFile>,
    pub context: ToldContext,
}

/// Writes the records of a session.
#[derive(Debug, Default)]
pub struct ToldRecorder {
    /// A hash of each message of the last record, with its borders.
    keys: Vec<u64>,
    /// The parts that are stored.
    parts: HashSet<String>,
    facts: ToldFacts,
    counted: Option<(u64, usize)>,
    /// Bytes of messages and parts written since all parts were written.
    written: usize,
}

impl ToldRecorder {
    /// Goes on after the records of a branch.
    pub fn after(restored: &Restored) -> Self {
        Self {
            keys: keys(&restored.history),
            parts: restored.parts.clone(),
            facts: restored.facts.clone(),
            counted: restored.history.counts(),
            written: 0,
        }
    }

    /// Returns the next record; `None` if nothing has changed. `root`: the folder that paths are relative to.
    pub fn record(
        &mut self,
        history: &MessageHistory,
        facts: ToldFacts,
        root: Option<&Path>,
    ) -> Option<Map<String, Value>> {
        let keys = keys(history);
        let mut keep = self
            .keys
            .iter()
            .zip(&keys)
            .take_while(|(one, other)| one == other)
            .count();
        let is_rewritten = keep < self.keys.len();
        let is_same = !is_rewritten && keep == keys.len();
        if is_same && self.facts == facts && self.counted == history.counts() {
            return None;
        }
        if is_rewritten && self.written >= REPEATED_AFTER * history.bytes() {
            keep = 0;
        }
        let is_whole = keep == 0;
        if is_whole {
            self.parts.clear();
            self.written = 0;
        }
        let mut writer = PartWriter {
            known: &mut self.parts,
            new: Map::new(),
        };
        let added = history.messages.get(keep..).unwrap_or_default();
        let messages: Vec<Value> = added.iter().map(|it| writer.message(it)).collect();
        let borders = history.borders.iter().filter(|it| it.at >= keep);
        let borders: Vec<Value> = borders.map(|it| json!([it.at, it.turn.0, it.behind])).collect();
        let calls: HashSet<&str> = added.iter().flat_map(ModelMessage::call_ids).collect();
        let places = history
            .places
            .iter()
            .filter(|it| is_whole || calls.contains(it.0.as_str()));
        let places: BTreeMap<&String, Value> = places.map(|(call, it)| (call, json!([it.turn.0, it.number]))).collect();
        let mut record = Map::new();
        record.insert("keep".into(), keep.into());
        if !is_whole {
            record.insert("of".into(), self.keys.len().into());
        }
        let mut put = |name: &str, value: Value, is_new: bool| {
            if is_new {
                record.insert(name.to_owned(), value);
            }
        };
        let has_borders = !borders.is_empty();
        put("borders", borders.into(), has_borders);
        put("openedAt", json!(history.opened_at), history.opened_at.is_some());
        put("isShort", true.into(), history.is_short);
        put("counted", json!(history.counts()), history.counts().is_some());
        put("places", json!(places), !places.is_empty());
        if let Some(prompt) = facts
            .prompt
            .as_ref()
            .filter(|_| is_whole || self.facts.prompt != facts.prompt)
        {
            let system = writer.text(&prompt.system);
            let tools = writer.value(json!(prompt.tools));
            put(
                "prompt",
                json!({ "maker": prompt.maker, "system": system, "newest": prompt.newest, "tools": tools }),
                true,
            );
        }
        let none = BTreeMap::new();
        let files = file_changes(if is_whole { &none } else { &self.facts.files }, &facts.files, root);
        put("files", json!(files), !files.is_empty());
        put(
            "context",
            json!(facts.context),
            is_whole || self.facts.context != facts.context,
        );
        let parts = std::mem::take(&mut writer.new);
        self.written += parts.values().map(|it| it.to_string().len()).sum::<usize>();
        let (has_parts, has_messages) = (!parts.is_empty(), !messages.is_empty());
        put("parts", parts.into(), has_parts);
        put("messages", messages.into(), has_messages);
        self.keys = keys;
        self.facts = facts;
        self.counted = history.counts();
        Some(record)
    }
}

/// The state that the records of a branch lead to, and the point up to which they tell it.
#[derive(Debug)]
pub struct Restored {
    pub history: MessageHistory,
    pub facts: ToldFacts,
    /// The turn of the last record, and how many documents its answer had then.
    pub upto: (Turn, usize),
    /// The parts that are stored in the session.
    pub parts: HashSet<String>,
}

/// A record and its position in the log.
type PlacedRecord<'a> = (Position, &'a Map<String, Value>);

/// Reads what was told on the branch that `transcript`, the fold of `entries`, is on. `None`: there is no record, or what
/// it builds on cannot be read.
pub fn restore(entries: &[Arc<Entry>], transcript: &Transcript, root: Option<&Path>) -> Option<Restored> {
    let mut records: BTreeMap<Turn, Vec<PlacedRecord<'_>>> = BTreeMap::new();
    let mut starts: HashMap<Turn, Vec<Position>> = HashMap::new();
    let mut parts: HashMap<&str, &Value> = HashMap::new();
    for entry in entries {
        match &entry.event {
            Event::Told(record) => {
                if let Some(Value::Object(new)) = record.get("parts") {
                    parts.extend(new.iter().map(|(hash, part)| (hash.as_str(), part)));
                }
                records.entry(entry.turn).or_default().push((entry.position, record));
            }
            Event::DocumentStart(_) => starts.entry(entry.turn).or_default().push(entry.position),
            _ => {}
        }
    }
    let mut way = Vec::new();
    for exchange in &transcript.exchanges {
        let mut until = Position(u64::MAX);
        if exchange.is_cut {
            let last = exchange.response.documents.len().saturating_sub(1);
            let start = starts.get(&exchange.turn).and_then(|it| it.get(last));
            until = start.copied().unwrap_or(until);
        }
        let told = records.get(&exchange.turn).map(Vec::as_slice).unwrap_or_default();
        way.extend(
            told.iter()
                .filter(|it| it.0 < until)
                .map(|it| (exchange.turn, it.0, it.1)),
        );
    }
    let is_whole = |it: &Map<String, Value>| it.get("keep").and_then(Value::as_u64) == Some(0);
    let first = way.iter().rposition(|it| is_whole(it.2))?;
    let reader = PartReader(&parts);
    let (mut history, mut facts) = (MessageHistory::default(), ToldFacts::default());
    for (_, _, record) in way.get(first..)? {
        reader.apply(record, &mut history, &mut facts, root)?;
    }
    let (turn, position, _) = way.last()?;
    let documents = starts.get(turn).map(Vec::as_slice).unwrap_or_default();
    let upto = (*turn, documents.iter().filter(|it| **it < *position).count());
    let parts = parts.into_keys().map(str::to_owned).collect();
    Some(Restored {
        history,
        facts,
        upto,
        parts,
    })
}

/// Puts large parts aside.
struct PartWriter<'a> {
    known: &'a mut HashSet<String>,
    new: Map<String, Value>,
}

impl PartWriter<'_> {
    /// The value, or the name of the part that holds it.
    fn value(&mut self, value: Value) -> Value {
        let written = match &value {
            Value::String(text) if text.len() < PART_BYTES => return value,
            value => value.to_string(),
        };
        // What looks like the name of a part is one, so that it is read as it was.
        let is_name = value
            .as_object()
            .is_some_and(|it| it.len() == 1 && it.contains_key(PART));
        if written.len() < PART_BYTES && !is_name {
            return value;
        }
        let hash = hash_of(written.as_bytes());
        if self.known.insert(hash.clone()) {
            self.new.insert(hash.clone(), value);
        }
        json!({ PART: hash })
    }

    fn text(&mut self, text: &str) -> Value {
        if text.len() > LONGEST_PART_BYTES {
            return json!({ PART: TOO_LONG });
        }
        self.value(text.into())
    }

    /// An opaque value is always a part, so that one that was changed is recognised.
    fn opaque(&mut self, value: &Value) -> Value {
        let hash = hash_of(value.to_string().as_bytes());
        if self.known.insert(hash.clone()) {
            self.new.insert(hash.clone(), value.clone());
        }
        json!({ PART: hash })
    }

    fn image(&mut self, image: &Image) -> Value {
        let bytes = self.value(STANDARD.encode(&image.bytes).into());
        json!({ "image": image.media_type, "bytes": bytes })
    }

    fn message(&mut self, message: &ModelMessage) -> Value {
        match message {
            ModelMessage::User(parts) => {
                let parts = parts.iter().map(|it| match it {
                    Part::Text(text) => json!({ "text": self.text(text) }),
                    Part::Image(image) => self.image(image),
                });
                json!({ "user": parts.collect::<Vec<_>>() })
            }
            ModelMessage::Assistant(said) => {
                let said = said.iter().map(|it| match it {
                    Said::Text(text) => json!({ "text": self.text(text) }),
                    Said::Opaque(value) => json!({ "opaque": self.opaque(value) }),
                    Said::Call(call) => {
                        let mut value = json!({ "call": call.id, "name": call.name });
                        value["arguments"] = self.value(call.arguments.clone().into());
                        if let Some(opaque) = &call.opaque {
                            value["opaque"] = self.opaque(opaque);
                        }
                        value
                    }
                });
                json!({ "assistant": said.collect::<Vec<_>>() })
            }
            ModelMessage::Results(results) => {
                let results = results.iter().map(|it| {
                    let mut value = json!({ "call": it.call, "name": it.name, "text": self.text(&it.text) });
                    if it.is_error {
                        value["isError"] = true.into();
                    }
                    if !it.images.is_empty() {
                        value["images"] = it.images.iter().map(|it| self.image(it)).collect();
                    }
                    value
                });
                json!({ "results": results.collect::<Vec<_>>() })
            }
        }
    }
}

/// Puts messages together again. `None` wherever something is missing or has the wrong type.
struct PartReader<'a>(&'a HashMap<&'a str, &'a Value>);

impl PartReader<'_> {
    fn value(&self, value: &Value) -> Option<Value> {
        match value
            .get(PART)
            .filter(|_| value.as_object().is_some_and(|it| it.len() == 1))
        {
            Some(hash) => Some((*self.0.get(hash.as_str()?)?).clone()),
            None => Some(value.clone()),
        }
    }

    fn text(&self, value: Option<&Value>) -> Option<String> {
        match self.value(value?)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// `Some(None)`: it is not what it was (a secret was taken out of the file), and no server would take it.
    #[expect(clippy::option_option, reason = "unreadable, left out and there are three things")]
    fn opaque(&self, value: &Value) -> Option<Option<Value>> {
        let hash = value.get(PART)?.as_str()?;
        let value = *self.0.get(hash)?;
        Some((hash_of(value.to_string().as_bytes()) == hash).then(|| value.clone()))
    }

    fn image(&self, value: &Value) -> Option<Image> {
        let bytes = STANDARD.decode(self.text(value.get("bytes"))?).ok()?;
        Some(Image {
            media_type: value.get("image")?.as_str()?.to_owned(),
            bytes: bytes.into(),
        })
    }

    #[expect(clippy::option_option, reason = "unreadable, left out and there are three things")]
    fn said(&self, value: &Value) -> Option<Option<Said>> {
        if let Some(id) = value.get("call") {
            let Value::Object(arguments) = self.value(value.get("arguments")?)? else {
                return None;
            };
            let opaque = match value.get("opaque") {
                Some(opaque) => self.opaque(opaque)?,
                None => None,
            };
            return Some(Some(Said::Call(Call {
                id: id.as_str()?.to_owned(),
                name: value.get("name")?.as_str()?.to_owned(),
                arguments,
                opaque,
            })));
        }
        match value.get("opaque") {
            Some(opaque) => Some(self.opaque(opaque)?.map(Said::Opaque)),
            None => Some(Some(Said::Text(self.text(value.get("text"))?.into()))),
        }
    }

    fn result(&self, value: &Value) -> Option<CallResult> {
        let images = value.get("images").and_then(Value::as_array);
        let images = images.map(Vec::as_slice).unwrap_or_default();
        Some(CallResult {
            call: value.get("call")?.as_str()?.to_owned(),
            name: value.get("name")?.as_str()?.to_owned(),
            text: self.text(value.get("text"))?,
            is_error: value.get("isError").is_some(),
            images: images.iter().map(|it| self.image(it)).collect::<Option<_>>()?,
        })
    }

    fn message(&self, value: &Value) -> Option<ModelMessage> {
        let list = |name: &str| value.get(name).and_then(Value::as_array);
        if let Some(parts) = list("user") {
            let part = |it: &Value| match it.get("image") {
                Some(_) => self.image(it).map(Part::Image),
                None => self.text(it.get("text")).map(Part::Text),
            };
            return Some(ModelMessage::User(parts.iter().map(part).collect::<Option<_>>()?));
        }
        if let Some(said) = list("assistant") {
            let said: Vec<Option<Said>> = said.iter().map(|it| self.said(it)).collect::<Option<_>>()?;
            return Some(ModelMessage::Assistant(said.into_iter().flatten().collect()));
        }
        let results = list("results")?
            .iter()
            .map(|it| self.result(it))
            .collect::<Option<_>>()?;
        Some(ModelMessage::Results(results))
    }

    fn apply(
        &self,
        record: &Map<String, Value>,
        history: &mut MessageHistory,
        facts: &mut ToldFacts,
        root: Option<&Path>,
    ) -> Option<()> {
        let keep = usize::try_from(record.get("keep")?.as_u64()?).ok()?;
        if keep == 0 {
            *history = MessageHistory::default();
            *facts = ToldFacts::default();
        }
        // Else the record before it is missing.
        let of = record.get("of").and_then(Value::as_u64);
        let is_next = keep == 0 || of.is_none_or(|it| usize::try_from(it).is_ok_and(|it| it == history.messages.len()));
        if keep > history.messages.len() || !is_next {
            return None;
        }
        history.messages.truncate(keep);
        history.borders.retain(|it| it.at < keep);
        let list = |name: &str| {
            record
                .get(name)
                .and_then(Value::as_array)
                .map(Vec::as_slice)
                .unwrap_or_default()
        };
        for message in list("messages") {
            history.messages.push(self.message(message)?);
        }
        for border in list("borders") {
            history.borders.push(border_of(border)?);
        }
        if let Some(Value::Object(places)) = record.get("places") {
            for (call, place) in places {
                let (turn, number) = serde_json::from_value::<(u32, u64)>(place.clone()).ok()?;
                let turn = Turn(turn);
                history.places.insert(call.clone(), Address { turn, number });
            }
        }
        let opened_at = record.get("openedAt").and_then(Value::as_u64);
        history.opened_at = opened_at.and_then(|it| usize::try_from(it).ok());
        history.is_short = record.get("isShort").is_some();
        let counted = record.get("counted").cloned().unwrap_or_default();
        history.set_counts(serde_json::from_value(counted).ok()?);
        if let Some(prompt) = record.get("prompt") {
            facts.prompt = Some(Arc::new(SessionPrompt {
                maker: prompt.get("maker")?.as_str()?.to_owned(),
                system: self.text(prompt.get("system"))?.into(),
                newest: prompt.get("newest")?.as_str()?.to_owned(),
                tools: serde_json::from_value(self.value(prompt.get("tools")?)?).ok()?,
            }));
        }
        if let Some(Value::Object(files)) = record.get("files") {
            for (path, file) in files {
                let path = root.map_or_else(|| PathBuf::from(path), |it| it.join(path));
                match file_of(file) {
                    Some(file) => drop(facts.files.insert(path, file)),
                    None => drop(facts.files.remove(&path)),
                }
            }
        }
        if let Some(context) = record.get("context") {
            facts.context = serde_json::from_value(context.clone()).ok()?;
        }
        Some(())
    }
}

fn border_of(value: &Value) -> Option<Border> {
    let (at, turn, behind) = serde_json::from_value::<(usize, u32, Option<DocumentId>)>(value.clone()).ok()?;
    let turn = Turn(turn);
    Some(Border { at, turn, behind })
}

/// `null` for files that are known no more; paths inside of `root` are relative to it.
fn file_changes(
    before: &BTreeMap<PathBuf, SeenFile>,
    now: &BTreeMap<PathBuf, SeenFile>,
    root: Option<&Path>,
) -> Map<String, Value> {
    let shown = |path: &Path| {
        let inside = root.and_then(|it| path.strip_prefix(it).ok());
        // A name that is no text is read again before it is changed.
        inside.unwrap_or(path).to_str().map(str::to_owned)
    };
    let gone = before.keys().filter(|it| !now.contains_key(*it));
    let gone = gone.filter_map(|it| Some((shown(it)?, Value::Null)));
    let new = now.iter().filter(|(path, it)| before.get(*path) != Some(it));
    let new = new.filter_map(|(path, it)| {
        let lines: Vec<(u64, u64)> = it.lines.iter().map(|it| (*it.start(), *it.end())).collect();
        Some((
            shown(path)?,
            json!({ "hash": STANDARD.encode(it.hash), "lines": lines }),
        ))
    });
    gone.chain(new).collect()
}

fn file_of(value: &Value) -> Option<SeenFile> {
    let hash = STANDARD.decode(value.get("hash")?.as_str()?).ok()?;
    let lines: Vec<(u64, u64)> = serde_json::from_value(value.get("lines")?.clone()).ok()?;
    Some(SeenFile {
        hash: hash.try_into().ok()?,
        lines: lines.into_iter().map(|(first, last)| first..=last).collect(),
    })
}

pub fn hash_of(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// A hash of each message, with the borders before it.
fn keys(history: &MessageHistory) -> Vec<u64> {
    let mut hashers: Vec<DefaultHasher> = Vec::new();
    for message in &history.messages {
        let mut hasher = DefaultHasher::new();
        message.hash(&mut hasher);
        hashers.push(hasher);
    }
    for border in &history.borders {
        if let Some(hasher) = hashers.get_mut(border.at) {
            (border.turn, &border.behind).hash(hasher);
        }
    }
    hashers.iter().map(Hasher::finish).collect()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;
    use crate::{
        agent::history::folded,
        journal::Log,
        protocol::{Branch, DocumentStart, Done, Kind, Message},
    };

    fn call(id: &str, arguments: &str) -> Said {
        Said::Call(Call {
            id: id.to_owned(),
            name: "grep".to_owned(),
            arguments: Map::from_iter([("pattern".to_owned(), arguments.into())]),
            opaque: Some(json!({ "thoughtSignature": "CiQB" })),
        })
    }

    fn image() -> Image {
        Image {
            media_type: "image/png".to_owned(),
            bytes: vec![7; 2000].into(),
        }
    }

    /// A log whose turns are told by a recorder, as the runner does it.
    struct Teller {
        log: Arc<Log>,
        recorder: ToldRecorder,
        history: MessageHistory,
    }

    impl Teller {
        fn new() -> Self {
            Self {
                log: Log::new(),
                recorder: ToldRecorder::default(),
                history: MessageHistory::default(),
            }
        }

        fn facts() -> ToldFacts {
            ToldFacts {
                prompt: Some(SessionPrompt::new("m", "be good ".repeat(200).into(), &[]).into()),
                files: BTreeMap::from([(
                    PathBuf::from("/work/a.rs"),
                    SeenFile {
                        hash: [3; 32],
                        lines: vec![1..=5, 9..=u64::MAX],
                    },
                )]),
                context: ToldContext {
                    mode: Some(Mode::Plan),
                    ..ToldContext::default()
                },
            }
        }

        fn record(&mut self) {
            let record = self
                .recorder
                .record(&self.history, Self::facts(), Some(Path::new("/work")));
            if let Some(record) = record {
                self.log.append(0, Event::Told(record));
            }
        }

        /// A turn with an answer of one document.
        fn turn(&mut self, words: &str) {
            self.log.append(0, Event::UserMessage(Message::user(words)));
            self.history.turn(
                self.log.turn(),
                vec![Part::Text(words.to_owned()), Part::Image(image())],
            );
            self.record();
            let id: DocumentId = format!("d{words}").as_str().into();
            self.log.append(
                0,
                Event::DocumentStart(DocumentStart {
                    id: id.clone(),
                    kind: Kind::Text,
                    sequence: None,
                    content: None,
                    metadata: Map::new(),
                }),
            );
            self.log.append(
                0,
                Event::DocumentEnd {
                    document: id,
                    final_content: Some("answer".into()),
                    metadata: Map::new(),
                },
            );
            let said = vec![
                Said::Opaque(json!({ "signature": "EqQB" })),
                Said::Text("answer".into()),
                call(words, words),
            ];
            self.history.messages.push(ModelMessage::Assistant(said));
            self.history.messages.push(ModelMessage::Results(vec![CallResult {
                call: words.to_owned(),
                name: "grep".to_owned(),
                text: "found ".repeat(200),
                is_error: false,
                images: vec![image()],
            }]));
            self.record();
            self.log.append(0, Event::Done(Done::default()));
        }

        fn go_on(&mut self, branch: Branch) {
            self.log.append(0, Event::Branch(branch));
            let restored = self.restored().expect("a record");
            self.history = restored.history.clone();
            self.recorder = ToldRecorder::after(&restored);
        }

        fn restored(&self) -> Option<Restored> {
            let entries = self.log.after(Position(0));
            restore(&entries, &folded(&entries), Some(Path::new("/work")))
        }
    }

    #[test]
    fn what_was_told_is_read_back_and_large_parts_stand_there_once() {
        let mut teller = Teller::new();
        for words in ["one", "two", "three"] {
            teller.turn(words);
            let restored = teller.restored().expect("a record");
            assert_eq!(restored.history, teller.history);
            assert_eq!(restored.facts, Teller::facts());
            assert_eq!(restored.upto, (teller.log.turn(), 1));
        }
        let written: String = teller
            .log
            .after(Position(0))
            .iter()
            .map(|it| format!("{:?}", it.event))
            .collect();
        let large = STANDARD.encode(vec![7; 2000]);
        for part in [large, "found ".repeat(200), "be good ".repeat(200)] {
            assert_eq!(written.matches(part.as_str()).count(), 1, "{part}");
        }
        assert!(
            teller
                .recorder
                .record(&teller.history, Teller::facts(), Some(Path::new("/work")))
                .is_none()
        );
    }

    #[test]
    fn a_branch_has_what_was_told_on_it() {
        let mut teller = Teller::new();
        teller.turn("one");
        let first = teller.history.clone();
        teller.turn("two");
        let second = teller.history.clone();
        teller.go_on(Branch {
            after: Turn(1),
            ..Branch::default()
        });
        assert_eq!(teller.history, first);
        teller.turn("three");
        assert_eq!(teller.restored().expect("a record").history, teller.history);
        teller.go_on(Branch {
            after: Turn(2),
            ..Branch::default()
        });
        assert_eq!(teller.history, second);
        // Within an answer: what was told when the document began.
        teller.go_on(Branch {
            after: Turn(2),
            upto: Some("dtwo".into()),
            is_open: false,
        });
        assert_eq!(teller.history.messages.len(), first.messages.len() + 1);
        assert_eq!(teller.restored().expect("a record").upto, (Turn(2), 0));
    }

    #[test]
    fn what_is_missing_makes_the_records_worthless_and_a_changed_thought_is_left_out() {
        let mut teller = Teller::new();
        teller.turn("one");
        let entries = teller.log.after(Position(0));
        let changed = |change: &dyn Fn(&mut Map<String, Value>)| {
            let entries = entries.iter().map(|entry| {
                let mut entry = (**entry).clone();
                if let Event::Told(record) = &mut entry.event {
                    change(record);
                }
                Arc::new(entry)
            });
            let entries: Vec<Arc<Entry>> = entries.collect();
            restore(&entries, &folded(&entries), None)
        };
        assert!(changed(&|_| {}).is_some());
        assert!(changed(&|it| drop(it.shift_remove("parts"))).is_none());
        assert!(changed(&|it| drop(it.insert("keep".into(), 9.into()))).is_none());
        assert!(changed(&|it| drop(it.insert("messages".into(), json!([{ "user": 1 }])))).is_none());
        let redacted = changed(&|record| {
            if let Some(Value::Object(parts)) = record.get_mut("parts") {
                for part in parts.values_mut().filter(|it| it.get("signature").is_some()) {
                    *part = json!({ "signature": "[redacted]" });
                }
            }
        });
        let messages = redacted.expect("the rest is sound").history.messages;
        assert!(!format!("{messages:?}").contains("redacted"), "{messages:?}");
        assert_eq!(messages.len(), 3);
    }

    #[test]
    fn a_text_that_no_window_holds_is_not_stored() {
        let mut teller = Teller::new();
        teller.turn("one");
        let said = "a".repeat(LONGEST_PART_BYTES + 1);
        let said = vec![Said::Text(said.as_str().into())];
        teller.history.messages.push(ModelMessage::Assistant(said));
        teller.record();
        let last = teller.log.after(Position(0)).pop().expect("a record");
        let Event::Told(record) = &last.event else {
            panic!("{:?}", last.event)
        };
        assert!(json!(record).to_string().len() < 1000);
        assert!(teller.restored().is_none(), "its documents tell it");
    }

    #[test]
    fn a_record_whose_predecessor_is_missing_is_not_applied() {
        let mut teller = Teller::new();
        for text in ["one", "two", "three"] {
            teller.turn(text);
        }
        let entries = teller.log.after(Position(0));
        let is_record = |it: &Arc<Entry>| matches!(it.event, Event::Told(_));
        let records: Vec<_> = entries
            .iter()
            .filter(|it| is_record(it))
            .map(|it| it.position)
            .collect();
        let without = |position: Option<Position>| {
            let rest: Vec<_> = entries
                .iter()
                .filter(|it| Some(it.position) != position)
                .cloned()
                .collect();
            restore(&rest, &folded(&rest), None)
        };
        assert!(records.len() > 2);
        assert!(without(None).is_some(), "the control");
        for missing in &records[..records.len() - 1] {
            assert!(without(Some(*missing)).is_none(), "{missing:?}");
        }
        assert!(
            without(records.last().copied()).is_some(),
            "the last one is only not there"
        );
    }

    #[test]
    fn a_rewritten_history_is_written_whole_when_enough_was_written() {
        let mut teller = Teller::new();
        for nth in 0..40 {
            teller.turn(&format!("{nth} {}", "x".repeat(600)));
        }
        teller.history = MessageHistory::default();
        teller.turn("short");
        let entries = teller.log.after(Position(0));
        let whole = |it: &&Arc<Entry>| matches!(&it.event, Event::Told(it) if it.get("keep") == Some(&0.into()));
        let last = entries.iter().rev().find(whole).expect("the last one").position;
        // The end of the log alone is enough.
        let end: Vec<Arc<Entry>> = entries
            .iter()
            .filter(|it| it.position.0 + 2 > last.0)
            .cloned()
            .collect();
        let restored = restore(&end, &folded(&end), Some(Path::new("/work"))).expect("it stands by itself");
        assert_eq!(restored.history, teller.history);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever is added, taken away or changed in between: the last state is read back.
        #[test]
        fn any_history_is_read_back(steps in prop::collection::vec((0_usize..6, "[a-c]{0,3}", any::<bool>()), 1..20)) {
            let mut teller = Teller::new();
            teller.log.append(0, Event::UserMessage(Message::user("go")));
            for (keep, text, is_long) in steps {
                teller.history.truncate(keep.min(teller.history.messages.len()));
                let text = if is_long { text.repeat(400) } else { text };
                teller.history.turn(Turn(1), vec![Part::Text(text.clone())]);
                teller.history.messages.push(ModelMessage::Assistant(vec![Said::Text(text.into())]));
                teller.record();
                let restored = teller.restored().expect("a record");
                prop_assert_eq!(&restored.history.messages, &teller.history.messages);
                prop_assert_eq!(&restored.history.borders, &teller.history.borders);
            }
        }
    }
}
