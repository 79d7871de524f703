//! Files by their place.

use pretty_assertions::assert_eq;

use super::*;

#[test]
fn files_are_read_changed_and_deleted_by_their_place() {
    let protected = |shown: &str| Located {
        is_protected: true,
        ..inside(shown)
    };
    let rules = Rules {
        allow: rules(&["Write(**)", "Read(/opt/lib/**)", "Read(~/notes/**)"]),
        deny: rules(&["Read(secrets)", "Write(vendor/**)"]),
        ask: rules(&["Write(Cargo.lock)", "Read(/opt/lib/keys/**)"]),
        ..Rules::default()
    };
    let outside = |path: &str| file(path, Place::Outside);
    use Access::{Delete, Read, Write};
    for (access, ask, list, sandbox) in [
        (Read(inside("src/a.rs")), "allow", "allow", "allow"),
        (Read(file("/more/a.rs", Place::Added)), "allow", "allow", "allow"),
        (Read(file("/work/project/.env", Place::Hidden)), "deny", "deny", "deny"),
        (Read(inside("secrets/a")), "deny", "deny", "deny"),
        (Read(inside("a/SECRETS/b/c")), "deny", "deny", "deny"),
        (Read(outside("/opt/lib/a.h")), "allow", "allow", "allow"),
        (
            Read(outside("/opt/library/a.h")),
            "ask Read(/opt/library/**)|Read(/opt/library/**)",
            "",
            "",
        ),
        (Read(outside("/opt/lib/keys/a")), "ask |", "", ""),
        (Read(outside("/home/me/notes/a.md")), "allow", "allow", "allow"),
        (
            Read(outside("/home/me/a.md")),
            "ask Read(/home/me/a.md)|Read(/home/me/a.md)",
            "",
            "",
        ),
        (
            Read(outside("/etc/hosts")),
            "ask Read(/etc/hosts)|Read(/etc/hosts)",
            "",
            "",
        ),
        (
            Read(outside("/usr/a [1]/b.h")),
            "ask Read(/usr/a [[]1[]]/**)|Read(/usr/a [[]1[]]/**)",
            "",
            "",
        ),
        (Write(inside("src/a.rs")), "allow", "allow", "allow"),
        (Write(inside("vendor/a.rs")), "deny", "deny", "deny"),
        (Write(inside("Vendor/a.rs")), "deny", "deny", "deny"),
        (Write(inside("secrets/a.rs")), "deny", "deny", "deny"),
        (Write(inside("sub/Cargo.lock")), "ask |", "", ""),
        (Write(outside("/opt/lib/a.h")), "deny", "deny", "deny"),
        (Write(inside(".git/config")), "deny", "deny", "deny"),
        (Write(inside(".GIT/hooks/x")), "deny", "deny", "deny"),
        (Write(inside("sub/.git")), "deny", "deny", "deny"),
        (Write(inside(".github/workflows/a.yml")), "allow", "allow", "allow"),
        (Write(protected(".vscode/tasks.json")), "ask protected |", "", ""),
        (Write(file("x/.env", Place::Hidden)), "deny", "deny", "deny"),
        (
            Delete(inside("src/a.rs")),
            "ask Delete(src/a.rs)|Delete(src/a.rs)",
            "",
            "",
        ),
        (Delete(protected(".envrc")), "ask protected |", "", ""),
        (Delete(inside("vendor/a.rs")), "deny", "deny", "deny"),
        (Delete(inside(".git/index")), "deny", "deny", "deny"),
        (Delete(outside("/tmp/x")), "deny", "deny", "deny"),
    ] {
        for (run, expected) in [(RunMode::Ask, ask), (RunMode::List, list), (RunMode::Sandbox, sandbox)] {
            for tier in [Tier::Full, Tier::Partial, Tier::None] {
                let facts = Facts {
                    run,
                    tier,
                    ..facts(&rules)
                };
                let expected = if expected.is_empty() { ask } else { expected };
                assert_eq!(told(verdict(&access, &facts)), expected, "{access:?} {run:?} {tier:?}");
            }
        }
    }
}

#[test]
fn with_ask_a_change_of_a_file_asks() {
    let nothing = Rules::default();
    let facts = |run| Facts { run, ..facts(&nothing) };
    let change = Access::Write(inside("src/a.rs"));
    assert_eq!(told(verdict(&change, &facts(RunMode::List))), "allow");
    assert_eq!(told(verdict(&change, &facts(RunMode::Sandbox))), "allow");
    assert_eq!(
        told(verdict(&change, &facts(RunMode::Ask))),
        "ask Write(src/a.rs)|Write(**)"
    );
    let top = Access::Write(inside("a.rs"));
    assert_eq!(told(verdict(&top, &facts(RunMode::Ask))), "ask Write(./a.rs)|Write(**)");
}

#[test]
fn force_does_what_no_rule_forbids_and_leaves_what_is_protected() {
    let rules = Rules {
        deny: rules(&["Shell(git push)"]),
        ask: self::rules(&["Shell(make)"]),
        ..Rules::default()
    };
    let forced = Facts {
        run: RunMode::Force,
        tier: Tier::None,
        is_attended: false,
        ..facts(&rules)
    };
    for access in [
        run("ls"),
        run("make all"),
        with("make", &[Permission::All]),
        Access::Delete(inside("a")),
        Access::Read(file("/x/a", Place::Outside)),
    ] {
        assert_eq!(verdict(&access, &forced), Verdict::Allow, "{access:?}");
    }
    let protected = Located {
        is_protected: true,
        ..inside(".vscode/tasks.json")
    };
    for access in [
        run("git push"),
        Access::Write(protected),
        Access::Write(file("/x/a", Place::Outside)),
        Access::Read(file("/x/a", Place::Hidden)),
    ] {
        assert!(matches!(verdict(&access, &forced), Verdict::Deny(_)), "{access:?}");
    }
    let planning = Facts {
        mode: Mode::Plan,
        ..forced
    };
    assert!(matches!(verdict(&run("ls"), &planning), Verdict::Deny(_)));
    let doubtful = Rules {
        is_doubtful: true,
        ..Rules::default()
    };
    let doubtful = Facts {
        rules: &doubtful,
        ..forced
    };
    assert!(matches!(verdict(&run("ls"), &doubtful), Verdict::Deny(_)));
}

#[test]
fn a_rule_can_cover_what_is_deleted() {
    let rules = Rules {
        deny: rules(&["Delete(build/keep/**)"]),
        ask: self::rules(&["Delete(build/ask/**)"]),
        allow: self::rules(&["Delete(build/**)", "Write(docs/**)"]),
        ..Rules::default()
    };
    let protected = Located {
        is_protected: true,
        ..inside("build/.envrc")
    };
    for (file, expected) in [
        (inside("build/a"), "allow"),
        (inside("build/keep/a"), "deny"),
        (inside("build/ask/a"), "ask |"),
        (inside("docs/a"), "ask Delete(docs/a)|Delete(docs/a)"),
        (protected, "ask protected |"),
        (file("/x/build/a", Place::Outside), "deny"),
        (file("build/.env", Place::Hidden), "deny"),
    ] {
        for run in [RunMode::Ask, RunMode::List, RunMode::Sandbox] {
            let facts = Facts { run, ..facts(&rules) };
            assert_eq!(
                told(verdict(&Access::Delete(file.clone()), &facts)),
                expected,
                "{file:?}"
            );
        }
    }
    // Deleting is not changing.
    let facts = facts(&rules);
    assert_eq!(told(verdict(&Access::Write(inside("build/keep/a")), &facts)), "allow");
}

#[test]
fn a_folder_is_asked_about_once() {
    let mut rules = Rules::default();
    let header = Access::Read(file("/opt/lib/include/a.h", Place::Outside));
    let first = question(&header, &facts(&rules));
    rules.allow_for_session(&first.session);
    rules.allow_for_session(&first.session);
    assert_eq!(printed(&rules.session), ["Read(/opt/lib/include/**)"]);
    for (path, expected) in [
        ("/opt/lib/include/a.h", "allow"),
        ("/opt/lib/include/deep/b.h", "allow"),
        ("/opt/lib/include", "allow"),
    ] {
        assert_eq!(
            told(verdict(&Access::Read(file(path, Place::Outside)), &facts(&rules))),
            expected,
            "{path}"
        );
    }
    let next = question(
        &Access::Read(file("/opt/lib/include2/a.h", Place::Outside)),
        &facts(&rules),
    );
    assert_eq!(printed(&next.session), ["Read(/opt/lib/include2/**)"]);
    let of = |path: &str, is_folder: bool| {
        let file = Located {
            is_folder,
            ..file(path, Place::Outside)
        };
        printed(&question(&Access::Read(file), &facts(&rules)).always)
    };
    for (path, is_folder, rule) in [
        // A name without an ending is a file's as well.
        ("/opt/lib/share/Makefile", false, "Read(/opt/lib/share/**)"),
        ("/opt/lib/share", true, "Read(/opt/lib/share/**)"),
        ("/opt/lib/v1.2", true, "Read(/opt/lib/v1.2/**)"),
        // Nobody is given all of /etc or of a home for the sake of one file.
        ("/etc/hosts", false, "Read(/etc/hosts)"),
        ("/etc/fstab.d", true, "Read(/etc/fstab.d/**)"),
        ("/home/me/notes.md", false, "Read(/home/me/notes.md)"),
        ("/home/me/a[1]", false, r"Read(/home/me/a[[]1[]])"),
        ("/vmlinuz", false, "Read(/vmlinuz)"),
    ] {
        assert_eq!(of(path, is_folder), [rule], "{path}");
    }
    rules.allow_for_session(&[Rule::parse("Read(/etc/hosts)", None).expect("a rule")]);
    for (path, expected) in [
        ("/etc/hosts", "allow"),
        ("/etc/hostname", "ask"),
        ("/etc/hosts.allow", "ask"),
    ] {
        let verdict = verdict(&Access::Read(file(path, Place::Outside)), &facts(&rules));
        assert!(told(verdict).starts_with(expected), "{path}");
    }
    let hidden = Access::Read(file("/opt/lib/include/id_rsa", Place::Hidden));
    assert_eq!(told(verdict(&hidden, &facts(&rules))), "deny");
}
