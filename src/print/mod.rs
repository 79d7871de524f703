//! Prints an answer without a screen (`sheaf run`): as text or events while it streams, or as one object at its end.
//!
//! Standard output gets the answer and nothing else; errors go to standard error. Both take sanitized text only, so
//! that a model cannot send escape sequences to the terminal.

mod approver;
mod call;
mod dialogue;
mod json;
mod stream;
mod text;

use std::{
    collections::HashSet,
    io::{self, Write},
    path::Path,
    sync::Arc,
    time::Duration,
};

use futures::future::{BoxFuture, FutureExt as _, OptionFuture};
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, Receiver};

use self::{approver::Decision, dialogue::Dialogue, stream::CursorStream, text::TextPrinter};
use crate::{
    link::Link,
    protocol::{
        ANSWER_DROPPED, ClarificationResponse, Command, Document, DocumentId, Entry, Event, FinishReason, Kind,
        KindGroup, Message, Mode, Outcome, Position, Progress, Response, ResponseChange, Severity, Status, Submit,
        Turn, View, codec::record,
    },
    sandbox::{Commands, Tier},
    text::Sanitized,
    transcript::{DocumentIndex, Exchange, ExchangeChange, Transcript, is_approval},
};

/// Longest pause before a retry where the settings are not known, in milliseconds.
const RETRY_WAIT_MS: u64 = 3 * 60_000;

/// Time that a cancelled turn has to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum length of a progress line, in characters.
const PROGRESS_CHARACTERS: usize = 100;

/// Output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The answer's text, as it streams.
    #[default]
    Text,
    /// One object with the answer's text, after a successful answer; in the format of Cursor's command line.
    Json,
    /// JSON lines of messages, tool calls and text, as they happen; in the format of Cursor's command line.
    StreamJson,
    /// The response object, at the end.
    Documents,
    /// One JSON line per event, as it happens.
    Events,
}

/// Options of [`run`].
#[derive(Default)]
pub struct PrintOptions {
    pub format: Format,
    /// With [`Format::StreamJson`]: text is printed in pieces as it streams.
    pub is_partial: bool,
    /// With [`Format::StreamJson`]: thinking is printed.
    pub has_thinking: bool,
    /// With [`Format::Text`]: tool calls and retries are reported on standard error.
    pub has_progress: bool,
    pub session: SessionInfo,
    /// Mode of the messages of `input`, if there is no other.
    pub mode: Mode,
    /// Requires the answer to be one JSON value of this form, and prints nothing else.
    pub schema: Option<AnswerSchema>,
    /// True if commands run on this machine and the user did not turn the sandbox off.
    pub wants_sandbox: bool,
    /// Messages and answers from standard input, for a run with several turns.
    pub input: Option<Receiver<Input>>,
    /// Program that decides approvals.
    pub approver: Option<Approver>,
    /// Longest pause before a retry (`net.retry_for`).
    pub retry_for: Option<Duration>,
    /// Cost of all turns, in dollars, after which no further one begins.
    pub budget: Option<f64>,
}

/// Returns the value in a text, or the reason why it does not fit the schema.
type ParseAnswer = Box<dyn Fn(&str) -> Result<Value, String>>;

/// Required form of an answer.
pub struct AnswerSchema {
    pub parse: ParseAnswer,
    /// Number of times that the model may be asked for a better answer.
    pub retries: u32,
}

impl From<Format> for PrintOptions {
    fn from(format: Format) -> Self {
        Self {
            format,
            ..Self::default()
        }
    }
}

pub use approver::Approver;
pub use dialogue::Input;
pub use json::harmless;
pub use stream::SessionInfo;

/// Signal that ends the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    Interrupt,
    HangUp,
    Terminate,
}

/// Result of a run, for the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// The answer ended well.
    Answered,
    /// It failed, or its output could not be written.
    Failed,
    /// An action was refused because it needed an approval, or the answer is a question.
    Refused,
    /// A command was refused because there is no sandbox.
    NoSandbox,
    /// A line of standard input could not be read.
    WrongInput,
    /// A signal ended it.
    Stopped(StopSignal),
}

/// Standard output and standard error.
pub struct Outputs<'a> {
    pub out: &'a mut dyn Write,
    pub err: &'a mut dyn Write,
}

impl Outputs<'_> {
    fn answer(&mut self, text: &Sanitized) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Prints a line to standard error. Errors of that are ignored: there is nowhere to report them.
    fn say(&mut self, word: &str, text: &str) {
        let mut line = Sanitized::new(&format!("{word}: {}", text.trim_end())).into_string();
        line = line.replace('\n', "\n  ");
        line.push('\n');
        let _ = self.err.write_all(line.as_bytes()).and_then(|()| self.err.flush());
    }
}

/// Sends `submit` and prints the answer to it; then those to the messages of `options.input`. Without both, prints
/// everything until the link's log ends.
///
/// A first stop signal cancels the turn; a second one, or 2 s without an end, ends the run. `now_ms` is the
/// clock, in milliseconds since the Unix epoch.
pub async fn run(
    link: &dyn Link,
    submit: Option<Submit>,
    mut options: PrintOptions,
    outputs: Outputs<'_>,
    stops: &mut mpsc::Receiver<StopSignal>,
    now_ms: fn() -> u64,
) -> RunOutcome {
    let mut follower = link.log().follow_closely(Position(0));
    let mut batch = Vec::new();
    let mut transcript = Transcript::default();
    follower.take(&mut batch);
    let input = options.input.take();
    let retry_wait_ms = options
        .retry_for
        .map_or(RETRY_WAIT_MS, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
    let answers_one = submit.is_some() || input.is_some();
    // Events before the message belong to previous answers; of a recording everything is printed.
    if answers_one {
        transcript.apply_all(&batch);
        batch.clear();
    }
    let mode = submit.as_ref().map_or(options.mode, |it| it.mode);
    let mut dialogue = Dialogue::new(input, mode, transcript.exchanges.len(), options.budget);
    let mut printer = Printer::new(transcript, options, outputs, answers_one, link.about().is_replay);
    printer.questions.is_heard = dialogue.hears();
    printer.print_init(link.about().model.as_deref());
    if let Some(submit) = submit {
        link.send(dialogue.submit(submit.message, printer.first));
    }
    let mut stopped = None;
    let mut last = None;
    let stop_deadline = tokio::time::sleep(Duration::MAX);
    tokio::pin!(stop_deadline);
    loop {
        let commands = printer.take(&batch, now_ms, retry_wait_ms);
        batch.clear();
        for command in commands {
            link.send(command);
        }
        if printer.is_broken {
            break;
        }
        let exchanges = printer.transcript.exchanges.len();
        if answers_one && printer.is_over() && dialogue.reported < exchanges {
            if let Some(message) = printer.ask_again().filter(|_| stopped.is_none()) {
                link.send(dialogue.submit(Message::user(message), exchanges));
            } else if dialogue.is_open_ended && stopped.is_none() {
                last = Some(printer.end_turn());
                dialogue.end_turn(exchanges, printer.last_cost());
            } else {
                break;
            }
        }
        if dialogue.is_open_ended && stopped.is_none() {
            if dialogue.is_over(exchanges) {
                break;
            }
            if let Some(why) = dialogue.spent() {
                printer.outputs.say("error", &why);
                last = Some(RunOutcome::Failed);
                break;
            }
            if let Some(command) = dialogue.next_turn(exchanges) {
                link.send(command);
            }
        }
        let is_asking = printer.transcript.open_question().is_some();
        let approval = OptionFuture::from(printer.questions.approval.as_mut());
        tokio::select! {
            more = follower.next(&mut batch) => if !more && batch.is_empty() {
                break;
            },
            Some(decided) = approval => {
                let (turn, document, decision) = decided;
                if let Some(command) = printer.decided(turn, &document, &decision) {
                    link.send(command);
                }
            }
            input = dialogue.next(is_asking) => match input {
                Some(Input::Message { message, waits }) => {
                    if let Some(command) = dialogue.message(message, waits, link.about().hears, exchanges) {
                        link.send(command);
                    }
                }
                Some(Input::Answer(response)) => {
                    if let Some(command) = printer.answer(response) {
                        link.send(command);
                    }
                }
                Some(Input::Cancel) => {
                    dialogue.clear();
                    link.send(Command::Cancel);
                }
                Some(Input::Wrong(why)) => {
                    printer.outputs.say("error", &why);
                    link.send(Command::Cancel);
                    last = Some(RunOutcome::WrongInput);
                    break;
                }
                None => printer.questions.is_heard = false,
            },
            Some(stop) = stops.recv() => {
                // The second signal ends the run at once.
                if stopped.replace(stop).is_some() {
                    break;
                }
                link.send(Command::Cancel);
                stop_deadline.as_mut().reset(tokio::time::Instant::now() + STOP_TIMEOUT);
            }
            () = &mut stop_deadline => break,
        }
    }
    let ending = match (stopped, last) {
        (Some(stop), _) => RunOutcome::Stopped(stop),
        (None, Some(last)) => last,
        (None, None) => printer.ending(),
    };
    if !dialogue.is_open_ended {
        printer.finish(ending);
    }
    if printer.is_broken && ending == RunOutcome::Answered {
        return RunOutcome::Failed;
    }
    ending
}

/// State of a run: the conversation so far, and how much of it has been printed.
struct Printer<'a> {
    transcript: Transcript,
    format: Format,
    outputs: Outputs<'a>,
    text: TextPrinter,
    stream: CursorStream,
    progress: Option<ProgressState>,
    structured: StructuredAnswer,
    /// Index of the first exchange of this run.
    first: usize,
    /// Index of the exchange that is being printed.
    at: usize,
    questions: Questions,
    /// True if standard output could not be written.
    is_broken: bool,
    /// Set when the run was given up and the reason has been printed.
    failure: Option<Status>,
}

/// Refused questions and permissions of the run.
struct Questions {
    /// True while questions can be answered from standard input.
    is_heard: bool,
    approver: Option<Approver>,
    /// The decision of the program that is being waited for.
    approval: Option<BoxFuture<'static, (Turn, DocumentId, Decision)>>,
    /// Questions that were printed or given to the program.
    asked: HashSet<(Turn, DocumentId)>,
    /// True if questions are for us to answer; those of a recording are not.
    is_asked: bool,
    /// True for a recording, which takes answers whatever it says.
    is_replay: bool,
    wants_sandbox: bool,
    no_sandbox: bool,
    refused: bool,
}

/// Required form of the answer, and the answer once it has that form.
struct StructuredAnswer {
    schema: Option<AnswerSchema>,
    value: Option<Value>,
}

/// Calls that have been reported on standard error.
#[derive(Default)]
struct ProgressState {
    told: HashSet<DocumentId>,
    is_thinking: bool,
}

impl<'a> Printer<'a> {
    fn new(
        transcript: Transcript,
        options: PrintOptions,
        outputs: Outputs<'a>,
        is_asked: bool,
        is_replay: bool,
    ) -> Self {
        let first = transcript.exchanges.len();
        Self {
            first,
            at: first,
            transcript,
            format: options.format,
            outputs,
            text: TextPrinter::new(options.approver.is_some()),
            stream: CursorStream::new(options.session, options.is_partial, options.has_thinking),
            progress: options.has_progress.then(ProgressState::default),
            structured: StructuredAnswer {
                schema: options.schema,
                value: None,
            },
            questions: Questions {
                is_heard: false,
                approver: options.approver,
                approval: None,
                asked: HashSet::new(),
                is_asked,
                is_replay,
                wants_sandbox: options.wants_sandbox,
                no_sandbox: false,
                refused: false,
            },
            is_broken: false,
            failure: None,
        }
    }

    /// Prints the first line of [`Format::StreamJson`].
    fn print_init(&mut self, model: Option<&str>) {
        if self.format == Format::StreamJson {
            let line = json::line(&self.stream.init(model));
            self.is_broken |= self.outputs.answer(&line).is_err();
        }
    }

    /// Takes new entries, prints them, and returns the commands to send. A longer pause before a retry than
    /// `retry_wait_ms` counts as a failure: nobody can decide to wait.
    fn take(&mut self, batch: &[Arc<Entry>], now_ms: fn() -> u64, retry_wait_ms: u64) -> Vec<Command> {
        let mut commands = Vec::new();
        for entry in batch {
            // Entries are printed in order: printed text stays when the conversation branches.
            if matches!(entry.event, Event::Branch(_)) {
                continue;
            }
            let moved = self.transcript.apply(entry);
            self.print_said(entry, moved);
            self.print_entry(entry, moved);
            match moved.change {
                ResponseChange::Ended(document) => {
                    let place = DocumentIndex {
                        exchange: moved.exchange,
                        document,
                    };
                    self.report_error(place);
                    self.report_refusal(place);
                }
                ResponseChange::Notice => self.report_notice(&entry.event),
                ResponseChange::Nothing
                | ResponseChange::Response
                | ResponseChange::Thinking
                | ResponseChange::Acted(_)
                | ResponseChange::Opened(_)
                | ResponseChange::Grew(_)
                | ResponseChange::Updated(_)
                | ResponseChange::Finished => {}
            }
            if let Event::Progress(Progress::Retrying { at_ms, because, .. }) = &entry.event
                && *at_ms > now_ms().saturating_add(retry_wait_ms)
            {
                let wait = at_ms.saturating_sub(now_ms()) / 1000;
                self.outputs.say(
                    "error",
                    &format!("{because}\nthe next try would come in {wait} s, which is too long to wait"),
                );
                self.failure = Some(Status::Error);
                commands.push(Command::Cancel);
            }
        }
        commands.extend(self.decline());
        self.print();
        commands
    }

    /// Skips an open question and refuses an open approval: nobody can answer.
    ///
    /// Only while the response runs and can take it. An answer that has to be the next message is not given: nobody wrote it.
    fn decline(&mut self) -> Option<Command> {
        let place = self
            .transcript
            .open_question()
            .filter(|it| self.questions.is_asked && it.exchange >= self.first)?;
        let exchange = self.transcript.exchanges.get(place.exchange)?;
        let document = self.transcript.get(place).filter(|it| it.is_open())?;
        let number = place.document as u64 + 1;
        let is_new = self.questions.asked.insert((exchange.turn, document.id.clone()));
        if is_new && self.format == Format::StreamJson && self.questions.is_answerable(document) {
            let line = self.stream.question(exchange.turn, document, number);
            self.is_broken |= self.outputs.answer(&json::line(&line)).is_err();
        }
        if let Some(approver) = self.questions.approver.as_ref().filter(|_| is_for_program(document)) {
            if is_new {
                let (turn, id) = (exchange.turn, document.id.clone());
                let asked = approver.clone().ask(document.clone(), number);
                self.questions.approval = Some(asked.map(move |it| (turn, id, it)).boxed());
            }
            return None;
        }
        if self.questions.is_heard {
            return None;
        }
        let hears = exchange
            .response
            .origin
            .capabilities
            .iter()
            .any(|it| it == "live_input");
        if !hears && !self.questions.is_replay {
            return None;
        }
        let reason = "nobody can be asked: sheaf runs without a screen";
        if is_approval(document) && !self.questions.refused {
            self.questions.refused = true;
            let View::Clarification(it) = document.view() else {
                return None;
            };
            let what = it.questions.first().map_or(it.content, |it| it.text).to_owned();
            self.outputs.say("refused", &what);
        }
        let document = self.transcript.get(place)?;
        Some(Command::Answer {
            turn: exchange.turn,
            response: ClarificationResponse {
                document_id: document.id.clone(),
                outcome: Outcome::Skipped,
                answers: Vec::new(),
                reason: Some(reason.to_owned()),
            },
        })
    }

    /// Returns the answer to an approval that the program decided, and reports what it refused.
    fn decided(&mut self, turn: Turn, id: &DocumentId, decision: &Decision) -> Option<Command> {
        self.questions.approval = None;
        let mut exchanges = self.transcript.exchanges.iter();
        let document = exchanges.find(|it| it.turn == turn)?.response.get(id)?.clone();
        let what = document
            .clarification()
            .and_then(|it| it.questions.first().map(|it| it.text.to_owned()))
            .unwrap_or_default();
        let why = match decision {
            Decision::Allow => None,
            Decision::Deny(message) => Some(format!("the program that decides approvals said no: {message}")),
            Decision::Failed(why) => {
                self.questions.refused = true;
                Some(format!("the program that decides approvals gave no answer: {why}"))
            }
        };
        if let Some(why) = why {
            let subject = document.metadata.get("subject").and_then(|it| it.get("metadata"));
            let subject = subject.map(subject_of).unwrap_or_default();
            let why = why.trim_end_matches([':', ' ']);
            self.outputs.say("refused", &format!("{what} {subject}\n{why}"));
        }
        Some(Command::Answer {
            turn,
            response: approver::response(&document, decision),
        })
    }

    /// Returns the command for an answer from standard input. `None`, and a message, if there is no such open question.
    fn answer(&mut self, response: ClarificationResponse) -> Option<Command> {
        let exchange = self.transcript.exchanges.last()?;
        let is_open = exchange.response.get(&response.document_id).is_some_and(|it| {
            self.transcript
                .is_open_question(self.transcript.exchanges.len() - 1, it)
        });
        if !is_open {
            let id = &response.document_id;
            self.outputs.say(
                "warning",
                &format!("`{id}` is not an open question; the answer is left out"),
            );
            return None;
        }
        Some(Command::Answer {
            turn: exchange.turn,
            response,
        })
    }

    /// Returns the cost of the last turn in dollars; 0 if it is not known.
    fn last_cost(&self) -> f64 {
        let last = self.transcript.exchanges.last();
        let cost = last.and_then(|it| it.response.extra_usage.get("costUsd"));
        cost.and_then(Value::as_f64).unwrap_or_default()
    }

    /// Prints the end of a turn of several, and prepares the next one.
    fn end_turn(&mut self) -> RunOutcome {
        let ending = self.ending();
        let reason = self
            .transcript
            .exchanges
            .last()
            .and_then(|it| it.response.ending.as_ref());
        let is_cancelled = reason.is_some_and(|it| it.finish_reason == FinishReason::Cancelled);
        if !is_cancelled {
            self.finish(ending);
        }
        if (is_cancelled || ending == RunOutcome::Failed) && self.format == Format::StreamJson {
            let response = self.transcript.exchanges.last().map(|it| &it.response);
            let line = response.map(|it| json::line(&self.stream.failed(it)));
            self.is_broken |= line.is_some_and(|it| self.outputs.answer(&it).is_err());
        }
        self.stream.end_turn();
        self.first = self.transcript.exchanges.len();
        self.failure = None;
        self.questions.refused = false;
        self.questions.no_sandbox = false;
        ending
    }

    /// Prints text exactly as the model wrote it, if the link says it.
    fn print_said(&mut self, entry: &Entry, moved: ExchangeChange) {
        if self.format != Format::Text || self.structured.schema.is_some() {
            return;
        }
        if let Event::Said { delta } = &entry.event {
            let text = self.text.say(delta);
            self.is_broken |= self.outputs.answer(&text).is_err();
        } else if matches!(&entry.event, Event::Notice(it) if it.code == ANSWER_DROPPED) {
            let text = self.text.break_off();
            self.is_broken |= self.outputs.answer(&text).is_err();
        } else if let ResponseChange::Opened(nth) = moved.change {
            let place = DocumentIndex {
                exchange: moved.exchange,
                document: nth,
            };
            // Code and citations are parts of the text.
            let opened = self.transcript.get(place);
            if opened.is_some_and(|it| it.kind.row().group != KindGroup::Text) {
                self.text.pause();
            }
        }
    }

    /// Prints the lines that one entry produces.
    fn print_entry(&mut self, entry: &Entry, moved: ExchangeChange) {
        match self.format {
            Format::Text => self.progress(entry, moved),
            Format::Events => {
                if !matches!(entry.event, Event::Progress(_) | Event::Told(_) | Event::Said { .. }) {
                    let (event, data) = record::parts(&entry.event);
                    let line = json::line(&json!({ "event": event, "data": data }));
                    self.is_broken |= self.outputs.answer(&line).is_err();
                }
            }
            Format::Json | Format::StreamJson => {
                let ExchangeChange { exchange, change } = moved;
                let lines = self
                    .stream
                    .take(&entry.event, change, exchange, entry.at_ms, &self.transcript);
                if self.format == Format::StreamJson {
                    for line in &lines {
                        self.is_broken |= self.outputs.answer(&json::line(line)).is_err();
                    }
                }
            }
            Format::Documents => {}
        }
    }

    /// Reports on standard error what is being done, for a user who waits.
    fn progress(&mut self, entry: &Entry, moved: ExchangeChange) {
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

    /// Prints the parts that wait for more than one entry.
    fn print(&mut self) {
        while let Some(exchange) = self.transcript.exchanges.get(self.at) {
            let is_running = exchange.response.is_running();
            let has_schema = self.structured.schema.is_some();
            match self.format {
                Format::Text if !has_schema => {
                    let (outputs, is_broken) = (&mut self.outputs, &mut self.is_broken);
                    self.text
                        .next(&exchange.response, &mut |it| *is_broken |= outputs.answer(it).is_err());
                    if !is_running {
                        let end = self.text.end();
                        self.is_broken |= self.outputs.answer(&end).is_err();
                    }
                }
                Format::Documents if !is_running && !has_schema => {
                    let text = json::pretty(&exchange.response.to_json());
                    self.is_broken |= self.outputs.answer(&text).is_err();
                }
                // Printed entry by entry.
                Format::Text | Format::Documents | Format::Json | Format::StreamJson | Format::Events => {}
            }
            if is_running {
                return;
            }
            self.at += 1;
        }
    }

    /// Prints an unfinished answer as far as it came, and the last line of a successful run.
    fn finish(&mut self, ending: RunOutcome) {
        if self.is_broken {
            return;
        }
        let last = self.transcript.exchanges.last();
        let text = match (self.format, self.transcript.exchanges.get(self.at)) {
            (Format::Text, _) if self.structured.schema.is_some() => match &self.structured.value {
                Some(value) => json::pretty(value),
                None => return,
            },
            (Format::Documents, None) if self.structured.schema.is_some() => match last {
                Some(it) => json::pretty(&it.response.to_json()),
                None => return,
            },
            (Format::Text, Some(_)) => self.text.end(),
            (Format::Documents, Some(exchange)) => json::pretty(&exchange.response.to_json()),
            (Format::Json | Format::StreamJson, _) => match (ending, last) {
                // Readers take a `result` line for success, whatever it contains.
                (RunOutcome::Answered | RunOutcome::Refused | RunOutcome::NoSandbox, Some(it)) => {
                    let took_ms = it.last_ms.saturating_sub(it.at_ms);
                    json::line(
                        &self
                            .stream
                            .result(&it.response, took_ms, self.structured.value.as_ref()),
                    )
                }
                (
                    RunOutcome::Answered
                    | RunOutcome::Refused
                    | RunOutcome::NoSandbox
                    | RunOutcome::Failed
                    | RunOutcome::WrongInput
                    | RunOutcome::Stopped(_),
                    _,
                ) => {
                    return;
                }
            },
            (Format::Text | Format::Documents | Format::Events, _) => return,
        };
        self.is_broken |= self.outputs.answer(&text).is_err();
    }

    /// Parses the answer if it must have a form. Returns the message that asks for a better one, while retries are
    /// left.
    fn ask_again(&mut self) -> Option<String> {
        let schema = self.structured.schema.as_mut()?;
        let exchange = self.transcript.exchanges.last()?;
        let reason = exchange.response.ending.as_ref().map(|it| &it.finish_reason);
        if exchange.response.status() == Status::Error || reason != Some(&FinishReason::Stop) {
            return None;
        }
        let mut why = "not JSON".to_owned();
        for text in candidates(&exchange.response) {
            match (schema.parse)(&text) {
                Ok(value) => {
                    self.structured.value = Some(value);
                    return None;
                }
                Err(problem) => why = problem,
            }
        }
        if schema.retries == 0 {
            self.outputs
                .say("error", &format!("the answer does not fit the schema\n{why}"));
            self.failure = Some(Status::Error);
            return None;
        }
        schema.retries -= 1;
        self.first = self.transcript.exchanges.len();
        Some(format!(
            "Your answer does not fit the JSON Schema: {why}\nAnswer again, with the JSON value alone."
        ))
    }

    fn is_over(&self) -> bool {
        self.transcript.exchanges.len() > self.first && !self.transcript.is_running()
    }

    fn ending(&mut self) -> RunOutcome {
        if self.is_broken || self.failure.is_some() {
            return RunOutcome::Failed;
        }
        let ours = self.transcript.exchanges.get(self.first..).unwrap_or_default();
        let is_failed = |it: &&Exchange| it.response.status() == Status::Error || ends_badly(&it.response);
        let failed: Vec<_> = ours.iter().filter(is_failed).collect();
        let Some(failed) = failed.last() else {
            if let Some(question) = self
                .transcript
                .open_question()
                .filter(|it| self.questions.is_asked && it.exchange >= self.first)
            {
                let asked = self.transcript.get(question).and_then(Document::clarification);
                let asked = asked
                    .as_ref()
                    .and_then(|it| it.questions.first())
                    .map_or("", |it| it.text);
                let hint = "nobody can be asked; `sheaf -p --continue ANSWER` answers";
                self.outputs.say("question", &format!("{asked}\n{hint}"));
                return RunOutcome::Refused;
            }
            return match (ours.is_empty(), self.questions.no_sandbox, self.questions.refused) {
                (true, _, _) => RunOutcome::Failed,
                (false, true, _) => RunOutcome::NoSandbox,
                (false, false, true) => RunOutcome::Refused,
                (false, false, false) => RunOutcome::Answered,
            };
        };
        if !has_error(failed) {
            let reason = failed.response.ending.as_ref().map(|it| it.finish_reason.clone());
            let why = match reason {
                Some(FinishReason::Interrupted) => "the answer was cut off before its end",
                Some(FinishReason::Length) => "the answer reached the limit of tokens",
                Some(FinishReason::Refusal) => "the model declined to answer",
                Some(_) | None => "the answer ended with an error",
            };
            self.outputs.say("error", why);
        }
        RunOutcome::Failed
    }

    fn report_error(&mut self, place: DocumentIndex) {
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
    fn report_refusal(&mut self, place: DocumentIndex) {
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
            [] if document.metadata.contains_key("protected") => "only a person at the screen can allow it".to_owned(),
            [] => "--force allows it".to_owned(),
            rules => format!("{} allows it", rules.join(" ")),
        };
        let why = reason.lines().next().unwrap_or_default();
        // A refusal by the user's own rule is reported but does not count: no permission was missing.
        self.questions.refused |= !is_forbidden;
        self.outputs.say("refused", &format!("{what}\n{why}\n{hint}"));
    }

    fn report_notice(&mut self, event: &Event) {
        if let Event::Notice(notice) = event {
            // The store of a running conversation reports these, also when they come after the answer.
            if self.questions.is_asked && notice.code.starts_with("session-") {
                return;
            }
            match notice.severity {
                Severity::Info => {}
                Severity::Warning => self.outputs.say("warning", &notice.message),
                Severity::Error => self.outputs.say("error", &notice.message),
            }
        }
    }
}

/// Returns the parts of an answer that may be the required value: its code blocks, the last first, its last text, all
/// text.
fn candidates(response: &Response) -> Vec<String> {
    let documents = || response.documents.iter();
    let mut found: Vec<String> = documents()
        .rev()
        .filter(|it| it.kind == Kind::CodeBlock)
        .map(|it| it.text().to_owned())
        .collect();
    let text: Vec<&str> = documents()
        .filter(|it| it.kind == Kind::Text)
        .map(Document::text)
        .collect();
    found.extend(text.last().map(|it| (*it).to_owned()));
    found.push(text.join("\n\n"));
    found.retain(|it| !it.trim().is_empty());
    found
}

impl Questions {
    /// Returns true if somebody may answer the question: a program, or who writes standard input.
    fn is_answerable(&self, document: &Document) -> bool {
        self.is_heard || (self.approver.is_some() && is_for_program(document))
    }
}

/// Returns true for an approval that a program may decide: of a single call, and not of another mode.
fn is_for_program(document: &Document) -> bool {
    let subject = document.metadata.get("subject").and_then(|it| it.get("metadata"));
    let tool = subject.and_then(|it| it.get("toolName")).and_then(Value::as_str);
    is_approval(document) && tool != Some("switch_mode")
}

/// Returns what an approval is about, for a line: the command, or the path, or the arguments.
fn subject_of(metadata: &Value) -> String {
    let text = |name: &str| metadata.get(name).and_then(Value::as_str).map(str::to_owned);
    text("command")
        .or_else(|| text("filePath"))
        .or_else(|| metadata.get("arguments").map(Value::to_string))
        .unwrap_or_default()
}

/// Returns true if an answer ended, but not as one that a program could use.
fn ends_badly(response: &Response) -> bool {
    match response.ending.as_ref().map(|it| &it.finish_reason) {
        Some(
            FinishReason::MaxTurns
            | FinishReason::Length
            | FinishReason::Refusal
            | FinishReason::Error
            | FinishReason::Interrupted,
        ) => true,
        // It waits for a person because something failed.
        Some(FinishReason::AwaitingInput) => response.documents.last().is_some_and(|it| it.kind == Kind::Error),
        Some(FinishReason::Stop | FinishReason::Cancelled | FinishReason::Other(_)) | None => false,
    }
}

fn has_error(exchange: &Exchange) -> bool {
    exchange.response.documents.iter().any(|it| it.kind == Kind::Error)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::{
        journal::Log,
        link::{
            About,
            local::{Local, Request},
            replay::{Audience, Recording, Replay, Speed},
        },
        protocol::Message,
    };

    fn submit() -> Submit {
        Submit {
            message: Message::user("x"),
            mode: Mode::Agent,
            model: None,
        }
    }

    struct Printed {
        ending: RunOutcome,
        out: String,
        err: String,
    }

    async fn print(link: &dyn Link, submit: Option<Submit>, format: Format, stop: Option<StopSignal>) -> Printed {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let (sender, mut stops) = mpsc::channel(2);
        if let Some(stop) = stop {
            sender.send(stop).await.expect("there is room");
        }
        let outputs = Outputs {
            out: &mut out,
            err: &mut err,
        };
        let run = run(link, submit, format.into(), outputs, &mut stops, || 1_000_000);
        let ending = tokio::time::timeout(Duration::from_secs(20), run)
            .await
            .expect("it ends");
        Printed {
            ending,
            out: String::from_utf8(out).expect("it is text"),
            err: String::from_utf8(err).expect("it is text"),
        }
    }

    fn played(stream: &str, audience: Audience) -> Replay {
        let recording = Recording::read("test", stream.as_bytes()).expect("it can be played");
        Replay::start(&recording, Speed::AtOnce, audience)
    }

    const APPROVAL: &str = "event: document_start\ndata: {\"id\":\"q\",\"type\":\"clarification\",\"metadata\":{\"kind\":\"approval\",\
        \"questions\":[{\"id\":\"approval\",\"text\":\"Allow `git push`?\",\"options\":[\"yes\",\"no\"]}]}}\n\n\
        event: document_end\ndata: {\"documentId\":\"q\",\"metadata\":{\"kind\":\"approval\",\"outcome\":\"answered\",\"answers\":[],\
        \"questions\":[{\"id\":\"approval\",\"text\":\"Allow `git push`?\",\"options\":[\"yes\",\"no\"]}]}}\n\n\
        event: document_start\ndata: {\"id\":\"t\",\"type\":\"text\",\"content\":\"then\"}\n\n\
        event: document_end\ndata: {\"documentId\":\"t\"}\n\nevent: done\ndata: {}\n\n";

    /// Standard output and standard error at one terminal.
    #[derive(Clone, Default)]
    struct Terminal(Arc<Mutex<Vec<u8>>>);

    impl Write for Terminal {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("nobody panics").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn what_is_done_is_told_between_what_is_said_before_and_after() {
        let stream = "event: document_start\ndata: {\"id\":\"a\",\"type\":\"text\",\"content\":\"I look.\"}\n\n\
            event: document_end\ndata: {\"documentId\":\"a\"}\n\n\
            event: document_start\ndata: {\"id\":\"b\",\"type\":\"tool_call\",\"metadata\":{\"toolName\":\"read_file\",\
            \"arguments\":{\"target_file\":\"a.rs\"},\"result\":{\"status\":\"success\",\"data\":\"x\"}}}\n\n\
            event: document_end\ndata: {\"documentId\":\"b\"}\n\n\
            event: document_start\ndata: {\"id\":\"c\",\"type\":\"text\",\"content\":\"Done.\"}\n\n\
            event: document_end\ndata: {\"documentId\":\"c\"}\n\nevent: done\ndata: {}\n\n";
        let terminal = Terminal::default();
        let (mut out, mut err) = (terminal.clone(), terminal.clone());
        let outputs = Outputs {
            out: &mut out,
            err: &mut err,
        };
        let options = PrintOptions {
            has_progress: true,
            ..PrintOptions::default()
        };
        let (_stop, mut stops) = mpsc::channel(1);
        let link = played(stream, Audience::Absent);
        assert_eq!(
            run(&link, None, options, outputs, &mut stops, || 0).await,
            RunOutcome::Answered
        );
        let shown = terminal.0.lock().expect("nobody panics").clone();
        let shown = String::from_utf8(shown).expect("it is text");
        let lines: Vec<_> = shown.lines().filter(|it| !it.is_empty()).collect();
        assert_eq!(lines, ["I look.", "· read a.rs", "Done."]);
    }

    #[tokio::test]
    async fn a_recorded_question_is_not_put_to_us() {
        let printed = print(&played(APPROVAL, Audience::Absent), None, Format::Text, None).await;
        assert_eq!((printed.ending, printed.err.as_str()), (RunOutcome::Answered, ""));
        assert!(printed.out.ends_with("then\n"), "{}", printed.out);
    }

    #[tokio::test]
    async fn an_approval_is_refused_when_nobody_is_there() {
        let printed = print(
            &played(APPROVAL, Audience::Asking),
            Some(submit()),
            Format::Documents,
            None,
        )
        .await;
        assert_eq!(printed.ending, RunOutcome::Refused);
        assert_eq!(printed.err, "refused: Allow `git push`?\n");
        let answer: serde_json::Value = serde_json::from_str(&printed.out).expect("one object");
        assert_eq!(answer["documents"][0]["metadata"]["outcome"], "skipped");
        assert_eq!(answer["documents"][1]["content"], "then");
    }

    #[tokio::test]
    async fn a_plain_question_is_skipped_and_is_no_failure() {
        let question = APPROVAL.replace("\"kind\":\"approval\",", "");
        let printed = print(&played(&question, Audience::Asking), Some(submit()), Format::Text, None).await;
        assert_eq!((printed.ending, printed.err.as_str()), (RunOutcome::Answered, ""));
        assert!(printed.out.ends_with("\n\nthen\n"), "{}", printed.out);
    }

    #[tokio::test]
    async fn an_answer_that_breaks_off_is_printed_and_is_a_failure() {
        let cut = "event: document_start\ndata: {\"id\":\"t\",\"type\":\"text\",\"content\":\"half\"}\n\n";
        let printed = print(&played(cut, Audience::Absent), None, Format::Text, None).await;
        assert_eq!((printed.ending, printed.out.as_str()), (RunOutcome::Failed, "half\n"));
        assert!(printed.err.starts_with("error: "), "{}", printed.err);
    }

    #[tokio::test]
    async fn a_stop_prints_what_came_and_how_it_ended() {
        let recording = Recording::read("test", APPROVAL.as_bytes()).expect("it can be played");
        for (format, says) in [
            (Format::Text, ""),
            (Format::Documents, "\"finishReason\": \"cancelled\""),
        ] {
            let link = Replay::start(&recording, Speed::Times(1e-6), Audience::Asking);
            let printed = print(&link, Some(submit()), format, Some(StopSignal::Interrupt)).await;
            assert_eq!(printed.ending, RunOutcome::Stopped(StopSignal::Interrupt));
            assert!(printed.out.contains(says), "{}", printed.out);
        }
    }

    #[tokio::test]
    async fn a_pause_that_is_too_long_is_not_waited_for() {
        let log = Log::new();
        let (link, mut inbox) = Local::new(Arc::clone(&log), About::default());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let commands = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Some(Request::Command(command)) = inbox.recv().await {
                match &command {
                    Command::Submit(submit) | Command::Begin(submit) | Command::Steer(submit) => {
                        log.append(1, Event::UserMessage(submit.message.clone()));
                        log.append(
                            1,
                            Event::Progress(Progress::Retrying {
                                attempt: 1,
                                of: 3,
                                at_ms: 1_000_000 + 200_000,
                                because: "the server wants a pause".to_owned(),
                            }),
                        );
                    }
                    Command::Cancel => {
                        log.append(1, Event::Done(crate::protocol::Done::default()));
                    }
                    Command::Run { .. }
                    | Command::RepeatCall { .. }
                    | Command::Restrict(_)
                    | Command::Background
                    | Command::Compact { .. }
                    | Command::Rename(_)
                    | Command::Answer { .. }
                    | Command::Update { .. }
                    | Command::Restore(_)
                    | Command::SwitchBranch(_)
                    | Command::Record(_)
                    | Command::Next => {}
                }
                commands.lock().expect("nobody panics").push(command);
            }
        });
        let printed = print(&link, Some(submit()), Format::Text, None).await;
        assert_eq!(printed.ending, RunOutcome::Failed);
        assert!(
            printed.err.contains("the server wants a pause") && printed.err.contains("200 s"),
            "{}",
            printed.err
        );
        assert_eq!(seen.lock().expect("nobody panics").last(), Some(&Command::Cancel));
    }

    #[tokio::test]
    async fn what_is_said_of_a_failure_is_clean() {
        let evil = "event: document_start\ndata: {\"id\":\"e\",\"type\":\"error\",\"content\":\"a\\u001b[2Jb\\u009bc\",\
            \"metadata\":{\"errorCode\":\"X\\u0007\",\"details\":\"one\\ntwo\"}}\n\n\
            event: document_end\ndata: {\"documentId\":\"e\"}\n\nevent: done\ndata: {\"status\":\"error\"}\n\n";
        let printed = print(&played(evil, Audience::Absent), None, Format::Text, None).await;
        assert_eq!(printed.ending, RunOutcome::Failed);
        assert_eq!(printed.err, "error: ab (X)\n  one\n  two\n");
    }
}
