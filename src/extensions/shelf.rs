//! The skills of a conversation: which there are, and which the model has been told.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::skill::SkillSet;

/// The skills of a conversation. Shared by everything that works on it.
#[derive(Debug, Default)]
pub struct SkillShelf(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    skills: Arc<SkillSet>,
    told: BTreeSet<String>,
    session: String,
}

impl SkillShelf {
    /// The shelf of a conversation with this id. Empty.
    pub fn new(session: String) -> Self {
        Self(Mutex::new(State {
            session,
            ..State::default()
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the skills.
    pub fn set(&self, skills: SkillSet) {
        self.state().skills = Arc::new(skills);
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

    /// Notes that the model is told the body of a skill. Returns false if it has been told already.
    pub fn tell(&self, name: &str) -> bool {
        self.state().told.insert(name.to_owned())
    }

    /// Returns true if the model has the body of this skill in its context.
    pub fn is_told(&self, name: &str) -> bool {
        self.state().told.contains(name)
    }
}
