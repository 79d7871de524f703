//! Questions to a model beside the conversation: nothing of them is stored, and no tool is offered.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;

use super::notices::now_ms;
use crate::{
    agent::{history, tags::wrap},
    config::Settings,
    journal::Log,
    models::{Chosen, Effort, ModelMessage, ModelRequest, Piece, Tokens, catalogue},
    protocol::{Cost, Event, Position, SideAnswer, Usage},
};

const SYSTEM: &str = include_str!("../../../assets/prompts/side_question.md");
/// Longest answer, in bytes; the rest is left out.
const ANSWER_BYTES: usize = 64 << 10;
/// Somebody waits for it on a page.
const PATIENCE: Duration = Duration::from_mins(3);

/// Answers a question about the conversation so far.
pub async fn side_question(chosen: Chosen, settings: Arc<Settings>, log: Arc<Log>, question: String) -> SideAnswer {
    let bill = Bill {
        settings,
        log: Arc::clone(&log),
    };
    let read = move || {
        let mut messages = history::text_only(&log.after(Position(0))).messages;
        messages.push(ModelMessage::user(wrap("side_question", &question)));
        messages
    };
    // A long conversation is read from the disk.
    let answer = match tokio::task::spawn_blocking(read).await {
        Ok(messages) => {
            let said = said(chosen, SYSTEM, messages, ANSWER_BYTES, &bill);
            tokio::time::timeout(PATIENCE, said).await
        }
        Err(error) => Ok(Err(error.to_string())),
    };
    match answer.unwrap_or_else(|_| Err("the model took too long".to_owned())) {
        Ok(text) => SideAnswer {
            text: text.trim().to_owned(),
            problem: String::new(),
        },
        Err(problem) => SideAnswer {
            text: String::new(),
            problem,
        },
    }
}

/// The place where requests beside the conversation are counted.
pub struct Bill {
    pub settings: Arc<Settings>,
    pub log: Arc<Log>,
}

impl Bill {
    /// Counts the tokens of a request.
    fn add(&self, model: &str, tokens: &Tokens) {
        if *tokens == Tokens::default() {
            return;
        }
        let prices = catalogue::known(model, &self.settings.models).prices;
        let cost = Cost {
            usage: Usage {
                prompt_tokens: tokens.prompt,
                completion_tokens: tokens.completion,
                total_tokens: tokens.prompt.saturating_add(tokens.completion),
            },
            dollars: prices.map(|it| it.of(tokens).dollars),
        };
        self.log.append(now_ms(), Event::Notice(cost.notice()));
    }
}

/// Asks a model without tools; returns its text, at most so many bytes of it. An error is a sentence for the user. The request
/// is counted on the bill, also when it fails.
pub async fn said(
    chosen: Chosen,
    system: &str,
    messages: Vec<ModelMessage>,
    limit_bytes: usize,
    bill: &Bill,
) -> Result<String, String> {
    let model = chosen.model.clone();
    let request = ModelRequest {
        model: chosen.model,
        system: system.into(),
        messages,
        effort: Some(Effort::Off),
        ..ModelRequest::default()
    };
    let mut pieces = chosen.provider.stream(request);
    let (mut said, mut tokens) = (String::new(), Tokens::default());
    let mut failed = None;
    while let Some(piece) = pieces.next().await {
        match piece {
            Piece::Text(text) => {
                let room = limit_bytes.saturating_sub(said.len());
                said.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
            }
            Piece::Usage(it) => tokens = it,
            Piece::Error(failure) => failed = Some(failure.message.to_string()),
            _ => {}
        }
    }
    bill.add(&model, &tokens);
    failed.map_or(Ok(said), Err)
}
