//! `plan`: title and progress, what it is about, its todos, then its Markdown. The newest plan shows the live list; the
//! document itself stays as it was sent.

use std::collections::HashMap;

use super::{
    Leaf, Look, MEASURE, Sheet,
    heading::{Facts, Weight, gap, heading, key, put_key, sign, titled, word},
    seed,
    todo::{self, Item},
};
use crate::{
    protocol::{Document, TodoStatus, document::Plan},
    say,
    text::{Clean, Role, Row, Span, markdown::Flow, width::width, wrap::wrap},
};

pub(super) fn grow(plan: &Plan<'_>, document: &Document, look: &Look<'_>, sheet: &mut Sheet) -> usize {
    let signed = sheet.sign(glyph(), false);
    let mut head = head(plan, document, look);
    let flow = sheet.memo.flow.get_or_insert_with(|| Flow::new(seed(document, look)));
    let lines = &mut sheet.memo.lines;
    lines.take(plan.content, document.is_open());
    let body = body(lines.text(), plan.title, document.is_open());
    let below = sheet.memo.head;
    let mut rows = std::mem::take(&mut sheet.memo.flow_rows);
    let width = look.width.min(MEASURE);
    let changed = flow.update(body, !document.is_open(), width, look.colours, &mut rows);
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
    if signed { 0 } else { first }
}

pub(super) fn folded(plan: &Plan<'_>, document: &Document, look: &Look<'_>) -> Leaf {
    let title = Span::new(Clean::line(plan.title), Role::Text);
    Leaf {
        glyph: glyph(),
        rows: vec![heading(
            say!("plan-word"),
            &[title],
            facts(plan, document, look),
            look.width,
        )],
        is_line: true,
    }
}

pub(super) fn summary(plan: &Plan<'_>) -> Clean {
    Clean::line(&format!("{}  {}", say!("plan-word"), plan.title))
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
        facts.word(Weight::Heavy, say!("document-broken-off"), Role::Error);
    }
    if all > 0 {
        facts.push(Weight::Heavy, todo::progress(done, all));
    }
    facts
}

fn head(plan: &Plan<'_>, document: &Document, look: &Look<'_>) -> Vec<Row> {
    let columns = look.width;
    let title = match plan.title.trim() {
        "" => Span::new(Clean::literal(say!("plan-untitled")), Role::Dim),
        title => Span::new(Clean::line(title), Role::Strong).bold(),
    };
    let word = word(say!("plan-word"));
    let under = gap(width(&word.text));
    let mut rows = titled(&[title], &[word], &[under], facts(plan, document, look), columns);
    if !plan.overview.trim().is_empty() {
        rows.extend(wrap(
            &[Span::new(Clean::new(plan.overview.trim()), Role::Text)],
            columns.min(MEASURE),
            &[],
            &[],
        ));
    }
    let items = items(plan, document, look);
    if !items.is_empty() {
        rows.push(Row::blank());
        rows.extend(todo::rows(&items, look.todo, columns));
    }
    rows
}

fn items<'a>(plan: &'a Plan<'a>, document: &Document, look: &'a Look<'_>) -> Vec<Item<'a>> {
    if is_live(document, look) {
        let list = &look.todos.list;
        let places = places(list.iter().map(|it| it.id.as_str()));
        let item = |it: &'a crate::transcript::Todo| Item {
            content: &it.content,
            status: &it.status,
            after: it
                .dependencies
                .iter()
                .filter_map(|it| places.get(it.as_str()).copied())
                .collect(),
            documents: it.documents.iter().map(ToString::to_string).collect(),
        };
        return list.iter().map(item).collect();
    }
    let places = places(plan.todos.iter().map(|it| it.id));
    let item = |it: &'a crate::protocol::document::Todo<'a>| Item {
        content: it.content,
        status: &it.status,
        after: it
            .dependencies
            .iter()
            .filter_map(|it| places.get(it).copied())
            .collect(),
        documents: Vec::new(),
    };
    plan.todos.iter().map(item).collect()
}

/// The place of each todo, counted from 1; of two with one id the first.
fn places<'a>(ids: impl Iterator<Item = &'a str>) -> HashMap<&'a str, usize> {
    let mut places = HashMap::new();
    for (at, id) in ids.enumerate() {
        places.entry(id).or_insert(at + 1);
    }
    places
}

/// The Markdown without a first heading that repeats the title. While it grows, nothing until its first line is whole.
fn body<'a>(content: &'a str, title: &str, is_open: bool) -> &'a str {
    if !content.starts_with("# ") {
        return content;
    }
    let (first, rest) = match content.split_once('\n') {
        Some((first, rest)) => (first, rest),
        None if is_open => return "",
        None => (content, ""),
    };
    let heading = first.trim_start_matches('#').trim();
    if heading.eq_ignore_ascii_case(title.trim()) {
        rest
    } else {
        content
    }
}

fn keys(look: &Look<'_>, document: &Document) -> Vec<Row> {
    if !look.selected || document.is_open() || !look.newest {
        return Vec::new();
    }
    let on_plan = [
        ("b", say!("plan-key-build")),
        ("e", say!("plan-key-edit")),
        ("s", say!("plan-key-save")),
        ("c", say!("plan-key-comment")),
        ("↓", say!("plan-key-todos")),
    ];
    let on_todo = [
        ("x", say!("plan-key-tick")),
        ("enter", say!("plan-key-reword")),
        ("i", say!("plan-key-insert")),
        ("D", say!("plan-key-remove")),
        ("J K", say!("plan-key-move")),
    ];
    let shown = if look.todo.is_some() { on_todo } else { on_plan };
    let mut rows = Vec::new();
    for (name, does) in shown {
        put_key(&mut rows, &key(name, does, Role::Waiting), 3, look.width);
    }
    rows.insert(0, Row::blank());
    rows
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{
        Fold,
        testing::{closed, look, open, picture, pictures, roles},
    };
    use super::*;
    use crate::transcript::{Todo, Todos};

    fn combinable() -> Document {
        let todo = |id: &str, content: &str, status: &str, after: &[&str]| json!({ "id": id, "content": content, "status": status, "dependencies": after });
        closed(
            "plan",
            Some("# Combinable discount codes\n\nThree files change.\n"),
            json!({
                "title": "Combinable discount codes",
                "overview": "Carts accept any number of codes; they add up to at most 100 %. Codes live in Redis.",
                "todos": [
                    todo("store", "Store codes in Redis behind a CodeStore trait", "completed", &[]),
                    todo("cart", "Let Cart hold a list of discounts", "completed", &["store"]),
                    todo("total", "Add them up in Cart::total, capped at 100 %", "in_progress", &[]),
                    todo("expire", "Reject expired codes with a clear error", "pending", &["store", "nobody", "total"]),
                    todo("admin", "Add a page for administrators", "cancelled", &[]),
                ],
            }),
        )
    }

    #[test]
    fn plans() {
        let plan = combinable();
        let sent = Look {
            newest: false,
            ..look(0)
        };
        let begun = open(
            "plan",
            Some("# Combin"),
            json!({ "title": "Combinable discount codes" }),
        );
        let bare = closed("plan", None, json!({ "todos": ["Only this"] }));
        let states = [
            ("as it was sent", &plan, sent),
            ("begun", &begun, sent),
            ("without title, overview and body", &bare, sent),
            (
                "folded",
                &plan,
                Look {
                    fold: Fold::Folded,
                    ..sent
                },
            ),
        ];
        insta::assert_snapshot!(pictures(&states), @r#"
40=====================================
-- as it was sent
≡ plan   Combinable discount codes
                          ▰▰▰▱▱▱ 2 of 4
  Carts accept any number of codes;
  they add up to at most 100 %. Codes
  live in Redis.

  ☑ Store codes in Redis behind a
    CodeStore trait
  ☑ Let Cart hold a list of discounts
  ◐ Add them up in Cart::total, capped
    at 100 %
  ☐ Reject expired codes with a clear
    error  after 1, 3
  ⊘ Add a page for administrators

  Three files change.
-- begun
≡ plan   Combinable discount codes
-- without title, overview and body
≡ plan   without a title  ▱▱▱▱▱▱ 0 of 1

  ☐ Only this
-- folded
≡ plan   Combinable dis…  ▰▰▰▱▱▱ 2 of 4
80=======================================================================
-- as it was sent
≡ plan   Combinable discount codes                          ▰▰▰▱▱▱ 2 of 4
  Carts accept any number of codes; they add up to at most 100 %. Codes
  live in Redis.

  ☑ Store codes in Redis behind a CodeStore trait
  ☑ Let Cart hold a list of discounts
  ◐ Add them up in Cart::total, capped at 100 %
  ☐ Reject expired codes with a clear error  after 1, 3
  ⊘ Add a page for administrators

  Three files change.
-- begun
≡ plan   Combinable discount codes
-- without title, overview and body
≡ plan   without a title                                    ▱▱▱▱▱▱ 0 of 1

  ☐ Only this
-- folded
≡ plan   Combinable discount codes                          ▰▰▰▱▱▱ 2 of 4
120==============================================================================================================
-- as it was sent
≡ plan   Combinable discount codes                                                                  ▰▰▰▱▱▱ 2 of 4
  Carts accept any number of codes; they add up to at most 100 %. Codes live in Redis.

  ☑ Store codes in Redis behind a CodeStore trait
  ☑ Let Cart hold a list of discounts
  ◐ Add them up in Cart::total, capped at 100 %
  ☐ Reject expired codes with a clear error  after 1, 3
  ⊘ Add a page for administrators

  Three files change.
-- begun
≡ plan   Combinable discount codes
-- without title, overview and body
≡ plan   without a title                                                                            ▱▱▱▱▱▱ 0 of 1

  ☐ Only this
-- folded
≡ plan   Combinable discount codes                                                                  ▰▰▰▱▱▱ 2 of 4
"#);
    }

    #[test]
    fn the_newest_plan_follows_the_live_list() {
        let todo = |id: &str, status: TodoStatus, after: &[&str]| Todo {
            id: id.to_owned(),
            content: format!("do {id}"),
            status,
            dependencies: after.iter().map(|&it| it.to_owned()).collect(),
            documents: Vec::new(),
        };
        let todos = Todos {
            list: vec![
                todo("store", TodoStatus::Completed, &[]),
                todo("cart", TodoStatus::Completed, &[]),
                todo("total", TodoStatus::Completed, &[]),
                todo("new", TodoStatus::Pending, &["cart"]),
            ],
            version: 4,
        };
        let live = Look {
            todos: &todos,
            selected: true,
            ..look(60)
        };
        insta::assert_snapshot!(picture(&combinable(), &live), @r#"
≡ plan   Combinable discount codes               ▰▰▰▰▰▱ 3 of 4
  Carts accept any number of codes; they add up to at most 100
  %. Codes live in Redis.

  ☑ do store
  ☑ do cart
  ☑ do total
  ☐ do new  after 2

  Three files change.

  b build   e edit   s save   c comment   ↓ todos
"#);
        // An open plan is not the one that the list was begun by.
        let open = open("plan", None, json!({ "title": "Next" }));
        assert_eq!(picture(&open, &live), "≡ plan   Next\n");
    }

    #[test]
    fn states_have_roles() {
        let mut sheet = Sheet::default();
        sheet.update(
            &combinable(),
            &Look {
                newest: false,
                ..look(100)
            },
        );
        assert_eq!(
            roles(&sheet.rows[0]),
            "plan:Dim Combinable discount codes:Strong+bold | ▰▰▰▱▱▱:Waiting 2 of 4:Dim"
        );
        let signs: Vec<(String, Role)> = sheet.rows[3..8]
            .iter()
            .map(|it| (it.spans[0].text.to_string(), it.spans[0].role))
            .collect();
        let expected = [
            ("☑", Role::Done),
            ("☑", Role::Done),
            ("◐", Role::Waiting),
            ("☐", Role::Dim),
            ("⊘", Role::Faint),
        ];
        assert_eq!(signs, expected.map(|(sign, role)| (sign.to_owned(), role)));
    }

    #[test]
    fn a_heading_that_repeats_the_title_goes() {
        let body = |content: &str, is_open: bool| {
            let document = if is_open {
                open("plan", Some(content), json!({ "title": "Codes" }))
            } else {
                closed("plan", Some(content), json!({ "title": "Codes" }))
            };
            picture(
                &document,
                &Look {
                    newest: false,
                    ..look(40)
                },
            )
        };
        for (name, content, is_open, picture) in [
            ("the same words", "# Codes\ntext", false, "≡ plan   Codes\n\n  text\n"),
            (
                "other words stay",
                "# Costs\ntext",
                false,
                "≡ plan   Codes\n\n  Costs\n\n  text\n",
            ),
            ("undecided while it is open", "# Cod", true, "≡ plan   Codes\n"),
            ("nothing else", "# Codes", false, "≡ plan   Codes\n"),
        ] {
            assert_eq!(body(content, is_open), picture, "{name}");
        }
    }
}
