//! `sheaf doctor`: checks the installation and suggests fixes.
//!
//! Facts are gathered first, then judged by pure functions. Observed texts are untrusted and are sanitized; keys never
//! appear, not even in a server's own messages.

mod boundary;
mod extensions;
mod folder;
mod network;
mod terminal;

use std::{
    io::{self, Write},
    path::Path,
};

use serde_json::{Value, json};

use crate::{
    agent::tool_selection,
    config::{Environment, Location, Paths, Problem, Secret, Settings},
    text::{Sanitized, figure},
    theme,
    tools::{built_in, web_search},
};

pub use terminal::{Keyboard, TerminalFacts, Tmux};

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckVerdict {
    Good,
    /// It works, with something missing.
    Doubtful,
    Bad,
}

impl CheckVerdict {
    const fn sign(self) -> &'static str {
        match self {
            Self::Good => "✓",
            Self::Doubtful => "!",
            Self::Bad => "✗",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Doubtful => "doubtful",
            Self::Bad => "bad",
        }
    }
}

/// Topic of a check, in the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    Terminal,
    Keys,
    Configuration,
    Folders,
    Sandbox,
    Network,
    Models,
}

impl Topic {
    const fn word(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Keys => "keys",
            Self::Configuration => "configuration",
            Self::Folders => "folders",
            Self::Sandbox => "sandbox",
            Self::Network => "network",
            Self::Models => "models",
        }
    }
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub topic: Topic,
    pub name: Sanitized,
    pub verdict: CheckVerdict,
    /// Observed facts, on one line.
    pub seen: Sanitized,
    /// Suggested fix, one step per line; empty if all is well.
    pub remedy: Sanitized,
}

impl Check {
    fn new(topic: Topic, name: &str, verdict: CheckVerdict, seen: &str) -> Self {
        Self {
            topic,
            name: Sanitized::new(name),
            verdict,
            seen: Sanitized::new(seen.trim()),
            remedy: Sanitized::default(),
        }
    }

    fn good(topic: Topic, name: &str, seen: &str) -> Self {
        Self::new(topic, name, CheckVerdict::Good, seen)
    }

    fn doubtful(topic: Topic, name: &str, seen: &str, remedy: &str) -> Self {
        Self::new(topic, name, CheckVerdict::Doubtful, seen).remedy(remedy)
    }

    fn bad(topic: Topic, name: &str, seen: &str, remedy: &str) -> Self {
        Self::new(topic, name, CheckVerdict::Bad, seen).remedy(remedy)
    }

    fn remedy(mut self, remedy: &str) -> Self {
        self.remedy = Sanitized::new(remedy.trim());
        self
    }
}

/// All checks, by topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub checks: Vec<Check>,
}

impl Report {
    fn new(mut checks: Vec<Check>, secrets: &[Secret]) -> Self {
        // A stable sort keeps the order within a topic.
        checks.sort_by_key(|it| it.topic);
        for check in &mut checks {
            for text in [&mut check.name, &mut check.seen, &mut check.remedy] {
                hide(text, secrets);
            }
        }
        Self { checks }
    }

    /// Returns the worst verdict; good for no checks.
    pub fn verdict(&self) -> CheckVerdict {
        self.checks
            .iter()
            .map(|it| it.verdict)
            .max()
            .unwrap_or(CheckVerdict::Good)
    }

    /// Returns 1 if a check is bad, else 0.
    pub fn exit_code(&self) -> u8 {
        match self.verdict() {
            CheckVerdict::Good | CheckVerdict::Doubtful => 0,
            CheckVerdict::Bad => 1,
        }
    }

    /// Formats the report for people: one line per check, its remedy below.
    pub fn text(&self) -> Sanitized {
        use std::fmt::Write;

        let mut text = String::new();
        let mut topic = None;
        for check in &self.checks {
            if topic != Some(check.topic) {
                if topic.is_some() {
                    text.push('\n');
                }
                topic = Some(check.topic);
                text.push_str(check.topic.word());
                text.push('\n');
            }
            // Observed line breaks must not split a check.
            let seen = check.seen.replace('\n', "\n                     ");
            let _ = writeln!(text, "  {} {:<16} {seen}", check.verdict.sign(), check.name);
            for line in check.remedy.lines().filter(|it| !it.trim().is_empty()) {
                let _ = writeln!(text, "                     → {}", line.trim());
            }
        }
        let count = |verdict| self.checks.iter().filter(|it| it.verdict == verdict).count();
        let _ = writeln!(
            text,
            "\n{} ok, {}, {}",
            count(CheckVerdict::Good),
            figure::count(count(CheckVerdict::Doubtful), "warning", "warnings").as_str(),
            figure::count(count(CheckVerdict::Bad), "error", "errors").as_str()
        );
        Sanitized::from(text)
    }

    /// Formats the report as JSON.
    pub fn json(&self) -> Value {
        let checks = self.checks.iter().map(|it| {
            json!({
                "topic": it.topic.word(),
                "name": it.name.as_str(),
                "verdict": it.verdict.word(),
                "seen": it.seen.as_str(),
                "remedy": it.remedy.as_str(),
            })
        });
        json!({ "verdict": self.verdict().word(), "checks": checks.collect::<Vec<_>>() })
    }
}

/// Minimum length of keys that are hidden. Shorter ones are placeholders such as `ollama`, which occur in other texts.
const SHORTEST_KEY: usize = 8;

/// Hides every key in `text`: servers often repeat the one that they refuse.
fn hide(text: &mut Sanitized, secrets: &[Secret]) {
    for secret in secrets.iter().map(Secret::expose).filter(|it| it.len() >= SHORTEST_KEY) {
        if text.contains(secret) {
            *text = Sanitized::from(text.replace(secret, "***"));
        }
    }
}

/// Runs all checks. Takes as long as the slowest server, at most `network::PATIENCE`.
pub async fn examine(settings: &Settings, problems: &[Problem], paths: &Paths, environment: &Environment) -> Report {
    let asking = tokio::task::spawn_blocking({
        let environment = environment.clone();
        move || TerminalFacts::gather(&environment)
    });
    let walls = tokio::task::spawn_blocking(boundary::examine);
    let (facts, walls, tmux, (mut servers, secrets)) = tokio::join!(
        asking,
        walls,
        Tmux::gather(environment),
        network::examine(settings, environment)
    );
    let mut facts = facts.unwrap_or_default();
    facts.tmux = tmux;
    let mut checks = terminal::judge(&facts, settings);
    checks.append(&mut configuration(settings, problems, paths));
    checks.append(&mut tools(settings));
    checks.append(&mut extensions::examine(settings, paths));
    checks.append(&mut folder::examine(paths));
    checks.append(&mut walls.unwrap_or_default());
    checks.append(&mut servers);
    Report::new(checks, &secrets)
}

/// Runs all checks and writes the report. Returns the exit code.
pub async fn run(
    settings: &Settings,
    problems: &[Problem],
    paths: &Paths,
    environment: &Environment,
    as_json: bool,
    mut out: impl Write,
) -> io::Result<u8> {
    let report = examine(settings, problems, paths, environment).await;
    if as_json {
        serde_json::to_writer_pretty(&mut out, &report.json())?;
        writeln!(out)?;
    } else {
        out.write_all(report.text().as_bytes())?;
    }
    out.flush()?;
    Ok(report.exit_code())
}

/// Checks the settings.
fn configuration(settings: &Settings, problems: &[Problem], paths: &Paths) -> Vec<Check> {
    let topic = Topic::Configuration;
    let file = paths.settings();
    let mut checks = vec![if file.exists() {
        Check::good(topic, "settings", &file.display().to_string())
    } else {
        Check::good(
            topic,
            "settings",
            &format!("{} does not exist; using the defaults", file.display()),
        )
    }];
    let asked = settings.origin("theme").place.clone();
    let asked = asked.unwrap_or_else(|| Location::Variable("SHEAF_THEME".to_owned()));
    let theme = match settings.theme.as_str() {
        "auto" => Vec::new(),
        name => theme::load(name, &paths.themes(), &asked).1,
    };
    for problem in problems.iter().chain(&theme) {
        let hint = problem.hint.as_deref().unwrap_or_default();
        let seen = format!("{}: {}", problem.place, problem.message);
        checks.push(Check::bad(topic, name_of(&problem.place), &seen, hint));
    }
    checks
}

/// Checks optional tools of the agent, and settings of unknown tools.
fn tools(settings: &Settings) -> Vec<Check> {
    let topic = Topic::Configuration;
    let search = match &settings.web.search.kind {
        Some(kind) if web_search::is_available(settings, settings.model().unwrap_or_default()) => {
            Check::good(topic, "web search", kind)
        }
        Some(_) if web_search::is_by_provider(settings) => Check::doubtful(
            topic,
            "web search",
            "the provider of this model does not search the web, so web_search is not offered",
            "choose Anthropic, Gemini 3 or a reasoning model of OpenAI, or another web.search.kind",
        ),
        Some(kind) => Check::doubtful(
            topic,
            "web search",
            &format!("{kind} has no address, so web_search is not offered"),
            "set web.search.url",
        ),
        None => Check::good(
            topic,
            "web search",
            "off: web.search.kind is not set, so web_search is not offered",
        ),
    };
    let unknown = tool_selection::unknown(settings).into_iter().map(|it| {
        let names: Vec<&str> = built_in().iter().map(|it| it.name.as_str()).collect();
        let seen = format!("unknown tool `{it}`: its settings have no effect");
        Check::bad(topic, "tools", &seen, &format!("tools: {}", names.join(", ")))
    });
    std::iter::once(search).chain(unknown).collect()
}

fn name_of(place: &Location) -> &str {
    match place {
        Location::File { path, .. } => path.file_name().and_then(|it| it.to_str()).unwrap_or("file"),
        Location::Variable(_) => "environment",
        Location::Flag(_) => "flag",
    }
}

/// Formats a path for people.
fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn check(topic: Topic, verdict: CheckVerdict, seen: &str, remedy: &str) -> Check {
        Check::new(topic, "thing", verdict, seen).remedy(remedy)
    }

    #[test]
    fn a_report_is_read_topic_by_topic_with_remedies_below() {
        let report = Report::new(
            vec![
                check(Topic::Network, CheckVerdict::Bad, "no way", "do this\n  then that"),
                check(Topic::Terminal, CheckVerdict::Good, "two\nlines", ""),
                check(Topic::Network, CheckVerdict::Doubtful, "some way", "perhaps"),
            ],
            &[],
        );
        let expected = "\
terminal
  ✓ thing            two
                     lines

network
  ✗ thing            no way
                     → do this
                     → then that
  ! thing            some way
                     → perhaps

1 ok, 1 warning, 1 error
";
        assert_eq!(report.text().as_str(), expected);
        assert_eq!(report.exit_code(), 1);
        let json = report.json();
        assert_eq!(json["verdict"], "bad");
        assert_eq!(json["checks"][1]["remedy"], "do this\n  then that");
    }

    #[test]
    fn doubts_do_not_fail() {
        for (verdicts, expected) in [
            (&[] as &[CheckVerdict], 0),
            (&[CheckVerdict::Good], 0),
            (&[CheckVerdict::Good, CheckVerdict::Doubtful], 0),
            (&[CheckVerdict::Bad, CheckVerdict::Good], 1),
        ] {
            let checks = verdicts.iter().map(|&it| check(Topic::Keys, it, "", "")).collect();
            assert_eq!(Report::new(checks, &[]).exit_code(), expected, "{verdicts:?}");
        }
    }

    #[test]
    fn a_word_in_the_place_of_a_key_is_not_taken_out_of_every_sentence() {
        let checks = vec![check(Topic::Models, CheckVerdict::Good, "ollama answers", "")];
        let report = Report::new(checks, &[Secret::new("ollama"), Secret::new("k")]);
        assert!(report.text().contains("ollama answers"), "{}", report.text());
    }

    #[test]
    fn neither_keys_nor_escape_sequences_reach_the_terminal() {
        let secrets = [Secret::new("sk-hidden"), Secret::new("")];
        let seen = "wrong key sk-hidden\u{1b}]52;c;AAAA\u{7}\u{1b}[31m!";
        let report = Report::new(
            vec![check(Topic::Models, CheckVerdict::Bad, seen, "not sk-hidden")],
            &secrets,
        );
        for text in [report.text().to_string(), report.json().to_string()] {
            assert!(!text.contains("hidden") && text.contains("***"), "{text}");
            assert!(!text.contains('\u{1b}') && !text.contains("\\u001b"), "{text}");
        }
    }

    #[test]
    fn every_problem_of_the_settings_and_the_theme_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let paths = Paths::under(folder.path());
        let settings = Settings {
            theme: "owl".to_owned(),
            ..Settings::default()
        };
        let place = Location::File {
            path: "a/config.toml".into(),
            line: 3,
            column: 4,
        };
        let problems = [Problem::new(place, "unknown key `them`").hint("did you mean `theme`?")];
        let checks = configuration(&settings, &problems, &paths);
        let rows: Vec<String> = checks
            .iter()
            .map(|it| format!("{} {}: {} → {}", it.verdict.sign(), it.name, it.seen, it.remedy))
            .collect();
        let file = paths.settings();
        assert_eq!(
            rows,
            [
                format!("✓ settings: {} does not exist; using the defaults → ", file.display()),
                "✗ config.toml: a/config.toml:3:4: unknown key `them` → did you mean `theme`?".to_owned(),
                format!(
                    "✗ environment: $SHEAF_THEME: unknown theme `owl` → themes: {}",
                    crate::theme::BUILT_IN
                        .iter()
                        .map(|it| it.0)
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            ]
        );
    }

    #[test]
    fn what_is_off_and_what_does_nothing_is_said() {
        let rows = |settings: &Settings| -> Vec<String> {
            let row = |it: Check| format!("{} {}: {} → {}", it.verdict.sign(), it.name, it.seen, it.remedy);
            tools(settings).into_iter().map(row).collect()
        };
        let mut settings = Settings::default();
        assert_eq!(
            rows(&settings),
            ["✓ web search: off: web.search.kind is not set, so web_search is not offered → "]
        );
        settings.web.search.kind = Some("searxng".to_owned());
        settings
            .tools
            .insert("wrte".to_owned(), crate::config::ToolSettings::default());
        let rows = rows(&settings);
        assert_eq!(
            rows[0],
            "! web search: searxng has no address, so web_search is not offered → set web.search.url"
        );
        assert!(rows[1].starts_with("✗ tools: unknown tool `wrte`"), "{rows:?}");
    }
}
