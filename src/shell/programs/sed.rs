//! The script of `sed`, as far as it says whether programs are run or files written.

use std::{iter::Peekable, str::Chars};

use crate::shell::ShellWord;

/// Effects of a script of `sed` beside printing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Script {
    Plain,
    /// It writes or reads files.
    Writes,
    /// It runs a program, or nobody can tell.
    Runs,
}

/// Options that take no value and change nothing on disk.
const PLAIN: [&str; 17] = [
    "-n",
    "-E",
    "-r",
    "-z",
    "-u",
    "-s",
    "-nE",
    "-En",
    "-nr",
    "-rn",
    "--quiet",
    "--silent",
    "--regexp-extended",
    "--null-data",
    "--posix",
    "--sandbox",
    "--debug",
];

/// Judges the scripts in the arguments of `sed`.
pub fn script(arguments: &[ShellWord]) -> Script {
    let mut found = Script::Plain;
    let mut has_script = false;
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let Some(text) = word.text.as_deref() else {
            if !has_script || word.may_be_option() {
                return Script::Runs;
            }
            continue;
        };
        let given = match text {
            "-e" | "-ne" | "--expression" => match rest.next().and_then(|it| it.text.as_deref()) {
                Some(script) => Some(script),
                None => return Script::Runs,
            },
            it if PLAIN.contains(&it) => None,
            it if it.starts_with("-i") || it.starts_with("--in-place") => {
                found = found.max(Script::Writes);
                None
            }
            it if it.starts_with('-') => match it.strip_prefix("--expression=").or_else(|| it.strip_prefix("-e")) {
                Some(script) => Some(script),
                None => return Script::Runs,
            },
            script if !has_script => Some(script),
            _ => None,
        };
        if let Some(script) = given {
            has_script = true;
            found = found.max(commands(script));
        }
    }
    if has_script { found } else { Script::Runs }
}

/// Skips a part of a command up to its delimiter. Returns false if there is none.
fn part(rest: &mut Peekable<Chars<'_>>, delimiter: char) -> bool {
    while let Some(it) = rest.next() {
        if it == delimiter {
            return true;
        }
        if it == '\\' {
            rest.next();
        }
    }
    false
}

/// Judges a script by its commands. What is not understood may run anything.
fn commands(script: &str) -> Script {
    let mut rest = script.chars().peekable();
    let mut found = Script::Plain;
    loop {
        while rest
            .next_if(|it| it.is_whitespace() || matches!(it, ';' | '{' | '}'))
            .is_some()
        {}
        if rest.peek().is_none() {
            return found;
        }
        // At most two addresses, each a number, the last line or a pattern.
        for _ in 0..2 {
            match rest.peek() {
                Some('/') => {
                    rest.next();
                    if !part(&mut rest, '/') {
                        return Script::Runs;
                    }
                    while rest.next_if(|it| matches!(it, 'I' | 'M')).is_some() {}
                }
                Some('\\') => {
                    rest.next();
                    let Some(delimiter) = rest.next() else {
                        return Script::Runs;
                    };
                    if !part(&mut rest, delimiter) {
                        return Script::Runs;
                    }
                }
                _ => {}
            }
            while rest
                .next_if(|it| it.is_ascii_digit() || matches!(it, '$' | '~' | '+' | ' ' | '\t'))
                .is_some()
            {}
            if rest.next_if_eq(&',').is_none() {
                break;
            }
            while rest.next_if_eq(&' ').is_some() {}
        }
        while rest.next_if(|it| matches!(it, '!' | ' ')).is_some() {}
        match rest.next() {
            None | Some('e') => return Script::Runs,
            Some('{' | '}' | ';') => continue,
            Some('=' | 'd' | 'D' | 'F' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z') => {}
            Some('q' | 'Q' | 'l' | 'L') => while rest.next_if(|it| it.is_ascii_digit() || *it == ' ').is_some() {},
            Some('b' | 't' | 'T' | ':' | 'v') => while rest.next_if(|it| !matches!(it, ';' | '\n' | '}')).is_some() {},
            // The text goes to the end of the line.
            Some('a' | 'i' | 'c' | '#') => while rest.next_if(|it| *it != '\n').is_some() {},
            Some('r' | 'R' | 'w' | 'W') => {
                found = found.max(Script::Writes);
                while rest.next_if(|it| *it != '\n').is_some() {}
            }
            Some('y') => {
                let Some(delimiter) = rest.next() else {
                    return Script::Runs;
                };
                if !part(&mut rest, delimiter) || !part(&mut rest, delimiter) {
                    return Script::Runs;
                }
            }
            Some('s') => {
                let delimiter = rest.next().filter(|it| !matches!(it, '\n' | '\\'));
                let Some(delimiter) = delimiter else {
                    return Script::Runs;
                };
                if !part(&mut rest, delimiter) || !part(&mut rest, delimiter) {
                    return Script::Runs;
                }
                while let Some(flag) = rest.next_if(char::is_ascii_alphanumeric) {
                    match flag {
                        'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' => {}
                        'w' => {
                            found = found.max(Script::Writes);
                            while rest.next_if(|it| *it != '\n').is_some() {}
                        }
                        _ => return Script::Runs,
                    }
                }
            }
            Some(_) => return Script::Runs,
        }
        // Nothing but an end may follow a command.
        while rest.next_if(|it| matches!(it, ' ' | '\t')).is_some() {}
        if rest
            .peek()
            .is_some_and(|it| !matches!(it, ';' | '\n' | '}' | '{' | '#'))
        {
            return Script::Runs;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_judged_by_its_commands() {
        for (script, expected) in [
            ("p", Script::Plain),
            ("1,20p", Script::Plain),
            ("$!N;P;D", Script::Plain),
            ("s/a/b/g", Script::Plain),
            ("s|/a/|/b/|2gI", Script::Plain),
            ("s/[/]/x/;s,a,b,", Script::Runs),
            ("s/a\\/b/x/;d", Script::Plain),
            ("/x/{p;q}", Script::Plain),
            ("/a/,/b/d", Script::Plain),
            ("\\,a,!d", Script::Plain),
            ("0~3d", Script::Plain),
            ("/a/,+2{s/x/e/;p}", Script::Plain),
            (":a;N;$!ba;s/\\n/ /g", Script::Plain),
            ("y/abc/xyz/", Script::Plain),
            ("$a e rm", Script::Plain),
            ("1i\\e", Script::Plain),
            ("w x", Script::Writes),
            ("s/a/b/w x", Script::Writes),
            ("r x", Script::Writes),
            ("e", Script::Runs),
            ("1e rm x", Script::Runs),
            ("1erm", Script::Runs),
            ("p;e rm", Script::Runs),
            ("p\ne rm", Script::Runs),
            ("$a x\ne rm", Script::Runs),
            ("/x/{e rm\n}", Script::Runs),
            ("s/a/b/e", Script::Runs),
            ("s/a/b/ge", Script::Runs),
            ("s/a/b/;s/a/rm/e", Script::Runs),
            ("s/a", Script::Runs),
            ("k", Script::Runs),
        ] {
            assert_eq!(commands(script), expected, "{script}");
        }
    }
}
