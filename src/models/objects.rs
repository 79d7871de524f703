//! JSON objects out of a body that grows: one after another, on lines of their own, or in a list.
//!
//! Ollama writes an object on each line, Gemini without `alt=sse` one list whose end comes with the answer's. What
//! stands between objects is skipped; where it is more than commas, brackets and white space, that is said.

use serde_json::{Map, Value};

/// The longest object that is read.
pub const OBJECT_LIMIT_BYTES: usize = 16 << 20;

/// Maximum number of bytes between two objects.
pub const SILENCE_LIMIT_BYTES: usize = 10_000_000;

/// As much of what is no object as is worth to be shown.
const JUNK_LIMIT_BYTES: usize = 600;

/// A part of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum ScannedPart {
    Object(Map<String, Value>),
    /// Something else, shortened; once for all that stands in one place.
    Junk(String),
    /// An object longer than [`OBJECT_LIMIT_BYTES`]. Nothing comes after it.
    TooLong,
    /// More than [`SILENCE_LIMIT_BYTES`] without an object. Nothing comes after it.
    NoObject,
}

/// The state between two chunks.
#[derive(Debug, Default)]
pub struct Objects {
    /// The object that has begun, or what is none.
    held: Vec<u8>,
    /// Number of open braces and brackets of the object; 0 between objects.
    depth: u32,
    is_text: bool,
    is_escaped: bool,
    has_failed: bool,
    /// Bytes since the last object.
    silence_bytes: usize,
}

impl Objects {
    /// Reads `bytes`; gives what they complete, in order.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<ScannedPart> {
        let mut found = Vec::new();
        for &byte in bytes {
            if self.has_failed {
                break;
            }
            self.silence_bytes += 1;
            if self.depth == 0 && self.silence_bytes > SILENCE_LIMIT_BYTES {
                self.has_failed = true;
                found.push(ScannedPart::NoObject);
            } else if self.depth == 0 {
                self.between(byte, &mut found);
            } else {
                self.inside(byte, &mut found);
            }
        }
        found
    }

    /// The body ended. An object without its end is junk.
    pub fn finish(&mut self) -> Option<ScannedPart> {
        self.depth = 0;
        self.junk()
    }

    fn between(&mut self, byte: u8, found: &mut Vec<ScannedPart>) {
        match byte {
            b'{' => {
                found.extend(self.junk());
                self.held.push(byte);
                self.depth = 1;
            }
            b'\n' => found.extend(self.junk()),
            _ if self.held.len() < JUNK_LIMIT_BYTES => self.held.push(byte),
            _ => {}
        }
    }

    fn inside(&mut self, byte: u8, found: &mut Vec<ScannedPart>) {
        self.held.push(byte);
        if self.is_escaped {
            self.is_escaped = false;
        } else if self.is_text {
            match byte {
                b'\\' => self.is_escaped = true,
                b'"' => self.is_text = false,
                // No string goes over the end of a line: the object was cut, and the next line is another one.
                b'\n' => {
                    self.depth = 0;
                    self.is_text = false;
                    found.extend(self.junk());
                }
                _ => {}
            }
        } else {
            match byte {
                b'"' => self.is_text = true,
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' => self.depth -= 1,
                _ => {}
            }
            if self.depth == 0 {
                match serde_json::from_slice(&self.held) {
                    Ok(object) => {
                        self.held.clear();
                        self.silence_bytes = 0;
                        found.push(ScannedPart::Object(object));
                    }
                    Err(_) => found.extend(self.junk()),
                }
            }
        }
        if self.held.len() > OBJECT_LIMIT_BYTES {
            self.held = Vec::new();
            self.has_failed = true;
            found.push(ScannedPart::TooLong);
        }
    }

    /// Returns the held text as junk. `None` if it is blank.
    fn junk(&mut self) -> Option<ScannedPart> {
        let shown = self.held.get(..JUNK_LIMIT_BYTES).unwrap_or(&self.held);
        let text = String::from_utf8_lossy(shown);
        let text = text.trim_matches(|it: char| it.is_whitespace() || "[],\u{feff}".contains(it));
        let junk = (!text.is_empty()).then(|| ScannedPart::Junk(text.to_owned()));
        self.held.clear();
        junk
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<ScannedPart> {
        let mut objects = Objects::default();
        let mut found: Vec<ScannedPart> = chunks.into_iter().flat_map(|it| objects.push(it)).collect();
        found.extend(objects.finish());
        found
    }

    fn object(value: Value) -> ScannedPart {
        match value {
            Value::Object(it) => ScannedPart::Object(it),
            other => panic!("{other} is no object"),
        }
    }

    #[test]
    fn a_body_without_an_object_ends_and_one_with_objects_does_not() {
        for with_objects in [true, false] {
            let mut objects = Objects::default();
            let mut found = Vec::new();
            for _ in 0..4 {
                found.extend(objects.push(&vec![b' '; SILENCE_LIMIT_BYTES / 2 - 10]));
                if with_objects {
                    found.extend(objects.push(b"{}"));
                }
            }
            assert_eq!(found.contains(&ScannedPart::NoObject), !with_objects);
        }
    }

    #[test]
    fn objects_are_found_wherever_the_body_is_cut() {
        let one = object(json!({ "a": 1 }));
        let two = object(json!({ "b": "}{\"\\ \n", "c": [{ "d": {} }] }));
        let text = r#"{"b":"}{\"\\ \n","c":[{"d":{}}]}"#;
        let junk = |it: &str| ScannedPart::Junk(it.to_owned());
        for (name, body, want) in [
            ("nothing", String::new(), vec![]),
            ("white space", " \r\n\n ".to_owned(), vec![]),
            (
                "lines",
                format!("{{\"a\":1}}\n{text}\n"),
                vec![one.clone(), two.clone()],
            ),
            (
                "no newline at the end",
                format!("{{\"a\":1}}\r\n{text}"),
                vec![one.clone(), two.clone()],
            ),
            (
                "side by side",
                format!("{{\"a\":1}}{text}"),
                vec![one.clone(), two.clone()],
            ),
            (
                "a list",
                format!("[{{\"a\":1}}\n,\r\n{text}]\n"),
                vec![one.clone(), two.clone()],
            ),
            ("over several lines", "{\n  \"a\": 1\n}\n".to_owned(), vec![one.clone()]),
            ("a byte order mark", format!("\u{feff}{text}"), vec![two.clone()]),
            ("an empty list", "[]".to_owned(), vec![]),
            ("a list that was cut", format!("[{text},"), vec![two.clone()]),
            (
                "an object that was cut",
                format!("{text}\n{{\"a\":"),
                vec![two.clone(), junk("{\"a\":")],
            ),
            (
                "a line cut in a string",
                format!("{{\"a\":\"x\n{text}"),
                vec![junk("{\"a\":\"x"), two],
            ),
            ("no JSON", "Bad Gateway\n".to_owned(), vec![junk("Bad Gateway")]),
            (
                "events",
                "data: {\"a\":1}\n\ndata: [DONE]\n".to_owned(),
                vec![junk("data:"), one.clone(), junk("data: [DONE")],
            ),
            (
                "braces that hold no JSON",
                "{a}\n{\"a\":1}".to_owned(),
                vec![junk("{a}"), one],
            ),
        ] {
            let bytes = body.as_bytes();
            assert_eq!(read([bytes]), want, "{name}");
            for at in 0..=bytes.len() {
                let (head, tail) = bytes.split_at(at);
                assert_eq!(read([head, tail]), want, "{name}, cut at {at}");
            }
            assert_eq!(read(bytes.chunks(1)), want, "{name}, byte by byte");
        }
    }

    #[test]
    fn an_object_without_end_meets_a_limit() {
        let mut objects = Objects::default();
        assert_eq!(objects.push(b"{\"a\":\""), []);
        let chunk = vec![b'x'; 1 << 20];
        let found: Vec<ScannedPart> = (0..20).flat_map(|_| objects.push(&chunk)).collect();
        assert_eq!(found, [ScannedPart::TooLong], "and it is said once");
        assert_eq!(objects.finish(), None);
        let mut objects = Objects::default();
        for _ in 0..8 {
            assert_eq!(objects.push(&chunk), []);
        }
        let Some(ScannedPart::Junk(junk)) = objects.finish() else {
            panic!("junk")
        };
        assert_eq!(junk.len(), JUNK_LIMIT_BYTES);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(prop::sample::select(b"{}[]\",:\\a1 \n\xff".to_vec()), 0..120)) {
            let whole = read([bytes.as_slice()]);
            prop_assert_eq!(read(bytes.chunks(1)), whole);
        }
    }
}
