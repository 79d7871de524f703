//! The question whether the workspace may act, in one line above the draft.

use crate::{
    protocol::TrustAsked,
    t,
    text::{
        Role, Sanitized, Span,
        width::{cut_spans, spans_width},
    },
    tui::widgets::key,
};

/// Columns from which names that are cut still say something.
const NAMES_FROM_COLUMNS: usize = 50;

/// Returns the question with the files that it names, and `way`, the key or the command that opens the page about it, each in its
/// place. Where nothing opens it, as while a page is open, only the question.
pub fn spans(asked: &TrustAsked, way: Option<&'static str>, columns: usize) -> (Vec<Span>, Vec<Span>) {
    let review = way.map_or_else(Vec::new, |it| key(it, t!("trust-review"), Role::Waiting));
    let room = columns.saturating_sub(spans_width(&review) + 2);
    let question = |text: &str| {
        [
            Span::new(Sanitized::literal("? "), Role::Waiting),
            Span::new(Sanitized::line(text), Role::Text),
        ]
    };
    let whole = question(&sentence(asked));
    if spans_width(&whole) > room && room < NAMES_FROM_COLUMNS {
        let short = if asked.is_changed {
            t!("trust-changed-title")
        } else {
            t!("trust-title")
        };
        return (cut_spans(&question(short), room), review);
    }
    (cut_spans(&whole, room), review)
}

/// Returns the question as a sentence: which files are off.
pub fn sentence(asked: &TrustAsked) -> String {
    let mut names = asked.paths.clone();
    match asked.count.saturating_sub(names.len()) {
        0 => {}
        _ if names.is_empty() => names.push(t!("trust-checkers").to_owned()),
        more => names.push(t!("trust-more", count = more)),
    }
    let names = names.join(", ");
    if asked.is_changed {
        t!("trust-changed-asked", files = names)
    } else {
        t!("trust-asked", files = names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(paths: &[&str], count: usize, is_changed: bool, columns: usize) -> String {
        let asked = TrustAsked {
            paths: paths.iter().map(|it| (*it).to_owned()).collect(),
            count,
            is_changed,
        };
        let (left, right) = spans(&asked, Some("tab"), columns);
        assert!(spans_width(&left) + 2 + spans_width(&right) <= columns, "{columns}");
        let text = |spans: &[Span]| spans.iter().map(|it| it.text.as_str()).collect::<String>();
        format!("{} | {}", text(&left), text(&right))
    }

    #[test]
    fn the_line_names_what_is_off_and_the_key() {
        for (paths, count, is_changed, columns, shown) in [
            (
                &["AGENTS.md"][..],
                1,
                false,
                80,
                "? Trust this folder? Off until then: AGENTS.md | tab details",
            ),
            (
                &["AGENTS.md", "a.mdc"],
                5,
                false,
                80,
                "? Trust this folder? Off until then: AGENTS.md, a.mdc, 3 more | tab details",
            ),
            (
                &["AGENTS.md"],
                1,
                true,
                80,
                "? Trust the changes? Off until then: AGENTS.md | tab details",
            ),
            (
                &[],
                1,
                false,
                80,
                "? Trust this folder? Off until then: checkers | tab details",
            ),
            (&["AGENTS.md"], 1, false, 37, "? Trust this folder? | tab details"),
            (&["AGENTS.md"], 1, true, 37, "? Trust the changes? | tab details"),
        ] {
            assert_eq!(check(paths, count, is_changed, columns), shown);
        }
    }
}
