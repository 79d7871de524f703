//! What the model is asked that writes a summary: the older part of a conversation as one text that fits, and what not to
//! leave out.

use crate::{
    agent::tags::wrap,
    models::{Effort, ModelMessage, ModelRequest, Part, Said},
};

/// The system prompt for a summary. It names what must be kept, and says that nothing in the conversation is an
/// instruction.
const SYSTEM: &str = include_str!("../../../assets/prompts/summary.md");

/// More of a result or of an argument tells nothing that a summary would hold.
const RESULT_BYTES: usize = 2 << 10;
const ARGUMENTS_BYTES: usize = 1 << 10;
/// A token is at least about so many bytes.
const TOKEN_BYTES: u64 = 3;
/// The conversation may take this part of the model's window, in percent: estimates are rough.
const TAKEN_PERCENT: u64 = 60;
/// Assumed window of a model whose window is unknown, in tokens.
const UNKNOWN_WINDOW: u64 = 32_000;

/// A conversation to be summarised.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryRequest {
    /// Oldest first.
    pub messages: Vec<ModelMessage>,
    /// The user's words on what to keep; may be empty.
    pub keep: String,
    /// As long as the summary may be.
    pub tokens: u64,
    /// The window of the conversation's own model in tokens, if known.
    pub window: Option<u64>,
}

/// The request for a summary, to a model that takes in `window` tokens; each `attempt` sends half of what the one before did.
/// Whoever sends it names the model.
pub fn request(brief: &SummaryRequest, window: Option<u64>, attempt: u32) -> ModelRequest {
    let tokens = window.unwrap_or(UNKNOWN_WINDOW) * TAKEN_PERCENT / 100;
    let bytes = (tokens * TOKEN_BYTES) >> attempt.min(8);
    let talk = written(&brief.messages, usize::try_from(bytes).unwrap_or(usize::MAX));
    // A word is more than a token.
    let words = (brief.tokens * 6 / 10).max(80);
    let mut ask = format!(
        "{}\n\nWrite the summary of this conversation now, in at most {words} words.",
        wrap("earlier_conversation", &talk)
    );
    if !brief.keep.trim().is_empty() {
        let keep = wrap("user_query", &brief.keep);
        ask.push_str(&format!(" The user wants this in it above all:\n{keep}"));
    }
    ModelRequest {
        system: SYSTEM.into(),
        messages: vec![ModelMessage::user(ask)],
        effort: Some(Effort::Off),
        ..ModelRequest::default()
    }
}

/// The conversation as one text of at most about so many bytes: the longest of what was said is cut first.
fn written(messages: &[ModelMessage], most: usize) -> String {
    let mut parts: Vec<(String, String)> = Vec::new();
    for message in messages {
        match message {
            ModelMessage::User(said) => {
                let images = said.iter().filter(|it| matches!(it, Part::Image(_))).count();
                let mut text = super::compaction::words(said);
                if images > 0 {
                    text.push_str(&format!("\n[images: {images}]"));
                }
                parts.push(("User:".to_owned(), text));
            }
            ModelMessage::Assistant(said) => parts.extend(said.iter().filter_map(|it| match it {
                Said::Text(text) => Some(("Assistant:".to_owned(), text.as_str().to_owned())),
                Said::Call(call) => {
                    let arguments = serde_json::to_string(&call.arguments).unwrap_or_default();
                    Some((format!("Call of {}:", call.name), cut(&arguments, ARGUMENTS_BYTES)))
                }
                Said::Opaque(_) => None,
            })),
            ModelMessage::Results(results) => parts.extend(
                results
                    .iter()
                    .map(|it| (format!("Result of {}:", it.name), cut(&it.text, RESULT_BYTES))),
            ),
        }
    }
    // Where hardly a word of each would fit, the oldest are left out.
    let mut heads: usize = parts.iter().map(|it| it.0.len() + HEAD_BYTES).sum();
    let mut left_out = 0;
    for (head, _) in &parts {
        if heads <= most / 2 {
            break;
        }
        heads -= head.len() + HEAD_BYTES;
        left_out += 1;
    }
    parts.drain(..left_out);
    let mut talk = String::new();
    if left_out > 0 {
        talk.push_str(&format!("[… the first {left_out} parts are left out …]\n\n"));
    }
    let most = most.saturating_sub(talk.len());
    let cap = cap(parts.iter().map(|(head, text)| (head.len(), text.len())), most);
    for (head, text) in parts {
        talk.push_str(&format!("{head}\n{}\n\n", cut(text.trim(), cap)));
    }
    talk
}

/// Bytes of a part beside its head and its text.
const HEAD_BYTES: usize = 3;
/// Bytes of the note that says how much was cut out of a part, with the largest number.
const MARK_BYTES: usize = 40;

/// The greatest length in bytes at which all parts fit; `usize::MAX` if none has to be cut.
fn cap(lengths: impl Iterator<Item = (usize, usize)> + Clone, most: usize) -> usize {
    let heads: usize = lengths.clone().map(|it| it.0 + HEAD_BYTES).sum();
    let room = most.saturating_sub(heads);
    if lengths.clone().map(|it| it.1).sum::<usize>() <= room {
        return usize::MAX;
    }
    let part = |length: usize, cap: usize| if length > cap { cap + MARK_BYTES } else { length };
    let fits = |cap: usize| lengths.clone().map(|it| part(it.1, cap)).sum::<usize>() <= room;
    let (mut low, mut high) = (0, room);
    while low + 1 < high {
        let middle = low.midpoint(high);
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The beginning and the end of a text that is too long.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = text.get(..text.floor_char_boundary(most * 2 / 3)).unwrap_or_default();
    let tail = text
        .get(text.ceil_char_boundary(text.len() - most / 3)..)
        .unwrap_or_default();
    format!("{head}\n[… {} bytes …]\n{tail}", text.len() - head.len() - tail.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{Call, CallResult};

    #[test]
    fn what_a_summary_is_made_of_fits_however_many_parts_there_are() {
        let call = |at: usize| {
            let id = format!("c{at}");
            let name = "read_file".to_owned();
            let arguments = serde_json::Map::from_iter([("path".to_owned(), "x".repeat(200).into())]);
            let result = CallResult {
                call: id.clone(),
                name: name.clone(),
                text: "y".repeat(3_000),
                is_error: false,
                images: Vec::new(),
            };
            let call = Call {
                id,
                name,
                arguments,
                opaque: None,
            };
            [
                ModelMessage::Assistant(vec![Said::Call(call)]),
                ModelMessage::Results(vec![result]),
            ]
        };
        for count in [1, 10, 100, 1_500] {
            let messages: Vec<ModelMessage> = (0..count).flat_map(call).collect();
            for most in [100, 1_000, 30_000, 100_000] {
                let talk = written(&messages, most);
                assert!(talk.len() <= most + 100, "{count} calls in {most}: {}", talk.len());
                assert!(
                    !talk.contains("are left out") || count * 40 > most / 2,
                    "{count} calls in {most}"
                );
            }
        }
    }
}
