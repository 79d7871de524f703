//! Keys: never shown, never stored, and fetched only when a request needs one.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{Environment, keyring};
use crate::{
    os::{file, process},
    text::redact,
};

/// A secret text. It is printed as `***`, and its memory is overwritten when the last copy is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<SecretBytes>);

#[derive(PartialEq, Eq)]
struct SecretBytes(Vec<u8>);

impl Secret {
    /// Wraps a secret, and registers it so that logs, errors and stored conversations redact it.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        redact::hold(&text);
        Self(Arc::new(SecretBytes(text.into_bytes())))
    }

    /// Returns the text itself, for the code that sends it.
    pub fn expose(&self) -> &str {
        std::str::from_utf8(&self.0.0).expect("it was made from a String and never changed")
    }
}

impl Drop for SecretBytes {
    fn drop(&mut self) {
        self.0.fill(0);
        // Without this the compiler may remove the overwriting.
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

/// Source of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeySource {
    /// No key is sent.
    #[default]
    None,
    /// The key itself.
    Given(Secret),
    /// Names of environment variables; the first one that is set counts.
    Variables(Vec<String>),
    /// Program and arguments; its first line of output is the key.
    Command(Vec<String>),
    /// A file that only its owner can read.
    File(PathBuf),
    /// Name of an entry in the system's keyring.
    Keyring(String),
}

/// Reason why there is no key. No message contains one.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("the environment has no {}", .0.join(" or "))]
    Unset(Vec<String>),
    #[error("the key file was not used")]
    File(#[from] file::Error),
    #[error("{0} is not a key: it is empty, too long or has more than one line")]
    Odd(String),
    #[error("the key command returned no key")]
    Command(#[from] process::Error),
    #[error(transparent)]
    Keyring(#[from] keyring::KeyringError),
}

/// Maximum size of a key, in bytes.
const LIMIT_BYTES: usize = 16 * 1024;

/// Time limit of a key command, which may ask for a fingerprint or a password.
const COMMAND_LIMIT: std::time::Duration = std::time::Duration::from_mins(1);

impl KeySource {
    /// Returns true if requests carry a key.
    pub fn is_some(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Describes where the key comes from, without fetching it; `""` if none is configured.
    pub fn origin(&self, environment: &Environment) -> String {
        match self {
            Self::None => String::new(),
            Self::Given(_) => "settings".to_owned(),
            Self::Variables(names) => match names.iter().find(|it| environment.get(it).is_some()) {
                Some(name) => format!("${name}"),
                None => format!("${} (not set)", names.join(" or $")),
            },
            Self::Command(words) => format!("command {}", words.first().map_or("", String::as_str)),
            Self::File(path) => path.display().to_string(),
            Self::Keyring(name) => format!("keyring {name}"),
        }
    }

    /// Fetches the key; `None` if none is configured. Runs the command or reads the file each time, so callers keep the
    /// result.
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
            Self::Keyring(name) => {
                let found = keyring::read(name, COMMAND_LIMIT).await?;
                one_line(found, || format!("what the keyring has for `{name}`")).map(Some)
            }
        }
    }
}

/// Stores `secret` in the system's keyring as `name`.
pub async fn store_in_keyring(name: &str, secret: &Secret) -> Result<(), keyring::KeyringError> {
    keyring::write(name, secret.expose(), COMMAND_LIMIT).await
}

/// Removes `name` from the system's keyring. Returns false if there was none.
pub async fn forget_in_keyring(name: &str) -> Result<bool, keyring::KeyringError> {
    keyring::remove(name, COMMAND_LIMIT).await
}

impl Secret {
    /// Reads a key as a person gives it: one line, with blanks and a terminal's paste marks around it removed. `source`
    /// names its origin in the error.
    pub fn typed(bytes: &[u8], source: &str) -> Result<Self, KeyError> {
        let text = String::from_utf8_lossy(bytes);
        let text = text.replace("\u{1b}[200~", "").replace("\u{1b}[201~", "");
        one_line(text, || source.to_owned())
    }
}

/// Returns the key in `bytes`. Error: empty, too long, or more than one line. `what` names the source in the error.
fn one_line(bytes: impl Into<Vec<u8>>, what: impl Fn() -> String) -> Result<Secret, KeyError> {
    let Ok(text) = String::from_utf8(bytes.into()) else {
        return Err(KeyError::Odd(what()));
    };
    let text = text.trim();
    let is_odd = text.is_empty() || text.len() > LIMIT_BYTES || text.chars().any(char::is_control);
    if is_odd {
        return Err(KeyError::Odd(what()));
    }
    Ok(Secret::new(text))
}

fn read(path: &Path) -> Result<Secret, KeyError> {
    // Secrets are often mounted as links; the permissions of the target count.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let bytes = file::read_private(&target, LIMIT_BYTES as u64)?;
    one_line(bytes, || path.display().to_string())
}

/// Returns true if others than the owner have any permission on the file at `path`.
#[cfg(unix)]
pub(super) fn is_readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|it| it.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
pub(super) fn is_readable_by_others(_: &Path) -> bool {
    false
}

async fn run(words: &[String]) -> Result<Secret, KeyError> {
    let command = match words {
        [shell, option, line] if shell == "sh" && option == "-c" => process::Command::shell(line),
        [program, arguments @ ..] => process::Command::new(program).args(arguments),
        // Unreachable from settings, which refuse an empty command.
        [] => return Err(KeyError::Odd("an empty key command".to_owned())),
    };
    let output = command.timeout(COMMAND_LIMIT).limit_bytes(LIMIT_BYTES).output().await?;
    // Password stores print notes after the key.
    let start = output.iter().position(|it| !it.is_ascii_whitespace());
    let rest = output.get(start.unwrap_or(output.len())..).unwrap_or_default();
    let first = rest.split(|it| *it == b'\n').next().unwrap_or_default();
    one_line(first, || "what the key command wrote".to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use std::{error::Error, fs::Permissions, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::os::file::{Access, write};

    async fn resolve(source: KeySource) -> Result<Option<String>, String> {
        let environment = Environment::from_iter([("KEY", "from-variable"), ("EMPTY", ""), ("LINES", "a\nb")]);
        let found = source.resolve(&environment).await;
        let found = found.map(|it| it.map(|it| it.expose().to_owned()));
        found.map_err(|error| match error.source() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        })
    }

    #[tokio::test]
    async fn keys_come_from_where_the_settings_say() {
        let text = |it: &str| Ok(Some(it.to_owned()));
        let error = |it: &str| Err(it.to_owned());
        let names = |it: &[&str]| KeySource::Variables(it.iter().map(|it| (*it).to_owned()).collect());
        let line = |it: &str| KeySource::Command(["sh", "-c", it].map(str::to_owned).to_vec());
        let words = |it: &[&str]| KeySource::Command(it.iter().map(|it| (*it).to_owned()).collect());
        let odd = |it: &str| {
            Err(format!(
                "{it} is not a key: it is empty, too long or has more than one line"
            ))
        };
        for (source, expected) in [
            (KeySource::None, Ok(None)),
            (KeySource::Given(Secret::new("given")), text("given")),
            (names(&["KEY"]), text("from-variable")),
            (names(&["EMPTY", "KEY"]), text("from-variable")),
            (names(&["EMPTY", "GONE"]), error("the environment has no EMPTY or GONE")),
            (names(&["LINES"]), odd("$LINES")),
            (line("echo; echo '  key  '; echo more; echo noise >&2"), text("key")),
            (words(&["echo", "a $HOME"]), text("a $HOME")),
            (
                line("echo locked >&2; exit 3"),
                error(
                    "the key command returned no key: the command `echo locked >&2; exit 3` failed (exit status: 3)\nlocked",
                ),
            ),
            (line("true"), odd("what the key command wrote")),
            (line("printf '\\377'"), odd("what the key command wrote")),
            (
                words(&["/nowhere/pass", "show"]),
                error("the key command returned no key: the command `/nowhere/pass` was not found"),
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
        let key = Ok(Some("key".to_owned()));
        let odd = Err(format!(
            "{shown} is not a key: it is empty, too long or has more than one line"
        ));
        let shared = Err(format!(
            "the key file was not used: {shown} can be read by others\nrun `chmod 600 {shown}`"
        ));
        let large = Err(format!(
            "the key file was not used: {shown} is larger than {LIMIT_BYTES} bytes"
        ));
        for (text, mode, expected) in [
            ("key\n", 0o600, &key),
            ("key", 0o400, &key),
            ("key", 0o640, &shared),
            ("key", 0o604, &shared),
            ("", 0o600, &odd),
            ("one\ntwo", 0o600, &odd),
            (&"x".repeat(LIMIT_BYTES + 1), 0o600, &large),
        ] {
            write(&path, text.as_bytes(), Access::Private).expect("written");
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("set");
            assert_eq!(&resolve(KeySource::File(path.clone())).await, expected, "{mode:o}");
        }
        let gone = resolve(KeySource::File(folder.path().join("gone"))).await;
        assert!(gone.is_err_and(|it| it.contains("gone could not be opened")));
        assert!(resolve(KeySource::File(folder.path().to_owned())).await.is_err());
        let link = folder.path().join("link");
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("set");
        write(&path, b"key", Access::Private).expect("written");
        std::os::unix::fs::symlink(&path, &link).expect("linked");
        assert_eq!(resolve(KeySource::File(link)).await, key, "a link to a private file");
    }
}
