//! What fuzzing tries, tried again with what it once found interesting: `fuzz/corpus`, a folder for each target.
//!
//! A target is a function from bytes to nothing that panics when a promise is broken. cargo-fuzz feeds it at random, outside
//! of CI; here it is fed the corpus, which holds every finding of the past.

use std::{fs, path::Path};

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
    for file in files {
        let bytes = fs::read(&file).expect("a file");
        let outcome = std::panic::catch_unwind(|| check(&bytes));
        assert!(outcome.is_ok(), "{}", file.display());
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
