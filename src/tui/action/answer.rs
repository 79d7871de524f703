//! What can be answered: a failure with another try.

use super::{Action, everywhere::focus_composer, writing::submit};

pub const RETRY: Action = Action {
    name: "retry",
    slash: "retry",
    hint: "try again",
    about: "send the last message again",
    run: |app, _| {
        if app.is_busy() {
            app.say("the answer is still coming; esc stops it");
            return Vec::new();
        }
        let at = app.pane.selected.map_or(usize::MAX, crate::tui::pane::Item::exchange);
        let chosen = app.transcript.exchanges.get(at).or(app.transcript.exchanges.last());
        let Some(message) = chosen.and_then(|it| it.message.clone()) else {
            app.say("there is no message to send again");
            return Vec::new();
        };
        focus_composer(app);
        app.pane.go_to_end();
        submit(app, message)
    },
};
