//! The files that a command sees: everything to be read, little to be written, secrets covered.
//!
//! What is to be mounted where is planned first, from the top of the tree to its leaves, and done after.

use std::{
    collections::BTreeMap,
    fs, io,
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

use super::syscalls::{self as system, MOUNT_ATTR_NODEV, MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY};
use crate::sandbox::policy::Policy;

/// A failed step of building the tree, and its error.
pub struct Failed(pub String, pub io::Error);

/// A mount over a path. Of two for one path, the later variant wins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cover {
    /// An empty folder in memory.
    Empty,
    /// The few devices that a program needs.
    Devices,
    /// Itself, to be read, where what is above it is covered.
    Seen(PathBuf),
    /// Itself, to be written.
    Writable(PathBuf),
    /// Itself, so that it can be neither renamed nor removed: what is mounted below would go with it.
    Pinned,
    ReadOnly,
    Hidden,
}

/// Device files of a command.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Links that programs expect beside them.
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// Parts of `/proc` by which the whole machine is set, which belong to the user 0 whatever he may do else.
const CONTROLS: [&str; 5] = ["sys", "sysrq-trigger", "irq", "bus", "fs"];
/// Parts of `/proc` that tell of the whole machine what concerns no command.
const TELLTALES: [&str; 5] = ["kcore", "kmsg", "keys", "timer_list", "sched_debug"];

/// Paths of the files of `/proc` that are hidden.
pub fn telltales() -> impl Iterator<Item = PathBuf> {
    TELLTALES.iter().map(|it| Path::new("/proc").join(it))
}

/// Builds the tree. To be called in a mount namespace of one's own.
pub fn build(policy: &Policy) -> Result<(), Failed> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error| Failed(what, error)
    };
    let plan = plan(policy)?;
    system::make_private().map_err(failed("separating the mounts"))?;
    if let Some(over) = &policy.over {
        lay_over(policy, over).map_err(failed("laying files over the workspace"))?;
    }
    // What is to be written is taken before all becomes read-only, and before something covers it.
    let mut sources: BTreeMap<&Path, OwnedFd> = BTreeMap::new();
    for (path, cover) in &plan {
        if let Cover::Writable(source) | Cover::Seen(source) = cover {
            let taking = failed(&format!("taking {}", source.display()));
            let tree = system::copy_tree(source).map_err(taking)?;
            if matches!(cover, Cover::Seen(_)) {
                let closing = failed(&format!("making {} read-only", source.display()));
                system::restrict_tree(&tree, MOUNT_ATTR_RDONLY).map_err(closing)?;
            }
            sources.insert(path, tree);
        }
    }
    let size = text(policy.limits.memory_bytes);
    let hidden = plan.iter().filter(|it| it.1 == Cover::Hidden).map(|it| it.0.as_path());
    let telltales: Vec<PathBuf> = telltales().collect();
    let masks = Masks::new(hidden.chain(telltales.iter().map(PathBuf::as_path)))
        .map_err(failed("making what covers secrets"))?;
    system::restrict(c"/", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID).map_err(failed("making / read-only"))?;
    for (path, cover) in &plan {
        let doing = failed(&format!("mounting {}", path.display()));
        let done = match cover {
            Cover::Empty => memory(&size, c"1777").and_then(|it| system::hang(&it, path)),
            Cover::Devices => devices(path, &size),
            Cover::Writable(source) | Cover::Seen(source) => match sources.get(path.as_path()) {
                Some(tree) => make_place(path, source).and_then(|()| system::hang(tree, path)),
                None => Ok(()),
            },
            Cover::Pinned => system::copy_tree(path).and_then(|it| system::hang(&it, path)),
            Cover::ReadOnly => read_only(path),
            Cover::Hidden => masks.hide(path),
        };
        match done {
            // A walk has seen it, and it has gone since.
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_detail(cover) => {}
            other => other.map_err(doing)?,
        }
    }
    processes(&masks, &telltales).map_err(failed("mounting /proc"))
}

/// Lays the files of an overlay over the workspace, and lets the temporary folder keep nothing.
fn lay_over(policy: &Policy, over: &Path) -> io::Result<()> {
    let files = system::overlay(&[&over.join("files"), &policy.workspace], None)?;
    system::hang(&files, &policy.workspace)?;
    let Some(temporary) = &policy.temporary else {
        return Ok(());
    };
    let upper = (&*over.join("upper"), &*over.join("work"));
    system::hang(&system::overlay(&[temporary], Some(upper))?, temporary)
}

fn is_detail(cover: &Cover) -> bool {
    match cover {
        Cover::Pinned | Cover::ReadOnly | Cover::Hidden => true,
        Cover::Empty | Cover::Devices | Cover::Writable(_) | Cover::Seen(_) => false,
    }
}

/// From the top to the leaves, so that nothing is covered by what comes later. An error: a folder to be written would be hidden,
/// and with it all that is covered below.
pub fn plan(policy: &Policy) -> Result<Vec<(PathBuf, Cover)>, Failed> {
    let mut covers: BTreeMap<PathBuf, Cover> = BTreeMap::new();
    let mut put = |path: PathBuf, cover: Cover| {
        let place = covers.entry(path).or_insert_with(|| cover.clone());
        if *place < cover {
            *place = cover;
        }
    };
    for path in ["/tmp", "/var/tmp"].map(PathBuf::from) {
        // A link there leads to the other one.
        if fs::symlink_metadata(&path).is_ok_and(|it| it.is_dir()) {
            put(path, Cover::Empty);
        }
    }
    put("/dev".into(), Cover::Devices);
    if let Some(temporary) = &policy.temporary {
        put("/tmp".into(), Cover::Writable(temporary.clone()));
        put(temporary.clone(), Cover::Writable(temporary.clone()));
    }
    // The whole tree and the kernel's own parts of it are nobody's workspace.
    let is_possible =
        |it: &&PathBuf| it.parent().is_some() && !["/dev", "/proc", "/sys"].iter().any(|no| it.starts_with(no));
    let roots: Vec<&PathBuf> = policy.writable.iter().filter(is_possible).collect();
    for root in &roots {
        put((*root).clone(), Cover::Writable((*root).clone()));
    }
    let kept = policy.read_only.iter().map(|it| (it, Cover::ReadOnly));
    for (path, cover) in kept.chain(policy.hidden.iter().map(|it| (it, Cover::Hidden))) {
        let above = roots
            .iter()
            .filter(|it| path.starts_with(it))
            .max_by_key(|it| it.as_os_str().len());
        if above.is_none() && cover == Cover::ReadOnly {
            // Everything else is read-only anyhow.
            if ["/tmp", "/var/tmp"]
                .iter()
                .any(|it| path.starts_with(it) && path != Path::new(it))
            {
                put(path.clone(), Cover::Seen(path.clone()));
            }
            continue;
        }
        if let Some(root) = above {
            let between = path
                .ancestors()
                .skip(1)
                .take_while(|it| it.starts_with(root) && it != root);
            for folder in between {
                put(folder.to_owned(), Cover::Pinned);
            }
        }
        put(path.clone(), cover);
    }
    let is_hidden = |path: &Path| path.ancestors().any(|it| covers.get(it) == Some(&Cover::Hidden));
    let mut needed = roots.into_iter().chain([&policy.workspace]);
    if let Some(root) = needed.find(|it| is_hidden(it)) {
        let why = io::Error::other("what is hidden holds a folder that commands work in");
        return Err(Failed(format!("mounting {}", root.display()), why));
    }
    // Below what is hidden nothing can be reached, and nothing below what is read-only needs to be so again, unless a folder
    // between may be written.
    let is_needed = |path: &Path, cover: &Cover| {
        let above = || path.ancestors().skip(1).filter_map(|it| covers.get(it));
        let mut nearest = above().filter(|it| **it != Cover::Pinned);
        let is_again = matches!(cover, Cover::ReadOnly | Cover::Pinned) && nearest.next() == Some(&Cover::ReadOnly);
        !is_again && !above().any(|it| *it == Cover::Hidden)
    };
    let mut plan: Vec<_> = covers.iter().filter(|it| is_needed(it.0, it.1)).collect();
    plan.sort_by_key(|it| it.0.components().count());
    Ok(plan
        .into_iter()
        .map(|(path, cover)| (path.clone(), cover.clone()))
        .collect())
}

fn text(number: u64) -> std::ffi::CString {
    system::text(number.to_string()).expect("digits hold no NUL")
}

fn memory(size: &std::ffi::CStr, mode: &std::ffi::CStr) -> io::Result<OwnedFd> {
    let options = [(c"size", size), (c"mode", mode)];
    system::new_tree(c"tmpfs", &options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
}

/// The place where something is mounted may be below what has just been covered.
fn make_place(path: &Path, source: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok() {
        return Ok(());
    }
    if fs::metadata(source).is_ok_and(|it| it.is_file()) {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        return file(path, 0o600);
    }
    fs::create_dir_all(path)
}

fn file(path: &Path, mode: u32) -> io::Result<()> {
    let mut options = fs::File::options();
    options.write(true).create_new(true).mode(mode).open(path).map(drop)
}

fn read_only(path: &Path) -> io::Result<()> {
    let tree = system::copy_tree(path)?;
    system::restrict_tree(&tree, MOUNT_ATTR_RDONLY)?;
    system::hang(&tree, path)
}

/// A folder of devices in place of the machine's own, in which no disk and no terminal of others is.
fn devices(path: &Path, size: &std::ffi::CStr) -> io::Result<()> {
    let trees = DEVICES
        .iter()
        .map(|it| Ok((it, system::copy_tree(&path.join(it))?)))
        .collect::<io::Result<Vec<_>>>()?;
    system::hang(
        &system::new_tree(c"tmpfs", &[(c"mode", c"755")], MOUNT_ATTR_NOSUID)?,
        path,
    )?;
    for (name, tree) in trees {
        let place = path.join(name);
        file(&place, 0o600)?;
        system::hang(&tree, &place)?;
    }
    for (name, target) in LINKS {
        std::os::unix::fs::symlink(target, path.join(name))?;
    }
    fs::create_dir(path.join("pts"))?;
    let terminals = system::new_tree(
        c"devpts",
        &[(c"ptmxmode", c"0666"), (c"mode", c"620")],
        MOUNT_ATTR_NOSUID,
    )?;
    system::hang(&terminals, &path.join("pts"))?;
    fs::create_dir(path.join("shm"))?;
    system::hang(&memory(size, c"1777")?, &path.join("shm"))
}

/// The processes of this namespace only.
fn processes(masks: &Masks, telltales: &[PathBuf]) -> io::Result<()> {
    let tree = system::new_tree(c"proc", &[], MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)?;
    system::hang(&tree, Path::new("/proc"))?;
    // Inside of a container some are missing.
    let is_there = |it: &&PathBuf| fs::symlink_metadata(it).is_ok();
    telltales.iter().filter(is_there).try_for_each(|it| masks.hide(it))
}

/// The switches of the machine, to be called when ours are set.
pub fn lock_controls() -> Result<(), Failed> {
    for path in CONTROLS.map(|it| Path::new("/proc").join(it)) {
        if fs::symlink_metadata(&path).is_ok() {
            read_only(&path).map_err(|error| Failed(format!("making {} read-only", path.display()), error))?;
        }
    }
    Ok(())
}

/// Empty folders and files that nobody may open, one for each secret path.
struct Masks(BTreeMap<PathBuf, OwnedFd>);

/// Folder in which they are made, before it is covered itself.
const WORKSHOP: &str = "/dev";

impl Masks {
    fn new<'a>(paths: impl Iterator<Item = &'a Path>) -> io::Result<Self> {
        let workshop = memory(c"65536", c"700")?;
        // Kinds are asked before the folder is covered, in which one of them may lie.
        let kinds: Vec<_> = paths
            .filter_map(|it| Some((it, fs::symlink_metadata(it).ok()?)))
            // What a link leads to has been asked for by its own name.
            .filter(|it| !it.1.is_symlink())
            .map(|(path, about)| (path, about.is_dir()))
            .collect();
        system::hang(&workshop, Path::new(WORKSHOP))?;
        let (folder, covered) = (Path::new(WORKSHOP).join("folder"), Path::new(WORKSHOP).join("file"));
        fs::DirBuilder::new().mode(0o0).create(&folder)?;
        file(&covered, 0)?;
        let mut masks = BTreeMap::new();
        for (path, is_folder) in kinds {
            let tree = system::copy_tree(if is_folder { &folder } else { &covered })?;
            system::restrict_tree(&tree, MOUNT_ATTR_RDONLY)?;
            masks.insert(path.to_owned(), tree);
        }
        system::unmount(WORKSHOP)?;
        Ok(Self(masks))
    }

    fn hide(&self, path: &Path) -> io::Result<()> {
        self.0.get(path).map_or(Ok(()), |it| system::hang(it, path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::policy::{ResourceLimits, Tier};

    fn policy(writable: &[&str], read_only: &[&str], hidden: &[&str]) -> Policy {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect();
        Policy {
            tier: Tier::Full,
            wraps: false,
            workspace: "/w".into(),
            writable: paths(writable),
            read_only: paths(read_only),
            hidden: paths(hidden),
            temporary: None,
            over: None,
            network: false,
            git_write: false,
            limits: ResourceLimits::default(),
        }
    }

    fn planned(policy: &Policy) -> Vec<String> {
        let plan = plan(policy).ok().unwrap();
        let of_ours = plan
            .iter()
            .filter(|it| !["/tmp", "/var/tmp", "/dev"].contains(&it.0.to_str().unwrap()));
        of_ours
            .map(|(path, cover)| format!("{} {cover:?}", path.display()))
            .collect()
    }

    #[test]
    fn files_of_the_kernel_that_are_hidden_are_these() {
        // Not every machine has each of them, so that attacks alone would miss one.
        let hidden: Vec<PathBuf> = telltales().collect();
        for name in ["kcore", "kmsg", "keys", "timer_list", "sched_debug"] {
            assert!(hidden.contains(&Path::new("/proc").join(name)), "{name}");
        }
    }

    #[test]
    fn folders_on_the_way_to_what_is_protected_are_pinned() {
        assert_eq!(
            planned(&policy(&["/w"], &["/w/a/b/.git"], &["/w/a/c/.env", "/home/k/.ssh"])),
            [
                "/w Writable(\"/w\")",
                "/w/a Pinned",
                "/home/k/.ssh Hidden",
                "/w/a/b Pinned",
                "/w/a/c Pinned",
                "/w/a/b/.git ReadOnly",
                "/w/a/c/.env Hidden",
            ]
        );
    }

    #[test]
    fn what_is_stricter_wins_and_nothing_is_done_twice() {
        assert_eq!(
            planned(&policy(
                &["/w", "/w/sub", "/", "/dev/shm", "/proc/1"],
                &["/w/.git", "/w/.git/hooks", "/elsewhere/.git", "/w/x"],
                &["/w/x", "/w/x/y", "/w/.git/key"]
            )),
            [
                "/w Writable(\"/w\")",
                "/w/.git ReadOnly",
                "/w/sub Writable(\"/w/sub\")",
                "/w/x Hidden",
                "/w/.git/key Hidden",
            ]
        );
    }

    #[test]
    fn an_added_folder_below_what_is_read_only_keeps_its_own_protection() {
        assert_eq!(
            planned(&policy(
                &["/w", "/w/.vim/x"],
                &["/w/.vim", "/w/.vim/y/.git", "/w/.vim/x/a/.git"],
                &[]
            )),
            [
                "/w Writable(\"/w\")",
                "/w/.vim ReadOnly",
                "/w/.vim/x Writable(\"/w/.vim/x\")",
                "/w/.vim/x/a Pinned",
                "/w/.vim/x/a/.git ReadOnly",
            ]
        );
    }

    #[test]
    fn what_is_only_read_is_still_there_below_what_is_covered() {
        assert_eq!(planned(&policy(&[], &["/w"], &["/w/.env"])), ["/w/.env Hidden"]);
        assert_eq!(
            planned(&policy(&[], &["/tmp/w"], &["/tmp/w/.env"])),
            ["/tmp/w Seen(\"/tmp/w\")", "/tmp/w/.env Hidden"]
        );
    }

    #[test]
    fn what_would_hide_the_folders_of_a_command_is_an_error() {
        for policy in [
            policy(&["/w"], &["/w/.git"], &["/"]),
            policy(&["/w"], &[], &["/w"]),
            policy(&["/w", "/more/deep"], &[], &["/more"]),
            policy(&[], &["/w"], &["/"]),
        ] {
            assert!(plan(&policy).is_err(), "{policy:?}");
        }
        let many: Vec<String> = (0..20_000).map(|at| format!("/w/{}/{at}/.npmrc", at % 100)).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        // Each of them, the folder that it is in, and those above: found without comparing each with each.
        assert_eq!(planned(&policy(&["/w"], &many, &[])).len(), 1 + 100 + 20_000 * 2);
    }
}
