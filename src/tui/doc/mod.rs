//! How documents look: a function from a document and a width to rows.
//!
//! A look asks for roles, never for colours, survives width 1 and doubles every colour with a sign or a word. The gutter
//! (address and glyph) is painted by the transcript pane; rows start at the content's first column. [`Sheet`] remembers
//! the rows of one document and only lays out again what may have changed: a document that grows is laid from its last
//! unfinished line or block on.

mod approval;
mod clarification;
mod code;
mod code_block;
mod code_reference;
mod copy;
mod ending;
mod error;
mod file_edit;
mod form;
mod heading;
mod lines;
#[cfg(test)]
mod matrix;
mod message;
mod plan;
#[cfg(test)]
mod properties;
mod terminal_command;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod text;
mod thinking;
mod todo;
mod todo_update;
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
    locale::figure,
    protocol::{Applied, Document, Kind, QuestionKind, Turn, View},
    say,
    text::{Clean, CodeLine, Colours, Mark, Role, Row, Span, markdown::Flow},
    transcript::Todos,
};

pub use approval::command_asked_for;
pub use copy::{code_only, copy_text, markdown};
pub use error::is_retryable;
pub use file_edit::{joins, name as operation, sides};
pub use form::{Form, Outcome, approval_keys};
pub use heading::TYPING;

use lines::{Counted, Lines};
use terminal_command::Printed;

/// Prose wider than this is hard to read.
pub const MEASURE: usize = 112;

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
    /// Nothing replaces it: the newest plan, or a document of the last turn. It follows the live list and may be tried
    /// again; older ones stay as they were sent.
    pub newest: bool,
    /// Ids of documents are unique inside a turn only.
    pub turn: Turn,
    pub colours: &'a dyn Colours,
    /// Grows whenever coloured code may have become ready.
    pub colours_version: u64,
    /// The conversation's live list.
    pub todos: &'a Todos,
    /// Completed todos and all todos as this document left them.
    pub progress: Option<(usize, usize)>,
    /// Milliseconds since the Unix epoch; what runs shows how long it has, in whole seconds.
    pub now_ms: u64,
    /// The answer in the making, for the question that waits.
    pub form: Option<&'a Form>,
    /// The todo of the live list that is selected, in the plan that it belongs to.
    pub todo: Option<usize>,
    pub cited: Cited<'a>,
    /// The workspace's folder, where the terminal takes links to files.
    pub root: Option<&'a str>,
}

/// What a cited file holds now at the cited lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Cited<'a> {
    /// Not read yet, or it cannot be.
    #[default]
    Unread,
    /// There is no such file.
    Missing,
    Lines(&'a str),
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
    /// The last row says how much is not shown.
    has_note: bool,
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
    /// What is said about the file that is cited.
    said_of_file: Option<&'static str>,
    newest: bool,
    /// The version of the answer in the making, counted from 1.
    form: u64,
    todo: Option<usize>,
    progress: Option<(usize, usize)>,
    colours: u64,
}

/// What a kind keeps between two calls, so that work is proportional to what is new.
#[derive(Default)]
struct Memo {
    reach: Reach,
    /// Rows above what grows.
    head: usize,
    lines: Lines,
    counted: Counted,
    flow: Option<Flow>,
    /// The rows of `flow` where they are not all of the rows.
    flow_rows: Vec<Row>,
    printed: Option<Printed>,
    found: Option<file_edit::Found>,
}

impl Memo {
    /// For another width or fold: what was read stays, what was laid goes.
    fn reshape(&mut self) {
        self.head = 0;
        self.lines.reshape();
        self.flow_rows.clear();
        if let Some(printed) = &mut self.printed {
            printed.reshape();
        }
    }
}

/// What a kind that is laid out as a whole looks like.
struct Leaf {
    glyph: Span,
    rows: Vec<Row>,
    is_line: bool,
}

/// Of a document no more is laid out than this: a row costs many times its text, and nobody reads so far.
const SHOWN_BYTES: usize = 1 << 20;
const SHOWN_LINES: usize = 20_000;

/// How much of a text is laid out, so that the beginning of one that grows is counted once.
#[derive(Default)]
struct Reach {
    /// Bytes that were counted, and the line breaks in them.
    bytes: usize,
    breaks: usize,
}

impl Reach {
    /// The part of a text that is laid out. While a document is open its text only grows, and so does this.
    fn of<'a>(&mut self, text: &'a str, is_open: bool) -> &'a str {
        let most = text.get(..text.floor_char_boundary(SHOWN_BYTES)).unwrap_or_default();
        if !is_open || most.len() < self.bytes {
            *self = Self::default();
        }
        let new = most.get(self.bytes..).unwrap_or_default();
        let left = SHOWN_LINES - self.breaks;
        let mut breaks = 0;
        for (at, _) in new.match_indices('\n') {
            breaks += 1;
            if breaks == left {
                return most.get(..=self.bytes + at).unwrap_or_default();
            }
        }
        self.breaks += breaks;
        self.bytes = most.len();
        most
    }
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

    /// Some of its code has no colours yet.
    pub fn is_colouring(&self) -> bool {
        self.is_colouring
    }

    /// Of Markdown that is being written: rows that stay as they are, and the bytes of the text that they show.
    pub fn settled(&self) -> (usize, usize) {
        self.memo.flow.as_ref().map_or((0, 0), Flow::settled)
    }

    fn lay(&mut self, document: &Document, look: &Look<'_>) -> Option<usize> {
        // What grows has to find its rows as it left them.
        let had_note = std::mem::take(&mut self.has_note);
        if had_note {
            self.rows.pop();
        }
        let before = self.rows.len();
        let mut hidden = 0;
        let changed = self.lay_shown(document, look, &mut hidden);
        if hidden == 0 {
            return if had_note {
                Some(changed.unwrap_or(before).min(before))
            } else {
                changed
            };
        }
        let note = say!("document-hidden", size = figure::bytes(hidden as u64).as_str());
        self.rows.push(Row::of([Span::new(Clean::new(&note), Role::Faint)]));
        self.has_note = true;
        Some(changed.unwrap_or(before).min(before))
    }

    /// `hidden` becomes how many bytes are too much to show.
    fn lay_shown(&mut self, document: &Document, look: &Look<'_>, hidden: &mut usize) -> Option<usize> {
        if look.fold == Fold::Folded {
            return self.replace(folded(document, look));
        }
        let mut reach = std::mem::take(&mut self.memo.reach);
        let mut show = |text: &mut &str| {
            let shown = reach.of(text, document.is_open());
            *hidden = text.len() - shown.len();
            *text = shown;
        };
        let changed = match document.view() {
            View::Text(mut it) => {
                show(&mut it.content);
                let is_whole = it.content.len() == document.text().len();
                Some(text::grow(&it, is_whole, document, look, self))
            }
            View::CodeReference(mut it) => {
                show(&mut it.content);
                code_reference::grow(&it, document, look, self)
            }
            View::CodeBlock(mut it) => {
                show(&mut it.content);
                code_block::grow(&it, document, look, self)
            }
            View::FileEdit(mut it) => {
                // Anything but a new file as a whole shows its ends only.
                if let (Some(content), None, Fold::Full) = (&mut it.content, &it.diff, look.fold) {
                    show(content);
                }
                file_edit::grow(&it, document, look, self)
            }
            View::ToolCall(it) => self.replace(tool_call::leaf(&it, document, look)),
            View::TerminalCommand(it) => Some(terminal_command::grow(&it, document, look, self)),
            View::Plan(mut it) => {
                show(&mut it.content);
                Some(plan::grow(&it, document, look, self))
            }
            View::Clarification(it) => self.replace(clarification::leaf(&it, document, look, form(document, look))),
            View::Error(it) => self.replace(error::leaf(&it, look)),
            View::TodoUpdate(it) => self.replace(todo_update::leaf(&it, look)),
            View::Unknown(it) => self.replace(unknown::leaf(&it, look)),
        };
        self.memo.reach = reach;
        changed
    }

    /// Takes the key; whether rows have to be made for it. What was remembered for another shape is forgotten.
    fn turns_to(&mut self, key: Key) -> bool {
        if self.key == Some(key) {
            return false;
        }
        LAYOUTS.fetch_add(1, Ordering::Relaxed);
        let fits = |old: &Key| old.width == key.width && old.fold == key.fold;
        if !self.key.as_ref().is_some_and(fits) {
            self.memo.reshape();
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

    /// Replaces the rows above what grows; whether they changed.
    fn set_head(&mut self, head: Vec<Row>) -> bool {
        let old = self.memo.head.min(self.rows.len());
        if self.rows.get(..old) == Some(head.as_slice()) && self.memo.head == head.len() {
            return false;
        }
        self.memo.head = head.len();
        self.rows.splice(..old, head);
        true
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
        match document.kind {
            Kind::Text | Kind::CodeBlock | Kind::Other(_) => {}
            Kind::CodeReference => {
                key.links = look.root.is_some();
                if let View::CodeReference(it) = document.view() {
                    key.said_of_file = code_reference::said_of_file(&it, document, look.cited);
                }
            }
            Kind::FileEdit => {
                key.links = look.root.is_some();
                key.read_only = look.read_only;
                key.joined = look.joined;
            }
            Kind::ToolCall => key.second = second(document, look),
            Kind::TerminalCommand => {
                key.second = second(document, look);
                key.read_only = look.read_only;
            }
            Kind::Plan => {
                key.newest = look.newest;
                key.selected = look.selected;
                key.todo = look.todo;
                if plan::is_live(document, look) {
                    key.todos = 1 + look.todos.version;
                }
            }
            Kind::Clarification => key.form = form(document, look).map_or(0, |it| 1 + it.version),
            Kind::Error => key.newest = look.newest,
            Kind::TodoUpdate => {
                key.todos = 1 + look.todos.version;
                key.progress = look.progress;
            }
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
            said_of_file: None,
            newest: false,
            form: 0,
            todo: None,
            progress: None,
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
        View::TerminalCommand(it) => terminal_command::is_running(&it),
        View::Text(_)
        | View::CodeReference(_)
        | View::CodeBlock(_)
        | View::FileEdit(_)
        | View::Plan(_)
        | View::Clarification(_)
        | View::Error(_)
        | View::TodoUpdate(_)
        | View::Unknown(_) => false,
    }
}

/// The change of a file that waits to be allowed, as a document that is not written yet; `None`: this asks for no such thing.
pub fn staged(document: &Document) -> Option<Document> {
    let View::Clarification(view) = document.view() else {
        return None;
    };
    if view.kind != QuestionKind::Approval || view.outcome.is_some() {
        return None;
    }
    let mut change = approval::subject(&view, document).filter(|it| it.kind == Kind::FileEdit)?;
    change
        .metadata
        .insert("applied".to_owned(), Applied::Pending.as_str().into());
    Some(change)
}

/// What has to be seen beside a change that waits to be allowed.
pub fn caution(document: &Document, columns: usize) -> Vec<Row> {
    if staged(document).is_some() {
        approval::caution(document, columns)
    } else {
        Vec::new()
    }
}

/// One line that says what the document is, for the outline and for notifications.
pub fn summary(document: &Document) -> Clean {
    match document.view() {
        View::Text(it) => text::summary(&it),
        View::CodeReference(it) => code_reference::summary(&it),
        View::CodeBlock(it) => code_block::summary(&it),
        View::FileEdit(it) => file_edit::summary(&it),
        View::ToolCall(it) => tool_call::summary(&it),
        View::TerminalCommand(it) => terminal_command::summary(&it),
        View::Plan(it) => plan::summary(&it),
        View::Clarification(it) => clarification::summary(&it, document),
        View::Error(it) => error::summary(&it),
        View::TodoUpdate(it) => todo_update::summary(&it),
        View::Unknown(it) => unknown::summary(&it),
    }
}

/// The folded state: glyph, word, summary and facts in one line.
fn folded(document: &Document, look: &Look<'_>) -> Leaf {
    match document.view() {
        View::Text(it) => text::folded(&it, look),
        View::CodeReference(it) => code_reference::folded(&it, document, look),
        View::CodeBlock(it) => code_block::folded(&it, document, look),
        View::FileEdit(it) => file_edit::folded(&it, document, look),
        View::ToolCall(it) => tool_call::leaf(&it, document, look),
        View::TerminalCommand(it) => terminal_command::folded(&it, document, look),
        View::Plan(it) => plan::folded(&it, document, look),
        View::Clarification(it) => clarification::folded(&it, document, look, form(document, look)),
        View::Error(it) => error::folded(&it, look),
        View::TodoUpdate(it) => todo_update::leaf(&it, look),
        View::Unknown(it) => unknown::folded(&it, look),
    }
}

/// The answer in the making, if it is for this document.
fn form<'a>(document: &Document, look: &Look<'a>) -> Option<&'a Form> {
    look.form.filter(|it| it.document == document.id)
}

/// Whether what a document did to files was taken back.
pub fn is_undone(document: &Document) -> bool {
    document.metadata.get("undone").is_some_and(|it| it == true)
}

/// What is said of a document whose doing was taken back.
pub fn undone(document: &Document) -> Option<Clean> {
    let word = match document.metadata.get("undone") {
        Some(serde_json::Value::Bool(true)) => Some(say!("document-undone")),
        Some(serde_json::Value::String(word)) if word == "partly" => Some(say!("document-undone-partly")),
        Some(_) | None => None,
    };
    word.map(|it| heading::signed("↶", it))
}

/// What changes something although the mode says that nothing is changed.
fn badge() -> Span {
    // It is not broken between its words.
    let word = say!("document-read-only").replace(' ', "\u{a0}");
    Span::new(format!(" ✗\u{a0}{word} "), Role::Error).marked(Mark::REVERSE | Mark::BOLD)
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
