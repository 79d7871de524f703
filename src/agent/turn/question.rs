//! What waits for the user while an answer is made: approvals, the model's questions, "go on?".
//!
//! A question is a document that stays open until it is dealt with, by whoever deals with it first.

use serde_json::{Map, Value, json};

use super::{
    Effect, Fault, JobId, Memory, Phase, Preview, ProposalReport, Running,
    batch::{ChangeAnswer, Job, Stage, before, choices, edits, gist, shared},
};
use crate::{
    agent::{
        approval::{self, Rule},
        prompt, tool_selection,
    },
    link::Asker,
    models::Part as Told,
    protocol::{
        Applied, ClarificationResponse, DocumentId, Event, FinishReason, HunkAnswer, Kind, Outcome as Dealt,
        Permission, QuestionKind, Status, document::CHECKED,
    },
    tools::{
        self, Access, Change, Outcome, Part, Tool,
        ask::{self, QuestionForm},
        create_plan, object, switch_mode, todo_write,
    },
};

/// An open question.
#[derive(Debug)]
pub struct OpenQuestion {
    document: DocumentId,
    lead: String,
    metadata: Map<String, Value>,
    purpose: Purpose,
}

#[derive(Debug)]
enum Purpose {
    Approve {
        job: JobId,
        always: Vec<Rule>,
        session: Vec<Rule>,
        /// Which change of the proposal it is about, and whether its hunks can be chosen one by one.
        change: usize,
        has_hunks: bool,
    },
    Form {
        job: JobId,
        form: QuestionForm,
    },
    Mode {
        job: JobId,
    },
    /// A server of tools asks.
    Server {
        number: u64,
    },
    GoOn,
    /// Marks of instrumentation are left, and only the user can bring the fault about.
    Reproduce {
        marks: String,
    },
}

impl Purpose {
    fn job(&self) -> Option<JobId> {
        match self {
            Self::Approve { job, .. } | Self::Form { job, .. } | Self::Mode { job } => Some(*job),
            Self::Server { .. } | Self::GoOn | Self::Reproduce { .. } => None,
        }
    }
}

impl Running {
    fn ask_user(&mut self, lead: &str, metadata: Map<String, Value>, purpose: Purpose) {
        let kind = metadata.get("kind").cloned().unwrap_or(Value::Null);
        let mut events = Vec::new();
        let document = self
            .output
            .writer
            .begin(Kind::Clarification, object(json!({ "kind": kind })), &mut events);
        if !lead.is_empty() {
            events.push(Event::ContentDelta {
                document: document.clone(),
                delta: lead.to_owned(),
            });
        }
        events.push(Event::MetadataDelta {
            document: document.clone(),
            metadata: metadata.clone(),
            append: Vec::new(),
        });
        self.output.say(events);
        self.questions.push(OpenQuestion {
            document,
            lead: lead.to_owned(),
            metadata,
            purpose,
        });
    }

    fn close(&mut self, question: OpenQuestion, dealt: &ClarificationResponse) {
        let mut metadata = question.metadata;
        metadata.insert("outcome".into(), json!(dealt.outcome));
        if !dealt.answers.is_empty() {
            metadata.insert("answers".into(), json!(dealt.answers));
        }
        if let Some(reason) = &dealt.reason {
            metadata.insert("reason".into(), reason.clone().into());
        }
        let end = Event::DocumentEnd {
            document: question.document,
            final_content: Some(question.lead.into()),
            metadata,
        };
        self.output.say(vec![end]);
    }

    /// Closes what is open without an answer.
    pub(super) fn close_questions(&mut self, outcome: Dealt) {
        for question in std::mem::take(&mut self.questions) {
            let dealt = unanswered(&question.document, outcome.clone());
            if let Purpose::Server { number } = question.purpose {
                self.output.effects.push(Effect::ServerAnswered {
                    number,
                    response: dealt.clone(),
                });
            }
            self.close(question, &dealt);
        }
    }

    /// Shows the question of a server.
    pub(super) fn ask_for_server(&mut self, number: u64, lead: &str, questions: &Value) {
        let metadata = object(json!({ "kind": QuestionKind::Question, "questions": questions }));
        self.ask_user(lead, metadata, Purpose::Server { number });
    }

    /// The other questions about a job that need no answer any more, because of what was said to one.
    pub(super) fn close_approvals(&mut self, job: JobId, because: Option<&str>) {
        let (over, open) = std::mem::take(&mut self.questions)
            .into_iter()
            .partition(|it: &OpenQuestion| it.purpose.job() == Some(job));
        self.questions = open;
        for question in over {
            let mut dealt = unanswered(&question.document, Dealt::Skipped);
            dealt.reason = because.map(str::to_owned);
            self.close(question, &dealt);
        }
    }

    /// Asks whether a call may be carried out: the whole command, the whole change, one question for each file.
    pub(super) fn ask_approval(&mut self, job: &Job, tool: &Tool, question: &approval::Question, memory: &Memory) {
        let mut options = vec![json!({ "id": "allow_once", "label": "Allow once" })];
        let words = |rules: &[Rule]| rules.iter().map(Rule::to_string).collect::<Vec<_>>().join(", ");
        if !question.session.is_empty() {
            options.push(json!({
                "id": "allow_session",
                "label": "Allow for this session",
                "description": words(&question.session),
            }));
        }
        if !question.always.is_empty() {
            let file = Some(memory.policy.file.as_str()).filter(|it| !it.is_empty());
            options.push(json!({
                "id": "allow_always",
                "label": format!("Always allow {}", words(&question.always)),
                "description": format!("{} in {}", words(&question.always), file.unwrap_or("your settings")),
            }));
        }
        let purpose = purpose(job, memory);
        options.push(json!({ "id": "reject_once", "label": "Reject" }));
        for (at, (lead, text, subject)) in Self::subjects(job, tool, question, &purpose).into_iter().enumerate() {
            let purpose = Purpose::Approve {
                job: job.id,
                always: question.always.clone(),
                session: question.session.clone(),
                change: at,
                has_hunks: subject.pointer("/metadata/hunks").is_some(),
            };
            let metadata = object(json!({
                "kind": QuestionKind::Approval,
                "toolCallId": job.call.id,
                "subject": subject,
                "questions": [{
                    "id": "approval",
                    "text": text,
                    "allowFreeText": true,
                    "options": options,
                }],
            }));
            self.ask_user(&lead, metadata, purpose);
        }
    }

    /// The subjects of the question: for each a lead, the question and the planned action.
    fn subjects(job: &Job, tool: &Tool, question: &approval::Question, purpose: &str) -> Vec<(String, String, Value)> {
        // What it would reach, what it wants and what it changes stand there in any case.
        let is_reach = |why: &str| question.reaches.iter().any(|it| why == format!("it reaches {it}"));
        let is_access = |why: &str, it: &Access| match it {
            Access::Command { permissions, .. } => why == approval::wants(permissions),
            Access::Write(place) => why == approval::changes(place),
            Access::Read(_) | Access::Delete(_) | Access::Fetch { .. } | Access::Search | Access::Mcp { .. } => false,
        };
        let is_listed = |why: &str| is_reach(why) || job.prepared.accesses.iter().any(|it| is_access(why, it));
        let why: Vec<&str> = question.why.split("; ").filter(|it| !is_listed(it)).collect();
        let why = why.join("; ");
        let mut extra = Map::new();
        if !purpose.is_empty() {
            extra.insert("why".into(), purpose.into());
        }
        if !question.reaches.is_empty() {
            extra.insert("wouldReach".into(), question.reaches.clone().into());
        }
        if !question.writes.is_empty() {
            extra.insert("wouldWrite".into(), question.writes.clone().into());
        }
        if question.is_protected {
            extra.insert("protected".into(), true.into());
        }
        if let Some(proposal) = job.prepared.proposal.as_ref().filter(|it| !it.changes.is_empty()) {
            let count = proposal.changes.len();
            let mut checks = checks(job, &proposal.changes).into_iter();
            return proposal
                .changes
                .iter()
                .enumerate()
                .map(|(at, change)| {
                    let mut subject = preview(change, &tool.name, &job.call.id);
                    if let Some(metadata) = subject.get_mut("metadata").and_then(Value::as_object_mut) {
                        metadata.extend(extra.clone());
                        metadata.extend(checks.next().map(|it| (CHECKED.to_owned(), it)));
                        if count > 1 {
                            metadata.insert("together".into(), json!({ "at": at + 1, "of": count }));
                        }
                    }
                    let text = format!("Allow the model to {} `{}`?", change.operation, change.file.shown);
                    let lead = match count {
                        0 | 1 => why.clone(),
                        _ if why.is_empty() => format!("change {} of {count} in one step: {TOGETHER}", at + 1),
                        _ => format!("change {} of {count} in one step: {TOGETHER}; {why}", at + 1),
                    };
                    (lead, text, subject)
                })
                .collect();
        }
        let mut accesses = job.prepared.accesses.iter();
        if let Some(Access::Command {
            line,
            directory,
            permissions,
            is_background,
        }) = accesses.find(|it| matches!(it, Access::Command { .. }))
        {
            let words: Vec<&str> = permissions.iter().map(Permission::as_str).collect();
            let mut metadata = object(json!({
                "command": line,
                "workingDirectory": directory.path.to_string_lossy(),
                "permissions": words,
            }));
            if *is_background {
                metadata.insert("background".into(), true.into());
            }
            metadata.extend(extra);
            let text = if words.is_empty() {
                "Run this command?".to_owned()
            } else {
                format!("Run this command, with the permission {}?", words.join(", "))
            };
            let subject = json!({ "type": Kind::TerminalCommand, "content": null, "metadata": metadata });
            return vec![(why, text, subject)];
        }
        let mut metadata = object(json!({ "toolName": tool.name, "arguments": job.arguments.0 }));
        metadata.extend(extra);
        let text = match job.prepared.accesses.first() {
            Some(Access::Read(place)) => format!("Allow reading `{}`?", place.shown),
            Some(Access::Fetch { host, .. }) => format!("Allow fetching from {host}?"),
            Some(Access::Search) => "Allow a web search?".to_owned(),
            Some(Access::Mcp { server, tool }) => format!("Allow `{tool}` of {server}?"),
            Some(Access::Write(place) | Access::Delete(place)) => format!("Allow changing `{}`?", place.shown),
            Some(Access::Command { .. }) | None => format!("Allow {}?", tool.name),
        };
        vec![(
            why,
            text,
            json!({ "type": Kind::ToolCall, "content": null, "metadata": metadata }),
        )]
    }

    /// Carries out a tool that belongs to the turn itself.
    pub(super) fn perform(&mut self, part: Part, job: &mut Job, memory: &mut Memory) {
        match part {
            Part::Todos => self.perform_todos(job, memory),
            Part::Plan => self.perform_plan(job, memory),
            Part::Ask => self.perform_ask(job),
            Part::Mode => self.perform_mode(job),
        }
    }

    fn perform_todos(&mut self, job: &mut Job, memory: &mut Memory) {
        let todos = match todo_write::read(&job.arguments) {
            Ok(todos) => todos,
            Err(fault) => return self.refuse(job, &fault),
        };
        let merge = job.arguments.flag("merge");
        let end = object(json!({ "todos": todos, "merge": merge, "toolCallId": job.call.id }));
        memory.todos.apply(&crate::protocol::document::TodoUpdate::of(&end));
        self.output.whole(Kind::TodoUpdate, Map::new(), None, end);
        job.settle(memory.todos.checklist());
    }

    fn perform_plan(&mut self, job: &mut Job, memory: &mut Memory) {
        let plan = match create_plan::read(&job.arguments) {
            Ok(plan) => plan,
            Err(fault) => return self.refuse(job, &fault),
        };
        let start = object(json!({ "title": plan.title, "overview": plan.overview, "format": "markdown" }));
        let mut end = start.clone();
        end.insert("todos".into(), plan.todos.clone().into());
        end.insert("toolCallId".into(), job.call.id.clone().into());
        memory.todos.apply(&crate::protocol::document::TodoUpdate::of(&object(
            json!({ "todos": plan.todos, "merge": false }),
        )));
        self.output.whole(Kind::Plan, start, Some(&plan.content), end);
        self.has_user_the_word = true;
        job.settle("The user sees the plan. Nothing is to be done until they answer: they may change it, have it built, or ask for \
             another one.");
    }

    fn perform_ask(&mut self, job: &mut Job) {
        let form = match ask::read(&job.arguments) {
            Ok(form) => form,
            Err(fault) => return self.refuse(job, &fault),
        };
        let lead = form.title.clone();
        let metadata = object(json!({
            "kind": QuestionKind::Question,
            "questions": form.questions(),
            "toolCallId": job.call.id,
        }));
        job.stage = Stage::Asking;
        self.ask_user(&lead, metadata, Purpose::Form { job: job.id, form });
        let asker = self.setup.asker;
        if asker.is_attended() {
            return;
        }
        let Some(question) = self.questions.pop() else { return };
        if asker == Asker::Later {
            // The document ends without an outcome: the next message brings it.
            let end = Event::DocumentEnd {
                document: question.document,
                final_content: Some(question.lead.into()),
                metadata: question.metadata,
            };
            self.output.say(vec![end]);
            self.has_user_the_word = true;
            job.settle(LATER);
        } else {
            let dealt = unanswered(&question.document, Dealt::Skipped);
            self.close(question, &dealt);
            job.settle(SKIPPED);
        }
    }

    fn perform_mode(&mut self, job: &mut Job) {
        let target = match switch_mode::read(&job.arguments) {
            Ok(target) => target,
            Err(fault) => return self.refuse(job, &fault),
        };
        if target == self.mode {
            let outcome = Outcome {
                text: format!("The mode is {target} already."),
                data: json!({ "mode": target }),
                ..Outcome::default()
            };
            return self.called(job, outcome, 0);
        }
        if !self.setup.asker.is_attended() {
            let fault = Fault::new("TOOL_REJECTED", "nobody is there to agree to another mode")
                .hint(format!("Go on in {} mode.", self.mode));
            return self.refuse(job, &fault);
        }
        // It decides about single calls, and the mode decides about all that follow.
        if self.setup.asker == Asker::Program {
            let fault = Fault::new(
                "TOOL_REJECTED",
                "a program decides approvals here, and only a person can agree to another mode",
            )
            .hint(format!("Go on in {} mode.", self.mode));
            return self.refuse(job, &fault);
        }
        let lead = gist(job.arguments.text("explanation").unwrap_or_default());
        let metadata = object(json!({
            "kind": QuestionKind::Approval,
            "toolCallId": job.call.id,
            "subject": {
                "type": Kind::ToolCall,
                "content": null,
                "metadata": { "toolName": "switch_mode", "arguments": job.arguments.0 },
            },
            "questions": [{
                "id": "approval",
                "text": format!("Switch to {target} mode?"),
                "allowFreeText": true,
                "options": [
                    { "id": "allow_once", "label": format!("Change to {target} mode") },
                    { "id": "reject_once", "label": format!("Stay in {} mode", self.mode) },
                ],
            }],
        }));
        job.stage = Stage::Asking;
        self.ask_user(&lead, metadata, Purpose::Mode { job: job.id });
        self.output
            .effects
            .extend(self.questions.last().map(|it| Effect::Expire(it.document.clone())));
    }

    /// Asks whether to go on, or ends where nobody is there to say so.
    pub(super) fn ask_to_go_on(&mut self, because: &str, memory: &mut Memory) {
        if !self.setup.asker.is_attended() {
            let details = match self.setup.asker {
                Asker::Nobody => "`sheaf -p --continue 'go on'` goes on from here",
                Asker::Here | Asker::Program | Asker::Live | Asker::Later => "send a message to let it go on",
            };
            self.output
                .error("MAX_TURNS", "agent", because.trim_end_matches('.'), details);
            return self.end(Status::Completed, FinishReason::MaxTurns, memory);
        }
        let metadata = object(json!({
            "kind": QuestionKind::Question,
            "questions": [{
                "id": "go_on",
                "text": "Go on?",
                "allowFreeText": true,
                "options": [{ "id": "yes", "label": "Go on" }, { "id": "no", "label": "Stop here" }],
            }],
        }));
        self.phase = Phase::Leave;
        self.ask_user(because, metadata, Purpose::GoOn);
    }

    /// Asks the user to bring the fault about while it is watched, or to say that it is gone.
    pub(super) fn ask_to_reproduce(&mut self, marks: &str) {
        let metadata = object(json!({
            "kind": QuestionKind::Question,
            "questions": [{
                "id": "reproduce",
                "text": "Reproduce the fault now. What happened?",
                "allowFreeText": true,
                "options": [
                    { "id": "reproduced", "label": "It happened: read what was logged" },
                    { "id": "gone", "label": "It is gone: remove the instrumentation" },
                    { "id": "leave", "label": "Stop here and leave it in" },
                ],
            }],
        }));
        self.phase = Phase::Leave;
        let lead = format!("The fault is being watched: instrumentation is at {marks}.");
        let marks = marks.to_owned();
        self.ask_user(&lead, metadata, Purpose::Reproduce { marks });
    }

    /// Tells the model what the user saw; without a word from the user the answer ends, and the marks that are left are
    /// reported.
    fn reproduced(&mut self, marks: &str, chosen: Option<&str>, words: Option<String>, memory: &mut Memory) {
        let told = match chosen {
            Some("reproduced") => {
                Some("The user has reproduced the fault. Read what was logged, and go on.".to_owned())
            }
            Some("gone") => Some(format!(
                "The user says that the fault is gone. Remove the marks at {marks} now."
            )),
            _ => None,
        };
        let told: Vec<String> = told
            .into_iter()
            .chain(words.filter(|_| chosen != Some("leave")))
            .collect();
        if told.is_empty() && self.steering.is_empty() {
            return self.leave_marks(marks, memory);
        }
        if !told.is_empty() {
            memory.user(vec![Told::Text(told.join("\n"))]);
        }
        self.ask_model(memory);
    }

    /// Takes the user's answer to an open question. A question that is not open any more gives a notice.
    pub(super) fn answer(&mut self, dealt: &ClarificationResponse, memory: &mut Memory) {
        let Some(at) = self.questions.iter().position(|it| it.document == dealt.document_id) else {
            let text = "the question is not open any more: the answer was left out".to_owned();
            return self
                .output
                .notice(crate::protocol::Severity::Warning, "no-question", text);
        };
        let question = self.questions.remove(at);
        let chosen = dealt.answers.iter().flat_map(|it| it.selected_option_ids.iter());
        let chosen: Vec<&str> = chosen.map(String::as_str).collect();
        let words = dealt
            .answers
            .iter()
            .find_map(|it| it.free_text.clone())
            .or_else(|| dealt.reason.clone());
        let words = words.filter(|it| !it.trim().is_empty());
        let is_yes = dealt.outcome == Dealt::Answered
            && chosen
                .first()
                .is_some_and(|it| it.starts_with("allow_") || *it == "yes");
        match &question.purpose {
            Purpose::Approve {
                job,
                always,
                session,
                change,
                has_hunks,
            } => {
                let (job, always, session) = (*job, always.clone(), session.clone());
                let (change, has_hunks) = (*change, *has_hunks);
                // Who chooses hunks says no to the whole and yes to a part: whoever knows nothing of hunks hears the no.
                let hunks = dealt.answers.iter().flat_map(|it| it.hunks.iter().cloned());
                let hunks: Vec<HunkAnswer> = hunks
                    .filter(|_| has_hunks && dealt.outcome == Dealt::Answered)
                    .collect();
                let said = if !hunks.is_empty() {
                    Some((change, ChangeAnswer::Hunks(hunks)))
                } else if !is_yes && self.is_picked(job) {
                    // Who has chosen hunks of one file leaves another out: what was chosen is to be made.
                    Some((change, ChangeAnswer::LeftOut(words.clone())))
                } else {
                    None
                };
                self.close(question, dealt);
                if !is_yes && said.is_none() {
                    self.close_approvals(job, Some(NOT_ALONE));
                    let reason = words.map_or_else(String::new, |it| format!("; reason: {it}"));
                    let fault = Fault::new("TOOL_REJECTED", format!("the user rejected this{reason}"))
                        .hint("Do not try the same thing in another way. Go on without it, or ask.");
                    return self.with_job(job, Stage::Asking, memory, |running, job, _| {
                        running.reject(job, &fault);
                    });
                }
                if chosen.contains(&"allow_always") {
                    memory.policy.rules.allow_for_session(&always);
                    self.output.effects.push(Effect::Store(always));
                } else if chosen.contains(&"allow_session") {
                    memory.policy.rules.allow_for_session(&session);
                }
                let is_open = self.questions.iter().any(|it| it.purpose.job() == Some(job));
                self.with_job(job, Stage::Asking, memory, |_, job, _| {
                    job.said.extend(said);
                    if !is_open {
                        job.stage = Stage::Ready;
                    }
                });
                self.judge_again(memory);
            }
            Purpose::Form { job, form } => {
                let job = *job;
                let text = match dealt.outcome {
                    Dealt::Answered => form.answered(&dealt.answers),
                    _ => words.map_or_else(|| SKIPPED.to_owned(), |it| format!("{SKIPPED}\nThe user says: {it}")),
                };
                self.close(question, dealt);
                self.with_job(job, Stage::Asking, memory, |_, job, _| {
                    job.settle(text);
                });
            }
            Purpose::Server { number } => {
                let number = *number;
                self.close(question, dealt);
                self.output.effects.push(Effect::ServerAnswered {
                    number,
                    response: dealt.clone(),
                });
            }
            Purpose::Mode { job } => {
                let job = *job;
                self.close(question, dealt);
                self.with_job(job, Stage::Asking, memory, |running, job, _| {
                    running.change_mode(job, is_yes, words.as_deref());
                });
            }
            Purpose::Reproduce { marks } => {
                let marks = marks.clone();
                let chosen = chosen.first().map(|it| (*it).to_owned());
                self.close(question, dealt);
                self.reproduced(&marks, chosen.as_deref(), words, memory);
            }
            // Who says something instead wants it to go on, with that.
            Purpose::GoOn if dealt.outcome == Dealt::Skipped && !self.steering.is_empty() => {
                self.close(question, dealt);
                self.guard.reset();
                memory.costs.allowed = memory.costs.dollars;
                self.ask_model(memory);
            }
            Purpose::GoOn => {
                self.close(question, dealt);
                if is_yes {
                    self.guard.reset();
                    memory.costs.allowed = memory.costs.dollars;
                    if let Some(words) = words {
                        memory.user(vec![Told::Text(words)]);
                    }
                    self.ask_model(memory);
                } else {
                    self.end(Status::Completed, FinishReason::MaxTurns, memory);
                }
            }
        }
    }

    /// Returns true if the user has chosen hunks of a call's changes.
    fn is_picked(&self, job: JobId) -> bool {
        match &self.phase {
            Phase::Jobs(batch) => batch.jobs.iter().any(|it| it.id == job && !it.said.is_empty()),
            Phase::Model | Phase::Compaction(_) | Phase::Leave | Phase::Marks | Phase::Over => false,
        }
    }

    /// Closes an open question of words because the user sends a message instead: with the answers that were given to it, else
    /// as skipped. A question about permission stays open.
    pub(super) fn leave_form(&mut self, given: Option<&ClarificationResponse>, memory: &mut Memory) {
        if let Some(given) = given {
            self.answer(given, memory);
        }
        let is_form = |it: &&OpenQuestion| match it.purpose {
            Purpose::Form { .. } | Purpose::Server { .. } | Purpose::GoOn | Purpose::Reproduce { .. } => true,
            Purpose::Approve { .. } | Purpose::Mode { .. } => false,
        };
        let open = self.questions.iter().find(is_form).map(|it| {
            // A server is told a no only if the user says it.
            let outcome = if matches!(it.purpose, Purpose::Server { .. }) {
                Dealt::Cancelled
            } else {
                Dealt::Skipped
            };
            (it.document.clone(), outcome)
        });
        if let Some((document, outcome)) = open {
            self.answer(&unanswered(&document, outcome), memory);
        }
    }

    fn change_mode(&mut self, job: &mut Job, is_yes: bool, words: Option<&str>) {
        let Ok(target) = switch_mode::read(&job.arguments) else {
            return;
        };
        if !is_yes {
            let message = match words {
                Some(NOBODY) => format!("nobody agreed to another mode in time: it stays {}", self.mode),
                Some(words) => format!("the user wants to stay in {} mode; reason: {words}", self.mode),
                None => format!("the user wants to stay in {} mode", self.mode),
            };
            let fault = Fault::new("TOOL_REJECTED", message).hint(format!("Go on in {} mode.", self.mode));
            return self.refuse(job, &fault);
        }
        let mut text = format!("The mode is {target} now.");
        let tools = tool_selection::of_all_modes(&self.setup.settings, &self.setup.tools);
        let tools: Vec<&str> = tools.map(|it| it.name.as_str()).collect();
        let facts = prompt::Facts {
            model: &self.setup.model.name,
            tools: &tools,
            tier: self.setup.tier,
            ..prompt::Facts::default()
        };
        if let Some(reminder) = prompt::reminder(target, Some(self.mode), &facts) {
            text.push('\n');
            text.push_str(&reminder);
        }
        let outcome = Outcome {
            text,
            data: json!({ "mode": target }),
            ..Outcome::default()
        };
        self.called(job, outcome, 0);
        self.enter(target);
    }

    /// Nobody answered for so long that it is a no.
    pub(super) fn expire(&mut self, document: &DocumentId, memory: &mut Memory) {
        if self.questions.iter().any(|it| it.document == *document) {
            let mut dealt = unanswered(document, Dealt::Skipped);
            dealt.reason = Some(NOBODY.to_owned());
            self.answer(&dealt, memory);
        }
    }
}

/// Why a question is closed that nobody dealt with in time.
const NOBODY: &str = "nobody answered";
/// The meaning of a no if one call changes several files.
const TOGETHER: &str = "rejecting one rejects all, unless hunks were chosen before";
/// Why a question is closed when another file of the same call was rejected.
const NOT_ALONE: &str = "another change of the same call was rejected";
const LATER: &str = "The user sees the questions. Their answer is the next message; nothing is to be done until then.";
const SKIPPED: &str = "The user skipped the questions: decide yourself and say what you assumed.";

/// Why the model wants a call: the call's own reason, else the first line of the text before it.
fn purpose(job: &Job, memory: &Memory) -> String {
    let own = ["explanation", "instructions"];
    let own = own
        .into_iter()
        .find_map(|it| job.arguments.text(it).filter(|it| !it.trim().is_empty()));
    let said = memory
        .said_before(&job.call.id)
        .lines()
        .find(|it| !it.trim().is_empty());
    gist(own.or(said).unwrap_or_default())
}

fn unanswered(document: &DocumentId, outcome: Dealt) -> ClarificationResponse {
    ClarificationResponse::new(document.clone(), outcome, Vec::new())
}

/// The report on a proposal, for each of its changes; empty if there is none.
fn checks(job: &Job, changes: &[Change]) -> Vec<Value> {
    let Preview::Done(ProposalReport {
        checked: Some(checked), ..
    }) = &job.prepared.preview
    else {
        return Vec::new();
    };
    let files = changes
        .iter()
        .map(|it| it.to.as_ref().unwrap_or(&it.file).shown.as_str());
    shared(checked.clone(), &files.collect::<Vec<_>>())
}

/// A change as a document without id and sequence. Several places become one, from the first to the last, so that the
/// whole change is in view; `hunks` says them one by one, where they can be chosen so.
fn preview(change: &Change, name: &str, call: &str) -> Value {
    let mut whole = change.clone();
    if let [first, .., last] = change.hunks.as_slice()
        && let Some(old) = before(change)
    {
        let lines: Vec<&str> = old.split_inclusive('\n').collect();
        let line = |at: u64| {
            usize::try_from(at.saturating_sub(1))
                .ok()
                .and_then(|it| lines.get(it))
                .copied()
        };
        let (mut before, mut after) = (String::new(), String::new());
        let mut at = first.start;
        for place in &change.hunks {
            let between: String = (at..place.start).map_while(line).collect();
            before.push_str(&between);
            after.push_str(&between);
            before.push_str(&place.old);
            after.push_str(&place.new);
            at = place.end.saturating_add(1);
        }
        let hunk = tools::Hunk {
            old: before,
            new: after,
            start: first.start,
            end: last.end.max(first.start.saturating_sub(1)),
        };
        whole.hunks = vec![hunk];
    }
    let documents = edits(&whole, name, call, &Applied::Pending);
    let (_, content, mut metadata) = documents.into_iter().next().unwrap_or_default();
    if let Some(hunks) = choices(change) {
        metadata.insert("hunks".into(), hunks);
    }
    json!({ "type": Kind::FileEdit, "content": content, "metadata": metadata })
}
