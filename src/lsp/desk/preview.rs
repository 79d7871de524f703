//! What proposed changes would bring: their texts are laid over the files in the servers, looked at, and taken back. Nothing is
//! written.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use futures::future::join_all;
use tokio::time::Instant;

use super::{Comparison, Desk, Edit, Found, Reports, ServerKey, half, key, look_time, matters};
use crate::lsp::{added, server::Overlay, text_of};

/// What a server is to be shown.
struct Wanted {
    found: Found,
    overlay: Overlay,
    /// Files that are not there before the change.
    new: BTreeSet<PathBuf>,
    /// Files that are gone after it: their names count for the others, and they are looked at no more.
    gone: BTreeSet<PathBuf>,
    /// Where files are moved from, by where they are moved to.
    moved: BTreeMap<PathBuf, PathBuf>,
}

impl Desk {
    /// Compares files, and `others` that may depend on them, before and after changes that are proposed, each with its new text;
    /// a file that is to be deleted is looked at as an empty one. What the conversation has changed in the same step belongs to
    /// the proposal.
    pub(super) async fn preview(
        &self,
        by: u64,
        proposed: Vec<(Edit, String)>,
        others: Vec<PathBuf>,
        until: Instant,
    ) -> Comparison {
        let changed = self.changed_by(by);
        if changed.is_empty() {
            self.tell_changes(&changed, until).await;
        }
        let wanted = self.wanted(by, proposed, &others);
        let looks = wanted.into_iter().map(|it| self.preview_of(it, until));
        let mut comparison = Comparison::default();
        for one in join_all(looks).await {
            comparison.join(one);
        }
        comparison
    }

    fn wanted(&self, by: u64, proposed: Vec<(Edit, String)>, others: &[PathBuf]) -> Vec<Wanted> {
        let mut all: BTreeMap<ServerKey, Wanted> = BTreeMap::new();
        for (edit, text) in proposed {
            for found in self.servers_of(&edit.file) {
                let wanted = all.entry(key(&found)).or_insert_with(|| Wanted::of(found));
                wanted.add(&edit, &text);
            }
        }
        let state = self.state.borrow();
        for (key, wanted) in &mut all {
            let unseen = state.unseen.get(&(by, key.clone()));
            let files = unseen.into_iter().flat_map(|it| it.files.keys());
            for file in files {
                wanted.overlay.held.insert(file.clone());
                if wanted.overlay.proposed.contains_key(file) {
                    continue;
                }
                let text = text_of(file);
                if text.is_none() {
                    wanted.gone.insert(file.clone());
                }
                wanted.overlay.proposed.insert(file.clone(), text.unwrap_or_default());
            }
            let earlier = unseen.into_iter().flat_map(|it| it.others.keys());
            for other in earlier.chain(others) {
                let is_served = || self.servers_of(other).iter().any(|it| super::key(it) == *key);
                if !wanted.overlay.proposed.contains_key(other) && is_served() {
                    wanted.overlay.others.insert(other.clone());
                }
            }
        }
        all.into_values().collect()
    }

    async fn preview_of(&self, wanted: Wanted, until: Instant) -> Comparison {
        let name = &wanted.found.name;
        let mut comparison = Comparison::default();
        let server = match self.server(&wanted.found, until, true).await {
            Ok(server) => server,
            Err(missing) => {
                let files = wanted.overlay.proposed.into_keys().collect();
                comparison.unchecked.insert(missing.told(name), files);
                return comparison;
            }
        };
        let times = (look_time(half(until)), look_time(until));
        let (before, after) = Arc::clone(&server).preview(&wanted.overlay, times).await;
        wanted.compare(before, after, &mut comparison);
        if let Some(why) = server.warning().filter(|_| !comparison.checked.is_empty()) {
            comparison.unchecked.insert(why, comparison.checked.clone());
        }
        comparison
    }
}

impl Wanted {
    fn of(found: Found) -> Self {
        Self {
            found,
            overlay: Overlay::default(),
            new: BTreeSet::new(),
            gone: BTreeSet::new(),
            moved: BTreeMap::new(),
        }
    }

    fn add(&mut self, edit: &Edit, text: &str) {
        let Edit {
            file,
            is_new,
            is_deleted,
            from,
        } = edit;
        if *is_new {
            self.new.insert(file.clone());
        }
        if *is_deleted {
            self.gone.insert(file.clone());
        }
        if let Some(from) = from {
            self.moved.insert(file.clone(), from.clone());
        }
        self.overlay.proposed.insert(file.clone(), text.to_owned());
    }

    /// Adds what the server says to the comparison.
    fn compare(&self, before: Reports, after: Reports, comparison: &mut Comparison) {
        let known = |file: &PathBuf| {
            let file = self.moved.get(file).unwrap_or(file);
            let mut known = before.get(file).and_then(|it| it.clone().ok());
            if let Some(known) = &mut known {
                known.retain(matters);
            }
            known.or_else(|| self.new.contains(file).then(Vec::new))
        };
        for (file, report) in after.into_iter().filter(|it| !self.gone.contains(&it.0)) {
            let mut report = match report {
                Ok(report) => report,
                Err(missing) => {
                    let files = comparison.unchecked.entry(missing.told(&self.found.name)).or_default();
                    files.insert(file);
                    continue;
                }
            };
            report.retain(matters);
            comparison.checked.insert(file.clone());
            let (list, found) = match known(&file) {
                Some(before) => {
                    comparison.fixed += added(&report, before.clone()).len();
                    (&mut comparison.new, added(&before, report))
                }
                None => (&mut comparison.doubtful, report),
            };
            if !found.is_empty() {
                list.entry(file).or_default().extend(found);
            }
        }
    }
}
