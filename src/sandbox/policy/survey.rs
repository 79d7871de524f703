//! The names in a folder that matter to a command: what is protected, what is hidden, and which files git ignores.
//!
//! All names count, however deep, also in folders that git ignores. A survey is kept, and the next one lists only the folders
//! that have changed, so that a command costs a question for each folder and not one for each file.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::OsString,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use super::{
    hidden::{Secrets, Verdict},
    ignore_files::Scope,
    protected_names as name,
};

/// Maximum number of folders of a survey.
const MOST_FOLDERS: usize = 400_000;
/// Maximum number of entries that are listed anew.
const MOST_ENTRIES: usize = 4_000_000;
/// Maximum time of a survey.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum number of ignored files that are protected from writing. More are build output.
const MOST_IGNORED: usize = 256;
/// A folder that changed so shortly before it was looked at may change again without its time showing it.
const TICK: Duration = Duration::from_millis(20);
/// The same on file systems that know whole seconds only.
const LONG_TICK: Duration = Duration::from_secs(2);

/// Result of a look at a folder and all below.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    pub protected: Vec<PathBuf>,
    pub hidden: Vec<PathBuf>,
    pub ignored: Vec<PathBuf>,
    /// Limit that ended it. `None`: everything was seen.
    pub limit: Option<Limit>,
}

/// Limit of a survey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Entries,
    Time,
}

/// The surveys of a conversation's folders, shared by everybody who works in them.
#[derive(Clone, Debug)]
pub struct Surveys {
    names: Arc<Mutex<HashMap<PathBuf, Names>>>,
    most_folders: usize,
}

impl Default for Surveys {
    fn default() -> Self {
        Self {
            names: Arc::default(),
            most_folders: MOST_FOLDERS,
        }
    }
}

/// Folders of a tree, as they were listed.
#[derive(Debug, Default)]
struct Names {
    folders: HashMap<PathBuf, Listed>,
    /// Ignore files, which change what is to be found in folders that have not changed.
    rules: BTreeMap<PathBuf, Option<Stamp>>,
    limit: Option<Limit>,
}

/// A folder as it was listed.
#[derive(Debug)]
struct Listed {
    stamp: Stamp,
    /// It may have changed since without its time showing it.
    is_fresh: bool,
    context: Context,
    protected: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    ignored: Vec<PathBuf>,
    folders: Vec<(OsString, Context)>,
}

/// What the folders above say of a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Context {
    is_ignored: bool,
    is_protected: bool,
}

/// Metadata of a folder or a file, which change with every change of it, whatever a command does to its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl Stamp {
    /// The stamp of what is at a path, not of what a link leads to. `None`: nothing is.
    pub fn of(path: &Path) -> Option<Self> {
        let about = fs::symlink_metadata(path).ok()?;
        Some(Self {
            device: about.dev(),
            inode: about.ino(),
            changed: (about.ctime(), about.ctime_nsec()),
        })
    }

    fn is_fresh(self) -> bool {
        let (seconds, nanoseconds) = (
            u64::try_from(self.changed.0).unwrap_or_default(),
            u32::try_from(self.changed.1).unwrap_or_default(),
        );
        let changed = UNIX_EPOCH + Duration::new(seconds, nanoseconds);
        let tick = if nanoseconds == 0 { LONG_TICK } else { TICK };
        SystemTime::now().duration_since(changed).map_or(true, |it| it < tick)
    }
}

impl Surveys {
    /// Looks at a folder and all below. Work is proportional to the folders that are there and the entries of those that have changed.
    pub fn look(&self, root: &Path, secrets: &Secrets) -> Survey {
        let mut surveys = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let names = surveys.entry(root.to_owned()).or_default();
        names.refresh(root, secrets, self.most_folders);
        names.survey()
    }

    /// Returns true if a folder was looked at before.
    pub fn is_known(&self, root: &Path) -> bool {
        self.names
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains_key(root)
    }

    /// The limit that ended the last look at any folder.
    pub fn limit(&self) -> Option<Limit> {
        let surveys = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        surveys.values().find_map(|it| it.limit)
    }
}

impl Names {
    fn refresh(&mut self, root: &Path, secrets: &Secrets, most_folders: usize) {
        if self.rules.iter().any(|(path, stamp)| Stamp::of(path) != *stamp) {
            *self = Self::default();
        }
        let is_new = self.folders.is_empty();
        if !self.walk(root, secrets, most_folders) && !is_new {
            // A new ignore file speaks about folders that have not changed.
            *self = Self::default();
            self.walk(root, secrets, most_folders);
        }
    }

    /// Returns false if there is an ignore file that was not known.
    fn walk(&mut self, root: &Path, secrets: &Secrets, most_folders: usize) -> bool {
        let start = Instant::now();
        let scope = Scope { git: true, also: None };
        let verdict = Verdict::new(Some(root.to_owned()), secrets.clone(), scope);
        let mut known = std::mem::take(&mut self.folders);
        let mut rules: BTreeSet<PathBuf> = BTreeSet::from([root.join(".git/info/exclude")]);
        let mut open = vec![(root.to_owned(), Context::default())];
        let mut entries = 0;
        self.limit = None;
        while let Some((path, context)) = open.pop() {
            let is_late = self.folders.len().is_multiple_of(64) && start.elapsed() > PATIENCE;
            if is_late || self.folders.len() >= most_folders || entries > MOST_ENTRIES {
                self.limit = Some(if is_late { Limit::Time } else { Limit::Entries });
                break;
            }
            let Some(stamp) = Stamp::of(&path) else { continue };
            let listed = match known.remove(&path) {
                Some(known) if known.stamp == stamp && known.context == context && !known.is_fresh => known,
                Some(_) | None => {
                    let listed = Listed::read(root, &path, stamp, context, &verdict, &mut rules, &mut entries);
                    let Some(listed) = listed else { continue };
                    listed
                }
            };
            open.extend(listed.folders.iter().map(|(name, context)| (path.join(name), *context)));
            self.folders.insert(path, listed);
        }
        let is_known = rules.iter().all(|it| self.rules.contains_key(it));
        for path in rules {
            let stamp = Stamp::of(&path);
            self.rules.entry(path).or_insert(stamp);
        }
        is_known
    }

    fn survey(&self) -> Survey {
        let mut survey = Survey {
            limit: self.limit,
            ..Survey::default()
        };
        for listed in self.folders.values() {
            survey.protected.extend(listed.protected.iter().cloned());
            survey.hidden.extend(listed.hidden.iter().cloned());
            survey.ignored.extend(listed.ignored.iter().cloned());
        }
        for list in [&mut survey.protected, &mut survey.hidden, &mut survey.ignored] {
            list.sort_unstable();
        }
        survey.ignored.truncate(MOST_IGNORED);
        survey
    }
}

impl Listed {
    /// `None`: it cannot be listed, so a command cannot look into it either.
    fn read(
        root: &Path,
        folder: &Path,
        stamp: Stamp,
        context: Context,
        verdict: &Verdict,
        rules: &mut BTreeSet<PathBuf>,
        count: &mut usize,
    ) -> Option<Self> {
        let mut listed = Self {
            stamp,
            is_fresh: stamp.is_fresh(),
            context,
            protected: Vec::new(),
            hidden: Vec::new(),
            ignored: Vec::new(),
            folders: Vec::new(),
        };
        let left = MOST_ENTRIES.saturating_sub(*count).saturating_add(1);
        let entries = fs::read_dir(folder).ok()?.flatten().take(left);
        let entries: Vec<_> = entries
            .filter_map(|it| Some((it.file_name(), it.file_type().ok()?)))
            .collect();
        *count += entries.len();
        verdict.enter(folder, |name| entries.iter().any(|it| it.0.eq_ignore_ascii_case(name)));
        for (own, kind) in entries {
            let path = folder.join(&own);
            if own
                .to_str()
                .is_some_and(|it| it.starts_with('.') && it.ends_with("ignore"))
            {
                rules.insert(path.clone());
            }
            if verdict.is_hidden(&path, kind.is_dir()) {
                listed.hidden.push(path);
                continue;
            }
            let is_protected = context.is_protected
                || (name::is_telling(&own) && name::is_protected(path.strip_prefix(root).unwrap_or(&path)));
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
                    listed.folders.push((own, context));
                }
            } else if kind.is_file()
                && !is_protected
                && !context.is_ignored
                && listed.ignored.len() < MOST_IGNORED
                && verdict.is_left_out(&path, false)
            {
                listed.ignored.push(path);
            }
        }
        Some(listed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(surveys: &Surveys, root: &Path) -> String {
        let survey = surveys.look(root, &Secrets::new(root, None, &[]));
        let shown = |list: &[PathBuf]| {
            let names = list
                .iter()
                .map(|it| it.strip_prefix(root).unwrap().display().to_string());
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(survey.limit, None);
        // A survey that begins anew finds the same.
        assert_eq!(survey, Surveys::default().look(root, &Secrets::new(root, None, &[])));
        format!(
            "{} | {} | {}",
            shown(&survey.protected),
            shown(&survey.hidden),
            shown(&survey.ignored)
        )
    }

    #[test]
    fn a_kept_survey_finds_what_a_new_one_does() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let surveys = Surveys::default();
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
        let surveys = Surveys {
            most_folders: 4,
            ..Surveys::default()
        };
        let secrets = Secrets::new(&root, None, &[]);
        assert!(!surveys.is_known(&root));
        assert_eq!(surveys.look(&root, &secrets).limit, Some(Limit::Entries));
        assert_eq!((surveys.is_known(&root), surveys.limit()), (true, Some(Limit::Entries)));
        for at in 0..3 {
            fs::remove_dir(root.join(at.to_string())).unwrap();
        }
        assert_eq!(surveys.look(&root, &secrets).limit, None);
        assert_eq!(surveys.limit(), None);
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
            assert_eq!(found(&Surveys::default(), &root), "z/y/x/.vscode | z/y/x/.env | ");
        }
    }
}
