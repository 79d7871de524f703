//! JSON output without characters that a terminal could obey.

use std::{fmt::Write as _, io};

use serde_json::Value;

use crate::{
    os::long_text::LongText,
    text::{
        Sanitized,
        clean::{Cleaner, sanitize},
    },
};

/// Bytes that a [`Cleaner`] may hold back: a joiner.
const JOINER_BYTES: usize = 4;

/// Formats JSON on one line, and a newline. Characters that sanitizing would drop are escaped, so nothing is lost.
pub fn line(value: &Value) -> Sanitized {
    clean(value.to_string())
}

/// Writes JSON text and a newline, with the same escapes. Text in a file is written in parts.
pub fn write(mut text: LongText, write: &mut dyn FnMut(&Sanitized) -> io::Result<()>) -> io::Result<()> {
    text.push_str("\n");
    if text.is_stored() {
        write_in_parts(|| text.parts(), write)
    } else {
        write(&harmless(text.into_string()))
    }
}

fn write_in_parts<'a, I: Iterator<Item = &'a str>>(
    parts: impl Fn() -> I,
    write: &mut dyn FnMut(&Sanitized) -> io::Result<()>,
) -> io::Result<()> {
    let stays: fn(char) -> bool = if are_clean(parts()) {
        |_| true
    } else if are_clean(parts().map(|it| escaped(it, is_clean_alone))) {
        is_clean_alone
    } else {
        is_plain
    };
    // Nothing is left to be dropped, but a part may begin with what depends on the one before.
    let mut cleaner = Cleaner::default();
    for part in parts() {
        write(&cleaner.push(&escaped(part, stays)))?;
    }
    Ok(())
}

/// Returns true if the parts of a text are together what sanitizing would leave of them.
fn are_clean(parts: impl Iterator<Item = impl AsRef<str>>) -> bool {
    let mut cleaner = Cleaner::default();
    let (mut clean, mut waiting) = (String::new(), String::new());
    for part in parts {
        let part = part.as_ref();
        waiting.push_str(part);
        clean.clear();
        cleaner.push_to(part, &mut clean);
        if !waiting.starts_with(&clean) {
            return false;
        }
        waiting.drain(..clean.len());
        if waiting.len() > JOINER_BYTES {
            return false;
        }
    }
    waiting.is_empty()
}

fn clean(mut text: String) -> Sanitized {
    text.push('\n');
    harmless(text)
}

/// Escapes JSON text, or lines of it: the meaning stays, and a terminal executes none of it.
pub fn harmless(text: String) -> Sanitized {
    if is_clean(&text) {
        return Sanitized::from(text);
    }
    let some = escaped(&text, is_clean_alone);
    if is_clean(&some) {
        return Sanitized::from(some);
    }
    Sanitized::from(escaped(&text, is_plain))
}

fn is_clean_alone(c: char) -> bool {
    is_clean(c.encode_utf8(&mut [0; 4]))
}

/// Some characters are dropped only because of their neighbours: these never are.
fn is_plain(c: char) -> bool {
    c.is_ascii() && c != '\u{7f}'
}

fn is_clean(text: &str) -> bool {
    sanitize(text) == text
}

/// Escapes all characters but those for which `stays` is true. The others occur in JSON strings only, where an escape
/// means the same.
fn escaped(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if stays(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped_and_the_rest_is_left_alone() {
        for (text, says) in [
            ("grüße 👩‍👩‍👧 漢字", "\"grüße 👩‍👩‍👧 漢字\"\n"),
            ("\u{1b}[2J", "\"\\u001b[2J\"\n"),
            ("\u{9b}2J", "\"\\u009b2J\"\n"),
            ("a\u{7f}b", "\"a\\u007fb\"\n"),
            ("\u{202e}abc", "\"\\u202eabc\"\n"),
            ("\u{e0041}", "\"\\udb40\\udc41\"\n"),
        ] {
            assert_eq!(line(&json!(text)).as_str(), says);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn nothing_is_lost_and_everything_is_clean(text in "\\PC*|[\u{0}-\u{20}\u{7f}-\u{a0}\u{200b}-\u{200f}\u{300}-\u{310}\u{fe0f}👩a]*") {
            let value = json!({ text.clone(): [text] });
            let printed = line(&value);
            prop_assert!(is_clean(&printed));
            prop_assert_eq!(serde_json::from_str::<Value>(&printed).ok(), Some(value));
        }

        #[test]
        fn parts_of_a_text_are_printed_as_the_whole(
            parts in prop::collection::vec("[a\u{9b}\u{9d}\u{7f}\u{200b}-\u{200f}\u{300}-\u{310}\u{fe0f}👩漢]{0,3}", 0..6)
        ) {
            let whole = parts.concat();
            let mut printed = String::new();
            let mut write = |it: &Sanitized| {
                printed.push_str(it);
                Ok(())
            };
            write_in_parts(|| parts.iter().map(String::as_str), &mut write).expect("it is a string");
            prop_assert_eq!(printed, harmless(whole).into_string());
        }
    }
}
