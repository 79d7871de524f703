//! Answers to questions that leave no trace in the conversation.

use std::{future::ready, pin::Pin, sync::Arc, time::Duration};

use futures::FutureExt;
use tokio::sync::oneshot;

use super::{
    Runner, commits::Source, hook_report, model_offers, problems, sandbox_status, side_question::side_question,
    skill_report,
};
use crate::{
    agent::{
        approval,
        git::{self, Repository},
        served, undo,
    },
    config::ConfiguredRule,
    link::{AskError, Asker},
    models::Failure,
    protocol::{GitChanges, Position, Query, Reply, ServerStatus},
    sandbox::Workspace,
    transcript::Transcript,
};

/// Time that a report waits for servers of tools that are being started.
const SERVERS_PATIENCE: Duration = Duration::from_secs(3);

/// The answer to a question; `None`: this agent cannot answer it.
type ReplyFuture = Pin<Box<dyn Future<Output = Result<Option<Reply>, Unanswered>> + Send>>;

/// The reason why a question has no answer.
enum Unanswered {
    /// The question is wrong.
    Refused(String),
    /// The server that was asked has failed.
    Failed(Failure),
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Runner {
    /// Answers a question beside the answer that may be running.
    pub(super) fn ask(&mut self, query: Query, reply: oneshot::Sender<Result<Reply, AskError>>) {
        let peer = self.setup.provider.peer().to_owned();
        let answer = self.answer(query);
        tokio::spawn(async move {
            let answer = match answer.await {
                Ok(answer) => answer.ok_or(AskError::Unsupported { peer }),
                Err(Unanswered::Refused(why)) => Err(AskError::Refused(why)),
                Err(Unanswered::Failed(failure)) => Err(AskError::Failed {
                    peer,
                    source: failure.into(),
                }),
            };
            // The asker may have gone.
            let _ = reply.send(answer);
        });
    }

    fn answer(&mut self, query: Query) -> ReplyFuture {
        let workspace = self.setup.workspace.clone();
        let is_here = self.setup.asker == Asker::Here;
        match query {
            Query::Models => Box::pin(self.setup.provider.models().map(|models| {
                let ids = models?.into_iter().map(|it| it.id).collect();
                Ok(Some(Reply::Models(ids)))
            })),
            Query::ModelOffers => Box::pin(model_offers::find(&self.setup).map(|it| Ok(Some(Reply::ModelOffers(it))))),
            Query::Trust if is_here && workspace.is_some() => {
                let report = self.trust.report(&self.setup, &mut self.context);
                Box::pin(report.map(|it| Ok(Some(Reply::Trust(it)))))
            }
            Query::DecideTrust(answer) if is_here => {
                let (setup, context) = (&self.setup, &mut self.context);
                let decided = self.trust.decide(answer, setup, context, &self.log);
                if let Some(servers) = setup.servers.as_ref().filter(|_| decided.is_ok()) {
                    servers.recheck();
                }
                let decided = decided.map(|()| Some(Reply::Accepted));
                Box::pin(ready(decided.map_err(Unanswered::Refused)))
            }
            Query::Servers if is_here && let Some(servers) = self.setup.servers.clone() => {
                servers.start();
                Box::pin(async move {
                    servers.settled(SERVERS_PATIENCE).await;
                    Ok(Some(Reply::Servers(served::report(&servers))))
                })
            }
            Query::PromptValues(draft) if is_here && let Some(servers) = self.setup.servers.clone() => {
                Box::pin(async move {
                    let values = served::prompt_values(&draft, &servers).await;
                    Ok(Some(Reply::PromptValues(values)))
                })
            }
            Query::ChangeServer { server, change } if is_here && let Some(servers) = self.setup.servers.clone() => {
                Box::pin(async move {
                    served::change(&servers, &server, change).map_err(Unanswered::Refused)?;
                    servers.settled(SERVERS_PATIENCE).await;
                    Ok(Some(Reply::Servers(served::report(&servers))))
                })
            }
            Query::Changes if let Some(workspace) = workspace => {
                let seen = Arc::clone(&self.tools.seen);
                on_thread(move || Reply::Changes(undo::changes(&seen, &workspace)))
            }
            Query::RestorePreview(wish) if let Some(workspace) = workspace => {
                let (seen, log) = (Arc::clone(&self.tools.seen), Arc::clone(&self.log));
                on_thread(move || {
                    let transcript = Transcript::from_entries(&log.after(Position(0)));
                    let found = undo::preview(&seen, &workspace, &transcript, &wish);
                    Reply::RestorePreview(found.unwrap_or_default())
                })
            }
            Query::FileOpened(path) if let Some(workspace) = workspace => {
                self.context.opened(path, &workspace);
                at_once(Reply::Accepted)
            }
            Query::Sandbox { guard } if is_here && let Some(workspace) = workspace => {
                let (paths, hold) = (self.setup.paths.clone(), self.setup.hold.clone());
                // The first who asks waits for a trial.
                on_thread(move || Reply::Sandbox(sandbox_status::sandbox(&workspace, paths.as_ref(), guard, &hold)))
            }
            Query::Permissions { forget } if is_here => {
                let session = &mut self.turn.memory.policy.rules.session;
                if forget {
                    session.clear();
                }
                at_once(Reply::Permissions(approval::permissions(&self.setup.settings, session)))
            }
            Query::CommitPreview(wanted) if is_here && let Some(workspace) = workspace => {
                let source = self.source(workspace);
                Box::pin(
                    source
                        .preview(wanted)
                        .map(|it| Ok(Some(Reply::CommitPreview(Box::new(it))))),
                )
            }
            Query::CommitMessage(wanted) if is_here && let Some(workspace) = workspace => {
                let source = self.source(workspace);
                let fast = self.setup.roles.fast().ok().flatten();
                let chosen = fast.unwrap_or_else(|| self.model.chosen.clone());
                Box::pin(
                    source
                        .message(wanted, chosen)
                        .map(|it| Ok(Some(Reply::CommitMessage(it)))),
                )
            }
            Query::Commit(request) if is_here && let Some(workspace) = workspace => {
                let source = self.source(workspace);
                Box::pin(source.commit(*request).map(|it| Ok(Some(Reply::Commit(it)))))
            }
            Query::GitChanges if is_here && let Some(workspace) = workspace => Box::pin(async move {
                let found = match Repository::open(workspace.root()).await {
                    Ok(repository) => git::changes::documents(&repository, &workspace).await,
                    Err(error) => Err(error),
                };
                let changes = found.unwrap_or_else(|error| GitChanges {
                    problem: error.to_string(),
                    ..GitChanges::default()
                });
                Ok(Some(Reply::GitChanges(changes)))
            }),
            Query::SideQuestion(question) => {
                let (log, chosen) = (Arc::clone(&self.log), self.model.chosen.clone());
                let settings = Arc::clone(&self.setup.settings);
                let answer = side_question(chosen, settings, log, question);
                Box::pin(answer.map(|it| Ok(Some(Reply::SideAnswer(it)))))
            }
            Query::CheckRule(rule) if is_here => {
                let checked = approval::Rule::parse(&rule, std::env::home_dir().as_deref());
                let checked = checked.map(|_| Some(Reply::Accepted));
                Box::pin(ready(checked.map_err(|it| Unanswered::Refused(it.to_string()))))
            }
            Query::ChangeRule { list, rule, is_removed } if is_here => {
                self.change_rule(list, &rule, is_removed);
                at_once(Reply::Accepted)
            }
            Query::Status => {
                let chosen = &self.model.chosen;
                let account = chosen.provider.account();
                at_once(Reply::Status(ServerStatus {
                    peer: chosen.provider.peer().to_owned(),
                    model: chosen.model.clone(),
                    key: account.key,
                    limits: account.limits,
                    limits_at_ms: account.limits_at_ms,
                }))
            }
            Query::Skills if is_here => {
                self.context.note_skills(&self.turn.memory.history);
                let window = self.turn.memory.window.tokens;
                at_once(Reply::Extensions(skill_report::entries(&self.context.skills(), window)))
            }
            Query::Hooks if is_here => at_once(Reply::Extensions(hook_report::entries(&self.context.hooks().all()))),
            Query::Problems if is_here && let Some(workspace) = workspace => {
                let seen = &self.tools.seen;
                let sources = problems::Sources {
                    workspace,
                    settings: Arc::clone(&self.setup.settings),
                    servers: self.context.servers(),
                    findings: self.context.findings(),
                    changed: seen.changed(),
                    known: seen.known(),
                };
                Box::pin(problems::find(sources).map(|it| Ok(Some(Reply::Problems(it)))))
            }
            Query::EndSession => Box::pin(self.end_session().map(|()| Ok(Some(Reply::Accepted)))),
            Query::Files { pattern, limit } => Box::pin(self.context.find_files(pattern, limit).map(Ok)),
            Query::Symbols { pattern, limit } if let Some(workspace) = workspace => {
                Box::pin(self.context.find_symbols(workspace, pattern, limit).map(Ok))
            }
            Query::Context => {
                // What was said before this program ran is part of what the next request holds.
                if !self.is_busy() {
                    self.size_up();
                    self.remember_once();
                }
                let parts = self.context.context(&self.setup, &self.model.chosen, &self.turn.memory);
                at_once(Reply::Context(parts))
            }
            // `Query` is open: what has no arm here is unsupported, as with `Link::ask`.
            _ => Box::pin(ready(Ok(None))),
        }
    }
}

impl Runner {
    /// Takes over a change of the rules in the user's settings.
    fn change_rule(&mut self, list: &str, rule: &str, is_removed: bool) {
        let settings = Arc::make_mut(&mut self.setup.settings);
        let approvals = &mut settings.approvals;
        let rules = match list {
            "approvals.deny" => &mut approvals.deny,
            "approvals.ask" => &mut approvals.ask,
            _ => &mut approvals.allow,
        };
        rules.retain(|it| it.rule != rule);
        let policy = &mut self.turn.memory.policy;
        if is_removed {
            // "Always" has allowed it for the session, too.
            policy.rules.session.retain(|it| it.to_string() != rule);
        } else {
            rules.push(ConfiguredRule::new(rule));
        }
        let (mut rules, _) = approval::Rules::read(settings, std::env::home_dir().as_deref());
        rules.session = std::mem::take(&mut policy.rules.session);
        policy.rules = rules;
        // What must not be read is hidden from commands and searches, too.
        if list == "approvals.deny"
            && let Some(workspace) = &self.setup.workspace
        {
            workspace.apply_rules(settings);
        }
    }

    /// The conversation that commits are made from.
    fn source(&self, workspace: Arc<Workspace>) -> Source {
        Source {
            workspace,
            seen: Arc::clone(&self.tools.seen),
            log: Arc::clone(&self.log),
            settings: Arc::clone(&self.setup.settings),
        }
    }
}

fn at_once(reply: Reply) -> ReplyFuture {
    Box::pin(ready(Ok(Some(reply))))
}

/// Works on a thread that may block.
fn on_thread(work: impl FnOnce() -> Reply + Send + 'static) -> ReplyFuture {
    Box::pin(tokio::task::spawn_blocking(work).map(|it| Ok(it.ok())))
}
