//! A file of the workspace as the tools that change files take it: opened, compared with what was read, changed, reported.

use std::{
    ops::{Range, RangeInclusive},
    sync::Arc,
};

use serde_json::{Map, Value};

use super::{
    hunks::{counts, hunks, lines, places, unified},
    text::{Text, Unreadable, plain, rows},
};
use crate::{
    protocol::Operation,
    sandbox::{Located, Refused},
    tools::{Change, Context, Fault, Hunk, Input, Proposal, Work, walk},
};

/// Files beyond this are not edited: everything about an edit is proportional to it.
const MOST_BYTES: u64 = 10 << 20;
/// Unchanged lines around a change that is reported.
const CONTEXT_LINES: usize = 5;
/// Lines that are reported of all changes together.
const MOST_LINES: usize = 200;
const MOST_CHARACTERS: usize = 500;
/// A longer diff is left out of a result's data: the documents of the edits hold it.
const MOST_DIFF_BYTES: usize = 64 * 1024;

/// A text file that is there.
pub struct Opened {
    pub file: Located,
    pub bytes: Arc<[u8]>,
    pub text: Text,
}

/// Works out a change on a thread that may block.
pub async fn away(
    input: Input,
    context: Context,
    work: fn(&Input, &Context) -> Result<Proposal, Fault>,
) -> Result<Proposal, Fault> {
    let own = context.clone();
    walk::away(&context, move |_| work(&input, &own)).await
}

/// The work of a tool that changes files by `propose`, on a thread that may block.
pub fn work(propose: fn(&Input, &Context) -> Result<Proposal, Fault>) -> Work {
    Work::change(move |input, context| away(input, context, propose))
}

/// The place that the argument `name` says, if tools may write there.
pub fn located(input: &Input, name: &str, context: &Context) -> Result<Located, Fault> {
    let written = input.text(name).unwrap_or_default();
    writable(written, context).map_err(|fault| match fault.code {
        "TOOL_ARGUMENTS_INVALID" if written.trim().is_empty() => {
            Fault::arguments(format!("the argument `{name}` is empty"))
        }
        _ => fault,
    })
}

/// The place that was written, if tools may write there.
pub fn writable(written: &str, context: &Context) -> Result<Located, Fault> {
    if written.trim().is_empty() {
        return Err(Refused::Path(written.to_owned()).into());
    }
    let file = context.workspace.locate(written)?;
    context.workspace.may_change(&file)?;
    Ok(file)
}

/// The file at a place; `None` where nothing is.
pub fn find(file: &Located, context: &Context) -> Result<Option<Opened>, Fault> {
    let bytes: Arc<[u8]> = match context.workspace.read(file, MOST_BYTES) {
        Ok(bytes) => bytes.into(),
        Err(Refused::Missing(_)) => return Ok(None),
        Err(refused @ Refused::Huge { .. }) => {
            return Err(Fault::from(refused).hint("Change it with a command, such as sed."));
        }
        Err(refused) => return Err(refused.into()),
    };
    let text = Text::read(&bytes).map_err(|error| unreadable(file, &error))?;
    Ok(Some(Opened {
        file: file.clone(),
        bytes,
        text,
    }))
}

/// The file at a place, which must be there.
pub fn open(file: &Located, context: &Context) -> Result<Opened, Fault> {
    find(file, context)?.ok_or_else(|| Refused::Missing(file.shown.clone()).into())
}

fn unreadable(file: &Located, error: &Unreadable) -> Fault {
    let fault = Fault::new("TOOL_FAILED", format!("`{}` cannot be edited: {error}", file.shown));
    match error {
        Unreadable::Binary => fault,
        Unreadable::Utf8 { .. } | Unreadable::Utf16 => {
            fault.hint("Convert it to UTF-8 with a command first, if that is wanted.")
        }
    }
}

/// The change that makes a file's text `new`, if the model has read what it changes.
pub fn edited(opened: &Opened, new: &str, context: &Context) -> Result<Change, Fault> {
    let old = opened.text.text.as_str();
    context.seen.check(&opened.file, &opened.bytes)?;
    let shown = context.seen.shown(&opened.file);
    for (place, _) in places(&lines(old), &lines(new)) {
        was_shown(opened, &place, &shown)?;
    }
    replaced(opened, new)
}

/// The change that makes a file's text `new`, whatever the model has read of it.
pub fn replaced(opened: &Opened, new: &str) -> Result<Change, Fault> {
    let old = opened.text.text.as_str();
    let bytes = opened.text.write(new);
    if *bytes == *opened.bytes {
        return Err(Fault::arguments(format!(
            "nothing would change in `{}`: it is like that already",
            opened.file.shown
        )));
    }
    Ok(Change {
        file: opened.file.clone(),
        operation: Operation::Edit,
        to: None,
        old: Some(Arc::clone(&opened.bytes)),
        new: Some(bytes.into()),
        hunks: hunks(old, new),
        cell: None,
    })
}

/// Lines that are to change were shown to the model, or one of those that something is to come between.
fn was_shown(opened: &Opened, place: &Range<usize>, shown: &[RangeInclusive<u64>]) -> Result<(), Fault> {
    let holds = |first: usize, last: usize| {
        let (first, last) = (first as u64, last as u64);
        let part = shown.partition_point(|it| *it.end() < first);
        shown
            .get(part)
            .is_some_and(|it| *it.start() <= first && last <= *it.end())
    };
    let is_seen = if place.is_empty() {
        holds(place.start, place.start) || holds(place.start + 1, place.start + 1)
    } else {
        holds(place.start + 1, place.end)
    };
    if is_seen {
        return Ok(());
    }
    let (first, last) = (place.start + 1, place.end.max(place.start + 1));
    let message = format!(
        "lines {first} to {last} of `{}` would change and have not been read in this conversation",
        opened.file.shown
    );
    Err(Fault::new("EDIT_STALE", message).hint("Read these lines first."))
}

/// The change that puts a new file there.
pub fn created(file: Located, contents: &str) -> Change {
    Change {
        file,
        operation: Operation::Create,
        to: None,
        old: None,
        new: Some(contents.as_bytes().into()),
        hunks: hunks("", &plain(contents)),
        cell: None,
    }
}

/// A proposal of one change: its text says what was done, and shows it.
pub fn proposal(change: Change, note: &str) -> Proposal {
    proposals(vec![change], note)
}

/// A proposal of several changes. `note` stands behind what is said of the first.
pub fn proposals(changes: Vec<Change>, note: &str) -> Proposal {
    let mut text = String::new();
    let mut diff = String::new();
    let mut data = Map::new();
    let mut budget = MOST_LINES;
    let (mut all_added, mut all_removed) = (0, 0);
    for (index, change) in changes.iter().enumerate() {
        let shown = &change.file.shown;
        let (old, new) = (side(change.old.as_deref()), side(change.new.as_deref()));
        let (added, removed) = counts(&old, &new);
        all_added += added;
        all_removed += removed;
        let lines = |count: usize| format!("{count} {}", if count == 1 { "line" } else { "lines" });
        let (word, done) = match (&change.operation, &change.to) {
            (Operation::Create, _) => ("create", format!("Created `{shown}` ({}).", lines(added))),
            (Operation::Delete, _) => ("delete", format!("Deleted `{shown}`.")),
            (Operation::Rename, Some(to)) => ("rename", format!("Moved `{shown}` to `{}`.", to.shown)),
            (Operation::Edit | Operation::Rename | Operation::Other(_), _) => (
                "edit",
                format!("Changed `{shown}`: {} added, {removed} removed.", lines(added)),
            ),
        };
        if index > 0 {
            text.push_str("\n\n");
        } else {
            data.insert("filePath".to_owned(), shown.as_str().into());
            data.insert("operation".to_owned(), word.into());
        }
        text.push_str(&done);
        if index == 0 {
            text.push_str(note);
        }
        if matches!(change.operation, Operation::Edit | Operation::Rename) {
            text.push_str(&regions(&new, &change.hunks, &mut budget));
        }
        if diff.len() <= MOST_DIFF_BYTES && !change.hunks.is_empty() {
            let to = change.to.as_ref().map_or(shown, |it| &it.shown);
            let from = if change.old.is_none() {
                "/dev/null".to_owned()
            } else {
                format!("a/{shown}")
            };
            let to = if change.new.is_none() {
                "/dev/null".to_owned()
            } else {
                format!("b/{to}")
            };
            diff.push_str(&format!("--- {from}\n+++ {to}\n{}", unified(&old, &change.hunks)));
        }
    }
    data.insert("linesAdded".to_owned(), all_added.into());
    data.insert("linesRemoved".to_owned(), all_removed.into());
    if changes.len() > 1 {
        let paths = changes.iter().map(|it| Value::from(it.file.shown.as_str()));
        data.insert("files".to_owned(), paths.collect());
    }
    if !diff.is_empty() && diff.len() <= MOST_DIFF_BYTES {
        data.insert("diffString".to_owned(), diff.into());
    }
    Proposal { changes, text, data }
}

/// Lines that may be reported of a call.
pub fn room() -> usize {
    MOST_LINES
}

/// The text of what stands on the disk; nothing, where it is no text.
fn side(bytes: Option<&[u8]>) -> String {
    bytes
        .and_then(|it| Text::read(it).ok())
        .map_or_else(String::new, |it| it.text)
}

/// The lines around the hunks as they are now, with line numbers.
pub fn regions(new: &str, hunks: &[Hunk], budget: &mut usize) -> String {
    let new = rows(new);
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut ahead = 0_i64;
    for hunk in hunks {
        let (added, removed) = (lines(&hunk.new).len(), lines(&hunk.old).len());
        let start = usize::try_from(hunk.start as i64 - 1 + ahead).unwrap_or_default();
        ahead += added as i64 - removed as i64;
        let range = start.saturating_sub(CONTEXT_LINES)..(start + added + CONTEXT_LINES).min(new.len());
        match ranges.last_mut() {
            Some(last) if range.start <= last.end => last.end = range.end,
            Some(_) | None => ranges.push(range),
        }
    }
    let mut text = String::new();
    let wanted: usize = ranges.iter().map(ExactSizeIterator::len).sum();
    let room = *budget;
    for (index, range) in ranges.into_iter().enumerate() {
        if *budget == 0 {
            break;
        }
        text.push_str(if index > 0 { "\n…" } else { "" });
        let until = range.end.min(range.start + *budget);
        text.push_str(&numbered(&new, range.start, until));
        *budget -= until.saturating_sub(range.start);
    }
    if wanted > room {
        text.push_str(&format!("\n[cut: {room} of {wanted} lines around the changes shown]"));
    }
    text
}

/// Lines with their numbers, each on a new line.
fn numbered(all: &[&str], from: usize, until: usize) -> String {
    let line = |(at, line): (usize, &&str)| format!("\n{}|{}", from + at + 1, short(line));
    let part = all.get(from..until).unwrap_or_default();
    part.iter().enumerate().map(line).collect()
}

/// The same of lines that begin with the number `first`.
pub fn listed(all: &[String], first: usize) -> String {
    let line = |(at, line): (usize, &String)| format!("{}|{}\n", first + at, short(line));
    all.iter().enumerate().map(line).collect()
}

fn short(line: &str) -> String {
    match line.char_indices().nth(MOST_CHARACTERS) {
        None => line.to_owned(),
        Some((end, _)) => {
            let (shown, rest) = line.split_at(end);
            format!("{shown}… [{} more characters]", rest.chars().count())
        }
    }
}
