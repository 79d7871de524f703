//! The names in a folder that matter to a command: what is protected, what is hidden, and which files git ignores.
//!
//! All names count, however deep, also in folders that git ignores. A survey is kept, and the next one lists only the folders
//! that have changed, so that a command costs a question for each folder and not one for each file.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::{
    git_folders::{is_bare, is_bare_part},
    hidden::{Secrets, Verdict},
    ignore_files::Scope,
    protected_names as name,
    stamp::{Reading, Stamp},
};

/// Maximum number of folders of a survey.
const MOST_FOLDERS: usize = 400_000;
/// Maximum number of entries that are listed anew.
const MOST_ENTRIES: usize = 4_000_000;
/// Maximum time of a survey.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum number of ignored files that are protected from writing.
const MOST_IGNORED: usize = 4096;

/// Result of a look at a folder and all below.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    pub protected: Vec<PathBuf>,
    /// Without links.
    pub hidden: Vec<PathBuf>,
    pub ignored: Vec<PathBuf>,
    /// Links with the name of something hidden.
    pub hidden_links: Vec<PathBuf>,
    /// Links with a protected name, which are among `protected`, too.
    pub protected_links: Vec<PathBuf>,
    /// Folders that cannot be looked into. A command of the same user may change their rights.
    pub closed: Vec<PathBuf>,
    /// The limit that ended it. `None`: everything was seen but what is in `hidden` and `closed`.
    pub limit: Option<LookLimit>,
    folders: Arc<Folders>,
}

/// Limit of a survey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookLimit {
    Entries,
    Time,
    /// There are more ignored files than are protected.
    Ignored,
    /// The system could not read something.
    Errors,
    /// Not all could be found that git's configuration or the user's settings name.
    Configuration,
    /// There are more files in the user's own settings folders than are looked at.
    Settings,
}

impl LookLimit {
    /// A clause for the person who is asked because of it.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Entries | Self::Ignored => "there are more files than can be looked at",
            Self::Time => "it takes too long to look at all files",
            Self::Errors => "a file or folder of the workspace cannot be read",
            Self::Configuration => "a git configuration here, or what it names, cannot be read",
            Self::Settings => "your own settings folders (`~/.claude`, `~/.cursor`, …) have too many files",
        }
    }

    /// Returns true if names were not seen because of it.
    pub const fn hides_names(self) -> bool {
        match self {
            Self::Entries | Self::Time | Self::Errors => true,
            Self::Ignored | Self::Configuration | Self::Settings => false,
        }
    }
}

/// Limits of a survey, which tests lower.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    pub folders: usize,
    pub entries: usize,
    pub ignored: usize,
    pub time: Duration,
}

impl Default for Most {
    fn default() -> Self {
        Self {
            folders: MOST_FOLDERS,
            entries: MOST_ENTRIES,
            ignored: MOST_IGNORED,
            time: PATIENCE,
        }
    }
}

/// The surveys of a conversation's folders, shared by everybody who works in them.
#[derive(Clone, Debug, Default)]
pub struct Surveys {
    names: Arc<Mutex<HashMap<PathBuf, Names>>>,
    most: Most,
}

/// The folders of a tree by their paths.
type Folders = HashMap<Arc<Path>, Arc<Listed>>;

/// Folders of a tree, as they were listed.
#[derive(Debug, Default)]
struct Names {
    folders: Arc<Folders>,
    closed: Vec<PathBuf>,
    /// Ignore files, which change what is to be found in folders that have not changed.
    rules: BTreeMap<PathBuf, Reading>,
    /// The list of secrets by which they were listed.
    secrets: u64,
    limit: Option<LookLimit>,
}

/// A folder as it was listed.
#[derive(Debug)]
struct Listed {
    stamp: Stamp,
    /// Not all of it is known, or it may have changed since without its time showing it.
    is_unsure: bool,
    /// The listing ended at a limit.
    is_cut: bool,
    context: Context,
    protected: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    ignored: Vec<PathBuf>,
    hidden_links: Vec<PathBuf>,
    /// All others, among them those with a protected name, which are in `protected`, too.
    links: Vec<PathBuf>,
    folders: Vec<(Arc<Path>, Context)>,
}

/// What the folders above say of a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Context {
    is_ignored: bool,
    is_protected: bool,
}

impl Surveys {
    /// The same with other limits.
    #[cfg(test)]
    pub fn limited(most: Most) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    /// Does something while nobody can look.
    #[cfg(test)]
    pub fn hold_up<T>(&self, meanwhile: impl FnOnce() -> T) -> T {
        let held = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let done = meanwhile();
        drop(held);
        done
    }

    /// Looks at a folder and all below. Work is proportional to the folders that are there and the entries of those that have changed.
    pub fn look(&self, root: &Path, secrets: &Secrets) -> Survey {
        let mut surveys = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let names = surveys.entry(root.to_owned()).or_default();
        names.refresh(root, secrets, self.most);
        names.survey(self.most)
    }
}

impl Survey {
    /// Returns true if it is certain that nothing with a protected name was at a path when this was looked at: the folder was
    /// listed, or was not there itself.
    pub fn lacks(&self, path: &Path) -> bool {
        let mut here = path;
        for folder in path.ancestors().skip(1) {
            if let Some(listed) = self.folders.get(folder) {
                let mut names = [&listed.hidden, &listed.hidden_links, &listed.protected]
                    .into_iter()
                    .flatten();
                let is_known = listed.folders.iter().any(|it| *it.0 == *here) || names.any(|it| it == here);
                return !is_known && !listed.is_cut;
            }
            here = folder;
        }
        false
    }
}

impl Survey {
    /// The links in a folder and below that are not hidden; empty where it was not listed.
    pub fn links_in(&self, folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut open = vec![folder];
        while let Some(listed) = open.pop().and_then(|it| self.folders.get(it)) {
            found.extend(listed.links.iter().cloned());
            open.extend(listed.folders.iter().map(|it| &*it.0).filter(|it| self.has_folder(it)));
        }
        found
    }

    /// Returns true if a folder was listed.
    pub fn has_folder(&self, path: &Path) -> bool {
        self.folders.contains_key(path)
    }

    /// Returns true if a path lies where git ignored everything, or in a folder that has come since and that git ignores in
    /// `later`. What a command lets git ignore counts for its own folders only.
    pub fn is_ignored(&self, path: &Path, later: &Self) -> bool {
        let mut here = None;
        for folder in path.ancestors().skip(1) {
            if let Some(listed) = self.folders.get(folder) {
                let new = here.and_then(|it: &Path| later.folders.get(it));
                return listed.context.is_ignored || new.is_some_and(|it| it.context.is_ignored);
            }
            here = Some(folder);
        }
        false
    }
}

impl Names {
    fn refresh(&mut self, root: &Path, secrets: &Secrets, most: Most) {
        let version = secrets.version();
        if self.secrets != version || self.rules.iter().any(|(path, it)| !it.is_current(path)) {
            *self = Self::default();
        }
        self.secrets = version;
        let is_new = self.folders.is_empty();
        if !self.walk(root, secrets, most) && !is_new {
            // A new ignore file speaks about folders that have not changed.
            *self = Self {
                secrets: version,
                ..Self::default()
            };
            self.walk(root, secrets, most);
        }
    }

    /// Returns false if there is an ignore file that was not known.
    fn walk(&mut self, root: &Path, secrets: &Secrets, most: Most) -> bool {
        let start = Instant::now();
        let scope = Scope { git: true, also: None };
        let verdict = Verdict::new(Some(root.to_owned()), secrets, scope);
        let known = std::mem::take(&mut self.folders);
        let mut folders = Folders::with_capacity(known.len());
        let mut open: Vec<(Arc<Path>, Context)> = vec![(root.into(), Context::default())];
        let mut left = most.entries;
        self.limit = None;
        self.closed.clear();
        while let Some((path, context)) = open.pop() {
            let is_late = folders.len().is_multiple_of(64) && start.elapsed() > most.time;
            if is_late || folders.len() >= most.folders {
                self.limit = Some(if is_late { LookLimit::Time } else { LookLimit::Entries });
                break;
            }
            match list(root, &path, context, &known, &verdict, &mut left) {
                Ok(listed) => {
                    if listed.is_cut {
                        self.limit = Some(LookLimit::Entries);
                    }
                    open.extend(listed.folders.iter().cloned());
                    folders.insert(path, listed);
                }
                Err(error) => match error.kind() {
                    // It has just gone.
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {}
                    io::ErrorKind::PermissionDenied => self.closed.push(closed(&path)),
                    _ => {
                        tracing::warn!(%error, folder = %path.display(), "a folder cannot be listed");
                        self.limit = Some(LookLimit::Errors);
                    }
                },
            }
        }
        self.folders = Arc::new(folders);
        let read = verdict.take_read();
        let is_like = |(path, it): (&PathBuf, &Reading)| self.rules.get(path).is_some_and(|known| known.is_like(it));
        let is_known = read.iter().all(is_like);
        self.rules.extend(read);
        is_known
    }

    fn survey(&self, most: Most) -> Survey {
        let mut survey = Survey {
            closed: self.closed.clone(),
            limit: self.limit,
            folders: Arc::clone(&self.folders),
            ..Survey::default()
        };
        for listed in self.folders.values() {
            survey.protected.extend(listed.protected.iter().cloned());
            survey.hidden.extend(listed.hidden.iter().cloned());
            survey.ignored.extend(listed.ignored.iter().cloned());
            survey.hidden_links.extend(listed.hidden_links.iter().cloned());
            let is_protected = |it: &&PathBuf| listed.context.is_protected || listed.protected.contains(it);
            survey
                .protected_links
                .extend(listed.links.iter().filter(is_protected).cloned());
        }
        for list in [
            &mut survey.protected,
            &mut survey.hidden,
            &mut survey.ignored,
            &mut survey.hidden_links,
            &mut survey.protected_links,
            &mut survey.closed,
        ] {
            list.sort_unstable();
            list.dedup();
        }
        if survey.ignored.len() > most.ignored {
            survey.ignored.truncate(most.ignored);
            survey.limit.get_or_insert(LookLimit::Ignored);
        }
        survey
    }
}

/// The folder that keeps a path from being looked at: itself, or the one that it is in, whose names can be read and nothing else.
fn closed(path: &Path) -> PathBuf {
    let is_there = fs::symlink_metadata(path).is_ok();
    let folder = if is_there { None } else { path.parent() };
    folder.unwrap_or(path).to_owned()
}

/// Lists a folder, unless it is known and has not changed.
fn list(
    root: &Path,
    folder: &Path,
    context: Context,
    known: &Folders,
    verdict: &Verdict,
    left: &mut usize,
) -> io::Result<Arc<Listed>> {
    let stamp = Stamp::of(folder)?;
    match known.get(folder) {
        Some(known) if known.stamp == stamp && known.context == context && !known.is_unsure => Ok(Arc::clone(known)),
        Some(_) | None => Listed::read(root, folder, stamp, context, verdict, left).map(Arc::new),
    }
}

impl Listed {
    /// `left` is the number of entries that may still be read.
    fn read(
        root: &Path,
        folder: &Path,
        stamp: Stamp,
        context: Context,
        verdict: &Verdict,
        left: &mut usize,
    ) -> io::Result<Self> {
        let mut listed = Self {
            stamp,
            is_unsure: stamp.is_fresh(),
            is_cut: false,
            context,
            protected: Vec::new(),
            hidden: Vec::new(),
            ignored: Vec::new(),
            hidden_links: Vec::new(),
            links: Vec::new(),
            folders: Vec::new(),
        };
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if *left == 0 {
                (listed.is_cut, listed.is_unsure) = (true, true);
                break;
            }
            *left -= 1;
            match entry.file_type() {
                Ok(kind) => entries.push((entry.file_name(), kind)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        if !listed.is_cut {
            verdict.enter(folder, |name| entries.iter().any(|it| it.0.eq_ignore_ascii_case(name)));
        }
        let is_bare = is_bare(|name| entries.iter().any(|it| it.0 == name));
        for (own, kind) in entries {
            let path = folder.join(&own);
            if verdict.is_hidden(&path, kind.is_dir()) {
                if kind.is_symlink() {
                    listed.hidden_links.push(path);
                } else {
                    listed.hidden.push(path);
                }
                continue;
            }
            let is_protected = context.is_protected
                || (is_bare && is_bare_part(&own))
                || (name::is_telling(&own) && name::is_protected(path.strip_prefix(root).unwrap_or(&path)));
            if kind.is_symlink() {
                listed.links.push(path.clone());
            }
            if is_protected && (!context.is_protected || kind.is_symlink()) {
                listed.protected.push(path.clone());
            }
            if kind.is_dir() {
                // Nothing of the user's is in there but keys of git's own.
                if !name::is_git(&own) {
                    let is_ignored = context.is_ignored || verdict.is_left_out(&path, true);
                    let context = Context {
                        is_ignored,
                        is_protected,
                    };
                    listed.folders.push((path.into(), context));
                }
            } else if kind.is_file()
                && !is_protected
                && !context.is_ignored
                // One more shows that there are more.
                && listed.ignored.len() <= MOST_IGNORED
                && verdict.is_left_out(&path, false)
            {
                listed.ignored.push(path);
            }
        }
        Ok(listed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::{super::stamp::TICK, *};

    /// Surveys with the list of secrets by which they are kept: another list begins them anew.
    struct Kept(Surveys, Secrets);

    /// Without a limit of time, which a busy machine may reach.
    fn patient(root: &Path) -> Kept {
        let surveys = Surveys::limited(Most {
            time: Duration::MAX,
            ..Most::default()
        });
        Kept(surveys, Secrets::new(root, None, &[]))
    }

    fn found(Kept(surveys, secrets): &Kept, root: &Path) -> String {
        let shown = |surveys: &Surveys| {
            let survey = surveys.look(root, secrets);
            assert_eq!(survey.limit, None);
            let lists = [survey.protected, survey.hidden, survey.ignored].map(|list| {
                let names = list
                    .iter()
                    .map(|it| it.strip_prefix(root).unwrap().display().to_string());
                names.collect::<Vec<_>>().join(" ")
            });
            lists.join(" | ")
        };
        let found = shown(surveys);
        assert_eq!(
            found,
            shown(&Surveys::default()),
            "a survey that begins anew finds the same"
        );
        found
    }

    #[test]
    fn a_kept_survey_finds_what_a_new_one_does() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let surveys = patient(&root);
        let put = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("a/b/c/x.rs", "");
        assert_eq!(found(&surveys, &root), " |  | ");
        put("a/b/c/.vscode/tasks.json", "");
        put("a/b/c/.env", "");
        assert_eq!(found(&surveys, &root), "a/b/c/.vscode | a/b/c/.env | ");
        // Times that a command sets say nothing.
        let was = filetime(&root.join("a/b"));
        put("a/b/.envrc", "");
        fs::File::open(root.join("a/b")).unwrap().set_modified(was).unwrap();
        assert_eq!(found(&surveys, &root), "a/b/.envrc a/b/c/.vscode | a/b/c/.env | ");
        // An ignore file that comes, changes and goes speaks about folders that do not change.
        std::thread::sleep(TICK * 2);
        assert_eq!(found(&surveys, &root), "a/b/.envrc a/b/c/.vscode | a/b/c/.env | ");
        put(".gitignore", "*.rs\n");
        assert_eq!(
            found(&surveys, &root),
            "a/b/.envrc a/b/c/.vscode | a/b/c/.env | a/b/c/x.rs"
        );
        put(".gitignore", "*.none\n");
        assert_eq!(found(&surveys, &root), "a/b/.envrc a/b/c/.vscode | a/b/c/.env | ");
        put(".sheafignore", "c\n");
        assert_eq!(found(&surveys, &root), ".sheafignore a/b/.envrc | a/b/c | ");
        fs::remove_file(root.join(".sheafignore")).unwrap();
        fs::rename(root.join("a/b"), root.join("a/d")).unwrap();
        assert_eq!(found(&surveys, &root), "a/d/.envrc a/d/c/.vscode | a/d/c/.env | ");
        fs::remove_dir_all(root.join("a/d/c/.vscode")).unwrap();
        assert_eq!(found(&surveys, &root), "a/d/.envrc | a/d/c/.env | ");
    }

    #[test]
    fn an_ignore_file_that_is_a_link_is_as_new_as_what_it_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (path, text) in [("a/b", ""), ("a/c", ""), ("rules/one", "b\n"), ("rules/two", "c\n")] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        std::os::unix::fs::symlink("one", root.join("rules/now")).unwrap();
        std::os::unix::fs::symlink("rules/now", root.join(".sheafignore")).unwrap();
        let surveys = patient(&root);
        std::thread::sleep(TICK * 2);
        assert_eq!(found(&surveys, &root), ".sheafignore | a/b | ");
        fs::write(root.join("rules/one"), "a\n").unwrap();
        assert_eq!(found(&surveys, &root), ".sheafignore | a | ");
        std::thread::sleep(TICK * 2);
        fs::remove_file(root.join("rules/now")).unwrap();
        std::os::unix::fs::symlink("two", root.join("rules/now")).unwrap();
        assert_eq!(found(&surveys, &root), ".sheafignore | a/c | ");
        // The user's and the repository's exclude files lie where nobody lists them.
        fs::create_dir_all(root.join(".git/info")).unwrap();
        assert_eq!(found(&surveys, &root), ".git .sheafignore | a/c | ");
        fs::write(root.join(".git/info/exclude"), "b\n").unwrap();
        assert_eq!(found(&surveys, &root), ".git .sheafignore | a/c | a/b");
    }

    fn filetime(path: &Path) -> SystemTime {
        fs::metadata(path).unwrap().modified().unwrap()
    }

    #[test]
    fn a_limit_that_is_reached_is_said_until_it_is_not_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for at in 0..5 {
            fs::create_dir(root.join(at.to_string())).unwrap();
        }
        let surveys = Surveys::limited(Most {
            folders: 4,
            ..Most::default()
        });
        let secrets = Secrets::new(&root, None, &[]);
        assert_eq!(surveys.look(&root, &secrets).limit, Some(LookLimit::Entries));
        for at in 0..3 {
            fs::remove_dir(root.join(at.to_string())).unwrap();
        }
        assert_eq!(surveys.look(&root, &secrets).limit, None);
    }

    #[test]
    fn a_folder_that_was_listed_in_part_is_listed_again() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("many")).unwrap();
        for at in 0..20 {
            fs::write(root.join(format!("many/{at}")), "").unwrap();
        }
        let surveys = Surveys::limited(Most {
            entries: 10,
            ..Most::default()
        });
        let secrets = Secrets::new(&root, None, &[]);
        std::thread::sleep(TICK * 2);
        for _ in 0..2 {
            assert_eq!(surveys.look(&root, &secrets).limit, Some(LookLimit::Entries));
        }
        for at in 0..15 {
            fs::remove_file(root.join(format!("many/{at}"))).unwrap();
        }
        assert_eq!(surveys.look(&root, &secrets).limit, None);
    }

    #[test]
    fn more_ignored_files_than_are_protected_are_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::write(root.join(".gitignore"), "*.o\n").unwrap();
        let surveys = Surveys::limited(Most {
            ignored: 10,
            ..Most::default()
        });
        let secrets = Secrets::new(&root, None, &[]);
        for (files, limit) in [(10, None), (11, Some(LookLimit::Ignored))] {
            for at in 0..files {
                fs::write(root.join(format!("{at}.o")), "").unwrap();
            }
            let survey = surveys.look(&root, &secrets);
            assert_eq!((survey.ignored.len(), survey.limit), (10, limit));
        }
    }

    #[test]
    fn what_lies_behind_very_many_entries_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for at in 0..60 {
            fs::create_dir(root.join(format!("d{at:02}"))).unwrap();
            for file in 0..1000 {
                fs::File::create(root.join(format!("d{at:02}/{file}"))).unwrap();
            }
        }
        fs::create_dir_all(root.join("z/y/x/.vscode")).unwrap();
        fs::write(root.join("z/y/x/.env"), "").unwrap();
        for _ in 0..2 {
            assert_eq!(found(&patient(&root), &root), "z/y/x/.vscode | z/y/x/.env | ");
        }
    }
}
