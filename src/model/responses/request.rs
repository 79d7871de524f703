//! The request for a response: items, each a message, a call, a result or a piece of reasoning. Pure.

use base64::Engine;
use serde_json::{Map, Value, json};

use crate::{
    config,
    model::{CallResult, Effort, Image, ModelMessage, ModelRequest, Part, Said, paired::paired},
};

/// What is asked for about reasoning, beside the effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wishes {
    All,
    NoSummary,
    None,
}

/// Only what the format needs and what the settings ask for.
pub fn body(request: &ModelRequest, settings: &config::Provider, wishes: Wishes) -> Value {
    let takes = |field: &str| {
        let allowed = settings.allow_fields.as_ref();
        allowed.is_none_or(|it| it.iter().any(|it| it == field))
    };
    let mut input = Vec::new();
    for message in paired(&request.messages) {
        spell(message, settings.replay_reasoning != "never", &mut input);
    }
    let mut body = json!({ "model": request.model, "stream": true, "input": input });
    if takes("store") {
        body["store"] = false.into();
    }
    if !request.system.trim().is_empty() {
        body["instructions"] = request.system.as_str().into();
    }
    if !request.tools.is_empty() {
        body["tools"] = request
            .tools
            .iter()
            .map(|it| {
                json!({
                    "type": "function",
                    "name": it.name,
                    "description": it.about,
                    "parameters": it.parameters,
                    // Else the server wants every property to be required.
                    "strict": false,
                })
            })
            .collect();
    }
    if let Some(most) = settings.max_tokens {
        body["max_output_tokens"] = most.into();
    }
    let reasons = reasons(&request.model);
    if takes("reasoning") && wishes != Wishes::None && (reasons || request.effort.is_some()) {
        let mut reasoning = Map::new();
        if let Some(effort) = request.effort {
            reasoning.insert("effort".to_owned(), word(effort, &request.model).into());
        }
        if reasons && wishes == Wishes::All && request.effort != Some(Effort::Off) {
            reasoning.insert("summary".to_owned(), "auto".into());
        }
        if !reasoning.is_empty() {
            body["reasoning"] = reasoning.into();
        }
        if takes("include") {
            body["include"] = json!(["reasoning.encrypted_content"]);
        }
    }
    if let Some(temperature) = settings.temperature
        && takes("temperature")
        && !reasons
    {
        body["temperature"] = temperature.into();
    }
    body
}

/// Whether a model of OpenAI's reasons, by its name; the others refuse to hear of it.
fn reasons(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let digits = |after: &str| -> Option<u32> {
        let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    let is_series = |it: &str| digits(it).is_some_and(|it| it < 100);
    if name.contains("-chat") {
        return false;
    }
    name.strip_prefix('o').is_some_and(is_series)
        || name.starts_with("codex")
        || name.starts_with("gpt-oss")
        || name.strip_prefix("gpt-").and_then(digits).is_some_and(|it| it >= 5)
}

/// The server's word for an effort. The models before GPT-5.1 cannot be kept from reasoning.
fn word(effort: Effort, model: &str) -> &'static str {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    match effort {
        Effort::Off if name == "gpt-5" || name.starts_with("gpt-5-") => "minimal",
        Effort::Off if name.starts_with("gpt-") && !name.starts_with("gpt-oss") => "none",
        Effort::Off | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    }
}

fn spell(message: ModelMessage, with_reasoning: bool, input: &mut Vec<Value>) {
    match message {
        ModelMessage::User(parts) => {
            let content: Vec<Value> = parts.iter().filter_map(part).collect();
            if !content.is_empty() {
                input.push(json!({ "type": "message", "role": "user", "content": content }));
            }
        }
        ModelMessage::Assistant(said) => {
            let begin = input.len();
            for it in said {
                match it {
                    Said::Text(text) if text.is_empty() => {}
                    Said::Text(text) => {
                        let content = [json!({ "type": "output_text", "text": text })];
                        input.push(json!({ "type": "message", "role": "assistant", "content": content }));
                    }
                    Said::Opaque(item) => input.extend(reasoning(&item).filter(|_| with_reasoning)),
                    Said::Call(call) => input.push(json!({
                        "type": "function_call",
                        "call_id": call.id,
                        "name": call.name,
                        "arguments": Value::Object(call.arguments).to_string(),
                    })),
                }
            }
            // Reasoning that led to nothing is refused.
            while input.len() > begin && input.last().is_some_and(|it| it["type"] == "reasoning") {
                input.pop();
            }
        }
        ModelMessage::Results(results) => input.extend(results.iter().map(result)),
    }
}

fn part(part: &Part) -> Option<Value> {
    match part {
        Part::Text(text) if text.is_empty() => None,
        Part::Text(text) => Some(json!({ "type": "input_text", "text": text })),
        Part::Image(it) => Some(image(it)),
    }
}

fn image(image: &Image) -> Value {
    let data = base64::engine::general_purpose::STANDARD.encode(&image.bytes);
    let url = format!("data:{};base64,{data}", image.media_type);
    json!({ "type": "input_image", "detail": "auto", "image_url": url })
}

/// A piece of reasoning as it came. One that only names what the server has stored is of no use: nothing is stored.
fn reasoning(item: &Value) -> Option<Value> {
    let members = item
        .as_object()
        .filter(|it| it.get("type").is_some_and(|it| it == "reasoning"))?;
    let mut kept: Map<String, Value> = ["type", "id", "summary", "content", "encrypted_content"]
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), members.get(*name)?.clone())))
        .filter(|(_, it)| !it.is_null())
        .collect();
    let is_empty = |name: &str, kept: &Map<String, Value>| match kept.get(name) {
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) | None => true,
    };
    if is_empty("content", &kept) {
        kept.remove("content");
    }
    if is_empty("encrypted_content", &kept) && !kept.contains_key("content") {
        return None;
    }
    kept.entry("summary").or_insert_with(|| json!([]));
    Some(kept.into())
}

fn result(result: &CallResult) -> Value {
    let output = if result.images.is_empty() {
        Value::from(result.text.as_str())
    } else {
        let text = json!({ "type": "input_text", "text": result.text });
        std::iter::once(text).chain(result.images.iter().map(image)).collect()
    };
    json!({ "type": "function_call_output", "call_id": result.call, "output": output })
}
