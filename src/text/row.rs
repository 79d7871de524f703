//! The currency between what is shown and how it is painted: rows of spans that name roles.

use std::sync::Arc;

use super::Sanitized;

/// Meaning of a piece of text; the theme decides how it looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    #[default]
    Text,
    Strong,
    Dim,
    /// Addresses, line numbers: text that is read last.
    Faint,
    Rule,
    User,
    Accent,
    /// Amber: running, or waiting for somebody.
    Waiting,
    Link,
    Error,
    Done,
    Added,
    Removed,
    /// Inline code in prose.
    Code,
    Number,
    Keyword,
    Type,
    Function,
    String,
    Comment,
    ModeAgent,
    ModePlan,
    ModeAsk,
    ModeDebug,
    /// A colour that a command printed: one of the terminal's 256.
    Indexed(u8),
    /// A colour that a command printed, as red, green, blue.
    Rgb(u8, u8, u8),
    /// Number of a picture, in place of a colour; it reaches the terminal unchanged.
    Picture(u8, u8, u8),
}

/// Background of a piece of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Background {
    /// The terminal's own background.
    #[default]
    Plain,
    Selection,
    Added,
    AddedWord,
    Removed,
    RemovedWord,
    /// Background that a command printed: one of the terminal's 256.
    Indexed(u8),
    Rgb(u8, u8, u8),
}

/// Typographic marks, combined with `|`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Modifier(u8);

impl Modifier {
    pub const NONE: Self = Self(0);
    pub const BOLD: Self = Self(1);
    pub const ITALIC: Self = Self(2);
    pub const UNDERLINE: Self = Self(4);
    pub const STRIKE: Self = Self(8);
    pub const REVERSE: Self = Self(16);
    pub const FAINT: Self = Self(32);
    /// A printed key, which a click presses. It looks like its role.
    pub const KEY: Self = Self(64);

    /// Returns true if every flag of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for Modifier {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl std::ops::BitOrAssign for Modifier {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// A run of text in one look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub text: Sanitized,
    pub role: Role,
    pub modifier: Modifier,
    pub background: Background,
    /// Target of the OSC 8 link; checked to be http, https, mailto or a workspace file.
    pub link: Option<Arc<str>>,
}

impl Span {
    pub fn new(text: impl Into<Sanitized>, role: Role) -> Self {
        Self {
            text: text.into(),
            role,
            ..Self::default()
        }
    }

    pub fn bold(mut self) -> Self {
        self.modifier |= Modifier::BOLD;
        self
    }

    /// Marks the text as the name of a key, which a click presses.
    pub fn key(self) -> Self {
        self.modified(Modifier::KEY)
    }

    pub fn modified(mut self, modifier: Modifier) -> Self {
        self.modifier |= modifier;
        self
    }

    pub fn on(mut self, background: Background) -> Self {
        self.background = background;
        self
    }

    pub fn linked(mut self, target: Option<Arc<str>>) -> Self {
        self.link = target;
        self
    }
}

/// One row of the screen: content from the left, facts at the right edge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StyledLine {
    pub spans: Vec<Span>,
    /// Right-aligned text; dropped first if the width does not fit both.
    pub facts: Vec<Span>,
    /// Painted under the whole row, from its first cell to the right margin.
    pub background: Background,
    /// This row continues the paragraph or line of the row above (copying joins them).
    pub continues: bool,
    /// True if it continues the row above after spaces, which the end of that row swallowed.
    pub spaced: bool,
    /// Number of spans at the beginning that are not the text's own: line numbers, bars, the indent of a wrapped
    /// line.
    pub gutter: u8,
}

impl StyledLine {
    pub fn blank() -> Self {
        Self::default()
    }

    pub fn of(spans: impl Into<Vec<Span>>) -> Self {
        Self {
            spans: spans.into(),
            ..Self::default()
        }
    }

    pub fn facts(mut self, facts: impl Into<Vec<Span>>) -> Self {
        self.facts = facts.into();
        self
    }

    /// Adds `times` to the facts, after a gap if there are others.
    pub fn timed(mut self, times: &Sanitized) -> Self {
        if !self.facts.is_empty() {
            self.facts.push(Span::new(Sanitized::literal("   "), Role::Dim));
        }
        self.facts.push(Span::new(times.clone(), Role::Dim));
        self
    }

    /// Returns true if the line is a part of a picture, which has no words.
    pub fn is_picture(&self) -> bool {
        self.spans.iter().any(|it| matches!(it.role, Role::Picture(..)))
    }

    /// The row's text without looks, facts left out.
    pub fn plain(&self) -> String {
        self.spans.iter().map(|it| it.text.as_str()).collect()
    }

    /// The spans of the text itself, without its gutter.
    pub fn content(&self) -> &[Span] {
        self.spans.get(usize::from(self.gutter)..).unwrap_or_default()
    }

    /// The spans before them.
    pub fn gutter(&self) -> &[Span] {
        self.spans.get(..usize::from(self.gutter)).unwrap_or(&self.spans)
    }

    /// Takes over from `other`, a row of the same wrapped line, how it joins the row before it.
    pub fn joins_like(&mut self, other: &Self) {
        self.continues = other.continues;
        self.spaced = other.spaced;
        self.gutter = other.gutter;
    }
}

/// One line of code in colours; its spans' texts make up the source line exactly.
pub type CodeLine = Arc<[Span]>;

/// Source of coloured code. It never blocks: lines that are not ready are missing from the end.
pub trait Colours {
    /// Returns the coloured lines of `source` so far, at most one per line; the caller draws the rest plain.
    ///
    /// `block` names the block across calls while it grows; `closed` means that it will not grow any more.
    fn code(&self, block: u64, language: &str, source: &str, closed: bool) -> Arc<Vec<CodeLine>>;

    /// Returns the lines of a drawing of an entire Mermaid source in at most `columns` columns, or of the source if
    /// it cannot be drawn. Empty while neither is ready, and always for implementations that do not draw.
    fn diagram(&self, _block: u64, _source: &str, _columns: usize) -> Arc<Vec<CodeLine>> {
        Arc::default()
    }
}

/// Leaves all code plain.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoColours;

impl Colours for NoColours {
    fn code(&self, _block: u64, _language: &str, _source: &str, _closed: bool) -> Arc<Vec<CodeLine>> {
        Arc::default()
    }
}
