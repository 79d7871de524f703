//! `--plain`: the conversation as labelled lines, for screen readers and programs that only read on.
//!
//! It has the state, the actions and the event loop of the screen. Lines are read from standard input as the terminal gives
//! them; only text and line breaks are written: no colours, no movement of the cursor. A document is read out when it has
//! ended, so that nothing is read twice.

mod lines;
mod speaker;

use std::{collections::HashSet, io::Write, pin::Pin, sync::Arc, time::Duration};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tokio::{
    signal::unix::SignalKind,
    sync::mpsc,
    time::{Instant, Sleep, sleep},
};

use self::speaker::Speaker;
use super::{
    app::{App, Effect, TOO_EARLY_MS},
    bars::trust,
    effect_runner::{Carried, EffectRunner, history},
    event_loop::{self, ENDING, Error, EventLoop, FrontEnd, Signal},
    msg::Msg,
    setup::{Setup, app, now_ms},
    spoken,
    terminal::Input,
    widgets::{
        Form, Outcome as FormOutcome, command_asked_for,
        transcript::{Item, address},
    },
};
use crate::{
    protocol::{
        ClarificationResponse, Document, DocumentId, Event, Outcome as Dealt, Position, QuestionAnswer, TrustAsked,
        Turn, View, document::Clarification,
    },
    t,
    text::{NoColours, Sanitized},
    transcript::{DocumentIndex, Transcript, is_approval},
};

/// Time between two lines that say an answer is still being worked at, while nothing ends.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// Rows that a page is laid out for: it is read from its beginning to its end.
const PAGE_ROWS: u16 = 2000;

/// Output for lines, and the kind of input they answer to.
pub struct Console {
    pub out: Box<dyn Write + Send>,
    /// A person types: their lines are taken at any time. Lines of a file or a pipe wait until there is nothing to wait for.
    pub is_typed: bool,
    pub columns: u16,
}

/// Talks in lines until the user leaves or the input ends; returns the exit code.
pub async fn run(mut setup: Setup, console: Console) -> Result<u8, Error> {
    let (tell, signals) = mpsc::unbounded_channel();
    let kinds = [(SignalKind::interrupt(), Signal::Interrupt)];
    event_loop::listen(kinds.into_iter().chain(ENDING), move |it| tell.send(it).is_ok())?;
    // The gutter is not written: a document gets the terminal's width.
    let size = (console.columns.clamp(40, 500) + 9, PAGE_ROWS);
    setup.settings.color = false;
    setup.settings.links = false;
    "off".clone_into(&mut setup.settings.ui.images);
    let mut app = app(&setup, size, None, Arc::new(NoColours));
    app.conversation.reads_whole = true;
    app.conversation.transcript = Transcript::default();
    let (inbox, inbox_here) = mpsc::unbounded_channel();
    event_loop::forward(setup.switch, inbox.clone());
    let mut reader = ScreenReader {
        runner: EffectRunner {
            inbox,
            paths: setup.paths,
            keeps: setup.keeps,
            library: setup.library,
        },
        input: LineInput {
            lines: lines::read(console.is_typed),
            paste: lines::Paste::default(),
            is_taken: false,
            has_ended: false,
        },
        speaker: Speaker::new(console.out, console.is_typed),
        signals,
        progress: Progress::default(),
        question: AskedQuestion::default(),
        overlays: OverlaysRead::default(),
        life: Box::pin(sleep(SIGN_OF_LIFE)),
        is_working: false,
        exit: None,
    };
    reader.begin(&mut app);
    history::recall(&reader.runner, Some(app.conversation.workspace.folder.clone()), None);
    history::uses(&reader.runner);
    reader.runner.carry_out(Effect::Commands, &app);
    let mut follower = event_loop::watched(&setup.link, true);
    let mut before = Vec::new();
    if !setup.link.about().is_replay {
        before = setup.link.log().after(Position(0));
    }
    if let Some(last) = before.last() {
        follower = setup.link.log().follow(last.position);
    }
    let mut events = EventLoop::over(app, reader, inbox_here, follower);
    if !before.is_empty() {
        events.handle(Msg::Entries(before)).await;
        events.front.pass_over(&events.app);
    }
    if let Some(text) = setup.prompt {
        events.app.questions.submitted_ms = Some(now_ms());
        events.submit(text).await;
    }
    Ok(Box::pin(events.run()).await)
}

/// Reads the conversation out line by line, and takes lines as input.
struct ScreenReader {
    runner: EffectRunner,
    input: LineInput,
    speaker: Speaker,
    signals: mpsc::UnboundedReceiver<Signal>,
    progress: Progress,
    question: AskedQuestion,
    overlays: OverlaysRead,
    life: Pin<Box<Sleep>>,
    /// An answer is being made, and a line says so from time to time.
    is_working: bool,
    exit: Option<u8>,
}

/// The lines of standard input.
struct LineInput {
    lines: mpsc::Receiver<lines::InputLine>,
    paste: lines::Paste,
    /// The next line may be taken now.
    is_taken: bool,
    has_ended: bool,
}

/// The part of the conversation that was read out.
#[derive(Default)]
struct Progress {
    /// Items of the exchanges from `from` on that were read out.
    said: HashSet<Item>,
    from: usize,
    was_idle: bool,
    /// The conversation continues on another branch.
    is_other_branch: bool,
    /// Another conversation has taken the place of this one.
    is_other: bool,
    /// The question of trust that was read out last.
    trust: Option<TrustAsked>,
}

/// The question that was read out last.
#[derive(Default)]
struct AskedQuestion {
    name: Option<(Turn, DocumentId)>,
    /// Answers to its first parts.
    answers: Vec<QuestionAnswer>,
    /// When it was read out, in milliseconds since the Unix epoch.
    at_ms: u64,
}

/// The overlays that were read out.
#[derive(Default)]
struct OverlaysRead {
    count: usize,
    /// Keys went to the top one: it is read out again.
    had_keys: bool,
}

/// Input of the screen reader.
enum LineEvent {
    Exit(u8),
    Signal(Signal),
    /// `None`: the input has ended.
    Line(Option<lines::InputLine>),
    SignOfLife,
}

impl FrontEnd for ScreenReader {
    type Input = LineEvent;

    fn note(&mut self, msg: &Msg) {
        match msg {
            Msg::Entries(entries) => {
                self.life.as_mut().reset(Instant::now() + SIGN_OF_LIFE);
                self.progress.is_other_branch |= entries.iter().any(|it| matches!(it.event, Event::Branch(_)));
            }
            Msg::Switch(_) => {
                self.question.name = None;
                self.progress = Progress {
                    was_idle: self.progress.was_idle,
                    is_other: true,
                    ..Progress::default()
                };
            }
            _ => {}
        }
    }

    /// Reads out whatever is new: documents that have ended, notes, pages, a question, whose turn it is.
    fn show(&mut self, app: &mut App) -> Vec<Effect> {
        if std::mem::take(&mut self.progress.is_other) {
            let who = peer(app);
            self.speaker.note(&t!("plain-other", who = who));
        }
        if std::mem::take(&mut self.progress.is_other_branch) {
            self.progress.from = app.conversation.transcript.exchanges.len().saturating_sub(1);
            self.progress.said = app.viewport.pane.items.iter().copied().collect();
            self.speaker.note(t!("plain-branch"));
        }
        app.measure();
        if std::mem::take(&mut self.overlays.had_keys) {
            self.reread_overlay(app);
        }
        self.progress.tell_documents(&mut self.speaker, app);
        let asked = &app.conversation.transcript.trust;
        if self.progress.trust != *asked {
            self.progress.trust.clone_from(asked);
            if let Some(asked) = asked {
                let asked = trust::sentence(asked);
                self.speaker.note(&t!("plain-trust", question = asked));
            }
        }
        let toast = app.toast.take();
        for toast in toast.into_iter().chain(app.terminal.notices.drain(..)) {
            self.speaker.note(&toast);
        }
        if app.overlays.len() != self.overlays.count {
            self.read_overlay(app);
        }
        self.tell_question(app);
        let is_ready = is_ready(app);
        let is_idle = is_ready && app.overlays.is_empty();
        let is_asked = app.conversation.transcript.open_question().is_some();
        if is_idle && !self.progress.was_idle && !is_asked {
            if app.conversation.plan_to_build().is_some() {
                self.speaker.note(t!("plain-plan-waits"));
            }
            if self.speaker.is_typed {
                let mode = app.composer.mode.as_str();
                self.speaker.write_line(&t!("plain-your-turn", mode = mode));
            }
        }
        self.progress.was_idle = is_idle;
        if self.speaker.is_gone {
            self.exit = Some(129);
        } else if self.input.has_ended && is_ready {
            if is_asked {
                self.speaker.note(t!("plain-input-ended"));
            }
            self.exit = Some(is_asked.into());
        }
        self.input.is_taken = !self.input.has_ended && (self.speaker.is_typed || is_ready);
        self.is_working = app.conversation.is_busy() && !is_asked;
        Vec::new()
    }

    async fn read(&mut self) -> LineEvent {
        if let Some(code) = self.exit {
            return LineEvent::Exit(code);
        }
        let lines = &mut self.input.lines;
        tokio::select! {
            biased;
            Some(signal) = self.signals.recv() => LineEvent::Signal(signal),
            // What has happened already comes before the next line.
            line = async { tokio::task::yield_now().await; lines.recv().await }, if self.input.is_taken => {
                LineEvent::Line(line)
            }
            () = &mut self.life, if self.is_working => LineEvent::SignOfLife,
        }
    }

    fn take(&mut self, input: LineEvent, app: &mut App) -> Vec<Msg> {
        match input {
            LineEvent::Signal(Signal::End(code)) | LineEvent::Exit(code) => vec![Msg::End(code)],
            LineEvent::Signal(_) => vec![Msg::Interrupt],
            LineEvent::Line(Some(line)) => match self.input.paste.take(line) {
                lines::LineMeaning::Whole(text) => self.line(&text, app),
                lines::LineMeaning::Part => Vec::new(),
                lines::LineMeaning::Pasted(count) => {
                    self.speaker.note(&t!("plain-pasted", count = count));
                    Vec::new()
                }
            },
            LineEvent::Line(None) => {
                self.input.has_ended = true;
                let rest = self.input.paste.rest();
                rest.map(|it| self.line(&it, app)).unwrap_or_default()
            }
            LineEvent::SignOfLife => {
                self.speaker.tell_state(app);
                self.life.as_mut().reset(Instant::now() + SIGN_OF_LIFE);
                Vec::new()
            }
        }
    }

    async fn carry_out(&mut self, effect: Effect, app: &mut App) -> Carried {
        match effect {
            Effect::Print(_) => {
                for item in app.viewport.pane.items.clone() {
                    if has_ended(&app.conversation.transcript, item) {
                        self.speaker.tell(app, item, true);
                    }
                }
            }
            Effect::OpenFile { .. }
            | Effect::OpenRules(_)
            | Effect::EditDraft(_)
            | Effect::EditChip(_)
            | Effect::EditHunk { .. } => {
                self.speaker.note(t!("plain-editor"));
            }
            other => return self.runner.carry_out(other, app),
        }
        Carried::Away
    }

    fn leave(&mut self, _: &mut App) {}
}

impl Progress {
    /// Reads out the documents that have ended since the last time.
    fn tell_documents(&mut self, speaker: &mut Speaker, app: &mut App) {
        let items = &app.viewport.pane.items;
        let first = items.partition_point(|it| it.exchange() < self.from);
        let new: Vec<Item> = items.iter().skip(first).copied().collect();
        for item in new {
            if has_ended(&app.conversation.transcript, item) && self.said.insert(item) {
                speaker.tell(app, item, false);
            }
        }
        let exchanges = &app.conversation.transcript.exchanges;
        let running = exchanges.iter().skip(self.from).position(|it| it.response.is_running());
        let from = running.map_or(exchanges.len().saturating_sub(1), |it| self.from + it);
        if from > self.from {
            self.from = from;
            self.said.retain(|it| it.exchange() >= from);
        }
    }
}

impl ScreenReader {
    fn begin(&mut self, app: &mut App) {
        self.speaker.write_line(&t!(
            "plain-begin",
            version = env!("CARGO_PKG_VERSION"),
            who = peer(app),
            folder = app.conversation.workspace.label.as_str()
        ));
        for line in app.preferences.problems.iter().flat_map(|it| it.lines()) {
            self.speaker.note(line);
        }
        app.toast = None;
    }

    /// Takes everything up to the last turn as read.
    fn pass_over(&mut self, app: &App) {
        let exchanges = &app.conversation.transcript.exchanges;
        self.progress.is_other_branch = false;
        self.progress.from = exchanges.len().saturating_sub(1);
        // What the user did before the first message stands in an exchange without one.
        let mut earlier = exchanges.iter().rev().skip(1).filter(|it| it.message.is_some());
        if let Some(before) = earlier.next() {
            let (count, last) = (1 + earlier.count(), before.turn.0 + 1);
            let note = t!("plain-earlier", count = count, example = format!("#{last}.1"));
            self.speaker.note(&note);
        }
    }

    /// Reads the top overlay out after keys, or notes that the last one has closed.
    fn reread_overlay(&mut self, app: &mut App) {
        if !app.overlays.is_empty() {
            self.read_overlay(app);
            return;
        }
        self.overlays.count = 0;
        let name = &mut self.question.name;
        // It is another question now if hunks of it were decided on.
        name.take_if(|(turn, document)| app.questions.hunk_decisions.has(*turn, document));
    }

    fn read_overlay(&mut self, app: &mut App) {
        self.overlays.count = app.overlays.len();
        let Some((lines, how)) = app.spoken_overlay() else {
            return;
        };
        if how.is_none() {
            app.overlays.pop();
            self.overlays.count = app.overlays.len();
        }
        for line in lines.iter().filter(|it| !it.trim().is_empty()) {
            self.speaker.write_line(line);
        }
        if let Some(how) = how {
            self.speaker.write_line(how);
        }
    }

    /// Reads out the question that waits, once.
    fn tell_question(&mut self, app: &mut App) {
        let waiting = waiting(app);
        let name = waiting.and_then(|it| name_of(app, it));
        if name.is_none() || self.question.name == name {
            self.question.name = name;
            return;
        }
        let Some(place) = waiting else { return };
        self.question = AskedQuestion {
            name,
            answers: Vec::new(),
            at_ms: now_ms(),
        };
        let Some((document, view)) = clarification(&app.conversation.transcript, place) else {
            return;
        };
        let address = address(&app.conversation.transcript, Item::Document(place));
        if is_one_approval(document, &view) {
            let how = spoken::approval(&view);
            self.tell_approval(app, place, &address);
            for line in how {
                self.speaker.write_line(&line);
            }
            return;
        }
        let label = spoken::label(&address, &document.kind, false, None);
        self.speaker.write_line(&t!("plain-waiting", label = label));
        for line in view.content.lines() {
            self.speaker.write_line(&format!("  {line}"));
        }
        self.ask_next(&view);
    }

    /// Reads out what is to be approved, to the letter.
    fn tell_approval(&mut self, app: &mut App, place: DocumentIndex, address: &str) {
        let rows = speaker::rows(app, Item::Document(place), true);
        let Some(document) = app.conversation.transcript.get(place) else {
            return;
        };
        let heading = spoken::heading(&rows);
        let label = spoken::label(address, &document.kind, true, heading.as_ref().map(|it| &it.0));
        self.speaker.write_line(&label);
        let content = spoken::lines(rows.get(heading.map_or(0, |it| it.1)..).unwrap_or_default());
        // The last line is that of the keys.
        for line in content.iter().take(content.len().saturating_sub(1)) {
            self.speaker.write_line(&format!("  {line}"));
        }
        // Read aloud, signs are left out and blanks are one: what is allowed is said to the letter then.
        let is_said =
            |it: &Sanitized| label.contains(it.as_str()) || content.iter().any(|line| line.contains(it.as_str()));
        if let Some(command) = command_asked_for(document).filter(|it| !is_said(it)) {
            self.speaker.write_line(t!("plain-to-the-letter"));
            for line in command.as_str().lines() {
                self.speaker.write_line(&format!("    {line}"));
            }
        }
        let turn = app.conversation.turn_of(place);
        if let Some((accepted, rejected, count)) = app.questions.hunk_decisions.tally(turn, document) {
            self.speaker.write_line(&t!(
                "plain-hunks",
                accepted = accepted,
                rejected = rejected,
                count = count
            ));
        }
    }

    fn ask_next(&mut self, view: &Clarification<'_>) {
        let (at, count) = (self.question.answers.len(), view.questions.len());
        let Some(question) = view.questions.get(at) else { return };
        for line in spoken::asked(question, (count > 1).then_some((at + 1, count))) {
            self.speaker.write_line(&line);
        }
    }

    /// Takes a line of the user's.
    fn line(&mut self, line: &str, app: &mut App) -> Vec<Msg> {
        app.now_ms = now_ms();
        self.progress.was_idle = false;
        if !app.overlays.is_empty() {
            return self.line_to_overlay(line.trim(), app);
        }
        let items = &app.viewport.pane.items;
        if let Some(wanted) = line.trim().strip_prefix('#').filter(|it| !it.is_empty())
            && let Some(item) = items
                .iter()
                .find(|it| address(&app.conversation.transcript, **it) == wanted)
        {
            self.speaker.tell(app, *item, true);
            return Vec::new();
        }
        if let Some(place) = waiting(app)
            && !line.starts_with('/')
        {
            return self.answer(place, line.trim(), app).into_iter().collect();
        }
        if line.trim().is_empty() && !app.conversation.about.is_replay {
            return Vec::new();
        }
        vec![Msg::Line(line.to_owned())]
    }

    fn line_to_overlay(&mut self, words: &str, app: &mut App) -> Vec<Msg> {
        let is_typed = self.speaker.is_typed;
        let keys = match app.overlays.last_mut() {
            Some(overlay) if !words.is_empty() => overlay.keys_of(words, is_typed),
            Some(_) | None => Ok(vec![KeyCode::Esc]),
        };
        match keys {
            Ok(keys) => {
                self.overlays.had_keys = true;
                let key = |code| Msg::Input(Input::Key(KeyEvent::new(code, KeyModifiers::NONE)));
                keys.into_iter().map(key).collect()
            }
            Err(why) => {
                self.speaker.note(&why);
                Vec::new()
            }
        }
    }

    /// Takes a line as the answer to the question at `place`; `None` while the answer is not complete.
    fn answer(&mut self, place: DocumentIndex, line: &str, app: &App) -> Option<Msg> {
        let (document, view) = clarification(&app.conversation.transcript, place)?;
        let asked = &mut self.question;
        let is_just_asked = self.speaker.is_typed && app.now_ms < asked.at_ms.saturating_add(TOO_EARLY_MS);
        if is_just_asked && is_approval(document) {
            // It was on its way before the question was read, which is read again.
            asked.name = None;
            return None;
        }
        let respond = |outcome, answers| ClarificationResponse::new(document.id.clone(), outcome, answers);
        let response = if is_one_approval(document, &view) {
            approve(&view, &document.id, line)
        } else if matches!(line, "s" | "skip") {
            Ok(Some(respond(Dealt::Skipped, Vec::new())))
        } else {
            let at = asked.answers.len();
            let answer = view.questions.get(at).map(|it| spoken::answer(it, line)).transpose();
            answer.map(|answer| {
                asked.answers.push(answer?);
                let is_last = at + 1 >= view.questions.len();
                is_last.then(|| respond(Dealt::Answered, std::mem::take(&mut asked.answers)))
            })
        };
        match response {
            Ok(Some(response)) => return Some(Msg::Answer(app.conversation.turn_of(place), response)),
            Ok(None) => self.ask_next(&view),
            Err(why) => self.speaker.note(&why),
        }
        None
    }
}

/// The name of the model that answers, or of the other side.
fn peer(app: &App) -> String {
    let model = app.composer.model_name(&app.conversation.about);
    model.map_or_else(|| app.conversation.peer(), str::to_owned)
}

/// The question that waits for an answer; `None` once it was answered here.
fn waiting(app: &App) -> Option<DocumentIndex> {
    let place = app.conversation.transcript.open_question()?;
    let is_sent = name_of(app, place).is_some_and(|it| app.questions.sent.contains(&it));
    (!is_sent).then_some(place)
}

fn name_of(app: &App, place: DocumentIndex) -> Option<(Turn, DocumentId)> {
    let document = app.conversation.transcript.get(place)?;
    Some((app.conversation.turn_of(place), document.id.clone()))
}

/// Returns true if there is nothing to wait for: an answer is over, or something is asked.
fn is_ready(app: &App) -> bool {
    let is_waited_for =
        app.conversation.is_busy() || app.questions.submitted_ms.is_some() || !app.composer.queue.is_empty();
    !is_waited_for || waiting(app).is_some()
}

/// Returns true if nothing more will come to an item.
fn has_ended(transcript: &Transcript, item: Item) -> bool {
    match item {
        Item::Message(_) | Item::Ending(_) | Item::Action(..) => true,
        Item::Thinking(at, n) => transcript.exchanges.get(at).is_some_and(|it| {
            let response = &it.response;
            let thinking = &response.thinking;
            let goes_on =
                thinking.len() == n + 1 && thinking.get(n).is_some_and(|it| it.before == response.documents.len());
            !response.is_running() || !goes_on
        }),
        Item::Document(place) => transcript
            .get(place)
            .is_some_and(|it| !it.is_open() && !it.is_checking()),
    }
}

fn clarification(transcript: &Transcript, place: DocumentIndex) -> Option<(&Document, Clarification<'_>)> {
    let document = transcript.get(place)?;
    match document.view() {
        View::Clarification(view) => Some((document, view)),
        _ => None,
    }
}

fn is_one_approval(document: &Document, view: &Clarification<'_>) -> bool {
    is_approval(document) && view.questions.len() == 1
}

/// Returns true if `written` is a word of the interface's language, whatever its case.
fn says(written: &str, word: &str) -> bool {
    written.to_lowercase() == word.to_lowercase()
}

/// Answers an approval by the keys of the screen: `y`, `a`, `A`, `n` and a reason. `None`: the line is no answer yet.
fn approve(view: &Clarification<'_>, id: &DocumentId, line: &str) -> Result<Option<ClarificationResponse>, String> {
    let mut form = Form::new(id.clone());
    // A sentence that happens to begin with a letter is no yes: only a no takes words behind it.
    let ends = |it: char| it.is_whitespace() || matches!(it, ',' | ';' | ':');
    let is_no = |it: &str| matches!(it, "n" | "no") || says(it, t!("plain-word-no"));
    let (word, reason) = match line.split_once(ends) {
        Some((word, reason)) if is_no(word) => (word, reason.trim_start_matches(ends)),
        _ => (line, ""),
    };
    let letter = match word {
        "yes" => 'y',
        "always" => 'A',
        word if is_no(word) => 'n',
        word if says(word, t!("plain-word-yes")) => 'y',
        word if says(word, t!("plain-word-always")) => 'A',
        _ => {
            let mut letters = word.chars();
            match (letters.next(), letters.next()) {
                (Some(letter), None) => letter,
                _ => return Err(t!("plain-letters").to_owned()),
            }
        }
    };
    let letter = if letter == 'n' && !reason.trim().is_empty() {
        'N'
    } else {
        letter
    };
    let mut key = |code| form.key(KeyEvent::new(code, KeyModifiers::NONE), view);
    let mut outcome = key(KeyCode::Char(letter));
    if outcome == FormOutcome::Changed {
        for letter in reason.trim().chars() {
            key(KeyCode::Char(letter));
        }
        outcome = key(KeyCode::Enter);
    }
    match outcome {
        FormOutcome::Answer(response) => Ok(Some(response)),
        FormOutcome::Ignored | FormOutcome::Changed | FormOutcome::Message(_) => Err(t!("plain-letters").to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{locale, protocol::Kind};

    #[test]
    fn an_approval_is_answered_in_the_words_of_the_language() {
        let options: Vec<_> = ["allow_once", "allow_session", "allow_always", "reject_once"]
            .iter()
            .map(|it| json!({ "id": it, "label": it }))
            .collect();
        let asked = json!({ "kind": "approval",
            "subject": { "type": Kind::TerminalCommand, "metadata": { "command": "ls" } },
            "questions": [{ "id": "approval", "text": "Allow it?", "options": options, "allowFreeText": true }] });
        let mut response = crate::protocol::Response::default();
        for event in crate::tui::test_app::document("ask", "clarification", None, asked) {
            response.apply(&event, 0);
        }
        let document = response.documents.remove(0);
        let View::Clarification(view) = document.view() else {
            panic!("a question is a clarification");
        };
        let told = |line: &str| match approve(&view, &document.id, line) {
            Ok(Some(it)) => {
                let answer = it.answers.first().expect("an answer");
                let why = answer
                    .free_text
                    .as_ref()
                    .map_or_else(String::new, |it| format!(": {it}"));
                format!("{}{why}", answer.selected_option_ids.concat())
            }
            Ok(None) | Err(_) => "?".to_owned(),
        };
        let english = [
            ("y", "allow_once"),
            ("yes", "allow_once"),
            ("always", "allow_always"),
            ("n", "reject_once"),
            ("n, not now", "reject_once: not now"),
            ("no: not now", "reject_once: not now"),
            ("n; not now", "reject_once: not now"),
            ("yes, do it", "?"),
            ("a moment", "?"),
            ("not now", "?"),
        ];
        for (line, answer) in english {
            assert_eq!(told(line), answer, "{line}");
            assert_eq!(locale::within("de", || told(line)), answer, "{line}");
        }
        for (line, answer) in [
            ("ja", "allow_once"),
            ("Ja", "allow_once"),
            ("immer", "allow_always"),
            ("nein; erst morgen", "reject_once: erst morgen"),
            ("nein erst morgen", "reject_once: erst morgen"),
            ("ja, bitte", "?"),
        ] {
            assert_eq!(locale::within("de", || told(line)), answer, "{line}");
        }
    }
}
