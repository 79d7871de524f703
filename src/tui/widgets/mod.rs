//! Widgets of documents and panes.
//!
//! A document's widget asks for roles, never for colours, survives width 1 and pairs each colour with a sign or a word. Its
//! rows start at the content's first column; the transcript draws the gutter (address and glyph). [`DocumentState`] keeps
//! the rows of one document and lays out only what may have changed: a growing document from its last unfinished line or
//! block on.

mod action;
mod approval;
pub mod bar;
mod clarification;
mod code;
mod code_block;
mod code_reference;
pub mod composer;
mod copy;
mod decision;
mod ending;
mod error;
mod file_edit;
pub mod filter;
pub mod footer;
mod form;
mod heading;
mod item;
mod lines;
pub mod list;
#[cfg(test)]
mod matrix;
mod message;
mod plan;
#[cfg(test)]
mod properties;
pub mod queue;
pub mod row_key;
pub mod styled_line;
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
pub mod transcript;
mod unknown;
mod value;

use std::{
    cell::Cell,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use ratatui::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};

use crate::{
    locale::figure,
    protocol::{
        Applied, Document, Kind, QuestionKind, Turn, View,
        document::{UNDONE, change_check, hook_runs, with_view},
    },
    t,
    text::{
        Background, CodeLine, Colours, Modifier, Role, Sanitized, Span, StyledLine, diff::ContextLines, markdown::Flow,
        wrap::wrap,
    },
    theme::Theme,
    transcript::Todos,
    tui::terminal::surface::Links,
};

pub use approval::{approval_chords, command_asked_for};
pub use clarification::{first_row, question_rows};
pub use copy::{code_only, copy_text, markdown};
pub use error::{error_leaves_out, is_retryable};
pub use file_edit::{below, joins, name as operation, sides};
pub use form::{Form, Outcome, approval_keys};
pub use heading::{TYPING, key, key_at, with_code};

pub use action::{ActionWidget, action_line};
pub use ending::EndingWidget;
pub use message::{MessageWidget, message_leaves_out, message_text};
pub use thinking::ThinkingWidget;

use lines::{Counted, GrowingLines};
use styled_line::StyledLineWidget;
use terminal_command::Printed;

/// Prose wider than this is hard to read.
pub const MEASURE: usize = 112;

/// Everything a look may depend on besides the document.
#[derive(Clone, Copy)]
pub struct RenderContext<'a> {
    /// Columns from the content's first column to the right margin, at least 1.
    pub width: usize,
    pub fold: Fold,
    /// The reader is on this document: hints about keys may show.
    pub selected: bool,
    /// The reader is on another document: the keys that lead here are others than from the draft.
    pub elsewhere: bool,
    /// The answer's mode changes nothing on disk: what does so all the same is marked.
    pub read_only: bool,
    /// The document before this one is the same file and call: its header stands for this hunk too.
    pub joined: bool,
    /// Unchanged lines to show with a change.
    pub context: ContextLines,
    /// Lines of a command's output that stand for it.
    pub output_rows: usize,
    /// The approval that a change followed, which is not shown by itself.
    pub approval: Option<&'a Document>,
    /// Nothing replaces it: the newest plan, or a document of the last turn. It follows the live list and may be tried
    /// again; older ones stay as they were sent.
    pub newest: bool,
    /// A plan that a newer one has replaced.
    pub superseded: bool,
    /// A plan that waits to be built or changed.
    pub waits: bool,
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
    /// `None` where rows are laid out and not drawn.
    pub theme: Option<&'a Theme>,
    /// When the document began and how long it took, for the right end of its first row.
    pub times: Option<&'a Sanitized>,
}

impl RenderContext<'_> {
    /// The same for the width of an area, which is at least 1.
    fn of_width(&self, area: Rect) -> Self {
        Self {
            width: usize::from(area.width.max(1)),
            ..*self
        }
    }
}

/// The current content of a cited file at the cited lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Cited<'a> {
    /// Not read yet, or it cannot be.
    #[default]
    Unread,
    /// There is no such file.
    Missing,
    Lines(&'a str),
}

/// The disk's text where a document cites it.
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

/// The extent to which a document is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fold {
    /// One line.
    Folded,
    /// The default of its kind: all of a text, head and tail of an output, one line of a call.
    #[default]
    Usual,
    /// Everything.
    Full,
}

/// State of the widget of one document, message, stretch of thinking or ending: its rows, for a width.
///
/// A state belongs to one document. While that is open its content only grows at the end, and only rows that are new or
/// may have changed are laid out.
#[derive(Default)]
pub struct DocumentState {
    /// One sign of one column, or nothing; the transcript draws it.
    pub glyph: Span,
    pub rows: Vec<StyledLine>,
    /// A single line that may stand directly under another such line.
    pub is_line: bool,
    /// The glyph stands before every row, as a bar.
    pub is_bar: bool,
    /// Row that is drawn first, counted from 0.
    pub offset: usize,
    /// Links of the rows that were drawn last.
    pub links: Links,
    /// First row that may have changed in the last layout, counted from 0; `None`: none did.
    changed: Option<usize>,
    key: Option<Key>,
    memo: Memo,
    /// Some code was not coloured yet when the rows were made.
    is_colouring: bool,
    /// Rows at the end that say how much is not shown, and what hooks did.
    notes: usize,
    /// Bytes of the text that are too much to be laid out.
    hidden_bytes: u64,
}

/// Makes the rows of one kind of document. Drawing them is the same for all kinds.
trait DocumentKind {
    /// Lays out the rows that may have changed; returns the first of them, counted from 0, or `None` if none did.
    fn lay_out(
        &mut self,
        document: &Document,
        context: &RenderContext<'_>,
        state: &mut DocumentState,
    ) -> Option<usize> {
        state.replace(self.whole(document, context))
    }

    /// Returns all rows of a kind that is laid out as a whole, unfolded.
    fn whole(&self, document: &Document, context: &RenderContext<'_>) -> Leaf {
        self.folded(document, context)
    }

    /// Returns the folded state: glyph, word, summary and facts in one line.
    fn folded(&self, document: &Document, context: &RenderContext<'_>) -> Leaf;

    /// Returns one line that says what the document is.
    fn summary(&self, document: &Document) -> Sanitized;

    /// Adds to the key what the rows depend on besides document, width and fold.
    fn depends(&self, _document: &Document, _context: &RenderContext<'_>, _key: &mut Key) {}

    /// Returns true if the rows show how long the document has been running.
    fn is_running(&self, _document: &Document) -> bool {
        false
    }

    /// Returns the whole document as text, for copying.
    fn copy_text(&self, document: &Document) -> Sanitized {
        Sanitized::from(document.plain_text())
    }

    /// Returns the whole document as Markdown, for copying.
    fn markdown(&self, document: &Document) -> String {
        self.copy_text(document).into_string()
    }

    /// Returns only the code of the document. `None` if there is none.
    fn code(&self) -> Option<Sanitized> {
        None
    }

    /// Examples for the pictures of a kind that `matrix.rs` does not list: name, document and how it is looked at.
    #[cfg(test)]
    fn examples(&self, _word: &str) -> Vec<matrix::State> {
        Vec::new()
    }
}

/// A document of whatever kind.
pub struct DocumentWidget<'a> {
    pub document: &'a Document,
    pub context: &'a RenderContext<'a>,
}

impl StatefulWidget for DocumentWidget<'_> {
    type State = DocumentState;

    /// Draws the rows from the state's offset on; an area without height only lays them out.
    fn render(self, area: Rect, buf: &mut Buffer, state: &mut DocumentState) {
        let Self { document, context } = self;
        if state.is_current(&Key::of(document, &context.of_width(area))) {
            state.draw(area, buf, context);
            return;
        }
        with_view!(document, kind => KindWidget { kind, document, context }.render(area, buf, state));
    }
}

/// A document whose kind is known.
struct KindWidget<'a, K> {
    kind: K,
    document: &'a Document,
    context: &'a RenderContext<'a>,
}

impl<K: DocumentKind> StatefulWidget for KindWidget<'_, K> {
    type State = DocumentState;

    fn render(mut self, area: Rect, buf: &mut Buffer, state: &mut DocumentState) {
        let context = self.context.of_width(area);
        let key = Key::of(self.document, &context);
        state.bring_up_to_date(key, &context, |state, context| {
            state.lay(&mut self.kind, self.document, context)
        });
        state.draw(area, buf, &context);
    }
}

/// The conditions that rows were made for. What a kind does not show is zero in its key, so that it cannot cost it a layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Key {
    version: u64,
    is_open: bool,
    width: usize,
    fold: Fold,
    selected: bool,
    elsewhere: bool,
    read_only: bool,
    joined: bool,
    context: ContextLines,
    output_rows: usize,
    has_approval: bool,
    links: bool,
    /// The version of the live list, counted from 1.
    todos: u64,
    second: u64,
    /// The note on the cited file.
    said_of_file: Option<&'static str>,
    newest: bool,
    waits: bool,
    /// The version of the answer in the making, counted from 1.
    form: u64,
    todo: Option<usize>,
    progress: Option<(usize, usize)>,
    colours: u64,
}

/// State of a kind between two layouts, so that work is proportional to what is new.
#[derive(Default)]
struct Memo {
    reach: Reach,
    /// Rows above what grows.
    head: usize,
    lines: GrowingLines,
    counted: Counted,
    flow: Option<Flow>,
    /// The rows of `flow` where they are not all of the rows.
    flow_rows: Vec<StyledLine>,
    printed: Option<Printed>,
    found: Option<file_edit::CachedDiff>,
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

/// What hooks did to a call; unfolded, also those that changed nothing.
fn hook_rows(document: &Document, context: &RenderContext<'_>) -> Vec<StyledLine> {
    if context.fold == Fold::Folded {
        return Vec::new();
    }
    let runs = hook_runs(&document.metadata).filter(|it| context.fold == Fold::Full || it.is_news());
    let rows = runs.flat_map(|it| {
        let line = [Span::new(Sanitized::line(&it.line()), Role::Dim)];
        wrap(&line, context.width, &[], &[heading::gap(2)])
    });
    rows.collect()
}

/// Problems that a row each is shown of, unless the document is unfolded.
const PROBLEMS_SHOWN: usize = 5;

/// The sign of a new problem.
fn problem_sign(is_error: bool) -> (&'static str, Role) {
    if is_error {
        ("✗ ", Role::Error)
    } else {
        ("⚠ ", Role::Waiting)
    }
}

/// New problems of a change, and those that may be older; unfolded, also why it was not looked at.
fn check_rows(document: &Document, context: &RenderContext<'_>) -> Vec<StyledLine> {
    let Some(check) = change_check(&document.metadata).filter(|_| context.fold != Fold::Folded) else {
        return Vec::new();
    };
    let is_full = context.fold == Fold::Full;
    let most = if is_full { usize::MAX } else { PROBLEMS_SHOWN };
    let mut rows = Vec::new();
    let mut push = |spans: &[Span]| rows.extend(wrap(spans, context.width, &[], &[heading::gap(4)]));
    let new = check.problems.iter().map(|it| (it, problem_sign(it.is_error)));
    let older = check.older_problems.iter().map(|it| (it, ("? ", Role::Waiting)));
    let older = older.take(most.saturating_sub(check.problems.len()));
    for (it, (mark, role)) in new.take(most).chain(older) {
        let place = format!("{}:{}:{}", it.file_path, it.line, it.column);
        let link = context
            .root
            .and_then(|root| code_reference::file_link(root, it.file_path));
        push(&[
            Span::new(Sanitized::literal(mark), role),
            Span::new(Sanitized::line(&place), Role::Strong).linked(link),
            heading::gap(2),
            Span::new(Sanitized::line(it.message), Role::Text),
            Span::new(Sanitized::line(&format!("  {}", it.source)), Role::Dim),
        ]);
    }
    let shown = check.problems.len().min(most) as u64;
    let more = check.new_problems.saturating_sub(shown);
    if more > 0 {
        let text = t!("edit-more-problems", count = more);
        push(&[Span::new(Sanitized::from(text), Role::Dim)]);
    }
    for why in check.unchecked.iter().filter(|_| is_full) {
        let text = t!("edit-unchecked", why = *why);
        push(&[Span::new(Sanitized::line(&text), Role::Dim)]);
    }
    rows
}

/// The rows of a kind that is laid out as a whole, and its glyph.
#[derive(Default)]
struct Leaf {
    glyph: Span,
    rows: Vec<StyledLine>,
    is_line: bool,
}

impl Leaf {
    /// A document on one line, that of its heading.
    fn line(glyph: Span, row: StyledLine) -> Self {
        Self::of(glyph, vec![row])
    }

    /// A document of any number of rows, which is on one line if it has one row.
    fn of(glyph: Span, rows: Vec<StyledLine>) -> Self {
        Self {
            glyph,
            is_line: rows.len() == 1,
            rows,
        }
    }

    /// A document that is never on one line.
    fn block(glyph: Span, rows: Vec<StyledLine>) -> Self {
        Self {
            glyph,
            rows,
            is_line: false,
        }
    }
}

/// Most bytes of a document that are laid out: a row costs many times its text.
const SHOWN_BYTES: usize = 1 << 20;
const SHOWN_LINES: usize = 20_000;

/// The part of a text that is laid out; the beginning of a growing text is counted once.
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

impl DocumentState {
    /// Lays a document out for the width of the context; returns the first row that may have changed, counted from 0, or
    /// `None` if none did.
    pub fn lay_out(&mut self, document: &Document, context: &RenderContext<'_>) -> Option<usize> {
        self.lay_out_widget(DocumentWidget { document, context }, context.width)
    }

    /// Lays out what a widget shows, as [`lay_out`](Self::lay_out) does for a document.
    pub fn lay_out_widget(&mut self, widget: impl StatefulWidget<State = Self>, width: usize) -> Option<usize> {
        let area = Rect::new(0, 0, width.clamp(1, usize::from(u16::MAX)) as u16, 0);
        self.changed = None;
        widget.render(area, &mut Buffer::default(), self);
        self.changed
    }

    /// Returns the number of rows that were laid out; 0 if they were not, or for another width.
    #[cfg(test)]
    pub fn height(&self, width: usize) -> usize {
        let is_laid = self.key.is_some_and(|it| it.width == width.max(1));
        if is_laid { self.rows.len() } else { 0 }
    }

    /// Returns true if the rows were made for this key.
    fn is_current(&self, key: &Key) -> bool {
        // Colours count only as long as some are missing.
        self.key.is_some_and(|it| {
            it == Key {
                colours: if self.is_colouring { key.colours } else { it.colours },
                ..*key
            }
        })
    }

    /// Lays out anew where the key is another one.
    fn bring_up_to_date(
        &mut self,
        key: Key,
        context: &RenderContext<'_>,
        lay: impl FnOnce(&mut Self, &RenderContext<'_>) -> Option<usize>,
    ) {
        if self.is_current(&key) {
            return;
        }
        self.turn_to(key);
        let watch = ColourWatch::new(context.colours);
        let context = RenderContext {
            colours: &watch,
            ..*context
        };
        self.changed = lay(self, &context);
        self.is_colouring = watch.is_waiting.get();
    }

    /// Draws rows from the offset on, as far as the area goes.
    fn draw(&mut self, area: Rect, buf: &mut Buffer, context: &RenderContext<'_>) {
        self.links.clear();
        let Some(theme) = context.theme else { return };
        for (at, area) in (self.offset..).zip(area.rows()) {
            let Some(line) = self.rows.get(at) else { return };
            let is_first = at == 0;
            let timed = context.times.filter(|_| is_first).map(|it| line.clone().timed(it));
            let widget = StyledLineWidget {
                line: timed.as_ref().unwrap_or(line),
                under: if is_first && context.selected {
                    Background::Selection
                } else {
                    Background::Plain
                },
                measure: MEASURE as u16,
                theme,
            };
            StatefulWidget::render(widget, area, buf, &mut self.links);
        }
    }

    /// Some of its code has no colours yet.
    pub fn is_colouring(&self) -> bool {
        self.is_colouring
    }

    /// Rows of growing Markdown that do not change any more, and the bytes of the text that they show.
    pub fn settled(&self) -> (usize, usize) {
        self.memo.flow.as_ref().map_or((0, 0), Flow::settled)
    }

    /// Lays out the rows that may have changed, with a note below them where too much is hidden.
    fn lay(&mut self, kind: &mut impl DocumentKind, document: &Document, context: &RenderContext<'_>) -> Option<usize> {
        // What grows has to find its rows as it left them.
        let had_notes = std::mem::take(&mut self.notes);
        let before = self.rows.len().saturating_sub(had_notes);
        self.rows.truncate(before);
        self.hidden_bytes = 0;
        let changed = match context.fold {
            Fold::Folded => self.replace(kind.folded(document, context)),
            Fold::Usual | Fold::Full => kind.lay_out(document, context, self),
        };
        if self.hidden_bytes > 0 {
            let note = t!("document-hidden", size = figure::bytes(self.hidden_bytes).as_str());
            let note = Span::new(Sanitized::new(&note), Role::Faint);
            self.rows.push(StyledLine::of([note]));
            self.notes = 1;
        }
        let is_users = document.metadata.get("role").is_some_and(|it| it == "user");
        if document.kind == Kind::Text && document.is_incomplete() && !is_users && context.fold != Fold::Folded {
            // It broke off, or was stopped; what may follow is another text.
            let note = Span::new(Sanitized::from(format!("· {}", t!("document-broken-off"))), Role::Faint);
            self.rows.push(StyledLine::of([note]));
            self.notes += 1;
        }
        let mut below = check_rows(document, context);
        below.extend(hook_rows(document, context));
        if !below.is_empty() {
            self.is_line = false;
            self.notes += below.len();
            self.rows.extend(below);
        }
        if had_notes + self.notes > 0 {
            Some(changed.unwrap_or(before).min(before))
        } else {
            changed
        }
    }

    /// Cuts a text to as much of it as is laid out; returns true if that is all of it.
    fn limit(&mut self, text: &mut &str, is_open: bool) -> bool {
        let shown = self.memo.reach.of(text, is_open);
        self.hidden_bytes = (text.len() - shown.len()) as u64;
        *text = shown;
        self.hidden_bytes == 0
    }

    /// Takes another key. What was remembered for another width or fold is forgotten.
    fn turn_to(&mut self, key: Key) {
        let fits = |old: &Key| old.width == key.width && old.fold == key.fold;
        if !self.key.as_ref().is_some_and(fits) {
            self.memo.reshape();
            self.rows.clear();
        }
        self.key = Some(key);
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
    fn set_head(&mut self, head: Vec<StyledLine>) -> bool {
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
    fn of(document: &Document, look: &RenderContext<'_>) -> Self {
        let mut key = Self {
            version: document.version,
            is_open: document.is_open(),
            colours: look.colours_version,
            ..Self::shape(look)
        };
        with_view!(document, kind => kind.depends(document, look, &mut key));
        key
    }

    fn shape(look: &RenderContext<'_>) -> Self {
        Self {
            width: look.width.max(1),
            fold: look.fold,
            ..Self::default()
        }
    }
}

/// The second of the clock that a running document shows.
fn second(document: &Document, look: &RenderContext<'_>) -> u64 {
    if needs_clock(document) {
        1 + elapsed_ms(document, look) / 1000
    } else {
        0
    }
}

fn elapsed_ms(document: &Document, look: &RenderContext<'_>) -> u64 {
    look.now_ms.saturating_sub(document.started_ms)
}

/// Returns true if the document shows a running time, which changes every second.
pub fn needs_clock(document: &Document) -> bool {
    with_view!(document, kind => kind.is_running(document))
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

/// Warnings that belong to a change that waits for approval.
pub fn caution(document: &Document, columns: usize) -> Vec<StyledLine> {
    if staged(document).is_some() {
        approval::caution(document, columns)
    } else {
        Vec::new()
    }
}

/// Returns one line that says what the document is, for the outline and for notifications.
pub fn summary(document: &Document) -> Sanitized {
    with_view!(document, kind => kind.summary(document))
}

/// The answer in the making, if it is for this document.
fn form<'a>(document: &Document, look: &RenderContext<'a>) -> Option<&'a Form> {
    look.form.filter(|it| it.document == document.id)
}

/// Returns true if the document's changes of files were undone.
pub fn is_undone(document: &Document) -> bool {
    document.is_undone()
}

/// The words for an undone document; `None` for any other.
pub fn undone(document: &Document) -> Option<Sanitized> {
    let word = match document.metadata.get(UNDONE) {
        Some(serde_json::Value::Bool(true)) => Some(t!("document-undone")),
        Some(serde_json::Value::String(word)) if word == "partly" => Some(t!("document-undone-partly")),
        Some(_) | None => None,
    };
    word.map(|it| heading::signed("↶", it))
}

/// The mark of a change in a mode that allows none.
fn badge() -> Span {
    // It is not broken between its words.
    let word = t!("document-read-only").replace(' ', "\u{a0}");
    Span::new(format!(" ✗\u{a0}{word} "), Role::Error).modified(Modifier::REVERSE | Modifier::BOLD)
}

/// Names a block of code across calls.
fn seed(document: &Document, look: &RenderContext<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (look.turn, &document.id).hash(&mut hasher);
    hasher.finish()
}

/// Passes colours on and notes whether some are still missing.
struct ColourWatch<'a> {
    colours: &'a dyn Colours,
    is_waiting: Cell<bool>,
}

impl<'a> ColourWatch<'a> {
    fn new(colours: &'a dyn Colours) -> Self {
        Self {
            colours,
            is_waiting: Cell::new(false),
        }
    }
}

impl Colours for ColourWatch<'_> {
    fn code(&self, block: u64, language: &str, source: &str, closed: bool) -> Arc<Vec<CodeLine>> {
        let lines = self.colours.code(block, language, source, closed);
        // What is open is looked at again anyway; counting its lines each time would cost more than it saves.
        if !closed || lines.len() < source.lines().count() {
            self.is_waiting.set(true);
        }
        lines
    }

    fn diagram(&self, block: u64, source: &str, columns: usize) -> Arc<Vec<CodeLine>> {
        let lines = self.colours.diagram(block, source, columns);
        if lines.is_empty() {
            self.is_waiting.set(true);
        }
        lines
    }
}
