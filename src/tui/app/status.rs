//! The line of a user's own command in the header, in the place of its usual parts.
//!
//! The command is one of the user's own settings and never a project's. It is told the state as JSON on its standard input,
//! whenever that has changed and no run of it is under way, and its first line is shown.

use serde_json::{Value, json};

use super::App;
use crate::{link::Held, text::Sanitized};

#[derive(Debug, Default)]
pub struct Status {
    /// The program and its arguments; empty if there is no command.
    command: Vec<String>,
    /// The state that it was given last.
    told: Option<Value>,
    is_running: bool,
    line: Sanitized,
    /// Why there is no line.
    fault: Option<Sanitized>,
}

impl Status {
    pub fn new(command: Vec<String>) -> Self {
        Self {
            command,
            ..Self::default()
        }
    }

    /// The line, or why there is none; `None`: the parts stand there.
    pub fn line(&self) -> Option<Result<&Sanitized, &Sanitized>> {
        if self.command.is_empty() {
            return None;
        }
        Some(self.fault.as_ref().map_or(Ok(&self.line), Err))
    }

    /// Takes the command's output. The previous line stays until then.
    pub fn said(&mut self, output: Result<String, String>) {
        self.is_running = false;
        match output {
            Ok(text) => {
                self.line = Sanitized::line(text.lines().next().unwrap_or_default().trim_end());
                self.fault = None;
            }
            Err(why) => self.fault = Some(Sanitized::line(&why)),
        }
    }
}

impl App {
    /// Returns the command and its input if that has changed and no run is under way.
    pub fn status_due(&mut self) -> Option<(Vec<String>, String)> {
        if self.status.command.is_empty() || self.status.is_running {
            return None;
        }
        let state = self.state();
        if self.status.told.as_ref() == Some(&state) {
            return None;
        }
        let text = state.to_string();
        self.status.told = Some(state);
        self.status.is_running = true;
        Some((self.status.command.clone(), text))
    }

    fn state(&self) -> Value {
        let (_, total) = self.conversation.transcript.usage();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "workspace": self.conversation.workspace.folder,
            "branch": self.conversation.workspace.branch,
            "title": self.conversation.transcript.title(),
            "mode": self.composer.mode.as_str(),
            "model": self.composer.model_name(&self.conversation.about),
            "effort": self.composer.effort,
            "peer": self.conversation.about.peer,
            "isRunning": self.conversation.transcript.is_running(),
            "isAsking": self.conversation.transcript.open_question().is_some(),
            "queued": self.composer.queue.len(),
            "context": { "tokens": self.conversation.transcript.context_tokens(), "window": self.conversation.window() },
            "usage": { "promptTokens": total.prompt_tokens, "completionTokens": total.completion_tokens },
            "costUsd": self.conversation.transcript.cost(),
            "sandbox": self.conversation.about.hold.known().map(|it| match it {
                Held::Whole => "full",
                Held::Partly(_) => "partial",
                Held::Nothing => "none",
            }),
        })
    }
}
