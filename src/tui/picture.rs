//! Images for a message, from a path or the clipboard.

use std::path::{Path, PathBuf};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{os::file, t};

/// Largest image, in bytes; servers refuse larger ones.
const MOST_BYTES: u64 = 20 << 20;

/// An image that is ready to be sent with a message.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageAttachment {
    pub name: String,
    pub bytes: usize,
    /// The member of the message: `mediaType`, and `data` as Base64.
    pub data: Value,
}

/// The source of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Clipboard,
    /// A pasted path, and the text that stays if it is no image.
    Path(PathBuf, String),
}

/// The path of an image, if a pasted text is nothing else: quoted, escaped or a `file:` URL, as terminals write a file that
/// is dragged onto them.
pub fn dragged(text: &str, home: Option<&Path>) -> Option<PathBuf> {
    let text = text.trim();
    if text.is_empty() || text.len() > 4096 || text.contains('\n') {
        return None;
    }
    let quoted = |mark: char| text.strip_prefix(mark)?.strip_suffix(mark);
    let path = if let Some(path) = quoted('\'').or_else(|| quoted('"')) {
        path.to_owned()
    } else if let Some(address) = text.strip_prefix("file://") {
        let path = address.get(address.find('/')?..)?;
        String::from_utf8(unescaped(path)).ok()?
    } else if text.contains(' ') && !text.contains("\\ ") {
        return None;
    } else {
        text.replace('\\', "")
    };
    let path = match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    };
    let ending = path.extension()?.to_str()?.to_lowercase();
    let is_picture = matches!(ending.as_str(), "png" | "jpg" | "jpeg" | "gif" | "webp");
    (is_picture && (path.is_absolute() || text.contains('/'))).then_some(path)
}

/// Decodes `%20` and the like.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|it| std::str::from_utf8(it).ok())
            .and_then(|it| u8::from_str_radix(it, 16).ok());
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    bytes
}

/// Reads an image file; an error is a sentence for the user.
pub fn read(path: &Path) -> Result<ImageAttachment, String> {
    let bytes = file::read(path, MOST_BYTES).map_err(|it| it.to_string())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    of(&name, &bytes)
}

/// Makes an attachment of the bytes of a PNG, JPEG, GIF or WebP.
pub fn of(name: &str, bytes: &[u8]) -> Result<ImageAttachment, String> {
    let media_type = match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => return Err(t!("news-no-picture-file", name = name)),
    };
    if bytes.len() as u64 > MOST_BYTES {
        return Err(t!("news-picture-too-large", name = name));
    }
    Ok(ImageAttachment {
        name: name.to_owned(),
        bytes: bytes.len(),
        data: json!({ "mediaType": media_type, "data": STANDARD.encode(bytes) }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_terminals_write_for_a_dragged_file_is_a_path() {
        let home = Some(Path::new("/home/me"));
        for (text, path) in [
            ("/tmp/shot.png", Some("/tmp/shot.png")),
            ("'/tmp/my shot.PNG' ", Some("/tmp/my shot.PNG")),
            ("/tmp/my\\ shot.png", Some("/tmp/my shot.png")),
            ("file:///tmp/my%20shot.jpeg", Some("/tmp/my shot.jpeg")),
            ("file://host/tmp/a.gif", Some("/tmp/a.gif")),
            ("~/a.webp", Some("/home/me/a.webp")),
            ("docs/a.png", Some("docs/a.png")),
            ("a.png", None),
            ("see /tmp/shot.png", None),
            ("/tmp/notes.txt", None),
            ("/tmp/a.png\n/tmp/b.png", None),
            ("", None),
        ] {
            assert_eq!(dragged(text, home).as_deref(), path.map(Path::new), "{text}");
        }
    }

    #[test]
    fn a_picture_is_known_by_its_bytes() {
        let png = b"\x89PNG\r\n\x1a\nxx";
        let picture = of("a.png", png).unwrap();
        assert_eq!(
            (picture.bytes, picture.data["mediaType"].as_str()),
            (10, Some("image/png"))
        );
        assert_eq!(
            of("a.png", b"text"),
            Err("a.png is not a PNG, JPEG, GIF or WebP file".into())
        );
    }
}
