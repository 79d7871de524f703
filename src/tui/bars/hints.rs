//! The keys for the footer, by what has the input.

use std::borrow::Cow;

use crate::{
    protocol::{Kind, View},
    t,
    transcript::is_approval,
    tui::{
        app::{App, Focus, Mark, Mention, keymap::KeyContext},
        widgets::{
            approval_chords, approval_keys,
            footer::{Hint, deciding, help, hint},
            staged,
        },
    },
};

/// The hints of a list or page, and the way to the help.
fn fixed(pairs: impl IntoIterator<Item = (&'static str, &'static str)>) -> Vec<Hint> {
    let pairs = pairs.into_iter().map(|(key, word)| hint(key, word));
    pairs.chain([help("f1", t!("footer-keys"))]).collect()
}

/// The keys for the unchanged lines around a change.
fn context_keys() -> Hint {
    hint("+ -", t!("footer-context"))
}

/// Returns the keys for the footer, the most important ones first.
pub fn hints(app: &App) -> Vec<Hint> {
    if let Some(overlay) = app.overlays.last() {
        let mut hints = fixed(overlay.hints());
        for hint in hints.iter_mut().take(overlay.decisions()) {
            hint.decides = true;
        }
        return hints;
    }
    let mention = app.composer.mention.as_ref();
    if mention.is_some_and(Mention::is_shown) {
        return fixed([
            ("tab", t!("footer-take")),
            ("↑↓", t!("footer-choose")),
            ("esc", t!("footer-close")),
        ]);
    }
    if let Some(list) = app.composer.commands.list.as_ref().filter(|it| !it.is_hidden) {
        let enter = list.runs().then_some(("enter", t!("footer-run")));
        let more = [("↑↓", t!("footer-choose")), ("esc", t!("footer-close"))];
        let complete = [("tab", t!("footer-complete"))];
        return fixed(complete.into_iter().chain(enter).chain(more));
    }
    if let Some(place) = app.viewport.question(&app.conversation.transcript) {
        let document = app.conversation.transcript.get(place);
        let is_question = document.is_some_and(|it| !is_approval(it));
        let keys = match document.filter(|it| is_approval(it)) {
            Some(document) => deciding(approval_keys(document), t!("footer-answer")),
            None => hint("↑↓", t!("footer-choose")),
        };
        let enter = is_question.then(|| deciding("enter", t!("footer-answer")));
        let is_change = document.is_some_and(|it| staged(it).is_some());
        let change = is_change.then(|| [hint("r", t!("footer-each-hunk")), context_keys()]);
        let ways = [
            hint("tab", t!("footer-composer")),
            hint("esc", t!("question-key-later")),
            help("f1", t!("footer-keys")),
        ];
        return enter
            .into_iter()
            .chain([keys])
            .chain(change.into_iter().flatten())
            .chain(ways)
            .collect();
    }
    if let Some((mark, _)) = &app.questions.marked {
        let does = match mark {
            Mark::Build => t!("footer-build"),
            Mark::EditPlan => t!("footer-edit"),
            Mark::Open { .. } => t!("footer-open"),
            Mark::Retry => t!("key-retry"),
            Mark::RemoveTodo(_) => t!("footer-remove"),
        };
        return fixed([("enter", does), ("esc", t!("footer-back"))]);
    }
    let is_played = app.conversation.about.is_replay && app.conversation.is_busy();
    let is_free = app.viewport.focus == Focus::Composer && app.conversation.waiting().is_none();
    if is_played && is_free && app.composer.field.is_empty() {
        return fixed([
            (t!("footer-any-key"), t!("footer-skip-wait")),
            ("esc", t!("footer-stop")),
            ("tab", t!("footer-transcript")),
        ]);
    }
    let selected = app.viewport.selected();
    let on_plan = app.viewport.focus == Focus::Transcript
        && selected.is_some()
        && selected == app.conversation.transcript.newest_plan();
    let names: &[(&'static str, &'static str)] = match app.viewport.focus {
        Focus::Transcript if on_plan && app.viewport.pane.todo.is_none() => &[
            ("plan.mark", t!("footer-build")),
            ("plan.edit", t!("footer-edit")),
            ("plan.comment", t!("footer-comment")),
            ("todo.next", t!("footer-todos")),
            ("focus", t!("footer-composer")),
            ("keys", t!("footer-keys")),
        ],
        Focus::Transcript if on_plan => &[
            ("todo.toggle", t!("footer-tick")),
            ("todo.reword", t!("footer-reword")),
            ("todo.insert", t!("footer-insert")),
            ("focus", t!("footer-composer")),
            ("keys", t!("footer-keys")),
        ],
        Focus::Composer if app.conversation.is_busy() => {
            let send = if app.conversation.about.hears {
                t!("footer-steer")
            } else {
                t!("footer-queue")
            };
            let sends = app.conversation.about.written_elsewhere.is_none();
            let tab = if app.composer.field.is_empty() || !sends {
                t!("footer-transcript")
            } else {
                t!("footer-queue")
            };
            &[
                ("escape", t!("footer-stop")),
                ("send", send),
                ("focus", tab),
                ("newline", t!("footer-newline")),
                ("keys", t!("footer-keys")),
            ]
        }
        Focus::Composer => &[
            ("send", t!("footer-send")),
            ("newline", t!("footer-newline")),
            ("mode.next", t!("footer-mode")),
            ("focus", t!("footer-transcript")),
            ("palette", t!("footer-palette")),
            ("keys", t!("footer-keys")),
        ],
        Focus::Transcript if app.viewport.search.is_some() => &[
            ("search.next", t!("footer-next")),
            ("search.previous", t!("footer-previous")),
            ("escape", t!("footer-end-search")),
            ("copy", t!("footer-copy")),
            ("focus", t!("footer-composer")),
            ("keys", t!("footer-keys")),
        ],
        Focus::Transcript if !app.viewport.pane.filter.is_empty() => &[
            ("escape", t!("footer-everything")),
            ("next", t!("footer-next")),
            ("previous", t!("footer-previous")),
            ("fold", t!("footer-fold")),
            ("copy", t!("footer-copy")),
            ("focus", t!("footer-composer")),
            ("keys", t!("footer-keys")),
        ],
        Focus::Transcript => &[
            ("next", t!("footer-next")),
            ("previous", t!("footer-previous")),
            ("fold", t!("footer-fold")),
            ("copy", t!("footer-copy")),
            ("focus", t!("footer-composer")),
            ("keys", t!("footer-keys")),
        ],
    };
    let place = match app.viewport.focus {
        Focus::Composer => KeyContext::Composer,
        Focus::Transcript if on_plan => KeyContext::Plan,
        Focus::Transcript => KeyContext::Transcript,
    };
    let key = |name: &'static str| -> Cow<'static, str> {
        if name == "newline" {
            // The newline key that works in every terminal is the one to teach.
            return "alt+enter".into();
        }
        let keys = match app.preferences.keymap.keys(place, name) {
            [] => app.preferences.keymap.keys(KeyContext::Everywhere, name),
            keys => keys,
        };
        keys.first().map(ToString::to_string).unwrap_or_default().into()
    };
    let named = names.iter().map(|&(action, word)| Hint {
        action,
        ..hint(key(action), word)
    });
    // Where messages are not sent, no key sends them.
    let sends = app.conversation.about.written_elsewhere.is_none();
    let is_shown = |it: &Hint| !it.key.is_empty() && (sends || it.action != "send");
    let mut hints: Vec<_> = named.filter(is_shown).collect();
    if app.viewport.focus != Focus::Composer {
        let selected = selected.and_then(|it| app.conversation.transcript.get(it));
        if let Some(at) = hints.iter().position(|it| it.action == "fold")
            && selected.is_some_and(|it| it.kind == Kind::FileEdit)
        {
            hints.insert(at + 1, context_keys());
        }
        return hints;
    }
    if app.composer.to_remember().is_some()
        && let Some(send) = hints.iter_mut().find(|it| it.action == "send")
    {
        // Enter opens a choice, which is not what one expects: it stays where there is little room.
        (send.word, send.action) = (t!("footer-note"), "");
    }
    if app.conversation.waits_for_trust() {
        hints.retain(|it| it.action != "focus");
        hints.insert(0, hint("tab", t!("trust-review")));
        return hints;
    }
    let Some(document) = app
        .conversation
        .waiting()
        .and_then(|it| app.conversation.transcript.get(it))
    else {
        return hints;
    };
    hints.retain(|it| it.action != "focus");
    let way = match document.kind {
        Kind::Plan => hint("tab", t!("footer-plan")),
        _ => hint("tab", t!("footer-answer")),
    };
    hints.insert(0, way);
    if let View::Clarification(view) = document.view()
        && is_approval(document)
    {
        let mut chords = approval_chords(&view);
        // Where there is little room, the one that allows more goes first.
        chords.sort_by_key(|it| it.0 == "alt+a");
        let chords = chords.into_iter().map(|(chord, does)| match chord {
            "alt+a" => hint(chord, does),
            _ => deciding(chord, does),
        });
        hints.splice(0..0, chords);
    }
    hints
}
