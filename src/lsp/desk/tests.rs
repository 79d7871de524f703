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
        misses: 0,
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
fn a_file_that_is_never_answered_is_given_up_and_one_that_is_refused_at_once() {
    let late = |unseen: &mut Unseen| {
        let mut comparison = Comparison::default();
        unseen.take("fake", "/w/a".into(), Err(Missing::Late), &mut comparison);
        comparison.unchecked.into_keys().collect::<Vec<_>>()
    };
    let mut one = unseen(false, None);
    for _ in 1..MOST_MISSES {
        assert_eq!(late(&mut one), ["fake has not answered in time"]);
        assert!(one.files.contains_key(Path::new("/w/a")));
    }
    late(&mut one);
    assert!(one.files.is_empty());
    let mut two = unseen(false, None);
    let refused = Err(Missing::Refused("no".to_owned()));
    two.take("fake", "/w/a".into(), refused, &mut Comparison::default());
    assert!(two.files.is_empty());
    // One that is still reading will answer.
    let mut three = unseen(false, None);
    for _ in 0..9 {
        three.take("fake", "/w/a".into(), Err(Missing::Reading), &mut Comparison::default());
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

#[tokio::test]
async fn each_file_is_noted_once_with_what_it_was_before_the_first_change() {
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
    let [a, b, c, d] = ["a.fake", "b.fake", "c.fake", "d.fake"].map(|it| root.join(it));
    let edit = |file: &PathBuf| Edit {
        file: file.clone(),
        is_new: false,
        is_deleted: false,
        from: None,
    };
    let looked_at = |fresh: &[Fresh]| {
        let files = fresh.iter().flat_map(|it| it.files.iter().chain(&it.others)).cloned();
        files.collect::<Vec<_>>()
    };
    let first = desk.note(1, &[edit(&a)], std::slice::from_ref(&b));
    assert_eq!(looked_at(&first), [a.clone(), b.clone()]);
    let report = |file: &PathBuf, message: &str| (file.clone(), Ok(vec![problem(message)]));
    let keep = |fresh: Vec<Fresh>, reports: Reports| {
        let looked_at = fresh.into_iter().map(|it| LookedAt {
            key: key(&it.found),
            reports: reports.clone(),
            moved: it.moved,
        });
        desk.keep(1, looked_at.collect());
    };
    keep(first, Reports::from([report(&a, "old"), report(&b, "old")]));
    // Of what is known, or was changed, nothing is found out again; the server keeps the text that it has.
    let second = desk.note(1, &[edit(&a), edit(&b), edit(&c)], std::slice::from_ref(&d));
    assert_eq!(looked_at(&second), [c.clone(), d.clone()]);
    assert_eq!(second[0].held, BTreeSet::from([a.clone()]));
    keep(second, Reports::from([report(&a, "new"), report(&c, "old")]));
    // Another conversation has its own changes.
    let others = desk.note(2, &[edit(&a)], &[]);
    assert_eq!(looked_at(&others), std::slice::from_ref(&a));
    {
        let state = desk.state.borrow();
        let own = state.unseen.iter().find(|it| it.0.0 == 1).expect("noted").1;
        let known = |file: &PathBuf| {
            let before = own.before[file].as_ref();
            before.map(|it| it.iter().map(|it| it.message.as_str()).collect::<Vec<_>>())
        };
        assert_eq!(
            [&a, &b, &c, &d].map(known),
            [Some(vec!["old"]), Some(vec!["old"]), Some(vec!["old"]), None]
        );
    }
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
