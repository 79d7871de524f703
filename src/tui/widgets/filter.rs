//! The filter of the conversation: by kind, by state, and by queries as in a search of conversations.

use std::sync::Arc;

use super::item::Item;
use crate::{
    locale,
    protocol::{Applied, Document, Kind, View},
    transcript::{
        Transcript,
        query::{Candidate, Query, QueryError},
    },
};

/// One word of `/filter`, such as `edits` (a group of kinds) or `failed` (a state), and its test.
pub struct Facet {
    /// As it is typed.
    pub name: &'static str,
    /// The message that says what it is.
    about: &'static str,
    test: Test,
}

/// Kinds widen each other, and so do states; a document must fit both groups.
enum Test {
    Kind(fn(&Kind) -> bool),
    State(fn(&Transcript, usize, &Document) -> bool),
}

/// Everything one can ask for, in the order of the picker.
pub static FACETS: &[Facet] = &[
    kind("text", "filter-text", |it| matches!(it, Kind::Text)),
    kind("edits", "filter-edits", |it| matches!(it, Kind::FileEdit)),
    kind("commands", "filter-commands", |it| matches!(it, Kind::TerminalCommand)),
    kind("calls", "filter-calls", |it| matches!(it, Kind::ToolCall)),
    kind("code", "filter-code", |it| {
        matches!(it, Kind::CodeBlock | Kind::CodeReference)
    }),
    kind("plans", "filter-plans", |it| {
        matches!(it, Kind::Plan | Kind::TodoUpdate)
    }),
    kind("questions", "filter-questions", |it| matches!(it, Kind::Clarification)),
    kind("errors", "filter-errors", |it| matches!(it, Kind::Error)),
    state("failed", "filter-failed", |_, _, it| has_failed(it)),
    state("waiting", "filter-waiting", |transcript, exchange, it| {
        transcript.is_open_question(exchange, it)
    }),
    state("running", "filter-running", |_, _, it| it.is_open()),
];

impl Facet {
    /// The description of the facet.
    pub fn about(&self) -> &'static str {
        locale::text(self.about)
    }

    pub fn has(&self, transcript: &Transcript, item: Item) -> bool {
        let Item::Document(place) = item else {
            return false;
        };
        transcript.get(place).is_some_and(|it| match self.test {
            Test::Kind(test) => test(&it.kind),
            Test::State(test) => test(transcript, place.exchange, it),
        })
    }
}

const fn kind(name: &'static str, about: &'static str, test: fn(&Kind) -> bool) -> Facet {
    Facet {
        name,
        about,
        test: Test::Kind(test),
    }
}

const fn state(name: &'static str, about: &'static str, test: fn(&Transcript, usize, &Document) -> bool) -> Facet {
    Facet {
        name,
        about,
        test: Test::State(test),
    }
}

/// The items that are shown; all others are not listed.
#[derive(Clone, Default)]
pub struct Filter {
    facets: Vec<&'static Facet>,
    /// The terms beside the names of facets.
    query: Option<Arc<Query>>,
    /// As it is written, facets first.
    words: String,
}

impl Filter {
    /// Reads names of facets, between commas or blanks, and terms of a query, which counts time back from `now_ms`.
    pub fn parse(words: &str, now_ms: u64) -> Result<Self, QueryError> {
        let facet = |word: &str| FACETS.iter().find(|it| it.name == word);
        let mut facets = Vec::new();
        let mut terms = Vec::new();
        // What stands between quotes names no facet, and keeps its blanks.
        for (nth, part) in words.split('"').enumerate() {
            if nth % 2 == 1 {
                terms.push(format!("\"{part}\""));
                continue;
            }
            let mut rest = String::new();
            for piece in part.split_inclusive(char::is_whitespace) {
                let names = piece.split([',', ' ']).map(str::trim).filter(|it| !it.is_empty());
                match names.map(facet).collect::<Option<Vec<_>>>() {
                    Some(found) => facets.extend(found),
                    None => rest.push_str(piece),
                }
            }
            terms.push(rest);
        }
        let terms = terms.concat();
        let terms = terms.trim();
        let query = Query::parse(terms, now_ms)?;
        let names = facets.iter().map(|it: &&Facet| it.name).chain([terms]);
        let words = names.filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" ");
        Ok(Self {
            facets,
            query: (!query.is_empty()).then(|| Arc::new(query)),
            words,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.facets.is_empty() && self.query.is_none()
    }

    pub fn has(&self, facet: &Facet) -> bool {
        self.facets.iter().any(|it| it.name == facet.name)
    }

    /// As it is written.
    pub fn words(&self) -> String {
        self.words.clone()
    }

    pub fn passes(&self, transcript: &Transcript, item: Item) -> bool {
        let Some(exchange) = transcript.exchanges.get(item.exchange()) else {
            return false;
        };
        let fits = |document| {
            let candidate = Candidate { exchange, document };
            self.query.as_ref().is_none_or(|it| it.matches(candidate))
        };
        let place = match item {
            Item::Document(place) => place,
            // A message is no document: only words of the query's can mean it.
            Item::Message(_) => return self.facets.is_empty() && self.query.is_some() && fits(None),
            Item::Thinking(..) | Item::Ending(_) | Item::Action(..) => return false,
        };
        let Some(document) = transcript.get(place).filter(|it| fits(Some(it))) else {
            return false;
        };
        let (mut kinds, mut states) = (None, None);
        for facet in &self.facets {
            let (group, fits) = match facet.test {
                Test::Kind(test) => (&mut kinds, test(&document.kind)),
                Test::State(test) => (&mut states, test(transcript, place.exchange, document)),
            };
            *group = Some(group.unwrap_or(false) || fits);
        }
        kinds.unwrap_or(true) && states.unwrap_or(true)
    }
}

/// An error, or what ended as it should not.
pub fn has_failed(document: &Document) -> bool {
    match document.view() {
        View::Error(_) => true,
        View::ToolCall(it) => it.result.is_some_and(|it| it.failed),
        View::TerminalCommand(it) => it.exit_code.is_some_and(|it| it != 0),
        View::FileEdit(it) => it.applied == Applied::Failed,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_written_alike() {
        for (words, wanted) in [
            ("edits, failed", "edits failed"),
            ("edits,failed", "edits failed"),
            ("", ""),
            ("total edits path:src/**", "edits total path:src/**"),
            ("\"edits\" failed", "failed \"edits\""),
            ("-\"two  words\"", "-\"two  words\""),
        ] {
            assert_eq!(
                Filter::parse(words, 0).map(|it| it.words()),
                Ok(wanted.to_owned()),
                "{words}"
            );
        }
        assert!(Filter::parse(" ", 0).is_ok_and(|it| it.is_empty()));
        assert!(Filter::parse("edits type:cats", 0).is_err_and(|it| it.term == "type:cats"));
    }
}
