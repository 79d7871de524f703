//! The hooks of a conversation as a person is shown them.

use crate::{
    extensions::hooks::HookSet,
    protocol::{ExtensionEntry, ExtensionState},
};

/// All hooks, then the files and events that have no effect, with the reason.
pub fn entries(set: &HookSet) -> Vec<ExtensionEntry> {
    let hooks = set.hooks.iter().map(|hook| ExtensionEntry {
        name: hook.event.clone(),
        about: hook.command.clone(),
        path: hook.path.clone(),
        state: match &set.switched_off_by {
            Some(path) => ExtensionState::Problem(format!("disableAllHooks in {path}")),
            None => ExtensionState::Active,
        },
        tokens: None,
    });
    let other = |name: &str, path: &str, state| ExtensionEntry {
        name: name.to_owned(),
        path: path.to_owned(),
        state,
        ..ExtensionEntry::default()
    };
    let held = set.held.iter().map(|it| other("", &it.path, ExtensionState::Untrusted));
    let unsupported = set.unsupported.iter();
    let unsupported = unsupported.map(|(path, event)| other(event, path, ExtensionState::Unsupported));
    let problems = set.problems.iter();
    let problems = problems.map(|(path, why)| other("", path, ExtensionState::Problem(why.clone())));
    hooks.chain(held).chain(unsupported).chain(problems).collect()
}
