//! The response around the documents: its members, how it ends, the JSON object, and refusals.

use serde_json::{Map, Value};

use super::{
    RequestFacts, Whole,
    document::{self, Mark, Seen},
    json,
    report::{ByteRange, Findings, Judged},
    rule::{self, Rule},
};
use crate::{
    protocol::{
        FinishReason, Mode,
        codec::{Foreign, is_time},
    },
    text::visible_line,
};

/// Callback with a rule, the member concerned, and a description.
pub type Say<'a> = &'a mut dyn FnMut(&'static Rule, &str, &str);

/// Facts that an end is compared with.
pub struct Ending<'a> {
    pub is_stream: bool,
    /// True for the concept's form, whose ends say less.
    pub is_concept: bool,
    pub tool_calls: u64,
    pub has_error: bool,
    pub last: Option<&'a Seen>,
}

/// Checks the members that a response has from its start.
pub fn head(members: &Map<String, Value>, say: Say<'_>) {
    for name in ["id", "conversationId", "model", "mode", "created"] {
        match members.get(name) {
            None => {}
            Some(Value::String(text)) if text.is_empty() => {
                say(&rule::RESPONSE_TYPE, name, &format!("`{name}` is empty"));
            }
            Some(Value::String(_)) => {}
            Some(Value::Number(number)) if name == "created" => {
                say(&rule::CREATED, name, &format!("{number} counts from 1970"));
            }
            Some(other) => {
                let said = format!("`{name}` has to be a text, not {}", document::described(other));
                say(&rule::RESPONSE_TYPE, name, &said);
            }
        }
    }
    let word = |name: &str| members.get(name).and_then(Value::as_str);
    for (name, start) in [("id", "chat_"), ("conversationId", "conv_")] {
        let Some(id) = word(name) else { continue };
        if !document::is_sound(id) {
            say(&rule::ID_FORM, name, &format!("`{name}` is not an id"));
        } else if id.strip_prefix(start).is_none_or(str::is_empty) {
            say(
                &rule::RESPONSE_ID,
                name,
                &format!("`{id}` does not begin with `{start}`"),
            );
        }
    }
    if let Some(mode) = word("mode")
        && !Mode::ALL.iter().any(|it| it.as_str() == mode)
    {
        say(&rule::MEMBER_WORD, "mode", &format!("unknown mode `{mode}`"));
    }
    if let Some(created) = word("created")
        && !(created.ends_with('Z') && created.contains('T') && is_time(created))
    {
        say(&rule::CREATED, "created", &format!("`{created}` is another form"));
    }
}

/// Checks the end of a response: the members of `done`, or of the object.
pub fn end(members: &Map<String, Value>, ending: &Ending<'_>, say: Say<'_>) {
    usage(members, ending.is_concept, say);
    let status = match members.get("status") {
        None => "completed",
        Some(Value::String(word)) => {
            match word.as_str() {
                "completed" | "error" => {}
                "streaming" if ending.is_stream => say(&rule::STATUS_WORD, "status", "it has ended but says streaming"),
                "streaming" => {}
                other => say(&rule::STATUS_WORD, "status", &format!("unknown status `{other}`")),
            }
            word
        }
        Some(other) => {
            let said = format!("`status` is {}", document::described(other));
            say(&rule::STATUS_WORD, "status", &said);
            "completed"
        }
    };
    let metadata = match members.get("metadata") {
        None => &Map::new(),
        Some(Value::Object(metadata)) => metadata,
        Some(other) => {
            let said = format!("`metadata` is {}", document::described(other));
            say(&rule::METADATA, "metadata", &said);
            &Map::new()
        }
    };
    for name in ["duration_ms", "toolCallCount", "turnCount"] {
        if let Some(value) = metadata.get(name).filter(|it| it.as_u64().is_none()) {
            let said = format!("`{name}` has to be a whole number, not {}", document::described(value));
            say(&rule::RESPONSE_TYPE, "metadata", &said);
        }
    }
    if metadata.contains_key("durationMs") {
        say(&rule::ALIAS, "metadata", "`durationMs` should be `duration_ms`");
    }
    if let Some(count) = metadata.get("toolCallCount").and_then(Value::as_u64)
        && count != ending.tool_calls
    {
        let said = format!("it says {count}, there are {}", ending.tool_calls);
        say(&rule::TOOL_CALL_COUNT, "metadata", &said);
    }
    let reason = metadata.get("finishReason").and_then(Value::as_str);
    if let Some(reason) = reason {
        let is_failure = matches!(reason, "error" | "interrupted");
        if !FinishReason::KNOWN.contains(&reason) {
            say(&rule::FINISH_REASON, "metadata", &format!("unknown reason `{reason}`"));
        } else if reason == "cancelled" && status != "completed" {
            say(
                &rule::CANCELLED,
                "metadata",
                &format!("what was cancelled has the status {status}"),
            );
        } else if is_failure != (status == "error") && status != "streaming" {
            say(
                &rule::FINISH_REASON,
                "metadata",
                &format!("`{reason}` with the status {status}"),
            );
        }
    }
    if status == "error" && !ending.has_error && reason != Some("interrupted") {
        say(&rule::ERROR_END, "status", "no document says what went wrong");
    }
    let asks = ending
        .last
        .is_some_and(|it| it.kind == "clarification" && !it.metadata.contains_key("outcome"));
    let is_plan = ending.last.is_some_and(|it| it.kind == "plan");
    match reason {
        Some("awaiting_input") if !asks && !is_plan => {
            say(&rule::AWAITS, "metadata", "the last document neither asks nor plans");
        }
        Some("stop") if asks => say(
            &rule::AWAITS,
            "metadata",
            "the last document asks, but the response does not wait for an answer",
        ),
        _ => {}
    }
}

fn usage(members: &Map<String, Value>, is_concept: bool, say: Say<'_>) {
    let Some(usage) = members.get("usage") else {
        say(&rule::USAGE, "usage", "it is missing");
        return;
    };
    let Value::Object(usage) = usage else {
        say(&rule::USAGE, "usage", &format!("it is {}", document::described(usage)));
        return;
    };
    let mut sum = Some(0_u64);
    for name in ["promptTokens", "completionTokens"] {
        let value = usage.get(name);
        if value.and_then(Value::as_u64).is_none() {
            let said = value.map_or("missing".to_owned(), document::described);
            say(&rule::USAGE, "usage", &format!("`{name}` is {said}"));
        }
        sum = sum
            .zip(value.and_then(Value::as_u64))
            .map(|(sum, it)| sum.saturating_add(it));
    }
    match usage.get("totalTokens") {
        None if is_concept => {}
        None => say(&rule::USAGE_TOTAL, "usage", "it is missing"),
        Some(total) => {
            if let Some(sum) = sum.filter(|sum| total.as_u64() != Some(*sum)) {
                let said = format!("it is {}, the sum {sum}", document::described(total));
                say(&rule::USAGE_TOTAL, "usage", &said);
            }
        }
    }
}

/// RFC 7396.
pub fn merge(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, value) in patch {
        match value {
            Value::Null => {
                target.shift_remove(name);
            }
            Value::Object(inner) => {
                let mut known = match target.shift_remove(name) {
                    Some(Value::Object(known)) => known,
                    Some(_) | None => Map::new(),
                };
                merge(&mut known, inner);
                target.insert(name.clone(), known.into());
            }
            other => {
                target.insert(name.clone(), other.clone());
            }
        }
    }
}

/// JSON text with the findings about its parts.
struct Body<'a> {
    text: &'a str,
    found: Findings,
}

impl Body<'_> {
    fn mark(&self, path: &[&str]) -> Mark {
        let path: Vec<_> = path.iter().map(|it| (*it).into()).collect();
        let range = json::span(self.text, &path);
        let bytes = self.text.get(range.clone()).unwrap_or_default();
        Mark {
            place: Some(ByteRange {
                offset: range.start as u64,
                length: range.len() as u64,
            }),
            bytes: bytes
                .get(..bytes.floor_char_boundary(400))
                .unwrap_or_default()
                .to_owned(),
        }
    }

    fn say(&mut self, rule: &'static Rule, document: Option<&str>, path: &[&str], said: &str) {
        let mark = self.mark(path);
        self.found.add(rule, said, document, mark.place, &mark.bytes);
    }
}

fn judged(what: &str, form: &str, bytes: &[u8], documents: usize, findings: Findings) -> Judged {
    Judged {
        what: what.to_owned(),
        form: form.to_owned(),
        events: 0,
        documents,
        bytes: bytes.len() as u64,
        findings,
    }
}

/// Judges an answer that is one JSON object.
pub fn object(what: &str, bytes: &[u8], asked: &RequestFacts) -> (Judged, Whole) {
    let text = String::from_utf8_lossy(bytes);
    let mut body = Body {
        text: &text,
        found: Findings::default(),
    };
    if let Err(error) = std::str::from_utf8(bytes) {
        let place = ByteRange {
            offset: error.valid_up_to() as u64,
            length: error.error_len().unwrap_or(1) as u64,
        };
        body.found
            .add(&rule::UTF8, "these bytes are not UTF-8", None, Some(place), "");
    }
    let members = match json::parse(&text) {
        Ok((Value::Object(members), twice)) => {
            for name in twice {
                body.say(&rule::DUPLICATE_MEMBER, None, &[], &format!("`{name}` appears twice"));
            }
            members
        }
        Ok((other, _)) => {
            let said = format!("this is {}", document::described(&other));
            body.say(&rule::NOT_AN_ANSWER, None, &[], &said);
            return (judged(what, "body", bytes, 0, body.found), Whole::default());
        }
        Err(error) => {
            let said = if text.trim_start().starts_with('<') {
                "this is a web page".to_owned()
            } else {
                format!("this is not JSON: {error}")
            };
            body.say(&rule::NOT_AN_ANSWER, None, &[], &said);
            return (judged(what, "body", bytes, 0, body.found), Whole::default());
        }
    };
    if let Some(foreign) = Foreign::of(&members) {
        let said = format!("this is {foreign} server: configure it as a provider");
        body.say(&rule::FOREIGN, None, &[], &said);
        return (
            judged(what, "object of another protocol", bytes, 0, body.found),
            Whole::default(),
        );
    }
    let whole = answer(&members, asked, &mut body);
    (judged(what, "object", bytes, whole.documents.len(), body.found), whole)
}

fn answer(members: &Map<String, Value>, asked: &RequestFacts, body: &mut Body<'_>) -> Whole {
    // The concept's object has the documents and no more.
    let is_concept = !members.contains_key("status") && !members.contains_key("metadata");
    for (name, is_concepts) in [
        ("id", true),
        ("conversationId", false),
        ("model", true),
        ("mode", true),
        ("created", false),
        ("status", false),
        ("documents", true),
        ("usage", true),
        ("metadata", false),
    ] {
        if !members.contains_key(name) && name != "usage" && (is_concepts || !is_concept) {
            body.say(&rule::RESPONSE_MEMBER, None, &[], &format!("`{name}` is missing"));
        }
    }
    if let Some(Value::Object(metadata)) = members.get("metadata") {
        for name in ["duration_ms", "toolCallCount", "turnCount"] {
            if !metadata.contains_key(name) && !metadata.contains_key("durationMs") {
                let said = format!("`metadata.{name}` is missing");
                body.say(&rule::RESPONSE_MEMBER, None, &["metadata"], &said);
            }
        }
    }
    head(members, &mut |rule, member, said| body.say(rule, None, &[member], said));
    let said_mode = members.get("mode").and_then(Value::as_str).and_then(Mode::parse);
    let list = match members.get("documents") {
        Some(Value::Array(list)) => list.as_slice(),
        Some(other) => {
            let said = format!("`documents` has to be a list, not {}", document::described(other));
            body.say(&rule::RESPONSE_TYPE, None, &["documents"], &said);
            &[]
        }
        None => &[],
    };
    let documents = documents(list, said_mode.or(asked.mode), body);
    let ending = Ending {
        is_stream: false,
        is_concept,
        tool_calls: documents.iter().filter(|it| it.kind == "tool_call").count() as u64,
        has_error: documents.iter().any(|it| it.kind == "error"),
        last: documents.last(),
    };
    end(members, &ending, &mut |rule, member, said| {
        body.say(rule, None, &[member], said);
    });
    if members.get("status").and_then(Value::as_str) == Some("streaming") && !asked.may_stream {
        let said = "an answer that is whole says that it is streaming";
        body.say(&rule::STATUS_WORD, None, &["status"], said);
    }
    Whole {
        id: members.get("id").and_then(Value::as_str).map(str::to_owned),
        mode: said_mode,
        documents,
        is_whole: true,
    }
}

fn documents(list: &[Value], mode: Option<Mode>, body: &mut Body<'_>) -> Vec<Seen> {
    let mut all: Vec<Seen> = Vec::new();
    let mut with_sequence = 0;
    for (at, value) in list.iter().enumerate() {
        let number = at.to_string();
        let path = ["documents", number.as_str()];
        let step = |name: &'static str| [path.as_slice(), &[name]].concat();
        let Value::Object(members) = value else {
            body.say(&rule::NOT_AN_OBJECT, None, &path, "a document has to be an object");
            continue;
        };
        let mut members = members.clone();
        let Some(Value::String(id)) = members.shift_remove("id") else {
            let said = "a document without an `id` that is a text";
            body.say(&rule::MEMBER_MISSING, None, &path, said);
            continue;
        };
        if !document::is_sound(&id) {
            body.say(&rule::ID_FORM, Some(&id), &step("id"), "this is not an id");
        }
        if all.iter().any(|it| it.id == id) {
            let said = "there is another document of this id";
            body.say(&rule::DUPLICATE_ID, Some(&id), &step("id"), said);
        }
        let Some(Value::String(kind)) = members.shift_remove("type") else {
            let said = "a document without a `type` that is a text";
            body.say(&rule::MEMBER_MISSING, Some(&id), &path, said);
            continue;
        };
        let nested = members.shift_remove("metadata");
        let sequence = members.shift_remove("sequence");
        match &sequence {
            Some(value) => {
                with_sequence += 1;
                if value.as_u64() != Some(at as u64 + 1) {
                    let said = format!(
                        "this is document {}, its sequence {}",
                        at + 1,
                        document::described(value)
                    );
                    body.say(&rule::SEQUENCE, Some(&id), &step("sequence"), &said);
                }
            }
            None if nested.is_some() => body.say(&rule::SEQUENCE_MISSING, Some(&id), &path, "it is missing"),
            None => {}
        }
        let mut seen = Seen {
            kind,
            is_concept: nested.is_none() && sequence.is_none(),
            mark: body.mark(&path),
            ..Seen::default()
        };
        match members.shift_remove("content") {
            Some(Value::String(text)) => seen.content = Some(text),
            Some(Value::Null) => {}
            None if seen.is_concept => {}
            None => body.say(&rule::CONTENT, Some(&id), &path, "`content` is missing; it may be null"),
            Some(other) => {
                let said = format!("`content` is {}", document::described(&other));
                body.say(&rule::CONTENT, Some(&id), &step("content"), &said);
            }
        }
        if !members.is_empty() && !seen.is_concept {
            let names: Vec<_> = members.keys().take(4).map(String::as_str).collect();
            let said = format!("{} beside `metadata`", names.join(", "));
            body.say(&rule::FLAT, Some(&id), &path, &said);
        }
        for name in members.keys() {
            let way = [path.as_slice(), &[name.as_str()]].concat();
            seen.marks.insert(name.clone(), body.mark(&way));
        }
        seen.metadata = members;
        match nested {
            Some(Value::Object(nested)) => {
                for name in nested.keys() {
                    let way = [path.as_slice(), &["metadata", name.as_str()]].concat();
                    seen.marks.insert(name.clone(), body.mark(&way));
                }
                seen.metadata.extend(nested);
            }
            Some(other) => {
                let said = format!("`metadata` is {}", document::described(&other));
                body.say(&rule::METADATA, Some(&id), &step("metadata"), &said);
            }
            None if !seen.is_concept => body.say(&rule::METADATA, Some(&id), &path, "`metadata` is missing"),
            None => {}
        }
        seen.id = id;
        document::judge(&seen, mode, &mut body.found);
        let failed =
            |it: &Seen| it.kind == "file_edit" && it.metadata.get("applied").and_then(Value::as_str) == Some("failed");
        if let Some(before) = all.last().filter(|it| failed(it) && seen.kind != "error") {
            let before = before.id.clone();
            let said = "no `error` document follows this edit";
            body.say(&rule::FAILED_EDIT, Some(&before), &path, said);
        }
        seen.marks.clear();
        all.push(seen);
    }
    if with_sequence != 0 && with_sequence != list.len() {
        let said = "some have a sequence, some have none";
        body.say(&rule::SEQUENCE_MIXED, None, &["documents"], said);
    }
    all
}

/// Judges a response with an HTTP status of 400 or more.
pub fn refusal(what: &str, status: u16, bytes: &[u8]) -> Judged {
    let text = String::from_utf8_lossy(bytes);
    let mut body = Body {
        text: &text,
        found: Findings::default(),
    };
    match json::parse(&text).map(|it| it.0) {
        Ok(Value::Object(members)) => match members.get("error") {
            Some(Value::Object(error)) => {
                let word = |name: &str| error.get(name).and_then(Value::as_str);
                if let Some(code) = word("code") {
                    document::error_code(code, &mut |rule, said| body.say(rule, None, &["error", "code"], said));
                }
                let names = ["code", "message"];
                for name in names.into_iter().filter(|it| word(it).is_none_or(str::is_empty)) {
                    let said = format!("`error.{name}` is missing or not text");
                    body.say(&rule::ERROR_BODY, None, &["error"], &said);
                }
                for name in ["source", "details"] {
                    if error.get(name).is_some_and(|it| !it.is_string()) {
                        let said = format!("`error.{name}` is not text");
                        body.say(&rule::ERROR_BODY_FORM, None, &["error", name], &said);
                    }
                }
            }
            Some(Value::String(_)) => body.say(&rule::ERROR_BODY_FORM, None, &["error"], "`error` is a text"),
            _ if members.contains_key("message") || members.contains_key("detail") => {
                let said = "the message is not inside `error`";
                body.say(&rule::ERROR_BODY_FORM, None, &[], said);
            }
            _ if members.get("status").and_then(Value::as_str) == Some("error") => {
                let said = "a response object with the status error";
                body.say(&rule::ERROR_BODY_FORM, None, &[], said);
            }
            _ => body.say(&rule::ERROR_BODY, None, &[], "`error` is missing"),
        },
        Ok(other) => body.say(
            &rule::ERROR_BODY,
            None,
            &[],
            &format!("this is {}", document::described(&other)),
        ),
        Err(_) if text.trim().is_empty() => body.say(&rule::ERROR_BODY, None, &[], "the body is empty"),
        Err(_) => body.say(&rule::ERROR_BODY, None, &[], "this is not JSON"),
    }
    judged(what, &format!("refusal, HTTP status {status}"), bytes, 0, body.found)
}

/// Compares the fold of a stream with the object that the gateway stores of the same response.
pub fn compare(stream: &Whole, object: &Whole, found: &mut Findings) {
    let mut differs = |id: Option<&str>, said: &str| found.add(&rule::SAME_OBJECT, said, id, None, "");
    if stream.id != object.id {
        differs(None, "the ids of the responses differ");
    }
    let ids = |it: &Whole| it.documents.iter().map(|it| it.id.clone()).collect::<Vec<_>>();
    if ids(stream) != ids(object) {
        let said = format!(
            "{} documents in the stream, {} in the object, or in another order",
            stream.documents.len(),
            object.documents.len()
        );
        differs(None, &said);
        return;
    }
    for (one, other) in stream.documents.iter().zip(&object.documents) {
        let id = Some(one.id.as_str());
        if one.kind != other.kind {
            differs(
                id,
                &format!(
                    "a {} in the stream, a {} in the object",
                    visible_line(&one.kind),
                    visible_line(&other.kind)
                ),
            );
        }
        if one.content.as_deref().unwrap_or_default() != other.content.as_deref().unwrap_or_default() {
            differs(id, "the contents differ");
        }
        // A merge patch cannot say null.
        let names = one.metadata.keys().chain(other.metadata.keys());
        let mut differing: Vec<_> = names
            .filter(|it| solid(one.metadata.get(*it)) != solid(other.metadata.get(*it)))
            .map(String::as_str)
            .collect();
        differing.dedup();
        if !differing.is_empty() {
            differs(id, &format!("the metadata differ in {}", differing.join(", ")));
        }
    }
}

/// Without nulls.
fn solid(value: Option<&Value>) -> Option<Value> {
    match value? {
        Value::Null => None,
        Value::Object(members) => {
            let inner = members
                .iter()
                .filter_map(|(name, it)| Some((name.clone(), solid(Some(it))?)));
            Some(Value::Object(inner.collect()))
        }
        other => Some(other.clone()),
    }
}
