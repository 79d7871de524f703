//! The terminal program: a fold of the log on the screen, and keys that become commands.
//!
//! Elm outside, plain structs inside: one [`app::App`], changed by [`update::update`] and the actions it calls, seen
//! through `view`. It knows documents and a link; it cannot name an agent, a tool or a provider.

pub mod action;
pub mod app;
mod attention;
mod command;
mod custom;
pub mod desk;
pub mod doc;
mod draft;
mod earlier;
pub mod effect;
mod field;
mod filter;
mod fuzzy;
mod glyph;
mod hands;
mod image;
mod inline;
pub mod input;
mod keep;
pub mod keymap;
mod layer;
pub mod library;
mod mention;
pub mod msg;
mod pace;
pub mod paint;
mod pane;
mod picks;
mod picture;
mod places;
pub mod plain;
mod printed;
mod run;
mod search;
mod selection;
mod setup;
mod status;
#[cfg(test)]
mod tests;
mod tty;
pub mod update;
mod view;
mod vim;

pub use image::{Named, Way, Wish};
pub use library::Library;
pub use run::{Error, run};
pub use setup::{Setup, now_ms};
