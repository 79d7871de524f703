//! The helper on macOS: it reads its order, takes its limits, and becomes `sandbox-exec` with the profile of the policy.
//!
//! Written for that system and not run on one. What a command leaves behind is found by its session, because there are no
//! namespaces of processes.

use std::{
    convert::Infallible,
    ffi::OsString,
    fs,
    io::{self, Read as _},
    os::{
        fd::{FromRawFd as _, OwnedFd},
        unix::process::CommandExt as _,
    },
    process::ExitCode,
};

use rustix::process::{Resource, Rlimit};

use super::{
    helper::{NOT_BUILT, ORDER_DESCRIPTOR},
    order::{Order, pairs},
    seatbelt,
};

/// A part of the system; a path of the user's is not searched.
const PROGRAM: &str = "/usr/bin/sandbox-exec";
/// Maximum size of an order, in bytes.
const MOST_ORDER: u64 = 64 << 20;

/// Comes back only when it could not become the command.
pub fn enter(is_report: bool) -> ExitCode {
    match become_command(is_report) {
        Ok(never) => match never {},
        Err(error) => {
            let line = format!("sheaf: the sandbox cannot be built: {error}\n");
            // Nobody else is there to be told.
            rustix::io::write(rustix::stdio::stderr(), line.as_bytes()).ok();
            ExitCode::from(NOT_BUILT)
        }
    }
}

fn become_command(is_report: bool) -> io::Result<Infallible> {
    let order = read_order()?;
    for (resource, most) in [
        (Resource::Core, 0),
        (Resource::Fsize, order.policy.limits.file_bytes),
        (Resource::Nofile, order.policy.limits.open_files),
    ] {
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        // The system may allow less, and then that holds.
        rustix::process::setrlimit(resource, limit).ok();
    }
    let profile = seatbelt::profile(&order.policy);
    let mut words: Vec<OsString> = vec!["-p".into(), profile.text.into()];
    for (name, value) in profile.parameters {
        let mut word = OsString::from(format!("{name}="));
        word.push(value);
        words.extend(["-D".into(), word]);
    }
    words.push("--".into());
    if is_report {
        // What runs inside says that the profile was taken.
        words.extend(["/bin/echo", "held seatbelt=1"].map(OsString::from));
    } else {
        words.extend(order.command);
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the place where the helper becomes the command"
    )]
    let mut command = std::process::Command::new(PROGRAM);
    Err(command
        .args(words)
        .envs(pairs(&order.variables))
        .current_dir(&order.directory)
        .exec())
}

fn read_order() -> io::Result<Order> {
    #[expect(
        unsafe_code,
        reason = "whoever started this program left the order under this number"
    )]
    let pipe = unsafe { OwnedFd::from_raw_fd(ORDER_DESCRIPTOR) };
    let mut bytes = Vec::new();
    fs::File::from(pipe).take(MOST_ORDER).read_to_end(&mut bytes)?;
    Order::decode(&bytes).ok_or_else(|| io::Error::other("the order is not whole"))
}
