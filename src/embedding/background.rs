//! Vectors for the whole workspace, made while nobody waits for anything.

use std::{
    ops::ControlFlow,
    sync::{
        Arc, Condvar, LazyLock, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use super::{Effort, Embeddings, Opened};
use crate::{
    index::{File, Index, Read},
    os,
};

/// The vectors of a program: opened when they are first needed, completed while nothing else happens.
pub struct EmbeddingService {
    opened: LazyLock<Opened, Box<dyn FnOnce() -> Opened + Send>>,
    /// Vectors of the whole workspace may be made in the background.
    completes: bool,
    is_completing: AtomicBool,
    answers: Answers,
}

/// Counts the answers that are being written. The background waits until there are none.
#[derive(Default)]
struct Answers {
    count: Mutex<usize>,
    is_quiet: Condvar,
}

/// An answer that is being written; it ends when this is dropped.
pub struct Answering(Arc<EmbeddingService>);

impl Drop for Answering {
    fn drop(&mut self) {
        let answers = &self.0.answers;
        *answers.count.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        answers.is_quiet.notify_all();
    }
}

impl Default for EmbeddingService {
    /// No vectors: code is searched by words only.
    fn default() -> Self {
        Self::new(false, || Ok(None))
    }
}

impl EmbeddingService {
    /// Calls `open` when vectors are first needed. `completes`: a model on this machine makes those of the whole workspace.
    pub fn new(completes: bool, open: impl FnOnce() -> Opened + Send + 'static) -> Self {
        Self {
            opened: LazyLock::new(Box::new(open)),
            completes,
            is_completing: AtomicBool::new(false),
            answers: Answers::default(),
        }
    }

    /// The vectors; opens them if needed, which may take a moment.
    pub fn get(&self) -> &Opened {
        &self.opened
    }

    /// Holds the background up until the result is dropped.
    pub fn answering(self: &Arc<Self>) -> Answering {
        *self.answers.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Answering(Arc::clone(self))
    }

    /// Begins to make the vectors of `files` on a thread of its own, unless that is going on, or a server makes them.
    pub fn complete(
        self: &Arc<Self>,
        index: &Arc<Index>,
        files: Vec<File>,
        read: fn(&std::path::Path) -> Option<Vec<u8>>,
    ) {
        let is_local = matches!(self.get(), Ok(Some(it)) if it.embedder().is_local());
        if !self.completes || !is_local || self.is_completing.swap(true, Ordering::AcqRel) {
            return;
        }
        let (own, index) = (Arc::clone(self), Arc::clone(index));
        let work = move || {
            os::process::lower_priority();
            if let Ok(Some(embeddings)) = own.get() {
                own.run(embeddings, &index, &files, &read);
            }
            own.is_completing.store(false, Ordering::Release);
        };
        if let Err(error) = std::thread::Builder::new().name("vectors".to_owned()).spawn(work) {
            tracing::warn!(%error, "no vectors are made in the background");
            self.is_completing.store(false, Ordering::Release);
        }
    }

    fn run(&self, embeddings: &Embeddings, index: &Index, files: &[File], read: Read<'_>) {
        let survey = index.survey(files, read, &|| false);
        let mut since = Instant::now();
        let done = embeddings.complete((&survey, files), read, Effort::Aside, &mut |_| {
            // Half of one processor: as much rest as work.
            std::thread::sleep(since.elapsed());
            let count = self.answers.count.lock().unwrap_or_else(PoisonError::into_inner);
            let quiet = self.answers.is_quiet.wait_while(count, |it| *it > 0);
            drop(quiet);
            since = Instant::now();
            ControlFlow::Continue(())
        });
        match done {
            Ok(progress) => tracing::debug!(?progress, "the vectors of the workspace are there"),
            Err(error) => tracing::warn!(%error, "the vectors of the workspace are not complete"),
        }
    }
}
