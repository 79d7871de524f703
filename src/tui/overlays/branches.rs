//! The tree of the conversation: every message on every branch. What is looked at stands beside it, and beside that, where there
//! is room, what was said in its place on the branch that one is on.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Answer, Choice, Overlay, Scene};
use crate::{
    protocol::{Response, Turn},
    t,
    text::{Background, Modifier, Role, Sanitized, Span, StyledLine, width, wrap::wrap},
    transcript::{Exchange, Fork, Transcript, is_approval},
    tui::{spoken, widgets},
};

/// The tree and one answer beside each other from here on, and two answers from here on.
const BESIDE: usize = 80;
const TWO: usize = 116;

pub struct Branches {
    forks: Vec<Fork>,
    at: usize,
    top: usize,
    rows: Vec<StyledLine>,
}

impl Branches {
    /// `None`: nothing was said.
    pub fn new(transcript: &Transcript) -> Option<Self> {
        let forks: Vec<Fork> = transcript
            .tree()
            .into_iter()
            .filter(|it| transcript.exchange_of(it.turn).is_some_and(|it| it.message.is_some()))
            .collect();
        let at = forks.iter().rposition(|it| it.is_here).unwrap_or_default();
        (!forks.is_empty()).then_some(Self {
            forks,
            at,
            top: 0,
            rows: Vec::new(),
        })
    }

    fn go(&mut self, at: usize) {
        self.at = at.min(self.forks.len().saturating_sub(1));
        self.top = 0;
    }

    /// To the next message that stands in the same place, or the one before.
    fn sibling(&mut self, forward: bool) {
        let is_fork = |n: &usize| self.forks.get(*n).is_some_and(|it| it.sibling.1 > 1);
        let found = if forward {
            (self.at + 1..self.forks.len()).find(is_fork)
        } else {
            (0..self.at).rev().find(is_fork)
        };
        self.go(found.unwrap_or(self.at));
    }

    fn tree(&self, transcript: &Transcript, columns: usize, height: usize) -> Vec<Vec<Span>> {
        let first = (self.at + 1).saturating_sub(height);
        let shown = self.forks.iter().enumerate().skip(first).take(height);
        let line = |(n, fork): (usize, &Fork)| {
            let is_at = n == self.at;
            let ground = if is_at {
                Background::Selection
            } else {
                Background::Plain
            };
            let mark = if is_at { Modifier::BOLD } else { Modifier::NONE };
            let message = transcript.exchange_of(fork.turn).and_then(|it| it.message.as_ref());
            let text = message.map(|it| it.content.as_str()).unwrap_or_default();
            let text = if fork.rest_from.is_some() {
                t!("branches-rest")
            } else {
                text
            };
            let text = text.lines().find(|it| !it.trim().is_empty()).unwrap_or_default();
            let text = Sanitized::line(text.get(..text.floor_char_boundary(400)).unwrap_or(text));
            let depth = fork.depth.min(columns / 6);
            let way = format!(
                "{}{}",
                "  ".repeat(depth.saturating_sub(1)),
                if depth > 0 { "└ " } else { "" }
            );
            let (sign, role) = if fork.is_here {
                ("●", Role::Accent)
            } else {
                ("○", Role::Faint)
            };
            let facts = match fork.sibling {
                (_, 0 | 1) => String::new(),
                (nth, of) => format!(" {nth}/{of}"),
            };
            let number = match fork.rest_from {
                Some(at) => address(transcript, fork.turn, at),
                None => fork.turn.0.to_string(),
            };
            let number = width::pad_start(&number, 4);
            let used = 2 + width::width(&number) + 1 + width::width(&way) + 2 + facts.len();
            let room = columns.saturating_sub(used);
            let text = width::pad(&width::cut_end(&text, room), room);
            vec![
                Span::new(Sanitized::literal(if is_at { "› " } else { "  " }), Role::Accent).on(ground),
                Span::new(Sanitized::new(&number), Role::Faint).on(ground),
                Span::new(Sanitized::literal(" "), Role::Text).on(ground),
                Span::new(Sanitized::new(&way), Role::Rule).on(ground),
                Span::new(Sanitized::literal(sign), role).on(ground),
                Span::new(Sanitized::literal(" "), Role::Text).on(ground),
                Span::new(
                    Sanitized::new(&text),
                    if fork.is_here { Role::User } else { Role::Text },
                )
                .modified(mark)
                .on(ground),
                Span::new(Sanitized::new(&facts), Role::Dim).on(ground),
            ]
        };
        shown.map(line).collect()
    }

    /// A message and what was answered, below a heading.
    fn said(&self, looked: Option<Looked<'_>>, head: Option<&str>, columns: usize, height: usize) -> Vec<Vec<Span>> {
        let Some(Looked { exchange, from }) = looked else {
            return Vec::new();
        };
        let mut rows: Vec<Vec<Span>> = Vec::new();
        if let Some(head) = head {
            rows.push(vec![Span::new(
                Sanitized::new(&width::cut_end(head, columns)),
                Role::Dim,
            )]);
            rows.push(Vec::new());
        }
        let mut body: Vec<Vec<Span>> = Vec::new();
        let message = exchange
            .message
            .as_ref()
            .map(|it| it.content.as_str())
            .unwrap_or_default();
        let message = message.get(..message.floor_char_boundary(2000)).unwrap_or(message);
        if from.is_none() {
            let words = [Span::new(Sanitized::new(message), Role::User).bold()];
            body.extend(lines(&words, columns));
            body.push(Vec::new());
        }
        body.extend(answer(&exchange.response, from.unwrap_or_default(), columns));
        let room = height.saturating_sub(rows.len());
        let top = self.top.min(body.len().saturating_sub(room));
        rows.extend(body.into_iter().skip(top).take(room));
        rows
    }
}

impl Overlay for Branches {
    fn key(&mut self, event: KeyEvent, _: &Scene<'_>) -> Answer {
        match event.code {
            KeyCode::Esc | KeyCode::Char('q') => return Answer::Close,
            KeyCode::Char('c') if event.modifiers.contains(KeyModifiers::CONTROL) => return Answer::Close,
            KeyCode::Up | KeyCode::Char('k') => self.go(self.at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.go(self.at + 1),
            KeyCode::Home | KeyCode::Char('g') => self.go(0),
            KeyCode::End | KeyCode::Char('G') => self.go(usize::MAX),
            KeyCode::Left | KeyCode::Char('h') => self.sibling(false),
            KeyCode::Right | KeyCode::Char('l') => self.sibling(true),
            KeyCode::PageDown | KeyCode::Char(' ') => self.top += 5,
            KeyCode::PageUp => self.top = self.top.saturating_sub(5),
            KeyCode::Enter => {
                if let Some(fork) = self.forks.get(self.at) {
                    return Answer::Chosen(Choice::Branch(fork.turn, fork.rest_from.is_some()));
                }
            }
            _ => {}
        }
        Answer::Taken
    }

    fn wheel(&mut self, by: isize) {
        self.top = self.top.saturating_add_signed(by);
    }

    fn lay_out(&mut self, scene: &Scene<'_>, columns: usize, height: usize) {
        let transcript = scene.transcript;
        let ends = self.forks.iter().filter(|it| it.is_end).count();
        let facts = t!("branches-place", at = self.at + 1, count = self.forks.len());
        let mut rows = vec![
            StyledLine::of([
                Span::new(Sanitized::literal(t!("branches-title")), Role::Strong).bold(),
                Span::new(
                    Sanitized::new(&format!("   {}", t!("branches-count", count = ends))),
                    Role::Dim,
                ),
            ])
            .facts([Span::new(Sanitized::new(&facts), Role::Dim)]),
            StyledLine::blank(),
        ];
        let body = height.saturating_sub(rows.len()).max(1);
        let fork = self.forks.get(self.at);
        let turn = fork.map(|it| it.turn).unwrap_or_default();
        let from = fork.and_then(|it| it.rest_from);
        let looked = transcript.exchange_of(turn).map(|exchange| Looked { exchange, from });
        if columns < BESIDE {
            let above = self.forks.len().min((body / 2).max(1));
            rows.extend(self.tree(transcript, columns, above).into_iter().map(StyledLine::of));
            rows.push(StyledLine::of([Span::new(
                Sanitized::new(&"─".repeat(columns)),
                Role::Rule,
            )]));
            let rest = body.saturating_sub(above + 1);
            rows.extend(self.said(looked, None, columns, rest).into_iter().map(StyledLine::of));
            self.rows = rows;
            return;
        }
        let other = if columns >= TWO {
            fork.and_then(|it| in_its_place(transcript, it))
        } else {
            None
        };
        let list = (columns / 3).clamp(30, 56);
        let room = columns.saturating_sub(list + 3);
        let half = if other.is_some() {
            room.saturating_sub(3) / 2
        } else {
            room
        };
        let tree = self.tree(transcript, list, body);
        let there = looked.filter(|_| other.is_some()).map(|it| {
            let turn = it.exchange.turn.0.to_string();
            match it.from {
                Some(_) => t!("branches-there-rest", turn = turn),
                None => t!("branches-there", turn = turn),
            }
        });
        let left = self.said(looked, there.as_deref(), half, body);
        let right = other.map(|it| {
            let turn = it.exchange.turn.0.to_string();
            let here = match it.from {
                Some(_) => t!("branches-here-rest", turn = turn),
                None => t!("branches-here", turn = turn),
            };
            self.said(Some(it), Some(&here), half, body)
        });
        for line in 0..body {
            let mut spans = padded(tree.get(line), list);
            spans.push(Span::new(Sanitized::literal(" │ "), Role::Rule));
            spans.extend(padded(left.get(line), half));
            if let Some(right) = &right {
                spans.push(Span::new(Sanitized::literal(" │ "), Role::Rule));
                spans.extend(padded(right.get(line), half));
            }
            rows.push(StyledLine::of(spans));
        }
        self.rows = rows;
    }

    fn rows(&self) -> &[StyledLine] {
        &self.rows
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

/// What is looked at: an exchange, or its documents from one on.
#[derive(Clone, Copy)]
struct Looked<'a> {
    exchange: &'a Exchange,
    from: Option<usize>,
}

impl<'a> Looked<'a> {
    const fn whole(exchange: &'a Exchange) -> Self {
        Self { exchange, from: None }
    }
}

/// What stands on the branch that one is on, in the place of another one; `None`: it is that one, or there is none.
fn in_its_place<'a>(transcript: &'a Transcript, fork: &Fork) -> Option<Looked<'a>> {
    let of = |turn: Turn| transcript.exchanges.iter().position(|it| it.turn == turn);
    if fork.is_here {
        return None;
    }
    let next = |here: usize| transcript.exchanges.get(here + 1).map(Looked::whole);
    if let (Some(_), Some(here)) = (fork.rest_from, of(fork.turn)) {
        return next(here);
    }
    // Where the way to it forks from the branch.
    let mut at = transcript.exchange_of(fork.turn)?;
    loop {
        let behind = at.parent.after;
        if let Some(here) = of(behind) {
            // Here the answer itself may go on where the other one leaves it.
            let exchange = transcript.exchanges.get(here)?;
            let upto = at.parent.upto.as_ref().and_then(|it| exchange.response.position_of(it));
            let rest = upto
                .map(|it| it + 1)
                .filter(|it| *it < exchange.response.documents.len());
            let rest = rest.map(|it| Looked {
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
                    .map(Looked::whole);
            }
        }
    }
}

/// Of a document of a turn.
fn address(transcript: &Transcript, turn: Turn, document: usize) -> String {
    let number = transcript
        .exchange_of(turn)
        .map_or(0, |it| it.response.number(document));
    format!("{}.{number}", turn.0)
}

/// The documents of an answer from one on: text as it reads, of everything else a line.
fn answer(response: &Response, from: usize, columns: usize) -> Vec<Vec<Span>> {
    let mut rows = Vec::new();
    for document in response.documents.iter().skip(from).take(200) {
        if document.kind == crate::protocol::Kind::Text {
            let text = document.text();
            let text = text.get(..text.floor_char_boundary(4000)).unwrap_or(text);
            rows.extend(lines(&[Span::new(Sanitized::new(text), Role::Text)], columns));
        } else {
            let kind = words::kind(&document.kind, is_approval(document));
            let line = format!("· {kind} {}", widgets::summary(document));
            rows.push(vec![Span::new(
                Sanitized::new(&width::cut_end(&Sanitized::line(&line), columns)),
                Role::Dim,
            )]);
        }
        rows.push(Vec::new());
    }
    rows
}

fn lines(spans: &[Span], columns: usize) -> Vec<Vec<Span>> {
    wrap(spans, columns.max(1), &[], &[])
        .iter()
        .map(|it| it.content().to_vec())
        .collect()
}

fn padded(spans: Option<&Vec<Span>>, columns: usize) -> Vec<Span> {
    let mut spans = width::clip_spans(spans.map(Vec::as_slice).unwrap_or_default(), columns);
    let rest = columns.saturating_sub(width::spans_width(&spans));
    spans.push(Span::new(Sanitized::new(&" ".repeat(rest)), Role::Text));
    spans
}
