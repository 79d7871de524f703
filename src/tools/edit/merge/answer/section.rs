//! The parts of a sketch, and what its instructions ask for.

use std::collections::HashSet;

use super::{Section, Solid};
use crate::tools::edit::{
    merge::outline::{ancestors, declared, indent, is_attached, is_word, words},
    sketch::{is_mark, parts},
    text::rows,
};

/// Words of instructions that ask for something to go.
const REMOVALS: [&str; 8] = [
    "remove", "delete", "drop", "strip", "clean", "extract", "move", "rewrite",
];
/// Words that stand in instructions without naming a declaration, unless they are quoted.
const EVERYDAY: [&str; 36] = [
    "a", "add", "all", "and", "call", "change", "check", "code", "create", "data", "end", "file", "first", "get", "it",
    "item", "last", "line", "list", "make", "name", "new", "now", "of", "open", "read", "run", "set", "start", "test",
    "tests", "the", "update", "use", "value", "write",
];
/// Words beside the name in a comment such as `// removed the function foo`.
const FILLERS: [&str; 12] = [
    "the", "function", "method", "class", "struct", "fn", "def", "const", "unused", "old", "helper", "here",
];

/// Returns true if instructions ask for something to go.
pub(super) fn removes(instructions: &str) -> bool {
    let instructions = instructions.to_lowercase();
    words(&instructions).any(|word| REMOVALS.iter().any(|it| is_form(word, it)))
}

/// Returns true for `drop`, `drops`, `dropped` and `dropping`, and the like.
fn is_form(word: &str, verb: &str) -> bool {
    let Some(rest) = word.strip_prefix(verb.trim_end_matches('e')) else {
        return false;
    };
    let rest = rest
        .strip_prefix(['p', 't'])
        .filter(|_| verb.ends_with('p'))
        .unwrap_or(rest);
    matches!(rest, "" | "e" | "s" | "es" | "d" | "ed" | "ing") && (word == verb || !rest.is_empty())
        || verb == "rewrite" && matches!(word, "rewrote" | "rewritten")
}

/// The words of instructions that can be names: those in quotes or before a bracket, and those that are no everyday words.
pub(super) fn names(instructions: &str) -> HashSet<&str> {
    let mut rest = instructions;
    let mut names = HashSet::new();
    for word in words(instructions) {
        // The words of a text follow each other in it.
        let Some((before, after)) = rest.split_once(word) else {
            continue;
        };
        let is_marked = before.ends_with('`') || before.ends_with('.') || after.starts_with(['`', '(']);
        if is_marked || !is_word(word) && !EVERYDAY.contains(&word) {
            names.insert(word);
        }
        rest = after;
    }
    names
}

/// Returns true if a line declares a function, a type or the like of that name: `app.use = function () {` for `use`.
pub(super) fn declares(line: &str, name: &str) -> bool {
    declared(line).is_some_and(|it| it.is_block && last_name(it.name) == name)
}

/// `use` of `app.use`, `Name` of `(t *T) Name`.
pub(super) fn last_name(name: &str) -> &str {
    name.rsplit(['.', ' ']).next().unwrap_or(name)
}

/// The words that a line calls its block: the name of a function or a type, and those of an `impl`.
pub(super) fn block_names(line: &str) -> Vec<&str> {
    if let Some(it) = declared(line) {
        return words(it.name).collect();
    }
    let text = line.trim_start();
    let text = text.strip_prefix("unsafe ").unwrap_or(text);
    let is_impl = text.strip_prefix("impl").filter(|it| it.starts_with([' ', '<']));
    is_impl.map_or_else(Vec::new, |it| words(it).filter(|it| !is_word(it)).collect())
}

/// The text of a line before the first `(`, `=` or `:`.
pub(super) fn leading(line: &str) -> Option<&str> {
    let (before, _) = line.trim().split_once(['(', '=', ':'])?;
    let before = before.trim_end();
    before.contains(|it: char| it.is_alphabetic()).then_some(before)
}

/// The name in a comment such as `// removed foo`, if the file declares it.
fn removed<'a>(line: &'a str, file: &Solid<'_>) -> Option<&'a str> {
    let line = line.trim();
    let text = line.trim_start_matches(['/', '#', '-', '*', ';', '%', '<', '!', ' ']);
    let (verb, rest) = text.split_once([' ', ':'])?;
    let is_comment = text.len() < line.len();
    if !is_comment || !["removed", "deleted", "remove", "delete"].contains(&verb.to_lowercase().as_str()) {
        return None;
    }
    let mut names = words(rest).filter(|it| !FILLERS.contains(&it.to_lowercase().as_str()));
    let name = names.next()?;
    let is_known = |it: &&str| declares(it, name);
    (names.next().is_none() && file.lines.iter().any(is_known)).then_some(name)
}

pub(super) fn sections<'a>(sketch: &'a str, language: &str, file: &Solid<'_>) -> Vec<Section<'a>> {
    let all = rows(sketch);
    let mark = |it: &&str| is_mark(it, language);
    let solid = |it: &&&str| !it.trim().is_empty();
    let mut sections: Vec<Section<'a>> = Vec::new();
    for part in parts(sketch, language).0 {
        let first = part.first - 1;
        let mut from = 0;
        for until in 0..=part.lines.len() {
            let gone = part.lines.get(until).and_then(|it| removed(it, file));
            if gone.is_none() && until < part.lines.len() {
                continue;
            }
            let (mut lines, mut gaps, mut gap) = (Vec::new(), Vec::new(), 0);
            for line in &part.lines[from..until] {
                if line.trim().is_empty() {
                    gap += 1;
                } else {
                    lines.push(*line);
                    gaps.push(std::mem::take(&mut gap));
                }
            }
            let before = all[..first + from].iter().rev().find(solid);
            let after = all[first + until..].iter().find(solid);
            if let Some(head) = lines.first() {
                let depth = lines
                    .iter()
                    .find(|it| !is_attached(it))
                    .map_or(indent(head), |it| indent(it));
                sections.push(Section {
                    is_open: after.is_some_and(|it| indent(it) > depth),
                    is_cut: gap == 0 && after.is_some_and(mark),
                    is_first: before.is_none(),
                    mark: before.filter(|it| mark(it)).map(|it| indent(it)),
                    is_last: !after.is_some_and(mark),
                    depth: indent(head),
                    lines,
                    gaps,
                    removed: None,
                    parents: Vec::new(),
                    number: sections.len(),
                });
            }
            if gone.is_some() {
                sections.push(Section {
                    depth: part.lines.get(until).map_or(0, |it| indent(it)),
                    lines: Vec::new(),
                    gaps: Vec::new(),
                    removed: gone,
                    is_open: false,
                    is_cut: false,
                    is_first: false,
                    mark: before.filter(|it| mark(it)).map(|it| indent(it)),
                    is_last: false,
                    parents: Vec::new(),
                    number: sections.len(),
                });
            }
            from = until + 1;
        }
    }
    // The lines of all parts, to see which stands in which. A mark ends the blocks that it is not indented into.
    let (mut lines, mut owners) = (Vec::new(), Vec::new());
    for (index, section) in sections.iter_mut().enumerate() {
        if let Some(width) = section.mark {
            lines.push(format!("{}}}", " ".repeat(width)));
            owners.push((usize::MAX, 0));
        }
        let above: Vec<&str> = lines.iter().map(String::as_str).collect();
        let above = ancestors(&above, above.len(), section.depth);
        let parents = above.into_iter().map(|it| owners[it]).collect();
        for (line, text) in section.lines.iter().enumerate() {
            lines.push((*text).to_owned());
            owners.push((index, line));
        }
        section.parents = parents;
    }
    sections
}
