//! `todo_write`: the list of what there is to do, kept by the model and shown live.

use serde_json::{Map, Value, json};

use super::{
    cursor::{Asked, CursorCall, words},
    object,
    tool::{Class, Fault, Input, Part, Tool, Work, names, schema},
};
use crate::protocol::{CallSubject, Mode, TodoStatus};

/// The name of the tool.
pub const NAME: &str = "todo_write";
/// The description that a model is shown.
const ABOUT: &str = "\
    Keep a list of todos for work of three or more steps. With `merge` true, todos are changed by id and unchanged \
    members may be left out; with `merge` false the list is replaced. Have one todo in progress at a time, and \
    mark it completed as soon as it is.";

/// The tool `todo_write`.
pub fn tool() -> Tool {
    Tool {
        aliases: names(["TodoWrite", "updateTodos"]),
        about: ABOUT.into(),
        modes: &[Mode::Agent, Mode::Debug],
        schema: schema(
            json!({
                "merge": { "type": "boolean", "description": "true: update by id; false: replace the list" },
                "todos": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "id": { "type": "string" },
                            "content": { "type": "string" },
                            "status": {
                                "type": "string",
                                "enum": ["pending", "in_progress", "completed", "cancelled"]
                            },
                            "dependencies": { "type": "array", "items": { "type": "string" } }
                        },
                        "required": ["id"]
                    }
                }
            }),
            &["merge", "todos"],
        ),
        word: "todo".into(),
        subject: CallSubject::Other,
        is_basic: true,
        cursor: Some(CursorCall {
            complete: print,
            ..CursorCall::new("updateTodosToolCall", &[])
        }),
        examples: &[r#"{ "merge": false, "todos": [{ "id": "a", "content": "b", "status": "pending" }] }"#],
        ..Tool::new(NAME, Class::State, Work::Turn(Part::Todos))
    }
}

/// The todos of a call as the document holds them: `id`, and of `content`, `status`, `dependencies` what was given.
pub fn read(input: &Input) -> Result<Vec<Value>, Fault> {
    let wrong = |message: String| {
        Fault::arguments(message)
            .hint("`todos` is a list of { id, content, status, dependencies }; status is pending, in_progress, completed or cancelled.")
    };
    let list = input
        .0
        .get("todos")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    if list.is_empty() && input.flag("merge") {
        return Err(wrong("there are no todos to change".to_owned()));
    }
    let mut todos = Vec::new();
    for (at, item) in list.iter().enumerate() {
        let Some(given) = item.as_object() else {
            return Err(wrong(format!("todo {} is no object", at + 1)));
        };
        let content = given.get("content").and_then(Value::as_str);
        let id = match given.get("id") {
            Some(Value::String(id)) if !id.trim().is_empty() => id.trim().to_owned(),
            Some(Value::Number(id)) => id.to_string(),
            Some(_) | None => match content {
                Some(_) => (at + 1).to_string(),
                None => return Err(wrong(format!("todo {} has neither `id` nor `content`", at + 1))),
            },
        };
        let mut todo = Map::new();
        todo.insert("id".into(), id.into());
        if let Some(content) = content {
            todo.insert("content".into(), content.into());
        }
        match given.get("status").and_then(Value::as_str) {
            Some(word) => {
                let Some(status) = status(word) else {
                    return Err(wrong(format!("`{word}` is no status")));
                };
                todo.insert("status".into(), status.as_str().into());
            }
            None if !input.flag("merge") => {
                todo.insert("status".into(), TodoStatus::Pending.as_str().into());
            }
            None => {}
        }
        if let Some(dependencies) = given.get("dependencies").and_then(Value::as_array) {
            let ids: Vec<&str> = dependencies.iter().filter_map(Value::as_str).collect();
            todo.insert("dependencies".into(), ids.into());
        }
        todos.push(todo.into());
    }
    Ok(todos)
}

/// A status as models spell it.
fn status(word: &str) -> Option<TodoStatus> {
    let plain: String = word.chars().filter(char::is_ascii_alphabetic).collect();
    let plain = plain.to_ascii_lowercase();
    Some(match plain.strip_prefix("todostatus").unwrap_or(&plain) {
        "pending" | "todo" | "open" => TodoStatus::Pending,
        "inprogress" | "active" | "doing" => TodoStatus::InProgress,
        "completed" | "complete" | "done" => TodoStatus::Completed,
        "cancelled" | "canceled" => TodoStatus::Cancelled,
        _ => return None,
    })
}

/// The arguments in Cursor's shape.
fn print(own: &mut Map<String, Value>, asked: &Asked<'_>) {
    let text = |it: &Value, name: &str| it.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let given = asked.arguments.get(&["todos"]).and_then(Value::as_array);
    let todos = given.into_iter().flatten().map(|it| {
        let needs = it.get("dependencies").and_then(Value::as_array);
        let needs: Vec<_> = needs.into_iter().flatten().map(words).collect();
        let status = TodoStatus::parse(&text(it, "status"));
        printed(&text(it, "id"), &text(it, "content"), &status, &needs, asked.started_ms)
    });
    let todos: Vec<_> = todos.collect();
    let merge = asked.arguments.get(&["merge"]).and_then(Value::as_bool).unwrap_or(true);
    own.extend(object(json!({ "todos": todos, "merge": merge })));
}

/// A todo in Cursor's shape; `at_ms`: milliseconds since the Unix epoch.
pub fn printed(id: &str, content: &str, status: &TodoStatus, dependencies: &[String], at_ms: u64) -> Value {
    let status = match status {
        TodoStatus::Pending | TodoStatus::Other(_) => "TODO_STATUS_PENDING",
        TodoStatus::InProgress => "TODO_STATUS_IN_PROGRESS",
        TodoStatus::Completed => "TODO_STATUS_COMPLETED",
        TodoStatus::Cancelled => "TODO_STATUS_CANCELLED",
    };
    json!({
        "id": id,
        "content": content,
        "status": status,
        "createdAt": at_ms.to_string(),
        "updatedAt": at_ms.to_string(),
        "dependencies": dependencies,
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn todos(value: Value) -> Result<Value, String> {
        let input = Input(value.as_object().cloned().unwrap_or_default());
        read(&input).map(Value::from).map_err(|it| it.message)
    }

    #[test]
    fn a_status_is_understood_however_it_is_spelled() {
        let words = [
            ("inProgress", "in_progress"),
            ("TODO_STATUS_IN_PROGRESS", "in_progress"),
            ("in-progress", "in_progress"),
            ("done", "completed"),
            ("complete", "completed"),
            ("canceled", "cancelled"),
            ("PENDING", "pending"),
        ];
        for (word, want) in words {
            let got = todos(json!({ "merge": true, "todos": [{ "id": "a", "status": word }] }));
            assert_eq!(got, Ok(json!([{ "id": "a", "status": want }])), "{word}");
        }
    }

    #[test]
    fn a_list_says_what_is_new_and_a_change_what_differs() {
        let list =
            json!([{ "id": "a", "content": "Do it" }, { "content": "And that" }, { "id": 3, "dependencies": ["a"] }]);
        assert_eq!(
            todos(json!({ "merge": false, "todos": list })),
            Ok(json!([
                { "id": "a", "content": "Do it", "status": "pending" },
                { "id": "2", "content": "And that", "status": "pending" },
                { "id": "3", "status": "pending", "dependencies": ["a"] },
            ]))
        );
        assert_eq!(
            todos(json!({ "merge": true, "todos": [{ "id": "a", "content": "Do this" }] })),
            Ok(json!([{ "id": "a", "content": "Do this" }]))
        );
    }

    #[test]
    fn what_is_no_list_of_todos_is_said() {
        let cases = [
            (json!({ "merge": true }), "there are no todos to change"),
            (json!({ "todos": ["a"] }), "todo 1 is no object"),
            (json!({ "todos": [{}] }), "todo 1 has neither `id` nor `content`"),
            (
                json!({ "todos": [{ "id": "a", "status": "soon" }] }),
                "`soon` is no status",
            ),
        ];
        for (value, want) in cases {
            assert_eq!(todos(value), Err(want.to_owned()));
        }
    }
}
