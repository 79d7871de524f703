//! The request to Gemini: address and body. Pure.

use std::sync::Arc;

use base64::Engine;
use serde_json::{Map, Value, json};
use url::Url;

use super::schema::Tools;
use crate::{
    config,
    models::{Call, CallResult, Effort, Image, ModelMessage, ModelRequest, Part, Said, ToolSpec},
};

/// Accepted by Gemini 3 in place of the signature of a call that it did not make itself.
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
    let own = functions(request);
    let is_searching = own.len() < request.tools.len();
    let tools = Tools::new(&own);
    let mut body = json!({ "contents": contents(request, &tools) });
    if !request.system.is_empty() {
        body["systemInstruction"] = json!({ "parts": [{ "text": request.system }] });
    }
    let mut lists = Vec::new();
    if !own.is_empty() {
        lists.push(json!({ "functionDeclarations": tools.declarations() }));
    }
    if is_searching {
        lists.push(json!({ "googleSearch": {} }));
        if !own.is_empty() {
            // Both kinds of tools in one request.
            body["toolConfig"] = json!({ "includeServerSideToolInvocations": true });
        }
    }
    if !lists.is_empty() {
        body["tools"] = lists.into();
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

/// The tools of a request that are ours.
pub fn functions(request: &ModelRequest) -> Vec<Arc<ToolSpec>> {
    request
        .tools
        .iter()
        .filter(|it| !it.is_at_provider())
        .cloned()
        .collect()
}

/// The version in a name: `gemini-2.5-flash` is (2, 5). None for names that have none.
fn version(model: &str) -> Option<(u32, u32)> {
    let (_, rest) = model.rsplit('/').next()?.split_once("gemini-")?;
    let number = rest.split('-').next()?;
    let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Returns true for models that search the web beside functions of ours: Gemini 3 and later.
pub fn searches_web(model: &str) -> bool {
    version(model).is_some_and(|it| it >= (3, 0)) || model.contains("gemini-") && model.ends_with("-latest")
}

/// Returns the thinking configuration. `None` for models before 2.5, which refuse it; 2.5 counts tokens, later ones
/// have levels.
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
        let (role, parts): (_, Vec<Value>) = match message {
            ModelMessage::User(parts) => ("user", parts.iter().filter_map(spoken).collect()),
            ModelMessage::Assistant(said) => {
                given.extend(said.iter().filter_map(given_id));
                ("model", answered(said, tools, wants_signatures))
            }
            ModelMessage::Results(results) => ("user", results_of(results, &given, tools)),
        };
        // Sides take turns, and the user begins.
        if contents.is_empty() && role == "model" && !parts.is_empty() {
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
    if ["toolCall", "toolResponse"]
        .iter()
        .any(|it| opaque.get(*it).is_some_and(Value::is_object))
    {
        return parts.push(opaque.clone());
    }
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

/// Returns one part for each call, in their order, by which Gemini pairs them; images follow.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn an_address_is_taken_as_it_was_pasted() {
        let google = "https://generativelanguage.googleapis.com";
        for (pasted, want) in [
            ("", "/v1beta"),
            ("/", "/v1beta"),
            ("/v1beta/", "/v1beta"),
            ("/v1beta/openai/", "/v1beta"),
            ("/v1beta/models/gemini-x:generateContent#a", "/v1beta"),
            ("/v1", "/v1"),
            ("/proxy/v1beta?team=a", "/proxy/v1beta?team=a"),
        ] {
            let url = Url::parse(&format!("{google}{pasted}")).expect(pasted);
            assert_eq!(base(&url).as_str(), format!("{google}{want}"), "{pasted}");
        }
        for (model, want) in [
            ("gemini-x", "models/gemini-x:m"),
            ("models/gemini-x", "models/gemini-x:m"),
            ("tunedModels/mine", "tunedModels/mine:m"),
            ("../../x", "models/x:m"),
            ("%2e%2e/x", "%252e%252e/x:m"),
        ] {
            assert_eq!(path(model, "m"), want);
        }
    }

    #[test]
    fn each_generation_is_asked_to_think_in_its_own_way() {
        let all = [
            None,
            Some(Effort::Off),
            Some(Effort::Low),
            Some(Effort::Medium),
            Some(Effort::High),
        ];
        for (model, want) in [
            ("gemini-2.0-flash", ["-", "-", "-", "-", "-"]),
            ("gemini-1.5-pro", ["-", "-", "-", "-", "-"]),
            ("gemma-4-31b-it", ["-", "-", "-", "-", "-"]),
            ("gemini-2.5-flash-image", ["-", "-", "-", "-", "-"]),
            (
                "gemini-2.5-flash-lite",
                ["true", "false 0", "true 1024", "true 8192", "true 24576"],
            ),
            (
                "gemini-2.5-pro",
                ["true", "false 128", "true 1024", "true 8192", "true 24576"],
            ),
            (
                "gemini-3.8-flash",
                ["true", "false minimal", "true low", "true medium", "true high"],
            ),
            (
                "gemini-flash-latest",
                ["true", "false minimal", "true low", "true medium", "true high"],
            ),
            (
                "models/gemini-3.1-pro-preview",
                ["true", "false low", "true low", "true medium", "true high"],
            ),
            (
                "gemini-4-argon",
                ["true", "false minimal", "true low", "true medium", "true high"],
            ),
        ] {
            let got = all.map(|effort| match thinking(model, effort) {
                None => "-".to_owned(),
                Some(it) => {
                    let how = it.get("thinkingBudget").or(it.get("thinkingLevel"));
                    let how = how
                        .map(|it| format!(" {}", it.to_string().trim_matches('"')))
                        .unwrap_or_default();
                    format!("{}{how}", it["includeThoughts"])
                }
            });
            assert_eq!(got, want, "{model}");
        }
    }

    fn call(id: &str, name: &str, opaque: Option<Value>) -> Said {
        Said::Call(Call {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: Map::from_iter([("-A".to_owned(), 2.into())]),
            opaque,
        })
    }

    fn result(call: &str, name: &str, text: &str, is_error: bool, images: usize) -> CallResult {
        let image = Image {
            media_type: "image/png".to_owned(),
            bytes: Arc::from(*b"png"),
        };
        CallResult {
            call: call.to_owned(),
            name: name.to_owned(),
            text: text.to_owned(),
            is_error,
            images: vec![image; images],
        }
    }

    fn grep() -> ToolSpec {
        ToolSpec {
            name: "grep".to_owned(),
            aliases: Vec::new(),
            about: "Looks for it.".to_owned().into(),
            parameters: json!({ "type": "object", "properties": { "-A": { "type": "integer" } } }).into(),
        }
    }

    #[test]
    fn the_servers_own_search_stands_beside_our_functions() {
        let used = json!({ "toolCall": { "id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": { "queries": ["q"] } }, "thoughtSignature": "s" });
        let found = json!({ "toolResponse": { "id": "t1", "toolType": "GOOGLE_SEARCH_WEB" } });
        let mut request = ModelRequest {
            model: "gemini-3.8-flash".to_owned(),
            tools: vec![grep().into(), ToolSpec::at_provider("web_search").into()],
            messages: vec![
                ModelMessage::user("go"),
                ModelMessage::Assistant(vec![
                    Said::Opaque(used.clone()),
                    Said::Opaque(found.clone()),
                    Said::Text("so".into()),
                ]),
                ModelMessage::user("and?"),
            ],
            ..ModelRequest::default()
        };
        let whole = body(&request, &config::Provider::default());
        assert_eq!(whole["tools"][0]["functionDeclarations"][0]["name"], "grep");
        assert_eq!(whole["tools"][1], json!({ "googleSearch": {} }));
        assert_eq!(whole["toolConfig"], json!({ "includeServerSideToolInvocations": true }));
        assert_eq!(whole["contents"][1]["parts"], json!([used, found, { "text": "so" }]));
        request.tools.remove(0);
        let whole = body(&request, &config::Provider::default());
        assert_eq!(whole["tools"], json!([{ "googleSearch": {} }]));
        for (model, want) in [
            ("gemini-3-pro", true),
            ("gemini-flash-latest", true),
            ("gemini-2.5-pro", false),
            ("x", false),
        ] {
            assert_eq!(searches_web(model), want, "{model}");
        }
    }

    #[test]
    fn a_conversation_keeps_its_signatures_where_they_were() {
        let request = ModelRequest {
            model: "gemini-3.8-flash".to_owned(),
            system: "Be brief.".to_owned().into(),
            tools: vec![grep().into()],
            messages: vec![
                ModelMessage::user("look"),
                ModelMessage::Assistant(vec![
                    Said::Opaque(json!({ "text": "Hm.", "thought": true, "thoughtSignature": "s0" })),
                    Said::Text("I look. Now.".into()),
                    Said::Opaque(json!({ "text": " Now.", "thoughtSignature": "s1" })),
                    Said::Opaque(json!({ "type": "thinking", "signature": "of another maker" })),
                    call("a", "grep", Some(json!({ "thoughtSignature": "s2", "id": "g1" }))),
                    call("b", "grep", None),
                ]),
                ModelMessage::Results(vec![
                    result("a", "grep", "one", false, 1),
                    result("b", "grep", "no such folder", true, 0),
                ]),
                ModelMessage::user("and?"),
            ],
            ..ModelRequest::default()
        };
        let png = json!({ "inlineData": { "mimeType": "image/png", "data": "cG5n" } });
        let arguments = json!({ "context_after": 2 });
        assert_eq!(
            body(&request, &config::Provider::default()),
            json!({
                "systemInstruction": { "parts": [{ "text": "Be brief." }] },
                "tools": [{ "functionDeclarations": [{
                    "name": "grep", "description": "Looks for it.",
                    "parameters": { "type": "object", "properties": { "context_after": { "type": "integer" } } },
                }] }],
                "generationConfig": { "thinkingConfig": { "includeThoughts": true } },
                "contents": [
                    { "role": "user", "parts": [{ "text": "look" }] },
                    { "role": "model", "parts": [
                        { "text": "Hm.", "thought": true, "thoughtSignature": "s0" },
                        { "text": "I look." },
                        { "text": " Now.", "thoughtSignature": "s1" },
                        { "functionCall": { "name": "grep", "args": arguments, "id": "g1" }, "thoughtSignature": "s2" },
                        { "functionCall": { "name": "grep", "args": arguments } },
                    ] },
                    { "role": "user", "parts": [
                        { "functionResponse": { "id": "g1", "name": "grep", "response": { "output": "one" } } },
                        { "functionResponse": { "name": "grep", "response": { "error": "no such folder" } } },
                        { "text": "Images that grep gave:" },
                        png,
                        { "text": "and?" },
                    ] },
                ],
            })
        );
    }

    #[test]
    fn calls_of_another_maker_are_sent_as_such_where_signatures_are_wanted() {
        let signed = |model: &str| {
            let request = ModelRequest {
                model: model.to_owned(),
                messages: vec![ModelMessage::Assistant(vec![
                    call("a", "x", None),
                    call("b", "x", None),
                ])],
                ..ModelRequest::default()
            };
            let body = body(&request, &config::Provider::default());
            assert_eq!(body["contents"][0]["role"], "user", "the user begins");
            let parts = body["contents"][1]["parts"].as_array().cloned().unwrap_or_default();
            parts
                .iter()
                .map(|it| it.get("thoughtSignature").cloned().unwrap_or_default())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            signed("gemini-3.8-flash"),
            [json!("skip_thought_signature_validator"), Value::Null]
        );
        assert_eq!(signed("gemini-2.5-pro"), [Value::Null, Value::Null]);
    }

    #[test]
    fn only_what_is_allowed_is_sent_and_empty_parts_are_not() {
        let request = ModelRequest {
            model: "gemini-3.8-flash".to_owned(),
            messages: vec![
                ModelMessage::user(""),
                ModelMessage::assistant(""),
                ModelMessage::user("hi"),
            ],
            ..ModelRequest::default()
        };
        let settings = config::Provider {
            allow_fields: Some(Vec::new()),
            temperature: Some(0.5),
            max_tokens: Some(9),
            ..config::Provider::default()
        };
        assert_eq!(
            body(&request, &settings),
            json!({
                "contents": [{ "role": "user", "parts": [{ "text": "hi" }] }],
                "generationConfig": { "maxOutputTokens": 9 },
            })
        );
    }
}
