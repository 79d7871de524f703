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
    /// The model may be in memory.
    is_used: AtomicBool,
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

/// The work in the background; it has ended when this is dropped, also by a panic.
struct Completing(Arc<EmbeddingService>);

impl Drop for Completing {
    fn drop(&mut self) {
        self.0.is_completing.store(false, Ordering::Release);
        if !self.0.answers.are_written() {
            self.0.rest();
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let answers = &self.0.answers;
        let mut count = answers.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count -= 1;
        let is_last = *count == 0;
        drop(count);
        answers.is_quiet.notify_all();
        if is_last && !self.0.is_completing.load(Ordering::Acquire) {
            self.0.rest();
        }
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
            is_used: AtomicBool::new(false),
            answers: Answers::default(),
        }
    }

    /// The vectors; opens them if needed, which may take a moment.
    pub fn get(&self) -> &Opened {
        self.is_used.store(true, Ordering::Release);
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
        let (own, index) = (Completing(Arc::clone(self)), Arc::clone(index));
        // A server of shared vectors is asked through the runtime of the caller.
        let runtime = tokio::runtime::Handle::try_current().ok();
        let work = move || {
            os::process::lower_priority();
            let _entered = runtime.as_ref().map(tokio::runtime::Handle::enter);
            if let Ok(Some(embeddings)) = own.0.get() {
                own.0.run(embeddings, &index, &files, &read);
            }
        };
        if let Err(error) = std::thread::Builder::new().name("vectors".to_owned()).spawn(work) {
            tracing::warn!(%error, "no vectors are made in the background");
        }
    }

    /// Gives back the memory of a model that was used; on another thread, because that takes a moment.
    fn rest(self: &Arc<Self>) {
        // Opening is for those who need vectors.
        if !self.is_used.swap(false, Ordering::AcqRel) {
            return;
        }
        let own = Arc::clone(self);
        let rest = move || {
            // A new answer may have begun to search.
            if let (Ok(Some(embeddings)), false) = (&*own.opened, own.answers.are_written()) {
                embeddings.rest();
            }
        };
        if let Err(error) = std::thread::Builder::new().name("vectors".to_owned()).spawn(rest) {
            tracing::debug!(%error, "the model stays in memory");
        }
    }

    fn run(&self, embeddings: &Embeddings, index: &Index, files: &[File], read: Read<'_>) {
        // Files that are not cut yet are, too, and that stops as soon as an answer begins.
        let survey = loop {
            self.answers.wait();
            let survey = index.survey(files, read, &|| self.answers.are_written());
            if survey.is_whole() || !self.answers.are_written() {
                break survey;
            }
        };
        let mut since = Instant::now();
        let done = embeddings.complete((&survey, files), read, Effort::Aside, &mut |_| {
            // Half of one processor: as much rest as work.
            std::thread::sleep(since.elapsed());
            self.answers.wait();
            since = Instant::now();
            ControlFlow::Continue(())
        });
        match done {
            Ok(progress) => tracing::debug!(?progress, "the vectors of the workspace are there"),
            Err(error) => tracing::warn!(%error, "the vectors of the workspace are not complete"),
        }
    }
}

impl Answers {
    /// True while an answer is written.
    fn are_written(&self) -> bool {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) > 0
    }

    /// Waits until no answer is written.
    fn wait(&self) {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.is_quiet.wait_while(count, |it| *it > 0));
    }
}

#[cfg(test)]
mod tests {
    use std::{
        path::{Path, PathBuf},
        sync::mpsc::{Sender, channel},
    };

    use super::*;
    use crate::{
        embedding::{EmbedError, Embedder},
        index::IsOver,
    };

    /// Tells what it is asked for: the number of texts, and at the end that it rests.
    struct Told(Mutex<Sender<Option<usize>>>);

    impl Told {
        fn say(&self, what: Option<usize>) {
            self.0.lock().expect("the sender").send(what).ok();
        }
    }

    impl Embedder for Told {
        fn id(&self) -> &'static str {
            "told@1"
        }

        fn dims(&self) -> usize {
            2
        }

        fn is_local(&self) -> bool {
            true
        }

        fn batch(&self) -> usize {
            1
        }

        fn embed_documents(
            &self,
            texts: &[String],
            effort: Effort,
            _: IsOver<'_>,
        ) -> Result<Vec<Vec<f32>>, EmbedError> {
            assert_eq!(effort, Effort::Aside);
            self.say(Some(texts.len()));
            Ok(texts.iter().map(|it| vec![it.len() as f32, 1.0]).collect())
        }

        fn embed_query(&self, _: &str, _: IsOver<'_>) -> Result<Vec<f32>, EmbedError> {
            Ok(vec![1.0, 1.0])
        }

        fn rest(&self) {
            self.say(None);
        }
    }

    #[allow(clippy::unnecessary_wraps, reason = "the form that the service wants")]
    fn read(path: &Path) -> Option<Vec<u8>> {
        Some(format!("fn file_{}() {{}}\n", path.display()).into_bytes())
    }

    #[test]
    fn vectors_are_made_only_while_no_answer_is_written() {
        let (send, told) = channel();
        let service = Arc::new(EmbeddingService::new(true, move || {
            Ok(Some(Embeddings::new(Arc::new(Told(Mutex::new(send))), None, None)))
        }));
        let files: Vec<_> = (0..3)
            .map(|it| File {
                path: PathBuf::from(it.to_string()),
                shown: format!("{it}.rs"),
                modified: None,
                bytes: 20,
            })
            .collect();
        let answering = service.answering();
        service.complete(&Arc::default(), files.clone(), read);
        // A second one while the first goes on does nothing.
        service.complete(&Arc::default(), files, read);
        assert!(told.try_recv().is_err());
        drop(answering);
        let limit = std::time::Duration::from_mins(1);
        let heard: Vec<_> = (0..4).map(|_| told.recv_timeout(limit).expect("it goes on")).collect();
        assert_eq!(heard, [Some(1), Some(1), Some(1), None]);
    }
}
