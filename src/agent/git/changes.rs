//! The changes of the person's tree that are not committed, as documents.

use std::{path::Path, sync::Arc};

use serde_json::{Map, Value, json};

use super::{Error, Repository, stage::Blob};
use crate::{
    protocol::{Document, DocumentStart, GitChanges, Kind, Operation, document::language_of, sentence},
    sandbox::{Place, Workspace},
    tools::edit::{
        hunks::{hunks, surroundings},
        text::Text,
    },
};

/// Files whose changes are shown.
const FILES: usize = 200;
/// Larger files are named only.
const FILE_BYTES: u64 = 4 << 20;

/// The changes since the last commit: a document for each hunk, in the order of the paths; new files, too. Hidden files
/// are left out.
pub async fn documents(repository: &Repository, workspace: &Arc<Workspace>) -> Result<GitChanges, Error> {
    let filters = super::filters(&repository.top)
        .await
        .ok_or_else(|| Error::Failed(sentence::FILTERED.text().to_owned()))?;
    let options = || filters.iter().flat_map(|it| ["-c", it.as_str()]);
    let mut paths: Vec<String> = Vec::new();
    let mut add = |bytes: Vec<u8>| {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        paths.extend(text.split_terminator('\0').map(str::to_owned));
    };
    if let Some(head) = &repository.head {
        let changed = repository.quiet().args(options());
        let changed = changed.args([
            "diff",
            "--name-only",
            "-z",
            "--no-renames",
            "--no-ext-diff",
            "--ignore-submodules=all",
            head,
            "--",
        ]);
        add(changed.output().await?);
    } else {
        add(repository.quiet().args(["ls-files", "-z", "--cached"]).output().await?);
    }
    add(repository
        .quiet()
        .args(["ls-files", "-z", "--others", "--exclude-standard"])
        .output()
        .await?);
    paths.sort();
    paths.dedup();
    let more = paths.len().saturating_sub(FILES);
    paths.truncate(FILES);
    let listed = repository.in_commit(repository.head.as_deref(), &paths).await?;
    let mut documents = Vec::new();
    for path in &paths {
        let full = repository.top.join(path);
        let before = match listed.iter().find(|it| it.path == *path) {
            Some(listed) => repository.blob(listed).await?,
            None => None,
        };
        let workspace = Arc::clone(workspace);
        documents = super::on_thread(move || {
            add_file(&mut documents, &full, before.as_ref(), &workspace);
            documents
        })
        .await?;
    }
    if more > 0 {
        let text = format!("{more} more files have changed: git diff shows them");
        documents.push(document(documents.len(), Kind::Text, Map::new(), Some(text)));
    }
    Ok(GitChanges {
        documents,
        problem: String::new(),
    })
}

/// Adds what became of one file. Reads and compares it.
fn add_file(documents: &mut Vec<Document>, full: &Path, before: Option<&Blob>, workspace: &Workspace) {
    let Ok(file) = workspace.located(full) else { return };
    if file.place == Place::Hidden {
        return;
    }
    let after = match std::fs::symlink_metadata(full) {
        Ok(about) if about.is_file() && about.len() <= FILE_BYTES => workspace.read(&file, FILE_BYTES).ok(),
        Ok(_) => return,
        Err(_) => None,
    };
    let path = file.shown.as_str();
    let read = |bytes: Option<&[u8]>| Text::read(bytes.unwrap_or_default()).ok().map(|it| it.text);
    let texts = (read(before.map(|it| it.bytes.as_slice())), read(after.as_deref()));
    let operation = match (before, &after) {
        (None, None) => return,
        (None, Some(_)) => Operation::Create,
        (Some(_), None) => Operation::Delete,
        (Some(_), Some(_)) => Operation::Edit,
    };
    let start = || {
        let mut metadata = Map::new();
        metadata.insert("filePath".to_owned(), path.into());
        metadata.insert("operation".to_owned(), operation.as_str().into());
        metadata.insert("language".to_owned(), language_of(path).into());
        // It was not asked about: whoever made the change is not known.
        metadata.insert("applied".to_owned(), String::new().into());
        metadata
    };
    let (Some(old), Some(new)) = texts else {
        // Not text: what happened is all there is to say.
        return documents.push(document(documents.len(), Kind::FileEdit, start(), None));
    };
    if operation == Operation::Create {
        return documents.push(document(documents.len(), Kind::FileEdit, start(), Some(new)));
    }
    let hunks = hunks(&old, &new);
    let around = surroundings(&old, &hunks);
    let count = hunks.len();
    if count == 0 {
        // A mode, or line ends.
        return documents.push(document(documents.len(), Kind::FileEdit, start(), None));
    }
    for (at, (hunk, (before, after))) in hunks.into_iter().zip(around).enumerate() {
        let mut metadata = start();
        metadata.insert(
            "diff".to_owned(),
            json!({
                "oldString": hunk.old, "newString": hunk.new, "startLine": hunk.start, "endLine": hunk.end,
                "contextBefore": before, "contextAfter": after,
            }),
        );
        metadata.insert("hunk".to_owned(), json!({ "index": at + 1, "count": count }));
        documents.push(document(documents.len(), Kind::FileEdit, metadata, Some(hunk.new)));
    }
}

fn document(at: usize, kind: Kind, metadata: Map<String, Value>, content: Option<String>) -> Document {
    Document::finished(DocumentStart {
        id: format!("change-{at}").into(),
        kind,
        sequence: None,
        content: content.map(Into::into),
        metadata,
    })
}
