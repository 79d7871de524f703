//! What can be answered: a failure with another try, a plan with a go.

use super::{Action, everywhere::focus_composer, writing::submit};
use crate::{
    protocol::{Message, Mode, View, document::Plan},
    tui::{app::App, effect::Effect},
};

pub const RETRY: Action = Action {
    name: "retry",
    slash: "retry",
    hint: "try again",
    about: "send the last message again",
    run: |app, _| {
        if app.is_busy() {
            app.say("the answer is still coming; esc stops it");
            return Vec::new();
        }
        let at = app.pane.selected.map_or(usize::MAX, crate::tui::pane::Item::exchange);
        let chosen = app.transcript.exchanges.get(at).or(app.transcript.exchanges.last());
        let Some(message) = chosen.and_then(|it| it.message.clone()) else {
            app.say("there is no message to send again");
            return Vec::new();
        };
        focus_composer(app);
        app.pane.go_to_end();
        submit(app, message)
    },
};

pub const PLAN_BUILD: Action = Action {
    name: "plan.build",
    slash: "build",
    hint: "build",
    about: "build the plan: change to agent mode and say so",
    run: |app, _| {
        let Some((title, _)) = plan(app) else {
            app.say("there is no plan to build");
            return Vec::new();
        };
        if is_too_early(app) {
            return Vec::new();
        }
        app.mode = Mode::Agent;
        focus_composer(app);
        app.pane.go_to_end();
        submit(app, Message::user(format!("Build the plan \"{title}\".")))
    },
};

pub const PLAN_SAVE: Action = Action {
    name: "plan.save",
    slash: "",
    hint: "save",
    about: "save the plan under .cursor/plans",
    run: |app, _| match plan(app) {
        Some((title, text)) => {
            vec![Effect::Save {
                path: format!(".cursor/plans/{}.plan.md", slug(&title)),
                text,
            }]
        }
        None => Vec::new(),
    },
};

pub const PLAN_COMMENT: Action = Action {
    name: "plan.comment",
    slash: "",
    hint: "comment",
    about: "say what should be different and keep planning",
    run: |app, _| {
        let Some((title, _)) = plan(app) else { return Vec::new() };
        app.mode = Mode::Plan;
        focus_composer(app);
        // A draft that was begun comes back with up.
        app.composer.history.keep(&app.composer.field.text());
        app.composer.field.set(&format!("About the plan \"{title}\": "));
        Vec::new()
    },
};

/// Keys that decide do nothing in the first moments: they were meant for something else.
fn is_too_early(app: &App) -> bool {
    app.now_ms.saturating_sub(app.asking.since_ms) < crate::tui::update::TOO_EARLY_MS
}

/// Title and file of the selected plan, else of the newest.
fn plan(app: &App) -> Option<(String, String)> {
    let selected = app.selected().and_then(|it| app.transcript.get(it));
    let newest = || {
        app.transcript
            .exchanges
            .iter()
            .rev()
            .flat_map(|it| it.response.documents.iter().rev())
    };
    let document = selected
        .into_iter()
        .chain(newest())
        .find(|it| matches!(it.view(), View::Plan(_)))?;
    match document.view() {
        View::Plan(it) => Some((it.title.to_owned(), plan_file(&it))),
        _ => None,
    }
}

/// The plan as the file that Cursor and others read: front matter with the todos, then the Markdown.
fn plan_file(plan: &Plan<'_>) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut text = format!(
        "---\nname: {}\noverview: {}\ntodos:\n",
        quoted(plan.title),
        quoted(plan.overview)
    );
    for todo in &plan.todos {
        let dependencies: Vec<_> = todo.dependencies.iter().map(|it| quoted(it)).collect();
        text.push_str(&format!(
            "  - id: {}\n    content: {}\n    status: {}\n    dependencies: [{}]\n",
            quoted(todo.id),
            quoted(todo.content),
            todo.status,
            dependencies.join(", ")
        ));
    }
    text.push_str("isProject: false\n---\n\n");
    text.push_str(plan.content.trim());
    text.push('\n');
    text
}

fn slug(title: &str) -> String {
    let words: Vec<String> = title
        .to_lowercase()
        .split(|it: char| !it.is_alphanumeric())
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect();
    let slug: String = words.join("-").chars().take(60).collect();
    if slug.is_empty() { "plan".to_owned() } else { slug }
}
