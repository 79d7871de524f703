//! What fuzzing tries, tried again with what it once found interesting: `fuzz/corpus`, a folder for each target.
//!
//! A target is a function from bytes to nothing that panics when a promise is broken. cargo-fuzz feeds it at random, outside
//! of CI; here it is fed the corpus, which holds every finding of the past. With `SHEAF_FUZZ_SECONDS=600` it is also fed what
//! random changes make of the corpus, for so long: no match for cargo-fuzz, and it needs nothing but the test.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

mod decoder;
mod merge;
mod sanitiser;
mod segmenter;
mod shell;

fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|it| it.expect("a file").path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    let mut corpus = Vec::new();
    for file in files {
        let bytes = fs::read(&file).expect("a file");
        let outcome = std::panic::catch_unwind(|| check(&bytes));
        assert!(outcome.is_ok(), "{}", file.display());
        corpus.push(bytes);
    }
    let seconds = std::env::var("SHEAF_FUZZ_SECONDS").ok().and_then(|it| it.parse().ok());
    if let Some(seconds) = seconds {
        change(target, &corpus, check, Duration::from_secs(seconds));
    }
}

/// Feeds what random changes make of the corpus; what breaks a promise is written beside it, to be kept.
fn change(target: &str, corpus: &[Vec<u8>], check: fn(&[u8]), time: Duration) {
    let began = Instant::now();
    let mut chance = Chance(began.elapsed().subsec_nanos().into());
    chance.0 ^= u64::from(std::process::id()) << 32 | 0x9e37_79b9;
    let mut tries = 0_u64;
    while began.elapsed() < time {
        let bytes = chance.mutant(corpus);
        tries += 1;
        if std::panic::catch_unwind(|| check(&bytes)).is_err() {
            let path = crate::scratch().join(format!("{target}-{tries}"));
            fs::write(&path, &bytes).expect("written");
            panic!(
                "{} after {tries} tries: {:?}",
                path.display(),
                String::from_utf8_lossy(&bytes)
            );
        }
    }
    #[expect(clippy::print_stderr, reason = "how much was tried is worth knowing")]
    {
        eprintln!("{target} stood {tries} random inputs");
    }
}

/// A small source of random numbers.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).expect("below a length")
    }

    fn part<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (one, other) = (self.below(bytes.len() + 1), self.below(bytes.len() + 1));
        &bytes[one.min(other)..one.max(other)]
    }

    fn mutant(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        const WORDS: [&[u8]; 12] = [
            b"\n",
            b"\r",
            b"\x1b[",
            b"```",
            b"\"",
            b"{",
            b"}",
            b"\\",
            b"\xe2\x80\xae",
            b"\xc2\x9b",
            b"$(",
            b"// ... existing code ...\n",
        ];
        let mut bytes = corpus[self.below(corpus.len())].clone();
        for _ in 0..=self.below(8) {
            let at = self.below(bytes.len() + 1);
            match self.below(6) {
                0 if at < bytes.len() => bytes[at] = self.next() as u8,
                1 => {
                    let end = (at + self.below(16)).min(bytes.len());
                    bytes.drain(at..end);
                }
                2 => {
                    let other = &corpus[self.below(corpus.len())];
                    let part = self.part(other).to_vec();
                    bytes.splice(at..at, part);
                }
                3 => {
                    let part = self.part(&bytes).to_vec();
                    bytes.splice(at..at, part);
                }
                4 => bytes.truncate(at.max(1)),
                _ => {
                    let word = WORDS[self.below(WORDS.len())];
                    bytes.splice(at..at, word.iter().copied());
                }
            }
            bytes.truncate(16 << 10);
        }
        bytes
    }
}

#[test]
fn the_decoder_stands_its_corpus() {
    replay("decoder", decoder::check);
}

#[test]
fn the_segmenter_stands_its_corpus() {
    replay("segmenter", segmenter::check);
}

#[test]
fn the_sanitiser_stands_its_corpus() {
    replay("sanitiser", sanitiser::check);
}

#[test]
fn the_reader_of_shell_lines_stands_its_corpus() {
    replay("shell", shell::check);
}

#[test]
fn the_merge_of_edits_stands_its_corpus() {
    replay("merge", merge::check);
}
