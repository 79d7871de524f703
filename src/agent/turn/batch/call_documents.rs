//! What is shown of a call: its document, its output while it runs, its changes, its end.

use serde_json::{Map, Value, json};

use super::{
    super::{CheckReport, Effect, Fault, JobId, MadeChange, Memory, Phase, Preview, Running},
    Job, OpenCall, Stage,
    documents::{Edit, command_metadata, edit_start, edits, failure, parts, shared, why_not},
};
use crate::{
    agent::writer::document_end,
    extensions::hooks::patched_files,
    protocol::{
        Address, Applied, CommandState, Event, Kind, Operation,
        document::{CHECKED, unchecked},
    },
    text::figure::count,
    tools::{Change, Outcome, Work, object},
};

impl Running {
    /// Opens the document of a call.
    pub fn show(&mut self, job: JobId, kind: Kind, metadata: Map<String, Value>) {
        let mut events = Vec::new();
        let document = self.output.writer.begin(kind.clone(), metadata.clone(), &mut events);
        self.output.say(events);
        let shown = OpenCall {
            document,
            kind,
            metadata,
            output: String::new(),
        };
        self.calls.shown.insert(job, shown);
    }

    /// Opens the document of a call with its arguments.
    pub fn show_call(&mut self, job: &Job) {
        self.calls.count += 1;
        let metadata = object(json!({ "toolName": job.name(), "toolCallId": job.call.id }));
        self.show(job.id, Kind::ToolCall, metadata);
        self.calls.places.push((job.call.id.clone(), self.place()));
        let Some(shown) = self.calls.shown.get_mut(&job.id) else {
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
        self.output.say(events);
    }

    /// The address of the newest document.
    pub fn place(&self) -> Address {
        Address {
            turn: self.setup.turn,
            number: self.output.writer.count(),
        }
    }

    /// Takes what a call says while it runs: a command's output, or how far another call is, as lines of JSON.
    pub fn says(&mut self, id: JobId, text: &str) {
        let Some(shown) = self.calls.shown.get(&id) else {
            return;
        };
        if shown.kind == Kind::TerminalCommand {
            self.printed(id, text);
            return;
        }
        let last = text.lines().rev().find_map(|it| serde_json::from_str(it).ok());
        let Some(step) = last.filter(Value::is_object) else {
            return;
        };
        let event = Event::MetadataDelta {
            document: shown.document.clone(),
            metadata: Map::from_iter([("progress".to_owned(), step)]),
            append: Vec::new(),
        };
        self.output.say(vec![event]);
    }

    /// Appends a command's output to its document, up to 1 MiB.
    fn printed(&mut self, id: JobId, text: &str) {
        let Some(shown) = self.calls.shown.get_mut(&id) else {
            return;
        };
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
        self.output.say(vec![event]);
    }

    /// Takes the result of a call that has run, `took_ms` milliseconds after it began.
    pub fn ran(&mut self, id: JobId, result: Result<Outcome, Fault>, took_ms: u64, memory: &mut Memory) {
        self.with_job(id, Stage::Running, memory, |running, job, _| {
            let tool = job.tool.clone();
            match (tool.as_ref().map(|it| &it.work), result) {
                (Some(Work::Change(_)), Ok(outcome)) => running.made(job, &outcome),
                (Some(Work::Command { .. }), Ok(outcome)) => running.ended(job, outcome, took_ms),
                (Some(Work::Call { .. } | Work::Turn(_)) | None, Ok(outcome)) => {
                    running.called(job, outcome, took_ms);
                }
                (_, Err(fault)) => running.refuse(job, &fault),
            }
        });
    }

    /// Takes the result of a call that succeeded: ends its document (shown first if it is not) and gives the model its text and
    /// images. `took_ms`: duration in milliseconds.
    pub fn called(&mut self, job: &mut Job, outcome: Outcome, took_ms: u64) {
        if !self.calls.shown.contains_key(&job.id) {
            self.show_call(job);
        }
        let result = json!({ "status": "success", "data": outcome.data });
        self.end_call(job.id, result, Some(took_ms), outcome.is_truncated);
        job.settle_with(outcome.text, false, outcome.images);
    }

    /// Ends the document of a call with its result; without an open document nothing happens.
    pub fn end_call(&mut self, job: JobId, result: Value, took_ms: Option<u64>, is_truncated: bool) {
        let Some(mut shown) = self.calls.shown.remove(&job) else {
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
            document_end(shown.document, shown.metadata),
        ];
        self.output.say(events);
    }

    /// A command has ended, or goes on in the background.
    pub fn ended(&mut self, job: &mut Job, outcome: Outcome, took_ms: u64) {
        if let Some(mut shown) = self.calls.shown.remove(&job.id) {
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
            let end = document_end(shown.document, shown.metadata);
            self.output.say(vec![end]);
        }
        job.settle_with(outcome.text, false, outcome.images);
    }

    /// Ends the open document of a command that was stopped. Returns its output so far; `None` if there is none.
    pub fn stop_command(&mut self, job: JobId) -> Option<String> {
        let OpenCall {
            document,
            mut metadata,
            output,
            ..
        } = self.calls.shown.remove(&job)?;
        metadata.extend(object(
            json!({ "exitCode": null, "output": output, "state": CommandState::Cancelled }),
        ));
        self.output.say(vec![document_end(document, metadata)]);
        Some(output)
    }

    /// The document of a command that did not run.
    fn show_unrun(&mut self, job: &Job, state: CommandState, why: Map<String, Value>) {
        let start = command_metadata(job);
        let mut end = start.clone();
        end.extend(object(
            json!({ "exitCode": null, "output": "", "duration_ms": 0, "state": state }),
        ));
        end.extend(why);
        self.output.whole(Kind::TerminalCommand, start, None, end);
    }

    /// A change has been made: a document for each place. Its text is added to the result; with data, the last document has them,
    /// and the change is looked at when the step is over.
    pub fn made(&mut self, job: &mut Job, outcome: &Outcome) {
        let Some(proposal) = job.prepared.proposal.take() else {
            job.settle("Nothing changed.");
            return;
        };
        let mut documents: Vec<Edit> = if job.picked.is_empty() {
            let all = proposal.changes.iter();
            all.flat_map(|it| edits(it, &job.name(), &job.call.id, &Applied::Applied))
                .collect()
        } else {
            let all = job.picked.iter();
            all.flat_map(|it| parts(it, &job.name(), &job.call.id)).collect()
        };
        // The result is the call's: it stands once, on the last part that was made.
        let made = documents
            .iter()
            .rposition(|it| it.2.get("applied").and_then(Value::as_str) == Some("applied"));
        let last = made.or_else(|| documents.len().checked_sub(1));
        let more = outcome.data.as_object().cloned().unwrap_or_default();
        let is_checked = more.contains_key(CHECKED);
        if let Some((_, _, end)) = last.and_then(|it| documents.get_mut(it)) {
            end.insert("result".into(), json!({ "status": "success", "data": proposal.data }));
            end.extend(more);
        }
        for (at, (start, content, end)) in documents.into_iter().enumerate() {
            let path = end.get("newFilePath").or(end.get("filePath")).and_then(Value::as_str);
            let file = path.unwrap_or_default().to_owned();
            let document = self.output.whole(Kind::FileEdit, start, content.as_deref(), end);
            if let Some(document) = document.filter(|_| is_checked && last == Some(at)) {
                let job = job.id;
                self.calls.made.push(MadeChange { job, document, file });
            }
        }
        let text = if outcome.text.is_empty() {
            proposal.text
        } else {
            format!("{}\n\n{}", proposal.text, outcome.text)
        };
        job.settle(text);
    }

    /// All calls of the step are done: has its changes looked at, unless there is none or they have been. Returns true if that is
    /// waited for.
    pub fn is_checking(&mut self) -> bool {
        if self.calls.made.is_empty() {
            return false;
        }
        if !std::mem::replace(&mut self.calls.is_checking, true) {
            let jobs = self.calls.made.iter().map(|it| it.job);
            self.output.effects.push(Effect::Check(jobs.collect()));
        }
        true
    }

    /// Adds what checkers and language servers say of the step to the result of its last change, which stands whatever they say,
    /// and to the documents: each has the problems of its file, and the last one all the others.
    pub fn checked(&mut self, report: CheckReport, memory: &mut Memory) {
        if !std::mem::take(&mut self.calls.is_checking) {
            return;
        }
        let Some(mut batch) = self.take_batch() else { return };
        let made = std::mem::take(&mut self.calls.made);
        let last = made.last().and_then(|it| batch.job(it.job)?.result.as_mut());
        if let Some(result) = last.filter(|_| !report.text.is_empty()) {
            result.text.push_str("\n\n");
            result.text.push_str(&report.text);
        }
        self.phase = Phase::Jobs(batch);
        self.say_checks(made, report.checked);
        self.advance(memory);
    }

    /// Nobody waits for the check of the step's changes any more.
    pub fn leave_unchecked(&mut self) {
        self.calls.is_checking = false;
        let made = std::mem::take(&mut self.calls.made);
        self.say_checks(made, Some(unchecked(&["it was stopped before the check ended"])));
    }

    fn say_checks(&mut self, made: Vec<MadeChange>, checked: Option<Value>) {
        let files: Vec<&str> = made.iter().map(|it| it.file.as_str()).collect();
        let checks = shared(checked.unwrap_or_else(|| unchecked(&[])), &files);
        let updates = made
            .into_iter()
            .zip(checks)
            .map(|(made, checked)| Event::DocumentUpdate {
                document: made.document,
                metadata: Map::from_iter([(CHECKED.to_owned(), checked)]),
            });
        self.output.say(updates.collect());
    }

    /// Documents of changes that were not made, with the reason; the last one has what was found in them.
    fn show_unmade(
        &mut self,
        job: &Job,
        changes: &[Change],
        applied: &Applied,
        why: &Map<String, Value>,
        checked: Option<Value>,
    ) {
        let all = changes.iter();
        let documents: Vec<Edit> = all
            .flat_map(|it| edits(it, &job.name(), &job.call.id, applied))
            .collect();
        let last = documents.len().saturating_sub(1);
        for (at, (start, content, mut end)) in documents.into_iter().enumerate() {
            end.extend(why.clone());
            end.extend(
                checked
                    .clone()
                    .filter(|_| at == last)
                    .map(|it| (CHECKED.to_owned(), it)),
            );
            self.output.whole(Kind::FileEdit, start, content.as_deref(), end);
        }
    }

    /// The change is not made, nor is the user asked about it: it would bring errors, and the model is to mend them.
    pub fn send_back(&mut self, job: &mut Job) {
        let Some(proposal) = job.prepared.proposal.take() else {
            return;
        };
        let Preview::Done(report) = std::mem::take(&mut job.prepared.preview) else {
            return;
        };
        let message = format!(
            "sent back to the model: it would bring {}",
            count(report.errors, "error", "errors")
        );
        let why = failure(&Fault::new("EDIT_BRINGS_ERRORS", message));
        self.show_unmade(job, &proposal.changes, &Applied::Failed, &why, report.checked);
        let message = format!(
            "the change was not made, because it would bring errors\n{}",
            report.text
        );
        job.fail(Fault::new("EDIT_BRINGS_ERRORS", message).hint(SENT_BACK).text());
    }

    /// The user or a rule said no: the document of what was not done says so.
    pub fn reject(&mut self, job: &mut Job, fault: &Fault) {
        let proposal = job.prepared.proposal.take();
        let tool = job.tool.clone();
        let work = tool.as_ref().map(|it| &it.work);
        match (work, proposal) {
            (Some(Work::Change(_)), Some(proposal)) => {
                self.show_unmade(job, &proposal.changes, &Applied::Rejected, &why_not(job, fault), None);
                let mut text = fault.text();
                if let Preview::Done(report) = &job.prepared.preview
                    && !report.text.is_empty()
                {
                    text = format!(
                        "{text}\n\nIt would have brought these, and the user has seen them:\n{}",
                        report.text
                    );
                }
                job.fail(text);
            }
            (Some(Work::Command { .. }), _) => {
                self.show_unrun(job, CommandState::Rejected, why_not(job, fault));
                job.fail(fault.text());
            }
            (Some(Work::Call { .. } | Work::Change(_) | Work::Turn(_)) | None, _) => {
                if !self.calls.shown.contains_key(&job.id) && !matches!(work, Some(Work::Change(_))) {
                    self.show_call(job);
                    if let Some(shown) = self.calls.shown.get_mut(&job.id) {
                        shown.metadata.insert("state".into(), "rejected".into());
                        shown.metadata.extend(why_not(job, fault));
                    }
                }
                self.refuse(job, fault);
            }
        }
    }

    /// The call gave no result: its document says why, and the model is told.
    pub fn refuse(&mut self, job: &mut Job, fault: &Fault) {
        let text = fault.text();
        let tool = job.tool.clone();
        match tool.as_ref().map(|it| &it.work) {
            Some(Work::Change(_)) => {
                let path = job.arguments.text("file_path").or(job.arguments.text("target_file"));
                let path = path.or(job.arguments.text("target_notebook"));
                let path = path
                    .or_else(|| patched_files(job.arguments.text("input")?).next())
                    .unwrap_or_default();
                let proposal = job.prepared.proposal.take();
                match &proposal {
                    Some(proposal) => self.show_unmade(job, &proposal.changes, &Applied::Failed, &failure(fault), None),
                    None => {
                        let start = edit_start(path, &Operation::Edit, &job.name(), &job.call.id);
                        let mut end = start.clone();
                        end.insert("diff".into(), Value::Null);
                        end.insert("applied".into(), Applied::Failed.as_str().into());
                        end.extend(failure(fault));
                        // What was to be changed stands nowhere else.
                        end.insert("arguments".into(), job.arguments.0.clone().into());
                        self.output.whole(Kind::FileEdit, start, None, end);
                    }
                }
                let details = fault.next.clone().unwrap_or_default();
                self.output.error(fault.code, &job.name(), &fault.message, &details);
            }
            Some(Work::Command { .. }) => {
                if self.stop_command(job.id).is_none() {
                    self.show_unrun(job, CommandState::Cancelled, failure(fault));
                }
                let details = fault.next.clone().unwrap_or_default();
                self.output.error(fault.code, &job.name(), &fault.message, &details);
            }
            Some(Work::Call { .. } | Work::Turn(_)) | None => {
                if !self.calls.shown.contains_key(&job.id) {
                    self.show_call(job);
                }
                let result = json!({ "status": "error", "data": text });
                self.end_call(job.id, result, None, false);
            }
        }
        job.fail(text);
    }
}

/// The next step for a model whose change was sent back.
const SENT_BACK: &str = "Make it without them. Where other changes belong to it, make all of them in one message. If the errors \
                         cannot be avoided, make the same call again: the user then sees it with them.";

/// As much of a command's output travels live; all of it is in its log.
const LIVE_BYTES: usize = 1 << 20;
