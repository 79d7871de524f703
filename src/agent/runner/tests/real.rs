//! With a model server that is one.

use std::{io::Write, time::Instant};

use pretty_assertions::assert_eq;

use super::*;
use crate::protocol::{Kind, Status};

/// With a real server: `SHEAF_TEST_MODEL_URL=http://127.0.0.1:8089 cargo test real_model -- --nocapture`.
#[tokio::test]
async fn a_real_model_answers() {
    let Ok(url) = std::env::var("SHEAF_TEST_MODEL_URL") else {
        // Past the capture of a test's output, which would swallow it.
        let skipped = "SKIPPED: a_real_model_answers needs SHEAF_TEST_MODEL_URL, the address of a model server";
        writeln!(std::io::stderr(), "\n{skipped}").ok();
        return;
    };
    let mut settings = config::Provider {
        connection: Connection::default().at(&url),
        ..config::Provider::default()
    };
    settings.max_tokens = Some(200);
    settings.temperature = Some(0.0);
    let mut conversation = Conversation::over(settings);
    // A busy machine needs minutes for the first word.
    conversation.patience = Duration::from_mins(5);
    let models = conversation.link.ask(Query::Models).await.expect("a list of models");
    eprintln!("models: {models:?}");
    let questions = [
        "Write a Rust function that adds two numbers. Answer with one fenced code block and nothing else.",
        "What is the name of the function in your last answer? Answer with the name only.",
    ];
    for (at, question) in questions.iter().enumerate() {
        conversation.submit(question, Mode::Agent, Some(""));
        conversation.until_done(at + 1).await;
        let exchange = conversation.transcript.exchanges.get(at).expect("the turn is there");
        eprintln!(
            "{question}\n-> {} {:?}",
            conversation.shown(at + 1),
            exchange.response.usage
        );
        let ending = exchange.response.ending.clone().expect("it ended");
        assert_eq!(ending.status, Status::Completed);
        assert!(exchange.response.usage.completion_tokens > 0, "the server counts");
        assert!(exchange.response.model.is_some(), "the server says which model");
    }
    let first = conversation.transcript.exchanges.first().expect("the turn is there");
    assert!(
        first.response.documents.iter().any(|it| it.kind == Kind::CodeBlock),
        "{}",
        conversation.shown(1)
    );
    // In mid-answer, a real server's connection too is dropped at once.
    conversation.submit("Count from 1 to 500, one number a line.", Mode::Ask, Some(""));
    let has_begun = |it: &Conversation| {
        it.transcript
            .exchanges
            .get(2)
            .is_some_and(|it| !it.response.documents.is_empty())
    };
    conversation.until("the first number", has_begun).await;
    let start = Instant::now();
    conversation.link.send(Command::Cancel);
    conversation.until_done(3).await;
    eprintln!("cancelled within {:?}: {}", start.elapsed(), conversation.shown(3));
}
