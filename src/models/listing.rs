//! Lists of models and of embeddings, in the shapes that servers give them.

use base64::Engine;
use chrono::DateTime;
use serde_json::Value;

use super::{Failure, FailureKind, Model, catalogue, lenient};

/// A part of a list.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    pub models: Vec<Model>,
    /// Cursor of the next page. `None`: this is the last.
    pub next: Option<String>,
}

/// A list of models, in whichever of the known shapes.
///
/// Anthropic's shape has pages: `has_more` and `last_id`.
pub fn listed(body: &[u8]) -> Result<Page, Failure> {
    let text = String::from_utf8_lossy(body);
    let text = text.trim_start_matches('\u{feff}');
    let garbled = || Failure::new(FailureKind::Garbled, "the server's list of models cannot be read").saying(text);
    let whole: Value = serde_json::from_str(text).map_err(|_| garbled())?;
    if let Some(error) = whole.get("error").filter(|it| !it.is_null()) {
        return Err(Failure::from_server(None, error));
    }
    let items = match &whole {
        Value::Array(items) => items,
        other => ["data", "models"]
            .iter()
            .find_map(|it| other.get(*it)?.as_array())
            .ok_or_else(garbled)?,
    };
    let mut models: Vec<Model> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for item in items {
        let id = match item {
            Value::String(id) => id.as_str(),
            other => ["id", "name", "model"]
                .iter()
                .find_map(|it| other.get(*it)?.as_str())
                .unwrap_or_default(),
        };
        if !id.is_empty() && seen.insert(id) {
            models.push(Model {
                id: id.to_owned(),
                window: window(item).or_else(|| catalogue::window(id)),
                created: created(item),
            });
        }
    }
    let has_more = whole.get("has_more").and_then(Value::as_bool) == Some(true);
    let next = whole
        .get("last_id")
        .and_then(Value::as_str)
        .filter(|it| has_more && !it.is_empty());
    Ok(Page {
        next: next.map(str::to_owned),
        models,
    })
}

/// Returns a model's window in tokens. The loaded size is preferred to the possible one.
fn window(item: &Value) -> Option<u64> {
    let meta = item.get("meta");
    let within = |name: &str| meta.and_then(|it| it.get(name));
    [
        item.get("loaded_context_length"),
        within("n_ctx"),
        item.get("max_model_len"),
        item.get("context_length"),
        item.get("context_window"),
        item.get("max_context_length"),
        item.get("max_input_tokens"),
        within("n_ctx_train"),
    ]
    .into_iter()
    .flatten()
    .find_map(|it| it.as_u64().filter(|it| *it > 0))
}

/// Returns the time at which a model was made: a number of seconds, or Anthropic's date.
fn created(item: &Value) -> Option<u64> {
    let date = || DateTime::parse_from_rfc3339(item.get("created_at")?.as_str()?).ok();
    let seconds = item.get("created").and_then(lenient::whole_number);
    seconds.or_else(|| date()?.timestamp().try_into().ok())
}

/// Returns embeddings in the order of their texts, in whichever of the known shapes: as numbers, or as the bytes of 32-bit
/// floats in base64, which some servers send whatever they are asked for.
pub fn embedded(body: &[u8]) -> Result<Vec<Vec<f32>>, Failure> {
    let garbled = || Failure::new(FailureKind::Garbled, "the embeddings cannot be read");
    let whole: Value = serde_json::from_slice(body).map_err(|_| garbled())?;
    if let Some(error) = whole.as_object().and_then(lenient::error_of) {
        return Err(Failure::from_server(None, error));
    }
    let items = match &whole {
        Value::Array(items) => items,
        other => ["data", "embeddings"]
            .iter()
            .find_map(|it| other.get(*it)?.as_array())
            .ok_or_else(garbled)?,
    };
    let mut found: Vec<(u64, Vec<f32>)> = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let index = item.get("index").and_then(lenient::whole_number).unwrap_or(at as u64);
        let vector = match item.get("embedding").or_else(|| item.get("values")).unwrap_or(item) {
            Value::String(text) => floats(text),
            other => lenient::numbers(other),
        };
        found.push((index, vector.ok_or_else(garbled)?));
    }
    found.sort_by_key(|(index, _)| *index);
    Ok(found.into_iter().map(|(_, vector)| vector).collect())
}

fn floats(text: &str) -> Option<Vec<f32>> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok()?;
    let (whole, rest) = bytes.as_chunks::<4>();
    rest.is_empty()
        .then(|| whole.iter().map(|it| f32::from_le_bytes(*it)).collect())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn lists_of_models_are_read_in_every_shape() {
        let model = |id: &str, window: Option<u64>| Model {
            id: id.to_owned(),
            window,
            created: None,
        };
        let made = |id: &str, created: u64| Model {
            created: Some(created),
            ..model(id, None)
        };
        let cases: &[(&str, &str, &[Model])] = &[
            (
                "OpenAI",
                r#"{"object":"list","data":[{"id":"gpt-4o","object":"model"},{"id":"own"}]}"#,
                &[model("gpt-4o", Some(128_000)), model("own", None)],
            ),
            (
                "vLLM",
                r#"{"data":[{"id":"q","max_model_len":4096}]}"#,
                &[model("q", Some(4096))],
            ),
            (
                "OpenRouter",
                r#"{"data":[{"id":"a/q","context_length":8192,"pricing":{}}]}"#,
                &[model("a/q", Some(8192))],
            ),
            (
                "llama.cpp",
                r#"{"models":[{"name":"x"}],"object":"list","data":[{"id":"q","meta":{"n_ctx_train":32768,"n_ctx":8192}}]}"#,
                &[model("q", Some(8192))],
            ),
            (
                "LM Studio",
                r#"{"data":[{"id":"q","max_context_length":9,"loaded_context_length":5}]}"#,
                &[model("q", Some(5))],
            ),
            (
                "Ollama's names",
                r#"{"models":[{"name":"q:latest"}]}"#,
                &[model("q:latest", None)],
            ),
            (
                "a bare list of names, one twice",
                r#"["a","b","a"]"#,
                &[model("a", None), model("b", None)],
            ),
            (
                "Anthropic, with the day on which each was made, and OpenAI",
                r#"{"data":[{"id":"a","created_at":"2025-09-29T00:00:00Z"},{"id":"b","created":1759104000},{"id":"c","created_at":"soon"}]}"#,
                &[made("a", 1_759_104_000), made("b", 1_759_104_000), model("c", None)],
            ),
            ("with a byte order mark", "\u{feff}{\"data\":[]}", &[]),
            (
                "nonsense among them",
                r#"{"data":[null,7,{"id":""},{"id":"a","context_length":-1}]}"#,
                &[model("a", None)],
            ),
        ];
        for (name, body, want) in cases {
            assert_eq!(listed(body.as_bytes()).expect(name).models, *want, "{name}");
        }
        for (name, body) in [
            ("HTML", "<html>"),
            ("no list", "{\"ok\":1}"),
            ("a number", "7"),
            ("nothing", ""),
        ] {
            assert_eq!(
                listed(body.as_bytes()).expect_err(name).kind,
                FailureKind::Garbled,
                "{name}"
            );
        }
        let refused = listed(br#"{"error":{"message":"Invalid API key"}}"#).expect_err("an error");
        assert_eq!(refused.kind, FailureKind::Key);
    }

    #[test]
    fn a_list_in_pages_says_where_the_next_one_begins() {
        let next = |body: &str| listed(body.as_bytes()).expect(body).next;
        let cases = [
            (
                r#"{"data":[{"id":"a"}],"has_more":true,"first_id":"a","last_id":"a"}"#,
                Some("a"),
            ),
            (r#"{"data":[{"id":"a"}],"has_more":false,"last_id":"a"}"#, None),
            (r#"{"data":[],"has_more":true,"last_id":""}"#, None),
            (r#"{"data":[],"has_more":true,"last_id":null}"#, None),
            (r#"{"data":[]}"#, None),
        ];
        for (body, want) in cases {
            assert_eq!(next(body).as_deref(), want, "{body}");
        }
    }
}
