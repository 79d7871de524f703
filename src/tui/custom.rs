//! Commands and skills of files, as they are offered behind a slash.
//!
//! The agent of this program is sent what was typed, and fills the text in itself; a gateway does not know the files, so it is
//! sent their text.

use crate::{
    config::Fingerprint,
    extensions::{CommandFile, Piece, Skill, Surroundings, Visibility, find_commands, find_skills},
    protocol::Message,
};

/// A command or a skill that can be typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Custom {
    /// `/name`
    pub name: String,
    /// Its arguments, and its purpose.
    pub about: String,
    /// Its file.
    pub origin: String,
    source: Source,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Command(CommandFile),
    Skill(Skill),
}

impl Custom {
    /// The message for `typed`, which has these arguments. `is_filled`: whoever is sent it does not know the file.
    pub fn message(&self, typed: &str, arguments: &str, is_filled: bool) -> Message {
        match &self.source {
            _ if !is_filled => Message::invoking(typed, &self.name, arguments),
            Source::Command(command) => Message::user(command.message(arguments)),
            Source::Skill(skill) => {
                let shown = |piece| match piece {
                    Piece::Text(text) => text,
                    Piece::Shell(line) => format!("!`{line}`"),
                };
                let body: String = skill.pieces(arguments, "").into_iter().map(shown).collect();
                Message::user(format!("{typed}\n\n{body}"))
            }
        }
    }
}

impl From<CommandFile> for Custom {
    fn from(command: CommandFile) -> Self {
        Self {
            name: command.name.clone(),
            about: described(&command.hint, &command.about),
            origin: command.path.clone(),
            source: Source::Command(command),
        }
    }
}

impl From<Skill> for Custom {
    fn from(skill: Skill) -> Self {
        Self {
            name: skill.name.clone(),
            about: described(&skill.hint, &skill.description),
            origin: skill.path.clone(),
            source: Source::Skill(skill),
        }
    }
}

/// The arguments, and the purpose.
pub fn described(hint: &str, about: &str) -> String {
    if hint.is_empty() {
        about.to_owned()
    } else {
        format!("{hint}   {about}")
    }
}

/// The commands that may act, then the skills; a skill whose name a command has is left out. Reads files.
pub fn find(around: &Surroundings, may_act: &dyn Fn(&str, &Fingerprint) -> bool) -> Vec<Custom> {
    let (commands, _) = find_commands(around, may_act);
    let mut found: Vec<Custom> = commands.into_iter().map(Custom::from).collect();
    let skills = find_skills(around, may_act).skills.into_iter();
    let skills = skills.filter(|it| it.visibility != Visibility::ModelOnly);
    for skill in skills.map(Custom::from) {
        if found.iter().all(|it| it.name != skill.name) {
            found.push(skill);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_stands_behind_a_command_of_the_same_name() {
        let top = tempfile::tempdir().unwrap();
        let skill = "---\nname: NAME\ndescription: d\nargument-hint: FILE\n---\nLook at $0.";
        for (path, text) in [
            ("work/.cursor/commands/review.md", "Review it.".to_owned()),
            ("work/.claude/skills/review/SKILL.md", skill.replace("NAME", "review")),
            ("work/.claude/skills/look/SKILL.md", skill.replace("NAME", "look")),
            (
                "work/.claude/skills/silent/SKILL.md",
                skill.replace("NAME", "silent\nuser-invocable: false"),
            ),
        ] {
            let path = top.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let around = Surroundings {
            workspace: Some(top.path().join("work")),
            ..Surroundings::default()
        };
        let found = find(&around, &|_, _| true);
        let shown: Vec<_> = found.iter().map(|it| format!("{} {}", it.name, it.about)).collect();
        assert_eq!(shown, ["review Review it.", "look FILE   d"]);
        let here = found[1].message("/look a.rs", "a.rs", false);
        assert_eq!(
            (here.content.as_str(), here.command()),
            ("/look a.rs", Some(("look", "a.rs")))
        );
        let afar = found[1].message("/look a.rs", "a.rs", true);
        assert_eq!(
            (afar.content.as_str(), afar.command()),
            ("/look a.rs\n\nLook at a.rs.", None)
        );
        assert_eq!(found[0].message("/review x", "x", true).content, "Review it.\n\nx");
    }
}
