//! The tree of the conversation: the messages of all branches. The selected answer stands beside it and, where there is room,
//! the answer in its place on the current branch beside that.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};

use super::frame::{self, first_line};
use crate::{
    protocol::{Kind, Response, Turn},
    t,
    text::{Role, Sanitized, Span, StyledLine, width, wrap::wrap},
    theme::Theme,
    transcript::{Exchange, Fork, Transcript, is_approval},
    tui::{
        app::{Answer, Choice, Overlay, Scene},
        spoken,
        terminal::surface::Links,
        widgets::{
            self,
            list::{ListCursor, ListWidget, bold_if},
        },
    },
};

/// Columns from which on the tree and one answer stand beside each other.
const BESIDE: usize = 80;

/// Columns from which on a second answer stands beside them.
const TWO: usize = 116;

/// The page of all branches.
pub struct Branches {
    forks: Vec<Fork>,
    cursor: ListCursor,
    /// Lines of the answers above the view.
    top: usize,
}

impl Branches {
    /// A page with the cursor on the current branch; `None` for a conversation without messages.
    pub fn new(transcript: &Transcript) -> Option<Self> {
        let has_message = |it: &Fork| transcript.exchange_of(it.turn).is_some_and(|it| it.message.is_some());
        let forks: Vec<Fork> = transcript.tree().into_iter().filter(has_message).collect();
        let at = forks.iter().rposition(|it| it.is_here).unwrap_or_default();
        (!forks.is_empty()).then_some(Self {
            forks,
            cursor: ListCursor::new(at),
            top: 0,
        })
    }

    fn step(&mut self, by: isize) {
        self.cursor.step(by, self.forks.len());
        self.top = 0;
    }

    /// Moves to the next message that has siblings, or the previous one.
    fn sibling(&mut self, forward: bool) {
        let forks = &self.forks;
        let is_fork = |at| forks.get::<usize>(at).is_some_and(|it| it.sibling.1 > 1);
        self.cursor.find(forward, forks.len(), is_fork);
        self.top = 0;
    }

    fn draw_tree(&mut self, area: Rect, buf: &mut Buffer, scene: &Scene<'_>) {
        let list = ListWidget {
            count: self.forks.len(),
            sign: "› ",
            is_active: true,
            line: |at, is_here, columns| match self.forks.get(at) {
                Some(fork) => line(fork, scene.transcript, is_here, columns),
                None => Vec::new(),
            },
            theme: scene.theme,
        };
        list.render(area, buf, &mut self.cursor);
    }

    /// Draws a message and its answer, below a heading.
    fn draw_answer(
        &self,
        answer: Option<Answered<'_>>,
        head: Option<&str>,
        area: Rect,
        buf: &mut Buffer,
        theme: &Theme,
    ) {
        let columns = usize::from(area.width);
        let Some(Answered { exchange, from }) = answer else {
            return;
        };
        let head = head.map(|it| Span::new(Sanitized::new(&width::cut_end(it, columns)), Role::Dim));
        let head: Vec<_> = head
            .into_iter()
            .flat_map(|it| [StyledLine::of([it]), StyledLine::blank()])
            .collect();
        let area = frame::lines(area, buf, &head, theme);
        let mut body = Vec::new();
        if from.is_none() {
            let message = exchange.asked();
            let message = message.get(..message.floor_char_boundary(2000)).unwrap_or(message);
            let words = [Span::new(Sanitized::new(message), Role::User).bold()];
            body.extend(wrap(&words, columns.max(1), &[], &[]));
            body.push(StyledLine::blank());
        }
        body.extend(documents(&exchange.response, from.unwrap_or_default(), columns));
        let top = self.top.min(body.len().saturating_sub(usize::from(area.height)));
        frame::lines(area, buf, body.get(top..).unwrap_or_default(), theme);
    }
}

/// A row of the tree.
fn line(fork: &Fork, transcript: &Transcript, is_here: bool, columns: usize) -> Vec<Span> {
    let message = transcript.exchange_of(fork.turn).and_then(|it| it.message.as_ref());
    let text = match fork.rest_from {
        Some(_) => Sanitized::literal(t!("branches-rest")),
        None => first_line(&message.map(widgets::message_text).unwrap_or_default()),
    };
    let depth = fork.depth.min((columns + 2) / 6);
    let indent = "  ".repeat(depth.saturating_sub(1)) + if depth > 0 { "└ " } else { "" };
    let (sign, role) = if fork.is_here {
        ("● ", Role::Accent)
    } else {
        ("○ ", Role::Faint)
    };
    let facts = match fork.sibling {
        (_, 0 | 1) => String::new(),
        (nth, of) => format!(" {nth}/{of}"),
    };
    let number = match fork.rest_from {
        Some(at) => address(transcript, fork.turn, at),
        None => fork.turn.0.to_string(),
    };
    let number = width::pad_start(&number, 4) + " ";
    let used = width::width(&number) + width::width(&indent) + 2 + facts.len();
    let room = columns.saturating_sub(used);
    let text = width::pad(&width::cut_end(&text, room), room);
    let text_role = if fork.is_here { Role::User } else { Role::Text };
    vec![
        Span::new(Sanitized::new(&number), Role::Faint),
        Span::new(Sanitized::new(&indent), Role::Rule),
        Span::new(Sanitized::literal(sign), role),
        Span::new(Sanitized::new(&text), text_role).modified(bold_if(is_here)),
        Span::new(Sanitized::new(&facts), Role::Dim),
    ]
}

impl Overlay for Branches {
    fn key(&mut self, event: KeyEvent, _: &Scene<'_>) -> Answer {
        match event.code {
            KeyCode::Esc => return Answer::Close,
            KeyCode::Char('c') if event.modifiers.contains(KeyModifiers::CONTROL) => return Answer::Close,
            KeyCode::Up => self.step(-1),
            KeyCode::Down => self.step(1),
            KeyCode::Home => self.step(isize::MIN),
            KeyCode::End => self.step(isize::MAX),
            KeyCode::Left => self.sibling(false),
            KeyCode::Right => self.sibling(true),
            KeyCode::PageDown | KeyCode::Char(' ') => self.top += 5,
            KeyCode::PageUp => self.top = self.top.saturating_sub(5),
            KeyCode::Enter => {
                if let Some(fork) = self.forks.get(self.cursor.at) {
                    return Answer::Chosen(Choice::Branch(fork.turn, fork.rest_from.is_some()));
                }
            }
            // Words are for the draft.
            KeyCode::Char(_) if (event.modifiers - KeyModifiers::SHIFT).is_empty() => return Answer::Typed(event),
            _ => {}
        }
        Answer::Taken
    }

    fn wheel(&mut self, by: isize) {
        self.top = self.top.saturating_add_signed(by);
    }

    fn list(&self) -> Option<&ListCursor> {
        Some(&self.cursor)
    }

    fn render(&mut self, area: Rect, buf: &mut Buffer, _: &mut Links, scene: &Scene<'_>) {
        let (transcript, theme) = (scene.transcript, scene.theme);
        let ends = self.forks.iter().filter(|it| it.is_end).count();
        let facts = t!("branches-place", at = self.cursor.at + 1, count = self.forks.len());
        let count = format!("   {}", t!("branches-count", count = ends));
        let head = StyledLine::of([
            Span::new(Sanitized::literal(t!("branches-title")), Role::Strong).bold(),
            Span::new(Sanitized::new(&count), Role::Dim),
        ]);
        let head = head.facts([Span::new(Sanitized::new(&facts), Role::Dim)]);
        let rest = frame::lines(area, buf, &[head, StyledLine::blank()], theme);
        let columns = usize::from(area.width);
        let fork = self.forks.get(self.cursor.at);
        let selected = fork.and_then(|it| {
            let exchange = transcript.exchange_of(it.turn)?;
            Some(Answered {
                exchange,
                from: it.rest_from,
            })
        });
        let other = fork
            .filter(|_| columns >= TWO)
            .and_then(|it| in_its_place(transcript, it));
        if columns < BESIDE {
            let lines = self.forks.len().min(usize::from(rest.height / 2).max(1));
            let [tree, answer] = frame::below(rest, lines, buf, Role::Rule, theme);
            self.draw_answer(selected, None, answer, buf, theme);
            self.draw_tree(tree, buf, scene);
            return;
        }
        let [tree, answers] = frame::beside(rest, (columns / 3).clamp(30, 56), buf, Role::Rule, theme);
        match other {
            None => self.draw_answer(selected, None, answers, buf, theme),
            Some(other) => {
                let half = usize::from(answers.width.saturating_sub(3) / 2);
                let [left, right] = frame::beside(answers, half, buf, Role::Rule, theme);
                let right = Rect {
                    width: half as u16,
                    ..right
                };
                let turn = |it: Answered<'_>| it.exchange.turn.0.to_string();
                let there = selected.map(|it| match it.from {
                    Some(_) => t!("branches-there-rest", turn = turn(it)),
                    None => t!("branches-there", turn = turn(it)),
                });
                let here = match other.from {
                    Some(_) => t!("branches-here-rest", turn = turn(other)),
                    None => t!("branches-here", turn = turn(other)),
                };
                self.draw_answer(selected, there.as_deref(), left, buf, theme);
                self.draw_answer(Some(other), Some(&here), right, buf, theme);
            }
        }
        self.draw_tree(tree, buf, scene);
    }

    fn most_columns(&self) -> u16 {
        u16::MAX
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        vec![
            ("enter", t!("footer-go-there")),
            ("↑↓", t!("footer-move")),
            ("←→", t!("footer-forks")),
            ("space", t!("footer-scroll")),
            ("esc", t!("footer-back")),
        ]
    }
}

/// An exchange, or its documents from one on.
#[derive(Clone, Copy)]
struct Answered<'a> {
    exchange: &'a Exchange,
    from: Option<usize>,
}

impl<'a> Answered<'a> {
    const fn whole(exchange: &'a Exchange) -> Self {
        Self { exchange, from: None }
    }
}

/// The exchange on the current branch in the place of another one; `None` for one on that branch, or without a counterpart.
fn in_its_place<'a>(transcript: &'a Transcript, fork: &Fork) -> Option<Answered<'a>> {
    let of = |turn: Turn| transcript.exchanges.iter().position(|it| it.turn == turn);
    if fork.is_here {
        return None;
    }
    let next = |here: usize| transcript.exchanges.get(here + 1).map(Answered::whole);
    if let (Some(_), Some(here)) = (fork.rest_from, of(fork.turn)) {
        return next(here);
    }
    // Up to the fork from the current branch.
    let mut at = transcript.exchange_of(fork.turn)?;
    loop {
        let behind = at.parent.after;
        if let Some(here) = of(behind) {
            // The current branch may continue the answer after the document where the other one leaves it.
            let exchange = transcript.exchanges.get(here)?;
            let upto = at.parent.upto.as_ref().and_then(|it| exchange.response.position_of(it));
            let rest = upto
                .map(|it| it + 1)
                .filter(|it| *it < exchange.response.documents.len());
            let rest = rest.map(|it| Answered {
                exchange,
                from: Some(it),
            });
            return next(here).or(rest);
        }
        match transcript.exchange_of(behind).filter(|it| it.turn < at.turn) {
            Some(before) => at = before,
            None => {
                return transcript
                    .exchanges
                    .iter()
                    .find(|it| it.message.is_some())
                    .map(Answered::whole);
            }
        }
    }
}

/// The address of a document of a turn.
fn address(transcript: &Transcript, turn: Turn, document: usize) -> String {
    let number = transcript
        .exchange_of(turn)
        .map_or(0, |it| it.response.number(document));
    format!("{}.{number}", turn.0)
}

/// The documents of an answer from one on: texts wrapped, everything else as one line.
fn documents(response: &Response, from: usize, columns: usize) -> Vec<StyledLine> {
    let mut rows = Vec::new();
    for document in response.documents.iter().skip(from).take(200) {
        if document.kind == Kind::Text {
            let text = document.text();
            let text = text.get(..text.floor_char_boundary(4000)).unwrap_or(text);
            let text = [Span::new(Sanitized::new(text), Role::Text)];
            rows.extend(wrap(&text, columns.max(1), &[], &[]));
        } else {
            let kind = spoken::kind(&document.kind, is_approval(document));
            let line = Sanitized::line(&format!("· {kind} {}", widgets::summary(document)));
            let line = Sanitized::new(&width::cut_end(&line, columns));
            rows.push(StyledLine::of([Span::new(line, Role::Dim)]));
        }
        rows.push(StyledLine::blank());
    }
    rows
}
