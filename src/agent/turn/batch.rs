//! The calls of one message of the model: looked at, judged, asked about, carried out, answered.
//!
//! Reading calls run beside each other; one that changes something waits for all before it, and those after it wait for it;
//! questions to the user come last. What needs no look at the disk first is judged at once, so that the user sees all
//! questions of a message together.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value, json};

use super::{
    Effect, Fault, JobId, Memory, Phase, Prepared, Running,
    fit::{Bound, fit},
    guard::Advice,
};
use crate::{
    agent::{
        approval::{self, Facts, Rules, RunMode, Verdict},
        offer,
    },
    model::{Call, CallResult, Image},
    protocol::{
        Address, Applied, CommandState, DocumentId, Event, FinishReason, Kind, Operation, Outcome as Dealt, Permission,
        Status,
    },
    sandbox::{Place, Tier},
    tool::{self, Access, Change, Class, Input as Arguments, Outcome, Proposal, Tool, Work, arguments},
};

/// The calls of one message, in their order.
#[derive(Debug)]
pub struct Batch {
    pub jobs: Vec<Job>,
}

#[derive(Debug)]
pub struct Job {
    pub id: JobId,
    pub call: Call,
    pub tool: Option<&'static Tool>,
    pub arguments: Arguments,
    pub stage: Stage,
    pub accesses: Vec<Access>,
    pub proposal: Option<Proposal>,
    /// What would hold its command.
    pub tier: Tier,
    pub result: Option<CallResult>,
    /// The arguments were no JSON.
    pub is_garbled: bool,
    /// It was refused because nobody is there to be asked: the rules that would allow it, if any would.
    pub missing: Option<Vec<String>>,
    /// Nothing but a person's yes allows it.
    pub is_protected: bool,
    /// A rule of the user's forbids it, and nothing else does.
    pub is_forbidden: bool,
    pub was_asked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Waiting,
    Preparing,
    /// Looked at, and not judged: questions are asked in the order of the calls.
    Prepared,
    /// The user has been asked.
    Asking,
    /// Judged, and waiting for its turn.
    Ready,
    Running,
    /// It has its result, and checkers look at what it has changed: what they say is added.
    Checking,
    Done,
}

/// A document that is open while its call runs.
#[derive(Debug)]
pub struct Shown {
    pub document: DocumentId,
    pub metadata: Map<String, Value>,
    /// What a command has printed, as far as it is kept here.
    pub output: String,
}

/// As much of a command's output travels live; all of it is in its log.
const LIVE_BYTES: usize = 1 << 20;
/// As many characters of an argument stand in a message.
const SHOWN_CHARS: usize = 200;

impl Batch {
    pub fn job(&mut self, id: JobId) -> Option<&mut Job> {
        self.jobs.iter_mut().find(|it| it.id == id)
    }

    /// Whether `at` may be carried out now, with `at_once` reading calls beside each other.
    fn may_run(&self, at: usize, at_once: usize) -> bool {
        let Some(job) = self.jobs.get(at) else { return false };
        let class = job.class();
        let is_open = |it: &Job| it.stage != Stage::Done;
        match class {
            Class::Reads => {
                let earlier = self.jobs.iter().take(at);
                let mut blocking =
                    earlier.filter(|it| is_open(it) && !matches!(it.class(), Class::Reads | Class::Talks));
                let running = self
                    .jobs
                    .iter()
                    .filter(|it| it.class() == Class::Reads && it.stage == Stage::Running);
                blocking.next().is_none() && running.count() < at_once
            }
            Class::Writes | Class::Runs | Class::State => {
                let mut earlier = self.jobs.iter().take(at);
                !earlier.any(|it| is_open(it) && it.class() != Class::Talks)
            }
            Class::Talks => {
                let mut others = self.jobs.iter().enumerate();
                !others.any(|(nth, it)| is_open(it) && (it.class() != Class::Talks || nth < at))
            }
        }
    }

    fn is_over(&self) -> bool {
        self.jobs.iter().all(|it| it.stage == Stage::Done)
    }
}

impl Job {
    fn class(&self) -> Class {
        self.tool.map_or(Class::Reads, |it| it.class)
    }

    /// The name that documents bear.
    pub fn name(&self) -> String {
        self.tool
            .map_or_else(|| plain(&self.call.name), |it| it.name.to_owned())
    }
}

/// A name that the model made up, fit for a line.
fn plain(name: &str) -> String {
    let plain: String = name.chars().filter(|it| !it.is_control()).take(64).collect();
    if plain.trim().is_empty() {
        "tool".to_owned()
    } else {
        plain
    }
}

impl Running {
    /// The calls of the message that has just ended.
    pub(super) fn begin_batch(&mut self, calls: Vec<Call>, memory: &mut Memory, effects: &mut Vec<Effect>) {
        let mut batch = Batch { jobs: Vec::new() };
        for call in calls {
            let garbled = self
                .garbled
                .iter()
                .find(|(id, _)| *id == call.id)
                .map(|(_, text)| text.clone());
            let raw = garbled.as_deref().map_or(Ok(&call.arguments), Err);
            match arguments::unwrap(&call.name, raw) {
                // All are answered under the one id.
                Some(Ok(wrapped)) => {
                    for inner in wrapped {
                        let (arguments, garbled) = match inner.arguments {
                            Ok(arguments) => (arguments, None),
                            Err(text) => (Map::new(), Some(text)),
                        };
                        let part = Call {
                            id: call.id.clone(),
                            name: inner.name,
                            arguments,
                            opaque: None,
                        };
                        let job = self.job(part, garbled.as_deref(), effects);
                        batch.jobs.push(job);
                    }
                }
                Some(Err(fault)) => {
                    let mut job = self.empty_job(call);
                    self.refuse(&mut job, &fault, effects);
                    batch.jobs.push(job);
                }
                None => {
                    let job = self.job(call, garbled.as_deref(), effects);
                    batch.jobs.push(job);
                }
            }
        }
        self.phase = Phase::Jobs(batch);
        self.advance(memory, effects);
    }

    fn job(&mut self, call: Call, garbled: Option<&str>, effects: &mut Vec<Effect>) -> Job {
        let mut job = self.empty_job(call);
        match self.read_call(&job.call, garbled) {
            Ok((tool, arguments)) => {
                job.tool = Some(tool);
                job.arguments = arguments;
            }
            Err(fault) => {
                job.is_garbled = fault.code == "TOOL_ARGUMENTS_INVALID";
                self.refuse(&mut job, &fault, effects);
            }
        }
        job
    }

    fn empty_job(&mut self, call: Call) -> Job {
        self.next_job += 1;
        Job {
            id: JobId(self.next_job),
            tool: None,
            arguments: Arguments::default(),
            stage: Stage::Waiting,
            accesses: Vec::new(),
            proposal: None,
            result: None,
            is_garbled: false,
            missing: None,
            is_protected: false,
            is_forbidden: false,
            tier: Tier::None,
            was_asked: false,
            call,
        }
    }

    /// Which tool is meant, and with what. Whether the mode permits it is looked at here, whatever was offered.
    fn read_call(&self, call: &Call, garbled: Option<&str>) -> Result<(&'static Tool, Arguments), Fault> {
        let there = tool::find(&self.setup.tools, &call.name, &call.arguments);
        let Some(tool) = there.or_else(|| tool::find(tool::TOOLS, &call.name, &call.arguments)) else {
            let names: Vec<&str> = self.offered_names().collect();
            let message = format!("there is no tool called `{}`", plain(&call.name));
            let next = if names.is_empty() {
                "This conversation has no tools.".to_owned()
            } else {
                format!("The tools are: {}.", names.join(", "))
            };
            return Err(Fault::new("TOOL_UNKNOWN", message).hint(next));
        };
        if !tool.modes.contains(&self.mode) {
            let message = format!("`{}` cannot be used in {} mode", tool.name, self.mode);
            return Err(Fault::new("TOOL_FORBIDDEN_IN_MODE", message)
                .hint("Go on without it, or ask for another mode with switch_mode."));
        }
        if there.is_none() || !offer::is_in_scope(&self.setup.settings, tool, self.mode) {
            let message = format!("`{}` is switched off here (mode: {})", tool.name, self.mode);
            return Err(Fault::new("TOOL_FORBIDDEN_IN_MODE", message).hint("Go on without it."));
        }
        let arguments = arguments::read(tool, garbled.map_or(Ok(&call.arguments), Err))?;
        Ok((tool, arguments))
    }

    pub(super) fn offered_names(&self) -> impl Iterator<Item = &'static str> {
        self.in_force().map(|it| it.name)
    }

    /// Out of the phase, so that a job can be changed beside everything else; to be put back.
    fn take_batch(&mut self) -> Option<Batch> {
        if !matches!(self.phase, Phase::Jobs(_)) {
            return None;
        }
        match std::mem::replace(&mut self.phase, Phase::Leave) {
            Phase::Jobs(batch) => Some(batch),
            Phase::Model | Phase::Room(_) | Phase::Leave | Phase::Marks | Phase::Over => None,
        }
    }

    /// Does whatever can be done now.
    pub(super) fn advance(&mut self, memory: &mut Memory, effects: &mut Vec<Effect>) {
        loop {
            let Some(mut batch) = self.take_batch() else { return };
            let mut has_moved = false;
            let looked_at = batch.jobs.iter_mut().take_while(|it| it.stage != Stage::Preparing);
            for job in looked_at.filter(|it| it.stage == Stage::Prepared) {
                self.judge(job, memory, effects);
                has_moved = true;
            }
            for at in 0..batch.jobs.len() {
                let may_run = batch.may_run(at, self.setup.limits.at_once);
                let Some(job) = batch.jobs.get_mut(at) else { break };
                let Some(tool) = job.tool else { continue };
                match (job.stage, tool.work) {
                    // What a file is changed from is what the calls before it leave behind.
                    (Stage::Waiting, Work::Change(_)) if !may_run => {}
                    (Stage::Waiting, Work::Call { .. } | Work::Command { .. } | Work::Change(_)) => {
                        job.stage = Stage::Preparing;
                        effects.push(Effect::Prepare {
                            job: job.id,
                            tool,
                            call: job.call.id.clone(),
                            arguments: job.arguments.clone(),
                        });
                    }
                    (Stage::Waiting, Work::Turn(part)) if may_run => {
                        self.perform(part, job, memory, effects);
                        has_moved = true;
                    }
                    (Stage::Ready, _) if may_run => {
                        self.start_job(job, tool, effects);
                        has_moved = true;
                    }
                    (
                        Stage::Waiting
                        | Stage::Preparing
                        | Stage::Prepared
                        | Stage::Asking
                        | Stage::Ready
                        | Stage::Running
                        | Stage::Checking
                        | Stage::Done,
                        _,
                    ) => {}
                }
            }
            let is_over = batch.is_over();
            self.phase = Phase::Jobs(batch);
            if is_over {
                self.finish_batch(memory, effects);
                return;
            }
            if !has_moved {
                return;
            }
        }
    }

    pub(super) fn prepared(
        &mut self,
        id: JobId,
        result: Result<Prepared, Fault>,
        memory: &mut Memory,
        effects: &mut Vec<Effect>,
    ) {
        self.with_job(
            id,
            Stage::Preparing,
            memory,
            effects,
            |running, job, _, effects| match result {
                Err(fault) => running.refuse(job, &fault, effects),
                Ok(Prepared {
                    accesses,
                    proposal,
                    tier,
                }) => {
                    job.accesses = accesses;
                    job.tier = tier;
                    job.proposal = proposal;
                    job.stage = Stage::Prepared;
                }
            },
        );
    }

    /// Takes a job that is at `stage` out, lets `work` change it, and goes on.
    pub(super) fn with_job(
        &mut self,
        id: JobId,
        stage: Stage,
        memory: &mut Memory,
        effects: &mut Vec<Effect>,
        work: impl FnOnce(&mut Self, &mut Job, &mut Memory, &mut Vec<Effect>),
    ) {
        let Some(mut batch) = self.take_batch() else { return };
        let found = batch.job(id).filter(|it| it.stage == stage);
        if let Some(job) = found {
            work(self, job, memory, effects);
        }
        self.phase = Phase::Jobs(batch);
        self.advance(memory, effects);
    }

    /// Whether the call may be carried out, and what to ask if that is the user's to say.
    pub(super) fn judge(&mut self, job: &mut Job, memory: &Memory, effects: &mut Vec<Effect>) {
        let Some(tool) = job.tool else { return };
        let facts = self.facts(memory, job.tier);
        let settings = &self.setup.settings;
        let (verdict, is_bound) = self.verdict(job, tool, &facts);
        let verdict = match verdict {
            Verdict::Ask(_) if !facts.is_attended && offer::must_ask(settings, tool) => {
                job.missing = Some(Vec::new());
                Verdict::Deny(format!("{} needs a yes, and nobody is there to give it", tool.name))
            }
            verdict => verdict,
        };
        // A bound that was set is no question, and a person could not answer it.
        if matches!(verdict, Verdict::Deny(_)) && !facts.is_attended && !is_bound && job.missing.is_none() {
            let attended = Facts {
                is_attended: true,
                ..facts
            };
            if let Verdict::Ask(question) = approval::judge(&job.accesses, tool.class, &attended) {
                job.missing = Some(question.always.iter().map(ToString::to_string).collect());
                job.is_protected = question.is_protected;
            } else {
                let rules = Rules {
                    deny: Vec::new(),
                    ..facts.rules.clone()
                };
                let undenied = Facts { rules: &rules, ..facts };
                job.is_forbidden = !matches!(approval::judge(&job.accesses, tool.class, &undenied), Verdict::Deny(_));
            }
        }
        let verdict = if self.setup.asker.is_afar() {
            from_afar(verdict, job, &facts)
        } else {
            verdict
        };
        match verdict {
            Verdict::Allow => job.stage = Stage::Ready,
            Verdict::Deny(reason) => {
                let fault = Fault::new("TOOL_REJECTED", reason);
                self.reject(job, &fault, effects);
            }
            Verdict::Ask(question) => {
                job.stage = Stage::Asking;
                job.was_asked = true;
                self.ask_approval(job, tool, &question, effects);
            }
        }
    }

    /// What the rules and the settings say of a call, and whether a bound of the settings is why not.
    fn verdict(&self, job: &Job, tool: &'static Tool, facts: &Facts<'_>) -> (Verdict, bool) {
        let settings = &self.setup.settings;
        if let Some(path) = offer::out_of_bounds(settings, tool, &job.accesses) {
            let reason = format!("`{path}` is not among the paths that {} may touch", tool.name);
            return (Verdict::Deny(reason), true);
        }
        let verdict = approval::judge(&job.accesses, tool.class, facts);
        let is_asked = verdict == Verdict::Allow && offer::must_ask(settings, tool) && facts.run != RunMode::Force;
        let verdict = if is_asked {
            Verdict::Ask(approval::Question {
                why: format!("the settings want every use of {} to be asked for", tool.name),
                ..approval::Question::default()
            })
        } else {
            verdict
        };
        (verdict, false)
    }

    fn facts<'a>(&self, memory: &'a Memory, tier: Tier) -> Facts<'a> {
        Facts {
            mode: self.mode,
            run: memory.policy.run,
            tier,
            rules: &memory.policy.rules,
            is_attended: self.setup.asker.is_attended(),
            is_halted: memory.is_halted,
            is_sandbox_off: memory.policy.is_sandbox_off,
        }
    }

    fn start_job(&mut self, job: &mut Job, tool: &'static Tool, effects: &mut Vec<Effect>) {
        job.stage = Stage::Running;
        match (tool.work, job.proposal.take()) {
            (Work::Change(_), Some(proposal)) => {
                job.proposal = Some(proposal.clone());
                effects.push(Effect::Make {
                    job: job.id,
                    call: job.call.id.clone(),
                    proposal,
                });
                return;
            }
            (Work::Command { .. }, _) => {
                let metadata = command_metadata(job);
                self.show(job.id, Kind::TerminalCommand, metadata, effects);
                self.places.push((job.call.id.clone(), self.place()));
            }
            (Work::Call { .. } | Work::Change(_) | Work::Turn(_), _) => self.show_call(job, effects),
        }
        effects.push(Effect::Run {
            job: job.id,
            tool,
            call: job.call.id.clone(),
            arguments: job.arguments.clone(),
            was_asked: job.was_asked,
        });
    }

    /// Opens the document of a call.
    fn show(&mut self, job: JobId, kind: Kind, metadata: Map<String, Value>, effects: &mut Vec<Effect>) {
        let mut events = Vec::new();
        let document = self.writer.begin(kind, metadata.clone(), &mut events);
        self.say(events, effects);
        let shown = Shown {
            document,
            metadata,
            output: String::new(),
        };
        self.shown.insert(job, shown);
    }

    fn show_call(&mut self, job: &Job, effects: &mut Vec<Effect>) {
        self.call_count += 1;
        let metadata = object(json!({ "toolName": job.name(), "toolCallId": job.call.id }));
        self.show(job.id, Kind::ToolCall, metadata, effects);
        self.places.push((job.call.id.clone(), self.place()));
        let Some(shown) = self.shown.get_mut(&job.id) else {
            return;
        };
        let arguments = if job.tool.is_some() {
            job.arguments.0.clone()
        } else {
            job.call.arguments.clone()
        };
        shown.metadata.insert("arguments".into(), arguments.clone().into());
        let document = shown.document.clone();
        let events = vec![
            Event::ToolCallStart {
                document: document.clone(),
                tool_name: job.name(),
                tool_call_id: Some(job.call.id.clone()),
            },
            Event::ToolCallArguments {
                document,
                arguments: arguments.into(),
            },
        ];
        self.say(events, effects);
    }

    /// Where the newest document is.
    fn place(&self) -> Address {
        Address {
            turn: self.setup.turn,
            number: self.writer.count(),
        }
    }

    pub(super) fn printed(&mut self, id: JobId, text: &str, effects: &mut Vec<Effect>) {
        let Some(shown) = self.shown.get_mut(&id) else { return };
        let room = LIVE_BYTES.saturating_sub(shown.output.len());
        let end = text.floor_char_boundary(room.min(text.len()));
        let Some(text) = text.get(..end).filter(|it| !it.is_empty()) else {
            return;
        };
        shown.output.push_str(text);
        let event = Event::MetadataDelta {
            document: shown.document.clone(),
            metadata: Map::new(),
            append: vec![("output".to_owned(), text.to_owned())],
        };
        self.say(vec![event], effects);
    }

    pub(super) fn ran(
        &mut self,
        id: JobId,
        result: Result<Outcome, Fault>,
        took_ms: u64,
        memory: &mut Memory,
        effects: &mut Vec<Effect>,
    ) {
        self.with_job(id, Stage::Running, memory, effects, |running, job, _, effects| {
            match (job.tool.map(|it| it.work), result) {
                (Some(Work::Change(_)), Ok(_)) => running.made(job, effects),
                (Some(Work::Command { .. }), Ok(outcome)) => running.ended(job, outcome, took_ms, effects),
                (Some(Work::Call { .. } | Work::Turn(_)) | None, Ok(outcome)) => {
                    running.called(job, outcome, took_ms, effects);
                }
                (_, Err(fault)) => running.refuse(job, &fault, effects),
            }
        });
    }

    /// The result of a tool: its document ends with it.
    pub(super) fn called(&mut self, job: &mut Job, outcome: Outcome, took_ms: u64, effects: &mut Vec<Effect>) {
        if !self.shown.contains_key(&job.id) {
            self.show_call(job, effects);
        }
        let result = json!({ "status": "success", "data": outcome.data });
        self.end_call(job.id, result, Some(took_ms), outcome.is_truncated, effects);
        settle(job, outcome.text, false, outcome.images);
    }

    fn end_call(
        &mut self,
        job: JobId,
        result: Value,
        took_ms: Option<u64>,
        is_truncated: bool,
        effects: &mut Vec<Effect>,
    ) {
        let Some(mut shown) = self.shown.remove(&job) else {
            return;
        };
        shown.metadata.insert("result".into(), result.clone());
        shown
            .metadata
            .insert("duration_ms".into(), took_ms.unwrap_or_default().into());
        if is_truncated {
            shown.metadata.insert("truncated".into(), true.into());
        }
        let events = vec![
            Event::ToolResult {
                document: shown.document.clone(),
                result,
                duration_ms: took_ms,
            },
            Event::DocumentEnd {
                document: shown.document,
                final_content: None,
                metadata: shown.metadata,
            },
        ];
        self.say(events, effects);
    }

    /// A command has ended, or goes on in the background.
    fn ended(&mut self, job: &mut Job, outcome: Outcome, took_ms: u64, effects: &mut Vec<Effect>) {
        if let Some(mut shown) = self.shown.remove(&job.id) {
            let data = outcome.data.as_object().cloned().unwrap_or_default();
            let metadata = &mut shown.metadata;
            metadata.insert("exitCode".into(), Value::Null);
            metadata.insert("output".into(), shown.output.into());
            metadata.insert("state".into(), CommandState::Completed.as_str().into());
            for (name, value) in data {
                let name = if name == "durationMs" {
                    "duration_ms".to_owned()
                } else {
                    name
                };
                if !(name == "logPath" && value.is_null()) {
                    metadata.insert(name, value);
                }
            }
            metadata.entry("duration_ms").or_insert_with(|| took_ms.into());
            if outcome.is_truncated {
                metadata.insert("truncated".into(), true.into());
            }
            let end = Event::DocumentEnd {
                document: shown.document,
                final_content: None,
                metadata: shown.metadata,
            };
            self.say(vec![end], effects);
        }
        settle(job, outcome.text, false, outcome.images);
    }

    /// A change has been made: a document for each place.
    fn made(&mut self, job: &mut Job, effects: &mut Vec<Effect>) {
        let Some(proposal) = job.proposal.take() else {
            settle(job, "Nothing changed.".to_owned(), false, Vec::new());
            return;
        };
        let all = proposal.changes.iter();
        let mut documents: Vec<Edit> = all
            .flat_map(|it| edits(it, &job.name(), &job.call.id, &Applied::Applied))
            .collect();
        // The result is the call's: it stands once, where the call is over.
        if let Some((_, _, end)) = documents.last_mut() {
            end.insert("result".into(), json!({ "status": "success", "data": proposal.data }));
        }
        for (start, content, end) in documents {
            let events = self.writer.whole(Kind::FileEdit, start, content.as_deref(), end);
            self.say(events, effects);
        }
        settle(job, proposal.text, false, Vec::new());
        if self.setup.is_checked {
            job.stage = Stage::Checking;
            effects.push(Effect::Check(job.id));
        }
    }

    /// Adds what checkers say to the result of a change, which stands whatever they say.
    pub(super) fn checked(&mut self, id: JobId, text: &str, memory: &mut Memory, effects: &mut Vec<Effect>) {
        self.with_job(id, Stage::Checking, memory, effects, |_, job, _, _| {
            if let Some(result) = job.result.as_mut().filter(|_| !text.is_empty()) {
                result.text.push_str("\n\n");
                result.text.push_str(text);
            }
            job.stage = Stage::Done;
        });
    }

    pub(super) fn show_changes(&mut self, job: &Job, changes: &[Change], applied: Applied, effects: &mut Vec<Effect>) {
        for change in changes {
            for (start, content, end) in edits(change, &job.name(), &job.call.id, &applied) {
                let events = self.writer.whole(Kind::FileEdit, start, content.as_deref(), end);
                self.say(events, effects);
            }
        }
    }

    fn show_rejected(&mut self, job: &Job, changes: &[Change], fault: &Fault, effects: &mut Vec<Effect>) {
        for change in changes {
            for (start, content, mut end) in edits(change, &job.name(), &job.call.id, &Applied::Rejected) {
                end.extend(why_not(job, fault));
                let events = self.writer.whole(Kind::FileEdit, start, content.as_deref(), end);
                self.say(events, effects);
            }
        }
    }

    /// The user or a rule said no: the document of what was not done says so.
    pub(super) fn reject(&mut self, job: &mut Job, fault: &Fault, effects: &mut Vec<Effect>) {
        let proposal = job.proposal.take();
        match (job.tool.map(|it| it.work), proposal) {
            (Some(Work::Change(_)), Some(proposal)) => {
                self.show_rejected(job, &proposal.changes, fault, effects);
                settle(job, fault.text(), true, Vec::new());
            }
            (Some(Work::Command { .. }), _) => {
                let start = command_metadata(job);
                let mut end = start.clone();
                end.insert("exitCode".into(), Value::Null);
                end.insert("output".into(), "".into());
                end.insert("duration_ms".into(), 0.into());
                end.insert("state".into(), CommandState::Rejected.as_str().into());
                end.extend(why_not(job, fault));
                let events = self.writer.whole(Kind::TerminalCommand, start, None, end);
                self.say(events, effects);
                settle(job, fault.text(), true, Vec::new());
            }
            (Some(Work::Call { .. } | Work::Change(_) | Work::Turn(_)) | None, _) => {
                if !self.shown.contains_key(&job.id) && !matches!(job.tool.map(|it| it.work), Some(Work::Change(_))) {
                    self.show_call(job, effects);
                    if let Some(shown) = self.shown.get_mut(&job.id) {
                        shown.metadata.insert("state".into(), "rejected".into());
                        shown.metadata.extend(why_not(job, fault));
                    }
                }
                self.refuse(job, fault, effects);
            }
        }
    }

    /// The call gave no result: its document says why, and the model is told.
    pub(super) fn refuse(&mut self, job: &mut Job, fault: &Fault, effects: &mut Vec<Effect>) {
        let text = fault.text();
        match job.tool.map(|it| it.work) {
            Some(Work::Change(_)) => {
                let path = job.arguments.text("file_path").or(job.arguments.text("target_file"));
                let path = path.or(job.arguments.text("target_notebook")).unwrap_or_default();
                let proposal = job.proposal.take();
                match &proposal {
                    Some(proposal) => self.show_changes(job, &proposal.changes, Applied::Failed, effects),
                    None => {
                        let start = edit_start(path, &Operation::Edit, &job.name(), &job.call.id);
                        let mut end = start.clone();
                        end.insert("diff".into(), Value::Null);
                        end.insert("applied".into(), Applied::Failed.as_str().into());
                        // What was to be changed stands nowhere else.
                        end.insert("arguments".into(), job.arguments.0.clone().into());
                        let events = self.writer.whole(Kind::FileEdit, start, None, end);
                        self.say(events, effects);
                    }
                }
                let details = fault.next.clone().unwrap_or_default();
                self.error(fault.code, &job.name(), &fault.message, &details, effects);
            }
            Some(Work::Command { .. }) => {
                match self.shown.remove(&job.id) {
                    Some(mut shown) => {
                        shown.metadata.insert("exitCode".into(), Value::Null);
                        shown.metadata.insert("output".into(), shown.output.into());
                        shown
                            .metadata
                            .insert("state".into(), CommandState::Cancelled.as_str().into());
                        let end = Event::DocumentEnd {
                            document: shown.document,
                            final_content: None,
                            metadata: shown.metadata,
                        };
                        self.say(vec![end], effects);
                    }
                    None => {
                        let start = command_metadata(job);
                        let mut end = start.clone();
                        end.insert("exitCode".into(), Value::Null);
                        end.insert("output".into(), "".into());
                        end.insert("duration_ms".into(), 0.into());
                        end.insert("state".into(), CommandState::Cancelled.as_str().into());
                        let events = self.writer.whole(Kind::TerminalCommand, start, None, end);
                        self.say(events, effects);
                    }
                }
                let details = fault.next.clone().unwrap_or_default();
                self.error(fault.code, &job.name(), &fault.message, &details, effects);
            }
            Some(Work::Call { .. } | Work::Turn(_)) | None => {
                if !self.shown.contains_key(&job.id) {
                    self.show_call(job, effects);
                }
                let result = json!({ "status": "error", "data": text });
                self.end_call(job.id, result, None, false, effects);
            }
        }
        settle(job, text, true, Vec::new());
    }

    /// Every call has its result: on to the next request, if nothing speaks against it.
    fn finish_batch(&mut self, memory: &mut Memory, effects: &mut Vec<Effect>) {
        let Some(batch) = self.take_batch() else { return };
        let is_all_garbled = batch.jobs.iter().all(|it| it.is_garbled);
        let mut results = Vec::new();
        let mut bounds = Vec::new();
        let mut advice = BTreeSet::new();
        let settings = Arc::clone(&self.setup.settings);
        for job in batch.jobs {
            let mut result = job.result.unwrap_or_else(|| CallResult {
                call: job.call.id.clone(),
                name: job.call.name.clone(),
                text: "Error [TOOL_FAILED]: there is no result".to_owned(),
                is_error: true,
                images: Vec::new(),
            });
            match self.guard.note(&job.call, &result, &self.setup.limits) {
                Advice::Fine => {}
                Advice::Warn => {
                    result.text.push_str(&format!(
                        "\n\nThis very call has failed {} times in a row. Do something else: read what you are working on, \
                         or ask the user.",
                        self.setup.limits.warn_failures,
                    ));
                }
                Advice::Stop => {
                    advice.insert(2);
                }
                Advice::Ask => {
                    advice.insert(1);
                }
            }
            results.push(result);
            let tool = job.tool.map_or("", |it| it.name);
            bounds.push(Bound {
                tool,
                most: settings.tools.get(tool).and_then(|it| it.max_bytes),
            });
        }
        fit(&mut results, &bounds);
        self.placed(memory);
        memory.results(joined(results));
        self.guard.garbled = if is_all_garbled { self.guard.garbled + 1 } else { 0 };
        // What the user said while the plan was written is an answer to it, and the model's to take up.
        let has_user_the_word = std::mem::take(&mut self.has_user_the_word) && self.steering.is_empty();
        if has_user_the_word {
            self.end(Status::Completed, FinishReason::AwaitingInput, memory, effects);
        } else if advice.contains(&2) {
            let details = format!(
                "the same call failed {} times in a row; say what it should do instead",
                self.setup.limits.max_failures
            );
            self.error(
                "MAX_TURNS",
                "agent",
                "the model repeats a call that fails",
                &details,
                effects,
            );
            self.end(Status::Error, FinishReason::Error, memory, effects);
        } else if self.guard.garbled >= GARBLED_MOST {
            let details = "choose another model, or ask for smaller steps";
            self.error(
                "LLM_BAD_RESPONSE",
                "llm",
                "the model's calls cannot be read",
                details,
                effects,
            );
            self.end(Status::Error, FinishReason::Error, memory, effects);
        } else if advice.contains(&1) {
            self.ask_to_go_on(
                "The model makes the same call again and again, with the same result.",
                memory,
                effects,
            );
        } else if let Some(because) = self.is_spent(memory) {
            self.ask_to_go_on(&because, memory, effects);
        } else if self.guard.calls >= self.setup.limits.calls {
            let count = self.guard.calls;
            self.ask_to_go_on(&format!("The model has made {count} calls."), memory, effects);
        } else if self.guard.requests >= self.setup.limits.requests {
            let count = self.guard.requests;
            self.ask_to_go_on(&format!("The model has been asked {count} times."), memory, effects);
        } else {
            self.ask_model(memory, effects);
        }
    }

    /// Where the results are that the model is told now.
    fn placed(&mut self, memory: &mut Memory) {
        memory.told.places.extend(self.places.drain(..));
    }

    /// Nothing of the batch is waited for any more: every document is closed, every call answered.
    pub(super) fn drop_batch(&mut self, memory: &mut Memory, effects: &mut Vec<Effect>) {
        let Some(batch) = self.take_batch() else { return };
        effects.push(Effect::StopJobs);
        self.close_questions(Dealt::Cancelled, effects);
        let mut results = Vec::new();
        for mut job in batch.jobs {
            // What was changed stays changed, whoever did not wait for the checkers.
            if !matches!(job.stage, Stage::Done | Stage::Checking) {
                let text = "Cancelled by the user.".to_owned();
                if let Some(shown) = self.shown.get_mut(&job.id)
                    && matches!(job.tool.map(|it| it.work), Some(Work::Command { .. }))
                {
                    let mut metadata = std::mem::take(&mut shown.metadata);
                    metadata.insert("exitCode".into(), Value::Null);
                    metadata.insert("output".into(), std::mem::take(&mut shown.output).into());
                    metadata.insert("state".into(), CommandState::Cancelled.as_str().into());
                    let end = Event::DocumentEnd {
                        document: shown.document.clone(),
                        final_content: None,
                        metadata,
                    };
                    self.shown.remove(&job.id);
                    self.say(vec![end], effects);
                } else {
                    self.end_call(
                        job.id,
                        json!({ "status": "error", "data": "cancelled" }),
                        None,
                        false,
                        effects,
                    );
                }
                settle(&mut job, text, true, Vec::new());
            }
            results.extend(job.result);
        }
        self.placed(memory);
        memory.results(joined(results));
    }

    /// Judges again what waits for the user: a rule that was just given may answer it.
    pub(super) fn judge_again(&mut self, memory: &mut Memory, effects: &mut Vec<Effect>) {
        let Some(mut batch) = self.take_batch() else { return };
        for job in batch.jobs.iter_mut().filter(|it| it.stage == Stage::Asking) {
            let Some(tool) = job.tool.filter(|it| !matches!(it.work, Work::Turn(_))) else {
                continue;
            };
            let facts = self.facts(memory, job.tier);
            if self.verdict(job, tool, &facts).0 == Verdict::Allow {
                self.close_approvals(job.id, effects);
                job.stage = Stage::Ready;
            }
        }
        self.phase = Phase::Jobs(batch);
        self.advance(memory, effects);
    }
}

/// One result for each id: those of calls that came wrapped into one stand below each other, numbered.
fn joined(results: Vec<CallResult>) -> Vec<CallResult> {
    let mut whole: Vec<(CallResult, usize)> = Vec::new();
    for result in results {
        match whole.last_mut().filter(|(last, _)| last.call == result.call) {
            Some((last, count)) => {
                if *count == 1 {
                    last.text = format!("1. {}\n{}", last.name, last.text);
                }
                *count += 1;
                last.text
                    .push_str(&format!("\n\n{count}. {}\n{}", result.name, result.text));
                last.is_error &= result.is_error;
                last.images.extend(result.images);
            }
            None => whole.push((result, 1)),
        }
    }
    whole.into_iter().map(|(it, _)| it).collect()
}

/// So many messages in a row may hold nothing but calls that cannot be read.
const GARBLED_MOST: u32 = 3;

/// The call has its result.
pub(super) fn settle(job: &mut Job, text: String, is_error: bool, images: Vec<Image>) {
    let text = if text.trim().is_empty() {
        "(no output)".to_owned()
    } else {
        text
    };
    job.result = Some(CallResult {
        call: job.call.id.clone(),
        name: job.call.name.clone(),
        text,
        is_error,
        images,
    });
    job.stage = Stage::Done;
}

/// What the document of something that was not done says of that.
fn why_not(job: &Job, fault: &Fault) -> Map<String, Value> {
    let mut why = object(json!({ "reason": fault.message }));
    if let Some(missing) = &job.missing {
        why.insert("missing".to_owned(), missing.clone().into());
        if job.is_protected {
            why.insert("protected".to_owned(), true.into());
        }
    }
    if job.is_forbidden {
        why.insert("forbidden".to_owned(), true.into());
    }
    why
}

/// The client of a gateway says yes to what the sandbox holds, inside the workspace, for its own conversation: anything else
/// is for whoever runs the gateway to allow.
fn from_afar(verdict: Verdict, job: &Job, facts: &Facts<'_>) -> Verdict {
    let is_beyond = job.accesses.iter().any(|it| match it {
        Access::Read(file) | Access::Write(file) | Access::Delete(file) => {
            matches!(file.place, Place::Outside | Place::Hidden)
        }
        Access::Command { permissions, .. } => {
            permissions.contains(&Permission::All) || facts.tier == approval::Tier::None
        }
        Access::Fetch { .. } | Access::Search | Access::Mcp { .. } => false,
    });
    match verdict {
        Verdict::Ask(question) if is_beyond || question.is_protected => {
            Verdict::Deny(format!("{}; a client of this gateway cannot allow it", question.why))
        }
        Verdict::Ask(question) => Verdict::Ask(approval::Question {
            always: Vec::new(),
            ..question
        }),
        // Even a rule does not let what comes from elsewhere out of the sandbox.
        Verdict::Allow if job.accesses.iter().any(is_unheld(facts)) => {
            Verdict::Deny("nothing would hold the command, and a client of this gateway cannot have that".to_owned())
        }
        verdict @ (Verdict::Allow | Verdict::Deny(_)) => verdict,
    }
}

/// Commands that run outside of any sandbox.
fn is_unheld(facts: &Facts<'_>) -> impl Fn(&Access) -> bool {
    let has_none = facts.tier == approval::Tier::None;
    move |it| match it {
        Access::Command { permissions, .. } => has_none || permissions.contains(&Permission::All),
        Access::Read(_) | Access::Write(_) | Access::Delete(_) => false,
        Access::Fetch { .. } | Access::Search | Access::Mcp { .. } => false,
    }
}

/// A command as its document starts.
fn command_metadata(job: &Job) -> Map<String, Value> {
    let mut metadata = object(json!({
        "command": job.arguments.text("command").unwrap_or_default(),
        "permissions": job.arguments.texts("required_permissions"),
        "toolCallId": job.call.id,
        "state": CommandState::Running,
    }));
    for access in &job.accesses {
        if let Access::Command {
            line,
            directory,
            permissions,
            is_background: _,
        } = access
        {
            let words: Vec<&str> = permissions.iter().map(crate::protocol::Permission::as_str).collect();
            metadata.insert("command".into(), line.clone().into());
            metadata.insert("workingDirectory".into(), directory.path.to_string_lossy().into());
            metadata.insert("permissions".into(), words.into());
        }
    }
    metadata
}

fn edit_start(path: &str, operation: &Operation, name: &str, call: &str) -> Map<String, Value> {
    object(json!({
        "filePath": path,
        "operation": operation,
        "language": crate::protocol::document::language_of(path),
        "toolCallId": call,
        "toolName": name,
    }))
}

/// A document of a change: what it starts with, its content, and what it ends with.
type Edit = (Map<String, Value>, Option<String>, Map<String, Value>);

/// The documents of a change: one for each hunk, or one for the whole.
pub(super) fn edits(change: &Change, name: &str, call: &str, applied: &Applied) -> Vec<Edit> {
    let mut start = edit_start(&change.file.shown, &change.operation, name, call);
    if let Some(to) = &change.to {
        start.insert("newFilePath".into(), to.shown.clone().into());
    }
    if let Some(cell) = &change.cell {
        let is_new = cell.source.is_none();
        start.insert("cell".into(), json!({ "index": cell.index, "isNew": is_new }));
        if !matches!(cell.language.as_str(), "" | "other" | "raw") {
            start.insert("language".into(), cell.language.clone().into());
        }
    }
    let whole = |content: Option<String>| {
        let mut end = start.clone();
        end.insert("diff".into(), Value::Null);
        end.insert("applied".into(), applied.as_str().into());
        (start.clone(), content, end)
    };
    let is_whole = matches!(change.operation, Operation::Create | Operation::Delete) || change.hunks.is_empty();
    if is_whole {
        let content = match (&change.operation, &change.new) {
            (Operation::Create, Some(new)) => Some(String::from_utf8_lossy(new).into_owned()),
            _ => None,
        };
        return vec![whole(content)];
    }
    let count = change.hunks.len();
    let hunks = change.hunks.iter().enumerate().map(|(at, hunk)| {
        let mut end = start.clone();
        end.insert(
            "diff".into(),
            json!({
                "oldString": hunk.old,
                "newString": hunk.new,
                "startLine": hunk.start,
                "endLine": hunk.end,
            }),
        );
        end.insert("applied".into(), applied.as_str().into());
        end.insert("hunk".into(), json!({ "index": at + 1, "count": count }));
        (start.clone(), Some(hunk.new.clone()), end)
    });
    hunks.collect()
}

pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// What a call is about, for a line.
pub(super) fn gist(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= SHOWN_CHARS {
        return line;
    }
    let cut: String = line.chars().take(SHOWN_CHARS).collect();
    format!("{cut}…")
}
