//! Screens that are attached to a stored conversation.

use super::{
    kept::{House, answer, object},
    *,
};
use crate::{
    config::KeySource,
    link::http::{
        self,
        attach::{AttachServer, Attached, ServedConversation},
    },
    net::client::{Peer, Url},
    protocol::{ClarificationResponse, Document, Message, Outcome, Position, Submit},
    transcript::Transcript,
};

fn server(address: SocketAddr, token: &str) -> AttachServer {
    let url = Url::parse(&format!("http://{address}/api/v1")).expect("an address");
    AttachServer::new(http::Settings {
        token: KeySource::Given(Secret::new(token)),
        ..http::Settings::new(Peer::new(url))
    })
    .expect("a client")
}

/// What a screen shows: for each turn the message and the texts.
fn shown(link: &Attached) -> Vec<String> {
    let transcript = Transcript::from_entries(&link.log().after(Position(0)));
    let turns = transcript.exchanges.iter().filter(|it| !it.is_margin()).map(|it| {
        let texts: Vec<&str> = it.response.documents.iter().map(Document::text).collect();
        let end = if it.response.is_running() { "…" } else { "" };
        format!("{}: {}{end}", it.asked(), texts.join("|"))
    });
    turns.collect()
}

/// Waits until a screen shows this.
async fn shows(link: &Attached, wanted: &[&str]) {
    let mut follower = link.log().follow(Position(0));
    let waiting = async {
        let mut batch = Vec::new();
        while shown(link) != wanted && follower.next(&mut batch).await {}
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    assert_eq!(shown(link), wanted, "in time: {}", waited.is_ok());
}

/// Waits until a conversation is listed: its file is written behind its answer.
async fn listed(server: &AttachServer) -> Vec<ServedConversation> {
    let listing = async {
        loop {
            let listed = server.list().await.expect("a list");
            if !listed.is_empty() {
                return listed;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, listing).await.expect("it is listed")
}

/// Waits until a screen shows an open question.
async fn asks(link: &Attached) {
    let mut follower = link.log().follow(Position(0));
    let is_asked = || {
        let transcript = Transcript::from_entries(&link.log().after(Position(0)));
        transcript.open_question().is_some()
    };
    let waiting = async {
        let mut batch = Vec::new();
        while !is_asked() && follower.next(&mut batch).await {}
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it is asked");
}

/// Waits for a notice of this code, and returns its text.
async fn told(link: &Attached, code: &str) -> String {
    let mut follower = link.log().follow(Position(0));
    let waiting = async {
        let mut batch = Vec::new();
        while follower.next(&mut batch).await {
            for entry in batch.drain(..) {
                if let Event::Notice(notice) = &entry.event
                    && notice.code == code
                {
                    return notice.message.clone();
                }
            }
        }
        panic!("the log ended")
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it is said")
}

fn says(text: &str) -> Command {
    Command::Submit(Submit {
        message: Message::user(text),
        mode: Mode::Agent,
        model: None,
    })
}

#[tokio::test]
async fn what_is_wrong_is_said_with_the_next_step() {
    let mut house = House::new();
    let address = house.gateway.address;
    let error = server(address, "wrong")
        .list()
        .await
        .expect_err("a wrong token")
        .to_string();
    assert!(
        error.contains("refuses the token") && error.contains("SHEAF_TOKEN"),
        "{error}"
    );
    let error = server(address, "secret")
        .check("conv_none")
        .await
        .expect_err("no such conversation")
        .to_string();
    assert!(
        error.contains("has no conversation `conv_none`") && error.contains("list"),
        "{error}"
    );
    let error = server(address, "secret")
        .check("../../healthz")
        .await
        .expect_err("no name")
        .to_string();
    assert!(error.contains("has no conversation"), "{error}");
    assert_eq!(server(address, "secret").list().await.expect("a list"), []);
    let stateless = Gateway::new();
    let error = server(stateless.address, "secret")
        .list()
        .await
        .expect_err("nothing is stored")
        .to_string();
    assert!(error.contains("--stateful"), "{error}");
    house.gateway.stop.send(()).expect("it runs");
    house.gateway.served.await.expect("it ends");
    let error = server(address, "secret")
        .list()
        .await
        .expect_err("nobody is there")
        .to_string();
    assert!(
        error.contains("cannot be reached") && error.contains("sheaf serve"),
        "{error}"
    );
    house.gateway = stateless;
}

#[tokio::test]
async fn two_screens_show_one_conversation_and_either_may_speak() {
    let mut house = House::new();
    let mut client = house.say("one", None, &json!({})).await;
    let turn = house.gateway.turn().await;
    turn.say(answer("two"));
    let (_, said) = object(&mut client).await;
    let id = said["conversationId"].as_str().expect("a name").to_owned();
    let server = server(house.gateway.address, "secret");
    let listed = listed(&server).await;
    assert_eq!((listed[0].id.as_str(), listed[0].title.as_str()), (id.as_str(), "one"));

    let first = server.attach(Some(&id));
    shows(&first, &["one: two"]).await;
    // A client that streams is followed while it does.
    let mut client = house.say("three", Some(&id), &json!({ "stream": true })).await;
    let mut live = house.gateway.turn().await;
    live.say([start("a", "text", json!({})), delta("a", "fo")]);
    client.until("content_delta").await;
    shows(&first, &["one: two", "three: fo…"]).await;
    let second = server.attach(Some(&id));
    shows(&second, &["one: two", "three: fo…"]).await;
    // A message waits for the end of the answer, whoever asked for it.
    first.send(says("five"));
    live.say([
        delta("a", "ur"),
        end("a", Some("four"), json!({ "format": "markdown" })),
        Event::Done(Done::default()),
    ]);
    shows(&second, &["one: two", "three: four", "five: …"]).await;
    assert_eq!(live.message().await.message.content, "five");
    live.say(question());
    asks(&first).await;
    asks(&second).await;
    // The other one answers, then stops.
    let response = ClarificationResponse::new("q".into(), Outcome::Answered, Vec::new());
    second.send(Command::Answer {
        turn: Turn(3),
        response,
    });
    assert!(matches!(live.told().await, Command::Answer { .. }));
    second.send(Command::Cancel);
    assert_eq!(live.told().await, Command::Cancel);
    live.say([Event::Done(Done::default())]);
    let over = ["one: two", "three: four", "five: "];
    shows(&first, &over).await;
    shows(&second, &over).await;
    first.send(Command::SwitchBranch(crate::protocol::Branch::default()));
    assert!(told(&first, "not-here").await.contains("belongs to the server"));
}

#[tokio::test]
async fn a_first_message_begins_a_conversation_of_the_server() {
    let mut house = House::new();
    let server = server(house.gateway.address, "secret");
    let link = server.attach(None);
    link.send(says("one"));
    let turn = house.gateway.turn().await;
    turn.say(answer("two"));
    shows(&link, &["one: two"]).await;
    let again = server.attach(Some(&listed(&server).await[0].id));
    shows(&again, &["one: two"]).await;
}

#[tokio::test]
async fn a_screen_attaches_again_after_a_restart_and_gives_up_with_a_reason() {
    let mut house = House::new();
    let mut client = house.say("one", None, &json!({})).await;
    house.gateway.turn().await.say(answer("two"));
    let (_, said) = object(&mut client).await;
    let id = said["conversationId"].as_str().expect("a name").to_owned();
    let address = house.gateway.address;
    let url = Url::parse(&format!("http://{address}")).expect("an address");
    let mut settings = http::Settings {
        token: KeySource::Given(Secret::new("secret")),
        ..http::Settings::new(Peer::new(url))
    };
    settings.retries.retries = 2;
    settings.retries.floor = Duration::from_millis(1);
    settings.retries.highest_floor = Duration::from_millis(2);
    let link = AttachServer::new(settings).expect("a client").attach(Some(&id));
    shows(&link, &["one: two"]).await;
    house.gateway.stop.send(()).expect("it runs");
    house.gateway.served.await.expect("it ends");
    let gone = told(&link, "not-attached").await;
    assert!(
        gone.contains("the server is gone") && gone.contains("start it again"),
        "{gone}"
    );
    // The same address, as after a restart.
    house.gateway = Gateway::at(address, quick(), house.store.clone());
    link.send(says("three"));
    let turn = house.gateway.turn().await;
    turn.say(answer("four"));
    shows(&link, &["one: two", "three: four"]).await;
}
