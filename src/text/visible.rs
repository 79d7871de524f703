//! Text for a decision: where a person approves a command or a path, nothing may hide, so what would be dropped
//! elsewhere is written out here. `rm x‹U+202E›` instead of `rm x`, `a ·×5000 b` instead of a row of nothing.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar as _;

use super::clean::{Sanitized, ZWJ, ZWNJ, is_hidden, is_selector};

/// Blanks in a row that are shown as they are; text after more of them would be out of sight.
const MOST_BLANKS: usize = 8;
/// As in clean text: more marks on one character cover their neighbours.
const MOST_MARKS: usize = 8;

/// `text` with every invisible, blank-looking or controlling character written out; line breaks stay.
pub fn visible(text: &str) -> Sanitized {
    show(text, true)
}

/// Like [`visible`], for text of one row such as a path: line breaks are written out, too.
pub fn visible_line(text: &str) -> Sanitized {
    show(text, false)
}

/// `text` for the title of the terminal's window: one row, blanks run together, at most 120 characters.
pub fn title(text: &str) -> Sanitized {
    const MOST: usize = 120;
    let line = Sanitized::line(text);
    let mut out = String::new();
    let mut chars = 0;
    for word in line.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
        chars += word.chars().count() + 1;
        if chars > MOST {
            out = out.chars().take(MOST - 1).collect();
            out.push('…');
            break;
        }
    }
    Sanitized::from(out)
}

fn show(text: &str, keeps_lines: bool) -> Sanitized {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut marks = 0;
    // Writing to a string does not fail.
    while let Some(c) = chars.next() {
        if c == ' ' || c == '\t' || (c == '\n' && keeps_lines) {
            marks = 0;
            let mut run = String::from(c);
            while let Some(next) = chars.next_if(|&it| it == c || (c != '\n' && (it == ' ' || it == '\t'))) {
                run.push(next);
            }
            let count = run.len();
            if count <= MOST_BLANKS {
                out.push_str(&run);
            } else if c == '\n' {
                let _ = writeln!(out, "\n‹U+000A›×{count}");
            } else {
                let _ = write!(out, "·×{count}");
            }
            continue;
        }
        let mark = c.width() == Some(0);
        marks = if mark { marks + 1 } else { 0 };
        let blank = !c.is_ascii() && (c.is_whitespace() || looks_blank(c));
        if c.is_control() || is_hidden(c) || is_selector(c) || blank || matches!(c, ZWJ | ZWNJ) || marks > MOST_MARKS {
            let _ = write!(out, "‹U+{:04X}›", u32::from(c));
            marks = 0;
        } else {
            out.push(c);
        }
    }
    Sanitized::from(out)
}

/// Letters and symbols that are drawn as nothing: Hangul fillers, the empty Braille cell, Khmer's inherent vowels.
fn looks_blank(c: char) -> bool {
    matches!(
        c,
        '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_hides_from_a_decision() {
        let cases = [
            ("a plain command", "git push origin main", "git push origin main"),
            ("a bidi override", "rm \u{202e}txt.sh", "rm ‹U+202E›txt.sh"),
            ("an escape is not swallowed", "echo \x1b[2Jhi", "echo ‹U+001B›[2Jhi"),
            ("an eight-bit control sequence", "a\u{9b}31m", "a‹U+009B›31m"),
            ("a return that would overwrite", "rm -r /\rls", "rm -r /‹U+000D›ls"),
            ("zero width", "a\u{200b}b\u{200d}c", "a‹U+200B›b‹U+200D›c"),
            ("tags", "a\u{e0041}", "a‹U+E0041›"),
            (
                "blank letters",
                "a\u{3164}b\u{a0}c\u{2800}",
                "a‹U+3164›b‹U+00A0›c‹U+2800›",
            ),
            ("eight spaces", "a        b", "a        b"),
            ("nine spaces", "a         b", "a·×9b"),
            ("tabs count as spaces", "a\t \t \t \t \t b", "a·×10b"),
            ("lines of a script", "if x\n    y\nfi", "if x\n    y\nfi"),
            ("a line separator is no line", "a\u{2028}b", "a‹U+2028›b"),
        ];
        for (name, text, shown) in cases {
            assert_eq!(visible(text), shown, "{name}");
        }
    }

    #[test]
    fn far_away_text_is_announced() {
        let text = format!("ls{}; rm -r ~", " ".repeat(5000));
        assert_eq!(visible(&text), "ls·×5000; rm -r ~");
        let text = format!("ls{}rm -r ~", "\n".repeat(40));
        assert_eq!(visible(&text), "ls\n‹U+000A›×40\nrm -r ~");
    }

    #[test]
    fn a_path_is_one_row() {
        assert_eq!(visible_line("a\nb/c\td"), "a‹U+000A›b/c\td");
    }

    #[test]
    fn marks_beyond_eight_are_written_out() {
        let text = format!("a{}", "\u{301}".repeat(9));
        assert_eq!(visible(&text), format!("a{}‹U+0301›", "\u{301}".repeat(8)).as_str());
    }

    #[test]
    fn a_title_is_short_and_harmless() {
        assert_eq!(title("fix\n the\x1b]0;evil\x07  bug\x07"), "fix the bug");
        assert_eq!(title(&"x".repeat(500)).chars().count(), 120);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn every_character_leaves_a_trace(text in any::<String>()) {
            let shown = visible_line(&text);
            prop_assert!(text.is_empty() == shown.is_empty());
            prop_assert!(!shown.contains('\n') && !shown.contains('\x1b'));
        }
    }
}
