//! Keys from the system's keyring: the Secret Service of a desktop, the keychain of macOS.
//!
//! It is an optional feature (`keyring`), because it brings dozens of crates and is useless without a desktop. Without
//! it the setting is still known, and its error says what to do.

use std::time::Duration;

/// Service name of our keyring entries.
const SERVICE: &str = "sheaf";

/// Reason why the keyring gave no key. No message contains one.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    #[error("this build knows no keyring\nbuild it with --features keyring, or ask the keyring with key_command")]
    NotBuilt,
    #[error("the keyring has no `{0}` of the service `{SERVICE}`")]
    Absent(String),
    #[error("the keyring did not answer: {0}")]
    Failed(String),
    #[error("the keyring did not answer within {} s", .0.as_secs())]
    Silent(Duration),
}

/// Looks up the password of a service and a name. Blocks.
type KeyringLookup = fn(&str, &str) -> Result<String, KeyringError>;

/// Reads the key `name` from the system's keyring, within `limit`. The keyring may ask the user for a password first.
pub(super) async fn read(name: &str, limit: Duration) -> Result<String, KeyringError> {
    ask(system, name, limit).await
}

async fn ask(lookup: KeyringLookup, name: &str, limit: Duration) -> Result<String, KeyringError> {
    let name = name.to_owned();
    // It waits for another program.
    let asked = tokio::task::spawn_blocking(move || lookup(SERVICE, &name));
    match tokio::time::timeout(limit, asked).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => Err(KeyringError::Failed(error.to_string())),
        Err(_) => Err(KeyringError::Silent(limit)),
    }
}

#[cfg(feature = "keyring")]
fn system(service: &str, name: &str) -> Result<String, KeyringError> {
    use ::keyring::{Entry, Error as Cause};

    let told = |cause: &Cause| KeyringError::Failed(cause.to_string());
    if let Err(cause) = Entry::store_status() {
        return Err(told(cause));
    }
    match Entry::new(service, name).and_then(|it| it.get_password()) {
        Ok(found) => Ok(found),
        Err(Cause::NoEntry) => Err(KeyringError::Absent(name.to_owned())),
        Err(cause) => Err(told(&cause)),
    }
}

#[cfg(not(feature = "keyring"))]
fn system(_: &str, _: &str) -> Result<String, KeyringError> {
    Err(KeyringError::NotBuilt)
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
            let found = ask(stand_in, name, Duration::from_millis(limit)).await;
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
