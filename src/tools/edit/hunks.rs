//! The places where two texts differ, as edits that can be shown, refused and undone one by one.
//!
//! A hunk holds whole lines with their ends, so that it says exactly what is replaced by what: a last line that gains its
//! line end differs too. Line ends are `\n`. Places that stand close together are one hunk, and a text that differs
//! everywhere has few long hunks rather than thousands of short ones.

use std::{collections::HashMap, fmt::Write as _, ops::Range};

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::tools::Hunk;

/// Unchanged lines between two places up to which they are one: read apart they make no sense.
const JOINED_LINES: usize = 2;
/// Hunks of one change: each becomes a document.
const MOST: usize = 100;
/// Unchanged lines around a hunk in a unified diff.
const CONTEXT_LINES: usize = 3;
/// Lines that are recorded on either side of a hunk, and their bytes.
const SURROUNDING_LINES: usize = 12;
const SURROUNDING_BYTES: usize = 2 << 10;

/// Lines with their ends.
pub fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The operations that turn `old` into `new`. Depends on the texts alone; difficult ones give a longer answer, not a
/// slower one.
pub fn compare(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    // Comparing numbers instead of lines: each line is hashed once.
    let mut numbers = HashMap::new();
    let mut number = |line| {
        let next = numbers.len();
        *numbers.entry(line).or_insert(next)
    };
    let old: Vec<usize> = old.iter().map(|&it| number(it)).collect();
    let new: Vec<usize> = new.iter().map(|&it| number(it)).collect();
    capture_diff_slices(Algorithm::Myers, &old, &new)
}

/// The places that differ, first to last.
pub fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    let (old, new) = (lines(old), lines(new));
    let places = joined(places(&old, &new));
    places
        .into_iter()
        .map(|(before, after)| Hunk {
            old: old[before.clone()].concat(),
            new: new[after].concat(),
            start: before.start as u64 + 1,
            end: before.end as u64,
        })
        .collect()
}

/// The unchanged lines of `old` before and after each hunk: as many as a reader may want to see, up to the next hunk.
pub fn surroundings(old: &str, hunks: &[Hunk]) -> Vec<(String, String)> {
    let old = lines(old);
    let line = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).min(old.len());
    let mut found = Vec::with_capacity(hunks.len());
    for (at, hunk) in hunks.iter().enumerate() {
        let start = line(hunk.start.saturating_sub(1));
        let end = line(hunk.end).max(start);
        let from = at
            .checked_sub(1)
            .and_then(|it| hunks.get(it))
            .map_or(0, |it| line(it.end));
        let until = hunks
            .get(at + 1)
            .map_or(old.len(), |it| line(it.start.saturating_sub(1)));
        let before = old.get(from..start).unwrap_or_default();
        let after = old.get(end..until).unwrap_or_default();
        let kept = within(before.iter().rev());
        let before = before.get(before.len() - kept..).unwrap_or_default();
        let after = after.get(..within(after.iter())).unwrap_or_default();
        found.push((before.concat(), after.concat()));
    }
    found
}

/// Counts the first lines that are kept as surroundings.
fn within<'a>(lines: impl Iterator<Item = &'a &'a str>) -> usize {
    let mut bytes = 0;
    let fits = |it: &&'a &'a str| {
        bytes += it.len();
        bytes <= SURROUNDING_BYTES
    };
    lines.take(SURROUNDING_LINES).take_while(fits).count()
}

/// Lines that come and lines that go.
pub fn counts(old: &str, new: &str) -> (usize, usize) {
    let places = places(&lines(old), &lines(new));
    let sum =
        |(added, removed), (before, after): (Range<usize>, Range<usize>)| (added + after.len(), removed + before.len());
    places.into_iter().fold((0, 0), sum)
}

/// The hunks as a unified diff of a file whose text was `old`: what `git diff` would print, without its head of names.
pub fn unified(old: &str, hunks: &[Hunk]) -> String {
    let old = lines(old);
    let mut text = String::new();
    // Lines by which the new text is ahead of the old one.
    let mut ahead = 0_i64;
    let mut rest = hunks;
    while let Some(first) = rest.first() {
        // Hunks whose surroundings touch share a head.
        let near = |pair: &&[Hunk]| pair[1].start <= pair[0].end + 2 * CONTEXT_LINES as u64 + 1;
        let count = 1 + rest.windows(2).take_while(near).count();
        let (group, more) = rest.split_at(count);
        rest = more;
        let clamp = |line: u64| (line as usize).min(old.len());
        let from = clamp(first.start.saturating_sub(1)).saturating_sub(CONTEXT_LINES);
        let mut body = String::new();
        let mut at = from;
        let (mut added, mut removed) = (0, 0);
        for hunk in group {
            let start = clamp(hunk.start.saturating_sub(1)).max(at);
            signed(&mut body, ' ', &old[at..start]);
            signed(&mut body, '-', &lines(&hunk.old));
            signed(&mut body, '+', &lines(&hunk.new));
            removed += lines(&hunk.old).len();
            added += lines(&hunk.new).len();
            at = clamp(hunk.end).max(start);
        }
        let until = clamp((at + CONTEXT_LINES) as u64);
        signed(&mut body, ' ', &old[at..until]);
        let before = until - from;
        let after = before + added - removed;
        let start = |line: i64, count: usize| if count == 0 { line } else { line + 1 };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "@@ -{},{before} +{},{after} @@",
            start(from as i64, before),
            start(from as i64 + ahead, after),
        );
        text.push_str(&body);
        ahead += added as i64 - removed as i64;
    }
    text
}

fn signed(text: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// Lines of the old text and what stands there in the new one, for each stretch that differs.
pub fn places(old: &[&str], new: &[&str]) -> Vec<(Range<usize>, Range<usize>)> {
    let mut places: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for op in compare(old, new) {
        if let DiffOp::Equal { .. } = op {
            continue;
        }
        let (before, after) = (op.old_range(), op.new_range());
        match places.last_mut() {
            Some(last) if last.0.end == before.start && last.1.end == after.start => {
                last.0.end = before.end;
                last.1.end = after.end;
            }
            Some(_) | None => places.push((before, after)),
        }
    }
    places
}

fn joined(places: Vec<(Range<usize>, Range<usize>)>) -> Vec<(Range<usize>, Range<usize>)> {
    let mut gaps: Vec<usize> = places
        .windows(2)
        .map(|pair| pair[1].0.start - pair[0].0.end)
        .filter(|it| *it > JOINED_LINES)
        .collect();
    let mut near = JOINED_LINES;
    if gaps.len() >= MOST {
        gaps.sort_unstable();
        near = gaps[gaps.len() - MOST];
    }
    let mut joined: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for (before, after) in places {
        match joined.last_mut() {
            Some(last) if before.start - last.0.end <= near => {
                last.0.end = before.end;
                last.1.end = after.end;
            }
            Some(_) | None => joined.push((before, after)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text after the hunks are made.
    fn made(old: &str, hunks: &[Hunk]) -> String {
        let old = lines(old);
        let mut new = String::new();
        let mut at = 0;
        for hunk in hunks {
            let start = hunk.start as usize - 1;
            new.extend(old[at..start].iter().copied());
            assert_eq!(old[start..hunk.end as usize].concat(), hunk.old);
            new.push_str(&hunk.new);
            at = hunk.end as usize;
        }
        new.extend(old[at..].iter().copied());
        new
    }

    fn check(old: &str, new: &str, wants: &[(&str, &str, u64, u64)]) {
        let found = hunks(old, new);
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.old.as_str(), it.new.as_str(), it.start, it.end))
            .collect();
        assert_eq!(found, wants, "{old:?} {new:?}");
    }

    #[test]
    fn a_hunk_says_what_is_replaced_by_what() {
        check("a\nb\nc\n", "a\nB\nc\n", &[("b\n", "B\n", 2, 2)]);
        check("a\nc\n", "a\nb\nc\n", &[("", "b\n", 2, 1)]);
        check("a\n", "new\na\n", &[("", "new\n", 1, 0)]);
        check("a\n", "a\nnew\n", &[("", "new\n", 2, 1)]);
        check("", "new\n", &[("", "new\n", 1, 0)]);
        check("a\nb\nc\n", "a\nc\n", &[("b\n", "", 2, 2)]);
        check("a\n", "", &[("a\n", "", 1, 1)]);
        check("a\nb", "a\nb\n", &[("b", "b\n", 2, 2)]);
        check("a\n", "a\n", &[]);
    }

    #[test]
    fn the_lines_around_a_hunk_end_at_the_next_one_and_at_the_ends_of_the_file() {
        let numbered = |range: Range<usize>| -> String { range.map(|it| format!("{it}\n")).collect() };
        let check = |old: &str, new: &str, wants: &[(&str, &str)]| {
            let found = surroundings(old, &hunks(old, new));
            let found: Vec<_> = found.iter().map(|it| (it.0.as_str(), it.1.as_str())).collect();
            assert_eq!(found, wants, "{old:?} {new:?}");
        };
        check("a\nb\nc\n", "a\nB\nc\n", &[("a\n", "c\n")]);
        check("a\nb\n", "A\nb\n", &[("", "b\n")]);
        check("a\nb", "a\nb\nc", &[("a\n", "")]);
        check("a\nc", "a\nb\nc", &[("a\n", "c")]);
        check("", "new\n", &[("", "")]);
        check("a\n", "", &[("", "")]);
        check("a\n", "a\n", &[]);
        check(
            "a\n1\n2\n3\nb\nc\n",
            "A\n1\n2\n3\nB\nc\n",
            &[("", "1\n2\n3\n"), ("1\n2\n3\n", "c\n")],
        );
        // Far from everything, so many lines; and no long ones.
        let old = numbered(1..61);
        let new = old.replace("\n30\n", "\nthirty\n");
        check(&old, &new, &[(&numbered(18..30), &numbered(31..43))]);
        let long = format!("{}\n", "x".repeat(SURROUNDING_BYTES));
        check(
            &format!("{long}a\nb\n{long}"),
            &format!("{long}a\nB\n{long}"),
            &[("a\n", "")],
        );
    }

    #[test]
    fn places_that_stand_close_are_one() {
        check(
            "a\n1\n2\nb\n",
            "A\n1\n2\nB\n",
            &[("a\n1\n2\nb\n", "A\n1\n2\nB\n", 1, 4)],
        );
        check(
            "a\n1\n2\n3\nb\n",
            "A\n1\n2\n3\nB\n",
            &[("a\n", "A\n", 1, 1), ("b\n", "B\n", 5, 5)],
        );
    }

    #[test]
    fn a_text_that_differs_everywhere_has_few_hunks() {
        let old: String = (0..5000).map(|it| format!("{it}\n")).collect();
        let new: String = (0..5000)
            .map(|it| {
                if it % 5 == 0 {
                    "x\n".to_owned()
                } else {
                    format!("{it}\n")
                }
            })
            .collect();
        let found = hunks(&old, &new);
        assert!((1..=MOST).contains(&found.len()), "{}", found.len());
        assert_eq!(made(&old, &found), new);
        assert_eq!(counts(&old, &new), (1000, 1000));
    }

    #[test]
    fn a_unified_diff_reads_as_one() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n";
        let new = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16";
        assert_eq!(
            unified(old, &hunks(old, new)),
            "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n\
             @@ -13,3 +13,4 @@\n 13\n 14\n 15\n+16\n\\ No newline at end of file\n"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn hunks_make_the_new_text(old in "([a-d]\n){0,30}[a-d]?", new in "([a-d]\n){0,30}[a-d]?") {
            let found = hunks(&old, &new);
            prop_assert_eq!(made(&old, &found), new);
            for pair in found.windows(2) {
                prop_assert!(pair[0].end < pair[1].start);
            }
        }
    }
}
