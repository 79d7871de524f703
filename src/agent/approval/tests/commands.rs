//! Commands: what decides about them, what is asked, what "always" keeps.

use pretty_assertions::assert_eq;

use super::*;

#[test]
fn always_stores_the_narrowest_beginning() {
    for (line, expected) in [
        ("git push origin main", &["Shell(git push)"][..]),
        ("cargo test --lib", &["Shell(cargo test)"]),
        ("npm run test:unit", &["Shell(npm run test:unit)"]),
        ("npm ci", &["Shell(npm ci)"]),
        ("docker compose up -d", &["Shell(docker compose up)"]),
        ("docker ps", &["Shell(docker ps)"]),
        ("python3 -m pytest -q", &["Shell(python3 -m pytest)"]),
        ("python3 build.py", &["Shell(python3 build.py)"]),
        ("bash build.sh", &["Shell(bash build.sh)"]),
        ("./gradlew test", &["Shell(./gradlew test)"]),
        ("ls -la", &["Shell(ls)"]),
        ("git add . && git commit -m x", &["Shell(git add)", "Shell(git commit)"]),
        ("cd sub && cargo fmt", &["Shell(cargo fmt)"]),
        ("ls > out.txt", &["Shell(ls)", "Write(./out.txt)"]),
        ("ls > out/a.txt", &["Shell(ls)", "Write(out/a.txt)"]),
        // Nothing narrow enough.
        ("git -C x push", &[]),
        ("git", &[]),
        ("cargo +nightly test", &[]),
        ("rm -rf target", &[]),
        ("ls $(x)", &[]),
        ("sudo ls", &[]),
        ("ls > ~/x", &[]),
        ("ls > .envrc", &[]),
        ("ls > ../x", &[]),
        ("git push --receive-pack=x", &[]),
        ("python3 -c 1", &[]),
        ("bash -c ls", &[]),
    ] {
        let nothing = Rules::default();
        let question = question(&run(line), &facts(&nothing));
        assert_eq!(printed(&question.always), expected, "{line}");
        assert_eq!(question.session, question.always, "{line}");
    }
}

#[test]
fn a_stored_rule_is_read_back_and_allows_the_line_it_was_made_for() {
    for (line, list) in BENIGN {
        let nothing = Rules::default();
        let question = match verdict(&run(line), &facts(&nothing)) {
            Verdict::Ask(question) => question,
            other => panic!("{line}: {other:?}"),
        };
        if question.always.is_empty() {
            continue;
        }
        let texts = printed(&question.always);
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let stored = allowing(&texts);
        assert_eq!(stored.allow, question.always, "{line}");
        assert_eq!(
            verdict(&run(line), &facts(&stored)),
            Verdict::Allow,
            "{line} by {texts:?}, not {list:?}"
        );
    }
}

#[test]
fn the_run_mode_the_fence_and_the_permissions_decide_about_commands() {
    let rules = allowing(&["Shell(cargo test)"]);
    let [none, network, all] = [&[][..], &[Permission::Network], &[Permission::All]];
    let both = &[Permission::Network, Permission::GitWrite][..];
    for (line, permissions, run, tier, expected) in [
        ("ls", none, RunMode::Sandbox, Tier::Full, "allow"),
        ("ls $(x)", none, RunMode::Sandbox, Tier::Full, "allow"),
        ("rm -rf x", none, RunMode::Sandbox, Tier::Full, "allow"),
        ("ls", none, RunMode::Sandbox, Tier::Partial, "ask, always"),
        ("ls", none, RunMode::Sandbox, Tier::None, "ask"),
        ("ls", none, RunMode::List, Tier::Full, "ask, always"),
        ("ls", none, RunMode::Ask, Tier::Full, "ask, always"),
        ("ls", network, RunMode::Sandbox, Tier::Full, "ask, always"),
        ("ls", all, RunMode::Sandbox, Tier::Full, "ask"),
        ("cargo test", none, RunMode::Sandbox, Tier::Partial, "allow"),
        ("cargo test", none, RunMode::Sandbox, Tier::None, "ask"),
        ("cargo test", none, RunMode::List, Tier::Full, "allow"),
        ("cargo test", none, RunMode::Ask, Tier::Full, "allow"),
        ("cargo test", both, RunMode::Sandbox, Tier::Full, "allow"),
        ("cargo test", all, RunMode::Sandbox, Tier::Full, "ask"),
        ("cargo test", all, RunMode::List, Tier::Partial, "ask"),
    ] {
        let facts = Facts {
            run,
            tier,
            ..facts(&rules)
        };
        let access = with(line, permissions);
        let found = match verdict(&access, &facts) {
            Verdict::Allow => "allow",
            Verdict::Deny(_) => "deny",
            Verdict::Ask(it) if it.always.is_empty() && it.session.is_empty() => "ask",
            Verdict::Ask(_) => "ask, always",
        };
        assert_eq!(found, expected, "{line} {permissions:?} {run:?} {tier:?}");
        let alone = Facts {
            is_attended: false,
            ..facts
        };
        let expected = if expected == "allow" { "allow" } else { "deny" };
        let found = match verdict(&access, &alone) {
            Verdict::Allow => "allow",
            Verdict::Deny(_) => "deny",
            Verdict::Ask(_) => "ask",
        };
        assert_eq!(found, expected, "alone: {line} {permissions:?} {run:?} {tier:?}");
    }
}

#[test]
fn deny_beats_ask_beats_allow_and_both_see_through_disguises() {
    let rules = Rules {
        deny: rules(&[
            "Shell(rm)",
            "Shell(git push)",
            "WebFetch(*.evil.example)",
            "Write(locks/**)",
        ]),
        ask: rules(&["Shell(git commit)", "Shell(rm -i)"]),
        allow: rules(&["Shell(rm)", "Shell(git commit)", "Shell(ls)", "Shell(curl)"]),
        ..Rules::default()
    };
    for (line, expected) in [
        ("rm x", "deny"),
        ("/bin/rm x", "deny"),
        ("RM x", "deny"),
        ("'r'm x", "deny"),
        ("ls; rm x", "deny"),
        ("ls $(rm x)", "deny"),
        ("ls \"`rm x`\"", "deny"),
        ("x() { rm x; }", "deny"),
        ("if ls; then rm x; fi", "deny"),
        ("for i in 1; do rm x; done", "deny"),
        ("A=$(rm x) ls", "deny"),
        ("sudo rm x", "deny"),
        ("env A=1 rm x", "deny"),
        ("timeout 5 /bin/rm x", "deny"),
        ("ls | xargs rm", "deny"),
        ("find . -exec rm {} +", "deny"),
        ("rm -i x", "deny"),
        ("git push", "deny"),
        ("git -C x push", "deny"),
        ("git --no-pager push origin", "deny"),
        ("echo x > locks/a", "deny"),
        ("touch locks/a", "deny"),
        ("git commit -m x", "ask"),
        ("git -C x commit", "ask"),
        // What cannot be read may be what is forbidden.
        ("$x y", "ask"),
        ("ls $(", "ask"),
        ("eval x", "ask"),
        ("bash -c 'r\\m x'", "ask"),
        // And these are something else.
        ("ls rm", "allow"),
        ("ls", "allow"),
        ("echo 'rm x'", "allow"),
        ("git log --grep push", "allow"),
        ("lsrm", "allow"),
        ("sort -o x y", "allow"),
    ] {
        let facts = Facts {
            run: RunMode::Sandbox,
            ..facts(&rules)
        };
        let found = match verdict(&run(line), &facts) {
            Verdict::Allow => "allow",
            Verdict::Deny(_) => "deny",
            Verdict::Ask(question) => {
                assert_eq!((question.always, question.session), (vec![], vec![]), "{line}");
                "ask"
            }
        };
        assert_eq!(found, expected, "{line}");
    }
    let reach = with("curl https://a.evil.example/x", &[Permission::Network]);
    assert_eq!(
        verdict(&reach, &facts(&rules)),
        Verdict::Deny("the rule WebFetch(*.evil.example) forbids it".to_owned())
    );
}

#[test]
fn a_question_says_what_is_reached_and_written() {
    let nothing = Rules::default();
    let network = &[Permission::Network][..];
    for (line, permissions, reaches, writes) in [
        ("curl https://docs.rs/x", network, &["docs.rs"][..], &[][..]),
        ("curl -s HTTPS://User:pw@Docs.RS:443/x", network, &["docs.rs"], &[]),
        ("curl docs.rs/x", network, &["docs.rs"], &[]),
        ("git clone git@github.com:a/b.git", network, &["github.com"], &[]),
        ("ssh me@host.example ls", network, &["host.example"], &[]),
        ("curl http://2130706433/", network, &["127.0.0.1"], &[]),
        ("curl 'http://[::1]:8080/x'", network, &["[::1]"], &[]),
        (
            "python3 -c 'get(\"https://a.example/x\")'",
            network,
            &["a.example"],
            &[],
        ),
        ("git push", network, &["any host"], &[]),
        ("cargo fetch", network, &["any host"], &[]),
        ("curl https://docs.rs/x", &[], &[], &[]),
        ("ls > a.txt 2> b.txt", &[], &[], &["a.txt", "b.txt"]),
        ("rm -rf target $x", &[], &[], &["target", "$x"]),
        ("cp a b c", &[], &[], &["c"]),
        ("mv a b", &[], &[], &["a", "b"]),
        ("sed -i s/a/b/ x y", &[], &[], &["x", "y"]),
        ("dd if=a of=b", &[], &[], &["b"]),
        ("echo a | tee b c", &[], &[], &["b", "c"]),
        ("curl -o x https://a.example", network, &["a.example"], &["x"]),
        ("ls > /dev/null", &[], &[], &[]),
    ] {
        let question = question(&with(line, permissions), &facts(&nothing));
        assert_eq!(question.reaches, reaches, "{line}");
        assert_eq!(question.writes, writes, "{line}");
    }
    let question = question(
        &run("curl https://a.example"),
        &Facts {
            tier: Tier::None,
            ..facts(&nothing)
        },
    );
    assert_eq!(question.reaches, ["a.example"], "without a fence the network is open");
    for (is_sandbox_off, why) in [
        (false, "this system has no sandbox, so every command asks"),
        (true, "the sandbox is switched off, so every command asks"),
    ] {
        let facts = Facts {
            tier: Tier::None,
            is_sandbox_off,
            ..facts(&nothing)
        };
        assert_eq!(super::question(&run("ls"), &facts).why, why);
    }
}

#[test]
fn an_unknown_permission_is_refused_and_so_is_a_folder_outside() {
    let rules = allowing(&["Shell(ls)"]);
    let other = with("ls", &[Permission::Other("full_disk".to_owned())]);
    assert_eq!(
        verdict(&other, &facts(&rules)),
        Verdict::Deny("unknown permission `full_disk`: use network, git_write or all".to_owned())
    );
    let elsewhere = Access::Command {
        line: "ls".to_owned(),
        directory: file("/etc", Place::Outside),
        permissions: vec![],
        is_background: false,
    };
    assert_eq!(told(verdict(&elsewhere, &facts(&rules))), "deny");
}

#[test]
fn a_redirection_goes_where_the_command_runs() {
    let rules = allowing(&["Shell(ls)", "Write(sub/out/**)"]);
    let at = |shown: &str, line: &str| Access::Command {
        line: line.to_owned(),
        directory: inside(shown),
        permissions: vec![],
        is_background: false,
    };
    for (access, expected) in [
        (at("sub", "ls > out/x"), "allow"),
        (at("sub", "ls > ./out/x"), "allow"),
        (at("", "ls > sub/out/x"), "allow"),
        (at("", "cd sub && ls > out/x"), "ask |"),
        (at("", "ls > out/x"), "ask Write(out/x)|Write(out/x)"),
    ] {
        assert_eq!(told(verdict(&access, &facts(&rules))), expected, "{access:?}");
    }
}
