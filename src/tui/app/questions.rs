//! Open questions, and the answers in the making.

use std::collections::{HashMap, HashSet};

use super::Effect;
use crate::{
    protocol::{DocumentId, Kind, Turn, View},
    tui::{
        app::Conversation,
        hunk_decisions::HunkDecisions,
        widgets::{
            Citation, Form,
            transcript::{Item, VisibleLine},
        },
    },
};

/// Time after a prompt appeared or got the focus in which keys that decide are dropped, in milliseconds: they were meant for
/// something else.
pub const TOO_EARLY_MS: u64 = 300;

/// Something far-reaching that a letter has marked on an item; Enter does it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Builds the plan.
    Build,
    /// Opens the plan in the user's editor.
    EditPlan,
    /// Opens a file in the user's editor, at a line.
    Open { path: String, line: Option<u64> },
    /// Sends the message of the turn again.
    Retry,
    /// Deletes the todo with this id from the plan.
    RemoveTodo(String),
}

/// Questions that wait for the user, by turn and document.
#[derive(Default)]
pub struct Questions {
    pub forms: HashMap<(Turn, DocumentId), Form>,
    /// When the question got the keys, in milliseconds since the Unix epoch.
    pub since_ms: u64,
    /// The question took the focus by itself.
    pub took_focus: bool,
    /// The focus was moved to what waits: it goes back to the draft when that is over.
    pub has_focus: bool,
    /// The action of the next Enter, and the item that it is done to.
    pub marked: Option<(Mark, Item)>,
    /// The disk's text where documents cite it.
    pub cited: HashMap<(Turn, DocumentId), Citation>,
    /// The newest question that was already brought to the reader's notice.
    pub announced: Option<(Turn, DocumentId)>,
    /// Answered here; the event that closes it is on its way.
    pub sent: HashSet<(Turn, DocumentId)>,
    /// When a message was sent that has not come back as an event yet, in milliseconds since the Unix epoch.
    pub submitted_ms: Option<u64>,
    /// Decisions on single hunks of changes that wait for approval.
    pub hunk_decisions: HunkDecisions,
    /// The parts of the open approvals that have been on the screen.
    pub seen: HashMap<(Turn, DocumentId), SeenApproval>,
    /// The form whose current question was brought into view, in which version and at which height.
    pub in_view: Option<(DocumentId, u64, usize)>,
}

/// The part of an approval that has been on the screen: nobody can allow what they could not read.
#[derive(Default)]
pub struct SeenApproval {
    /// The layout in which the rows are counted.
    layout: ApprovalLayout,
    /// Number of its first rows that have all been on the screen.
    pub rows: usize,
    /// The same of its last rows.
    pub last: usize,
    /// Number of all its rows.
    pub of: usize,
    /// Number of rows that have not been on the screen.
    pub left: usize,
    /// They are above what is in view.
    pub is_above: bool,
    /// Its first row has been on the screen.
    pub has_begun: bool,
}

/// Everything that the rows of an approval depend on, besides the keys that were pressed on it, which change its last rows only.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ApprovalLayout {
    /// Version of the document, which is at least 1.
    pub version: u64,
    pub width: usize,
    pub context_lines: usize,
}

impl SeenApproval {
    /// Notes that in this layout of `all` rows those from `view`'s first to its last one are on the screen. What was seen in
    /// another layout counts if it was all of the same document: a part of it is no certain number of rows here.
    pub fn note(&mut self, layout: ApprovalLayout, all: usize, view: Option<(usize, usize)>) {
        // It is not laid out now.
        if all == 0 {
            return;
        }
        let is_whole = self.of > 0 && self.left == 0;
        if self.layout.version != layout.version {
            (self.rows, self.last) = (0, 0);
        } else if self.layout != layout {
            (self.rows, self.last) = (if is_whole { all } else { 0 }, 0);
        } else if self.of != all {
            (self.rows, self.last) = (self.rows.min(all), 0);
        }
        (self.layout, self.of) = (layout, all);
        if let Some((first, last)) = view {
            if first <= self.rows {
                self.rows = self.rows.max(last + 1);
            }
            if last + 1 + self.last >= all {
                self.last = self.last.max(all.saturating_sub(first));
            }
        }
        if self.rows + self.last >= all {
            self.rows = all;
        }
        self.has_begun |= self.rows > 0;
        self.left = all.saturating_sub(self.rows + self.last);
        self.is_above = self.left > 0 && view.is_some_and(|it| it.0 >= self.rows);
    }
}

impl Questions {
    /// Reads the files that documents in view cite, each once.
    pub fn citations(&mut self, lines: &[VisibleLine], conversation: &Conversation) -> Vec<Effect> {
        let mut effects = Vec::new();
        for shown in lines {
            let VisibleLine::StyledLine {
                item: Item::Document(place),
                row: 0,
            } = shown
            else {
                continue;
            };
            let Some(document) = conversation.transcript.get(*place) else {
                continue;
            };
            if document.kind != Kind::CodeReference || document.is_open() {
                continue;
            }
            let View::CodeReference(view) = document.view() else {
                continue;
            };
            let name = (conversation.turn_of(*place), document.id.clone());
            if self.cited.contains_key(&name) {
                continue;
            }
            effects.push(Effect::Cite {
                turn: name.0,
                document: name.1.clone(),
                path: view.file_path.to_owned(),
                first: view.start_line,
                last: view.end_line,
            });
            self.cited.insert(name, Citation::Unread);
        }
        effects
    }

    /// Returns true in the first 300 ms after a question appeared or got the focus: keys that decide do nothing then, as they
    /// were meant for something else.
    pub fn is_too_early(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.since_ms) < TOO_EARLY_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: ApprovalLayout = ApprovalLayout {
        version: 1,
        width: 80,
        context_lines: 3,
    };

    /// Notes what was seen, in these layouts; returns the number of rows that are left.
    fn left(noted: &[(ApprovalLayout, usize, (usize, usize))]) -> usize {
        let mut seen = SeenApproval::default();
        for (layout, all, view) in noted {
            seen.note(*layout, *all, Some(*view));
        }
        seen.left
    }

    #[test]
    fn rows_that_were_seen_count_in_their_own_layout() {
        let wide = ApprovalLayout { width: 160, ..FIRST };
        let other = ApprovalLayout { version: 2, ..FIRST };
        let fewer = ApprovalLayout {
            context_lines: 0,
            ..FIRST
        };
        let (begin, middle, end) = ((0, 7), (8, 14), (12, 19));
        for (what, noted, expected) in [
            ("a beginning", &[(FIRST, 20, begin)][..], 12),
            ("an end", &[(FIRST, 20, end)], 12),
            ("both", &[(FIRST, 20, begin), (FIRST, 20, end)], 4),
            (
                "all, from both sides",
                &[(FIRST, 20, begin), (FIRST, 20, end), (FIRST, 20, middle)],
                0,
            ),
            ("a gap", &[(FIRST, 20, middle)], 20),
            ("another width", &[(FIRST, 20, (0, 14)), (wide, 10, (0, 4))], 5),
            (
                "as many rows in another width",
                &[(FIRST, 20, begin), (wide, 20, middle)],
                20,
            ),
            (
                "fewer lines around a change",
                &[(FIRST, 20, begin), (fewer, 16, middle)],
                16,
            ),
            (
                "all of it, then another width",
                &[(FIRST, 20, (0, 19)), (wide, 10, (0, 4))],
                0,
            ),
            (
                "all of what it said before",
                &[(FIRST, 20, (0, 19)), (other, 20, begin)],
                12,
            ),
            (
                "a row that a key has added",
                &[(FIRST, 20, (0, 19)), (FIRST, 21, begin)],
                1,
            ),
        ] {
            assert_eq!(left(noted), expected, "{what}");
        }
        let mut seen = SeenApproval::default();
        seen.note(FIRST, 20, Some(begin));
        seen.note(FIRST, 0, None);
        assert_eq!((seen.rows, seen.left), (8, 12), "it is far from the view");
    }
}
