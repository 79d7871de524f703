//! The request to Gemini: address and body. Pure.

use base64::Engine;
use serde_json::{Map, Value, json};
use url::Url;

use super::schema::Tools;
use crate::{
    config,
    model::{Call, CallResult, Effort, Image, ModelMessage, ModelRequest, Part, Said},
};

/// What Gemini 3 takes in place of a signature for a call that it did not make itself.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

/// The address under which the endpoints lie, from one as users paste it: up to the version.
pub fn base(pasted: &Url) -> Url {
    let mut url = pasted.clone();
    url.set_fragment(None);
    let path = pasted.path();
    let path = path.split_once("/models").map_or(path, |(before, _)| before);
    let path = path.trim_end_matches('/').trim_end_matches("/openai");
    url.set_path(if path.is_empty() { "/v1beta" } else { path });
    url
}

/// The path of a model's `method`: `models/gemini-x:streamGenerateContent`.
pub fn path(model: &str, method: &str) -> String {
    // A name comes from a configuration that a project may have written: it must not lead elsewhere.
    let parts: Vec<String> = model
        .split('/')
        .filter(|it| !matches!(*it, "" | "." | ".."))
        .map(|it| it.replace('%', "%25"))
        .collect();
    let name = parts.join("/");
    if parts.len() > 1 {
        format!("{name}:{method}")
    } else {
        format!("models/{name}:{method}")
    }
}

pub fn body(request: &ModelRequest, settings: &config::Provider) -> Value {
    let tools = Tools::new(&request.tools);
    let mut body = json!({ "contents": contents(request, &tools) });
    if !request.system.is_empty() {
        body["systemInstruction"] = json!({ "parts": [{ "text": request.system }] });
    }
    if !request.tools.is_empty() {
        body["tools"] = json!([{ "functionDeclarations": tools.declarations() }]);
    }
    let takes = |field: &str| {
        let allowed = settings.allow_fields.as_ref();
        allowed.is_none_or(|it| it.iter().any(|it| it == field))
    };
    let mut generation = Map::new();
    if let Some(tokens) = settings.max_tokens {
        generation.insert("maxOutputTokens".to_owned(), tokens.into());
    }
    if let Some(temperature) = settings.temperature
        && takes("temperature")
    {
        generation.insert("temperature".to_owned(), temperature.into());
    }
    if takes("thinkingConfig")
        && let Some(thinking) = thinking(&request.model, request.effort)
    {
        generation.insert("thinkingConfig".to_owned(), thinking);
    }
    if !generation.is_empty() {
        body["generationConfig"] = generation.into();
    }
    body
}

/// The version in a name: `gemini-2.5-flash` is (2, 5). None for names that have none.
fn version(model: &str) -> Option<(u32, u32)> {
    let (_, rest) = model.rsplit('/').next()?.split_once("gemini-")?;
    let number = rest.split('-').next()?;
    let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// How hard to think. Models before 2.5 refuse to be asked, 2.5 counts tokens, later ones know levels.
fn thinking(model: &str, effort: Option<Effort>) -> Option<Value> {
    let is_latest = model.contains("gemini-") && model.ends_with("-latest");
    let version = version(model).or(is_latest.then_some((3, 0)))?;
    if version < (2, 5) || model.contains("image") || model.contains("tts") {
        return None;
    }
    let is_pro = model.contains("pro");
    let mut config = json!({ "includeThoughts": effort != Some(Effort::Off) });
    if version < (3, 0) {
        let budget = match effort {
            // Pro cannot but think.
            Some(Effort::Off) if is_pro => Some(128),
            Some(Effort::Off) => Some(0),
            Some(Effort::Low) => Some(1024),
            Some(Effort::Medium) => Some(8192),
            Some(Effort::High) => Some(24_576),
            None => None,
        };
        if let Some(budget) = budget {
            config["thinkingBudget"] = budget.into();
        }
    } else {
        let level = match effort {
            Some(Effort::Off) if is_pro => Some("low"),
            Some(Effort::Off) => Some("minimal"),
            Some(Effort::Low) => Some("low"),
            Some(Effort::Medium) => Some("medium"),
            Some(Effort::High) => Some("high"),
            None => None,
        };
        if let Some(level) = level {
            config["thinkingLevel"] = level.into();
        }
    }
    Some(config)
}

fn contents(request: &ModelRequest, tools: &Tools) -> Vec<Value> {
    let wants_signatures = version(&request.model).is_none_or(|it| it >= (3, 0));
    let mut contents: Vec<Value> = Vec::new();
    // Ids that the server gave, by ours: only those may go back.
    let mut given: Vec<(&str, &str)> = Vec::new();
    for message in &request.messages {
        let (role, parts) = match message {
            ModelMessage::User(parts) => ("user", parts.iter().filter_map(spoken).collect()),
            ModelMessage::Assistant(said) => {
                given.extend(said.iter().filter_map(given_id));
                ("model", answered(said, tools, wants_signatures))
            }
            ModelMessage::Results(results) => ("user", results_of(results, &given, tools)),
        };
        // Sides take turns, and the user begins.
        if contents.is_empty() && role == "model" {
            contents.push(json!({ "role": "user", "parts": [{ "text": "(what was said before is left out)" }] }));
        }
        join(&mut contents, role, parts);
    }
    contents
}

/// Adds parts; neighbours of one side are one content.
fn join(contents: &mut Vec<Value>, role: &str, parts: Vec<Value>) {
    if parts.is_empty() {
        return;
    }
    if let Some(last) = contents.last_mut()
        && last["role"] == role
        && let Some(Value::Array(own)) = last.get_mut("parts")
    {
        own.extend(parts);
    } else {
        contents.push(json!({ "role": role, "parts": parts }));
    }
}

fn spoken(part: &Part) -> Option<Value> {
    match part {
        // An empty part is refused.
        Part::Text(text) if text.is_empty() => None,
        Part::Text(text) => Some(json!({ "text": text })),
        Part::Image(image) => Some(inline(image)),
    }
}

fn inline(image: &Image) -> Value {
    let data = base64::engine::general_purpose::STANDARD.encode(&image.bytes);
    json!({ "inlineData": { "mimeType": image.media_type, "data": data } })
}

/// The id that the server itself gave to a call, beside ours.
fn given_id(said: &Said) -> Option<(&str, &str)> {
    match said {
        Said::Call(call) => Some((call.id.as_str(), call.opaque.as_ref()?.get("id")?.as_str()?)),
        Said::Text(_) | Said::Opaque(_) => None,
    }
}

/// The model's own parts, each with the signature that it came with.
fn answered(said: &[Said], tools: &Tools, wants_signatures: bool) -> Vec<Value> {
    let mut parts: Vec<Value> = Vec::new();
    for it in said {
        match it {
            Said::Text(text) if text.is_empty() => {}
            Said::Text(text) => parts.push(json!({ "text": text })),
            Said::Opaque(opaque) => signed(opaque, &mut parts),
            Said::Call(call) => parts.push(call_part(call, tools)),
        }
    }
    // The first call of a step must be signed; the ones beside it are not.
    let is_signed = parts
        .iter()
        .any(|it| it.get("functionCall").is_some() && it.get("thoughtSignature").is_some());
    if wants_signatures
        && !is_signed
        && let Some(first) = parts.iter_mut().find(|it| it.get("functionCall").is_some())
    {
        first["thoughtSignature"] = FOREIGN_SIGNATURE.into();
    }
    parts
}

/// A part that came with a signature, as it came. Its text, which stands in front of it already, is taken from there.
fn signed(opaque: &Value, parts: &mut Vec<Value>) {
    // What another provider's model left is not ours to send.
    if opaque.get("thoughtSignature").is_none_or(|it| !it.is_string()) {
        return;
    }
    let text = opaque.get("text").and_then(Value::as_str).unwrap_or_default();
    let is_thought = opaque.get("thought").and_then(Value::as_bool) == Some(true);
    if let Some(last) = parts.last_mut().filter(|_| !is_thought && !text.is_empty())
        && last.get("thoughtSignature").is_none()
        && let Some(before) = last
            .get("text")
            .and_then(Value::as_str)
            .and_then(|it| it.strip_suffix(text))
    {
        if before.is_empty() {
            parts.pop();
        } else {
            *last = json!({ "text": before });
        }
    }
    parts.push(opaque.clone());
}

fn call_part(call: &Call, tools: &Tools) -> Value {
    let arguments = tools.arguments_out(&call.name, &call.arguments);
    let mut part = json!({ "functionCall": { "name": tools.sent(&call.name), "args": arguments } });
    let kept = |name: &str| {
        call.opaque
            .as_ref()
            .and_then(|it| it.get(name))
            .filter(|it| it.is_string())
    };
    if let Some(id) = kept("id") {
        part["functionCall"]["id"] = id.clone();
    }
    if let Some(signature) = kept("thoughtSignature") {
        part["thoughtSignature"] = signature.clone();
    }
    part
}

/// One part for each call, in their order, which is how Gemini pairs them; images stand behind all of them.
fn results_of(results: &[CallResult], given: &[(&str, &str)], tools: &Tools) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut images = Vec::new();
    for result in results {
        let word = if result.is_error { "error" } else { "output" };
        let name = tools.sent(&result.name);
        let mut response = json!({ "name": name, "response": { word: result.text } });
        if let Some((_, id)) = given.iter().rev().find(|(own, _)| *own == result.call) {
            response["id"] = (*id).into();
        }
        parts.push(json!({ "functionResponse": response }));
        if !result.images.is_empty() {
            images.push(json!({ "text": format!("Images that {name} gave:") }));
            images.extend(result.images.iter().map(inline));
        }
    }
    parts.extend(images);
    parts
}
