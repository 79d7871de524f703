//! What a model is told of a conversation: the messages, and where one may cut them without parting a call from its result.
//!
//! Messages are only ever added to, because servers keep what begins alike; the one exception is making room
//! ([`super::compact`]), which is done with [`MessageHistory::drop_results`], [`MessageHistory::drop_calls`] and [`MessageHistory::summarise`], live and
//! when a conversation is read again.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::{
    agent::{cut::tokens, tags::wrap},
    models::{CallResult, ModelMessage, Part, Said, ToolSpec},
    protocol::{Address, DocumentId, Turn},
    text::WordList,
    tools::skill,
};

/// Tokens of an image, roughly: servers scale it down first.
pub const IMAGE_TOKENS: u64 = 1_000;

/// A result shorter than this is not worth dropping.
const WORTH_BYTES: usize = 400;

/// Characters of an argument that stand for a result.
const ABOUT_CHARACTERS: usize = 60;

/// Bytes of the skills that a summary keeps word for word, together.
const KEPT_SKILLS_BYTES: usize = 64 << 10;

/// The beginning of a line that replaces a result.
const DROPPED: &str = "[result dropped: ";

/// The messages that a model is told, and where they may be cut.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageHistory {
    /// Oldest first.
    pub messages: Vec<ModelMessage>,
    /// Places where a cut is possible, in the order of the messages.
    pub borders: Vec<Border>,
    /// The message that tells the surroundings, once they are told.
    pub opened_at: Option<usize>,
    /// Which document shows a call.
    pub places: HashMap<String, Address>,
    /// Room was made where more turns were kept than are here: what is told begins too late to stand without the rest.
    pub is_short: bool,
    /// Tokens of the last request with its answer, as the server counted them, and how many messages that were.
    counted: Option<(u64, usize)>,
}

/// Before this message one may cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Border {
    /// Index of the message.
    pub at: usize,
    pub turn: Turn,
    /// `None`: the user's message that opens the turn. Else what the model said next, once this document was there.
    pub behind: Option<DocumentId>,
}

impl MessageHistory {
    /// A message of the user's that opens a turn.
    pub fn turn(&mut self, turn: Turn, parts: Vec<Part>) {
        if !parts.is_empty() {
            self.border(turn, None);
            self.messages.push(ModelMessage::User(parts));
        }
    }

    /// One may cut before what comes next.
    pub fn border(&mut self, turn: Turn, behind: Option<DocumentId>) {
        let at = self.messages.len();
        if self.borders.last().is_none_or(|it| it.at < at) {
            self.borders.push(Border { at, turn, behind });
        }
    }

    /// A turn begins within the last message.
    pub fn join_turn(&mut self, turn: Turn) {
        if let Some(at) = self.messages.len().checked_sub(1) {
            self.borders.push(Border { at, turn, behind: None });
        }
    }

    /// Forgets what was told last.
    pub fn truncate(&mut self, length: usize) {
        self.messages.truncate(length);
        self.borders.retain(|it| it.at < length);
        self.opened_at = self.opened_at.filter(|it| *it < length);
        self.counted = self.counted.filter(|(_, upto)| *upto <= length);
    }

    /// The server has counted: so many tokens are all messages there are now and the answer to them.
    pub fn count(&mut self, tokens: u64) {
        self.counted = Some((tokens, self.messages.len() + 1));
    }

    /// The server's last count, and the number of messages that it counted.
    pub fn counts(&self) -> Option<(u64, usize)> {
        self.counted
    }

    /// Takes over a count of the server's.
    pub fn set_counts(&mut self, counts: Option<(u64, usize)>) {
        self.counted = counts;
    }

    /// Bytes of all messages, as tokens are estimated from them.
    pub fn bytes(&self) -> usize {
        usize::try_from(self.size_of(0..))
            .unwrap_or(usize::MAX)
            .saturating_mul(3)
    }

    /// As the server counted last; 0: it did not.
    pub fn counted(&self) -> u64 {
        self.counted.map_or(0, |it| it.0)
    }

    /// Tokens of a request with these messages, `fixed` being what else it holds: as the server counted, with an estimate
    /// for what has come since.
    pub fn tokens(&self, fixed: u64) -> u64 {
        match self.counted {
            Some((tokens, upto)) => tokens.saturating_add(self.size_of(upto.min(self.messages.len())..)),
            None => fixed.saturating_add(self.size_of(0..)),
        }
    }

    /// The server's count divided by our estimate, from 0.4 to 2.5; 1 without a count.
    pub fn scale(&self, fixed: u64) -> f64 {
        let Some((tokens, upto)) = self.counted else { return 1.0 };
        let estimate = fixed.saturating_add(self.size_of(..upto.min(self.messages.len())));
        // Odd figures (a server that counts only what is not in its cache) must not turn a plan on its head.
        (tokens as f64 / estimate.max(1) as f64).clamp(0.4, 2.5)
    }

    /// Estimated.
    pub fn size_of(&self, range: impl std::slice::SliceIndex<[ModelMessage], Output = [ModelMessage]>) -> u64 {
        self.messages.get(range).unwrap_or_default().iter().map(size).sum()
    }

    /// Index of the message that opens the turn of a border after a document: it stays when the turn is cut.
    pub fn opening_of(&self, border: &Border) -> Option<usize> {
        border.behind.as_ref()?;
        let opens = |it: &&Border| it.behind.is_none() && it.at < border.at;
        self.borders.iter().rev().find(opens).map(|it| it.at)
    }

    /// Number of turns that a cut at this message keeps.
    pub fn turns_from(&self, at: usize) -> usize {
        let kept = self.borders.iter().filter(|it| it.at >= at && it.behind.is_none());
        let is_within = self.borders.iter().any(|it| it.at == at && it.behind.is_some());
        kept.count() + usize::from(is_within)
    }

    /// Index of the message to cut at so that `turns` turns are kept; of the oldest turn, only what follows the
    /// document `behind`.
    pub fn cut(&self, turns: usize, behind: Option<&DocumentId>) -> usize {
        let openings: Vec<usize> = self.openings().collect();
        let Some(oldest) = openings.len().checked_sub(turns) else {
            return openings.first().copied().unwrap_or_default();
        };
        let Some(opening) = openings.get(oldest).copied() else {
            return self.messages.len();
        };
        let next = openings.get(oldest + 1).copied().unwrap_or(usize::MAX);
        let is_it =
            |it: &&Border| (opening..next).contains(&it.at) && it.behind.is_some() && it.behind.as_ref() == behind;
        self.borders.iter().find(is_it).map_or(opening, |it| it.at)
    }

    /// Returns true if there are at least `turns` turns.
    pub fn has_turns(&self, turns: usize) -> bool {
        self.openings().count() >= turns
    }

    /// Indices of the messages that open turns.
    pub fn openings(&self) -> impl Iterator<Item = usize> {
        self.borders.iter().filter(|it| it.behind.is_none()).map(|it| it.at)
    }

    /// Puts a line in the place of each result before `at` that is worth it; how many, and the tokens that are saved.
    pub fn drop_results(&mut self, at: usize) -> (usize, u64) {
        let dropped = dropped(self.messages.get(..at).unwrap_or_default(), is_no_skill);
        self.replace(dropped)
    }

    /// The results that [`Self::drop_results`] would drop, and the tokens it would save.
    pub fn droppable(&self, at: usize) -> (usize, u64) {
        let dropped = dropped(self.messages.get(..at).unwrap_or_default(), is_no_skill);
        (dropped.len(), dropped.iter().map(|it| it.saved).sum())
    }

    /// The same for the results of these calls.
    pub fn drop_calls(&mut self, calls: &[String]) -> (usize, u64) {
        let dropped = dropped(&self.messages, |it| calls.contains(&it.call));
        self.replace(dropped)
    }

    fn replace(&mut self, dropped: Vec<Dropped>) -> (usize, u64) {
        let (count, saved) = (dropped.len(), dropped.iter().map(|it| it.saved).sum());
        if let Some(last) = dropped.iter().map(|it| it.message).max() {
            self.drop_thoughts(last);
        }
        for it in dropped {
            if let Some(ModelMessage::Results(results)) = self.messages.get_mut(it.message)
                && let Some(result) = results.get_mut(it.result)
            {
                result.text = it.line;
                result.images.clear();
            }
        }
        (count, saved)
    }

    /// Removes thoughts before `at`, a message that is rewritten: servers check them against what stood after them, and no
    /// cache holds them any more.
    fn drop_thoughts(&mut self, at: usize) {
        for message in self.messages.iter_mut().take(at) {
            if let ModelMessage::Assistant(said) = message {
                said.retain(|it| !matches!(it, Said::Opaque(_)));
            }
        }
    }

    /// Puts a summary in the place of everything before `at`. The surroundings stay, and of a turn that is cut the
    /// message that opens it.
    pub fn summarise(&mut self, at: usize, summary: &str) {
        let border = self.borders.iter().find(|it| it.at == at);
        let opening = border.and_then(|it| Some((it.turn, self.opening_of(it)?)));
        let rest = self.messages.split_off(at.min(self.messages.len()));
        let mut before = std::mem::take(&mut self.messages);
        let stays = opening.and_then(|(_, at)| before.get(at)).map(std::slice::from_ref);
        let skills = kept_skills(&before, &[stays.unwrap_or_default(), &rest]);
        let mut take = |at: usize| {
            before
                .get_mut(at)
                .map(|it| std::mem::replace(it, ModelMessage::User(Vec::new())))
        };
        let mut borders = Vec::new();
        let surroundings = self.opened_at.filter(|it| *it < at);
        self.messages.extend(surroundings.and_then(&mut take));
        if surroundings.is_some() {
            self.opened_at = Some(0);
        }
        let mut text = wrapped(summary);
        for block in skills {
            text.push('\n');
            text.push_str(&block);
        }
        self.messages.push(ModelMessage::user(text));
        if let Some((turn, opening)) = opening {
            borders.push(Border {
                at: self.messages.len(),
                turn,
                behind: None,
            });
            self.messages.extend(take(opening));
        }
        let head = self.messages.len();
        let moved = |it: usize| head + (it - at);
        if surroundings.is_none() {
            self.opened_at = self.opened_at.map(moved);
        }
        let kept = self.borders.iter().filter(|it| it.at >= at);
        borders.extend(kept.map(|it| Border {
            at: moved(it.at),
            ..it.clone()
        }));
        self.borders = borders;
        self.messages.extend(rest);
        self.counted = None;
    }

    /// The last message is a summary: what the user says next is a message of its own.
    pub fn ends_with_summary(&self) -> bool {
        self.messages.last().is_some_and(is_summary)
    }

    /// A summary stands for all that was said before.
    pub fn has_summary(&self) -> bool {
        self.messages.iter().any(is_summary)
    }

    /// From here on it is known that a request has so many tokens.
    pub fn estimated(&mut self, tokens: u64) {
        self.counted = Some((tokens, self.messages.len()));
    }
}

fn is_summary(message: &ModelMessage) -> bool {
    match message {
        ModelMessage::User(parts) => {
            matches!(parts.as_slice(), [Part::Text(text)] if text.starts_with("<conversation_summary>"))
        }
        ModelMessage::Assistant(_) | ModelMessage::Results(_) => false,
    }
}

/// Skills that the model was told in `before` and that do not stand in what stays, the last ones told, as far as there is room: a
/// summary is no instruction.
fn kept_skills(before: &[ModelMessage], stays: &[&[ModelMessage]]) -> Vec<String> {
    let still: Vec<(String, String)> = stays.iter().flat_map(|it| skills_in(it)).collect();
    let mut kept: Vec<(String, String)> = Vec::new();
    let mut room = KEPT_SKILLS_BYTES;
    for (name, block) in skills_in(before).into_iter().rev() {
        let is_known = still.iter().chain(&kept).any(|it| it.0 == name);
        if !is_known && block.len() <= room {
            room -= block.len();
            kept.push((name, block));
        }
    }
    kept.into_iter().rev().map(|it| it.1).collect()
}

/// The skills that the model is told in these messages, by name, in their order.
pub fn skills_in(messages: &[ModelMessage]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut take = |text: &str| {
        let blocks = skill::blocks(text).into_iter();
        found.extend(blocks.map(|(name, block)| (name.to_owned(), block.to_owned())));
    };
    for message in messages {
        match message {
            // What the user wrote cannot hold such a tag.
            ModelMessage::User(parts) => parts.iter().for_each(|it| {
                if let Part::Text(text) = it {
                    take(text);
                }
            }),
            ModelMessage::Results(results) => results
                .iter()
                .filter(|it| it.name == skill::NAME)
                .for_each(|it| take(&it.text)),
            ModelMessage::Assistant(_) => {}
        }
    }
    found
}

/// The message that stands for what was left out.
fn wrapped(summary: &str) -> String {
    wrap("conversation_summary", summary)
}

/// A skill is an instruction: it stays unless the user drops it.
fn is_no_skill(result: &CallResult) -> bool {
    result.name != skill::NAME
}

/// A result that a line is to stand for.
struct Dropped {
    message: usize,
    result: usize,
    line: String,
    saved: u64,
}

fn dropped(messages: &[ModelMessage], is_meant: impl Fn(&CallResult) -> bool) -> Vec<Dropped> {
    let mut dropped = Vec::new();
    let mut calls: HashMap<&str, &Map<String, Value>> = HashMap::new();
    for (message, it) in messages.iter().enumerate() {
        match it {
            ModelMessage::User(_) => {}
            ModelMessage::Assistant(said) => calls.extend(said.iter().filter_map(|it| match it {
                Said::Call(call) => Some((call.id.as_str(), &call.arguments)),
                Said::Text(_) | Said::Opaque(_) => None,
            })),
            ModelMessage::Results(results) => {
                for (result, it) in results.iter().enumerate() {
                    let is_worth = it.text.len() > WORTH_BYTES || !it.images.is_empty();
                    if !is_worth || !is_meant(it) || it.text.starts_with(DROPPED) {
                        continue;
                    }
                    let line = line(it, calls.get(it.call.as_str()).copied());
                    let saved = result_size(it).saturating_sub(tokens(&line));
                    dropped.push(Dropped {
                        message,
                        result,
                        line,
                        saved,
                    });
                }
            }
        }
    }
    dropped
}

/// `[result dropped: grep "fn total", 14 lines]`
fn line(result: &CallResult, arguments: Option<&Map<String, Value>>) -> String {
    let about = arguments.and_then(about).unwrap_or_default();
    let lines = result.text.lines().count();
    let lines = if lines == 1 {
        "1 line".to_owned()
    } else {
        format!("{lines} lines")
    };
    let failed = if result.is_error { ", it failed" } else { "" };
    format!(
        "{DROPPED}{}{about}, {lines}{failed}; call again if it is needed]",
        result.name
    )
}

/// The argument that tells most, in quotes.
pub fn about(arguments: &Map<String, Value>) -> Option<String> {
    let telling = WordList("command target_file file_path path pattern query glob_pattern search_term url");
    let text = telling.iter().find_map(|it| arguments.get(it)?.as_str());
    let text = text.or_else(|| arguments.values().find_map(Value::as_str))?;
    let first = text.lines().next().unwrap_or_default();
    let mut cut: String = first.chars().take(ABOUT_CHARACTERS).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    Some(format!(" \"{cut}\""))
}

/// Tokens of a message, estimated.
pub fn size(message: &ModelMessage) -> u64 {
    match message {
        ModelMessage::User(parts) => parts.iter().map(part_size).sum(),
        ModelMessage::Assistant(said) => said.iter().map(said_size).sum(),
        ModelMessage::Results(results) => results.iter().map(result_size).sum(),
    }
}

fn part_size(part: &Part) -> u64 {
    match part {
        Part::Text(text) => tokens(text),
        Part::Image(_) => IMAGE_TOKENS,
    }
}

/// Tokens of what a model said.
pub fn said_size(said: &Said) -> u64 {
    match said {
        Said::Text(text) => tokens(text),
        Said::Opaque(value) => tokens(&value.to_string()),
        Said::Call(call) => {
            let arguments = serde_json::to_string(&call.arguments).unwrap_or_default();
            tokens(&call.name) + tokens(&arguments)
        }
    }
}

/// Tokens of a result, estimated.
pub fn result_size(result: &CallResult) -> u64 {
    tokens(&result.text) + result.images.len() as u64 * IMAGE_TOKENS
}

/// Tokens of a description, estimated.
pub fn tool_size(tool: &ToolSpec) -> u64 {
    tokens(&tool.name) + tokens(&tool.about) + tokens(&tool.parameters.to_string())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn thoughts_before_a_rewritten_message_go_and_later_ones_stay() {
        let thought = |nth: u32| Said::Opaque(json!({ "thought": nth }));
        let step = |nth: u32| {
            let call = crate::models::Call {
                id: format!("c{nth}"),
                name: "grep".to_owned(),
                arguments: Map::new(),
                opaque: None,
            };
            let result = CallResult {
                call: format!("c{nth}"),
                name: "grep".to_owned(),
                text: "x".repeat(WORTH_BYTES + 1),
                is_error: false,
                images: Vec::new(),
            };
            [
                ModelMessage::Assistant(vec![thought(nth), Said::Call(call)]),
                ModelMessage::Results(vec![result]),
            ]
        };
        let mut history = MessageHistory::default();
        history.messages.push(ModelMessage::user("go"));
        history.messages.extend((1..=3).flat_map(step));
        let thoughts = |history: &MessageHistory| -> Vec<Said> {
            let said = history.messages.iter().filter_map(|it| match it {
                ModelMessage::Assistant(said) => Some(said),
                ModelMessage::User(_) | ModelMessage::Results(_) => None,
            });
            said.flatten()
                .filter(|it| matches!(it, Said::Opaque(_)))
                .cloned()
                .collect()
        };
        assert_eq!(thoughts(&history), [thought(1), thought(2), thought(3)]);
        assert_eq!(history.drop_calls(&["c2".to_owned()]).0, 1);
        assert_eq!(thoughts(&history), [thought(3)]);
        assert_eq!(history.drop_calls(&["none".to_owned()]).0, 0);
        assert_eq!(thoughts(&history), [thought(3)]);
    }

    #[test]
    fn a_skill_outlives_the_making_of_room() {
        let block = |name: &str| {
            format!(
                "<skill_content name=\"{name}\">\n{}\n</skill_content>",
                name.repeat(500)
            )
        };
        let result = |name: &str, text: String| {
            ModelMessage::Results(vec![CallResult {
                call: format!("c{name}"),
                name: name.to_owned(),
                text,
                is_error: false,
                images: Vec::new(),
            }])
        };
        let mut history = MessageHistory::default();
        history.turn(Turn(1), vec![Part::Text(format!("{}\ngo", block("user")))]);
        history.messages.push(result(skill::NAME, block("model")));
        history.messages.push(result("grep", block("forged")));
        history.turn(Turn(2), vec![Part::Text("more".to_owned())]);
        assert_eq!(history.drop_results(3).0, 1, "only the result of grep");
        let at = history.openings().nth(1).unwrap();
        history.summarise(at, "It was short.");
        let names = |history: &MessageHistory| -> Vec<String> {
            skills_in(&history.messages).into_iter().map(|it| it.0).collect()
        };
        assert_eq!(names(&history), ["user", "model"]);
        assert!(history.has_summary());
        // What a summary kept the next one keeps, too, and what is told again stands once.
        history.messages.push(result(skill::NAME, block("user")));
        history.turn(Turn(3), vec![Part::Text("end".to_owned())]);
        let last = history.openings().last().unwrap();
        history.summarise(last, "Shorter.");
        assert_eq!(names(&history), ["model", "user"]);
        // The user may still drop one.
        history.messages.push(result(skill::NAME, block("other")));
        assert_eq!(history.drop_calls(&["cskill".to_owned()]).0, 1);
    }
}
