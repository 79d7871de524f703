//! The state of the screen, in parts with an owner each. Changed by `update` and the actions only.

mod action;
mod appearance;
pub mod backfill;
mod choice;
mod composer;
mod conversation;
pub mod effects;
mod images;
pub mod inline;
pub mod keymap;
mod overlay;
pub mod own_files;
mod questions;
pub mod search;
pub mod selection;
pub mod status;
mod terminal;
mod viewport;

pub use action::Action;
pub use appearance::{Appearance, Themes};
pub use choice::{ChangeId, ChipAction, Choice, QueueEdit, RewindTarget, Verdict};
pub use composer::{CommandList, Commands, Composer, DraftList, History, Mention, MentionOffer, ask_servers};
pub use conversation::{APPROVALS, ASK, AnswerFacts, Conversation, Workspace};
pub use effects::Effect;
pub use keymap::Keymap;
pub use overlay::{Answer, Overlay, Overlays, PAGE_MEASURE, Placement, Scene, plain_keys};
pub use questions::{ApprovalLayout, Mark, Questions, SeenApproval, TOO_EARLY_MS};
pub use status::{Status, StatusRun};
pub use terminal::{Clicks, Terminal};
pub use viewport::Viewport;

use std::collections::BTreeMap;

use crate::{
    config::Settings,
    protocol::{Command, Progress, UserAction},
    t,
};

/// The whole state of the screen. A function takes the part that it needs.
pub struct App {
    pub conversation: Conversation,
    pub viewport: Viewport,
    pub composer: Composer,
    pub questions: Questions,
    pub overlays: Overlays,
    pub appearance: Appearance,
    pub terminal: Terminal,
    pub preferences: Preferences,
    /// The header's line from the user's own command.
    pub status: Status,
    /// One short sentence in the footer, until a key after it was read.
    pub toast: Option<String>,
    /// When it came, in milliseconds since the Unix epoch.
    pub toast_ms: u64,
    /// Milliseconds since the Unix epoch, as of the last message.
    pub now_ms: u64,
}

/// Time in which no key removes a toast, in milliseconds.
const TOAST_MS: u64 = 2000;
/// Notices that wait to be shown.
const MOST_NOTICES: usize = 8;
/// Time in which no key removes a hint.
const READ_MS: u64 = 1000;

/// The receiver of printable keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Focus {
    #[default]
    Composer,
    Transcript,
}

/// The user's settings, as read when the program began.
pub struct Preferences {
    pub settings: Settings,
    pub keymap: Keymap,
    /// Actions that only developers of this program need are offered.
    pub is_developer: bool,
    /// Mistakes in the configuration, shown on the first screen.
    pub problems: Vec<String>,
    /// Settings that were written since the start, by path: the value, empty for the default, and its place.
    pub written: BTreeMap<String, (String, String)>,
}

impl App {
    /// Returns true if something in view shows a running clock.
    pub fn shows_time(&self) -> bool {
        let retrying = matches!(self.conversation.transcript.progress, Some(Progress::Retrying { .. }));
        (self.preferences.settings.motion
            && self.conversation.is_busy()
            && self.conversation.transcript.open_question().is_none())
            || retrying
            || self.viewport.pane.needs_clock(&self.conversation.transcript)
    }

    /// Opens an overlay, in the place of the toast that said it was coming.
    pub fn open(&mut self, overlay: impl Overlay) -> Vec<Effect> {
        self.toast = None;
        self.overlays.push(overlay);
        Vec::new()
    }

    /// Shows a toast of the top overlay, which goes with it.
    pub fn say(&mut self, text: String) -> Vec<Effect> {
        self.overlays.note(&text);
        self.toast(text)
    }

    /// Removes the top overlay with what it said: its keys mean something else afterwards.
    pub fn take_overlay(&mut self) -> Option<Box<dyn Overlay>> {
        let said = self.overlays.take_said();
        if said.is_some() && said == self.toast {
            self.toast = None;
        }
        self.overlays.pop()
    }

    /// Returns true if the draft has words that were not in its version `draft`.
    pub fn has_typed_since(&self, draft: u64) -> bool {
        !self.composer.field.is_empty() && self.composer.field.version() != draft
    }

    /// Opens an overlay whose content was asked for when the draft had the version `draft`. After words that were typed
    /// meanwhile it does not open, as it would take the keys that follow them.
    pub fn open_late(&mut self, draft: u64, overlay: impl Overlay) -> Vec<Effect> {
        if self.has_typed_since(draft) {
            return self.toast(t!("news-typed-meanwhile"));
        }
        self.open(overlay)
    }

    /// Leaves a line about something that the user did.
    pub fn record(action: UserAction, facts: &[&str]) -> Vec<Effect> {
        vec![Effect::Send(Command::Record(action.notice(facts)))]
    }

    /// Marks something that Enter then does to the selected item, unless the focus has only just come there. Returns false if the
    /// focus is on the draft: what was chosen in the palette is done at once.
    pub fn mark(&mut self, mark: Mark) -> bool {
        let is_read = !self.questions.is_too_early(self.now_ms);
        let is_here = self.viewport.focus == Focus::Transcript;
        self.questions.marked = self
            .viewport
            .pane
            .selected
            .filter(|_| is_read && is_here)
            .map(|it| (mark, it));
        is_here
    }

    /// Shows a toast. No effects follow.
    pub fn toast(&mut self, text: impl Into<String>) -> Vec<Effect> {
        self.toast = Some(text.into());
        self.toast_ms = self.now_ms;
        Vec::new()
    }

    /// Shows a hint about a key or a command that did nothing. The first key after a second takes it away. No effects follow.
    pub fn hint(&mut self, text: impl Into<String>) -> Vec<Effect> {
        self.toast(text);
        self.toast_ms = self.now_ms.saturating_sub(TOAST_MS.saturating_sub(READ_MS));
        Vec::new()
    }

    /// Shows a notice, after one that came a moment ago and was not read.
    pub fn notice(&mut self, text: String) {
        let is_unread = self.toast.is_some() && self.now_ms.saturating_sub(self.toast_ms) < TOAST_MS;
        if !is_unread && self.terminal.notices.is_empty() {
            self.toast(text);
        } else if self.toast.as_ref() != Some(&text) && self.terminal.notices.len() < MOST_NOTICES {
            self.terminal.notices.push_back(text);
        }
    }

    /// Removes the toast, as a key does, unless it came a moment ago and was not read.
    pub fn drop_toast(&mut self) {
        if self.now_ms.saturating_sub(self.toast_ms) >= TOAST_MS {
            self.toast = None;
        }
    }

    /// Shows the next notice that waits, where nothing else is said. A key does so after it has acted.
    pub fn next_notice(&mut self) {
        if self.toast.is_none()
            && let Some(next) = self.terminal.notices.pop_front()
        {
            self.toast(next);
        }
    }
}
