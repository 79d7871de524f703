//! What a command of the user's says in the header, in the place of the parts that stand there otherwise.
//!
//! The command is one of the user's own settings and never a project's. It is told the state as JSON on its standard input,
//! whenever that has changed and no run of it is under way, and its first line is shown.

use serde_json::{Value, json};

use super::app::App;
use crate::{link::Held, text::Clean};

#[derive(Debug, Default)]
pub struct Status {
    /// The program and its arguments; none: there is no such command.
    command: Vec<String>,
    /// What it was told last.
    told: Option<Value>,
    is_running: bool,
    line: Clean,
    /// Why there is no line.
    fault: Option<Clean>,
}

impl Status {
    pub fn new(command: Vec<String>) -> Self {
        Self {
            command,
            ..Self::default()
        }
    }

    /// The line, or why there is none; `None`: the parts stand there.
    pub fn line(&self) -> Option<Result<&Clean, &Clean>> {
        if self.command.is_empty() {
            return None;
        }
        Some(self.fault.as_ref().map_or(Ok(&self.line), Err))
    }

    /// What it said. The line that stood there stays until then.
    pub fn said(&mut self, output: Result<String, String>) {
        self.is_running = false;
        match output {
            Ok(text) => {
                self.line = Clean::line(text.lines().next().unwrap_or_default().trim_end());
                self.fault = None;
            }
            Err(why) => self.fault = Some(Clean::line(&why)),
        }
    }
}

impl App {
    /// The command and what it is told, where that is news.
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
        let (_, total) = self.transcript.usage();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "workspace": self.place.workspace,
            "branch": self.place.branch,
            "title": self.transcript.title(),
            "mode": self.mode.as_str(),
            "model": self.model_name(),
            "effort": self.effort,
            "peer": self.about.peer,
            "isRunning": self.transcript.is_running(),
            "isAsking": self.transcript.waiting().is_some(),
            "queued": self.composer.queue.len(),
            "context": { "tokens": self.transcript.context_tokens(), "window": self.window() },
            "usage": { "promptTokens": total.prompt_tokens, "completionTokens": total.completion_tokens },
            "costUsd": self.transcript.cost(),
            "sandbox": self.about.hold.known().map(|it| match it {
                Held::Whole => "full",
                Held::Partly(_) => "partial",
                Held::Nothing => "none",
            }),
        })
    }
}
