//! The rule above the draft bears the mode, and on the right what is going on.

use crate::{
    protocol::Progress,
    text::{Clean, Role, Span, figure, width},
    tui::{app::App, layer::role_of, pane::transcript::Following},
};

/// The draft grows to so many rows.
pub const MOST_ROWS: u16 = 8;

/// What an empty draft says.
pub const PLACEHOLDER: &str = "Ask, plan or build.  / commands";

/// The rule, `── mode ─────── what is going on`.
pub fn rule(app: &App, columns: usize) -> Vec<Span> {
    let role = role_of(app.mode);
    let mut right = state(app);
    let head = 4 + app.mode.as_str().len();
    while width::spans_width(&right) + head + 4 > columns && !right.is_empty() {
        right.remove(0);
    }
    let taken = head + width::spans_width(&right) + if right.is_empty() { 0 } else { 3 };
    let mut spans = vec![
        Span::new(Clean::literal("── "), Role::Rule),
        Span::new(Clean::literal(app.mode.as_str()), role).bold(),
        Span::new(Clean::literal(" "), Role::Rule),
        Span::new(Clean::new(&"─".repeat(columns.saturating_sub(taken))), Role::Rule),
    ];
    if !right.is_empty() {
        spans.push(Span::new(Clean::literal(" "), Role::Rule));
        spans.extend(right);
    }
    spans
}

fn state(app: &App) -> Vec<Span> {
    let mut parts: Vec<Span> = Vec::new();
    let mut push = |text: Clean, role: Role| {
        if !parts.is_empty() {
            parts.push(Span::new(Clean::literal("  "), Role::Dim));
        }
        parts.push(Span::new(text, role));
    };
    if app.pane.unseen > 0 && app.pane.follow != Following::End {
        push(Clean::line(&format!("{} new ↓", app.pane.unseen)), Role::Link);
    }
    if app.composer.field.starts_with('!') {
        push(Clean::literal("runs in the sandbox"), Role::Waiting);
    }
    if let Some(mode) = app.composer.field.vim_mode() {
        push(Clean::literal(mode.as_str()), Role::Dim);
    }
    if let Some(search) = &app.search {
        let at = search
            .at
            .and_then(|(item, _)| search.hits.iter().position(|it| *it == item));
        let place = at.map_or_else(|| "0".to_owned(), |it| (it + 1).to_string());
        let pattern = width::cut_end(&search.pattern, 24);
        push(
            Clean::line(&format!("/{pattern}  {place} of {}", search.hits.len())),
            Role::Waiting,
        );
    }
    if !app.pane.filter.is_empty() {
        push(Clean::line(&format!("only {}", app.pane.filter.words())), Role::Waiting);
    }
    if app.is_unstored {
        push(Clean::literal("not stored"), Role::Waiting);
    }
    if app.mode.is_read_only() {
        push(Clean::literal("read-only"), Role::Dim);
    }
    if !app.composer.queue.is_empty() {
        push(Clean::line(&format!("{} queued", app.composer.queue.len())), Role::Dim);
    }
    if app.transcript.waiting().is_some() || app.plan_to_build().is_some() {
        push(Clean::literal("waiting for you"), Role::Waiting);
        return parts;
    }
    if !app.is_busy() {
        if let Some(Progress::Retrying { at_ms, .. }) = &app.transcript.progress {
            let seconds = at_ms.saturating_sub(app.now_ms).div_ceil(1000);
            push(
                Clean::line(&format!("trying again in {}", figure::pause(seconds))),
                Role::Waiting,
            );
        }
        return parts;
    }
    let since = app.transcript.exchanges.last().map_or(app.now_ms, |it| it.at_ms);
    let elapsed = figure::duration(app.now_ms.saturating_sub(since) / 1000 * 1000);
    match &app.transcript.progress {
        Some(Progress::Connecting { peer }) => push(Clean::line(&format!("connecting to {peer}")), Role::Dim),
        Some(Progress::Waiting { .. }) => push(Clean::literal("waiting for the first word"), Role::Dim),
        Some(Progress::Retrying {
            attempt,
            of,
            at_ms,
            because,
        }) => {
            let seconds = at_ms.saturating_sub(app.now_ms).div_ceil(1000);
            let because = width::cut_end(because, 48);
            push(
                Clean::line(&format!(
                    "{because}; trying again in {} ({attempt} of {of})",
                    figure::pause(seconds)
                )),
                Role::Waiting,
            );
        }
        Some(Progress::Stalled { silent_ms }) => {
            push(
                Clean::line(&format!("silent for {}", figure::duration(*silent_ms))),
                Role::Waiting,
            );
        }
        Some(Progress::Idle) | None => push(Clean::literal("working"), Role::Dim),
    }
    push(elapsed, Role::Dim);
    parts
}
