//! One line: where one is on the left, who answers on the right.

use crate::{
    link::Held,
    locale::figure,
    t,
    text::{Role, Sanitized, Span, width},
    tui::app::App,
};

/// Below this the model is not named.
const NARROW: usize = 24;

/// The two halves of the header for so many columns.
pub fn spans(app: &App, columns: usize) -> (Vec<Span>, Vec<Span>) {
    let right = right(app, columns);
    let room = columns.saturating_sub(width::spans_width(&right) + 3);
    let mut left = vec![
        Span::new(
            Sanitized::line(&width::cut_middle(&app.conversation.workspace.label, room)),
            Role::Dim,
        )
        .bold(),
    ];
    let mut push = |text: Sanitized, role: Role, gap: &'static str| {
        let wants = width::width(&text) + gap.len();
        if width::spans_width(&left) + wants <= room {
            left.push(Span::new(Sanitized::literal(gap), role));
            left.push(Span::new(text, role));
        }
    };
    if let Some(branch) = &app.conversation.workspace.branch {
        push(Sanitized::line(branch), Role::Dim, "  ");
    }
    if let Some(title) = app.conversation.transcript.title() {
        let used = width::width(&app.conversation.workspace.label)
            + app
                .conversation
                .workspace
                .branch
                .as_deref()
                .map_or(0, |it| width::width(it) + 2)
            + 3;
        let title = width::cut_end(title, room.saturating_sub(used).min(60));
        if width::width(&title) > 3 {
            push(Sanitized::line(&title), Role::Dim, "   ");
        }
    }
    (left, right)
}

fn right(app: &App, columns: usize) -> Vec<Span> {
    let wide = columns >= 100;
    let held = app.conversation.about.hold.known();
    let mut parts: Vec<Vec<Span>> = Vec::new();
    let mut says_hold = false;
    if let Some(line) = app.status.line() {
        let (text, role) = match line {
            Ok(text) => (text, Role::Dim),
            Err(why) => (why, Role::Error),
        };
        let text = width::cut_end(text, columns / 2);
        parts.push(vec![Span::new(Sanitized::line(&text), role)]);
    } else {
        for name in &app.preferences.settings.ui.status {
            says_hold |= name == "sandbox";
            parts.push(match name.as_str() {
                "model" => model(app, columns, wide),
                "effort" => effort(app, wide),
                "context" => context(app, columns, wide),
                "cost" => cost(app, wide),
                "sandbox" => held.iter().map(|it| holding(it, wide)).collect(),
                _ => Vec::new(),
            });
        }
    }
    // What holds commands is said in any case.
    if let Some(held) = held.filter(|_| !says_hold) {
        parts.push(vec![holding(&held, wide)]);
    }
    let mut spans: Vec<Span> = Vec::new();
    for part in parts.into_iter().filter(|it| !it.is_empty()) {
        // The effort belongs to the model, and the figure of the context stands close, too.
        let is_close = part.first().is_some_and(|it| it.text.starts_with(' '));
        if !spans.is_empty() && !is_close {
            spans.push(Span::new(Sanitized::literal("  "), Role::Dim));
        }
        spans.extend(part);
    }
    spans
}

fn model(app: &App, columns: usize, wide: bool) -> Vec<Span> {
    let name = app
        .composer
        .model_name(&app.conversation.about)
        .or(Some(app.conversation.about.peer.as_str()))
        // Where there is hardly room, what holds commands matters more than who answers.
        .filter(|it| !it.is_empty() && columns >= NARROW);
    let name = name.map(|it| width::cut_middle(it, if wide { 40 } else { columns / 4 }));
    name.map(|it| Span::new(Sanitized::line(&it), Role::Dim))
        .into_iter()
        .collect()
}

fn effort(app: &App, wide: bool) -> Vec<Span> {
    let effort = app.composer.effort.filter(|_| wide);
    let span = effort.map(|it| Span::new(Sanitized::line(&format!(" {it}")), Role::Dim));
    span.into_iter().collect()
}

/// How much of what the model takes in is used.
fn context(app: &App, columns: usize, wide: bool) -> Vec<Span> {
    let held = app.conversation.transcript.context_tokens();
    if held == 0 || columns < 40 {
        return Vec::new();
    }
    let Some(window) = app.conversation.window() else {
        let text = t!("header-tokens", count = figure::tokens(held).as_str());
        return vec![Span::new(Sanitized::line(&text), Role::Dim)];
    };
    let share = (held as f64 / window as f64 * 100.0).min(999.0);
    let mut spans = Vec::new();
    if wide {
        let role = if share > 85.0 { Role::Waiting } else { Role::Accent };
        spans.extend(meter(share / 100.0, 8, role));
    }
    spans.push(Span::new(Sanitized::line(&format!(" {share:.0}%")), Role::Dim));
    spans
}

fn cost(app: &App, wide: bool) -> Vec<Span> {
    let (_, total) = app.conversation.transcript.usage();
    let price = app
        .composer
        .model_name(&app.conversation.about)
        .and_then(|it| app.preferences.settings.models.get(it));
    let configured = price.and_then(|it| Some((it.price_in?, it.price_out?)));
    let dollars = app.conversation.transcript.cost().or_else(|| {
        let (input, output) = configured.filter(|_| total.total_tokens > 0)?;
        Some((total.prompt_tokens as f64 * input + total.completion_tokens as f64 * output) / 1e6)
    });
    let dollars = dollars.filter(|_| wide);
    dollars
        .map(|it| Span::new(figure::money(it), Role::Dim))
        .into_iter()
        .collect()
}

/// What holds commands here. That nothing does is said at any width.
fn holding(held: &Held, is_wide: bool) -> Span {
    match held {
        Held::Whole => Span::new(Sanitized::literal(t!("header-sandbox-full")), Role::Dim),
        Held::Partly(but) if is_wide => Span::new(
            Sanitized::line(&t!("header-sandbox-partial-but", but = but.as_str())),
            Role::Waiting,
        ),
        Held::Partly(_) => Span::new(Sanitized::literal(t!("header-sandbox-partial")), Role::Waiting),
        Held::Nothing => Span::new(Sanitized::literal(t!("header-sandbox-none")), Role::Error).bold(),
    }
}

/// A bar of `cells` signs, filled to `share` of 1.
pub fn meter(share: f64, cells: usize, role: Role) -> [Span; 2] {
    let full = (share * cells as f64).round().clamp(0.0, cells as f64) as usize;
    let full = if share > 0.0 { full.max(1) } else { full };
    [
        Span::new(Sanitized::new(&"▰".repeat(full)), role),
        Span::new(Sanitized::new(&"▱".repeat(cells - full)), Role::Faint),
    ]
}
