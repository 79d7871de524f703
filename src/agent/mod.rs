//! The embedded producer: it asks a model and appends what comes back to a log, as documents.
//!
//! ```text
//! Piece ─► Turn::step ─► Writer (Segmenter) ─► events ─► Log
//! ```
//!
//! All of it is pure but [`driver`], which runs the turns.

pub mod approval;
mod approval_snapshot;
mod background;
mod checks;
mod compact;
pub mod context;
pub mod context_builder;
pub mod driver;
pub mod history;
pub mod marks;
mod message_history;
pub mod prompt;
pub mod review;
pub mod rules;
mod sandbox_status;
pub mod segment;
mod setup;
pub mod tool_choice;
pub mod tool_selection;
pub mod trust;
pub mod turn;
pub mod undo;
pub mod write;
