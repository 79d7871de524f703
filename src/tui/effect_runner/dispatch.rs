//! The effects that need no terminal, each with the function that carries it out.

use std::{path::PathBuf, sync::Arc, time::Duration};

use super::{EffectRunner, clipboard, files, history, own_files, sessions};
use crate::{
    link::{AskError, Link},
    os::process,
    theme,
    tui::{
        app::{
            App, StatusRun,
            effects::{Ask, Effect},
        },
        msg::EffectOutcome,
    },
};

/// Longest run of the user's command for the header.
const STATUS_PATIENCE: Duration = Duration::from_secs(5);

/// The state of an effect after it was carried out.
#[expect(clippy::large_enum_variant, reason = "one lives at a time, for a moment")]
pub enum Carried {
    /// It is done, or a task does it and its outcome will come as a message.
    Away,
    /// A command has gone to the link.
    Sent,
    /// The program is to end with this code.
    Quit(u8),
    /// It is done, with this outcome.
    Done(EffectOutcome),
}

impl EffectRunner {
    /// Carries out what needs no terminal: commands to the link, files, the clipboard, other conversations.
    pub fn carry_out(&self, effect: Effect, app: &App) -> Carried {
        let workspace = app.conversation.workspace.folder.clone();
        match effect {
            Effect::Send(command) => {
                app.conversation.link.send(command);
                return Carried::Sent;
            }
            Effect::Quit(code) => return Carried::Quit(code),
            Effect::Files(work) => own_files::work(self, workspace, app.conversation.workspace.home.clone(), work),
            Effect::ReadBack(part) => {
                let log = Arc::clone(app.conversation.link.log());
                self.block(move || EffectOutcome::Backfilled(Box::new(part.read(&log))));
            }
            Effect::Ask(ask) => self.ask(ask, &app.conversation.link),
            Effect::Copy { text, what } => clipboard::copy(self, &text, what),
            Effect::Picture(source) => clipboard::picture(self, source, workspace),
            Effect::Save {
                path,
                text,
                overwrites,
                draft,
            } => files::save(self, workspace.join(&path), path, text, (!overwrites).then_some(draft)),
            Effect::Cite {
                turn,
                document,
                path,
                first,
                last,
            } => files::cite(self, workspace, (turn, document), path, first..=last),
            Effect::ReadPicture { turn, document, path } => {
                files::read_picture(self, workspace, (turn, document), path);
            }
            Effect::MakePicture(order) => files::make_picture(self, order),
            Effect::Commands => {
                let trusted = app.preferences.settings.trusted.clone();
                files::commands(self, workspace, trusted, EffectOutcome::Commands);
            }
            Effect::OpenWith(line) => {
                let trusted = app.preferences.settings.trusted.clone();
                files::commands(self, workspace, trusted, |commands, modes| {
                    EffectOutcome::CommandsFor(line, commands, modes)
                });
            }
            Effect::NoteSent(text) => history::note(self, workspace, app.now_ms, text),
            Effect::CountUse(name) => history::count_use(self, name),
            Effect::History(draft) => history::recall(self, None, Some(draft)),
            Effect::Begin => sessions::open(self, |library| library.begin()),
            Effect::Resume(id) => sessions::open(self, move |library| library.resume(&id)),
            Effect::Sessions(draft) => sessions::list(self, draft),
            Effect::RelistSessions => sessions::change(self, |_| Ok(())),
            Effect::FindSessions(words) => sessions::find(self, words),
            Effect::ArchiveSession { id, is_archived } => {
                sessions::change(self, move |library| library.archive(&id, is_archived));
            }
            Effect::RemoveSession(id) => sessions::change(self, move |library| library.remove(&id)),
            Effect::PreviewSession(id) => sessions::preview(self, id),
            Effect::Export {
                path,
                overwrites,
                draft,
            } => {
                let place = &app.conversation.workspace;
                let target = sessions::target(&workspace, place.home.as_deref(), &path);
                sessions::export(
                    self,
                    app.conversation.link.log(),
                    target,
                    path,
                    (!overwrites).then_some(draft),
                );
            }
            Effect::ProposeExport { title, draft } => {
                let place = &app.conversation.workspace;
                let home = place.home.clone().filter(|_| place.branch.is_some());
                sessions::propose(self, workspace, home, title, draft);
            }
            Effect::Status(run) => self.status(run, workspace),
            Effect::Remember(colour) => {
                let state = self.paths.state.clone();
                // Only the next start is the worse for it when this fails.
                tokio::task::spawn_blocking(move || drop(theme::remember(&state, colour)));
            }
            // Only a terminal has these; the screen carries them out itself.
            Effect::Suspend
            | Effect::Redraw
            | Effect::Print(_)
            | Effect::Mouse(_)
            | Effect::AskColours
            | Effect::EditDraft(_)
            | Effect::EditChip(_)
            | Effect::EditPlan { .. }
            | Effect::EditHunk { .. }
            | Effect::OpenFile { .. }
            | Effect::OpenRules(_) => {}
        }
        Carried::Away
    }

    fn ask(&self, ask: Ask, link: &Arc<dyn Link>) {
        let reply = link.ask(ask.query.clone());
        let told = |it: AskError| match &it {
            AskError::Failed { source, .. } => format!("{it}: {source}"),
            AskError::Unsupported { .. } | AskError::Refused(_) => it.to_string(),
        };
        self.spawn(async move { EffectOutcome::Replied(ask, reply.await.map_err(told)) });
    }

    fn status(&self, run: StatusRun, folder: PathBuf) {
        self.spawn(async move {
            let StatusRun { command, state, size } = run;
            let (program, arguments) = command.split_first().map_or(("", &[][..]), |it| (it.0.as_str(), it.1));
            let run = process::Command::new(program)
                .args(arguments)
                .input(state)
                .folder(folder)
                .variable("COLUMNS", size.0.to_string())
                .variable("LINES", size.1.to_string())
                .timeout(STATUS_PATIENCE)
                .output();
            let said = run.await.map(|it| String::from_utf8_lossy(&it).into_owned());
            EffectOutcome::Status(said.map_err(|it| it.to_string()))
        });
    }
}
