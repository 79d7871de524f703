//! The shape of the library: no import cycle among siblings, small state, docs that state something.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, Token, files, group_end, root, shipped, starts};

/// A path as the source writes it, or a module's place in the library: `["tui", "widgets", "plan"]`.
type Path = Vec<String>;

/// Every path that a file imports, and every path in its code that begins with `crate`, `super` or `self`.
fn paths(tokens: &[Token]) -> (Vec<Path>, Vec<Path>) {
    let (mut imported, mut written) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        let is_start = at == 0 || !matches!(tokens[at - 1], Token::Sign(':' | '$'));
        if tokens[at].is("use") && is_start {
            at = use_tree(tokens, at + 1, &[], &mut imported);
        } else if is_start && ["crate", "super", "self"].iter().any(|it| tokens[at].is(it)) {
            let mut path = vec![word(&tokens[at])];
            while starts(&tokens[at + 1..], "::") && tokens.get(at + 3).and_then(Token::word).is_some() {
                path.push(word(&tokens[at + 3]));
                at += 3;
            }
            if path.len() > 1 {
                written.push(path);
            }
            at += 1;
        } else {
            at += 1;
        }
    }
    (imported, written)
}

fn word(token: &Token) -> String {
    token.word().unwrap_or_default().to_owned()
}

/// Reads one branch of a `use` tree; returns the index after it.
fn use_tree(tokens: &[Token], mut at: usize, before: &[String], found: &mut Vec<Path>) -> usize {
    let mut path = before.to_vec();
    loop {
        match tokens.get(at) {
            Some(Token::Sign('{')) => {
                let end = group_end(tokens, at) - 1;
                at += 1;
                while at < end {
                    at = use_tree(tokens, at, &path, found) + usize::from(at < end);
                }
                return end + 1;
            }
            Some(Token::Sign(':')) => at += 1,
            Some(Token::Word(it)) if it == "as" => at += 2,
            Some(Token::Word(it)) => {
                path.push(it.clone());
                at += 1;
            }
            Some(Token::Sign('*')) => at += 1,
            _ => {
                found.push(path);
                return at;
            }
        }
    }
}

/// The modules of the library and what each imports, with re-exports followed to the module that they come from.
pub struct Graph {
    modules: BTreeSet<Path>,
    /// Name of an imported item or module to the path it was imported by, for each module.
    names: BTreeMap<Path, BTreeMap<String, Path>>,
    /// The modules that each module imports from, by any path.
    pub imports: BTreeMap<Path, BTreeSet<Path>>,
}

impl Graph {
    pub fn new(sources: &[Source]) -> Self {
        let read: Vec<_> = sources
            .iter()
            .map(|it| (it.module.clone(), paths(&it.tokens)))
            .collect();
        let mut graph = Self {
            modules: read.iter().map(|it| it.0.clone()).collect(),
            names: BTreeMap::new(),
            imports: BTreeMap::new(),
        };
        for (module, (imported, _)) in &read {
            let names = imported.iter().filter_map(|it| Some((it.last()?.clone(), it.clone())));
            graph.names.insert(module.clone(), names.collect());
        }
        for (module, (imported, written)) in read {
            let targets = imported
                .iter()
                .chain(&written)
                .filter_map(|it| graph.target(it, &module, 0));
            let targets: BTreeSet<_> = targets.filter(|it| *it != module).collect();
            graph.imports.insert(module, targets);
        }
        graph
    }

    /// The module that defines what `path` names where `from` writes it; `None` for other crates.
    fn target(&self, path: &[String], from: &Path, depth: usize) -> Option<Path> {
        let ups = path.iter().take_while(|it| *it == "super").count();
        let (mut at, mut rest) = match path.first()?.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (from.clone(), &path[1..]),
            "super" => (from[..from.len().saturating_sub(ups)].to_vec(), &path[ups..]),
            first => {
                let child = [from.as_slice(), &[first.to_owned()]].concat();
                self.modules.contains(&child).then_some((child, &path[1..]))?
            }
        };
        while let Some((first, after)) = rest.split_first() {
            let child = [at.as_slice(), std::slice::from_ref(first)].concat();
            if !self.modules.contains(&child) {
                break;
            }
            (at, rest) = (child, after);
        }
        let exported = rest.first().and_then(|it| self.names.get(&at)?.get(it));
        match exported
            .filter(|_| depth < 6)
            .and_then(|it| self.target(it, &at, depth + 1))
        {
            Some(origin) => Some(origin),
            None => self.modules.contains(&at).then_some(at),
        }
    }

    /// For each folder, which of its modules (files or folders) import which others of it. A module and its own
    /// descendants are one: `mod.rs` introduces its folder and may use what is in it.
    fn siblings(&self) -> BTreeMap<Path, BTreeMap<String, BTreeSet<String>>> {
        let mut folders: BTreeMap<Path, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (module, targets) in &self.imports {
            for target in targets {
                let shared = module.iter().zip(target).take_while(|(a, b)| a == b).count();
                if let (Some(a), Some(b)) = (module.get(shared), target.get(shared)) {
                    let folder = folders.entry(module[..shared].to_vec()).or_default();
                    folder.entry(a.clone()).or_default().insert(b.clone());
                }
            }
        }
        folders
    }

    /// `folder: a b c` for each set of siblings that reach each other.
    fn cycles(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (folder, edges) in self.siblings() {
            let reached = |from: &str| {
                let (mut seen, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
                while let Some(next) = open.pop() {
                    let targets = edges.get(&next).into_iter().flatten();
                    open.extend(
                        targets
                            .filter(|it| seen.insert((*it).clone()))
                            .cloned()
                            .collect::<Vec<_>>(),
                    );
                }
                seen
            };
            let reach: BTreeMap<_, _> = edges.keys().map(|it| (it.clone(), reached(it))).collect();
            let mut sets = BTreeSet::new();
            for (module, targets) in &reach {
                let back = |it: &&String| reach.get(*it).is_some_and(|it| it.contains(module));
                let set: Vec<_> = targets.iter().filter(back).cloned().collect();
                if set.len() > 1 {
                    sets.insert(set.join(" "));
                }
            }
            found.extend(sets.into_iter().map(|it| format!("{}: {it}", folder.join("/"))));
        }
        found
    }
}

#[test]
fn no_module_contains_an_import_cycle() {
    assert_eq!(Graph::new(&shipped()).cycles(), Vec::<String>::new());
}

#[test]
fn a_planted_cycle_is_seen() {
    let graph = |files: &[(&str, &str)]| {
        let sources: Vec<_> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
        Graph::new(&sources).cycles()
    };
    let folder = ("x/mod.rs", "mod a; mod b; mod c; pub use a::{A, deep::Deep}; use b::B;");
    // A child may use its parent's items, and a parent its children's.
    assert_eq!(
        graph(&[folder, ("x/a.rs", "use super::Own;"), ("x/b.rs", "use super::A;")]),
        Vec::<String>::new()
    );
    // Through a re-export, in both directions.
    assert_eq!(
        graph(&[folder, ("x/a.rs", "use super::B;"), ("x/b.rs", "use super::{A, Own};")]),
        ["x: a b"]
    );
    // Around a corner, by paths in the code and in groups.
    assert_eq!(
        graph(&[
            folder,
            ("x/a.rs", "fn f() { crate::x::b::g() }"),
            ("x/b.rs", "use super::{c::{self as d, C}};"),
            ("x/c.rs", "use crate::x::Deep;"),
            ("x/a/deep.rs", "pub struct Deep;"),
        ]),
        ["x: a b c"]
    );
}

/// Most fields of a struct that changes itself.
const MOST_FIELDS: usize = 12;

/// Structs with named fields and how many they have; and the types that have methods with `&mut self`. Records that serde
/// or clap fill are left out.
fn structs(source: &Source) -> (Vec<(String, usize)>, BTreeSet<String>) {
    let tokens = &source.tokens;
    let (mut found, mut changing) = (Vec::new(), BTreeSet::new());
    for at in 0..tokens.len() {
        let open = |from: usize| (from..tokens.len()).find(|&it| matches!(tokens[it], Token::Sign('{' | '(' | ';')));
        if tokens[at].is("struct")
            && !is_record(tokens, at)
            && let Some(brace) = open(at).filter(|&it| tokens[it].is("{"))
        {
            found.push((word(&tokens[at + 1]), fields(&tokens[brace..group_end(tokens, brace)])));
        }
        let is_item =
            at == 0 || matches!(tokens[at - 1], Token::Sign('}' | ';' | ']' | '{')) || tokens[at - 1].is("unsafe");
        if tokens[at].is("impl") && is_item {
            let brace = (at..tokens.len()).find(|&it| tokens[it].is("{")).unwrap_or(at);
            let body = &tokens[brace..group_end(tokens, brace)];
            let changes = |it: &[Token]| it[0].is("&") && it[1].is("mut") && it[2].is("self");
            if body.windows(3).any(changes) {
                changing.extend(target(&tokens[at + 1..brace]));
            }
        }
    }
    (found, changing)
}

/// The type that `impl …` is for.
fn target(header: &[Token]) -> Option<String> {
    let start = header.iter().position(|it| it.is("for")).map_or(0, |it| it + 1);
    let (mut depth, mut name) = (0_i32, None);
    for token in &header[start..] {
        match token {
            Token::Sign('<') => depth += 1,
            Token::Sign('>') => depth -= 1,
            Token::Word(it) if it == "where" && depth == 0 => break,
            Token::Word(it) if depth == 0 => name = Some(it.clone()),
            Token::Word(_) | Token::Sign(_) | Token::Text(_) => {}
        }
    }
    name
}

/// Derives that make a struct a record: its fields are a format's, not ours.
fn is_record(tokens: &[Token], at: usize) -> bool {
    let start = (0..at)
        .rev()
        .find(|&it| matches!(tokens[it], Token::Sign('}' | ';' | '{')))
        .unwrap_or(0);
    let derives = ["Serialize", "Deserialize", "Parser", "Args"];
    tokens[start..at]
        .iter()
        .any(|it| derives.iter().any(|name| it.is(name)))
}

/// The number of `name: Type` in a struct's braces.
fn fields(body: &[Token]) -> usize {
    let (mut depth, mut count) = (0_i32, 0);
    for (at, token) in body.iter().enumerate() {
        match token {
            Token::Sign('{' | '(' | '[' | '<') => depth += 1,
            Token::Sign('>') if at > 0 && body[at - 1].is("-") => {}
            Token::Sign('}' | ')' | ']' | '>') => depth -= 1,
            Token::Sign(':') if depth == 1 && !body[at - 1].is(":") && !body[at + 1].is(":") => count += 1,
            Token::Sign(_) | Token::Word(_) | Token::Text(_) => {}
        }
    }
    count
}

#[test]
fn state_is_small() {
    let read: Vec<_> = shipped().iter().map(|it| (it.path.clone(), structs(it))).collect();
    let changing: BTreeSet<_> = read.iter().flat_map(|it| it.1.1.iter().cloned()).collect();
    let mut found = Vec::new();
    for (path, (structs, _)) in read {
        let wide = structs
            .into_iter()
            .filter(|(name, count)| *count > MOST_FIELDS && changing.contains(name));
        found.extend(wide.map(|(name, count)| format!("{path}: {name} has {count}")));
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_planted_wide_struct_is_seen() {
    let source = Source::new(
        "a.rs",
        "pub struct Wide<T> { a: u8, pub b: Vec<(u8, std::io::Error)>, c: Box<dyn Fn(u8) -> T> } struct Unit; struct Pair(u8, u8);\n\
         #[derive(Serialize)] struct Record { a: u8 } impl<T: Copy> Trait<u8> for Wide<T> { fn f(&mut self) {} } impl Unit { fn g(&self) {} }",
    );
    let (found, changing) = structs(&source);
    assert_eq!(found, [("Wide".to_owned(), 3)]);
    assert_eq!(changing, BTreeSet::from(["Wide".to_owned()]));
}

/// First words of a doc that promise a riddle instead of a statement.
const RIDDLES: [&str; 7] = ["What", "Whether", "Who", "So", "Where", "How", "Of"];

/// First lines of docs of public items in `text` that begin with one of [`RIDDLES`], with their line numbers.
fn riddles(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let is_first = at == 0 || !lines[at - 1].starts_with("///");
        let Some(doc) = line.strip_prefix("///").map(str::trim_start).filter(|_| is_first) else {
            continue;
        };
        let first = doc.split(|it: char| !it.is_alphanumeric()).next().unwrap_or_default();
        let item = lines[at..]
            .iter()
            .find(|it| !it.starts_with("///") && !it.starts_with("#["))
            .copied();
        if RIDDLES.contains(&first) && item.is_some_and(is_public) {
            found.push((at + 1, doc.to_owned()));
        }
    }
    found
}

/// Fields without `pub` are private; a line cannot tell how public a variant's enum is, so every variant counts.
fn is_public(item: &str) -> bool {
    item.starts_with("pub") || item.starts_with(char::is_uppercase)
}

/// The text before the file's module of tests.
fn shipped_text(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

#[test]
fn docs_of_public_items_state_something() {
    let mut found = Vec::new();
    for path in files(&root().join("src")) {
        if path.extension().is_none_or(|it| it != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source file");
        let name = path.strip_prefix(root()).expect("below it").display().to_string();
        found.extend(
            riddles(shipped_text(&text))
                .into_iter()
                .map(|(line, doc)| format!("{name}:{line}: {doc}")),
        );
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_planted_riddle_is_seen() {
    for (text, count) in [
        ("/// What it is for.\npub fn f() {}", 1),
        (
            "/// Of a search.\n/// Where it is.\n#[derive(Debug)]\npub(super) struct A {\n    /// Whether so.\n    pub a: bool,\n}",
            2,
        ),
        ("enum A {\n    /// Who acts.\n    Model,\n}", 1),
        ("/// What it is for.\nfn f() {}", 0),
        ("/// Limits of a search.\npub fn f() {}\n/// Offers.\npub fn g() {}", 0),
    ] {
        assert_eq!(riddles(text).len(), count, "{text}");
    }
}

/// Calls in replies that open an overlay over whatever was typed meanwhile, by file.
fn late_overlays(source: &Source) -> usize {
    let opens = |tokens: &[Token]| {
        let calls = tokens.windows(4).filter(|it| {
            let is_open = it[0].is("app") && it[1].is(".") && it[2].is("open") && it[3].is("(");
            let is_push = it[0].is("overlays") && it[1].is(".") && it[2].is("push") && it[3].is("(");
            is_open || is_push
        });
        calls.count()
    };
    if source.path.ends_with("update/outcomes.rs") {
        return opens(&source.tokens);
    }
    let mut count = 0;
    for at in 1..source.tokens.len() {
        let before = &source.tokens[at - 1];
        let is_question = ["ask", "ask_for", "own_files"].iter().any(|it| before.is(it));
        let at = at + usize::from(source.tokens[at].is("!"));
        if is_question && source.tokens.get(at).is_some_and(|it| it.is("(")) {
            count += opens(&source.tokens[at..group_end(&source.tokens, at)]);
        }
    }
    count
}

#[test]
fn replies_open_nothing_over_words() {
    let found: Vec<_> = shipped()
        .into_iter()
        .filter(|it| it.top() == "tui" && late_overlays(it) > 0)
        .map(|it| it.path)
        .collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_planted_late_overlay_is_seen() {
    for (path, text, count) in [
        ("tui/a.rs", "vec![ask!(Q, R, |app, it| { app.open(Page::new(it)) })]", 1),
        (
            "tui/a.rs",
            "ask_for(q, move |app, _| { app.overlays.push(page); Vec::new() })",
            1,
        ),
        (
            "tui/a.rs",
            "own_files(t, move |app, it| app.open_late(draft, Picker::rules(it)))",
            0,
        ),
        ("tui/a.rs", "app.open(Page::keys())", 0),
        ("tui/update/outcomes.rs", "app.open(Page::keys())", 1),
    ] {
        assert_eq!(late_overlays(&Source::new(path, text)), count, "{text}");
    }
}
