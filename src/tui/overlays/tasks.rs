//! The commands that run in the background: looked at, gone to, stopped.

use std::collections::BTreeSet;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};

use super::frame::{self, first_line, frame};
use crate::{
    protocol::{CommandState, DocumentId, Kind, Turn, View, document::TerminalCommand},
    t,
    text::{Role, Sanitized, Span, StyledLine, ansi::Output, width},
    transcript::{DocumentIndex, Transcript},
    tui::{
        app::{Answer, Choice, Overlay, Placement, Scene},
        terminal::surface::Links,
        widgets::{
            list::{ListCursor, ListWidget, bold_if},
            transcript::{Item, address},
        },
    },
};

/// Commands that are in view at once.
const MOST_SHOWN: usize = 8;
/// Lines of the selected command's output.
const LAST_LINES: usize = 5;
/// The end of an output that is read for them, in bytes.
const LAST_BYTES: usize = 4 << 10;

/// The list of commands in the background. It follows the conversation: who has ended leaves it.
pub struct Tasks {
    cursor: ListCursor,
    /// Commands when it was opened.
    count: usize,
    /// Those that were asked to end.
    stopping: BTreeSet<(Turn, DocumentId)>,
}

/// A command in the background.
struct Task<'a> {
    place: DocumentIndex,
    id: (Turn, DocumentId),
    command: TerminalCommand<'a>,
}

impl Tasks {
    /// `None` if no command runs in the background.
    pub fn new(transcript: &Transcript) -> Option<Self> {
        let count = tasks(transcript).len();
        (count > 0).then(|| Self {
            cursor: ListCursor::new(count - 1),
            count,
            stopping: BTreeSet::new(),
        })
    }
}

/// The commands in the background, in the order in which they were started.
fn tasks(transcript: &Transcript) -> Vec<Task<'_>> {
    let mut found = Vec::new();
    for (exchange, it) in transcript.exchanges.iter().enumerate() {
        for (document, at) in it.response.documents.iter().zip(0..) {
            if document.kind != Kind::TerminalCommand {
                continue;
            }
            if let View::TerminalCommand(command) = document.view()
                && command.state == CommandState::Background
            {
                found.push(Task {
                    place: DocumentIndex { exchange, document: at },
                    id: (it.turn, document.id.clone()),
                    command,
                });
            }
        }
    }
    found
}

impl Overlay for Tasks {
    fn key(&mut self, event: KeyEvent, scene: &Scene<'_>) -> Answer {
        let tasks = tasks(scene.transcript);
        let selected = tasks.get(self.cursor.at.min(tasks.len().saturating_sub(1)));
        match event.code {
            KeyCode::Esc => return Answer::Close,
            KeyCode::Char('c') if event.modifiers.contains(KeyModifiers::CONTROL) => return Answer::Close,
            KeyCode::Up => self.cursor.step(-1, tasks.len()),
            KeyCode::Down => self.cursor.step(1, tasks.len()),
            KeyCode::Home => self.cursor.step(isize::MIN, tasks.len()),
            KeyCode::End => self.cursor.step(isize::MAX, tasks.len()),
            KeyCode::Enter => {
                return match selected {
                    Some(task) => Answer::Chosen(Choice::Item(Item::Document(task.place))),
                    None => Answer::Close,
                };
            }
            KeyCode::Delete => {
                if let Some(task) = selected
                    && self.stopping.insert(task.id.clone())
                {
                    return Answer::Live(Choice::StopCommand(task.id.0, task.id.1.clone()));
                }
            }
            // Words are for the draft.
            KeyCode::Char(_) if (event.modifiers - KeyModifiers::SHIFT).is_empty() => return Answer::Typed(event),
            _ => {}
        }
        Answer::Taken
    }

    fn wheel(&mut self, by: isize) {
        self.cursor.step(by, self.count);
    }

    fn list(&self) -> Option<&ListCursor> {
        Some(&self.cursor)
    }

    fn placement(&self) -> Placement {
        Placement::Popup {
            columns: 90,
            lines: self.count.min(MOST_SHOWN) + LAST_LINES + 3,
        }
    }

    fn render(&mut self, area: Rect, buf: &mut Buffer, _: &mut Links, scene: &Scene<'_>) {
        let tasks = tasks(scene.transcript);
        self.cursor.step(0, tasks.len());
        let inside = frame(area, buf, &format!(" {} ", t!("tasks-title")), "", scene.theme);
        if tasks.is_empty() {
            let none = StyledLine::of([Span::new(Sanitized::literal(t!("tasks-none")), Role::Dim)]);
            frame::lines(inside, buf, &[none], scene.theme);
            return;
        }
        let shown = tasks.len().min(MOST_SHOWN);
        let [list, output] = frame::below(inside, shown, buf, Role::Rule, scene.theme);
        if let Some(task) = tasks.get(self.cursor.at) {
            let lines = last_lines(
                task.command.output,
                usize::from(output.width),
                usize::from(output.height),
            );
            frame::lines(output, buf, &lines, scene.theme);
        }
        let widget = ListWidget {
            count: tasks.len(),
            sign: "› ",
            is_active: true,
            line: |at, is_here, columns: usize| match tasks.get(at) {
                Some(task) => line(
                    task,
                    self.stopping.contains(&task.id),
                    is_here,
                    columns,
                    scene.transcript,
                ),
                None => Vec::new(),
            },
            theme: scene.theme,
        };
        widget.render(list, buf, &mut self.cursor);
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        vec![
            ("del", t!("footer-stop")),
            ("enter", t!("footer-go-there")),
            ("↑↓", t!("footer-move")),
            ("esc", t!("footer-back")),
        ]
    }
}

/// A row of the list: the address, the command, and whether it is being stopped.
fn line(task: &Task<'_>, is_stopping: bool, is_here: bool, columns: usize, transcript: &Transcript) -> Vec<Span> {
    let number = address(transcript, Item::Document(task.place));
    let number = width::pad(&number, 5) + " ";
    let facts = if is_stopping {
        format!(" {}", t!("tasks-stopping"))
    } else {
        String::new()
    };
    let room = columns.saturating_sub(width::width(&number) + width::width(&facts));
    let text = width::pad(&width::cut_end(&first_line(task.command.command), room), room);
    vec![
        Span::new(Sanitized::new(&number), Role::Faint),
        Span::new(Sanitized::new(&text), Role::Text).modified(bold_if(is_here)),
        Span::new(Sanitized::new(&facts), Role::Dim),
    ]
}

/// The last lines of an output, as they read.
fn last_lines(output: &str, columns: usize, most: usize) -> Vec<StyledLine> {
    let from = output.ceil_char_boundary(output.len().saturating_sub(LAST_BYTES));
    let plain = Output::of(output.get(from..).unwrap_or_default()).plain();
    let lines: Vec<&str> = plain.trim_end().lines().collect();
    if lines.is_empty() {
        return vec![StyledLine::of([Span::new(
            Sanitized::literal(t!("tasks-no-output")),
            Role::Dim,
        )])];
    }
    let shown = lines.get(lines.len().saturating_sub(most)..).unwrap_or_default();
    let row = |it: &&str| {
        let text = Sanitized::line(it);
        StyledLine::of([Span::new(Sanitized::new(&width::cut_end(&text, columns)), Role::Text)])
    };
    shown.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    use std::sync::Arc;

    use super::*;
    use crate::{
        journal::Log,
        protocol::{DocumentStart, Event, Message, Position},
    };

    fn conversation() -> (Arc<Log>, Transcript) {
        let log = Log::new();
        log.append(0, Event::UserMessage(Message::user("serve it")));
        for (id, command, state, output) in [
            (
                "a",
                "python3 -m http.server 8123",
                "background",
                "Serving HTTP\nGET /\u{1b}[31m x\n",
            ),
            ("b", "make", "completed", ""),
            ("c", "tail -f log\n# follow", "background", ""),
        ] {
            let members = json!({ "command": command, "state": state, "output": output });
            let Value::Object(metadata) = members else { continue };
            let start = DocumentStart {
                id: id.into(),
                kind: Kind::TerminalCommand,
                sequence: None,
                content: None,
                metadata: metadata.clone(),
            };
            log.append(0, Event::DocumentStart(start));
            let end = Event::DocumentEnd {
                document: id.into(),
                final_content: None,
                metadata,
            };
            log.append(0, end);
        }
        let mut transcript = Transcript::default();
        transcript.apply_all(&log.after(Position(0)));
        (log, transcript)
    }

    fn press(tasks: &mut Tasks, transcript: &Transcript, code: KeyCode) -> Answer {
        let event = KeyEvent::new(code, KeyModifiers::NONE);
        Scene::test(transcript, |scene| tasks.key(event, scene))
    }

    #[test]
    fn commands_in_the_background_are_listed_followed_and_stopped() {
        let (log, mut transcript) = conversation();
        let mut tasks = Tasks::new(&transcript).unwrap();
        assert_eq!(
            Scene::drawn(&mut tasks, &transcript, 40, 10),
            [
                "╭─ background commands ────────────────╮",
                "│  1.1   python3 -m http.server 8123   │",
                "│› 1.3   tail -f log                   │",
                "│──────────────────────────────────────│",
                "│no output yet                         │",
                "│                                      │",
                "│                                      │",
                "│                                      │",
                "│                                      │",
                "╰──────────────────────────────────────╯",
            ]
        );
        assert!(matches!(press(&mut tasks, &transcript, KeyCode::Up), Answer::Taken));
        let seen = Scene::drawn(&mut tasks, &transcript, 40, 10);
        assert_eq!(
            seen[4..6],
            [
                "│Serving HTTP                          │",
                "│GET / x                               │"
            ]
        );
        let place = DocumentIndex {
            exchange: 0,
            document: 0,
        };
        let gone_to = press(&mut tasks, &transcript, KeyCode::Enter);
        assert!(matches!(gone_to, Answer::Chosen(Choice::Item(Item::Document(it))) if it == place));
        let stopped = press(&mut tasks, &transcript, KeyCode::Delete);
        assert!(matches!(stopped, Answer::Live(Choice::StopCommand(Turn(1), id)) if id == "a".into()));
        assert!(Scene::drawn(&mut tasks, &transcript, 40, 10)[1].contains("stopping"));
        // It is asked once.
        assert!(matches!(press(&mut tasks, &transcript, KeyCode::Delete), Answer::Taken));
        // Words are for the draft.
        let typed = press(&mut tasks, &transcript, KeyCode::Char('x'));
        assert!(matches!(typed, Answer::Typed(_)));
        for id in ["a", "c"] {
            let Value::Object(metadata) = json!({ "state": "cancelled" }) else {
                continue;
            };
            log.append(
                0,
                Event::DocumentUpdate {
                    document: id.into(),
                    metadata,
                },
            );
        }
        transcript = Transcript::default();
        transcript.apply_all(&log.after(Position(0)));
        let seen = Scene::drawn(&mut tasks, &transcript, 40, 10);
        assert!(seen[1].contains("no command runs in the background"), "{seen:#?}");
        assert!(Tasks::new(&transcript).is_none());
    }
}
