//! Showing only a part of the conversation, by kind and by state.

use super::pane::Item;
use crate::{
    locale,
    protocol::{Applied, Document, Kind, View},
    transcript::Transcript,
};

/// One thing that documents can be asked for.
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
        transcript.is_waiting(exchange, it)
    }),
    state("running", "filter-running", |_, _, it| it.is_open()),
];

impl Facet {
    /// What it is, for a reader.
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

/// What is shown; everything else is not listed.
#[derive(Clone, Default)]
pub struct Filter(Vec<&'static Facet>);

impl Filter {
    /// The words of a filter; the one that is none.
    pub fn parse(words: &str) -> Result<Self, &str> {
        let facet = |word| FACETS.iter().find(|it| it.name == word).ok_or(word);
        let words = words.split([' ', ',']).filter(|it| !it.is_empty());
        words.map(facet).collect::<Result<_, _>>().map(Self)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn has(&self, facet: &Facet) -> bool {
        self.0.iter().any(|it| it.name == facet.name)
    }

    /// As it is written.
    pub fn words(&self) -> String {
        self.0.iter().map(|it| it.name).collect::<Vec<_>>().join(" ")
    }

    pub fn passes(&self, transcript: &Transcript, item: Item) -> bool {
        let Item::Document(place) = item else {
            return false;
        };
        let Some(document) = transcript.get(place) else {
            return false;
        };
        let (mut kinds, mut states) = (None, None);
        for facet in &self.0 {
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
        View::Text(_)
        | View::CodeReference(_)
        | View::CodeBlock(_)
        | View::Plan(_)
        | View::Clarification(_)
        | View::TodoUpdate(_)
        | View::Unknown(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_written_alike() {
        assert_eq!(
            Filter::parse("edits, failed").map(|it| it.words()),
            Ok("edits failed".into())
        );
        assert_eq!(Filter::parse("").map(|it| it.is_empty()), Ok(true));
        assert_eq!(Filter::parse("edits cats").map(|it| it.words()), Err("cats"));
    }
}
