//! The terminal program: a fold of the log on the screen, and keys that become commands.
//!
//! Elm outside, plain structs inside: one [`app::App`], changed by [`update::update`] and the actions it calls, seen
//! through `view`. It knows documents and a link; it cannot name an agent, a tool or a provider.

pub mod actions;
pub mod app;
mod areas;
mod backfill;
mod command;
mod custom;
mod draft;
pub mod effects;
mod field;
mod filter;
mod fuzzy;
mod glyph;
pub mod headless;
mod hints;
mod hunk_decisions;
mod image;
mod inline;
pub mod keymap;
pub mod library;
mod mention;
pub mod msg;
mod overlays;
mod picture;
mod places;
mod prompt_store;
mod run;
pub mod screen_reader;
mod scrollback;
mod search;
mod selection;
mod setup;
mod status;
pub mod terminal;
#[cfg(test)]
mod tests;
pub mod update;
mod view;
mod vim;
pub mod widgets;

pub use image::{ImageProtocol, ImageSetting, TerminalName};
pub use library::Library;
pub use run::{Error, run};
pub use setup::{Setup, now_ms};
