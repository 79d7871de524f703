//! `--log FILE`: the diagnostic log, never on the terminal.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
    sync::Mutex,
};

use anyhow::Result;
use tracing_subscriber::EnvFilter;

use crate::{config::Environment, os::file, text::redact::redact};

/// Appends log lines to the file from now on. `SHEAF_LOG` filters them, as in `sheaf=trace,hyper=info`.
pub fn start(path: &Path, environment: &Environment) -> Result<()> {
    let file = file::append(path)?;
    let filter = environment.get("SHEAF_LOG").unwrap_or("sheaf=debug,warn");
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_env_filter(EnvFilter::builder().parse_lossy(filter))
        .with_writer(Mutex::new(RedactingWriter(file)))
        .try_init()
        .map_err(|error| anyhow::anyhow!("the log cannot be started: {error}"))
}

/// Removes keys from each line. One `write` is a whole line.
struct RedactingWriter(File);

impl Write for RedactingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .write_all(redact(&String::from_utf8_lossy(bytes)).as_bytes())
            .map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
