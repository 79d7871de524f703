//! The end of a turn: a dim line where it did not end normally, and the receipt of what it did.

use std::hash::{DefaultHasher, Hash, Hasher};

use ratatui::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};

use super::{
    DocumentState, Key, Leaf, RenderContext,
    error::retry_key,
    heading::{put_key, sign},
};
use crate::{
    locale::figure,
    protocol::FinishReason,
    t,
    text::{
        Role, Sanitized, Span, StyledLine,
        width::{cut_spans, spans_width},
        wrap::wrap,
    },
    transcript::{Exchange, Receipt},
};

/// The end of a turn; it has no rows where an answer that did nothing ended as answers do.
pub struct EndingWidget<'a> {
    pub exchange: &'a Exchange,
    /// An error document says already why it ended.
    pub has_error: bool,
    /// The key that opens the review of changes; `None` where none does.
    pub review_key: Option<&'a str>,
    pub context: &'a RenderContext<'a>,
}

impl StatefulWidget for EndingWidget<'_> {
    type State = DocumentState;

    fn render(self, area: Rect, buf: &mut Buffer, state: &mut DocumentState) {
        let Some(ending) = &self.exchange.response.ending else {
            return;
        };
        let context = self.context.of_width(area);
        let mut hasher = DefaultHasher::new();
        (ending.finish_reason.as_str(), self.has_error).hash(&mut hasher);
        (self.exchange.updates, self.review_key).hash(&mut hasher);
        let key = Key {
            version: hasher.finish(),
            newest: context.newest,
            selected: context.newest && context.selected,
            elsewhere: context.newest && context.elsewhere,
            ..Key::shape(&context)
        };
        // The receipt is summed up when the turn ends and when a change of it is undone, not for a frame.
        state.bring_up_to_date(key, &context, |state, context| {
            let mut leaf = self.line(&ending.finish_reason, context).unwrap_or_default();
            if let Some(row) = self.receipt(context) {
                if leaf.rows.is_empty() {
                    leaf.glyph = sign("·", Role::Dim);
                }
                leaf.rows.push(row);
                // It stands apart from what it sums up.
                leaf.is_line = false;
            }
            state.replace(leaf)
        });
        state.draw(area, buf, &context);
    }
}

/// A part of the receipt, with its precedence when there is little room.
type Part = (u8, Vec<Span>);

impl EndingWidget<'_> {
    /// The receipt on one line: parts that do not exist are left out, and those that do not fit.
    fn receipt(&self, context: &RenderContext<'_>) -> Option<StyledLine> {
        const BETWEEN: &str = " · ";
        let receipt = Receipt::of(self.exchange)?;
        let review = self.review_key.filter(|_| context.newest && receipt.files > 0);
        let parts: Vec<Part> = [
            files(&receipt).map(|it| (0, it)),
            receipt.has_passed.map(|it| (1, tests(it))),
            (receipt.took_ms > 0).then(|| (3, dim(figure::duration(receipt.took_ms)))),
            (receipt.tokens > 0).then(|| {
                let count = figure::tokens(receipt.tokens);
                (5, dim(Sanitized::from(t!("header-tokens", count = count.as_str()))))
            }),
            receipt.dollars.map(|it| (4, dim(figure::money(it)))),
            review.map(|it| {
                let name = Span::new(Sanitized::line(it), Role::Dim).bold().key();
                let word = Span::new(format!(" {}", t!("key-review")), Role::Dim);
                (2, vec![name, word])
            }),
        ]
        .into_iter()
        .flatten()
        .collect();
        let mut ranks: Vec<u8> = parts.iter().map(|it| it.0).collect();
        ranks.sort_unstable();
        let (mut kept, mut taken) = (Vec::new(), 0);
        for rank in ranks {
            let width = parts.iter().find(|it| it.0 == rank).map_or(0, |it| spans_width(&it.1));
            let gap = if taken == 0 { 0 } else { BETWEEN.chars().count() };
            // The first part is cut, never left out.
            if taken == 0 || taken + gap + width <= context.width {
                kept.push(rank);
                taken += gap + width;
            }
        }
        let mut spans = Vec::new();
        for (_, part) in parts.into_iter().filter(|it| kept.contains(&it.0)) {
            if !spans.is_empty() {
                spans.push(sign(BETWEEN, Role::Dim));
            }
            spans.extend(part);
        }
        (!spans.is_empty()).then(|| StyledLine::of(cut_spans(&spans, context.width)))
    }

    fn line(&self, reason: &FinishReason, context: &RenderContext<'_>) -> Option<Leaf> {
        let (glyph, words, again) = match reason {
            // Nobody should wait for what does not come.
            FinishReason::Stop if self.exchange.response.documents.is_empty() && self.exchange.message.is_some() => {
                (sign("·", Role::Dim), Sanitized::literal(t!("ending-empty")), false)
            }
            FinishReason::Stop | FinishReason::AwaitingInput => return None,
            FinishReason::Error | FinishReason::Interrupted | FinishReason::Length | FinishReason::Refusal
                if self.has_error =>
            {
                return None;
            }
            FinishReason::Cancelled => (sign("·", Role::Dim), Sanitized::literal(t!("ending-stopped")), false),
            FinishReason::MaxTurns => (
                sign("·", Role::Waiting),
                Sanitized::literal(t!("ending-requests")),
                false,
            ),
            FinishReason::Length => (sign("·", Role::Waiting), Sanitized::literal(t!("ending-length")), false),
            FinishReason::Refusal => (sign("✗", Role::Error), Sanitized::literal(t!("ending-refused")), false),
            FinishReason::Error => (sign("✗", Role::Error), Sanitized::literal(t!("ending-failed")), true),
            FinishReason::Interrupted => (sign("✗", Role::Error), Sanitized::literal(t!("ending-broke-off")), true),
            FinishReason::Other(word) => (
                sign("·", Role::Dim),
                Sanitized::line(&t!("ending-other", word = word.replace('_', " "))),
                false,
            ),
        };
        let columns = context.width;
        let mut rows: Vec<StyledLine> = wrap(&[Span::new(words, Role::Dim)], columns, &[], &[]);
        // An old failure is history: only the last turn can be tried again.
        if again && context.newest {
            put_key(&mut rows, &retry_key(context), 2, columns);
        }
        Some(Leaf::of(glyph, rows))
    }
}

fn dim(text: Sanitized) -> Vec<Span> {
    vec![Span::new(text, Role::Dim)]
}

/// `3 files +8 −2`; a part that is zero is left out.
fn files(receipt: &Receipt) -> Option<Vec<Span>> {
    if receipt.files == 0 {
        return None;
    }
    let mut text = t!("count-files", count = receipt.files);
    for (sign, count) in [("+", receipt.added), ("−", receipt.removed)] {
        if count > 0 {
            text.push_str(&format!(" {sign}{}", figure::grouped(count as u64)));
        }
    }
    Some(dim(Sanitized::from(text)))
}

fn tests(has_passed: bool) -> Vec<Span> {
    let (mark, role) = if has_passed {
        ("✓", Role::Dim)
    } else {
        ("✗", Role::Error)
    };
    vec![
        Span::new(format!("{} ", t!("receipt-tests")), Role::Dim),
        sign(mark, role),
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    use super::super::testing::{drawn, look, members};
    use super::*;
    use crate::{
        protocol::{Done, Entry, Event, Position, Turn, Usage},
        transcript::Transcript,
        tui::test_app::document,
    };

    fn entry(at: usize, event: Event) -> Entry {
        Entry {
            position: Position(at as u64 + 1),
            turn: Turn(7),
            at_ms: 1_000_000 + at as u64 * 500,
            event,
        }
    }

    fn folded(documents: &[Value], done: Done) -> Transcript {
        let mut events = Vec::new();
        for (at, it) in documents.iter().enumerate() {
            let mut metadata = members(it.clone());
            let mut text = |name| match metadata.remove(name) {
                Some(Value::String(text)) => Some(text),
                _ => None,
            };
            let (kind, content) = (text("kind"), text("content"));
            let kind = kind.expect("each has a kind");
            events.extend(document(
                &format!("doc_{at}"),
                &kind,
                content.as_deref(),
                metadata.into(),
            ));
        }
        events.push(Event::Done(done));
        let entries = events.into_iter().enumerate();
        Transcript::from_entries(&entries.map(|(at, it)| Arc::new(entry(at, it))).collect::<Vec<_>>())
    }

    fn ended(reason: &str) -> Done {
        Done {
            finish_reason: Some(FinishReason::parse(reason)),
            ..Done::default()
        }
    }

    fn shown(transcript: &Transcript, has_error: bool, width: usize) -> String {
        let widget = EndingWidget {
            exchange: &transcript.exchanges[0],
            has_error,
            review_key: Some("alt+r"),
            context: &look(width),
        };
        let shown = drawn(widget, width);
        if shown.is_empty() {
            "nothing\n".to_owned()
        } else {
            shown
        }
    }

    #[test]
    fn endings() {
        let mut all = String::new();
        for reason in FinishReason::KNOWN.iter().chain(&["out_of_paper"]) {
            all.push_str(&shown(&folded(&[], ended(reason)), false, 80));
        }
        for reason in ["error", "interrupted", "length", "refusal"] {
            all.push_str(&shown(&folded(&[], ended(reason)), true, 80));
        }
        all.push_str(&shown(&folded(&[], ended("interrupted")), false, 40));
        insta::assert_snapshot!(all, @r"
nothing
nothing
· stopped
· stopped at the request limit for one turn; say continue to go on
· the answer reached the model's length limit; say continue to go on
✗ the model refused to continue
✗ the answer failed  tab, r, enter retry
✗ connection lost, partial answer kept  tab, r, enter retry
· ended: out of paper
nothing
nothing
nothing
nothing
✗ connection lost, partial answer kept
  tab, r, enter retry
");
    }

    #[test]
    fn an_empty_answer_says_so() {
        let mut transcript = folded(&[], ended("stop"));
        transcript.exchanges[0].message = Some(crate::protocol::Message::user("go on"));
        assert_eq!(shown(&transcript, false, 80), "· the answer is empty\n");
    }

    fn edit(path: &str, old: &str, new: &str, applied: &str) -> Value {
        json!({ "kind": "file_edit", "filePath": path, "operation": "edit", "applied": applied,
                "diff": { "oldString": old, "newString": new, "startLine": 1, "endLine": 2 } })
    }

    fn command(line: &str, exit_code: i64) -> Value {
        json!({ "kind": "terminal_command", "command": line, "exitCode": exit_code, "output": "" })
    }

    fn call(name: &str) -> Value {
        json!({ "kind": "tool_call", "toolName": name, "arguments": {}, "result": { "data": "x" } })
    }

    fn cost(dollars: f64) -> Done {
        Done {
            usage: Some(Usage {
                prompt_tokens: 4000,
                completion_tokens: 100,
                total_tokens: 4100,
            }),
            duration_ms: Some(12_345),
            extra_usage: members(json!({ "costUsd": dollars })),
            ..ended("stop")
        }
    }

    #[test]
    fn a_turn_that_did_something_ends_with_its_receipt() {
        let edits = || {
            [
                edit("src/a.rs", "a\nb\n", "a\nc\nd\n", "applied"),
                edit("src/a.rs", "x\n", "y\n", "applied"),
                edit("src/b.rs", "x\n", "", "rejected"),
                edit("src/c.rs", "x\n", "y\n", "failed"),
                json!({ "kind": "file_edit", "filePath": "new.md", "operation": "create", "content": "1\n2\n" }),
            ]
        };
        let with = |more: &[Value]| [&edits()[..], more].concat();
        let refused = json!({ "kind": "terminal_command", "command": "rm a", "state": "rejected" });
        for (name, documents, end, expected) in [
            (
                "a chat",
                vec![json!({ "kind": "text", "content": "hello" })],
                cost(0.02),
                "nothing",
            ),
            ("a call that reads", vec![call("read_file")], cost(0.02), "nothing"),
            ("only a rejected edit", vec![edits()[2].clone()], cost(0.02), "nothing"),
            ("a command that was not allowed", vec![refused], cost(0.02), "nothing"),
            (
                "all parts; the last command of tests counts",
                with(&[
                    command("cargo test", 1),
                    command("cd x && cargo test -q", 0),
                    command("ls", 2),
                ]),
                cost(0.024),
                "· 2 files +5 −2 · tests ✓ · 12 s · 4.1k tokens · $0.02 · alt+r review",
            ),
            (
                "tests that fail",
                with(&[command("pytest -x", 1)]),
                cost(0.0),
                "· 2 files +5 −2 · tests ✗ · 12 s · 4.1k tokens · $0.00 · alt+r review",
            ),
            (
                "the exit code of another command is no mark",
                with(&[command("pytest", 0), command("pytest | tail -3", 0)]),
                cost(1.0),
                "· 2 files +5 −2 · 12 s · 4.1k tokens · $1.00 · alt+r review",
            ),
            (
                "a gateway that says little",
                vec![command("make test", 0)],
                ended("stop"),
                "· tests ✓ · 500 ms",
            ),
            (
                "nothing to review",
                vec![command("ls", 0)],
                cost(0.02),
                "· 12 s · 4.1k tokens · $0.02",
            ),
            (
                "another program's tool",
                vec![call("mcp__git__push")],
                cost(0.02),
                "· 12 s · 4.1k tokens · $0.02",
            ),
        ] {
            let shown = shown(&folded(&documents, end), false, 100);
            assert_eq!(shown.trim_end(), expected, "{name}");
        }
    }

    #[test]
    fn the_receipt_is_one_line_at_any_width() {
        let documents = [edit("a.rs", "a\n", "b\n", "applied"), command("cargo test", 0)];
        let transcript = folded(&documents, cost(0.02));
        let lines = [100, 60, 50, 40, 30, 20, 8, 1].map(|it| shown(&transcript, false, it).trim_end().to_owned());
        assert_eq!(
            lines,
            [
                "· 1 file +1 −1 · tests ✓ · 12 s · 4.1k tokens · $0.02 · alt+r review",
                "· 1 file +1 −1 · tests ✓ · 12 s · $0.02 · alt+r review",
                "· 1 file +1 −1 · tests ✓ · 12 s · alt+r review",
                "· 1 file +1 −1 · tests ✓ · alt+r review",
                "· 1 file +1 −1 · tests ✓ · 12 s",
                "· 1 file +1 −1 · 12 s",
                "· 1 file …",
                "· …",
            ]
        );
    }

    #[test]
    fn a_stopped_turn_says_both_and_an_undone_change_leaves_the_receipt() {
        let documents = [
            edit("a.rs", "a\n", "b\n", "applied"),
            edit("b.rs", "a\n", "b\n", "applied"),
        ];
        let mut transcript = folded(&documents, ended("cancelled"));
        let both = "· stopped\n  2 files +2 −2 · 1.5 s · alt+r review\n";
        assert_eq!(shown(&transcript, false, 60), both);
        let metadata = members(json!({ "undone": true }));
        let document = "doc_0".into();
        transcript.apply(&entry(9, Event::DocumentUpdate { document, metadata }));
        assert_eq!(transcript.exchanges[0].updates, 1);
        let one = shown(&transcript, false, 60);
        assert!(one.contains("  1 file +1 −1 · "), "{one}");
    }
}
