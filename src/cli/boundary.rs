//! `sheaf sandbox`: what holds commands here, and anything inside of it.

use std::{ffi::OsString, os::unix::process::ExitStatusExt as _, process::ExitStatus};

use anyhow::{Context as _, Result};

use super::{
    Base,
    arguments::{Boundary, Whom},
    chain, code, complain, say,
};
use crate::{
    protocol::Permission,
    sandbox::{Fence, Layers, NOT_BUILT, NotRun, Tier, Workspace, layers},
};

pub fn run(ask: Boundary) -> Result<u8> {
    match ask {
        Boundary::Explain { common } => {
            Base::of(&common, &Whom::default())?;
            let layers = layers();
            say(&explained(layers));
            Ok(if layers.tier == Tier::None {
                code::NO_SANDBOX
            } else {
                code::OK
            })
        }
        Boundary::Run {
            network,
            git_write,
            common,
            command,
        } => {
            let base = Base::of(&common, &Whom::default())?;
            let permissions = [(network, Permission::Network), (git_write, Permission::GitWrite)];
            let permissions: Vec<_> = permissions.into_iter().filter(|it| it.0).map(|it| it.1).collect();
            hold(&base, &command, &permissions)
        }
    }
}

fn hold(base: &Base, command: &[OsString], permissions: &[Permission]) -> Result<u8> {
    let fence = Fence::configured(&base.settings, Some(&base.paths), Vec::new());
    let workspace = Workspace::fenced(&base.workspace, fence)
        .with_context(|| format!("{} cannot be opened", base.workspace.display()))?;
    match workspace.try_out(command, permissions) {
        Ok(tried) => {
            for (name, path) in &tried.aside {
                complain(&format!(
                    "the command made {name}, which runs or decides what runs\n  it was put aside as {}",
                    path.display()
                ));
            }
            Ok(passed_on(tried.status))
        }
        Err(error @ NotRun::NoSandbox(_)) => {
            complain(&chain(&error.into()));
            Ok(code::NO_SANDBOX)
        }
        Err(error) => Err(error.into()),
    }
}

/// As shells pass on how a command ended.
fn passed_on(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|it| 128 + it));
    code.and_then(|it| u8::try_from(it).ok()).unwrap_or(NOT_BUILT)
}

/// What the header of the screen says, too.
fn explained(layers: &Layers) -> String {
    use std::fmt::Write as _;

    let mut text = match layers.tier {
        Tier::Full => "sandbox full\n".to_owned(),
        Tier::Partial => format!("sandbox partial ({})\n", layers.why),
        Tier::None => format!("NO SANDBOX: {}\n", layers.why),
    };
    for layer in &layers.list {
        let sign = if layer.holds { '✓' } else { '✗' };
        let _ = writeln!(text, "  {sign} {:<14} {}", layer.name, layer.about);
        if !layer.remedy.is_empty() {
            let _ = writeln!(text, "  {:<16} → {}", "", layer.remedy);
        }
    }
    text
}
