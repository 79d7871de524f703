//! How often code search finds the file that a question is about.
//!
//! ```sh
//! cargo bench --bench search -- QUESTIONS.json FOLDER [even|odd]
//! MODEL=granite-30m DATA=… cargo bench --bench search -- …
//! cargo bench --bench search -- scale CHUNKS
//! cargo bench --bench search -- change FILES
//! ```
//!
//! `QUESTIONS.json` is `{"repository": [{"q": "…", "gold": ["path", …]}]}`, and `FOLDER/repository` a checkout with git. Prints, per repository
//! and in all: the share of questions with a right file among the first 5 and 10 files, the mean of 1/rank, and how many files came back.
//! `even` and `odd` take every other question: one half to tune on, one to look at once. `MODEL` ranks by meaning as well, with a model that
//! is installed in the data folder `DATA`; `ALL=1` gives all chunks vectors first. Vectors are kept in `DATA`, too.

//!
//! `change` writes so many files and prints the time until all are cut, until one change of one file is noticed by looking at all of them
//! (listing, asking for times, cutting the one), and what being told of changes by the kernel would take instead: a watch for each folder,
//! and then the event.

//!
//! `scale` makes files with about `CHUNKS` chunks in memory and vectors by chance, and prints: time of the first look (words), of the vectors
//! (stored in a temporary folder), of a new program that has none of it in memory, of a search then, and memory.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "figures are for the person who runs the bench, and git lists the files"
)]

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
    time::Instant,
};

use serde::Deserialize;
use sheaf::{
    embedding::{Effort, EmbedError, Embedder, Embeddings, LocalModel},
    index::{File, Index, IsOver},
    sandbox::{Bounds, Workspace},
};

#[derive(Deserialize)]
struct Question {
    q: String,
    gold: Vec<String>,
}

/// Chunks of an answer, as the tool asks for by default.
const CHUNKS: usize = 10;

#[derive(Default)]
struct Sums {
    questions: f64,
    at_5: f64,
    at_10: f64,
    reciprocal: f64,
    files: f64,
}

impl Sums {
    fn print(&self, name: &str) {
        let mean = |it: f64| it / self.questions.max(1.0);
        println!(
            "{name:24} {:5} {:8.3} {:9.3} {:6.3} {:6.1}",
            self.questions,
            mean(self.at_5),
            mean(self.at_10),
            mean(self.reciprocal),
            mean(self.files)
        );
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    if let [word, count] = arguments.as_slice()
        && word == "scale"
    {
        scale(count.parse().expect("a number of chunks"));
        return;
    }
    if let [word, count] = arguments.as_slice()
        && word == "change"
    {
        change(count.parse().expect("a number of files"));
        return;
    }
    let [questions, folder, half @ ..] = arguments.as_slice() else {
        println!("SKIPPED: search, which needs QUESTIONS.json FOLDER [even|odd], scale CHUNKS, or change FILES");
        return;
    };
    let text = std::fs::read_to_string(questions).expect("the questions can be read");
    let all: BTreeMap<String, Vec<Question>> = serde_json::from_str(&text).expect("the questions are JSON");
    let embeddings = std::env::var("MODEL").ok().map(|model| {
        let data = std::env::var("DATA").expect("DATA is the data folder of the model");
        let model = LocalModel::open(&Path::new(&data).join("models").join(model)).expect("the model is installed");
        Embeddings::new(Arc::new(model), Some((Path::new(&data), u64::MAX)), None)
    });
    println!("repository              count recall@5 recall@10    MRR  files");
    let mut total = Sums::default();
    for (name, questions) in &all {
        let root = Path::new(folder).join(name);
        let files = files(&root);
        let read = |path: &Path| std::fs::read(path).ok();
        let index = Index::default();
        if let Some(embeddings) = embeddings.as_ref().filter(|_| std::env::var_os("ALL").is_some()) {
            let survey = index.survey(&files, &read, &|| false);
            let start = Instant::now();
            let done = embeddings.complete((&survey, &files), &read, Effort::Build, &mut |_| {
                ControlFlow::Continue(())
            });
            println!("{name}: {done:?} in {:.1} s", start.elapsed().as_secs_f64());
        }
        let mut sums = Sums::default();
        for (at, question) in questions.iter().enumerate() {
            let is_even = at % 2 == 0;
            if half.first().is_some_and(|it| (it == "even") != is_even) {
                continue;
            }
            let survey = index.survey(&files, &read, &|| false);
            let hits = match &embeddings {
                Some(it) => it.search((&survey, &files), &read, &question.q, CHUNKS, &|| false).hits,
                None => sheaf::index::choose(survey.by_words(&question.q), CHUNKS),
            };
            let mut ranked: Vec<&str> = Vec::new();
            for hit in &hits {
                let shown = files[hit.file].shown.as_str();
                if !ranked.contains(&shown) {
                    ranked.push(shown);
                }
            }
            let rank = ranked.iter().position(|it| question.gold.iter().any(|gold| gold == it));
            if std::env::var_os("SHOW").is_some() {
                println!("{:?} {} | {:?}", rank.map(|it| it + 1), question.q, ranked);
            }
            for sums in [&mut sums, &mut total] {
                sums.questions += 1.0;
                sums.at_5 += f64::from(u8::from(rank.is_some_and(|it| it < 5)));
                sums.at_10 += f64::from(u8::from(rank.is_some_and(|it| it < 10)));
                sums.reciprocal += rank.map_or(0.0, |it| 1.0 / (it + 1) as f64);
                sums.files += ranked.len() as f64;
            }
        }
        sums.print(name);
    }
    total.print("all");
}

fn files(root: &Path) -> Vec<File> {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output();
    let listed = output.expect("git lists the files").stdout;
    let names = listed.split(|it| *it == 0).filter(|it| !it.is_empty());
    let file = |name: &[u8]| {
        let shown = String::from_utf8_lossy(name).into_owned();
        let path = root.join(&shown);
        let metadata = std::fs::symlink_metadata(&path)
            .ok()
            .filter(std::fs::Metadata::is_file)?;
        Some(File {
            modified: metadata.modified().ok(),
            bytes: metadata.len(),
            shown,
            path,
        })
    };
    names.filter_map(file).collect()
}

/// Files of a folder that is written for `change`.
const FILES_OF_FOLDER: usize = 20;

fn change(count: usize) {
    let folder = std::env::temp_dir().join(format!("sheaf-change-{}", std::process::id()));
    for at in 0..count {
        let below = folder.join(format!("src/part{}/deep{}", at / 400, at / FILES_OF_FOLDER));
        std::fs::create_dir_all(&below).expect("a folder");
        let text = format!("fn name_{at}() {{\n    word{}(word{});\n}}\n", at % 5000, at % 777);
        std::fs::write(below.join(format!("file{at}.rs")), text).expect("a file");
    }
    std::fs::write(folder.join(".gitignore"), "target\n").expect("a file");
    let workspace = Workspace::open(&folder).expect("a workspace");
    let timed = |what: &str, work: &mut dyn FnMut() -> String| {
        let (start, used) = (Instant::now(), processor_time());
        let result = work();
        let (wall, cpu) = (start.elapsed().as_secs_f64(), processor_time() - used);
        println!("{what:52} {:9.1} ms  {:9.1} ms of CPU  {result}", wall * 1e3, cpu * 1e3);
    };
    let list = || {
        let root = workspace.located(workspace.root()).expect("the root");
        let walker = workspace.walker(&root, Bounds::until(|| false)).expect("a walk");
        let found: Mutex<Vec<PathBuf>> = Mutex::default();
        walker.visit(2, || {
            let found = &found;
            Box::new(move |entry| {
                let file = entry.ok().filter(|it| it.file_type().is_some_and(|it| it.is_file()));
                found
                    .lock()
                    .expect("sound")
                    .extend(file.map(ignore::DirEntry::into_path));
                ignore::WalkState::Continue
            })
        });
        let mut found = found.into_inner().expect("sound");
        found.sort_unstable();
        found
    };
    let dated = |paths: Vec<PathBuf>| -> Vec<File> {
        let file = |path: PathBuf| {
            let metadata = std::fs::symlink_metadata(&path).ok()?;
            Some(File {
                shown: path.strip_prefix(&folder).ok()?.to_string_lossy().into_owned(),
                modified: metadata.modified().ok(),
                bytes: metadata.len(),
                path,
            })
        };
        paths.into_iter().filter_map(file).collect()
    };
    let read = |path: &Path| std::fs::read(path).ok();
    let index = Index::default();
    timed("all files are listed and cut", &mut || {
        let files = dated(list());
        format!("{} chunks", index.survey(&files, &read, &|| false).len())
    });
    let changed = folder.join("src/part0/deep0/file0.rs");
    for nth in 0..3 {
        std::fs::write(&changed, format!("fn other_{nth}() {{ zebra_{nth}(); }}\n")).expect("a file");
        let mut files = Vec::new();
        timed("one change: files are listed", &mut || {
            files = dated(Vec::new());
            let paths = list();
            let text = format!("{} files", paths.len());
            files.extend(paths.into_iter().map(|path| File {
                path,
                shown: String::new(),
                modified: None,
                bytes: 0,
            }));
            text
        });
        let paths: Vec<PathBuf> = files.into_iter().map(|it| it.path).collect();
        let mut files = Vec::new();
        timed("one change: their times are asked for", &mut || {
            files = dated(paths.clone());
            String::new()
        });
        timed("one change: the one is cut and found", &mut || {
            let found = index.search(&files, &read, &format!("zebra_{nth}"), CHUNKS, &|| false);
            let first = found.hits.first().map(|it| files[it.file].shown.clone());
            assert_eq!(first.as_deref(), Some("src/part0/deep0/file0.rs"));
            String::new()
        });
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::inotify;
        let told = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).expect("inotify");
        let flags = inotify::WatchFlags::MODIFY
            | inotify::WatchFlags::CREATE
            | inotify::WatchFlags::DELETE
            | inotify::WatchFlags::MOVE;
        let folders: std::collections::BTreeSet<PathBuf> =
            list().iter().filter_map(|it| it.parent().map(Path::to_owned)).collect();
        timed("a watch for each folder", &mut || {
            let watched = folders
                .iter()
                .filter(|it| inotify::add_watch(&told, it.as_path(), flags).is_ok());
            format!("{} of {} folders", watched.count(), folders.len())
        });
        std::fs::write(&changed, "fn last() {}\n").expect("a file");
        timed("one change: the kernel's events are read", &mut || {
            let mut buffer = vec![std::mem::MaybeUninit::<u8>::uninit(); 1 << 16];
            let mut reader = inotify::Reader::new(&told, &mut buffer);
            let mut events = 0;
            while reader.next().is_ok() {
                events += 1;
            }
            format!("{events} events")
        });
    }
    std::fs::remove_dir_all(&folder).ok();
}

/// Time that the processors have worked for this program, in seconds.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let numbers = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: f64 = numbers.skip(11).take(2).filter_map(|it| it.parse::<f64>().ok()).sum();
    ticks / 100.0
}

/// Dimensions of the vectors by chance.
const DIMS: usize = 384;
/// Functions of a generated file; each is a chunk.
const FUNCTIONS: usize = 10;

/// A step of a generator of numbers by chance.
fn next(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

struct Chance;

impl Embedder for Chance {
    fn id(&self) -> &'static str {
        "chance"
    }

    fn dims(&self) -> usize {
        DIMS
    }

    fn is_local(&self) -> bool {
        true
    }

    fn batch(&self) -> usize {
        256
    }

    fn embed_documents(&self, texts: &[String], _: Effort, is_over: IsOver<'_>) -> Result<Vec<Vec<f32>>, EmbedError> {
        texts.iter().map(|it| self.embed_query(it, is_over)).collect()
    }

    fn embed_query(&self, text: &str, _: IsOver<'_>) -> Result<Vec<f32>, EmbedError> {
        let mut state = text
            .bytes()
            .fold(1, |all: u64, it| all.wrapping_mul(31).wrapping_add(u64::from(it)));
        Ok((0..DIMS)
            .map(|_| next(&mut state) as f32 / (1_u64 << 30) as f32 - 1.0)
            .collect())
    }
}

/// A file of functions whose names and bodies are of words by chance.
fn generated(nth: u64) -> String {
    let mut state = nth;
    let mut word = || format!("word{}", next(&mut state) % 5000);
    let mut text = String::new();
    for _ in 0..FUNCTIONS {
        text.push_str(&format!("fn {}_{}(", word(), word()));
        text.push_str(&format!("{}: u32) {{\n", word()));
        for _ in 0..10 {
            text.push_str(&format!("    {}({}, {});\n", word(), word(), word()));
        }
        text.push_str("}\n\n");
    }
    text
}

fn scale(chunks: usize) {
    let count = chunks / FUNCTIONS;
    let files: Vec<File> = (0..count)
        .map(|it| File {
            path: it.to_string().into(),
            shown: format!("src/part{}/file{it}.rs", it % 100),
            modified: None,
            bytes: 3000,
        })
        .collect();
    let read = |path: &Path| Some(generated(path.to_str()?.parse().ok()?).into_bytes());
    let folder = std::env::temp_dir().join(format!("sheaf-scale-{}", std::process::id()));
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find(|it| it.starts_with("VmRSS:"));
        let kilobytes = line.and_then(|it| it.split_whitespace().nth(1)?.parse::<f64>().ok());
        kilobytes.unwrap_or_default() / 1024.0
    };
    let timed = |what: &str, work: &mut dyn FnMut() -> String| {
        let start = Instant::now();
        let result = work();
        let seconds = start.elapsed().as_secs_f64();
        println!("{what:44} {:9.1} ms  {:7.1} MB  {result}", seconds * 1000.0, resident());
    };
    let index = Index::default();
    timed("first look at the words", &mut || {
        format!("{} chunks", index.survey(&files, &read, &|| false).len())
    });
    let survey = index.survey(&files, &read, &|| false);
    let question = "where is word17 done with word99 and word1234";
    for _ in 0..3 {
        timed("search by words", &mut || {
            format!("{} ranked", survey.by_words(question).len())
        });
    }
    let open = || Embeddings::new(Arc::new(Chance), Some((&folder, u64::MAX)), None);
    let built = open();
    timed("vectors made and stored", &mut || {
        let done = built.complete((&survey, &files), &read, Effort::Build, &mut |_| {
            ControlFlow::Continue(())
        });
        format!("{} vectors", done.map_or(0, |it| it.done))
    });
    drop(built);
    let again = open();
    for what in [
        "first search of a new program",
        "search by words and meaning",
        "search by words and meaning",
    ] {
        timed(what, &mut || {
            let found = again.search((&survey, &files), &read, question, CHUNKS, &|| false);
            format!("{:?}", found.meaning)
        });
    }
    for name in ["vectors.db", "vectors.db-wal", "vectors.db-shm"] {
        if let Ok(metadata) = std::fs::metadata(folder.join(name)) {
            println!("{name}: {:.1} MB", metadata.len() as f64 / 1e6);
        }
    }
    std::fs::remove_dir_all(&folder).ok();
}
