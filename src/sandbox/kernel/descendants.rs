//! The processes below others. One that adopts orphans has to go last: what it leaves would be nobody's to find.

use std::fs;

use libc::pid_t;

use super::syscalls as system;

/// Stops the living processes below `roots`, so that they make no more, and returns them.
pub fn stop_below(roots: &[pid_t]) -> Vec<pid_t> {
    let mut found = Vec::new();
    let mut open = roots.to_vec();
    while let Some(pid) = open.pop() {
        for child in children(pid) {
            // Before it is asked for its own children.
            if is_alive(child) && system::kill(child, libc::SIGSTOP).is_ok() {
                found.push(child);
            }
            open.push(child);
        }
    }
    found
}

/// Ends all processes below `roots`, which stay. Returns true if none is left.
pub fn end_below(roots: &[pid_t], passes: usize, mut meanwhile: impl FnMut()) -> bool {
    for _ in 0..passes {
        meanwhile();
        let left = stop_below(roots);
        if left.is_empty() {
            return true;
        }
        for pid in left {
            system::kill(pid, libc::SIGKILL).ok();
        }
        // The dying are still there for a moment.
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    false
}

/// A process and all below it.
pub fn tree(root: pid_t) -> Vec<pid_t> {
    let mut found = vec![root];
    let mut at = 0;
    while let Some(pid) = found.get(at).copied() {
        at += 1;
        for child in children(pid) {
            if !found.contains(&child) {
                found.push(child);
            }
        }
    }
    found
}

/// Those that any thread of a process has made.
fn children(of: pid_t) -> Vec<pid_t> {
    let threads = fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|it| fs::read_to_string(it.path().join("children")).ok());
    lists
        .flat_map(|it| {
            it.split_whitespace()
                .filter_map(|it| it.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Returns true if a process exists and is not dead.
pub fn is_alive(pid: pid_t) -> bool {
    let state = field(pid, 0);
    state.is_some_and(|it| !matches!(it.as_str(), "Z" | "X" | "x"))
}

/// Returns a field of what the system says of a process after its name, which may have any characters: state, parent, and so on.
pub fn field(pid: pid_t, at: usize) -> Option<String> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(at).map(str::to_owned)
}
