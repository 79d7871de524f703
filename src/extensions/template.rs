//! The body of a command or a skill with its arguments filled in.
//!
//! The body is taken apart before anything is filled in, so that no argument can become a command of the shell.

/// A part of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// A command whose output takes its place.
    Shell(String),
}

/// The values that are filled into a body.
#[derive(Clone, Debug, Default)]
pub struct Fill<'a> {
    /// The text behind the name.
    pub arguments: &'a str,
    /// Names of the arguments, in their order: `$name`.
    pub names: &'a [String],
    /// The number of the first argument: `$0` in skills, `$1` in commands.
    pub first: usize,
    /// The folder of a skill: `${CLAUDE_SKILL_DIR}`.
    pub folder: &'a str,
    /// `${CLAUDE_SESSION_ID}`
    pub session: &'a str,
    /// Text before arguments that the body does not ask for.
    pub label: &'a str,
}

/// The pieces of a body, filled in. Arguments that the body does not ask for come last.
pub fn pieces(body: &str, fill: &Fill<'_>) -> Vec<Piece> {
    let words = words(fill.arguments);
    let mut is_asked = false;
    let mut pieces: Vec<Piece> = split(body)
        .into_iter()
        .map(|piece| match piece {
            Piece::Text(text) => Piece::Text(filled(&text, fill, &words, &mut is_asked)),
            Piece::Shell(line) => Piece::Shell(filled(&line, fill, &words, &mut is_asked)),
        })
        .collect();
    let arguments = fill.arguments.trim();
    if !is_asked && !arguments.is_empty() {
        let rest = format!("\n\n{}{arguments}", fill.label);
        match pieces.last_mut() {
            Some(Piece::Text(text)) => {
                text.truncate(text.trim_end().len());
                text.push_str(&rest);
            }
            Some(Piece::Shell(_)) | None => pieces.push(Piece::Text(rest)),
        }
    }
    pieces
}

/// Takes a body apart: `` !`command` `` behind a blank or at the start of a line, and blocks that begin with ` ```! `.
fn split(body: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut block: Option<String> = None;
    let push = |text: &mut String, pieces: &mut Vec<Piece>| {
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(text)));
        }
    };
    for line in body.split_inclusive('\n') {
        if let Some(open) = &mut block {
            if line.trim() == "```" {
                pieces.push(Piece::Shell(open.trim_end().to_owned()));
                block = None;
                if line.ends_with('\n') {
                    text.push('\n');
                }
            } else {
                open.push_str(line);
            }
            continue;
        }
        if line.trim() == "```!" {
            push(&mut text, &mut pieces);
            block = Some(String::new());
            continue;
        }
        let mut rest = line;
        while let Some(at) = rest.find("!`") {
            let (before, after) = rest.split_at(at);
            let inner = after.get(2..).unwrap_or_default();
            let is_free = before.chars().next_back().is_none_or(char::is_whitespace);
            match inner.split_once('`') {
                Some((command, behind)) if is_free && !command.trim().is_empty() => {
                    text.push_str(before);
                    push(&mut text, &mut pieces);
                    pieces.push(Piece::Shell(command.trim().to_owned()));
                    rest = behind;
                }
                _ => {
                    text.push_str(before);
                    text.push_str("!`");
                    rest = inner;
                }
            }
        }
        text.push_str(rest);
    }
    // A block that is never closed is text.
    if let Some(open) = block {
        text.push_str("```!\n");
        text.push_str(&open);
    }
    push(&mut text, &mut pieces);
    pieces
}

/// One pass from left to right: what was filled in is not looked at again.
fn filled(text: &str, fill: &Fill<'_>, words: &[String], is_asked: &mut bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let found = value(after, fill, words);
        match found {
            // `\$1` is written as it stands.
            Some((_, name)) if before.ends_with('\\') => {
                out.pop();
                out.push('$');
                out.push_str(after.get(..name).unwrap_or_default());
                rest = after.get(name..).unwrap_or_default();
            }
            Some((value, name)) => {
                *is_asked |= !after.starts_with('{');
                out.push_str(&value);
                rest = after.get(name..).unwrap_or_default();
            }
            None => {
                out.push('$');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The value of the name at the beginning of `after`, which followed a `$`, and the length of the name.
fn value(after: &str, fill: &Fill<'_>, words: &[String]) -> Option<(String, usize)> {
    let word = |at: usize| words.get(at).cloned().unwrap_or_default();
    for (name, value) in [
        ("{CLAUDE_SKILL_DIR}", fill.folder),
        ("{CLAUDE_SESSION_ID}", fill.session),
    ] {
        if after.starts_with(name) && !value.is_empty() {
            return Some((value.to_owned(), name.len()));
        }
    }
    if let Some(behind) = after.strip_prefix("ARGUMENTS") {
        let number = behind.strip_prefix('[').and_then(|it| it.split_once(']'));
        let number = number.and_then(|(it, _)| Some((it.parse::<usize>().ok()?, it.len())));
        return Some(match number {
            Some((at, digits)) => (word(at), "ARGUMENTS".len() + digits + 2),
            None => (fill.arguments.trim().to_owned(), "ARGUMENTS".len()),
        });
    }
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 {
        // `$10` is more likely a price.
        let number: usize = after.get(..digits).filter(|it| it.len() == 1)?.parse().ok()?;
        return Some((word(number.checked_sub(fill.first)?), digits));
    }
    let letters = after
        .bytes()
        .take_while(|it| it.is_ascii_alphanumeric() || *it == b'_')
        .count();
    let name = after.get(..letters)?;
    let at = fill.names.iter().position(|it| it == name)?;
    Some((word(at), letters))
}

/// The arguments of a line: words, or texts in quotes.
fn words(arguments: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for it in arguments.chars() {
        match (quote, it) {
            (Some(open), it) if it == open => quote = None,
            (None, '"' | '\'') if word.is_none() => {
                quote = Some(it);
                word = Some(String::new());
            }
            (None, it) if it.is_whitespace() => words.extend(word.take()),
            (_, it) => word.get_or_insert_default().push(it),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body: &str, arguments: &str, first: usize) -> String {
        let names = ["issue".to_owned(), "branch".to_owned()];
        let fill = Fill {
            arguments,
            names: &names,
            first,
            folder: "/skills/x",
            session: "s1",
            label: "",
        };
        let shown = |it: &Piece| match it {
            Piece::Text(text) => text.clone(),
            Piece::Shell(line) => format!("<{line}>"),
        };
        pieces(body, &fill).iter().map(shown).collect()
    }

    #[test]
    fn arguments_go_where_the_body_asks_for_them() {
        for (body, arguments, message) in [
            ("Fix $ARGUMENTS now.", "the cart", "Fix the cart now."),
            ("Move $1 to $2.", "a b c", "Move a to b."),
            ("Move $1 to $2.", "a", "Move a to ."),
            ("Move $1 to $2.", "'a b' \"c d\"", "Move a b to c d."),
            ("It costs $5 or $10.", "1 2 3 4 five", "It costs five or $10."),
            ("$ARGUMENTS[0]/$ARGUMENTS[1]", "a b", "a/b"),
            ("#$issue on $branch, $other", "7 main", "#7 on main, $other"),
            ("Review it.\n", "", "Review it.\n"),
            ("Review it.\n", "all of it", "Review it.\n\nall of it"),
            ("$ARGUMENTS", "$ARGUMENTS $1", "$ARGUMENTS $1"),
            ("a $ b", "", "a $ b"),
            ("\\$1 is $1", "x", "$1 is x"),
            ("don't $1", "it's ok", "don't it's"),
            ("${CLAUDE_SKILL_DIR}/run ${CLAUDE_SESSION_ID}", "", "/skills/x/run s1"),
        ] {
            assert_eq!(text(body, arguments, 1), message, "{body:?} {arguments:?}");
        }
        assert_eq!(text("$0 and $1", "a b", 0), "a and b", "skills count from 0");
        assert_eq!(
            text("${CLAUDE_SKILL_DIR}", "x", 1),
            "/skills/x\n\nx",
            "a folder is no argument"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_argument_becomes_a_command(body in "[$!`{}\\\\ \nA-C0-2]{0,40}", arguments in "[!`$ \na-c\"']{0,20}") {
            let count = |arguments: &str| {
                let fill = Fill { arguments, first: 1, ..Fill::default() };
                pieces(&body, &fill).iter().filter(|it| matches!(it, Piece::Shell(_))).count()
            };
            proptest::prop_assert_eq!(count(&arguments), count(""));
        }
    }

    #[test]
    fn commands_of_the_shell_are_found_before_arguments_are_filled_in() {
        for (body, arguments, pieces) in [
            ("Diff: !`git diff $1`\nEnd", "a", "Diff: <git diff a>\nEnd"),
            ("!`git status` and !`git log`", "", "<git status> and <git log>"),
            ("wow!`x` and `!` and !``", "", "wow!`x` and `!` and !``"),
            ("```!\nls\npwd\n```\nEnd", "", "<ls\npwd>\nEnd"),
            ("```!\nls", "", "```!\nls"),
            ("Say $ARGUMENTS", "!`rm -rf /`", "Say !`rm -rf /`"),
        ] {
            assert_eq!(text(body, arguments, 1), pieces, "{body:?} {arguments:?}");
        }
    }
}
