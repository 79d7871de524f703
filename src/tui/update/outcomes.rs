//! Takes the outcomes of effects.

use std::sync::Arc;

use crate::{
    t,
    tui::{
        actions,
        app::{App, Effect, Focus},
        command,
        editor::field::Chip,
        mention,
        msg::EffectOutcome,
        overlays::{Picker, Sessions},
        picture,
        widgets::{Citation, transcript::Item},
    },
};

/// Takes the outcome of an effect.
pub(super) fn done(app: &mut App, outcome: EffectOutcome) -> Vec<Effect> {
    match outcome {
        EffectOutcome::Replied(ask, reply) => return (ask.then)(app, reply),
        EffectOutcome::Filed(work, outcome) => return (work.then)(app, outcome),
        EffectOutcome::Sessions(Err(why), _) => return app.toast(why),
        EffectOutcome::Copied(Ok(way)) => return app.toast(way),
        EffectOutcome::Saved(Ok(it)) => {
            let replaced = if it.is_replaced { "replaced" } else { "" };
            return App::record(it.action, &[&it.path, replaced]);
        }
        EffectOutcome::SaveExists { path, text, draft } => return app.open_late(draft, Picker::replace(&path, text)),
        EffectOutcome::Copied(Err(why)) | EffectOutcome::Saved(Err(why)) | EffectOutcome::Failed(why) => {
            return app.toast(why);
        }
        EffectOutcome::Osc52 { bytes, what } => {
            app.terminal.pending.extend_from_slice(&bytes);
            app.toast(t!("news-copied-by-terminal", what = what));
        }
        EffectOutcome::Cited { turn, document, found } => {
            // A recording was made elsewhere: what is not here says nothing about it.
            let is_elsewhere = app.conversation.about.is_replay && found == Citation::Missing;
            let found = if is_elsewhere { Citation::Unread } else { found };
            app.questions.cited.insert((turn, document), found);
        }
        EffectOutcome::PictureMade(id, made) => app.take_picture(id, made),
        EffectOutcome::PictureRead { turn, document, data } => {
            if let Some(place) = app.conversation.transcript.index_of_document(turn, &document) {
                app.viewport.pane.forget(Item::Document(place));
            }
            app.terminal.images.take(turn, document, data);
        }
        EffectOutcome::Commands(commands, modes) => command::found(app, commands, modes),
        EffectOutcome::CommandsFor(line, commands, modes) => {
            command::found(app, commands, modes);
            return actions::writing::open_with_command(app, line);
        }
        EffectOutcome::ExportProposed { path, draft } => {
            return app.open_late(draft, actions::conversation::export_prompt(&path));
        }
        EffectOutcome::ExportExists { path, draft } => return app.open_late(draft, Picker::overwrite(&path)),
        EffectOutcome::Sessions(Ok(kept), draft) => {
            let sessions = Sessions::new(kept, app.now_ms);
            let wanting = sessions.wanting();
            let mut effects = app.open_late(draft, sessions);
            effects.extend(wanting.map(Effect::PreviewSession));
            return effects;
        }
        EffectOutcome::SessionsFound { words, found } => {
            if let Some(it) = app.overlays.find::<Sessions>(|_| true) {
                it.take(&words, found);
                return it.wanting().map(Effect::PreviewSession).into_iter().collect();
            }
        }
        EffectOutcome::SessionChanged { failed, kept } => {
            if let Some(it) = app.overlays.find::<Sessions>(|_| true) {
                // A list that cannot be had now is as it was.
                if let Some(kept) = kept {
                    it.renew(kept);
                }
            }
            if let Some(why) = failed {
                app.toast(why);
            }
        }
        EffectOutcome::SessionPreview { id, preview } => {
            if let Some(it) = app.overlays.find::<Sessions>(|_| true) {
                it.show(id, *preview);
            }
        }
        EffectOutcome::Edited(Ok(text)) => app.composer.field.set(text.trim_end_matches('\n')),
        EffectOutcome::ChipEdited(Ok(text)) => app.composer.field.change_chip(&text),
        EffectOutcome::ChipEdited(Err(why)) => return app.toast(why),
        EffectOutcome::Status(said) => app.status.said(said),
        EffectOutcome::Backfilled(read) => {
            let (mut effects, keys) = app.take_back(*read);
            if app.viewport.focus == Focus::Composer {
                effects.extend(mention::look(app));
            }
            effects.extend(keys.into_iter().flat_map(|it| super::keys::key(app, it)));
            return effects;
        }
        // Another conversation may have taken the place meanwhile.
        EffectOutcome::SpentEarlier { log, .. } if !Arc::ptr_eq(&log, app.conversation.link.log()) => {}
        EffectOutcome::SpentEarlier { spent, before, .. } => {
            app.conversation.transcript.set_earlier_cost(spent, before);
            app.viewport.bars = None;
        }
        EffectOutcome::Picture(Ok(it)) => {
            let picture::ImageAttachment { name, bytes, data } = it;
            app.composer.field.add(Chip::Picture { name, bytes, data });
        }
        EffectOutcome::Picture(Err((why, text))) => {
            match text {
                // It was only a path.
                Some(text) => app.composer.field.paste(&text),
                None => return app.toast(why),
            }
        }
        EffectOutcome::History {
            texts,
            draft: Some(draft),
        } => {
            if texts.is_empty() {
                return app.toast(t!("news-nothing-sent"));
            }
            return app.open_late(draft, Picker::history(&texts));
        }
        EffectOutcome::History { texts, draft: None } => app.composer.history.begin(texts),
        EffectOutcome::Uses(uses) => app.composer.commands.uses = uses,
        EffectOutcome::Edited(Err(why))
        | EffectOutcome::PlanEdited { text: Err(why), .. }
        | EffectOutcome::HunkEdited { text: Err(why), .. } => return app.toast(why),
        EffectOutcome::HunkEdited {
            turn,
            document,
            index,
            text: Ok(text),
        } => return actions::review::edited(app, turn, &document, index, &text),
        EffectOutcome::PlanEdited {
            turn,
            document,
            text: Ok(text),
        } => return actions::plan::edited(app, turn, document, &text),
    }
    Vec::new()
}
