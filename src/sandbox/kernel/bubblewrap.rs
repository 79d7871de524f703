//! The same tree built by bubblewrap, where a system lets only programs that it knows make namespaces.
//!
//! Bubblewrap makes the namespaces and the mounts and gives up all capabilities; inside of it this program is started once
//! more and adds what bubblewrap does not have, Landlock and the filter of system calls.

use std::{
    ffi::OsString,
    fs, io,
    io::{Seek as _, Write as _},
    os::{
        fd::AsRawFd as _,
        unix::fs::{MetadataExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use super::{
    helper::{self, INNER, ORDER_DESCRIPTOR, REPORT, WORD},
    mounts::{self, Cover, Failed},
    order::Order,
    syscalls as system,
};
use crate::sandbox::policy::Policy;

/// Paths of bubblewrap. The user's `PATH` is not searched, because anything could be found there.
const PROGRAMS: [&str; 2] = ["/usr/bin/bwrap", "/usr/local/bin/bwrap"];
/// Descriptor through which the inner helper finds this program, even if its file has been replaced.
const PROGRAM_DESCRIPTOR: i32 = 199;

/// The bubblewrap of this machine, if it belongs to the machine.
pub fn program() -> Option<&'static Path> {
    let is_safe = |path: &&Path| {
        let about = fs::metadata(path);
        about.is_ok_and(|it| it.is_file() && it.uid() == 0 && it.permissions().mode() & 0o022 == 0)
    };
    PROGRAMS.iter().map(Path::new).find(is_safe)
}

/// Becomes bubblewrap, which starts the inner helper. Comes back only when it cannot.
pub fn enter(order: &Order, is_report: bool) -> io::Error {
    let prepared = || -> io::Result<(std::ffi::CString, Vec<std::ffi::CString>)> {
        let bubblewrap = program().ok_or_else(|| io::Error::other("bubblewrap is not there"))?;
        let own = fs::File::open(helper::program()?)?;
        // The order has been read; the inner helper reads it again.
        let again = rustix::fs::memfd_create("order", rustix::fs::MemfdFlags::CLOEXEC)?;
        let mut again = fs::File::from(again);
        again.write_all(&order.encode())?;
        again.rewind()?;
        helper::hand_down(&[
            (own.as_raw_fd(), PROGRAM_DESCRIPTOR),
            (again.as_raw_fd(), ORDER_DESCRIPTOR),
        ])?;
        let mut words: Vec<OsString> = vec![bubblewrap.into()];
        words.extend(arguments(&order.policy, order.keeps_terminal)?);
        words.extend(["--".into(), format!("/proc/self/fd/{PROGRAM_DESCRIPTOR}").into()]);
        words.extend([WORD.into(), INNER.into()]);
        words.extend(is_report.then(|| REPORT.into()));
        let words = words.into_iter().map(system::text).collect::<io::Result<Vec<_>>>()?;
        Ok((system::text(bubblewrap)?, words))
    };
    match prepared() {
        Ok((program, words)) => system::execute(&program, &words, None),
        Err(error) => error,
    }
}

/// Returns bubblewrap's arguments for a policy.
fn arguments(policy: &Policy, keeps_terminal: bool) -> io::Result<Vec<OsString>> {
    let mut words: Vec<OsString> = Vec::new();
    let mut put = |parts: &[&std::ffi::OsStr]| words.extend(parts.iter().map(|it| (*it).to_owned()));
    let size = policy.limits.memory_bytes.to_string();
    put(&[
        "--unshare-user-try",
        "--unshare-pid",
        "--unshare-ipc",
        "--die-with-parent",
    ]
    .map(AsRef::as_ref));
    if !policy.network {
        put(&["--unshare-net".as_ref()]);
    }
    if !keeps_terminal {
        put(&["--new-session".as_ref()]);
    }
    // As root it would keep them all, and what is mounted could be taken away again.
    put(&["--cap-drop", "ALL", "--ro-bind", "/", "/"].map(AsRef::as_ref));
    for (path, cover) in mounts::plan(policy).map_err(|Failed(_, why)| why)? {
        let path = path.as_os_str();
        let is_folder = || fs::metadata(path).is_ok_and(|it| it.is_dir());
        let is_there = fs::symlink_metadata(path).is_ok();
        match cover {
            Cover::Empty => put(&[
                "--perms".as_ref(),
                "1777".as_ref(),
                "--size".as_ref(),
                size.as_ref(),
                "--tmpfs".as_ref(),
                path,
            ]),
            Cover::Devices => {
                put(&["--dev".as_ref(), path]);
                let shared = PathBuf::from(path).join("shm");
                put(&[
                    "--perms".as_ref(),
                    "1777".as_ref(),
                    "--size".as_ref(),
                    size.as_ref(),
                    "--tmpfs".as_ref(),
                    shared.as_os_str(),
                ]);
            }
            Cover::Writable(source) => put(&["--bind".as_ref(), source.as_os_str(), path]),
            Cover::Seen(source) => put(&["--ro-bind".as_ref(), source.as_os_str(), path]),
            Cover::Pinned if is_there => put(&["--bind".as_ref(), path, path]),
            Cover::ReadOnly if is_there => put(&["--ro-bind".as_ref(), path, path]),
            Cover::Hidden if is_folder() => put(&[
                "--perms".as_ref(),
                "000".as_ref(),
                "--tmpfs".as_ref(),
                path,
                "--remount-ro".as_ref(),
                path,
            ]),
            // A device on a file system without devices opens for nobody.
            Cover::Hidden if is_there => put(&["--ro-bind".as_ref(), "/dev/null".as_ref(), path]),
            Cover::Pinned | Cover::ReadOnly | Cover::Hidden => {}
        }
    }
    put(&["--proc", "/proc"].map(AsRef::as_ref));
    for path in mounts::telltales().filter(|it| it.exists()) {
        put(&["--ro-bind".as_ref(), "/dev/null".as_ref(), path.as_os_str()]);
    }
    put(&["--chdir", "/"].map(AsRef::as_ref));
    Ok(words)
}

/// Returns the link because of which bubblewrap cannot enforce the policy: it follows links, where our own mounts cover
/// the link itself. `None`: it can.
pub fn problem(policy: &Policy) -> Option<PathBuf> {
    let is_link = |it: &&PathBuf| fs::symlink_metadata(it).is_ok_and(|it| it.is_symlink());
    policy.read_only.iter().find(is_link).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::policy::{ResourceLimits, Tier};

    #[test]
    fn bubblewrap_is_told_the_same_as_we_would_do() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in ["deep/.git", "secret"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        fs::write(root.join(".env"), "x").unwrap();
        let policy = Policy {
            tier: Tier::Full,
            wraps: true,
            workspace: root.clone(),
            writable: vec![root.clone()],
            read_only: vec![root.join("deep/.git"), root.join("gone")],
            hidden: vec![root.join(".env"), root.join("secret")],
            temporary: None,
            over: None,
            network: false,
            git_write: false,
            limits: ResourceLimits::default(),
        };
        let words: Vec<String> = arguments(&policy, false)
            .unwrap()
            .iter()
            .map(|it| it.to_string_lossy().replace(root.to_str().unwrap(), "W"))
            .collect();
        let text = words.join(" ");
        assert!(
            text.contains("--unshare-net --new-session --cap-drop ALL --ro-bind / / "),
            "{text}"
        );
        for part in [
            "--bind W W",
            "--bind W/deep W/deep",
            "--ro-bind W/deep/.git W/deep/.git",
            "--ro-bind /dev/null W/.env",
            "--perms 000 --tmpfs W/secret --remount-ro W/secret",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("gone"), "{text}");
        let at = |part: &str| text.find(part).unwrap();
        assert!(at("--bind W W ") < at("--bind W/deep") && at("--bind W/deep") < at("--ro-bind W/deep/.git"));
        let (_, end) = text.split_once("--proc /proc ").unwrap();
        assert!(
            !Path::new("/proc/keys").exists() || end.contains("--ro-bind /dev/null /proc/keys "),
            "{text}"
        );
        assert!(end.ends_with(" --chdir /"), "{text}");
        let open = Policy {
            network: true,
            ..policy
        };
        assert!(
            !arguments(&open, true)
                .unwrap()
                .iter()
                .any(|it| it == "--unshare-net" || it == "--new-session")
        );
    }
}
