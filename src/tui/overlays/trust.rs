//! The question whether the workspace may act: what acts or would, and the answers.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};

use super::frame;
use crate::{
    protocol::{RuleTrigger, TrustAnswer, TrustEntry, TrustKind, TrustReport},
    t,
    text::{Role, Sanitized, Span, StyledLine, visible_line, wrap::wrap},
    tui::{
        app::{Answer, Choice, Overlay, Scene, TOO_EARLY_MS},
        terminal::surface::Links,
        widgets::list::{ListCursor, ListWidget, bold_if},
    },
};

/// Columns of the text.
const MOST_COLUMNS: u16 = 100;

/// The page of the question. The answer that changes nothing is marked first.
pub struct TrustPage {
    report: TrustReport,
    cursor: ListCursor,
    /// The first line of the files in view.
    top: usize,
    /// Lines of the files, and those in view, as of the last drawing.
    lines: (usize, usize),
    /// When the page was opened, in milliseconds since the Unix epoch.
    since_ms: u64,
}

impl TrustPage {
    pub fn new(report: TrustReport, now_ms: u64) -> Self {
        Self {
            report,
            cursor: ListCursor::new(0),
            top: 0,
            lines: (0, 0),
            since_ms: now_ms,
        }
    }

    fn answers(&self) -> [(TrustAnswer, &'static str); 2] {
        if self.report.is_trusted {
            [
                (TrustAnswer::Later, t!("trust-keep")),
                (TrustAnswer::Distrust, t!("trust-stop")),
            ]
        } else {
            [
                (TrustAnswer::Later, t!("trust-later")),
                (TrustAnswer::Trust, t!("trust-yes")),
            ]
        }
    }

    fn enter(&self, now_ms: u64) -> Answer {
        if now_ms.saturating_sub(self.since_ms) < TOO_EARLY_MS {
            return Answer::Taken;
        }
        match self.answers().get(self.cursor.at) {
            Some((TrustAnswer::Later, _)) if self.report.is_trusted => Answer::Close,
            Some((answer, _)) => Answer::Chosen(Choice::Trust(*answer)),
            None => Answer::Taken,
        }
    }

    fn scroll(&mut self, by: isize) {
        let (all, shown) = self.lines;
        self.top = self.top.saturating_add_signed(by).min(all.saturating_sub(shown));
    }

    /// The title and what the list below is.
    fn head(&self, columns: usize) -> Vec<StyledLine> {
        let is_changed = self.report.entries.iter().any(|it| it.is_changed);
        let (title, about) = match (self.report.is_trusted, is_changed) {
            (true, _) => (t!("trust-title-held"), t!("trust-about-held")),
            (false, true) => (t!("trust-title"), t!("trust-about-changed")),
            (false, false) => (t!("trust-title"), t!("trust-about")),
        };
        let mut rows = wrap(
            &[Span::new(Sanitized::literal(title), Role::Strong).bold()],
            columns,
            &[],
            &[],
        );
        rows.extend(wrap(
            &[Span::new(Sanitized::literal(about), Role::Text)],
            columns,
            &[],
            &[],
        ));
        rows
    }

    /// The files, and what none of them can do.
    fn files(&self, columns: usize) -> Vec<StyledLine> {
        let sign = [Span::new(Sanitized::literal("  · "), Role::Dim)];
        let under = [Span::new(Sanitized::literal("    "), Role::Dim)];
        let rows = self.report.entries.iter();
        let mut rows: Vec<StyledLine> = rows.flat_map(|it| wrap(&entry(it), columns, &sign, &under)).collect();
        if !self.report.is_trusted {
            rows.push(StyledLine::blank());
            let limits = Span::new(Sanitized::literal(t!("trust-limits")), Role::Dim);
            rows.extend(wrap(&[limits], columns, &[], &[]));
        }
        rows
    }
}

fn entry(entry: &TrustEntry) -> Vec<Span> {
    let about = match &entry.kind {
        TrustKind::Settings => t!("trust-settings").to_owned(),
        TrustKind::Command => t!("trust-command").to_owned(),
        TrustKind::Skill => t!("trust-skill").to_owned(),
        TrustKind::Hooks => t!("trust-hooks").to_owned(),
        TrustKind::Mode => t!("trust-mode").to_owned(),
        TrustKind::Servers => t!("trust-servers").to_owned(),
        TrustKind::Rule(RuleTrigger::Nothing) => t!("trust-rule-always").to_owned(),
        TrustKind::Rule(RuleTrigger::Files) => t!("trust-rule-files").to_owned(),
        TrustKind::Rule(RuleTrigger::Model) => t!("trust-rule-model").to_owned(),
        TrustKind::Rule(RuleTrigger::User) => t!("trust-rule-user").to_owned(),
        TrustKind::Checkers(_) => t!("trust-checkers-about").to_owned(),
    };
    let name = match &entry.kind {
        TrustKind::Checkers(commands) => commands.join(", "),
        TrustKind::Settings
        | TrustKind::Command
        | TrustKind::Skill
        | TrustKind::Hooks
        | TrustKind::Mode
        | TrustKind::Servers
        | TrustKind::Rule(_) => entry.path.clone(),
    };
    let mut spans = vec![Span::new(visible_line(&name), Role::Code)];
    if entry.is_changed {
        spans.push(Span::new(format!("  {}", t!("trust-changed")), Role::Waiting));
    }
    spans.push(Span::new(format!("  {about}"), Role::Dim));
    spans
}

impl Overlay for TrustPage {
    /// Only arrows, page keys, Enter and Esc act; whoever types goes on writing the message.
    fn key(&mut self, event: KeyEvent, scene: &Scene<'_>) -> Answer {
        let page = self.lines.1.max(1) as isize;
        match event.code {
            KeyCode::Char('c') if event.modifiers.contains(KeyModifiers::CONTROL) => return Answer::Close,
            KeyCode::Char(_) if (event.modifiers - KeyModifiers::SHIFT).is_empty() => return Answer::Typed(event),
            KeyCode::Enter => return self.enter(scene.now_ms),
            KeyCode::Esc => return Answer::Close,
            KeyCode::PageDown => self.scroll(page),
            KeyCode::PageUp => self.scroll(-page),
            KeyCode::Up | KeyCode::Down => {
                self.cursor.key(event, 2);
            }
            _ => {}
        }
        Answer::Taken
    }

    fn paste(&mut self, _: &str) -> Option<Answer> {
        Some(Answer::Close)
    }

    fn wheel(&mut self, by: isize) {
        self.scroll(by);
    }

    fn list(&self) -> Option<&ListCursor> {
        Some(&self.cursor)
    }

    fn render(&mut self, area: Rect, buf: &mut Buffer, _: &mut Links, scene: &Scene<'_>) {
        let area = Rect {
            width: area.width.min(MOST_COLUMNS),
            ..area
        };
        let (theme, columns) = (scene.theme, usize::from(area.width));
        // The answers are always in view; what there is no room for is scrolled.
        let [text, answers] = frame::cut(area, area.height.saturating_sub(2));
        let rest = frame::lines(text, buf, &self.head(columns), theme);
        let files = self.files(columns);
        let shown = usize::from(rest.height.saturating_sub(1));
        self.lines = (files.len(), shown);
        self.scroll(0);
        let shown: Vec<StyledLine> = files.into_iter().skip(self.top).take(shown).collect();
        let below = frame::lines(rest, buf, &shown, theme);
        let free = below.height.saturating_sub(1);
        let choices = self.answers();
        let list = ListWidget {
            count: choices.len(),
            sign: "› ",
            is_active: true,
            line: |at, is_here, _| {
                let text = choices.get(at).map_or("", |it| it.1);
                vec![Span::new(Sanitized::literal(text), Role::Text).modified(bold_if(is_here))]
            },
            theme,
        };
        // Right below the files where there is room.
        let answers = Rect {
            y: answers.y - free,
            ..answers
        };
        list.render(answers, buf, &mut self.cursor);
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        vec![
            ("enter", t!("footer-choose")),
            ("↑↓", t!("footer-move")),
            ("pgdn", t!("footer-scroll")),
            ("esc", t!("footer-close")),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Transcript;

    fn report() -> TrustReport {
        let entry = |path: &str, kind, is_changed| TrustEntry {
            path: path.to_owned(),
            kind,
            is_changed,
        };
        TrustReport {
            is_trusted: false,
            entries: vec![
                entry("AGENTS.md", TrustKind::Rule(RuleTrigger::Nothing), false),
                entry(".sheaf/config.toml", TrustKind::Settings, true),
                entry(
                    ".cursor/rules/\u{202e}x\u{1b}[2J.mdc",
                    TrustKind::Rule(RuleTrigger::Files),
                    false,
                ),
                entry("", TrustKind::Checkers(vec!["cargo check".to_owned()]), false),
            ],
        }
    }

    #[test]
    fn the_page_names_every_file_and_always_shows_the_answers() {
        for (columns, height) in [(90, 30), (60, 20), (36, 10), (20, 5)] {
            let mut page = TrustPage::new(report(), 0);
            let lines = Scene::drawn(&mut page, &Transcript::default(), columns, height).join("\n");
            assert!(lines.contains("› Not now"), "{columns}x{height}\n{lines}");
            assert!(!lines.contains('\u{1b}') && !lines.contains('\u{202e}'), "{lines}");
            if height < 20 {
                continue;
            }
            for named in ["AGENTS.md", ".sheaf/config.toml  changed", "cargo check", "config"] {
                assert!(lines.contains(named), "{named}\n{lines}");
            }
        }
    }

    #[test]
    fn letters_do_not_decide_and_the_first_answer_changes_nothing() {
        let transcript = Transcript::default();
        Scene::test(&transcript, |scene| {
            let at = |now_ms| Scene {
                now_ms,
                ..Scene { ..*scene }
            };
            let mut page = TrustPage::new(report(), 0);
            let enter = KeyEvent::from(KeyCode::Enter);
            assert!(
                matches!(page.key(enter, &at(100)), Answer::Taken),
                "it was not read yet"
            );
            for letter in ['y', 't', '2', ' '] {
                let key = KeyEvent::from(KeyCode::Char(letter));
                assert!(matches!(page.key(key, &at(900)), Answer::Typed(_)), "{letter}");
            }
            // The key that opened the page, pressed once more, is no choice.
            page.key(KeyCode::Tab.into(), &at(900));
            let later = page.key(enter, &at(900));
            assert!(matches!(later, Answer::Chosen(Choice::Trust(TrustAnswer::Later))));
            page.key(KeyCode::Down.into(), &at(900));
            let yes = page.key(enter, &at(900));
            assert!(matches!(yes, Answer::Chosen(Choice::Trust(TrustAnswer::Trust))));
        });
    }
}
