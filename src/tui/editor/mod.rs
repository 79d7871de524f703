//! The text of the composer: the draft with its undo, the field that shows it, and Vim's commands.
//!
//! It knows nothing of the conversation.

pub mod draft;
pub mod field;
pub mod vim;
