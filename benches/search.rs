//! How often code search finds the file that a question is about.
//!
//! ```sh
//! cargo bench --bench search -- QUESTIONS.json FOLDER [even|odd]
//! MODEL=granite-30m DATA=… cargo bench --bench search -- …
//! ```
//!
//! `QUESTIONS.json` is `{"repository": [{"q": "…", "gold": ["path", …]}]}`, and `FOLDER/repository` a checkout with git. Prints, per repository
//! and in all: the share of questions with a right file among the first 5 and 10 files, the mean of 1/rank, and how many files came back.
//! `even` and `odd` take every other question: one half to tune on, one to look at once. `MODEL` ranks by meaning as well, with a model that
//! is installed in the data folder `DATA`; `ALL=1` gives all chunks vectors first. Vectors are kept in `DATA`, too.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "figures are for the person who runs the bench, and git lists the files"
)]

use std::{collections::BTreeMap, ops::ControlFlow, path::Path, process::Command, sync::Arc, time::Instant};

use serde::Deserialize;
use sheaf::{
    embedding::{Effort, Embeddings, LocalModel},
    index::{File, Index},
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
    let [questions, folder, half @ ..] = arguments.as_slice() else {
        println!("SKIPPED: search, which needs QUESTIONS.json FOLDER [even|odd]");
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
            let done = embeddings.complete((&survey, &files), &read, Effort::Whole, &mut |_| {
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
