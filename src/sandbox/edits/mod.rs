//! What tools do to files: reading them for the model, and changing them, all at once or not at all.

mod change;
mod seen_files;

pub use change::{Cell, Change, Hunk};
pub use seen_files::Seen;
