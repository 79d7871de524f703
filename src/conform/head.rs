//! The head of an HTTP answer.

use super::{report::Findings, rule};

/// Status and headers, names in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerHead {
    pub status: u16,
    pub headers: Vec<(String, String)>,
}

impl AnswerHead {
    /// Reads a head as `curl -i` writes it. Returns it with the offset of the body; `None` if the bytes begin with
    /// something else.
    pub fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        if !bytes.starts_with(b"HTTP/") {
            return None;
        }
        let mut head = Self::default();
        let mut at = 0;
        for line in bytes.split_inclusive(|it| *it == b'\n') {
            at += line.len();
            let line = String::from_utf8_lossy(line);
            let line = line.trim_end();
            if line.is_empty() {
                // Behind `100 Continue` and redirects comes the head that counts.
                if bytes.get(at..).is_some_and(|it| it.starts_with(b"HTTP/")) {
                    head = Self::default();
                    continue;
                }
                return Some((head, at));
            }
            match line.split_once(':') {
                Some((name, value)) if head.status != 0 => {
                    head.headers
                        .push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
                }
                _ => head.status = line.split(' ').nth(1)?.parse().ok()?,
            }
        }
        Some((head, at))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|it| it.0 == name).map(|it| it.1.as_str())
    }

    /// In lower case, without parameters.
    pub fn media_type(&self) -> String {
        let value = self.header("content-type").unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    pub fn is_stream(&self) -> bool {
        self.media_type() == "text/event-stream"
    }

    /// Checks the head of any answer.
    pub fn judge(&self, found: &mut Findings) {
        let mut say = |rule, said: &str, bytes: &str| found.add(rule, said, None, None, bytes);
        let media = self.header("content-type");
        match self.media_type().as_str() {
            "application/json" | "text/event-stream" => {}
            "" => say(&rule::CONTENT_TYPE, "`Content-Type` is missing", ""),
            other => say(
                &rule::CONTENT_TYPE,
                &format!("it is `{other}`"),
                media.unwrap_or_default(),
            ),
        }
        let charset = media.and_then(|it| it.to_ascii_lowercase().split_once("charset=").map(|it| it.1.to_owned()));
        if let Some(charset) = charset.filter(|it| !matches!(it.trim_matches(['"', ' ']), "utf-8" | "utf8")) {
            say(
                &rule::CHARSET,
                &format!("it says `{charset}`"),
                media.unwrap_or_default(),
            );
        }
        let encoding = self
            .header("content-encoding")
            .filter(|it| !it.eq_ignore_ascii_case("identity"));
        if let Some(encoding) = encoding.filter(|_| self.is_stream()) {
            say(
                &rule::COMPRESSED_STREAM,
                &format!("it is compressed with `{encoding}`"),
                encoding,
            );
        }
        if self.status == 401 && self.header("www-authenticate").is_none() {
            say(&rule::CHALLENGE, "`WWW-Authenticate` is missing", "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_curl_writes_it() {
        let text = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\ndata: x";
        let (head, at) = AnswerHead::read(text).expect("a head");
        assert_eq!((head.status, head.is_stream()), (200, true));
        assert_eq!(&text[at..], b"data: x");
        assert_eq!(AnswerHead::read(b"data: x"), None);
        assert!(AnswerHead::read(b"HTTP/1.1").is_none());
    }
}
