//! Ollama's description of a model: its window, and whether it thinks and calls tools.

use serde_json::Value;

use crate::models::lenient::whole_number;

/// A window costs memory whether it is used or not; more than this only where the user says so.
const WINDOW_LIMIT: u64 = 32_768;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Context length that the model was made for, in tokens.
    pub context: Option<u64>,
    /// Context length that its Modelfile sets, in tokens.
    pub set: Option<u64>,
    /// None: the server is too old to say.
    pub thinks: Option<bool>,
}

impl Shown {
    /// Reads the answer of `/api/show`; what it does not say is absent.
    pub fn read(body: &[u8]) -> Option<Self> {
        let whole: Value = serde_json::from_slice(body).ok()?;
        let info = whole.get("model_info").and_then(Value::as_object);
        let context = info.and_then(|it| {
            let family = it.get("general.architecture").and_then(Value::as_str);
            let own = family.and_then(|family| it.get(&format!("{family}.context_length")));
            let any = || {
                it.iter()
                    .find(|(name, _)| name.ends_with(".context_length"))
                    .map(|(_, it)| it)
            };
            own.or_else(any).and_then(whole_number)
        });
        // Lines of a name and a value: `num_ctx    8192`.
        let lines = whole
            .get("parameters")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .lines();
        let mut words = lines.map(str::split_whitespace);
        let set = words.find_map(|mut it| it.next().filter(|it| *it == "num_ctx").and(it.next()));
        let capabilities = whole.get("capabilities").and_then(Value::as_array);
        Some(Self {
            context: context.filter(|it| *it > 0),
            set: set.and_then(|it| it.parse().ok()).filter(|it| *it > 0),
            thinks: capabilities.map(|it| it.iter().any(|it| it == "thinking")),
        })
    }

    /// The window to ask for.
    pub fn window(&self) -> Option<u64> {
        self.set.or_else(|| self.context.map(|it| it.min(WINDOW_LIMIT)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_what_the_model_has_within_reason() {
        let qwen = r#"{"modelfile":"x","parameters":"stop    \"<|im_end|>\"\ntemperature 0.6","details":{"family":"qwen3"},
            "model_info":{"general.architecture":"qwen3","qwen3.context_length":40960,"qwen3.embedding_length":4096},
            "capabilities":["completion","tools","thinking"]}"#;
        let set = r#"{"parameters":"num_ctx                        65536","model_info":{"llama.context_length":131072},"capabilities":["completion"]}"#;
        let small = r#"{"model_info":{"general.architecture":"phi2","phi2.context_length":2048}}"#;
        for (name, body, window, thinks) in [
            ("large", qwen, Some(32_768), Some(true)),
            ("set by its file", set, Some(65_536), Some(false)),
            ("small, and an old server", small, Some(2048), None),
            ("nothing said", "{}", None, None),
            (
                "nonsense",
                r#"{"model_info":[1],"parameters":7,"capabilities":"all"}"#,
                None,
                None,
            ),
            (
                "zero",
                r#"{"parameters":"num_ctx 0","model_info":{"x.context_length":0}}"#,
                None,
                None,
            ),
        ] {
            let shown = Shown::read(body.as_bytes()).expect(name);
            assert_eq!((shown.window(), shown.thinks), (window, thinks), "{name}");
        }
        assert_eq!(Shown::read(b"404 page not found"), None);
    }
}
