//! The table of actions, which keys, slash commands and the palette share. The help page is made from it.

pub mod answer;
pub mod approve;
pub mod branch;
pub mod commit;
pub mod conversation;
pub mod copying;
pub mod everywhere;
pub mod extensions;
pub mod finding;
pub mod focus;
pub mod own_files;
pub mod plan;
mod plan_edits;
pub mod reading;
pub mod review;
pub mod side;
pub mod status;
pub mod undo;
pub mod writing;

pub use writing::SEND;

use super::app::Action;

/// Everything one can do, in the order of the help page.
pub static ACTIONS: &[Action] = &[
    writing::SEND,
    writing::QUEUE,
    writing::NEWLINE,
    writing::CLEAR,
    writing::STASH,
    writing::EDITOR,
    writing::HISTORY,
    writing::PICTURE,
    writing::UNFOLD,
    writing::BACKGROUND,
    writing::TASKS,
    writing::WAITING,
    writing::VIM,
    everywhere::MODE_NEXT,
    everywhere::MODE,
    everywhere::MODEL,
    everywhere::EFFORT,
    everywhere::THEME,
    everywhere::CONTEXT,
    everywhere::TRUST,
    everywhere::MCP,
    conversation::NEW,
    conversation::CLEAR,
    conversation::RESUME,
    conversation::COMPACT,
    conversation::DROP,
    conversation::RENAME,
    conversation::EXPORT,
    side::BTW,
    side::INIT_RULES,
    conversation::COST,
    everywhere::SANDBOX,
    own_files::PERMISSIONS,
    own_files::CONFIG,
    own_files::MEMORY,
    extensions::SKILLS,
    extensions::HOOKS,
    status::STATUS,
    status::USAGE,
    everywhere::PALETTE,
    everywhere::INSPECT,
    everywhere::KEYS,
    everywhere::HELP,
    everywhere::MOUSE,
    everywhere::PROBLEMS,
    everywhere::FOCUS,
    everywhere::ESCAPE,
    everywhere::INTERRUPT,
    everywhere::LEAVE,
    everywhere::QUIT,
    everywhere::SUSPEND,
    everywhere::REDRAW,
    reading::NEXT,
    reading::PREVIOUS,
    reading::TURN_NEXT,
    reading::TURN_PREVIOUS,
    reading::NEXT_EDIT,
    reading::PREVIOUS_EDIT,
    reading::NEXT_ERROR,
    reading::PREVIOUS_ERROR,
    reading::NEXT_QUESTION,
    reading::LINE_UP,
    reading::LINE_DOWN,
    reading::PAGE_UP,
    reading::PAGE_DOWN,
    reading::TOP,
    reading::BOTTOM,
    reading::TODO,
    reading::FOLD,
    reading::FOLD_ALL,
    reading::FOLD_KIND,
    reading::REASONING,
    finding::SEARCH,
    finding::SEARCH_NEXT,
    finding::SEARCH_PREVIOUS,
    finding::FILTER,
    finding::OUTLINE,
    finding::TIMES,
    copying::COPY,
    copying::PRINT,
    copying::COPY_CODE,
    copying::COPY_AS,
    reading::OPEN,
    review::REVIEW,
    review::ACT,
    review::MORE_CONTEXT,
    review::LESS_CONTEXT,
    commit::COMMIT,
    commit::DIFF,
    undo::UNDO,
    undo::REDO,
    undo::UNDO_THIS,
    undo::REWIND,
    branch::BRANCHES,
    branch::GO_ON,
    branch::REWORD,
    branch::AGAIN,
    approve::ALLOW_ONCE,
    approve::ALLOW_SESSION,
    approve::REJECT,
    plan::BUILD,
    plan::MARK,
    plan::EDIT,
    plan::SAVE,
    plan::COMMENT,
    plan::TODO_NEXT,
    plan::TODO_PREVIOUS,
    plan::TODO_TOGGLE,
    plan::TODO_REWORD,
    plan::TODO_INSERT,
    plan::TODO_REMOVE,
    plan::TODO_DOWN,
    plan::TODO_UP,
    everywhere::PANIC,
];

#[cfg(test)]
pub fn find(name: &str) -> Option<&'static Action> {
    ACTIONS.iter().find(|it| it.name == name)
}

/// The action of a slash command; `None` for an unknown one.
pub fn find_slash(word: &str) -> Option<&'static Action> {
    ACTIONS.iter().find(|it| !it.slash.is_empty() && it.slash == word)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::locale;

    #[test]
    fn no_two_actions_share_a_name_or_a_slash_word() {
        let names: HashSet<_> = ACTIONS.iter().map(|it| it.name).collect();
        assert_eq!(names.len(), ACTIONS.len());
        let words: Vec<_> = ACTIONS.iter().map(|it| it.slash).filter(|it| !it.is_empty()).collect();
        assert_eq!(words.iter().collect::<HashSet<_>>().len(), words.len());
    }

    #[test]
    fn every_action_says_what_it_does() {
        for action in ACTIONS {
            for id in [action.id("hint"), action.id("about")] {
                assert!(locale::has(&id), "{id}");
                assert!(!locale::english(&id).ends_with('.'), "{id}");
            }
        }
    }
}
