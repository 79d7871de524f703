//! Sentences of the agent for the person. They travel as English text, which every client can show; a client that has texts of
//! its own finds the message of each here.

/// A sentence, with a gap `{}` for at most one name.
pub struct Sentence {
    text: &'static str,
    /// Name of the message that says the same; its variable is `name`.
    pub message: &'static str,
}

pub const NO_GIT: Sentence = Sentence::new("git is not installed", "agent-no-git");
pub const NO_REPOSITORY: Sentence = Sentence::new("this folder is not in a git repository", "agent-no-repository");
pub const CONFLICTS: Sentence = Sentence::new("there are unresolved conflicts: resolve them first", "agent-conflicts");
pub const UNFINISHED: Sentence = Sentence::new("a {} is not finished: finish or abort it first", "agent-unfinished");
pub const NO_NAME: Sentence = Sentence::new(
    "git does not know your name: git config --global user.name and user.email",
    "agent-no-name",
);
pub const NONE_FITS: Sentence = Sentence::new("none of the accepted changes can be committed", "agent-none-fits");
pub const COMMITTED_ALREADY: Sentence =
    Sentence::new("the accepted changes are committed already", "agent-committed-already");
pub const CHANGED_MEANWHILE: Sentence = Sentence::new(
    "the repository has changed meanwhile: look at the changes again",
    "agent-changed-meanwhile",
);
pub const FILTERED: Sentence = Sentence::new(
    "a filter of this repository cannot be switched off: use git diff",
    "agent-filtered",
);
pub const UNDO_BUSY: Sentence = Sentence::new("nothing can be undone while the model works", "agent-undo-busy");
pub const NO_WORKSPACE: Sentence = Sentence::new("no workspace here", "agent-no-workspace");
pub const NO_CHANGE: Sentence = Sentence::new("not a file change", "agent-no-change");
pub const NO_CALL: Sentence = Sentence::new("no call to run again", "agent-no-call");
pub const STAYS_HERE: Sentence = Sentence::new("still working: the conversation continues here", "agent-stays-here");
pub const TOOLS_CHANGED: Sentence = Sentence::new("cache lost: tools changed: {}", "agent-tools-changed");
pub const MESSAGE_WAITS: Sentence = Sentence::new("your message is sent once you have answered", "agent-message-waits");
pub const MARKS_LEFT: Sentence = Sentence::new("instrumentation is left in the code: {}", "agent-marks-left");
/// A tool of this program's that the model was not told of.
pub const NOT_OFFERED: Sentence = Sentence::new("`{}` is not offered to this model", "reason-tool-not-offered");

/// In the list of servers that a command would reach.
pub const ANY_HOST: Sentence = Sentence::new("any host", "agent-any-host");

/// The peer of a conversation before a server is chosen.
pub const NO_MODEL: Sentence = Sentence::new("no model", "first-peer");

const ALL: [&Sentence; 20] = [
    &NO_GIT,
    &NO_REPOSITORY,
    &CONFLICTS,
    &UNFINISHED,
    &NO_NAME,
    &NONE_FITS,
    &COMMITTED_ALREADY,
    &CHANGED_MEANWHILE,
    &FILTERED,
    &UNDO_BUSY,
    &NO_WORKSPACE,
    &NO_CHANGE,
    &NO_CALL,
    &STAYS_HERE,
    &TOOLS_CHANGED,
    &MESSAGE_WAITS,
    &MARKS_LEFT,
    &NOT_OFFERED,
    &ANY_HOST,
    &NO_MODEL,
];

impl Sentence {
    const fn new(text: &'static str, message: &'static str) -> Self {
        Self { text, message }
    }

    /// The sentence in English. Its gap, if it has one, is for [`Self::with`].
    pub const fn text(&self) -> &'static str {
        self.text
    }

    /// The sentence in English, with a name in its gap.
    pub fn with(&self, name: &str) -> String {
        self.text.replacen("{}", name, 1)
    }

    /// Finds the sentence that a text is, and the name in its gap; the name is empty where there is no gap.
    pub fn find(text: &str) -> Option<(&'static Self, &str)> {
        ALL.into_iter().find_map(|it| {
            let name = match it.text.split_once("{}") {
                Some((before, after)) => text.strip_prefix(before)?.strip_suffix(after)?,
                None if it.text == text => "",
                None => return None,
            };
            Some((it, name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sentence_is_found_with_its_name() {
        for it in ALL {
            let text = it.with("rebase");
            let (found, name) = Sentence::find(&text).unwrap();
            assert_eq!(found.message, it.message);
            assert_eq!(name == "rebase", it.text.contains("{}"));
        }
        for other in ["", "git is not", "a  is", "no workspace here!"] {
            assert!(Sentence::find(other).is_none(), "{other}");
        }
    }
}
