//! The request of a chat completion: address and body. Pure.

use base64::Engine;
use serde_json::{Map, Value, json};
use url::Url;

use super::profile::{Learned, Profile, Replay};
use crate::{
    config,
    models::{CallResult, Image, ModelMessage, ModelRequest, Part, Said},
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

/// Returns a request body of the fields that every server accepts and those that the settings ask for: several servers
/// refuse unknown fields, which `allow_fields` is for.
pub fn body(request: &ModelRequest, settings: &config::Provider, learned: &Learned) -> Value {
    let profile = Profile::of(request, settings);
    let messages = messages(request, profile, settings, learned);
    let mut body = json!({ "model": request.model, "stream": true, "messages": messages });
    let takes = |field: &str| {
        let allowed = settings.allow_fields.as_ref();
        allowed.is_none_or(|it| it.iter().any(|it| it == field)) && !learned.refused.contains(field)
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
        if profile.asks_parallel && takes("parallel_tool_calls") {
            body["parallel_tool_calls"] = true.into();
        }
    }
    if takes("stream_options") && !(profile.has_short_ids && is_at(settings, "mistral.ai")) {
        body["stream_options"] = json!({ "include_usage": true });
    }
    if let Some(tokens) = settings.max_tokens {
        // OpenAI's own models refuse the old name, most other servers do not know the new one.
        let is_asked_for = settings.allow_fields.is_some() && takes("max_completion_tokens");
        let is_new = (is_asked_for || profile.has_new_limit) != learned.swaps_limit;
        let name = if is_new { "max_completion_tokens" } else { "max_tokens" };
        body[name] = tokens.into();
    }
    if let Some(temperature) = settings.temperature
        && takes("temperature")
    {
        body["temperature"] = temperature.into();
    }
    if takes("prompt_cache_key") && super::is_own(settings) && !request.cache_key.is_empty() {
        body["prompt_cache_key"] = request.cache_key.as_str().into();
    }
    if let Some((name, value)) = request.effort.and_then(|it| profile.effort.member(it))
        && takes(name)
    {
        body[name] = value;
    }
    body
}

pub fn is_at(settings: &config::Provider, domain: &str) -> bool {
    settings.connection.url().is_ok_and(|it| {
        let host = it.split('/').nth(2).unwrap_or_default();
        host == domain || host.strip_suffix(domain).is_some_and(|it| it.ends_with('.'))
    })
}

/// The conversation in the server's words.
fn messages(request: &ModelRequest, profile: Profile, settings: &config::Provider, learned: &Learned) -> Vec<Value> {
    let mut spelling = Spelling {
        profile,
        ids: Ids::default(),
        messages: Vec::new(),
    };
    if !request.system.is_empty() {
        spelling
            .messages
            .push(json!({ "role": "system", "content": request.system }));
    }
    let replay = learned.replay.unwrap_or_else(|| Replay::of(settings));
    let last_word = request
        .messages
        .iter()
        .rposition(|it| matches!(it, ModelMessage::User(_)));
    for (at, message) in request.messages.iter().enumerate() {
        match message {
            ModelMessage::User(parts) => spelling.user(content(parts)),
            ModelMessage::Assistant(said) => {
                let replays = match replay {
                    Replay::Always => true,
                    Replay::ToolLoop => last_word.is_none_or(|it| at > it),
                    Replay::Never => false,
                };
                let is_owed = profile.wants_reasoning || learned.replay == Some(Replay::Always);
                spelling.assistant(said, replays, replays && is_owed);
            }
            ModelMessage::Results(results) => spelling.results(results),
        }
    }
    spelling.messages
}

struct Spelling<'a> {
    profile: Profile,
    ids: Ids<'a>,
    messages: Vec<Value>,
}

impl<'a> Spelling<'a> {
    fn user(&mut self, content: Value) {
        let last = self.messages.last_mut();
        match last.as_ref().and_then(|it| it.get("role")?.as_str()) {
            Some("tool") if self.profile.wants_bridge => {
                self.messages.push(json!({ "role": "assistant", "content": "Done." }));
            }
            Some("user") if self.profile.wants_turns => {
                if let Some(own) = last.and_then(|it| it.get_mut("content")) {
                    *own = joined(own.take(), content);
                }
                return;
            }
            Some(_) | None => {}
        }
        self.messages.push(json!({ "role": "user", "content": content }));
    }

    fn assistant(&mut self, said: &'a [Said], replays: bool, is_owed: bool) {
        let mut text = String::new();
        let mut calls = Vec::new();
        let mut reasoning = Map::new();
        for part in said {
            match part {
                Said::Text(it) => text.push_str(it),
                Said::Call(call) => {
                    let function = json!({
                        "name": call.name,
                        "arguments": Value::Object(call.arguments.clone()).to_string(),
                    });
                    let id = self.id(&call.id);
                    let mut spelled = json!({ "id": id, "type": "function", "function": function });
                    if let Some(extra) = call.opaque.as_ref().and_then(|it| it.get("extra_content")) {
                        spelled["extra_content"] = extra.clone();
                    }
                    calls.push(spelled);
                }
                Said::Opaque(it) if replays => {
                    for name in REASONING {
                        // What another format's model left has none of these.
                        if let Some(value) = it.get(*name) {
                            reasoning.insert((*name).to_owned(), value.clone());
                        }
                    }
                }
                Said::Opaque(_) => {}
            }
        }
        if is_owed && !calls.is_empty() && reasoning.is_empty() {
            reasoning.insert("reasoning_content".to_owned(), "".into());
        }
        // What says nothing is refused by many and missed by none.
        if text.is_empty() && calls.is_empty() && reasoning.is_empty() {
            return;
        }
        let is_alone = calls.is_empty() && reasoning.is_empty();
        if self.profile.wants_turns
            && is_alone
            && let Some(last) = self.messages.last_mut()
            && last["role"] == "assistant"
            && last.get("tool_calls").is_none()
            && let Some(own) = last.get_mut("content")
        {
            *own = joined(own.take(), text.into());
            return;
        }
        let content = if text.is_empty() && self.profile.has_null_text && !calls.is_empty() {
            Value::Null
        } else {
            text.into()
        };
        let mut message = json!({ "role": "assistant", "content": content });
        for (name, value) in reasoning {
            message[name] = value;
        }
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        self.messages.push(message);
    }

    fn results(&mut self, results: &'a [CallResult]) {
        let mut shown = Vec::new();
        for result in results {
            let id = self.id(&result.call);
            self.messages
                .push(json!({ "role": "tool", "tool_call_id": id, "content": result.text }));
            if !result.images.is_empty() {
                shown.push(json!({ "type": "text", "text": format!("The images that {} gave:", result.name) }));
                shown.extend(result.images.iter().map(image));
            }
        }
        // Results are text only; what else they hold, the user shows.
        if !shown.is_empty() {
            self.user(shown.into());
        }
    }

    fn id(&mut self, id: &'a str) -> String {
        if self.profile.has_short_ids {
            self.ids.short(id)
        } else {
            id.to_owned()
        }
    }
}

/// Members of a message that bear reasoning, as servers name them.
const REASONING: &[&str] = &["reasoning_content", "reasoning", "thinking", "reasoning_details"];

/// Ids of nine letters and digits, the same for the same id in every request: they are part of what servers cache.
#[derive(Default)]
struct Ids<'a>(Vec<(&'a str, String)>);

impl<'a> Ids<'a> {
    const LENGTH: usize = 9;

    fn short(&mut self, id: &'a str) -> String {
        if let Some((_, short)) = self.0.iter().rev().find(|(own, _)| *own == id) {
            return short.clone();
        }
        let is_short = id.len() == Self::LENGTH && id.chars().all(|it| it.is_ascii_alphanumeric());
        let mut short = if is_short { id.to_owned() } else { Self::digits(id, 0) };
        let mut salt = 0;
        while self.0.iter().any(|(_, it)| *it == short) {
            salt += 1;
            short = Self::digits(id, salt);
        }
        self.0.push((id, short.clone()));
        short
    }

    /// Digits of the hash of `id` (FNV-1a) to the base 36.
    fn digits(id: &str, salt: u64) -> String {
        let start = 0xcbf2_9ce4_8422_2325_u64.wrapping_add(salt);
        let mut hash = id.bytes().fold(start, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut digits = String::with_capacity(Self::LENGTH);
        for _ in 0..Self::LENGTH {
            digits.extend(char::from_digit((hash % 36) as u32, 36));
            hash /= 36;
        }
        digits
    }
}

/// Returns the user's content: a plain string if it is nothing but text, which every server understands.
fn content(parts: &[Part]) -> Value {
    let text: Vec<&str> = parts
        .iter()
        .filter_map(|it| match it {
            Part::Text(it) => Some(it.as_str()),
            Part::Image(_) => None,
        })
        .collect();
    if text.len() == parts.len() {
        return text.join("\n\n").into();
    }
    let spell = |part: &Part| match part {
        Part::Text(it) => json!({ "type": "text", "text": it }),
        Part::Image(it) => image(it),
    };
    parts.iter().map(spell).collect()
}

fn image(image: &Image) -> Value {
    let data = base64::engine::general_purpose::STANDARD.encode(&image.bytes);
    let url = format!("data:{};base64,{data}", image.media_type);
    json!({ "type": "image_url", "image_url": { "url": url } })
}

/// Joins two contents: a text, or a list of parts if either is one.
fn joined(one: Value, two: Value) -> Value {
    let list = |it: Value| match it {
        Value::Array(parts) => parts,
        Value::String(text) if text.is_empty() => Vec::new(),
        other => vec![json!({ "type": "text", "text": other })],
    };
    match (one, two) {
        (Value::String(one), Value::String(two)) if one.is_empty() || two.is_empty() => (one + &two).into(),
        (Value::String(one), Value::String(two)) => format!("{one}\n\n{two}").into(),
        (one, two) => list(one).into_iter().chain(list(two)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pretty_assertions::assert_eq;

    use super::*;
    use crate::models::Call;

    fn spelled(request: &ModelRequest, settings: &config::Provider) -> Value {
        body(request, settings, &Learned::default())
    }

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
            system: "Be brief.".to_owned().into(),
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
        assert_eq!(spelled(&request, &strict), bare, "nothing optional is allowed");
        let usage = json!({ "include_usage": true });
        assert_eq!(
            spelled(&request, &config::Provider::default()),
            with("stream_options", usage),
            "the default"
        );
        let limited = config::Provider {
            max_tokens: Some(9),
            temperature: Some(0.5),
            ..strict.clone()
        };
        assert_eq!(
            spelled(&request, &limited),
            with("max_tokens", 9.into()),
            "a limit, and no temperature"
        );
        let modern = config::Provider {
            allow_fields: Some(vec!["max_completion_tokens".to_owned(), "temperature".to_owned()]),
            ..limited
        };
        let mut want = with("max_completion_tokens", 9.into());
        want["temperature"] = 0.5.into();
        assert_eq!(spelled(&request, &modern), want, "the new name, and a temperature");
        let openai = config::Provider {
            connection: config::Connection::default().at("https://api.openai.com/v1"),
            max_tokens: Some(9),
            ..strict
        };
        assert_eq!(
            spelled(&request, &openai),
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
        assert_eq!(spelled(&ModelRequest::default(), &strict), empty);
    }

    fn at(url: &str) -> config::Provider {
        config::Provider {
            connection: config::Connection::default().at(url),
            ..config::Provider::default()
        }
    }

    fn call(id: &str, opaque: Option<Value>) -> Said {
        Said::Call(Call {
            id: id.to_owned(),
            name: "ls".to_owned(),
            arguments: Map::from_iter([("path".to_owned(), ".".into())]),
            opaque,
        })
    }

    fn result(call: &str, images: usize) -> CallResult {
        let image = Image {
            media_type: "image/png".to_owned(),
            bytes: Arc::from(*b"png"),
        };
        CallResult {
            call: call.to_owned(),
            name: "ls".to_owned(),
            text: "a b".to_owned(),
            is_error: false,
            images: vec![image; images],
        }
    }

    fn conversation(model: &str, messages: Vec<ModelMessage>) -> ModelRequest {
        ModelRequest {
            model: model.to_owned(),
            messages,
            ..ModelRequest::default()
        }
    }

    fn spelled_messages(url: &str, model: &str, messages: Vec<ModelMessage>, learned: &Learned) -> Value {
        body(&conversation(model, messages), &at(url), learned)["messages"].take()
    }

    const OPENAI: &str = "https://api.openai.com/v1";
    const MISTRAL: &str = "https://api.mistral.ai/v1";
    const DEEPSEEK: &str = "https://api.deepseek.com/v1";
    const LOCAL: &str = "http://127.0.0.1:8080/v1";

    #[test]
    fn mistral_gets_short_ids_and_a_word_between_result_and_user() {
        let messages = vec![
            ModelMessage::user("look"),
            ModelMessage::Assistant(vec![call("call_with_a_long_id", None), call("abcDEF123", None)]),
            ModelMessage::Results(vec![result("call_with_a_long_id", 0), result("abcDEF123", 0)]),
            ModelMessage::user("and?"),
        ];
        let got = spelled_messages(MISTRAL, "mistral-large-latest", messages.clone(), &Learned::default());
        let id = got[1]["tool_calls"][0]["id"].as_str().expect("an id").to_owned();
        assert!(id.len() == 9 && id.chars().all(|it| it.is_ascii_alphanumeric()), "{id}");
        assert_eq!(got[2]["tool_call_id"], id.as_str(), "the pair is kept");
        assert_eq!(
            got[1]["tool_calls"][1]["id"], "abcDEF123",
            "what is short already stays"
        );
        let roles: Vec<&str> = got
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|it| it["role"].as_str())
            .collect();
        assert_eq!(roles, ["user", "assistant", "tool", "tool", "assistant", "user"]);
        let again = spelled_messages(MISTRAL, "mistral-large-latest", messages.clone(), &Learned::default());
        assert_eq!(got, again, "the same in every request");
        let local = spelled_messages(
            LOCAL,
            "mlx-community/Devstral-Small-4bit",
            messages.clone(),
            &Learned::default(),
        );
        assert_eq!(
            local[1]["tool_calls"][0]["id"],
            id.as_str(),
            "its templates are strict everywhere"
        );
        let openai = spelled_messages(OPENAI, "gpt-4.1", messages, &Learned::default());
        assert_eq!(openai[1]["tool_calls"][0]["id"], "call_with_a_long_id");
        assert_eq!(openai.as_array().map(Vec::len), Some(5));
        let mut ids = Ids::default();
        let names: Vec<String> = (0..5000).map(|it| format!("call_{it}")).collect();
        let short: std::collections::HashSet<String> = names.iter().map(|it| ids.short(it)).collect();
        assert_eq!(short.len(), names.len(), "no two are the same");
        let body = spelled(&conversation("mistral-large-latest", Vec::new()), &at(MISTRAL));
        assert_eq!(body.get("stream_options"), None, "it refuses what it does not know");
    }

    #[test]
    fn reasoning_goes_back_when_it_is_wanted_and_under_its_name() {
        let thought = |name: &str| Said::Opaque(json!({ name: format!("{name}!") }));
        let details = Said::Opaque(
            json!({ "reasoning": "hm", "reasoning_details": [{ "type": "reasoning.encrypted", "data": "x" }] }),
        );
        let messages = vec![
            ModelMessage::Assistant(vec![thought("reasoning_content"), Said::Text("hi".into())]),
            ModelMessage::user("look"),
            ModelMessage::Assistant(vec![thought("reasoning"), call("a", None)]),
            ModelMessage::Results(vec![result("a", 0)]),
            ModelMessage::Assistant(vec![
                details,
                Said::Opaque(json!({ "type": "thinking", "signature": "of another format" })),
                call("b", None),
            ]),
            ModelMessage::Results(vec![result("b", 0)]),
            ModelMessage::Assistant(vec![call("c", None)]),
            ModelMessage::Results(vec![result("c", 0)]),
        ];
        let reasoning = |url: &str, learned: &Learned, setting: &str| {
            let settings = config::Provider {
                replay_reasoning: setting.to_owned(),
                ..at(url)
            };
            let got = body(&conversation("m", messages.clone()), &settings, learned)["messages"].take();
            let of = |it: &Value| {
                let all = it.as_object().into_iter().flatten();
                let all = all
                    .filter(|(name, _)| name.starts_with("reasoning"))
                    .map(|(name, it)| format!("{name}={it}"));
                all.collect::<Vec<_>>().join(" ")
            };
            let turns = got
                .as_array()
                .into_iter()
                .flatten()
                .filter(|it| it["role"] == "assistant");
            turns.map(of).collect::<Vec<_>>()
        };
        let detailed = r#"reasoning="hm" reasoning_details=[{"type":"reasoning.encrypted","data":"x"}]"#;
        let plain = Learned::default();
        assert_eq!(
            reasoning(LOCAL, &plain, "tool_loop"),
            ["", r#"reasoning="reasoning!""#, detailed, ""]
        );
        assert_eq!(reasoning(LOCAL, &plain, "never"), ["", "", "", ""]);
        assert_eq!(
            reasoning(LOCAL, &plain, "always"),
            [
                r#"reasoning_content="reasoning_content!""#,
                r#"reasoning="reasoning!""#,
                detailed,
                ""
            ]
        );
        let owed = r#"reasoning_content="""#;
        assert_eq!(
            reasoning(DEEPSEEK, &plain, "tool_loop"),
            ["", r#"reasoning="reasoning!""#, detailed, owed]
        );
        let flipped = |replay| Learned {
            replay: Some(replay),
            ..Learned::default()
        };
        assert_eq!(reasoning(LOCAL, &flipped(Replay::Always), "tool_loop")[3], owed);
        assert_eq!(reasoning(DEEPSEEK, &flipped(Replay::Never), "always"), ["", "", "", ""]);
    }

    #[test]
    fn images_in_results_are_shown_by_the_user() {
        let messages = vec![
            ModelMessage::Assistant(vec![call("a", None), call("b", None)]),
            ModelMessage::Results(vec![result("a", 1), result("b", 0)]),
            ModelMessage::user("nice"),
        ];
        let url = json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,cG5n" } });
        let sentence = json!({ "type": "text", "text": "The images that ls gave:" });
        let got = spelled_messages(OPENAI, "gpt-4.1", messages.clone(), &Learned::default());
        assert_eq!(got[3], json!({ "role": "user", "content": [sentence, url] }));
        assert_eq!(got[4], json!({ "role": "user", "content": "nice" }));
        let local = spelled_messages(LOCAL, "qwen3-vl", messages, &Learned::default());
        assert_eq!(
            local[3],
            json!({ "role": "user", "content": [sentence, url, { "type": "text", "text": "nice" }] })
        );
        assert_eq!(local.as_array().map(Vec::len), Some(4));
    }

    #[test]
    fn neighbours_of_one_side_are_joined_where_sides_take_turns_and_nothing_is_said_by_nobody() {
        let messages = vec![
            ModelMessage::user("a"),
            ModelMessage::user("b"),
            ModelMessage::assistant(""),
            ModelMessage::assistant("c"),
            ModelMessage::assistant("d"),
        ];
        let said = |url: &str| {
            let got = spelled_messages(url, "m", messages.clone(), &Learned::default());
            let all = got.as_array().into_iter().flatten();
            all.map(|it| format!("{}: {}", it["role"], it["content"]).replace('"', ""))
                .collect::<Vec<_>>()
        };
        assert_eq!(said(LOCAL), ["user: a\\n\\nb", "assistant: c\\n\\nd"]);
        assert_eq!(said(OPENAI), ["user: a", "user: b", "assistant: c", "assistant: d"]);
    }

    #[test]
    fn no_text_beside_calls_is_said_as_the_server_says_it() {
        let signature = json!({ "google": { "thought_signature": "s" } });
        let messages = vec![ModelMessage::Assistant(vec![
            call("a", Some(json!({ "extra_content": signature }))),
            call("b", Some(json!({ "thoughtSignature": "of another format" }))),
        ])];
        for (url, want) in [
            (OPENAI, Value::Null),
            ("https://openrouter.ai/api/v1", Value::Null),
            (LOCAL, "".into()),
            (MISTRAL, "".into()),
        ] {
            let got = spelled_messages(url, "m", messages.clone(), &Learned::default());
            assert_eq!(got[0]["content"], want, "{url}");
            assert_eq!(
                got[0]["tool_calls"][0]["extra_content"], signature,
                "it goes back with its call"
            );
            assert_eq!(got[0]["tool_calls"][1].get("extra_content"), None);
        }
    }

    #[test]
    fn what_a_server_refused_is_not_sent_again() {
        let request = ModelRequest {
            tools: vec![
                crate::models::ToolSpec {
                    name: "ls".to_owned(),
                    aliases: Vec::new(),
                    about: String::new().into(),
                    parameters: json!({ "type": "object" }).into(),
                }
                .into(),
            ],
            effort: Some(crate::models::Effort::High),
            ..conversation("m", Vec::new())
        };
        let settings = config::Provider {
            max_tokens: Some(9),
            ..at(LOCAL)
        };
        let members = |learned: &Learned| {
            let body = body(&request, &settings, learned);
            let names: Vec<String> = body
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name.clone())
                .collect();
            names[4..].join(" ")
        };
        assert_eq!(
            members(&Learned::default()),
            "parallel_tool_calls stream_options max_tokens reasoning_effort"
        );
        let learned = Learned {
            refused: ["parallel_tool_calls", "reasoning_effort"].into(),
            swaps_limit: true,
            ..Learned::default()
        };
        assert_eq!(members(&learned), "stream_options max_completion_tokens");
    }
}
