//! Keys from the system's keyring: the Secret Service of a desktop, the keychain of macOS.
//!
//! It is an optional feature (`keyring`), because it brings dozens of crates and is useless without a desktop. Without
//! it the setting is still known, and its error says what to do.

use std::time::Duration;

/// True if this build can use the system's keyring.
pub const HAS_KEYRING: bool = cfg!(feature = "keyring");

/// Service name of our keyring entries.
const SERVICE: &str = "sheaf";

/// Reason why the keyring gave no key. No message contains one.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    #[error("this build has no keyring support\nbuild it with --features keyring, or ask the keyring with key_command")]
    NotBuilt,
    #[error("the keyring has no `{0}` of the service `{SERVICE}`")]
    Absent(String),
    #[error("the keyring did not answer: {0}")]
    Failed(String),
    #[error("the keyring did not answer within {} s", .0.as_secs())]
    Silent(Duration),
}

/// Reads the key `name` from the system's keyring, within `limit`. The keyring may ask the user for a password first.
pub(super) async fn read(name: &str, limit: Duration) -> Result<String, KeyringError> {
    let name = name.to_owned();
    ask(move || system::read(SERVICE, &name), limit).await
}

/// Stores `key` as `name`, within `limit`.
pub(super) async fn write(name: &str, key: &str, limit: Duration) -> Result<(), KeyringError> {
    let (name, key) = (name.to_owned(), key.to_owned());
    ask(move || system::write(SERVICE, &name, &key), limit).await
}

/// Removes the key `name`, within `limit`. Returns false if there was none.
pub(super) async fn remove(name: &str, limit: Duration) -> Result<bool, KeyringError> {
    let name = name.to_owned();
    ask(move || system::remove(SERVICE, &name), limit).await
}

/// Runs `work`, which waits for another program, on a thread of its own.
async fn ask<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, KeyringError> + Send + 'static,
    limit: Duration,
) -> Result<T, KeyringError> {
    match tokio::time::timeout(limit, tokio::task::spawn_blocking(work)).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => Err(KeyringError::Failed(error.to_string())),
        Err(_) => Err(KeyringError::Silent(limit)),
    }
}

#[cfg(feature = "keyring")]
mod system {
    use ::keyring::{Entry, Error as Cause};

    use super::KeyringError;

    fn entry(service: &str, name: &str) -> Result<Entry, KeyringError> {
        if let Err(cause) = Entry::store_status() {
            return Err(told(&cause, name));
        }
        Entry::new(service, name).map_err(|it| told(&it, name))
    }

    fn told(cause: &Cause, name: &str) -> KeyringError {
        match cause {
            Cause::NoEntry => KeyringError::Absent(name.to_owned()),
            cause => KeyringError::Failed(cause.to_string()),
        }
    }

    pub fn read(service: &str, name: &str) -> Result<String, KeyringError> {
        entry(service, name)?.get_password().map_err(|it| told(&it, name))
    }

    pub fn write(service: &str, name: &str, key: &str) -> Result<(), KeyringError> {
        entry(service, name)?.set_password(key).map_err(|it| told(&it, name))
    }

    pub fn remove(service: &str, name: &str) -> Result<bool, KeyringError> {
        match entry(service, name)?.delete_credential() {
            Ok(()) => Ok(true),
            Err(Cause::NoEntry) => Ok(false),
            Err(cause) => Err(told(&cause, name)),
        }
    }
}

#[cfg(not(feature = "keyring"))]
mod system {
    use super::KeyringError;

    pub fn read(_: &str, _: &str) -> Result<String, KeyringError> {
        Err(KeyringError::NotBuilt)
    }

    pub fn write(_: &str, _: &str, _: &str) -> Result<(), KeyringError> {
        Err(KeyringError::NotBuilt)
    }

    pub fn remove(_: &str, _: &str) -> Result<bool, KeyringError> {
        Err(KeyringError::NotBuilt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the place of a desktop.
    fn stand_in(service: &str, name: &str) -> Result<String, KeyringError> {
        match (service, name) {
            ("sheaf", "openai") => Ok("sk-from-the-ring".to_owned()),
            ("sheaf", "broken") => panic!("it broke down"),
            ("sheaf", "silent") => {
                std::thread::sleep(Duration::from_secs(2));
                Err(KeyringError::Failed("late".to_owned()))
            }
            _ => Err(KeyringError::Absent(name.to_owned())),
        }
    }

    #[tokio::test]
    async fn an_entry_is_found_by_its_name_and_a_ring_that_fails_says_so() {
        let asked = async |name: &str, limit: u64| {
            let name = name.to_owned();
            let found = ask(move || stand_in(SERVICE, &name), Duration::from_millis(limit)).await;
            found.map_err(|it| it.to_string())
        };
        assert_eq!(asked("openai", 60_000).await, Ok("sk-from-the-ring".to_owned()));
        assert_eq!(
            asked("other", 60_000).await,
            Err("the keyring has no `other` of the service `sheaf`".to_owned())
        );
        assert!(asked("broken", 60_000).await.unwrap_err().contains("did not answer: "));
        assert_eq!(
            asked("silent", 1).await,
            Err("the keyring did not answer within 0 s".to_owned())
        );
    }

    #[cfg(not(feature = "keyring"))]
    #[tokio::test]
    async fn a_build_without_it_says_what_to_do() {
        let error = read("openai", Duration::from_mins(1)).await.unwrap_err().to_string();
        assert!(
            error.contains("--features keyring") && error.contains("key_command"),
            "{error}"
        );
    }

    #[cfg(feature = "keyring")]
    #[tokio::test]
    async fn a_machine_without_a_desktop_is_said_and_not_waited_for() {
        // Wherever there is a desktop, nobody has kept anything under this name.
        let error = read("no such entry of sheaf's tests", Duration::from_mins(1))
            .await
            .unwrap_err();
        assert!(
            matches!(error, KeyringError::Failed(_) | KeyringError::Absent(_)),
            "{error}"
        );
    }
}
