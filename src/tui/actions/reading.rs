//! Actions of the transcript: moving, scrolling, folding, opening files.

use crate::{
    protocol::{Kind, View, document::change_check},
    t,
    tui::{
        app::{Action, App, Effect, Focus, Mark},
        overlays::Picker,
        places,
        widgets::{
            self, Fold, error_leaves_out,
            filter::has_failed,
            message_leaves_out,
            transcript::{Item, is_receipt},
        },
    },
};

pub const NEXT: Action = Action::new("next", "", |app, _| go(app, true, is_stop));

pub const PREVIOUS: Action = Action::new("previous", "", |app, _| go(app, false, is_stop));

fn is_stop(app: &App, item: Item) -> bool {
    !is_receipt(&app.conversation.transcript, item)
}

pub const TURN_NEXT: Action = Action::new("turn.next", "", |app, _| {
    go(app, true, |_, item| matches!(item, Item::Message(_)))
});

pub const TURN_PREVIOUS: Action = Action::new("turn.previous", "", |app, _| {
    go(app, false, |_, item| matches!(item, Item::Message(_)))
});

pub const NEXT_EDIT: Action = Action::new("next.edit", "", |app, _| {
    go_round(app, true, |app, item| is_kind(app, item, &Kind::FileEdit))
});

pub const PREVIOUS_EDIT: Action = Action::new("previous.edit", "", |app, _| {
    go_round(app, false, |app, item| is_kind(app, item, &Kind::FileEdit))
});

pub const NEXT_ERROR: Action = Action::new("next.error", "", |app, _| go_round(app, true, is_failure));

pub const PREVIOUS_ERROR: Action = Action::new("previous.error", "", |app, _| go_round(app, false, is_failure));

pub const NEXT_QUESTION: Action = Action::new("next.question", "", |app, _| match app.conversation.waiting() {
    Some(place) => select(app, Item::Document(place)),
    None => app.toast(t!("action-no-question")),
});

pub const LINE_UP: Action = Action::new("line.up", "", |app, _| scroll(app, -1));

pub const LINE_DOWN: Action = Action::new("line.down", "", |app, _| scroll(app, 1));

pub const PAGE_UP: Action = Action::new("page.up", "", |app, _| scroll(app, -app.viewport.pane.page()));

pub const PAGE_DOWN: Action = Action::new("page.down", "", |app, _| scroll(app, app.viewport.pane.page()));

pub const TOP: Action = Action::new("top", "", |app, _| {
    app.viewport.pane.go_to_top();
    if app.viewport.focus == Focus::Transcript
        && let Some(first) = app.viewport.pane.items.first().copied()
    {
        app.viewport.pane.selected = Some(first);
    }
    Vec::new()
});

pub const BOTTOM: Action = Action::new("bottom", "", |app, _| {
    app.viewport.pane.go_to_end();
    if app.viewport.focus == Focus::Transcript
        && let Some(last) = app
            .viewport
            .pane
            .items
            .iter()
            .rev()
            .find(|it| is_stop(app, **it))
            .copied()
    {
        app.viewport.pane.selected = Some(last);
    }
    Vec::new()
});

pub const FOLD: Action = Action::new("fold", "", |app, _| {
    let Some(item) = app.viewport.pane.selected else {
        return Vec::new();
    };
    if is_asked(app, item) {
        return Vec::new();
    }
    let next = next_fold(app, item);
    app.viewport.pane.set_fold(item, next);
    app.with_pane(|pane, context| pane.select(item, context));
    Vec::new()
});

/// Returns true for what a key decides now or next, which stays in view: an open question or a plan to build.
fn is_asked(app: &App, item: Item) -> bool {
    let Item::Document(place) = item else { return false };
    let transcript = &app.conversation.transcript;
    let is_open = |it| transcript.is_open_question(place.exchange, it);
    app.conversation.waiting() == Some(place) || transcript.get(place).is_some_and(is_open)
}

/// Unfolds the last item that is folded, or folds it again.
pub fn unfold_last(app: &mut App) -> Vec<Effect> {
    let is_folded = |item: Item| match app.viewport.pane.fold_of(item) {
        Fold::Full | Fold::Folded => true,
        Fold::Usual => can_show_more(app, item) || is_line_by_nature(app, item),
    };
    let Some(item) = app.viewport.pane.items.iter().rev().copied().find(|it| is_folded(*it)) else {
        return app.toast(t!("action-nothing-folded"));
    };
    let next = match app.viewport.pane.fold_of(item) {
        Fold::Full => Fold::Usual,
        Fold::Usual | Fold::Folded => Fold::Full,
    };
    app.viewport.pane.set_fold(item, next);
    let selected = app.viewport.pane.selected;
    app.with_pane(|pane, context| pane.select(item, context));
    app.viewport.pane.selected = selected;
    Vec::new()
}

/// Shows the newest list of todos: the last update of it, or the plan that it comes from.
pub const TODO: Action = Action::new("todo", "todo", |app, _| {
    let transcript = &app.conversation.transcript;
    let is_list = |item: &Item| match item {
        Item::Document(place) => {
            let document = transcript.get(*place);
            document.is_some_and(|it| matches!(it.kind, Kind::TodoUpdate | Kind::Plan))
        }
        Item::Message(_) | Item::Thinking(..) | Item::Ending(_) | Item::Action(..) => false,
    };
    let Some(item) = app.viewport.pane.items.iter().rev().copied().find(is_list) else {
        return app.toast(t!("action-no-todo"));
    };
    app.viewport.pane.set_fold(item, Fold::Full);
    app.with_pane(|pane, context| pane.select(item, context));
    Vec::new()
});

pub const FOLD_ALL: Action = Action::new("fold.all", "fold", |app, _| fold_where(app, |_| true));

pub const FOLD_KIND: Action = Action::new("fold.kind", "", |app, _| {
    let Some(kind) = app
        .viewport
        .selected()
        .and_then(|it| app.conversation.transcript.get(it))
        .map(|it| it.kind.clone())
    else {
        return Vec::new();
    };
    fold_where(app, |it| *it == kind)
});

pub const REASONING: Action = Action::new("reasoning", "reasoning", |app, _| {
    app.appearance.show_thinking = !app.appearance.show_thinking;
    Vec::new()
});

pub const OPEN: Action = Action::new("open", "", |app, _| {
    let Some(document) = app
        .viewport
        .selected()
        .and_then(|it| app.conversation.transcript.get(it))
    else {
        return app.toast(t!("action-select-first"));
    };
    let mut places = match document.view() {
        View::CodeReference(it) => vec![(it.file_path.to_owned(), Some(it.start_line))],
        View::FileEdit(it) => {
            let path = it.new_file_path.unwrap_or(it.file_path);
            vec![(path.to_owned(), it.diff.as_ref().and_then(|it| it.start_line))]
        }
        _ => places::named(&widgets::copy_text(document)),
    };
    match places.len() {
        0 => app.toast(t!("action-names-no-file")),
        1 => {
            // A letter opens no other program: somebody may be writing a sentence.
            let (path, line) = places.remove(0);
            let mark = Mark::Open {
                path: path.clone(),
                line,
            };
            if app.mark(mark) {
                return Vec::new();
            }
            vec![Effect::OpenFile { path, line }]
        }
        _ => app.open(Picker::places(places)),
    }
});

/// Selects the next item that is `wanted`, else toasts.
fn go(app: &mut App, forward: bool, wanted: fn(&App, Item) -> bool) -> Vec<Effect> {
    let found = app.viewport.pane.find(forward, |item| wanted(app, item));
    match found {
        Some(item) => select(app, item),
        None => app.toast(if forward {
            t!("action-no-more-below")
        } else {
            t!("action-no-more-above")
        }),
    }
}

/// Like [`go`], and continues from the other end of the conversation.
fn go_round(app: &mut App, forward: bool, wanted: fn(&App, Item) -> bool) -> Vec<Effect> {
    if app.viewport.pane.find(forward, |item| wanted(app, item)).is_some() {
        return go(app, forward, wanted);
    }
    let mut items = app.viewport.pane.items.iter().copied();
    let fits = |item: &Item| wanted(app, *item);
    let found = if forward { items.find(fits) } else { items.rfind(fits) };
    match found {
        Some(item) if app.viewport.pane.selected != Some(item) => {
            select(app, item);
            app.toast(if forward {
                t!("action-from-the-top")
            } else {
                t!("action-from-the-bottom")
            })
        }
        Some(_) => app.toast(t!("action-only-this")),
        None => app.toast(t!("action-none-of-these")),
    }
}

/// Moves the focus to an item.
pub fn select(app: &mut App, item: Item) -> Vec<Effect> {
    app.viewport.focus = Focus::Transcript;
    app.questions.since_ms = app.now_ms;
    app.with_pane(|pane, context| pane.select(item, context));
    Vec::new()
}

/// Moves the focus to an item that is in view, and the view only if the item is cut and there is room for it.
pub fn select_here(app: &mut App, item: Item) {
    app.viewport.focus = Focus::Transcript;
    app.with_pane(|pane, context| pane.select_here(item, context));
}

fn scroll(app: &mut App, by: isize) -> Vec<Effect> {
    app.with_pane(|pane, context| pane.scroll(by, context));
    Vec::new()
}

fn is_kind(app: &App, item: Item, kind: &Kind) -> bool {
    matches!(item, Item::Document(place) if app.conversation.transcript.get(place).is_some_and(|it| it.kind == *kind))
}

fn is_failure(app: &App, item: Item) -> bool {
    matches!(item, Item::Document(place) if app.conversation.transcript.get(place).is_some_and(has_failed))
}

/// The next fold of an item: one shown as a line unfolds first, one shown in full folds first.
fn next_fold(app: &App, item: Item) -> Fold {
    let is_line = app.viewport.pane.state(item).is_some_and(|it| it.rows.len() <= 1);
    match app.viewport.pane.fold_of(item) {
        Fold::Usual if is_line || can_show_more(app, item) => Fold::Full,
        Fold::Usual => Fold::Folded,
        Fold::Full if is_line_by_nature(app, item) => Fold::Usual,
        Fold::Full => Fold::Folded,
        Fold::Folded => Fold::Usual,
    }
}

fn is_line_by_nature(app: &App, item: Item) -> bool {
    match item {
        Item::Thinking(..) => true,
        Item::Document(place) => app
            .conversation
            .transcript
            .get(place)
            .is_some_and(|it| it.kind.row().is_line),
        Item::Message(_) | Item::Ending(_) | Item::Action(..) => false,
    }
}

/// Returns true if the usual fold leaves something out.
fn can_show_more(app: &App, item: Item) -> bool {
    match item {
        Item::Document(place) => app.conversation.transcript.get(place).is_some_and(leaves_out),
        Item::Message(at) => {
            let exchange = app.conversation.transcript.exchanges.get(at);
            exchange
                .and_then(|it| it.message.as_ref())
                .is_some_and(message_leaves_out)
        }
        Item::Thinking(..) | Item::Ending(_) | Item::Action(..) => false,
    }
}

/// Outputs, new files and calls are usually shown in part.
fn leaves_out(document: &crate::protocol::Document) -> bool {
    match document.view() {
        View::TerminalCommand(it) => it.output.lines().count() > 8,
        View::FileEdit(it) => {
            it.diff.is_none() && it.content.is_some_and(|it| it.lines().count() > 12)
                || change_check(&document.metadata).is_some_and(|it| !it.unchecked.is_empty())
        }
        View::ToolCall(_) | View::TodoUpdate(_) | View::Unknown(_) => true,
        View::Error(it) => error_leaves_out(&it),
        _ => false,
    }
}

fn fold_where(app: &mut App, wanted: impl Fn(&Kind) -> bool) -> Vec<Effect> {
    let is_wanted = |it: &Item| {
        let Item::Document(place) = *it else { return false };
        let document = app.conversation.transcript.get(place);
        !is_asked(app, *it) && document.is_some_and(|it| wanted(&it.kind))
    };
    let items: Vec<_> = app.viewport.pane.items.iter().copied().filter(is_wanted).collect();
    let all_folded = items.iter().all(|it| app.viewport.pane.fold_of(*it) == Fold::Folded);
    let fold = if all_folded { Fold::Usual } else { Fold::Folded };
    for item in items {
        app.viewport.pane.set_fold(item, fold);
    }
    if let Some(item) = app.viewport.pane.selected {
        app.with_pane(|pane, context| pane.select(item, context));
    }
    Vec::new()
}
