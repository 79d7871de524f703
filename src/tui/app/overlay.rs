//! The stack of pages and lists over the conversation. The top one gets input first.

use std::{
    any::Any,
    ops::{Deref, DerefMut},
};

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
};

use super::{App, Appearance, Choice, Conversation, Effect, Questions};
use crate::{
    t,
    text::{Colours, diff::ContextLines},
    theme::Theme,
    transcript::Transcript,
    tui::{
        areas::{GUTTER, PAGE_INDENT},
        hunk_decisions::HunkDecisions,
        spoken,
        terminal::surface::Links,
        widgets::{Cited, Fold, MEASURE, RenderContext, list::ListCursor},
    },
};

/// A page or a list over the conversation.
pub trait Overlay: Any + Send {
    /// Handles a key.
    fn key(&mut self, event: KeyEvent, scene: &Scene<'_>) -> Answer;

    /// Handles pasted text; `None` by default, then it goes to the draft.
    fn paste(&mut self, _text: &str) -> Option<Answer> {
        None
    }

    /// Called when the user has closed it without a choice; by default nothing of it stays.
    fn closed(&self, _app: &mut App) {}

    /// Scrolls by one notch of the wheel, -1 or 1; ignored by default.
    fn wheel(&mut self, _by: isize) {}

    /// The list that a click may choose from: of the entries on the screen the one under the pointer; none by default.
    fn list(&self) -> Option<&ListCursor> {
        None
    }

    /// Handles a click that chooses nothing from [`Self::list`]; returns false if nothing is to be pressed there.
    fn click(&mut self, _cell: Position) -> bool {
        false
    }

    /// The place that it wants; the whole page by default.
    fn placement(&self) -> Placement {
        Placement::Page
    }

    /// Stands in place of an empty draft while the keys go here.
    fn placeholder(&self) -> &'static str {
        match self.placement() {
            Placement::Page => t!("composer-on-page"),
            Placement::Popup { .. } | Placement::Beside => t!("composer-on-list"),
        }
    }

    /// Most columns that it uses as a page: those of prose by default, so that what stands at the right is not far away.
    fn most_columns(&self) -> u16 {
        PAGE_MEASURE
    }

    /// Draws itself into `area`, which is blank; only what is in view is laid out. `links` collects the links of its cells.
    fn render(&mut self, area: Rect, buf: &mut Buffer, links: &mut Links, scene: &Scene<'_>);

    /// The caret's cell in the area of the last drawing; `None` if nothing is typed here.
    fn caret(&self, _area: Rect) -> Option<Position> {
        None
    }

    /// Keys and one word for what each does, for the footer; the first ones matter most.
    fn hints(&self) -> Vec<(&'static str, &'static str)>;

    /// The number of first hints that decide on what is in view; none by default.
    fn decisions(&self) -> usize {
        0
    }

    /// The content as lines of plain text, and how to go on; without the latter the overlay closes once it was read.
    /// `shown` is its last drawing.
    fn spoken(&self, shown: &Buffer) -> (Vec<String>, Option<&'static str>) {
        (spoken::drawn(shown), Some(t!("plain-how-keys")))
    }

    /// The name of its type.
    #[cfg(test)]
    fn type_name(&self) -> &'static str {
        std::any::type_name::<Self>().rsplit("::").next().unwrap_or_default()
    }

    /// Keys for a line that was typed for a screen reader, or an error for the user. `is_typed`: a person typed it.
    fn keys_of(&mut self, line: &str, _is_typed: bool) -> Result<Vec<KeyCode>, String> {
        Ok(plain_keys(line))
    }
}

/// The key of that name, else a key for each letter.
pub fn plain_keys(line: &str) -> Vec<KeyCode> {
    match line {
        "enter" => vec![KeyCode::Enter],
        "up" => vec![KeyCode::Up],
        "down" => vec![KeyCode::Down],
        "tab" => vec![KeyCode::Tab],
        _ => line.chars().map(KeyCode::Char).collect(),
    }
}

/// Columns of a page whose right edge is where the facts of the transcript's documents are.
pub const PAGE_MEASURE: u16 = (GUTTER + MEASURE) as u16 - PAGE_INDENT;

/// The place of an overlay on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Instead of the transcript.
    Page,
    /// Above the composer, with at most so many columns and lines.
    Popup { columns: usize, lines: usize },
    /// At the right of the transcript; over it where there is little room.
    Beside,
}

/// The state that overlays may read.
pub struct Scene<'a> {
    pub transcript: &'a Transcript,
    pub hunk_decisions: &'a HunkDecisions,
    pub theme: &'a Theme,
    pub colours: &'a dyn Colours,
    /// Grows whenever code got its colours.
    pub colours_version: u64,
    /// Unchanged lines shown around each change.
    pub context_lines: usize,
    pub output_rows: usize,
    /// Milliseconds since the Unix epoch.
    pub now_ms: u64,
}

impl<'a> Scene<'a> {
    pub fn of(
        conversation: &'a Conversation,
        questions: &'a Questions,
        appearance: &'a Appearance,
        now_ms: u64,
    ) -> Self {
        Self {
            transcript: &conversation.transcript,
            hunk_decisions: &questions.hunk_decisions,
            theme: &appearance.theme,
            colours: appearance.colours.as_ref(),
            colours_version: appearance.colours_version,
            context_lines: appearance.context_lines,
            output_rows: appearance.output_rows,
            now_ms,
        }
    }

    /// The context to draw a document in full on a page, which depends on little of the conversation.
    pub fn render_context(&self, width: u16) -> RenderContext<'a> {
        RenderContext {
            width: usize::from(width),
            fold: Fold::Full,
            selected: false,
            elsewhere: false,
            read_only: false,
            joined: false,
            context: ContextLines::new(self.context_lines),
            output_rows: self.output_rows,
            approval: None,
            newest: false,
            superseded: false,
            waits: false,
            turn: self.transcript.exchanges.last().map(|it| it.turn).unwrap_or_default(),
            colours: self.colours,
            colours_version: self.colours_version,
            todos: &self.transcript.todos,
            progress: None,
            now_ms: self.now_ms,
            form: None,
            todo: None,
            cited: Cited::Unread,
            root: None,
            theme: Some(self.theme),
            times: None,
        }
    }
}

#[cfg(test)]
impl Scene<'_> {
    /// Calls `f` with a scene of this transcript, without colours or decisions, at the time 0.
    pub fn test<R>(transcript: &Transcript, f: impl FnOnce(&Scene<'_>) -> R) -> R {
        f(&Scene {
            transcript,
            hunk_decisions: &HunkDecisions::default(),
            theme: &Theme::built_in("sheaf-dark").unwrap(),
            colours: &crate::text::NoColours,
            colours_version: 0,
            context_lines: crate::text::diff::CONTEXT_LINES,
            output_rows: 8,
            now_ms: 0,
        })
    }

    /// Draws an overlay alone; returns its lines without blanks at their ends.
    pub fn drawn(overlay: &mut dyn Overlay, transcript: &Transcript, columns: u16, lines: u16) -> Vec<String> {
        // One column more on each side shows what leaves its area.
        let mut buffer = Buffer::empty(Rect::new(0, 0, columns + 2, lines));
        let area = Rect::new(1, 0, columns, lines);
        Scene::test(transcript, |scene| {
            overlay.render(area, &mut buffer, &mut Links::new(), scene);
        });
        let lines = buffer.area.rows().map(|row| {
            assert_eq!(buffer[(0, row.y)].symbol(), " ");
            assert_eq!(buffer[(columns + 1, row.y)].symbol(), " ");
            crate::tui::terminal::surface::text_of(
                &buffer,
                Rect {
                    x: 1,
                    width: columns,
                    ..row
                },
            )
        });
        lines.map(|it| it.trim_end().to_owned()).collect()
    }
}

/// The open overlays, the top one last.
#[derive(Default)]
pub struct Overlays {
    stack: Vec<Box<dyn Overlay>>,
    /// The toast that one of them showed last: it may name keys that only work while that one is open.
    said: Option<String>,
}

impl Overlays {
    pub fn push(&mut self, overlay: impl Overlay) {
        self.stack.push(Box::new(overlay));
    }

    /// Notes the toast of one of them.
    pub(super) fn note(&mut self, said: &str) {
        self.said = Some(said.to_owned());
    }

    pub(super) fn take_said(&mut self) -> Option<String> {
        self.said.take()
    }

    /// Returns true if one takes more room than a popup.
    pub fn has_page(&self) -> bool {
        self.stack
            .iter()
            .any(|it| !matches!(it.placement(), Placement::Popup { .. }))
    }

    /// The top overlay, if it is a `T`.
    pub fn top<T: Overlay>(&mut self) -> Option<&mut T> {
        let top: &mut dyn Any = self.stack.last_mut()?.as_mut();
        top.downcast_mut()
    }

    /// The topmost `T` for which `is_it` holds: help may have been opened over it meanwhile.
    pub fn find<T: Overlay>(&mut self, is_it: impl Fn(&T) -> bool) -> Option<&mut T> {
        self.stack.iter_mut().rev().find_map(|it| {
            let it: &mut dyn Any = it.as_mut();
            it.downcast_mut().filter(|it| is_it(it))
        })
    }

    /// Closes every `T` for which `is_it` holds; returns true if there was one.
    pub fn close<T: Overlay>(&mut self, is_it: impl Fn(&T) -> bool) -> bool {
        let before = self.stack.len();
        self.stack.retain(|it| {
            let it: &dyn Any = it.as_ref();
            !it.downcast_ref().is_some_and(&is_it)
        });
        self.stack.len() < before
    }
}

impl Deref for Overlays {
    type Target = Vec<Box<dyn Overlay>>;

    fn deref(&self) -> &Self::Target {
        &self.stack
    }
}

impl DerefMut for Overlays {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.stack
    }
}

/// The result of a key or a paste.
#[expect(clippy::large_enum_variant, reason = "one lives at a time, for a moment")]
pub enum Answer {
    /// The overlay stays and keeps the input.
    Taken,
    /// It closes.
    Close,
    /// It closes with this choice.
    Chosen(Choice),
    /// It stays; the choice is applied meanwhile.
    Live(Choice),
    /// It stays; the effect runs.
    Does(Effect),
    /// It stays and shows a toast.
    Said(String),
    /// It closes, and the key begins or continues the draft.
    Typed(KeyEvent),
}
