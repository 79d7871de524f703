//! `--input-format stream-json`: lines of JSON on standard input, each a message, an answer or a stop.

use std::io::{BufRead, Read as _};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Map, Value};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::{
    agent::prompt::context::mentions,
    print::Input,
    protocol::{ClarificationResponse, Message},
};

/// Maximum size of a line, in bytes.
const LINE_BYTES: u64 = 32 << 20;

/// Maximum number of lines that have been read and are not used yet: whoever writes more waits. Each may be long.
const WAITING_LINES: usize = 2;

/// Types of a line, as an error names them.
const TYPES: &str = "`type` is user, clarification_response or cancel";

/// Reads standard input on a thread of its own. The channel ends with it.
pub fn read_input() -> std::io::Result<Receiver<Input>> {
    let (sender, receiver) = channel(WAITING_LINES);
    std::thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || read(std::io::stdin().lock(), &sender))?;
    Ok(receiver)
}

fn read(mut from: impl BufRead, to: &Sender<Input>) {
    for number in 1_u64.. {
        let mut line = Vec::new();
        let input = match from.by_ref().take(LINE_BYTES + 1).read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) if line.len() as u64 > LINE_BYTES => Err(format!("it is longer than {} MiB", LINE_BYTES >> 20)),
            Ok(_) if line.trim_ascii().is_empty() => continue,
            Ok(_) => parse(&line),
            Err(error) => Err(error.to_string()),
        };
        let input = input.unwrap_or_else(|why| Input::Wrong(format!("line {number} of standard input: {why}")));
        let is_wrong = matches!(input, Input::Wrong(_));
        if to.blocking_send(input).is_err() || is_wrong {
            return;
        }
    }
}

/// Reads one line. Error: why it cannot be read, and what is right.
fn parse(line: &[u8]) -> Result<Input, String> {
    let value: Value = serde_json::from_slice(line).map_err(|error| format!("it is no JSON: {error}"))?;
    let Value::Object(members) = value else {
        return Err(format!("it is no JSON object\n  {TYPES}"));
    };
    match members.get("type").and_then(Value::as_str) {
        Some("user") => user(&members),
        Some("clarification_response") => ClarificationResponse::from_json(&Value::Object(members))
            .map(Input::Answer)
            .map_err(|error| {
                format!(
                    "{error}\n  {{\"type\":\"clarification_response\",\"documentId\":\"doc_001\",\"answers\":[{{\"questionId\":\
                     \"approval\",\"selectedOptionIds\":[\"allow_once\"]}}]}}"
                )
            }),
        Some("cancel") => Ok(Input::Cancel),
        Some(other) => Err(format!("there is no type `{other}`\n  {TYPES}")),
        None => Err(format!("`type` is missing\n  {TYPES}")),
    }
}

/// A message: `{"type":"user","message":{"role":"user","content":"…"}}`, as `stream-json` prints it.
fn user(members: &Map<String, Value>) -> Result<Input, String> {
    let example = "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"and now?\"}}";
    let content = members
        .get("message")
        .and_then(|it| it.get("content"))
        .ok_or_else(|| format!("`message.content` is missing\n  {example}"))?;
    let mut texts = Vec::new();
    let mut images = Vec::new();
    match content {
        Value::String(text) => texts.push(text.as_str()),
        Value::Array(parts) => {
            for part in parts {
                match part.get("type").and_then(Value::as_str) {
                    Some("text") => texts.push(part.get("text").and_then(Value::as_str).unwrap_or_default()),
                    Some("image") => images.push(image(part)?),
                    _ => return Err("a part of `message.content` is neither `text` nor `image`".to_owned()),
                }
            }
        }
        _ => return Err(format!("`message.content` is neither a text nor a list\n  {example}")),
    }
    let text = texts.join("\n\n");
    if text.trim().is_empty() {
        return Err(format!("the message has no text\n  {example}"));
    }
    let waits = match members.get("queue") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(waits)) => *waits,
        Some(_) => return Err("`queue` is neither true nor false".to_owned()),
    };
    let mut message = Message::user(text);
    if !images.is_empty() {
        message.extra.insert("images".to_owned(), images.into());
    }
    Ok(Input::Message { message, waits })
}

/// A picture: `{"type":"image","source":{"type":"base64","data":"…"}}`.
fn image(part: &Value) -> Result<Value, String> {
    let data = part
        .pointer("/source/data")
        .and_then(Value::as_str)
        .ok_or("an image has no `source.data`")?;
    let bytes = BASE64_STANDARD
        .decode(data)
        .map_err(|error| format!("the data of an image is no base64: {error}"))?;
    mentions::picture(&bytes).map_err(|why| format!("an image: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(text: &str) -> Vec<Input> {
        let (sender, mut receiver) = channel(64);
        read(text.as_bytes(), &sender);
        drop(sender);
        std::iter::from_fn(|| receiver.blocking_recv()).collect()
    }

    #[test]
    fn lines_are_messages_answers_and_stops() {
        let text = "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"one\"}}\n\n\
                    {\"type\":\"user\",\"queue\":true,\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"two\"},\
                    {\"type\":\"text\",\"text\":\"three\"}]}}\n\
                    {\"type\":\"clarification_response\",\"documentId\":\"doc_002\",\"outcome\":\"skipped\"}\n{\"type\":\"cancel\"}";
        let message = |text: &str, waits| Input::Message {
            message: Message::user(text),
            waits,
        };
        let found = inputs(text);
        assert_eq!(found[..2], [message("one", false), message("two\n\nthree", true)]);
        assert!(matches!(&found[2], Input::Answer(it) if it.document_id.as_str() == "doc_002"));
        assert_eq!(found[3..], [Input::Cancel]);
    }

    #[test]
    fn no_more_is_read_than_can_be_used() {
        /// Lines without an end, of which the number that was read is known.
        struct Endless(std::sync::Arc<std::sync::atomic::AtomicUsize>);
        const LINE: &[u8] = b"{\"type\":\"cancel\"}\n";
        impl std::io::Read for Endless {
            fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
                let count = LINE.len().min(into.len());
                into[..count].copy_from_slice(&LINE[..count]);
                Ok(count)
            }
        }
        impl BufRead for Endless {
            fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
                Ok(LINE)
            }
            fn consume(&mut self, bytes: usize) {
                self.0.fetch_add(bytes, std::sync::atomic::Ordering::SeqCst);
            }
        }
        let read_bytes = std::sync::Arc::default();
        let lines = Endless(std::sync::Arc::clone(&read_bytes));
        let (sender, mut receiver) = channel(WAITING_LINES);
        let reader = std::thread::spawn(move || read(lines, &sender));
        let count = || read_bytes.load(std::sync::atomic::Ordering::SeqCst) / LINE.len();
        for used in 1..100 {
            assert_eq!(receiver.blocking_recv(), Some(Input::Cancel));
            // What waits, what was used, and the line that finds no room.
            assert!(count() <= used + WAITING_LINES + 1, "{} of {used}", count());
        }
        drop(receiver);
        reader.join().unwrap();
    }

    #[test]
    fn a_wrong_line_is_named_and_nothing_after_it_is_read() {
        for (line, says) in [
            ("hello", "no JSON"),
            ("[]", "no JSON object"),
            ("{}", "`type` is missing"),
            ("{\"type\":\"usr\"}", "there is no type `usr`"),
            ("{\"type\":\"user\"}", "`message.content` is missing"),
            ("{\"type\":\"user\",\"message\":{\"content\":\" \"}}", "has no text"),
            (
                "{\"type\":\"user\",\"message\":{\"content\":7}}",
                "neither a text nor a list",
            ),
            (
                "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"image\",\"source\":{\"data\":\"eA==\"}}]}}",
                "PNG",
            ),
            ("{\"type\":\"clarification_response\"}", "`documentId` is missing"),
        ] {
            let found = inputs(&format!("{{\"type\":\"cancel\"}}\n{line}\n{{\"type\":\"cancel\"}}\n"));
            let [Input::Cancel, Input::Wrong(why)] = found.as_slice() else {
                panic!("{line}: {found:?}")
            };
            assert!(
                why.starts_with("line 2 of standard input") && why.contains(says),
                "{line}: {why}"
            );
        }
    }
}
