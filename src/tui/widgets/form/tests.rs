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
        "caps-a" => KeyEvent {
            state: KeyEventState::CAPS_LOCK,
            ..KeyEvent::from(KeyCode::Char('A'))
        },
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
        ("a digit answers the only question at once", one(), "2", "q1=lite"),
        ("a digit beyond the options is somebody else's", one(), "3", "ignored"),
        ("zero is no option", one(), "0", "ignored"),
        ("letters are somebody else's", one(), "j", "ignored"),
        ("enter without an answer does nothing", one(), "enter", "ignored"),
        ("skip", one(), "s", "skipped"),
        ("ctrl and a letter is not the letter", one(), "ctrl-s", "ignored"),
        ("alt and a letter neither", one(), "alt-o", "ignored"),
        ("arrows choose, enter takes", one(), "down down enter", "q1=lite"),
        ("arrows go back", one(), "down down up enter", "q1=pg"),
        ("space takes too", one(), "down space", "q1=pg"),
        ("up from the top leaves the form", one(), "down up", "ignored"),
        (
            "down from the bottom leaves the form",
            one(),
            "down down down",
            "ignored",
        ),
        ("another answer is typed", one(), "o R e d i s enter", "q1:\"Redis\""),
        (
            "keys are text while typing",
            one(),
            "o s 1 space o enter",
            "q1:\"s1 o\"",
        ),
        ("backspace takes a whole sign", one(), "o a é back enter", "q1:\"a\""),
        ("a word goes", one(), "o a space b c ctrl-w d enter", "q1:\"a d\""),
        ("all of it goes", one(), "o a b ctrl-u c enter", "q1:\"c\""),
        ("esc leaves typing and keeps nothing", one(), "o a esc enter", "ignored"),
        ("an empty text is no answer", one(), "o space enter", "changed"),
        ("where no text is taken, o is somebody else's", strict(), "o", "ignored"),
        ("one of three answers only moves on", three(), "1", "changed"),
        ("choices toggle", three(), "2 1 2 1 shift-tab", "changed"),
        (
            "all three, sent by enter",
            three(),
            "2 1 2 enter o n o enter enter",
            "q1=many q2=redis,disk q3:\"no\"",
        ),
        (
            "enter moves on from a question with several choices, then begins to type",
            three(),
            "1 2 enter enter x enter enter",
            "q1=one q2=disk q3:\"x\"",
        ),
        (
            "enter before all is answered sends nothing",
            three(),
            "2 1 enter",
            "changed",
        ),
        (
            "shift and tab go back to change an answer",
            three(),
            "1 1 enter enter x enter shift-tab shift-tab 2 enter",
            "q1=many q2=redis q3:\"x\"",
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
            "1 1 2 1 enter enter x enter enter",
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
        ("a is this session", ALL, true, "a", "approval=allow_session"),
        ("A is always", ALL, true, "A", "approval=allow_always"),
        ("shift and a too", ALL, true, "shift-a", "approval=allow_always"),
        (
            "caps lock makes no always",
            ALL,
            true,
            "caps-a",
            "approval=allow_session",
        ),
        ("a released key decides nothing", ALL, true, "release-y", "ignored"),
        ("n asks for a reason", ALL, true, "n", "changed"),
        (
            "a no with a reason",
            ALL,
            true,
            "n n o enter",
            "approval=reject_once:\"no\"",
        ),
        ("a no without one", ALL, true, "n enter", "approval=reject_once"),
        (
            "letters of the reason decide nothing",
            ALL,
            true,
            "n y A enter",
            "approval=reject_once:\"yA\"",
        ),
        ("esc takes the no back", ALL, true, "n x esc y", "approval=allow_once"),
        (
            "where no text is taken, n is enough",
            ALL,
            false,
            "n",
            "approval=reject_once",
        ),
        ("enter decides nothing", ALL, true, "enter", "ignored"),
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
            "2",
            "approval=never",
        ),
        (
            "a no is always possible",
            &["allow_once"],
            true,
            "n b a d enter",
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
    let (form, _) = press(&three(), "1 1 2");
    assert_eq!(form.version, 4);
    let (form, _) = press(&three(), "j k");
    assert_eq!(form.version, 1);
}

#[test]
fn a_paste_is_one_line_and_bounded() {
    let (mut form, _) = press(&one(), "o");
    assert_eq!(form.paste("two\nlines\x1b[31m"), Outcome::Changed);
    assert_eq!(form.typed().map(Draft::text).as_deref(), Some("two lines"));
    form.paste(&"漢".repeat(MOST_LINE_BYTES));
    assert!(form.typed().is_some_and(|it| it.text().len() <= MOST_LINE_BYTES));
    let (mut idle, _) = press(&one(), "");
    assert_eq!(idle.paste("x"), Outcome::Ignored);
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
