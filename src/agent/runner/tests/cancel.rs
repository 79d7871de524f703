//! Whatever goes on, it stops at once, and no flood keeps it from that.

use std::time::Instant;

use pretty_assertions::assert_eq;
use tokio::net::TcpSocket;

use super::*;
use crate::{
    models::{Failure, Model, ModelRequest, Piece, PieceStream, Promise},
    protocol::{FinishReason, Status},
};

/// Cancels once `ready`, and sees that the answer ends and `closed` comes within 100 ms, at best of three.
async fn cancel_is_quick(
    name: &str,
    url: &str,
    ready: fn(&Conversation) -> bool,
    mut closed: Option<test_server::Diary<()>>,
) {
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let mut conversation = Conversation::with(url);
        conversation.say("hi");
        conversation.until(name, ready).await;
        let start = Instant::now();
        conversation.link.send(Command::Cancel);
        conversation.until_done(1).await;
        if let Some(closed) = &mut closed {
            closed.next().await;
        }
        best = best.min(start.elapsed());
        let ending = conversation
            .transcript
            .exchanges
            .first()
            .and_then(|it| it.response.ending.clone());
        let ending = ending.expect("it ended");
        assert_eq!(
            (ending.status, ending.finish_reason),
            (Status::Completed, FinishReason::Cancelled),
            "{name}"
        );
    }
    assert!(best < Duration::from_millis(100), "{name}: {best:?}");
}

#[tokio::test]
async fn cancelling_takes_effect_at_once_while_connecting() {
    // A server whose queue of connections is full answers no more handshakes.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let listener = socket.listen(1).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let mut waiting = Vec::new();
    for _ in 0..8 {
        waiting.push(tokio::spawn(tokio::net::TcpStream::connect(address)));
    }
    let is_connecting = |it: &Conversation| it.has_progress(|it| matches!(it, Progress::Waiting { .. }));
    cancel_is_quick(
        "a connection that hangs",
        &format!("http://{address}"),
        is_connecting,
        None,
    )
    .await;
    drop(listener);
}

#[tokio::test]
async fn cancelling_takes_effect_at_once_while_waiting() {
    let (told, diary) = test_server::diary();
    let url = test_server::listen(move |mut socket: Socket| {
        let told = told.clone();
        async move {
            socket.request().await;
            socket.closed().await;
            told.send(()).ok();
        }
    })
    .await;
    let is_waiting = |it: &Conversation| it.has_progress(|it| matches!(it, Progress::Waiting { .. }));
    cancel_is_quick("the first byte", &url, is_waiting, Some(diary)).await;
}

#[tokio::test]
async fn cancelling_takes_effect_at_once_in_a_flood() {
    let (told, diary) = test_server::diary();
    let url = test_server::listen(move |mut socket: Socket| {
        let told = told.clone();
        async move {
            use tokio::io::AsyncWriteExt;
            socket.request().await;
            socket.send(STREAM).await;
            let flood = chunk("word ").repeat(100);
            while socket.stream.write_all(flood.as_bytes()).await.is_ok() {}
            told.send(()).ok();
        }
    })
    .await;
    let is_flooded = |it: &Conversation| {
        it.transcript
            .exchanges
            .iter()
            .any(|it| !it.response.documents.is_empty())
    };
    cancel_is_quick("the first word", &url, is_flooded, Some(diary)).await;
}

#[tokio::test]
async fn when_the_consumer_goes_the_answer_is_dropped_and_the_log_ends() {
    let (told, mut diary) = test_server::diary();
    let url = test_server::listen(move |mut socket: Socket| {
        let told = told.clone();
        async move {
            socket.request().await;
            socket.send(format!("{STREAM}{}", chunk("so far"))).await;
            socket.closed().await;
            told.send(()).ok();
        }
    })
    .await;
    let mut conversation = Conversation::with(&url);
    conversation.say("hi");
    let has_text = |it: &Conversation| {
        it.transcript
            .exchanges
            .iter()
            .any(|it| !it.response.documents.is_empty())
    };
    conversation.until("the first word", has_text).await;
    let Conversation {
        link,
        mut follower,
        mut transcript,
        agent,
        ..
    } = conversation;
    drop(link);
    diary.next().await;
    agent.await.expect("it ends by itself");
    let mut batch = Vec::new();
    while follower.next(&mut batch).await {}
    transcript.apply_all(&batch);
    let ending = transcript
        .exchanges
        .first()
        .and_then(|it| it.response.ending.clone())
        .expect("it ended");
    assert_eq!(ending.finish_reason, FinishReason::Cancelled);
}

/// A provider that always has another word.
struct Endless;

impl Provider for Endless {
    fn peer(&self) -> &'static str {
        "somebody"
    }

    fn stream(&self, _: ModelRequest) -> PieceStream {
        Box::pin(futures::stream::repeat_with(|| Piece::Text("word ".to_owned())))
    }

    fn warm(&self) -> Promise<()> {
        Box::pin(std::future::ready(()))
    }

    fn models(&self) -> Promise<Result<Vec<Model>, Failure>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

#[tokio::test]
async fn what_is_always_ready_leaves_others_their_turn_and_is_stopped_before_its_next_word() {
    for (name, so_far) in [("at its start", 1), ("when pieces are joined", 25_000)] {
        let mut conversation = Conversation::of(Arc::new(Endless));
        conversation.say("go");
        let is_word = |it: &Arc<Entry>| matches!(it.event, Event::ContentDelta { .. });
        conversation
            .until(name, |it| it.seen.len() >= so_far && it.seen.iter().any(is_word))
            .await;
        let sent = conversation.link.log().last();
        conversation.link.send(Command::Cancel);
        conversation.until_done(1).await;
        // Positions count what the log has dropped, too: what was held back of the text, and its and the answer's end.
        let late = conversation.link.log().last().0 - sent.0;
        assert!(late <= 6, "{late} events, {name}");
    }
}

#[tokio::test]
async fn a_flood_of_tiny_pieces_is_joined_and_whole() {
    let url = test_server::listen(|mut socket: Socket| async move {
        socket.request().await;
        socket.send(STREAM).await;
        for _ in 0..600 {
            socket.send(&chunk("xy").repeat(100)).await;
        }
        socket.send("data: [DONE]\n\n").await;
    })
    .await;
    let mut conversation = Conversation::with(&url);
    conversation.say("go");
    conversation.until_done(1).await;
    let response = &conversation.transcript.exchanges[0].response;
    assert_eq!(response.documents[0].text().len(), 120_000);
    let pieces = conversation.seen.len();
    assert!(pieces < 50_000, "{pieces} events for 60000 pieces");
}

#[tokio::test]
async fn an_answer_of_nothing_but_documents_ends() {
    let url = test_server::listen(|mut socket: Socket| async move {
        use tokio::io::AsyncWriteExt;
        socket.request().await;
        socket.send(STREAM).await;
        let flood = chunk(&"```\nx\n```\n".repeat(1000));
        while socket.stream.write_all(flood.as_bytes()).await.is_ok() {}
    })
    .await;
    let mut conversation = Conversation::with(&url);
    conversation.say("go");
    conversation.until_done(1).await;
    let response = &conversation.transcript.exchanges[0].response;
    assert!(response.documents.len() < 70_000, "{}", response.documents.len());
    let ending = response.ending.as_ref().expect("it ended");
    assert_eq!(ending.status, Status::Error);
}
