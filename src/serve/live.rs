//! The turns that run now, by the name of their response: for answers to their questions, and to stop them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    link::Link,
    protocol::{Position, ResponseId},
};

#[derive(Default)]
pub struct Live(Mutex<HashMap<ResponseId, Turning>>);

/// A turn that runs: where, and from where in its log.
#[derive(Clone)]
pub struct Turning {
    pub link: Arc<dyn Link>,
    pub since: Position,
}

/// A place in the list, left when it is dropped.
pub struct Listed {
    live: Arc<Live>,
    id: ResponseId,
}

impl Live {
    pub fn list(self: &Arc<Self>, id: ResponseId, link: Arc<dyn Link>, since: Position) -> Listed {
        self.lock().insert(id.clone(), Turning { link, since });
        Listed {
            live: Arc::clone(self),
            id,
        }
    }

    pub fn find(&self, id: &str) -> Option<Turning> {
        self.lock().get(&ResponseId::from(id)).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ResponseId, Turning>> {
        // Every change of the map is a single call of its own.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.live.lock().remove(&self.id);
    }
}
