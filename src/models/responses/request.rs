//! The request for a response: items, each a message, a call, a result or a piece of reasoning. Pure.

use base64::Engine;
use serde_json::{Map, Value, json};

use crate::{
    config,
    models::{CallResult, Effort, Image, ModelMessage, ModelRequest, Part, Said, openai, tool_pairing::paired},
};

/// Reasoning options to request beside the effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wishes {
    All,
    NoSummary,
    None,
}

/// Tool whose input the models that were trained on it write as plain text.
const FREEFORM_TOOL: &str = "apply_patch";

/// Type of an item for a search of the server.
pub const SEARCH: &str = "web_search_call";

/// The one argument of [`FREEFORM_TOOL`], as all other formats have it.
pub const FREEFORM_ARGUMENT: &str = "input";

/// Returns a request body of the required fields and those that the settings ask for.
pub fn body(request: &ModelRequest, settings: &config::Provider, wishes: Wishes) -> Value {
    let takes = |field: &str| {
        let allowed = settings.allow_fields.as_ref();
        allowed.is_none_or(|it| it.iter().any(|it| it == field))
    };
    let mut input = Vec::new();
    // Other servers that speak this format know functions only.
    let has_freeform = openai::is_own(settings) && reasons(&request.model);
    for message in paired(&request.messages) {
        spell(message, settings.replay_reasoning != "never", has_freeform, &mut input);
    }
    let mut body = json!({ "model": request.model, "stream": true, "input": input });
    if takes("store") {
        body["store"] = false.into();
    }
    if takes("prompt_cache_key") && openai::is_own(settings) && !request.cache_key.is_empty() {
        body["prompt_cache_key"] = request.cache_key.as_str().into();
    }
    if !request.system.trim().is_empty() {
        body["instructions"] = (*request.system).into();
    }
    if !request.tools.is_empty() {
        body["tools"] = request
            .tools
            .iter()
            .map(|it| {
                if it.is_at_provider() {
                    return json!({ "type": it.name });
                }
                if has_freeform && it.name == FREEFORM_TOOL {
                    return json!({ "type": "custom", "name": it.name, "description": it.about, "format": { "type": "text" } });
                }
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
        // Else its thoughts are lost, since nothing is stored.
        if takes("include") {
            body["include"] = json!(["reasoning.encrypted_content"]);
        }
    }
    if takes("include") && request.tools.iter().any(|it| it.is_at_provider()) {
        let sources = Value::from("web_search_call.action.sources");
        match body.get_mut("include").and_then(Value::as_array_mut) {
            Some(wanted) => wanted.push(sources),
            None => body["include"] = json!([sources]),
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

/// Returns true if a model of OpenAI's reasons, by its name; other models refuse reasoning options.
pub fn reasons(model: &str) -> bool {
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

fn spell(message: ModelMessage, with_reasoning: bool, has_freeform: bool, input: &mut Vec<Value>) {
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
                    // It follows the reasoning that led to it.
                    Said::Opaque(item) if item.get("type").is_some_and(|it| it == SEARCH) => input.push(item),
                    Said::Opaque(item) => input.extend(reasoning(&item).filter(|_| with_reasoning)),
                    Said::Call(call) if has_freeform && call.name == FREEFORM_TOOL => {
                        let text = match call.arguments.get(FREEFORM_ARGUMENT) {
                            Some(Value::String(text)) => text.clone(),
                            Some(_) | None => Value::Object(call.arguments).to_string(),
                        };
                        input.push(json!({
                            "type": "custom_tool_call",
                            "call_id": call.id,
                            "name": call.name,
                            "input": text,
                        }));
                    }
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
        ModelMessage::Results(results) => input.extend(results.iter().map(|it| result(it, has_freeform))),
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

fn result(result: &CallResult, has_freeform: bool) -> Value {
    let output = if result.images.is_empty() {
        Value::from(result.text.as_str())
    } else {
        let text = json!({ "type": "input_text", "text": result.text });
        std::iter::once(text).chain(result.images.iter().map(image)).collect()
    };
    let kind = if has_freeform && result.name == FREEFORM_TOOL {
        "custom_tool_call_output"
    } else {
        "function_call_output"
    };
    json!({ "type": kind, "call_id": result.call, "output": output })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pretty_assertions::assert_eq;

    use super::*;
    use crate::models::{Call, ToolSpec};

    fn bare() -> config::Provider {
        config::Provider {
            allow_fields: Some(vec!["store".to_owned()]),
            ..config::Provider::default()
        }
    }

    #[test]
    fn models_that_were_trained_on_patches_write_them_as_plain_text() {
        let patch = "*** Begin Patch\n*** End Patch";
        let named = |name: &str| CallResult {
            call: name.to_owned(),
            name: name.to_owned(),
            text: "done".to_owned(),
            is_error: false,
            images: Vec::new(),
        };
        let call = |name: &str, argument: &str| {
            Said::Call(Call {
                id: name.to_owned(),
                name: name.to_owned(),
                arguments: Map::from_iter([(argument.to_owned(), patch.into())]),
                opaque: None,
            })
        };
        let tool = |name: &str| ToolSpec {
            name: name.to_owned(),
            aliases: Vec::new(),
            about: "About.".to_owned().into(),
            parameters: json!({ "type": "object" }).into(),
        };
        let request = ModelRequest {
            model: "gpt-5.1-codex".to_owned(),
            messages: vec![
                ModelMessage::user("go"),
                ModelMessage::Assistant(vec![call("apply_patch", "input"), call("read", "input")]),
                ModelMessage::Results(vec![named("apply_patch"), named("read")]),
            ],
            tools: vec![tool("apply_patch").into(), tool("read").into()],
            ..ModelRequest::default()
        };
        let types = |url: &str| {
            let settings = config::Provider {
                connection: config::Connection::default().at(url),
                ..config::Provider::default()
            };
            let body = body(&request, &settings, Wishes::None);
            let types = |list: &str| -> Vec<String> {
                let list = body[list].as_array().expect("a list").iter();
                list.map(|it| it["type"].as_str().unwrap_or_default().to_owned())
                    .collect()
            };
            (types("tools"), types("input"), body)
        };
        let (tools, input, body) = types("https://api.openai.com/v1");
        assert_eq!(tools, ["custom", "function"]);
        assert_eq!(
            input,
            [
                "message",
                "custom_tool_call",
                "function_call",
                "custom_tool_call_output",
                "function_call_output"
            ]
        );
        assert_eq!(body["input"][1]["input"], patch);
        let (tools, input, _) = types("https://proxy.example/v1");
        assert_eq!(tools, ["function", "function"]);
        assert!(!input.iter().any(|it| it.starts_with("custom")), "{input:?}");
    }

    #[test]
    fn a_conversation_is_a_row_of_items() {
        let image = Image {
            media_type: "image/png".to_owned(),
            bytes: Arc::from(*b"png"),
        };
        let result = |call: &str, images: Vec<Image>| CallResult {
            call: call.to_owned(),
            name: "read".to_owned(),
            text: "x".to_owned(),
            is_error: false,
            images,
        };
        let call = |id: &str| {
            Said::Call(Call {
                id: id.to_owned(),
                name: "read".to_owned(),
                arguments: Map::from_iter([("path".to_owned(), "a".into())]),
                opaque: None,
            })
        };
        let encrypted = json!({
            "type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "gAAA", "content": null, "status": "completed",
        });
        let sent = json!({ "type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "gAAA" });
        let asked = ModelRequest {
            model: "gpt-4o".to_owned(),
            system: "Be brief.".to_owned().into(),
            messages: vec![
                ModelMessage::User(vec![Part::Text("look".to_owned()), Part::Image(image.clone())]),
                ModelMessage::Assistant(vec![
                    Said::Opaque(encrypted.clone()),
                    Said::Opaque(json!({ "type": "reasoning", "id": "r2", "summary": [] })),
                    Said::Opaque(json!({ "type": "thinking", "signature": "a" })),
                    Said::Text("I look.".into()),
                    call("c1"),
                    call("c2"),
                ]),
                ModelMessage::Results(vec![result("c1", Vec::new()), result("c2", vec![image])]),
                ModelMessage::Assistant(vec![Said::Text("Well.".into()), Said::Opaque(encrypted)]),
                ModelMessage::user("go on"),
            ],
            tools: vec![
                ToolSpec {
                    name: "read".to_owned(),
                    aliases: Vec::new(),
                    about: "About.".to_owned().into(),
                    parameters: json!({ "type": "object", "properties": {} }).into(),
                }
                .into(),
            ],
            ..ModelRequest::default()
        };
        let url = "data:image/png;base64,cG5n";
        let shown = json!({ "type": "input_image", "detail": "auto", "image_url": url });
        assert_eq!(
            body(&asked, &bare(), Wishes::All),
            json!({
                "model": "gpt-4o",
                "stream": true,
                "store": false,
                "instructions": "Be brief.",
                "input": [
                    { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "look" }, shown] },
                    sent,
                    { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "I look." }] },
                    { "type": "function_call", "call_id": "c1", "name": "read", "arguments": "{\"path\":\"a\"}" },
                    { "type": "function_call", "call_id": "c2", "name": "read", "arguments": "{\"path\":\"a\"}" },
                    { "type": "function_call_output", "call_id": "c1", "output": "x" },
                    { "type": "function_call_output", "call_id": "c2", "output": [{ "type": "input_text", "text": "x" }, shown] },
                    { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Well." }] },
                    { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "go on" }] },
                ],
                "tools": [{
                    "type": "function", "name": "read", "description": "About.",
                    "parameters": { "type": "object", "properties": {} }, "strict": false,
                }],
            })
        );
    }

    #[test]
    fn wishes_about_reasoning_are_made_of_models_that_reason() {
        let settings = config::Provider {
            temperature: Some(0.5),
            max_tokens: Some(9),
            ..config::Provider::default()
        };
        let include = json!(["reasoning.encrypted_content"]);
        let of = |model: &str, effort: Option<Effort>, wishes: Wishes| {
            let asked = ModelRequest {
                model: model.to_owned(),
                effort,
                ..ModelRequest::default()
            };
            let whole = body(&asked, &settings, wishes);
            assert_eq!(whole["max_output_tokens"], 9);
            assert_eq!(
                whole.get("include").is_some(),
                whole.get("reasoning").is_some(),
                "{model}"
            );
            assert!(whole.get("include").is_none_or(|it| *it == include));
            (whole["reasoning"].clone(), whole.get("temperature").is_some())
        };
        let auto = json!({ "summary": "auto" });
        for (model, effort, want) in [
            ("gpt-4o", None, (Value::Null, true)),
            ("gpt-5-chat-latest", None, (Value::Null, true)),
            ("qwen", None, (Value::Null, true)),
            ("qwen", Some(Effort::High), (json!({ "effort": "high" }), true)),
            ("o3", None, (auto, false)),
            (
                "openai/gpt-5.2",
                Some(Effort::Low),
                (json!({ "effort": "low", "summary": "auto" }), false),
            ),
            ("gpt-5.1", Some(Effort::Off), (json!({ "effort": "none" }), false)),
            ("gpt-5-mini", Some(Effort::Off), (json!({ "effort": "minimal" }), false)),
            ("o4-mini", Some(Effort::Off), (json!({ "effort": "low" }), false)),
            (
                "gpt-oss-20b",
                Some(Effort::Medium),
                (json!({ "effort": "medium", "summary": "auto" }), false),
            ),
            ("omni-moderation", None, (Value::Null, true)),
        ] {
            assert_eq!(of(model, effort, Wishes::All), want, "{model} {effort:?}");
        }
        assert_eq!(
            of("o3", Some(Effort::High), Wishes::NoSummary).0,
            json!({ "effort": "high" })
        );
        assert_eq!(of("o3", Some(Effort::High), Wishes::None).0, Value::Null);
    }

    #[test]
    fn the_servers_own_search_is_a_tool_and_goes_back_behind_its_reasoning() {
        let thought = json!({ "type": "reasoning", "id": "r", "summary": [], "encrypted_content": "g" });
        let search = json!({ "type": "web_search_call", "id": "ws_1", "status": "completed",
            "action": { "type": "search", "query": "q" } });
        let request = ModelRequest {
            model: "gpt-5.2".to_owned(),
            tools: vec![ToolSpec::at_provider("web_search").into()],
            messages: vec![
                ModelMessage::user("go"),
                ModelMessage::Assistant(vec![
                    Said::Opaque(thought.clone()),
                    Said::Opaque(search.clone()),
                    Said::Text("so".into()),
                ]),
                ModelMessage::user("and?"),
            ],
            ..ModelRequest::default()
        };
        let body = body(&request, &config::Provider::default(), Wishes::All);
        assert_eq!(body["tools"], json!([{ "type": "web_search" }]));
        assert_eq!(
            body["include"],
            json!(["reasoning.encrypted_content", "web_search_call.action.sources"])
        );
        assert_eq!((&body["input"][1], &body["input"][2]), (&thought, &search));
    }
}
