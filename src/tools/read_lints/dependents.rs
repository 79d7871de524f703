//! Files that may depend on others: those of the same languages that name them in a line that imports something.

use std::{
    collections::BTreeSet,
    io::Read as _,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    os::file,
    sandbox::{Bounds, Workspace},
    text::language::language_of,
};

/// Files that are looked for.
const MOST: usize = 20;
/// Entries of the workspace that are looked through.
const MOST_ENTRIES: usize = 20_000;
/// Files that are read.
const MOST_READ: usize = 3000;
/// Bytes at the beginning of a file in which imports are looked for.
const HEAD_BYTES: u64 = 32 << 10;
/// Time of the search.
const PATIENCE: Duration = Duration::from_millis(250);

/// Words that begin a line, or stand in it, that imports something.
const IMPORTS: &[&str] = &["import", "from", "use", "mod", "require", "#include", "export"];

/// The files of the workspace that import one of `changed`, as far as their lines tell; none of `changed` itself. Reads the
/// beginnings of files, within a quarter of a second; what it has not come to is left out.
pub fn dependents(workspace: &Workspace, changed: &[&Path]) -> Vec<PathBuf> {
    let names: BTreeSet<String> = changed.iter().filter_map(|it| module_name(it)).collect();
    let families: BTreeSet<&str> = changed.iter().map(|it| family(it)).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let Ok(root) = workspace.locate("") else {
        return Vec::new();
    };
    let Ok(walker) = workspace.walker(&root, Bounds::within(PATIENCE).entries(MOST_ENTRIES)) else {
        return Vec::new();
    };
    let candidates = walker
        .entries()
        .flatten()
        .filter(|it| it.file_type().is_some_and(|it| it.is_file()));
    let candidates = candidates.map(ignore::DirEntry::into_path);
    let candidates = candidates.filter(|it| families.contains(family(it)) && !changed.contains(&it.as_path()));
    candidates
        .take(MOST_READ)
        .filter(|it| imports(it, &names))
        .take(MOST)
        .collect()
}

/// The word by which a file is imported: its name without the extension, or that of its folder where the name says nothing.
fn module_name(file: &Path) -> Option<String> {
    let stem = file.file_stem()?.to_string_lossy().into_owned();
    if matches!(stem.as_str(), "mod" | "__init__" | "index" | "lib" | "main") {
        return Some(file.parent()?.file_name()?.to_string_lossy().into_owned());
    }
    Some(stem.split('.').next().unwrap_or_default().to_owned()).filter(|it| !it.is_empty())
}

/// Languages whose files import each other have one name.
fn family(file: &Path) -> &'static str {
    match language_of(&file.to_string_lossy()) {
        "javascript" | "jsx" | "typescript" | "tsx" => "script",
        "c" | "cpp" => "c",
        "text" => "",
        language => language,
    }
}

fn imports(file: &Path, names: &BTreeSet<String>) -> bool {
    let mut bytes = Vec::new();
    let read = file::open(file).map(|it| it.take(HEAD_BYTES).read_to_end(&mut bytes).is_ok());
    if !read.unwrap_or_default() {
        return false;
    }
    let text = String::from_utf8_lossy(&bytes);
    text.lines().any(|line| {
        let has_import = || {
            let first = line.split_whitespace().next().unwrap_or_default();
            let first = first.split(['(', '<', '"']).next().unwrap_or_default();
            first == "pub" || IMPORTS.contains(&first) || line.contains("require(") || line.contains("} from ")
        };
        names.iter().any(|it| has_word(line, it)) && has_import()
    })
}

/// Returns true if the line has `word` with nothing of a name before and behind it.
fn has_word(line: &str, word: &str) -> bool {
    let is_part = |it: char| it.is_alphanumeric() || it == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|it| it.chars().next_back());
        let behind = line.get(at + word.len()..).and_then(|it| it.chars().next());
        !before.is_some_and(is_part) && !behind.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn files_that_import_a_changed_one_are_found_whatever_the_language() {
        let top = tempfile::tempdir().expect("a folder");
        let root = top.path().canonicalize().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(&path, text).expect("written");
            path
        };
        write("app.py", "from shop.cart import total\n");
        write("other.py", "# the cart is full\ncartography = 1\n");
        write("relative.py", "from .cart import total\n");
        write("page.ts", "import { total } from './cart';\n");
        write("old.js", "const cart = require('./cart');\n");
        write("main.rs", "pub use crate::cart::Total;\n");
        write("shop/use.py", "import shop\n");
        let workspace = Workspace::open(&root).expect("a workspace");
        let found = |name: &str| {
            let changed = root.join(name);
            let mut found: Vec<String> = dependents(&workspace, &[&changed])
                .iter()
                .map(|it| it.strip_prefix(&root).expect("inside").display().to_string())
                .collect();
            found.sort();
            found
        };
        let cart = write("shop/cart.py", "def total(): ...\n");
        write("cart.ts", "");
        write("cart/mod.rs", "");
        write("shop/__init__.py", "");
        assert!(cart.is_file());
        assert_eq!(found("shop/cart.py"), ["app.py", "relative.py"]);
        assert_eq!(found("cart.ts"), ["old.js", "page.ts"]);
        assert_eq!(found("cart/mod.rs"), ["main.rs"]);
        assert_eq!(found("shop/__init__.py"), ["app.py", "shop/use.py"]);
        assert_eq!(found("notes.txt"), Vec::<String>::new());
    }
}
