//! `edit_file`: a change told by a sketch, in which marks stand for what stays.

use std::time::Duration;

use futures::StreamExt;
use serde_json::json;

use super::{
    arguments, cursor,
    edit::{
        apply::{self, Task},
        file,
        merge::{MergeRefusal, merge},
        sketch::parts,
        text::plain,
    },
    tool::{Class, Context, Fault, Input, Proposal, Tool, Work, schema},
    walk,
};
use crate::{
    index::errors,
    models::{Chosen, EndReason, ModelMessage, ModelRequest, Piece},
    protocol::{CallSubject, NotOffered, Progress},
    sandbox::{Located, Refused},
    text::language::language_of,
};

/// The description that a model is shown.
const ABOUT: &str = "\
    Change a file by a sketch: write only the changed parts, and put a comment such as `// ... existing code ...` for \
    each stretch of code that stays, also at the start and the end. Begin and end every part with three unchanged \
    lines of the file, copied letter by letter, so that its place is clear; what you leave out between these lines \
    is deleted. Read the file first. A file that does not exist is created with the text as it is.";

/// The tool `edit_file`.
pub fn tool() -> Tool {
    Tool {
        about: ABOUT.into(),
        schema: schema(
            json!({
                "target_file": { "type": "string" },
                "instructions": {
                    "type": "string",
                    "description": "One first-person sentence describing the change"
                },
                "code_edit": {
                    "type": "string",
                    "description": "Only the changed parts; unchanged stretches replaced by a comment: // ... existing code ..."
                }
            }),
            &["target_file", "instructions", "code_edit"],
        ),
        synonyms: &[
            ("target_file", arguments::FILE),
            ("code_edit", &["codeEdit", "edit", "update"]),
            ("instructions", &["instruction", "explanation"]),
        ],
        word: "edit".into(),
        subject: CallSubject::File,
        is_basic: true,
        cursor: Some(cursor::EDIT),
        withheld: |settings, _, is_small| {
            let style = settings.agent.edit_style.as_str();
            let fits = style == "sketch" || (!is_small && (style != "replace" || settings.roles.apply.is_some()));
            (!fits).then_some(NotOffered::EditStyle)
        },
        examples: &[
            r#"{ "target_file": "a.txt", "instructions": "i", "code_edit": "one\nTWO\nthree\n" }"#,
            r#"{ "target_file": "new.txt", "instructions": "i", "code_edit": "new\n" }"#,
        ],
        ..Tool::new("edit_file", Class::Writes, Work::change(merged))
    }
}

/// An apply model that says nothing for so long, or fails so often, is given up.
const APPLY_SILENCE: Duration = Duration::from_mins(1);
const MOST_APPLY_ATTEMPTS: u32 = 3;

/// A longer answer is no file.
const MOST_BYTES: usize = 8 << 20;

/// The merge by lines, and where it has to refuse, one by the model of `roles.apply`.
async fn merged(input: Input, context: Context) -> Result<Proposal, Fault> {
    let refused = match file::away(input.clone(), context.clone(), propose).await {
        Err(fault) if matches!(fault.code, "EDIT_NO_MATCH" | "EDIT_AMBIGUOUS") => fault,
        done => return done,
    };
    let Some(Chosen { provider, model }) = context.apply.clone() else {
        return Err(refused);
    };
    let own = (input.clone(), context.clone());
    let asked = walk::away(&context, move |_| question(&own.0, &own.1)).await?;
    let Some(asked) = asked else {
        return Err(refused);
    };
    let mut pieces = provider.stream(ModelRequest {
        model: model.clone(),
        system: apply::system(provider.peer(), &model).into(),
        messages: vec![ModelMessage::user(asked)],
        ..ModelRequest::default()
    });
    // What was refused stands, and says what to do; that the other model was no help, and why, is said beside it.
    let helpless = |why: &str| Fault {
        message: format!("{}; {why}", refused.message),
        ..refused.clone()
    };
    let mut answer = String::new();
    loop {
        let Ok(piece) = tokio::time::timeout(APPLY_SILENCE, pieces.next()).await else {
            return Err(helpless(&format!(
                "the apply model {model} said nothing for {} s",
                APPLY_SILENCE.as_secs()
            )));
        };
        let Some(piece) = piece else { break };
        match piece {
            Piece::Text(text) => answer.push_str(&text),
            // The model that asked can do it in another way sooner.
            Piece::Progress(Progress::Retrying { attempt, because, .. }) if attempt >= MOST_APPLY_ATTEMPTS => {
                return Err(helpless(&format!("the apply model {model} failed: {because}")));
            }
            Piece::Void => answer.clear(),
            Piece::Error(failure) => return Err(helpless(&format!("the apply model failed: {failure}"))),
            Piece::End(EndReason::Length) => return Err(helpless("the answer of the apply model was cut off")),
            Piece::End(EndReason::Refusal | EndReason::ContentFilter) => {
                return Err(helpless("the apply model refused to answer"));
            }
            _ => {}
        }
        if answer.len() > MOST_BYTES {
            return Err(helpless("the answer of the apply model was too long"));
        }
    }
    let own = (input, context.clone());
    let judged = walk::away(&context, move |_| answered(&own.0, &own.1, &answer)).await;
    judged.map_err(|fault| helpless(&fault.message))
}

fn propose(input: &Input, context: &Context) -> Result<Proposal, Fault> {
    let target = file::located(input, "target_file", context)?;
    let language = language_of(&target.shown);
    let sketch = sketch(input, language);
    let Some(opened) = file::find(&target, context)? else {
        if parts(&sketch, language).1 {
            let fault = Fault::from(Refused::Missing(target.shown));
            return Err(fault.hint("A sketch with marks needs a file that is there; a new one is written whole."));
        }
        return Ok(file::proposal(file::created(target, &sketch), ""));
    };
    context.seen.check(&opened.file, &opened.bytes)?;
    let old = &opened.text.text;
    let merged = merge(old, &sketch, language).map_err(|it| refused(&opened.file.shown, &it))?;
    worse(&opened.file, old, &merged)?;
    Ok(file::proposal(file::edited(&opened, &merged, context)?, ""))
}

/// The prompt for a model that merges where the lines alone are ambiguous; see [`apply`]. `None` for a sketch without code.
pub fn question(input: &Input, context: &Context) -> Result<Option<String>, Fault> {
    let target = file::located(input, "target_file", context)?;
    let opened = file::open(&target, context)?;
    context.seen.check(&opened.file, &opened.bytes)?;
    let language = language_of(&target.shown);
    let sketch = sketch(input, language);
    let is_code = !parts(&sketch, language).0.is_empty();
    Ok(is_code.then(|| {
        apply::prompt(&Task {
            old: &opened.text.text,
            sketch: &sketch,
            instructions: input.text("instructions").unwrap_or_default(),
            language,
        })
    }))
}

/// The change that the model's answer says, if it can be believed.
pub fn answered(input: &Input, context: &Context, answer: &str) -> Result<Proposal, Fault> {
    let target = file::located(input, "target_file", context)?;
    let opened = file::open(&target, context)?;
    let language = language_of(&target.shown);
    let task = Task {
        old: &opened.text.text,
        sketch: &sketch(input, language),
        instructions: input.text("instructions").unwrap_or_default(),
        language,
    };
    let text = apply::accept(&task, answer, |it| errors(&target.path, it)).map_err(|unfit| {
        let message = format!("the apply model's answer for `{}` was not used: {unfit}", target.shown);
        Fault::new("EDIT_NO_MATCH", message).hint(ADVICE)
    })?;
    Ok(file::proposal(file::edited(&opened, &text, context)?, ""))
}

const ADVICE: &str = "Read the file again and send the sketch with three unchanged lines before and after each change, or use \
                      `search_replace` with the exact text.";

/// The sketch of a call, without the fence around it that some models write.
fn sketch(input: &Input, language: &str) -> String {
    let sketch = plain(input.text("code_edit").unwrap_or_default());
    if language == "markdown" {
        return sketch;
    }
    let inner = sketch
        .trim()
        .strip_prefix("```")
        .and_then(|it| it.strip_suffix("\n```"));
    match inner.and_then(|it| it.split_once('\n')) {
        Some((tag, body)) if !tag.contains('`') && !body.contains("\n```") => format!("{body}\n"),
        Some(_) | None => sketch,
    }
}

fn refused(shown: &str, refusal: &MergeRefusal) -> Fault {
    let code = if refusal.is_ambiguous() {
        "EDIT_AMBIGUOUS"
    } else {
        "EDIT_NO_MATCH"
    };
    Fault::new(code, format!("the sketch was not merged into `{shown}`: {refusal}")).hint(ADVICE)
}

/// A merge that breaks the syntax is no merge.
fn worse(file: &Located, old: &str, new: &str) -> Result<(), Fault> {
    match (errors(&file.path, old), errors(&file.path, new)) {
        (Some(before), Some(after)) if after > before => {
            let message = format!(
                "the sketch was not merged into `{}`: it would have {after} errors of syntax, and has {before}",
                file.shown
            );
            Err(Fault::new("EDIT_NO_MATCH", message).hint(ADVICE))
        }
        (Some(_) | None, Some(_) | None) => Ok(()),
    }
}
