//! Conversations that the gateway keeps.

use super::*;
use crate::protocol::{Position, ResponseStart};

pub struct House {
    _folder: tempfile::TempDir,
    pub store: Store,
    pub gateway: Gateway,
}

impl House {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("served"));
        Self {
            gateway: Gateway::keeping(quick(), 64, Some(store.clone())),
            store,
            _folder: folder,
        }
    }

    pub async fn say(&self, text: &str, conversation: Option<&str>, more: &Value) -> Client {
        let mut body = json!({ "model": "m", "messages": [{ "role": "user", "content": text }] });
        if let Some(conversation) = conversation {
            body["conversationId"] = conversation.into();
        }
        for (name, value) in more.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        self.gateway.post("/api/v1/chat/completions", &body).await
    }
}

pub fn answer(text: &str) -> Vec<Event> {
    vec![
        Event::ResponseStart(ResponseStart {
            conversation_id: Some("conv_theirs".into()),
            ..ResponseStart::default()
        }),
        start("a", "text", json!({})),
        delta("a", text),
        end("a", Some(text), json!({ "format": "markdown" })),
        Event::Done(Done::default()),
    ]
}

/// Returns the texts so far, user and assistant in turn.
fn said(log: &Log) -> Vec<String> {
    let said = log.after(Position(0));
    let said = said.iter().filter_map(|it| match &it.event {
        Event::UserMessage(it) => Some(it.content.clone()),
        Event::DocumentEnd { final_content, .. } => final_content.as_deref().map(str::to_owned),
        _ => None,
    });
    said.collect()
}

/// Waits for a refusal to be over.
pub async fn object(client: &mut Client) -> (u16, Value) {
    let head = client.until("\r\n\r\n").await;
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
    let length = head.to_lowercase();
    let length = length
        .lines()
        .find_map(|it| it.strip_prefix("content-length: "))
        .expect("a length");
    let mut bytes = vec![0; length.trim().parse().expect("a number")];
    tokio::time::timeout(PATIENCE, client.0.read_exact(&mut bytes))
        .await
        .expect("in time")
        .expect("a body");
    (status, serde_json::from_slice(&bytes).expect("JSON"))
}

#[tokio::test]
async fn a_conversation_goes_on_with_the_next_message_alone() {
    let mut house = House::new();
    let mut client = house.say("one", None, &json!({})).await;
    let mut turn = house.gateway.turn().await;
    turn.say(answer("two"));
    let (status, first) = object(&mut client).await;
    assert_eq!((status, &first["status"]), (200, &json!("completed")), "{first}");
    let id = first["conversationId"].as_str().expect("a name").to_owned();
    assert!(id.starts_with("conv_") && id != "conv_theirs", "{id}");
    let mut client = house.say("three", Some(&id), &json!({})).await;
    assert_eq!(turn.message().await.message.content, "three", "the same link hears it");
    turn.say(answer("four"));
    let (_, second) = object(&mut client).await;
    assert_eq!(
        (&second["conversationId"], &second["documents"][0]["content"]),
        (&json!(id), &json!("four"))
    );
    assert_eq!(said(&turn.log), ["one", "two", "three", "four"]);
    assert!(house.gateway.turns.try_recv().is_err(), "no other link was opened");

    // It is on the disk when the server has stopped, and goes on with the next server.
    house.gateway.stop.send(()).expect("it runs");
    house.gateway.served.await.expect("it ends");
    house.gateway = Gateway::keeping(quick(), 64, Some(house.store.clone()));
    let mut client = house.say("five", Some(&id), &json!({})).await;
    let mut turn = house.gateway.turn().await;
    assert_eq!(said(&turn.log), ["one", "two", "three", "four", "five"]);
    turn.say(answer("six"));
    let (status, _) = object(&mut client).await;
    assert_eq!(status, 200);

    // Whoever sends everything begins another one, and this one stays as it is.
    let whole = json!({ "messages": [
        { "role": "user", "content": "one" }, { "role": "assistant", "content": "other" }, { "role": "user", "content": "new" }
    ] });
    let mut client = house.say("", Some(&id), &whole).await;
    let other = house.gateway.turn().await;
    assert_eq!(said(&other.log), ["one", "other", "new"]);
    other.say(answer("yes"));
    let (_, third) = object(&mut client).await;
    assert_ne!(third["conversationId"], json!(id));
    assert!(turn.told.try_recv().is_err());
}

#[tokio::test]
async fn names_of_conversations_lead_nowhere_else() {
    let house = House::new();
    std::fs::write(
        house.store.folder().parent().expect("a folder").join("secret.jsonl"),
        "{}\n",
    )
    .expect("it is written");
    for id in [
        "conv_none",
        "../secret",
        "..",
        "a/b",
        "/etc/passwd",
        &"x".repeat(300),
        "conv\u{0}",
        " ",
    ] {
        let (status, refused) = object(&mut house.say("hi", Some(id), &json!({})).await).await;
        assert_eq!(status, 404, "{id}: {refused}");
    }
}

#[tokio::test]
async fn one_message_is_answered_at_a_time() {
    let mut house = House::new();
    let mut first = house.say("one", None, &json!({ "stream": true })).await;
    let mut turn = house.gateway.turn().await;
    turn.say([Event::ResponseStart(ResponseStart::default())]);
    let begun = first.until("\"status\":\"streaming\"").await;
    let conversation = begun
        .split("\"conversationId\":\"")
        .nth(1)
        .and_then(|it| it.split('"').next());
    let conversation = conversation.expect("a name").to_owned();
    let (status, refused) = object(&mut house.say("two", Some(&conversation), &json!({})).await).await;
    assert_eq!(status, 409, "{refused}");
    let details = refused["error"]["details"].as_str().expect("a hint");
    assert!(
        details.contains(&id_in(&begun)) && details.contains("/stream"),
        "{details}"
    );

    // A message is an answer to an open question, also where the client knows no other way.
    turn.say(question());
    first.until("Which?").await;
    let mut second = house
        .say("the first", Some(&conversation), &json!({ "stream": true }))
        .await;
    let rest = first.until("event: done").await + &first.until("\n\n").await;
    assert!(rest.contains("awaiting_input"), "{rest}");
    assert_eq!(turn.told().await, Command::Cancel);
    assert_eq!(turn.message().await.message.content, "the first");
    // What comes late of the turn before is nobody's.
    turn.log
        .append_to(crate::protocol::Turn(1), 3, Event::Done(Done::default()));
    turn.say(answer("good"));
    let said = second.until("event: done").await;
    assert!(said.contains("\"good\"") && !said.contains("Which?"), "{said}");
}

#[tokio::test]
async fn two_servers_do_not_write_one_conversation() {
    let mut house = House::new();
    let mut client = house.say("one", None, &json!({})).await;
    let turn = house.gateway.turn().await;
    turn.say(answer("two"));
    let (_, first) = object(&mut client).await;
    let id = first["conversationId"].as_str().expect("a name").to_owned();
    let other = Gateway::keeping(quick(), 64, Some(house.store.clone()));
    let body = json!({ "messages": [{ "role": "user", "content": "three" }], "conversationId": id });
    let written = async {
        loop {
            let mut client = other.post("/api/v1/chat/completions", &body).await;
            let (status, refused) = object(&mut client).await;
            // The file is made with the first thing that is settled.
            if status != 404 {
                return (status, refused);
            }
        }
    };
    let (status, refused) = tokio::time::timeout(PATIENCE, written).await.expect("it is written");
    assert_eq!(status, 409, "{refused}");
    assert!(
        refused["error"]["message"]
            .as_str()
            .is_some_and(|it| it.contains("another sheaf")),
        "{refused}"
    );
}

#[tokio::test]
async fn other_tools_are_another_link_with_the_same_conversation() {
    let mut house = House::new();
    let mut client = house.say("one", None, &json!({ "tools": ["grep"] })).await;
    let turn = house.gateway.turn().await;
    turn.say(answer("two"));
    let (_, first) = object(&mut client).await;
    let id = first["conversationId"].as_str().expect("a name").to_owned();
    let mut client = house.say("three", Some(&id), &json!({ "tools": ["read_file"] })).await;
    let other = house.gateway.turn().await;
    assert_eq!(said(&other.log), ["one", "two", "three"]);
    other.say(answer("four"));
    let (status, second) = object(&mut client).await;
    assert_eq!((status, &second["conversationId"]), (200, &json!(id)));
}

#[tokio::test]
async fn what_nobody_uses_leaves_the_memory_and_comes_back_from_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let limits = Limits {
        retention: Duration::from_millis(80),
        ..quick()
    };
    let mut house = House {
        gateway: Gateway::keeping(limits, 64, Some(store.clone())),
        store,
        _folder: folder,
    };
    let mut client = house.say("one", None, &json!({})).await;
    let mut turn = house.gateway.turn().await;
    turn.say(answer("two"));
    let (_, first) = object(&mut client).await;
    let (id, response) = (
        first["conversationId"].as_str().expect("a name"),
        first["id"].as_str().expect("a name"),
    );
    // The link goes when the conversation does.
    let gone = tokio::time::timeout(PATIENCE, turn.told.recv()).await.expect("in time");
    assert_eq!(gone, None);
    let path = format!("/api/v1/chat/responses/{response}");
    let forgotten = async { while !house.gateway.get(&path, "").await.end().await.contains(" 410 ") {} };
    tokio::time::timeout(PATIENCE, forgotten)
        .await
        .expect("the response goes as well");
    let mut client = house.say("three", Some(id), &json!({})).await;
    let turn = house.gateway.turn().await;
    assert_eq!(said(&turn.log), ["one", "two", "three"]);
    turn.say(answer("four"));
    assert_eq!(object(&mut client).await.0, 200);
}
