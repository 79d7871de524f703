//! The last line: the keys that matter now, and a toast at the right.

use std::borrow::Cow;

use crate::text::{Role, Sanitized, Span, StyledLine, width, wrap::wrap};

/// The parts of the footer.
#[derive(Default)]
pub struct FooterSpans {
    pub left: Vec<Span>,
    pub right: Vec<Span>,
    /// The first row of a toast that takes two; the second one is `left`.
    pub above: Vec<Span>,
}

/// Returns the footer for `columns`. A long toast takes the keys' place, and a second row where there `is_room_above`.
pub fn spans(hints: Vec<Hint>, toast: Option<&str>, is_room_above: bool, columns: usize) -> FooterSpans {
    let most = columns.saturating_sub(2);
    if let Some(toast) = toast.filter(|it| is_room_above && width::width(it) > most) {
        let rows = wrap(&[Span::new(Sanitized::line(toast), Role::Text)], most, &[], &[]);
        let rest: Vec<_> = rows.iter().skip(1).map(StyledLine::plain).collect();
        let rest = width::cut_end(&rest.join(" "), most);
        return FooterSpans {
            left: vec![Span::new(Sanitized::new(&rest), Role::Text)],
            right: Vec::new(),
            above: rows.into_iter().next().unwrap_or_default().spans,
        };
    }
    let toast = toast.map(|it| Span::new(Sanitized::line(&width::cut_end(it, most)), Role::Text));
    let right: Vec<Span> = toast.into_iter().collect();
    let room = columns.saturating_sub(width::spans_width(&right) + if right.is_empty() { 1 } else { 4 });
    let mut left = Vec::new();
    for Hint { key, word, .. } in fitting(hints, room) {
        if !left.is_empty() {
            left.push(Span::new(Sanitized::literal("   "), Role::Faint));
        }
        left.push(Span::new(Sanitized::line(&key), Role::Dim).bold().key());
        if !word.is_empty() {
            left.push(Span::new(Sanitized::line(&format!(" {word}")), Role::Faint));
        }
    }
    FooterSpans {
        left,
        right,
        above: Vec::new(),
    }
}

/// The hints that there is room for: first the one for sending goes, then the last ones. The way to the help goes last, Esc
/// before it.
fn fitting(mut hints: Vec<Hint>, room: usize) -> Vec<Hint> {
    let wants = |it: &Hint| width::width(&it.key) + 1 + width::width(it.word);
    let all = |hints: &[Hint]| hints.iter().map(|it| wants(it) + 3).sum::<usize>().saturating_sub(3);
    let rank = |it: &Hint| (it.action != "send", it.action == "keys", it.key == "esc");
    while all(&hints) > room {
        let Some((at, _)) = hints.iter().enumerate().rev().min_by_key(|(_, it)| rank(it)) else {
            break;
        };
        hints.remove(at);
    }
    hints
}

/// A key and a word for its action.
pub struct Hint {
    /// The key's name in the keymap, in every language.
    pub key: Cow<'static, str>,
    pub word: &'static str,
    /// The action's name, if it is one of the keymap.
    pub action: &'static str,
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
    }
}
