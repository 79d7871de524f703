//! Anything in the sandbox, for people who want to see what it does.

use std::{
    ffi::OsString,
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    process::ExitStatus,
};

use super::process_tree::MARK;
use crate::{
    os::process::find,
    protocol::Permission,
    sandbox::{
        kernel::{self, Order},
        policy::{Ground, Tier, environment},
        protect::{self, Around, Settled, Shared, Wish},
    },
};

/// Reason why a trial was not run.
#[derive(Debug, thiserror::Error)]
pub enum NotRun {
    #[error("no sandbox is available: {0}\n  `sheaf sandbox explain` shows what is missing")]
    NoSandbox(String),
    #[error("`{0}` was not found")]
    Absent(String),
    #[error("it could not be started")]
    Failed(#[from] io::Error),
}

/// Result of a trial run.
#[derive(Debug)]
pub struct Tried {
    pub status: ExitStatus,
    /// Results for the protected files that it created or changed.
    pub settled: Settled,
}

/// A folder that goes with its owner.
struct Temporary(PathBuf);

impl Temporary {
    fn make() -> io::Result<Self> {
        let name = format!("sheaf-{}", uuid::Uuid::new_v4().simple());
        let path = std::env::temp_dir().canonicalize()?.join(name);
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

pub fn run(
    ground: &Ground,
    shared: &Shared,
    passed: &[String],
    command: &[OsString],
    permissions: &[Permission],
    is_guarded: bool,
) -> Result<Tried, NotRun> {
    let layers = kernel::layers();
    if layers.tier == Tier::None {
        return Err(NotRun::NoSandbox(layers.why.clone()));
    }
    let here = std::env::current_dir()?.canonicalize()?;
    let is_inside = std::iter::once(&ground.root)
        .chain(&ground.more)
        .any(|it| here.starts_with(it));
    let directory = if is_inside { here } else { ground.root.clone() };
    let temporary = Temporary::make()?;
    let mut variables = environment::variables(std::env::vars_os(), passed, &temporary.0);
    variables.push(("SHEAF_SANDBOX".into(), layers.tier.as_str().into()));
    let mark = format!("{}.1", uuid::Uuid::new_v4().simple());
    variables.push((MARK.into(), mark.clone().into()));
    let (name, arguments) = command.split_first().ok_or_else(|| NotRun::Absent(String::new()))?;
    let path = variables.iter().find(|it| it.0 == "PATH").map(|it| it.1.clone());
    let program = if Path::new(name).components().count() > 1 {
        directory.join(name)
    } else {
        let name = name.to_string_lossy();
        find(&name, &path.unwrap_or_default()).ok_or_else(|| NotRun::Absent(name.into_owned()))?
    };
    let wish = Wish {
        tier: layers.tier,
        wraps: layers.wraps,
        permissions,
        only_reads: false,
        temporary: &temporary.0,
        is_guarded,
        is_background: false,
        makes_submodules: false,
        mark: &mark,
    };
    let (mut around, policy) = Around::held(ground, shared, &wish);
    if around.is_guarded() {
        variables.push(("GIT_OPTIONAL_LOCKS".into(), "0".into()));
    }
    let order = Order {
        variables: Vec::new(),
        policy,
        directory,
        command: std::iter::once(program.into_os_string())
            .chain(arguments.iter().cloned())
            .collect(),
        keeps_terminal: true,
        joins: false,
        programs: Vec::new(),
    };
    let mut child = kernel::command(&order, false)?.env_clear().envs(variables).spawn()?;
    // Its keys are the command's, which is in the same group; we go when it has gone.
    kernel::leave_keys();
    let status = child.wait()?;
    let settled = around.settle();
    // Whoever wanted the trial says it.
    protect::said(&settled);
    Ok(Tried { status, settled })
}
