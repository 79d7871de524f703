//! The only module that reads, writes or runs what a model or a repository asked for.
//!
//! A path that a model wrote becomes a [`Located`] first: resolved with its links, compared with the roots of the workspace
//! and with what is hidden or protected. Nothing else opens a file of the workspace. What a call may touch is judged
//! elsewhere, before; what is refused here is refused whatever the judgement was.
//!
//! A path is resolved once. Files are opened without following any link after that, so that a link that is put in place
//! in between leads nowhere.

mod appeared;
mod around;
mod aside;
mod boundary;
mod change;
mod checkpoint;
mod command;
mod environment;
mod ground;
mod guard;
mod hidden;
mod name;
mod open;
mod place;
mod printed;
mod process;
mod seen;
mod tracked;
mod trial;

use std::{
    ffi::OsString,
    fs, io,
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::fs::{Mode, OFlags};

use crate::{
    config::{Paths, Settings},
    protocol::Permission,
};

pub use around::Settled;
pub use boundary::{Layer, Layers, NOT_BUILT, force_off, helper, is_off, layers};
pub use change::{Cell, Change, Hunk};
pub use checkpoint::{Changed, Checkpoints, Clash, Done, Marked, Plan, Stand, Turning, Which};
pub use command::{Commands, Ended, Foreground, How, NotStarted, Running, Spec};
pub use guard::Mended;
pub use printed::Excerpt;
pub use seen::Seen;
pub use trial::{NotRun, Tried};

/// Longest path that is looked at: the kernel's own limit.
const LONGEST_PATH: usize = 4096;
/// Longest name of a file: the limit of the usual file systems.
const LONGEST_NAME: usize = 255;
/// So many links are followed on one path, as the kernel does.
const MOST_LINKS: usize = 40;

/// The folders that tools work in, and the commands that run there. One for each conversation.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    /// Added by the user.
    more: Vec<PathBuf>,
    commands: Commands,
    home: Option<PathBuf>,
    secrets: hidden::Secrets,
    /// Where links lead that have the name of something protected.
    linked: Vec<PathBuf>,
    /// The user lets what lies here act.
    acts: Arc<AtomicBool>,
}

/// What the user says about the folders of a [`Workspace`].
#[derive(Clone, Debug, Default)]
pub struct Fence {
    /// Folders beside the root that tools may change.
    pub added: Vec<PathBuf>,
    /// Patterns as in a `.gitignore`, relative to the root or with `~/` in front, behind the built-in list of secrets:
    /// `!.env.example` shows what that list hides.
    pub hidden: Vec<String>,
    /// What `~` stands for; none: the user's home.
    pub home: Option<PathBuf>,
    /// Variables of ours that commands are told, beside the built-in list.
    pub passed: Vec<String>,
    /// Where the logs of commands lie; none: with their temporary files, and gone with them.
    pub logs: Option<PathBuf>,
    /// Where protected files go that a command made or changed; none: a folder for temporary files.
    pub aside: Option<PathBuf>,
    /// Files of this program that are nobody else's.
    pub own: Vec<PathBuf>,
}

impl Fence {
    /// What the settings say, and the folders that were added on the command line.
    pub fn configured(settings: &Settings, paths: Option<&Paths>, added: Vec<PathBuf>) -> Self {
        Self {
            added,
            hidden: settings.context.hidden.clone(),
            home: None,
            passed: settings.sandbox.environment.clone(),
            logs: paths.map(|it| it.state.join("commands")),
            aside: paths.map(|it| it.state.join("aside")),
            own: paths.map(|it| it.state.join("serve-token")).into_iter().collect(),
        }
    }
}

/// How much of the boundary around commands exists on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// The kernel holds all of it.
    Full,
    /// It has known holes.
    Partial,
    /// Commands may do what the user may: each is asked for.
    None,
}

impl Tier {
    /// As a command finds it in `SHEAF_SANDBOX`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::None => "none",
        }
    }
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Absolute, links resolved as far as the path exists.
    pub path: PathBuf,
    /// For people and models: relative to the root with `/` between, else absolute. The root itself is `.`.
    pub shown: String,
    pub place: Place,
    /// Files of tools and of this very program: a change always asks.
    pub is_protected: bool,
    /// A folder stood there when the path was resolved.
    pub is_folder: bool,
}

/// On which side of the fence a path lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Inside,
    /// In a folder that the user added.
    Added,
    Outside,
    /// Secrets and what an ignore file hides: nobody reads or writes it.
    Hidden,
}

/// Why a path or a file is of no use, in words for the model.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("`{0}` is no path that can be used")]
    Path(String),
    #[error("`{0}` does not exist")]
    Missing(String),
    #[error("`{0}` lies outside the workspace")]
    Outside(String),
    #[error("`{0}` is hidden by an ignore file or is a secret")]
    Hidden(String),
    #[error("`{0}` belongs to git, and no tool writes there")]
    Git(String),
    #[error("`{0}` is a directory")]
    Directory(String),
    #[error("`{0}` is no regular file")]
    Special(String),
    #[error("`{path}` is {bytes} bytes, more than can be handled at once")]
    Huge { path: String, bytes: u64 },
    #[error("`{0}` exists already")]
    Exists(String),
    #[error("`{0}` has not been read in this conversation")]
    Unread(String),
    #[error("`{0}` has changed since it was read")]
    Stale(String),
    #[error("`{path}` could not be used")]
    Failed {
        path: String,
        #[source]
        source: io::Error,
    },
    /// Several files were to be changed, one failed, and this one is not as it was before.
    #[error("`{path}` could not be put back after another file had failed")]
    Torn {
        path: String,
        #[source]
        source: io::Error,
    },
}

impl Workspace {
    pub fn open(root: &Path) -> io::Result<Self> {
        Self::fenced(root, Fence::default())
    }

    /// With what the user configured. An added folder that does not exist is an error.
    pub fn fenced(root: &Path, fence: Fence) -> io::Result<Self> {
        let root = folder(root)?;
        let home = fence.home.or_else(std::env::home_dir).filter(|it| it.is_absolute());
        let home = home.map(|it| it.canonicalize().unwrap_or(it));
        let more = fence
            .added
            .iter()
            .map(|it| folder(it))
            .collect::<io::Result<Vec<_>>>()?;
        place::sweep(name::top_folders().map(|it| root.join(it)));
        let secrets = hidden::Secrets::new(&root, home.as_deref(), &fence.hidden);
        let ground = ground::Ground {
            root: root.clone(),
            more: more.clone(),
            home: home.clone(),
            secrets: secrets.clone(),
            own: fence.own,
        };
        Ok(Self {
            secrets,
            linked: ground::linked(&root),
            commands: Commands::new(ground, fence.passed, fence.logs, around::Shared::new(fence.aside)),
            root,
            more,
            home,
            acts: Arc::default(),
        })
    }

    /// The same folders for another conversation, which has commands of its own.
    pub fn fresh(&self) -> Self {
        Self {
            root: self.root.clone(),
            more: self.more.clone(),
            commands: self.commands.fresh(),
            home: self.home.clone(),
            secrets: self.secrets.clone(),
            linked: self.linked.clone(),
            acts: Arc::clone(&self.acts),
        }
    }

    /// From now on the workspace's own programs may be run unasked, as far as the sandbox lets them.
    pub fn let_act(&self) {
        self.acts.store(true, Ordering::Release);
    }

    /// Whether the user lets what lies here act: before that nothing of it is run that the user did not ask for.
    pub fn may_act(&self) -> bool {
        self.acts.load(Ordering::Acquire)
    }

    /// Canonical.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Canonical folders that the user added.
    pub fn added(&self) -> &[PathBuf] {
        &self.more
    }

    pub fn commands(&self) -> &Commands {
        &self.commands
    }

    /// Begins a command without holding up the thread that asks: what it may touch is looked up first.
    pub async fn begin(
        self: Arc<Self>,
        spec: Spec,
        output: impl FnMut(&[u8]) + Send + 'static,
    ) -> Result<Foreground, NotStarted> {
        // Whoever does not wait for it any more lets go of it, which ends it.
        let begun = move || self.commands.start(spec, output).map(Running::foreground);
        let begun = tokio::task::spawn_blocking(begun).await;
        begun.map_err(|error| NotStarted::Failed(io::Error::other(error)))?
    }

    /// Runs anything as a command of a model's would run, in the terminal of whoever tries it out.
    pub fn try_out(&self, command: &[OsString], permissions: &[Permission], is_guarded: bool) -> Result<Tried, NotRun> {
        let commands = &self.commands;
        let (ground, shared) = (commands.ground(), commands.shared());
        trial::run(ground, shared, commands.passed(), command, permissions, is_guarded)
    }

    /// Where a path leads that a model or a user wrote: absolute, relative to the root, with `~`, with `file://` or `@` in
    /// front. Empty is the root. What it leads to need not exist.
    pub fn locate(&self, written: &str) -> Result<Located, Refused> {
        self.locate_from(&self.root, written)
    }

    /// The same, relative to `folder`.
    pub fn locate_from(&self, folder: &Path, written: &str) -> Result<Located, Refused> {
        if written.contains('\0') || written.len() > LONGEST_PATH {
            return Err(Refused::Path(shortened(written)));
        }
        let mut path = written_path(written, self.home.as_deref());
        // Users write `@src/main.rs`, and a file may have such a name.
        if let Some(mentioned) = written.strip_prefix('@')
            && fs::symlink_metadata(folder.join(&path)).is_err()
        {
            path = written_path(mentioned, self.home.as_deref());
        }
        self.located(&folder.join(path))
    }

    /// Where an absolute path leads, such as one of [`Self::walker`].
    pub fn located(&self, path: &Path) -> Result<Located, Refused> {
        let said = || shortened(&path.to_string_lossy());
        let resolved = resolve(path).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidFilename => Refused::Path(said()),
            _ if error.raw_os_error() == Some(libc::ELOOP) => Refused::Path(said()),
            _ => Refused::Failed {
                path: said(),
                source: error,
            },
        })?;
        let shown = match resolved.strip_prefix(&self.root) {
            Ok(inner) if inner.as_os_str().is_empty() => ".".to_owned(),
            Ok(inner) => inner.to_string_lossy().into_owned(),
            Err(_) => resolved.to_string_lossy().into_owned(),
        };
        // The name that was written counts too: a link called `.env` is one, wherever it leads.
        let plain = lexical(path);
        let is_hidden = self.is_hidden(&resolved) || (plain != resolved && self.is_hidden(&plain));
        // What commands printed may be read and never be written.
        let is_own = self.commands.logs().is_some_and(|it| resolved.starts_with(it));
        let place = if is_hidden {
            Place::Hidden
        } else if resolved.starts_with(&self.root) {
            Place::Inside
        } else if is_own || self.base(&resolved).is_some() {
            Place::Added
        } else {
            Place::Outside
        };
        let is_protected = is_own
            || [&resolved, &plain]
                .into_iter()
                .any(|it| name::is_protected(self.inner(it)))
            || self.linked.iter().any(|it| resolved.starts_with(it));
        Ok(Located {
            is_folder: resolved.is_dir(),
            path: resolved,
            shown,
            place,
            is_protected,
        })
    }

    /// The bytes of a regular file of at most `limit` bytes. Never waits for a pipe or a device.
    pub fn read(&self, file: &Located, limit: u64) -> Result<Vec<u8>, Refused> {
        if file.place == Place::Hidden {
            return Err(Refused::Hidden(file.shown.clone()));
        }
        let found = self.open_file(file, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty());
        let found = found.map_err(|it| refusal(file, it))?;
        open::contents(found, file, limit).map(|it| it.0)
    }

    /// Walks a folder as searches see it: without what an ignore file of git or of ours names, without secrets and `.git`,
    /// following no links. Dot files are seen.
    pub fn walker(&self, folder: &Located) -> Result<ignore::WalkBuilder, Refused> {
        if folder.place == Place::Hidden {
            return Err(Refused::Hidden(folder.shown.clone()));
        }
        let mut walker = ignore::WalkBuilder::new(&folder.path);
        let verdict = hidden::Verdict::new(self.base(&folder.path), self.secrets.clone());
        walker
            .standard_filters(false)
            .parents(true)
            .git_ignore(true)
            .git_exclude(true)
            .git_global(true)
            .require_git(false)
            .follow_links(false)
            .filter_entry(move |entry| {
                entry.depth() == 0
                    || !(name::is_git(entry.file_name())
                        || verdict.is_hidden(entry.path(), entry.file_type().is_some_and(|it| it.is_dir())))
            });
        Ok(walker)
    }

    /// Whether a secret's name or an ignore file hides a resolved path.
    fn is_hidden(&self, path: &Path) -> bool {
        let is_folder = fs::symlink_metadata(path).is_ok_and(|it| it.is_dir());
        self.secrets.cover(path, is_folder) || hidden::is_ignored(self.base(path), path, is_folder)
    }

    /// The folder of the workspace that a path lies in: ignore files count up to there.
    fn base(&self, path: &Path) -> Option<PathBuf> {
        self.folders().find(|it| path.starts_with(it)).map(Path::to_owned)
    }

    /// The root, what the user added, and the folder for temporary files.
    fn folders(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.root.as_path())
            .chain(self.more.iter().map(PathBuf::as_path))
            .chain(self.commands.temporary())
    }

    /// The part of a path that says something about the file: below the folder it is in.
    fn inner<'a>(&self, path: &'a Path) -> &'a Path {
        self.folders().find_map(|it| path.strip_prefix(it).ok()).unwrap_or(path)
    }

    /// Opens what a path led to, following no link that has come since.
    fn open_file(&self, file: &Located, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let base = self.base(&file.path).unwrap_or_else(|| PathBuf::from("/"));
        let inner = file.path.strip_prefix(&base).unwrap_or(&file.path);
        open::below(&base, inner, flags, mode)
    }
}

fn folder(path: &Path) -> io::Result<PathBuf> {
    let path = path.canonicalize()?;
    if path.is_dir() {
        Ok(path)
    } else {
        Err(io::ErrorKind::NotADirectory.into())
    }
}

/// The refusal that says what an error of the system means for a file.
fn refusal(file: &Located, error: io::Error) -> Refused {
    let shown = file.shown.clone();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Refused::Missing(shown),
        io::ErrorKind::IsADirectory => Refused::Directory(shown),
        io::ErrorKind::InvalidFilename => Refused::Path(shown),
        // A link stands where none stood when the path was resolved.
        io::ErrorKind::CrossesDevices => Refused::Stale(shown),
        _ if error.raw_os_error() == Some(libc::ELOOP) => Refused::Stale(shown),
        // A pipe without a reader, a device without a driver, a file of the kernel that has nothing to say now.
        _ if matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV | libc::EAGAIN)) => Refused::Special(shown),
        _ => Refused::Failed {
            path: shown,
            source: error,
        },
    }
}

/// A text of a model's for a message to it.
fn shortened(text: &str) -> String {
    let mut short: String = text
        .chars()
        .take(200)
        .map(|it| if it == '\0' { '␀' } else { it })
        .collect();
    if short.len() < text.len() && text.chars().count() > 200 {
        short.push('…');
    }
    short
}

/// Takes off what is not part of a path.
fn written_path(written: &str, home: Option<&Path>) -> PathBuf {
    if let Some(rest) = written.strip_prefix("file://") {
        let url = url::Url::parse(written).ok();
        return url
            .and_then(|it| it.to_file_path().ok())
            .unwrap_or_else(|| PathBuf::from(rest));
    }
    match (written.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(written),
    }
}

/// Without `.` and `..`, and without asking the file system.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

/// Follows the links of an absolute path as far as it exists; the rest is taken by its words.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    enum Step {
        Root,
        Up,
        Down(OsString),
    }
    fn steps(path: &Path) -> impl DoubleEndedIterator<Item = Step> {
        path.components().filter_map(|it| match it {
            Component::Prefix(_) | Component::RootDir => Some(Step::Root),
            Component::CurDir => None,
            Component::ParentDir => Some(Step::Up),
            Component::Normal(name) => Some(Step::Down(name.to_owned())),
        })
    }
    let mut left: Vec<Step> = steps(path).rev().collect();
    let mut resolved = PathBuf::from("/");
    let mut links = 0;
    // How many of the last names do not exist.
    let mut absent = 0_usize;
    while let Some(step) = left.pop() {
        match step {
            Step::Root => {
                resolved = PathBuf::from("/");
                absent = 0;
            }
            Step::Up => {
                resolved.pop();
                absent = absent.saturating_sub(1);
            }
            Step::Down(name) => {
                if name.len() > LONGEST_NAME || resolved.as_os_str().len() > LONGEST_PATH {
                    return Err(io::ErrorKind::InvalidFilename.into());
                }
                resolved.push(name);
                if absent > 0 {
                    absent += 1;
                    continue;
                }
                match fs::symlink_metadata(&resolved) {
                    Ok(about) if about.is_symlink() => {
                        links += 1;
                        if links > MOST_LINKS {
                            return Err(rustix::io::Errno::LOOP.into());
                        }
                        let target = fs::read_link(&resolved)?;
                        resolved.pop();
                        left.extend(steps(&target).rev());
                    }
                    Ok(_) => {}
                    Err(error) => match error.kind() {
                        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => absent = 1,
                        _ => return Err(error),
                    },
                }
            }
        }
    }
    // On a disk that does not tell upper from lower case a name has more than one spelling; the system knows the right one.
    #[cfg(not(target_os = "linux"))]
    if absent == 0 {
        return resolved.canonicalize();
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests;
