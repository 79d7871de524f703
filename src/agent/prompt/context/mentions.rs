//! What the user points at in a message: `@path`, `@path:10-20`, `@folder/`, `@rule`, `#7.3`.
//!
//! The message itself stays as it was typed; what it points at goes in front of it. Only what the user can see in the
//! workspace is attached: a text that was pasted may name any file of the machine.

use std::fmt::Write;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::{files::walk_below, layout::Style};
use crate::{
    agent::{
        cut::head,
        prompt::rules::RuleSet,
        tags::{name, wrap_with},
    },
    models::Image,
    protocol::{Address, Message, Turn},
    sandbox::{Located, Place, Refused, SeenFile, Workspace},
    tools::Stop,
    transcript::Transcript,
};

/// All files that come along.
const FILES_BYTES: usize = 64 << 10;
/// All documents that are quoted.
const QUOTES_BYTES: usize = 32 << 10;
/// A larger file is named and not read.
const READ_BYTES: u64 = 8 << 20;
/// A larger picture is left out; so are more of them.
pub const IMAGE_BYTES: u64 = 5 << 20;
const IMAGES: usize = 8;
/// More in one message are left as text.
const MENTIONS: usize = 64;
/// The tree of a folder.
const FOLDER_BYTES: usize = 4 << 10;
/// Files of a folder that are counted.
const FOLDER_FILES: usize = 20_000;
/// A line of a file that is longer is cut: it is data.
const LINE_CHARS: usize = 2_000;
/// Bytes of a file that are searched for signs that it is binary.
const BINARY_BYTES: usize = 8 << 10;

/// Attachments that a message mentions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attachments {
    /// Tags to stand in front of the query. May be empty.
    pub text: String,
    pub images: Vec<Image>,
    /// Warnings about attachments that failed, for the user.
    pub warnings: Vec<String>,
    /// Files and folders that were named, from the root: rules may be for them.
    pub paths: Vec<String>,
    /// The parts of files that are in the text: the model has read them.
    pub read: Vec<(Located, SeenFile)>,
}

/// Lines of a file, counted from 1, the last one included.
type Lines = Option<(usize, usize)>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Mention {
    /// As it was written, the longest reading first: what ends a sentence may end a name too.
    At(String),
    Document(Address),
}

/// Attaches what `text` points at. Reads files: not for the thread that paints.
pub fn resolve(text: &str, workspace: &Workspace, transcript: &Transcript, rules: &mut RuleSet) -> Attachments {
    let mut found = Attachments::default();
    let mut room = Room {
        files: FILES_BYTES,
        quotes: QUOTES_BYTES,
    };
    let mut files = Vec::new();
    let mut others = Vec::new();
    let mut seen = Vec::new();
    for mention in mentions(text).into_iter().take(MENTIONS) {
        match mention {
            Mention::At(written) => match target(&written, workspace, rules) {
                MentionTarget::File(file, lines) => {
                    let key = format!("{}:{lines:?}", file.shown);
                    if !seen.contains(&key) {
                        seen.push(key);
                        files.extend(attach(&file, lines, workspace, &mut room, &mut found));
                    }
                }
                MentionTarget::Rule(text) => {
                    if !others.contains(&text) {
                        others.push(text);
                    }
                }
                MentionTarget::Refused(why) => found.warnings.push(format!("{why}: it is not attached")),
                MentionTarget::Nothing => {}
            },
            Mention::Document(address) => others.extend(quote(address, transcript, &mut room, &mut found)),
        }
    }
    let mut parts = others;
    if !files.is_empty() {
        parts.push(format!("<attached_files>\n{}\n</attached_files>", files.join("\n")));
    }
    found.text = parts.join("\n");
    found
}

struct Room {
    files: usize,
    quotes: usize,
}

/// Everything in a message that looks like a mention, in its order. What stands in a fence is pasted.
fn mentions(text: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut fence = None;
    for line in text.lines() {
        let begin = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|it| begin.starts_with(it));
        match (fence, mark) {
            (None, Some(_)) => {
                fence = mark;
                continue;
            }
            (Some(open), Some(mark)) if open == mark => {
                fence = None;
                continue;
            }
            (Some(_), _) => continue,
            (None, None) => {}
        }
        let mut before = ' ';
        let mut skip = 0;
        for (at, it) in line.char_indices() {
            let begins = before.is_whitespace() || matches!(before, '(' | '[' | '{' | '"' | '\'' | ',' | ';' | '`');
            before = it;
            if at < skip || !begins {
                continue;
            }
            let rest = line.get(at + it.len_utf8()..).unwrap_or_default();
            match it {
                '@' => {
                    let (written, bytes) = written(rest);
                    skip = at + 1 + bytes;
                    if !written.is_empty() {
                        found.push(Mention::At(written));
                    }
                }
                '#' => found.extend(address(rest).map(Mention::Document)),
                _ => {}
            }
            if found.len() >= MENTIONS {
                return found;
            }
        }
    }
    found
}

/// The text after an `@`, and its length: up to the next blank, or in quotes; a blank after a backslash belongs to it.
fn written(rest: &str) -> (String, usize) {
    if let Some(quoted) = rest.strip_prefix('"') {
        return match quoted.split_once('"') {
            Some((inside, after)) => {
                // Lines may follow the quotes.
                let lines = after
                    .find(char::is_whitespace)
                    .map_or(after, |it| after.get(..it).unwrap_or_default());
                let lines = lines.trim_end_matches(|it: char| !it.is_ascii_digit());
                let is_lines = lines.starts_with(':') && split_lines(&format!("x{lines}")).1.is_some();
                let lines = if is_lines { lines } else { "" };
                (format!("{inside}{lines}"), inside.len() + 2 + lines.len())
            }
            None => (String::new(), 1),
        };
    }
    let mut path = String::new();
    let mut is_escaped = false;
    for (at, it) in rest.char_indices() {
        match it {
            '\\' if !is_escaped => is_escaped = true,
            it if it.is_whitespace() && !is_escaped => return (path, at),
            it => {
                if is_escaped && !it.is_whitespace() {
                    path.push('\\');
                }
                is_escaped = false;
                path.push(it);
            }
        }
    }
    (path, rest.len())
}

/// `7.3`, and then neither more of a number nor of a word.
fn address(rest: &str) -> Option<Address> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let turn = rest.get(..digits(rest)).filter(|it| !it.is_empty())?;
    let rest = rest.get(turn.len()..)?.strip_prefix('.')?;
    let number = rest.get(..digits(rest)).filter(|it| !it.is_empty())?;
    let mut after = rest.get(number.len()..)?.chars();
    let next = after.next();
    let is_more = next.is_some_and(|it| it.is_alphanumeric() || it == '_')
        || (next == Some('.') && after.next().is_some_and(|it| it.is_ascii_digit()));
    if is_more {
        return None;
    }
    Some(Address {
        turn: Turn(turn.parse().ok()?),
        number: number.parse().ok()?,
    })
}

/// `path:10-20`, `path:10` and `path#L10-L20`, taken apart; a path without lines is itself.
fn split_lines(written: &str) -> (&str, Lines) {
    let parts = written.rsplit_once(':').or_else(|| written.rsplit_once("#L"));
    let Some((path, lines)) = parts else {
        return (written, None);
    };
    let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
    let number = |text: &str| {
        let text = text.strip_prefix('L').unwrap_or(text);
        let is_number = !text.is_empty() && text.len() < 10 && text.bytes().all(|it| it.is_ascii_digit());
        is_number.then(|| text.parse::<usize>().ok()).flatten()
    };
    match (number(first), number(last)) {
        (Some(first), Some(last)) if !path.is_empty() => (path, Some((first.min(last).max(1), first.max(last).max(1)))),
        _ => (written, None),
    }
}

enum MentionTarget {
    File(Located, Lines),
    Rule(String),
    Refused(String),
    Nothing,
}

/// The target of a name after an `@`: a file before a rule; if need be without the punctuation that ends a sentence.
fn target(written: &str, workspace: &Workspace, rules: &mut RuleSet) -> MentionTarget {
    let mut refused = None;
    let mut rest = written;
    loop {
        // `@.` and `@..` are no mentions of folders, but the ends of sentences.
        if rest.bytes().all(|it| it == b'.') {
            break;
        }
        let (path, lines) = split_lines(rest);
        let readings = if lines.is_some() {
            [Some((rest, None)), Some((path, lines))]
        } else {
            [Some((rest, None)), None]
        };
        for (path, lines) in readings.into_iter().flatten() {
            match workspace.locate(path) {
                Ok(file) if file.path.symlink_metadata().is_err() => {}
                Ok(file) => match file.place {
                    Place::Inside | Place::Added => return MentionTarget::File(file, lines),
                    Place::Hidden => {
                        refused.get_or_insert(Refused::Hidden(file.shown).to_string());
                    }
                    Place::Outside => {
                        refused.get_or_insert(Refused::Outside(file.shown).to_string());
                    }
                },
                Err(_) => {}
            }
        }
        if let Some(text) = rules.manual(rest) {
            return MentionTarget::Rule(text);
        }
        let Some(shorter) = rest.strip_suffix(['.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '`', '>'])
        else {
            break;
        };
        rest = shorter;
    }
    let plain = written.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '"', '\'', '`']);
    match refused {
        Some(why) => MentionTarget::Refused(why),
        // Names of people and of packages begin with an `@` too, and so do resources of servers: `@server:scheme://path`.
        None if plain.contains('/')
            && !plain.contains("://")
            && split_lines(plain)
                .0
                .rsplit('/')
                .next()
                .is_some_and(|it| it.contains('.')) =>
        {
            MentionTarget::Refused(format!("there is no `{}` in the workspace", name(plain)))
        }
        None => MentionTarget::Nothing,
    }
}

/// The pictures that came with a message, as `images: [{mediaType, data}]`, and what is wrong with the others.
///
/// They come as bytes and never as paths: a message may be from another machine, and would read files of this one.
pub fn pictures(message: &Message) -> (Vec<Image>, Vec<String>) {
    let sent = message.extra.get("images").and_then(Value::as_array);
    let mut pictures = Vec::new();
    let mut warnings = Vec::new();
    for (nth, picture) in sent.into_iter().flatten().enumerate() {
        let data = picture.get("data").and_then(Value::as_str).unwrap_or_default();
        let limit = usize::try_from(IMAGE_BYTES).unwrap_or(usize::MAX);
        let why = if pictures.len() == IMAGES {
            "there are too many pictures"
        } else if data.len() / 4 > limit / 3 {
            "it is too large"
        } else {
            let bytes = BASE64_STANDARD.decode(data).unwrap_or_default();
            if let Some(media_type) = media_type(&bytes) {
                pictures.push(Image {
                    media_type: media_type.to_owned(),
                    bytes: bytes.into(),
                });
                continue;
            }
            "it is no PNG, JPEG, GIF or WebP"
        };
        warnings.push(format!("picture {} is left out: {why}", nth + 1));
    }
    (pictures, warnings)
}

/// A picture for [`pictures`]; what is wrong with it otherwise.
pub fn picture(bytes: &[u8]) -> Result<Value, &'static str> {
    if bytes.len() as u64 > IMAGE_BYTES {
        return Err("the picture is too large");
    }
    let media_type = media_type(bytes).ok_or("it is no PNG, JPEG, GIF or WebP")?;
    Ok(json!({ "mediaType": media_type, "data": BASE64_STANDARD.encode(bytes) }))
}

/// A file, a picture or a folder, as a tag; a picture is none.
fn attach(
    file: &Located,
    lines: Lines,
    workspace: &Workspace,
    room: &mut Room,
    found: &mut Attachments,
) -> Option<String> {
    if file.path.is_dir() {
        found.paths.push(format!("{}/", file.shown.trim_end_matches('/')));
        return Some(folder(file, workspace, room));
    }
    let mut cannot = |refused: &Refused| found.warnings.push(format!("{refused}: it is not attached"));
    let bytes = match workspace.read(file, READ_BYTES) {
        Ok(bytes) => bytes,
        Err(refused) => {
            cannot(&refused);
            return None;
        }
    };
    found.paths.push(file.shown.clone());
    if let Some(media_type) = media_type(&bytes) {
        if bytes.len() as u64 > IMAGE_BYTES || found.images.len() == IMAGES {
            let why = if found.images.len() == IMAGES {
                "there are too many pictures"
            } else {
                "the picture is too large"
            };
            found.warnings.push(format!("{}: {why}", name(&file.shown)));
            return None;
        }
        found.images.push(Image {
            media_type: media_type.to_owned(),
            bytes: bytes.into(),
        });
        let number = found.images.len();
        let text = format!("[a picture, number {number} of those that come with this message]");
        return Some(wrap_with("attached_file", &[("path", &file.shown)], &text));
    }
    if bytes.iter().take(BINARY_BYTES).any(|it| *it == 0) {
        let text = format!("[no text: {} bytes]", bytes.len());
        return Some(wrap_with("attached_file", &[("path", &file.shown)], &text));
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let total = text.lines().count();
    let (first, last) = lines.unwrap_or((1, total));
    if first > total {
        found
            .warnings
            .push(format!("{} has only {total} lines", name(&file.shown)));
    }
    let (body, shown) = numbered(text, first, last, room.files);
    room.files = room.files.saturating_sub(body.len());
    let last = last.min(total);
    let mut body = body;
    if first + shown <= last {
        let left = last + 1 - first - shown;
        let _ = writeln!(
            body,
            "[cut: {left} lines are left out; read them with offset={}]",
            first + shown
        );
        found
            .warnings
            .push(format!("{}: {left} of its lines have no room", name(&file.shown)));
    }
    // Of other encodings the model sees something else than what is on the disk.
    if std::str::from_utf8(&bytes).is_ok() && (shown > 0 || total == 0) {
        let lines = first as u64..=(first + shown).saturating_sub(1).max(first) as u64;
        found.read.push((file.clone(), SeenFile::new(&bytes, lines)));
    }
    if total == 0 {
        "[the file is empty]".clone_into(&mut body);
    }
    let total = total.to_string();
    let range = format!("{first}-{last}");
    let mut attributes = vec![("path", file.shown.as_str()), ("total_lines", total.as_str())];
    if lines.is_some() {
        attributes.push(("lines", range.as_str()));
    }
    Some(wrap_with("attached_file", &attributes, &body))
}

/// Lines of a text with their numbers, as far as there is room, and how many.
fn numbered(text: &str, first: usize, last: usize, room: usize) -> (String, usize) {
    let mut body = String::new();
    let mut shown = 0;
    for (at, line) in text
        .lines()
        .enumerate()
        .skip(first - 1)
        .take((last + 1).saturating_sub(first))
    {
        let end = line.char_indices().nth(LINE_CHARS).map_or(line.len(), |it| it.0);
        let cut = if end < line.len() { " [cut]" } else { "" };
        let line = format!("{}|{}{cut}\n", at + 1, line.get(..end).unwrap_or_default());
        if body.len() + line.len() > room {
            break;
        }
        body.push_str(&line);
        shown += 1;
    }
    (body, shown)
}

/// The kind of a picture, by its first bytes; names lie.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// The tree of a folder.
fn folder(folder: &Located, workspace: &Workspace, room: &mut Room) -> String {
    let list = walk_below(workspace, folder, FOLDER_FILES, &Stop::default());
    let prefix = match folder.shown.as_str() {
        "." => String::new(),
        shown => format!("{}/", shown.trim_end_matches('/')),
    };
    let files: Vec<Box<str>> = list
        .files
        .iter()
        .filter_map(|it| it.strip_prefix(&*prefix))
        .map(Into::into)
        .collect();
    let mut tree = super::layout(&files, Style::List, FOLDER_BYTES.min(room.files));
    room.files = room.files.saturating_sub(tree.len());
    if tree.is_empty() {
        "[nothing that may be seen]".clone_into(&mut tree);
    }
    if list.is_partial {
        tree.push_str("[there are more files]\n");
    }
    let path = format!("{}/", folder.shown.trim_end_matches('/'));
    wrap_with("attached_folder", &[("path", &path)], &tree)
}

/// A document of the conversation, as text.
fn quote(address: Address, transcript: &Transcript, room: &mut Room, found: &mut Attachments) -> Option<String> {
    let document = transcript.index_of(address).and_then(|it| transcript.get(it));
    let Some(document) = document else {
        found
            .warnings
            .push(format!("there is no document {address}: it is not quoted"));
        return None;
    };
    let text = document.plain_text();
    let text = match head(&text, room.quotes) {
        None => text,
        Some(begin) => {
            let left = text.len() - begin.len();
            found
                .warnings
                .push(format!("document {address} is long: it is quoted in part"));
            format!("{}\n[cut: {left} bytes are left out]", begin.trim_end())
        }
    };
    room.quotes = room.quotes.saturating_sub(text.len());
    let (address, kind) = (address.to_string(), document.kind.to_string());
    Some(wrap_with(
        "quoted_document",
        &[("address", &address), ("kind", &kind)],
        &text,
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;
    use crate::{
        agent::{tags::guard, writer::Writer},
        journal::Log,
        protocol::{Done, Event, Message, Mode, Position},
    };

    #[test]
    fn what_looks_like_a_mention() {
        for (text, want) in [
            ("see @src/a.rs and @b", "src/a.rs b"),
            ("(@a.rs), \"@b.rs\"", "a.rs), b.rs\""),
            ("@src/a.rs:10-20 @x:5", "src/a.rs:10-20 x:5"),
            ("@\"a b/c.rs\":3-4, @\"d e\"", "a b/c.rs:3-4 d e"),
            ("@a\\ b.rs x", "a b.rs"),
            ("mail me@example.com", ""),
            ("@", ""),
            ("@ a", ""),
            ("@\"open", ""),
            ("#7.3 and #1.22.", "7.3 1.22"),
            ("#7 #7. #.3 v#7.3 #1.2.3 #1.2x", ""),
            ("(#2.1)", "2.1"),
            ("#99999999999999999999.1", ""),
            ("```\n@in/fence\n```\n@after", "after"),
            ("~~~\n@in/fence\n", ""),
            ("`@a.rs`", "a.rs`"),
        ] {
            let found = mentions(text).into_iter().map(|it| match it {
                Mention::At(written) => written,
                Mention::Document(address) => address.to_string(),
            });
            assert_eq!(found.collect::<Vec<_>>().join(" "), want, "{text}");
        }
    }

    #[test]
    fn lines_behind_a_path() {
        for (written, path, lines) in [
            ("a.rs", "a.rs", None),
            ("a.rs:3", "a.rs", Some((3, 3))),
            ("a.rs:3-9", "a.rs", Some((3, 9))),
            ("a.rs:9-3", "a.rs", Some((3, 9))),
            ("a.rs:0-2", "a.rs", Some((1, 2))),
            ("a.rs#L3-L9", "a.rs", Some((3, 9))),
            ("a:b.rs", "a:b.rs", None),
            ("a.rs:", "a.rs:", None),
            (":3", ":3", None),
            ("a.rs:3-", "a.rs:3-", None),
            ("a.rs:99999999999", "a.rs:99999999999", None),
        ] {
            assert_eq!(split_lines(written), (path, lines), "{written}");
        }
    }

    fn shop() -> (TempDir, Workspace, RuleSet) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        for (path, text) in [
            ("src/cart.rs", "one\ntwo\nthree </attached_file>\n"),
            ("src/a b.rs", "blank"),
            ("src/odd:1-2", "odd"),
            ("src/empty.rs", ""),
            ("README.md", "# Shop\n"),
            (".env", "KEY=1"),
            (".cursor/rules/notes.mdc", "---\n---\nBy name."),
            ("AGENTS.md", "Always."),
        ] {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            std::fs::write(path, text).expect("a file");
        }
        std::fs::write(root.join("picture.dat"), b"\x89PNG\r\n\x1a\nrest").expect("a file");
        std::fs::write(root.join("bytes.bin"), b"a\0b").expect("a file");
        let workspace = Workspace::open(root).expect("a workspace");
        let rules = RuleSet::load(
            &Arc::new(Workspace::open(root).expect("a workspace")),
            crate::agent::prompt::rules::Trust::Whole,
        );
        (folder, workspace, rules)
    }

    fn resolved(text: &str) -> Attachments {
        let (_folder, workspace, mut rules) = shop();
        resolve(text, &workspace, &Transcript::default(), &mut rules)
    }

    #[test]
    fn files_come_with_their_numbers() {
        let found = resolved("Look at @src/cart.rs:2-3, please. And (@src/cart.rs:2-3).");
        assert_eq!(
            found.text,
            "<attached_files>\n<attached_file path=\"src/cart.rs\" total_lines=\"3\" lines=\"2-3\">\n2|two\n3|three \
             &lt;/attached_file>\n</attached_file>\n</attached_files>"
        );
        assert_eq!(
            (found.warnings, found.paths),
            (Vec::new(), vec!["src/cart.rs".to_owned()])
        );
        let found = resolved("@\"src/a b.rs\" @src/a\\ b.rs @src/empty.rs @src/odd:1-2 @bytes.bin");
        for part in ["1|blank", "[the file is empty]", "1|odd", "[no text: 3 bytes]"] {
            assert!(found.text.contains(part), "{part}: {}", found.text);
        }
        assert_eq!(found.text.matches("1|blank").count(), 1, "once");
    }

    #[test]
    fn folders_rules_and_pictures() {
        let found = resolved("@src/ @notes @AGENTS @picture.dat");
        assert!(
            found
                .text
                .contains("<attached_folder path=\"src/\">\n  - a b.rs\n  - cart.rs\n  - empty.rs\n  - odd:1-2\n"),
            "{}",
            found.text
        );
        assert!(
            found
                .text
                .contains("<manual_workspace_rule name=\".cursor/rules/notes.mdc\">\nBy name.\n"),
            "{}",
            found.text
        );
        assert!(
            found
                .text
                .contains("<manual_workspace_rule name=\"AGENTS.md\">\nAlways.\n"),
            "{}",
            found.text
        );
        let pictures: Vec<_> = found
            .images
            .iter()
            .map(|it| (it.media_type.as_str(), it.bytes.len()))
            .collect();
        assert_eq!(pictures, [("image/png", 12)]);
        assert_eq!(found.paths, ["src/", "picture.dat"]);
    }

    #[test]
    fn what_cannot_be_attached_is_told() {
        let outside = tempfile::NamedTempFile::new().expect("a file");
        let text = format!(
            "@.env @src/none.rs @{} @kim @angular/core @src/cart.rs:50-60 #4.2",
            outside.path().display()
        );
        let found = resolved(&text);
        let warnings = found.warnings.join("\n");
        for part in [
            "`.env` is hidden by an ignore file or is a secret: it is not attached",
            "there is no `src/none.rs` in the workspace: it is not attached",
            "is outside the workspace: it is not attached",
            "src/cart.rs has only 3 lines",
            "there is no document 4.2: it is not quoted",
        ] {
            assert!(warnings.contains(part), "{part}: {warnings}");
        }
        assert_eq!(found.warnings.len(), 5, "{warnings}");
        assert!(!found.text.contains("KEY"));
    }

    #[test]
    fn a_large_file_is_cut_and_the_rest_is_named() {
        let (folder, workspace, mut rules) = shop();
        let text: String = (1..=9000).map(|it| format!("line {it}\n")).collect();
        std::fs::write(folder.path().join("big.txt"), &text).expect("a file");
        std::fs::write(folder.path().join("wide.txt"), "w".repeat(10_000)).expect("a file");
        let found = resolve(
            "@wide.txt @big.txt @src/cart.rs",
            &workspace,
            &Transcript::default(),
            &mut rules,
        );
        assert!(found.text.len() < FILES_BYTES + 1024, "{}", found.text.len());
        assert!(found.text.contains("w [cut]\n"));
        assert!(
            found.text.contains(" lines are left out; read them with offset="),
            "the big one"
        );
        assert!(
            found.text.contains("<attached_file path=\"src/cart.rs\""),
            "named at least"
        );
        assert!(
            found.warnings.iter().any(|it| it.starts_with("big.txt: ")),
            "{:?}",
            found.warnings
        );
        // What is said to be left out is what is not there.
        let shown = found.text.lines().filter(|it| it.contains("|line ")).count();
        assert!(found.text.contains(&format!(
            "[cut: {} lines are left out; read them with offset={}]",
            9000 - shown,
            shown + 1
        )));
    }

    #[test]
    fn documents_are_quoted() {
        let log = Log::new();
        log.append(0, Event::UserMessage(Message::user("hi")));
        let mut writer = Writer::new(Mode::Agent);
        let mut events = writer.text("Some text.\n\n```rust\nlet </quoted_document> x;\n```\n");
        events.extend(writer.flush());
        events.push(Event::Done(Done::default()));
        for event in events {
            log.append(0, event);
        }
        let mut transcript = Transcript::default();
        transcript.apply_all(&log.after(Position(0)));
        let (_folder, workspace, mut rules) = shop();
        let found = resolve("What is #1.2?", &workspace, &transcript, &mut rules);
        assert_eq!(
            found.text,
            "<quoted_document address=\"1.2\" kind=\"code_block\">\n```rust\nlet &lt;/quoted_document> x;\n```\n</quoted_document>"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_message_is_too_odd(text in "([@#.:/\"\\\\ \n`L-]|src|cart.rs|[0-9]|ü){0,40}") {
            let (_folder, workspace, mut rules) = shop();
            let found = resolve(&text, &workspace, &Transcript::default(), &mut rules);
            // Every tag that is open is closed.
            for tag in ["attached_files", "attached_file", "attached_folder"] {
                let opened = found.text.matches(&format!("<{tag}>")).count() + found.text.matches(&format!("<{tag} ")).count();
                prop_assert_eq!(opened, found.text.matches(&format!("</{tag}>")).count());
            }
            prop_assert!(guard(&text).len() >= text.len());
        }
    }
}
