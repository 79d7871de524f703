//! The left mouse button presses printed keys, chooses from lists and forms, marks and copies text, selects documents and
//! opens files.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Position;

use super::keys;
use crate::{
    protocol::{ClarificationResponse, View},
    t,
    text::{Modifier, StyledLine, width},
    transcript::is_approval,
    tui::{
        actions::{self, focus::focus_composer},
        app::{App, Effect, Focus, Mention, keymap::Chord, selection::Selection},
        areas::DRAFT,
        places,
        terminal::Mouse,
        widgets::{
            Form, Outcome, key_at,
            transcript::{Item, VisibleLine},
        },
    },
};

/// The left button went down: on a list, or perhaps text is going to be marked.
pub(super) fn press(app: &mut App, cell: Position) -> Vec<Effect> {
    app.viewport.selection = None;
    app.viewport.typed.clear();
    if app.terminal.mouse != Mouse::Full {
        return Vec::new();
    }
    let Position { x, y } = cell;
    app.terminal.clicks.press(app.now_ms, (x, y));
    if !app.terminal.clicks.is_arrival()
        && let Some(effects) = press_in_list(app, cell)
    {
        return effects;
    }
    if !app.overlays.is_empty() {
        return Vec::new();
    }
    if app.viewport.areas.trust.contains(cell) {
        return actions::everywhere::TRUST.go(app, "");
    }
    if !app.viewport.areas.transcript.rows().any(|it| it.y == y) {
        focus_composer(app);
        point_in_draft(app, x, y, false);
        if app.terminal.clicks.count == 2 && app.terminal.clicks.in_draft {
            app.composer.field.select_word();
        }
        return Vec::new();
    }
    app.viewport.selection = app.point_at(x, y).map(|it| Selection { from: it, to: it });
    Vec::new()
}

/// The name of the key at a cell of the footer, as it was drawn last.
pub(super) fn footer_key(app: &App, cell: Position) -> Option<String> {
    let footer = &app.viewport.bars.as_ref()?.footer;
    let column = cell.x.checked_sub(app.viewport.areas.footer.x + footer.padding.0)?;
    let has_come_now = app.terminal.clicks.has_come_at(app.now_ms);
    let is_here = app.viewport.areas.footer.contains(cell) && app.terminal.mouse == Mouse::Full && !has_come_now;
    let name = key_at(&footer.left, usize::from(column)).filter(|_| is_here)?;
    Some(name.to_owned())
}

/// Presses a key by its printed name. Of `tab, r, enter` it is `r`, as the click has selected its document; what that has marked
/// already, Enter does. Nothing for names of several keys.
pub(super) fn press_key(app: &mut App, name: &str) -> Vec<Effect> {
    let mut keys = name.rsplit(", ");
    let last = keys.next().unwrap_or(name);
    let letter = keys.next();
    let Some(chord) = Chord::parse(letter.unwrap_or(last)) else {
        return Vec::new();
    };
    let marked = app.questions.marked.clone();
    let effects = keys::key(app, KeyEvent::new(chord.code, chord.modifiers));
    if letter.is_some() && marked.is_some() && app.questions.marked == marked {
        return keys::key(app, KeyCode::Enter.into());
    }
    effects
}

/// Moves a list to the entry under the pointer; on the chosen entry it does what Enter does. An offer for the draft is taken
/// at once. `None` if there is no list under the pointer.
fn press_in_list(app: &mut App, cell: Position) -> Option<Vec<Effect>> {
    let cursor = |app: &App| match app.overlays.last() {
        Some(overlay) => overlay.list().copied(),
        None => {
            let mention = app.composer.mention.as_ref().is_some_and(Mention::is_shown);
            (mention || app.composer.commands.shown().is_some()).then_some(app.viewport.offers)
        }
    };
    if app.overlays.last_mut().is_some_and(|it| it.click(cell)) {
        return Some(Vec::new());
    }
    let list = cursor(app)?;
    let entry = list.entry_at(cell)?;
    let is_overlay = !app.overlays.is_empty();
    let direction = if entry > list.at { KeyCode::Down } else { KeyCode::Up };
    let mut effects = Vec::new();
    for _ in 0..entry.abs_diff(list.at) {
        effects.extend(keys::key(app, direction.into()));
        // Entries that cannot be chosen are skipped.
        if is_overlay && cursor(app).is_none_or(|it| it.at == entry) {
            break;
        }
    }
    if !is_overlay {
        effects.extend(keys::key(app, KeyCode::Tab.into()));
    } else if entry == list.at {
        effects.extend(keys::key(app, KeyCode::Enter.into()));
    }
    Some(effects)
}

/// The caret goes where the pointer is, if that is in the draft; with `selecting` the selection's end does.
fn point_in_draft(app: &mut App, x: u16, y: u16, selecting: bool) {
    let area = app.viewport.areas.composer;
    app.terminal.clicks.in_draft = selecting || area.rows().any(|it| it.y == y);
    if app.terminal.clicks.in_draft {
        // Who clicks there goes on with the line.
        app.composer.commands.is_unknown = false;
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

/// Gives a click to the open question under it; `None` if there is no row to choose.
fn click_in_form(app: &mut App, shown: &VisibleLine) -> Option<Vec<Effect>> {
    let &VisibleLine::StyledLine { item, row } = shown else {
        return None;
    };
    let Item::Document(place) = item else { return None };
    let document = app.conversation.transcript.get(place)?;
    let exchange = app.conversation.transcript.exchanges.get(place.exchange)?;
    if !app.conversation.transcript.is_open_question(place.exchange, document) {
        return None;
    }
    let View::Clarification(view) = document.view() else {
        return None;
    };
    let is_choice = |row: &&StyledLine| row.spans.first().is_some_and(|it| it.modifier.contains(Modifier::KEY));
    let rows = app.viewport.pane.state(item)?.rows.get(..=row)?;
    let at = rows.iter().filter(is_choice).count().checked_sub(1)?;
    let name = (exchange.turn, document.id.clone());
    if app.questions.sent.contains(&name) || app.questions.is_too_early(app.now_ms) {
        return Some(Vec::new());
    }
    let is_approval = is_approval(document);
    let form = app.questions.forms.entry(name.clone());
    let outcome = form.or_insert_with(|| Form::new(name.1.clone())).click(at, &view);
    let allows = |it: &ClarificationResponse| {
        let mut chosen = it.answers.iter().flat_map(|it| &it.selected_option_ids);
        chosen.any(|it| it.starts_with("allow"))
    };
    match outcome {
        Outcome::Answer(response)
            if is_approval
                && allows(&response)
                && let Some(why) = actions::approve::unseen(app, place) =>
        {
            Some(app.toast(why))
        }
        Outcome::Answer(response) => Some(actions::approve::send(app, name.0, response)),
        Outcome::Changed => Some(Vec::new()),
        Outcome::Ignored | Outcome::Message(_) => None,
    }
}

/// A click presses the key that is printed there, or chooses; else it selects, and where one already was, it opens the file
/// that is named there.
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
    let column = usize::from(x).saturating_sub(app.viewport.areas.gutter);
    let row = shown.as_ref().and_then(|it| app.viewport.pane.row(it));
    let key = row.and_then(|(row, _)| key_at(&row.spans, column)).map(str::to_owned);
    // Keys that decide are dropped for a moment after a card appeared, not after it was clicked.
    if !was_here {
        actions::reading::select_here(app, item);
    }
    if !app.terminal.clicks.is_arrival() {
        let chosen = shown.and_then(|it| click_in_form(app, &it));
        if let Some(effects) = chosen {
            return effects;
        }
        // Tab goes to the card, and the click has done that.
        if let Some(key) = key.filter(|it| was_here || it != "tab") {
            return press_key(app, &key);
        }
    }
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
