//! Pictures as they reach a terminal that draws them.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;

use super::super::{
    image::Images,
    msg::{EffectOutcome, Msg},
    terminal::{Input, Reply},
    test_app::*,
};
use crate::{
    protocol::{Event, Message, Turn},
    tui::{
        app::Effect,
        terminal::{ImageProtocol, ImageSetting, TerminalName},
    },
};

/// A picture of 64 by 32 pixels, as far as its head says.
fn png() -> String {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x40\0\0\0\x20".to_vec();
    bytes.extend([7; 40]);
    STANDARD.encode(bytes)
}

/// What went to the terminal beside the frames.
fn aside(desk: &mut TestApp) -> String {
    let mut out = std::mem::take(&mut desk.app.terminal.pending);
    while desk.app.terminal.images.is_sending() {
        desk.app.terminal.images.flow(&mut out);
    }
    String::from_utf8(out).unwrap()
}

fn drawing(width: u16) -> TestApp {
    let mut desk = TestApp::new(width, 24);
    desk.app.terminal.images = Images::new(ImageSetting::Only(ImageProtocol::Kitty), None);
    desk
}

fn cells(desk: &TestApp) -> usize {
    desk.picture().matches('\u{10eeee}').count()
}

#[test]
fn an_attached_picture_is_given_when_it_is_seen_and_drawn_as_text() {
    let mut desk = drawing(80);
    let mut message = Message::user("look at this");
    message
        .extra
        .insert("images".into(), json!([{ "mediaType": "image/png", "data": png() }]));
    desk.events([Event::UserMessage(message)]);
    let sent = aside(&mut desk);
    assert!(
        sent.starts_with("\x1b_Ga=T,U=1,p=1,f=100") && sent.contains("c=8,r=2"),
        "{sent}"
    );
    assert_eq!(cells(&desk), 16, "{}", desk.picture());
    assert!(desk.shows("image 64×32 png, 64 B"), "{}", desk.picture());
    // Scrolled away it takes nothing, and it is not given again.
    let long: Vec<String> = (0..60).map(|it| format!("line {it}\n\n")).collect();
    desk.events(document("doc_001", "text", Some(&long.concat()), json!({})));
    desk.keys("<tab>G");
    assert_eq!(cells(&desk), 0, "{}", desk.picture());
    desk.keys("g");
    assert_eq!(cells(&desk), 16, "{}", desk.picture());
    assert_eq!(aside(&mut desk), "");
    for width in 1..=120 {
        desk.resize(width, 12);
    }
}

#[test]
fn elsewhere_it_is_said_in_words() {
    let mut desk = TestApp::new(80, 24);
    let mut message = Message::user("look at this");
    message
        .extra
        .insert("images".into(), json!([{ "mediaType": "image/png", "data": png() }]));
    desk.events([Event::UserMessage(message)]);
    assert_eq!((cells(&desk), aside(&mut desk).as_str()), (0, ""));
    assert!(desk.shows("image 64×32 png, 64 B"), "{}", desk.picture());
}

#[test]
fn what_a_tool_has_read_is_read_again_to_be_drawn() {
    let call = || {
        document(
            "doc_001",
            "tool_call",
            None,
            json!({ "toolName": "read_file", "arguments": { "path": "docs/shot.png" },
                "result": { "status": "success", "data": { "content": "", "mediaType": "image/png", "fileSize": 64 } } }),
        )
    };
    let mut desk = drawing(80);
    desk.events([Event::UserMessage(Message::user("look"))]);
    desk.events(call());
    let wanted = desk.app.pictures_wanted(None);
    let [Effect::ReadPicture { turn, document, path }] = wanted.as_slice() else {
        panic!("{wanted:?}")
    };
    assert_eq!((*turn, path.as_str()), (Turn(1), "docs/shot.png"));
    assert_eq!(desk.app.pictures_wanted(None), [], "once");
    desk.take(Msg::Done(EffectOutcome::PictureRead {
        turn: *turn,
        document: document.clone(),
        data: Some(png()),
    }));
    assert_eq!(cells(&desk), 16, "{}", desk.picture());
    assert!(aside(&mut desk).contains("a=T,U=1"));
    // Selected and not, it stays.
    desk.keys("<tab>");
    desk.draw();
    assert_eq!(cells(&desk), 16, "{}", desk.picture());
    // Where nothing is drawn nothing is read.
    let mut desk = TestApp::new(80, 24);
    desk.events([Event::UserMessage(Message::user("look"))]);
    desk.events(call());
    assert_eq!(desk.app.pictures_wanted(None), []);
}

#[test]
fn a_picture_beneath_the_workspace_is_read_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("work");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("a.png"), "inside").unwrap();
    std::fs::write(folder.path().join("b.png"), "outside").unwrap();
    let read = |path: &str| super::super::image::read(&root, path);
    assert_eq!(read("a.png"), Some(STANDARD.encode("inside")));
    assert_eq!(
        read(root.join("a.png").to_str().unwrap()),
        Some(STANDARD.encode("inside"))
    );
    assert_eq!(read("../b.png"), None);
    assert_eq!(read("/etc/passwd"), None);
}

/// A picture that can really be decoded.
fn real() -> String {
    let bytes = include_bytes!("../../../tests/fixtures/pictures/photo.jpg");
    STANDARD.encode(bytes)
}

#[test]
fn a_terminal_that_knows_sixel_says_so_and_is_believed() {
    let mut desk = TestApp::new(80, 24);
    desk.app.terminal.images = Images::new(ImageSetting::Auto, None);
    let mut message = Message::user("look at this");
    let images = json!([{ "mediaType": "image/jpeg", "data": real() }]);
    message.extra.insert("images".into(), images);
    desk.events([Event::UserMessage(message)]);
    assert_eq!(desk.app.pictures_wanted(None), []);
    desk.take(Msg::Input(Input::Reply(Reply::Attributes { sixel: true })));
    assert!(
        aside(&mut desk).contains("\x1b[16t"),
        "how large its cells are it is asked"
    );
    assert_eq!(desk.app.pictures_wanted(None), []);
    desk.take(Msg::Input(Input::Reply(Reply::Cell(9, 18))));
    let wanted = desk.app.pictures_wanted(None);
    let [Effect::MakePicture(order)] = wanted.as_slice() else {
        panic!("{wanted:?}")
    };
    assert_eq!(desk.app.pictures_wanted(None), [], "one at a time");
    assert_eq!(cells(&desk), 0);
    let (id, made) = crate::tui::image::make(order);
    desk.take(Msg::Done(EffectOutcome::PictureMade(id, made)));
    let kept = |desk: &TestApp| desk.front.screen.text().matches('\u{10eeee}').count();
    assert_eq!(
        (kept(&desk), cells(&desk)),
        (2, 0),
        "the terminal is told to paint, and not the cells"
    );
    assert_eq!(desk.app.pictures_wanted(None), [], "it is there");
    // Letters of another size.
    desk.take(Msg::Input(Input::Reply(Reply::Cell(12, 24))));
    assert_eq!(kept(&desk), 0, "{}", desk.picture());
    assert_eq!(desk.app.pictures_wanted(None).len(), 1);
}

#[test]
fn who_wants_none_gets_none_whatever_the_terminal_can() {
    for wish in [ImageSetting::of("off"), ImageSetting::of("nonsense")] {
        let mut desk = TestApp::new(80, 24);
        desk.app.terminal.images = Images::new(wish, Some((9, 18)));
        desk.take(Msg::Input(Input::Reply(Reply::Named(TerminalName::Draws(
            ImageProtocol::Iterm2,
        )))));
        let mut message = Message::user("look at this");
        let images = json!([{ "mediaType": "image/jpeg", "data": real() }]);
        message.extra.insert("images".into(), images);
        desk.events([Event::UserMessage(message)]);
        assert_eq!(desk.app.pictures_wanted(None), []);
        assert_eq!((cells(&desk), aside(&mut desk).as_str()), (0, ""));
    }
}

#[test]
fn a_picture_that_is_marked_is_not_copied() {
    let mut desk = drawing(80);
    let mut message = Message::user("look at this");
    message
        .extra
        .insert("images".into(), json!([{ "mediaType": "image/png", "data": png() }]));
    desk.events([Event::UserMessage(message)]);
    let rows: Vec<String> = desk.picture().lines().map(str::to_owned).collect();
    let top = rows.iter().position(|it| it.contains("look at this")).unwrap() as u16;
    desk.take(Msg::Input(Input::Click { x: 9, y: top }));
    desk.take(Msg::Input(Input::Drag { x: 40, y: top + 4 }));
    let text = desk.app.selected_text().unwrap();
    assert!(text.contains("image 64×32 png"), "{text:?}");
    assert!(!text.contains('\u{10eeee}'), "{text:?}");
}
