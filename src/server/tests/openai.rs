//! The agent as OpenAI's clients see it.

use super::*;
use crate::protocol::{ResponseStart, Status, Usage};

async fn ask(gateway: &Gateway, more: &Value) -> Client {
    let mut body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
    for (name, value) in more.as_object().expect("members") {
        body[name] = value.clone();
    }
    let mut client = gateway.client().await;
    let text = post(gateway.address, "/v1/chat/completions", "secret", &body.to_string());
    client
        .send(&text.replacen("\r\n", "\r\nConnection: close\r\n", 1))
        .await;
    client
}

pub fn script() -> Vec<Event> {
    vec![
        Event::ResponseStart(ResponseStart::default()),
        Event::ThinkingDelta {
            delta: "let me ".to_owned(),
        },
        Event::ThinkingDelta {
            delta: "see".to_owned(),
        },
        start("a", "text", json!({})),
        delta("a", "I will "),
        delta("a", "look."),
        end("a", Some("I will look."), json!({ "format": "markdown" })),
        start("b", "tool_call", json!({ "toolName": "read_file", "toolCallId": "k" })),
        end(
            "b",
            None,
            json!({ "toolName": "read_file", "toolCallId": "k", "arguments": { "target_file": "a.rs" },
                    "result": { "status": "error", "data": "gone" } }),
        ),
        start("e", "error", json!({ "errorCode": "EDIT_STALE", "source": "write" })),
        end(
            "e",
            Some("it changed"),
            json!({ "errorCode": "EDIT_STALE", "source": "write", "details": "again" }),
        ),
        start("c", "code_block", json!({ "language": "rust" })),
        delta("c", "let x"),
        delta("c", ";"),
        end("c", Some("let x;"), json!({ "language": "rust", "purpose": "example" })),
        start(
            "d",
            "code_reference",
            json!({ "filePath": "a b.rs", "startLine": 1, "endLine": 2 }),
        ),
        end(
            "d",
            Some("x\n"),
            json!({ "filePath": "a b.rs", "startLine": 1, "endLine": 2, "language": "rust" }),
        ),
        start("f", "text", json!({})),
        // The source changed its mind about the end.
        delta("f", "That"),
        end("f", Some("That is all."), json!({ "format": "markdown" })),
        Event::Done(Done {
            usage: Some(Usage {
                prompt_tokens: 3,
                completion_tokens: 4,
                total_tokens: 7,
            }),
            ..Done::default()
        }),
    ]
}

pub const CONTENT: &str = "I will look.\n\n```rust\nlet x;\n```\n\n```1:2:a b.rs\nx\n```\n\nThat is all.";
pub const REASONING: &str = "let me see\n[read_file a.rs (failed)]\nerror: it changed (again)";

#[tokio::test]
async fn the_stream_and_the_object_say_the_same() {
    let mut gateway = Gateway::new();
    let mut client = ask(&gateway, &json!({})).await;
    let turn = gateway.turn().await;
    assert_eq!(turn.asker, Asker::Later);
    turn.say(script());
    let object = json_of(&client.end().await);
    assert_eq!(object["object"], "chat.completion");
    let choice = &object["choices"][0];
    assert_eq!(
        (&choice["message"]["content"], &choice["finish_reason"]),
        (&json!(CONTENT), &json!("stop"))
    );
    assert_eq!(choice["message"]["reasoning_content"], REASONING);
    assert_eq!(
        object["usage"],
        json!({ "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7 })
    );
    assert_eq!(object["model"], "m");

    for with_usage in [true, false] {
        let more = json!({ "stream": true, "stream_options": { "include_usage": with_usage } });
        let mut client = ask(&gateway, &more).await;
        let turn = gateway.turn().await;
        turn.say(script());
        let body = body_of(&client.end().await);
        let data: Vec<_> = body
            .split_terminator("\n\n")
            .map(|it| it.strip_prefix("data: ").expect("data"))
            .collect();
        assert_eq!(data.last(), Some(&"[DONE]"));
        let chunks: Vec<Value> = data[..data.len() - 1]
            .iter()
            .map(|it| serde_json::from_str(it).expect("JSON"))
            .collect();
        let joined = |name: &str| -> String {
            let deltas = chunks.iter().filter_map(|it| it["choices"][0]["delta"][name].as_str());
            deltas.collect()
        };
        assert_eq!(
            (joined("content").as_str(), joined("reasoning_content").as_str()),
            (CONTENT, REASONING)
        );
        assert_eq!(
            chunks[0]["choices"][0]["delta"],
            json!({ "role": "assistant", "content": "" })
        );
        assert!(chunks.len() > 10, "pieces come as pieces");
        let reasons: Vec<_> = chunks
            .iter()
            .filter_map(|it| it["choices"][0]["finish_reason"].as_str())
            .collect();
        assert_eq!(reasons, ["stop"]);
        let usages: Vec<_> = chunks.iter().filter(|it| it["usage"].is_object()).collect();
        assert_eq!(usages.len(), usize::from(with_usage));
        assert!(
            chunks
                .iter()
                .all(|it| it["object"] == "chat.completion.chunk" && it["id"] == chunks[0]["id"])
        );
    }
}

#[tokio::test]
async fn a_question_is_text_and_the_end() {
    let mut gateway = Gateway::new();
    let mut client = ask(&gateway, &json!({})).await;
    let mut turn = gateway.turn().await;
    turn.say(question());
    let object = json_of(&client.end().await);
    let choice = &object["choices"][0];
    assert_eq!(
        (&choice["message"]["content"], &choice["finish_reason"]),
        (&json!("Which?\n1. X"), &json!("stop"))
    );
    assert_eq!(turn.told().await, Command::Cancel);

    let mut client = ask(&gateway, &json!({ "stream": true })).await;
    let turn = gateway.turn().await;
    let approval = json!({ "kind": "approval", "questions": [{ "id": "approval", "text": "Allow `rm`?",
        "options": [{ "id": "allow_once", "label": "Allow once" }] }] });
    turn.say([start("q", "clarification", approval)]);
    let body = body_of(&client.end().await);
    assert!(
        body.contains("Allow `rm`?") && body.contains("was not done") && body.ends_with("data: [DONE]\n\n"),
        "{body}"
    );
}

pub fn failing(code: &str) -> Vec<Event> {
    vec![
        start("e", "error", json!({ "errorCode": code, "source": "llm" })),
        end(
            "e",
            Some("it failed"),
            json!({ "errorCode": code, "source": "llm", "details": "try later" }),
        ),
        Event::Done(Done {
            status: Some(Status::Error),
            ..Done::default()
        }),
    ]
}

#[tokio::test]
async fn failures_have_the_form_and_the_status_that_clients_know() {
    let mut gateway = Gateway::new();
    for (code, status, kind, wanted) in [
        ("LLM_RATE_LIMITED", 429, "rate_limit_error", "rate_limit_exceeded"),
        (
            "LLM_CONTEXT_LENGTH",
            400,
            "invalid_request_error",
            "context_length_exceeded",
        ),
        ("LLM_OVERLOADED", 503, "server_error", "llm_overloaded"),
        ("LLM_AUTH", 502, "server_error", "llm_auth"),
        ("WHATEVER", 502, "server_error", "whatever"),
    ] {
        for stream in [false, true] {
            let mut client = ask(&gateway, &json!({ "stream": stream })).await;
            let turn = gateway.turn().await;
            turn.say(failing(code));
            let said = client.end().await;
            assert!(
                said.starts_with(&format!("HTTP/1.1 {status}")),
                "{code} {stream}: {said}"
            );
            let error = json!({ "message": "it failed: try later", "type": kind, "param": null, "code": wanted });
            assert_eq!(json_of(&said)["error"], error);
            assert_eq!(said.contains("x-should-retry: false"), status >= 500, "{said}");
        }
    }
    // What was said is not taken back; the error follows it.
    let mut client = ask(&gateway, &json!({ "stream": true })).await;
    let turn = gateway.turn().await;
    turn.say([start("a", "text", json!({})), delta("a", "so far")]);
    client.until("so far").await;
    turn.say(failing("LLM_OVERLOADED"));
    let rest = client.end().await;
    assert!(
        rest.contains("{\"error\":{\"message\":\"it failed") && rest.contains("[DONE]"),
        "{rest}"
    );
    assert!(!rest.contains("finish_reason\":\"stop"), "{rest}");
}

#[tokio::test]
async fn refusals_have_their_form_too() {
    let gateway = Gateway::new();
    let said = ask(&gateway, &json!({ "n": 3 })).await.end().await;
    assert!(said.starts_with("HTTP/1.1 400"), "{said}");
    assert_eq!(
        json_of(&said)["error"],
        json!({ "message": "there is one answer: `n` has to be 1", "type": "invalid_request_error", "param": "n", "code": "stream_protocol" })
    );
    let mut client = gateway.client().await;
    let text = post(gateway.address, "/v1/chat/completions", "wrong", "{}");
    client
        .send(&text.replacen("\r\n", "\r\nConnection: close\r\n", 1))
        .await;
    let said = client.end().await;
    let error = &json_of(&said)["error"];
    assert_eq!(
        (&error["code"], &error["type"]),
        (&json!("invalid_api_key"), &json!("authentication_error"))
    );
    let said = gateway.get("/v1/nothing", "").await.end().await;
    assert_eq!(json_of(&said)["error"]["type"], "invalid_request_error");
}

#[tokio::test]
async fn models_are_listed_one_by_one_and_with_the_tools_that_they_have() {
    let gateway = Gateway::new();
    let model = |it: &str| json!({ "id": it, "object": "model", "created": 0, "owned_by": "sheaf" });
    let said = gateway.get("/v1/models", "").await.end().await;
    assert_eq!(
        json_of(&said),
        json!({ "object": "list", "data": [model("one"), model("two")], "tools": ["grep"] })
    );
    let said = gateway.get("/v1/models/two", "").await.end().await;
    assert_eq!(json_of(&said), model("two"));
    for name in ["three", "one/two", "one%2ftwo"] {
        let said = gateway.get(&format!("/v1/models/{name}"), "").await.end().await;
        assert!(said.starts_with("HTTP/1.1 404"), "{said}");
    }
}
