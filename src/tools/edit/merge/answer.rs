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
    GUARD_LINES, MOST_RIVALS, MOST_STEPS,
    outline::{
        Declared, ancestors, block_end, declared, indent, is_attached, is_continuation, is_import, is_opening, words,
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
/// Words of instructions that ask for something to go.
const REMOVALS: [&str; 8] = [
    "remove", "delete", "drop", "strip", "clean", "extract", "move", "rewrite",
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
        wanted: words(instructions).collect(),
        removes: removes(instructions),
        language,
        steps: 0,
        deepest: None,
        known: HashMap::new(),
    };
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
    REMOVALS.iter().any(|it| instructions.contains(it))
}

/// Returns true if a line declares a function, a type or the like of that name: `app.use = function () {` for `use`.
fn declares(line: &str, name: &str) -> bool {
    declared(line).is_some_and(|it| it.is_block && last_name(it.name) == name)
}

/// `use` of `app.use`.
fn last_name(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
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
    /// Words of the instructions.
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
                Some(head) if block_end(file, from + head) == until => Ok(Effect::Removed),
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
        // Comments above a declaration may only go if new ones come.
        let is_headed = head == 0 || lead > 0;
        let is_whole = own.is_some_and(|it| it.is_block) && !section.is_open && is_complete(&lines[lead..]);
        if is_same && is_whole {
            let end = block_end(file, from + head);
            if is_headed && end == until {
                return if indent(place[head]) == indent(now[lead]) {
                    Ok(Effect::Declared)
                } else {
                    Err(Misfit::Indent { line: shown(now[lead]) })
                };
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
            return if is_line && indent(place[head]) == indent(now[lead]) {
                Ok(Effect::Declared)
            } else {
                Err(dropped(from))
            };
        };
        for (old, new) in [first, last] {
            if indent(place[old]) != indent(now[new]) {
                return Err(Misfit::Indent { line: shown(now[new]) });
            }
        }
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
            }
        }
        Ok(Effect::Anchored {
            line: first.1,
            skipped: first.0,
            is_tail,
            is_renewed,
        })
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
        let block = ancestors(answer, at, indent(answer[at])).first().copied();
        for (index, it) in self.declared.iter().enumerate() {
            let is_same = it.is_some_and(|it| it.is_block && it.name == own.name);
            if is_same && ancestors(answer, index, indent(answer[index])).first().copied() == block {
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

    /// Returns true if the instructions name all that goes.
    fn names_all(&self, place: &[&str], pairs: &[(usize, usize)]) -> bool {
        if !self.removes {
            return false;
        }
        let mut edges = vec![0];
        edges.extend(pairs.iter().flat_map(|it| [it.0, it.0 + 1]));
        edges.push(place.len());
        edges.chunks(2).all(|it| {
            let gone = &place[it[0]..it[1]];
            let depth = gone.iter().map(|it| indent(it)).min().unwrap_or_default();
            let mut heads = gone
                .iter()
                .filter(|it| indent(it) == depth && !is_attached(it) && !is_continuation(it));
            heads.all(|it| declared(it).is_some_and(|it| self.wanted.contains(last_name(it.name))))
        })
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
                    order && stands && (rival.is_better || named <= self.named(rival.from, depth))
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

    /// Words of the instructions in the lines that a line of the file stands in.
    fn named(&self, at: usize, depth: usize) -> usize {
        let lines = &self.file.lines;
        let above = ancestors(lines, at, depth).into_iter();
        let found: HashSet<&str> = above
            .flat_map(|it| words(lines[it]))
            .filter(|it| self.wanted.contains(it))
            .collect();
        found.len()
    }

    /// Other places that fit a part as well as the one that it has, or better.
    fn rivals(&mut self, section: &Section<'_>, place: &Place) -> Result<Vec<Rival>, Misfit> {
        let file = &self.file.lines;
        let lines: Vec<&str> = section.lines.iter().map(|it| it.trim()).collect();
        let mut rivals = Vec::new();
        let (line, skipped, is_tail, is_renewed) = match place.effect {
            Effect::Inserted { .. } => return Ok(rivals),
            Effect::Declared | Effect::Removed => {
                let own = (place.from..place.until).find(|it| !is_attached(file[*it]));
                let name = own.and_then(|it| declared(file[it])).map(|it| it.name);
                for (from, it) in file.iter().enumerate() {
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
        let is_named = self.names_all(&file[own..place.until], &pairs(&trimmed(&file[own..place.until]), part));
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
            self.steps += part.len();
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
                if other > cost && place.effect != Effect::Kept
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
    fn is_alike(&self, lines: &[&str], place: &Place, other: (usize, usize), skipped: usize) -> bool {
        let file = &self.file.lines;
        let at = |from: usize, until: usize, lines: &[&str]| -> Vec<String> {
            let edges = file[..from].iter().map(|it| (*it).to_owned());
            let inner = lines.iter().map(|it| (*it).to_owned());
            edges
                .chain(inner)
                .chain(file[until..].iter().map(|it| (*it).to_owned()))
                .collect()
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
        for (section, place) in sections.iter().zip(places) {
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
            match place.effect {
                // Blank lines may be all that a part changes.
                Effect::Kept if self.has_gaps(section, place.at) => text.extend(self.lines(section, place)),
                Effect::Kept => push(&mut text, &old[row..end]),
                Effect::Removed if place.until < rows.len() => {
                    text.extend(vec![String::new(); gap(after, place.until)]);
                }
                Effect::Removed => {}
                Effect::Inserted { .. } => {
                    text.extend(vec![String::new(); gap(place.at, place.from)]);
                    text.extend(self.lines(section, place));
                    if place.until < rows.len() {
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

/// Fails unless equal indentation in the sketch is equal indentation in the answer, and more is more.
fn even(section: &Section<'_>, now: &[&str]) -> Result<(), Misfit> {
    let mut widths: BTreeMap<usize, &str> = BTreeMap::new();
    for (index, (line, now)) in section.lines.iter().zip(now).enumerate() {
        // The first line of a sketch often loses its indentation.
        if index == 0 && section.number == 0 && indent(line) == 0 && section.lines.len() > 1 {
            continue;
        }
        let blanks = now.split_at(now.len() - now.trim_start().len()).0;
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
