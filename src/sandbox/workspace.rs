//! The folders of a conversation: locating paths in them, reading and walking them, and running commands there.

use std::{
    ffi::OsString,
    fs, io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::fs::{Mode, OFlags};

#[cfg(target_os = "linux")]
use super::processes::BatchLine;
use super::{
    files::{Located, Place, Refused, open, refusal, shortened},
    policy::{
        self, hidden, protected_names as name,
        resolve::{LONGEST_PATH, resolve, written_path},
    },
    processes::{self, Commands, Foreground, NotRun, NotStarted, Overlay, Running, Spec, Tried},
    protect::{self, LeftBehind, LeftFile},
    walk::{Bounds, Walk},
};
use crate::{
    config::{Paths, Settings},
    os::file,
    protocol::Permission,
    shell::NamedPaths,
};

/// The folders that tools work in, and the commands that run there. One for each conversation.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    /// Added by the user.
    more: Vec<PathBuf>,
    commands: Commands,
    home: Option<PathBuf>,
    secrets: hidden::Secrets,
    /// The user lets what lies here act.
    acts: Arc<AtomicBool>,
}

/// The user's settings for the folders of a [`Workspace`].
#[derive(Clone, Debug, Default)]
pub struct Fence {
    /// Folders beside the root that tools may change.
    pub added: Vec<PathBuf>,
    /// Patterns as in a `.gitignore`, relative to the root or with `~/` in front, behind the built-in list of secrets:
    /// `!.env.example` shows what that list hides.
    pub hidden: Vec<String>,
    /// Subjects of the rules that forbid reading, as in `Read(notes/**)`: no command reads them either.
    pub denied: Vec<String>,
    /// Folder that `~` stands for. `None`: the user's home.
    pub home: Option<PathBuf>,
    /// Variables of ours that commands are told, beside the built-in list.
    pub passed: Vec<String>,
    /// Folder for logs of commands. `None`: they are stored with the temporary files, and removed with them.
    pub logs: Option<PathBuf>,
    /// Folder for protected files that a command created or changed. `None`: a temporary folder.
    pub aside: Option<PathBuf>,
    /// This program's folders, which are protected wherever they are, whether they exist or not.
    pub own: Vec<PathBuf>,
    /// Paths that a program of the settings which runs outside of the sandbox may be read from: absolute, with `~`, or relative to
    /// the root. Those that are files of the workspace are protected.
    pub deciding: Vec<String>,
    /// Files and folders that hold keys, and what was said in other conversations. They are hidden wherever they are.
    pub private: Vec<PathBuf>,
}

/// The folder of the state with the tokens of MCP servers.
const TOKENS: &str = "mcp-tokens";

impl Fence {
    /// Combines the settings with the folders added on the command line.
    pub fn configured(settings: &Settings, paths: Option<&Paths>, added: Vec<PathBuf>) -> Self {
        Self {
            added,
            hidden: settings.context.hidden.clone(),
            denied: unreadable(settings),
            home: None,
            passed: settings.sandbox.environment.clone(),
            logs: paths.map(|it| it.state.join("commands")),
            aside: paths.map(|it| it.state.join("aside")),
            own: paths.map_or_else(Vec::new, |it| {
                [&it.config, &it.data, &it.state, &it.cache].map(Clone::clone).to_vec()
            }),
            deciding: settings.privileged_commands().into_iter().flat_map(paths_of).collect(),
            private: paths
                .into_iter()
                .flat_map(|it| {
                    [
                        it.state.join("serve-token"),
                        it.state.join(TOKENS),
                        it.keys(),
                        it.sessions(),
                    ]
                })
                .chain(settings.key_files())
                .collect(),
        }
    }
}

/// The subjects of the rules that forbid reading.
fn unreadable(settings: &Settings) -> Vec<String> {
    let subject = |rule: &str| {
        let subject = rule.trim().strip_prefix("Read(")?.strip_suffix(')')?;
        Some(subject.trim().to_owned())
    };
    let rules = settings.approvals.deny.iter();
    rules.filter_map(|it| subject(&it.rule)).collect()
}

/// The paths that a command, or a word of one, names; its program too.
fn paths_of(command: &str) -> impl Iterator<Item = String> + use<> {
    let NamedPaths { programs, others } = NamedPaths::of(command);
    std::iter::once(command.to_owned()).chain(programs).chain(others)
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
        let roots = std::iter::once(&root).chain(&more);
        protect::sweep(roots.flat_map(|root| name::top_folders().map(|it| root.join(it))));
        let secrets = hidden::Secrets::with(&root, home.as_deref(), &fence.hidden, &fence.private, &fence.denied);
        let is_ours = |it: &&PathBuf| std::iter::once(&root).chain(&more).any(|root| it.starts_with(root));
        let deciding = fence.deciding.iter().filter_map(|it| {
            let at_home = it.strip_prefix("~/").and_then(|it| Some(home.as_ref()?.join(it)));
            at_home.unwrap_or_else(|| root.join(it)).canonicalize().ok()
        });
        let deciding = deciding.filter(|it| is_ours(&it) && it.is_file());
        let own: Vec<PathBuf> = absolute(fence.own).into_iter().chain(deciding).collect();
        // What is there can be held.
        for missing in own.iter().filter(is_ours).filter(|it| !it.exists()) {
            if let Err(error) = file::private_folder(missing) {
                tracing::warn!(%error, "a folder of this program cannot be made, so that it could be protected");
            }
        }
        let mut ground = policy::Ground {
            root: root.clone(),
            more: more.clone(),
            home: home.clone(),
            secrets: secrets.clone(),
            own,
            globals: absolute(policy::globals(home.as_deref())),
            recorded: Vec::new(),
            looks: policy::Looks::default(),
        };
        ground.record();
        Ok(Self {
            secrets,
            commands: Commands::new(ground, fence.passed, fence.logs, protect::Shared::new(fence.aside)),
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
            acts: Arc::clone(&self.acts),
        }
    }

    /// Ends what still runs of commands whose programs were killed here, and puts aside protected files that are new or changed
    /// since. Whoever calls it tells the user; once nobody wants to know (`is_wanted`) the rest is left to the next one. May take
    /// seconds if there was such a command.
    pub fn left_behind(&self, is_wanted: impl Fn() -> bool) -> LeftBehind {
        let (aside, ground) = (&self.commands.shared().aside, self.commands.ground());
        protect::left_behind(aside, ground, is_wanted, processes::end_marked)
    }

    /// Returns true if there may be something for [`Self::left_behind`] to find: commands run, or ran when their programs were
    /// killed, in any folder. Never takes long.
    pub fn has_lists(&self) -> bool {
        protect::has_lists(&self.commands.shared().aside)
    }

    /// Moves such a file back, because the user wants it. Fails if something is there by now.
    pub fn give_back(&self, left: &LeftFile) -> io::Result<()> {
        self.commands.shared().aside.give_back(left)
    }

    /// The rules that forbid reading are these from now on, for commands and searches of all conversations here.
    pub fn apply_rules(&self, settings: &Settings) {
        self.secrets.deny(&unreadable(settings));
    }

    /// From now on the workspace's own programs may be run unasked, as far as the sandbox lets them.
    pub fn let_act(&self) {
        self.acts.store(true, Ordering::Release);
    }

    /// The user trusts the workspace no more: from now on nothing of it runs that they did not ask for.
    pub fn stop_acting(&self) {
        self.acts.store(false, Ordering::Release);
    }

    /// Returns true if the user trusts the workspace. Until then nothing of it runs that the user did not ask for.
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

    /// Returns true if the sandbox keeps the hidden file or folder `path` from commands: in the workspace, in an added folder, and
    /// among the secrets of the home. Elsewhere a name is all that says it is a secret, and nothing is laid over it.
    pub fn is_masked(&self, path: &Path) -> bool {
        let roots = std::iter::once(&self.root).chain(&self.more);
        let is_among = |all: &[PathBuf]| all.iter().any(|it| path.starts_with(it));
        roots.into_iter().any(|it| path.starts_with(it))
            || is_among(&self.secrets.doors())
            || is_among(&self.secrets.at_home().0)
    }

    pub fn commands(&self) -> &Commands {
        &self.commands
    }

    /// Looks at the folders unless that was done before: links in them may hide or protect what has any other name. Tools that a
    /// model calls wait for it.
    pub async fn look_once(self: Arc<Self>) {
        let look = move || self.commands.ground().look_once();
        if let Err(error) = tokio::task::spawn_blocking(look).await {
            tracing::error!(%error, "the workspace could not be looked at");
        }
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

    /// Begins a command that only reads and sees these texts in the place of files, which it gives back when it is over.
    pub async fn begin_over(
        self: Arc<Self>,
        spec: Spec,
        files: Vec<(PathBuf, String)>,
    ) -> Result<(Foreground, Overlay), NotStarted> {
        let begun = move || {
            let overlay = self.commands.overlay(&files)?;
            let running = self.commands.start_over(spec, &overlay, |_| {})?;
            Ok((running.foreground(), overlay))
        };
        let begun = tokio::task::spawn_blocking(begun).await;
        begun.map_err(|error| NotStarted::Failed(io::Error::other(error)))?
    }

    /// Begins lines beside each other in one sandbox; see [`Commands::start_all`].
    #[cfg(target_os = "linux")]
    pub async fn begin_all(
        self: Arc<Self>,
        spec: Spec,
        lines: Vec<BatchLine>,
        output: impl FnMut(&[u8]) + Send + 'static,
    ) -> Result<Foreground, NotStarted> {
        let begun = move || self.commands.start_all(spec, lines, output).map(Running::foreground);
        let begun = tokio::task::spawn_blocking(begun).await;
        begun.map_err(|error| NotStarted::Failed(io::Error::other(error)))?
    }

    /// Runs anything as a command of a model's would run, in the terminal of whoever tries it out.
    pub fn try_out(&self, command: &[OsString], permissions: &[Permission], is_guarded: bool) -> Result<Tried, NotRun> {
        let commands = &self.commands;
        let (ground, shared) = (commands.ground(), commands.shared());
        processes::run_trial(ground, shared, commands.passed(), command, permissions, is_guarded)
    }

    /// Resolves a path that a model or a user wrote: absolute, relative to the root, with `~`, with `file://` or `@` in
    /// front. Empty is the root. The target need not exist.
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

    /// Resolves an absolute path, such as one of [`Self::walker`].
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
        let plain = file::lexical(path);
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
            || self
                .base(&resolved)
                .is_some_and(|it| policy::is_in_bare(&resolved, &it))
            || self.commands.ground().is_led_to(&resolved, false)
            || self.commands.ground().is_kept(&resolved)
            || self.commands.ground().is_kept(&plain)
            || self.commands.ground().is_named_by_git(&resolved);
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
    pub fn walker(&self, folder: &Located, bounds: Bounds) -> Result<Walk, Refused> {
        if folder.place == Place::Hidden {
            return Err(Refused::Hidden(folder.shown.clone()));
        }
        let base = self.base(&folder.path);
        let hidden = self.commands.ground().hidden_targets();
        Ok(Walk::new(folder.path.clone(), base, self.secrets.clone(), bounds).without(hidden))
    }

    /// Returns true if a secret's name, an ignore file or a link with such a name hides a resolved path.
    pub(super) fn is_hidden(&self, path: &Path) -> bool {
        let is_folder = fs::symlink_metadata(path).is_ok_and(|it| it.is_dir());
        self.secrets.cover(path, is_folder)
            || hidden::is_ignored(self.base(path), path, is_folder)
            || self.commands.ground().is_led_to(path, true)
    }

    /// The folder of the workspace that a path lies in: ignore files count up to there.
    pub(super) fn base(&self, path: &Path) -> Option<PathBuf> {
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
    pub(super) fn open_file(&self, file: &Located, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let base = self.base(&file.path).unwrap_or_else(|| PathBuf::from("/"));
        let inner = file.path.strip_prefix(&base).unwrap_or(&file.path);
        open::below(&base, inner, flags, mode)
    }
}

/// Paths as they are written and as they lead, without those that are relative.
fn absolute(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let both = paths.into_iter().filter(|it| it.is_absolute()).flat_map(|it| {
        let resolved = resolve(&it).ok().filter(|resolved| *resolved != it);
        [Some(it), resolved]
    });
    both.flatten().collect()
}

fn folder(path: &Path) -> io::Result<PathBuf> {
    let path = path.canonicalize()?;
    if path.is_dir() {
        Ok(path)
    } else {
        Err(io::ErrorKind::NotADirectory.into())
    }
}

#[cfg(test)]
pub(in crate::sandbox) mod tests;
