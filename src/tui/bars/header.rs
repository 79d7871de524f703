//! The first line: workspace and title on the left, model, context, cost and sandbox on the right.

use crate::{
    config::Settings,
    link::Held,
    locale::figure,
    t,
    text::{Role, Sanitized, Span, width},
    transcript::Transcript,
    tui::app::{Composer, Conversation, Workspace},
};

/// Columns below which the model is not named.
const NARROW: usize = 24;

/// Returns both ends of the header for `columns`. `status` is the output of the status command, or its error.
pub fn spans(
    conversation: &Conversation,
    composer: &Composer,
    settings: &Settings,
    status: Option<Result<&[Span], &Sanitized>>,
    columns: usize,
) -> (Vec<Span>, Vec<Span>) {
    let right = right(conversation, composer, settings, status, columns);
    let room = columns.saturating_sub(width::spans_width(&right) + 3);
    let Workspace { label, branch, .. } = &conversation.workspace;
    let (label, branch) = if conversation.about.is_attached {
        // What is allowed here is done there.
        (&conversation.about.peer, &None)
    } else {
        (label, branch)
    };
    let place = Sanitized::line(&width::cut_middle(label, room));
    let mut left = vec![Span::new(place, Role::Dim).bold()];
    let mut push = |text: Sanitized, gap: &'static str| {
        if width::spans_width(&left) + width::width(&text) + gap.len() <= room {
            left.push(Span::new(Sanitized::literal(gap), Role::Dim));
            left.push(Span::new(text, Role::Dim));
        }
    };
    if let Some(branch) = branch {
        push(Sanitized::line(branch), "  ");
    }
    if let Some(title) = conversation.transcript.title() {
        let branch = branch.as_deref().map_or(0, |it| width::width(it) + 2);
        let used = width::width(label) + branch + 3;
        let title = width::cut_end(title, room.saturating_sub(used).min(60));
        if width::width(&title) > 3 {
            push(Sanitized::line(&title), "   ");
        }
    }
    (left, right)
}

fn right(
    conversation: &Conversation,
    composer: &Composer,
    settings: &Settings,
    status: Option<Result<&[Span], &Sanitized>>,
    columns: usize,
) -> Vec<Span> {
    let wide = columns >= 100;
    let sandbox = conversation.about.hold.known();
    let model_name = composer.model_name(&conversation.about);
    let mut parts: Vec<Vec<Span>> = Vec::new();
    let mut has_sandbox = false;
    if let Some(line) = status {
        let whole = match line {
            Ok(spans) => spans.iter().cloned().map(quiet).collect(),
            Err(why) => vec![Span::new(why.clone(), Role::Error)],
        };
        parts.push(width::cut_spans(&whole, columns / 2));
    } else {
        for name in &settings.ui.status {
            has_sandbox |= name == "sandbox";
            parts.push(match name.as_str() {
                "model" => {
                    let name = conversation.answering_model().or(model_name);
                    let peer = conversation.peer();
                    let name = name.unwrap_or(&peer);
                    model(name, columns, wide).into_iter().collect()
                }
                "effort" => {
                    let effort = composer.effort.filter(|_| wide).map(|it| format!(" {it}"));
                    effort
                        .map(|it| Span::new(Sanitized::line(&it), Role::Dim))
                        .into_iter()
                        .collect()
                }
                "context" => context(
                    conversation.transcript.context_tokens(),
                    conversation.window(),
                    columns,
                    wide,
                ),
                "cost" => {
                    let price = model_name.and_then(|it| settings.models.get(it));
                    let price = price.and_then(|it| Some((it.price_in?, it.price_out?)));
                    let dollars = cost(&conversation.transcript, price).filter(|_| wide);
                    dollars
                        .map(|it| Span::new(figure::money(it), Role::Dim))
                        .into_iter()
                        .collect()
                }
                "sandbox" => sandbox.iter().map(|it| sandbox_state(it, wide)).collect(),
                _ => Vec::new(),
            });
        }
    }
    // The state of the sandbox is always shown.
    if let Some(sandbox) = sandbox.filter(|_| !has_sandbox) {
        parts.push(vec![sandbox_state(&sandbox, wide)]);
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

/// Text without a colour of its own is as quiet as the rest of the line.
pub fn quiet(span: Span) -> Span {
    match span.role {
        Role::Text => Span {
            role: Role::Dim,
            ..span
        },
        _ => span,
    }
}

/// The model's name; where there is hardly room, the sandbox matters more.
fn model(name: &str, columns: usize, wide: bool) -> Option<Span> {
    let name = width::cut_middle(name, if wide { 40 } else { columns / 4 });
    (columns >= NARROW && !name.is_empty()).then(|| Span::new(Sanitized::line(&name), Role::Dim))
}

/// The tokens in context, as a share of the model's window where that is known.
fn context(tokens: u64, window: Option<u64>, columns: usize, wide: bool) -> Vec<Span> {
    if tokens == 0 || columns < 40 {
        return Vec::new();
    }
    let Some(window) = window else {
        let text = t!("header-tokens", count = figure::tokens(tokens).as_str());
        return vec![Span::new(Sanitized::line(&text), Role::Dim)];
    };
    let share = (tokens as f64 / window as f64 * 100.0).min(999.0);
    let mut spans = Vec::new();
    if wide {
        let role = if share > 85.0 { Role::Waiting } else { Role::Accent };
        spans.extend(meter(share / 100.0, 8, role));
    }
    spans.push(Span::new(Sanitized::line(&format!(" {share:.0}%")), Role::Dim));
    spans
}

/// The conversation's cost in dollars: as reported, else by the configured prices of a million tokens in and out.
fn cost(transcript: &Transcript, price: Option<(f64, f64)>) -> Option<f64> {
    let (_, total) = transcript.usage();
    transcript.cost().or_else(|| {
        let (input, output) = price.filter(|_| total.total_tokens > 0)?;
        Some((total.prompt_tokens as f64 * input + total.completion_tokens as f64 * output) / 1e6)
    })
}

/// The state of the sandbox, at any width.
fn sandbox_state(state: &Held, is_wide: bool) -> Span {
    match state {
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
