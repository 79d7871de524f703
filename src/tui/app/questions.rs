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
    /// Number of its first rows that have all been on the screen.
    pub rows: usize,
    /// The same of its last rows, as long as there are `of` in all.
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

impl SeenApproval {
    /// Notes that of `all` rows those from `view`'s first to its last one are on the screen.
    pub fn note(&mut self, all: usize, view: Option<(usize, usize)>) {
        // It is not laid out now.
        if all == 0 {
            return;
        }
        if self.of != all {
            (self.of, self.last) = (all, 0);
        }
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
