//! JSON output without characters that a terminal could obey.

use std::fmt::Write as _;

use serde_json::Value;

use crate::text::{Sanitized, clean::sanitize};

/// Formats indented JSON and a newline. Characters that sanitizing would drop are escaped, so nothing is lost.
pub fn pretty(value: &Value) -> Sanitized {
    clean(serde_json::to_string_pretty(value).unwrap_or_default())
}

/// Formats JSON on one line, with the same escapes.
pub fn line(value: &Value) -> Sanitized {
    clean(value.to_string())
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
    let some = escaped(&text, |c| is_clean(c.encode_utf8(&mut [0; 4])));
    if is_clean(&some) {
        return Sanitized::from(some);
    }
    // Some characters are dropped only because of their neighbours.
    Sanitized::from(escaped(&text, |c| c.is_ascii() && c != '\u{7f}'))
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
            assert_eq!(pretty(&json!(text)).as_str(), says);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn nothing_is_lost_and_everything_is_clean(text in "\\PC*|[\u{0}-\u{20}\u{7f}-\u{a0}\u{200b}-\u{200f}\u{300}-\u{310}\u{fe0f}👩a]*") {
            let value = json!({ text.clone(): [text] });
            let printed = pretty(&value);
            prop_assert!(is_clean(&printed));
            prop_assert_eq!(serde_json::from_str::<Value>(&printed).ok(), Some(value));
        }
    }
}
