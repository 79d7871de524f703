//! Answers that break off, and servers that fail.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::models::{Failure, Model, ModelRequest, Piece, PieceStream, Promise};

#[tokio::test]
async fn an_answer_that_breaks_off_keeps_what_came() {
    let cases = [
        (
            "cut",
            format!("{STREAM}{}", chunk("so far")),
            r#"text incomplete "so far" | error STREAM_INTERRUPTED "the answer broke off before its end" | error interrupted"#,
        ),
        (
            "cut in a fence",
            format!("{STREAM}{}", chunk("a\n```c\nx")),
            r#"text "a" | code_block incomplete "x" | error STREAM_INTERRUPTED "the answer broke off before its end" | error interrupted"#,
        ),
        (
            "an error in mid-stream",
            format!("{STREAM}{}data: {{\"error\":\"boom\"}}\n\n", chunk("so far")),
            r#"text incomplete "so far" | error LLM_BAD_RESPONSE "the server reported an error" | error error"#,
        ),
        (
            "an error at once",
            page("401 No", "application/json", "{\"error\":{\"message\":\"no\"}}"),
            r#"error LLM_AUTH "the server does not accept the key" | error error"#,
        ),
        (
            "the body is shorter than promised",
            page("200 OK", "text/event-stream", &chunk("so far")).replace("Length: ", "Length: 9"),
            r#"text incomplete "so far" | error STREAM_INTERRUPTED "the connection to URL broke during the answer" | error interrupted"#,
        ),
    ];
    for (name, answer, want) in cases {
        let url = test_server::answer(answer).await;
        let mut conversation = Conversation::once(&url);
        conversation.say("hi");
        conversation.until_done(1).await;
        assert_eq!(conversation.shown(1), want.replace("URL", &url), "{name}");
    }
}

#[tokio::test]
async fn nothing_malformed_reaches_the_next_request() {
    let half = json!({ "choices": [{ "delta": { "tool_calls": [
        { "index": 0, "id": "BROKEN", "function": { "name": "write", "arguments": "{\"file_path\": \"BROKEN" } },
    ] } }] });
    let whole = json!({ "choices": [{ "delta": { "tool_calls": [
        { "index": 0, "id": "BROKEN", "function": { "name": "write", "arguments": "{\"file_path\": \"BROKEN\"}" } },
    ] } }] });
    for (name, rest) in [
        ("no JSON", b"data: {BROKEN\n\n".to_vec()),
        ("another shape", b"data: {\"choices\": \"BROKEN\"}\n\n".to_vec()),
        ("another line", b"BROKEN\n\n".to_vec()),
        (
            "no UTF-8",
            b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\xfeBROKEN\n\n".to_vec(),
        ),
        (
            "half an event",
            b"data: {\"choices\":[{\"delta\":{\"content\":\"BROKEN".to_vec(),
        ),
        ("half a call", format!("data: {half}\n\n").into_bytes()),
        (
            "a whole call before the break",
            format!("data: {whole}\n\n").into_bytes(),
        ),
        ("an error", b"data: {\"error\":{\"message\":\"BROKEN\"}}\n\n".to_vec()),
    ] {
        let (told, mut diary) = test_server::diary();
        let url = test_server::listen(move |mut socket: Socket| {
            let (told, rest) = (told.clone(), rest.clone());
            async move {
                let body = body(&socket.request().await);
                let is_first = body["messages"].as_array().is_some_and(|it| it.len() == 2);
                told.send(body).ok();
                if is_first {
                    socket.send(format!("{STREAM}{}", chunk("so far"))).await;
                    socket.send(rest).await;
                } else {
                    socket.send(answer("ok")).await;
                }
            }
        })
        .await;
        let mut conversation = Conversation::once(&url);
        conversation.say("hi");
        conversation.until_done(1).await;
        conversation.say("again");
        conversation.until_done(2).await;
        diary.next().await;
        let messages = diary.next().await["messages"].clone();
        assert!(!messages.to_string().contains("BROKEN"), "{name}: {messages}");
        assert_eq!(
            messages[2],
            json!({ "role": "assistant", "content": "so far" }),
            "{name}: {messages}"
        );
        assert_eq!(conversation.shown(2), r#"text "ok" | completed stop"#, "{name}");
    }
}

#[tokio::test]
async fn a_server_that_falls_silent_is_given_up() {
    let url = test_server::listen(|mut socket: Socket| async move {
        socket.request().await;
        socket.send(format!("{STREAM}{}", chunk("so far"))).await;
        socket.hang().await;
    })
    .await;
    let mut connection = Connection::default().at(&url);
    connection.idle_timeout = Duration::from_millis(100);
    connection.retries = 0;
    let mut conversation = Conversation::over(config::Provider {
        connection,
        ..config::Provider::default()
    });
    conversation.say("hi");
    conversation.until_done(1).await;
    assert_eq!(
        conversation.shown(1),
        format!(
            "text incomplete \"so far\" | error STREAM_INTERRUPTED \"{url} sent no data for 100 ms\" | error interrupted"
        )
    );
}

#[tokio::test]
async fn a_busy_server_is_asked_again_with_a_countdown() {
    let (told, mut diary) = test_server::diary();
    let url = test_server::listen(move |mut socket: Socket| {
        let told = told.clone();
        async move {
            socket.request().await;
            told.send(()).ok();
            let busy = page("429 Slow", "application/json", "{\"error\":\"slow down\"}");
            socket
                .send(busy.replace("\r\n\r\n", "\r\nRetry-After: 1\r\n\r\n"))
                .await;
        }
    })
    .await;
    let mut conversation = Conversation::with(&url);
    conversation.say("hi");
    let is_counting = |it: &Progress| matches!(it, Progress::Retrying { attempt: 1, of: 10, .. });
    conversation
        .until("the countdown", |it| it.has_progress(is_counting))
        .await;
    diary.next().await;
    diary.next().await;
    conversation.link.send(Command::Cancel);
    conversation.until_done(1).await;
    assert_eq!(conversation.shown(1), "completed cancelled");
}

#[tokio::test]
async fn an_answer_that_breaks_off_before_a_call_is_asked_for_again() {
    let (told, mut diary) = test_server::diary();
    let is_first = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let url = test_server::listen(move |mut socket: Socket| {
        let (told, is_first) = (told.clone(), Arc::clone(&is_first));
        async move {
            told.send(body(&socket.request().await)).ok();
            if is_first.swap(false, std::sync::atomic::Ordering::SeqCst) {
                socket.send(format!("{STREAM}{}", chunk("so far"))).await;
            } else {
                socket.send(answer("ok")).await;
            }
        }
    })
    .await;
    let mut conversation = Conversation::with(&url);
    conversation.say("hi");
    conversation.until_done(1).await;
    assert_eq!(
        conversation.shown(1),
        r#"text incomplete "so far" | text "ok" | completed stop"#
    );
    let (first, second) = (diary.next().await, diary.next().await);
    assert_eq!(first["messages"], second["messages"], "what broke off is not told");
    conversation.say("again");
    conversation.until_done(2).await;
    let third = diary.next().await["messages"].clone();
    assert_eq!(third[2], json!({ "role": "assistant", "content": "ok" }), "{third}");
}

/// A provider that breaks its promise.
struct Mute;

impl Provider for Mute {
    fn peer(&self) -> &'static str {
        "nobody"
    }

    fn stream(&self, _: ModelRequest) -> PieceStream {
        Box::pin(futures::stream::iter([Piece::Text("so far".to_owned())]))
    }

    fn warm(&self) -> Promise<()> {
        Box::pin(std::future::ready(()))
    }

    fn models(&self) -> Promise<Result<Vec<Model>, Failure>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

#[tokio::test]
async fn a_provider_that_forgets_its_end_does_not_hang_the_conversation() {
    let mut conversation = Conversation::of(Arc::new(Mute));
    conversation.say("hi");
    conversation.until_done(1).await;
    assert_eq!(
        conversation.shown(1),
        r#"text incomplete "so far" | error STREAM_INTERRUPTED "the provider stopped without a word" | error interrupted"#
    );
}
