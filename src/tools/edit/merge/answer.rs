//! The whole file that a model wrote after a sketch, read as a merge: where did it put each part, and is that the place?
//!
//! A model is asked where the lines alone do not say enough. It is not believed: its answer only chooses a place for each
//! part. The answer must be the old file, line by line and in order, but for these places, and there it must be the part,
//! line by line. What a place loses must lie between lines of the part that stay, as in the tiers; or it is the old form
//! of what the part declares; or the instructions name it. Where another place fits as well, something must tell them
//! apart: the other parts, the blocks that the sketch shows, or a name in the instructions. The text that is returned is
//! made of the old file and the sketch; of the answer come only indentation and blank lines at the edges of a part.
//!
//! Blank lines and blanks at the ends of lines are no differences.

use std::collections::{BTreeMap, HashMap, HashSet};

use similar::DiffOp;

use super::{
    FITTING_MARGIN, GUARD_LINES, MOST_RIVALS, MOST_STEPS,
    outline::{
        Declared, ancestors, attribute, blanks, block_end, declared, indent, is_attached, is_comment, is_continuation,
        is_import, is_opening, is_word, key, words,
    },
    shown,
};
use crate::tools::edit::{
    hunks::compare,
    sketch::{is_mark, parts},
    text::{rows, settle},
};

/// Blank lines that an answer may put around a part.
const MOST_BLANK: usize = 2;
/// Steps of reading an answer.
const MOST_READINGS: usize = 200_000;
/// Steps that looking at one place counts for.
const EFFECT_STEPS: usize = 50;
/// Parts that a sketch may have.
const MOST_PARTS: usize = 500;
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

/// Why an answer is not taken as a merge. Line numbers count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    #[error("it lacks the line `{line}` of the sketch, or not all lines of that part follow each other")]
    Lacking { line: String },
    #[error("it has the line `{line}`, which is neither in the file at that place nor in the sketch")]
    Invented { line: String },
    #[error("it lacks line {at} of the file, `{line}`, which the sketch does not replace")]
    Dropped { line: String, at: usize },
    #[error("it indents `{line}` differently from the file and the sketch")]
    Indent { line: String },
    #[error(
        "it would lose more than {GUARD_LINES} lines from line {at} on, which neither sketch nor instructions name"
    )]
    Wide { at: usize },
    #[error("it keeps the old form of `{name}` beside the new one")]
    Doubled { name: String },
    #[error("the sketch has no unchanged line that says where `{line}` belongs")]
    Unplaced { line: String },
    #[error("it puts `{line}` at line {place}, and line {rival} fits better")]
    Elsewhere { line: String, place: usize, rival: usize },
    #[error("`{line}` fits at line {place} and at line {rival}, and nothing says which is meant")]
    Doubtful { line: String, place: usize, rival: usize },
    #[error("the lines around the changes of the sketch occur too often in the file")]
    Everywhere,
}

/// Lines that are not blank, without the blanks at their ends, and their row in the text.
struct Solid<'a> {
    lines: Vec<&'a str>,
    rows: Vec<usize>,
}

impl<'a> Solid<'a> {
    fn new(text: &'a str) -> Self {
        let solid = rows(text).into_iter().enumerate();
        let solid = solid
            .map(|(row, it)| (it.trim_end(), row))
            .filter(|it| !it.0.is_empty());
        let (lines, rows) = solid.unzip();
        Self { lines, rows }
    }

    /// Blank lines between a line and the one before it; none at the ends of the text.
    fn gap(&self, at: usize) -> usize {
        match (at.checked_sub(1), self.rows.get(at)) {
            (Some(before), Some(row)) => row - self.rows[before] - 1,
            (_, None) | (None, Some(_)) => 0,
        }
    }
}

/// A part of the sketch, without blank lines.
struct Section<'a> {
    lines: Vec<&'a str>,
    /// Blank lines in front of each line.
    gaps: Vec<usize>,
    /// The indentation of its first line.
    depth: usize,
    /// The name of what a comment in place of a part says is removed; then there are no lines.
    removed: Option<&'a str>,
    /// A mark goes on inside the block that the part begins.
    is_open: bool,
    /// A mark follows without a blank line.
    is_cut: bool,
    /// The indentation of the mark in front of it.
    mark: Option<usize>,
    /// No mark is in front of it, or behind it.
    is_first: bool,
    is_last: bool,
    /// Lines of other parts that it stands in, by the sketch's indentation: part and line.
    parents: Vec<(usize, usize)>,
    /// Its number in the sketch.
    number: usize,
}

impl Section<'_> {
    /// Returns true for a line whose indentation says nothing: the first one of a sketch often loses it.
    fn is_shortened(&self, line: usize) -> bool {
        line == 0 && self.number == 0 && indent(self.lines[0]) == 0 && self.lines.len() > 1
    }
}

/// What a part does at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// Nothing: it only says where others belong.
    Kept,
    /// Lines of it are lines of the place: the first of these is line `line` of the part and `skipped` of the place. With
    /// `is_tail` the last lines are the same, too. With `is_renewed` a declaration above has changed.
    Anchored {
        line: usize,
        skipped: usize,
        is_tail: bool,
        is_renewed: bool,
    },
    /// It declares anew what the place declares.
    Declared,
    /// It is new. A statement `ends` the block of a part that it stands in.
    Inserted { ends: bool },
    /// A comment said that the place is gone.
    Removed,
}

/// The place of a part: lines `from..until` of the file became the lines from `at` of the answer.
#[derive(Clone, Copy, Debug)]
struct Place {
    from: usize,
    until: usize,
    at: usize,
    effect: Effect,
}

/// Another place for a part.
struct Rival {
    from: usize,
    until: usize,
    is_better: bool,
}

/// Reads `answer` as a merge of `sketch` into `old`. Returns the merged file.
pub fn read(old: &str, sketch: &str, instructions: &str, language: &str, answer: &str) -> Result<String, Misfit> {
    let file = Solid::new(old);
    let mut sections = sections(sketch, language, &file);
    let mut reader = Reader {
        old,
        file,
        declared: Vec::new(),
        answer: Solid::new(answer),
        wanted: names(instructions),
        removes: removes(instructions),
        language,
        steps: 0,
        deepest: None,
        known: HashMap::new(),
        style: Style::default(),
    };
    if sections.len() > MOST_PARTS {
        return Err(Misfit::Everywhere);
    }
    reader.style = Style::new(&reader.file.lines);
    reader.declared = reader.answer.lines.iter().map(|it| declared(it)).collect();
    for (index, line) in reader.file.lines.iter().enumerate() {
        reader.known.entry(line.trim()).or_default().push(index);
    }
    if let Some(text) = reader.run(&sections) {
        return Ok(settle(old, &text));
    }
    // Parts in another order than the file's.
    let first = reader.deepest.take();
    let positions: Vec<usize> = sections
        .iter()
        .map(|it| reader.occurrence(it).unwrap_or(usize::MAX))
        .collect();
    if !positions.is_sorted() && !positions.contains(&usize::MAX) && sections.iter().all(|it| it.removed.is_none()) {
        sections.sort_by_key(|it| positions[it.number]);
        if let Some(text) = reader.run(&sections) {
            return Ok(settle(old, &text));
        }
    }
    if reader.steps > MOST_READINGS {
        return Err(Misfit::Everywhere);
    }
    Err(reader.reason(&sections, first))
}

/// Returns true if instructions ask for something to go.
fn removes(instructions: &str) -> bool {
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
fn names(instructions: &str) -> HashSet<&str> {
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
fn declares(line: &str, name: &str) -> bool {
    declared(line).is_some_and(|it| it.is_block && last_name(it.name) == name)
}

/// `use` of `app.use`, `Name` of `(t *T) Name`.
fn last_name(name: &str) -> &str {
    name.rsplit(['.', ' ']).next().unwrap_or(name)
}

/// The words that a line calls its block: the name of a function or a type, and those of an `impl`.
fn block_names(line: &str) -> Vec<&str> {
    if let Some(it) = declared(line) {
        return words(it.name).collect();
    }
    let text = line.trim_start();
    let text = text.strip_prefix("unsafe ").unwrap_or(text);
    let is_impl = text.strip_prefix("impl").filter(|it| it.starts_with([' ', '<']));
    is_impl.map_or_else(Vec::new, |it| words(it).filter(|it| !is_word(it)).collect())
}

/// The text of a line before the first `(`, `=` or `:`.
fn leading(line: &str) -> Option<&str> {
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

fn sections<'a>(sketch: &'a str, language: &str, file: &Solid<'_>) -> Vec<Section<'a>> {
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

struct Reader<'a> {
    old: &'a str,
    file: Solid<'a>,
    answer: Solid<'a>,
    /// What the instructions may name.
    wanted: HashSet<&'a str>,
    removes: bool,
    language: &'a str,
    steps: usize,
    /// The reason of the reading that got furthest, and how far.
    deepest: Option<(usize, Misfit)>,
    /// What each line of the answer declares.
    declared: Vec<Option<Declared<'a>>>,
    /// The lines of the file by their text.
    known: HashMap<&'a str, Vec<usize>>,
    /// How the lines of the file are indented.
    style: Style,
}

/// How a text indents its lines, comments aside.
#[derive(Clone, Copy, Default)]
struct Style {
    has_tabs: bool,
    has_spaces: bool,
    /// Width of a step; 0 if no line is indented further than the one before.
    unit: usize,
}

impl Style {
    fn new(lines: &[&str]) -> Self {
        let mut style = Self::default();
        let mut steps: HashMap<usize, usize> = HashMap::new();
        let mut last = 0;
        for line in lines.iter().filter(|it| !is_attached(it)) {
            style.has_tabs |= line.starts_with('\t');
            style.has_spaces |= line.starts_with(' ');
            let width = indent(line);
            if width > last {
                *steps.entry(width - last).or_default() += 1;
            }
            last = width;
        }
        style.unit = steps.into_iter().max_by_key(|it| (it.1, it.0)).map_or(0, |it| it.0);
        style
    }

    /// Returns true if a line is indented by the signs of this style.
    fn has(self, line: &str) -> bool {
        let first = line.chars().next().unwrap_or_default();
        is_attached(line)
            || match (self.has_tabs, self.has_spaces) {
                (true, false) => first != ' ',
                (false, true) => first != '\t',
                (true, true) | (false, false) => true,
            }
    }
}

impl<'a> Reader<'a> {
    fn run(&mut self, sections: &[Section<'a>]) -> Option<String> {
        let mut places = Vec::new();
        self.search(sections, 0, 0, &mut places)
            .then(|| self.text(sections, &places))
    }

    /// The first place of a part in the answer.
    fn occurrence(&self, section: &Section<'_>) -> Option<usize> {
        (0..self.answer.lines.len()).find(|it| self.stands(section, *it))
    }

    /// Returns true if the answer has all lines of a part from a line on.
    fn stands(&self, section: &Section<'_>, at: usize) -> bool {
        let lines = self.answer.lines.get(at..at + section.lines.len());
        lines.is_some_and(|it| it.iter().zip(&section.lines).all(|(a, b)| a.trim() == b.trim()))
    }

    fn note(&mut self, depth: usize, misfit: Misfit) {
        let is_plain = |it: &Misfit| matches!(it, Misfit::Dropped { .. });
        let is_deeper = |it: &(usize, Misfit)| depth > it.0 || depth == it.0 && is_plain(&it.1);
        if self.deepest.as_ref().is_none_or(is_deeper) {
            self.deepest = Some((depth, misfit));
        }
    }

    /// Finds places for the parts that have none, given what follows line `at` of the answer and line `next` of the file.
    fn search(&mut self, sections: &[Section<'a>], at: usize, next: usize, places: &mut Vec<Place>) -> bool {
        self.steps += 1;
        if self.steps > MOST_READINGS {
            return false;
        }
        let (lines, count) = (self.file.lines.len(), self.answer.lines.len());
        let Some(section) = sections.get(places.len()) else {
            if self.file.lines[next..] != self.answer.lines[at..] {
                return false;
            }
            return match self.judge(sections, places) {
                Ok(()) => true,
                Err(misfit) => {
                    self.note(usize::MAX, misfit);
                    false
                }
            };
        };
        let is_end = places.len() + 1 == sections.len();
        let mut start = at;
        loop {
            let from = next + (start - at);
            if self.stands(section, start) {
                let after = start + section.lines.len();
                let most = if self.removes || section.removed.is_some() {
                    lines
                } else {
                    lines.min(from + section.lines.len() + 2 * GUARD_LINES)
                };
                let untils = match (lines + after).checked_sub(count) {
                    Some(until) if is_end => until..until + 1,
                    None if is_end => 0..0,
                    Some(_) | None => from..most + 1,
                };
                for until in untils.filter(|it| *it >= from) {
                    self.steps += 1;
                    let is_next = match (self.answer.lines.get(after), self.file.lines.get(until)) {
                        (Some(a), Some(b)) if a == b => true,
                        (None, None) => true,
                        _ => !is_end && self.stands(&sections[places.len() + 1], after),
                    };
                    if !is_next {
                        continue;
                    }
                    // Work on a place is bounded by how many are looked at.
                    self.steps += EFFECT_STEPS;
                    if self.steps > MOST_READINGS {
                        return false;
                    }
                    match self.effect(section, from, until, start) {
                        Ok(effect) => {
                            places.push(Place {
                                from,
                                until,
                                at: start,
                                effect,
                            });
                            if self.search(sections, after, until, places) {
                                return true;
                            }
                            places.pop();
                        }
                        Err(misfit) => self.note(start, misfit),
                    }
                }
            }
            if start >= count || from >= lines || self.answer.lines[start] != self.file.lines[from] {
                return false;
            }
            start += 1;
        }
    }

    /// What a part does to lines `from..until` of the file, where the answer has it at line `at`.
    fn effect(&self, section: &Section<'_>, from: usize, until: usize, at: usize) -> Result<Effect, Misfit> {
        let file = &self.file.lines;
        let place = &file[from..until];
        let dropped = |index: usize| Misfit::Dropped {
            line: shown(file[index]),
            at: self.file.rows[index] + 1,
        };
        if let Some(name) = section.removed {
            let head = place.iter().position(|it| !is_attached(it));
            let head = head.filter(|it| declares(place[*it], name));
            return match head {
                Some(head) if self.is_own(from, head) && block_end(file, from + head) == until => Ok(Effect::Removed),
                Some(_) | None => Err(Misfit::Lacking {
                    line: format!("removed {name}"),
                }),
            };
        }
        let lines = &section.lines;
        let now = &self.answer.lines[at..at + lines.len()];
        if place == now {
            return Ok(Effect::Kept);
        }
        even(section, now)?;
        let lead = lines.iter().position(|it| !is_attached(it)).unwrap_or(0);
        let head = place.iter().position(|it| !is_attached(it)).unwrap_or(0);
        let own = declared(lines[lead]);
        let is_same =
            own.is_some() && place.get(head).and_then(|it| declared(it)).map(|it| it.name) == own.map(|it| it.name);
        let is_headed = self.is_headed(&lines[..lead], from, head);
        let is_whole = own.is_some_and(|it| it.is_block) && !section.is_open && is_complete(&lines[lead..]);
        if is_same && is_whole {
            let end = block_end(file, from + head);
            if is_headed && end == until {
                let is_named = self.removes && own.is_some_and(|it| self.wanted.contains(last_name(it.name)));
                if place.len() > lines.len() + GUARD_LINES && !is_named {
                    return Err(Misfit::Wide {
                        at: self.file.rows[from] + 1,
                    });
                }
                // Where no sign ends a block, a mark may stand for the rest of it.
                let is_ended = lines.iter().any(|it| it.ends_with('{') || is_continuation(it));
                if section.is_cut && !is_ended && !is_named && place.len() > lines.len() {
                    return Err(dropped(until - 1));
                }
                let base = (indent(lines[lead]), indent(now[lead]));
                if blanks(place[head]) != blanks(now[lead]) {
                    return Err(Misfit::Indent { line: shown(now[lead]) });
                }
                self.indented(section, now, place, &[base])?;
                return Ok(Effect::Declared);
            }
            // A part may also change the beginning of a block alone, up to a line that stays.
            let is_within = until < end && place[place.len() - 1].trim() == lines[lines.len() - 1].trim();
            if !is_within {
                return Err(dropped(until.min(file.len()) - 1));
            }
        }
        if place.is_empty() {
            return self.insertion(section, from, at);
        }
        let trimmed = |lines: &[&'a str]| lines.iter().map(|it| it.trim()).collect::<Vec<&'a str>>();
        let (before, after) = (trimmed(place), lines.iter().map(|it| it.trim()).collect::<Vec<_>>());
        let pairs = pairs(&before, &after);
        let (Some(first), Some(last)) = (pairs.first().copied(), pairs.last().copied()) else {
            let is_line = is_same && is_headed && place.len() == head + 1 && lines.len() == lead + 1;
            return if is_line && blanks(place[head]) == blanks(now[lead]) {
                Ok(Effect::Declared)
            } else {
                Err(dropped(from))
            };
        };
        for (old, new) in [first, last] {
            if blanks(place[old]) != blanks(now[new]) {
                return Err(Misfit::Indent { line: shown(now[new]) });
            }
        }
        self.indented(section, now, place, &[])?;
        // Above the first line that stays only a declaration may change.
        let is_renewed = first.0 > 0;
        if is_renewed {
            let is_signature = is_same
                && is_headed
                && head < first.0
                && lead < first.1
                && (first.0 == head + 1
                    || is_opening(place[first.0 - 1])
                        && !place[head..first.0 - 1].iter().any(|it| it.ends_with(['{', ':'])));
            if !is_signature {
                return Err(dropped(from));
            }
        }
        if last.0 + 1 < place.len() {
            return Err(dropped(from + last.0 + 1));
        }
        let is_tail = last.1 + 1 == lines.len();
        if place.len() > lines.len() + GUARD_LINES && !self.names_all(place, &pairs) {
            return Err(Misfit::Wide {
                at: self.file.rows[from] + 1,
            });
        }
        let is_new = |from: usize, until: usize| self.is_new(&lines[from..until], at + from);
        // By contract a part begins and ends with unchanged lines: where the file has them, they are these.
        if !is_renewed && first.1 > 0 && self.is_telling(lines[0]) && !is_new(0, first.1) {
            return Err(Misfit::Lacking { line: shown(lines[0]) });
        }
        if !is_tail && self.is_telling(lines[lines.len() - 1]) && !is_new(last.1 + 1, lines.len()) {
            return Err(Misfit::Lacking {
                line: shown(lines[lines.len() - 1]),
            });
        }
        if first.1 > 0 && !is_renewed || !is_tail {
            let outside = (0..first.1).chain(last.1 + 1..lines.len());
            for index in outside.filter(|it| !(is_renewed && *it <= first.1)) {
                self.doubled(lines[index], at + index)?;
                self.given(now, index, at)?;
                // The line that a new one is next to may be its old form.
                let next = if index < first.1 {
                    from.checked_sub(1)
                } else {
                    Some(until)
                };
                let next = next
                    .and_then(|it| file.get(it))
                    .filter(|it| indent(it) == indent(now[index]));
                if let Some(name) = leading(lines[index]).filter(|it| next.and_then(|it| leading(it)) == Some(*it)) {
                    return Err(Misfit::Doubled { name: shown(name) });
                }
            }
        }
        Ok(Effect::Anchored {
            line: first.1,
            skipped: first.0,
            is_tail,
            is_renewed,
        })
    }

    /// Returns true if the comments and attributes in lines `from..from + head` belong to the declaration below them.
    fn is_own(&self, from: usize, head: usize) -> bool {
        let is_free = |it: &&str| it.trim_start().starts_with("#!");
        (from + 1..=from + head).all(|it| self.file.gap(it) == 0)
            && !self.file.lines[from..from + head].iter().any(is_free)
    }

    /// Returns true if `new` can take the place of what stands above a declaration in lines `from..from + head`: each
    /// attribute goes for one of the same name, comments go for comments, and nothing stays above what is new.
    fn is_headed(&self, new: &[&str], from: usize, head: usize) -> bool {
        let file = &self.file.lines;
        let has = |it: &&str| match attribute(it) {
            Some(name) => new.iter().any(|it| attribute(it) == Some(name)),
            None => new.iter().any(|it| is_comment(it)),
        };
        let is_begun = head > 0 && new.first().is_some_and(|it| it.trim() == file[from].trim());
        let mut above = (0..from)
            .rev()
            .take_while(|it| self.file.gap(it + 1) == 0 && is_attached(file[*it]));
        self.is_own(from, head)
            && file[from..from + head].iter().all(has)
            && (is_begun || !above.any(|it| has(&file[it])))
    }

    /// Fails unless the new lines of a part are indented as the sketch says, by the lines that stay or by `known`, widths
    /// in the sketch and in the answer.
    fn indented(
        &self,
        section: &Section<'_>,
        now: &[&str],
        place: &[&str],
        known: &[(usize, usize)],
    ) -> Result<(), Misfit> {
        let lines = &section.lines;
        let own: Vec<&str> = lines.iter().map(|it| it.trim()).collect();
        let mut known = known.to_vec();
        let mut is_kept = vec![false; lines.len()];
        for (old, new) in pairs(&trimmed(place), &own) {
            if indent(place[old]) == indent(now[new]) {
                if blanks(place[old]) != blanks(now[new]) {
                    return Err(Misfit::Indent { line: shown(now[new]) });
                }
                is_kept[new] = true;
                if !section.is_shortened(new) {
                    known.push((indent(lines[new]), indent(now[new])));
                }
            }
        }
        known.sort_unstable();
        known.dedup();
        let unit = Style::new(lines).unit;
        // The lines that stay are shifted alike, or have other steps.
        let shift = |it: &(usize, usize)| it.1 as i64 - it.0 as i64;
        let is_shifted = known.iter().all(|it| shift(it) == shift(&known[0]));
        let is_scaled = !is_shifted || known.len() == 1 && (known[0].0 == 0 || shift(&known[0]) != 0);
        for (index, line) in lines.iter().enumerate() {
            let (width, now, after) = (
                indent(line),
                now[index],
                now.get(index + 1).copied().unwrap_or_default(),
            );
            let is_fit = |base: &(usize, usize)| {
                let wide = |scale: usize, by: usize| {
                    let part = width.abs_diff(base.0) * scale;
                    let part = (by > 0 && part.is_multiple_of(by)).then(|| part / by)?;
                    if width < base.0 {
                        base.1.checked_sub(part)
                    } else {
                        Some(base.1 + part)
                    }
                };
                let is_width = |it: Option<usize>| it == Some(indent(now));
                is_shifted && is_width(wide(1, 1))
                    || is_scaled && (is_width(wide(self.style.unit, unit)) || is_width(wide(base.1, base.0)))
            };
            // A line that lost its indentation has that of its old form, or of the line below it.
            let is_right = match place.first() {
                _ if !section.is_shortened(index) => known.is_empty() || known.iter().any(is_fit),
                Some(first) if declared(first).is_some() => blanks(now) == blanks(first),
                Some(_) => blanks(now) == blanks(after),
                // That of an inserted part was looked at.
                None => true,
            };
            if !is_kept[index] && (!self.style.has(now) || !is_right) {
                return Err(Misfit::Indent { line: shown(now) });
            }
        }
        Ok(())
    }

    /// Fails if a line of the answer, line `index` of a part, gives a value to what has one in the same block.
    fn given(&self, now: &[&str], index: usize, at: usize) -> Result<(), Misfit> {
        let Some(name) = key(now[index]) else {
            return Ok(());
        };
        let answer = &self.answer.lines;
        let depth = indent(now[index]);
        let block = |it: usize| ancestors(answer, it, depth).first().copied();
        let own = block(at + index);
        let is_same = |it: &usize| indent(answer[*it]) == depth && key(answer[*it]) == Some(name) && block(*it) == own;
        if (0..answer.len()).filter(is_same).count() > 1 {
            return Err(Misfit::Doubled { name: shown(name) });
        }
        Ok(())
    }

    /// Returns true for a line that the file has and that says something.
    fn is_telling(&self, line: &str) -> bool {
        let line = line.trim();
        self.known.contains_key(line) && line.contains(|it: char| it.is_alphanumeric())
    }

    /// Returns true for lines of the answer that are declarations which the file does not have.
    fn is_new(&self, lines: &[&str], at: usize) -> bool {
        let Some(depth) = lines.iter().map(|it| indent(it)).min() else {
            return false;
        };
        let heads = lines.iter().enumerate();
        let mut heads = heads.filter(|(_, it)| indent(it) == depth && !is_attached(it) && !is_continuation(it));
        let mut count = 0;
        let is_new = heads.all(|(index, it)| {
            count += 1;
            declared(it).is_some_and(|it| it.is_block) && self.doubled(it, at + index).is_ok()
        });
        is_new && count > 0
    }

    /// Fails if a line of the answer declares what the file has in the same block.
    fn doubled(&self, line: &str, at: usize) -> Result<(), Misfit> {
        let Some(own) = declared(line).filter(|it| it.is_block) else {
            return Ok(());
        };
        let answer = &self.answer.lines;
        let mut count = 0;
        if is_variant(answer, at) {
            return Ok(());
        }
        let block = ancestors(answer, at, indent(answer[at])).first().copied();
        for (index, it) in self.declared.iter().enumerate() {
            let is_same = it.is_some_and(|it| it.is_block && it.name == own.name);
            if is_same
                && !is_variant(answer, index)
                && ancestors(answer, index, indent(answer[index])).first().copied() == block
            {
                count += 1;
            }
        }
        if count > 1 {
            return Err(Misfit::Doubled {
                name: own.name.to_owned(),
            });
        }
        Ok(())
    }

    /// Returns true if something goes, and the instructions name all of it.
    fn names_all(&self, place: &[&str], pairs: &[(usize, usize)]) -> bool {
        if !self.removes {
            return false;
        }
        let mut edges = vec![0];
        edges.extend(pairs.iter().flat_map(|it| [it.0, it.0 + 1]));
        edges.push(place.len());
        let mut count = 0;
        let is_named = edges.chunks(2).all(|it| {
            let gone = &place[it[0]..it[1]];
            let depth = gone.iter().map(|it| indent(it)).min().unwrap_or_default();
            let mut heads = gone
                .iter()
                .filter(|it| indent(it) == depth && !is_attached(it) && !is_continuation(it));
            heads.all(|it| {
                count += 1;
                declared(it).is_some_and(|it| self.wanted.contains(last_name(it.name)))
            })
        });
        is_named && count > 0
    }

    /// A part that has no line of the file at its place: it is a declaration, an import, or at the end of something.
    fn insertion(&self, section: &Section<'_>, from: usize, at: usize) -> Result<Effect, Misfit> {
        let file = &self.file.lines;
        let lines = &section.lines;
        let now = &self.answer.lines[at..at + lines.len()];
        let depth = indent(now[0]);
        let unplaced = || Misfit::Unplaced { line: shown(lines[0]) };
        let before = from.checked_sub(1).map(|it| file[it]);
        let after = file.get(from).copied();
        // The new lines must not come between others that belong together, nor into a text or a comment.
        let is_asking = lines.iter().all(|it| is_import(it));
        // A comment above imports need not be about the first of them.
        let is_loose = |it: &str| is_asking && !it.trim_start().starts_with("#[");
        let is_joined = before.is_some_and(|it| {
            is_opening(it) && indent(it) >= depth
                || is_attached(it) && self.file.gap(from) == 0 && indent(it) == depth && !is_loose(it)
                || it.trim_start().starts_with('@')
                || indent(it) < depth && !is_opening(it)
        });
        let is_inside = after.is_some_and(|it| indent(it) > depth || is_continuation(it) && indent(it) == depth);
        if is_joined || is_inside || self.is_text(from) {
            return Err(unplaced());
        }
        if is_asking {
            let is_near = [before, after]
                .iter()
                .flatten()
                .any(|it| is_import(it) && indent(it) == depth);
            let is_top = file[..from].iter().all(|it| is_attached(it));
            return if is_near || is_top {
                Ok(Effect::Inserted { ends: false })
            } else {
                Err(unplaced())
            };
        }
        for (index, line) in lines.iter().enumerate() {
            if indent(line) <= indent(lines[0]) {
                self.doubled(line, at + index)?;
                self.given(now, index, at)?;
            }
        }
        if self.is_new(lines, at) {
            return Ok(Effect::Inserted { ends: false });
        }
        if lines
            .iter()
            .any(|it| self.is_telling(it) && indent(it) == indent(lines[0]))
        {
            return Err(unplaced());
        }
        let is_edge = section.is_first && from == 0 || section.is_last && from == file.len();
        if is_edge && depth == 0 {
            return Ok(Effect::Inserted { ends: false });
        }
        let is_end = after.is_none_or(|it| indent(it) < depth);
        if is_end && !section.parents.is_empty() {
            Ok(Effect::Inserted { ends: true })
        } else {
            Err(unplaced())
        }
    }

    /// Returns true if line `at` of the file seems to begin inside of a text or a comment of several lines.
    fn is_text(&self, at: usize) -> bool {
        let before = &self.file.lines[..at];
        let count = |sign: &str| before.iter().map(|it| it.matches(sign).count()).sum::<usize>();
        if self.language == "python" {
            return count("\"\"\"") % 2 == 1 || count("'''") % 2 == 1;
        }
        let last = |sign: &str| before.iter().rposition(|it| it.contains(sign));
        last("/*").is_some_and(|it| last("*/").is_none_or(|end| end < it))
    }

    /// Fails unless each part is where it says, and nowhere else as well.
    fn judge(&mut self, sections: &[Section<'a>], places: &[Place]) -> Result<(), Misfit> {
        let index_of = |number: usize| sections.iter().position(|it| it.number == number);
        // The blocks that the sketch shows.
        for (section, place) in sections.iter().zip(places) {
            // What is removed had its place in the file.
            let is_gone = section.lines.is_empty();
            let (lines, at) = if is_gone {
                (&self.file.lines, place.from)
            } else {
                (&self.answer.lines, place.at)
            };
            let Some(first) = lines.get(at) else {
                continue;
            };
            let above = ancestors(lines, at, indent(first));
            if let Effect::Inserted { .. } = place.effect {
                let now = &self.answer.lines[at..at + section.lines.len()];
                let depth = indent(section.lines[0]);
                let parent = section.parents.first().map(|(number, line)| {
                    let found = index_of(*number).map(|it| (places[it].at + line, indent(sections[it].lines[*line])));
                    found.filter(|it| above.first() == Some(&it.0))
                });
                let base = match parent {
                    Some(Some((at, width))) => (width, indent(self.answer.lines[at])),
                    // Without its block, a part has its own depth.
                    None if depth == indent(first) => (depth, depth),
                    // Its first line may have lost it.
                    None if section.is_shortened(0)
                        && indent(section.lines[1]) == indent(now[1])
                        && indent(first) + self.style.unit == indent(now[1]) =>
                    {
                        (indent(now[1]), indent(now[1]))
                    }
                    Some(None) | None => return Err(Misfit::Unplaced { line: shown(first) }),
                };
                self.indented(section, now, &[], &[base])?;
            }
            for (number, line) in &section.parents {
                let is_there = index_of(*number).is_some_and(|it| {
                    let other = &places[it];
                    let text = sections[it].lines[*line].trim();
                    let is_text = |at: &usize| (other.from..other.until).contains(at) && lines[*at].trim() == text;
                    if is_gone {
                        above.iter().any(is_text)
                    } else {
                        above.contains(&(other.at + line))
                    }
                });
                if !is_there {
                    return Err(Misfit::Unplaced { line: shown(first) });
                }
            }
        }
        let mut rivals = Vec::with_capacity(places.len());
        for (section, place) in sections.iter().zip(places) {
            rivals.push(self.rivals(section, place)?);
        }
        loop {
            let settled: Vec<bool> = rivals.iter().map(Vec::is_empty).collect();
            for (index, section) in sections.iter().enumerate() {
                let place = &places[index];
                let named = self.named(place.from, self.answer.lines.get(place.at).map_or(0, |it| indent(it)));
                let mut kept = std::mem::take(&mut rivals[index]);
                kept.retain(|rival| {
                    let order = places
                        .iter()
                        .zip(&settled)
                        .enumerate()
                        .all(|(other, (it, is_settled))| {
                            let is_apart = match other.cmp(&index) {
                                std::cmp::Ordering::Less => it.until <= rival.from,
                                std::cmp::Ordering::Equal => true,
                                std::cmp::Ordering::Greater => rival.until <= it.from,
                            };
                            is_apart || !is_settled
                        });
                    let depth = self.file.lines.get(rival.from).map_or(0, |it| indent(it));
                    let above = ancestors(&self.file.lines, rival.from, depth);
                    let stands = section.parents.iter().all(|(number, line)| {
                        let Some(other) = index_of(*number).filter(|it| settled[*it]) else {
                            return true;
                        };
                        let text = sections[other].lines[*line].trim();
                        let own = places[other].from..places[other].until;
                        above
                            .iter()
                            .any(|it| own.contains(it) && self.file.lines[*it].trim() == text)
                    });
                    order && stands && named <= self.named(rival.from, depth)
                });
                rivals[index] = kept;
            }
            if settled
                .iter()
                .zip(&rivals)
                .all(|(is_settled, it)| *is_settled == it.is_empty())
            {
                break;
            }
        }
        let settled: Vec<bool> = rivals.iter().map(Vec::is_empty).collect();
        for (index, (section, place)) in sections.iter().zip(places).enumerate() {
            let is_parent = sections
                .iter()
                .any(|it| it.parents.iter().any(|it| it.0 == section.number));
            let is_end = section.lines.iter().all(|it| is_continuation(it));
            match place.effect {
                Effect::Kept if is_parent || is_end => continue,
                Effect::Inserted { ends } => self.inserted(section, place, ends, |number| {
                    index_of(number).is_some_and(|it| settled[it])
                })?,
                _ => {}
            }
            if let Some(rival) = rivals[index].first() {
                let line = shown(section.lines.first().copied().unwrap_or_default());
                let number = |it: usize| self.file.rows.get(it).map_or(0, |it| it + 1);
                let (place, rival, is_better) = (number(place.from), number(rival.from), rival.is_better);
                return Err(if is_better {
                    Misfit::Elsewhere { line, place, rival }
                } else {
                    Misfit::Doubtful { line, place, rival }
                });
            }
        }
        Ok(())
    }

    /// Fails if a new part may as well belong into another block.
    fn inserted(
        &self,
        section: &Section<'_>,
        place: &Place,
        ends: bool,
        is_settled: impl Fn(usize) -> bool,
    ) -> Result<(), Misfit> {
        let file = &self.file.lines;
        let depth = indent(self.answer.lines[place.at]);
        if depth == 0 || section.parents.iter().any(|it| is_settled(it.0)) {
            return Ok(());
        }
        let parent = ancestors(file, place.from, depth).first().copied();
        let named = self.named(place.from, depth);
        let rival = file.iter().enumerate().find(|(at, it)| {
            let is_like = indent(it) == depth && (declared(it).is_some_and(|it| it.is_block) || ends);
            is_like && ancestors(file, *at, depth).first().copied() != parent && self.named(*at, depth) >= named
        });
        match rival {
            Some((at, _)) => Err(Misfit::Doubtful {
                line: shown(section.lines[0]),
                place: self.file.rows.get(place.from).map_or(0, |it| it + 1),
                rival: self.file.rows[at] + 1,
            }),
            None => Ok(()),
        }
    }

    /// How many names of the blocks that a line of the file stands in are in the instructions.
    fn named(&self, at: usize, depth: usize) -> usize {
        let lines = &self.file.lines;
        let above = ancestors(lines, at, depth).into_iter();
        let found: HashSet<&str> = above
            .flat_map(|it| block_names(lines[it]))
            .filter(|it| self.wanted.contains(it))
            .collect();
        found.len()
    }

    /// Other places that fit a part as well as the one that it has, or better.
    fn rivals(&mut self, section: &Section<'a>, place: &Place) -> Result<Vec<Rival>, Misfit> {
        let file = &self.file.lines;
        let lines: Vec<&'a str> = section.lines.iter().map(|it| it.trim()).collect();
        let mut rivals = Vec::new();
        let (line, skipped, is_tail, is_renewed) = match place.effect {
            Effect::Inserted { .. } => return Ok(rivals),
            Effect::Declared | Effect::Removed => {
                let own = (place.from..place.until).find(|it| !is_attached(file[*it]));
                let name = own.and_then(|it| declared(file[it])).map(|it| it.name);
                let head = own.map_or("", |it| file[it].trim());
                let is_said = lines.contains(&head);
                for (from, it) in file.iter().enumerate() {
                    // A declaration without a body, or with another head than the sketch has, is another one.
                    if it.ends_with(';') && !head.ends_with(';') || is_said && it.trim() != head {
                        continue;
                    }
                    let is_same = match section.removed {
                        Some(name) => declares(it, name),
                        None => declared(it).map(|it| it.name) == name,
                    };
                    if Some(from) != own && is_same {
                        rivals.push(Rival {
                            from,
                            until: from + 1,
                            is_better: false,
                        });
                    }
                }
                return Ok(rivals);
            }
            Effect::Kept => (0, 0, true, false),
            Effect::Anchored {
                line,
                skipped,
                is_tail,
                is_renewed,
            } => (line, skipped, is_tail, is_renewed),
        };
        let part = &lines[line..];
        let own = place.from + skipped;
        let cost = cost(part, &file[own..place.until]);
        let is_named = place.effect != Effect::Kept
            && self.names_all(&file[own..place.until], &pairs(&trimmed(&file[own..place.until]), part));
        let unmatched = unmatched(part, &file[own..place.until]);
        // The indentation of the sketch tells places apart.
        let depth = indent(section.lines[line]);
        let is_literal = indent(file[own]) == depth;
        let starts = self.known.get(part[0]).map_or(&[][..], Vec::as_slice);
        for &from in starts {
            let end = file.len().min(from + part.len() + GUARD_LINES);
            let end = if part.len() == 1 && is_tail {
                end.min(from + 1)
            } else {
                end
            };
            let is_like = indent(file[from]) == depth;
            if is_literal && !is_like {
                continue;
            }
            self.steps += 1 + part.len() * (end - from) / EFFECT_STEPS;
            if self.steps > MOST_READINGS || part.len().saturating_mul(starts.len()) > MOST_STEPS / 10 {
                return Err(Misfit::Everywhere);
            }
            if is_renewed {
                let name = section
                    .lines
                    .iter()
                    .find(|it| !is_attached(it))
                    .and_then(|it| declared(it));
                let is_there = (from.saturating_sub(skipped)..from)
                    .any(|it| declared(file[it]).map(|it| it.name) == name.map(|it| it.name));
                if !is_there {
                    continue;
                }
            }
            for (length, other) in costs(part, &file[from..end]).into_iter().enumerate().skip(1) {
                let until = from + length;
                let is_edge = !is_tail || file[until - 1].trim() == part[part.len() - 1];
                let is_own = from == own && until == place.until;
                // Of a dearer place, the lines that it has besides must be all that speaks against it.
                let is_apart = until <= place.from || place.until <= from;
                let is_near = other <= cost + FITTING_MARGIN as usize
                    && is_apart
                    && self::unmatched(part, &file[from..until]) <= unmatched;
                if other > cost && place.effect != Effect::Kept && !is_near
                    || !is_edge
                    || is_own
                    || (part.len() > 1 && length == 1 && is_tail)
                {
                    continue;
                }
                // Where the instructions name what goes, only what is new speaks against a place.
                if is_named && (other == 0 || self::unmatched(part, &file[from..until]) > unmatched) {
                    continue;
                }
                // Both edges are shifted alike.
                let shift = |file: &str, line: &str| indent(file) as i64 - indent(line) as i64;
                let last = section.lines[section.lines.len() - 1];
                if is_tail && shift(file[until - 1], last) != shift(file[from], section.lines[line]) && depth > 0 {
                    continue;
                }
                let is_better = other < cost || !is_literal && is_like;
                if !is_better && self.is_alike(&lines, place, (from, until), line) {
                    continue;
                }
                rivals.push(Rival { from, until, is_better });
                if rivals.len() > 50 * MOST_RIVALS {
                    return Err(Misfit::Everywhere);
                }
            }
        }
        Ok(rivals)
    }

    /// Returns true if a part gives the same file at a place and at another one.
    fn is_alike(&self, lines: &[&'a str], place: &Place, other: (usize, usize), skipped: usize) -> bool {
        let file = &self.file.lines;
        // Beyond both places the files are the same.
        let (start, end) = (place.from.min(other.0), place.until.max(other.1));
        let at = |from: usize, until: usize, lines: &[&'a str]| -> Vec<&'a str> {
            [&file[start..from], lines, &file[until..end]].concat()
        };
        let (old, new) = (place.until - place.from, other.1 - other.0);
        // Places that are far apart and give the same file are not worth the work.
        old == new
            && place.from.abs_diff(other.0) < 2 * lines.len() + GUARD_LINES
            && skipped == 0
            && at(place.from, place.until, lines) == at(other.0, other.1, lines)
    }

    /// The merged file.
    fn text(&self, sections: &[Section<'a>], places: &[Place]) -> String {
        let old = rows(self.old);
        let mut text: Vec<String> = Vec::with_capacity(old.len());
        // The next row of the old file.
        let mut row = 0;
        let push = |text: &mut Vec<String>, rows: &[&str]| text.extend(rows.iter().map(|it| (*it).to_owned()));
        let gap = |at: usize, from: usize| self.answer.gap(at).min(MOST_BLANK.max(self.file.gap(from)));
        for (index, (section, place)) in sections.iter().zip(places).enumerate() {
            let rows = &self.file.rows;
            let start = match place.effect {
                Effect::Inserted { .. } | Effect::Removed => place.from.checked_sub(1).map_or(0, |it| rows[it] + 1),
                Effect::Kept | Effect::Anchored { .. } | Effect::Declared => rows[place.from],
            };
            push(&mut text, old.get(row..start).unwrap_or_default());
            row = row.max(start);
            let end = match place.effect {
                Effect::Inserted { .. } | Effect::Removed => rows.get(place.until).copied().unwrap_or(old.len()),
                Effect::Kept | Effect::Anchored { .. } | Effect::Declared => rows[place.until - 1] + 1,
            };
            let after = place.at + section.lines.len();
            // Blank lines between two parts count once.
            let is_last = places
                .get(index + 1)
                .is_none_or(|it| it.at > after || !matches!(it.effect, Effect::Inserted { .. }));
            match place.effect {
                // Blank lines may be all that a part changes.
                Effect::Kept if self.has_gaps(section, place.at) => text.extend(self.lines(section, place)),
                Effect::Kept => push(&mut text, &old[row..end]),
                Effect::Removed if place.until < rows.len() && is_last => {
                    text.extend(vec![String::new(); gap(after, place.until)]);
                }
                Effect::Removed => {}
                Effect::Inserted { .. } => {
                    text.extend(vec![String::new(); gap(place.at, place.from)]);
                    text.extend(self.lines(section, place));
                    if place.until < rows.len() && is_last {
                        text.extend(vec![String::new(); gap(after, place.until)]);
                    }
                }
                Effect::Anchored { .. } | Effect::Declared => text.extend(self.lines(section, place)),
            }
            row = end;
        }
        push(&mut text, old.get(row..).unwrap_or_default());
        text.join("\n") + "\n"
    }

    /// Returns true if the answer has the blank lines inside a part that the sketch has.
    fn has_gaps(&self, section: &Section<'_>, at: usize) -> bool {
        (1..section.lines.len()).all(|it| self.answer.gap(at + it) == section.gaps[it])
    }

    /// The lines of a part as they come into the file.
    fn lines(&self, section: &Section<'_>, place: &Place) -> Vec<String> {
        let file = &self.file.lines[place.from..place.until];
        let own: Vec<&str> = section.lines.iter().map(|it| it.trim()).collect();
        let stay: BTreeMap<usize, usize> = pairs(&trimmed(file), &own).into_iter().map(|it| (it.1, it.0)).collect();
        let old = rows(self.old);
        let mut lines = Vec::with_capacity(section.lines.len());
        for (index, line) in section.lines.iter().enumerate() {
            if index > 0 {
                lines.extend(vec![String::new(); section.gaps[index]]);
            }
            let now = self.answer.lines[place.at + index];
            let kept = stay.get(&index).filter(|it| file[**it] == now);
            lines.push(match kept {
                Some(it) => old[self.file.rows[place.from + it]].to_owned(),
                None => {
                    let width = now.len() - now.trim_start().len();
                    format!("{}{}", now.split_at(width).0, line.trim_start())
                }
            });
        }
        lines
    }

    /// The reason that helps most.
    fn reason(&mut self, sections: &[Section<'a>], first: Option<(usize, Misfit)>) -> Misfit {
        let found = [first, self.deepest.take()].into_iter().flatten().max_by_key(|it| it.0);
        if let Some((usize::MAX, misfit)) = found {
            return misfit;
        }
        let said: HashSet<&str> = sections
            .iter()
            .flat_map(|it| it.lines.iter().map(|it| it.trim()))
            .collect();
        let ops = compare(&self.file.lines, &self.answer.lines);
        for op in &ops {
            let new = self.answer.lines[op.new_range()].iter();
            let mut new = new.filter(|_| !matches!(op, DiffOp::Equal { .. }));
            if let Some(line) = new.find(|it| !said.contains(it.trim())) {
                return Misfit::Invented { line: shown(line) };
            }
        }
        if let Some(section) = sections.iter().find(|it| self.occurrence(it).is_none()) {
            let has = |it: &&str| self.answer.lines.iter().any(|line| line.trim() == it.trim());
            let line = section.lines.iter().find(|it| !has(it)).unwrap_or(&section.lines[0]);
            return Misfit::Lacking { line: shown(line) };
        }
        if let Some((_, misfit)) = found {
            return misfit;
        }
        let lost = ops
            .iter()
            .find(|it| matches!(it, DiffOp::Delete { .. } | DiffOp::Replace { .. }));
        match lost.map(DiffOp::old_range) {
            Some(range) => Misfit::Dropped {
                line: shown(self.file.lines[range.start]),
                at: self.file.rows[range.start] + 1,
            },
            None => Misfit::Unplaced {
                line: shown(sections.first().and_then(|it| it.lines.first()).unwrap_or(&"")),
            },
        }
    }
}

/// Returns true if lines are one whole block: with its end, where it has one.
fn is_complete(lines: &[&str]) -> bool {
    let last = lines[lines.len() - 1];
    let is_ended = is_continuation(last) && !is_opening(last) && indent(last) == indent(lines[0]);
    let has_end = lines.iter().any(|it| it.trim_end().ends_with('{'));
    let is_begun = has_end || lines.len() == 1 && is_opening(last);
    block_end(lines, 0) == lines.len() && (is_ended || !is_begun)
}

/// Returns true for a declaration that may have the name of another one: an overload, the setter of a property, code for
/// one platform.
fn is_variant(lines: &[&str], at: usize) -> bool {
    let above = lines[..at].iter().rev().take_while(|it| is_attached(it));
    above.filter_map(|it| attribute(it)).any(|it| {
        let name = last_name(it.trim_start_matches(['@', '#', '[']));
        matches!(name, "setter" | "getter" | "deleter" | "overload" | "cfg" | "register")
    })
}

/// Fails unless equal indentation in the sketch is equal indentation in the answer, and more is more.
fn even(section: &Section<'_>, now: &[&str]) -> Result<(), Misfit> {
    let mut widths: BTreeMap<usize, &str> = BTreeMap::new();
    for (index, (line, now)) in section.lines.iter().zip(now).enumerate() {
        if section.is_shortened(index) {
            continue;
        }
        let blanks = blanks(now);
        if *widths.entry(indent(line)).or_insert(blanks) != blanks {
            return Err(Misfit::Indent { line: shown(now) });
        }
    }
    let widths: Vec<usize> = widths.values().map(|it| indent(it)).collect();
    if widths.is_sorted_by(|a, b| a < b) {
        return Ok(());
    }
    Err(Misfit::Indent { line: shown(now[0]) })
}

fn trimmed<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    lines.iter().map(|it| it.trim()).collect()
}

/// Lines that stay: of the old lines and of the new ones.
fn pairs(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    let ops = compare(old, new).into_iter();
    ops.filter(|it| matches!(it, DiffOp::Equal { .. }))
        .flat_map(|it| it.old_range().zip(it.new_range()))
        .collect()
}

/// Lines of a part that its place does not have.
fn unmatched(part: &[&str], place: &[&str]) -> usize {
    part.len() - pairs(&trimmed(place), part).len()
}

/// Lines that go and come where a part takes a place.
fn cost(part: &[&str], place: &[&str]) -> usize {
    costs(part, place).last().copied().unwrap_or_default()
}

/// The same for all beginnings of a place, the empty one first.
fn costs(part: &[&str], place: &[&str]) -> Vec<usize> {
    let mut row: Vec<usize> = (0..=place.len()).collect();
    for line in part {
        let mut corner = row[0];
        row[0] += 1;
        for (index, it) in place.iter().enumerate() {
            let above = row[index + 1];
            row[index + 1] = if it.trim() == *line {
                corner
            } else {
                above.min(row[index]) + 1
            };
            corner = above;
        }
    }
    row
}
