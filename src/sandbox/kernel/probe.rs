//! The sandbox layers of this machine's kernel, found by one trial.
//!
//! The trial takes some milliseconds, so whoever starts a program begins it on a thread of its own with [`layers`]; who asks
//! before it has ended waits for it.

use std::{
    io,
    path::PathBuf,
    process::Stdio,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{helper::command, order::Order};
use crate::{
    protocol::Mechanism,
    sandbox::policy::{Policy, ResourceLimits, Tier},
};

/// Forces a lower tier than the machine has, for trying out what happens elsewhere. It cannot raise one.
const AT_MOST: &str = "SHEAF_SANDBOX_AT_MOST";
/// A value of it: all of it, but built by bubblewrap.
#[cfg(target_os = "linux")]
const BUBBLEWRAP: &str = "bubblewrap";

/// Names of the layers, for `sheaf sandbox`.
const NAMES: [&str; 6] = [
    "files",
    "processes",
    "network",
    "capabilities",
    "system calls",
    "landlock",
];

/// True once the program has shown at its start that it can be its own helper.
static CAN_HELP: AtomicBool = AtomicBool::new(false);
/// The user wants none, on the command line.
static IS_OFF: AtomicBool = AtomicBool::new(false);
static LAYERS: OnceLock<Layers> = OnceLock::new();

/// Records that this program can be started as the sandbox helper.
pub fn can_help() {
    CAN_HELP.store(true, Ordering::Release);
}

/// Runs commands without a boundary, so that each asks. To be called before the first command.
pub fn force_off() {
    IS_OFF.store(true, Ordering::Release);
}

/// Returns true if the user turned the sandbox off.
pub fn is_off() -> bool {
    IS_OFF.load(Ordering::Acquire)
}

/// The layers of the sandbox on this machine: which are active, and why others are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layers {
    pub tier: Tier,
    /// Bubblewrap builds it, because this program may not.
    pub wraps: bool,
    /// In words, where it is not the whole: what does not hold, or why nothing does.
    pub why: String,
    pub list: Vec<Layer>,
}

/// A layer of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    pub name: &'static str,
    pub holds: bool,
    /// The mechanism that enforces it. `None` if it is missing.
    pub means: Option<Mechanism>,
    /// Its effect, or the reason why it is missing.
    pub about: String,
    /// A way to get it. Empty: there is none.
    pub remedy: String,
}

/// Gaps of a partial sandbox.
#[cfg(target_os = "linux")]
const STRICT: &str = ".git top level, metadata";
/// The same where the user lets commands write the whole workspace.
const GUARDED: &str = "guard: .git restored, metadata";

impl Layers {
    /// As the screen says it, in a workspace where the whole may be written or not.
    pub fn head(&self, is_guarded: bool) -> String {
        match self.tier {
            Tier::Full => "sandbox full".to_owned(),
            Tier::Partial => format!("sandbox partial ({})", self.but(is_guarded)),
            Tier::None => format!("NO SANDBOX: {}", self.why),
        }
    }

    /// Returns the gaps of the sandbox.
    pub fn but(&self, is_guarded: bool) -> &str {
        if self.tier == Tier::Partial && is_guarded {
            GUARDED
        } else {
            &self.why
        }
    }
}

/// Returns the result of the trial, which the first caller runs.
pub fn layers() -> &'static Layers {
    LAYERS.get_or_init(|| {
        let layers = examine();
        tracing::debug!(tier = layers.tier.as_str(), why = %layers.why, "the sandbox");
        layers
    })
}

/// Returns true if bubblewrap builds the full sandbox.
pub fn wraps() -> bool {
    layers().wraps
}

/// The tier that a trial or a wish lowers the machine's to.
fn choose(found: Tier, at_most: Option<&str>) -> Tier {
    let wanted = [Tier::Full, Tier::Partial, Tier::None]
        .into_iter()
        .find(|it| at_most == Some(it.as_str()))
        .unwrap_or(Tier::Full);
    match (found, wanted) {
        (Tier::None, _) | (_, Tier::None) => Tier::None,
        (Tier::Partial, _) | (_, Tier::Partial) => Tier::Partial,
        (Tier::Full, Tier::Full) => Tier::Full,
    }
}

fn none(why: &str) -> Layers {
    Layers {
        tier: Tier::None,
        wraps: false,
        why: why.to_owned(),
        // Each is named, so that nobody has to know what is missing.
        list: NAMES
            .iter()
            .map(|name| Layer {
                name,
                holds: false,
                means: None,
                about: why.to_owned(),
                remedy: String::new(),
            })
            .collect(),
    }
}

fn examine() -> Layers {
    if is_off() {
        return none("switched off by --sandbox off");
    }
    if !CAN_HELP.load(Ordering::Acquire) {
        return none("this program cannot be started as its own helper");
    }
    let at_most = std::env::var(AT_MOST).ok();
    examine_system(at_most.as_deref())
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn examine_system(_: Option<&str>) -> Layers {
    none("not available on this system")
}

#[cfg(target_os = "macos")]
fn examine_system(at_most: Option<&str>) -> Layers {
    match choose(Tier::Partial, at_most) {
        Tier::None => none(&format!("{AT_MOST} asks for less")),
        Tier::Full | Tier::Partial => by_seatbelt(attempt(Tier::Partial, false)),
    }
}

#[cfg(target_os = "linux")]
fn examine_system(at_most: Option<&str>) -> Layers {
    let most = choose(Tier::Full, at_most);
    let lowered = || format!("{AT_MOST} asks for less");
    let own = if most != Tier::Full || at_most == Some(BUBBLEWRAP) {
        Err(lowered())
    } else {
        attempt(Tier::Full, false)
    };
    let wrapped = match (&own, most) {
        (Ok(_), _) => Err("not needed".to_owned()),
        (Err(_), Tier::Full) => wrapped(),
        (Err(_), Tier::Partial | Tier::None) => Err(lowered()),
    };
    let full = match (&own, &wrapped) {
        (Ok(held), _) | (Err(_), Ok(held)) => Ok(held.clone()),
        (Err(why), Err(_)) => Err(why.clone()),
    };
    let partial = match (&full, most) {
        (Ok(found), _) => Ok(found.clone()),
        (Err(_), Tier::None) => Err(lowered()),
        (Err(_), Tier::Full | Tier::Partial) => attempt(Tier::Partial, false),
    };
    let mut layers = judge(full, partial);
    layers.wraps = own.is_err() && wrapped.is_ok();
    layers.list.push(Layer {
        name: "bubblewrap",
        holds: own.is_ok() || wrapped.is_ok(),
        means: own.is_ok().then_some(Mechanism::Needless),
        remedy: match (&own, &wrapped) {
            // The same stands in its way where it is there.
            (Err(why), Err(_)) if most == Tier::Full && has_wrapper() => remedy(why).to_owned(),
            (Err(_), Err(_)) if most == Tier::Full => "install bubblewrap".to_owned(),
            _ => String::new(),
        },
        about: match (&own, wrapped) {
            (Err(why), Ok(_)) => format!("builds the walls, for sheaf itself may not: {why}"),
            (_, Err(why)) | (Ok(_), Ok(why)) => why,
        },
    });
    layers
}

/// Interprets the trial on macOS, where one mechanism guards files and sockets. It counts as partial, so that commands
/// ask: it has not been tested against attacks yet.
#[cfg(any(test, target_os = "macos"))]
fn by_seatbelt(held: Result<String, String>) -> Layers {
    if let Err(why) = &held {
        return none(why);
    }
    let layer = |name, holds, about: &str| Layer {
        name,
        holds,
        means: Some(Mechanism::Seatbelt),
        about: about.to_owned(),
        remedy: String::new(),
    };
    Layers {
        tier: Tier::Partial,
        wraps: false,
        why: "seatbelt, not tried against attacks".to_owned(),
        list: vec![
            layer(
                "files",
                true,
                "seatbelt: only the workspace is writable; secrets are unreadable",
            ),
            layer(
                "processes",
                false,
                "processes that leave a command's session are not stopped; their number is not limited",
            ),
            layer("network", true, "seatbelt: only this machine's loopback"),
        ],
    }
}

#[cfg(target_os = "linux")]
fn wrapped() -> Result<String, String> {
    match super::bubblewrap::program() {
        Some(_) => attempt(Tier::Full, true),
        None => Err("it is not there, or not only the machine's to change".to_owned()),
    }
}

#[cfg(target_os = "linux")]
fn has_wrapper() -> bool {
    super::bubblewrap::program().is_some()
}

/// Interprets the two trials. Each gives the helper's report from inside, or the reason why it could not start.
#[cfg(target_os = "linux")]
fn judge(full: Result<String, String>, partial: Result<String, String>) -> Layers {
    let tier = match (&full, &partial) {
        (Ok(_), _) => Tier::Full,
        (Err(_), Ok(_)) => Tier::Partial,
        (Err(_), Err(_)) => Tier::None,
    };
    let seen = full.as_ref().or(partial.as_ref()).map_or("", String::as_str);
    let landlock: u32 = value(seen, "landlock").and_then(|it| it.parse().ok()).unwrap_or(0);
    let by_namespaces = |name, about: &str| Layer {
        name,
        holds: full.is_ok(),
        means: full.is_ok().then_some(Mechanism::Kernel),
        about: match &full {
            Ok(_) => about.to_owned(),
            Err(why) => why.clone(),
        },
        remedy: match &full {
            Ok(_) => String::new(),
            Err(why) => remedy(why).to_owned(),
        },
    };
    let by_filter = |name, about: &str| Layer {
        name,
        holds: partial.is_ok(),
        means: partial.is_ok().then_some(Mechanism::Kernel),
        about: match &partial {
            Ok(_) => about.to_owned(),
            Err(why) => why.clone(),
        },
        remedy: String::new(),
    };
    let list = vec![
        by_namespaces(
            "files",
            "everything is read-only except the workspace and a private /tmp; secrets are hidden",
        ),
        by_namespaces(
            "processes",
            "commands see and signal only their own processes, and leave none running",
        ),
        by_namespaces(
            "network",
            "isolated, with only a loopback, which the commands of a conversation share",
        ),
        by_filter("capabilities", "dropped; no program can regain them"),
        by_filter(
            "system calls",
            "seccomp blocks mounts, namespaces, tracing, other sockets and injected keystrokes",
        ),
        Layer {
            name: "landlock",
            holds: landlock > 0 && partial.is_ok(),
            means: partial.is_ok().then_some(Mechanism::Landlock(landlock)),
            about: match (&partial, landlock) {
                (Err(why), _) => why.clone(),
                (Ok(_), 0) => "the kernel does not have it".to_owned(),
                (Ok(_), 1..6) => format!("version {landlock}: files, but not signals and abstract sockets"),
                (Ok(_), _) => format!("version {landlock}: files, signals, abstract sockets"),
            },
            remedy: match landlock {
                0 => "add landlock to the kernel's parameter lsm=".to_owned(),
                _ => String::new(),
            },
        },
    ];
    let why = match tier {
        Tier::Full => String::new(),
        Tier::Partial => STRICT.to_owned(),
        Tier::None => partial.err().unwrap_or_default(),
    };
    Layers {
        tier,
        wraps: false,
        why,
        list,
    }
}

fn value<'a>(seen: &'a str, name: &str) -> Option<&'a str> {
    seen.split_whitespace()
        .find_map(|it| it.strip_prefix(name)?.strip_prefix('='))
}

/// Returns a remedy for the usual reasons. Empty: none is known.
#[cfg(target_os = "linux")]
fn remedy(why: &str) -> &'static str {
    let is_restricted = |path: &str, is: &str| std::fs::read_to_string(path).is_ok_and(|it| it.trim() == is);
    if is_restricted("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        "this system lets no program make namespaces but those that AppArmor names: \
         sysctl kernel.apparmor_restrict_unprivileged_userns=0, or a profile for sheaf"
    } else if is_restricted("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "sysctl kernel.unprivileged_userns_clone=1"
    } else if is_restricted("/proc/sys/user/max_user_namespaces", "0") {
        "sysctl user.max_user_namespaces=10000"
    } else if why.contains("/proc") || why.contains("namespaces") {
        "a container hides it: start it with --security-opt seccomp=unconfined --security-opt systempaths=unconfined"
    } else {
        ""
    }
}

/// Builds the walls around nothing and asks from inside what holds.
fn attempt(tier: Tier, wraps: bool) -> Result<String, String> {
    let order = Order {
        variables: Vec::new(),
        policy: Policy {
            tier,
            wraps,
            workspace: PathBuf::from("/"),
            writable: Vec::new(),
            read_only: Vec::new(),
            hidden: Vec::new(),
            temporary: None,
            over: None,
            network: false,
            git_write: false,
            limits: ResourceLimits::default(),
        },
        directory: PathBuf::from("/"),
        command: vec!["/bin/true".into()],
        keeps_terminal: false,
        joins: false,
        programs: Vec::new(),
    };
    let failed = |error: io::Error| format!("the helper cannot be started: {error}");
    let mut command = command(&order, true).map_err(failed)?;
    let output = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env_clear()
        .output()
        .map_err(failed)?;
    let seen = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    // Whatever else was started by that name does not say this word.
    if output.status.success() && seen.starts_with("held ") {
        return match value(&seen, "datagrams") {
            // There is no filter: the profile guards sockets, too.
            _ if cfg!(target_os = "macos") => Ok(seen),
            // The filter is in force only if it refuses what it should.
            Some("closed") => Ok(seen),
            Some(_) | None => Err("the filter of system calls does not hold: datagram sockets can be made".to_owned()),
        };
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let why = said.lines().find_map(|it| {
        it.strip_prefix("sheaf: the sandbox cannot be built: ")
            .or_else(|| it.starts_with("bwrap: ").then_some(it))
    });
    Err(why.map_or_else(|| format!("the helper ended with {}", output.status), str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_wish_lowers_and_never_raises() {
        for (found, wish, expected) in [
            (Tier::Full, None, Tier::Full),
            (Tier::Full, Some("partial"), Tier::Partial),
            (Tier::Full, Some("none"), Tier::None),
            (Tier::Full, Some("nonsense"), Tier::Full),
            (Tier::Partial, Some("full"), Tier::Partial),
            (Tier::None, Some("full"), Tier::None),
        ] {
            assert_eq!(choose(found, wish), expected, "{found:?} {wish:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_was_not_built_is_named_with_its_error() {
        let held = || Ok("held pid=2 landlock=7".to_owned());
        let failed = || Err("making namespaces: Operation not permitted (os error 1)".to_owned());
        let tiers = |full, partial| {
            let found = judge(full, partial);
            let missing: Vec<_> = found.list.iter().filter(|it| !it.holds).map(|it| it.name).collect();
            (found.tier, missing.join(" "))
        };
        assert_eq!(tiers(held(), held()), (Tier::Full, String::new()));
        assert_eq!(
            tiers(failed(), held()),
            (Tier::Partial, "files processes network".to_owned())
        );
        let all = "files processes network capabilities system calls landlock";
        assert_eq!(tiers(failed(), failed()), (Tier::None, all.to_owned()));
        let found = judge(failed(), held());
        assert!(found.list.iter().any(|it| it.about.contains("os error 1")), "{found:?}");
        let old = judge(Ok("held landlock=3".to_owned()), Ok("held landlock=3".to_owned()));
        assert!(old.list.iter().any(|it| it.about.contains("not signals")), "{old:?}");
    }

    #[test]
    fn on_macos_what_was_not_tried_is_not_called_whole() {
        let held = by_seatbelt(Ok("held seatbelt=1".to_owned()));
        assert_eq!(held.tier, Tier::Partial);
        assert_eq!(
            held.head(false),
            "sandbox partial (seatbelt, not tried against attacks)"
        );
        let absent = by_seatbelt(Err("the helper cannot be started: no such file".to_owned()));
        assert_eq!(absent.tier, Tier::None);
        assert!(
            absent
                .list
                .iter()
                .all(|it| !it.holds && it.about.contains("no such file"))
        );
    }

    #[test]
    fn a_program_that_is_not_its_own_helper_has_none() {
        // This very test program would be started, and say nothing of the kind.
        assert_eq!(examine().tier, Tier::None);
    }
}
