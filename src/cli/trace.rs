//! `--log FILE`: what happens inside, never on the terminal.

use std::{path::Path, sync::Mutex};

use anyhow::Result;
use tracing_subscriber::EnvFilter;

use crate::{config::Environment, os::file};

/// Writes to the end of the file from now on. `SHEAF_LOG` says what, as in `sheaf=trace,hyper=info`.
pub fn start(path: &Path, environment: &Environment) -> Result<()> {
    let file = file::append(path)?;
    let filter = environment.get("SHEAF_LOG").unwrap_or("sheaf=debug,warn");
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_env_filter(EnvFilter::builder().parse_lossy(filter))
        .with_writer(Mutex::new(file))
        .try_init()
        .map_err(|error| anyhow::anyhow!("the log cannot be started: {error}"))
}
