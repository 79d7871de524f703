//! The content of the lines around the transcript and the draft: header, rule and the keys of the footer.

pub mod header;
pub mod hints;
pub mod placeholder;
pub mod rule;
pub mod trust;
