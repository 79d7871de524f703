//! Compact store of output: text, and the offsets at which lines end and looks begin.

use std::{collections::VecDeque, fmt::Write as _, ops::Range};

use unicode_width::UnicodeWidthStr as _;

use super::{ROWS, SEGMENT_BYTES, number};
use crate::text::{Background, Cleaner, Modifier, Role, Sanitized, Span, figure};

/// Lines in compact form. All but the last segment hold whole lines.
#[derive(Debug, Default)]
pub(super) struct Store {
    pub(super) segments: VecDeque<Segment>,
    pub(super) look: Look,
    pub(super) cleaner: Cleaner,
    /// A byte of the open line, counted from its start, and its column: the last known pair.
    pub(super) column: (usize, usize),
    /// Number of lines after the first segment that were dropped.
    pub(super) dropped: usize,
    /// All in one segment, however large.
    pub(super) whole: bool,
}

impl Store {
    pub(super) fn last(&mut self) -> &mut Segment {
        if self.segments.is_empty() {
            self.segments.push_back(Segment::default());
        }
        self.segments.back_mut().expect("one was pushed if there was none")
    }

    /// Text without line ends or tabs, in the current look.
    pub(super) fn text(&mut self, text: &str) {
        let look = self.look;
        self.last();
        let Some(last) = self.segments.back_mut() else { return };
        last.look(look);
        self.cleaner.push_to(text, &mut last.text);
    }

    pub(super) fn tab(&mut self) {
        let (mut from, mut column) = self.column;
        let last = self.last();
        let open = last.text.get(last.open_start()..).unwrap_or_default();
        column += open.get(from..).unwrap_or_default().width();
        from = open.len();
        let blanks = 8 - column % 8;
        self.column = (from + blanks, column + blanks);
        self.text("        ".get(..blanks).unwrap_or_default());
    }

    pub(super) fn line_end(&mut self) {
        self.cleaner.finish();
        self.column = (0, 0);
        let last = self.last();
        last.ends.push(last.text.len() as u32);
        if !self.whole
            && self
                .segments
                .back()
                .is_some_and(|it| it.weight_bytes() >= SEGMENT_BYTES)
        {
            let last = self.last();
            // An emulator that comes up later needs the last lines in one place.
            let keep = last.last_lines_within(SEGMENT_BYTES / 4, usize::from(ROWS.get()));
            let next = last.split_off(last.ends.len() - keep);
            self.segments.push_back(next);
        }
    }

    /// Text with line ends and colour sequences, as the emulator writes it.
    pub(super) fn formatted(&mut self, text: &str) {
        for (i, line) in text.split('\n').enumerate() {
            if i > 0 {
                self.last().trim_open_line();
                self.line_end();
            }
            let mut pieces = line.split("\x1b[");
            if let Some(first) = pieces.next().filter(|it| !it.is_empty()) {
                self.text(first);
            }
            for piece in pieces {
                let (parameters, rest) = piece.split_once('m').unwrap_or((piece, ""));
                self.look.apply(parameters);
                if !rest.is_empty() {
                    self.text(rest);
                }
            }
        }
    }

    pub(super) fn has_open_line(&self) -> bool {
        self.segments.back().is_some_and(|it| it.open_start() < it.text.len())
    }

    /// The unfinished line alone.
    pub(super) fn open_line(&self) -> Segment {
        self.segments
            .back()
            .map(|it| it.part(it.ends.len()))
            .unwrap_or_default()
    }

    /// Removes the last finished lines and the open one; returns them as input for a terminal, looks included.
    pub(super) fn take_last(&mut self, count: usize) -> String {
        let last = self.last();
        let taken = last.split_off(last.ends.len().saturating_sub(count));
        let mut wire = String::new();
        let mut look = Look::default();
        for i in 0..=taken.ends.len() {
            if i > 0 {
                wire.push_str("\r\n");
            }
            taken.pieces(taken.range(i), |text, piece| {
                piece.write_after(&mut look, &mut wire);
                wire.push_str(text);
            });
        }
        self.look.write_after(&mut look, &mut wire);
        self.look = Look::default();
        self.cleaner.finish();
        self.column = (0, 0);
        wire
    }

    /// Replaces the open line with `live`; the text after it has the look `look`.
    pub(super) fn close_with(&mut self, live: &Segment, look: Look) {
        let last = self.last();
        let finished = last.ends.len();
        last.split_off(finished);
        last.append(live);
        self.look = look;
        self.cleaner.finish();
        self.column = (0, 0);
    }

    /// Drops the oldest lines after the first segment until the rest takes at most `limit_bytes`.
    pub(super) fn shrink(&mut self, limit_bytes: usize) {
        while self.segments.len() > 2 && self.weight_bytes() > limit_bytes {
            if let Some(gone) = self.segments.remove(1) {
                self.dropped += gone.ends.len();
            }
        }
    }

    /// Finished lines; the gap that shrinking leaves counts as one.
    pub(super) fn lines_total(&self) -> usize {
        self.segments.iter().map(|it| it.ends.len()).sum::<usize>() + usize::from(self.dropped > 0)
    }

    pub(super) fn line(&self, mut i: usize) -> Vec<Span> {
        for (nth, segment) in self.segments.iter().enumerate() {
            if i < segment.ends.len() {
                return segment.line(i);
            }
            i -= segment.ends.len();
            if nth == 0 && self.dropped > 0 {
                if i == 0 {
                    let gap = format!("… {} …", figure::grouped(self.dropped as u64));
                    return vec![Span::new(gap, Role::Dim)];
                }
                i -= 1;
            }
        }
        Vec::new()
    }

    pub(super) fn weight_bytes(&self) -> usize {
        self.segments.iter().map(Segment::weight_bytes).sum()
    }
}

/// A stretch of lines: text without line ends, the offsets at which lines end, and the looks.
#[derive(Clone, Debug, Default)]
pub(super) struct Segment {
    pub(super) text: String,
    pub(super) ends: Vec<u32>,
    pub(super) runs: Vec<Run>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) start: u32,
    pub(super) look: Look,
}

impl Segment {
    /// From here on text has this look.
    pub(super) fn look(&mut self, look: Look) {
        let start = self.text.len() as u32;
        if let Some(last) = self.runs.last_mut().filter(|it| it.start == start) {
            last.look = look;
        } else if self.runs.last().map_or(Look::default(), |it| it.look) != look {
            self.runs.push(Run { start, look });
        }
    }

    /// Returns the byte at which the unfinished line begins.
    pub(super) fn open_start(&self) -> usize {
        self.ends.last().map_or(0, |&it| it as usize)
    }

    /// Returns the byte range of line `i`; the one after the last finished line is the open one.
    pub(super) fn range(&self, i: usize) -> Range<usize> {
        let start = i
            .checked_sub(1)
            .and_then(|it| self.ends.get(it))
            .map_or(0, |&it| it as usize);
        let end = self.ends.get(i).map_or(self.text.len(), |&it| it as usize);
        start..end
    }

    pub(super) fn lines_total(&self) -> usize {
        self.ends.len() + usize::from(self.open_start() < self.text.len())
    }

    pub(super) fn line(&self, i: usize) -> Vec<Span> {
        let mut spans = Vec::new();
        self.pieces(self.range(i), |text, look| {
            let text = Sanitized::line(text);
            if !text.is_empty() {
                spans.push(Span {
                    text,
                    role: look.role,
                    modifier: look.modifier,
                    background: look.background,
                    link: None,
                });
            }
        });
        spans
    }

    /// The parts of `range` that have one look each.
    pub(super) fn pieces<'a>(&'a self, range: Range<usize>, mut each: impl FnMut(&'a str, Look)) {
        let mut at = range.start;
        let mut next = self.runs.partition_point(|it| it.start as usize <= at);
        let mut look = next
            .checked_sub(1)
            .and_then(|it| self.runs.get(it))
            .map_or(Look::default(), |it| it.look);
        while at < range.end {
            let run = self.runs.get(next).filter(|it| (it.start as usize) < range.end);
            let end = run.map_or(range.end, |it| it.start as usize);
            each(self.text.get(at..end).unwrap_or_default(), look);
            at = end;
            if let Some(run) = run {
                look = run.look;
                next += 1;
            }
        }
    }

    /// A copy of the lines from `line` on.
    pub(super) fn part(&self, line: usize) -> Self {
        let start = self.range(line).start;
        let mut runs = Vec::new();
        let first = self.runs.partition_point(|it| it.start as usize <= start);
        if let Some(before) = first.checked_sub(1).and_then(|it| self.runs.get(it)) {
            runs.push(Run { start: 0, ..*before });
        }
        runs.extend(self.runs.iter().skip(first).map(|it| Run {
            start: it.start - start as u32,
            ..*it
        }));
        Self {
            text: self.text.get(start..).unwrap_or_default().to_owned(),
            ends: self.ends.iter().skip(line).map(|it| it - start as u32).collect(),
            runs,
        }
    }

    /// Moves the lines from `line` on into a segment of their own.
    pub(super) fn split_off(&mut self, line: usize) -> Self {
        let rest = self.part(line);
        let start = self.range(line).start;
        self.text.truncate(start);
        self.ends.truncate(line);
        let runs = self.runs.partition_point(|it| (it.start as usize) < start);
        self.runs.truncate(runs);
        rest
    }

    /// Adds the lines of `other`; the own open line is empty.
    pub(super) fn append(&mut self, other: &Self) {
        let start = self.text.len() as u32;
        self.look(Look::default());
        self.text.push_str(&other.text);
        self.ends.extend(other.ends.iter().map(|it| it + start));
        for run in &other.runs {
            let start = run.start + start;
            if self.runs.last().is_some_and(|it| it.start == start) {
                self.runs.pop();
            }
            self.runs.push(Run { start, ..*run });
        }
    }

    /// Returns how many of the last finished lines fit into both `most_bytes` and `most_lines`.
    pub(super) fn last_lines_within(&self, most_bytes: usize, most_lines: usize) -> usize {
        let end = self.open_start();
        let small = |i: &usize| end - self.range(*i).start <= most_bytes;
        (0..self.ends.len()).rev().take(most_lines).take_while(small).count()
    }

    /// Takes the blanks from the end of the open line: the emulator cannot tell erased cells from printed blanks, and
    /// erasing in a colour would make every line as wide as the emulator.
    pub(super) fn trim_open_line(&mut self) {
        let open = self.text.get(self.open_start()..).unwrap_or_default();
        let end = self.open_start() + open.trim_end_matches(' ').len();
        self.text.truncate(end);
        let runs = self.runs.partition_point(|it| (it.start as usize) < end);
        self.runs.truncate(runs);
    }

    pub(super) fn weight_bytes(&self) -> usize {
        self.text.len() + self.ends.len() * size_of::<u32>() + self.runs.len() * size_of::<Run>()
    }
}

/// Look that colour sequences have set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) role: Role,
    pub(super) background: Background,
    pub(super) modifier: Modifier,
}

impl Look {
    pub(super) const MARKS: [(u32, u32, Modifier); 7] = [
        (1, 22, Modifier::BOLD),
        (2, 22, Modifier::FAINT),
        (3, 23, Modifier::ITALIC),
        (4, 24, Modifier::UNDERLINE),
        (21, 24, Modifier::UNDERLINE),
        (7, 27, Modifier::REVERSE),
        (9, 29, Modifier::STRIKE),
    ];

    /// Applies the parameters of a sequence `CSI … m`. Unknown ones are skipped.
    pub(super) fn apply(&mut self, parameters: &str) {
        let mut rest = parameters.split(';');
        while let Some(parameter) = rest.next() {
            let mut parts = parameter.split(':');
            let code = parts.next().map_or(0, number);
            match code {
                0 => *self = Self::default(),
                // `4:0` is no underline, `4:3` a curly one.
                4 if parts.next() == Some("0") => self.unmark(Modifier::UNDERLINE),
                1 | 2 | 3 | 4 | 7 | 9 | 21 => {
                    for (_, _, mark) in Self::MARKS.iter().filter(|it| it.0 == code) {
                        self.modifier |= *mark;
                    }
                }
                22 | 23 | 24 | 27 | 29 => {
                    for (_, _, mark) in Self::MARKS.iter().filter(|it| it.1 == code) {
                        self.unmark(*mark);
                    }
                }
                30..=37 => self.role = Role::Indexed((code - 30) as u8),
                90..=97 => self.role = Role::Indexed((code - 90 + 8) as u8),
                39 => self.role = Role::Text,
                40..=47 => self.background = Background::Indexed((code - 40) as u8),
                100..=107 => self.background = Background::Indexed((code - 100 + 8) as u8),
                49 => self.background = Background::Plain,
                38 | 48 | 58 => {
                    let colour = if parameter.contains(':') {
                        // `38:2::r:g:b` has a colour space before the parts, `38:2:r:g:b` has not.
                        let mut parts: Vec<u32> = parts.map(number).collect();
                        if parts.first() == Some(&2) && parts.len() > 4 {
                            parts.remove(1);
                        }
                        Colour::of(parts.into_iter())
                    } else {
                        Colour::of(rest.by_ref().map(number))
                    };
                    match (code, colour) {
                        (38, Some(Colour::Indexed(i))) => self.role = Role::Indexed(i),
                        (38, Some(Colour::Rgb(r, g, b))) => self.role = Role::Rgb(r, g, b),
                        (48, Some(Colour::Indexed(i))) => self.background = Background::Indexed(i),
                        (48, Some(Colour::Rgb(r, g, b))) => self.background = Background::Rgb(r, g, b),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
    }

    pub(super) fn unmark(&mut self, gone: Modifier) {
        let all = [
            Modifier::BOLD,
            Modifier::ITALIC,
            Modifier::UNDERLINE,
            Modifier::STRIKE,
            Modifier::REVERSE,
            Modifier::FAINT,
        ];
        let mut left = Modifier::NONE;
        for mark in all.into_iter().filter(|&it| it != gone && self.modifier.contains(it)) {
            left |= mark;
        }
        self.modifier = left;
    }

    /// Writes the sequence that leads from `before` to this look, if they differ, and stores it there.
    pub(super) fn write_after(self, before: &mut Self, out: &mut String) {
        if *before == self {
            return;
        }
        *before = self;
        out.push_str("\x1b[0");
        // Writing to a string does not fail.
        for (code, _, mark) in Self::MARKS {
            if code != 21 && self.modifier.contains(mark) {
                let _ = write!(out, ";{code}");
            }
        }
        if let Role::Indexed(i) = self.role {
            let _ = write!(out, ";38;5;{i}");
        } else if let Role::Rgb(r, g, b) = self.role {
            let _ = write!(out, ";38;2;{r};{g};{b}");
        }
        if let Background::Indexed(i) = self.background {
            let _ = write!(out, ";48;5;{i}");
        } else if let Background::Rgb(r, g, b) = self.background {
            let _ = write!(out, ";48;2;{r};{g};{b}");
        }
        out.push('m');
    }
}

pub(super) enum Colour {
    Indexed(u8),
    Rgb(u8, u8, u8),
}

impl Colour {
    /// Reads the parameters after 38 or 48: `5;n` or `2;r;g;b`. `None` for others.
    pub(super) fn of(mut parts: impl Iterator<Item = u32>) -> Option<Self> {
        let kind = parts.next()?;
        let mut byte = || parts.next().map(u8::try_from);
        match kind {
            5 => Some(Self::Indexed(byte()?.ok()?)),
            2 => {
                let (red, green, blue) = (byte()?, byte()?, byte()?);
                Some(Self::Rgb(red.ok()?, green.ok()?, blue.ok()?))
            }
            _ => None,
        }
    }
}
