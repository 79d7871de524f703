//! `file_edit`: operation, path, lines added and removed, state, and the diff with line numbers, syntax colours and marked
//! words. Hunks of one call and file share the first one's header.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    DocumentKind, DocumentState, Fold, Key, Leaf, RenderContext,
    code::{Gutter, code_line, digits, flagged, mark_words, pieces},
    copy, decision, error,
    heading::{Facts, Weight, at_work, gap, line, path_heading, sign, signed, word},
    problem_sign, seed,
    value::ends,
};
use crate::{
    locale::figure,
    protocol::{
        Applied, Document, Kind, Operation, View,
        document::{FileEdit, change_check},
    },
    t,
    text::{
        CodeLine, Role, Sanitized, Span, StyledLine,
        diff::{CONTEXT_LINES, ContextLines, Diff, DiffLine, End, LineKind},
        width::{cut_middle, cut_spans, width},
        wrap::wrap,
    },
};

/// A longer change keeps so many lines of its head and its tail.
const HEAD: usize = 60;
const TAIL: usize = 20;
/// A new file is shown by its head.
const CREATED_HEAD: usize = 12;
/// The second text of a document, beside the one that [`seed`] names.
const OLD_SIDE: u64 = 0x5eaf_0000_0000_0000;

/// The change of one document, found once.
pub(super) struct CachedDiff {
    version: u64,
    context: ContextLines,
    diff: Diff,
}

impl DocumentKind for FileEdit<'_> {
    fn lay_out(
        &mut self,
        document: &Document,
        context: &RenderContext<'_>,
        state: &mut DocumentState,
    ) -> Option<usize> {
        // Anything but a new file as a whole shows its ends only.
        if let (Some(content), None, Fold::Full) = (&mut self.content, &self.diff, context.fold) {
            state.limit(content, document.is_open());
        }
        let content = self.content.filter(|_| self.diff.is_none());
        let because = because(self, context);
        let has_failed = error::failure(document).is_some();
        let lines = content.map(|it| state.memo.counted.count(it, document.is_open()));
        if context.fold == Fold::Full
            && let Some(content) = content.filter(|it| !it.is_empty() && because.is_empty() && !has_failed)
        {
            let code = super::code::Code {
                glyph: glyph(self, context),
                head: head(self, document, lines.map(|it| (it, 0)), context),
                // While it grows the column of numbers keeps its width.
                numbers: Some((
                    1,
                    if document.is_open() {
                        999
                    } else {
                        lines.unwrap_or(0) as u64
                    },
                )),
                language: self.language,
                content,
                gutter: Gutter::Added,
            };
            return super::code::grow(code, document, context, state);
        }
        let lines_around = context.context;
        let is_current = |it: &CachedDiff| it.version == document.version && it.context == lines_around;
        let found = state.memo.found.take().filter(is_current);
        let found = found.or_else(|| {
            Some(CachedDiff {
                version: document.version,
                context: lines_around,
                diff: self.compare_within(lines_around)?,
            })
        });
        let diff = found.as_ref().map(|it| &it.diff);
        let counts = diff.map(|it| (it.added, it.removed)).or(lines.map(|it| (it, 0)));
        let mut rows = vec![head(self, document, counts, context)];
        if let Some(reason) =
            error::failure(document).filter(|it| !context.joined && !has_room_beside(self, it, context))
        {
            rows.extend(wrap(&[Span::new(reason, Role::Error)], context.width, &[], &[]));
        }
        // What was not made is read by who unfolds it.
        if !has_failed || context.fold == Fold::Full {
            rows.extend(change(self, diff, lines.unwrap_or(0), document, context));
        }
        if context.fold == Fold::Full {
            rows.extend(error::failure_rows(document, context.width));
        }
        rows.extend(because);
        state.memo.found = found;
        state.replace(Leaf::of(glyph(self, context), rows))
    }

    fn folded(&self, document: &Document, context: &RenderContext<'_>) -> Leaf {
        let diff = self.compare(0);
        Leaf::line(
            glyph(self, context),
            head(self, document, counts(self, diff.as_ref()), context),
        )
    }

    fn summary(&self, _: &Document) -> Sanitized {
        let target = self.new_file_path.map_or_else(String::new, |it| format!(" → {it}"));
        Sanitized::line(&format!("{} {}{target}", name(&self.operation), self.file_path))
    }

    fn depends(&self, _: &Document, context: &RenderContext<'_>, key: &mut Key) {
        key.links = context.root.is_some();
        key.read_only = context.read_only;
        key.joined = context.joined;
        key.context = context.context;
        key.has_approval = context.approval.is_some();
    }

    fn copy_text(&self, _: &Document) -> Sanitized {
        patch(self).unwrap_or_else(|| Sanitized::new(self.content.unwrap_or(self.file_path)))
    }

    fn markdown(&self, _: &Document) -> String {
        if let Some(patch) = patch(self) {
            return copy::fenced("diff", &patch);
        }
        let head = format!("`{}`", Sanitized::line(self.file_path));
        match self.content {
            Some(content) => format!("{head}\n\n{}", copy::fenced("", content)),
            None => head,
        }
    }

    fn code(&self) -> Option<Sanitized> {
        let code = self.diff.as_ref().map(|it| it.new).or(self.content)?;
        Some(Sanitized::new(code))
    }
}

/// The change without a header, for an approval.
pub(super) fn body(edit: &FileEdit<'_>, document: &Document, look: &RenderContext<'_>) -> Vec<StyledLine> {
    let lines = edit.content.map_or(0, |it| it.lines().count());
    change(edit, edit.compare_within(look.context).as_ref(), lines, document, look)
}

/// The change as a patch, for copying. The lines of a cell are none of the file's.
pub(super) fn patch(edit: &FileEdit<'_>) -> Option<Sanitized> {
    let found = edit.compare(CONTEXT_LINES).filter(|_| edit.cell.is_none())?;
    let target = edit.new_file_path.unwrap_or(edit.file_path);
    Some(Sanitized::from(found.patch(Some(edit.file_path), Some(target))))
}

/// Unchanged lines to show with a hunk, if the document `before` it is a hunk of the same call on the same file, whose
/// header stands for both: what is shown below that one is not shown again. `None`: it is not.
pub fn joins(before: &Document, document: &Document, context: ContextLines) -> Option<ContextLines> {
    if before.kind != Kind::FileEdit || document.kind != Kind::FileEdit {
        return None;
    }
    let (View::FileEdit(first), View::FileEdit(second)) = (before.view(), document.view()) else {
        return None;
    };
    let is_same = second.tool_call_id.is_some()
        && first.tool_call_id == second.tool_call_id
        && first.file_path == second.file_path;
    is_same.then(|| below(&first, &second, context))
}

/// Unchanged lines to show with a hunk that stands under another one of the same file.
pub fn below(first: &FileEdit<'_>, second: &FileEdit<'_>, context: ContextLines) -> ContextLines {
    let gap = second.lines_since(first);
    ContextLines {
        above: gap.map_or(usize::MAX, |it| it.saturating_sub(context.around)),
        ..context
    }
}

fn counts(edit: &FileEdit<'_>, diff: Option<&Diff>) -> Option<(usize, usize)> {
    match diff {
        Some(diff) => Some((diff.added, diff.removed)),
        None => Some((edit.content?.lines().count(), 0)),
    }
}

fn glyph(edit: &FileEdit<'_>, look: &RenderContext<'_>) -> Span {
    let role = match edit.applied {
        Applied::Failed => Role::Error,
        Applied::Rejected => Role::Dim,
        Applied::Pending => Role::Waiting,
        Applied::Applied | Applied::Other(_) if look.joined => Role::Faint,
        Applied::Applied | Applied::Other(_) => Role::Accent,
    };
    sign("±", role)
}

fn head(
    edit: &FileEdit<'_>,
    document: &Document,
    counts: Option<(usize, usize)>,
    look: &RenderContext<'_>,
) -> StyledLine {
    let mut told = Facts::default();
    state(edit, document, look, &mut told);
    let mut facts = Facts::default();
    if let Some((added, removed)) = counts {
        let mut list = Vec::new();
        if added > 0 {
            list.push(Span::new(format!("+{}", figure::grouped(added as u64)), Role::Added));
        }
        if added > 0 && removed > 0 {
            list.push(gap(1));
        }
        if removed > 0 {
            list.push(Span::new(
                format!("−{}", figure::grouped(removed as u64)),
                Role::Removed,
            ));
        }
        // How much it is gives way to a state that is news.
        let weight = if told.has(Weight::Heavy) {
            Weight::Medium
        } else {
            Weight::Heavy
        };
        facts.push(weight, list);
    }
    if let Some(cell) = edit.cell {
        let number = cell.index.saturating_add(1);
        let text = if cell.is_new {
            t!("edit-new-cell", number = number)
        } else {
            t!("edit-cell", number = number)
        };
        facts.word(Weight::Medium, text, Role::Dim);
    }
    if let Some(hunk) = edit.hunk.filter(|it| it.count > 1) {
        let text = t!("edit-hunk", place = hunk.index, count = hunk.count);
        facts.word(Weight::Light, text, Role::Dim);
    }
    facts.extend(told);
    let mut behind: Vec<Span> = if look.read_only {
        vec![gap(2), super::badge()]
    } else {
        Vec::new()
    };
    if let Some(reason) = error::failure(document).filter(|it| has_room_beside(edit, it, look)) {
        behind.extend([gap(2), Span::new(reason, Role::Error)]);
    }
    if look.joined {
        let start = edit.diff.as_ref().and_then(|it| it.start_line);
        let place = start.map_or(Sanitized::literal(t!("edit-further")), |it| {
            Sanitized::from(t!("edit-line", line = it))
        });
        let spans: Vec<Span> = std::iter::once(Span::new(place, Role::Dim)).chain(behind).collect();
        return line(&spans, facts, look.width);
    }
    let path = Span::new(Sanitized::line(edit.file_path), Role::Strong).bold().linked(
        look.root
            .and_then(|root| super::code_reference::file_link(root, edit.file_path)),
    );
    match edit.new_file_path {
        Some(target) => {
            let target = Span::new(Sanitized::line(target), Role::Strong).bold();
            let word = word(name(&edit.operation));
            let around = width(&word.text) + ARROW;
            let (facts, room) = facts.fit(around + width(&path.text) + width(&target.text), look.width);
            let mut title = vec![word];
            title.extend(renaming(path, target, room.saturating_sub(around)));
            title.extend(behind);
            StyledLine::of(cut_spans(&title, room)).facts(facts)
        }
        None => path_heading(name(&edit.operation), &path, &behind, facts, look.width),
    }
}

/// Returns true if the reason of a failure fits into the heading, beside the path; otherwise it has rows of its own.
fn has_room_beside(edit: &FileEdit<'_>, reason: &Sanitized, look: &RenderContext<'_>) -> bool {
    let path = width(edit.file_path) + edit.new_file_path.map_or(0, |it| ARROW + width(it));
    // The word of the operation, the state, and what separates them.
    const AROUND: usize = 22;
    !look.joined && AROUND + path + width(reason) <= look.width
}

/// The name of an operation in a heading.
pub fn name(operation: &Operation) -> &str {
    match operation {
        Operation::Create => t!("edit-create"),
        Operation::Edit => t!("edit-edit"),
        Operation::Delete => t!("edit-delete"),
        Operation::Rename => t!("edit-rename"),
        Operation::Other(word) => word,
    }
}

/// The name of an operation in an approval.
pub(super) fn verb(operation: &Operation) -> &str {
    match operation {
        Operation::Create => t!("approval-create"),
        Operation::Edit => t!("approval-edit"),
        Operation::Delete => t!("approval-delete"),
        Operation::Rename => t!("approval-rename"),
        Operation::Other(word) => word,
    }
}

/// Columns of the arrow between two paths.
const ARROW: usize = 3;

/// Both paths, each cut in its middle where they do not fit together.
fn renaming(path: Span, target: Span, room: usize) -> [Span; 3] {
    let (first, second) = (width(&path.text), width(&target.text));
    let half = room / 2;
    let (first, second) = match (first <= half, second <= room - half) {
        _ if first + second <= room => (first, second),
        (true, _) => (first, room - first),
        (false, true) => (room - second, second),
        (false, false) => (half, room - half),
    };
    let cut = |span: Span, columns| Span {
        text: Sanitized::from(cut_middle(&span.text, columns)),
        ..span
    };
    [cut(path, first), sign(" → ", Role::Dim), cut(target, second)]
}

/// The words of the user who decided on this change.
fn because(edit: &FileEdit<'_>, look: &RenderContext<'_>) -> Vec<StyledLine> {
    let Some(View::Clarification(approval)) = look.approval.map(Document::view) else {
        return Vec::new();
    };
    decision::because(&approval, edit.hunk.map_or(1, |it| it.index), look)
}

fn state(edit: &FileEdit<'_>, document: &Document, look: &RenderContext<'_>, facts: &mut Facts) {
    if document.is_open() {
        return facts.push(Weight::Heavy, at_work(t!("edit-writing")));
    }
    if document.is_incomplete() {
        return facts.word(Weight::Heavy, signed("✗", t!("document-broken-off")), Role::Error);
    }
    if let Some(word) = super::undone(document) {
        return facts.word(Weight::Heavy, word, Role::Dim);
    }
    match &edit.applied {
        Applied::Pending => facts.word(Weight::Heavy, t!("edit-pending"), Role::Waiting),
        // It is not shown as done before it has been looked at.
        Applied::Applied if document.is_checking() => {
            facts.push(Weight::Medium, at_work(t!("edit-checking")));
        }
        // What is no news gives way to what is.
        Applied::Applied if let Some(word) = look.approval.filter(|_| !look.joined).and_then(decision::granted) => {
            facts.word(Weight::Medium, word, Role::Dim);
        }
        Applied::Applied => facts.word(Weight::Medium, t!("edit-applied"), Role::Dim),
        Applied::Rejected => facts.word(Weight::Heavy, signed("✗", t!("edit-rejected")), Role::Error),
        Applied::Failed => facts.word(Weight::Heavy, signed("✗", t!("edit-failed")), Role::Error),
        Applied::Other(word) if word.is_empty() => {}
        Applied::Other(word) => facts.word(Weight::Heavy, word.replace('_', " "), Role::Dim),
    }
    check(document, facts);
}

/// The number of problems that the change has brought, or removed.
pub(super) fn check(document: &Document, facts: &mut Facts) {
    let Some(check) = change_check(&document.metadata).filter(|it| !it.is_pending) else {
        return;
    };
    if check.new_problems > 0 {
        let text = signed("✗", &t!("edit-problems", count = check.new_problems));
        facts.word(Weight::Heavy, text, Role::Error);
        return;
    }
    let is_known = check.is_checked && check.unchecked.is_empty();
    let is_clean = is_known && check.open_problems == 0 && check.older_problems.is_empty();
    if !check.older_problems.is_empty() {
        let text = signed("?", &t!("edit-older", count = check.older_count));
        facts.word(Weight::Heavy, text, Role::Waiting);
    }
    if check.open_problems > 0 {
        let text = signed("✗", &t!("edit-open", count = check.open_problems));
        facts.word(Weight::Heavy, text, Role::Error);
    }
    if check.fixed_problems > 0 {
        let text = t!("edit-fixed", count = check.fixed_problems);
        let text = if is_clean {
            signed("✓", &text)
        } else {
            Sanitized::from(text)
        };
        facts.word(Weight::Light, text, Role::Dim);
    } else if is_clean {
        facts.word(Weight::Light, signed("✓", t!("edit-checked")), Role::Dim);
    }
    if is_known {
        return;
    }
    if check.is_checked {
        facts.word(Weight::Light, t!("edit-partly-checked"), Role::Dim);
    } else if !check.unchecked.is_empty() {
        facts.word(Weight::Light, t!("edit-not-checked"), Role::Dim);
    }
}

fn change(
    edit: &FileEdit<'_>,
    diff: Option<&Diff>,
    lines: usize,
    document: &Document,
    look: &RenderContext<'_>,
) -> Vec<StyledLine> {
    match (diff, edit.content) {
        (Some(diff), _) if diff.lines.is_empty() => {
            vec![line(
                &[sign(t!("edit-nothing"), Role::Dim)],
                Facts::default(),
                look.width,
            )]
        }
        (Some(diff), _) => diff_rows(edit, diff, document, look),
        (None, Some(content)) if !content.is_empty() => created(edit, content, lines, document, look),
        (None, Some(_)) if edit.operation == Operation::Create => {
            vec![line(&[sign(t!("edit-empty"), Role::Dim)], Facts::default(), look.width)]
        }
        (None, Some(_) | None) => Vec::new(),
    }
}

/// A file that is all new: its head.
fn created(
    edit: &FileEdit<'_>,
    content: &str,
    count: usize,
    document: &Document,
    look: &RenderContext<'_>,
) -> Vec<StyledLine> {
    let (head, hidden) = if look.fold == Fold::Full || count <= CREATED_HEAD + 1 {
        (count, 0)
    } else {
        (CREATED_HEAD, count - CREATED_HEAD)
    };
    let bytes: usize = content.split_inclusive('\n').take(head).map(str::len).sum();
    let clean = Sanitized::new(content.get(..bytes).unwrap_or_default());
    let is_closed = hidden > 0 || !document.is_open();
    let colours = look
        .colours
        .code(seed(document, look), edit.language, &clean, is_closed);
    let digits = digits(head as u64);
    let flags = flags(edit, document);
    let mut rows = Vec::new();
    for (at, text) in clean.lines().enumerate() {
        let colours = colours.get(at).filter(|it| says(it, text));
        let spans = pieces(text, colours, Gutter::Added.ground());
        let number = at as u64 + 1;
        let line = code_line(&spans, Some(number), digits, Gutter::Added, look.width);
        rows.extend(flagged(line, flags.get(&number).copied()));
    }
    if hidden > 0 {
        rows.push(left_out(hidden, digits, look.width));
    }
    rows
}

/// The sign of a problem and its role.
type ProblemSign = (&'static str, Role);

/// The lines of the file that have problems, new or maybe older, and the sign of the worst.
fn flags(edit: &FileEdit<'_>, document: &Document) -> BTreeMap<u64, ProblemSign> {
    let Some(check) = change_check(&document.metadata) else {
        return BTreeMap::new();
    };
    let older = check.older_problems.iter().map(|it| (it, ("?", Role::Waiting)));
    let new = check.problems.iter().map(|it| (it, problem_sign(it.is_error)));
    let (warnings, errors): (Vec<_>, Vec<_>) = new.partition(|it| !it.0.is_error);
    let all = older.chain(warnings).chain(errors);
    let own = all.filter(|it| it.0.file_path == edit.file_path);
    own.map(|(it, sign)| (it.line, sign)).collect()
}

/// The lines of a change in their colours, both sides.
struct Painted {
    old: Arc<Vec<CodeLine>>,
    new: Arc<Vec<CodeLine>>,
    /// Number of the first line that has colours.
    first: usize,
    /// Line numbers are known.
    is_numbered: bool,
    /// Columns of the largest number.
    digits: usize,
    /// The line ends of the two sides differ: they are named.
    names_ends: bool,
    /// Lines of the new side that have problems.
    flags: BTreeMap<u64, ProblemSign>,
}

impl Painted {
    /// `None`: there is only one side.
    fn of(edit: &FileEdit<'_>, diff: &Diff, document: &Document, look: &RenderContext<'_>) -> Option<Self> {
        let texts = edit.diff.as_ref()?;
        let is_closed = !document.is_open();
        let seed = seed(document, look);
        // All lines that are known, however many of them are shown: they are coloured once.
        let (before, after) = texts.around.map_or(("", ""), |it| (it.before, it.after));
        let whole = |text: &str| Sanitized::new(&format!("{before}{text}{after}"));
        let colours = |seed, text| look.colours.code(seed, edit.language, &whole(text), is_closed);
        let first = texts.start_line.unwrap_or(1) as usize;
        let last = diff.lines.iter().filter_map(|it| it.new.max(it.old)).max().unwrap_or(1);
        let ends = |kind: LineKind| {
            let lines = diff.lines.iter().filter(move |it| it.kind == kind);
            lines.fold([false; 3], |mut seen, it| {
                seen[it.end as usize] = true;
                seen
            })
        };
        let (removed, added) = (ends(LineKind::Removed), ends(LineKind::Added));
        Some(Self {
            old: colours(seed ^ OLD_SIDE, texts.old),
            new: colours(seed, texts.new),
            first: first.saturating_sub(before.lines().count()),
            is_numbered: texts.start_line.is_some(),
            digits: digits(last as u64),
            names_ends: removed != added && diff.removed > 0 && diff.added > 0,
            flags: flags(edit, document),
        })
    }

    /// A line of one side; `None` for lines that are left out.
    fn rows(&self, line: &DiffLine, is_old: bool, columns: usize) -> Vec<StyledLine> {
        let gutter = match line.kind {
            LineKind::Skip(count) => return vec![left_out(count, self.digits, columns)],
            LineKind::Context => Gutter::Plain,
            LineKind::Removed => Gutter::Removed,
            LineKind::Added => Gutter::Added,
        };
        let (number, colours) = if is_old {
            (line.old, &self.old)
        } else {
            (line.new, &self.new)
        };
        let mut spans = words(line, at(colours, number, self.first), gutter);
        if self.names_ends && line.kind != LineKind::Context {
            spans.extend(end(line.end).map(|it| Span::new(it, Role::Dim).on(gutter.ground())));
        }
        let number = number.filter(|_| self.is_numbered).map(|it| it as u64);
        let flag = number.filter(|_| !is_old).and_then(|it| self.flags.get(&it)).copied();
        flagged(code_line(&spans, number, self.digits, gutter, columns), flag)
    }
}

/// The name of a line end other than the usual one.
fn end(end: End) -> Option<Sanitized> {
    match end {
        End::Newline => None,
        End::Return => Some(Sanitized::literal("␍")),
        End::Missing => Some(Sanitized::from(format!("  {}", t!("edit-no-newline")))),
    }
}

fn diff_rows(edit: &FileEdit<'_>, diff: &Diff, document: &Document, look: &RenderContext<'_>) -> Vec<StyledLine> {
    let Some(painted) = Painted::of(edit, diff, document, look) else {
        return Vec::new();
    };
    let most = if look.fold == Fold::Full { usize::MAX / 4 } else { HEAD };
    let (head, hidden, tail) = ends(diff.lines.len(), most, TAIL);
    let mut rows = Vec::new();
    let mut add = |line: &DiffLine| {
        rows.extend(painted.rows(line, line.kind == LineKind::Removed, look.width));
    };
    diff.lines.get(head).unwrap_or_default().iter().for_each(&mut add);
    if hidden > 0 {
        add(&DiffLine {
            kind: LineKind::Skip(hidden),
            old: None,
            new: None,
            text: String::new(),
            end: End::Newline,
            words: Vec::new(),
        });
    }
    diff.lines.get(tail).unwrap_or_default().iter().for_each(&mut add);
    rows
}

/// Both sides of a change, each line of one with what stands beside it on the other; nothing of a line is broken.
/// `None`: there is only one side.
pub fn sides(document: &Document, look: &RenderContext<'_>) -> Option<Vec<(Option<StyledLine>, Option<StyledLine>)>> {
    let View::FileEdit(edit) = document.view() else {
        return None;
    };
    let diff = edit.compare_within(look.context)?;
    let painted = Painted::of(&edit, &diff, document, look)?;
    let row = |line: &DiffLine, is_old| painted.rows(line, is_old, usize::MAX / 4).into_iter().next();
    let mut pairs: Vec<(Option<StyledLine>, Option<StyledLine>)> = Vec::new();
    // Where the block of replaced lines begins whose other side is still to come.
    let mut open = 0;
    for line in &diff.lines {
        match line.kind {
            LineKind::Removed => pairs.push((row(line, true), None)),
            LineKind::Added => match pairs.iter_mut().skip(open).find(|it| it.1.is_none()) {
                Some(pair) => pair.1 = row(line, false),
                None => pairs.push((None, row(line, false))),
            },
            LineKind::Context | LineKind::Skip(_) => {
                pairs.push((row(line, true), row(line, false)));
                open = pairs.len();
            }
        }
    }
    Some(pairs)
}

/// The line's colours, which are counted from the first line of its text.
fn at(colours: &[CodeLine], number: Option<usize>, first: usize) -> Option<&CodeLine> {
    colours.get(number?.checked_sub(first)?)
}

/// A line in its colours with its changed words marked.
fn words(found: &DiffLine, colours: Option<&CodeLine>, gutter: Gutter) -> Vec<Span> {
    let mut text = Sanitized::default();
    let mut changed = Vec::new();
    for (piece, is_changed) in found.pieces() {
        let start = text.len();
        text.push(&piece);
        if is_changed {
            changed.push(start..text.len());
        }
    }
    let spans = pieces(&text, colours.filter(|it| says(it, &text)), gutter.ground());
    mark_words(spans, &changed, gutter)
}

fn says(colours: &CodeLine, line: &str) -> bool {
    super::lines::says(colours, line)
}

fn left_out(count: usize, digits: usize, columns: usize) -> StyledLine {
    let text = Span::new(format!("… {}", t!("count-lines", count = count)), Role::Dim);
    let indent = gap((digits + 3).min(columns.saturating_sub(width(&text.text))));
    line(&[indent, text], Facts::default(), columns)
}

#[cfg(test)]
mod tests;
