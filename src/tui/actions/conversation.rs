//! The conversation as a whole: new, resumed, its cost, exported.

use crate::{
    protocol::{Address, Command, CompactionScope, Message, Turn},
    t,
    tui::{
        app::{Action, App, Choice, Effect},
        overlays::{Page, Prompt},
    },
};

pub const NEW: Action = Action::new("conversation.new", "new", |app, _| begin(app));

pub const CLEAR: Action = Action::new("conversation.clear", "clear", |app, _| begin(app));

pub const RESUME: Action = Action::new("conversation.resume", "resume", |app, _| {
    if is_at_work(app) {
        return Vec::new();
    }
    vec![Effect::Sessions(app.composer.field.version())]
});

pub const EXPORT: Action = Action::new("conversation.export", "export", |app, path| {
    let draft = app.composer.field.version();
    if path.is_empty() {
        let title = app.conversation.transcript.title().unwrap_or_default().to_owned();
        return vec![Effect::ProposeExport { title, draft }];
    }
    vec![Effect::Export {
        path: path.to_owned(),
        overwrites: false,
        draft,
    }]
});

/// Asks for the file of an export, beginning with a name.
pub fn export_prompt(path: &str) -> Prompt {
    Prompt::new(t!("prompt-export"), path, |path| Choice::Export {
        path,
        overwrites: false,
    })
}

pub const COST: Action = Action::new("conversation.cost", "cost", |app, _| {
    app.open(Page::cost(&app.conversation.transcript))
});

pub const COMPACT: Action = Action::new("conversation.compact", "compact", |app, keep| {
    let keep = keep.trim().to_owned();
    shorten(app, "/compact", &keep, CompactionScope::Summary { keep: keep.clone() })
});

pub const RENAME: Action = Action::new("conversation.rename", "rename", |app, title| {
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    if title.is_empty() {
        return app.toast(t!("action-rename-how"));
    }
    vec![Effect::Send(Command::Rename(title))]
});

pub const DROP: Action = Action::new("conversation.drop", "drop", |app, word| {
    let word = word.trim().trim_start_matches('#').to_owned();
    let address = word.split_once('.').and_then(|(turn, number)| {
        Some(Address {
            turn: Turn(turn.parse().ok()?),
            number: number.parse().ok()?,
        })
    });
    let selected = || app.conversation.transcript.address(app.viewport.selected()?);
    match if word.is_empty() { selected() } else { address } {
        Some(address) => shorten(app, "/drop", &address.to_string(), CompactionScope::DropResult(address)),
        None if word.is_empty() => app.toast(t!("action-drop-which")),
        None => app.toast(t!("action-no-address", word = word)),
    }
});

/// Has the model told less, in a turn of its own.
fn shorten(app: &mut App, word: &str, rest: &str, how: CompactionScope) -> Vec<Effect> {
    if is_at_work(app) {
        return Vec::new();
    }
    if app.conversation.transcript.exchanges.is_empty() {
        return app.toast(t!("action-nothing-said"));
    }
    app.viewport.pane.go_to_end();
    let submit = super::writing::prepared(app, Message::user(format!("{word} {rest}").trim()));
    vec![Effect::Send(Command::Compact { submit, scope: how })]
}

fn begin(app: &mut App) -> Vec<Effect> {
    if is_at_work(app) {
        return Vec::new();
    }
    if app.conversation.transcript.exchanges.is_empty() {
        return app.toast(t!("action-is-new"));
    }
    vec![Effect::Begin]
}

/// Returns true, with a toast, while an answer or command runs: it would continue unseen.
fn is_at_work(app: &mut App) -> bool {
    let is_running = app.conversation.transcript.is_running();
    if is_running {
        app.toast(t!("action-at-work"));
    }
    is_running
}
