//! Which language servers there are for a file, how they are found and started.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    config::LanguageServer,
    os::{file, process},
    text::language::language_of,
};

/// A language server for the files below a folder.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub name: String,
    /// The folder that it is started for.
    pub root: PathBuf,
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub variables: Vec<(String, String)>,
    /// The member `initializationOptions`.
    pub initialization: Value,
    /// It says by a notification of its own when it has read the project.
    pub tells_when_ready: bool,
}

/// A server that needs no settings.
struct KnownServer {
    name: &'static str,
    languages: &'static [&'static str],
    /// Files of which one lies in the folder that it is started for.
    markers: &'static [&'static str],
    /// Of those that share this name, the first that is installed is used.
    group: &'static str,
    arguments: &'static [&'static str],
    /// Files, or tables of `pyproject.toml`, that say that this one is meant.
    signs: &'static [&'static str],
}

const SCRIPTS: &[&str] = &["javascript", "jsx", "typescript", "tsx"];
const SCRIPT_MARKERS: &[&str] = &["tsconfig.json", "jsconfig.json", "package.json"];
const PYTHON_MARKERS: &[&str] = &[
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
    "pyrightconfig.json",
    "ty.toml",
];

/// The program of a name is the name's own, but for the two of TypeScript and pyright.
const KNOWN: &[KnownServer] = &[
    KnownServer {
        name: "rust-analyzer",
        languages: &["rust"],
        markers: &["Cargo.toml", "rust-project.json"],
        group: "rust",
        arguments: &[],
        signs: &[],
    },
    KnownServer {
        name: "tsc",
        languages: SCRIPTS,
        markers: SCRIPT_MARKERS,
        group: "typescript",
        arguments: &["--lsp", "--stdio"],
        signs: &[],
    },
    KnownServer {
        name: "typescript-language-server",
        languages: SCRIPTS,
        markers: SCRIPT_MARKERS,
        group: "typescript",
        arguments: &["--stdio"],
        signs: &[],
    },
    KnownServer {
        name: "ty",
        languages: &["python"],
        markers: PYTHON_MARKERS,
        group: "python",
        arguments: &["server"],
        signs: &["ty.toml", "tool.ty"],
    },
    KnownServer {
        name: "basedpyright-langserver",
        languages: &["python"],
        markers: PYTHON_MARKERS,
        group: "python",
        arguments: &["--stdio"],
        signs: &["tool.basedpyright"],
    },
    KnownServer {
        name: "pyright-langserver",
        languages: &["python"],
        markers: PYTHON_MARKERS,
        group: "python",
        arguments: &["--stdio"],
        signs: &["pyrightconfig.json", "tool.pyright"],
    },
    KnownServer {
        name: "gopls",
        languages: &["go"],
        markers: &["go.work", "go.mod"],
        group: "go",
        arguments: &[],
        signs: &[],
    },
    KnownServer {
        name: "clangd",
        languages: &["c", "cpp"],
        markers: &["compile_commands.json", "compile_flags.txt", ".clangd"],
        group: "c",
        arguments: &["--background-index=false"],
        signs: &[],
    },
];

/// Bytes of a `package.json` or `pyproject.toml` that are read.
const MANIFEST_BYTES: u64 = 1 << 20;

/// Folders in the workspace's root that are looked into.
const MOST_LOOKED_INTO: usize = 100;

/// Everything that servers are looked for in.
pub struct Catalogue<'a> {
    /// The workspace's root, above which nothing is looked for.
    pub top: &'a Path,
    /// The `PATH` that commands have.
    pub path: &'a std::ffi::OsStr,
    /// The user's settings by name.
    pub settings: &'a BTreeMap<String, LanguageServer>,
}

impl Catalogue<'_> {
    /// The servers for a file: the user's own, or else the first of each group that is installed. Reads names of files and
    /// manifests, starts nothing.
    pub fn servers(&self, file: &Path) -> Vec<Found> {
        let language = language_of(&file.to_string_lossy());
        let mut found: Vec<Found> = self.own(file).collect();
        if !found.is_empty() {
            return found;
        }
        let mut known: Vec<&KnownServer> = KNOWN.iter().filter(|it| it.languages.contains(&language)).collect();
        known.sort_by_key(|it| !self.is_meant(it, file));
        let mut groups: Vec<&str> = Vec::new();
        for server in known {
            let is_off = self.settings.get(server.name).is_some_and(|it| !it.enabled);
            if is_off || groups.contains(&server.group) {
                continue;
            }
            if let Some(it) = self.known(server, file) {
                groups.push(server.group);
                found.push(it);
            }
        }
        found
    }

    /// Returns true if the top folder, or one in it, is marked as a project of a server that is installed. Looks at no more than
    /// some hundred names.
    pub fn has_any(&self) -> bool {
        let inner = std::fs::read_dir(self.top)
            .into_iter()
            .flatten()
            .flatten()
            .take(MOST_LOOKED_INTO);
        let inner = inner
            .filter(|it| it.file_type().is_ok_and(|it| it.is_dir()))
            .map(|it| it.path());
        let mut folders = std::iter::once(self.top.to_owned()).chain(inner);
        let is_used = |it: &KnownServer| self.settings.get(it.name).is_none_or(|it| it.enabled);
        let is_there = |it: &KnownServer, folder: &Path| {
            has_one_of(it.markers, folder) && self.known(it, &folder.join("file")).is_some()
        };
        self.settings.values().any(|it| it.enabled && it.command.is_some())
            || folders.any(|folder| KNOWN.iter().any(|it| is_used(it) && is_there(it, &folder)))
    }

    /// Servers of the user's settings whose extensions fit.
    fn own<'a>(&'a self, file: &'a Path) -> impl Iterator<Item = Found> + 'a {
        let extension = file.extension().map(|it| it.to_string_lossy().to_ascii_lowercase());
        let fits = move |it: &LanguageServer| {
            let mut extensions = it
                .extensions
                .iter()
                .map(|it| it.trim_start_matches('.').to_ascii_lowercase());
            extensions.any(|it| Some(it) == extension)
        };
        // What is set of a known one changes that.
        let is_own = |name: &str| KNOWN.iter().all(|it| it.name != name);
        let used = self
            .settings
            .iter()
            .filter(move |(name, it)| it.enabled && is_own(name) && fits(it));
        used.filter_map(move |(name, it)| {
            let program = self.program(it.command.as_deref()?, file)?;
            let markers: Vec<&str> = it.root_markers.iter().map(String::as_str).collect();
            Some(Found {
                name: name.clone(),
                root: self.root(&markers, file).unwrap_or_else(|| self.top.to_owned()),
                program,
                arguments: it.args.clone(),
                variables: it.env.clone().into_iter().collect(),
                initialization: serde_json::from_str(&it.initialization).unwrap_or_default(),
                tells_when_ready: false,
            })
        })
    }

    fn known(&self, server: &KnownServer, file: &Path) -> Option<Found> {
        let root = self.root(server.markers, file)?;
        if SCRIPTS == server.languages && has_one_of(&["deno.json", "deno.jsonc"], &root) {
            return None;
        }
        let own = self.settings.get(server.name);
        let named = own.and_then(|it| it.command.as_deref()).unwrap_or(server.name);
        let program = self.program(named, file)?;
        let mut initialization = own
            .and_then(|it| serde_json::from_str(&it.initialization).ok())
            .unwrap_or_default();
        match server.name {
            "rust-analyzer" if !is_installed_by_rustup(&program) => return None,
            // The older one has no server.
            "tsc" if typescript_version(&program)? < 7 => return None,
            "typescript-language-server" if initialization == Value::Null => {
                let local = self
                    .upwards(&root)
                    .map(|it| it.join("node_modules/typescript/lib/tsserver.js"));
                if let Some(path) = local.into_iter().find(|it| it.is_file()) {
                    initialization = json!({ "tsserver": { "path": path } });
                }
            }
            // By itself it reports only what differs, and other packages than the changed one a second later, when nobody waits any
            // more. One that knows no pull says so and goes on.
            "gopls" if initialization == Value::Null => {
                initialization = json!({ "diagnosticsDelay": "0s", "pullDiagnostics": true });
            }
            // What it would build is built beside the user's own, and checks of the whole project have a checker of their own.
            "rust-analyzer" if initialization == Value::Null => {
                initialization = json!({
                    "checkOnSave": false,
                    "cachePriming": { "enable": false },
                    "cargo": { "extraArgs": ["--offline"], "buildScripts": { "enable": false } },
                    "procMacro": { "enable": false },
                });
            }
            _ => {}
        }
        let arguments = own.filter(|it| !it.args.is_empty()).map_or_else(
            || server.arguments.iter().map(ToString::to_string).collect(),
            |it| it.args.clone(),
        );
        Some(Found {
            name: server.name.to_owned(),
            root,
            program,
            arguments,
            variables: own.map(|it| it.env.clone().into_iter().collect()).unwrap_or_default(),
            initialization,
            tells_when_ready: server.name == "rust-analyzer",
        })
    }

    /// The project says that it is checked with this server.
    fn is_meant(&self, server: &KnownServer, file: &Path) -> bool {
        let Some(root) = self.root(server.markers, file) else {
            return false;
        };
        let about = || manifest(&root.join("pyproject.toml")).unwrap_or_default();
        server.signs.iter().any(|sign| match sign.strip_prefix("tool.") {
            Some(tool) => {
                let starts = [format!("[tool.{tool}]"), format!("[tool.{tool}.")];
                about()
                    .lines()
                    .any(|line| starts.iter().any(|it| line.trim_start().starts_with(it.as_str())))
            }
            None => root.join(sign).is_file(),
        })
    }

    /// The folders from `from` up to the top.
    fn upwards<'a>(&'a self, from: &'a Path) -> impl Iterator<Item = &'a Path> {
        from.ancestors().take_while(|it| it.starts_with(self.top))
    }

    /// The nearest folder above a file that has one of the markers. The first marker counts most for Rust, where the workspace
    /// lies above the package.
    fn root(&self, markers: &[&str], file: &Path) -> Option<PathBuf> {
        let folders: Vec<&Path> = self.upwards(file).skip(1).collect();
        let is_workspace = |it: &&&Path| {
            markers.contains(&"Cargo.toml")
                && manifest(&it.join("Cargo.toml"))
                    .is_some_and(|it| it.lines().any(|line| line.trim() == "[workspace]"))
        };
        let nearest = folders.iter().find(|it| has_one_of(markers, it));
        folders.iter().find(is_workspace).or(nearest).map(|it| (*it).to_owned())
    }

    /// A program of the project's packages, or else one in `PATH`; a path stands for itself.
    fn program(&self, name: &str, file: &Path) -> Option<PathBuf> {
        if Path::new(name).components().count() > 1 {
            let path = self.top.join(name);
            return path.is_file().then_some(path);
        }
        let local = self.upwards(file).skip(1).flat_map(|it| {
            [
                it.join("node_modules/.bin").join(name),
                it.join(".venv/bin").join(name),
                it.join("venv/bin").join(name),
            ]
        });
        let local = local.into_iter().find(|it| it.is_file());
        local.or_else(|| process::find(name, self.path))
    }
}

/// Returns false for rustup's stand-in for a program that no toolchain has.
fn is_installed_by_rustup(program: &Path) -> bool {
    let is_stand_in = program.canonicalize().is_ok_and(|it| it.ends_with("rustup"))
        || program
            .parent()
            .is_some_and(|it| is_same_file(&it.join("rustup"), program));
    let home = || match std::env::var_os("RUSTUP_HOME") {
        Some(home) => Some(PathBuf::from(home)),
        None => Some(std::env::home_dir()?.join(".rustup")),
    };
    let toolchains = || std::fs::read_dir(home()?.join("toolchains")).ok();
    !is_stand_in
        || toolchains()
            .into_iter()
            .flatten()
            .flatten()
            .any(|it| it.path().join("bin/rust-analyzer").is_file())
}

#[cfg(unix)]
fn is_same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let inode = |it: &Path| it.metadata().ok().map(|it| (it.dev(), it.ino()));
    inode(one).is_some_and(|it| Some(it) == inode(other))
}

#[cfg(not(unix))]
fn is_same_file(_: &Path, _: &Path) -> bool {
    false
}

/// The name by which servers know the language of a file.
pub fn language_id(file: &Path) -> &'static str {
    match language_of(&file.to_string_lossy()) {
        "tsx" => "typescriptreact",
        "jsx" => "javascriptreact",
        "text" => "plaintext",
        "bash" => "shellscript",
        language => language,
    }
}

fn has_one_of(names: &[&str], folder: &Path) -> bool {
    names.iter().any(|it| folder.join(it).is_file())
}

/// The text of a manifest, which is no link.
fn manifest(path: &Path) -> Option<String> {
    let bytes = file::read_unlinked(path, MANIFEST_BYTES).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The first number of the version of the TypeScript that a program belongs to.
fn typescript_version(program: &Path) -> Option<u32> {
    let program = program.canonicalize().ok()?;
    let manifests = program.ancestors().skip(1).take(4).map(|it| it.join("package.json"));
    let mut about = manifests.filter_map(|it| serde_json::from_str::<Value>(&manifest(&it)?).ok());
    about.find(|it| it["name"] == "typescript")?["version"]
        .as_str()?
        .split('.')
        .next()?
        .parse()
        .ok()
}
