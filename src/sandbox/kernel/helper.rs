//! Starting the helper process: the words on its command line and the descriptors that it inherits.

use std::{
    io::{self, Write as _},
    os::{
        fd::{AsRawFd, OwnedFd, RawFd},
        unix::process::CommandExt,
    },
    path::PathBuf,
    sync::OnceLock,
};

use super::order::Order;

/// The hidden word on the command line.
pub const WORD: &str = "__sandbox";
/// Second argument of a helper that reports the restrictions instead of running a command.
pub const REPORT: &str = "report";
/// Second argument of a helper that bubblewrap has started inside its tree.
#[cfg(target_os = "linux")]
pub const INNER: &str = "inner";
/// Second argument of a helper that makes the network of a conversation.
#[cfg(target_os = "linux")]
pub const NETWORK: &str = "network";
/// Descriptor from which the helper reads its order: a number that commands do not use.
pub const ORDER_DESCRIPTOR: i32 = 197;
/// Descriptor to which the shell writes its last folder; the only one that a command inherits beside the usual three.
pub const FOLDER_DESCRIPTOR: i32 = 198;
/// Descriptors of the network namespace that the helper joins, and of the user namespace to which it belongs.
pub const NETWORK_DESCRIPTOR: i32 = 199;
pub const USER_DESCRIPTOR: i32 = 200;
/// The helper's exit code where a wall could not be built. As `env` and `timeout` have it for failures of their own.
pub const NOT_BUILT: u8 = 125;

/// Another program that is the helper.
static OTHER: OnceLock<PathBuf> = OnceLock::new();

/// Makes another program the helper. Returns false if there is one already.
pub fn use_other(program: PathBuf) -> bool {
    OTHER.set(program).is_ok()
}

/// The program that is the helper: this very one, also when its file has been replaced, as far as the system knows it.
pub fn program() -> io::Result<PathBuf> {
    match OTHER.get() {
        Some(other) => Ok(other.clone()),
        None if cfg!(target_os = "linux") => Ok("/proc/self/exe".into()),
        None => std::env::current_exe(),
    }
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
        command.pre_exec(move || hand_down(&[(descriptor.as_raw_fd(), number)]));
    }
}

/// The most descriptors that are handed down to one process.
const MOST_HANDED_DOWN: usize = 4;

/// Gives descriptors other numbers, under which the next program has them. To be called between fork and exec: it makes
/// system calls and nothing else.
pub fn hand_down(descriptors: &[(RawFd, RawFd)]) -> io::Result<()> {
    let mut lifted = [(-1, -1); MOST_HANDED_DOWN];
    if descriptors.len() > lifted.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // All of them first: one may have the number that another is to get.
    for (place, (from, to)) in lifted.iter_mut().zip(descriptors) {
        *place = (lift(*from)?, *to);
    }
    for (from, to) in lifted.into_iter().take(descriptors.len()) {
        #[expect(unsafe_code, reason = "a number that nobody owns has no safe wrapper")]
        let result = unsafe { libc::dup2(from, to) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// A copy of a descriptor above all numbers that have a meaning, which goes with this program.
fn lift(from: RawFd) -> io::Result<RawFd> {
    #[expect(unsafe_code, reason = "a number that nobody owns has no safe wrapper")]
    let result = unsafe { libc::fcntl(from, libc::F_DUPFD_CLOEXEC, USER_DESCRIPTOR + 1) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use std::{io::Read as _, process::Stdio};

    use super::*;

    #[test]
    fn descriptors_are_handed_down_whatever_numbers_they_have() {
        // Each has the number that the other is to get.
        let (one, other) = (USER_DESCRIPTOR + 20, USER_DESCRIPTOR + 21);
        let pipe = |text: &str| {
            let (reader, mut writer) = io::pipe().unwrap();
            writer.write_all(text.as_bytes()).unwrap();
            reader
        };
        let (first, second) = (pipe("first\n"), pipe("second\n"));
        let (from_first, from_second) = (first.as_raw_fd(), second.as_raw_fd());
        #[expect(clippy::disallowed_methods, reason = "a program of the test's own")]
        let mut command = std::process::Command::new("/bin/bash");
        command
            .args(["-c", &format!("read a <&{one}; read b <&{other}; echo $a $b")])
            .stdout(Stdio::piped());
        #[expect(unsafe_code, reason = "only system calls are made")]
        unsafe {
            command.pre_exec(move || {
                hand_down(&[(from_first, one), (from_second, other)])?;
                hand_down(&[(one, other), (other, one), (one, one + 2)])?;
                hand_down(&[(one, one)])
            });
        }
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        child.wait().unwrap();
        assert_eq!(said, "second first\n");
    }
}
