//! A symbol that a model names: by its file, its name, and a line in which the name stands.

use std::{fmt::Write as _, time::Duration};

use serde_json::{Value, json};

use super::{
    arguments,
    tool::{Access, Class, Context, Fault, Input, Outcome, Tool, Work, schema},
    walk,
};
use crate::{
    lsp::{Answer, Place, Question, Spot},
    protocol::CallSubject,
    sandbox::{self, Located},
};

/// Other names of their arguments.
pub const SYNONYMS: &[(&str, &[&str])] = &[
    ("file_path", arguments::FILE),
    ("line", &["line_number", "lineNumber", "start_line"]),
    ("symbol", &["name", "symbol_name", "symbolName", "identifier"]),
];
/// Time that a server has: it may have to read the project first.
pub const LIMIT: Duration = Duration::from_secs(20);
/// Lines around the one that is named in which the symbol is looked for, too.
const NEAR: usize = 20;
/// Bytes of a file.
const FILE_BYTES: u64 = 4 << 20;
/// Places that are shown.
const MOST_SHOWN: usize = 100;
/// Characters of a line that is shown.
const MOST_CHARS: usize = 200;

/// The properties of the schema that say which symbol is meant.
pub fn properties() -> Value {
    json!({
        "file_path": { "type": "string", "description": "A file in which the symbol stands" },
        "line": { "type": "integer", "description": "The line in which it stands, from 1" },
        "symbol": { "type": "string", "description": "Its name, as it stands there" }
    })
}

/// A symbol that was found in its file.
#[derive(Debug)]
pub struct Symbol {
    pub file: Located,
    pub spot: Spot,
    pub name: String,
}

/// The files that the call reads.
fn touches(input: &Input, context: &Context) -> Result<Vec<Access>, Fault> {
    let file = walk::place(&context.workspace, input.text("file_path"))?;
    Ok(vec![Access::Read(file)])
}

/// The symbol that a call names in `file`.
pub fn named(input: &Input, file: Located, context: &Context) -> Result<Symbol, Fault> {
    let name = input.text("symbol").unwrap_or_default().trim();
    if name.is_empty() {
        return Err(Fault::arguments("the argument `symbol` is empty"));
    }
    // Of a path the last name is asked about.
    let name = name.trim_end_matches("()");
    let last = name
        .rsplit(|it: char| !(it.is_alphanumeric() || it == '_' || it == '$'))
        .next();
    let last = last.filter(|it| !it.is_empty()).unwrap_or(name);
    let bytes = context.workspace.read(&file, FILE_BYTES)?;
    let text = String::from_utf8_lossy(&bytes);
    let line = input
        .integer("line")
        .and_then(|it| usize::try_from(it).ok())
        .filter(|it| *it > 0);
    let spot = find(&text, last, line).ok_or_else(|| {
        let place = line.map_or_else(String::new, |it| format!(" near line {it}"));
        Fault::arguments(format!("`{last}` does not stand in `{}`{place}", file.shown))
            .hint("Read the file, and name a line in which the symbol stands.")
    })?;
    Ok(Symbol {
        file,
        spot,
        name: last.to_owned(),
    })
}

/// The first place of the word in the line, or else in the nearest line around it; without a line, in the text.
fn find(text: &str, word: &str, line: Option<usize>) -> Option<Spot> {
    let rows: Vec<&str> = text.lines().collect();
    let column = |row: &str| {
        let is_part = |it: char| it.is_alphanumeric() || it == '_' || it == '$';
        let mut places = row.match_indices(word).filter(|(at, _)| {
            let before = row.get(..*at).and_then(|it| it.chars().next_back());
            let behind = row.get(at + word.len()..).and_then(|it| it.chars().next());
            !before.is_some_and(is_part) && !behind.is_some_and(is_part)
        });
        let at = places.next()?.0;
        Some(row.get(..at)?.chars().count() as u64 + 1)
    };
    let spot = |at: usize| {
        let column = column(rows.get(at)?)?;
        Some(Spot {
            line: at as u64 + 1,
            column,
        })
    };
    let Some(line) = line else {
        return (0..rows.len()).find_map(spot);
    };
    let at = line - 1;
    let nearest = (1..=NEAR)
        .flat_map(|it| [at.checked_sub(it), at.checked_add(it)])
        .flatten();
    std::iter::once(at).chain(nearest).find_map(spot)
}

/// A tool that asks for places of a symbol.
pub fn tool(name: &str, about: &'static str, word: &'static str, question: Question) -> Tool {
    Tool {
        about: about.into(),
        schema: schema(properties(), &["file_path", "symbol"]),
        synonyms: SYNONYMS,
        word: word.into(),
        subject: CallSubject::Symbol,
        runs_code: true,
        examples: &[r#"{ "file_path": "a.py", "line": 3, "symbol": "total" }"#],
        ..Tool::new(
            name,
            Class::Reads,
            Work::call(touches, move |input, context| places(input, context, question.clone())),
        )
    }
}

/// Asks for places of the symbol and tells them.
async fn places(input: Input, context: Context, question: Question) -> Result<Outcome, Fault> {
    let own = (input, context.clone());
    let find = move |_: &_| {
        let file = walk::place(&own.1.workspace, own.0.text("file_path"))?;
        named(&own.0, file, &own.1)
    };
    let symbol = walk::away(&context, find).await?;
    let place = (symbol.file.path.clone(), symbol.spot);
    let asked = context.servers.ask(context.around(), place, question, LIMIT);
    let places = match asked.await.map_err(failed)? {
        Answer::Places(places) => places,
        Answer::Renamed(_) => Vec::new(),
    };
    let shown = context.clone();
    walk::away(&context, move |_| Ok(told(&symbol.name, &places, &shown))).await
}

/// The fault of a server.
pub fn failed(why: String) -> Fault {
    Fault::new("TOOL_FAILED", why).hint("Go on with `grep`.")
}

fn told(name: &str, places: &[Place], context: &Context) -> Outcome {
    let mut text = String::new();
    let mut matches = Vec::new();
    // Places that the server names and that do not exist.
    let mut absent = 0;
    let mut last: Option<(&std::path::Path, Option<String>, String)> = None;
    for place in places.iter().take(MOST_SHOWN) {
        if last.as_ref().is_none_or(|it| it.0 != place.file) {
            let (contents, shown) = contents(place, context);
            last = Some((&place.file, contents, shown));
        }
        let Some((_, contents, shown)) = &last else { continue };
        let line = usize::try_from(place.line.saturating_sub(1)).unwrap_or(usize::MAX);
        let row = match contents {
            Some(text) => match text.lines().nth(line) {
                Some(row) => row,
                None => {
                    absent += 1;
                    continue;
                }
            },
            None => "",
        };
        let row: String = row.trim().chars().take(MOST_CHARS).collect();
        let _ = writeln!(text, "{shown}:{}: {row}", place.line);
        matches.push(json!({ "filePath": shown, "line": place.line, "text": row }));
    }
    match places.len() {
        0 => text = format!("The language server knows no place for `{name}`."),
        count if count > MOST_SHOWN => {
            let _ = writeln!(text, "[cut: {MOST_SHOWN} of {count} shown]");
        }
        _ => {}
    }
    if absent > 0 {
        let _ = writeln!(
            text,
            "[left out: {absent} places in lines that their files do not have]"
        );
    }
    Outcome {
        text: text.trim_end().to_owned(),
        data: json!({ "symbol": name, "places": matches, "count": places.len() }),
        is_truncated: places.len() > MOST_SHOWN,
        images: Vec::new(),
    }
}

/// The text of a file of the workspace that may be read, and the name of any file.
fn contents(place: &Place, context: &Context) -> (Option<String>, String) {
    // A server names what it likes.
    let plain = |name: String| name.replace(|it: char| it.is_control(), "?");
    let Ok(file) = context.workspace.located(&place.file) else {
        return (None, plain(place.file.display().to_string()));
    };
    let is_inside = matches!(file.place, sandbox::Place::Inside | sandbox::Place::Added);
    let bytes = is_inside
        .then(|| context.workspace.read(&file, FILE_BYTES).ok())
        .flatten();
    let text = bytes.map(|it| String::from_utf8_lossy(&it).into_owned());
    (text, plain(file.shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_is_found_in_its_line_or_near_it() {
        let text = "fn total() {}\n\nlet subtotal = 1;\nlet x = total();\n";
        let at = |word: &str, line| find(text, word, line).map(|it| (it.line, it.column));
        assert_eq!(at("total", Some(4)), Some((4, 9)));
        assert_eq!(
            at("total", Some(3)),
            Some((4, 9)),
            "the nearest line, and no part of a name"
        );
        assert_eq!(at("total", None), Some((1, 4)));
        assert_eq!(at("nothing", Some(1)), None);
        assert_eq!(at("total", Some(400)), None);
    }
}
