//! Protected files that a command has made where there were none.
//!
//! Nothing can be mounted over a file that does not exist, and an empty file in its place would be seen by git. So it is
//! looked what has come to the folders of the conversation once the command has ended: what runs, or decides what runs, is put
//! aside and said. Nothing is lost, and nothing of it acts. What may have been there before is only said, and so is what builds
//! and installations make in their folders.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    placeholder::{Places, is_place},
    quarantine::Quarantine,
    write_guard::Mended,
};
use crate::sandbox::{
    files::git_index as tracked,
    policy::{
        Fixed, Ground, Look, is_bare, is_bare_part, is_plain_module, leads_home, pointed, protected_names as name,
    },
};

/// Files that the permission `git_write` lets git create.
const OF_GIT: [&str; 3] = [".gitmodules", ".gitattributes", ".git"];
/// Maximum number of files of a folder that are looked up in git's index.
const MOST_TRACKED: usize = 200;
/// Maximum number of folders, one in the other, that a command has closed and that are looked into.
const MOST_CLOSED: usize = 16;

/// Protected paths in the folders of a conversation before a command.
#[derive(Debug)]
pub struct Before {
    ground: Ground,
    look: Arc<Look>,
    names: BTreeSet<PathBuf>,
    /// Empty folders that stood for a name, which are not among them: they go unnoticed, and then the name can be used.
    places: BTreeSet<PathBuf>,
    git_write: bool,
    /// The user approved a line by which git makes submodules.
    pub makes_submodules: bool,
    /// Git's folders that the command may write.
    opened: BTreeSet<PathBuf>,
    /// What runs or decides what runs in them, as far as it was there.
    fixed: BTreeSet<PathBuf>,
    /// For one that was read from a list.
    listed: Option<Unseen>,
}

/// What another program did not see before its command.
#[derive(Debug)]
struct Unseen {
    /// Nobody could look into these folders.
    closed: BTreeSet<PathBuf>,
    /// A limit was reached.
    is_partial: bool,
}

/// The part of [`Before`] that is written to the disk.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct List {
    /// Protected paths that were there.
    pub names: BTreeSet<PathBuf>,
    /// Paths that something names as what decides what runs, and that were not there.
    pub missing: BTreeSet<PathBuf>,
    /// Git's folders that the command could write.
    pub opened: BTreeSet<PathBuf>,
    /// Files in them that run or decide what runs, as far as they were there.
    pub fixed: BTreeSet<PathBuf>,
    /// Folders that nobody could look into.
    pub closed: BTreeSet<PathBuf>,
    pub git_write: bool,
    /// Not all names were seen.
    pub is_partial: bool,
}

/// A path that should not be there after a command that was cut.
#[derive(Debug, PartialEq, Eq)]
pub struct Left {
    pub path: PathBuf,
    /// False if it may have been there where nobody could look.
    pub is_new: bool,
    /// It lies where builds and installations make such files, and neither git nor this program acts on it.
    pub is_packaged: bool,
}

/// A protected path that was not among those before the command.
struct Arrived {
    path: PathBuf,
    /// False if it may have been there where nobody could look.
    is_new: bool,
}

/// Protected paths that were found after a command and should not be there.
#[derive(Debug, Default)]
pub struct Found {
    /// Names of what was put aside, and where each is now.
    pub aside: Vec<(String, PathBuf)>,
    pub told: Vec<Mended>,
}

impl Before {
    pub fn new(ground: &Ground, look: Arc<Look>, git_write: bool) -> Self {
        let (places, names) = look.protected().into_iter().partition(|it| is_place(it));
        let opened = if git_write {
            ground.opened(&look)
        } else {
            BTreeSet::new()
        };
        let fixed = opened.iter().flat_map(|it| Fixed::of(it).paths);
        Self {
            ground: ground.clone(),
            names,
            places,
            git_write,
            makes_submodules: false,
            fixed: fixed.filter(|it| is_there(it)).collect(),
            opened,
            look,
            listed: None,
        }
    }

    /// The same, as another program listed it.
    pub fn listed(ground: &Ground, list: List) -> Self {
        Self {
            ground: ground.clone(),
            look: Arc::new(Look {
                missing: list.missing,
                ..Look::default()
            }),
            names: list.names,
            places: BTreeSet::new(),
            git_write: list.git_write,
            makes_submodules: false,
            opened: list.opened,
            fixed: list.fixed,
            listed: Some(Unseen {
                closed: list.closed,
                is_partial: list.is_partial,
            }),
        }
    }

    pub fn list(&self) -> List {
        let closed = self.look.surveys.iter().flat_map(|it| &it.1.closed);
        List {
            closed: closed.cloned().collect(),
            names: self.names.clone(),
            missing: self.look.missing.clone(),
            opened: self.opened.clone(),
            fixed: self.fixed.clone(),
            git_write: self.git_write,
            is_partial: self.look.lacks_names(),
        }
    }

    pub fn ground(&self) -> &Ground {
        &self.ground
    }

    /// Returns true if git wrote the file as it is: only where the command could not tell git so.
    pub fn is_of_git(&self, path: &Path) -> bool {
        let place = self.place(path).filter(|_| !self.git_write);
        place.is_some_and(|(root, inner)| is_gits(root, inner))
    }

    /// The paths that should not be there, for one that was listed, and true if all names were seen before the command and now.
    pub fn left(&self, aside: &Quarantine) -> (Vec<Left>, bool) {
        let now = self.ground.look();
        let left = self.unwanted_paths(&now, aside, true, &Places::default());
        let left = left.into_iter().map(|Arrived { path, is_new }| {
            let is_named = self.place(&path).is_some_and(|(_, inner)| name::is_acting(inner));
            let is_acting = is_named || self.bare(&path).is_some();
            Left {
                is_packaged: !is_acting && now.is_of_others(&path, &now),
                path,
                is_new,
            }
        });
        let is_partial = self.listed.as_ref().is_some_and(|it| it.is_partial);
        (left.collect(), !is_partial && !now.lacks_names())
    }

    /// Puts aside what should not be there. What our own tools wrote stays, because the user said so; where nobody else could
    /// write git's folder, what git wrote stays too; and what others put into `held` folders meanwhile, which the command could
    /// not.
    pub fn put_aside(&self, aside: &Quarantine, is_git_held: bool, held: &Places) -> Found {
        let mut found = Found::default();
        let now = self.look_again(&mut found.told);
        let modules = self.new_modules();
        let mut repositories = BTreeSet::new();
        for Arrived { path, is_new } in self.unwanted_paths(&now, aside, is_git_held, held) {
            if modules.iter().any(|it| path.starts_with(it)) {
                continue;
            }
            if let Some(folder) = submodule(&path, &modules) {
                repositories.insert(self.shown(folder));
                continue;
            }
            let bare = self.bare(&path);
            if let Some(folder) = bare.filter(|it| is_new && self.is_new_folder(it, &now)) {
                repositories.insert(self.shown(folder));
                continue;
            }
            let shown = self.shown(&path);
            let Some((root, inner)) = self.place(&path).filter(|_| is_new) else {
                found.told.push(Mended::Unsure { path: shown });
                continue;
            };
            if self.is_new_repository(&path, &now) {
                let path = path.parent().map_or(shown, |it| self.shown(it));
                found.told.push(Mended::Repository { path });
                continue;
            }
            if bare.is_none() && !name::is_acting(inner) && self.look.is_of_others(&path, &now) {
                found.told.push(Mended::Packaged { path: shown });
                continue;
            }
            match aside.put(root, inner) {
                Ok(there) => found.aside.push((shown, there)),
                // It was there for a moment only.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    tracing::error!(%error, name = %shown, "a protected file that a command made cannot be put aside");
                    found.aside.push((shown, path));
                }
            }
        }
        found
            .told
            .extend(repositories.into_iter().map(|path| Mended::Repository { path }));
        found
    }

    /// The git folders of submodules that git made because the user wanted it, as git makes them.
    fn new_modules(&self) -> BTreeSet<PathBuf> {
        if !self.makes_submodules {
            return BTreeSet::new();
        }
        let fixed = self.opened.iter().flat_map(|it| Fixed::of(it).paths);
        let new = fixed.filter(|it| it.ends_with("config") && is_there(it) && !self.fixed.contains(it));
        let modules = new.filter_map(|it| it.parent().map(Path::to_owned));
        modules
            .filter(|it| !self.opened.contains(it) && is_plain_module(it))
            .collect()
    }

    /// Looks at the folders after the command, also into those that it has closed: they are its owner's again.
    fn look_again(&self, told: &mut Vec<Mended>) -> Arc<Look> {
        let mut now = self.ground.look();
        for _ in 0..MOST_CLOSED {
            let closed = self.look.closed_since(&now);
            let opened: Vec<_> = closed.iter().filter(|it| open_up(it)).collect();
            if opened.is_empty() {
                break;
            }
            told.extend(opened.into_iter().map(|it| Mended::Opened { path: self.shown(it) }));
            now = self.ground.look();
        }
        let closed = self.look.closed_since(&now);
        told.extend(closed.iter().map(|it| Mended::Closed { path: self.shown(it) }));
        now
    }

    /// Returns true for the complete git folder of a repository whose own folder was not there before.
    fn is_new_repository(&self, path: &Path, now: &Look) -> bool {
        is_repository(path) && path.parent().is_some_and(|it| self.is_new_folder(it, now))
    }

    /// Returns true for a folder that was not there before.
    fn is_new_folder(&self, path: &Path, now: &Look) -> bool {
        !self.look.has_folder(path) && now.has_folder(path)
    }

    /// The folder that git may take for a repository without a working tree, of which a path is a part that decides what runs, and
    /// is protected for nothing else.
    fn bare<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let folder = path.parent()?;
        let (_, inner) = self.place(path)?;
        // Git's own folder has the same parts, and its name.
        let is_named = name::is_protected(inner) || folder.iter().any(name::is_git);
        let is_part = is_bare_part(path.file_name()?) && !is_named;
        (is_part && is_bare(|it| is_there(&folder.join(it)))).then_some(folder)
    }

    /// Returns true for a part of a repository without a working tree that was none before: without its `HEAD` it is none again, and
    /// the others may have been there under names that meant nothing.
    fn is_idle(&self, path: &Path) -> bool {
        let head = self.bare(path).map(|it| it.join("HEAD"));
        head.is_some_and(|it| it != path && !self.names.contains(&it))
    }

    /// The names of what should not be there.
    pub fn unwanted(&self, aside: &Quarantine, held: &Places) -> impl Iterator<Item = String> {
        let unwanted = self.unwanted_paths(&self.ground.look(), aside, false, held);
        unwanted.into_iter().map(|it| self.shown(&it.path))
    }

    fn unwanted_paths(&self, now: &Look, aside: &Quarantine, is_git_held: bool, held: &Places) -> Vec<Arrived> {
        let is_users = |path: &Path| aside.is_known(path) || held.hold(path) || (is_git_held && self.is_of_git(path));
        let mut arrived = self.arrived(now);
        arrived.retain(|it| self.is_unwanted(&it.path) && !is_users(&it.path) && !self.is_idle(&it.path));
        arrived
    }

    /// The user let the command make what it made: another one that ends later leaves it where it is.
    pub fn vouch(&self, aside: &Quarantine) {
        for it in self.arrived(&self.ground.look()) {
            aside.vouch(&it.path);
        }
    }

    /// The protected paths that were not among those before the command.
    fn arrived(&self, now: &Look) -> Vec<Arrived> {
        let mut found = now.protected();
        found.extend(self.look.missing.iter().filter(|it| is_there(it)).cloned());
        found.retain(|it| !self.names.contains(it));
        let by_name = found.into_iter().map(|path| Arrived {
            is_new: self.is_certainly_new(&path, now),
            path,
        });
        let of_git = self.opened.iter().flat_map(|folder| {
            let Fixed { paths, is_partial } = Fixed::of(folder);
            paths.into_iter().map(move |path| Arrived {
                path,
                is_new: !is_partial,
            })
        });
        let of_git =
            of_git.filter(|Arrived { path, .. }| is_there(path) && !self.fixed.contains(path) && !leads_home(path));
        by_name.chain(of_git).filter(|it| !is_place(&it.path)).collect()
    }

    /// Returns true if nothing can have been at a protected path before the command.
    fn is_certainly_new(&self, path: &Path, now: &Look) -> bool {
        match &self.listed {
            None => self.places.contains(path) || self.look.lacks(path, now),
            Some(Unseen { closed, is_partial }) => {
                let is_seen = || !is_partial && !closed.iter().any(|it| path.starts_with(it));
                // What something names may have been there without a name that counts.
                self.look.missing.contains(path) || (now.has_by_name(path) && is_seen())
            }
        }
    }

    fn is_unwanted(&self, path: &Path) -> bool {
        let folded = path.file_name().map(name::folded).unwrap_or_default();
        // Variables of a project are set up by commands every day, and nothing of ours reads them.
        let is_setup = folded.starts_with(".env") && folded != ".envrc";
        let is_gits = self.git_write && OF_GIT.contains(&folded.as_str());
        !is_setup && !is_gits
    }

    /// The folder of the conversation that a path lies in, and the way from there.
    pub fn place<'a>(&'a self, path: &'a Path) -> Option<(&'a Path, &'a Path)> {
        // Git's folder may lie elsewhere.
        let roots = self.ground.roots().chain(&self.opened);
        let root = roots.filter(|it| path.starts_with(it));
        let root = root.max_by_key(|it| it.as_os_str().len())?;
        Some((root, path.strip_prefix(root).ok()?))
    }

    /// A path as people see it: relative to the workspace.
    pub fn shown(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.ground.root).unwrap_or(path);
        path.to_string_lossy().into_owned()
    }
}

/// Returns true for the complete git folder of a repository.
pub fn is_repository(path: &Path) -> bool {
    let is_whole = || ["HEAD", "objects", "refs"].iter().all(|it| path.join(it).exists());
    path.file_name().is_some_and(name::is_git) && path.is_dir() && is_whole()
}

/// The working tree of a submodule with one of these git folders, on the way to a path.
fn submodule<'a>(path: &'a Path, modules: &BTreeSet<PathBuf>) -> Option<&'a Path> {
    let is_one = |folder: &&Path| {
        let git = folder.join(".git");
        git.is_file() && pointed(&git).iter().any(|it| modules.contains(it))
    };
    let mut folders = path.ancestors().skip(1);
    if modules.is_empty() { None } else { folders.find(is_one) }
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Gives a folder back to its owner. Returns false if that is somebody else, or no folder is there.
fn open_up(folder: &Path) -> bool {
    let Ok(about) = fs::symlink_metadata(folder) else {
        return false;
    };
    let rights = about.permissions().mode() | 0o700;
    about.is_dir() && fs::set_permissions(folder, fs::Permissions::from_mode(rights)).is_ok()
}

/// Returns true if git wrote a file, or every file of a folder.
fn is_gits(root: &Path, inner: &Path) -> bool {
    let mut open = vec![inner.to_owned()];
    let mut files = 0;
    while let Some(inner) = open.pop() {
        let path = root.join(&inner);
        if fs::symlink_metadata(&path).is_ok_and(|it| it.is_dir()) {
            let Ok(entries) = fs::read_dir(&path) else { return false };
            open.extend(entries.flatten().map(|it| inner.join(it.file_name())));
        } else {
            files += 1;
            if files > MOST_TRACKED || !tracked::is_gits(root, &inner) {
                return false;
            }
        }
    }
    files > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::policy::Most;
    use pretty_assertions::assert_eq;

    fn before(ground: &Ground, git_write: bool) -> Before {
        Before::new(ground, ground.look(), git_write)
    }

    #[test]
    fn what_acts_and_was_not_there_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("work");
        fs::create_dir(&root).unwrap();
        let aside = Quarantine::at(Some(folder.path().join("aside")));
        fs::write(root.join(".envrc"), "mine").unwrap();
        let taken = |git_write: bool, new: &[&str]| {
            let before = before(&Ground::bare(&root), git_write);
            for name in new {
                fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
                fs::write(root.join(name), "evil").unwrap();
            }
            let taken = before.put_aside(&aside, true, &Places::default()).aside;
            for (name, path) in &taken {
                assert!(path.is_dir() || fs::read(path).unwrap() == b"evil", "{name}");
                assert!(!root.join(name).exists(), "{name}");
            }
            for name in new {
                fs::remove_file(root.join(name)).ok();
            }
            let mut names: Vec<_> = taken.into_iter().map(|it| it.0).collect();
            names.sort();
            names.join(" ")
        };
        assert_eq!(taken(false, &["a.rs", "Makefile", ".env", ".env.local"]), "");
        fs::create_dir_all(root.join("a/b/.github")).unwrap();
        assert_eq!(
            taken(false, &["a/b/.envrc", "a/.github/workflows/x.yml", "a/x.yml"]),
            "a/.github/workflows a/b/.envrc"
        );
        assert_eq!(
            taken(false, &[".MCP.json", "x.code-workspace", "b"]),
            ".MCP.json x.code-workspace"
        );
        assert_eq!(taken(false, &[".gitattributes", ".bashrc"]), ".bashrc .gitattributes");
        assert_eq!(taken(true, &[".gitattributes", ".bashrc"]), ".bashrc");
        assert_eq!(fs::read_to_string(root.join(".envrc")).unwrap(), "mine");
    }

    #[test]
    fn a_folder_becomes_no_repository_by_what_is_put_into_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("work");
        let aside = Quarantine::at(Some(folder.path().join("aside")));
        let put = |path: &str| {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), "evil").unwrap();
        };
        for path in [
            "src/main.rs",
            "src/config",
            "b.git/HEAD",
            "b.git/refs/x",
            "b.git/config",
            "c/HEAD",
        ] {
            put(path);
        }
        let taken = |new: &[&str]| {
            let before = before(&Ground::bare(&root), false);
            for it in new {
                put(it);
            }
            let found = before.put_aside(&aside, true, &Places::default());
            let told = found.told.into_iter().map(|it| match it {
                Mended::Repository { path } => format!("({path})"),
                other => panic!("{other:?}"),
            });
            let mut names: Vec<_> = found.aside.into_iter().map(|it| it.0).chain(told).collect();
            names.sort();
            names.join(" ")
        };
        // Git takes no folder for a repository that has no HEAD, so the rest may stay: `config` was there before.
        assert_eq!(
            taken(&["src/HEAD", "src/objects/x", "src/refs/x", "src/config"]),
            "src/HEAD"
        );
        assert_eq!(taken(&["src/HEAD", "src/commondir"]), "src/HEAD");
        // One that is there is held, and nothing comes to it.
        let held = Ground::bare(&root).look().protected();
        assert!(held.contains(&root.join("b.git/config")) && held.contains(&root.join("b.git/HEAD")));
        assert_eq!(taken(&["b.git/hooks/post-receive", "b.git/objects/x"]), "b.git/hooks");
        // A new one is said, as any new repository is.
        assert_eq!(
            taken(&[
                "new/x.git/HEAD",
                "new/x.git/objects/x",
                "new/x.git/refs/x",
                "new/x.git/config"
            ]),
            "(new/x.git)"
        );
        assert_eq!(taken(&["c/other", "d/HEAD", "d/config", "e/refs/x", "e/objects/x"]), "");
    }

    #[test]
    fn what_the_user_wanted_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("work");
        fs::create_dir(&root).unwrap();
        let git = |words: &[&str]| {
            let done = std::process::Command::new("git")
                .args(["-c", "user.name=x", "-c", "user.email=x"])
                .args(words)
                .current_dir(&root)
                .output();
            assert!(done.unwrap().status.success(), "{words:?}");
        };
        git(&["init", "-q"]);
        fs::write(root.join(".gitattributes"), "* text\n").unwrap();
        git(&["add", "."]);
        git(&["commit", "-qm", "one"]);
        fs::remove_file(root.join(".gitattributes")).unwrap();
        let aside = Quarantine::at(Some(folder.path().join("aside")));
        let before = before(&Ground::bare(&root), false);
        // The user's own git, a tool that asked, another command that was allowed to, and the command itself.
        git(&["checkout", "--", "."]);
        fs::write(root.join(".mcp.json"), "asked for").unwrap();
        aside.vouch(&root.join(".mcp.json"));
        let allowed = self::before(&Ground::bare(&root), false);
        fs::write(root.join("x.code-workspace"), "allowed").unwrap();
        allowed.vouch(&aside);
        fs::write(root.join(".envrc"), "evil").unwrap();
        let taken = |is_git_held| {
            let found = before.put_aside(&aside, is_git_held, &Places::default());
            found.aside.into_iter().map(|it| it.0).collect::<Vec<_>>()
        };
        assert_eq!(taken(true), [".envrc"]);
        for name in [".gitattributes", ".mcp.json", "x.code-workspace"] {
            assert!(root.join(name).exists(), "{name}");
        }
        // Where somebody else could have told git what to remember, it is not believed.
        assert_eq!(taken(false), [".gitattributes"]);
    }

    #[test]
    fn what_may_have_been_there_is_only_said() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("work");
        for at in 0..6 {
            fs::create_dir_all(root.join(format!("{at}"))).unwrap();
            fs::write(root.join(format!("{at}/.npmrc")), "mine").unwrap();
        }
        let aside = Quarantine::at(Some(folder.path().join("aside")));
        // The look before the command comes to the top and three of the folders, the one after it to all.
        let most = Most {
            folders: 4,
            ..Most::default()
        };
        let cut = Ground::limited(&root, most).look();
        let is_listed = |at: &usize| cut.has_folder(&root.join(at.to_string()));
        let (listed, unlisted): (Vec<usize>, Vec<usize>) = (0..6).partition(is_listed);
        assert_eq!((listed.len(), unlisted.len(), cut.limit().is_some()), (3, 3, true));
        let before = Before::new(&Ground::bare(&root), cut, false);
        let name = |at: usize, name: &str| format!("{at}/{name}");
        let planted = [
            name(listed[0], ".envrc"),
            name(unlisted[0], ".envrc"),
            ".mcp.json".to_owned(),
            "new/.vscode".to_owned(),
        ];
        for path in &planted {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), "evil").unwrap();
        }
        let found = before.put_aside(&aside, true, &Places::default());
        let moved: BTreeSet<_> = found.aside.into_iter().map(|it| it.0).collect();
        let certain = [&planted[0], &planted[2], &planted[3]];
        assert_eq!(moved, certain.into_iter().cloned().collect());
        let mut said: BTreeSet<_> = unlisted.iter().map(|it| name(*it, ".npmrc")).collect();
        said.insert(planted[1].clone());
        let told: BTreeSet<_> = found
            .told
            .into_iter()
            .map(|it| match it {
                Mended::Unsure { path } => path,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(told, said);
        for at in 0..6 {
            assert_eq!(fs::read_to_string(root.join(name(at, ".npmrc"))).unwrap(), "mine");
        }
    }

    #[test]
    fn what_builds_and_installations_make_is_left_and_said() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("work");
        let put = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put(".gitignore", "target/\nout/\n");
        put("target/x", "");
        put("src/a.rs", "");
        put("old/a.rs", "");
        let aside = Quarantine::at(Some(folder.path().join("aside")));
        let before = before(&Ground::bare(&root), false);
        let repository = |at: &str| {
            for path in ["HEAD", "config", "objects/x", "refs/x", "hooks/x.sample"] {
                put(&format!("{at}/.git/{path}"), "");
            }
        };
        for path in [
            "target/package/a/.github/workflows/ci.yml",
            "target/.npmrc",
            "out/deep/.envrc",
            "vendor/x/.cargo/config.toml",
            "third_party/y/.travis.yml",
            // These act wherever they are.
            "target/.cursor/mcp.json",
            "vendor/x/.git/config",
            "out/.sheafignore",
            // What a command lets git ignore is no build output where the sources are.
            "src/.npmrc",
            "src/.vscode/tasks.json",
            "fresh/.npmrc",
        ] {
            put(path, "x");
        }
        put("src/.gitignore", "*\n");
        put("fresh/.gitignore", "*\n");
        repository("clone");
        repository("target/dependency");
        repository("old");
        let found = before.put_aside(&aside, true, &Places::default());
        let mut moved: Vec<_> = found.aside.into_iter().map(|it| it.0).collect();
        moved.sort();
        assert_eq!(
            moved,
            [
                "fresh/.npmrc",
                "old/.git",
                "out/.sheafignore",
                "src/.npmrc",
                "src/.vscode",
                "target/.cursor",
                "vendor/x/.git"
            ]
        );
        let mut told: Vec<_> = found
            .told
            .into_iter()
            .map(|it| match it {
                Mended::Packaged { path } => path,
                Mended::Repository { path } => format!("repository {path}"),
                other => panic!("{other:?}"),
            })
            .collect();
        told.sort();
        assert_eq!(
            told,
            [
                "out/deep/.envrc",
                "repository clone",
                "repository target/dependency",
                "target/.npmrc",
                "target/package/a/.github/workflows",
                "third_party/y/.travis.yml",
                "vendor/x/.cargo/config.toml"
            ]
        );
    }

    #[test]
    fn what_stands_for_a_name_is_nobodys_file_until_it_is_filled() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("work");
        fs::create_dir_all(root.join("sub")).unwrap();
        let aside = Quarantine::at(Some(folder.path().join("aside")));
        let theirs = |name: &str| Places::make(vec![root.join(name)]);
        // One that another program holds comes, one goes and is made anew, one is filled, and one of ours is filled by others.
        let (filled, gone) = (theirs("sub/.git"), theirs("sub/.idea"));
        let ground = Ground::bare(&root);
        let look = ground.look();
        let ours = theirs(".vscode");
        let before = Before::new(&ground, look, false);
        let come = theirs("sub/.husky");
        drop(gone);
        for path in ["sub/.idea/run.xml", "sub/.git/config", ".vscode/settings.json"] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), "x").unwrap();
        }
        let found = before.put_aside(&aside, true, &ours);
        assert_eq!(found.told, []);
        let moved: BTreeSet<_> = found.aside.into_iter().map(|it| it.0).collect();
        assert_eq!(moved, ["sub/.git", "sub/.idea"].map(str::to_owned).into());
        assert!(root.join("sub/.husky").is_dir() && root.join(".vscode/settings.json").exists());
        drop((filled, come, ours));
    }

    #[test]
    fn what_decides_what_git_runs_is_put_aside_in_every_folder_that_git_may_write() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("work");
        let put = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for path in [
            ".git/HEAD",
            ".git/config",
            "sub/.git/HEAD",
            ".git/modules/a/b/HEAD",
            ".git/modules/a/b/config",
            ".git/worktrees/w/HEAD",
        ] {
            put(path, "");
        }
        let aside = Quarantine::at(Some(folder.path().join("aside")));
        let planted = [
            ".git/commondir",
            ".git/config.worktree",
            ".git/hooks",
            ".git/modules/a/b/hooks",
            ".git/modules/a/new/config",
            ".git/worktrees/evil/commondir",
            ".git/worktrees/w/config.worktree",
            "sub/.git/config",
        ];
        for git_write in [true, false] {
            let before = before(&Ground::bare(&root), git_write);
            for path in planted {
                put(path, "../../elsewhere\n");
            }
            // What git makes for a commit and for a worktree stays.
            for path in [".git/refs/heads/x", ".git/index", ".git/worktrees/new/gitdir"] {
                put(path, "x");
            }
            put(".git/worktrees/new/commondir", "../..\n");
            let found = before.put_aside(&aside, true, &Places::default());
            assert_eq!(found.told, []);
            let mut moved: Vec<_> = found.aside.into_iter().map(|it| it.0).collect();
            moved.sort();
            // Without the permission the kernel keeps all of it as it is.
            assert_eq!(moved, if git_write { planted.to_vec() } else { Vec::new() });
            assert!(root.join(".git/worktrees/new/commondir").exists() && root.join(".git/config").exists());
        }
    }

    fn git(folder: &Path, words: &str) -> bool {
        let mut command = std::process::Command::new("git");
        let name = ["user.name=a", "user.email=a@example.com"];
        command
            .args(name.iter().flat_map(|it| ["-c", it]))
            .args(words.split(' '))
            .current_dir(folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", folder)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_ALLOW_PROTOCOL", "file")
            .output()
            .unwrap()
            .status
            .success()
    }

    #[test]
    fn a_submodule_that_git_makes_because_the_user_said_so_stays_whole() {
        for is_wanted in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let base = folder.path().canonicalize().unwrap();
            let (root, other) = (base.join("work"), base.join("other"));
            for it in [&root, &other] {
                fs::create_dir(it).unwrap();
                assert!(git(it, "init -q"));
            }
            fs::create_dir_all(other.join(".github/workflows")).unwrap();
            fs::write(other.join(".github/workflows/ci.yml"), "x").unwrap();
            fs::write(other.join(".envrc"), "x").unwrap();
            assert!(git(&other, "add .") && git(&other, "commit -qm one"));
            assert!(git(&root, "commit -q --allow-empty -m one"));
            let aside = Quarantine::at(Some(base.join("aside")));
            let mut before = before(&Ground::bare(&root), true);
            before.makes_submodules = is_wanted;
            assert!(git(&root, &format!("submodule --quiet add {} lib", other.display())));
            // What is not as git makes it is taken, and so is what lies beside it.
            for (path, text) in [
                (".git/modules/evil/HEAD", "ref: refs/heads/main"),
                (".git/modules/evil/config", "[core]\n\tsshCommand = evil\n"),
                (".git/modules/hooked/HEAD", "ref: refs/heads/main"),
                (".git/modules/hooked/config", "[core]\n\tbare = false\n"),
                (".git/modules/hooked/hooks/post-checkout", "evil"),
                ("evil/.envrc", "evil"),
            ] {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            let found = before.put_aside(&aside, true, &Places::default());
            let moved: BTreeSet<_> = found.aside.into_iter().map(|it| it.0).collect();
            let always = [
                ".git/modules/evil/config",
                ".git/modules/hooked/config",
                ".git/modules/hooked/hooks",
                "evil/.envrc",
            ];
            assert!(always.iter().all(|it| moved.contains(*it)), "{moved:?}");
            let told = Mended::Repository { path: "lib".to_owned() };
            if is_wanted {
                assert_eq!(moved.len(), always.len(), "{moved:?}");
                assert_eq!(found.told, [told]);
                assert!(root.join("lib/.envrc").exists() && root.join("lib/.github/workflows/ci.yml").exists());
                assert!(git(&root.join("lib"), "diff --quiet HEAD") && git(&root, "commit -qm two"));
            } else {
                assert!(
                    moved.contains(".git/modules/lib/config") && moved.contains("lib/.envrc"),
                    "{moved:?}"
                );
                assert!(!found.told.contains(&told));
            }
        }
    }
}
