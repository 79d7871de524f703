//! The terminal program: a fold of the log on the screen, and keys that become commands.

pub mod doc;
