//! Prints an answer without a screen (`sheaf run`): as text or events while it streams, or as one object at its end.
//!
//! Standard output gets the answer and nothing else; errors go to standard error. Both take sanitized text only, so
//! that a model cannot send escape sequences to the terminal.

mod approver;
mod call;
mod dialogue;
pub mod json;
mod questions;
mod report;
mod stream;
mod structured;
mod text;

use std::{
    collections::HashSet,
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use futures::future::OptionFuture;
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, Receiver};

use self::{
    dialogue::Dialogue, questions::Questions, report::ProgressState, stream::CursorStream,
    structured::StructuredAnswer, text::TextPrinter,
};
use crate::{
    link::Link,
    os::long_text::LongText,
    protocol::{
        ANSWER_DROPPED, Command, Document, Entry, Event, FinishReason, Kind, KindGroup, Message, Mode, Position,
        Progress, Response, ResponseChange, Status, Submit,
        codec::record,
        long_json::{LongJson, to_long_text},
    },
    text::Sanitized,
    transcript::{DocumentIndex, Exchange, ExchangeChange, Transcript},
};

/// Longest pause before a retry where the settings are not known, in milliseconds.
const RETRY_WAIT_MS: u64 = 3 * 60_000;

/// Time that a cancelled turn has to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Time that a gateway has to end its answer after a question that cannot be answered before that end.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(10);

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
    /// With [`Format::Text`]: a text is printed once it is complete; one that broke off and was asked for again is left out.
    pub is_held: bool,
    pub session: SessionInfo,
    /// Mode of the messages of `input`, if there is no other.
    pub mode: Mode,
    /// Custom mode of all messages.
    pub custom_mode: Option<String>,
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
pub use structured::AnswerSchema;

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

    /// Prints JSON text and a newline.
    fn json(&mut self, text: LongText) -> io::Result<()> {
        json::write(text, &mut |it| self.answer(it))
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
    let mut dialogue = Dialogue::new(
        input,
        (mode, options.custom_mode.take()),
        transcript.exchanges.len(),
        options.budget,
    );
    let mut printer = Printer::new(transcript, options, outputs, answers_one, link.about().is_replay);
    printer.questions.is_heard = dialogue.hears();
    printer.questions.is_afar = answers_one && !link.about().runs;
    printer.questions.may_answer |= dialogue.hears();
    printer.print_init(link.about().model.as_deref());
    if let Some(submit) = submit {
        let message = questions::answering(&printer.transcript, submit.message);
        link.send(dialogue.submit(message, printer.first));
    }
    let mut stopped = None;
    let mut last = None;
    let stop_deadline = tokio::time::sleep(Duration::MAX);
    tokio::pin!(stop_deadline);
    let question_deadline = tokio::time::sleep(Duration::MAX);
    tokio::pin!(question_deadline);
    let mut deaf = None;
    loop {
        let commands = printer.take(&batch, now_ms, retry_wait_ms);
        let question = printer.deaf_question();
        if question != deaf || (question.is_some() && !batch.is_empty()) {
            question_deadline
                .as_mut()
                .reset(tokio::time::Instant::now() + QUESTION_TIMEOUT);
            deaf = question;
        }
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
            while let Some(command) = dialogue.next_joining(exchanges) {
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
                    // Who writes it has seen the question that the last answer ended with.
                    let message = if waits || dialogue.is_busy(exchanges) {
                        message
                    } else {
                        questions::answering(&printer.transcript, message)
                    };
                    if let Some(command) = dialogue.message(message, waits, link.about().hears, exchanges) {
                        link.send(command);
                    }
                }
                Some(Input::Answer(response)) => {
                    if let Some(command) = printer.answer(response) {
                        if !printer.transcript.is_running() {
                            dialogue.expect_turn(exchanges);
                        }
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
            () = &mut question_deadline, if deaf.is_some() => {
                printer.questions.unanswered = deaf;
                link.send(Command::Cancel);
            }
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
            text: TextPrinter::new(options.approver.is_some(), options.is_held),
            stream: CursorStream::new(options.session, options.is_partial, options.has_thinking),
            progress: options.has_progress.then(ProgressState::default),
            structured: StructuredAnswer {
                schema: options.schema,
                value: None,
            },
            questions: Questions {
                is_heard: false,
                may_answer: options.approver.is_some(),
                unanswered: None,
                approver: options.approver,
                approval: None,
                asked: HashSet::new(),
                is_asked,
                is_replay,
                is_afar: false,
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
                ResponseChange::Notice | ResponseChange::Acted(_) => self.report_notice(&entry.event),
                ResponseChange::Updated(_) => self.report_hooks(&entry.event),
                ResponseChange::Nothing
                | ResponseChange::Response
                | ResponseChange::Thinking
                | ResponseChange::Opened(_)
                | ResponseChange::Grew(_)
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

    /// Returns the cost of the last turn in dollars; 0 if it is not known.
    fn last_cost(&self) -> f64 {
        let last = self.transcript.exchanges.last();
        let cost = last.and_then(|it| it.response.extra_usage.get("costUsd"));
        cost.and_then(Value::as_f64).unwrap_or_default()
    }

    /// Prints the end of a turn of several, and prepares the next one.
    fn end_turn(&mut self) -> RunOutcome {
        self.announce_last();
        let ending = self.ending();
        let reason = self
            .transcript
            .exchanges
            .last()
            .and_then(|it| it.response.ending.as_ref());
        let is_cancelled = reason.is_some_and(|it| it.finish_reason == FinishReason::Cancelled);
        // The answer was ended for a question.
        let is_cancelled = is_cancelled && self.questions.unanswered.is_none();
        if !is_cancelled {
            self.finish(ending);
        }
        if (is_cancelled || ending == RunOutcome::Failed) && self.format == Format::StreamJson {
            let response = self.transcript.exchanges.last().map(|it| &it.response);
            let line = response.map(|it| self.stream.failed(it).to_text());
            self.is_broken |= line.is_some_and(|it| self.outputs.json(it).is_err());
        }
        self.stream.end_turn();
        self.first = self.transcript.exchanges.len();
        self.failure = None;
        self.questions.unanswered = None;
        self.questions.refused = false;
        self.questions.no_sandbox = false;
        if is_cancelled { RunOutcome::Failed } else { ending }
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
                let text = self.text.pause();
                self.is_broken |= self.outputs.answer(&text).is_err();
            }
        }
    }

    /// Prints the lines that one entry produces.
    fn print_entry(&mut self, entry: &Entry, moved: ExchangeChange) {
        match self.format {
            Format::Text => self.progress(entry, moved),
            Format::Events => {
                if !matches!(entry.event, Event::Progress(_) | Event::Told(_) | Event::Said { .. }) {
                    self.is_broken |= self.outputs.json(event_line(&entry.event)).is_err();
                }
            }
            Format::Json | Format::StreamJson => {
                let ExchangeChange { exchange, change } = moved;
                let lines = self
                    .stream
                    .take(&entry.event, change, exchange, entry.at_ms, &self.transcript);
                if self.format == Format::StreamJson {
                    for line in &lines {
                        self.is_broken |= self.outputs.json(line.to_text()).is_err();
                    }
                }
            }
            Format::Documents => {}
        }
    }

    /// Prints the parts that wait for more than one entry.
    fn print(&mut self) {
        while let Some(exchange) = self.transcript.exchanges.get(self.at) {
            // Notices before the first message are an exchange that nothing is added to.
            let is_last = self.at + 1 == self.transcript.exchanges.len();
            if !is_last && exchange.message.is_none() && exchange.response.documents.is_empty() {
                self.at += 1;
                continue;
            }
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
                    let text = exchange.response.to_long_json().to_pretty_text();
                    self.is_broken |= self.outputs.json(text).is_err();
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
                Some(value) => LongJson::from(value.clone()).to_pretty_text(),
                None => return,
            },
            (Format::Documents, None) if self.structured.schema.is_some() => match last {
                Some(it) => it.response.to_long_json().to_pretty_text(),
                None => return,
            },
            (Format::Text, Some(_)) => {
                let end = self.text.end();
                self.is_broken |= self.outputs.answer(&end).is_err();
                return;
            }
            (Format::Documents, Some(exchange)) => exchange.response.to_long_json().to_pretty_text(),
            (Format::Json | Format::StreamJson, _) => match (ending, last) {
                // Readers take a `result` line for success, whatever it contains.
                (RunOutcome::Answered | RunOutcome::Refused | RunOutcome::NoSandbox, Some(it)) => {
                    let took_ms = it.last_ms.saturating_sub(it.at_ms);
                    let question = self.waiting_question().and_then(|it| self.transcript.get(it));
                    let value = self.structured.value.as_ref();
                    self.stream.result(&it.response, took_ms, value, question).to_text()
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
        self.is_broken |= self.outputs.json(text).is_err();
    }

    fn is_over(&self) -> bool {
        self.transcript.exchanges.len() > self.first && !self.transcript.is_running()
    }

    /// The question of this run that waits for an answer: it ended the answer, or the answer was ended for it.
    fn waiting_question(&self) -> Option<DocumentIndex> {
        let waiting = || self.transcript.open_question().filter(|_| self.questions.is_asked);
        let question = self.questions.unanswered.or_else(waiting);
        question.filter(|it| it.exchange >= self.first)
    }

    fn ending(&mut self) -> RunOutcome {
        if self.is_broken || self.failure.is_some() {
            return RunOutcome::Failed;
        }
        let ours = self.transcript.exchanges.get(self.first..).unwrap_or_default();
        let is_failed = |it: &&Exchange| it.response.status() == Status::Error || ends_badly(&it.response);
        let failed: Vec<_> = ours.iter().filter(is_failed).collect();
        let Some(failed) = failed.last() else {
            if self.questions.is_afar && ours.iter().any(|it| has_broken_text(&it.response)) {
                let text = "a part of the answer broke off, and nothing came instead of it";
                self.outputs.say("warning", text);
            }
            if let Some(question) = self.waiting_question() {
                let document = self.transcript.get(question);
                let asked = document.and_then(Document::clarification);
                let asked = asked
                    .as_ref()
                    .and_then(|it| it.questions.first())
                    .map_or_else(|| document.map_or("", Document::text), |it| it.text);
                // The next message answers only a question that ended its answer.
                let is_answered_next = self.transcript.open_question() == Some(question)
                    && self
                        .transcript
                        .get(question)
                        .is_some_and(|it| !crate::transcript::is_approval(it));
                let how = if is_answered_next {
                    "`sheaf -p --continue ANSWER` answers"
                } else {
                    "`sheaf --continue` opens the conversation on the screen"
                };
                // Who writes standard input has got it as a line.
                if !self.questions.is_heard {
                    let hint = format!("{asked}\nsheaf cannot ask you here; {how}");
                    self.outputs.say("question", &hint);
                }
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
                Some(FinishReason::MaxTurns) => "the answer reached the limit of requests",
                Some(FinishReason::Refusal) => "the model declined to answer",
                Some(_) | None => "the answer ended with an error",
            };
            self.outputs.say("error", why);
        }
        RunOutcome::Failed
    }
}

/// Formats the line of an event.
fn event_line(event: &Event) -> LongText {
    if let Event::DocumentEnd {
        final_content: Some(content),
        ..
    } = event
        && content.is_stored()
    {
        return to_long_text(event);
    }
    let (event, data) = record::parts(event);
    LongJson::from(json!({ "event": event, "data": data })).to_text()
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

/// Returns true if a text broke off and nothing came instead of it.
fn has_broken_text(response: &Response) -> bool {
    let mut texts = response
        .documents
        .iter()
        .filter(|it| it.kind.row().group == KindGroup::Text);
    texts.any(|it| it.is_incomplete() && !text::is_replaced(response, it))
}

fn has_error(exchange: &Exchange) -> bool {
    exchange.response.documents.iter().any(|it| it.kind == Kind::Error)
}

#[cfg(test)]
mod tests;
