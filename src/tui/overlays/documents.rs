//! Documents that are no part of the conversation, to read: what has changed in the tree, an answer beside it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};

use super::frame;
use crate::{
    protocol::{Document, View},
    t,
    text::{Role, Sanitized, Span, StyledLine, diff::ContextLines, wrap::wrap},
    tui::{
        app::{Answer, Choice, Effect, Overlay, Scene},
        terminal::surface::Links,
        widgets::{self, DocumentState, DocumentWidget, RenderContext},
    },
};

/// Widest layout, in columns.
const COLUMNS: u16 = 160;

/// A page of documents.
pub struct DocumentPage {
    title: String,
    facts: String,
    /// Shown while there are no documents: what is waited for, or why there are none.
    note: String,
    parts: Vec<DocumentPart>,
    /// Nothing was filled in yet: letters are text.
    is_waiting: bool,
    /// The first row in view, of all.
    top: usize,
    /// Rows of all documents, and rows in view.
    extent: (usize, usize),
    /// The columns and the lines of context that the heights are for.
    shape: (u16, usize),
}

/// A document of the page.
struct DocumentPart {
    document: Document,
    state: DocumentState,
    /// The file's heading is that of the document before it.
    is_joined: bool,
    context: ContextLines,
    /// Rows, and a blank one before the document where a heading begins.
    height: usize,
}

impl DocumentPage {
    /// A page whose documents are still to come; `note` says what is waited for. `facts` stand beside the title.
    pub fn waiting(title: &str, facts: &str, note: &str) -> Self {
        Self {
            title: title.to_owned(),
            facts: facts.to_owned(),
            note: note.to_owned(),
            parts: Vec::new(),
            is_waiting: true,
            top: 0,
            extent: (0, 1),
            shape: (0, 0),
        }
    }

    /// Returns true for the page of this title that still waits.
    pub fn waits_for(&self, title: &str) -> bool {
        self.title == title && self.is_waiting
    }

    /// Shows finished documents, or why there are none.
    pub fn fill(&mut self, documents: Vec<Document>, note: &str) {
        note.clone_into(&mut self.note);
        self.is_waiting = false;
        self.shape = (0, 0);
        let mut parts: Vec<DocumentPart> = Vec::new();
        for document in documents {
            let path = |it: &Document| match it.view() {
                View::FileEdit(edit) => Some(edit.file_path.to_owned()),
                _ => None,
            };
            let before = parts.last().and_then(|it| path(&it.document));
            parts.push(DocumentPart {
                is_joined: before.is_some() && before == path(&document),
                document,
                state: DocumentState::default(),
                context: ContextLines::default(),
                height: 0,
            });
        }
        self.parts = parts;
    }

    fn scroll(&mut self, by: isize) {
        let last = self.extent.0.saturating_sub(self.extent.1);
        self.top = self.top.saturating_add_signed(by).min(last);
    }

    /// Goes to the next document, or to the one before.
    fn step(&mut self, forward: bool) {
        let mut starts = Vec::new();
        let mut at = 0;
        for part in &self.parts {
            starts.push(at + usize::from(at > 0 && !part.is_joined));
            at += part.height;
        }
        let found = if forward {
            starts.into_iter().find(|it| *it > self.top)
        } else {
            starts.into_iter().rev().find(|it| *it < self.top)
        };
        if let Some(at) = found {
            self.top = at;
            self.scroll(0);
        }
    }

    /// Unchanged lines to show with a part: those that the part before it shows are not shown again.
    fn context_of(&self, at: usize, lines: usize) -> ContextLines {
        let context = ContextLines::new(lines);
        let part = self.parts.get(at).filter(|it| it.is_joined);
        let before = at.checked_sub(1).and_then(|it| self.parts.get(it));
        match (before.map(|it| it.document.view()), part.map(|it| it.document.view())) {
            (Some(View::FileEdit(before)), Some(View::FileEdit(this))) => widgets::below(&before, &this, context),
            _ => context,
        }
    }

    /// The first document in view.
    fn document(&self) -> Option<&Document> {
        let mut end = 0;
        let part = self.parts.iter().find(|it| {
            end += it.height;
            end > self.top
        });
        part.or(self.parts.first()).map(|it| &it.document)
    }

    /// The file in view and its line, for the editor.
    fn here(&self) -> Option<(String, Option<u64>)> {
        match self.document()?.view() {
            View::FileEdit(edit) => Some((
                edit.file_path.to_owned(),
                edit.diff.as_ref().and_then(|it| it.start_line),
            )),
            _ => None,
        }
    }
}

impl Overlay for DocumentPage {
    fn key(&mut self, event: KeyEvent, _: &Scene<'_>) -> Answer {
        let page = self.extent.1.saturating_sub(1).max(1) as isize;
        let is_letter = matches!(event.code, KeyCode::Char(_)) && (event.modifiers - KeyModifiers::SHIFT).is_empty();
        match event.code {
            _ if is_letter && self.is_waiting => return Answer::Typed(event),
            KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q') => return Answer::Close,
            KeyCode::Char('c') if event.modifiers.contains(KeyModifiers::CONTROL) => return Answer::Close,
            KeyCode::Char('o') => {
                if let Some((path, line)) = self.here() {
                    return Answer::Live(Choice::Open(path, line));
                }
            }
            KeyCode::Char('y') => {
                if let Some(document) = self.document() {
                    return Answer::Does(Effect::Copy {
                        text: widgets::copy_text(document).into_string(),
                        what: widgets::summary(document).into_string(),
                    });
                }
            }
            KeyCode::Char(sign @ ('+' | '-')) if self.here().is_some() => {
                return Answer::Live(Choice::ContextLines(sign == '+'));
            }
            KeyCode::Char('j') | KeyCode::Tab => self.step(true),
            KeyCode::Char('k') | KeyCode::BackTab => self.step(false),
            KeyCode::Down => self.scroll(1),
            KeyCode::Up => self.scroll(-1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll(page),
            KeyCode::PageUp => self.scroll(-page),
            KeyCode::Char('g') | KeyCode::Home => self.top = 0,
            KeyCode::Char('G') | KeyCode::End => self.scroll(isize::MAX / 2),
            _ if is_letter => return Answer::Typed(event),
            _ => {}
        }
        Answer::Taken
    }

    fn wheel(&mut self, by: isize) {
        self.scroll(by * 3);
    }

    fn render(&mut self, area: Rect, buf: &mut Buffer, links: &mut Links, scene: &Scene<'_>) {
        let head = StyledLine::of([
            Span::new(Sanitized::line(&self.title), Role::Strong).bold(),
            Span::new(Sanitized::line(&format!("   {}", self.facts)), Role::Dim),
        ]);
        let rest = frame::lines(area, buf, &[head, StyledLine::blank()], scene.theme);
        if self.parts.is_empty() {
            let note = wrap(
                &[Span::new(Sanitized::line(&self.note), Role::Dim)],
                usize::from(rest.width),
                &[],
                &[],
            );
            frame::lines(rest, buf, &note, scene.theme);
            return;
        }
        let rest = Rect {
            width: rest.width.min(COLUMNS),
            ..rest
        };
        if rest.width == 0 || rest.height == 0 {
            return;
        }
        if self.shape != (rest.width, scene.context_lines) {
            self.shape = (rest.width, scene.context_lines);
            for at in 0..self.parts.len() {
                let lines = self.context_of(at, scene.context_lines);
                let Some(part) = self.parts.get_mut(at) else { break };
                part.context = lines;
                let context = RenderContext {
                    joined: part.is_joined,
                    context: lines,
                    ..scene.render_context(rest.width)
                };
                part.state.lay_out(&part.document, &context);
                part.height = part.state.rows.len() + usize::from(at > 0 && !part.is_joined);
            }
        }
        self.extent = (self.parts.iter().map(|it| it.height).sum(), usize::from(rest.height));
        self.scroll(0);
        let (mut start, mut y) = (0, rest.y);
        for part in &mut self.parts {
            let end = start + part.height;
            let blank = part.height.saturating_sub(part.state.rows.len());
            if end > self.top && y < rest.bottom() {
                let skipped = self.top.saturating_sub(start);
                y = y
                    .saturating_add(blank.saturating_sub(skipped) as u16)
                    .min(rest.bottom());
                part.state.offset = skipped.saturating_sub(blank);
                let rows = part.state.rows.len().saturating_sub(part.state.offset);
                let place = Rect {
                    y,
                    height: (rest.bottom() - y).min(u16::try_from(rows).unwrap_or(u16::MAX)),
                    ..rest
                };
                let context = &RenderContext {
                    joined: part.is_joined,
                    context: part.context,
                    ..scene.render_context(rest.width)
                };
                let document = &part.document;
                DocumentWidget { document, context }.render(place, buf, &mut part.state);
                links.append(&mut part.state.links);
                y = place.bottom();
            }
            start = end;
        }
    }

    fn most_columns(&self) -> u16 {
        u16::MAX
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        if self.is_waiting {
            return vec![("esc", t!("footer-close"))];
        }
        let mut hints = Vec::new();
        if !self.parts.is_empty() {
            hints.push(("↑↓", t!("footer-scroll")));
        }
        if self.parts.len() > 1 {
            hints.push(("j k", t!("footer-step")));
        }
        if self.here().is_some() {
            hints.push(("o", t!("footer-open")));
            hints.push(("+ -", t!("footer-context")));
        }
        if !self.parts.is_empty() {
            hints.push(("y", t!("footer-copy")));
        }
        hints.push(("esc", t!("footer-close")));
        hints
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_page_prints_no_key_that_needs_documents() {
        let mut page = DocumentPage::waiting("diff", "", "");
        page.fill(Vec::new(), "nothing changed");
        let keys: Vec<_> = page.hints().into_iter().map(|it| it.0).collect();
        assert_eq!(keys, ["esc"]);
    }
}
