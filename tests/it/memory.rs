//! Hostile text takes time or colours, and never the memory of the machine.
//!
//! The work is done by this program once more, in a child that may have so much and no more: what asks for more than that
//! is ended, and seen here.

use std::{io::Write as _, process::Command};

use sheaf::text::{NoColours, ansi::Output, code_lines, diff, markdown::Flow};

/// Set for the child.
const IS_CHILD: &str = "SHEAF_TEST_WITHIN_BOUNDS";
/// Of addresses, which is more than what is used: each thread of the system's memory takes 64 MiB of them.
const MOST_KIB: u64 = 3 << 20;

/// What grammars, parsers and emulators were seen to stumble over, at a size that a model or a file can have.
fn hostile() -> Vec<(&'static str, Box<dyn Fn() -> usize>)> {
    // Svelte's grammar pushes and pops for ever over the first one.
    let soup = "? typename//^!#' '''var{foo=beginfunction ?>| ~ ]async </script>\t>#{ enum =end {?end  <a href=</script>\
                begin //! +</a>|typename] ]:: {<style>from*!]<?php ...</a>;(>3.14type< =end \\\n";
    let code = |language: &'static str, source: String| move || code_lines(language, &source).len();
    let markdown = |source: String| {
        move || {
            let mut rows = Vec::new();
            Flow::new(1).update(&source, true, 100, &NoColours, &mut rows);
            rows.len()
        }
    };
    let lines = |word: &str| (0..60_000).map(|it| format!("{word} {it}\n")).collect::<String>();
    let (old, new) = (lines("old"), lines("new"));
    vec![
        ("soup as svelte", Box::new(code("svelte", soup.repeat(3)))),
        (
            "open brackets as code",
            Box::new(code("javascript", format!("{}\n", "([{<`${".repeat(500)).repeat(100))),
        ),
        (
            "open tags as code",
            Box::new(code("html", "<a<a <script><style>{{\n".repeat(1500))),
        ),
        (
            "long lines as code",
            Box::new(code("rust", format!("{}\n", "r#\"".repeat(400_000)))),
        ),
        ("quotes in quotes", Box::new(markdown(">".repeat(300_000)))),
        (
            "lists in lists",
            Box::new(markdown(
                (0..2000).map(|it| format!("{}- x\n", " ".repeat(it % 500))).collect(),
            )),
        ),
        ("open links", Box::new(markdown("[".repeat(300_000)))),
        ("open emphasis", Box::new(markdown("*a _b ".repeat(60_000)))),
        (
            "a table of pipes",
            Box::new(markdown(format!("{0}\n{0}\n", "|-".repeat(50_000)))),
        ),
        (
            "places far away",
            Box::new(|| {
                let text = "\x1b[999999999;999999999H\x1b[999999999b\x1b[999999999L\x1b[999999999@x".repeat(20_000);
                Output::of(&text).plain().len()
            }),
        ),
        (
            "marks on one letter",
            Box::new(|| Output::of(&format!("a{}", "\u{301}".repeat(400_000))).plain().len()),
        ),
        (
            "a change of everything",
            Box::new(move || diff::diff(&old, &new, 1, 1, 3).lines.len()),
        ),
    ]
}

#[test]
fn hostile_text_stays_within_bounds_of_memory() {
    if std::env::var_os(IS_CHILD).is_some() {
        for (name, work) in hostile() {
            // What was at work when it ended is the last line.
            writeln!(std::io::stderr(), "at {name}").expect("the test can do this");
            work();
        }
        return;
    }
    let own = std::env::current_exe().expect("this program");
    let run = |most_kib: u64| {
        Command::new("/bin/sh")
            .args([
                "-c",
                "ulimit -v $1 && shift && exec \"$@\"",
                "sh",
                &most_kib.to_string(),
            ])
            .arg(&own)
            .args([
                "--exact",
                "--nocapture",
                "memory::hostile_text_stays_within_bounds_of_memory",
            ])
            .env(IS_CHILD, "1")
            .output()
            .expect("it starts")
    };
    let output = run(MOST_KIB);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?} {said}", output.status);
    // The control: with much less it does end.
    assert!(!run(100 << 10).status.success());
}
