//! Commands that go on in the background: what they print and how they end is said where they were shown.

use std::{pin::Pin, time::Duration};

use futures::{
    Stream, StreamExt,
    stream::{self, SelectAll},
};
use serde_json::{Map, Value};

use crate::{
    agent::tags::{wrap, wrap_ours},
    protocol::{CommandState, DocumentId, Event, Turn},
    sandbox::{Running, Workspace},
    tools::run_terminal_cmd::{end_note, standing, stood},
};

/// The first time that something new is told, and the longest: each is a line in the journal.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A change of a command's document, with its turn.
#[derive(Debug)]
pub struct Update {
    pub turn: Turn,
    pub document: DocumentId,
    pub metadata: Map<String, Value>,
}

impl Update {
    /// The event that updates the document.
    pub fn event(self) -> Event {
        Event::DocumentUpdate {
            document: self.document,
            metadata: self.metadata,
        }
    }
}

/// All that is followed.
#[derive(Default)]
pub struct Background {
    shown: Vec<(Turn, DocumentId, Running)>,
    /// Those of which the model hears when they end.
    told: Vec<Running>,
    updates: SelectAll<Pin<Box<dyn Stream<Item = Update> + Send>>>,
}

impl Background {
    /// The end of a document: when it is a command's that goes on, it is followed.
    /// `is_told`: the model knows of it.
    pub fn note(&mut self, event: &Event, turn: Turn, is_told: bool, workspace: Option<&Workspace>) {
        let (Event::DocumentEnd { document, metadata, .. }, Some(workspace)) = (event, workspace) else {
            return;
        };
        let text = |name: &str| metadata.get(name).and_then(Value::as_str);
        if text("state") != Some(CommandState::Background.as_str()) {
            return;
        }
        if let Some(running) = text("commandId").and_then(|it| workspace.commands().get(it)) {
            self.shown.push((turn, document.clone(), running.clone()));
            self.told.extend(is_told.then(|| running.clone()));
            self.updates.push(Box::pin(follow(turn, document.clone(), running)));
        }
    }

    /// Takes the notes for the model on commands that have ended and of whose end it does not know.
    pub fn ended(&mut self) -> Vec<String> {
        let (over, open) = std::mem::take(&mut self.told)
            .into_iter()
            .partition(|it: &Running| it.outcome().is_some());
        self.told = open;
        let untold = over.iter().filter(|it: &&Running| it.has_untold_end());
        untold
            .filter_map(|running| {
                let (sentence, output) = end_note(running)?;
                running.tell_end();
                let mut note = wrap_ours("system_reminder", &sentence);
                if !output.is_empty() {
                    note.push('\n');
                    note.push_str(&wrap("command_output", &output));
                }
                Some(note)
            })
            .collect()
    }

    /// Stops a command; its end comes as an update. One that nobody knows here was another program's, which has ended:
    /// returns the update that says so.
    pub fn stop(&self, turn: Turn, document: &DocumentId) -> Option<Update> {
        let mut shown = self.shown.iter();
        if let Some((_, _, running)) = shown.find(|it| it.0 == turn && it.1 == *document) {
            running.stop();
            return None;
        }
        let state = CommandState::Cancelled.as_str();
        Some(Update {
            turn,
            document: document.clone(),
            metadata: Map::from_iter([("state".to_owned(), state.into())]),
        })
    }

    /// Returns true if no command runs in the background.
    pub fn is_empty(&self) -> bool {
        self.updates.is_empty()
    }

    /// The next update, once there is one; `None` when no command runs.
    pub async fn next(&mut self) -> Option<Update> {
        self.updates.next().await
    }

    /// Final updates for the commands that still run when the conversation ends.
    pub fn close(&mut self) -> Vec<Update> {
        self.updates.clear();
        let open = std::mem::take(&mut self.shown).into_iter();
        open.filter(|(_, _, running)| running.outcome().is_none())
            .map(|(turn, document, running)| {
                let mut metadata = standing(&running);
                metadata.insert("state".into(), CommandState::Cancelled.as_str().into());
                Update {
                    turn,
                    document,
                    metadata,
                }
            })
            .collect()
    }
}

/// News of a command: what it printed, more and more seldom, and its end.
fn follow(turn: Turn, document: DocumentId, running: Running) -> impl Stream<Item = Update> + Send {
    let start = running.since(0).end;
    stream::unfold(Some((start, FIRST_PAUSE)), move |state| {
        let (running, document) = (running.clone(), document.clone());
        async move {
            let (read, pause) = state?;
            let is_over = tokio::select! {
                _ = running.ended() => true,
                () = async {
                    running.news(read).await;
                    tokio::time::sleep(pause).await;
                } => running.outcome().is_some(),
            };
            let metadata = if is_over { standing(&running) } else { stood(&running) };
            let update = Update {
                turn,
                document,
                metadata,
            };
            let next = (!is_over).then(|| (running.since(0).end, (pause * 2).min(LONGEST_PAUSE)));
            Some((update, next))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_a_program_that_was_killed_is_marked_as_ended() {
        let update = Background::default().stop(Turn(2), &"a".into()).unwrap();
        let state = update.metadata.get("state").and_then(Value::as_str);
        assert_eq!((update.turn, state), (Turn(2), Some("cancelled")));
    }
}
