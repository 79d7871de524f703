//! Commits of accepted changes: what the card shows, the message, and the commit that the user's Enter starts.

use std::{sync::Arc, time::Duration};

use serde_json::Map;

use super::{
    notices::now_ms,
    side_question::{Bill, said},
};
use crate::{
    agent::{
        git::{
            self, Repository,
            accepted::{Accepted, Files, uncommitted},
            commit,
        },
        tags::wrap,
    },
    config::Settings,
    journal::Log,
    models::{Chosen, ModelMessage},
    protocol::{
        CommitOutcome, CommitPreview, CommitRequest, DocumentId, Event, Position, Turn, UserAction, document::COMMITTED,
    },
    sandbox::{Seen, Workspace},
    transcript::Transcript,
};

const SYSTEM: &str = include_str!("../../../assets/prompts/commit_message.md");
/// The plain message stays if a model takes longer.
const MESSAGE_PATIENCE: Duration = Duration::from_secs(30);
/// Longest message that a model may write, in bytes.
const MESSAGE_BYTES: usize = 4 << 10;

/// The conversation that commits are made from.
#[derive(Clone)]
pub struct Source {
    pub workspace: Arc<Workspace>,
    pub seen: Arc<Seen>,
    pub log: Arc<Log>,
    pub settings: Arc<Settings>,
}

impl Source {
    async fn accepted(&self, wanted: Vec<(Turn, DocumentId)>) -> Result<(Repository, Arc<Accepted>), git::Error> {
        let repository = Repository::open(self.workspace.root()).await?;
        let log = Arc::clone(&self.log);
        let transcript = git::on_thread(move || Transcript::from_entries(&log.after(Position(0)))).await?;
        let wanted = uncommitted(&transcript, wanted, &repository).await;
        let (source, of) = (self.clone(), repository.clone());
        let collect = move || {
            let files = Files {
                workspace: &source.workspace,
                seen: &source.seen,
            };
            Arc::new(Accepted::new(&transcript, &wanted, &of, &files))
        };
        Ok((repository, git::on_thread(collect).await?))
    }

    /// Describes the commit, or says why there can be none.
    pub async fn preview(self, wanted: Vec<(Turn, DocumentId)>) -> CommitPreview {
        let found = match self.accepted(wanted).await {
            Ok((repository, accepted)) => commit::preview(&repository, &accepted, &self.settings.commit.note).await,
            Err(error) => Err(error),
        };
        found.unwrap_or_else(|error| CommitPreview {
            problem: error.to_string(),
            ..CommitPreview::default()
        })
    }

    /// Has a model write the message. `""`: there is none, it failed, or it took too long.
    pub async fn message(self, wanted: Vec<(Turn, DocumentId)>, chosen: Chosen) -> String {
        let Ok((repository, accepted)) = self.accepted(wanted).await else {
            return String::new();
        };
        let Ok((patch, subjects)) = commit::patch(&repository, &accepted).await else {
            return String::new();
        };
        let mut asked: Vec<&str> = accepted.hunks.iter().map(|it| it.asked.as_str()).collect();
        asked.dedup();
        let asked = asked.join("\n\n");
        let asked = asked
            .get(..asked.floor_char_boundary(MESSAGE_BYTES))
            .unwrap_or_default();
        let text = [
            wrap("earlier_subjects", &subjects),
            wrap("user_query", asked),
            wrap("commit_patch", &patch),
        ];
        let bill = Bill {
            settings: self.settings,
            log: self.log,
        };
        let messages = vec![ModelMessage::user(text.join("\n"))];
        let answer = said(chosen, SYSTEM, messages, MESSAGE_BYTES, &bill);
        let answer = tokio::time::timeout(MESSAGE_PATIENCE, answer).await;
        tidy(&answer.unwrap_or_else(|_| Ok(String::new())).unwrap_or_default())
    }

    /// Commits, and says so in the conversation as soon as the commit is made: hooks may run after it.
    pub async fn commit(self, request: CommitRequest) -> CommitOutcome {
        let (repository, accepted) = match self.accepted(request.documents.clone()).await {
            Ok(it) => it,
            Err(error) => {
                return CommitOutcome {
                    output: error.to_string(),
                    ..CommitOutcome::default()
                };
            }
        };
        let mut is_said = false;
        let made = |outcome: &CommitOutcome| {
            self.say(outcome, repository.head.is_some(), !is_said);
            is_said = true;
        };
        let outcome = commit::commit(&repository, &accepted, &request, &self.settings.commit.note, made).await;
        outcome.unwrap_or_else(|error| CommitOutcome {
            output: error.to_string(),
            ..CommitOutcome::default()
        })
    }

    /// Notes in the documents that they are committed. `notices`: a line in the conversation says how to take it back.
    fn say(&self, outcome: &CommitOutcome, has_parent: bool, notices: bool) {
        let Some(commit) = &outcome.commit else { return };
        for (turn, document) in &outcome.documents {
            let metadata = Map::from_iter([(COMMITTED.to_owned(), commit.as_str().into())]);
            let event = Event::DocumentUpdate {
                document: document.clone(),
                metadata,
            };
            self.log.append_to(*turn, now_ms(), event);
        }
        if notices {
            let short = commit.get(..8).unwrap_or(commit);
            let back = if has_parent {
                "git reset --soft HEAD~1"
            } else {
                "git update-ref -d HEAD"
            };
            let notice = UserAction::Committed.notice(&[short, back]);
            self.log.append(now_ms(), Event::Notice(notice));
        }
    }
}

/// A model's message as git wants it: without a fence around it, and without blanks at its ends.
fn tidy(said: &str) -> String {
    let said = said.trim();
    let inner = said
        .strip_prefix("```")
        .and_then(|it| it.strip_suffix("```"))
        .and_then(|it| it.split_once('\n'));
    let text = inner.map_or(said, |it| it.1).trim().trim_matches('"');
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_free_of_what_models_put_around_it() {
        for (said, message) in [
            ("fix it\n", "fix it"),
            ("```\nfix it\n\nbecause  \n```", "fix it\n\nbecause"),
            ("```text\nfix it\n```", "fix it"),
            ("\"fix it\"", "fix it"),
            ("", ""),
        ] {
            assert_eq!(tidy(said), message);
        }
    }
}
