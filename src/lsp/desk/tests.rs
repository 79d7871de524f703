//! What is kept of changes until a server has looked at them.

use pretty_assertions::assert_eq;

use super::*;

fn found() -> Found {
    Found {
        name: "fake".to_owned(),
        root: "/w".into(),
        program: "fake".into(),
        arguments: Vec::new(),
        variables: Vec::new(),
        initialization: serde_json::Value::Null,
        tells_when_ready: false,
    }
}

fn problem(message: &str) -> Diagnostic {
    Diagnostic {
        file: "/w/a".into(),
        line: 1,
        column: 1,
        severity: Severity::Error,
        message: message.to_owned(),
        source: "fake".to_owned(),
        code: None,
    }
}

/// A changed file, with what was known of it before.
fn unseen(is_new: bool, before: Option<&[&str]>) -> Unseen {
    let mut unseen = Unseen::of(&found());
    let changed = Changed {
        is_new,
        from: None,
        misses: Misses::default(),
    };
    unseen.files.insert("/w/a".into(), changed);
    let before = before.map(|it| it.iter().map(|it| problem(it)).collect());
    unseen.before.insert("/w/a".into(), before);
    unseen
}

#[test]
fn each_problem_of_a_changed_file_is_new_or_old_or_of_unknown_age() {
    for (name, is_new, before, new, doubtful, fixed) in [
        (
            "known before",
            false,
            Some(&["old", "gone"][..]),
            &["new"][..],
            &[][..],
            1,
        ),
        ("not known before", false, None, &[], &["old", "new"], 0),
        ("a new file", true, None, &["old", "new"], &[], 0),
    ] {
        let mut unseen = unseen(is_new, before);
        let mut comparison = Comparison::default();
        let after = vec![problem("old"), problem("new")];
        unseen.take("fake", "/w/a".into(), Ok(after), &mut comparison);
        let messages = |it: &BTreeMap<PathBuf, Vec<Diagnostic>>| -> Vec<String> {
            it.values().flatten().map(|it| it.message.clone()).collect()
        };
        assert_eq!(messages(&comparison.new), new, "{name}");
        assert_eq!(messages(&comparison.doubtful), doubtful, "{name}");
        assert_eq!(comparison.fixed, fixed, "{name}");
        assert!(
            unseen.files.is_empty() && unseen.before.is_empty(),
            "{name}: it has been looked at"
        );
    }
}

#[test]
fn a_file_that_is_never_answered_is_told_once_and_given_up_and_one_that_is_refused_at_once() {
    let miss = |unseen: &mut Unseen, missing: &Missing| {
        let mut comparison = Comparison::default();
        unseen.take("fake", "/w/a".into(), Err(missing.clone()), &mut comparison);
        comparison.unchecked.into_keys().collect::<Vec<_>>()
    };
    let gone = Missing::Gone("it has ended 3 times".to_owned());
    for (missing, told) in [
        (Missing::Late, "fake has not answered in time"),
        (gone, "fake is not running: it has ended 3 times"),
    ] {
        let mut one = unseen(false, None);
        for at in 1..=MOST_MISSES {
            assert!(one.files.contains_key(Path::new("/w/a")));
            let expected: &[&str] = if at == 1 { &[told] } else { &[] };
            assert_eq!(miss(&mut one, &missing), expected, "a later step has not changed it");
        }
        assert!(one.files.is_empty(), "{told}");
    }
    let mut two = unseen(false, None);
    let refused = Missing::Refused("no".to_owned());
    assert_eq!(miss(&mut two, &refused), ["fake refused: no"]);
    assert!(two.files.is_empty());
    // One that is still reading will answer.
    let mut three = unseen(false, None);
    for _ in 0..9 {
        miss(&mut three, &Missing::Reading);
        miss(&mut three, &Missing::Starting);
    }
    assert!(three.files.contains_key(Path::new("/w/a")));
}

#[test]
fn a_file_that_is_too_long_or_no_text_is_not_gone() {
    let top = tempfile::tempdir().expect("a folder");
    let file = |name: &str, bytes: &[u8]| {
        std::fs::write(top.path().join(name), bytes).expect("written");
        top.path().join(name)
    };
    let kind = |file: &Path| match on_disk(file) {
        OnDisk::Text(text) => text,
        OnDisk::Other => "other".to_owned(),
        OnDisk::Gone => "gone".to_owned(),
    };
    assert_eq!(kind(&file("a.py", b"x = 1")), "x = 1");
    assert_eq!(kind(&file("utf16.py", b"\xff\xfex\0")), "other");
    assert_eq!(kind(&file("long.py", &vec![b' '; 5 << 20])), "other");
    assert_eq!(kind(&top.path().join("b.py")), "gone");
}

/// A desk in a folder of its own, whose files `*.fake` have a server.
fn desk() -> (tempfile::TempDir, PathBuf, Desk) {
    let top = tempfile::tempdir().expect("a folder");
    let root = top.path().canonicalize().expect("a folder");
    let mut settings = Settings::default();
    let fake = crate::config::LanguageServer {
        command: Some("/bin/sh".to_owned()),
        extensions: vec![".fake".to_owned()],
        ..crate::config::LanguageServer::default()
    };
    settings.lsp.insert("fake".to_owned(), fake);
    let desk = Desk {
        workspace: Arc::new(Workspace::open(&root).expect("a workspace")),
        settings: Arc::new(settings),
        state: RefCell::default(),
        telling: tokio::sync::Mutex::default(),
    };
    (top, root, desk)
}

fn edit(file: &Path) -> Edit {
    Edit {
        file: file.to_owned(),
        is_new: false,
        is_deleted: false,
        from: None,
    }
}

/// The files that are to be looked at.
fn looked_at(fresh: &[Fresh]) -> Vec<PathBuf> {
    let files = fresh.iter().flat_map(|it| it.files.iter().chain(&it.others));
    files.cloned().collect()
}

/// Keeps a problem of each of these files.
fn keep(desk: &Desk, fresh: Vec<Fresh>, problems: &[(&Path, &str)]) {
    let reports: Reports = problems
        .iter()
        .map(|it| (it.0.to_owned(), Ok(vec![problem(it.1)])))
        .collect();
    let looked_at = fresh.into_iter().map(|it| LookedAt {
        key: key(&it.found),
        reports: reports.clone(),
        moved: it.moved,
    });
    desk.keep(1, looked_at.collect());
}

/// The messages of the problems that the first conversation knows of a file from before.
fn known(desk: &Desk, file: &Path) -> Option<Vec<String>> {
    let state = desk.state.borrow();
    let own = state.unseen.iter().find(|it| it.0.0 == 1)?.1;
    let before = own.before.get(file)?.as_ref()?;
    Some(before.iter().map(|it| it.message.clone()).collect())
}

#[tokio::test]
async fn each_file_is_noted_once_with_what_it_was_before_the_first_change() {
    let (_top, root, desk) = desk();
    let [a, b, c, d] = ["a.fake", "b.fake", "c.fake", "d.fake"].map(|it| root.join(it));
    let first = desk.note(1, &[edit(&a)], std::slice::from_ref(&b));
    assert_eq!(looked_at(&first), [a.clone(), b.clone()]);
    keep(&desk, first, &[(&a, "old"), (&b, "old")]);
    // Of what is known, or was changed, nothing is found out again; the server keeps the text that it has.
    let second = desk.note(1, &[edit(&a), edit(&b), edit(&c)], std::slice::from_ref(&d));
    assert_eq!(looked_at(&second), [c.clone(), d.clone()]);
    assert_eq!(second[0].held, BTreeSet::from([a.clone()]));
    keep(&desk, second, &[(&a, "new"), (&c, "old")]);
    // Another conversation has its own changes.
    let others = desk.note(2, &[edit(&a)], &[]);
    assert_eq!(looked_at(&others), std::slice::from_ref(&a));
    let old = || Some(vec!["old".to_owned()]);
    assert_eq!([&a, &b, &c, &d].map(|it| known(&desk, it)), [old(), old(), old(), None]);
    // Too many are named, and not forgotten.
    let many: Vec<Edit> = (0..=MOST_UNSEEN)
        .map(|it| edit(&root.join(format!("{it}.fake"))))
        .collect();
    desk.note(3, &many, &[]);
    let desk = Rc::new(desk);
    let left_out = |by: u64| {
        let state = desk.state.borrow();
        let own = state.unseen.iter().find(|it| it.0.0 == by);
        own.map(|it| it.1.left_out.len())
    };
    assert_eq!(left_out(3), Some(1));
    // A conversation that is over leaves nothing, and nor does a workspace that may not act any more.
    assert!(Rc::clone(&desk).begin(Job::Forget(3)).is_none());
    assert_eq!((left_out(3), left_out(2)), (None, Some(0)));
    assert!(Rc::clone(&desk).begin(Job::End).is_some());
    assert_eq!(left_out(2), None);
}

#[tokio::test]
async fn what_is_left_of_an_earlier_message_is_looked_at_and_not_blamed_on_the_next_change() {
    let (_top, root, desk) = desk();
    let desk = Rc::new(desk);
    let [a, b, c] = ["a.fake", "b.fake", "c.fake"].map(|it| root.join(it));
    let made = Edit {
        is_new: true,
        ..edit(&b)
    };
    let fresh = desk.note(1, &[edit(&a), made], &[]);
    keep(&desk, fresh, &[(&a, "old")]);
    // The answer ends before anything has looked at them, and the user changes them.
    assert!(Rc::clone(&desk).begin(Job::Begin(1)).is_none());
    assert_eq!(
        desk.changed_by(1),
        BTreeSet::new(),
        "servers are told of what the user has changed"
    );
    let next = desk.note(1, &[edit(&c)], &[]);
    assert_eq!(looked_at(&next), std::slice::from_ref(&c));
    assert_eq!(next[0].held, BTreeSet::new());
    let mut comparison = Comparison::default();
    {
        let mut state = desk.state.borrow_mut();
        let unseen = state.unseen.values_mut().next().expect("noted");
        for file in [&a, &b] {
            let report = Ok(vec![problem("old"), problem("the user's")]);
            unseen.take("fake", file.clone(), report, &mut comparison);
        }
    }
    assert_eq!(comparison.new, BTreeMap::new());
    assert_eq!(comparison.doubtful.keys().collect::<Vec<_>>(), [&a, &b]);
    // One that is changed again is looked at before it is.
    desk.note(1, &[edit(&a)], &[]);
    Rc::clone(&desk).begin(Job::Begin(1));
    let again = desk.note(1, &[edit(&a)], std::slice::from_ref(&c));
    assert_eq!(looked_at(&again), [a, c]);
}

#[tokio::test]
async fn once_a_server_knows_of_a_change_it_is_not_asked_what_was_wrong_before() {
    let (_top, root, desk) = desk();
    let [a, b, c] = ["a.fake", "b.fake", "c.fake"].map(|it| root.join(it));
    let fresh = desk.note(1, &[edit(&a)], &[]);
    keep(&desk, fresh, &[(&a, "old")]);
    let soon = || Instant::now() + Duration::from_secs(30);
    // The first change of a step tells nobody of itself.
    desk.tell_changes(&desk.changed_by(1), soon()).await;
    assert_eq!(looked_at(&desk.note(1, &[edit(&b)], &[])), [b]);
    // The model asks for problems or a symbol in the middle of the step.
    desk.tell_changes(&BTreeSet::new(), soon()).await;
    let later = desk.note(1, &[edit(&c)], &[root.join("d.fake")]);
    assert_eq!(looked_at(&later), Vec::<PathBuf>::new());
    assert_eq!(
        (known(&desk, &a), known(&desk, &c)),
        (Some(vec!["old".to_owned()]), None)
    );
}

#[tokio::test]
async fn a_file_that_takes_the_place_of_another_keeps_its_own_problems() {
    let (_top, root, desk) = desk();
    let [a, b] = ["a.fake", "b.fake"].map(|it| root.join(it));
    let deleted = |file: &Path| Edit {
        is_deleted: true,
        ..edit(file)
    };
    let fresh = desk.note(1, &[deleted(&b)], &[]);
    keep(&desk, fresh, &[(&b, "of b")]);
    let moved = Edit {
        is_new: true,
        from: Some(a.clone()),
        ..edit(&b)
    };
    let edits = [deleted(&a), moved];
    let fresh = desk.note(1, &edits, &[]);
    assert_eq!(
        known(&desk, &b),
        None,
        "until it is known what is wrong with the one that comes"
    );
    keep(&desk, fresh, &[(&a, "of a")]);
    desk.note(1, &edits, &[]);
    assert_eq!(known(&desk, &b), Some(vec!["of a".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_look_at_the_disk_that_hangs_holds_up_no_other_job() {
    let (_top, _root, desk) = desk();
    let _hangs = desk.telling.lock().await;
    let began = Instant::now();
    let until = began + Duration::from_secs(2);
    desk.tell_changes(&BTreeSet::new(), until).await;
    assert_eq!(began.elapsed().as_secs(), 1, "half of the time is left for the servers");
}
