//! Checks sheaf's folders: writable, private, with enough room.

use std::path::{Path, PathBuf};

use super::{Check, Topic, shown};
use crate::{config::Paths, text::figure};

/// Free bytes below which a warning is shown, since sessions grow.
const LITTLE_BYTES: u64 = 200_000_000;

/// Free bytes below which nothing can be stored.
const NOTHING_BYTES: u64 = 1_000_000;

/// Facts about a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FolderFacts {
    path: PathBuf,
    kind: FolderKind,
    /// True if the folder, or the nearest existing one above it, is writable.
    is_writable: bool,
    free_bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FolderKind {
    /// It will be created when it is needed.
    Absent,
    Folder {
        is_shared: bool,
    },
    /// Something else has its name.
    Other,
}

pub(super) fn examine(paths: &Paths) -> Vec<Check> {
    // The last three contain conversations.
    [
        ("configuration", &paths.config, false),
        ("sessions", &paths.sessions(), true),
        ("state", &paths.state, true),
        ("cache", &paths.cache, true),
    ]
    .into_iter()
    .map(|(name, path, is_private)| judge(name, &gather(path), is_private))
    .collect()
}

fn judge(name: &str, facts: &FolderFacts, is_private: bool) -> Check {
    let topic = Topic::Folders;
    let path = shown(&facts.path);
    let room = facts.free_bytes.map(|it| format!(", {} free", figure::bytes(it)));
    let absent = if facts.kind == FolderKind::Absent {
        ", created when needed"
    } else {
        ""
    };
    let seen = format!("{path}{absent}{}", room.unwrap_or_default());
    let free = facts.free_bytes.unwrap_or(u64::MAX);
    match facts.kind {
        FolderKind::Other => Check::bad(topic, name, &format!("{path} is not a folder"), "move it aside"),
        FolderKind::Absent | FolderKind::Folder { .. } if !facts.is_writable => Check::bad(
            topic,
            name,
            &format!("{path} cannot be written"),
            "make it writable, or choose other folders with the XDG_… variables",
        ),
        FolderKind::Absent | FolderKind::Folder { .. } if free < NOTHING_BYTES => {
            Check::bad(topic, name, &seen, "free some space: nothing can be saved")
        }
        FolderKind::Absent | FolderKind::Folder { .. } if free < LITTLE_BYTES => {
            Check::doubtful(topic, name, &seen, "free some space soon")
        }
        FolderKind::Folder { is_shared: true } if is_private => Check::doubtful(
            topic,
            name,
            &format!("{seen}, accessible to others"),
            &format!("chmod 700 {path}"),
        ),
        FolderKind::Absent | FolderKind::Folder { .. } => Check::good(topic, name, &seen),
    }
}

fn gather(path: &Path) -> FolderFacts {
    let kind = match std::fs::metadata(path) {
        Ok(facts) if facts.is_dir() => FolderKind::Folder {
            is_shared: is_shared(&facts),
        },
        Ok(_) => FolderKind::Other,
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => FolderKind::Other,
        Err(_) => FolderKind::Absent,
    };
    let nearest = path.ancestors().find(|it| it.exists()).unwrap_or(path);
    let (is_writable, free_bytes) = room(nearest);
    FolderFacts {
        path: path.to_owned(),
        kind,
        is_writable,
        free_bytes,
    }
}

#[cfg(unix)]
fn is_shared(facts: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    facts.permissions().mode() & 0o077 != 0
}

#[cfg(unix)]
fn room(path: &Path) -> (bool, Option<u64>) {
    use rustix::fs::{Access, access, statvfs};
    let is_writable = access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    let free = statvfs(path).ok().map(|it| it.f_bavail.saturating_mul(it.f_frsize));
    (is_writable, free)
}

#[cfg(not(unix))]
fn is_shared(_: &std::fs::Metadata) -> bool {
    false
}

#[cfg(not(unix))]
fn room(path: &Path) -> (bool, Option<u64>) {
    (
        std::fs::metadata(path).is_ok_and(|it| !it.permissions().readonly()),
        None,
    )
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::cli::doctor::CheckVerdict;

    #[test]
    fn a_folder_is_judged_by_what_is_true_of_it() {
        let folder = |is_shared| FolderKind::Folder { is_shared };
        for (kind, is_writable, free, is_private, expected) in [
            (
                folder(false),
                true,
                Some(5_400_000_000),
                true,
                (CheckVerdict::Good, "/f, 5.4 GB free", ""),
            ),
            (folder(true), true, None, false, (CheckVerdict::Good, "/f", "")),
            (
                folder(true),
                true,
                None,
                true,
                (CheckVerdict::Doubtful, "/f, accessible to others", "chmod 700 /f"),
            ),
            (
                FolderKind::Absent,
                true,
                None,
                true,
                (CheckVerdict::Good, "/f, created when needed", ""),
            ),
            (
                FolderKind::Absent,
                false,
                None,
                true,
                (
                    CheckVerdict::Bad,
                    "/f cannot be written",
                    "make it writable, or choose other folders with the XDG_… variables",
                ),
            ),
            (
                FolderKind::Other,
                true,
                None,
                true,
                (CheckVerdict::Bad, "/f is not a folder", "move it aside"),
            ),
            (
                folder(false),
                true,
                Some(0),
                true,
                (
                    CheckVerdict::Bad,
                    "/f, 0 B free",
                    "free some space: nothing can be saved",
                ),
            ),
            (
                folder(false),
                true,
                Some(100_000_000),
                true,
                (CheckVerdict::Doubtful, "/f, 100 MB free", "free some space soon"),
            ),
        ] {
            let facts = FolderFacts {
                path: "/f".into(),
                kind,
                is_writable,
                free_bytes: free,
            };
            let check = judge("f", &facts, is_private);
            assert_eq!(
                (check.verdict, check.seen.as_str(), check.remedy.as_str()),
                expected,
                "{facts:?}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn facts_are_those_of_the_disk() {
        use std::{fs::Permissions, os::unix::fs::PermissionsExt};
        let folder = tempfile::tempdir().expect("a folder");
        let kind = |path: &Path| gather(path).kind;
        assert_eq!(kind(&folder.path().join("a/b/c")), FolderKind::Absent);
        assert!(
            gather(&folder.path().join("a/b/c")).is_writable,
            "the nearest folder counts"
        );
        assert!(gather(folder.path()).free_bytes.is_some());
        for (mode, is_shared) in [(0o700, false), (0o755, true)] {
            std::fs::set_permissions(folder.path(), Permissions::from_mode(mode)).expect("set");
            assert_eq!(kind(folder.path()), FolderKind::Folder { is_shared }, "{mode:o}");
        }
        let file = folder.path().join("file");
        std::fs::File::create(&file).expect("made");
        assert_eq!(kind(&file), FolderKind::Other);
        assert_eq!(kind(&file.join("below")), FolderKind::Other, "a file in the way");
    }

    #[test]
    fn looking_makes_no_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(examine(&Paths::under(folder.path())).len(), 4);
        assert_eq!(std::fs::read_dir(folder.path()).map(Iterator::count).ok(), Some(0));
    }
}
