//! The words in place of an empty draft: they say where the keys go.

use crate::{
    t,
    transcript::is_approval,
    tui::app::{App, Focus},
};

/// Returns what is shown while the draft is empty. A draft that has no keys says so, and how they come back.
pub fn placeholder(app: &App) -> &'static str {
    if let Some(overlay) = app.overlays.last() {
        return overlay.placeholder();
    }
    if app.viewport.focus == Focus::Composer {
        return t!("composer-placeholder");
    }
    let transcript = &app.conversation.transcript;
    if let Some(place) = app.viewport.question(transcript) {
        return if transcript.get(place).is_some_and(is_approval) {
            t!("composer-on-approval")
        } else {
            t!("composer-on-question")
        };
    }
    let selected = app.viewport.selected();
    if selected.is_some() && selected == app.conversation.plan_to_build() {
        t!("composer-on-plan")
    } else {
        t!("composer-on-transcript")
    }
}
