//! A sketch merged by a model: what it is asked, and whether its answer can be believed.
//!
//! The answer is a whole file, and models that write whole files drop parts of them and add others. So an answer is read
//! as a merge: it may only choose where the parts of the sketch belong ([`answer`]). Where the tiers have one result, it
//! must be that one.

use super::{
    hunks::places,
    merge::{
        answer::{self, Misfit},
        merge,
    },
    sketch::is_mark,
    text::{plain, rows},
};

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
    #[error("the answer is not the file with the sketch in it: {0}")]
    Misfit(#[from] Misfit),
    #[error("the answer has {after} errors of syntax where the file had {before}")]
    Broken { before: usize, after: usize },
}

/// Endpoints and models that were trained to merge and are documented to take one user message and no other. The first are
/// parts of a host, the others of a model's name.
const TRAINED_HOSTS: [&str; 3] = ["morphllm.com", "relace.run", "relace.ai"];
const TRAINED_MODELS: [&str; 2] = ["morph", "relace"];

/// The system prompt for `model` at `peer` (`openai at api.morphllm.com`): none for models that are trained to merge.
pub fn system(peer: &str, model: &str) -> &'static str {
    let model = model.rsplit('/').next().unwrap_or(model).to_lowercase();
    let is_trained =
        TRAINED_HOSTS.iter().any(|it| peer.contains(it)) || TRAINED_MODELS.iter().any(|it| model.starts_with(it));
    if is_trained { "" } else { SYSTEM }
}

/// The one message to a model that merges: the form that Morph and Relace document, and that chat models understand.
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
const SYSTEM: &str = "You merge changes into a file. You are given the file in <code>, and in <update> the changed parts of it, in which \
comments such as `... existing code ...` stand for parts that stay as they are. Answer with the whole file after the change between \
<updated-code> and </updated-code>, and with nothing else. Copy what stays letter by letter; leave nothing out.";

/// The file that an answer means, if it can be believed. `errors` counts errors of syntax, where that can be done.
pub fn accept(task: &Task<'_>, answer: &str, errors: impl Fn(&str) -> Option<usize>) -> Result<String, Unfit> {
    let answer = plain(answer);
    let mut refused = None;
    for text in bare(&answer)? {
        match judge(task, text, &errors) {
            Ok(text) => return Ok(text),
            Err(unfit) => refused = Some(unfit),
        }
    }
    Err(refused.unwrap_or(Unfit::Empty))
}

fn judge(task: &Task<'_>, text: &str, errors: &impl Fn(&str) -> Option<usize>) -> Result<String, Unfit> {
    let (old, sketch) = (task.old, task.sketch);
    if text.trim().is_empty() {
        return Err(Unfit::Empty);
    }
    if is_same(text, old) {
        return Err(Unfit::Idle);
    }
    // A file may have such a comment of its own.
    let own = rows(old);
    let is_left = |it: &&str| is_mark(it, task.language) && !own.iter().any(|line| line.trim() == it.trim());
    if let Some(mark) = rows(text).into_iter().find(is_left) {
        return Err(Unfit::Mark(mark.trim().to_owned()));
    }
    let worse = |text: &str| match (errors(old), errors(text)) {
        (Some(before), Some(after)) if after > before => Err(Unfit::Broken { before, after }),
        (Some(_) | None, Some(_) | None) => Ok(()),
    };
    // What lines alone decide, no model decides otherwise.
    if let Ok(merged) = merge(old, sketch, task.language)
        && (is_same(text, &merged) || worse(&merged).is_ok())
    {
        return match difference(&merged, text) {
            Some(misfit) => Err(misfit.into()),
            None => worse(&merged).map(|()| merged),
        };
    }
    let merged = answer::read(old, sketch, task.instructions, task.language, text)?;
    worse(&merged)?;
    Ok(merged)
}

/// The lines of a text that count: without blank ones, and without blanks at the ends of lines.
fn solid(text: &str) -> Vec<&str> {
    let lines = rows(text).into_iter().map(str::trim_end);
    lines.filter(|it| !it.is_empty()).collect()
}

fn is_same(text: &str, other: &str) -> bool {
    solid(text) == solid(other)
}

/// The first line by which a text differs from the one that it should be.
fn difference(wants: &str, text: &str) -> Option<Misfit> {
    let (wants, text) = (solid(wants), solid(text));
    let (old, new) = places(&wants, &text).into_iter().next()?;
    let line = |line: &&str| line.trim().to_owned();
    Some(
        match (text.get(new.start).filter(|_| !new.is_empty()), wants.get(old.start)) {
            (Some(it), _) => Misfit::Invented { line: line(it) },
            (None, it) => Misfit::Lacking {
                line: it.map(line).unwrap_or_default(),
            },
        },
    )
}

/// The code of an answer: between the tags of one kind of models, or in the fence of another; else all of it. There may
/// be several readings, of which the first that can be believed is the right one.
fn bare(answer: &str) -> Result<Vec<&str>, Unfit> {
    let mut text = answer;
    if let Some((_, rest)) = text.split_once("<updated-code>") {
        text = rest.rsplit_once("</updated-code>").ok_or(Unfit::Cut)?.0;
        text = text.strip_prefix('\n').unwrap_or(text);
    }
    let Some(start) = fence(text) else {
        return Ok(vec![text]);
    };
    let is_begun = text.split_at(start).0.trim().is_empty();
    match fenced(text.split_at(start).1) {
        Some(inner) if is_begun => Ok(vec![inner]),
        // A file may hold fences of its own.
        Some(inner) => Ok(vec![text, inner]),
        None if is_begun => Err(Unfit::Cut),
        None => Ok(vec![text]),
    }
}

/// The place of the first fence in a text.
fn fence(text: &str) -> Option<usize> {
    if text.trim_start().starts_with("```") {
        return Some(text.len() - text.trim_start().len());
    }
    text.find("\n```").map(|it| it + 1)
}

/// What stands between the fence that a text begins with and the last one that ends it; `None` if that is missing.
fn fenced(text: &str) -> Option<&str> {
    let ticks = text.len() - text.trim_start_matches('`').len();
    let end = format!("\n{}", "`".repeat(ticks));
    let (_, body) = text.split_once('\n')?;
    // An empty fence ends in its second line.
    if body.trim_end() == end.trim_start() {
        return Some("");
    }
    let (at, _) = body.rmatch_indices(&end).find(|(at, _)| {
        let after = body.split_at(at + end.len()).1;
        after.split('\n').next().unwrap_or_default().trim().is_empty()
    })?;
    Some(body.split_at(at).0)
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
        ] {
            assert_eq!(judge(&answer), Err(wants), "{answer}");
        }
        for (answer, wants) in [
            (
                OLD.replace("    2\n", "    23\n"),
                "it has the line `23`, which is neither",
            ),
            (
                "fn b() {\n    22\n}\n".to_owned(),
                "it lacks line 1 of the file, `fn a() {`",
            ),
            (
                new.replace("fn a() {\n    1\n}\n", ""),
                "it lacks line 1 of the file, `fn a() {`",
            ),
            (
                new.replace("\nfn c() {\n    3\n}\n", ""),
                "it lacks line 11 of the file, `}`",
            ),
            (
                new.replace("    3\n", "    33\n"),
                "it has the line `33`, which is neither",
            ),
            (
                new.replace("    22\n", "        22\n    \n")
                    .replace("    1\n", "  1\n"),
                "it has the line `1`",
            ),
            (
                format!("{new}// Done.\n"),
                "it has the line `// Done.`, which is neither",
            ),
            (
                new.replace("}\n\nfn c", "}\nfn b() {\n    22\n}\n\nfn c"),
                "is not the file with the sketch in it",
            ),
        ] {
            let unfit = judge(&answer).expect_err(&answer).to_string();
            assert!(unfit.contains(wants), "{unfit}\n{answer}");
        }
    }

    /// What a sketch of `OLD` and the answer come to: the whole answer, or a part of the reason.
    #[track_caller]
    fn check(sketch: &str, instructions: &str, answer: &str, wants: Result<(), &str>) {
        let task = Task {
            sketch,
            instructions,
            ..task()
        };
        match (accept(&task, answer, |_| None), wants) {
            (Ok(text), Ok(())) => assert_eq!(text, answer, "{sketch}"),
            (Err(unfit), Err(wants)) => assert!(unfit.to_string().contains(wants), "{unfit}\n{sketch}"),
            (judged, wants) => panic!("{judged:?}, wants {wants:?}\n{sketch}"),
        }
    }

    #[test]
    fn a_part_without_unchanged_lines_has_few_places() {
        let new = "fn d() {\n    4\n}\n";
        let sketch = format!("// ...\n{new}// ...\n");
        check(&sketch, "", &format!("{OLD}\n{new}"), Ok(()));
        check(&sketch, "", &OLD.replace("fn b", &format!("{new}\nfn b")), Ok(()));
        // Inside of a function, or in place of one.
        check(
            &sketch,
            "",
            &OLD.replace("    2\n", &format!("    2\n{new}")),
            Err("says where `fn d() {` belongs"),
        );
        check(
            &sketch,
            "",
            &OLD.replace("fn b() {\n    2\n}\n", new),
            Err("lacks line 5 of the file, `fn b() {`"),
        );
        // It declares what is there.
        let sketch = "// ...\nfn b(x: u8) {\n    x\n}\n// ...\n";
        let whole = "fn b(x: u8) {\n    x\n}\n";
        check(sketch, "", &OLD.replace("fn b() {\n    2\n}\n", whole), Ok(()));
        check(
            sketch,
            "",
            &format!("{OLD}\n{whole}"),
            Err("keeps the old form of `b` beside the new one"),
        );
        check(
            "// ...\n    call();\n// ...\n",
            "",
            &OLD.replace("    2\n", "    2\n    call();\n"),
            Err("says where `call();`"),
        );
        // An import comes to imports, or to the top.
        let sketch = "use a::B;\n// ...\n";
        check(sketch, "", &format!("use a::B;\n{OLD}"), Ok(()));
        check(
            sketch,
            "",
            &OLD.replace("fn b", "use a::B;\nfn b"),
            Err("says where `use a::B;`"),
        );
    }

    #[test]
    fn what_fits_twice_needs_a_sign() {
        let old = "impl A {\n    fn go() {\n        x\n    }\n}\n\nimpl B {\n    fn go() {\n        x\n    }\n}\n";
        let change = |at: usize| {
            let (before, after) = old.split_at(old.match_indices("        x\n").nth(at).expect("it is there").0);
            format!("{before}{}", after.replacen("        x\n", "        x\n        y\n", 1))
        };
        let judge = |sketch: &str, instructions: &str, at: usize| {
            let task = Task {
                old,
                sketch,
                instructions,
                language: "rust",
            };
            accept(&task, &change(at), |_| None)
        };
        let sketch = "// ...\n    fn go() {\n        x\n        y\n    }\n// ...\n";
        for at in [0, 1] {
            let unfit = judge(sketch, "I add y.", at).expect_err("nothing says which");
            assert!(unfit.to_string().contains("nothing says which is meant"), "{unfit}");
        }
        assert!(judge(sketch, "I add y to B.", 0).is_err());
        assert!(judge(sketch, "I add y to `B`.", 1).is_ok());
        let shown = "// ...\nimpl B {\n    // ...\n    fn go() {\n        x\n        y\n    }\n}\n";
        assert!(judge(shown, "", 0).is_err());
        assert!(judge(shown, "", 1).is_ok());
    }

    #[test]
    fn what_goes_is_named() {
        let without = OLD.replace("fn b() {\n    2\n}\n\n", "");
        check("// ...\n// removed b\n// ...\n", "", &without, Ok(()));
        check("// ...\n// removed c\n// ...\n", "", &without, Err("removed c"));
        check("// ...\n    1\n}\n\nfn c() {\n    3\n// ...\n", "", &without, Ok(()));
        let body: String = (0..40).map(|it| format!("    line_{it}();\n")).collect();
        let old = OLD.replace("    2\n", &body);
        let judge = |instructions| {
            let sketch = "// ...\n    1\n}\n\nfn c() {\n    3\n// ...\n";
            let task = Task {
                old: &old,
                sketch,
                instructions,
                language: "rust",
            };
            accept(&task, &without, |_| None)
        };
        assert!(judge("I remove b.").is_ok());
        assert!(judge("I remove the middle.").is_err());
        assert!(judge("I change b.").is_err());
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
    fn models_that_are_trained_to_merge_have_no_system_prompt() {
        for (peer, model) in [
            ("openai at api.morphllm.com", "auto"),
            ("openai at instantapply.endpoint.relace.run", "auto"),
            ("openai at openrouter.ai", "morph/morph-v3-fast"),
            ("openai at openrouter.ai", "relace/relace-apply-3"),
        ] {
            assert_eq!(system(peer, model), "", "{peer} {model}");
        }
        for (peer, model) in [
            ("openai at 127.0.0.1:8080", "FastApply-7B-v1.0"),
            ("openai at openrouter.ai", "morphic/large"),
            ("openai at openrouter.ai", "a/polymorph"),
        ] {
            assert_eq!(system(peer, model), SYSTEM, "{peer} {model}");
        }
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
