//! Turns a path as a user or a model wrote it into the absolute path that it leads to, links resolved.

use std::{
    ffi::OsString,
    fs, io,
    path::{Component, Path, PathBuf},
};

/// Longest path that is looked at: the kernel's own limit.
pub const LONGEST_PATH: usize = 4096;
/// Longest name of a file: the limit of the usual file systems.
pub const LONGEST_NAME: usize = 255;
/// Maximum number of links followed on one path, as in the kernel.
pub const MOST_LINKS: usize = 40;

/// Takes off what is not part of a path.
pub fn written_path(written: &str, home: Option<&Path>) -> PathBuf {
    if let Some(rest) = written.strip_prefix("file://") {
        let url = url::Url::parse(written).ok();
        return url
            .and_then(|it| it.to_file_path().ok())
            .unwrap_or_else(|| PathBuf::from(rest));
    }
    match (written.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(written),
    }
}

/// Follows the links of an absolute path as far as it exists; the rest is taken by its words.
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    follow(path).map(|it| it.0)
}

/// Returns where an absolute path leads, as [`resolve`] does, and the links on the way, each by its own resolved path.
pub fn follow(path: &Path) -> io::Result<(PathBuf, Vec<PathBuf>)> {
    enum PathStep {
        Root,
        Up,
        Down(OsString),
    }
    fn steps(path: &Path) -> impl DoubleEndedIterator<Item = PathStep> {
        path.components().filter_map(|it| match it {
            Component::Prefix(_) | Component::RootDir => Some(PathStep::Root),
            Component::CurDir => None,
            Component::ParentDir => Some(PathStep::Up),
            Component::Normal(name) => Some(PathStep::Down(name.to_owned())),
        })
    }
    let mut left: Vec<PathStep> = steps(path).rev().collect();
    let mut resolved = PathBuf::from("/");
    let mut links = Vec::new();
    // How many of the last names do not exist.
    let mut absent = 0_usize;
    while let Some(step) = left.pop() {
        match step {
            PathStep::Root => {
                resolved = PathBuf::from("/");
                absent = 0;
            }
            PathStep::Up => {
                resolved.pop();
                absent = absent.saturating_sub(1);
            }
            PathStep::Down(name) => {
                if name.len() > LONGEST_NAME || resolved.as_os_str().len() > LONGEST_PATH {
                    return Err(io::ErrorKind::InvalidFilename.into());
                }
                resolved.push(name);
                if absent > 0 {
                    absent += 1;
                    continue;
                }
                match fs::symlink_metadata(&resolved) {
                    Ok(about) if about.is_symlink() => {
                        if links.len() == MOST_LINKS {
                            return Err(rustix::io::Errno::LOOP.into());
                        }
                        links.push(resolved.clone());
                        let target = fs::read_link(&resolved)?;
                        resolved.pop();
                        left.extend(steps(&target).rev());
                    }
                    Ok(_) => {}
                    Err(error) => match error.kind() {
                        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => absent = 1,
                        _ => return Err(error),
                    },
                }
            }
        }
    }
    // On a disk that does not tell upper from lower case a name has more than one spelling; the system knows the right one.
    #[cfg(not(target_os = "linux"))]
    if absent == 0 {
        resolved = resolved.canonicalize()?;
    }
    Ok((resolved, links))
}
