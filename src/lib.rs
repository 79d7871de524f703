//! sheaf: a terminal chat client for developers. An answer is a sheaf of documents.
//!
//! Floors, from the ground: a module uses lower floors only, and nothing beside it (`tests/it/floors.rs` holds this).
//!
//! | floor | modules |
//! | --- | --- |
//! | 0 | [`os`] [`text`] [`net`] |
//! | 1 | [`protocol`] [`config`] [`locale`] [`shell`] |
//! | 2 | [`theme`] [`transcript`] [`journal`] [`extensions`] |
//! | 3 | [`index`] [`link`] [`models`] [`sandbox`] |
//! | 4 | [`embedding`] [`export`] [`lsp`] [`mcp`] [`conform`] |
//! | 5 | [`tools`] |
//! | 6 | [`agent`] [`tui`] [`server`] [`print`](mod@print) |
//! | 7 | [`cli`] |

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "tests make files and run commands as they like"
    )
)]

#[cfg(test)]
extern crate self as sheaf;

pub mod agent;
pub mod cli;
pub mod config;
pub mod conform;
pub mod embedding;
pub mod export;
pub mod extensions;
pub mod index;
pub mod journal;
pub mod link;
pub mod locale;
pub mod lsp;
pub mod mcp;
pub mod models;
pub mod net;
pub mod os;
pub mod print;
pub mod protocol;
pub mod sandbox;
pub mod server;
pub mod shell;
pub mod text;
pub mod theme;
pub mod tools;
pub mod transcript;
pub mod tui;
