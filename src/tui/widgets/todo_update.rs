//! `todo_update`: the todos that changed, in one line; unfolded, one on each line.

use std::collections::HashMap;

use super::{
    DocumentKind, Fold, Key, Leaf, RenderContext,
    heading::{Facts, Weight, gap, heading, sign},
    todo::{self, Item},
};
use crate::{
    protocol::{Document, TodoStatus, document::TodoUpdate},
    t,
    text::{Role, Sanitized, Span},
    transcript::Todo,
};

impl DocumentKind for TodoUpdate<'_> {
    fn folded(&self, _: &Document, context: &RenderContext<'_>) -> Leaf {
        let changes = changes(self, context);
        let mut facts = Facts::default();
        if let Some((done, all)) = context.progress {
            facts.word(Weight::Medium, t!("todo-progress", done = done, count = all), Role::Dim);
        }
        let mut rows = Vec::new();
        if context.fold == Fold::Full {
            let title = t!("count-changes", count = changes.len());
            rows.push(heading(
                t!("todo-word"),
                &[Span::new(title, Role::Dim)],
                facts,
                context.width,
            ));
            let items: Vec<Item<'_>> = changes
                .iter()
                .map(|(content, status)| Item {
                    content,
                    status,
                    after: Vec::new(),
                    documents: Vec::new(),
                })
                .collect();
            rows.extend(todo::rows(&items, None, context.width));
        } else {
            rows.push(heading(t!("todo-word"), &line(&changes), facts, context.width));
        }
        Leaf::of(sign("≡", Role::Dim), rows)
    }

    fn summary(&self, _: &Document) -> Sanitized {
        let list = self.todos.iter().take(20).map(|it| {
            let status = it.status.as_ref().unwrap_or(&TodoStatus::Pending);
            format!("{} {}", todo::checkbox(status).text, it.content.unwrap_or(it.id).trim())
        });
        Sanitized::line(&format!("{}  {}", t!("todo-word"), list.collect::<Vec<_>>().join("  ")))
    }

    fn depends(&self, _: &Document, context: &RenderContext<'_>, key: &mut Key) {
        key.todos = 1 + context.todos.version;
        key.progress = context.progress;
    }

    #[cfg(test)]
    fn examples(&self, word: &str) -> Vec<super::matrix::State> {
        use serde_json::json;

        use super::{
            matrix::state,
            testing::{closed, open},
        };
        let changed = |it: &'static str| {
            let todos = json!({ "todos": [{ "id": "a", "content": "Let Cart hold a list", "status": it }] });
            state(it, closed(word, None, todos))
        };
        let first = state("open", open(word, None, json!({ "todos": [] })));
        std::iter::once(first)
            .chain(TodoStatus::KNOWN.iter().copied().map(changed))
            .collect()
    }
}

/// Text and status of each todo that changed; what the update does not say is as the live list has it.
fn changes(update: &TodoUpdate<'_>, look: &RenderContext<'_>) -> Vec<(String, TodoStatus)> {
    let live: HashMap<&str, &Todo> = look.todos.list.iter().map(|it| (it.id.as_str(), it)).collect();
    let known = update.todos.iter().map(|it| {
        let live = live.get(it.id);
        let content = it
            .content
            .map(str::to_owned)
            .or_else(|| live.map(|it| it.content.clone()));
        let status = it.status.clone().or_else(|| live.map(|it| it.status.clone()));
        (
            content.unwrap_or_else(|| it.id.to_owned()),
            status.unwrap_or(TodoStatus::Pending),
        )
    });
    known.collect()
}

/// The changes in one line that may be cut: moved todos first, as many may only wait.
fn line(changes: &[(String, TodoStatus)]) -> Vec<Span> {
    /// More do not fit into any line.
    const MOST: usize = 20;
    let waits = |status: &TodoStatus| *status == TodoStatus::Pending;
    let moved = changes.iter().filter(|(_, status)| !waits(status));
    let waiting = changes.iter().filter(|(_, status)| waits(status));
    let mut spans = Vec::new();
    for (content, status) in moved.chain(waiting).take(MOST) {
        if !spans.is_empty() {
            spans.push(gap(2));
        }
        spans.extend([todo::checkbox(status), gap(1)]);
        spans.extend(todo::text(content, status));
    }
    if spans.is_empty() {
        spans.push(sign(t!("todo-unchanged"), Role::Dim));
    }
    spans
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{closed, look, picture, pictures};
    use super::*;
    use crate::transcript::Todos;

    #[test]
    fn updates() {
        let update = closed(
            "todo_update",
            None,
            json!({ "todos": [
                { "id": "expire", "content": "Reject expired codes", "status": "pending" },
                { "id": "cart", "content": "Let Cart hold a list of discounts", "status": "completed" },
                { "id": "total", "content": "Add them up in Cart::total", "status": "in_progress" },
            ]}),
        );
        let empty = closed("todo_update", None, json!({}));
        let counted = RenderContext {
            progress: Some((2, 4)),
            ..look(0)
        };
        let states = [
            ("what moved comes first", &update, counted),
            (
                "unfolded",
                &update,
                RenderContext {
                    fold: Fold::Full,
                    ..counted
                },
            ),
            ("empty", &empty, look(0)),
        ];
        insta::assert_snapshot!(pictures(&states), @r#"
40=====================================
-- what moved comes first
≡ todo   ☑ Let Cart hold …  2 of 4 done
-- unfolded
≡ todo   3 changes          2 of 4 done
  ☐ Reject expired codes
  ☑ Let Cart hold a list of discounts
  ◐ Add them up in Cart::total
-- empty
≡ todo   no changes
80=======================================================================
-- what moved comes first
≡ todo   ☑ Let Cart hold a list of discounts  ◐ Add them up…  2 of 4 done
-- unfolded
≡ todo   3 changes                                            2 of 4 done
  ☐ Reject expired codes
  ☑ Let Cart hold a list of discounts
  ◐ Add them up in Cart::total
-- empty
≡ todo   no changes
120==============================================================================================================
-- what moved comes first
≡ todo   ☑ Let Cart hold a list of discounts  ◐ Add them up in Cart::total  ☐ Reject expired codes    2 of 4 done
-- unfolded
≡ todo   3 changes                                                                                    2 of 4 done
  ☐ Reject expired codes
  ☑ Let Cart hold a list of discounts
  ◐ Add them up in Cart::total
-- empty
≡ todo   no changes
"#);
    }

    #[test]
    fn what_an_update_leaves_out_the_live_list_knows() {
        let todos = Todos {
            list: vec![Todo {
                id: "cart".to_owned(),
                content: "Let Cart hold a list".to_owned(),
                status: TodoStatus::Completed,
                dependencies: Vec::new(),
                documents: Vec::new(),
            }],
            version: 1,
        };
        let update = closed(
            "todo_update",
            None,
            json!({ "todos": [
                { "id": "cart", "status": "in_progress" }, { "id": "unknown-todo" },
            ]}),
        );
        let shown = picture(
            &update,
            &RenderContext {
                todos: &todos,
                ..look(60)
            },
        );
        assert_eq!(shown, "≡ todo   ◐ Let Cart hold a list  ☐ unknown-todo\n");
    }
}
