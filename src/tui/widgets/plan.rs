//! `plan`: title and progress, overview, todos, then its Markdown. The newest plan shows the live list; the document itself
//! stays as it was sent.

use std::collections::HashMap;

use super::{
    DocumentKind, DocumentState, Key, Leaf, MEASURE, RenderContext, copy,
    heading::{Facts, Weight, gap, heading, key, line, put_key, sign, titled, with_code, word},
    seed,
    todo::{self, Item},
};
use crate::{
    protocol::{Document, TodoStatus, document::Plan},
    t,
    text::{Role, Sanitized, Span, StyledLine, markdown::Flow, width::width, wrap::wrap},
};

impl DocumentKind for Plan<'_> {
    fn lay_out(
        &mut self,
        document: &Document,
        context: &RenderContext<'_>,
        state: &mut DocumentState,
    ) -> Option<usize> {
        state.limit(&mut self.content, document.is_open());
        let signed = state.sign(glyph(), false);
        let mut head = head(self, document, context);
        let flow = state
            .memo
            .flow
            .get_or_insert_with(|| Flow::new(seed(document, context)));
        let lines = &mut state.memo.lines;
        lines.take(self.content, document.is_open());
        let body = body(lines.text(), self.title, document.is_open());
        let below = state.memo.head;
        let mut rows = std::mem::take(&mut state.memo.flow_rows);
        let width = context.width.min(MEASURE);
        let changed = flow.update(body, !document.is_open(), width, context.colours, &mut rows);
        if !rows.is_empty() {
            head.push(StyledLine::blank());
        }
        let headed = state.set_head(head);
        let keys = keys(context, document);
        // The body stands behind the head; the keys, if any, behind the body.
        let first = if headed { 0 } else { below + changed };
        state.rows.truncate(state.memo.head + changed);
        state.rows.extend(rows.iter().skip(changed).cloned());
        state.rows.extend(keys);
        state.memo.flow_rows = rows;
        Some(if signed { 0 } else { first })
    }

    fn folded(&self, document: &Document, context: &RenderContext<'_>) -> Leaf {
        let title = Span::new(Sanitized::line(self.title), Role::Text);
        Leaf::line(
            glyph(),
            heading(t!("plan-word"), &[title], facts(self, document, context), context.width),
        )
    }

    fn summary(&self, _: &Document) -> Sanitized {
        Sanitized::line(&format!("{}  {}", t!("plan-word"), self.title))
    }

    fn depends(&self, document: &Document, context: &RenderContext<'_>, key: &mut Key) {
        key.newest = context.newest;
        key.waits = context.waits;
        key.selected = context.selected;
        key.elsewhere = context.waits && context.elsewhere;
        key.todo = context.todo;
        if is_live(document, context) {
            key.todos = 1 + context.todos.version;
        }
    }

    fn copy_text(&self, _: &Document) -> Sanitized {
        let todos = self
            .todos
            .iter()
            .map(|it| format!("{} {}", todo::checkbox(&it.status).text, it.content));
        let todos = todos.collect::<Vec<_>>().join("\n");
        let title = format!("# {}", self.title);
        let parts = [title.as_str(), self.overview, &todos, self.content].map(|it| it.trim_end_matches('\n'));
        Sanitized::from(format!("{}\n", copy::joined(&parts, "\n\n")))
    }
}

fn glyph() -> Span {
    sign("≡", Role::ModePlan)
}

/// Returns true for the plan of the live list; while it is being written, that is the previous plan.
pub(super) fn is_live(document: &Document, look: &RenderContext<'_>) -> bool {
    look.newest && !document.is_open()
}

fn facts(plan: &Plan<'_>, document: &Document, look: &RenderContext<'_>) -> Facts {
    let mut facts = Facts::default();
    let (done, all) = if is_live(document, look) {
        look.todos.progress()
    } else {
        let counted = plan.todos.iter().filter(|it| it.status != TodoStatus::Cancelled);
        let done = plan.todos.iter().filter(|it| it.status == TodoStatus::Completed);
        (done.count(), counted.count())
    };
    if document.is_incomplete() {
        facts.word(Weight::Heavy, t!("document-broken-off"), Role::Error);
    }
    let is_superseded = look.superseded && !document.is_open();
    if is_superseded {
        facts.word(Weight::Heavy, t!("plan-superseded"), Role::Dim);
    }
    if all > 0 {
        // How far a plan came that counts no more matters less.
        let weight = if is_superseded { Weight::Light } else { Weight::Heavy };
        facts.push(weight, todo::progress(done, all));
    }
    facts
}

fn head(plan: &Plan<'_>, document: &Document, look: &RenderContext<'_>) -> Vec<StyledLine> {
    let columns = look.width;
    let title = match plan.title.trim() {
        "" => Span::new(Sanitized::literal(t!("plan-untitled")), Role::Dim),
        title => Span::new(Sanitized::line(title), Role::Strong).bold(),
    };
    let word = word(t!("plan-word"));
    let under = gap(width(&word.text));
    let mut rows = titled(&[title], &[word], &[under], facts(plan, document, look), columns);
    if !plan.overview.trim().is_empty() {
        rows.extend(wrap(
            &with_code(&Sanitized::new(plan.overview.trim()), Role::Text),
            columns.min(MEASURE),
            &[],
            &[],
        ));
    }
    let items = items(plan, document, look);
    if !items.is_empty() {
        rows.push(StyledLine::blank());
        rows.extend(todo::rows(&items, look.todo, columns));
    }
    rows
}

fn items<'a>(plan: &'a Plan<'a>, document: &Document, look: &'a RenderContext<'_>) -> Vec<Item<'a>> {
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

fn keys(look: &RenderContext<'_>, document: &Document) -> Vec<StyledLine> {
    if document.is_open() || !look.newest {
        return Vec::new();
    }
    if !look.selected {
        let name = if look.elsewhere {
            t!("key-waiting-build")
        } else {
            t!("key-tab-build")
        };
        let way = key(name, t!("plan-key-build"), Role::Waiting);
        let rows = [StyledLine::blank(), line(&way, Facts::default(), look.width)];
        return if look.waits { rows.to_vec() } else { Vec::new() };
    }
    let on_plan = [
        (t!("key-mark-build"), t!("plan-key-build")),
        (t!("key-mark-edit"), t!("plan-key-edit")),
        ("s", t!("plan-key-save")),
        ("c", t!("plan-key-comment")),
        ("↓", t!("plan-key-todos")),
    ];
    let on_todo = [
        ("x", t!("plan-key-tick")),
        ("enter", t!("plan-key-reword")),
        ("i", t!("plan-key-insert")),
        (t!("key-mark-remove"), t!("plan-key-remove")),
        ("J K", t!("plan-key-move")),
    ];
    let shown = if look.todo.is_some() { on_todo } else { on_plan };
    let mut rows = Vec::new();
    for (name, does) in shown {
        put_key(&mut rows, &key(name, does, Role::Waiting), 3, look.width);
    }
    rows.insert(0, StyledLine::blank());
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
        let sent = RenderContext {
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
                RenderContext {
                    fold: Fold::Folded,
                    ..sent
                },
            ),
        ];
        insta::assert_snapshot!(pictures(&states), @r#"
40=====================================
-- as it was sent
≡ plan   Combinable discount codes
                     ▰▰▰▱▱▱ 2 of 4 done
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
≡ plan   untitled    ▱▱▱▱▱▱ 0 of 1 done

  ☐ Only this
-- folded
≡ plan   Combinabl…  ▰▰▰▱▱▱ 2 of 4 done
80=======================================================================
-- as it was sent
≡ plan   Combinable discount codes                     ▰▰▰▱▱▱ 2 of 4 done
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
≡ plan   untitled                                      ▱▱▱▱▱▱ 0 of 1 done

  ☐ Only this
-- folded
≡ plan   Combinable discount codes                     ▰▰▰▱▱▱ 2 of 4 done
120==============================================================================================================
-- as it was sent
≡ plan   Combinable discount codes                                                             ▰▰▰▱▱▱ 2 of 4 done
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
≡ plan   untitled                                                                              ▱▱▱▱▱▱ 0 of 1 done

  ☐ Only this
-- folded
≡ plan   Combinable discount codes                                                             ▰▰▰▱▱▱ 2 of 4 done
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
        let live = RenderContext {
            todos: &todos,
            selected: true,
            ..look(60)
        };
        insta::assert_snapshot!(picture(&combinable(), &live), @r#"
≡ plan   Combinable discount codes          ▰▰▰▰▰▱ 3 of 4 done
  Carts accept any number of codes; they add up to at most 100
  %. Codes live in Redis.

  ☑ do store
  ☑ do cart
  ☑ do total
  ☐ do new  after 2

  Three files change.

  b, enter build   e, enter edit   s save   c comment
  ↓ todos
"#);
        // An open plan is not the one that the list was begun by.
        let open = open("plan", None, json!({ "title": "Next" }));
        assert_eq!(picture(&open, &live), "≡ plan   Next\n");
    }

    #[test]
    fn a_plan_that_a_newer_one_has_replaced_says_so() {
        let old = RenderContext {
            newest: false,
            superseded: true,
            ..look(60)
        };
        let heading = |look: &RenderContext<'_>| picture(&combinable(), look).lines().next().map(str::to_owned);
        assert!(
            heading(&old).is_some_and(|it| it.contains("superseded")),
            "{:?}",
            heading(&old)
        );
        assert!(heading(&look(60)).is_some_and(|it| !it.contains("superseded")));
    }

    #[test]
    fn states_have_roles() {
        let mut sheet = DocumentState::default();
        sheet.lay_out(
            &combinable(),
            &RenderContext {
                newest: false,
                ..look(100)
            },
        );
        assert_eq!(
            roles(&sheet.rows[0]),
            "plan:Dim Combinable discount codes:Strong+bold | ▰▰▰▱▱▱:Waiting 2 of 4 done:Dim"
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
                &RenderContext {
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
