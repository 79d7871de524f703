//! The files of the workspace, for the layout and for whoever looks for one by name.
//!
//! The tree is walked on threads of their own, once at the start and again when somebody asks later. What is shown is
//! the last walk that ended: a picker never waits for a disk.

use std::{
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::{Duration, Instant, SystemTime},
};

use ignore::WalkState;
use nucleo_matcher::{
    Config, Matcher, Utf32Str,
    pattern::{CaseMatching, Normalization, Pattern},
};
use tokio::sync::watch;

use crate::{
    sandbox::{Bounds, Located, Walk, Workspace},
    tools::{Stop, UNINDEXED},
};

/// A larger tree is known in part.
const FILES: usize = 200_000;
/// As much of the times of files is asked for.
const TIMED: usize = 100_000;
/// A walk that takes longer shows what it has.
const PATIENCE: Duration = Duration::from_secs(20);
/// A list is good for this long, and for so many times as long as it took.
const FRESH: Duration = Duration::from_secs(3);
const FRESH_TIMES: u32 = 20;
/// Files changed within this time count as recent.
const RECENT: Duration = Duration::from_hours(24);
/// More files than this within an hour are no work of hands.
const CROWD: usize = 40;
/// Recent files that are remembered.
const RECENTS: usize = 200;
/// Longer patterns are cut: nobody types them, and each letter costs a look at every file.
const PATTERN_CHARS: usize = 128;

/// The files of a workspace at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// From the root, with `/` between, in byte order. What no ignore file names and no secret is.
    pub files: Arc<[Box<str>]>,
    /// There are more, or a folder could not be read.
    pub is_partial: bool,
    /// Files that were changed lately, the last one first: places in [`Self::files`].
    pub recent: Vec<usize>,
    /// Number of files in [`Self::recent`] that were changed within the last hour.
    pub within_hour: usize,
    /// The times of changes are known.
    pub is_dated: bool,
}

impl List {
    /// Files that somebody works on just now, the last one first. When very many were changed at once, nobody works on
    /// them: a branch was checked out.
    pub fn worked_on(&self) -> Vec<&str> {
        let just_now = self
            .recent
            .get(..self.within_hour.min(self.recent.len()))
            .unwrap_or_default();
        if just_now.len() > CROWD {
            return Vec::new();
        }
        just_now
            .iter()
            .filter_map(|it| self.files.get(*it))
            .map(|it| &**it)
            .collect()
    }
}

/// The list of a workspace, kept up.
#[derive(Clone, Debug)]
pub struct Files {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    workspace: Arc<Workspace>,
    list: watch::Sender<Option<Arc<List>>>,
    /// When the last walk ended, and how long the next one can wait.
    walked: Mutex<Option<(Instant, Duration)>>,
    is_walking: AtomicBool,
    stop: Stop,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.stop.set();
    }
}

impl Files {
    /// Begins to walk.
    pub fn of(workspace: Arc<Workspace>) -> Self {
        let files = Self {
            shared: Arc::new(Shared {
                workspace,
                list: watch::Sender::new(None),
                walked: Mutex::new(None),
                is_walking: AtomicBool::new(false),
                stop: Stop::default(),
            }),
        };
        files.refresh();
        files
    }

    /// The list as far as it is known; begins to walk again when it is old. Never waits.
    pub fn list(&self) -> Arc<List> {
        self.refresh();
        self.shared.list.borrow().clone().unwrap_or_default()
    }

    /// The first list, when it comes within `within`.
    pub async fn ready(&self, within: Duration) -> Option<Arc<List>> {
        let mut list = self.shared.list.subscribe();
        let first = list.wait_for(Option::is_some);
        tokio::time::timeout(within, first).await.ok()?.ok()?.clone()
    }

    /// The first list that knows what was changed lately, when it comes within `within`.
    pub async fn dated(&self, within: Duration) -> Option<Arc<List>> {
        let mut list = self.shared.list.subscribe();
        let dated = list.wait_for(|it| it.as_ref().is_some_and(|it| it.is_dated));
        tokio::time::timeout(within, dated).await.ok()?.ok()?.clone()
    }

    /// Paths that fit `pattern`, the best first; folders end in `/`. Takes milliseconds in a large tree: not for the
    /// thread that paints.
    pub fn rank(&self, pattern: &str, limit: usize) -> Vec<String> {
        rank(&self.list(), pattern, limit)
    }

    fn refresh(&self) {
        let walked = *self.shared.walked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = walked.is_some_and(|(at, good)| at.elapsed() < good);
        if is_fresh || self.shared.is_walking.swap(true, Ordering::AcqRel) {
            return;
        }
        let (workspace, stop) = (Arc::clone(&self.shared.workspace), self.shared.stop.clone());
        // The walk must not keep alive what nobody looks at any more.
        let shared = Arc::downgrade(&self.shared);
        let work = move || {
            let start = Instant::now();
            let mut list = walk(&workspace, &stop);
            let told = |list: &List| {
                if let Some(shared) = shared.upgrade() {
                    shared.list.send_replace(Some(Arc::new(list.clone())));
                }
            };
            told(&list);
            (list.recent, list.within_hour) = recent(&workspace, &list.files, SystemTime::now(), &stop);
            list.is_dated = true;
            told(&list);
            if let Some(shared) = shared.upgrade() {
                let good = FRESH.max(start.elapsed() * FRESH_TIMES);
                *shared.walked.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), good));
                shared.is_walking.store(false, Ordering::Release);
            }
        };
        if std::thread::Builder::new()
            .name("files".to_owned())
            .spawn(work)
            .is_err()
        {
            self.shared.list.send_replace(Some(Arc::new(List {
                is_partial: true,
                ..List::default()
            })));
        }
    }
}

/// All files of the workspace.
pub fn walk(workspace: &Workspace, stop: &Stop) -> List {
    let root = workspace.located(workspace.root());
    root.map_or_else(
        |_| List {
            is_partial: true,
            ..List::default()
        },
        |root| walk_below(workspace, &root, FILES, stop),
    )
}

/// All files of the workspace that may be indexed.
pub fn walk_indexed(workspace: &Workspace, stop: &Stop) -> List {
    let walker = |start| {
        let root = workspace.located(workspace.root()).ok()?;
        let walker = workspace.walker(&root, bounds(stop, start)).ok()?;
        Some(walker.also_without(UNINDEXED))
    };
    walk_with(workspace, walker, FILES, stop)
}

/// All files below a folder, by their paths from the root of the workspace; at most about `limit`.
pub fn walk_below(workspace: &Workspace, folder: &Located, limit: usize, stop: &Stop) -> List {
    let walker = |start| workspace.walker(folder, bounds(stop, start)).ok();
    walk_with(workspace, walker, limit, stop)
}

fn bounds(stop: &Stop, start: Instant) -> Bounds {
    let wanted = stop.clone();
    Bounds::until(move || wanted.is_set() || start.elapsed() > PATIENCE)
}

fn walk_with(workspace: &Workspace, walker: impl FnOnce(Instant) -> Option<Walk>, limit: usize, stop: &Stop) -> List {
    let start = Instant::now();
    let Some(walker) = walker(start) else {
        return List {
            is_partial: true,
            ..List::default()
        };
    };
    let threads = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8);
    let (sender, receiver) = mpsc::channel::<Vec<Box<str>>>();
    let (count, is_partial) = (AtomicUsize::new(0), AtomicBool::new(false));
    walker.visit(threads, || {
        let mut found = ThreadFiles {
            paths: Vec::new(),
            sender: sender.clone(),
        };
        let (count, is_partial, root) = (&count, &is_partial, workspace.root());
        Box::new(move |entry| {
            if stop.is_set() || start.elapsed() > PATIENCE {
                is_partial.store(true, Ordering::Relaxed);
                return WalkState::Quit;
            }
            let Ok(entry) = entry else {
                is_partial.store(true, Ordering::Relaxed);
                return WalkState::Continue;
            };
            let is_folder = entry.file_type().is_none_or(|it| it.is_dir());
            if is_folder {
                return WalkState::Continue;
            }
            if count.fetch_add(1, Ordering::Relaxed) >= limit {
                is_partial.store(true, Ordering::Relaxed);
                return WalkState::Quit;
            }
            if let Ok(path) = entry.path().strip_prefix(root) {
                found.paths.push(path.to_string_lossy().into());
            }
            WalkState::Continue
        })
    });
    drop(sender);
    let mut files: Vec<Box<str>> = receiver.into_iter().flatten().collect();
    files.sort_unstable();
    List {
        files: files.into(),
        is_partial: is_partial.into_inner() || walker.is_cut(),
        ..List::default()
    }
}

/// The paths that one thread of a walk found; handed over when the thread is done.
struct ThreadFiles {
    paths: Vec<Box<str>>,
    sender: mpsc::Sender<Vec<Box<str>>>,
}

impl Drop for ThreadFiles {
    fn drop(&mut self) {
        self.sender.send(std::mem::take(&mut self.paths)).ok();
    }
}

/// Which of the files were changed lately, the last one first, and how many within an hour.
fn recent(workspace: &Workspace, files: &[Box<str>], now: SystemTime, stop: &Stop) -> (Vec<usize>, usize) {
    let root = workspace.root();
    let mut found: Vec<(Duration, usize)> = Vec::new();
    for (at, path) in files.iter().enumerate().take(TIMED) {
        if stop.is_set() {
            break;
        }
        let changed = std::fs::symlink_metadata(root.join(Path::new(&**path))).and_then(|it| it.modified());
        let Ok(changed) = changed else { continue };
        let age = now.duration_since(changed).unwrap_or_default();
        if age < RECENT {
            found.push((age, at));
        }
    }
    found.sort_unstable();
    found.truncate(RECENTS);
    let within_hour = found.iter().filter(|it| it.0 < Duration::from_hours(1)).count();
    (found.into_iter().map(|it| it.1).collect(), within_hour)
}

/// Paths of `list` that fit `pattern`, the best first: letters in their order, as far as possible at the start of words.
///
/// Among equals what was changed lately, then what lies near the root, comes first. An empty pattern fits everything.
pub fn rank(list: &List, pattern: &str, limit: usize) -> Vec<String> {
    let cut = pattern
        .char_indices()
        .nth(PATTERN_CHARS)
        .map_or(pattern.len(), |it| it.0);
    let pattern = pattern.get(..cut).unwrap_or_default();
    let pattern = Pattern::parse(pattern.trim(), CaseMatching::Smart, Normalization::Smart);
    let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
    let mut letters = Vec::new();
    let folders = folders(&list.files);
    let mut age = vec![u32::MAX; list.files.len()];
    for (order, at) in list.recent.iter().enumerate() {
        if let Some(age) = age.get_mut(*at) {
            *age = u32::try_from(order).unwrap_or(u32::MAX);
        }
    }
    let files = list.files.iter().zip(age).map(|(path, age)| (&**path, age));
    let mut found: Vec<(PathRank<'_>, &str)> = Vec::new();
    for (path, age) in files.chain(folders.iter().map(|it| (*it, u32::MAX))) {
        let Some(score) = pattern.score(Utf32Str::new(path, &mut letters), &mut matcher) else {
            continue;
        };
        // What was worked on lately is worth about as much as a letter at the start of a word.
        let bonus = if age == u32::MAX { 0 } else { 8 };
        let place = PathRank {
            score: std::cmp::Reverse(score + bonus),
            age,
            depth: path.trim_end_matches('/').matches('/').count(),
            length: path.len(),
            path,
        };
        found.push((place, path));
    }
    let limit = limit.min(found.len());
    if limit > 0 && limit < found.len() {
        found.select_nth_unstable(limit - 1);
    }
    found.truncate(limit);
    found.sort_unstable();
    found.into_iter().map(|it| it.1.to_owned()).collect()
}

/// The sort key of a path, the strongest reason first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct PathRank<'a> {
    score: std::cmp::Reverse<u32>,
    age: u32,
    depth: usize,
    length: usize,
    path: &'a str,
}

/// The folders of these files, each once, with a `/` at the end.
fn folders(files: &[Box<str>]) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    // Files are sorted, so a folder that was seen is one of those above the file before.
    let mut before = "";
    for file in files {
        let folder = file.rfind('/').map_or("", |it| file.get(..=it).unwrap_or_default());
        if folder != before {
            for (at, _) in folder.match_indices('/') {
                let above = folder.get(..=at).unwrap_or_default();
                if !before.starts_with(above) {
                    found.push(above);
                }
            }
            before = folder;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn list(files: &str) -> List {
        let mut files: Vec<Box<str>> = files.split_whitespace().map(Into::into).collect();
        files.sort_unstable();
        List {
            files: files.into(),
            ..List::default()
        }
    }

    #[test]
    fn the_best_path_comes_first() {
        let files = "Cargo.toml src/main.rs src/agent/turn.rs src/agent/context/files.rs src/tui/files/turn_table.rs \
                     tests/it/main.rs README.md docs/Übersicht.md";
        let mut list = list(files);
        for (pattern, want) in [
            ("turn", "src/agent/turn.rs src/tui/files/turn_table.rs"),
            ("main", "src/main.rs tests/it/main.rs"),
            ("it main", "tests/it/main.rs"),
            (
                "agent/",
                "src/agent/ src/agent/turn.rs src/agent/context/ src/agent/context/files.rs",
            ),
            ("cargo", "Cargo.toml"),
            ("CARGO", ""),
            ("übersicht", "docs/Übersicht.md"),
            ("zzz", ""),
        ] {
            assert_eq!(rank(&list, pattern, 10).join(" "), want, "{pattern}");
        }
        assert_eq!(
            rank(&list, "", 3),
            ["src/", "docs/", "tests/"],
            "shallow first, then short"
        );
        list.recent = vec![
            list.files
                .iter()
                .position(|it| &**it == "tests/it/main.rs")
                .expect("a file"),
        ];
        assert_eq!(rank(&list, "main", 10).join(" "), "tests/it/main.rs src/main.rs");
        assert_eq!(
            rank(&list, "", 1),
            ["tests/it/main.rs"],
            "what was changed lately first"
        );
        assert_eq!(rank(&list, "main", 0), Vec::<String>::new());
        assert_eq!(list.worked_on(), Vec::<&str>::new());
        list.within_hour = 1;
        assert_eq!(list.worked_on(), ["tests/it/main.rs"]);
        list.recent = vec![0; 100];
        list.within_hour = 100;
        assert_eq!(list.worked_on(), Vec::<&str>::new(), "a branch was checked out");
    }

    #[test]
    fn folders_are_found_once() {
        for (files, want) in [
            ("a", ""),
            ("a/b a/c/d a/c/e a/f", "a/ a/c/"),
            ("a/b/c ab/c", "a/ a/b/ ab/"),
            ("x/y/z/w x/y/a", "x/ x/y/ x/y/z/"),
        ] {
            let list = list(files);
            let mut found = folders(&list.files);
            found.sort_unstable();
            assert_eq!(found.join(" "), want, "{files}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_path_is_found_by_its_own_name(files in prop::collection::btree_set("[a-c]{1,3}(/[a-c]{1,3}){0,3}", 1..20), at in any::<prop::sample::Index>()) {
            let list = List { files: files.iter().map(|it| it.as_str().into()).collect(), ..List::default() };
            let path = &list.files[at.index(list.files.len())];
            let found = rank(&list, path, 100);
            prop_assert!(found.iter().any(|it| **it == **path), "{path} in {found:?}");
            let few = rank(&list, path, 2);
            prop_assert_eq!(&few[..], &found[..few.len()], "a limit only cuts");
        }

        #[test]
        fn no_pattern_is_too_odd(pattern in "\\PC{0,200}", limit in 0_usize..5) {
            prop_assert!(rank(&list("a/b c/d.rs"), &pattern, limit).len() <= limit);
        }
    }

    #[test]
    fn a_walk_sees_what_tools_see() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        std::fs::create_dir_all(root.join("src/deep")).expect("folders");
        std::fs::create_dir_all(root.join(".git/objects")).expect("folders");
        std::fs::create_dir_all(root.join("target")).expect("folders");
        for (path, text) in [
            (".gitignore", "target/\n"),
            (".sheafignore", "private.txt\n"),
            (".env", "KEY=1"),
            ("private.txt", ""),
            ("target/out", ""),
            (".git/HEAD", ""),
            ("a.rs", ""),
            ("src/deep/b.rs", ""),
            ("src/.hidden", ""),
            ("odd\nname\u{1b}", ""),
        ] {
            std::fs::write(root.join(path), text).expect("a file");
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(".", root.join("src/loop")).expect("a link");
        let workspace = Arc::new(Workspace::open(root).expect("a workspace"));
        let list = walk(&workspace, &Stop::default());
        let mut want = vec![
            ".gitignore",
            ".sheafignore",
            "a.rs",
            "odd\nname\u{1b}",
            "src/.hidden",
            "src/deep/b.rs",
            "src/loop",
        ];
        want.sort_unstable();
        assert_eq!(list.files.iter().map(|it| &**it).collect::<Vec<_>>(), want);
        assert!(!list.is_partial);
        let (recent, within_hour) = recent(&workspace, &list.files, SystemTime::now(), &Stop::default());
        assert_eq!((recent.len(), within_hour), (7, 7), "all were made just now");
        let src = workspace.locate("src").expect("a folder");
        assert_eq!(walk_below(&workspace, &src, 100, &Stop::default()).files.len(), 3);
        let few = walk_below(&workspace, &src, 1, &Stop::default());
        assert!(few.is_partial && few.files.len() == 1);
        let stopped = Stop::default();
        stopped.set();
        assert!(walk(&workspace, &stopped).is_partial);
    }

    #[tokio::test]
    async fn a_list_is_ready_later_and_kept_up() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a"), "").expect("a file");
        let files = Files::of(Arc::new(Workspace::open(folder.path()).expect("a workspace")));
        let list = files
            .ready(Duration::from_secs(20))
            .await
            .expect("a walk of one file ends");
        assert_eq!(*list.files, ["a".into()]);
        assert_eq!(files.rank("A", 5), Vec::<String>::new());
        assert_eq!(files.rank("a", 5), ["a"]);
    }
}
