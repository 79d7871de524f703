//! Messages of the Language Server Protocol on a pipe: `Content-Length: N`, a blank line, and N bytes of JSON.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

/// A longer message ends the connection.
pub const MESSAGE_BYTES: u64 = 16 << 20;
/// A longer header ends the connection.
const HEADER_BYTES: u64 = 8 << 10;

/// The bytes of a message.
pub fn write(message: &Value) -> Vec<u8> {
    let body = serde_json::to_vec(message).unwrap_or_default();
    let mut bytes = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend(body);
    bytes
}

/// Reads the next message; `None` at the end of the stream. Error: what is read is no message, or too long.
pub async fn read(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Value>> {
    let mut length = None;
    let mut left = HEADER_BYTES;
    loop {
        let mut line = Vec::new();
        let count = (&mut *from).take(left).read_until(b'\n', &mut line).await?;
        left = left.saturating_sub(count as u64);
        if count == 0 && length.is_none() && left == HEADER_BYTES {
            return Ok(None);
        }
        if !line.ends_with(b"\n") {
            return Err(invalid("its message has no end of header"));
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<u64>().ok();
        }
    }
    let length = length.ok_or_else(|| invalid("its message has no Content-Length"))?;
    if length > MESSAGE_BYTES {
        return Err(invalid("its message is longer than 16 MiB"));
    }
    let mut body = vec![0; usize::try_from(length).unwrap_or_default()];
    from.read_exact(&mut body).await?;
    serde_json::from_slice(&body)
        .map(Some)
        .map_err(|_| invalid("its message is no JSON"))
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn read_all(bytes: &[u8]) -> Vec<Result<Value, String>> {
        let mut from = bytes;
        let mut all = Vec::new();
        loop {
            match read(&mut from).await {
                Ok(Some(message)) => all.push(Ok(message)),
                Ok(None) => return all,
                Err(error) => {
                    all.push(Err(error.to_string()));
                    return all;
                }
            }
        }
    }

    #[tokio::test]
    async fn messages_are_read_as_they_are_written_whatever_stands_in_the_header() {
        let mut bytes = write(&json!({ "a": "ä\n" }));
        bytes.extend(b"content-length:2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n{}");
        assert_eq!(read_all(&bytes).await, [Ok(json!({ "a": "ä\n" })), Ok(json!({}))]);
        let end = "its message has no end of header".to_owned();
        for (bytes, why) in [
            (
                &b"Content-Length: 20000000\r\n\r\n"[..],
                "its message is longer than 16 MiB".to_owned(),
            ),
            (b"hello\r\n\r\n", "its message has no Content-Length".to_owned()),
            (b"Content-Length: 1\r\n\r\n{", "its message is no JSON".to_owned()),
            (b"Content-Length: 9\r\n\r\n{", "early eof".to_owned()),
            (b"Content-Length: 1", end.clone()),
            (&[b'x'; 9000], end),
        ] {
            assert_eq!(read_all(bytes).await, [Err(why)]);
        }
    }
}
