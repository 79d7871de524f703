//! What holds the commands of a conversation, for the screen; and what the user changes about it.

use crate::{
    config::{Ledger, Paths},
    link::{Held, Hold},
    protocol::{Sandbox, SandboxNote, Wall},
    sandbox::{Tier, Workspace, layers},
};

/// The header says what holds now.
pub(super) fn tell(workspace: &Workspace, hold: &Hold) {
    let (layers, commands) = (layers(), workspace.commands());
    let is_guarded = commands.is_guarded() && !commands.is_halted();
    hold.found(match layers.tier {
        Tier::Full => Held::Whole,
        Tier::Partial => Held::Partly(layers.but(is_guarded).to_owned()),
        Tier::None => Held::Nothing,
    });
}

/// Wall by wall, once `guard` is as the user wants it. May wait for a trial of some milliseconds.
pub(super) fn sandbox(workspace: &Workspace, paths: Option<&Paths>, guard: Option<bool>, hold: &Hold) -> Sandbox {
    let (layers, commands) = (layers(), workspace.commands());
    let mut notes = Vec::new();
    if let Some(is_wanted) = guard {
        commands.set_guarded(is_wanted);
        let kept = match paths {
            Some(paths) => Ledger::under(&paths.state)
                .set_guarded(workspace.root(), is_wanted)
                .map_err(|it| it.to_string()),
            None => Err("there is no folder for it".to_owned()),
        };
        if let Err(why) = kept {
            notes.push(SandboxNote::HereOnly(why));
        }
        tell(workspace, hold);
    }
    match layers.tier {
        Tier::Partial if commands.is_halted() => notes.push(SandboxNote::Halted),
        Tier::Partial if commands.is_guarded() => notes.push(SandboxNote::Guarded),
        Tier::Partial => notes.push(SandboxNote::Strict),
        Tier::Full | Tier::None if guard == Some(true) => notes.push(SandboxNote::Needless),
        Tier::Full | Tier::None => {}
    }
    let walls = layers.list.iter().map(|it| Wall {
        name: it.name.to_owned(),
        holds: it.holds,
        means: it.means,
        about: it.about.clone(),
        remedy: it.remedy.clone(),
    });
    Sandbox {
        walls: walls.collect(),
        notes,
    }
}
