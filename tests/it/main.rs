#![allow(
    clippy::disallowed_methods,
    clippy::string_slice,
    clippy::type_complexity,
    reason = "tests make files and run commands as they like; a slice that is wrong is a test that fails"
)]

mod agent;
mod apply;
mod approval;
mod asking;
#[cfg(target_os = "linux")]
mod attack;
#[cfg(target_os = "linux")]
mod background;
mod bench;
mod browser;
mod command_line;
mod commit;
mod conform;
mod dialogue;
mod disk;
mod documents;
mod edits;
mod effects;
mod equivalence;
mod extensions;
mod flags;
mod floors;
mod fuzzed;
mod guard;
mod headless;
mod i18n;
mod index;
mod inline;
mod journal;
mod keys;
mod killed;
mod login;
mod lsp;
mod manpages;
mod mcp;
mod memory;
mod merge;
mod mock_model;
mod model;
mod plain;
mod plugins;
mod print;
mod protocol;
mod pty;
mod screen;
mod serve;
mod served;
mod sessions;
mod settings;
mod source;
mod structure;
mod test_app;
mod tmux;
mod told;
mod tour;
mod trust;
mod undo;
mod unread;
mod verbatim;

/// Says that a test could not be made here, and why: past the capture of a test's output, which would swallow it.
fn skipped(why: &str) {
    use std::io::Write as _;
    writeln!(std::io::stderr(), "\nSKIPPED: {why}").ok();
}

/// Prints a text past the capture of a test's output.
fn say(text: &str) {
    use std::io::Write as _;
    std::io::stderr().write_all(text.as_bytes()).ok();
}

/// Waits until something is so; never longer than a test that fails.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed() < pty::LIMIT, "it never came about that {what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// The tests' own folder outside `/tmp`, which a sandbox covers. `SHEAF_TEST_FOLDER` names another one, for a user who may not write
/// in the target folder.
fn scratch() -> std::path::PathBuf {
    std::env::var_os("SHEAF_TEST_FOLDER").map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), Into::into)
}
