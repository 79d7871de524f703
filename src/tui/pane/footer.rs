//! The four or five keys that matter now; a short word of news at the right.

use crate::{
    text::{Clean, Role, Span, width},
    transcript::is_approval,
    tui::{
        app::{App, Focus},
        doc::{Form, approval_keys},
        keymap::Place,
        layer::Layer,
    },
};

pub fn spans(app: &App, columns: usize) -> (Vec<Span>, Vec<Span>) {
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
    for (keys, word) in hints(app) {
        let wants = width::width(&keys) + 1 + width::width(&word) + if spans.is_empty() { 0 } else { 3 };
        if width::spans_width(&spans) + wants > room {
            break;
        }
        if !spans.is_empty() {
            spans.push(Span::new(Clean::literal("   "), Role::Faint));
        }
        spans.push(Span::new(Clean::line(&keys), Role::Dim).bold());
        if !word.is_empty() {
            spans.push(Span::new(Clean::line(&format!(" {word}")), Role::Faint));
        }
    }
    (spans, news)
}

fn hints(app: &App) -> Vec<(String, String)> {
    let fixed = |pairs: &[(&str, &str)]| {
        pairs
            .iter()
            .map(|(key, word)| ((*key).to_owned(), (*word).to_owned()))
            .collect()
    };
    match app.layers.last() {
        Some(Layer::Picker(_)) => return fixed(&[("enter", "choose"), ("↑↓", "move"), ("esc", "close")]),
        Some(Layer::Page(_)) => return fixed(&[("↑↓", "scroll"), ("space", "page"), ("esc", "back")]),
        Some(Layer::Review(_)) => {
            return fixed(&[
                ("a", "accept"),
                ("r", "reject"),
                ("e", "edit"),
                ("c", "comment"),
                ("j k", "hunk"),
                ("J K", "file"),
                ("u", "side by side"),
                ("s", "turn or all"),
                ("esc", "back"),
            ]);
        }
        Some(Layer::Branches(_)) => {
            return fixed(&[
                ("enter", "go there"),
                ("↑↓", "move"),
                ("←→", "where it forks"),
                ("space", "scroll"),
                ("esc", "back"),
            ]);
        }
        Some(Layer::Rewind(_)) => {
            return fixed(&[
                ("enter", "files and conversation"),
                ("f", "files"),
                ("c", "conversation"),
                ("→", "a file"),
                ("space", "leave it"),
                ("o", "changed since"),
                ("esc", "back"),
            ]);
        }
        Some(Layer::Waiting(_)) => {
            return fixed(&[("enter", "edit"), ("d", "take back"), ("J K", "move"), ("esc", "back")]);
        }
        Some(Layer::Outline(_)) => {
            return fixed(&[
                ("↑↓", "move"),
                ("←→", "turn"),
                ("letters", "find"),
                ("enter", "go"),
                ("esc", "back"),
            ]);
        }
        Some(Layer::Inspector(_)) => {
            return fixed(&[
                ("↑↓", "step"),
                ("n", "repaired"),
                ("[ ]", "same document"),
                ("y", "copy"),
                ("c", "curl"),
                ("J K", "scroll"),
                ("esc", "back"),
            ]);
        }
        Some(Layer::Sessions(_)) => {
            return fixed(&[
                ("↑↓", "move"),
                ("letters", "find"),
                ("enter", "take up"),
                ("tab", "folder or everywhere"),
                ("ctrl+a", "archive"),
                ("ctrl+t", "archived too"),
                ("ctrl+d", "remove"),
                ("esc", "back"),
            ]);
        }
        Some(Layer::Prompt(_)) => return fixed(&[("enter", "done"), ("esc", "back")]),
        None => {}
    }
    if app.layers.is_empty()
        && app
            .composer
            .mention
            .as_ref()
            .is_some_and(crate::tui::app::Mention::is_shown)
    {
        return fixed(&[("tab", "take"), ("↑↓", "choose"), ("esc", "close")]);
    }
    if app.layers.is_empty() && app.composer.commands.shown().is_some() {
        return fixed(&[
            ("tab", "complete"),
            ("enter", "run"),
            ("↑↓", "choose"),
            ("esc", "close"),
        ]);
    }
    let key = |place: Place, name: &'static str| {
        let keys = app.keymap.keys(place, name);
        let keys = if keys.is_empty() {
            app.keymap.keys(Place::Everywhere, name)
        } else {
            keys
        };
        keys.first().map(ToString::to_string).unwrap_or_default()
    };
    if let Some(place) = app.question() {
        let document = app.transcript.get(place);
        let name = document.map(|it| (app.turn_of(place), it.id.clone()));
        if name.is_some_and(|it| app.asking.forms.get(&it).is_some_and(Form::is_typing)) {
            return fixed(&[("enter", "done"), ("esc", "back")]);
        }
        if let Some(document) = document.filter(|it| is_approval(it)) {
            return vec![
                (approval_keys(document), "answer".into()),
                ("tab".into(), "composer".into()),
                ("esc".into(), "stop".into()),
                ("f1".into(), "keys".into()),
            ];
        }
        return vec![
            (digits(app), "answer".into()),
            ("s".into(), "skip".into()),
            ("tab".into(), "composer".into()),
            ("esc".into(), "stop".into()),
            ("?".into(), "keys".into()),
        ];
    }
    let on_plan = app.focus == Focus::Transcript && app.selected() == app.transcript.newest_plan();
    let names: &[(&'static str, &'static str)] = match app.focus {
        Focus::Transcript if on_plan && app.selected().is_some() && app.pane.todo.is_none() => &[
            ("plan.build", "build"),
            ("plan.edit", "edit"),
            ("plan.comment", "comment"),
            ("todo.next", "todos"),
            ("focus", "composer"),
            ("keys", "keys"),
        ],
        Focus::Transcript if on_plan && app.selected().is_some() => &[
            ("todo.toggle", "tick"),
            ("todo.reword", "reword"),
            ("todo.insert", "insert"),
            ("focus", "composer"),
            ("keys", "keys"),
        ],
        Focus::Composer if app.is_busy() => &[
            ("escape", "stop"),
            ("send", if app.about.hears { "steer" } else { "queue" }),
            ("newline", "newline"),
            ("focus", "transcript"),
            ("keys", "keys"),
        ],
        Focus::Composer => &[
            ("send", "send"),
            ("newline", "newline"),
            ("mode.next", "mode"),
            ("focus", "transcript"),
            ("palette", "palette"),
            ("keys", "keys"),
        ],
        Focus::Transcript => &[
            ("next", "next"),
            ("previous", "previous"),
            ("fold", "fold"),
            ("copy", "copy"),
            ("focus", "composer"),
            ("keys", "keys"),
        ],
    };
    let place = match app.focus {
        Focus::Composer => Place::Composer,
        Focus::Transcript if on_plan => Place::Plan,
        Focus::Transcript => Place::Transcript,
    };
    let mut hints: Vec<_> = names
        .iter()
        .map(|(name, word)| {
            // The newline key that works in every terminal is the one to teach.
            let key = if *name == "newline" {
                "alt+enter".to_owned()
            } else {
                key(place, name)
            };
            let key = if *name == "newline" && app.is_busy() {
                "ctrl+j".to_owned()
            } else {
                key
            };
            (key, (*word).to_owned())
        })
        .filter(|(key, _)| !key.is_empty())
        .collect();
    if app.focus == Focus::Composer && app.transcript.waiting().is_some() {
        let key = if app.asks_from_the_composer() {
            digits(app)
        } else {
            "tab".to_owned()
        };
        hints.insert(0, (key, "answer".into()));
        hints.retain(|(_, word)| word != "transcript");
    } else if app.focus == Focus::Composer && app.plan_to_build().is_some() {
        hints.insert(0, ("tab".into(), "plan".into()));
        hints.retain(|(_, word)| word != "transcript");
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
