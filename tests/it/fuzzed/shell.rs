//! A line for the shell is read in bounded time, and what is doubtful in it is never allowed.

use std::path::PathBuf;

use sheaf::{
    agent::approval::{Facts, Rule, Rules, RunMode, Tier, Verdict, judge},
    config::{ConfiguredRule, Settings},
    protocol::Mode,
    sandbox::{Located, Place},
    shell::{CommandLine, tests_of},
    tools::{Access, Class},
};

pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let line = CommandLine::read(&text);
    tests_of(&text, Some(0));
    let is_plain = line.doubts.is_empty();
    for command in &line.commands {
        assert!(!command.words.is_empty(), "a command has a program: {text:?}");
    }
    if let Ok(rule) = Rule::parse(&text, None) {
        assert_eq!(Rule::parse(&rule.to_string(), None), Ok(rule), "{text:?}");
    }
    let mut settings = Settings::default();
    settings.approvals.allow = ["Shell(ls)", "Shell(git status)", "Shell(echo)"]
        .map(ConfiguredRule::new)
        .to_vec();
    let (rules, _) = Rules::read(&settings, None);
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
    let access = Access::Command {
        line: text.into_owned(),
        directory: Located {
            path: PathBuf::from("/w"),
            shown: ".".to_owned(),
            place: Place::Inside,
            is_protected: false,
            is_folder: false,
        },
        permissions: Vec::new(),
        is_background: false,
    };
    if judge(&[access], Class::Runs, &facts) == Verdict::Allow {
        assert!(is_plain, "{line:?}");
        for command in &line.commands {
            let program = command.words.first().and_then(|it| it.text.as_deref());
            // To go elsewhere asks nothing: it ends with the command.
            assert!(matches!(program, Some("ls" | "git" | "echo" | "cd")), "{line:?}");
        }
        assert!(
            line.redirects
                .iter()
                .all(|it| !it.writes || it.file.text.as_deref() == Some("/dev/null")),
            "{line:?}"
        );
    }
}
