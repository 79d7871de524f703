//! A sketch of a change: the changed parts of a file, with marks such as `// ... existing code ...` for what stays.
//!
//! A mark is told from code by its words, in any language's comments. Between the marks stand [`Part`]s; a mark that is
//! missing at the start or the end is thought of as there, because models forget it far more often than they mean to
//! delete what it stands for.

use super::text::rows;
use crate::text::WordList;

/// Lines of a sketch between two marks, without blank lines at the edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// At least one; none of its edge lines is blank.
    pub lines: Vec<&'a str>,
    /// The line of the sketch that it begins in, counted from 1.
    pub first: usize,
}

/// Words of a mark beside its dots.
const WORDS: [&str; 7] = [
    "existing",
    "rest of",
    "unchanged",
    "keep",
    "same",
    "remaining",
    "previous",
];

/// Beginnings and ends of comments. Longer ones come before those that they begin with.
const COMMENTS: [(&str, &str); 14] = [
    ("{/*", "*/}"),
    ("<%--", "--%>"),
    ("<!--", "-->"),
    ("{{!--", "--}}"),
    ("{#", "#}"),
    ("(*", "*)"),
    ("/*", "*/"),
    ("//", ""),
    ("--", ""),
    ("#", ""),
    (";", ""),
    ("%", ""),
    ("'", ""),
    ("\"", ""),
];

/// Languages in which three dots alone on a line can be code: a body, a range, a spread, a variable list, an end.
const DOTTED: WordList = WordList(
    "c cpp csharp css dart go haskell java javascript jsx julia lua objective-c perl php python r ruby rust scala
     svelte swift tsx typescript vue yaml",
);

/// The parts of a sketch for a file in `language` (a tag of ours), and whether it has any mark.
pub fn parts<'a>(sketch: &'a str, language: &str) -> (Vec<Part<'a>>, bool) {
    let mut parts = Vec::new();
    let mut is_marked = false;
    let mut open = Part {
        lines: Vec::new(),
        first: 1,
    };
    let close = |part: Part<'a>, parts: &mut Vec<Part<'a>>| {
        let is_blank = |it: &&str| it.trim().is_empty();
        let Some(from) = part.lines.iter().position(|it| !is_blank(it)) else {
            return;
        };
        let until = part
            .lines
            .iter()
            .rposition(|it| !is_blank(it))
            .map_or(from, |it| it + 1);
        parts.push(Part {
            lines: part.lines[from..until].to_vec(),
            first: part.first + from,
        });
    };
    for (at, line) in rows(sketch).into_iter().enumerate() {
        if is_mark(line, language) {
            is_marked = true;
            let next = Part {
                lines: Vec::new(),
                first: at + 2,
            };
            close(std::mem::replace(&mut open, next), &mut parts);
        } else {
            open.lines.push(line);
        }
    }
    close(open, &mut parts);
    (parts, is_marked)
}

/// Returns true if a line stands for unchanged code, in a file of `language`.
pub fn is_mark(line: &str, language: &str) -> bool {
    let line = line.trim();
    // What no line of a mark is longer than.
    if line.len() > 200 || !(line.contains("...") || line.contains('…')) {
        return false;
    }
    let (text, is_comment) = uncommented(line);
    let begins = text.starts_with("...") || text.starts_with('…');
    let ends = text.ends_with("...") || text.ends_with('…');
    if !begins && !ends {
        return false;
    }
    let is_dot = |it: char| it == '.' || it == '…';
    let words = text.trim_matches(is_dot).trim();
    if words.is_empty() {
        return is_comment || !DOTTED.contains(language);
    }
    let lower = words.to_lowercase();
    if !WORDS.iter().any(|it| lower.contains(it)) {
        return false;
    }
    if is_comment {
        return true;
    }
    // Outside of a comment, `...previous,` is code: a mark is words.
    let is_word = |it: char| it.is_alphabetic() || matches!(it, ' ' | '-' | '\'' | '’' | ',');
    words.contains(' ') && words.chars().all(is_word) && !words.ends_with([',', '\''])
}

/// A line without the signs of a comment, and whether it had any.
fn uncommented(line: &str) -> (&str, bool) {
    for (open, close) in COMMENTS {
        let Some(rest) = line.strip_prefix(open) else {
            continue;
        };
        // `////`, `;;`, `##`: the sign may be said more than once.
        let sign = open.chars().last().unwrap_or(' ');
        let rest = rest.trim_start_matches([sign, '!']);
        // `--keep`, `%s` and `#keep` are no comments.
        if close.is_empty() && open != "//" && !rest.starts_with([' ', '\t', '.', '…']) {
            continue;
        }
        let rest = rest.trim();
        if matches!(open, "'" | "\"") {
            // Far more lines begin with a string than with such a comment.
            return (rest, false);
        }
        // A comment may go on in the next line.
        let rest = rest.strip_suffix(close).unwrap_or(rest);
        return (rest.trim_end_matches(sign).trim(), true);
    }
    (line, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_known_in_any_comment() {
        for line in [
            "// ... existing code ...",
            "    // ... existing code ...",
            "# ... existing code ...",
            "-- ... existing code ...",
            "; ... existing code ...",
            ";; ... existing code ...",
            "% ... existing code ...",
            "/* ... existing code ... */",
            "<!-- ... existing code ... -->",
            "{/* ... existing code ... */}",
            "(* ... existing code ... *)",
            "' ... existing code ...",
            "\" ... existing code ...",
            "{# ... existing code ... #}",
            "<%-- ... existing code ... --%>",
            "... existing code ...",
            "…existing code…",
            "// …",
            "# ...",
            "/// ... rest of the function",
            "// rest of the methods ...",
            "//... Keep the imports...",
            "# ... (remaining tests unchanged) ...",
            "// ... same as before ...",
            "# ... previous content ...",
            "/* ... unchanged ... */",
        ] {
            assert!(is_mark(line, "rust"), "{line}");
        }
    }

    #[test]
    fn code_and_plain_comments_are_no_marks() {
        for line in [
            "",
            "...",
            "let rest = ..;",
            "// existing code",
            "// wait for it ...",
            "// the existing ... way of things",
            "...previous,",
            "...remaining",
            "    ...keep(existing),",
            "print(\"same...",
            "fn f(existing: u8, ...",
            "x = existing ...",
            "for i in 0...same {",
            "assert existing == ...",
            "// ... and then some ...",
            "'... keep going',",
            "\"...same as before\",",
            "'... keep going'",
            "--keep-going ...",
            "%s remaining...",
            "#keep ...",
        ] {
            assert!(!is_mark(line, "python"), "{line}");
        }
        assert!(is_mark("...", "markdown"));
        assert!(is_mark("...", "bash"));
        assert!(!is_mark("...", "rust"));
        assert!(!is_mark("...", "yaml"));
    }

    #[test]
    fn a_sketch_is_cut_at_its_marks() {
        let sketch =
            "// ... existing code ...\n\nfn a() {\n\n}\n\n// ... existing code ...\n// ... rest of it ...\nlast\n";
        let (parts, is_marked) = parts(sketch, "rust");
        assert!(is_marked);
        assert_eq!(
            parts,
            [
                Part {
                    lines: vec!["fn a() {", "", "}"],
                    first: 3
                },
                Part {
                    lines: vec!["last"],
                    first: 9
                },
            ]
        );
        assert_eq!(super::parts("\n\n", "rust"), (vec![], false));
        assert_eq!(super::parts("# ...\n \n", "rust"), (vec![], true));
        assert!(!super::parts("a\nb", "rust").1);
    }
}
