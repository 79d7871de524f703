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

/// An answer of one text to a request of so many tokens.
fn says_after(input: u64, text: &str, reason: &str) -> String {
    let block = json!({ "type": "text", "text": "" });
    message(
        &[(block, &[json!({ "type": "text_delta", "text": text })])],
        reason,
        input,
    )
}

fn says(text: &str, reason: &str) -> String {
    says_after(100, text, reason)
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
    let mut conversation = Conversation::over(settings.clone());
    conversation.provider = settings;
    (conversation, diary)
}

#[tokio::test]
async fn an_answer_that_filled_the_window_is_asked_for_again_after_a_summary() {
    const FIRST: &str = "first long words ";
    let (mut conversation, mut diary) = conversation("claude-opus-4-6", |at, body| match at {
        0..6 => says_after(16_000 * at as u64 + 100, &FIRST.repeat(3000), "end_turn"),
        6 => says_after(96_000, "The answer is", "model_context_window_exceeded"),
        // It has no tools and is asked for a summary, or for the answer again.
        _ if body.to_string().contains("This is what was asked and done") => says("The answer is 42.", "end_turn"),
        _ => says("This is what was asked and done", "end_turn"),
    })
    .await;
    for turn in 1..=6 {
        conversation.submit("go on", Mode::Agent, Some("claude-opus-4-6"));
        conversation.until_done(turn).await;
    }
    conversation.submit("and the answer?", Mode::Agent, Some("claude-opus-4-6"));
    conversation.until_done(7).await;
    let shown = conversation.shown(7);
    assert!(
        shown.ends_with("text \"The answer is 42.\" | completed stop"),
        "{shown}"
    );
    assert!(
        shown.contains("incomplete \"The answer is\""),
        "what was said stays and is marked: {shown}"
    );
    let kinds: Vec<_> = conversation.transcript.exchanges[6]
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
    for _ in 0..9 {
        asked.push(diary.next().await);
    }
    assert!(asked[6].to_string().contains(FIRST), "the whole was sent");
    let last = asked.pop().expect("a request");
    let count = |it: &Value| it.to_string().matches(&FIRST.repeat(3000)).count();
    assert!(count(&last) < count(&asked[6]), "some of the long answers are gone");
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

/// A conversation of an agent with all tools whose settings let the provider search.
async fn searching(
    answer: impl Fn(usize, &Value) -> String + Clone + Send + Sync + 'static,
) -> (Conversation, test_server::Diary<Value>) {
    let (mut conversation, diary) = conversation("claude-opus-4-6", answer).await;
    // The same server, with other settings.
    conversation.agent.abort();
    let provider = conversation.provider.clone();
    let mut settings = Settings {
        provider: Some("anthropic".to_owned()),
        ..Settings::default()
    };
    settings.providers.insert("anthropic".to_owned(), provider.clone());
    settings.web.search.kind = Some("provider".to_owned());
    let provider = models::open(&provider, &Environment::default()).expect("sound settings");
    let log = Log::new();
    let (link, inbox) = Local::new(Arc::clone(&log), About::default());
    let setup = Setup {
        provider,
        model: "claude-opus-4-6".to_owned(),
        conversation: "conv_1".into(),
        asker: Asker::Here,
        workspace: None,
        settings: Arc::new(settings),
        tools: crate::tools::built_in().clone(),
        roles: Arc::new(Roles::new(&Settings::default(), &Environment::default())),
        index: Arc::default(),
        embeddings: Arc::default(),
        paths: None,
        hold: SandboxStatus::default(),
        servers: None,
    };
    conversation.agent = tokio::spawn(run(setup, Arc::clone(&log), inbox));
    conversation.link = link;
    conversation.follower = log.follow(Position(0));
    (conversation, diary)
}

#[tokio::test]
async fn a_search_of_the_provider_is_a_document_and_goes_back_unchanged() {
    let used =
        json!({ "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": { "query": "q" } });
    let found = json!({ "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
        { "type": "web_search_result", "url": "https://a.example/", "title": "A", "encrypted_content": "EqgF" }
    ] });
    let blocks = [used.clone(), found.clone()];
    let (mut conversation, mut diary) = searching(move |at, _| {
        if at > 0 {
            return says("ok", "end_turn");
        }
        let text = (
            json!({ "type": "text", "text": "" }),
            vec![
                json!({ "type": "text_delta", "text": "It is so" }),
                json!({ "type": "citations_delta", "citation": { "url": "https://a.example/", "title": "A" } }),
            ],
        );
        let all = [(blocks[0].clone(), Vec::new()), (blocks[1].clone(), Vec::new()), text];
        let all: Vec<(Value, &[Value])> = all
            .iter()
            .map(|(block, deltas)| (block.clone(), deltas.as_slice()))
            .collect();
        message(&all, "end_turn", 100)
    })
    .await;
    conversation.say("is it so?");
    conversation.until_done(1).await;
    let response = &conversation.transcript.exchanges[0].response;
    let search = &response.documents[0];
    assert_eq!(
        (
            &search.metadata["toolName"],
            &search.metadata["arguments"],
            &search.metadata["result"]
        ),
        (
            &json!("web_search"),
            &json!({ "search_term": "q" }),
            &json!({ "status": "success", "data": "A\nhttps://a.example/" })
        )
    );
    assert_eq!(response.documents[1].text(), "It is so [1](https://a.example/)");
    conversation.say("and now?");
    conversation.until_done(2).await;
    let first = diary.next().await;
    let tools = first["tools"].as_array().expect("tools");
    let search = tools.iter().filter(|it| it["name"] == "web_search").collect::<Vec<_>>();
    assert_eq!(search.len(), 1);
    assert_eq!(search[0]["type"], "web_search_20250305");
    let second = diary.next().await;
    let said = second["messages"][1]["content"].as_array().expect("blocks").clone();
    assert_eq!(said[..2], [used, found]);
}
