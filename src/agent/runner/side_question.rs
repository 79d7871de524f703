//! Questions to a model beside the conversation: nothing of them is stored, and no tool is offered.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;

use crate::{
    agent::{history, tags::wrap},
    journal::Log,
    models::{Chosen, Effort, ModelMessage, ModelRequest, Piece},
    protocol::{Position, SideAnswer},
};

const SYSTEM: &str = include_str!("../../../assets/prompts/side_question.md");
/// Longest answer, in bytes; the rest is left out.
const ANSWER_BYTES: usize = 64 << 10;
/// Somebody waits for it on a page.
const PATIENCE: Duration = Duration::from_mins(3);

/// Answers a question about the conversation so far.
pub async fn side_question(chosen: Chosen, log: Arc<Log>, question: String) -> SideAnswer {
    let read = move || {
        let mut messages = history::text_only(&log.after(Position(0))).messages;
        messages.push(ModelMessage::user(wrap("side_question", &question)));
        messages
    };
    // A long conversation is read from the disk.
    let answer = match tokio::task::spawn_blocking(read).await {
        Ok(messages) => tokio::time::timeout(PATIENCE, said(chosen, SYSTEM, messages, ANSWER_BYTES)).await,
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

/// Asks a model without tools; returns its text, at most so many bytes of it. An error is a sentence for the user.
pub async fn said(
    chosen: Chosen,
    system: &str,
    messages: Vec<ModelMessage>,
    limit_bytes: usize,
) -> Result<String, String> {
    let request = ModelRequest {
        model: chosen.model,
        system: system.to_owned(),
        messages,
        effort: Some(Effort::Off),
        ..ModelRequest::default()
    };
    let mut pieces = chosen.provider.stream(request);
    let mut said = String::new();
    while let Some(piece) = pieces.next().await {
        match piece {
            Piece::Text(text) => {
                let room = limit_bytes.saturating_sub(said.len());
                said.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
            }
            Piece::Error(failure) => return Err(failure.message.to_string()),
            _ => {}
        }
    }
    Ok(said)
}
