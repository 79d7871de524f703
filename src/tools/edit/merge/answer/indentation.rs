//! The indentation that an answer gives to the lines of a part.

use std::collections::{BTreeMap, HashMap};

use super::{Misfit, Reader, Section, pairs, trimmed};
use crate::tools::edit::merge::{
    outline::{ancestors, blanks, declared, indent, is_attached, key},
    shown,
};

/// The indentation of a text, comments aside.
#[derive(Clone, Copy, Default)]
pub(super) struct Style {
    pub(super) has_tabs: bool,
    pub(super) has_spaces: bool,
    /// Width of a step; 0 if no line is indented further than the one before.
    pub(super) unit: usize,
}

impl Style {
    pub(super) fn new(lines: &[&str]) -> Self {
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
    pub(super) fn has(self, line: &str) -> bool {
        let first = line.chars().next().unwrap_or_default();
        is_attached(line)
            || match (self.has_tabs, self.has_spaces) {
                (true, false) => first != ' ',
                (false, true) => first != '\t',
                (true, true) | (false, false) => true,
            }
    }
}

impl Reader<'_> {
    /// Fails unless the new lines of a part are indented as the sketch says, by the lines that stay or by `known`, widths
    /// in the sketch and in the answer.
    pub(super) fn indented(
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
    pub(super) fn given(&self, now: &[&str], index: usize, at: usize) -> Result<(), Misfit> {
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
}

/// Fails unless equal indentation in the sketch is equal indentation in the answer, and more is more.
pub(super) fn even(section: &Section<'_>, now: &[&str]) -> Result<(), Misfit> {
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
