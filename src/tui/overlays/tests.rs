use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use pretty_assertions::assert_eq;
use ratatui::layout::Rect;
use serde_json::{Map, json};

use super::*;
use crate::{
    protocol::{
        DocumentStart, Done, Event, FileChange, FinishReason, Kind, Message, ModelOffer, ModelOffers, Operation,
        Position, RestorePreview, Turn,
    },
    t,
    transcript::Transcript,
    tui::{
        app::{Answer, Choice, Overlay, Scene},
        library::{SessionPreview, StoredSession},
        widgets::transcript::Item,
    },
};

/// Two turns: words with wide characters, and a change of a file.
fn transcript() -> Transcript {
    let log = crate::journal::Log::new();
    for (message, kind, content, metadata) in [
        ("say 你好", Kind::Text, Some("你好 world"), json!({})),
        (
            "change it",
            Kind::FileEdit,
            None,
            json!({ "filePath": "src/a.rs", "operation": "edit", "applied": "applied",
                "diff": { "oldString": "let 物 = 1;\nsame\n", "newString": "let 物 = 2;\nsame\n", "startLine": 7 } }),
        ),
    ] {
        log.append(0, Event::UserMessage(Message::user(message)));
        let serde_json::Value::Object(metadata) = metadata else {
            continue;
        };
        let start = DocumentStart {
            id: "a".into(),
            kind,
            sequence: Some(1),
            content: content.map(Into::into),
            metadata,
        };
        log.append(0, Event::DocumentStart(start));
        let end = Event::DocumentEnd {
            document: "a".into(),
            final_content: None,
            metadata: Map::new(),
        };
        log.append(0, end);
        log.append(0, Event::Done(Done::default()));
    }
    let mut transcript = Transcript::default();
    transcript.apply_all(&log.after(Position(0)));
    transcript
}

fn press(overlay: &mut dyn Overlay, transcript: &Transcript, key: KeyCode) -> Answer {
    Scene::test(transcript, |scene| {
        overlay.key(KeyEvent::new(key, KeyModifiers::NONE), scene)
    })
}

#[test]
fn the_outline_lists_messages_and_documents_and_filters_them() {
    let transcript = transcript();
    let documents = (0..2).map(|exchange| {
        let place = crate::transcript::DocumentIndex { exchange, document: 0 };
        [Item::Message(exchange), Item::Document(place)]
    });
    let items: Vec<Item> = documents.flatten().collect();
    let mut outline = Outline::new(&items, Some(items[2]));
    let lines = Scene::drawn(&mut outline, &transcript, 44, 6);
    assert_eq!(lines[0], "╭─ outline ────────────────────────────────╮");
    assert!(lines[1].contains("▌ say 你好"), "{lines:#?}");
    assert!(lines[2].contains("1.1 · 你好 world"), "{lines:#?}");
    assert!(
        lines[3].starts_with("│›") && lines[3].contains("▌ change it"),
        "{lines:#?}"
    );
    assert!(lines[4].contains("2.1 ± "), "{lines:#?}");
    assert!(lines.iter().all(|it| crate::text::width::width(it) == 44), "{lines:#?}");
    for letter in "好".chars() {
        press(&mut outline, &transcript, KeyCode::Char(letter));
    }
    Scene::drawn(&mut outline, &transcript, 44, 6);
    let lines = Scene::drawn(&mut outline, &transcript, 44, 6);
    assert!(lines[0].contains("outline › 好"), "{lines:#?}");
    assert!(
        lines[1].contains("say 你好") && lines[2].contains("world"),
        "{lines:#?}"
    );
    assert!(!lines[3].contains("change"), "{lines:#?}");
    assert_eq!(
        outline.caret(Rect::new(10, 2, 44, 6)),
        Some(ratatui::layout::Position::new(10 + 3 + 7 + 3 + 2, 2))
    );
}

#[test]
fn branches_stand_beside_their_answer_or_above_it() {
    let transcript = transcript();
    let mut branches = Branches::new(&transcript).unwrap();
    press(&mut branches, &transcript, KeyCode::Up);
    let wide = Scene::drawn(&mut branches, &transcript, 80, 6);
    assert!(
        wide[2].starts_with("›    1 ● say 你好") && wide[2].contains(" │ say 你好"),
        "{wide:#?}"
    );
    assert!(wide[4].ends_with("│ 你好 world"), "{wide:#?}");
    let narrow = Scene::drawn(&mut branches, &transcript, 30, 9);
    assert!(
        narrow[2].starts_with("›    1 ●") && narrow[3].starts_with("     2 ●"),
        "{narrow:#?}"
    );
    assert_eq!(
        (narrow[4].as_str(), narrow[5].as_str()),
        ("─".repeat(30).as_str(), "say 你好")
    );
}

#[test]
fn rewinding_shows_the_files_that_go_back() {
    let transcript = transcript();
    let mut rewind = Rewind::new(&transcript, &[], None, 0).unwrap();
    assert!(Scene::drawn(&mut rewind, &transcript, 90, 8)[2].contains(" │ "));
    let file = |path: &str| FileChange {
        path: path.to_owned(),
        operation: Operation::Edit,
        added: 1,
        removed: 1,
        conflict: None,
        is_lost: false,
        patch: "--- a\n+++ b\n@@ -1 +1 @@\n-old 物\n+new 物\n".to_owned(),
    };
    let preview = RestorePreview {
        files: vec![file("src/a.rs"), file("src/b.rs")],
        ..RestorePreview::default()
    };
    rewind.take(Turn(2), preview);
    press(&mut rewind, &transcript, KeyCode::Right);
    press(&mut rewind, &transcript, KeyCode::Down);
    press(&mut rewind, &transcript, KeyCode::Enter);
    let lines = Scene::drawn(&mut rewind, &transcript, 60, 14);
    let at = lines.iter().position(|it| it.starts_with("  ± src/a.rs")).unwrap();
    assert!(lines[at + 1].starts_with("› · src/b.rs"), "{lines:#?}");
    assert_eq!(
        &lines[at + 3..at + 6],
        ["@@ -1 +1 @@", "-old 物", "+new 物"],
        "{lines:#?}"
    );
}

#[test]
fn saved_conversations_have_a_preview_beside_or_below_them() {
    let sessions = ["first", "第二"].map(|title| StoredSession {
        id: title.to_owned(),
        title: title.to_owned(),
        turns: 3,
        ..StoredSession::default()
    });
    let mut list = Sessions::new(sessions.into(), 0);
    list.show(
        "first".to_owned(),
        SessionPreview {
            model: Some("gpt-5.4".to_owned()),
            branch: Some("main".to_owned()),
            branches: 2,
            bytes: 34_000,
            created: 0,
            end: self::transcript(),
        },
    );
    let transcript = Transcript::default();
    let wide = Scene::drawn(&mut list, &transcript, 110, 14).join("\n");
    for part in [
        "› first ",
        "gpt-5.4  git main  2 branches",
        "3 turns",
        "34 kB",
        "▌ change it",
        "− let 物 = 1;",
        "+ let 物 = 2;",
    ] {
        assert!(wide.contains(part), "{part}: {wide}");
    }
    assert!(!wide.contains(t!("list-in-use")), "{wide}");
    let narrow = Scene::drawn(&mut list, &transcript, 50, 22);
    assert_eq!(narrow[12], "─".repeat(50));
    assert!(narrow[13].contains("gpt-5.4  git main"), "{narrow:#?}");
    assert!(narrow.join("\n").contains("let 物 = 2;"), "{narrow:#?}");
    press(&mut list, &transcript, KeyCode::Char('x'));
    assert!(!Scene::drawn(&mut list, &transcript, 50, 16).join("").contains("first"));
}

#[test]
fn the_list_of_conversations_marks_the_open_one_and_prints_keys_that_work() {
    let session = StoredSession {
        id: "a".to_owned(),
        title: "first".to_owned(),
        is_open: true,
        ..StoredSession::default()
    };
    let mut list = Sessions::new(vec![session], 0);
    let log = crate::journal::Log::new();
    log.append(0, Event::UserMessage(Message::user("say")));
    log.append(
        0,
        Event::Done(Done {
            finish_reason: Some(FinishReason::Error),
            ..Done::default()
        }),
    );
    let mut end = Transcript::default();
    end.apply_all(&log.after(Position(0)));
    list.show(
        "a".to_owned(),
        SessionPreview {
            end,
            ..SessionPreview::default()
        },
    );
    let transcript = Transcript::default();
    let shown = Scene::drawn(&mut list, &transcript, 110, 14).join("\n");
    assert!(shown.contains(&format!("first  {}", t!("list-in-use"))), "{shown}");
    assert!(
        shown.contains(t!("ending-failed")) && !shown.contains(t!("key-retry")),
        "{shown}"
    );
    let has_enter = |list: &Sessions| list.hints().iter().any(|it| it.0 == "enter");
    assert!(has_enter(&list));
    for letter in "nothing".chars() {
        press(&mut list, &transcript, KeyCode::Char(letter));
    }
    assert!(!has_enter(&list));
}

#[test]
fn a_change_is_reviewed_in_one_column_or_side_by_side() {
    let transcript = transcript();
    let mut review = Review::new(&transcript, None, 0).unwrap();
    let unified = Scene::drawn(&mut review, &transcript, 100, 10);
    assert!(
        unified[2].starts_with("src/a.rs:7") && !unified.join("").contains('│'),
        "{unified:#?}"
    );
    let text = unified.join("\n");
    assert!(
        text.contains("− let 物 = 1;") && text.contains("+ let 物 = 2;"),
        "{text}"
    );
    press(&mut review, &transcript, KeyCode::Char('u'));
    let sides = Scene::drawn(&mut review, &transcript, 100, 10);
    let both = sides.iter().find(|it| it.contains("物 = 1")).unwrap();
    assert!(both.contains("物 = 2") && both.matches('│').count() == 1, "{sides:#?}");
}

#[test]
fn no_overlay_leaves_its_area_at_any_size() {
    let transcript = transcript();
    for columns in 1..150 {
        for lines in [1, 2, 3, 5, 12, 40] {
            let mut overlays: Vec<Box<dyn Overlay>> = vec![
                Box::new(Branches::new(&transcript).unwrap()),
                Box::new(Rewind::new(&transcript, &[], None, 0).unwrap()),
                Box::new(Review::new(&transcript, None, 0).unwrap()),
                Box::new(Sessions::new(vec![StoredSession::default()], 0)),
                Box::new(Outline::new(&[Item::Message(0)], None)),
                Box::new(Prompt::new("Title", "a text 你好", Choice::Search)),
                Box::new(QueueList::new(["a", "b"].into_iter())),
                Box::new(Picker::models(
                    &ModelOffers {
                        models: vec![ModelOffer {
                            id: "你好".to_owned(),
                            provider: "好".to_owned(),
                            ..ModelOffer::default()
                        }],
                        problems: Vec::new(),
                    },
                    None,
                )),
                Box::new(Page::problems(&["a problem".to_owned()])),
            ];
            for overlay in &mut overlays {
                Scene::drawn(overlay.as_mut(), &transcript, columns, lines);
            }
        }
    }
}
