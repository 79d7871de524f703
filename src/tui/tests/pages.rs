//! Pages that are edited in place, the commit card, and questions beside the conversation.

use serde_json::json;

use super::{
    super::{
        msg::{EffectOutcome, Msg},
        test_app::*,
    },
    reviewing,
};
use crate::{
    config::{self, CommandLineSettings, Environment, Settings, SettingsFile},
    protocol::{
        Command, CommitFile, CommitOutcome, CommitPreview, Event, ExtensionEntry, ExtensionState, ModelOffer,
        ModelOffers, Operation, Permissions, Query, RateLimit, Reply, Sandbox, ServerStatus, SideAnswer, UserAction,
    },
    tui::{
        app::{
            Effect,
            effects::FileWork,
            own_files::{FileOutcome, FileTask, RuleFile, RuleRole},
        },
        terminal::Input,
    },
};

/// The work on files that was wanted last.
fn work(desk: &TestApp) -> FileWork {
    let works = desk.front.effects.iter().rev().find_map(|it| match it {
        Effect::Files(work) => Some(work.clone()),
        _ => None,
    });
    works.expect("work on files")
}

fn done(desk: &mut TestApp, outcome: Result<FileOutcome, String>) {
    let work = work(desk);
    desk.take(Msg::Done(EffectOutcome::Filed(work, outcome)));
}

fn written(line: usize) -> FileOutcome {
    FileOutcome::Written {
        file: "~/config.toml".to_owned(),
        line,
    }
}

fn rule_files() -> FileOutcome {
    let file = |shown: &str, text: Option<&str>, role| RuleFile {
        path: shown.into(),
        shown: shown.to_owned(),
        text: text.map(str::to_owned),
        role,
    };
    FileOutcome::Rules(vec![
        file("~/rules/memory.md", None, RuleRole::User),
        file("AGENTS.md", Some("# Shop\n\n- be kind\n"), RuleRole::Project),
        file("~/rules/more.md", Some("x"), RuleRole::Other),
    ])
}

#[test]
fn a_line_with_a_hash_is_remembered_where_one_chooses() {
    let mut desk = TestApp::new(90, 24);
    desk.keys("# always use tabs<enter>");
    assert_eq!(work(&desk).task, FileTask::Rules);
    done(&mut desk, Ok(rule_files()));
    for text in [
        "Remember this?",
        "› you, in all projects",
        "this project",
        "send it as a message",
        "1 + - always use tabs",
    ] {
        assert!(desk.shows(text), "{text}\n{}", desk.picture());
    }
    desk.keys("<enter>");
    assert_eq!(work(&desk).task, FileTask::Rules, "not in the first moment");
    desk.keys("<down>");
    assert!(
        desk.shows("3   - be kind") && desk.shows("4 + - always use tabs"),
        "{}",
        desk.picture()
    );
    desk.later(1000);
    desk.keys("<enter>");
    let FileTask::AddLine { file, line } = work(&desk).task else {
        panic!("{:?}", work(&desk));
    };
    assert_eq!((file.shown.as_str(), line.as_str()), ("AGENTS.md", "always use tabs"));
    done(&mut desk, Ok(written(4)));
    assert!(
        desk.app.composer.field.is_empty() && !desk.shows("Remember this?"),
        "{}",
        desk.picture()
    );
    let line = UserAction::Remembered.notice(&["~/config.toml:4"]);
    assert_eq!(desk.sent(), [Command::Record(line)]);
}

#[test]
fn what_is_not_remembered_stays_a_draft_or_a_message() {
    let mut desk = TestApp::new(90, 24);
    desk.keys("# always use tabs<enter>");
    done(&mut desk, Ok(rule_files()));
    desk.keys("<esc>");
    assert_eq!(
        desk.app.composer.field.text(),
        "# always use tabs",
        "esc restores the draft"
    );
    desk.keys("<enter>");
    done(&mut desk, Ok(rule_files()));
    desk.later(1000);
    desk.keys("<down><down><enter>");
    let sent = |desk: &TestApp| match desk.sent().as_slice() {
        [Command::Submit(submit)] => submit.message.content.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(sent(&desk), "# always use tabs");
    for (typed, pasted) in [("#7.3 why?", ""), ("", "# pasted"), ("# two\\<enter>lines", "")] {
        let mut desk = TestApp::new(90, 24);
        desk.keys(typed);
        if !pasted.is_empty() {
            desk.paste(pasted);
        }
        desk.keys("<esc><enter>");
        assert!(sent(&desk).starts_with('#'), "{typed}{pasted}");
    }
}

#[test]
fn words_at_the_chooser_go_on_with_the_draft() {
    let mut desk = TestApp::new(90, 24);
    desk.keys("# always use tabs<enter>");
    done(&mut desk, Ok(rule_files()));
    desk.later(1000);
    desk.keys(", y?");
    assert_eq!(desk.app.composer.field.text(), "# always use tabs, y?");
    assert!(!desk.shows("Remember this?") && desk.sent().is_empty());
}

#[test]
fn a_paste_is_never_lost_on_a_page() {
    let mut desk = TestApp::new(90, 24);
    desk.keys("# always use tabs<enter>");
    done(&mut desk, Ok(rule_files()));
    desk.paste(" and blanks");
    assert_eq!(desk.app.composer.field.text(), "# always use tabs and blanks");
    assert!(!desk.shows("Remember this?"), "{}", desk.picture());
    desk.keys("<esc><f1>");
    desk.paste(" at night");
    assert_eq!(desk.app.composer.field.text(), "# always use tabs and blanks at night");
    desk.keys("<esc><f3>");
    desk.paste("copy\nlast");
    assert!(desk.shows("copy last"), "{}", desk.picture());
}

#[test]
fn memory_without_words_opens_a_file_of_rules() {
    let mut desk = TestApp::new(90, 24);
    desk.keys("/memory<enter>");
    done(&mut desk, Ok(rule_files()));
    assert!(
        desk.shows("~/rules/memory.md") && desk.shows("new file"),
        "{}",
        desk.picture()
    );
    desk.keys("agents<enter>");
    assert_eq!(desk.front.effects.last(), Some(&Effect::OpenRules("AGENTS.md".into())));
}

#[test]
fn a_setting_is_edited_where_it_is_shown() {
    let mut desk = TestApp::new(100, 24);
    desk.app.preferences.settings = Settings::default();
    desk.keys("/config<enter>commit.note");
    for text in ["commit.note", "short", "default", "off | short | full"] {
        assert!(desk.shows(text), "{text}\n{}", desk.picture());
    }
    desk.keys("<enter><ctrl+u>full<enter>");
    let task = FileTask::Setting {
        path: "commit.note".to_owned(),
        value: Some("full".to_owned()),
    };
    assert_eq!(work(&desk).task, task);
    done(&mut desk, Err("`half` is not among its values".to_owned()));
    assert!(
        desk.shows("not among its values") && desk.shows("commit.note › full"),
        "what was typed can be corrected\n{}",
        desk.picture()
    );
    desk.keys("<ctrl+u>full<enter>");
    done(&mut desk, Ok(written(7)));
    assert!(desk.shows("Written to ~/config.toml:7"), "{}", desk.picture());
    let is_work = |it: &&Effect| matches!(it, Effect::Files(_));
    let count = |desk: &TestApp| desk.front.effects.iter().filter(is_work).count();
    let before = count(&desk);
    desk.keys("<enter><ctrl+u><enter>");
    assert!(desk.shows("enter removes this setting") && count(&desk) == before);
    desk.keys("<enter>");
    let task = FileTask::Setting {
        path: "commit.note".to_owned(),
        value: None,
    };
    assert_eq!(work(&desk).task, task, "an empty value and enter again remove it");
    done(&mut desk, Ok(written(7)));
    let before = count(&desk);
    desk.keys("<enter><ctrl+u><enter><enter>");
    assert_eq!(count(&desk), before, "it is removed already\n{}", desk.picture());
    desk.keys("<esc><esc><esc>");
    assert!(!desk.shows("Settings"), "{}", desk.picture());
}

#[test]
fn a_setting_of_few_values_is_chosen_by_arrows() {
    let mut desk = TestApp::new(100, 24);
    desk.app.preferences.settings = Settings::default();
    let value = |desk: &TestApp| match &work(desk).task {
        FileTask::Setting { value, .. } => value.clone(),
        other => panic!("{other:?}"),
    };
    desk.keys("/config<enter>motion<enter>");
    assert!(desk.shows("motion › true"), "{}", desk.picture());
    desk.keys("<down><enter>");
    assert_eq!(value(&desk).as_deref(), Some("false"));
    done(&mut desk, Ok(written(3)));
    // While the list is filtered Delete resets, too.
    desk.keys("<delete>");
    assert!(desk.shows("enter removes this setting"), "{}", desk.picture());
    desk.keys("<esc><ctrl+u>commit.note<enter><down>");
    assert!(desk.shows("commit.note › full"), "{}", desk.picture());
    desk.keys("<down><enter>");
    assert_eq!(value(&desk).as_deref(), Some("off"), "{}", desk.picture());
}

#[test]
fn an_added_rule_leaves_the_choice_in_its_list() {
    let mut desk = TestApp::new(100, 30);
    desk.keys("/permissions<enter>");
    desk.reply(Reply::Permissions(Permissions {
        run: "sandbox".to_owned(),
        ..Permissions::default()
    }));
    desk.keys("add<down><down><enter>Shell(ls)<enter>");
    desk.reply(Reply::Accepted);
    let entry = |entry: &str| FileTask::Entry {
        path: "approvals.allow",
        entry: entry.to_owned(),
        is_removed: false,
    };
    assert_eq!(work(&desk).task, entry("Shell(ls)"));
    done(&mut desk, Ok(written(12)));
    // The next one goes to the same list.
    desk.keys("<enter>Shell(make)<enter>");
    desk.reply(Reply::Accepted);
    assert_eq!(work(&desk).task, entry("Shell(make)"), "{}", desk.picture());
}

#[test]
fn a_rule_is_removed_by_two_presses_and_added_in_its_list() {
    let mut desk = TestApp::new(100, 30);
    desk.keys("/permissions<enter>");
    desk.reply(Reply::Permissions(Permissions {
        run: "sandbox".to_owned(),
        allow: vec!["Shell(ls)".to_owned(), "Shell(git push)".to_owned()],
        ..Permissions::default()
    }));
    let is_rules = |it: &Effect| matches!(it, Effect::Files(_));
    desk.keys("push<enter>");
    assert!(desk.shows("enter again removes this rule") && !desk.front.effects.iter().any(is_rules));
    // Neither the wheel nor a paste carries the mark to another rule.
    let wheel = |desk: &mut TestApp| {
        desk.take(Msg::Input(Input::Wheel {
            x: 5,
            y: 5,
            down: false,
        }));
    };
    desk.keys("<esc><esc>");
    for moves in [
        &wheel as &dyn Fn(&mut TestApp),
        &|desk: &mut TestApp| desk.paste("ls"),
        &|desk: &mut TestApp| desk.keys("<up>"),
    ] {
        desk.keys("<end><up><enter>");
        assert!(desk.shows("enter again removes this rule"), "{}", desk.picture());
        moves(&mut desk);
        assert!(!desk.shows("enter again removes this rule"), "{}", desk.picture());
        desk.keys("<enter><esc><esc>");
        assert!(!desk.front.effects.iter().any(is_rules), "{}", desk.picture());
        if desk.app.overlays.is_empty() {
            desk.keys("/permissions<enter>");
            desk.reply(Reply::Permissions(Permissions {
                run: "sandbox".to_owned(),
                allow: vec!["Shell(ls)".to_owned(), "Shell(git push)".to_owned()],
                ..Permissions::default()
            }));
        }
    }
    desk.keys("push<enter><left><enter><enter>");
    let entry = |entry: &str, is_removed| FileTask::Entry {
        path: "approvals.allow",
        entry: entry.to_owned(),
        is_removed,
    };
    assert_eq!(work(&desk).task, entry("Shell(git push)", true));
    done(&mut desk, Ok(written(12)));
    assert!(
        desk.shows("~/config.toml:12") && !desk.shows("git push"),
        "{}",
        desk.picture()
    );
    desk.keys("<esc><end><enter>Shell(make)<enter>");
    assert_eq!(desk.asked().last(), Some(&&Query::CheckRule("Shell(make)".to_owned())));
    desk.reply(Reply::Accepted);
    assert_eq!(work(&desk).task, entry("Shell(make)", false));
    done(&mut desk, Ok(written(13)));
    assert!(
        desk.shows("Shell(make)") && desk.shows("~/config.toml:13"),
        "{}",
        desk.picture()
    );
}

#[test]
fn status_and_usage_say_what_the_server_reports() {
    let status = ServerStatus {
        peer: "openai at api.example.org".to_owned(),
        model: "m-1".to_owned(),
        key: "$OPENAI_API_KEY".to_owned(),
        limits: vec![RateLimit {
            scope: "requests".to_owned(),
            limit: "100".to_owned(),
            remaining: "87".to_owned(),
            reset: "12s".to_owned(),
        }],
        limits_at_ms: 1,
    };
    for command in ["/status<enter>", "/usage<enter>"] {
        for width in [40, 100] {
            let mut desk = TestApp::new(width, 24);
            desk.keys(command);
            desk.reply(Reply::Status(status.clone()));
            for text in ["api.example.org", "$OPENAI_API_KEY", "87 of 100 left", "session"] {
                assert!(desk.shows(text), "{text}\n{}", desk.picture());
            }
        }
        let mut desk = TestApp::new(80, 24);
        desk.keys(command);
        desk.reply(Reply::Status(ServerStatus::default()));
        assert!(desk.shows("Not known yet"), "{}", desk.picture());
    }
}

#[test]
fn a_side_question_is_answered_on_a_page_and_sent_nowhere() {
    let mut desk = TestApp::new(80, 24);
    desk.keys("/btw<enter>");
    assert!(desk.shows("/btw why two loops?"), "{}", desk.picture());
    assert_eq!(
        desk.app.composer.field.text(),
        "/btw ",
        "what comes next is the question"
    );
    desk.keys("why two loops?<enter>");
    assert!(desk.shows("waiting for the model"), "{}", desk.picture());
    desk.reply(Reply::SideAnswer(SideAnswer {
        text: "One **reads** only.".to_owned(),
        problem: String::new(),
    }));
    assert!(
        desk.shows("One reads only.") && desk.shows("not part of the conversation"),
        "{}",
        desk.picture()
    );
    assert_eq!(desk.sent(), []);
    desk.keys("<esc>");
    assert!(!desk.shows("One reads only."), "{}", desk.picture());
    // Whoever has closed the page is not disturbed by the answer.
    desk.keys("/btw again?<enter><esc>");
    desk.reply(Reply::SideAnswer(SideAnswer {
        text: "late".to_owned(),
        problem: String::new(),
    }));
    assert!(!desk.shows("late"), "{}", desk.picture());
}

fn preview() -> CommitPreview {
    CommitPreview {
        branch: Some("main".to_owned()),
        author: "Ada <ada@example.org>".to_owned(),
        files: vec![CommitFile {
            path: "src/cart.rs".to_owned(),
            operation: Operation::Edit,
            added: 2,
            removed: 1,
        }],
        hunks: 1,
        left_out: vec!["1.3 src/cart.rs: builds on a change that is neither accepted nor committed".to_owned()],
        hooks: vec!["pre-commit".to_owned()],
        is_signed: true,
        note: "short".to_owned(),
        message: "Update src/cart.rs".to_owned(),
        problem: String::new(),
        state: "s".to_owned(),
    }
}

/// A review with the first change accepted, and the card open.
fn card(width: u16) -> TestApp {
    let mut desk = reviewing::changed(width);
    desk.keys("<alt+r>");
    desk.events([Event::DocumentUpdate {
        document: "a".into(),
        metadata: json!({ "accepted": true }).as_object().unwrap().clone(),
    }]);
    desk.later(1000);
    desk.keys("C");
    desk
}

#[test]
fn where_nothing_was_decided_a_commit_takes_all_that_was_written() {
    for keys in ["<alt+r>C", "/commit<enter>"] {
        let mut desk = reviewing::changed(100);
        desk.keys(keys);
        let asked = desk.asked();
        let Some(Query::CommitPreview(documents)) = asked.last() else {
            panic!("{keys}: {asked:?}");
        };
        let names: Vec<&str> = documents.iter().map(|it| it.1.as_str()).collect();
        assert_eq!(names, ["a", "c", "b"], "{keys}");
    }
}

#[test]
fn the_card_says_what_git_will_do_and_enter_does_it() {
    for width in [40, 80, 120] {
        let mut desk = card(width);
        let asked = desk.asked();
        let Some(Query::CommitPreview(documents)) = asked.last() else {
            panic!("{asked:?}");
        };
        let names: Vec<&str> = documents.iter().map(|it| it.1.as_str()).collect();
        assert_eq!(names, ["a"]);
        desk.reply(Reply::CommitPreview(Box::new(preview())));
        desk.reply(Reply::CommitMessage("cart: round".to_owned()));
        for text in [
            "cart: round",
            "src/cart.rs",
            "Ada",
            "pre-commit",
            "Signs the commit",
            "refs/notes/sheaf",
            "left out",
            "Nothing is pushed",
        ] {
            assert!(desk.shows(text), "{width} {text}\n{}", desk.picture());
        }
        let asked = desk.asked().len();
        desk.keys("<enter>");
        assert_eq!(desk.asked().len(), asked, "not in the first moment");
        desk.later(1000);
        desk.keys(" up<enter>");
        let queries = desk.asked();
        let Some(Query::Commit(request)) = queries.last() else {
            panic!("{queries:?}");
        };
        assert_eq!(
            (request.message.as_str(), request.state.as_str()),
            ("cart: round up", "s")
        );
        desk.reply(Reply::Commit(CommitOutcome {
            output: "the tests fail".to_owned(),
            ..CommitOutcome::default()
        }));
        assert!(
            desk.shows("the tests fail") && desk.shows("cart: round up"),
            "{}",
            desk.picture()
        );
        desk.keys("<esc>");
        assert!(desk.shows("Review"), "back in the review\n{}", desk.picture());
    }
}

#[test]
fn a_card_without_a_model_a_repository_or_a_workspace() {
    let mut desk = card(80);
    desk.reply(Reply::CommitPreview(Box::new(preview())));
    desk.keys("mine ");
    desk.reply(Reply::CommitMessage("cart: round".to_owned()));
    assert!(
        desk.shows("Update src/cart.rsmine"),
        "what is typed stays\n{}",
        desk.picture()
    );
    let mut desk = card(80);
    desk.reply(Reply::CommitPreview(Box::new(CommitPreview {
        problem: "a merge is not finished: finish or abort it first".to_owned(),
        ..CommitPreview::default()
    })));
    desk.later(1000);
    let asked = desk.asked().len();
    desk.keys("<enter>");
    assert!(
        desk.shows("A merge is not finished") && desk.asked().len() == asked,
        "{}",
        desk.picture()
    );
    let mut desk = card(80);
    desk.reply(Reply::Models(Vec::new()));
    assert!(desk.shows("commits are not available here"), "{}", desk.picture());
    let mut desk = TestApp::new(80, 24);
    desk.keys("/commit<enter>");
    assert!(desk.shows("no changes to commit"), "{}", desk.picture());
}

#[test]
fn nothing_leaves_the_conversation_while_a_commit_runs() {
    for (leave, again) in [("/quit<enter>", "/quit<enter>"), ("/new<enter>", "/new<enter>")] {
        let mut desk = card(80);
        desk.reply(Reply::CommitPreview(Box::new(preview())));
        desk.later(1000);
        desk.keys("<enter><esc><esc>");
        let left = |desk: &TestApp| {
            let leaves = |it: &&Effect| matches!(it, Effect::Quit(_) | Effect::Begin);
            desk.front.effects.iter().filter(leaves).count()
        };
        desk.keys(leave);
        assert_eq!(left(&desk), 0, "{leave}");
        assert!(desk.shows("a commit is running"), "{}", desk.picture());
        desk.keys(again);
        let stops = usize::from(leave.starts_with("/quit"));
        assert_eq!(left(&desk), stops, "{leave}: quitting again stops the hooks");
        desk.reply_to(
            |it| matches!(it, Query::Commit(_)),
            Reply::Commit(CommitOutcome::default()),
        );
        desk.keys(leave);
        assert_eq!(left(&desk), stops + 1, "{leave}");
    }
}

#[test]
fn the_users_own_message_stays_until_it_is_committed() {
    let mut desk = card(80);
    desk.reply(Reply::CommitPreview(Box::new(preview())));
    desk.later(1000);
    desk.keys(" of mine<esc>");
    desk.later(1000);
    desk.keys("C");
    desk.reply(Reply::CommitPreview(Box::new(preview())));
    assert!(desk.shows("Update src/cart.rs of mine"), "{}", desk.picture());
    desk.later(1000);
    desk.keys("<enter>");
    desk.reply(Reply::Commit(CommitOutcome {
        commit: Some("0123456789".to_owned()),
        ..CommitOutcome::default()
    }));
    desk.keys("<alt+r>");
    desk.later(1000);
    desk.keys("C");
    desk.reply(Reply::CommitPreview(Box::new(preview())));
    assert!(!desk.shows("of mine"), "{}", desk.picture());
}

#[test]
fn help_over_the_card_costs_nothing() {
    let mut desk = card(80);
    desk.reply(Reply::CommitPreview(Box::new(preview())));
    desk.later(1000);
    desk.keys(" now<enter>");
    assert!(matches!(desk.asked().last(), Some(Query::Commit(_))));
    desk.keys("<f1>");
    desk.reply_to(
        |it| matches!(it, Query::Commit(_)),
        Reply::Commit(CommitOutcome {
            output: "the tests fail".to_owned(),
            ..CommitOutcome::default()
        }),
    );
    desk.keys("<esc>");
    assert!(
        desk.shows("the tests fail") && desk.shows("Update src/cart.rs now"),
        "{}",
        desk.picture()
    );
    // It was looked at again, so that Enter commits what is there now.
    desk.reply_to(
        |it| matches!(it, Query::CommitPreview(_)),
        Reply::CommitPreview(Box::new(CommitPreview {
            state: "t".to_owned(),
            ..preview()
        })),
    );
    desk.later(1000);
    desk.keys("<enter>");
    let asked = desk.asked();
    let Some(Query::Commit(request)) = asked.last() else {
        panic!("{asked:?}");
    };
    assert_eq!(
        (request.state.as_str(), request.message.as_str()),
        ("t", "Update src/cart.rs now")
    );
}

#[test]
fn what_one_card_asked_is_not_for_the_next() {
    let mut desk = card(80);
    let first = desk.front.effects.iter().rev().find_map(|it| match it {
        Effect::Ask(ask) => Some(ask.clone()),
        _ => None,
    });
    desk.keys("<esc>");
    desk.later(1000);
    desk.keys("C");
    let late = CommitPreview {
        message: "for the first card".to_owned(),
        ..preview()
    };
    desk.take(Msg::Done(EffectOutcome::Replied(
        first.unwrap(),
        Ok(Reply::CommitPreview(Box::new(late))),
    )));
    assert!(!desk.shows("for the first card"), "{}", desk.picture());
    // The message of a model is to be read before Enter counts.
    desk.reply(Reply::CommitPreview(Box::new(preview())));
    desk.later(1000);
    desk.reply(Reply::CommitMessage("cart: round".to_owned()));
    let asked = desk.asked().len();
    desk.keys("<enter>");
    assert_eq!(desk.asked().len(), asked);
}

#[test]
fn a_value_with_quotes_is_edited_as_it_is() {
    let mut desk = TestApp::new(100, 24);
    desk.app.preferences.settings.model = Some("pass show \"x\"".to_owned());
    desk.keys("/config<enter>pass show<enter>!<enter>");
    let task = FileTask::Setting {
        path: "model".to_owned(),
        value: Some("pass show \"x\"!".to_owned()),
    };
    assert_eq!(work(&desk).task, task);
    // While it is written another row is edited; nothing of that is lost.
    desk.keys("<esc>commit.note<enter><ctrl+u>full");
    done(&mut desk, Ok(written(7)));
    assert!(desk.shows("commit.note › full"), "{}", desk.picture());
    desk.keys("<enter>");
    let FileTask::Setting { path, .. } = work(&desk).task else {
        panic!("{:?}", work(&desk));
    };
    assert_eq!(path, "commit.note");
    done(&mut desk, Ok(written(9)));
    desk.keys("<esc><esc>/config<enter>commit.note");
    assert!(
        desk.shows("~/config.toml:9"),
        "what was written shows\n{}",
        desk.picture()
    );
}

#[test]
fn enter_twice_on_any_setting_writes_nothing() {
    let file = SettingsFile::of_user(
        "config.toml",
        "model = 'x'\nrules = ['Use tabs, not spaces', 'Short names']\n
         [providers.own]\nbase_url = 'https://example.org'\nkey_command = ['pass', 'show']\nproxy = 'http://me:hidden@proxy:1'\n
         [providers.other]\napi_key = 'hidden'\nkey_file = '~/key'\n",
    );
    let (settings, _) = config::merge(
        Some(&file),
        None,
        &Environment::default(),
        &CommandLineSettings::default(),
    );
    let paths: Vec<_> = config::explain(&settings).into_iter().map(|it| it.path).collect();
    let mut desk = TestApp::new(100, 24);
    desk.app.preferences.settings = settings;
    desk.keys("/config<enter>");
    for path in &paths {
        desk.keys("<enter><enter><down>");
        let wrote = desk.front.effects.iter().any(|it| matches!(it, Effect::Files(_)));
        assert!(!wrote, "{path}\n{}", desk.picture());
    }
    // A list is edited as it is written.
    desk.keys("own.key_command<enter>");
    assert!(desk.shows(r#"key_command › ["pass", "show"]"#), "{}", desk.picture());
    desk.keys("<esc><esc>other.api_key<enter>");
    assert!(desk.shows("sheaf login"), "a hint\n{}", desk.picture());
}

#[test]
fn what_is_typed_is_seen_on_the_smallest_screen() {
    for height in 6..24 {
        let mut desk = TestApp::new(40, height);
        desk.app.preferences.settings = Settings::default();
        desk.keys("/config<enter>commit.note<enter><ctrl+u>full<enter>");
        done(&mut desk, Err("`full` is not among its values. ".repeat(9)));
        assert!(desk.shows("commit.note › full"), "{height}\n{}", desk.picture());
    }
}

#[test]
fn skills_and_hooks_say_what_they_cost_and_why_some_have_no_effect() {
    let entry = |name: &str, state: ExtensionState, tokens| ExtensionEntry {
        name: name.to_owned(),
        about: "about \u{1b}[31mit".to_owned(),
        path: "x/SKILL.md".to_owned(),
        state,
        tokens,
    };
    let mut desk = TestApp::new(120, 24);
    desk.keys("/skills<enter>");
    desk.reply(Reply::Extensions(vec![
        entry("release", ExtensionState::Active, Some((25, 1200))),
        entry("pdf", ExtensionState::Loaded, Some((30, 90))),
        entry("", ExtensionState::Shadowed("y/SKILL.md".to_owned()), None),
        entry("", ExtensionState::Untrusted, None),
        entry("TeammateIdle", ExtensionState::Unsupported, None),
        entry("", ExtensionState::Problem("its head is not YAML".to_owned()), None),
    ]));
    for words in [
        "55 tokens in each request",
        "25 tokens listed, 1.2k loaded",
        "pdf  loaded",
        "hidden by y/SKILL.md",
        "not trusted, /trust asks",
        "TeammateIdle  not supported",
        "its head is not YAML",
    ] {
        assert!(desk.shows(words), "{words}\n{}", desk.picture());
    }
    let mut desk = TestApp::new(120, 24);
    desk.keys("/hooks<enter>");
    desk.reply(Reply::Extensions(Vec::new()));
    assert!(desk.shows("no hooks: write .sheaf/hooks.json"), "{}", desk.picture());
}

#[test]
fn a_list_that_comes_late_takes_no_words() {
    for (command, reply) in [
        ("/permissions", Reply::Permissions(Permissions::default())),
        ("/usage", Reply::Status(ServerStatus::default())),
        ("/context", Reply::Context(Vec::new())),
        ("/sandbox", Reply::Sandbox(Sandbox::default())),
        ("/skills", Reply::Extensions(Vec::new())),
        ("/hooks", Reply::Extensions(Vec::new())),
        (
            "/model",
            Reply::ModelOffers(ModelOffers {
                models: vec![ModelOffer {
                    id: "m".to_owned(),
                    name: "m".to_owned(),
                    ..ModelOffer::default()
                }],
                problems: Vec::new(),
            }),
        ),
    ] {
        let mut desk = TestApp::new(100, 24);
        desk.keys(&format!("{command}<enter>fix the tests"));
        desk.reply_to(|it| !matches!(it, Query::Files { .. }), reply.clone());
        assert!(desk.app.overlays.is_empty(), "{command}\n{}", desk.picture());
        assert!(desk.shows("not opened"), "{command}\n{}", desk.picture());
        let mut desk = TestApp::new(100, 24);
        desk.keys(&format!("{command}<enter>"));
        desk.reply_to(|it| !matches!(it, Query::Files { .. }), reply);
        assert!(!desk.app.overlays.is_empty(), "{command}\n{}", desk.picture());
    }
}

#[test]
fn what_is_read_late_opens_over_no_words() {
    let late = |effect: &Effect| match effect {
        Effect::ProposeExport { draft, .. } => Some(EffectOutcome::ExportProposed {
            path: "talk.html".to_owned(),
            draft: *draft,
        }),
        Effect::Export { path, draft, .. } => Some(EffectOutcome::ExportExists {
            path: path.clone(),
            draft: *draft,
        }),
        Effect::Sessions(draft) => Some(EffectOutcome::Sessions(Ok(Vec::new()), *draft)),
        Effect::History(draft) => Some(EffectOutcome::History {
            texts: vec!["x".to_owned()],
            draft: Some(*draft),
        }),
        Effect::Save { path, text, draft, .. } => Some(EffectOutcome::SaveExists {
            path: path.clone(),
            text: text.clone(),
            draft: *draft,
        }),
        _ => None,
    };
    for command in ["/export", "/export talk.md", "/resume", "/history"] {
        for words in ["", "fix the tests"] {
            let mut desk = TestApp::new(100, 24);
            desk.keys(&format!("{command}<enter>{words}"));
            let outcome = desk.front.effects.iter().rev().find_map(late).expect(command);
            desk.take(Msg::Done(outcome));
            let is_open = !desk.app.overlays.is_empty();
            assert_eq!(is_open, words.is_empty(), "{command}\n{}", desk.picture());
            assert_eq!(desk.app.composer.field.text(), words);
        }
    }
}

#[test]
fn letters_go_to_the_draft_while_a_page_waits_and_its_answer_is_kept() {
    for words in [
        "just do it",
        "yes",
        "quick fix",
        " fix",
        "open it",
        "go on",
        "kind words",
        "fix it",
    ] {
        let mut desk = TestApp::new(100, 24);
        desk.keys(&format!("/btw why two loops?<enter>{words}"));
        assert_eq!(desk.app.composer.field.text(), words);
        let is_asked = |it: &Query| matches!(it, Query::SideQuestion(_));
        let answer = SideAnswer {
            text: "Because of the order.".to_owned(),
            problem: String::new(),
        };
        desk.reply_to(is_asked, Reply::SideAnswer(answer));
        assert!(desk.shows("/btw shows it"), "{words}\n{}", desk.picture());
        assert_eq!(desk.app.composer.field.text(), words);
        desk.keys("<alt+u>/btw<enter>");
        assert!(
            desk.shows("Because of the order.") && desk.shows("why two loops?"),
            "{words}\n{}",
            desk.picture()
        );
        let mut desk = TestApp::new(100, 24);
        desk.keys(&format!("/diff<enter>{words}"));
        assert_eq!(desk.app.composer.field.text(), words);
    }
}

#[test]
fn what_is_typed_while_a_line_is_remembered_stays() {
    let mut desk = TestApp::new(90, 24);
    desk.keys("# always use tabs<enter>");
    done(&mut desk, Ok(rule_files()));
    desk.later(1000);
    desk.keys("<enter><esc><ctrl+u>fix the tests");
    done(&mut desk, Ok(written(4)));
    assert_eq!(desk.app.composer.field.text(), "fix the tests");
}

#[test]
fn init_is_a_turn_in_agent_mode() {
    let mut desk = TestApp::new(80, 24);
    desk.keys("<shift+tab>/init mention the fuzzers<enter>");
    let sent = desk.sent();
    let [Command::Submit(submit)] = sent.as_slice() else {
        panic!("{sent:?}");
    };
    assert_eq!(submit.mode, crate::protocol::Mode::Agent);
    // The instructions travel along; the transcript and the title have the words that were typed.
    assert!(submit.message.content.contains("First explore"));
    assert_eq!(submit.message.typed().trim(), "Write AGENTS.md: mention the fuzzers");
}
