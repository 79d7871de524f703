//! The skills of a conversation as a person is shown them.

use crate::{
    agent::cut::{tokens, tokens_in},
    extensions::{SkillShelf, Visibility},
    protocol::{ExtensionEntry, ExtensionState},
};

/// All skills with their cost, then the files that have no effect, with the reason.
pub fn entries(shelf: &SkillShelf, window: Option<u64>) -> Vec<ExtensionEntry> {
    let set = shelf.skills();
    let listed = set.catalogue(window);
    let mut entries: Vec<ExtensionEntry> = set
        .skills
        .iter()
        .map(|skill| {
            let line = listed.iter().find(|it| it.0 == skill);
            let each = line.map_or(0, |(skill, about)| {
                tokens(&format!("- {} ({}): {about}\n", skill.name, skill.path))
            });
            let state = match skill.visibility {
                _ if shelf.is_told(&skill.name) => ExtensionState::Loaded,
                Visibility::All => ExtensionState::Active,
                Visibility::UserOnly => ExtensionState::UserOnly,
                Visibility::ModelOnly => ExtensionState::ModelOnly,
            };
            ExtensionEntry {
                name: skill.name.clone(),
                about: skill.description.clone(),
                path: skill.path.clone(),
                state,
                tokens: Some((each, tokens_in(skill.bytes()))),
            }
        })
        .collect();
    let other = |path: &str, state| ExtensionEntry {
        path: path.to_owned(),
        state,
        ..ExtensionEntry::default()
    };
    entries.extend(set.held.iter().map(|it| other(&it.path, ExtensionState::Untrusted)));
    let shadowed = set.shadowed.iter();
    entries.extend(shadowed.map(|(path, by)| other(path, ExtensionState::Shadowed(by.clone()))));
    let problems = set.problems.iter();
    entries.extend(problems.map(|(path, why)| other(path, ExtensionState::Problem(why.clone()))));
    entries
}
