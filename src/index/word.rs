//! Words of code and of questions, in the form in which they are compared.
//!
//! `getUserName`, `get_user_name` and "the names of users" share words: identifiers are taken apart and kept whole as well,
//! and endings that only bend a word are taken off. A word is kept as a hash; what two of 200,000 words have in common by
//! chance changes no answer.

use std::{collections::HashMap, ops::RangeInclusive};

/// Maximum length of a word, in bytes. Longer ones are data.
const LONGEST: usize = 40;
/// Maximum length of a name with digits that is kept whole where its parts are no words (`E0382`, `i18n`), in bytes. Longer ones
/// are hashes.
const LONGEST_CODE: usize = 16;
/// Digits of a number that means something, such as a port or the status of an answer.
const TELLING_DIGITS: RangeInclusive<usize> = 3..=5;
/// A line that is longer is not written by hand.
const LONGEST_LINE: usize = 2000;

/// Words of questions that say nothing about their subject.
const EMPTY: &[&str] = &[
    "a", "about", "actually", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "before", "being",
    "but", "by", "can", "code", "could", "did", "do", "does", "doing", "done", "during", "each", "every", "find",
    "for", "from", "get", "gets", "given", "go", "goes", "had", "happen", "happens", "has", "have", "how", "i", "if",
    "in", "into", "is", "it", "its", "just", "let", "like", "made", "make", "makes", "many", "may", "me", "much", "my",
    "of", "off", "on", "one", "only", "or", "our", "out", "place", "please", "show", "so", "some", "such", "take",
    "takes", "than", "that", "the", "their", "them", "then", "there", "these", "they", "thing", "things", "this",
    "those", "to", "up", "us", "use", "used", "uses", "using", "was", "we", "were", "what", "when", "where", "whether",
    "which", "while", "who", "whose", "why", "will", "with", "work", "works", "would", "you", "your",
];

/// The words of a chunk: which, and how often.
#[derive(Debug, Default)]
pub struct Words {
    /// Ascending.
    hashes: Box<[u32]>,
    counts: Box<[u8]>,
    /// With repetitions.
    pub length: u32,
}

impl Words {
    /// Returns how often a word occurs, by its hash.
    pub fn count(&self, hash: u32) -> u8 {
        let at = self.hashes.binary_search(&hash).ok();
        at.and_then(|it| self.counts.get(it).copied()).unwrap_or_default()
    }

    /// The hashes in ascending order, and how often each occurs.
    pub fn parts(&self) -> (&[u32], &[u8]) {
        (&self.hashes, &self.counts)
    }

    /// Words from what [`Self::parts`] gave, and their number with repetitions.
    pub fn of_parts(hashes: Box<[u32]>, counts: Box<[u8]>, length: u32) -> Self {
        Self { hashes, counts, length }
    }

    /// Bytes.
    pub fn size(&self) -> usize {
        self.hashes.len() * 5
    }
}

/// Gathers words.
#[derive(Default)]
pub struct Counter {
    counts: HashMap<u32, u8>,
    length: u32,
    /// Words come again and again; to bend one costs more than to look it up.
    known: HashMap<String, u32>,
}

impl Counter {
    /// Adds the words of a line.
    pub fn add(&mut self, line: &str) {
        let Some(line) = line.get(..line.len().min(LONGEST_LINE)) else {
            return;
        };
        let (counts, known, length) = (&mut self.counts, &mut self.known, &mut self.length);
        each(line, &mut |word| {
            let hash = match known.get(word) {
                Some(hash) => *hash,
                None => {
                    let made = hash(stem(word));
                    if known.len() > 100_000 {
                        known.clear();
                    }
                    known.insert(word.to_owned(), made);
                    made
                }
            };
            let count = counts.entry(hash).or_default();
            *count = count.saturating_add(1);
            *length += 1;
        });
    }

    /// Takes the words gathered since the last call.
    pub fn take(&mut self) -> Words {
        let mut pairs: Vec<_> = self.counts.drain().collect();
        pairs.sort_unstable();
        Words {
            hashes: pairs.iter().map(|it| it.0).collect(),
            counts: pairs.iter().map(|it| it.1).collect(),
            length: std::mem::take(&mut self.length),
        }
    }
}

/// A word of a question.
#[derive(Debug, PartialEq, Eq)]
pub struct AskedWord {
    pub hash: u32,
    /// Without the ending that bends it, in small letters.
    pub stem: String,
}

/// The words of a question, each once. A question of empty words only is taken as it is.
pub fn asked(question: &str) -> Vec<AskedWord> {
    let mut all = Vec::new();
    let mut telling = Vec::new();
    // Of a pasted page the beginning is enough.
    for line in question.lines().take(50) {
        let Some(line) = line.get(..line.len().min(LONGEST_LINE)) else {
            continue;
        };
        each(line, &mut |word| {
            let list = if EMPTY.contains(&word) { &mut all } else { &mut telling };
            let stem = stem(word);
            let hash = hash(stem);
            if list.iter().all(|it: &AskedWord| it.hash != hash) && list.len() < 64 {
                let stem = stem.to_owned();
                list.push(AskedWord { hash, stem });
            }
        });
    }
    if telling.is_empty() { all } else { telling }
}

/// Calls `take` with each word in small letters: the parts of identifiers, and those of several parts as a whole.
fn each(line: &str, take: &mut impl FnMut(&str)) {
    let mut whole = String::new();
    let mut part = String::new();
    for identifier in line.split(|it: char| !(it.is_alphanumeric() || it == '_')) {
        if identifier.is_empty() || identifier.len() > LONGEST * 4 {
            continue;
        }
        whole.clear();
        let (mut parts, mut pieces) = (0, 0);
        let mut last = LetterClass::None;
        let mut letters = identifier.chars().peekable();
        while let Some(letter) = letters.next() {
            let kind = LetterClass::of(letter);
            let next = letters.peek().map_or(LetterClass::None, |it| LetterClass::of(*it));
            // `fooBar`, `HTTPServer` before the S, `utf8`.
            let is_start = match (last, kind) {
                (LetterClass::Small, LetterClass::Big) => true,
                (LetterClass::Big, LetterClass::Big) => next == LetterClass::Small,
                (LetterClass::Digit, LetterClass::Big | LetterClass::Small)
                | (LetterClass::Big | LetterClass::Small, LetterClass::Digit) => true,
                _ => false,
            };
            if (is_start || kind == LetterClass::None) && !part.is_empty() {
                parts += usize::from(emit(&part, take));
                pieces += 1;
                part.clear();
            }
            if kind != LetterClass::None {
                for it in letter.to_lowercase() {
                    part.push(it);
                    whole.push(it);
                }
            }
            last = kind;
        }
        if !part.is_empty() {
            parts += usize::from(emit(&part, take));
            pieces += 1;
            part.clear();
        }
        let is_name = !identifier.starts_with(|it: char| it.is_ascii_digit());
        let is_code = || is_name && whole.len() <= LONGEST_CODE && whole.bytes().any(|it| it.is_ascii_digit());
        let is_number = || TELLING_DIGITS.contains(&whole.len()) && !whole.starts_with('0') && parts == 0;
        if parts > 1 || (pieces > 1 && is_code()) {
            emit(&whole, take);
        } else if pieces == 1 && is_number() {
            take(&whole);
        }
    }
}

/// Emits a word unless it is a number or a single letter. Returns true if it was emitted.
fn emit(word: &str, take: &mut impl FnMut(&str)) -> bool {
    let is_word = word.len() > 1 && word.len() <= LONGEST && !word.bytes().all(|it| it.is_ascii_digit());
    if is_word {
        take(word);
    }
    is_word
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LetterClass {
    None,
    Small,
    Big,
    Digit,
}

impl LetterClass {
    fn of(letter: char) -> Self {
        if letter == '_' {
            Self::None
        } else if letter.is_ascii_digit() {
            Self::Digit
        } else if letter.is_uppercase() {
            Self::Big
        } else {
            Self::Small
        }
    }
}

/// The word without the endings that bend it: `parsing`, `parsed`, `parses` and `parser` are one, and so are `connection`
/// and `connects`. What is left need not be a word.
fn stem(word: &str) -> &str {
    if !word.is_ascii() || word.len() < 4 {
        return word;
    }
    let word = plural(word);
    let mut short = word;
    for ending in ["ing", "ed", "er", "or"] {
        if let Some(rest) = word.strip_suffix(ending)
            && rest.len() >= 3
            && rest.bytes().any(|it| b"aeiouy".contains(&it))
        {
            short = single(rest);
            break;
        }
    }
    if let Some(rest) = short.strip_suffix("ion")
        && rest.len() >= 4
        && rest.ends_with(['t', 's'])
    {
        short = rest;
    }
    match short.strip_suffix('e') {
        Some(rest) if rest.len() >= 3 => rest,
        _ => short,
    }
}

fn plural(word: &str) -> &str {
    if word.ends_with("ss") || word.ends_with("us") || word.ends_with("is") {
        return word;
    }
    let Some(rest) = word.strip_suffix('s') else {
        return word;
    };
    // `boxes`, `matches`, `classes`: the e is of the ending. `ies` keeps its i, which `y` never had.
    match rest.strip_suffix('e') {
        Some(inner) if ["x", "ch", "sh", "ss", "zz"].iter().any(|it| inner.ends_with(it)) => inner,
        _ if rest.len() >= 3 => rest,
        _ => word,
    }
}

/// `stopp` is `stop`.
fn single(word: &str) -> &str {
    let mut ends = word.bytes().rev();
    match (ends.next(), ends.next()) {
        (Some(last), Some(before)) if last == before && !b"lsz".contains(&last) && word.len() > 3 => {
            word.get(..word.len() - 1).unwrap_or(word)
        }
        _ => word,
    }
}

/// FNV-1a.
fn hash(word: &str) -> u32 {
    word.bytes()
        .fold(0x811c_9dc5, |hash, it| (hash ^ u32::from(it)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(line: &str) -> String {
        let mut all = Vec::new();
        each(line, &mut |it| all.push(it.to_owned()));
        all.join(" ")
    }

    #[test]
    fn identifiers_are_taken_apart_and_kept() {
        for (line, expected) in [
            ("getUserName", "get user name getusername"),
            ("get_user_name()", "get user name getusername"),
            ("HTTPServer", "http server httpserver"),
            ("let x2 = utf8ToString(y);", "let x2 utf to string utf8tostring"),
            ("MAX_LEN", "max len maxlen"),
            ("__init__", "init"),
            ("E0382 i18n sha256 v1", "e0382 i18n sha sha256 v1"),
            ("a b c 12 345 8080 0755 123456 0x1F", "345 8080"),
            ("da39a3ee5e6b4b0d3255", "da ee da39a3ee5e6b4b0d3255"),
            ("Straße überall", "straße überall"),
            ("src/net/sse.rs", "src net sse rs"),
        ] {
            assert_eq!(words(line), expected, "{line}");
        }
    }

    #[test]
    fn bent_words_are_the_same_word() {
        for group in [
            &["parse", "parses", "parsed", "parsing", "parser", "parsers"][..],
            &[
                "connect",
                "connects",
                "connection",
                "connections",
                "connected",
                "connector",
            ],
            &["validate", "validates", "validation", "validated", "validating"],
            &["stop", "stops", "stopped", "stopping"],
            &["match", "matches", "matching", "matcher"],
            &["box", "boxes"],
            &["class", "classes"],
            &["write", "writes", "writing", "writer"],
            &["cancel", "cancels", "canceled"],
            &["file", "files"],
        ] {
            let stems: Vec<_> = group.iter().map(|it| stem(it)).collect();
            assert!(stems.windows(2).all(|it| it[0] == it[1]), "{group:?}: {stems:?}");
        }
        for (left, right) in [
            ("string", "strand"),
            ("thing", "the"),
            ("bus", "bu"),
            ("process", "proces"),
            ("red", "r"),
        ] {
            assert_ne!(stem(left), stem(right));
        }
    }

    #[test]
    fn a_question_is_what_it_is_about() {
        assert_eq!(
            asked("Where are the discounts being validated?"),
            asked("discount validation")
        );
        assert_eq!(asked("What is it?"), asked("what is it"));
        assert_eq!(asked("what is it").len(), 3);
        assert_eq!(asked("?"), []);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn any_line_has_words(line in "\\PC{0,80}") {
            let mut counter = Counter::default();
            counter.add(&line);
            let words = counter.take();
            prop_assert_eq!(words.counts.iter().map(|it| u32::from(*it)).sum::<u32>(), words.length);
            for hash in asked(&line) {
                prop_assert!(words.count(hash.hash) > 0);
            }
        }
    }
}
