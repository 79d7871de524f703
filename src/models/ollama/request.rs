//! The request to an Ollama: address and body. Pure.

use base64::Engine;
use serde_json::{Map, Value, json};
use url::Url;

use super::show::Shown;
use crate::{
    config,
    models::{Effort, Image, ModelMessage, ModelRequest, Part, Said},
};

/// The address under which `api/` lies, from one as users paste it.
pub fn base(pasted: &Url) -> Url {
    let mut url = pasted.clone();
    url.set_fragment(None);
    let mut path = pasted.path().trim_end_matches('/');
    for ending in ["/v1/chat/completions", "/v1", "/api/chat", "/api/tags", "/api"] {
        if let Some(rest) = path.strip_suffix(ending) {
            path = rest;
            break;
        }
    }
    url.set_path(path);
    url
}

pub fn body(request: &ModelRequest, settings: &config::Provider, shown: Option<&Shown>) -> Value {
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(json!({ "role": "system", "content": request.system }));
    }
    // Where the loop of calls that is still going on began.
    let last_word = (request.messages.iter()).rposition(|it| matches!(it, ModelMessage::User(_)));
    for (at, message) in request.messages.iter().enumerate() {
        let replays = match settings.replay_reasoning.as_str() {
            "always" => true,
            "never" => false,
            _ => last_word.is_none_or(|it| at > it),
        };
        spell(message, replays, &mut messages);
    }
    // Rather an error than a conversation whose beginning was cut off without a word.
    let mut body = json!({ "model": request.model, "stream": true, "truncate": false, "messages": messages });
    if !request.tools.is_empty() {
        body["tools"] = request
            .tools
            .iter()
            .map(|it| {
                let function = json!({ "name": it.name, "description": it.about, "parameters": it.parameters });
                json!({ "type": "function", "function": function })
            })
            .collect();
    }
    if let Some(think) = think(request, shown) {
        body["think"] = think;
    }
    let mut options = Map::new();
    if let Some(window) = settings.num_ctx.or_else(|| shown.and_then(Shown::window)) {
        options.insert("num_ctx".to_owned(), window.into());
    }
    if let Some(tokens) = settings.max_tokens {
        options.insert("num_predict".to_owned(), tokens.into());
    }
    if let Some(temperature) = settings.temperature {
        options.insert("temperature".to_owned(), temperature.into());
    }
    if !options.is_empty() {
        body["options"] = options.into();
    }
    body
}

/// A model that cannot think refuses the word; one that was not asked about is left alone unless the user wants it.
fn think(request: &ModelRequest, shown: Option<&Shown>) -> Option<Value> {
    let effort = request.effort?;
    if shown.is_some_and(|it| it.thinks == Some(false)) {
        return None;
    }
    // Only this family knows levels, and cannot but think.
    let name = request.model.rsplit('/').next().unwrap_or_default();
    let has_levels = name.starts_with("gpt-oss");
    Some(match effort {
        Effort::Off | Effort::Low if has_levels => "low".into(),
        Effort::Medium if has_levels => "medium".into(),
        Effort::High if has_levels => "high".into(),
        Effort::Off => false.into(),
        Effort::Low | Effort::Medium | Effort::High => true.into(),
    })
}

fn spell(message: &ModelMessage, replays: bool, messages: &mut Vec<Value>) {
    match message {
        ModelMessage::User(parts) => {
            let mut text = Vec::new();
            let mut images = Vec::new();
            for part in parts {
                match part {
                    Part::Text(it) => text.push(it.as_str()),
                    Part::Image(image) => images.push(encoded(image)),
                }
            }
            messages.push(with_images(
                json!({ "role": "user", "content": text.join("\n\n") }),
                images,
            ));
        }
        ModelMessage::Assistant(said) => {
            let mut text = String::new();
            let mut thinking = String::new();
            let mut calls = Vec::new();
            for part in said {
                match part {
                    Said::Text(it) => text.push_str(it),
                    Said::Opaque(it) => {
                        thinking.push_str(it.get("thinking").and_then(Value::as_str).unwrap_or_default());
                    }
                    Said::Call(call) => calls.push(json!({
                        "id": call.id,
                        "function": { "name": call.name, "arguments": call.arguments },
                    })),
                }
            }
            let mut message = json!({ "role": "assistant", "content": text });
            if replays && !thinking.is_empty() {
                message["thinking"] = thinking.into();
            }
            if !calls.is_empty() {
                message["tool_calls"] = calls.into();
            }
            messages.push(message);
        }
        ModelMessage::Results(results) => {
            let mut images = Vec::new();
            let mut names = Vec::new();
            for result in results {
                messages.push(json!({
                    "role": "tool",
                    "tool_name": result.name,
                    "tool_call_id": result.call,
                    "content": result.text,
                }));
                if !result.images.is_empty() {
                    names.push(result.name.as_str());
                    images.extend(result.images.iter().map(encoded));
                }
            }
            // Templates look for images in what the user says only.
            if !images.is_empty() {
                let content = format!("The images that {} gave are attached.", names.join(", "));
                messages.push(with_images(json!({ "role": "user", "content": content }), images));
            }
        }
    }
}

fn with_images(mut message: Value, images: Vec<String>) -> Value {
    if !images.is_empty() {
        message["images"] = images.into();
    }
    message
}

fn encoded(image: &Image) -> String {
    base64::engine::general_purpose::STANDARD.encode(&image.bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pretty_assertions::assert_eq;

    use super::*;
    use crate::models::{Call, CallResult, ToolSpec};

    #[test]
    fn an_address_is_taken_as_it_was_pasted() {
        for (pasted, want) in [
            ("http://127.0.0.1:11434", "http://127.0.0.1:11434/"),
            ("http://127.0.0.1:11434/v1/", "http://127.0.0.1:11434/"),
            ("http://127.0.0.1:11434/api/chat", "http://127.0.0.1:11434/"),
            ("https://ollama.example/base/api#x", "https://ollama.example/base"),
        ] {
            assert_eq!(base(&Url::parse(pasted).expect(pasted)).as_str(), want, "{pasted}");
        }
    }

    #[test]
    fn a_conversation_in_ollamas_words() {
        let image = Image {
            media_type: "image/png".to_owned(),
            bytes: Arc::from(*b"png"),
        };
        let call = |id: &str| {
            Said::Call(Call {
                id: id.to_owned(),
                name: "grep".to_owned(),
                arguments: Map::from_iter([("pattern".to_owned(), "x".into())]),
                opaque: None,
            })
        };
        let result = |id: &str, images: Vec<Image>| CallResult {
            call: id.to_owned(),
            name: "grep".to_owned(),
            text: "found".to_owned(),
            is_error: false,
            images,
        };
        let thought = |text: &str| Said::Opaque(json!({ "thinking": text }));
        let request = ModelRequest {
            model: "qwen3:8b".to_owned(),
            system: "Be brief.".to_owned().into(),
            tools: vec![
                ToolSpec {
                    name: "grep".to_owned(),
                    aliases: Vec::new(),
                    about: "Looks.".to_owned().into(),
                    parameters: json!({ "type": "object" }).into(),
                }
                .into(),
            ],
            messages: vec![
                ModelMessage::Assistant(vec![thought("long ago"), Said::Text("hi".into())]),
                ModelMessage::User(vec![Part::Text("look".to_owned()), Part::Image(image.clone())]),
                ModelMessage::Assistant(vec![thought("hm"), Said::Text("I look.".into()), call("c1")]),
                ModelMessage::Results(vec![result("c1", vec![image])]),
            ],
            ..ModelRequest::default()
        };
        let shown = Shown {
            context: Some(40_960),
            ..Shown::default()
        };
        let arguments = json!({ "pattern": "x" });
        let want = json!({
            "model": "qwen3:8b", "stream": true, "truncate": false,
            "options": { "num_ctx": 32768 },
            "tools": [{ "type": "function", "function": { "name": "grep", "description": "Looks.", "parameters": { "type": "object" } } }],
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "assistant", "content": "hi" },
                { "role": "user", "content": "look", "images": ["cG5n"] },
                { "role": "assistant", "content": "I look.", "thinking": "hm",
                  "tool_calls": [{ "id": "c1", "function": { "name": "grep", "arguments": arguments } }] },
                { "role": "tool", "tool_name": "grep", "tool_call_id": "c1", "content": "found" },
                { "role": "user", "content": "The images that grep gave are attached.", "images": ["cG5n"] },
            ],
        });
        let settings = config::Provider::default();
        assert_eq!(body(&request, &settings, Some(&shown)), want);
        let never = config::Provider {
            replay_reasoning: "never".to_owned(),
            ..settings.clone()
        };
        assert_eq!(body(&request, &never, None)["messages"][3].get("thinking"), None);
        let always = config::Provider {
            replay_reasoning: "always".to_owned(),
            num_ctx: Some(7),
            max_tokens: Some(8),
            temperature: Some(0.5),
            ..settings
        };
        let got = body(&request, &always, Some(&shown));
        assert_eq!(got["messages"][1]["thinking"], "long ago");
        assert_eq!(
            got["options"],
            json!({ "num_ctx": 7, "num_predict": 8, "temperature": 0.5 })
        );
        assert_eq!(
            body(&ModelRequest::default(), &config::Provider::default(), None).get("options"),
            None
        );
    }

    #[test]
    fn a_model_is_asked_to_think_as_far_as_it_can() {
        let ask = |model: &str, effort, thinks| {
            let request = ModelRequest {
                model: model.to_owned(),
                effort,
                ..ModelRequest::default()
            };
            let shown = Shown {
                thinks,
                ..Shown::default()
            };
            think(&request, Some(&shown)).unwrap_or_default()
        };
        let (off, low, high) = (Some(Effort::Off), Some(Effort::Low), Some(Effort::High));
        for (model, effort, thinks, want) in [
            ("qwen3", None, Some(true), Value::Null),
            ("qwen3", off, Some(true), json!(false)),
            ("qwen3", low, Some(true), json!(true)),
            ("llama3", high, Some(false), Value::Null),
            ("old", high, None, json!(true)),
            ("gpt-oss:20b", off, Some(true), json!("low")),
            ("me/gpt-oss:20b", high, Some(true), json!("high")),
        ] {
            assert_eq!(ask(model, effort, thinks), want, "{model} {effort:?}");
        }
    }
}
