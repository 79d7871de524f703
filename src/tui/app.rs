//! The state of the screen. One struct, changed by `update` and the actions only.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
};

use super::{
    doc::{Cited, Form},
    effect::Effect,
    field::Field,
    keymap::Keymap,
    layer::Layer,
    pane::{Item, Pane, transcript::Shown},
    status::Status,
    view::{Chrome, Layout},
};
use crate::{
    config::Settings,
    link::{About, Link},
    protocol::{Document, DocumentId, Kind, Mode, Position, Progress, Submit, Turn, View},
    text::Colours,
    theme::Theme,
    transcript::{Place, Transcript, is_approval},
};

/// Where printable keys go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Focus {
    #[default]
    Composer,
    Transcript,
}

/// What the mouse does here; what it does not do is the terminal's own business.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mouse {
    Off,
    /// It scrolls.
    Wheel,
    /// It scrolls, selects and marks text.
    #[default]
    Full,
}

impl Mouse {
    pub const ALL: [Self; 3] = [Self::Full, Self::Wheel, Self::Off];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Wheel => "wheel",
            Self::Full => "full",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}

pub struct App {
    pub link: Arc<dyn Link>,
    pub about: About,
    pub transcript: Transcript,
    /// The transcript was made anew as far as here: what comes is read from here on.
    pub reads_from: Option<Position>,
    /// So many bytes of what was said before the end of a long conversation were taken up.
    pub looked_back: u64,
    /// What is written stays where it is: a long conversation is read from its first entry.
    pub reads_whole: bool,
    pub pane: Pane,
    pub composer: Composer,
    pub focus: Focus,
    pub layers: Vec<Layer>,
    pub mode: Mode,
    /// The model that was chosen here; `None`: the link's own.
    pub model: Option<String>,
    /// How hard the model is to think; `None`: as the settings say.
    pub effort: Option<&'static str>,
    pub status: Status,
    pub place: Where,
    pub asking: Asking,
    /// One short sentence, until the next key.
    pub toast: Option<String>,
    pub theme: Theme,
    pub themes: Themes,
    pub keymap: Keymap,
    pub settings: Settings,
    /// Milliseconds since the Unix epoch, as of the last message.
    pub now_ms: u64,
    pub size: (u16, u16),
    /// What the left button of the mouse did last.
    pub clicks: Clicks,
    /// When Ctrl+C was pressed last with nothing to stop or clear.
    pub last_interrupt_ms: u64,
    /// Actions that only developers of this program need are there.
    pub is_developer: bool,
    /// Grows with every change of colours.
    pub look_version: u64,
    pub colours: Arc<dyn Colours + Send + Sync>,
    /// Grows whenever code got its colours.
    pub colours_version: u64,
    pub show_thinking: bool,
    /// Each document says when it began and how long it took.
    pub show_times: bool,
    pub search: Option<super::search::Search>,
    pub selection: Option<super::selection::Selection>,
    /// Cells of the transcript that are lit, as of the last `measure`.
    pub lights: Vec<super::view::Light>,
    pub mouse: Mouse,
    pub has_keyboard_protocol: bool,
    /// What is wrong with the configuration, for the first screen.
    pub problems: Vec<String>,
    /// The conversation is in memory only: that stands on the screen as long as it is so.
    pub is_unstored: bool,
    /// As of the last `measure`.
    pub layout: Layout,
    /// The lines around the transcript; `None` when they have to be made anew.
    pub chrome: Option<Chrome>,
    /// Without the alternate screen: what of the conversation stands in the terminal's own lines.
    pub inline: Option<super::inline::Inline>,
    /// What of the conversation's pictures the terminal has.
    pub images: super::image::Images,
    /// Sequences for the terminal that paint nothing (a copy), written before the next frame.
    pub aside: Vec<u8>,
}

/// The folder that the conversation is about.
#[derive(Clone, Debug, Default)]
pub struct Where {
    pub workspace: PathBuf,
    /// The user's own folder.
    pub home: Option<PathBuf>,
    /// As the header shows it: `~/code/shop`.
    pub shown: String,
    pub branch: Option<String>,
}

/// What may be chosen for colours, and what the terminal said.
#[derive(Clone, Debug, Default)]
pub struct Themes {
    pub names: Vec<String>,
    /// `auto` or a name.
    pub chosen: String,
    pub folder: PathBuf,
    /// Colours for code that stand in for the theme's own.
    pub syntax: crate::theme::Syntax,
    pub seen: crate::theme::Seen,
    pub surroundings: crate::theme::Surroundings,
}

/// Presses of the left button that follow each other at one place.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clicks {
    at_ms: u64,
    place: (u16, u16),
    pub count: u8,
    /// It went down in the draft, and marks there.
    pub in_draft: bool,
    /// When the window got the focus last.
    pub came_ms: Option<u64>,
}

/// Presses that follow each other within this are one gesture.
const CLICKS_MS: u64 = 400;

impl Clicks {
    pub fn press(&mut self, now_ms: u64, place: (u16, u16)) {
        let follows = place == self.place && now_ms.saturating_sub(self.at_ms) < CLICKS_MS;
        let count = if follows && self.count < 3 { self.count + 1 } else { 1 };
        *self = Self {
            at_ms: now_ms,
            place,
            count,
            in_draft: false,
            came_ms: self.came_ms,
        };
    }

    /// Whether it only brought the window to the front.
    pub fn is_arrival(&self) -> bool {
        self.came_ms
            .is_some_and(|it| self.at_ms.saturating_sub(it) < super::update::TOO_EARLY_MS)
    }
}

#[derive(Default)]
pub struct Composer {
    pub field: Field,
    /// Messages that wait until the running turn has ended, oldest first.
    pub queue: Vec<Submit>,
    /// Said to the running answer, and not heard yet.
    pub said: Vec<String>,
    /// The files that are offered for the `@` before the caret.
    pub mention: Option<Mention>,
    pub commands: super::command::Commands,
    /// The draft's version when a file was put in, with a space behind it.
    pub put_in: Option<u64>,
    pub history: History,
}

/// Files that are offered for an `@` in the draft.
#[derive(Clone, Debug, Default)]
pub struct Mention {
    /// What was typed behind the `@`.
    pub pattern: String,
    /// Documents by their addresses, behind a `#`, instead of files.
    pub is_documents: bool,
    /// What a document says, beside its address; what a symbol is, and where.
    pub about: Vec<String>,
    /// Somebody has moved in the list.
    pub is_moved: bool,
    pub files: Vec<String>,
    /// What is put into the draft for each of these, where that is not its name.
    pub places: Vec<String>,
    /// The files that were found, and the functions and types, with what they were found for: `files` is made of both.
    pub paths: Vec<String>,
    pub symbols: Vec<crate::protocol::SymbolPlace>,
    pub symbols_for: Option<String>,
    /// What they were found for; until they are found for the pattern, nothing can be chosen.
    pub found_for: Option<String>,
    /// Tab was pressed before they were found: the first one is meant.
    pub takes_first: bool,
    pub at: usize,
    /// Sent away, until something else is typed.
    pub is_hidden: bool,
}

impl Mention {
    pub fn is_shown(&self) -> bool {
        !self.is_hidden && !self.files.is_empty()
    }

    /// The list is that of what is typed.
    pub fn is_found(&self) -> bool {
        self.found_for.as_ref() == Some(&self.pattern)
    }
}

/// What was sent before, and the draft that was left for it.
#[derive(Default)]
pub struct History {
    pub sent: Vec<String>,
    /// Where in `sent` the field is; `None`: at the draft.
    pub at: Option<usize>,
    pub draft: String,
}

/// What the disk holds where a document cites it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Citation {
    /// It is being read, or cannot be.
    Unread,
    Missing,
    Lines(String),
}

impl Citation {
    pub fn as_cited(&self) -> Cited<'_> {
        match self {
            Self::Unread => Cited::Unread,
            Self::Missing => Cited::Missing,
            Self::Lines(lines) => Cited::Lines(lines),
        }
    }
}

/// Open questions and the answers in the making.
#[derive(Default)]
pub struct Asking {
    pub forms: HashMap<(Turn, DocumentId), Form>,
    /// Since when the question has the keys: what decides is ignored for a moment.
    pub since_ms: u64,
    /// The question took the focus by itself and gives it back.
    pub took_focus: bool,
    /// What the disk holds where documents cite it.
    pub cited: HashMap<(Turn, DocumentId), Citation>,
    /// The newest question that was already brought to the reader's notice.
    pub announced: Option<(Turn, DocumentId)>,
    /// Answered here; the event that closes it is on its way.
    pub sent: HashSet<(Turn, DocumentId)>,
    /// When a message was sent that has not come back as an event yet.
    pub submitted_ms: Option<u64>,
    /// What is said of the hunks of changes that wait.
    pub picks: super::picks::Picks,
}

impl App {
    /// The item under the reader's eye, if it is a document.
    pub fn selected(&self) -> Option<Place> {
        match self.pane.selected? {
            Item::Document(place) => Some(place),
            Item::Message(_) | Item::Thinking(..) | Item::Ending(_) => None,
        }
    }

    /// The open question that has the keys.
    pub fn question(&self) -> Option<Place> {
        if self.focus != Focus::Transcript {
            return None;
        }
        let place = self.selected()?;
        let document = self.transcript.get(place)?;
        self.transcript.is_waiting(place.exchange, document).then_some(place)
    }

    /// The plan that waits to be built. That of a recording was built, or not, long ago.
    pub fn plan_to_build(&self) -> Option<Place> {
        self.transcript.waiting_plan().filter(|_| !self.about.is_replay)
    }

    /// Keys that decide do nothing in the first moments of what they decide: they were meant for something else.
    pub fn is_too_early(&self) -> bool {
        self.now_ms.saturating_sub(self.asking.since_ms) < super::update::TOO_EARLY_MS
    }

    /// Whether the first page asks while the composer, still empty, has the keys.
    pub fn asks_from_the_composer(&self) -> bool {
        self.focus == Focus::Composer
            && self.composer.field.is_empty()
            && self
                .transcript
                .waiting()
                .is_some_and(|it| self.turn_of(it) == Turn(0) && !self.transcript.get(it).is_some_and(is_approval))
    }

    /// How many options the question that waits has at most.
    pub fn options_waiting(&self) -> usize {
        let document = self.transcript.waiting().and_then(|it| self.transcript.get(it));
        match document.map(Document::view) {
            Some(View::Clarification(it)) => it.questions.iter().map(|it| it.options.len()).max().unwrap_or(0),
            _ => 0,
        }
    }

    pub fn turn_of(&self, place: Place) -> Turn {
        self.transcript
            .exchanges
            .get(place.exchange)
            .map(|it| it.turn)
            .unwrap_or_default()
    }

    /// What the model takes in, in tokens: that of the last answer, because its tokens are the ones that are counted.
    pub fn window(&self) -> Option<u64> {
        self.transcript
            .context_window()
            .or(self.about.window)
            .filter(|it| *it > 0)
    }

    /// The model as it would be asked now.
    pub fn model_name(&self) -> Option<&str> {
        self.model.as_deref().or(self.about.model.as_deref())
    }

    pub fn is_busy(&self) -> bool {
        self.transcript.is_running()
    }

    /// Whether something in view shows the time as it passes.
    pub fn shows_time(&self) -> bool {
        let retrying = matches!(self.transcript.progress, Some(Progress::Retrying { .. }));
        (self.settings.motion && self.is_busy() && self.transcript.waiting().is_none())
            || retrying
            || self.pane.needs_clock(&self.transcript)
    }

    /// Since when the seconds are counted.
    pub fn clock_origin(&self) -> u64 {
        self.transcript.exchanges.last().map_or(0, |it| it.at_ms)
    }

    /// Citations in view that were not compared with the disk yet.
    pub fn citations(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        for shown in &self.pane.lines {
            let Shown::Row {
                item: Item::Document(place),
                row: 0,
            } = shown
            else {
                continue;
            };
            let Some(document) = self.transcript.get(*place) else {
                continue;
            };
            if document.kind != Kind::CodeReference || document.is_open() {
                continue;
            }
            let View::CodeReference(view) = document.view() else {
                continue;
            };
            let name = (self.turn_of(*place), document.id.clone());
            if self.asking.cited.contains_key(&name) {
                continue;
            }
            effects.push(Effect::Cite {
                turn: name.0,
                document: name.1.clone(),
                path: view.file_path.to_owned(),
                first: view.start_line,
                last: view.end_line,
            });
            self.asking.cited.insert(name, Citation::Unread);
        }
        effects
    }

    pub fn say(&mut self, text: impl Into<String>) {
        self.toast = Some(text.into());
    }
}
