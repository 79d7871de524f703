//! The request for a message: address and body. Pure.
//!
//! The server is strict about form: sides alternate, a call's result stands at the very beginning of what follows it,
//! no text is blank. Thoughts stay at their places among the calls: their proof holds there only.

use base64::Engine;
use serde_json::{Value, json};

use super::family::{Family, Thinking};
use crate::{
    config,
    models::{CallResult, Effort, Image, ModelMessage, ModelRequest, Part, Said, ToolSpec, tool_pairing::paired},
    net::client::Url,
};

/// The address under which `v1/…` lies, from one as users paste it.
pub fn base(pasted: &Url) -> Url {
    let mut url = pasted.clone();
    url.set_fragment(None);
    let mut path = pasted.path().trim_end_matches('/');
    for ending in ["/messages", "/models", "/v1"] {
        path = path.strip_suffix(ending).unwrap_or(path).trim_end_matches('/');
    }
    url.set_path(path);
    url
}

/// Returns the request body for a server that knows the format, with the configured options; a `plain` one omits
/// thinking.
pub fn body(request: &ModelRequest, settings: &config::Provider, plain: bool) -> Value {
    let takes = |field: &str| {
        let allowed = settings.allow_fields.as_ref();
        allowed.is_none_or(|it| it.iter().any(|it| it == field))
    };
    let family = Family::of(&request.model);
    let most = settings.max_tokens.unwrap_or(family.output);
    let mut messages = Conversation::of(&request.messages, settings.replay_reasoning != "never").0;
    let (thinking, effort) = if takes("thinking") && !plain {
        think(request.effort, family, most, &messages)
    } else {
        (None, None)
    };
    let mut body = json!({ "model": request.model, "max_tokens": most, "stream": true });
    let mut tools: Vec<Value> = request.tools.iter().map(|it| tool(it)).collect();
    let mut system = Vec::new();
    if !request.system.trim().is_empty() {
        system.push(json!({ "type": "text", "text": request.system }));
    }
    if takes("cache_control") {
        let last = |blocks: &mut Vec<Value>| blocks.last_mut().map(mark);
        last(&mut tools);
        last(&mut system);
        let users = messages.iter_mut().rev().filter(|it| it.role == Role::User);
        for turn in users.take(2) {
            last(&mut turn.blocks);
        }
    }
    if !system.is_empty() {
        body["system"] = system.into();
    }
    if !tools.is_empty() {
        body["tools"] = tools.into();
    }
    let is_thinking = thinking.as_ref().is_some_and(|it| it["type"] != "disabled");
    if let Some(thinking) = thinking {
        body["thinking"] = thinking;
    }
    if let Some(effort) = effort
        && takes("output_config")
    {
        body["output_config"] = json!({ "effort": effort });
    }
    if let Some(temperature) = settings.temperature
        && takes("temperature")
        && family.has_temperature
        && !is_thinking
        && !plain
    {
        body["temperature"] = temperature.into();
    }
    body["messages"] = messages
        .into_iter()
        .map(|it| json!({ "role": it.role.word(), "content": it.blocks }))
        .collect();
    body
}

/// The version of the server's own web search, and how often it may search for one answer.
const SEARCH: (&str, u64) = ("web_search_20250305", 8);

fn tool(spec: &ToolSpec) -> Value {
    if spec.is_at_provider() {
        return json!({ "type": SEARCH.0, "name": spec.name, "max_uses": SEARCH.1 });
    }
    let mut schema = Value::clone(&spec.parameters);
    if let Value::Object(members) = &mut schema {
        members.entry("type").or_insert_with(|| "object".into());
    } else {
        schema = json!({ "type": "object", "properties": {} });
    }
    let mut tool = json!({ "name": spec.name, "input_schema": schema });
    if !spec.about.trim().is_empty() {
        tool["description"] = (*spec.about).into();
    }
    tool
}

/// Up to here, the next request will most likely be the same.
fn mark(block: &mut Value) {
    block["cache_control"] = json!({ "type": "ephemeral" });
}

/// The members `thinking` and `output_config.effort`.
fn think(effort: Option<Effort>, family: Family, most: u64, turns: &[Turn]) -> (Option<Value>, Option<&'static str>) {
    // Newer models show nothing of their thoughts unless they are asked to.
    let adaptive = || Some(json!({ "type": "adaptive", "display": "summarized" }));
    // A budget has to be a number; the adaptive ones choose for themselves.
    let effort = match family.thinking {
        Thinking::Budget if family.is_eager => effort.or(Some(Effort::Medium)),
        Thinking::Budget | Thinking::Adaptive { .. } | Thinking::Never => effort,
    };
    match (family.thinking, effort) {
        (Thinking::Adaptive { .. }, None) if family.is_eager => (adaptive(), None),
        (Thinking::Adaptive { .. }, Some(Effort::Low)) => (adaptive(), Some("low")),
        (Thinking::Adaptive { .. }, Some(Effort::Medium)) => (adaptive(), Some("medium")),
        (Thinking::Adaptive { .. }, Some(Effort::High)) => (adaptive(), Some("high")),
        (
            Thinking::Adaptive {
                by_default: true,
                can_stop,
            },
            Some(Effort::Off),
        ) => {
            if can_stop {
                (Some(json!({ "type": "disabled" })), None)
            } else {
                (adaptive(), Some("low"))
            }
        }
        (Thinking::Budget, Some(effort @ (Effort::Low | Effort::Medium | Effort::High))) => {
            let wanted = match effort {
                Effort::Off | Effort::Low => 4_096,
                Effort::Medium => 12_000,
                Effort::High => 24_000,
            };
            // It counts towards the whole, of which something must be left for the answer.
            let budget = wanted.min(most / 2);
            let fits = budget >= LEAST_BUDGET && goes_on_thinking(turns);
            (
                fits.then(|| json!({ "type": "enabled", "budget_tokens": budget })),
                None,
            )
        }
        (Thinking::Adaptive { .. } | Thinking::Budget, None)
        | (Thinking::Adaptive { by_default: false, .. } | Thinking::Budget, Some(Effort::Off))
        | (Thinking::Never, _) => (None, None),
    }
}

/// The value of `anthropic-beta` with which a model that thinks with a budget also thinks between calls; newer models do
/// so by themselves. `None`: it is not needed.
pub fn beta(body: &Value) -> Option<&'static str> {
    let has_budget = body.pointer("/thinking/budget_tokens").is_some();
    (has_budget && body.get("tools").is_some()).then_some("interleaved-thinking-2025-05-14")
}

/// The server takes no smaller one.
const LEAST_BUDGET: u64 = 1_024;

/// In the midst of calls, thinking with a budget cannot be switched on: what the model said must begin with a thought.
fn goes_on_thinking(turns: &[Turn]) -> bool {
    let kind = |it: &Value| it["type"].as_str().unwrap_or_default().to_owned();
    let awaits = turns
        .last()
        .is_some_and(|it| it.role == Role::User && it.blocks.first().is_some_and(|it| kind(it) == "tool_result"));
    let said = turns.iter().rfind(|it| it.role == Role::Assistant);
    let begins = said.and_then(|it| it.blocks.first()).map(kind);
    !awaits || begins.is_none_or(|it| it == "thinking" || it == "redacted_thinking")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
}

impl Role {
    const fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

#[derive(Debug)]
struct Turn {
    role: Role,
    blocks: Vec<Value>,
}

/// The sides in turns.
struct Conversation(Vec<Turn>);

impl Conversation {
    fn of(messages: &[ModelMessage], with_thoughts: bool) -> Self {
        let mut all = Self(Vec::new());
        for message in paired(messages) {
            match message {
                ModelMessage::User(parts) => all.add(Role::User, parts.iter().filter_map(part).collect()),
                ModelMessage::Assistant(said) => {
                    let blocks = said.into_iter().filter_map(|it| match it {
                        Said::Text(text) => text_block(&text),
                        Said::Opaque(block) if is_search(&block) => Some(block),
                        Said::Opaque(block) => (with_thoughts && is_thought(&block)).then_some(block),
                        Said::Call(it) => {
                            Some(json!({ "type": "tool_use", "id": it.id, "name": it.name, "input": it.arguments }))
                        }
                    });
                    all.add(Role::Assistant, blocks.collect());
                }
                ModelMessage::Results(results) => {
                    let mut blocks: Vec<Value> = results.iter().map(result).collect();
                    let failed = results.iter().filter(|it| it.is_error);
                    blocks.extend(failed.flat_map(|it| &it.images).map(image));
                    all.add(Role::User, blocks);
                }
            }
        }
        all.pair_searches();
        all.finish();
        all
    }

    /// Neighbours of one side are one turn.
    fn add(&mut self, role: Role, blocks: Vec<Value>) {
        if blocks.is_empty() {
            return;
        }
        match self.0.last_mut().filter(|it| it.role == role) {
            Some(turn) => turn.blocks.extend(blocks),
            None => self.0.push(Turn { role, blocks }),
        }
    }

    /// Removes the parts of searches that were cut off: the server takes a search with its result only, but for one at the very
    /// end, which it goes on with.
    fn pair_searches(&mut self) {
        let last = self.0.len().saturating_sub(1);
        for (at, turn) in self.0.iter_mut().enumerate() {
            let ids = |kind: &str, name: &str| -> Vec<Value> {
                let of_kind = turn.blocks.iter().filter(|it| it["type"] == kind);
                of_kind.map(|it| it[name].clone()).collect()
            };
            let (asked, found) = (
                ids("server_tool_use", "id"),
                ids("web_search_tool_result", "tool_use_id"),
            );
            let end = turn.blocks.len().saturating_sub(1);
            let mut place = 0;
            turn.blocks.retain(|it| {
                let is_end = at == last && place == end;
                place += 1;
                match it["type"].as_str() {
                    Some("server_tool_use") => is_end || found.contains(&it["id"]),
                    Some("web_search_tool_result") => asked.contains(&it["tool_use_id"]),
                    Some(_) | None => true,
                }
            });
        }
        self.0.retain(|it| !it.blocks.is_empty());
    }

    fn finish(&mut self) {
        for turn in &mut self.0 {
            if turn.role == Role::User {
                turn.blocks.sort_by_key(|it| it["type"] != "tool_result");
            }
        }
        if self.0.first().is_some_and(|it| it.role == Role::Assistant) {
            let blocks = vec![json!({ "type": "text", "text": "(What was said before is not shown.)" })];
            self.0.insert(
                0,
                Turn {
                    role: Role::User,
                    blocks,
                },
            );
        }
        // What is to be continued must not end in white space.
        if let Some(turn) = self.0.last_mut().filter(|it| it.role == Role::Assistant)
            && let Some(block) = turn.blocks.last_mut()
            && let Some(text) = block.get("text").and_then(Value::as_str)
        {
            block["text"] = text.trim_end().into();
        }
    }
}

fn part(part: &Part) -> Option<Value> {
    match part {
        Part::Text(text) => text_block(text),
        Part::Image(it) => Some(image(it)),
    }
}

/// Nothing for a blank one, which the server refuses.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

fn image(image: &Image) -> Value {
    let data = base64::engine::general_purpose::STANDARD.encode(&image.bytes);
    json!({ "type": "image", "source": { "type": "base64", "media_type": image.media_type, "data": data } })
}

/// A search of the server, or its result, which goes back unchanged.
fn is_search(block: &Value) -> bool {
    matches!(
        block.get("type").and_then(Value::as_str),
        Some("server_tool_use" | "web_search_tool_result")
    )
}

/// A thought that carries its maker's proof; one without is refused.
fn is_thought(block: &Value) -> bool {
    let says = |name: &str| {
        block
            .get(name)
            .and_then(Value::as_str)
            .is_some_and(|it| !it.trim().is_empty())
    };
    match block.get("type").and_then(Value::as_str) {
        Some("thinking") => says("signature") && block.get("thinking").is_some_and(Value::is_string),
        Some("redacted_thinking") => says("data"),
        Some(_) | None => false,
    }
}

fn result(result: &CallResult) -> Value {
    let mut block = json!({ "type": "tool_result", "tool_use_id": result.call });
    // An error holds text only; its images follow the results.
    if result.images.is_empty() || result.is_error {
        if !result.text.trim().is_empty() {
            block["content"] = result.text.as_str().into();
        }
    } else {
        let blocks = text_block(&result.text).into_iter();
        block["content"] = blocks.chain(result.images.iter().map(image)).collect();
    }
    if result.is_error {
        block["is_error"] = true.into();
    }
    block
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pretty_assertions::assert_eq;

    use super::*;
    use crate::models::Call;

    fn asked(model: &str, messages: Vec<ModelMessage>) -> ModelRequest {
        ModelRequest {
            model: model.to_owned(),
            messages,
            ..ModelRequest::default()
        }
    }

    fn call(id: &str) -> Said {
        Said::Call(Call {
            id: id.to_owned(),
            name: "read".to_owned(),
            arguments: serde_json::Map::from_iter([("path".to_owned(), "a".into())]),
            opaque: None,
        })
    }

    fn result(id: &str, text: &str) -> CallResult {
        CallResult {
            call: id.to_owned(),
            name: "read".to_owned(),
            text: text.to_owned(),
            is_error: false,
            images: Vec::new(),
        }
    }

    fn pixel() -> Image {
        Image {
            media_type: "image/png".to_owned(),
            bytes: Arc::from(*b"png"),
        }
    }

    /// Settings without marks for the cache, which are a test of their own.
    fn bare() -> config::Provider {
        config::Provider {
            allow_fields: Some(["thinking", "output_config", "temperature"].map(str::to_owned).to_vec()),
            ..config::Provider::default()
        }
    }

    fn messages(messages: Vec<ModelMessage>) -> Value {
        body(&asked("claude-opus-4-6", messages), &bare(), false)["messages"].clone()
    }

    #[test]
    fn addresses_are_taken_as_they_are_pasted() {
        for (pasted, want) in [
            ("https://api.anthropic.com", "https://api.anthropic.com/"),
            ("https://api.anthropic.com/v1", "https://api.anthropic.com/"),
            ("https://api.anthropic.com/v1/messages/", "https://api.anthropic.com/"),
            ("https://api.anthropic.com/v1/models#x", "https://api.anthropic.com/"),
            (
                "https://api.deepseek.com/anthropic",
                "https://api.deepseek.com/anthropic",
            ),
            ("http://127.0.0.1:4000/v1?a=b", "http://127.0.0.1:4000/?a=b"),
        ] {
            assert_eq!(base(&Url::parse(pasted).expect(pasted)).as_str(), want, "{pasted}");
        }
    }

    #[test]
    fn sides_alternate_and_results_stand_first() {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let used = |id: &str| json!({ "type": "tool_use", "id": id, "name": "read", "input": { "path": "a" } });
        let came = |id: &str, text: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": text });
        assert_eq!(
            messages(vec![
                ModelMessage::user("one"),
                ModelMessage::User(vec![
                    Part::Text(" \n".to_owned()),
                    Part::Text("two".to_owned()),
                    Part::Image(pixel())
                ]),
                ModelMessage::Assistant(vec![
                    Said::Text("".into()),
                    Said::Text("I look.".into()),
                    call("t1"),
                    call("t2")
                ]),
                ModelMessage::Results(vec![result("t1", "x"), result("t2", "y")]),
                ModelMessage::user("go on"),
                ModelMessage::assistant("  "),
                ModelMessage::user("well?"),
            ]),
            json!([
                { "role": "user", "content": [
                    text("one"),
                    text("two"),
                    { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "cG5n" } },
                ] },
                { "role": "assistant", "content": [text("I look."), used("t1"), used("t2")] },
                { "role": "user", "content": [came("t1", "x"), came("t2", "y"), text("go on"), text("well?")] },
            ])
        );
        assert_eq!(
            messages(vec![ModelMessage::assistant("a"), ModelMessage::assistant("b \n")]),
            json!([
                { "role": "user", "content": [text("(What was said before is not shown.)")] },
                { "role": "assistant", "content": [text("a"), text("b")] },
            ]),
            "the user begins, and what is continued does not end in white space"
        );
    }

    #[test]
    fn results_carry_images_unless_they_are_errors() {
        let image =
            json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "cG5n" } });
        let of = |is_error: bool| {
            let one = CallResult {
                is_error,
                images: vec![pixel()],
                ..result("t1", "seen")
            };
            messages(vec![
                ModelMessage::Assistant(vec![call("t1")]),
                ModelMessage::Results(vec![one]),
            ])[2]["content"]
                .clone()
        };
        let seen = json!({ "type": "text", "text": "seen" });
        assert_eq!(
            of(false),
            json!([{ "type": "tool_result", "tool_use_id": "t1", "content": [seen, image] }])
        );
        assert_eq!(
            of(true),
            json!([{ "type": "tool_result", "tool_use_id": "t1", "content": "seen", "is_error": true }, image])
        );
    }

    #[test]
    fn the_servers_own_search_is_a_tool_and_goes_back_with_its_result() {
        let mut asked = asked("claude-opus-4-6", vec![ModelMessage::user("go")]);
        asked.tools = vec![ToolSpec::at_provider("web_search").into()];
        assert_eq!(
            body(&asked, &bare(), false)["tools"],
            json!([{ "type": "web_search_20250305", "name": "web_search", "max_uses": 8 }])
        );
        let used =
            |id: &str| json!({ "type": "server_tool_use", "id": id, "name": "web_search", "input": { "query": "q" } });
        let found = |id: &str| {
            json!({ "type": "web_search_tool_result", "tool_use_id": id,
                    "content": [{ "type": "web_search_result", "url": "https://a.example", "encrypted_content": "Eq" }] })
        };
        let kinds = |said: Vec<Value>, is_over: bool| -> Vec<Value> {
            let said = said.into_iter().map(Said::Opaque).chain([Said::Text("so".into())]);
            let said = if is_over {
                said.collect()
            } else {
                said.filter(|it| !matches!(it, Said::Text(_))).collect()
            };
            let mut all = vec![ModelMessage::user("go"), ModelMessage::Assistant(said)];
            all.extend(is_over.then(|| ModelMessage::user("and?")));
            let said = messages(all)[1]["content"].clone();
            said.as_array().cloned().unwrap_or_default()
        };
        let text = json!({ "type": "text", "text": "so" });
        assert_eq!(
            kinds(vec![used("1"), found("1")], true),
            [used("1"), found("1"), text.clone()],
            "unchanged"
        );
        assert_eq!(
            kinds(vec![used("1"), used("2"), found("2")], true),
            [used("2"), found("2"), text.clone()]
        );
        assert_eq!(kinds(vec![found("1")], true), [text]);
        assert_eq!(kinds(vec![used("1")], false), [used("1")], "the server goes on with it");
    }

    #[test]
    fn thoughts_with_their_proof_go_back_at_their_places() {
        let thought = |signature: &str| json!({ "type": "thinking", "thinking": "", "signature": signature });
        let hidden = json!({ "type": "redacted_thinking", "data": "c2Vj" });
        let said = vec![
            Said::Opaque(thought("a")),
            Said::Opaque(hidden),
            Said::Opaque(thought(" ")),
            Said::Opaque(json!([{ "type": "reasoning.text" }])),
            call("t1"),
            Said::Opaque(thought("b")),
            call("t2"),
        ];
        let of = |settings: &config::Provider| {
            let asked = asked(
                "claude-opus-4-6",
                vec![ModelMessage::user("go"), ModelMessage::Assistant(said.clone())],
            );
            let blocks = body(&asked, settings, false)["messages"][1]["content"].clone();
            blocks
                .as_array()
                .expect("blocks")
                .iter()
                .map(|it| it["type"].as_str().unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of(&bare()),
            ["thinking", "redacted_thinking", "tool_use", "thinking", "tool_use"]
        );
        let never = config::Provider {
            replay_reasoning: "never".to_owned(),
            ..bare()
        };
        assert_eq!(of(&never), ["tool_use", "tool_use"]);
    }

    #[test]
    fn what_stays_the_same_is_marked_for_the_cache_and_no_more_than_four() {
        let mut asked = asked(
            "claude-opus-4-6",
            vec![
                ModelMessage::user("one"),
                ModelMessage::assistant("a"),
                ModelMessage::user("two"),
                ModelMessage::Assistant(vec![call("t1")]),
                ModelMessage::Results(vec![result("t1", "x")]),
            ],
        );
        asked.system = "Be brief.".to_owned().into();
        let spec = |name: &str| ToolSpec {
            name: name.to_owned(),
            aliases: Vec::new(),
            about: "About.".to_owned().into(),
            parameters: json!({ "type": "object", "properties": {} }).into(),
        };
        asked.tools = vec![spec("read").into(), spec("list").into()];
        let whole = body(&asked, &config::Provider::default(), false);
        let marked: Vec<&str> = [
            "/tools/0",
            "/tools/1",
            "/system/0",
            "/messages/0/content/0",
            "/messages/2/content/0",
            "/messages/4/content/0",
        ]
        .into_iter()
        .filter(|it| {
            whole
                .pointer(it)
                .is_some_and(|it| it["cache_control"] == json!({ "type": "ephemeral" }))
        })
        .collect();
        assert_eq!(
            marked,
            [
                "/tools/1",
                "/system/0",
                "/messages/2/content/0",
                "/messages/4/content/0"
            ]
        );
        assert_eq!(whole.to_string().matches("cache_control").count(), 4);
        assert!(
            !body(&asked, &bare(), false).to_string().contains("cache_control"),
            "where it is not allowed"
        );
        assert_eq!(
            whole["tools"][0],
            json!({ "name": "read", "description": "About.", "input_schema": { "type": "object", "properties": {} } })
        );
    }

    #[test]
    fn each_model_is_made_to_think_as_it_can() {
        let adaptive = json!({ "type": "adaptive", "display": "summarized" });
        let budget = |tokens: u64| json!({ "type": "enabled", "budget_tokens": tokens });
        let none = Value::Null;
        // Model, effort, thinking, word of the effort, temperature kept.
        let cases = [
            ("claude-opus-4-6", None, adaptive.clone(), "", false),
            ("claude-sonnet-4-5", None, budget(12_000), "", false),
            ("claude-sonnet-4-5", Some(Effort::Off), none.clone(), "", true),
            ("claude-opus-4-1", None, none.clone(), "", true),
            ("claude-opus-4-6", Some(Effort::Off), none.clone(), "", true),
            ("claude-opus-4-6", Some(Effort::Low), adaptive.clone(), "low", false),
            ("claude-opus-4-7", Some(Effort::High), adaptive.clone(), "high", false),
            ("claude-opus-4-7", None, none.clone(), "", false),
            ("claude-sonnet-5", None, adaptive.clone(), "", false),
            (
                "claude-sonnet-5",
                Some(Effort::Off),
                json!({ "type": "disabled" }),
                "",
                false,
            ),
            ("claude-opus-5-5", Some(Effort::Off), adaptive.clone(), "low", false),
            ("claude-opus-5-5", Some(Effort::Medium), adaptive, "medium", false),
            ("claude-haiku-4-5", None, budget(12_000), "", false),
            ("claude-haiku-4-5", Some(Effort::Low), budget(4_096), "", false),
            ("claude-haiku-4-5", Some(Effort::High), budget(24_000), "", false),
            ("claude-3-5-sonnet-latest", Some(Effort::High), none, "", true),
            ("qwen", Some(Effort::High), budget(4_096), "", false),
        ];
        let settings = config::Provider {
            temperature: Some(0.5),
            ..bare()
        };
        for (model, effort, thinking, word, has_temperature) in cases {
            let asked = ModelRequest {
                effort,
                ..asked(model, vec![ModelMessage::user("go")])
            };
            let whole = body(&asked, &settings, false);
            assert_eq!(whole["thinking"], thinking, "{model} {effort:?}");
            assert_eq!(
                whole["output_config"]["effort"].as_str().unwrap_or_default(),
                word,
                "{model} {effort:?}"
            );
            assert_eq!(
                whole.get("temperature").is_some(),
                has_temperature,
                "{model} {effort:?}"
            );
            if let Some(tokens) = whole["thinking"]["budget_tokens"].as_u64() {
                assert!(whole["max_tokens"].as_u64().is_some_and(|it| it > tokens), "{model}");
            }
            let plain = body(&asked, &settings, true);
            assert_eq!(
                plain
                    .get("thinking")
                    .or(plain.get("output_config"))
                    .or(plain.get("temperature")),
                None,
                "{model}"
            );
        }
        let small = config::Provider {
            max_tokens: Some(1_500),
            ..bare()
        };
        let asked = ModelRequest {
            effort: Some(Effort::High),
            ..asked("claude-haiku-4-5", vec![ModelMessage::user("go")])
        };
        assert_eq!(
            body(&asked, &small, false).get("thinking"),
            None,
            "no room for the least budget"
        );
    }

    #[test]
    fn thinking_with_a_budget_does_not_begin_in_the_midst_of_calls() {
        let thought = Said::Opaque(json!({ "type": "thinking", "thinking": "", "signature": "a" }));
        let of = |said: Vec<Said>, more: Option<ModelMessage>| {
            let mut all = vec![
                ModelMessage::user("go"),
                ModelMessage::Assistant(said),
                ModelMessage::Results(vec![result("t1", "x")]),
            ];
            all.extend(more);
            let asked = ModelRequest {
                effort: Some(Effort::High),
                ..asked("claude-haiku-4-5", all)
            };
            body(&asked, &bare(), false).get("thinking").is_some()
        };
        assert!(of(vec![thought, call("t1")], None), "it began with a thought");
        assert!(!of(vec![call("t1")], None), "it began without");
    }
}
