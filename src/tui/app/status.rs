//! The line of a user's own command in the header, in the place of its usual parts.
//!
//! The command is one of the user's own settings and never a project's. It is told the state as JSON on its standard input, in
//! the form that Claude Code gives its status lines,
//! whenever that or the size of the screen has changed and no run of it is under way. Its first line is shown in the header, in its
//! colours, and a few more below it.

use serde_json::{Value, json};

use super::App;
use crate::{
    link::Held,
    text::{
        Sanitized, Span,
        ansi::{Output, only_colours},
    },
};

/// Lines of the output that are shown.
const MOST_LINES: usize = 4;
/// Bytes of the output that are read.
const MOST_BYTES: usize = 16 << 10;

/// A run of the status command that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusRun {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its standard input.
    pub state: String,
    /// Columns and lines of the screen.
    pub size: (u16, u16),
}

#[derive(Debug, Default)]
pub struct Status {
    /// The program and its arguments; empty if there is no command.
    command: Vec<String>,
    /// The state and the size that it was given last.
    told: Option<(Value, (u16, u16))>,
    is_running: bool,
    lines: Vec<Vec<Span>>,
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

    /// The line in the header, or why there is none; `None`: the parts stand there.
    pub fn line(&self) -> Option<Result<&[Span], &Sanitized>> {
        if self.command.is_empty() {
            return None;
        }
        let first = self.lines.first().map_or(&[][..], Vec::as_slice);
        Some(self.fault.as_ref().map_or(Ok(first), Err))
    }

    /// The lines below the header.
    pub fn more(&self) -> &[Vec<Span>] {
        match &self.fault {
            None => self.lines.get(1..).unwrap_or_default(),
            Some(_) => &[],
        }
    }

    /// Takes the command's output. The previous lines stay until then.
    pub fn said(&mut self, output: Result<String, String>) {
        self.is_running = false;
        match output {
            Ok(text) => {
                let end = text.floor_char_boundary(MOST_BYTES);
                let output = Output::of(&only_colours(text.get(..end).unwrap_or_default()));
                self.lines = output.lines(0..MOST_LINES);
                while self.lines.last().is_some_and(Vec::is_empty) {
                    self.lines.pop();
                }
                self.fault = None;
            }
            Err(why) => self.fault = Some(Sanitized::line(&why)),
        }
    }
}

impl App {
    /// Returns the command and its input if that or the size has changed and no run is under way.
    pub fn status_due(&mut self) -> Option<StatusRun> {
        if self.status.command.is_empty() || self.status.is_running {
            return None;
        }
        let told = (self.state(), self.terminal.size);
        if self.status.told.as_ref() == Some(&told) {
            return None;
        }
        let run = StatusRun {
            command: self.status.command.clone(),
            state: told.0.to_string(),
            size: told.1,
        };
        self.status.told = Some(told);
        self.status.is_running = true;
        Some(run)
    }

    /// The state in the form that Claude Code gives its status lines, with the rest in the member `sheaf`.
    fn state(&self) -> Value {
        let conversation = &self.conversation;
        let transcript = &conversation.transcript;
        let (last, total) = transcript.usage();
        let folder = conversation.workspace.folder.to_string_lossy();
        let mut sessions = transcript.exchanges.iter().rev();
        let session = sessions.find_map(|it| it.response.origin.conversation_id.as_ref());
        let session = session.map_or("", |it| it.as_str());
        let model = self.composer.model_name(&conversation.about).unwrap_or_default();
        let style = self.preferences.settings.prompt.style.as_deref().unwrap_or("default");
        let (tokens, window) = (transcript.context_tokens(), conversation.window());
        let share = |part: u64| window.and_then(|it| part.saturating_mul(100).checked_div(it));
        let used = share(tokens).map(|it| it.min(100));
        let current = (tokens > 0).then(|| {
            json!({
                "input_tokens": tokens.saturating_sub(last.completion_tokens),
                "output_tokens": last.completion_tokens.min(tokens),
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
            })
        });
        let mut state = json!({
            "session_id": session,
            "transcript_path": "",
            "cwd": folder,
            "version": env!("CARGO_PKG_VERSION"),
            "model": { "id": model, "display_name": model },
            "workspace": { "current_dir": folder, "project_dir": folder, "added_dirs": [] },
            "output_style": { "name": style },
            "cost": { "total_cost_usd": transcript.cost().unwrap_or_default() },
            "context_window": {
                "total_input_tokens": total.prompt_tokens,
                "total_output_tokens": total.completion_tokens,
                "context_window_size": window,
                "used_percentage": used,
                "remaining_percentage": used.map(|it| 100 - it),
                "current_usage": current,
            },
            "exceeds_200k_tokens": tokens > 200_000,
            "sheaf": {
                "mode": self.composer.mode.as_str(),
                "customMode": self.composer.commands.custom_mode,
                "queue": self.composer.queue.len(),
                "branch": conversation.workspace.branch,
                "title": transcript.title(),
                "peer": conversation.about.peer,
                "isRunning": transcript.is_running(),
                "isAsking": transcript.open_question().is_some(),
                "costUsd": transcript.cost(),
                "sandbox": conversation.about.hold.known().map(|it| match it {
                    Held::Whole => "full",
                    Held::Partly(_) => "partial",
                    Held::Nothing => "none",
                }),
            },
        });
        if let Some(members) = state.as_object_mut() {
            let effort = self.composer.effort.map(|it| json!({ "level": it }));
            members.extend(effort.map(|it| ("effort".to_owned(), it)));
            let vim = self
                .composer
                .field
                .vim_mode()
                .map(|it| json!({ "mode": it.as_str().to_uppercase() }));
            members.extend(vim.map(|it| ("vim".to_owned(), it)));
        }
        state
    }
}
