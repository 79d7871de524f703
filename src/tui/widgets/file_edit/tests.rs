use serde_json::{Value, json};

use super::super::{
    DocumentState, Fold, RenderContext,
    testing::{closed, look, numbered, open, opened, picture, pictures, roles},
};
use super::*;
use crate::{
    protocol::{Done, Event},
    text::Background,
};

fn edit(old: &str, new: &str, line: Value, more: Value) -> Document {
    let mut metadata = json!({
        "filePath": "src/cart.rs", "operation": "edit",
        "diff": { "oldString": old, "newString": new, "startLine": line },
    });
    if let (Value::Object(members), Value::Object(more)) = (&mut metadata, more) {
        members.extend(more);
    }
    closed("file_edit", Some(new), metadata)
}

fn cart(more: Value) -> Document {
    edit(
        "pub struct Cart {\n    pub items: Vec<Item>,\n}",
        "pub struct Cart {\n    pub items: Vec<LineItem>,\n    pub discount: Option<Discount>,\n}",
        json!(8),
        more,
    )
}

#[test]
fn a_change_says_how_it_was_checked_and_no_more_than_is_known() {
    let check = |is_pending: bool, is_checked: bool, fixed: u64, unchecked: &[&str]| {
        json!({ "applied": "applied", "checked": {
            "isPending": is_pending, "isChecked": is_checked, "newProblems": 0, "fixedProblems": fixed,
            "problems": [], "unchecked": unchecked,
        }})
    };
    let late = &["ty has not answered in time"][..];
    for (checked, shown) in [
        (check(true, false, 0, &[]), "◐ checking…"),
        (check(false, true, 0, &[]), "applied  ✓ checked"),
        (check(false, true, 2, &[]), "applied  ✓ 2 problems fixed"),
        (check(false, true, 2, late), "applied  2 problems fixed  partly checked"),
        (check(false, true, 0, late), "applied  partly checked"),
        (check(false, false, 0, late), "applied  not checked"),
        (check(false, false, 0, &[]), "applied"),
    ] {
        let picture = picture(&cart(checked), &look(100));
        let head = picture.lines().next().unwrap_or_default();
        assert!(head.trim_end().ends_with(shown), "{shown}: {picture}");
    }
    let mut open = check(false, true, 1, &[]);
    open["checked"]["openProblems"] = 1.into();
    let picture = picture(&cart(open), &look(100));
    let head = picture.lines().next().unwrap_or_default();
    assert!(
        head.trim_end().ends_with("applied  ✗ 1 problem left  1 problem fixed"),
        "{picture}"
    );
    // Where the answer has ended, nobody looks at it any more.
    let mut response = opened("file_edit", Some("b"), check(true, false, 0, &[]));
    response.apply(&Event::Done(Done::default()), 1);
    let found = change_check(&response.documents[0].metadata).expect("a check");
    assert_eq!((found.is_pending, found.is_checked), (false, false));
    assert_eq!(found.unchecked, ["the answer ended first"]);
}

#[test]
fn problems_are_marked_beside_their_lines_and_listed_with_those_that_may_be_older() {
    let problem = |file: &str, line: u64, severity: &str, message: &str| json!({ "filePath": file, "line": line, "column": 5, "severity": severity, "message": message, "source": "rustc" });
    let document = cart(json!({ "applied": "applied", "checked": {
        "isPending": false, "isChecked": true, "newProblems": 1, "fixedProblems": 0,
        "problems": [problem("src/cart.rs", 9, "error", "no LineItem")],
        "olderProblems": [
            problem("src/cart.rs", 11, "warning", "unused"),
            problem("src/main.rs", 10, "error", "no Cart"),
        ],
        "unchecked": [],
    }}));
    let expected = "\
± edit   src/cart.rs                                      +2 −1  applied  ✗ 1 new problem
    8   pub struct Cart {
    9 −     pub items: Vec<Item>,
    9✗+     pub items: Vec<LineItem>,
   10 +     pub discount: Option<Discount>,
   11?  }
  ✗ src/cart.rs:9:5  no LineItem  rustc
  ? src/cart.rs:11:5  unused  rustc
  ? src/main.rs:10:5  no Cart  rustc
";
    assert_eq!(picture(&document, &look(87)).trim_end(), expected.trim_end());
    let mut only_older = document;
    only_older.metadata["checked"]["newProblems"] = 0.into();
    only_older.metadata["checked"]["problems"] = json!([]);
    let picture = picture(&only_older, &look(100));
    let head = picture.lines().next().unwrap_or_default();
    assert!(
        head.trim_end().ends_with("applied  ? 2 problems, maybe older"),
        "{picture}"
    );
}

#[test]
fn edits() {
    let cart = cart(json!({}));
    let hunk = edit(
        "a\n",
        "b\nc\n",
        json!(40),
        json!({ "hunk": { "index": 2, "count": 3 }, "applied": "pending" }),
    );
    let far: String = numbered("line ", 30);
    let far = edit(
        &far,
        &far.replace("line 2\n", "line two\n").replace("line 25\n", ""),
        json!(1),
        json!({}),
    );
    let inserted = edit("", "use std::fmt;\n", json!(3), json!({}));
    let unplaced = edit("a", "b", Value::Null, json!({ "applied": "failed" }));
    let same = edit("a", "a", json!(1), json!({}));
    let states = [
        ("applied", &cart, look(0)),
        (
            "a later hunk that waits",
            &hunk,
            RenderContext {
                joined: true,
                ..look(0)
            },
        ),
        ("two changes far apart", &far, look(0)),
        ("an insertion", &inserted, look(0)),
        ("failed, nobody knows where", &unplaced, look(0)),
        ("nothing changes", &same, look(0)),
        (
            "in a read-only mode",
            &same,
            RenderContext {
                read_only: true,
                ..look(0)
            },
        ),
        (
            "folded",
            &cart,
            RenderContext {
                fold: Fold::Folded,
                ..look(0)
            },
        ),
    ];
    insta::assert_snapshot!(pictures(&states), @r#"
40=====================================
-- applied
± edit   src/cart.rs     +2 −1  applied
    8   pub struct Cart {
    9 −     pub items: Vec<Item>,
    9 +     pub items: Vec<LineItem>,
   10 +     pub discount: Option<Discou
        nt>,
   11   }
-- a later hunk that waits
± @ line 40      +2 −1  2 of 3  pending
   40 − a
   40 + b
   41 + c
-- two changes far apart
± edit   src/cart.rs     +1 −2  applied
    1   line 1
    2 − line 2
    2 + line two
    3   line 3
    4   line 4
    5   line 5
        … 16 lines
   22   line 22
   23   line 23
   24   line 24
   25 − line 25
   25   line 26
   26   line 27
   27   line 28
        … 2 lines
-- an insertion
± edit   src/cart.rs        +1  applied
    3 + use std::fmt;
-- failed, nobody knows where
± edit   src/cart.rs    +1 −1  ✗ failed
      − a
      + b
-- nothing changes
± edit   src/cart.rs            applied
  no changes
-- in a read-only mode
± edit   src…t.rs   ✗ read-on…  applied
  no changes
-- folded
± edit   src/cart.rs     +2 −1  applied
80=======================================================================
-- applied
± edit   src/cart.rs                                       +2 −1  applied
    8   pub struct Cart {
    9 −     pub items: Vec<Item>,
    9 +     pub items: Vec<LineItem>,
   10 +     pub discount: Option<Discount>,
   11   }
-- a later hunk that waits
± @ line 40                                        +2 −1  2 of 3  pending
   40 − a
   40 + b
   41 + c
-- two changes far apart
± edit   src/cart.rs                                       +1 −2  applied
    1   line 1
    2 − line 2
    2 + line two
    3   line 3
    4   line 4
    5   line 5
        … 16 lines
   22   line 22
   23   line 23
   24   line 24
   25 − line 25
   25   line 26
   26   line 27
   27   line 28
        … 2 lines
-- an insertion
± edit   src/cart.rs                                          +1  applied
    3 + use std::fmt;
-- failed, nobody knows where
± edit   src/cart.rs                                      +1 −1  ✗ failed
      − a
      + b
-- nothing changes
± edit   src/cart.rs                                              applied
  no changes
-- in a read-only mode
± edit   src/cart.rs   ✗ read-only                                applied
  no changes
-- folded
± edit   src/cart.rs                                       +2 −1  applied
120==============================================================================================================
-- applied
± edit   src/cart.rs                                                                               +2 −1  applied
    8   pub struct Cart {
    9 −     pub items: Vec<Item>,
    9 +     pub items: Vec<LineItem>,
   10 +     pub discount: Option<Discount>,
   11   }
-- a later hunk that waits
± @ line 40                                                                                +2 −1  2 of 3  pending
   40 − a
   40 + b
   41 + c
-- two changes far apart
± edit   src/cart.rs                                                                               +1 −2  applied
    1   line 1
    2 − line 2
    2 + line two
    3   line 3
    4   line 4
    5   line 5
        … 16 lines
   22   line 22
   23   line 23
   24   line 24
   25 − line 25
   25   line 26
   26   line 27
   27   line 28
        … 2 lines
-- an insertion
± edit   src/cart.rs                                                                                  +1  applied
    3 + use std::fmt;
-- failed, nobody knows where
± edit   src/cart.rs                                                                              +1 −1  ✗ failed
      − a
      + b
-- nothing changes
± edit   src/cart.rs                                                                                      applied
  no changes
-- in a read-only mode
± edit   src/cart.rs   ✗ read-only                                                                        applied
  no changes
-- folded
± edit   src/cart.rs                                                                               +2 −1  applied
"#);
}

#[test]
fn whole_files() {
    let lines: String = numbered("line ", 20);
    let file = |content: Option<&str>, metadata: Value| closed("file_edit", content, metadata);
    let created = file(Some(&lines), json!({ "filePath": "src/lib.rs", "operation": "create" }));
    let short = file(
        Some("pub mod discount;\n"),
        json!({ "filePath": "src/lib.rs", "operation": "create" }),
    );
    let empty = file(Some(""), json!({ "filePath": "src/empty.rs", "operation": "create" }));
    let growing = open(
        "file_edit",
        Some("pub mod dis"),
        json!({ "filePath": "src/lib.rs", "operation": "create" }),
    );
    let deleted = file(
        None,
        json!({ "filePath": "src/old.rs", "operation": "delete", "applied": "rejected" }),
    );
    let renamed = file(
        None,
        json!({
            "filePath": "src/discount.rs", "newFilePath": "src/discount/mod.rs", "operation": "rename",
        }),
    );
    let states = [
        ("created, its head", &created, look(0)),
        ("created, short", &short, look(0)),
        ("created, empty", &empty, look(0)),
        ("being written", &growing, look(0)),
        ("deleted, rejected", &deleted, look(0)),
        ("renamed", &renamed, look(0)),
    ];
    insta::assert_snapshot!(pictures(&states), @r#"
40=====================================
-- created, its head
± create src/lib.rs        +20  applied
    1 + line 1
    2 + line 2
    3 + line 3
    4 + line 4
    5 + line 5
    6 + line 6
    7 + line 7
    8 + line 8
    9 + line 9
   10 + line 10
   11 + line 11
   12 + line 12
        … 8 lines
-- created, short
± create src/lib.rs         +1  applied
    1 + pub mod discount;
-- created, empty
± create src/empty.rs           applied
  empty file
-- being written
± create src/lib.rs       +1  ◐ writing
    1 + pub mod dis
-- deleted, rejected
± delete src/old.rs          ✗ rejected
-- renamed
± rename src/…t.rs → …/mod.rs   applied
80=======================================================================
-- created, its head
± create src/lib.rs                                          +20  applied
    1 + line 1
    2 + line 2
    3 + line 3
    4 + line 4
    5 + line 5
    6 + line 6
    7 + line 7
    8 + line 8
    9 + line 9
   10 + line 10
   11 + line 11
   12 + line 12
        … 8 lines
-- created, short
± create src/lib.rs                                           +1  applied
    1 + pub mod discount;
-- created, empty
± create src/empty.rs                                             applied
  empty file
-- being written
± create src/lib.rs                                         +1  ◐ writing
    1 + pub mod dis
-- deleted, rejected
± delete src/old.rs                                            ✗ rejected
-- renamed
± rename src/discount.rs → src/discount/mod.rs                    applied
120==============================================================================================================
-- created, its head
± create src/lib.rs                                                                                  +20  applied
    1 + line 1
    2 + line 2
    3 + line 3
    4 + line 4
    5 + line 5
    6 + line 6
    7 + line 7
    8 + line 8
    9 + line 9
   10 + line 10
   11 + line 11
   12 + line 12
        … 8 lines
-- created, short
± create src/lib.rs                                                                                   +1  applied
    1 + pub mod discount;
-- created, empty
± create src/empty.rs                                                                                     applied
  empty file
-- being written
± create src/lib.rs                                                                                 +1  ◐ writing
    1 + pub mod dis
-- deleted, rejected
± delete src/old.rs                                                                                    ✗ rejected
-- renamed
± rename src/discount.rs → src/discount/mod.rs                                                            applied
"#);
}

#[test]
fn a_whole_file_unfolds() {
    let lines: String = numbered("line ", 20);
    let created = closed(
        "file_edit",
        Some(&lines),
        json!({ "filePath": "a.rs", "operation": "create" }),
    );
    let mut sheet = DocumentState::default();
    sheet.lay_out(
        &created,
        &RenderContext {
            fold: Fold::Full,
            ..look(60)
        },
    );
    assert_eq!(sheet.rows.len(), 21);
    assert_eq!(sheet.rows[20].plain(), " 20 + line 20");
}

#[test]
fn changed_lines_and_words_have_grounds_of_their_own() {
    let mut sheet = DocumentState::default();
    sheet.lay_out(&cart(json!({})), &look(80));
    assert_eq!(
        roles(&sheet.rows[0]),
        "edit:Dim src/cart.rs:Strong+bold | +2:Added −1:Removed applied:Dim"
    );
    let grounds: Vec<Background> = sheet.rows.iter().map(|it| it.background).collect();
    let (plain, added, removed) = (Background::Plain, Background::Added, Background::Removed);
    assert_eq!(grounds, [plain, plain, removed, added, added, plain]);
    let words: Vec<(String, &str)> = sheet
        .rows
        .iter()
        .flat_map(|it| &it.spans)
        .filter(|it| matches!(it.background, Background::AddedWord | Background::RemovedWord))
        .map(|it| (format!("{:?}", it.background), it.text.as_str()))
        .collect();
    // A line that is new as a whole needs no marked words.
    assert_eq!(
        words,
        [("RemovedWord".to_owned(), "Item"), ("AddedWord".to_owned(), "LineItem")]
    );
    // Every sign of a changed line stands on its ground, the number too.
    assert!(sheet.rows[2].spans.iter().all(|it| it.background != Background::Plain));
}

#[test]
fn the_rest_of_a_line_follows_both_texts() {
    let counted = |old: &str, new: &str| {
        let document = edit(old, new, json!(1), json!({}));
        let View::FileEdit(it) = document.view() else {
            panic!("it is an edit")
        };
        it.compare(3).map(|it| (it.added, it.removed))
    };
    for (name, old, new, counts) in [
        ("a line below one that stays", "a", "a\nb", (1, 0)),
        ("whole lines", "a\n", "a\nb\n", (1, 0)),
        ("all goes", "a\nb\n", "", (0, 2)),
        ("all is new", "", "a\n", (1, 0)),
        ("only the line break", "a", "a\n", (1, 0)),
    ] {
        assert_eq!(counted(old, new), Some(counts), "{name}");
    }
}

/// An edit of line 21 of a file of 40 lines, which knows the lines around it.
fn known() -> Document {
    let lines = |range: std::ops::Range<usize>| -> String { range.map(|it| format!("line {it}\n")).collect() };
    let diff = json!({
        "oldString": "line 21\n", "newString": "twenty-one\n", "startLine": 21, "endLine": 21,
        "contextBefore": lines(9..21), "contextAfter": lines(22..34),
    });
    closed(
        "file_edit",
        Some("twenty-one\n"),
        json!({ "filePath": "a.txt", "operation": "edit", "diff": diff }),
    )
}

/// The rows below the heading.
fn body_of(document: &Document, context: &RenderContext<'_>) -> Vec<String> {
    let mut state = DocumentState::default();
    state.lay_out(document, context);
    state
        .rows
        .iter()
        .skip(1)
        .map(|it| it.plain().trim_end().to_owned())
        .collect()
}

#[test]
fn a_change_stands_among_as_many_lines_of_its_file_as_are_wanted() {
    let change = [" 21 − line 21", " 21 + twenty-one"].map(str::to_owned);
    for width in [20, 40, 80, 120, 200] {
        for (around, above, below) in [
            (0, 21..21, 22..22),
            (1, 20..21, 22..23),
            (3, 18..21, 22..25),
            (50, 9..21, 22..34),
        ] {
            let context = RenderContext {
                context: ContextLines::new(around),
                ..look(width)
            };
            let line = |it: usize| format!("{it:>3}   line {it}");
            let wants: Vec<String> = above.map(line).chain(change.clone()).chain(below.map(line)).collect();
            assert_eq!(body_of(&known(), &context), wants, "{around} lines at {width} columns");
        }
    }
}

#[test]
fn both_sides_have_the_same_lines_around_a_change() {
    let rows = sides(&known(), &look(120)).unwrap();
    let plain = |it: &Option<StyledLine>| {
        it.as_ref()
            .map(|it| it.plain().trim_end().to_owned())
            .unwrap_or_default()
    };
    let rows: Vec<(String, String)> = rows.iter().map(|(old, new)| (plain(old), plain(new))).collect();
    let both = |it: usize| (format!(" {it}   line {it}"), format!(" {it}   line {it}"));
    let change = (" 21 − line 21".to_owned(), " 21 + twenty-one".to_owned());
    assert_eq!(
        rows,
        [both(18), both(19), both(20), change, both(22), both(23), both(24)]
    );
}

#[test]
fn what_the_hunk_above_shows_is_not_shown_again() {
    let hunk = |line: u64, before: &str, after: &str| {
        let diff = json!({
            "oldString": "x\n", "newString": "y\n", "startLine": line, "endLine": line,
            "contextBefore": before, "contextAfter": after,
        });
        closed(
            "file_edit",
            Some("y\n"),
            json!({ "filePath": "a.rs", "toolCallId": "call_1", "diff": diff }),
        )
    };
    let first = hunk(1, "", "2\n3\n4\n5\n");
    let second = hunk(6, "2\n3\n4\n5\n", "");
    for (around, shown) in [
        (
            3,
            vec![
                "  1 − x",
                "  1 + y",
                "  2   2",
                "  3   3",
                "  4   4",
                "  5   5",
                "  6 − x",
                "  6 + y",
            ],
        ),
        (
            1,
            vec!["  1 − x", "  1 + y", "  2   2", "  5   5", "  6 − x", "  6 + y"],
        ),
    ] {
        let context = ContextLines::new(around);
        let joined = joins(&first, &second, context).unwrap();
        let above = body_of(&first, &RenderContext { context, ..look(60) });
        let below = body_of(
            &second,
            &RenderContext {
                context: joined,
                joined: true,
                ..look(60)
            },
        );
        assert_eq!([above, below].concat(), shown, "{around}");
    }
    // Nobody knows what is between hunks without line numbers.
    let unplaced = edit(
        "a",
        "b",
        Value::Null,
        json!({ "toolCallId": "call_1", "filePath": "a.rs" }),
    );
    let lines = joins(&first, &unplaced, ContextLines::default());
    assert_eq!(lines, Some(ContextLines::default()));
}

#[test]
fn line_ends_are_named_where_they_differ() {
    let rows = |diff: Value| {
        let document = closed(
            "file_edit",
            None,
            json!({ "filePath": "a.rs", "operation": "edit", "diff": diff }),
        );
        body_of(&document, &look(60))
    };
    let at_end = |old: &str, new: &str| {
        rows(json!({ "oldString": old, "newString": new, "startLine": 2, "contextBefore": "a\n", "contextAfter": "" }))
    };
    assert_eq!(at_end("b", "b\n"), ["  1   a", "  2 − b  no newline at end", "  2 + b"]);
    assert_eq!(at_end("b\n", "b\nc"), ["  1   a", "  2   b", "  3 + c"]);
    assert_eq!(at_end("b", "c"), ["  1   a", "  2 − b", "  2 + c"]);
    let plain = |old: &str, new: &str| rows(json!({ "oldString": old, "newString": new, "startLine": 1 }));
    assert_eq!(plain("a\r\n", "a\n"), ["  1 − a␍", "  1 + a"]);
    assert_eq!(plain("a\r\nb\r\n", "a\r\nc\r\n"), ["  1   a", "  2 − b", "  2 + c"]);
}

#[test]
fn lines_that_a_gateway_makes_up_do_no_harm() {
    // Lines that do not end, line numbers that cannot be, and a text of control characters.
    for (before, line) in [
        ("half a line", 3_u64),
        ("\u{1b}[31m\n\u{202e}b\n", 0),
        ("1\n2\n3\n", u64::MAX),
    ] {
        let diff = json!({
            "oldString": "x", "newString": "y", "startLine": line, "contextBefore": before, "contextAfter": "\r\u{7}z",
        });
        let document = closed(
            "file_edit",
            None,
            json!({ "filePath": "a.rs", "operation": "edit", "diff": diff }),
        );
        for width in [1, 5, 20] {
            let mut state = DocumentState::default();
            state.lay_out(&document, &look(width));
            let text: String = state.rows.iter().map(StyledLine::plain).collect();
            assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{7}', '\r']), "{text:?}");
        }
    }
}

#[test]
fn a_copied_patch_has_three_lines_of_context_whatever_is_shown() {
    let document = known();
    assert_eq!(
        super::super::copy_text(&document).as_str(),
        "--- a/a.txt\n+++ b/a.txt\n@@ -18,7 +18,7 @@\n line 18\n line 19\n line 20\n-line 21\n+twenty-one\n line 22\n line 23\n line 24\n"
    );
}
