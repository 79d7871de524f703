//! The left mouse button marks and copies text, selects documents and opens files.

use crate::{
    t,
    text::{StyledLine, width},
    tui::{
        actions::{self, focus::focus_composer},
        app::{App, Effect, Focus, selection::Selection},
        areas::DRAFT,
        places,
        terminal::Mouse,
        widgets::transcript::VisibleLine,
    },
};

/// The left button went down: perhaps text is going to be marked, perhaps it is a click.
pub(super) fn press(app: &mut App, x: u16, y: u16) {
    app.viewport.selection = None;
    if app.terminal.mouse != Mouse::Full || !app.overlays.is_empty() {
        return;
    }
    app.terminal.clicks.press(app.now_ms, (x, y));
    if !app.viewport.areas.transcript.rows().any(|it| it.y == y) {
        focus_composer(app);
        point_in_draft(app, x, y, false);
        if app.terminal.clicks.count == 2 && app.terminal.clicks.in_draft {
            app.composer.field.select_word();
        }
        return;
    }
    app.viewport.selection = app.point_at(x, y).map(|it| Selection { from: it, to: it });
}

/// The caret goes where the pointer is, if that is in the draft; with `selecting` the selection's end does.
fn point_in_draft(app: &mut App, x: u16, y: u16, selecting: bool) {
    let area = app.viewport.areas.composer;
    app.terminal.clicks.in_draft = selecting || area.rows().any(|it| it.y == y);
    if app.terminal.clicks.in_draft {
        let y = y.saturating_sub(area.y).min(area.height.saturating_sub(1));
        let x = x.saturating_sub(DRAFT as u16);
        app.composer.field.point(x, y, area.height, selecting);
    }
}

pub(super) fn drag(app: &mut App, x: u16, y: u16) {
    if app.terminal.clicks.in_draft {
        point_in_draft(app, x, y, true);
        return;
    }
    if app.viewport.selection.is_none() {
        return;
    }
    let shown = app.viewport.areas.transcript;
    // At an edge the conversation moves along.
    let by = match y {
        it if it <= shown.top() => -1,
        it if it + 1 >= shown.bottom() => 1,
        _ => 0,
    };
    if by != 0 {
        app.with_pane(|pane, context| pane.scroll(by, context));
    }
    let y = y.clamp(shown.top(), shown.bottom().saturating_sub(1).max(shown.top()));
    let point = app.point_at(x, y);
    if let (Some(selection), Some(point)) = (&mut app.viewport.selection, point) {
        selection.to = point;
    }
}

/// The left button went up: what is marked is copied; where nothing is, it was a click.
pub(super) fn release(app: &mut App, x: u16, y: u16) -> Vec<Effect> {
    if std::mem::take(&mut app.terminal.clicks.in_draft) {
        return Vec::new();
    }
    let Some(selection) = app.viewport.selection else {
        return Vec::new();
    };
    if selection.is_empty() {
        let marked = match app.terminal.clicks.count {
            2 => app.word_at(selection.from),
            3 => app.line_at(selection.from),
            _ => None,
        };
        app.viewport.selection = marked;
        if marked.is_none() {
            return click(app, x, y);
        }
    }
    match app.selected_text() {
        Some(text) => {
            let count = text.chars().count();
            let what = t!("copied-characters", count = count);
            vec![Effect::Copy { text, what }]
        }
        None => Vec::new(),
    }
}

fn shown_at(app: &App, y: u16) -> Option<VisibleLine> {
    let at = y.checked_sub(app.viewport.areas.transcript.y)?;
    app.viewport.pane.lines.get(usize::from(at)).copied()
}

/// A click selects; where one already was, it opens the file that is named there.
fn click(app: &mut App, x: u16, y: u16) -> Vec<Effect> {
    let shown = shown_at(app, y);
    let Some(item) = shown.and_then(|it| it.item()) else {
        focus_composer(app);
        return Vec::new();
    };
    let was_here = app.viewport.focus == Focus::Transcript
        && app.viewport.pane.selected == Some(item)
        && !app.terminal.clicks.is_arrival();
    let named = shown
        .as_ref()
        .and_then(|it| app.viewport.pane.row(it))
        .and_then(|(row, _)| {
            let column = usize::from(x).saturating_sub(app.viewport.areas.gutter);
            named_at(row, column)
        });
    actions::reading::select(app, item);
    match named {
        Some((path, line)) if was_here => vec![Effect::OpenFile { path, line }],
        Some((path, line)) => {
            let place = line.map_or_else(|| path.clone(), |it| format!("{path}:{it}"));
            app.toast(t!("action-click-again", path = place));
            Vec::new()
        }
        None => Vec::new(),
    }
}

/// The file that a row names at a column.
fn named_at(row: &StyledLine, column: usize) -> Option<places::FileReference> {
    let text = row.plain();
    let before = width::cut(&text, column).len();
    places::place_at(&text, before)
}
