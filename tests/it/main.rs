#![allow(
    clippy::disallowed_methods,
    reason = "tests make files and run commands as they like"
)]

mod dictation;
mod documents;
mod floors;
mod house;
mod journal;
mod model;
mod papers;
mod print;
mod pty;
mod same;
mod screen;
mod serve;
mod settings;
mod source;
