//! Hooks around a message of the user: when the conversation begins, and before the message is sent.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    agent::{hooks::Hooks, tags::wrap, turn::Submission},
    extensions::hooks::{Common, Decision, Occasion, Point},
    models::Effort,
    protocol::Message,
};

/// The answers of hooks about a message.
#[derive(Debug, Default)]
pub struct Asked {
    /// The reason why it is not sent.
    pub blocked: Option<String>,
    /// Text that the model is told before it.
    pub told: Option<String>,
}

/// The facts that all hooks of an answer are told.
pub fn common(submission: &Submission, root: PathBuf) -> Common {
    let setup = &submission.setup;
    let effort = match setup.model.effort {
        Some(Effort::Off) => "off",
        Some(Effort::Low) => "low",
        Some(Effort::Medium) => "medium",
        Some(Effort::High) => "high",
        None => "",
    };
    Common {
        conversation: setup.conversation.to_string(),
        generation: setup.response.to_string(),
        model: setup.model.name.clone(),
        root: root.to_string_lossy().into_owned(),
        mode: submission.mode.as_str().to_owned(),
        effort: effort.to_owned(),
    }
}

/// The files that a message names behind an `@`, absolute.
fn files(text: &str, root: Option<&Path>) -> Vec<String> {
    let Some(root) = root else { return Vec::new() };
    let named = text.split_whitespace().filter_map(|it| it.strip_prefix('@'));
    let paths = named.map(|it| root.join(it.trim_end_matches(['.', ',', ':', ';', '?', '!'])));
    let files = paths.filter(|it| it.is_file());
    files.map(|it| it.to_string_lossy().into_owned()).collect()
}

/// Calls the hooks of a message; `is_first`: the conversation begins with it, `is_resumed`: it goes on after an earlier run of
/// the program.
pub async fn run(hooks: &Arc<Hooks>, message: &Message, is_first: bool, is_resumed: bool) -> Asked {
    let mut told = Vec::new();
    if (is_first || is_resumed) && hooks.has(Point::SessionStart) {
        let source = if is_resumed { "resume" } else { "startup" };
        let merged = hooks
            .run(Occasion::SessionStart {
                source: source.to_owned(),
            })
            .await;
        told.push(merged.context);
    }
    let mut asked = Asked::default();
    if hooks.has(Point::Prompt) {
        let merged = hooks
            .run(Occasion::Prompt {
                text: message.content.clone(),
                files: files(&message.content, hooks.root()),
            })
            .await;
        let halt = merged.halt.clone();
        asked.blocked = match merged.decision {
            Some(Decision::Deny) => Some(merged.reason),
            Some(Decision::Ask | Decision::Allow) | None => halt,
        };
        told.push(merged.context);
    }
    told.retain(|it| !it.is_empty());
    asked.told = (!told.is_empty()).then(|| wrap("hook_context", &told.join("\n\n")));
    asked
}
