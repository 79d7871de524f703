//! Conversations by their ids: begun, taken up again; and who there is to talk to.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result};

use super::{Base, arguments::Run, code, complain, open, runtime, say, sessions};
use crate::{
    cli::open::Talk,
    config::Upstream,
    journal::{
        Log,
        file::{Recorder, Session, Store, StoreError},
    },
    link::follow::Followed,
    protocol::{Query, Reply},
    tui,
};

/// The conversation that is to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The last one in this workspace.
    Last,
    Named(String),
}

/// A conversation that has been opened.
pub struct Opened {
    pub session: Session,
    pub log: Arc<Log>,
    pub recorder: Option<Recorder>,
    /// It goes on under a name of its own.
    pub is_copy: bool,
}

/// What `--continue` and `--resume` ask for. What stands behind `--resume` and is neither an id nor a title was meant as a prompt.
pub fn wanted(run: &Run, words: &mut String, is_title: impl Fn(&str) -> bool) -> Option<Wanted> {
    match run.resume.as_deref() {
        None => run.goes_on.then_some(Wanted::Last),
        Some("") => Some(Wanted::Last),
        Some(id) if id.contains(char::is_whitespace) && !is_title(id) => {
            words.insert_str(0, &format!("{id} "));
            Some(Wanted::Last)
        }
        Some(id) => Some(Wanted::Named(id.to_owned())),
    }
}

/// Whether a conversation is called that.
pub fn is_title(base: &Base, name: &str) -> bool {
    let is_it = |title: &String| title.eq_ignore_ascii_case(name);
    let listed = store(base).list().unwrap_or_default();
    listed.iter().any(|it| it.title.as_ref().is_some_and(is_it))
}

pub fn store(base: &Base) -> Store {
    Store::new(base.paths.sessions())
}

fn fresh(base: &Base) -> Session {
    Session::fresh(base.workspace.to_string_lossy(), tui::now_ms())
}

/// A conversation of which nothing is on the disk yet.
pub fn begin(base: &Base) -> Opened {
    Opened {
        session: fresh(base),
        log: Log::new(),
        recorder: None,
        is_copy: false,
    }
}

/// The id of the conversation that is to go on.
fn named(base: &Base, wanted: &Wanted) -> Result<String> {
    Ok(match wanted {
        // An id, or else a title: what is wrong with a name that is neither is said by whoever opens it.
        Wanted::Named(name) if store(base).path_of(name).exists() => name.clone(),
        Wanted::Named(name) => sessions::find(base, &store(base), name)?.session.id,
        Wanted::Last => {
            let folder = base.workspace.to_string_lossy();
            let listed = store(base).list().context("the conversations cannot be listed")?;
            let last = listed
                .into_iter()
                .find(|it| it.session.workspace == folder && !it.is_archived);
            let last = last.with_context(|| format!("there is no conversation in {folder} to go on with"))?;
            last.session.id
        }
    })
}

/// Goes on with a copy of a conversation, which stays as it is, be it open elsewhere or not.
pub fn fork(base: &Base, wanted: &Wanted, is_unkept: bool) -> Result<Opened> {
    let stored = store(base).read(&named(base, wanted)?)?;
    let log = Log::from_entries(stored.closed());
    let session = fresh(base);
    let recorder = (!is_unkept)
        .then(|| record(&store(base), session.clone(), &log))
        .flatten();
    Ok(Opened {
        session,
        log,
        recorder,
        is_copy: true,
    })
}

/// What is needed to follow a conversation that another sheaf has open; `None`: that is not why it could not be opened.
pub fn followed(store: &Store, state: &Path, error: &StoreError) -> Option<Followed> {
    let StoreError::Held { id, by } = error else {
        return None;
    };
    Some(Followed {
        tail: store.tail(id),
        id: id.clone(),
        by: *by,
        door: door(state, id),
        lock: store.path_of(id).with_extension("lock"),
    })
}

/// Where other windows on a conversation are heard, below the state folder.
pub fn door(state: &Path, id: &str) -> PathBuf {
    state.join("doors").join(format!("{id}.sock"))
}

/// Takes a conversation up again; with `is_unkept`, without ever writing to it.
pub fn open(base: &Base, wanted: &Wanted, is_unkept: bool) -> Result<Opened> {
    let store = store(base);
    let id = named(base, wanted)?;
    if is_unkept {
        let stored = store.read(&id)?;
        let session = stored.session.clone();
        return Ok(Opened {
            session,
            log: Log::from_entries(stored.closed()),
            recorder: None,
            is_copy: false,
        });
    }
    let resumed = store.resume_end(&id, tui::now_ms())?;
    Ok(Opened {
        session: resumed.session,
        log: resumed.log,
        recorder: Some(resumed.recorder),
        is_copy: false,
    })
}

/// Writes `log` as this session from now on; where that fails, it is said and goes on.
pub fn keep(base: &Base, session: &Session, log: &Arc<Log>) -> Option<Recorder> {
    record(&store(base), session.clone(), log)
}

pub fn record(store: &Store, session: Session, log: &Arc<Log>) -> Option<Recorder> {
    match store.record(session, log) {
        Ok(recorder) => Some(recorder),
        Err(error) => {
            tracing::error!(%error, "the session cannot be recorded");
            None
        }
    }
}

/// `sheaf create-chat`.
pub fn create(base: &Base) -> Result<u8> {
    let session = fresh(base);
    store(base).create(&session)?;
    say(&format!("{}\n", session.id));
    Ok(code::OK)
}

/// `sheaf status`: whom a prompt would go to, without asking anybody.
pub fn status(base: &Base) -> u8 {
    let model = base.settings.model().unwrap_or("the server's own model");
    match base.settings.upstream() {
        Upstream::Gateway(it) => say(&format!("gateway {}\n", it.connection.url().unwrap_or_default())),
        Upstream::Provider(name, it) => {
            let model = base.settings.model().or(it.model.as_deref()).unwrap_or(model);
            say(&format!("provider {name}, {model}\n"));
        }
        Upstream::Nobody => {
            complain(&open::nobody().to_string());
            return code::FAILED;
        }
    }
    code::OK
}

/// `sheaf models`.
pub fn models(base: &Base) -> Result<u8> {
    let talk = Talk {
        workspace: base.workspace.clone(),
        added: Vec::new(),
        log: Log::new(),
        is_copy: false,
        is_attended: false,
    };
    runtime(false)?.block_on(async move {
        let link = open::link(&base.settings, &base.environment, &talk)?.ok_or_else(open::nobody)?;
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
            (None, true, "x", Some(Wanted::Last), "x"),
            (Some(""), false, "x", Some(Wanted::Last), "x"),
            (Some("abc-1"), false, "x", Some(Wanted::Named("abc-1".to_owned())), "x"),
            (Some("and now?"), false, "", Some(Wanted::Last), "and now? "),
        ] {
            let run = Run {
                resume: resume.map(str::to_owned),
                goes_on,
                ..Run::default()
            };
            let mut words = words.to_owned();
            assert_eq!((wanted(&run, &mut words, |_| false), words.as_str()), (id, prompt));
        }
    }
}
