//! JSON whose long texts stay where they are: in memory once, or in a file.

use std::io::Write as _;

use serde::{
    Serialize, Serializer,
    ser::{SerializeMap as _, SerializeSeq as _},
};
use serde_json::Value;

use crate::os::long_text::LongText;

/// Bytes that are gathered for one write to a file.
const GATHERED_BYTES: usize = 64 << 10;

/// A JSON value, and long texts that stand for some of its strings.
#[derive(Clone, Debug, Default)]
pub struct LongJson {
    value: Value,
    /// Texts by JSON pointer. The names in it need no escapes.
    texts: Vec<(String, LongText)>,
}

impl From<Value> for LongJson {
    fn from(value: Value) -> Self {
        Self {
            value,
            texts: Vec::new(),
        }
    }
}

impl LongJson {
    /// Puts `text` in the place of the value at `pointer`, such as `/documents/0/content`. Without a value there it has no effect.
    pub fn with(mut self, pointer: &str, text: LongText) -> Self {
        if text.is_stored() {
            self.texts.push((pointer.to_owned(), text));
        } else if let Some(value) = self.value.pointer_mut(pointer) {
            *value = text.into_string().into();
        }
        self
    }

    /// Changes the value around the texts, which is then at `pointer`.
    pub fn map(self, pointer: &str, change: impl FnOnce(Value) -> Value) -> Self {
        let texts = self.texts.into_iter();
        Self {
            value: change(self.value),
            texts: texts.map(|(below, text)| (format!("{pointer}{below}"), text)).collect(),
        }
    }

    /// Formats it on one line, in a file if it is long.
    pub fn to_text(&self) -> LongText {
        if self.texts.is_empty() {
            return self.value.to_string().into();
        }
        text_of(|out| serde_json::to_writer(out, self))
    }

    /// Formats it with indents, in a file if it is long.
    pub fn to_pretty_text(&self) -> LongText {
        text_of(|out| serde_json::to_writer_pretty(out, self))
    }
}

/// Formats a value as JSON on one line, in a file if it is long.
pub fn to_long_text(value: &impl Serialize) -> LongText {
    text_of(|out| serde_json::to_writer(out, value))
}

type Gathered = std::io::BufWriter<LongText>;

fn text_of(write: impl FnOnce(&mut Gathered) -> serde_json::Result<()>) -> LongText {
    let mut out = Gathered::with_capacity(GATHERED_BYTES, LongText::new());
    let written = write(&mut out).map_err(std::io::Error::from).and_then(|()| out.flush());
    debug_assert!(
        written.is_ok(),
        "maps with text keys and plain values become JSON: {written:?}"
    );
    out.into_parts().0
}

impl Serialize for LongJson {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let texts = self.texts.iter().map(|(pointer, text)| (pointer.as_str(), text));
        Node {
            value: &self.value,
            texts: texts.collect(),
        }
        .serialize(to)
    }
}

/// A value, and the texts in it by pointers that begin here.
struct Node<'a> {
    value: &'a Value,
    texts: Vec<(&'a str, &'a LongText)>,
}

impl<'a> Node<'a> {
    /// Returns the value under a name or an index.
    fn child(&self, name: &str, value: &'a Value) -> Self {
        let below = self.texts.iter().filter_map(|(pointer, text)| {
            let rest = pointer.strip_prefix('/')?.strip_prefix(name)?;
            (rest.is_empty() || rest.starts_with('/')).then_some((rest, *text))
        });
        Self {
            value,
            texts: below.collect(),
        }
    }
}

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if let Some((_, text)) = self.texts.iter().find(|it| it.0.is_empty()) {
            return text.serialize(to);
        }
        match self.value {
            value if self.texts.is_empty() => value.serialize(to),
            Value::Object(members) => {
                let mut map = to.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    map.serialize_entry(name, &self.child(name, value))?;
                }
                map.end()
            }
            Value::Array(values) => {
                let mut list = to.serialize_seq(Some(values.len()))?;
                for (at, value) in values.iter().enumerate() {
                    list.serialize_element(&self.child(&at.to_string(), value))?;
                }
                list.end()
            }
            value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => value.serialize(to),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn it_is_the_json_that_has_the_texts_in_it(one in ".{0,40}", other in "[\u{0}-\u{20}\"\\\\äa]{0,40}") {
            let whole = |one: &str, other: &str| json!({
                "a": 1, "one": one, "oneself": "x",
                "list": [{ "text": "no" }, { "text": other, "rest": [true, null] }],
            });
            let texts = [("/one", one.as_str()), ("/list/1/text", &other), ("/nowhere/1", "lost")];
            let apart = LongJson {
                value: whole("", ""),
                texts: texts.map(|(pointer, text)| (pointer.to_owned(), text.into())).into(),
            };
            let inside = texts.iter().fold(LongJson::from(whole("", "")), |it, (pointer, text)| it.with(pointer, (*text).into()));
            let value = whole(&one, &other);
            prop_assert_eq!(inside.to_text().into_string(), value.to_string());
            let long = apart;
            prop_assert_eq!(long.to_text().into_string(), value.to_string());
            prop_assert_eq!(long.to_pretty_text().into_string(), serde_json::to_string_pretty(&value).expect("it is JSON"));
            prop_assert_eq!(to_long_text(&value).into_string(), value.to_string());
        }
    }
}
