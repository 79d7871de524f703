//! The parts of the screen: header, transcript, composer, footer.

pub mod composer;
pub mod footer;
pub mod header;
pub mod transcript;

pub use transcript::{Item, Pane};
