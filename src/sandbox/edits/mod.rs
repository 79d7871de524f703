//! Operations of tools on files: reading for the model, and changing all of them or none.

mod change;
mod seen_files;

pub use change::{Cell, Change, Hunk};
pub use seen_files::{Seen, SeenFile};
