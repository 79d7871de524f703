//! Recognises files that git wrote, by the metadata that git's index holds.
//!
//! A command that may not write git's folder cannot have made that up, so the file came by the user's own git.

use std::{fs, io, os::unix::fs::MetadataExt as _, path::Path};

use crate::{os::file, sandbox::policy};

/// An index that is longer is not read.
const LONGEST_INDEX: u64 = 64 << 20;
/// Bytes of an entry before its flags: ten numbers and a hash.
const STATED: usize = 40;
const HASH: usize = 20;
/// A flag: two more bytes of flags follow.
const IS_LONGER: u16 = 0x4000;

/// Metadata of a file in git's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stated {
    changed: (u32, u32),
    modified: (u32, u32),
    inode: u32,
    size: u32,
}

/// Returns true if git wrote the file `inner` below `root` and it has not changed since.
pub fn is_gits(root: &Path, inner: &Path) -> bool {
    let found = || -> io::Result<bool> {
        let about = fs::symlink_metadata(root.join(inner))?;
        let folder = policy::git_folder(root).ok_or(io::ErrorKind::NotFound)?;
        let bytes = file::read_unlinked(&folder.join("index"), LONGEST_INDEX).map_err(io::Error::other)?;
        let Some(stated) = stated(&bytes, inner.as_os_str().as_encoded_bytes()) else {
            return Ok(false);
        };
        // It keeps the lower half of what is longer.
        Ok(stated
            == Stated {
                changed: (about.ctime() as u32, about.ctime_nsec() as u32),
                modified: (about.mtime() as u32, about.mtime_nsec() as u32),
                inode: about.ino() as u32,
                size: about.size() as u32,
            })
    };
    found().unwrap_or(false)
}

/// Returns the entry of a file in an index. `None` if there is none, or the index has an unknown version.
fn stated(index: &[u8], name: &[u8]) -> Option<Stated> {
    let number = |bytes: &[u8], at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let version = number(index, 4).filter(|_| index.starts_with(b"DIRC"))?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let count = number(index, 8)?;
    let mut rest = index.get(12..)?;
    let mut path: Vec<u8> = Vec::new();
    for _ in 0..count {
        let at = |place: usize| number(rest, place * 4);
        let stated = Stated {
            changed: (at(0)?, at(1)?),
            modified: (at(2)?, at(3)?),
            inode: at(5)?,
            size: at(9)?,
        };
        let flags = rest.get(STATED + HASH..STATED + HASH + 2)?;
        let flags = u16::from_be_bytes(flags.try_into().ok()?);
        let head = STATED + HASH + 2 + if flags & IS_LONGER == 0 { 0 } else { 2 };
        let mut named = rest.get(head..)?;
        if version == 4 {
            // Names are kept as what differs from the one before.
            let (dropped, after) = variable(named)?;
            path.truncate(path.len().checked_sub(dropped)?);
            named = after;
        } else {
            path.clear();
        }
        let end = named.iter().position(|it| *it == 0)?;
        path.extend(named.get(..end)?);
        if path == name {
            return Some(stated);
        }
        rest = if version == 4 {
            named.get(end + 1..)?
        } else {
            // To the next multiple of eight, with one NUL at least.
            rest.get((head + end + 8) / 8 * 8..)?
        };
    }
    None
}

/// A number of git's own form, and what stands behind it.
fn variable(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, mut rest) = bytes.split_first()?;
    let mut value = usize::from(first & 0x7f);
    let mut last = *first;
    while last & 0x80 != 0 {
        let (next, after) = rest.split_first()?;
        value = value.checked_add(1)?.checked_mul(128)? | usize::from(next & 0x7f);
        last = *next;
        rest = after;
    }
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_git_wrote_is_known_until_it_is_changed() {
        for version in ["2", "3", "4"] {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path();
            let git = |words: &[&str]| {
                let done = std::process::Command::new("git")
                    .args(["-c", "user.name=x", "-c", "user.email=x"])
                    .args(words)
                    .current_dir(root)
                    .env("GIT_CONFIG_GLOBAL", "/dev/null")
                    .output()
                    .unwrap();
                assert!(done.status.success(), "{words:?} {done:?}");
            };
            git(&["init", "-q"]);
            for name in [".envrc", ".mcp.json", "a", "src/deep/.envrc"] {
                fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
                fs::write(root.join(name), name).unwrap();
            }
            git(&["add", "."]);
            git(&["update-index", "--index-version", version]);
            if version == "3" {
                // The longer flags are written where one needs them.
                fs::write(root.join("later"), "").unwrap();
                git(&["add", "--intent-to-add", "later"]);
            }
            git(&["commit", "-qm", "one", "a", ".envrc", ".mcp.json", "src"]);
            fs::remove_file(root.join(".mcp.json")).unwrap();
            fs::remove_file(root.join("src/deep/.envrc")).unwrap();
            git(&["checkout", "--", "."]);
            for name in [".mcp.json", "src/deep/.envrc"] {
                assert!(is_gits(root, name.as_ref()), "{version} {name}");
            }
            fs::write(root.join(".mcp.json"), ".mcp.json").unwrap();
            fs::write(root.join("new"), "").unwrap();
            for name in [".mcp.json", "new", "absent", ""] {
                assert!(!is_gits(root, name.as_ref()), "{version} {name}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_broken_index_says_nothing(
            version in 0..6_u32,
            count in any::<u32>(),
            body in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let index = [b"DIRC".as_slice(), &version.to_be_bytes(), &count.to_be_bytes(), &body].concat();
            let _ = stated(&index, b"a");
            let _ = stated(&body, b"");
        }
    }
}
