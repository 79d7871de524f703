//! Shell completions and the manual page, generated from the table of arguments.

use anyhow::Result;
use clap::CommandFactory as _;

use super::{arguments::Arguments, code, say};

/// `sheaf completions SHELL`.
pub fn completions(shell: clap_complete::Shell) -> u8 {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "sheaf", &mut text);
    say(&String::from_utf8_lossy(&text));
    code::OK
}

/// `sheaf man`.
pub fn manual() -> Result<u8> {
    let mut text = Vec::new();
    clap_mangen::Man::new(Arguments::command()).render(&mut text)?;
    say(&String::from_utf8_lossy(&text));
    Ok(code::OK)
}
