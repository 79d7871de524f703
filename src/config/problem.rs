//! Problems with settings: the location, the message, and the nearest right word.

use std::{fmt, ops::Range, path::PathBuf};

/// Location of a value in the user's input.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Location {
    /// Line and column count from 1, the column in characters. Line 0 means the file as a whole.
    File { path: PathBuf, line: usize, column: usize },
    /// Name of an environment variable.
    Variable(String),
    /// A command-line flag, with its dashes.
    Flag(String),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line: 0, .. } => write!(f, "{}", path.display()),
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Variable(name) => write!(f, "${name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A wrong setting. The program starts without it.
///
/// The texts may quote the file: sanitize them before they reach a terminal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    pub place: Location,
    pub message: String,
    /// Suggested fix.
    pub hint: Option<String>,
    /// True if the rules or patterns of the user cannot be known because of it.
    pub leaves_open: bool,
}

/// What is added to a problem that leaves open what is forbidden.
const OPEN: &str = "until you fix it, everything asks";

impl Problem {
    pub fn new(place: Location, message: impl Into<String>) -> Self {
        Self {
            place,
            message: message.into(),
            hint: None,
            leaves_open: false,
        }
    }

    /// The same as one that leaves open what the user forbids or hides.
    pub fn open(self) -> Self {
        let hint = self
            .hint
            .map_or_else(|| OPEN.to_owned(), |it| format!("{it}\n  {OPEN}"));
        Self {
            hint: Some(hint),
            leaves_open: true,
            ..self
        }
    }

    /// Adds a suggested fix.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  {hint}"),
            None => Ok(()),
        }
    }
}

/// Path and text of a file, to turn byte ranges into locations.
#[derive(Clone, Copy, Debug)]
pub struct SourceText<'a> {
    pub path: &'a std::path::Path,
    pub text: &'a str,
}

impl SourceText<'_> {
    /// Returns the location of the first byte of `span`.
    pub fn place(&self, span: Range<usize>) -> Location {
        let mut end = span.start.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let before = self.text.get(..end).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |it| it + 1);
        Location::File {
            path: self.path.to_owned(),
            line: before.bytes().filter(|&it| it == b'\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
        }
    }

    /// Returns the location of the file as a whole.
    pub fn whole(&self) -> Location {
        Location::File {
            path: self.path.to_owned(),
            line: 0,
            column: 0,
        }
    }
}

/// Returns the candidate nearest to `word` by edit distance. `None` if more than a third of its characters differ.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |it: &str| it.to_ascii_lowercase().replace(['-', ' '], "_");
    let word = plain(word);
    // A pasted paragraph is near nothing. Below, longer words may differ in more characters.
    if word.len() > 64 {
        return None;
    }
    let limit = 1 + word.chars().count() / 3;
    candidates
        .into_iter()
        .map(|it| (distance(&word, &plain(it)), it))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, it)| it)
}

/// Returns the hint ``did you mean `…`?`` with the nearest candidate, if there is one.
pub fn suggestion<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|it| format!("did you mean `{it}`?"))
}

/// Damerau–Levenshtein distance: insertions, deletions, replacements and swaps of neighbours.
pub fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before: Vec<usize> = vec![0; right.len() + 1];
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for row in 1..=left.len() {
        let mut here = vec![row; right.len() + 1];
        for column in 1..=right.len() {
            let differs = usize::from(left[row - 1] != right[column - 1]);
            here[column] = (above[column] + 1)
                .min(here[column - 1] + 1)
                .min(above[column - 1] + differs);
            let swapped =
                row > 1 && column > 1 && left[row - 1] == right[column - 2] && left[row - 2] == right[column - 1];
            if swapped {
                here[column] = here[column].min(before[column - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, here);
    }
    above[right.len()]
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_misspelt_word_finds_the_one_that_was_meant() {
        for (word, expected) in [
            ("them", Some("theme")),
            ("themes", Some("theme")),
            ("Theme", Some("theme")),
            ("modle", Some("model")),
            ("idle-timeout", Some("idle_timeout")),
            ("timeout_idle", None),
            ("xyzzy", None),
            ("", None),
        ] {
            let found = nearest(word, ["theme", "model", "mode", "idle_timeout"]);
            assert_eq!(found, expected, "{word}");
        }
    }

    #[test]
    fn a_pasted_paragraph_is_near_nothing() {
        assert_eq!(nearest(&"theme".repeat(10_000), ["theme"]), None);
    }

    #[test]
    fn a_place_counts_lines_and_characters_from_one() {
        let text = "a = 1\nä = 'é' x\n";
        let source = SourceText {
            path: Path::new("c.toml"),
            text,
        };
        let at = |needle: char| source.place(text.find(needle).expect("in the text")..0).to_string();
        assert_eq!(at('a'), "c.toml:1:1");
        assert_eq!(at('x'), "c.toml:2:9");
        assert_eq!(source.place(9999..9999).to_string(), "c.toml:3:1");
        assert_eq!(source.place(7..7).to_string(), "c.toml:2:1", "inside of a character");
    }
}
