use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    sync::Arc,
};

use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;
use crate::{
    protocol::Operation,
    sandbox::{Change, Seen, Workspace, workspace::tests::Ground},
};

struct Bench {
    ground: Ground,
    workspace: Workspace,
    seen: Seen,
}

const EVERYTHING: &dyn Fn(&str) -> bool = &|_| true;

impl Bench {
    fn new() -> Self {
        let ground = Ground::new();
        Self {
            workspace: ground.workspace(),
            seen: Seen::keeping(Checkpoints::open(&ground.path("state"), "talk").unwrap()),
            ground,
        }
    }

    fn store(&self) -> &Checkpoints {
        self.seen.checkpoints().unwrap()
    }

    /// Makes a file what it shall be, as a tool would.
    fn set(&self, call: &str, name: &str, new: Option<&str>) {
        let file = self.workspace.locate(name).unwrap();
        let old = self.workspace.read(&file, 1000).ok().map(Arc::from);
        let change = Change {
            file,
            operation: match (&old, new) {
                (_, None) => Operation::Delete,
                (None, Some(_)) => Operation::Create,
                (Some(_), Some(_)) => Operation::Edit,
            },
            to: None,
            old,
            new: new.map(|it| Arc::from(it.as_bytes())),
            hunks: Vec::new(),
            cell: None,
        };
        self.workspace.commit_for(&self.seen, call, &[change]).unwrap();
    }

    /// Does to the workspace what a command would.
    fn command(&self, call: &str, run: impl FnOnce(&Path)) -> usize {
        self.store().before_command(&self.workspace);
        run(&self.ground.path("shop"));
        self.store().after_command(&self.workspace, call).len()
    }

    fn plan(&self, which: Which<'_>) -> Plan {
        self.store().plan(&self.workspace, which, EVERYTHING)
    }

    fn turn(&self, which: Which<'_>) -> Done {
        self.store()
            .carry_out(&self.workspace, self.plan(which), false)
            .unwrap()
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.ground.path("shop").join(name)).ok()
    }

    /// Everything below the workspace: what it is, its mode, its bytes or where it leads.
    fn all(&self) -> Vec<String> {
        let root = self.ground.path("shop");
        let mut all = Vec::new();
        let mut left = vec![root.clone()];
        while let Some(folder) = left.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                let about = fs::symlink_metadata(&path).unwrap();
                let shown = path.strip_prefix(&root).unwrap().display().to_string();
                let mode = about.permissions().mode() & 0o7777;
                all.push(if about.is_symlink() {
                    format!("{shown} -> {}", fs::read_link(&path).unwrap().display())
                } else if about.is_dir() {
                    left.push(path);
                    format!("{shown}/ {mode:o}")
                } else {
                    format!("{shown} {mode:o} {:?}", fs::read(&path).unwrap())
                });
            }
        }
        all.sort();
        all
    }
}

#[test]
fn each_turn_can_be_taken_back_and_that_too() {
    let bench = Bench::new();
    bench.ground.put("shop/a", "0");
    bench.ground.put("shop/b", "0");
    fs::set_permissions(bench.ground.path("shop/b"), fs::Permissions::from_mode(0o755)).unwrap();
    let zero = bench.all();
    bench.seen.begin(1);
    bench.set("c1", "a", Some("1"));
    bench.set("c2", "a", Some("2"));
    bench.set("c3", "new/file", Some("x"));
    let one = bench.all();
    bench.seen.begin(2);
    bench.set("c4", "a", Some("3"));
    bench.set("c5", "b", None);
    let two = bench.all();
    bench.seen.begin(3);
    bench.set("c6", "a", Some("4"));
    let three = bench.all();

    assert_eq!(bench.turn(Which::Turn(3)).left, Vec::<String>::new());
    assert_eq!(bench.all(), two);
    bench.turn(Which::Turn(2));
    assert_eq!(bench.all(), one);
    bench.turn(Which::LastAgain);
    assert_eq!(bench.all(), two);
    bench.turn(Which::LastAgain);
    assert_eq!(bench.all(), three);
    assert_eq!(bench.plan(Which::LastAgain), Plan::default());

    let done = bench.turn(Which::Since(2));
    assert_eq!(bench.all(), one);
    let calls: Vec<_> = done.off.iter().map(|it| (it.call.as_str(), it.is_whole)).collect();
    assert_eq!(calls, [("c4", true), ("c5", true), ("c6", true)]);
    bench.turn(Which::Since(1));
    assert_eq!(bench.all(), zero);
    bench.turn(Which::LastAgain);
    bench.turn(Which::LastAgain);
    assert_eq!(bench.all(), three);
    let turns = bench.store().turns();
    let counts: Vec<_> = turns
        .iter()
        .map(|it| (it.turn, it.paths.len(), it.undone.len()))
        .collect();
    assert_eq!(counts, [(1, 3, 0), (2, 2, 0), (3, 1, 0)], "the folder counts");
}

#[test]
fn one_call_is_taken_back_where_nothing_came_after_it() {
    let bench = Bench::new();
    bench.ground.put("shop/a", "0");
    bench.seen.begin(1);
    bench.set("c1", "a", Some("1"));
    bench.set("c2", "b", Some("1"));
    bench.seen.begin(2);
    bench.set("c3", "a", Some("2"));
    let call = |call| Which::Call { turn: 1, call };
    let plan = bench.plan(call("c1"));
    assert_eq!(plan.files[0].clash, Some(Clash::Turn(2)));
    assert_eq!(bench.turn(call("c1")).left, ["a"]);
    assert_eq!(bench.text("a").as_deref(), Some("2"));
    bench.turn(call("c2"));
    assert_eq!(bench.text("b"), None);
    assert_eq!(bench.plan(call("c2")).files, [], "already undone");
    bench.turn(Which::CallAgain { turn: 1, call: "c2" });
    assert_eq!(bench.text("b").as_deref(), Some("1"));
    // Whoever wants it nevertheless gets it.
    let plan = bench.plan(call("c1"));
    bench.store().carry_out(&bench.workspace, plan, true).unwrap();
    assert_eq!(bench.text("a").as_deref(), Some("0"));
}

#[test]
fn what_others_changed_since_is_said_and_stays() {
    let bench = Bench::new();
    for name in ["a", "b", "c", "d"] {
        bench.ground.put(&format!("shop/{name}"), "0");
    }
    bench.seen.begin(1);
    for name in ["a", "b", "c", "d"] {
        bench.set("c1", name, Some("1"));
    }
    bench.ground.put("shop/a", "mine");
    fs::remove_file(bench.ground.path("shop/b")).unwrap();
    fs::set_permissions(bench.ground.path("shop/c"), fs::Permissions::from_mode(0o755)).unwrap();
    bench.ground.put("shop/d", "0");
    let plan = bench.plan(Which::Turn(1));
    let clashes: Vec<_> = plan
        .files
        .iter()
        .map(|it| (it.shown.as_str(), it.clash, it.is_done()))
        .collect();
    assert_eq!(
        clashes,
        [
            ("a", Some(Clash::Foreign), false),
            ("b", Some(Clash::Foreign), false),
            ("c", None, false),
            ("d", None, true)
        ]
    );
    let done = bench.turn(Which::Turn(1));
    assert_eq!(done.left, ["a", "b"]);
    assert_eq!(
        (bench.text("a").as_deref(), bench.text("c").as_deref()),
        (Some("mine"), Some("0"))
    );
    let mode = fs::metadata(bench.ground.path("shop/c")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755, "a mode that somebody gave it since stays");
}

/// Somebody writes while the plan is looked at: what was not shown is not overwritten, not even by who wants to overwrite.
#[test]
fn what_is_written_between_the_plan_and_the_undo_stays() {
    type Edit = fn(&Path);
    let edits: [(&str, Edit); 4] = [
        ("b", |path| fs::write(path, "theirs").unwrap()),
        ("b", |path| fs::remove_file(path).unwrap()),
        ("b", |path| {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }),
        ("gone", |path| fs::write(path, "theirs").unwrap()),
    ];
    for (name, edit) in edits {
        for over in [false, true] {
            let bench = Bench::new();
            for file in ["a", "b", "gone"] {
                bench.ground.put(&format!("shop/{file}"), "0");
            }
            bench.seen.begin(1);
            bench.set("c1", "a", Some("1"));
            bench.set("c2", "b", Some("1"));
            bench.set("c3", "gone", None);
            let plan = bench.plan(Which::Turn(1));
            edit(&bench.ground.path("shop").join(name));
            let before = bench.all();
            let refused = bench.store().carry_out(&bench.workspace, plan, over);
            assert!(
                matches!(refused, Err(Refused::Stale(it)) if it == name),
                "{name} {over}"
            );
            assert_eq!(bench.all(), before, "{name} {over}: nothing was undone");
            // The next plan knows of it.
            let plan = bench.plan(Which::Turn(1));
            let clashing: Vec<_> = plan.files.iter().filter(|it| it.clash.is_some()).collect();
            assert!(clashing.iter().all(|it| it.shown == name), "{name} {clashing:?}");
        }
    }
}

#[test]
fn what_somebody_wrote_between_two_turns_would_be_lost_and_is_said() {
    let bench = Bench::new();
    bench.ground.put("shop/a", "0");
    bench.seen.begin(1);
    bench.set("c1", "a", Some("1"));
    bench.ground.put("shop/a", "1 and mine");
    bench.seen.begin(2);
    bench.set("c2", "a", Some("2"));
    let plan = bench.plan(Which::Since(1));
    assert_eq!(plan.files[0].clash, Some(Clash::Foreign));
    assert_eq!(bench.plan(Which::Since(2)).files[0].clash, None);
}

#[test]
fn all_but_some() {
    let bench = Bench::new();
    bench.seen.begin(1);
    bench.set("c1", "a", Some("1"));
    bench.set("c2", "b", Some("1"));
    let plan = bench
        .store()
        .plan(&bench.workspace, Which::Turn(1), &|path| path != "b");
    bench.store().carry_out(&bench.workspace, plan, false).unwrap();
    assert_eq!((bench.text("a"), bench.text("b").as_deref()), (None, Some("1")));
    let turns = bench.store().turns();
    assert_eq!((turns[0].paths.len(), turns[0].undone.len()), (2, 1));
}

#[test]
fn what_a_command_did_is_taken_back_whatever_it_was() {
    let bench = Bench::new();
    bench.ground.put("shop/.gitignore", "target\n");
    bench.ground.put("shop/src/a", "a");
    bench.ground.put("shop/src/deep/b", "b");
    bench.ground.put("shop/run", "x");
    bench.ground.link("shop/link", "src/a");
    let before = bench.all();
    bench.seen.begin(1);
    let count = bench.command("c1", |root| {
        fs::write(root.join("src/a"), "changed").unwrap();
        fs::rename(root.join("src/deep"), root.join("moved")).unwrap();
        fs::set_permissions(root.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::remove_file(root.join("link")).unwrap();
        symlink("run", root.join("link")).unwrap();
        fs::create_dir_all(root.join("new/inner")).unwrap();
        fs::write(root.join("new/inner/c"), "c").unwrap();
        fs::create_dir(root.join("target")).unwrap();
        fs::write(root.join("target/out"), "built").unwrap();
    });
    // a, deep, deep/b, moved, moved/b, run, link, new, inner, c; what git ignores is build output.
    assert_eq!(count, 10);
    let after = bench.all();
    bench.turn(Which::Call { turn: 1, call: "c1" });
    let without_output = |all: Vec<String>| {
        all.into_iter()
            .filter(|it| !it.starts_with("target"))
            .collect::<Vec<_>>()
    };
    assert_eq!(without_output(bench.all()), before);
    bench.turn(Which::LastAgain);
    assert_eq!(bench.all(), after);
}

#[test]
fn what_changed_between_commands_is_nobodys_doing() {
    let bench = Bench::new();
    bench.ground.put("shop/a", "0");
    bench.seen.begin(1);
    assert_eq!(bench.command("c1", |_| {}), 0);
    bench.ground.put("shop/a", "mine");
    bench.ground.put("shop/b", "mine");
    assert_eq!(bench.command("c2", |root| fs::write(root.join("b"), "its").unwrap()), 1);
    bench.turn(Which::Turn(1));
    assert_eq!(
        (bench.text("a").as_deref(), bench.text("b").as_deref()),
        (Some("mine"), Some("mine"))
    );
}

#[test]
fn a_file_that_becomes_a_folder_and_the_other_way_round() {
    let bench = Bench::new();
    bench.ground.put("shop/a", "file");
    bench.ground.put("shop/b/inner", "text");
    let before = bench.all();
    bench.seen.begin(1);
    bench.command("c1", |root| {
        fs::remove_file(root.join("a")).unwrap();
        fs::create_dir(root.join("a")).unwrap();
        fs::write(root.join("a/inner"), "text").unwrap();
        fs::remove_dir_all(root.join("b")).unwrap();
        fs::write(root.join("b"), "file").unwrap();
    });
    let after = bench.all();
    bench.turn(Which::Turn(1));
    assert_eq!(bench.all(), before);
    bench.turn(Which::LastAgain);
    assert_eq!(bench.all(), after);
}

#[test]
fn a_folder_that_became_a_link_is_a_folder_again_with_what_was_in_it() {
    let bench = Bench::new();
    bench.ground.put("shop/d/e", "text");
    bench.ground.put("shop/other/e", "other");
    let before = bench.all();
    bench.seen.begin(1);
    bench.command("c1", |root| {
        fs::remove_dir_all(root.join("d")).unwrap();
        symlink("other", root.join("d")).unwrap();
    });
    let after = bench.all();
    assert_eq!(bench.turn(Which::Turn(1)).left, Vec::<String>::new());
    assert_eq!(bench.all(), before);
    bench.turn(Which::LastAgain);
    assert_eq!(bench.all(), after);
}

#[test]
fn an_empty_folder_comes_back_behind_a_link_that_leads_nowhere() {
    let bench = Bench::new();
    bench.seen.begin(1);
    bench.command("c1", |root| fs::create_dir_all(root.join("d/e")).unwrap());
    let before = bench.all();
    bench.seen.begin(2);
    bench.command("c2", |root| {
        fs::remove_dir_all(root.join("d")).unwrap();
        symlink("a", root.join("d")).unwrap();
    });
    assert_eq!(bench.turn(Which::Turn(2)).left, Vec::<String>::new());
    assert_eq!(bench.all(), before);
    bench.turn(Which::LastAgain);
    assert_eq!(bench.turn(Which::Since(1)).left, Vec::<String>::new());
    assert!(bench.all().is_empty(), "{:?}", bench.all());
}

#[test]
fn an_ignore_file_that_changes_makes_and_removes_nothing() {
    let bench = Bench::new();
    bench.ground.put("shop/.gitignore", "b\n");
    bench.ground.put("shop/a", "a");
    bench.ground.put("shop/b", "b");
    bench.seen.begin(1);
    bench.command("c0", |_| {});
    // A file system's clock must have moved on, so that `b` is older than the command.
    let made = fs::metadata(bench.ground.path("shop/b")).unwrap().modified().unwrap();
    while made.elapsed().is_ok_and(|it| it.as_millis() < 50) {
        std::thread::yield_now();
    }
    let count = bench.command("c1", |root| fs::write(root.join(".gitignore"), "a\n").unwrap());
    assert_eq!(count, 1);
    bench.turn(Which::Turn(1));
    assert_eq!(
        (bench.text("a").as_deref(), bench.text("b").as_deref()),
        (Some("a"), Some("b"))
    );
}

#[test]
fn the_store_outlives_the_program_and_a_line_cut_by_a_crash() {
    let bench = Bench::new();
    bench.ground.put("shop/a", "0");
    bench.seen.begin(1);
    bench.set("c1", "a", Some("1"));
    bench.seen.begin(2);
    bench.set("c2", "a", Some("2"));
    let list = bench.ground.path("state/talk/steps");
    let mut bytes = fs::read(&list).unwrap();
    bytes.extend_from_slice(b"{\"began\":{\"turn\":3,\"pa");
    fs::write(&list, bytes).unwrap();
    let again = Checkpoints::open(&bench.ground.path("state"), "talk").unwrap();
    let plan = again.plan(&bench.workspace, Which::Since(1), EVERYTHING);
    assert_eq!(plan.files[0].to_bytes.as_deref(), Some("0".as_bytes()));
    assert_eq!(plan.files[0].clash, None);
    let mode = fs::metadata(bench.ground.path("state/talk/kept"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    // What was kept and is something else now is worse than nothing.
    for entry in fs::read_dir(bench.ground.path("state/talk/kept")).unwrap() {
        fs::write(entry.unwrap().path(), "rot").unwrap();
    }
    let plan = again.plan(&bench.workspace, Which::Since(1), EVERYTHING);
    assert!(plan.files[0].is_lost);
    let done = again.carry_out(&bench.workspace, plan, true).unwrap();
    assert_eq!(done.left, ["a"]);
    assert_eq!(bench.text("a").as_deref(), Some("2"));
}

#[test]
fn a_change_whose_end_is_not_known_is_not_taken_back_unasked() {
    let bench = Bench::new();
    bench.ground.put("shop/a", "0");
    bench.seen.begin(1);
    bench.set("c1", "a", Some("1"));
    let list = bench.ground.path("state/talk/steps");
    let text = fs::read_to_string(&list).unwrap();
    let first = text.lines().next().unwrap();
    fs::write(&list, format!("{first}\n")).unwrap();
    let again = Checkpoints::open(&bench.ground.path("state"), "talk").unwrap();
    let plan = again.plan(&bench.workspace, Which::Turn(1), EVERYTHING);
    assert_eq!(plan.files[0].clash, Some(Clash::Foreign));
}

/// An undo of three files, cut by a crash after any of them, is finished; what somebody has changed since stays.
#[test]
fn an_undo_that_was_cut_is_finished() {
    let names = ["a", "b", "c"];
    for applied in 0..=names.len() {
        for edited in [None, Some("b")] {
            for is_redo in [false, true] {
                let bench = Bench::new();
                for name in names {
                    bench.ground.put(&format!("shop/{name}"), "0");
                }
                bench.seen.begin(1);
                for name in names {
                    bench.set(&format!("call {name}"), name, Some("1"));
                }
                if is_redo {
                    bench.turn(Which::Turn(1));
                }
                let (from, to) = if is_redo { ("0", "1") } else { ("1", "0") };
                bench.turn(if is_redo { Which::LastAgain } else { Which::Turn(1) });
                let list = bench.ground.path("state/talk/steps");
                let text = fs::read_to_string(&list).unwrap();
                let (rest, last) = text.trim_end().rsplit_once('\n').unwrap();
                assert!(last.starts_with("{\"ended\""));
                fs::write(&list, format!("{rest}\n")).unwrap();
                for name in &names[applied..] {
                    bench.ground.put(&format!("shop/{name}"), from);
                }
                if let Some(name) = edited {
                    bench.ground.put(&format!("shop/{name}"), "theirs");
                }
                let again = Checkpoints::open(&bench.ground.path("state"), "talk").unwrap();
                let done = again.finish_cut(&bench.workspace).expect("it was cut").unwrap();
                let case = format!("{applied} {edited:?} redo: {is_redo}");
                assert_eq!(done.left, edited.into_iter().collect::<Vec<_>>(), "{case}");
                assert_eq!(done.is_redo, is_redo, "{case}");
                for name in names {
                    let wanted = if edited == Some(name) { "theirs" } else { to };
                    assert_eq!(bench.text(name).as_deref(), Some(wanted), "{name} {case}");
                }
                assert!(again.finish_cut(&bench.workspace).is_none(), "{case}");
                // What was finished can be reversed, and what was left is not part of it.
                let reopened = Checkpoints::open(&bench.ground.path("state"), "talk").unwrap();
                let plan = reopened.plan(&bench.workspace, Which::LastAgain, EVERYTHING);
                let plan = if is_redo {
                    reopened.plan(&bench.workspace, Which::Turn(1), EVERYTHING)
                } else {
                    plan
                };
                reopened.carry_out(&bench.workspace, plan, false).unwrap();
                for name in names {
                    let wanted = if edited == Some(name) { "theirs" } else { from };
                    assert_eq!(bench.text(name).as_deref(), Some(wanted), "{name} {case}");
                }
            }
        }
    }
}

#[test]
fn a_file_whose_content_comes_back_keeps_its_owner() {
    use std::os::unix::fs::{MetadataExt as _, chown};
    let bench = Bench::new();
    bench.ground.put("shop/a", "0");
    bench.seen.begin(1);
    bench.set("c1", "a", Some("1"));
    let path = bench.ground.path("shop/a");
    // Only root gives a file to somebody else.
    if chown(&path, Some(1234), Some(1235)).is_err() {
        let skipped = "SKIPPED: a_file_whose_content_comes_back_keeps_its_owner needs root";
        return drop(std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("\n{skipped}\n"),
        ));
    }
    bench.turn(Which::Turn(1));
    let about = fs::metadata(&path).unwrap();
    assert_eq!(bench.text("a").as_deref(), Some("0"));
    assert_eq!((about.uid(), about.gid()), (1234, 1235));
}

#[test]
fn a_file_as_large_as_the_store_is_kept_and_a_larger_one_is_not() {
    for (bytes, is_lost) in [(100, false), (101, true)] {
        let bench = Bench::new();
        let store = Checkpoints::open(&bench.ground.path("state"), "small").unwrap();
        store.lock().kept.most_bytes = 100;
        let bench = Bench {
            seen: Seen::keeping(store),
            ..bench
        };
        bench.ground.put("shop/a", "a".repeat(bytes));
        bench.seen.begin(1);
        bench.set("c1", "a", None);
        assert_eq!(bench.plan(Which::Turn(1)).files[0].is_lost, is_lost, "{bytes}");
    }
}

#[test]
fn only_a_mark_with_something_in_it_says_that_an_undo_runs() {
    let bench = Bench::new();
    bench.ground.put("state/other/running", "");
    assert!(bench.store().others().is_empty());
    bench.ground.put("state/other/running", "x");
    assert!(!bench.store().others().is_empty());
}

#[test]
fn an_undo_that_is_finished_removes_nothing_that_is_hidden_by_now() {
    for (is_there, left) in [(true, &["a"][..]), (false, &[])] {
        let bench = Bench::new();
        bench.seen.begin(1);
        bench.set("c1", "a", Some("1"));
        bench.turn(Which::Turn(1));
        let list = bench.ground.path("state/talk/steps");
        let text = fs::read_to_string(&list).unwrap();
        let (rest, last) = text.trim_end().rsplit_once('\n').unwrap();
        assert!(last.starts_with("{\"ended\""));
        fs::write(&list, format!("{rest}\n")).unwrap();
        if is_there {
            bench.ground.put("shop/a", "1");
        }
        bench.ground.put("shop/.sheafignore", "a\n");
        let again = Checkpoints::open(&bench.ground.path("state"), "talk").unwrap();
        let done = again.finish_cut(&bench.workspace).expect("it was cut").unwrap();
        assert_eq!(done.left, left);
        assert_eq!(bench.text("a").is_some(), is_there);
    }
}

#[test]
fn going_back_over_an_undo_undoes_and_redoes_and_is_no_redo() {
    let bench = Bench::new();
    bench.ground.put("shop/a", "0");
    bench.seen.begin(1);
    bench.set("c1", "a", Some("1"));
    bench.seen.begin(2);
    bench.turn(Which::Turn(1));
    bench.set("c2", "b", Some("1"));
    let done = bench.turn(Which::Since(2));
    assert_eq!((bench.text("a").as_deref(), bench.text("b")), (Some("1"), None));
    let calls = |marked: &[Marked]| marked.iter().map(|it| it.call.clone()).collect::<Vec<_>>();
    assert_eq!(
        (calls(&done.off), calls(&done.on)),
        (vec!["c2".to_owned()], vec!["c1".to_owned()])
    );
    assert!(!done.is_redo);
}

#[test]
fn the_store_is_bounded_and_says_what_it_lost() {
    let bench = Bench::new();
    let store = Checkpoints::open(&bench.ground.path("state"), "small").unwrap();
    store.lock().kept.most_bytes = 100;
    let bench = Bench {
        seen: Seen::keeping(store),
        ..bench
    };
    let text = |letter: &str| letter.repeat(60);
    bench.ground.put("shop/a", text("a"));
    bench.ground.put("shop/b", text("b"));
    bench.ground.put("shop/c", "c".repeat(101));
    bench.seen.begin(1);
    bench.set("c1", "a", Some("1"));
    bench.seen.begin(2);
    bench.set("c2", "b", Some("1"));
    bench.set("c3", "c", Some("1"));
    assert!(!bench.plan(Which::Since(2)).is_partial);
    let plan = bench.plan(Which::Since(1));
    assert!(plan.is_partial, "of the first turn nothing is left");
    let files: Vec<_> = plan.files.iter().map(|it| (it.shown.as_str(), it.is_lost)).collect();
    assert_eq!(files, [("b", false), ("c", true)]);
    let kept: u64 = fs::read_dir(bench.ground.path("state/small/kept"))
        .unwrap()
        .map(|it| it.unwrap().metadata().unwrap().len())
        .sum();
    assert!(kept <= 100, "{kept}");
}

#[test]
fn what_is_hidden_or_gits_by_now_is_not_touched() {
    let bench = Bench::new();
    bench.seen.begin(1);
    bench.set("c1", "a", Some("1"));
    bench.set("c1", "in/b", Some("1"));
    bench.ground.put("shop/.sheafignore", "a\n");
    fs::remove_dir_all(bench.ground.path("shop/in")).unwrap();
    bench.ground.put("other/b", "1");
    bench.ground.link("shop/in", bench.ground.path("other"));
    let done = bench.turn(Which::Turn(1));
    assert!(bench.text("a").is_some() && bench.ground.path("other/b").exists());
    assert_eq!(done.left, ["a", "in", "in/b"]);
}

#[test]
fn a_name_from_outside_stays_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    for name in ["../../escaped", "/etc/x", "", ".", "..", "a\0b", &"n".repeat(300)] {
        let store = Checkpoints::open(&state, name).unwrap();
        assert!(
            !store.lock().kept.folder().exists(),
            "nothing is made before there is something to keep"
        );
        store.began("c", vec![("/x".into(), PathContent::NOTHING)]);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let names = fs::read_dir(&state).unwrap().map(|it| it.unwrap().file_name());
    assert!(names.into_iter().all(|it| it.len() == 64));
}

#[test]
fn old_conversations_go() {
    let folder = tempfile::tempdir().unwrap();
    for at in 0..blob_store::MOST_CONVERSATIONS + 3 {
        Checkpoints::open(folder.path(), &format!("talk-{at}"))
            .unwrap()
            .began("c", Vec::new());
    }
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        blob_store::MOST_CONVERSATIONS
    );
}

#[test]
fn conversations_that_keep_too_much_together_go_the_oldest_first() {
    let folder = tempfile::tempdir().unwrap();
    let keep = |name: &str, seconds: u64| {
        let store = Checkpoints::open(folder.path(), name).unwrap();
        store.began("c", vec![("/x".into(), PathContent::file(vec![7; 1000].into(), 0o644))]);
        let own = store.lock().kept.folder().to_owned();
        let used = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        fs::File::open(own.join(blob_store::LIST))
            .unwrap()
            .set_modified(used)
            .unwrap();
        own
    };
    let [old, older, own] = [("old", 20), ("older", 10), ("own", 5)].map(|(name, used)| keep(name, used));
    blob_store::prune(folder.path(), &own, 2000);
    assert!(old.exists() && older.exists());
    blob_store::prune(folder.path(), &own, 1999);
    assert!(old.exists() && !older.exists() && own.exists(), "the one in use stays");
    blob_store::prune(folder.path(), &own, 0);
    assert!(!old.exists() && own.exists());
}

#[test]
fn a_file_that_is_too_large_to_be_kept_is_named_and_stays() {
    let bench = Bench::new();
    let large = |letter: &str| letter.repeat(3 << 20);
    bench.ground.put("shop/large", large("a"));
    bench.seen.begin(1);
    let count = bench.command("c1", |root| fs::write(root.join("large"), large("b")).unwrap());
    assert_eq!(count, 1);
    let plan = bench.plan(Which::Turn(1));
    let files: Vec<_> = plan.files.iter().map(|it| (it.shown.as_str(), it.is_lost)).collect();
    assert_eq!(files, [("large", true)]);
    assert_eq!(bench.turn(Which::Turn(1)).left, ["large"]);
    assert_eq!(bench.text("large"), Some(large("b")));
    assert_eq!(bench.command("c2", |_| ()), 0, "who does nothing to it is not named");
}

#[test]
fn a_path_that_is_no_text_is_kept_as_it_is() {
    use std::os::unix::ffi::OsStrExt as _;
    let bench = Bench::new();
    let name = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    fs::write(bench.ground.path("shop").join(name), "0").unwrap();
    bench.seen.begin(1);
    bench.command("c1", |root| fs::write(root.join(name), "1").unwrap());
    let again = Checkpoints::open(&bench.ground.path("state"), "talk").unwrap();
    let plan = again.plan(&bench.workspace, Which::Turn(1), EVERYTHING);
    again.carry_out(&bench.workspace, plan, false).unwrap();
    assert_eq!(fs::read(bench.ground.path("shop").join(name)).unwrap(), b"0");
}

/// An operation on one of a few names.
#[derive(Clone, Debug)]
enum Deed {
    Write(usize, Vec<u8>),
    Mode(usize, u32),
    Link(usize, usize),
    Folder(usize),
    Remove(usize),
    Rename(usize, usize),
}

const NAMES: [&str; 6] = ["a", "b", "d/e", "d/f/g", "d", "h"];

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let name = || 0..NAMES.len();
    let deed = prop_oneof![
        (name(), prop::collection::vec(any::<u8>(), 0..40)).prop_map(|(at, bytes)| Deed::Write(at, bytes)),
        (name(), prop_oneof![Just(0o644), Just(0o755), Just(0o600), Just(0o444)])
            .prop_map(|(at, mode)| Deed::Mode(at, mode)),
        (name(), name()).prop_map(|(at, to)| Deed::Link(at, to)),
        name().prop_map(Deed::Folder),
        name().prop_map(Deed::Remove),
        (name(), name()).prop_map(|(at, to)| Deed::Rename(at, to)),
    ];
    prop::collection::vec(deed, 0..12)
}

/// Does what can be done.
fn act(root: &Path, deeds: &[Deed]) {
    for deed in deeds {
        let path = |at: &usize| root.join(NAMES[*at]);
        match deed {
            Deed::Write(at, bytes) => {
                path(at).parent().map(fs::create_dir_all);
                if fs::symlink_metadata(path(at)).is_ok_and(|it| it.is_symlink()) {
                    fs::remove_file(path(at)).ok();
                }
                fs::write(path(at), bytes).ok();
            }
            Deed::Mode(at, mode) => {
                let is_file = fs::symlink_metadata(path(at)).is_ok_and(|it| it.is_file());
                if is_file {
                    fs::set_permissions(path(at), fs::Permissions::from_mode(*mode)).ok();
                }
            }
            Deed::Link(at, to) => {
                symlink(NAMES[*to], path(at)).ok();
            }
            Deed::Folder(at) => {
                fs::create_dir_all(path(at)).ok();
            }
            Deed::Remove(at) => {
                if fs::remove_file(path(at)).is_err() {
                    fs::remove_dir_all(path(at)).ok();
                }
            }
            Deed::Rename(at, to) => {
                fs::rename(path(at), path(to)).ok();
            }
        }
    }
}

#[test]
fn a_folder_in_the_place_of_a_link_comes_back_with_what_is_in_it() {
    let bench = Bench::new();
    bench.seen.begin(1);
    bench.command("c1", |root| act(root, &[Deed::Link(4, 2)]));
    bench.seen.begin(2);
    bench.command("c2", |root| act(root, &[Deed::Remove(4), Deed::Folder(2)]));
    let two = bench.all();
    let plan = bench.plan(Which::Turn(2));
    let names: Vec<_> = plan.files.iter().map(|it| it.shown.as_str()).collect();
    assert_eq!(names, ["d", "d/e"]);
    bench.turn(Which::Turn(2));
    bench.turn(Which::LastAgain);
    assert_eq!(bench.all(), two);
}

#[test]
fn a_folder_that_a_link_leads_to_is_not_the_one_that_was_there() {
    let bench = Bench::new();
    bench.seen.begin(1);
    bench.command("c1", |root| act(root, &[Deed::Folder(2)]));
    let one = bench.all();
    bench.seen.begin(2);
    bench.command("c2", |root| act(root, &[Deed::Rename(4, 5), Deed::Link(4, 5)]));
    bench.turn(Which::Turn(2));
    assert_eq!(bench.all(), one);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Undo brings back bytes, modes and links, and redo what was made of them, whatever a command did.
    #[test]
    fn undo_and_redo_bring_back_everything(start in deeds(), first in deeds(), second in deeds()) {
        let bench = Bench::new();
        act(&bench.ground.path("shop"), &start);
        let zero = bench.all();
        bench.seen.begin(1);
        bench.command("c1", |root| act(root, &first));
        let one = bench.all();
        bench.seen.begin(2);
        bench.command("c2", |root| act(root, &second));
        let two = bench.all();
        let left = Vec::<String>::new();
        prop_assert_eq!(&bench.turn(Which::Turn(2)).left, &left);
        prop_assert_eq!(bench.all(), &one[..]);
        prop_assert_eq!(&bench.turn(Which::Turn(1)).left, &left);
        prop_assert_eq!(bench.all(), &zero[..]);
        // What did nothing is not taken back, and not done again.
        if one != zero {
            bench.turn(Which::LastAgain);
            prop_assert_eq!(bench.all(), &one[..]);
        }
        if two != one {
            bench.turn(Which::LastAgain);
        }
        prop_assert_eq!(bench.all(), &two[..]);
        prop_assert_eq!(&bench.turn(Which::Since(1)).left, &left);
        prop_assert_eq!(bench.all(), &zero[..]);
    }
}
