//! Finding and ending the processes of a command, also those that left its group.

use std::{
    io,
    process::ExitStatus,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::process::Child;

#[cfg(target_os = "linux")]
use crate::sandbox::kernel::descendants;

/// The variable by which every process of a command is known, unless it throws its environment away.
pub const MARK: &str = "SHEAF_COMMAND";

/// Maximum passes that look for a process that was being created meanwhile.
const MOST_PASSES: usize = 20;

/// The processes of a command: its group, and whatever bears its mark.
#[derive(Clone, Debug)]
pub struct Family {
    pub group: Group,
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
        group: Group::default(),
        mark: mark.to_owned(),
    };
    if !mark.is_empty() {
        family.kill();
    }
}

/// The process group that a command leads, until its leader has been waited for: from then on its number may be another
/// group's, and nothing is sent to it. Clones share the state.
#[derive(Clone, Debug, Default)]
pub struct Group(Arc<Mutex<Option<Pid>>>);

impl Group {
    pub fn new(leader: Option<Pid>) -> Self {
        Self(Arc::new(Mutex::new(leader)))
    }

    /// Its number. `None`: its leader has been waited for.
    pub fn number(&self) -> Option<Pid> {
        *self.leader()
    }

    /// While this is held nobody waits for the leader.
    fn leader(&self) -> MutexGuard<'_, Option<Pid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_gone(&self) -> bool {
        self.number().is_none()
    }

    /// Sends a signal to all of the group, unless it is gone.
    pub fn signal(&self, signal: Signal) {
        let leader = self.leader();
        if let Some(group) = *leader {
            rustix::process::kill_process_group(group, signal).ok();
        }
    }

    /// Returns true if the leader has ended. It stays, and keeps the number, until [`reap`](Self::reap).
    pub fn has_ended(&self) -> bool {
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let leader = self.leader();
        // One that cannot be waited for is no child of ours any more.
        leader.is_none_or(|it| !matches!(rustix::process::waitid(WaitId::Pid(it), ended), Ok(None)))
    }

    /// Its leader has been waited for, by whoever holds it: from here on the group is gone.
    pub fn forget(&self) {
        *self.leader() = None;
    }

    /// Waits for the leader, which has ended. From here on the group is gone.
    pub fn reap(&self, child: &mut Child) -> io::Result<ExitStatus> {
        let mut leader = self.leader();
        let status = child.try_wait();
        *leader = None;
        status.and_then(|it| it.ok_or_else(|| io::Error::other("the command has not ended")))
    }
}

impl Family {
    /// Asks those to end that left the group.
    pub fn ask_strays(&self) {
        for pid in self.members().0 {
            if rustix::process::getpgid(Some(pid)).ok() != self.group.number() {
                rustix::process::kill_process(pid, Signal::TERM).ok();
            }
        }
    }

    /// Ends all that is left, until nothing is. What may not be killed stays.
    pub fn kill(&self) {
        for _ in 0..MOST_PASSES {
            let (left, may_be_more) = self.members();
            let leader = self.group.leader();
            end_below(&left, *leader);
            if let Some(group) = *leader {
                rustix::process::kill_process_group(group, Signal::KILL).ok();
            }
            drop(leader);
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

    /// Returns the processes that were found, and true if there may be more that are not visible at this moment.
    fn members(&self) -> (Vec<Pid>, bool) {
        #[cfg(target_os = "macos")]
        let found = (self.group.number().map_or_else(Vec::new, in_session), false);
        #[cfg(not(target_os = "macos"))]
        let found = marked(&self.mark);
        found
    }

    /// Returns true if a process of the group lives. Looks at all processes of the machine.
    pub fn is_group_alive(&self) -> bool {
        self.group.number().is_some_and(is_alive)
    }
}

/// Ends what is below these processes and below the one that leads the group, which adopts what loses its parent: one that threw
/// its environment away is found from there only. They are stopped, so that they do not go first.
#[cfg(target_os = "linux")]
fn end_below(found: &[Pid], leader: Option<Pid>) {
    let roots: Vec<Pid> = found.iter().copied().chain(leader).collect();
    for root in &roots {
        rustix::process::kill_process(*root, Signal::STOP).ok();
    }
    let numbers: Vec<_> = roots.iter().map(|it| it.as_raw_nonzero().get()).collect();
    descendants::end_below(&numbers, MOST_PASSES, || {});
}

/// On Linux they are found by their parents.
#[cfg(not(target_os = "linux"))]
const fn end_below(_: &[Pid], _: Option<Pid>) {}

/// Returns true if a process of a group is neither dead nor dying.
#[cfg(target_os = "linux")]
fn is_alive(group: Pid) -> bool {
    let group = group.as_raw_nonzero().to_string();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut numbers = entries.filter_map(|it| it.file_name().to_str()?.parse().ok());
    numbers.any(|it| descendants::is_alive(it) && descendants::field(it, 2).as_ref() == Some(&group))
}

/// Bytes of memory that a process and all below it hold, shared pages included each time.
#[cfg(target_os = "linux")]
pub fn resident(root: Pid) -> u64 {
    let sizes = descendants::tree(root.as_raw_nonzero().get())
        .into_iter()
        .filter_map(|it| {
            let about = std::fs::read_to_string(format!("/proc/{it}/status")).ok()?;
            let size = about.lines().find_map(|it| it.strip_prefix("VmRSS:"))?;
            size.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
        });
    sizes.sum::<u64>().saturating_mul(1024)
}

/// It is not known here.
#[cfg(not(target_os = "linux"))]
pub const fn resident(_: Pid) -> u64 {
    0
}

/// Dead ones do not count here.
#[cfg(not(target_os = "linux"))]
fn is_alive(group: Pid) -> bool {
    rustix::process::test_kill_process_group(group).is_ok()
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

#[cfg(test)]
mod tests {
    use std::{process::Stdio, time::Instant};

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn what_bears_a_mark_is_ended_and_nothing_else() {
        use std::os::unix::process::ExitStatusExt as _;
        let start = |mark: &str| {
            let mut command = std::process::Command::new("/bin/sleep");
            command.arg("600").env(MARK, mark).spawn().unwrap()
        };
        let own = format!("test-{}", uuid::Uuid::new_v4());
        let (mut marked, mut other) = (start(&format!("{own}.1")), start(&format!("{own}.12")));
        end_marked("");
        end_marked(&format!("{own}.1"));
        // A signal to a process acts before the call returns, or it never comes.
        let is_alive = |pid: u32| descendants::is_alive(i32::try_from(pid).unwrap());
        let alive = [is_alive(marked.id()), is_alive(other.id())];
        marked.kill().unwrap();
        other.kill().unwrap();
        let ended = marked.wait().unwrap();
        other.wait().unwrap();
        assert_eq!((alive, ended.signal()), ([false, true], Some(9)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_program_is_neither_dead_nor_a_thread_of_the_kernel() {
        assert!(is_program(rustix::process::getpid()));
        let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let deadline = Instant::now() + Duration::from_secs(20);
        while descendants::is_alive(pid.as_raw_nonzero().get()) {
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!is_program(pid));
        child.wait().unwrap();
        // The first thread of the kernel, where its processes are seen.
        let is_kernel = std::fs::read_to_string("/proc/2/comm").is_ok_and(|it| it == "kthreadd\n");
        assert!(!is_kernel || !is_program(Pid::from_raw(2).unwrap()));
    }

    #[tokio::test]
    async fn nothing_is_sent_to_a_group_whose_leader_has_been_waited_for() {
        // The leader ends and another one of its group lives on, which stands for a group that got the number again.
        let line = "sleep 600 >/dev/null 2>&1 & echo $!";
        let mut command = tokio::process::Command::new("/bin/sh");
        command.args(["-c", line]).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().unwrap();
        let mut printed = String::new();
        let mut output = child.stdout.take().unwrap();
        tokio::io::AsyncReadExt::read_to_string(&mut output, &mut printed)
            .await
            .unwrap();
        let other = Pid::from_raw(printed.trim().parse().unwrap()).unwrap();
        let leader = Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
        let group = Group::new(Some(leader));
        let deadline = Instant::now() + Duration::from_secs(20);
        while !group.has_ended() {
            assert!(Instant::now() < deadline, "it does not end");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let family = Family {
            group: group.clone(),
            mark: "nobody.1".to_owned(),
        };
        // As long as nobody has waited for it the number is its own.
        assert!(!group.is_gone() && family.is_group_alive());
        assert!(group.reap(&mut child).unwrap().success());
        assert!(group.is_gone() && !family.is_group_alive());
        group.signal(Signal::KILL);
        family.kill();
        family.ask_strays();
        // A signal to a process acts before the call returns, or it never comes.
        assert!(is_alive(leader), "the other one was killed");
        rustix::process::kill_process(other, Signal::KILL).unwrap();
    }
}
