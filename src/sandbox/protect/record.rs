//! The list of protected files before a command, on the disk while the command runs. A program that is killed cannot look
//! what its command has left behind; the next one that opens the workspace does.
//!
//! ```text
//! aside/running-<id>.list   what there was, removed with the command
//! aside/running-<id>.lock   held by the program that runs it; gone with it
//! ```

use std::{
    ffi::OsStr,
    fs, io,
    io::Write as _,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use super::{
    created::{Before, List},
    is_state_of_git,
    quarantine::{FileIdentity, Quarantine},
    write_guard::Watch,
};
use crate::{
    os::file::{self, Lock, Locked},
    sandbox::policy::Ground,
};

/// Bytes of a list that are read at most; a longer one is not compared.
const LONGEST_LIST: u64 = 16 << 20;
const PREFIX: &str = "running-";

/// The list of one running command.
#[derive(Debug)]
pub struct Record {
    list: PathBuf,
    _lock: Lock,
}

/// A protected file that was new or changed after the program was killed, and that was put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftFile {
    /// Relative to the workspace, for people.
    pub shown: String,
    /// Its present place, in the folder of what is put aside.
    pub aside: PathBuf,
    /// It was there before the command, with other content.
    pub is_changed: bool,
    root: PathBuf,
    inner: PathBuf,
}

impl Record {
    /// Writes the list. `None` where there is no place for it; the command runs all the same.
    pub fn write(aside: &Quarantine, before: &Before, watch: Option<&Watch>) -> Option<Self> {
        let folder = aside.folder()?;
        let name = uuid::Uuid::new_v4().simple().to_string();
        let list = folder.join(format!("{PREFIX}{name}.list"));
        let written = (|| -> io::Result<Option<Lock>> {
            file::private_folder(folder).map_err(io::Error::other)?;
            let lock = match file::lock(&list.with_extension("lock")).map_err(io::Error::other)? {
                Locked::Ours(lock) => lock,
                Locked::Theirs { .. } => return Ok(None),
            };
            // Not brought to the disk: after a power failure no command is running.
            file::append(&list)
                .map_err(io::Error::other)?
                .write_all(&text(before, watch))?;
            Ok(Some(lock))
        })();
        match written {
            Ok(lock) => lock.map(|lock| Self { list, _lock: lock }),
            Err(error) => {
                tracing::warn!(%error, "after a crash nobody would look at what this command made");
                None
            }
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        remove(&self.list);
    }
}

fn remove(list: &Path) {
    fs::remove_file(list).ok();
    fs::remove_file(list.with_extension("lock")).ok();
}

/// Looks for commands that ran when their program was killed, in the folders of `ground`; puts aside what is new or
/// changed among the protected files there.
pub fn left_behind(aside: &Quarantine, ground: &Ground) -> Vec<LeftFile> {
    let entries = aside.folder().and_then(|it| fs::read_dir(it).ok());
    let lists = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|it| it.path())
        .filter(|it| {
            let name = it.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(PREFIX) && it.extension().is_some_and(|it| it == "list")
        });
    let mut left = Vec::new();
    for list in lists {
        // Its program lives.
        let Ok(Locked::Ours(_lock)) = file::lock(&list.with_extension("lock")) else {
            continue;
        };
        let Some(listed) = file::read_unlinked(&list, LONGEST_LIST)
            .ok()
            .and_then(|it| Listed::read(&it))
        else {
            tracing::warn!(list = %list.display(), "the list of a command that was cut cannot be read");
            continue;
        };
        let Some((root, more)) = listed.roots.split_first().filter(|it| *it.0 == ground.root) else {
            continue;
        };
        let ground = Ground {
            root: root.clone(),
            more: more.iter().filter(|it| it.is_dir()).cloned().collect(),
            ..ground.clone()
        };
        left.extend(listed.compare(aside, &ground));
        remove(&list);
    }
    left
}

/// A list as it was read.
#[derive(Debug, Default, PartialEq)]
struct Listed {
    /// The workspace first.
    roots: Vec<PathBuf>,
    before: List,
    /// Files that the command could have changed, as they were.
    files: Vec<(PathBuf, FileIdentity)>,
}

/// Writes parts that end in a zero byte: no path contains one.
fn text(before: &Before, watch: Option<&Watch>) -> Vec<u8> {
    let mut text = Vec::new();
    let mut put = |kind: &str, path: &Path| {
        text.extend_from_slice(kind.as_bytes());
        text.push(b' ');
        text.extend_from_slice(path.as_os_str().as_bytes());
        text.push(0);
    };
    let List {
        names,
        missing,
        opened,
        fixed,
        git_write,
        is_partial,
    } = before.list();
    for root in before.ground().roots() {
        put("root", root);
    }
    for (word, is_so) in [("git", git_write), ("partial", is_partial)] {
        if is_so {
            put(word, Path::new(""));
        }
    }
    for (word, paths) in [
        ("name", names),
        ("missing", missing),
        ("opened", opened),
        ("fixed", fixed),
    ] {
        for path in paths {
            put(word, &path);
        }
    }
    for (path, identity) in watch.into_iter().flat_map(Watch::files) {
        put(&format!("file {}", identity.line().trim_end()), path);
    }
    text
}

impl Listed {
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut listed = Self::default();
        for part in bytes.split(|it| *it == 0).filter(|it| !it.is_empty()) {
            let mut words = part.splitn(2, |it| *it == b' ');
            let (kind, rest) = (words.next()?, words.next()?);
            let path = PathBuf::from(OsStr::from_bytes(rest));
            let before = &mut listed.before;
            match kind {
                b"root" => listed.roots.push(path),
                b"git" => before.git_write = true,
                b"partial" => before.is_partial = true,
                b"name" => before.names.extend([path]),
                b"missing" => before.missing.extend([path]),
                b"opened" => before.opened.extend([path]),
                b"fixed" => before.fixed.extend([path]),
                b"file" => {
                    let mut words = rest.splitn(5, |it| *it == b' ');
                    let mut number = || std::str::from_utf8(words.next()?).ok()?.parse().ok();
                    let identity = FileIdentity::from_numbers([number()?, number()?, number()?, number()?])?;
                    let path = PathBuf::from(OsStr::from_bytes(words.next()?));
                    listed.files.push((path, identity));
                }
                _ => return None,
            }
        }
        Some(listed)
    }

    fn compare(self, aside: &Quarantine, ground: &Ground) -> Vec<LeftFile> {
        let before = Before::listed(ground, self.before);
        // Who made a change meanwhile cannot be told; what git has recorded since is the user's.
        let is_users = |path: &Path| aside.is_known(path) || before.is_of_git(path);
        let changed = self.files.into_iter().filter(|(path, identity)| {
            let is_same = FileIdentity::of(path).is_none_or(|it| it == *identity);
            !is_same && !is_state_of_git(path) && !is_users(path)
        });
        let changed = changed.map(|it| (it.0, true)).collect::<Vec<_>>();
        let new = before.left(aside).into_iter().map(|it| (it, false));
        let mut left = Vec::new();
        for (path, is_changed) in changed.into_iter().chain(new) {
            let Some((root, inner)) = before.place(&path) else {
                continue;
            };
            match aside.put(root, inner) {
                Ok(there) => left.push(LeftFile {
                    shown: before.shown(&path),
                    aside: there,
                    is_changed,
                    root: root.to_owned(),
                    inner: inner.to_owned(),
                }),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => tracing::error!(%error, path = %path.display(), "a protected file cannot be put aside"),
            }
        }
        left
    }
}

impl Quarantine {
    /// Moves a file back to where it was, because the user wants it. Fails if something is there by now.
    pub fn give_back(&self, left: &LeftFile) -> io::Result<()> {
        Self::take_back(&left.aside, &left.root, &left.inner)?;
        self.vouch(&left.root.join(&left.inner));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn names(left: &[LeftFile]) -> Vec<(&str, bool)> {
        let mut names: Vec<_> = left.iter().map(|it| (it.shown.as_str(), it.is_changed)).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn what_a_killed_programs_command_made_or_changed_is_put_aside_and_can_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (root, state) = (base.join("work"), base.join("aside"));
        for path in [
            ".vscode/tasks.json",
            ".git/HEAD",
            ".git/hooks/pre-commit",
            "src/a.rs",
            ".envrc",
            ".npmrc",
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), "before").unwrap();
        }
        let ground = Ground::bare(&root);
        let aside = Quarantine::at(Some(state.clone()));
        let before = Before::new(&ground, ground.look(), false);
        let watched = before.list().names.into_iter().collect();
        let watch = Watch::look(vec![root.clone()], watched, None).unwrap();
        let record = Record::write(&aside, &before, Some(&watch)).unwrap();
        assert_eq!(
            Listed::read(&text(&before, Some(&watch))).unwrap().before,
            before.list()
        );
        for (path, text) in [
            (".vscode/tasks.json", "evil"),
            (".git/HEAD", "a commit"),
            (".git/hooks/pre-commit", "evil"),
            ("src/a.rs", "new"),
            ("sub/.mcp.json", "evil"),
            (".gitattributes", "evil"),
            (".env.local", "every day"),
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        // What a tool wrote because the user said so.
        fs::write(root.join(".npmrc"), "asked for").unwrap();
        aside.vouch(&root.join(".npmrc"));
        let next = || Quarantine::at(Some(state.clone()));
        assert_eq!(left_behind(&next(), &ground), [], "its program lives");
        // As the kernel does when it is killed.
        let list = record.list.clone();
        let bytes = fs::read(&list).unwrap();
        drop(record);
        assert!(!list.exists());
        fs::write(&list, &bytes).unwrap();
        let elsewhere = base.join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        assert_eq!(left_behind(&next(), &Ground::bare(&elsewhere)), []);
        let left = left_behind(&next(), &ground);
        assert_eq!(
            names(&left),
            [
                (".git/hooks/pre-commit", true),
                (".gitattributes", false),
                (".vscode/tasks.json", true),
                ("sub/.mcp.json", false),
            ]
        );
        for it in &left {
            assert!(!root.join(&it.shown).exists() && fs::read_to_string(&it.aside).unwrap() == "evil");
        }
        for (path, text) in [
            (".envrc", "before"),
            (".git/HEAD", "a commit"),
            ("src/a.rs", "new"),
            (".npmrc", "asked for"),
            (".env.local", "every day"),
        ] {
            assert_eq!(fs::read_to_string(root.join(path)).unwrap(), text, "{path}");
        }
        assert_eq!(left_behind(&next(), &ground), [], "once");
        // The user wants them; what stands there by then is not replaced.
        fs::write(root.join(".gitattributes"), "mine").unwrap();
        for it in &left {
            assert_eq!(
                next().give_back(it).is_ok(),
                it.shown != ".gitattributes",
                "{}",
                it.shown
            );
        }
        assert_eq!(fs::read_to_string(root.join("sub/.mcp.json")).unwrap(), "evil");
        assert_eq!(fs::read_to_string(root.join(".gitattributes")).unwrap(), "mine");
        assert!(next().is_known(&root.join("sub/.mcp.json")));
    }

    #[test]
    fn a_list_that_is_torn_compares_nothing() {
        for bytes in [&b"root"[..], b"file 1 2 3\0", b"strange x\0", b"file a b c d /x\0"] {
            assert_eq!(Listed::read(bytes), None, "{bytes:?}");
        }
        assert_eq!(Listed::read(b""), Some(Listed::default()));
    }
}
