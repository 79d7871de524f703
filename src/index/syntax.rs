//! Errors of syntax, counted: whether a change broke a file that was whole.

use std::{
    ops::ControlFlow,
    path::Path,
    time::{Duration, Instant},
};

use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

use super::grammar;

/// Sound code of the longest kind is read in a part of this. Of what takes longer nothing is said.
const LONGEST_PARSE: Duration = Duration::from_millis(500);

/// Places in a file that its grammar cannot read; `None` where there is no grammar, or no answer in time.
pub fn errors(path: &Path, text: &str) -> Option<usize> {
    let language = grammar::language(grammar::of(path)?)?;
    let mut parser = Parser::new();
    parser.set_language(&language).ok()?;
    let end = Instant::now() + LONGEST_PARSE;
    let mut stop = |_: &ParseState| {
        if Instant::now() >= end {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let bytes = text.as_bytes();
    let mut input = |at: usize, _| bytes.get(at..).unwrap_or_default();
    let tree = parser.parse_with_options(&mut input, None, Some(ParseOptions::new().progress_callback(&mut stop)))?;
    Some(count(&tree))
}

fn count(tree: &Tree) -> usize {
    let mut cursor = tree.walk();
    let mut count = 0;
    loop {
        let node = cursor.node();
        let is_error = node.is_error() || node.is_missing();
        count += usize::from(is_error);
        // What stands inside of an error is part of it.
        if node.has_error() && !is_error && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return count;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_grammar_cannot_read_is_counted() {
        for (path, text, wants) in [
            ("a.rs", "fn a() { 1 }\n", Some(0)),
            ("a.rs", "", Some(0)),
            ("a.rs", "fn a() { if x { 1 }\n", Some(1)),
            ("a.py", "def f():\n    return 1\n", Some(0)),
            ("a.py", "def f(:\n    return 1\n", Some(1)),
            ("a.txt", "fn a( {", None),
            ("a", "", None),
        ] {
            assert_eq!(errors(Path::new(path), text), wants, "{path}: {text}");
        }
        let two = "fn a() { let = 1; }\n\nfn b() {}\n\nfn c() { let = 2; }\n";
        assert!(errors(Path::new("a.rs"), two).is_some_and(|it| it >= 2));
        // Deep, and hostile: an answer or none, but no end of the program.
        let deep = "(".repeat(200_000);
        let _ = errors(Path::new("a.rs"), &deep);
    }
}
