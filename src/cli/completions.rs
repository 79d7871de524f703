//! Shell completions and the manual pages, generated from the table of arguments.

use std::path::Path;

use anyhow::{Context as _, Result};
use clap_mangen::Man;

use super::{arguments::Arguments, code, say};

/// `sheaf completions SHELL`.
pub fn completions(shell: clap_complete::Shell) -> u8 {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::definition(), "sheaf", &mut text);
    say(&String::from_utf8_lossy(&text));
    code::OK
}

/// `sheaf man`: prints the page of the program, or writes a page for it and each subcommand into a folder.
pub fn manual(folder: Option<&Path>) -> Result<u8> {
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be created", folder.display()))?;
        clap_mangen::generate_to(Arguments::definition(), folder)
            .with_context(|| format!("no manual page could be written to {}", folder.display()))?;
        return Ok(code::OK);
    }
    let mut text = Vec::new();
    Man::new(Arguments::definition()).render(&mut text)?;
    say(&String::from_utf8_lossy(&text));
    Ok(code::OK)
}
