//! Todos as rows with checkboxes, for plans and their updates.

use super::heading::{gap, sign, with_code};
use crate::{
    protocol::TodoStatus,
    t,
    text::{Background, Modifier, Role, Sanitized, Span, StyledLine, wrap::wrap},
};

/// The content of a todo's row.
pub(super) struct Item<'a> {
    pub content: &'a str,
    pub status: &'a TodoStatus,
    /// The places of the todos that come before it, counted from 1.
    pub after: Vec<usize>,
    /// Addresses of what was done for it.
    pub documents: Vec<String>,
}

/// Most addresses after a todo.
const MOST_NAMED: usize = 6;

/// `selected`: the item that has the keys.
pub(super) fn rows(items: &[Item<'_>], selected: Option<usize>, columns: usize) -> Vec<StyledLine> {
    let rows = items.iter().enumerate().flat_map(|(at, item)| {
        let mut spans = text(item.content, item.status);
        let is_over = matches!(item.status, TodoStatus::Completed | TodoStatus::Cancelled);
        if !item.after.is_empty() && !is_over {
            let list: Vec<String> = item.after.iter().map(ToString::to_string).collect();
            spans.push(gap(2));
            spans.push(Span::new(t!("todo-after", places = list.join(", ")), Role::Faint));
        }
        if !item.documents.is_empty() {
            let shown = item
                .documents
                .iter()
                .take(MOST_NAMED)
                .cloned()
                .collect::<Vec<_>>()
                .join(" ");
            let more = item.documents.len().saturating_sub(MOST_NAMED);
            spans.push(gap(2));
            spans.push(Span::new(
                if more > 0 { format!("{shown} +{more}") } else { shown },
                Role::Faint,
            ));
        }
        if selected == Some(at) {
            spans = spans.into_iter().map(|it| it.on(Background::Selection)).collect();
        }
        wrap(&spans, columns, &[checkbox(item.status), gap(1)], &[gap(2)])
    });
    rows.collect()
}

/// `☐ ☑ ◐ ⊘`; a word of somebody else's is pending as far as we know.
pub(super) fn checkbox(status: &TodoStatus) -> Span {
    match status {
        TodoStatus::Pending | TodoStatus::Other(_) => sign("☐", Role::Dim),
        TodoStatus::InProgress => sign("◐", Role::Waiting),
        TodoStatus::Completed => sign("☑", Role::Done),
        TodoStatus::Cancelled => sign("⊘", Role::Faint),
    }
}

pub(super) fn text(content: &str, status: &TodoStatus) -> Vec<Span> {
    let mut spans = with_code(&Sanitized::line(content.trim()), Role::Text);
    let quiet = |it: Span| Span { role: Role::Dim, ..it };
    match status {
        TodoStatus::Pending | TodoStatus::InProgress => spans,
        TodoStatus::Completed => spans.into_iter().map(quiet).collect(),
        TodoStatus::Cancelled => {
            let struck = |it| quiet(it).modified(Modifier::STRIKE);
            spans.into_iter().map(struck).collect()
        }
        TodoStatus::Other(word) => {
            spans.push(Span::new(format!(" ({})", Sanitized::line(word)), Role::Text));
            spans
        }
    }
}

/// `▰▰▰▱▱▱ 2 of 4 done`
pub(super) fn progress(done: usize, all: usize) -> Vec<Span> {
    const CELLS: usize = 6;
    let rounded = (CELLS * done.min(all) + all / 2).checked_div(all).unwrap_or(0);
    // A bar is neither empty nor full before its time.
    let full = match done {
        0 => 0,
        done if done >= all => CELLS,
        _ => rounded.clamp(1, CELLS - 1),
    };
    let bar = format!("{}{}", "▰".repeat(full), "▱".repeat(CELLS - full));
    let role = if all > 0 && done >= all {
        Role::Done
    } else {
        Role::Waiting
    };
    vec![
        Span::new(bar, role),
        Span::new(format!(" {}", t!("todo-progress", done = done, count = all)), Role::Dim),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_full_only_when_all_is_done() {
        for (done, all, bar) in [
            (0, 4, "▱▱▱▱▱▱ 0 of 4 done"),
            (1, 40, "▰▱▱▱▱▱ 1 of 40 done"),
            (2, 4, "▰▰▰▱▱▱ 2 of 4 done"),
            (39, 40, "▰▰▰▰▰▱ 39 of 40 done"),
            (4, 4, "▰▰▰▰▰▰ 4 of 4 done"),
            (5, 4, "▰▰▰▰▰▰ 5 of 4 done"),
            (0, 0, "▱▱▱▱▱▱ 0 of 0 done"),
        ] {
            let shown: String = progress(done, all).iter().map(|it| it.text.as_str()).collect();
            assert_eq!(shown, bar);
        }
    }
}
