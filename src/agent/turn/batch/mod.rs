//! The calls of one message of the model: looked at, judged, asked about, carried out, answered.
//!
//! Reading calls run beside each other; one that changes something waits for all before it, and those after it wait for it;
//! questions to the user come last. What needs no look at the disk first is judged at once, so that the user sees all
//! questions of a message together.

mod call_documents;
mod documents;
mod hunk_choice;
mod verdict;

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value, json};

pub use self::documents::{before, edits, gist, shared};
use self::documents::{command_metadata, plain};
pub use self::hunk_choice::choices;
use super::{Effect, Fault, JobId, Memory, Phase, Prepared, Preview, ProposalReport, Running, guard::Advice};
use crate::{
    agent::{
        approval,
        history::truncate::{Bound, fit},
        tool_selection,
    },
    models::{Call, CallResult},
    protocol::{DocumentId, FinishReason, HunkAnswer, Kind, NotOffered, Outcome as Dealt, Status, sentence},
    tools::{Access, Class, Input as Arguments, Tool, Work, arguments, built_in, edit::pick::Picked, run_terminal_cmd},
};

/// Changes in a row that are sent back to the model because of the errors that they would bring.
const MOST_SENT_BACK: usize = 3;

/// The calls of one message, in their order.
#[derive(Debug)]
pub struct Batch {
    pub jobs: Vec<Job>,
}

/// A call of the message, from its arguments to its result.
#[derive(Debug)]
pub struct Job {
    pub id: JobId,
    pub call: Call,
    pub tool: Option<Arc<Tool>>,
    pub arguments: Arguments,
    pub stage: Stage,
    /// Its accesses and changes, once it is prepared.
    pub prepared: Prepared,
    pub result: Option<CallResult>,
    /// The arguments were no JSON.
    pub is_garbled: bool,
    /// The reason why a rule refused it.
    pub refusal: RefusalReason,
    pub was_asked: bool,
    /// The user's words on its changes if they chose hunks of one, by the index of the change in the proposal.
    pub said: Vec<(usize, ChangeAnswer)>,
    /// The changes that are made in part.
    pub picked: Vec<Picked>,
}

/// The reason why a rule refused a call.
#[derive(Debug, Default)]
pub struct RefusalReason {
    /// It was refused because nobody can be asked: the rules that would allow it, if any would.
    pub missing: Option<Vec<String>>,
    /// Nothing but a person's yes allows it.
    pub needs_person: bool,
    /// A rule of the user's forbids it, and nothing else does.
    pub is_forbidden: bool,
}

/// The user's answer on a change that is not made as proposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeAnswer {
    Hunks(Vec<HunkAnswer>),
    /// Nothing of it, and why not.
    LeftOut(Option<String>),
}

/// The progress of a call.
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
    Done,
}

/// A document that is open while its call runs.
#[derive(Debug)]
pub struct OpenCall {
    pub document: DocumentId,
    pub kind: Kind,
    pub metadata: Map<String, Value>,
    /// The output of a command, as far as it is kept here.
    pub output: String,
}

impl Batch {
    /// The call with this id.
    pub fn job(&mut self, id: JobId) -> Option<&mut Job> {
        self.jobs.iter_mut().find(|it| it.id == id)
    }

    /// Returns true if the call at `at` may run now, with at most `at_once` reading calls in parallel.
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
    /// The kind of the call's effects, as far as other calls have to wait for them.
    fn class(&self) -> Class {
        let tool = self.tool.as_ref().filter(|it| !it.is_apart);
        tool.map_or(Class::Reads, |it| it.class)
    }

    /// The name that documents bear.
    pub fn name(&self) -> String {
        let tool = self.tool.as_ref();
        tool.map_or_else(|| plain(&self.call.name), |it| it.name.clone())
    }
}

/// A change or command that the mode forbids is shown as what it is, if the call says what it is about.
fn keep_kind(job: &mut Job) {
    let Some(tool) = built_in().find(&job.call.name, &job.call.arguments) else {
        return;
    };
    let Ok(arguments) = arguments::read(tool, Ok(&job.call.arguments)) else {
        return;
    };
    let subjects: &[&str] = match &tool.work {
        Work::Change(_) => &["file_path", "target_file", "target_notebook", "input"],
        Work::Command { .. } => &["command"],
        Work::Call { .. } | Work::Turn(_) => &[],
    };
    if subjects
        .iter()
        .any(|it| arguments.text(it).is_some_and(|it| !it.is_empty()))
    {
        job.tool = Some(Arc::clone(tool));
        job.arguments = arguments;
    }
}

impl Running {
    /// The calls of the message that has just ended.
    pub(super) fn begin_batch(&mut self, calls: Vec<Call>, memory: &mut Memory) {
        let mut batch = Batch { jobs: Vec::new() };
        for call in calls {
            let garbled = self
                .request
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
                        let job = self.job(part, garbled.as_deref());
                        batch.jobs.push(job);
                    }
                }
                Some(Err(fault)) => {
                    let mut job = self.empty_job(call);
                    self.refuse(&mut job, &fault);
                    batch.jobs.push(job);
                }
                None => {
                    let job = self.job(call, garbled.as_deref());
                    batch.jobs.push(job);
                }
            }
        }
        self.phase = Phase::Jobs(batch);
        self.advance(memory);
    }

    fn job(&mut self, call: Call, garbled: Option<&str>) -> Job {
        let mut job = self.empty_job(call);
        match self.read_call(&job.call, garbled) {
            Ok((tool, arguments)) => {
                job.tool = Some(tool);
                job.arguments = arguments;
            }
            Err(fault) => {
                job.is_garbled = fault.code == "TOOL_ARGUMENTS_INVALID";
                if fault.code == "TOOL_FORBIDDEN_IN_MODE" {
                    keep_kind(&mut job);
                }
                self.refuse(&mut job, &fault);
            }
        }
        job
    }

    fn empty_job(&mut self, call: Call) -> Job {
        self.calls.next_job += 1;
        Job {
            id: JobId(self.calls.next_job),
            tool: None,
            arguments: Arguments::default(),
            stage: Stage::Waiting,
            prepared: Prepared::default(),
            result: None,
            is_garbled: false,
            refusal: RefusalReason::default(),
            was_asked: false,
            said: Vec::new(),
            picked: Vec::new(),
            call,
        }
    }

    /// Which tool is meant, and with what. Whether the mode permits it is looked at here, whatever was offered.
    fn read_call(&self, call: &Call, garbled: Option<&str>) -> Result<(Arc<Tool>, Arguments), Fault> {
        let there = self.setup.tools.find(&call.name, &call.arguments);
        let Some(tool) = there.or_else(|| built_in().find(&call.name, &call.arguments)) else {
            let names: Vec<&str> = self.offered_names().collect();
            let message = format!("unknown tool `{}`", plain(&call.name));
            let next = if names.is_empty() {
                "This conversation has no tools.".to_owned()
            } else {
                format!("The tools are: {}.", names.join(", "))
            };
            return Err(Fault::new("TOOL_UNKNOWN", message).hint(next));
        };
        if let Some(fault) = self.absent(tool) {
            return Err(fault);
        }
        if there.is_none() {
            let message = sentence::NOT_OFFERED.with(&tool.name);
            return Err(Fault::new("TOOL_FORBIDDEN_IN_MODE", message).hint("Go on without it."));
        }
        if let Some(fault) = self.forbidden(tool) {
            return Err(fault);
        }
        if !tool_selection::is_in_scope(&self.setup.settings, tool, self.mode) {
            let message = format!("`{}` is switched off here (mode: {})", tool.name, self.mode);
            return Err(Fault::new("TOOL_FORBIDDEN_IN_MODE", message).hint("Go on without it."));
        }
        let arguments = arguments::read(tool, garbled.map_or(Ok(&call.arguments), Err))?;
        Ok((Arc::clone(tool), arguments))
    }

    /// The refusal of a tool that finds nothing here that it could use; `None` for the others.
    fn absent(&self, tool: &Tool) -> Option<Fault> {
        let name = &tool.name;
        let (_, why) = self.setup.absent.iter().find(|it| it.0 == name)?;
        let hint = "Go on without it.";
        let has_servers = self.setup.settings.agent.language_servers;
        let lack = if has_servers {
            "none is installed"
        } else {
            "`agent.language_servers` is off"
        };
        Some(match why {
            NotOffered::Untrusted => {
                let message = format!("`{name}` runs what the repository says, and this folder is not trusted");
                let hint = "Go on without it; the user can trust the folder with /trust or --trust.";
                Fault::new("WORKSPACE_UNTRUSTED", message).hint(hint)
            }
            NotOffered::NoServer => {
                Fault::new("TOOL_FAILED", format!("`{name}` needs a language server, and {lack}")).hint(hint)
            }
            _ => Fault::new(
                "TOOL_FAILED",
                format!("`{name}` needs a checker or a language server, and {lack}"),
            )
            .hint(hint),
        })
    }

    /// The refusal of a tool that the current mode does not permit; `None` for the others.
    fn forbidden(&self, tool: &Tool) -> Option<Fault> {
        if let Some(mode) = self
            .setup
            .custom_mode
            .as_deref()
            .filter(|it| !tool_selection::is_in(it, tool))
        {
            let message = format!("`{}` cannot be used in the mode {}", tool.name, mode.name);
            let fault = Fault::new("TOOL_FORBIDDEN_IN_MODE", message);
            return Some(fault.hint("Go on without it; only the user can choose another mode."));
        }
        if tool.modes.contains(&self.mode) {
            return None;
        }
        Some(self.forbidden_in_mode(format!("`{}` cannot be used in {} mode", tool.name, self.mode)))
    }

    /// The refusal of a command that the current mode does not permit here, or not with its permissions.
    pub(super) fn forbidden_command(&self, prepared: &Prepared) -> Option<Fault> {
        let reason = prepared.accesses.iter().find_map(|it| match it {
            Access::Command { permissions, .. } => {
                approval::unfit(self.mode, prepared.tier, &prepared.gaps, permissions)
            }
            Access::Read(_) | Access::Write(_) | Access::Delete(_) => None,
            Access::Fetch { .. } | Access::Search | Access::Mcp { .. } => None,
        })?;
        Some(self.forbidden_in_mode(reason))
    }

    fn forbidden_in_mode(&self, message: String) -> Fault {
        let fault = Fault::new("TOOL_FORBIDDEN_IN_MODE", message);
        let can_switch = self.in_force().any(|it| it.name == "switch_mode");
        fault.hint(if can_switch {
            "Go on without it, or ask for another mode with switch_mode."
        } else {
            "Go on without it; only the user can choose another mode."
        })
    }

    /// Names of the tools offered in the current mode.
    pub(super) fn offered_names(&self) -> impl Iterator<Item = &str> {
        self.in_force().map(|it| it.name.as_str())
    }

    /// Out of the phase, so that a job can be changed beside everything else; to be put back.
    pub(super) fn take_batch(&mut self) -> Option<Batch> {
        if !matches!(self.phase, Phase::Jobs(_)) {
            return None;
        }
        match std::mem::replace(&mut self.phase, Phase::Leave) {
            Phase::Jobs(batch) => Some(batch),
            Phase::Model | Phase::Compaction(_) | Phase::Leave | Phase::Marks | Phase::Over => None,
        }
    }

    /// Does whatever can be done now.
    pub(super) fn advance(&mut self, memory: &mut Memory) {
        loop {
            let Some(mut batch) = self.take_batch() else { return };
            let mut has_moved = false;
            let looked_at = batch.jobs.iter_mut().take_while(|it| it.stage != Stage::Preparing);
            for job in looked_at.filter(|it| it.stage == Stage::Prepared) {
                self.judge(job, memory);
                has_moved = true;
            }
            for at in 0..batch.jobs.len() {
                let may_run = batch.may_run(at, self.setup.limits.at_once);
                let Some(job) = batch.jobs.get_mut(at) else { break };
                let Some(tool) = job.tool.clone() else { continue };
                match (job.stage, &tool.work) {
                    // What a file is changed from is what the calls before it leave behind.
                    (Stage::Waiting, Work::Change(_)) if !may_run => {}
                    (Stage::Waiting, Work::Call { .. } | Work::Command { .. } | Work::Change(_)) => {
                        job.stage = Stage::Preparing;
                        self.output.effects.push(Effect::Prepare {
                            job: job.id,
                            tool,
                            call: job.call.id.clone(),
                            arguments: job.arguments.clone(),
                        });
                    }
                    (Stage::Waiting, Work::Turn(part)) if may_run => {
                        self.perform(*part, job, memory);
                        has_moved = true;
                    }
                    (Stage::Ready, _) if may_run => {
                        self.start_job(job, tool);
                        has_moved = true;
                    }
                    (Stage::Waiting | Stage::Ready, _) => {}
                    (Stage::Preparing | Stage::Prepared | Stage::Asking, _) => {}
                    (Stage::Running | Stage::Done, _) => {}
                }
            }
            let is_over = batch.is_over();
            self.phase = Phase::Jobs(batch);
            if is_over {
                if !self.is_checking() {
                    self.finish_batch(memory);
                }
                return;
            }
            if !has_moved {
                return;
            }
        }
    }

    /// Has the calls that have not begun judged by the policy of now; those that the user allowed stay allowed.
    pub(super) fn judge_ready(&mut self, memory: &mut Memory) {
        let Some(mut batch) = self.take_batch() else { return };
        for job in &mut batch.jobs {
            if job.stage == Stage::Ready && !job.was_asked {
                job.stage = Stage::Prepared;
            }
        }
        self.phase = Phase::Jobs(batch);
        self.advance(memory);
    }

    /// Takes the accesses and changes of a call that was prepared.
    pub(super) fn prepared(&mut self, id: JobId, result: Result<Prepared, Fault>, memory: &mut Memory) {
        self.with_job(id, Stage::Preparing, memory, |running, job, _| match result {
            Err(fault) => running.refuse(job, &fault),
            Ok(mut prepared) => {
                if let Some(arguments) = prepared.hook.arguments.take() {
                    job.arguments = arguments;
                }
                job.prepared = prepared;
                job.stage = Stage::Prepared;
            }
        });
    }

    /// Takes the report on a proposal, and asks the user, unless it would bring errors that the model may mend first: those of its
    /// last change of a message, which it does not repeat as it is.
    pub(super) fn previewed(&mut self, id: JobId, report: ProposalReport, memory: &mut Memory) {
        let Some(batch) = self.take_batch() else { return };
        let changes = |it: &Job| it.tool.as_ref().is_some_and(|it| matches!(it.work, Work::Change(_)));
        let is_last = !batch.jobs.iter().any(|it| it.stage == Stage::Waiting && changes(it));
        self.phase = Phase::Jobs(batch);
        self.with_job(id, Stage::Preparing, memory, |running, job, _| {
            let sent_back = &mut running.calls.sent_back;
            let same = |it: &Call| it.name == job.call.name && it.arguments == job.call.arguments;
            let is_sent_back =
                is_last && report.errors > 0 && sent_back.len() < MOST_SENT_BACK && !sent_back.iter().any(same);
            if is_sent_back {
                sent_back.push(job.call.clone());
            }
            job.prepared.preview = Preview::Done(report);
            if is_sent_back {
                running.send_back(job);
            } else {
                job.stage = Stage::Prepared;
            }
        });
    }

    /// Takes a job that is at `stage` out, lets `work` change it, and goes on.
    pub(super) fn with_job(
        &mut self,
        id: JobId,
        stage: Stage,
        memory: &mut Memory,
        work: impl FnOnce(&mut Self, &mut Job, &mut Memory),
    ) {
        let Some(mut batch) = self.take_batch() else { return };
        let found = batch.job(id).filter(|it| it.stage == stage);
        if let Some(job) = found {
            work(self, job, memory);
        }
        self.phase = Phase::Jobs(batch);
        self.advance(memory);
    }

    fn start_job(&mut self, job: &mut Job, tool: Arc<Tool>) {
        // The user may have restricted the mode since the call was judged.
        let fault = self.forbidden(&tool).or_else(|| self.forbidden_command(&job.prepared));
        if let Some(fault) = fault {
            return self.refuse(job, &fault);
        }
        job.stage = Stage::Running;
        match (&tool.work, job.prepared.proposal.take()) {
            (Work::Change(_), Some(proposal)) => {
                let Some(proposal) = self.pick(job, proposal) else {
                    return;
                };
                job.prepared.proposal = Some(proposal.clone());
                self.output.effects.push(Effect::Make {
                    job: job.id,
                    call: job.call.id.clone(),
                    proposal,
                });
                return;
            }
            (Work::Command { .. }, _) => {
                let metadata = command_metadata(job);
                self.show(job.id, Kind::TerminalCommand, metadata);
                self.calls.places.push((job.call.id.clone(), self.place()));
            }
            (Work::Call { .. } | Work::Change(_) | Work::Turn(_), _) => self.show_call(job),
        }
        self.output.effects.push(Effect::Run {
            job: job.id,
            tool,
            call: job.call.id.clone(),
            arguments: job.arguments.clone(),
            was_asked: job.was_asked,
            only_reads: self.mode.is_read_only(),
        });
    }

    /// Every call has its result: on to the next request, if nothing speaks against it.
    fn finish_batch(&mut self, memory: &mut Memory) {
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
            let limit = |it: &Tool| settings.tools.get(&it.name)?.max_bytes;
            bounds.push(Bound {
                most: job.tool.as_deref().and_then(limit),
                tool: job.tool,
            });
        }
        fit(&mut results, &bounds);
        self.placed(memory);
        memory.results(joined(results));
        self.guard.garbled = if is_all_garbled { self.guard.garbled + 1 } else { 0 };
        // What the user said while the plan was written is an answer to it, and the model's to take up.
        let has_user_the_word = std::mem::take(&mut self.has_user_the_word) && self.steering.is_empty();
        if has_user_the_word {
            self.end(Status::Completed, FinishReason::AwaitingInput, memory);
        } else if advice.contains(&2) {
            let details = format!(
                "the same call failed {} times in a row; say what it should do instead",
                self.setup.limits.max_failures
            );
            self.output
                .error("MAX_TURNS", "agent", "the model repeats a call that fails", &details);
            self.end(Status::Error, FinishReason::Error, memory);
        } else if self.guard.garbled >= GARBLED_MOST {
            let details = "choose another model, or ask for smaller steps";
            self.output
                .error("LLM_BAD_RESPONSE", "llm", "the model's calls cannot be read", details);
            self.end(Status::Error, FinishReason::Error, memory);
        } else if advice.contains(&1) {
            self.ask_to_go_on(
                "The model makes the same call again and again, with the same result.",
                memory,
            );
        } else if let Some(because) = self.is_spent(memory) {
            self.ask_to_go_on(&because, memory);
        } else if self.guard.calls >= self.setup.limits.calls {
            let count = self.guard.calls;
            self.ask_to_go_on(&format!("The model has made {count} calls."), memory);
        } else if self.guard.requests >= self.setup.limits.requests {
            let count = self.guard.requests;
            self.ask_to_go_on(&format!("The model has been asked {count} times."), memory);
        } else {
            self.ask_model(memory);
        }
    }

    /// Records the addresses of the results that the model is told now.
    fn placed(&mut self, memory: &mut Memory) {
        memory.history.places.extend(self.calls.places.drain(..));
    }

    /// Nothing of the batch is waited for any more: every document is closed, every call answered.
    pub(super) fn drop_batch(&mut self, memory: &mut Memory) {
        let Some(batch) = self.take_batch() else { return };
        self.output.effects.push(Effect::StopJobs);
        self.close_questions(Dealt::Cancelled);
        // What was changed stays changed, whoever did not wait for the checkers.
        self.leave_unchecked();
        let mut results = Vec::new();
        for mut job in batch.jobs {
            if job.stage != Stage::Done {
                let is_command = matches!(job.tool.as_ref().map(|it| &it.work), Some(Work::Command { .. }));
                let stopped = if is_command { self.stop_command(job.id) } else { None };
                let text = match stopped {
                    Some(output) => run_terminal_cmd::stopped(&output, &self.setup.settings.limits),
                    None => {
                        let result = json!({ "status": "error", "data": "cancelled" });
                        self.end_call(job.id, result, None, false);
                        "Cancelled by the user.".to_owned()
                    }
                };
                job.fail(text);
            }
            results.extend(job.result);
        }
        self.placed(memory);
        memory.results(joined(results));
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

/// Messages in a row that may hold nothing but unreadable calls.
const GARBLED_MOST: u32 = 3;
