//! Starting the helper process: the words on its command line and the descriptors that it inherits.

use std::{
    io::{self, Write as _},
    os::{
        fd::{AsRawFd, OwnedFd, RawFd},
        unix::process::CommandExt,
    },
    path::PathBuf,
};

use super::order::Order;

/// The hidden word on the command line.
pub const WORD: &str = "__sandbox";
/// Second argument of a helper that reports the restrictions instead of running a command.
pub const REPORT: &str = "report";
/// Second argument of a helper that bubblewrap has started inside its tree.
#[cfg(target_os = "linux")]
pub const INNER: &str = "inner";
/// Descriptor from which the helper reads its order: a number that commands do not use.
pub const ORDER_DESCRIPTOR: i32 = 197;
/// Descriptor to which the shell writes its last folder; the only one that a command inherits beside the usual three.
pub const FOLDER_DESCRIPTOR: i32 = 198;
/// The helper's exit code where a wall could not be built. As `env` and `timeout` have it for failures of their own.
pub const NOT_BUILT: u8 = 125;

/// The program that is its own helper: this very one, also when its file has been replaced.
#[cfg(target_os = "linux")]
#[expect(clippy::unnecessary_wraps, reason = "on other systems it may not be known")]
pub fn program() -> io::Result<PathBuf> {
    Ok("/proc/self/exe".into())
}

/// The same as far as the system knows it.
#[cfg(not(target_os = "linux"))]
pub fn program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// The helper with its order.
pub fn command(order: &Order, is_report: bool) -> io::Result<std::process::Command> {
    let reader = handed_over(order)?;
    #[expect(clippy::disallowed_methods, reason = "this is the place where the helper is started")]
    let mut command = std::process::Command::new(program()?);
    command.arg(WORD).args(is_report.then_some(REPORT));
    inherit(&mut command, reader.into(), ORDER_DESCRIPTOR);
    Ok(command)
}

/// The end of a pipe from which the helper reads its order, which a thread hands over.
pub fn handed_over(order: &Order) -> io::Result<io::PipeReader> {
    let (reader, mut writer) = io::pipe()?;
    let bytes = order.encode();
    std::thread::Builder::new()
        .name("order".to_owned())
        .stack_size(64 << 10)
        .spawn(move || writer.write_all(&bytes).ok())?;
    Ok(reader)
}

/// Gives a command `descriptor` under `number`.
fn inherit(command: &mut std::process::Command, descriptor: OwnedFd, number: RawFd) {
    #[expect(unsafe_code, reason = "between fork and exec one system call is made, on numbers")]
    unsafe {
        command.pre_exec(move || duplicate(descriptor.as_raw_fd(), number));
    }
}

/// Gives a descriptor another number, under which it survives.
pub fn duplicate(from: RawFd, to: RawFd) -> io::Result<()> {
    #[expect(unsafe_code, reason = "a number that nobody owns has no safe wrapper")]
    let result = unsafe { libc::dup2(from, to) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
