//! Lists of words as one text: shorter to write and to read than an array of strings.

/// Words with blanks between.
#[derive(Clone, Copy)]
pub struct WordList(pub &'static str);

impl WordList {
    /// The words, in their order.
    pub fn iter(self) -> impl Iterator<Item = &'static str> {
        self.0.split_ascii_whitespace()
    }

    /// Returns true if `word` is one of them.
    pub fn contains(self, word: &str) -> bool {
        self.iter().any(|it| it == word)
    }
}

/// Lines of a key, a colon and words.
pub struct WordTable(pub &'static str);

impl WordTable {
    /// Each key with its words.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, WordList)> {
        let rows = self.0.lines().filter_map(|it| it.split_once(": "));
        rows.map(|(key, words)| (key.trim_start(), WordList(words)))
    }
}
