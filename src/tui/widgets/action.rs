//! An action of the user beside the conversation: one dim line that says what happened and how to reverse it.

use ratatui::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};

use super::{DocumentState, Key, Leaf, RenderContext, heading::sign};
use crate::{
    protocol::UserAction,
    t,
    text::{Role, Sanitized, Span, wrap::wrap},
    transcript::DoneAction,
};

/// The line of an action.
pub struct ActionWidget<'a> {
    pub action: &'a DoneAction,
    pub context: &'a RenderContext<'a>,
}

impl StatefulWidget for ActionWidget<'_> {
    type State = DocumentState;

    fn render(self, area: Rect, buf: &mut Buffer, state: &mut DocumentState) {
        let context = self.context.of_width(area);
        let key = Key::shape(&context);
        state.bring_up_to_date(key, &context, |state, context| {
            let text = Span::new(Sanitized::line(&action_line(self.action)), Role::Dim);
            state.replace(Leaf {
                glyph: sign("·", Role::Dim),
                rows: wrap(&[text], context.width, &[], &[]),
                // Lines of actions stand together, also where they are broken.
                is_line: true,
            })
        });
        state.draw(area, buf, &context);
    }
}

/// Returns the line of an action: what happened, and the command that reverses it.
pub fn action_line(done: &DoneAction) -> String {
    let fact = |at: usize| done.facts.get(at).map_or("", String::as_str);
    let (first, second) = (fact(0), fact(1));
    let files = || match second.parse::<u64>() {
        Ok(count) if count != 1 => t!("count-files", count = count),
        Ok(_) | Err(_) => first.to_owned(),
    };
    let line = match done.action {
        UserAction::Undid => t!("done-undid", files = files()),
        UserAction::Redid => t!("done-redid", files = files()),
        UserAction::UndidDocument => t!("done-undid-document", address = first, file = second),
        UserAction::RedidDocument => t!("done-redid-document", address = first, file = second),
        UserAction::FinishedUndo => t!("done-finished-undo", files = files()),
        UserAction::FinishedRedo => t!("done-finished-redo", files = files()),
        // Turns count from 1.
        UserAction::Branched if first == "0" => t!("done-branched-start").to_owned(),
        UserAction::Branched => t!("done-branched", address = first),
        UserAction::Trusted => t!("done-trusted").to_owned(),
        UserAction::Distrusted => t!("done-distrusted").to_owned(),
        UserAction::TrustPassed => t!("done-trust-passed").to_owned(),
        UserAction::AllowedAlways => t!("done-allowed", rules = first),
        UserAction::Exported if second.is_empty() => t!("done-exported", file = first),
        UserAction::Exported => t!("done-exported-over", file = first),
        UserAction::Saved if second.is_empty() => t!("done-saved", file = first),
        UserAction::Saved => t!("done-saved-over", file = first),
        UserAction::Committed => t!("done-committed", commit = first, back = second),
        UserAction::Remembered => t!("done-remembered", place = first),
        UserAction::SettingWritten => t!("done-set", name = first, place = second, command = fact(2)),
        UserAction::SettingRemoved => t!("done-unset", name = first, place = second, command = fact(2)),
        UserAction::ModeChanged => t!("done-mode", mode = first),
        UserAction::HookRan => first.to_owned(),
    };
    match (done.action, fact(2)) {
        (UserAction::Undid | UserAction::Redid | UserAction::FinishedUndo | UserAction::FinishedRedo, unchanged)
            if !unchanged.is_empty() =>
        {
            format!("{line} · {}", t!("done-unchanged", what = unchanged))
        }
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::super::testing::{drawn, look};
    use super::*;
    use crate::tui::actions;

    #[test]
    fn each_line_says_what_happened_and_how_to_reverse_it() {
        let mut shown = String::new();
        for (action, facts) in [
            (UserAction::Undid, &["src/cart.rs", "1"][..]),
            (UserAction::Undid, &["src/cart.rs", "3", "a.rs was edited later"]),
            (UserAction::Redid, &["src/cart.rs", "1"]),
            (UserAction::UndidDocument, &["1.3", "src/cart.rs"]),
            (UserAction::RedidDocument, &["1.3", "src/cart.rs"]),
            (UserAction::FinishedUndo, &["src/cart.rs", "2"]),
            (UserAction::FinishedRedo, &["src/cart.rs", "1"]),
            (UserAction::Branched, &["2.1"]),
            (UserAction::Branched, &["0"]),
            (UserAction::Trusted, &[]),
            (UserAction::Distrusted, &[]),
            (UserAction::TrustPassed, &[]),
            (UserAction::ModeChanged, &["plan"]),
            (UserAction::AllowedAlways, &["Shell(git push)"]),
            (UserAction::Exported, &["~/cart.html"]),
            (UserAction::Saved, &["notes.md"]),
            (UserAction::Exported, &["~/cart.html", "replaced"]),
            (UserAction::Saved, &["notes.md", "replaced"]),
            (UserAction::Committed, &["1a2b3c4d", "git reset --soft HEAD~1"]),
            (UserAction::Remembered, &["AGENTS.md:3"]),
            (
                UserAction::SettingWritten,
                &["theme = owl", "~/config.toml:2", "/config"],
            ),
            (
                UserAction::SettingRemoved,
                &["Shell(make)", "~/config.toml:7", "/permissions"],
            ),
        ] {
            let done = DoneAction {
                action,
                facts: facts.iter().map(|it| (*it).to_owned()).collect(),
                before: None,
            };
            let line = action_line(&done);
            for command in line.split_whitespace().filter_map(|it| it.strip_prefix('/')) {
                assert!(actions::find_slash(command).is_some(), "no such command: {line}");
            }
            shown.push_str(&drawn(
                ActionWidget {
                    action: &done,
                    context: &look(80),
                },
                80,
            ));
        }
        assert_eq!(
            shown,
            "\
· undid changes to src/cart.rs · /redo
· undid changes to 3 files · /redo · unchanged: a.rs was edited later
· redid changes to src/cart.rs · /undo
· undid 1.3 src/cart.rs · /redo 1.3
· redid 1.3 src/cart.rs · /undo 1.3
· finished an interrupted undo of 2 files · /redo
· finished an interrupted redo of src/cart.rs · /undo
· continues after 2.1 · /branches for the rest
· continues from the start · /branches shows what you left
· trusted this folder · /trust to change
· stopped trusting this folder · /trust to change
· this folder's rules stay off · /trust to change
· this answer continues in plan mode · shift+tab
· always allowed: Shell(git push), in your settings · /permissions
· exported to ~/cart.html · delete it to undo
· saved to notes.md · delete it to undo
· exported to ~/cart.html, replacing the earlier file
· saved to notes.md, replacing the earlier file
· committed 1a2b3c4d · git reset --soft HEAD~1
· remembered in AGENTS.md:3 · delete that line to undo
· wrote theme = owl to ~/config.toml:2 · /config
· removed Shell(make) from ~/config.toml:7 · /permissions
"
        );
    }
}
