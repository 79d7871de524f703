//! One dim line where an answer ended otherwise than by itself.

use super::{
    Look, Sheet,
    heading::{key, put_key, sign},
};
use crate::{
    protocol::{Ending, FinishReason},
    say,
    text::{Clean, Role, Row, Span, wrap::wrap},
};

impl Sheet {
    /// The line under an answer; `None` where it ended as answers do. `has_error`: an error document says why already.
    pub fn ending(ending: &Ending, has_error: bool, look: &Look<'_>) -> Option<Self> {
        let (glyph, words, again) = match &ending.finish_reason {
            FinishReason::Stop | FinishReason::AwaitingInput => return None,
            FinishReason::Error | FinishReason::Interrupted | FinishReason::Length | FinishReason::Refusal
                if has_error =>
            {
                return None;
            }
            FinishReason::Cancelled => (sign("·", Role::Dim), Clean::literal(say!("ending-stopped")), false),
            FinishReason::MaxTurns => (sign("·", Role::Waiting), Clean::literal(say!("ending-requests")), false),
            FinishReason::Length => (sign("·", Role::Waiting), Clean::literal(say!("ending-length")), false),
            FinishReason::Refusal => (sign("✗", Role::Error), Clean::literal(say!("ending-refused")), false),
            FinishReason::Error => (sign("✗", Role::Error), Clean::literal(say!("ending-failed")), true),
            FinishReason::Interrupted => (sign("✗", Role::Error), Clean::literal(say!("ending-broke-off")), true),
            FinishReason::Other(word) => (
                sign("·", Role::Dim),
                Clean::line(&say!("ending-other", word = word.replace('_', " "))),
                false,
            ),
        };
        let columns = look.width.max(1);
        let mut rows: Vec<Row> = wrap(&[Span::new(words, Role::Dim)], columns, &[], &[]);
        // An old failure is history: only the last turn can be tried again.
        if again && look.newest {
            put_key(&mut rows, &key("r", say!("key-retry"), Role::Error), 2, columns);
        }
        Some(Self {
            glyph,
            is_line: rows.len() == 1,
            rows,
            ..Self::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::super::testing::{look, paint};
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
        let sheet = Sheet::ending(&ending, has_error, &look(width));
        sheet.map_or_else(|| "nothing\n".to_owned(), |it| paint(&it, width))
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
        insta::assert_snapshot!(all, @r#"
nothing
nothing
· stopped
· stopped at the limit of requests for one turn; say continue to go on
· the answer reached the longest the model may write; say continue to go on
✗ the model refused to go on
✗ the answer failed  r try again
✗ the stream broke off; what came is kept  r try again
· ended: out of paper
nothing
nothing
nothing
nothing
✗ the stream broke off; what came is kept
  r try again
"#);
    }
}
