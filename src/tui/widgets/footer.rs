//! The last line: the keys that matter now, and a toast at the right.

use std::borrow::Cow;

use crate::text::{Role, Sanitized, Span, width, wrap::wrap};

/// The parts of the footer.
#[derive(Default)]
pub struct FooterSpans {
    pub left: Vec<Span>,
    pub right: Vec<Span>,
    /// The first row of a toast that takes two; the second one is `right`.
    pub above: Vec<Span>,
}

/// Returns the footer for `columns`. A long toast takes a second row where there `is_room_above`; the way to the help stays
/// beside it.
pub fn spans(hints: Vec<Hint>, toast: Option<&str>, is_room_above: bool, columns: usize) -> FooterSpans {
    let most = columns.saturating_sub(2);
    let help = hints
        .iter()
        .find(|it| it.action == "keys")
        .map_or(0, |it| wants(it) + 4);
    let beside = most.saturating_sub(help);
    let Some(toast) = toast else {
        return FooterSpans {
            left: keys(hints, columns.saturating_sub(1)),
            ..FooterSpans::default()
        };
    };
    let (above, rest) = if is_room_above && width::width(toast) > beside {
        let mut rows = wrap(&[Span::new(Sanitized::line(toast), Role::Text)], most, &[], &[]).into_iter();
        let first = rows.next().unwrap_or_default().spans;
        let rest: Vec<_> = rows.map(|it| it.plain()).collect();
        (first, rest.join(" "))
    } else {
        (Vec::new(), toast.to_owned())
    };
    let right: Vec<Span> = match width::cut_end(&rest, beside) {
        rest if rest.is_empty() => Vec::new(),
        rest => vec![Span::new(Sanitized::line(&rest), Role::Text)],
    };
    let room = columns.saturating_sub(width::spans_width(&right) + if right.is_empty() { 1 } else { 4 });
    FooterSpans {
        left: keys(hints, room),
        right,
        above,
    }
}

/// The hints that fit into `room` columns.
fn keys(hints: Vec<Hint>, room: usize) -> Vec<Span> {
    let mut spans = Vec::new();
    for Hint { key, word, .. } in fitting(hints, room) {
        if !spans.is_empty() {
            spans.push(Span::new(Sanitized::literal("   "), Role::Faint));
        }
        spans.push(Span::new(Sanitized::line(&key), Role::Dim).bold().key());
        if !word.is_empty() {
            spans.push(Span::new(Sanitized::line(&format!(" {word}")), Role::Faint));
        }
    }
    spans
}

/// The columns of a hint.
fn wants(hint: &Hint) -> usize {
    let word = width::width(hint.word);
    width::width(&hint.key) + word + usize::from(word > 0)
}

/// The hints that there is room for: first the one for sending goes, then the one for a new line, then the last ones. Then the help
/// and Esc lose their words, then Esc goes, then what decides. The way to the help goes last.
fn fitting(mut hints: Vec<Hint>, room: usize) -> Vec<Hint> {
    let all = |hints: &[Hint]| hints.iter().map(|it| wants(it) + 3).sum::<usize>().saturating_sub(3);
    let rank = |it: &Hint| {
        let place = ["send", "newline"].iter().position(|name| it.action == *name);
        (place.unwrap_or(2), is_help(it), it.decides, is_escape(it))
    };
    let mut words = Vec::new();
    while all(&hints) > room {
        let last = hints.iter().enumerate().rev().min_by_key(|(_, it)| rank(it));
        let Some((at, matters)) = last.map(|(at, it)| (at, it.decides || is_escape(it))) else {
            break;
        };
        let has_word = |wanted: fn(&Hint) -> bool| hints.iter().position(|it| wanted(it) && !it.word.is_empty());
        match has_word(is_help).or_else(|| has_word(is_escape)).filter(|_| matters) {
            Some(bare) => words.extend(
                hints
                    .get_mut(bare)
                    .map(|it| (it.key.clone(), std::mem::take(&mut it.word))),
            ),
            None => drop(hints.remove(at)),
        }
    }
    // What went after them may have left room.
    for (key, word) in words.into_iter().rev() {
        let is_room = all(&hints) + 1 + width::width(word) <= room;
        if let Some(bare) = hints.iter_mut().find(|it| it.key == key && is_room) {
            bare.word = word;
        }
    }
    hints
}

fn is_help(hint: &Hint) -> bool {
    hint.action == "keys"
}

fn is_escape(hint: &Hint) -> bool {
    hint.key == "esc"
}

/// A key and a word for its action.
pub struct Hint {
    /// The key's name in the keymap, in every language.
    pub key: Cow<'static, str>,
    pub word: &'static str,
    /// The action's name, if it is one of the keymap.
    pub action: &'static str,
    /// It decides on what is in view: where there is little room it stays longer than Esc.
    pub decides: bool,
}

/// A hint for the key that opens the help.
pub fn help(key: impl Into<Cow<'static, str>>, word: &'static str) -> Hint {
    Hint {
        action: "keys",
        ..hint(key, word)
    }
}

/// A hint for a key that is no action of the keymap.
pub fn hint(key: impl Into<Cow<'static, str>>, word: &'static str) -> Hint {
    Hint {
        key: key.into(),
        word,
        action: "",
        decides: false,
    }
}

/// A hint for a key that decides on what is in view.
pub fn deciding(key: impl Into<Cow<'static, str>>, word: &'static str) -> Hint {
    Hint {
        decides: true,
        ..hint(key, word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(hints: Vec<Hint>, toast: Option<&str>, is_room_above: bool, columns: usize) -> [String; 3] {
        let spans = spans(hints, toast, is_room_above, columns);
        [spans.above, spans.left, spans.right].map(|it| it.iter().map(|it| it.text.as_str()).collect())
    }

    #[test]
    fn a_toast_leaves_the_way_to_the_help_and_sending_goes_before_a_new_line() {
        let hints = || {
            let named = |key: &'static str, word, action| Hint {
                action,
                ..hint(key, word)
            };
            vec![
                named("enter", "send", "send"),
                named("alt+enter", "newline", "newline"),
                named("shift+tab", "mode", "mode.next"),
                help("f1", "keys"),
            ]
        };
        let long = "select a todo with the arrow keys first, and then press it";
        for (toast, is_room_above, columns, wanted) in [
            (
                None,
                false,
                60,
                ["", "enter send   alt+enter newline   shift+tab mode   f1 keys", ""],
            ),
            (
                None,
                false,
                50,
                ["", "alt+enter newline   shift+tab mode   f1 keys", ""],
            ),
            (None, false, 34, ["", "shift+tab mode   f1 keys", ""]),
            (Some("done"), true, 40, ["", "shift+tab mode   f1 keys", "done"]),
            (
                Some(long),
                true,
                40,
                [
                    "select a todo with the arrow keys",
                    "f1 keys",
                    "first, and then press it",
                ],
            ),
            // It fits into the row above, and all keys stay.
            (
                Some("select a todo with the arrow keys"),
                true,
                40,
                ["select a todo with the arrow keys", "shift+tab mode   f1 keys", ""],
            ),
            (Some(long), false, 40, ["", "f1 keys", "select a todo with the arr…"]),
        ] {
            assert_eq!(shown(hints(), toast, is_room_above, columns), wanted, "{columns}");
        }
    }
}
