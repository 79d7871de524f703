//! The terminal, and the only code of the screen that knows its bytes.
//!
//! What comes in becomes [`Input`] ([`input_parser`]); a `ratatui` buffer becomes the fewest bytes that show it
//! ([`surface`], [`ansi_backend`]). No other module of `tui` writes an escape sequence: a test holds that.

pub mod ansi_backend;
pub mod frame_pacer;
mod image_protocol;
pub mod inline_region;
pub mod input_parser;
pub mod notifications;
pub mod pictures;
pub mod strips;
pub mod surface;
pub mod tty;

pub use image_protocol::{ImageProtocol, ImageSetting, TerminalName};
pub use input_parser::{Input, Reply};
pub use strips::Strips;
pub use surface::Surface;
pub use tty::Mouse;
