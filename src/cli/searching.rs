//! Search in all conversations: the cache excludes conversations, raw bytes exclude turns, and the rest is parsed.

use std::{
    io::{self, Write as _},
    ops::ControlFlow,
    time::Duration,
};

use anyhow::{Context as _, Result};
use regex::bytes::{Regex, RegexBuilder};
use serde_json::json;

use super::{
    CliContext,
    cache::{Cache, Passing},
    code, complain,
};
use crate::{
    journal::file::{Listed, Parts, Store},
    print::harmless,
    protocol::{Document, Entry, Event, Turn},
    text::{Sanitized, figure},
    transcript::{
        Exchange, Transcript,
        query::{Candidate, Query},
    },
    tui::now_ms,
};

/// Time to update the cache after a search, whose results are already printed.
const CACHE_TIME: Duration = Duration::from_millis(50);

/// Prints the matches, newest conversation first. Exit code 1 if there are none, as in grep.
pub fn run(base: &CliContext, store: &Store, query: &str, all: bool, as_json: bool) -> Result<u8> {
    let query = match Query::parse(query, now_ms()) {
        Ok(query) => query,
        Err(error) => {
            complain(&error.to_string());
            return Ok(code::USAGE);
        }
    };
    let here = base.workspace.to_string_lossy();
    let mut cache = Cache::open(&base.paths.cache);
    let listed = listed(cache.as_mut(), store).context("conversations cannot be listed")?;
    let filter = TurnFilter::new(&query, cache.as_ref(), &listed);
    let mut out = io::BufWriter::new(io::stdout());
    let mut has_found = false;
    for it in listed.iter().filter(|it| all || it.session.workspace == here) {
        let looked = filter.visit(store, it, |exchange| {
            for hit in hits(exchange, &query) {
                has_found = true;
                let line = if as_json {
                    hit.object(&it.session.id)
                } else {
                    hit.row(&it.session.id, &query)
                };
                if out.write_all(Sanitized::new(&line).as_bytes()).is_err() {
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        });
        // Results are printed at once; a closed output ends the search.
        if looked.is_break() || out.flush().is_err() {
            return Ok(code::OK);
        }
    }
    // Updates the cache after the output, so that the next search is faster.
    if let Some(cache) = &mut cache {
        cache.update(store, &listed, CACHE_TIME);
    }
    Ok(if has_found { code::OK } else { code::FAILED })
}

/// Returns all conversations; files that did not change are not read again.
pub fn listed(cache: Option<&mut Cache>, store: &Store) -> io::Result<Vec<Listed>> {
    match cache {
        Some(cache) => cache.list(store),
        None => store.list(),
    }
}

/// Returns the ids of matching conversations with an excerpt of the last match, read lazily.
pub fn found<'a>(
    store: &'a Store,
    listed: Vec<Listed>,
    query: &'a Query,
    cache: Option<&Cache>,
) -> impl Iterator<Item = (String, String)> + 'a {
    let filter = TurnFilter::new(query, cache, &listed);
    listed.into_iter().filter_map(move |it| {
        let mut line = None;
        let _ = filter.visit(store, &it, |exchange| {
            line = hits(exchange, query).next().map(|it| excerpt(&it.text().1, query));
            match line {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            }
        });
        Some((it.session.id, line?))
    })
}

/// Excludes what cannot match, cheaply: conversations by the cache, turns by the bytes of their lines.
///
/// An answer that was cut off is stored in pieces that may split a word, so such a turn is never excluded.
struct TurnFilter {
    words: Vec<Regex>,
    pieces: Option<Regex>,
    since: Option<u64>,
    passing: Passing,
}

impl TurnFilter {
    fn new(query: &Query, cache: Option<&Cache>, listed: &[Listed]) -> Self {
        let finder = |word: &str| {
            let written = serde_json::to_string(word).ok()?;
            let bare = written.strip_prefix('"')?.strip_suffix('"')?;
            RegexBuilder::new(&regex::escape(bare))
                .case_insensitive(true)
                .build()
                .ok()
        };
        Self {
            words: query.words().filter_map(finder).collect(),
            pieces: Regex::new("\"event\":\"content_delta\"").ok(),
            since: query.since(),
            passing: cache.map(|it| it.passing(query, listed)).unwrap_or_default(),
        }
    }

    /// Passes the turns that may match to `found`, the last one first, until it breaks.
    fn visit(
        &self,
        store: &Store,
        it: &Listed,
        mut found: impl FnMut(&Exchange) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.passing.lets_through(&it.session.id) == Some(false) {
            return ControlFlow::Continue(());
        }
        let Ok(parts) = store.parts(&it.session.id) else {
            return ControlFlow::Continue(());
        };
        let mut whole = None;
        for (turn, last_ms) in parts.turns() {
            if self.since.is_some_and(|since| last_ms < since) || !self.lets_through(&parts, turn) {
                continue;
            }
            let alone;
            let transcript = if parts.is_by_itself(turn) {
                alone = folded(parts.entries(turn), true);
                &alone
            } else {
                &*whole.get_or_insert_with(|| folded(parts.all(), false))
            };
            if let Some(exchange) = transcript.exchange_of(turn) {
                found(exchange)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn lets_through(&self, parts: &Parts, turn: Turn) -> bool {
        let holds = |it: &Regex| parts.lines(turn).any(|lines| it.is_match(lines));
        let is_somewhere = || self.words.iter().all(|it| it.is_match(parts.bytes()));
        self.words.iter().all(holds)
            || self.pieces.as_ref().is_some_and(holds)
            || (!parts.is_by_itself(turn) && is_somewhere())
    }
}

/// Applies entries to a transcript. For a single turn, branches are ignored, so that all of it counts.
fn folded(entries: Vec<Entry>, is_one: bool) -> Transcript {
    let mut transcript = Transcript::default();
    for entry in entries {
        if !is_one || !matches!(entry.event, Event::Branch(_)) {
            transcript.apply(&entry);
        }
    }
    transcript
}

/// A matching document or message.
struct Hit<'a> {
    exchange: &'a Exchange,
    document: Option<(usize, &'a Document)>,
}

fn hits<'a>(exchange: &'a Exchange, query: &'a Query) -> impl Iterator<Item = Hit<'a>> {
    let documents = exchange.response.documents.iter().enumerate().map(Some);
    let message = exchange.message.is_some().then_some(None);
    message
        .into_iter()
        .chain(documents)
        .map(move |document| Hit { exchange, document })
        .filter(move |it| {
            query.matches(Candidate {
                exchange: it.exchange,
                document: it.document.map(|it| it.1),
            })
        })
}

impl Hit<'_> {
    fn number(&self) -> Option<u64> {
        Some(self.exchange.response.number(self.document?.0))
    }

    fn address(&self, session: &str) -> String {
        let number = self.number().map(|it| format!(".{it}")).unwrap_or_default();
        format!("{session}#{}{number}", self.exchange.turn.0)
    }

    /// Returns its kind and its text.
    fn text(&self) -> (&str, String) {
        match (self.document, &self.exchange.message) {
            (Some((_, document)), _) => (document.kind.as_str(), document.plain_text()),
            (None, Some(message)) => ("message", message.content.clone()),
            (None, None) => ("message", String::new()),
        }
    }

    fn row(&self, session: &str, query: &Query) -> String {
        let (kind, text) = self.text();
        let ago = figure::ago(now_ms().saturating_sub(self.exchange.at_ms));
        let said = excerpt(&text, query);
        format!("{}  {kind:<16}  {:>14}  {said}\n", self.address(session), ago.as_str())
    }

    fn object(&self, session: &str) -> String {
        let object = json!({
            "address": self.address(session),
            "at": self.exchange.at_ms,
            "message": self.exchange.message.as_ref().filter(|_| self.document.is_none()),
            "document": self.document.map(|it| it.1.to_json(self.number().unwrap_or_default())),
        });
        harmless(format!("{object}\n")).into_string()
    }
}

/// Returns the line with the first match, cut around it.
fn excerpt(text: &str, query: &Query) -> String {
    let at = query.find(text).map_or(0, |it| it.start);
    let start = text.get(..at).and_then(|it| it.rfind('\n')).map_or(0, |it| it + 1);
    let line = text
        .get(start..)
        .unwrap_or_default()
        .lines()
        .find(|it| !it.trim().is_empty())
        .unwrap_or_default();
    let before = text.get(start..at).map_or(0, |it| it.chars().count());
    let line: String = line.chars().skip(before.saturating_sub(40)).take(100).collect();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        journal::Log,
        journal::file::Session,
        protocol::{ClarificationResponse, DocumentStart, Kind, Message},
    };

    fn all(store: &Store, query: &str) -> Vec<String> {
        let query = Query::parse(query, 0).expect("a query");
        let listed = store.list().expect("listed");
        let filter = TurnFilter::new(&query, None, &listed);
        let mut found = Vec::new();
        for it in &listed {
            let _ = filter.visit(store, it, |exchange| {
                found.extend(hits(exchange, &query).map(|it| it.address("s")));
                ControlFlow::Continue(())
            });
        }
        found
    }

    /// A search turn by turn finds the same as a search in the whole.
    #[test]
    fn a_turn_by_itself_is_the_turn_of_the_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(folder.path());
        let log = Log::new();
        let recorder = store.record(Session::fresh("/w", 1), &log).expect("a thread");
        let members = |value: serde_json::Value| value.as_object().cloned().unwrap_or_default();
        let say = |id: &str, kind: Kind, text: &str, metadata: serde_json::Value| {
            log.append(
                1,
                Event::DocumentStart(DocumentStart {
                    id: id.into(),
                    kind,
                    sequence: None,
                    content: None,
                    metadata: serde_json::Map::new(),
                }),
            );
            log.append(
                1,
                Event::DocumentEnd {
                    document: id.into(),
                    final_content: Some(text.into()),
                    metadata: members(metadata),
                },
            );
        };
        log.append(1, Event::UserMessage(Message::user("which one")));
        say("a", Kind::Text, "the \"red\"\none", json!({}));
        let question = json!({ "questions": [{ "id": "q", "prompt": "which colour?" }] });
        say("b", Kind::Clarification, "", question);
        let mut answer = Message::user("blue");
        answer.clarification_response = Some(ClarificationResponse {
            document_id: "b".into(),
            ..serde_json::from_value(json!({ "documentId": "b", "outcome": "answered" })).expect("an answer")
        });
        log.append(2, Event::UserMessage(answer));
        say("c", Kind::Text, "painted blue", json!({}));
        log.append(
            3,
            Event::Branch(crate::protocol::Branch {
                after: Turn(1),
                ..Default::default()
            }),
        );
        log.append(3, Event::UserMessage(Message::user("another")));
        say("d", Kind::Text, "painted green", json!({}));
        // An older document says what became of it.
        log.append_to(
            Turn(1),
            4,
            Event::DocumentUpdate {
                document: "a".into(),
                metadata: members(json!({ "note": "crossed out" })),
            },
        );
        recorder.finish().expect("it is stored");
        for (query, wanted) in [
            ("painted", vec!["s#3.1", "s#2.1"]),
            ("one", vec!["s#1", "s#1.1"]),
            // What became of the question stands in the answer to it.
            ("answered", vec!["s#1.2"]),
            ("answered colour", vec!["s#1.2"]),
            ("crossed red", vec!["s#1.1"]),
            ("colour", vec!["s#1.2"]),
            ("state:answered", vec!["s#1.2"]),
            ("blue", vec!["s#2", "s#2.1"]),
            ("type:message", vec!["s#3", "s#2", "s#1"]),
            ("nowhere", vec![]),
        ] {
            assert_eq!(all(&store, query), wanted, "{query}");
        }
    }
}
