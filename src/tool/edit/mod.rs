//! What tools that change files share: a file's text, the ways of saying what to change in it, and the places that differ.
//!
//! Everything here is a function from texts to texts. The tools stand beside this folder.

pub mod hunks;
pub mod merge;
pub mod sketch;
pub mod text;
