//! The structure of code as its indentation shows it, in any language: blocks, the lines that they stand in, names.
//!
//! All functions take lines that are not blank. They are right for code that is formatted. In other code they are guesses:
//! a caller that accepts a change by them also checks its syntax.

/// Words that begin a statement and never a declaration.
const CONTROL: [&str; 18] = [
    "if", "else", "elif", "for", "while", "switch", "match", "case", "catch", "except", "try", "with", "return",
    "await", "yield", "throw", "do", "loop",
];
/// Words before the word that says what is declared.
const MODIFIERS: [&str; 18] = [
    "pub",
    "export",
    "default",
    "async",
    "public",
    "private",
    "protected",
    "final",
    "abstract",
    "unsafe",
    "extern",
    "override",
    "inline",
    "virtual",
    "declare",
    "sealed",
    "readonly",
    "partial",
];
/// Words before a name that has a body.
const BLOCKS: [&str; 17] = [
    "fn",
    "def",
    "class",
    "struct",
    "enum",
    "trait",
    "interface",
    "function",
    "function*",
    "func",
    "type",
    "mod",
    "module",
    "macro_rules!",
    "union",
    "namespace",
    "record",
];
/// Words before the name of a value.
const VALUES: [&str; 4] = ["let", "const", "var", "static"];
/// Words that begin a line which asks for another file.
const IMPORTS: [&str; 8] = [
    "import",
    "from",
    "use",
    "using",
    "#include",
    "require",
    "package",
    "require_once",
];

/// A name that a line declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared<'a> {
    pub name: &'a str,
    /// A function, a type and the like, rather than a value.
    pub is_block: bool,
}

/// The width of a line's indentation; a tab counts four.
pub fn indent(line: &str) -> usize {
    let blanks = line.chars().take_while(|it| it.is_whitespace());
    blanks.map(|it| if it == '\t' { 4 } else { 1 }).sum()
}

/// Returns true for a line that goes on with or ends what a line above began: `}`, `) -> u8 {`, `{`, `where`.
pub fn is_continuation(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with([')', ']', '}', '{']) || line.starts_with("</") || matches!(line.trim(), "where" | "end")
}

/// Returns true for a line that something must follow: `fn a() {`, `def a():`, `call(`.
pub fn is_opening(line: &str) -> bool {
    let line = line.trim_end();
    line.ends_with(['{', '(', '[', ':']) || line.ends_with("=>") || line.trim() == "where"
}

/// Returns true for comments, attributes and decorators, which belong to the line below them.
pub fn is_attached(line: &str) -> bool {
    let line = line.trim();
    let is_hash = line
        .strip_prefix('#')
        .is_some_and(|it| !it.starts_with(|it: char| it.is_alphabetic()));
    is_hash
        || ["@", "//", "/*", "*/", "* ", "--", "<!--"]
            .iter()
            .any(|it| line.starts_with(it))
        || line == "*"
}

/// Returns true for a comment that is a line of its own.
pub fn is_comment(line: &str) -> bool {
    is_attached(line) && attribute(line).is_none()
}

/// The name of an attribute or a decorator, with the signs before it: `#[derive` of `#[derive(Debug)]`, `@app.route`.
pub fn attribute(line: &str) -> Option<&str> {
    let line = line.trim();
    let is_one = line.starts_with("#[") || line.starts_with("#![") || line.starts_with('@');
    is_one.then(|| line.split(['(', '=', ']', ' ']).next().unwrap_or(line))
}

/// The blanks that a line begins with.
pub fn blanks(line: &str) -> &str {
    line.split_at(line.len() - line.trim_start().len()).0
}

/// The name to which a line gives a value: `timeout` of `timeout: 3`, `"a"` of `"a": 1,`, `VERSION` of `const VERSION = 2`.
pub fn key(line: &str) -> Option<&str> {
    let text = line.trim();
    let mut rest = text;
    while let Some((word, after)) = rest.split_once(' ') {
        if !MODIFIERS.contains(&word) && !VALUES.contains(&word) && word != "mut" && word != "type" {
            break;
        }
        rest = after.trim_start();
    }
    let is_key = |it: char| it.is_alphanumeric() || matches!(it, '_' | '$' | '.' | '-' | '"' | '\'' | '[' | ']');
    let end = rest.find(|it| !is_key(it))?;
    let (name, after) = rest.split_at(end);
    let after = after.trim_start();
    let is_given = after.starts_with(':') && !after.starts_with("::")
        || after.starts_with('=') && !after.starts_with("==") && !after.starts_with("=>");
    (is_given && !name.is_empty() && !is_word(name)).then_some(name)
}

/// Returns true for a word of a language rather than a name.
pub fn is_word(word: &str) -> bool {
    let is_listed = |list: &[&str]| list.contains(&word);
    let is_other = matches!(
        word,
        "finally" | "default" | "impl" | "self" | "this" | "super" | "in" | "as" | "not"
    );
    is_other
        || [&CONTROL[..], &MODIFIERS, &BLOCKS, &VALUES, &IMPORTS]
            .into_iter()
            .any(is_listed)
}

/// Returns true for a line that asks for another file.
pub fn is_import(line: &str) -> bool {
    let first = line.trim().split([' ', '(']).next().unwrap_or_default();
    IMPORTS.contains(&first) || (VALUES.contains(&first) && line.contains("require("))
}

/// The name that a line declares.
pub fn declared(line: &str) -> Option<Declared<'_>> {
    let is_name = |it: char| it.is_alphanumeric() || matches!(it, '_' | '$');
    let text = line.trim();
    let mut rest = text;
    loop {
        let end = rest.find([' ', '(']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if CONTROL.contains(&word) {
            return None;
        }
        let next = after.trim_start();
        if MODIFIERS.contains(&word) {
            // `pub(crate)`.
            rest = match next.strip_prefix('(').and_then(|it| it.split_once(')')) {
                Some((_, inner)) if word == "pub" => inner.trim_start(),
                Some(_) | None => next,
            };
            continue;
        }
        // `static void name(int a) {`, and not `static NAME: u8 = 1`.
        let end = next.find(|it| !is_name(it)).unwrap_or(next.len());
        if word == "static" && !next.split_at(end).1.trim_start().starts_with([':', '=']) && !next.starts_with("mut ") {
            rest = next;
            continue;
        }
        let is_value = VALUES.contains(&word);
        if is_value && ["fn ", "enum ", "mut "].iter().any(|it| next.starts_with(it)) {
            rest = next;
            continue;
        }
        if is_value || BLOCKS.contains(&word) || (word == "mut" && rest.len() < text.len()) {
            // What a function in C returns: `struct a* name(int b) {`.
            let after = next.split_at(end).1.trim_start();
            if matches!(word, "struct" | "enum" | "union")
                && (after.starts_with('*') || after.starts_with(|it: char| it.is_alphabetic()) && after.contains('('))
                && !["where ", "for ", "extends ", "implements ", "final "]
                    .iter()
                    .any(|it| after.starts_with(it))
            {
                rest = after.trim_start_matches('*').trim_start();
                break;
            }
            // A method in Go, `func (t *T) name`, has its receiver in its name.
            let start = match next.strip_prefix('(').and_then(|it| it.split_once(')')) {
                Some((_, inner)) if word == "func" => next.len() - inner.trim_start().len(),
                Some(_) | None => 0,
            };
            let tail = next.split_at(start).1;
            let end = tail.find(|it| !is_name(it)).unwrap_or(tail.len());
            let is_function = text.ends_with('{') && (text.contains("function") || text.contains("=>"));
            let is_block = !is_value && word != "mut" || is_function;
            return (end > 0).then(|| Declared {
                name: next.split_at(start + end).0,
                is_block,
            });
        }
        break;
    }
    // `app.use = function (a) {`, `x = 1`.
    if let Some((left, right)) = rest.split_once(" = ")
        && !left.is_empty()
        && left.chars().all(|it| is_name(it) || it == '.')
    {
        let is_block = text.ends_with('{') && (right.contains("function") || right.contains("=>"));
        return Some(Declared { name: left, is_block });
    }
    // `name(a, b) {`, `int name(int a) {`.
    let (before, after) = rest.split_once('(')?;
    let is_plain = before
        .chars()
        .all(|it| is_name(it) || matches!(it, ' ' | '<' | '>' | '*' | '&' | ':' | '~'));
    let end = before.rfind(|it| !is_name(it)).map_or(0, |it| it + 1);
    let (_, name) = before.split_at_checked(end)?;
    // In a call that goes on in the next lines, a bracket is open.
    let is_closed = text.matches('(').count() == text.matches(')').count();
    let is_block =
        is_plain && is_closed && !name.is_empty() && text.ends_with('{') && !after.starts_with(['"', '\'', '`']);
    is_block.then_some(Declared { name, is_block })
}

/// The line behind the block that line `at` begins.
pub fn block_end(lines: &[&str], at: usize) -> usize {
    let depth = indent(lines[at]);
    for (index, line) in lines.iter().enumerate().skip(at + 1) {
        let width = indent(line);
        if width > depth {
            continue;
        }
        // A comment may stand further out than the code around it.
        if is_comment(line) {
            let next = lines[index..].iter().find(|it| !is_comment(it));
            if next.is_some_and(|it| indent(it) > depth) {
                continue;
            }
        }
        if width < depth || !is_continuation(line) {
            return index;
        }
        if !is_opening(line) {
            return index + 1;
        }
    }
    lines.len()
}

/// The lines that a line before `at` with an indentation of `depth` stands in, from the inside.
pub fn ancestors(lines: &[&str], at: usize, depth: usize) -> Vec<usize> {
    let mut depth = depth;
    let mut found = Vec::new();
    for index in (0..at).rev() {
        if depth == 0 {
            break;
        }
        let line = lines[index];
        let width = indent(line);
        if width >= depth || is_attached(line) {
            continue;
        }
        if !is_continuation(line) {
            found.push(index);
            depth = width;
        } else if !is_opening(line) {
            // It ends what a line above it of the same depth began.
            depth = width;
        }
    }
    found
}

/// The identifiers of a text.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|it: char| !it.is_alphanumeric() && it != '_')
        .filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_have_names() {
        for (line, name, is_block) in [
            ("fn a() {", "a", true),
            ("    pub(crate) async fn long_name<T>(a: T) {", "long_name", true),
            ("pub const fn a() -> u8 {", "a", true),
            ("def a(self):", "a", true),
            ("class A(B):", "A", true),
            ("export default function a() {", "a", true),
            ("func (t *T) Name(a int) {", "(t *T) Name", true),
            ("  name(a, b) {", "name", true),
            ("  async name() {", "name", true),
            ("app.use = function use(fn) {", "app.use", true),
            ("const a = (b) => {", "a", true),
            ("int name(int a) {", "name", true),
            ("static void name(int a) {", "name", true),
            ("static struct entry* name(int a) {", "name", true),
            ("struct A<T> where T: B {", "A", true),
            ("static A: u8 = 1;", "A", false),
            ("let mut a = 1;", "a", false),
            ("const A: u8 = 1;", "A", false),
            ("x = 1", "x", false),
        ] {
            assert_eq!(declared(line), Some(Declared { name, is_block }), "{line}");
        }
        for line in [
            "if (a) {",
            "return a(b)",
            "call(a);",
            "it('does', () => {",
            "}",
            "a == b",
            "for x in y:",
            "a.b(c, {",
            "call(a, function (b) {",
        ] {
            assert_eq!(declared(line), None, "{line}");
        }
    }

    #[test]
    fn values_have_keys() {
        for (line, name) in [
            ("timeout: 3", "timeout"),
            ("\"a\": 1,", "\"a\""),
            ("pub const VERSION: &str = 2", "VERSION"),
            ("let mut a = 1;", "a"),
            ("app.use = 1", "app.use"),
            ("timeout:", "timeout"),
        ] {
            assert_eq!(key(line), Some(name), "{line}");
        }
        for line in ["a == b", "else:", "a::b()", "x => y", "call(a)", "fn a() -> u8 {", "}"] {
            assert_eq!(key(line), None, "{line}");
        }
        assert_eq!(attribute("#[derive(Debug)]"), Some("#[derive"));
        assert_eq!(attribute("  @app.route('/')"), Some("@app.route"));
        assert_eq!(attribute("# a"), None);
    }

    #[test]
    fn blocks_end_where_their_indentation_does() {
        let lines = [
            "fn a(",
            "    b: u8,",
            ") -> u8 {",
            "    b",
            "}",
            "fn c() {}",
            "fn d() {}",
        ];
        assert_eq!(block_end(&lines, 0), 5);
        assert_eq!(block_end(&lines, 5), 6);
        let lines = [
            "class A:",
            "    def b(",
            "        self,",
            "    ):",
            "        c()",
            "    d = 1",
            "e = 2",
        ];
        assert_eq!(block_end(&lines, 0), 6);
        assert_eq!(block_end(&lines, 1), 5);
        assert_eq!(ancestors(&lines, 4, 8), [1, 0]);
        assert_eq!(ancestors(&lines, 5, 4), [0]);
        assert_eq!(ancestors(&lines, 6, 0), [] as [usize; 0]);
        let lines = ["def a():", "    b()", "# once: c()", "    d()", "# about e", "def e():"];
        assert_eq!(block_end(&lines, 0), 4);
    }
}
