//! The language in which documents are looked for: `type:terminal_command exit!=0 since:7d path:src/** text`.
//!
//! | term | holds for |
//! | --- | --- |
//! | `word`, `"two words"` | documents and messages that say it, whatever the case |
//! | `type:edit` | documents of a kind, by its name or its short one; `type:message` for what the user said |
//! | `path:src/**` | documents about a file; commands that name one, or print its name |
//! | `exit!=0`, `exit>1` | commands by how they ended |
//! | `state:failed` | documents by state: `failed`, `ok`, `open`, `applied`, `rejected`, `pending`, `running`, … |
//! | `tool:grep` `model:qwen` `mode:plan` | calls of a tool, answers of a model, in a mode |
//! | `since:7d` `until:2026-11-01` | what happened after, before |
//!
//! All terms have to hold; `-` in front turns one round.

use globset::{GlobBuilder, GlobMatcher};
use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::Exchange;
use crate::protocol::{Applied, CommandState, Document, KINDS, Kind, View};

#[derive(Debug, Default)]
pub struct Query {
    terms: Vec<Term>,
}

#[derive(Debug)]
struct Term {
    is_turned: bool,
    what: Condition,
}

#[derive(Debug)]
enum Condition {
    Says { word: String, finder: Regex },
    Kind(Kind),
    Message,
    Path(GlobMatcher),
    Exit(Comparison, i64),
    State(String),
    Tool(String),
    Model(String),
    Mode(String),
    Since(u64),
    Until(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Is,
    IsNot,
    Less,
    More,
    AtMost,
    AtLeast,
}

/// Something that a query is matched against: a document, or the message of an exchange.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    pub exchange: &'a Exchange,
    pub document: Option<&'a Document>,
}

/// A query with an invalid term.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{term}`: {why}")]
pub struct QueryError {
    pub term: String,
    pub why: String,
}

const DAY_MS: u64 = 86_400_000;

impl Query {
    /// Parses a query. `now_ms` is the time that `7d` is counted back from, in milliseconds since the Unix epoch.
    pub fn parse(text: &str, now_ms: u64) -> Result<Self, QueryError> {
        let terms = words(text).into_iter().map(|it| term(&it, now_ms));
        Ok(Self {
            terms: terms.collect::<Result<_, _>>()?,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The words that have to be there.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.terms
            .iter()
            .filter(|it| !it.is_turned)
            .filter_map(|it| match &it.what {
                Condition::Says { word, .. } => Some(word.as_str()),
                _ => None,
            })
    }

    /// Returns the facts, as [`facts`] writes them, that a matching document must have. For an index that stores
    /// facts instead of documents.
    pub fn facts(&self) -> impl Iterator<Item = String> {
        self.terms
            .iter()
            .filter(|it| !it.is_turned)
            .filter_map(|it| match &it.what {
                Condition::Kind(kind) => Some(fact_of_kind(kind)),
                Condition::Exit(Comparison::Is, code) => Some(fact_of_exit(*code)),
                Condition::Exit(order, code) => (!order.holds(0, *code)).then(|| FAILED.to_owned()),
                Condition::Tool(name) => Some(fact_of_tool(name)),
                Condition::Says { .. }
                | Condition::Message
                | Condition::Path(_)
                | Condition::State(_)
                | Condition::Model(_)
                | Condition::Mode(_)
                | Condition::Since(_)
                | Condition::Until(_) => None,
            })
    }

    /// The moment before which nothing fits, in milliseconds since the Unix epoch.
    pub fn since(&self) -> Option<u64> {
        let moments = self
            .terms
            .iter()
            .filter(|it| !it.is_turned)
            .filter_map(|it| match it.what {
                Condition::Since(ms) => Some(ms),
                _ => None,
            });
        moments.max()
    }

    /// Returns the byte range of the first word found in a text. `None` if the text has none of the words.
    pub fn find(&self, text: &str) -> Option<std::ops::Range<usize>> {
        self.terms
            .iter()
            .filter(|it| !it.is_turned)
            .find_map(|it| match &it.what {
                Condition::Says { finder, .. } => finder.find(text).map(|it| it.range()),
                _ => None,
            })
    }

    pub fn matches(&self, candidate: Candidate<'_>) -> bool {
        self.terms.iter().all(|it| it.what.holds(candidate) != it.is_turned)
    }
}

impl Condition {
    fn holds(&self, it: Candidate<'_>) -> bool {
        let response = &it.exchange.response;
        match self {
            Self::Says { finder, .. } => match (it.document, &it.exchange.message) {
                (Some(document), _) => says(document, finder),
                (None, Some(message)) => finder.is_match(&message.content),
                (None, None) => false,
            },
            Self::Kind(kind) => it.document.is_some_and(|it| it.kind == *kind),
            Self::Message => it.document.is_none(),
            Self::Path(glob) => it.document.is_some_and(|it| is_about(it, glob)),
            Self::Exit(order, code) => exit_of(it.document).is_some_and(|it| order.holds(it, *code)),
            Self::State(state) => it.document.is_some_and(|it| has_state(it, state)),
            Self::Tool(name) => it
                .document
                .is_some_and(|it| tool_of(it).is_some_and(|it| it.eq_ignore_ascii_case(name))),
            Self::Model(name) => {
                let model = response.model.as_ref().map(|it| it.to_lowercase());
                model.is_some_and(|it| it.contains(name.as_str()))
            }
            Self::Mode(name) => response
                .mode
                .as_ref()
                .is_some_and(|it| it.as_str().eq_ignore_ascii_case(name)),
            Self::Since(ms) => it.exchange.last_ms.max(it.exchange.at_ms) >= *ms,
            Self::Until(ms) => it.exchange.at_ms < *ms,
        }
    }
}

impl Comparison {
    fn holds(self, left: i64, right: i64) -> bool {
        match self {
            Self::Is => left == right,
            Self::IsNot => left != right,
            Self::Less => left < right,
            Self::More => left > right,
            Self::AtMost => left <= right,
            Self::AtLeast => left >= right,
        }
    }
}

/// Describes a document in the words that [`Query::facts`] uses.
pub fn facts(document: &Document) -> Vec<String> {
    let mut facts = vec![fact_of_kind(&document.kind)];
    facts.extend(tool_of(document).map(fact_of_tool));
    if let Some(code) = exit_of(Some(document)) {
        facts.push(fact_of_exit(code));
        facts.extend((code != 0).then(|| FAILED.to_owned()));
    }
    facts
}

const FAILED: &str = "exit!=0";

fn fact_of_kind(kind: &Kind) -> String {
    format!("kind={}", kind.as_str())
}

fn fact_of_exit(code: i64) -> String {
    format!("exit={code}")
}

fn fact_of_tool(name: &str) -> String {
    format!("tool={}", name.to_ascii_lowercase())
}

/// In the content or in any text of the metadata.
fn says(document: &Document, finder: &Regex) -> bool {
    fn anywhere(value: &Value, finder: &Regex) -> bool {
        match value {
            Value::String(text) => finder.is_match(text),
            Value::Array(items) => items.iter().any(|it| anywhere(it, finder)),
            Value::Object(members) => members.values().any(|it| anywhere(it, finder)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    let content = document.content.as_deref().unwrap_or_default();
    finder.is_match(content) || document.metadata.values().any(|it| anywhere(it, finder))
}

/// Returns true if a document is about a file that the glob matches. A command names files in its line and in its
/// output.
fn is_about(document: &Document, glob: &GlobMatcher) -> bool {
    if let View::TerminalCommand(it) = document.view() {
        let mut words = [it.command, it.output].into_iter().flat_map(words_like_paths);
        return words.any(|it| fits(glob, it));
    }
    paths(document).any(|it| fits(glob, it))
}

/// Matches a path. An absolute path matches by any of its ends, because the workspace is unknown here.
fn fits(glob: &GlobMatcher, path: &str) -> bool {
    let path = path.strip_prefix("./").unwrap_or(path);
    let is_whole = path.starts_with('/');
    glob.is_match(path)
        || is_whole
            && path
                .match_indices('/')
                .any(|(at, _)| path.get(at + 1..).is_some_and(|it| glob.is_match(it)))
}

/// Returns words that may be the name of a file, without a position after a colon.
fn words_like_paths(text: &str) -> impl Iterator<Item = &str> {
    let is_between = |it: char| it.is_whitespace() || "\"'`()[]{}<>|;&=,:".contains(it);
    text.split(is_between)
        .map(|it| it.trim_end_matches('.'))
        // No path is longer, and what is printed in base64 begins with a slash, too.
        .filter(|it| it.len() <= 4096 && it.contains(['/', '.']))
}

/// The files that a document is about.
fn paths(document: &Document) -> impl Iterator<Item = &str> {
    const MEMBERS: [&str; 2] = ["filePath", "newFilePath"];
    const ARGUMENTS: [&str; 4] = ["target_file", "file_path", "path", "target_notebook"];
    let text = |it: &'static str| document.metadata.get(it).and_then(Value::as_str);
    let arguments = document.metadata.get("arguments");
    let argument = move |it: &'static str| arguments.and_then(|all| all.get(it)).and_then(Value::as_str);
    MEMBERS
        .into_iter()
        .filter_map(text)
        .chain(ARGUMENTS.into_iter().filter_map(argument))
}

fn exit_of(document: Option<&Document>) -> Option<i64> {
    match document?.view() {
        View::TerminalCommand(it) => it.exit_code,
        _ => None,
    }
}

fn tool_of(document: &Document) -> Option<&str> {
    document.metadata.get("toolName").and_then(Value::as_str)
}

fn has_state(document: &Document, state: &str) -> bool {
    let is_open = document.is_open();
    let (failed, word) = match document.view() {
        View::ToolCall(it) => (it.result.is_some_and(|it| it.failed), None),
        View::TerminalCommand(it) => (
            it.exit_code.is_some_and(|it| it != 0) || matches!(it.state, CommandState::TimedOut),
            Some(it.state.to_string()),
        ),
        View::FileEdit(it) => (it.applied == Applied::Failed, Some(it.applied.to_string())),
        View::Clarification(it) => (false, it.outcome.map(|it| it.to_string())),
        View::Error(_) => (true, None),
        _ => (false, None),
    };
    match state {
        "failed" => failed,
        "ok" => !failed && !is_open,
        "open" => is_open,
        other => word.is_some_and(|it| it.eq_ignore_ascii_case(other)),
    }
}

/// Splits a query into terms; quoted text is one term. Quotes inside a term belong to it: `path:"a b"`.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let (mut is_quoted, mut is_word) = (false, false);
    for c in text.chars() {
        match c {
            '"' => {
                is_quoted = !is_quoted;
                // What is quoted from its beginning is a word, even if it looks like another term.
                if is_quoted && matches!(word.as_str(), "" | "-") {
                    word.push('\0');
                }
                is_word = true;
            }
            c if c.is_whitespace() && !is_quoted => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            c => {
                word.push(c);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(word);
    }
    words
}

fn term(text: &str, now_ms: u64) -> Result<Term, QueryError> {
    let bad = |why: String| QueryError {
        term: text.replace('\0', "\""),
        why,
    };
    let (is_turned, rest) = match text.strip_prefix('-') {
        Some(rest) if !rest.is_empty() => (true, rest),
        _ => (false, text),
    };
    let made = |what| Ok(Term { is_turned, what });
    if let Some(phrase) = rest.strip_prefix('\0') {
        return made(word(phrase).map_err(bad)?);
    }
    if let Some(rest) = rest.strip_prefix("exit")
        && let Some((order, number)) = comparison(rest)
    {
        let number = number.parse().map_err(|_| bad("an exit code is a number".to_owned()))?;
        return made(Condition::Exit(order, number));
    }
    let Some((name, value)) = rest.split_once(':') else {
        return made(word(rest).map_err(bad)?);
    };
    if value.is_empty() {
        return Err(bad(format!("`{name}:` needs a value")));
    }
    let what = match name {
        "type" | "kind" if value.eq_ignore_ascii_case("message") => Condition::Message,
        "type" | "kind" => {
            let short = KINDS
                .iter()
                .find(|(_, row)| row.aliases.iter().any(|it| it.eq_ignore_ascii_case(value)))
                .map(|(kind, _)| kind.clone());
            let known = Kind::parse(&value.to_lowercase());
            match (short, known) {
                (Some(kind), _) => Condition::Kind(kind),
                (None, Kind::Other(_)) => {
                    let names = Kind::KNOWN.join(", ");
                    return Err(bad(format!("unknown kind\n  kinds: {names}, message")));
                }
                (None, kind) => Condition::Kind(kind),
            }
        }
        "path" => {
            let glob = GlobBuilder::new(value).literal_separator(true).build();
            Condition::Path(glob.map_err(|it| bad(it.to_string()))?.compile_matcher())
        }
        "state" => Condition::State(value.to_lowercase()),
        "tool" => Condition::Tool(value.to_owned()),
        "model" => Condition::Model(value.to_lowercase()),
        "mode" => Condition::Mode(value.to_owned()),
        "since" => Condition::Since(moment(value, now_ms).ok_or_else(|| bad(MOMENT.to_owned()))?),
        "until" => Condition::Until(moment(value, now_ms).ok_or_else(|| bad(MOMENT.to_owned()))?),
        // `https://…`, `std::mem`: words that happen to have a colon.
        _ => word(rest).map_err(bad)?,
    };
    made(what)
}

const MOMENT: &str = "a time is 30m, 12h, 7d, 2w, or a day such as 2026-11-01";

fn word(text: &str) -> Result<Condition, String> {
    let finder = RegexBuilder::new(&regex::escape(text)).case_insensitive(true).build();
    Ok(Condition::Says {
        word: text.to_owned(),
        finder: finder.map_err(|_| "it is too long".to_owned())?,
    })
}

fn comparison(text: &str) -> Option<(Comparison, &str)> {
    const SIGNS: [(&str, Comparison); 7] = [
        ("!=", Comparison::IsNot),
        ("<=", Comparison::AtMost),
        (">=", Comparison::AtLeast),
        ("=", Comparison::Is),
        (":", Comparison::Is),
        ("<", Comparison::Less),
        (">", Comparison::More),
    ];
    SIGNS
        .iter()
        .find_map(|(sign, order)| Some((*order, text.strip_prefix(sign)?)))
}

/// Milliseconds since the Unix epoch.
fn moment(text: &str, now_ms: u64) -> Option<u64> {
    if let Ok(day) = text.parse::<chrono::NaiveDate>() {
        let start = day.and_hms_opt(0, 0, 0)?.and_local_timezone(chrono::Local).earliest()?;
        return u64::try_from(start.timestamp_millis()).ok();
    }
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let length = match unit {
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => DAY_MS,
        "w" => 7 * DAY_MS,
        _ => return None,
    };
    Some(now_ms.saturating_sub(number.parse::<u64>().ok()?.checked_mul(length)?))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;
    use crate::{
        protocol::{DocumentStart, Entry, Event, Message, Mode, Position, ResponseStart, Turn},
        transcript::Transcript,
    };

    const NOW: u64 = 100 * DAY_MS;

    /// One exchange, three days ago: an edit, a failed command, one that went well, a failed call, a text.
    fn transcript() -> Transcript {
        let mut events = vec![
            Event::UserMessage(Message::user("Mend the Cart")),
            Event::ResponseStart(ResponseStart {
                model: Some("Qwen2.5".into()),
                mode: Some(Mode::Agent),
                ..ResponseStart::default()
            }),
        ];
        let documents = [
            (
                Kind::FileEdit,
                "",
                json!({ "filePath": "src/cart.rs", "diff": { "oldString": "alpha", "newString": "Beta" }, "applied": "rejected" }),
            ),
            (
                Kind::TerminalCommand,
                "",
                json!({ "command": "cargo test", "exitCode": 101, "output": "one panicked\nsee tests/it.rs:7:3." }),
            ),
            (
                Kind::TerminalCommand,
                "",
                json!({ "command": "ls -l ./lib/a.sh", "exitCode": 0 }),
            ),
            (
                Kind::ToolCall,
                "",
                json!({ "toolName": "read_file", "arguments": { "target_file": "/home/me/shop/src/deep/a.md" }, "result": { "status": "error", "data": "gone" } }),
            ),
            (Kind::Text, "All done, see https://example.com", json!({})),
        ];
        for (at, (kind, content, metadata)) in documents.into_iter().enumerate() {
            let id = format!("d{at}");
            events.push(Event::DocumentStart(DocumentStart {
                id: id.as_str().into(),
                kind,
                sequence: Some(at as u64 + 1),
                content: None,
                metadata: metadata.as_object().cloned().unwrap_or_default(),
            }));
            events.push(Event::DocumentEnd {
                document: id.as_str().into(),
                final_content: Some(content.into()),
                metadata: metadata.as_object().cloned().unwrap_or_default(),
            });
        }
        let mut transcript = Transcript::default();
        for (at, event) in events.into_iter().enumerate() {
            transcript.apply(&Entry {
                position: Position(at as u64 + 1),
                turn: Turn(1),
                at_ms: NOW - 3 * DAY_MS,
                event,
            });
        }
        transcript
    }

    /// The numbers of the documents that are found; 0 is the message.
    fn found(query: &str) -> Vec<usize> {
        let query = Query::parse(query, NOW).expect("a query");
        let transcript = transcript();
        let exchange = &transcript.exchanges[0];
        let documents = exchange.response.documents.iter().map(Some);
        let all = std::iter::once(None).chain(documents);
        all.enumerate()
            .filter(|(_, document)| {
                query.matches(Candidate {
                    exchange,
                    document: *document,
                })
            })
            .map(|it| it.0)
            .collect()
    }

    #[test]
    fn each_term_finds_what_it_says() {
        for (query, expected) in [
            ("", vec![0, 1, 2, 3, 4, 5]),
            ("cart", vec![0, 1]),
            ("-cart", vec![2, 3, 4, 5]),
            ("CARGO test", vec![2]),
            ("\"cargo test\"", vec![2]),
            ("\"test cargo\"", vec![]),
            ("beta", vec![1]),
            ("type:message", vec![0]),
            ("type:edit", vec![1]),
            ("type:terminal_command exit!=0", vec![2]),
            ("exit=0", vec![3]),
            ("exit>=1", vec![2]),
            ("type:command -exit!=0", vec![3]),
            ("state:failed", vec![2, 4]),
            ("state:rejected", vec![1]),
            ("path:src/**", vec![1, 4]),
            ("path:src/*", vec![1]),
            ("path:**/*.md", vec![4]),
            ("path:deep/a.md", vec![4]),
            ("path:eep/a.md", vec![]),
            ("path:*.rs", vec![]),
            ("path:tests/** type:terminal_command exit!=0 since:7d panicked", vec![2]),
            ("path:lib/*.sh", vec![3]),
            ("path:src/deep/*", vec![4]),
            ("tool:read_file gone", vec![4]),
            ("model:qwen type:text", vec![5]),
            ("mode:plan", vec![]),
            ("since:7d type:text", vec![5]),
            ("since:2d", vec![]),
            ("until:2d type:text", vec![5]),
            ("https://example.com", vec![5]),
            ("\"type:edit\"", vec![]),
            ("-\"panicked\" type:command", vec![3]),
        ] {
            assert_eq!(found(query), expected, "{query}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_said() {
        for (query, why) in [
            ("type:nonsense", "unknown kind"),
            ("exit!=many", "an exit code is a number"),
            ("since:yesterday", "a time is"),
            ("path:a[", "a["),
            ("tool:", "needs a value"),
        ] {
            let error = Query::parse(query, NOW).expect_err(query).to_string();
            assert!(error.contains(why) && error.contains(query), "{error}");
        }
    }
}
