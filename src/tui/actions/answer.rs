//! Retrying after an error.

use super::{focus::focus_composer, writing::submit};
use crate::{
    protocol::Message,
    t,
    tui::{
        app::{Action, App, Effect, Mark},
        widgets::transcript::Item,
    },
};

pub const RETRY: Action = Action::new("retry", "retry", |app, _| {
    if app.conversation.is_busy() {
        return app.toast(t!("action-still-coming"));
    }
    let Some(message) = message(app) else {
        return app.toast(t!("action-no-message"));
    };
    focus_composer(app);
    app.viewport.pane.go_to_end();
    submit(app, message)
});

/// Marks the turn, so that Enter sends its message again.
pub fn mark_retry(app: &mut App) -> Vec<Effect> {
    if app.conversation.is_busy() {
        return app.toast(t!("action-still-coming"));
    }
    if message(app).is_none() {
        return app.toast(t!("action-no-message"));
    }
    if app.mark(Mark::Retry) {
        return Vec::new();
    }
    (RETRY.run)(app, "")
}

/// The message of the selected turn, else of the last one.
fn message(app: &App) -> Option<Message> {
    let at = app.viewport.pane.selected.map_or(usize::MAX, Item::exchange);
    let exchanges = &app.conversation.transcript.exchanges;
    let chosen = exchanges.get(at).or(exchanges.last());
    chosen.and_then(|it| it.message.clone())
}
