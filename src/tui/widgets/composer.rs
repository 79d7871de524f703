//! The rule above the draft bears the mode, and on the right what is going on.

use ratatui::{buffer::Buffer, layout::Rect, widgets::Widget};

use super::styled_line::put_spans;
use crate::{
    locale::figure,
    protocol::{Mode, Progress},
    t,
    text::{Background, Role, Sanitized, Span, width},
    theme::Theme,
    tui::{
        app::App, editor::field::Drawn, overlays::role_of, terminal::surface::Links, view::DRAFT,
        widgets::transcript::Following,
    },
};

/// The draft grows to so many rows, and on a tall screen to a third of it.
pub const MOST_ROWS: u16 = 8;

/// The draft, or what stands in its place where it is empty.
pub struct ComposerWidget<'a> {
    /// `None`: the draft is empty.
    pub drawn: Option<&'a Drawn>,
    pub mode: Mode,
    pub theme: &'a Theme,
}

impl Widget for ComposerWidget<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        let mut put = |x: u16, spans: &[Span]| {
            let area = Rect {
                x: area.x + x,
                width: area.width.saturating_sub(x),
                ..area
            };
            put_spans(buf, area, spans, Background::Plain, self.theme, &mut Links::new());
        };
        // More of it stands above.
        let above = if self.drawn.is_some_and(|it| it.is_cut) {
            "↑"
        } else {
            " "
        };
        let sign = Span::new(Sanitized::literal("›"), role_of(self.mode));
        put(0, &[Span::new(Sanitized::literal(above), Role::Faint), sign]);
        let x = DRAFT as u16;
        match self.drawn {
            Some(drawn) => {
                let area = Rect {
                    x: area.x + x,
                    width: area.width.saturating_sub(x),
                    ..area
                };
                drawn.copy(area, buf);
            }
            None => {
                let columns = usize::from(area.width).saturating_sub(DRAFT + 1);
                let text = width::cut(t!("composer-placeholder"), columns);
                put(x, &[Span::new(Sanitized::new(text), Role::Faint)]);
            }
        }
    }
}

/// The rule, `── mode ─────── what is going on`.
pub fn rule(app: &App, columns: usize) -> Vec<Span> {
    let role = role_of(app.composer.mode);
    let mut right = state(app);
    let head = 4 + app.composer.mode.as_str().len();
    while width::spans_width(&right) + head + 4 > columns && !right.is_empty() {
        right.remove(0);
    }
    let taken = head + width::spans_width(&right) + if right.is_empty() { 0 } else { 3 };
    let mut spans = vec![
        Span::new(Sanitized::literal("── "), Role::Rule),
        Span::new(Sanitized::literal(app.composer.mode.as_str()), role).bold(),
        Span::new(Sanitized::literal(" "), Role::Rule),
        Span::new(Sanitized::new(&"─".repeat(columns.saturating_sub(taken))), Role::Rule),
    ];
    if !right.is_empty() {
        spans.push(Span::new(Sanitized::literal(" "), Role::Rule));
        spans.extend(right);
    }
    spans
}

fn state(app: &App) -> Vec<Span> {
    let mut parts: Vec<Span> = Vec::new();
    let mut push = |text: Sanitized, role: Role| {
        if !parts.is_empty() {
            parts.push(Span::new(Sanitized::literal("  "), Role::Dim));
        }
        parts.push(Span::new(text, role));
    };
    if app.viewport.pane.unseen > 0 && app.viewport.pane.follow != Following::End {
        push(
            Sanitized::new(&t!("composer-unseen", count = app.viewport.pane.unseen)),
            Role::Link,
        );
    }
    if app.composer.field.text().starts_with("!!") {
        push(Sanitized::literal(t!("composer-shell-silent")), Role::Waiting);
    } else if app.composer.field.starts_with('!') {
        push(Sanitized::literal(t!("composer-shell")), Role::Waiting);
    }
    if let Some(mode) = app.composer.field.vim_mode() {
        push(Sanitized::literal(mode.as_str()), Role::Dim);
    }
    if let Some(search) = &app.viewport.search {
        let at = search
            .at
            .and_then(|(item, _)| search.hits.iter().position(|it| *it == item));
        let place = at.map_or_else(|| "0".to_owned(), |it| (it + 1).to_string());
        let pattern = width::cut_end(&search.pattern, 24);
        push(
            Sanitized::line(&t!(
                "composer-search",
                pattern = pattern,
                place = place,
                count = search.hits.len()
            )),
            Role::Waiting,
        );
    }
    if !app.viewport.pane.filter.is_empty() {
        push(
            Sanitized::line(&t!("composer-filter", filter = app.viewport.pane.filter.words())),
            Role::Waiting,
        );
    }
    if app.conversation.is_unstored {
        push(Sanitized::literal(t!("composer-unstored")), Role::Waiting);
    }
    if app.composer.mode.is_read_only() {
        push(Sanitized::literal(t!("composer-read-only")), Role::Dim);
    }
    if !app.composer.queue.is_empty() {
        push(
            Sanitized::new(&t!("composer-queued", count = app.composer.queue.len())),
            Role::Dim,
        );
    }
    if app.conversation.transcript.open_question().is_some() || app.conversation.plan_to_build().is_some() {
        push(Sanitized::literal(t!("composer-waiting")), Role::Waiting);
        return parts;
    }
    if !app.conversation.is_busy() {
        if let Some(Progress::Retrying { at_ms, .. }) = &app.conversation.transcript.progress {
            let seconds = at_ms.saturating_sub(app.now_ms).div_ceil(1000);
            push(
                Sanitized::new(&t!("composer-retry", time = figure::pause(seconds).as_str())),
                Role::Waiting,
            );
        }
        return parts;
    }
    let since = app
        .conversation
        .transcript
        .exchanges
        .last()
        .map_or(app.now_ms, |it| it.at_ms);
    let elapsed_ms = app.now_ms.saturating_sub(since) / 1000 * 1000;
    match &app.conversation.transcript.progress {
        Some(Progress::Connecting { peer }) => push(
            Sanitized::line(&t!("composer-connecting", peer = peer.as_str())),
            Role::Dim,
        ),
        Some(Progress::Waiting { .. }) => push(Sanitized::literal(t!("composer-first-word")), Role::Dim),
        Some(Progress::Retrying {
            attempt,
            of,
            at_ms,
            because,
        }) => {
            let seconds = at_ms.saturating_sub(app.now_ms).div_ceil(1000);
            let because = width::cut_end(because, 48);
            push(
                Sanitized::line(&t!(
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
                Sanitized::new(&t!("composer-silent", time = figure::duration(*silent_ms).as_str())),
                Role::Waiting,
            );
        }
        Some(Progress::Idle) | None => push(Sanitized::literal(t!("composer-working")), Role::Dim),
    }
    // A clock that counts in seconds has nothing to say before the first one is over.
    if elapsed_ms > 0 {
        push(figure::duration(elapsed_ms), Role::Dim);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::{editor::field::Field, widgets::testing::text_of};

    fn check(draft: &str, width: u16, height: u16, expected: &str) {
        let theme = Theme::built_in("sheaf-dark").unwrap();
        let mut field = Field::default();
        field.set(draft);
        let drawn = field.draw(width.saturating_sub(4), height, ratatui::style::Style::new());
        let widget = ComposerWidget {
            drawn: (!draft.is_empty()).then_some(&drawn),
            mode: Mode::Agent,
            theme: &theme,
        };
        assert_eq!(text_of(widget, width, height), expected);
    }

    #[test]
    fn the_draft_stands_behind_its_sign_and_says_that_more_is_above() {
        check("one\ntwo", 12, 2, " › one\n   two\n");
        check("one\ntwo\nthree", 12, 2, "↑› two\n   three\n");
        check("", 12, 1, " › Ask, pla\n");
        check("one", 1, 1, "↑\n");
    }
}
