//! Whether our folders can be written, by us alone, and have room.

use std::path::{Path, PathBuf};

use super::{Check, Topic, shown};
use crate::{config::Paths, text::figure};

/// Sessions grow; below this much room somebody should know.
const LITTLE_BYTES: u64 = 200_000_000;

/// Below this nothing can be kept.
const NOTHING_BYTES: u64 = 1_000_000;

/// What is true of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Facts {
    path: PathBuf,
    kind: Kind,
    /// Of the folder, or of the nearest one above it that exists.
    is_writable: bool,
    free_bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It will be made when it is needed.
    Absent,
    Folder {
        is_shared: bool,
    },
    /// Something else has its name.
    Other,
}

pub(super) fn examine(paths: &Paths) -> Vec<Check> {
    // What was said to a model lies in the last three.
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

fn judge(name: &str, facts: &Facts, is_private: bool) -> Check {
    let topic = Topic::Folders;
    let path = shown(&facts.path);
    let room = facts.free_bytes.map(|it| format!(", {} free", figure::bytes(it)));
    let absent = if facts.kind == Kind::Absent {
        ", made when needed"
    } else {
        ""
    };
    let seen = format!("{path}{absent}{}", room.unwrap_or_default());
    let free = facts.free_bytes.unwrap_or(u64::MAX);
    match facts.kind {
        Kind::Other => Check::bad(
            topic,
            name,
            &format!("{path} is not a folder"),
            "move it out of the way",
        ),
        Kind::Absent | Kind::Folder { .. } if !facts.is_writable => Check::bad(
            topic,
            name,
            &format!("{path} cannot be written"),
            "give yourself the right to write there, or choose other folders by the XDG_… variables",
        ),
        Kind::Absent | Kind::Folder { .. } if free < NOTHING_BYTES => {
            Check::bad(topic, name, &seen, "make room: nothing can be kept")
        }
        Kind::Absent | Kind::Folder { .. } if free < LITTLE_BYTES => {
            Check::doubtful(topic, name, &seen, "make room before it is used up")
        }
        Kind::Folder { is_shared: true } if is_private => Check::doubtful(
            topic,
            name,
            &format!("{seen}, open to others"),
            &format!("chmod 700 {path}"),
        ),
        Kind::Absent | Kind::Folder { .. } => Check::good(topic, name, &seen),
    }
}

fn gather(path: &Path) -> Facts {
    let kind = match std::fs::metadata(path) {
        Ok(facts) if facts.is_dir() => Kind::Folder {
            is_shared: is_shared(&facts),
        },
        Ok(_) => Kind::Other,
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Kind::Other,
        Err(_) => Kind::Absent,
    };
    let nearest = path.ancestors().find(|it| it.exists()).unwrap_or(path);
    let (is_writable, free_bytes) = room(nearest);
    Facts {
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
    use crate::cli::doctor::Verdict;

    #[test]
    fn a_folder_is_judged_by_what_is_true_of_it() {
        let folder = |is_shared| Kind::Folder { is_shared };
        for (kind, is_writable, free, is_private, expected) in [
            (
                folder(false),
                true,
                Some(5_400_000_000),
                true,
                (Verdict::Good, "/f, 5.4 GB free", ""),
            ),
            (folder(true), true, None, false, (Verdict::Good, "/f", "")),
            (
                folder(true),
                true,
                None,
                true,
                (Verdict::Doubtful, "/f, open to others", "chmod 700 /f"),
            ),
            (
                Kind::Absent,
                true,
                None,
                true,
                (Verdict::Good, "/f, made when needed", ""),
            ),
            (
                Kind::Absent,
                false,
                None,
                true,
                (
                    Verdict::Bad,
                    "/f cannot be written",
                    "give yourself the right to write there, or choose other folders by the XDG_… variables",
                ),
            ),
            (
                Kind::Other,
                true,
                None,
                true,
                (Verdict::Bad, "/f is not a folder", "move it out of the way"),
            ),
            (
                folder(false),
                true,
                Some(0),
                true,
                (Verdict::Bad, "/f, 0 B free", "make room: nothing can be kept"),
            ),
            (
                folder(false),
                true,
                Some(100_000_000),
                true,
                (Verdict::Doubtful, "/f, 100 MB free", "make room before it is used up"),
            ),
        ] {
            let facts = Facts {
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
        assert_eq!(kind(&folder.path().join("a/b/c")), Kind::Absent);
        assert!(
            gather(&folder.path().join("a/b/c")).is_writable,
            "the nearest folder counts"
        );
        assert!(gather(folder.path()).free_bytes.is_some());
        for (mode, is_shared) in [(0o700, false), (0o755, true)] {
            std::fs::set_permissions(folder.path(), Permissions::from_mode(mode)).expect("set");
            assert_eq!(kind(folder.path()), Kind::Folder { is_shared }, "{mode:o}");
        }
        let file = folder.path().join("file");
        std::fs::File::create(&file).expect("made");
        assert_eq!(kind(&file), Kind::Other);
        assert_eq!(kind(&file.join("below")), Kind::Other, "a file in the way");
    }

    #[test]
    fn looking_makes_no_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(examine(&Paths::under(folder.path())).len(), 4);
        assert_eq!(std::fs::read_dir(folder.path()).map(Iterator::count).ok(), Some(0));
    }
}
