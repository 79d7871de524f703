//! The text of a file: its bytes as lines that end in `\n`, and back.
//!
//! A model never sees how a file marks its start or ends its lines, so an edit must not change either. What [`Text::read`]
//! takes apart [`Text::write`] puts together again, byte for byte where nothing changed. A file that cannot be written
//! back exactly is not read at all.

use similar::DiffOp;

use super::hunks::{compare, lines};

/// The text of a file, and what it takes to write it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Every line end is `\n`; a `\r` that is not part of one stays.
    pub text: String,
    encoding: Encoding,
    ends: Ends,
}

/// The encoding of a file. UTF-16 is known only by its byte order mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Utf8,
    /// With the three bytes in front that some editors write.
    Utf8Marked,
    Utf16Little,
    Utf16Big,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Ends {
    /// `\n`, or no line end at all.
    Newline,
    /// `\r\n`.
    Return,
    /// One of the two for each line end; true for `\r\n`.
    Mixed(Vec<bool>),
}

/// Why a file cannot be edited as text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("it is not text: it contains zero bytes")]
    Binary,
    #[error("line {line} is not UTF-8, so that it could not be written back as it was")]
    Utf8 { line: usize },
    #[error("it is marked as UTF-16 and is not, so that it could not be written back as it was")]
    Utf16,
}

const MARK: &[u8] = b"\xEF\xBB\xBF";
const LITTLE: &[u8] = b"\xFF\xFE";
const BIG: &[u8] = b"\xFE\xFF";

impl Text {
    /// Decodes a file. Fails for binary files, UTF-16, and bytes that are not UTF-8.
    pub fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
        let (encoding, text) = decode(bytes)?;
        if text.contains('\0') {
            return Err(Unreadable::Binary);
        }
        let flags: Vec<bool> = text
            .match_indices('\n')
            .map(|(at, _)| at > 0 && text.as_bytes()[at - 1] == b'\r')
            .collect();
        let returns = flags.iter().filter(|it| **it).count();
        let ends = match returns {
            0 => Ends::Newline,
            count if count == flags.len() => Ends::Return,
            _ => Ends::Mixed(flags),
        };
        let text = match ends {
            Ends::Newline => text,
            Ends::Return | Ends::Mixed(_) => text.replace("\r\n", "\n"),
        };
        Ok(Self { text, encoding, ends })
    }

    /// The bytes of a file that was this one and holds `text` now. Lines that stay keep their ends, new ones get those
    /// that most lines have.
    pub fn write(&self, text: &str) -> Vec<u8> {
        let text = match &self.ends {
            Ends::Newline => text.to_owned(),
            Ends::Return => text.replace('\n', "\r\n"),
            Ends::Mixed(flags) => mixed(&self.text, flags, text),
        };
        encode(&text, self.encoding)
    }
}

/// `new` as the whole new content of a file whose text was `old`: whether the last line has a line end stays as it was.
pub fn settle(old: &str, new: &str) -> String {
    let mut text = new.to_owned();
    match (old.ends_with('\n'), text.ends_with('\n')) {
        _ if old.is_empty() || text.is_empty() => {}
        (true, false) => text.push('\n'),
        (false, true) => {
            text.pop();
        }
        (true, true) | (false, false) => {}
    }
    text
}

/// A text of the model's with every line end as `\n`.
pub fn plain(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// The lines of a text without their ends.
pub fn rows(text: &str) -> Vec<&str> {
    if text.is_empty() {
        return Vec::new();
    }
    text.strip_suffix('\n').unwrap_or(text).split('\n').collect()
}

fn decode(bytes: &[u8]) -> Result<(Encoding, String), Unreadable> {
    let units = |rest: &[u8], unit: fn([u8; 2]) -> u16| {
        let (pairs, odd) = rest.as_chunks::<2>();
        if !odd.is_empty() {
            return Err(Unreadable::Utf16);
        }
        char::decode_utf16(pairs.iter().map(|it| unit(*it)))
            .collect::<Result<String, _>>()
            .map_err(|_| Unreadable::Utf16)
    };
    if let Some(rest) = bytes.strip_prefix(LITTLE) {
        return Ok((Encoding::Utf16Little, units(rest, u16::from_le_bytes)?));
    }
    if let Some(rest) = bytes.strip_prefix(BIG) {
        return Ok((Encoding::Utf16Big, units(rest, u16::from_be_bytes)?));
    }
    let (encoding, rest) = match bytes.strip_prefix(MARK) {
        Some(rest) => (Encoding::Utf8Marked, rest),
        None => (Encoding::Utf8, bytes),
    };
    if rest.contains(&0) {
        return Err(Unreadable::Binary);
    }
    match std::str::from_utf8(rest) {
        Ok(text) => Ok((encoding, text.to_owned())),
        Err(error) => {
            let line = rest[..error.valid_up_to()].split(|it| *it == b'\n').count();
            Err(Unreadable::Utf8 { line })
        }
    }
}

fn encode(text: &str, encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Utf8 => text.as_bytes().to_vec(),
        Encoding::Utf8Marked => [MARK, text.as_bytes()].concat(),
        Encoding::Utf16Little => {
            let units = text.encode_utf16().flat_map(u16::to_le_bytes);
            LITTLE.iter().copied().chain(units).collect()
        }
        Encoding::Utf16Big => {
            let units = text.encode_utf16().flat_map(u16::to_be_bytes);
            BIG.iter().copied().chain(units).collect()
        }
    }
}

/// `new` with the line ends of a text whose lines end differently.
fn mixed(old: &str, flags: &[bool], new: &str) -> String {
    let usual = flags.iter().filter(|it| **it).count() * 2 > flags.len();
    let (old, new) = (lines(old), lines(new));
    let mut text = String::new();
    let mut push = |line: &str, is_return: bool| match line.strip_suffix('\n') {
        Some(line) if is_return => {
            text.push_str(line);
            text.push_str("\r\n");
        }
        Some(_) | None => text.push_str(line),
    };
    for op in compare(&old, &new) {
        match op {
            DiffOp::Equal {
                old_index,
                new_index,
                len,
            } => {
                for it in 0..len {
                    // A last line without an end has no flag, and no end to choose.
                    push(new[new_index + it], flags.get(old_index + it).copied().unwrap_or(usual));
                }
            }
            DiffOp::Delete { .. } => {}
            DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                for it in op.new_range() {
                    push(new[it], usual);
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn utf16(text: &str, mark: &[u8], bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        mark.iter()
            .copied()
            .chain(text.encode_utf16().flat_map(bytes))
            .collect()
    }

    #[test]
    fn what_is_read_is_written_back_as_it_was() {
        let little = utf16("ä\r\n𝄞\r\n", LITTLE, u16::to_le_bytes);
        let big = utf16("ä\n𝄞", BIG, u16::to_be_bytes);
        let cases: &[(&[u8], &str)] = &[
            (b"", ""),
            (b"a\nb\n", "a\nb\n"),
            (b"a\nb", "a\nb"),
            (b"a\r\nb\r\n", "a\nb\n"),
            (b"a\r\nb\nc\r\n", "a\nb\nc\n"),
            (b"\r\r\n\r", "\r\n\r"),
            (b"old\rmac\r", "old\rmac\r"),
            (b"\xEF\xBB\xBFmarked\r\n", "marked\n"),
            (b"\xEF\xBB\xBF", ""),
            (&little, "ä\n𝄞\n"),
            (&big, "ä\n𝄞"),
        ];
        for (bytes, text) in cases {
            let read = Text::read(bytes).expect("a text");
            assert_eq!(read.text, *text);
            assert_eq!(read.write(text), *bytes, "{text:?}");
        }
    }

    #[test]
    fn an_edit_keeps_what_it_does_not_touch() {
        let cases: &[(&[u8], &str, &[u8])] = &[
            (b"a\r\nb\r\n", "a\nnew\nb\n", b"a\r\nnew\r\nb\r\n"),
            (b"\xEF\xBB\xBFa\n", "b\n", b"\xEF\xBB\xBFb\n"),
            // Two of three lines end in CR LF: so does the new one.
            (b"a\r\nb\nc\r\n", "a\nnew\nb\nc\n", b"a\r\nnew\r\nb\nc\r\n"),
            (b"a\nb\r\nc\n", "a\nb\nnew\nc\n", b"a\nb\r\nnew\nc\n"),
            (b"a\r\nb\nc", "a\nc", b"a\r\nc"),
            (b"a\r\nb\nc", "a\nb\nc\n", b"a\r\nb\nc\n"),
        ];
        for (bytes, text, wants) in cases {
            let read = Text::read(bytes).expect("a text");
            assert_eq!(read.write(text), *wants, "{:?}", String::from_utf8_lossy(wants));
        }
        let little = utf16("a\r\n", LITTLE, u16::to_le_bytes);
        let read = Text::read(&little).expect("a text");
        assert_eq!(read.write("a\n𝄞\n"), utf16("a\r\n𝄞\r\n", LITTLE, u16::to_le_bytes));
    }

    #[test]
    fn what_could_not_be_written_back_is_not_read() {
        let cases: &[(&[u8], Unreadable)] = &[
            (b"a\0b", Unreadable::Binary),
            (b"\x89PNG\r\n\x1a\n\0\0", Unreadable::Binary),
            (b"a\nb\xFFc\n", Unreadable::Utf8 { line: 2 }),
            (b"caf\xE9", Unreadable::Utf8 { line: 1 }),
            (b"a\xED\xA0\x80", Unreadable::Utf8 { line: 1 }),
            (b"\xFF\xFEa", Unreadable::Utf16),
            (b"\xFF\xFE\x00\xD8a\x00", Unreadable::Utf16),
            // UTF-32 begins like UTF-16.
            (b"\xFF\xFE\0\0a\0\0\0", Unreadable::Binary),
        ];
        for (bytes, wants) in cases {
            assert_eq!(Text::read(bytes), Err(wants.clone()), "{bytes:?}");
        }
    }

    #[test]
    fn a_new_content_ends_as_the_old_one_did() {
        for (old, new, wants) in [
            ("a\n", "b", "b\n"),
            ("a", "b\n", "b"),
            ("a", "b\n\n", "b\n"),
            ("a", "b", "b"),
            ("a\n", "", ""),
            ("", "b", "b"),
            ("", "b\n", "b\n"),
        ] {
            assert_eq!(settle(old, new), wants, "{old:?} {new:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn any_text_comes_back(marked: bool, text in "([a-c\r\n]|\r\n|ä|𝄞){0,40}") {
            let mut bytes = if marked { MARK.to_vec() } else { Vec::new() };
            bytes.extend(text.as_bytes());
            let read = Text::read(&bytes).expect("a text");
            prop_assert_eq!(read.write(&read.text), bytes);
        }

        #[test]
        fn any_edit_is_what_was_asked_for(old in "([a-c]|\r\n|\n){0,30}", new in "([a-c]|\n){0,30}") {
            let written = Text::read(old.as_bytes()).expect("a text").write(&new);
            let written = String::from_utf8(written).expect("UTF-8");
            prop_assert_eq!(plain(&written), new);
        }

        #[test]
        fn nothing_is_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(read) = Text::read(&bytes) {
                prop_assert_eq!(read.write(&read.text), bytes);
            }
        }
    }
}
