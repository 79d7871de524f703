#![allow(
    clippy::disallowed_methods,
    clippy::string_slice,
    clippy::type_complexity,
    reason = "tests make files and run commands as they like; a slice that is wrong is a test that fails"
)]

mod approval;
mod dictation;
mod documents;
mod edits;
mod floors;
mod house;
mod journal;
mod merge;
mod model;
mod papers;
mod print;
mod pty;
mod same;
mod screen;
mod serve;
mod settings;
mod source;
