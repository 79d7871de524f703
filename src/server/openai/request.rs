//! Converts a request of OpenAI's chat completions into one of ours.
//!
//! Members that would change the answer and cannot be honoured are refused by name. Those that only tune the model are
//! ignored: the gateway's own settings apply.

use serde_json::{Map, Value};

use super::content::content;
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
    /// True if the stream should end with the token usage (`stream_options.include_usage`).
    pub with_usage: bool,
}

/// Converts the JSON body of a request. Every refusal has status 400 and names the member at fault.
pub fn read(body: Value) -> Result<ParsedRequest, Refusal> {
    let members = Members::of(body)?;
    check(&members)?;
    let with_usage = match members.get("stream_options") {
        None => false,
        Some(Value::Object(options)) => options
            .get("include_usage")
            .and_then(Value::as_bool)
            .unwrap_or_default(),
        Some(_) => return Err(refused("stream_options", "`stream_options` has to be an object")),
    };
    let list = members.list("messages")?;
    let messages = list.iter().enumerate();
    let messages = messages.map(|(at, it)| message(it, &format!("messages[{at}]")));
    let messages = messages.collect::<Result<Vec<_>, _>>()?;
    let last_role = list.last().and_then(|it| it.get("role")).and_then(Value::as_str);
    if last_role != Some("user") {
        return Err(facade::not_the_users("messages", last_role == Some("tool")));
    }
    Ok(ParsedRequest {
        request: Request {
            model: members.model()?,
            mode: members.mode()?,
            messages,
            stream: members.stream()?,
            ..Request::default()
        },
        with_usage,
    })
}

/// Refuses members that ask for another kind of answer than the agent gives.
fn check(members: &Members) -> Result<(), Refusal> {
    if members.get("n").is_some_and(|it| it.as_u64() != Some(1)) {
        return Err(refused("n", "there is one answer: `n` has to be 1"));
    }
    let format = members.get("response_format");
    if format.is_some_and(|it| it.get("type").and_then(Value::as_str) != Some("text")) {
        return Err(refused(
            "response_format",
            "the agent answers in text: `response_format` cannot be met",
        ));
    }
    let choice = members.get("tool_choice").or_else(|| members.get("function_call"));
    if choice.is_some_and(|it| !matches!(it.as_str(), Some("auto" | "none"))) {
        return Err(facade::no_choice());
    }
    let modalities = members.get("modalities").and_then(Value::as_array);
    if members.get("audio").is_some() || modalities.is_some_and(|it| it.iter().any(|it| *it != "text")) {
        return Err(refused("modalities", "the agent answers in text only"));
    }
    if members.get("logprobs").is_some_and(|it| *it != false) {
        return Err(refused("logprobs", "an agent's words have no probabilities"));
    }
    Ok(())
}

fn message(value: &Value, place: &str) -> Result<Message, Refusal> {
    let Some(members) = value.as_object() else {
        return Err(refused(place, format!("`{place}` has to be an object")));
    };
    let Some(role) = members.get("role").and_then(Value::as_str) else {
        return Err(refused(place, format!("`{place}.role` is missing")));
    };
    let (mut text, pictures) = content(members.get("content"), place)?;
    let role = match role {
        "user" => Role::User,
        "system" | "developer" => Role::System,
        "assistant" => {
            text.extend(calls(members));
            Role::Assistant
        }
        // Tool results from a conversation with another server are passed on as text.
        "tool" | "function" => {
            let name = members.get("tool_call_id").or_else(|| members.get("name"));
            let name = name.and_then(Value::as_str).unwrap_or("a tool");
            text.insert(0, facade::result_of(name));
            Role::User
        }
        _ => {
            return Err(refused(
                place,
                format!("`{place}.role` is none of system, developer, user, assistant, tool"),
            ));
        }
    };
    let message = Message {
        role,
        ..Message::user(text.join("\n"))
    };
    Ok(facade::with_pictures(message, pictures))
}

/// Returns tool calls of a previous answer from elsewhere, as text.
fn calls(members: &Map<String, Value>) -> Vec<String> {
    let calls = members.get("tool_calls").and_then(Value::as_array);
    let calls = calls.into_iter().flatten().filter_map(|it| {
        let function = it.get("function")?;
        let name = function.get("name")?.as_str()?;
        let arguments = function.get("arguments").and_then(Value::as_str).unwrap_or_default();
        Some(facade::call(name, arguments))
    });
    calls.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(messages: Value) -> Result<Vec<(String, String)>, String> {
        let asked = read(json!({ "model": "m", "messages": messages })).map_err(|it| it.message().to_owned())?;
        let messages = asked.request.messages.into_iter();
        Ok(messages.map(|it| (it.role.to_string(), it.content)).collect())
    }

    #[test]
    fn messages_of_every_form_become_ours() {
        let messages = json!([
            { "role": "system", "content": "be short" },
            { "role": "developer", "content": [{ "type": "text", "text": "and" }, { "type": "text", "text": "kind" }] },
            { "role": "user", "content": "one" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "look", "arguments": "{\"at\":1}" } }
            ] },
            { "role": "tool", "tool_call_id": "c1", "content": "seen" },
            { "role": "assistant", "content": "two", "refusal": null },
            { "role": "user", "content": "three", "name": "kim" },
        ]);
        let wanted = [
            ("system", "be short"),
            ("system", "and\nkind"),
            ("user", "one"),
            ("assistant", "[called look with {\"at\":1}]"),
            ("user", "[result of c1]\nseen"),
            ("assistant", "two"),
            ("user", "three"),
        ];
        let wanted: Vec<_> = wanted.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        assert_eq!(asked(messages), Ok(wanted));
    }

    #[test]
    fn pictures_come_along_and_are_not_fetched() {
        let with = |url: &str| {
            let body = json!({ "messages": [{ "role": "user", "content": [
                { "type": "text", "text": "what is it?" }, { "type": "image_url", "image_url": { "url": url } }
            ] }] });
            read(body).map(|it| it.request.messages[0].extra["images"].clone())
        };
        let found = with("data:image/png;base64,iVBORw0KGgo=").ok();
        assert_eq!(
            found,
            Some(json!([{ "mediaType": "image/png", "data": "iVBORw0KGgo=" }]))
        );
        for url in [
            "http://127.0.0.1/x.png",
            "file:///etc/passwd",
            "data:text/html;base64,x",
            "",
        ] {
            assert!(with(url).is_err(), "{url}");
        }
    }

    #[test]
    fn what_cannot_be_met_is_refused_by_name_and_what_tunes_is_left_alone() {
        let with = |name: &str, value: Value| {
            let mut body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
            body[name] = value;
            read(body).err().map(|it| it.message().to_owned())
        };
        for (name, value, is_refused) in [
            ("n", json!(1), false),
            ("n", json!(2), true),
            ("n", json!("1"), true),
            ("response_format", json!({ "type": "text" }), false),
            ("response_format", json!({ "type": "json_object" }), true),
            ("response_format", json!(7), true),
            (
                "tools",
                json!([{ "type": "function", "function": { "name": "x" } }]),
                false,
            ),
            ("tool_choice", json!("auto"), false),
            ("tool_choice", json!("required"), true),
            (
                "tool_choice",
                json!({ "type": "function", "function": { "name": "x" } }),
                true,
            ),
            ("function_call", json!({ "name": "x" }), true),
            ("modalities", json!(["text"]), false),
            ("modalities", json!(["text", "audio"]), true),
            ("logprobs", json!(false), false),
            ("logprobs", json!(true), true),
            ("temperature", json!(0.1), false),
            ("max_tokens", json!(10), false),
            ("stop", json!(["x"]), false),
            ("stream", json!(true), false),
            ("stream", json!("true"), true),
            ("stream_options", json!(7), true),
            ("model", json!(7), true),
            ("mode", json!("ask"), false),
            ("mode", json!("chat"), true),
            ("messages", json!(null), true),
            ("messages", json!([]), true),
            ("messages", json!("hi"), true),
            ("messages", json!([7]), true),
            ("messages", json!([{ "content": "x" }]), true),
            ("messages", json!([{ "role": "root", "content": "x" }]), true),
            ("messages", json!([{ "role": "user", "content": 7 }]), true),
            (
                "messages",
                json!([{ "role": "user", "content": [{ "type": "input_audio" }] }]),
                true,
            ),
            (
                "messages",
                json!([{ "role": "user", "content": "x" }, { "role": "assistant", "content": "y" }]),
                true,
            ),
            (
                "messages",
                json!([{ "role": "user", "content": "x" }, { "role": "tool", "content": "y" }]),
                true,
            ),
        ] {
            let refusal = with(name, value.clone());
            assert_eq!(refusal.is_some(), is_refused, "{name} {value}: {refusal:?}");
            if let Some(message) = refusal {
                assert!(
                    message.contains(&format!("`{name}"))
                        || ["function_call", "modalities", "logprobs"].contains(&name),
                    "{name}: {message}"
                );
            }
        }
        for body in [json!([]), json!(7), json!(null)] {
            assert!(read(body).is_err());
        }
    }
}
