//! The live list of todos: begun by a plan, changed by todo updates.

use crate::protocol::{
    Address, TodoStatus,
    document::{Plan, TodoUpdate},
};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Todos {
    pub list: Vec<Todo>,
    /// Increases with every change, so that views know when to update.
    pub version: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Todo {
    pub id: String,
    pub content: String,
    pub status: TodoStatus,
    pub dependencies: Vec<String>,
    /// Edits and commands that were made while it was in progress, in their order.
    pub documents: Vec<Address>,
}

impl Todos {
    pub fn get(&self, id: &str) -> Option<&Todo> {
        self.list.iter().find(|it| it.id == id)
    }

    /// Returns the number of completed todos and the number of all that are not cancelled.
    pub fn progress(&self) -> (usize, usize) {
        let counted = self.list.iter().filter(|it| it.status != TodoStatus::Cancelled).count();
        let completed = self.list.iter().filter(|it| it.status == TodoStatus::Completed).count();
        (completed, counted)
    }

    /// Something was done: it belongs to the todo that is in progress, if that is one.
    pub(super) fn attach(&mut self, address: Address) {
        let mut now = self.list.iter_mut().filter(|it| it.status == TodoStatus::InProgress);
        if let (Some(todo), None) = (now.next(), now.next()) {
            todo.documents.push(address);
            self.version += 1;
        }
    }

    /// A line for each todo, for a model.
    pub fn checklist(&self) -> String {
        let lines = self.list.iter().map(|it| {
            let sign = match it.status {
                TodoStatus::Completed => "x",
                TodoStatus::InProgress => ">",
                TodoStatus::Cancelled => "-",
                TodoStatus::Pending | TodoStatus::Other(_) => " ",
            };
            format!("- [{sign}] {} ({})", it.content, it.id)
        });
        let lines: Vec<String> = lines.collect();
        if lines.is_empty() {
            "The list is empty.".to_owned()
        } else {
            lines.join("\n")
        }
    }

    pub(super) fn load_plan(&mut self, plan: &Plan<'_>) {
        self.version += 1;
        // An edited plan is the same plan: what belongs to its todos still does.
        let old = std::mem::take(&mut self.list);
        let known: Vec<_> = old.into_iter().map(|it| (it.id, it.documents)).collect();
        self.list = plan
            .todos
            .iter()
            .map(|it| Todo {
                id: it.id.to_owned(),
                content: it.content.to_owned(),
                status: it.status.clone(),
                dependencies: it.dependencies.iter().map(|&it| it.to_owned()).collect(),
                documents: known
                    .iter()
                    .find(|(id, _)| id == it.id)
                    .map_or_else(Vec::new, |(_, it)| it.clone()),
            })
            .collect();
    }

    pub fn apply(&mut self, update: &TodoUpdate<'_>) {
        self.version += 1;
        if !update.merge {
            self.list.clear();
        }
        for change in &update.todos {
            let at = self.list.iter().position(|it| it.id == change.id).unwrap_or_else(|| {
                self.list.push(Todo {
                    id: change.id.to_owned(),
                    content: change.id.to_owned(),
                    status: TodoStatus::Pending,
                    dependencies: Vec::new(),
                    documents: Vec::new(),
                });
                self.list.len() - 1
            });
            let Some(todo) = self.list.get_mut(at) else { continue };
            if let Some(content) = change.content {
                content.clone_into(&mut todo.content);
            }
            if let Some(status) = &change.status {
                todo.status = status.clone();
            }
            if let Some(dependencies) = &change.dependencies {
                todo.dependencies = dependencies.iter().map(|&it| it.to_owned()).collect();
            }
        }
    }
}
