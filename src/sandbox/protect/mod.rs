//! Protection of files before and after a command, beside the kernel's.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

mod created;
mod overlap;
mod placeholder;
mod quarantine;
mod record;
mod unsaid;
mod write_guard;

pub use placeholder::{SIGN as PLACE_SIGN, is_place, sweep};
pub use quarantine::Quarantine;
pub use record::{LeftBehind, LeftFile, LeftNote, has_lists, left_behind};
pub use unsaid::{said, take as take_unsaid};
pub use write_guard::Mended;

use created::Before;
use overlap::{Counts, Freed, Loose, Overlap};
use placeholder::Places;
use record::Record;
use write_guard::Watch;

use crate::{
    protocol::Permission,
    sandbox::policy::{Fixed, GIT_FIXED, Ground, Look, Policy, Tier, protected_names as name},
};

/// State shared by the commands of a workspace, including those of other conversations.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    pub aside: Quarantine,
    loose: Loose,
    /// Result of the last watch: most files are not read again.
    last: Arc<Mutex<Option<Arc<Watch>>>>,
}

/// Options of a command's protection, beside its policy.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    pub tier: Tier,
    pub wraps: bool,
    pub permissions: &'a [Permission],
    pub only_reads: bool,
    pub temporary: &'a Path,
    /// The whole workspace may be written, and is compared afterwards; it counts where the sandbox is partial.
    pub is_guarded: bool,
    /// It lives on beside the user, who changes files meanwhile: comparing them afterwards would be too late.
    pub is_background: bool,
    /// The user approved a line by which git makes submodules, and that runs nothing else.
    pub makes_submodules: bool,
    /// The variable by which its processes are known.
    pub mark: &'a str,
}

/// Protection of one command, from before its start until after its end.
#[derive(Debug)]
pub struct Around {
    shared: Shared,
    /// Held open while it runs.
    places: Places,
    /// The top of the workspace before it.
    before: Option<Before>,
    watch: Option<Arc<Watch>>,
    /// The links that bubblewrap cannot hold.
    links: Option<Watch>,
    /// Number of other commands that could change protected files when it started.
    counts: Counts,
    git_write: bool,
    /// The command may write the whole workspace.
    is_guarded: bool,
    /// True if the command may change everything.
    is_all: bool,
    freed: Option<Freed>,
    /// The same list on the disk, should this program be killed.
    record: Option<Record>,
}

/// Protected files that were found changed after a command, and their handling.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Protected files that it made where there were none, and where they are now.
    pub aside: Vec<(String, PathBuf)>,
    /// Protected files that it changed although it may not.
    pub mended: Vec<Mended>,
    /// It failed at a gap of the partial sandbox, which is this.
    pub gaps: Option<&'static str>,
}

/// Maximum number of findings that are listed one by one.
const MOST_TOLD: usize = 12;

impl Settled {
    /// Sentences without their ends, for people and models.
    pub fn told(&self) -> Vec<String> {
        let aside = self.aside.iter().map(|(name, path)| {
            format!(
                "the command made `{name}`, which runs or decides what runs: it was put aside as {}",
                path.display()
            )
        });
        let gaps = self.gaps.map(|it| {
            format!(
                "the sandbox is partial ({it}): commands cannot create or replace files at the top of the workspace; \
                 /sandbox guard, on the screen, lets them"
            )
        });
        let mut told: Vec<_> = aside
            .chain(self.mended.iter().map(ToString::to_string))
            .chain(gaps)
            .collect();
        if let Some(more @ 1..) = told.len().checked_sub(MOST_TOLD) {
            told.truncate(MOST_TOLD);
            told.push(format!("and so with {more} more"));
        }
        told
    }

    /// Returns true if the command did something that only the kernel could have prevented: later commands should ask.
    pub fn is_breach(&self) -> bool {
        let is_done = |it: &Mended| matches!(it, Mended::Back { .. } | Mended::Lost { .. });
        self.mended.iter().any(is_done)
    }
}

impl Around {
    /// The policy for a command that something holds.
    pub fn held(ground: &Ground, shared: &Shared, wish: &Wish<'_>) -> (Self, Policy) {
        let git_write = wish.permissions.contains(&Permission::GitWrite);
        let counts = shared.loose.now();
        let freed = shared.loose.begin(wish.permissions, false);
        let look = ground.look();
        let mut policy = Policy {
            wraps: wish.wraps,
            ..ground.policy(
                &look,
                wish.tier,
                wish.permissions,
                wish.only_reads,
                Some(wish.temporary),
            )
        };
        let mut around = Self {
            shared: shared.clone(),
            places: Places::default(),
            before: None,
            watch: None,
            links: None,
            counts,
            git_write,
            is_guarded: false,
            is_all: false,
            freed,
            record: None,
        };
        if wish.only_reads {
            return (around, policy);
        }
        if wish.wraps {
            around.links = look_at_links(ground, &look, &mut policy, wish.is_background);
        }
        // Where names are held by their text there is nothing to compare.
        let can_watch = wish.tier == Tier::Partial && !wish.is_background && cfg!(target_os = "linux");
        if wish.is_guarded
            && can_watch
            && let Some(watch) = shared.look(ground, &mut policy)
        {
            around.watch = Some(watch);
            around.is_guarded = true;
            around.note(ground, look, wish);
            return (around, policy);
        }
        if git_write && can_watch {
            around.watch = look_at_git(ground, &look, &mut policy);
        }
        // An empty folder in git's would close it.
        let holds_git = git_write && around.watch.is_none();
        around.places = Places::make(ground.meaningful(&look, holds_git));
        policy.read_only.extend(around.places.paths().map(Path::to_owned));
        around.note(ground, look, wish);
        (around, policy)
    }

    /// Notes what is there before the command, also on the disk.
    fn note(&mut self, ground: &Ground, look: Arc<Look>, wish: &Wish<'_>) {
        let mut before = Before::new(ground, look, self.git_write);
        before.makes_submodules = self.git_write && wish.makes_submodules;
        let watch = self.watch.as_deref().or(self.links.as_ref());
        self.record = Record::write(&self.shared.aside, &before, watch, wish.mark);
        self.before = Some(before);
    }

    /// For a command that nothing holds, because the user wanted it so.
    pub fn unheld(ground: &Ground, shared: &Shared, permissions: &[Permission]) -> Self {
        Self {
            counts: shared.loose.now(),
            freed: shared.loose.begin(permissions, true),
            shared: shared.clone(),
            places: Places::default(),
            before: Some(Before::new(ground, ground.look(), true)),
            watch: None,
            links: None,
            git_write: true,
            is_guarded: false,
            is_all: true,
            record: None,
        }
    }

    pub fn is_guarded(&self) -> bool {
        self.is_guarded
    }

    /// The name of its list on the disk, by which the sentinel notes its end; empty without one.
    pub fn record(&self) -> &str {
        self.record.as_ref().map_or("", Record::id)
    }

    /// The command has ended, and all that it started. Only the first call does anything.
    pub fn settle(&mut self) -> Settled {
        let mut settled = Settled::default();
        let aside = &self.shared.aside;
        let overlap = self.overlap();
        let is_watched = self.watch.is_some();
        let may_differ = |path: &Path| match overlap {
            Overlap::Nobody => false,
            Overlap::Git => is_state_of_git(path),
            Overlap::Everything => true,
        };
        if let Some(watch) = self.watch.take() {
            settled.mended = watch.put_back(aside, may_differ);
        }
        if let Some(links) = self.links.take() {
            settled.mended.extend(links.put_back(aside, may_differ));
        }
        if let Some(before) = self.before.take() {
            if self.is_all {
                before.vouch(aside);
            } else if overlap == Overlap::Everything {
                // Whose they are nobody can tell.
                let left = before.unwanted(aside, &self.places);
                settled.mended.extend(left.map(|it| Mended::Left { path: it }));
            } else {
                let found = before.put_aside(aside, overlap == Overlap::Nobody && !is_watched, &self.places);
                settled.aside = found.aside;
                settled.mended.extend(found.told);
                if self.git_write {
                    before.vouch(aside);
                }
            }
        }
        self.places.leave();
        self.freed = None;
        self.record = None;
        // Whoever waits for it may be gone.
        unsaid::note(&settled);
        settled
    }

    /// Returns the changes that others were allowed to make since this command started.
    fn overlap(&self) -> Overlap {
        // Its own permission is no other's.
        self.shared.loose.since(match &self.freed {
            Some(freed) => freed.without(self.counts),
            None => self.counts,
        })
    }
}

impl Drop for Around {
    fn drop(&mut self) {
        self.settle();
    }
}

impl Shared {
    pub fn new(aside: Option<PathBuf>) -> Self {
        Self {
            aside: Quarantine::at(aside),
            ..Self::default()
        }
    }

    /// Looks at what the policy would hold, which the command may then write; `None` where it is too much.
    fn look(&self, ground: &Ground, policy: &mut Policy) -> Option<Arc<Watch>> {
        // This program writes there meanwhile, and must not be taken for the command.
        if ground.holds_own() {
            return None;
        }
        let roots: Vec<PathBuf> = ground.roots().cloned().collect();
        let is_inside = |it: &PathBuf| roots.iter().any(|root| it.starts_with(root) && it != root);
        let watched = policy.read_only.iter().filter(|it| is_inside(it)).cloned().collect();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(watch) = Watch::look(roots.clone(), watched, last.as_deref()) else {
            tracing::warn!("too many protected files to compare: new top-level files are blocked");
            return None;
        };
        let watch = Arc::new(watch);
        *last = Some(Arc::clone(&watch));
        policy.read_only.retain(|it| !is_inside(it));
        Some(watch)
    }
}

/// Bubblewrap follows links and cannot hold them, so they are looked at and put back afterwards. Those with the name of a secret are
/// common, and their targets are hidden all the same. What stays among what is held is refused when the command starts: for a
/// command in the background, which is looked at too late, and for more than can be looked at.
fn look_at_links(ground: &Ground, look: &Look, policy: &mut Policy, is_background: bool) -> Option<Watch> {
    let is_hidden_link = |it: &PathBuf| look.links.iter().any(|link| link.is_hidden && link.links.contains(it));
    policy.read_only.retain(|it| !is_hidden_link(it));
    let is_link = |it: &PathBuf| std::fs::symlink_metadata(it).is_ok_and(|it| it.is_symlink());
    let links: Vec<PathBuf> = policy.read_only.iter().filter(|it| is_link(it)).cloned().collect();
    if links.is_empty() || is_background {
        return None;
    }
    let roots = ground.roots().chain(&look.git_elsewhere).cloned().collect();
    let watch = Watch::look(roots, links, None).ok()?;
    policy.read_only.retain(|it| !is_link(it));
    Some(watch)
}

/// Opens git's folder to a command that may write it, where the kernel holds a folder whole or not at all: what runs or
/// decides what runs in it is looked at, and put back afterwards. `None` where it is too much: then git's folder stays as it is.
fn look_at_git(ground: &Ground, look: &Look, policy: &mut Policy) -> Option<Arc<Watch>> {
    let opened = ground.opened(look);
    let mut fixed = Vec::new();
    for folder in &opened {
        let Fixed { paths, is_partial } = Fixed::of(folder);
        if is_partial {
            tracing::warn!("too many submodules to compare: git's folder stays read-only");
            return None;
        }
        fixed.extend(paths);
    }
    // What the configuration and links name there counts like the rest of it.
    let is_in_git = |it: &&PathBuf| opened.iter().any(|folder| it.starts_with(folder) && *it != folder);
    let links = look.links.iter().flat_map(|it| &it.links);
    let named = look.named.iter().chain(links).filter(is_in_git);
    fixed.extend(named.cloned());
    fixed.sort();
    fixed.dedup();
    if fixed.iter().any(|it| ground.own.iter().any(|own| own.starts_with(it))) {
        return None;
    }
    let outside = opened.into_iter().filter(|it| !ground.is_inside(it));
    let roots = ground.roots().cloned().chain(outside).collect();
    let Ok(watch) = Watch::look(roots, fixed.clone(), None) else {
        tracing::warn!("too many hooks to compare: git's folder stays read-only");
        return None;
    };
    policy.read_only.retain(|it| !fixed.contains(it));
    Some(Arc::new(watch))
}

/// Returns true if a commit changes the path, and it neither runs nor decides what runs.
fn is_state_of_git(path: &Path) -> bool {
    let parts = name::parts(path);
    let inner = parts.iter().skip_while(|it| *it != ".git").skip(1);
    name::leads_to_git(path) && !inner.into_iter().any(|it| GIT_FIXED.contains(&it.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_commit_changes_is_told_from_what_plants_code() {
        for (path, expected) in [
            ("/w/.git/HEAD", true),
            ("/w/.git/refs/heads/x", true),
            ("/w/.git/hooks/pre-commit", false),
            ("/w/.git/config", false),
            ("/w/.git/modules/a/hooks/x", false),
            ("/w/.git", true),
            ("/w/.vscode/tasks.json", false),
            ("/w/config", false),
        ] {
            assert_eq!(is_state_of_git(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn in_gits_folder_names_are_held_for_a_command_that_may_write_there_and_for_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("work");
        let git = root.join(".git");
        for name in ["objects", "refs/heads"] {
            std::fs::create_dir_all(git.join(name)).unwrap();
        }
        std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::write(git.join("config"), "[core]\n\tbare = false\n").unwrap();
        let ground = Ground::bare(&root);
        let shared = Shared::new(Some(folder.path().join("aside")));
        let temporary = folder.path().join("temporary");
        let count = || std::fs::read_dir(&git).unwrap().count();
        let before = count();
        for (permissions, is_held) in [(&[][..], false), (&[Permission::GitWrite], true)] {
            let wish = Wish {
                tier: Tier::Full,
                wraps: false,
                permissions,
                only_reads: false,
                temporary: &temporary,
                is_guarded: false,
                is_background: false,
                makes_submodules: false,
                mark: "test.1",
            };
            let (around, _) = Around::held(&ground, &shared, &wish);
            assert_eq!(count() > before, is_held, "{permissions:?}");
            drop(around);
            assert_eq!(count(), before, "{permissions:?}");
        }
    }

    #[test]
    fn links_that_bubblewrap_cannot_hold_are_put_back_and_that_is_said_to_somebody() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("work");
        std::fs::create_dir_all(root.join("shared/hooks")).unwrap();
        std::fs::create_dir(root.join("evil")).unwrap();
        std::os::unix::fs::symlink("shared/hooks", root.join(".husky")).unwrap();
        let ground = Ground::bare(&root);
        let shared = Shared::new(Some(folder.path().join("aside")));
        let temporary = folder.path().join("temporary");
        let wish = |is_background| Wish {
            tier: Tier::Full,
            wraps: true,
            permissions: &[],
            only_reads: false,
            temporary: &temporary,
            is_guarded: false,
            is_background,
            makes_submodules: false,
            mark: "test.1",
        };
        let link = root.join(".husky");
        // Too late to be looked at: it is refused when it starts.
        let (around, policy) = Around::held(&ground, &shared, &wish(true));
        assert!(policy.read_only.contains(&link));
        drop(around);
        let (around, policy) = Around::held(&ground, &shared, &wish(false));
        assert!(!policy.read_only.contains(&link) && policy.read_only.contains(&root.join("shared/hooks")));
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("evil", &link).unwrap();
        // Nobody waits for the result: the person quits.
        drop(around);
        assert_eq!(std::fs::read_link(&link).unwrap(), Path::new("shared/hooks"));
        let is_told = |told: &[String]| told.iter().any(|it| it.contains("changed `.husky`"));
        assert!(is_told(&take_unsaid()));
        assert!(!is_told(&take_unsaid()));
    }
}
