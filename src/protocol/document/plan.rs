//! `plan`: what will be done, as Markdown and as a list of todos.

use serde_json::{Map, Value, json};

use super::{Document, member};
use crate::protocol::TodoStatus;

#[derive(Clone, Debug, PartialEq)]
pub struct Plan<'a> {
    /// Markdown.
    pub content: &'a str,
    pub title: &'a str,
    pub overview: &'a str,
    pub todos: Vec<Todo<'a>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Todo<'a> {
    pub id: &'a str,
    pub content: &'a str,
    pub status: TodoStatus,
    /// Ids of other todos; unknown ones and cycles are ignored by readers.
    pub dependencies: Vec<&'a str>,
}

impl<'a> Plan<'a> {
    pub(super) fn read(it: &'a Document) -> Self {
        let members = &it.metadata;
        Self {
            content: it.text(),
            title: member::text(members, "title").unwrap_or_default(),
            overview: member::text(members, "overview").unwrap_or_default(),
            todos: member::list(members, "todos")
                .iter()
                .filter_map(Value::as_object)
                .map(Todo::read)
                .collect(),
        }
    }
}

impl<'a> Todo<'a> {
    fn read(members: &'a Map<String, Value>) -> Self {
        let id = member::text(members, "id").unwrap_or_default();
        Self {
            id,
            content: member::text(members, "content").unwrap_or(id),
            status: member::text(members, "status").map_or(TodoStatus::Pending, TodoStatus::parse),
            dependencies: member::texts(members, "dependencies"),
        }
    }
}

pub(super) fn fill(metadata: &mut Map<String, Value>) {
    member::default(metadata, "title", "");
    member::default(metadata, "overview", "");
    member::default(metadata, "todos", Vec::<Value>::new());
    member::default(metadata, "format", "markdown");
    let Some(Value::Array(todos)) = metadata.get_mut("todos") else {
        return;
    };
    for (at, todo) in todos.iter_mut().enumerate() {
        let Value::Object(members) = todo else { continue };
        member::default(members, "id", format!("todo-{}", at + 1));
        let id = member::text(members, "id").unwrap_or_default().to_owned();
        member::default(members, "content", id);
        member::default(members, "status", "pending");
        member::default(members, "dependencies", Vec::<Value>::new());
    }
}

/// Turns plain strings into todos and numbers into ids; done on arrival, for plans and for updates.
pub(super) fn settle_todos(metadata: &mut Map<String, Value>) {
    let Some(Value::Array(todos)) = metadata.get_mut("todos") else {
        return;
    };
    for (at, todo) in todos.iter_mut().enumerate() {
        if let Value::String(text) = todo {
            *todo = json!({ "id": format!("todo-{}", at + 1), "content": std::mem::take(text) });
        }
        if let Value::Object(members) = todo {
            member::coerce(members, &["id", "content", "status"], &[], &[]);
        }
    }
}
