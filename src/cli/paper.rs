//! What is made from the table of arguments for other programs: completions for shells, the page for `man`.

use anyhow::Result;
use clap::CommandFactory as _;

use super::{arguments::Arguments, code, say};

pub fn completions(shell: clap_complete::Shell) -> u8 {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "sheaf", &mut text);
    say(&String::from_utf8_lossy(&text));
    code::OK
}

pub fn manual() -> Result<u8> {
    let mut text = Vec::new();
    clap_mangen::Man::new(Arguments::command()).render(&mut text)?;
    say(&String::from_utf8_lossy(&text));
    Ok(code::OK)
}
