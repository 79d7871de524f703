//! `create_plan`: what plan mode leads to.

use serde_json::{Map, Value, json};

use super::{
    cursor::CursorCall,
    tool::{Class, Fault, Input, OldForm, Part, Tool, Work, names, schema},
};
use crate::protocol::{CallSubject, Mode, TodoStatus};

/// The description that a model is shown.
const ABOUT: &str = "\
    Show the user the plan, once you know enough. It ends your turn: the user edits the plan, has it built, or says \
    what should be different. Name the files to change, keep code short, and give the todos in the order in \
    which they are to be done.";

/// The tool `create_plan`.
pub fn tool() -> Tool {
    Tool {
        aliases: names(["CreatePlan"]),
        about: ABOUT.into(),
        modes: &[Mode::Plan],
        schema: schema(
            json!({
                "name": { "type": "string", "description": "Three or four words" },
                "overview": { "type": "string", "description": "One or two sentences" },
                "plan": { "type": "string", "description": "Markdown; file paths and short code where needed" },
                "todos": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "id": { "type": "string" },
                            "content": { "type": "string" },
                            "dependencies": { "type": "array", "items": { "type": "string" } }
                        },
                        "required": ["id", "content"]
                    }
                }
            }),
            &["name", "overview", "plan"],
        ),
        synonyms: &[("name", &["title"]), ("plan", &["content", "body"])],
        word: "plan".into(),
        subject: CallSubject::Other,
        is_basic: true,
        old_form: Some(OldForm::new(fold)),
        cursor: Some(CursorCall::new(
            "createPlanToolCall",
            &[
                ("name", &["name"]),
                ("overview", &["overview"]),
                ("plan", &["plan"]),
                ("todos", &["todos"]),
            ],
        )),
        examples: &[r##"{ "name": "p", "overview": "o", "plan": "# p", "todos": [{ "id": "a", "content": "b" }] }"##],
        ..Tool::new("create_plan", Class::Talks, Work::Turn(Part::Plan))
    }
}

/// A plan as its document holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub title: String,
    pub overview: String,
    pub content: String,
    /// `id`, `content`, `status`, `dependencies`.
    pub todos: Vec<Value>,
}

/// `phases: [{ name, todos }]`: a plan in phases is a plan whose todos stand in their order.
pub fn fold(given: &mut Map<String, Value>) {
    let list = |value: Option<Value>| match value {
        Some(Value::Array(items)) => items,
        Some(Value::String(text)) => serde_json::from_str(&text).unwrap_or_default(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
    };
    let phases = list(given.shift_remove("phases"));
    let late: Vec<Value> = phases.iter().flat_map(|it| list(it.get("todos").cloned())).collect();
    if !late.is_empty() {
        let mut todos = list(given.shift_remove("todos"));
        todos.extend(late);
        given.insert("todos".to_owned(), todos.into());
    }
}

/// Reads the plan of a call. Fails if it has neither text nor todos.
pub fn read(input: &Input) -> Result<Plan, Fault> {
    let text = |name: &str| input.text(name).unwrap_or_default().trim().to_owned();
    let mut todos = Vec::new();
    add_todos(input.0.get("todos"), &mut todos);
    let plan = Plan {
        title: text("name"),
        overview: text("overview"),
        content: text("plan"),
        todos,
    };
    if plan.content.is_empty() && plan.todos.is_empty() {
        return Err(
            Fault::arguments("the plan is empty").hint("`plan` is Markdown that says what is to be done and where.")
        );
    }
    Ok(plan)
}

fn add_todos(list: Option<&Value>, todos: &mut Vec<Value>) {
    for item in list.and_then(Value::as_array).into_iter().flatten() {
        let known = |id: &str| todos.iter().any(|it| it["id"] == id);
        let empty = Map::new();
        let given = item.as_object().unwrap_or(&empty);
        let content = given.get("content").and_then(Value::as_str).or(item.as_str());
        let id = given
            .get("id")
            .and_then(Value::as_str)
            .map(str::trim)
            .filter(|it| !it.is_empty());
        let Some(content) = content.or(id) else { continue };
        let id = id
            .filter(|it| !known(it))
            .map_or_else(|| format!("todo-{}", todos.len() + 1), str::to_owned);
        let status = given
            .get("status")
            .and_then(Value::as_str)
            .unwrap_or(TodoStatus::Pending.as_str());
        let dependencies = given
            .get("dependencies")
            .cloned()
            .filter(Value::is_array)
            .unwrap_or_else(|| json!([]));
        todos.push(json!({ "id": id, "content": content, "status": status, "dependencies": dependencies }));
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::{super::arguments, *};

    fn plan(value: Value) -> Result<Plan, Fault> {
        let given = value.as_object().cloned().unwrap_or_default();
        read(&arguments::read(&tool(), Ok(&given))?)
    }

    #[test]
    fn todos_get_ids_and_a_status() {
        let got = plan(json!({
            "title": " Codes ", "overview": "o", "plan": "# p", "isProject": false,
            "todos": [{ "id": "a", "content": "A" }, { "id": "a", "content": "B" }, "C", { "id": "d" }, 7],
            "phases": [{ "name": "late", "todos": [{ "id": "e", "content": "E", "dependencies": ["a"] }] }],
        }));
        let todo = |id: &str, content: &str, on: &[&str]| json!({ "id": id, "content": content, "status": "pending", "dependencies": on });
        let want = Plan {
            title: "Codes".to_owned(),
            overview: "o".to_owned(),
            content: "# p".to_owned(),
            todos: vec![
                todo("a", "A", &[]),
                todo("todo-2", "B", &[]),
                todo("todo-3", "C", &[]),
                todo("d", "d", &[]),
                todo("e", "E", &["a"]),
            ],
        };
        assert_eq!(got, Ok(want));
    }

    #[test]
    fn an_empty_plan_is_none() {
        assert_eq!(
            plan(json!({ "name": "x", "overview": "", "plan": " " }))
                .expect_err("empty")
                .message,
            "the plan is empty"
        );
    }
}
