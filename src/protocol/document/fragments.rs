//! Arguments that arrive as pieces of their JSON text.

use serde_json::Value;

use super::normal::normalise_arguments;

/// Gathers pieces until the outermost brace closes. Every byte is looked at once, whatever the pieces are.
#[derive(Clone, Debug, Default)]
pub struct Fragments {
    text: String,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The braces closed over something that is no JSON: nothing that follows can mend it.
    broken: bool,
}

impl Fragments {
    /// Adds a piece. Returns the arguments once they are a complete object; text after that starts the next one.
    pub fn push(&mut self, piece: &str) -> Option<Value> {
        let mut whole = None;
        for c in piece.chars() {
            if self.text.is_empty() && c.is_whitespace() {
                continue;
            }
            self.text.push(c);
            if self.closes(c) {
                match serde_json::from_str::<Value>(&self.text) {
                    Ok(object @ Value::Object(_)) => {
                        self.clear();
                        whole = Some(normalise_arguments(object));
                    }
                    Ok(_) | Err(_) => self.broken = true,
                }
            }
        }
        whole
    }

    /// Ends the pieces. Returns text that never became an object as it is. `None` if nothing is left.
    pub fn take(&mut self) -> Option<Value> {
        let text = std::mem::take(&mut self.text);
        self.clear();
        (!text.trim().is_empty()).then(|| normalise_arguments(Value::String(text)))
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns true if `c` closes the outermost brace.
    fn closes(&mut self, c: char) -> bool {
        if self.broken || !self.text.starts_with('{') {
            return false;
        }
        if self.escaped {
            self.escaped = false;
        } else if self.in_string {
            match c {
                '\\' => self.escaped = true,
                '"' => self.in_string = false,
                _ => {}
            }
        } else {
            match c {
                '"' => self.in_string = true,
                '{' | '[' => self.depth += 1,
                '}' | ']' => {
                    self.depth = self.depth.saturating_sub(1);
                    return self.depth == 0;
                }
                _ => {}
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fed(pieces: &[&str]) -> Option<Value> {
        let mut fragments = Fragments::default();
        let mut last = None;
        for piece in pieces {
            last = fragments.push(piece).or(last);
        }
        fragments.take().or(last)
    }

    #[test]
    fn pieces_make_a_whole() {
        let cases = [
            ("in one piece", &["{\"a\":1}"][..], json!({"a": 1})),
            (
                "cut inside a string that holds braces",
                &["{\"a\":\"}", "{\\\"", "\"}"],
                json!({"a": "}{\""}),
            ),
            ("with space around", &[" \n", "{}", "\n "], json!({})),
            ("sent whole twice", &["{\"a\":1}", "{\"a\":2}"], json!({"a": 2})),
            ("as text in a JSON string", &["\"{\\\"a\\\":1}\""], json!({"a": 1})),
            ("never whole", &["{\"a\":", "1"], json!({"_raw": "{\"a\":1"})),
            ("closed over nonsense", &["{a}", "x"], json!({"_raw": "{a}x"})),
            ("no object", &["ls -l"], json!({"_raw": "ls -l"})),
        ];
        for (name, pieces, wanted) in cases {
            assert_eq!(fed(pieces), Some(wanted), "{name}");
        }
    }

    #[test]
    fn a_flood_of_closing_braces_in_a_string_costs_no_more_than_its_length() {
        let mut fragments = Fragments::default();
        fragments.push("{\"a\":\"");
        for _ in 0..200_000 {
            assert_eq!(fragments.push("}"), None);
        }
        let whole = fragments.push("\"}").expect("the braces are closed");
        assert_eq!(whole["a"].as_str().map(str::len), Some(200_000));
    }
}
