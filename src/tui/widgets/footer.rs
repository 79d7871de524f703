//! The four or five keys that matter now; a short word of news at the right.

use std::borrow::Cow;

use crate::{
    t,
    text::{Role, Sanitized, Span, StyledLine, width, wrap::wrap},
    transcript::is_approval,
    tui::{
        app::{App, Focus, keymap::Place},
        widgets::{Form, approval_keys},
    },
};

/// The keys, the news behind them, and the first row of news that need two.
pub fn spans(app: &App, columns: usize) -> (Vec<Span>, Vec<Span>, Vec<Span>) {
    if let Some(news) = &app.toast
        && !app.viewport.areas.above_footer.is_empty()
        && !app.viewport.areas.footer.is_empty()
        && width::width(news) > columns.saturating_sub(2)
    {
        let rows = wrap(
            &[Span::new(Sanitized::line(news), Role::Accent)],
            columns.saturating_sub(2),
            &[],
            &[],
        );
        let rest: Vec<_> = rows.iter().skip(1).map(StyledLine::plain).collect();
        let rest = width::cut_end(&rest.join(" "), columns.saturating_sub(2));
        let first = rows.into_iter().next().unwrap_or_default().spans;
        return (vec![Span::new(Sanitized::new(&rest), Role::Accent)], Vec::new(), first);
    }
    let news: Vec<Span> = app
        .toast
        .iter()
        .map(|it| {
            Span::new(
                Sanitized::line(&width::cut_end(it, columns.saturating_sub(2))),
                Role::Accent,
            )
        })
        .collect();
    let room = columns.saturating_sub(width::spans_width(&news) + if news.is_empty() { 1 } else { 4 });
    let mut spans = Vec::new();
    for Hint { key, word, .. } in fitting(hints(app), room) {
        if !spans.is_empty() {
            spans.push(Span::new(Sanitized::literal("   "), Role::Faint));
        }
        spans.push(Span::new(Sanitized::line(&key), Role::Dim).bold());
        if !word.is_empty() {
            spans.push(Span::new(Sanitized::line(&format!(" {word}")), Role::Faint));
        }
    }
    (spans, news, Vec::new())
}

/// The hints that there is room for, from the first on; the way out of what is open is always one of them.
fn fitting(mut hints: Vec<Hint>, room: usize) -> Vec<Hint> {
    let wants = |it: &Hint| width::width(&it.key) + 1 + width::width(it.word);
    let all = |hints: &[Hint]| hints.iter().map(|it| wants(it) + 3).sum::<usize>().saturating_sub(3);
    let out = hints.pop_if(|it| it.key == "esc");
    let rest = room.saturating_sub(out.as_ref().map_or(0, |it| wants(it) + 3));
    while all(&hints) > rest {
        hints.pop();
    }
    hints.extend(out.filter(|it| all(&hints) + wants(it) <= room));
    hints
}

/// What a key does, and the key; keys are called as in the keymap, in every language.
struct Hint {
    key: Cow<'static, str>,
    word: &'static str,
    /// What it does, where it is an action: a word may be the same for two.
    action: &'static str,
}

fn hint(key: impl Into<Cow<'static, str>>, word: &'static str) -> Hint {
    Hint {
        key: key.into(),
        word,
        action: "",
    }
}

fn fixed(pairs: impl IntoIterator<Item = (&'static str, &'static str)>) -> Vec<Hint> {
    pairs.into_iter().map(|(key, word)| hint(key, word)).collect()
}

fn hints(app: &App) -> Vec<Hint> {
    if let Some(overlay) = app.overlays.last() {
        return fixed(overlay.hints());
    }
    let mention = app.composer.mention.as_ref();
    if mention.is_some_and(crate::tui::app::Mention::is_shown) {
        return fixed([
            ("tab", t!("footer-take")),
            ("↑↓", t!("footer-choose")),
            ("esc", t!("footer-close")),
        ]);
    }
    if app.composer.commands.shown().is_some() {
        return fixed([
            ("tab", t!("footer-complete")),
            ("enter", t!("footer-run")),
            ("↑↓", t!("footer-choose")),
            ("esc", t!("footer-close")),
        ]);
    }
    if let Some(place) = app.viewport.question(&app.conversation.transcript) {
        let document = app.conversation.transcript.get(place);
        let name = document.map(|it| (app.conversation.turn_of(place), it.id.clone()));
        if name.is_some_and(|it| app.questions.forms.get(&it).is_some_and(Form::is_typing)) {
            return fixed([("enter", t!("footer-done")), ("esc", t!("footer-back"))]);
        }
        if let Some(document) = document.filter(|it| is_approval(it)) {
            return vec![
                hint(approval_keys(document), t!("footer-answer")),
                hint("tab", t!("footer-composer")),
                hint("esc", t!("footer-stop")),
                hint("f1", t!("footer-keys")),
            ];
        }
        return vec![
            hint(digits(app), t!("footer-answer")),
            hint("s", t!("footer-skip")),
            hint("tab", t!("footer-composer")),
            hint("esc", t!("footer-stop")),
            hint("?", t!("footer-keys")),
        ];
    }
    let selected = app.viewport.selected();
    let on_plan = app.viewport.focus == Focus::Transcript
        && selected.is_some()
        && selected == app.conversation.transcript.newest_plan();
    let names: &[(&'static str, &'static str)] = match app.viewport.focus {
        Focus::Transcript if on_plan && app.viewport.pane.todo.is_none() => &[
            ("plan.build", t!("footer-build")),
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
        Focus::Composer if app.conversation.is_busy() => &[
            ("escape", t!("footer-stop")),
            (
                "send",
                if app.conversation.about.hears {
                    t!("footer-steer")
                } else {
                    t!("footer-queue")
                },
            ),
            ("newline", t!("footer-newline")),
            ("focus", t!("footer-transcript")),
            ("keys", t!("footer-keys")),
        ],
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
        Focus::Composer => Place::Composer,
        Focus::Transcript if on_plan => Place::Plan,
        Focus::Transcript => Place::Transcript,
    };
    let key = |name: &'static str| -> Cow<'static, str> {
        if name == "newline" {
            // The newline key that works in every terminal is the one to teach.
            return if app.conversation.is_busy() {
                "ctrl+j"
            } else {
                "alt+enter"
            }
            .into();
        }
        let keys = match app.preferences.keymap.keys(place, name) {
            [] => app.preferences.keymap.keys(Place::Everywhere, name),
            keys => keys,
        };
        keys.first().map(ToString::to_string).unwrap_or_default().into()
    };
    let named = names.iter().map(|&(action, word)| Hint {
        key: key(action),
        word,
        action,
    });
    let mut hints: Vec<_> = named.filter(|it| !it.key.is_empty()).collect();
    let other = if app.viewport.focus != Focus::Composer {
        None
    } else if app.conversation.transcript.open_question().is_some() {
        let key = if app.asks_from_the_composer() {
            digits(app)
        } else {
            "tab".to_owned()
        };
        Some(hint(key, t!("footer-answer")))
    } else if app.conversation.plan_to_build().is_some() {
        Some(hint("tab", t!("footer-plan")))
    } else {
        None
    };
    if let Some(other) = other {
        hints.retain(|it| it.action != "focus");
        hints.insert(0, other);
    }
    hints
}

/// The keys of the options of the question that waits.
fn digits(app: &App) -> String {
    match app.conversation.options_waiting() {
        0 => "o".to_owned(),
        1 => "1".to_owned(),
        n => format!("1-{}", n.min(9)),
    }
}
