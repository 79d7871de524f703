//! Tools are prepared and run: where they may block, on threads of their own.

use std::{
    any::Any,
    borrow::Cow,
    pin::Pin,
    sync::{Arc, PoisonError},
    time::Instant,
};

use futures::{FutureExt, StreamExt};
use tokio::sync::{mpsc, watch};

use super::Driver;
use crate::{
    agent::{
        behind::Behind,
        marks,
        turn::{Input, JobId, Prepared},
        undo,
    },
    os::panic,
    sandbox::{Commands, Tier},
    text::redact,
    tool::{Access, Context, Fault, Input as Arguments, Outcome, Proposal, Stop, Tool, Work},
};

impl Driver {
    pub(super) fn context(&self, call: String, output: mpsc::UnboundedSender<String>) -> Option<Context> {
        let workspace = Arc::clone(self.setup.workspace.as_ref()?);
        Some(Context {
            workspace,
            seen: Arc::clone(&self.seen),
            index: Arc::clone(&self.index),
            findings: self.briefing.findings(),
            settings: Arc::clone(&self.setup.settings),
            apply: self.setup.roles.apply().ok().flatten(),
            call,
            output,
            stop: self.stop.0.clone(),
        })
    }

    /// Looks at the workspace on a thread of its own, which nobody waits for: the first command needs to know what was there.
    pub(super) fn look_first(&mut self) {
        let Some(workspace) = self.setup.workspace.clone() else {
            return;
        };
        if std::mem::replace(&mut self.has_looked, true) || self.seen.checkpoints().is_none() {
            return;
        }
        let seen = Arc::clone(&self.seen);
        let look = move || {
            if let Some(checkpoints) = seen.checkpoints() {
                checkpoints.prepare(&workspace);
            }
        };
        if let Err(error) = std::thread::Builder::new().name("survey".to_owned()).spawn(look) {
            tracing::warn!(%error, "the workspace is looked at when the first command runs");
        }
    }

    /// Works out what a call would touch or change, on a thread of its own.
    pub(super) fn prepare(&mut self, job: JobId, tool: &'static Tool, call: String, arguments: Arguments) {
        let (output, _) = mpsc::unbounded_channel();
        let context = self.context(call, output);
        if matches!(tool.work, Work::Command { .. }) {
            self.look_first();
        }
        let looked_at = Arc::clone(&self.looked_at);
        let work = async move {
            let Some(context) = context else {
                return Err(no_workspace());
            };
            match tool.work {
                Work::Call { touches, .. } | Work::Command { touches, .. } => {
                    let accesses = touches(&arguments, &context)?;
                    let has_command = accesses.iter().any(|it| matches!(it, Access::Command { .. }));
                    if matches!(tool.work, Work::Command { .. }) {
                        let behind = Behind::of(&accesses, &context.workspace);
                        looked_at
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .insert(job, behind);
                    }
                    Ok(Prepared {
                        accesses,
                        proposal: None,
                        tier: if has_command { Commands::tier() } else { Tier::None },
                    })
                }
                Work::Change(propose) => {
                    let proposal = propose(arguments, context).await?;
                    Ok(Prepared {
                        accesses: proposal.accesses(),
                        proposal: Some(proposal),
                        tier: Tier::None,
                    })
                }
                Work::Turn(_) => Ok(Prepared {
                    accesses: Vec::new(),
                    proposal: None,
                    tier: Tier::None,
                }),
            }
        };
        let work = self.aside(work);
        self.jobs.push(Box::pin(async move {
            let result = work.await;
            Input::Prepared { job, result }
        }));
    }

    pub(super) fn run_tool(
        &mut self,
        job: JobId,
        tool: &'static Tool,
        call: String,
        mut arguments: Arguments,
        was_asked: bool,
    ) {
        let began = Instant::now();
        let behind = self
            .looked_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&job)
            .filter(|_| was_asked);
        // Another command may have gone elsewhere since the user was shown where this one runs.
        if let Some(directory) = behind.as_ref().and_then(|it| it.directory.as_ref()?.to_str()) {
            arguments.0.insert("working_directory".to_owned(), directory.into());
        }
        let (output, mut printed) = mpsc::unbounded_channel();
        let context = self.context(call, output);
        let is_command = matches!(tool.work, Work::Command { .. });
        let work = async move {
            let Some(context) = context else {
                return Err(no_workspace());
            };
            if let Some(behind) = behind {
                let workspace = Arc::clone(&context.workspace);
                let looked = tokio::task::spawn_blocking(move || behind.changed(&workspace)).await;
                if let Some(file) = looked.unwrap_or_default() {
                    let message = format!("`{file}` has changed since the user was asked about this command");
                    return Err(Fault::new("COMMAND_CHANGED", message)
                        .hint("It was not run. Call again, so that the user can look at what it is now."));
                }
            }
            match tool.work {
                Work::Command { run, .. } => undo::watched(run, arguments, context).await,
                Work::Call { run, .. } => run(arguments, context).await,
                Work::Change(_) | Work::Turn(_) => Ok(Outcome::default()),
            }
        };
        let done = move |result: Result<Outcome, Fault>| Input::Ran {
            job,
            // Whatever a tool has come upon, the model is not told our keys.
            result: result.map(|it| match redact::held(&it.text) {
                Cow::Borrowed(_) => it,
                Cow::Owned(text) => Outcome { text, ..it },
            }),
            took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        if is_command {
            let printed = futures::stream::poll_fn(move |cx| printed.poll_recv(cx));
            self.outputs.push(Box::pin(printed.map(move |text| (job, text))));
            // On this very thread: a child that is to die with its parent dies with the thread that started it.
            self.jobs.push(Box::pin(async move {
                let result = panic::contained(work).await;
                done(result.unwrap_or_else(|panic| Err(broken(&panic))))
            }));
        } else {
            let work = self.aside(work);
            self.jobs.push(Box::pin(async move { done(work.await) }));
        }
    }

    pub(super) fn make(&mut self, job: JobId, call: String, proposal: Proposal) {
        let began = Instant::now();
        let workspace = self.setup.workspace.clone();
        let seen = Arc::clone(&self.seen);
        let (lints, known) = (self.briefing.lints(), Arc::clone(&self.known));
        let work = self.aside(async move {
            let workspace = workspace.ok_or_else(no_workspace)?;
            if let Some(before) = lints.and_then(|it| it.before(&proposal.changes)) {
                known.lock().unwrap_or_else(PoisonError::into_inner).insert(job, before);
            }
            workspace.commit_for(&seen, &call, &proposal.changes)?;
            Ok(Outcome::default())
        });
        self.jobs.push(Box::pin(async move {
            Input::Ran {
                job,
                result: work.await,
                took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            }
        }));
    }

    /// Asks checkers about what a call has changed. Whatever becomes of it, there is an answer, and soon.
    pub(super) fn check(&mut self, job: JobId) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&job);
        let asked = self
            .briefing
            .lints()
            .zip(known)
            .map(|(lints, known)| lints.after(known));
        self.jobs.push(Box::pin(async move {
            let said = match asked {
                Some(asked) => asked.await,
                None => None,
            };
            let text = said.unwrap_or_default();
            Input::Checked {
                job,
                text: redact::held(&text).into_owned(),
            }
        }));
    }

    /// Runs `work` on a thread where it may block. Whatever becomes of it, there is a result.
    pub(super) fn aside<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Pin<Box<dyn Future<Output = Result<T, Fault>> + Send>> {
        let mut stopped = self.stop.1.subscribe();
        let runtime = tokio::runtime::Handle::current();
        let task = tokio::task::spawn_blocking(move || {
            runtime.block_on(async move {
                tokio::select! {
                    biased;
                    _ = stopped.wait_for(|it| *it) => Err(Fault::new("CANCELLED", "cancelled by the user")),
                    result = panic::contained(work) => {
                        result.unwrap_or_else(|panic| Err(broken(&panic)))
                    }
                }
            })
        });
        let broken = |error| Err(Fault::new("INTERNAL", format!("the tool broke down: {error}")));
        Box::pin(task.map(move |it| it.unwrap_or_else(broken)))
    }

    pub(super) fn stop_jobs(&mut self) {
        let (stop, sender) = std::mem::replace(&mut self.stop, (Stop::default(), watch::Sender::new(false)));
        stop.set();
        sender.send_replace(true);
        self.jobs.clear();
        self.outputs.clear();
    }

    /// Debugging is left: what it put into the code should not stay there unsaid.
    pub(super) fn look_for_marks(&self) {
        let workspace = self.setup.workspace.clone();
        let stop = Stop::default();
        let work = self.aside(async move { Ok(workspace.map_or_else(Vec::new, |it| marks::find(&it, &stop))) });
        self.left.push(Box::pin(work.map(Result::unwrap_or_default)));
    }

    pub(super) fn find_marks(&mut self) {
        let workspace = self.setup.workspace.clone();
        let stop = self.stop.0.clone();
        let work = self.aside(async move { Ok(workspace.map_or_else(Vec::new, |it| marks::find(&it, &stop))) });
        self.jobs
            .push(Box::pin(async move { Input::Marks(work.await.unwrap_or_default()) }));
    }
}

pub(super) fn no_workspace() -> Fault {
    Fault::new("TOOL_FAILED", "there is no workspace here")
}

/// A tool that panicked: its call failed, and nothing else.
pub(super) fn broken(panic: &Box<dyn Any + Send>) -> Fault {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    Fault::new("INTERNAL", format!("the tool broke down: {text}")).hint("Do it in another way.")
}
