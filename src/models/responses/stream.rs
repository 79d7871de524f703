//! From the events of a response to pieces.
//!
//! An answer is a row of items, each added, filled and done. Servers leave out the first, the second or their numbers, so
//! an event finds its item by id, then by index, then as the last one of its kind, and what the end of an item
//! brings counts where nothing came before.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::{Map, Value, json};

use super::request::{FREEFORM_ARGUMENT, SEARCH};
use crate::models::{
    Citations, EndReason, Failure, FailureKind, Piece, Tokens, WebPage, WebSearch,
    body::Decode,
    lenient::{self, AnswerState, BAD_JSON, CALLS_LIMIT, text, whole_number},
};

/// Maximum number of items in an answer. Each event searches them.
const ITEMS_LIMIT: usize = 1024;

/// Size charged for an empty item, so that a flood of them meets the limit, too.
const ITEM_BYTES: usize = 256;

/// The state between two frames.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Something of a response came.
    has_response: bool,
    is_refused: bool,
    items: Vec<Item>,
    /// The calls that have a name.
    calls: usize,
    /// A call that is done, until more is known: the limit of tokens may have cut it.
    held: Option<PartialCall>,
    citations: Citations,
    answer: AnswerState,
}

#[derive(Debug)]
struct Item {
    id: String,
    index: Option<u64>,
    is_done: bool,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// The parts of which something came, by their number: what their ends repeat is known already.
    Message {
        told: BTreeSet<u64>,
    },
    Reasoning {
        told: Option<Told>,
        part: u64,
    },
    /// Gone once it is done.
    Call(Option<PartialCall>),
    Other,
}

impl Item {
    /// Something of it was given.
    fn has_come(&self) -> bool {
        match &self.content {
            Content::Message { told } => !told.is_empty(),
            Content::Reasoning { told, .. } => told.is_some() || self.is_done,
            Content::Call(call) => call.as_ref().is_none_or(|it| it.is_announced),
            Content::Other => true,
        }
    }
}

/// Source of an item's reasoning: servers that know both send one as the summary of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Summary,
    Text,
}

#[derive(Debug, Default)]
struct PartialCall {
    /// Index among the calls that have a name.
    slot: usize,
    id: String,
    name: String,
    arguments: String,
    is_announced: bool,
}

impl Decode for Decoder {
    const FORMAT: &'static str = "responses";
    const ENDS_BY_EVENT: bool = true;

    fn answer(&mut self) -> &mut AnswerState {
        &mut self.answer
    }

    fn has_answer(&self) -> bool {
        self.has_response
    }

    /// The event that ends a response holds everything: nothing is waited for after it.
    fn is_finished(&self) -> bool {
        self.answer.is_over
    }

    fn done(&mut self, out: &mut Vec<Piece>) {
        // The word of the response itself is missing: what was not done then is not whole.
        for item in &mut self.items {
            item.is_done = true;
        }
        if self.has_response {
            self.end(out);
        }
    }

    fn end(&mut self, out: &mut Vec<Piece>) {
        self.end_with("", out);
    }

    fn object(&mut self, value: &Value, members: &Map<String, Value>, event: &str, out: &mut Vec<Piece>) {
        let result = lenient::kind_of(value, members, event).and_then(|kind| self.event(kind, members, out));
        if let Err(failure) = result {
            self.answer.fail(failure, out);
        }
    }
}

impl Decoder {
    fn event(&mut self, kind: &str, members: &Map<String, Value>, out: &mut Vec<Piece>) -> Result<(), Failure> {
        let response = members.get("response").unwrap_or(&Value::Null);
        self.has_response |= kind.starts_with("response.");
        let delta = text(members, "delta");
        match kind {
            "response.created" | "response.queued" | "response.in_progress" => self.begin(response, out),
            "response.output_item.added" => {
                if let Some(item) = members.get("item").map(with_arguments) {
                    let at = self.item(&item, members, out)?;
                    self.announce(at, &item, out)?;
                }
            }
            "response.output_item.done" => {
                if let Some(item) = members.get("item").map(with_arguments) {
                    self.done(&item, members, out)?;
                }
            }
            "response.output_text.delta" => self.say(members, delta, false, out)?,
            "response.refusal.delta" => self.say(members, delta, true, out)?,
            "response.output_text.done" => {
                let (at, number) = self.message(members, out)?;
                self.say_once(at, number, text(members, "text"), false, out)?;
            }
            "response.refusal.done" => {
                let (at, number) = self.message(members, out)?;
                self.say_once(at, number, text(members, "refusal"), true, out)?;
            }
            "response.content_part.done" => {
                // A part of reasoning is none of a message.
                if let Some(part) = members.get("part").filter(|it| it["type"] != "reasoning_text") {
                    let (at, number) = self.message(members, out)?;
                    self.part(at, number, part, out)?;
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_summary.delta" => {
                self.think(members, Told::Summary, delta, out)?;
            }
            "response.reasoning_text.delta" => self.think(members, Told::Text, delta, out)?,
            "response.function_call_arguments.delta" => self.argue(members, delta, out)?,
            "response.function_call_arguments.done" => {
                if let Some(arguments) = members.get("arguments").and_then(arguments) {
                    self.argued(members, &arguments, out)?;
                }
            }
            "response.completed"
            | "response.done"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => self.close(kind, response, out)?,
            // A whole one, in spite of the wish for a stream.
            "" | "response" if members.get("output").is_some_and(Value::is_array) => {
                self.has_response = true;
                self.close("", &Value::Object(members.clone()), out)?;
            }
            _ if kind.starts_with("response.") || kind == "ping" || kind == "keepalive" => {}
            _ => match lenient::foreign(kind, members, "OpenAI responses") {
                Some(failure) => return Err(failure),
                None => {
                    let message = "an event of the answer is unknown and was left out";
                    self.answer.notice(BAD_JSON, message, out);
                }
            },
        }
        Ok(())
    }

    fn begin(&mut self, response: &Value, out: &mut Vec<Piece>) {
        self.answer.start(response.get("id"), response.get("model"), out);
    }

    /// The place of the item that an event names; else the last of those that `fits` and are not done.
    ///
    /// Fragments of a call go to no other call than the one they name.
    fn find(&self, members: &Map<String, Value>, fits: fn(&Content) -> bool) -> Option<usize> {
        let id = text(members, "item_id");
        let index = members.get("output_index").and_then(whole_number);
        let place = |is: &dyn Fn(&Item) -> bool| self.items.iter().rposition(|it| fits(&it.content) && is(it));
        let by_id = (!id.is_empty()).then(|| place(&|it| it.id == id)).flatten();
        let by_index = || index.and_then(|_| place(&|it| it.index == index));
        let is_named = !id.is_empty() || index.is_some();
        let by_kind = || place(&|it| !(it.is_done || is_named && matches!(it.content, Content::Call(_))));
        by_id.or_else(by_index).or_else(by_kind)
    }

    /// The place of an item that is known already.
    fn known(&self, item: &Value, index: Option<u64>) -> Option<usize> {
        let said = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
        let (id, call) = (said("id"), said("call_id"));
        let fits = fitting(said("type"));
        let is_call = |it: &Item| matches!(&it.content, Content::Call(Some(it)) if !call.is_empty() && it.id == call);
        let by_name = self.items.iter().rposition(|it| {
            let is_same = !id.is_empty() && it.id == id || index.is_some() && it.index == index;
            fits(&it.content) && (is_same || is_call(it))
        });
        // An item without any name is the one of its kind that is not done.
        by_name.or_else(|| {
            let is_nameless = id.is_empty() && call.is_empty() && index.is_none();
            let last = || self.items.iter().rposition(|it| fits(&it.content) && !it.is_done);
            is_nameless.then(last).flatten()
        })
    }

    /// The place of an item, which is made if it is new.
    fn item(&mut self, item: &Value, members: &Map<String, Value>, out: &mut Vec<Piece>) -> Result<usize, Failure> {
        let index = members.get("output_index").and_then(whole_number);
        if let Some(at) = self.known(item, index) {
            return Ok(at);
        }
        let id = item.get("id").and_then(Value::as_str).unwrap_or_default();
        let content = match item.get("type").and_then(Value::as_str).unwrap_or_default() {
            "message" => Content::Message { told: BTreeSet::new() },
            "reasoning" => Content::Reasoning { told: None, part: 0 },
            "function_call" => return self.new_call(id, index, out),
            _ => Content::Other,
        };
        self.add(id, index, content, out)
    }

    fn add(&mut self, id: &str, index: Option<u64>, content: Content, out: &mut Vec<Piece>) -> Result<usize, Failure> {
        self.answer.weigh(ITEM_BYTES + id.len())?;
        if self.items.len() >= ITEMS_LIMIT {
            let message = format!("the answer has more than {ITEMS_LIMIT} parts");
            return Err(Failure::new(FailureKind::Oversized, message));
        }
        // What comes after a call shows that it is whole.
        self.release(out);
        self.items.push(Item {
            id: id.to_owned(),
            index,
            is_done: false,
            content,
        });
        Ok(self.items.len() - 1)
    }

    fn new_call(&mut self, id: &str, index: Option<u64>, out: &mut Vec<Piece>) -> Result<usize, Failure> {
        let calls = self
            .items
            .iter()
            .filter(|it| matches!(it.content, Content::Call(_)))
            .count();
        if calls >= CALLS_LIMIT {
            self.answer.notice_call_limit(out);
            return self.add(id, index, Content::Other, out);
        }
        self.add(id, index, Content::Call(Some(PartialCall::default())), out)
    }

    /// Reads what an item says of a call: its name and its id, which is not the item's.
    fn announce(&mut self, at: usize, item: &Value, out: &mut Vec<Piece>) -> Result<(), Failure> {
        let Some(Content::Call(Some(call))) = self.items.get_mut(at).map(|it| &mut it.content) else {
            return Ok(());
        };
        let part = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
        if call.is_announced {
            return Ok(());
        }
        let id = if part("call_id").is_empty() {
            part("id")
        } else {
            part("call_id")
        };
        self.answer.weigh(id.len() + part("name").len())?;
        id.clone_into(&mut call.id);
        part("name").clone_into(&mut call.name);
        if call.name.is_empty() {
            return Ok(());
        }
        call.is_announced = true;
        call.slot = self.calls;
        self.calls += 1;
        out.push(Piece::call_start(call.slot, &call.id, &call.name));
        if call.arguments.is_empty()
            && let Some(arguments) = item.get("arguments").and_then(arguments)
        {
            self.answer.weigh(arguments.len())?;
            call.arguments = arguments;
        }
        if !call.arguments.is_empty() {
            out.push(Piece::call_arguments(call.slot, &call.arguments));
        }
        Ok(())
    }

    fn done(&mut self, item: &Value, members: &Map<String, Value>, out: &mut Vec<Piece>) -> Result<(), Failure> {
        let at = self.item(item, members, out)?;
        let is_whole = item.get("status").and_then(Value::as_str) != Some("incomplete");
        let Some(known) = self.items.get_mut(at) else {
            return Ok(());
        };
        if std::mem::replace(&mut known.is_done, true) {
            return Ok(());
        }
        match &mut known.content {
            Content::Message { .. } => {
                let parts = item.get("content").and_then(Value::as_array);
                let mut cited = Vec::new();
                for (number, part) in (0_u64..).zip(parts.into_iter().flatten()) {
                    self.part(at, number, part, out)?;
                    let text = part.get("text").and_then(Value::as_str).unwrap_or_default();
                    let notes = part.get("annotations").and_then(Value::as_array).into_iter().flatten();
                    // Most models write the address into their text as well.
                    let pages = notes.filter_map(WebPage::read);
                    cited.extend(pages.filter(|it| !text.contains(it.url.split('?').next().unwrap_or(&it.url))));
                }
                let marks = self.citations.marks(&cited);
                if !marks.is_empty() {
                    self.answer.weigh(marks.len())?;
                    out.push(Piece::Text(marks));
                }
            }
            Content::Reasoning { told, .. } => {
                if told.is_none() {
                    *told = Some(Told::Summary);
                    for name in ["summary", "content"] {
                        let parts = item.get(name).and_then(Value::as_array).into_iter().flatten();
                        let texts: Vec<&str> = parts.filter_map(|it| it.get("text")?.as_str()).collect();
                        let text = texts.join("\n\n");
                        if !text.is_empty() {
                            self.answer.weigh(text.len())?;
                            out.push(Piece::Thinking(text));
                            break;
                        }
                    }
                }
                let has = |name: &str| match item.get(name) {
                    Some(Value::String(text)) => !text.is_empty(),
                    Some(Value::Array(items)) => !items.is_empty(),
                    Some(_) | None => false,
                };
                if is_whole && (has("encrypted_content") || has("content")) {
                    self.answer.weigh(item.to_string().len())?;
                    out.push(Piece::ThinkingDone { opaque: item.clone() });
                }
            }
            Content::Call(_) => {
                self.announce(at, item, out)?;
                if let Some(arguments) = item.get("arguments").and_then(arguments) {
                    self.settle(at, &arguments, out)?;
                }
                if is_whole {
                    self.hold(at, out);
                }
            }
            Content::Other if item.get("type").is_some_and(|it| it == SEARCH) => {
                self.answer.weigh(item.to_string().len())?;
                if item.get("action").is_some() {
                    out.push(Piece::Searched(Box::new(searched(item))));
                    out.push(Piece::ThinkingDone { opaque: item.clone() });
                }
            }
            Content::Other => {}
        }
        Ok(())
    }

    /// The message that an event means, and the number of its part.
    fn message(&mut self, members: &Map<String, Value>, out: &mut Vec<Piece>) -> Result<(usize, u64), Failure> {
        let number = members.get("content_index").and_then(whole_number).unwrap_or(0);
        let at = match self.find(members, fitting("message")) {
            Some(at) => at,
            // Its beginning was left out.
            None => {
                let index = members.get("output_index").and_then(whole_number);
                let content = Content::Message { told: BTreeSet::new() };
                self.add(text(members, "item_id"), index, content, out)?
            }
        };
        Ok((at, number))
    }

    /// Marks that something of a part came; `true` when it is the first of it.
    fn tell(&mut self, at: usize, number: u64) -> Result<bool, Failure> {
        let Some(Content::Message { told }) = self.items.get_mut(at).map(|it| &mut it.content) else {
            return Ok(false);
        };
        let is_first = told.insert(number);
        if is_first {
            self.answer.weigh(ITEM_BYTES)?;
        }
        Ok(is_first)
    }

    fn say(
        &mut self,
        members: &Map<String, Value>,
        said: &str,
        refuses: bool,
        out: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        if said.is_empty() {
            return Ok(());
        }
        let (at, number) = self.message(members, out)?;
        self.tell(at, number)?;
        self.give(said, refuses, out)
    }

    /// The end of a part repeats it; that counts only if nothing of it came before.
    fn say_once(
        &mut self,
        at: usize,
        number: u64,
        said: &str,
        refuses: bool,
        out: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        if !said.is_empty() && self.tell(at, number)? {
            self.give(said, refuses, out)?;
        }
        Ok(())
    }

    fn give(&mut self, said: &str, refuses: bool, out: &mut Vec<Piece>) -> Result<(), Failure> {
        self.answer.weigh(said.len())?;
        if refuses {
            self.is_refused = true;
            out.push(Piece::Refusal(said.to_owned()));
        } else {
            out.push(Piece::Text(said.to_owned()));
        }
        Ok(())
    }

    /// A whole part of a message.
    fn part(&mut self, at: usize, number: u64, part: &Value, out: &mut Vec<Piece>) -> Result<(), Failure> {
        let said = |name: &str| part.get(name).and_then(Value::as_str).unwrap_or_default();
        match said("type") {
            "refusal" => self.say_once(at, number, said("refusal"), true, out),
            "output_text" | "text" => self.say_once(at, number, said("text"), false, out),
            _ => Ok(()),
        }
    }

    fn think(
        &mut self,
        members: &Map<String, Value>,
        how: Told,
        thought: &str,
        out: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        let at = match self.find(members, |it| matches!(it, Content::Reasoning { .. })) {
            Some(at) => at,
            None => {
                let index = members.get("output_index").and_then(whole_number);
                let content = Content::Reasoning { told: None, part: 0 };
                self.add(text(members, "item_id"), index, content, out)?
            }
        };
        let Some(Content::Reasoning { told, part }) = self.items.get_mut(at).map(|it| &mut it.content) else {
            return Ok(());
        };
        if thought.is_empty() || *told.get_or_insert(how) != how {
            return Ok(());
        }
        let number = ["summary_index", "content_index"]
            .iter()
            .find_map(|it| members.get(*it).and_then(whole_number));
        let number = number.unwrap_or(*part);
        self.answer.weigh(thought.len())?;
        if number != *part {
            *part = number;
            out.push(Piece::Thinking("\n\n".to_owned()));
        }
        out.push(Piece::Thinking(thought.to_owned()));
        Ok(())
    }

    /// The place of the call that an event of arguments means.
    fn arguing(&mut self, members: &Map<String, Value>, out: &mut Vec<Piece>) -> Result<usize, Failure> {
        match self.find(members, |it| matches!(it, Content::Call(_))) {
            Some(at) => Ok(at),
            // Its beginning was left out: its end will tell its name.
            None => {
                let index = members.get("output_index").and_then(whole_number);
                self.new_call(text(members, "item_id"), index, out)
            }
        }
    }

    fn argue(&mut self, members: &Map<String, Value>, fragment: &str, out: &mut Vec<Piece>) -> Result<(), Failure> {
        let at = self.arguing(members, out)?;
        self.answer.weigh(fragment.len())?;
        let Some(Content::Call(Some(call))) = self.items.get_mut(at).map(|it| &mut it.content) else {
            return Ok(());
        };
        call.arguments.push_str(fragment);
        if call.is_announced && !fragment.is_empty() {
            out.push(Piece::call_arguments(call.slot, fragment));
        }
        Ok(())
    }

    fn argued(&mut self, members: &Map<String, Value>, arguments: &str, out: &mut Vec<Piece>) -> Result<(), Failure> {
        let at = self.arguing(members, out)?;
        self.settle(at, arguments, out)
    }

    /// The arguments as they are at the end. They win over the fragments.
    fn settle(&mut self, at: usize, arguments: &str, out: &mut Vec<Piece>) -> Result<(), Failure> {
        let Some(Content::Call(Some(call))) = self.items.get_mut(at).map(|it| &mut it.content) else {
            return Ok(());
        };
        if arguments.is_empty() || call.arguments == arguments {
            return Ok(());
        }
        self.answer.weigh(arguments.len())?;
        let rest = arguments.strip_prefix(call.arguments.as_str());
        if let Some(rest) = rest.filter(|_| call.is_announced) {
            out.push(Piece::call_arguments(call.slot, rest));
        }
        arguments.clone_into(&mut call.arguments);
        Ok(())
    }

    fn hold(&mut self, at: usize, out: &mut Vec<Piece>) {
        let Some(Content::Call(call)) = self.items.get_mut(at).map(|it| &mut it.content) else {
            return;
        };
        // Nobody can call what has no name.
        if let Some(call) = call.take_if(|it| it.is_announced) {
            self.release(out);
            self.held = Some(call);
        }
    }

    fn release(&mut self, out: &mut Vec<Piece>) {
        if let Some(call) = self.held.take() {
            out.push(Piece::call_done(call.slot, call.id, call.name, call.arguments, None));
        }
    }

    /// The event that ends a response, which holds all of it once more.
    fn close(&mut self, kind: &str, response: &Value, out: &mut Vec<Piece>) -> Result<(), Failure> {
        self.begin(response, out);
        let status = match kind {
            "response.completed" | "response.done" | "" => {
                response.get("status").and_then(Value::as_str).unwrap_or("completed")
            }
            other => other.trim_start_matches("response."),
        };
        self.count(response.get("usage"), out);
        if status == "queued" || status == "in_progress" {
            let message = "the server ended the stream before the answer";
            return Err(Failure::new(FailureKind::Interrupted, message));
        }
        if status == "failed" || status == "cancelled" {
            return Err(match response.get("error").filter(|it| !it.is_null()) {
                Some(error) => Failure::from_server(None, error),
                None if status == "cancelled" => {
                    Failure::new(FailureKind::Interrupted, "the answer was cancelled at the server")
                }
                None => Failure::new(FailureKind::Unreachable, "the server reported an error"),
            });
        }
        // What was never streamed is in here only. Servers that give their items other names here than in the stream
        // must not have said everything twice.
        let output = response.get("output").and_then(Value::as_array);
        let output: Vec<_> = output.into_iter().flatten().map(with_arguments).collect();
        let kind = |it: &Value| it.get("type").and_then(Value::as_str).map(fitting);
        let known: Vec<bool> = output
            .iter()
            .map(|it| kind(it).is_some_and(|fits| self.items.iter().any(|it| fits(&it.content) && it.has_come())))
            .collect();
        for ((index, item), is_known) in (0_u64..).zip(&output).zip(known) {
            let place = self.known(item, Some(index));
            if !is_known || place.is_some() {
                self.done(item, &Map::from_iter([("output_index".to_owned(), index.into())]), out)?;
            }
        }
        let reason = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
        let word = match status {
            "incomplete" => reason.unwrap_or("max_output_tokens"),
            _ => "",
        };
        self.end_with(word, out);
        Ok(())
    }

    fn count(&mut self, usage: Option<&Value>, out: &mut Vec<Piece>) {
        let count = |pointer: &str| {
            usage
                .and_then(|it| it.pointer(pointer))
                .and_then(whole_number)
                .unwrap_or(0)
        };
        let tokens = Tokens {
            prompt: count("/input_tokens"),
            cached: count("/input_tokens_details/cached_tokens"),
            cache_written: count("/input_tokens_details/cache_write_tokens"),
            completion: count("/output_tokens"),
            reasoning: count("/output_tokens_details/reasoning_tokens"),
        };
        self.answer.count(tokens, out);
    }

    /// Ends the answer. `word` is the reason why it is incomplete; empty if it is complete.
    fn end_with(&mut self, word: &str, out: &mut Vec<Piece>) {
        if word.is_empty() {
            // Servers forget to say that an item is done.
            for at in 0..self.items.len() {
                if self.items.get(at).is_some_and(|it| !it.is_done) {
                    self.hold(at, out);
                }
            }
        } else {
            let is_whole =
                |it: &PartialCall| !it.arguments.trim().is_empty() && lenient::arguments(it.arguments.clone()).is_ok();
            self.held = self.held.take().filter(is_whole);
        }
        self.release(out);
        let reason = match word {
            "" if self.calls > 0 => EndReason::ToolUse,
            "" if self.is_refused => EndReason::Refusal,
            "" => EndReason::Stop,
            "max_output_tokens" | "max_tokens" | "length" => EndReason::Length,
            "content_filter" => EndReason::ContentFilter,
            other => EndReason::Other(other.to_owned()),
        };
        self.answer.end(reason, out);
    }
}

/// A call of a tool whose input is plain text, as a call with that text as its one argument.
fn with_arguments(item: &Value) -> Cow<'_, Value> {
    if item.get("type").is_none_or(|it| it != "custom_tool_call") {
        return Cow::Borrowed(item);
    }
    let mut call = item.clone();
    if let Value::Object(members) = &mut call {
        members.insert("type".to_owned(), "function_call".into());
        let input = members.shift_remove("input");
        if let Some(Value::String(input)) = input.filter(|it| *it != "") {
            let arguments = json!({ FREEFORM_ARGUMENT: input }).to_string();
            members.insert("arguments".to_owned(), arguments.into());
        }
    }
    Cow::Owned(call)
}

/// Returns a check that a content is of the kind that an item names.
fn fitting(kind: &str) -> fn(&Content) -> bool {
    match kind {
        "message" => |it| matches!(it, Content::Message { .. }),
        "reasoning" => |it| matches!(it, Content::Reasoning { .. }),
        "function_call" => |it| matches!(it, Content::Call(_)),
        _ => |it| matches!(it, Content::Other),
    }
}

/// The arguments of a call, which some servers send as an object.
fn arguments(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(_) => Some(value.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    }
}

/// Reads a search of the server: what was looked for, or the page that was opened.
fn searched(item: &Value) -> WebSearch {
    let text = |pointer: &str| item.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let queries = item
        .pointer("/action/queries")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let queries: Vec<&str> = queries.filter_map(Value::as_str).collect();
    let query = [text("/action/query"), text("/action/url"), text("/action/pattern")];
    let query = query
        .into_iter()
        .find(|it| !it.is_empty())
        .map_or_else(|| queries.join("; "), str::to_owned);
    let sources = item
        .pointer("/action/sources")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    WebSearch {
        id: text("/id").to_owned(),
        query,
        hits: sources.filter_map(WebPage::read).collect(),
        failed: (text("/status") == "failed").then(|| "the search failed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::models::{
        body::{Read, Reading},
        conformance::{notices, read, recorded, shape, thoughts},
    };

    fn reading() -> Box<dyn Read> {
        Box::new(Reading::new(Decoder::default()))
    }

    /// A stream of these data lines.
    fn stream(data: &[&str]) -> String {
        data.iter().fold(String::new(), |all, it| all + "data: " + it + "\n\n")
    }

    fn pieces(data: &[&str]) -> Vec<Piece> {
        read(reading(), [stream(data).as_bytes()])
    }

    fn check(cases: &[(&str, &[&str], &str)]) {
        for (name, data, want) in cases {
            assert_eq!(shape(&pieces(data)), *want, "{name}");
        }
    }

    const ADDED: &str =
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m1","content":[]}}"#;
    const HI: &str =
        r#"{"type":"response.output_text.delta","item_id":"m1","output_index":0,"content_index":0,"delta":"hi"}"#;
    const TEXT: &str =
        r#"{"type":"response.output_text.done","item_id":"m1","output_index":0,"content_index":0,"text":"hi"}"#;
    const PART: &str = r#"{"type":"response.content_part.done","item_id":"m1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"hi"}}"#;
    const DONE: &str = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"m1","content":[{"type":"output_text","text":"hi"}]}}"#;
    const END: &str = r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#;
    const WHOLE: &str = r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","id":"m1","content":[{"type":"output_text","text":"hi"}]}]}}"#;
    const OTHER: &str = r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","id":"renamed","content":[{"type":"output_text","text":"hi"}]}]}}"#;

    const CALL: &str = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"f1","call_id":"c1","name":"list","arguments":""}}"#;
    const MORE: &str =
        r#"{"type":"response.function_call_arguments.delta","item_id":"f1","output_index":0,"delta":"{}"}"#;
    const CALLED: &str = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"f1","call_id":"c1","name":"list","arguments":"{}"}}"#;

    #[test]
    fn recordings_are_read_wherever_they_are_cut() {
        let grep = |arguments: &str, read: &str| format!("call 0 grep {arguments} = {read}");
        let cases = [
            ("aimock-disconnect", "error STREAM_INTERRUPTED".to_owned()),
            ("aimock-err429", "error LLM_RATE_LIMITED".to_owned()),
            (
                "aimock-reasoning",
                r#"thinking "First I consider the question carefully." | text "The answer is 42 🦀." | end Stop"#
                    .to_owned(),
            ),
            (
                "aimock-text",
                r#"text "Hello from aimock, a deterministic server." | end Stop"#.to_owned(),
            ),
            (
                "aimock-truncated",
                r#"text "This ans" | error STREAM_INTERRUPTED"#.to_owned(),
            ),
            // This server calls what its limit cut complete.
            (
                "llamacpp-qwen0.5b-length",
                r#"text "1, 2" | usage 33(18)+4 | end Stop"#.to_owned(),
            ),
            (
                "llamacpp-qwen0.5b-nostream-tool",
                grep(
                    "{\n    \"pattern\": \"TODO\",\n    \"glob\": \".*TODO.*\"\n  }",
                    r#"{"pattern":"TODO","glob":".*TODO.*"}"#,
                ) + " | usage 179(178)+37 | end ToolUse",
            ),
            (
                "llamacpp-qwen0.5b-tool-length",
                r#"text "{\n  \"name\": \"grep\",\n  \"arguments\":" | usage 179(18)+12 | end Stop"#.to_owned(),
            ),
            (
                "llamacpp-qwen0.5b-tool",
                grep(
                    r#"{"pattern": "TODO", "glob": "*.*"}"#,
                    r#"{"pattern":"TODO","glob":"*.*"}"#,
                ) + " | usage 179(178)+27 | end ToolUse",
            ),
            (
                "llamacpp-qwen1.5b-text",
                r#"text "Hello" | usage 35(34)+2 | end Stop"#.to_owned(),
            ),
        ];
        recorded("responses", reading, &cases);
    }

    #[test]
    fn nothing_is_missed_and_nothing_is_said_twice() {
        let good = r#"text "hi" | end Stop"#;
        let bare = |text: &str| {
            text.replace(r#","output_index":0"#, "")
                .replace(r#","content_index":0"#, "")
        };
        let nameless = |text: &str| {
            bare(text)
                .replace(r#""item_id":"m1","#, "")
                .replace(r#""id":"m1","#, "")
        };
        let foreign = |text: &str| bare(text).replace("m1", "m2");
        check(&[
            ("as it should be", &[ADDED, HI, TEXT, PART, DONE, WHOLE], good),
            ("fragments only", &[HI, END], good),
            ("the end of the text only", &[TEXT, END], good),
            ("the end of the part only", &[PART, END], good),
            ("the end of the item only", &[DONE, END], good),
            ("the end of the answer only", &[WHOLE], good),
            (
                "no numbers",
                &[&bare(ADDED), &bare(HI), &bare(TEXT), &bare(PART), &bare(DONE), WHOLE],
                good,
            ),
            (
                "no numbers and no names",
                &[
                    &nameless(ADDED),
                    &nameless(HI),
                    &nameless(TEXT),
                    &nameless(PART),
                    &nameless(DONE),
                    OTHER,
                ],
                good,
            ),
            (
                "another name in the fragments",
                &[ADDED, &foreign(HI), &foreign(TEXT), DONE, WHOLE],
                good,
            ),
            ("another name at the end", &[ADDED, HI, TEXT, PART, DONE, OTHER], good),
            ("an end as others have it", &[ADDED, HI, DONE, "[DONE]"], good),
            ("both", &[ADDED, HI, DONE, WHOLE, "[DONE]"], good),
            ("nothing after the end counts", &[ADDED, HI, END, HI, END], good),
            (
                "an end by another name",
                &[HI, &END.replace("completed\",\"r", "done\",\"r")],
                good,
            ),
            (
                "nonsense in between",
                &[
                    "7",
                    "{",
                    ": ping",
                    r#"{"type":"moon"}"#,
                    r#"{"type":"response.moon"}"#,
                    r#"{"type":"response.output_item.added"}"#,
                    HI,
                    END,
                ],
                good,
            ),
            (
                "two in one event",
                &[&format!("{HI}{HI}"), END],
                r#"text "hihi" | end Stop"#,
            ),
            (
                "two parts",
                &[
                    HI,
                    TEXT,
                    &TEXT
                        .replace(r#""content_index":0"#, r#""content_index":1"#)
                        .replace("hi", "ho"),
                    END,
                ],
                r#"text "hiho" | end Stop"#,
            ),
        ]);
        assert_eq!(notices(&pieces(&[&format!("{HI}{HI}"), END])), ["glued-json"]);
    }

    #[test]
    fn a_plain_text_is_the_one_argument_of_a_free_tool() {
        let added = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"custom_tool_call","id":"f1","call_id":"c1","name":"apply_patch","input":""}}"#;
        let delta =
            r#"{"type":"response.custom_tool_call_input.delta","item_id":"f1","output_index":0,"delta":"a\nb"}"#;
        let done = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"custom_tool_call","id":"f1","call_id":"c1","name":"apply_patch","input":"a\nb"}}"#;
        let in_the_end = r#"{"type":"response.completed","response":{"output":[{"type":"custom_tool_call","id":"f1","call_id":"c1","name":"apply_patch","input":"a\nb"}]}}"#;
        let want = r#"call 0 apply_patch {"input":"a\nb"} = {"input":"a\nb"} | end ToolUse"#;
        check(&[
            ("as it should be", &[added, delta, done, in_the_end], want),
            ("its end only", &[done, END], want),
            ("the end of the answer only", &[in_the_end], want),
        ]);
    }

    #[test]
    fn a_call_is_done_when_it_is_whole_and_only_then() {
        let second = |text: &str| {
            text.replace("f1", "f2")
                .replace("c1", "c2")
                .replace("list", "read")
                .replace(r#""output_index":0"#, r#""output_index":1"#)
        };
        let bare = |text: &str| text.replace(r#","output_index":0"#, "");
        let cut = r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}"#;
        let one = "call 0 list {} = {} | end ToolUse";
        let in_the_end = r#"{"type":"response.completed","response":{"output":[{"type":"function_call","id":"f9","call_id":"c1","name":"list","arguments":"{}"}]}}"#;
        check(&[
            ("as it should be", &[CALL, MORE, CALLED, END], one),
            ("no numbers", &[&bare(CALL), &bare(MORE), &bare(CALLED), END], one),
            ("its end only", &[CALLED, END], one),
            ("the end of the answer only", &[in_the_end], one),
            (
                "once more in the end of the answer, by another name",
                &[CALL, MORE, CALLED, in_the_end],
                one,
            ),
            ("its item has no end", &[CALL, MORE, END], one),
            (
                "its arguments have an end only",
                &[
                    CALL,
                    r#"{"type":"response.function_call_arguments.done","item_id":"f1","arguments":"{}"}"#,
                    END,
                ],
                one,
            ),
            ("its fragments before its name", &[MORE, CALLED, END], one),
            ("arguments as an object", &[&CALLED.replace(r#""{}""#, "{}"), END], one),
            (
                "no arguments",
                &[CALL, &CALLED.replace(r#","arguments":"{}""#, ""), END],
                "call 0 list  = {} | end ToolUse",
            ),
            (
                "two at the same time",
                &[CALL, &second(CALL), MORE, &second(MORE), CALLED, &second(CALLED), END],
                "call 0 list {} = {} | call 1 read {} = {} | end ToolUse",
            ),
            (
                "what the end says of the arguments holds",
                &[CALL, MORE, &CALLED.replace("{}", r#"{\"a\":1}"#), END],
                r#"call 0 list {} = {"a":1} | end ToolUse"#,
            ),
            ("the limit cut it", &[CALL, MORE, cut], "call 0 list {} | end Length"),
            (
                "the limit cut it before its arguments",
                &[CALL, &CALLED.replace("{}", ""), cut],
                "call 0 list  | end Length",
            ),
            (
                "it says itself that it is cut",
                &[
                    CALL,
                    &CALLED.replace(r#""call_id""#, r#""status":"incomplete","call_id""#),
                    END,
                ],
                "call 0 list {} | end ToolUse",
            ),
            (
                "the limit came after it",
                &[CALL, MORE, CALLED, cut],
                "call 0 list {} = {} | end Length",
            ),
            (
                "the body ended",
                &[CALL, MORE, CALLED],
                "call 0 list {} | error STREAM_INTERRUPTED",
            ),
            (
                "the end as others have it, in its midst",
                &[CALL, MORE, "[DONE]"],
                "call 0 list {} | end ToolUse",
            ),
            (
                "a tool of the provider's own",
                &[
                    r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"web_search_call","id":"w1"}}"#,
                    r#"{"type":"response.web_search_call.searching","item_id":"w1"}"#,
                    r#"{"type":"response.custom_tool_call_input.delta","item_id":"x","delta":"a"}"#,
                    r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"web_search_call","id":"w1"}}"#,
                    END,
                ],
                "end Stop",
            ),
        ]);
        let ids: Vec<String> = pieces(&[CALL, MORE, CALLED, END])
            .into_iter()
            .filter_map(|it| match it {
                Piece::CallStart { id, .. } | Piece::CallDone { id, .. } => Some(id),
                _ => None,
            })
            .collect();
        assert_eq!(ids, ["c1", "c1"], "the call's id, not the item's");
    }

    #[test]
    fn a_search_of_the_server_is_shown_and_goes_back_unchanged() {
        let item = json!({
            "type": "web_search_call", "id": "ws_1", "status": "completed",
            "action": { "type": "search", "query": "the answer", "queries": ["the answer"],
                        "sources": [{ "type": "url", "url": "https://a.example/x" }, { "type": "api", "name": "oai-finance" }] },
        });
        let done = |index: u64, item: &Value| {
            json!({ "type": "response.output_item.done", "output_index": index, "item": item }).to_string()
        };
        let note =
            |url: &str| json!({ "type": "url_citation", "url": url, "title": "A", "start_index": 0, "end_index": 2 });
        let text = "42 ([a.example](https://a.example/x?utm_source=openai))";
        let message = json!({
            "type": "message", "id": "m1", "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": text,
                          "annotations": [note("https://a.example/x?utm_source=openai"), note("https://b.example/")] }],
        });
        let (search, message) = (done(0, &item), done(1, &message));
        let pieces = pieces(&[&search, &message, END]);
        assert_eq!(
            shape(&pieces),
            format!("search \"the answer\" = https://a.example/x | text \"{text} [1](https://b.example/)\" | end Stop")
        );
        assert_eq!(thoughts(&pieces), [item]);
    }

    #[test]
    fn reasoning_is_shown_once_and_goes_back_as_it_came() {
        let item = json!({
            "type": "reasoning", "id": "r1", "encrypted_content": "gAAA",
            "summary": [{ "type": "summary_text", "text": "a" }, { "type": "summary_text", "text": "b" }],
        });
        let done = json!({ "type": "response.output_item.done", "output_index": 0, "item": item }).to_string();
        let summary = |number: u64, text: &str| {
            format!(
                r#"{{"type":"response.reasoning_summary_text.delta","item_id":"r1","output_index":0,"summary_index":{number},"delta":"{text}"}}"#
            )
        };
        let whole = json!({ "type": "response.completed", "response": { "output": [item] } }).to_string();
        for (name, data) in [
            ("in fragments", vec![&*summary(0, "a"), &summary(1, "b"), &done, &whole]),
            ("at its end", vec![&*done, &whole]),
            ("at the end of the answer", vec![&*whole]),
        ] {
            let all = pieces(&data);
            assert_eq!(shape(&all), r#"thinking "a\n\nb" | end Stop"#, "{name}");
            assert_eq!(thoughts(&all), std::slice::from_ref(&item), "{name}");
        }
        let text = r#"{"type":"response.reasoning_text.delta","item_id":"r1","content_index":0,"delta":"open"}"#;
        assert_eq!(
            shape(&pieces(&[text, &summary(0, "a"), END])),
            r#"thinking "open" | end Stop"#,
            "one of the two"
        );
        let plain = r#"{"type":"response.output_item.done","item":{"type":"reasoning","id":"r1","summary":[]}}"#;
        assert_eq!(
            thoughts(&pieces(&[plain, END])),
            Vec::<Value>::new(),
            "nothing to send back"
        );
    }

    #[test]
    fn every_end_is_told() {
        let incomplete = |reason: &str| {
            format!(r#"{{"type":"response.incomplete","response":{{"incomplete_details":{{"reason":"{reason}"}}}}}}"#)
        };
        let refused = r#"{"type":"response.refusal.delta","item_id":"m1","delta":"no"}"#;
        check(&[
            (
                "the limit",
                &[HI, &incomplete("max_output_tokens")],
                r#"text "hi" | end Length"#,
            ),
            (
                "a filter",
                &[HI, &incomplete("content_filter")],
                r#"text "hi" | end ContentFilter"#,
            ),
            (
                "something new",
                &[HI, &incomplete("moon")],
                r#"text "hi" | end Other("moon")"#,
            ),
            (
                "no reason",
                &[HI, r#"{"type":"response.incomplete","response":{}}"#],
                r#"text "hi" | end Length"#,
            ),
            ("refused", &[refused, END], r#"refusal "no" | end Refusal"#),
            (
                "refused, at the end",
                &[r#"{"type":"response.refusal.done","item_id":"m1","refusal":"no"}"#, END],
                r#"refusal "no" | end Refusal"#,
            ),
            (
                "failed",
                &[
                    HI,
                    r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"oh"}}}"#,
                ],
                r#"text "hi" | error LLM_UNAVAILABLE"#,
            ),
            (
                "failed for too many",
                &[r#"{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"slow"}}}"#],
                "error LLM_RATE_LIMITED",
            ),
            (
                "failed without a word",
                &[r#"{"type":"response.failed","response":{}}"#],
                "error LLM_UNAVAILABLE",
            ),
            (
                "cancelled",
                &[HI, r#"{"type":"response.cancelled","response":{}}"#],
                r#"text "hi" | error STREAM_INTERRUPTED"#,
            ),
            (
                "an error",
                &[
                    HI,
                    r#"{"type":"error","code":"context_length_exceeded","message":"too long","param":null}"#,
                ],
                r#"text "hi" | error LLM_CONTEXT_LENGTH"#,
            ),
            (
                "an error in a member",
                &[r#"{"type":"error","error":{"message":"Overloaded"}}"#],
                "error LLM_OVERLOADED",
            ),
            (
                "an error as chat completions have it",
                &[r#"{"error":{"message":"Invalid API key"}}"#],
                "error LLM_AUTH",
            ),
            ("no end", &[HI, DONE], r#"text "hi" | error STREAM_INTERRUPTED"#),
            ("nothing", &[], "error STREAM_INTERRUPTED"),
            (
                "chat completions",
                &[r#"{"choices":[{"delta":{"content":"hi"}}]}"#],
                "error LLM_BAD_RESPONSE",
            ),
            (
                "messages",
                &[r#"{"type":"message_start","message":{}}"#],
                "error LLM_BAD_RESPONSE",
            ),
        ]);
        let whole = r#"{"object":"response","status":"queued","output":[]}"#;
        assert_eq!(shape(&read(reading(), [whole.as_bytes()])), "error STREAM_INTERRUPTED");
    }

    #[test]
    fn an_answer_without_end_meets_a_limit() {
        let mut reading = reading();
        let more = stream(&[&HI.replace("hi", &"x".repeat(1 << 20))]);
        let ends: Vec<Piece> = (0..66)
            .flat_map(|_| reading.push(more.as_bytes()))
            .filter(|it| !matches!(it, Piece::Text(_)))
            .collect();
        let [Piece::Error(failure)] = &ends[..] else {
            panic!("{ends:?}")
        };
        assert_eq!(failure.kind, FailureKind::Oversized);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn whatever_comes_it_ends_once(picks in proptest::collection::vec((0..14_usize, 0..3_u64), 0..24), junk in "[\\[\\]{}\",:a0]{0,12}") {
            let known = [
                ADDED, HI, TEXT, PART, DONE, CALL, MORE, CALLED, "[DONE]", OTHER, WHOLE,
                r#"{"type":"response.incomplete","response":{}}"#,
                r#"{"type":"response.reasoning_summary_text.delta","delta":"a"}"#,
                junk.as_str(),
            ];
            let renamed = |text: &str, at: u64| {
                text.replace("\"output_index\":0", &format!("\"output_index\":{at}")).replace("f1", &format!("f{at}")).replace("m1", &format!("m{at}"))
            };
            let data: Vec<String> = picks.iter().map(|(it, at)| renamed(known[*it], *at)).collect();
            let data: Vec<&str> = data.iter().map(String::as_str).collect();
            let whole = pieces(&data);
            let body = stream(&data);
            prop_assert_eq!(shape(&read(reading(), body.as_bytes().chunks(3))), shape(&whole));
        }
    }
}
