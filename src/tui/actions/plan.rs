//! Actions on a plan: build, save, comment; edit its text and its todos.
//!
//! A change is sent to the producer of the plan; the screen shows what returns.

use serde_json::{Map, Value, json};

use super::{focus::focus_composer, plan_edits::borrowed, reading, writing::submit};
use crate::{
    protocol::{BUILDS, Command, Document, Message, Mode, TodoStatus, View, plan_file},
    t,
    transcript::{DocumentIndex, Todo},
    tui::{
        app::{Action, App, Choice, Effect, Mark},
        overlays::Prompt,
        widgets::transcript::Item,
    },
};

pub const BUILD: Action = Action::new("plan.build", "build", |app, _| {
    let plan_place = plan(app);
    let Some(document) = plan_place.and_then(|it| app.conversation.transcript.get(it)) else {
        return app.toast(t!("action-no-plan-to-build"));
    };
    let View::Plan(plan) = document.view() else {
        return Vec::new();
    };
    let is_edited = document.metadata.contains_key("edited");
    let mut text = format!("Build the plan \"{}\".", plan.title);
    // Who made it knows only what it wrote.
    if is_edited {
        text = format!(
            "{text} This is the plan as I have changed it:\n\n{}",
            plan_file::write(&plan)
        );
    }
    let address = plan_place.and_then(|it| app.conversation.transcript.address(it));
    let mut message = Message::user(text);
    if let Some(address) = address {
        let builds = json!({ "plan": address.to_string(), "edited": is_edited });
        message.extra.insert(BUILDS.to_owned(), builds);
    }
    app.composer.enter(Mode::Agent);
    focus_composer(app);
    app.viewport.pane.go_to_end();
    submit(app, message)
});

/// Marks the plan, so that Enter builds it.
pub const MARK: Action = Action::new("plan.mark", "", |app, _| {
    if plan(app).is_some() && !app.mark(Mark::Build) {
        return (BUILD.run)(app, "");
    }
    Vec::new()
});

pub const SAVE: Action = Action::new("plan.save", "", |app, _| {
    let Some(place) = plan(app) else {
        return app.toast(t!("action-no-plan-to-save"));
    };
    let Some(View::Plan(mut plan)) = app.conversation.transcript.get(place).map(Document::view) else {
        return Vec::new();
    };
    // What was done of the newest one stands in the live list.
    let list = app.conversation.transcript.todos.list.clone();
    if app.conversation.transcript.newest_plan() == Some(place) {
        plan.todos = list.iter().map(borrowed).collect();
    }
    vec![Effect::Save {
        path: format!(".cursor/plans/{}.plan.md", slug(plan.title)),
        text: plan_file::write(&plan),
        overwrites: false,
        draft: app.composer.field.version(),
    }]
});

pub const COMMENT: Action = Action::new("plan.comment", "", |app, _| {
    let Some(View::Plan(plan)) = plan(app)
        .and_then(|it| app.conversation.transcript.get(it))
        .map(Document::view)
    else {
        return Vec::new();
    };
    let text = format!("{} ", t!("draft-about-plan", title = plan.title));
    app.composer.enter(Mode::Plan);
    focus_composer(app);
    // A draft that was begun comes back with up.
    app.composer.history.keep(&app.composer.field.text());
    app.composer.field.set(&text);
    Vec::new()
});

/// Marks the plan, so that Enter opens it in the editor.
pub const EDIT: Action = Action::new("plan.edit", "", |app, _| {
    if editable(app).is_none() || app.mark(Mark::EditPlan) {
        return Vec::new();
    }
    edit(app)
});

/// Opens the plan in the user's editor.
pub fn edit(app: &mut App) -> Vec<Effect> {
    let Some(place) = editable(app) else { return Vec::new() };
    let Some(document) = app.conversation.transcript.get(place) else {
        return Vec::new();
    };
    let View::Plan(mut plan) = document.view() else {
        return Vec::new();
    };
    // The live list is what there is to do.
    let list = app.conversation.transcript.todos.list.clone();
    plan.todos = list.iter().map(borrowed).collect();
    vec![Effect::EditPlan {
        turn: app.conversation.turn_of(place),
        document: document.id.clone(),
        text: plan_file::write(&plan),
    }]
}

pub const TODO_NEXT: Action = Action::new("todo.next", "", |app, _| {
    let count = app.conversation.transcript.todos.list.len();
    let at = app.viewport.pane.todo.map_or(0, |it| it + 1);
    if is_newest(app) && at < count {
        app.viewport.pane.todo = Some(at);
        return Vec::new();
    }
    app.viewport.pane.todo = None;
    (reading::NEXT.run)(app, "")
});

pub const TODO_PREVIOUS: Action = Action::new("todo.previous", "", |app, _| match app.viewport.pane.todo {
    Some(at) => {
        app.viewport.pane.todo = at.checked_sub(1);
        Vec::new()
    }
    None => (reading::PREVIOUS.run)(app, ""),
});

pub const TODO_TOGGLE: Action = Action::new("todo.toggle", "", |app, _| {
    change(app, |todos, at| {
        let todo = todos.get_mut(at)?;
        todo.status = match todo.status {
            TodoStatus::Completed => TodoStatus::Pending,
            _ => TodoStatus::Completed,
        };
        Some(at)
    })
});

/// Marks the todo, so that Enter deletes it.
pub const TODO_REMOVE: Action = Action::new("todo.remove", "", |app, _| {
    if editable(app).is_none() {
        return Vec::new();
    }
    let list = &app.conversation.transcript.todos.list;
    let Some(todo) = app.viewport.pane.todo.and_then(|it| list.get(it)) else {
        return app.hint(t!("action-choose-a-todo"));
    };
    let id = todo.id.clone();
    if app.mark(Mark::RemoveTodo(id.clone())) {
        return Vec::new();
    }
    remove_todo(app, &id)
});

/// Deletes the selected todo, if it is the one with this id.
pub fn remove_todo(app: &mut App, id: &str) -> Vec<Effect> {
    change(app, |todos, at| {
        todos.get(at).filter(|it| it.id == id)?;
        let gone = (at < todos.len()).then(|| todos.remove(at))?;
        for todo in todos.iter_mut() {
            todo.dependencies.retain(|it| *it != gone.id);
        }
        Some(at.min(todos.len().saturating_sub(1)))
    })
}

pub const TODO_DOWN: Action = Action::new("todo.down", "", |app, _| {
    change(app, |todos, at| {
        (at + 1 < todos.len()).then(|| todos.swap(at, at + 1))?;
        Some(at + 1)
    })
});

pub const TODO_UP: Action = Action::new("todo.up", "", |app, _| {
    change(app, |todos, at| {
        let above = at.checked_sub(1)?;
        todos.swap(above, at);
        Some(above)
    })
});

pub const TODO_INSERT: Action = Action::new("todo.insert", "", |app, _| {
    if editable(app).is_some() {
        app.overlays
            .push(Prompt::new(t!("prompt-new-todo"), "", Choice::Inserted));
    }
    Vec::new()
});

pub const TODO_REWORD: Action = Action::new("todo.reword", "", |app, _| {
    let Some(at) = app.viewport.pane.todo else {
        return (reading::FOLD.run)(app, "");
    };
    let words = app
        .conversation
        .transcript
        .todos
        .list
        .get(at)
        .map(|it| it.content.clone());
    if let Some(words) = words.filter(|_| editable(app).is_some()) {
        app.overlays
            .push(Prompt::new(t!("prompt-todo"), &words, Choice::Reworded));
    }
    Vec::new()
});

/// The line that was written for a todo.
pub fn written(app: &mut App, words: String, is_new: bool) -> Vec<Effect> {
    if !is_new {
        return change(app, |todos, at| {
            todos.get_mut(at)?.content = words;
            Some(at)
        });
    }
    let Some(place) = editable(app) else { return Vec::new() };
    let mut todos = app.conversation.transcript.todos.list.clone();
    let at = app
        .viewport
        .pane
        .todo
        .map_or(todos.len(), |it| (it + 1).min(todos.len()));
    let todo = Todo {
        id: plan_file::fresh(&list(&todos)),
        content: words,
        status: TodoStatus::Pending,
        dependencies: Vec::new(),
        documents: Vec::new(),
    };
    todos.insert(at, todo);
    app.viewport.pane.todo = Some(at);
    send(app, place, &todos)
}

/// Takes a plan back from the editor.
pub fn edited(
    app: &App,
    turn: crate::protocol::Turn,
    document: crate::protocol::DocumentId,
    text: &str,
) -> Vec<Effect> {
    let known = app.conversation.transcript.index_of_document(turn, &document);
    let before = known
        .and_then(|it| app.conversation.transcript.get(it))
        .map(Document::view);
    let mut metadata = plan_file::read(text);
    if let Some(View::Plan(plan)) = before {
        let is_same = |name: &str, value: &str| metadata.get(name).and_then(Value::as_str) == Some(value);
        let list = metadata.get("todos").cloned().unwrap_or_else(|| json!([]));
        if is_same("title", plan.title)
            && is_same("overview", plan.overview)
            && is_same("content", plan.content.trim())
            && list == Value::from(self::list(&app.conversation.transcript.todos.list))
        {
            return Vec::new();
        }
    }
    metadata.insert("edited".into(), true.into());
    vec![Effect::Send(Command::Update {
        turn,
        document,
        metadata,
    })]
}

/// Changes the live list at the todo that is selected; `None`: there is nothing to change.
fn change(app: &mut App, change: impl FnOnce(&mut Vec<Todo>, usize) -> Option<usize>) -> Vec<Effect> {
    let Some(place) = editable(app) else { return Vec::new() };
    let Some(at) = app.viewport.pane.todo else {
        return app.hint(t!("action-choose-a-todo"));
    };
    let mut todos = app.conversation.transcript.todos.list.clone();
    let Some(at) = change(&mut todos, at) else {
        return Vec::new();
    };
    app.viewport.pane.todo = (!todos.is_empty()).then_some(at);
    send(app, place, &todos)
}

fn send(app: &App, place: DocumentIndex, todos: &[Todo]) -> Vec<Effect> {
    let Some(document) = app.conversation.transcript.get(place) else {
        return Vec::new();
    };
    let metadata = Map::from_iter([
        ("todos".to_owned(), Value::from(list(todos))),
        ("edited".to_owned(), true.into()),
    ]);
    vec![Effect::Send(Command::Update {
        turn: app.conversation.turn_of(place),
        document: document.id.clone(),
        metadata,
    })]
}

fn list(todos: &[Todo]) -> Vec<Value> {
    let todo = |it: &Todo| json!({ "id": it.id, "content": it.content, "status": it.status.as_str(), "dependencies": it.dependencies });
    todos.iter().map(todo).collect()
}

/// The selected plan, else the newest.
fn plan(app: &App) -> Option<DocumentIndex> {
    let is_plan = |it: &DocumentIndex| {
        app.conversation
            .transcript
            .get(*it)
            .is_some_and(|it| matches!(it.view(), View::Plan(_)))
    };
    app.viewport
        .selected()
        .filter(is_plan)
        .or_else(|| app.conversation.transcript.newest_plan())
}

/// Returns true if the selected plan is the one of the live list.
fn is_newest(app: &App) -> bool {
    matches!(app.viewport.pane.selected, Some(Item::Document(place)) if app.conversation.transcript.newest_plan() == Some(place))
}

/// The plan that may be changed: the newest.
fn editable(app: &mut App) -> Option<DocumentIndex> {
    let place = plan(app)?;
    if app.conversation.transcript.newest_plan() != Some(place) {
        app.toast(t!("action-newer-plan"));
        return None;
    }
    Some(place)
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
