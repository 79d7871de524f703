//! The program's own text, as tokens: for tests about what may be named where.
//!
//! Comments are no tokens, and the insides of strings only for who asks for them. This is no parser of Rust; what it reads is what
//! the tests ask for.

use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// An identifier or a keyword, raw ones without their `r#`.
    Word(String),
    Sign(char),
    /// What stands between the quotes, as it is written; see [`shipped_with_texts`].
    Text(String),
}

impl Token {
    pub fn is(&self, text: &str) -> bool {
        match self {
            Self::Word(word) => word == text,
            Self::Sign(sign) => text.chars().eq([*sign]),
            Self::Text(_) => false,
        }
    }

    pub fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            Self::Sign(_) | Self::Text(_) => None,
        }
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Word(_) | Self::Sign(_) => None,
        }
    }
}

/// A file of the library: where it stands among the modules and what it says.
#[derive(Clone, Debug)]
pub struct Source {
    /// Below `src`.
    pub path: String,
    /// `["tui", "terminal", "tty"]` for `tui/terminal/tty.rs`; empty for the crate root.
    pub module: Vec<String>,
    pub tokens: Vec<Token>,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        Self::of(path, tokens(text))
    }

    pub fn with_texts(path: &str, text: &str) -> Self {
        Self::of(path, scan(text))
    }

    fn of(path: &str, tokens: Vec<Token>) -> Self {
        let stem = path.strip_suffix(".rs").unwrap_or(path);
        let stem = stem.strip_suffix("/mod").unwrap_or(stem);
        let module = match stem {
            "lib" | "main" => Vec::new(),
            stem => stem.split('/').map(str::to_owned).collect(),
        };
        Self {
            path: path.to_owned(),
            module,
            tokens,
        }
    }

    /// The module right below the crate root; empty for the root.
    pub fn top(&self) -> &str {
        self.module.first().map_or("", String::as_str)
    }
}

/// Every file of the library and the binary.
pub fn library() -> Vec<Source> {
    read(Source::new)
}

fn read(source: fn(&str, &str) -> Source) -> Vec<Source> {
    let folder = root().join("src");
    let mut sources: Vec<_> = files(&folder)
        .into_iter()
        .filter(|it| it.extension().is_some_and(|it| it == "rs"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a source file");
            let path = path.strip_prefix(&folder).expect("below it");
            source(&path.to_string_lossy(), &text)
        })
        .collect();
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

/// What the library is made of when it is not under test.
pub fn shipped() -> Vec<Source> {
    untested(library())
}

/// The same with the strings that are in it.
pub fn shipped_with_texts() -> Vec<Source> {
    untested(read(Source::with_texts))
}

/// What a file is made of when it is not under test.
pub fn untested(mut sources: Vec<Source>) -> Vec<Source> {
    let mut only_tests = Vec::new();
    for source in &mut sources {
        let (kept, modules) = without_tests(&source.tokens);
        source.tokens = kept;
        only_tests.extend(modules.into_iter().map(|it| [source.module.as_slice(), &[it]].concat()));
    }
    sources.retain(|it| !only_tests.iter().any(|only| it.module.starts_with(only)));
    sources
}

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below the folder; what git and the compiler put there is left out.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            if name != "target" && name != ".git" {
                found.extend(files(&path));
            }
        } else if name != ".git" {
            found.push(path);
        }
    }
    found
}

/// The end of the group that `tokens[at]` opens, behind its last bracket.
pub fn group_end(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0_usize;
    for (end, token) in tokens.iter().enumerate().skip(at) {
        match token {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')' | ']' | '}') => depth = depth.saturating_sub(1),
            Token::Word(_) | Token::Sign(_) | Token::Text(_) => {}
        }
        if depth == 0 {
            return end + 1;
        }
    }
    tokens.len()
}

/// Whether the signs of `text`, one by one, stand at the beginning.
pub fn starts(tokens: &[Token], text: &str) -> bool {
    let mut tokens = tokens.iter();
    text.chars().all(|it| tokens.next() == Some(&Token::Sign(it)))
}

/// Leaves out modules that are compiled for tests only; names those that are files of their own.
fn without_tests(tokens: &[Token]) -> (Vec<Token>, Vec<String>) {
    let mark = self::tokens("#[cfg(test)]");
    let (mut kept, mut modules) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        if !tokens[at..].starts_with(&mark) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        // Other attributes and the visibility may stand between it and what it is about.
        while at < tokens.len() && tokens[at].is("#") {
            at = group_end(tokens, at + 1);
        }
        let end = (at..tokens.len())
            .find(|&it| matches!(tokens[it], Token::Sign('{' | ';')))
            .unwrap_or(tokens.len() - 1);
        let name = (at..end).find(|&it| tokens[it].is("mod")).map(|it| &tokens[it + 1]);
        match (&tokens[end], name.and_then(Token::word)) {
            (Token::Sign(';'), Some(name)) => {
                modules.push(name.to_owned());
                at = end + 1;
            }
            (Token::Sign('{'), _) => at = group_end(tokens, end),
            _ => at = end + 1,
        }
    }
    (kept, modules)
}

pub fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = scan(text);
    tokens.retain(|it| it.text().is_none());
    tokens
}

/// The tokens, and the strings among them.
fn scan(text: &str) -> Vec<Token> {
    let letters: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        let next = letters.get(at + 1).copied();
        at = match letter {
            '/' if next == Some('/') => line_end(&letters, at),
            '/' if next == Some('*') => comment_end(&letters, at),
            '"' => {
                let end = string_end(&letters, at + 1);
                found.push(inside(&letters, at + 1, end - 1));
                end
            }
            '\'' => quote_end(&letters, at),
            it if it.is_alphabetic() || it == '_' => {
                let end = word_end(&letters, at);
                let word: String = letters[at..end].iter().collect();
                match (word.as_str(), letters.get(end)) {
                    ("r" | "br" | "cr", Some('"' | '#')) => match raw_end(&letters, end) {
                        Some(past) => {
                            let hashes = letters[end..].iter().take_while(|it| **it == '#').count();
                            found.push(inside(&letters, end + hashes + 1, past - hashes - 1));
                            past
                        }
                        // A raw identifier.
                        None => end + 1,
                    },
                    ("b" | "c", Some('"')) => {
                        let past = string_end(&letters, end + 1);
                        found.push(inside(&letters, end + 1, past - 1));
                        past
                    }
                    ("b", Some('\'')) => quote_end(&letters, end),
                    _ => {
                        found.push(Token::Word(word));
                        end
                    }
                }
            }
            it if it.is_ascii_digit() => word_end(&letters, at),
            it => {
                if !it.is_whitespace() {
                    found.push(Token::Sign(it));
                }
                at + 1
            }
        };
    }
    found
}

fn inside(letters: &[char], from: usize, to: usize) -> Token {
    Token::Text(letters[from.min(to)..to.min(letters.len())].iter().collect())
}

fn word_end(letters: &[char], at: usize) -> usize {
    let length = letters[at..]
        .iter()
        .take_while(|it| it.is_alphanumeric() || **it == '_')
        .count();
    at + length
}

fn line_end(letters: &[char], at: usize) -> usize {
    at + letters[at..].iter().take_while(|it| **it != '\n').count()
}

fn comment_end(letters: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    while at < letters.len() {
        match letters[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// Behind the quote that ends the string whose first letter is at `at`.
fn string_end(letters: &[char], mut at: usize) -> usize {
    while let Some(letter) = letters.get(at) {
        match letter {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// Behind a raw string whose hashes begin at `at`; `None` when it is none.
fn raw_end(letters: &[char], at: usize) -> Option<usize> {
    let hashes = letters[at..].iter().take_while(|it| **it == '#').count();
    if letters.get(at + hashes) != Some(&'"') {
        return None;
    }
    let close: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let body = at + hashes + 1;
    let length = letters[body..].windows(close.len()).position(|it| it == close)?;
    Some(body + length + close.len())
}

/// Behind a character or a lifetime.
fn quote_end(letters: &[char], at: usize) -> usize {
    match (letters.get(at + 1), letters.get(at + 2)) {
        (Some('\\'), _) => {
            let length = letters[at + 3..].iter().take_while(|it| **it != '\'').count();
            at + 3 + length + 1
        }
        (Some(_), Some('\'')) => at + 3,
        _ => at + 1,
    }
}

#[test]
fn comments_and_strings_are_no_tokens() {
    let text = r##"
        // crate::a
        /* crate::b /* nested */ crate::c */
        let x = "crate::d \" crate::e"; let y = r#"crate::f " "#; let z = 'x'; let q = '\''; let l: &'static str = b"crate::g";
        r#type + crate::real
    "##;
    let words: Vec<_> = tokens(text)
        .iter()
        .filter_map(|it| it.word().map(str::to_owned))
        .collect();
    assert_eq!(
        words.join(" "),
        "let x let y let z let q let l static str type crate real"
    );
    let source = Source::with_texts("a.rs", text);
    let texts: Vec<_> = source.tokens.iter().filter_map(Token::text).collect();
    assert_eq!(texts, ["crate::d \\\" crate::e", "crate::f \" ", "crate::g"]);
}

#[test]
fn what_is_only_for_tests_is_left_out() {
    let text = "mod a; #[cfg(test)] mod tests; fn b() { c() } #[cfg(test)] #[allow(x)] mod more { fn d() {} } #[cfg(test)] fn e() {} f";
    let (kept, modules) = without_tests(&tokens(text));
    assert_eq!(kept, tokens("mod a; fn b() { c() } f"));
    assert_eq!(modules, ["tests"]);
}
