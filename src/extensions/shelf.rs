//! The skills of a conversation: which there are, which the model has been told, and which were used last.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::skill::SkillSet;
use crate::os::file::{self, Access};

/// A longer list of uses is not read.
const USES_BYTES: u64 = 256 << 10;
/// Skills whose last use is kept.
const MOST_USES: usize = 500;

/// The skills of a conversation. Shared by everything that works on it.
#[derive(Debug, Default)]
pub struct SkillShelf(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    skills: Arc<SkillSet>,
    told: BTreeSet<String>,
    session: String,
    /// The file of the last uses in all conversations.
    uses: Option<PathBuf>,
    /// The uses when the conversation began: what the model is told of skills must not change meanwhile.
    used: Option<BTreeMap<String, u64>>,
}

impl SkillShelf {
    /// The shelf of a conversation with this id, and the file where uses are noted. Empty.
    pub fn new(session: String, uses: Option<PathBuf>) -> Self {
        Self(Mutex::new(State {
            session,
            uses,
            ..State::default()
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the skills. Reads which were used last.
    pub fn set(&self, mut skills: SkillSet) {
        let mut state = self.state();
        if state.used.is_none() {
            state.used = Some(state.uses.as_deref().map(uses).unwrap_or_default());
        }
        skills.note_uses(state.used.as_ref().unwrap_or(&BTreeMap::new()));
        state.skills = Arc::new(skills);
    }

    /// The skills.
    pub fn skills(&self) -> Arc<SkillSet> {
        Arc::clone(&self.state().skills)
    }

    /// The id of the conversation.
    pub fn session(&self) -> String {
        self.state().session.clone()
    }

    /// Replaces the names of the skills whose body the model has in its context.
    pub fn set_told(&self, told: BTreeSet<String>) {
        self.state().told = told;
    }

    /// Notes that the model is told the body of a skill, which is a use of it. Returns false if it has been told already.
    pub fn tell(&self, name: &str) -> bool {
        let mut state = self.state();
        let is_new = state.told.insert(name.to_owned());
        if let Some(path) = state.uses.as_deref().filter(|_| is_new)
            && let Err(error) = note_use(path, name)
        {
            tracing::warn!(%error, "the use of a skill is not noted");
        }
        is_new
    }

    /// Returns true if the model has the body of this skill in its context.
    pub fn is_told(&self, name: &str) -> bool {
        self.state().told.contains(name)
    }
}

/// The last uses by the names of skills: the higher the later.
fn uses(path: &Path) -> BTreeMap<String, u64> {
    let bytes = file::read(path, USES_BYTES).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

fn note_use(path: &Path, name: &str) -> Result<(), file::Error> {
    let mut all = uses(path);
    let last = all.values().copied().max().unwrap_or_default();
    all.insert(name.to_owned(), last.saturating_add(1));
    while all.len() > MOST_USES {
        let oldest = all.iter().min_by_key(|it| it.1).map(|it| it.0.clone());
        all.remove(&oldest.unwrap_or_default());
    }
    let text = serde_json::to_vec(&all).unwrap_or_default();
    if let Some(folder) = path.parent() {
        file::private_folder(folder)?;
    }
    file::write(path, &text, Access::Private)
}
