//! Cuts a file into pieces that can be shown by themselves: whole items of its language, else some lines.
//!
//! What stands above an item (comments, attributes) belongs to it. An item that is too long is cut into what it is made of,
//! and those pieces know the first line of what they were cut from; neighbours that say little by themselves stay together.

use std::{
    ops::ControlFlow,
    path::Path,
    time::{Duration, Instant},
};

use tree_sitter::{Node, ParseOptions, Parser, Tree};

use super::{IsOver, grammar};

/// An item with more lines is cut.
const MOST_LINES: usize = 60;
/// Lines of a chunk where there is nothing to go by.
const PLAIN_LINES: usize = 40;
/// A piece with fewer lines joins its neighbour, up to [`PLAIN_LINES`].
const SMALL_LINES: usize = 8;
/// Sound code of the longest kind is read in a thirtieth of this, so that a busy machine cuts it alike. What takes longer is hostile,
/// and cut by lines.
const LONGEST_PARSE: Duration = Duration::from_secs(1);
/// Pieces inside of pieces; beyond it, lines are counted.
const DEEPEST: usize = 12;

/// A piece of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkText<'a> {
    /// Lines from 1, inclusive.
    pub first: u32,
    pub last: u32,
    pub text: &'a str,
    /// The first lines of the items around it, from the outside in.
    pub above: Vec<&'a str>,
    pub is_test: bool,
}

/// Cuts one file after the other.
#[derive(Default)]
pub struct Cutter {
    parsers: Vec<(usize, Parser)>,
}

impl Cutter {
    /// The pieces of a file, first to last; together they are all of its lines. `None` when it was broken off.
    pub fn cut<'a>(&mut self, path: &Path, text: &'a str, is_over: IsOver<'_>) -> Option<Vec<ChunkText<'a>>> {
        self.read(path, text, is_over).map(|it| it.0)
    }

    /// The same with the syntax tree of the file, if its language is known and it was read in time.
    pub(super) fn read<'a>(
        &mut self,
        path: &Path,
        text: &'a str,
        is_over: IsOver<'_>,
    ) -> Option<(Vec<ChunkText<'a>>, Option<Tree>)> {
        let lines = Lines::new(text);
        if lines.starts.is_empty() {
            return Some((Vec::new(), None));
        }
        let tree = match grammar::of(path) {
            Some(language) => self.parse(language, text, is_over),
            None => None,
        };
        if is_over() {
            return None;
        }
        let mut pieces = Vec::new();
        match &tree {
            Some(tree) => items(
                tree.root_node(),
                0..lines.count(),
                &lines,
                &mut Vec::new(),
                false,
                &mut pieces,
            ),
            None => windows(0..lines.count(), &[], false, &mut pieces),
        }
        let pieces = join(pieces).into_iter().filter_map(|it| it.part(&lines)).collect();
        Some((pieces, tree))
    }

    fn parse(&mut self, language: usize, text: &str, is_over: IsOver<'_>) -> Option<Tree> {
        if !self.parsers.iter().any(|(it, _)| *it == language) {
            let mut parser = Parser::new();
            parser.set_language(&grammar::language(language)?).ok()?;
            self.parsers.push((language, parser));
        }
        let (_, parser) = self.parsers.iter_mut().find(|(it, _)| *it == language)?;
        let end = Instant::now() + LONGEST_PARSE;
        let mut stop = |_: &tree_sitter::ParseState| {
            if is_over() || Instant::now() >= end {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let bytes = text.as_bytes();
        let mut input = |at: usize, _| bytes.get(at..).unwrap_or_default();
        let tree = parser.parse_with_options(&mut input, None, Some(ParseOptions::new().progress_callback(&mut stop)));
        if tree.is_none() {
            parser.reset();
        }
        tree
    }
}

/// Offsets of a text's lines.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let mut starts = vec![0];
        starts.extend(
            text.bytes()
                .enumerate()
                .filter(|(_, it)| *it == b'\n')
                .map(|(at, _)| at + 1),
        );
        // What follows the last line break is a line only when there is something.
        starts.pop_if(|it| *it == text.len());
        Self { text, starts }
    }

    fn count(&self) -> usize {
        self.starts.len()
    }

    fn range(&self, lines: std::ops::Range<usize>) -> &'a str {
        let start = self.starts.get(lines.start).copied().unwrap_or(self.text.len());
        let end = self.starts.get(lines.end).copied().unwrap_or(self.text.len());
        self.text.get(start..end).unwrap_or_default()
    }

    fn is_blank(&self, line: usize) -> bool {
        self.range(line..line + 1).trim().is_empty()
    }
}

/// Lines that stay together, from nought, the end excluded.
#[derive(Clone, Debug)]
struct ChunkSpan {
    lines: std::ops::Range<usize>,
    /// The lines on which the items around it begin.
    above: Vec<usize>,
    is_test: bool,
}

impl ChunkSpan {
    fn part<'a>(self, lines: &Lines<'a>) -> Option<ChunkText<'a>> {
        let mut range = self.lines;
        while range.start < range.end && lines.is_blank(range.start) {
            range.start += 1;
        }
        while range.start < range.end && lines.is_blank(range.end - 1) {
            range.end -= 1;
        }
        let text = lines.range(range.clone());
        (!text.is_empty()).then(|| ChunkText {
            first: range.start as u32 + 1,
            last: range.end as u32,
            text,
            above: self.above.iter().map(|it| lines.range(*it..*it + 1)).collect(),
            is_test: self.is_test,
        })
    }
}

/// Adds the pieces of the `range` of lines, cut where the children of a node begin.
fn items(
    node: Node<'_>,
    range: std::ops::Range<usize>,
    lines: &Lines<'_>,
    above: &mut Vec<usize>,
    is_test: bool,
    pieces: &mut Vec<ChunkSpan>,
) {
    let children = outline(node, &range, lines);
    if above.len() >= DEEPEST || children.is_empty() {
        windows(range, above, is_test, pieces);
        return;
    }
    let mut at = range.start;
    // What stands in front of the first child: the head of the node.
    let first = children.first().map_or(range.end, |(start, _)| *start);
    if first > at {
        windows(at..first, above, is_test, pieces);
        at = first;
    }
    for (index, (_, child)) in children.iter().enumerate() {
        let end = children.get(index + 1).map_or(range.end, |(start, _)| *start);
        let own = at..end;
        at = end;
        let is_test = is_test || is_test_module(*child, lines);
        if own.len() <= MOST_LINES {
            pieces.push(ChunkSpan {
                lines: own,
                above: above.clone(),
                is_test,
            });
            continue;
        }
        let head = child.start_position().row;
        above.push(head);
        items(*child, own, lines, above, is_test, pieces);
        above.pop();
    }
}

/// The lines at which the pieces of a node begin, with the child that each is of. Comments and attributes go with what
/// follows them.
fn outline<'a>(node: Node<'a>, range: &std::ops::Range<usize>, lines: &Lines<'_>) -> Vec<(usize, Node<'a>)> {
    let mut node = node;
    // A body that is all there is between the braces is not a piece: its parts are.
    loop {
        let mut cursor = node.walk();
        let inside = node
            .named_children(&mut cursor)
            .filter(|it| it.end_position().row > it.start_position().row);
        let big: Vec<_> = inside
            .filter(|it| it.end_position().row - it.start_position().row >= MOST_LINES)
            .collect();
        match big.as_slice() {
            [only] if only.start_position().row <= range.start + 3 && node.parent().is_some() => node = *only,
            _ => break,
        }
    }
    let mut found: Vec<(usize, Node<'a>)> = Vec::new();
    let mut lead: Option<usize> = None;
    let mut cursor = node.walk();
    for child in node.named_children(&mut cursor) {
        let row = child.start_position().row;
        if row < range.start || row >= range.end {
            continue;
        }
        if is_lead(child) && lines.range(row..row + 1).trim_start().len() == rest_of_line(child, lines) {
            // A blank line parts a comment from what follows.
            let is_apart = lead.is_none() || row > 0 && lines.is_blank(row - 1);
            if is_apart {
                lead = Some(row);
            }
            continue;
        }
        let start = lead.take().unwrap_or(row).max(range.start);
        if found.last().is_none_or(|(last, _)| start > *last) {
            found.push((start, child));
        } else if let Some((_, known)) = found.last_mut()
            && child.end_position().row > known.end_position().row
        {
            // Of several on one line, the one that goes on.
            *known = child;
        }
    }
    found
}

/// Bytes from the start of a node to the end of its line.
fn rest_of_line(node: Node<'_>, lines: &Lines<'_>) -> usize {
    let row = node.start_position().row;
    lines
        .range(row..row + 1)
        .len()
        .saturating_sub(node.start_position().column)
}

/// Returns true if the node belongs to the item below it.
fn is_lead(node: Node<'_>) -> bool {
    let kind = node.kind();
    kind.contains("comment")
        || matches!(
            kind,
            "attribute_item" | "decorator" | "annotation" | "marker_annotation"
        )
}

/// `mod tests` of Rust.
fn is_test_module(node: Node<'_>, lines: &Lines<'_>) -> bool {
    if node.kind() != "mod_item" {
        return false;
    }
    let name = node.child_by_field_name("name");
    let name = name.and_then(|it| lines.text.get(it.byte_range()));
    matches!(name, Some("tests" | "test"))
}

/// Pieces of equal length.
fn windows(range: std::ops::Range<usize>, above: &[usize], is_test: bool, pieces: &mut Vec<ChunkSpan>) {
    let mut at = range.start;
    while at < range.end {
        // Not a last one of a few lines.
        let left = range.end - at;
        let take = if left <= PLAIN_LINES + SMALL_LINES {
            left
        } else {
            PLAIN_LINES
        };
        pieces.push(ChunkSpan {
            lines: at..at + take,
            above: above.to_vec(),
            is_test,
        });
        at += take;
    }
}

/// Joins small neighbours of the same item.
fn join(pieces: Vec<ChunkSpan>) -> Vec<ChunkSpan> {
    let mut joined: Vec<ChunkSpan> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match joined.last_mut() {
            Some(last)
                if last.above == piece.above
                    && last.is_test == piece.is_test
                    && (last.lines.len() < SMALL_LINES || piece.lines.len() < SMALL_LINES)
                    && last.lines.len() + piece.lines.len() <= PLAIN_LINES =>
            {
                last.lines.end = piece.lines.end;
            }
            _ => joined.push(piece),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut<'a>(name: &str, text: &'a str) -> Vec<ChunkText<'a>> {
        Cutter::default()
            .cut(Path::new(name), text, &|| false)
            .expect("nobody stops it")
    }

    /// `first-last` of each chunk, with `t` for tests and the lines above in brackets.
    fn shape(name: &str, text: &str) -> String {
        let parts = cut(name, text).into_iter().map(|it| {
            let above: Vec<_> = it.above.iter().map(|it| it.trim()).collect();
            let above = if above.is_empty() {
                String::new()
            } else {
                format!("({})", above.join(" > "))
            };
            format!("{}-{}{}{above}", it.first, it.last, if it.is_test { "t" } else { "" })
        });
        parts.collect::<Vec<_>>().join(" ")
    }

    fn body(name: &str, lines: usize) -> String {
        let lines: String = (0..lines).map(|it| format!("    let {name}{it} = {it};\n")).collect();
        format!("fn {name}() {{\n{lines}}}\n")
    }

    #[test]
    fn items_stay_whole_and_small_ones_stay_together() {
        let text = format!(
            "use a;\nuse b;\n\n/// About one.\n#[inline]\n{}\n{}",
            body("one", 20),
            body("two", 30)
        );
        // Two imports and a function; a function.
        assert_eq!(shape("a.rs", &text), "1-27 29-60");
        let text = format!(
            "struct A;\nstruct B;\n\n// Apart.\n\n/// With C.\nstruct C;\n{}",
            body("long", 50)
        );
        assert_eq!(shape("a.rs", &text), "1-7 8-59");
    }

    #[test]
    fn long_items_are_cut_into_what_they_are_made_of() {
        let methods: String = ["one", "two", "three"].iter().map(|it| body(it, 28) + "\n").collect();
        let text = format!("use x;\n\nimpl Cart {{\n{methods}}}\n");
        assert_eq!(
            shape("cart.rs", &text),
            "1-1 3-33(impl Cart {) 35-64(impl Cart {) 66-97(impl Cart {)"
        );
        let text = format!("#[cfg(test)]\nmod tests {{\n{methods}}}\n");
        assert_eq!(
            shape("cart.rs", &text),
            "1-32t(mod tests {) 34-63t(mod tests {) 65-96t(mod tests {)"
        );
    }

    #[test]
    fn other_files_are_cut_by_lines() {
        let text = "x\n".repeat(100);
        assert_eq!(shape("a.txt", &text), "1-40 41-80 81-100");
        assert_eq!(shape("a.txt", &"x\n".repeat(48)), "1-48");
        assert_eq!(shape("a.json", "{}"), "1-1");
        assert_eq!(shape("a.rs", ""), "");
        assert_eq!(shape("a.txt", "\n\n\n"), "");
        assert_eq!(shape("a.txt", "\n\nx\n\n"), "3-3");
    }

    /// Every language has names for its items.
    #[test]
    fn every_language_is_known() {
        let fill = |line: &str| line.repeat(30);
        for (name, text) in [
            (
                "a.py",
                format!(
                    "class A:\n    def f(self):\n{}\n    def g(self):\n{}",
                    fill("        x = 1\n"),
                    fill("        y = 1\n")
                ),
            ),
            (
                "a.js",
                format!(
                    "class A {{\n  f() {{\n{}  }}\n  g() {{\n{}  }}\n}}\n",
                    fill("    x();\n"),
                    fill("    y();\n")
                ),
            ),
            (
                "a.ts",
                format!(
                    "class A {{\n  f(): void {{\n{}  }}\n  g(): void {{\n{}  }}\n}}\n",
                    fill("    x();\n"),
                    fill("    y();\n")
                ),
            ),
            (
                "a.tsx",
                format!(
                    "function A() {{\n{}}}\nconst B = () => {{\n{}}};\n",
                    fill("  x();\n"),
                    fill("  y();\n")
                ),
            ),
            (
                "a.go",
                format!(
                    "package a\n\nfunc f() {{\n{}}}\n\nfunc g() {{\n{}}}\n",
                    fill("\tx()\n"),
                    fill("\ty()\n")
                ),
            ),
            (
                "a.c",
                format!(
                    "int f(void) {{\n{}}}\n\nint g(void) {{\n{}}}\n",
                    fill("  x();\n"),
                    fill("  y();\n")
                ),
            ),
            (
                "a.cpp",
                format!(
                    "class A {{\n  void f() {{\n{}  }}\n  void g() {{\n{}  }}\n}};\n",
                    fill("    x();\n"),
                    fill("    y();\n")
                ),
            ),
            (
                "A.java",
                format!(
                    "class A {{\n  void f() {{\n{}  }}\n  void g() {{\n{}  }}\n}}\n",
                    fill("    x();\n"),
                    fill("    y();\n")
                ),
            ),
            (
                "a.rb",
                format!(
                    "class A\n  def f\n{}  end\n\n  def g\n{}  end\nend\n",
                    fill("    x\n"),
                    fill("    y\n")
                ),
            ),
            (
                "a.php",
                format!(
                    "<?php\nclass A {{\n  function f() {{\n{}  }}\n  function g() {{\n{}  }}\n}}\n",
                    fill("    x();\n"),
                    fill("    y();\n")
                ),
            ),
            (
                "a.sh",
                format!("f() {{\n{}}}\n\ng() {{\n{}}}\n", fill("  x\n"), fill("  y\n")),
            ),
        ] {
            let parts = cut(name, &text);
            let holds =
                |it: &ChunkText<'_>, word: char| it.text.lines().filter(|it| it.trim().starts_with(word)).count();
            let whole = |word: char| parts.iter().any(|it| holds(it, word) >= 30);
            assert!(whole('x') && whole('y'), "{name}: {}", shape(name, &text));
            assert!(
                !parts.iter().any(|it| holds(it, 'x') > 0 && holds(it, 'y') > 0),
                "{name}: {}",
                shape(name, &text)
            );
        }
    }

    #[test]
    fn hostile_files_are_cut_too() {
        for text in [
            "(".repeat(200_000),
            "fn f() {\n".repeat(20_000),
            "/*".repeat(100_000),
            "\u{feff}mod a {\r\n\r\n}\r\n".repeat(2000),
            format!("{}x", "[\n".repeat(50_000)),
        ] {
            for name in ["a.rs", "a.js", "a.py", "a.cpp", "a.sh"] {
                assert!(!cut(name, &text).is_empty());
            }
        }
    }

    #[test]
    fn a_cut_can_be_broken_off() {
        assert_eq!(Cutter::default().cut(Path::new("a.rs"), "fn f() {}", &|| true), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn every_line_is_in_one_chunk(
            lines in proptest::collection::vec("(fn [a-z]+\\(\\) \\{|\\}|    let x = 1;|// [a-z ]+|#\\[test\\]|mod tests \\{||impl A \\{|\u{df}+)", 0..200),
            name in prop_oneof![Just("a.rs"), Just("a.py"), Just("a.ts"), Just("a.txt"), Just("a.cpp")],
        ) {
            let text = lines.join("\n");
            let parts = cut(name, &text);
            let mut at = 0;
            for part in &parts {
                prop_assert!(part.first as usize > at, "{} after {at}", part.first);
                prop_assert!(part.last - part.first < MOST_LINES as u32);
                let between = &lines[at..part.first as usize - 1];
                prop_assert!(between.iter().all(|it| it.trim().is_empty()), "a line after {at} is nowhere");
                let own = lines[part.first as usize - 1..part.last as usize].join("\n");
                prop_assert_eq!(part.text.trim_end_matches('\n'), own.trim_end_matches('\n'));
                at = part.last as usize;
            }
            prop_assert!(lines[at.min(lines.len())..].iter().all(|it| it.trim().is_empty()));
        }
    }
}
