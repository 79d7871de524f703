//! Pages and lists over the conversation. The top one gets input first.

mod branches;
mod inspector;
mod list_cursor;
mod outline;
mod page;
mod picker;
mod prompt;
mod review;
mod rewind;
mod sessions;
mod waiting;

use std::{
    any::Any,
    ops::{Deref, DerefMut},
};

use crossterm::event::{KeyCode, KeyEvent};

pub use branches::Branches;
pub use inspector::Inspector;
pub use list_cursor::ListCursor;
pub use outline::Outline;
pub use page::Page;
pub use picker::{ChipWay, Choice, Offer, Picker, role_of};
pub use prompt::Prompt;
pub use review::{Review, Spot, Verdict};
pub use rewind::{Back, Rewind};
pub use sessions::Sessions;
pub use waiting::{Change, Waiting};

use super::{
    app::{Appearance, Conversation, Effect, Questions},
    hunk_decisions::HunkDecisions,
    spoken,
};
use crate::{
    t,
    text::{Colours, StyledLine},
    transcript::Transcript,
};

/// A page or a list over the conversation.
pub trait Overlay: Any + Send {
    /// Handles a key; what follows from it is in the answer.
    fn key(&mut self, event: KeyEvent, scene: &Scene<'_>) -> Answer;

    /// Handles pasted text; ignored by default.
    fn paste(&mut self, _text: &str) -> Answer {
        Answer::Taken
    }

    /// Scrolls by one notch of the wheel, -1 or 1; ignored by default.
    fn wheel(&mut self, _by: isize) {}

    fn placement(&self) -> Placement {
        Placement::Page
    }

    /// Makes the rows in view, for the columns that the placement gives and at most `height` rows.
    fn lay_out(&mut self, scene: &Scene<'_>, columns: usize, height: usize);

    /// The rows in view, as of the last `lay_out`.
    fn rows(&self) -> &[StyledLine];

    /// Column and row of the caret inside the rows; `None` if nothing is typed here.
    fn caret(&self, _columns: usize) -> Option<(usize, usize)> {
        None
    }

    /// Keys and one word for what each does, for the footer; the first ones matter most.
    fn hints(&self) -> Vec<(&'static str, &'static str)>;

    /// The content as lines of plain text, and how to go on. Without a `how` the overlay closes once it was read.
    fn spoken(&self) -> (Vec<String>, Option<&'static str>) {
        (words::lines(self.rows()), Some(t!("plain-how-keys")))
    }

    /// The keys that a line means which was typed for a screen reader, or why it means none. `is_typed`: a person typed it.
    fn keys_of(&mut self, line: &str, _is_typed: bool) -> Result<Vec<KeyCode>, String> {
        Ok(plain_keys(line))
    }
}

/// A key by its name, else a key for each letter.
fn plain_keys(line: &str) -> Vec<KeyCode> {
    match line {
        "enter" => vec![KeyCode::Enter],
        "up" => vec![KeyCode::Up],
        "down" => vec![KeyCode::Down],
        "tab" => vec![KeyCode::Tab],
        _ => line.chars().map(KeyCode::Char).collect(),
    }
}

/// Where an overlay is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In the place of the transcript.
    Page,
    /// A frame above the composer, at most so many columns wide.
    Popup(usize),
    /// At the right of the transcript; over it where there is little room.
    Beside,
}

/// What overlays may read of the state.
pub struct Scene<'a> {
    pub transcript: &'a Transcript,
    pub hunk_decisions: &'a HunkDecisions,
    pub colours: &'a dyn Colours,
    /// Grows whenever code got its colours.
    pub colours_version: u64,
    /// Milliseconds since the Unix epoch.
    pub now_ms: u64,
}

impl<'a> Scene<'a> {
    pub fn of(
        conversation: &'a Conversation,
        questions: &'a Questions,
        appearance: &'a Appearance,
        now_ms: u64,
    ) -> Self {
        Self {
            transcript: &conversation.transcript,
            hunk_decisions: &questions.hunk_decisions,
            colours: appearance.colours.as_ref(),
            colours_version: appearance.colours_version,
            now_ms,
        }
    }
}

#[cfg(test)]
impl Scene<'_> {
    /// Calls `f` with a scene of this transcript, without colours or decisions, at the time 0.
    fn test<R>(transcript: &Transcript, f: impl FnOnce(&Scene<'_>) -> R) -> R {
        f(&Scene {
            transcript,
            hunk_decisions: &HunkDecisions::default(),
            colours: &crate::text::NoColours,
            colours_version: 0,
            now_ms: 0,
        })
    }
}

/// The open overlays, the top one last.
#[derive(Default)]
pub struct Overlays(Vec<Box<dyn Overlay>>);

impl Overlays {
    pub fn push(&mut self, overlay: impl Overlay) {
        self.0.push(Box::new(overlay));
    }

    /// The top overlay, if it is a `T`.
    pub fn top<T: Overlay>(&mut self) -> Option<&mut T> {
        let top: &mut dyn Any = self.0.last_mut()?.as_mut();
        top.downcast_mut()
    }
}

impl Deref for Overlays {
    type Target = Vec<Box<dyn Overlay>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Overlays {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

/// What an overlay made of a key.
#[expect(clippy::large_enum_variant, reason = "one lives at a time, for a moment")]
pub enum Answer {
    /// It stays; the key was its own.
    Taken,
    /// It goes.
    Close,
    /// It goes, and this was chosen.
    Chosen(Choice),
    /// It stays, and this is shown meanwhile.
    Live(Choice),
    /// It stays, and this is to be done.
    Does(Effect),
    /// It stays, and has something to say.
    Said(String),
}
