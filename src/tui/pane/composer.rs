//! The rule above the draft bears the mode, and on the right what is going on.

use crate::{
    locale::figure,
    protocol::Progress,
    say,
    text::{Clean, Role, Span, width},
    tui::{app::App, layer::role_of, pane::transcript::Following},
};

/// The draft grows to so many rows, and on a tall screen to a third of it.
pub const MOST_ROWS: u16 = 8;

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
        push(
            Clean::new(&say!("composer-unseen", count = app.pane.unseen)),
            Role::Link,
        );
    }
    if app.composer.field.text().starts_with("!!") {
        push(Clean::literal(say!("composer-shell-silent")), Role::Waiting);
    } else if app.composer.field.starts_with('!') {
        push(Clean::literal(say!("composer-shell")), Role::Waiting);
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
            Clean::line(&say!(
                "composer-search",
                pattern = pattern,
                place = place,
                count = search.hits.len()
            )),
            Role::Waiting,
        );
    }
    if !app.pane.filter.is_empty() {
        push(
            Clean::line(&say!("composer-filter", filter = app.pane.filter.words())),
            Role::Waiting,
        );
    }
    if app.is_unstored {
        push(Clean::literal(say!("composer-unstored")), Role::Waiting);
    }
    if app.mode.is_read_only() {
        push(Clean::literal(say!("composer-read-only")), Role::Dim);
    }
    if !app.composer.queue.is_empty() {
        push(
            Clean::new(&say!("composer-queued", count = app.composer.queue.len())),
            Role::Dim,
        );
    }
    if app.transcript.waiting().is_some() || app.plan_to_build().is_some() {
        push(Clean::literal(say!("composer-waiting")), Role::Waiting);
        return parts;
    }
    if !app.is_busy() {
        if let Some(Progress::Retrying { at_ms, .. }) = &app.transcript.progress {
            let seconds = at_ms.saturating_sub(app.now_ms).div_ceil(1000);
            push(
                Clean::new(&say!("composer-retry", time = figure::pause(seconds).as_str())),
                Role::Waiting,
            );
        }
        return parts;
    }
    let since = app.transcript.exchanges.last().map_or(app.now_ms, |it| it.at_ms);
    let elapsed_ms = app.now_ms.saturating_sub(since) / 1000 * 1000;
    match &app.transcript.progress {
        Some(Progress::Connecting { peer }) => push(
            Clean::line(&say!("composer-connecting", peer = peer.as_str())),
            Role::Dim,
        ),
        Some(Progress::Waiting { .. }) => push(Clean::literal(say!("composer-first-word")), Role::Dim),
        Some(Progress::Retrying {
            attempt,
            of,
            at_ms,
            because,
        }) => {
            let seconds = at_ms.saturating_sub(app.now_ms).div_ceil(1000);
            let because = width::cut_end(because, 48);
            push(
                Clean::line(&say!(
                    "composer-retrying",
                    because = because,
                    time = figure::pause(seconds).as_str(),
                    attempt = *attempt,
                    of = *of
                )),
                Role::Waiting,
            );
        }
        Some(Progress::Stalled { silent_ms }) => {
            push(
                Clean::new(&say!("composer-silent", time = figure::duration(*silent_ms).as_str())),
                Role::Waiting,
            );
        }
        Some(Progress::Idle) | None => push(Clean::literal(say!("composer-working")), Role::Dim),
    }
    // A clock that counts in seconds has nothing to say before the first one is over.
    if elapsed_ms > 0 {
        push(figure::duration(elapsed_ms), Role::Dim);
    }
    parts
}
