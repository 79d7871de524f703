//! `--plain`: the conversation as labelled lines, one after the other, for screen readers and whatever else only reads on.
//!
//! The same state, the same actions and the same looks as on the screen; only the ends are others. Lines are read from
//! standard input as the terminal gives them, and nothing is ever written but text and line breaks: no colours, no
//! movement of the cursor. A document is said when it has ended, so that nothing is said twice.

mod lines;
pub(super) mod words;

use std::{
    collections::HashSet,
    io::{self, Write},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

use super::{
    actions,
    app::{App, Focus},
    command,
    effects::{Carried, Effect, EffectRunner, history},
    msg::Msg,
    run::{Error, watched},
    setup::{Setup, app, now_ms, workspace},
    terminal::Input,
    update::{TOO_EARLY_MS, update},
    widgets::transcript::{Context, Item, Pane, address},
    widgets::{Form, Outcome as FormOutcome, command_asked_for},
};
use crate::{
    journal::Log,
    link::Link,
    protocol::{
        ClarificationResponse, Command, Document, DocumentId, Entry, Event, Message, Outcome as Dealt, Position,
        QuestionAnswer, Submit, Turn, View,
    },
    t,
    text::{NoColours, Sanitized, StyledLine},
    transcript::{DocumentIndex, Transcript, is_approval},
};

/// While something is worked at and nothing ends, this often a line says so.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// Rows that a page is laid out for: it is read from its beginning to its end.
const PAGE_ROWS: u16 = 2000;

/// Where lines come from and go to.
pub struct Console {
    pub out: Box<dyn Write + Send>,
    /// Somebody types: their lines are taken at any time. Lines of a file or a pipe wait until there is nothing to wait for.
    pub is_typed: bool,
    pub columns: u16,
}

/// What seldom happens.
enum Wake {
    Interrupt,
    End(u8),
    Link(Arc<dyn Link>),
}

/// Talks in lines until the user leaves or the input ends; returns the exit code.
pub async fn run(mut setup: Setup, console: Console) -> Result<u8, Error> {
    let (wakes, mut woken) = mpsc::unbounded_channel();
    listen(&wakes).map_err(Error::NoSignals)?;
    // The gutter is not written: what a look gets is the terminal's width.
    let size = (console.columns.clamp(40, 500) + 9, PAGE_ROWS);
    setup.settings.color = false;
    setup.settings.links = false;
    "off".clone_into(&mut setup.settings.ui.images);
    let (outcomes, mut outcomes_here) = mpsc::unbounded_channel();
    let opened = wakes.clone();
    let mut talk = Talk {
        app: app(&setup, size, None, Arc::new(NoColours)),
        out: console.out,
        hands: EffectRunner {
            outcomes,
            paths: setup.paths,
            keeps: setup.keeps,
            library: setup.library,
            opened: Arc::new(move |link| drop(opened.send(Wake::Link(link)))),
        },
        said: HashSet::new(),
        from: 0,
        asked: None,
        answers: Vec::new(),
        was_idle: false,
        is_typed: console.is_typed,
        paste: lines::Paste::default(),
        asked_ms: 0,
        layer_shown: 0,
        exit: None,
    };
    talk.app.conversation.reads_whole = true;
    talk.app.conversation.transcript = Transcript::default();
    let mut switch = setup.switch;
    let mut follower = watched(&setup.link, true);
    let mut lines = lines::read(talk.is_typed);
    let mut has_ended = false;
    talk.begin();
    history::recall(&talk.hands, Some(talk.app.conversation.workspace.folder.clone()));
    talk.carry_out(Effect::Commands);
    // What was said before is not read out again.
    let before = setup.link.log().after(Position(0));
    if !before.is_empty() && !setup.link.about().is_replay {
        let last = before.last().map(|it| it.position);
        talk.pass_over(before);
        follower = setup.link.log().follow(last.unwrap_or(Position(0)));
    }
    if let Some(text) = setup.prompt {
        let submit = Submit {
            message: Message::user(text),
            mode: talk.app.composer.mode,
            model: None,
        };
        talk.app.questions.submitted_ms = Some(now_ms());
        talk.app.conversation.link.send(Command::Submit(submit));
    }
    let mut batch = Vec::new();
    let mut life = pin!(tokio::time::sleep(SIGN_OF_LIFE));
    loop {
        talk.look();
        if let Some(code) = talk.exit {
            return Ok(code);
        }
        if has_ended && talk.is_ready() {
            if talk.app.conversation.transcript.open_question().is_some() {
                talk.note(t!("plain-input-ended"));
                return Ok(1);
            }
            return Ok(0);
        }
        let takes_lines = !has_ended && (talk.is_typed || talk.is_ready());
        tokio::select! {
            biased;
            Some(wake) = woken.recv() => match wake {
                Wake::Interrupt => talk.interrupt(),
                Wake::End(code) => return Ok(code),
                Wake::Link(link) => {
                    follower = watched(&link, true);
                    talk.switch(link);
                }
            },
            Some(link) = switch.recv() => {
                follower = watched(&link, true);
                talk.switch(link);
            }
            Some(outcome) = outcomes_here.recv() => talk.handle(Msg::Done(outcome)),
            more = follower.next(&mut batch) => {
                let entries = std::mem::take(&mut batch);
                talk.follow(entries);
                if !more {
                    follower = Log::new().follow(Position(0));
                }
                life.as_mut().reset(tokio::time::Instant::now() + SIGN_OF_LIFE);
            }
            line = lines.recv(), if takes_lines => match line {
                Some(line) => talk.typed(line),
                None => {
                if let Some(rest) = talk.paste.rest() {
                    talk.line(&rest);
                }
                has_ended = true;
            }
            },
            () = &mut life, if talk.is_working() => {
                talk.say_state();
                life.as_mut().reset(tokio::time::Instant::now() + SIGN_OF_LIFE);
            }
        }
    }
}

/// Signals as they come.
fn listen(wakes: &mpsc::UnboundedSender<Wake>) -> io::Result<()> {
    let kinds = [
        (SignalKind::interrupt(), None),
        (SignalKind::hangup(), Some(129)),
        (SignalKind::quit(), Some(131)),
        (SignalKind::terminate(), Some(143)),
    ];
    for (kind, code) in kinds {
        let mut signals = signal(kind)?;
        let tell = wakes.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                let wake = code.map_or(Wake::Interrupt, Wake::End);
                if tell.send(wake).is_err() {
                    break;
                }
            }
        });
    }
    Ok(())
}

struct Talk {
    app: App,
    out: Box<dyn Write + Send>,
    hands: EffectRunner,
    /// What was said of the exchanges from `from` on.
    said: HashSet<Item>,
    from: usize,
    /// The question that was read out last.
    asked: Option<(Turn, DocumentId)>,
    /// What was answered of it so far.
    answers: Vec<QuestionAnswer>,
    was_idle: bool,
    is_typed: bool,
    paste: lines::Paste,
    /// When the question that waits was read out.
    asked_ms: u64,
    /// So many layers there were when the last one was read out.
    layer_shown: usize,
    exit: Option<u8>,
}

impl Talk {
    /// Writes one line; what it says has come from anywhere.
    fn write_line(&mut self, line: &str) {
        let line = Sanitized::line(line);
        let written = self
            .out
            .write_all(line.as_bytes())
            .and_then(|()| self.out.write_all(b"\n"))
            .and_then(|()| self.out.flush());
        if written.is_err() {
            // Nobody reads any more.
            self.exit = Some(129);
        }
    }

    fn note(&mut self, text: &str) {
        self.write_line(&t!("plain-note", text = text));
    }

    fn begin(&mut self) {
        let who = self
            .app
            .composer
            .model_name(&self.app.conversation.about)
            .unwrap_or(&self.app.conversation.about.peer)
            .to_owned();
        let folder = self.app.conversation.workspace.label.clone();
        self.write_line(&t!(
            "plain-begin",
            version = env!("CARGO_PKG_VERSION"),
            who = who,
            folder = folder
        ));
        for problem in self.app.preferences.problems.clone() {
            for line in problem.lines() {
                self.note(line);
            }
        }
        self.app.toast = None;
    }

    /// Takes what was said before we came without reading it out.
    fn pass_over(&mut self, entries: Vec<Arc<Entry>>) {
        let effects = update(&mut self.app, Msg::Entries(entries));
        for effect in effects {
            self.carry_out(effect);
        }
        let turns = self.app.conversation.transcript.exchanges.len();
        self.from = turns.saturating_sub(1);
        if turns > 1 {
            self.note(&t!("plain-earlier", count = turns - 1, example = format!("#{turns}.1")));
        }
    }

    fn switch(&mut self, link: Arc<dyn Link>) {
        if let Some(folder) = link.about().workspace {
            self.app.conversation.workspace = workspace(&folder);
        }
        (self.from, self.asked) = (0, None);
        self.said.clear();
        self.handle(Msg::Switch(link));
        let who = self
            .app
            .composer
            .model_name(&self.app.conversation.about)
            .unwrap_or(&self.app.conversation.about.peer)
            .to_owned();
        self.note(&t!("plain-other", who = who));
    }

    fn handle(&mut self, msg: Msg) {
        self.app.now_ms = now_ms();
        for effect in update(&mut self.app, msg) {
            self.carry_out(effect);
        }
    }

    fn key(&mut self, code: KeyCode) {
        self.handle(Msg::Input(Input::Key(KeyEvent::new(code, KeyModifiers::NONE))));
    }

    fn carry_out(&mut self, effect: Effect) {
        match self.hands.carry_out(effect, &self.app) {
            Carried::Away | Carried::Sent => {}
            Carried::Quit(code) => self.exit = Some(code),
            Carried::Terminal(Effect::Print(_)) => self.read_all(),
            Carried::Terminal(
                Effect::OpenFile { .. } | Effect::EditDraft(_) | Effect::EditChip(_) | Effect::EditHunk { .. },
            ) => {
                self.note(t!("plain-editor"));
            }
            Carried::Terminal(_) => {}
        }
    }

    /// There is nothing to wait for: an answer is over, or something is asked.
    fn is_ready(&self) -> bool {
        let is_asked = self
            .app
            .conversation
            .transcript
            .open_question()
            .is_some_and(|it| !self.is_sent(it));
        is_asked
            || (!self.app.conversation.is_busy()
                && self.app.questions.submitted_ms.is_none()
                && self.app.composer.queue.is_empty())
    }

    fn is_working(&self) -> bool {
        self.app.conversation.is_busy() && self.app.conversation.transcript.open_question().is_none()
    }

    fn is_sent(&self, place: DocumentIndex) -> bool {
        self.name_of(place)
            .is_some_and(|it| self.app.questions.sent.contains(&it))
    }

    fn name_of(&self, place: DocumentIndex) -> Option<(Turn, DocumentId)> {
        let document = self.app.conversation.transcript.get(place)?;
        Some((self.app.conversation.turn_of(place), document.id.clone()))
    }

    fn follow(&mut self, entries: Vec<Arc<Entry>>) {
        let is_other_branch = entries.iter().any(|it| matches!(it.event, Event::Branch(_)));
        self.handle(Msg::Entries(entries));
        if is_other_branch {
            self.said.clear();
            self.from = self.app.conversation.transcript.exchanges.len().saturating_sub(1);
            self.said.extend(self.app.viewport.pane.items.iter().copied());
            self.note(t!("plain-branch"));
        }
    }

    /// Says whatever is new: documents that have ended, notes, pages, a question, whose turn it is.
    fn look(&mut self) {
        self.app.measure();
        self.tell_documents();
        if let Some(toast) = self.app.toast.take() {
            self.note(&toast);
        }
        self.tell_layer();
        self.tell_question();
        let is_idle = self.is_ready() && self.app.overlays.is_empty();
        if is_idle && !self.was_idle && self.app.conversation.transcript.open_question().is_none() {
            if self.app.conversation.plan_to_build().is_some() {
                self.note(t!("plain-plan-waits"));
            }
            if self.is_typed {
                self.write_line(&t!("plain-your-turn", mode = self.app.composer.mode.as_str()));
            }
        }
        self.was_idle = is_idle;
    }

    fn tell_documents(&mut self) {
        let first = self
            .app
            .viewport
            .pane
            .items
            .partition_point(|it| it.exchange() < self.from);
        let new: Vec<Item> = self.app.viewport.pane.items.iter().skip(first).copied().collect();
        for item in new {
            if self.has_ended(item) && self.said.insert(item) {
                self.tell(item, false);
            }
        }
        let exchanges = &self.app.conversation.transcript.exchanges;
        let running = exchanges.iter().skip(self.from).position(|it| it.response.is_running());
        let from = running.map_or(exchanges.len().saturating_sub(1), |it| self.from + it);
        if from > self.from {
            self.from = from;
            self.said.retain(|it| it.exchange() >= from);
        }
    }

    fn has_ended(&self, item: Item) -> bool {
        let transcript = &self.app.conversation.transcript;
        match item {
            Item::Message(_) | Item::Ending(_) => true,
            Item::Thinking(at, n) => transcript.exchanges.get(at).is_some_and(|it| {
                let response = &it.response;
                let goes_on = response.thinking.len() == n + 1
                    && response
                        .thinking
                        .get(n)
                        .is_some_and(|it| it.before == response.documents.len());
                !response.is_running() || !goes_on
            }),
            Item::Document(place) => transcript.get(place).is_some_and(|it| !it.is_open()),
        }
    }

    fn rows(&mut self, item: Item, is_whole: bool) -> Vec<StyledLine> {
        self.app.with_pane(|pane: &mut Pane, context| {
            let context = Context {
                has_focus: false,
                ..*context
            };
            let fold = pane.fold_of(item);
            if is_whole {
                pane.set_fold(item, super::widgets::Fold::Full);
            }
            let rows = pane.rows_of(item, &context).to_vec();
            pane.set_fold(item, fold);
            rows
        })
    }

    fn tell(&mut self, item: Item, is_whole: bool) {
        let rows = self.rows(item, is_whole);
        if rows.is_empty() {
            return;
        }
        let address = address(&self.app.conversation.transcript, item);
        let mut rows = rows;
        if matches!(item, Item::Message(_)) {
            // The time of day is of no use in the middle of the words.
            for row in &mut rows {
                row.facts.clear();
            }
        }
        let mut content = rows.as_slice();
        match item {
            Item::Message(_) if self.is_typed && !is_whole && !self.app.conversation.about.is_replay => {
                // Whoever typed it knows what it says.
                self.write_line(&t!("plain-turn", address = address));
                return;
            }
            Item::Message(_) => self.write_line(&t!("plain-message", address = address)),
            Item::Thinking(..) | Item::Ending(_) => {}
            Item::Document(place) => {
                let Some(document) = self.app.conversation.transcript.get(place) else {
                    return;
                };
                let has_heading = words::has_heading(&document.kind);
                let heading = has_heading.then(|| words::heading(&rows)).flatten();
                let label = words::label(
                    &address,
                    &document.kind,
                    is_approval(document),
                    heading.as_ref().map(|it| &it.0),
                );
                if let Some((_, taken)) = heading {
                    content = rows.get(taken..).unwrap_or_default();
                }
                self.write_line(&label);
            }
        }
        for line in words::lines(content) {
            self.write_line(format!("  {line}").trim_end());
        }
    }

    /// All of the conversation that the filter lets through.
    fn read_all(&mut self) {
        for item in self.app.viewport.pane.items.clone() {
            if self.has_ended(item) {
                self.tell(item, true);
            }
        }
    }

    fn say_state(&mut self) {
        let since = self
            .app
            .conversation
            .transcript
            .exchanges
            .last()
            .map_or(self.app.now_ms, |it| it.at_ms);
        let seconds = now_ms().saturating_sub(since) / 1000;
        let last = self.app.conversation.transcript.exchanges.len().saturating_sub(1);
        let open = self.app.conversation.transcript.exchanges.last().and_then(|exchange| {
            let document = exchange.response.documents.iter().rposition(Document::is_open)?;
            Some(DocumentIndex {
                exchange: last,
                document,
            })
        });
        let what = open.and_then(|place| {
            let document = self.app.conversation.transcript.get(place)?;
            let kind = document.kind.clone();
            let item = Item::Document(place);
            let address = address(&self.app.conversation.transcript, item);
            let has_heading = words::has_heading(&kind);
            let rows = self.rows(item, false);
            let heading = has_heading.then(|| words::heading(&rows)).flatten();
            Some(words::label(&address, &kind, false, heading.as_ref().map(|it| &it.0)))
        });
        let said = match what {
            Some(what) => t!("plain-working-on", seconds = seconds, what = what),
            None => t!("plain-working", seconds = seconds),
        };
        self.write_line(&said);
    }

    /// Reads out the layer on top, if it is new or has changed.
    fn tell_layer(&mut self) {
        let count = self.app.overlays.len();
        if count == self.layer_shown {
            return;
        }
        self.layer_shown = count;
        if count > 0 {
            self.read_layer();
        }
    }

    fn read_layer(&mut self) {
        let Some((mut lines, how)) = self.app.spoken_overlay() else {
            return;
        };
        if how.is_none() {
            self.app.overlays.pop();
            self.layer_shown = self.app.overlays.len();
        }
        lines.retain(|it| !it.trim().is_empty());
        for line in lines {
            self.write_line(&line);
        }
        if let Some(how) = how {
            self.write_line(how);
        }
    }

    /// Reads out the question that waits, once.
    fn tell_question(&mut self) {
        let Some(place) = self
            .app
            .conversation
            .transcript
            .open_question()
            .filter(|it| !self.is_sent(*it))
        else {
            self.asked = None;
            return;
        };
        let Some(name) = self.name_of(place) else { return };
        if self.asked.as_ref() == Some(&name) {
            return;
        }
        self.asked = Some(name);
        self.asked_ms = now_ms();
        self.answers.clear();
        let Some(document) = self.app.conversation.transcript.get(place) else {
            return;
        };
        let View::Clarification(view) = document.view() else {
            return;
        };
        let address = address(&self.app.conversation.transcript, Item::Document(place));
        let is_approval = is_approval(document) && view.questions.len() == 1;
        let kind = document.kind.clone();
        let tally = self
            .app
            .questions
            .hunk_decisions
            .tally(self.app.conversation.turn_of(place), document);
        if is_approval {
            let how = words::approval(&view);
            let command = command_asked_for(document);
            let rows = self.rows(Item::Document(place), true);
            let heading = words::heading(&rows);
            let label = words::label(&address, &kind, true, heading.as_ref().map(|it| &it.0));
            self.write_line(&label);
            let content = words::lines(rows.get(heading.map_or(0, |it| it.1)..).unwrap_or_default());
            // The last line is that of the keys.
            for line in content.iter().take(content.len().saturating_sub(1)) {
                self.write_line(&format!("  {line}"));
            }
            // Read aloud, signs are left out and blanks are one: what is allowed is said to the letter then.
            let is_said =
                |it: &Sanitized| label.contains(it.as_str()) || content.iter().any(|line| line.contains(it.as_str()));
            if let Some(command) = command.filter(|it| !is_said(it)) {
                self.write_line(t!("plain-to-the-letter"));
                for line in command.as_str().lines() {
                    self.write_line(&format!("    {line}"));
                }
            }
            if let Some((accepted, rejected, count)) = tally {
                self.write_line(&t!(
                    "plain-hunks",
                    accepted = accepted,
                    rejected = rejected,
                    count = count
                ));
            }
            for line in how {
                self.write_line(&line);
            }
            return;
        }
        let content: Vec<String> = view.content.lines().map(str::to_owned).collect();
        let label = words::label(&address, &kind, false, None);
        self.write_line(&t!("plain-waiting", label = label));
        for line in content {
            self.write_line(&format!("  {line}"));
        }
        self.ask_next();
    }

    fn ask_next(&mut self) {
        let Some(place) = self.app.conversation.transcript.open_question() else {
            return;
        };
        let Some(document) = self.app.conversation.transcript.get(place) else {
            return;
        };
        let View::Clarification(view) = document.view() else {
            return;
        };
        let (at, count) = (self.answers.len(), view.questions.len());
        let Some(question) = view.questions.get(at) else { return };
        let lines = words::asked(question, (count > 1).then_some((at + 1, count)));
        for line in lines {
            self.write_line(&line);
        }
    }

    fn interrupt(&mut self) {
        if self.app.conversation.is_busy() {
            for effect in (actions::everywhere::INTERRUPT.run)(&mut self.app, "") {
                self.carry_out(effect);
            }
        } else {
            self.exit = Some(130);
        }
    }

    /// A line as it came: several that came at once are one.
    fn typed(&mut self, line: lines::InputLine) {
        match self.paste.take(line) {
            lines::Came::Whole(text) => self.line(&text),
            lines::Came::Part => {}
            lines::Came::Pasted(count) => self.note(&t!("plain-pasted", count = count)),
        }
    }

    /// A line of the user's.
    fn line(&mut self, line: &str) {
        self.app.now_ms = now_ms();
        self.was_idle = false;
        if !self.app.overlays.is_empty() {
            self.line_to_layer(line);
            return;
        }
        if let Some(address) = line.trim().strip_prefix('#')
            && let Some(item) = self.item_at(address)
        {
            self.tell(item, true);
            return;
        }
        let waiting = self
            .app
            .conversation
            .transcript
            .open_question()
            .filter(|it| !self.is_sent(*it));
        if let Some(place) = waiting
            && !line.starts_with('/')
        {
            self.answer(place, line);
            return;
        }
        if line.trim().is_empty() && !self.app.conversation.about.is_replay {
            return;
        }
        self.app.viewport.focus = Focus::Composer;
        let draft = self.app.composer.field.text();
        self.app.composer.field.set(&format!("{draft}{line}"));
        let mut effects = command::look(&mut self.app);
        self.app.composer.commands.list = None;
        effects.extend((actions::SEND.run)(&mut self.app, ""));
        for effect in effects {
            self.carry_out(effect);
        }
        if !self.app.composer.field.text().ends_with('\n') {
            // It was no command, and that was said.
            self.app.composer.field.clear();
        }
    }

    fn item_at(&self, wanted: &str) -> Option<Item> {
        let items = self.app.viewport.pane.items.iter();
        items
            .copied()
            .find(|it| address(&self.app.conversation.transcript, *it) == wanted && !wanted.is_empty())
    }

    fn line_to_layer(&mut self, line: &str) {
        let words = line.trim();
        if words.is_empty() {
            self.key(KeyCode::Esc);
        } else {
            let is_typed = self.is_typed;
            match self.app.overlays.last_mut().map(|it| it.keys_of(words, is_typed)) {
                Some(Ok(keys)) => keys.into_iter().for_each(|it| self.key(it)),
                Some(Err(why)) => {
                    self.note(&why);
                    return;
                }
                None => {}
            }
        }
        self.app.measure();
        self.layer_shown = self.app.overlays.len();
        if self.layer_shown > 0 {
            self.read_layer();
        } else if let Some((turn, document)) = &self.asked
            && self.app.questions.hunk_decisions.has(*turn, document)
        {
            // It is another question now that hunks of it were decided on.
            self.asked = None;
        }
    }

    fn answer(&mut self, place: DocumentIndex, line: &str) {
        let Some(document) = self.app.conversation.transcript.get(place) else {
            return;
        };
        let View::Clarification(view) = document.view() else {
            return;
        };
        let turn = self.app.conversation.turn_of(place);
        let id = document.id.clone();
        let is_just_asked = self.is_typed && self.app.now_ms < self.asked_ms.saturating_add(TOO_EARLY_MS);
        if is_just_asked && is_approval(document) {
            // It was on its way before the question was read.
            self.asked = None;
            self.tell_question();
            return;
        }
        let response = if is_approval(document) && view.questions.len() == 1 {
            approve(&view, &id, line.trim())
        } else if matches!(line.trim(), "s" | "skip") {
            Ok(Some(ClarificationResponse {
                document_id: id.clone(),
                outcome: Dealt::Skipped,
                answers: Vec::new(),
                reason: None,
            }))
        } else {
            let at = self.answers.len();
            let answered = view.questions.get(at).map(|it| words::answer(it, line));
            match answered {
                Some(Ok(answer)) => {
                    let is_last = at + 1 >= view.questions.len();
                    self.answers.push(answer);
                    Ok(is_last.then(|| ClarificationResponse {
                        document_id: id.clone(),
                        outcome: Dealt::Answered,
                        answers: std::mem::take(&mut self.answers),
                        reason: None,
                    }))
                }
                Some(Err(why)) => Err(why),
                None => Ok(None),
            }
        };
        match response {
            Ok(Some(response)) if !actions::review::lets_out(&mut self.app, turn, &response) => {}
            Ok(Some(response)) => {
                self.app.questions.sent.insert((turn, id));
                self.carry_out(Effect::Send(Command::Answer { turn, response }));
            }
            Ok(None) => self.ask_next(),
            Err(why) => self.note(&why),
        }
    }
}

/// Whether somebody wrote a word of the interface's language, in capitals or not.
fn says(written: &str, word: &str) -> bool {
    written.to_lowercase() == word.to_lowercase()
}

/// An approval's answer, by the keys of the screen: `y`, `a`, `A`, `n` and why not.
fn approve(
    view: &crate::protocol::document::Clarification<'_>,
    id: &DocumentId,
    line: &str,
) -> Result<Option<ClarificationResponse>, String> {
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
        FormOutcome::Ignored | FormOutcome::Changed => Err(t!("plain-letters").to_owned()),
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
        for event in crate::tui::headless::document("ask", "clarification", None, asked) {
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
