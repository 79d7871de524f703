//! The part of a change that the user lets be made: hunk by hunk, before anything is written.
//!
//! A change that is a text file's, new or not, can be made in part. What deletes a file, and what changes a cell of a
//! notebook (its hunks count the lines of the cell), is made whole or not at all.

use std::sync::Arc;

use super::text::{Text, plain, settle};
use crate::{
    protocol::{HunkAnswer, Operation},
    tools::{Change, Fault, Hunk},
};

/// A change of one file, and what the user said of its hunks.
#[derive(Clone, Debug, PartialEq)]
pub struct Picked {
    /// As it was proposed, for what is said of the parts that are not made.
    pub proposed: Change,
    /// The change to make; `None`: nothing of it.
    pub change: Option<Change>,
    /// All hunks, in their order; empty where the change is made as it was proposed, or left out as a whole.
    pub hunks: Vec<HunkDecision>,
    /// Why it was left out as a whole, in the user's words.
    pub why: Option<String>,
}

impl Picked {
    /// As it was proposed.
    pub fn whole(change: &Change) -> Self {
        Self {
            proposed: change.clone(),
            change: Some(change.clone()),
            hunks: Vec::new(),
            why: None,
        }
    }

    /// Nothing of it.
    pub fn left_out(change: &Change, why: Option<&str>) -> Self {
        Self {
            change: None,
            why: why.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()),
            ..Self::whole(change)
        }
    }

    fn is_left_out(&self) -> bool {
        self.change.is_none() && self.hunks.is_empty()
    }
}

/// The user's answer on one hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkDecision {
    /// As it is made, or as it would have been.
    pub hunk: Hunk,
    pub is_made: bool,
    /// The user has written something else in its place.
    pub is_edited: bool,
    /// For the model.
    pub comment: Option<String>,
}

/// The hunks of a change that can be chosen one by one; empty: it is made whole or not at all.
pub fn choices(change: &Change) -> &[Hunk] {
    match change.operation {
        Operation::Create | Operation::Edit | Operation::Rename if change.cell.is_none() => &change.hunks,
        Operation::Create | Operation::Edit | Operation::Rename | Operation::Delete | Operation::Other(_) => &[],
    }
}

/// The change that `answers` leave of one whose hunks can be chosen. A hunk that nothing is said of is not made.
pub fn pick(change: &Change, answers: &[HunkAnswer]) -> Result<Picked, Fault> {
    let broken = || {
        let shown = &change.file.shown;
        Fault::new("TOOL_FAILED", format!("`{shown}` cannot be changed in part"))
    };
    let old = match change.old.as_deref() {
        Some(bytes) => Some(Text::read(bytes).map_err(|_| broken())?),
        None => None,
    };
    let hunks: Vec<HunkDecision> = choices(change)
        .iter()
        .zip(1_u64..)
        .map(|(hunk, index)| said(hunk, answers.iter().rfind(|it| it.index == index)))
        .collect();
    let made: Vec<Hunk> = hunks.iter().filter(|it| it.is_made).map(|it| it.hunk.clone()).collect();
    let text = old.as_ref().map_or("", |it| it.text.as_str());
    let new = applied(text, &made).ok_or_else(broken)?;
    let bytes: Arc<[u8]> = match &old {
        Some(old) => old.write(&new).into(),
        None => new.into_bytes().into(),
    };
    // What the user wrote may be what is there already.
    let is_nothing = made.is_empty() || (change.to.is_none() && change.old.as_ref() == Some(&bytes));
    Ok(Picked {
        proposed: change.clone(),
        change: (!is_nothing).then(|| Change {
            new: Some(bytes),
            hunks: made,
            ..change.clone()
        }),
        hunks,
        why: None,
    })
}

fn said(hunk: &Hunk, answer: Option<&HunkAnswer>) -> HunkDecision {
    let is_made = answer.is_some_and(|it| it.accepted);
    let written = answer.and_then(|it| it.new_string.as_deref()).filter(|_| is_made);
    let written = written.map(|it| ended(hunk, &plain(it))).filter(|it| *it != hunk.new);
    let comment = answer.and_then(|it| it.comment.as_deref()).map(str::trim);
    HunkDecision {
        is_made,
        is_edited: written.is_some(),
        hunk: Hunk {
            new: written.unwrap_or_else(|| hunk.new.clone()),
            ..hunk.clone()
        },
        comment: comment.filter(|it| !it.is_empty()).map(str::to_owned),
    }
}

/// The text that the user wrote in the place of a hunk, with the line end that its last line must have: an editor adds
/// one, or leaves it out.
fn ended(hunk: &Hunk, written: &str) -> String {
    let like = if hunk.new.is_empty() { &hunk.old } else { &hunk.new };
    settle(like, written)
}

/// The text with the hunks made; `None`: they are not of this text.
fn applied(old: &str, hunks: &[Hunk]) -> Option<String> {
    let mut starts = vec![0];
    starts.extend(old.match_indices('\n').map(|(at, _)| at + 1));
    // Behind the last line, whether it has an end or not.
    if !old.ends_with('\n') {
        starts.push(old.len());
    }
    let place = |line: u64| starts.get(usize::try_from(line).ok()?).copied();
    let mut text = String::with_capacity(old.len());
    let mut at = 0;
    for hunk in hunks {
        let (from, until) = (place(hunk.start.checked_sub(1)?)?, place(hunk.end)?);
        if from < at || old.get(from..until)? != hunk.old {
            return None;
        }
        text.push_str(old.get(at..from)?);
        text.push_str(&hunk.new);
        at = until;
    }
    text.push_str(old.get(at..)?);
    Some(text)
}

/// The note for the model about a change that was made in part.
pub fn told(picked: &[Picked]) -> String {
    let mut lines = Vec::new();
    for it in picked {
        let shown = &it.proposed.file.shown;
        let count = it.hunks.len();
        let made = it.hunks.iter().filter(|it| it.is_made).count();
        if it.is_left_out() {
            let what = format!("The user did not let you {} `{shown}`.", it.proposed.operation);
            lines.push(match &it.why {
                Some(why) => format!("{what} The user says: {why}"),
                None => what,
            });
        }
        if made < count {
            lines.push(format!(
                "The user looked at the change before it was written and let {made} of {count} hunks of `{shown}` be written."
            ));
        }
        for (said, index) in it.hunks.iter().zip(1_u64..) {
            let place = place(&said.hunk);
            let what = match (said.is_made, said.is_edited) {
                (false, _) => format!("Not written: hunk {index} ({place})."),
                (true, true) => {
                    format!("Hunk {index} ({place}) was rewritten by the user and is kept as they wrote it.")
                }
                (true, false) if said.comment.is_some() => format!("Hunk {index} ({place}) was written."),
                (true, false) => continue,
            };
            match &said.comment {
                Some(comment) => lines.push(format!("{what} The user says: {comment}")),
                None => lines.push(what),
            }
        }
    }
    if picked
        .iter()
        .any(|it| it.is_left_out() || it.hunks.iter().any(|it| !it.is_made))
    {
        lines.push(
            "Leave what was not written as it is, unless the user asked for something else in its place.".to_owned(),
        );
    }
    lines.join("\n")
}

/// The lines of a hunk in the file before the change.
fn place(hunk: &Hunk) -> String {
    match (hunk.start, hunk.end) {
        (start, end) if end < start => format!("before line {start}"),
        (start, end) if end == start => format!("line {start}"),
        (start, end) => format!("lines {start} to {end}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::hunks::hunks, *};
    use crate::sandbox::Workspace;

    fn change(old: Option<&str>, new: &str) -> Change {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path()).unwrap();
        let text = old.map(|it| Text::read(it.as_bytes()).unwrap());
        Change {
            file: workspace.locate("a.rs").unwrap(),
            operation: if old.is_some() {
                Operation::Edit
            } else {
                Operation::Create
            },
            to: None,
            old: old.map(|it| it.as_bytes().into()),
            hunks: hunks(text.as_ref().map_or("", |it| &it.text), &plain(new)),
            new: Some(new.as_bytes().into()),
            cell: None,
        }
    }

    fn answer(index: u64, accepted: bool, new: Option<&str>) -> HunkAnswer {
        HunkAnswer {
            index,
            accepted,
            new_string: new.map(str::to_owned),
            comment: None,
        }
    }

    fn written(change: &Change, answers: &[HunkAnswer]) -> Option<String> {
        let picked = pick(change, answers).unwrap();
        let bytes = picked.change?.new?;
        Some(String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn only_what_was_accepted_is_written() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let change = change(Some(old), "one\n2\n3\n4\nfive\n6\n7\n8\n9\nten\n");
        assert_eq!(change.hunks.len(), 3);
        for (name, answers, result) in [
            ("nothing is said", vec![], None),
            (
                "all are rejected",
                vec![answer(1, false, None), answer(2, false, None)],
                None,
            ),
            (
                "the first",
                vec![answer(1, true, None)],
                Some("one\n2\n3\n4\n5\n6\n7\n8\n9\n"),
            ),
            (
                "the last two, one of them edited",
                vec![answer(2, true, Some("FIVE\nand more")), answer(3, true, None)],
                Some("1\n2\n3\n4\nFIVE\nand more\n6\n7\n8\n9\nten\n"),
            ),
            (
                "an edited one that is rejected after all",
                vec![
                    answer(1, true, Some("x")),
                    answer(1, false, Some("x")),
                    answer(3, true, None),
                ],
                Some("1\n2\n3\n4\n5\n6\n7\n8\n9\nten\n"),
            ),
            (
                "one that the user made empty",
                vec![answer(2, true, Some(""))],
                Some("1\n2\n3\n4\n6\n7\n8\n9\n"),
            ),
            (
                "one that the user made what it was",
                vec![answer(2, true, Some("5\n"))],
                None,
            ),
            (
                "hunks that there are not",
                vec![answer(0, true, None), answer(9, true, None)],
                None,
            ),
        ] {
            assert_eq!(written(&change, &answers).as_deref(), result, "{name}");
        }
    }

    #[test]
    fn line_ends_and_a_last_line_without_one_stay() {
        let returns = change(Some("a\r\nb\r\nc\r\nd\r\ne\r\n"), "A\r\nb\r\nc\r\nd\r\nE\r\n");
        assert_eq!(
            written(&returns, &[answer(2, true, Some("x\ny\n"))]).as_deref(),
            Some("a\r\nb\r\nc\r\nd\r\nx\r\ny\r\n")
        );
        let open = change(Some("a\nb\nc\nd\ne"), "A\nb\nc\nd\nE");
        assert_eq!(
            written(&open, &[answer(2, true, Some("x\n"))]).as_deref(),
            Some("a\nb\nc\nd\nx")
        );
    }

    #[test]
    fn a_new_file_is_written_as_the_user_wrote_it() {
        let new = change(None, "fn a() {}\n");
        assert_eq!(
            written(&new, &[answer(1, true, Some("fn b() {}"))]).as_deref(),
            Some("fn b() {}\n")
        );
        assert_eq!(written(&new, &[answer(1, false, None)]), None);
    }

    #[test]
    fn the_model_is_told_what_was_not_written_and_why() {
        let change = change(
            Some("1\n2\n3\n4\n5\n6\n7\n8\n9\n"),
            "one\n2\n3\n4\nfive\n6\n7\n8\n9\nten\n",
        );
        let answers = [
            answer(1, true, Some("uno\n")),
            HunkAnswer {
                comment: Some("use a constant".to_owned()),
                ..answer(2, false, None)
            },
            answer(3, true, None),
        ];
        let picked = pick(&change, &answers).unwrap();
        assert_eq!(
            told(&[picked]),
            "The user looked at the change before it was written and let 2 of 3 hunks of `a.rs` be written.\n\
             Hunk 1 (line 1) was rewritten by the user and is kept as they wrote it.\n\
             Not written: hunk 2 (line 5). The user says: use a constant\n\
             Leave what was not written as it is, unless the user asked for something else in its place."
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn all_hunks_make_the_change_and_none_leaves_the_file(
            old in "([a-d]\n){0,30}[a-d]?", new in "([a-d]\n){0,30}[a-d]?", some in any::<u64>(),
        ) {
            let change = change(Some(&old), &new);
            let all: Vec<_> = (1..=change.hunks.len() as u64).map(|it| answer(it, true, None)).collect();
            prop_assert_eq!(written(&change, &all), (old != new).then(|| new.clone()));
            let part: Vec<_> = all.iter().map(|it| answer(it.index, some >> (it.index % 64) & 1 == 1, None)).collect();
            let half = written(&change, &part).unwrap_or_else(|| old.clone());
            let made = part.iter().filter(|it| it.accepted).count();
            prop_assert_eq!(half == old, made == 0);
            prop_assert_eq!(half == new, made == change.hunks.len());
        }
    }
}
