//! Finding and ending the processes of a command, also those that left its group.

use std::time::Duration;

use rustix::process::{Pid, Signal};

#[cfg(target_os = "linux")]
use crate::sandbox::kernel::descendants;

/// The variable by which every process of a command is known, unless it throws its environment away.
pub const MARK: &str = "SHEAF_COMMAND";

/// Maximum passes that look for a process that was being created meanwhile.
const MOST_PASSES: usize = 20;

/// The processes of a command: its group, and whatever bears its mark.
#[derive(Clone, Debug)]
pub struct Family {
    pub group: Option<Pid>,
    /// `<conversation>.<number>`, or `<conversation>.` for all of them.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "only Linux shows the environment of a process")
    )]
    pub mark: String,
}

/// Ends what still runs of a command with this mark, whose program was killed.
pub fn end_marked(mark: &str) {
    let family = Family {
        group: None,
        mark: mark.to_owned(),
    };
    if !mark.is_empty() {
        family.kill();
    }
}

impl Family {
    /// Asks those to end that left the group.
    pub fn ask_strays(&self) {
        for pid in self.members().0 {
            if rustix::process::getpgid(Some(pid)).ok() != self.group {
                rustix::process::kill_process(pid, Signal::TERM).ok();
            }
        }
    }

    /// Ends all that is left, until nothing is. What may not be killed stays.
    pub fn kill(&self) {
        for _ in 0..MOST_PASSES {
            let (left, may_be_more) = self.members();
            self.end_below(&left);
            if let Some(group) = self.group {
                rustix::process::kill_process_group(group, Signal::KILL).ok();
            }
            let killed = left
                .into_iter()
                .filter(|it| rustix::process::kill_process(*it, Signal::KILL).is_ok());
            if killed.count() == 0 && !may_be_more {
                return;
            }
            // The dying are still there for a moment.
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends what is below these processes and below the one that leads the group, which adopts what loses its parent: one that threw
    /// its environment away is found from there only. They are stopped, so that they do not go first.
    #[cfg(target_os = "linux")]
    fn end_below(&self, found: &[Pid]) {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let number = |it: &Pid| it.as_raw_nonzero().get();
        // The number of one that was waited for may be another's by now.
        let leader = self
            .group
            .iter()
            .map(number)
            .filter(|it| descendants::parent(*it) == Some(own));
        let roots: Vec<_> = found.iter().map(number).chain(leader).collect();
        for root in roots.iter().filter_map(|it| Pid::from_raw(*it)) {
            rustix::process::kill_process(root, Signal::STOP).ok();
        }
        descendants::end_below(&roots, MOST_PASSES, || {});
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "on Linux they are found by their parents")]
    fn end_below(&self, _: &[Pid]) {}

    /// Returns the processes that were found, and true if there may be more that are not visible at this moment.
    fn members(&self) -> (Vec<Pid>, bool) {
        #[cfg(target_os = "macos")]
        let found = (self.group.map_or_else(Vec::new, in_session), false);
        #[cfg(not(target_os = "macos"))]
        let found = marked(&self.mark);
        found
    }

    /// Returns true if a process of the group exists; unreaped ones count.
    pub fn is_group_alive(&self) -> bool {
        self.group
            .is_some_and(|it| rustix::process::test_kill_process_group(it).is_ok())
    }
}

/// All processes whose environment has the mark, and whether one shows none at all: so does one for a moment that turns into
/// another program.
#[cfg(target_os = "linux")]
fn marked(mark: &str) -> (Vec<Pid>, bool) {
    use std::{fs, io::Read};

    let own = rustix::process::getpid();
    let wanted = format!("{MARK}={mark}");
    let is_wanted = |variable: &[u8]| {
        variable
            .strip_prefix(wanted.as_bytes())
            .is_some_and(|rest| rest.is_empty() || wanted.ends_with('.'))
    };
    let Ok(entries) = fs::read_dir("/proc") else {
        return (Vec::new(), false);
    };
    let mut may_be_more = false;
    let numbers = entries.flatten().filter_map(|it| it.file_name().to_str()?.parse().ok());
    let found = numbers
        .filter_map(Pid::from_raw)
        .filter(|it| *it != own)
        .filter(|it| {
            let mut environment = Vec::new();
            // No longer than the kernel lets an environment be.
            let read = fs::File::open(format!("/proc/{}/environ", it.as_raw_nonzero()))
                .and_then(|it| it.take(4 << 20).read_to_end(&mut environment));
            may_be_more |= matches!(read, Ok(0)) && is_program(*it);
            read.is_ok_and(|_| environment.split(|it| *it == 0).any(is_wanted))
        })
        .collect();
    (found, may_be_more)
}

/// Neither dead nor a thread of the kernel, which never have an environment.
#[cfg(target_os = "linux")]
fn is_program(pid: Pid) -> bool {
    const OF_KERNEL: u64 = 0x0020_0000;
    let pid = pid.as_raw_nonzero().get();
    let is_dead = descendants::field(pid, 0).is_none_or(|it| matches!(it.as_str(), "Z" | "X" | "x"));
    let flags: u64 = descendants::field(pid, 6)
        .and_then(|it| it.parse().ok())
        .unwrap_or_default();
    !is_dead && flags & OF_KERNEL == 0
}

/// All processes of the session that a command leads. Nobody may look at the environment of others there.
#[cfg(target_os = "macos")]
fn in_session(leader: Pid) -> Vec<Pid> {
    // More than a machine runs; those that come while it is asked are found the next time.
    let mut found = vec![0_i32; 1 << 16];
    let size = i32::try_from(std::mem::size_of_val(found.as_slice())).unwrap_or(i32::MAX);
    #[expect(unsafe_code, reason = "the kernel writes no further than the size that it is told")]
    let count = unsafe { libc::proc_listallpids(found.as_mut_ptr().cast(), size) };
    found.truncate(usize::try_from(count).unwrap_or_default());
    let own = rustix::process::getpid();
    let pids = found.into_iter().filter_map(Pid::from_raw).filter(|it| *it != own);
    pids.filter(|it| rustix::process::getsid(Some(*it)).is_ok_and(|it| it == leader))
        .collect()
}

/// Elsewhere the group is all that is known.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn marked(_: &str) -> (Vec<Pid>, bool) {
    (Vec::new(), false)
}
