//! The request of a chat completion: address and body. Pure.

use base64::Engine;
use serde_json::{Value, json};
use url::Url;

use crate::{
    config,
    model::{ModelMessage, ModelRequest, Part, Said},
};

/// The address under which a server's endpoints lie, from one as users paste it.
///
/// The path of an endpoint and slashes at the end are taken off. What has no path then gets `/v1`, because that is
/// where every server has it; what has a path is left alone (`/openai/v1`, `/v1beta/openai`, a deployment of
/// Azure's). A query stays, a fragment goes.
pub fn base(pasted: &Url) -> Url {
    let mut url = pasted.clone();
    url.set_fragment(None);
    let mut path = pasted.path().trim_end_matches('/');
    for ending in ["/chat/completions", "/responses", "/models", "/chat"] {
        if let Some(rest) = path.strip_suffix(ending) {
            path = rest.trim_end_matches('/');
            break;
        }
    }
    url.set_path(if path.is_empty() { "/v1" } else { path });
    url
}

/// Only what every server takes and what the settings ask for: several servers refuse a request over one member that
/// they do not know, which is what `allow_fields` is for.
pub fn body(request: &ModelRequest, settings: &config::Provider) -> Value {
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(json!({ "role": "system", "content": request.system }));
    }
    for message in &request.messages {
        spell(message, &mut messages);
    }
    let mut body = json!({ "model": request.model, "stream": true, "messages": messages });
    let takes = |field: &str| {
        let allowed = settings.allow_fields.as_ref();
        allowed.is_none_or(|it| it.iter().any(|it| it == field))
    };
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
    if takes("stream_options") {
        body["stream_options"] = json!({ "include_usage": true });
    }
    if let Some(tokens) = settings.max_tokens {
        // OpenAI's own models refuse the old name, most other servers do not know the new one.
        let is_new = settings.allow_fields.is_some() && takes("max_completion_tokens");
        let is_openai = settings
            .connection
            .url()
            .is_ok_and(|it| it.contains("//api.openai.com"));
        let name = if is_new || is_openai {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        body[name] = tokens.into();
    }
    if let Some(temperature) = settings.temperature
        && takes("temperature")
    {
        body["temperature"] = temperature.into();
    }
    body
}

/// A message in the server's words; results are a message each.
fn spell(message: &ModelMessage, messages: &mut Vec<Value>) {
    match message {
        ModelMessage::User(parts) => {
            let mut text = Vec::new();
            let mut content = Vec::new();
            for part in parts {
                match part {
                    Part::Text(it) => {
                        text.push(it.as_str());
                        content.push(json!({ "type": "text", "text": it }));
                    }
                    Part::Image(image) => {
                        let data = base64::engine::general_purpose::STANDARD.encode(&image.bytes);
                        let url = format!("data:{};base64,{data}", image.media_type);
                        content.push(json!({ "type": "image_url", "image_url": { "url": url } }));
                    }
                }
            }
            // A plain string is what every server understands.
            let content = if text.len() == parts.len() {
                Value::from(text.join("\n\n"))
            } else {
                Value::from(content)
            };
            messages.push(json!({ "role": "user", "content": content }));
        }
        ModelMessage::Assistant(said) => {
            let mut text = String::new();
            let mut calls = Vec::new();
            for part in said {
                match part {
                    Said::Text(it) => text.push_str(it),
                    Said::Call(call) => calls.push(json!({
                        "id": call.id,
                        "type": "function",
                        "function": {
                            "name": call.name,
                            "arguments": Value::Object(call.arguments.clone()).to_string(),
                        },
                    })),
                    Said::Opaque(_) => {}
                }
            }
            let mut message = json!({ "role": "assistant", "content": text });
            if !calls.is_empty() {
                message["tool_calls"] = calls.into();
            }
            messages.push(message);
        }
        ModelMessage::Results(results) => messages.extend(
            results
                .iter()
                .map(|it| json!({ "role": "tool", "tool_call_id": it.call, "content": it.text })),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_as_it_was_pasted() {
        let cases = [
            ("https://api.openai.com/v1", "https://api.openai.com/v1"),
            ("https://api.openai.com/v1/", "https://api.openai.com/v1"),
            ("https://api.openai.com", "https://api.openai.com/v1"),
            ("https://api.openai.com/", "https://api.openai.com/v1"),
            (
                "https://api.openai.com/v1/chat/completions",
                "https://api.openai.com/v1",
            ),
            (
                "https://api.openai.com/v1/chat/completions/",
                "https://api.openai.com/v1",
            ),
            ("https://api.openai.com/chat/completions", "https://api.openai.com/v1"),
            ("https://api.openai.com/v1/models", "https://api.openai.com/v1"),
            ("http://127.0.0.1:8089//", "http://127.0.0.1:8089/v1"),
            ("https://api.groq.com/openai/v1", "https://api.groq.com/openai/v1"),
            (
                "https://example.org/v1beta/openai/",
                "https://example.org/v1beta/openai",
            ),
            (
                "https://x.openai.azure.com/openai/deployments/d?api-version=2024-10-21#top",
                "https://x.openai.azure.com/openai/deployments/d?api-version=2024-10-21",
            ),
        ];
        for (pasted, want) in cases {
            let pasted = Url::parse(pasted).expect(pasted);
            assert_eq!(base(&pasted).as_str(), want, "{pasted}");
        }
    }

    #[test]
    fn the_request_says_no_more_than_it_must() {
        let request = ModelRequest {
            model: "m".to_owned(),
            system: "Be brief.".to_owned(),
            messages: vec![
                ModelMessage::user("hi"),
                ModelMessage::assistant("hello"),
                ModelMessage::user("bye"),
            ],
            is_attended: true,
            ..ModelRequest::default()
        };
        let messages = json!([
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "hi" },
            { "role": "assistant", "content": "hello" },
            { "role": "user", "content": "bye" },
        ]);
        let bare = json!({ "model": "m", "stream": true, "messages": messages });
        let with = |name: &str, value: Value| {
            let mut body = bare.clone();
            body[name] = value;
            body
        };
        let strict = config::Provider {
            allow_fields: Some(Vec::new()),
            ..config::Provider::default()
        };
        assert_eq!(body(&request, &strict), bare, "nothing optional is allowed");
        let usage = json!({ "include_usage": true });
        assert_eq!(
            body(&request, &config::Provider::default()),
            with("stream_options", usage),
            "the default"
        );
        let limited = config::Provider {
            max_tokens: Some(9),
            temperature: Some(0.5),
            ..strict.clone()
        };
        assert_eq!(
            body(&request, &limited),
            with("max_tokens", 9.into()),
            "a limit, and no temperature"
        );
        let modern = config::Provider {
            allow_fields: Some(vec!["max_completion_tokens".to_owned(), "temperature".to_owned()]),
            ..limited
        };
        let mut want = with("max_completion_tokens", 9.into());
        want["temperature"] = 0.5.into();
        assert_eq!(body(&request, &modern), want, "the new name, and a temperature");
        let openai = config::Provider {
            connection: config::Connection::default().at("https://api.openai.com/v1"),
            max_tokens: Some(9),
            ..strict
        };
        assert_eq!(
            body(&request, &openai),
            with("max_completion_tokens", 9.into()),
            "OpenAI itself"
        );
    }

    #[test]
    fn no_system_prompt_is_no_message() {
        let strict = config::Provider {
            allow_fields: Some(Vec::new()),
            ..config::Provider::default()
        };
        let empty = json!({ "model": "", "stream": true, "messages": [] });
        assert_eq!(body(&ModelRequest::default(), &strict), empty);
    }
}
