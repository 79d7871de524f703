//! Keys that must not stand where they can be read later: in a log, an error, a stored conversation, an answer of a tool.
//!
//! Two kinds are known: the keys that this program holds, by their very letters, and what keys of the usual services look
//! like. The first are taken out everywhere; the second only where text is put down for people, because a file of a
//! project may hold an example of one, and an edit must find what is really there.

use std::{
    borrow::Cow,
    sync::{LazyLock, Mutex, PoisonError},
};

use super::WordList;
use regex::Regex;

/// Replacement for a key. It needs no escape in JSON.
pub const REDACTED: &str = "[redacted]";

/// Length of a key; a shorter one, or one without a digit, is a word that somebody entered instead of a key.
const SHORTEST: usize = 12;
const SHORTEST_OF_LETTERS: usize = 24;

/// Secrets of this program, plain and as escaped in JSON.
static HELD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Pattern of keys. Nothing in it matches a quotation mark, so that JSON stays JSON.
static LIKE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x-u)
        \b sk-[A-Za-z0-9_-]{20,}
        | \b gh[oprsu]_[A-Za-z0-9]{36,}
        | \b github_pat_[A-Za-z0-9_]{22,}
        | \b glpat-[A-Za-z0-9_-]{20,}
        | \b xox[abeoprs]-[A-Za-z0-9-]{10,}
        | \b A(?:KIA|SIA)[0-9A-Z]{16}\b
        | \b AIza[0-9A-Za-z_-]{35}
        | \b hf_[A-Za-z0-9]{30,}
        | \b gsk_[A-Za-z0-9]{30,}
        | \b eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}
        | -----BEGIN\ [A-Z\ ]{0,20}PRIVATE\ KEY-----(?:\\[nrt]|[A-Za-z0-9+/=\ \t\r\n]){64,}(?:-----END\ [A-Z\ ]{0,20}PRIVATE\ KEY-----)?
        ",
    )
    .expect("the pattern is ours")
});

/// Parts of which a text with keys contains at least one; others need no pattern.
const SIGNS: WordList = WordList("sk- ghp_ gho_ ghr_ ghs_ ghu_ github_pat_ glpat- xox AKIA ASIA AIza hf_ gsk_ eyJ");

/// Registers a secret, which [`held`] then removes.
pub fn hold(secret: &str) {
    let is_key = secret.len() >= SHORTEST && secret.bytes().any(|it| it.is_ascii_digit());
    if !is_key && secret.len() < SHORTEST_OF_LETTERS {
        return;
    }
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let quoted = serde_json::Value::from(secret).to_string();
    let quoted = quoted.trim_matches('"');
    for form in [secret, quoted] {
        if !held.iter().any(|it| it == form) {
            held.push(form.to_owned());
        }
    }
    // One that begins with another goes first, so that nothing of it is left.
    held.sort_by_key(|it| std::cmp::Reverse(it.len()));
}

/// Returns the text without the registered secrets.
pub fn held(text: &str) -> Cow<'_, str> {
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let mut text = Cow::Borrowed(text);
    for secret in held.iter() {
        if text.contains(secret.as_str()) {
            text = Cow::Owned(text.replace(secret.as_str(), REDACTED));
        }
    }
    text
}

/// `text` without those, and without whatever looks like a key.
pub fn redact(text: &str) -> Cow<'_, str> {
    let text = held(text);
    let may_hold = text.contains("PRIVATE KEY") || SIGNS.iter().any(|it| text.contains(it));
    if !may_hold {
        return text;
    }
    match text {
        Cow::Borrowed(text) => LIKE.replace_all(text, REDACTED),
        Cow::Owned(text) => Cow::Owned(LIKE.replace_all(&text, REDACTED).into_owned()),
    }
}

/// Maximum size of a key in bytes. Of longer text that looks like a key, a part may stay.
const MAX_KEY_BYTES: usize = 64 << 10;

/// Text that is redacted at a time, in bytes.
const WINDOW_BYTES: usize = 1 << 20;

/// Redacts a text that comes in pieces of any size. Holds back as much as a key may span.
#[derive(Debug, Default)]
pub struct Redactor {
    held_back: Vec<u8>,
}

impl Redactor {
    /// Adds bytes and passes on what can be redacted now.
    pub fn push<E>(&mut self, bytes: &[u8], out: impl FnOnce(&[u8]) -> Result<(), E>) -> Result<(), E> {
        self.held_back.extend_from_slice(bytes);
        if self.held_back.len() < WINDOW_BYTES {
            return Ok(());
        }
        let end = split_offset(&self.held_back);
        let rest = self.held_back.split_off(end);
        let window = std::mem::replace(&mut self.held_back, rest);
        out(&redact_bytes(window))
    }

    /// Passes the rest on.
    pub fn finish<E>(self, out: impl FnOnce(&[u8]) -> Result<(), E>) -> Result<(), E> {
        out(&redact_bytes(self.held_back))
    }
}

fn redact_bytes(bytes: Vec<u8>) -> Vec<u8> {
    match std::str::from_utf8(&bytes).map(redact) {
        Ok(Cow::Owned(text)) => text.into_bytes(),
        // Nothing to take out, or no text.
        Ok(Cow::Borrowed(_)) | Err(_) => bytes,
    }
}

/// Returns an offset at which the text can be split without splitting a key of up to [`MAX_KEY_BYTES`].
fn split_offset(text: &[u8]) -> usize {
    let most = text.len().saturating_sub(MAX_KEY_BYTES);
    let is_of_key = |it: u8| it.is_ascii_alphanumeric() || b"_-.+/=\\ \t\r\n".contains(&it);
    let before = text.get(..most).unwrap_or_default();
    // No pattern matches such a byte, and it is a whole character.
    let divider = before.iter().rposition(|it| it.is_ascii() && !is_of_key(*it));
    let mut end = divider.map_or(most, |at| at + 1);
    while end > 0 && text.get(end).is_some_and(|it| it & 0xc0 == 0x80) {
        end -= 1;
    }
    // Keys that are known may hold any byte.
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    for secret in held.iter() {
        let from = end.saturating_sub(secret.len() - 1);
        let around = text
            .get(from..(end + secret.len() - 1).min(text.len()))
            .unwrap_or_default();
        if let Some(at) = memchr::memmem::find(around, secret.as_bytes()) {
            end = end.min(from + at);
        }
    }
    if end == 0 { text.len() } else { end }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_looks_like_a_key_goes_and_what_does_not_stays() {
        let long = "Ab1".repeat(20);
        let pem = format!("-----BEGIN RSA PRIVATE KEY-----\n{long}\n{long}\n-----END RSA PRIVATE KEY-----");
        for (text, expected) in [
            (format!("key sk-proj-{long}, and"), "key [redacted], and"),
            (format!("ghp_{long}"), "[redacted]"),
            ("AKIAIOSFODNN7EXAMPLE.".to_owned(), "[redacted]."),
            (
                "Bearer eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSM".to_owned(),
                "Bearer [redacted]",
            ),
            (pem.clone(), "[redacted]"),
            (serde_json::json!({ "a": pem }).to_string(), r#"{"a":"[redacted]"}"#),
            ("sk-test and sk-learn".to_owned(), "sk-test and sk-learn"),
            (
                "task-force-of-the-people-there".to_owned(),
                "task-force-of-the-people-there",
            ),
            (
                "\"-----BEGIN PRIVATE KEY-----\" begins a key".to_owned(),
                "\"-----BEGIN PRIVATE KEY-----\" begins a key",
            ),
            ("eyJ.eyJ.x".to_owned(), "eyJ.eyJ.x"),
        ] {
            assert_eq!(redact(&text), expected, "{text}");
        }
    }

    #[test]
    fn a_key_that_is_held_goes_in_any_form_and_a_word_is_none() {
        hold("held-\"quoted\"-0123");
        hold("held-\"quoted\"-0123-longer");
        hold("not-needed");
        hold("lm-studio1");
        assert_eq!(held("x held-\"quoted\"-0123-longer y"), "x [redacted] y");
        let json = serde_json::json!({ "a": "held-\"quoted\"-0123" }).to_string();
        assert_eq!(held(&json), r#"{"a":"[redacted]"}"#);
        assert_eq!(held("not-needed lm-studio1"), "not-needed lm-studio1");
    }

    fn redacted_in_pieces(text: &str, piece_bytes: usize) -> String {
        let (mut redactor, mut out) = (Redactor::default(), Vec::new());
        let mut add = |it: &[u8]| {
            out.extend_from_slice(it);
            Ok::<_, ()>(())
        };
        for piece in text.as_bytes().chunks(piece_bytes) {
            redactor.push(piece, &mut add).expect("it is taken");
        }
        redactor.finish(&mut add).expect("it is taken");
        String::from_utf8(out).expect("it stays text")
    }

    #[test]
    fn a_long_text_is_redacted_as_a_whole_wherever_its_pieces_end() {
        hold("held-by, \"a window\"-0123");
        let key = format!("sk-proj-{}", "Ab1".repeat(20));
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\n{}-----END PRIVATE KEY-----",
            "Ab1/+=\n".repeat(400)
        );
        // Around the places where a window may end.
        for before in [WINDOW_BYTES - MAX_KEY_BYTES, WINDOW_BYTES] {
            for shift in [0, 7, 30, 200, 2000] {
                for secret in [&key, &pem, "held-by, \"a window\"-0123"] {
                    let text = format!(
                        "{}{secret}, {}",
                        "é, x ".repeat((before - shift) / 6),
                        "y".repeat(200_000)
                    );
                    assert_eq!(redacted_in_pieces(&text, 4099), redact(&text), "{before} {shift}");
                    assert!(redact(&text).contains(REDACTED));
                }
            }
        }
        let blob = "Ab1".repeat(WINDOW_BYTES);
        assert_eq!(redacted_in_pieces(&blob, 65_537), blob);
    }

    proptest! {
        #[test]
        fn what_was_json_is_json(text in "(sk-[a-z0-9\"\\\\]{18,24}|-----BEGIN PRIVATE KEY-----[a-z\"\\\\\n]{60,90}|.{0,9}){0,4}") {
            let json = serde_json::Value::from(text).to_string();
            let back = serde_json::from_str::<serde_json::Value>(&redact(&json));
            prop_assert!(back.is_ok(), "{}", json);
        }
    }
}
