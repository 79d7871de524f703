//! Lists of programs that were killed, and what is found by them.

use super::*;
use pretty_assertions::assert_eq;

fn names(left: &LeftBehind) -> Vec<(&str, bool)> {
    let files = left.aside.iter();
    let mut names: Vec<_> = files.map(|it| (it.shown.as_str(), it.is_changed)).collect();
    names.sort_unstable();
    names
}

fn notes(left: &LeftBehind) -> Vec<LeftNote> {
    left.notes.clone()
}

/// A workspace, and a folder for what is put aside.
struct Bench {
    _folder: tempfile::TempDir,
    base: PathBuf,
    ground: Ground,
}

impl Bench {
    fn new(files: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        fs::create_dir(base.join("work")).unwrap();
        let bench = Self {
            ground: Ground::bare(&base.join("work")),
            base,
            _folder: folder,
        };
        for file in files {
            bench.put(file, "before");
        }
        bench
    }

    fn path(&self, path: &str) -> PathBuf {
        self.ground.root.join(path)
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn aside(&self) -> Quarantine {
        Quarantine::at(Some(self.base.join("aside")))
    }

    fn before(&self) -> Before {
        Before::new(&self.ground, self.ground.look(), false)
    }

    /// Writes a list as one that a killed program has left, which began a minute ago.
    fn list(&self, bytes: &[u8]) -> PathBuf {
        let folder = self.base.join("aside");
        fs::create_dir_all(&folder).unwrap();
        let list = folder.join(format!("{PREFIX}x.list"));
        fs::write(&list, bytes).unwrap();
        let file = fs::File::options().write(true).open(&list).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_mins(1)).unwrap();
        list
    }

    /// The list of a command that may write everything that is protected.
    fn text(&self) -> Vec<u8> {
        let before = self.before();
        let watched = before.list().names.into_iter().collect();
        let watch = Watch::look(vec![self.ground.root.clone()], watched, None).unwrap();
        text(&before, Some(&watch), "mark.1")
    }

    fn left(&self) -> LeftBehind {
        let left = left_behind(&self.aside(), &self.ground, || true, |_| {});
        assert_eq!(lists(&self.aside()), Vec::<PathBuf>::new());
        left
    }

    /// The command has ended; comes back when whatever is made from then on is certainly newer.
    fn end(&self, list: &Path) {
        self.put("clock", "");
        let now = || changed(&fs::symlink_metadata(self.path("clock")).unwrap());
        let end = now();
        fs::write(list.with_extension("end"), "").unwrap();
        let file = fs::File::options().write(true).open(list.with_extension("end"));
        file.unwrap().set_modified(end).unwrap();
        while now() <= end {
            self.put("clock", "later");
        }
    }
}

#[test]
fn what_a_killed_programs_command_made_or_changed_is_put_aside_and_can_come_back() {
    let bench = Bench::new(&[
        ".vscode/tasks.json",
        ".git/HEAD",
        ".git/hooks/pre-commit",
        ".sheafignore",
        "src/a.rs",
        ".envrc",
        ".npmrc",
    ]);
    let root = bench.ground.root.clone();
    let before = bench.before();
    let watched = before.list().names.into_iter().collect();
    let watch = Watch::look(vec![root.clone()], watched, None).unwrap();
    let record = Record::write(&bench.aside(), &before, Some(&watch), "mark.1").unwrap();
    let read = Listed::read(&text(&before, Some(&watch), "mark.1")).unwrap();
    assert_eq!((read.before, read.mark.as_str()), (before.list(), "mark.1"));
    for (path, text) in [
        (".vscode/tasks.json", "evil"),
        (".git/HEAD", "a commit"),
        (".git/hooks/pre-commit", "evil"),
        (".git/hooks/new.d/hook", "evil"),
        (".git/new", "a commit"),
        (".vscode/settings.json", "evil"),
        ("src/a.rs", "new"),
        ("sub/.mcp.json", "evil"),
        (".gitattributes", "evil"),
        (".env.local", "every day"),
    ] {
        bench.put(path, text);
    }
    fs::remove_file(root.join(".sheafignore")).unwrap();
    // What a tool wrote because the user said so.
    bench.put(".npmrc", "asked for");
    bench.aside().vouch(&root.join(".npmrc"));
    let nothing = LeftBehind::default();
    assert_eq!(
        left_behind(&bench.aside(), &bench.ground, || true, |_| panic!()),
        nothing,
        "its program lives"
    );
    // As the kernel does when it is killed.
    let list = record.list.clone();
    let bytes = fs::read(&list).unwrap();
    assert!(list.ends_with(format!("{PREFIX}{}.list", record.id())));
    drop(record);
    assert!(!list.exists());
    fs::write(&list, &bytes).unwrap();
    let elsewhere = bench.base.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    assert_eq!(
        left_behind(&bench.aside(), &Ground::bare(&elsewhere), || true, |_| panic!()),
        nothing
    );
    // Who has gone meanwhile cannot be told: the next one looks.
    assert_eq!(left_behind(&bench.aside(), &bench.ground, || false, |_| {}), nothing);
    assert!(list.exists() && root.join("sub/.mcp.json").exists());
    // What still runs of it is ended before anything is compared.
    let (ended, there) = (std::cell::RefCell::new(String::new()), root.join("sub/.mcp.json"));
    let left = left_behind(
        &bench.aside(),
        &bench.ground,
        || true,
        |mark| {
            assert!(there.exists());
            ended.borrow_mut().push_str(mark);
        },
    );
    assert_eq!(ended.into_inner(), "mark.1");
    assert_eq!(
        names(&left),
        [
            (".git/hooks/new.d", false),
            (".git/hooks/pre-commit", true),
            (".gitattributes", false),
            (".vscode/settings.json", false),
            (".vscode/tasks.json", true),
            ("sub/.mcp.json", false),
        ]
    );
    let gone = LeftNote::Gone {
        path: ".sheafignore".to_owned(),
    };
    assert_eq!(notes(&left), [gone]);
    for it in &left.aside {
        let kept = if it.aside.is_dir() {
            it.aside.join("hook")
        } else {
            it.aside.clone()
        };
        assert!(!root.join(&it.shown).exists() && fs::read_to_string(kept).unwrap() == "evil");
    }
    for (path, text) in [
        (".envrc", "before"),
        (".git/HEAD", "a commit"),
        (".git/new", "a commit"),
        ("src/a.rs", "new"),
        (".npmrc", "asked for"),
        (".env.local", "every day"),
    ] {
        assert_eq!(fs::read_to_string(root.join(path)).unwrap(), text, "{path}");
    }
    assert_eq!(bench.left(), nothing, "once");
    // The user wants them; what stands there by then is not replaced.
    bench.put(".gitattributes", "mine");
    for it in &left.aside {
        assert_eq!(
            bench.aside().give_back(it).is_ok(),
            it.shown != ".gitattributes",
            "{}",
            it.shown
        );
    }
    assert_eq!(fs::read_to_string(root.join("sub/.mcp.json")).unwrap(), "evil");
    assert_eq!(fs::read_to_string(root.join(".gitattributes")).unwrap(), "mine");
    assert!(bench.aside().is_known(&root.join("sub/.mcp.json")));
}

#[test]
fn a_list_that_is_torn_compares_nothing_and_is_told_once() {
    let bench = Bench::new(&[".npmrc", "sub/.envrc", ".git/HEAD"]);
    let whole = bench.text();
    assert!(Listed::read(&whole).is_some());
    for length in 0..whole.len() {
        assert_eq!(Listed::read(&whole[..length]), None, "{length} bytes");
    }
    for bytes in [
        &b"strange x\0end \0"[..],
        b"root /x\0file a b c d /x\0end \0",
        b"end \0",
    ] {
        assert_eq!(Listed::read(bytes), None, "{bytes:?}");
    }
    bench.put(".envrc", "mine");
    let root = bench.ground.root.clone();
    for length in [0, 3, whole.len() / 2, whole.len() - 1] {
        bench.list(&whole[..length]);
        let left = bench.left();
        let expected = LeftBehind {
            notes: vec![LeftNote::Unreadable],
            ..LeftBehind::default()
        };
        assert_eq!(left, expected, "{length} bytes");
        assert!(root.join(".envrc").exists() && root.join(".npmrc").exists());
    }
    // It is told where it was made.
    let other = [b"root /elsewhere\0name /else", &b"x"[..]].concat();
    let list = bench.list(&other);
    assert!(left_behind(&bench.aside(), &bench.ground, || true, |_| {}).is_empty() && list.exists());
    // One that would be too long says that nothing is known.
    bench.list(&[b"root ", root.as_os_str().as_bytes(), b"\0mark x\0long \0end \0"].concat());
    assert_eq!(bench.left().notes, [LeftNote::TooLarge]);
    assert!(root.join(".envrc").exists());
}

#[test]
fn what_the_user_made_after_the_command_ended_stays() {
    let bench = Bench::new(&[".git/config", ".vscode/tasks.json", ".npmrc"]);
    for has_end in [true, false] {
        let list = bench.list(&bench.text());
        bench.put("evil/.envrc", "evil");
        bench.put("evil/.idea/x", "evil");
        bench.put(".npmrc", "evil");
        // Only the time tells one from the other.
        if has_end {
            bench.end(&list);
        }
        bench.put("evil/.idea/y", "mine");
        bench.put(".git/config", "mine");
        bench.put(".vscode/launch.json", "mine");
        bench.put("mine/.envrc", "mine");
        bench.put("mine/.idea/x", "mine");
        for name in ["HEAD", "config", "objects/x", "refs/x"] {
            bench.put(&format!("mine/.git/{name}"), "mine");
        }
        let left = bench.left();
        let mut moved = vec![("evil/.envrc", false), ("evil/.idea", false), (".npmrc", true)];
        let later = |path: &str| LeftNote::Later { path: path.to_owned() };
        let mine = [
            ".git/config",
            ".vscode/launch.json",
            "mine/.envrc",
            "mine/.git",
            "mine/.idea",
        ];
        if has_end {
            assert_eq!(notes(&left), mine.map(later));
        } else {
            moved.extend([
                (".git/config", true),
                (".vscode/launch.json", false),
                ("mine/.envrc", false),
                ("mine/.idea", false),
            ]);
            // Git would silently work in the one above.
            assert_eq!(
                left.notes,
                [LeftNote::Repository {
                    path: "mine".to_owned()
                }]
            );
        }
        moved.sort_unstable();
        assert_eq!(names(&left), moved);
        assert!(bench.path("mine/.git/HEAD").exists());
        for path in ["evil", "mine", ".npmrc"] {
            fs::remove_dir_all(bench.path(path)).ok();
        }
        bench.put(".npmrc", "before");
        fs::remove_file(bench.path(".vscode/launch.json")).ok();
        bench.put(".git/config", "before");
    }
}

#[test]
fn a_repository_in_a_folder_that_was_there_is_put_aside() {
    let bench = Bench::new(&[".git/HEAD", "sub/x"]);
    let list = bench.list(&bench.text());
    let born = fs::metadata(bench.path("sub")).unwrap().created();
    let Ok(born) = born else { return };
    // The command began after the folder was made.
    let file = fs::File::options().write(true).open(list).unwrap();
    file.set_modified(born + Duration::from_nanos(1)).unwrap();
    bench.end(&bench.path("probe"));
    for name in ["HEAD", "objects/x", "refs/x"] {
        bench.put(&format!("sub/.git/{name}"), "evil");
    }
    let left = bench.left();
    assert_eq!((names(&left), notes(&left)), (vec![("sub/.git", false)], vec![]));
}

#[test]
fn what_may_have_been_there_is_named_and_the_rest_is_put_aside() {
    let bench = Bench::new(&["old/.envrc"]);
    let with = |more: &[&str]| {
        let mut text = text(&bench.before(), None, "mark.1");
        text.truncate(text.len() - END.len());
        for (kind, path) in more.iter().filter_map(|it| it.split_once(' ')) {
            text.extend([kind.as_bytes(), b" ", bench.path(path).as_os_str().as_bytes(), b"\0"].concat());
        }
        [text, END.to_vec()].concat()
    };
    let unsure = |path: &str| LeftNote::Unsure { path: path.to_owned() };
    // One folder that nobody could look into says nothing of others.
    bench.list(&with(&["closed shut", "missing tools/hook"]));
    bench.put("shut/.envrc", "perhaps");
    bench.put("open/.envrc", "evil");
    bench.put("tools/hook", "evil");
    bench.put("node_modules/x/.npmrc", "a package's");
    bench.put("vendor/x/.npmrc", "a package's");
    let left = bench.left();
    assert_eq!(names(&left), [("open/.envrc", false), ("tools/hook", false)]);
    let packaged = LeftNote::Packaged {
        path: "vendor/x/.npmrc".to_owned(),
    };
    assert_eq!(left.notes, [unsure("shut/.envrc"), packaged]);
    fs::remove_dir_all(bench.path("vendor")).unwrap();
    // Where a limit was reached nothing is certain but what was missing; what has not changed is nobody's.
    let list = with(&["partial ", "missing tools/hook"]);
    let list = String::from_utf8(list).unwrap().replace("name ", "closed ");
    let list = bench.list(list.as_bytes());
    for path in ["shut/.envrc", "tools/hook", "new/.idea/x"] {
        bench.put(path, "x");
    }
    let start = changed(&fs::symlink_metadata(bench.path("shut/.envrc")).unwrap());
    fs::File::options()
        .write(true)
        .open(list)
        .unwrap()
        .set_modified(start)
        .unwrap();
    let left = bench.left();
    assert_eq!(names(&left), [("tools/hook", false)]);
    assert_eq!(left.notes, [LeftNote::Cut, unsure("new/.idea"), unsure("shut/.envrc")]);
    assert!(bench.path("new/.idea/x").exists() && bench.path("old/.envrc").exists());
}

#[test]
fn names_that_something_names_since_are_not_taken_for_the_commands() {
    let bench = Bench::new(&[".git/HEAD", ".git/config", "scripts/pre-commit", "tools/x"]);
    bench.list(&bench.text());
    // The user sets up hooks.
    bench.put(".git/config", "[core]\nhooksPath = tools\n");
    bench.aside().vouch(&bench.path(".git/config"));
    fs::create_dir(bench.path(".git/hooks")).unwrap();
    std::os::unix::fs::symlink("../../scripts/pre-commit", bench.path(".git/hooks/pre-commit")).unwrap();
    let left = bench.left();
    assert!(
        bench.path("scripts/pre-commit").exists() && bench.path("tools/x").exists(),
        "{left:?}"
    );
}
