//! The server's token: the user's own, or one generated once and stored in a file that only the user can read.

use std::path::{Path, PathBuf};

use crate::{
    config::Secret,
    os::file::{self, Access},
};

/// Maximum size of the token file.
const LIMIT_BYTES: u64 = 4 << 10;

/// Number of base64 characters for 128 bits.
const STRONG_CHARS: usize = 22;

/// Reason why no token could be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("the token is empty, or has characters that a header cannot carry\n  use letters and digits")]
    Unfit,
    #[error("{} contains no token\n  delete it, and a new one is generated", .0.display())]
    Empty(PathBuf),
    #[error("{0}")]
    File(#[from] file::Error),
}

/// Returns true if the token can be sent in a header.
fn is_fit(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|it| it.is_ascii_graphic())
}

/// Returns true if the token is hard to guess: required of a server that other machines can reach.
pub fn is_strong(token: &Secret) -> bool {
    let text = token.expose();
    let mut kinds: Vec<u8> = text.bytes().collect();
    kinds.sort_unstable();
    kinds.dedup();
    // Counts distinct characters too: `aaaa…` is long as well.
    text.len() >= STRONG_CHARS && kinds.len() >= STRONG_CHARS / 3
}

/// Checks the user's own token. Error: it is empty or has characters that no header can carry.
pub fn given(token: Secret) -> Result<Secret, TokenError> {
    if is_fit(token.expose()) {
        Ok(token)
    } else {
        Err(TokenError::Unfit)
    }
}

/// Reads the token from the file at `path`, or generates one and stores it there if the file does not exist.
pub fn kept(path: &Path) -> Result<Secret, TokenError> {
    match file::read_private(path, LIMIT_BYTES) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes).trim().to_owned();
            if is_fit(&text) {
                Ok(Secret::new(text))
            } else {
                Err(TokenError::Empty(path.to_owned()))
            }
        }
        Err(error) if error.is_absent() => {
            if let Some(folder) = path.parent() {
                file::private_folder(folder)?;
            }
            let token = fresh();
            file::write(path, format!("{token}\n").as_bytes(), Access::Private)?;
            // If two servers started at once, both use the token that was written last.
            reread(path)
        }
        Err(error) => Err(error.into()),
    }
}

fn reread(path: &Path) -> Result<Secret, TokenError> {
    let bytes = file::read_private(path, LIMIT_BYTES)?;
    Ok(Secret::new(String::from_utf8_lossy(&bytes).trim()))
}

/// Generates a token of 244 random bits: two UUIDs with six fixed bits each.
fn fresh() -> String {
    format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_is_only_ours() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state").join("serve-token");
        let token = kept(&path).unwrap();
        assert!(is_strong(&token) && is_fit(token.expose()));
        assert_eq!(kept(&path).unwrap(), token, "it stays");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
            assert!(matches!(
                kept(&path),
                Err(TokenError::File(file::Error::TooOpen { .. }))
            ));
        }
        std::fs::remove_file(&path).unwrap();
        assert_ne!(kept(&path).unwrap(), token);
    }

    #[test]
    fn an_empty_file_is_no_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("serve-token");
        file::write(&path, b"\n", Access::Private).unwrap();
        assert!(matches!(kept(&path), Err(TokenError::Empty(_))));
    }

    #[test]
    fn what_a_header_cannot_carry_is_no_token() {
        for text in ["", "a b", "a\nb", "grüße"] {
            assert!(given(Secret::new(text)).is_err(), "{text:?}");
        }
        assert!(given(Secret::new("test")).is_ok());
    }

    #[test]
    fn a_strong_token_is_long_and_has_many_characters() {
        for (text, wanted) in [
            ("hunter2", false),
            ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
            ("5f0e8c1d2b3a49788f9e0d1c2b3a4958", true),
            ("Zm9vYmFyYmF6cXV4cXV1eA", true),
        ] {
            assert_eq!(is_strong(&Secret::new(text)), wanted, "{text}");
        }
    }
}
