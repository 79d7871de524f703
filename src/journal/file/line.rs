//! One line of a session file: a JSON object that begins with its version and position and ends with its checksum.
//!
//! `{"v":1,"n":7,…,"crc":123}`: the CRC-32 is that of the bytes before `,"crc":` and the closing brace. So a line is
//! checked as the bytes that stand there and never depends on how somebody else would print the same object.

use std::io::{self, Write};

use serde_json::{Map, Value};

use crate::{
    os::long_text,
    protocol::{Entry, Event, codec::record},
    text::redact::Redactor,
};

/// Value of `v` in a line that every version can read.
pub const VERSION: u64 = 1;
/// And of one without which the rest of the file would be misread: a branch. Who does not know it must not go on.
pub const BRANCHED: u64 = 2;

const SEAL: &[u8] = br#","crc":"#;

/// Bytes of a long text that pass through memory at a time.
const PIECE_BYTES: usize = 64 << 10;

/// A line that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// Torn or changed.
    Damaged,
    /// Whole, but from a version of the program that this one does not know.
    Newer,
}

/// Writes the line for `members` to `out`, its newline included. Members named `v`, `n` or `crc` are left out.
pub fn write(position: u64, members: &Map<String, Value>, out: &mut impl Write) -> io::Result<()> {
    let version = match members.get("event").and_then(Value::as_str) {
        Some("branch") => BRANCHED,
        Some(_) | None => VERSION,
    };
    sealed(version, position, out, |line| {
        for (name, value) in members {
            if matches!(name.as_str(), "v" | "n" | "crc") {
                continue;
            }
            line.write_all(b",")?;
            serde_json::to_writer(&mut *line, name)?;
            line.write_all(b":")?;
            serde_json::to_writer(&mut *line, value)?;
        }
        Ok(())
    })
}

/// Writes the line of an entry that is stored. A text of any length goes through memory in parts.
pub fn write_entry(entry: &Entry, out: &mut impl Write) -> io::Result<()> {
    let version = if matches!(entry.event, Event::Branch(_)) {
        BRANCHED
    } else {
        VERSION
    };
    sealed(version, entry.position.0, out, |line| {
        line.write_all(b",")?;
        record::write_members(entry, line)
    })
}

/// Writes a line around members that `write` adds, each after a comma. Secrets are taken out of them: a conversation is stored
/// for long, and may be shown to others.
fn sealed<W: Write>(
    version: u64,
    position: u64,
    out: &mut W,
    write: impl FnOnce(&mut Line<'_, W>) -> io::Result<()>,
) -> io::Result<()> {
    let mut line = Line {
        out: &mut *out,
        checksum: crc32fast::Hasher::new(),
        redactor: Redactor::default(),
    };
    line.pass(format!(r#"{{"v":{version},"n":{position}"#).as_bytes())?;
    write(&mut line)?;
    let redactor = std::mem::take(&mut line.redactor);
    redactor.finish(|bytes| line.pass(bytes))?;
    let crc = line.checksum.finalize();
    out.write_all(SEAL)?;
    out.write_all(format!("{crc}}}\n").as_bytes())
}

/// A line that is being written.
struct Line<'a, W> {
    out: &'a mut W,
    checksum: crc32fast::Hasher,
    redactor: Redactor,
}

impl<W: Write> Line<'_, W> {
    fn pass(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum.update(bytes);
        self.out.write_all(bytes)
    }
}

impl<W: Write> Write for Line<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = bytes.get(..PIECE_BYTES).unwrap_or(bytes);
        long_text::note_read(bytes.len());
        let Self {
            out,
            checksum,
            redactor,
        } = self;
        redactor.push(bytes, |bytes| {
            checksum.update(bytes);
            out.write_all(bytes)
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Reads a line without its newline: its position and its other members.
///
/// Lines written by hand have no checksum; they are accepted only if `sealed` is false.
pub fn read(line: &[u8], sealed: bool) -> Result<(u64, Map<String, Value>), Bad> {
    let found = seal(line);
    match found {
        Some((body, crc)) if checksum(body) != crc => return Err(Bad::Damaged),
        None if sealed => return Err(Bad::Damaged),
        Some(_) | None => {}
    }
    let Ok(Value::Object(mut members)) = serde_json::from_slice(line) else {
        return Err(Bad::Damaged);
    };
    members.shift_remove("crc");
    let version = members.shift_remove("v").and_then(|it| it.as_u64());
    let position = members.shift_remove("n").and_then(|it| it.as_u64());
    match version {
        Some(VERSION | BRANCHED) => Ok((position.ok_or(Bad::Damaged)?, members)),
        None if !sealed => Ok((position.unwrap_or_default(), members)),
        Some(_) => Err(Bad::Newer),
        None => Err(Bad::Damaged),
    }
}

/// Position, turn and time of a line, from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glance {
    pub position: u64,
    pub turn: u32,
    pub at_ms: u64,
}

/// Reads position, turn and time of a complete line written by [`write`] without reading the rest: a list of sessions
/// needs no more of most lines. `None` if the line must be read.
pub fn glance(line: &[u8]) -> Option<Glance> {
    let (body, _) = seal(line).filter(|(body, crc)| checksum(body) == *crc)?;
    let rest = body.strip_prefix(format!(r#"{{"v":{VERSION},"n":"#).as_bytes())?;
    let (position, rest) = after_number(rest)?;
    let (turn, rest) = after_number(rest.strip_prefix(br#","turn":"#)?)?;
    let (at_ms, _) = after_number(rest.strip_prefix(br#","at":"#)?)?;
    Some(Glance {
        position,
        turn: u32::try_from(turn).ok()?,
        at_ms,
    })
}

/// Returns true if the line has a checksum and is as it was written.
pub fn is_whole(line: &[u8]) -> bool {
    seal(line).is_some_and(|(body, crc)| checksum(body) == crc)
}

fn after_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|it| it.is_ascii_digit()).count();
    let (number, rest) = text.split_at_checked(digits)?;
    Some((std::str::from_utf8(number).ok()?.parse().ok()?, rest))
}

/// The bytes that the checksum covers, and the checksum.
fn seal(line: &[u8]) -> Option<(&[u8], u32)> {
    let open = line.trim_ascii_end().strip_suffix(b"}")?;
    // Ten digits and the member's name.
    let digits = open.iter().rev().take(11).take_while(|it| it.is_ascii_digit()).count();
    let (rest, number) = open.split_at(open.len().checked_sub(digits)?);
    let body = rest.strip_suffix(SEAL)?;
    Some((body, std::str::from_utf8(number).ok()?.parse().ok()?))
}

fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn members(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(members) => members,
            other => Map::from_iter([("it".to_owned(), other)]),
        }
    }

    fn written(position: u64, value: Value) -> Vec<u8> {
        let mut line = Vec::new();
        write(position, &members(value), &mut line).expect("memory takes it");
        assert_eq!(line.pop(), Some(b'\n'));
        line
    }

    #[test]
    fn a_line_is_json_that_says_its_version_and_position_first() {
        let line = written(7, json!({ "event": "done", "data": { "crc": 1 }, "v": 9 }));
        let text = String::from_utf8(line.clone()).expect("JSON is text");
        assert!(
            text.starts_with(r#"{"v":1,"n":7,"event":"done","data":{"crc":1},"crc":"#),
            "{text}"
        );
        assert_eq!(
            read(&line, true),
            Ok((7, members(json!({ "event": "done", "data": { "crc": 1 } }))))
        );
    }

    #[test]
    fn no_single_changed_byte_goes_unseen() {
        let line = written(12, json!({ "event": "content_delta", "text": "grüße\n\u{1b}[0m" }));
        for at in 0..line.len() {
            for flip in [1, 0x20, 0x80, 0xff] {
                let mut changed = line.clone();
                changed[at] ^= flip;
                assert!(read(&changed, true).is_err(), "byte {at} ^ {flip:#x}");
            }
        }
    }

    #[test]
    fn a_cut_line_is_damaged_at_every_byte() {
        let line = written(1, json!({ "a": { "b": "}" } }));
        for at in 0..line.len() {
            assert_eq!(read(&line[..at], true), Err(Bad::Damaged), "{at}");
            assert_eq!(read(&line[..at], false), Err(Bad::Damaged), "{at}");
        }
    }

    #[test]
    fn a_hand_written_line_counts_only_where_it_may() {
        for (line, sealed, is_good) in [
            (r#"{"v":1,"n":3,"a":1}"#, true, false),
            (r#"{"v":1,"n":3,"a":1}"#, false, true),
            (r#"{"a":1}"#, false, true),
            (r#"{"v":2,"n":3,"a":1}"#, false, true),
            (r#"{"v":3,"n":3,"a":1}"#, false, false),
            (r#"{"v":1,"n":3,"a":1,"crc":1}"#, false, false),
            ("[]", false, false),
            ("", false, false),
        ] {
            assert_eq!(read(line.as_bytes(), sealed).is_ok(), is_good, "{line}");
        }
    }

    #[test]
    fn a_branch_has_a_version_of_its_own() {
        let line = written(7, json!({ "event": "branch", "data": { "after": 1 } }));
        assert!(line.starts_with(br#"{"v":2,"n":7,"#));
        assert!(read(&line, true).is_ok());
        assert_eq!(glance(&line), None, "it is read whole");
    }

    #[test]
    fn a_newer_version_is_told_from_damage() {
        let body = br#"{"v":3,"n":1"#;
        let line = format!(r#"{{"v":3,"n":1,"crc":{}}}"#, checksum(body));
        assert_eq!(read(line.as_bytes(), true), Err(Bad::Newer));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn what_is_written_is_read(name in "[^v]{1,8}", text in ".*", number in any::<i64>(), position in any::<u64>()) {
            prop_assume!(name != "n" && name != "crc");
            let value = members(json!({ name: [text, number, null] }));
            let mut line = Vec::new();
            write(position, &value, &mut line).expect("memory takes it");
            prop_assert_eq!(line.split(|&it| it == b'\n').count(), 2);
            line.pop();
            prop_assert_eq!(read(&line, true), Ok((position, value)));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes, true);
            let _ = read(&bytes, false);
        }
    }
}
