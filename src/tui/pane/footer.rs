//! The four or five keys that matter now; a short word of news at the right.

use std::borrow::Cow;

use crate::{
    say,
    text::{Clean, Role, Row, Span, width, wrap::wrap},
    transcript::is_approval,
    tui::{
        app::{App, Focus},
        doc::{Form, approval_keys},
        keymap::Place,
        layer::Layer,
    },
};

/// The keys, the news behind them, and the first row of news that need two.
pub fn spans(app: &App, columns: usize) -> (Vec<Span>, Vec<Span>, Vec<Span>) {
    if let Some(news) = &app.toast
        && app.layout.footer > Some(app.layout.composer.end)
        && width::width(news) > columns.saturating_sub(2)
    {
        let rows = wrap(
            &[Span::new(Clean::line(news), Role::Accent)],
            columns.saturating_sub(2),
            &[],
            &[],
        );
        let rest: Vec<_> = rows.iter().skip(1).map(Row::plain).collect();
        let rest = width::cut_end(&rest.join(" "), columns.saturating_sub(2));
        let first = rows.into_iter().next().unwrap_or_default().spans;
        return (vec![Span::new(Clean::new(&rest), Role::Accent)], Vec::new(), first);
    }
    let news: Vec<Span> = app
        .toast
        .iter()
        .map(|it| {
            Span::new(
                Clean::line(&width::cut_end(it, columns.saturating_sub(2))),
                Role::Accent,
            )
        })
        .collect();
    let room = columns.saturating_sub(width::spans_width(&news) + if news.is_empty() { 1 } else { 4 });
    let mut spans = Vec::new();
    for Hint { key, word, .. } in fitting(hints(app), room) {
        if !spans.is_empty() {
            spans.push(Span::new(Clean::literal("   "), Role::Faint));
        }
        spans.push(Span::new(Clean::line(&key), Role::Dim).bold());
        if !word.is_empty() {
            spans.push(Span::new(Clean::line(&format!(" {word}")), Role::Faint));
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

fn fixed<const N: usize>(pairs: [(&'static str, &'static str); N]) -> Vec<Hint> {
    pairs.into_iter().map(|(key, word)| hint(key, word)).collect()
}

/// What the keys of a layer do.
fn of_layer(layer: &Layer) -> Vec<Hint> {
    match layer {
        Layer::Picker(_) => fixed([
            ("enter", say!("footer-choose")),
            ("↑↓", say!("footer-move")),
            ("esc", say!("footer-close")),
        ]),
        Layer::Page(_) => fixed([
            ("↑↓", say!("footer-lines")),
            ("space", say!("footer-page")),
            ("esc", say!("footer-back")),
        ]),
        Layer::Review(_) => fixed([
            ("a", say!("footer-accept")),
            ("r", say!("footer-reject")),
            ("e", say!("footer-edit")),
            ("c", say!("footer-comment")),
            ("j k", say!("footer-hunk")),
            ("J K", say!("footer-file")),
            ("u", say!("footer-side-by-side")),
            ("s", say!("footer-turn-or-all")),
            ("esc", say!("footer-back")),
        ]),
        Layer::Branches(_) => fixed([
            ("enter", say!("footer-go-there")),
            ("↑↓", say!("footer-move")),
            ("←→", say!("footer-forks")),
            ("space", say!("footer-scroll")),
            ("esc", say!("footer-back")),
        ]),
        Layer::Rewind(_) => fixed([
            ("enter", say!("footer-files-and-conversation")),
            ("f", say!("footer-files")),
            ("c", say!("footer-conversation")),
            ("→", say!("footer-a-file")),
            ("space", say!("footer-leave-it")),
            ("o", say!("footer-changed-since")),
            ("esc", say!("footer-back")),
        ]),
        Layer::Waiting(_) => fixed([
            ("enter", say!("footer-edit")),
            ("d", say!("footer-take-back")),
            ("J K", say!("footer-reorder")),
            ("esc", say!("footer-back")),
        ]),
        Layer::Outline(_) => fixed([
            ("↑↓", say!("footer-move")),
            ("←→", say!("footer-turn")),
            (say!("footer-letters"), say!("footer-find")),
            ("enter", say!("footer-go")),
            ("esc", say!("footer-back")),
        ]),
        Layer::Inspector(_) => fixed([
            ("↑↓", say!("footer-step")),
            ("n", say!("footer-repaired")),
            ("[ ]", say!("footer-same-document")),
            ("y", say!("footer-copy")),
            ("c", say!("footer-curl")),
            ("J K", say!("footer-scroll")),
            ("esc", say!("footer-back")),
        ]),
        Layer::Sessions(_) => fixed([
            ("↑↓", say!("footer-move")),
            (say!("footer-letters"), say!("footer-find")),
            ("enter", say!("footer-take-up")),
            ("tab", say!("footer-folder-or-everywhere")),
            ("ctrl+a", say!("footer-archive")),
            ("ctrl+t", say!("footer-archived-too")),
            ("ctrl+d", say!("footer-remove")),
            ("esc", say!("footer-back")),
        ]),
        Layer::Prompt(_) => fixed([("enter", say!("footer-done")), ("esc", say!("footer-back"))]),
    }
}

fn hints(app: &App) -> Vec<Hint> {
    if let Some(layer) = app.layers.last() {
        return of_layer(layer);
    }
    let mention = app.composer.mention.as_ref();
    if mention.is_some_and(crate::tui::app::Mention::is_shown) {
        return fixed([
            ("tab", say!("footer-take")),
            ("↑↓", say!("footer-choose")),
            ("esc", say!("footer-close")),
        ]);
    }
    if app.composer.commands.shown().is_some() {
        return fixed([
            ("tab", say!("footer-complete")),
            ("enter", say!("footer-run")),
            ("↑↓", say!("footer-choose")),
            ("esc", say!("footer-close")),
        ]);
    }
    if let Some(place) = app.question() {
        let document = app.transcript.get(place);
        let name = document.map(|it| (app.turn_of(place), it.id.clone()));
        if name.is_some_and(|it| app.asking.forms.get(&it).is_some_and(Form::is_typing)) {
            return fixed([("enter", say!("footer-done")), ("esc", say!("footer-back"))]);
        }
        if let Some(document) = document.filter(|it| is_approval(it)) {
            return vec![
                hint(approval_keys(document), say!("footer-answer")),
                hint("tab", say!("footer-composer")),
                hint("esc", say!("footer-stop")),
                hint("f1", say!("footer-keys")),
            ];
        }
        return vec![
            hint(digits(app), say!("footer-answer")),
            hint("s", say!("footer-skip")),
            hint("tab", say!("footer-composer")),
            hint("esc", say!("footer-stop")),
            hint("?", say!("footer-keys")),
        ];
    }
    let selected = app.selected();
    let on_plan = app.focus == Focus::Transcript && selected.is_some() && selected == app.transcript.newest_plan();
    let names: &[(&'static str, &'static str)] = match app.focus {
        Focus::Transcript if on_plan && app.pane.todo.is_none() => &[
            ("plan.build", say!("footer-build")),
            ("plan.edit", say!("footer-edit")),
            ("plan.comment", say!("footer-comment")),
            ("todo.next", say!("footer-todos")),
            ("focus", say!("footer-composer")),
            ("keys", say!("footer-keys")),
        ],
        Focus::Transcript if on_plan => &[
            ("todo.toggle", say!("footer-tick")),
            ("todo.reword", say!("footer-reword")),
            ("todo.insert", say!("footer-insert")),
            ("focus", say!("footer-composer")),
            ("keys", say!("footer-keys")),
        ],
        Focus::Composer if app.is_busy() => &[
            ("escape", say!("footer-stop")),
            (
                "send",
                if app.about.hears {
                    say!("footer-steer")
                } else {
                    say!("footer-queue")
                },
            ),
            ("newline", say!("footer-newline")),
            ("focus", say!("footer-transcript")),
            ("keys", say!("footer-keys")),
        ],
        Focus::Composer => &[
            ("send", say!("footer-send")),
            ("newline", say!("footer-newline")),
            ("mode.next", say!("footer-mode")),
            ("focus", say!("footer-transcript")),
            ("palette", say!("footer-palette")),
            ("keys", say!("footer-keys")),
        ],
        Focus::Transcript if app.search.is_some() => &[
            ("search.next", say!("footer-next")),
            ("search.previous", say!("footer-previous")),
            ("escape", say!("footer-end-search")),
            ("copy", say!("footer-copy")),
            ("focus", say!("footer-composer")),
            ("keys", say!("footer-keys")),
        ],
        Focus::Transcript if !app.pane.filter.is_empty() => &[
            ("escape", say!("footer-everything")),
            ("next", say!("footer-next")),
            ("previous", say!("footer-previous")),
            ("fold", say!("footer-fold")),
            ("copy", say!("footer-copy")),
            ("focus", say!("footer-composer")),
            ("keys", say!("footer-keys")),
        ],
        Focus::Transcript => &[
            ("next", say!("footer-next")),
            ("previous", say!("footer-previous")),
            ("fold", say!("footer-fold")),
            ("copy", say!("footer-copy")),
            ("focus", say!("footer-composer")),
            ("keys", say!("footer-keys")),
        ],
    };
    let place = match app.focus {
        Focus::Composer => Place::Composer,
        Focus::Transcript if on_plan => Place::Plan,
        Focus::Transcript => Place::Transcript,
    };
    let key = |name: &'static str| -> Cow<'static, str> {
        if name == "newline" {
            // The newline key that works in every terminal is the one to teach.
            return if app.is_busy() { "ctrl+j" } else { "alt+enter" }.into();
        }
        let keys = match app.keymap.keys(place, name) {
            [] => app.keymap.keys(Place::Everywhere, name),
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
    let other = if app.focus != Focus::Composer {
        None
    } else if app.transcript.waiting().is_some() {
        let key = if app.asks_from_the_composer() {
            digits(app)
        } else {
            "tab".to_owned()
        };
        Some(hint(key, say!("footer-answer")))
    } else if app.plan_to_build().is_some() {
        Some(hint("tab", say!("footer-plan")))
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
    match app.options_waiting() {
        0 => "o".to_owned(),
        1 => "1".to_owned(),
        n => format!("1-{}", n.min(9)),
    }
}
