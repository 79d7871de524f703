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
