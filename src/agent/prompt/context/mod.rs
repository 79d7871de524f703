//! What a model is told of the world around a conversation: the machine, git, the tree, the files one works on.
//!
//! The first message is gathered once, on other threads, from the moment the program starts; whoever sends early sends
//! what is there and says so. It is never rewritten: servers cache what begins alike. What changes later stands in front
//! of the newest message.

mod change;
pub mod client;
mod environment;
mod figures;
pub mod files;
mod git;
mod layout;
pub mod mentions;
mod message;
pub mod symbols;

use std::{collections::BTreeMap, fmt::Write, path::PathBuf, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::task::JoinHandle;

pub use change::{FileWatch, stale};
pub use environment::environment;
pub use figures::{Sent, measure};
pub use files::{Files, List, walk};
pub use git::Status;
pub use layout::{Style, layout};
pub use message::{Surroundings, Told, message_parts, open, steering_parts};

use super::rules::RuleSet;
use crate::{
    agent::{
        approval::RunMode,
        tags::{name, wrap, wrap_ours},
    },
    sandbox::{Commands, Workspace},
    tools::lints::{Diagnostic, Findings, Severity},
};

/// The whole text about the layout.
const LAYOUT_BYTES: usize = 8 << 10;
/// Files that are named as viewed, and as open.
const VIEWED: usize = 10;
/// Mistakes that are named.
const LINTS: usize = 20;
/// Lines of a larger file are not counted.
const COUNTED_BYTES: u64 = 1 << 20;
/// The walk of the tree says itself when it has taken too long.
const PATIENCE: Duration = Duration::from_mins(1);

/// The first context of a conversation, while it is being gathered. Dropping it ends the work.
#[derive(Debug)]
pub struct Gathering {
    workspace: Arc<Workspace>,
    files: Files,
    git: Task<Option<Status>>,
    layout: Task<Option<String>>,
    /// What holds commands and edits.
    holds: Task<String>,
}

/// A task that ends when nobody waits for it any more.
#[derive(Debug)]
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The first context of a conversation, sent before its first message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirstContext {
    pub user_info: String,
    pub git_status: Option<String>,
    /// The tree, without the lines above it.
    pub project_layout: Option<String>,
    /// Something was not ready.
    pub is_partial: bool,
}

impl Gathering {
    /// Begins to look around. Returns at once; needs a runtime.
    pub fn start(workspace: Arc<Workspace>, run: RunMode) -> Self {
        let files = Files::of(Arc::clone(&workspace));
        let git = {
            let workspace = Arc::clone(&workspace);
            tokio::spawn(async move { git::status(&workspace).await })
        };
        let layout = {
            let (files, root) = (files.clone(), shown_root(&workspace));
            tokio::spawn(async move {
                let list = files.ready(PATIENCE).await?;
                let drawn = tokio::task::spawn_blocking(move || tree(&list, &root));
                drawn.await.ok()
            })
        };
        let holds = {
            let workspace = Arc::clone(&workspace);
            // The first look at the sandbox is a trial of some milliseconds.
            let look = move || environment(Commands::tier(), workspace.commands().gaps(), run);
            tokio::task::spawn_blocking(look)
        };
        Self {
            workspace,
            files,
            holds: Task(holds),
            git: Task(git),
            layout: Task(layout),
        }
    }

    /// The files of the workspace, which are kept up after the conversation has begun.
    pub fn files(&self) -> Files {
        self.files.clone()
    }

    /// Waits at most `within`. Returns the parts that are ready.
    pub async fn ready(mut self, within: Duration) -> FirstContext {
        let (git, holds, layout) = tokio::join!(
            tokio::time::timeout(within, &mut self.git.0),
            tokio::time::timeout(within, &mut self.holds.0),
            tokio::time::timeout(within, &mut self.layout.0),
        );
        let is_partial = git.is_err() || layout.is_err();
        let git = git.ok().and_then(Result::ok).flatten();
        FirstContext {
            user_info: user_info(&self.workspace, git.as_ref(), holds.ok().and_then(Result::ok)),
            git_status: git.map(|it| it.text),
            project_layout: layout.ok().and_then(Result::ok).flatten(),
            is_partial,
        }
    }
}

impl FirstContext {
    /// The message, in its tags.
    pub fn text(&self) -> String {
        self.parts().into_iter().map(|it| it.1).collect::<Vec<_>>().join("\n")
    }

    /// Returns a reminder with the parts that differ from `before`, the message as it was told once; `None`: none does.
    pub fn since(&self, before: &str) -> Option<String> {
        let changed = self.parts().into_iter().filter(|it| !before.contains(&it.1));
        let changed: Vec<String> = changed
            .map(|(tag, text)| match tag {
                // The old tree is still a fair guide, and the model looks for itself where it matters.
                "project_layout" => {
                    "The project's tree has changed since: look for yourself where it matters.".to_owned()
                }
                _ => text,
            })
            .collect();
        let about = "The user continues this conversation after a pause. What is different now:";
        (!changed.is_empty()).then(|| wrap_ours("system_reminder", &format!("{about}\n{}", changed.join("\n"))))
    }

    /// Each tag and all of its text.
    pub fn parts(&self) -> Vec<(&'static str, String)> {
        let mut parts = vec![("user_info", wrap("user_info", &self.user_info))];
        if let Some(status) = &self.git_status {
            let about = "As git saw it when the conversation began; it is not updated.";
            parts.push(("git_status", wrap("git_status", &format!("{about}\n{status}"))));
        }
        let layout = match &self.project_layout {
            // Names in it are safe already, and the limit is on what is sent.
            Some(tree) => Some(wrap_ours("project_layout", &format!("{LAYOUT_NOTE}\n{tree}"))),
            None if self.is_partial => Some(wrap_ours("project_layout", LATE_NOTE)),
            None => None,
        };
        parts.extend(layout.map(|it| ("project_layout", it)));
        parts
    }
}

const LAYOUT_NOTE: &str = "Taken when the conversation began; it is not updated. What ignore files name is left out.";

const LATE_NOTE: &str = "The tree was not read yet when this message was sent. Look for yourself where it matters.";

/// The root of the workspace as a line.
fn shown_root(workspace: &Workspace) -> String {
    let root = name(&workspace.root().to_string_lossy());
    format!("{}/", root.trim_end_matches('/'))
}

/// The tree below its root, with what has to be said of it.
fn tree(list: &List, root: &str) -> String {
    let note = if list.is_partial {
        "[there are more files, or some could not be read]\n"
    } else {
        ""
    };
    let above = root.len() + note.len() + LAYOUT_NOTE.len() + 2;
    let tree = layout(&list.files, Style::List, LAYOUT_BYTES.saturating_sub(above));
    format!("{root}\n{tree}{note}")
}

/// Machine, shell, workspace, git and day. Not the time: it would change the message with every conversation.
fn user_info(workspace: &Workspace, git: Option<&Status>, holds: Option<String>) -> String {
    let shell = std::env::var("SHELL").unwrap_or_default();
    let shell = shell.rsplit('/').next().unwrap_or_default();
    let git = match git {
        Some(Status {
            branch: Some(branch), ..
        }) => format!("yes, branch {branch}"),
        Some(_) => "yes".to_owned(),
        None if workspace.root().ancestors().any(|it| it.join(".git").exists()) => "yes".to_owned(),
        None => "no".to_owned(),
    };
    let mut text = format!("OS: {}\n", system());
    if !shell.is_empty() {
        let _ = writeln!(text, "Shell: {}", name(shell));
    }
    let root = name(&workspace.root().to_string_lossy());
    let _ = writeln!(text, "Workspace: {root}");
    for folder in workspace.added() {
        let _ = writeln!(text, "Beside it: {}", name(&folder.to_string_lossy()));
    }
    let day = chrono::Local::now().format("%A, %-d %B %Y");
    let _ = write!(text, "Git repository: {git}\nDate: {day}");
    // Its words are ours, and its gaps those of the sandbox.
    text.extend(holds.map(|it| format!("\n{it}")));
    text
}

/// `linux 6.8.0`, as far as it can be had without running anything.
fn system() -> String {
    let about = rustix::system::uname();
    let version = about.release().to_string_lossy();
    format!("{} {}", std::env::consts::OS, name(version.trim()))
        .trim_end()
        .to_owned()
}

/// Files that one works on, for the next message: `viewed` were read, written or changed lately, `open` were named or
/// opened; the first ones are named. Reads them to count their lines.
pub fn viewed<'a>(
    workspace: &Workspace,
    viewed: impl IntoIterator<Item = &'a str>,
    open: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let mut known: Vec<String> = Vec::new();
    let mut lines = |paths: &mut dyn Iterator<Item = &'a str>| {
        let mut lines = Vec::new();
        for path in paths {
            let Ok(file) = workspace.locate(path) else { continue };
            if lines.len() == VIEWED || known.contains(&file.shown) {
                continue;
            }
            let Ok(bytes) = workspace.read(&file, COUNTED_BYTES) else {
                continue;
            };
            let count = bytes.split_inclusive(|it| *it == b'\n').count();
            let word = if count == 1 { "line" } else { "lines" };
            lines.push(format!("- {} ({count} {word})\n", name(&file.shown)));
            known.push(file.shown);
        }
        lines.concat()
    };
    let open = lines(&mut open.into_iter());
    let viewed = lines(&mut viewed.into_iter());
    let mut text = String::new();
    if !viewed.is_empty() {
        let _ = write!(text, "\nViewed or changed lately:\n{viewed}");
    }
    if !open.is_empty() {
        let _ = write!(text, "\nNamed or opened by the user:\n{open}");
    }
    let about = "These files may have nothing to do with the question.";
    (!text.is_empty()).then(|| wrap_ours("open_and_recently_viewed_files", &format!("{about}\n{text}")))
}

/// A mistake that a checker has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lint {
    pub path: String,
    /// From 1.
    pub line: u64,
    pub column: u64,
    /// `error`, `warning` …; the worst one first in the order of severities.
    pub severity: Severity,
    pub message: String,
}

/// The mistakes found in the files of `paths` that still hold.
pub fn mistakes<'a>(workspace: &Workspace, findings: &Findings, paths: impl Iterator<Item = &'a str>) -> Vec<Lint> {
    let located = paths.filter_map(|it| workspace.locate(it).ok());
    let wanted: BTreeMap<PathBuf, String> = located.map(|it| (it.path, it.shown)).collect();
    let found = findings.of(&|it| wanted.contains_key(it));
    let lint = |it: Diagnostic| {
        Some(Lint {
            path: wanted.get(&it.file)?.clone(),
            line: it.line,
            column: it.column,
            severity: it.severity,
            message: it.message,
        })
    };
    found.into_iter().filter_map(lint).collect()
}

/// Mistakes in files that one works on, for the next message: the worst ones, file by file.
pub fn linter_errors(mut lints: Vec<Lint>) -> Option<String> {
    let more = lints.len().saturating_sub(LINTS);
    lints.sort_by_key(|it| it.severity);
    lints.truncate(LINTS);
    lints.sort_by(|a, b| (&a.path, a.line, a.column).cmp(&(&b.path, b.line, b.column)));
    let mut lines: Vec<String> = Vec::new();
    let mut file = "";
    for lint in &lints {
        if lint.path != file {
            lines.push(format!("{}:", name(&lint.path)));
            file = &lint.path;
        }
        let message: String = name(lint.message.trim()).chars().take(300).collect();
        let severity = lint.severity.as_str();
        lines.push(format!("  {}:{} {severity} {message}", lint.line, lint.column));
    }
    if more > 0 {
        lines.push(format!("[and {more} more]"));
    }
    (!lines.is_empty()).then(|| wrap("linter_errors", &lines.join("\n")))
}

/// The `context` of a request to a gateway. An empty list of files is not told.
pub fn for_gateway(workspace: &Workspace, list: &List, rules: &RuleSet) -> Value {
    let mut context = json!({
        "workspacePath": workspace.root(),
        "projectLayout": layout(&list.files, Style::Plain, LAYOUT_BYTES).trim_end(),
        "rules": rules.texts(),
    });
    if let Value::Object(members) = &mut context {
        members.retain(|_, it| !matches!(it, Value::String(it) if it.is_empty()) && *it != json!([]));
    }
    context
}

/// The paths of `known`, as they are shown.
pub fn shown(workspace: &Workspace, known: &[PathBuf]) -> Vec<String> {
    let located = known.iter().filter_map(|it| workspace.located(it).ok());
    located.map(|it| it.shown).collect()
}

#[cfg(test)]
mod tests;
