//! Problems that compilers, checkers and language servers report.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::position::{Encoding, chars};

/// Characters of a message that are kept.
const MESSAGE_CHARS: usize = 2000;

/// Characters of a code or a source that are kept.
const WORD_CHARS: usize = 80;
/// Problems of one file that are kept, and the bytes that they take: each its message and [`ITEM_BYTES`].
pub const MOST_ITEMS: usize = 1000;
const ITEMS_BYTES: usize = 512 << 10;
const ITEM_BYTES: usize = 128;

/// A problem in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagnostic {
    pub file: PathBuf,
    /// From 1, as the column.
    pub line: u64,
    pub column: u64,
    pub severity: Severity,
    pub message: String,
    /// The program that reports it.
    pub source: String,
    pub code: Option<String>,
}

impl Diagnostic {
    /// For the model, behind the name of the file and a colon.
    pub fn told(&self) -> String {
        let code = self.code.as_ref().map_or_else(String::new, |it| format!("[{it}]"));
        let Self {
            line,
            column,
            severity,
            message,
            source,
            ..
        } = self;
        format!("{line}:{column} {}{code}: {message} ({source})", severity.as_str())
    }
}

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
    Info,
}

impl Severity {
    /// The word for it: `error`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// The problems that are in `after` and not in `before`, on whatever line, whatever lines their messages name.
pub fn added(before: &[Diagnostic], after: Vec<Diagnostic>) -> Vec<Diagnostic> {
    fn same(it: &Diagnostic) -> (Severity, Option<&str>, String) {
        (it.severity, it.code.as_deref(), without_lines(&it.message))
    }
    let mut left: Vec<_> = before.iter().map(same).collect();
    let mut is_new = |it: &Diagnostic| match left.iter().position(|old| *old == same(it)) {
        Some(at) => {
            left.swap_remove(at);
            false
        }
        None => true,
    };
    after.into_iter().filter(|it| is_new(it)).collect()
}

/// The message without the numbers behind `line` or a colon: `from line 5`, `a.py:5:1`.
fn without_lines(message: &str) -> String {
    let mut kept = String::with_capacity(message.len());
    let mut is_left_out = false;
    for it in message.chars() {
        let is_place = || kept.ends_with(':') || kept.ends_with("line ") || kept.ends_with("lines ");
        is_left_out = it.is_ascii_digit() && (is_left_out || is_place());
        if !is_left_out {
            kept.push(it);
        }
    }
    kept
}

/// A problem as a server reports it, with no more of it than is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// From 0, as the character.
    line: u64,
    /// In the units that server and client have agreed on.
    character: u64,
    severity: Severity,
    message: String,
    source: Option<String>,
    code: Option<String>,
}

impl Item {
    /// Reads an item of `publishDiagnostics` or of a pull. `None`: it is not one.
    fn read(item: &Value) -> Option<Self> {
        let start = &item["range"]["start"];
        let message: String = item["message"].as_str()?.chars().take(MESSAGE_CHARS).collect();
        Some(Self {
            line: start["line"].as_u64()?,
            character: start["character"].as_u64().unwrap_or_default(),
            severity: match item["severity"].as_u64() {
                Some(2) => Severity::Warning,
                Some(3 | 4) => Severity::Info,
                _ => Severity::Error,
            },
            message: message.split_whitespace().collect::<Vec<_>>().join(" "),
            source: item["source"].as_str().filter(|it| !it.is_empty()).map(word),
            code: match &item["code"] {
                Value::String(code) if !code.is_empty() => Some(word(code)),
                Value::Number(code) => Some(word(&code.to_string())),
                _ => None,
            },
        })
    }

    /// Reads the problems that TypeScript's own server reports, with lines and columns from 1.
    pub fn read_all_of_tsserver(found: &[Value]) -> Vec<Self> {
        let from_zero = |it: &Value| it.as_u64().map(|it| it.saturating_sub(1));
        let item = |it: &Value| {
            let start = &it["start"];
            let severity = match it["category"].as_str() {
                Some("error") => 1,
                Some("warning") => 2,
                _ => 4,
            };
            json!({
                "range": { "start": { "line": from_zero(&start["line"]), "character": from_zero(&start["offset"]) } },
                "severity": severity,
                "message": it["text"],
                "code": it["code"],
                "source": "typescript",
            })
        };
        let items: Vec<Value> = found.iter().take(MOST_ITEMS).map(item).collect();
        Self::read_all(&items)
    }

    /// Reads a list of them; what is none is left out, and so is what is more than [`MOST_ITEMS`] or [`ITEMS_BYTES`].
    pub fn read_all(items: &[Value]) -> Vec<Self> {
        let mut left = ITEMS_BYTES;
        let read = items.iter().take(MOST_ITEMS).filter_map(Self::read);
        let fits = |it: &Self| {
            let size = it.message.len() + ITEM_BYTES;
            let has_room = size <= left;
            left = left.saturating_sub(size);
            has_room
        };
        read.take_while(fits).collect()
    }
}

/// The problems of a file. `text` is the text of the file, in which columns are counted; `server` is the source of those that
/// name none.
pub fn placed(items: &[Item], file: &Path, text: &str, encoding: Encoding, server: &str) -> Vec<Diagnostic> {
    let rows: Vec<&str> = text.lines().collect();
    let one = |it: &Item| {
        let row = usize::try_from(it.line).ok().and_then(|at| rows.get(at));
        Diagnostic {
            file: file.to_owned(),
            line: it.line.saturating_add(1),
            column: chars(row.copied().unwrap_or_default(), it.character, encoding).saturating_add(1),
            severity: it.severity,
            message: it.message.clone(),
            source: it.source.clone().unwrap_or_else(|| word(server)),
            code: it.code.clone(),
        }
    };
    items.iter().map(one).collect()
}

/// A name, in one short line.
fn word(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|it| !it.is_control()).take(WORD_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn read(item: &Value, file: &Path, text: &str, encoding: Encoding, server: &str) -> Option<Diagnostic> {
        let items = Item::read_all(std::slice::from_ref(item));
        placed(&items, file, text, encoding, server).pop()
    }

    #[test]
    fn no_more_is_kept_than_is_shown_and_fits() {
        let long = "x".repeat(1900);
        let item = |message: &str| json!({ "range": { "start": { "line": 0 } }, "message": message, "data": long });
        let count = |message: &str| Item::read_all(&vec![item(message); 2000]).len();
        assert_eq!(count("short"), MOST_ITEMS);
        assert_eq!(count(&long), ITEMS_BYTES / (1900 + ITEM_BYTES));
    }

    #[test]
    fn what_was_there_before_is_not_new_wherever_it_stands_now() {
        let at = |line: u64, message: &str| Diagnostic {
            file: "a.py".into(),
            line,
            column: 1,
            severity: Severity::Error,
            message: message.to_owned(),
            source: "ruff".to_owned(),
            code: None,
        };
        let before = [at(1, "unused"), at(4, "undefined")];
        let after = vec![
            at(3, "unused"),
            at(6, "undefined"),
            at(9, "undefined"),
            at(12, "too long"),
        ];
        assert_eq!(added(&before, after), [at(9, "undefined"), at(12, "too long")]);
        assert_eq!(added(&before, Vec::new()), []);
    }

    #[test]
    fn a_message_that_names_another_line_now_is_not_new() {
        for (before, after, is_same) in [
            (
                "Redefinition of unused `os` from line 4",
                "Redefinition of unused `os` from line 15",
                true,
            ),
            ("see a.py:4:10", "see a.py:12:9", true),
            ("see lines 4 and 5", "see lines 6 and 5", true),
            ("expected 2 arguments", "expected 3 arguments", false),
            ("no `os` from line 4", "no `re` from line 4", false),
            ("expected #", "expected #1", false),
        ] {
            let of = |message: &str| Diagnostic {
                file: "a.py".into(),
                line: 1,
                column: 1,
                severity: Severity::Error,
                message: message.to_owned(),
                source: "ruff".to_owned(),
                code: None,
            };
            let is_new = !added(&[of(before)], vec![of(after)]).is_empty();
            assert_eq!(is_new, !is_same, "{before}: {after}");
        }
    }

    #[test]
    fn columns_are_characters_whatever_the_server_counts() {
        let text = "first\n'😀ä' + x\n";
        let item = |character: u64| json!({ "range": { "start": { "line": 1, "character": character }, "end": {} }, "message": "no\n  x", "code": 7 });
        let column = |character, encoding| {
            let found = read(&item(character), Path::new("/a.py"), text, encoding, "ty");
            found.map(|it| (it.line, it.column))
        };
        assert_eq!(column(8, Encoding::Utf16), Some((2, 8)));
        assert_eq!(column(11, Encoding::Utf8), Some((2, 8)));
        assert_eq!(column(999, Encoding::Utf8), Some((2, 9)));
        let found = read(&item(0), Path::new("/a.py"), text, Encoding::Utf8, "ty").expect("one");
        assert_eq!(found.told(), "2:1 error[7]: no x (ty)");
        assert_eq!(
            read(&json!({ "message": "x" }), Path::new("/a"), "", Encoding::Utf8, ""),
            None
        );
    }
}
