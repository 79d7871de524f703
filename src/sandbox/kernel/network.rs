//! The network that the commands of a conversation share, so that one reaches the server that another has started.
//!
//! It is a network namespace with nothing but a loopback. A helper makes it and ends as soon as it has been opened here, so
//! that nothing needs to be ended later: the kernel removes it when this program and the last command in it have ended.

use std::{io, os::fd::OwnedFd};

/// Line that the helper prints once the network is there.
#[cfg(target_os = "linux")]
pub const READY: &[u8] = b"ready\n";

/// A network namespace, held open.
#[derive(Debug)]
pub struct SharedNetwork {
    pub network: OwnedFd,
    /// The user namespace to which it belongs: the one of this program, or one of its own.
    pub user: OwnedFd,
}

impl SharedNetwork {
    /// Makes one, which takes some milliseconds. Error: this machine does not allow it, and each command has a network of its
    /// own.
    #[cfg(target_os = "linux")]
    pub fn make() -> io::Result<Self> {
        use std::{
            io::Read as _,
            process::{Command, Stdio},
        };

        use super::helper::{NETWORK, WORD, program};

        #[expect(clippy::disallowed_methods, reason = "this is a place where the helper is started")]
        let mut command = Command::new(program()?);
        let mut child = command
            .args([WORD, NETWORK])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut said = [0; READY.len()];
        let is_ready = child.stdout.as_mut().map(|it| it.read_exact(&mut said));
        let opened = match is_ready {
            Some(Ok(())) if said == READY => Self::open(child.id()),
            _ => Err(io::Error::other("the helper made none")),
        };
        // Which ends it.
        let output = child.wait_with_output()?;
        opened.map_err(|error| {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            io::Error::other(format!("{error} {said}"))
        })
    }

    #[cfg(not(target_os = "linux"))]
    pub fn make() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The namespaces of a process that is ours and has not been waited for, so that its number is no other's.
    #[cfg(target_os = "linux")]
    fn open(process: u32) -> io::Result<Self> {
        let open = |name: &str| std::fs::File::open(format!("/proc/{process}/ns/{name}")).map(OwnedFd::from);
        let made = Self {
            network: open("net")?,
            user: open("user")?,
        };
        if identity(&made.network)? == own()? {
            return Err(io::Error::other("it is the one of this machine"));
        }
        Ok(made)
    }
}

/// Identity of the network namespace of this process: device and inode.
#[cfg(target_os = "linux")]
pub fn own() -> io::Result<(u64, u64)> {
    identity(&std::fs::File::open("/proc/self/ns/net")?.into())
}

#[cfg(target_os = "linux")]
fn identity(namespace: &OwnedFd) -> io::Result<(u64, u64)> {
    let about = rustix::fs::fstat(namespace)?;
    Ok((about.st_dev, about.st_ino))
}
