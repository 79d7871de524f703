//! What holds the commands of a conversation, for the screen; and what the user changes about it.

use crate::{
    config::{Paths, TrustStore},
    link::{Held, SandboxStatus},
    protocol::{Sandbox, SandboxLayer, SandboxNote},
    sandbox::{LookLimit, Tier, Workspace, layers},
};

/// Gap of a sandbox in a workspace with more files than can be looked at.
const NOT_ALL: &str = "files beyond a limit";
/// Gap of a sandbox where something that says what to protect cannot be read.
const UNREADABLE: &str = "unreadable files";

/// The header says what holds now.
pub(super) fn report(workspace: &Workspace, hold: &SandboxStatus) {
    let (layers, commands) = (layers(), workspace.commands());
    hold.found(match layers.tier {
        Tier::Full => match commands.ground().limit_reached() {
            Some(LookLimit::Configuration | LookLimit::Errors) => Held::Partly(UNREADABLE.to_owned()),
            Some(_) => Held::Partly(NOT_ALL.to_owned()),
            None => Held::Whole,
        },
        Tier::Partial => Held::Partly(commands.gaps().to_owned()),
        Tier::None => Held::Nothing,
    });
}

/// SandboxLayer by wall, once `guard` is as the user wants it. May wait for a trial of some milliseconds.
pub(super) fn sandbox(
    workspace: &Workspace,
    paths: Option<&Paths>,
    guard: Option<bool>,
    hold: &SandboxStatus,
) -> Sandbox {
    let (layers, commands) = (layers(), workspace.commands());
    let mut notes = Vec::new();
    if let Some(is_wanted) = guard {
        commands.set_guarded(is_wanted);
        let kept = match paths {
            Some(paths) => TrustStore::under(&paths.state)
                .set_guarded(workspace.root(), is_wanted)
                .map_err(|it| it.to_string()),
            None => Err("no folder to save it in".to_owned()),
        };
        if let Err(why) = kept {
            notes.push(SandboxNote::NotSaved(why));
        }
        report(workspace, hold);
    }
    match layers.tier {
        Tier::Partial if commands.is_halted() => notes.push(SandboxNote::GuardTripped),
        Tier::Partial if commands.is_guarded() => notes.push(SandboxNote::GuardOn),
        Tier::Partial => notes.push(SandboxNote::GuardOff),
        Tier::Full | Tier::None if guard == Some(true) => notes.push(SandboxNote::GuardNotNeeded),
        Tier::Full | Tier::None => {}
    }
    let walls = layers.list.iter().map(|it| SandboxLayer {
        name: it.name.to_owned(),
        is_active: it.holds,
        mechanism: it.means,
        about: it.about.clone(),
        remedy: it.remedy.clone(),
    });
    Sandbox {
        layers: walls.collect(),
        notes,
    }
}
