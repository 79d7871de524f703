use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    protocol::{Document, View},
    tui::widgets::testing::closed,
};

fn question(metadata: Value) -> Document {
    closed("clarification", Some("Before I go on:"), metadata)
}

fn one() -> Document {
    question(json!({ "questions": [
        { "id": "q1", "text": "Which database?", "options": [{ "id": "pg", "label": "Postgres" }, { "id": "lite", "label": "SQLite" }] },
    ]}))
}

/// One of each: single choice, several choices, free text only.
fn three() -> Document {
    question(json!({ "questions": [
        { "id": "q1", "text": "One code or many?", "options": ["one", "many"] },
        { "id": "q2", "text": "Which stores?", "options": ["redis", "disk"], "allowMultiple": true },
        { "id": "q3", "text": "What else?", "options": [] },
    ]}))
}

fn strict() -> Document {
    question(json!({ "questions": [{ "id": "q1", "text": "Now?", "options": ["yes", "no"], "allowFreeText": false }] }))
}

fn approval(ids: &[&str], free_text: bool) -> Document {
    let options: Vec<Value> = ids
        .iter()
        .map(|id| json!({ "id": id, "label": format!("Label of {id}") }))
        .collect();
    question(json!({
        "kind": "approval",
        "subject": { "type": "terminal_command", "metadata": { "command": "git push" } },
        "questions": [{ "id": "approval", "text": "Allow `git push`?", "options": options, "allowFreeText": free_text }],
    }))
}

const ALL: &[&str] = &["allow_once", "allow_session", "allow_always", "reject_once"];

/// Keys as words: a single sign is itself, the others have names.
fn keys(script: &str) -> Vec<KeyEvent> {
    let key = |word: &str| match word {
        "enter" => KeyEvent::from(KeyCode::Enter),
        "esc" => KeyEvent::from(KeyCode::Esc),
        "space" => KeyEvent::from(KeyCode::Char(' ')),
        "back" => KeyEvent::from(KeyCode::Backspace),
        "up" => KeyEvent::from(KeyCode::Up),
        "down" => KeyEvent::from(KeyCode::Down),
        "shift-tab" => KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT),
        "ctrl-w" => KeyEvent::new(KeyCode::Char('w'), KeyModifiers::CONTROL),
        "ctrl-u" => KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL),
        "ctrl-s" => KeyEvent::new(KeyCode::Char('s'), KeyModifiers::CONTROL),
        "alt-o" => KeyEvent::new(KeyCode::Char('o'), KeyModifiers::ALT),
        "shift-a" => KeyEvent::new(KeyCode::Char('a'), KeyModifiers::SHIFT),
        "release-y" => KeyEvent {
            kind: KeyEventKind::Release,
            ..KeyEvent::from(KeyCode::Char('y'))
        },
        word => KeyEvent::from(KeyCode::Char(word.chars().next().expect("words are not empty"))),
    };
    script.split(' ').filter(|it| !it.is_empty()).map(key).collect()
}

/// The result of the last key; every key before it must have changed something.
fn press(document: &Document, script: &str) -> (Form, Outcome) {
    let View::Clarification(view) = document.view() else {
        panic!("a question is a clarification");
    };
    let mut form = Form::new(document.id.clone());
    let mut last = Outcome::Ignored;
    for key in keys(script) {
        assert!(
            !matches!(last, Outcome::Answer(_)),
            "{script}: a key came after the answer"
        );
        last = form.key(key, &view);
    }
    (form, last)
}

/// `q1=pg q2=redis,disk q3:"text"`, `skipped`, or what else the last key did.
fn told(document: &Document, script: &str) -> String {
    match press(document, script).1 {
        Outcome::Ignored => "ignored".to_owned(),
        Outcome::Changed => "changed".to_owned(),
        Outcome::Message(text) => format!("message {text:?}"),
        Outcome::Answer(response) => {
            assert_eq!(response.document_id, document.id);
            let answers = response.answers.iter().map(|it| {
                let text = it.free_text.as_ref().map_or_else(String::new, |it| format!(":{it:?}"));
                let ids = it.selected_option_ids.join(",");
                let ids = if ids.is_empty() { ids } else { format!("={ids}") };
                format!("{}{ids}{text}", it.question_id)
            });
            let answers: Vec<String> = answers.collect();
            let reason = response.reason.map_or_else(String::new, |it| format!(" {it:?}"));
            match response.outcome {
                Dealt::Answered => answers.join(" "),
                other => format!("{other}{}{reason}", answers.join(" ")),
            }
        }
    }
}

#[test]
fn keys_answer_questions() {
    let cases = [
        ("a digit only marks", one(), "2", "changed"),
        ("enter takes what is marked", one(), "2 enter", "q1=lite"),
        ("the first option is marked from the start", one(), "enter", "q1=pg"),
        ("another digit marks another option", one(), "2 1 enter", "q1=pg"),
        ("a digit beyond the options is text", one(), "3 enter", "q1:\"3\""),
        ("letters are text", one(), "j s enter", "q1:\"js\""),
        (
            "a digit before a letter is its beginning",
            one(),
            "2 space t e s t s enter",
            "q1:\"2 tests\"",
        ),
        ("digits before a letter too", one(), "1 2 x enter", "q1:\"12x\""),
        ("digits in a text are text", one(), "a 1 2 enter", "q1:\"a12\""),
        ("space at the start is text", one(), "space a enter", "q1:\"a\""),
        ("space after an arrow marks", one(), "down space enter", "q1=lite"),
        ("ctrl and a letter is not the letter", one(), "ctrl-s", "ignored"),
        ("alt and a letter neither", one(), "alt-o", "ignored"),
        ("arrows mark, enter takes", one(), "down down up enter", "q1=lite"),
        ("the last row skips", one(), "down down down enter", "skipped"),
        ("up from the top is somebody else's", one(), "up", "ignored"),
        ("down from the bottom too", one(), "down down down down", "ignored"),
        ("backspace takes a whole sign", one(), "a é back enter", "q1:\"a\""),
        ("a word goes", one(), "a space b c ctrl-w d enter", "q1:\"a d\""),
        ("all of it goes", one(), "a b ctrl-u c enter", "q1:\"c\""),
        ("esc is somebody else's", one(), "a esc", "ignored"),
        (
            "a text that was left for an option is no answer",
            one(),
            "a up up enter",
            "q1=pg",
        ),
        ("an empty text is no answer", one(), "down down enter", "changed"),
        (
            "where no text is taken, it is a message",
            strict(),
            "f",
            "message \"f\"",
        ),
        ("with the digits before it", strict(), "2 space", "message \"2 \""),
        ("one of three answers only moves on", three(), "1 enter", "changed"),
        (
            "all three, sent by the last enter",
            three(),
            "2 enter 1 2 enter n o enter",
            "q1=many q2=redis,disk q3:\"no\"",
        ),
        (
            "a digit before a letter checks nothing",
            three(),
            "enter 1 x enter y enter",
            "q1=one q2:\"1x\" q3:\"y\"",
        ),
        (
            "arrows and space check",
            three(),
            "enter down space enter y enter",
            "q1=one q2=disk q3:\"y\"",
        ),
        (
            "enter with nothing checked takes the marked one",
            three(),
            "enter down enter y enter",
            "q1=one q2=disk q3:\"y\"",
        ),
        (
            "shift and tab go back; an answer that is not changed stays",
            three(),
            "2 enter 2 enter shift-tab shift-tab enter enter x enter",
            "q1=many q2=disk q3:\"x\"",
        ),
        (
            "a text that is typed later discards no answer",
            three(),
            "2 enter 1 enter a b enter",
            "q1=many q2=redis q3:\"ab\"",
        ),
        (
            "back from the first is somebody else's",
            three(),
            "shift-tab",
            "ignored",
        ),
        (
            "a choice toggled off is gone",
            three(),
            "1 enter 1 2 1 enter x enter",
            "q1=one q2=disk q3:\"x\"",
        ),
    ];
    for (name, document, script, outcome) in cases {
        assert_eq!(told(&document, script), outcome, "{name}");
    }
}

#[test]
fn keys_decide_approvals() {
    let cases = [
        ("y is once", ALL, true, "y", "approval=allow_once"),
        ("a only marks", ALL, true, "a", "changed"),
        ("enter confirms it", ALL, true, "a enter", "approval=allow_session"),
        ("A only marks", ALL, true, "A", "changed"),
        ("shift and a too", ALL, true, "shift-a enter", "approval=allow_always"),
        ("arrows mark", ALL, true, "down down enter", "approval=allow_session"),
        ("a released key decides nothing", ALL, true, "release-y", "ignored"),
        ("n is no", ALL, true, "n", "approval=reject_once"),
        ("N asks for a reason", ALL, true, "N", "changed"),
        (
            "a no with a reason",
            ALL,
            true,
            "N n o enter",
            "approval=reject_once:\"no\"",
        ),
        ("a no without one", ALL, true, "N enter", "approval=reject_once"),
        (
            "letters of the reason decide nothing",
            ALL,
            true,
            "N y A enter",
            "approval=reject_once:\"yA\"",
        ),
        ("esc takes the no back", ALL, true, "N x esc y", "approval=allow_once"),
        (
            "where no text is taken, n is enough",
            ALL,
            false,
            "n",
            "approval=reject_once",
        ),
        ("enter decides nothing", ALL, true, "enter", "changed"),
        ("digits decide nothing where letters do", ALL, true, "1", "ignored"),
        (
            "only what is offered has a key",
            &["allow_once", "reject_once"],
            true,
            "A",
            "ignored",
        ),
        (
            "a stranger's options have digits",
            &["allow_once", "later", "never"],
            true,
            "2 enter",
            "approval=never",
        ),
        (
            "a no is always possible",
            &["allow_once"],
            true,
            "N b a d enter",
            "skipped \"bad\"",
        ),
        ("skip is no key of an approval", ALL, true, "s", "ignored"),
    ];
    for (name, ids, free_text, script, outcome) in cases {
        assert_eq!(told(&approval(ids, free_text), script), outcome, "{name}");
    }
}

#[test]
fn what_was_dealt_with_takes_no_keys() {
    let answered =
        question(json!({ "outcome": "answered", "questions": [{ "id": "q", "text": "?", "options": ["a"] }] }));
    let empty = question(json!({ "questions": [] }));
    for document in [answered, empty] {
        assert_eq!(press(&document, "1").1, Outcome::Ignored);
    }
}

#[test]
fn every_change_has_its_version() {
    let (form, _) = press(&three(), "1 enter 2");
    assert_eq!(form.version, 4);
    let (form, _) = press(&three(), "ctrl-s up");
    assert_eq!(form.version, 1);
}

#[test]
fn a_paste_is_one_line_and_bounded() {
    let paste = |document: &Document, form: &mut Form, text: &str| {
        let View::Clarification(view) = document.view() else {
            panic!("a question is a clarification");
        };
        form.paste(text, &view)
    };
    let (mut form, _) = press(&one(), "o");
    assert!(paste(&one(), &mut form, "two\nlines\x1b[31m"));
    assert_eq!(form.typed(0).map(Draft::text).as_deref(), Some("otwo lines"));
    paste(&one(), &mut form, &"漢".repeat(MOST_LINE_BYTES));
    assert!(form.typed(0).is_some_and(|it| it.text().len() <= MOST_LINE_BYTES));
    let (mut closed, _) = press(&strict(), "1");
    assert!(!paste(&strict(), &mut closed, "x"), "it takes no text");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever is typed, an answer names questions and options that were asked.
    #[test]
    fn any_keys_are_taken(script in proptest::collection::vec(
        proptest::sample::select(vec![
            "1", "2", "3", "9", "o", "s", "n", "y", "a", "A", "space", "enter", "esc", "back", "up", "down", "shift-tab",
            "ctrl-w", "漢", "é",
        ]), 0..40),
        which in 0usize..4,
    ) {
        let document = vec![one(), three(), strict(), approval(ALL, true)].swap_remove(which);
        let View::Clarification(view) = document.view() else { unreachable!() };
        let mut form = Form::new(document.id.clone());
        for key in script.iter().flat_map(|it| keys(it)) {
            let Outcome::Answer(response) = form.key(key, &view) else { continue };
            for answer in &response.answers {
                let question = view.questions.iter().find(|it| it.id == answer.question_id);
                let known = |id: &String| question.is_some_and(|it| it.options.iter().any(|it| it.id == id.as_str()));
                prop_assert!(answer.selected_option_ids.iter().all(known));
                prop_assert!(!answer.selected_option_ids.is_empty() || answer.free_text.is_some());
            }
            break;
        }
    }
}
