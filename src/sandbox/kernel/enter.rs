//! The helper: builds the walls, and becomes the command.
//!
//! With namespaces there are three processes. The outer one waits and passes on how the command ended. The first of the
//! new process namespace buries orphans and hands signals on; when it ends, the kernel ends all others. The last one
//! becomes the command. Without namespaces the outer one adopts what the command leaves, and ends it.

use std::{
    collections::BTreeMap,
    ffi::{CString, OsString},
    fs, io,
    io::{Read as _, Write as _},
    os::fd::{AsRawFd as _, IntoRawFd as _, OwnedFd},
    process::ExitCode,
};

use libc::c_int;
use rustix::{process::Resource, thread::LinkNameSpaceType};

use super::{
    batch, bubblewrap as wrap, descendants,
    helper::{FOLDER_DESCRIPTOR, NETWORK_DESCRIPTOR, NOT_BUILT, ORDER_DESCRIPTOR, USER_DESCRIPTOR},
    landlock_rules as rules,
    mounts::{self, Failed},
    network::{self, READY},
    order::{Order, pairs},
    seccomp as filter,
    syscalls::{self as system, Fork, Handling},
};
use crate::sandbox::policy::{ResourceLimits, Tier};

/// Signals that are forwarded to the command.
const HANDED_ON: [c_int; 6] = [
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
];
/// Maximum size of an order, in bytes.
const MOST_ORDER: u64 = 64 << 20;
/// Maximum passes that look for processes left by the command.
const MOST_PASSES: usize = 200;
/// A program that is not there, and one that cannot be run, as shells say it.
const ABSENT: c_int = 127;
const UNUSABLE: c_int = 126;
/// From this kernel on the number of processes is bounded in each namespace; before, this would be the whole machine.
const BOUNDED_SINCE: (u32, u32) = (6, 14);

/// Does not come back unless something went wrong, or to report.
pub fn enter(is_report: bool, is_inner: bool) -> ExitCode {
    let entered = if is_inner { inner(is_report) } else { outer(is_report) };
    let Err(Failed(what, error)) = entered else {
        return ExitCode::SUCCESS;
    };
    complain(&what, &error);
    ExitCode::from(NOT_BUILT)
}

/// Makes the network of a conversation, and stays until whoever asked for it has opened it.
pub fn network() -> ExitCode {
    match make_network() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed(what, error)) => {
            complain(&what, &error);
            ExitCode::from(NOT_BUILT)
        }
    }
}

fn make_network() -> Result<(), Failed> {
    leave(libc::CLONE_NEWNET, !system::may_administer())?;
    system::raise_loopback().map_err(failed("switching the loopback on"))?;
    rustix::io::write(rustix::stdio::stdout(), READY).map_err(|it| Failed("telling of it".to_owned(), it.into()))?;
    // Its end is the sign that it has been opened, or that nobody is there any more.
    io::stdin()
        .read_to_end(&mut Vec::new())
        .map_err(failed("waiting"))
        .map(drop)
}

fn complain(what: &str, error: &dyn std::fmt::Display) {
    let line = format!("sheaf: the sandbox cannot be built: {what}: {error}\n");
    // Nobody else is there to be told.
    rustix::io::write(rustix::stdio::stderr(), line.as_bytes()).ok();
}

fn failed(what: &str) -> impl FnOnce(io::Error) -> Failed + use<> {
    let what = what.to_owned();
    move |error| Failed(what, error)
}

/// Inside of bubblewrap: what it does not have is added.
fn inner(is_report: bool) -> Result<(), Failed> {
    let order = read_order().map_err(failed("reading the order"))?;
    bound_processes(order.policy.limits);
    // Where that may not be set: they are counted for the user of this namespace, who has no others in it.
    if !rustix::process::geteuid().is_root() {
        system::setrlimit(Resource::Nproc, order.policy.limits.processes).ok();
    }
    last(&order, is_report, None)
}

fn outer(is_report: bool) -> Result<(), Failed> {
    let order = read_order().map_err(failed("reading the order"))?;
    // Whoever tries something out waits on their only thread, and nobody else looks after it. Elsewhere a thread that ends
    // would take the command with it.
    if order.keeps_terminal {
        system::end_with_parent().map_err(failed("watching the parent"))?;
    }
    if order.policy.wraps {
        if let Some(link) = wrap::problem(&order.policy) {
            let error = io::Error::other(
                "bubblewrap cannot hold a link while a command runs in the background; replace it by what it leads to",
            );
            return Err(Failed(format!("holding {}", link.display()), error));
        }
        return wrapped(&order, is_report);
    }
    let (namespaces, mut told, tell) = match order.policy.tier {
        Tier::Full => {
            separate(&order)?;
            let (told, tell) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
                .map_err(|it| Failed("making a pipe".to_owned(), it.into()))?;
            (true, Some(fs::File::from(told)), Some(tell))
        }
        Tier::Partial => {
            system::adopt_orphans().map_err(failed("adopting orphans"))?;
            (false, None, None)
        }
        Tier::None => {
            return Err(Failed(
                "reading the order".to_owned(),
                io::Error::other("it asks for no sandbox"),
            ));
        }
    };
    match system::fork().map_err(failed("forking"))? {
        Fork::Child => {
            drop(told);
            let outcome = match tell {
                Some(tell) => first(&order, tell, is_report),
                None => last(&order, is_report, None),
            };
            if let Err(Failed(what, error)) = outcome {
                complain(&what, &error);
            }
            system::leave(NOT_BUILT.into());
        }
        Fork::Parent(child) => {
            drop(tell);
            // The command is asked to end as well, and we wait for it.
            for signal in HANDED_ON {
                system::handle(signal, Handling::Ignored);
            }
            let mut status = match system::wait(child, true) {
                Ok(Some((_, status))) => status,
                Ok(None) | Err(_) => 0,
            };
            if namespaces {
                let mut bytes = [0; 4];
                if let Some(told) = &mut told
                    && told.read_exact(&mut bytes).is_ok()
                {
                    status = c_int::from_ne_bytes(bytes);
                }
            } else {
                end_orphans();
            }
            end_like(status)
        }
    }
}

/// Bubblewrap dies with whoever started it, which is a process of ours for that reason: a thread may end before.
fn wrapped(order: &Order, is_report: bool) -> Result<(), Failed> {
    match system::fork().map_err(failed("forking"))? {
        Fork::Child => {
            complain("starting bubblewrap", &wrap::enter(order, is_report));
            system::leave(NOT_BUILT.into());
        }
        Fork::Parent(child) => {
            for signal in HANDED_ON {
                system::handle(signal, Handling::Ignored);
            }
            match system::wait(child, true) {
                Ok(Some((_, status))) => end_like(status),
                Ok(None) | Err(_) => system::leave(NOT_BUILT.into()),
            }
        }
    }
}

/// Ends as the command did.
fn end_like(status: c_int) -> ! {
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        system::setrlimit(Resource::Core, 0).ok();
        system::handle(signal, Handling::Usual);
        system::kill(rustix::process::getpid().as_raw_nonzero().get(), signal).ok();
        system::leave(128 + signal);
    }
    system::leave(libc::WEXITSTATUS(status))
}

fn read_order() -> io::Result<Order> {
    let pipe = system::inherited(ORDER_DESCRIPTOR)?;
    let mut bytes = Vec::new();
    fs::File::from(pipe).take(MOST_ORDER).read_to_end(&mut bytes)?;
    Order::decode(&bytes).ok_or_else(|| io::Error::other("it is not whole"))
}

/// Leaves the namespaces of the machine.
fn separate(order: &Order) -> Result<(), Failed> {
    let is_user = !system::may_administer();
    let mut flags = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC;
    if order.joins {
        if order.policy.network {
            let error = io::Error::other("it asks for two networks");
            return Err(Failed("reading the order".to_owned(), error));
        }
        join(is_user)?;
    } else if !order.policy.network {
        flags |= libc::CLONE_NEWNET;
    }
    // The user namespace of the network is only passed through: what belongs to this command belongs to one of its own, so
    // that no command may do anything to another.
    leave(flags, is_user)
}

/// Joins the network of the conversation. Error: it is the machine's.
fn join(is_user: bool) -> Result<(), Failed> {
    let failed = |error: io::Error| Failed("joining the network".to_owned(), error);
    let (user, network) = (
        system::inherited(USER_DESCRIPTOR).map_err(failed)?,
        system::inherited(NETWORK_DESCRIPTOR).map_err(failed)?,
    );
    let before = network::own().map_err(failed)?;
    if is_user {
        system::join(&user, LinkNameSpaceType::User).map_err(failed)?;
    }
    system::join(&network, LinkNameSpaceType::Network).map_err(failed)?;
    if network::own().map_err(failed)? == before {
        return Err(failed(io::Error::other("it is the one of this machine")));
    }
    Ok(())
}

/// Goes into new namespaces; `is_user`: they belong to a new user namespace.
fn leave(mut flags: c_int, is_user: bool) -> Result<(), Failed> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    if is_user {
        flags |= libc::CLONE_NEWUSER;
    }
    system::unshare(flags).map_err(failed("making namespaces"))?;
    if is_user {
        // As oneself: the user 0 of a namespace of one's own could do what the machine's may not.
        let maps = [
            ("/proc/self/setgroups", "deny".to_owned()),
            ("/proc/self/uid_map", format!("{user} {user} 1", user = user.as_raw())),
            (
                "/proc/self/gid_map",
                format!("{group} {group} 1", group = group.as_raw()),
            ),
        ];
        for (path, text) in maps {
            put(path, &text).map_err(failed(&format!("writing {path}")))?;
        }
    }
    Ok(())
}

/// Writes into a file of the kernel's.
fn put(path: &str, text: &str) -> io::Result<()> {
    let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, rustix::fs::Mode::empty())?;
    fs::File::from(file).write_all(text.as_bytes())
}

/// The first process of its namespace. It does not come back when all went well.
fn first(order: &Order, tell: OwnedFd, is_report: bool) -> Result<(), Failed> {
    system::end_with_parent().map_err(failed("watching the parent"))?;
    mounts::build(&order.policy)?;
    if !order.policy.network && !order.joins {
        system::raise_loopback().map_err(failed("switching the loopback on"))?;
    }
    bound_processes(order.policy.limits);
    mounts::lock_controls()?;
    let mut waited = HANDED_ON.to_vec();
    waited.push(libc::SIGCHLD);
    system::block(&waited).map_err(failed("waiting for signals"))?;
    match system::fork().map_err(failed("forking"))? {
        Fork::Child => {
            system::block(&[]).map_err(failed("taking signals"))?;
            last(order, is_report, Some(tell.as_raw_fd()))
        }
        Fork::Parent(child) => {
            // It is inside: whoever took it over should gain nothing.
            system::drop_capabilities().map_err(failed("dropping capabilities"))?;
            system::not_dumpable().ok();
            // Dropping capabilities forgets it.
            system::end_with_parent().map_err(failed("watching the parent"))?;
            let tell = keep_only(tell);
            let status = bury(child, &waited, order.keeps_terminal);
            rustix::io::write(&tell, &status.to_ne_bytes()).ok();
            system::leave(0)
        }
    }
}

/// Closes everything else, the output of the command too: who reads it waits for its last writer.
fn keep_only(pipe: OwnedFd) -> OwnedFd {
    let number = pipe.into_raw_fd();
    system::close(0, number - 1);
    system::close(number + 1, c_int::MAX);
    system::inherited(number).expect("it was not closed")
}

/// Buries whoever ends, until the command has.
fn bury(child: libc::pid_t, signals: &[c_int], keeps_terminal: bool) -> c_int {
    loop {
        let signal = system::next_signal(signals);
        if signal != libc::SIGCHLD {
            // It leads a group of its own, unless it stays with a terminal, whose keys it hears itself.
            let whom = if keeps_terminal { child } else { -child };
            if system::kill(whom, signal).is_err() {
                system::kill(child, signal).ok();
            }
            continue;
        }
        loop {
            match system::wait(-1, false) {
                Ok(Some((pid, status))) if pid == child => return status,
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            }
        }
    }
}

/// The process that becomes the command. It comes back only when it cannot.
fn last(order: &Order, is_report: bool, pipe: Option<c_int>) -> Result<(), Failed> {
    if !order.keeps_terminal && !order.policy.wraps {
        // Signals of the terminal do not arrive then.
        rustix::process::setsid().ok();
    }
    limit(order.policy.limits).map_err(failed("setting limits"))?;
    // Where the walls are, and not where the folder was before.
    std::env::set_current_dir(&order.directory).map_err(failed(&format!("going to {}", order.directory.display())))?;
    system::drop_capabilities().map_err(failed("dropping capabilities"))?;
    system::no_new_privileges().map_err(failed("giving up new privileges"))?;
    // Beside mounts it is a second wall; a kernel without it has the first.
    let has_mounts = order.policy.tier == Tier::Full && !order.policy.wraps;
    if !has_mounts || system::landlock_version().is_some() {
        rules::apply(&order.policy).map_err(|it| Failed("landlock".to_owned(), io::Error::other(it)))?;
    }
    if let Some(pipe) = pipe {
        system::close(pipe, pipe);
    }
    system::close(3, FOLDER_DESCRIPTOR - 1);
    system::close(FOLDER_DESCRIPTOR + 1, c_int::MAX);
    for signal in HANDED_ON.into_iter().chain([libc::SIGPIPE, libc::SIGCHLD]) {
        system::handle(signal, Handling::Usual);
    }
    let arguments: Vec<CString> = order
        .command
        .iter()
        .map(system::text)
        .collect::<io::Result<_>>()
        .map_err(failed("reading the order"))?;
    filter::apply(&order.policy).map_err(|it| Failed("seccomp".to_owned(), io::Error::other(it)))?;
    if is_report {
        report();
    }
    if !order.programs.is_empty() {
        // Nothing that they start may look into this process, which has their reports.
        system::not_dumpable().ok();
        system::handle(libc::SIGPIPE, Handling::Ignored);
        system::close(FOLDER_DESCRIPTOR, FOLDER_DESCRIPTOR);
        batch::run(&order.programs, &mut io::stdout()).map_err(failed("running programs"))?;
        system::leave(0);
    }
    let Some(program) = arguments.first() else {
        system::leave(ABSENT);
    };
    let environment = environment(&order.variables).map_err(failed("reading the order"))?;
    let error = system::execute(program, &arguments, Some(&environment));
    let line = format!("sheaf: {}: {error}\n", program.to_string_lossy());
    rustix::io::write(rustix::stdio::stderr(), line.as_bytes()).ok();
    system::leave(if error.kind() == io::ErrorKind::NotFound {
        ABSENT
    } else {
        UNUSABLE
    })
}

/// The variables of this process, with those that the order gives in their place.
fn environment(given: &[OsString]) -> io::Result<Vec<CString>> {
    let mut all: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    all.extend(pairs(given).map(|(name, value)| (name.to_owned(), value.to_owned())));
    all.into_iter()
        .map(|(mut name, value)| {
            name.push("=");
            name.push(value);
            system::text(&name)
        })
        .collect()
}

/// Prints the restrictions in force, as seen from inside, and exits.
fn report() -> ! {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = |name: &str| {
        let line = status.lines().find_map(|it| it.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_default().trim().to_owned()
    };
    let line = format!(
        "held pid={} capabilities={} privileges={} filter={} landlock={} root={} datagrams={}\n",
        rustix::process::getpid().as_raw_nonzero(),
        value("CapBnd"),
        value("NoNewPrivs"),
        value("Seccomp"),
        system::landlock_version().unwrap_or(0),
        if rustix::fs::access("/", rustix::fs::Access::WRITE_OK).is_ok() {
            "open"
        } else {
            "closed"
        },
        if system::makes_datagram_pair() {
            "open"
        } else {
            "closed"
        },
    );
    rustix::io::write(rustix::stdio::stdout(), line.as_bytes()).ok();
    system::leave(0)
}

fn limit(limits: ResourceLimits) -> io::Result<()> {
    system::setrlimit(Resource::Core, 0)?;
    system::setrlimit(Resource::Fsize, limits.file_bytes)?;
    system::setrlimit(Resource::Nofile, limits.open_files)?;
    // When memory runs out, the command goes first. Nobody may be allowed to say it here.
    put("/proc/self/oom_score_adj", "1000").ok();
    Ok(())
}

/// Bounds the number of processes of this namespace, where the kernel can.
fn bound_processes(limits: ResourceLimits) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    if version(&release).is_some_and(|it| it >= BOUNDED_SINCE) {
        put("/proc/sys/kernel/pid_max", &limits.processes.to_string()).ok();
    }
}

/// The first two numbers of a kernel's name.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.trim().split(|it: char| !it.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Ends what the command has left behind, which has become ours.
fn end_orphans() {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    descendants::end_below(
        &[own],
        MOST_PASSES,
        || {
            while let Ok(Some(_)) = system::wait(-1, false) {}
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_known_by_its_first_two_numbers() {
        for (release, expected) in [
            ("6.18.44-fc-v657\n", Some((6, 18))),
            ("6.14", Some((6, 14))),
            ("5.15.0-91-generic", Some((5, 15))),
            ("6", None),
            ("", None),
            ("linux", None),
        ] {
            assert_eq!(version(release), expected, "{release}");
        }
    }
}
