//! What a rule allows is what bash runs: lines made up at random, run by a real bash among programs that only say their names.

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use sheaf::{
    agent::approval::{Facts, Rule, Rules, RunMode, Tier, Verdict, judge},
    protocol::Mode,
    sandbox::{Located, Place},
    tools::{Access, Class},
};

/// Programs that stand in the path; each writes its name and first argument down and copies nothing.
const PROGRAMS: [&str; 12] = [
    "ls", "git", "rm", "evil", "cat", "x", "a", "env", "xargs", "find", "sudo", "-x",
];

/// What lines are made of.
const PIECES: [&str; 96] = [
    "ls",
    "ls",
    "ls",
    "git",
    "git push",
    "git",
    "push",
    "rm",
    "evil",
    "cat",
    "env",
    "xargs",
    "find",
    "sudo",
    "x",
    "a",
    " ",
    " ",
    " ",
    " ",
    "\t",
    ";",
    "&&",
    "||",
    "|",
    "|&",
    "&",
    "\n",
    "(",
    ")",
    "{",
    "}",
    "{ ",
    "; }",
    "$(",
    ")",
    "`",
    "\"",
    "'",
    "\\",
    "\\\n",
    "$",
    "${",
    "}",
    "${x:-",
    "${IFS}",
    "$IFS",
    "$x",
    "$@",
    "$'",
    "$\"",
    "((",
    "))",
    "[[",
    "]]",
    "[",
    "]",
    "!",
    "! ",
    "*",
    "?",
    "~",
    "#",
    " #",
    "=",
    "a=",
    "PATH=.",
    "<",
    ">",
    ">>",
    "<<<",
    "<<a",
    "<(",
    ">(",
    ">&",
    "2>&1",
    "&>",
    "> /dev/null",
    "2>/dev/null",
    "<>",
    ">|",
    ",",
    "{ls,rm}",
    "if ",
    "then ",
    "fi",
    "for ",
    "in ",
    "do ",
    "done",
    "case ",
    "esac",
    ";;",
    "function ",
    "time ",
    "coproc ",
];

struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let bin = folder.path().join("bin");
        fs::create_dir_all(&bin).expect("a folder");
        for program in PROGRAMS {
            let path = bin.join(program);
            let text = "#!/bin/bash\nprintf '%s %s\\n' \"${0##*/}\" \"$1\" >>\"$LOG\"\n";
            fs::write(&path, text).expect("a program");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
        }
        Self { folder }
    }

    /// The programs that bash starts for a line, each with its first argument.
    fn run(&self, line: &str) -> BTreeSet<String> {
        let log = self.folder.path().join("log");
        let work = self.folder.path().join("work");
        fs::write(&log, "").expect("a log");
        fs::remove_dir_all(&work).ok();
        fs::create_dir_all(&work).expect("a folder");
        // Bash itself without a path is found by its place.
        let status = Command::new("/bin/bash")
            .args(["--noprofile", "--norc", "-c", line])
            .current_dir(&work)
            .env_clear()
            .env("PATH", self.folder.path().join("bin"))
            .env("LOG", &log)
            .env("HOME", &work)
            .env("x", "evil")
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status();
        status.expect("a bash");
        let names = fs::read_to_string(&log).expect("a log");
        names.lines().map(str::to_owned).collect()
    }

    /// What stands in the folder in which the line ran.
    fn left(&self) -> usize {
        fs::read_dir(self.folder.path().join("work")).map_or(0, Iterator::count)
    }
}

fn is_allowed(line: &str, rules: &[&str]) -> bool {
    let allow = rules.iter().map(|it| Rule::parse(it, None).expect("a rule")).collect();
    let rules = Rules {
        allow,
        ..Rules::default()
    };
    let access = Access::Command {
        line: line.to_owned(),
        directory: Located {
            path: Path::new("/work").to_owned(),
            shown: String::new(),
            place: Place::Inside,
            is_protected: false,
            is_folder: false,
        },
        permissions: vec![],
        is_background: false,
    };
    let facts = Facts {
        mode: Mode::Agent,
        run: RunMode::List,
        tier: Tier::Full,
        rules: &rules,
        is_attended: true,
        is_halted: false,
        limit_reached: None,
        remotes: &[],
        is_new_repository: false,
        gaps: "",
        is_sandbox_off: false,
    };
    judge(&[access], Class::Runs, &facts) == Verdict::Allow
}

/// Runs lines of `strategy` until `wanted` of them were allowed by a rule for `ls` and one for `git push`.
fn differential(strategy: impl Strategy<Value = String>, tried: usize) -> usize {
    let stage = Stage::new();
    let mut runner = TestRunner::deterministic();
    let mut allowed = 0;
    for _ in 0..tried {
        let line = strategy.new_tree(&mut runner).expect("a line").current();
        if line.contains('\0') || !is_allowed(&line, &["Shell(ls)", "Shell(git push)"]) {
            continue;
        }
        allowed += 1;
        let ran = stage.run(&line);
        let is_fine = |it: &String| it.starts_with("ls ") || it == "git push";
        assert!(ran.iter().all(is_fine), "{line:?} ran {ran:?}");
        assert_eq!(stage.left(), 0, "{line:?} left something behind");
    }
    allowed
}

#[test]
fn bash_runs_nothing_but_what_a_rule_allows() {
    let pieces = prop::collection::vec(prop::sample::select(&PIECES[..]), 1..12);
    let begun = pieces.prop_map(|it| format!("ls {}", it.concat()));
    let allowed = differential(begun, TRIED);
    assert!(allowed > TRIED / 100, "{allowed} were allowed: nothing was tested");
}

#[test]
fn bash_reads_odd_characters_as_we_do() {
    let odd = "[ls gitpush;&|<>(){}\\[\\]$`\"'\\\\!*?~#=\t\r\n\u{a0}\u{2028}\u{3000}\u{7f}\u{1}é]{1,12}";
    let allowed = differential(odd.prop_map(|it| format!("ls {it}")), TRIED);
    assert!(allowed > TRIED / 100, "{allowed} were allowed: nothing was tested");
}

#[test]
fn a_line_that_bash_cannot_read_is_not_allowed() {
    let stage = Stage::new();
    let mut runner = TestRunner::deterministic();
    let pieces = prop::collection::vec(prop::sample::select(&PIECES[..]), 1..8);
    let mut checked = 0;
    for _ in 0..TRIED {
        let line = format!(
            "ls {}",
            pieces.new_tree(&mut runner).expect("a line").current().concat()
        );
        if !is_allowed(&line, &["Shell(ls)", "Shell(git push)"]) {
            continue;
        }
        checked += 1;
        let status = Command::new("/bin/bash")
            .args(["--noprofile", "--norc", "-n", "-c", &line])
            .current_dir(stage.folder.path())
            .stderr(std::process::Stdio::null())
            .status();
        assert!(status.expect("a bash").success(), "{line:?}");
    }
    assert!(checked > TRIED / 100, "{checked} were allowed: nothing was tested");
}

#[test]
fn the_stage_shows_what_a_line_runs() {
    let stage = Stage::new();
    for (line, expected) in [
        ("ls x; rm y", &["ls x", "rm y"][..]),
        ("ls $(evil z)", &["evil z", "ls "]),
        ("$x z", &["evil z"]),
        ("git push; git pull", &["git pull", "git push"]),
    ] {
        let ran = stage.run(line);
        assert_eq!(ran.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{line}");
    }
}

/// How many lines are made up. A few of a hundred are allowed and run; all of these take some seconds.
const TRIED: usize = 6000;
