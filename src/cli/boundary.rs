//! `sheaf sandbox`: explains the sandbox, and runs commands in it.

use std::{ffi::OsString, os::unix::process::ExitStatusExt as _, process::ExitStatus};

use anyhow::{Context as _, Result};

use super::{
    CliContext,
    arguments::{Boundary, TargetArguments},
    chain, code, complain, has_unreadable_rules, say,
};
use crate::{
    config::TrustStore,
    protocol::Permission,
    sandbox::{Fence, Layers, NOT_BUILT, NotRun, Tier, Workspace, layers},
};

/// Note on a partial sandbox, for workspaces without and with guard.
const STRICT: &str = "  strict: commands cannot create top-level files; /sandbox guard allows it in this folder";
const GUARDED: &str = "  guard: commands run from the screen may write the whole workspace; protected files are \
                       restored";

pub fn run(ask: Boundary) -> Result<u8> {
    match ask {
        Boundary::Explain { common } => {
            let base = CliContext::of(&common, &TargetArguments::default())?;
            let layers = layers();
            let is_guarded = TrustStore::under(&base.paths.state).is_guarded(&base.workspace);
            say(&explained(layers, is_guarded));
            Ok(if layers.tier == Tier::None {
                code::NO_SANDBOX
            } else {
                code::OK
            })
        }
        Boundary::Run {
            network,
            git_write,
            guard,
            common,
            command,
        } => {
            let base = CliContext::of(&common, &TargetArguments::default())?;
            let permissions = [(network, Permission::Network), (git_write, Permission::GitWrite)];
            let permissions: Vec<_> = permissions.into_iter().filter(|it| it.0).map(|it| it.1).collect();
            for problem in &base.problems {
                complain(&problem.to_string());
            }
            if base.problems.iter().any(|it| it.leaves_open) || has_unreadable_rules(&base) {
                return Ok(code::USAGE);
            }
            hold(&base, &command, &permissions, guard)
        }
    }
}

fn hold(base: &CliContext, command: &[OsString], permissions: &[Permission], is_guarded: bool) -> Result<u8> {
    let fence = Fence::configured(&base.settings, Some(&base.paths), Vec::new());
    let workspace = Workspace::fenced(&base.workspace, fence)
        .with_context(|| format!("{} cannot be opened", base.workspace.display()))?;
    match workspace.try_out(command, permissions, is_guarded) {
        Ok(tried) => {
            for said in tried.settled.told() {
                complain(&said);
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

/// Returns a command's exit code as shells do: 128 + n after signal n.
fn passed_on(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|it| 128 + it));
    code.and_then(|it| u8::try_from(it).ok()).unwrap_or(NOT_BUILT)
}

/// Describes the sandbox's layers, in the words of the screen's header.
fn explained(layers: &Layers, is_guarded: bool) -> String {
    use std::fmt::Write as _;

    let mut text = format!("{}\n", layers.head(is_guarded));
    for layer in &layers.list {
        let sign = if layer.holds { '✓' } else { '✗' };
        let _ = writeln!(text, "  {sign} {:<14} {}", layer.name, layer.about);
        if !layer.remedy.is_empty() {
            let _ = writeln!(text, "  {:<16} → {}", "", layer.remedy);
        }
    }
    if layers.tier == Tier::Partial {
        let note = if is_guarded { GUARDED } else { STRICT };
        let _ = writeln!(text, "{note}");
    }
    text
}
