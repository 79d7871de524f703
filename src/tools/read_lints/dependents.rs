//! Files that may depend on others: those of the same languages that name them in a statement that imports something, and for
//! Go the files of the same package.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
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
/// Lines of one statement.
const MOST_LINES: usize = 200;
/// Bytes of a `Cargo.toml`.
const MANIFEST_BYTES: u64 = 1 << 20;
/// Time of the search.
const PATIENCE: Duration = Duration::from_millis(250);

/// Words that begin a line that imports something.
const IMPORTS: &[&str] = &["import", "from", "use", "mod", "require", "#include", "export"];
/// Those whose statement may go on behind the line, in brackets.
const STATEMENTS: &[&str] = &["import", "from", "use"];

/// Files that may depend on others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependents {
    pub files: Vec<PathBuf>,
    /// There may be more.
    pub is_cut: bool,
}

/// The files of the workspace that import one of `changed`, as far as their statements tell, at most 20; none of `changed`
/// itself, and only such that may be looked at (`allowed`). Reads the beginnings of files, within a quarter of a second.
pub fn dependents(workspace: &Workspace, changed: &[&Path], allowed: &dyn Fn(&Path) -> bool) -> Dependents {
    let mut names: BTreeMap<Cow<'_, str>, BTreeSet<String>> = BTreeMap::new();
    for file in changed.iter().filter(|it| !family(it).is_empty()) {
        names
            .entry(family(file))
            .or_default()
            .extend(module_names(file, workspace.root()));
    }
    if names.is_empty() {
        return Dependents::default();
    }
    let Ok(root) = workspace.locate("") else {
        return Dependents::default();
    };
    let Ok(walker) = workspace.walker(&root, Bounds::within(PATIENCE).entries(MOST_ENTRIES)) else {
        return Dependents::default();
    };
    let packages: BTreeSet<&Path> = changed
        .iter()
        .filter(|it| family(it) == "go")
        .filter_map(|it| it.parent())
        .collect();
    let depends = |file: &Path| {
        let Some(names) = names.get(&family(file)) else {
            return false;
        };
        let is_of_package = family(file) == "go" && file.parent().is_some_and(|it| packages.contains(it));
        (is_of_package || imports(file, names)) && allowed(file)
    };
    let files = walker.entries().flatten();
    let files = files.filter(|it| it.file_type().is_some_and(|it| it.is_file()));
    let files = files.map(ignore::DirEntry::into_path);
    let candidates = files.filter(|it| names.contains_key(&family(it)) && !changed.contains(&it.as_path()));
    let mut found = Dependents::default();
    for (at, file) in candidates.enumerate() {
        if at == MOST_READ || found.files.len() == MOST {
            found.is_cut = at == MOST_READ || depends(&file);
            if found.is_cut {
                return found;
            }
        } else if depends(&file) {
            found.files.push(file);
        }
    }
    found.is_cut = walker.is_cut();
    found
}

/// The words by which a file is imported: its name without the extension, or that of its folder where the name says nothing, or
/// that of its crate.
fn module_names(file: &Path, top: &Path) -> Vec<String> {
    let stem = file
        .file_stem()
        .map(|it| it.to_string_lossy().into_owned())
        .unwrap_or_default();
    let folder = || {
        let name = file.parent().and_then(Path::file_name);
        name.map(|it| it.to_string_lossy().into_owned())
    };
    let own = || Some(stem.split('.').next().unwrap_or_default().to_owned());
    let names = match (family(file).as_ref(), stem.as_str()) {
        ("rust", "lib" | "main") => vec![crate_name(file, top)],
        ("rust", "mod") | ("python", "__init__") | ("go", _) => vec![folder()],
        ("script", "index") => vec![folder(), own()],
        _ => vec![own()],
    };
    names.into_iter().flatten().filter(|it| !it.is_empty()).collect()
}

/// The name by which Rust knows the package that a file belongs to.
fn crate_name(file: &Path, top: &Path) -> Option<String> {
    let folders = file.ancestors().skip(1).take_while(|it| it.starts_with(top));
    let manifests = folders.filter_map(|it| file::read_unlinked(&it.join("Cargo.toml"), MANIFEST_BYTES).ok());
    let manifest = String::from_utf8(manifests.into_iter().next()?).ok()?;
    let manifest: toml::Table = manifest.parse().ok()?;
    let name = manifest.get("package")?.get("name")?.as_str()?;
    Some(name.replace('-', "_"))
}

/// Languages whose files import each other have one name; a language of the user's has that of its extension. Empty where there
/// is none.
fn family(file: &Path) -> Cow<'static, str> {
    match language_of(&file.to_string_lossy()) {
        "javascript" | "jsx" | "typescript" | "tsx" => "script".into(),
        "c" | "cpp" => "c".into(),
        "text" => {
            let extension = file.extension().map(|it| it.to_string_lossy().into_owned());
            extension.map_or("".into(), |it| format!(".{it}").into())
        }
        language => language.into(),
    }
}

fn imports(file: &Path, names: &BTreeSet<String>) -> bool {
    let mut bytes = Vec::new();
    let read = file::open(file).map(|it| it.take(HEAD_BYTES).read_to_end(&mut bytes).is_ok());
    read.unwrap_or_default() && has_import(&String::from_utf8_lossy(&bytes), names)
}

/// Returns true if a statement that imports something has one of the names.
fn has_import(text: &str, names: &BTreeSet<String>) -> bool {
    // Brackets of the statement that are open, and lines that it may still have.
    let (mut depth, mut left) = (0, 0_usize);
    text.lines().any(|line| {
        let mut is_part = depth > 0 && left > 0;
        left = left.saturating_sub(1);
        if !is_part {
            let mut words = line.split_whitespace();
            let mut first = words.next().unwrap_or_default();
            if first == "pub" || first.starts_with("pub(") {
                first = words.find(|it| matches!(*it, "use" | "mod")).unwrap_or_default();
            }
            let first = first.split(['(', '<', '"', '{']).next().unwrap_or_default();
            is_part = IMPORTS.contains(&first) || line.contains("require(") || line.contains("} from ");
            depth = 0;
            if STATEMENTS.contains(&first) {
                left = MOST_LINES;
            }
        }
        if left > 0 {
            depth += line.matches(['{', '(']).count() as i64 - line.matches(['}', ')']).count() as i64;
            if depth <= 0 {
                left = 0;
            }
        }
        is_part && names.iter().any(|it| has_word(line, it))
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
        write(
            "several.py",
            "from shop import (\n    # all\n    cart,\n)\ncart.total()\n",
        );
        write("library.py", "from lib import x\n");
        write("page.ts", "import { total } from './cart';\n");
        write("old.js", "const cart = require('./cart');\n");
        write("long.ts", "import {\n  total,\n} from './cart';\n");
        write("Cargo.toml", "[package]\nname = 'the-shop'\n");
        write("main.rs", "pub use crate::cart::Total;\n");
        write("nested.rs", "use crate::{\n    cart::{Total, Sum},\n    other,\n};\n");
        write("tests.rs", "use the_shop::Total;\nmod tests {\n    fn cart() {}\n}\n");
        write("shop/use.py", "import shop\n");
        write("go/cart/total.go", "package cart\n");
        write(
            "go/app/app.go",
            "package app\n\nimport (\n\t\"fmt\"\n\t\"shop/cart\"\n)\n",
        );
        write("go/other/other.go", "package other\n\nfunc cart() {}\n");
        let workspace = Workspace::open(&root).expect("a workspace");
        let found = |name: &str| {
            let changed = root.join(name);
            let mut found: Vec<String> = dependents(&workspace, &[&changed], &|_| true)
                .files
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
        write("lib.py", "");
        write("lib.rs", "");
        write("go/cart/cart.go", "package cart\n");
        assert!(cart.is_file());
        assert_eq!(found("shop/cart.py"), ["app.py", "relative.py", "several.py"]);
        assert_eq!(found("cart.ts"), ["long.ts", "old.js", "page.ts"]);
        assert_eq!(found("cart/mod.rs"), ["main.rs", "nested.rs"]);
        assert_eq!(found("shop/__init__.py"), ["app.py", "several.py", "shop/use.py"]);
        assert_eq!(found("lib.py"), ["library.py"]);
        assert_eq!(found("lib.rs"), ["tests.rs"]);
        assert_eq!(found("go/cart/cart.go"), ["go/app/app.go", "go/cart/total.go"]);
        assert_eq!(found("notes.txt"), Vec::<String>::new());
        assert!(!dependents(&workspace, &[&cart], &|_| true).is_cut);
        for at in 0..=MOST {
            write(&format!("more/{at}.py"), "import cart\n");
        }
        let many = dependents(&workspace, &[&cart], &|_| true);
        assert_eq!((many.files.len(), many.is_cut), (MOST, true));
        // Those that may not be looked at take nobody's place.
        let few = dependents(&workspace, &[&cart], &|it| !it.starts_with(root.join("more")));
        assert_eq!((few.files.len(), few.is_cut), (3, false));
    }
}
