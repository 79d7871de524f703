//! A sketch merged by a model: what it is asked, and whether its answer can be believed.
//!
//! The answer is a whole file, and models that write whole files drop parts of them. So an answer is taken only if it
//! holds all that the sketch says, in order, no mark of it, and about as much as the file did.

use super::{
    sketch::{is_mark, parts},
    text::{plain, rows, settle},
};

/// An answer may be so much shorter than the file, unless something is to be removed.
const LEAST_SHARE: f64 = 0.5;
/// Words of an instruction by which much may go.
const REMOVALS: [&str; 10] = [
    "remove", "delete", "drop", "strip", "clean", "simplif", "extract", "move", "replace", "rewrite",
];

/// A request to merge a sketch.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    pub old: &'a str,
    pub sketch: &'a str,
    /// The change in a sentence; may be empty.
    pub instructions: &'a str,
    /// A tag of ours.
    pub language: &'a str,
}

/// Why an answer is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("the answer is empty")]
    Empty,
    #[error("the answer breaks off")]
    Cut,
    #[error("the answer is the file as it was")]
    Idle,
    #[error("the answer still contains the mark `{0}`")]
    Mark(String),
    #[error("the answer lacks the line `{0}` of the sketch")]
    Lacking(String),
    #[error("the answer has {after} of {before} lines, and nothing was to be removed")]
    Short { before: usize, after: usize },
    #[error("the answer has {after} errors of syntax where the file had {before}")]
    Broken { before: usize, after: usize },
}

/// The one message to a model that merges. Chat models and those trained for it know this form.
pub fn prompt(task: &Task<'_>) -> String {
    let Task {
        old,
        sketch,
        instructions,
        language: _,
    } = task;
    format!("<instruction>{instructions}</instruction>\n<code>{old}</code>\n<update>{sketch}</update>")
}

/// The system prompt for a chat model that was not trained for merging.
pub const SYSTEM: &str = "You merge changes into a file. You are given the file in <code>, and in <update> the changed parts of it, in which \
comments such as `... existing code ...` stand for parts that stay as they are. Answer with the whole file after the change between \
<updated-code> and </updated-code>, and with nothing else. Copy what stays letter by letter; leave nothing out.";

/// The file that an answer holds, if it can be believed. `errors` counts errors of syntax, where that can be done.
pub fn accept(task: &Task<'_>, answer: &str, errors: impl Fn(&str) -> Option<usize>) -> Result<String, Unfit> {
    let (old, sketch) = (task.old, task.sketch);
    let answer = plain(answer);
    let text = bare(&answer)?;
    if text.trim().is_empty() {
        return Err(Unfit::Empty);
    }
    let text = settle(old, text);
    if text == old {
        return Err(Unfit::Idle);
    }
    let own: Vec<&str> = rows(old).into_iter().map(str::trim).collect();
    let lines: Vec<&str> = rows(&text).into_iter().map(str::trim).collect();
    // A file may have such a comment of its own.
    let mark = lines.iter().find(|it| is_mark(it, task.language) && !own.contains(it));
    if let Some(mark) = mark {
        return Err(Unfit::Mark((*mark).to_owned()));
    }
    let mut rest = lines.iter();
    for line in parts(sketch, task.language).0.into_iter().flat_map(|it| it.lines) {
        let line = line.trim();
        if !line.is_empty() && !rest.any(|it| *it == line) {
            return Err(Unfit::Lacking(line.to_owned()));
        }
    }
    let solid = |lines: &[&str]| lines.iter().filter(|it| !it.is_empty()).count();
    let (before, after) = (solid(&own), solid(&lines));
    if (after as f64) < LEAST_SHARE * before as f64 && !removes(task.instructions) {
        return Err(Unfit::Short { before, after });
    }
    match (errors(old), errors(&text)) {
        (Some(before), Some(after)) if after > before => Err(Unfit::Broken { before, after }),
        (Some(_) | None, Some(_) | None) => Ok(text),
    }
}

fn removes(instructions: &str) -> bool {
    let instructions = instructions.to_lowercase();
    REMOVALS.iter().any(|it| instructions.contains(it))
}

/// The code of an answer: between the tags of one kind of models, or in the fence of another.
fn bare(answer: &str) -> Result<&str, Unfit> {
    let mut text = answer;
    if let Some((_, rest)) = text.split_once("<updated-code>") {
        text = rest.rsplit_once("</updated-code>").ok_or(Unfit::Cut)?.0;
        text = text.strip_prefix('\n').unwrap_or(text);
    }
    let inner = text.trim();
    let Some(fenced) = inner.strip_prefix("```") else {
        return Ok(text);
    };
    let ticks = 3 + fenced.len() - fenced.trim_start_matches('`').len();
    let (_, body) = fenced.split_once('\n').ok_or(Unfit::Cut)?;
    let (body, last) = body.rsplit_once('\n').ok_or(Unfit::Cut)?;
    if last.trim() == "`".repeat(ticks) {
        Ok(body)
    } else {
        Err(Unfit::Cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "fn a() {\n    1\n}\n\nfn b() {\n    2\n}\n\nfn c() {\n    3\n}\n";
    const SKETCH: &str = "// ... existing code ...\nfn b() {\n    22\n}\n// ... existing code ...\n";

    fn task() -> Task<'static> {
        Task {
            old: OLD,
            sketch: SKETCH,
            instructions: "I change b.",
            language: "rust",
        }
    }

    fn judge(answer: &str) -> Result<String, Unfit> {
        accept(&task(), answer, |_| None)
    }

    #[test]
    fn a_whole_file_is_taken_however_it_is_wrapped() {
        let new = OLD.replace("    2\n", "    22\n");
        for answer in [
            new.clone(),
            new.trim_end().to_owned(),
            format!("<updated-code>{new}</updated-code>"),
            format!("Here it is:\n<updated-code>\n{new}</updated-code>\nDone."),
            format!("```rust\n{new}```"),
            format!("\n````\n{new}\n````\n"),
            format!("<updated-code>\n```rust\n{new}```\n</updated-code>"),
            new.replace('\n', "\r\n"),
        ] {
            assert_eq!(
                judge(&answer).map(|it| it.trim_end().to_owned()),
                Ok(new.trim_end().to_owned()),
                "{answer}"
            );
        }
    }

    #[test]
    fn what_cannot_be_believed_is_not_taken() {
        let new = OLD.replace("    2\n", "    22\n");
        for (answer, wants) in [
            (String::new(), Unfit::Empty),
            ("```\n\n```".to_owned(), Unfit::Empty),
            (OLD.to_owned(), Unfit::Idle),
            (format!("<updated-code>{new}"), Unfit::Cut),
            (format!("```rust\n{new}"), Unfit::Cut),
            (
                new.replace("fn a() {\n    1\n}", "// ... existing code ..."),
                Unfit::Mark("// ... existing code ...".to_owned()),
            ),
            (OLD.replace("    2\n", "    23\n"), Unfit::Lacking("22".to_owned())),
            ("fn b() {\n    22\n}\n".to_owned(), Unfit::Short { before: 9, after: 3 }),
        ] {
            assert_eq!(judge(&answer), Err(wants), "{answer}");
        }
        let removal = Task {
            instructions: "I remove all but b",
            ..task()
        };
        assert!(accept(&removal, "fn b() {\n    22\n}\n", |_| None).is_ok());
        // The lines are there, in another order.
        let swapped = Task {
            sketch: "// ...\nfn c() {\n// ...\nfn a() {\n// ...",
            ..task()
        };
        assert_eq!(
            accept(&swapped, &new, |_| None),
            Err(Unfit::Lacking("fn a() {".to_owned()))
        );
    }

    #[test]
    fn syntax_may_not_get_worse() {
        let new = OLD.replace("    2\n", "    22\n");
        let errors = |text: &str| Some(usize::from(text.contains("22")));
        assert_eq!(
            accept(&task(), &new, errors),
            Err(Unfit::Broken { before: 0, after: 1 })
        );
        assert!(accept(&task(), &new, |_| Some(3)).is_ok());
    }

    #[test]
    fn a_file_may_have_such_a_comment_of_its_own() {
        let old = format!("// ... rest of it ...\n{OLD}");
        let own = Task { old: &old, ..task() };
        let new = old.replace("    2\n", "    22\n");
        assert_eq!(accept(&own, &new, |_| None), Ok(new.clone()));
    }

    #[test]
    fn the_question_has_three_parts() {
        assert_eq!(
            prompt(&Task {
                old: "a\n",
                sketch: "b\n",
                instructions: "c",
                language: ""
            }),
            "<instruction>c</instruction>\n<code>a\n</code>\n<update>b\n</update>"
        );
    }
}
