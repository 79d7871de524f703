//! A sketch merged into a file, by lines alone: it finds where each part belongs, or refuses.
//!
//! The contract of a sketch is that each part begins and ends with unchanged lines of the file. So a part may stand
//! wherever its first and last line do; the place that changes least, seen over all parts in their order, is taken. That
//! place must be the only one: where another one is nearly as good and has another result, nothing is changed, because a
//! model that is asked again loses a moment, and a file that was merged wrongly is damaged in silence.
//!
//! Work is bounded: where edges occur so often that looking at all places would take long, that is a refusal too.

pub mod answer;
mod chain;
mod outline;
mod shift;

use std::collections::HashMap;

use similar::DiffOp;

use self::{
    chain::{Chain, PartPlace},
    shift::shift,
};
use super::{
    hunks::compare,
    sketch::{Part, parts},
    text::{rows, settle},
};

/// A place may be so many lines longer than its part: beyond, the part more likely lacks a mark than deletes that much.
const GUARD_LINES: usize = 20;
/// A second-best merge within so many points makes the best one doubtful. With 1, one merge in seventy was wrong at three
/// lines of context.
const MARGIN: i64 = 3;
/// The same for a second-best merge whose edges fit as well as those of the best one: the lines between are all that
/// speaks against it, and they may be what the sketch means to delete.
const FITTING_MARGIN: i64 = 8;
/// More equal lines than these at an edge say no more.
const TELLING_LINES: usize = 3;
/// Share of the file's lines that a sketch without marks must have to be the whole file.
const WHOLE_SHARE: f64 = 0.6;
/// Pairs of edge lines that are looked at, and steps of comparing them.
const MOST_PLACES: usize = 300_000;
const MOST_STEPS: usize = 30_000_000;
/// Other results that are compared with the best one.
const MOST_RIVALS: usize = 200;

/// Why a sketch was not merged. Line numbers count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeRefusal {
    #[error("the sketch contains no code besides its marks")]
    Empty,
    #[error("line {at} of the sketch begins or ends a part and is not a line of the file: `{line}`")]
    Missing { line: String, at: usize },
    #[error(
        "the part of the sketch from line {at} (`{first}`) to line {until} (`{last}`) fits nowhere: these lines do not \
         follow each other in the file within {} lines more than the part has",
        GUARD_LINES
    )]
    Apart {
        first: String,
        last: String,
        at: usize,
        until: usize,
    },
    #[error("the part of the sketch from line {at} (`{line}`) does not come after the previous parts in the file")]
    Order { line: String, at: usize },
    #[error("the part of the sketch from line {at} (`{line}`) is indented differently from the file, and not evenly")]
    Indent { line: String, at: usize },
    #[error("the part of the sketch from line {at} (`{line}`) changes nothing where it fits best, at line {place}")]
    Idle { line: String, at: usize, place: usize },
    #[error("the part of the sketch from line {at} (`{line}`) fits at line {place} of the file and at line {rival}")]
    Doubtful {
        line: String,
        at: usize,
        place: usize,
        rival: usize,
    },
    #[error("the lines around the changes of the sketch occur too often in the file")]
    Everywhere,
}

impl MergeRefusal {
    /// More than one place fits, rather than none.
    pub fn is_ambiguous(&self) -> bool {
        match self {
            Self::Doubtful { .. } | Self::Everywhere => true,
            Self::Empty
            | Self::Missing { .. }
            | Self::Apart { .. }
            | Self::Order { .. }
            | Self::Indent { .. }
            | Self::Idle { .. } => false,
        }
    }
}

/// The file `old` with the sketch merged into it. `language` is a tag of ours.
///
/// A sketch without marks that has most of the file's lines is the new file.
pub fn merge(old: &str, sketch: &str, language: &str) -> Result<String, MergeRefusal> {
    let (parts, is_marked) = parts(sketch, language);
    if parts.is_empty() {
        return Err(MergeRefusal::Empty);
    }
    let file = rows(old);
    if !is_marked && is_whole(&file, sketch) {
        return Ok(settle(old, sketch));
    }
    Merge::new(old, &file, &parts).run()
}

/// Returns true if a sketch without marks is the whole file. Blank lines do not count.
fn is_whole(file: &[&str], sketch: &str) -> bool {
    let solid = |it: &&str| !it.is_empty();
    let file: Vec<&str> = file.iter().map(|it| it.trim()).filter(solid).collect();
    let sketch: Vec<&str> = rows(sketch).into_iter().map(str::trim).filter(solid).collect();
    let shared: usize = compare(&file, &sketch)
        .into_iter()
        .filter(|it| matches!(it, DiffOp::Equal { .. }))
        .map(|it| it.old_range().len())
        .sum();
    shared as f64 >= WHOLE_SHARE * file.len() as f64
}

struct Merge<'a> {
    old: &'a str,
    /// Its lines without their ends, and where they begin.
    file: &'a [&'a str],
    starts: Vec<usize>,
    parts: &'a [Part<'a>],
    /// Lines as numbers: equal ones but for blanks at both ends have the same, and so have all that no part has.
    file_numbers: Vec<u32>,
    part_numbers: Vec<Vec<u32>>,
    /// The lines of the file that have each number.
    lines: Vec<Vec<usize>>,
    steps: usize,
}

impl<'a> Merge<'a> {
    fn new(old: &'a str, file: &'a [&'a str], parts: &'a [Part<'a>]) -> Self {
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        // Lines of the sketch have these traits; what has others need not be looked up.
        let mut known = vec![false; 1 << 16];
        let mut part_numbers = Vec::with_capacity(parts.len());
        for part in parts {
            let number = |line: &&'a str| {
                let line = line.trim();
                known[trait_of(line)] = true;
                let next = numbers.len() as u32;
                *numbers.entry(line).or_insert(next)
            };
            part_numbers.push(part.lines.iter().map(number).collect());
        }
        // Lines that are in no part are all the same to them.
        let other = numbers.len() as u32;
        let mut lines = vec![Vec::new(); numbers.len() + 1];
        let mut file_numbers = Vec::with_capacity(file.len());
        for (at, line) in file.iter().enumerate() {
            let line = line.trim();
            let number = if known[trait_of(line)] {
                numbers.get(line).copied()
            } else {
                None
            };
            if let Some(number) = number {
                lines[number as usize].push(at);
            }
            file_numbers.push(number.unwrap_or(other));
        }
        let mut starts = Vec::with_capacity(file.len());
        let mut at = 0;
        for line in file {
            starts.push(at);
            at += line.len() + 1;
        }
        Self {
            old,
            file,
            starts,
            parts,
            file_numbers,
            part_numbers,
            lines,
            steps: 0,
        }
    }

    fn run(mut self) -> Result<String, MergeRefusal> {
        let mut places: Vec<Vec<PartPlace>> = Vec::new();
        let mut count = 0;
        for part in 0..self.parts.len() {
            let found = self.places(part)?;
            count += found.len();
            if count > MOST_PLACES {
                return Err(MergeRefusal::Everywhere);
            }
            places.push(found);
        }
        // A merge whose score is known bounds the best one; only places that may belong to one within the margin are
        // counted out.
        let chain = Chain::new(&places);
        let likely = chain.best().map_err(|part| self.order(part))?;
        let mut bound = chain.total(&likely);
        for (part, at) in likely.iter().enumerate() {
            let place = places[part][*at];
            let changed = self.changed(part, place, usize::MAX)?.unwrap_or(place.changed);
            bound += changed as i64 - place.changed as i64;
        }
        let mut counted: Vec<Vec<PartPlace>> = Vec::new();
        for (part, found) in places.iter().enumerate() {
            let mut kept = Vec::new();
            for (at, place) in found.iter().enumerate() {
                let Some(through) = chain.through(part, at) else {
                    continue;
                };
                let spare = bound + FITTING_MARGIN - through;
                if spare < 0 {
                    continue;
                }
                let limit = place.changed + spare as usize;
                if let Some(changed) = self.changed(part, *place, limit)? {
                    kept.push(PartPlace {
                        score: place.score + changed as i64 - place.changed as i64,
                        changed,
                        ..*place
                    });
                }
            }
            counted.push(kept);
        }
        let chain = Chain::new(&counted);
        let best = chain.best().map_err(|part| self.order(part))?;
        self.settle(&chain, &best)
    }

    /// The best merge, if it is one and the only one.
    fn settle(&self, chain: &Chain<'_>, best: &[usize]) -> Result<String, MergeRefusal> {
        let texts = self.texts(chain, best)?;
        for (part, (at, text)) in best.iter().zip(&texts).enumerate() {
            let place = chain.places[part][*at];
            let stands = &self.file[place.first..=place.last];
            if stands.iter().zip(text).all(|(old, new)| old == new) && stands.len() == text.len() {
                let (line, at) = self.head(part);
                return Err(MergeRefusal::Idle {
                    line,
                    at,
                    place: place.first + 1,
                });
            }
        }
        let merged = self.merged(chain, best, &texts);
        let total = chain.total(best);
        let mut rivals = Vec::new();
        for (part, places) in chain.places.iter().enumerate() {
            let chosen = places[best[part]];
            for (at, place) in places.iter().enumerate().filter(|it| it.0 != best[part]) {
                let fits = place.equal.0 >= chosen.equal.0 && place.equal.1 >= chosen.equal.1;
                let margin = if fits { FITTING_MARGIN } else { MARGIN };
                rivals.extend(
                    chain
                        .through(part, at)
                        .filter(|it| *it <= total + margin)
                        .map(|it| (it, part, at)),
                );
            }
        }
        rivals.sort_unstable();
        for (count, (_, part, at)) in rivals.into_iter().enumerate() {
            let other = chain.with(part, at);
            let is_same = count < MOST_RIVALS
                && self
                    .texts(chain, &other)
                    .is_ok_and(|texts| self.merged(chain, &other, &texts) == merged);
            if !is_same {
                let (chosen, place) = (chain.places[part][best[part]], chain.places[part][at]);
                let (line, at) = self.head(part);
                // The rival may begin where the chosen one does, and end elsewhere.
                let (place, rival) = if chosen.first == place.first {
                    (chosen.last + 1, place.last + 1)
                } else {
                    (chosen.first + 1, place.first + 1)
                };
                return Err(MergeRefusal::Doubtful { line, at, place, rival });
            }
        }
        Ok(merged)
    }

    /// All places where a part may stand, by its edges.
    fn places(&mut self, part: usize) -> Result<Vec<PartPlace>, MergeRefusal> {
        let numbers = &self.part_numbers[part];
        let lines = &self.parts[part].lines;
        let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
        for (edge, at) in [(first, 0), (last, lines.len() - 1)] {
            if self.lines[edge as usize].is_empty() {
                return Err(MergeRefusal::Missing {
                    line: shown(lines[at]),
                    at: self.parts[part].first + at,
                });
            }
        }
        // For each line what the part still wants of it.
        let mut wanted = vec![0_i32; self.lines.len()];
        for number in numbers {
            wanted[*number as usize] += 1;
        }
        let longest = if numbers.len() == 1 {
            1
        } else {
            numbers.len() + GUARD_LINES
        };
        let mut places = Vec::new();
        let mut is_bare = Vec::new();
        let mut is_apart = true;
        for &from in &self.lines[first as usize] {
            // Lines that the range up to here lacks or has too many of: no edit can change fewer.
            let mut changed = numbers.len();
            let end = (from + longest).min(self.file.len());
            self.steps += end - from;
            if self.steps > MOST_STEPS || places.len() > MOST_PLACES {
                return Err(MergeRefusal::Everywhere);
            }
            for until in from..end {
                let number = self.file_numbers[until];
                let count = &mut wanted[number as usize];
                if *count > 0 {
                    changed -= 1;
                } else {
                    changed += 1;
                }
                *count -= 1;
                if number != last || (until == from) != (numbers.len() == 1) {
                    continue;
                }
                is_apart = false;
                let Some(shift) = shift(&self.file[from..=until], lines, part == 0) else {
                    continue;
                };
                is_bare.push(shift.is_bare);
                let range = &self.file_numbers[from..=until];
                let equal = |pairs: &mut dyn Iterator<Item = (&u32, &u32)>| {
                    pairs.take(TELLING_LINES).take_while(|(a, b)| a == b).count() as i64
                };
                let head = equal(&mut range.iter().zip(numbers));
                let tail = equal(&mut range.iter().rev().zip(numbers.iter().rev()));
                places.push(PartPlace {
                    first: from,
                    last: until,
                    score: changed as i64 - head - tail,
                    changed,
                    equal: (head, tail),
                });
            }
            for number in &self.file_numbers[from..end] {
                wanted[*number as usize] += 1;
            }
        }
        if is_bare.contains(&false) {
            let mut is_bare = is_bare.into_iter();
            places.retain(|_| is_bare.next() == Some(false));
        }
        if places.is_empty() {
            let (line, at) = self.head(part);
            return Err(if is_apart {
                MergeRefusal::Apart {
                    first: line,
                    last: shown(lines[lines.len() - 1]),
                    at,
                    until: at + lines.len() - 1,
                }
            } else {
                MergeRefusal::Indent { line, at }
            });
        }
        Ok(places)
    }

    /// Lines that are deleted and inserted where a part takes a place, if these are not more than `limit`.
    fn changed(&mut self, part: usize, place: PartPlace, limit: usize) -> Result<Option<usize>, MergeRefusal> {
        let old = &self.file_numbers[place.first..=place.last];
        let new = &self.part_numbers[part];
        let (changed, steps) = distance(old, new, limit, MOST_STEPS.saturating_sub(self.steps));
        self.steps += steps;
        if self.steps >= MOST_STEPS {
            return Err(MergeRefusal::Everywhere);
        }
        Ok(changed)
    }

    /// The lines that each part puts into the place chosen for it.
    fn texts(&self, chain: &Chain<'_>, chosen: &[usize]) -> Result<Vec<Vec<String>>, MergeRefusal> {
        let pairs = chosen.iter().enumerate();
        pairs
            .map(|(part, at)| {
                let place = chain.places[part][*at];
                let stands = &self.file[place.first..=place.last];
                let lines = &self.parts[part].lines;
                let shift = shift(stands, lines, part == 0);
                let shifted = shift.and_then(|it| it.apply(lines));
                let is_even = |it: &Vec<String>| !shift.is_some_and(|it| it.moves()) || even(stands, it);
                let Some(shifted) = shifted.filter(is_even) else {
                    let (line, at) = self.head(part);
                    return Err(MergeRefusal::Indent { line, at });
                };
                Ok(kept(stands, shifted))
            })
            .collect()
    }

    /// The whole file with the parts in their places.
    fn merged(&self, chain: &Chain<'_>, chosen: &[usize], texts: &[Vec<String>]) -> String {
        let mut merged = String::with_capacity(self.old.len());
        let mut at = 0;
        for ((part, choice), text) in chosen.iter().enumerate().zip(texts) {
            let place = chain.places[part][*choice];
            merged.push_str(self.old.get(at..self.starts[place.first]).unwrap_or_default());
            for (index, line) in text.iter().enumerate() {
                if index > 0 {
                    merged.push('\n');
                }
                merged.push_str(line);
            }
            // The line end behind a place stays, and so does the lack of one.
            at = self.starts[place.last] + self.file[place.last].len();
        }
        merged.push_str(self.old.get(at..).unwrap_or_default());
        merged
    }

    fn order(&self, part: usize) -> MergeRefusal {
        let (line, at) = self.head(part);
        MergeRefusal::Order { line, at }
    }

    /// The first line of a part, and its number in the sketch.
    fn head(&self, part: usize) -> (String, usize) {
        (shown(self.parts[part].lines[0]), self.parts[part].first)
    }
}

/// The trait of a line that equal lines share, and few others.
fn trait_of(line: &str) -> usize {
    let bytes = line.as_bytes();
    let middle = bytes.get(bytes.len() / 2).copied().unwrap_or_default();
    (bytes.len() & 0xff) << 8 | usize::from(middle)
}

/// A line as it is named in a message.
fn shown(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(120) {
        Some((at, _)) => format!("{}…", line.split_at(at).0),
        None => line.to_owned(),
    }
}

/// Lines that must go and come to make `new` of `old`, if not more than `limit`, and the steps that took. Ends without a
/// number once `most` steps are taken.
fn distance(old: &[u32], new: &[u32], limit: usize, most: usize) -> (Option<usize>, usize) {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let mut steps = head + tail + 1;
    let limit = limit.min(old.len() + new.len());
    // Myers: for each number of changes and each diagonal, how far one gets in `old`.
    let middle = limit + 1;
    let mut reach = vec![0_usize; 2 * limit + 3];
    for changes in 0..=limit {
        for diagonal in (0..=2 * changes).step_by(2) {
            let at = middle + diagonal - changes;
            let is_down = diagonal == 0 || (diagonal != 2 * changes && reach[at - 1] < reach[at + 1]);
            let mut x = if is_down { reach[at + 1] } else { reach[at - 1] + 1 };
            // The diagonal is x - y; both are bounded by the lengths plus the changes.
            let mut y = (x + middle).wrapping_sub(at);
            steps += 1;
            while x < old.len() && y < new.len() && old[x] == new[y] {
                (x, y) = (x + 1, y + 1);
                steps += 1;
            }
            reach[at] = x;
            if x >= old.len() && y >= new.len() {
                return (Some(changes), steps);
            }
        }
        if steps > most {
            return (None, steps);
        }
    }
    (None, steps)
}

/// Returns true if the lines that stay have the same indentation in both: one step of a sketch may be narrower than one
/// of the file, and then no one shift fits all of its lines.
fn even(old: &[&str], new: &[String]) -> bool {
    let before: Vec<&str> = old.iter().map(|it| it.trim()).collect();
    let after: Vec<&str> = new.iter().map(|it| it.trim()).collect();
    let mut stay = compare(&before, &after)
        .into_iter()
        .filter(|it| matches!(it, DiffOp::Equal { .. }))
        .flat_map(|it| it.old_range().zip(it.new_range()));
    stay.all(|(a, b)| before[a].is_empty() || old[a].trim_end() == new[b].trim_end())
}

/// `new` with the lines of `old` where both differ in blanks at their ends only.
fn kept(old: &[&str], mut new: Vec<String>) -> Vec<String> {
    let before: Vec<&str> = old.iter().map(|it| it.trim_end()).collect();
    let after: Vec<&str> = new.iter().map(|it| it.trim_end()).collect();
    let ops = compare(&before, &after);
    for op in ops {
        if let DiffOp::Equal {
            old_index,
            new_index,
            len,
        } = op
        {
            for it in 0..len {
                old[old_index + it].clone_into(&mut new[new_index + it]);
            }
        }
    }
    // The edges are lines of the file, whatever became of their indentation.
    if let (Some(first), Some(line)) = (new.first_mut(), old.first())
        && first.trim() == line.trim()
    {
        (*line).clone_into(first);
    }
    new
}

#[cfg(test)]
mod tests;
