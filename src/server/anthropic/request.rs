//! Converts a request of Anthropic's messages API into one of ours.
//!
//! Members that would change the answer and cannot be honoured are refused by name. Those that only tune the model are
//! ignored: the gateway's own settings apply.

use serde_json::{Value, json};

use crate::{
    protocol::{Message, Request, Role},
    server::{
        facade::{self, Members, refused},
        refusal::Refusal,
    },
};

/// A request, converted.
pub struct ParsedRequest {
    pub request: Request,
    /// True if the client asks for thinking blocks.
    pub with_thinking: bool,
}

/// Converts the JSON body of a request. Every refusal has status 400 and names the member at fault.
pub fn read(body: Value) -> Result<ParsedRequest, Refusal> {
    let members = Members::of(body)?;
    check(&members)?;
    let mut messages = Vec::new();
    if let Some(system) = members.get("system") {
        let parts = content(Some(system), "system")?;
        messages.push(Message {
            role: Role::System,
            ..Message::user(parts.texts.join("\n"))
        });
    }
    let list = members.list("messages")?;
    let mut last = (Role::Assistant, false);
    for (at, it) in list.iter().enumerate() {
        let place = format!("messages[{at}]");
        let role = match it.get("role").and_then(Value::as_str) {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some(_) => return Err(refused(&place, format!("`{place}.role` is neither user nor assistant"))),
            None => return Err(refused(&place, format!("`{place}` has to be an object with a `role`"))),
        };
        let parts = content(it.get("content"), &place)?;
        last = (role.clone(), parts.is_result);
        let message = Message {
            role,
            ..Message::user(parts.texts.join("\n"))
        };
        facade::add(&mut messages, facade::with_pictures(message, parts.pictures));
    }
    if last.0 != Role::User || last.1 {
        return Err(facade::not_the_users("messages", last.1));
    }
    let thinking = members.get("thinking").and_then(|it| it.get("type"));
    Ok(ParsedRequest {
        request: Request {
            model: members.model()?,
            mode: members.mode()?,
            messages,
            stream: members.stream()?,
            ..Request::default()
        },
        with_thinking: thinking.is_some_and(|it| it != "disabled"),
    })
}

/// Refuses members that ask for another kind of answer than the agent gives.
fn check(members: &Members) -> Result<(), Refusal> {
    let kind = |it: &Value| it.get("type").and_then(Value::as_str).map(str::to_owned);
    let choice = members.get("tool_choice");
    if choice.is_some_and(|it| !matches!(kind(it).as_deref(), Some("auto" | "none"))) {
        return Err(facade::no_choice());
    }
    for (name, format) in [
        ("output_format", members.get("output_format")),
        (
            "output_config.format",
            members.get("output_config").and_then(|it| it.get("format")),
        ),
    ] {
        if format.is_some_and(|it| !it.is_null()) {
            return Err(refused(
                name,
                format!("the agent answers in text: `{name}` cannot be met"),
            ));
        }
    }
    let servers = members.get("mcp_servers");
    if servers.is_some_and(|it| it.as_array().is_none_or(|it| !it.is_empty())) {
        return Err(refused(
            "mcp_servers",
            "this gateway has its own tools: `mcp_servers` cannot be met",
        ));
    }
    if members.get("container").is_some() {
        return Err(refused(
            "container",
            "there are no containers here: `container` cannot be met",
        ));
    }
    Ok(())
}

/// Content of a message.
#[derive(Default)]
struct Parts {
    texts: Vec<String>,
    pictures: Vec<Value>,
    /// True if it consists of results of tools.
    is_result: bool,
}

/// Returns the content of a message. `place` names the message in errors.
fn content(value: Option<&Value>, place: &str) -> Result<Parts, Refusal> {
    let blocks = match value {
        Some(Value::String(text)) => {
            return Ok(Parts {
                texts: vec![text.clone()],
                ..Parts::default()
            });
        }
        Some(Value::Array(blocks)) => blocks,
        None | Some(_) => {
            return Err(refused(
                place,
                format!("`{place}.content` has to be a text or a list of blocks"),
            ));
        }
    };
    let (mut parts, mut results) = (Parts::default(), 0);
    for (at, it) in blocks.iter().enumerate() {
        results += usize::from(block(it, &format!("{place}.content[{at}]"), &mut parts)?);
    }
    parts.is_result = results > 0 && results == blocks.len();
    Ok(parts)
}

/// Adds a block to `parts`. Returns true if it is the result of a tool.
fn block(value: &Value, place: &str, parts: &mut Parts) -> Result<bool, Refusal> {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    match text("type") {
        Some("text") => parts.texts.extend(text("text").map(str::to_owned)),
        // Thoughts belong to another model.
        Some("thinking" | "redacted_thinking") => {}
        Some("image") => parts.pictures.push(picture(value, place)?),
        Some("document") => match value.get("source") {
            Some(source) if source.get("type").and_then(Value::as_str) == Some("text") => {
                let data = source.get("data").and_then(Value::as_str).unwrap_or_default();
                parts.texts.push(data.to_owned());
            }
            Some(_) | None => {
                return Err(refused(place, format!("`{place}` is a document, but no text"))
                    .details("its `source` has to be {\"type\": \"text\", …}"));
            }
        },
        // Calls and results from a conversation with another server are passed on as text.
        Some("tool_use" | "server_tool_use") => {
            let input = value.get("input").map(Value::to_string).unwrap_or_default();
            parts.texts.push(facade::call(text("name").unwrap_or("a tool"), &input));
        }
        Some("tool_result") => {
            parts
                .texts
                .push(facade::result_of(text("tool_use_id").unwrap_or("a tool")));
            if value.get("content").is_some_and(|it| !it.is_null()) {
                let inner = content(value.get("content"), place)?;
                parts.texts.extend(inner.texts);
                parts.pictures.extend(inner.pictures);
            }
            return Ok(true);
        }
        Some("web_search_tool_result") => {
            parts
                .texts
                .push(facade::result_of(text("tool_use_id").unwrap_or("a tool")));
            let found = value.get("content").and_then(Value::as_array).into_iter().flatten();
            let found = found.filter_map(|it| {
                let part = |name: &str| it.get(name).and_then(Value::as_str);
                Some(format!("{} {}", part("title").unwrap_or_default(), part("url")?))
            });
            parts.texts.extend(found);
        }
        _ => return Err(refused(place, format!("`{place}` is neither text nor an image"))),
    }
    Ok(false)
}

fn picture(block: &Value, place: &str) -> Result<Value, Refusal> {
    let part = |name: &str| block.get("source")?.get(name)?.as_str();
    let kind = part("media_type").filter(|it| it.starts_with("image/"));
    match (part("type"), kind, part("data")) {
        (Some("base64"), Some(kind), Some(data)) => Ok(json!({ "mediaType": kind, "data": data })),
        _ => Err(refused(place, format!("`{place}` has to bring its picture along"))
            .details("its `source` has to be {\"type\": \"base64\", …}; nothing is fetched")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(body: Value) -> Result<Vec<(String, String)>, String> {
        let asked = read(body).map_err(|it| it.message().to_owned())?;
        let messages = asked.request.messages.into_iter();
        Ok(messages.map(|it| (it.role.to_string(), it.content)).collect())
    }

    #[test]
    fn blocks_of_every_form_become_messages() {
        let body = json!({ "system": [{ "type": "text", "text": "be short" }], "messages": [
            { "role": "user", "content": "one" },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hm", "signature": "s" },
                { "type": "text", "text": "two" },
                { "type": "tool_use", "id": "t1", "name": "look", "input": { "at": 1 } },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "t1", "content": [{ "type": "text", "text": "seen" }] },
                { "type": "tool_result", "tool_use_id": "t2" },
            ] },
            { "role": "assistant", "content": [
                { "type": "server_tool_use", "id": "s1", "name": "web_search", "input": { "query": "q" } },
                { "type": "web_search_tool_result", "tool_use_id": "s1", "content": [
                    { "type": "web_search_result", "title": "T", "url": "https://example.org", "encrypted_content": "x" }
                ] },
            ] },
            { "role": "user", "content": [{ "type": "document", "source": { "type": "text", "data": "three" } }] },
        ] });
        let wanted = [
            ("system", "be short"),
            ("user", "one"),
            ("assistant", "two\n[called look with {\"at\":1}]"),
            ("user", "[result of t1]\nseen\n[result of t2]"),
            (
                "assistant",
                "[called web_search with {\"query\":\"q\"}]\n[result of s1]\nT https://example.org",
            ),
            ("user", "three"),
        ];
        let wanted: Vec<_> = wanted.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        assert_eq!(asked(body), Ok(wanted));
    }

    #[test]
    fn pictures_come_along_and_are_not_fetched() {
        let with = |source: Value| {
            let content = json!([{ "type": "image", "source": source }, { "type": "text", "text": "what?" }]);
            read(json!({ "messages": [{ "role": "user", "content": content }] }))
                .map(|it| it.request.messages[0].extra["images"].clone())
        };
        let found = with(json!({ "type": "base64", "media_type": "image/png", "data": "iVBO" })).ok();
        assert_eq!(found, Some(json!([{ "mediaType": "image/png", "data": "iVBO" }])));
        for source in [
            json!({ "type": "url", "url": "http://127.0.0.1/x.png" }),
            json!({ "type": "base64", "media_type": "text/html", "data": "x" }),
            json!({ "type": "file", "file_id": "f" }),
            json!(null),
        ] {
            assert!(with(source.clone()).is_err(), "{source}");
        }
    }

    #[test]
    fn what_cannot_be_met_is_refused_by_name() {
        let with = |name: &str, value: Value| {
            let mut body = json!({ "model": "m", "max_tokens": 9, "messages": [{ "role": "user", "content": "hi" }] });
            body[name] = value;
            read(body).err().map(|it| it.message().to_owned())
        };
        let said = |role: &str, content: Value| json!([{ "role": role, "content": content }]);
        for (name, value, is_refused) in [
            ("messages", json!(null), true),
            ("messages", json!([]), true),
            ("messages", json!([7]), true),
            ("messages", said("system", json!("x")), true),
            ("messages", said("user", json!(7)), true),
            ("messages", said("user", json!([{ "type": "input_audio" }])), true),
            (
                "messages",
                said("user", json!([{ "type": "document", "source": { "type": "url" } }])),
                true,
            ),
            (
                "messages",
                said("user", json!([{ "type": "tool_result", "tool_use_id": "t" }])),
                true,
            ),
            ("messages", said("assistant", json!("prefill")), true),
            ("system", json!(7), true),
            ("system", json!("short"), false),
            ("tools", json!([{ "name": "x", "input_schema": {} }]), false),
            ("tool_choice", json!({ "type": "auto" }), false),
            ("tool_choice", json!({ "type": "any" }), true),
            ("tool_choice", json!({ "type": "tool", "name": "x" }), true),
            ("output_format", json!({ "type": "json_schema" }), true),
            ("output_config", json!({ "effort": "low" }), false),
            ("output_config", json!({ "format": { "type": "json_schema" } }), true),
            ("mcp_servers", json!([]), false),
            ("mcp_servers", json!([{ "url": "https://example.org" }]), true),
            ("container", json!("c"), true),
            ("stop_sequences", json!(["x"]), false),
            ("temperature", json!(0.5), false),
            ("stream", json!(1), true),
            ("model", json!(7), true),
            ("mode", json!("chat"), true),
        ] {
            let refusal = with(name, value.clone());
            assert_eq!(refusal.is_some(), is_refused, "{name} {value}: {refusal:?}");
            assert!(
                refusal.is_none_or(|it| it.contains(&format!("`{name}"))),
                "{name} {value}"
            );
        }
    }
}
