//! Keys that the system keeps for the user: the Secret Service of a desktop, the keychain of macOS.
//!
//! It is a feature of the build (`keyring`), because it brings dozens of crates along and is of no use without a desktop.
//! Without it the setting is known, and says what to do.

use std::time::Duration;

/// What entries of ours are filed under.
const SERVICE: &str = "sheaf";

/// Why the keyring gave nothing. No text of it contains a key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("this build knows no keyring\nbuild it with --features keyring, or ask the keyring with key_command")]
    NotBuilt,
    #[error("the keyring has no `{0}` of the service `{SERVICE}`")]
    Absent(String),
    #[error("the keyring did not answer: {0}")]
    Failed(String),
    #[error("the keyring did not answer within {} s", .0.as_secs())]
    Silent(Duration),
}

/// Somebody who keeps keys: asked for a service and a name.
type Ring = fn(&str, &str) -> Result<String, Error>;

/// What the system's keyring has under `name`. It may ask the user for a password first.
pub(super) async fn read(name: &str, limit: Duration) -> Result<String, Error> {
    ask(system, name, limit).await
}

async fn ask(ring: Ring, name: &str, limit: Duration) -> Result<String, Error> {
    let name = name.to_owned();
    // It talks to another program and waits.
    let asked = tokio::task::spawn_blocking(move || ring(SERVICE, &name));
    match tokio::time::timeout(limit, asked).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => Err(Error::Failed(error.to_string())),
        Err(_) => Err(Error::Silent(limit)),
    }
}

#[cfg(feature = "keyring")]
fn system(service: &str, name: &str) -> Result<String, Error> {
    use ::keyring::{Entry, Error as Cause};

    let told = |cause: &Cause| Error::Failed(cause.to_string());
    if let Err(cause) = Entry::store_status() {
        return Err(told(cause));
    }
    match Entry::new(service, name).and_then(|it| it.get_password()) {
        Ok(found) => Ok(found),
        Err(Cause::NoEntry) => Err(Error::Absent(name.to_owned())),
        Err(cause) => Err(told(&cause)),
    }
}

#[cfg(not(feature = "keyring"))]
fn system(_: &str, _: &str) -> Result<String, Error> {
    Err(Error::NotBuilt)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the place of a desktop.
    fn stand_in(service: &str, name: &str) -> Result<String, Error> {
        match (service, name) {
            ("sheaf", "openai") => Ok("sk-from-the-ring".to_owned()),
            ("sheaf", "broken") => panic!("it broke down"),
            ("sheaf", "silent") => {
                std::thread::sleep(Duration::from_secs(2));
                Err(Error::Failed("late".to_owned()))
            }
            _ => Err(Error::Absent(name.to_owned())),
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
        assert!(matches!(error, Error::Failed(_) | Error::Absent(_)), "{error}");
    }
}
