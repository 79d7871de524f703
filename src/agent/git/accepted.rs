//! The changes that the user has accepted, as what to commit, and what a note says of each.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use super::{
    Repository,
    stage::{AcceptedChange, Blob, ChangeKind, PLAIN_MODE, Replaced},
};
use crate::{
    protocol::{
        Applied, Document, DocumentId, Operation, Turn, View,
        document::{COMMITTED, FileEdit, UNDONE},
    },
    sandbox::{Seen, Workspace},
    tools::edit::{hunks::hunks, text::Text},
    transcript::{Exchange, Transcript},
};

/// A document that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedHunk {
    pub turn: Turn,
    pub document: DocumentId,
    /// Its address in the conversation, such as `7.3`.
    pub address: String,
    pub model: Option<String>,
    /// The message of the user that it answers.
    pub asked: String,
    /// As the conversation names it.
    pub path: String,
    /// The reason why it cannot be committed, if that is known by now.
    pub why_not: Option<String>,
}

/// Accepted documents, and the changes of files that they stand for.
#[derive(Clone, Debug, Default)]
pub struct Accepted {
    pub hunks: Vec<AcceptedHunk>,
    pub changes: Vec<AcceptedChange>,
    /// For each change the index of its document.
    pub owners: Vec<usize>,
}

/// The files of the conversation, and what is kept of them.
pub struct Files<'a> {
    pub workspace: &'a Workspace,
    pub seen: &'a Seen,
}

/// Returns those of `wanted` that no commit of the branch contains.
pub async fn uncommitted(
    transcript: &Transcript,
    wanted: Vec<(Turn, DocumentId)>,
    repository: &Repository,
) -> Vec<(Turn, DocumentId)> {
    let mut known: BTreeMap<String, bool> = BTreeMap::new();
    let mut left = Vec::new();
    for (turn, id) in wanted {
        let document = transcript
            .index_of_document(turn, &id)
            .and_then(|it| transcript.get(it));
        let commit = document.and_then(|it| it.metadata.get(COMMITTED)?.as_str());
        let is_committed = match commit {
            None => false,
            Some(commit) => match known.get(commit) {
                Some(is_committed) => *is_committed,
                None => {
                    let is_committed = repository.contains(commit).await;
                    known.insert(commit.to_owned(), is_committed);
                    is_committed
                }
            },
        };
        if !is_committed {
            left.push((turn, id));
        }
    }
    left
}

impl Accepted {
    /// Collects the documents of `wanted` that made a change which still stands. Reads files.
    pub fn new(
        transcript: &Transcript,
        wanted: &[(Turn, DocumentId)],
        repository: &Repository,
        files: &Files<'_>,
    ) -> Self {
        let mut accepted = Self::default();
        for exchange in &transcript.exchanges {
            let documents = &exchange.response.documents;
            for (at, document) in documents.iter().enumerate() {
                let is_wanted = |it: &(Turn, DocumentId)| it.0 == exchange.turn && it.1 == document.id;
                if let View::FileEdit(edit) = document.view()
                    && is_made(document, &edit)
                    && wanted.iter().any(is_wanted)
                {
                    let address = format!("{}.{}", exchange.turn.0, exchange.response.number(at));
                    let siblings = documents.iter().filter(|it| is_sibling(it, &edit));
                    let is_whole = siblings
                        .clone()
                        .all(|sibling| wanted.iter().any(|it| it.0 == exchange.turn && it.1 == sibling.id));
                    accepted.add(exchange, document, &edit, address, is_whole, repository, files);
                }
            }
        }
        accepted
    }

    #[expect(clippy::too_many_arguments, reason = "called once, where all of them are at hand")]
    fn add(
        &mut self,
        exchange: &Exchange,
        document: &Document,
        edit: &FileEdit<'_>,
        address: String,
        is_whole: bool,
        repository: &Repository,
        files: &Files<'_>,
    ) {
        let owner = self.hunks.len();
        let mut hunk = AcceptedHunk {
            turn: exchange.turn,
            document: document.id.clone(),
            address,
            model: exchange.response.model.clone(),
            asked: exchange.asked().to_owned(),
            path: edit.file_path.to_owned(),
            why_not: None,
        };
        let path = in_repository(edit.file_path, repository, files.workspace);
        let target = edit
            .new_file_path
            .map(|it| in_repository(it, repository, files.workspace));
        let (Some(path), Some(target)) = (path, target.map_or(Some(None), |it| it.map(Some))) else {
            hunk.why_not = Some("outside of this repository".to_owned());
            self.hunks.push(hunk);
            return;
        };
        let kept = |name: &str| -> [Option<Arc<[u8]>>; 2] {
            let located = files.workspace.locate(name).ok();
            let contents = files.seen.checkpoints().zip(located).zip(edit.tool_call_id);
            contents.map_or([None, None], |((checkpoints, file), call)| {
                checkpoints.contents(u64::from(exchange.turn.0), call, &file.path)
            })
        };
        let is_rename = |it: &AcceptedChange| matches!(&it.kind, ChangeKind::Rename(to) if Some(to) == target.as_ref());
        let mut changes = Vec::new();
        if let Some(to) = &target
            && !self.changes.iter().any(|it| it.path == path && is_rename(it))
        {
            changes.push(AcceptedChange {
                path: path.clone(),
                kind: ChangeKind::Rename(to.clone()),
            });
        }
        let place = target.clone().unwrap_or_else(|| path.clone());
        let replace = |replaced| AcceptedChange {
            path: place.clone(),
            kind: ChangeKind::Replace(replaced),
        };
        let text = |bytes: Option<&Arc<[u8]>>| Text::read(bytes?).ok().map(|it| it.text);
        match (&edit.diff, &edit.operation) {
            _ if edit.cell.is_some() => {
                // Its lines are counted in the cell: what is kept of the file says what that means.
                let [before, after] = kept(edit.file_path);
                match (text(before.as_ref()), text(after.as_ref())) {
                    _ if !is_whole => hunk.why_not = Some("a part of a notebook's change: accept all of it".to_owned()),
                    (Some(before), Some(after)) => changes.extend(hunks(&before, &after).into_iter().map(|it| {
                        replace(Replaced {
                            old: it.old,
                            new: it.new,
                            line: Some(it.start),
                            before: Some(before.clone()),
                        })
                    })),
                    _ => hunk.why_not = Some("its file from before is no longer kept".to_owned()),
                }
            }
            (Some(diff), _) => {
                let [before, _] = kept(edit.file_path);
                changes.push(replace(Replaced {
                    old: diff.old.to_owned(),
                    new: diff.new.to_owned(),
                    line: diff.start_line,
                    before: text(before.as_ref()),
                }));
            }
            (None, Operation::Create) => {
                let [_, after] = kept(edit.file_path);
                let written = || edit.content.unwrap_or_default().as_bytes().to_vec();
                changes.push(AcceptedChange {
                    path,
                    kind: ChangeKind::Create(Blob {
                        mode: mode(&repository.top.join(&place)),
                        bytes: after.map_or_else(written, |it| it.to_vec()),
                    }),
                });
            }
            (None, Operation::Delete) => changes.push(AcceptedChange {
                path,
                kind: ChangeKind::Delete,
            }),
            (None, Operation::Edit | Operation::Rename | Operation::Other(_)) => {}
        }
        self.owners.extend(changes.iter().map(|_| owner));
        self.changes.extend(changes);
        self.hunks.push(hunk);
    }
}

/// Returns true for a change that was made and not undone.
fn is_made(document: &Document, edit: &FileEdit<'_>) -> bool {
    let is_undone = document.metadata.get(UNDONE).is_some_and(|it| !it.is_null());
    matches!(edit.applied, Applied::Applied | Applied::Other(_)) && !is_undone
}

/// Returns true for a document of the same change of the same file.
fn is_sibling(document: &Document, edit: &FileEdit<'_>) -> bool {
    matches!(document.view(), View::FileEdit(it)
        if it.tool_call_id.is_some() && it.tool_call_id == edit.tool_call_id && it.file_path == edit.file_path)
}

/// The path from the top of the repository; `None` for one that is not in it: outside, or in a repository inside of it.
fn in_repository(shown: &str, repository: &Repository, workspace: &Workspace) -> Option<String> {
    let path = workspace.locate(shown).ok()?.path;
    let top = std::fs::canonicalize(&repository.top).ok()?;
    let inside = path.strip_prefix(&top).ok()?;
    let is_other = inside
        .ancestors()
        .skip(1)
        .filter(|it| !it.as_os_str().is_empty())
        .any(|it| top.join(it).join(".git").exists());
    let name = inside.to_str().filter(|it| !it.is_empty())?;
    let is_git = inside
        .components()
        .any(|it| it.as_os_str().eq_ignore_ascii_case(".git"));
    (!is_other && !is_git).then(|| name.to_owned())
}

/// Git's mode of a file on the disk.
fn mode(path: &Path) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(path).map_or(0, |it| it.permissions().mode());
    let name = if mode & 0o100 == 0 { PLAIN_MODE } else { "100755" };
    name.to_owned()
}
