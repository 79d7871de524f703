//! The embedded producer: it asks a model and appends what comes back to a log, as documents.
//!
//! ```text
//! Piece ─► Turn::step ─► Writer (Segmenter) ─► events ─► Log
//! ```
//!
//! All of it is pure but [`driver`], which runs the turns.

pub mod approval;
mod background;
mod behind;
pub mod brief;
mod checks;
mod compact;
pub mod context;
pub mod driver;
pub mod history;
mod hold;
pub mod marks;
pub mod narrow;
pub mod offer;
pub mod prompt;
pub mod review;
pub mod rules;
pub mod segment;
mod told;
pub mod trust;
pub mod turn;
pub mod undo;
pub mod write;
