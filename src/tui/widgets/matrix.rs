//! Every kind in every state at four widths, dark and light, and at forty columns in German: one picture for each kind.
//!
//! The states come from the enums of the protocol, so that a new word asks for its picture. Under each row stand its marks,
//! a letter for a role (a capital where it is bold, `.` for plain text); what each letter is painted in, in our dark and in
//! our light theme, stands at the end: the two differ in nothing else.

use std::{collections::BTreeMap, collections::BTreeSet, path::Path};

use ratatui::{
    buffer::{Buffer, Cell},
    layout::Rect,
    widgets::StatefulWidget,
};
use serde_json::{Value, json};

use super::{
    Cited, DocumentKind as _, DocumentState, DocumentWidget, Fold, RenderContext,
    form::Form,
    testing::{closed, look, open, paint, too_wide},
};
use crate::{
    locale,
    protocol::{
        Applied, CommandState, Document, Kind, Operation, Outcome, Permission, Purpose, QuestionKind, TextFormat,
        TodoStatus, document::with_view,
    },
    text::{
        Background, Modifier, Role, Span,
        width::{self, spans_width},
    },
    theme::Theme,
};

/// Columns of a screen, and of what the pane gives to a look there.
const WIDTHS: [(usize, usize); 4] = [(40, 37), (80, 71), (120, 111), (200, 191)];

/// A state of a document: its name, the document, and how it is looked at.
pub(super) type State = (String, Document, RenderContext<'static>);

/// The kinds that the protocol names, and one that it does not.
fn kinds() -> Vec<Kind> {
    Kind::KNOWN.iter().copied().chain(["chart"]).map(Kind::parse).collect()
}

pub(super) fn state(name: &str, document: Document) -> State {
    (name.to_owned(), document, look(0))
}

fn with(mut metadata: Value, more: Value) -> Value {
    if let (Value::Object(members), Value::Object(more)) = (&mut metadata, more) {
        members.extend(more);
    }
    metadata
}

/// All states of a kind. A kind that is not listed here has its own in its file (`DocumentKind::examples`).
fn states(kind: &Kind) -> Vec<State> {
    let word = kind.as_str();
    let words = |words: &'static [&'static str], with: &dyn Fn(&str) -> Document| -> Vec<State> {
        words.iter().map(|it| state(it, with(it))).collect()
    };
    let mut states = Vec::new();
    match kind {
        Kind::Text => {
            let text = "The **cart** has no `discount` yet, see [the page](https://shop.example).\n\n- one\n- two\n";
            states.push(state("open", open(word, Some(text), json!({}))));
            states.extend(words(TextFormat::KNOWN, &|it| {
                closed(word, Some(text), json!({ "format": it }))
            }));
        }
        Kind::CodeReference => {
            let code = "pub fn total(&self) -> Money {\n    self.items.iter().sum()\n}";
            let place = json!({ "filePath": "src/cart.rs", "startLine": 21, "endLine": 23 });
            states.push(state("open", open(word, Some(code), place.clone())));
            for (name, cited) in [
                ("unread", Cited::Unread),
                ("missing", Cited::Missing),
                ("the same", Cited::Lines(code)),
                ("another", Cited::Lines("fn other() {}")),
            ] {
                let look = RenderContext { cited, ..look(0) };
                states.push((name.to_owned(), closed(word, Some(code), place.clone()), look));
            }
        }
        Kind::CodeBlock => {
            let code = "fn main() {\n\tprintln!(\"hello\");\n}";
            states.push(state("open", open(word, Some(code), json!({ "language": "rust" }))));
            states.extend(words(Purpose::KNOWN, &|it| {
                closed(word, Some(code), json!({ "language": "rust", "purpose": it }))
            }));
        }
        Kind::FileEdit => {
            let edit = json!({
                "filePath": "src/cart.rs", "operation": "edit",
                "diff": { "oldString": "    a: Vec<Item>,\n", "newString": "    a: Vec<Line>,\n    b: u8,\n", "startLine": 9 },
            });
            states.push(state("open", open(word, None, edit.clone())));
            states.extend(words(Applied::KNOWN, &|it| {
                closed(word, None, with(edit.clone(), json!({ "applied": it })))
            }));
            states.extend(words(Operation::KNOWN, &|it| {
                let content = (it == "create").then_some("//! New.\n\nfn new() {}\n");
                let mut metadata = json!({ "filePath": "src/new.rs", "operation": it });
                if it == "rename" {
                    metadata = with(metadata, json!({ "newFilePath": "src/other.rs" }));
                }
                closed(word, content, metadata)
            }));
        }
        Kind::ToolCall => {
            let call = json!({ "toolName": "grep", "arguments": { "pattern": "fn total", "path": "src" } });
            states.push(state("open", open(word, None, call.clone())));
            for (name, result) in [
                (
                    "success",
                    json!({ "status": "success", "data": { "matchCount": 3, "matches": [] } }),
                ),
                (
                    "error",
                    json!({ "status": "error", "error": "the pattern has an unclosed group" }),
                ),
            ] {
                let more = json!({ "result": result, "duration_ms": 12 });
                states.push(state(name, closed(word, None, with(call.clone(), more))));
            }
            states.push(state("without a result", closed(word, None, call)));
        }
        Kind::TerminalCommand => {
            let ran = json!({ "command": "cargo test cart", "permissions": [], "output": "running 4 tests\n\u{1b}[32mok\u{1b}[m\n" });
            states.push(state("open", open(word, None, ran.clone())));
            states.extend(words(CommandState::KNOWN, &|it| {
                closed(
                    word,
                    None,
                    with(ran.clone(), json!({ "state": it, "duration_ms": 5300 })),
                )
            }));
            for code in [0, 101] {
                let more = json!({ "exitCode": code, "duration_ms": 5300 });
                states.push(state(
                    &format!("exit {code}"),
                    closed(word, None, with(ran.clone(), more)),
                ));
            }
            states.extend(words(Permission::KNOWN, &|it| {
                closed(
                    word,
                    None,
                    with(ran.clone(), json!({ "exitCode": 0, "permissions": [it] })),
                )
            }));
        }
        Kind::Plan => {
            let plan = |status: &str| {
                json!({
                    "title": "Combinable codes", "overview": "Carts take any number of codes.",
                    "todos": [{ "id": "a", "content": "Let Cart hold a list", "status": status },
                              { "id": "b", "content": "Add them up", "status": "pending", "dependencies": ["a"] }],
                })
            };
            states.push(state(
                "open",
                open(word, Some("## How\n\nAdded up.\n"), plan("pending")),
            ));
            states.extend(words(TodoStatus::KNOWN, &|it| {
                closed(word, Some("## How\n\nAdded up.\n"), plan(it))
            }));
            let older = RenderContext {
                newest: false,
                superseded: false,
                waits: false,
                ..look(0)
            };
            states.push((
                "an older one".to_owned(),
                closed(word, Some("Added up."), plan("pending")),
                older,
            ));
        }
        Kind::Clarification => {
            let questions = json!({ "questions": [
                { "id": "q1", "text": "May codes be combined?", "options": ["Only one", "Any number"] },
                { "id": "q2", "text": "Where are they kept?", "options": ["Redis", "Postgres"], "allowMultiple": true },
            ]});
            let approval = json!({
                "kind": "approval",
                "subject": { "type": "terminal_command", "metadata": { "command": "git push origin main", "permissions": ["network"] } },
                "questions": [{ "id": "approval", "text": "Allow `git push origin main`?",
                    "options": ["allow_once", "allow_session", "allow_always", "reject_once"] }],
            });
            for (kind, asked) in QuestionKind::KNOWN.iter().zip([questions, approval]) {
                let form: &'static Form = Box::leak(Box::new(Form::new("doc_001".into())));
                let waiting = RenderContext {
                    form: Some(form),
                    selected: true,
                    ..look(0)
                };
                states.push((format!("{kind} waiting"), open(word, None, asked.clone()), waiting));
                for outcome in Outcome::KNOWN {
                    let chosen = if *kind == "approval" { "allow_once" } else { "Only one" };
                    let question = if *kind == "approval" { "approval" } else { "q1" };
                    let more = json!({ "outcome": outcome, "answers": [{ "questionId": question, "selectedOptionIds": [chosen] }] });
                    states.push(state(
                        &format!("{kind} {outcome}"),
                        closed(word, None, with(asked.clone(), more)),
                    ));
                }
            }
        }
        Kind::Error => {
            let broken = json!({ "errorCode": "STREAM_INTERRUPTED", "source": "stream", "details": "After 12 s." });
            states.push(state("open", open(word, Some("The gateway closed"), broken.clone())));
            let closed = closed(word, Some("The gateway closed the stream"), broken);
            let older = RenderContext {
                newest: false,
                superseded: false,
                waits: false,
                ..look(0)
            };
            states.push(("an older one".to_owned(), closed.clone(), older));
            states.push(state("may be tried again", closed));
        }
        _ => states.extend(with_view!(closed(word, None, json!({})), it => it.examples(word))),
    }
    assert!(!states.is_empty(), "{kind} has no examples");
    // The last one as it is folded and as it is shown whole.
    if let Some((_, document, look)) = states.last() {
        let (document, look) = (document.clone(), *look);
        for (name, fold) in [("folded", Fold::Folded), ("unfolded", Fold::Full)] {
            states.push((name.to_owned(), document.clone(), RenderContext { fold, ..look }));
        }
    }
    states
}

/// The letter of a role. What a command printed in colours of its own has none of ours.
const fn letter(role: Role) -> char {
    match role {
        Role::Text => '.',
        Role::Strong => 's',
        Role::Dim => 'd',
        Role::Faint => 'f',
        Role::Rule => 'r',
        Role::User => 'u',
        Role::Accent => 'a',
        Role::Waiting => 'w',
        Role::Link => 'l',
        Role::Error => 'e',
        Role::Done => 'o',
        Role::Added => 'p',
        Role::Removed => 'm',
        Role::Code => 'c',
        Role::Number => 'n',
        Role::Keyword => 'k',
        Role::Type => 't',
        Role::Function => 'g',
        Role::String => 'q',
        Role::Comment => 'z',
        Role::ModeAgent => '1',
        Role::ModePlan => '2',
        Role::ModeAsk => '3',
        Role::ModeDebug => '4',
        Role::Indexed(_) | Role::Rgb(..) | Role::Picture(..) => 'x',
    }
}

fn marks(spans: &[Span], used: &mut BTreeMap<char, Role>, grounds: &mut BTreeSet<String>) -> String {
    let mut marks = String::new();
    for span in spans {
        let letter = letter(span.role);
        if letter != '.' && letter != 'x' && !span.text.trim().is_empty() {
            used.insert(letter, span.role);
        }
        if span.background != Background::Plain {
            grounds.insert(format!("{:?}", span.background));
        }
        let letter = if span.modifier.contains(Modifier::BOLD) {
            letter.to_ascii_uppercase()
        } else {
            letter
        };
        for part in span.text.chars() {
            let sign = if part == ' ' { ' ' } else { letter };
            let columns = width::width(part.encode_utf8(&mut [0; 4]));
            marks.extend(std::iter::repeat_n(sign, columns));
        }
    }
    marks
}

fn picture(sheet: &DocumentState, columns: usize, used: &mut BTreeMap<char, Role>) -> String {
    let mut picture = String::new();
    for (at, row) in sheet.rows.iter().enumerate() {
        let has_glyph = at == 0 || sheet.is_bar;
        let glyph = if has_glyph {
            sheet.glyph.clone()
        } else {
            Span::default()
        };
        let facts: String = row.facts.iter().map(|it| it.text.as_str()).collect();
        let taken = spans_width(&row.spans) + spans_width(&row.facts);
        let gap = if facts.is_empty() {
            0
        } else {
            columns.saturating_sub(taken)
        };
        let line = format!("{:1} {}{}{facts}", glyph.text.as_str(), row.plain(), " ".repeat(gap));
        picture.push_str(line.trim_end());
        picture.push('\n');
        let mut grounds = BTreeSet::new();
        if row.background != Background::Plain {
            grounds.insert(format!("{:?}", row.background));
        }
        let before = format!("{:1} ", marks(std::slice::from_ref(&glyph), used, &mut grounds));
        let spans = marks(&row.spans, used, &mut grounds);
        let line = format!(
            "{before}{spans}{}{}",
            " ".repeat(gap),
            marks(&row.facts, used, &mut grounds)
        );
        let grounds: Vec<String> = grounds.into_iter().collect();
        let line = format!("{}  {}", line.trim_end(), grounds.join(" "));
        if line.contains(|it: char| it != '.' && it != ' ') {
            picture.push_str(line.trim_end());
            picture.push('\n');
        }
    }
    picture
}

fn page(kind: &Kind, columns: usize) -> String {
    let mut used = BTreeMap::new();
    let mut page = String::new();
    for (name, document, look) in states(kind) {
        let mut sheet = DocumentState::default();
        sheet.lay_out(&document, &RenderContext { width: columns, ..look });
        page.extend([format!("-- {name}\n"), picture(&sheet, columns, &mut used)]);
    }
    let theme = |name| Theme::built_in(name).expect("it is in the table");
    let (dark, light) = (theme("sheaf-dark"), theme("sheaf-light"));
    page.push_str("== dark, light\n");
    for (letter, role) in used {
        let colour = |theme: &Theme| theme.colour(role).map_or_else(|| "-".to_owned(), |it| it.to_string());
        page.push_str(&format!("{letter} {role:?} {} {}\n", colour(&dark), colour(&light)));
    }
    page
}

#[test]
fn every_kind_in_every_state_at_every_width() {
    for kind in kinds() {
        let mut pages = String::new();
        for (screen, columns) in WIDTHS {
            pages.push_str(&format!("=== {screen} columns\n{}", page(&kind, columns)));
        }
        pages.push_str(&german_page(&kind));
        insta::assert_snapshot!(format!("matrix_{kind}"), pages);
    }
}

#[test]
fn every_kind_draws_its_rows_alone_into_a_buffer() {
    let theme = Theme::built_in("sheaf-dark").expect("it is in the table");
    let states = kinds().into_iter().flat_map(|it| states(&it));
    for ((name, document, look), columns) in
        states.flat_map(|it| [1, 2, 9, 36, 71, 111].map(|columns| (it.clone(), columns)))
    {
        let context = RenderContext {
            width: columns,
            theme: Some(&theme),
            ..look
        };
        let mut state = DocumentState::default();
        state.lay_out(&document, &context);
        let height = state.height(columns);
        let area = Rect::new(3, 2, columns as u16, height as u16);
        let mut buffer = Buffer::empty(Rect::new(0, 0, area.right() + 2, area.bottom() + 1));
        let (document, context) = (&document, &context);
        DocumentWidget { document, context }.render(area, &mut buffer, &mut state);
        for position in buffer.area.positions().filter(|it| !area.contains(*it)) {
            assert_eq!(
                buffer[position],
                Cell::EMPTY,
                "{name} at {columns} columns leaves its area"
            );
        }
        if columns < 36 {
            continue;
        }
        for (row, area) in state.rows.iter().zip(area.rows()) {
            let mut drawn = String::new();
            let mut hidden = 0;
            for position in area.positions() {
                let symbol = buffer[position].symbol();
                if hidden == 0 {
                    drawn.push_str(symbol);
                    hidden = width::width(symbol);
                }
                hidden -= 1;
            }
            let facts: String = row.facts.iter().map(|it| it.text.as_str()).collect();
            let gap = columns.saturating_sub(spans_width(&row.spans) + spans_width(&row.facts));
            let expected = format!("{}{}{facts}", row.plain(), " ".repeat(gap));
            assert_eq!(drawn.trim_end(), expected.trim_end(), "{name} at {columns} columns");
        }
        // Nothing is laid out for a drawing, and one from the second row on begins there.
        assert_eq!(state.lay_out(document, context), None, "{name}");
        if height > 1 {
            let mut second = Buffer::empty(Rect::new(3, 0, columns as u16, 1));
            state.offset = 1;
            DocumentWidget { document, context }.render(second.area, &mut second, &mut state);
            let first = area.rows().nth(1).expect("it has two");
            assert!(
                first
                    .columns()
                    .zip(second.content())
                    .all(|(it, cell)| buffer[it.as_position()] == *cell),
                "{name}"
            );
        }
    }
}

/// A document unfolded as usual and as one line, laid out for so many columns.
fn laid(document: &Document, look: &RenderContext<'_>, columns: usize) -> [DocumentState; 2] {
    [Fold::Usual, Fold::Folded].map(|fold| {
        let mut sheet = DocumentState::default();
        let look = RenderContext {
            width: columns,
            fold,
            ..*look
        };
        sheet.lay_out(document, &look);
        sheet
    })
}

/// Every state in German, as usual and folded, on the narrowest screen; each shows as many facts as in English.
fn german_page(kind: &Kind) -> String {
    let (screen, columns) = WIDTHS[0];
    let mut page = format!("=== {screen} columns, German\n");
    for (name, document, look) in states(kind) {
        let english = laid(&document, &look, columns);
        let german = locale::within("de", || laid(&document, &look, columns));
        page.extend([format!("-- {name}\n")]);
        for (english, german) in english.iter().zip(&german) {
            assert_eq!(too_wide(german, columns), None, "{kind} {name}");
            let facts = |sheet: &DocumentState| sheet.rows.iter().filter(|it| !it.facts.is_empty()).count();
            assert_eq!(facts(german), facts(english), "{kind} {name} loses its state");
            page.push_str(&paint(german, columns));
        }
    }
    page
}

/// The message of each state that a heading says, and where it is seen.
const SAID: &[(&str, &str, &str)] = &[
    ("code_reference", "missing", "citation-no-file"),
    ("code_reference", "another", "citation-differs"),
    ("file_edit", "open", "edit-writing"),
    ("file_edit", "pending", "edit-pending"),
    ("file_edit", "applied", "edit-applied"),
    ("file_edit", "rejected", "edit-rejected"),
    ("file_edit", "failed", "edit-failed"),
    ("file_edit", "create", "edit-create"),
    ("file_edit", "edit", "edit-edit"),
    ("file_edit", "delete", "edit-delete"),
    ("file_edit", "rename", "edit-rename"),
    ("tool_call", "error", "call-failed"),
    ("tool_call", "without a result", "call-no-result"),
    ("terminal_command", "open", "command-running"),
    ("terminal_command", "completed", "command-ended"),
    ("terminal_command", "background", "command-background"),
    ("terminal_command", "timed_out", "command-timed-out"),
    ("terminal_command", "rejected", "command-rejected"),
    ("terminal_command", "cancelled", "command-stopped"),
    ("clarification", "question waiting", "question-waiting"),
    ("clarification", "question answered", "question-answered"),
    ("clarification", "question skipped", "question-skipped"),
    ("clarification", "question cancelled", "question-cancelled"),
    ("clarification", "approval answered", "approval-allowed-once"),
    ("clarification", "approval skipped", "approval-rejected"),
    ("clarification", "approval cancelled", "question-cancelled"),
    ("chart", "closed", "document-unknown"),
];

#[test]
fn every_language_says_each_state_at_forty_columns() {
    for language in locale::LANGUAGES {
        locale::within(language.tag, || {
            for (kind, state, id) in SAID {
                let states = states(&Kind::parse(kind));
                let found = states.iter().find(|it| it.0 == *state);
                let (_, document, look) = found.unwrap_or_else(|| panic!("{kind} has no state {state}"));
                for sheet in laid(document, look, WIDTHS[0].1) {
                    let picture = paint(&sheet, WIDTHS[0].1);
                    let word = locale::text(id);
                    assert!(
                        picture.contains(word),
                        "{}: {kind} {state}: {word}\n{picture}",
                        language.tag
                    );
                }
            }
        });
    }
}

#[test]
fn in_german_nothing_is_too_wide_at_any_width() {
    for kind in kinds() {
        for (name, document, look) in states(&kind) {
            for columns in 1..=120 {
                let german = locale::within("de", || laid(&document, &look, columns));
                for sheet in &german {
                    // Narrower than that a sign of two columns has no room, in any language.
                    let wide = too_wide(sheet, columns).filter(|_| columns > 2);
                    assert_eq!(wide, None, "{kind} {name} at {columns}");
                }
            }
        }
    }
}

#[test]
fn there_is_a_picture_for_each_kind_and_for_nothing_else() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tui/widgets/snapshots");
    let there: BTreeSet<String> = std::fs::read_dir(folder)
        .expect("the folder")
        .flatten()
        .filter_map(|it| it.file_name().into_string().ok())
        .filter_map(|it| it.rsplit_once("__matrix__matrix_").map(|it| it.1.to_owned()))
        .collect();
    let wanted: BTreeSet<String> = kinds().iter().map(|kind| format!("{kind}.snap")).collect();
    assert_eq!(wanted.len(), Kind::KNOWN.len() + 1);
    assert_eq!(there, wanted);
}

#[test]
fn each_word_of_the_protocol_that_is_a_state_has_its_picture() {
    let shown: BTreeSet<String> = kinds().iter().flat_map(states).map(|it| it.0).collect();
    let lists = [
        TextFormat::KNOWN,
        Purpose::KNOWN,
        Operation::KNOWN,
        Applied::KNOWN,
        CommandState::KNOWN,
        Permission::KNOWN,
        TodoStatus::KNOWN,
    ];
    for word in lists.into_iter().flatten() {
        assert!(shown.contains(*word), "{word}");
    }
    for kind in QuestionKind::KNOWN {
        for outcome in Outcome::KNOWN {
            assert!(shown.contains(&format!("{kind} {outcome}")), "{kind} {outcome}");
        }
    }
}
