//! What finds its way in a long conversation.

use super::Action;
use crate::{
    say,
    tui::{
        app::App,
        effect::Effect,
        filter::{FACETS, Filter},
        layer::{Choice, Layer, Outline, Picker, Prompt},
        pane::{Item, transcript::Shown},
    },
};

pub const SEARCH: Action = Action {
    name: "search",
    slash: "search",
    run: |app, words| {
        if words.is_empty() {
            let before = app.search.as_ref().map(|it| it.pattern.clone()).unwrap_or_default();
            app.layers.push(Layer::Prompt(Prompt::live(
                say!("prompt-search"),
                &before,
                Choice::Search,
            )));
        } else {
            app.search = None;
            app.seek(words);
        }
        Vec::new()
    },
};

pub const SEARCH_NEXT: Action = Action {
    name: "search.next",
    slash: "",
    run: |app, _| {
        app.seek_on(true);
        Vec::new()
    },
};

pub const SEARCH_PREVIOUS: Action = Action {
    name: "search.previous",
    slash: "",
    run: |app, _| {
        app.seek_on(false);
        Vec::new()
    },
};

pub const FILTER: Action = Action {
    name: "filter",
    slash: "filter",
    run: |app, words| {
        if words.is_empty() {
            app.layers
                .push(Layer::Picker(Picker::facets(&app.pane.filter, &counts(app))));
            return Vec::new();
        }
        show_only(app, words)
    },
};

pub const OUTLINE: Action = Action {
    name: "outline",
    slash: "outline",
    run: |app, _| {
        let last = app.pane.lines.iter().rev().find_map(Shown::item);
        let here = app.pane.selected.or(last);
        app.layers.push(Layer::Outline(Outline::new(&app.pane.items, here)));
        Vec::new()
    },
};

pub const TIMES: Action = Action {
    name: "times",
    slash: "times",
    run: |app, _| {
        app.show_times = !app.show_times;
        // Only what is beside the rows changes, but on every line.
        app.look_version += 1;
        Vec::new()
    },
};

/// Shows only what the words name; everything when there are none.
pub fn show_only(app: &mut App, words: &str) -> Vec<Effect> {
    match Filter::parse(if words == "everything" { "" } else { words }, app.now_ms) {
        Ok(filter) => {
            app.pane.sift(filter, &app.transcript);
            if let Some(search) = &mut app.search {
                search.is_stale = true;
            }
        }
        Err(error) => {
            let lines = error.to_string();
            let lines: Vec<_> = lines.lines().map(str::trim).collect();
            app.say(lines.join("; "));
        }
    }
    Vec::new()
}

/// How many documents each facet has.
fn counts(app: &App) -> Vec<usize> {
    let mut counts = vec![0; FACETS.len()];
    let places = app.transcript.exchanges.iter().enumerate().flat_map(|(exchange, it)| {
        let documents = 0..it.response.documents.len();
        documents.map(move |document| Item::Document(crate::transcript::Place { exchange, document }))
    });
    for item in places {
        for (facet, count) in FACETS.iter().zip(&mut counts) {
            *count += usize::from(facet.has(&app.transcript, item));
        }
    }
    counts
}
