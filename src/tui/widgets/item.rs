//! The parts of a conversation that are shown one below the other.

use crate::transcript::DocumentIndex;

/// A part of an exchange that is shown by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Item {
    /// The user's message of an exchange.
    Message(usize),
    /// A stretch of thinking of an exchange.
    Thinking(usize, usize),
    Document(DocumentIndex),
    /// The ending of an exchange, where it is not the usual one.
    Ending(usize),
    /// The line of an action of the user in an exchange.
    Action(usize, usize),
}

impl Item {
    /// The same item after `by` exchanges were put in front.
    pub fn behind(self, by: usize) -> Self {
        match self {
            Self::Message(it) => Self::Message(it + by),
            Self::Thinking(it, nth) => Self::Thinking(it + by, nth),
            Self::Ending(it) => Self::Ending(it + by),
            Self::Action(it, nth) => Self::Action(it + by, nth),
            Self::Document(place) => Self::Document(DocumentIndex {
                exchange: place.exchange + by,
                ..place
            }),
        }
    }

    /// The same item after `by` exchanges were removed from the front. `None` if it was in one of them.
    pub fn before(self, by: usize) -> Option<Self> {
        let at = |it: usize| it.checked_sub(by);
        Some(match self {
            Self::Message(it) => Self::Message(at(it)?),
            Self::Thinking(it, nth) => Self::Thinking(at(it)?, nth),
            Self::Ending(it) => Self::Ending(at(it)?),
            Self::Action(it, nth) => Self::Action(at(it)?, nth),
            Self::Document(place) => Self::Document(DocumentIndex {
                exchange: at(place.exchange)?,
                ..place
            }),
        })
    }

    /// The index of its exchange.
    pub fn exchange(self) -> usize {
        match self {
            Self::Message(it) | Self::Thinking(it, _) | Self::Ending(it) | Self::Action(it, _) => it,
            Self::Document(place) => place.exchange,
        }
    }
}
