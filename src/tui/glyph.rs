//! Glyphs of a Nerd Font instead of our own, by setting.

use std::borrow::Cow;

use crate::text::{Sanitized, Span};

/// Our sign, and theirs: a check in a circle, a spinner, a cross in a circle, a check, a pencil, a link, a prompt, a question in a
/// circle, a list, code, an arrow back.
const SIGNS: [(&str, &str); 11] = [
    ("●", "\u{f058}"),
    ("◐", "\u{f110}"),
    ("✗", "\u{f057}"),
    ("✓", "\u{f00c}"),
    ("±", "\u{f044}"),
    ("↗", "\u{f0c1}"),
    ("$", "\u{f120}"),
    ("?", "\u{f059}"),
    ("≡", "\u{f0ca}"),
    ("»", "\u{f121}"),
    ("↶", "\u{f0e2}"),
];

/// The sign before a document as it is shown.
pub fn shown(sign: &Span, has_nerd_font: bool) -> Cow<'_, Span> {
    let other = SIGNS.iter().find(|it| has_nerd_font && it.0 == &*sign.text);
    other.map_or(Cow::Borrowed(sign), |it| {
        Cow::Owned(Span {
            text: Sanitized::literal(it.1),
            ..sign.clone()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Role, width};

    #[test]
    fn a_sign_of_another_font_is_as_wide_and_comes_by_choice_only() {
        for (ours, theirs) in SIGNS {
            let sign = Span::new(Sanitized::literal(ours), Role::Done).bold();
            assert_eq!(*shown(&sign, false), sign);
            let other = shown(&sign, true);
            assert_eq!(
                (&*other.text, other.role, other.modifier),
                (theirs, sign.role, sign.modifier)
            );
            assert_eq!(width::width(theirs), width::width(ours));
        }
        let bar = Span::new(Sanitized::literal("▌"), Role::User);
        assert_eq!(*shown(&bar, true), bar);
    }
}
