//! A plan as a file that people edit and other programs read: front matter with its todos, then its Markdown.
//!
//! What is written is YAML; what is read is the little of YAML that people write in such files by hand.

use serde_json::{Map, Value, json};

use super::{TodoStatus, document::Plan};

/// The text of a `.plan.md`.
pub fn write(plan: &Plan<'_>) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let mut text = format!(
        "---\nname: {}\noverview: {}\ntodos:{}\n",
        quoted(plan.title),
        quoted(plan.overview),
        // Nothing behind the colon is no list.
        if plan.todos.is_empty() { " []" } else { "" }
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

/// The metadata of the plan in `text`: `title`, `overview`, `todos`, and its Markdown as `content`. Without front matter
/// all of it is Markdown, and only that.
pub fn read(text: &str) -> Map<String, Value> {
    let text = text.trim_start_matches('\u{feff}');
    let mut metadata = Map::new();
    let (front, body) = split(text);
    metadata.insert("content".into(), body.trim().into());
    let Some(front) = front else { return metadata };
    let mut todos: Vec<Map<String, Value>> = Vec::new();
    let mut section = String::new();
    let mut list = String::new();
    for line in front.lines() {
        let indent = line.len() - line.trim_start().len();
        let (rest, is_item) = match line.trim().strip_prefix("- ") {
            Some(rest) => (rest.trim(), true),
            None => (line.trim(), false),
        };
        if rest.is_empty() || rest.starts_with('#') {
            continue;
        }
        let pair = rest
            .split_once(':')
            .filter(|(key, _)| key.chars().all(|it| it.is_ascii_alphanumeric() || it == '_'));
        match pair {
            Some((key, value)) if indent == 0 && !is_item => {
                key.clone_into(&mut section);
                match key {
                    "name" | "title" => drop(metadata.insert("title".into(), scalar(value).into())),
                    "overview" => drop(metadata.insert("overview".into(), scalar(value).into())),
                    _ => {}
                }
            }
            Some((key, value)) if section == "todos" => {
                if is_item {
                    todos.push(Map::new());
                }
                key.clone_into(&mut list);
                if let Some(todo) = todos.last_mut() {
                    let value = match key {
                        "dependencies" => Value::from(items(value)),
                        "id" | "content" | "status" => scalar(value).into(),
                        _ => continue,
                    };
                    todo.insert(key.to_owned(), value);
                }
            }
            None | Some(_) if section == "todos" && is_item => match todos.last_mut() {
                // An entry of a list that was begun above.
                Some(todo) if list == "dependencies" && indent > 2 => {
                    if let Some(Value::Array(dependencies)) = todo.get_mut("dependencies") {
                        dependencies.push(scalar(rest).into());
                    }
                }
                // A todo that is nothing but words.
                Some(_) | None => {
                    list.clear();
                    todos.push(Map::from_iter([("content".to_owned(), Value::from(scalar(rest)))]));
                }
            },
            None | Some(_) => {}
        }
    }
    let mut whole: Vec<Value> = Vec::new();
    for todo in todos {
        let text = |name: &str| {
            todo.get(name)
                .and_then(Value::as_str)
                .filter(|it| !it.is_empty())
                .map(str::to_owned)
        };
        let Some(content) = text("content").or_else(|| text("id")) else {
            continue;
        };
        let is_known = |id: &str| whole.iter().any(|it| it["id"] == id);
        let id = text("id").filter(|it| !is_known(it));
        let id = id.unwrap_or_else(|| fresh(&whole));
        let status = text("status").unwrap_or_else(|| TodoStatus::Pending.as_str().to_owned());
        let dependencies = todo.get("dependencies").cloned().unwrap_or_else(|| json!([]));
        whole.push(json!({ "id": id, "content": content, "status": status, "dependencies": dependencies }));
    }
    metadata.insert("todos".into(), whole.into());
    metadata
}

/// An id that no todo of the list has.
pub fn fresh(todos: &[Value]) -> String {
    let is_known = |id: &str| todos.iter().any(|it| it["id"] == id);
    let mut names = (todos.len() + 1..).map(|it| format!("todo-{it}"));
    names.find(|it| !is_known(it)).unwrap_or_default()
}

fn split(text: &str) -> (Option<&str>, &str) {
    let Some(rest) = text.strip_prefix("---") else {
        return (None, text);
    };
    let Some(rest) = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')) else {
        return (None, text);
    };
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return (rest.get(..at), rest.get(at + line.len()..).unwrap_or_default());
        }
        at += line.len();
    }
    (None, text)
}

fn scalar(text: &str) -> String {
    let text = text.trim();
    if text.starts_with('"')
        && let Ok(quoted) = serde_json::from_str::<String>(text)
    {
        return quoted;
    }
    match text.strip_prefix('\'').and_then(|it| it.strip_suffix('\'')) {
        Some(inner) => inner.replace("''", "'"),
        None => text.to_owned(),
    }
}

/// `[a, "b"]`, or nothing yet.
fn items(text: &str) -> Vec<String> {
    let text = text.trim();
    if let Ok(items) = serde_json::from_str::<Vec<String>>(text) {
        return items;
    }
    let inner = text.trim_start_matches('[').trim_end_matches(']');
    inner.split(',').map(scalar).filter(|it| !it.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::document::Todo;

    #[test]
    fn what_people_write_is_understood() {
        let text = "---\nname: Discount codes\noverview: 'It''s small'\ntodos:\n  - id: a\n    content: Add the type\n    status: completed\n\
                    \n  - content: \"Use it: twice\"\n    dependencies:\n      - a\n  - Write the docs\nisProject: false\n---\n\n# Plan\n\n- one\n";
        assert_eq!(
            Value::from(read(text)),
            json!({
                "content": "# Plan\n\n- one",
                "title": "Discount codes",
                "overview": "It's small",
                "todos": [
                    { "id": "a", "content": "Add the type", "status": "completed", "dependencies": [] },
                    { "id": "todo-2", "content": "Use it: twice", "status": "pending", "dependencies": ["a"] },
                    { "id": "todo-3", "content": "Write the docs", "status": "pending", "dependencies": [] },
                ],
            })
        );
        assert_eq!(
            Value::from(read("just words\n---\n")),
            json!({ "content": "just words\n---" })
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn what_is_written_is_read_back(
            title in "\\PC{0,20}",
            overview in "(?s).{0,40}",
            contents in prop::collection::vec("(?s)[^ ].{0,20}[^ ]", 0..4),
            body in "[a-z#\n-]{0,40}",
        ) {
            let ids: Vec<String> = (0..contents.len()).map(|it| format!("t{it}")).collect();
            let todos = contents.iter().zip(&ids).enumerate().map(|(at, (content, id))| Todo {
                id,
                content,
                status: TodoStatus::InProgress,
                dependencies: ids.iter().take(at).map(String::as_str).collect(),
            });
            let plan = Plan { title: &title, overview: &overview, content: &body, todos: todos.collect() };
            let got = read(&write(&plan));
            prop_assert_eq!(got["title"].as_str(), Some(title.as_str()));
            prop_assert_eq!(got["overview"].as_str(), Some(overview.as_str()));
            prop_assert_eq!(got["content"].as_str(), Some(body.trim()));
            let back: Vec<_> = got["todos"].as_array().expect("a list").iter().map(|it| it["content"].as_str().unwrap_or_default()).collect();
            prop_assert_eq!(back, contents.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}
