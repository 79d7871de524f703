//! Rankings of chunks: by the words of a question, by the meaning of their texts, and both together.

use std::collections::{HashMap, HashSet};

use super::{File, Hit, Survey, TextHash, is_about_asides, word};

/// Factor on the score of tests and documentation, unless the question mentions them.
const ASIDE: f64 = 0.6;

/// The constants of BM25: how soon a word that comes again counts no more, and how much a long text has to hold more of them.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// The share of a file's score in that of its chunks.
const WHOLE: f64 = 0.5;

/// Chunks of one file in an answer: what else there is should be seen too.
const MOST_PER_FILE: usize = 3;

/// Different files in an answer before one of them is shown with a second chunk.
const DIFFERENT_FILES: usize = 10;

/// Letters that a word needs to be looked for inside the words of a path: `cache` is in `httpcache.py`.
const SHORTEST_INSIDE: usize = 4;

/// Times that a word in the path counts beside those in the chunk.
const IN_PATH: u8 = 2;

/// Chunks in a ranking by words: many times more than an answer has, and few enough to be sorted at once.
const RANKED: usize = 1000;

/// Constant of reciprocal rank fusion: how little the first places differ.
const FUSION: f64 = 60.0;

/// A chunk in a ranking.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub hit: Hit,
    pub hash: TextHash,
}

/// Rankings that [`fuse`] puts together, each best first.
#[derive(Clone, Debug, Default)]
pub struct RankedBy {
    pub words: Vec<Candidate>,
    pub meaning: Vec<Candidate>,
}

/// The measure of BM25 for texts of a kind.
struct Scale {
    /// Of each word of the question.
    weights: Vec<f64>,
    /// The number of words of a text.
    average: f64,
    /// The score that no text exceeds.
    best: f64,
}

impl Scale {
    /// For `total` texts with `length` words in all, of which so many are `holding` each word of the question.
    fn of(holding: &[usize], total: usize, length: u64) -> Self {
        let weight = |it: &usize| (1.0 + (total as f64 - *it as f64 + 0.5) / (*it as f64 + 0.5)).ln();
        let weights: Vec<f64> = holding.iter().map(weight).collect();
        Self {
            best: weights.iter().map(|it| it * (SATURATION + 1.0)).sum(),
            average: length as f64 / total as f64,
            weights,
        }
    }

    /// The score of a text of this length in which the words occur so often, from nought to one.
    fn score(&self, counts: impl Iterator<Item = u32>, length: u64) -> f64 {
        let spread = SATURATION * (1.0 - LENGTH + LENGTH * length as f64 / self.average);
        let parts = self.weights.iter().zip(counts).map(|(weight, count)| {
            let count = f64::from(count);
            weight * count * (SATURATION + 1.0) / (count + spread)
        });
        parts.sum::<f64>() / self.best
    }
}

/// A file with the words of the question.
struct Whole {
    file: usize,
    counts: Vec<u32>,
    length: u64,
}

impl Whole {
    fn of(file: usize, in_path: &[u8]) -> Self {
        Self {
            file,
            counts: in_path.iter().map(|it| u32::from(*it)).collect(),
            length: 0,
        }
    }

    /// Adds a chunk, whose counts hold those of the path.
    fn add(&mut self, counts: &[u8], in_path: &[u8]) {
        for ((all, count), path) in self.counts.iter_mut().zip(counts).zip(in_path) {
            *all += u32::from(count.saturating_sub(*path));
        }
    }
}

/// All files, and of those that hold a word of the question how often they do.
#[derive(Default)]
struct Wholes {
    found: Vec<Whole>,
    total: usize,
    length: u64,
}

impl Wholes {
    fn add(&mut self, whole: Whole) {
        self.total += 1;
        self.length += whole.length;
        if whole.counts.iter().any(|it| *it > 0) {
            self.found.push(whole);
        }
    }

    /// The scores of the files.
    fn scores(self, words: usize) -> HashMap<usize, f64> {
        let mut holding = vec![0; words];
        for whole in &self.found {
            for (holding, count) in holding.iter_mut().zip(&whole.counts) {
                *holding += usize::from(*count > 0);
            }
        }
        let scale = Scale::of(&holding, self.total, self.length);
        let score = |it: Whole| (it.file, scale.score(it.counts.into_iter(), it.length));
        self.found.into_iter().map(score).collect()
    }
}

impl Survey<'_> {
    /// The chunks that share words with `question`, best first and at most a thousand: BM25 of the chunk, and half as much of its file,
    /// so that a rare word by the way does not win over a file that is about the question.
    pub fn by_words(&self, question: &str) -> Vec<Candidate> {
        let asked = word::asked(question);
        if asked.is_empty() {
            return Vec::new();
        }
        let mut total = 0_usize;
        let mut length = 0_u64;
        let mut holding = vec![0_usize; asked.len()];
        // The counts of all chunks that were found stand in one list.
        let (mut found, mut counts) = (Vec::new(), Vec::new());
        let mut wholes = Wholes::default();
        for (file, entry) in self.entries.iter().enumerate() {
            let shown = self.files.get(file).map(|it: &File| it.shown.to_lowercase());
            let path = shown.unwrap_or_default();
            let is_inside = |it: &word::AskedWord| it.stem.len() >= SHORTEST_INSIDE && path.contains(&it.stem);
            let in_path: Vec<u8> = asked.iter().map(|it| IN_PATH * u8::from(is_inside(it))).collect();
            let mut whole = Whole::of(file, &in_path);
            for chunk in entry.iter().flat_map(|it| it.parts.chunks.iter()) {
                total += 1;
                length += u64::from(chunk.words.length);
                whole.length += u64::from(chunk.words.length);
                let words = asked.iter().zip(&in_path);
                let start = counts.len();
                counts.extend(words.map(|(it, more)| chunk.words.count(it.hash).saturating_add(*more)));
                let own = counts.get(start..).unwrap_or_default();
                if own.iter().all(|it| *it == 0) {
                    counts.truncate(start);
                    continue;
                }
                for (holding, count) in holding.iter_mut().zip(own) {
                    *holding += usize::from(*count > 0);
                }
                whole.add(own, &in_path);
                let is_aside = chunk.is_aside || entry.as_ref().is_some_and(|it| it.is_aside);
                found.push((file, chunk, is_aside));
            }
            wholes.add(whole);
        }
        if found.is_empty() {
            return Vec::new();
        }
        let scale = Scale::of(&holding, total, length);
        let of_files = wholes.scores(asked.len());
        let aside = if is_about_asides(question) { 1.0 } else { ASIDE };
        let counted = found.into_iter().zip(counts.chunks_exact(asked.len()));
        let candidates = counted.map(|((file, chunk, is_aside), counts)| {
            let own = scale.score(counts.iter().map(|it| u32::from(*it)), chunk.words.length.into());
            let score = (own + WHOLE * of_files.get(&file).copied().unwrap_or_default()) / (1.0 + WHOLE);
            Candidate {
                hit: Hit {
                    file,
                    lines: chunk.first as usize..=chunk.last as usize,
                    score: score * if is_aside { aside } else { 1.0 },
                },
                hash: chunk.hash,
            }
        });
        let mut candidates = candidates.collect();
        keep_best(&mut candidates, RANKED);
        sorted(candidates)
    }

    /// The chunks whose texts `similarity` knows, best first, at most `most`. It gives the cosine to the question, from -1 to 1.
    pub fn by_meaning(
        &self,
        question: &str,
        most: usize,
        mut similarity: impl FnMut(&TextHash) -> Option<f32>,
    ) -> Vec<Candidate> {
        let aside = if is_about_asides(question) { 1.0 } else { ASIDE };
        let mut candidates = Vec::new();
        // The score of the last one that is kept: the rest of a large workspace is not even gathered.
        let mut least = f64::NEG_INFINITY;
        for (file, entry) in self.entries.iter().enumerate() {
            let Some(entry) = entry else {
                continue;
            };
            for chunk in &entry.parts.chunks {
                let Some(cosine) = similarity(&chunk.hash) else {
                    continue;
                };
                let factor = if chunk.is_aside || entry.is_aside { aside } else { 1.0 };
                let score = f64::from(cosine) * factor;
                if score < least {
                    continue;
                }
                candidates.push(Candidate {
                    hit: Hit {
                        file,
                        lines: chunk.first as usize..=chunk.last as usize,
                        score,
                    },
                    hash: chunk.hash,
                });
                if candidates.len() >= 8 * most.max(1) {
                    least = keep_best(&mut candidates, most);
                }
            }
        }
        keep_best(&mut candidates, most);
        sorted(candidates)
    }
}

impl Survey<'_> {
    /// The chunks that are not among `ranked`, in the order of the files: code first, then tests and documentation.
    pub fn others(&self, ranked: &[Candidate]) -> impl Iterator<Item = Candidate> {
        let known: HashSet<(usize, usize)> = ranked.iter().map(|it| (it.hit.file, *it.hit.lines.start())).collect();
        let all = |is_aside: bool| {
            let entries = self.entries.iter().enumerate();
            entries.flat_map(move |(file, entry)| {
                let chunks = entry
                    .iter()
                    .flat_map(|it| it.parts.chunks.iter().map(move |chunk| (it.is_aside, chunk)));
                let wanted = chunks.filter(move |(file, chunk)| (*file || chunk.is_aside) == is_aside);
                wanted.map(move |(_, chunk)| Candidate {
                    hit: Hit {
                        file,
                        lines: chunk.first as usize..=chunk.last as usize,
                        score: 0.0,
                    },
                    hash: chunk.hash,
                })
            })
        };
        all(false)
            .chain(all(true))
            .filter(move |it| !known.contains(&(it.hit.file, *it.hit.lines.start())))
    }
}

/// Drops all but the best `most`. Returns the score below which nothing is among them.
fn keep_best(candidates: &mut Vec<Candidate>, most: usize) -> f64 {
    if candidates.len() <= most {
        return f64::NEG_INFINITY;
    }
    let (_, last, _) = candidates.select_nth_unstable_by(most, better);
    let least = last.hit.score;
    candidates.truncate(most);
    least
}

/// Best first; equal ones in the order of the files.
fn sorted(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    candidates.sort_unstable_by(better);
    candidates
}

fn better(left: &Candidate, right: &Candidate) -> std::cmp::Ordering {
    let (left, right) = (&left.hit, &right.hit);
    let order = right.score.total_cmp(&left.score);
    order.then_with(|| (left.file, left.lines.start()).cmp(&(right.file, right.lines.start())))
}

/// One ranking of two: a chunk's score is the sum of its reciprocal ranks, from nought to one.
///
/// A chunk that one ranking lacks gets nothing from it. Equal texts at two places are two chunks.
pub fn fuse(ranked: &RankedBy) -> Vec<Candidate> {
    let mut sums: HashMap<(usize, usize), (Candidate, f64)> = HashMap::new();
    for list in [&ranked.words, &ranked.meaning] {
        for (rank, candidate) in list.iter().enumerate() {
            let place = (candidate.hit.file, *candidate.hit.lines.start());
            let (_, sum) = sums.entry(place).or_insert_with(|| (candidate.clone(), 0.0));
            *sum += (FUSION + 1.0) / (FUSION + 1.0 + rank as f64) / 2.0;
        }
    }
    let fused = sums.into_values().map(|(mut candidate, sum)| {
        candidate.hit.score = sum;
        candidate
    });
    sorted(fused.collect())
}

/// The hits of an answer, of candidates that are given best first: the best of each file until there are enough different
/// files, then more of the same ones.
pub fn choose(candidates: Vec<Candidate>, most: usize) -> Vec<Hit> {
    let mut per_file: HashMap<usize, usize> = HashMap::new();
    let nth: Vec<usize> = candidates
        .iter()
        .map(|it| {
            let count = per_file.entry(it.hit.file).or_default();
            *count += 1;
            *count
        })
        .collect();
    let is_first = |at: &usize| nth[*at] == 1;
    let is_more = |at: &usize| (2..=MOST_PER_FILE).contains(&nth[*at]);
    let places = 0..candidates.len();
    let firsts = places.clone().filter(is_first);
    let mut kept: Vec<usize> = firsts.clone().take(DIFFERENT_FILES.min(most)).collect();
    let mut rest: Vec<usize> = places.filter(is_more).chain(firsts.skip(kept.len())).collect();
    rest.sort_unstable();
    kept.extend(rest.into_iter().take(most - kept.len()));
    kept.sort_unstable();
    let mut candidates: Vec<Option<Candidate>> = candidates.into_iter().map(Some).collect();
    kept.into_iter()
        .filter_map(|at| candidates[at].take())
        .map(|it| it.hit)
        .collect()
}
