use super::*;
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use std::os::unix::fs::symlink;
use std::{path::Component, sync::atomic::AtomicU32};

/// A workspace in `<folder>/shop`, with a home, a folder that was added and one that was not beside it.
pub(in crate::sandbox) struct Ground {
    pub(in crate::sandbox) folder: tempfile::TempDir,
}

impl Ground {
    pub(in crate::sandbox) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["shop", "home", "added", "other"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    pub(in crate::sandbox) fn path(&self, inner: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(inner)
    }

    pub(in crate::sandbox) fn put(&self, inner: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(inner);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    pub(in crate::sandbox) fn link(&self, inner: &str, target: impl AsRef<Path>) {
        let path = self.path(inner);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    pub(in crate::sandbox) fn workspace(&self) -> Workspace {
        self.hiding(&[])
    }

    pub(in crate::sandbox) fn hiding(&self, hidden: &[&str]) -> Workspace {
        let fence = Fence {
            added: vec![self.path("added")],
            hidden: hidden.iter().map(|it| (*it).to_owned()).collect(),
            home: Some(self.path("home")),
            ..Fence::default()
        };
        Workspace::fenced(&self.path("shop"), fence).unwrap()
    }
}

pub(in crate::sandbox) fn pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

#[test]
fn a_path_leads_where_its_links_lead() {
    let ground = Ground::new();
    ground.put("shop/src/main.rs", "");
    ground.put("shop/@types/a.ts", "");
    ground.put("other/file", "");
    ground.link("shop/in", "src");
    ground.link("shop/out", ground.path("other"));
    ground.link("shop/out-file", "../other/file");
    ground.link("shop/dangling", "../other/not there");
    ground.link("shop/chain", "in/../in/main.rs");
    ground.link("added/back", ground.path("shop/src"));
    let workspace = ground.workspace();
    let other = ground.path("other");
    let (root, url) = (ground.path("shop"), |it: &str| {
        format!("file://{}", ground.path(it).display())
    });
    let text = |it: &Path| it.to_string_lossy().into_owned();
    for (written, place, shown) in [
        ("src/main.rs", Place::Inside, "src/main.rs".to_owned()),
        ("./src//main.rs", Place::Inside, "src/main.rs".to_owned()),
        ("", Place::Inside, ".".to_owned()),
        (".", Place::Inside, ".".to_owned()),
        ("src/../src/./main.rs", Place::Inside, "src/main.rs".to_owned()),
        ("new/deep/file.rs", Place::Inside, "new/deep/file.rs".to_owned()),
        ("new/../src/main.rs", Place::Inside, "src/main.rs".to_owned()),
        ("src/main.rs/below", Place::Inside, "src/main.rs/below".to_owned()),
        ("in/main.rs", Place::Inside, "src/main.rs".to_owned()),
        ("in/new.rs", Place::Inside, "src/new.rs".to_owned()),
        ("chain", Place::Inside, "src/main.rs".to_owned()),
        ("@src/main.rs", Place::Inside, "src/main.rs".to_owned()),
        ("@types/a.ts", Place::Inside, "@types/a.ts".to_owned()),
        ("@@types/a.ts", Place::Inside, "@types/a.ts".to_owned()),
        (&text(&root.join("src")), Place::Inside, "src".to_owned()),
        (&url("shop/src/main.rs"), Place::Inside, "src/main.rs".to_owned()),
        (&url("shop/a%20b"), Place::Inside, "a b".to_owned()),
        ("file://src/main.rs", Place::Inside, "src/main.rs".to_owned()),
        ("../shop/src", Place::Inside, "src".to_owned()),
        ("in/..", Place::Inside, ".".to_owned()),
        ("..", Place::Outside, text(ground.path("shop").parent().unwrap())),
        ("../shopping", Place::Outside, text(&ground.path("shopping"))),
        ("out", Place::Outside, text(&other)),
        ("out/new", Place::Outside, text(&other.join("new"))),
        ("out-file", Place::Outside, text(&other.join("file"))),
        ("dangling", Place::Outside, text(&other.join("not there"))),
        ("out/../shop/src", Place::Inside, "src".to_owned()),
        ("~/notes", Place::Outside, text(&ground.path("home/notes"))),
        ("~", Place::Outside, text(&ground.path("home"))),
        ("~other/notes", Place::Inside, "~other/notes".to_owned()),
        ("../added/x", Place::Added, text(&ground.path("added/x"))),
        ("../added/back/main.rs", Place::Inside, "src/main.rs".to_owned()),
        ("/etc/passwd", Place::Outside, "/etc/passwd".to_owned()),
        ("/../../etc/passwd", Place::Outside, "/etc/passwd".to_owned()),
    ] {
        let found = workspace.locate(written).unwrap();
        assert_eq!(
            (found.place, found.shown.as_str()),
            (place, shown.as_str()),
            "{written}"
        );
    }
}

#[test]
fn what_is_no_path_is_refused_and_named_in_short() {
    let ground = Ground::new();
    ground.link("shop/loop", "loop");
    ground.link("shop/a", "b/x");
    ground.link("shop/b", "a/y");
    let workspace = ground.workspace();
    let (long_name, long_path) = ("n".repeat(256), "d/".repeat(3000));
    for written in [
        "a\0b",
        "loop",
        "loop/below",
        "a",
        &long_name,
        &format!("new/{long_name}"),
        &long_path,
    ] {
        let error = workspace.locate(written).unwrap_err();
        assert!(matches!(error, Refused::Path(_)), "{written}: {error:?}");
        assert!(error.to_string().len() < 1000 && !error.to_string().contains('\0'));
    }
    assert_eq!(workspace.locate(&"n".repeat(255)).unwrap().place, Place::Inside);
}

#[test]
fn only_regular_files_are_read_and_nothing_is_waited_for() {
    let ground = Ground::new();
    ground.put("shop/text", "12345");
    ground.put("shop/binary", [0xff, 0, 0xfe]);
    ground.put("shop/empty", "");
    ground.put("other/file", "outside");
    pipe(&ground.path("shop/pipe"));
    let socket = std::os::unix::net::UnixListener::bind(ground.path("shop/socket")).unwrap();
    ground.link("shop/null", "/dev/null");
    ground.link("shop/status", "/proc/self/status");
    let workspace = ground.workspace();
    let read = |written: &str| workspace.read(&workspace.locate(written).unwrap(), 5);
    assert_eq!(read("text").unwrap(), b"12345");
    assert_eq!(read("binary").unwrap(), [0xff, 0, 0xfe]);
    assert_eq!(read("empty").unwrap(), b"");
    for (written, expected) in [
        ("absent", "Missing"),
        ("text/below", "Missing"),
        (".", "Directory"),
        ("..", "Directory"),
        ("pipe", "Special"),
        ("socket", "Special"),
        ("null", "Special"),
        ("/dev/zero", "Special"),
        ("/dev/tty", "Special"),
        ("status", "Special"),
        ("/proc/self/environ", "Special"),
        ("/proc/kmsg", "Special"),
        ("../other/file", "Huge"),
    ] {
        // Only root may open the kernel's log.
        let is_refused = written == "/proc/kmsg" && !rustix::process::geteuid().is_root();
        let expected = if is_refused { "Failed" } else { expected };
        let error = read(written).unwrap_err();
        assert!(format!("{error:?}").starts_with(expected), "{written}: {error:?}");
    }
    drop(socket);
    let huge = ground.put("shop/huge", "");
    fs::OpenOptions::new()
        .write(true)
        .open(huge)
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let error = read("huge").unwrap_err();
    assert!(
        matches!(error, Refused::Huge { bytes, .. } if bytes == 1 << 40),
        "{error:?}"
    );
}

#[test]
fn a_link_that_comes_after_the_look_is_not_followed() {
    let ground = Ground::new();
    ground.put("shop/src/main.rs", "inside");
    ground.put("other/main.rs", "outside");
    let workspace = ground.workspace();
    let located = workspace.locate("src/main.rs").unwrap();
    fs::rename(ground.path("shop/src"), ground.path("shop/old")).unwrap();
    ground.link("shop/src", ground.path("other"));
    assert!(matches!(workspace.read(&located, 100), Err(Refused::Stale(_))));
    let inner = Path::new("src/main.rs");
    // Where the kernel does it, and where it is done step by step.
    for found in [
        open::below(workspace.root(), inner, OFlags::RDONLY, Mode::empty()),
        open::stepwise(workspace.root(), inner, OFlags::RDONLY, Mode::empty()),
    ] {
        let error = found.unwrap_err().raw_os_error();
        assert!(matches!(error, Some(libc::ELOOP | libc::ENOTDIR)), "{error:?}");
    }
    let inner = Path::new("old/main.rs");
    for found in [
        open::below(workspace.root(), inner, OFlags::RDONLY, Mode::empty()),
        open::stepwise(workspace.root(), inner, OFlags::RDONLY, Mode::empty()),
    ] {
        assert!(found.is_ok());
    }
}

#[test]
fn secrets_are_hidden_by_name_in_any_spelling_and_behind_links() {
    let ground = Ground::new();
    ground.put("shop/config/prod", "");
    ground.put("shop/.env", "");
    ground.put("shop/keys/server.pem", "");
    ground.link("shop/harmless", ".env");
    ground.link("shop/.env.local", "config/prod");
    ground.link("shop/aws", "../home/.aws");
    fs::create_dir_all(ground.path("home/.aws")).unwrap();
    let workspace = ground.workspace();
    for (written, is_hidden) in [
        (".env", true),
        (".ENV", true),
        (".env.production", true),
        ("sub/.env", true),
        ("harmless", true),
        (".env.local", true),
        ("config/prod", true),
        ("environment", false),
        ("keys/server.pem", true),
        ("keys/server.PEM", true),
        ("keys/server.\u{212a}ey", true),
        ("keys/.\u{17f}\u{17f}h/id", true),
        ("src/key.rs", false),
        ("src/id_rsa.rs", false),
        ("src/id_map", false),
        ("deploy/id_ed25519", true),
        ("deploy/id_ed25519.pub", false),
        ("credentials.json", true),
        ("app/secrets.json", true),
        (".ssh/config", true),
        ("aws/config", true),
        ("~/.aws", true),
        ("~/.aws/credentials", true),
        ("~/.config/gh/hosts.yml", true),
        ("~/.config/nvim/init.lua", false),
        ("~/.npmrc", true),
        (".npmrc", false),
        (".aws/task.json", false),
        ("~/.docker/config.json", true),
        ("~/.docker/daemon.json", false),
        ("~/.config/sheaf/credentials.toml", true),
        ("~/.local/state/sheaf/mcp-tokens/tokens.json", true),
        ("/run/user/1000/bus", true),
        ("/run/docker.sock", true),
        ("/etc/ssl/private/server.key", true),
    ] {
        let found = match workspace.locate(written) {
            // Only root may look into this folder.
            Err(Refused::Failed { .. }) if written.starts_with("/etc/ssl/private/") => continue,
            found => found.unwrap(),
        };
        assert_eq!(found.place == Place::Hidden, is_hidden, "{written}");
        if is_hidden {
            assert!(matches!(workspace.read(&found, 10), Err(Refused::Hidden(_))));
        }
    }
}

#[test]
fn the_user_can_hide_more_and_show_some() {
    let ground = Ground::new();
    let workspace = ground.hiding(&["*.tfvars", "!.env.example", "/private", "!~/.npmrc", "~/notes/", "!["]);
    for (written, is_hidden) in [
        ("live.tfvars", true),
        (".env.example", false),
        (".env", true),
        ("private/x", true),
        ("sub/private/x", false),
        ("~/.npmrc", false),
        ("~/notes/x", true),
        ("~/.netrc", true),
    ] {
        let found = workspace.locate(written).unwrap();
        assert_eq!(found.place == Place::Hidden, is_hidden, "{written}");
    }
}

#[test]
fn ignore_files_hide_as_git_would() {
    let ground = Ground::new();
    ground.put(
        "shop/.cursorignore",
        "\u{feff}# ours\r\nprivate/\r\n*.secret\r\n!open.secret\r\n/top\r\n",
    );
    ground.put("shop/lib/.sheafignore", "!seen.secret\nhere\n");
    ground.put("shop/lib/.cursorignore", "seen.secret\nhere\n!here\n");
    ground.put("shop/private/.sheafignore", "!*");
    ground.put("shop/private/x", "");
    ground.put(".cursorignore", "*");
    for folder in ["shop/lib/top", "shop/top", "shop/sub/private"] {
        fs::create_dir_all(ground.path(folder)).unwrap();
    }
    ground.put("added/.sheafignore", "x");
    ground.put("other/.sheafignore", "x");
    ground.put("other/x", "");
    let workspace = ground.workspace();
    for (written, is_hidden) in [
        ("src/main.rs", false),
        ("private/x", true),
        ("sub/private/x", true),
        ("sub/private", true),
        ("private.rs", false),
        ("a.secret", true),
        ("open.secret", false),
        ("lib/a.secret", true),
        ("lib/seen.secret", false),
        ("lib/here", true),
        ("top/x", true),
        ("lib/top", false),
        ("../added/x", true),
        ("../added/y", false),
        ("../other/x", false),
        (".cursorignore", false),
    ] {
        let found = workspace.locate(written).unwrap();
        assert_eq!(found.place == Place::Hidden, is_hidden, "{written}");
    }
}

#[test]
fn an_ignore_file_that_cannot_be_used_hides_everything_beside_it() {
    let ground = Ground::new();
    fs::create_dir(ground.path("shop/.sheafignore")).unwrap();
    let place = || ground.workspace().locate("x").unwrap().place;
    assert_eq!(place(), Place::Inside, "a folder is no ignore file");
    ground.link("shop/loop", "loop/x");
    let root = ground.path("shop");
    assert!(!hidden::is_ignored(Some(root.clone()), &root.join("loop/x"), false));
    pipe(&ground.path("shop/.cursorignore"));
    assert_eq!(place(), Place::Hidden);
    // Nor one with a pattern that cannot be read: nobody knows what it should hide.
    fs::remove_file(ground.path("shop/.cursorignore")).unwrap();
    for (text, expected) in [
        (&b"# caf\xe9\nprivate\n"[..], Place::Inside),
        (b"priv\xe9e\n", Place::Hidden),
        (b"x/[z-a]\nprivate\n", Place::Hidden),
        (b"private\r\n\n   \n!private/a\n", Place::Inside),
    ] {
        ground.put("shop/.cursorignore", text);
        assert_eq!(place(), expected, "{}", text.escape_ascii());
        // Git's says nothing then.
        fs::remove_file(ground.path("shop/.cursorignore")).unwrap();
        ground.put("shop/.gitignore", text);
        assert_eq!(place(), Place::Inside, "{}", text.escape_ascii());
    }
}

#[test]
fn what_a_link_leads_to_is_what_the_link_is_called_at_every_depth_and_in_every_folder() {
    let ground = Ground::new();
    for path in [
        "shop/ci/x.yml",
        "shop/devvars",
        "shop/a/x",
        "added/hooks/x",
        "added/vars",
        "shop/.github/x",
    ] {
        ground.put(path, "x");
    }
    ground.link("shop/.github/workflows", "../ci");
    ground.link("shop/a/.env", "../devvars");
    ground.link("shop/a/.husky", ground.path("added/hooks"));
    ground.link("shop/a/server.key", ground.path("added/vars"));
    ground.link("shop/.vscode", "later");
    ground.link("shop/.idea", ".");
    let workspace = ground.workspace();
    let place = |written: &str| {
        let found = workspace.locate(written).unwrap();
        (found.place == Place::Hidden, found.is_protected)
    };
    // Links at the top are known from the start.
    assert_eq!(place("later/tasks.json"), (false, true));
    workspace.commands().ground().look();
    for (written, expected) in [
        ("ci/x.yml", (false, true)),
        ("ci/new.yml", (false, true)),
        ("devvars", (true, false)),
        ("../added/hooks/x", (false, true)),
        ("../added/vars", (true, false)),
        ("later/tasks.json", (false, true)),
        ("a/x", (false, false)),
    ] {
        assert_eq!(place(written), expected, "{written}");
    }
    assert_eq!(walked(&Arc::new(workspace)), ".github/x a/x ci/x.yml");
}

#[test]
fn a_walk_sees_what_a_search_should() {
    let ground = Ground::new();
    for name in [
        "src/main.rs",
        "src/.hidden.rs",
        "target/debug/out",
        "src/generated.rs",
        ".env",
        ".git/config",
        "private/x",
        "deep/a/b/x.rs",
        "deep/a/private/y",
        "sub/.git",
        "sub/file",
        "excluded",
        ".github/workflows/ci.yml",
    ] {
        ground.put(&format!("shop/{name}"), "");
    }
    ground.put("shop/.gitignore", "target/\n");
    ground.put("shop/src/.gitignore", "generated.rs\n");
    ground.put("shop/.ignore", "sub\n");
    ground.put("shop/.cursorignore", "private\n");
    ground.put("shop/.git/info/exclude", "excluded\n");
    ground.put("other/far", "");
    ground.link("shop/link", ground.path("other"));
    let workspace = ground.workspace();
    let walk = |written: &str| {
        let walker = workspace
            .walker(&workspace.locate(written).unwrap(), Bounds::until(|| false))
            .unwrap();
        let mut found: Vec<_> = walker
            .entries()
            .map(Result::unwrap)
            .filter(|it| it.file_type().is_some_and(|it| !it.is_dir()))
            .map(|it| {
                it.path()
                    .strip_prefix(workspace.root())
                    .unwrap()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        found.sort();
        found
    };
    let all = [
        ".cursorignore",
        ".github/workflows/ci.yml",
        ".gitignore",
        ".ignore",
        "deep/a/b/x.rs",
        "link",
        "src/.gitignore",
        "src/.hidden.rs",
        "src/main.rs",
        "sub/file",
    ];
    assert_eq!(walk("."), all);
    assert_eq!(walk("deep"), ["deep/a/b/x.rs"]);
    assert_eq!(walk("target"), ["target/debug/out"], "what is named is shown");
    assert!(matches!(
        workspace.walker(&workspace.locate("private").unwrap(), Bounds::until(|| false)),
        Err(Refused::Hidden(_))
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// The system's own way of following links, wherever it has an answer.
    #[test]
    fn a_path_that_exists_leads_where_the_system_says(
        links in prop::collection::vec((part(), prop::collection::vec(part(), 1..4)), 0..5),
        written in prop::collection::vec(part(), 1..7),
    ) {
        let ground = Ground::new();
        for folder in ["shop/a/b", "shop/b", "other/a"] {
            fs::create_dir_all(ground.path(folder)).unwrap();
        }
        ground.put("shop/a/c", "");
        ground.put("other/c", "");
        for (at, (folder, target)) in links.iter().enumerate() {
            symlink(target.join("/"), ground.path("shop").join(folder).join(format!("l{at}"))).ok();
        }
        let workspace = ground.workspace();
        let written = written.join("/");
        let plain = workspace.root().join(&written);
        let found = workspace.locate(&written);
        match plain.canonicalize() {
            Ok(expected) => {
                let found = found.unwrap();
                let is_inside = expected.starts_with(workspace.root());
                prop_assert_eq!(&found.path, &expected);
                prop_assert_eq!(found.place == Place::Inside, is_inside, "{}", found.shown);
            }
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => prop_assert!(found.is_err()),
            // What is not there is judged by where it would be.
            Err(_) => {
                if let Ok(found) = found {
                    prop_assert_eq!(found.place == Place::Inside, found.path.starts_with(workspace.root()));
                }
            }
        }
    }

    #[test]
    fn any_text_leads_somewhere_or_is_refused(written in any::<String>()) {
        let ground = Ground::new();
        let workspace = ground.workspace();
        if let Ok(found) = workspace.locate(&written) {
            prop_assert!(found.path.is_absolute());
            prop_assert!(!found.path.components().any(|it| matches!(it, Component::ParentDir | Component::CurDir)));
            // What was found is found again.
            let again = workspace.located(&found.path).unwrap();
            prop_assert_eq!(again.path, found.path);
        }
    }
}

fn part() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "a", "b", "c", ".", "..", "l0", "l1", "l2", "l3", "l4", "shop", "other", "new",
    ])
    .prop_map(str::to_owned)
}

/// Names of the files that a walk over the workspace lists, sorted. Panics if it takes longer than a minute.
fn walked(workspace: &Arc<Workspace>) -> String {
    let (sender, receiver) = std::sync::mpsc::channel();
    let own = Arc::clone(workspace);
    std::thread::spawn(move || {
        let root = own.locate("").unwrap();
        let walker = own.walker(&root, Bounds::until(|| false)).unwrap();
        let mut names: Vec<_> = walker
            .entries()
            .flatten()
            .filter(|it| it.file_type().is_some_and(|it| it.is_file()))
            .map(|it| {
                it.path()
                    .strip_prefix(own.root())
                    .unwrap()
                    .to_string_lossy()
                    .into_owned()
            })
            .filter(|it| !it.contains("ignore"))
            .collect();
        names.sort();
        sender.send(names.join(" ")).ok();
    });
    receiver
        .recv_timeout(std::time::Duration::from_mins(1))
        .expect("the walk ends")
}

#[test]
fn an_ignore_file_that_is_no_plain_file_is_not_opened() {
    let all = "shop.rs src/cart.rs src/deep/tax.rs";
    for (name, expected) in [
        (".gitignore", all),
        ("src/.gitignore", all),
        ("src/deep/.gitignore", all),
        (".git/info/exclude", all),
        // Where what hides cannot be read, everything below is hidden.
        (".cursorignore", ""),
        ("src/.sheafignore", "shop.rs"),
    ] {
        for kind in ["outside", "zero", "tty", "pipe", "long"] {
            let ground = Ground::new();
            for file in all.split(' ') {
                ground.put(&format!("shop/{file}"), "x");
            }
            ground.put("shop/.git/HEAD", "ref: refs/heads/main");
            ground.put("other/rules", "*.rs\n");
            fs::create_dir_all(ground.path("shop/.git/info")).unwrap();
            let place = format!("shop/{name}");
            match kind {
                "outside" => ground.link(&place, ground.path("other/rules")),
                "zero" => ground.link(&place, "/dev/zero"),
                "tty" => ground.link(&place, "/dev/tty"),
                "pipe" => pipe(&ground.path(&place)),
                _ => drop(ground.put(&place, "*.rs\n".repeat(400_000))),
            }
            let workspace = Arc::new(ground.workspace());
            assert_eq!(walked(&workspace), expected, "{name} {kind}");
        }
    }
}

#[test]
fn ignore_files_of_many_folders_are_read_up_to_a_limit() {
    let ground = Ground::new();
    let text = format!("*.rs\n{}", "# nothing else\n".repeat(17_000));
    for at in 0..20 {
        ground.put(&format!("shop/d{at}/.gitignore"), &text);
        ground.put(&format!("shop/d{at}/x.rs"), "");
    }
    // 4 MiB are read, the others say nothing.
    let shown = walked(&Arc::new(ground.workspace())).split(' ').count();
    assert_eq!(shown, 4);
}

#[test]
fn a_walk_ends_at_its_bounds_and_says_so() {
    let ground = Ground::new();
    for at in 0..300 {
        ground.put(&format!("shop/a/b/{at}"), "");
    }
    let workspace = ground.workspace();
    let root = workspace.locate("").unwrap();
    let count = |bounds: Bounds| {
        let walk = workspace.walker(&root, bounds).unwrap();
        let alone = walk.entries().flatten().count();
        let is_cut = walk.is_cut();
        let several = AtomicU32::new(0);
        let parallel = workspace.walker(&root, Bounds::until(|| false).entries(50)).unwrap();
        parallel.visit(2, || {
            Box::new(|_| {
                several.fetch_add(1, Ordering::Relaxed);
                ignore::WalkState::Continue
            })
        });
        assert!(parallel.is_cut() && several.into_inner() <= 51);
        (alone, is_cut)
    };
    assert_eq!(count(Bounds::until(|| false)), (303, false));
    assert_eq!(count(Bounds::until(|| false).entries(100)), (101, true));
    assert_eq!(count(Bounds::until(|| true)), (1, true));
    assert_eq!(count(Bounds::within(std::time::Duration::ZERO)), (1, true));
    // After that nothing is read any more, however much there is in the folder that is open.
    let asked = Arc::new(AtomicU32::new(0));
    let counted = || {
        let asked = Arc::clone(&asked);
        Bounds::until(move || asked.fetch_add(1, Ordering::Relaxed) > 0)
    };
    for at in 0..3000 {
        ground.put(&format!("shop/wide/{at}"), "");
    }
    let wide = workspace.locate("wide").unwrap();
    let walk = workspace.walker(&wide, counted()).unwrap();
    assert!(walk.entries().flatten().count() < 40 && walk.is_cut());
    assert_eq!(asked.swap(0, Ordering::Relaxed), 2);
    let walk = workspace.walker(&wide, counted()).unwrap();
    let seen = AtomicU32::new(0);
    walk.visit(1, || {
        Box::new(|_| {
            seen.fetch_add(1, Ordering::Relaxed);
            ignore::WalkState::Continue
        })
    });
    assert!(walk.is_cut() && seen.into_inner() < 40);
    assert_eq!(asked.swap(0, Ordering::Relaxed), 2);
}

#[test]
fn an_ignore_file_may_be_a_link_in_the_workspace_and_a_repository_may_be_elsewhere() {
    let ground = Ground::new();
    ground.put("shop/rules", "private/\n");
    ground.link("shop/.cursorignore", "rules");
    ground.put("shop/private/a.rs", "");
    ground.put("shop/b.rs", "");
    // A worktree: git's folder is elsewhere, and its exclude file counts.
    ground.put("other/main/.git/worktrees/w/commondir", "../..\n");
    ground.put("other/main/.git/worktrees/w/HEAD", "x");
    ground.put("other/main/.git/info/exclude", "out.rs\n");
    ground.put("shop/out.rs", "");
    ground.put(
        "shop/.git",
        format!("gitdir: {}\n", ground.path("other/main/.git/worktrees/w").display()),
    );
    assert_eq!(walked(&Arc::new(ground.workspace())), "b.rs rules");
}

#[test]
fn a_tool_asks_before_it_changes_what_gits_configuration_names() {
    let ground = Ground::new();
    ground.put(
        "shop/.git/config",
        "[core]\n\thooksPath = hooks\n[include]\n\tpath = ../more.cfg\n",
    );
    let workspace = ground.workspace();
    let is_protected = |written: &str| workspace.locate(written).unwrap().is_protected;
    for (written, expected) in [
        ("hooks/pre-commit", true),
        ("more.cfg", true),
        ("other.cfg", false),
        ("attributes", false),
        ("../added/.codex/config.toml", true),
        ("a/b/c/d/.cargo/config.toml", true),
        ("a/b/c/d/config.toml", false),
    ] {
        assert_eq!(is_protected(written), expected, "{written}");
    }
    // What is said later counts from then on.
    ground.put("shop/more.cfg", "[core]\n\tattributesFile = attributes\n");
    assert!(is_protected("attributes"));
    ground.put("shop/.git/config", "");
    assert!(!is_protected("attributes") && !is_protected("hooks/pre-commit"));
}

#[test]
fn this_programs_own_folders_and_its_keys_are_held_wherever_they_are() {
    let ground = Ground::new();
    ground.put("shop/keys/model", "secret");
    ground.put("shop/a.rs", "");
    // As with an XDG_CONFIG_HOME in the workspace; two of the folders do not exist.
    ground.put("shop/conf/sheaf/config.toml", "");
    let mut settings = Settings::default();
    let provider = crate::config::Provider {
        key: crate::config::KeySource::File(ground.path("shop/keys/model")),
        ..Default::default()
    };
    settings.providers.insert("mine".to_owned(), provider);
    settings.approvals.program = Some("sh tools/yes.sh --all".to_owned());
    let command = |words: &[&str]| crate::config::KeySource::Command(words.iter().map(|it| (*it).to_owned()).collect());
    settings.gateway.token = command(&["sh", "-c", "tools/token.sh --print"]);
    settings.index.cache_token = command(&["python3", "~/tools/cache.py"]);
    let server = |network| crate::config::McpServer {
        command: Some("python3".to_owned()),
        args: vec![format!("tools/server-{network}.py")],
        network,
        ..Default::default()
    };
    settings.mcp.insert("one".to_owned(), server(true));
    settings.mcp.insert("two".to_owned(), server(false));
    for file in ["yes.sh", "token.sh", "cache.py", "server-true.py", "server-false.py"] {
        ground.put(&format!("shop/tools/{file}"), "cat");
    }
    let paths = Paths {
        config: ground.path("shop/conf/sheaf"),
        data: ground.path("shop/data/sheaf"),
        state: ground.path("other/state"),
        cache: ground.path("added/cache"),
    };
    let fence = Fence {
        home: Some(ground.path("shop")),
        ..Fence::configured(&settings, Some(&paths), vec![ground.path("added")])
    };
    let workspace = Workspace::fenced(&ground.path("shop"), fence).unwrap();
    for (written, is_protected) in [
        ("conf/sheaf/config.toml", true),
        ("conf/sheaf/rules/new.md", true),
        ("conf/other", false),
        ("data/sheaf/sessions/x", true),
        ("../added/cache/x", true),
        (".gitconfig", true),
        (".config/git/config", true),
        ("a.rs", false),
        // It decides what commands may do.
        ("tools/yes.sh", true),
        ("tools/no.sh", false),
        // They print keys, or have the network.
        ("tools/token.sh", true),
        ("tools/cache.py", true),
        ("tools/server-true.py", true),
        ("tools/server-false.py", false),
    ] {
        assert_eq!(
            workspace.locate(written).unwrap().is_protected,
            is_protected,
            "{written}"
        );
    }
    assert_eq!(workspace.locate("keys/model").unwrap().place, Place::Hidden);
    assert_eq!(workspace.locate("../other/state/keys/x").unwrap().place, Place::Hidden);
    let held = workspace.commands().ground();
    let policy = held.policy(&held.look(), policy::Tier::Full, &[], false, None);
    for inner in ["shop/conf/sheaf", "shop/data/sheaf", "added/cache", "shop/tools/yes.sh"] {
        assert!(
            policy.read_only.contains(&ground.path(inner)),
            "{inner}: {:?}",
            policy.read_only
        );
    }
    assert!(policy.hidden.contains(&ground.path("shop/keys/model")));
}

#[test]
fn what_makes_a_folder_a_repository_is_protected() {
    let ground = Ground::new();
    for file in [
        "shop/src/config",
        "shop/half/HEAD",
        "shop/b.git/HEAD",
        "shop/b.git/refs/x",
        "shop/d/objects/x",
    ] {
        ground.put(file, "");
    }
    let workspace = ground.workspace();
    for (written, expected) in [
        ("src/config", false),
        ("src/HEAD", false),
        ("half/config", false),
        ("half/refs/x", true),
        ("half/objects/pack/x", true),
        ("b.git/hooks/post-receive", true),
        ("b.git/config", true),
        ("b.git/description", false),
        ("d/HEAD", true),
        ("d/other", false),
    ] {
        assert_eq!(workspace.locate(written).unwrap().is_protected, expected, "{written}");
    }
}

#[test]
fn settings_that_are_links_into_the_workspace_are_held() {
    let ground = Ground::new();
    for file in [
        "shop/settings.toml",
        "shop/shell/bashrc",
        "shop/claude/settings.json",
        "shop/rules/one.md",
        "shop/a.rs",
    ] {
        ground.put(file, "");
    }
    ground.put("home/.claude/x", "");
    ground.put("conf/sheaf/themes/x.toml", "");
    for (link, target) in [
        ("conf/sheaf/config.toml", "shop/settings.toml"),
        // It leads nowhere yet.
        ("conf/sheaf/keymap.toml", "shop/keys.toml"),
        ("conf/sheaf/rules", "shop/rules"),
        ("conf/sheaf/themes/own.toml", "shop/own.toml"),
        ("home/.bashrc", "shop/shell/bashrc"),
        ("home/.claude/settings.json", "shop/claude/settings.json"),
    ] {
        ground.link(link, ground.path(target));
    }
    let paths = Paths {
        config: ground.path("conf/sheaf"),
        data: ground.path("data"),
        state: ground.path("state"),
        cache: ground.path("cache"),
    };
    let fence = Fence {
        home: Some(ground.path("home")),
        ..Fence::configured(&Settings::default(), Some(&paths), Vec::new())
    };
    let workspace = Workspace::fenced(&ground.path("shop"), fence).unwrap();
    let ways = [
        ("settings.toml", true),
        ("keys.toml", true),
        ("rules/new.md", true),
        ("own.toml", true),
        ("shell/bashrc", true),
        ("claude/settings.json", true),
        ("a.rs", false),
        ("shell/other", false),
    ];
    for is_looked_at in [false, true] {
        if is_looked_at {
            workspace.commands().ground().look();
        }
        for (written, expected) in ways {
            let is_protected = workspace.locate(written).unwrap().is_protected;
            assert_eq!(is_protected, expected, "{written}, looked at: {is_looked_at}");
        }
    }
    let held = workspace.commands().ground();
    let look = held.look();
    let policy = held.policy(&look, policy::Tier::Full, &[], false, None);
    for inner in [
        "shop/settings.toml",
        "shop/rules",
        "shop/shell/bashrc",
        "shop/claude/settings.json",
    ] {
        assert!(
            policy.read_only.contains(&ground.path(inner)),
            "{inner}: {:?}",
            policy.read_only
        );
    }
    for missing in ["shop/keys.toml", "shop/own.toml"] {
        assert!(
            held.meaningful(&look, false).contains(&ground.path(missing)),
            "{missing}"
        );
    }
}
