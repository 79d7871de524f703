//! Keys: never shown, never written, and fetched only when a request needs one.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::Environment;

/// A text that no one but its user should see: it shows as `***` and is overwritten when the last copy goes.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<Hidden>);

#[derive(PartialEq, Eq)]
struct Hidden(Vec<u8>);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(Arc::new(Hidden(text.into().into_bytes())))
    }

    /// The text itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        std::str::from_utf8(&self.0.0).expect("it was made from a String and never changed")
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        self.0.fill(0);
        // Without a reader the compiler may leave the zeros out.
        std::hint::black_box(&self.0);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Where a key comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeySource {
    /// None is sent.
    #[default]
    None,
    Given(Secret),
    /// Environment variables, of which the first that is set counts.
    Variables(Vec<String>),
    /// A program and its arguments; its first line of output is the key.
    Command(Vec<String>),
    /// A file that only its owner can read.
    File(PathBuf),
}

/// Why there is no key. No text of it contains one.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("the environment has no {}", .0.join(" or "))]
    Unset(Vec<String>),
    #[error("the key file {} cannot be read", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("the key file {path} can be read by others\n  chmod 600 {path}", path = .0.display())]
    Shared(PathBuf),
    #[error("{0} is not a key: it is empty, too long or has more than one line")]
    Odd(String),
    #[error("the key command `{command}` did not run")]
    NotRun { command: String, source: io::Error },
    #[error("the key command `{command}` failed: {reason}")]
    Failed { command: String, reason: String },
}

/// A key is a line; what is longer is a wrong file.
const LIMIT_BYTES: usize = 16 * 1024;

/// A key command may ask for a finger or a password.
const COMMAND_LIMIT: std::time::Duration = std::time::Duration::from_mins(1);

impl KeySource {
    /// Whether a request would carry a key.
    pub fn is_some(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// The key. Runs the key command or reads the file each time: callers keep what they get.
    pub async fn resolve(&self, environment: &Environment) -> Result<Option<Secret>, KeyError> {
        match self {
            Self::None => Ok(None),
            Self::Given(secret) => Ok(Some(secret.clone())),
            Self::Variables(names) => match names.iter().find_map(|it| Some((it, environment.get(it)?))) {
                Some((name, value)) => one_line(value, || format!("${name}")).map(Some),
                None => Err(KeyError::Unset(names.clone())),
            },
            Self::File(path) => read(path).map(Some),
            Self::Command(words) => run(words).await.map(Some),
        }
    }
}

/// The key in `text`: one line that can stand in a header.
fn one_line(text: &str, what: impl Fn() -> String) -> Result<Secret, KeyError> {
    let text = text.trim();
    let is_odd = text.is_empty() || text.len() > LIMIT_BYTES || text.chars().any(char::is_control);
    if is_odd {
        return Err(KeyError::Odd(what()));
    }
    Ok(Secret::new(text))
}

fn read(path: &Path) -> Result<Secret, KeyError> {
    use std::io::Read;

    let unreadable = |source| KeyError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let file = open(path).map_err(unreadable)?;
    // Asked of the open file, so that it cannot be another one by now.
    let facts = file.metadata().map_err(unreadable)?;
    if !facts.is_file() {
        return Err(KeyError::Odd(path.display().to_string()));
    }
    if is_shared(&facts) {
        return Err(KeyError::Shared(path.to_owned()));
    }
    let mut text = String::new();
    let mut limited = file.take(LIMIT_BYTES as u64 + 2);
    limited.read_to_string(&mut text).map_err(unreadable)?;
    one_line(&text, || path.display().to_string())
}

/// Opens without waiting: a named pipe in the place of a file must not stop us.
#[cfg(unix)]
pub(super) fn open(path: &Path) -> io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(path)
}

#[cfg(not(unix))]
pub(super) fn open(path: &Path) -> io::Result<std::fs::File> {
    std::fs::File::open(path)
}

/// Whether others than the owner may read a file.
#[cfg(unix)]
pub(super) fn is_shared(facts: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    facts.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
pub(super) fn is_shared(_: &std::fs::Metadata) -> bool {
    false
}

/// A command as the user wrote it.
pub(super) fn spoken(words: &[String]) -> String {
    match words {
        [shell, option, line] if shell == "sh" && option == "-c" => line.clone(),
        words => words.join(" "),
    }
}

async fn run(words: &[String]) -> Result<Secret, KeyError> {
    let command = spoken(words);
    let failed = |reason: String| KeyError::Failed {
        command: command.clone(),
        reason,
    };
    let Some((program, arguments)) = words.split_first() else {
        return Err(failed("it is empty".to_owned()));
    };
    let mut child = tokio::process::Command::new(program);
    child
        .args(arguments)
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(COMMAND_LIMIT, child.output())
        .await
        .map_err(|_| failed(format!("no answer within {} s", COMMAND_LIMIT.as_secs())))?
        .map_err(|source| KeyError::NotRun {
            command: command.clone(),
            source,
        })?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    let text = String::from_utf8(output.stdout).map_err(|_| failed("its output is not text".to_owned()))?;
    let first = text.lines().find(|it| !it.trim().is_empty()).unwrap_or_default();
    one_line(first, || format!("the output of `{command}`"))
}

#[cfg(all(test, unix))]
mod tests {
    use std::{fs::Permissions, os::unix::fs::PermissionsExt};

    use super::*;

    async fn resolve(source: KeySource) -> Result<Option<String>, String> {
        let environment = Environment::from_iter([("KEY", "from-variable"), ("EMPTY", ""), ("LINES", "a\nb")]);
        let found = source.resolve(&environment).await;
        found
            .map(|it| it.map(|it| it.expose().to_owned()))
            .map_err(|it| it.to_string())
    }

    #[tokio::test]
    async fn keys_come_from_where_the_settings_say() {
        let text = |it: &str| Ok(Some(it.to_owned()));
        let names = |it: &[&str]| KeySource::Variables(it.iter().map(|it| (*it).to_owned()).collect());
        let line = |it: &str| KeySource::Command(["sh", "-c", it].map(str::to_owned).to_vec());
        for (source, expected) in [
            (KeySource::None, Ok(None)),
            (KeySource::Given(Secret::new("given")), text("given")),
            (names(&["KEY"]), text("from-variable")),
            (names(&["EMPTY", "KEY"]), text("from-variable")),
            (
                names(&["EMPTY", "GONE"]),
                Err("the environment has no EMPTY or GONE".to_owned()),
            ),
            (
                names(&["LINES"]),
                Err("$LINES is not a key: it is empty, too long or has more than one line".to_owned()),
            ),
            (line("echo; echo '  key  '; echo more; echo noise >&2"), text("key")),
            (
                line("exit 3"),
                Err("the key command `exit 3` failed: exit status: 3".to_owned()),
            ),
            (
                line("true"),
                Err("the output of `true` is not a key: it is empty, too long or has more than one line".to_owned()),
            ),
            (
                KeySource::Command(vec!["/nowhere/pass".to_owned(), "show".to_owned()]),
                Err("the key command `/nowhere/pass show` did not run".to_owned()),
            ),
        ] {
            assert_eq!(resolve(source.clone()).await, expected, "{source:?}");
        }
    }

    #[tokio::test]
    async fn a_key_file_is_read_only_when_no_one_else_can() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        let shown = path.display();
        let odd = format!("{shown} is not a key: it is empty, too long or has more than one line");
        for (text, mode, expected) in [
            ("key\n", 0o600, Ok(Some("key".to_owned()))),
            ("key", 0o400, Ok(Some("key".to_owned()))),
            (
                "key",
                0o640,
                Err(format!(
                    "the key file {shown} can be read by others\n  chmod 600 {shown}"
                )),
            ),
            (
                "key",
                0o604,
                Err(format!(
                    "the key file {shown} can be read by others\n  chmod 600 {shown}"
                )),
            ),
            ("", 0o600, Err(odd.clone())),
            ("one\ntwo", 0o600, Err(odd.clone())),
            (&"x".repeat(LIMIT_BYTES + 1), 0o600, Err(odd)),
        ] {
            let _ = std::fs::remove_file(&path);
            std::fs::write(&path, text).expect("written");
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("set");
            assert_eq!(resolve(KeySource::File(path.clone())).await, expected, "{mode:o}");
        }
        let gone = resolve(KeySource::File(folder.path().join("gone"))).await;
        assert!(gone.is_err_and(|it| it.ends_with("gone cannot be read")));
        assert!(resolve(KeySource::File(folder.path().to_owned())).await.is_err());
    }
}
