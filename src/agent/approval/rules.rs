//! The lists of rules, from the settings and from this session.

use std::path::Path;

use super::rule::Rule;
use crate::{
    config::{ConfiguredRule, Paths, Settings, SettingsWriteError, append},
    protocol::Permissions,
    shell::CommandLine,
};

/// The calls that run without a question (`approvals.run`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunMode {
    /// Commands and changes of files ask.
    Ask,
    /// Commands ask; changes of files are made, and can be taken back.
    List,
    /// Neither asks, where the sandbox holds whole.
    #[default]
    Sandbox,
    /// Nothing asks but what is protected. No word of the settings: it is for one run, and said on the command line.
    Force,
}

/// The word of [`RunMode::Force`], which a file cannot say.
pub const FORCE: &str = "force";

impl RunMode {
    /// The word of the settings; their table knows no other.
    pub fn parse(word: &str) -> Self {
        match word {
            "ask" => Self::Ask,
            "list" => Self::List,
            FORCE => Self::Force,
            _ => Self::Sandbox,
        }
    }
}

/// All rules that hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    pub deny: Vec<Rule>,
    pub ask: Vec<Rule>,
    pub allow: Vec<Rule>,
    /// Rules that were added until the end of the session.
    pub session: Vec<Rule>,
    /// A rule that denies or asks could not be read: what it would have caught is unknown, so nothing is allowed unasked.
    pub is_doubtful: bool,
    /// The settings could not be read: neither what they forbid nor what they hide is known, so even reading asks.
    pub is_unread: bool,
}

impl Rules {
    /// Reads the lists of the settings, and tells what is wrong with them. `home` is what `~` stands for.
    pub fn read(settings: &Settings, home: Option<&Path>) -> (Self, Vec<String>) {
        let mut rules = Self::default();
        let mut problems = Vec::new();
        let lists = [
            ("approvals.deny", &settings.approvals.deny),
            ("approvals.ask", &settings.approvals.ask),
            ("approvals.allow", &settings.approvals.allow),
        ];
        for (name, guards) in lists {
            for guard in guards {
                if *guard == ConfiguredRule::unreadable() {
                    // Whoever read the settings has said so.
                    (rules.is_doubtful, rules.is_unread) = (true, true);
                    continue;
                }
                let problem = |it: String| format!("{name}: {it}");
                let is_allow = name == "approvals.allow";
                let rule = match Rule::parse(&guard.rule, home) {
                    Ok(rule) => rule,
                    Err(malformed) => {
                        rules.is_doubtful |= !is_allow;
                        let more = if is_allow {
                            ""
                        } else {
                            "\n  until you fix it, everything asks"
                        };
                        problems.push(problem(format!("{malformed}{more}")));
                        continue;
                    }
                };
                if is_allow && let Some(why) = rule.is_useless() {
                    problems.push(problem(format!("`{rule}` never allows anything: {why}")));
                }
                let list = match name {
                    "approvals.deny" => &mut rules.deny,
                    "approvals.ask" => &mut rules.ask,
                    _ => &mut rules.allow,
                };
                problems.extend(wrong_examples(guard, &rule, is_allow).into_iter().map(problem));
                list.push(rule);
            }
        }
        (rules, problems)
    }

    /// The mistakes in rules that forbid or ask, for whoever cannot be asked; empty if all of these can be read.
    pub fn unreadable(settings: &Settings, home: Option<&Path>) -> Vec<String> {
        let (rules, problems) = Self::read(settings, home);
        if rules.is_doubtful { problems } else { Vec::new() }
    }

    /// Allows something until the session ends.
    pub fn allow_for_session(&mut self, rules: &[Rule]) {
        for rule in rules {
            if !self.session.contains(rule) {
                self.session.push(rule.clone());
            }
        }
    }
}

/// The permissions in force, for a reader; `session`: rules that were added until its end.
pub fn permissions(settings: &Settings, session: &[Rule]) -> Permissions {
    let (rules, _) = Rules::read(settings, std::env::home_dir().as_deref());
    let written = |rules: &[Rule]| rules.iter().map(ToString::to_string).collect();
    Permissions {
        run: settings.approvals.run.clone(),
        deny: written(&rules.deny),
        ask: written(&rules.ask),
        allow: written(&rules.allow),
        session: written(session),
        has_invalid_rule: rules.is_doubtful,
    }
}

/// Adds rules to `approvals.allow` of the user's own file.
pub fn remember(paths: &Paths, rules: &[Rule]) -> Result<(), SettingsWriteError> {
    for rule in rules {
        append(paths, "approvals.allow", &rule.to_string())?;
    }
    Ok(())
}

/// The examples of a rule that are not as its owner says.
fn wrong_examples(guard: &ConfiguredRule, rule: &Rule, is_allow: bool) -> Vec<String> {
    let holds = |example: &str| match rule {
        Rule::Shell(shell) => {
            let line = CommandLine::read(example);
            if is_allow {
                line.is_plain() && line.commands.iter().all(|it| shell.allows(it))
            } else {
                line.commands.iter().any(|it| shell.catches(it))
            }
        }
        Rule::Read(files) | Rule::Write(files) | Rule::Delete(files) => files.is_example(example, is_allow),
        Rule::Fetch(hosts) => hosts.hold(example),
        Rule::Search => true,
        Rule::Mcp { server, tool } => example
            .split_once(':')
            .is_some_and(|(s, t)| super::rule::is_tool((server, tool), s, t)),
    };
    let expected = guard.matches.iter().map(|it| (it, true));
    let not_expected = guard.not_matches.iter().map(|it| (it, false));
    let wrong = expected
        .chain(not_expected)
        .filter(|(it, expected)| holds(it) != *expected);
    wrong
        .map(|(it, expected)| {
            if expected {
                format!("`{rule}` does not match its example `{it}`")
            } else {
                format!("`{rule}` matches `{it}`, which its `not_match` excludes")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn guard(rule: &str, matches: &[&str], not_matches: &[&str]) -> ConfiguredRule {
        let owned = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect();
        ConfiguredRule {
            rule: rule.to_owned(),
            matches: owned(matches),
            not_matches: owned(not_matches),
        }
    }

    #[test]
    fn examples_are_checked_when_the_rules_are_read() {
        let mut settings = Settings::default();
        settings.approvals.allow = vec![
            guard(
                "Shell(git push)",
                &["git push origin"],
                &["git push; ls", "git push --exec x", "git pull"],
            ),
            guard("Shell(ls)", &["ls $(x)", "cat"], &["ls -l"]),
            guard("Write(src/**)", &["src/a"], &["a"]),
            guard("WebFetch(*.docs.rs)", &["a.docs.rs"], &["docs.rs"]),
            guard("Mcp(a:b*)", &["a:bc"], &["a:c", "a"]),
        ];
        settings.approvals.deny = vec![guard("Shell(rm)", &["ls; /bin/rm x", "sudo rm x"], &["ls rm"])];
        let (rules, problems) = Rules::read(&settings, None);
        assert_eq!((rules.allow.len(), rules.deny.len(), rules.is_doubtful), (5, 1, false));
        assert_eq!(
            problems,
            [
                "approvals.allow: `Shell(ls)` does not match its example `ls $(x)`",
                "approvals.allow: `Shell(ls)` does not match its example `cat`",
                "approvals.allow: `Shell(ls)` matches `ls -l`, which its `not_match` excludes",
            ]
        );
    }

    #[test]
    fn a_broken_rule_that_forbids_makes_everything_doubtful_and_one_that_allows_does_not() {
        let mut settings = Settings::default();
        settings.approvals.allow = vec![
            ConfiguredRule::new("git push"),
            ConfiguredRule::new("Shell(sudo)"),
            ConfiguredRule::new("Shell(bash)"),
        ];
        let (rules, problems) = Rules::read(&settings, None);
        assert!(!rules.is_doubtful);
        assert_eq!(
            problems,
            [
                "approvals.allow: invalid rule `git push`: write a kind and, in parentheses, its subject\n  did you \
                 mean `Shell(git push)`?",
                "approvals.allow: `Shell(sudo)` never allows anything: a program in it runs another one",
                "approvals.allow: `Shell(bash)` never allows anything: it runs any code; name the script too",
            ]
        );
        settings.approvals.deny = vec![ConfiguredRule::new("Shell(sudo)"), ConfiguredRule::new("rm")];
        let (rules, problems) = Rules::read(&settings, None);
        assert!(
            rules.is_doubtful
                && problems
                    .iter()
                    .any(|it| it.ends_with("until you fix it, everything asks"))
        );
        assert_eq!(rules.deny.len(), 1);
    }
}
