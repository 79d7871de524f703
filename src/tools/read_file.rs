//! `read_file`: lines of a file with their numbers, or an image.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    arguments::{self, truth, whole},
    cursor::{Answer, CursorCall, PATH, text},
    object,
    tool::{Class, Context, Fault, Input, OldForm, Outcome, Tool, names, schema},
    walk::{self, Until},
};
use crate::{
    config,
    models::Image,
    protocol::CallSubject,
    sandbox::{Located, Refused, Seen, Workspace},
};

/// The description that a model is shown.
const ABOUT: &str = "\
    Read a text file, whole or in part, or an image. Each line is shown as `number|line`: the number and the bar \
    are not part of the file. A negative offset counts from the end of the file. Long files are shown in parts, \
    and long lines are cut. Read what you are going to change, and read several files at once where you can.";

/// The tool `read_file`.
pub fn tool() -> Tool {
    Tool {
        aliases: names(["Read", "read"]),
        about: ABOUT.into(),
        schema: schema(
            json!({
                "target_file": { "type": "string" },
                "offset": { "type": "integer", "description": "First line, 1-based; negative counts from the end" },
                "limit": { "type": "integer", "description": "Number of lines" }
            }),
            &["target_file"],
        ),
        synonyms: &[("target_file", arguments::FILE)],
        word: "read".into(),
        subject: CallSubject::Read,
        foreign_names: &["ReadFile"],
        is_basic: true,
        old_form: Some(OldForm::new(fold)),
        cursor: Some(CursorCall {
            subject: Some(("path", PATH)),
            result: printed,
            ..CursorCall::new(
                "readToolCall",
                &[("path", PATH), ("offset", &["offset"]), ("limit", &["limit"])],
            )
        }),
        examples: &[r#"{ "target_file": "a.txt" }"#, r#"{ "path": "../../etc/hostname" }"#],
        ..Tool::new(
            "read_file",
            Class::Reads,
            walk::work("target_file", |context, input, until| {
                let outcome = read(&context.workspace, &context.seen, input, until)?;
                begin_servers(context, input);
                Ok(outcome)
            }),
        )
    }
}

/// `should_read_entire_file, start_line_one_indexed, end_line_one_indexed_inclusive`.
pub fn fold(given: &mut Map<String, Value>) {
    let number = |name: &str| given.get(name).and_then(whole);
    let is_whole = given.get("should_read_entire_file").and_then(truth).unwrap_or_default();
    let has = |name: &str| given.get(name).is_some_and(|it| !it.is_null());
    if is_whole || has("offset") || has("limit") {
        return;
    }
    let first = number("start_line_one_indexed");
    let last = number("end_line_one_indexed_inclusive").filter(|it| *it > 0);
    if let Some(first) = first {
        given.insert("offset".to_owned(), first.into());
    }
    if let Some(last) = last {
        let limit = last.saturating_sub(first.unwrap_or(1).max(1)).saturating_add(1);
        if limit > 0 {
            given.insert("limit".to_owned(), limit.into());
        }
    }
}

/// Files beyond this are not opened: their lines would have to be counted each time.
const HUGE_BYTES: u64 = 10 << 20;
/// The largest image that model servers accept.
const IMAGE_BYTES: u64 = 5 << 20;

/// A file that is read may be changed next: its language servers have read the project by then.
fn begin_servers(context: &Context, input: &Input) {
    if !context.only_reads
        && let Ok(file) = walk::place(&context.workspace, input.text("target_file"))
    {
        context.servers.start(context.around(), &file.path);
    }
}

fn read(workspace: &Workspace, seen: &Seen, input: &Input, until: &Until) -> Result<Outcome, Fault> {
    let written = input.text("target_file").unwrap_or_default();
    if written.trim().is_empty() {
        return Err(Fault::arguments("the argument `target_file` is empty"));
    }
    let file = walk::place(workspace, Some(written))?;
    let bytes = workspace.read(&file, HUGE_BYTES).map_err(|refused| match refused {
        Refused::Missing(_) => {
            let similar = walk::similar(workspace, &file, until);
            let fault = Fault::from(refused);
            if similar.is_empty() {
                fault
            } else {
                fault.hint(format!("Similar files: {}", similar.join(", ")))
            }
        }
        Refused::Directory(_) => Fault::from(refused).hint("List it with `list_dir`."),
        Refused::Huge { .. } => Fault::from(refused).hint("Search in it with `grep`."),
        other => Fault::from(other),
    })?;
    if let Some(media_type) = image(&bytes) {
        return Ok(picture(&file, bytes, media_type));
    }
    let (text, note) = match decode(&bytes) {
        Ok(decoded) => decoded,
        Err(kind) => {
            let size = walk::size(bytes.len() as u64);
            return Ok(sentence(
                format!("`{}` is no text: {kind}, {size}.", file.shown),
                json!({ "content": "", "fileSize": bytes.len() }),
            ));
        }
    };
    if text.is_empty() {
        seen.read(&file, &bytes, 1..=1);
        return Ok(sentence(
            format!("`{}` is an empty file.", file.shown),
            json!({ "content": "", "startLine": 0, "endLine": 0, "totalLines": 0, "fileSize": bytes.len() }),
        ));
    }
    let part = Part::new(&text, input, &until.limits);
    let Some(last) = part.last() else {
        return Ok(sentence(
            format!(
                "`{}` has {} lines, and none from {} on.",
                file.shown, part.total, part.first
            ),
            json!({
                "content": "", "startLine": 0, "endLine": 0, "totalLines": part.total, "fileSize": bytes.len()
            }),
        ));
    };
    seen.read(&file, &bytes, part.first as u64..=last as u64);
    Ok(part.outcome(last, bytes.len(), note))
}

fn sentence(text: String, data: Value) -> Outcome {
    Outcome {
        text,
        data,
        ..Outcome::default()
    }
}

/// Lines of a text that fit.
struct Part<'a> {
    /// From 1.
    first: usize,
    lines: Vec<&'a str>,
    total: usize,
    /// There was no room for all that was asked for.
    is_cut: bool,
    /// Characters of a line.
    most_characters: usize,
}

impl<'a> Part<'a> {
    fn new(text: &'a str, input: &Input, limits: &config::ResultLimits) -> Self {
        let total = text.lines().count();
        let first = match input.integer("offset").unwrap_or(1) {
            offset @ ..0 => total.saturating_sub(usize::try_from(offset.unsigned_abs()).unwrap_or(total)) + 1,
            offset => usize::try_from(offset).unwrap_or(usize::MAX).max(1),
        };
        let asked = input.integer("limit").filter(|it| *it > 0);
        let asked = asked.map_or(usize::MAX, |it| usize::try_from(it).unwrap_or(usize::MAX));
        let most_lines = config::size(limits.read_lines);
        let most_bytes = config::size(limits.read_bytes);
        let most_characters = config::size(limits.line_characters);
        let mut bytes = 0_usize;
        let mut lines = Vec::new();
        for (at, line) in text.lines().skip(first - 1).take(asked.min(most_lines)).enumerate() {
            // As `str::lines` does not see a carriage return that stands alone in front of the end.
            let line = line.strip_suffix('\r').unwrap_or(line);
            bytes += line.len().min(most_characters.saturating_mul(4)) + digits(first + at) + 2;
            if bytes > most_bytes && !lines.is_empty() {
                break;
            }
            lines.push(line);
        }
        let wanted = asked.min((total + 1).saturating_sub(first));
        Self {
            first,
            is_cut: lines.len() < wanted,
            lines,
            total,
            most_characters,
        }
    }

    /// The number of the last line, if there is any.
    fn last(&self) -> Option<usize> {
        (!self.lines.is_empty()).then(|| self.first + self.lines.len() - 1)
    }

    fn outcome(&self, last: usize, size: usize, note: Option<&str>) -> Outcome {
        let mut text = String::new();
        let mut content = String::new();
        let mut has_long = false;
        for (at, line) in self.lines.iter().enumerate() {
            let line = match line.char_indices().nth(self.most_characters) {
                None => (*line).to_owned(),
                Some((end, _)) => {
                    has_long = true;
                    let (shown, rest) = line.split_at(end);
                    format!("{shown}… [{} more characters]", rest.chars().count())
                }
            };
            text.push_str(&format!("{}|{line}\n", self.first + at));
            content.push_str(&line);
            content.push('\n');
        }
        if let Some(note) = note {
            text.push_str(&format!("[{note}]\n"));
        }
        if last < self.total {
            let shown = self.lines.len();
            text.push_str(&format!(
                "[cut: {shown} of {} lines shown; use offset={}]\n",
                self.total,
                last + 1
            ));
        }
        text.pop();
        Outcome {
            text,
            data: json!({
                "content": content,
                "startLine": self.first,
                "endLine": last,
                "totalLines": self.total,
                "fileSize": size,
            }),
            is_truncated: self.is_cut || has_long,
            images: Vec::new(),
        }
    }
}

fn digits(number: usize) -> usize {
    number.checked_ilog10().map_or(1, |it| it as usize + 1)
}

/// The text that bytes are, and what had to be done for it; else what they are instead.
fn decode(bytes: &[u8]) -> Result<(String, Option<&'static str>), &'static str> {
    const UTF_16: &str = "the file is UTF-16; it is shown as text";
    match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => return Ok(lossy(rest)),
        [0xFF, 0xFE, 0, 0, ..] => return Err("UTF-32 text"),
        [0xFF, 0xFE, rest @ ..] => return Ok((utf_16(rest, u16::from_le_bytes), Some(UTF_16))),
        [0xFE, 0xFF, rest @ ..] => return Ok((utf_16(rest, u16::from_be_bytes), Some(UTF_16))),
        _ => {}
    }
    if bytes.iter().take(64 * 1024).any(|it| *it == 0) {
        return Err(kind(bytes));
    }
    if bytes.starts_with(b"%PDF-") {
        return Err(kind(bytes));
    }
    Ok(lossy(bytes))
}

fn lossy(bytes: &[u8]) -> (String, Option<&'static str>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), None),
        Err(_) => (
            String::from_utf8_lossy(bytes).into_owned(),
            Some("some bytes of the file are not UTF-8 and are shown as \u{FFFD}"),
        ),
    }
}

fn utf_16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let (units, rest) = bytes.as_chunks::<2>();
    let text = char::decode_utf16(units.iter().map(|it| unit(*it)));
    let text = text.map(|it| it.unwrap_or(char::REPLACEMENT_CHARACTER));
    text.chain(rest.first().map(|_| char::REPLACEMENT_CHARACTER)).collect()
}

/// Kinds of binary files, by their first bytes.
const KINDS: [(&[u8], &str); 15] = [
    (b"\x7fELF", "an ELF program or library"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\0asm", "a WebAssembly module"),
    (b"\xca\xfe\xba\xbe", "a Java class or Mach-O program"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program"),
    (b"MZ", "a Windows program"),
    (b"!<arch>\n", "a library archive"),
    (b"wOF2", "a font"),
    (b"\0\0\x01\0", "an icon"),
];

fn kind(bytes: &[u8]) -> &'static str {
    let found = KINDS.iter().find(|(start, _)| bytes.starts_with(start));
    found.map_or("binary data", |(_, kind)| kind)
}

/// The media type of an image that models can look at.
fn image(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn picture(file: &Located, bytes: Vec<u8>, media_type: &str) -> Outcome {
    let length = bytes.len() as u64;
    let about = format!("`{}` is an image ({media_type}, {})", file.shown, walk::size(length));
    let data = json!({ "content": "", "mediaType": media_type, "fileSize": length });
    if length > IMAGE_BYTES {
        return sentence(format!("{about}, too big to be looked at."), data);
    }
    Outcome {
        text: format!("{about}."),
        data,
        is_truncated: false,
        images: vec![Image {
            media_type: media_type.to_owned(),
            bytes: Arc::from(bytes),
        }],
    }
}

/// The result in Cursor's shape.
fn printed(answer: &Answer<'_>) -> Value {
    let members = answer.members;
    let content = text(members, "content").or(answer.data.as_str()).unwrap_or_default();
    let lines = content.lines().count();
    let total = members
        .get("totalLines")
        .and_then(Value::as_u64)
        .unwrap_or(lines as u64);
    let mut success = object(json!({
        "content": content,
        "isEmpty": content.is_empty(),
        "exceededLimit": answer.is_truncated,
        "totalLines": total,
        "totalChars": content.chars().count(),
    }));
    if let Some(size) = members.get("fileSize") {
        success.insert("fileSize".to_owned(), size.clone());
    }
    success.insert("path".to_owned(), json!(answer.absolute(answer.arguments.text(PATH))));
    if let (Some(first), Some(last)) = (members.get("startLine"), members.get("endLine")) {
        success.insert("readRange".to_owned(), json!({ "startLine": first, "endLine": last }));
    }
    Value::Object(success)
}

#[cfg(test)]
mod tests {
    use super::{
        super::walk::tests::{Tree, input},
        *,
    };

    fn run(tree: &Tree, given: Value) -> Result<Outcome, String> {
        read(
            &tree.workspace,
            &Seen::default(),
            &input(&tool(), given),
            &Until::done(),
        )
        .map_err(|it| it.text())
    }

    /// The text that the model gets of a file `f` with this content.
    fn text(content: &[u8], mut given: Value) -> String {
        let tree = Tree::new(&[("f", content)]);
        given["target_file"] = json!("f");
        match run(&tree, given) {
            Ok(outcome) => outcome.text,
            Err(fault) => fault,
        }
    }

    #[test]
    fn lines_have_numbers() {
        let five = b"one\ntwo\nthree\nfour\nfive\n";
        let cases: &[(&str, &[u8], Value, &str)] = &[
            (
                "a whole file",
                b"import os\n\nprint(1)\n",
                json!({}),
                "1|import os\n2|\n3|print(1)",
            ),
            ("without a last line break", b"a\nb", json!({}), "1|a\n2|b"),
            ("a blank last line", b"a\n\n", json!({}), "1|a\n2|"),
            ("line breaks of Windows", b"a\r\nb\r\n", json!({}), "1|a\n2|b"),
            (
                "a part",
                five,
                json!({ "offset": 2, "limit": 2 }),
                "2|two\n3|three\n[cut: 2 of 5 lines shown; use offset=4]",
            ),
            ("from a line on", five, json!({ "offset": 4 }), "4|four\n5|five"),
            ("from the end", five, json!({ "offset": -2 }), "4|four\n5|five"),
            (
                "from beyond the start",
                five,
                json!({ "offset": -9, "limit": 1 }),
                "1|one\n[cut: 1 of 5 lines shown; use offset=2]",
            ),
            (
                "line nought is the first",
                five,
                json!({ "offset": 0, "limit": 1 }),
                "1|one\n[cut: 1 of 5 lines shown; use offset=2]",
            ),
            (
                "more than there is",
                five,
                json!({ "offset": 5, "limit": 100 }),
                "5|five",
            ),
            (
                "beyond the end",
                five,
                json!({ "offset": 6 }),
                "`f` has 5 lines, and none from 6 on.",
            ),
            (
                "the most negative",
                five,
                json!({ "offset": i64::MIN, "limit": 1 }),
                "1|one\n[cut: 1 of 5 lines shown; use offset=2]",
            ),
            (
                "the greatest",
                five,
                json!({ "offset": i64::MAX, "limit": i64::MAX }),
                "`f` has 5 lines, and none from 9223372036854775807 on.",
            ),
            (
                "the old form",
                five,
                json!({ "should_read_entire_file": false, "start_line_one_indexed": 2, "end_line_one_indexed_inclusive": 3 }),
                "2|two\n3|three\n[cut: 2 of 5 lines shown; use offset=4]",
            ),
            (
                "the old form, whole",
                b"a\nb\n",
                json!({ "should_read_entire_file": "true", "start_line_one_indexed": 2, "end_line_one_indexed_inclusive": 2 }),
                "1|a\n2|b",
            ),
            ("an empty file", b"", json!({}), "`f` is an empty file."),
            ("a mark in front", b"\xEF\xBB\xBFa\n", json!({}), "1|a"),
            (
                "UTF-16, little end first",
                b"\xFF\xFEa\0\n\0\xDF\0",
                json!({}),
                "1|a\n2|\u{df}\n[the file is UTF-16; it is shown as text]",
            ),
            (
                "UTF-16, big end first",
                b"\xFE\xFF\0a\xD8",
                json!({}),
                "1|a\u{FFFD}\n[the file is UTF-16; it is shown as text]",
            ),
            (
                "an old encoding",
                b"caf\xE9\n",
                json!({}),
                "1|caf\u{FFFD}\n[some bytes of the file are not UTF-8 and are shown as \u{FFFD}]",
            ),
            (
                "a program",
                b"\x7fELF\x02\0\0",
                json!({}),
                "`f` is no text: an ELF program or library, 7 bytes.",
            ),
            (
                "something binary",
                b"ab\0",
                json!({}),
                "`f` is no text: binary data, 3 bytes.",
            ),
        ];
        for (name, content, given, expected) in cases {
            assert_eq!(text(content, given.clone()), *expected, "{name}");
        }
    }

    #[test]
    fn what_is_too_long_is_cut_and_said() {
        let lines: String = (1..=2500).map(|it| format!("line {it}\n")).collect();
        let tree = Tree::new(&[("many", lines.as_bytes()), ("wide", "\u{e9}".repeat(5000).as_bytes())]);
        let many = run(&tree, json!({ "path": "many" })).expect("a text");
        assert!(many.is_truncated);
        assert_eq!(many.text.lines().count(), 2001);
        assert!(
            many.text
                .ends_with("2000|line 2000\n[cut: 2000 of 2500 lines shown; use offset=2001]")
        );
        let rest = run(&tree, json!({ "path": "many", "offset": 2001 })).expect("a text");
        assert!(!rest.is_truncated);
        assert_eq!(
            (rest.text.lines().count(), rest.data["endLine"].clone()),
            (500, json!(2500))
        );
        let wide = run(&tree, json!({ "path": "wide" })).expect("a text");
        assert!(wide.is_truncated);
        assert_eq!(
            wide.text,
            format!("1|{}\u{2026} [3000 more characters]", "\u{e9}".repeat(2000))
        );
        let wide: String = (0..300).map(|_| "x".repeat(1999) + "\n").collect();
        let tree = Tree::new(&[("big", wide.as_bytes())]);
        let big = run(&tree, json!({ "path": "big" })).expect("a text");
        assert!(
            big.is_truncated && big.text.len() <= (256 << 10) + 100,
            "{}",
            big.text.len()
        );
        assert!(big.text.ends_with("of 300 lines shown; use offset=131]"));
    }

    #[test]
    fn the_document_gets_the_lines_and_where_they_stand() {
        let tree = Tree::new(&[("f", b"one\ntwo\nthree\n")]);
        let outcome = run(&tree, json!({ "file_path": "f", "offset": 2, "limit": 1 })).expect("a text");
        assert_eq!(
            outcome.data,
            json!({ "content": "two\n", "startLine": 2, "endLine": 2, "totalLines": 3, "fileSize": 14 })
        );
    }

    #[test]
    fn images_are_given_as_images() {
        let tree = Tree::new(&[
            ("a.png", b"\x89PNG\r\n\x1a\nrest"),
            ("b", b"\xff\xd8\xffrest"),
            ("c.gif", b"GIF89arest"),
            ("d.webp", b"RIFF\0\0\0\0WEBPrest"),
        ]);
        for (file, kind) in [("a.png", "png"), ("b", "jpeg"), ("c.gif", "gif"), ("d.webp", "webp")] {
            let outcome = run(&tree, json!({ "path": file })).expect("an image");
            assert_eq!(outcome.images.len(), 1, "{file}");
            assert_eq!(outcome.images[0].media_type, format!("image/{kind}"));
            assert_eq!(
                outcome.images[0].bytes[..],
                std::fs::read(tree.folder.path().join(file)).expect("a file")[..]
            );
            assert!(
                outcome
                    .text
                    .starts_with(&format!("`{file}` is an image (image/{kind}, ")),
                "{}",
                outcome.text
            );
        }
        let mut big = b"\xff\xd8\xff".to_vec();
        big.resize(6 << 20, 0);
        let tree = Tree::new(&[("big.jpg", &big)]);
        let outcome = run(&tree, json!({ "path": "big.jpg" })).expect("a sentence");
        assert_eq!(
            outcome.text,
            "`big.jpg` is an image (image/jpeg, 6.0 MiB), too big to be looked at."
        );
        assert!(outcome.images.is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_said_with_a_way_out() {
        let tree = Tree::new(&[("src/cart.rs", b"x"), ("src/money.rs", b"x")]);
        for (file, expected) in [
            (
                "lib/cart.rs",
                "Error [FILE_NOT_FOUND]: `lib/cart.rs` does not exist\nSimilar files: src/cart.rs",
            ),
            ("zzzzzzzz", "Error [FILE_NOT_FOUND]: `zzzzzzzz` does not exist"),
            (
                "src",
                "Error [TOOL_FAILED]: `src` is a directory\nList it with `list_dir`.",
            ),
            (
                " ",
                "Error [TOOL_ARGUMENTS_INVALID]: the argument `target_file` is empty",
            ),
        ] {
            assert_eq!(run(&tree, json!({ "target_file": file })), Err(expected.to_owned()));
        }
    }

    /// Files that are no ordinary text. Bytes that are not UTF-8, marks and line ends are in [`lines_have_numbers`].
    #[test]
    fn a_file_that_is_huge_gone_a_link_or_none_is_said_to_be() {
        let tree = Tree::new(&[
            ("real.rs", b"fn a() {}\n"),
            ("almost", b""),
            ("huge", b""),
            ("gone", b"x"),
        ]);
        let path = |name: &str| tree.folder.path().join(name);
        for (name, bytes) in [("almost", HUGE_BYTES), ("huge", HUGE_BYTES + 1)] {
            let file = std::fs::File::options().write(true).open(path(name)).expect("a file");
            file.set_len(bytes).expect("a length");
        }
        let outside = Tree::new(&[("secret", b"x"), (".env", b"x")]);
        for (link, target) in [
            ("link", path("real.rs")),
            ("nowhere", path("absent")),
            ("loop", path("loop")),
            ("folder", outside.folder.path().to_owned()),
            ("env", outside.folder.path().join(".env")),
        ] {
            std::os::unix::fs::symlink(target, path(link)).expect("a link");
        }
        std::fs::remove_file(path("gone")).expect("a file");
        let said = |name: &str| match run(&tree, json!({ "target_file": name })) {
            Ok(outcome) => outcome.text,
            Err(fault) => fault,
        };
        assert_eq!(said("link"), "1|fn a() {}");
        assert_eq!(said("almost"), "`almost` is no text: binary data, 10.0 MiB.");
        for (name, expected) in [
            (
                "huge",
                "Error [TOOL_FAILED]: `huge` is 10485761 bytes, more than can be handled at once",
            ),
            ("gone", "Error [FILE_NOT_FOUND]: `gone` does not exist"),
            ("nowhere", "Error [FILE_NOT_FOUND]: `absent` does not exist"),
            (
                "real.rs/below",
                "Error [FILE_NOT_FOUND]: `real.rs/below` does not exist",
            ),
            ("loop", "Error [TOOL_ARGUMENTS_INVALID]: "),
            ("env", "Error [IGNORED_FILE]: "),
        ] {
            let said = said(name);
            assert!(said.starts_with(expected), "{name}: {said}");
        }
        assert!(
            said("huge").ends_with("\nSearch in it with `grep`."),
            "{}",
            said("huge")
        );
        assert!(
            said("folder").ends_with("List it with `list_dir`."),
            "{}",
            said("folder")
        );
    }

    #[test]
    fn what_was_shown_is_remembered() {
        let tree = Tree::new(&[("f", b"one\ntwo\n"), ("empty", b""), ("blob", b"\0")]);
        let seen = Seen::default();
        for (file, is_seen) in [("f", true), ("empty", true), ("blob", false)] {
            read(
                &tree.workspace,
                &seen,
                &input(&tool(), json!({ "path": file })),
                &Until::done(),
            )
            .expect("an outcome");
            let located = tree.workspace.locate(file).expect("a path");
            let bytes = std::fs::read(tree.folder.path().join(file)).expect("a file");
            assert_eq!(seen.check(&located, &bytes).is_ok(), is_seen, "{file}");
        }
    }
}
