//! Commands that may change protected files, counted, so that a comparison knows when a change may be another command's.

use std::sync::{Arc, Mutex, PoisonError};

use crate::protocol::Permission;

/// The commands that may change what is protected: while one runs, another one's watch cannot tell whose a change is.
#[derive(Clone, Debug, Default)]
pub struct Loose(Arc<Mutex<Counts>>);

/// Counts of commands that may change protected files: started so far, and running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    git: Count,
    all: Count,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    begun: u64,
    running: u64,
}

/// Changes that other commands were allowed to make meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    Nobody,
    /// Git's folder, but for what runs or decides what runs.
    Git,
    Everything,
}

/// A command that may change what is protected, as long as it runs.
#[derive(Debug)]
pub struct Freed {
    loose: Loose,
    is_all: bool,
}

impl Loose {
    /// Returns the current counts.
    pub fn now(&self) -> Counts {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A command begins with these permissions.
    pub fn begin(&self, permissions: &[Permission], is_unheld: bool) -> Option<Freed> {
        let is_all = is_unheld || permissions.contains(&Permission::All);
        if !is_all && !permissions.contains(&Permission::GitWrite) {
            return None;
        }
        let freed = Freed {
            loose: self.clone(),
            is_all,
        };
        freed.count(|it| {
            it.begun += 1;
            it.running += 1;
        });
        Some(freed)
    }

    /// Returns the changes that others may have made since `before`.
    pub fn since(&self, before: Counts) -> Overlap {
        let now = self.now();
        let is_free = |before: Count, now: Count| before.running > 0 || now.begun != before.begun;
        if is_free(before.all, now.all) {
            Overlap::Everything
        } else if is_free(before.git, now.git) {
            Overlap::Git
        } else {
            Overlap::Nobody
        }
    }
}

impl Freed {
    /// Returns `before` as if this command had started by then, so that only others' changes count.
    pub fn without(&self, mut before: Counts) -> Counts {
        let own = if self.is_all { &mut before.all } else { &mut before.git };
        own.begun += 1;
        before
    }

    fn count(&self, change: impl FnOnce(&mut Count)) {
        let mut counts = self.loose.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(if self.is_all { &mut counts.all } else { &mut counts.git });
    }
}

impl Drop for Freed {
    fn drop(&mut self) {
        self.count(|it| it.running -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_ran_meanwhile_is_counted() {
        let loose = Loose::default();
        let start = loose.now();
        assert!(loose.begin(&[Permission::Network], false).is_none());
        assert_eq!(loose.since(start), Overlap::Nobody);
        let git = loose.begin(&[Permission::GitWrite], false);
        assert_eq!(loose.since(start), Overlap::Git);
        let during = loose.now();
        drop(git);
        assert_eq!((loose.since(start), loose.since(during)), (Overlap::Git, Overlap::Git));
        let after = loose.now();
        assert_eq!(loose.since(after), Overlap::Nobody);
        let own = loose.begin(&[Permission::GitWrite], false).expect("it is free");
        assert_eq!(loose.since(own.without(after)), Overlap::Nobody);
        drop(loose.begin(&[], true));
        assert_eq!(loose.since(own.without(after)), Overlap::Everything);
    }
}
