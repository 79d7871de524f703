//! Landlock: which files a command may use, held by the kernel beside the mounts, or alone where there are none.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, Scope,
};

use super::syscalls as system;
use crate::sandbox::policy::{Policy, Tier};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The newest that is made use of; of what the kernel does not know the rest is taken.
const NEWEST: ABI = ABI::V6;
/// From this one on it holds files, also their renaming and cutting. Less is no wall by itself.
const LEAST: u32 = 3;

/// Folders of the kernel's own files, with those that every program writes to.
const DEVICES: [&str; 2] = ["/dev", "/proc"];

/// Puts the rules into force, for good.
pub fn apply(policy: &Policy) -> Result<(), Error> {
    let is_second = policy.tier == Tier::Full && !policy.wraps;
    if !is_second && system::landlock_version().is_none_or(|it| it < LEAST) {
        return Err("not supported by this kernel, or only in part".into());
    }
    let created = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?;
    let created = if policy.network || policy.tier == Tier::Full {
        created
    } else {
        created.handle_access(AccessNet::from_all(NEWEST))?
    };
    let created = created.scope(Scope::from_all(NEWEST))?.create()?;
    let rules = match policy.tier {
        Tier::Full => beside_mounts(policy),
        Tier::Partial | Tier::None => alone(policy),
    };
    let created = rules.into_iter().try_fold(created, |it, rule| allow(it, &rule))?;
    let status = created.restrict_self()?;
    if status.ruleset == landlock::RulesetStatus::NotEnforced && !is_second {
        return Err("not enforced by this kernel".into());
    }
    Ok(())
}

/// Access to a path and all below it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    path: PathBuf,
    may_write: bool,
    /// The folder itself, not what is in it.
    is_listing: bool,
}

impl Rule {
    fn read(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            may_write: false,
            is_listing: false,
        }
    }

    fn write(path: impl Into<PathBuf>) -> Self {
        Self {
            may_write: true,
            ..Self::read(path)
        }
    }
}

fn allow(rules: RulesetCreated, rule: &Rule) -> Result<RulesetCreated, Error> {
    // What has gone meanwhile needs no rule.
    let Ok(path) = PathFd::new(&rule.path) else {
        return Ok(rules);
    };
    let is_folder = rule.path.is_dir();
    let mut access: BitFlags<AccessFs> = if rule.is_listing {
        AccessFs::ReadDir.into()
    } else if rule.may_write {
        AccessFs::from_all(NEWEST)
    } else {
        AccessFs::from_read(NEWEST)
    };
    if !is_folder {
        access &= AccessFs::from_file(NEWEST);
    }
    Ok(rules.add_rule(PathBeneath::new(path, access))?)
}

/// Mounts hold most of it: this is the second wall.
fn beside_mounts(policy: &Policy) -> Vec<Rule> {
    let temporary = ["/tmp", "/var/tmp"];
    let mut rules = vec![Rule::read("/")];
    // Bubblewrap leaves the switches of the machine to whoever is its user 0.
    let devices = DEVICES.into_iter().filter(|it| !policy.wraps || *it != "/proc");
    rules.extend(devices.chain(temporary).map(Rule::write));
    rules.extend(policy.writable.iter().chain(&policy.temporary).map(Rule::write));
    rules
}

/// Rights flow down and are never taken away below: what must be held is left out by naming all that lies beside it.
fn alone(policy: &Policy) -> Vec<Rule> {
    let mut rules = Vec::new();
    // What is hidden can be neither read nor run.
    beside(Path::new("/"), &policy.hidden, false, &mut rules);
    let kept: Vec<PathBuf> = policy.read_only.iter().chain(&policy.hidden).cloned().collect();
    for root in &policy.writable {
        beside(root, &kept, true, &mut rules);
    }
    rules.extend(policy.temporary.iter().map(Rule::write));
    let devices = ["null", "zero", "full", "random", "urandom", "tty", "shm"];
    rules.extend(devices.map(|it| Rule::write(Path::new("/dev").join(it))));
    rules
}

/// Rules for all of a folder but `without`. A link is never followed: what it leads to would be allowed.
fn beside(folder: &Path, without: &[PathBuf], may_write: bool, rules: &mut Vec<Rule>) {
    if without.iter().any(|it| folder.starts_with(it)) {
        return;
    }
    let rule = |path: &Path| Rule {
        path: path.to_owned(),
        may_write,
        is_listing: false,
    };
    if !without.iter().any(|it| it.starts_with(folder)) {
        rules.push(rule(folder));
        return;
    }
    rules.push(Rule {
        is_listing: true,
        ..rule(folder)
    });
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            beside(&entry.path(), without, may_write, rules);
        } else if !kind.is_symlink() && !without.contains(&entry.path()) {
            rules.push(rule(&entry.path()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_left_out_is_in_no_rule_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in [".git/hooks", "src/deep", "target"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        for path in ["a.txt", "src/.env", "src/b.rs", ".git/config"] {
            fs::write(root.join(path), "").unwrap();
        }
        std::os::unix::fs::symlink(root.join(".git"), root.join("link")).unwrap();
        let mut rules = Vec::new();
        beside(&root, &[root.join(".git"), root.join("src/.env")], true, &mut rules);
        let mut found: Vec<_> = rules
            .iter()
            .map(|it| (it.path.strip_prefix(&root).unwrap().to_str().unwrap(), it.is_listing))
            .collect();
        found.sort_unstable();
        assert_eq!(
            found,
            [
                ("", true),
                ("a.txt", false),
                ("src", true),
                ("src/b.rs", false),
                ("src/deep", false),
                ("target", false)
            ]
        );
    }
}
