//! `terminal_command`: the whole command, what it printed in its own colours, and how it ended. Of a long output head
//! and tail are shown; while it runs, only what is new is read.

use super::{
    Fold, Leaf, Look, Sheet, elapsed_ms,
    heading::{Facts, Weight, gap, line, sign, titled},
    tool_call::seconds,
    value::ends,
};
use crate::{
    protocol::{CommandState, Document, Permission, document::TerminalCommand},
    text::{
        Clean, Mark, Role, Row, Span,
        ansi::Output,
        figure,
        width::{clip_spans, spans_width},
        wrap::{wrap, wrap_hard},
    },
};

/// Lines of an output that stand for it.
const HEAD: usize = 3;
const TAIL: usize = 5;
/// Unfolded, an output has at most so many lines on the screen; copying takes them all.
const MOST_HEAD: usize = 5000;
const MOST_TAIL: usize = 1000;
/// Rows of one line where only head and tail are shown.
const MOST_ROWS: usize = 3;
/// Lines above the end that a program may still write over (the emulator has fewer).
const UNSETTLED: usize = 64;

/// What a command has printed, read once.
#[derive(Default)]
pub(super) struct Printed {
    output: Output,
    /// Bytes that were read, and what they were.
    raw: usize,
    checksum: crc32fast::Hasher,
    was_open: bool,
    /// Rows up to the end of each line that is laid.
    ends: Vec<usize>,
    dim: bool,
}

pub(super) fn is_running(command: &TerminalCommand<'_>) -> bool {
    command.state == CommandState::Running
}

pub(super) fn grow(
    command: &TerminalCommand<'_>,
    document: &Document,
    look: &Look<'_>,
    sheet: &mut Sheet,
) -> Option<usize> {
    let signed = sheet.sign(glyph(), false);
    let headed = sheet.set_head(head(command, document, look));
    let above = sheet.memo.head;
    let printed = sheet.memo.printed.get_or_insert_with(Default::default);
    printed.take(command.output, document.is_open());
    // What has ended steps back.
    let dim = !is_running(command);
    if printed.dim != dim {
        printed.dim = dim;
        printed.ends.clear();
    }
    let changed = if look.fold == Fold::Full {
        printed.lay_full(&mut sheet.rows, above, look.width)
    } else {
        let rows = printed.usual(look.width);
        let same = sheet
            .rows
            .iter()
            .skip(above)
            .zip(&rows)
            .take_while(|(old, new)| old == new);
        let changed = above + same.count();
        sheet.rows.truncate(above);
        sheet.rows.extend(rows);
        changed
    };
    Some(if signed || headed { 0 } else { changed })
}

pub(super) fn folded(command: &TerminalCommand<'_>, document: &Document, look: &Look<'_>) -> Leaf {
    let lines = command.output.bytes().filter(|&it| it == b'\n').count();
    let mut facts = facts(command, document, look);
    if lines > 0 {
        facts.word(Weight::Light, figure::count(lines, "line", "lines"), Role::Dim);
    }
    let title = Span::new(summary(command), Role::Text);
    Leaf {
        glyph: glyph(),
        rows: vec![line(&[title], facts, look.width)],
        is_line: true,
    }
}

/// The command in one row; of several lines the first.
pub(super) fn summary(command: &TerminalCommand<'_>) -> Clean {
    let command = command.command.trim();
    let first = super::heading::first_line(command);
    if command.contains('\n') {
        Clean::from(format!("{first} …"))
    } else {
        first
    }
}

fn glyph() -> Span {
    sign("$", Role::Accent).bold()
}

fn head(command: &TerminalCommand<'_>, document: &Document, look: &Look<'_>) -> Vec<Row> {
    let mut title = vec![Span::new(Clean::new(command.command.trim_end()), Role::Strong).bold()];
    if look.read_only {
        title.push(gap(2));
        title.push(super::badge());
    }
    // A command is shown whole: what runs on this machine is never hidden.
    let mut rows = titled(&title, &[], &[gap(2)], facts(command, document, look), look.width);
    if let Some(folder) = command
        .working_directory
        .filter(|it| look.fold == Fold::Full && !it.is_empty())
    {
        let spans = [sign("in ", Role::Dim), Span::new(Clean::line(folder), Role::Dim)];
        rows.extend(wrap(&spans, look.width, &[], &[gap(2)]));
    }
    rows
}

fn facts(command: &TerminalCommand<'_>, document: &Document, look: &Look<'_>) -> Facts {
    let mut facts = Facts::default();
    match &command.state {
        CommandState::Running => {
            facts.push(Weight::Heavy, [sign("◐", Role::Waiting), sign(" running", Role::Dim)]);
            facts.word(Weight::Medium, seconds(elapsed_ms(document, look)), Role::Dim);
        }
        CommandState::Completed => match command.exit_code {
            Some(0) => facts.word(Weight::Heavy, "✓ 0", Role::Done),
            Some(code) => facts.word(Weight::Heavy, format!("✗ {code}"), Role::Error),
            None => facts.word(Weight::Heavy, "ended", Role::Dim),
        },
        CommandState::Background => {
            facts.push(
                Weight::Heavy,
                [sign("◐", Role::Waiting), sign(" background", Role::Dim)],
            );
        }
        CommandState::TimedOut => facts.word(Weight::Heavy, "✗ timed out", Role::Error),
        CommandState::Rejected => facts.word(Weight::Heavy, "✗ rejected", Role::Error),
        CommandState::Cancelled if document.is_incomplete() => facts.word(Weight::Heavy, "✗ broken off", Role::Error),
        CommandState::Cancelled => facts.word(Weight::Heavy, "✗ killed", Role::Error),
        CommandState::Other(word) => facts.word(Weight::Heavy, word.replace('_', " "), Role::Dim),
    }
    facts.duration(command.duration_ms.filter(|_| command.state != CommandState::Running));
    if command.truncated {
        facts.word(Weight::Light, "cut", Role::Dim);
    }
    let was_run = !matches!(command.state, CommandState::Running | CommandState::Rejected);
    if command.permissions.is_empty() {
        if was_run {
            facts.word(Weight::Light, "no network", Role::Dim);
        }
    } else {
        let names: Vec<&str> = command.permissions.iter().map(name).collect();
        facts.word(Weight::Light, names.join(", "), Role::Waiting);
    }
    facts
}

fn name(permission: &Permission) -> &str {
    match permission {
        Permission::Network => "network",
        Permission::GitWrite => "git_write",
        Permission::All => "no sandbox",
        Permission::Other(word) => word,
    }
}

/// The output as text, for copying.
pub(super) fn plain(output: &str) -> Clean {
    Clean::from(Output::of(output).plain())
}

impl Printed {
    /// Reads what is new. Behind the end of a document its output may be another one, longer or the same.
    fn take(&mut self, source: &str, is_open: bool) {
        let grows = is_open && self.was_open;
        let is_same = || {
            let read = source.as_bytes().get(..self.raw)?;
            Some(crc32fast::hash(read) == self.checksum.clone().finalize())
        };
        let goes_on =
            source.is_char_boundary(self.raw) && source.len() >= self.raw && (grows || is_same() == Some(true));
        if !goes_on {
            *self = Self {
                dim: self.dim,
                ..Self::default()
            };
        }
        if let Some(new) = source.get(self.raw..).filter(|it| !it.is_empty()) {
            self.output.push(new);
            self.checksum.update(new.as_bytes());
            self.raw = source.len();
        }
        if !is_open && self.was_open {
            self.output.finish();
        }
        self.was_open = is_open;
    }

    /// Forgets where its rows are, for another width.
    pub(super) fn reshape(&mut self) {
        self.ends.clear();
    }

    fn usual(&self, columns: usize) -> Vec<Row> {
        let total = self.output.lines_total();
        let (head, hidden, tail) = ends(total, HEAD, TAIL);
        let mut rows = Vec::new();
        for line in self.output.lines(head) {
            rows.extend(self.short(&line, columns));
        }
        if hidden > 0 {
            rows.push(hidden_row(hidden, columns));
        }
        for line in self.output.lines(tail) {
            rows.extend(self.short(&line, columns));
        }
        rows
    }

    /// All lines, of which only those near the end are laid again.
    fn lay_full(&mut self, rows: &mut Vec<Row>, above: usize, columns: usize) -> usize {
        let total = self.output.lines_total();
        let (head, hidden, tail) = ends(total, MOST_HEAD, MOST_TAIL);
        if self.ends.len() > total {
            self.ends.clear();
        }
        let settled = total.saturating_sub(UNSETTLED).min(self.ends.len());
        self.ends.truncate(settled);
        let first = above + self.ends.last().copied().unwrap_or(0);
        rows.truncate(first);
        for line in self.output.lines(settled..head.end) {
            rows.extend(self.wrapped(&line, columns));
            self.ends.push(rows.len() - above);
        }
        if hidden > 0 {
            rows.push(hidden_row(hidden, columns));
            for line in self.output.lines(tail) {
                rows.extend(self.wrapped(&line, columns));
            }
        }
        first
    }

    fn wrapped(&self, line: &[Span], columns: usize) -> Vec<Row> {
        let bar = [bar()];
        if self.dim {
            wrap_hard(&dimmed(line), columns, &bar, &bar)
        } else {
            wrap_hard(line, columns, &bar, &bar)
        }
    }

    /// A line of a few rows at most.
    fn short(&self, line: &[Span], columns: usize) -> Vec<Row> {
        let room = columns.saturating_sub(2).max(1) * MOST_ROWS;
        if spans_width(line) <= room {
            return self.wrapped(line, columns);
        }
        let mut start = clip_spans(line, room.saturating_sub(1));
        start.push(sign("…", Role::Dim));
        let mut rows = self.wrapped(&start, columns);
        rows.truncate(MOST_ROWS);
        rows
    }
}

fn dimmed(line: &[Span]) -> Vec<Span> {
    let dim = |span: &Span| match span.role {
        Role::Text if !span.mark.has(Mark::BOLD) => Span {
            role: Role::Dim,
            ..span.clone()
        },
        _ => span.clone(),
    };
    line.iter().map(dim).collect()
}

fn bar() -> Span {
    sign("│ ", Role::Rule)
}

fn hidden_row(hidden: usize, columns: usize) -> Row {
    let text = Span::new(format!("… {}", figure::count(hidden, "line", "lines")), Role::Dim);
    let mut rows = wrap(&[text], columns, &[bar()], &[bar()]);
    rows.truncate(1);
    rows.pop().unwrap_or_default()
}
