//! A step of the turn, and its effects carried out.

use std::sync::PoisonError;

use super::{Driver, PATIENCE, now_ms};
use crate::{
    agent::{
        approval::{Rule, remember},
        compact,
        turn::{Effect, Input},
    },
    journal::{Flood, Raw, TooMany},
    model::{Failure, FailureKind, ModelRequest, Piece, catalogue},
    protocol::{Event, Notice, Severity},
};

impl Driver {
    /// Tells who looks closely what came of a server. What is made from then on is made of it, until something else happens.
    pub(super) fn trace(&self, input: &Input, now_ms: u64) {
        let Some(trace) = self.log.trace() else { return };
        let Input::Piece(piece) = input else {
            return trace.over();
        };
        if let Piece::Seen(raw) = piece {
            trace.came(now_ms, self.log.turn(), raw.as_ref().clone());
            if matches!(**raw, Raw::Request(_)) {
                trace.over();
            }
        }
    }

    pub(super) fn step(&mut self, input: Input) {
        let was_running = self.turn.is_running();
        if matches!(input, Input::Piece(Piece::End(_) | Piece::Error(_))) {
            // It is over: to poll it again would bring its end again, for as long as tools run.
            self.stream = None;
        }
        let now = now_ms();
        self.trace(&input, now);
        let mut is_too_much = false;
        for effect in self.turn.step(input, now) {
            match effect {
                Effect::Append(event) => {
                    if matches!(event, Event::UserMessage(_)) {
                        self.flood = Flood::default();
                    }
                    is_too_much |= self.flood.count(&event) == Err(TooMany);
                    self.background
                        .note(&event, self.log.turn(), self.setup.workspace.as_deref());
                    self.log.append(now, event);
                }
                Effect::CallModel { .. } if self.own.is_some() => {
                    self.stream = self.own.as_mut().map(|it| it.stream(now));
                }
                Effect::CallModel { mut request, stand_in } => {
                    self.briefing.touched(&self.seen, &mut self.turn.memory, &mut request);
                    let others = self.setup.roles.fallback();
                    let provider = match stand_in.checked_sub(1).and_then(|it| others.get(it)) {
                        Some(other) => {
                            request.model.clone_from(&other.model);
                            &other.provider
                        }
                        None => &self.chosen.provider,
                    };
                    request.is_watched = self.log.trace().is_some();
                    self.stream = Some(provider.stream(request));
                }
                Effect::Summarise { brief, attempt } => self.summarise(&brief, attempt),
                Effect::Forgot => self.briefing.forgot(),
                Effect::StopModel => self.stream = None,
                Effect::Prepare {
                    job,
                    tool,
                    call,
                    arguments,
                } => self.prepare(job, tool, call, arguments),
                Effect::Run {
                    job,
                    tool,
                    call,
                    arguments,
                    was_asked,
                } => self.run_tool(job, tool, call, arguments, was_asked),
                Effect::Make { job, call, proposal } => self.make(job, call, proposal),
                Effect::Check(job) => self.check(job),
                Effect::StopJobs => self.stop_jobs(),
                Effect::Store(rules) => self.store(&rules),
                Effect::Expire(document) => self.timers.push(Box::pin(async move {
                    tokio::time::sleep(PATIENCE).await;
                    Input::Expired(document)
                })),
                Effect::FindMarks => self.find_marks(),
            }
        }
        if is_too_much && self.turn.is_running() {
            let message = "the answer has more pieces than can be kept";
            let failure = Failure::new(FailureKind::Oversized, message);
            self.step(Input::Piece(Piece::Error(failure)));
            // Where it was not the model that flooded, but a tool.
            self.step(Input::Cancel);
        }
        if !self.turn.is_running() {
            self.stream = None;
            self.timers.clear();
            self.looked_at.lock().unwrap_or_else(PoisonError::into_inner).clear();
            self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
            if was_running {
                self.briefing.ended(&self.seen, self.setup.workspace.as_ref());
                if let Some(own) = self.own.take() {
                    if !own.is_shown {
                        self.turn.memory.told.truncate(own.from);
                    }
                } else {
                    self.think_of_title();
                }
            }
        }
    }

    /// Asks for a summary: the model for side jobs, if there is one, then the one that answers.
    pub(super) fn summarise(&mut self, brief: &compact::Brief, attempt: u32) {
        let fast = self.setup.roles.fast().ok().flatten().filter(|_| attempt == 0);
        let chosen = fast.as_ref().unwrap_or(&self.chosen);
        let known = catalogue::known(&chosen.model, &self.setup.settings.models).window;
        let window = known.or(if fast.is_some() { None } else { brief.window });
        let request = ModelRequest {
            model: chosen.model.clone(),
            is_attended: self.setup.asker.is_attended(),
            is_watched: self.log.trace().is_some(),
            ..compact::request(brief, window, attempt)
        };
        self.stream = Some(chosen.provider.stream(request));
    }

    /// Keeps rules for good; where that fails, they hold for this conversation and the user hears why.
    pub(super) fn store(&mut self, rules: &[Rule]) {
        let stored = match &self.setup.paths {
            Some(paths) => remember(paths, rules).map_err(|it| it.to_string()),
            None => Err("there is no configuration to write to".to_owned()),
        };
        if let Err(why) = stored {
            let rules: Vec<String> = rules.iter().map(Rule::to_string).collect();
            let notice = Notice {
                severity: Severity::Warning,
                code: "rule-not-kept".to_owned(),
                message: format!("{} holds for this conversation only: {why}", rules.join(", ")),
                document: None,
            };
            self.log.append(now_ms(), Event::Notice(notice));
        }
    }
}
