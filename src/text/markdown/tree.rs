//! Markdown source to blocks of styled spans: what is to be seen, before it is given a width.

use std::{cell::RefCell, collections::HashMap, ops::Range, sync::Arc};

use pulldown_cmark::{Alignment, BrokenLink, CodeBlockKind, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};

use super::{
    HIDDEN, address,
    math::{self, Marked},
    options,
    tail::{self, LeafStart, SettledEnd},
};
use crate::text::{Modifier, Role, Sanitized, Span, link_host, link_target, width::part};

/// Containers nested deeper than this are shown at this depth.
const DEEPEST: usize = 32;

/// Targets of reference definitions, by label.
pub(super) type Definitions = HashMap<String, String>;

#[derive(Debug)]
pub(super) enum Block {
    /// A paragraph; line breaks are in the text.
    Text(Vec<Span>),
    Heading(Vec<Span>),
    Code(Code),
    /// Raw HTML, shown as text.
    Html(Vec<Span>),
    Quote(Vec<Block>),
    List(List),
    Table(Table),
    Rule,
}

#[derive(Debug)]
pub(super) struct Code {
    pub language: String,
    pub fenced: bool,
    pub source: String,
}

#[derive(Debug)]
pub(super) struct List {
    /// The first number of an ordered list.
    pub start: Option<u64>,
    /// True if blank rows separate the items.
    pub loose: bool,
    pub items: Vec<ListItem>,
}

/// An item of a list.
#[derive(Debug)]
pub(super) struct ListItem {
    /// True if its box is ticked; `None`: it has no box.
    pub task: Option<bool>,
    pub blocks: Vec<Block>,
    /// Byte at which it begins in the source.
    pub start: usize,
}

pub(super) type Cell = Vec<Span>;

#[derive(Debug)]
pub(super) struct Table {
    pub alignments: Vec<Alignment>,
    pub head: Vec<Cell>,
    pub rows: Vec<Vec<Cell>>,
}

/// Blocks of a source, and what the rest of the document needs to know about it.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Outermost blocks with their byte ranges.
    pub blocks: Vec<(Block, Range<usize>)>,
    /// Label, target and first byte of each definition.
    pub definitions: Vec<(String, String, usize)>,
    /// References that no definition is known for.
    pub unresolved: Vec<String>,
    /// End of the source, if words after it would only lengthen its last leaf.
    pub ending: Option<SettledEnd>,
    /// The leaf at its end, if it is known until the next line break.
    pub place: Option<LeafStart>,
}

/// Normalises a label for comparison.
pub(super) fn label(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Reads `source`; references without a definition in it are looked up in `known`.
pub(super) fn read(source: &str, known: &Definitions) -> Tree {
    build(source, known, false)
}

/// Reads the part of a streaming source that is shown; [`HIDDEN`] replaces undecided marks. `place` as for
/// [`tail::shown`].
pub(super) fn read_open(source: &str, known: &Definitions, place: Option<LeafStart>) -> Tree {
    let shown = tail::shown(source, place);
    Tree {
        ending: shown.ending,
        place: shown.place,
        ..build(&shown.source, known, true)
    }
}

fn build(source: &str, known: &Definitions, open: bool) -> Tree {
    let unresolved = RefCell::new(Vec::new());
    let look_up = |link: BrokenLink<'_>| {
        let label = label(&math::plain(&link.reference));
        if let Some(url) = known.get(&label) {
            return Some((CowStr::from(url.clone()), CowStr::Borrowed("")));
        }
        unresolved.borrow_mut().push(label);
        None
    };
    let marked = Marked::of(source);
    let options = options() | Options::ENABLE_MATH;
    let parser = Parser::new_with_broken_link_callback(&marked.source, options, Some(look_up));
    let mut events = parser.into_offset_iter();
    let definitions = events
        .reference_definitions()
        .iter()
        .map(|(name, definition)| {
            (
                label(&math::plain(name)),
                math::plain(&definition.dest),
                definition.span.start,
            )
        })
        .collect();
    let mut builder = Builder::default();
    builder.inline.open = open;
    for (event, range) in events.by_ref() {
        builder.take(event, range, &marked);
    }
    drop(events);
    Tree {
        blocks: builder.blocks,
        definitions,
        unresolved: unresolved.into_inner(),
        ending: None,
        place: None,
    }
}

enum Frame {
    Quote(Vec<Block>),
    List(List),
    Item(ListItem),
}

#[derive(Default)]
struct Builder {
    blocks: Vec<(Block, Range<usize>)>,
    /// Byte range of the outermost block being built.
    range: Range<usize>,
    /// Tags open around the next event.
    depth: usize,
    frames: Vec<Frame>,
    /// Containers open beyond [`DEEPEST`].
    skipped: usize,
    table: Option<Table>,
    code: Option<Code>,
    inline: Inline,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, range: Range<usize>, marked: &Marked<'_>) {
        if self.depth == 0 {
            self.range = range.clone();
        }
        match event {
            Event::Start(tag) => {
                self.depth += 1;
                self.start(tag, range);
            }
            Event::End(tag) => {
                self.depth = self.depth.saturating_sub(1);
                self.end(tag);
            }
            Event::Text(text) => match &mut self.code {
                Some(code) => code.source.push_str(&marked.text(&text, &range, true)),
                None => self.inline.push(&marked.text(&text, &range, false)),
            },
            Event::Code(text) => self.inline.code(&marked.text(&text, &range, true)),
            Event::Html(text) | Event::InlineHtml(text) => self.inline.html(&marked.text(&text, &range, true)),
            Event::SoftBreak => self.inline.push(" "),
            Event::HardBreak => self.inline.line_break(),
            Event::Rule => {
                self.close_text();
                self.push(Block::Rule);
            }
            Event::TaskListMarker(done) => {
                if self.skipped == 0
                    && let Some(Frame::Item(item)) = self.frames.last_mut()
                {
                    item.task = Some(done);
                }
            }
            Event::InlineMath(text) => self.inline.lines(&marked.formula(&text, &range, false)),
            Event::DisplayMath(text) => self.inline.lines(&marked.formula(&text, &range, true)),
            // Not enabled, but text is never lost.
            Event::FootnoteReference(text) => self.inline.push(&text),
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: Range<usize>) {
        match tag {
            Tag::Paragraph => {
                self.close_text();
                let frames = self.frames.len();
                if self.skipped == 0
                    && let Some([Frame::List(list), Frame::Item(_)]) = self.frames.get_mut(frames.saturating_sub(2)..)
                {
                    list.loose = true;
                }
            }
            Tag::Heading { .. } => {
                self.close_text();
                self.inline.heading = true;
            }
            Tag::BlockQuote(_) => {
                self.close_text();
                self.inline.quotes += 1;
                self.open(Frame::Quote(Vec::new()));
            }
            Tag::CodeBlock(kind) => {
                self.close_text();
                let (language, fenced) = match kind {
                    CodeBlockKind::Fenced(info) => (language(&info), true),
                    CodeBlockKind::Indented => (String::new(), false),
                };
                self.code = Some(Code {
                    language,
                    fenced,
                    source: String::new(),
                });
            }
            Tag::HtmlBlock => self.close_text(),
            Tag::List(start) => {
                self.close_text();
                self.open(Frame::List(List {
                    start,
                    loose: false,
                    items: Vec::new(),
                }));
            }
            Tag::Item => {
                self.close_text();
                self.open(Frame::Item(ListItem {
                    task: None,
                    blocks: Vec::new(),
                    start: range.start,
                }));
            }
            Tag::Table(alignments) => {
                self.close_text();
                self.table = Some(Table {
                    alignments,
                    head: Vec::new(),
                    rows: Vec::new(),
                });
            }
            Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::TableHead => self.inline.heading = true,
            Tag::Emphasis => self.inline.style(|it| it.emphases += 1),
            Tag::Strong => self.inline.style(|it| it.strongs += 1),
            Tag::Strikethrough => self.inline.style(|it| it.strikes += 1),
            Tag::Link {
                link_type, dest_url, ..
            } => self.inline.open_link(link_type, &math::plain(&dest_url)),
            Tag::Image {
                link_type, dest_url, ..
            } => self.inline.open_image(link_type, &math::plain(&dest_url)),
            Tag::TableCell
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.close_text(),
            TagEnd::Heading(_) => {
                let spans = self.inline.finish();
                self.inline.heading = false;
                self.push(Block::Heading(spans));
            }
            TagEnd::BlockQuote(_) => {
                self.close_text();
                self.inline.quotes = self.inline.quotes.saturating_sub(1);
                self.close();
            }
            TagEnd::CodeBlock => {
                if let Some(code) = self.code.take() {
                    self.push(Block::Code(code));
                }
            }
            TagEnd::HtmlBlock => {
                let spans = self.inline.finish();
                if !spans.is_empty() {
                    self.push(Block::Html(spans));
                }
            }
            TagEnd::List(_) | TagEnd::Item => {
                self.close_text();
                self.close();
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.push(Block::Table(table));
                }
            }
            TagEnd::TableHead => self.inline.heading = false,
            TagEnd::TableCell => {
                let cell = self.inline.finish();
                if let Some(table) = &mut self.table {
                    match table.rows.last_mut() {
                        Some(row) => row.push(cell),
                        None => table.head.push(cell),
                    }
                }
            }
            TagEnd::Emphasis => self.inline.style(|it| it.emphases -= 1),
            TagEnd::Strong => self.inline.style(|it| it.strongs -= 1),
            TagEnd::Strikethrough => self.inline.style(|it| it.strikes -= 1),
            TagEnd::Link => self.inline.close_link(),
            TagEnd::Image => self.inline.close_image(),
            TagEnd::TableRow
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn open(&mut self, frame: Frame) {
        // A list and its item are skipped or shown together.
        let room = if matches!(frame, Frame::List(_)) {
            DEEPEST - 1
        } else {
            DEEPEST
        };
        if self.skipped > 0 || self.frames.len() >= room {
            self.skipped += 1;
        } else {
            self.frames.push(frame);
        }
    }

    fn close(&mut self) {
        if self.skipped > 0 {
            self.skipped -= 1;
            return;
        }
        match self.frames.pop() {
            Some(Frame::Quote(blocks)) => self.push(Block::Quote(blocks)),
            Some(Frame::List(list)) => self.push(Block::List(list)),
            Some(Frame::Item(item)) => {
                if let Some(Frame::List(list)) = self.frames.last_mut() {
                    list.items.push(item);
                }
            }
            None => {}
        }
    }

    /// Ends the text of an item without a paragraph of its own.
    fn close_text(&mut self) {
        let spans = self.inline.finish();
        if !spans.is_empty() {
            self.push(Block::Text(spans));
        }
    }

    fn push(&mut self, block: Block) {
        match self.frames.last_mut() {
            Some(Frame::Quote(blocks) | Frame::Item(ListItem { blocks, .. })) => blocks.push(block),
            // The parser puts nothing but items into lists.
            Some(Frame::List(_)) | None => self.blocks.push((block, self.range.clone())),
        }
    }
}

/// The first word of a fence's info string, as highlighters know it.
pub(super) fn language(info: &str) -> String {
    let word = info
        .trim_start()
        .split(|it: char| it.is_whitespace() || matches!(it, ',' | '{' | ':'))
        .next();
    Sanitized::new(word.unwrap_or_default()).chars().take(32).collect()
}

/// The text of one leaf block, gathered in runs of one look.
#[derive(Default)]
struct Inline {
    heading: bool,
    quotes: usize,
    emphases: usize,
    strongs: usize,
    strikes: usize,
    /// True if [`HIDDEN`] must not be shown.
    open: bool,
    verbatim: Option<Verbatim>,
    images: Vec<Option<Target>>,
    link: Option<Target>,
    /// Text of the link so far.
    shown: String,
    spans: Vec<Span>,
    run: String,
}

/// Text that is shown as the source has it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verbatim {
    Code,
    Html,
}

/// The path of a file that is longer is not shown beside a link.
const LONGEST_PATH_BYTES: usize = 120;

#[derive(Clone)]
struct Target {
    /// Address for a click; `None` for a file.
    url: Option<Arc<str>>,
    /// Part of the target that a reader must see; for a file all of it.
    place: String,
}

impl Inline {
    fn push(&mut self, text: &str) {
        if self.link.is_some() {
            self.shown.push_str(text);
        }
        self.run
            .extend(text.chars().filter(|&it| it != HIDDEN).map(|it| match it {
                '\n' | '\t' => ' ',
                it => it,
            }));
    }

    /// Adds several lines below the text before them.
    fn lines(&mut self, lines: &[String]) {
        for (at, line) in lines.iter().enumerate() {
            if at > 0 || lines.len() > 1 && !self.run.is_empty() {
                self.line_break();
            }
            self.push(line);
        }
    }

    fn line_break(&mut self) {
        self.run.push(if self.heading { ' ' } else { '\n' });
    }

    fn html(&mut self, text: &str) {
        self.style(|it| it.verbatim = Some(Verbatim::Html));
        let open = self.open;
        self.run.extend(text.chars().filter(|&it| !open || it != HIDDEN));
        self.style(|it| it.verbatim = None);
    }

    fn code(&mut self, text: &str) {
        self.style(|it| it.verbatim = Some(Verbatim::Code));
        self.push(text);
        self.style(|it| it.verbatim = None);
    }

    /// Changes the look of the text after it.
    fn style(&mut self, change: impl FnOnce(&mut Self)) {
        self.flush();
        change(self);
    }

    fn flush(&mut self) {
        if self.run.is_empty() {
            return;
        }
        let link = self.link.as_ref().and_then(|it| it.url.clone());
        let role = if self.verbatim == Some(Verbatim::Code) {
            Role::Code
        } else if link.is_some() {
            Role::Link
        } else if self.verbatim.is_some() || !self.images.is_empty() {
            Role::Dim
        } else if self.heading || self.strongs > 0 {
            Role::Strong
        } else if self.quotes > 0 {
            Role::Dim
        } else {
            Role::Text
        };
        let mut mark = Modifier::NONE;
        for (set, with) in [
            (self.heading || self.strongs > 0, Modifier::BOLD),
            (self.emphases > 0, Modifier::ITALIC),
            (self.strikes > 0, Modifier::STRIKE),
            (link.is_some(), Modifier::UNDERLINE),
        ] {
            if set {
                mark |= with;
            }
        }
        let text = Sanitized::from(std::mem::take(&mut self.run));
        if !text.is_empty() {
            let span = Span::new(text, role).modified(mark).linked(link);
            let is_prose = self.verbatim.is_none() && self.link.is_none() && self.images.is_empty();
            if is_prose && span.text.contains("://") {
                self.push_with_addresses(&span);
            } else {
                self.spans.push(span);
            }
        }
    }

    /// Adds prose whose addresses become links.
    fn push_with_addresses(&mut self, span: &Span) {
        let mut done = 0;
        let mut at = 0;
        while let Some(range) = address::find(&span.text, at) {
            at = range.end;
            let shown = span.text.slice(range.clone());
            // What leads elsewhere than it reads is no link: `https://github.com@example.org`.
            let Some(target) = target(LinkType::Autolink, &shown).filter(|it| names(&shown, &it.place)) else {
                continue;
            };
            if range.start > done {
                self.spans.push(part(span, done..range.start));
            }
            done = range.end;
            let link = part(span, range).modified(Modifier::UNDERLINE).linked(target.url);
            self.spans.push(Span {
                role: Role::Link,
                ..link
            });
        }
        if done < span.text.len() {
            self.spans.push(part(span, done..span.text.len()));
        }
    }

    fn open_link(&mut self, kind: LinkType, url: &str) {
        self.flush();
        self.shown.clear();
        self.link = target(kind, url);
    }

    fn close_link(&mut self) {
        self.flush();
        if let Some(target) = self.link.take()
            && !names(&self.shown, &target.place)
        {
            self.note(&target.place);
        }
    }

    fn open_image(&mut self, kind: LinkType, url: &str) {
        self.flush();
        self.images.push(target(kind, url));
        self.push("[image: ");
    }

    fn close_image(&mut self) {
        self.push("]");
        self.flush();
        if let Some(Some(target)) = self.images.pop() {
            self.note(&target.place);
        }
    }

    /// Adds the target of the link before it, in parentheses.
    fn note(&mut self, place: &str) {
        let text = Sanitized::from(format!(" ({place})"));
        self.spans.push(Span::new(text, Role::Faint));
    }

    fn finish(&mut self) -> Vec<Span> {
        self.flush();
        std::mem::take(&mut self.spans)
    }
}

/// Returns a target on the web, a mailbox or the path of a file. `None` for any other.
fn target(kind: LinkType, url: &str) -> Option<Target> {
    let mail;
    let url = if matches!(kind, LinkType::Email) {
        mail = format!("mailto:{url}");
        &mail
    } else {
        url
    };
    if is_path(url) {
        return Some(Target {
            url: None,
            place: url.to_owned(),
        });
    }
    let url = link_target(url)?;
    let place = link_host(&url)?;
    Some(Target { url: Some(url), place })
}

/// Returns true for the path of a file, with or without a line: it has no scheme and is no place in the same text.
fn is_path(target: &str) -> bool {
    let has_scheme = target.split_once(':').is_some_and(|(before, after)| {
        after.starts_with("//") || !before.contains(['/', '.']) && !after.starts_with(|it: char| it.is_ascii_digit())
    });
    !has_scheme && !target.is_empty() && target.len() <= LONGEST_PATH_BYTES && !target.starts_with(['#', '?'])
}

/// Returns true if `shown` contains `place` as an entire name: `microsoft.com` does not name `t.co`.
fn names(shown: &str, place: &str) -> bool {
    let shown = shown.to_ascii_lowercase();
    let place = place.to_ascii_lowercase();
    let part = |it: char| it.is_alphanumeric() || matches!(it, '.' | '-' | '@' | '_');
    !place.is_empty()
        && shown.match_indices(&place).any(|(at, found)| {
            let before = shown.get(..at).and_then(|it| it.chars().next_back());
            let mut after = shown.get(at + found.len()..).unwrap_or_default().chars();
            let next = after.next();
            let ends = match next {
                // The full stop of a sentence.
                Some('.') => !after.next().is_some_and(part),
                next => !next.is_some_and(part),
            };
            !before.is_some_and(part) && ends
        })
}
