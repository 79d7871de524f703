//! Converts a request of OpenAI's responses API into one of ours.

use serde_json::Value;

use crate::{
    protocol::{Message, Request, Role},
    server::{
        facade::{self, Members, refused},
        openai::content::content,
        refusal::Refusal,
    },
};

/// Converts the JSON body of a request. Every refusal has status 400 and names the member at fault.
pub fn read(body: Value) -> Result<Request, Refusal> {
    let members = Members::of(body)?;
    check(&members)?;
    let mut messages = Vec::new();
    match members.get("instructions") {
        None => {}
        Some(Value::String(text)) => messages.push(Message {
            role: Role::System,
            ..Message::user(text.clone())
        }),
        Some(_) => return Err(refused("instructions", "`instructions` has to be a text")),
    }
    if let Some(Value::String(text)) = members.get("input") {
        messages.push(Message::user(text.clone()));
    } else {
        let list = members.list("input")?;
        for (at, it) in list.iter().enumerate() {
            if let Some(message) = item(it, &format!("input[{at}]"))? {
                facade::add(&mut messages, message);
            }
        }
        let last = list.last();
        let is_users = last.is_some_and(|it| it.get("role").and_then(Value::as_str) == Some("user"));
        if !is_users {
            let kind = last.and_then(|it| it.get("type")).and_then(Value::as_str);
            let is_result = kind.is_some_and(|it| it.ends_with("_output"));
            return Err(facade::not_the_users("input", is_result));
        }
    }
    Ok(Request {
        model: members.model()?,
        mode: members.mode()?,
        messages,
        stream: members.stream()?,
        ..Request::default()
    })
}

/// Refuses members that ask for another kind of answer than the agent gives, or for stored responses.
fn check(members: &Members) -> Result<(), Refusal> {
    for name in ["previous_response_id", "conversation"] {
        if members.get(name).is_some() {
            return Err(refused(name, format!("nothing is stored here: `{name}` cannot be met"))
                .details("send the whole conversation as `input`"));
        }
    }
    if members.get("prompt").is_some() {
        return Err(refused("prompt", "no prompts are stored here: `prompt` cannot be met"));
    }
    if members.get("background").is_some_and(|it| *it != false) {
        return Err(refused(
            "background",
            "an answer is not made in the background: `background` cannot be met",
        ));
    }
    let format = members.get("text").and_then(|it| it.get("format"));
    let format = format.filter(|it| !it.is_null());
    if format.is_some_and(|it| it.get("type").and_then(Value::as_str) != Some("text")) {
        return Err(refused(
            "text.format",
            "the agent answers in text: `text.format` cannot be met",
        ));
    }
    let choice = members.get("tool_choice");
    if choice.is_some_and(|it| !matches!(it.as_str(), Some("auto" | "none"))) {
        return Err(facade::no_choice());
    }
    if members.get("top_logprobs").is_some_and(|it| *it != 0) {
        return Err(refused(
            "top_logprobs",
            "an agent's words have no probabilities: `top_logprobs` has to be 0",
        ));
    }
    Ok(())
}

/// Converts an item of `input`; `None` for thoughts, which belong to another model.
fn item(value: &Value, place: &str) -> Result<Option<Message>, Refusal> {
    let Some(members) = value.as_object() else {
        return Err(refused(place, format!("`{place}` has to be an object")));
    };
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    match text("type").unwrap_or("message") {
        "message" => message(members, place).map(Some),
        "reasoning" => Ok(None),
        "function_call" | "custom_tool_call" => {
            let arguments = text("arguments").or_else(|| text("input")).unwrap_or_default();
            let call = facade::call(text("name").unwrap_or("a tool"), arguments);
            Ok(Some(Message {
                role: Role::Assistant,
                ..Message::user(call)
            }))
        }
        // Tool results from a conversation with another server are passed on as text.
        "function_call_output" | "custom_tool_call_output" => {
            let (mut texts, pictures) = content(members.get("output"), place)?;
            texts.insert(0, facade::result_of(text("call_id").unwrap_or("a tool")));
            Ok(Some(facade::with_pictures(Message::user(texts.join("\n")), pictures)))
        }
        "item_reference" => Err(
            refused(place, format!("`{place}` refers to an item that is not stored here"))
                .details("send the item itself"),
        ),
        _ => Err(refused(
            place,
            format!("`{place}.type` is none of message, reasoning, function_call, function_call_output"),
        )),
    }
}

fn message(members: &serde_json::Map<String, Value>, place: &str) -> Result<Message, Refusal> {
    let role = match members.get("role").and_then(Value::as_str) {
        None => return Err(refused(place, format!("`{place}.role` is missing"))),
        Some("user") => Role::User,
        Some("system" | "developer") => Role::System,
        Some("assistant") => Role::Assistant,
        Some(_) => {
            return Err(refused(
                place,
                format!("`{place}.role` is none of system, developer, user, assistant"),
            ));
        }
    };
    let (texts, pictures) = content(members.get("content"), place)?;
    let message = Message {
        role,
        ..Message::user(texts.join("\n"))
    };
    Ok(facade::with_pictures(message, pictures))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(body: Value) -> Result<Vec<(String, String)>, String> {
        let request = read(body).map_err(|it| it.message().to_owned())?;
        let messages = request.messages.into_iter();
        Ok(messages.map(|it| (it.role.to_string(), it.content)).collect())
    }

    #[test]
    fn items_of_every_form_become_messages() {
        let body = json!({ "instructions": "be short", "input": [
            { "role": "developer", "content": [{ "type": "input_text", "text": "and kind" }] },
            { "role": "user", "content": "one" },
            { "type": "reasoning", "id": "rs_1", "summary": [{ "type": "summary_text", "text": "hm" }] },
            { "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
              "content": [{ "type": "output_text", "text": "two", "annotations": [] }] },
            { "type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "c1", "output": "seen" },
            { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "three" }] },
        ] });
        let wanted = [
            ("system", "be short"),
            ("system", "and kind"),
            ("user", "one"),
            ("assistant", "two\n[called look with {}]"),
            ("user", "[result of c1]\nseen"),
            ("user", "three"),
        ];
        let wanted: Vec<_> = wanted.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        assert_eq!(asked(body), Ok(wanted));
        let words = asked(json!({ "input": "hi" }));
        assert_eq!(words, Ok(vec![("user".to_owned(), "hi".to_owned())]));
    }

    #[test]
    fn what_cannot_be_met_is_refused_by_name() {
        let user = json!([{ "role": "user", "content": "x" }]);
        let with = |name: &str, value: Value| {
            let mut body = json!({ "model": "m", "input": user });
            body[name] = value;
            read(body).err().map(|it| it.message().to_owned())
        };
        let picture = |url: &str| json!([{ "role": "user", "content": [{ "type": "input_image", "image_url": url }] }]);
        for (name, value, is_refused) in [
            ("input", json!(null), true),
            ("input", json!([]), true),
            ("input", json!(7), true),
            ("input", json!([7]), true),
            ("input", json!([{ "role": "root", "content": "x" }]), true),
            ("input", json!([{ "type": "item_reference", "id": "msg_1" }]), true),
            ("input", json!([{ "type": "image_generation_call" }]), true),
            ("input", json!([{ "role": "assistant", "content": "x" }]), true),
            (
                "input",
                json!([{ "type": "function_call_output", "call_id": "c", "output": "x" }]),
                true,
            ),
            ("input", picture("data:image/png;base64,iVBORw0KGgo="), false),
            ("input", picture("https://example.org/x.png"), true),
            ("instructions", json!(7), true),
            ("previous_response_id", json!("resp_1"), true),
            ("conversation", json!("conv_1"), true),
            ("prompt", json!({ "id": "p" }), true),
            ("background", json!(true), true),
            ("background", json!(false), false),
            ("text", json!({ "format": { "type": "text" } }), false),
            ("text", json!({ "format": { "type": "json_schema" } }), true),
            ("text", json!({ "verbosity": "low" }), false),
            ("tools", json!([{ "type": "function", "name": "x" }]), false),
            ("tool_choice", json!("none"), false),
            ("tool_choice", json!("required"), true),
            ("tool_choice", json!({ "type": "function", "name": "x" }), true),
            ("top_logprobs", json!(3), true),
            ("store", json!(true), false),
            ("max_output_tokens", json!(10), false),
            ("reasoning", json!({ "effort": "high" }), false),
            ("stream", json!("yes"), true),
            ("model", json!(7), true),
            ("mode", json!("chat"), true),
        ] {
            let refusal = with(name, value.clone());
            assert_eq!(refusal.is_some(), is_refused, "{name} {value}: {refusal:?}");
            let names = |it: String| it.contains(&format!("`{name}")) || it.contains("probabilities");
            assert!(refusal.is_none_or(names), "{name} {value}");
        }
    }
}
