//! What tools that change files share: a file's text, the ways of saying what to change in it, and the places that differ.
//!
//! All but [`file`](mod@file) are functions from texts to texts. The tools stand beside this folder.

pub mod apply;
pub mod file;
pub mod hunks;
pub mod merge;
pub mod notebook;
pub mod patch;
pub mod pick;
pub mod replace;
pub mod sketch;
pub mod text;

#[cfg(test)]
mod tests;
