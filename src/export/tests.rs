use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    link::replay::Recording,
    protocol::{Branch, DocumentStart, Done, Event, Kind, Message, Position, Turn},
    transcript::{ObjectError, read},
};

/// The recorded tour: a conversation with all ten kinds.
fn tour() -> ExportedConversation {
    let bytes = include_bytes!("../../assets/tour/tour.jsonl");
    let recording = Recording::read("tour", bytes).expect("it is a recording");
    let session = Session::fresh("/work/shop", 0);
    ExportedConversation::new(session, recording.entries().to_vec())
}

fn shown(transcript: &Transcript) -> Vec<Value> {
    let exchanges = transcript.exchanges.iter();
    exchanges
        .map(|it| json!({ "message": it.message.as_ref().map(|it| &it.content), "response": it.response.to_json()["documents"] }))
        .collect()
}

#[test]
fn what_programs_read_comes_back_as_it_was() {
    let whole = tour();
    let object = whole.write(ExportFormat::Json);
    let entries = read(object.as_bytes())
        .expect("it is one of ours")
        .expect("it can be read");
    let back = ExportedConversation::new(whole.session.clone(), entries);
    assert_eq!(shown(&back.transcript), shown(&whole.transcript));
    assert_eq!(back.title(), whole.title());

    let lines = whole.write(ExportFormat::Jsonl);
    // Both are recordings as they are.
    assert!(Recording::read("object", object.as_bytes()).is_ok());
    let back = Recording::read("lines", lines.as_bytes()).expect("it is a recording");
    let back = ExportedConversation::new(whole.session.clone(), back.entries().to_vec());
    assert_eq!(shown(&back.transcript), shown(&whole.transcript));
    let members = |line: &str| -> Value { serde_json::from_str(line).expect("a line of JSON") };
    assert!(
        lines
            .lines()
            .all(|it| record::from_json(members(it).as_object().expect("an object").clone()).is_ok())
    );
}

#[test]
fn what_is_not_ours_is_not_taken_for_it() {
    assert!(read(b"{}").is_none());
    assert!(read(b"data: x\n\n").is_none());
    assert!(matches!(
        read(br#"{"sheafConversation": 99}"#),
        Some(Err(ObjectError::Newer))
    ));
    let broken = br#"{"sheafConversation": 1, "turns": [{"response": 3}]}"#;
    assert!(matches!(read(broken), Some(Err(ObjectError::Turn { turn: 1, .. }))));
}

#[test]
fn a_page_holds_every_document_and_nothing_foreign_acts_in_it() {
    let whole = tour();
    let page = whole.write(ExportFormat::Html);
    for exchange in &whole.transcript.exchanges {
        for at in 0..exchange.response.documents.len() {
            let id = format!("id=\"d{}.{}\"", exchange.turn.0, exchange.response.number(at));
            assert_eq!(page.matches(&id).count(), 1, "{id}");
        }
    }
    assert!(page.contains("default-src 'none'"));
    for word in [
        "<script",
        "<img",
        "<iframe",
        "javascript:",
        "onerror=",
        "url(",
        "@import",
        "src=",
    ] {
        assert!(!page.contains(word), "{word}");
    }
    // A variable that no theme gives would be a colour that is not there.
    let used: std::collections::BTreeSet<_> = page
        .split("var(--")
        .skip(1)
        .filter_map(|it| it.split(')').next())
        .collect();
    for name in used {
        assert_eq!(
            page.matches(&format!(" --{name}: #")).count(),
            2,
            "{name} in light and in dark"
        );
    }
}

#[test]
fn hostile_words_stay_words() {
    let evil = "</pre></details><script>alert(1)</script>\u{1b}]0;x\u{7}\u{202e}<img src=x onerror=alert(1)>";
    let documents: Vec<Value> = [
        json!({ "type": "text", "content": evil }),
        json!({ "type": "text", "content": evil, "metadata": { "format": "plain" } }),
        json!({ "type": "code_block", "content": evil, "metadata": { "language": evil } }),
        json!({ "type": "code_reference", "content": evil, "metadata": { "filePath": evil, "startLine": 1, "endLine": 2 } }),
        json!({ "type": "file_edit", "content": null, "metadata": { "filePath": evil, "operation": evil,
            "diff": { "oldString": evil, "newString": format!("{evil}2"), "startLine": 1, "endLine": 1 } } }),
        json!({ "type": "tool_call", "metadata": { "toolName": evil, "arguments": { evil: evil }, "result": { "status": "success", "data": evil } } }),
        json!({ "type": "terminal_command", "metadata": { "command": evil, "output": evil, "state": evil } }),
        json!({ "type": "plan", "content": evil, "metadata": { "title": evil, "overview": evil, "todos": [{ "id": "a", "content": evil, "status": evil }] } }),
        json!({ "type": "clarification", "content": evil, "metadata": { "questions": [{ "id": "a", "text": evil, "options": [{ "id": "b", "label": evil }] }],
            "outcome": "answered", "answers": [{ "questionId": "a", "selectedOptionIds": ["b"], "freeText": evil }] } }),
        json!({ "type": "error", "content": evil, "metadata": { "errorCode": evil, "source": evil, "details": evil } }),
        json!({ "type": "todo_update", "metadata": { "todos": [{ "id": "a", "content": evil, "status": evil }] } }),
        json!({ "type": evil, "content": evil, "metadata": { "x": evil } }),
    ]
    .into_iter()
    .enumerate()
    .map(|(at, mut it)| {
        it["id"] = format!("doc_{at}").into();
        it["sequence"] = (at + 1).into();
        it
    })
    .collect();
    let object = json!({
        "sheafConversation": 1, "title": evil,
        "turns": [{ "turn": 1, "at": 1, "message": { "role": "user", "content": evil },
            "response": { "id": "chat_1", "object": "chat.completion", "status": "completed", "documents": documents } }],
    });
    let entries = read(object.to_string().as_bytes()).expect("ours").expect("readable");
    let whole = ExportedConversation::new(Session::fresh(evil, 0), entries);
    assert_eq!(whole.transcript.exchanges[0].response.documents.len(), 12);
    let page = whole.write(ExportFormat::Html);
    assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'));
    // Every tag that is opened is closed.
    for tag in ["details", "article", "section", "pre", "div", "dl", "ul"] {
        let opened = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn one_document_in_the_form_that_is_wanted() {
    let whole = tour();
    let find = |kind: &str| {
        let exchange = &whole.transcript.exchanges;
        let all = exchange.iter().flat_map(|it| it.response.documents.iter());
        all.filter(|it| it.kind.as_str() == kind)
            .find(|it| !it.is_open())
            .expect("the tour has all kinds")
    };
    let edit = find("file_edit");
    let patch = format_document(edit, 1, DocumentFormat::Patch).expect("an edit has one");
    assert!(
        patch.starts_with("--- ") && patch.contains("\n+++ b/") && patch.contains("\n@@ -"),
        "{patch}"
    );
    assert_eq!(format_document(find("plan"), 1, DocumentFormat::Patch), None);
    let code = find("code_reference");
    assert_eq!(
        format_document(code, 1, DocumentFormat::Text)
            .as_deref()
            .map(str::trim_end),
        code.content.as_deref().map(str::trim_end)
    );
    let object: Value =
        serde_json::from_str(&format_document(code, 4, DocumentFormat::Json).expect("JSON")).expect("JSON");
    assert_eq!(
        (&object["type"], &object["sequence"]),
        (&json!("code_reference"), &json!(4))
    );
    let address = Address {
        turn: Turn(1),
        number: 4,
    };
    assert_eq!(
        whole.document(address).map(|it| it.0.kind.as_str()),
        Some("code_reference")
    );
}

/// A step of a conversation: an exchange, or a new branch.
#[derive(Clone, Debug)]
enum Step {
    Said(String, Vec<String>, bool),
    GoesOn(u32, Option<usize>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => ("[a-z<&\"\n]{1,8}", prop::collection::vec("[a-zä `#\n]{1,12}", 0..4), any::<bool>())
            .prop_map(|(said, documents, thinks)| Step::Said(said, documents, thinks)),
        1 => (0_u32..6, prop::option::of(0_usize..4)).prop_map(|(after, upto)| Step::GoesOn(after, upto)),
    ]
}

fn told(steps: &[Step]) -> ExportedConversation {
    let log = crate::journal::Log::new();
    for step in steps {
        match step {
            Step::Said(said, documents, thinks) => {
                log.append(1, Event::UserMessage(Message::user(said.as_str())));
                for (nth, text) in documents.iter().enumerate() {
                    if *thinks {
                        let delta = format!("about {nth}");
                        log.append(2, Event::ThinkingDelta { delta });
                    }
                    let start = DocumentStart {
                        id: format!("d{nth}").into(),
                        kind: Kind::Text,
                        sequence: Some(nth as u64 + 1),
                        content: None,
                        metadata: serde_json::Map::new(),
                    };
                    log.append(2, Event::DocumentStart(start));
                    let end = Event::DocumentEnd {
                        document: format!("d{nth}").into(),
                        final_content: Some(text.clone().into()),
                        metadata: serde_json::Map::new(),
                    };
                    log.append(2, end);
                }
                log.append(3, Event::Done(Done::default()));
            }
            Step::GoesOn(after, upto) => {
                let branch = Branch {
                    after: Turn((*after).min(log.turn().0)),
                    upto: upto.map(|it| format!("d{it}").into()),
                    is_open: false,
                };
                log.append(4, Event::Branch(branch));
            }
        }
    }
    let entries = log.after(Position(0)).iter().map(|it| Entry::clone(it)).collect();
    ExportedConversation::new(Session::fresh("/work/shop", 0), entries)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// All of it comes back, with its branches, and what came back is exported as the same bytes.
    #[test]
    fn what_is_imported_is_exported_again_as_it_was(steps in prop::collection::vec(step(), 1..10)) {
        let whole = told(&steps);
        prop_assume!(whole.transcript.all().iter().any(|it| it.message.is_some()));
        for form in [ExportFormat::Json, ExportFormat::Jsonl] {
            let import = |whole: &ExportedConversation| {
                let text = whole.write(form);
                let recording = Recording::read("it", text.as_bytes()).expect("it is a recording");
                ExportedConversation::new(whole.session.clone(), recording.entries().to_vec())
            };
            let one = import(&whole);
            prop_assert_eq!(one.with_branches(ExportFormat::Markdown), whole.with_branches(ExportFormat::Markdown), "{:?}", form);
            prop_assert_eq!(one.with_branches(ExportFormat::Html), whole.with_branches(ExportFormat::Html), "{:?}", form);
            prop_assert_eq!(one.transcript.tree(), whole.transcript.tree(), "{:?}", form);
            prop_assert_eq!(one.write(ExportFormat::Markdown), whole.write(ExportFormat::Markdown), "{:?}", form);
            let two = import(&one);
            prop_assert_eq!(two.write(form), one.write(form), "{:?}", form);
        }
    }
}
