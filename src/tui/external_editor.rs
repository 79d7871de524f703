//! The user's editor, as `$VISUAL` or `$EDITOR` names it: a draft, or a file of the workspace, is opened in it.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::places;
use crate::{
    os::{file, process},
    t,
};

/// Largest draft that is read back, in bytes.
const DRAFT_BYTES: u64 = 16 << 20;

/// A text that is edited as a file; only its owner can read it.
pub struct DraftFile(PathBuf);

impl DraftFile {
    /// Writes `text` into a file of the folder `state`; an editor knows by `ending` which language it is.
    pub fn write(state: &Path, text: &str, ending: &str) -> Result<Self, String> {
        let path = state.join(format!("draft-{}.{ending}", std::process::id()));
        file::private_folder(state).map_err(|it| it.to_string())?;
        file::write(&path, text.as_bytes(), file::Access::Private).map_err(|it| it.to_string())?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads the text back and removes the file.
    pub fn take(self) -> Result<String, String> {
        let bytes = file::read(&self.0, DRAFT_BYTES).map_err(|it| it.to_string());
        let _ = std::fs::remove_file(&self.0);
        Ok(String::from_utf8_lossy(&bytes?).into_owned())
    }
}

/// The ending of a draft's name for a part of the file at `path`: the file's own, `txt` if that is unusual.
pub fn ending(path: &str) -> &str {
    let ending = path.rsplit('/').next().and_then(|it| Some(it.rsplit_once('.')?.1));
    ending
        .filter(|it| (1..=10).contains(&it.len()) && it.bytes().all(|it| it.is_ascii_alphanumeric()))
        .unwrap_or("txt")
}

/// The editor's arguments for a file of the workspace and a line counted from 1; an error for a file that is outside or absent.
pub fn arguments_for(workspace: &Path, path: &str, line: Option<u64>) -> Result<Vec<OsString>, String> {
    let target = workspace.join(path);
    if !target.starts_with(workspace) || path.split('/').any(|it| it == "..") {
        return Err(t!("news-outside", path = path));
    }
    if !target.exists() {
        return Err(t!("news-absent", path = path));
    }
    Ok(places::arguments(&editor(), &target, line))
}

/// The editor's arguments for a file that may be new; makes its folder, or leaves the error to the editor.
pub fn arguments_for_new(path: &Path) -> Vec<OsString> {
    if let Some(folder) = path.parent() {
        let _ = std::fs::create_dir_all(folder);
    }
    places::arguments(&editor(), path, None)
}

/// Runs the editor in `folder` until it ends.
pub async fn run(arguments: Vec<OsString>, folder: &Path) -> Result<(), String> {
    let editor = editor();
    match process::Command::shell(&editor)
        .args(arguments)
        .folder(folder)
        .interact()
        .await
    {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(t!("news-editor-ended", editor = editor, status = status.to_string())),
        Err(error) => Err(t!("news-editor-not-started", editor = editor, why = error.to_string())),
    }
}

fn editor() -> String {
    let named = std::env::var("VISUAL").or_else(|_| std::env::var("EDITOR"));
    named.unwrap_or_else(|_| "vi".into())
}
