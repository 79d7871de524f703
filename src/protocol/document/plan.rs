//! `plan`: what will be done, as Markdown and as a list of todos.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{
    Document, KindGroup, KindRow,
    MemberForm::{Flag, List, Object, Text, Word},
    Need::{Always, Expected, Free, Structure},
    Shape, member,
    normal::rename,
};
use crate::{protocol::TodoStatus, text::Role};

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
        let mut todos = todos(members);
        drop_unsound(&mut todos);
        Self {
            // As it was edited, else as it was written.
            content: member::text(members, "content").unwrap_or_else(|| it.text()),
            title: member::text(members, "title").unwrap_or_default(),
            overview: member::text(members, "overview").unwrap_or_default(),
            todos,
        }
    }

    pub(super) fn plain_text(&self) -> String {
        let mut text = format!("# {}\n", self.title);
        for part in [self.overview, self.content] {
            if !part.is_empty() {
                text.extend(["\n", part, "\n"]);
            }
        }
        for todo in &self.todos {
            let is_done = todo.status == TodoStatus::Completed;
            text.extend(["\n- [", if is_done { "x" } else { " " }, "] ", todo.content]);
        }
        text
    }

    /// Returns true if a todo depends on one that does not exist or, in the end, on itself. Such dependencies are not
    /// shown.
    pub(in crate::protocol) fn is_unsound(metadata: &Map<String, Value>) -> bool {
        drop_unsound(&mut todos(metadata)) > 0
    }
}

fn todos(metadata: &Map<String, Value>) -> Vec<Todo<'_>> {
    let todos = member::list(metadata, "todos").iter();
    todos.filter_map(Value::as_object).map(Todo::read).collect()
}

/// Removes dependencies on missing todos and in circles; returns their number.
fn drop_unsound(todos: &mut [Todo<'_>]) -> usize {
    if todos.iter().all(|it| it.dependencies.is_empty()) {
        return 0;
    }
    let places: HashMap<_, _> = todos.iter().enumerate().map(|(at, it)| (it.id, at)).collect();
    let needs = |it: &Todo<'_>| {
        it.dependencies
            .iter()
            .filter_map(|id| places.get(id).copied())
            .collect()
    };
    let forward: Vec<Vec<usize>> = todos.iter().map(needs).collect();
    let mut backward = vec![Vec::new(); todos.len()];
    for (at, needs) in forward.iter().enumerate() {
        for &need in needs {
            backward[need].push(at);
        }
    }
    // Todos that reach each other make a circle: the last that is left of a walk forward reaches, walking backward, just
    // those that it shares a circle with.
    let mut circle = vec![0; todos.len()];
    let mut seen = vec![false; todos.len()];
    let mut left = Vec::new();
    for root in 0..todos.len() {
        left.extend(walk(&forward, &mut seen, root));
    }
    let mut seen = vec![false; todos.len()];
    for &root in left.iter().rev() {
        for at in walk(&backward, &mut seen, root) {
            circle[at] = root;
        }
    }
    let mut dropped = 0;
    for (at, todo) in todos.iter_mut().enumerate() {
        let before = todo.dependencies.len();
        let leads_on = |id: &&str| {
            places
                .get(id)
                .is_some_and(|&need| need != at && circle[need] != circle[at])
        };
        todo.dependencies.retain(leads_on);
        dropped += before - todo.dependencies.len();
    }
    dropped
}

/// Returns what `root` reaches and `seen` does not hold, in the order in which a depth-first search leaves it. Uses
/// its own stack, because a plan may be a chain of any length.
fn walk(edges: &[Vec<usize>], seen: &mut [bool], root: usize) -> Vec<usize> {
    let mut left = Vec::new();
    let mut stack = Vec::new();
    if !std::mem::replace(&mut seen[root], true) {
        stack.push((root, 0));
    }
    while let Some((at, edge)) = stack.pop() {
        match edges[at].get(edge) {
            Some(&next) => {
                stack.push((at, edge + 1));
                if !std::mem::replace(&mut seen[next], true) {
                    stack.push((next, 0));
                }
            }
            None => left.push(at),
        }
    }
    left
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

/// A todo of a plan, as a member.
pub static TODO: Shape = Shape {
    name: "Todo",
    about: "A step of a plan.",
    members: &[
        ("id", Text, Always, "slug in kebab-case, unique in the plan"),
        ("content", Text, Always, "the step in words"),
        ("status", Word(TodoStatus::KNOWN), Expected, "absent means `pending`"),
        (
            "dependencies",
            List(&Text),
            Structure,
            "ids of todos that have to be done before; unknown ids and circles are ignored",
        ),
    ],
};

pub(super) static ROW: KindRow = KindRow {
    members: &[
        ("title", Text, Always, "title of the plan"),
        (
            "overview",
            Text,
            Structure,
            "the plan in a sentence or two; may be `\"\"`",
        ),
        ("todos", List(&Object(&TODO)), Always, "steps of the plan; may be empty"),
        ("format", Word(&["markdown"]), Structure, "format of the content"),
        (
            "content",
            Text,
            Free,
            "text that the user put in the place of the document's content",
        ),
        ("edited", Flag, Free, "true if the user edited the plan"),
        ("toolCallId", Text, Free, "call that made the plan"),
    ],
    group: KindGroup::Page,
    label: "plain-kind-plan",
    heading: Some("plan-word"),
    sign: ("≡", Role::ModePlan),
    normalise: |members| {
        rename(members, "name", "title");
        settle_todos(members);
    },
    fill: |metadata, _| {
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
    },
    ..KindRow::DEFAULT
};

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
