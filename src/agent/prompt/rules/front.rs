//! The head of a rule file: `key: value` lines between two `---`.
//!
//! It looks like YAML and is not: `globs: *.rs` stands in thousands of files. So it is read line by line, and whatever
//! cannot be read is left out rather than refused.

/// The front matter of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Front {
    pub description: String,
    pub globs: Vec<String>,
    /// The text belongs into every conversation.
    pub is_always: bool,
}

/// The head, if there is one, and the text behind it.
pub fn split(text: &str) -> (Option<Front>, &str) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some((first, mut rest)) = text.split_once('\n') else {
        return (None, text);
    };
    if first.trim_end() != "---" {
        return (None, text);
    }
    let mut lines = Vec::new();
    loop {
        let (line, after, is_last) = match rest.split_once('\n') {
            Some((line, after)) => (line, after, false),
            None => (rest, "", true),
        };
        if line.trim_end() == "---" {
            return (Some(read(&lines)), after);
        }
        if is_last {
            return (None, text);
        }
        lines.push(line.trim_end());
        rest = after;
    }
}

fn read(lines: &[&str]) -> Front {
    let mut front = Front::default();
    let mut lines = lines.iter().copied().peekable();
    while let Some(line) = lines.next() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        // A nested table or a list is not ours.
        if key.starts_with([' ', '\t', '#', '-']) {
            continue;
        }
        let key: String = key.chars().filter(char::is_ascii_alphabetic).collect();
        let value = value.trim();
        let mut below = || {
            let mut below = Vec::new();
            while let Some(line) = lines.next_if(|it| is_below(it)) {
                below.push(line.trim());
            }
            below
        };
        match key.to_ascii_lowercase().as_str() {
            "description" => front.description = prose(value, &below()),
            "globs" => front.globs = globs(value, &below()),
            "alwaysapply" => front.is_always = unquoted(without_comment(value)).eq_ignore_ascii_case("true"),
            _ => {}
        }
    }
    front
}

/// Returns true if a line belongs to the key above it: it is indented, an item of a list, or closes one.
fn is_below(line: &str) -> bool {
    let text = line.trim_start();
    line.starts_with([' ', '\t']) || text.starts_with("- ") || text == "-" || text.starts_with(']') || text.is_empty()
}

/// A text: on the line, or below a `>` or `|`.
fn prose(value: &str, below: &[&str]) -> String {
    let is_block = matches!(value, "" | ">" | "|" | ">-" | "|-" | ">+" | "|+");
    let first = if is_block { "" } else { value };
    let words: Vec<&str> = std::iter::once(first)
        .chain(below.iter().copied())
        .filter(|it| !it.is_empty())
        .collect();
    let text = words.join(" ");
    match unquoted(&text) {
        // Nothing, as YAML has it.
        "null" | "~" => String::new(),
        text => text.to_owned(),
    }
}

/// Patterns: between commas, as a list in brackets or as one below; what is quoted loses its quotes.
fn globs(value: &str, below: &[&str]) -> Vec<String> {
    let value = without_comment(value);
    let mut text = value.to_owned();
    let is_flow = value.starts_with('[') && !value.contains(']');
    for line in below {
        let line = without_comment(line);
        match line.strip_prefix('-') {
            Some(item) if !is_flow => {
                text.push(',');
                text.push_str(item.trim());
            }
            _ => {
                if !is_flow {
                    text.push(',');
                }
                text.push_str(line);
            }
        }
    }
    let text = unquoted(text.trim());
    let text = text
        .strip_prefix('[')
        .filter(|_| is_list(text))
        .map_or(text, |it| it.trim_end().trim_end_matches(']'));
    let mut found = Vec::new();
    let mut depth = 0_usize;
    let mut start = 0;
    let mut push = |item: &str| {
        let item = unquoted(item.trim());
        if !item.is_empty() && item != "null" && item != "~" && item != "[]" {
            found.push(item.to_owned());
        }
    };
    for (at, it) in text.char_indices() {
        match it {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                push(text.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            _ => {}
        }
    }
    push(text.get(start..).unwrap_or_default());
    found
}

/// Returns true if a text in brackets is a list and not a pattern such as `[ab].rs`.
fn is_list(text: &str) -> bool {
    let inner = text.strip_prefix('[').and_then(|it| it.trim_end().strip_suffix(']'));
    inner.is_some_and(|it| !it.contains(']') || it.contains(',') || it.contains('"') || it.contains('\''))
}

fn without_comment(value: &str) -> &str {
    if value.starts_with('#') {
        return "";
    }
    value.split_once(" #").map_or(value, |it| it.0).trim_end()
}

fn unquoted(text: &str) -> &str {
    for quote in ['"', '\''] {
        let inner = text.strip_prefix(quote).and_then(|it| it.strip_suffix(quote));
        // `"a", "b"` begins and ends with a quote and is not in quotes.
        if let Some(inner) = inner.filter(|it| !it.contains(quote)) {
            return inner.trim();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    /// `None`, or what a head says: `always`, then globs, then the description.
    fn shown(text: &str) -> String {
        let (front, _) = split(text);
        let Some(front) = front else {
            return "none".to_owned();
        };
        let always = if front.is_always { "always" } else { "" };
        format!("{always}|{}|{}", front.globs.join(" "), front.description)
    }

    #[test]
    fn heads_in_all_the_forms_that_occur() {
        for (name, text, want) in [
            (
                "all three",
                "---\ndescription: Errors\nglobs: src/**/*.rs,tests/**/*.rs\nalwaysApply: false\n---\nx",
                "|src/**/*.rs tests/**/*.rs|Errors",
            ),
            ("always", "---\nalwaysApply: true\n---\n", "always||"),
            ("always in capitals", "---\nalwaysApply: True\n---\n", "always||"),
            ("always in quotes", "---\nalwaysApply: \"true\"\n---\n", "always||"),
            (
                "always with a comment",
                "---\nalwaysApply: true # for now\n---\n",
                "always||",
            ),
            ("a yes is no true", "---\nalwaysApply: yes\n---\n", "||"),
            ("a one is no true", "---\nalwaysApply: 1\n---\n", "||"),
            ("a bare star", "---\nglobs: *.rs\n---\n", "|*.rs|"),
            (
                "a brace with a comma",
                "---\nglobs: **/*.{ts,tsx}, src/*\n---\n",
                "|**/*.{ts,tsx} src/*|",
            ),
            (
                "braces in braces",
                "---\nglobs: {a,{b,c}}/*.md,*.x\n---\n",
                "|{a,{b,c}}/*.md *.x|",
            ),
            ("a brace that stays open", "---\nglobs: *.{ts,tsx\n---\n", "|*.{ts,tsx|"),
            (
                "empty values",
                "---\ndescription:\nglobs:\nalwaysApply: false\n---\n",
                "||",
            ),
            (
                "empty values with blanks behind",
                "---\ndescription: \nglobs: \nalwaysApply: false\n---\n",
                "||",
            ),
            (
                "a flow list",
                "---\nglobs: [\"a/*.ts\", 'b/*.ts', c]\n---\n",
                "|a/*.ts b/*.ts c|",
            ),
            ("an empty flow list", "---\nglobs: []\n---\n", "||"),
            (
                "a flow list over lines",
                "---\nglobs: [\n  \"*.ts\",\n  \"*.tsx\"\n]\nalwaysApply: true\n---\n",
                "always|*.ts *.tsx|",
            ),
            (
                "a list below",
                "---\nglobs:\n  - src/**\n  - \"*.md\"\ndescription: d\n---\n",
                "|src/** *.md|d",
            ),
            ("a list below at the margin", "---\nglobs:\n- a\n- b\n---\n", "|a b|"),
            ("a class is no list", "---\nglobs: [ab]*.rs\n---\n", "|[ab]*.rs|"),
            (
                "quotes around all",
                "---\nglobs: \"*.rs, *.toml\"\n---\n",
                "|*.rs *.toml|",
            ),
            (
                "quotes around each",
                "---\nglobs: \"*.rs\", \"*.toml\"\n---\n",
                "|*.rs *.toml|",
            ),
            ("commas at the ends", "---\nglobs: ,*.rs,, *.md,\n---\n", "|*.rs *.md|"),
            ("a null", "---\nglobs: null\ndescription: ~\n---\n", "||"),
            ("a comment behind globs", "---\nglobs: *.rs # ours\n---\n", "|*.rs|"),
            (
                "a colon in the description",
                "---\ndescription: Use: this, \"always\"\n---\n",
                "||Use: this, \"always\"",
            ),
            (
                "a hash in the description",
                "---\ndescription: See issue #12\n---\n",
                "||See issue #12",
            ),
            (
                "a folded description",
                "---\ndescription: >\n  two\n  lines\nglobs: *.c\n---\n",
                "|*.c|two lines",
            ),
            ("a literal description", "---\ndescription: |-\n  one\n---\n", "||one"),
            (
                "quotes around the description",
                "---\ndescription: 'quoted'\n---\n",
                "||quoted",
            ),
            (
                "lines of Windows",
                "---\r\ndescription: d\r\nglobs: *.rs\r\nalwaysApply: true\r\n---\r\nx",
                "always|*.rs|d",
            ),
            ("a mark of byte order", "\u{feff}---\ndescription: d\n---\n", "||d"),
            (
                "unknown keys and tables",
                "---\ntitle: t\nmeta:\n  globs: no\n  x: y\ntags: [a]\ndescription: d\n---\n",
                "||d",
            ),
            ("a comment line", "---\n# globs: no\ndescription: d\n---\n", "||d"),
            (
                "other spellings of the key",
                "---\nalways_apply: true\nGlobs: *.x\n---\n",
                "always|*.x|",
            ),
            ("no closing line", "---\ndescription: d\n", "none"),
            ("no closing line, but a ruler", "---\ndescription: d\n----\n", "none"),
            ("nothing but text", "Errors are enums.\n", "none"),
            ("a ruler later", "text\n---\nglobs: x\n---\n", "none"),
            ("an empty head", "---\n---\ntext", "||"),
            ("the closing line is the last", "---\ndescription: d\n---", "||d"),
            ("a blank behind the rulers", "--- \ndescription: d\n---  \n", "||d"),
            ("an empty file", "", "none"),
            ("the last word counts", "---\nglobs: a\nglobs: b\n---\n", "|b|"),
        ] {
            assert_eq!(shown(text), want, "{name}");
        }
    }

    #[test]
    fn the_text_is_what_stands_behind_the_head() {
        for (text, want) in [
            ("---\na: b\n---\nText\n---\nmore", "Text\n---\nmore"),
            ("---\na: b\nText", "---\na: b\nText"),
            ("\u{feff}Text", "Text"),
            ("---", "---"),
        ] {
            assert_eq!(split(text).1, want, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn no_head_is_too_odd(text in "(---\n|globs: |description: |[a\\[\\]{},:'\"#> \n\r*-]){0,24}") {
            let (_, body) = split(&text);
            prop_assert!(text.ends_with(body));
        }

        /// Front matter in the plain form is read back unchanged.
        #[test]
        fn plain_heads_are_read_back(globs in prop::collection::vec("[a-z*/.]{1,8}", 0..5), always in any::<bool>(), about in "[a-z][a-z ]{0,20}[a-z]") {
            prop_assume!(globs.iter().all(|it| it != "null"));
            prop_assume!(about != "null");
            let text = format!("---\ndescription: {about}\nglobs: {}\nalwaysApply: {always}\n---\nbody", globs.join(","));
            let want = Front { description: about, globs, is_always: always };
            prop_assert_eq!(split(&text), (Some(want), "body"));
        }
    }
}
