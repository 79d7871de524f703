//! The ways in which servers of chat completions are known to differ, one case for each, as they were seen in the wild.
//!
//! What a request must look like for them is held beside the request; here is what they answer.

use futures::StreamExt;
use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};

use super::Chat;
use crate::{
    config::{self, Connection, Environment},
    models::{
        Call, CallResult, ModelMessage, ModelRequest, Piece, Provider, Said, ToolSpec,
        conformance::{read, shape},
        request::{Server, Wire},
    },
    net::test_server::{self, STREAM, Socket, page},
};

fn decoded(body: &str) -> String {
    let request = ModelRequest::default();
    let reading = Chat::default().read(&request, &config::Provider::default());
    shape(&read(reading, [body.as_bytes()]))
}

#[test]
fn every_known_server_is_read() {
    let hi = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
    let stop = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let done = "data: [DONE]\n\n";
    let call = |index: &str, id: &str, arguments: &str| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{{index}\"id\":\"{id}\",\"function\":{{\"name\":\"ls\",\"arguments\":{arguments}}}}}]}}}}]}}\n\n"
        )
    };
    let good = r#"text "hi" | end Stop"#;
    let called = "call 0 ls {} = {} | end ToolUse";
    for (server, body, want) in [
        (
            "OpenRouter: comments, also as data",
            format!(
                ": OPENROUTER PROCESSING\n\ndata: : OPENROUTER PROCESSING\n\n{hi}: OPENROUTER PROCESSING\n\n{stop}{done}"
            ),
            good,
        ),
        (
            "Ollama and others: `stop` beside calls",
            call("\"index\":0,", "a", "\"{}\"") + stop + done,
            called,
        ),
        (
            "Azure: no choices first, filters last",
            format!(
                "data: {{\"choices\":[],\"prompt_filter_results\":[{{}}]}}\n\n{hi}data: {{\"choices\":[{{\"delta\":{{}},\"content_filter_results\":{{}}}}]}}\n\n{stop}{done}"
            ),
            good,
        ),
        (
            "Mistral: counts on the last chunk unasked",
            format!(
                "{hi}data: {{\"choices\":[{{\"delta\":{{\"content\":\"\"}},\"finish_reason\":\"stop\"}}],\"usage\":{{\"prompt_tokens\":3,\"completion_tokens\":1}}}}\n\n{done}"
            ),
            r#"text "hi" | usage 3(0)+1 | end Stop"#,
        ),
        (
            "DeepSeek: comments while it waits, reasoning, out of capacity",
            format!(
                ": keep-alive\n\n: keep-alive\n\ndata: {{\"choices\":[{{\"delta\":{{\"reasoning_content\":\"hm\",\"content\":null}}}}]}}\n\ndata: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"insufficient_system_resource\"}}]}}\n\n{done}"
            ),
            r#"thinking "hm" | error LLM_OVERLOADED"#,
        ),
        (
            "vLLM: `reasoning`, and an error in the middle",
            format!(
                "data: {{\"choices\":[{{\"delta\":{{\"reasoning\":\"hm\"}}}}]}}\n\n{hi}data: {{\"error\":{{\"message\":\"EngineCore died\",\"type\":\"InternalServerError\",\"code\":500}}}}\n\n"
            ),
            r#"thinking "hm" | text "hi" | error LLM_UNAVAILABLE"#,
        ),
        (
            "llama.cpp: timings, and no text beside a call",
            format!(
                "data: {{\"choices\":[{{\"delta\":{{\"role\":\"assistant\",\"content\":null}}}}]}}\n\n{}data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"tool_calls\"}}],\"timings\":{{\"predicted_n\":3}}}}\n\n{done}",
                call("\"index\":0,", "a", "\"{}\"")
            ),
            called,
        ),
        (
            "LM Studio: no calls in a list, no id, and an error by its event",
            "data: {\"choices\":[{\"delta\":{\"content\":\"hi\",\"tool_calls\":[]}}]}\n\nevent: error\ndata: {\"error\":{\"message\":\"The model has crashed\"}}\n\n"
                .to_owned(),
            r#"text "hi" | error LLM_BAD_RESPONSE"#,
        ),
        (
            "LM Studio: an empty id",
            call("\"index\":0,", "", "\"{}\"") + stop + done,
            called,
        ),
        (
            "Groq: counts in its own corner",
            format!(
                "{hi}data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"}}],\"x_groq\":{{\"usage\":{{\"prompt_tokens\":3,\"completion_tokens\":1}}}}}}\n\n{done}"
            ),
            r#"text "hi" | usage 3(0)+1 | end Stop"#,
        ),
        (
            "LiteLLM: counts beside an empty choice, and a fallback that breaks off",
            format!(
                "{hi}data: {{\"choices\":[{{\"index\":0,\"delta\":{{}}}}],\"usage\":{{\"prompt_tokens\":3,\"completion_tokens\":1}}}}\n\ndata: {{\"error\":{{\"message\":\"MidStreamFallbackError\",\"code\":\"503\"}}}}\n\n"
            ),
            r#"text "hi" | usage 3(0)+1 | error LLM_OVERLOADED"#,
        ),
        (
            "Gemini's compatible door: no index, and an error in a list",
            call("", "a", "\"{}\"")
                + &call("", "b", "\"{}\"")
                + "data: [{\"error\":{\"code\":429,\"message\":\"Resource exhausted\",\"status\":\"RESOURCE_EXHAUSTED\"}}]\n\n",
            "call 0 ls {} | call 1 ls {} | error LLM_RATE_LIMITED",
        ),
        (
            "xAI: counts one chunk too early",
            format!(
                "{hi}data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":3,\"completion_tokens\":1}}}}\n\n{stop}{done}"
            ),
            r#"text "hi" | usage 3(0)+1 | end Stop"#,
        ),
        (
            "Together: an empty chunk at the end",
            format!("{hi}{stop}data: {{\"choices\":[]}}\n\n{done}"),
            good,
        ),
        (
            "proxies: lines that end in CRLF",
            format!("{hi}{stop}{done}").replace('\n', "\r\n"),
            good,
        ),
        (
            "many: one index for all calls",
            call("\"index\":0,", "a", "\"{}\"") + &call("\"index\":0,", "b", "\"{}\"") + stop + done,
            "call 0 ls {} = {} | call 1 ls {} = {} | end ToolUse",
        ),
        (
            "some: arguments as an object",
            call("\"index\":0,", "a", "{\"p\":1}") + stop + done,
            r#"call 0 ls {"p":1} = {"p":1} | end ToolUse"#,
        ),
        (
            "any: all tokens went into thinking",
            format!(
                "data: {{\"choices\":[{{\"delta\":{{\"reasoning\":\"hm\",\"content\":\"\"}}}}]}}\n\ndata: {{\"choices\":[{{\"delta\":{{\"content\":\"\"}},\"finish_reason\":\"length\"}}]}}\n\n{done}"
            ),
            r#"thinking "hm" | end Length"#,
        ),
    ] {
        assert_eq!(decoded(&body), want, "{server}");
    }
}

#[test]
fn a_signature_of_googles_door_comes_with_its_call() {
    let body = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"ls\",\"arguments\":\"{}\"},\"extra_content\":{\"google\":{\"thought_signature\":\"s\"}}}]},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let request = ModelRequest::default();
    let pieces = read(
        Chat::default().read(&request, &config::Provider::default()),
        [body.as_bytes()],
    );
    let opaque = pieces.iter().find_map(|it| match it {
        Piece::CallDone { opaque, .. } => opaque.clone(),
        _ => None,
    });
    assert_eq!(
        opaque,
        Some(json!({ "extra_content": { "google": { "thought_signature": "s" } } }))
    );
}

/// A server that refuses until `wants` of the request's body holds; tells how often it was asked.
async fn picky(error: Value, wants: fn(&Value) -> bool) -> (String, test_server::Diary<Value>) {
    let (told, diary) = test_server::diary();
    let url = test_server::listen(move |mut socket: Socket| {
        let (told, error) = (told.clone(), error.clone());
        async move {
            let request = socket.request().await;
            let body = request.split_once("\r\n\r\n").map(|it| it.1).unwrap_or_default();
            let body: Value = serde_json::from_str(body).unwrap_or_default();
            let answer = if wants(&body) {
                format!("{STREAM}data: {{\"choices\":[{{\"delta\":{{\"content\":\"hi\"}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n")
            } else {
                page("400 Bad Request", "application/json", &json!({ "error": error }).to_string())
            };
            told.send(body).ok();
            socket.send(answer.replacen("\r\n", "\r\nConnection: close\r\n", 1)).await;
        }
    })
    .await;
    (url, diary)
}

fn settings(url: &str) -> config::Provider {
    config::Provider {
        connection: Connection::default().at(url),
        max_tokens: Some(9),
        model: Some("embedder".to_owned()),
        ..config::Provider::default()
    }
}

fn in_a_loop() -> ModelRequest {
    ModelRequest {
        model: "m".to_owned(),
        messages: vec![
            ModelMessage::Assistant(vec![
                Said::Opaque(json!({ "reasoning_content": "long ago" })),
                Said::Text("hi".into()),
            ]),
            ModelMessage::user("look"),
            ModelMessage::Assistant(vec![Said::Call(Call {
                id: "a".to_owned(),
                name: "ls".to_owned(),
                arguments: Map::new(),
                opaque: None,
            })]),
            ModelMessage::Results(vec![CallResult {
                call: "a".to_owned(),
                name: "ls".to_owned(),
                text: "a b".to_owned(),
                is_error: false,
                images: Vec::new(),
            }]),
        ],
        tools: vec![
            ToolSpec {
                name: "ls".to_owned(),
                aliases: vec!["LS".to_owned()],
                about: String::new().into(),
                parameters: json!({ "type": "object" }).into(),
            }
            .into(),
        ],
        ..ModelRequest::default()
    }
}

#[tokio::test]
async fn a_refused_request_is_mended_once_and_stays_mended() {
    type Case = (&'static str, Value, fn(&Value) -> bool);
    let cases: [Case; 4] = [
        (
            "DeepSeek wants its reasoning",
            json!({ "message": "The `reasoning_content` in the thinking mode must be passed back to the API." }),
            |body| {
                body["messages"][0]["reasoning_content"] == "long ago" && body["messages"][2]["reasoning_content"] == ""
            },
        ),
        (
            "a server without parallel calls",
            json!({ "message": "parallel_tool_calls: Extra inputs are not permitted" }),
            |body| body.get("parallel_tool_calls").is_none(),
        ),
        (
            "a limit of another name",
            json!({ "message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "param": "max_tokens" }),
            |body| body.get("max_tokens").is_none() && body["max_completion_tokens"] == 9,
        ),
        (
            "Groq could not read a call",
            json!({ "message": "Failed to call a function. See 'failed_generation' for more details.", "code": "tool_use_failed", "failed_generation": "<function=ls{>" }),
            |body| body["messages"][4]["content"] == "<function=ls{>" && body["messages"][5]["role"] == "user",
        ),
    ];
    for (name, error, wants) in cases {
        let (url, mut diary) = picky(error, wants).await;
        let server = Server::new(Chat::default(), &settings(&url), &Environment::default()).expect("sound settings");
        let pieces: Vec<Piece> = server.stream(in_a_loop()).collect().await;
        assert_eq!(shape(&pieces), r#"text "hi" | end Stop"#, "{name}");
        assert!(
            pieces
                .iter()
                .any(|it| matches!(it, Piece::Notice(it) if it.code == "asked-again")),
            "{name}: it is said"
        );
        assert_eq!(diary.so_far().len(), 2, "{name}");
        let pieces: Vec<Piece> = server.stream(in_a_loop()).collect().await;
        assert_eq!(shape(&pieces), r#"text "hi" | end Stop"#, "{name}");
        // What belongs to one answer is not remembered.
        let asked = if name.starts_with("Groq") { 2 } else { 1 };
        assert_eq!(diary.so_far().len(), asked, "{name}, the next time");
    }
    let (url, mut diary) = picky(json!({ "message": "temperature is out of range" }), |_| false).await;
    let server = Server::new(Chat::default(), &settings(&url), &Environment::default()).expect("sound settings");
    let pieces: Vec<Piece> = server.stream(in_a_loop()).collect().await;
    assert_eq!(shape(&pieces), "error LLM_BAD_RESPONSE");
    assert_eq!(diary.so_far().len(), 2, "once, and then no more");
}

#[tokio::test]
async fn a_call_that_was_printed_is_a_call_if_its_tool_was_offered() {
    // By any of its names: which is meant is found out where a call of the server's own is.
    for (name, is_known) in [("ls", true), ("LS", true), ("Ls", false)] {
        let text =
            format!("I look.\n<tool_call>{{\"name\": {name:?}, \"arguments\": {{\"path\": \".\"}}}}</tool_call>");
        let chunk = json!({ "choices": [{ "delta": { "content": text }, "finish_reason": "stop" }] });
        let url = test_server::answer(format!("{STREAM}data: {chunk}\n\ndata: [DONE]\n\n")).await;
        let server = Server::new(Chat::default(), &settings(&url), &Environment::default()).expect("sound settings");
        let pieces: Vec<Piece> = server.stream(in_a_loop()).collect().await;
        let nothing = format!("text {text:?} | end Stop");
        let call = format!("text {text:?} | call 0 {name} {{\"path\":\".\"}} = {{\"path\":\".\"}} | end ToolUse");
        assert_eq!(shape(&pieces), if is_known { call } else { nothing.clone() });
        let without = ModelRequest {
            tools: Vec::new(),
            ..in_a_loop()
        };
        let pieces: Vec<Piece> = server.stream(without).collect().await;
        assert_eq!(shape(&pieces), nothing);
    }
}

#[tokio::test]
async fn texts_become_vectors_in_their_order() {
    let texts = || vec!["a".to_owned(), "b".to_owned()];
    // 1.0 and -2.5 as little-endian floats.
    for (name, body, want) in [
        (
            "numbers",
            r#"{"object":"list","data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[3,0.5]}]}"#,
            Some([[1.0, 2.0], [3.0, 0.5]]),
        ),
        (
            "out of order",
            r#"{"data":[{"index":1,"embedding":[3,0.5]},{"index":0,"embedding":[1,2]}]}"#,
            Some([[1.0, 2.0], [3.0, 0.5]]),
        ),
        (
            "base64 unasked",
            r#"{"data":[{"index":0,"embedding":"AACAPwAAIMA="},{"index":1,"embedding":"AAAgwAAAgD8="}]}"#,
            Some([[1.0, -2.5], [-2.5, 1.0]]),
        ),
        ("too few", r#"{"data":[{"index":0,"embedding":[1,2]}]}"#, None),
        (
            "half a number",
            r#"{"data":[{"index":0,"embedding":"AACAPwA="},{"index":1,"embedding":[1]}]}"#,
            None,
        ),
        (
            "words",
            r#"{"data":[{"index":0,"embedding":["a"]},{"index":1,"embedding":[1]}]}"#,
            None,
        ),
        ("an error", r#"{"error":{"message":"no"}}"#, None),
    ] {
        let url = test_server::answer(page("200 OK", "application/json", body)).await;
        let server = Server::new(Chat::default(), &settings(&url), &Environment::default()).expect("sound settings");
        let got = server.embed(texts()).await.ok();
        assert_eq!(got, want.map(|it| it.map(Vec::from).to_vec()), "{name}");
    }
}
