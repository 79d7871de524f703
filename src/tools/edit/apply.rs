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
    // A file may hold the tags of an answer.
    if task.old.contains("<updated-code>")
        && let Ok(text) = judge(task, &answer, &errors)
    {
        return Ok(text);
    }
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
mod tests;
