//! What is left of a program's output where only its colours are wanted.

/// The text with its colours, and without any other sequence and control.
pub fn only_colours(text: &str) -> String {
    let mut kept = String::new();
    let mut chars = text.chars().peekable();
    while let Some(it) = chars.next() {
        let is_bracketed = match it {
            '\u{1b}' => match chars.next() {
                Some('[') => true,
                // A string, which ends with a bell or a backslash behind an escape.
                Some(']' | 'P' | 'X' | '^' | '_') => {
                    while let Some(it) = chars.next() {
                        if it == '\u{7}' || it == '\u{9c}' || (it == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                            break;
                        }
                    }
                    continue;
                }
                Some(_) | None => continue,
            },
            '\u{9b}' => true,
            '\n' | '\t' => {
                kept.push(it);
                continue;
            }
            it if it.is_control() => continue,
            it => {
                kept.push(it);
                continue;
            }
        };
        if is_bracketed {
            let mut parameters = String::new();
            let end = chars.by_ref().find(|it| {
                let is_end = matches!(it, '@'..='~');
                if !is_end {
                    parameters.push(*it);
                }
                is_end
            });
            if end == Some('m') {
                kept.push_str("\u{1b}[");
                kept.push_str(&parameters);
                kept.push('m');
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colours_are_left_of_what_a_terminal_would_obey() {
        for (written, kept) in [
            ("\u{1b}[1;38;5;208mred\u{1b}[0m", "\u{1b}[1;38;5;208mred\u{1b}[0m"),
            ("\u{9b}31mred", "\u{1b}[31mred"),
            ("\u{1b}[2Ja\u{1b}[5;5Hb\u{1b}[?1049hc", "abc"),
            ("\u{1b}]52;c;aGk=\u{7}a\u{1b}]0;title\u{1b}\\b", "ab"),
            ("\u{1b}]8;;https://x\u{1b}\\a\u{1b}]8;;\u{1b}\\", "a"),
            ("\u{1b}P+q\u{1b}\\a\rb\u{8}\u{7}", "ab"),
            ("\u{1b}(0a\u{1b}", "0a"),
            ("a\u{1b}[31", "a"),
        ] {
            assert_eq!(only_colours(written), kept, "{written:?}");
        }
    }
}
