//! Reasoning that goes back to its maker with the next request.

/// Maximum size in bytes: more than any model writes in an answer, and more than its window holds beside that.
const LIMIT_BYTES: usize = 8 << 20;

/// Text of reasoning. Beyond the limit all of it is dropped, because a part of it would be refused or misread.
#[derive(Debug, Default)]
pub struct Thought {
    text: String,
    is_too_long: bool,
}

impl Thought {
    pub fn push(&mut self, more: &str) {
        self.is_too_long |= self.text.len() + more.len() > LIMIT_BYTES;
        if self.is_too_long {
            self.text = String::new();
        } else {
            self.text.push_str(more);
        }
    }

    /// Ends the text and returns it. `None` if it was too long.
    pub fn take(&mut self) -> Option<String> {
        let Self { text, is_too_long } = std::mem::take(self);
        (!is_too_long).then_some(text)
    }
}

/// JSON values of reasoning, with the same limit.
#[derive(Debug, Default)]
pub struct Thoughts {
    values: Vec<serde_json::Value>,
    bytes: usize,
}

impl Thoughts {
    /// Adds a value whose text has `bytes` bytes.
    pub fn push(&mut self, value: &serde_json::Value, bytes: usize) {
        self.bytes += bytes;
        if self.bytes > LIMIT_BYTES {
            self.values = Vec::new();
        } else {
            self.values.push(value.clone());
        }
    }

    /// Ends the list and returns it. `None` if it was empty or too long.
    pub fn take(&mut self) -> Option<Vec<serde_json::Value>> {
        let values = std::mem::take(self).values;
        (!values.is_empty()).then_some(values)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_no_model_could_read_again_is_not_kept() {
        let mut thought = Thought::default();
        thought.push("a");
        thought.push("b");
        assert_eq!(thought.take().as_deref(), Some("ab"));
        let long = "x".repeat(LIMIT_BYTES);
        thought.push(&long);
        assert_eq!(thought.take().map(|it| it.len()), Some(LIMIT_BYTES));
        thought.push(&long);
        thought.push("y");
        thought.push("z");
        assert_eq!((thought.text.capacity(), thought.take()), (0, None));
        assert_eq!(thought.take().as_deref(), Some(""));

        let mut thoughts = Thoughts::default();
        assert_eq!(thoughts.take(), None);
        thoughts.push(&json!({ "text": "a" }), 10);
        assert_eq!(thoughts.take(), Some(vec![json!({ "text": "a" })]));
        for _ in 0..3 {
            thoughts.push(&json!({ "text": "a" }), LIMIT_BYTES / 2);
        }
        thoughts.push(&json!({ "text": "a" }), 10);
        assert_eq!(thoughts.take(), None);
    }
}
