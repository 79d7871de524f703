//! Whether each part is at the place that is meant: what else would fit, and why an answer is not believed.

use std::collections::HashSet;

use similar::DiffOp;

use super::{
    EFFECT_STEPS, Effect, MOST_READINGS, Misfit, Place, Reader, Rival, Section, cost, costs, pairs,
    section::{block_names, declares},
    trimmed, unmatched,
};
use crate::tools::edit::{
    hunks::compare,
    merge::{
        FITTING_MARGIN, GUARD_LINES, MOST_RIVALS, MOST_STEPS,
        outline::{ancestors, declared, indent, is_attached, is_continuation},
        shown,
    },
};

impl<'a> Reader<'a> {
    /// Fails unless each part is where it says, and nowhere else as well.
    pub(super) fn judge(&mut self, sections: &[Section<'a>], places: &[Place]) -> Result<(), Misfit> {
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
    pub(super) fn inserted(
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

    /// The number of names of blocks around a line of the file that are in the instructions.
    pub(super) fn named(&self, at: usize, depth: usize) -> usize {
        let lines = &self.file.lines;
        let above = ancestors(lines, at, depth).into_iter();
        let found: HashSet<&str> = above
            .flat_map(|it| block_names(lines[it]))
            .filter(|it| self.wanted.contains(it))
            .collect();
        found.len()
    }

    /// Other places that fit a part as well as the one that it has, or better.
    pub(super) fn rivals(&mut self, section: &Section<'a>, place: &Place) -> Result<Vec<Rival>, Misfit> {
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
    pub(super) fn is_alike(&self, lines: &[&'a str], place: &Place, other: (usize, usize), skipped: usize) -> bool {
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

    /// The reason that helps most.
    pub(super) fn reason(&mut self, sections: &[Section<'a>], first: Option<(usize, Misfit)>) -> Misfit {
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
