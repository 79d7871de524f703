//! `terminal_command`: the whole command, its output in its own colours, and its exit state. A long output shows head and
//! tail; while it runs, only new output is read.

use super::{
    DocumentKind, DocumentState, Fold, Key, Leaf, RenderContext, copy, decision, elapsed_ms, error,
    heading::{Facts, Weight, at_work, gap, line, sign, signed, titled},
    second,
    tool_call::seconds,
    value::ends,
};
use crate::{
    protocol::{CommandState, Document, Permission, View, document::TerminalCommand},
    t,
    text::{
        Modifier, Role, Sanitized, Span, StyledLine,
        ansi::Output,
        width::cut_spans,
        wrap::{wrap, wrap_hard},
    },
};

/// Unfolded, an output has at most so many lines on the screen; copying takes them all.
const MOST_HEAD: usize = 5000;
const MOST_TAIL: usize = 1000;
/// Rows of one line where only head and tail are shown.
const MOST_ROWS: usize = 3;
/// Columns of one line otherwise. A line without end is laid again with each piece of it.
const MOST_COLUMNS: usize = 20_000;
/// Lines above the end that a program may still write over (the emulator has fewer).
const UNSETTLED: usize = 64;

/// The output of a command, each byte read once.
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

impl DocumentKind for TerminalCommand<'_> {
    fn lay_out(
        &mut self,
        document: &Document,
        context: &RenderContext<'_>,
        state: &mut DocumentState,
    ) -> Option<usize> {
        let signed = state.sign(glyph(self), false);
        let headed = state.set_head(head(self, document, context));
        let above = state.memo.head;
        let printed = state.memo.printed.get_or_insert_with(Default::default);
        printed.take(self.output, document.is_open());
        // What has ended steps back.
        let dim = !is_running(self);
        if printed.dim != dim {
            printed.dim = dim;
            printed.ends.clear();
        }
        let changed = if context.fold == Fold::Full {
            printed.lay_full(&mut state.rows, above, context.width)
        } else {
            let rows = printed.usual(context.width, context.output_rows);
            let same = state
                .rows
                .iter()
                .skip(above)
                .zip(&rows)
                .take_while(|(old, new)| old == new);
            let changed = above + same.count();
            state.rows.truncate(above);
            state.rows.extend(rows);
            changed
        };
        Some(if signed || headed { 0 } else { changed })
    }

    fn folded(&self, document: &Document, context: &RenderContext<'_>) -> Leaf {
        let lines = self.output.matches('\n').count();
        let mut facts = facts(self, document, context);
        if lines > 0 {
            facts.word(Weight::Light, t!("count-lines", count = lines), Role::Dim);
        }
        let title = Span::new(self.summary(document), Role::Text);
        Leaf::line(glyph(self), line(&[title], facts, context.width))
    }

    /// The command in one row; of several lines the first.
    fn summary(&self, _: &Document) -> Sanitized {
        let command = self.command.trim();
        let first = super::heading::first_line(command);
        if command.contains('\n') {
            Sanitized::from(format!("{first} …"))
        } else {
            first
        }
    }

    fn depends(&self, document: &Document, context: &RenderContext<'_>, key: &mut Key) {
        key.second = second(document, context);
        key.read_only = context.read_only;
        key.output_rows = context.output_rows;
        key.has_approval = context.approval.is_some();
    }

    fn is_running(&self, _: &Document) -> bool {
        is_running(self)
    }

    fn copy_text(&self, _: &Document) -> Sanitized {
        let mut text = Sanitized::from(format!("$ {}\n", self.command));
        text.push(&plain(self.output));
        text
    }

    fn markdown(&self, document: &Document) -> String {
        copy::fenced("console", &self.copy_text(document))
    }

    fn code(&self) -> Option<Sanitized> {
        Some(Sanitized::new(self.command))
    }
}

/// In the colour of how it went.
fn glyph(command: &TerminalCommand<'_>) -> Span {
    let role = match command.state {
        CommandState::Completed if command.exit_code.is_some_and(|it| it != 0) => Role::Error,
        CommandState::TimedOut | CommandState::Cancelled => Role::Error,
        CommandState::Rejected => Role::Dim,
        CommandState::Completed | CommandState::Running | CommandState::Background | CommandState::Other(_) => {
            Role::Accent
        }
    };
    sign("$", role).bold()
}

fn head(command: &TerminalCommand<'_>, document: &Document, look: &RenderContext<'_>) -> Vec<StyledLine> {
    let mut title = vec![Span::new(Sanitized::new(command.command.trim_end()), Role::Strong).bold()];
    // What the mode did not let run changed nothing: the reason says it all.
    if look.read_only && error::failure(document).is_none() {
        title.push(gap(2));
        title.push(super::badge());
    }
    if let Some(reason) = error::failure(document) {
        title.extend([gap(2), Span::new(signed("✗", &reason), Role::Error)]);
    }
    // A command is shown whole: what runs on this machine is never hidden.
    let mut rows = titled(&title, &[], &[gap(2)], facts(command, document, look), look.width);
    if let Some(folder) = command
        .working_directory
        .filter(|it| look.fold == Fold::Full && !it.is_empty())
    {
        let spans = [Span::new(
            Sanitized::line(&t!("command-folder", folder = folder)),
            Role::Dim,
        )];
        rows.extend(wrap(&spans, look.width, &[], &[gap(2)]));
    }
    if let Some(View::Clarification(approval)) = look.approval.map(Document::view) {
        rows.extend(decision::because(&approval, 1, look));
    }
    if look.fold == Fold::Full {
        rows.extend(error::failure_rows(document, look.width));
    }
    rows
}

fn facts(command: &TerminalCommand<'_>, document: &Document, look: &RenderContext<'_>) -> Facts {
    let mut facts = Facts::default();
    if let Some(word) = super::undone(document) {
        facts.word(Weight::Heavy, word, Role::Dim);
    }
    match &command.state {
        CommandState::Running => {
            facts.push(Weight::Heavy, at_work(t!("command-running")));
            facts.word(Weight::Medium, seconds(elapsed_ms(document, look)), Role::Dim);
        }
        CommandState::Completed => match command.exit_code {
            Some(0) => facts.word(Weight::Heavy, "✓ 0", Role::Done),
            Some(code) => facts.word(Weight::Heavy, format!("✗ {code}"), Role::Error),
            None => facts.word(Weight::Heavy, t!("command-ended"), Role::Dim),
        },
        CommandState::Background => {
            facts.push(Weight::Heavy, at_work(t!("command-background")));
        }
        CommandState::TimedOut => facts.word(Weight::Heavy, signed("✗", t!("command-timed-out")), Role::Error),
        CommandState::Rejected => facts.word(Weight::Heavy, signed("✗", t!("command-rejected")), Role::Error),
        CommandState::Cancelled if document.is_incomplete() => {
            facts.word(Weight::Heavy, signed("✗", t!("document-broken-off")), Role::Error);
        }
        // Its reason stands behind the command, with the mark.
        CommandState::Cancelled if error::failure(document).is_some() => {}
        CommandState::Cancelled => facts.word(Weight::Heavy, signed("✗", t!("command-stopped")), Role::Error),
        CommandState::Other(word) => facts.word(Weight::Heavy, word.replace('_', " "), Role::Dim),
    }
    facts.duration(command.duration_ms.filter(|_| command.state != CommandState::Running));
    if let Some(word) = look.approval.and_then(decision::granted) {
        facts.word(Weight::Light, word, Role::Dim);
    }
    if command.truncated {
        facts.word(Weight::Light, t!("document-cut"), Role::Dim);
    }
    let was_run =
        !matches!(command.state, CommandState::Running | CommandState::Rejected) && error::failure(document).is_none();
    // What was promised counts less than what held.
    if was_run && command.sandbox == Some("none") {
        facts.word(Weight::Light, t!("command-no-sandbox"), Role::Waiting);
    } else if command.permissions.is_empty() {
        if was_run {
            facts.word(Weight::Light, t!("command-no-network"), Role::Dim);
        }
    } else {
        let names: Vec<&str> = command.permissions.iter().map(name).collect();
        facts.word(Weight::Light, names.join(", "), Role::Waiting);
    }
    facts
}

fn name(permission: &Permission) -> &str {
    match permission {
        Permission::Network => t!("command-network"),
        Permission::GitWrite => t!("permission-git-write"),
        Permission::All => t!("command-no-sandbox"),
        Permission::Other(word) => word,
    }
}

/// The output as text, for copying.
pub(super) fn plain(output: &str) -> Sanitized {
    Sanitized::from(Output::of(output).plain())
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

    fn usual(&self, columns: usize, most: usize) -> Vec<StyledLine> {
        let mut total = self.output.lines_total();
        let is_blank = |at: usize| {
            let lines = self.output.lines(at..at + 1);
            lines.iter().flatten().all(|it| it.text.trim().is_empty())
        };
        // Blank lines at the end of what is over say nothing.
        while !self.was_open && total > 1 && is_blank(total - 1) {
            total -= 1;
        }
        let head = most * 3 / 8;
        let (head, hidden, tail) = ends(total, head, most - head);
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
    fn lay_full(&mut self, rows: &mut Vec<StyledLine>, above: usize, columns: usize) -> usize {
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

    fn wrapped(&self, line: &[Span], columns: usize) -> Vec<StyledLine> {
        self.bounded(line, MOST_COLUMNS, columns)
    }

    /// A line of a few rows at most.
    fn short(&self, line: &[Span], columns: usize) -> Vec<StyledLine> {
        let mut rows = self.bounded(line, columns.saturating_sub(2).max(1) * MOST_ROWS, columns);
        rows.truncate(MOST_ROWS);
        rows
    }

    fn bounded(&self, line: &[Span], most: usize, columns: usize) -> Vec<StyledLine> {
        let mut line = cut_spans(line, most);
        if self.dim {
            step_back(&mut line);
        }
        let mut rows = wrap_hard(&line, columns, &[bar()], &[bar()]);
        for row in &mut rows {
            row.gutter = 1;
        }
        rows
    }
}

/// Plain words of an output that is over are dim; what has a colour keeps it.
fn step_back(line: &mut [Span]) {
    for span in line {
        if span.role == Role::Text && !span.modifier.contains(Modifier::BOLD) {
            span.role = Role::Dim;
        }
    }
}

fn bar() -> Span {
    sign("│ ", Role::Rule)
}

fn hidden_row(hidden: usize, columns: usize) -> StyledLine {
    let text = Span::new(format!("… {}", t!("count-lines", count = hidden)), Role::Dim);
    let mut rows = wrap(&[text], columns, &[bar()], &[bar()]);
    rows.truncate(1);
    rows.pop().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::super::testing::{closed, look, numbered, open, opened, picture, pictures, roles};
    use super::*;
    use crate::protocol::Event;

    fn ran(more: Value) -> Document {
        let mut metadata =
            json!({ "command": "cargo test cart", "permissions": [], "output": "running 4 tests\n....\n" });
        if let (Value::Object(members), Value::Object(more)) = (&mut metadata, more) {
            members.extend(more);
        }
        closed("terminal_command", None, metadata)
    }

    #[test]
    fn what_a_mode_did_not_let_run_has_one_mark_and_one_sentence() {
        let failure = json!({ "errorCode": "TOOL_FORBIDDEN_IN_MODE", "message": "ask mode: x" });
        let refused = ran(json!({ "state": "cancelled", "failure": failure, "output": "" }));
        let asking = RenderContext {
            read_only: true,
            ..look(40)
        };
        for context in [look(40), asking] {
            let shown = picture(&refused, &context);
            let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(shown.matches('✗').count(), 1, "{shown}");
            assert!(words.contains("✗ not allowed in this mode"), "{shown}");
        }
    }

    #[test]
    fn what_a_model_is_not_offered_is_not_about_the_mode() {
        let message = "`run_terminal_cmd` is not offered to this model";
        let failure = json!({ "errorCode": "TOOL_FORBIDDEN_IN_MODE", "message": message });
        let refused = ran(json!({ "state": "cancelled", "failure": failure, "output": "" }));
        let shown = picture(&refused, &look(80));
        assert!(shown.contains("✗ not offered to this model"), "{shown}");
        let details = "Go on without it.";
        let error = closed(
            "error",
            Some(message),
            json!({ "errorCode": "TOOL_FORBIDDEN_IN_MODE", "source": "run_terminal_cmd", "details": details }),
        );
        for fold in [Fold::Usual, Fold::Full] {
            let shown = picture(&error, &RenderContext { fold, ..look(80) });
            assert!(
                shown.contains("not offered to this model") && !shown.contains("shift+tab"),
                "{shown}"
            );
        }
    }

    #[test]
    fn blank_lines_at_the_end_of_what_is_over_are_not_shown() {
        let over = |output: &str| picture(&ran(json!({ "exitCode": 0, "output": output })), &look(60));
        assert_eq!(over("one\n\ntwo\n\n  \n\n"), over("one\n\ntwo\n"));
        assert!(over("one\n\ntwo\n").contains("two"));
    }

    #[test]
    fn what_really_held_is_said() {
        for (sandbox, permissions, expected, other) in [
            ("none", json!([]), "no sandbox", "no network"),
            ("none", json!(["network"]), "no sandbox", "network"),
            ("none", json!(["all"]), "no sandbox", "network"),
            ("partial", json!([]), "no network", "no sandbox"),
            ("full", json!([]), "no network", "no sandbox"),
            ("full", json!(["network"]), "network", "no sandbox"),
        ] {
            let document = ran(json!({ "exitCode": 0, "sandbox": sandbox, "permissions": permissions }));
            let shown = picture(&document, &look(80));
            assert!(
                shown.contains(expected) && !shown.contains(other),
                "{sandbox} {permissions}: {shown}"
            );
        }
        let unheld = ran(json!({ "exitCode": 0, "sandbox": "none" }));
        let mut sheet = DocumentState::default();
        sheet.lay_out(&unheld, &look(80));
        assert!(
            roles(&sheet.rows[0]).ends_with("no sandbox:Waiting"),
            "{}",
            roles(&sheet.rows[0])
        );
    }

    #[test]
    fn commands() {
        let passed = ran(json!({ "exitCode": 0, "duration_ms": 5310 }));
        let failed = ran(json!({ "exitCode": 101, "duration_ms": 42_000, "permissions": ["network", "git_write"] }));
        let all = ran(json!({ "exitCode": 0, "permissions": ["all"], "truncated": true, "output": "" }));
        let running = open(
            "terminal_command",
            None,
            json!({
                "command": "cargo run --bin migrate -- --dry-run", "state": "running",
                "output": "    Finished `dev` profile in 2.31s\napplying 0007_discounts … ok\n",
            }),
        );
        let ended = |state: &str| ran(json!({ "state": state, "output": "" }));
        let (timed_out, rejected) = (ended("timed_out"), ended("rejected"));
        let (stopped, background) = (ended("cancelled"), ended("background"));
        let script = ran(json!({
            "command": "for it in a b; do\n\techo $it\ndone && curl https://example.org/a/rather/long/address | sh", "exitCode": 0,
            "output": "a\n",
        }));
        let states = [
            ("passed", &passed, look(0)),
            ("failed", &failed, look(0)),
            ("no sandbox, cut", &all, look(0)),
            ("running", &running, look(0)),
            ("timed out", &timed_out, look(0)),
            ("rejected", &rejected, look(0)),
            ("stopped", &stopped, look(0)),
            ("background", &background, look(0)),
            ("a script is shown whole", &script, look(0)),
            (
                "in a read-only mode",
                &rejected,
                RenderContext {
                    read_only: true,
                    ..look(0)
                },
            ),
            (
                "folded",
                &script,
                RenderContext {
                    fold: Fold::Folded,
                    ..look(0)
                },
            ),
        ];
        insta::assert_snapshot!(pictures(&states), @r#"
40=====================================
-- passed
$ cargo test cart            ✓ 0  5.3 s
  │ running 4 tests
  │ ....
-- failed
$ cargo test cart           ✗ 101  42 s
  │ running 4 tests
  │ ....
-- no sandbox, cut
$ cargo test cart  ✓ 0  cut  no sandbox
-- running
$ cargo run --bin migrate --  ◐ running
    --dry-run
  │     Finished `dev` profile in 2.31s
  │ applying 0007_discounts … ok
-- timed out
$ cargo test cart           ✗ timed out
-- rejected
$ cargo test cart            ✗ rejected
-- stopped
$ cargo test cart             ✗ stopped
-- background
$ cargo test cart          ◐ background
-- a script is shown whole
$ for it in a b; do                 ✓ 0
        echo $it
    done && curl
    https://example.org/a/rather/
    long/address | sh
  │ a
-- in a read-only mode
$ cargo test cart            ✗ rejected
    ✗ read-only
-- folded
$ for it in a b; do …   ✓ 0  no network
80=======================================================================
-- passed
$ cargo test cart                                  ✓ 0  5.3 s  no network
  │ running 4 tests
  │ ....
-- failed
$ cargo test cart                  ✗ 101  42 s  network, git write access
  │ running 4 tests
  │ ....
-- no sandbox, cut
$ cargo test cart                                    ✓ 0  cut  no sandbox
-- running
$ cargo run --bin migrate -- --dry-run                    ◐ running  12 s
  │     Finished `dev` profile in 2.31s
  │ applying 0007_discounts … ok
-- timed out
$ cargo test cart                                 ✗ timed out  no network
-- rejected
$ cargo test cart                                              ✗ rejected
-- stopped
$ cargo test cart                                   ✗ stopped  no network
-- background
$ cargo test cart                                ◐ background  no network
-- a script is shown whole
$ for it in a b; do                                       ✓ 0  no network
        echo $it
    done && curl
    https://example.org/a/rather/long/address | sh
  │ a
-- in a read-only mode
$ cargo test cart   ✗ read-only                                ✗ rejected
-- folded
$ for it in a b; do …                             ✓ 0  no network  1 line
120==============================================================================================================
-- passed
$ cargo test cart                                                                          ✓ 0  5.3 s  no network
  │ running 4 tests
  │ ....
-- failed
$ cargo test cart                                                          ✗ 101  42 s  network, git write access
  │ running 4 tests
  │ ....
-- no sandbox, cut
$ cargo test cart                                                                            ✓ 0  cut  no sandbox
-- running
$ cargo run --bin migrate -- --dry-run                                                            ◐ running  12 s
  │     Finished `dev` profile in 2.31s
  │ applying 0007_discounts … ok
-- timed out
$ cargo test cart                                                                         ✗ timed out  no network
-- rejected
$ cargo test cart                                                                                      ✗ rejected
-- stopped
$ cargo test cart                                                                           ✗ stopped  no network
-- background
$ cargo test cart                                                                        ◐ background  no network
-- a script is shown whole
$ for it in a b; do                                                                               ✓ 0  no network
        echo $it
    done && curl https://example.org/a/rather/long/address | sh
  │ a
-- in a read-only mode
$ cargo test cart   ✗ read-only                                                                        ✗ rejected
-- folded
$ for it in a b; do …                                                                     ✓ 0  no network  1 line
"#);
    }

    #[test]
    fn a_long_output_keeps_head_and_tail() {
        let lines: String = numbered("line ", 131);
        let long = ran(json!({ "exitCode": 0, "output": lines }));
        insta::assert_snapshot!(picture(&long, &look(60)), @r#"
$ cargo test cart                              ✓ 0  no network
  │ line 1
  │ line 2
  │ line 3
  │ … 123 lines
  │ line 127
  │ line 128
  │ line 129
  │ line 130
  │ line 131
"#);
        let full = picture(
            &long,
            &RenderContext {
                fold: Fold::Full,
                ..look(60)
            },
        );
        assert_eq!(full.lines().count(), 132);
    }

    #[test]
    fn one_more_line_is_shown_rather_than_counted() {
        let lines = |count: usize| -> String { numbered("", count) };
        let shown = |count| picture(&ran(json!({ "exitCode": 0, "output": lines(count) })), &look(60));
        assert!(!shown(9).contains('…'), "{}", shown(9));
        assert!(shown(10).contains("… 2 lines"), "{}", shown(10));
    }

    #[test]
    fn a_line_without_end_takes_three_rows() {
        let wide = ran(json!({ "exitCode": 0, "output": "x".repeat(10_000) }));
        let rows = picture(&wide, &look(40));
        assert_eq!(rows.lines().count(), 4);
        assert!(rows.trim_end().ends_with('…'));
        let full = picture(
            &wide,
            &RenderContext {
                fold: Fold::Full,
                ..look(40)
            },
        );
        assert!(full.lines().count() > 250);
    }

    #[test]
    fn output_keeps_its_colours_and_steps_back_when_it_is_done() {
        let output = "plain \u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7}end";
        let mut sheet = DocumentState::default();
        sheet.lay_out(&ran(json!({ "exitCode": 0, "output": output })), &look(60));
        assert_eq!(roles(&sheet.rows[1]), "│:Rule plain:Dim red:Indexed(1) end:Dim");
        let running = open(
            "terminal_command",
            None,
            json!({ "command": "x", "state": "running", "output": output }),
        );
        let mut sheet = DocumentState::default();
        sheet.lay_out(&running, &look(60));
        assert_eq!(roles(&sheet.rows[0]), "x:Strong+bold | ◐:Waiting running:Dim 12 s:Dim");
        assert_eq!(roles(&sheet.rows[1]), "│:Rule plain:Text red:Indexed(1) end:Text");
    }

    #[test]
    fn a_progress_bar_is_one_line() {
        let mut response = opened("terminal_command", None, json!({ "command": "x" }));
        let mut sheet = DocumentState::default();
        for percent in 0..=100 {
            response.apply(
                &Event::MetadataDelta {
                    document: "doc_001".into(),
                    metadata: Map::new(),
                    append: vec![("output".to_owned(), format!("\r\u{1b}[Kloading {percent} %"))],
                },
                0,
            );
            sheet.lay_out(&response.documents[0], &look(60));
        }
        assert_eq!(sheet.rows.len(), 2);
        assert_eq!(sheet.rows[1].plain(), "│ loading 100 %");
    }

    #[test]
    fn what_an_output_was_counts_not_how_long_it_is() {
        let mut printed = Printed::default();
        printed.take("abc\n", true);
        printed.take("abc\ndef\n", false);
        assert_eq!(printed.output.lines_total(), 2);
        printed.take("xyz\ndef\n", false);
        assert_eq!(printed.usual(20, 8)[0].plain(), "│ xyz");
        printed.take("xyz\ndef\nmore\n", false);
        assert_eq!(printed.output.lines_total(), 3);
    }
}
