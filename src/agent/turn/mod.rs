//! One answer from the first word to `done`: a state machine that does nothing itself.
//!
//! Inputs go in with the time, effects come out; whoever drives it appends the events, asks the model, runs the tools and
//! drops what is not wanted any more. However an answer ends (well, cut, refused, cancelled), every document is closed,
//! every call has exactly one result, and `done` comes once.
//!
//! ```text
//! Submit ─► ask the model ─► pieces ─► calls? ─no─► done
//!                ▲                      │yes
//!                └── results ◄── a batch of jobs: prepare ─► judge ─► (ask the user) ─► run
//! ```
//!
//! What was sent to the model is only ever added to: a server's cache knows it again by its beginning.

mod batch;
mod compaction;
mod ending;
mod guard;
mod memory;
mod question;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use chrono::{DateTime, SecondsFormat};
use serde_json::{Map, Value, json};
use unicode_segmentation::UnicodeSegmentation;

use self::{
    batch::{Batch, OpenCall},
    compaction::OpenCompaction,
    guard::Guard,
    question::OpenQuestion,
};
use super::{
    approval::{LookLimit, Rule, Rules, RunMode, Tier},
    tool_selection,
};
use crate::{
    agent::{
        history::{self, summary::SummaryRequest, told::SessionPrompt},
        writer::Writer,
    },
    config::Settings,
    extensions::{CustomMode, hooks::Decision},
    link::Asker,
    models::{
        Call, Effort, ModelRequest, Part, Piece, Said, Tokens, ToolSpec, WebSearch,
        catalogue::{self, Prices},
    },
    protocol::{
        ASIDE, Address, ClarificationResponse, CompactionScope, ConversationId, DocumentId, Event, FinishReason, Kind,
        Message, Mode, NotOffered, Notice, ResponseId, ResponseStart, Restriction, Severity, Status,
        Turn as ProtocolTurn, UserAction, sentence,
    },
    tools::{Access, Change, Fault, Input as Arguments, Outcome, Proposal, Tool, ToolSet},
};

pub use memory::Memory;

/// Names a call within an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

/// An input of the turn.
#[derive(Clone, Debug)]
pub enum Input {
    /// Ignored while an answer is being made.
    Submit(Box<Submission>),
    /// Said while an answer is being made: the model hears it before its next request.
    Steer {
        message: Message,
        parts: Vec<Part>,
        /// The mode in which the model goes on then.
        mode: Mode,
    },
    /// The user takes rights from the answer: a read-only mode (other modes are ignored), or questions before each change.
    Restrict(Restriction),
    /// A hook forbids the summary that is being asked for: why.
    KeepHistory(String),
    Piece(Piece),
    /// A call has been prepared: its accesses and changes are known.
    Prepared {
        job: JobId,
        result: Result<Prepared, Fault>,
    },
    /// The next output of a command.
    Output {
        job: JobId,
        text: String,
    },
    /// A tool has run, or a change was made.
    Ran {
        job: JobId,
        result: Result<Outcome, Fault>,
        took_ms: u64,
    },
    /// The report of language servers on a proposal.
    Previewed {
        job: JobId,
        report: ProposalReport,
    },
    /// The report of checkers and language servers on the changes of the step.
    Checked {
        report: CheckReport,
    },
    /// The user's answer to an open question.
    Answer(ClarificationResponse),
    /// The user says something that is a message of its own: an open form is closed, with the answers that were given to it.
    LeaveForm(Option<ClarificationResponse>),
    /// A server of tools asks the user something while it works on a call; answered by [`Effect::ServerAnswered`].
    ServerAsks {
        number: u64,
        lead: String,
        /// As a document of kind `clarification` has them.
        questions: Value,
    },
    /// A question waited for so long that no answer is an answer.
    Expired(DocumentId),
    /// Places of instrumentation marks, as `path:line`.
    Marks(Vec<String>),
    Cancel,
}

/// A call that has been looked at and not been carried out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prepared {
    pub accesses: Vec<Access>,
    /// For a tool that changes files.
    pub proposal: Option<Proposal>,
    pub preview: Preview,
    /// The tier of the sandbox. Only valid if there is a command: finding it out costs a trial.
    pub tier: Tier,
    /// The gaps of that sandbox, or why there is none. Empty: nothing is missing, or there is no command.
    pub gaps: String,
    /// The reason for which not all that should be is protected.
    pub limit_reached: Option<LookLimit>,
    /// Servers behind the remotes that a command's git reaches.
    pub remotes: Vec<String>,
    /// Git would work in a repository that was not there when the conversation began.
    pub is_new_repository: bool,
    /// The verdict of hooks.
    pub hook: HookVerdict,
}

/// The verdict of hooks about a call. The default: none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookVerdict {
    pub decision: Option<Decision>,
    /// A hook of the user's own allows it: an ordinary question is left out.
    pub lifts_question: bool,
    /// For the model.
    pub reason: String,
    /// The arguments, if a hook changed them: the call was prepared with these.
    pub arguments: Option<Arguments>,
}

/// The look at a proposal before the user is asked about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Preview {
    #[default]
    Unwanted,
    Wanted,
    Done(ProposalReport),
}

/// The report of language servers on a proposal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProposalReport {
    /// Number of errors that it would bring.
    pub errors: usize,
    /// All problems that it would bring, for the model; empty: there are none.
    pub text: String,
    /// The member `checked` of the documents; `None`: nothing has looked at it.
    pub checked: Option<Value>,
}

/// The report of checkers and language servers on the changes of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckReport {
    /// For the model; empty: there are no new mistakes.
    pub text: String,
    /// The member `checked` of the last change's document; `None`: nothing has looked at them.
    pub checked: Option<Value>,
}

/// A user's message and what is needed to answer it.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The message as the user wrote it.
    pub message: Message,
    /// The message as the model is told it.
    pub parts: Vec<Part>,
    /// The first context, told before the first message of a conversation; ignored later.
    pub opening: Vec<Part>,
    /// The mode in which the answer begins.
    pub mode: Mode,
    /// Format and model that make what only they can read.
    pub maker: String,
    /// Rules for calls that need no question.
    pub policy: Policy,
    /// Settings that stay the same during the answer.
    pub setup: AnswerSetup,
    /// The message stands in the log already.
    pub is_shown: bool,
    /// Why a hook keeps the message from the model; `None`: it is sent.
    pub blocked: Option<String>,
}

/// Settings that stay the same during an answer.
#[derive(Clone, Debug)]
pub struct AnswerSetup {
    /// The purpose of the turn.
    pub purpose: Purpose,
    /// The number of the turn, once it is in the log.
    pub turn: ProtocolTurn,
    /// The id of the conversation.
    pub conversation: ConversationId,
    /// The id of the answer.
    pub response: ResponseId,
    /// The model that answers.
    pub model: AnswerModel,
    /// All tools that may be offered in some mode.
    pub tools: ToolSet,
    /// Tools that are not among them, because there is nothing here that they could use.
    pub absent: Vec<(&'static str, NotOffered)>,
    /// The user's settings, for those of single tools.
    pub settings: Arc<Settings>,
    /// Limits of the answer.
    pub limits: AnswerLimits,
    /// The one who answers questions.
    pub asker: Asker,
    /// Strength of the sandbox, on which it depends in which modes commands run.
    pub tier: Tier,
    /// The custom mode that the answer is made in, besides the mode that it narrows.
    pub custom_mode: Option<Arc<CustomMode>>,
}

/// The model that answers, and what it is told beside the messages.
#[derive(Clone, Debug)]
pub struct AnswerModel {
    /// Empty: the server's own.
    pub name: String,
    /// The system prompt.
    pub system: Arc<str>,
    /// The model that writes summaries.
    pub summarist: String,
    /// Number of other models that may be tried when this one is overloaded.
    pub fallbacks: usize,
    /// The reasoning effort; `None`: the server's default.
    pub effort: Option<Effort>,
    /// It is known not to see images: it is told where one stands.
    pub is_blind: bool,
}

/// The purpose of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// The model answers.
    #[default]
    Answer,
    /// A command that the user typed runs; the model is not asked.
    Typed,
    /// A call of the model's is made again, as the user wants; the model is not asked.
    Repeated,
    /// Compacts the history, and nothing else.
    Compaction(CompactionScope),
}

/// Rules for calls that need no question.
#[derive(Clone, Debug)]
pub struct Policy {
    pub rules: Rules,
    pub run: RunMode,
    /// The user lets nothing hold commands.
    pub is_sandbox_off: bool,
    /// The file that "always" writes, as it is shown; empty: there is none.
    pub file: String,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            rules: Rules::default(),
            run: RunMode::Sandbox,
            is_sandbox_off: false,
            file: String::new(),
        }
    }
}

/// Limits of an answer, at which the user is asked or the answer ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnswerLimits {
    /// Requests to the model.
    pub requests: u32,
    pub calls: u32,
    /// Limit of the answer's cost, and of the whole conversation's; `None`: no limit.
    pub dollars: Option<f64>,
    /// Name of the setting or flag that limits the answer's cost.
    pub dollars_name: &'static str,
    pub dollars_in_all: Option<f64>,
    /// The same call that fails so often in a row is warned of, and ends the answer.
    pub warn_failures: u32,
    pub max_failures: u32,
    /// Reading calls at a time.
    pub at_once: usize,
}

impl Default for AnswerLimits {
    fn default() -> Self {
        Self {
            requests: 50,
            calls: 200,
            dollars: None,
            dollars_name: "agent.max_dollars",
            dollars_in_all: None,
            warn_failures: 3,
            max_failures: 5,
            at_once: 8,
        }
    }
}

/// An effect to be carried out, in the order of the list.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "most are events, and each lives for one step")]
pub enum Effect {
    Append(Event),
    CallModel {
        request: ModelRequest,
        /// 0: the chosen model; else the nth that may stand in for it.
        stand_in: usize,
    },
    /// Asks a model for a summary; what comes of it are pieces like any other. The second attempt goes to the conversation's
    /// own model.
    Summarise {
        brief: SummaryRequest,
        attempt: u32,
    },
    /// A part of what was told stands there no more: what the model has to know of it is told again.
    Forgot,
    /// Drops the request that is out.
    StopModel,
    /// Works out what the call would touch or change.
    Prepare {
        job: JobId,
        tool: Arc<Tool>,
        call: String,
        arguments: Arguments,
    },
    Run {
        job: JobId,
        tool: Arc<Tool>,
        call: String,
        arguments: Arguments,
        /// The user has looked at it: it runs as it was looked at.
        was_asked: bool,
        /// The mode lets nothing be changed.
        only_reads: bool,
    },
    /// Asks language servers what changes would bring; answered by [`Input::Previewed`], in a moment.
    Preview {
        job: JobId,
        changes: Vec<Change>,
    },
    /// Makes a change that was worked out.
    Make {
        job: JobId,
        call: String,
        proposal: Proposal,
    },
    /// Asks checkers and language servers about what these calls have changed; answered by [`Input::Checked`], in a moment.
    Check(Vec<JobId>),
    /// Drops everything that is being prepared or run.
    StopJobs,
    /// Keeps rules that the user gave, for all conversations to come.
    Store(Vec<Rule>),
    /// The user has answered the question of a server, or the answer has ended before.
    ServerAnswered {
        number: u64,
        response: ClarificationResponse,
    },
    /// Sends [`Input::Expired`] after a while.
    Expire(DocumentId),
    /// Looks through the workspace for marks of instrumentation.
    FindMarks,
}

/// The answer that is being made, if one is, and what the conversation remembers.
#[derive(Debug, Default)]
pub struct Turn {
    pub memory: Memory,
    running: Option<Running>,
}

/// The answer that is being made.
#[derive(Debug)]
struct Running {
    setup: AnswerSetup,
    output: AnswerOutput,
    mode: Mode,
    phase: Phase,
    request: OpenRequest,
    spending: Spending,
    calls: OpenCalls,
    /// Open questions, oldest first.
    questions: Vec<OpenQuestion>,
    steering: VecDeque<Steered>,
    guard: Guard,
    /// The model was told once which marks are left.
    has_reminded: bool,
    /// The user has the word.
    has_user_the_word: bool,
}

/// The events of an answer on their way to the log, and everything else that the step has to do.
#[derive(Debug)]
struct AnswerOutput {
    /// The effects of the step so far, in their order.
    effects: Vec<Effect>,
    writer: Writer,
    /// Appended with the first thing the model says, because only then its name may be known.
    start: Option<ResponseStart>,
    began_ms: u64,
    now_ms: u64,
    has_thought: bool,
}

impl AnswerOutput {
    /// Appends events of the response, after its start.
    fn say(&mut self, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let start = self.start.take().map(Event::ResponseStart);
        self.effects.extend(start.into_iter().chain(events).map(Effect::Append));
    }

    /// Appends a document that is complete; returns its id.
    fn whole(
        &mut self,
        kind: Kind,
        start: Map<String, Value>,
        content: Option<&str>,
        end: Map<String, Value>,
    ) -> Option<DocumentId> {
        let events = self.writer.whole(kind, start, content, end);
        let document = events.iter().find_map(Event::document).cloned();
        self.say(events);
        document
    }

    /// Ends the open document at the end of the answer.
    fn finish(&mut self) {
        let events = self.writer.finish();
        self.say(events);
    }

    /// Ends the open document as cut off.
    fn cut(&mut self) {
        let events = self.writer.cut();
        self.say(events);
    }

    fn notice(&mut self, severity: Severity, code: &str, message: String) {
        let notice = Notice::new(severity, code, message);
        self.say(vec![Event::Notice(notice)]);
    }

    fn error(&mut self, code: &str, source: &str, message: &str, details: &str) {
        let events = self.writer.error(code, source, message, details);
        self.say(events);
    }
}

/// The last request to the model, and what has come of it.
#[derive(Debug, Default)]
struct OpenRequest {
    /// The model's message so far.
    said: Vec<Said>,
    /// Calls whose arguments are no JSON object, by id, with what they are.
    garbled: Vec<(String, String)>,
    /// The model declined, in its own words.
    has_declined: bool,
    /// Number of messages that the model was sent.
    sent: usize,
    /// Anything at all has come: then the model is not asked again.
    has_output: bool,
    /// Tokens, as far as they have been counted.
    tokens: Tokens,
    /// Number of documents that there were when the model was asked.
    asked_behind: u64,
    /// 0: the chosen model; else the nth that stands in for it.
    stand_in: usize,
    /// Room was made, or could not be, since the model last said something.
    has_compacted: bool,
}

/// The cost of an answer's requests.
#[derive(Debug)]
struct Spending {
    /// Tokens of the requests that have ended.
    tokens: Tokens,
    /// In dollars, request by request: a long one has another price. `None`: of one the price is unknown.
    cost: Option<f64>,
    /// Number of requests.
    requests: u32,
}

impl Spending {
    /// Adds the counts of a request. Returns what it has cost, in dollars, if its prices are known.
    fn add(&mut self, tokens: &Tokens, prices: Option<Prices>) -> Option<f64> {
        let dollars = prices.map(|it| it.of(tokens).dollars);
        if *tokens != Tokens::default() {
            self.cost = self.cost.zip(dollars).map(|(sum, it)| sum + it);
        }
        let add = |total: &mut u64, more: u64| *total = total.saturating_add(more);
        add(&mut self.tokens.prompt, tokens.prompt);
        add(&mut self.tokens.cached, tokens.cached);
        add(&mut self.tokens.cache_written, tokens.cache_written);
        add(&mut self.tokens.completion, tokens.completion);
        add(&mut self.tokens.reasoning, tokens.reasoning);
        dollars
    }
}

/// The calls of an answer.
#[derive(Debug, Default)]
struct OpenCalls {
    /// Documents of calls that run.
    shown: BTreeMap<JobId, OpenCall>,
    /// Changes of the step that are to be looked at when all its calls are done, in their order.
    made: Vec<MadeChange>,
    /// They are being looked at.
    is_checking: bool,
    /// Calls whose changes were sent back to the model in a row, because of the errors that they would bring.
    sent_back: Vec<Call>,
    next_job: u64,
    /// Number of documents of the kind `tool_call`.
    count: u64,
    /// Places of the documents of calls that have no result yet.
    places: Vec<(String, Address)>,
}

/// A change that was made.
#[derive(Debug)]
struct MadeChange {
    job: JobId,
    /// Its last document, and the file that this is about.
    document: DocumentId,
    file: String,
}

/// A message that was sent while the model works and that the model has not been told.
#[derive(Debug)]
struct Steered {
    message: Message,
    parts: Vec<Part>,
    mode: Mode,
}

/// The event that the answer waits for.
#[derive(Debug)]
enum Phase {
    Model,
    Jobs(Batch),
    /// A summary, so that what is told becomes shorter.
    Compaction(Box<OpenCompaction>),
    /// The answer to "go on?".
    Leave,
    /// The search for marks.
    Marks,
    Over,
}

/// Maximum number of calls in a message of the model.
const CALLS_PER_STEP: usize = 200;

/// The model's message where it did not answer.
const NO_ANSWER: &str = "(No answer came.)";
/// A title is a line in a list.
const TITLE_GRAPHEMES: usize = 60;

impl Turn {
    /// Returns true from a submission to its end, also while a question is open and while only a summary is made.
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// A model answers: what is said meanwhile is for it.
    pub fn is_answering(&self) -> bool {
        let running = self.running.as_ref();
        running.is_some_and(|it| it.setup.purpose == Purpose::Answer)
    }

    /// The purpose of the turn that is running.
    pub fn purpose(&self) -> Option<&Purpose> {
        self.running.as_ref().map(|it| &it.setup.purpose)
    }

    /// The custom mode of the answer that is being made.
    pub fn custom_mode(&self) -> Option<&str> {
        let mode = self.running.as_ref()?.setup.custom_mode.as_ref()?;
        Some(mode.name.as_str())
    }

    /// The mode that is in force in the answer that is being made.
    pub fn mode(&self) -> Option<Mode> {
        self.running.as_ref().map(|it| it.mode)
    }

    /// Takes an input at a time in milliseconds since the Unix epoch. Returns the effects, in the order in which to carry
    /// them out; none if the input changes nothing.
    pub fn step(&mut self, input: Input, now_ms: u64) -> Vec<Effect> {
        let memory = &mut self.memory;
        let mut running = match (input, self.running.take()) {
            (Input::Submit(submission), None) => {
                let blocked = submission.blocked.clone();
                let mut running = Running::begin(*submission, memory, now_ms);
                if let Some(because) = blocked {
                    running.block(&because, memory);
                } else if let Purpose::Compaction(how) = running.setup.purpose.clone() {
                    running.compact(how, memory);
                } else if let Some(because) = running.is_spent(memory) {
                    running.ask_to_go_on(&because, memory);
                } else {
                    running.ask_model(memory);
                }
                running
            }
            (_, None) => return Vec::new(),
            (input, Some(mut running)) => {
                running.output.now_ms = now_ms;
                running.take(input, memory);
                running
            }
        };
        let effects = std::mem::take(&mut running.output.effects);
        self.running = Some(running).filter(|it| !matches!(it.phase, Phase::Over));
        effects
    }
}

/// The members of a response that is made in a custom mode.
fn custom_mode(mode: Option<&CustomMode>) -> Map<String, Value> {
    let named = mode.map(|it| ("metadata".to_owned(), serde_json::json!({ "customMode": it.name })));
    named.into_iter().collect()
}

impl Running {
    fn begin(submission: Submission, memory: &mut Memory, now_ms: u64) -> Self {
        let Submission {
            mut message,
            mut parts,
            opening,
            mode,
            maker,
            policy,
            mut setup,
            is_shown,
            blocked,
        } = submission;
        let is_aside = matches!(setup.purpose, Purpose::Compaction(_)) || blocked.is_some();
        let title = title(&message.typed()).filter(|_| memory.is_empty() && !memory.is_titled && !is_aside);
        memory.is_titled |= title.is_some();
        if is_aside {
            message.extra.insert(ASIDE.to_owned(), true.into());
        }
        let title = title.map(|it| Event::Title(it.into()));
        let message = (!is_shown).then_some(Event::UserMessage(message));
        let opening_events = message.into_iter().chain(title);
        memory.take_policy(policy);
        let mut lost = Vec::new();
        if setup.purpose == Purpose::Answer {
            let tools: Vec<Arc<ToolSpec>> = tool_selection::of_all_modes(&setup.settings, &setup.tools)
                .map(|it| tool_selection::spec(&setup.settings, it))
                .collect();
            let wanted = SessionPrompt::new(&maker, Arc::clone(&setup.model.system), &tools);
            let (changes, changed) = memory.keep_prompt(wanted);
            parts.splice(0..0, changes.map(Part::Text));
            if let Some(kept) = &memory.prompt {
                setup.model.system = Arc::clone(&kept.system);
            }
            if !changed.is_empty() {
                let message = sentence::TOOLS_CHANGED.with(&changed.join(", "));
                lost.push(Event::Notice(Notice::new(Severity::Warning, "cache-lost", message)));
            }
        }
        if !is_aside {
            if !memory.is_opened {
                memory.open(opening);
            }
            memory.made_by(maker);
            memory.history.turn(setup.turn, parts);
        }
        let start = ResponseStart {
            id: Some(setup.response.clone()),
            conversation_id: Some(setup.conversation.clone()),
            model: Some(setup.model.name.clone()).filter(|it| !it.is_empty()),
            mode: Some(mode),
            created: created(now_ms),
            capabilities: if setup.asker.is_attended() {
                vec!["live_input".to_owned()]
            } else {
                Vec::new()
            },
            extra: custom_mode(setup.custom_mode.as_deref()),
        };
        Self {
            output: AnswerOutput {
                effects: opening_events.chain(lost).map(Effect::Append).collect(),
                writer: Writer::new(mode),
                start: Some(start),
                began_ms: now_ms,
                now_ms,
                has_thought: false,
            },
            setup,
            mode,
            phase: Phase::Model,
            request: OpenRequest::default(),
            spending: Spending {
                tokens: Tokens::default(),
                cost: Some(0.0),
                requests: 0,
            },
            calls: OpenCalls::default(),
            questions: Vec::new(),
            steering: VecDeque::new(),
            guard: Guard::default(),
            has_reminded: false,
            has_user_the_word: false,
        }
    }

    fn take(&mut self, input: Input, memory: &mut Memory) {
        match input {
            Input::Submit(_) => {}
            Input::Steer { message, parts, mode } => {
                let given = message.clarification_response.clone();
                self.steering.push_back(Steered { message, parts, mode });
                self.leave_form(given.as_ref(), memory);
            }
            Input::LeaveForm(given) => self.leave_form(given.as_ref(), memory),
            Input::Cancel => self.cancel(memory),
            Input::KeepHistory(why) if matches!(self.phase, Phase::Compaction(_)) => self.keep_history(&why, memory),
            Input::Piece(piece) if matches!(self.phase, Phase::Model) => self.piece(piece, memory),
            Input::Piece(piece) if matches!(self.phase, Phase::Compaction(_)) => self.summary_piece(piece, memory),
            Input::Prepared { job, result } => self.prepared(job, result, memory),
            Input::Output { job, text } => self.says(job, &text),
            Input::Ran { job, result, took_ms } => self.ran(job, result, took_ms, memory),
            Input::Previewed { job, report } => self.previewed(job, report, memory),
            Input::Checked { report } => self.checked(report, memory),
            Input::Restrict(Restriction::AsksFirst) => {
                memory.policy.run = RunMode::Ask;
                self.judge_ready(memory);
            }
            Input::Restrict(Restriction::Mode(mode)) => {
                if mode.is_read_only() && !self.mode.is_read_only() {
                    self.enter(mode);
                }
            }
            Input::Answer(response) => self.answer(&response, memory),
            Input::ServerAsks {
                number,
                lead,
                questions,
            } => self.ask_for_server(number, &lead, &questions),
            Input::Expired(document) => self.expire(&document, memory),
            Input::Marks(marks) if matches!(self.phase, Phase::Marks) => self.marks(&marks, memory),
            // What comes late from something that was dropped.
            Input::Piece(_) | Input::Marks(_) | Input::KeepHistory(_) => {}
        }
    }

    /// Ends the turn of a message that a hook keeps from the model.
    fn block(&mut self, because: &str, memory: &mut Memory) {
        // Nothing was sent that could want an answer.
        self.request.sent = usize::MAX;
        let details = "change the message or its mode, or see /hooks";
        let members = json!({ "errorCode": "PROMPT_BLOCKED", "source": "client", ASIDE: true });
        let mut known = members.as_object().cloned().unwrap_or_default();
        let start = known.clone();
        known.insert("details".to_owned(), details.into());
        self.output.whole(Kind::Error, start, Some(because), known);
        self.end(Status::Error, FinishReason::Error, memory);
    }

    /// The tools of the mode that is in force.
    fn in_force(&self) -> impl Iterator<Item = &Arc<Tool>> {
        tool_selection::of_mode(&self.setup.settings, &self.setup.tools, self.mode)
    }

    /// The tools of the request, whether the mode allows them or not.
    fn offered(&self) -> Vec<Arc<ToolSpec>> {
        let listed = tool_selection::listed(&self.setup.settings, &self.setup.tools, self.mode);
        let spec = |it: &Arc<Tool>| tool_selection::spec(&self.setup.settings, it);
        listed.into_iter().map(spec).collect()
    }

    /// Goes on in another mode, as the user wants it.
    fn enter(&mut self, mode: Mode) {
        if self.mode == mode {
            return;
        }
        // A mode that takes away as much or more keeps what the custom one has taken.
        if !mode.is_read_only() {
            self.setup.custom_mode = None;
        }
        self.mode = mode;
        self.output.writer.enter(mode);
        let notice = UserAction::ModeChanged.notice(&[mode.as_str()]);
        self.output.say(vec![Event::Notice(notice)]);
    }

    /// The next request, with everything that was said in the meantime.
    fn ask_model(&mut self, memory: &mut Memory) {
        // What was sent and not answered must not run into what comes now.
        if !self.steering.is_empty() && memory.history.messages.len() == self.request.sent {
            memory.unanswered(NO_ANSWER);
        }
        while let Some(Steered { message, parts, mode }) = self.steering.pop_front() {
            let events = self.output.writer.spoken(&message.content);
            self.output.say(events);
            memory.user(parts);
            self.enter(mode);
        }
        if self.setup.purpose == Purpose::Answer && self.compacts_first(memory) {
            return;
        }
        self.request(memory);
    }

    /// Asks the model with all that it is told now.
    fn request(&mut self, memory: &mut Memory) {
        self.request.said.clear();
        self.request.garbled.clear();
        self.request.has_output = false;
        self.request.has_declined = false;
        self.request.tokens = Tokens::default();
        self.guard.requests += 1;
        self.spending.requests += 1;
        self.phase = Phase::Model;
        self.request.sent = memory.history.messages.len();
        self.request.asked_behind = self.output.writer.count();
        let messages = if self.setup.model.is_blind {
            memory.without_images()
        } else {
            memory.history.messages.clone()
        };
        let tools = self.offered();
        let messages = if tools.is_empty() {
            history::calls_as_text(messages)
        } else {
            messages
        };
        self.output.effects.push(Effect::CallModel {
            request: ModelRequest {
                model: self.setup.model.name.clone(),
                system: Arc::clone(&self.setup.model.system),
                messages,
                tools,
                effort: self.setup.model.effort,
                is_attended: self.setup.asker.is_attended() && self.setup.asker != Asker::Program,
                cache_key: self.setup.conversation.to_string(),
                is_watched: false,
            },
            stand_in: self.request.stand_in,
        });
    }

    fn piece(&mut self, piece: Piece, memory: &mut Memory) {
        self.request.has_output |= !matches!(
            piece,
            Piece::Progress(_)
                | Piece::Start { .. }
                | Piece::Usage(_)
                | Piece::Notice(_)
                | Piece::Seen(_)
                | Piece::Void
                | Piece::End(_)
                | Piece::Error(_)
        );
        self.request.has_declined |= matches!(piece, Piece::Refusal(_));
        match piece {
            Piece::Progress(progress) => self.output.effects.push(Effect::Append(Event::Progress(progress))),
            Piece::Start { model, .. } => {
                if let Some(start) = &mut self.output.start
                    && start.model.is_none()
                {
                    start.model = model;
                }
            }
            Piece::Text(text) | Piece::Refusal(text) => {
                if self.setup.asker.prints_text() {
                    self.output.say(vec![Event::Said { delta: text.clone() }]);
                }
                let events = self.output.writer.text(&text);
                self.output.say(events);
                match self.request.said.last_mut() {
                    Some(Said::Text(last)) => last.push_str(&text),
                    Some(Said::Opaque(_) | Said::Call(_)) | None => {
                        // Most messages are one text.
                        self.request.said.reserve_exact(1);
                        self.request.said.push(Said::Text(text.into()));
                    }
                }
            }
            Piece::Thinking(delta) => {
                self.output.has_thought = true;
                self.output.say(vec![Event::ThinkingDelta { delta }]);
            }
            Piece::ThinkingDone { opaque } => self.request.said.push(Said::Opaque(opaque)),
            Piece::Searched(search) => self.searched(&search),
            Piece::CallDone {
                id,
                name,
                arguments,
                opaque,
                slot: _,
            } => {
                let calls = self
                    .request
                    .said
                    .iter()
                    .filter(|it| matches!(it, Said::Call(_)))
                    .count();
                if calls == CALLS_PER_STEP {
                    return self.too_many_calls(memory);
                }
                let id = self.fresh_id(id, memory);
                let arguments = arguments.unwrap_or_else(|text| {
                    self.request.garbled.push((id.clone(), text));
                    Map::new()
                });
                self.request.said.push(Said::Call(Call {
                    id,
                    name,
                    arguments,
                    opaque,
                }));
            }
            Piece::Usage(tokens) => self.request.tokens = tokens,
            Piece::Notice(notice) => self.output.say(vec![Event::Notice(notice)]),
            Piece::Void => self.drop_part(memory),
            // A call counts once it is whole.
            Piece::CallStart { .. } | Piece::CallArguments { .. } | Piece::Seen(_) => {}
            Piece::End(reason) => self.stopped(reason, memory),
            Piece::Error(failure) => self.failed(&failure, memory),
        }
    }

    /// Shows a search that the provider has made: the query, and the pages that it found.
    fn searched(&mut self, search: &WebSearch) {
        self.calls.count += 1;
        let found = search.hits.iter().map(|it| match it.title.trim() {
            "" => it.url.clone(),
            title => format!("{title}\n{}", it.url),
        });
        let result = match &search.failed {
            Some(why) => json!({ "status": "error", "data": why }),
            None => json!({ "status": "success", "data": found.collect::<Vec<_>>().join("\n\n") }),
        };
        let start = json!({ "toolName": "web_search", "toolCallId": search.id });
        let end = json!({
            "toolName": "web_search",
            "toolCallId": search.id,
            "arguments": { "search_term": search.query },
            "result": result,
        });
        let members = |it: Value| it.as_object().cloned().unwrap_or_default();
        let events = self
            .output
            .writer
            .whole(Kind::ToolCall, members(start), None, members(end));
        self.output.say(events);
    }

    /// An id for a call that no other call of the conversation has.
    fn fresh_id(&self, id: String, memory: &Memory) -> String {
        let is_taken = |id: &str| {
            let here = self
                .request
                .said
                .iter()
                .any(|it| matches!(it, Said::Call(call) if call.id == id));
            here || memory.has_call(id)
        };
        if !id.is_empty() && !is_taken(&id) {
            return id;
        }
        let stem = if id.is_empty() { "call".to_owned() } else { id };
        (2..u64::MAX)
            .map(|it| format!("{stem}_{it}"))
            .find(|it| !is_taken(it))
            .unwrap_or(stem)
    }

    /// Why no more is to be spent without a yes.
    fn is_spent(&self, memory: &Memory) -> Option<String> {
        let AnswerLimits {
            dollars: own,
            dollars_in_all: all,
            ..
        } = self.setup.limits;
        let over = |spent: f64, limit: Option<f64>| limit.filter(|it| spent >= *it && spent > 0.0);
        if let Some(limit) = over(self.guard.dollars, own) {
            let (spent, limit) = (dollars(self.guard.dollars), dollars(limit));
            let name = self.setup.limits.dollars_name;
            return Some(format!("The answer has cost {spent}; {name} is {limit}."));
        }
        let limit = over(memory.costs.dollars - memory.costs.allowed, all)?;
        let (spent, limit) = (dollars(memory.costs.dollars), dollars(limit));
        Some(format!(
            "The conversation has cost {spent}; agent.max_dollars_in_all is {limit}."
        ))
    }

    /// A limit that cannot be held is no limit: that is said, once.
    fn say_unpriced(&mut self, memory: &mut Memory) {
        let AnswerLimits {
            dollars,
            dollars_in_all,
            ..
        } = self.setup.limits;
        if !memory.costs.is_unpriced || memory.costs.has_said_unpriced || dollars.or(dollars_in_all).is_none() {
            return;
        }
        memory.costs.has_said_unpriced = true;
        let model = match self.setup.model.name.as_str() {
            "" => "the server's own model",
            model => model,
        };
        let message = format!(
            "what {model} costs is not known, so that the limit of spending does not count it; models.\"…\".price_in and price_out say it"
        );
        self.output.notice(Severity::Warning, "price-unknown", message);
    }

    /// Moves the counts of the request that has ended to those of the answer.
    fn count_tokens(&mut self, memory: &mut Memory) {
        let tokens = std::mem::take(&mut self.request.tokens);
        if tokens.prompt > 0 {
            memory.history.count(tokens.prompt.saturating_add(tokens.completion));
        }
        // What stands in has prices of its own, which are not known here.
        let known = catalogue::known(&self.setup.model.name, &self.setup.settings.models);
        self.pay(&tokens, known.prices.filter(|_| self.request.stand_in == 0), memory);
    }

    /// Adds the counts of a request to those of the answer.
    fn pay(&mut self, tokens: &Tokens, prices: Option<Prices>, memory: &mut Memory) {
        let dollars = self.spending.add(tokens, prices);
        if *tokens != Tokens::default() {
            self.guard.dollars += dollars.unwrap_or_default();
            memory.costs.dollars += dollars.unwrap_or_default();
            memory.costs.is_unpriced |= dollars.is_none();
        }
    }
}

/// Dollars and cents.
fn dollars(amount: f64) -> String {
    format!("${amount:.2}")
}

/// ISO 8601, UTC.
fn created(now_ms: u64) -> Option<String> {
    let time = DateTime::from_timestamp_millis(i64::try_from(now_ms).ok()?)?;
    Some(time.to_rfc3339_opts(SecondsFormat::Secs, true))
}

/// The first line that says something, cut.
fn title(message: &str) -> Option<String> {
    let line = message
        .lines()
        .map(|it| it.trim_matches(|c: char| c == '#' || c.is_whitespace()));
    let line = line.into_iter().find(|it| it.chars().any(char::is_alphanumeric))?;
    let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut cut: String = words.graphemes(true).take(TITLE_GRAPHEMES).collect();
    if cut.len() < words.len() {
        cut.push('…');
    }
    Some(cut)
}
