//! Files of the workspace that the screen reads or writes for the user.

use std::{
    io,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use super::EffectRunner;
use crate::{
    config::{self, Fingerprint, TrustStore},
    extensions::{CustomMode, Surroundings, find_modes},
    os::file,
    protocol::{DocumentId, Turn, UserAction},
    t,
    tui::{
        custom::{self, Custom},
        image::{self, ImageOrder},
        msg::{EffectOutcome, SavedFile},
        widgets::Citation,
    },
};

/// Largest file that is read for a citation, in bytes.
const CITED_BYTES: u64 = 2 << 20;

/// Writes `text` to `target`, which the user calls `path`. Of a file that says something else the user is asked first, if the
/// draft's version is given.
pub fn save(runner: &EffectRunner, target: PathBuf, path: String, text: String, asks: Option<u64>) {
    runner.block(move || {
        let old = file::read(&target, text.len() as u64 + 1);
        let is_replaced = !matches!(&old, Err(it) if it.is_absent());
        if let Some(draft) = asks
            && is_replaced
            && !old.is_ok_and(|it| it == text.as_bytes())
        {
            return EffectOutcome::SaveExists { path, text, draft };
        }
        let saved = target
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .map_err(|it| it.to_string())
            .and_then(|()| file::write(&target, text.as_bytes(), file::Access::Shared).map_err(|it| it.to_string()));
        EffectOutcome::Saved(match saved {
            Ok(()) => Ok(SavedFile {
                action: UserAction::Saved,
                path,
                is_replaced,
            }),
            Err(why) => Err(t!("news-not-saved", path = path, why = why)),
        })
    });
}

/// Reads the lines that a document cites, counted from 1.
pub fn cite(
    runner: &EffectRunner,
    root: PathBuf,
    (turn, document): (Turn, DocumentId),
    path: String,
    lines: RangeInclusive<u64>,
) {
    runner.block(move || {
        let found = match file::read_beneath(&root, Path::new(&path), CITED_BYTES) {
            Ok(bytes) => String::from_utf8(bytes).map_or(Citation::Unread, |text| {
                let first = lines.start().saturating_sub(1) as usize;
                let count = lines.end().saturating_sub(*lines.start()) as usize + 1;
                let chosen: Vec<_> = text.lines().skip(first).take(count).collect();
                Citation::Lines(chosen.join("\n"))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Citation::Missing,
            Err(_) => Citation::Unread,
        };
        EffectOutcome::Cited { turn, document, found }
    });
}

/// Reads a picture that a tool has read, to draw it.
pub fn read_picture(runner: &EffectRunner, root: PathBuf, (turn, document): (Turn, DocumentId), path: String) {
    runner.block(move || {
        let data = image::read(&root, &path);
        EffectOutcome::PictureRead { turn, document, data }
    });
}

/// Converts a picture to what the terminal takes.
pub fn make_picture(runner: &EffectRunner, order: ImageOrder) {
    runner.block(move || {
        let (id, made) = image::make(&order);
        EffectOutcome::PictureMade(id, made)
    });
}

/// Finds the commands and modes that files of the user's and of the workspace hold, as far as those may act.
pub fn commands(
    runner: &EffectRunner,
    workspace: PathBuf,
    trusted: Vec<String>,
    outcome: impl FnOnce(Vec<Custom>, Vec<CustomMode>) -> EffectOutcome + Send + 'static,
) {
    let paths = runner.paths.clone();
    runner.block(move || {
        let is_whole = config::is_trusted(&trusted, &workspace);
        let said = TrustStore::under(&paths.state).record(&workspace);
        let may_act = |path: &str, print: &Fingerprint| is_whole || said.allows(path, print);
        let (around, _) = Surroundings::of_user(Some(workspace), Some(&paths));
        outcome(custom::find(&around, &may_act), find_modes(&around, &may_act).modes)
    });
}
