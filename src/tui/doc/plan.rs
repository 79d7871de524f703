//! `plan`: title and progress, what it is about, its todos, then its Markdown. The newest plan shows the live list; the
//! document itself stays as it was sent.

use super::{
    Leaf, Look, Sheet,
    heading::{Facts, WORD, Weight, gap, heading, key, sign, titled, word},
    seed,
    todo::{self, Item},
};
use crate::{
    protocol::{Document, TodoStatus, document::Plan},
    text::{Clean, Role, Row, Span, markdown::Flow, wrap::wrap},
};

pub(super) fn grow(plan: &Plan<'_>, document: &Document, look: &Look<'_>, sheet: &mut Sheet) -> Option<usize> {
    let signed = sheet.sign(glyph(), false);
    let mut head = head(plan, document, look);
    let flow = sheet.memo.flow.get_or_insert_with(|| Flow::new(seed(document, look)));
    let body = body(plan, document.is_open());
    let below = sheet.memo.head;
    let mut rows = std::mem::take(&mut sheet.memo.flow_rows);
    let changed = flow.update(body, !document.is_open(), look.width, look.colours, &mut rows);
    if !rows.is_empty() {
        head.push(Row::blank());
    }
    let headed = sheet.set_head(head);
    let keys = keys(look, document);
    // The body stands behind the head; the keys, if any, behind the body.
    let first = if headed { 0 } else { below + changed };
    sheet.rows.truncate(sheet.memo.head + changed);
    sheet.rows.extend(rows.iter().skip(changed).cloned());
    sheet.rows.extend(keys);
    sheet.memo.flow_rows = rows;
    Some(if signed || headed { 0 } else { first })
}

pub(super) fn folded(plan: &Plan<'_>, document: &Document, look: &Look<'_>) -> Leaf {
    let title = Span::new(Clean::line(plan.title), Role::Text);
    Leaf {
        glyph: glyph(),
        rows: vec![heading("plan", &[title], facts(plan, document, look), look.width)],
        is_line: true,
    }
}

pub(super) fn summary(plan: &Plan<'_>) -> Clean {
    Clean::line(&format!("plan  {}", plan.title))
}

fn glyph() -> Span {
    sign("≡", Role::ModePlan)
}

/// Whether it shows the live list; while it is being written, the list is still that of the plan before.
pub(super) fn is_live(document: &Document, look: &Look<'_>) -> bool {
    look.newest && !document.is_open()
}

fn facts(plan: &Plan<'_>, document: &Document, look: &Look<'_>) -> Facts {
    let mut facts = Facts::default();
    let (done, all) = if is_live(document, look) {
        look.todos.progress()
    } else {
        let counted = plan.todos.iter().filter(|it| it.status != TodoStatus::Cancelled);
        let done = plan.todos.iter().filter(|it| it.status == TodoStatus::Completed);
        (done.count(), counted.count())
    };
    if document.is_incomplete() {
        facts.word(Weight::Heavy, "broken off", Role::Error);
    }
    if all > 0 {
        facts.push(Weight::Heavy, todo::progress(done, all));
    }
    facts
}

fn head(plan: &Plan<'_>, document: &Document, look: &Look<'_>) -> Vec<Row> {
    let columns = look.width;
    let title = match plan.title.trim() {
        "" => Span::new("without a title", Role::Dim),
        title => Span::new(Clean::line(title), Role::Strong).bold(),
    };
    let mut rows = titled(
        &[title],
        &[word("plan")],
        &[gap(WORD)],
        facts(plan, document, look),
        columns,
    );
    if !plan.overview.trim().is_empty() {
        rows.extend(wrap(
            &[Span::new(Clean::new(plan.overview.trim()), Role::Text)],
            columns,
            &[],
            &[],
        ));
    }
    let items = items(plan, document, look);
    if !items.is_empty() {
        rows.push(Row::blank());
        rows.extend(todo::rows(&items, columns));
    }
    rows
}

fn items<'a>(plan: &'a Plan<'a>, document: &Document, look: &'a Look<'_>) -> Vec<Item<'a>> {
    if is_live(document, look) {
        let list = &look.todos.list;
        let place = |id: &String| list.iter().position(|it| it.id == *id).map(|at| at + 1);
        let item = |it: &'a crate::transcript::Todo| Item {
            content: &it.content,
            status: &it.status,
            after: it.dependencies.iter().filter_map(place).collect(),
        };
        return list.iter().map(item).collect();
    }
    let place = |id: &&str| plan.todos.iter().position(|it| it.id == *id).map(|at| at + 1);
    let item = |it: &'a crate::protocol::document::Todo<'a>| Item {
        content: it.content,
        status: &it.status,
        after: it.dependencies.iter().filter_map(place).collect(),
    };
    plan.todos.iter().map(item).collect()
}

/// The Markdown without a first heading that repeats the title. While it grows, nothing until its first line is whole.
fn body<'a>(plan: &Plan<'a>, is_open: bool) -> &'a str {
    let content = plan.content;
    if !content.starts_with("# ") {
        return content;
    }
    let (first, rest) = match content.split_once('\n') {
        Some((first, rest)) => (first, rest),
        None if is_open => return "",
        None => (content, ""),
    };
    let heading = first.trim_start_matches('#').trim();
    if heading.eq_ignore_ascii_case(plan.title.trim()) {
        rest
    } else {
        content
    }
}

fn keys(look: &Look<'_>, document: &Document) -> Vec<Row> {
    if !look.selected || document.is_open() || !look.newest {
        return Vec::new();
    }
    let mut spans = Vec::new();
    for (name, does) in [("b", "build"), ("e", "edit"), ("s", "save"), ("c", "comment")] {
        if !spans.is_empty() {
            spans.push(gap(3));
        }
        spans.extend(key(name, does, Role::Waiting));
    }
    let mut rows = vec![Row::blank()];
    rows.extend(wrap(&spans, look.width, &[], &[]));
    rows
}
