//! The question whether the workspace may act: what would act, and the answer.

use super::{Notice, Severity};

/// Code of the notice that opens the question; a notice of a [`super::UserAction`] closes it.
const ASKED: &str = "trust-asked";

/// Files of the workspace that are off until the user trusts the folder: the question, in one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustAsked {
    /// The first of their paths. Checkers have none.
    pub paths: Vec<String>,
    /// All files, checkers included.
    pub count: usize,
    /// Files of these names were trusted, with other content.
    pub is_changed: bool,
}

impl TrustAsked {
    /// Returns the notice of the question.
    pub fn notice(&self) -> Notice {
        let head = format!("{} {}", self.count, u8::from(self.is_changed));
        let paths = self.paths.iter().map(|it| it.replace('\n', " "));
        let lines: Vec<String> = std::iter::once(head).chain(paths).collect();
        Notice::new(Severity::Info, ASKED, lines.join("\n"))
    }

    /// Reads the notice of a question. `None` for other notices.
    pub fn read(notice: &Notice) -> Option<Self> {
        if notice.code != ASKED {
            return None;
        }
        let mut lines = notice.message.lines();
        let (count, changed) = lines.next()?.split_once(' ')?;
        Some(Self {
            count: count.parse().ok()?,
            is_changed: changed == "1",
            paths: lines.map(str::to_owned).collect(),
        })
    }
}

/// Files of the workspace that act, or would if the user trusted the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustReport {
    /// They act, because the user trusts all of them.
    pub is_trusted: bool,
    /// Empty: nothing here needs trust.
    pub entries: Vec<TrustEntry>,
}

/// A file that acts, or what is no file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustEntry {
    /// From the workspace's root; empty for checkers.
    pub path: String,
    pub kind: TrustKind,
    /// The user trusted a file of this name, with other content.
    pub is_changed: bool,
}

/// The way in which a file of the workspace acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustKind {
    /// Settings, from the next start.
    Settings,
    /// A prompt that the user sends by its name.
    Command,
    /// Instructions that the model loads when a task fits them.
    Skill,
    /// Programs that are called at fixed points.
    Hooks,
    /// A mode: words for the model and the tools that it keeps.
    Mode,
    /// A text for the model; [`RuleTrigger::Nothing`]: with every message.
    Rule(RuleTrigger),
    /// Definitions of servers of tools, each of which is approved by itself.
    Servers,
    /// Programs that look for mistakes, as command lines.
    Checkers(Vec<String>),
}

/// Condition on which a rule is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleTrigger {
    Nothing,
    Files,
    Model,
    User,
}

/// The user's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustAnswer {
    Trust,
    /// It is trusted no more.
    Distrust,
    /// It stays as it is, and is asked again when something changes.
    Later,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_read_as_it_was_written() {
        for (paths, count, is_changed) in [(vec!["AGENTS.md", "a b/c"], 5, false), (vec![], 1, true)] {
            let asked = TrustAsked {
                paths: paths.into_iter().map(str::to_owned).collect(),
                count,
                is_changed,
            };
            assert_eq!(TrustAsked::read(&asked.notice()), Some(asked));
        }
        for (code, message) in [("trust", "1 0"), (ASKED, ""), (ASKED, "many 0"), (ASKED, "1")] {
            assert_eq!(
                TrustAsked::read(&Notice::new(Severity::Info, code, message)),
                None,
                "{code} {message}"
            );
        }
    }
}
