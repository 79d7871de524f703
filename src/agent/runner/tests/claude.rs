//! Turns with a server of Anthropic's format: thinking between calls, and a window that is full in mid-answer.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;

/// A message in Anthropic's stream: its blocks, each with the deltas, and why it stopped.
fn message(blocks: &[(Value, &[Value])], reason: &str, input: u64) -> String {
    let mut events =
        vec![json!({ "type": "message_start", "message": { "id": "m", "usage": { "input_tokens": input } } })];
    for (index, (block, deltas)) in blocks.iter().enumerate() {
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": block }));
        for delta in *deltas {
            events.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        }
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    events
        .push(json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": 5 } }));
    events.push(json!({ "type": "message_stop" }));
    let events = events.iter().map(|it| format!("data: {it}\n\n"));
    format!("{STREAM}{}", events.collect::<String>())
}

fn says(text: &str, reason: &str) -> String {
    let block = json!({ "type": "text", "text": "" });
    message(
        &[(block, &[json!({ "type": "text_delta", "text": text })])],
        reason,
        100,
    )
}

/// A conversation with a model of a server that answers by the request and its number, and what was asked.
async fn conversation(
    model: &str,
    answer: impl Fn(usize, &Value) -> String + Clone + Send + Sync + 'static,
) -> (Conversation, test_server::Diary<Value>) {
    let (told, diary) = test_server::diary();
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let url = test_server::listen(move |mut socket: Socket| {
        let (told, count, answer) = (told.clone(), Arc::clone(&count), answer.clone());
        async move {
            let body = body(&socket.request().await);
            let at = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let answer = answer(at, &body).replacen("\r\n", "\r\nConnection: close\r\n", 1);
            told.send(body).ok();
            socket.send(answer).await;
        }
    })
    .await;
    let settings = config::Provider {
        kind: "anthropic".to_owned(),
        connection: Connection::default().at(&url),
        model: Some(model.to_owned()),
        ..config::Provider::default()
    };
    (Conversation::over(settings), diary)
}

#[tokio::test]
async fn an_answer_that_filled_the_window_is_asked_for_again_after_a_summary() {
    const FIRST: &str = "first long words ";
    let (mut conversation, mut diary) = conversation("claude-opus-4-6", |at, body| match at {
        0..3 => says(&FIRST.repeat(3000), "end_turn"),
        3 => says("The answer is", "model_context_window_exceeded"),
        // It has no tools and is asked for a summary, or for the answer again.
        _ if body.to_string().contains("This is what was asked and done") => says("The answer is 42.", "end_turn"),
        _ => says("This is what was asked and done", "end_turn"),
    })
    .await;
    for turn in 1..=3 {
        conversation.submit("go on", Mode::Agent, Some("claude-opus-4-6"));
        conversation.until_done(turn).await;
    }
    conversation.submit("and the answer?", Mode::Agent, Some("claude-opus-4-6"));
    conversation.until_done(4).await;
    let shown = conversation.shown(4);
    assert!(
        shown.ends_with("text \"The answer is 42.\" | completed stop"),
        "{shown}"
    );
    assert!(
        shown.contains("incomplete \"The answer is\""),
        "what was said stays and is marked: {shown}"
    );
    let kinds: Vec<_> = conversation.transcript.exchanges[3]
        .response
        .documents
        .iter()
        .map(|it| (it.kind.to_string(), it.metadata.get("toolName").cloned()))
        .collect();
    assert!(
        kinds.contains(&("tool_call".to_owned(), Some(json!("compact_conversation")))),
        "the person sees that the conversation was made shorter: {kinds:?}"
    );
    let mut asked = Vec::new();
    for _ in 0..6 {
        asked.push(diary.next().await);
    }
    assert!(asked[3].to_string().contains(FIRST), "the whole was sent");
    let last = asked.pop().expect("a request");
    assert!(
        !last.to_string().contains(&FIRST.repeat(10)),
        "the long answers are gone"
    );
    assert!(
        last.to_string().contains("and the answer?") && last.to_string().contains("This is what was asked and done")
    );
    assert!(
        !last.to_string().contains("The answer is"),
        "the part that was cut is not told"
    );
}

#[tokio::test]
async fn an_answer_that_fills_the_window_again_ends_and_says_what_to_do() {
    let (mut conversation, _diary) = conversation("claude-opus-4-6", |_, _| {
        says("The answer is", "model_context_window_exceeded")
    })
    .await;
    conversation.submit("one long message", Mode::Agent, Some("claude-opus-4-6"));
    conversation.until_done(1).await;
    let shown = conversation.shown(1);
    assert!(
        shown.contains("error LLM_CONTEXT_LENGTH") && shown.ends_with("error error"),
        "{shown}"
    );
    let response = &conversation.transcript.exchanges[0].response;
    let error = response.documents.last().expect("an error");
    let details = error
        .metadata
        .get("details")
        .and_then(Value::as_str)
        .unwrap_or_default();
    assert!(details.contains("/new"), "the next step is named: {details:?}");
}
