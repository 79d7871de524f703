//! The user's message: strong, behind a bar, with the time at the right.

use ratatui::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};

use super::{
    DocumentState, Fold, Key, RenderContext,
    heading::{Facts, Weight, first_line, gap, line, sign},
};
use crate::{
    protocol::{Message, PartKind},
    t,
    text::{Role, Sanitized, Span, StyledLine, width::spans_width, wrap::wrap},
    tui::editor::field::pasted_label,
};

/// More lines than this are a paste: its beginning stands for it.
const MOST_LINES: usize = 16;
const HEAD_LINES: usize = 8;
/// One line of a paste may be as long as a file.
const HEAD_BYTES: usize = 4000;

/// A message of the user.
pub struct MessageWidget<'a> {
    pub message: &'a Message,
    /// When it was said, as the user's clock shows it.
    pub time: &'a Sanitized,
    pub context: &'a RenderContext<'a>,
}

impl StatefulWidget for MessageWidget<'_> {
    type State = DocumentState;

    fn render(self, area: Rect, buf: &mut Buffer, state: &mut DocumentState) {
        let context = self.context.of_width(area);
        state.bring_up_to_date(Key::shape(&context), &context, |state, context| {
            let text = match context.fold {
                Fold::Full => self.message.content.clone(),
                Fold::Folded | Fold::Usual => message_text(self.message),
            };
            let (text, width) = (&text, context.width);
            let mut facts = Facts::default();
            facts.word(Weight::Light, self.time.clone(), Role::Faint);
            state.is_bar = true;
            state.sign(sign("▌", Role::User), false);
            state.rows = match context.fold {
                Fold::Folded => vec![line(&[strong(&first_line(text))], facts, width)],
                Fold::Usual => head(text.trim_end(), facts, width),
                Fold::Full => whole(text.trim_end(), facts, width),
            };
            Some(0)
        });
        state.draw(area, buf, &context);
    }
}

/// Returns a message as it is shown: a paste is named by its size, and the text of a plan by the plan's address.
pub fn message_text(message: &Message) -> String {
    match message.builds() {
        Some((plan, true)) => return t!("message-build-edited", plan = plan),
        Some((plan, false)) => return t!("message-build", plan = plan),
        None => {}
    }
    let part = |(text, kind): (&str, PartKind)| match kind {
        PartKind::Typed => text.to_owned(),
        PartKind::Pasted => format!("[{}]", pasted_label(text)),
        PartKind::Instructions => format!("[{}]", t!("message-instructions", count = text.lines().count())),
        PartKind::Plan => format!(" · {}", t!("message-with-plan")),
    };
    let mut shown = String::new();
    let mut is_after_chip = false;
    for (text, kind) in message.parts() {
        let is_chip = matches!(kind, PartKind::Pasted | PartKind::Instructions);
        // Words and a chip do not touch.
        let touches = |it: Option<char>| it.is_some_and(char::is_alphanumeric);
        if (is_chip && touches(shown.chars().last())) || (is_after_chip && touches(text.chars().next())) {
            shown.push(' ');
        }
        shown.push_str(&part((text, kind)));
        is_after_chip = is_chip;
    }
    shown
}

/// Returns true if the usual fold leaves something out.
pub fn message_leaves_out(message: &Message) -> bool {
    let text = message_text(message);
    text != message.content || text.lines().count() > MOST_LINES || text.len() > HEAD_BYTES
}

fn strong(text: &Sanitized) -> Span {
    Span::new(text.clone(), Role::Strong).bold()
}

fn whole(text: &str, facts: Facts, width: usize) -> Vec<StyledLine> {
    let spans = [strong(&Sanitized::new(text))];
    let wants = text
        .lines()
        .next()
        .map_or(0, |it| spans_width(&[strong(&first_line(it))]));
    let (facts, room) = facts.fit(wants, width);
    let mut rows = wrap(&spans, room, &[], &[]);
    if let Some(first) = rows.first_mut() {
        first.facts = facts;
    }
    rows
}

fn head(text: &str, facts: Facts, width: usize) -> Vec<StyledLine> {
    let lines = text.lines().count();
    let shown: usize = if lines > MOST_LINES {
        text.split_inclusive('\n').take(HEAD_LINES).map(str::len).sum()
    } else {
        text.len()
    };
    let shown = if shown > HEAD_BYTES {
        floor(text, HEAD_BYTES)
    } else {
        shown
    };
    let (head, rest) = text.split_at(shown);
    let mut rows = whole(head.trim_end(), facts, width);
    if !rest.is_empty() {
        let more = match rest.lines().count() {
            1 => t!("count-signs", count = rest.chars().count()),
            lines => t!("count-lines", count = lines),
        };
        rows.push(line(
            &[sign("…", Role::Dim), gap(1), Span::new(more, Role::Dim)],
            Facts::default(),
            width,
        ));
    }
    rows
}

/// The last border between characters that is not after `byte`.
fn floor(text: &str, byte: usize) -> usize {
    text.floor_char_boundary(byte)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{drawn, look, numbered};
    use super::*;
    use crate::protocol::{BUILDS, PASTES};

    fn shown(text: &str, fold: Fold, width: usize) -> String {
        let look = RenderContext { fold, ..look(width) };
        let widget = MessageWidget {
            message: &Message::user(text),
            time: &Sanitized::literal("10:42"),
            context: &look,
        };
        drawn(widget, width)
    }

    #[test]
    fn a_paste_is_a_chip_and_a_plan_its_address_until_the_message_is_unfolded() {
        let paste = numbered("line ", 5000);
        let mut message = Message::user(format!("why does this fail? {paste} thanks"));
        message.extra.insert(PASTES.to_owned(), json!([[20, 20 + paste.len()]]));
        assert_eq!(
            message_text(&message),
            "why does this fail? [pasted 5,000 lines] thanks"
        );
        let mut message = Message::user(format!("why?see{paste}what is this?"));
        message.extra.insert(PASTES.to_owned(), json!([[7, 7 + paste.len()]]));
        assert_eq!(message_text(&message), "why?see [pasted 5,000 lines] what is this?");
        let mut message = Message::user("Build the plan \"Cart\".\n\n# Cart");
        message.extra.insert(BUILDS.to_owned(), json!({ "plan": "1.4" }));
        let drawn_as = |message: &Message, fold| {
            let look = RenderContext { fold, ..look(60) };
            let time = &Sanitized::literal("10:42");
            drawn(
                MessageWidget {
                    message,
                    time,
                    context: &look,
                },
                60,
            )
        };
        let line = "▌ Build 1.4                                              10:42\n";
        assert_eq!(drawn_as(&message, Fold::Usual), line);
        assert!(drawn_as(&message, Fold::Full).contains("# Cart"));
        message
            .extra
            .insert(BUILDS.to_owned(), json!({ "plan": "1.4", "edited": true }));
        assert!(drawn_as(&message, Fold::Folded).starts_with("▌ Build 1.4 as edited "));
    }

    #[test]
    fn messages() {
        let long: String = numbered("line ", 40);
        let shown = [
            shown(
                "Add a discount code to the cart. Only one code per cart.",
                Fold::Usual,
                40,
            ),
            shown(
                "Add a discount code to the cart. Only one code per cart.",
                Fold::Usual,
                80,
            ),
            shown(&long, Fold::Usual, 40),
            shown(&long, Fold::Folded, 40),
            shown("", Fold::Usual, 40),
        ];
        insta::assert_snapshot!(shown.join("--\n"), @r#"
▌ Add a discount code to the cart.   10:42
▌ Only one code per cart.
--
▌ Add a discount code to the cart. Only one code per cart.                   10:42
--
▌ line 1                             10:42
▌ line 2
▌ line 3
▌ line 4
▌ line 5
▌ line 6
▌ line 7
▌ line 8
▌ … 32 lines
--
▌ line 1                             10:42
--
▌                                    10:42
"#);
    }

    #[test]
    fn nothing_is_left_out_when_it_is_unfolded() {
        let long: String = numbered("line ", 40);
        assert_eq!(shown(&long, Fold::Full, 40).lines().count(), 40);
        let wide = "x".repeat(9000);
        assert!(shown(&wide, Fold::Usual, 40).ends_with("… 5,000 characters\n"));
        assert!(!shown(&wide, Fold::Full, 40).contains('…'));
    }
}
