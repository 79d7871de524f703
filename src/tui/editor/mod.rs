//! The text of the composer: the draft with its undo, the field that shows it, and Vim's commands.
//!
//! It knows nothing of the conversation. Its only model is the `TextArea` of `ratatui-textarea`: text, caret, selection,
//! edits and yank buffer. What the crate has no call for is here, and nothing else:
//!
//! - Its motions and deletions go by characters, and its undo by single edits. The draft adds graphemes, words by classes of
//!   letters, and steps of undo: the number of edits, the caret before them, and a limit in bytes.
//! - `CursorMove::Jump` and the offset of its view take 16 bits. The draft walks to places beyond, and the field draws the
//!   lines around the caret where the text has more rows.
//! - The number of rows is known only by moving the caret to the end, and an area breaks its text for a width only where it
//!   is drawn.
//! - A label in place of a character cannot be drawn. A chip therefore has its label in the text, and what is sent or stored
//!   is read without it.

pub mod draft;
pub mod field;
pub mod vim;
