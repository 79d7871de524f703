//! A step of the turn, and its effects carried out.

use super::{
    Runner,
    notices::{now_ms, warn},
    tool_runner::CallMode,
};
use crate::{
    agent::{
        approval::{Rule, remember},
        history::summary,
        turn::{Effect, Input},
    },
    journal::{EventLimit, Log, Raw, TooMany},
    models::{Failure, FailureKind, ModelMessage, ModelRequest, Piece, catalogue},
    protocol::{Event, Kind, Mode, UserAction},
    tools::skill,
};

/// Records for the inspector what came from a server. The events that follow count as made from it until something else happens.
pub(super) fn trace(log: &Log, raw: Raw, now_ms: u64) {
    let Some(trace) = log.trace() else { return };
    let is_request = matches!(raw, Raw::Request(_));
    trace.came(now_ms, log.turn(), raw);
    if is_request {
        trace.over();
    }
}

impl Runner {
    /// Gives the turn an input, and carries out the effects.
    pub(super) fn step(&mut self, input: Input) {
        let was_running = self.turn.is_running();
        if matches!(input, Input::Piece(Piece::End(_) | Piece::Error(_))) {
            // It is over: to poll it again would bring its end again, for as long as tools run.
            self.answer.stream = None;
        }
        let now = now_ms();
        let input = match input {
            // The turn makes nothing of it.
            Input::Piece(Piece::Seen(raw)) => return trace(&self.log, *raw, now),
            input => input,
        };
        if !matches!(input, Input::Piece(_))
            && let Some(trace) = self.log.trace()
        {
            trace.over();
        }
        let mut is_too_much = false;
        for effect in self.turn.step(input, now) {
            match effect {
                Effect::Append(event) => {
                    if matches!(event, Event::UserMessage(_)) {
                        self.answer.limit = EventLimit::default();
                    }
                    if matches!(event, Event::Done(_)) && self.messages.user_command.is_none() {
                        self.record_told(now);
                    }
                    if matches!(&event, Event::DocumentStart(start) if start.kind == Kind::Clarification) {
                        self.notify_hooks();
                    }
                    is_too_much |= self.answer.limit.count(&event) == Err(TooMany);
                    // What the user ran without the model stays so.
                    let own = self.messages.user_command.as_ref();
                    let is_told = own.is_none_or(|it| it.is_shown);
                    let turn = self.log.turn();
                    self.background
                        .note(&event, turn, is_told, self.setup.workspace.as_deref());
                    let is_message = matches!(event, Event::UserMessage(_));
                    self.log.append(now, event);
                    if is_message {
                        self.tell_hook_runs();
                    }
                }
                Effect::CallModel { .. } if self.messages.user_command.is_some() => {
                    self.answer.stream = self.messages.user_command.as_mut().map(|it| it.stream(now));
                }
                Effect::CallModel { mut request, stand_in } => {
                    if let Some(lints) = self.context.lints() {
                        lints.begin_step();
                    }
                    let mode = self.turn.mode().unwrap_or_default();
                    (self.context).touched(&self.tools.seen, mode, &mut self.turn.memory, &mut request);
                    for note in self.background.ended() {
                        let message = ModelMessage::user(note);
                        self.turn.memory.history.messages.push(message.clone());
                        request.messages.push(message);
                    }
                    self.record_told(now);
                    let others = self.setup.roles.fallback();
                    let provider = match stand_in.checked_sub(1).and_then(|it| others.get(it)) {
                        Some(other) => {
                            request.model.clone_from(&other.model);
                            &other.provider
                        }
                        None => &self.model.chosen.provider,
                    };
                    request.is_watched = self.log.trace().is_some();
                    self.answer.stream = Some(provider.stream(request));
                }
                Effect::Summarise { brief, attempt } => self.summarise_unless_blocked(&brief, attempt),
                Effect::Forgot => self.context.forgot(),
                Effect::StopModel => self.answer.stream = None,
                Effect::Prepare {
                    job,
                    tool,
                    call,
                    arguments,
                } => {
                    let is_checked = self.context.lints().is_some();
                    self.tools
                        .prepare(&self.setup, (job, call), tool, arguments, is_checked);
                }
                Effect::Run {
                    job,
                    tool,
                    call,
                    arguments,
                    was_asked,
                    only_reads,
                } => {
                    if tool.name == skill::NAME {
                        self.context.note_skills(&self.turn.memory.history);
                    }
                    let how = CallMode { was_asked, only_reads };
                    self.tools.run(&self.setup, job, tool, call, arguments, how);
                }
                Effect::Preview { job, changes } => self.tools.preview(self.context.lints(), job, changes),
                Effect::Make { job, call, proposal } => {
                    let (workspace, lints) = (self.setup.workspace.clone(), self.context.lints());
                    self.tools.make(workspace, lints, job, call, proposal);
                }
                Effect::Check(jobs) => self.tools.check(self.context.lints(), &jobs),
                Effect::StopJobs => self.tools.stop(),
                Effect::Store(rules) => self.store(&rules),
                Effect::Expire(document) => self.answer.expire(document),
                Effect::ServerAnswered { number, response } => {
                    if let Some(again) = self.tools.servers.answered(number, &response) {
                        self.step(again);
                    }
                }
                Effect::FindMarks => self.tools.find_marks(self.setup.workspace.clone()),
            }
        }
        if self.turn.mode() == Some(Mode::Debug) && self.messages.mode.replace(Mode::Debug) != Some(Mode::Debug) {
            // The model switched to it: the search at its end waits for this one.
            drop(self.tools.note_marks(self.setup.workspace.as_ref()));
        }
        if is_too_much && self.turn.is_running() {
            let message = "the answer has too many parts to store";
            let failure = Failure::new(FailureKind::Oversized, message);
            self.step(Input::Piece(Piece::Error(failure)));
            // Where it was not the model that flooded, but a tool.
            self.step(Input::Cancel);
        }
        if !self.turn.is_running() {
            self.answer.stream = None;
            self.answer.timers.clear();
            self.tools.forget_calls();
            if was_running {
                self.trust.remind(&self.log);
                self.context.ended(&self.tools.seen, self.setup.workspace.as_ref());
                self.call_stop_hooks();
                if let Some(own) = self.messages.user_command.take() {
                    if !own.is_shown {
                        self.turn.memory.history.truncate(own.from);
                    }
                    self.record_told(now);
                } else {
                    self.model.think_of_title(&self.setup, &self.log);
                }
            }
        }
    }

    /// Journals what the model has been told since the last record.
    fn record_told(&mut self, now_ms: u64) {
        let workspace = self.setup.workspace.as_ref();
        let marks = self.tools.marks_before();
        let record = (self.context).record(&self.turn.memory, &self.tools.seen, marks, workspace);
        if let Some(record) = record {
            self.log.append(now_ms, Event::Told(record));
        }
    }

    /// Asks for a summary: the model for side jobs, if there is one, then the one that answers.
    pub(super) fn summarise(&mut self, brief: &summary::SummaryRequest, attempt: u32) {
        let fast = self.setup.roles.fast().ok().flatten().filter(|_| attempt == 0);
        let chosen = fast.as_ref().unwrap_or(&self.model.chosen);
        let known = catalogue::known(&chosen.model, &self.setup.settings.models).window;
        let window = known.or(if fast.is_some() { None } else { brief.window });
        let request = ModelRequest {
            model: chosen.model.clone(),
            is_attended: self.setup.asker.is_attended(),
            is_watched: self.log.trace().is_some(),
            ..summary::request(brief, window, attempt)
        };
        self.answer.stream = Some(chosen.provider.stream(request));
    }

    /// Keeps rules for good; where that fails, they hold for this conversation and the user hears why.
    pub(super) fn store(&mut self, rules: &[Rule]) {
        let stored = match &self.setup.paths {
            Some(paths) => remember(paths, rules).map_err(|it| it.to_string()),
            None => Err("no settings file to write to".to_owned()),
        };
        let rules: Vec<String> = rules.iter().map(Rule::to_string).collect();
        let rules = rules.join(", ");
        match stored {
            Ok(()) => {
                let notice = UserAction::AllowedAlways.notice(&[&rules]);
                self.log.append(now_ms(), Event::Notice(notice));
            }
            Err(why) => {
                let message = format!("{rules} is allowed for this conversation only: {why}");
                warn(&self.log, "rule-not-kept", message);
            }
        }
    }
}
