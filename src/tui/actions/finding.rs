//! Search, filter and outline of the conversation.

use crate::{
    t,
    tui::{
        app::{Action, App, Choice, Effect},
        overlays::{Outline, Picker, Prompt},
        widgets::{
            filter::{FACETS, Filter},
            transcript::{Item, VisibleLine},
        },
    },
};

pub const SEARCH: Action = Action::new("search", "search", |app, words| {
    if words.is_empty() {
        let before = app
            .viewport
            .search
            .as_ref()
            .map(|it| it.pattern.clone())
            .unwrap_or_default();
        app.overlays
            .push(Prompt::live(t!("prompt-search"), &before, Choice::Search));
    } else {
        app.viewport.search = None;
        app.seek(words);
    }
    Vec::new()
});

pub const SEARCH_NEXT: Action = Action::new("search.next", "", |app, _| {
    app.seek_on(true);
    Vec::new()
});

pub const SEARCH_PREVIOUS: Action = Action::new("search.previous", "", |app, _| {
    app.seek_on(false);
    Vec::new()
});

pub const FILTER: Action = Action::new("filter", "filter", |app, words| {
    if words.is_empty() {
        app.overlays
            .push(Picker::facets(&app.viewport.pane.filter, &counts(app)));
        return Vec::new();
    }
    show_only(app, words)
});

pub const OUTLINE: Action = Action::new("outline", "outline", |app, _| {
    let last = app.viewport.pane.lines.iter().rev().find_map(VisibleLine::item);
    let here = app.viewport.pane.selected.or(last);
    app.open(Outline::new(&app.viewport.pane.items, here))
});

pub const TIMES: Action = Action::new("times", "times", |app, _| {
    app.appearance.show_times = !app.appearance.show_times;
    // Only what is beside the rows changes, but on every line.
    app.appearance.look_version += 1;
    Vec::new()
});

/// Shows only what the words name; everything when there are none.
pub fn show_only(app: &mut App, words: &str) -> Vec<Effect> {
    match Filter::parse(if words == "everything" { "" } else { words }, app.now_ms) {
        Ok(filter) => {
            app.viewport.pane.sift(filter, &app.conversation.transcript);
            if let Some(search) = &mut app.viewport.search {
                search.is_stale = true;
            }
        }
        Err(error) => {
            let lines = error.to_string();
            let lines: Vec<_> = lines.lines().map(str::trim).collect();
            app.toast(lines.join("; "));
        }
    }
    Vec::new()
}

/// Counts the documents of each facet.
fn counts(app: &App) -> Vec<usize> {
    let mut counts = vec![0; FACETS.len()];
    let places = app
        .conversation
        .transcript
        .exchanges
        .iter()
        .enumerate()
        .flat_map(|(exchange, it)| {
            let documents = 0..it.response.documents.len();
            documents.map(move |document| Item::Document(crate::transcript::DocumentIndex { exchange, document }))
        });
    for item in places {
        for (facet, count) in FACETS.iter().zip(&mut counts) {
            *count += usize::from(facet.has(&app.conversation.transcript, item));
        }
    }
    counts
}
