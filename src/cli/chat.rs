//! Stored conversations by id: create, resume, fork; and the `status` and `models` subcommands.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result};

use super::{CliContext, UsageError, arguments::Run, code, complain, open, runtime, say, sessions};
use crate::{
    cli::open::ConversationOptions,
    config::Upstream,
    journal::{
        Log,
        file::{Recorder, Session, Store, StoreError},
    },
    link::follow::Followed,
    protocol::{Query, Reply},
    tui,
};

/// A conversation to resume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResumeTarget {
    /// The last one in this workspace.
    Last,
    /// An id or a title.
    Named(String),
}

/// A conversation that has been opened.
pub struct OpenedConversation {
    pub session: Session,
    pub log: Arc<Log>,
    /// `None` if nothing is stored.
    pub recorder: Option<Recorder>,
    /// True if it is a fork, stored under its own id.
    pub is_copy: bool,
}

/// Returns the target of `--continue` or `--resume`; `None` without either.
///
/// A value of `--resume` with blanks that `is_title` rejects is taken for the beginning of the prompt and moved to
/// `words`.
pub fn resume_target(run: &Run, words: &mut String, is_title: impl Fn(&str) -> bool) -> Option<ResumeTarget> {
    match run.resume.as_deref() {
        None => run.goes_on.then_some(ResumeTarget::Last),
        Some("") => Some(ResumeTarget::Last),
        Some(id) if id.contains(char::is_whitespace) && !is_title(id) => {
            words.insert_str(0, &format!("{id} "));
            Some(ResumeTarget::Last)
        }
        Some(id) => Some(ResumeTarget::Named(id.to_owned())),
    }
}

/// Returns true if the user is to choose from a list: `--resume` without an id and without a message for the last one.
pub fn is_open_choice(run: &Run, words: &str) -> bool {
    run.resume.as_deref() == Some("") && !run.fork && words.trim().is_empty()
}

/// Returns true if a stored conversation has this title, in any case.
pub fn is_title(base: &CliContext, name: &str) -> bool {
    let is_it = |title: &String| title.eq_ignore_ascii_case(name);
    let listed = store(base).list().unwrap_or_default();
    listed.iter().any(|it| it.title.as_ref().is_some_and(is_it))
}

pub fn store(base: &CliContext) -> Store {
    Store::new(base.paths.sessions())
}

fn fresh(base: &CliContext) -> Session {
    Session::fresh(base.workspace.to_string_lossy(), tui::now_ms()).on_branch(tui::git_branch(&base.workspace))
}

/// Returns a new conversation, with `id` if there is one. Nothing is stored yet.
pub fn begin(base: &CliContext, id: Option<&str>) -> Result<OpenedConversation> {
    Ok(OpenedConversation {
        session: named(base, fresh(base), id)?,
        log: Log::new(),
        recorder: None,
        is_copy: false,
    })
}

/// Gives a new session the id that the user chose. Fails if a conversation has it.
pub fn named(base: &CliContext, session: Session, id: Option<&str>) -> Result<Session> {
    let Some(id) = id else { return Ok(session) };
    if store(base).path_of(id).exists() {
        return Err(UsageError(format!(
            "--session-id: there is a conversation with the id {id}\n  --resume={id} continues it"
        ))
        .into());
    }
    Ok(Session {
        id: id.to_owned(),
        ..session
    })
}

/// Returns the id of the conversation to resume.
fn session_id(base: &CliContext, wanted: &ResumeTarget) -> Result<String> {
    Ok(match wanted {
        // An id, or else a title. A name that is neither is reported by the code that opens it.
        ResumeTarget::Named(name) if store(base).path_of(name).exists() => name.clone(),
        ResumeTarget::Named(name) => sessions::find(base, &store(base), name)?.session.id,
        ResumeTarget::Last => {
            let folder = base.workspace.to_string_lossy();
            let listed = store(base).list().context("conversations cannot be listed")?;
            let last = listed
                .into_iter()
                .find(|it| it.session.workspace == folder && !it.is_archived);
            let last = last.with_context(|| format!("no conversation in {folder} to continue"))?;
            last.session.id
        }
    })
}

/// Opens a copy of a conversation. The original stays unchanged and may be open elsewhere.
pub fn fork(
    base: &CliContext,
    store: &Store,
    wanted: &ResumeTarget,
    id: Option<&str>,
    is_unkept: bool,
) -> Result<OpenedConversation> {
    let session = named(base, fresh(base), id)?;
    let stored = store.read(&session_id(base, wanted)?)?;
    let log = store.log_of(stored, tui::now_ms());
    let recorder = (!is_unkept).then(|| record(store, session.clone(), &log)).flatten();
    Ok(OpenedConversation {
        session,
        log,
        recorder,
        is_copy: true,
    })
}

/// Returns the data to follow a conversation that another sheaf has open; `None` if that is not the error.
pub fn followed(store: &Store, state: &Path, error: &StoreError) -> Option<Followed> {
    let StoreError::Held { id, by } = error else {
        return None;
    };
    Some(Followed {
        tail: store.tail(id),
        id: id.clone(),
        by: *by,
        door: answer_socket(state, id),
        lock: store.path_of(id).with_extension("lock"),
    })
}

/// Path of the socket on which other windows send answers, below the state folder.
pub fn answer_socket(state: &Path, id: &str) -> PathBuf {
    state.join("doors").join(format!("{id}.sock"))
}

/// Resumes a conversation. With `is_unkept` nothing more of it is stored.
pub fn open(base: &CliContext, store: &Store, wanted: &ResumeTarget, is_unkept: bool) -> Result<OpenedConversation> {
    let id = session_id(base, wanted)?;
    if is_unkept {
        let stored = store.read(&id)?;
        let session = stored.session.clone();
        return Ok(OpenedConversation {
            session,
            log: store.log_of(stored, tui::now_ms()),
            recorder: None,
            is_copy: false,
        });
    }
    let resumed = store.resume_end(&id, tui::now_ms())?;
    Ok(OpenedConversation {
        session: resumed.session,
        log: resumed.log,
        recorder: Some(resumed.recorder),
        is_copy: false,
    })
}

/// Records `log` in `store`. `None` if that fails: the conversation continues unrecorded, with a notice in the log.
pub fn record(store: &Store, session: Session, log: &Arc<Log>) -> Option<Recorder> {
    store.record(session, log).ok()
}

/// `sheaf create-chat`.
pub fn create(base: &CliContext) -> Result<u8> {
    let session = fresh(base);
    store(base).create(&session)?;
    say(&format!("{}\n", session.id));
    Ok(code::OK)
}

/// `sheaf status`: prints the server that a prompt would go to, without a connection.
pub fn status(base: &CliContext) -> u8 {
    let model = base.settings.model().unwrap_or("the server's own model");
    match base.settings.upstream() {
        Upstream::Gateway(it) => say(&format!("gateway {}\n", it.connection.url().unwrap_or_default())),
        Upstream::Provider(name, it) => {
            let model = base.settings.model().or(it.model.as_deref()).unwrap_or(model);
            say(&format!("provider {name}, {model}\n"));
        }
        Upstream::Nobody => {
            complain(&open::no_server_error().to_string());
            return code::FAILED;
        }
    }
    code::OK
}

/// `sheaf models`.
pub fn models(base: &CliContext) -> Result<u8> {
    let talk = ConversationOptions {
        workspace: base.workspace.clone(),
        added: Vec::new(),
        tools: None,
        log: Log::new(),
        is_copy: false,
        is_attended: false,
        is_answered: false,
        has_user_answers: false,
        is_apart: false,
    };
    runtime(false)?.block_on(async move {
        let link = open::link(&base.settings, &base.environment, &talk)?.ok_or_else(open::no_server_error)?;
        if let Reply::Models(models) = link.ask(Query::Models).await.map_err(io::Error::other)? {
            for model in models {
                say(&format!("{model}\n"));
            }
        }
        Ok(code::OK)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_id_was_meant_as_a_prompt() {
        for (resume, goes_on, words, id, prompt) in [
            (None, false, "x", None, "x"),
            (None, true, "x", Some(ResumeTarget::Last), "x"),
            (Some(""), false, "x", Some(ResumeTarget::Last), "x"),
            (
                Some("abc-1"),
                false,
                "x",
                Some(ResumeTarget::Named("abc-1".to_owned())),
                "x",
            ),
            (Some("and now?"), false, "", Some(ResumeTarget::Last), "and now? "),
        ] {
            let run = Run {
                resume: resume.map(str::to_owned),
                goes_on,
                ..Run::default()
            };
            let mut words = words.to_owned();
            assert_eq!(
                (resume_target(&run, &mut words, |_| false), words.as_str()),
                (id, prompt)
            );
        }
    }
}
