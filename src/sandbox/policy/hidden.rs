//! Files that no tool sees: secrets by their names, and files that `.cursorignore` and `.sheafignore` list below the
//! workspace's folder.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::{
        Arc, LazyLock, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use globset::{GlobBuilder, GlobMatcher};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::{
    ignore_files::{IgnoreFiles, Scope},
    protected_names as name,
    resolve::resolve,
    stamp::Reading,
};
use crate::text::WordList;

/// Secrets by their names, wherever they are. `id_*` of other lists would hide half of a database's code.
const ANYWHERE: WordList = WordList(
    ".env .env.* credentials.json secrets.json *.key *.pem id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519
     id_ed25519_sk .ssh .gnupg .netrc _netrc .pypirc .git-credentials *.kdbx *.ppk *.p12 *.pfx
     !cacert.pem !cacerts.pem !ca-bundle.pem !roots.pem",
);

/// Secrets in the user's home: elsewhere these names are a project's own.
const AT_HOME: &str = include_str!("../../../assets/sandbox/secrets.gitignore");

/// Doors to other programs of the user's: sockets and what lies beside them.
const DOORS: &[&str] = &["/run/user", "/run/docker.sock", "/var/run/docker.sock"];

/// The list of names. Clones share it: a rule that is added holds for all of them at once.
#[derive(Clone, Debug)]
pub struct Secrets(Arc<RwLock<SharedLists>>);

/// Made when somebody asks for the first time.
type SharedLists = Arc<LazyLock<Lists, Box<dyn FnOnce() -> Lists + Send>>>;

/// What the list was made from, without the rules that forbid reading.
#[derive(Clone, Debug)]
struct Sources {
    root: PathBuf,
    home: Option<PathBuf>,
    more: Vec<String>,
    private: Vec<PathBuf>,
}

#[derive(Debug)]
struct Lists {
    sources: Sources,
    /// Differs for each list: what was found by another one is looked for again.
    version: u64,
    anywhere: Gitignore,
    /// True if each pattern is a plain name, which matches in any folder.
    is_by_name: bool,
    home: Option<(PathBuf, Gitignore)>,
    /// The user's patterns in the home folder, by their parts.
    named: Vec<Vec<Part>>,
    /// Folders in the home in which secrets of other programs lie beside things that are none.
    listed: Vec<PathBuf>,
    /// Absolute paths that are hidden with all below.
    doors: Vec<PathBuf>,
}

/// Part of a pattern that stands for folders, or for what is hidden.
#[derive(Debug)]
enum Part {
    /// Entries of a folder. `None`: all of them, where the part cannot be read by itself.
    Entries(Option<GlobMatcher>),
    /// The folder, and all folders below.
    Deep,
}

/// Maximum number of patterns without braces that a subject of a rule stands for.
const MOST_ALTERNATIVES: usize = 4096;

/// Maximum number of entries that are listed to find what the user's patterns in the home mean.
const MOST_ENTRIES: usize = 100_000;

impl Part {
    /// The parts of a pattern without `~/`.
    fn of(pattern: &str) -> Vec<Self> {
        let pattern = pattern.trim_end_matches('/');
        let pattern = pattern.strip_suffix("/**").unwrap_or(pattern);
        // A slash in braces divides nothing that could be listed.
        let (plain, has_braces) = match pattern.find('{') {
            Some(at) => (
                pattern
                    .get(..at)
                    .unwrap_or_default()
                    .rsplit_once('/')
                    .map_or("", |it| it.0),
                true,
            ),
            None => (pattern, false),
        };
        let parts = plain.split('/').filter(|it| !it.is_empty()).map(|part| {
            if part == "**" {
                return Self::Deep;
            }
            let glob = GlobBuilder::new(&name::folded(OsStr::new(part)))
                .backslash_escape(true)
                .build();
            Self::Entries(glob.ok().map(|it| it.compile_matcher()))
        });
        let rest = has_braces.then_some([Self::Deep, Self::Entries(None)]);
        parts.chain(rest.into_iter().flatten()).collect()
    }

    /// Finds what the parts may mean below a folder. `left` is the number of entries that may still be listed.
    fn expand(parts: &[Self], folder: &Path, left: &mut usize, found: &mut Vec<PathBuf>) {
        let Some((part, rest)) = parts.split_first() else {
            found.push(folder.to_owned());
            return;
        };
        if matches!(part, Self::Deep) {
            Self::expand(rest, folder, left, found);
        }
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if *left == 0 {
                return;
            }
            *left -= 1;
            let is_folder = || entry.file_type().is_ok_and(|it| it.is_dir());
            match part {
                Self::Deep if is_folder() => Self::expand(parts, &entry.path(), left, found),
                Self::Deep => {}
                Self::Entries(glob) => {
                    let is_meant = glob
                        .as_ref()
                        .is_none_or(|it| it.is_match(name::folded(&entry.file_name())));
                    if is_meant {
                        Self::expand(rest, &entry.path(), left, found);
                    }
                }
            }
        }
    }
}

impl Secrets {
    /// `more` are the user's patterns; what is no pattern is left out.
    pub fn new(root: &Path, home: Option<&Path>, more: &[String]) -> Self {
        Self::with(root, home, more, &[], &[])
    }

    /// The same with absolute paths that are hidden wherever they are, and with what rules forbid to read, as for
    /// [`deny`](Self::deny).
    pub fn with(root: &Path, home: Option<&Path>, more: &[String], private: &[PathBuf], denied: &[String]) -> Self {
        let sources = Sources {
            root: root.to_owned(),
            home: home.map(Path::to_owned),
            more: more.to_vec(),
            private: private.to_vec(),
        };
        Self(Arc::new(RwLock::new(Lists::shared(sources, denied))))
    }

    /// Hides what rules with these subjects forbid to read, and nothing else that rules forbade before. It holds from now on, for
    /// all that share the list.
    pub fn deny(&self, subjects: &[String]) {
        let sources = self.lists().sources.clone();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Lists::shared(sources, subjects);
    }

    fn lists(&self) -> SharedLists {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns a number that is another one when other names are hidden.
    pub fn version(&self) -> u64 {
        self.lists().version
    }

    /// Returns true if an absolute path, or a folder on the way to it, has the name of a secret.
    pub fn cover(&self, path: &Path, is_folder: bool) -> bool {
        self.lists().cover(path, is_folder)
    }

    /// Returns the sockets of other programs that grant access to more than the sandbox allows, and this program's secrets.
    pub fn doors(&self) -> Vec<PathBuf> {
        self.lists().doors.clone()
    }

    /// Secrets in the home that are there, and true if not all of it was looked at that the user's patterns may mean.
    pub fn at_home(&self) -> (Vec<PathBuf>, bool) {
        self.lists().at_home()
    }
}

impl Lists {
    fn shared(sources: Sources, subjects: &[String]) -> SharedLists {
        let subjects = subjects.to_vec();
        Arc::new(LazyLock::new(Box::new(move || Self::new(sources, &subjects))))
    }

    fn new(sources: Sources, subjects: &[String]) -> Self {
        static VERSION: AtomicU64 = AtomicU64::new(0);
        let (patterns, paths) = denied(&sources.root, subjects);
        let more: Vec<&String> = sources.more.iter().chain(&patterns).collect();
        let private: Vec<&PathBuf> = sources.private.iter().chain(&paths).collect();
        let home = sources.home.clone();
        let (mut anywhere, mut at_home) = (list(ANYWHERE.iter()), list(AT_HOME.lines()));
        let mut named = Vec::new();
        let mut listed = Vec::new();
        if let Some(home) = &home {
            let lines = AT_HOME.lines().filter_map(|it| it.strip_prefix('/'));
            listed.extend(lines.filter_map(|it| Some(home.join(it).parent()?.to_owned())));
            listed.sort();
            listed.dedup();
        }
        let mut is_by_name = true;
        for pattern in more {
            if let Some(rest) = pattern.strip_prefix("~/") {
                named.push(Part::of(rest));
            }
            let (sign, rest) = match pattern.strip_prefix('!') {
                Some(rest) => ("!", rest),
                None => ("", pattern.as_str()),
            };
            match rest.strip_prefix("~/") {
                // With the folder itself.
                Some(rest) => add(
                    &mut at_home,
                    &format!("{sign}/{}", rest.strip_suffix("/**").unwrap_or(rest)),
                ),
                None => {
                    is_by_name &= !rest.trim_end_matches('/').contains('/');
                    add(&mut anywhere, pattern);
                }
            }
        }
        let private = private
            .into_iter()
            .flat_map(|it| [Some(it.clone()), resolve(it).ok()])
            .flatten();
        let doors = DOORS.iter().map(PathBuf::from).chain(private).chain(
            std::env::var_os("SSH_AUTH_SOCK")
                .map(PathBuf::from)
                .filter(|it| it.is_absolute()),
        );
        let doors = doors.collect();
        Self {
            sources,
            version: VERSION.fetch_add(1, Ordering::Relaxed),
            anywhere: anywhere.build().unwrap_or_else(|_| Gitignore::empty()),
            is_by_name,
            home: home.map(|it| (it, at_home.build().unwrap_or_else(|_| Gitignore::empty()))),
            named,
            listed,
            doors,
        }
    }

    fn cover(&self, path: &Path, is_folder: bool) -> bool {
        let lists = self;
        let is_at_home = lists.home.as_ref().is_some_and(|(home, list)| {
            path.strip_prefix(home)
                .is_ok_and(|inner| is_named(list, &name::parts(inner), is_folder))
        });
        // What the workspace's own folder is called says nothing.
        let inner = path.strip_prefix(&lists.sources.root).unwrap_or(path);
        is_at_home
            || lists.doors.iter().any(|it| path.starts_with(it))
            || (is_named(&lists.anywhere, &name::parts(inner), is_folder) && !is_example(inner))
    }
}

impl Lists {
    fn at_home(&self) -> (Vec<PathBuf>, bool) {
        let lists = self;
        let entries = lists
            .listed
            .iter()
            .flat_map(|it| std::fs::read_dir(it).into_iter().flatten().flatten());
        let mut found: Vec<_> = entries.map(|it| it.path()).collect();
        let mut left = MOST_ENTRIES;
        if let Some((home, _)) = &lists.home {
            for parts in &lists.named {
                Part::expand(parts, home, &mut left, &mut found);
            }
        }
        found.retain(|it| {
            std::fs::symlink_metadata(it).is_ok_and(|about| self.cover(it, about.is_dir() || it.is_dir()))
        });
        found.sort();
        // What lies below another one is hidden with it.
        found.dedup_by(|later, kept| later.starts_with(&*kept));
        (found, left == 0)
    }

    /// The same for an entry of a folder that is not covered itself, which a walk asks for each.
    fn cover_entry(&self, path: &Path, is_folder: bool) -> bool {
        let lists = self;
        // Bytes are compared faster than the parts of a path, and nearly all paths are elsewhere.
        let begins = |with: &Path| {
            let (path, with) = (path.as_os_str().as_encoded_bytes(), with.as_os_str().as_encoded_bytes());
            path.starts_with(with)
        };
        let names = |list: &Gitignore, inner: &Path| {
            // Folding does nothing else to plain names.
            let folded: PathBuf = match inner.to_str().filter(|it| it.is_ascii()) {
                Some(plain) => plain.to_ascii_lowercase().into(),
                None => name::parts(inner).iter().collect(),
            };
            list.matched(folded, is_folder).is_ignore()
        };
        let inner = match path.file_name() {
            // The folders on the way are not covered.
            Some(name) if lists.is_by_name => Path::new(name),
            Some(_) | None => path.strip_prefix(&lists.sources.root).unwrap_or(path),
        };
        let home = lists.home.as_ref().filter(|(home, _)| begins(home));
        let at_home = home.and_then(|(home, list)| Some((list, path.strip_prefix(home).ok()?)));
        at_home.is_some_and(|(list, inner)| names(list, inner))
            || lists.doors.iter().any(|it| begins(it) && path.starts_with(it))
            || (names(&lists.anywhere, inner) && !is_example(path))
    }
}

/// The subjects of rules that forbid reading, as patterns of the list, and as absolute paths outside of the workspace at `root`. A path there with
/// a wildcard is left out: which files it means is known for each file that is read, and not before. Of a subject that stands for too
/// many patterns everything is hidden that it may mean.
fn denied(root: &Path, subjects: &[String]) -> (Vec<String>, Vec<PathBuf>) {
    let (mut patterns, mut paths) = (Vec::new(), Vec::new());
    for subject in subjects.iter().flat_map(|it| alternatives(it)) {
        let is_anchored = subject.trim_end_matches('/').contains('/');
        // With all below, as rules that forbid are read.
        let all = subject.strip_suffix("/**").unwrap_or(&subject);
        if let Some(inner) = root.to_str().and_then(|it| all.strip_prefix(it)?.strip_prefix('/')) {
            patterns.push(format!("/{inner}"));
        } else if all.starts_with("~/") {
            patterns.push(all.to_owned());
        } else if all.starts_with('/') {
            let is_plain = !all.contains(['*', '?', '[', '\\']);
            paths.extend(is_plain.then(|| PathBuf::from(all.trim_end_matches('/'))));
        } else if is_anchored {
            patterns.push(format!("/{}", all.trim_start_matches("./")));
        } else if all.starts_with(['!', '#']) {
            patterns.push(format!("\\{all}"));
        } else {
            patterns.push(all.to_owned());
        }
    }
    (patterns, paths)
}

/// A pattern with braces as the patterns without that it stands for. If these are too many: one that means all of them and more.
fn alternatives(pattern: &str) -> Vec<String> {
    let mut open = vec![pattern.to_owned()];
    let mut found = Vec::new();
    while let Some(next) = open.pop() {
        let Some((before, inner, after)) = braces(&next) else {
            found.push(next);
            continue;
        };
        let mut depth = 0;
        let parts = inner.split(|it| {
            depth += i32::from(it == '{') - i32::from(it == '}');
            it == ',' && depth == 0
        });
        open.extend(parts.map(|it| format!("{before}{it}{after}")));
        if found.len() + open.len() > MOST_ALTERNATIVES {
            let wide = wide(pattern);
            tracing::warn!(
                pattern,
                hidden = wide,
                "a rule stands for too many patterns: all of this is hidden"
            );
            return vec![wide];
        }
    }
    found.sort();
    found
}

/// A pattern that means whatever this one may mean: all below its folders without a wildcard.
fn wide(pattern: &str) -> String {
    let plain = pattern
        .find(['{', '*', '?', '[', '\\'])
        .and_then(|at| pattern.get(..at));
    match plain.unwrap_or(pattern).rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/**"),
        None => "**".to_owned(),
    }
}

/// The first pair of braces of a pattern: what is before it, in it and after it.
fn braces(pattern: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = pattern.split_once('{')?;
    let mut depth = 1;
    for (at, it) in rest.char_indices() {
        depth += i32::from(it == '{') - i32::from(it == '}');
        if depth == 0 {
            return Some((before, rest.get(..at)?, rest.get(at + 1..)?));
        }
    }
    None
}

/// Returns true for a key in a package that others wrote: everybody has it, and its tests need it.
fn is_example(path: &Path) -> bool {
    let parts = name::parts(path);
    let is_key = path
        .extension()
        .is_some_and(|it| matches!(name::folded(it).as_str(), "pem" | "key" | "p12" | "pfx" | "ppk"));
    is_key && parts.iter().any(|it| name::PACKAGES.iter().any(|name| name == it))
}

fn list<'a>(patterns: impl Iterator<Item = &'a str>) -> GitignoreBuilder {
    let mut list = GitignoreBuilder::new("/");
    for pattern in patterns {
        add(&mut list, pattern);
    }
    list
}

/// Paths are folded before they are looked up, and so are patterns: a list that takes no notice of case by itself makes a
/// regular expression of each name, which costs milliseconds at every start.
fn add(list: &mut GitignoreBuilder, pattern: &str) {
    if let Err(error) = list.add_line(None, &name::folded(OsStr::new(pattern))) {
        tracing::warn!(%error, pattern, "a pattern of hidden files cannot be used");
    }
}

/// Returns true if a list names the path or a folder on the way.
fn is_named(list: &Gitignore, parts: &[String], is_folder: bool) -> bool {
    let mut path = PathBuf::new();
    parts.iter().enumerate().any(|(at, part)| {
        path.push(part);
        list.matched(&path, at + 1 < parts.len() || is_folder).is_ignore()
    })
}

/// Returns true for a relative path that ends like that of a secret in a home, such as a project's own `.npmrc` or
/// `.aws/credentials`: it may be read, and is kept out of what is stored.
pub fn is_named_like_at_home(path: &Path) -> bool {
    static LIST: LazyLock<Gitignore> =
        LazyLock::new(|| list(AT_HOME.lines()).build().unwrap_or_else(|_| Gitignore::empty()));
    let bytes = path.as_os_str().as_encoded_bytes();
    if !bytes.starts_with(b".") && !bytes.windows(2).any(|it| it == b"/.") {
        return false;
    }
    let parts = name::parts(path);
    let mut begins = parts.iter().enumerate().filter(|it| it.1.starts_with('.'));
    begins.any(|(at, _)| is_named(&LIST, parts.get(at..).unwrap_or_default(), false))
}

/// Returns true if ignore files between `base` and the path hide it.
pub fn is_ignored(base: Option<PathBuf>, path: &Path, is_folder: bool) -> bool {
    IgnoreFiles::new(base, Scope::default()).hide_way(path, is_folder)
}

/// The same question for every entry of a walk, which asks for a folder before it asks for what is in it.
#[derive(Debug)]
pub struct Verdict {
    /// As they were when the walk began.
    secrets: SharedLists,
    files: IgnoreFiles,
}

impl Verdict {
    pub fn new(base: Option<PathBuf>, secrets: &Secrets, scope: Scope) -> Self {
        Self {
            secrets: secrets.lists(),
            files: IgnoreFiles::new(base, scope),
        }
    }

    /// A walk has listed a folder, which `has` entries of these names: an ignore file that is not there is not looked for.
    pub fn enter(&self, folder: &Path, has: impl Fn(&str) -> bool) {
        self.files.enter(folder, has);
    }

    /// Returns true if a secret's name or an ignore file of ours hides the path.
    pub fn is_hidden(&self, path: &Path, is_folder: bool) -> bool {
        self.secrets.cover_entry(path, is_folder) || self.files.hide(path, is_folder)
    }

    /// Takes the ignore files that were read, each with its state before.
    pub fn take_read(&self) -> BTreeMap<PathBuf, Reading> {
        self.files.take_read()
    }

    /// Returns true if git, or an ignore file that counts beside ours, leaves the path out of listings.
    pub fn is_left_out(&self, path: &Path, is_folder: bool) -> bool {
        self.files.leave_out(path, is_folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::{
        fs,
        io::Write,
        process::{Command, Stdio},
    };

    #[test]
    fn what_rules_forbid_to_read_is_hidden() {
        let root = Path::new("/w");
        let home = Path::new("/home/me");
        for (subject, path, expected) in [
            ("notes/**", "/w/notes/a/b", true),
            ("notes/**", "/w/Notes/a", true),
            ("notes/**", "/w/x/notes/a", false),
            ("*.txt", "/w/x/a.txt", true),
            ("./a.txt", "/w/a.txt", true),
            ("./a.txt", "/w/x/a.txt", false),
            ("src/*.{rs,toml}", "/w/src/a.toml", true),
            ("src/*.{rs,toml}", "/w/src/a.md", false),
            ("{a,b/{c,d}}/x", "/w/b/d/x", true),
            ("/w/deep/**", "/w/deep/a", true),
            ("/etc/x/**", "/etc/x/a", true),
            ("/etc/x", "/etc/xy", false),
            ("~/diary/**", "/home/me/diary/a", true),
            ("**", "/w/a", true),
            ("!x", "/w/!x", true),
            ("{", "/w/a", false),
        ] {
            let secrets = Secrets::new(root, Some(home), &[]);
            secrets.deny(&[subject.to_owned()]);
            assert_eq!(secrets.cover(Path::new(path), false), expected, "{subject} {path}");
        }
    }

    #[test]
    fn a_rule_holds_at_once_for_all_who_share_the_list_until_it_is_removed() {
        let secrets = Secrets::new(Path::new("/w"), None, &["drafts".to_owned()]);
        let other = secrets.clone();
        let is_hidden = |path: &str| other.cover(Path::new(path), false);
        let version = other.version();
        assert!(!is_hidden("/w/notes/a") && is_hidden("/w/drafts/a"));
        secrets.deny(&["notes/**".to_owned()]);
        assert!(is_hidden("/w/notes/a") && is_hidden("/w/drafts/a"));
        assert_ne!(other.version(), version);
        secrets.deny(&[]);
        assert!(!is_hidden("/w/notes/a") && is_hidden("/w/drafts/a"));
    }

    #[test]
    fn a_rule_with_too_many_alternatives_hides_more_than_it_names_and_never_less() {
        let names = |count: usize| (0..count).map(|it| format!("n{it}")).collect::<Vec<_>>().join(",");
        let many = names(MOST_ALTERNATIVES + 1);
        let thousands = format!("{{{0}}}{{{0}}}", names(100));
        for (subject, path, expected) in [
            // As many as before, and far more than 64, are taken one by one.
            (format!("src/{{{}}}", names(200)), "/w/src/n150", true),
            (format!("src/{{{}}}", names(200)), "/w/src/other", false),
            (format!("src/{{{many}}}"), "/w/src/n4000", true),
            (format!("src/{{{many}}}"), "/w/src/deep/other", true),
            (format!("src/{{{many}}}"), "/w/doc/other", false),
            (thousands, "/w/n5n7", true),
            (format!("a*/{{{many}}}"), "/w/ab/n4000", true),
            (format!("/etc/x/{{{many}}}"), "/etc/x/n4000", true),
            (format!("~/x/{{{many}}}"), "/home/me/x/n4000", true),
        ] {
            let secrets = Secrets::new(Path::new("/w"), Some(Path::new("/home/me")), &[]);
            secrets.deny(std::slice::from_ref(&subject));
            let start: String = subject.chars().take(12).collect();
            assert_eq!(secrets.cover(Path::new(path), false), expected, "{start} {path}");
        }
    }

    #[test]
    fn a_walk_hides_what_a_single_look_does() {
        let (root, home) = (Path::new("/home/me/shop"), Path::new("/home/me"));
        let lists: [&[&str]; 6] = [
            &[],
            &["!.env.example", "drafts/", "*.secret"],
            &["docs/private", "!docs/private/a.md"],
            &["/top.txt", "~/shop/notes", "~/diary"],
            &["a/**/b", "!*.pem"],
            &["Straße"],
        ];
        let paths = [
            "/home/me/shop/src/main.rs",
            "/home/me/shop/.env",
            "/home/me/shop/sub/.ENV.local",
            "/home/me/shop/.env.example",
            "/home/me/shop/drafts/a.md",
            "/home/me/shop/x/drafts/deep/a.md",
            "/home/me/shop/x.secret",
            "/home/me/shop/docs/private/a.md",
            "/home/me/shop/docs/public/a.md",
            "/home/me/shop/top.txt",
            "/home/me/shop/sub/top.txt",
            "/home/me/shop/notes/n.md",
            "/home/me/shop/a/c/b",
            "/home/me/shop/key.pem",
            "/home/me/shop/STRASSE/x",
            "/home/me/shop/straße/x",
            "/home/me/diary/today.md",
            "/home/me/.aws/config",
            "/home/me/.cargo/credentials.toml",
            "/home/me/.ssh/config",
            "/home/metoo/.aws/config",
            "/run/user/1000/bus",
            "/run/username",
            "/opt/lib/.aws/config",
        ];
        for more in lists {
            let more: Vec<String> = more.iter().map(|it| (*it).to_owned()).collect();
            let secrets = Secrets::new(root, Some(home), &more);
            for path in paths {
                let path = Path::new(path);
                let steps: Vec<_> = path.ancestors().filter(|it| *it != Path::new("/")).collect();
                // From the top down, and no further than what is hidden.
                let walked = steps
                    .iter()
                    .rev()
                    .any(|it| secrets.lists().cover_entry(it, *it != path));
                assert_eq!(walked, secrets.cover(path, false), "{} {more:?}", path.display());
            }
        }
    }

    #[test]
    fn what_a_pattern_means_in_the_home_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        for path in [
            "diary-2024/a",
            "Diary-2025/b",
            "notes/deep/er/x.txt",
            "notes/deep/y.md",
            "notes/z.txt",
            "work/a/keys/one",
            "work/b/keys/two",
            "work/b/other",
            "open/x.txt",
            "one/x",
            "two/x",
        ] {
            let path = home.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        for (pattern, expected) in [
            ("~/diary-*", "Diary-2025 diary-2024"),
            ("~/DIARY-2024/", "diary-2024"),
            ("~/diary-[0-9]*4/**", "diary-2024"),
            ("~/notes/**/*.txt", "notes/deep/er/x.txt notes/z.txt"),
            ("~/notes/*.txt", "notes/z.txt"),
            ("~/work/*/keys", "work/a/keys work/b/keys"),
            ("~/{one,two/x}", "one two/x"),
            ("~/absent/*", ""),
            ("~/notes/z.???", "notes/z.txt"),
        ] {
            let secrets = Secrets::new(&home.join("work"), Some(&home), &[pattern.to_owned()]);
            let (found, is_partial) = secrets.at_home();
            let shown: Vec<_> = found
                .iter()
                .map(|it| it.strip_prefix(&home).unwrap().to_str().unwrap())
                .collect();
            assert_eq!((shown.join(" ").as_str(), is_partial), (expected, false), "{pattern}");
        }
    }

    /// Every name of the lists as it is met, written down a second time: what is dropped from a list is seen here.
    const NAMES_AT_HOME: &str = "
        .aliyun, .argocd, .aws, .azure, .bluemix, .boto, .cloudflared, .config/1Password, .config/.wrangler,
        .config/age, .config/argocd, .config/Bitwarden, .config/Bitwarden CLI, .config/cloudflared, .config/doctl,
        .config/flyctl, .config/gcloud, .config/gh, .config/glab-cli, .config/gopass, .config/hcloud, .config/hub,
        .config/linode-cli, .config/netlify, .config/ngrok, .config/op, .config/planetscale, .config/rclone,
        .config/scw, .config/sheaf/credentials.toml, .config/sops, .config/stripe, .config/supabase, .config/tea,
        .config/wandb, .databrickscfg, .dbt/profiles.yml, .fly, .google_authenticator, .gsutil, .kaggle, .kube,
        .linode-cli, .local/share/com.vercel.cli, .local/share/gopass, .local/share/keyrings, .local/share/kwalletd,
        .local/state/sheaf/keys, .local/state/sheaf/mcp-tokens, .my.cnf, .mylogin.cnf, .netlify, .ngrok2, .oci, .password-store, .pgpass, .pki,
        .pulumi/credentials.json, .railway, .rediscli_auth, .s3cfg, .snowflake, .snowsql, .step, .supabase, .talos,
        .tccli, .vault-token, .vercel, .wrangler, Library/Application Support/sheaf/state/keys, Library/Keychains,
        .authinfo, .authinfo.gpg, .config/filezilla, .config/keepassxc, .config/pulse/cookie, .config/remmina,
        .config/rustdesk, .config/tailscale, .config/Yubico, .filezilla, .gnome2/keyrings, .ICEauthority, .k5identity,
        .local/share/remmina, .putty, .smbcredentials, .subversion/auth, .tsh, .vnc, .Xauthority,
        .anthropic, .cache/huggingface/stored_tokens, .cache/huggingface/token, .claude.json, .claude/.credentials.json,
        .claude/history.jsonl, .claude/projects, .codeium, .codex/auth.json, .codex/history.jsonl, .codex/sessions,
        .config/amp, .config/anthropic, .config/Code/User/globalStorage, .config/crush, .config/Cursor, .config/github-copilot, .config/goose,
        .config/io.datasette.llm, .config/openai, .continue, .copilot, .cursor/mcp.json, .gemini/google_accounts.json,
        .gemini/oauth_creds.json, .gemini/tmp, .huggingface, .local/share/amp, .local/share/crush, .local/share/goose,
        .local/share/opencode, .openai, .qwen/oauth_creds.json, .wandb,
        .bundle/config, .cargo/credentials, .cargo/credentials.toml, .composer/auth.json, .conan2/credentials.json,
        .config/composer/auth.json, .config/containers/auth.json, .config/dart/pub-credentials.json,
        .config/helm/registry, .config/NuGet/NuGet.Config, .config/pip/pip.conf, .config/pypoetry/auth.toml,
        .docker/config.json, .gem/credentials, .gradle/gradle.properties, .hex/hex.config, .ivy2/.credentials, .jfrog,
        .local/share/gem/credentials, .local/share/uv/credentials, .m2/settings-security.xml, .m2/settings.xml, .npmrc,
        .nuget/NuGet/NuGet.Config, .pip/pip.conf, .pub-cache/credentials.json, .sbt/.credentials,
        .terraform.d/credentials.tfrc.json, .terraformrc, .yarnrc, .yarnrc.yml,
        .config/aerc, .config/evolution, .config/geary, .config/himalaya, .config/isyncrc, .config/msmtp, .config/mutt,
        .config/neomutt, .esmtprc, .fetchmailrc, .getmail, .local/share/evolution, .local/share/geary,
        .local/share/mail, .mail, .maildir, .mbsyncrc, .msmtprc, .mutt, .muttrc, .neomuttrc, .offlineimaprc,
        .thunderbird, Library/Mail, Maildir,
        .config/discord, .config/Element, .config/hexchat, .config/irssi, .config/Mattermost, .config/Microsoft,
        .config/Signal, .config/Slack, .config/teams, .config/telegram-desktop, .config/weechat, .config/zulip, .irssi,
        .local/share/TelegramDesktop, .local/share/weechat, .purple, .weechat, Library/Application Support/discord,
        Library/Application Support/Signal, Library/Application Support/Slack, Library/Messages,
        .aptos, .bitcoin, .brownie/accounts, .cardano, .config/atomic, .config/Exodus, .config/Ledger Live,
        .config/solana, .dashcore, .dogecoin, .electrum, .ethereum, .foundry/keystores, .litecoin, .lnd, .monero,
        .near-credentials, .sui, .zcash, Library/Application Support/Bitcoin, Library/Application Support/Exodus,
        .bash_history, .histfile, .history, .lesshst, .local/share/atuin, .local/share/fish/fish_history, .viminfo,
        .zhistory,
        .config/BraveSoftware, .config/chromium, .config/google-chrome, .config/microsoft-edge, .config/opera,
        .config/vivaldi, .librewolf, .mozilla, .var/app/com.brave.Browser, .var/app/com.discordapp.Discord,
        .var/app/com.google.Chrome, .var/app/com.slack.Slack, .var/app/org.chromium.Chromium,
        .var/app/org.mozilla.firefox, .var/app/org.mozilla.Thunderbird, .var/app/org.signal.Signal,
        .var/app/org.telegram.desktop, .zen, snap/brave, snap/chromium, snap/firefox, snap/thunderbird,
        Library/Application Support/BraveSoftware, Library/Application Support/Firefox,
        Library/Application Support/Google/Chrome, Library/Application Support/Microsoft Edge, Library/Cookies,
        Library/Safari,
        .android/adbkey, .ansible, .cassandra, .config/attic, .config/cachix, .expo, .gcloud, .helm, .heroku,
        .influxdbv2, .k9s, .local/share/heroku, .minikube, .rancher, .sentryclirc, .twilio-cli, .jira.d, .age,
        .config/syncthing, .gitcookies, .hgrc, .netrc.gpg, .w3m/cookie, .aider.conf.yml, .config/fabric,
        .config/huggingface, .config/zed, .kiro, .llm, .ollama/id_ed25519, .windsurf, .bunfig.toml, .condarc,
        Monero/wallets, .config/nushell/history.txt, .dbshell, .local/share/nushell, .local/share/zsh,
        .local/state/bash, .mongodb, .mongosh, .python_history, .node_repl_history, .psql_history,
        .mysql_history, .sqlite_history, .rediscli_history
    ";
    const NAMES_ANYWHERE: &str = "
        .env, .env.local, credentials.json, secrets.json, server.key, server.pem, id_rsa, id_dsa, id_ecdsa, id_ecdsa_sk,
        id_ed25519, id_ed25519_sk, .ssh, .gnupg, .netrc, _netrc, .pypirc, .git-credentials, vault.kdbx, login.ppk, me.p12,
        me.pfx
    ";
    /// Certificates that everybody has.
    const NO_SECRETS: &str = "cacert.pem, cacerts.pem, ca-bundle.pem, roots.pem";
    const NAMES_OF_DOORS: &str = "/run/user/1000/bus, /run/docker.sock, /var/run/docker.sock";

    fn names(list: &'static str) -> impl Iterator<Item = &'static str> {
        list.split([',', '\n']).map(str::trim).filter(|it| !it.is_empty())
    }

    #[test]
    fn every_secret_of_the_lists_is_hidden_and_none_is_missing_from_them() {
        let (root, home) = (Path::new("/home/me/shop"), Path::new("/home/me"));
        let secrets = Secrets::new(root, Some(home), &[]);
        let shown = |list: &'static str, folder: &str| {
            let is_shown = |it: &&str| !secrets.cover(&Path::new(folder).join(it), false);
            names(list).filter(is_shown).collect::<Vec<_>>()
        };
        assert_eq!(shown(NAMES_AT_HOME, "/home/me"), Vec::<&str>::new());
        assert_eq!(shown(NAMES_ANYWHERE, "/home/me/shop/deep/er"), Vec::<&str>::new());
        assert_eq!(shown(NAMES_OF_DOORS, "/"), Vec::<&str>::new());
        assert_eq!(
            shown(NO_SECRETS, "/home/me/shop"),
            names(NO_SECRETS).collect::<Vec<_>>()
        );
        // What is new in a list is written down here, too.
        let lines = AT_HOME.lines().filter(|it| !it.is_empty() && !it.starts_with('#'));
        assert_eq!(lines.count(), names(NAMES_AT_HOME).count());
        let expected = names(NAMES_ANYWHERE).chain(names(NO_SECRETS)).count();
        assert_eq!(ANYWHERE.iter().count(), expected);
        assert_eq!(DOORS.len(), names(NAMES_OF_DOORS).count());
    }

    #[test]
    fn a_secret_of_a_home_is_known_by_its_name_in_a_project_too() {
        let is_secret = |it: &str| is_named_like_at_home(Path::new(it));
        for secret in [
            ".npmrc",
            "packages/web/.npmrc",
            ".aws/credentials",
            "deploy/.kube/config",
            ".Docker/config.json",
        ] {
            assert!(is_secret(secret), "{secret}");
        }
        for plain in [
            "src/main.rs",
            "docker/config.json",
            ".github/workflows/ci.yml",
            ".gitignore",
            "credentials.rs",
        ] {
            assert!(!is_secret(plain), "{plain}");
        }
    }

    /// Names of folders and files that patterns below speak about.
    const PATHS: &[&str] = &[
        "a", "b", "a/a", "a/b", "a/b/c", "a/b/a.x", "b/a", "b/a.x", "b/c/a", "b/c/b.x", "ab", "a.x", "c d", "A",
        "b/A.x", "a/ab/c.x",
    ];
    /// Those that are folders.
    const FOLDERS: &[&str] = &["a", "b", "a/b", "b/c", "a/ab"];

    fn pattern() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            Just("a"),
            Just("b"),
            Just("c"),
            Just("*"),
            Just("*.x"),
            Just("a*"),
            Just("?"),
            Just("[ab]"),
            Just("[!a]"),
            Just("ab"),
            Just("a.x"),
            Just("**"),
            Just("c d"),
            Just("A"),
        ];
        let parts = prop::collection::vec(part, 1..4);
        (any::<bool>(), any::<bool>(), parts, any::<bool>(), 0..8_u8).prop_map(|(not, anchored, parts, folder, odd)| {
            let text = format!(
                "{}{}{}{}",
                if not { "!" } else { "" },
                if anchored { "/" } else { "" },
                parts.join("/"),
                if folder { "/" } else { "" }
            );
            match odd {
                0 => format!("{text}  "),
                1 => format!("{text}\r"),
                2 => format!("# {text}"),
                3 => String::new(),
                _ => text,
            }
        })
    }

    /// Returns git's verdict on each path, from one call of git.
    fn git(folder: &Path) -> Vec<bool> {
        let mut child = Command::new("git")
            .args(["check-ignore", "--no-index", "-v", "-n", "--stdin"])
            .current_dir(folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(PATHS.join("\n").as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let verdicts: Vec<_> = text
            .lines()
            .map(|line| {
                // `.gitignore:3:!a	a/b`, or `::	a/b` where no pattern fits.
                let pattern = line.split('\t').next().unwrap().splitn(3, ':').nth(2).unwrap();
                !pattern.is_empty() && !pattern.starts_with('!')
            })
            .collect();
        assert_eq!(verdicts.len(), PATHS.len(), "{text}");
        verdicts
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        #[test]
        fn verdicts_are_gits(
            files in prop::collection::vec((prop::sample::select(vec!["", "a", "b", "a/b"]), prop::collection::vec(pattern(), 1..5)), 1..4)
        ) {
            let folder = tempfile::tempdir().unwrap();
            let base = folder.path().canonicalize().unwrap();
            for path in FOLDERS {
                fs::create_dir_all(base.join(path)).unwrap();
            }
            for path in PATHS.iter().filter(|it| !FOLDERS.contains(it)) {
                fs::write(base.join(path), "").unwrap();
            }
            for (place, lines) in &files {
                for name in [".gitignore", ".sheafignore"] {
                    fs::write(base.join(place).join(name), lines.join("\n")).unwrap();
                }
            }
            fs::create_dir(base.join(".git")).unwrap();
            for (name, text) in [("HEAD", "ref: refs/heads/main\n"), ("config", "[core]\n\tbare = false\n\trepositoryformatversion = 0\n")] {
                fs::write(base.join(".git").join(name), text).unwrap();
            }
            for name in ["objects", "refs"] {
                fs::create_dir(base.join(".git").join(name)).unwrap();
            }
            let ours: Vec<_> = PATHS
                .iter()
                .map(|it| is_ignored(Some(base.clone()), &base.join(it), FOLDERS.contains(it)))
                .collect();
            let said = |verdicts: &[bool]| -> Vec<&str> {
                PATHS.iter().zip(verdicts).filter(|it| *it.1).map(|it| *it.0).collect()
            };
            prop_assert_eq!(said(&ours), said(&git(&base)), "{:?}", files);

            // A walk gives the same answers, as far as it goes down.
            let walk = Verdict::new(Some(base.clone()), &Secrets::new(&base, None, &[]), Scope::default());
            for (path, hidden) in PATHS.iter().zip(&ours) {
                let steps: Vec<_> = Path::new(path).ancestors().filter(|it| !it.as_os_str().is_empty()).collect();
                let walked = steps.iter().rev().any(|it| {
                    let is_folder = base.join(it).is_dir();
                    walk.is_hidden(&base.join(it), is_folder)
                });
                prop_assert_eq!(walked, *hidden, "{}", path);
            }
        }
    }
}
