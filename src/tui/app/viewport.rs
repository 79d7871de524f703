//! The part of the conversation that is in view, and what stands out in it.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind};

use super::{Focus, search::Search, selection::Selection};
use crate::{
    transcript::{DocumentIndex, Transcript},
    tui::{
        areas::Areas,
        widgets::{
            bar::Bars,
            list::ListCursor,
            transcript::{Item, Light, Pane},
        },
    },
};

/// The part of the conversation that is shown, and its place on the screen.
#[derive(Default)]
pub struct Viewport {
    pub pane: Pane,
    pub focus: Focus,
    pub search: Option<Search>,
    /// The text that the mouse has marked.
    pub selection: Option<Selection>,
    /// Cells of the transcript that stand out, as of the last `measure`.
    pub lights: Vec<Light>,
    /// As of the last `measure`.
    pub areas: Areas,
    /// The list that is offered for the draft, as of the last drawing.
    pub offers: ListCursor,
    /// The bars around the transcript and the draft; `None` when they have to be made anew.
    pub bars: Option<Bars>,
    /// The letters that were typed here without a pause.
    pub typed: TypedRun,
}

/// Time without a key after which a letter begins a new run, in milliseconds.
const PAUSE_MS: u64 = 3000;

/// Letters that were typed in the transcript without a pause. They acted there, and may still be the beginning of a message.
#[derive(Default)]
pub struct TypedRun {
    letters: String,
    /// When the last one was typed, in milliseconds since the Unix epoch.
    at_ms: u64,
    /// The last one went a step on or back.
    was_step: bool,
}

impl TypedRun {
    /// Adds a letter; `is_step`: it goes a step on or back there. A pause before it and a key that is held begin anew. Two steps
    /// are no beginning of a message, whatever was typed before them.
    pub fn add(&mut self, event: KeyEvent, is_step: bool, now_ms: u64) {
        if event.kind == KeyEventKind::Repeat || now_ms.saturating_sub(self.at_ms) >= PAUSE_MS {
            self.clear();
        }
        if is_step && self.was_step {
            self.letters.clear();
        } else if let KeyCode::Char(letter) = event.code
            && event.kind != KeyEventKind::Repeat
        {
            self.letters.push(letter);
        }
        (self.at_ms, self.was_step) = (now_ms, is_step);
    }

    pub fn clear(&mut self) {
        self.letters.clear();
        self.was_step = false;
    }

    /// Removes and returns the letters before the last one.
    pub fn take_before_last(&mut self) -> String {
        let mut letters = std::mem::take(&mut self.letters);
        letters.pop();
        letters
    }
}

impl Viewport {
    /// The selected document; `None` if nothing is selected, or something else than a document.
    pub fn selected(&self) -> Option<DocumentIndex> {
        match self.pane.selected? {
            Item::Document(place) => Some(place),
            Item::Message(_) | Item::Thinking(..) | Item::Ending(_) | Item::Action(..) => None,
        }
    }

    /// The open question that has the keys.
    pub fn question(&self, transcript: &Transcript) -> Option<DocumentIndex> {
        if self.focus != Focus::Transcript {
            return None;
        }
        let place = self.selected()?;
        let document = transcript.get(place)?;
        transcript.is_open_question(place.exchange, document).then_some(place)
    }
}
