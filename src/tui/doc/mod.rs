//! How documents look: a function from a document and a width to rows.
//!
//! A look asks for roles, never for colours, survives width 1 and doubles every colour with a sign or a word. The gutter
//! (address and glyph) is painted by the transcript pane; rows start at the content's first column. [`Sheet`] remembers
//! the rows of one document and only lays out again what may have changed: a document that grows is laid from its last
//! unfinished line or block on.

mod ending;
mod heading;
mod lines;
mod message;
#[cfg(test)]
mod testing;
mod text;
mod thinking;
mod tool_call;
mod unknown;
mod value;

use std::{
    cell::Cell,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{
    protocol::{Document, Turn, View},
    text::{Clean, CodeLine, Colours, Role, Row, Span},
    transcript::Todos,
};

use lines::Lines;

/// Everything a look may depend on besides the document.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// Columns from the content's first column to the right margin, at least 1.
    pub width: usize,
    pub fold: Fold,
    /// The reader is on this document: hints about keys may show.
    pub selected: bool,
    /// The answer's mode changes nothing on disk: what does so all the same is marked.
    pub read_only: bool,
    /// The document before this one is the same file and call: its header stands for this hunk too.
    pub joined: bool,
    /// The newest plan follows the live list; older ones stay as they were sent.
    pub newest: bool,
    /// Ids of documents are unique inside a turn only.
    pub turn: Turn,
    pub colours: &'a dyn Colours,
    /// Grows whenever coloured code may have become ready.
    pub colours_version: u64,
    /// The conversation's live list.
    pub todos: &'a Todos,
    /// Milliseconds since the Unix epoch; what runs shows how long it has, in whole seconds.
    pub now_ms: u64,
    /// What the cited file holds now at the cited lines, if it could be read.
    pub cited: Option<&'a str>,
    /// The workspace's folder, where the terminal takes links to files.
    pub root: Option<&'a str>,
}

/// How much of a document is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fold {
    /// One line.
    Folded,
    /// What its kind shows unasked: all of a text, head and tail of an output, one line of a call.
    #[default]
    Usual,
    /// Everything.
    Full,
}

/// The remembered look of one document, of a message or of a stretch of thinking.
#[derive(Default)]
pub struct Sheet {
    /// One sign of one column, or nothing.
    pub glyph: Span,
    pub rows: Vec<Row>,
    /// A single line that may stand directly under another such line.
    pub is_line: bool,
    /// The glyph stands before every row, as a bar.
    pub is_bar: bool,
    key: Option<Key>,
    memo: Memo,
    /// Some code was not coloured yet when the rows were made.
    is_colouring: bool,
}

/// What the rows were made for. What a kind does not show is zero in its key, so that it cannot cost it a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    version: u64,
    is_open: bool,
    width: usize,
    fold: Fold,
    selected: bool,
    read_only: bool,
    joined: bool,
    links: bool,
    /// The version of the live list, counted from 1.
    todos: u64,
    second: u64,
    differs: bool,
    colours: u64,
}

/// What a kind keeps between two calls, so that work is proportional to what is new.
#[derive(Default)]
struct Memo {
    lines: Lines,
}

/// What a kind that is laid out as a whole looks like.
struct Leaf {
    glyph: Span,
    rows: Vec<Row>,
    is_line: bool,
}

/// How often documents were really laid out, for the tests that hold work to what is new or visible.
static LAYOUTS: AtomicU64 = AtomicU64::new(0);

/// How often any document was really laid out since the program began.
pub fn layouts() -> u64 {
    LAYOUTS.load(Ordering::Relaxed)
}

impl Sheet {
    /// Brings the rows up to date. The first row that may have changed, counted from 0; `None`: nothing did.
    ///
    /// A sheet belongs to one document. While that is open its content only grows at the end.
    pub fn update(&mut self, document: &Document, look: &Look<'_>) -> Option<usize> {
        let mut key = Key::of(document, look);
        if self.is_colouring {
            key.colours = look.colours_version;
        }
        if !self.turns_to(key) {
            return None;
        }
        let watch = Watch::new(look.colours);
        let look = &Look {
            width: look.width.max(1),
            colours: &watch,
            ..*look
        };
        let changed = self.lay(document, look);
        self.is_colouring = watch.is_waiting.get();
        if let Some(key) = &mut self.key {
            key.colours = if self.is_colouring { look.colours_version } else { 0 };
        }
        changed
    }

    fn lay(&mut self, document: &Document, look: &Look<'_>) -> Option<usize> {
        if look.fold == Fold::Folded {
            return self.replace(folded(document, look));
        }
        match document.view() {
            View::Text(it) => text::grow(&it, document, look, self),
            View::ToolCall(it) => self.replace(tool_call::leaf(&it, document, look)),
            View::Unknown(it) => self.replace(unknown::leaf(&it, look)),
            View::CodeReference(_)
            | View::CodeBlock(_)
            | View::FileEdit(_)
            | View::TerminalCommand(_)
            | View::Plan(_)
            | View::Clarification(_)
            | View::Error(_)
            | View::TodoUpdate(_) => self.replace(unknown::leaf(&bare(document), look)),
        }
    }

    /// Takes the key; whether rows have to be made for it. What was remembered for another shape is forgotten.
    fn turns_to(&mut self, key: Key) -> bool {
        if self.key == Some(key) {
            return false;
        }
        LAYOUTS.fetch_add(1, Ordering::Relaxed);
        let fits = |old: &Key| old.width == key.width && old.fold == key.fold;
        if !self.key.as_ref().is_some_and(fits) {
            self.memo = Memo::default();
            self.rows.clear();
        }
        self.key = Some(key);
        true
    }

    fn replace(&mut self, leaf: Leaf) -> Option<usize> {
        let same = self.rows.iter().zip(&leaf.rows).take_while(|(old, new)| old == new);
        let first = same.count();
        let is_same = first == self.rows.len() && first == leaf.rows.len();
        let changed = if self.sign(leaf.glyph, leaf.is_line) {
            Some(0)
        } else if is_same {
            None
        } else {
            Some(first)
        };
        self.rows = leaf.rows;
        changed
    }

    /// Sets what stands beside the rows; whether that changed.
    fn sign(&mut self, glyph: Span, is_line: bool) -> bool {
        let changed = self.glyph != glyph || self.is_line != is_line;
        self.glyph = glyph;
        self.is_line = is_line;
        changed
    }
}

impl Key {
    fn of(document: &Document, look: &Look<'_>) -> Self {
        let mut key = Self {
            version: document.version,
            is_open: document.is_open(),
            ..Self::shape(look)
        };
        match document.view() {
            View::ToolCall(_) => key.second = second(document, look),
            _ => {}
        }
        key
    }

    fn shape(look: &Look<'_>) -> Self {
        Self {
            version: 0,
            is_open: false,
            width: look.width.max(1),
            fold: look.fold,
            selected: false,
            read_only: false,
            joined: false,
            links: false,
            todos: 0,
            second: 0,
            differs: false,
            colours: 0,
        }
    }
}

/// The second of the clock that a running document shows.
fn second(document: &Document, look: &Look<'_>) -> u64 {
    if needs_clock(document) {
        1 + elapsed_ms(document, look) / 1000
    } else {
        0
    }
}

fn elapsed_ms(document: &Document, look: &Look<'_>) -> u64 {
    look.now_ms.saturating_sub(document.started_ms)
}

/// Whether its look shows how long it has been running, so that it has to be looked at every second.
pub fn needs_clock(document: &Document) -> bool {
    match document.view() {
        View::ToolCall(it) => tool_call::is_running(&it, document),
        _ => false,
    }
}

/// One line that says what the document is, for the outline and for notifications.
pub fn summary(document: &Document) -> Clean {
    match document.view() {
        View::Text(it) => text::summary(&it),
        View::ToolCall(it) => tool_call::summary(&it),
        View::Unknown(it) => unknown::summary(&it),
        _ => unknown::summary(&bare(document)),
    }
}

/// The folded state: glyph, word, summary and facts in one line.
fn folded(document: &Document, look: &Look<'_>) -> Leaf {
    match document.view() {
        View::Text(it) => text::folded(&it, look),
        View::ToolCall(it) => tool_call::leaf(&it, document, look),
        View::Unknown(it) => unknown::folded(&it, look),
        _ => unknown::folded(&bare(document), look),
    }
}

/// Names a block of code across calls.
fn seed(document: &Document, look: &Look<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (look.turn, &document.id).hash(&mut hasher);
    hasher.finish()
}

/// Passes colours on and notes whether some are still missing.
struct Watch<'a> {
    colours: &'a dyn Colours,
    is_waiting: Cell<bool>,
}

impl<'a> Watch<'a> {
    fn new(colours: &'a dyn Colours) -> Self {
        Self {
            colours,
            is_waiting: Cell::new(false),
        }
    }
}

impl Colours for Watch<'_> {
    fn code(&self, block: u64, language: &str, source: &str, closed: bool) -> Arc<Vec<CodeLine>> {
        let lines = self.colours.code(block, language, source, closed);
        // What is open is looked at again anyway; counting its lines each time would cost more than it saves.
        if !closed || lines.len() < source.lines().count() {
            self.is_waiting.set(true);
        }
        lines
    }
}

fn bare(document: &Document) -> crate::protocol::document::Unknown<'_> {
    crate::protocol::document::Unknown {
        kind: document.kind.as_str(),
        content: document.content.as_deref(),
        metadata: &document.metadata,
    }
}
