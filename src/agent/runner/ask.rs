//! What is asked beside the answer that may be running.

use std::sync::Arc;

use super::Runner;
use crate::{
    agent::{approval, runner::sandbox_status, undo},
    link::{AskError, Asker},
    protocol::{Position, Query, Reply},
};

impl Runner {
    /// Asks the server or the workspace beside the answer that may be running.
    pub(super) fn ask(&mut self, query: Query, reply: tokio::sync::oneshot::Sender<Result<Reply, AskError>>) {
        let peer = self.setup.provider.peer().to_owned();
        match query {
            Query::Models => {
                let models = self.setup.provider.models();
                tokio::spawn(async move {
                    let answer = match models.await {
                        Ok(models) => Ok(Reply::Models(models.into_iter().map(|it| it.id).collect())),
                        Err(failure) => Err(AskError::Failed {
                            peer,
                            source: failure.into(),
                        }),
                    };
                    // Nobody may be waiting any more.
                    let _ = reply.send(answer);
                });
            }
            Query::Trust => {
                let is_possible = self.setup.asker == Asker::Here && self.setup.workspace.is_some();
                if is_possible {
                    self.trust.look_again(&self.setup, &mut self.briefing);
                }
                let heard = if is_possible {
                    Ok(Reply::Accepted)
                } else {
                    Err(AskError::Unsupported { peer })
                };
                // Nobody may be waiting any more.
                let _ = reply.send(heard);
            }
            Query::Changes | Query::RestorePreview(_) => {
                let Some(workspace) = self.setup.workspace.clone() else {
                    // Nobody may be waiting any more.
                    let _ = reply.send(Err(AskError::Unsupported { peer }));
                    return;
                };
                let seen = Arc::clone(&self.tools.seen);
                let entries = self.log.after(Position(0));
                tokio::task::spawn_blocking(move || {
                    let answer = undo::ask(&query, &seen, &workspace, &entries);
                    // Nobody may be waiting any more.
                    let _ = reply.send(answer.ok_or(AskError::Unsupported { peer }));
                });
            }
            Query::FileOpened(path) => {
                let heard = match &self.setup.workspace {
                    Some(workspace) => {
                        self.briefing.opened(path, workspace);
                        Ok(Reply::Accepted)
                    }
                    None => Err(AskError::Unsupported { peer }),
                };
                let _ = reply.send(heard);
            }
            Query::Sandbox { guard } => {
                let Some(workspace) = self.setup.workspace.clone().filter(|_| self.setup.asker == Asker::Here) else {
                    // Nobody may be waiting any more.
                    let _ = reply.send(Err(AskError::Unsupported { peer }));
                    return;
                };
                let (paths, hold) = (self.setup.paths.clone(), self.setup.hold.clone());
                // The first who asks waits for a trial.
                tokio::task::spawn_blocking(move || {
                    // Nobody may be waiting any more.
                    let _ = reply.send(Ok(Reply::Sandbox(sandbox_status::sandbox(
                        &workspace,
                        paths.as_ref(),
                        guard,
                        &hold,
                    ))));
                });
            }
            Query::Permissions { forget } => {
                if self.setup.asker != Asker::Here {
                    // Nobody may be waiting any more.
                    let _ = reply.send(Err(AskError::Unsupported { peer }));
                    return;
                }
                let session = &mut self.turn.memory.policy.rules.session;
                if forget {
                    session.clear();
                }
                let permissions = approval::permissions(&self.setup.settings, session);
                let _ = reply.send(Ok(Reply::Permissions(permissions)));
            }
            Query::Files { .. } | Query::Symbols { .. } | Query::Context => {
                // What was said before this program ran is part of what the next request holds.
                if query == Query::Context && !self.is_busy() {
                    self.size_up();
                    self.remember_once();
                }
                let answer = self
                    .briefing
                    .ask(query, &self.setup, &self.model.chosen, &self.turn.memory);
                tokio::spawn(async move {
                    let _ = reply.send(answer.await.ok_or(AskError::Unsupported { peer }));
                });
            }
        }
    }
}
