//! `sheaf undo`, `redo` and `rewind`: the screen's actions for stored conversations.

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, Result, bail};

use super::{
    CliContext,
    arguments::{Rewind, RewindPart, TargetArguments, Undo},
    code, complain, open, printing_store, say, sessions,
};
use crate::{
    agent::undo,
    journal::file::Store,
    protocol::{ConversationId, Event, FileChange, Operation, Position, Restore, RestoreConflict, RestoreTarget, Turn},
    sandbox::{Checkpoints, Fence, Seen, Workspace},
    t,
    text::figure,
    transcript::Transcript,
    tui::now_ms,
};

/// A parsed `undo`, `redo` or `rewind`.
struct UndoRequest<'a> {
    undo: &'a Undo,
    kind: UndoKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum UndoKind {
    Undo,
    Redo,
    Rewind(Option<RewindPart>),
}

pub fn undo(asked: &Undo) -> Result<u8> {
    UndoRequest {
        undo: asked,
        kind: UndoKind::Undo,
    }
    .run()
}

pub fn redo(asked: &Undo) -> Result<u8> {
    UndoRequest {
        undo: asked,
        kind: UndoKind::Redo,
    }
    .run()
}

pub fn rewind(asked: &Rewind) -> Result<u8> {
    UndoRequest {
        undo: &asked.undo,
        kind: UndoKind::Rewind(asked.only),
    }
    .run()
}

impl UndoRequest<'_> {
    fn run(&self) -> Result<u8> {
        let asked = self.undo;
        let base = CliContext::of(&asked.common, &TargetArguments::default())?;
        let store = printing_store(&base);
        let (session, number) = split(asked.address.as_deref().unwrap_or_default());
        let id = sessions::find(&base, &store, session)?.session.id;
        // Reading needs no lock; changes below fail if another sheaf has the conversation open.
        let stored = store.read(&id)?;
        let folder = stored.session.workspace.clone();
        let entries: Vec<_> = stored.closed().into_iter().map(Arc::new).collect();
        let transcript = Transcript::from_entries(&entries);
        let target = self.target(&transcript, number)?;
        let fence = Fence::configured(&base.settings, Some(&base.paths), Vec::new());
        let workspace =
            Workspace::fenced(Path::new(&folder), fence).with_context(|| format!("{folder} cannot be opened"))?;
        let log = crate::journal::Log::from_entries(entries.iter().map(|it| (**it).clone()).collect());
        let name = open::conversation(&log).unwrap_or_else(|| ConversationId::from(id.as_str()));
        let checkpoints = Checkpoints::open(&base.paths.state.join("checkpoints"), name.as_str())?;
        checkpoints.begin(u64::from(log.turn().0));
        let seen = Seen::keeping(checkpoints);
        let is_cut = seen.checkpoints().is_some_and(Checkpoints::is_cut);
        if asked.dry_run && is_cut {
            complain(t!("undo-is-cut"));
            return Ok(code::OK);
        }
        if !asked.dry_run {
            for finished in undo::finish_others(&seen, &workspace) {
                complain(&finished);
            }
        }
        // Whoever changes files has the conversation's lock first. Its damage has been printed.
        let resume = || Store::new(base.paths.sessions()).resume_to_change(&id, now_ms());
        let resumed = if asked.dry_run { None } else { Some(resume()?) };
        let resumed = match resumed {
            Some(resumed) => match undo::finish(&seen, &workspace, &transcript) {
                Some(finished) => {
                    let (restored, notice) = finished.map_err(anyhow::Error::msg)?;
                    for (turn, event) in restored.events {
                        resumed.log.append_to(turn, now_ms(), event);
                    }
                    resumed.log.append(now_ms(), Event::Notice(notice));
                    resumed.recorder.finish()?;
                    say(&format!("{}\n", restored.said));
                    let is_it = self.kind == UndoKind::Undo && asked.address.is_none();
                    return if is_it { Ok(code::OK) } else { self.run() };
                }
                None => Some(resumed),
            },
            None => None,
        };
        let wish = Restore {
            target,
            except: asked.but.clone(),
            overwrite: asked.over,
            seen: None,
        };
        let Some(resumed) = resumed else {
            let found = undo::preview(&seen, &workspace, &transcript, &wish).map_err(anyhow::Error::msg)?;
            if found.is_partial {
                complain("the oldest changes are no longer stored");
            }
            for file in &found.files {
                say(&line(file, asked.over));
            }
            if found.files.is_empty() {
                complain("no files would change");
            }
            return Ok(code::OK);
        };
        let wants_files = !matches!(self.kind, UndoKind::Rewind(Some(RewindPart::Conversation)));
        let mut code = code::OK;
        if wants_files {
            match undo::restore(&seen, &workspace, &transcript, &wish) {
                Ok(restored) => {
                    for (turn, event) in restored.events {
                        resumed.log.append_to(turn, now_ms(), event);
                    }
                    say(&format!("{}\n", restored.said));
                }
                Err(why) => {
                    complain(&why);
                    code = code::FAILED;
                }
            }
        }
        if let (UndoKind::Rewind(None | Some(RewindPart::Conversation)), RestoreTarget::Since(turn)) =
            (self.kind, &wish.target)
        {
            let branch = transcript.parent_of(*turn);
            let turns = branch.after.0;
            resumed.log.append(now_ms(), Event::Branch(branch));
            say(&format!(
                "the conversation continues after {}; later messages are on another branch\n",
                figure::count(turns as usize, "turn", "turns").as_str()
            ));
            code = code::OK;
        }
        debug_assert!(resumed.log.last() >= Position(0));
        resumed.recorder.finish()?;
        Ok(code)
    }

    fn target(&self, transcript: &Transcript, number: Option<&str>) -> Result<RestoreTarget> {
        let Some(number) = number else {
            return match self.kind {
                UndoKind::Undo => Ok(RestoreTarget::Last),
                UndoKind::Redo => Ok(RestoreTarget::RedoLast),
                UndoKind::Rewind(_) => bail!("which message?\n  sheaf rewind last#7"),
            };
        };
        if let Some(address) = sessions::address(number) {
            let exchange = transcript.exchange_of(address.turn);
            let response = exchange.map(|it| &it.response);
            let document = response.and_then(|it| {
                let at = (0..it.documents.len()).find(|at| it.number(*at) == address.number)?;
                it.documents.get(at)
            });
            let document = document.with_context(|| format!("no document {number}"))?.id.clone();
            let turn = address.turn;
            return match self.kind {
                UndoKind::Undo => Ok(RestoreTarget::Document { turn, document }),
                UndoKind::Redo => Ok(RestoreTarget::RedoDocument { turn, document }),
                UndoKind::Rewind(_) => bail!("rewind takes a message, such as last#{}", turn.0),
            };
        }
        let turn = Turn(
            number
                .parse()
                .with_context(|| format!("`{number}` is not a turn such as 7"))?,
        );
        if transcript.exchange_of(turn).is_none() {
            bail!("no turn {number}");
        }
        match self.kind {
            UndoKind::Undo => Ok(RestoreTarget::Turn(turn)),
            UndoKind::Redo => bail!(
                "`sheaf redo` redoes the last undo; a single document needs an address such as \
                                     last#7.3"
            ),
            UndoKind::Rewind(_) => Ok(RestoreTarget::Since(turn)),
        }
    }
}

/// Splits an address into the conversation, and the turn or document in it.
fn split(address: &str) -> (&str, Option<&str>) {
    match address.rsplit_once('#') {
        Some(("", number)) => ("last", Some(number)),
        Some((session, number)) => (session, Some(number)),
        None if address.is_empty() => ("last", None),
        // `7` and `7.3` refer to the last conversation; ids are longer.
        None if address.len() < 8 && address.chars().all(|it| it.is_ascii_digit() || it == '.') => {
            ("last", Some(address))
        }
        None => (address, None),
    }
}

fn line(file: &FileChange, over: bool) -> String {
    let what = match file.operation {
        Operation::Create => "restored",
        Operation::Delete => "deleted",
        _ => "changed back",
    };
    let note = match file.conflict {
        _ if file.is_lost => "not stored, stays".to_owned(),
        Some(_) if over => format!("{what}, discarding later edits"),
        Some(RestoreConflict::User) => "edited later, stays".to_owned(),
        Some(RestoreConflict::Turn(turn)) => format!("edited in turn {}, stays", turn.0),
        None => format!("{what} (+{} −{})", file.added, file.removed),
    };
    format!("{}  {note}\n", file.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_conversation_a_turn_or_a_document() {
        for (address, session, number) in [
            ("", "last", None),
            ("7", "last", Some("7")),
            ("7.3", "last", Some("7.3")),
            ("#7", "last", Some("7")),
            ("last#7.3", "last", Some("7.3")),
            ("01a1f8c2", "01a1f8c2", None),
            ("0123456789", "0123456789", None),
            ("01a1f8c2#2", "01a1f8c2", Some("2")),
        ] {
            assert_eq!(split(address), (session, number), "{address}");
        }
    }
}
