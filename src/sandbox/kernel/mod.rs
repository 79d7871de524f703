//! Restrictions that the kernel enforces around a command: the policy, and the helper that applies it.
//!
//! A command is started as `sheaf __sandbox`, which is this program once more, with one thread. It reads an [`Order`] from
//! a pipe, builds the walls around itself, and becomes the command. What cannot be built is an error and the command does
//! not run: it never runs with less than was ordered.

mod helper;
mod order;
mod probe;
#[cfg(any(test, target_os = "macos"))]
mod seatbelt;

#[cfg(target_os = "linux")]
mod batch;
#[cfg(target_os = "linux")]
mod bubblewrap;
#[cfg(target_os = "linux")]
pub mod descendants;
#[cfg(target_os = "linux")]
mod enter;
#[cfg(target_os = "linux")]
mod landlock_rules;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "linux")]
mod mounts;
mod network;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
mod syscalls;

use std::{ffi::OsString, process::ExitCode};

#[cfg(target_os = "linux")]
pub use batch::{End, Report};
pub use helper::{
    FOLDER_DESCRIPTOR, NETWORK_DESCRIPTOR, NOT_BUILT, ORDER_DESCRIPTOR, USER_DESCRIPTOR, WORD, command, hand_down,
    handed_over, program,
};
pub use network::SharedNetwork;
pub use order::{Order, Program};
pub use probe::{Layer, Layers, force_off, is_off, layers, wraps};

use helper::REPORT;

/// Makes another program the helper of this process: for one that is no sheaf itself, such as a test. To be called before the
/// first command.
pub fn use_helper(program: std::path::PathBuf) {
    if helper::use_other(program) {
        probe::can_help();
    }
}

/// To be called first of all, before there is a second thread: whether this process is the helper, and how it ended. Any
/// other process learns by the call that it can start helpers.
pub fn helper(arguments: &[OsString]) -> Option<ExitCode> {
    if arguments.get(1).is_none_or(|it| it != WORD) {
        probe::can_help();
        return None;
    }
    #[cfg(target_os = "linux")]
    let code = {
        let says = |word: &str| arguments.iter().skip(2).any(|it| it == word);
        if says(helper::NETWORK) {
            enter::network()
        } else {
            enter::enter(says(REPORT), says(helper::INNER))
        }
    };
    #[cfg(target_os = "macos")]
    let code = macos::enter(arguments.iter().skip(2).any(|it| it == REPORT));
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    let code = ExitCode::from(NOT_BUILT);
    Some(code)
}

/// From here on a key that ends a program ends only what runs in the same terminal.
pub fn leave_keys() {
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        #[expect(unsafe_code, reason = "no code of ours becomes a handler")]
        unsafe {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
}
