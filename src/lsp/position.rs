//! Places in a text: characters as people and models count them, and the units of a language server.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use url::Url;

/// The unit in which a language server counts columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    #[default]
    Utf16,
}

/// A place in a text: line and column in characters, each from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    pub line: u64,
    pub column: u64,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Absolute; it may lie outside of the workspace.
    pub file: PathBuf,
    /// From 1.
    pub line: u64,
}

/// The changes of a file that a server proposes: byte ranges of its text, first to last, and what comes in their place.
pub type Replacements = Vec<(std::ops::Range<usize>, String)>;

/// The number of characters in the first `units` of a row; beyond its end, as many as there are.
pub fn chars(row: &str, units: u64, encoding: Encoding) -> u64 {
    row.get(..offset(row, units, encoding))
        .map_or(0, |it| it.chars().count() as u64)
}

/// The bytes in the first `units` of a row; beyond its end, all.
fn offset(row: &str, units: u64, encoding: Encoding) -> usize {
    let mut left = units;
    for (at, c) in row.char_indices() {
        let size = match encoding {
            Encoding::Utf8 => c.len_utf8(),
            Encoding::Utf16 => c.len_utf16(),
        } as u64;
        if left < size {
            return at;
        }
        left -= size;
    }
    row.len()
}

/// The position that a server knows a place by.
pub fn units(text: &str, spot: Spot, encoding: Encoding) -> Value {
    let line = spot.line.saturating_sub(1);
    let row = usize::try_from(line)
        .ok()
        .and_then(|it| text.lines().nth(it))
        .unwrap_or_default();
    let before = row
        .chars()
        .take(usize::try_from(spot.column.saturating_sub(1)).unwrap_or_default());
    let character: usize = match encoding {
        Encoding::Utf8 => before.map(char::len_utf8).sum(),
        Encoding::Utf16 => before.map(char::len_utf16).sum(),
    };
    json!({ "line": line, "character": character })
}

/// The places in an answer: one location, or a list of locations or links.
pub fn places(answer: &Value) -> Vec<Place> {
    let one = |it: &Value| {
        let uri = it.get("uri").or_else(|| it.get("targetUri"))?;
        let range = it.get("range").or_else(|| it.get("targetSelectionRange"))?;
        Some(Place {
            file: path(uri)?,
            line: range["start"]["line"].as_u64()?.saturating_add(1),
        })
    };
    let mut found: Vec<Place> = match answer {
        Value::Array(all) => all.iter().filter_map(one).collect(),
        it => one(it).into_iter().collect(),
    };
    found.sort();
    found.dedup();
    found
}

/// The files of a `WorkspaceEdit`, each with its edits as they are written. Error: it does more than change texts.
pub fn edited_files(answer: &Value) -> Result<Vec<(PathBuf, Vec<Value>)>, String> {
    let list = |it: &Value| it.as_array().cloned().unwrap_or_default();
    let mut files: Vec<(PathBuf, Vec<Value>)> = Vec::new();
    let mut add = |uri: &Value, edits: Vec<Value>| {
        let file = path(uri).ok_or("it would change what is no file")?;
        match files.iter_mut().find(|it| it.0 == file) {
            Some(same) => same.1.extend(edits),
            None => files.push((file, edits)),
        }
        Ok::<(), String>(())
    };
    for change in answer["documentChanges"].as_array().into_iter().flatten() {
        if change.get("kind").is_some() {
            return Err("it would create, rename or delete files, too".to_owned());
        }
        add(&change["textDocument"]["uri"], list(&change["edits"]))?;
    }
    if answer["documentChanges"].is_null() {
        for (uri, edits) in answer["changes"].as_object().into_iter().flatten() {
            add(&uri.as_str().into(), list(edits))?;
        }
    }
    Ok(files)
}

/// The edits of a file as byte ranges of its text. Error: they do not fit it, or overlap.
pub fn replacements(edits: &[Value], file: &Path, text: &str, encoding: Encoding) -> Result<Replacements, String> {
    let starts: Vec<usize> = std::iter::once(0)
        .chain(text.match_indices('\n').map(|it| it.0 + 1))
        .collect();
    let byte = |it: &Value| {
        let line = usize::try_from(it["line"].as_u64()?).ok()?;
        let start = *starts.get(line)?;
        let row = text.get(start..)?.lines().next().unwrap_or_default();
        Some(start + offset(row, it["character"].as_u64()?, encoding))
    };
    let unfit = || format!("its edits of {} do not fit the text", file.display());
    let mut all = Vec::new();
    for edit in edits {
        let range = byte(&edit["range"]["start"])
            .zip(byte(&edit["range"]["end"]))
            .filter(|(start, end)| start <= end);
        let (start, end) = range.ok_or_else(unfit)?;
        let new = edit["newText"].as_str().ok_or_else(unfit)?;
        all.push((start..end, new.to_owned()));
    }
    all.sort_by_key(|it| (it.0.start, it.0.end));
    all.dedup();
    let overlaps = all.windows(2).any(|it| matches!(it, [a, b] if b.0.start < a.0.end));
    if overlaps { Err(unfit()) } else { Ok(all) }
}

/// The text with its replacements.
pub fn replaced(text: &str, replacements: &Replacements) -> String {
    let mut new = String::with_capacity(text.len());
    let mut kept = 0;
    for (range, with) in replacements {
        new.push_str(text.get(kept..range.start).unwrap_or_default());
        new.push_str(with);
        kept = range.end;
    }
    new.push_str(text.get(kept..).unwrap_or_default());
    new
}

/// Returns true if nothing but `name` is replaced, or nothing at all: with signs around it, as `#name` or `"name"`.
pub fn replaces_only(replacements: &Replacements, text: &str, name: &str) -> bool {
    let is_word = |it: char| it.is_alphanumeric() || it == '_' || it == '$';
    replacements.iter().all(|(range, _)| {
        let old = text.get(range.clone()).unwrap_or_default();
        let old = old.strip_prefix("r#").unwrap_or(old);
        old.is_empty() || old.trim_matches(|it| !is_word(it)) == name
    })
}

/// The address of a file.
pub fn uri(path: &Path) -> String {
    Url::from_file_path(path).map_or_else(|()| format!("file://{}", path.display()), String::from)
}

/// The file of an address; `None`: it is none of a file.
pub fn path(uri: &Value) -> Option<PathBuf> {
    Url::parse(uri.as_str()?).ok()?.to_file_path().ok()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn edit(from: (u64, u64), to: (u64, u64), new: &str) -> Value {
        let at = |it: (u64, u64)| json!({ "line": it.0, "character": it.1 });
        json!({ "range": { "start": at(from), "end": at(to) }, "newText": new })
    }

    #[test]
    fn edits_are_made_at_the_places_that_the_server_counts() {
        let text = "let 😀x = y;\r\nx + x\n";
        let edits = [
            edit((1, 4), (1, 5), "count"),
            edit((0, 6), (0, 7), "count"),
            edit((1, 0), (1, 1), "count"),
        ];
        let found = replacements(&edits, Path::new("/a"), text, Encoding::Utf16).expect("they fit");
        assert_eq!(replaced(text, &found), "let 😀count = y;\r\ncount + count\n");
        let edits = [edit((0, 8), (0, 9), "count")];
        let found = replacements(&edits, Path::new("/a"), text, Encoding::Utf8).expect("they fit");
        assert_eq!(replaced(text, &found), "let 😀count = y;\r\nx + x\n");
        for wrong in [
            vec![edit((9, 0), (9, 1), "x")],
            vec![edit((0, 3), (0, 1), "x")],
            vec![edit((0, 0), (0, 4), "x"), edit((0, 2), (0, 5), "y")],
            vec![json!({ "newText": "x" })],
        ] {
            assert!(
                replacements(&wrong, Path::new("/a"), text, Encoding::Utf8).is_err(),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn a_renaming_replaces_the_name_and_nothing_else() {
        let text = "use r#old; old(#old)\nother";
        let is_fine = |range: std::ops::Range<usize>| replaces_only(&vec![(range, "new".to_owned())], text, "old");
        for (range, is_right) in [
            (11..14, true),
            (4..9, true),
            (15..19, true),
            (11..11, true),
            (10..14, true),
            (10..15, true),
            (21..26, false),
            (11..19, false),
            (11..13, false),
        ] {
            assert_eq!(is_fine(range.clone()), is_right, "{:?}", text.get(range));
        }
    }

    #[test]
    fn places_and_edits_are_read_in_all_their_forms() {
        let range = json!({ "start": { "line": 2, "character": 0 }, "end": { "line": 2, "character": 1 } });
        let place = Place {
            file: "/a b.rs".into(),
            line: 3,
        };
        for answer in [
            json!({ "uri": "file:///a%20b.rs", "range": range }),
            json!([{ "uri": "file:///a%20b.rs", "range": range }, { "uri": "file:///a%20b.rs", "range": range }]),
            json!([{ "targetUri": "file:///a%20b.rs", "targetRange": range, "targetSelectionRange": range }]),
        ] {
            assert_eq!(places(&answer), std::slice::from_ref(&place));
        }
        assert_eq!(places(&Value::Null), []);
        assert_eq!(places(&json!([{ "uri": "jdt://x", "range": range }, 7])), []);
        let one = edit((0, 0), (0, 1), "x");
        for answer in [
            json!({ "changes": { "file:///a": [one] } }),
            json!({ "documentChanges": [{ "textDocument": { "uri": "file:///a", "version": 1 }, "edits": [one] }] }),
        ] {
            assert_eq!(edited_files(&answer), Ok(vec![("/a".into(), vec![one.clone()])]));
        }
        let moved = json!({ "documentChanges": [{ "kind": "rename", "oldUri": "file:///a", "newUri": "file:///b" }] });
        assert!(edited_files(&moved).is_err());
        assert_eq!(edited_files(&Value::Null), Ok(Vec::new()));
    }

    #[test]
    fn a_place_is_told_in_the_units_of_the_server() {
        let spot = Spot { line: 1, column: 7 };
        assert_eq!(
            units("let 😀x = 1", spot, Encoding::Utf16),
            json!({ "line": 0, "character": 7 })
        );
        assert_eq!(
            units("let 😀x = 1", Spot { line: 1, column: 6 }, Encoding::Utf16),
            json!({ "line": 0, "character": 6 })
        );
        assert_eq!(
            units("let 😀x = 1", Spot { line: 1, column: 6 }, Encoding::Utf8),
            json!({ "line": 0, "character": 8 })
        );
    }
}
