//! The functions and types of the workspace, for whoever points at one by its name.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use super::files;
use crate::{
    index::{File, LONGEST_FILE, Symbols},
    protocol::SymbolLocation,
    sandbox::Workspace,
    tools::Stop,
};

/// Somebody waits with a word half typed: what is not read by then is found by the next letter.
const PATIENCE: Duration = Duration::from_millis(1500);

/// The names that fit what was typed, the best first. Reads files: not for a thread that must not wait.
pub fn find(symbols: &Symbols, workspace: &Workspace, typed: &str, limit: usize) -> Vec<SymbolLocation> {
    let end = Instant::now() + PATIENCE;
    let list = || {
        let list = files::walk_indexed(workspace, &Stop::default());
        let file = |shown: &str| {
            let path = workspace.root().join(shown);
            let metadata = std::fs::symlink_metadata(&path)
                .ok()
                .filter(std::fs::Metadata::is_file)?;
            Some(File {
                path,
                shown: shown.to_owned(),
                modified: metadata.modified().ok(),
                bytes: metadata.len(),
            })
        };
        let is_code = |it: &&str| crate::index::is_code(Path::new(it));
        list.files
            .iter()
            .map(|it| &**it)
            .filter(is_code)
            .filter_map(file)
            .collect()
    };
    let read = |path: &Path| {
        let file = workspace.locate(path.to_str()?).ok()?;
        workspace.read(&file, LONGEST_FILE).ok()
    };
    let found = symbols.find(&list, &read, typed, limit, &|| Instant::now() >= end);
    let place = |it: crate::index::Symbol| SymbolLocation {
        name: it.name,
        owner: it.owner,
        keyword: it.word.to_owned(),
        path: it.path,
        first_line: u64::from(*it.lines.start()),
        last_line: u64::from(*it.lines.end()),
    };
    found.into_iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn names_are_found_where_files_may_be_indexed() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("cart.rs", "struct Cart;\n\nimpl Cart {\n    fn total(&self) {}\n}\n");
        write("secret.rs", "fn total_secret() {}\n");
        write("made.rs", "fn total_made() {}\n");
        write(".sheafignore", "secret.rs\n");
        write(".cursorindexingignore", "made.rs\n");
        let workspace = Workspace::open(folder.path()).unwrap();
        let found = find(&Symbols::of(Arc::default()), &workspace, "tot", 9);
        let place = SymbolLocation {
            name: "total".to_owned(),
            owner: Some("Cart".to_owned()),
            keyword: "fn".to_owned(),
            path: "cart.rs".to_owned(),
            first_line: 4,
            last_line: 4,
        };
        assert_eq!(found, [place]);
    }
}
