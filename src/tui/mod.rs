//! The terminal program: a fold of the log on the screen, and keys that become commands.
//!
//! Elm outside, plain structs inside: one [`app::App`], changed by [`update::update`] and the actions it calls, seen
//! through `view`. It knows documents and a link; it cannot name an agent, a tool or a provider.
//!
//! Floors, as in the crate root: a module uses lower floors only (`tests/it/floors.rs` holds this).
//!
//! | floor | modules |
//! | --- | --- |
//! | 0 | `areas` `custom` `fuzzy` `glyph` `library` `picture` `places` [`terminal`] |
//! | 1 | `editor` `external_editor` `image` `spoken` |
//! | 2 | `prompt_store` [`widgets`] |
//! | 3 | `hunk_decisions` |
//! | 4 | [`app`] |
//! | 5 | `overlays` |
//! | 6 | `bars` `command` `mention` |
//! | 7 | [`actions`] [`msg`] `scrollback` `view` |
//! | 8 | [`effect_runner`] `setup` [`update`] |
//! | 9 | [`event_loop`] |
//! | 10 | `screen` [`screen_reader`] |

pub mod actions;
pub mod app;
mod areas;
mod bars;
mod command;
mod custom;
mod editor;
pub mod effect_runner;
pub mod event_loop;
mod external_editor;
mod fuzzy;
mod glyph;
mod hunk_decisions;
mod image;
pub mod library;
mod mention;
pub mod msg;
mod overlays;
mod picture;
mod places;
mod prompt_store;
mod screen;
pub mod screen_reader;
mod scrollback;
mod setup;
mod spoken;
pub mod terminal;
#[cfg(test)]
#[path = "../../tests/it/test_app.rs"]
mod test_app;
#[cfg(test)]
mod tests;
pub mod update;
mod view;
pub mod widgets;

pub use event_loop::Error;
pub use library::Library;
pub use screen::run;
pub use setup::{Setup, branch as git_branch, now_ms};
pub use terminal::{ImageProtocol, ImageSetting, TerminalName};
