//! Retrying after an error.

use super::{focus::focus_composer, writing::submit};
use crate::{t, tui::app::Action};

pub const RETRY: Action = Action::new("retry", "retry", |app, _| {
    if app.conversation.is_busy() {
        return app.toast(t!("action-still-coming"));
    }
    let at = app
        .viewport
        .pane
        .selected
        .map_or(usize::MAX, crate::tui::widgets::transcript::Item::exchange);
    let chosen = app
        .conversation
        .transcript
        .exchanges
        .get(at)
        .or(app.conversation.transcript.exchanges.last());
    let Some(message) = chosen.and_then(|it| it.message.clone()) else {
        return app.toast(t!("action-no-message"));
    };
    focus_composer(app);
    app.viewport.pane.go_to_end();
    submit(app, message)
});
