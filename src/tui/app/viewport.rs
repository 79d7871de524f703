//! The part of the conversation that is in view, and what stands out in it.

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
