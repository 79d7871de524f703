//! Finds who wrote a line: undoes the changes of a file, the newest first, until one of them brought the line.
//!
//! A change that cannot be undone because somebody else edited the file since is left out, and the line is followed
//! by its words.

use crate::text::diff::{self, LineKind};

/// One change of the file.
#[derive(Clone, Copy, Debug)]
pub struct Edit<'a> {
    /// `None` if the entire file was written and its previous text is unknown.
    pub old: Option<&'a str>,
    pub new: &'a str,
    /// The line that `old` began at, counted from 1, if it is known.
    pub first_line: Option<u64>,
}

/// Which of the changes it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub step: usize,
    /// The file could be followed back to it; otherwise its words are the same, and no more is known.
    pub is_certain: bool,
}

/// Finds the change that wrote a line. `line` counts from 1; `steps` come newest first. `None` if no change did.
pub fn origin<'a>(text: &str, line: usize, steps: impl Iterator<Item = Edit<'a>>) -> Option<Origin> {
    let mut text = text.to_owned();
    let mut at = line.checked_sub(1)?;
    let words = text.lines().nth(at)?.to_owned();
    let mut alike = None;
    let mut is_certain = true;
    for (number, step) in steps.enumerate() {
        let found = Origin {
            step: number,
            is_certain,
        };
        let Some(old) = step.old else {
            if step.new.lines().nth(at) == Some(&words) || step.new.lines().any(|it| it == words) {
                return Some(Origin {
                    is_certain: is_certain && step.new == text,
                    ..found
                });
            }
            continue;
        };
        if old.is_empty() && step.new.is_empty() {
            continue;
        }
        let Some(start) = find(&text, step.new, step.first_line) else {
            is_certain = false;
            let brought = alike.is_none() && !words.trim().is_empty() && adds(old, step.new, &words);
            alike = alike.or(brought.then_some(Origin {
                is_certain: false,
                ..found
            }));
            continue;
        };
        let end = start + step.new.len();
        // Whole lines, so that a piece of a line counts as the line.
        let from = text.get(..start)?.rfind('\n').map_or(0, |it| it + 1);
        let to = match text.get(end..)?.find('\n') {
            _ if end > from && text.get(..end)?.ends_with('\n') => end,
            Some(it) => end + it + 1,
            None => text.len(),
        };
        let head = text.get(from..start)?.to_owned();
        let tail = text.get(end..to)?.to_owned();
        let (old_lines, new_lines) = (format!("{head}{old}{tail}"), text.get(from..to)?.to_owned());
        let first = text.get(..from)?.matches('\n').count();
        let count = new_lines.split_inclusive('\n').count();
        if at >= first + count {
            at = at + old_lines.split_inclusive('\n').count() - count;
        } else if at >= first {
            match behind(&old_lines, &new_lines, at - first) {
                Some(inner) => at = first + inner,
                None => return Some(found),
            }
        }
        text.replace_range(from..to, &old_lines);
    }
    alike
}

/// Returns the byte at which a change's new text stands: at the line where it was put, else the only place that has
/// it.
fn find(text: &str, new: &str, first_line: Option<u64>) -> Option<usize> {
    if new.is_empty() {
        // A removal leaves nothing to look for but its place.
        let line = usize::try_from(first_line?).ok()?.checked_sub(1)?;
        let mut starts = std::iter::once(0).chain(text.match_indices('\n').map(|it| it.0 + 1));
        return starts.nth(line);
    }
    if let Some(line) = first_line.and_then(|it| usize::try_from(it).ok()?.checked_sub(1)) {
        let mut starts = std::iter::once(0).chain(text.match_indices('\n').map(|it| it.0 + 1));
        if let Some(start) = starts.nth(line) {
            let row = text.get(start..)?;
            let within = row.find('\n').unwrap_or(row.len());
            if let Some(it) = row.find(new).filter(|it| *it <= within) {
                return Some(start + it);
            }
        }
    }
    let mut places = text.match_indices(new);
    let only = places.next()?.0;
    places.next().is_none().then_some(only)
}

/// The line of `old` that line `at` of `new` was; `None` when the change has brought it. Both count from 0.
fn behind(old: &str, new: &str, at: usize) -> Option<usize> {
    let whole = diff::diff(old, new, 0, 0, usize::MAX);
    if whole.lines.is_empty() {
        return Some(at);
    }
    let line = whole
        .lines
        .iter()
        .find(|it| it.new == Some(at) && it.kind != LineKind::Removed)?;
    match line.kind {
        LineKind::Context => line.old,
        LineKind::Added | LineKind::Removed | LineKind::Skip(_) => None,
    }
}

fn adds(old: &str, new: &str, words: &str) -> bool {
    let lines = diff::diff(old, new, 1, 1, 0).lines;
    lines.iter().any(|it| it.kind == LineKind::Added && it.text == words)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn edit<'a>(old: &'a str, new: &'a str, first_line: u64) -> Edit<'a> {
        Edit {
            old: Some(old),
            new,
            first_line: (first_line > 0).then_some(first_line),
        }
    }

    fn certain(step: usize) -> Origin {
        Origin { step, is_certain: true }
    }

    #[test]
    fn each_line_is_followed_back_to_who_brought_it() {
        // Oldest: the file is written; then b becomes B with a line behind it; then a line is put in front of all.
        let steps = [
            edit("", "zero\n", 1),
            edit("b\n", "B\nB2\n", 2),
            Edit {
                old: None,
                new: "a\nb\nc\n",
                first_line: None,
            },
        ];
        let text = "zero\na\nB\nB2\nc\n";
        for (line, step) in [(1, 0), (2, 2), (3, 1), (4, 1), (5, 2)] {
            assert_eq!(
                origin(text, line, steps.iter().copied()),
                Some(certain(step)),
                "line {line}"
            );
        }
        assert_eq!(origin(text, 6, steps.iter().copied()), None);
        assert_eq!(origin(text, 0, steps.iter().copied()), None);
    }

    #[test]
    fn what_stays_inside_of_a_change_is_not_its() {
        let steps = [edit("one\ntwo\nthree\n", "one\nTWO\nthree\n", 1)];
        let text = "one\nTWO\nthree\n";
        assert_eq!(origin(text, 1, steps.iter().copied()), None);
        assert_eq!(origin(text, 2, steps.iter().copied()), Some(certain(0)));
        assert_eq!(origin(text, 3, steps.iter().copied()), None);
    }

    #[test]
    fn a_piece_of_a_line_counts_as_the_line() {
        let steps = [edit("1", "2", 2)];
        assert_eq!(origin("a\nlet x = 2;\nb\n", 2, steps.iter().copied()), Some(certain(0)));
        assert_eq!(origin("a\nlet x = 2;\nb\n", 3, steps.iter().copied()), None);
    }

    #[test]
    fn what_others_have_changed_since_is_followed_by_its_words() {
        // The user has taken the second line of the change away again.
        let steps = [edit("b\n", "B\nB2\n", 2)];
        let text = "a\nB\nc\n";
        assert_eq!(
            origin(text, 2, steps.iter().copied()),
            Some(Origin {
                step: 0,
                is_certain: false
            })
        );
        assert_eq!(origin(text, 1, steps.iter().copied()), None);
    }

    #[test]
    fn a_removal_moves_what_is_behind_it() {
        let steps = [edit("gone\n", "", 1), edit("b\n", "B\n", 3)];
        assert_eq!(origin("a\nB\n", 2, steps.iter().copied()), Some(certain(1)));
    }

    proptest! {
        /// Random edits of whole lines, of which a table beside them knows who brought each line.
        #[test]
        fn the_last_one_who_brought_a_line_is_found(
            start in 1usize..6,
            edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..3, 0usize..3), 1..8),
        ) {
            let mut lines: Vec<(String, Option<usize>)> = (0..start).map(|it| (format!("start {it}\n"), None)).collect();
            let mut made: Vec<(String, String, u64)> = Vec::new();
            for (number, (place, remove, add)) in edits.iter().enumerate() {
                let at = place.index(lines.len() + 1);
                let end = (at + remove).min(lines.len());
                let old: String = lines[at..end].iter().map(|it| it.0.as_str()).collect();
                let new: Vec<_> = (0..*add).map(|it| (format!("edit {number} {it}\n"), Some(number))).collect();
                let text: String = new.iter().map(|it| it.0.as_str()).collect();
                if old.is_empty() && text.is_empty() {
                    continue;
                }
                lines.splice(at..end, new);
                made.push((old, text, at as u64 + 1));
                let last = made.len() - 1;
                for line in lines.iter_mut().filter(|it| it.1 == Some(number)) {
                    line.1 = Some(last);
                }
            }
            let text: String = lines.iter().map(|it| it.0.as_str()).collect();
            let steps = || made.iter().rev().map(|(old, new, at)| edit(old, new, *at));
            for (number, (words, brought)) in lines.iter().enumerate() {
                let found = origin(&text, number + 1, steps());
                let expected = brought.map(|it| made.len() - 1 - it);
                prop_assert_eq!(found.map(|it| it.step), expected, "line {}: {:?} of\n{}\n{:?}", number + 1, words, text, made);
            }
        }
    }
}
