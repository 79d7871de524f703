//! Notes on commits: which message and model brought each hunk. They are in `refs/notes/sheaf`, so that a second clone can
//! fetch them; nothing is ever pushed by itself.
//!
//! A note is a JSON object a line, one for each hunk: file, lines, address, model, and the first line of the user's message;
//! with `commit.note = full` the whole message. Secrets are redacted.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Error, Repository, accepted::AcceptedHunk, stage::Made};
use crate::text::redact::redact;

/// The ref that contains the notes.
pub const REF: &str = "refs/notes/sheaf";

/// Longest first line of a message, in characters.
const LINE_CHARS: usize = 200;
/// Longest whole message, in bytes.
const MESSAGE_BYTES: usize = 16 << 10;

/// A line of a note: the origin of a hunk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NoteLine {
    /// From the top of the repository.
    pub file: String,
    /// `10-12` in the commit; `""` for a removal.
    pub lines: String,
    /// The document's address in its conversation.
    pub address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The first line of the user's message; all of it with `commit.note = full`.
    pub message: String,
}

/// The origin of a line, as a note tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub commit: String,
    pub line: NoteLine,
}

/// The text of a note about these documents; `None` if there is nothing to say, or nothing should be said.
pub fn text<'a>(hunks: &[AcceptedHunk], made: impl Iterator<Item = Option<&'a [Made]>>, level: &str) -> Option<String> {
    let is_full = match level {
        "off" => return None,
        level => level == "full",
    };
    let mut text = String::new();
    for (hunk, made) in hunks.iter().zip(made) {
        for made in made.into_iter().flatten().filter(|it| it.is_new) {
            let lines = if made.lines.is_empty() {
                String::new()
            } else {
                format!("{}-{}", made.lines.start + 1, made.lines.end)
            };
            let line = NoteLine {
                file: made.path.clone(),
                lines,
                address: hunk.address.clone(),
                model: hunk.model.clone(),
                message: message(&hunk.asked, is_full),
            };
            let Ok(line) = serde_json::to_string(&line) else {
                continue;
            };
            text.push_str(&line);
            text.push('\n');
        }
    }
    (!text.is_empty()).then_some(text)
}

fn message(asked: &str, is_full: bool) -> String {
    let asked = redact(asked);
    if is_full {
        return asked
            .get(..asked.floor_char_boundary(MESSAGE_BYTES))
            .unwrap_or_default()
            .to_owned();
    }
    let line = asked
        .lines()
        .map(str::trim)
        .find(|it| !it.is_empty())
        .unwrap_or_default();
    line.chars().take(LINE_CHARS).collect()
}

/// Writes the note of a commit.
pub async fn write(repository: &Repository, commit: &str, text: &str) -> Result<(), Error> {
    let notes = repository
        .quiet()
        .args(["notes", "--ref", REF, "add", "--force", "--file=-", commit]);
    notes.input(text).output().await?;
    Ok(())
}

/// Finds who wrote a line of a file, which may have changes that are not committed; `None` if no note says it.
pub async fn of_line(path: &Path, text: &[u8], line: usize) -> Result<Option<Told>, Error> {
    let folder = path.parent().unwrap_or(path);
    let repository = Repository::open(folder).await?;
    let (Some(name), Some(filters)) = (path.file_name(), super::filters(folder).await) else {
        return Ok(None);
    };
    let blame = super::quiet(folder)
        .args(filters.iter().flat_map(|it| ["-c", it.as_str()]))
        .args([
            "-c",
            "blame.ignoreRevsFile=",
            "blame",
            "--porcelain",
            "--no-textconv",
            "--contents=-",
        ])
        .arg(format!("-L{line},{line}"))
        .arg("--")
        .arg(name)
        .input(text)
        .run()
        .await?;
    if !blame.status.success() {
        return Ok(None);
    }
    let blamed = String::from_utf8_lossy(&blame.stdout);
    // The commit and the line in it; further down the file's name then.
    let mut head = blamed.lines().next().unwrap_or_default().split(' ');
    let (Some(commit), Some(Ok(at))) = (head.next(), head.next().map(str::parse::<usize>)) else {
        return Ok(None);
    };
    let file = blamed
        .lines()
        .find_map(|it| it.strip_prefix("filename "))
        .unwrap_or_default();
    let note = repository
        .quiet()
        .args(["notes", "--ref", REF, "show", commit])
        .run()
        .await?;
    if !note.status.success() {
        return Ok(None);
    }
    let note = String::from_utf8_lossy(&note.stdout);
    let found = note
        .lines()
        .filter_map(|it| serde_json::from_str::<NoteLine>(it).ok())
        .find(|it| it.file == file && contains(&it.lines, at));
    Ok(found.map(|line| Told {
        commit: commit.to_owned(),
        line,
    }))
}

fn contains(lines: &str, line: usize) -> bool {
    let range = lines
        .split_once('-')
        .and_then(|(from, to)| Some(from.parse().ok()?..=to.parse().ok()?));
    range.is_some_and(|it: std::ops::RangeInclusive<usize>| it.contains(&line))
}
