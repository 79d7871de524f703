//! Programs that serve tools: started in the sandbox, spoken to through their standard streams, and ended with all that they
//! started.
//!
//! A service is no command of a model's: it lives as long as somebody speaks to it, has grants of its own, and is given nothing
//! of our environment but what commands are given and what its entry in the configuration names.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::Ordering,
    time::Duration,
};

use rustix::process::{Pid, Signal};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::{
    commands::Commands,
    launch::{Start, prepare_child, separate},
    process_tree::{Family, Group, MARK, resident},
    session::Grave,
};
use crate::{
    os::process::find,
    protocol::Permission,
    sandbox::{
        kernel::{self, Order},
        policy::{Tier, environment},
        protect::{Around, Wish},
    },
};

/// Time that a service has to end by itself once its input is closed.
const GRACE: Duration = Duration::from_secs(2);
/// Time that it has once it was asked to end by a signal.
const LAST_GRACE: Duration = Duration::from_secs(1);

/// A service to start.
#[derive(Clone, Debug)]
pub struct ServiceSpec {
    /// A name that is looked up in `PATH`, or a path, which is relative to `directory`.
    pub program: String,
    pub arguments: Vec<String>,
    /// Absolute.
    pub directory: PathBuf,
    /// Additional variables.
    pub variables: Vec<(String, String)>,
    pub network: bool,
    /// Folders that it may write, absolute. The workspace is one of them only if it is named.
    pub folders: Vec<PathBuf>,
    /// It gets caches of its own, which go with it, because it cannot write those of the home folder.
    pub has_own_cache: bool,
}

/// Reason why a service was not started.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error("`{0}` was not found in PATH")]
    Absent(String),
    #[error("the folder {} does not exist", .0.display())]
    Folder(PathBuf),
    #[error("a word of its command line holds a NUL character")]
    Nul,
    #[error("it could not be started: {0}")]
    Failed(#[from] io::Error),
}

/// A running service. Dropping it ends it at once.
#[derive(Debug)]
pub struct Service {
    child: Child,
    family: Family,
    /// Keeps protected names from being filled while it runs.
    around: Option<Around>,
    grave: Option<Grave>,
    is_over: bool,
}

/// The streams of a service.
#[derive(Debug)]
pub struct ServiceStreams {
    pub input: ChildStdin,
    pub output: ChildStdout,
    pub errors: ChildStderr,
}

impl Commands {
    /// Starts a service. Looks at the workspace first, which may take seconds; must be called in a runtime.
    pub fn serve(&self, spec: ServiceSpec) -> Result<(Service, ServiceStreams), ServiceError> {
        let has_nul = std::iter::once(&spec.program)
            .chain(&spec.arguments)
            .chain(spec.variables.iter().flat_map(|it| [&it.0, &it.1]))
            .any(|it| it.contains('\0'));
        if has_nul {
            return Err(ServiceError::Nul);
        }
        if !spec.directory.is_dir() {
            return Err(ServiceError::Folder(spec.directory));
        }
        let session = self.session()?;
        let number = session.count.fetch_add(1, Ordering::Relaxed) + 1;
        let mark = format!("{}.{number}", session.name);
        let mut variables = environment::variables(std::env::vars_os(), self.passed(), &session.temporary);
        variables.push((MARK.into(), mark.clone().into()));
        if spec.has_own_cache {
            let cache = session.temporary.join("cache");
            variables.push(("GOCACHE".into(), cache.join("go").into()));
            variables.push(("XDG_CACHE_HOME".into(), cache.into()));
        }
        let tier = Self::tier();
        variables.push(("SHEAF_SANDBOX".into(), tier.as_str().into()));
        let given = spec.variables.iter();
        let given = given.filter(|it| it.0 != MARK && it.0 != "SHEAF_SANDBOX" && !it.0.contains('='));
        let given: Vec<(OsString, OsString)> = given.map(|(name, value)| (name.into(), value.into())).collect();
        let own = given.iter().rfind(|it| it.0 == "PATH");
        let path = own.or_else(|| variables.iter().find(|it| it.0 == "PATH"));
        let program = self::program(&spec, path.map(|it| it.1.clone()).unwrap_or_default())?;
        let line: Vec<OsString> = std::iter::once(program.into_os_string())
            .chain(spec.arguments.iter().map(OsString::from))
            .collect();
        let (around, start) = match tier {
            Tier::None => {
                variables.extend(given);
                (None, Start::Plain(line))
            }
            Tier::Full | Tier::Partial => {
                let (around, mut order) = self.walls(&spec, tier, &mark, &session.temporary, line);
                // They act behind the walls, not in the helper that builds them.
                let written = |(mut name, value): (OsString, OsString)| {
                    name.push("=");
                    name.push(value);
                    name
                };
                order.variables = given.into_iter().map(written).collect();
                (Some(around), Start::Held(kernel::handed_over(&order)?, None))
            }
        };
        let (mut command, handed) = prepare_child(start)?;
        command
            .current_dir(&spec.directory)
            .env_clear()
            .envs(variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        separate(&mut command, &handed, None);
        let mut child = command.spawn()?;
        let group = child.id().and_then(|it| i32::try_from(it).ok()).and_then(Pid::from_raw);
        let record = around.as_ref().map_or("", Around::record);
        let grave = session.watch(group, record);
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let service = Service {
            child,
            family: Family {
                group: Group::new(group),
                mark,
            },
            around,
            grave,
            is_over: false,
        };
        let (Some(input), Some(output), Some(errors)) = streams else {
            return Err(io::Error::other("it has no standard streams").into());
        };
        let streams = ServiceStreams { input, output, errors };
        Ok((service, streams))
    }

    /// The walls around a service: it reads what commands read, and writes what it was granted.
    fn walls(
        &self,
        spec: &ServiceSpec,
        tier: Tier,
        mark: &str,
        temporary: &Path,
        command: Vec<OsString>,
    ) -> (Around, Order) {
        let ground = self.ground();
        let is_workspace = |it: &PathBuf| ground.root.starts_with(it);
        let is_all = spec.folders.iter().any(is_workspace);
        let inner = spec.folders.iter().filter(|it| ground.is_inside(it) && it.is_dir());
        let inner: Vec<PathBuf> = inner.cloned().collect();
        let permissions: &[Permission] = if spec.network { &[Permission::Network] } else { &[] };
        let wish = Wish {
            tier,
            wraps: tier == Tier::Full && kernel::wraps(),
            permissions,
            only_reads: !is_all && inner.is_empty(),
            temporary,
            is_guarded: false,
            is_background: true,
            makes_submodules: false,
            mark,
        };
        let (around, mut policy) = Around::held(ground, self.shared(), &wish);
        if !is_all {
            // The walls are those around all of it, and only parts of it are open.
            let is_root = |it: &PathBuf| *it == ground.root || ground.more.contains(it);
            if tier == Tier::Full {
                policy
                    .read_only
                    .extend(policy.writable.iter().filter(|it| is_root(it)).cloned());
            }
            policy.writable.retain(|it| !is_root(it));
            policy.writable.extend(inner);
        }
        ground.grant(&spec.folders, &mut policy);
        let order = Order {
            variables: Vec::new(),
            joins: false,
            programs: Vec::new(),
            policy,
            directory: spec.directory.clone(),
            command,
            keeps_terminal: false,
        };
        (around, order)
    }
}

/// The program of a service, absolute.
fn program(spec: &ServiceSpec, path: OsString) -> Result<PathBuf, ServiceError> {
    let written = Path::new(&spec.program);
    if written.components().count() > 1 {
        let path = spec.directory.join(written);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(ServiceError::Absent(spec.program.clone()))
        };
    }
    find(&spec.program, &path).ok_or_else(|| ServiceError::Absent(spec.program.clone()))
}

impl Service {
    /// Waits until it has ended by itself; returns how, in words.
    pub async fn ended(&mut self) -> String {
        let ended = self.child.wait().await;
        self.forget_group();
        match ended {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }
    }

    /// Bytes of memory that it holds with all that it started; 0 where that is not known.
    pub fn resident(&self) -> u64 {
        self.family.group.number().map_or(0, resident)
    }

    /// Ends it: its input must have been closed. It has two seconds to go, one more after a signal, then it is killed with all
    /// that it started.
    pub async fn end(mut self) {
        if tokio::time::timeout(GRACE, self.ended()).await.is_err() {
            self.family.group.signal(Signal::TERM);
            tokio::time::timeout(LAST_GRACE, self.ended()).await.ok();
        }
        // The drop kills what is left.
        tokio::task::spawn_blocking(move || drop(self)).await.ok();
    }

    /// From here on the number of its group may be another's.
    fn forget_group(&mut self) {
        self.family.group.forget();
        if let Some(grave) = &mut self.grave {
            grave.dig();
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        self.family.kill();
        if let Some(mut around) = self.around.take() {
            around.settle();
        }
        if let Some(grave) = &mut self.grave {
            grave.close();
        }
    }
}
