//! Actions of the user and their hooks that no document shows: each leaves a line in the conversation. No model receives them.
//!
//! They travel as notices, so that the journal stores them where they happened and other readers ignore them.

use super::{Notice, Severity};

/// Action that touched files, rules or the conversation; its facts are what the line about it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UserAction {
    /// Facts: the files, and what stayed as it is (may be empty).
    Undid,
    /// The same.
    Redid,
    /// Facts: the address of the document, and its file.
    UndidDocument,
    /// The same.
    RedidDocument,
    /// The program was killed during an undo, and the next start finished it. Facts: as of an undo.
    FinishedUndo,
    /// The same of a redo.
    FinishedRedo,
    /// The conversation continues elsewhere. Facts: the address after which it does.
    Branched,
    /// The folder was trusted. No facts.
    Trusted,
    /// The same, declined or taken back.
    Distrusted,
    /// The question of trust was passed over: what is off stays off. No facts.
    TrustPassed,
    /// The settings have new rules. Facts: the rules.
    AllowedAlways,
    /// The conversation was written to a file. Facts: the file, and `replaced` if there was another.
    Exported,
    /// A document was written to a file. Facts: the same.
    Saved,
    /// Facts: the commit, and the command that reverses it.
    Committed,
    /// Facts: the place, as `file:line`.
    Remembered,
    /// A setting, or a rule of the settings, was written. Facts: its name, and the place.
    SettingWritten,
    /// The same, removed.
    SettingRemoved,
    /// The running answer continues in another mode. Facts: the mode.
    ModeChanged,
    /// A hook did something beside calls, or broke down. Facts: a line that says so.
    HookRan,
}

impl UserAction {
    const NAMES: [(Self, &'static str); 19] = [
        (Self::Undid, "did-undo"),
        (Self::Redid, "did-redo"),
        (Self::UndidDocument, "did-undo-document"),
        (Self::RedidDocument, "did-redo-document"),
        (Self::FinishedUndo, "did-finish-undo"),
        (Self::FinishedRedo, "did-finish-redo"),
        (Self::Branched, "did-branch"),
        (Self::Trusted, "did-trust"),
        (Self::Distrusted, "did-distrust"),
        (Self::TrustPassed, "did-pass-trust"),
        (Self::AllowedAlways, "did-allow"),
        (Self::Exported, "did-export"),
        (Self::Saved, "did-save"),
        (Self::Committed, "did-commit"),
        (Self::Remembered, "did-remember"),
        (Self::SettingWritten, "did-set"),
        (Self::SettingRemoved, "did-unset"),
        (Self::ModeChanged, "did-change-mode"),
        (Self::HookRan, "did-hook"),
    ];

    fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|it| it.0 == self);
        found.map_or("", |it| it.1)
    }

    /// Returns true if it closes the question whether the workspace may act.
    pub fn closes_trust(self) -> bool {
        matches!(self, Self::Trusted | Self::Distrusted | Self::TrustPassed)
    }

    /// Returns the notice of an action.
    pub fn notice(self, facts: &[&str]) -> Notice {
        let facts: Vec<String> = facts.iter().map(|it| it.replace('\n', " ")).collect();
        Notice::new(Severity::Info, self.name(), facts.join("\n"))
    }

    /// Reads the notice of an action. `None` for other notices.
    pub fn read(notice: &Notice) -> Option<(Self, Vec<&str>)> {
        let found = Self::NAMES.iter().find(|it| it.1 == notice.code)?;
        Some((found.0, notice.message.lines().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_read_as_it_was_written() {
        for (action, name) in UserAction::NAMES {
            let notice = action.notice(&["a\nb", "", "c"]);
            assert_eq!(notice.code, name);
            assert_eq!(UserAction::read(&notice), Some((action, vec!["a b", "", "c"])));
        }
        assert_eq!(UserAction::read(&Notice::new(Severity::Info, "compacted", "x")), None);
    }
}
