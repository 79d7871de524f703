//! Actions on the draft.

use crossterm::event::{KeyCode, KeyEvent};
use serde_json::{Value, json};

use super::{ACTIONS, find_slash, focus::focus_composer, own_files, plan_edits, reading::unfold_last};
use crate::{
    config::nearest,
    protocol::{ClarificationResponse, Command, Document, Kind, Message, Mode, PASTES, Submit, View},
    t,
    transcript::is_approval,
    tui::{
        app::{APPROVALS, ASK, Action, App, ChipAction, Effect, QueueEdit},
        editor::field::{Chip, Field},
        overlays::{Page, Picker, QueueList, Tasks},
        picture::Source,
        prompt_store::{stash_of, with_stash},
    },
};

pub const SEND: Action = Action::new("send", "", |app, word| {
    if word != AS_MESSAGE
        && let Some(line) = app.composer.to_remember()
    {
        return own_files::remember(app, &line, Some((&SEND, AS_MESSAGE)));
    }
    send(app, SendTime::Now)
});

/// The argument with which the draft is a message, whatever it begins with.
const AS_MESSAGE: &str = "message";

pub const QUEUE: Action = Action::new("queue", "", |app, _| send(app, SendTime::Later));

/// Puts a line break into the draft.
pub const NEWLINE: Action = Action::new("newline", "", |app, _| {
    app.composer.field.newline();
    Vec::new()
});

pub const CLEAR: Action = Action::new("clear", "", |app, _| {
    app.composer.history.keep(&app.composer.field.text());
    app.composer.field.clear();
    Vec::new()
});

/// Puts the draft aside, or restores the one that was put aside.
pub const STASH: Action = Action::new("stash", "", |app, _| {
    let stored = (!app.composer.field.is_empty()).then(|| app.composer.field.stored());
    match (stored, app.composer.stash.take()) {
        (None, None) => return app.toast(t!("action-no-stash")),
        (None, Some(stash)) => {
            app.composer.field.restore(&stash);
            app.composer.stash = stash_of(&stash);
            // "Stashed" is no longer true.
            app.toast = None;
        }
        // Two drafts change places: nothing is lost.
        (Some(draft), stash) => {
            app.composer.field.clear();
            if let Some(stash) = &stash {
                app.composer.field.restore(stash);
            }
            app.composer.stash = Some(match stash.as_ref().and_then(stash_of) {
                Some(other) => with_stash(draft, &other),
                None => draft,
            });
            return app.toast(t!("action-stashed"));
        }
    }
    Vec::new()
});

pub const EDITOR: Action = Action::new("editor", "", |app, _| match app.composer.field.chip_here() {
    Some((_, Chip::Text(text))) => vec![Effect::EditChip(text.clone())],
    Some((_, Chip::Picture { .. })) | None => vec![Effect::EditDraft(app.composer.field.text())],
});

pub const HISTORY: Action = Action::new("history", "history", |app, _| {
    vec![Effect::History(app.composer.field.version())]
});

pub const PICTURE: Action = Action::new("picture", "", |_, _| vec![Effect::Picture(Source::Clipboard)]);

/// On a chip: what one can do with it; elsewhere unfolds what was folded last.
pub const UNFOLD: Action = Action::new("unfold", "", |app, _| match app.composer.field.chip_here() {
    Some((_, chip)) => {
        let is_text = matches!(chip, Chip::Text(_));
        app.open(Picker::chip(is_text))
    }
    None => unfold_last(app),
});

/// Sends the running command to the background; in a draft the caret goes back by a character.
pub const BACKGROUND: Action = Action::new("background", "", |app, _| {
    if !app.composer.field.is_empty() {
        app.composer.field.key(KeyEvent::from(KeyCode::Left));
        return Vec::new();
    }
    let is_command = |it: &Document| it.kind == Kind::TerminalCommand && it.is_open();
    let running = app
        .conversation
        .transcript
        .exchanges
        .last()
        .filter(|_| app.conversation.about.runs);
    if running.is_some_and(|it| it.response.documents.iter().any(is_command)) {
        return vec![Effect::Send(Command::Background)];
    }
    // Those that are there already are what is meant then.
    match Tasks::new(&app.conversation.transcript) {
        Some(tasks) => app.open(tasks),
        None => app.toast(t!("action-no-running-command")),
    }
});

/// Lists the commands in the background.
pub const TASKS: Action = Action::new("tasks", "tasks", |app, _| {
    match Tasks::new(&app.conversation.transcript) {
        Some(tasks) => app.open(tasks),
        None => app.toast(t!("tasks-none")),
    }
});

pub const WAITING: Action = Action::new("queued", "queue", |app, text| {
    if !text.is_empty() {
        return say(app, Message::user(text), SendTime::Later);
    }
    if app.composer.queue.is_empty() {
        app.toast(t!("action-no-message-waits"));
    } else {
        let texts = app.composer.queue.iter().map(|it| it.message.content.as_str());
        app.overlays.push(QueueList::new(texts));
    }
    Vec::new()
});

pub const VIM: Action = Action::new("vim", "vim", |app, _| {
    let field = &mut app.composer.field;
    field.vim = match field.vim {
        Some(_) => None,
        None => Some(crate::tui::editor::vim::Vim::default()),
    };
    let is_on = field.vim.is_some();
    app.toast(if is_on {
        t!("action-vim-on")
    } else {
        t!("action-vim-off")
    })
});

/// Applies an action to the chip at the caret.
pub fn chip(app: &mut App, action: ChipAction) -> Vec<Effect> {
    match (action, app.composer.field.chip_here()) {
        (ChipAction::View, Some((_, Chip::Text(text)))) => {
            let page = Page::pasted(text);
            app.overlays.push(page);
        }
        (ChipAction::Edit, Some((_, Chip::Text(text)))) => return vec![Effect::EditChip(text.clone())],
        (ChipAction::Unfold, Some(_)) => {
            app.composer.field.unfold();
        }
        (ChipAction::Remove, Some(_)) => app.composer.field.remove_chip(),
        (ChipAction::View | ChipAction::Edit | ChipAction::Unfold | ChipAction::Remove, _) => {}
    }
    Vec::new()
}

/// Changes the messages that wait; one may have gone meanwhile.
pub fn change_waiting(app: &mut App, edit: QueueEdit) {
    let queue = &mut app.composer.queue;
    match edit {
        QueueEdit::Edit(at) if at < queue.len() => {
            let message = queue.remove(at).message;
            app.composer.field.put_before(&message);
            focus_composer(app);
        }
        QueueEdit::Remove(at) if at < queue.len() => drop(queue.remove(at)),
        QueueEdit::Earlier(at) if at > 0 && at < queue.len() => queue.swap(at, at - 1),
        QueueEdit::Edit(_) | QueueEdit::Remove(_) | QueueEdit::Earlier(_) => {}
    }
}

/// The way of a message while an answer is running.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SendTime {
    /// Into the answer, if it hears.
    Now,
    /// Behind it.
    Later,
}

fn send(app: &mut App, way: SendTime) -> Vec<Effect> {
    if app.composer.field.take_backslash() {
        app.composer.field.newline();
        return Vec::new();
    }
    let whole = app.composer.field.text();
    let text = whole.trim();
    if text.is_empty() {
        // A recording may wait for it.
        let next = app.conversation.about.is_replay.then_some(Effect::Send(Command::Next));
        return next.into_iter().collect();
    }
    // A space before it makes text of it.
    let is_text = whole.starts_with(' ');
    if let Some(line) = text.strip_prefix('!').filter(|_| !is_text) {
        let line = line.to_owned();
        return run(app, &line);
    }
    let command = command_of(text).filter(|_| !is_text);
    // The agent knows the prompts of servers.
    if let Some((word, rest)) = command.filter(|it| !it.0.starts_with("mcp__")) {
        if find_slash(word).is_none()
            && let Some(custom) = app.composer.commands.custom(word)
        {
            let message = custom.message(text, rest, !app.conversation.about.runs);
            if is_written_elsewhere(app) {
                return Vec::new();
            }
            let noted = Effect::NoteSent(text.to_owned());
            let counted = app.composer.commands.note(&format!("/{word}"));
            app.composer.history.keep(text);
            app.composer.field.clear_sent();
            app.viewport.pane.go_to_end();
            focus_composer(app);
            let mut effects = vec![counted];
            effects.extend(say(app, message, way));
            effects.push(noted);
            return effects;
        }
        let Some(action) = find_slash(word) else {
            let custom = app.composer.commands.custom.iter().map(|it| it.name.as_str());
            let known = ACTIONS
                .iter()
                .map(|it| it.slash)
                .filter(|it| !it.is_empty())
                .chain(custom);
            let said = match nearest(word, known) {
                Some(near) => t!("action-no-command-near", word = word, near = near),
                None => t!("action-no-command", word = word),
            };
            // Another command that is typed next takes the place of the word; a message takes the place of the whole line.
            app.composer.history.keep(text);
            app.composer.field.select_first_word();
            app.composer.commands.is_unknown = true;
            return app.toast(said);
        };
        app.composer.history.keep(text);
        let counted = app.composer.commands.note(action.name);
        let rest = rest.to_owned();
        app.composer.field.clear_sent();
        let mut effects = vec![counted];
        effects.extend(action.go(app, &rest));
        return effects;
    }
    if is_written_elsewhere(app) {
        return Vec::new();
    }
    let pastes = pastes(&app.composer.field, text);
    let text = text.to_owned();
    let pictures = app.composer.field.pictures();
    app.composer.history.keep(&text);
    app.composer.field.clear_sent();
    app.viewport.pane.go_to_end();
    focus_composer(app);
    let mut message = Message::user(text.clone());
    if !pictures.is_empty() {
        message.extra.insert("images".into(), pictures.into());
    }
    if !pastes.is_empty() {
        message.extra.insert(PASTES.to_owned(), pastes.into());
    }
    let mut effects = say(app, message, way);
    effects.push(Effect::NoteSent(text));
    effects
}

/// The places of the pasted texts in the trimmed draft, as a message names them.
fn pastes(field: &Field, text: &str) -> Vec<Value> {
    let whole = field.text();
    let before = whole.len() - whole.trim_start().len();
    let within = |at: usize| at.saturating_sub(before).min(text.len());
    let ranges = field.pastes().into_iter();
    let ranges = ranges.map(|it| (within(it.start), within(it.end)));
    ranges.filter(|it| it.0 < it.1).map(|it| json!([it.0, it.1])).collect()
}

/// Runs a command of the user's, behind `!`; behind `!!` the model is not told of it.
fn run(app: &mut App, line: &str) -> Vec<Effect> {
    let (line, is_shown) = match line.strip_prefix('!') {
        Some(line) => (line.trim(), false),
        None => (line.trim(), true),
    };
    if line.is_empty() {
        return app.toast(t!("action-run-how"));
    }
    if !app.conversation.about.runs {
        let text = t!("action-runs-nothing", peer = app.conversation.peer());
        return app.toast(text);
    }
    if app.conversation.is_busy() {
        return app.toast(t!("action-run-later"));
    }
    let typed = app.composer.field.text().trim().to_owned();
    app.composer.history.keep(&typed);
    app.composer.field.clear_sent();
    let run = run_command(app, &typed, line, is_shown);
    vec![run, Effect::NoteSent(typed)]
}

/// The message that opens a turn of the user's own, made of the typed text.
pub fn own(app: &mut App, typed: &str) -> Submit {
    app.viewport.pane.go_to_end();
    focus_composer(app);
    app.questions.submitted_ms = Some(app.now_ms);
    prepared(app, Message::user(typed))
}

/// A message with the effort and the approvals that the composer shows.
pub fn prepared(app: &App, mut message: Message) -> Submit {
    message.extra.shift_remove(APPROVALS);
    if let Some(effort) = app.composer.effort {
        message.extra.insert(EFFORT.to_owned(), effort.into());
    }
    if app.composer.asks_first && app.conversation.about.hears {
        message.extra.insert(APPROVALS.to_owned(), ASK.into());
    }
    app.composer.submit(message)
}

/// Has a command run, which was written like this.
pub fn run_command(app: &mut App, typed: &str, line: &str, is_shown: bool) -> Effect {
    let submit = own(app, typed);
    Effect::Send(Command::Run {
        submit,
        line: line.to_owned(),
        is_shown,
    })
}

/// The member of a message that says how hard the model is to think about it.
const EFFORT: &str = "effort";

/// Sends the answers that were given to the open form so far, as a message is sent instead of the others.
fn send_given(app: &mut App) -> Option<ClarificationResponse> {
    let place = app.conversation.transcript.open_question()?;
    let document = app.conversation.transcript.get(place).filter(|it| !is_approval(it))?;
    let View::Clarification(view) = document.view() else {
        return None;
    };
    let name = (app.conversation.turn_of(place), document.id.clone());
    let response = app.questions.forms.get(&name)?.given(&view)?;
    app.questions.sent.insert(name).then_some(response)
}

/// Returns true, with a toast, if another program writes the conversation: a message stays in the draft.
fn is_written_elsewhere(app: &mut App) -> bool {
    let about = &app.conversation.about;
    let Some(command) = &about.written_elsewhere else {
        return false;
    };
    let text = t!(
        "action-not-sent",
        peer = app.conversation.peer(),
        command = command.as_str()
    );
    app.toast(text);
    true
}

/// Puts messages that were not sent back in front of the draft.
pub fn take_back(app: &mut App, messages: &[Message]) {
    for message in messages.iter().rev() {
        app.composer.field.put_before(message);
    }
    app.viewport.bars = None;
}

/// Takes the first message of a program's start, or keeps it in the draft if it cannot be sent here.
pub fn open_with(app: &mut App, text: String) -> Vec<Effect> {
    if is_written_elsewhere(app) {
        take_back(app, &[Message::user(text)]);
        return Vec::new();
    }
    // It may be a file's text, and nothing runs that nobody has seen.
    if text.trim_start().starts_with('!') {
        app.questions.submitted_ms = None;
        take_back(app, &[Message::user(text.trim())]);
        return app.toast(t!("action-run-drafted"));
    }
    // `sheaf /init` is what was typed there: a command, and never a message because of a slip.
    let word = command_of(text.trim()).map(|it| it.0).filter(|_| !text.contains('\n'));
    match word {
        Some(word) if find_slash(word).is_some() => send_line(app, text.trim()),
        // The agent knows the prompts of servers. What files hold has to be read first.
        Some(word) if !word.starts_with("mcp__") => vec![Effect::OpenWith(text.trim().to_owned())],
        Some(_) | None => begin(app, text),
    }
}

/// Takes the first line of a program's start, which begins with a slash, once the commands of files are known.
pub fn open_with_command(app: &mut App, line: String) -> Vec<Effect> {
    let is_there = command_of(&line).is_some_and(|(word, _)| app.composer.commands.custom(word).is_some());
    if !is_there || !app.conversation.about.runs {
        return send_line(app, &line);
    }
    app.composer.history.keep(&line);
    begin(app, line)
}

/// Sends a line as if it were typed. What is in the draft stays there, behind the line if that cannot be sent.
fn send_line(app: &mut App, line: &str) -> Vec<Effect> {
    app.questions.submitted_ms = None;
    let draft = (!app.composer.field.is_empty()).then(|| app.composer.field.stored());
    app.composer.field.set(line);
    let effects = send(app, SendTime::Now);
    if let Some(draft) = draft {
        let is_sent = app.composer.field.is_empty();
        app.composer.field.restore(&draft);
        app.composer.commands.is_unknown = false;
        if !is_sent {
            take_back(app, &[Message::user(line)]);
        }
    }
    effects
}

/// Opens the conversation with a message that was written before it.
fn begin(app: &App, text: String) -> Vec<Effect> {
    let message = if app.conversation.about.runs {
        Message::typed_line(text)
    } else {
        Message::user(text)
    };
    vec![Effect::Send(Command::Begin(app.composer.submit(message)))]
}

/// Gives a message to whoever answers.
fn say(app: &mut App, message: Message, way: SendTime) -> Vec<Effect> {
    let message = plan_edits::with_edits(app, message);
    // A command is worked out before it is sent, so it is a message of its own.
    let is_command = message.command().is_some();
    // The answer that was stopped takes nothing any more, so the message is the next one.
    if way == SendTime::Now && app.conversation.is_stopping() && !is_written_elsewhere(app) {
        app.questions.submitted_ms = Some(app.now_ms);
        return vec![Effect::Send(Command::Submit(prepared(app, message)))];
    }
    if way == SendTime::Now && app.conversation.is_busy() && app.conversation.about.hears && !is_command {
        app.composer.said.push(message.content.clone());
        // Answers that were given go along with it: the next request has both.
        let given = send_given(app);
        let mut submit = prepared(app, message);
        submit.message.clarification_response = given;
        return vec![Effect::Send(Command::Steer(submit))];
    }
    submit(app, message)
}

/// Sends a message now, or puts it behind the running answer.
pub fn submit(app: &mut App, message: Message) -> Vec<Effect> {
    submit_in(app, message, None)
}

/// The same in another mode than the composer's.
pub fn submit_in(app: &mut App, message: Message, mode: Option<Mode>) -> Vec<Effect> {
    if is_written_elsewhere(app) {
        take_back(app, &[message]);
        return Vec::new();
    }
    let mut submit = prepared(app, message);
    submit.mode = mode.unwrap_or(submit.mode);
    if app.conversation.is_busy() {
        app.composer.queue.push(submit);
        return Vec::new();
    }
    app.questions.submitted_ms = Some(app.now_ms);
    vec![Effect::Send(Command::Submit(submit))]
}

/// `/word rest`; a path is no command.
fn command_of(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('/')?;
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let is_word = !word.is_empty()
        && word
            .chars()
            .all(|it| it.is_alphanumeric() || matches!(it, '-' | '_' | ':' | '.'));
    is_word.then_some((word, rest.trim()))
}
