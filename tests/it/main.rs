#![allow(
    clippy::disallowed_methods,
    reason = "tests make files and run commands as they like"
)]

mod documents;
mod journal;
mod model;
mod print;
mod settings;
