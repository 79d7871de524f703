//! Git: committing what was accepted in the review, and what has changed since the last commit.

use crate::{
    protocol::{DocumentId, Query, Reply, Turn},
    t,
    tui::{
        app::{Action, App, Effect, effects::ask_for},
        overlays::{CommitCard, DocumentPage, Review},
        spoken::worded,
    },
};

pub const COMMIT: Action = Action::new("commit", "commit", |app, _| {
    let accepted = Review::to_commit(&app.conversation.transcript, &app.questions.hunk_decisions);
    open(app, accepted)
});

/// Opens the commit card for these documents.
pub fn open(app: &mut App, documents: Vec<(Turn, DocumentId)>) -> Vec<Effect> {
    if documents.is_empty() {
        return app.toast(t!("commit-none-accepted"));
    }
    let (card, look) = CommitCard::new(documents, app.conversation.commits.message.as_deref());
    app.open(card);
    vec![look]
}

pub const DIFF: Action = Action::new("diff", "diff", |app, _| {
    let title = t!("diff-title");
    app.open(DocumentPage::waiting(title, "", t!("diff-reading")));
    let look = ask_for(Query::GitChanges, move |app, reply| {
        let Some(page) = app.overlays.find::<DocumentPage>(|it| it.waits_for(title)) else {
            return Vec::new();
        };
        match reply {
            Ok(Reply::GitChanges(found)) if found.problem.is_empty() => page.fill(found.documents, t!("diff-none")),
            Ok(Reply::GitChanges(found)) => page.fill(Vec::new(), &worded(&found.problem)),
            Ok(_) | Err(_) => page.fill(Vec::new(), t!("diff-not-here")),
        }
        Vec::new()
    });
    vec![look]
});
