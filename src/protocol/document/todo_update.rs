//! `todo_update`: changes to the conversation's live list of todos.

use serde_json::{Map, Value};

use super::{
    ContentRule, Document, KindGroup, KindRow,
    MemberForm::{Flag, List, Object, Text, Word},
    Need::{Always, Free, Placed},
    Shape, member,
    plan::settle_todos,
};
use crate::{protocol::TodoStatus, text::Role};

#[derive(Clone, Debug, PartialEq)]
pub struct TodoUpdate<'a> {
    pub todos: Vec<TodoChange<'a>>,
    /// `false`: the list replaces all todos.
    pub merge: bool,
}

/// Members that are absent leave the todo's own.
#[derive(Clone, Debug, PartialEq)]
pub struct TodoChange<'a> {
    pub id: &'a str,
    pub content: Option<&'a str>,
    pub status: Option<TodoStatus>,
    pub dependencies: Option<Vec<&'a str>>,
}

impl<'a> TodoUpdate<'a> {
    pub(super) fn read(it: &'a Document) -> Self {
        Self::of(&it.metadata)
    }

    /// The change that the metadata of a document describes.
    pub fn of(metadata: &'a Map<String, Value>) -> Self {
        let change = |members: &'a Map<String, Value>| TodoChange {
            id: member::text(members, "id").unwrap_or_default(),
            content: member::text(members, "content"),
            status: member::text(members, "status").map(TodoStatus::parse),
            dependencies: members
                .get("dependencies")
                .map(|_| member::texts(members, "dependencies")),
        };
        Self {
            todos: member::list(metadata, "todos")
                .iter()
                .filter_map(Value::as_object)
                .map(change)
                .collect(),
            merge: member::boolean(metadata, "merge").unwrap_or(true),
        }
    }

    pub(super) fn plain_text(&self) -> String {
        let line = |todo: &TodoChange<'_>| {
            let status = todo.status.as_ref().map_or("changed", TodoStatus::as_str);
            format!("- {}: {status}", todo.content.unwrap_or(todo.id))
        };
        self.todos.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// A change of a todo, as a member.
pub static CHANGE: Shape = Shape {
    name: "TodoChange",
    about: "A change of a todo. Absent members keep their value.",
    members: &[
        ("id", Text, Always, "id of the todo; an unknown id adds one"),
        ("status", Word(TodoStatus::KNOWN), Placed, "new status"),
        (
            "content",
            Text,
            Free,
            "the todo in words; a new todo without it shows its id",
        ),
        (
            "dependencies",
            List(&Text),
            Free,
            "ids of todos that have to be done before",
        ),
    ],
};

pub(super) static ROW: KindRow = KindRow {
    aliases: &["todo"],
    members: &[
        ("todos", List(&Object(&CHANGE)), Always, "todos that change"),
        (
            "merge",
            Flag,
            Free,
            "absent means true; false: the list replaces all todos",
        ),
        ("toolCallId", Text, Free, "call that made the update"),
    ],
    content: ContentRule::Absent,
    group: KindGroup::Action,
    label: "plain-kind-todo-update",
    heading: Some("todo-word"),
    sign: ("✓", Role::Dim),
    is_line: true,
    normalise: settle_todos,
    fill: |metadata, _| {
        member::default(metadata, "todos", Vec::<Value>::new());
        let todos = metadata.get_mut("todos").and_then(Value::as_array_mut);
        for todo in todos.into_iter().flatten().filter_map(Value::as_object_mut) {
            member::default(todo, "id", "");
        }
    },
};
