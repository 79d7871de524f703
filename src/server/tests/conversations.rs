//! Stored conversations: the list, the documents, the diff, undo, and the streams.

use super::{
    kept::{House, answer, object},
    *,
};

const LIST: &str = "/api/v1/conversations";

async fn get(house: &House, path: &str) -> (u16, Value) {
    object(&mut house.gateway.get(path, "").await).await
}

/// Checks an object against its schema.
fn check(object: &Value, name: &str) {
    let schema = crate::protocol::schema::schema(name).expect("a schema");
    if let Err(error) = jsonschema::validate(&schema, object) {
        panic!("{name}: {error} in {object:#}");
    }
}

/// Begins a conversation, and returns its id and its link.
async fn begun(house: &mut House, text: &str) -> (String, Turned) {
    let mut client = house.say(text, None, &json!({})).await;
    let turn = house.gateway.turn().await;
    turn.say(answer("yes"));
    let (_, said) = object(&mut client).await;
    (said["conversationId"].as_str().expect("a name").to_owned(), turn)
}

async fn restarted(house: &mut House) {
    let next = Gateway::keeping(quick(), 64, Some(house.store.clone()));
    let last = std::mem::replace(&mut house.gateway, next);
    last.stop.send(()).expect("it runs");
    last.served.await.expect("it ends");
}

/// Reads the list until it is as it is wanted: files are written behind the answers.
async fn listed(house: &House, path: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let reading = async {
        loop {
            let (status, list) = get(house, path).await;
            assert_eq!(status, 200, "{list}");
            if is_wanted(&list) {
                return list;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("it is listed")
}

fn ids(list: &Value) -> Vec<String> {
    let entries = list["conversations"].as_array().expect("a list").iter();
    entries.map(|it| it["id"].as_str().expect("an id").to_owned()).collect()
}

#[tokio::test]
async fn the_list_comes_in_pages_and_says_what_runs() {
    let mut house = House::new();
    let mut all = Vec::new();
    for text in ["one", "two", "three"] {
        all.push(begun(&mut house, text).await.0);
    }
    let list = listed(&house, LIST, |it| {
        ids(it).len() == 3
            && it["conversations"]
                .as_array()
                .expect("a list")
                .iter()
                .all(|it| it["turns"] == 1)
    })
    .await;
    assert_eq!(list["next"], Value::Null);
    check(&list, "ConversationPage");
    let entry = &list["conversations"][0];
    assert_eq!((&entry["status"], &entry["responseId"]), (&json!("idle"), &Value::Null));

    // A server that has stopped writes no more, so the order stays as it is.
    restarted(&mut house).await;
    let (_, list) = get(&house, LIST).await;
    let (_, first) = get(&house, &format!("{LIST}?limit=2")).await;
    let next = first["next"].as_str().expect("there are more");
    let (_, second) = get(&house, &format!("{LIST}?limit=2&after={next}")).await;
    assert_eq!((ids(&first).len(), second["next"].clone()), (2, Value::Null));
    assert_eq!([ids(&first), ids(&second)].concat(), ids(&list));

    let mut client = house.say("go", Some(&all[0]), &json!({ "stream": true })).await;
    let turn = house.gateway.turn().await;
    turn.say([start("a", "text", json!({}))]);
    client.until("document_start").await;
    let (_, list) = get(&house, LIST).await;
    let running = |it: &&Value| it["id"] == json!(all[0]);
    let entries = list["conversations"].as_array().expect("a list");
    let entry = entries.iter().find(running).expect("it is there");
    assert_eq!(entry["status"], "streaming");
    assert!(entry["responseId"].as_str().is_some_and(|it| it.starts_with("chat_")));
    turn.say(question());
    client.until("metadata_delta").await;
    let (_, one) = get(&house, &format!("{LIST}/{}", all[0])).await;
    assert_eq!(one["status"], "awaiting_input", "{one}");
    check(&list, "ConversationPage");
    check(&one, "Conversation");

    for query in ["limit=0", "limit=201", "limit=x", "after=x", "after=1"] {
        let (status, refused) = get(&house, &format!("{LIST}?{query}")).await;
        assert_eq!(status, 400, "{query}: {refused}");
    }
    let stateless = Gateway::new();
    let said = stateless.get(LIST, "").await.end().await;
    assert!(
        said.starts_with("HTTP/1.1 404") && said.contains("--stateful"),
        "{said}"
    );
}

fn edit(applied: &str) -> Vec<Event> {
    let metadata = json!({ "filePath": "a.rs", "operation": "edit", "applied": applied,
        "diff": { "oldString": "x\n", "newString": "y\n", "startLine": 1, "endLine": 1 } });
    vec![
        start("e", "file_edit", metadata.clone()),
        end("e", None, metadata),
        Event::Done(Done::default()),
    ]
}

#[tokio::test]
async fn documents_and_the_diff_are_read_in_memory_and_from_the_disk() {
    let mut house = House::new();
    let (id, mut turn) = begun(&mut house, "one").await;
    let mut client = house.say("two", Some(&id), &json!({})).await;
    turn.message().await;
    turn.say(edit("applied"));
    object(&mut client).await;
    let mut client = house.say("three", Some(&id), &json!({})).await;
    turn.message().await;
    turn.say(edit("rejected"));
    object(&mut client).await;
    let mut seen = Vec::new();
    for is_restarted in [false, true] {
        if is_restarted {
            restarted(&mut house).await;
        }
        let (status, one) = get(&house, &format!("{LIST}/{id}")).await;
        assert_eq!(status, 200, "{one}");
        let turns = one["turns"].as_array().expect("turns");
        let messages: Vec<_> = turns.iter().map(|it| it["message"]["content"].clone()).collect();
        assert_eq!(messages, ["one", "two", "three"]);
        assert_eq!(turns[0]["response"]["documents"][0]["content"], "yes");
        assert!(one["created"].as_u64().is_some_and(|it| it > 0), "{one}");
        let (_, page) = get(&house, &format!("{LIST}/{id}?limit=1&after=1")).await;
        assert_eq!((&page["turns"][0]["turn"], &page["next"]), (&json!(2), &json!(2)));
        let (_, diff) = get(&house, &format!("{LIST}/{id}/diff")).await;
        check(&one, "Conversation");
        check(&page, "Conversation");
        check(&diff, "ConversationDiff");
        let edits = diff["edits"].as_array().expect("edits");
        assert_eq!(edits.len(), 1, "what was rejected changed nothing: {diff}");
        assert_eq!(
            (&edits[0]["address"], &edits[0]["filePath"], &edits[0]["undone"]),
            (&json!("2.1"), &json!("a.rs"), &json!(false))
        );
        let patch = edits[0]["patch"].as_str().expect("a patch");
        assert!(patch.contains("-x\n+y\n"), "{patch}");
        seen.push(turns.clone());
    }
    assert_eq!(seen[0], seen[1]);
    for path in ["", "/diff", "/stream"] {
        let (status, refused) = get(&house, &format!("{LIST}/conv_none{path}")).await;
        assert_eq!(status, 404, "{refused}");
    }
}

#[tokio::test]
async fn undo_is_previewed_done_and_refused_while_something_runs() {
    let mut house = House::new();
    let (id, mut turn) = begun(&mut house, "one").await;
    let path = format!("{LIST}/{id}/undo");
    let mut client = house.gateway.post(&path, &json!({ "dryRun": true, "turn": 1 })).await;
    let (status, would) = object(&mut client).await;
    assert_eq!((status, &would["done"]), (200, &json!(false)), "{would}");
    assert_eq!(
        would["files"][0],
        json!({ "path": "a.rs", "operation": "edit", "added": 1, "removed": 2, "patch": "-x", "lost": false })
    );
    assert!(turn.told.try_recv().is_err(), "nothing was changed");
    check(&would, "UndoOutcome");
    let body = json!({ "turn": 1, "documentId": "e", "except": ["b.rs"], "overwrite": true });
    check(&body, "UndoRequest");
    let (status, done) = object(&mut house.gateway.post(&path, &body).await).await;
    check(&done, "UndoOutcome");
    assert_eq!(
        (status, &done["done"], &done["message"]),
        (200, &json!(true), &json!("undone: a.rs and 1 more"))
    );
    let Command::Restore(restore) = turn.told().await else {
        panic!("an undo")
    };
    assert_eq!((restore.except, restore.overwrite), (vec!["b.rs".to_owned()], true));
    for (body, member) in [
        (json!({ "turn": 0 }), "turn"),
        (json!({ "turn": "1" }), "turn"),
        (json!({ "documentId": "e" }), "turn"),
        (json!({ "turn": 1, "redo": true }), "redo"),
        (json!({ "redo": 1 }), "redo"),
        (json!({ "except": "b.rs" }), "except"),
        (json!([]), "object"),
    ] {
        let (status, refused) = object(&mut house.gateway.post(&path, &body).await).await;
        assert_eq!(status, 400, "{body}");
        assert!(refused.to_string().contains(member), "{body}: {refused}");
    }
    let mut client = house.say("go", Some(&id), &json!({ "stream": true })).await;
    // Who can be asked at once gets another link.
    let live = house.gateway.turn().await;
    live.say([start("a", "text", json!({}))]);
    client.until("document_start").await;
    let (status, _) = object(&mut house.gateway.post(&path, &json!({})).await).await;
    assert_eq!(status, 409);
    let none = format!("{LIST}/conv_none/undo");
    let (status, _) = object(&mut house.gateway.post(&none, &json!({})).await).await;
    assert_eq!(status, 404);
}

/// Reads a stream to the end of the first record that contains `text`.
async fn record(stream: &mut Client, text: &str) -> String {
    stream.until(text).await + &stream.until("\n\n").await
}

/// The records of a stream so far: position and name.
fn records(said: &str) -> Vec<(u64, String)> {
    let data = said.lines().filter_map(|it| it.strip_prefix("data: "));
    let records = data.filter_map(|it| serde_json::from_str::<Value>(it).ok());
    let records = records.inspect(|it| check(it, "ConversationRecord"));
    let records = records.filter_map(|it| Some((it["n"].as_u64()?, it["event"].as_str()?.to_owned())));
    records.collect()
}

#[tokio::test]
async fn a_conversation_is_followed_from_its_beginning_through_restarts_of_it() {
    let mut house = House::new();
    let (id, turn) = begun(&mut house, "one").await;
    turn.log.append(3, Event::Told(serde_json::Map::new()));
    restarted(&mut house).await;
    let path = format!("{LIST}/{id}/stream");
    let mut stream = house.gateway.get(&path, "").await;
    let backfill = record(&mut stream, "\"event\":\"done\"").await;
    assert!(
        backfill.contains("\"content\":\"one\"") && backfill.contains("\"finalContent\":\"yes\""),
        "{backfill}"
    );
    let last = records(&backfill).last().expect("records").0;
    // It was read from the disk. A message opens the conversation, and the stream goes on in memory.
    let mut client = house.say("two", Some(&id), &json!({ "stream": true })).await;
    let mut turn = house.gateway.turn().await;
    turn.say([start("a", "text", json!({})), delta("a", "so")]);
    client.until("content_delta").await;
    let live = record(&mut stream, "\"event\":\"content_delta\"").await;
    assert!(
        records(&live)[0].0 > last && records(&live)[0].1 == "user_message",
        "{live}"
    );
    assert!(!live.contains("told") && !backfill.contains("\"told\""));
    // Whoever asked has left: the one who follows is a reader, too.
    drop(client);
    for _ in 0..6 {
        // Each comes after a third of the time that a turn has without readers.
        stream.until(": ping").await;
    }
    assert!(turn.told.try_recv().is_err(), "the answer was not stopped");
    let mut second = house.gateway.get(&path, &format!("Last-Event-ID: {last}\r\n")).await;
    let again = record(&mut second, "\"event\":\"content_delta\"").await;
    assert_eq!(
        records(&again).iter().map(|it| &it.1).collect::<Vec<_>>(),
        ["user_message", "document_start", "content_delta"]
    );
    turn.say([
        end("a", Some("so"), json!({ "format": "markdown" })),
        Event::Done(Done::default()),
    ]);
    record(&mut stream, "\"event\":\"done\"").await;
    // A request with other tools opens it anew.
    let mut client = house.say("three", Some(&id), &json!({ "tools": ["grep"] })).await;
    let other = house.gateway.turn().await;
    other.say(answer("five"));
    object(&mut client).await;
    let rest = stream.until("\"finalContent\":\"five\"").await;
    assert!(rest.contains("\"content\":\"three\""), "{rest}");
    // A number that the server has not stored, as of one that was killed.
    restarted(&mut house).await;
    let mut lost = house.gateway.get(&path, "Last-Event-ID: 9999\r\n").await;
    let reset = lost.until("event: reset\ndata: {}\n\n").await;
    let last: u64 = reset
        .rsplit_once("id: ")
        .and_then(|it| it.1.lines().next()?.parse().ok())
        .expect("an id");
    assert!(last > 10, "{last}");
}

#[tokio::test]
async fn one_stream_has_the_events_of_all_conversations_and_resumes() {
    let mut house = House::new();
    let (first, mut turn) = begun(&mut house, "one").await;
    let mut stream = house.gateway.get("/api/v1/events", "").await;
    let ready = stream.until("event: ready\ndata: {}\n\n").await;
    let id = |said: &str| -> u64 {
        let mut ids = said.lines().filter_map(|it| it.strip_prefix("id: "));
        ids.next_back().and_then(|it| it.parse().ok()).expect("an id")
    };
    let start = id(&ready);
    let mut client = house.say("two", Some(&first), &json!({})).await;
    turn.message().await;
    turn.say(answer("yes"));
    object(&mut client).await;
    let (second, _) = begun(&mut house, "three").await;
    let said = stream.until(&format!("\"conversationId\":\"{second}\"")).await + &record(&mut stream, "\"done\"").await;
    assert!(said.contains(&format!("\"conversationId\":\"{first}\"")) && !said.contains("\"content\":\"one\""));
    let last = id(&said);
    for (since, wanted) in [(start, last - start), (start + 5, last - start - 5), (last, 0)] {
        let headers = format!("Last-Event-ID: {since}\r\n");
        let mut again = house.gateway.get("/api/v1/events", &headers).await;
        let rest = again.until(": ping").await;
        assert_eq!(rest.matches("event: record").count() as u64, wanted, "{since}: {rest}");
    }
    let mut late = house.gateway.get("/api/v1/events", "Last-Event-ID: 1\r\n").await;
    late.until("event: reset").await;
    let (status, _) = object(&mut house.gateway.get("/api/v1/events", "Last-Event-ID: x\r\n").await).await;
    assert_eq!(status, 400);
}

#[tokio::test]
async fn a_question_is_answered_and_a_turn_is_stopped_by_the_conversation() {
    let mut house = House::new();
    let (id, _) = begun(&mut house, "one").await;
    let mut client = house.say("go", Some(&id), &json!({ "stream": true })).await;
    let mut turn = house.gateway.turn().await;
    turn.say(question());
    client.until("metadata_delta").await;
    let path = |what: &str| format!("{LIST}/{id}/{what}");
    let answer = json!({ "documentId": "q", "outcome": "answered", "answers": [] });
    let (status, _) = object(&mut house.gateway.post(&path("input"), &answer).await).await;
    assert_eq!(status, 202);
    assert!(matches!(turn.told().await, Command::Answer { response, .. } if response.document_id.as_str() == "q"));
    let (status, said) = object(&mut house.gateway.post(&path("cancel"), &json!({})).await).await;
    assert_eq!(status, 202);
    assert!(said["id"].as_str().is_some_and(|it| it.starts_with("chat_")));
    assert_eq!(turn.told().await, Command::Cancel);
    turn.say([Event::Done(Done::default())]);
    client.until("event: done").await;
    let (status, said) = object(&mut house.gateway.post(&path("cancel"), &json!({})).await).await;
    assert_eq!((status, said), (202, json!({ "id": null })));
    let (status, _) = object(&mut house.gateway.post(&path("input"), &answer).await).await;
    assert_eq!(status, 409);
}
