//! Checks skills, hooks and modes: how many there are, and what has no effect.

use std::path::{Path, PathBuf};

use super::{Check, Topic};
use crate::{
    config::{Fingerprint, Paths, Settings, TrustStore, shown_path},
    extensions::{
        Surroundings, find_modes, find_skills,
        hooks::{Isolation, OwnHook, find_hooks},
    },
};

/// Lines about one thing; more are counted.
const MOST: usize = 10;

/// Checks what the folder of the program and the user's folders hold.
pub(super) fn examine(settings: &Settings, paths: &Paths) -> Vec<Check> {
    let directory = std::env::current_dir().ok();
    let (around, broken) = Surroundings::of_user(directory.as_deref().map(workspace), Some(paths));
    let mut checks = Vec::new();
    let broken = broken.into_iter().map(|(name, why)| format!("{name}: {why}"));
    report(&mut checks, "plugins", around.plugins.len(), broken.collect());
    checks.extend(judge(&around, settings, paths));
    checks
}

/// The root of the repository, or the folder itself.
fn workspace(directory: &Path) -> PathBuf {
    let root = directory.ancestors().find(|it| it.join(".git").exists());
    root.unwrap_or(directory).to_owned()
}

fn judge(around: &Surroundings, settings: &Settings, paths: &Paths) -> Vec<Check> {
    let root = around.workspace.clone().unwrap_or_default();
    let is_whole = settings.is_trusted(&root);
    let said = TrustStore::under(&paths.state).record(&root);
    let may_act = |path: &str, print: &Fingerprint| is_whole || said.allows(path, print);
    let skills = find_skills(around, &may_act);
    let modes = find_modes(around, &may_act);
    let own = OwnHook::all(settings);
    let place = shown_path(&paths.settings());
    let hooks = find_hooks(around, (&own, &place), Isolation::Sandbox, &may_act);
    let mut checks = Vec::new();
    let problems = |list: &[(String, String)]| -> Vec<String> {
        list.iter().map(|(path, why)| format!("{path}: {why}")).collect()
    };
    report(&mut checks, "skills", skills.skills.len(), problems(&skills.problems));
    report(&mut checks, "modes", modes.modes.len(), problems(&modes.problems));
    let mut wrong = problems(&hooks.problems);
    let unsupported = hooks.unsupported.iter();
    wrong.extend(unsupported.map(|(path, event)| format!("{path}: {event} is not supported")));
    wrong.extend(
        hooks
            .switched_off_by
            .iter()
            .map(|it| format!("{it} switches all hooks off")),
    );
    report(&mut checks, "hooks", hooks.hooks.len(), wrong);
    let held = [skills.held, modes.held, hooks.held].concat();
    if !held.is_empty() {
        let names: Vec<&str> = held.iter().map(|it| it.path.as_str()).take(MOST).collect();
        let seen = format!("not trusted: {}", names.join(", "));
        checks.push(Check::doubtful(
            Topic::Configuration,
            "extensions",
            &seen,
            "/trust in sheaf asks about them",
        ));
    }
    checks
}

/// A line about what works, if there is any, and one about what does not.
fn report(checks: &mut Vec<Check>, name: &str, count: usize, wrong: Vec<String>) {
    let topic = Topic::Configuration;
    if count > 0 {
        checks.push(Check::good(topic, name, &count.to_string()));
    }
    if !wrong.is_empty() {
        let more = wrong.len().saturating_sub(MOST);
        let mut lines: Vec<String> = wrong.into_iter().take(MOST).collect();
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        let remedy = match name {
            "modes" => String::new(),
            "plugins" => "sheaf plugin list shows them".to_owned(),
            _ => format!("/{name} in sheaf lists them"),
        };
        checks.push(Check::doubtful(topic, name, &lines.join("\n"), &remedy));
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn what_has_no_effect_is_named() {
        let top = tempfile::tempdir().unwrap();
        let files = [
            ("home/.claude/skills/a/SKILL.md", "---\nname: a\ndescription: d\n---\nx"),
            ("home/.claude/skills/b/SKILL.md", "---\nname: b\n---\nx"),
            (
                "home/.cursor/hooks.json",
                r#"{"hooks":{"stop":[{"command":"x"}],"afterAgentThought":[{"command":"x"}]}}"#,
            ),
            ("work/.sheaf/modes/m.md", "x"),
        ];
        let around = Surroundings::test(top.path(), &files);
        let mut settings = Settings::default();
        for event in ["tool_before", "teleport"] {
            settings.hooks.entry(event.to_owned()).or_default().event = event.to_owned();
        }
        let checks = judge(&around, &settings, &Paths::under(top.path()));
        let base = top.path().display().to_string();
        let told: Vec<String> = checks
            .iter()
            .map(|it| format!("{}: {}", it.name, it.seen.as_str().replace(&base, "")))
            .collect();
        assert_eq!(
            told,
            [
                "skills: 1",
                "skills: /home/.claude/skills/b/SKILL.md: left out: its description is missing; say in its head what it does \
                 and when to use it",
                "hooks: 2",
                "hooks: /home/.cursor/hooks.json: afterAgentThought is not supported\n\
                 /config/config.toml [hooks.teleport]: teleport is not supported",
                "extensions: not trusted: .sheaf/modes/m.md",
            ]
        );
    }
}
