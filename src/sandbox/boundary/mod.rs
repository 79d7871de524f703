//! What the kernel holds around a command: the policy, and the helper that puts it into force.
//!
//! A command is started as `sheaf __sandbox`, which is this program once more, with one thread. It reads an [`Order`] from
//! a pipe, builds the walls around itself, and becomes the command. What cannot be built is an error and the command does
//! not run: it never runs with less than was ordered.

mod order;
mod probe;
#[cfg(any(test, target_os = "macos"))]
mod seatbelt;

#[cfg(target_os = "linux")]
mod enter;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "macos")]
mod mac;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod rules;
#[cfg(target_os = "linux")]
mod system;
#[cfg(target_os = "linux")]
mod wrap;

use std::{ffi::OsString, process::ExitCode};

pub use order::{Limits, Order, Policy};
pub use probe::{Layer, Layers, force_off, is_off, layers};
pub(super) use probe::{command, handed_over, program, wraps};

/// The hidden word on the command line.
pub(super) const WORD: &str = "__sandbox";
/// Behind the word: say what is in force instead of becoming a command.
pub(super) const REPORT: &str = "report";
/// Behind the word: bubblewrap has built the tree around this one.
pub(super) const INNER: &str = "inner";
/// Where the helper finds its order: no descriptor that people use.
pub(super) const ORDER_DESCRIPTOR: i32 = 197;
/// Where the shell says in which folder it ended; the one descriptor beside the usual three that a command inherits.
pub(super) const FOLDER_DESCRIPTOR: i32 = 198;
/// The helper's exit code where a wall could not be built. As `env` and `timeout` have it for failures of their own.
pub const NOT_BUILT: u8 = 125;

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
        enter::enter(says(REPORT), says(INNER))
    };
    #[cfg(target_os = "macos")]
    let code = mac::enter(arguments.iter().skip(2).any(|it| it == REPORT));
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    let code = ExitCode::from(NOT_BUILT);
    Some(code)
}

/// From here on a key that ends a program ends only what runs in the same terminal.
pub(super) fn leave_keys() {
    #[cfg(target_os = "linux")]
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        system::handle(signal, system::Handling::Ignored);
    }
}
