//! The workspace context for a gateway: known, or gathered while a message is on its way.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use tokio::{
    task::JoinHandle,
    time::{Instant, timeout_at},
};

/// Time that a message waits for it; a later result goes with the next message.
const PATIENCE: Duration = Duration::from_millis(250);

/// Maximum number of open files that are sent.
const OPEN_FILES: usize = 32;

/// Returns the files that a text names, relative to the workspace.
pub type FilesOf = Arc<dyn Fn(&str) -> Vec<String> + Send + Sync>;

/// The workspace as the protocol describes it.
#[derive(Clone)]
pub enum Context {
    Is(Value),
    /// Looked at anew for each message, because files change. It may take its time.
    Found {
        find: Arc<dyn Fn() -> Value + Send + Sync>,
        /// The files that a message names: those are open. Relative to the workspace.
        open: FilesOf,
        /// Context to send until it was found.
        meanwhile: Value,
    },
}

impl From<Value> for Context {
    fn from(value: Value) -> Self {
        Self::Is(value)
    }
}

/// The last context that was found, and the running search.
#[derive(Default)]
pub(super) struct ContextSearch {
    last: Option<Value>,
    /// Files that the messages so far named, the newest first.
    open: Vec<String>,
    task: Option<JoinHandle<Value>>,
}

impl ContextSearch {
    /// Returns the context to send now, with this message.
    pub async fn now(&mut self, context: Option<&Context>, message: &str) -> Option<Value> {
        let (find, open, meanwhile) = match context? {
            Context::Is(value) => return Some(value.clone()),
            Context::Found { find, open, meanwhile } => (find, open, meanwhile),
        };
        let until = Instant::now() + PATIENCE;
        // One that takes longer is not begun a second time; one that has ended meanwhile looked at files as they were then.
        self.finish(until).await;
        if self.task.is_none() {
            let find = Arc::clone(find);
            self.task = Some(tokio::task::spawn_blocking(move || find()));
            self.finish(until).await;
        }
        let mut context = self.last.clone().unwrap_or_else(|| meanwhile.clone());
        let (open, message) = (Arc::clone(open), message.to_owned());
        let named = tokio::task::spawn_blocking(move || open(&message))
            .await
            .unwrap_or_default();
        self.name(named);
        if let Value::Object(members) = &mut context
            && !self.open.is_empty()
        {
            members.insert("openFiles".to_owned(), self.open.as_slice().into());
        }
        Some(context)
    }

    /// Adds files that were named, the newest first.
    fn name(&mut self, mut named: Vec<String>) {
        self.open.retain(|it| !named.contains(it));
        named.append(&mut self.open);
        named.truncate(OPEN_FILES);
        self.open = named;
    }

    /// Waits for what is being looked for, but not for ever.
    async fn finish(&mut self, until: Instant) {
        if let Some(task) = &mut self.task
            && let Ok(found) = timeout_at(until, task).await
        {
            self.task = None;
            self.last = found.ok().or(self.last.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn nobody_waits_for_a_walk_that_takes_long_and_what_it_found_is_told_later() {
        let (done, wait) = mpsc::channel::<Value>();
        let wait = Mutex::new(wait);
        let context = Context::Found {
            find: Arc::new(move || wait.lock().expect("sound").recv().expect("the test is there")),
            open: Arc::new(|_| Vec::new()),
            meanwhile: json!("path"),
        };
        let mut finding = ContextSearch::default();
        assert_eq!(finding.now(Some(&context), "").await, Some(json!("path")));
        assert_eq!(
            finding.now(Some(&context), "").await,
            Some(json!("path")),
            "it is not begun again"
        );
        done.send(json!("all")).expect("it is looked for");
        while !finding.task.as_ref().expect("it runs").is_finished() {
            std::thread::yield_now();
        }
        assert_eq!(finding.now(Some(&context), "").await, Some(json!("all")));
        assert_eq!(
            finding.now(Some(&context), "").await,
            Some(json!("all")),
            "until there is something newer"
        );
        done.send(json!("more")).expect("it is looked for anew");
        while !finding.task.as_ref().expect("it runs").is_finished() {
            std::thread::yield_now();
        }
        assert_eq!(finding.now(Some(&context), "").await, Some(json!("more")));
        // What ended long ago is not what is told where something newer can be had.
        for word in ["old", "new"] {
            done.send(json!(word)).expect("it is looked for");
        }
        while !finding.task.as_ref().is_none_or(JoinHandle::is_finished) {
            std::thread::yield_now();
        }
        assert_eq!(finding.now(Some(&context), "").await, Some(json!("new")));
        assert_eq!(finding.now(None, "").await, None);
        drop(done);
    }

    #[tokio::test]
    async fn the_files_that_messages_name_are_open_the_newest_first() {
        let context = Context::Found {
            find: Arc::new(|| json!({ "workspacePath": "/w" })),
            open: Arc::new(|message| {
                message
                    .split(' ')
                    .filter(|it| it.contains('.'))
                    .map(str::to_owned)
                    .collect()
            }),
            meanwhile: json!({}),
        };
        let mut finding = ContextSearch::default();
        for (message, open) in [
            ("hi", json!(null)),
            ("see a.rs b.rs", json!(["a.rs", "b.rs"])),
            ("and c.rs b.rs", json!(["c.rs", "b.rs", "a.rs"])),
            ("hi", json!(["c.rs", "b.rs", "a.rs"])),
        ] {
            let context = finding.now(Some(&context), message).await.expect("there is one");
            assert_eq!(context["openFiles"], open, "{message}");
        }
    }
}
