//! One dim line where an answer did not end normally.

use std::hash::{DefaultHasher, Hash, Hasher};

use ratatui::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};

use super::{
    DocumentState, Key, Leaf, RenderContext,
    error::retry_key,
    heading::{put_key, sign},
};
use crate::{
    protocol::{Ending, FinishReason},
    t,
    text::{Role, Sanitized, Span, StyledLine, wrap::wrap},
};

/// The line under an answer; it has no rows where the answer ended as answers do.
pub struct EndingWidget<'a> {
    pub ending: &'a Ending,
    /// An error document says already why it ended.
    pub has_error: bool,
    pub context: &'a RenderContext<'a>,
}

impl StatefulWidget for EndingWidget<'_> {
    type State = DocumentState;

    fn render(self, area: Rect, buf: &mut Buffer, state: &mut DocumentState) {
        let context = self.context.of_width(area);
        let mut hasher = DefaultHasher::new();
        (self.ending.finish_reason.as_str(), self.has_error).hash(&mut hasher);
        let key = Key {
            version: hasher.finish(),
            newest: context.newest,
            selected: context.newest && context.selected,
            ..Key::shape(&context)
        };
        state.bring_up_to_date(key, &context, |state, context| {
            state.replace(self.line(context).unwrap_or_default())
        });
        state.draw(area, buf, &context);
    }
}

impl EndingWidget<'_> {
    fn line(&self, context: &RenderContext<'_>) -> Option<Leaf> {
        let (glyph, words, again) = match &self.ending.finish_reason {
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

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::super::testing::{drawn, look};
    use super::*;
    use crate::protocol::Status;

    fn shown(reason: &str, has_error: bool, width: usize) -> String {
        let ending = Ending {
            status: Status::Completed,
            finish_reason: FinishReason::parse(reason),
            duration_ms: None,
            tool_call_count: None,
            turn_count: None,
            extra_metadata: Map::new(),
        };
        let widget = EndingWidget {
            ending: &ending,
            has_error,
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
            all.push_str(&shown(reason, false, 80));
        }
        for reason in ["error", "interrupted", "length", "refusal"] {
            all.push_str(&shown(reason, true, 80));
        }
        all.push_str(&shown("interrupted", false, 40));
        insta::assert_snapshot!(all, @r"
nothing
nothing
· stopped
· stopped at the request limit for one turn; say continue to go on
· the answer reached the model's length limit; say continue to go on
✗ the model refused to continue
✗ the answer failed  tab, then r retry
✗ connection lost, partial answer kept  tab, then r retry
· ended: out of paper
nothing
nothing
nothing
nothing
✗ connection lost, partial answer kept
  tab, then r retry
");
    }
}
