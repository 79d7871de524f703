//! The agent as clients of OpenAI's responses API and of Anthropic's messages API see it.

use super::{
    openai::{CONTENT, REASONING, failing, script},
    *,
};
use crate::protocol::FinishReason;

const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";

/// Sends a message with more members to a façade.
async fn ask(gateway: &Gateway, path: &str, more: &Value) -> Client {
    let mut body = if path == RESPONSES {
        json!({ "model": "m", "input": "hi" })
    } else {
        json!({ "model": "m", "max_tokens": 100, "messages": [{ "role": "user", "content": "hi" }] })
    };
    for (name, value) in more.as_object().expect("members") {
        body[name] = value.clone();
    }
    let mut client = gateway.client().await;
    let text = post(gateway.address, path, "secret", &body.to_string());
    client
        .send(&text.replacen("\r\n", "\r\nConnection: close\r\n", 1))
        .await;
    client
}

/// The answer to a message that gets `events`.
async fn answered(gateway: &mut Gateway, path: &str, more: &Value, events: Vec<Event>) -> String {
    let mut client = ask(gateway, path, more).await;
    let turn = gateway.turn().await;
    turn.say(events);
    client.end().await
}

/// The events of a stream. Each is named as its data is.
fn events(said: &str) -> Vec<Value> {
    let body = body_of(said);
    let events = body.split_terminator("\n\n").map(|it| {
        let (name, data) = it.split_once('\n').expect("two lines");
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").expect("data")).expect("JSON");
        assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
        data
    });
    events.collect()
}

fn text(parts: &[Value], path: &str) -> String {
    parts.iter().filter_map(|it| it.pointer(path)?.as_str()).collect()
}

#[tokio::test]
async fn what_broke_off_and_was_asked_for_again_is_in_no_object() {
    let notice = Event::Notice(crate::protocol::Notice::new(
        crate::protocol::Severity::Warning,
        crate::protocol::ANSWER_DROPPED,
        "again",
    ));
    let text = |id: &str, text: &str, metadata: Value| {
        [
            start(id, "text", json!({})),
            delta(id, text),
            end(id, Some(text), metadata),
        ]
    };
    let events: Vec<Event> = text("a", "First.", json!({}))
        .into_iter()
        .chain([
            start("t", "tool_call", json!({ "toolName": "grep" })),
            end("t", None, json!({ "state": "completed" })),
        ])
        .chain(text("b", "I loo", json!({ "incomplete": true })))
        .chain([notice])
        .chain(text("c", "I look.", json!({})))
        .chain([Event::Done(Done::default())])
        .collect();
    let mut gateway = Gateway::new();
    for (path, place) in [(MESSAGES, "/content"), (RESPONSES, "/output")] {
        let object = json_of(&answered(&mut gateway, path, &json!({}), events.clone()).await);
        let said = object.pointer(place).expect("content").to_string();
        assert!(said.contains("First.") && said.contains("I look."), "{said}");
        assert!(!said.contains("I loo\\n") && !said.contains("I loo\""), "{said}");
    }
}

#[tokio::test]
async fn a_response_is_the_same_as_a_stream_and_as_an_object() {
    let mut gateway = Gateway::new();
    let object = json_of(&answered(&mut gateway, RESPONSES, &json!({}), script()).await);
    assert_eq!(
        (&object["object"], &object["status"]),
        (&json!("response"), &json!("completed"))
    );
    assert_eq!((&object["model"], &object["error"]), (&json!("m"), &Value::Null));
    assert_eq!(
        (
            &object["usage"]["input_tokens"],
            &object["usage"]["output_tokens"],
            &object["usage"]["total_tokens"]
        ),
        (&json!(3), &json!(4), &json!(7))
    );
    let output = object["output"].as_array().expect("items");
    assert_eq!(text(output, "/content/0/text"), CONTENT);
    assert_eq!(text(output, "/summary/0/text"), REASONING);
    let kinds: Vec<_> = output.iter().map(|it| it["type"].as_str().expect("a type")).collect();
    assert_eq!(kinds, ["reasoning", "message", "reasoning", "message"]);

    let said = answered(&mut gateway, RESPONSES, &json!({ "stream": true }), script()).await;
    let events = events(&said);
    let numbers: Vec<_> = events.iter().map(|it| it["sequence_number"].as_u64()).collect();
    assert_eq!(numbers, (0..events.len() as u64).map(Some).collect::<Vec<_>>());
    let named = |name: &str| -> Vec<Value> { events.iter().filter(|it| it["type"] == name).cloned().collect() };
    assert_eq!(events[0]["type"], "response.created");
    assert_eq!(text(&named("response.output_text.delta"), "/delta"), CONTENT);
    assert_eq!(text(&named("response.output_text.done"), "/text"), CONTENT);
    assert_eq!(
        text(&named("response.reasoning_summary_text.delta"), "/delta"),
        REASONING
    );
    assert!(named("response.output_text.delta").len() > 5, "pieces come as pieces");
    for (begun, ended) in [
        ("response.output_item.added", "response.output_item.done"),
        ("response.content_part.added", "response.content_part.done"),
        (
            "response.reasoning_summary_part.added",
            "response.reasoning_summary_part.done",
        ),
    ] {
        assert_eq!(named(begun).len(), named(ended).len(), "{begun}");
    }
    let last = &events[events.len() - 1];
    assert_eq!(last["type"], "response.completed");
    let strip = |mut it: Value| {
        it["id"].take();
        it["created_at"].take();
        for item in it["output"].as_array_mut().expect("items") {
            item["id"].take();
        }
        it
    };
    assert_eq!(strip(last["response"].clone()), strip(object));
    let done: Vec<_> = named("response.output_item.done")
        .iter()
        .map(|it| it["item"].clone())
        .collect();
    assert_eq!(Value::from(done), last["response"]["output"]);
}

#[tokio::test]
async fn a_message_is_the_same_as_a_stream_and_as_an_object() {
    let mut gateway = Gateway::new();
    for thinks in [false, true] {
        let kind = if thinks { "enabled" } else { "disabled" };
        let more = json!({ "thinking": { "type": kind, "budget_tokens": 1024 } });
        let object = json_of(&answered(&mut gateway, MESSAGES, &more, script()).await);
        assert_eq!(
            (&object["type"], &object["role"], &object["stop_reason"]),
            (&json!("message"), &json!("assistant"), &json!("end_turn"))
        );
        assert_eq!(
            (&object["usage"]["input_tokens"], &object["usage"]["output_tokens"]),
            (&json!(3), &json!(4))
        );
        let content = object["content"].as_array().expect("blocks");
        let thoughts = if thinks { REASONING } else { "" };
        assert_eq!(
            (text(content, "/text").as_str(), text(content, "/thinking").as_str()),
            (CONTENT, thoughts)
        );
        assert_eq!(content.len(), if thinks { 4 } else { 1 });

        let mut more = more;
        more["stream"] = true.into();
        let said = answered(&mut gateway, MESSAGES, &more, script()).await;
        let events = events(&said);
        assert_eq!(events[0]["message"]["content"], json!([]));
        assert_eq!(
            (
                text(&events, "/delta/text").as_str(),
                text(&events, "/delta/thinking").as_str()
            ),
            (CONTENT, thoughts)
        );
        let indices = |name: &str| -> Vec<u64> {
            let named = events.iter().filter(|it| it["type"] == name);
            named.map(|it| it["index"].as_u64().expect("a number")).collect()
        };
        let wanted: Vec<_> = (0..content.len() as u64).collect();
        assert_eq!(indices("content_block_start"), wanted);
        assert_eq!(indices("content_block_stop"), wanted);
        let tail: Vec<_> = events[events.len() - 2..].iter().map(|it| it["type"].clone()).collect();
        assert_eq!(tail, ["message_delta", "message_stop"]);
        let end = &events[events.len() - 2];
        assert_eq!(
            (&end["delta"]["stop_reason"], &end["usage"]),
            (&json!("end_turn"), &object["usage"])
        );
    }
}

#[tokio::test]
async fn limits_refusals_and_questions_end_as_the_apis_say() {
    let mut gateway = Gateway::new();
    for (reason, status, why, stop) in [
        (
            FinishReason::Length,
            "incomplete",
            json!({ "reason": "max_output_tokens" }),
            "max_tokens",
        ),
        (
            FinishReason::Refusal,
            "incomplete",
            json!({ "reason": "content_filter" }),
            "refusal",
        ),
        (FinishReason::AwaitingInput, "completed", Value::Null, "end_turn"),
    ] {
        let script = || {
            vec![
                start("a", "text", json!({})),
                end("a", Some("so far"), json!({ "format": "markdown" })),
                Event::Done(Done {
                    finish_reason: Some(reason.clone()),
                    ..Done::default()
                }),
            ]
        };
        let object = json_of(&answered(&mut gateway, RESPONSES, &json!({}), script()).await);
        assert_eq!(
            (&object["status"], &object["incomplete_details"]),
            (&json!(status), &why)
        );
        let said = answered(&mut gateway, RESPONSES, &json!({ "stream": true }), script()).await;
        let last = events(&said).pop().expect("an event");
        assert_eq!(last["type"], format!("response.{status}"));
        let object = json_of(&answered(&mut gateway, MESSAGES, &json!({}), script()).await);
        assert_eq!(object["stop_reason"], stop);
    }
    for (path, place) in [(RESPONSES, "/output/0/content/0/text"), (MESSAGES, "/content/0/text")] {
        let mut client = ask(&gateway, path, &json!({})).await;
        let mut turn = gateway.turn().await;
        assert_eq!(turn.asker, Asker::Later);
        turn.say(question());
        let object = json_of(&client.end().await);
        assert_eq!(object.pointer(place), Some(&json!("Which?\n1. X")), "{object}");
        assert_eq!(turn.told().await, Command::Cancel);
    }
}

#[tokio::test]
async fn failures_have_the_form_and_the_status_of_each_api() {
    let mut gateway = Gateway::new();
    for (code, status, kind, of_messages, error_code) in [
        ("LLM_RATE_LIMITED", 429, "rate_limit_error", 429, "rate_limit_exceeded"),
        (
            "LLM_CONTEXT_LENGTH",
            400,
            "invalid_request_error",
            400,
            "context_length_exceeded",
        ),
        ("LLM_OVERLOADED", 503, "overloaded_error", 529, "server_error"),
        ("LLM_AUTH", 502, "api_error", 502, "server_error"),
    ] {
        for stream in [false, true] {
            let more = json!({ "stream": stream });
            let said = answered(&mut gateway, RESPONSES, &more, failing(code)).await;
            assert!(
                said.starts_with(&format!("HTTP/1.1 {status}")),
                "{code} {stream}: {said}"
            );
            assert_eq!(json_of(&said)["error"]["message"], "it failed: try later");
            let said = answered(&mut gateway, MESSAGES, &more, failing(code)).await;
            assert!(
                said.starts_with(&format!("HTTP/1.1 {of_messages}")),
                "{code} {stream}: {said}"
            );
            let error = json!({ "type": "error", "request_id": null,
                "error": { "type": kind, "message": "it failed: try later" } });
            assert_eq!(json_of(&said), error);
            assert_eq!(said.contains("x-should-retry: false"), of_messages >= 500, "{said}");
        }
        // What was said is not taken back; the error follows it.
        let mut late = vec![start("a", "text", json!({})), delta("a", "so far")];
        late.extend(failing(code));
        let said = answered(&mut gateway, RESPONSES, &json!({ "stream": true }), late.clone()).await;
        let last = events(&said).pop().expect("an event");
        assert_eq!(
            (
                &last["type"],
                &last["response"]["status"],
                &last["response"]["error"]["code"]
            ),
            (&json!("response.failed"), &json!("failed"), &json!(error_code))
        );
        assert_eq!(last["response"]["output"][0]["content"][0]["text"], "so far");
        let said = answered(&mut gateway, MESSAGES, &json!({ "stream": true }), late).await;
        let last = events(&said).pop().expect("an event");
        assert_eq!((&last["type"], &last["error"]["type"]), (&json!("error"), &json!(kind)));
    }
}

#[tokio::test]
async fn anthropics_clients_use_their_own_key_errors_and_models() {
    let gateway = Gateway::new();
    let host = gateway.address;
    let get = async |path: &str, headers: &str| {
        let mut client = gateway.client().await;
        let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n");
        client.send(&head).await;
        client.end().await
    };
    let version = "anthropic-version: 2023-06-01\r\n";
    let said = get("/v1/models", &format!("x-api-key: secret\r\n{version}")).await;
    let list = json_of(&said);
    let names: Vec<_> = list["data"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| &it["id"])
        .collect();
    assert_eq!(names, ["one", "two"]);
    assert_eq!((&list["has_more"], &list["last_id"]), (&json!(false), &json!("two")));
    assert!(
        list["data"]
            .as_array()
            .expect("a list")
            .iter()
            .all(|it| it["type"] == "model")
    );
    let said = get("/v1/models/none", &format!("x-api-key: secret\r\n{version}")).await;
    assert_eq!(json_of(&said)["error"]["type"], "not_found_error");
    let said = get("/v1/models", &format!("x-api-key: wrong\r\n{version}")).await;
    assert!(said.starts_with("HTTP/1.1 401"), "{said}");
    assert_eq!(json_of(&said)["error"]["type"], "authentication_error");
    let said = ask(&gateway, MESSAGES, &json!({ "tool_choice": { "type": "any" } }))
        .await
        .end()
        .await;
    assert!(said.starts_with("HTTP/1.1 400"), "{said}");
    assert_eq!(json_of(&said)["error"]["type"], "invalid_request_error");
    let said = ask(&gateway, RESPONSES, &json!({ "previous_response_id": "resp_1" }))
        .await
        .end()
        .await;
    assert_eq!(json_of(&said)["error"]["param"], "previous_response_id");
}
