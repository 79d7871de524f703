//! Texts that are laid over files of the workspace for a command that looks at them: it sees them in the place of what is there, and
//! nothing that it writes stays.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    path::{Path, PathBuf},
};

use crate::os::file::{self, Access};

/// The folders of an overlay, which are removed with it.
#[derive(Debug)]
pub struct Overlay {
    pub(super) folder: PathBuf,
}

impl Overlay {
    /// Makes the folders in `folder`, which does not exist yet, for files below `root` with these texts. Error: no overlay can show
    /// the workspace as it is.
    pub(super) fn new(root: &Path, folder: PathBuf, files: &[(PathBuf, String)]) -> io::Result<Self> {
        // The kernel takes them apart at colons.
        let is_odd = |it: &Path| it.as_os_str().as_bytes().iter().any(|it| b":\\".contains(it));
        if is_odd(root) || is_odd(&folder) || folder.starts_with(root) || has_mounts(root)? {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let overlay = Self { folder };
        for name in ["files", "upper", "work"] {
            file::private_folder(&overlay.folder.join(name)).map_err(io::Error::other)?;
        }
        for (path, text) in files {
            let inner = path.strip_prefix(root).map_err(io::Error::other)?;
            let place = overlay.folder.join("files").join(inner);
            if let Some(above) = place.parent() {
                file::private_folder(above).map_err(io::Error::other)?;
            }
            file::write(&place, text.as_bytes(), Access::Private).map_err(io::Error::other)?;
        }
        Ok(overlay)
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        // The kernel's own part of it may not be read.
        let work = self.folder.join("work/work");
        fs::set_permissions(&work, fs::Permissions::from_mode(0o700)).ok();
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            tracing::warn!(%error, folder = %self.folder.display(), "an overlay is left behind");
        }
    }
}

/// Returns true if other file systems are mounted below a folder: an overlay of it does not show them.
fn has_mounts(root: &Path) -> io::Result<bool> {
    let table = fs::read("/proc/self/mountinfo")?;
    let point = |line: &[u8]| line.split(|it| *it == b' ').nth(4).map(unescaped);
    let mut points = table.split(|it| *it == b'\n').filter_map(point);
    Ok(points.any(|it| {
        let point = Path::new(OsStr::from_bytes(&it));
        point != root && point.starts_with(root)
    }))
}

/// A path of the kernel's tables, in which a blank is `\040`.
fn unescaped(path: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((first, more)) = rest.split_first() {
        let code = more.get(..3).filter(|_| *first == b'\\');
        let code = code.and_then(|it| u8::from_str_radix(std::str::from_utf8(it).ok()?, 8).ok());
        plain.push(code.unwrap_or(*first));
        rest = more.get(if code.is_some() { 3 } else { 0 }..).unwrap_or_default();
    }
    plain
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn an_overlay_holds_the_texts_and_goes_with_its_folders() {
        let top = tempfile::tempdir().unwrap();
        let (root, folder) = (top.path().join("root"), top.path().join("over"));
        let files = [
            (root.join("src/a.rs"), "new".to_owned()),
            (root.join("b.rs"), String::new()),
        ];
        let overlay = Overlay::new(&root, folder.clone(), &files).unwrap();
        assert_eq!(fs::read_to_string(folder.join("files/src/a.rs")).unwrap(), "new");
        assert_eq!(fs::read_to_string(folder.join("files/b.rs")).unwrap(), "");
        drop(overlay);
        assert!(!folder.exists());
        let outside = [(top.path().join("c.rs"), String::new())];
        assert!(Overlay::new(&root, folder.clone(), &outside).is_err());
        assert!(!folder.exists(), "what was begun is removed");
        for (root, folder) in [("/", "/x"), ("/a:b", "/x"), ("/a", "/a/over")] {
            assert!(
                Overlay::new(root.as_ref(), folder.into(), &[]).is_err(),
                "{root} {folder}"
            );
        }
    }

    #[test]
    fn a_blank_in_a_path_of_the_kernels_is_a_blank() {
        for (path, expected) in [("/a\\040b", "/a b"), ("/a\\134\\040", "/a\\ "), ("/a\\9", "/a\\9")] {
            assert_eq!(unescaped(path.as_bytes()), expected.as_bytes(), "{path}");
        }
    }
}
