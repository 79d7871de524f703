//! What can be answered: a failure with another try.

use super::{Action, everywhere::focus_composer, writing::submit};
use crate::say;

pub const RETRY: Action = Action {
    name: "retry",
    slash: "retry",
    run: |app, _| {
        if app.is_busy() {
            app.say(say!("action-still-coming"));
            return Vec::new();
        }
        let at = app.pane.selected.map_or(usize::MAX, crate::tui::pane::Item::exchange);
        let chosen = app.transcript.exchanges.get(at).or(app.transcript.exchanges.last());
        let Some(message) = chosen.and_then(|it| it.message.clone()) else {
            app.say(say!("action-no-message"));
            return Vec::new();
        };
        focus_composer(app);
        app.pane.go_to_end();
        submit(app, message)
    },
};
