//! The names that code gives to its functions, types and constants, and the lines where each stands: what one points at
//! by name. They are read when a file is cut into chunks, and stored with these.

use std::{
    ops::RangeInclusive,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tree_sitter::{Node, Tree};

use super::{Entry, File, Index, IsOver, LONGEST_FILE, Read, grammar};

/// Names of one file: beyond it, it was written by a program.
const MOST_PER_FILE: usize = 4000;
/// Items inside of items are looked at as deep as this.
const DEEPEST: usize = 24;
/// Maximum bytes of an indexed name.
const LONGEST_NAME: usize = 200;
/// Age up to which results are reused without looking at the files: somebody is typing. So many times longer, where it took long.
const FRESH: Duration = Duration::from_secs(3);
const FRESH_TIMES: u32 = 20;
/// The words for kinds of names. Stored by their places: new ones come last.
const WORDS: [&str; 18] = [
    "fn",
    "struct",
    "enum",
    "union",
    "trait",
    "type",
    "const",
    "static",
    "macro",
    "mod",
    "class",
    "module",
    "namespace",
    "interface",
    "record",
    "function",
    "method",
    "constructor",
];
/// Bytes of a packed name but for its texts: word, lengths of name and owner, lines.
const HEAD_BYTES: usize = 11;

/// The names in the files that an index knows.
#[derive(Debug)]
pub struct Symbols {
    index: Arc<Index>,
    last: Mutex<Option<LastLook>>,
}

/// The files of the last look that could be read, with what they hold.
#[derive(Debug)]
struct LastLook {
    at: Instant,
    good_for: Duration,
    outlines: Arc<[Outline]>,
}

/// A file and its names.
#[derive(Debug)]
struct Outline {
    shown: Box<str>,
    entry: Arc<Entry>,
}

/// The names that a file defines, packed: they are many, and seldom asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(Box<[u8]>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition<'a> {
    name: &'a str,
    /// The type or module that it belongs to.
    owner: Option<&'a str>,
    /// As the language says it: `fn`, `class`.
    word: &'static str,
    first: u32,
    last: u32,
}

/// A name that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    /// The type or module that it belongs to.
    pub owner: Option<String>,
    /// Its kind, in the words of its language: `fn`, `class`.
    pub word: &'static str,
    pub path: String,
    /// From 1, inclusive.
    pub lines: RangeInclusive<u32>,
}

impl Names {
    /// The names in a syntax tree of `text`.
    pub fn of(tree: &Tree, text: &str) -> Self {
        let mut items = Vec::new();
        collect(tree.root_node(), text, None, 0, &mut items);
        let mut packed = Vec::new();
        for it in items {
            let owner = it.owner.unwrap_or_default();
            // Both are short.
            let lengths = [it.name.len() as u8, owner.len() as u8];
            let word = WORDS.iter().position(|word| *word == it.word);
            packed.push(word.unwrap_or_default() as u8);
            packed.extend(lengths);
            packed.extend(it.first.to_le_bytes());
            packed.extend(it.last.to_le_bytes());
            packed.extend(it.name.as_bytes());
            packed.extend(owner.as_bytes());
        }
        Self(packed.into())
    }

    /// Names in the form that [`Self::packed`] gives.
    pub const fn of_packed(packed: Box<[u8]>) -> Self {
        Self(packed)
    }

    pub const fn packed(&self) -> &[u8] {
        &self.0
    }

    /// Bytes in memory.
    pub const fn size(&self) -> usize {
        self.0.len()
    }

    /// The names in the order of the file, as far as they can be read.
    pub fn iter(&self) -> impl Iterator<Item = Definition<'_>> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            let (head, texts) = rest.split_first_chunk::<HEAD_BYTES>()?;
            let [word, name, owner, lines @ ..] = head;
            let ([first, last], _) = lines.as_chunks::<4>() else {
                return None;
            };
            let (name, texts) = texts.split_at_checked(usize::from(*name))?;
            let (owner, texts) = texts.split_at_checked(usize::from(*owner))?;
            rest = texts;
            Some(Definition {
                name: std::str::from_utf8(name).ok()?,
                owner: Some(std::str::from_utf8(owner).ok()?).filter(|it| !it.is_empty()),
                word: WORDS.get(usize::from(*word))?,
                first: u32::from_le_bytes(*first),
                last: u32::from_le_bytes(*last),
            })
        })
    }
}

impl Symbols {
    /// The names in the files that `index` knows.
    pub fn of(index: Arc<Index>) -> Self {
        Self {
            index,
            last: Mutex::default(),
        }
    }

    /// The names that fit what was typed, the best first, at most `most`. `Cart::total` and `Cart.total` ask for what
    /// belongs to something.
    ///
    /// `files` is asked for when what is known is old. What could not be read before `is_over` says so is missing.
    pub fn find(
        &self,
        files: &dyn Fn() -> Vec<File>,
        read: Read<'_>,
        typed: &str,
        most: usize,
        is_over: IsOver<'_>,
    ) -> Vec<Symbol> {
        let outlines = self.refresh(files, read, is_over);
        rank(&outlines, typed, most)
    }

    fn refresh(&self, files: &dyn Fn() -> Vec<File>, read: Read<'_>, is_over: IsOver<'_>) -> Arc<[Outline]> {
        // Held while files are read: who types on meanwhile waits for what is being done anyway.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(it) = &*last
            && it.at.elapsed() < it.good_for
        {
            return Arc::clone(&it.outlines);
        }
        let began = Instant::now();
        let mut files = files();
        files.retain(|it| grammar::of(Path::new(&it.shown)).is_some() && it.bytes <= LONGEST_FILE);
        let entries = self.index.look(&files, read, is_over);
        let is_whole = entries.iter().all(Option::is_some);
        let outline = |(file, entry): (File, Option<Arc<Entry>>)| {
            let shown = file.shown.into();
            entry.map(|entry| Outline { shown, entry })
        };
        let outlines: Arc<[Outline]> = files.into_iter().zip(entries).filter_map(outline).collect();
        // What is not read yet is read when somebody asks again.
        *last = is_whole.then(|| LastLook {
            at: Instant::now(),
            good_for: FRESH.max(began.elapsed() * FRESH_TIMES),
            outlines: Arc::clone(&outlines),
        });
        outlines
    }
}

/// The way in which a kind of node names something.
enum Sort {
    /// A name for what stands in it, and nothing inside is looked at.
    Leaf(&'static str),
    /// A name, and what is inside belongs to it.
    Owner(&'static str),
    /// No name of its own: its contents belong to the type in this field, as in `impl`.
    About(&'static str),
    /// To be looked into.
    Through,
}

fn sort(node: Node<'_>) -> Sort {
    match node.kind() {
        "function_item" | "function_signature_item" => Sort::Leaf("fn"),
        "struct_item" | "struct_specifier" => Sort::Leaf("struct"),
        "enum_item" | "enum_declaration" | "enum_specifier" => Sort::Leaf("enum"),
        "union_item" | "union_specifier" => Sort::Leaf("union"),
        "trait_item" | "trait_declaration" => Sort::Owner("trait"),
        "type_item" | "type_alias_declaration" | "type_spec" | "type_alias" | "type_definition" => Sort::Leaf("type"),
        "const_item" | "const_spec" => Sort::Leaf("const"),
        "static_item" => Sort::Leaf("static"),
        "macro_definition" => Sort::Leaf("macro"),
        "mod_item" => Sort::Owner("mod"),
        "impl_item" => Sort::About("type"),
        "class_definition" | "class_declaration" | "abstract_class_declaration" | "class_specifier" | "class" => {
            Sort::Owner("class")
        }
        "module" if node.parent().is_some() => Sort::Owner("module"),
        "namespace_definition" | "internal_module" => Sort::Owner("namespace"),
        "interface_declaration" => Sort::Owner("interface"),
        "record_declaration" => Sort::Owner("record"),
        "function_definition" | "function_declaration" | "generator_function_declaration" => Sort::Leaf("function"),
        "method_definition" | "method_declaration" | "method" | "singleton_method" => Sort::Leaf("method"),
        "constructor_declaration" => Sort::Leaf("constructor"),
        // A function that is kept under a name.
        "variable_declarator"
            if matches!(
                node.child_by_field_name("value").map(|it| it.kind()),
                Some("arrow_function" | "function_expression" | "generator_function" | "class")
            ) =>
        {
            Sort::Leaf("function")
        }
        _ => Sort::Through,
    }
}

fn collect<'a>(node: Node<'_>, text: &'a str, owner: Option<&'a str>, depth: usize, items: &mut Vec<Definition<'a>>) {
    if depth > DEEPEST {
        return;
    }
    let mut cursor = node.walk();
    for child in node.named_children(&mut cursor) {
        if items.len() >= MOST_PER_FILE {
            return;
        }
        match sort(child) {
            Sort::Leaf(word) => {
                let _ = note(child, text, word, owner, items);
            }
            Sort::Owner(word) => {
                let name = note(child, text, word, owner, items);
                collect(child, text, name.or(owner), depth + 1, items);
            }
            Sort::About(field) => {
                let about = child.child_by_field_name(field).and_then(|it| named(it, text));
                collect(child, text, about.or(owner), depth + 1, items);
            }
            Sort::Through => collect(child, text, owner, depth + 1, items),
        }
    }
}

/// Adds a name, if the node has one; the name.
fn note<'a>(
    node: Node<'_>,
    text: &'a str,
    word: &'static str,
    owner: Option<&'a str>,
    items: &mut Vec<Definition<'a>>,
) -> Option<&'a str> {
    // What only mentions a type, without its body, is not where it stands.
    let is_mention = matches!(
        node.kind(),
        "struct_specifier" | "enum_specifier" | "union_specifier" | "class_specifier"
    ) && node.child_by_field_name("body").is_none();
    let name = node.child_by_field_name("name").and_then(|it| named(it, text));
    let name = name.or_else(|| declared(node, text)).filter(|_| !is_mention)?;
    // A declaration may begin before what has the name: `export const f = () => {}`.
    let whole = match (node.kind(), node.parent()) {
        ("variable_declarator", Some(parent)) => parent,
        _ => node,
    };
    let word = match (word, owner) {
        ("function", Some(_)) if node.kind() == "function_definition" => "method",
        (word, _) => word,
    };
    items.push(Definition {
        name,
        owner,
        word,
        first: whole.start_position().row as u32 + 1,
        last: whole.end_position().row as u32 + 1,
    });
    Some(name)
}

/// The name of a type without what stands in brackets behind it; of a path, its last part.
fn named<'a>(node: Node<'_>, text: &'a str) -> Option<&'a str> {
    let written = text.get(node.byte_range())?;
    let end = written.find(['<', '(', '[']).unwrap_or(written.len());
    let name = written.get(..end)?;
    let name = name.rsplit("::").next()?.trim().trim_start_matches(['&', '*']);
    (!name.is_empty() && name.len() <= LONGEST_NAME && !name.contains(char::is_whitespace)).then_some(name)
}

/// The name inside of what C calls a declarator.
fn declared<'a>(node: Node<'_>, text: &'a str) -> Option<&'a str> {
    let mut declarator = node.child_by_field_name("declarator")?;
    for _ in 0..DEEPEST {
        match declarator.child_by_field_name("declarator") {
            Some(inner) => declarator = inner,
            None => break,
        }
    }
    named(declarator, text)
}

/// Returns the rank of a match, the best first. `None`: no match.
fn fit(name: &str, wanted: &str) -> Option<u8> {
    let lower = name.to_lowercase();
    let at = lower.find(wanted)?;
    Some(match at {
        0 if lower.len() == wanted.len() => 0,
        0 => 1,
        // Where a word of the name begins; letters may be longer in lower case, which only costs a rank.
        _ if name.get(at..).is_some_and(|it| it.starts_with(char::is_uppercase))
            || lower.get(..at).is_some_and(|it| it.ends_with('_')) =>
        {
            2
        }
        _ => 3,
    })
}

fn rank(outlines: &[Outline], typed: &str, most: usize) -> Vec<Symbol> {
    let typed = typed.trim().to_lowercase();
    let (owner, wanted) = match typed.rsplit_once("::").or_else(|| typed.rsplit_once('.')) {
        Some((owner, wanted)) => (Some(owner.rsplit(['.', ':']).next().unwrap_or(owner)), wanted),
        None => (None, typed.as_str()),
    };
    if wanted.is_empty() && owner.is_none_or(str::is_empty) || wanted.len() > LONGEST_NAME {
        return Vec::new();
    }
    let mut found = Vec::new();
    for outline in outlines {
        for item in outline.entry.parts.names.iter() {
            let Some(rank) = fit(item.name, wanted) else { continue };
            if let Some(owner) = owner
                && !item.owner.is_some_and(|it| it.to_lowercase().contains(owner))
            {
                continue;
            }
            let place = (
                rank,
                outline.entry.is_aside,
                item.name.len(),
                &outline.shown,
                item.first,
            );
            found.push((place, outline, item));
        }
    }
    let most = most.min(found.len());
    if most > 0 && most < found.len() {
        found.select_nth_unstable_by(most - 1, |a, b| a.0.cmp(&b.0));
    }
    found.truncate(most);
    found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let symbol = |(_, outline, item): (_, &Outline, Definition<'_>)| Symbol {
        name: item.name.to_owned(),
        owner: item.owner.map(str::to_owned),
        word: item.word,
        path: outline.shown.to_string(),
        lines: item.first..=item.last,
    };
    found.into_iter().map(symbol).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// `word owner.name first-last` of everything that a file names.
    fn names(path: &str, text: &str) -> Vec<String> {
        let bytes = text.as_bytes().to_vec();
        let index = Index::default();
        let entries = index.look(&[file(path, text)], &move |_: &Path| Some(bytes.clone()), &|| false);
        let line = |it: Definition<'_>| {
            let owner = it.owner.map_or_else(String::new, |it| format!("{it}."));
            format!("{} {owner}{} {}-{}", it.word, it.name, it.first, it.last)
        };
        let entry = entries[0].as_ref().expect("it can be read");
        entry.parts.names.iter().map(line).collect()
    }

    #[test]
    fn every_language_names_its_functions_and_types() {
        for (path, text, wants) in [
            (
                "a.rs",
                "pub struct Cart<T> {\n    a: T,\n}\n\nimpl<T> Cart<T> {\n    fn total(&self) {\n        fn inner() {}\n    }\n}\n\nconst A: u8 = 1;\nmod deep {\n    pub trait See { fn look(&self); }\n}\nmacro_rules! m { () => {} }\n",
                &[
                    "struct Cart 1-3",
                    "fn Cart.total 6-8",
                    "const A 11-11",
                    "mod deep 12-14",
                    "trait deep.See 13-13",
                    "fn See.look 13-13",
                    "macro m 15-15",
                ][..],
            ),
            (
                "a.py",
                "class Cart:\n    def total(self):\n        return 1\n\ndef main():\n    pass\n",
                &["class Cart 1-3", "method Cart.total 2-3", "function main 5-6"],
            ),
            (
                "a.ts",
                "export class Cart {\n  total(): number { return 1 }\n}\nexport const sum = (a: number) => a\ninterface See { x: number }\ntype A = string\nenum E { A }\nfunction f() {}\n",
                &[
                    "class Cart 1-3",
                    "method Cart.total 2-2",
                    "function sum 4-4",
                    "interface See 5-5",
                    "type A 6-6",
                    "enum E 7-7",
                    "function f 8-8",
                ],
            ),
            (
                "a.go",
                "package a\n\ntype Cart struct {\n\tA int\n}\n\nfunc (c *Cart) Total() int {\n\treturn 1\n}\n\nfunc main() {}\n",
                &["type Cart 3-5", "method Total 7-9", "function main 11-11"],
            ),
            (
                "a.c",
                "struct cart { int a; };\nstruct cart *find(int a) {\n  return 0;\n}\nstatic int total(struct cart *c) { return 1; }\n",
                &["struct cart 1-1", "function find 2-4", "function total 5-5"],
            ),
            (
                "a.cpp",
                "namespace shop {\nclass Cart {\n public:\n  int total() { return 1; }\n};\nint Cart::sum() { return 2; }\n}\n",
                &[
                    "namespace shop 1-7",
                    "class shop.Cart 2-5",
                    "method Cart.total 4-4",
                    "method shop.sum 6-6",
                ],
            ),
            (
                "A.java",
                "public class Cart {\n  Cart() {}\n  int total() { return 1; }\n  enum E { A }\n}\n",
                &[
                    "class Cart 1-5",
                    "constructor Cart.Cart 2-2",
                    "method Cart.total 3-3",
                    "enum Cart.E 4-4",
                ],
            ),
            (
                "a.rb",
                "module Shop\n  class Cart\n    def total\n      1\n    end\n  end\nend\n",
                &["module Shop 1-7", "class Shop.Cart 2-6", "method Cart.total 3-5"],
            ),
            (
                "a.php",
                "<?php\nclass Cart {\n  function total() { return 1; }\n}\nfunction f() {}\n",
                &["class Cart 2-4", "method Cart.total 3-3", "function f 5-5"],
            ),
            ("a.sh", "total() {\n  echo 1\n}\n", &["function total 1-3"]),
            ("a.txt", "fn total() {}\n", &[]),
        ] {
            assert_eq!(names(path, text), wants, "{path}");
        }
    }

    fn file(path: &str, text: &str) -> File {
        File {
            path: path.into(),
            shown: path.to_owned(),
            modified: None,
            bytes: text.len() as u64,
        }
    }

    #[test]
    fn the_best_names_come_first_and_tests_last() {
        let texts = [
            (
                "src/cart.rs",
                "fn total_of() {}\nfn subtotal() {}\nstruct Total;\nimpl Total { fn new() {} }\n",
            ),
            ("tests/cart.rs", "fn total() {}\n"),
            (
                "src/item.rs",
                "struct Item;\nimpl Item { fn new() {} }\nfn grandTotal() {}\n",
            ),
        ];
        let files = || -> Vec<File> { texts.iter().map(|(path, text)| file(path, text)).collect() };
        let reads = AtomicUsize::new(0);
        let read = |path: &Path| {
            reads.fetch_add(1, Ordering::Relaxed);
            let text = texts.iter().find(|it| Path::new(it.0) == path)?.1;
            Some(text.as_bytes().to_vec())
        };
        let symbols = Symbols::of(Arc::default());
        let find = |typed: &str, most: usize| {
            let found = symbols.find(&files, &read, typed, most, &|| false);
            let line = |it: &Symbol| format!("{} {}:{}", it.name, it.path, it.lines.start());
            found.iter().map(line).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(
            find("total", 9),
            "Total src/cart.rs:3, total tests/cart.rs:1, total_of src/cart.rs:1, grandTotal src/item.rs:3, subtotal src/cart.rs:2"
        );
        assert_eq!(find("TOTAL", 1), "Total src/cart.rs:3");
        assert_eq!(find("item::new", 9), "new src/item.rs:2");
        assert_eq!(find("Total.", 9), "new src/cart.rs:4");
        assert_eq!(find("", 9), "");
        assert_eq!(find("nowhere", 9), "");
        assert_eq!(reads.load(Ordering::Relaxed), 3, "each file is read once");
    }

    #[test]
    fn a_file_is_read_once_for_a_search_and_for_its_names_and_stored_ones_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..40).map(|it| format!("f{it}.rs")).collect();
        let paths: Vec<_> = names.iter().map(|it| folder.path().join(it)).collect();
        for path in &paths {
            std::fs::write(path, "fn total() {}\n").unwrap();
        }
        let files = || -> Vec<File> {
            let both = names.iter().zip(&paths);
            both.map(|(shown, path)| File {
                path: path.clone(),
                ..file(shown, "fn total() {}\n")
            })
            .collect()
        };
        let reads = AtomicUsize::new(0);
        let read = |path: &Path| {
            reads.fetch_add(1, Ordering::Relaxed);
            std::fs::read(path).ok()
        };
        for expected in [40, 0] {
            reads.store(0, Ordering::Relaxed);
            let index = Arc::new(Index::stored(&folder.path().join("cache"), folder.path()));
            let symbols = Symbols::of(Arc::clone(&index));
            let found = symbols.find(&files, &read, "total", 50, &|| false);
            assert_eq!((found.len(), reads.load(Ordering::Relaxed)), (40, expected));
            let found = index.search(&files(), &read, "total", 10, &|| false);
            assert!(found.is_whole && reads.load(Ordering::Relaxed) == expected);
        }
    }

    #[test]
    fn while_files_are_cut_what_is_known_is_found_without_waiting() {
        let index = Arc::new(Index::default());
        let read = |_: &Path| Some(b"fn total() {}\n".to_vec());
        index.survey(&[file("a.rs", "fn total() {}\n")], &read, &|| false);
        let symbols = Symbols::of(Arc::clone(&index));
        let files = || vec![file("a.rs", "fn total() {}\n"), file("b.rs", "fn total() {}\n")];
        let cutting = index.cutting.lock().unwrap();
        let find = || symbols.find(&files, &read, "total", 9, &|| false).len();
        assert_eq!(find(), 1);
        drop(cutting);
        assert_eq!(find(), 2, "the next look is not put off");
    }

    #[test]
    fn names_that_are_damaged_end() {
        let entry = Index::default().look(
            &[file("a.rs", "x")],
            &|_: &Path| Some(b"struct Cart;\nimpl Cart { fn total() {} }\n".to_vec()),
            &|| false,
        );
        let names = &entry[0].as_ref().unwrap().parts.names;
        assert_eq!(names.iter().count(), 2);
        for cut in 0..names.packed().len() {
            assert!(Names::of_packed(names.packed()[..cut].into()).iter().count() < 2);
        }
        for at in 0..names.packed().len() {
            let mut other = names.packed().to_vec();
            other[at] ^= 0x80;
            Names::of_packed(other.into()).iter().for_each(drop);
        }
    }

    #[test]
    fn what_there_is_no_time_for_is_found_the_next_time() {
        let files = || vec![file("a.rs", "fn total() {}\n")];
        let read = |_: &Path| Some(b"fn total() {}\n".to_vec());
        let symbols = Symbols::of(Arc::default());
        assert_eq!(symbols.find(&files, &read, "total", 9, &|| true), []);
        assert_eq!(symbols.find(&files, &read, "total", 9, &|| false).len(), 1);
    }
}
