//! `sheaf --attach URL`: the screen on the conversations of a server.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Result;
use tokio::{runtime::Handle, sync::mpsc};

use super::{CliContext, UsageError, arguments::DisplayArguments, open, runtime, show};
use crate::{
    config::Settings,
    export::{ExportedConversation, RedactionRules},
    journal::{Log, file::Session},
    link::{
        Link,
        http::attach::{AttachServer, ServedConversation},
    },
    os::file::{self, Access},
    protocol::Position,
    transcript::{self, Transcript},
    tui::{
        self, Library,
        library::{SessionPreview, StoredSession},
    },
};

/// Number of turns in a preview, counted from the end.
const PREVIEW_TURNS: u32 = 3;

/// Opens the screen on a conversation of the server at `address`, `URL#ID`; without an id on the list of all.
pub fn run(mut base: CliContext, address: &str, prompt: Option<String>, end: DisplayArguments) -> Result<u8> {
    let (url, id) = split(address);
    if url.is_empty() {
        return Err(UsageError(
            "--attach needs the address of a server\n  sheaf --attach http://127.0.0.1:8643".to_owned(),
        )
        .into());
    }
    let gateway = &mut base.settings.gateway;
    gateway.connection = std::mem::take(&mut gateway.connection).at(url.to_owned());
    let settings = open::attach_settings(&base.settings, &base.environment)?;
    runtime(false)?.block_on(async move {
        let server = AttachServer::new(settings)?;
        // What is wrong is said before there is a screen.
        match id {
            Some(id) => server.check(id).await?,
            None => server.list().await.map(|_| ())?,
        }
        let library = Arc::new(ServedLibrary {
            server: server.clone(),
            settings: base.settings.clone(),
            workspace: base.workspace.clone(),
            runtime: Handle::current(),
            listed: Mutex::default(),
            is_chosen: id.is_some(),
        });
        let link: Arc<dyn Link> = Arc::new(server.attach(id));
        let (_, switched) = mpsc::unbounded_channel();
        show(base.screen(link, switched, prompt, false, Some(library)), end).await
    })
}

/// Splits an address from the conversation after `#`.
fn split(address: &str) -> (&str, Option<&str>) {
    let address = address.trim();
    match address.split_once('#') {
        Some((url, "")) => (url, None),
        Some((url, id)) => (url, Some(id)),
        None => (address, None),
    }
}

/// The conversations of a server, for the screen. Its methods block, on threads of the runtime that may.
struct ServedLibrary {
    server: AttachServer,
    settings: Settings,
    workspace: PathBuf,
    runtime: Handle,
    /// The last list.
    listed: Mutex<Vec<ServedConversation>>,
    /// The command line names a conversation.
    is_chosen: bool,
}

impl ServedLibrary {
    fn link(&self, id: Option<&str>) -> Arc<dyn Link> {
        let _entered = self.runtime.enter();
        Arc::new(self.server.attach(id))
    }
}

/// What cannot be done with conversations of a server.
const NOT_HERE: &str = "the conversation is the server's: it stays there";

impl Library for ServedLibrary {
    fn begin(&self) -> Result<Arc<dyn Link>, String> {
        Ok(self.link(None))
    }

    fn resume(&self, id: &str) -> Result<Arc<dyn Link>, String> {
        Ok(self.link(Some(id)))
    }

    fn list(&self) -> Result<Vec<StoredSession>, String> {
        let listed = self.runtime.block_on(self.server.list()).map_err(|it| it.to_string())?;
        listed.clone_into(&mut self.listed.lock().unwrap_or_else(PoisonError::into_inner));
        let sessions = listed.into_iter().filter(|it| it.turns > 0).map(|it| StoredSession {
            is_open: false,
            id: it.id,
            title: it.title,
            turns: it.turns,
            changed: it.changed_ms,
            ..StoredSession::default()
        });
        Ok(sessions.collect())
    }

    fn find(&self, _: &str) -> Vec<(String, String)> {
        Vec::new()
    }

    fn export(&self, log: &Arc<Log>, path: &Path) -> Result<(), String> {
        let session = Session::fresh(self.workspace.to_string_lossy(), tui::now_ms());
        let rules = RedactionRules::new(self.settings.export.redact.iter().map(String::as_str));
        let rules = rules.map_err(|it| it.to_string())?;
        let entries = log.after(Position(0));
        let entries = entries.iter().map(|it| (**it).clone()).collect();
        let whole = ExportedConversation::new(session, entries).redacted(&rules);
        let text = whole.write(super::sessions::form_of(Some(path)));
        file::write(path, text.as_bytes(), Access::Shared).map_err(|it| format!("{}: {it}", path.display()))
    }

    fn archive(&self, _: &str, _: bool) -> Result<(), String> {
        Err(NOT_HERE.to_owned())
    }

    fn remove(&self, _: &str) -> Result<(), String> {
        Err(NOT_HERE.to_owned())
    }

    fn opens_with_list(&self) -> bool {
        !self.is_chosen
    }

    fn preview(&self, id: &str) -> SessionPreview {
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(conversation) = listed.iter().find(|it| it.id == id).cloned() else {
            return SessionPreview::default();
        };
        drop(listed);
        let Ok(object) = self.runtime.block_on(self.server.end_of(&conversation, PREVIEW_TURNS)) else {
            return SessionPreview::default();
        };
        let turns = object.get("turns").cloned().unwrap_or_default();
        let whole = serde_json::json!({ "sheafConversation": 1, "turns": turns }).to_string();
        let entries = transcript::read(whole.as_bytes())
            .and_then(Result::ok)
            .unwrap_or_default();
        let entries: Vec<_> = entries.into_iter().map(Arc::new).collect();
        let end = Transcript::from_entries(&entries);
        let mut models = end.exchanges.iter().rev();
        SessionPreview {
            model: models.find_map(|it| it.response.model.clone()),
            branches: 1,
            created: object
                .get("created")
                .and_then(serde_json::Value::as_u64)
                .unwrap_or_default(),
            end,
            ..SessionPreview::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_name_a_conversation() {
        for (address, url, id) in [
            ("http://127.0.0.1:8643", "http://127.0.0.1:8643", None),
            ("http://127.0.0.1:8643#", "http://127.0.0.1:8643", None),
            ("https://h/#conv_1", "https://h/", Some("conv_1")),
            ("#conv_1", "", Some("conv_1")),
        ] {
            assert_eq!(split(address), (url, id), "{address}");
        }
    }
}
