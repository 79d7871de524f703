//! What each source of news does to the state. One arm per source; what a key does is in the actions.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    action::{
        self,
        everywhere::{focus_composer, focus_transcript},
    },
    app::{App, Citation, Focus, Mouse},
    command,
    doc::{Form, Outcome as FormOutcome},
    effect::Effect,
    field::Chip,
    image::Way,
    input::{Input, Reply},
    keymap::{Chord, Place},
    layer::{Answer, Choice, Layer, Page, Picker, Sessions},
    mention,
    msg::{Msg, Outcome},
    pane::{Item, transcript::Shown},
    picture, places,
    selection::Selection,
};
use crate::{
    link::Link,
    protocol::{Change, Command, DocumentId, Entry, Event, FinishReason, Kind, Mode, Severity, Turn, View},
    say,
    text::{Clean, width},
    theme,
    transcript::is_approval,
};

/// Keys that decide are dropped for so long after a prompt appeared or got the focus: they were meant for something else.
pub const TOO_EARLY_MS: u64 = 300;

/// Warnings of the agent's that are for the user, unlike repairs of a stream.
const OWN_NOTICES: [&str; 14] = [
    "read-only",
    "not-there",
    "protected",
    "not-taken-back",
    "restored",
    "not-restored",
    "no-call",
    "context",
    "compacted",
    "not-compacted",
    "debug-marks",
    "rule-not-kept",
    "stand-in",
    "price-unknown",
];

/// Lines that one notch of the wheel moves.
const WHEEL_LINES: isize = 3;

pub fn update(app: &mut App, msg: Msg) -> Vec<Effect> {
    // Whether the growth of an answer changes anything around it is for `follow` to say.
    if !matches!(msg, Msg::Entries(_) | Msg::Colours) {
        app.chrome = None;
    }
    let is_input = matches!(msg, Msg::Input(_));
    let effects = told(app, msg);
    if is_input {
        app.look_back_from_the_top();
    }
    effects
}

fn told(app: &mut App, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Input(Input::Key(event)) => key(app, event),
        Msg::Input(Input::Paste(text)) => paste(app, &text),
        Msg::Input(Input::Wheel { down, .. }) => {
            let by = if down { WHEEL_LINES } else { -WHEEL_LINES };
            match app.layers.last_mut() {
                Some(layer) => layer.wheel(by.signum()),
                None => app.with_pane(|pane, context| pane.scroll(by, context)),
            }
            Vec::new()
        }
        Msg::Input(Input::Click { x, y }) => {
            press(app, x, y);
            Vec::new()
        }
        Msg::Input(Input::Drag { x, y }) => {
            drag(app, x, y);
            Vec::new()
        }
        Msg::Input(Input::Release { x, y }) => release(app, x, y),
        Msg::Input(Input::Focus(has_focus)) => {
            if has_focus {
                app.clicks.came_ms = Some(app.now_ms);
            }
            Vec::new()
        }
        Msg::Input(Input::Reply(reply)) => answered(app, reply),
        Msg::Resize(width, height) => {
            app.size = (width, height);
            Vec::new()
        }
        Msg::Entries(entries) => follow(app, &entries),
        Msg::Switch(link) => switch(app, link),
        Msg::Done(outcome) => done(app, outcome),
        Msg::Colours => {
            app.colours_version += 1;
            Vec::new()
        }
        Msg::Tick | Msg::Continued => Vec::new(),
    }
}

fn key(app: &mut App, event: KeyEvent) -> Vec<Effect> {
    app.toast = None;
    app.selection = None;
    // What decides is not taken from hands that were still writing.
    if let Some(Layer::Review(review)) = app.layers.last_mut()
        && matches!(event.code, KeyCode::Char('a' | 'r'))
        && !review.decides(event, app.now_ms, &app.transcript)
    {
        app.say(say!("review-too-soon"));
        return Vec::new();
    }
    if let Some(Layer::Rewind(rewind)) = app.layers.last()
        && app.now_ms.saturating_sub(rewind.since_ms) < TOO_EARLY_MS
        && matches!(event.code, KeyCode::Char('b' | 'c' | 'f') | KeyCode::Enter)
    {
        return Vec::new();
    }
    if let Some(layer) = app.layers.last_mut() {
        match layer.key(event) {
            Answer::Taken => return Vec::new(),
            Answer::Close => {
                app.layers.pop();
                return Vec::new();
            }
            Answer::Chosen(choice) => {
                app.layers.pop();
                return chosen(app, choice);
            }
            Answer::Live(choice) => return chosen(app, choice),
            Answer::Does(effect) => return vec![effect],
            Answer::Said(text) => {
                app.say(text);
                return Vec::new();
            }
        }
    }
    if answers_first_page(app, event) {
        focus_transcript(app);
        // Once it is answered, the composer has the keys again.
        app.asking.took_focus = true;
    }
    if let Some(effects) = form_key(app, event) {
        return effects;
    }
    if mention::key(app, event) {
        return mention::look(app);
    }
    match command::key(app, event) {
        command::Took::No => {}
        command::Took::Yes => return command::look(app),
        command::Took::Send => return (action::SEND.run)(app, ""),
    }
    if let Some(action) = vim_action(app, event) {
        return (action.run)(app, "");
    }
    if app.focus == Focus::Composer && app.composer.field.vim_key(event) {
        app.composer.history.at = None;
        return Vec::new();
    }
    let chord = Chord::of(event);
    let place = match app.focus {
        Focus::Composer => Place::Composer,
        Focus::Transcript => Place::Transcript,
    };
    let on_plan = app.focus == Focus::Transcript
        && app
            .selected()
            .and_then(|it| app.transcript.get(it))
            .is_some_and(|it| it.kind == Kind::Plan);
    let is_letter = matches!(event.code, KeyCode::Char(_)) && (event.modifiers - KeyModifiers::SHIFT).is_empty();
    // Whoever has gone to a todo means the plan.
    let is_new = app.asking.took_focus && app.pane.todo.is_none() && app.is_too_early();
    if on_plan && is_letter && is_new {
        if !matches!(event.code, KeyCode::Char('b')) {
            // The plan came under the hands of somebody who began to write.
            focus_composer(app);
            return key(app, event);
        }
        return Vec::new();
    }
    let special = if on_plan {
        app.keymap.find_only(Place::Plan, chord)
    } else {
        None
    };
    if let Some(action) = special.or_else(|| app.keymap.find(place, chord)) {
        let selected = app.pane.selected;
        let mut effects = action.go(app, "");
        effects.extend(command::look(app));
        if app.pane.selected != selected {
            app.pane.todo = None;
        }
        return effects;
    }
    let is_text = matches!(event.code, KeyCode::Char(_))
        && !event
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SUPER);
    if app.focus == Focus::Transcript {
        if !is_text {
            return Vec::new();
        }
        // A letter that means nothing here is the beginning of a message.
        focus_composer(app);
    }
    if recall(app, event) {
        return Vec::new();
    }
    if app.composer.field.key(event) && is_text {
        app.composer.history.at = None;
    }
    let mut effects = mention::look(app);
    effects.extend(command::look(app));
    effects
}

/// What `:` and `/` mean to those who know Vim, where they are no text.
fn vim_action(app: &App, event: KeyEvent) -> Option<&'static action::Action> {
    let vim = app.composer.field.vim.as_ref()?;
    let is_free = app.focus == Focus::Composer && vim.mode == super::vim::Mode::Normal && !vim.pending();
    match event.code {
        KeyCode::Char(':') if is_free => Some(&action::everywhere::PALETTE),
        KeyCode::Char('/') if is_free && event.modifiers.is_empty() => Some(&action::finding::SEARCH),
        _ => None,
    }
}

/// Whether a key means the question of the first page. The composer keeps the focus there, so that the first letters of
/// a message are not taken for commands; no message begins with the number of an option.
fn answers_first_page(app: &App, event: KeyEvent) -> bool {
    let KeyCode::Char(letter) = event.code else {
        return false;
    };
    if !event.modifiers.is_empty() || !app.asks_from_the_composer() {
        return false;
    }
    // Who began to write before the question could be read does not answer it.
    if app.now_ms.saturating_sub(app.asking.since_ms) < TOO_EARLY_MS {
        return false;
    }
    let number = letter.to_digit(10).and_then(|it| usize::try_from(it).ok());
    number.is_some_and(|it| (1..=app.options_waiting()).contains(&it))
}

/// Gives the key to the question that has the focus; `None`: it is not for the question.
fn form_key(app: &mut App, event: KeyEvent) -> Option<Vec<Effect>> {
    let place = app.question()?;
    let document = app.transcript.get(place)?;
    let View::Clarification(view) = document.view() else {
        return None;
    };
    let name = (app.turn_of(place), document.id.clone());
    if app.asking.sent.contains(&name) {
        return None;
    }
    let too_early = app.is_too_early();
    let decides = is_approval(document) && matches!(event.code, KeyCode::Char('y' | 'a' | 'A'));
    let form = app
        .asking
        .forms
        .entry(name.clone())
        .or_insert_with(|| Form::new(name.1.clone()));
    if too_early && decides && !form.is_typing() {
        return Some(Vec::new());
    }
    let skips = !is_approval(document) && matches!(event.code, KeyCode::Char('s' | 'o')) && event.modifiers.is_empty();
    if too_early && skips && app.asking.took_focus && !form.is_typing() {
        // The question came under the hands of somebody who began to write.
        focus_composer(app);
        return None;
    }
    match form.key(event, &view) {
        FormOutcome::Ignored => None,
        FormOutcome::Changed => Some(Vec::new()),
        FormOutcome::Answer(response) => {
            let turn = name.0;
            if !action::review::lets_out(app, turn, &response) {
                return Some(Vec::new());
            }
            app.asking.sent.insert(name);
            if app.asking.took_focus {
                focus_composer(app);
            }
            Some(vec![Effect::Send(Command::Answer { turn, response })])
        }
    }
}

fn chosen(app: &mut App, choice: Choice) -> Vec<Effect> {
    match choice {
        Choice::Mode(mode) => app.mode = mode,
        Choice::Model(name) => {
            app.say(say!("action-model-chosen", model = name.as_str()));
            app.model = Some(name);
        }
        Choice::Theme(name) => app.choose_theme(&name),
        Choice::Action(action, words) => {
            app.composer.commands.note(action.name);
            return action.go(app, &words);
        }
        Choice::Chip(way) => return action::writing::chip(app, way),
        Choice::Review(verdict, spot) => return action::review::judge(app, verdict, spot),
        Choice::Remark(text) => return action::review::remark(app, text),
        Choice::Branch(turn, is_whole) => return action::branch::go_to(app, turn, is_whole),
        Choice::Back(back) => return action::undo::go_back(app, back),
        Choice::Waiting(change) => action::writing::change_waiting(app, change),
        Choice::Custom(name) => {
            app.composer.field.set(&format!("/{name} "));
            focus_composer(app);
        }
        Choice::Draft(draft) => {
            app.composer.field.set(&draft);
            focus_composer(app);
        }
        Choice::Search(pattern) => app.seek(&pattern),
        Choice::Copy(words) => return action::copying::copy(app, words),
        Choice::Filter(words) => return action::finding::show_only(app, &words),
        Choice::Item(item) => action::reading::select(app, item),
        Choice::Open(path, line) => return vec![Effect::OpenFile { path, line }],
        Choice::Session(it) if it.elsewhere.is_empty() => return vec![Effect::Resume(it.id)],
        Choice::Session(it) => {
            // Another folder has its own settings, its own trust and its own sandbox.
            let line = format!("cd {} && sheaf --resume {}", shell_word(&it.folder), it.id);
            return vec![Effect::Copy {
                text: line,
                what: say!("copied-resume", folder = it.elsewhere),
            }];
        }
        Choice::Reworded(words) => return action::plan::written(app, words, false),
        Choice::Inserted(words) => return action::plan::written(app, words, true),
    }
    Vec::new()
}

/// As a shell reads it in one piece.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-~".contains(c);
    if text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Up and Down at the edge of the draft go through what was sent.
fn recall(app: &mut App, event: KeyEvent) -> bool {
    let field = &mut app.composer.field;
    let history = &mut app.composer.history;
    let text = match event.code {
        KeyCode::Up if event.modifiers.is_empty() && field.is_at_top() => history.older(&field.text()),
        KeyCode::Down if event.modifiers.is_empty() && history.at.is_some() && field.is_at_bottom() => history.newer(),
        _ => return false,
    };
    match text {
        Some(text) => {
            field.set(&text);
            true
        }
        None => false,
    }
}

fn paste(app: &mut App, text: &str) -> Vec<Effect> {
    if let Some(Layer::Prompt(prompt)) = app.layers.last_mut()
        && let Answer::Live(choice) = prompt.paste(text)
    {
        return chosen(app, choice);
    }
    if !app.layers.is_empty() {
        return Vec::new();
    }
    if let Some(place) = app.question()
        && let Some(document) = app.transcript.get(place)
        && let Some(form) = app
            .asking
            .forms
            .get_mut(&(app.transcript.exchanges[place.exchange].turn, document.id.clone()))
        && form.is_typing()
    {
        form.paste(text);
        return Vec::new();
    }
    if app.focus == Focus::Transcript {
        focus_composer(app);
    }
    // A file that was dragged onto the terminal is a picture, or its path as it was written.
    if let Some(path) = picture::dragged(text, app.place.home.as_deref()) {
        return vec![Effect::Picture(picture::Source::Path(path, text.to_owned()))];
    }
    // Where a terminal has pictures only in its clipboard, its paste is empty.
    if text.is_empty() {
        return vec![Effect::Picture(picture::Source::Clipboard)];
    }
    app.composer.field.paste(text);
    let mut effects = mention::look(app);
    effects.extend(command::look(app));
    effects
}

/// The left button went down: perhaps text is going to be marked, perhaps it is a click.
fn press(app: &mut App, x: u16, y: u16) {
    app.selection = None;
    if app.mouse != Mouse::Full || !app.layers.is_empty() {
        return;
    }
    app.clicks.press(app.now_ms, (x, y));
    if !app.layout.transcript.contains(&usize::from(y)) {
        focus_composer(app);
        point_in_draft(app, x, y, false);
        if app.clicks.count == 2 && app.clicks.in_draft {
            app.composer.field.select_word();
        }
        return;
    }
    app.selection = app.point_at(x, y).map(|it| Selection { from: it, to: it });
}

/// The caret goes where the pointer is, if that is in the draft; with `selecting` the selection's end does.
fn point_in_draft(app: &mut App, x: u16, y: u16, selecting: bool) {
    let rows = app.layout.composer.clone();
    app.clicks.in_draft = selecting || rows.contains(&usize::from(y));
    if app.clicks.in_draft {
        let y = usize::from(y).clamp(rows.start, rows.end.saturating_sub(1).max(rows.start)) - rows.start;
        let x = x.saturating_sub(super::view::DRAFT as u16);
        app.composer.field.point(x, y as u16, rows.len() as u16, selecting);
    }
}

fn drag(app: &mut App, x: u16, y: u16) {
    if app.clicks.in_draft {
        point_in_draft(app, x, y, true);
        return;
    }
    if app.selection.is_none() {
        return;
    }
    let shown = app.layout.transcript.clone();
    // At an edge the conversation moves along.
    let by = match usize::from(y) {
        it if it <= shown.start => -1,
        it if it + 1 >= shown.end => 1,
        _ => 0,
    };
    if by != 0 {
        app.with_pane(|pane, context| pane.scroll(by, context));
    }
    let y = usize::from(y).clamp(shown.start, shown.end.saturating_sub(1).max(shown.start)) as u16;
    let point = app.point_at(x, y);
    if let (Some(selection), Some(point)) = (&mut app.selection, point) {
        selection.to = point;
    }
}

/// The left button went up: what is marked is copied; where nothing is, it was a click.
fn release(app: &mut App, x: u16, y: u16) -> Vec<Effect> {
    if std::mem::take(&mut app.clicks.in_draft) {
        return Vec::new();
    }
    let Some(selection) = app.selection else {
        return Vec::new();
    };
    if selection.is_empty() {
        let marked = match app.clicks.count {
            2 => app.word_at(selection.from),
            3 => app.line_at(selection.from),
            _ => None,
        };
        app.selection = marked;
        if marked.is_none() {
            return click(app, x, y);
        }
    }
    match app.selected_text() {
        Some(text) => {
            let count = text.chars().count();
            let what = say!("copied-characters", count = count);
            vec![Effect::Copy { text, what }]
        }
        None => Vec::new(),
    }
}

fn shown_at(app: &App, y: u16) -> Option<Shown> {
    let at = usize::from(y).checked_sub(app.layout.transcript.start)?;
    app.pane.lines.get(at).copied()
}

/// A click selects; where one already was, it opens the file that is named there.
fn click(app: &mut App, x: u16, y: u16) -> Vec<Effect> {
    let shown = shown_at(app, y);
    let Some(item) = shown.and_then(|it| it.item()) else {
        focus_composer(app);
        return Vec::new();
    };
    let was_here = app.focus == Focus::Transcript && app.pane.selected == Some(item) && !app.clicks.is_arrival();
    let named = shown.as_ref().and_then(|it| app.pane.row(it)).and_then(|(row, _)| {
        let column = usize::from(x).saturating_sub(app.layout.gutter);
        named_at(row, column)
    });
    action::reading::select(app, item);
    match named {
        Some((path, line)) if was_here => vec![Effect::OpenFile { path, line }],
        Some((path, line)) => {
            let place = line.map_or_else(|| path.clone(), |it| format!("{path}:{it}"));
            app.say(say!("action-click-again", path = place));
            Vec::new()
        }
        None => Vec::new(),
    }
}

/// The file that a row names at a column.
fn named_at(row: &crate::text::Row, column: usize) -> Option<places::Named> {
    let text = row.plain();
    let before = width::cut(&text, column).len();
    places::place_at(&text, before)
}

fn answered(app: &mut App, reply: Reply) -> Vec<Effect> {
    match reply {
        Reply::Background(colour) => {
            if app.themes.seen.reported == Some(colour) {
                return Vec::new();
            }
            app.themes.seen.reported = Some(colour);
            let name = app.themes.chosen.clone();
            app.choose_theme(&name);
            if app.themes.seen.remembered == Some(colour) {
                Vec::new()
            } else {
                vec![Effect::Remember(colour)]
            }
        }
        Reply::Keyboard(_) => {
            app.has_keyboard_protocol = true;
            Vec::new()
        }
        // Which colours it has now is asked, as at the beginning.
        Reply::Scheme => vec![Effect::AskColours],
        Reply::Attributes { sixel } => {
            if sixel {
                app.draws_by(Way::Sixel);
            }
            Vec::new()
        }
        Reply::Named(named) => {
            app.terminal_is(named);
            Vec::new()
        }
        Reply::Cell(wide, high) => {
            app.cells_are(Some((wide, high)));
            Vec::new()
        }
    }
}

fn follow(app: &mut App, entries: &[Arc<Entry>]) -> Vec<Effect> {
    let mut finished = false;
    let had_progress = app.transcript.progress.is_some();
    for entry in entries {
        let moved = app.transcript.apply(entry);
        let is_growth = match moved.change {
            // A form that grows its questions begins to wait for somebody.
            Change::Grew(document) => app
                .transcript
                .get(crate::transcript::Place {
                    exchange: moved.exchange,
                    document,
                })
                .is_some_and(|it| it.kind != Kind::Clarification),
            Change::Nothing | Change::Thinking => true,
            _ => false,
        };
        if !is_growth || had_progress {
            app.chrome = None;
        }
        if let Event::Branch(_) = &entry.event {
            branched(app);
        }
        app.pane.moved(moved, &app.transcript);
        if let Some(search) = &mut app.search {
            search.is_stale = true;
        }
        if let Event::Notice(notice) = &entry.event
            && (notice.severity == Severity::Error
                || notice.code.starts_with("session-")
                || OWN_NOTICES.contains(&notice.code.as_str()))
        {
            // What is lost, or will be: repairs of a stream are only for those who look for them.
            app.say(notice.message.lines().next().unwrap_or_default());
            match notice.code.as_str() {
                "session-not-stored" => app.is_unstored = true,
                "session-stored-again" => app.is_unstored = false,
                _ => {}
            }
            app.chrome = None;
        }
        if let Event::DocumentEnd { document, .. } = &entry.event
            && let Some(mode) = agreed_mode(app, moved.exchange, document)
        {
            app.mode = mode;
            app.chrome = None;
        }
        if let Event::DocumentStart(start) = &entry.event
            && start.metadata.get("role").is_some_and(|it| it == "user")
            && !app.composer.said.is_empty()
        {
            app.composer.said.remove(0);
            app.chrome = None;
        }
        // The answer was over before it was heard: it is a message of its own now.
        if let Event::UserMessage(message) = &entry.event
            && app.composer.said.first() == Some(&message.content)
        {
            app.composer.said.remove(0);
            app.chrome = None;
        }
        if let Change::Finished = moved.change {
            finished = true;
        }
    }
    app.asking.submitted_ms = None;
    announce(app);
    if finished && !app.is_busy() {
        if was_stopped(app) && !app.composer.said.is_empty() {
            take_back_queue(app);
            return Vec::new();
        }
        app.composer.said.clear();
    }
    if finished && !app.is_busy() && !app.composer.queue.is_empty() && app.transcript.waiting().is_none() {
        if was_stopped(app) {
            take_back_queue(app);
            return Vec::new();
        }
        let submit = app.composer.queue.remove(0);
        return vec![Effect::Send(Command::Submit(submit))];
    }
    Vec::new()
}

/// Another branch is shown: places mean other documents now.
fn branched(app: &mut App) {
    let filter = std::mem::take(&mut app.pane.filter);
    app.pane.reset();
    app.pane.filter = filter;
    app.pane.list(0, &app.transcript);
    (app.search, app.selection) = (None, None);
    app.asking.announced = None;
    app.chrome = None;
    let last = app.transcript.exchanges.len().saturating_sub(1);
    let shown = app.pane.items.partition_point(|it| it.exchange() < last);
    if let Some(inline) = &mut app.inline {
        inline.flowed = super::inline::Flowed::default();
        inline.printed = shown;
        let text = Clean::line(say!("inline-branched"));
        inline.aside.push_str(&format!("\r\n  ── {text} ──\r\n"));
    }
}

fn was_stopped(app: &App) -> bool {
    let ending = app
        .transcript
        .exchanges
        .last()
        .and_then(|it| it.response.ending.as_ref());
    ending.is_some_and(|it| it.finish_reason == FinishReason::Cancelled)
}

/// Who stops an answer wants to think again: what was queued behind it goes back into the draft, in front of it.
fn take_back_queue(app: &mut App) {
    let mut texts: Vec<_> = app.composer.said.drain(..).collect();
    texts.extend(app.composer.queue.drain(..).map(|it| it.message.content));
    texts.extend(Some(app.composer.field.text()).filter(|it| !it.is_empty()));
    app.composer.field.set(&texts.join("\n"));
    app.chrome = None;
}

/// The mode that the user has just agreed to, here: what comes next is said in it, too.
fn agreed_mode(app: &App, exchange: usize, document: &DocumentId) -> Option<Mode> {
    let exchange = app.transcript.exchanges.get(exchange)?;
    if !app.asking.sent.contains(&(exchange.turn, document.clone())) {
        return None;
    }
    let View::Clarification(it) = exchange.response.get(document)?.view() else {
        return None;
    };
    let planned = it.subject?.get("metadata")?;
    let mut chosen = it.answers.iter().flat_map(|it| &it.selected_option_ids);
    if planned.get("toolName")?.as_str() != Some("switch_mode") || !chosen.any(|it| it == "allow_once") {
        return None;
    }
    Mode::parse(planned.get("arguments")?.get("target_mode_id")?.as_str()?)
}

/// Brings a new question, or a plan that may be built, to the reader's notice, without taking the keys from somebody who writes.
fn announce(app: &mut App) {
    let waiting = app.transcript.waiting().or_else(|| app.plan_to_build());
    let Some(place) = waiting else {
        app.asking.announced = None;
        if app.asking.took_focus {
            focus_composer(app);
        }
        return;
    };
    let Some(document) = app.transcript.get(place) else {
        return;
    };
    let name = (app.turn_of(place), document.id.clone());
    if app.asking.announced.as_ref() == Some(&name) {
        return;
    }
    if document.kind == Kind::Clarification {
        app.asking
            .forms
            .entry(name.clone())
            .or_insert_with(|| Form::new(name.1.clone()));
    }
    app.asking.announced = Some(name);
    app.asking.since_ms = app.now_ms;
    // What stands before any message is the first page: there the composer takes input from the first frame.
    let is_first_page = app.turn_of(place) == Turn(0) && !is_approval(document);
    if !is_first_page && app.focus == Focus::Composer && app.composer.field.is_empty() && app.layers.is_empty() {
        app.focus = Focus::Transcript;
        app.asking.took_focus = true;
        app.pane.selected = Some(Item::Document(place));
    }
}

/// Puts another link in the place of this one. What waited for the old one goes to the new one.
fn switch(app: &mut App, link: Arc<dyn Link>) -> Vec<Effect> {
    app.about = link.about();
    app.link = link;
    app.transcript = super::earlier::beginning(app.link.log(), app.reads_whole).0;
    app.looked_back = 0;
    app.pane.reset();
    if let Some(inline) = &mut app.inline {
        inline.flowed = super::inline::Flowed::default();
        inline.printed = 0;
    }
    (app.search, app.selection) = (None, None);
    app.asking = super::app::Asking::default();
    app.model = None;
    app.is_unstored = false;
    app.focus = Focus::Composer;
    if app.composer.queue.is_empty() {
        return Vec::new();
    }
    vec![Effect::Send(Command::Submit(app.composer.queue.remove(0)))]
}

fn done(app: &mut App, outcome: Outcome) -> Vec<Effect> {
    match outcome {
        Outcome::Copied(Ok(way)) | Outcome::Saved(Ok(way)) => app.say(way),
        Outcome::Copied(Err(why)) | Outcome::Saved(Err(why)) | Outcome::Failed(why) => app.say(why),
        Outcome::Osc52 { bytes, what } => {
            app.aside.extend_from_slice(&bytes);
            app.say(say!("news-copied-by-terminal", what = what));
        }
        Outcome::Cited { turn, document, found } => {
            // A recording was made elsewhere: what is not here says nothing about it.
            let is_elsewhere = app.about.is_replay && found == Citation::Missing;
            let found = if is_elsewhere { Citation::Unread } else { found };
            app.asking.cited.insert((turn, document), found);
        }
        Outcome::PictureMade(id, made) => app.take_picture(id, made),
        Outcome::PictureRead { turn, document, data } => {
            if let Some(place) = app.transcript.place_of_document(turn, &document) {
                app.pane.forget(Item::Document(place));
            }
            app.images.take(turn, document, data);
        }
        Outcome::Models(Ok(names)) if names.is_empty() => {
            app.say(say!("news-no-models"));
        }
        Outcome::Models(Ok(names)) => {
            app.toast = None;
            let picker = Picker::models(&names, app.model_name());
            app.layers.push(Layer::Picker(picker));
        }
        Outcome::Models(Err(why)) => app.say(why),
        Outcome::Files { pattern, files } => mention::offer(app, &pattern, files),
        Outcome::Symbols { pattern, symbols } => mention::offer_symbols(app, &pattern, &symbols),
        Outcome::Commands(commands) => command::found(app, commands),
        Outcome::Context(Ok(parts)) => {
            app.toast = None;
            app.layers.push(Layer::Page(Page::context(&parts, app.window())));
        }
        Outcome::Sessions(Ok(kept)) => {
            let sessions = Sessions::new(kept, app.now_ms);
            let wanting = sessions.wanting();
            app.layers.push(Layer::Sessions(sessions));
            return wanting.map(Effect::PreviewSession).into_iter().collect();
        }
        Outcome::SessionsFound { words, found } => {
            if let Some(Layer::Sessions(it)) = app.layers.last_mut() {
                it.take(&words, found);
                return it.wanting().map(Effect::PreviewSession).into_iter().collect();
            }
        }
        Outcome::SessionChanged { failed, kept } => {
            if let Some(Layer::Sessions(it)) = app.layers.last_mut() {
                // A list that cannot be had now is as it was.
                if let Some(kept) = kept {
                    it.renew(kept);
                }
            }
            if let Some(why) = failed {
                app.say(why);
            }
        }
        Outcome::SessionPreview { id, said } => {
            if let Some(Layer::Sessions(it)) = app.layers.last_mut() {
                it.show(id, said);
            }
        }
        Outcome::Changes { on, changes } => return action::undo::offer(app, on, &changes),
        Outcome::Restoration { of, found } => {
            if let Some(Layer::Rewind(rewind)) = app.layers.last_mut() {
                rewind.tell(&of, found);
            }
        }
        Outcome::Sandbox(Ok(sandbox)) => {
            app.toast = None;
            app.layers.push(Layer::Page(Page::sandbox(&sandbox)));
        }
        Outcome::Permissions(Ok(permissions)) => {
            app.toast = None;
            app.layers.push(Layer::Page(Page::permissions(&permissions)));
        }
        Outcome::Context(Err(why))
        | Outcome::Sandbox(Err(why))
        | Outcome::Permissions(Err(why))
        | Outcome::Sessions(Err(why)) => app.say(why),
        Outcome::Edited(Ok(text)) => app.composer.field.set(text.trim_end_matches('\n')),
        Outcome::ChipEdited(Ok(text)) => app.composer.field.change_chip(&text),
        Outcome::ChipEdited(Err(why)) => app.say(why),
        Outcome::Status(said) => app.status.said(said),
        // Another conversation may have taken the place meanwhile.
        Outcome::SpentEarlier { log, .. } if !Arc::ptr_eq(&log, app.link.log()) => {}
        Outcome::SpentEarlier { spent, .. } => {
            let before = app.link.log().recent().map_or(Turn(0), |it| it.turn);
            app.transcript.count_earlier(spent, before);
            app.chrome = None;
        }
        Outcome::Picture(Ok(it)) => {
            let picture::Picture { name, bytes, data } = it;
            app.composer.field.add(Chip::Picture { name, bytes, data });
        }
        Outcome::Picture(Err((why, text))) => {
            match text {
                // It was only a path.
                Some(text) => app.composer.field.paste(&text),
                None => app.say(why),
            }
        }
        Outcome::History {
            texts,
            is_everywhere: true,
        } => {
            if texts.is_empty() {
                app.say(say!("news-nothing-sent"));
            } else {
                app.layers.push(Layer::Picker(Picker::history(&texts)));
            }
        }
        Outcome::History {
            texts,
            is_everywhere: false,
        } => app.composer.history.begin(texts),
        Outcome::Edited(Err(why))
        | Outcome::PlanEdited { text: Err(why), .. }
        | Outcome::HunkEdited { text: Err(why), .. } => app.say(why),
        Outcome::HunkEdited {
            turn,
            document,
            index,
            text: Ok(text),
        } => return action::review::edited(app, turn, &document, index, &text),
        Outcome::PlanEdited {
            turn,
            document,
            text: Ok(text),
        } => return action::plan::edited(app, turn, document, &text),
    }
    Vec::new()
}

impl App {
    /// Takes a theme by name, `auto` by the background, adapted to what the terminal says.
    pub fn choose_theme(&mut self, name: &str) {
        name.clone_into(&mut self.themes.chosen);
        self.theme = self.themes.resolve(self.settings.color);
        self.look_version += 1;
    }
}

impl super::app::Themes {
    pub fn resolve(&self, colour: bool) -> theme::Theme {
        let name = theme::choose(&self.chosen, self.seen, &self.surroundings).to_owned();
        let place = crate::config::Place::Flag("--theme".into());
        let (theme, _) = theme::load(&name, &self.folder, &place);
        let depth = if colour {
            self.surroundings.depth()
        } else {
            theme::Depth::None
        };
        let theme = theme.with_syntax(&self.syntax).with_depth(depth);
        match self.seen.reported {
            Some(background) => theme.adapted(background),
            None => theme,
        }
    }
}

impl super::app::History {
    /// What was sent before the program began.
    fn begin(&mut self, before: Vec<String>) {
        let now = std::mem::replace(&mut self.sent, before);
        for text in now {
            self.keep(&text);
        }
    }

    /// Remembers a text once, as the newest.
    pub fn keep(&mut self, text: &str) {
        self.at = None;
        if text.trim().is_empty() {
            return;
        }
        self.sent.retain(|it| it != text);
        self.sent.push(text.to_owned());
    }

    fn older(&mut self, draft: &str) -> Option<String> {
        let at = match self.at {
            None => {
                draft.clone_into(&mut self.draft);
                self.sent.len().checked_sub(1)?
            }
            Some(at) => at.checked_sub(1)?,
        };
        self.at = Some(at);
        self.sent.get(at).cloned()
    }

    fn newer(&mut self) -> Option<String> {
        let at = self.at? + 1;
        if at >= self.sent.len() {
            self.at = None;
            return Some(std::mem::take(&mut self.draft));
        }
        self.at = Some(at);
        self.sent.get(at).cloned()
    }
}
