//! System calls for which there is no safe wrapper. Each function makes one, and says what makes it sound.
//!
//! All of it runs in a process of one thread, between its start and the command that it becomes.

use std::{
    ffi::{CStr, CString, OsStr},
    io,
    os::{
        fd::{AsFd as _, AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use libc::{c_char, c_int, c_long, c_uint};
use rustix::{
    fs::CWD,
    io::Errno,
    mount::{self, FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags},
    process::{self, DumpableBehavior, Resource, Rlimit, Signal},
    thread::{self, CapabilitySet, CapabilitySets, LinkNameSpaceType},
};

/// Includes all mounts below.
const AT_RECURSIVE: c_uint = 0x8000;
pub const MOUNT_ATTR_RDONLY: u64 = 1;
pub const MOUNT_ATTR_NOSUID: u64 = 2;
pub const MOUNT_ATTR_NODEV: u64 = 4;

#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

fn checked(result: c_long) -> io::Result<c_long> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

fn descriptor(number: c_long) -> OwnedFd {
    #[expect(
        unsafe_code,
        reason = "the kernel has just given this number, and nobody else knows it"
    )]
    unsafe {
        OwnedFd::from_raw_fd(number as RawFd)
    }
}

/// Returns a path or argument as a C string. Error: it contains a zero byte.
pub fn text(value: impl AsRef<OsStr>) -> io::Result<CString> {
    Ok(CString::new(value.as_ref().as_bytes())?)
}

pub fn unshare(flags: c_int) -> io::Result<()> {
    #[expect(unsafe_code, reason = "a system call on numbers; there is one thread")]
    let result = unsafe { libc::unshare(flags) };
    checked(result.into()).map(drop)
}

/// Goes into a namespace that exists.
pub fn join(namespace: &OwnedFd, kind: LinkNameSpaceType) -> io::Result<()> {
    Ok(thread::move_into_link_name_space(namespace.as_fd(), Some(kind))?)
}

/// The side of a fork that this process is on.
pub enum Fork {
    Child,
    Parent(libc::pid_t),
}

pub fn fork() -> io::Result<Fork> {
    #[expect(
        unsafe_code,
        reason = "there is one thread, so that the child finds no lock that somebody else holds"
    )]
    let result = unsafe { libc::fork() };
    match checked(result.into())? {
        0 => Ok(Fork::Child),
        _ => Ok(Fork::Parent(result)),
    }
}

/// A copy of what is mounted at `path` and below, which hangs nowhere yet. Of a link it is the link: hung onto itself, it
/// leads where it led, and can be neither removed nor replaced.
pub fn copy_tree(path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    Ok(mount::open_tree(CWD, path, flags)?)
}

/// Hangs a copy or a new file system onto `path`.
pub fn hang(tree: &OwnedFd, path: &Path) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(mount::move_mount(tree, c"", CWD, path, flags)?)
}

/// Changes a copy that hangs nowhere yet, with all that is mounted in it.
pub fn restrict_tree(tree: &OwnedFd, set: u64) -> io::Result<()> {
    set_attributes(
        tree.as_raw_fd(),
        c"",
        libc::AT_EMPTY_PATH as c_uint | AT_RECURSIVE,
        set,
        0,
    )
}

/// Changes what is mounted at `path` and below.
pub fn restrict(path: &CStr, set: u64) -> io::Result<()> {
    set_attributes(libc::AT_FDCWD, path, AT_RECURSIVE, set, 0)
}

pub fn unmount(path: &str) -> io::Result<()> {
    Ok(mount::unmount(path, UnmountFlags::DETACH)?)
}

/// Makes later mounts private: they and those of other namespaces do not affect each other.
pub fn make_private() -> io::Result<()> {
    set_attributes(libc::AT_FDCWD, c"/", AT_RECURSIVE, 0, libc::MS_PRIVATE)
}

fn set_attributes(folder: RawFd, path: &CStr, flags: c_uint, set: u64, propagation: u64) -> io::Result<()> {
    let attributes = MountAttributes {
        set,
        clear: 0,
        propagation,
        user_namespace: 0,
    };
    #[expect(unsafe_code, reason = "the structure is the kernel's own, and its size is told")]
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            folder,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    checked(result).map(drop)
}

/// A new file system that hangs nowhere yet.
pub fn new_tree(kind: &CStr, options: &[(&CStr, &CStr)], attributes: u64) -> io::Result<OwnedFd> {
    let context = mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        mount::fsconfig_set_string(&context, *name, *value)?;
    }
    mount::fsconfig_create(&context)?;
    let attributes = MountAttrFlags::from_bits_retain(attributes as _);
    Ok(mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// An overlay of folders that hangs nowhere yet, the first of `lower` on top. What is written goes to the first folder of `upper`, whose
/// second one the kernel works in; without them nothing can be written. No path may hold a colon or a backslash.
pub fn overlay(lower: &[&Path], upper: Option<(&Path, &Path)>) -> io::Result<OwnedFd> {
    let context = mount::fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let lower: Vec<&std::ffi::OsStr> = lower.iter().map(|it| it.as_os_str()).collect();
    mount::fsconfig_set_string(&context, c"lowerdir", lower.join(":".as_ref()))?;
    let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    if let Some((upper, work)) = upper {
        mount::fsconfig_set_string(&context, c"upperdir", upper)?;
        mount::fsconfig_set_string(&context, c"workdir", work)?;
        mount::fsconfig_set_flag(&context, c"userxattr")?;
    } else {
        attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    }
    mount::fsconfig_create(&context)?;
    Ok(mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Returns true if this process may administer the system (`CAP_SYS_ADMIN`).
pub fn may_administer() -> bool {
    const CAP_SYS_ADMIN: u32 = 21;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("CapEff:"));
    let bits = line.and_then(|it| u64::from_str_radix(it.trim(), 16).ok());
    bits.is_some_and(|it| it & (1 << CAP_SYS_ADMIN) != 0)
}

/// Returns true if this process can make a pair of datagram sockets, which reach every such socket that has a path.
pub fn makes_datagram_pair() -> bool {
    let mut pair = [-1; 2];
    #[expect(unsafe_code, reason = "two numbers are written where there is room for two")]
    let result = unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, pair.as_mut_ptr()) };
    if result == 0 {
        close(pair[0].min(pair[1]), pair[0].max(pair[1]));
    }
    result == 0
}

/// Gives up every capability, for what is started from here on too.
pub fn drop_capabilities() -> io::Result<()> {
    /// Upper bound of capabilities; the kernel reports the last one.
    const MOST: u32 = 64;

    for capability in 0..MOST {
        match thread::remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << capability)) {
            Ok(()) => {}
            // Who has no right to drop any has none that could come back.
            Err(Errno::INVAL | Errno::PERM) => break,
            Err(error) => return Err(error.into()),
        }
    }
    // Old kernels know no ambient ones.
    thread::clear_ambient_capability_set().ok();
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    Ok(thread::set_capabilities(None, sets)?)
}

pub fn no_new_privileges() -> io::Result<()> {
    Ok(thread::set_no_new_privs(true)?)
}

/// Ends this process when the one that started it ends.
pub fn end_with_parent() -> io::Result<()> {
    Ok(process::set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Orphans of what this process starts become its children.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(process::set_child_subreaper(Some(process::getpid()))?)
}

/// Hides this process's memory from other processes of the same user.
pub fn not_dumpable() -> io::Result<()> {
    Ok(process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Returns the kernel's Landlock version. `None`: it has no Landlock.
pub fn landlock_version() -> Option<u32> {
    const VERSION: c_uint = 1;
    #[expect(unsafe_code, reason = "asked for the version it reads no structure")]
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0_usize,
            VERSION,
        )
    };
    u32::try_from(result).ok().filter(|it| *it > 0)
}

/// Switches the loopback of this network namespace on.
pub fn raise_loopback() -> io::Result<()> {
    #[repr(C)]
    struct Request {
        name: [u8; 16],
        flags: libc::c_short,
        rest: [u8; 22],
    }
    #[expect(unsafe_code, reason = "a system call on numbers")]
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    let socket = checked(socket.into()).map(descriptor)?;
    let mut request = Request {
        name: [0; 16],
        flags: (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short,
        rest: [0; 22],
    };
    request.name[..2].copy_from_slice(b"lo");
    #[expect(unsafe_code, reason = "the request has the size and the layout of the kernel's")]
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw mut request) };
    checked(result.into()).map(drop)
}

/// Lowers a resource limit to `most`; a lower one stays.
pub fn setrlimit(what: Resource, most: u64) -> io::Result<()> {
    let now = process::getrlimit(what);
    // A limit that is lower already stays.
    let lower = |it: Option<u64>| Some(it.map_or(most, |it| it.min(most)));
    let limit = Rlimit {
        current: lower(now.current),
        maximum: lower(now.maximum),
    };
    Ok(process::setrlimit(what, limit)?)
}

/// Signals that wait until [`next_signal`] takes them; an empty list lets all come as usual.
pub fn block(signals: &[c_int]) -> io::Result<()> {
    let set = set_of(signals);
    #[expect(unsafe_code, reason = "the set lives longer than the call; there is one thread")]
    let result = unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) };
    checked(result.into()).map(drop)
}

/// Waits until one of `signals`, which must be blocked, arrives, and returns it.
pub fn next_signal(signals: &[c_int]) -> c_int {
    let set = set_of(signals);
    let mut signal = 0;
    loop {
        #[expect(unsafe_code, reason = "both live longer than the call")]
        let result = unsafe { libc::sigwait(&raw const set, &raw mut signal) };
        if result == 0 {
            return signal;
        }
    }
}

fn set_of(signals: &[c_int]) -> libc::sigset_t {
    #[expect(unsafe_code, reason = "a set is plain bits, and is emptied before it is filled")]
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        set
    }
}

/// Disposition of a signal.
#[derive(Clone, Copy)]
pub enum Handling {
    Usual,
    Ignored,
}

pub fn handle(signal: c_int, how: Handling) {
    let handler = match how {
        Handling::Usual => libc::SIG_DFL,
        Handling::Ignored => libc::SIG_IGN,
    };
    #[expect(unsafe_code, reason = "no code of ours becomes a handler")]
    unsafe {
        libc::signal(signal, handler);
    }
}

pub fn kill(pid: libc::pid_t, signal: c_int) -> io::Result<()> {
    #[expect(unsafe_code, reason = "a system call on numbers")]
    let result = unsafe { libc::kill(pid, signal) };
    checked(result.into()).map(drop)
}

/// A child that has ended, and its status as the system puts it. `None`: none has, and it was not to be waited for.
pub fn wait(pid: libc::pid_t, waits: bool) -> io::Result<Option<(libc::pid_t, c_int)>> {
    let mut status = 0;
    let options = if waits { 0 } else { libc::WNOHANG };
    loop {
        #[expect(unsafe_code, reason = "the status lives longer than the call")]
        let result = unsafe { libc::waitpid(pid, &raw mut status, options) };
        match checked(result.into()) {
            Ok(0) => return Ok(None),
            Ok(_) => return Ok(Some((result, status))),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Closes all from `first` to `last`.
pub fn close(first: RawFd, last: RawFd) {
    #[expect(
        unsafe_code,
        reason = "called where nothing of ours is open any more that would be used"
    )]
    unsafe {
        libc::syscall(libc::SYS_close_range, first as c_uint, last as c_uint, 0);
    }
}

/// The descriptor that was inherited under this number.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    #[expect(unsafe_code, reason = "only asks about the number")]
    let result = unsafe { libc::fcntl(number, libc::F_GETFD) };
    checked(result.into()).map(|_| descriptor(number.into()))
}

/// Becomes another program; comes back only when that fails.
pub fn execute(program: &CStr, arguments: &[CString], environment: Option<&[CString]>) -> io::Error {
    let ended = |texts: &[CString]| -> Vec<*const c_char> {
        let pointers = texts.iter().map(|it| it.as_ptr());
        pointers.chain([std::ptr::null()]).collect()
    };
    let (arguments, environment) = (ended(arguments), environment.map(ended));
    #[expect(
        unsafe_code,
        reason = "each list ends with nothing, and its texts live longer than the call"
    )]
    unsafe {
        match environment {
            Some(environment) => libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()),
            None => libc::execv(program.as_ptr(), arguments.as_ptr()),
        };
    }
    io::Error::last_os_error()
}

/// Ends without running what a library has registered for the end: that belongs to the process this one was forked from.
pub fn leave(code: c_int) -> ! {
    #[expect(unsafe_code, reason = "it does not come back")]
    unsafe {
        libc::_exit(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command that had it could reach what is covered.
    #[test]
    fn a_copy_of_a_tree_is_closed_when_a_program_starts() {
        // Only root copies one without a namespace of its own.
        let Ok(tree) = copy_tree(Path::new("/")) else {
            let skipped = "SKIPPED: a_copy_of_a_tree_is_closed_when_a_program_starts needs root";
            return drop(std::io::Write::write_fmt(
                &mut std::io::stderr(),
                format_args!("\n{skipped}\n"),
            ));
        };
        let flags = rustix::io::fcntl_getfd(&tree).expect("it is open");
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
}
