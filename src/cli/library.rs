//! The stored conversations of this machine, for the screen.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{
    CliContext,
    cache::Cache,
    chat,
    open::{self, ConversationOptions},
    searching, sessions,
};
use crate::{
    config::{Environment, Settings},
    export::{ExportedConversation, RedactionRules},
    journal::{
        Log,
        file::{Listed, Recorder, Session, Store},
    },
    link::{
        Link,
        follow::{Door, Follow},
    },
    os::file::{self, Access},
    protocol::Position,
    transcript::query::Query,
    tui::{
        self, Library,
        library::{SessionPreview, StoredSession},
    },
};

/// Number of turns in a preview, counted from the end.
const PREVIEW_TURNS: usize = 3;

/// Time for which a background thread updates the search cache, after the list is opened and after each search.
const CACHE_TIME: Duration = Duration::from_secs(20);

/// Maximum number of search results.
const MAX_FOUND: usize = 200;

/// Implements [`Library`] with the session store and the search cache.
pub struct SessionLibrary {
    settings: Settings,
    environment: Environment,
    workspace: PathBuf,
    added: Vec<PathBuf>,
    store: Store,
    /// True if conversations are stored.
    keeps: bool,
    recorders: Arc<Mutex<Vec<Recorder>>>,
    /// State folder, with the sockets of other windows.
    state: PathBuf,
    /// Cache folder.
    cache: PathBuf,
    learning: Arc<AtomicBool>,
    door: Mutex<Option<Door>>,
    opens_with_list: bool,
}

impl SessionLibrary {
    pub fn new(base: &CliContext, added: Vec<PathBuf>, keeps: bool, recorders: Arc<Mutex<Vec<Recorder>>>) -> Self {
        Self {
            settings: base.settings.clone(),
            environment: base.environment.clone(),
            workspace: base.workspace.clone(),
            added,
            store: Store::new(base.paths.sessions()),
            keeps,
            recorders,
            state: base.paths.state.clone(),
            cache: base.paths.cache.clone(),
            learning: Arc::default(),
            door: Mutex::default(),
            opens_with_list: false,
        }
    }

    /// The user chooses a conversation at the start.
    pub fn with_list(mut self, opens_with_list: bool) -> Self {
        self.opens_with_list = opens_with_list;
        self
    }

    /// Accepts answers from other windows on this conversation, instead of those on the previous one.
    fn listen_for_answers(&self, id: &str, link: &Arc<dyn Link>) {
        let opened = Door::open(chat::answer_socket(&self.state, id), link);
        let opened =
            opened.inspect_err(|error| tracing::warn!(%error, "other windows cannot answer questions of this one"));
        *self.door.lock().unwrap_or_else(PoisonError::into_inner) = opened.ok();
    }

    fn link(&self, log: Arc<Log>) -> Result<Arc<dyn Link>, String> {
        let talk = ConversationOptions {
            workspace: self.workspace.clone(),
            added: self.added.clone(),
            log,
            is_copy: false,
            is_attended: true,
            is_answered: false,
            has_user_answers: false,
            is_apart: false,
            tools: None,
        };
        let link = open::link(&self.settings, &self.environment, &talk).map_err(|it| format!("{it:#}"))?;
        link.ok_or_else(|| "no model is configured: answer the first page, or set a provider".to_owned())
    }

    fn keep(&self, recorder: Option<Recorder>) {
        let mut recorders = self.recorders.lock().unwrap_or_else(PoisonError::into_inner);
        recorders.extend(recorder);
    }

    /// Updates the search cache on a background thread, so that the next search is faster.
    fn update_cache(&self, listed: Vec<Listed>) {
        if self.learning.swap(true, Ordering::AcqRel) {
            return;
        }
        let (folder, store, learning) = (self.cache.clone(), self.store.clone(), Arc::clone(&self.learning));
        let work = move || {
            if let Some(mut cache) = Cache::open(&folder) {
                cache.update(&store, &listed, CACHE_TIME);
            }
            learning.store(false, Ordering::Release);
        };
        if std::thread::Builder::new()
            .name("cache".to_owned())
            .spawn(work)
            .is_err()
        {
            self.learning.store(false, Ordering::Release);
        }
    }

    fn read(&self, id: &str) -> Option<ExportedConversation> {
        let stored = self.store.read(id).ok()?;
        Some(ExportedConversation::new(stored.session.clone(), stored.closed()))
    }
}

impl Library for SessionLibrary {
    fn begin(&self) -> Result<Arc<dyn Link>, String> {
        let link = self.link(Log::new())?;
        if self.keeps {
            let session = Session::fresh(self.workspace.to_string_lossy(), tui::now_ms());
            let session = session.on_branch(tui::git_branch(&self.workspace));
            self.listen_for_answers(&session.id, &link);
            self.keep(chat::record(&self.store, session, link.log()));
        }
        Ok(link)
    }

    fn resume(&self, id: &str) -> Result<Arc<dyn Link>, String> {
        if !self.keeps {
            let stored = self.store.read(id).map_err(|it| it.to_string())?;
            return self.link(self.store.log_of(stored, tui::now_ms()));
        }
        let resumed = match self.store.resume_end(id, tui::now_ms()) {
            Ok(resumed) => resumed,
            // Another window has it open: this one follows.
            Err(error) => {
                let followed = chat::followed(&self.store, &self.state, &error);
                let followed = followed.ok_or_else(|| error.to_string())?;
                return Ok(Arc::new(Follow::start(followed)));
            }
        };
        let link = self.link(resumed.log)?;
        self.listen_for_answers(id, &link);
        self.keep(Some(resumed.recorder));
        Ok(link)
    }

    fn list(&self) -> Result<Vec<StoredSession>, String> {
        let listed = searching::listed(Cache::open(&self.cache).as_mut(), &self.store)
            .map_err(|it| format!("conversations cannot be listed: {it}"))?;
        self.update_cache(listed.clone());
        let here = self.workspace.to_string_lossy();
        let home = self.environment.get("HOME").map(str::to_owned);
        let recorders = self.recorders.lock().unwrap_or_else(PoisonError::into_inner);
        let open = recorders.last().map(|it| it.id().to_owned());
        drop(recorders);
        let kept = listed.into_iter().filter(|it| it.turns > 0).map(|it| StoredSession {
            is_open: open.as_ref() == Some(&it.session.id),
            elsewhere: if it.session.workspace == here {
                String::new()
            } else {
                shortened(&it.session.workspace, home.as_deref())
            },
            id: it.session.id,
            title: it.title.unwrap_or_default(),
            folder: it.session.workspace,
            turns: it.turns,
            changed: it.changed,
            is_archived: it.is_archived,
        });
        Ok(kept.collect())
    }

    fn find(&self, words: &str) -> Vec<(String, String)> {
        // A search text that is still being typed may not parse yet.
        let Ok(query) = Query::parse(words, tui::now_ms()) else {
            return Vec::new();
        };
        let mut cache = Cache::open(&self.cache);
        let Ok(listed) = searching::listed(cache.as_mut(), &self.store) else {
            return Vec::new();
        };
        let found = searching::found(&self.store, listed.clone(), &query, cache.as_ref());
        let found: Vec<_> = found.take(MAX_FOUND).collect();
        self.update_cache(listed);
        found
    }

    fn opens_with_list(&self) -> bool {
        self.opens_with_list
    }

    fn export(&self, log: &Arc<Log>, path: &Path) -> Result<(), String> {
        let form = sessions::form_of(Some(path));
        let session = Session::fresh(self.workspace.to_string_lossy(), tui::now_ms());
        let rules =
            RedactionRules::new(self.settings.export.redact.iter().map(String::as_str)).map_err(|it| it.to_string())?;
        let entries = log.after(Position(0));
        let whole =
            ExportedConversation::new(session, entries.iter().map(|it| (**it).clone()).collect()).redacted(&rules);
        file::write(path, whole.write(form).as_bytes(), Access::Shared)
            .map_err(|it| format!("{}: {it}", path.display()))
    }

    fn archive(&self, id: &str, is_archived: bool) -> Result<(), String> {
        self.store.archive(id, is_archived).map_err(|it| it.to_string())
    }

    fn remove(&self, id: &str) -> Result<(), String> {
        sessions::remove(&self.store, &self.state, id).map_err(|it| it.to_string())?;
        if let Some(mut cache) = Cache::open(&self.cache) {
            cache.forget(id);
        }
        Ok(())
    }

    fn preview(&self, id: &str) -> SessionPreview {
        let Some(whole) = self.read(id) else {
            return SessionPreview::default();
        };
        let transcript = whole.transcript;
        let mut models = transcript.exchanges.iter().rev();
        SessionPreview {
            model: models.find_map(|it| it.response.model.clone()),
            branch: whole.session.branch,
            branches: transcript.other_branches().len() + 1,
            bytes: std::fs::metadata(self.store.path_of(id)).map_or(0, |it| it.len()),
            created: whole.session.created,
            end: transcript.ending_with(PREVIEW_TURNS),
        }
    }
}

fn shortened(folder: &str, home: Option<&str>) -> String {
    let home = home.filter(|it| !it.is_empty());
    match home.and_then(|it| folder.strip_prefix(it)) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("~{rest}"),
        Some(_) | None => folder.to_owned(),
    }
}
