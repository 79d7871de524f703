//! `sheaf doctor`: what works here, what does not, and what to do about it.
//!
//! Facts are gathered first and judged after, by functions of the facts. Whatever was seen is a stranger's text and
//! passes the sanitiser; a key never appears, not even in a server's own words.

mod boundary;
mod folder;
mod network;
mod terminal;

use std::{
    io::{self, Write},
    path::Path,
};

use serde_json::{Value, json};

use crate::{
    agent::offer,
    config::{Environment, Paths, Place, Problem, Secret, Settings},
    text::Clean,
    theme,
    tool::{TOOLS, web_search},
};

pub use terminal::{Facts, Keyboard, Tmux};

/// How well something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Good,
    /// It works, with something missing.
    Doubtful,
    Bad,
}

impl Verdict {
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

/// What a check is about, in the order of the report.
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

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub topic: Topic,
    pub name: Clean,
    pub verdict: Verdict,
    pub seen: Clean,
    /// What to do, a line each; empty when all is well.
    pub remedy: Clean,
}

impl Check {
    fn new(topic: Topic, name: &str, verdict: Verdict, seen: &str) -> Self {
        Self {
            topic,
            name: Clean::new(name),
            verdict,
            seen: Clean::new(seen.trim()),
            remedy: Clean::default(),
        }
    }

    fn good(topic: Topic, name: &str, seen: &str) -> Self {
        Self::new(topic, name, Verdict::Good, seen)
    }

    fn doubtful(topic: Topic, name: &str, seen: &str, remedy: &str) -> Self {
        Self::new(topic, name, Verdict::Doubtful, seen).remedy(remedy)
    }

    fn bad(topic: Topic, name: &str, seen: &str, remedy: &str) -> Self {
        Self::new(topic, name, Verdict::Bad, seen).remedy(remedy)
    }

    fn remedy(mut self, remedy: &str) -> Self {
        self.remedy = Clean::new(remedy.trim());
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
        // Stable, so that a topic keeps its order.
        checks.sort_by_key(|it| it.topic);
        for check in &mut checks {
            for text in [&mut check.name, &mut check.seen, &mut check.remedy] {
                hide(text, secrets);
            }
        }
        Self { checks }
    }

    /// The worst of it; good when nothing was looked at.
    pub fn verdict(&self) -> Verdict {
        self.checks.iter().map(|it| it.verdict).max().unwrap_or(Verdict::Good)
    }

    /// 1 when something is bad.
    pub fn exit_code(&self) -> u8 {
        match self.verdict() {
            Verdict::Good | Verdict::Doubtful => 0,
            Verdict::Bad => 1,
        }
    }

    /// For people: a line for each check, its remedy below.
    pub fn text(&self) -> Clean {
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
            // One line is one check, whatever was seen.
            let seen = check.seen.replace('\n', "\n                     ");
            let _ = writeln!(text, "  {} {:<16} {seen}", check.verdict.sign(), check.name);
            for line in check.remedy.lines().filter(|it| !it.trim().is_empty()) {
                let _ = writeln!(text, "                     → {}", line.trim());
            }
        }
        let count = |verdict| self.checks.iter().filter(|it| it.verdict == verdict).count();
        let _ = writeln!(
            text,
            "\n{} good, {} doubtful, {} bad",
            count(Verdict::Good),
            count(Verdict::Doubtful),
            count(Verdict::Bad)
        );
        Clean::from(text)
    }

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

/// What is shorter is a word that fills a field, as `ollama` or `none` do, and stands in other sentences too.
const SHORTEST_KEY: usize = 8;

/// Replaces every key in `text`: servers like to repeat the one they refuse.
fn hide(text: &mut Clean, secrets: &[Secret]) {
    for secret in secrets.iter().map(Secret::expose).filter(|it| it.len() >= SHORTEST_KEY) {
        if text.contains(secret) {
            *text = Clean::from(text.replace(secret, "***"));
        }
    }
}

/// Looks at everything. Takes as long as the slowest server, at most `network::PATIENCE`.
pub async fn examine(settings: &Settings, problems: &[Problem], paths: &Paths, environment: &Environment) -> Report {
    let asking = tokio::task::spawn_blocking({
        let environment = environment.clone();
        move || Facts::gather(&environment)
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
    checks.append(&mut folder::examine(paths));
    checks.append(&mut walls.unwrap_or_default());
    checks.append(&mut servers);
    Report::new(checks, &secrets)
}

/// Looks at everything and writes what was found.
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

/// What is wrong with what was written.
fn configuration(settings: &Settings, problems: &[Problem], paths: &Paths) -> Vec<Check> {
    let topic = Topic::Configuration;
    let file = paths.settings();
    let mut checks = vec![if file.exists() {
        Check::good(topic, "settings", &file.display().to_string())
    } else {
        Check::good(
            topic,
            "settings",
            &format!("{} is not there; the defaults hold", file.display()),
        )
    }];
    let asked = settings.origin("theme").place.clone();
    let asked = asked.unwrap_or_else(|| Place::Variable("SHEAF_THEME".to_owned()));
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

/// What the agent can do only where it is configured, and settings of tools that there are not.
fn tools(settings: &Settings) -> Vec<Check> {
    let topic = Topic::Configuration;
    let search = match &settings.web.search.kind {
        Some(kind) if web_search::is_available(settings) => Check::good(topic, "web search", kind),
        Some(kind) => Check::doubtful(
            topic,
            "web search",
            &format!("{kind} has no address: models are not offered web_search"),
            "set web.search.url",
        ),
        None => Check::good(
            topic,
            "web search",
            "off: web.search.kind names no service, so that models are not offered web_search",
        ),
    };
    let unknown = offer::unknown(settings).into_iter().map(|it| {
        let names: Vec<&str> = TOOLS.iter().map(|it| it.name).collect();
        let seen = format!("there is no tool `{it}`: what is set for it does nothing");
        Check::bad(topic, "tools", &seen, &format!("the tools are {}", names.join(", ")))
    });
    std::iter::once(search).chain(unknown).collect()
}

fn name_of(place: &Place) -> &str {
    match place {
        Place::File { path, .. } => path.file_name().and_then(|it| it.to_str()).unwrap_or("file"),
        Place::Variable(_) => "environment",
        Place::Flag(_) => "flag",
    }
}

/// `path` for people.
fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn check(topic: Topic, verdict: Verdict, seen: &str, remedy: &str) -> Check {
        Check::new(topic, "thing", verdict, seen).remedy(remedy)
    }

    #[test]
    fn a_report_is_read_topic_by_topic_with_remedies_below() {
        let report = Report::new(
            vec![
                check(Topic::Network, Verdict::Bad, "no way", "do this\n  then that"),
                check(Topic::Terminal, Verdict::Good, "two\nlines", ""),
                check(Topic::Network, Verdict::Doubtful, "some way", "perhaps"),
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

1 good, 1 doubtful, 1 bad
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
            (&[] as &[Verdict], 0),
            (&[Verdict::Good], 0),
            (&[Verdict::Good, Verdict::Doubtful], 0),
            (&[Verdict::Bad, Verdict::Good], 1),
        ] {
            let checks = verdicts.iter().map(|&it| check(Topic::Keys, it, "", "")).collect();
            assert_eq!(Report::new(checks, &[]).exit_code(), expected, "{verdicts:?}");
        }
    }

    #[test]
    fn a_word_in_the_place_of_a_key_is_not_taken_out_of_every_sentence() {
        let checks = vec![check(Topic::Models, Verdict::Good, "ollama answers", "")];
        let report = Report::new(checks, &[Secret::new("ollama"), Secret::new("k")]);
        assert!(report.text().contains("ollama answers"), "{}", report.text());
    }

    #[test]
    fn neither_keys_nor_escape_sequences_reach_the_terminal() {
        let secrets = [Secret::new("sk-hidden"), Secret::new("")];
        let seen = "wrong key sk-hidden\u{1b}]52;c;AAAA\u{7}\u{1b}[31m!";
        let report = Report::new(
            vec![check(Topic::Models, Verdict::Bad, seen, "not sk-hidden")],
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
        let place = Place::File {
            path: "a/config.toml".into(),
            line: 3,
            column: 4,
        };
        let problems = [Problem::new(place, "there is no key `them`").hint("did you mean `theme`?")];
        let checks = configuration(&settings, &problems, &paths);
        let rows: Vec<String> = checks
            .iter()
            .map(|it| format!("{} {}: {} → {}", it.verdict.sign(), it.name, it.seen, it.remedy))
            .collect();
        let file = paths.settings();
        assert_eq!(
            rows,
            [
                format!("✓ settings: {} is not there; the defaults hold → ", file.display()),
                "✗ config.toml: a/config.toml:3:4: there is no key `them` → did you mean `theme`?".to_owned(),
                format!(
                    "✗ environment: $SHEAF_THEME: there is no theme `owl` → there are {}",
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
            ["✓ web search: off: web.search.kind names no service, so that models are not offered web_search → "]
        );
        settings.web.search.kind = Some("searxng".to_owned());
        settings
            .tools
            .insert("wrte".to_owned(), crate::config::ToolSettings::default());
        let rows = rows(&settings);
        assert_eq!(
            rows[0],
            "! web search: searxng has no address: models are not offered web_search → set web.search.url"
        );
        assert!(rows[1].starts_with("✗ tools: there is no tool `wrte`"), "{rows:?}");
    }
}
