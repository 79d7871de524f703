//! Search by words and meaning, and the vectors that it needs.

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustc_hash::FxHashSet;

use super::{
    Effort, EmbedError, Embedder, SharedVectors, Vector,
    store::{self, Store},
    vector::Vectors,
};
use crate::{
    index::{self, Candidate, File, Hit, IsOver, RankedBy, Read, Survey, TextHash},
    os::memory_trim::trim_when_worth,
};

/// Candidates of a ranking that are looked at: so many get vectors, if they have none, and so many are fused.
const CANDIDATES: usize = 100;
/// Maximum size of the vectors in memory, in bytes. Where a workspace has more, only candidates are compared.
const MOST_MEMORY: usize = 96 << 20;
/// Hashes that are looked up at once.
const HASHES_TOGETHER: usize = 10_000;
/// Files whose vectors are made one after the other, before they are shared.
const FILES_TOGETHER: usize = 64;
/// Maximum size of the vectors in memory while nothing is searched, in bytes.
const MOST_AT_REST: usize = 12 << 20;
/// Questions whose vectors are kept.
const QUESTIONS: usize = 32;

/// The vectors of one model: made, kept and compared. Shared by all searches of a program.
pub struct Embeddings {
    embedder: Arc<dyn Embedder>,
    shared: Option<SharedVectors>,
    /// The folder of the file, and its maximum size in bytes; `None`: vectors are kept in memory only.
    folder: Option<(PathBuf, u64)>,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    vectors: Vectors<TextHash>,
    /// `None`: there is no file, or it cannot be opened. Vectors are then kept in memory only.
    store: Option<Store>,
    /// The last reason why something could not be stored.
    problem: Option<String>,
    /// Texts that the file had no vector of, when it had this version.
    absent: FxHashSet<TextHash>,
    absent_at: i64,
    questions: Vec<(String, Vector)>,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Best first.
    pub hits: Vec<Hit>,
    pub meaning: Meaning,
    /// The vectors of all chunks would fit into memory: making them is worth it.
    pub is_small: bool,
}

/// Part of the meaning of texts in a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// All chunks have vectors.
    Whole,
    /// Some of all chunks were compared: the candidates, as far as there was time, and those that have vectors otherwise.
    Part { with: usize, of: usize },
    /// Only words counted, for this reason.
    Absent(String),
}

/// Progress of [`Embeddings::complete`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Chunks with vectors.
    pub done: usize,
    pub all: usize,
}

impl Found {
    /// Hits by words only, for a reason.
    pub fn by_words(hits: Vec<Hit>, why: String) -> Self {
        Self {
            hits,
            meaning: Meaning::Absent(why),
            is_small: false,
        }
    }
}

impl Embeddings {
    /// Vectors of `embedder`, kept in `folder`; `limit` is the maximum size of the file in bytes. `None`: kept in memory only.
    pub fn new(embedder: Arc<dyn Embedder>, folder: Option<(&Path, u64)>, shared: Option<SharedVectors>) -> Self {
        let embeddings = Self {
            embedder,
            shared,
            folder: folder.map(|it| (it.0.to_owned(), it.1)),
            memory: Mutex::default(),
        };
        embeddings.open(&mut embeddings.memory());
        embeddings
    }

    /// Opens the file if it is not open.
    fn open(&self, memory: &mut Memory) {
        let Some((folder, limit)) = self.folder.as_ref().filter(|_| memory.store.is_none()) else {
            return;
        };
        match Store::open(folder, self.embedder.id(), *limit) {
            Ok(store) => (memory.store, memory.problem) = (Some(store), None),
            Err(error) => {
                tracing::warn!(%error, "vectors are kept in memory only");
                memory.problem = Some(error.to_string());
            }
        }
    }

    /// Notes what the file could not do. One that is damaged is made anew.
    fn failed(&self, memory: &mut Memory, error: &anyhow::Error) {
        tracing::warn!(%error, "the file of vectors cannot be used");
        memory.problem = Some(error.to_string());
        if let Some((folder, _)) = self.folder.as_ref().filter(|_| store::is_damage(error)) {
            memory.store = None;
            if let Err(error) = store::discard(folder) {
                tracing::warn!(%error, "the damaged file of vectors stays");
            }
        }
    }

    /// The reason why vectors cannot be stored; `None` while they can.
    pub fn problem(&self) -> Option<String> {
        self.memory().problem.clone()
    }

    /// Vectors that are shared with others, if the settings name a place.
    pub fn shared(&self) -> Option<&SharedVectors> {
        self.shared.as_ref()
    }

    /// The model.
    pub fn embedder(&self) -> &dyn Embedder {
        self.embedder.as_ref()
    }

    /// Gives back memory that is not needed soon: the model, and vectors if they are many. They are loaded again when needed.
    pub fn rest(&self) {
        self.embedder.rest();
        let mut memory = self.memory();
        if memory.store.is_some() && memory.vectors.size() > MOST_AT_REST {
            memory.vectors = Vectors::default();
        }
        drop(memory);
        // What a search has read and ordered is several times as large as what it keeps.
        trim_when_worth();
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The chunks that answer a question best, at most `most`, by words and by meaning.
    ///
    /// Candidates without vectors get them as long as `is_over` says no.
    pub fn search(
        &self,
        (survey, files): (&Survey<'_>, &[File]),
        read: Read<'_>,
        question: &str,
        most: usize,
        is_over: IsOver<'_>,
    ) -> Found {
        let mut words = survey.by_words(question);
        let asked = match self.question(question, is_over) {
            Ok(asked) => asked,
            Err(error) => {
                return Found::by_words(index::choose(words, most), error.to_string());
            }
        };
        words.truncate(CANDIDATES);
        let of = survey.len();
        let is_small = of * Vectors::<TextHash>::size_of(asked.values.len()) <= MOST_MEMORY;
        let ranked = || {
            let (mut with, mut next) = (0, 0);
            let memory = self.memory();
            let meaning = survey.by_meaning(question, CANDIDATES, |hash| {
                let cosine = memory.vectors.cosine(hash, &asked, &mut next);
                with += usize::from(cosine.is_some());
                cosine
            });
            (meaning, with)
        };
        let (meaning, with) = ranked();
        if with == of {
            let fused = index::fuse(&RankedBy { words, meaning });
            return Found {
                hits: index::choose(fused, most),
                meaning: Meaning::Whole,
                is_small,
            };
        }
        // Where few chunks share words with the question, others may mean what it asks for.
        let mut candidates = words.clone();
        candidates.extend(survey.others(&words).take(CANDIDATES - words.len()));
        if is_small {
            self.load(survey.hashes().map(|it| it.1));
        } else {
            self.load(candidates.iter().map(|it| it.hash));
        }
        self.fetch(survey, &candidates, asked.values.len(), is_over);
        let failed = self.embed_candidates(&candidates, files, read, is_over).err();
        let (meaning, with) = ranked();
        let meaning_state = match failed {
            Some(error) if with == 0 => Meaning::Absent(error.to_string()),
            Some(_) | None if with == of => Meaning::Whole,
            Some(_) | None => Meaning::Part { with, of },
        };
        let fused = index::fuse(&RankedBy { words, meaning });
        Found {
            hits: index::choose(fused, most),
            meaning: meaning_state,
            is_small,
        }
    }

    /// The vector of a question.
    fn question(&self, question: &str, is_over: IsOver<'_>) -> Result<Vector, EmbedError> {
        let known = self
            .memory()
            .questions
            .iter()
            .find(|it| it.0 == question)
            .map(|it| it.1.clone());
        if let Some(known) = known {
            return Ok(known);
        }
        let exact = self.embedder.embed_query(question, is_over)?;
        let vector = Vector::of(&exact);
        let vector = vector.ok_or_else(|| EmbedError::Unusable("the question's vector has no direction".to_owned()))?;
        let questions = &mut self.memory().questions;
        if questions.len() >= QUESTIONS {
            questions.remove(0);
        }
        questions.push((question.to_owned(), vector.clone()));
        Ok(vector)
    }

    /// Brings vectors that are stored into memory, as far as there is room.
    pub fn load(&self, hashes: impl Iterator<Item = TextHash>) {
        let memory = &mut *self.memory();
        self.open(memory);
        let Some(store) = &memory.store else {
            return;
        };
        let version = store.version();
        if memory.absent_at != version {
            memory.absent.clear();
            memory.absent_at = version;
        }
        let (vectors, absent) = (&mut memory.vectors, &mut memory.absent);
        // In the order in which they are compared: what follows in memory is read faster.
        let mut seen = FxHashSet::default();
        let wanted: Vec<TextHash> = hashes
            .filter(|it| !vectors.contains(it) && !absent.contains(it) && seen.insert(*it))
            .collect();
        if vectors.size() + wanted.len() * vectors.size_of_one() > MOST_MEMORY {
            // What was loaded for other folders goes first; the rest of this one's comes again.
            *vectors = Vectors::default();
        }
        let mut found = FxHashSet::default();
        let read = store.read(wanted.iter().copied(), |hash, vector| {
            found.insert(hash);
            if vectors.size() < MOST_MEMORY {
                vectors.insert(hash, &vector);
            }
        });
        match read {
            Ok(()) => absent.extend(wanted.into_iter().filter(|it| !found.contains(it))),
            Err(error) => self.failed(memory, &error),
        }
    }

    /// The texts that have vectors, in memory or in the file.
    fn known(&self, hashes: &[TextHash]) -> FxHashSet<TextHash> {
        let memory = &mut *self.memory();
        let is_loaded = |it: &TextHash| memory.vectors.contains(it);
        let mut known: FxHashSet<TextHash> = hashes.iter().filter(|it| is_loaded(it)).copied().collect();
        let others: Vec<TextHash> = hashes.iter().filter(|it| !is_loaded(it)).copied().collect();
        let read = memory.store.as_ref().map_or(Ok(()), |store| {
            store.read(others.into_iter(), |hash, _| {
                known.insert(hash);
            })
        });
        if let Err(error) = read {
            self.failed(memory, &error);
        }
        known
    }

    /// The number of chunks that have vectors.
    pub fn count(&self, survey: &Survey<'_>) -> usize {
        let hashes: Vec<_> = survey.hashes().map(|it| it.1).collect();
        let groups = hashes.chunks(HASHES_TOGETHER);
        let counts = groups.map(|group| {
            let known = self.known(group);
            group.iter().filter(|it| known.contains(it)).count()
        });
        counts.sum()
    }

    /// Takes shared vectors of the files of candidates without any.
    fn fetch(&self, survey: &Survey<'_>, candidates: &[Candidate], dims: usize, is_over: IsOver<'_>) {
        let Some(shared) = &self.shared else {
            return;
        };
        let memory = self.memory();
        let missing = candidates.iter().filter(|it| !memory.vectors.contains(&it.hash));
        let files: BTreeSet<usize> = missing.map(|it| it.hit.file).collect();
        drop(memory);
        let chunks: Vec<_> = files.into_iter().map(|it| survey.of_file(it)).collect();
        // A search goes on with what is in memory.
        let _ = self.keep(&shared.get(&chunks, dims, is_over));
    }

    fn embed_candidates(
        &self,
        candidates: &[Candidate],
        files: &[File],
        read: Read<'_>,
        is_over: IsOver<'_>,
    ) -> Result<(), EmbedError> {
        let memory = self.memory();
        let missing: Vec<&Candidate> = candidates
            .iter()
            .filter(|it| !memory.vectors.contains(&it.hash))
            .collect();
        drop(memory);
        let mut texts: HashMap<usize, HashMap<TextHash, String>> = HashMap::new();
        for batch in missing.chunks(self.embedder.batch()) {
            if is_over() {
                break;
            }
            let mut chosen = Vec::new();
            for candidate in batch {
                let file = candidate.hit.file;
                let of_file = texts
                    .entry(file)
                    .or_insert_with(|| texts_of(files.get(file), read, is_over));
                if let Some(text) = of_file.remove(&candidate.hash) {
                    chosen.push((candidate.hash, text));
                }
            }
            match self.embed(chosen, Effort::Search, is_over) {
                // A search goes on with what is in memory.
                Ok(()) | Err(EmbedError::Store(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Makes and keeps the vectors of texts.
    fn embed(&self, texts: Vec<(TextHash, String)>, effort: Effort, is_over: IsOver<'_>) -> Result<(), EmbedError> {
        if texts.is_empty() {
            return Ok(());
        }
        let (hashes, texts): (Vec<_>, Vec<_>) = texts.into_iter().unzip();
        let exact = self.embedder.embed_documents(&texts, effort, is_over)?;
        if exact.len() != texts.len() {
            let (given, made) = (texts.len(), exact.len());
            return Err(EmbedError::Server(format!("{made} vectors came for {given} texts")));
        }
        let vectors = hashes.into_iter().zip(exact);
        let vectors: Vec<_> = vectors
            .filter_map(|(hash, exact)| Some((hash, Vector::of(&exact)?)))
            .collect();
        self.keep(&vectors)
    }

    /// Keeps vectors in memory, as far as there is room, and in the file.
    fn keep(&self, vectors: &[(TextHash, Vector)]) -> Result<(), EmbedError> {
        let memory = &mut *self.memory();
        for (hash, vector) in vectors {
            memory.absent.remove(hash);
            if memory.vectors.size() < MOST_MEMORY {
                memory.vectors.insert(*hash, vector);
            }
        }
        self.open(memory);
        match memory.store.as_ref().map(|it| it.write(vectors)) {
            Some(Ok(())) => memory.problem = None,
            Some(Err(error)) => self.failed(memory, &error),
            None => {}
        }
        match &memory.problem {
            Some(why) => Err(EmbedError::Store(why.clone())),
            None => Ok(()),
        }
    }

    /// Shares the vectors of a file, if all of its chunks have one.
    fn share(&self, chunks: &[TextHash]) {
        let Some(shared) = &self.shared else {
            return;
        };
        self.load(chunks.iter().copied());
        let memory = self.memory();
        let vectors: Option<Vec<_>> = chunks.iter().map(|it| memory.vectors.get(it)).collect();
        drop(memory);
        if let Some(vectors) = vectors {
            shared.put(&chunks.to_vec(), &vectors);
        }
    }

    /// Gives vectors to all chunks, file by file, until `progress` says that it is over. What is done is kept.
    pub fn complete(
        &self,
        (survey, files): (&Survey<'_>, &[File]),
        read: Read<'_>,
        effort: Effort,
        progress: &mut dyn FnMut(Progress) -> std::ops::ControlFlow<()>,
    ) -> Result<Progress, EmbedError> {
        let mut state = Progress {
            done: self.count(survey),
            all: survey.len(),
        };
        let dims = match self.embedder.dims() {
            // A server says so with its first vector.
            0 if self.shared.is_some() => self.question("code", &|| false)?.values.len(),
            dims => dims,
        };
        // Files are taken in groups, so that a server of shared vectors is asked for many at once.
        let places: Vec<usize> = (0..files.len()).collect();
        for group in places.chunks(FILES_TOGETHER) {
            let hashes: Vec<_> = group.iter().flat_map(|it| survey.of_file(*it)).collect();
            let mut known = self.known(&hashes);
            let is_missing = |file: &&usize| survey.of_file(**file).iter().any(|it| !known.contains(it));
            let missing: Vec<usize> = group.iter().filter(is_missing).copied().collect();
            if missing.is_empty() {
                continue;
            }
            if let Some(shared) = &self.shared {
                let chunks: Vec<_> = missing.iter().map(|it| survey.of_file(*it)).collect();
                let found = shared.get(&chunks, dims, &|| false);
                self.keep(&found)?;
                state.done += found.iter().filter(|it| known.insert(it.0)).count();
            }
            let mut waiting = Vec::new();
            for file in &missing {
                let mut texts = texts_of(files.get(*file), read, &|| false);
                for hash in survey.of_file(*file) {
                    if known.insert(hash) {
                        waiting.extend(texts.remove(&hash).map(|it| (hash, it)));
                    }
                }
            }
            while !waiting.is_empty() {
                if progress(state).is_break() {
                    return Ok(state);
                }
                let batch: Vec<_> = waiting.drain(..self.embedder.batch().min(waiting.len())).collect();
                let count = batch.len();
                self.embed(batch, effort, &|| false)?;
                state.done += count;
            }
            for file in &missing {
                self.share(&survey.of_file(*file));
            }
        }
        state.done = self.count(survey);
        let _ = progress(state);
        Ok(state)
    }
}

/// The texts of a file's chunks, by hash. Empty if the file cannot be read.
fn texts_of(file: Option<&File>, read: Read<'_>, is_over: IsOver<'_>) -> HashMap<TextHash, String> {
    let texts = file.and_then(|file| {
        let bytes = read(&file.path)?;
        index::texts(&file.shown, &bytes, is_over)
    });
    texts.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::index::Index;

    /// Knows two subjects: trying again, and letters. Counts the texts that it was given.
    #[derive(Default)]
    struct Subjects {
        texts: AtomicUsize,
        fails_after: Option<usize>,
    }

    impl Subjects {
        fn vector(text: &str) -> Vec<f32> {
            let of = |words: &[&str]| words.iter().filter(|it| text.contains(**it)).count() as f32;
            vec![of(&["backoff", "again", "retry"]), of(&["mail", "letter", "smtp"]), 0.1]
        }
    }

    impl Embedder for Subjects {
        fn id(&self) -> &'static str {
            "subjects@1"
        }

        fn dims(&self) -> usize {
            3
        }

        fn is_local(&self) -> bool {
            true
        }

        fn batch(&self) -> usize {
            2
        }

        fn embed_documents(&self, texts: &[String], _: Effort, _: IsOver<'_>) -> Result<Vec<Vec<f32>>, EmbedError> {
            let before = self.texts.fetch_add(texts.len(), Ordering::Relaxed);
            if self.fails_after.is_some_and(|it| before >= it) {
                return Err(EmbedError::Server("the server is down".to_owned()));
            }
            Ok(texts.iter().map(|it| Self::vector(it)).collect())
        }

        fn embed_query(&self, text: &str, _: IsOver<'_>) -> Result<Vec<f32>, EmbedError> {
            Ok(Self::vector(text))
        }
    }

    const FILES: [(&str, &str); 4] = [
        ("src/cart.rs", "fn total() -> u32 {\n    sum(prices)\n}\n"),
        ("src/net.rs", "fn backoff(n: u32) -> Duration {\n    base * n\n}\n"),
        ("src/post.py", "def smtp(to):\n    deliver(to)\n"),
        ("tests/net.rs", "fn backoff_grows() {\n    wait()\n}\n"),
    ];

    fn files(given: &[(&str, &str)]) -> Vec<File> {
        let file = |(name, text): &(&str, &str)| File {
            path: PathBuf::from(name),
            shown: (*name).to_owned(),
            modified: None,
            bytes: text.len() as u64,
        };
        given.iter().map(file).collect()
    }

    fn read(path: &Path) -> Option<Vec<u8>> {
        let found = FILES.iter().find(|it| Path::new(it.0) == path);
        found.map(|it| it.1.as_bytes().to_vec())
    }

    fn found(embeddings: &Embeddings, question: &str) -> (Vec<&'static str>, Meaning) {
        let (index, files) = (Index::default(), files(&FILES));
        let survey = index.survey(&files, &read, &|| false);
        let found = embeddings.search((&survey, &files), &read, question, 3, &|| false);
        let names = found.hits.iter().map(|it| FILES[it.file].0);
        (names.collect(), found.meaning)
    }

    #[test]
    fn what_shares_no_word_with_the_question_is_found_by_its_meaning() {
        let embedder = Arc::new(Subjects::default());
        let folder = tempfile::tempdir().expect("a folder");
        let open = || {
            Embeddings::new(
                Arc::clone(&embedder) as Arc<dyn Embedder>,
                Some((folder.path(), 1 << 30)),
                None,
            )
        };
        let (names, meaning) = found(&open(), "who writes a letter?");
        assert_eq!((names[0], meaning), ("src/post.py", Meaning::Whole));
        assert_eq!(embedder.texts.load(Ordering::Relaxed), FILES.len());
        // Another program: all vectors are stored.
        assert_eq!(
            found(&open(), "what is done again and again, retry?").0[0],
            "src/net.rs"
        );
        assert_eq!(embedder.texts.load(Ordering::Relaxed), FILES.len());
    }

    #[test]
    fn the_best_of_many_are_the_same_as_of_all() {
        let names: Vec<String> = (0..200).map(|it| format!("src/file{it}.rs")).collect();
        let given: Vec<(&str, &str)> = names.iter().map(|it| (it.as_str(), "")).collect();
        let files = files(&given);
        let content = |path: &Path| Some(format!("fn in_{}() {{}}\n", path.display()).into_bytes());
        let index = Index::default();
        let survey = index.survey(&files, &content, &|| false);
        // A score by chance from the hash; some are equal.
        let score = |hash: &TextHash| Some(f32::from(hash.0[0] / 4) / 64.0);
        let all = survey.by_meaning("x", 1000, score);
        assert_eq!(all.len(), 200);
        for most in [1, 3, 10, 199] {
            assert_eq!(survey.by_meaning("x", most, score), all[..most], "{most}");
        }
        assert_eq!(survey.by_meaning("x", 0, score), []);
    }

    #[test]
    fn tests_stand_back_unless_asked_for() {
        let embeddings = Embeddings::new(Arc::new(Subjects::default()), None, None);
        assert_eq!(found(&embeddings, "retry").0[0], "src/net.rs");
        assert_eq!(found(&embeddings, "which tests are about retry").0[0], "tests/net.rs");
    }

    #[test]
    fn without_a_server_words_are_compared() {
        let embedder = |fails_after| Subjects {
            fails_after: Some(fails_after),
            ..Subjects::default()
        };
        let none = Embeddings::new(Arc::new(embedder(0)), None, None);
        let (names, meaning) = found(&none, "total");
        assert_eq!(names, ["src/cart.rs"]);
        assert_eq!(meaning, Meaning::Absent("the server is down".to_owned()));
        // What was made before it failed counts.
        let some = Embeddings::new(Arc::new(embedder(2)), None, None);
        let (names, meaning) = found(&some, "total");
        assert_eq!((names[0], meaning), ("src/cart.rs", Meaning::Part { with: 2, of: 4 }));
    }

    #[test]
    fn what_was_stored_is_there_after_a_rest_and_for_a_program_that_began_before() {
        let embedder = Arc::new(Subjects::default());
        let folder = tempfile::tempdir().expect("a folder");
        let open = || {
            Embeddings::new(
                Arc::clone(&embedder) as Arc<dyn Embedder>,
                Some((folder.path(), 1 << 30)),
                None,
            )
        };
        let (first, second) = (open(), open());
        let hashes = || {
            let (index, files) = (Index::default(), files(&FILES));
            let survey = index.survey(&files, &read, &|| false);
            survey.hashes().map(|it| it.1).collect::<Vec<_>>()
        };
        // Both have looked, and there was nothing.
        first.load(hashes().into_iter());
        second.load(hashes().into_iter());
        assert_eq!(found(&first, "letter").1, Meaning::Whole);
        assert_eq!(embedder.texts.load(Ordering::Relaxed), 4);
        first.memory().vectors = Vectors::default();
        assert_eq!(found(&first, "mail").1, Meaning::Whole);
        assert_eq!(found(&second, "mail").1, Meaning::Whole);
        assert_eq!(embedder.texts.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn a_build_ends_where_nothing_can_be_stored() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "no folder").expect("a file");
        let embeddings = Embeddings::new(Arc::new(Subjects::default()), Some((&file, 1 << 30)), None);
        let (index, files) = (Index::default(), files(&FILES));
        let survey = index.survey(&files, &read, &|| false);
        let go_on = &mut |_| std::ops::ControlFlow::Continue(());
        let built = embeddings.complete((&survey, &files), &read, Effort::Build, go_on);
        assert!(matches!(built, Err(EmbedError::Store(_))), "{built:?}");
        assert!(embeddings.problem().is_some());
        // A search needs no file.
        assert_eq!(found(&embeddings, "letter").1, Meaning::Whole);
    }

    #[test]
    fn a_build_that_was_stopped_goes_on() {
        let embedder = Arc::new(Subjects::default());
        let folder = tempfile::tempdir().expect("a folder");
        let (index, files) = (Index::default(), files(&FILES));
        let survey = index.survey(&files, &read, &|| false);
        let build = |stop_at: usize| {
            let own = Arc::clone(&embedder) as Arc<dyn Embedder>;
            let embeddings = Embeddings::new(own, Some((folder.path(), 1 << 30)), None);
            let mut progress = |it: Progress| {
                if it.done >= stop_at {
                    std::ops::ControlFlow::Break(())
                } else {
                    std::ops::ControlFlow::Continue(())
                }
            };
            let done = embeddings.complete((&survey, &files), &read, Effort::Build, &mut progress);
            done.expect("no failure").done
        };
        assert_eq!(build(2), 2);
        assert_eq!(embedder.texts.load(Ordering::Relaxed), 2);
        assert_eq!(build(usize::MAX), 4);
        assert_eq!(embedder.texts.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn shared_vectors_are_not_made_again() {
        let shared = tempfile::tempdir().expect("a folder");
        let address = format!("file://{}", shared.path().display());
        let embedder = Arc::new(Subjects::default());
        let open = || {
            let shared = SharedVectors::new(
                &address,
                &crate::config::KeySource::None,
                &crate::config::Environment::default(),
                embedder.id(),
            );
            Embeddings::new(Arc::clone(&embedder) as Arc<dyn Embedder>, None, shared.ok())
        };
        let (index, files) = (Index::default(), files(&FILES));
        let survey = index.survey(&files, &read, &|| false);
        let go_on = &mut |_| std::ops::ControlFlow::Continue(());
        let done = open()
            .complete((&survey, &files), &read, Effort::Build, go_on)
            .expect("built");
        assert_eq!((done.done, embedder.texts.load(Ordering::Relaxed)), (4, 4));
        let done = open()
            .complete((&survey, &files), &read, Effort::Build, go_on)
            .expect("built");
        assert_eq!((done.done, embedder.texts.load(Ordering::Relaxed)), (4, 4));
        let (names, meaning) = found(&open(), "letter");
        assert_eq!((names[0], meaning), ("src/post.py", Meaning::Whole));
        assert_eq!(embedder.texts.load(Ordering::Relaxed), 4);
    }
}
