//! What is judged how: tables of lines and of calls.

mod commands;
mod files;
mod hostile;

use std::path::PathBuf;

use pretty_assertions::assert_eq;

use super::{Facts, Question, Rule, Rules, RunMode, Tier, Verdict, judge};
use crate::{
    protocol::{Mode, Permission},
    sandbox::{Located, LookLimit, Place},
    shell::{CommandLine, programs},
    tools::{Access, Class},
};

fn rules(list: &[&str]) -> Vec<Rule> {
    let home = PathBuf::from("/home/me");
    let one = |it: &&str| Rule::parse(it, Some(&home)).unwrap_or_else(|error| panic!("{error}"));
    list.iter().map(one).collect()
}

fn allowing(list: &[&str]) -> Rules {
    Rules {
        allow: rules(list),
        ..Rules::default()
    }
}

fn facts(rules: &Rules) -> Facts<'_> {
    Facts {
        mode: Mode::Agent,
        run: RunMode::List,
        tier: Tier::Full,
        gaps: "gaps",
        rules,
        is_attended: true,
        is_halted: false,
        limit_reached: None,
        remotes: &[],
        is_new_repository: false,
        is_sandbox_off: false,
    }
}

fn file(shown: &str, place: Place) -> Located {
    let path = match place {
        Place::Inside => PathBuf::from("/work/project").join(shown),
        Place::Added | Place::Outside | Place::Hidden => PathBuf::from(shown),
    };
    Located {
        path,
        shown: shown.to_owned(),
        place,
        is_protected: false,
        is_folder: false,
    }
}

fn inside(shown: &str) -> Located {
    file(shown, Place::Inside)
}

fn run(line: &str) -> Access {
    with(line, &[])
}

fn with(line: &str, permissions: &[Permission]) -> Access {
    Access::Command {
        line: line.to_owned(),
        directory: inside(""),
        permissions: permissions.to_vec(),
        is_background: false,
    }
}

fn verdict(access: &Access, facts: &Facts<'_>) -> Verdict {
    judge(std::slice::from_ref(access), Class::Runs, facts)
}

fn question(access: &Access, facts: &Facts<'_>) -> Question {
    match verdict(access, facts) {
        Verdict::Ask(question) => question,
        other => panic!("{access:?}: {other:?}"),
    }
}

fn printed(rules: &[Rule]) -> Vec<String> {
    rules.iter().map(ToString::to_string).collect()
}

#[test]
fn pages_searches_and_servers_are_judged_by_name() {
    let rules = Rules {
        allow: rules(&["WebFetch(*.rust-lang.org)", "WebFetch(docs.rs)", "Mcp(tickets:*)"]),
        ask: rules(&["WebFetch(ask.docs.rs)"]),
        deny: rules(&["WebFetch(bad.rust-lang.org)", "Mcp(tickets:delete_*)"]),
        ..Rules::default()
    };
    let fetch = |host: &str| Access::Fetch {
        url: format!("https://{host}/"),
        host: host.to_owned(),
    };
    let tool = |server: &str, tool: &str| Access::Mcp {
        server: server.to_owned(),
        tool: tool.to_owned(),
    };
    for (access, class, run, expected) in [
        (fetch("docs.rs"), Class::Runs, RunMode::Ask, "allow"),
        (fetch("DOCS.rs."), Class::Runs, RunMode::Sandbox, "allow"),
        (
            fetch("docs.rs.evil.example"),
            Class::Runs,
            RunMode::Sandbox,
            "ask WebFetch(docs.rs.evil.example)|WebFetch(docs.rs.evil.example)",
        ),
        (
            fetch("xdocs.rs"),
            Class::Runs,
            RunMode::Sandbox,
            "ask WebFetch(xdocs.rs)|WebFetch(xdocs.rs)",
        ),
        (fetch("www.rust-lang.org"), Class::Runs, RunMode::Sandbox, "allow"),
        (
            fetch("rust-lang.org"),
            Class::Runs,
            RunMode::Sandbox,
            "ask WebFetch(rust-lang.org)|WebFetch(rust-lang.org)",
        ),
        (
            fetch("evilrust-lang.org"),
            Class::Runs,
            RunMode::Sandbox,
            "ask WebFetch(evilrust-lang.org)|WebFetch(evilrust-lang.org)",
        ),
        (fetch("bad.rust-lang.org"), Class::Runs, RunMode::Sandbox, "deny"),
        (fetch("ask.docs.rs"), Class::Runs, RunMode::Sandbox, "ask |"),
        (Access::Search, Class::Runs, RunMode::Sandbox, "allow"),
        (Access::Search, Class::Runs, RunMode::List, "allow"),
        (
            Access::Search,
            Class::Runs,
            RunMode::Ask,
            "ask WebSearch(*)|WebSearch(*)",
        ),
        (tool("tickets", "read"), Class::Runs, RunMode::Sandbox, "allow"),
        (tool("tickets", "delete_all"), Class::Runs, RunMode::Sandbox, "deny"),
        (
            tool("other", "read"),
            Class::Runs,
            RunMode::Sandbox,
            "ask Mcp(other:read)|Mcp(other:read)",
        ),
        (tool("other", "read"), Class::Reads, RunMode::Sandbox, "allow"),
        (
            tool("other", "read"),
            Class::Reads,
            RunMode::Ask,
            "ask Mcp(other:read)|Mcp(other:read)",
        ),
    ] {
        let facts = Facts { run, ..facts(&rules) };
        let found = judge(std::slice::from_ref(&access), class, &facts);
        assert_eq!(told(found), expected, "{access:?} {class:?} {run:?}");
    }
    assert_eq!(question(&fetch("a.example"), &facts(&rules)).reaches, ["a.example"]);
}

#[test]
fn plan_and_ask_mode_change_nothing() {
    let rules = allowing(&["Shell(ls)", "Write(**)", "Mcp(*:*)", "WebFetch(*)"]);
    let reads = [
        Access::Read(inside("a")),
        Access::Search,
        Access::Fetch {
            url: "https://a.example/".to_owned(),
            host: "a.example".to_owned(),
        },
    ];
    let changes = [
        Access::Write(inside("a")),
        Access::Delete(inside("a")),
        Access::Mcp {
            server: "a".to_owned(),
            tool: "b".to_owned(),
        },
    ];
    for mode in [Mode::Plan, Mode::Ask] {
        let facts = Facts { mode, ..facts(&rules) };
        for access in &reads {
            assert_eq!(verdict(access, &facts), Verdict::Allow, "{access:?}");
        }
        for access in &changes {
            assert_eq!(told(verdict(access, &facts)), "deny", "{access:?}");
        }
        assert_eq!(
            judge(&changes[2..], Class::Reads, &facts),
            Verdict::Allow,
            "a trusted server that only reads"
        );
    }
}

#[test]
fn several_things_are_one_question_and_the_strictest_word_counts() {
    let nothing = Rules::default();
    let outside = |path: &str| Access::Read(file(path, Place::Outside));
    let calls = [
        outside("/opt/a/b/x.h"),
        Access::Read(inside("a")),
        outside("/opt/a/c/x.h"),
        outside("/opt/a/b/y.h"),
    ];
    let found = told(judge(&calls, Class::Reads, &facts(&nothing)));
    let rules = "Read(/opt/a/b/**) Read(/opt/a/c/**)";
    assert_eq!(found, format!("ask {rules}|{rules}"));
    let calls = [outside("/opt/a/b/x.h"), Access::Delete(inside("x"))];
    assert_eq!(
        told(judge(&calls, Class::Writes, &facts(&nothing))),
        "ask Read(/opt/a/b/**) Delete(./x)|Read(/opt/a/b/**) Delete(./x)"
    );
    let protected = Located {
        is_protected: true,
        ..inside(".envrc")
    };
    let calls = [outside("/opt/a/b/x.h"), Access::Delete(protected)];
    assert_eq!(
        told(judge(&calls, Class::Writes, &facts(&nothing))),
        "ask protected |",
        "always would not cover the deletion"
    );
    let calls = [outside("/opt/a/b/x.h"), Access::Write(inside(".git/x"))];
    assert_eq!(told(judge(&calls, Class::Writes, &facts(&nothing))), "deny");
    assert_eq!(judge(&[], Class::Reads, &facts(&nothing)), Verdict::Allow);
}

#[test]
fn a_question_of_several_accesses_names_each_host_once() {
    let fetch = |host: &str| Access::Fetch {
        url: format!("https://{host}/"),
        host: host.to_owned(),
    };
    let calls = ["a.example", "b.example", "a.example"].map(fetch);
    let nothing = Rules::default();
    let Verdict::Ask(question) = judge(&calls, Class::Runs, &facts(&nothing)) else {
        panic!("pages of unknown hosts ask");
    };
    assert_eq!(question.reaches, ["a.example", "b.example"]);
}

#[test]
fn a_question_that_a_rule_wants_names_the_rule() {
    for (rule, access) in [
        ("WebFetch(docs.rs)", {
            let (url, host) = ("https://docs.rs/".to_owned(), "docs.rs".to_owned());
            Access::Fetch { url, host }
        }),
        ("Read(/opt/lib/**)", Access::Read(file("/opt/lib/a.h", Place::Outside))),
        ("Write(Cargo.lock)", Access::Write(inside("Cargo.lock"))),
        ("Delete(build/**)", Access::Delete(inside("build/a"))),
    ] {
        let asking = Rules {
            ask: rules(&[rule]),
            ..Rules::default()
        };
        let question = question(&access, &facts(&asking));
        assert!(
            question.is_wanted && question.why.contains(rule),
            "{rule}: {question:?}"
        );
    }
}

#[test]
fn when_nobody_is_there_the_refusal_says_what_is_missing() {
    let nothing = Rules::default();
    let alone = Facts {
        is_attended: false,
        run: RunMode::Sandbox,
        ..facts(&nothing)
    };
    for (access, expected) in [
        (
            with("git push origin", &[Permission::Network, Permission::GitWrite]),
            "it needs the permission network and git_write; sheaf cannot ask for approval here\n\
             to allow it, add to your settings: approvals.allow = [\"Shell(git push) with network\"]",
        ),
        (
            with("ls", &[Permission::All]),
            "it would run outside the sandbox; sheaf cannot ask for approval here, and no rule allows this",
        ),
        (
            Access::Read(file("/opt/lib/x/a.h", Place::Outside)),
            "`/opt/lib/x/a.h` is outside the workspace; sheaf cannot ask for approval here\n\
             to allow it, add to your settings: approvals.allow = [\"Read(/opt/lib/x/**)\"]",
        ),
        (
            Access::Delete(inside("a")),
            "it deletes `a`; sheaf cannot ask for approval here\n\
             to allow it, add to your settings: approvals.allow = [\"Delete(./a)\"]",
        ),
    ] {
        assert_eq!(verdict(&access, &alone), Verdict::Deny(expected.to_owned()));
    }
}

#[test]
fn a_rule_that_cannot_be_read_makes_everything_ask() {
    let rules = Rules {
        is_doubtful: true,
        ..allowing(&["Shell(ls)", "WebFetch(docs.rs)"])
    };
    for run_mode in [RunMode::List, RunMode::Sandbox] {
        let facts = Facts {
            run: run_mode,
            ..facts(&rules)
        };
        assert_eq!(told(verdict(&run("ls"), &facts)), "ask |");
        assert_eq!(told(verdict(&Access::Write(inside("a")), &facts)), "ask |");
        // It may be the one that forbids to read this.
        assert_eq!(told(verdict(&Access::Read(inside("a")), &facts)), "ask |");
    }
}

#[test]
fn settings_that_cannot_be_read_make_even_reading_ask() {
    let mut settings = crate::config::Settings::default();
    settings
        .approvals
        .deny
        .push(crate::config::ConfiguredRule::unreadable());
    let (read, problems) = Rules::read(&settings, None);
    assert_eq!((read.is_unread, problems.len()), (true, 0));
    let rules = Rules {
        is_doubtful: read.is_doubtful,
        is_unread: read.is_unread,
        ..allowing(&["Shell(ls)", "Read(**)"])
    };
    for run_mode in [RunMode::List, RunMode::Sandbox, RunMode::Force] {
        let facts = Facts {
            run: run_mode,
            ..facts(&rules)
        };
        for access in [run("ls"), Access::Write(inside("a")), Access::Read(inside("a"))] {
            assert_eq!(told(verdict(&access, &facts)), "ask |", "{access:?}");
        }
    }
}

#[test]
fn every_command_asks_where_not_every_file_is_known() {
    let rules = allowing(&["Shell(ls)"]);
    for run_mode in [RunMode::List, RunMode::Sandbox, RunMode::Force] {
        let known = Facts {
            run: run_mode,
            ..facts(&rules)
        };
        let partly = Facts {
            limit_reached: Some(LookLimit::Entries),
            ..known
        };
        assert_eq!(told(verdict(&run("ls"), &known)), "allow", "the control");
        assert_eq!(told(verdict(&run("ls"), &partly)), "ask |");
        assert_eq!(told(verdict(&Access::Read(inside("a")), &partly)), "allow");
    }
    // One reason hides no other.
    let partly = Facts {
        limit_reached: Some(LookLimit::Entries),
        ..facts(&rules)
    };
    let limit = "there are more files than can be looked at, so not all are protected and every command asks";
    for (permissions, is_halted, expected) in [
        (&[][..], false, limit.to_owned()),
        (
            &[Permission::All],
            false,
            format!("it would run outside the sandbox; {limit}"),
        ),
        (
            &[Permission::Network],
            false,
            format!("it needs the permission network; {limit}"),
        ),
        (
            &[Permission::All],
            true,
            format!(
                "it would run outside the sandbox; a command changed protected files, so every command asks; {limit}"
            ),
        ),
    ] {
        let facts = Facts { is_halted, ..partly };
        assert_eq!(question(&with("ls", permissions), &facts).why, expected);
    }
}

/// Lines that the rules beside them allow.
const BENIGN: &[(&str, &[&str])] = &[
    ("ls", &["Shell(ls)"]),
    ("ls -la", &["Shell(ls)"]),
    ("ls -la src tests", &["Shell(ls)"]),
    ("  ls  ", &["Shell(ls)"]),
    ("ls\t-l", &["Shell(ls)"]),
    ("ls *.rs", &["Shell(ls)"]),
    ("ls src/**/*.rs", &["Shell(ls)"]),
    ("ls {src,tests}", &["Shell(ls)"]),
    ("ls ~", &["Shell(ls)"]),
    ("ls $HOME", &["Shell(ls)"]),
    ("ls \"$HOME/x y\"", &["Shell(ls)"]),
    ("ls 'a b'", &["Shell(ls)"]),
    ("ls \"a b\"", &["Shell(ls)"]),
    ("ls a\\ b", &["Shell(ls)"]),
    ("'ls' x", &["Shell(ls)"]),
    ("l\\s x", &["Shell(ls)"]),
    ("ls \"it's\"", &["Shell(ls)"]),
    ("ls 'a;b'", &["Shell(ls)"]),
    ("ls 'a$(rm x)'", &["Shell(ls)"]),
    ("ls \"a;b|c&d\"", &["Shell(ls)"]),
    ("ls a=b", &["Shell(ls)"]),
    ("ls ä€", &["Shell(ls)"]),
    ("ls 2>&1", &["Shell(ls)"]),
    ("ls 2>/dev/null", &["Shell(ls)"]),
    ("ls > /dev/null 2>&1", &["Shell(ls)"]),
    ("ls &> /dev/null", &["Shell(ls)"]),
    ("ls 2>&-", &["Shell(ls)"]),
    ("ls || true", &["Shell(ls)", "Shell(true)"]),
    ("ls; pwd", &["Shell(ls)", "Shell(pwd)"]),
    ("(ls; pwd)", &["Shell(ls)", "Shell(pwd)"]),
    ("{ ls; pwd; }", &["Shell(ls)", "Shell(pwd)"]),
    ("! ls", &["Shell(ls)"]),
    ("ls;", &["Shell(ls)"]),
    ("cat < Cargo.toml", &["Shell(cat)"]),
    ("cat <<< 'x'", &["Shell(cat)"]),
    ("cat <<< '2'>&1", &["Shell(cat)"]),
    ("cat -- -x", &["Shell(cat)"]),
    ("cat a | grep b", &["Shell(cat)", "Shell(grep)"]),
    ("cat a | grep b | wc -l", &["Shell(cat)", "Shell(grep)", "Shell(wc)"]),
    (
        "cat a | sort | uniq -c | sort -rn | head -5",
        &["Shell(cat)", "Shell(sort)", "Shell(uniq)", "Shell(head)"],
    ),
    ("echo hello world", &["Shell(echo)"]),
    ("echo \"the answer: $ANSWER\"", &["Shell(echo)"]),
    ("echo a > out/log.txt", &["Shell(echo)", "Write(out/**)"]),
    ("echo a >> out/log.txt", &["Shell(echo)", "Write(out/*.txt)"]),
    ("echo a > log.txt", &["Shell(echo)", "Write(log.txt)"]),
    ("printf '%s\\n' a", &["Shell(printf)"]),
    ("test -f Cargo.toml && cat Cargo.toml", &["Shell(test)", "Shell(cat)"]),
    ("grep -rn 'fn main' src", &["Shell(grep)"]),
    ("grep -E '^(a|b)$' x", &["Shell(grep)"]),
    ("rg -n \"foo|bar\" src", &["Shell(rg)"]),
    ("find . -name '*.rs' -type f", &["Shell(find)"]),
    ("find src -newer x -print", &["Shell(find)"]),
    ("fd -e rs", &["Shell(fd)"]),
    ("sed -n '1,20p' src/main.rs", &["Shell(sed)"]),
    ("sed 's/a/b/g' x", &["Shell(sed)"]),
    ("sed -E 's|/a/|/b/|g' x", &["Shell(sed)"]),
    ("awk '{print $1}' x", &["Shell(awk)"]),
    ("awk -F: '{print $1}' /etc/passwd", &["Shell(awk)"]),
    ("git status", &["Shell(git status)"]),
    ("git status --short", &["Shell(git status)"]),
    ("git log --oneline -5", &["Shell(git log)"]),
    ("git diff HEAD~1 -- src", &["Shell(git diff)"]),
    (
        "git add . && git commit -m 'a; b $(c)'",
        &["Shell(git add)", "Shell(git commit)"],
    ),
    ("git commit -m \"it works\"", &["Shell(git commit)"]),
    ("git push", &["Shell(git push)"]),
    ("git push -u origin main", &["Shell(git push)"]),
    ("git push origin main", &["Shell(git:push*)"]),
    ("git checkout -b x", &["Shell(git:*)"]),
    ("cargo test", &["Shell(cargo test)"]),
    ("cargo test --lib parser:: -- --nocapture", &["Shell(cargo test)"]),
    ("cargo build --release && cargo test", &["Shell(cargo)"]),
    ("cd crates/core && cargo test", &["Shell(cargo test)"]),
    ("cd sub && ls", &["Shell(ls)"]),
    ("npm run test", &["Shell(npm run test)"]),
    ("npm run test -- --watch=false", &["Shell(npm run test)"]),
    ("npm test", &["Shell(npm test)"]),
    ("go test ./...", &["Shell(go test)"]),
    ("pytest -q tests/test_a.py::test_b", &["Shell(pytest)"]),
    ("python3 build.py --fast", &["Shell(python3 build.py)"]),
    ("python3 -m pytest -q", &["Shell(python3 -m pytest)"]),
    ("python3 --version", &["Shell(python3 --version)"]),
    ("node scripts/gen.js", &["Shell(node scripts/gen.js)"]),
    ("bash build.sh all", &["Shell(bash build.sh)"]),
    ("./scripts/test.sh --all", &["Shell(./scripts/test.sh)"]),
    ("make -j4 test", &["Shell(make)"]),
    ("curl -sS https://docs.rs", &["Shell(curl:*)"]),
    ("curl -sSL https://docs.rs/x", &["Shell(curl)"]),
    ("tar -tzf a.tgz", &["Shell(tar)"]),
    ("jq '.a | .b' x.json", &["Shell(jq)"]),
    ("docker compose ps", &["Shell(docker compose ps)"]),
    ("mkdir -p out/a", &["Shell(mkdir)"]),
    ("wc -l src/*.rs", &["Shell(wc)"]),
    ("diff a b", &["Shell(diff)"]),
    ("rustc --version", &["Shell(rustc --version)"]),
    ("sed -n '/a/{p;q}' x", &["Shell(sed)"]),
    ("sed -e 's/a/b/' -e '$d' x", &["Shell(sed)"]),
    ("gcc -Wall -O2 -fPIC -c a.c", &["Shell(gcc)"]),
    ("make -j4 V1 test", &["Shell(make)"]),
    ("make V=1 test", &["Shell(make V=1)"]),
    ("sqlite3 ./x.db 'select 1'", &["Shell(sqlite3)"]),
    ("psql -c 'select 1'", &["Shell(psql)"]),
    ("mysql -e 'select 1'", &["Shell(mysql)"]),
    ("cmake -S . -B build -DCMAKE_BUILD_TYPE=Debug", &["Shell(cmake)"]),
    ("git switch -c x", &["Shell(git switch)"]),
];

/// A verdict in a few words.
fn told(verdict: Verdict) -> String {
    match verdict {
        Verdict::Allow => "allow".to_owned(),
        Verdict::Deny(_) => "deny".to_owned(),
        Verdict::Ask(it) => {
            let mark = if it.is_protected { " protected" } else { "" };
            format!(
                "ask{mark} {}|{}",
                printed(&it.always).join(" "),
                printed(&it.session).join(" ")
            )
        }
    }
}
