//! The tree of the workspace within a budget. Pure.
//!
//! Folders are opened from the root down as long as there is room; one that stays closed says what it holds. So the top
//! of the tree is always whole, and a folder with a thousand pictures costs a line.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
};

use crate::agent::tags::name;

/// Folders below this many others stay closed.
const DEPTH: usize = 12;
/// Kinds of files that are named for a closed folder.
const ENDINGS: usize = 3;
/// Room for the line that says what is missing of the root.
const MORE_BYTES: usize = 80;
/// An ending is short; what is longer is part of a name.
const ENDING_BYTES: usize = 12;

/// The style of a line of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// For a model: a dash before each name, below the root.
    List,
    /// For a gateway: two blanks a level, nothing else.
    Plain,
}

/// The tree of `files`, which are sorted by their bytes and have `/` between names: at most `limit_bytes`.
pub fn layout(files: &[Box<str>], style: Style, limit_bytes: usize) -> String {
    let root = Node {
        start: 0,
        range: 0..files.len(),
        head: String::new(),
        summary: String::new(),
        below: Below::Closed,
    };
    let mut tree = Tree {
        files,
        style,
        nodes: vec![root],
        bytes: 0,
    };
    let mut queue = tree.open_root(limit_bytes);
    // A level before the next, so that no branch takes all the room.
    while let Some((at, depth)) = queue.pop_front() {
        queue.extend(tree.open(at, depth, limit_bytes));
    }
    tree.written()
}

struct Tree<'a> {
    files: &'a [Box<str>],
    style: Style,
    nodes: Vec<Node>,
    /// The length of [`Self::written`] in bytes.
    bytes: usize,
}

struct Node {
    /// The offset in a path where names inside the folder begin.
    start: usize,
    /// Its files.
    range: Range<usize>,
    /// Its line without the end: indented, folders with a `/`.
    head: String,
    /// The summary of its contents while it is closed, after a blank.
    summary: String,
    below: Below,
}

enum Below {
    File,
    /// A folder that says only what it holds.
    Closed,
    /// Its children, and a line about those that have no room.
    Open(Range<usize>, String),
}

impl Node {
    fn is_folder(&self) -> bool {
        !matches!(self.below, Below::File)
    }

    fn bytes(&self) -> usize {
        match self.below {
            Below::Closed => self.head.len() + self.summary.len() + 1,
            Below::File | Below::Open(..) => self.head.len() + 1,
        }
    }
}

/// Folders that may be opened, and the depth of their lines.
type Queue = VecDeque<(usize, usize)>;

impl Tree<'_> {
    /// The entries directly in a folder, as lines of this depth; `None` if their names take more than `limit_bytes`.
    fn children(&self, at: usize, depth: usize, limit_bytes: usize) -> Option<Vec<Node>> {
        let node = self.nodes.get(at)?;
        let start = node.start;
        let mut children = Vec::new();
        let mut bytes = 0;
        let mut files = node.range.clone();
        while let Some(path) = self.files.get(files.clone()).and_then(<[_]>::first) {
            let rest = path.get(start..).unwrap_or_default();
            let (own, count) = match rest.find('/') {
                None => (rest, 1),
                Some(end) => {
                    let folder = rest.get(..=end).unwrap_or_default();
                    let here = self.files.get(files.clone()).unwrap_or_default();
                    let count = here.partition_point(|it| it.get(start..).is_some_and(|it| it.starts_with(folder)));
                    (folder, count.max(1))
                }
            };
            let is_folder = own.ends_with('/');
            let head = format!("{}{}", self.indent(depth), name(own));
            bytes += head.len() + 1;
            if bytes > limit_bytes {
                return None;
            }
            children.push(Node {
                start: start + own.len(),
                range: files.start..files.start + count,
                head,
                summary: String::new(),
                below: if is_folder { Below::Closed } else { Below::File },
            });
            files.start += count;
        }
        for child in children.iter_mut().filter(|it| it.is_folder()) {
            child.summary = summary(self.files.get(child.range.clone()).unwrap_or_default());
        }
        Some(children)
    }

    /// Opens the root, which may have more in it than there is room for.
    fn open_root(&mut self, limit_bytes: usize) -> Queue {
        let mut children = self.children(0, 0, usize::MAX).unwrap_or_default();
        let mut more = String::new();
        if children.iter().map(Node::bytes).sum::<usize>() > limit_bytes {
            // Folders say more of a project than files.
            children.sort_by_key(|it| !it.is_folder());
            let mut room = limit_bytes.saturating_sub(MORE_BYTES);
            let fits = |it: &Node| {
                let left = room.checked_sub(it.bytes());
                room = left.unwrap_or_default();
                left.is_some()
            };
            let kept = children.iter().map(fits).take_while(|it| *it).count();
            let rest = children.split_off(kept);
            let files: usize = rest.iter().map(|it| it.range.len()).sum();
            more = format!(
                "{}[{} more entries, {files} files in all]\n",
                self.indent(0),
                rest.len()
            );
            if more.len() > limit_bytes {
                more.clear();
            }
            children.sort_by_key(|it| it.range.start);
        }
        self.put(0, children, more, 0)
    }

    /// Opens a folder if there is room for all that is right below it.
    fn open(&mut self, at: usize, depth: usize, limit_bytes: usize) -> Queue {
        let room = limit_bytes.saturating_sub(self.bytes);
        let saved = self.nodes.get(at).map_or(0, |it| it.summary.len());
        let children = if depth < DEPTH {
            self.children(at, depth + 1, room + saved)
        } else {
            None
        };
        match children {
            Some(children) if children.iter().map(Node::bytes).sum::<usize>() <= room + saved => {
                self.bytes -= saved;
                self.put(at, children, String::new(), depth + 1)
            }
            Some(_) | None => Queue::new(),
        }
    }

    /// Puts the children of a folder into the tree.
    fn put(&mut self, at: usize, children: Vec<Node>, more: String, depth: usize) -> Queue {
        let first = self.nodes.len();
        self.bytes += more.len() + children.iter().map(Node::bytes).sum::<usize>();
        let folders = children.iter().enumerate().filter(|(_, it)| it.is_folder());
        let queue = folders.map(|(it, _)| (first + it, depth)).collect();
        self.nodes.extend(children);
        let below = first..self.nodes.len();
        if let Some(node) = self.nodes.get_mut(at) {
            node.below = Below::Open(below, more);
        }
        queue
    }

    fn indent(&self, depth: usize) -> String {
        match self.style {
            Style::List => format!("{}- ", "  ".repeat(depth + 1)),
            Style::Plain => "  ".repeat(depth),
        }
    }

    fn written(&self) -> String {
        let mut out = String::with_capacity(self.bytes);
        self.write(0, &mut out);
        out
    }

    /// Not deeper than [`DEPTH`].
    fn write(&self, at: usize, out: &mut String) {
        let Some(Below::Open(children, more)) = self.nodes.get(at).map(|it| &it.below) else {
            return;
        };
        for child in children.clone() {
            let Some(node) = self.nodes.get(child) else { continue };
            out.push_str(&node.head);
            if matches!(node.below, Below::Closed) {
                out.push_str(&node.summary);
            }
            out.push('\n');
            self.write(child, out);
        }
        out.push_str(more);
    }
}

/// The summary of a closed folder: `[152 files in subtree: 91 *.js, 40 *.css, ...]`.
fn summary(files: &[Box<str>]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for file in files {
        let own = file.rsplit('/').next().unwrap_or_default();
        let ending = own.rfind('.').filter(|it| *it > 0).and_then(|it| own.get(it + 1..));
        let is_plain =
            |it: &&str| !it.is_empty() && it.len() <= ENDING_BYTES && it.bytes().all(|it| it.is_ascii_alphanumeric());
        if let Some(ending) = ending.filter(is_plain) {
            *counts.entry(ending).or_default() += 1;
        }
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|it| std::cmp::Reverse(it.1));
    counts.truncate(ENDINGS);
    let named: usize = counts.iter().map(|it| it.1).sum();
    let mut kinds: Vec<String> = counts.iter().map(|(it, count)| format!("{count} *.{it}")).collect();
    if named < files.len() && !kinds.is_empty() {
        kinds.push("...".to_owned());
    }
    let word = if files.len() == 1 { "file" } else { "files" };
    let colon = if kinds.is_empty() { "" } else { ": " };
    format!(" [{} {word} in subtree{colon}{}]", files.len(), kinds.join(", "))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn sorted<T: AsRef<str>>(files: impl IntoIterator<Item = T>) -> Vec<Box<str>> {
        let mut files: Vec<Box<str>> = files.into_iter().map(|it| it.as_ref().into()).collect();
        files.sort_unstable();
        files
    }

    fn shop() -> Vec<Box<str>> {
        let mut files = sorted([
            "Cargo.toml",
            "src/cart.rs",
            "src/main.rs",
            "src/deep/er/a.rs",
            ".github/ci.yml",
        ]);
        files.extend((0..91).map(|it| format!("assets/p{it}.png").into()));
        files.extend((0..60).map(|it| format!("assets/icons/i{it}.svg").into()));
        files.push("assets/LICENSE".into());
        files.sort_unstable();
        files
    }

    #[test]
    fn a_tree_that_fits_is_whole() {
        let files = sorted(["Cargo.toml", "src/cart.rs", "src/deep/er/a.rs", "src/main.rs", "src.rs"]);
        assert_eq!(
            layout(&files, Style::List, 1000),
            "  - Cargo.toml\n  - src.rs\n  - src/\n    - cart.rs\n    - deep/\n      - er/\n        - a.rs\n    - main.rs\n"
        );
        assert_eq!(
            layout(&files, Style::Plain, 1000),
            "Cargo.toml\nsrc.rs\nsrc/\n  cart.rs\n  deep/\n    er/\n      a.rs\n  main.rs\n"
        );
        assert_eq!(layout(&[], Style::List, 1000), "");
    }

    #[test]
    fn a_folder_that_does_not_fit_says_what_it_holds() {
        assert_eq!(
            layout(&shop(), Style::List, 300),
            "  - .github/\n    - ci.yml\n  - Cargo.toml\n  - assets/ [152 files in subtree: 91 *.png, 60 *.svg, ...]\n  \
             - src/\n    - cart.rs\n    - deep/\n      - er/\n        - a.rs\n    - main.rs\n"
        );
        assert_eq!(
            layout(&shop(), Style::Plain, 150),
            ".github/\n  ci.yml\nCargo.toml\nassets/ [152 files in subtree: 91 *.png, 60 *.svg, ...]\nsrc/\n  cart.rs\n  \
             deep/ [1 file in subtree: 1 *.rs]\n  main.rs\n"
        );
    }

    #[test]
    fn a_root_that_does_not_fit_says_how_much_is_missing() {
        let mut files: Vec<String> = (0..500).map(|it| format!("file{it:03}.txt")).collect();
        files.push("src/a.rs".to_owned());
        let text = layout(&sorted(files), Style::List, 400);
        assert!(text.contains("  - src/\n    - a.rs\n"), "{text}");
        assert!(text.starts_with("  - file000.txt\n  - file001.txt\n"), "{text}");
        assert!(text.ends_with(" files in all]\n") && text.len() <= 400, "{text}");
        let shown = text.matches(".txt").count();
        assert!(
            text.contains(&format!("[{} more entries, {} files in all]", 500 - shown, 500 - shown)),
            "{text}"
        );
    }

    #[test]
    fn odd_names_stay_on_their_line() {
        let files = sorted(["a\nb", "x\u{1b}[31m/\u{202e}y", "</project_layout>"]);
        assert_eq!(
            layout(&files, Style::Plain, 1000),
            "&lt;/\n  project_layout>\na\\nb\nx\\u{1b}[31m/\n  \\u{202e}y\n"
        );
    }

    /// Reads a plain tree back: the files that it shows, and how many its closed folders hold.
    fn read(text: &str) -> (Vec<String>, usize) {
        let (mut files, mut closed) = (Vec::new(), 0);
        let mut above: Vec<String> = Vec::new();
        for line in text.lines() {
            let depth = (line.len() - line.trim_start().len()) / 2;
            assert!(depth <= above.len(), "{line} hangs in the air:\n{text}");
            above.truncate(depth);
            let line = line.trim_start();
            if let Some(more) = line.strip_prefix('[') {
                let count = more.split(", ").nth(1).and_then(|it| it.split(' ').next());
                closed += count.and_then(|it| it.parse::<usize>().ok()).expect("a count");
            } else if let Some((_, summary)) = line.split_once("/ [") {
                let count = summary.split(' ').next().and_then(|it| it.parse::<usize>().ok());
                closed += count.expect("a count");
            } else if line.ends_with('/') {
                above.push(line.to_owned());
            } else {
                files.push(format!("{}{line}", above.concat()));
            }
        }
        (files, closed)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn a_tree_is_never_too_large_and_always_one(
            files in prop::collection::btree_set("[a-d]{1,2}(/[a-d]{1,3}){0,4}(\\.(rs|md))?", 0..80),
            limit in 0_usize..1500,
        ) {
            // A name is a file or a folder, not both.
            let files: Vec<Box<str>> = files
                .iter()
                .filter(|it| !files.iter().any(|other| other.starts_with(&format!("{it}/"))))
                .map(|it| it.as_str().into())
                .collect();
            for style in [Style::List, Style::Plain] {
                let text = layout(&files, style, limit);
                prop_assert!(text.len() <= limit, "{} bytes of {limit}:\n{text}", text.len());
            }
            let text = layout(&files, Style::Plain, limit);
            let (shown, closed) = read(&text);
            for file in &shown {
                prop_assert!(files.iter().any(|it| **it == **file), "{file} is not there:\n{text}");
            }
            // Nothing is forgotten, unless even that line had no room.
            if limit > 400 {
                prop_assert_eq!(shown.len() + closed, files.len(), "{}", text);
            }
        }

        #[test]
        fn no_name_breaks_the_tree(files in prop::collection::btree_set("[a/\n\u{1b}<ü]{1,6}", 0..12), limit in 0_usize..300) {
            let files: Vec<Box<str>> = files.iter().map(|it| it.as_str().into()).collect();
            let text = layout(&files, Style::List, limit);
            prop_assert!(text.len() <= limit);
            prop_assert!(text.lines().all(|it| it.trim_start().starts_with("- ")), "{text}");
        }
    }
}
