//! What the screen asks for and needs no terminal for: commands to the link, files, the clipboard, other conversations.
//!
//! What takes its time goes its own way as a task, and its outcome comes back as a message. Every end of the program that
//! drives an [`App`] has the same hands, whether it draws, appends lines or is read aloud.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::sync::mpsc;

use super::{
    app::{App, Citation},
    custom,
    effect::Effect,
    image, keep,
    library::Library,
    msg::Outcome,
    picture::{self, Source},
};
use crate::{
    config::{self, Ledger, Paths, Print},
    link::Link,
    os::{clipboard, file, process},
    protocol::{Query, Reply},
    say,
    text::Clean,
    theme,
};

/// The answer that was asked for, or why there is none: a link may know less than it is asked, and answer something else.
macro_rules! answered {
    ($reply:expr, $wanted:path) => {
        match $reply.await {
            Ok($wanted(it)) => Ok(it),
            Ok(_) => Err(say!("news-other-answer").to_owned()),
            Err(error) => Err(error.to_string()),
        }
    };
}

/// So long the user's command for the header may take.
const STATUS_PATIENCE: Duration = Duration::from_secs(5);

/// A file that is cited is read up to this size.
const CITED_BYTES: u64 = 2 << 20;

/// So many messages can be had again.
const MOST_RECALLED: usize = 1000;

pub struct Hands {
    pub outcomes: mpsc::UnboundedSender<Outcome>,
    pub paths: Paths,
    /// What is written and sent is remembered.
    pub keeps: bool,
    pub library: Option<Arc<dyn Library>>,
    /// Takes the conversation that was asked for in the place of the one that is.
    pub opened: Arc<dyn Fn(Arc<dyn Link>) + Send + Sync>,
}

/// What became of an effect.
#[expect(clippy::large_enum_variant, reason = "one lives at a time, for a moment")]
pub enum Carried {
    /// It is done, or a task does it and its outcome will come.
    Away,
    /// A command has gone to the link.
    Sent,
    /// The program is to end with this code.
    Quit(u8),
    /// Only whoever has the terminal can do this.
    Terminal(Effect),
}

impl Hands {
    pub fn carry_out(&self, effect: Effect, app: &App) -> Carried {
        let send = self.outcomes.clone();
        match effect {
            Effect::Send(command) => {
                app.link.send(command);
                return Carried::Sent;
            }
            Effect::Quit(code) => return Carried::Quit(code),
            Effect::Copy { text, what } => {
                // What is pasted from it may go to a shell.
                let text = Clean::new(&text).to_string();
                let folder = self.paths.state.clone();
                // OSC 52 has to go through our own door to the terminal, in one piece.
                let around = clipboard::Surroundings::read();
                tokio::spawn(async move {
                    let outcome = match clipboard::copy(&text, &around, &folder).await {
                        Ok(clipboard::Way::Terminal(bytes)) => Outcome::Osc52 { bytes, what },
                        Ok(way) => Outcome::Copied(Ok(say!("news-copied", what = what, way = way.to_string()))),
                        Err(error) => {
                            Outcome::Copied(Err(say!("news-not-copied", what = what, why = error.to_string())))
                        }
                    };
                    let _ = send.send(outcome);
                });
            }
            Effect::Save { path, text } => {
                let target = app.place.workspace.join(&path);
                tokio::task::spawn_blocking(move || {
                    let saved = target
                        .parent()
                        .map_or(Ok(()), std::fs::create_dir_all)
                        .map_err(|it| it.to_string())
                        .and_then(|()| {
                            file::write(&target, text.as_bytes(), file::Access::Shared).map_err(|it| it.to_string())
                        });
                    let _ = send.send(Outcome::Saved(match saved {
                        Ok(()) => Ok(say!("news-saved", path = path)),
                        Err(why) => Err(say!("news-not-saved", path = path, why = why)),
                    }));
                });
            }
            Effect::Cite {
                turn,
                document,
                path,
                first,
                last,
            } => {
                let root = app.place.workspace.clone();
                tokio::task::spawn_blocking(move || {
                    let found = match file::read_beneath(&root, Path::new(&path), CITED_BYTES) {
                        Ok(bytes) => String::from_utf8(bytes)
                            .map_or(Citation::Unread, |text| Citation::Lines(lines(&text, first, last))),
                        Err(error) if error.kind() == io::ErrorKind::NotFound => Citation::Missing,
                        Err(_) => Citation::Unread,
                    };
                    let _ = send.send(Outcome::Cited { turn, document, found });
                });
            }
            Effect::Models => {
                let reply = app.link.ask(Query::Models);
                tokio::spawn(async move {
                    let outcome = answered!(reply, Reply::Models);
                    let _ = send.send(Outcome::Models(outcome));
                });
            }
            Effect::Files(pattern) => {
                let query = Query::Files {
                    pattern: pattern.clone(),
                    limit: super::mention::MOST,
                };
                let reply = app.link.ask(query);
                tokio::spawn(async move {
                    // A link that knows no files offers none.
                    let files = answered!(reply, Reply::Files).unwrap_or_default();
                    let _ = send.send(Outcome::Files { pattern, files });
                });
            }
            Effect::Symbols(pattern) => {
                let query = Query::Symbols {
                    pattern: pattern.clone(),
                    limit: super::mention::MOST,
                };
                let reply = app.link.ask(query);
                tokio::spawn(async move {
                    if let Ok(Reply::Symbols(symbols)) = reply.await {
                        let _ = send.send(Outcome::Symbols { pattern, symbols });
                    }
                });
            }
            Effect::ReadPicture { turn, document, path } => {
                let root = app.place.workspace.clone();
                tokio::task::spawn_blocking(move || {
                    let data = image::read(&root, &path);
                    let _ = send.send(Outcome::PictureRead { turn, document, data });
                });
            }
            Effect::MakePicture(order) => {
                tokio::task::spawn_blocking(move || {
                    let (id, made) = image::make(&order);
                    let _ = send.send(Outcome::PictureMade(id, made));
                });
            }
            Effect::Picture(source) => {
                let workspace = app.place.workspace.clone();
                tokio::spawn(async move {
                    let outcome = match source {
                        Source::Clipboard => match clipboard::picture(&clipboard::Surroundings::read()).await {
                            Some(bytes) => picture::of("clipboard.png", &bytes).map_err(|it| (it, None)),
                            None => Err((say!("news-no-picture").to_owned(), None)),
                        },
                        Source::Path(path, text) => {
                            let read = tokio::task::spawn_blocking(move || picture::read(&workspace.join(path)));
                            let read = read.await.unwrap_or_else(|it| Err(it.to_string()));
                            read.map_err(|it| (it, Some(text)))
                        }
                    };
                    let _ = send.send(Outcome::Picture(outcome));
                });
            }
            Effect::NoteSent(_) if !self.keeps => {}
            Effect::NoteSent(text) => {
                let (state, workspace) = (self.paths.state.clone(), app.place.workspace.clone());
                let at_ms = app.now_ms;
                tokio::task::spawn_blocking(move || {
                    if let Err(why) = keep::note(&state, &workspace, at_ms, &text) {
                        let _ = send.send(Outcome::Failed(say!("news-not-remembered", why = why)));
                    }
                });
            }
            Effect::History => self.recall(None),
            Effect::Commands => {
                let (workspace, paths) = (app.place.workspace.clone(), self.paths.clone());
                let is_whole = app.settings.trusted.clone();
                tokio::task::spawn_blocking(move || {
                    let is_whole = config::trusts(&is_whole, &workspace);
                    let said = Ledger::under(&paths.state).said(&workspace);
                    let may_act = |path: &str, text: &str| is_whole || said.lets(path, &Print::of(&[text.as_bytes()]));
                    let found = custom::find(&workspace, &paths.config, &may_act);
                    let _ = send.send(Outcome::Commands(found));
                });
            }
            Effect::Begin => self.open(|library| library.begin()),
            Effect::Resume(id) => self.open(move |library| library.resume(&id)),
            Effect::Sessions => self.read(|library| Outcome::Sessions(library.list())),
            Effect::FindSessions(words) => self.read(move |library| {
                let found = library.find(&words);
                Outcome::SessionsFound { words, found }
            }),
            Effect::ArchiveSession { id, is_archived } => self.read(move |library| Outcome::SessionChanged {
                failed: library.archive(&id, is_archived).err(),
                kept: library.list().ok(),
            }),
            Effect::RemoveSession(id) => self.read(move |library| Outcome::SessionChanged {
                failed: library.remove(&id).err(),
                kept: library.list().ok(),
            }),
            Effect::PreviewSession(id) => self.read(move |library| {
                let said = library.preview(&id);
                Outcome::SessionPreview { id, said }
            }),
            Effect::Export(path) => {
                let log = Arc::clone(app.link.log());
                let target = app.place.workspace.join(&path);
                self.read(move |library| {
                    Outcome::Saved(
                        library
                            .export(&log, &target)
                            .map(|()| say!("news-written", path = path)),
                    )
                });
            }
            Effect::Context => {
                let reply = app.link.ask(Query::Context);
                tokio::spawn(async move {
                    let outcome = answered!(reply, Reply::Context);
                    let _ = send.send(Outcome::Context(outcome));
                });
            }
            Effect::Changes(on) => {
                let reply = app.link.ask(Query::Changes);
                tokio::spawn(async move {
                    // Who changes no files here can still go back in the conversation.
                    let changes = answered!(reply, Reply::Changes).unwrap_or_default();
                    let _ = send.send(Outcome::Changes { on, changes });
                });
            }
            Effect::Restoration(of) => {
                let reply = app.link.ask(Query::Restoration(of.clone()));
                tokio::spawn(async move {
                    let found = answered!(reply, Reply::Restoration).unwrap_or_default();
                    let _ = send.send(Outcome::Restoration { of, found });
                });
            }
            Effect::Sandbox { guard } => {
                let reply = app.link.ask(Query::Sandbox { guard });
                tokio::spawn(async move {
                    let outcome = answered!(reply, Reply::Sandbox);
                    let _ = send.send(Outcome::Sandbox(outcome));
                });
            }
            Effect::Permissions { forget } => {
                let reply = app.link.ask(Query::Permissions { forget });
                tokio::spawn(async move {
                    let outcome = answered!(reply, Reply::Permissions);
                    let _ = send.send(Outcome::Permissions(outcome));
                });
            }
            Effect::Trust => {
                let reply = app.link.ask(Query::Trust);
                tokio::spawn(async move {
                    if let Err(error) = reply.await {
                        let _ = send.send(Outcome::Failed(error.to_string()));
                    }
                });
            }
            Effect::Status { command, state } => {
                let folder = app.place.workspace.clone();
                tokio::spawn(async move {
                    let (program, arguments) = command.split_first().map_or(("", &[][..]), |it| (it.0.as_str(), it.1));
                    let run = process::Command::new(program)
                        .args(arguments)
                        .input(state)
                        .folder(folder)
                        .timeout(STATUS_PATIENCE)
                        .output();
                    let said = run.await.map(|it| String::from_utf8_lossy(&it).into_owned());
                    let _ = send.send(Outcome::Status(said.map_err(|it| it.to_string())));
                });
            }
            Effect::Remember(colour) => {
                let state = self.paths.state.clone();
                // Only the next start is the worse for it when this fails.
                tokio::task::spawn_blocking(move || drop(theme::remember(&state, colour)));
            }
            Effect::Suspend
            | Effect::Redraw
            | Effect::Print(_)
            | Effect::Mouse(_)
            | Effect::AskColours
            | Effect::EditDraft(_)
            | Effect::EditChip(_)
            | Effect::EditPlan { .. }
            | Effect::EditHunk { .. }
            | Effect::OpenFile { .. } => return Carried::Terminal(effect),
        }
        Carried::Away
    }

    /// Reads what was sent before: in a workspace, else everywhere.
    pub fn recall(&self, workspace: Option<PathBuf>) {
        let (send, state) = (self.outcomes.clone(), self.paths.state.clone());
        tokio::task::spawn_blocking(move || {
            let texts = keep::history(&state, workspace.as_deref(), MOST_RECALLED);
            let is_everywhere = workspace.is_none();
            let _ = send.send(Outcome::History { texts, is_everywhere });
        });
    }

    /// Looks something up among the conversations, beside us.
    fn read(&self, look: impl FnOnce(&dyn Library) -> Outcome + Send + 'static) {
        let send = self.outcomes.clone();
        let library = self.library.clone();
        tokio::task::spawn_blocking(move || {
            let outcome = match library {
                Some(library) => look(library.as_ref()),
                None => Outcome::Failed(say!("news-alone").to_owned()),
            };
            let _ = send.send(outcome);
        });
    }

    /// Puts another conversation in the place of this one.
    fn open(&self, open: impl FnOnce(&dyn Library) -> Result<Arc<dyn Link>, String> + Send + 'static) {
        let take = Arc::clone(&self.opened);
        let failed = self.outcomes.clone();
        let library = self.library.clone();
        tokio::task::spawn_blocking(move || {
            let opened = match library {
                Some(library) => open(library.as_ref()),
                None => Err(say!("news-alone").to_owned()),
            };
            match opened {
                Ok(link) => take(link),
                Err(why) => drop(failed.send(Outcome::Failed(why))),
            }
        });
    }
}

/// Lines `first` to `last`, counted from 1.
fn lines(text: &str, first: u64, last: u64) -> String {
    let count = last.saturating_sub(first) as usize + 1;
    let chosen: Vec<_> = text
        .lines()
        .skip(first.saturating_sub(1) as usize)
        .take(count)
        .collect();
    chosen.join("\n")
}
