//! A message that asks for a command or a skill by its name: what the model is told instead.
//!
//! Commands of the shell in such a text run before it is sent: in the sandbox, without the right to write, and only if the
//! rules and the run mode allow them without a question. Their output is put in last, so that nothing in it counts as
//! the user's words.

use std::{sync::Arc, time::Duration};

use crate::{
    agent::{
        approval::{self, Facts, Rule, Verdict},
        hooks::Hooks,
        runner::{hook_calls, tool_runner::reaches_new_repository},
        tags::guard,
        turn::Policy,
    },
    config::ResultLimits,
    extensions::{CommandFile, Owner, Piece, SkillSet, SkillShelf},
    models::Part,
    protocol::Mode,
    sandbox::{Commands, Workspace},
    tools::{Class, run_terminal_cmd, skill},
};

/// The result for a message that asks for a command or a skill.
#[derive(Debug, Default)]
pub struct Expansion {
    /// The message; a mark stands for each output. `None`: as it was typed.
    pub text: Option<String>,
    /// The outputs of commands of the shell, in their order.
    pub outputs: Vec<String>,
    /// Texts that are told before the message.
    pub before: Vec<String>,
    /// Rules that the user's own file allows for this turn.
    pub rules: Vec<Rule>,
    /// For the user.
    pub warnings: Vec<String>,
}

/// Everything that an expansion depends on.
pub struct Around<'a> {
    pub shelf: &'a SkillShelf,
    pub hooks: &'a Arc<Hooks>,
    pub commands: &'a [CommandFile],
    pub workspace: Option<&'a Arc<Workspace>>,
    pub limits: &'a ResultLimits,
    pub policy: &'a Policy,
    pub mode: Mode,
}

/// Stands for an output until the message is complete; no keyboard types it.
const MARK: char = '\u{f8f0}';

/// Works out what the message `/name arguments` becomes; `None`: nothing has this name.
pub async fn expand(name: &str, arguments: &str, around: &Around<'_>) -> Option<Expansion> {
    let mut expansion = Expansion::default();
    if let Some(command) = around.commands.iter().find(|it| it.name == name) {
        expansion.allow(&command.allowed_tools, command.owner, &command.path);
        let text = expansion.run(command.pieces(arguments), around).await;
        expansion.text = Some(text);
        return Some(expansion);
    }
    let skills = around.shelf.skills();
    let skill = skills.get(name)?;
    expansion.allow(&skill.allowed_tools, skill.owner, &skill.path);
    if !around.shelf.tell(&skill.name) {
        return Some(expansion);
    }
    let pieces = skill.pieces(arguments, &around.shelf.session());
    let mut body = expansion.run(pieces, around).await;
    for output in std::mem::take(&mut expansion.outputs) {
        body = body.replacen(MARK, &guard(&output), 1);
    }
    expansion.before.push(skill::content(skill, &body));
    Some(expansion)
}

/// Puts the outputs into a message whose text has been made.
pub fn fill_in(parts: &mut [Part], outputs: &[String]) {
    let mut outputs = outputs.iter();
    for part in parts {
        let Part::Text(text) = part else { continue };
        while text.contains(MARK) {
            let Some(output) = outputs.next() else { return };
            *text = text.replacen(MARK, &guard(output), 1);
        }
    }
}

/// Rules that let the files of skills outside the workspace be read.
pub fn readable(skills: &SkillSet) -> Vec<Rule> {
    let folders = skills.skills.iter().map(|it| it.folder.as_path());
    folders.filter_map(Rule::read_below).collect()
}

impl Expansion {
    /// The text of the pieces, with a mark in the place of each output.
    async fn run(&mut self, pieces: Vec<Piece>, around: &Around<'_>) -> String {
        let mut text = String::new();
        let began = std::time::Instant::now();
        for piece in pieces {
            match piece {
                Piece::Text(piece) => text.extend(piece.chars().filter(|it| *it != MARK)),
                Piece::Shell(line) => {
                    let left = skill::COMMANDS_LIMIT.saturating_sub(began.elapsed());
                    let output = match run(&line, left, around, &self.rules).await {
                        Ok(output) => output,
                        Err(why) => {
                            self.warnings.push(format!("`{line}` was not run: {why}"));
                            format!("[`{line}` was not run: {why}]")
                        }
                    };
                    text.push(MARK);
                    self.outputs.push(output.replace(MARK, ""));
                }
            }
        }
        text
    }

    /// Takes the rules of a file: only the user's own grants something, because nobody else's file sets permissions.
    fn allow(&mut self, tools: &[String], owner: Owner, path: &str) {
        if owner != Owner::User {
            return;
        }
        let home = std::env::home_dir();
        for written in tools {
            let Some(rule) = own_form(written) else { continue };
            match Rule::parse(&rule, home.as_deref()) {
                Ok(rule) => self.rules.push(rule),
                Err(error) => self
                    .warnings
                    .push(format!("allowed-tools of {path}: `{written}` is no rule: {error}")),
            }
        }
    }
}

/// A permission in Claude Code's form as a rule of ours; `None`: what it names needs no permission.
fn own_form(written: &str) -> Option<String> {
    let (tool, inner) = match written.split_once('(') {
        Some((tool, inner)) => (tool, inner.strip_suffix(')').unwrap_or(inner)),
        None => (written, ""),
    };
    let inner = inner.strip_prefix("domain:").unwrap_or(inner);
    // A rule is the beginning of a command.
    let inner = inner
        .strip_suffix(":*")
        .or_else(|| inner.strip_suffix(" *"))
        .unwrap_or(inner);
    let (kind, all) = match tool.trim() {
        // All commands at once are for no file to allow.
        "Bash" | "Shell" if !inner.is_empty() => ("Shell", ""),
        "Edit" | "Write" | "MultiEdit" | "NotebookEdit" => ("Write", "**"),
        "WebFetch" if !inner.is_empty() => ("WebFetch", ""),
        "Read" if !inner.is_empty() => ("Read", ""),
        _ => return None,
    };
    let inner = if inner.is_empty() { all } else { inner };
    Some(format!("{kind}({inner})"))
}

/// Runs a command of a text, with the rules of its file. Fails with the reason if it needs a question.
async fn run(line: &str, limit: Duration, around: &Around<'_>, rules: &[Rule]) -> Result<String, String> {
    let workspace = around.workspace.ok_or("there is no workspace")?;
    let accesses = run_terminal_cmd::accesses(line, workspace).map_err(|it| it.message)?;
    let judged = Arc::clone(workspace);
    let (mut policy, mode) = (around.policy.clone(), around.mode);
    policy.rules.allow.extend(rules.iter().cloned());
    // The first command waits for a trial of the sandbox.
    let verdict = tokio::task::spawn_blocking(move || {
        let commands = judged.commands();
        let facts = Facts {
            mode,
            run: policy.run,
            tier: Commands::tier(),
            gaps: commands.gaps(),
            rules: &policy.rules,
            is_attended: true,
            is_halted: commands.is_halted(),
            limit_reached: commands.limit_reached(),
            is_new_repository: reaches_new_repository(&accesses, commands),
            is_sandbox_off: policy.is_sandbox_off,
            remotes: &[],
        };
        approval::judge(&accesses, Class::Runs, &facts)
    });
    match verdict.await.map_err(|it| it.to_string())? {
        Verdict::Allow => match hook_calls::forbids(around.hooks, line, limit).await {
            Some(why) => Err(why),
            None => Ok(run_terminal_cmd::output_in(workspace, line, around.limits, limit).await),
        },
        Verdict::Deny(why) => Err(why),
        Verdict::Ask(question) => {
            let rules: Vec<String> = question.always.iter().map(ToString::to_string).collect();
            Err(match rules.as_slice() {
                [] => format!("{}; no rule can allow it here", question.why),
                rules => format!("{}; the rule {} allows it", question.why, rules.join(", ")),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_of_claude_code_are_rules_of_ours() {
        for (written, rule) in [
            ("Bash(git add:*)", Some("Shell(git add)")),
            ("Bash(npm run *)", Some("Shell(npm run)")),
            ("Bash", None),
            ("WebFetch", None),
            ("Edit(src/**)", Some("Write(src/**)")),
            ("Write", Some("Write(**)")),
            ("WebFetch(domain:docs.rs)", Some("WebFetch(docs.rs)")),
            ("Read(/etc/hosts)", Some("Read(/etc/hosts)")),
            ("Read", None),
            ("Grep", None),
            ("Task", None),
        ] {
            assert_eq!(own_form(written).as_deref(), rule, "{written}");
            if let Some(rule) = rule {
                Rule::parse(rule, None).unwrap_or_else(|it| panic!("{rule}: {it}"));
            }
        }
    }

    #[test]
    fn a_file_of_a_project_grants_nothing() {
        let tools = ["Bash(git push:*)".to_owned()];
        let mut expansion = Expansion::default();
        expansion.allow(&tools, Owner::Project, "x");
        expansion.allow(&tools, Owner::Plugin, "x");
        assert!(expansion.rules.is_empty());
        expansion.allow(&tools, Owner::User, "x");
        assert_eq!(expansion.rules.len(), 1);
    }

    #[test]
    fn outputs_are_put_in_last_and_cannot_open_a_tag() {
        let mut parts = [Part::Text(format!("a {MARK} b {MARK}")), Part::Text(format!("{MARK}"))];
        let outputs = ["1".to_owned(), "<user_query>".to_owned(), "3".to_owned()];
        fill_in(&mut parts, &outputs);
        let texts = ["a 1 b &lt;user_query>", "3"].map(|it| Part::Text(it.to_owned()));
        assert_eq!(parts, texts);
    }
}
