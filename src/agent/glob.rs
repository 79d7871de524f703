//! Which files a rule is for: patterns over paths with `/`.
//!
//! `*` and `?` stop at a `/`, `**` does not, none of them takes the dot at the start of a name; `[..]` and `{a,b}`; case
//! counts. A pattern without `/` is for names at any depth. One that begins with `!` takes files out again.

use regex::Regex;

/// A list of patterns.
#[derive(Clone, Debug, Default)]
pub struct Globs {
    wanted: Vec<Pattern>,
    unwanted: Vec<Pattern>,
}

#[derive(Clone, Debug)]
struct Pattern {
    regex: Regex,
    /// It is for the name alone.
    is_name: bool,
}

/// A longer pattern is no pattern.
const PATTERN_BYTES: usize = 1 << 10;
/// More patterns in one rule are left out.
const PATTERNS: usize = 256;

impl Globs {
    /// The patterns, and those of them that cannot be read.
    pub fn new<T: AsRef<str>>(patterns: &[T]) -> (Self, Vec<String>) {
        let mut globs = Self::default();
        let mut unread = Vec::new();
        for (at, written) in patterns.iter().map(AsRef::as_ref).enumerate() {
            let (list, pattern) = match written.strip_prefix('!') {
                Some(rest) => (&mut globs.unwanted, rest),
                None => (&mut globs.wanted, written),
            };
            match Pattern::new(pattern).filter(|_| at < PATTERNS) {
                Some(pattern) => list.push(pattern),
                None => unread.push(written.to_owned()),
            }
        }
        (globs, unread)
    }

    /// Returns true if a file matches; `path` is relative to the folder of the rule.
    pub fn matches(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_in = |list: &[Pattern]| {
            list.iter()
                .any(|it| it.regex.is_match(if it.is_name { name } else { path }))
        };
        is_in(&self.wanted) && !is_in(&self.unwanted)
    }
}

impl Pattern {
    fn new(written: &str) -> Option<Self> {
        let written = written.trim();
        if written.is_empty() || written.len() > PATTERN_BYTES {
            return None;
        }
        let is_name = !written.contains('/');
        let pattern = written.strip_prefix("./").unwrap_or(written).trim_start_matches('/');
        // A folder is all that it holds.
        let whole = if pattern.ends_with('/') || pattern.is_empty() {
            format!("{pattern}**")
        } else {
            pattern.to_owned()
        };
        let regex = format!(r"\A(?s:{})\z", regex_of(&whole)?);
        let regex = Regex::new(&regex).ok()?;
        Some(Self { regex, is_name })
    }
}

/// The pattern in the regex crate's words; `None` when a brace or a bracket stays open.
fn regex_of(pattern: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = pattern.chars().peekable();
    // Whether the next character begins a name; for each open brace, how it began.
    let mut begins = true;
    let mut braces: Vec<bool> = Vec::new();
    while let Some(it) = chars.next() {
        let at_start = std::mem::take(&mut begins);
        match it {
            '*' => {
                let mut stars = 1;
                while chars.next_if_eq(&'*').is_some() {
                    stars += 1;
                }
                let is_whole = stars > 1 && at_start;
                if is_whole && chars.peek() == Some(&'/') {
                    chars.next();
                    out.push_str("(?:[^/.][^/]*/)*");
                    begins = true;
                } else if is_whole {
                    out.push_str("(?:[^/.][^/]*/)*(?:[^/.][^/]*)?");
                } else if stars > 1 {
                    out.push_str("[^/]*(?:/[^/.][^/]*)*");
                } else if at_start && chars.peek() == Some(&'.') {
                    out.push_str("[^/.][^/]*");
                } else if at_start {
                    // It may be nothing, and then the next sign begins the name.
                    out.push_str("(?:[^/.][^/]*)?");
                    begins = true;
                } else {
                    out.push_str("[^/]*");
                }
            }
            '?' => out.push_str(if at_start { "[^/.]" } else { "[^/]" }),
            '[' => {
                let mut class = String::new();
                let mut is_closed = false;
                let is_not = chars.next_if(|it| matches!(it, '!' | '^')).is_some();
                for it in chars.by_ref() {
                    match it {
                        // In the first place it stands for itself.
                        ']' if !class.is_empty() => {
                            is_closed = true;
                            break;
                        }
                        '-' => class.push('-'),
                        it => class.push_str(&regex::escape(it.encode_utf8(&mut [0; 4]))),
                    }
                }
                if !is_closed {
                    return None;
                }
                let class = class.replace('&', r"\&").replace('~', r"\~");
                out.push_str(&match (is_not, at_start) {
                    (true, true) => format!("[^/.{class}]"),
                    (true, false) => format!("[^/{class}]"),
                    (false, _) => format!("[{class}&&[^/]]"),
                });
            }
            '{' => {
                braces.push(at_start);
                out.push_str("(?:");
                begins = at_start;
            }
            ',' if !braces.is_empty() => {
                out.push('|');
                begins = braces.last().copied().unwrap_or_default();
            }
            '}' if !braces.is_empty() => {
                braces.pop();
                out.push(')');
                // `{a/,b/}*`: what follows begins a name.
                begins = out.ends_with("/)");
            }
            '/' => {
                out.push('/');
                begins = true;
            }
            '\\' => out.push_str(&regex::escape(chars.next().unwrap_or('\\').encode_utf8(&mut [0; 4]))),
            it => out.push_str(&regex::escape(it.encode_utf8(&mut [0; 4]))),
        }
    }
    braces.is_empty().then_some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_and_paths() {
        for (pattern, yes, no) in [
            ("*.rs", "a.rs src/a.rs x/y/a.rs", "a.rst .rs src/.rs a.RS"),
            ("src/*.rs", "src/a.rs", "a.rs src/x/a.rs lib/src/a.rs src/.a.rs"),
            ("/src/*.rs", "src/a.rs", "x/src/a.rs"),
            ("./src/*.rs", "src/a.rs", "x/src/a.rs"),
            ("src/**/*.rs", "src/a.rs src/x/y/a.rs", "a.rs src/.git/a.rs"),
            ("**/*.rs", "a.rs x/a.rs", ".x/a.rs"),
            ("**", "a x/b .x/a", ".a x/.b"),
            ("src/**", "src/a src/x/b", "src x/src/a src/.a"),
            ("src/", "src/a src/x/b", "src"),
            ("**/test/**", "test/a x/test/y/a", "tests/a"),
            ("**.ts", "a.ts x/a.ts", "a.tsx"),
            ("src/x**.ts", "src/x.ts src/xa/b.ts", "src/a.ts"),
            ("*.{ts,tsx}", "a.ts x/a.tsx", "a.js a.{ts,tsx}"),
            ("{src,tests}/**/*.rs", "src/a.rs tests/x/a.rs", "benches/a.rs"),
            ("{a/,b/}*.c", "a/x.c b/x.c", "c/x.c a/.x.c"),
            ("{*.a,b}", "x.a b", ".a"),
            ("?.rs", "a.rs ä.rs", "ab.rs ..rs"),
            ("x?y", "xay", "x/y xy"),
            ("[ab].rs", "a.rs b.rs", "c.rs"),
            ("[!ab].rs", "c.rs", "a.rs ..rs"),
            ("[a-c]x", "bx", "dx"),
            ("x[^/]y", "xzy", "x/y"),
            (".env", ".env x/.env", "env"),
            (".*", ".env", "a"),
            (".github/**", ".github/a .github/x/y", ".github/.x github/a"),
            ("Makefile", "Makefile x/Makefile", "makefile"),
            ("a.b", "a.b", "axb"),
            ("a\\*b", "a*b", "axb"),
            ("(a)+", "(a)+", "a aa"),
        ] {
            let (globs, unread) = Globs::new(&[pattern]);
            assert_eq!(unread, Vec::<String>::new(), "{pattern}");
            for path in yes.split(' ') {
                assert!(globs.matches(path), "{pattern} is for {path}");
            }
            for path in no.split(' ') {
                assert!(!globs.matches(path), "{pattern} is not for {path}");
            }
        }
    }

    #[test]
    fn a_list_is_for_what_any_names_and_none_takes_out() {
        let (globs, unread) = Globs::new(&["*.rs", "*.md", "!**/gen/**", "*.{a", "x[y", ""]);
        assert_eq!(unread, ["*.{a", "x[y", ""]);
        for (path, is_meant) in [("a.rs", true), ("a.md", true), ("x/gen/a.rs", false), ("a.c", false)] {
            assert_eq!(globs.matches(path), is_meant, "{path}");
        }
        assert!(!Globs::default().matches("a"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn no_pattern_is_too_odd(pattern in "[a*?/.{},!\\[\\]\\\\^&~-]{0,16}", path in "[a./]{0,12}") {
            Globs::new(&[pattern]).0.matches(&path);
        }

        #[test]
        fn a_path_without_signs_is_for_itself(path in "[a-z][a-z.]{0,4}(/[a-z][a-z.]{0,4}){0,3}") {
            prop_assert!(Globs::new(&[&path]).0.matches(&path));
        }
    }
}
