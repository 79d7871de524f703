//! What can be done with a draft.

use super::{Action, everywhere::focus_composer, find_slash};
use crate::{
    protocol::{Command, Message, Submit},
    tui::{app::App, effect::Effect},
};

pub const SEND: Action = Action {
    name: "send",
    slash: "",
    hint: "send",
    about: "send the message; while an answer comes it is heard at the next step, or waits for its turn where that cannot be; a backslash before the caret breaks the line",
    run: |app, _| send(app, Way::Now),
};

pub const QUEUE: Action = Action {
    name: "queue",
    slash: "",
    hint: "newline",
    about: "break the line; while an answer comes: queue the message behind it",
    run: |app, _| {
        if app.is_busy() && !app.composer.field.is_empty() {
            return send(app, Way::Later);
        }
        app.composer.field.newline();
        Vec::new()
    },
};

pub const NEWLINE: Action = Action {
    name: "newline",
    slash: "",
    hint: "newline",
    about: "break the line",
    run: |app, _| {
        app.composer.field.newline();
        Vec::new()
    },
};

pub const CLEAR: Action = Action {
    name: "clear",
    slash: "",
    hint: "clear",
    about: "clear the draft; up brings it back",
    run: |app, _| {
        app.composer.history.keep(&app.composer.field.text());
        app.composer.field.clear();
        Vec::new()
    },
};

pub const EDITOR: Action = Action {
    name: "editor",
    slash: "",
    hint: "editor",
    about: "write the draft in $VISUAL or $EDITOR",
    run: |app, _| vec![Effect::EditDraft(app.composer.field.text())],
};

/// Where a message goes while an answer is being made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Into the answer, if it hears.
    Now,
    /// Behind it.
    Later,
}

fn send(app: &mut App, way: Way) -> Vec<Effect> {
    if app.composer.field.take_backslash() {
        app.composer.field.newline();
        return Vec::new();
    }
    let text = app.composer.field.text();
    let text = text.trim();
    if text.is_empty() {
        return Vec::new();
    }
    if let Some((word, rest)) = command_of(text) {
        if find_slash(word).is_none()
            && let Some(custom) = app.composer.commands.custom(word)
        {
            let message = custom.message(rest);
            app.composer.history.keep(text);
            app.composer.field.clear();
            app.pane.go_to_end();
            focus_composer(app);
            return say(app, message, way);
        }
        let Some(action) = find_slash(word) else {
            app.say(format!(
                "there is no command /{word}; /help lists them; a space before the slash sends it as text"
            ));
            return Vec::new();
        };
        app.composer.history.keep(text);
        app.composer.commands.note(action.name);
        let rest = rest.to_owned();
        app.composer.field.clear();
        return (action.run)(app, &rest);
    }
    let text = text.to_owned();
    app.composer.history.keep(&text);
    app.composer.field.clear();
    app.pane.go_to_end();
    focus_composer(app);
    say(app, text, way)
}

/// Gives a message to whoever answers.
fn say(app: &mut App, text: String, way: Way) -> Vec<Effect> {
    if way == Way::Now && app.is_busy() && app.about.hears {
        app.composer.said.push(text.clone());
        return vec![Effect::Send(Command::Steer(Submit {
            message: Message::user(text),
            mode: app.mode,
            model: app.model.clone(),
        }))];
    }
    submit(app, Message::user(text))
}

/// Sends a message now, or puts it behind the running answer.
pub fn submit(app: &mut App, message: Message) -> Vec<Effect> {
    let submit = Submit {
        message,
        mode: app.mode,
        model: app.model.clone(),
    };
    if app.is_busy() {
        app.composer.queue.push(submit);
        return Vec::new();
    }
    app.asking.submitted_ms = Some(app.now_ms);
    vec![Effect::Send(Command::Submit(submit))]
}

/// `/word rest`; a path is no command.
fn command_of(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('/')?;
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let is_word = !word.is_empty() && word.chars().all(|it| it.is_ascii_alphanumeric() || it == '-');
    is_word.then_some((word, rest.trim()))
}
