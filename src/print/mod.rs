//! An answer without a screen: as text or events while it comes, or as one object at its end.
//!
//! Standard output gets the answer and nothing else; what went wrong goes to standard error. Both take clean text only,
//! so that a model cannot speak to the terminal behind a `cat`.

mod call;
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

use serde_json::{Value, json};
use tokio::sync::mpsc;

use self::{stream::Stream, text::Text};
use crate::{
    link::Link,
    protocol::{
        Change, ClarificationResponse, Command, Document, DocumentId, Entry, Event, FinishReason, Kind, Message,
        Outcome, Position, Progress, Response, Severity, Status, Submit, View, codec::record,
    },
    sandbox::{Commands, Tier},
    text::Clean,
    transcript::{Exchange, Moved, Place, Transcript, is_approval},
};

/// A peer that asks for a longer pause has refused: nobody is there to decide whether to wait.
const LONGEST_WAIT_MS: u64 = 60_000;

/// How long a stopped turn may take to end.
const STOP_TIME: Duration = Duration::from_secs(2);

/// A line about what is being done is no longer.
const PROGRESS_CHARACTERS: usize = 100;

/// What is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The answer's text, as it comes.
    #[default]
    Text,
    /// One object with the answer's text, at the end of one that went well. Cursor's form.
    Json,
    /// A line for each thing that is said or done, as it comes. Cursor's form.
    StreamJson,
    /// The response object, at the end.
    Documents,
    /// A line for each event, as it comes.
    Events,
}

/// What is printed, and what it says of the run.
#[derive(Default)]
pub struct Options {
    pub format: Format,
    /// In [`Format::StreamJson`]: pieces of text as they come.
    pub is_partial: bool,
    /// In [`Format::StreamJson`]: what the model thinks.
    pub has_thinking: bool,
    /// In [`Format::Text`]: what is done is told beside the answer.
    pub has_progress: bool,
    pub session: Session,
    /// The answer is one JSON value of a certain form, and nothing else is printed of it.
    pub form: Option<Form>,
    /// Commands are run on this machine, and nobody asked for that without a sandbox.
    pub wants_sandbox: bool,
}

type Read = Box<dyn Fn(&str) -> Result<Value, String>>;

/// What an answer has to be.
pub struct Form {
    /// The value that a text is, or what is wrong with it.
    pub read: Read,
    /// How often a better answer may be asked for.
    pub asks: u32,
}

impl From<Format> for Options {
    fn from(format: Format) -> Self {
        Self {
            format,
            ..Self::default()
        }
    }
}

pub use json::harmless;
pub use stream::Session;

/// Somebody outside wants us to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Interrupt,
    Terminate,
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Answered,
    Failed,
    /// Something was not done because nobody was there to allow it.
    Refused,
    /// A command was not run because nothing would have held it.
    NoSandbox,
    Stopped(Stop),
}

/// Where it is printed.
pub struct Outputs<'a> {
    pub out: &'a mut dyn Write,
    pub err: &'a mut dyn Write,
}

impl Outputs<'_> {
    fn answer(&mut self, text: &Clean) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// A line about what went wrong. When it cannot be said, there is nobody to say that to.
    fn say(&mut self, word: &str, text: &str) {
        let mut line = Clean::new(&format!("{word}: {}", text.trim_end())).into_string();
        line = line.replace('\n', "\n  ");
        line.push('\n');
        let _ = self.err.write_all(line.as_bytes()).and_then(|()| self.err.flush());
    }
}

/// Sends `submit` and prints the answer to it; without one, prints what comes until the link's log ends.
///
/// `now_ms` is asked when a peer wants us to wait.
pub async fn run(
    link: &dyn Link,
    submit: Option<Submit>,
    options: Options,
    outputs: Outputs<'_>,
    stops: &mut mpsc::Receiver<Stop>,
    now_ms: fn() -> u64,
) -> Ending {
    let mut follower = link.log().follow_closely(Position(0));
    let mut batch = Vec::new();
    let mut transcript = Transcript::default();
    follower.take(&mut batch);
    let answers_one = submit.is_some();
    // What was there before the message is no part of the answer; of a recording everything is.
    if answers_one {
        transcript.apply_all(&batch);
        batch.clear();
    }
    let mut printer = Printer {
        first: transcript.exchanges.len(),
        transcript,
        format: options.format,
        outputs,
        text: Text::default(),
        stream: Stream::new(options.session, options.is_partial, options.has_thinking),
        progress: options.has_progress.then(Progressing::default),
        form: options.form,
        structured: None,
        at: 0,
        is_asked: answers_one,
        wants_sandbox: options.wants_sandbox,
        no_sandbox: false,
        refused: false,
        is_broken: false,
        failure: None,
    };
    printer.at = printer.first;
    printer.begin(link.about().model.as_deref());
    let mode = submit.as_ref().map(|it| it.mode).unwrap_or_default();
    if let Some(submit) = submit {
        link.send(Command::Submit(submit));
    }
    let mut stopped = None;
    let stop_late = tokio::time::sleep(Duration::MAX);
    tokio::pin!(stop_late);
    loop {
        let commands = printer.take(&batch, now_ms);
        batch.clear();
        for command in commands {
            link.send(command);
        }
        if printer.is_broken {
            break;
        }
        if answers_one && printer.is_over() {
            let Some(message) = printer.ask_again().filter(|_| stopped.is_none()) else {
                break;
            };
            link.send(Command::Submit(Submit {
                message: Message::user(message),
                mode,
                model: None,
            }));
        }
        tokio::select! {
            more = follower.next(&mut batch) => if !more && batch.is_empty() {
                break;
            },
            Some(stop) = stops.recv() => {
                // Who asks twice does not want to wait.
                if stopped.replace(stop).is_some() {
                    break;
                }
                link.send(Command::Cancel);
                stop_late.as_mut().reset(tokio::time::Instant::now() + STOP_TIME);
            }
            () = &mut stop_late => break,
        }
    }
    let ending = match stopped {
        Some(stop) => Ending::Stopped(stop),
        None => printer.ending(),
    };
    printer.finish(ending);
    if printer.is_broken && ending == Ending::Answered {
        return Ending::Failed;
    }
    ending
}

struct Printer<'a> {
    transcript: Transcript,
    format: Format,
    outputs: Outputs<'a>,
    text: Text,
    stream: Stream,
    progress: Option<Progressing>,
    form: Option<Form>,
    /// The answer, where it has a form.
    structured: Option<Value>,
    /// The first exchange that is ours, and the one that is being printed.
    first: usize,
    at: usize,
    /// Questions are put to us. Those of a recording were put to somebody else.
    is_asked: bool,
    wants_sandbox: bool,
    no_sandbox: bool,
    refused: bool,
    /// Nobody reads what we write.
    is_broken: bool,
    /// Why it was given up, said already.
    failure: Option<Status>,
}

/// Which calls have been told on standard error.
#[derive(Default)]
struct Progressing {
    told: HashSet<DocumentId>,
    is_thinking: bool,
}

impl Printer<'_> {
    /// What comes before everything else.
    fn begin(&mut self, model: Option<&str>) {
        if self.format == Format::StreamJson {
            let line = json::line(&self.stream.init(model));
            self.is_broken |= self.outputs.answer(&line).is_err();
        }
    }

    /// Takes what is new, prints what can be, and says what to send.
    fn take(&mut self, batch: &[Arc<Entry>], now_ms: fn() -> u64) -> Vec<Command> {
        let mut commands = Vec::new();
        for entry in batch {
            // What was said is printed in its order: what stands on the paper is not taken back where one went elsewhere.
            if matches!(entry.event, Event::Branch(_)) {
                continue;
            }
            let moved = self.transcript.apply(entry);
            self.tell(entry, moved);
            match moved.change {
                Change::Ended(document) => {
                    let place = Place {
                        exchange: moved.exchange,
                        document,
                    };
                    self.report_error(place);
                    self.report_refusal(place);
                }
                Change::Notice => self.report_notice(&entry.event),
                Change::Nothing
                | Change::Response
                | Change::Thinking
                | Change::Opened(_)
                | Change::Grew(_)
                | Change::Updated(_)
                | Change::Finished => {}
            }
            if let Event::Progress(Progress::Retrying { at_ms, because, .. }) = &entry.event
                && *at_ms > now_ms().saturating_add(LONGEST_WAIT_MS)
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

    /// Nobody is there to be asked: the question is skipped, an approval refused.
    fn decline(&mut self) -> Option<Command> {
        let place = self
            .transcript
            .waiting()
            .filter(|it| self.is_asked && it.exchange >= self.first)?;
        let exchange = self.transcript.exchanges.get(place.exchange)?;
        let document = self.transcript.get(place).filter(|it| it.is_open())?;
        let reason = "nobody is there to be asked: sheaf runs without a screen";
        if is_approval(document) && !self.refused {
            self.refused = true;
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

    /// Prints what one entry is a line of, or some.
    fn tell(&mut self, entry: &Entry, moved: Moved) {
        match self.format {
            Format::Text => self.progress(entry, moved),
            Format::Events => {
                if !matches!(entry.event, Event::Progress(_)) {
                    let (event, data) = record::parts(&entry.event);
                    let line = json::line(&json!({ "event": event, "data": data }));
                    self.is_broken |= self.outputs.answer(&line).is_err();
                }
            }
            Format::Json | Format::StreamJson => {
                let Moved { exchange, change } = moved;
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

    /// What is being done, for who waits at a terminal.
    fn progress(&mut self, entry: &Entry, moved: Moved) {
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
            (_, Change::Opened(nth) | Change::Grew(nth) | Change::Ended(nth)) => {
                progress.is_thinking = false;
                let place = Place {
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
            (_, Change::Finished) => {
                progress.told.clear();
                None
            }
            (_, Change::Nothing | Change::Response | Change::Thinking | Change::Notice | Change::Updated(_)) => None,
        };
        if let Some(line) = line {
            // What was said before it stands before it.
            self.print();
            let line: String = line.split_whitespace().collect::<Vec<_>>().join(" ");
            let cut: String = line.chars().take(PROGRESS_CHARACTERS).collect();
            // Both may go to the same terminal.
            let before = if self.text.is_mid_line() { "\n" } else { "" };
            let text = Clean::new(&format!("{before}· {cut}\n"));
            let _ = self.outputs.err.write_all(text.as_bytes());
        }
    }

    fn print(&mut self) {
        while let Some(exchange) = self.transcript.exchanges.get(self.at) {
            let is_running = exchange.response.is_running();
            let has_form = self.form.is_some();
            match self.format {
                Format::Text if !has_form => {
                    let mut text = self.text.next(&exchange.response);
                    if !is_running {
                        text.push(&self.text.end());
                    }
                    self.is_broken |= self.outputs.answer(&text).is_err();
                }
                Format::Documents if !is_running && !has_form => {
                    let text = json::pretty(&exchange.response.to_json());
                    self.is_broken |= self.outputs.answer(&text).is_err();
                }
                // These are told entry by entry.
                Format::Text | Format::Documents | Format::Json | Format::StreamJson | Format::Events => {}
            }
            if is_running {
                return;
            }
            self.at += 1;
        }
    }

    /// What never ended is printed as far as it came, and what went well gets its last line.
    fn finish(&mut self, ending: Ending) {
        if self.is_broken {
            return;
        }
        let last = self.transcript.exchanges.last();
        let text = match (self.format, self.transcript.exchanges.get(self.at)) {
            (Format::Text, _) if self.form.is_some() => match &self.structured {
                Some(value) => json::pretty(value),
                None => return,
            },
            (Format::Documents, None) if self.form.is_some() => match last {
                Some(it) => json::pretty(&it.response.to_json()),
                None => return,
            },
            (Format::Text, Some(_)) => self.text.end(),
            (Format::Documents, Some(exchange)) => json::pretty(&exchange.response.to_json()),
            (Format::Json | Format::StreamJson, _) => match (ending, last) {
                // Readers take a result for a success, whatever it says.
                (Ending::Answered | Ending::Refused | Ending::NoSandbox, Some(it)) => {
                    let took_ms = it.last_ms.saturating_sub(it.at_ms);
                    json::line(&self.stream.result(&it.response, took_ms, self.structured.as_ref()))
                }
                (Ending::Answered | Ending::Refused | Ending::NoSandbox | Ending::Failed | Ending::Stopped(_), _) => {
                    return;
                }
            },
            (Format::Text | Format::Documents | Format::Events, _) => return,
        };
        self.is_broken |= self.outputs.answer(&text).is_err();
    }

    /// Reads the answer where it has to have a form; what to say to get a better one.
    fn ask_again(&mut self) -> Option<String> {
        let form = self.form.as_mut()?;
        let exchange = self.transcript.exchanges.last()?;
        let reason = exchange.response.ending.as_ref().map(|it| &it.finish_reason);
        if exchange.response.status() == Status::Error || reason != Some(&FinishReason::Stop) {
            return None;
        }
        let mut why = "it is no JSON".to_owned();
        for text in candidates(&exchange.response) {
            match (form.read)(&text) {
                Ok(value) => {
                    self.structured = Some(value);
                    return None;
                }
                Err(problem) => why = problem,
            }
        }
        if form.asks == 0 {
            self.outputs
                .say("error", &format!("the answer does not fit the schema\n{why}"));
            self.failure = Some(Status::Error);
            return None;
        }
        form.asks -= 1;
        self.first = self.transcript.exchanges.len();
        Some(format!(
            "Your answer does not fit the JSON Schema: {why}\nAnswer again, with the JSON value alone."
        ))
    }

    fn is_over(&self) -> bool {
        self.transcript.exchanges.len() > self.first && !self.transcript.is_running()
    }

    fn ending(&mut self) -> Ending {
        if self.is_broken || self.failure.is_some() {
            return Ending::Failed;
        }
        let ours = self.transcript.exchanges.get(self.first..).unwrap_or_default();
        let is_failed = |it: &&Exchange| {
            let reason = it.response.ending.as_ref().map(|it| &it.finish_reason);
            it.response.status() == Status::Error || reason == Some(&FinishReason::MaxTurns)
        };
        let failed: Vec<_> = ours.iter().filter(is_failed).collect();
        let Some(failed) = failed.last() else {
            return match (ours.is_empty(), self.no_sandbox, self.refused) {
                (true, _, _) => Ending::Failed,
                (false, true, _) => Ending::NoSandbox,
                (false, false, true) => Ending::Refused,
                (false, false, false) => Ending::Answered,
            };
        };
        if !has_error(failed) {
            let reason = failed.response.ending.as_ref().map(|it| it.finish_reason.clone());
            let why = match reason {
                Some(FinishReason::Interrupted) => "the answer was cut off before its end",
                Some(_) | None => "the answer ended with an error",
            };
            self.outputs.say("error", why);
        }
        Ending::Failed
    }

    fn report_error(&mut self, place: Place) {
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

    /// What was not done because nobody was there to allow it.
    fn report_refusal(&mut self, place: Place) {
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
        let is_unheld = is_command && self.is_asked && self.wants_sandbox && Commands::tier() == Tier::None;
        let hint = match rules.as_slice() {
            [] if is_forbidden => "no other rule and no --force is stronger than one that denies".to_owned(),
            [] if is_unheld => {
                self.no_sandbox = true;
                "`sheaf sandbox explain` says what is missing here; --sandbox off --force runs it all the same"
                    .to_owned()
            }
            [] if document.metadata.contains_key("protected") => "only a person at the screen can allow it".to_owned(),
            [] => "--force allows it".to_owned(),
            rules => format!("{} allows it", rules.join(" ")),
        };
        let why = reason.lines().next().unwrap_or_default();
        // What the user's own rule forbids is no permission that was missing: it is said, and the run is as good as any.
        self.refused |= !is_forbidden;
        self.outputs.say("refused", &format!("{what}\n{why}\n{hint}"));
    }

    fn report_notice(&mut self, event: &Event) {
        if let Event::Notice(notice) = event {
            match notice.severity {
                Severity::Info => {}
                Severity::Warning => self.outputs.say("warning", &notice.message),
                Severity::Error => self.outputs.say("error", &notice.message),
            }
        }
    }
}

/// What of an answer may be the value that was asked for: its code, the last first, else all of its text.
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
            local::{Letter, Local},
            replay::{Audience, Recording, Replay, Speed},
        },
        protocol::{Message, Mode},
    };

    fn submit() -> Submit {
        Submit {
            message: Message::user("x"),
            mode: Mode::Agent,
            model: None,
        }
    }

    struct Printed {
        ending: Ending,
        out: String,
        err: String,
    }

    async fn print(link: &dyn Link, submit: Option<Submit>, format: Format, stop: Option<Stop>) -> Printed {
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
        let options = Options {
            has_progress: true,
            ..Options::default()
        };
        let (_stop, mut stops) = mpsc::channel(1);
        let link = played(stream, Audience::Absent);
        assert_eq!(
            run(&link, None, options, outputs, &mut stops, || 0).await,
            Ending::Answered
        );
        let shown = terminal.0.lock().expect("nobody panics").clone();
        let shown = String::from_utf8(shown).expect("it is text");
        let lines: Vec<_> = shown.lines().filter(|it| !it.is_empty()).collect();
        assert_eq!(lines, ["I look.", "· read a.rs", "Done."]);
    }

    #[tokio::test]
    async fn a_recorded_question_is_not_put_to_us() {
        let printed = print(&played(APPROVAL, Audience::Absent), None, Format::Text, None).await;
        assert_eq!((printed.ending, printed.err.as_str()), (Ending::Answered, ""));
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
        assert_eq!(printed.ending, Ending::Refused);
        assert_eq!(printed.err, "refused: Allow `git push`?\n");
        let answer: serde_json::Value = serde_json::from_str(&printed.out).expect("one object");
        assert_eq!(answer["documents"][0]["metadata"]["outcome"], "skipped");
        assert_eq!(answer["documents"][1]["content"], "then");
    }

    #[tokio::test]
    async fn a_plain_question_is_skipped_and_is_no_failure() {
        let question = APPROVAL.replace("\"kind\":\"approval\",", "");
        let printed = print(&played(&question, Audience::Asking), Some(submit()), Format::Text, None).await;
        assert_eq!((printed.ending, printed.err.as_str()), (Ending::Answered, ""));
        assert!(printed.out.ends_with("\n\nthen\n"), "{}", printed.out);
    }

    #[tokio::test]
    async fn an_answer_that_breaks_off_is_printed_and_is_a_failure() {
        let cut = "event: document_start\ndata: {\"id\":\"t\",\"type\":\"text\",\"content\":\"half\"}\n\n";
        let printed = print(&played(cut, Audience::Absent), None, Format::Text, None).await;
        assert_eq!((printed.ending, printed.out.as_str()), (Ending::Failed, "half\n"));
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
            let printed = print(&link, Some(submit()), format, Some(Stop::Interrupt)).await;
            assert_eq!(printed.ending, Ending::Stopped(Stop::Interrupt));
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
            while let Some(Letter::Command(command)) = inbox.recv().await {
                match &command {
                    Command::Submit(submit) | Command::Steer(submit) => {
                        log.append(1, Event::UserMessage(submit.message.clone()));
                        log.append(
                            1,
                            Event::Progress(Progress::Retrying {
                                attempt: 1,
                                of: 3,
                                at_ms: 1_000_000 + 90_000,
                                because: "the server wants a pause".to_owned(),
                            }),
                        );
                    }
                    Command::Cancel => {
                        log.append(1, Event::Done(crate::protocol::Done::default()));
                    }
                    Command::Run { .. }
                    | Command::Again { .. }
                    | Command::Compact { .. }
                    | Command::Rename(_)
                    | Command::Answer { .. }
                    | Command::Update { .. }
                    | Command::Restore(_)
                    | Command::GoOn(_)
                    | Command::Next => {}
                }
                commands.lock().expect("nobody panics").push(command);
            }
        });
        let printed = print(&link, Some(submit()), Format::Text, None).await;
        assert_eq!(printed.ending, Ending::Failed);
        assert!(
            printed.err.contains("the server wants a pause") && printed.err.contains("90 s"),
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
        assert_eq!(printed.ending, Ending::Failed);
        assert_eq!(printed.err, "error: ab (X)\n  one\n  two\n");
    }
}
