//! The walk over a folder that searches, listings, indexes and surveys share.
//!
//! It opens nothing but folders and, by way of `policy::ignore_files`, ignore files. It ends at a number of entries and when
//! nobody waits for it, whatever its caller looks at.

use std::{
    fmt,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ignore::{DirEntry, Error, WalkBuilder, WalkState};

use super::policy::{
    hidden::{Secrets, Verdict},
    ignore_files::Scope,
    protected_names as name,
};

/// Maximum number of entries that a walk looks at.
const MOST_ENTRIES: usize = 2_000_000;
/// Entries between two questions whether anybody waits.
const STRIDE: usize = 32;

/// The end of a walk that does not come to its own.
pub struct Bounds {
    most_entries: usize,
    is_over: Box<dyn Fn() -> bool + Send + Sync>,
}

impl fmt::Debug for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bounds")
            .field("most_entries", &self.most_entries)
            .finish_non_exhaustive()
    }
}

impl Bounds {
    /// Ends a walk when `is_over` says so, which threads ask often.
    pub fn until(is_over: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self {
            most_entries: MOST_ENTRIES,
            is_over: Box::new(is_over),
        }
    }

    /// Ends a walk after a time.
    pub fn within(time: Duration) -> Self {
        let start = Instant::now();
        Self::until(move || start.elapsed() > time)
    }

    /// The same with another number of entries.
    pub fn entries(mut self, most: usize) -> Self {
        self.most_entries = most;
        self
    }
}

/// A walk over a folder, not begun.
#[derive(Debug)]
pub struct Walk {
    folder: PathBuf,
    base: Option<PathBuf>,
    secrets: Secrets,
    /// Paths that are left out whatever they are called.
    without: Arc<[PathBuf]>,
    bounds: Arc<Bounds>,
    scope: Scope,
    depth: Option<usize>,
    is_cut: Arc<AtomicBool>,
}

impl Walk {
    /// Our ignore files count in `base` and below.
    pub(super) fn new(folder: PathBuf, base: Option<PathBuf>, secrets: Secrets, bounds: Bounds) -> Self {
        Self {
            folder,
            base,
            secrets,
            without: Arc::default(),
            bounds: Arc::new(bounds),
            scope: Scope { git: true, also: None },
            depth: None,
            is_cut: Arc::default(),
        }
    }

    /// Leaves out these paths, too.
    pub(super) fn without(mut self, paths: Vec<PathBuf>) -> Self {
        self.without = paths.into();
        self
    }

    /// Leaves out what ignore files of this name list, too.
    pub fn also_without(mut self, ignore_file: &'static str) -> Self {
        self.scope.also = Some(ignore_file);
        self
    }

    /// Goes down to this depth; 1 is the folder's own entries.
    pub fn down_to(mut self, depth: usize) -> Self {
        self.depth = Some(depth);
        self
    }

    /// True once a walk ended before it had seen everything.
    pub fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    /// Begins to walk on this thread.
    pub fn entries(&self) -> Entries {
        Entries {
            walk: self.builder(true).build(),
            is_cut: Arc::clone(&self.is_cut),
        }
    }

    /// Walks on several threads, each with a visitor of its own, and waits for their end.
    pub fn visit<'a>(&self, threads: usize, mut visitor: impl FnMut() -> Visitor<'a>) {
        self.builder(false).threads(threads).build_parallel().run(|| {
            let is_cut = Arc::clone(&self.is_cut);
            let mut visit = visitor();
            Box::new(move |entry| {
                if is_cut.load(Ordering::Relaxed) {
                    return WalkState::Quit;
                }
                visit(entry)
            })
        });
    }

    /// `lets_through`: after a cut the next entry is let through, so that who takes entries one by one can stop there; otherwise the
    /// crate goes on to the end of the folder that is open.
    fn builder(&self, lets_through: bool) -> WalkBuilder {
        let mut builder = WalkBuilder::new(&self.folder);
        let verdict = Verdict::new(self.base.clone(), &self.secrets, self.scope);
        let (bounds, is_cut) = (Arc::clone(&self.bounds), Arc::clone(&self.is_cut));
        let without = Arc::clone(&self.without);
        let count = AtomicUsize::new(0);
        // The crate itself opens no ignore file.
        builder
            .standard_filters(false)
            .follow_links(false)
            .max_depth(self.depth)
            .filter_entry(move |entry| {
                if !is_cut.load(Ordering::Relaxed) {
                    let seen = count.fetch_add(1, Ordering::Relaxed);
                    let is_over = seen >= bounds.most_entries || (seen.is_multiple_of(STRIDE) && (bounds.is_over)());
                    is_cut.fetch_or(is_over, Ordering::Relaxed);
                }
                if is_cut.load(Ordering::Relaxed) {
                    return lets_through;
                }
                let is_folder = entry.file_type().is_some_and(|it| it.is_dir());
                entry.depth() == 0
                    || !(name::is_git(entry.file_name())
                        || without.iter().any(|it| it == entry.path())
                        || verdict.is_left_out(entry.path(), is_folder)
                        || verdict.is_hidden(entry.path(), is_folder))
            });
        builder
    }
}

/// Sees an entry of a walk, and says whether to go on.
pub type Visitor<'a> = Box<dyn FnMut(Result<DirEntry, Error>) -> WalkState + Send + 'a>;

/// The entries of a walk on this thread. There are none after its bounds.
pub struct Entries {
    walk: ignore::Walk,
    is_cut: Arc<AtomicBool>,
}

impl Iterator for Entries {
    type Item = Result<DirEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = if self.is_cut.load(Ordering::Relaxed) {
            None
        } else {
            self.walk.next()
        };
        // The one at which it was cut does not count.
        entry.filter(|_| !self.is_cut.load(Ordering::Relaxed))
    }
}
