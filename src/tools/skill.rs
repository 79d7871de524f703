//! `skill`: the instructions of a skill, read when a task fits its description.
//!
//! Its own files are listed, not read. Commands in its text (`` !`command` ``) are judged like any other command before
//! anything is loaded, and may only read.

use std::{fmt::Write as _, path::PathBuf, time::Duration};

use serde_json::json;

use super::{
    run_terminal_cmd,
    tool::{Access, Class, Context, Fault, Input, Outcome, Tool, Work, names, schema},
};
use crate::{
    extensions::{Piece, Skill, SkillSet},
    protocol::CallSubject,
};

/// The name of the tool.
pub const NAME: &str = "skill";
/// The tag around a loaded skill.
pub const TAG: &str = "skill_content";

/// The description that a model is shown.
const ABOUT: &str = "\
    Load a skill: instructions for a kind of task, listed by name in available_skills. Load it before you begin the task, \
    and follow it. A skill is loaded once in a conversation.";

/// Time that all commands in a skill's text may take together.
pub const COMMANDS_LIMIT: Duration = Duration::from_mins(1);

/// The tool `skill`.
pub fn tool() -> Tool {
    Tool {
        aliases: names(["Skill"]),
        about: ABOUT.into(),
        schema: schema(
            json!({
                "name": { "type": "string", "description": "As in available_skills" },
                "arguments": { "type": "string", "description": "What the skill's text asks for, if it does" }
            }),
            &["name"],
        ),
        synonyms: &[
            ("name", &["skill", "skill_name", "skillName", "command"]),
            ("arguments", &["args", "input"]),
        ],
        word: "skill".into(),
        // Its text may have commands.
        runs_code: true,
        subject: CallSubject::Other,
        is_basic: true,
        examples: &[
            r#"{ "name": "no-such-skill" }"#,
            r#"{ "skill": "no-such-skill", "args": "a b" }"#,
        ],
        ..Tool::new(NAME, Class::Reads, Work::call(touches, run))
    }
}

/// The skill that a call names, as far as the model may use it.
fn found<'a>(input: &Input, skills: &'a SkillSet) -> Result<&'a Skill, Fault> {
    let name = input.text("name").unwrap_or_default();
    let skill = skills
        .get(name)
        .filter(|it| skills.for_model().any(|known| known == *it));
    skill.ok_or_else(|| {
        let known: Vec<&str> = skills.for_model().map(|it| it.name.as_str()).collect();
        let fault = Fault::arguments(format!("no skill is called `{}`", name.escape_debug()));
        if known.is_empty() {
            fault.hint("There are no skills here.")
        } else {
            fault.hint(format!("The skills are: {}.", known.join(", ")))
        }
    })
}

fn touches(input: &Input, context: &Context) -> Result<Vec<Access>, Fault> {
    let skills = context.skills.skills();
    let skill = found(input, &skills)?;
    if context.skills.is_told(&skill.name) {
        return Ok(Vec::new());
    }
    let mut accesses = Vec::new();
    for piece in skill.pieces(input.text("arguments").unwrap_or_default(), &context.skills.session()) {
        if let Piece::Shell(line) = piece {
            accesses.extend(run_terminal_cmd::accesses(&line, &context.workspace)?);
        }
    }
    Ok(accesses)
}

async fn run(input: Input, context: Context) -> Result<Outcome, Fault> {
    let skills = context.skills.skills();
    let skill = found(&input, &skills)?;
    let arguments = input.text("arguments").unwrap_or_default();
    let data = json!({ "skill": skill.name, "path": skill.path });
    if !context.skills.tell(&skill.name) {
        let text = format!("The skill `{}` is loaded already; its text is above.", skill.name);
        return Ok(Outcome {
            text,
            data,
            ..Outcome::default()
        });
    }
    let mut body = String::new();
    for piece in skill.pieces(arguments, &context.skills.session()) {
        match piece {
            Piece::Text(text) => body.push_str(&text),
            Piece::Shell(line) => body.push_str(&run_terminal_cmd::output_of(&line, &context, COMMANDS_LIMIT).await),
        }
    }
    Ok(Outcome {
        text: content(skill, &body),
        data,
        ..Outcome::default()
    })
}

/// A skill as the model is told it, with the text `body`. Reads its folder.
pub fn content(skill: &Skill, body: &str) -> String {
    let (files, more) = skill.files();
    let folder = plain(&skill.folder);
    let mut text = format!("<{TAG} name=\"{}\">\n{}\n", skill.name, guarded(body.trim()));
    let _ = write!(
        text,
        "\nThe folder of this skill: {folder}\nPaths in its text are relative to that folder."
    );
    if !files.is_empty() {
        text.push_str("\nIts files, to be read when they are needed:\n");
        let files: Vec<String> = files
            .iter()
            .map(|it| format!("- {}", plain(&PathBuf::from(it))))
            .collect();
        text.push_str(&files.join("\n"));
    }
    if more > 0 {
        let _ = write!(text, "\n[and {more} more]");
    }
    let _ = write!(text, "\n</{TAG}>");
    text
}

/// Text that cannot close the tag.
fn guarded(text: &str) -> String {
    let mut safe = text.to_owned();
    for tag in [format!("</{TAG}"), format!("<{TAG}")] {
        safe = safe.replace(&tag, &tag.replace('<', "&lt;"));
    }
    safe
}

/// A path on one line.
fn plain(path: &std::path::Path) -> String {
    path.to_string_lossy()
        .chars()
        .map(|it| if it.is_control() { '\u{fffd}' } else { it })
        .collect()
}

/// The skills in a text that was told, each with its tag, in their order.
pub fn blocks(text: &str) -> Vec<(&str, &str)> {
    let (open, close) = (format!("<{TAG} name=\""), format!("</{TAG}>"));
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(&open) {
        let block = rest.get(at..).unwrap_or_default();
        let Some(end) = block.find(&close).map(|it| it + close.len()) else {
            break;
        };
        let name = block.get(open.len()..).and_then(|it| it.split_once('"'));
        if let (Some((name, _)), Some(block)) = (name, block.get(..end)) {
            found.push((name, block));
        }
        rest = block.get(end..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_skills_are_found_again() {
        let text =
            "a <skill_content name=\"x\">\none\n</skill_content> b\n<skill_content name=\"y\">\ntwo\n</skill_content>";
        let found = blocks(text);
        assert_eq!(found.iter().map(|it| it.0).collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!(found[1].1, "<skill_content name=\"y\">\ntwo\n</skill_content>");
        assert_eq!(blocks("<skill_content name=\"never closed"), []);
    }

    #[test]
    fn a_text_cannot_close_its_own_tag() {
        assert_eq!(guarded("a </skill_content> <b>"), "a &lt;/skill_content> <b>");
    }
}
