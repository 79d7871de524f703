//! A session that another program writes, as it grows.

use std::{
    io::{self, Read as _, Seek as _, SeekFrom},
    path::PathBuf,
};

use super::{line, record};
use crate::{
    os::file,
    protocol::{Entry, Position},
};

/// A position in the file of a session.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    at: u64,
    last: Position,
    /// Beginning of a line whose end has not arrived.
    rest: Vec<u8>,
}

impl Tail {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            at: 0,
            last: Position(0),
            rest: Vec::new(),
        }
    }

    /// Reads the entries written since the last call, in order. Unreadable lines are left out; their writer reports
    /// them.
    pub fn read(&mut self) -> io::Result<Vec<Entry>> {
        let mut file = file::open(&self.path).map_err(io::Error::other)?;
        // A torn end was taken away: what came in its place is longer soon.
        if file.metadata()?.len() <= self.at {
            return Ok(Vec::new());
        }
        file.seek(SeekFrom::Start(self.at))?;
        let read = file.read_to_end(&mut self.rest)?;
        self.at += read as u64;
        let whole = self.rest.iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
        let lines: Vec<u8> = self.rest.drain(..whole).collect();
        let mut entries = Vec::new();
        for text in lines.split(|it| *it == b'\n').filter(|it| !it.is_empty()) {
            let Ok((position, members)) = line::read(text.trim_ascii(), true) else {
                continue;
            };
            let position = Position(position);
            // The first line says what the session is; a line that was written again was read already.
            if members.contains_key("session") || position <= self.last {
                continue;
            }
            self.last = position;
            entries.extend(record::from_members(position, members));
        }
        Ok(entries)
    }
}
