//! Making room: what a model is told of the conversation becomes shorter before its window is full, or when the user wants
//! it. Pure.
//!
//! First a line stands for each older result; where that is not enough, a summary stands for all that was said before a
//! border. The border lies before the last three turns, or nearer where these are too much, within the last turn if need be;
//! never between a call and its result. Whoever plans sees beforehand whether it would help, so that nothing is tried twice:
//! what cannot be made to fit is named instead.

use super::{
    message_history::{self, MessageHistory},
    plain_id,
};
use crate::{
    models::{ModelMessage, Part, Said},
    protocol::{
        Address, DocumentId, Turn,
        document::{Cause, Compaction, CompactionMethod},
    },
    text::figure,
};

/// From so much of the window on, in percent, room is made.
const FULL_PERCENT: u64 = 80;
/// And so much of it may be left then, so that it is not made again soon.
const ROOM_PERCENT: u64 = 50;
/// Messages of the user that stay in full, with their answers.
const TURNS_KEPT: usize = 3;
/// A summary takes no more of the window than this part of it, and no more than so many tokens.
const SUMMARY_PART: u64 = 10;
const SUMMARY_TOKENS: u64 = 3_000;
/// A compaction must save at least this part of a request, in percent.
const LEAST_PERCENT: u64 = 10;

/// Sizes of a request, in tokens.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Tokens of the system prompt and of the descriptions of tools, estimated.
    pub system: u64,
    pub tools: u64,
    /// The model's context window, if known.
    pub window: Option<u64>,
}

impl Sizes {
    /// Tokens of a request beside its messages.
    pub fn fixed(&self) -> u64 {
        self.system + self.tools
    }

    /// Returns true if the request needs compaction.
    pub fn is_full(&self, told: &MessageHistory) -> bool {
        self.window
            .is_some_and(|it| told.tokens(self.fixed()) >= percent(it, FULL_PERCENT))
    }
}

/// A compaction that has been worked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionPlan {
    /// Everything before this message becomes shorter.
    pub at: usize,
    pub turns: usize,
    pub behind: Option<DocumentId>,
    pub way: CompactionMethod,
    /// Tokens before, and those that a summary may take.
    pub before: u64,
    pub summary: u64,
}

/// The largest part of a request that cannot be made shorter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LargestPart {
    System,
    Tools,
    /// The first context: machine, git, tree.
    Surroundings,
    Message {
        turn: Turn,
    },
    Result {
        about: String,
        place: Option<Address>,
    },
}

/// Why no room can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CannotCompact {
    /// There is nothing that could become shorter.
    Nothing,
    /// The part that has to stay is too large: its biggest piece, and that piece's tokens.
    TooBig(LargestPart, u64),
}

/// Works out a compaction. Fails if none would help.
pub fn plan(told: &MessageHistory, sizes: &Sizes, cause: Cause) -> Result<CompactionPlan, CannotCompact> {
    let fixed = sizes.fixed();
    let before = told.tokens(fixed);
    let scale = told.scale(fixed);
    let scaled = |tokens: u64| (tokens as f64 * scale) as u64;
    // Where nobody knows the window, what was refused is more than it.
    let most = match (sizes.window, cause) {
        (Some(window), Cause::Overflow) => window.min(before),
        (Some(window), Cause::Full | Cause::Asked) => window,
        (None, _) => before,
    };
    let summary = (most / SUMMARY_PART).min(SUMMARY_TOKENS);
    let make = |at: usize, way: CompactionMethod| CompactionPlan {
        at,
        turns: told.turns_from(at),
        behind: told
            .borders
            .iter()
            .find(|it| it.at == at)
            .and_then(|it| it.behind.clone()),
        way,
        before,
        summary,
    };
    if told.borders.is_empty() {
        return Err(CannotCompact::Nothing);
    }
    if cause == Cause::Asked {
        return Ok(make(asked(told), CompactionMethod::Summary));
    }
    let surroundings = told.opened_at.map_or(0, |it| told.size_of(it..=it));
    // What is left when one cuts there, without what stands for the rest.
    let left = |at: usize| {
        let border = told.borders.iter().find(|it| it.at == at);
        let opening = border.and_then(|it| told.opening_of(it));
        let opening = opening.map_or(0, |it| told.size_of(it..=it));
        let is_behind = told.opened_at.is_some_and(|it| it >= at);
        let surroundings = if is_behind { 0 } else { surroundings };
        scaled(fixed + surroundings + opening + told.size_of(at..)) + summary
    };
    let candidates = candidates(told);
    let fits = |at: &&usize| left(**at) <= percent(most, ROOM_PERCENT);
    let Some(at) = candidates.iter().find(fits).or(candidates.last()).copied() else {
        return Err(biggest(told, sizes));
    };
    let (count, saved) = told.droppable(at);
    if count > 0 && before.saturating_sub(scaled(saved)) <= percent(most, ROOM_PERCENT) {
        return Ok(make(at, CompactionMethod::Results));
    }
    let is_enough = left(at) <= percent(most, FULL_PERCENT) && is_worth(before, left(at));
    if is_enough {
        return Ok(make(at, CompactionMethod::Summary));
    }
    if count > 0 && before.saturating_sub(scaled(saved)) <= percent(most, FULL_PERCENT) {
        return Ok(make(at, CompactionMethod::Results));
    }
    Err(biggest(told, sizes))
}

/// Returns true if a request has become shorter by enough to be worth it.
pub fn is_worth(before: u64, after: u64) -> bool {
    after <= before.saturating_sub(percent(before, LEAST_PERCENT))
}

fn percent(tokens: u64, percent: u64) -> u64 {
    tokens.saturating_mul(percent) / 100
}

/// Messages before which a cut is possible, the one that keeps the most first: before the last turns, then within the
/// last one.
fn candidates(told: &MessageHistory) -> Vec<usize> {
    let openings: Vec<usize> = told.openings().collect();
    let first = openings.len().saturating_sub(TURNS_KEPT);
    let mut candidates: Vec<usize> = openings.get(first..).unwrap_or_default().to_vec();
    let last = openings.last().copied().unwrap_or_default();
    let steps = told.borders.iter().filter(|it| it.behind.is_some() && it.at > last);
    candidates.extend(steps.map(|it| it.at));
    // Before the very first message there is nothing.
    let first = told.borders.first().map_or(0, |it| it.at);
    let has_summary = told.opened_at.map_or(first > 0, |it| first > it + 1);
    candidates.retain(|it| *it > first || has_summary);
    candidates
}

/// The user wants it short: the last turn stays if it is small beside the rest.
fn asked(told: &MessageHistory) -> usize {
    let openings: Vec<usize> = told.openings().collect();
    match openings.as_slice() {
        [_, .., last] if told.size_of(*last..) * 4 <= told.size_of(0..) => *last,
        _ => told.messages.len(),
    }
}

/// The largest part of the request.
pub fn biggest(told: &MessageHistory, sizes: &Sizes) -> CannotCompact {
    let scale = told.scale(sizes.fixed());
    let mut parts = vec![(LargestPart::System, sizes.system), (LargestPart::Tools, sizes.tools)];
    let mut abouts = std::collections::HashMap::new();
    let mut turn = Turn(0);
    for (at, message) in told.messages.iter().enumerate() {
        turn = told
            .borders
            .iter()
            .rev()
            .find(|it| it.at <= at)
            .map_or(turn, |it| it.turn);
        match message {
            ModelMessage::User(_) if told.opened_at == Some(at) => {
                parts.push((LargestPart::Surroundings, message_history::size(message)));
            }
            ModelMessage::User(_) => parts.push((LargestPart::Message { turn }, message_history::size(message))),
            ModelMessage::Assistant(said) => abouts.extend(said.iter().filter_map(|it| match it {
                Said::Call(call) => Some((call.id.as_str(), message_history::about(&call.arguments))),
                Said::Text(_) | Said::Opaque(_) => None,
            })),
            ModelMessage::Results(results) => parts.extend(results.iter().map(|it| {
                let about = abouts.get(it.call.as_str()).cloned().flatten().unwrap_or_default();
                let what = LargestPart::Result {
                    about: format!("{}{about}", it.name),
                    place: told.places.get(&it.call).copied(),
                };
                (what, message_history::result_size(it))
            })),
        }
    }
    let biggest = parts.into_iter().max_by_key(|it| it.1);
    biggest.map_or(CannotCompact::Nothing, |(what, tokens)| {
        CannotCompact::TooBig(what, (tokens as f64 * scale) as u64)
    })
}

impl CannotCompact {
    /// A message that names the largest part, and details that say what the user can do.
    pub fn words(&self, window: Option<u64>) -> (String, String) {
        let of = window.map(|it| format!(" of {}", count(it))).unwrap_or_default();
        let again = "/new begins a new conversation";
        let (what, tokens, offer) = match self {
            Self::Nothing => {
                return (
                    "nothing to shorten".to_owned(),
                    format!("{again}; a model with a larger window takes more"),
                );
            }
            Self::TooBig(what, tokens) => {
                let (what, offer) = what.words();
                (what, *tokens, offer)
            }
        };
        (
            format!(
                "the conversation does not fit and cannot be made shorter: {what} takes {} tokens{of}",
                count(tokens)
            ),
            format!("{offer}; {again}; a model with a larger window takes more"),
        )
    }
}

impl LargestPart {
    fn words(&self) -> (String, String) {
        match self {
            Self::System => (
                "the system prompt with its rules".to_owned(),
                "/context shows its parts; shorter rules make room".to_owned(),
            ),
            Self::Tools => (
                "the description of the tools".to_owned(),
                "switch tools off (`tools` in the settings), or use ask mode, which has fewer".to_owned(),
            ),
            Self::Surroundings => (
                "what is told of the workspace".to_owned(),
                "/context shows its parts".to_owned(),
            ),
            Self::Message { turn } => (
                format!("your message {turn}"),
                format!("/rewind {turn} goes back to before it: attach less, or a part of the file"),
            ),
            Self::Result { about, place } => {
                let (place, drop) = match place {
                    Some(place) => (
                        format!(" ({place})"),
                        format!(
                            "/drop {place} takes the result away from the model; /rewind {} goes back to before it",
                            place.turn
                        ),
                    ),
                    None => (String::new(), "/rewind goes back to before it".to_owned()),
                };
                (format!("the result of {about}{place}"), drop)
            }
        }
    }
}

/// `12.3k`
pub fn count(tokens: u64) -> String {
    figure::tokens(tokens).as_str().to_owned()
}

impl CompactionPlan {
    /// The record of the compaction for its document; `after`: the tokens that are left.
    pub fn mark(&self, cause: Cause, window: Option<u64>, after: u64) -> Compaction {
        Compaction {
            cause,
            way: self.way,
            before_tokens: self.before,
            after_tokens: after,
            window_tokens: window,
            kept_turns: self.turns,
            behind: self.behind.clone(),
            calls: Vec::new(),
        }
    }
}

/// Does again what a document says was done: `told` is what was told before it.
pub fn apply(told: &mut MessageHistory, mark: &Compaction, summary: &str) {
    match mark.way {
        CompactionMethod::Single => {
            // Whoever reads a conversation again gives the calls ids that every server takes.
            let calls: Vec<String> = mark.calls.iter().map(|it| plain_id(it)).collect();
            told.drop_calls(&calls);
        }
        CompactionMethod::Results => {
            let at = told.cut(mark.kept_turns, mark.behind.as_ref());
            told.drop_results(at);
        }
        CompactionMethod::Summary => {
            told.is_short |= !told.has_turns(mark.kept_turns);
            let at = told.cut(mark.kept_turns, mark.behind.as_ref());
            told.summarise(at, summary);
        }
    }
    told.estimated(mark.after_tokens);
}

/// The words of the user in a message, without what the program says around them.
pub fn words(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|it| match it {
        Part::Text(text) => Some(text.as_str()),
        Part::Image(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
