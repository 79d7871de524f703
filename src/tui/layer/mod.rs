//! What floats above the conversation. The top layer sees input first.

mod branches;
mod inspector;
mod outline;
mod page;
mod picker;
mod prompt;
mod review;
mod rewind;
mod sessions;
mod waiting;

use crossterm::event::KeyEvent;

pub use branches::Branches;
pub use inspector::Inspector;
pub use outline::Outline;
pub use page::Page;
pub use picker::{ChipWay, Choice, Offer, Picker, role_of};
pub use prompt::Prompt;
pub use review::{Review, Spot, Verdict, look as review_look};
pub use rewind::{Back, Rewind};
pub use sessions::Sessions;
pub use waiting::{Change, Waiting};

use super::effect::Effect;

/// A closed set: every kind of layer is an arm here and nowhere else.
pub enum Layer {
    Picker(Picker),
    Page(Page),
    Prompt(Prompt),
    Outline(Outline),
    Waiting(Waiting),
    Review(Box<Review>),
    Rewind(Box<Rewind>),
    Branches(Box<Branches>),
    Inspector(Inspector),
    Sessions(Sessions),
}

/// What a layer made of a key.
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

impl Layer {
    pub fn key(&mut self, event: KeyEvent) -> Answer {
        match self {
            Self::Picker(it) => it.key(event),
            Self::Page(it) => it.key(event),
            Self::Prompt(it) => it.key(event),
            Self::Outline(it) => it.key(event),
            Self::Waiting(it) => it.key(event),
            Self::Review(it) => it.key(event),
            Self::Rewind(it) => it.key(event),
            Self::Branches(it) => it.key(event),
            Self::Inspector(it) => it.key(event),
            Self::Sessions(it) => it.key(event),
        }
    }

    pub fn wheel(&mut self, by: isize) {
        match self {
            Self::Picker(it) => it.wheel(by),
            Self::Page(it) => it.scroll(by),
            Self::Review(it) => it.scroll(by * 3),
            Self::Rewind(it) => it.scroll(by),
            Self::Branches(it) => it.scroll(by),
            Self::Prompt(_) | Self::Waiting(_) => {}
            Self::Outline(it) => it.wheel(by),
            Self::Inspector(it) => it.wheel(by),
            Self::Sessions(it) => it.wheel(by),
        }
    }
}
