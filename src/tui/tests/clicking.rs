//! Clicks on printed keys, options and list rows, and the keys of the composer that act on a running answer.

use serde_json::{Value, json};

use super::{
    super::{msg::Msg, terminal::Input, test_app::*},
    finding::place_of,
    reviewing::changed,
    waiting::{PAGES, STATES, approval, begun, ended, form},
};
use crate::{
    journal::Log,
    link::{About, local::Local},
    protocol::{
        ClarificationResponse, Command, Event, FinishReason, Message, Mode, Outcome, Query, Restriction, TrustAsked,
        Turn,
    },
};

pub(super) fn click(app: &mut TestApp, text: &str) {
    click_at(app, place_of(app, text));
}

fn click_at(app: &mut TestApp, (x, y): (u16, u16)) {
    app.later(1000);
    app.take(Msg::Input(Input::Click { x, y }));
    app.take(Msg::Input(Input::Release { x, y }));
}

#[test]
fn a_click_on_a_file_of_the_review_shows_its_change() {
    let mut app = changed(100);
    app.keys("<alt+r>");
    assert!(app.shows("let b = 3;") && !app.shows("− old"), "{}", app.picture());
    click(&mut app, "receipt.rs");
    assert!(app.shows("− old"), "{}", app.picture());
    click(&mut app, "cart.rs");
    assert!(app.shows("let b = 3;"), "{}", app.picture());
    assert!(!app.app.overlays.is_empty());
}

#[test]
fn the_line_of_trust_is_clicked_for_its_page() {
    let mut app = TestApp::new(100, 30);
    let asked = TrustAsked {
        paths: vec!["AGENTS.md".to_owned()],
        count: 3,
        is_changed: false,
    };
    app.events([Event::Notice(asked.notice())]);
    click(&mut app, "AGENTS.md, 2 more");
    assert_eq!(app.asked(), [&Query::Trust]);
    // Who goes on has not said yes.
    app.events([Event::UserMessage(Message::user("hello"))]);
    assert!(!app.shows("AGENTS.md"), "{}", app.picture());
}

fn answer(app: &TestApp) -> Option<ClarificationResponse> {
    app.sent().into_iter().rev().find_map(|it| match it {
        Command::Answer { response, .. } => Some(response),
        _ => None,
    })
}

fn is_allowed(app: &TestApp) -> bool {
    let response = answer(app);
    let answers = response.iter().flat_map(|it| &it.answers);
    answers
        .flat_map(|it| &it.selected_option_ids)
        .any(|it| it == "allow_once")
}

fn push(app: &mut TestApp) {
    let subject = json!({ "type": "terminal_command", "metadata": { "command": "git push" } });
    approval(app, subject);
}

#[test]
fn every_footer_leads_to_the_help_at_40_columns() {
    for state in STATES {
        let mut app = TestApp::new(40, 24);
        (state.open)(&mut app);
        app.later(1000);
        for moves in ["", "<tab>"] {
            app.keys(moves);
            let picture = app.picture();
            let footer = picture.lines().last().unwrap_or_default();
            let help = ["f1 keys", "? keys", "f1"].into_iter().find(|it| footer.contains(it));
            let help = help.unwrap_or_else(|| panic!("{}{moves}:\n{picture}", state.name));
            let mut app = TestApp::new(40, 24);
            (state.open)(&mut app);
            app.later(1000);
            app.keys(moves);
            // The words may stand in the draft's line, too.
            let picture = app.picture();
            let (y, footer) = picture.lines().enumerate().last().unwrap_or_default();
            let x = footer.split(help).next().unwrap_or_default().chars().count();
            click_at(&mut app, (x as u16, y as u16));
            assert!(app.shows("Everywhere"), "{}{moves}:\n{}", state.name, app.picture());
        }
    }
}

#[test]
fn a_key_of_a_card_can_be_clicked_with_the_focus_and_without() {
    for moves in ["", "<tab>"] {
        let mut app = TestApp::new(80, 24);
        push(&mut app);
        app.later(1000);
        app.keys(moves);
        click(&mut app, "once");
        assert!(is_allowed(&app), "{moves}: {:?}\n{}", app.sent(), app.picture());
    }
}

#[test]
fn a_click_on_a_card_that_has_just_appeared_decides_nothing() {
    let mut app = TestApp::new(80, 24);
    app.later(1000);
    push(&mut app);
    let (x, y) = place_of(&app, "once");
    app.take(Msg::Input(Input::Click { x, y }));
    app.take(Msg::Input(Input::Release { x, y }));
    assert_eq!(answer(&app), None);
}

#[test]
fn the_options_of_a_form_can_be_clicked() {
    let mut app = TestApp::new(80, 24);
    form(&mut app, 1, true);
    click(&mut app, "both");
    assert_eq!(answer(&app), None, "a click marks");
    assert!(app.shows("3› both"), "{}", app.picture());
    click(&mut app, "both");
    assert_eq!(answer(&app).map(|it| it.answers[0].selected_option_ids.len()), Some(1));
    // Several may be picked, and the form may be skipped.
    let mut app = TestApp::new(80, 24);
    form(&mut app, 2, true);
    click(&mut app, "Skip");
    click(&mut app, "Skip");
    assert_eq!(answer(&app).map(|it| it.outcome), Some(Outcome::Skipped));
    let mut app = TestApp::new(80, 24);
    form(&mut app, 2, true);
    app.later(1000);
    app.keys("<enter>");
    click(&mut app, "that");
    click(&mut app, "both");
    click(&mut app, "enter send");
    let ids = answer(&app).map(|it| it.answers[1].selected_option_ids.len());
    assert_eq!(ids, Some(2), "{:?}\n{}", app.sent(), app.picture());
}

#[test]
fn the_rows_of_lists_can_be_clicked() {
    let mut app = TestApp::new(80, 24);
    app.keys("<f2>");
    click(&mut app, "plan");
    assert_eq!(app.app.composer.mode, Mode::Agent, "a click moves there");
    click(&mut app, "plan");
    assert_eq!(app.app.composer.mode, Mode::Plan);
    assert!(app.app.overlays.is_empty());
    // What is offered for the draft is taken.
    let mut app = TestApp::new(80, 24);
    app.keys("/mo");
    click(&mut app, "/model");
    assert_eq!(app.app.composer.field.text(), "/model ");
    assert!(app.sent().is_empty());
}

#[test]
fn the_retry_of_an_error_can_be_clicked() {
    let mut app = TestApp::new(80, 24);
    begun(&mut app);
    let error = json!({ "errorCode": "LLM_OVERLOADED", "source": "llm" });
    app.events(document("1", "error", Some("Overloaded"), error));
    ended(&mut app, FinishReason::Error);
    assert!(app.shows("tab, r, enter retry"), "{}", app.picture());
    click(&mut app, "tab, r, enter");
    assert!(app.sent().is_empty(), "a letter only marks");
    click(&mut app, "enter retry   esc");
    let is_sent = matches!(app.sent().as_slice(), [Command::Submit(_)]);
    assert!(is_sent, "{:?}", app.sent());
}

#[test]
fn a_second_click_on_a_key_that_marks_does_what_it_says() {
    let mut app = TestApp::new(80, 24);
    begun(&mut app);
    let error = json!({ "errorCode": "LLM_OVERLOADED", "source": "llm" });
    app.events(document("1", "error", Some("Overloaded"), error));
    ended(&mut app, FinishReason::Error);
    click(&mut app, "tab, r, enter");
    assert!(app.sent().is_empty(), "a letter only marks");
    click(&mut app, "r, enter");
    let is_sent = matches!(app.sent().as_slice(), [Command::Submit(_)]);
    assert!(is_sent, "{:?}", app.sent());
}

#[test]
fn tab_queues_while_an_answer_is_coming_and_nothing_waits() {
    let mut app = TestApp::new(80, 24);
    begun(&mut app);
    app.events([start("1", "text", Value::Null), delta("1", "Well, ")]);
    app.keys("later<tab>");
    assert_eq!(app.app.composer.queue.len(), 1, "{}", app.picture());
    app.keys("/queue and then this<enter>");
    assert_eq!(app.app.composer.queue.len(), 2);
    // While a card waits Tab leads to it.
    let mut app = TestApp::new(80, 24);
    push(&mut app);
    app.keys("later<tab>");
    assert!(app.app.composer.queue.is_empty());
    assert!(app.shows("y once"), "{}", app.picture());
}

#[test]
fn a_question_mark_on_an_empty_draft_shows_the_keys() {
    let mut app = TestApp::new(80, 24);
    app.keys("?");
    assert!(app.shows("Everywhere"), "{}", app.picture());
    app.keys("<esc>a?");
    assert_eq!(app.app.composer.field.text(), "a?");
}

#[test]
fn f1_shows_the_keys_over_a_list_once() {
    let mut app = TestApp::new(80, 24);
    app.keys("<f2><f1><f1>");
    assert_eq!(app.app.overlays.len(), 2);
    app.keys("<esc>");
    assert!(app.shows("enter choose"), "{}", app.picture());
}

#[test]
fn ctrl_o_unfolds_what_was_folded_last_and_folds_it_again() {
    let mut app = TestApp::new(80, 40);
    begun(&mut app);
    let output: String = (0..30).map(|it| format!("line {it}\n")).collect();
    let command = json!({ "command": "make", "output": output, "exitCode": 0, "state": "completed" });
    app.events(document("1", "terminal_command", None, command));
    app.events(document("2", "text", Some("Done."), Value::Null));
    ended(&mut app, FinishReason::Stop);
    assert!(!app.shows("line 15"), "{}", app.picture());
    app.keys("<ctrl+o>");
    assert!(app.shows("line 15"), "{}", app.picture());
    assert_eq!(app.app.viewport.pane.selected, None);
    app.keys("<ctrl+o>");
    assert!(!app.shows("line 15"), "{}", app.picture());
}

#[test]
fn delete_stops_a_command_in_the_background_where_commands_run() {
    for runs in [true, false] {
        let mut app = TestApp::new(80, 24);
        begun(&mut app);
        let command = json!({ "command": "make serve", "output": "ready\n", "state": "background" });
        app.events(document("1", "terminal_command", None, command));
        ended(&mut app, FinishReason::Stop);
        app.app.conversation.about.runs = runs;
        app.keys("<ctrl+b>");
        assert!(app.shows("background commands"), "{}", app.picture());
        app.keys("<delete>");
        let sent = app.sent();
        let is_sent =
            matches!(sent.as_slice(), [Command::StopCommand { turn: Turn(1), document }] if *document == "1".into());
        assert_eq!(is_sent, runs, "{sent:?}");
    }
}

#[test]
fn ctrl_b_sends_the_running_command_to_the_background() {
    let mut app = TestApp::new(80, 24);
    app.keys("<ctrl+b>");
    assert!(
        app.sent().is_empty() && app.shows("no command is running"),
        "{}",
        app.picture()
    );
    begun(&mut app);
    app.events([start("1", "terminal_command", json!({ "command": "make" }))]);
    app.keys("<ctrl+b>");
    assert!(matches!(app.sent().as_slice(), [Command::Background]));
    // In a draft it is Readline's.
    app.keys("ac<ctrl+b>b");
    assert_eq!(app.app.composer.field.text(), "abc");
    assert_eq!(app.sent().len(), 1);
}

#[test]
fn the_agent_that_asks_first_is_a_state_of_the_cycle() {
    let mut app = TestApp::new(80, 24);
    app.app.conversation.about.hears = true;
    app.keys("<shift+tab>");
    assert!(app.shows("agent, asks first"), "{}", app.picture());
    app.keys("go<enter>");
    let sent = app.sent();
    let [Command::Submit(submit)] = sent.as_slice() else {
        panic!("{sent:?}")
    };
    assert_eq!(submit.mode, Mode::Agent);
    assert_eq!(submit.message.extra.get("approvals"), Some(&json!("ask")));
    app.keys("/init<enter>");
    let sent = app.sent();
    let Some(Command::Submit(submit)) = sent.last() else {
        panic!("{sent:?}")
    };
    assert_eq!(submit.message.extra.get("approvals"), Some(&json!("ask")), "/init too");
    // In a running answer it takes effect at once; back to more rights only with the next message.
    let mut app = TestApp::new(80, 24);
    app.app.conversation.about.hears = true;
    begun(&mut app);
    app.keys("<shift+tab>");
    assert!(matches!(
        app.sent().as_slice(),
        [Command::Restrict(Restriction::AsksFirst)]
    ));
    assert!(
        app.shows("agent, asks first") && !app.shows("next:"),
        "{}",
        app.picture()
    );
    app.keys("/mode agent<enter>");
    assert!(app.shows("agent, asks first · next: agent"), "{}", app.picture());
    assert_eq!(app.sent().len(), 1);
    for mode in ["agent, asks first", "plan", "ask", "debug", "agent"] {
        app.keys("<shift+tab>");
        assert!(app.shows(mode), "{mode}\n{}", app.picture());
    }
    // A link that knows no such wish has four states.
    let mut app = TestApp::new(80, 24);
    app.keys("<shift+tab>");
    assert_eq!(app.app.composer.mode, Mode::Plan);
}

#[test]
fn ctrl_enter_queues_and_alt_enter_is_always_a_newline() {
    let mut app = TestApp::new(80, 24);
    app.events([Event::UserMessage(crate::protocol::Message::user("go"))]);
    begun(&mut app);
    app.keys("a<alt+enter>b");
    assert_eq!(app.app.composer.field.text(), "a\nb");
    app.keys("<ctrl+enter>");
    assert_eq!(app.app.composer.queue.len(), 1);
}

#[test]
fn a_message_beside_a_form_takes_the_given_answers_along() {
    let mut app = TestApp::new(80, 24);
    app.app.conversation.about.hears = true;
    form(&mut app, 3, true);
    app.later(1000);
    app.keys("2<enter>");
    app.later(1000);
    app.keys("<esc>one more thing<enter>");
    let sent = app.sent();
    let [Command::Steer(steer)] = sent.as_slice() else {
        panic!("{sent:?}")
    };
    let response = steer.message.clarification_response.as_ref().expect("the answers");
    assert_eq!(response.outcome, Outcome::Answered);
    let answers: Vec<_> = response
        .answers
        .iter()
        .map(|it| (it.question_id.as_str(), it.selected_option_ids.concat()))
        .collect();
    assert_eq!(answers, [("q0", "that".to_owned())]);
    assert_eq!(steer.message.content, "one more thing");
    // Nothing that was typed for a question is lost, either; an option that is only marked is no answer.
    let mut app = TestApp::new(80, 24);
    app.app.conversation.about.hears = true;
    form(&mut app, 3, true);
    app.later(1000);
    app.keys("2<enter>");
    app.later(1000);
    app.keys("my cart<esc>one more thing<enter>");
    let sent = app.sent();
    let [Command::Steer(steer)] = sent.as_slice() else {
        panic!("{sent:?}")
    };
    let response = steer.message.clarification_response.as_ref().expect("the answers");
    let texts: Vec<_> = response
        .answers
        .iter()
        .map(|it| (it.question_id.as_str(), it.free_text.as_deref()))
        .collect();
    assert_eq!(texts, [("q0", None), ("q1", Some("my cart"))]);
    // Without an answer the form is left to the link.
    let mut app = TestApp::new(80, 24);
    app.app.conversation.about.hears = true;
    form(&mut app, 3, true);
    app.later(1000);
    app.keys("<esc>no<enter>");
    assert!(matches!(app.sent().as_slice(), [Command::Steer(_)]), "{:?}", app.sent());
}

#[test]
fn the_footer_and_a_waiting_plan_name_their_keys() {
    let mut app = TestApp::new(100, 30);
    approval(
        &mut app,
        json!({ "type": "terminal_command", "metadata": { "command": "git push" } }),
    );
    let footer = |app: &mut TestApp| app.picture().lines().last().unwrap_or_default().to_owned();
    let keys = footer(&mut app);
    assert!(
        ["alt+y", "alt+n", "alt+a", "f1"].iter().all(|it| keys.contains(it)),
        "{keys}"
    );

    let plan = STATES.iter().find(|it| it.name == "plan").expect("a state");
    let mut app = TestApp::new(60, 24);
    (plan.open)(&mut app);
    assert!(app.shows("tab, b, enter build"), "{}", app.picture());
    click(&mut app, "tab, b");
    assert!(footer(&mut app).contains("enter build"), "{}", app.picture());

    let mut app = TestApp::new(100, 24);
    app.keys("# always use tabs");
    assert!(footer(&mut app).contains("enter remember or send"), "{}", app.picture());
    app.keys("<ctrl+u>hi");
    assert!(footer(&mut app).contains("enter send"), "{}", app.picture());
}

#[test]
fn why_a_change_failed_is_read_at_every_width() {
    for columns in [40, 60, 80, 120] {
        let mut app = TestApp::new(columns, 20);
        begun(&mut app);
        let failure = json!({ "errorCode": "EDIT_STALE", "message": "Error [EDIT_STALE]" });
        let edit = json!({ "filePath": "src/cart.rs", "operation": "edit", "applied": "failed", "failure": failure });
        app.events(document("1", "file_edit", None, edit));
        ended(&mut app, FinishReason::Stop);
        let words = app.picture().split_whitespace().collect::<Vec<_>>().join(" ");
        for part in ["the model must read this part", "file first", "src/cart.rs"] {
            assert!(words.contains(part), "{columns}: {part}\n{}", app.picture());
        }
    }
}

#[test]
fn an_empty_draft_says_where_the_keys_go() {
    for (name, keys, expected) in [
        ("nothing", "", "Ask anything."),
        ("approval of a command", "", "Ask anything."),
        (
            "approval of a command",
            "<tab>",
            "Keys go to the approval.  tab returns here",
        ),
        (
            "form of three questions",
            "",
            "Keys go to the question.  tab returns here",
        ),
        ("form of three questions", "<esc>", "Ask anything."),
        ("plan", "<tab>", "Keys go to the plan.  tab returns here"),
        (
            "an answer that is over",
            "<tab>",
            "Keys go to the transcript.  tab returns here",
        ),
        ("page of trust", "", "Keys go to the page above.  esc returns here"),
        ("picker of modes", "", "Keys go to the list above.  esc returns here"),
        ("review", "", "Keys go to the review.  esc returns here"),
        (
            "card of a commit",
            "",
            "Keys go to the commit message.  esc returns here",
        ),
    ] {
        let state = STATES.iter().chain(PAGES).find(|it| it.name == name).expect("a state");
        let mut app = TestApp::new(100, 30);
        (state.open)(&mut app);
        app.keys(keys);
        assert!(app.shows(expected), "{name}\n{}", app.picture());
    }
}

#[test]
fn on_a_wide_screen_nothing_hangs_at_its_edge() {
    for name in [
        "an answer that is over",
        "approval of a command",
        "review",
        "saved conversations",
        "settings",
    ] {
        let state = STATES.iter().chain(PAGES).find(|it| it.name == name).expect("a state");
        let mut app = TestApp::new(200, 30);
        (state.open)(&mut app);
        app.app.say("a toast".to_owned());
        let picture = app.picture();
        // The review's diffs have the whole width, and the keys of the footer follow each other.
        let is_far = |line: &&str| {
            let end: String = line.chars().skip(125).collect();
            !line.contains('│') && line.contains("          ") && !end.trim_matches(['─', ' ']).is_empty()
        };
        let far: Vec<_> = picture.lines().filter(is_far).collect();
        assert!(far.is_empty(), "{name}: {far:#?}\n{picture}");
    }
}

#[test]
fn other_keys_in_the_environment_are_named_on_the_first_screen() {
    let mut app = TestApp::new(100, 30);
    assert!(!app.shows("Also found"), "{}", app.picture());
    app.app.conversation.about.also = vec!["Anthropic".to_owned(), "Gemini".to_owned()];
    app.take(Msg::Tick);
    assert!(app.shows("Also found keys for Anthropic, Gemini."), "{}", app.picture());
}

#[test]
fn where_there_is_little_room_the_key_that_sends_goes_first() {
    let footer = |app: &TestApp| app.picture().lines().last().unwrap_or_default().to_owned();
    for draft in ["", "words"] {
        let mut seen = Vec::new();
        for columns in 30..=120 {
            let mut app = TestApp::new(columns, 24);
            app.keys(draft);
            let shown = footer(&app);
            let is_whole = ["newline", "mode", "transcript", "palette", "keys"]
                .iter()
                .all(|it| shown.contains(it));
            assert_eq!(
                shown.contains("enter send"),
                is_whole && columns >= 91,
                "{columns}: {shown}"
            );
            seen.push(shown);
        }
        assert!(seen.iter().all(|it| it.contains("f1")), "{seen:#?}");
    }
}

#[test]
fn no_marks_of_code_are_shown_in_what_waits_or_failed() {
    let mut app = TestApp::new(100, 30);
    begun(&mut app);
    let error = json!({ "errorCode": "LLM_AUTH", "source": "llm",
        "details": "the server says: no\ncheck the key: `sheaf login` shows where it comes from" });
    app.events(document("1", "error", Some("Wrong key"), error));
    ended(&mut app, FinishReason::Error);
    assert!(app.shows("check the key: sheaf login shows"), "{}", app.picture());

    let mut app = TestApp::new(100, 30);
    approval(
        &mut app,
        json!({ "type": "terminal_command", "why": "So that `cart` is built", "metadata": { "command": "git push" } }),
    );
    assert!(app.shows("So that cart is built"), "{}", app.picture());

    let mut app = TestApp::new(100, 30);
    begun(&mut app);
    let todo = |id: &str, status: &str| json!({ "id": id, "content": format!("Add `{id}`"), "status": status });
    let todos = json!([todo("one", "completed"), todo("two", "in_progress")]);
    let plan = json!({ "title": "Sums", "overview": "All of `sum`.", "todos": todos });
    app.events(document("1", "plan", Some("Do it."), plan));
    ended(&mut app, FinishReason::AwaitingInput);
    for text in ["All of sum.", "Add one", "Add two"] {
        assert!(app.shows(text), "{text}\n{}", app.picture());
    }
    app.events([Event::UserMessage(Message::user("on"))]);
    app.events(document("2", "text", Some("Well."), Value::Null));
    ended(&mut app, FinishReason::Stop);
    assert!(app.shows("2 of 2 · Add two"), "{}", app.picture());
    assert!(!app.picture().contains('`'), "{}", app.picture());
}

#[test]
fn printed_keys_lead_there_from_where_the_focus_is() {
    let plan = STATES.iter().find(|it| it.name == "plan").expect("a state");
    let mut app = TestApp::new(100, 30);
    app.exchange("before", &["something"]);
    (plan.open)(&mut app);
    app.keys("<tab>");
    app.later(1000);
    app.keys("k");
    assert!(
        app.shows("w, b, enter build") && !app.shows("tab, b"),
        "{}",
        app.picture()
    );
    app.keys("w");
    app.later(1000);
    app.keys("b");
    assert!(app.shows("enter build"), "{}", app.picture());

    let error = STATES.iter().find(|it| it.name == "error with retry").expect("a state");
    let mut app = TestApp::new(100, 30);
    app.exchange("before", &["something"]);
    (error.open)(&mut app);
    app.keys("<tab>");
    app.later(1000);
    app.keys("[[");
    assert!(
        app.shows("G, r, enter retry") && !app.shows("tab, r"),
        "{}",
        app.picture()
    );
    app.keys("G");
    app.later(1000);
    app.keys("r<enter>");
    let sent = app.sent();
    let [Command::Submit(submit)] = sent.as_slice() else {
        panic!("{sent:?}\n{}", app.picture())
    };
    assert_eq!(submit.message.content, "go");
}

#[test]
fn an_answered_value_that_is_cut_says_so() {
    let mut app = TestApp::new(40, 24);
    begun(&mut app);
    let options =
        json!([{ "id": "a", "label": "Postgres (a server that runs elsewhere)" }, { "id": "b", "label": "SQLite" }]);
    let questions: Vec<_> = ["q0", "q1"]
        .map(|it| json!({ "id": it, "text": "Which database is it to be?", "options": options }))
        .to_vec();
    app.events([start(
        "1",
        "clarification",
        json!({ "kind": "question", "questions": questions }),
    )]);
    app.later(1000);
    app.keys("1<enter>");
    let picture = app.picture();
    let given = picture.lines().find(|it| it.contains('✓')).expect("an answer");
    assert!(
        given.trim_end().ends_with('…') && given.contains("Postgres"),
        "{picture}"
    );
}

#[test]
fn a_message_after_a_stop_is_the_next_one_and_not_in_the_draft() {
    let mut app = TestApp::new(80, 24);
    app.app.conversation.about.hears = true;
    app.events([Event::UserMessage(crate::protocol::Message::user("go"))]);
    begun(&mut app);
    app.keys("before<enter>");
    app.keys("<esc>after<enter>");
    let sent = app.sent();
    assert!(
        matches!(&sent[..], [Command::Steer(before), Command::Cancel, Command::Submit(after)]
            if before.message.content == "before" && after.message.content == "after"),
        "{sent:?}"
    );
    ended(&mut app, FinishReason::Cancelled);
    app.events([Event::UserMessage(crate::protocol::Message::user("after"))]);
    assert_eq!(
        app.app.composer.field.text(),
        "before",
        "what was said before the stop comes back"
    );
    assert!(app.app.composer.said.is_empty());
}

/// Turns of another conversation have the same numbers.
#[test]
fn what_was_stopped_in_one_conversation_is_not_stopped_in_the_next() {
    let mut app = TestApp::new(80, 24);
    app.app.conversation.about.hears = true;
    begun(&mut app);
    app.keys("<esc>");
    let next = TestApp::new(80, 24);
    let mut link = std::sync::Arc::clone(&next.front.link);
    app.take(Msg::Switch(std::sync::Arc::clone(&link) as _));
    app.app.conversation.about.hears = true;
    std::mem::swap(&mut app.front.link, &mut link);
    begun(&mut app);
    app.keys("steer now<enter>");
    let sent = app.sent();
    assert!(
        matches!(&sent[..], [Command::Steer(it)] if it.message.content == "steer now"),
        "{sent:?}"
    );
}

#[test]
fn a_tour_does_not_get_the_message_that_waits_for_a_model() {
    let replay = About {
        is_replay: true,
        ..About::default()
    };
    let live = About {
        is_scripted: true,
        ..About::default()
    };
    for about in [replay, live] {
        let mut app = TestApp::new(80, 24);
        app.app.conversation.about.hears = false;
        begun(&mut app);
        app.keys("for a model<enter>");
        assert_eq!(app.app.composer.queue.len(), 1);
        let before = app.sent().len();
        let (link, _inbox) = Local::new(Log::new(), about);
        app.take(Msg::Switch(std::sync::Arc::new(link)));
        // Nor does the next Enter send it there.
        app.keys("<enter>");
        let is_sent = app
            .sent()
            .split_off(before)
            .into_iter()
            .any(|it| matches!(it, Command::Submit(_) | Command::Steer(_)));
        assert!(app.app.composer.queue.is_empty() && !is_sent);
        app.keys("<ctrl+s>");
        assert_eq!(app.app.composer.field.text(), "for a model");
    }
}

#[test]
fn a_form_out_of_view_is_shown_before_a_key_answers_it() {
    let mut app = TestApp::new(80, 24);
    begun(&mut app);
    app.events(document(
        "0",
        "text",
        Some(&"A long answer.\n\n".repeat(100)),
        json!({}),
    ));
    ended(&mut app, FinishReason::Stop);
    form(&mut app, 3, true);
    app.later(1000);
    for key in ["2", "<enter>", " "] {
        app.keys("<pgup><pgup>");
        assert!(!app.shows("both"), "{}", app.picture());
        app.keys(key);
        assert!(app.shows("both") && app.shows("read it"), "{}", app.picture());
        assert!(app.sent().is_empty());
        app.later(5000);
    }
}
