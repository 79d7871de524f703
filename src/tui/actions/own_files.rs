//! The person's own settings and rules: shown, and edited where they are shown.

use crate::{
    protocol::{Query, Reply},
    t,
    tui::{
        app::{
            Action, App, Effect,
            effects::{ask, own_files},
            own_files::{FileOutcome, FileTask},
        },
        overlays::{EditList, MemoryCard, Picker},
    },
};

pub const CONFIG: Action = Action::new("config", "config", |app, _| {
    let list = EditList::settings(
        &app.preferences.settings,
        &app.preferences.written,
        &app.appearance.themes.names,
    );
    app.open(list)
});

pub const PERMISSIONS: Action = Action::new("permissions", "permissions", |app, word| {
    let forget = match word.trim() {
        "" => false,
        "reset" => true,
        _ => return app.toast(t!("action-permissions-how")),
    };
    let draft = app.composer.field.version();
    vec![ask!(
        Query::Permissions { forget },
        Reply::Permissions,
        move |app, permissions| app.open_late(draft, EditList::permissions(&permissions))
    )]
});

/// Remembers a line; without one it lists the files of rules.
pub const MEMORY: Action = Action::new("memory", "memory", |app, line| {
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if !line.is_empty() {
        return remember(app, &line, None);
    }
    let draft = app.composer.field.version();
    vec![own_files(FileTask::Rules, move |app, outcome| match outcome {
        Ok(FileOutcome::Rules(files)) => app.open_late(draft, Picker::rules(files)),
        Ok(FileOutcome::Written { .. }) => Vec::new(),
        Err(why) => app.toast(why),
    })]
});

/// Asks where a line is to be remembered. `send` sends the draft that it came from as a message.
pub fn remember(app: &mut App, line: &str, send: Option<(&'static Action, &'static str)>) -> Vec<Effect> {
    let (card, look) = MemoryCard::new(line, send, app.composer.field.version());
    app.open(card);
    vec![look]
}
