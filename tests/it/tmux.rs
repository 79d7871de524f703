//! Inside a real tmux: keys arrive that only its extended form can carry, and a window that changes its size is drawn anew.

use std::{
    process::{Command, Output},
    time::{Duration, Instant},
};

use crate::pty::LIMIT;

/// A tmux server of its own with sheaf in its only window; it goes with this.
struct Tmux(tempfile::TempDir);

impl Tmux {
    fn open() -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let settings = "set -g extended-keys on\nset -as terminal-features 'xterm*:extkeys'\nset -g status off\n";
        std::fs::write(home.path().join("tmux.conf"), settings).expect("a file");
        let tmux = Self(home);
        let program = format!("'{}' tour --speed 0", env!("CARGO_BIN_EXE_sheaf"));
        tmux.run(&["new-session", "-d", "-x", "90", "-y", "30", &program]);
        tmux
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let home = self.0.path();
        Command::new("tmux")
            .arg("-S")
            .arg(home.join("socket"))
            .arg("-f")
            .arg(home.join("tmux.conf"))
            .args(arguments)
            .env_remove("TMUX")
            .env("HOME", home)
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .output()
            .expect("tmux runs")
    }

    fn picture(&self) -> String {
        String::from_utf8_lossy(&self.run(&["capture-pane", "-p"]).stdout).into_owned()
    }

    fn wait_for(&self, what: &str, holds: impl Fn(&str) -> bool) {
        let start = Instant::now();
        while !holds(&self.picture()) {
            assert!(start.elapsed() < LIMIT, "never: {what}\n{}", self.picture());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

#[test]
fn keys_of_tmux_arrive_and_its_sizes_are_followed() {
    if Command::new("tmux").arg("-V").output().is_err() {
        return crate::skipped("there is no tmux");
    }
    let tmux = Tmux::open();
    tmux.wait_for("the question waits", |it| it.contains("What does a code take off?"));
    tmux.run(&["send-keys", "Tab"]);
    tmux.wait_for("the draft has the focus", |it| it.contains("enter "));
    tmux.run(&["send-keys", "-l", "one"]);
    tmux.wait_for("a word", |it| it.contains("› one"));
    tmux.run(&["send-keys", "S-Enter"]);
    tmux.run(&["send-keys", "-l", "two"]);
    tmux.wait_for("a second line", |it| it.contains("› one\n   two"));
    tmux.run(&["send-keys", "C-."]);
    tmux.wait_for("the modes", |it| it.contains("reads, edits and runs commands"));
    tmux.run(&["send-keys", "Escape"]);
    tmux.wait_for("they are gone", |it| !it.contains("reads, edits and runs commands"));
    tmux.run(&["send-keys", "C-/"]);
    tmux.wait_for("a word less", |it| it.contains("› one\n") && !it.contains("two"));
    tmux.run(&["resize-window", "-x", "44", "-y", "20"]);
    tmux.wait_for("a narrow screen", |it| {
        it.contains("› one") && it.lines().all(|it| it.chars().count() <= 44) && it.lines().count() == 20
    });
}
