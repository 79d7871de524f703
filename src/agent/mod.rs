//! The embedded producer: it asks a model and appends what comes back to a log, as documents.
//!
//! ```text
//! Piece ─► Turn::step ─► Writer (Segmenter) ─► events ─► Log
//! ```
//!
//! All of it is pure but [`runner`], which runs the turns, and what it has read or changed: files of rules, the first context,
//! undo.

pub mod approval;
mod cut;
pub mod git;
mod glob;
mod history;
mod hooks;
mod marks;
pub mod prompt;
pub mod quarantine;
pub mod runner;
pub mod segmenter;
pub mod served;
mod tags;
pub mod tool_choice;
pub mod tool_selection;
pub mod trust;
mod turn;
pub mod undo;
mod writer;
