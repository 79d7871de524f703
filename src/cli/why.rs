//! `sheaf why FILE:LINE`: finds the conversation that wrote a line, else the note on the commit that did.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use super::{
    CliContext,
    arguments::{TargetArguments, Why},
    code, complain, printing_store, runtime, say,
    sessions::IMPORT_BYTES,
};
use crate::{
    agent::git::note::{self, Told},
    export::ExportedConversation,
    os::file,
    print::harmless,
    protocol::{Applied, FileEdit, View},
    text::{Sanitized, figure},
    transcript::blame::{Edit, Origin, origin},
    tui::now_ms,
};

/// Maximum size of the file, in bytes.
const FILE_BYTES: u64 = 16 << 20;

/// An edit of the file, with its conversation's facts.
struct FileEditRecord {
    at_ms: u64,
    address: String,
    title: String,
    model: Option<String>,
    asked: String,
    old: Option<String>,
    new: String,
    first_line: Option<u64>,
    /// Previous path, if the edit renamed the file.
    was: Option<String>,
}

pub fn run(asked: &Why) -> Result<u8> {
    let base = CliContext::of(&asked.common, &TargetArguments::default())?;
    match found(&base, &asked.place, asked.json)? {
        Ok(told) => {
            say(&told);
            Ok(code::OK)
        }
        Err(why) => {
            complain(&why);
            Ok(code::FAILED)
        }
    }
}

/// Which conversation wrote a line, or why nobody knows, for programs.
pub fn told(base: &CliContext, place: &str) -> Result<String> {
    found(base, place, true).map(|it| it.unwrap_or_else(|why| why))
}

/// The origin of `place` (`file:line`), as text or JSON. The inner error: no conversation is known to have written it.
fn found(base: &CliContext, place: &str, is_json: bool) -> Result<Result<String, String>> {
    let parsed = place.rsplit_once(':');
    let Some((name, Ok(line))) = parsed.map(|(name, line)| (name, line.parse::<usize>())) else {
        bail!("`{place}` is not a file and line\n  example: src/cart.rs:22");
    };
    let path = file::lexical(&std::env::current_dir()?.join(name));
    let bytes = file::read(&path, FILE_BYTES)?;
    let text = String::from_utf8_lossy(&bytes);
    let Some(words) = line.checked_sub(1).and_then(|it| text.lines().nth(it)) else {
        bail!("{name} has {} lines", text.lines().count());
    };
    let found = edits_of_file(base, &path)?;
    let steps = found.iter().map(|it| Edit {
        old: it.old.as_deref(),
        new: &it.new,
        first_line: it.first_line,
    });
    let local = origin(&text, line, steps).and_then(|it| Some((it, found.get(it.step)?)));
    // Git follows a line further than words can, and knows commits of other machines.
    if local.is_none_or(|it| !it.0.is_certain)
        && let Ok(Some(told)) = runtime(false)?.block_on(note::of_line(&path, &bytes, line))
    {
        return Ok(Ok(told_by_note(&told, words, is_json).into_string()));
    }
    let Some((origin, it)) = local else {
        return Ok(Err(match found.len() {
            0 if path.ancestors().any(|it| it.join(".git").exists()) => format!(
                "no saved conversation changed {name}\n  to see the notes of others in a clone: \
                 git fetch origin refs/notes/sheaf:refs/notes/sheaf"
            ),
            0 => format!("no saved conversation changed {name}"),
            count => format!("none of the {count} saved changes to {name} produced this line"),
        }));
    };
    Ok(Ok(if is_json {
        let object = json!({
            "address": it.address, "title": it.title, "model": it.model, "at": it.at_ms, "message": it.asked,
            "line": words, "certain": origin.is_certain,
        });
        harmless(format!("{object}\n")).into_string()
    } else {
        describe(it, origin, words)
    }))
}

/// The origin of a line as the note of its commit tells it, as text or JSON.
fn told_by_note(told: &Told, words: &str, is_json: bool) -> Sanitized {
    let Told { commit, line: it } = told;
    if is_json {
        let object = json!({
            "address": it.address, "commit": commit, "model": it.model, "message": it.message, "line": words, "certain": true,
        });
        return harmless(format!("{object}\n"));
    }
    let model = it.model.as_ref().map(|it| format!(", {it}")).unwrap_or_default();
    let asked = it.message.lines().next().unwrap_or_default();
    let short = commit.get(..8).unwrap_or(commit);
    Sanitized::new(&format!(
        "{}\n  {}{model}\n  commit {short}, note in {}\n  › {asked}\n",
        words.trim(),
        it.address,
        note::REF
    ))
}

fn describe(it: &FileEditRecord, origin: Origin, words: &str) -> String {
    let ago = figure::ago(now_ms().saturating_sub(it.at_ms));
    let model = it.model.as_ref().map(|it| format!(", {it}")).unwrap_or_default();
    let asked = it.asked.lines().find(|it| !it.trim().is_empty()).unwrap_or_default();
    let doubt = if origin.is_certain {
        ""
    } else {
        "  the file has changed in other ways since: this one brought the same words\n"
    };
    format!(
        "{}\n  {}, {}{model}\n  {}\n{doubt}  › {asked}\n",
        words.trim(),
        it.address,
        ago.as_str(),
        it.title
    )
}

/// Returns all applied edits of a file, also under its earlier names, the newest first.
fn edits_of_file(base: &CliContext, path: &Path) -> Result<Vec<FileEditRecord>> {
    let store = printing_store(base);
    let mut found = Vec::new();
    for listed in store.list().context("conversations cannot be listed")? {
        let id = &listed.session.id;
        // Only conversations in a folder around the file can have changed it.
        let is_near = path.starts_with(&listed.session.workspace);
        let bytes = is_near
            .then(|| file::read(&store.path_of(id), IMPORT_BYTES).ok())
            .flatten();
        let holds_edits = |it: &Vec<u8>| it.windows(11).any(|it| it == b"\"file_edit\"");
        if !bytes.as_ref().is_some_and(holds_edits) {
            continue;
        }
        let Ok(stored) = store.read(id) else { continue };
        let whole = ExportedConversation::new(stored.session.clone(), stored.closed());
        edits(&whole, &mut found);
    }
    // Documents of one conversation are in order; conversations are merged by time.
    found.sort_by_key(|(_, it)| it.at_ms);
    let mut names = vec![path.to_owned()];
    let mut wanted = Vec::new();
    for (target, it) in found.into_iter().rev() {
        if !names.contains(&target) {
            continue;
        }
        if let Some(was) = &it.was {
            names.push(file::lexical(Path::new(was)));
        }
        wanted.push(it);
    }
    Ok(wanted)
}

/// Adds each edit of a conversation, with the path that it left.
fn edits(whole: &ExportedConversation, found: &mut Vec<(PathBuf, FileEditRecord)>) {
    let folder = Path::new(&whole.session.workspace);
    for exchange in whole.transcript.all() {
        for (at, document) in exchange.response.documents.iter().enumerate() {
            let View::FileEdit(edit) = document.view() else {
                continue;
            };
            if document.is_undone() || !matches!(edit.applied, Applied::Applied | Applied::Other(_)) {
                continue;
            }
            let target = file::lexical(&folder.join(edit.new_file_path.unwrap_or(edit.file_path)));
            let Some((old, new)) = texts(&edit) else { continue };
            let was = edit
                .new_file_path
                .map(|_| folder.join(edit.file_path).to_string_lossy().into_owned());
            found.push((
                target,
                FileEditRecord {
                    at_ms: exchange.at_ms,
                    address: format!(
                        "{}#{}.{}",
                        whole.session.id,
                        exchange.turn.0,
                        exchange.response.number(at)
                    ),
                    title: whole.title(),
                    model: exchange.response.model.clone(),
                    asked: exchange.asked().to_owned(),
                    old,
                    new,
                    first_line: edit.diff.as_ref().and_then(|it| it.start_line),
                    was,
                },
            ));
        }
    }
}

/// Returns the old text, if known, and the new one. `None` for an edit that changes no line.
fn texts(edit: &FileEdit<'_>) -> Option<(Option<String>, String)> {
    match (&edit.diff, edit.content) {
        (Some(diff), _) => Some((Some(diff.old.to_owned()), diff.new.to_owned())),
        (None, Some(content)) => Some((None, content.to_owned())),
        // Renaming keeps all lines.
        (None, None) => edit.new_file_path.map(|_| (Some(String::new()), String::new())),
    }
}
