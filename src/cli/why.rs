//! `sheaf why FILE:LINE`: the kept conversations asked who wrote a line.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use super::{
    Base,
    arguments::{Whom, Why},
    code, complain, say,
    sessions::IMPORT_BYTES,
};
use crate::{
    agent::undo::UNDONE,
    export::Whole,
    journal::file::Store,
    os::file,
    print::harmless,
    protocol::{Applied, FileEdit, View},
    text::figure,
    transcript::why::{Origin, Step, origin},
    tui::now_ms,
};

/// More of a file is not looked at.
const FILE_BYTES: u64 = 16 << 20;

/// An edit of the file, with what one wants to know of it.
struct Brought {
    at_ms: u64,
    address: String,
    title: String,
    model: Option<String>,
    asked: String,
    old: Option<String>,
    new: String,
    first_line: Option<u64>,
    /// The name that the file had before.
    was: Option<String>,
}

pub fn run(asked: &Why) -> Result<u8> {
    let base = Base::of(&asked.common, &Whom::default())?;
    let parsed = asked.place.rsplit_once(':');
    let Some((name, Ok(line))) = parsed.map(|(name, line)| (name, line.parse::<usize>())) else {
        bail!("`{}` is no line of a file\n  as in src/cart.rs:22", asked.place);
    };
    let path = plain(&std::env::current_dir()?.join(name));
    let bytes = file::read(&path, FILE_BYTES)?;
    let text = String::from_utf8_lossy(&bytes);
    let Some(words) = line.checked_sub(1).and_then(|it| text.lines().nth(it)) else {
        bail!("{name} has {} lines", text.lines().count());
    };
    let found = brought(&base, &path)?;
    let steps = found.iter().map(|it| Step {
        old: it.old.as_deref(),
        new: &it.new,
        first_line: it.first_line,
    });
    let Some((origin, it)) = origin(&text, line, steps).and_then(|it| Some((it, found.get(it.step)?))) else {
        complain(&match found.len() {
            0 => format!("no conversation that is kept has changed {name}"),
            count => format!("none of the {count} changes of {name} that are kept has brought this line"),
        });
        return Ok(code::FAILED);
    };
    if asked.json {
        let object = json!({
            "address": it.address, "title": it.title, "model": it.model, "at": it.at_ms, "message": it.asked,
            "line": words, "certain": origin.is_certain,
        });
        say(&harmless(format!("{object}\n")));
    } else {
        say(&told(it, origin, words));
    }
    Ok(code::OK)
}

fn told(it: &Brought, origin: Origin, words: &str) -> String {
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

/// All edits of a file that have been made, the newest first, also those of its earlier names.
fn brought(base: &Base, path: &Path) -> Result<Vec<Brought>> {
    let store = Store::new(base.paths.sessions());
    let mut found = Vec::new();
    for listed in store.list().context("the conversations cannot be listed")? {
        let id = &listed.session.id;
        // A conversation that changed the file or anything else in its folder is one about a folder around it.
        let is_near = path.starts_with(&listed.session.workspace);
        let bytes = is_near
            .then(|| file::read(&store.path_of(id), IMPORT_BYTES).ok())
            .flatten();
        let holds_edits = |it: &Vec<u8>| it.windows(11).any(|it| it == b"\"file_edit\"");
        if !bytes.as_ref().is_some_and(holds_edits) {
            continue;
        }
        let Ok(stored) = store.read(id) else { continue };
        let whole = Whole::new(stored.session.clone(), stored.closed());
        edits(&whole, &mut found);
    }
    // The order of documents is that of events; of conversations side by side the clock has to tell.
    found.sort_by_key(|(_, it)| it.at_ms);
    let mut names = vec![path.to_owned()];
    let mut wanted = Vec::new();
    for (target, it) in found.into_iter().rev() {
        if !names.contains(&target) {
            continue;
        }
        if let Some(was) = &it.was {
            names.push(plain(Path::new(was)));
        }
        wanted.push(it);
    }
    Ok(wanted)
}

/// The file that each edit of a conversation left behind, and the edit.
fn edits(whole: &Whole, found: &mut Vec<(PathBuf, Brought)>) {
    let folder = Path::new(&whole.session.workspace);
    for exchange in whole.transcript.all() {
        for (at, document) in exchange.response.documents.iter().enumerate() {
            let View::FileEdit(edit) = document.view() else {
                continue;
            };
            let is_undone = document.metadata.get(UNDONE) == Some(&true.into());
            if is_undone || !matches!(edit.applied, Applied::Applied | Applied::Other(_)) {
                continue;
            }
            let target = plain(&folder.join(edit.new_file_path.unwrap_or(edit.file_path)));
            let Some((old, new)) = texts(&edit) else { continue };
            let was = edit
                .new_file_path
                .map(|_| folder.join(edit.file_path).to_string_lossy().into_owned());
            found.push((
                target,
                Brought {
                    at_ms: exchange.at_ms,
                    address: format!(
                        "{}#{}.{}",
                        whole.session.id,
                        exchange.turn.0,
                        exchange.response.number(at)
                    ),
                    title: whole.title(),
                    model: exchange.response.model.clone(),
                    asked: exchange
                        .message
                        .as_ref()
                        .map(|it| it.content.clone())
                        .unwrap_or_default(),
                    old,
                    new,
                    first_line: edit.diff.as_ref().and_then(|it| it.start_line),
                    was,
                },
            ));
        }
    }
}

/// What was there, where that is known, and what came; `None` for what changes no line.
fn texts(edit: &FileEdit<'_>) -> Option<(Option<String>, String)> {
    match (&edit.diff, edit.content) {
        (Some(diff), _) => Some((Some(diff.old.to_owned()), diff.new.to_owned())),
        (None, Some(content)) => Some((None, content.to_owned())),
        // A renaming takes the lines along.
        (None, None) => edit.new_file_path.map(|_| (Some(String::new()), String::new())),
    }
}

/// Without `.` and `..`, as documents name files.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(part),
        }
    }
    out
}
