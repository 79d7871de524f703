//! What a run says on standard error: progress, errors, refusals and notices.

use std::{collections::HashSet, path::Path};

use serde_json::Value;

use super::{PROGRESS_CHARACTERS, Printer, call};
use crate::{
    protocol::{
        DocumentId, Entry, Event, Kind, Progress, ResponseChange, Severity, UserAction, View,
        document::{HookRun, hook_runs},
    },
    sandbox::{Commands, Tier},
    t,
    text::Sanitized,
    transcript::{DocumentIndex, ExchangeChange},
};

/// Calls that have been reported on standard error.
#[derive(Default)]
pub(super) struct ProgressState {
    pub(super) told: HashSet<DocumentId>,
    pub(super) is_thinking: bool,
}

impl Printer<'_> {
    /// Reports on standard error what is being done, for a user who waits.
    pub(super) fn progress(&mut self, entry: &Entry, moved: ExchangeChange) {
        let Some(progress) = &mut self.progress else { return };
        let line = match (&entry.event, moved.change) {
            (Event::ThinkingDelta { .. }, _) => {
                (!std::mem::replace(&mut progress.is_thinking, true)).then(|| "thinking".to_owned())
            }
            (
                Event::Progress(Progress::Retrying {
                    attempt, of, because, ..
                }),
                _,
            ) => Some(format!("{because}: trying again ({attempt} of {of})")),
            (Event::Progress(Progress::Listing { peer }), _) => Some(format!("asking {peer} for its models")),
            (_, ResponseChange::Opened(nth) | ResponseChange::Grew(nth) | ResponseChange::Ended(nth)) => {
                progress.is_thinking = false;
                let place = DocumentIndex {
                    exchange: moved.exchange,
                    document: nth,
                };
                let document = self.transcript.get(place);
                document
                    .filter(|it| call::is_call(it) && !progress.told.contains(&it.id))
                    .and_then(|it| {
                        let around = call::Around {
                            workspace: Path::new(""),
                            todos: &self.transcript.todos,
                        };
                        let call = if it.kind == Kind::FileEdit {
                            let whole = (!it.is_open()).then(|| call::edit(std::slice::from_ref(it), 0, None, around));
                            whole.flatten().map(|it| it.0)
                        } else {
                            call::call(it, around)
                        };
                        let gist = call?.gist();
                        progress.told.insert(it.id.clone());
                        Some(gist)
                    })
            }
            (_, ResponseChange::Finished) => {
                progress.told.clear();
                None
            }
            (
                _,
                ResponseChange::Nothing
                | ResponseChange::Response
                | ResponseChange::Thinking
                | ResponseChange::Notice
                | ResponseChange::Acted(_)
                | ResponseChange::Updated(_),
            ) => None,
        };
        if let Some(line) = line {
            // The text before the call must appear before this line.
            self.print();
            let line: String = line.split_whitespace().collect::<Vec<_>>().join(" ");
            let cut: String = line.chars().take(PROGRESS_CHARACTERS).collect();
            // Standard output and error may share a terminal.
            let before = if self.text.is_mid_line() { "\n" } else { "" };
            let text = Sanitized::new(&format!("{before}· {cut}\n"));
            let _ = self.outputs.err.write_all(text.as_bytes());
        }
    }

    pub(super) fn report_error(&mut self, place: DocumentIndex) {
        if place.exchange < self.first {
            return;
        }
        let Some(document) = self.transcript.get(place) else {
            return;
        };
        if let View::Error(it) = document.view() {
            let details = if it.details.is_empty() {
                String::new()
            } else {
                format!("\n{}", it.details)
            };
            let text = format!("{} ({}){details}", it.content.trim_end(), it.code);
            self.outputs.say("error", &text);
        }
    }

    /// Reports an action that was refused because nobody could allow it.
    pub(super) fn report_refusal(&mut self, place: DocumentIndex) {
        let Some(document) = self.transcript.get(place).filter(|_| place.exchange >= self.first) else {
            return;
        };
        let says = |member: &str| document.metadata.get(member).filter(|_| call::is_rejected(document));
        let is_forbidden = says("forbidden").is_some_and(|it| it == &Value::Bool(true));
        let missing = match says("missing") {
            Some(missing) => missing.as_array(),
            None if is_forbidden => None,
            None => return,
        };
        let what = match document.view() {
            View::TerminalCommand(it) => it.command.to_owned(),
            View::FileEdit(it) => format!("{} {}", it.operation, it.file_path),
            View::ToolCall(it) => format!("{} {}", it.tool_name, serde_json::json!(it.arguments)),
            _ => String::new(),
        };
        let reason = document
            .metadata
            .get("reason")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let rules = missing.into_iter().flatten().filter_map(Value::as_str);
        let rules: Vec<String> = rules.map(|it| format!("--allow '{it}'")).collect();
        let is_command = document.kind == Kind::TerminalCommand;
        let is_unheld =
            is_command && self.questions.is_asked && self.questions.wants_sandbox && Commands::tier() == Tier::None;
        let hint = match rules.as_slice() {
            [] if is_forbidden => "no other rule and no --force is stronger than one that denies".to_owned(),
            [] if is_unheld => {
                self.questions.no_sandbox = true;
                "`sheaf sandbox explain` shows what is missing; --sandbox off --force runs it anyway".to_owned()
            }
            _ if self.questions.is_afar => "only the settings of the gateway can allow it".to_owned(),
            [] if document.metadata.contains_key("protected") => "only a person at the screen can allow it".to_owned(),
            [] => "--force allows it".to_owned(),
            rules => format!("{} allows it", rules.join(" ")),
        };
        let why = reason.lines().next().unwrap_or_default();
        // A refusal by the user's own rule is reported but does not count: no permission was missing.
        self.questions.refused |= !is_forbidden;
        self.outputs.say("refused", &format!("{what}\n{why}\n{hint}"));
    }

    /// Says what hooks did to a call.
    pub(super) fn report_hooks(&mut self, event: &Event) {
        let Event::DocumentUpdate { metadata, .. } = event else {
            return;
        };
        for run in hook_runs(metadata).filter(HookRun::is_news) {
            self.outputs.say("note", &run.line());
        }
    }

    pub(super) fn report_notice(&mut self, event: &Event) {
        if let Event::Notice(notice) = event {
            // The store of a running conversation reports these, also when they come after the answer.
            if self.questions.is_asked && notice.code.starts_with("session-") {
                return;
            }
            match notice.severity {
                // Nothing else says what a hook did, or what became of an undo that was cut.
                Severity::Info => match UserAction::read(notice) {
                    Some((UserAction::HookRan, facts)) => self.outputs.say("note", &facts.join("\n")),
                    Some((action @ (UserAction::FinishedUndo | UserAction::FinishedRedo), facts)) => {
                        let count: usize = facts.get(1).and_then(|it| it.parse().ok()).unwrap_or_default();
                        let mut text = if action == UserAction::FinishedUndo {
                            t!("undo-finished", count = count)
                        } else {
                            t!("redo-finished", count = count)
                        };
                        if let Some(kept) = facts.get(2).filter(|it| !it.is_empty()) {
                            text.push_str(&format!("; {kept}"));
                        }
                        self.outputs.say("note", &text);
                    }
                    Some(_) | None => {}
                },
                Severity::Warning => self.outputs.say("warning", &notice.message),
                Severity::Error => self.outputs.say("error", &notice.message),
            }
        }
    }
}
