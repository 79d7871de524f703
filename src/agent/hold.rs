//! What holds the commands of a conversation, for the screen; and what the user changes about it.

use crate::{
    config::{Ledger, Paths},
    link::{Held, Hold},
    protocol::{Sandbox, Wall},
    sandbox::{Tier, Workspace, layers},
};

/// What the user should know who lets commands write the whole workspace.
const GUARDED: &str = "Guard is on in this folder: a command that you have let run may write the whole workspace. What is \
                       protected (.git, editors' and agents' settings, ignored files) is compared before and after it and put \
                       back from a copy; in between, it was changed, and what reads it then reads what the command wrote. \
                       Objects of git are not kept. A command that changes what is protected is told to you, and each one \
                       behind it asks. Folders that hold secrets stay as they are. /sandbox strict ends it.";
const STRICT: &str = "Commands make nothing new at the top of the workspace and replace no file there, so that nothing \
                      protected can change. If that is in your way, /sandbox guard lets them, in this folder, and puts back \
                      what is protected.";
const NEEDLESS: &str = "Guard is for partial sandboxes: here the kernel holds what is protected and lets go the rest.";

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
            notes.push(format!("It holds for this conversation only: {why}"));
        }
        tell(workspace, hold);
    }
    match layers.tier {
        Tier::Partial if commands.is_halted() => notes.push(
            "A command has changed what is protected: in this conversation each one asks, and the top of the workspace is \
             held."
                .to_owned(),
        ),
        Tier::Partial => notes.push(if commands.is_guarded() { GUARDED } else { STRICT }.to_owned()),
        Tier::Full | Tier::None if guard == Some(true) => notes.push(NEEDLESS.to_owned()),
        Tier::Full | Tier::None => {}
    }
    let walls = layers.list.iter().map(|it| Wall {
        name: it.name.to_owned(),
        holds: it.holds,
        about: it.about.clone(),
        remedy: it.remedy.clone(),
    });
    Sandbox {
        head: layers.head(commands.is_guarded() && !commands.is_halted()),
        walls: walls.collect(),
        notes,
    }
}
