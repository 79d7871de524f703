//! Decisions on approvals, for the approval itself and for the change that follows it.

use super::{RenderContext, heading::gap};
use crate::{
    protocol::{Document, View, document::Clarification},
    t,
    text::{
        Role, Sanitized, Span, StyledLine,
        width::{pad, width},
        wrap::wrap,
    },
};

/// Hunks that were allowed, and all hunks, of an approval that was decided hunk by hunk.
pub(super) fn parts(view: &Clarification<'_>) -> Option<(usize, usize)> {
    let hunks = &view.answers.iter().find(|it| !it.hunks.is_empty())?.hunks;
    Some((hunks.iter().filter(|it| it.accepted).count(), hunks.len()))
}

/// Words for the way in which a change was allowed; `None` if it was not.
pub(super) fn granted(document: &Document) -> Option<&'static str> {
    let View::Clarification(view) = document.view() else {
        return None;
    };
    if parts(&view).is_some() {
        return Some(t!("approval-allowed-once"));
    }
    match view
        .answers
        .iter()
        .flat_map(|it| &it.selected_option_ids)
        .next()?
        .as_str()
    {
        "allow_once" => Some(t!("approval-allowed-once")),
        "allow_session" => Some(t!("approval-allowed-session")),
        "allow_always" => Some(t!("approval-allowed-always")),
        _ => None,
    }
}

/// Rows with the words of the user on hunk `hunk` of a change, or on all of it; none without any.
pub(super) fn because(view: &Clarification<'_>, hunk: u64, look: &RenderContext<'_>) -> Vec<StyledLine> {
    let mut hunks = view.answers.iter().flat_map(|it| &it.hunks);
    let said = if parts(view).is_some() {
        hunks.find(|it| it.index == hunk).and_then(|it| it.comment.as_deref())
    } else if look.joined {
        None
    } else {
        reason(view)
    };
    said.map_or_else(Vec::new, |it| reason_rows(it, look.width))
}

/// The reason of a decision, in the words of whoever decided.
pub(super) fn reason<'a>(view: &'a Clarification<'_>) -> Option<&'a str> {
    let said = view.answers.iter().find_map(|it| it.free_text.as_deref());
    said.or(view.reason).filter(|it| !it.trim().is_empty())
}

pub(super) fn reason_rows(reason: &str, columns: usize) -> Vec<StyledLine> {
    let reason = [Span::new(Sanitized::new(reason.trim()), Role::Text)];
    labelled(t!("approval-because"), &reason, columns)
}

/// A text after a label, in the column of all labels.
pub(super) fn labelled(label: &str, text: &[Span], columns: usize) -> Vec<StyledLine> {
    let all = [
        t!("approval-why"),
        t!("approval-needs"),
        t!("approval-folder"),
        t!("approval-reach"),
        t!("approval-write"),
        t!("approval-rule"),
        t!("approval-because"),
    ];
    let wide = 1 + all.into_iter().chain([label]).map(width).max().unwrap_or_default();
    wrap(text, columns, &[Span::new(pad(label, wide), Role::Dim)], &[gap(wide)])
}
