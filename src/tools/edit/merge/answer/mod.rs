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

mod indentation;
mod judge;
mod section;

use std::collections::{BTreeMap, HashMap, HashSet};

use similar::DiffOp;

use self::{
    indentation::{Style, even},
    section::{declares, last_name, leading, names, removes, sections},
};
use super::{
    GUARD_LINES,
    outline::{
        Declared, ancestors, attribute, blanks, block_end, declared, indent, is_attached, is_comment, is_continuation,
        is_import, is_opening,
    },
    shown,
};
use crate::tools::edit::{
    hunks::compare,
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
