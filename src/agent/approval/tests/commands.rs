//! Commands: what decides about them, what is asked, what "always" keeps.

use pretty_assertions::assert_eq;

use super::*;
use crate::shell::programs::git_remote::{GitRemote, git_remotes, host};

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
fn in_plan_and_ask_mode_a_command_needs_the_full_sandbox_and_gets_no_permission() {
    let ruled = Rules {
        deny: rules(&["Shell(rm)"]),
        ask: rules(&["Shell(git)"]),
        ..allowing(&["Shell(ls)", "Shell(cargo) with network"])
    };
    let [none, network, git, all] = [
        &[][..],
        &[Permission::Network],
        &[Permission::GitWrite],
        &[Permission::All],
    ];
    for mode in [Mode::Plan, Mode::Ask] {
        for (line, permissions, run, tier, expected) in [
            ("ls", none, RunMode::List, Tier::Full, "allow"),
            ("make", none, RunMode::Sandbox, Tier::Full, "allow"),
            // Rules and the run mode hold as in other modes.
            ("make", none, RunMode::List, Tier::Full, "ask"),
            ("git log", none, RunMode::Sandbox, Tier::Full, "ask"),
            ("rm x", none, RunMode::Sandbox, Tier::Full, "deny"),
            ("rm x", none, RunMode::Force, Tier::Full, "deny"),
            ("ls", none, RunMode::Sandbox, Tier::Partial, "deny"),
            ("ls", none, RunMode::Force, Tier::Partial, "deny"),
            ("ls", none, RunMode::Force, Tier::None, "deny"),
            ("cargo build", network, RunMode::Force, Tier::Full, "deny"),
            ("ls", git, RunMode::Force, Tier::Full, "deny"),
            ("ls", all, RunMode::Force, Tier::Full, "deny"),
        ] {
            let facts = Facts {
                mode,
                run,
                tier,
                ..facts(&ruled)
            };
            let found = match verdict(&with(line, permissions), &facts) {
                Verdict::Allow => "allow",
                Verdict::Deny(_) => "deny",
                Verdict::Ask(_) => "ask",
            };
            assert_eq!(found, expected, "{mode} {line} {permissions:?} {run:?} {tier:?}");
        }
    }
    let facts = Facts {
        mode: Mode::Plan,
        tier: Tier::Partial,
        ..facts(&ruled)
    };
    assert_eq!(
        verdict(&run("ls"), &facts),
        Verdict::Deny(
            "commands cannot be run in plan mode here: only the full sandbox keeps them from changing anything (gaps)"
                .to_owned()
        )
    );
}

#[test]
fn the_run_mode_the_fence_and_the_permissions_decide_about_commands() {
    let rules = allowing(&["Shell(cargo test)", "Shell(cargo fetch) with network"]);
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
        // A rule gives the network where it says so.
        ("cargo test", &both[1..], RunMode::Sandbox, Tier::Full, "allow"),
        ("cargo test", network, RunMode::Sandbox, Tier::Full, "ask, always"),
        ("cargo test", both, RunMode::Sandbox, Tier::Full, "ask, always"),
        ("cargo test", network, RunMode::List, Tier::Partial, "ask, always"),
        ("cargo fetch", none, RunMode::List, Tier::Full, "allow"),
        ("cargo fetch", both, RunMode::Sandbox, Tier::Full, "allow"),
        (
            "cargo fetch && cargo test",
            network,
            RunMode::Sandbox,
            Tier::Full,
            "ask, always",
        ),
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
        // Where nobody can be asked, commands make do with what a partial sandbox holds by itself.
        let makes_do = tier == Tier::Partial && run == RunMode::Sandbox && permissions.is_empty();
        let expected = if expected == "allow" || (makes_do && cfg!(target_os = "linux")) {
            "allow"
        } else {
            "deny"
        };
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

/// Both sides know the same programs: what no rule allows is looked into by rules that deny, and asks where they see nothing.
#[test]
fn rules_that_deny_see_into_programs_that_run_others() {
    let rules = Rules {
        deny: rules(&["Shell(rm)", "Shell(git push)", "Shell(docker:run*)"]),
        ..Rules::default()
    };
    let facts = Facts {
        run: RunMode::Sandbox,
        ..facts(&rules)
    };
    for (line, expected) in [
        ("awk 'BEGIN { system(\"rm x\") }'", "deny"),
        ("gawk 'BEGIN { \"git push\" | getline }'", "deny"),
        ("awk '{ print | \"/bin/rm x\" }' y", "deny"),
        ("awk 'BEGIN { system(x) }'", "ask"),
        ("awk -f x.awk", "ask"),
        ("sed -n '1e rm x' y", "deny"),
        ("sed 's/a/rm x/e' y", "deny"),
        ("sed -i 's/a/b/e' y", "ask"),
        ("sed -f x y", "ask"),
        ("tar cf a b --checkpoint=1 --checkpoint-action=exec='rm x'", "deny"),
        ("tar cf a b --checkpoint=1 --checkpoint-action exec=rm", "deny"),
        ("tar -Irm -xf a", "deny"),
        ("tar -I 'docker run x' -xf a", "deny"),
        ("vim -c '!rm x'", "deny"),
        ("vim +':!rm x'", "deny"),
        ("nvim --cmd ':silent !git push'", "deny"),
        ("vim -S x", "ask"),
        ("git -c alias.x='!rm y' x", "deny"),
        ("git -c alias.x='!git push' x", "deny"),
        ("git -c core.pager=less log", "ask"),
        ("git grep -O'rm x' y", "deny"),
        ("git rebase -x 'rm y' HEAD~1", "deny"),
        ("git submodule foreach 'rm x'", "deny"),
        ("sort --compress-program=rm x", "deny"),
        ("rg --pre rm x", "deny"),
        ("rsync -e 'rm x' a b:c", "deny"),
        ("make SHELL=/bin/rm x", "deny"),
        ("make --eval='x:;rm x' x", "deny"),
        ("sqlite3 x.db '.shell rm x'", "deny"),
        ("sqlite3 x.db '.sh rm x'", "deny"),
        ("psql -c '\\! rm x'", "deny"),
        ("ld --plugin ./rm.so", "ask"),
        ("zip a b -TT 'rm x'", "deny"),
        ("bash -c 'rm x'", "deny"),
        ("bash -c \"git push\"", "deny"),
        ("python3 -c 'import os; os.system(\"rm x\")'", "deny"),
        ("eval 'rm x'", "deny"),
        ("find . -exec sh -c 'rm {}' \\;", "deny"),
        ("npm exec rm x", "deny"),
        ("poetry run rm x", "deny"),
        ("npx rm x", "deny"),
        ("x86_64-linux-gnu-ld --plugin=rm a.o", "deny"),
        // And these run nothing but themselves.
        ("awk '{ print $1 }' rm", "allow"),
        ("awk '$1 > 5 || $2' rm", "allow"),
        ("sed 's/rm/x/' rm", "allow"),
        ("sed -i s/rm/x/ rm", "allow"),
        ("tar -czf rm.tgz rm", "allow"),
        ("vim rm", "allow"),
        ("git -C rm status", "allow"),
        ("sort -o rm x", "allow"),
        ("make -j4 test", "allow"),
        ("sqlite3 ./rm.db 'select 1'", "allow"),
        ("sed -n '/a/{p;q}' x", "allow"),
        ("npm run build", "allow"),
    ] {
        assert_eq!(
            told(verdict(&run(line), &facts)).split(' ').next(),
            Some(expected),
            "{line}"
        );
    }
    // Every line that no rule may allow because of a program is denied or asks here, too.
    for line in super::hostile::HOSTILE {
        let read = CommandLine::read(line);
        if read.commands.iter().any(programs::runs_others) {
            assert_ne!(told(verdict(&run(line), &facts)), "allow", "{line}");
        }
    }
}

/// The servers behind the git addresses of a line, if the settings put none in their place.
fn remotes(line: &str) -> Vec<String> {
    let found = git_remotes(&CommandLine::read(line)).into_iter().map(|it| match it {
        GitRemote::Cloned(url) => host(&url),
        GitRemote::Named { name, .. } => match name.as_deref() {
            None => None,
            Some("origin") => Some("github.com".to_owned()),
            Some(name) => host(name),
        },
    });
    found.collect::<Option<_>>().unwrap_or_default()
}

/// The servers on the card.
fn reached(line: &str) -> String {
    let (nothing, remotes) = (Rules::default(), remotes(line));
    let facts = Facts {
        remotes: &remotes,
        ..facts(&nothing)
    };
    question(&with(line, &[Permission::Network]), &facts).reaches.join(" ")
}

#[test]
fn an_ordinary_command_names_its_servers_exactly() {
    for (line, expected) in [
        ("curl https://docs.rs", "docs.rs"),
        ("curl -sSfL 'https://docs.rs/x?a=https://evil.example/'", "docs.rs"),
        ("curl -s -o /dev/null -w '%{http_code}' https://docs.rs", "docs.rs"),
        (
            "curl -XPOST -d '{\"a\":1}' -H 'a: b' https://api.example/v1",
            "api.example",
        ),
        ("curl --json '{}' --max-time 5 https://api.example", "api.example"),
        ("curl -fsSLo x.tgz https://kim:pw@docs.rs:8443/x.tgz", "docs.rs"),
        ("curl localhost:3000/health", "localhost"),
        ("curl http://127.0.0.1:8080/ | jq .a", "127.0.0.1"),
        ("curl -s 'https://docs.rs/x?a=1&b=2#c@d' | head -3", "docs.rs"),
        ("curl https://docs.rs intranet", "docs.rs intranet"),
        ("curl intranet/x@y https://docs.rs", "intranet docs.rs"),
        ("curl https://docs.rs && echo https://evil.example", "docs.rs"),
        ("curl -H 'Referer: https://evil.example/' https://docs.rs", "docs.rs"),
        ("wget https://docs.rs/x.tgz", "docs.rs"),
        ("wget -q -O - https://docs.rs/x", "docs.rs"),
        ("wget -qO- docs.rs/x", "docs.rs"),
        ("wget -nv --tries=3 --output-document x https://docs.rs/x", "docs.rs"),
        (
            "wget -c -P out https://a.example/x https://b.example/y",
            "a.example b.example",
        ),
        ("git clone https://github.com/a/b", "github.com"),
        (
            "git clone --depth 1 -b main https://github.com/a/b c && cd c",
            "github.com",
        ),
        ("git clone --depth=1 --branch=main git@github.com:a/b.git", "github.com"),
        ("git clone ssh://git@github.com:22/a/b", "github.com"),
        ("git clone build:x.git y; curl https://docs.rs", "docs.rs build"),
        ("git push", "any host"),
        ("git push origin main", "github.com"),
        ("git push -u --force-with-lease origin HEAD", "github.com"),
        ("git add -A && git commit -m x && git push origin", "github.com"),
        ("git fetch -p --tags origin", "github.com"),
        ("git pull --rebase origin main", "github.com"),
        ("git fetch https://codeberg.org/a/b main", "codeberg.org"),
        ("git push git@codeberg.org:a/b.git main", "codeberg.org"),
        ("git ls-remote --heads https://github.com/a/b", "github.com"),
        ("ssh me@host.example ls -la", "host.example"),
        ("ssh -p 2222 -i key host.example 'uptime; df -h'", "host.example"),
        ("ssh host.example -p 22 ls", "host.example"),
        ("ssh build uptime; curl https://docs.rs", "build docs.rs"),
        ("scp a.txt me@host.example:/tmp/", "host.example"),
        ("scp -rP 22 host.example:x .", "host.example"),
        ("scp secret build:/tmp/x docs.rs:/x", "build docs.rs"),
        (
            "rsync -avz --delete --exclude=.git ./ me@host.example:/srv/",
            "host.example",
        ),
        ("rsync -a host.example::module/x y", "host.example"),
        ("rsync -a rsync://host.example/x y", "host.example"),
        ("npm install", "any host"),
        ("npm install https://a.example/x.tgz", "a.example any host"),
        ("pip install -r requirements.txt", "any host"),
        ("cargo fetch", "any host"),
        ("dig docs.rs", "docs.rs any host"),
    ] {
        assert_eq!(reached(line), expected, "{line}");
    }
}

#[test]
fn an_address_names_the_server_that_its_program_reaches() {
    for (line, expected) in [
        ("curl 'https://docs.rs,@evil.example/x'", "evil.example"),
        ("curl 'https://docs.rs;@evil.example/x'", "evil.example"),
        ("curl 'https://docs.rs&x@evil.example/x'", "evil.example"),
        ("curl 'https://docs.rs$@evil.example/x'", "evil.example"),
        ("curl 'https://docs.rs(@evil.example/x'", "evil.example"),
        ("curl 'https://docs.rs%2f@evil.example/x'", "evil.example"),
        ("wget 'https://docs.rs,@evil.example/x'", "evil.example"),
        ("git clone 'https://docs.rs,@evil.example/x'", "evil.example"),
        ("git ls-remote 'https://docs.rs;@evil.example/x'", "evil.example"),
        ("curl https://docs.rs''.evil.example/", "docs.rs.evil.example"),
        ("curl https://docs.rs\\.evil.example/", "docs.rs.evil.example"),
        ("git clone 'https://docs.rs'.evil.example/x", "docs.rs.evil.example"),
        (
            "curl https:\"//evil.example/x\" https://docs.rs/y",
            "evil.example docs.rs",
        ),
        ("curl https:''//evil.example/x", "evil.example"),
        ("ssh me@docs.rs/@evil.example ls", "evil.example"),
        ("ssh a:b@evil ls; curl https://docs.rs", "evil docs.rs"),
        ("git push 'evil.example:x@docs.rs' main", "evil.example"),
        (
            "git clone evil.example:x@docs.rs y; curl https://docs.rs",
            "docs.rs evil.example",
        ),
        ("scp a 'evil.example:x@docs.rs'", "evil.example"),
        ("git clone 'ext::./evil' y; curl https://docs.rs", "docs.rs any host"),
        ("git clone own://docs.rs/x; curl https://docs.rs", "docs.rs any host"),
        ("git clone -u https://docs.rs/x ./evilrepo", "docs.rs any host"),
        (
            "curl 'https://[a-b].evil.example/x' https://docs.rs",
            "docs.rs any host",
        ),
        ("curl http:/a@evil https://docs.rs", "docs.rs any host"),
    ] {
        assert_eq!(reached(line), expected, "{line}");
    }
}

#[test]
fn rules_about_hosts_see_servers_through_disguises_and_ask_where_they_cannot() {
    let forbidden = Rules {
        deny: rules(&["WebFetch(evil.example)", "WebFetch(*.evil.example)"]),
        allow: rules(&[
            "Shell(curl) with network",
            "Shell(wget) with network",
            "Shell(ping) with network",
            "Shell(git fetch) with network",
            "Shell(git clone) with network",
            "Shell(git log) with network",
            "Shell(npm install) with network",
            "Shell(cargo fetch) with network",
            "Shell(python3 get.py) with network",
            "Shell(ls) with network",
        ]),
        ..Rules::default()
    };
    let asking = Rules {
        ask: forbidden.deny.clone(),
        deny: Vec::new(),
        ..forbidden.clone()
    };
    for (line, expected) in [
        ("curl https://evil.example/x", "deny"),
        ("curl 'https://docs.rs,@evil.example/x'", "deny"),
        ("curl 'https://docs.rs;@evil.example/x'", "deny"),
        ("curl 'https://docs.rs$@evil.example/x'", "deny"),
        ("curl https://docs.rs''.evil.example/", "deny"),
        ("curl https://docs.rs\\.evil.example/", "deny"),
        ("curl https:''//evil.example/x", "deny"),
        ("curl evil.example", "deny"),
        ("curl EVIL.example./x", "deny"),
        ("curl https://evil.example/$x", "deny"),
        ("wget 'https://docs.rs(@evil.example/x'", "deny"),
        ("git fetch evil.example:x@docs.rs", "deny"),
        ("git clone 'https://docs.rs&x@evil.example/x'", "deny"),
        ("ping evil.example", "deny"),
        ("npm install https:''//evil.example/x.tgz", "deny"),
        ("npm install 'git+https://docs.rs,@evil.example/x'", "deny"),
        ("python3 get.py https://docs.rs\"\".evil.example/", "deny"),
        // Each of these may reach it.
        ("curl 'https://[d-f]vil.example/'", "ask"),
        ("curl 'https://{a,evil}.example/'", "ask"),
        ("curl 'https://evil%2eexample/'", "deny"),
        ("curl 'https://docs.rs\\@evil.example'", "ask"),
        ("curl https://$x/", "ask"),
        ("curl \"$x\"", "ask"),
        ("curl -s", "ask"),
        ("ping \"$x\"", "ask"),
        ("ping 10", "ask"),
        ("git fetch", "ask"),
        ("git clone \"$x\"", "ask"),
        ("npm install 'https://docs.rs;x/x.tgz'", "ask"),
        ("npm install \"$x\"", "ask"),
        // These reach what they name, and these choose what they reach.
        ("curl https://docs.rs/x", "allow"),
        ("curl -s https://docs.rs/x && ls", "allow"),
        ("wget -q docs.rs/x", "allow"),
        ("git fetch origin", "allow"),
        ("git clone https://docs.rs/x", "allow"),
        ("npm install", "allow"),
        ("npm install left-pad", "allow"),
        ("cargo fetch", "allow"),
        ("python3 get.py x", "allow"),
    ] {
        let remotes = remotes(line);
        let facts = |rules| Facts {
            remotes: &remotes,
            ..facts(rules)
        };
        let access = with(line, &[Permission::Network]);
        let found = told(verdict(&access, &facts(&forbidden)));
        assert_eq!(found.split(' ').next(), Some(expected), "{line}");
        let found = told(verdict(&access, &facts(&asking)));
        let asks = if expected == "deny" { "ask" } else { expected };
        assert_eq!(found.split(' ').next(), Some(asks), "{line}");
    }
    assert_eq!(
        question(&with("curl https://$x/", &[Permission::Network]), &facts(&forbidden)).why,
        "it is not certain which servers its words name, so rules that forbid or ask cannot be applied"
    );
    let without = Rules {
        deny: Vec::new(),
        ..forbidden
    };
    assert_eq!(
        verdict(&with("ping 10", &[Permission::Network]), &facts(&without)),
        Verdict::Allow
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
        (
            "curl -fsSL -o x -H 'a: b' https://docs.rs/x",
            network,
            &["docs.rs"],
            &["x"],
        ),
        ("wget -qO- https://docs.rs | head -3", network, &["docs.rs"], &[]),
        (
            "git clone -q https://github.com/a/b c && cd c",
            network,
            &["github.com"],
            &[],
        ),
        ("git clone git@github.com:a/b.git", network, &["github.com"], &[]),
        ("ssh me@host.example ls", network, &["host.example"], &[]),
        ("curl http://2130706433/", network, &["127.0.0.1"], &[]),
        ("curl 'http://[::1]:8080/x'", network, &["[::1]"], &[]),
        (
            "python3 -c 'get(\"https://a.example/x\")'",
            network,
            &["a.example", "any host"],
            &[],
        ),
        ("curl https://docs.rs | tee x", network, &["docs.rs"], &["x"]),
        (
            "curl https://docs.rs; find . -exec sh {} +",
            network,
            &["docs.rs", "any host"],
            &[],
        ),
        (
            "curl https://docs.rs; tar xf a --checkpoint-action=exec=sh",
            network,
            &["docs.rs", "any host"],
            &[],
        ),
        ("curl https://docs.rs | sh", network, &["docs.rs", "any host"], &[]),
        (
            "curl https://docs.rs && npm install",
            network,
            &["docs.rs", "any host"],
            &[],
        ),
        (
            "curl https://docs.rs && git push",
            network,
            &["docs.rs", "any host"],
            &[],
        ),
        ("curl https://docs.rs $(cat u)", network, &["docs.rs", "any host"], &[]),
        (
            "curl https://a.example; wget b.example/x",
            network,
            &["a.example", "b.example"],
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
        let remotes = remotes(line);
        let facts = Facts {
            remotes: &remotes,
            ..facts(&nothing)
        };
        let question = question(&with(line, permissions), &facts);
        assert_eq!(question.reaches, reaches, "{line}");
        assert_eq!(question.writes, writes, "{line}");
    }
    // Each of these reaches more than it names.
    for line in [
        "./cat x; curl https://docs.rs",
        "curl https://docs.rs | ./tee b",
        "ssh me@docs.rs ls | ./grep x",
        "rsync -e ./evil a docs.rs:b",
        "ssh -oProxyCommand=./evil me@docs.rs",
        "ssh -J jump me@docs.rs",
        "ssh me@docs.rs -J jump ls",
        "ssh me@docs.rs -oProxyCommand=./evil ls",
        "ncat --exec ./evil docs.rs 80",
        "wget --use-askpass=./evil https://docs.rs",
        "wget -i list https://docs.rs",
        "curl -K cfg https://docs.rs",
        "curl -sK cfg https://docs.rs",
        "curl --proxy evil https://docs.rs",
        "curl -xevil.example:3128 https://docs.rs",
        "curl --connect-to ::evil.example:443 https://docs.rs",
        "curl ftp://docs.rs",
        "curl 'https://docs.rs\\@evil.example'",
        "https_proxy=evil curl https://docs.rs",
        "sftp -b cmds docs.rs",
        "dig docs.rs @9.9.9.9",
        "git rebase -x ./evil --onto https://docs.rs/x",
        "git clone -u ./evil https://docs.rs/x",
        "git ls-remote https://docs.rs/x --upload-pack=./evil",
        "git push -o see=https://docs.rs origin",
        "git evil https://docs.rs/x",
        "git clone -u https://docs.rs/x ./evilrepo",
        "git clone --config core.sshCommand=./evil https://docs.rs/x",
        "git branch -u evil/main && git push",
        "curl a:b@intranet https://docs.rs",
        "curl http:/a@evil https://docs.rs",
        "curl 'https://[a-b].evil.example/x' https://docs.rs",
        "curl 'https://{a,b}.evil.example/x' https://docs.rs",
        "curl 'https://docs.rs%2eevil.example/x' https://docs.rs",
        "curl https://docs.rs/$x",
        "curl https://docs.rs ~/x",
        "curl https://docs.rs x*",
        "wget docs.rs:x@evil.example",
        "ssh $x; curl https://docs.rs",
        "ssh docs.rs -p 22 -J jump ls",
        "rsync -avM ./evil a docs.rs:b",
        "scp -S ./evil a docs.rs:b",
        "scp docs.rs:a -P evil.example:b",
        "git fetch https://docs.rs/x && git evil",
        "git fetch https://docs.rs/x && ./git status",
    ] {
        let remotes = ["docs.rs".to_owned()];
        let facts = Facts {
            remotes: &remotes,
            ..facts(&nothing)
        };
        let reaches = super::question(&with(line, network), &facts).reaches;
        assert!(reaches.contains(&"any host".to_owned()), "{line}: {reaches:?}");
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
        (false, "this system has no sandbox (gaps), so every command asks"),
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
fn what_is_stored_without_the_network_does_not_give_it() {
    let nothing = Rules::default();
    for (permissions, stored) in [
        (&[][..], "Shell(git push)"),
        (&[Permission::GitWrite], "Shell(git push)"),
        (&[Permission::Network], "Shell(git push) with network"),
        (
            &[Permission::Network, Permission::GitWrite],
            "Shell(git push) with network",
        ),
    ] {
        let question = question(&with("git push", permissions), &facts(&nothing));
        assert_eq!(printed(&question.always), [stored]);
        let rules = allowing(&[stored]);
        assert_eq!(verdict(&with("git push", permissions), &facts(&rules)), Verdict::Allow);
        let wants = with("git push", &[Permission::Network]);
        let is_allowed = verdict(&wants, &facts(&rules)) == Verdict::Allow;
        assert_eq!(
            is_allowed,
            permissions.contains(&Permission::Network),
            "{permissions:?}"
        );
    }
}

#[test]
fn no_rule_lets_git_work_in_a_repository_that_came_later() {
    let rules = allowing(&[
        "Shell(git commit)",
        "Shell(git push) with network",
        "Shell(ls)",
        "Shell(cargo build)",
    ]);
    let known = facts(&rules);
    let new = Facts {
        is_new_repository: true,
        ..known
    };
    for (line, permissions) in [
        ("git commit -m x", &[Permission::GitWrite][..]),
        ("git push", &[Permission::Network]),
        ("ls && git commit -m x", &[]),
        ("cd sub && git commit -m x", &[]),
    ] {
        let access = with(line, permissions);
        assert_eq!(verdict(&access, &known), Verdict::Allow, "the control: {line}");
        assert_eq!(told(verdict(&access, &new)), "ask |", "{line}");
    }
    assert_eq!(verdict(&run("ls && cargo build"), &new), Verdict::Allow);
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

#[test]
fn a_rule_that_forbids_a_change_holds_wherever_a_command_goes() {
    let rules = Rules {
        deny: rules(&["Write(docs/**)", "Delete(data/**)"]),
        ..Rules::default()
    };
    let facts = Facts {
        run: RunMode::Sandbox,
        ..facts(&rules)
    };
    for (line, expected) in [
        ("rm docs/y", "deny"),
        ("cd docs && rm y", "deny"),
        ("cd ./docs && touch y", "deny"),
        ("cd docs && echo > y", "deny"),
        ("cd docs/a && cd b && rm y", "deny"),
        ("cd src && rm y", "allow"),
        // Where it goes is not known beforehand.
        ("cd \"$x\" && rm y", "ask"),
        ("cd docs && cd .. && rm y", "deny"),
        ("cd .. && rm y", "ask"),
        ("cd .. && ls", "allow"),
        ("rm -r data", "deny"),
        ("rm data/x", "deny"),
        ("git rm data/x", "deny"),
        ("mv data/x y", "deny"),
        ("cd data && rmdir x", "deny"),
        ("touch data/x", "allow"),
    ] {
        let found = match verdict(&run(line), &facts) {
            Verdict::Allow => "allow",
            Verdict::Deny(_) => "deny",
            Verdict::Ask(_) => "ask",
        };
        assert_eq!(found, expected, "{line}");
    }
}

#[test]
fn a_command_outside_the_sandbox_reads_nothing_that_a_rule_forbids() {
    let rules = Rules {
        deny: rules(&["Read(notes/**)"]),
        ask: rules(&["Read(plans/**)"]),
        ..Rules::default()
    };
    for (run, is_attended) in [(RunMode::Force, false), (RunMode::Sandbox, true)] {
        let facts = Facts {
            run,
            is_attended,
            ..facts(&rules)
        };
        let call = |file: Located| [with("cat x", &[Permission::All]), Access::Read(file)];
        let found = judge(&call(inside("notes/a")), Class::Runs, &facts);
        assert!(
            matches!(found, Verdict::Deny(ref why) if why.contains("Read(notes/**)")),
            "{found:?}"
        );
        // Else the command asks as a whole, and --force answers.
        for file in [inside("plans/a"), inside("x"), file("/etc/x", Place::Outside)] {
            let found = judge(&call(file), Class::Runs, &facts);
            assert_eq!(found == Verdict::Allow, run == RunMode::Force, "{found:?}");
            assert_eq!(matches!(found, Verdict::Ask(_)), is_attended, "{found:?}");
        }
    }
}

#[test]
fn a_folder_at_the_root_is_allowed_for_once_only() {
    let rules = Rules::default();
    for (shown, expected) in [
        ("/", ""),
        ("/etc", ""),
        ("/home/me", ""),
        ("/opt/x/y", "Read(/opt/x/y/**)"),
    ] {
        let folder = Located {
            is_folder: true,
            ..file(shown, Place::Outside)
        };
        let found = question(&Access::Read(folder), &facts(&rules));
        assert_eq!(printed(&found.always).join(" "), expected, "{shown}");
    }
}
