//! `sheaf -p` against a gateway that asks: the question ends the run, and nobody's message is made up.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    process::Output,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
};

use serde_json::{Value, json};

use crate::print::{home, sheaf};

/// How the gateway asks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    /// Each answer is a question, which ends it.
    AtTheEnd,
    /// The stream waits for the answer, and then asks again.
    Live,
    /// It refuses every request.
    Never,
}

/// A gateway that asks in every answer. Its thread ends with the program of the test.
struct AskingGateway {
    address: SocketAddr,
    /// Each request: its path, and its body.
    requests: Arc<Mutex<Vec<(String, String)>>>,
}

impl AskingGateway {
    fn start(asks: Asks) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let requests: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
        let told = Arc::clone(&requests);
        let inputs: Arc<Mutex<Option<Sender<()>>>> = Arc::default();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let Ok(socket) = socket else { return };
                let (told, inputs) = (Arc::clone(&told), Arc::clone(&inputs));
                std::thread::spawn(move || answer(socket, asks, &told, &inputs));
            }
        });
        Self { address, requests }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let home = home();
        let mut command = sheaf(home.path());
        let url = format!("http://{}", self.address);
        command.args(["-p", "--gateway", &url]).args(arguments).arg("go on");
        command.output().expect("it starts")
    }

    fn count(&self, end: &str) -> usize {
        let requests = self.requests.lock().expect("sound");
        requests.iter().filter(|it| it.0.ends_with(end)).count()
    }
}

/// Answers one request; a failure to write means that the client has left.
fn answer(
    socket: TcpStream,
    asks: Asks,
    told: &Mutex<Vec<(String, String)>>,
    inputs: &Mutex<Option<Sender<()>>>,
) -> Option<()> {
    let mut reader = BufReader::new(socket.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    told.lock()
        .expect("sound")
        .push((path.clone(), String::from_utf8_lossy(&body).into_owned()));
    let mut socket = socket;
    let head =
        |status: &str, media: &str| format!("HTTP/1.1 {status}\r\nContent-Type: {media}\r\nConnection: close\r\n\r\n");
    if !path.ends_with("/completions") {
        let sender = inputs.lock().expect("sound").clone();
        let _ = sender.map(|it| it.send(()));
        return socket
            .write_all(format!("{}{{}}", head("202 Accepted", "application/json")).as_bytes())
            .ok();
    }
    if asks == Asks::Never {
        let body = r#"{"error":{"code":"LLM_OVERLOADED","message":"not now","source":"gateway","details":""}}"#;
        return socket
            .write_all(format!("{}{body}", head("503 Unavailable", "application/json")).as_bytes())
            .ok();
    }
    let (sender, answers) = channel();
    *inputs.lock().expect("sound") = Some(sender);
    socket.write_all(head("200 OK", "text/event-stream").as_bytes()).ok()?;
    write_stream(&mut socket, asks, &answers)
}

fn write_stream(socket: &mut TcpStream, asks: Asks, answers: &Receiver<()>) -> Option<()> {
    let mut send = |name: &str, data: &Value| {
        let text = format!("event: {name}\ndata: {data}\n\n");
        socket.write_all(text.as_bytes()).ok()
    };
    let capabilities = if asks == Asks::Live {
        json!(["live_input"])
    } else {
        json!([])
    };
    let start = json!({ "id": "chat_1", "conversationId": "conv_1", "model": "m", "mode": "agent", "created": "2026-03-02T08:15:00Z",
        "status": "streaming", "capabilities": capabilities });
    send("response_start", &start)?;
    let questions = json!({ "questions": [{ "id": "q", "text": "Which one?", "options": [] }] });
    for number in 1.. {
        let id = format!("doc_{number:03}");
        send(
            "document_start",
            &json!({ "id": id, "type": "clarification", "sequence": number, "metadata": {} }),
        )?;
        send("metadata_delta", &json!({ "documentId": id, "metadata": questions }))?;
        let mut metadata = questions.clone();
        if asks == Asks::Live {
            answers.recv().ok()?;
            metadata["outcome"] = "skipped".into();
        }
        send("document_end", &json!({ "documentId": id, "metadata": metadata }))?;
        if asks == Asks::AtTheEnd {
            break;
        }
    }
    let usage = json!({ "promptTokens": 0, "completionTokens": 0, "totalTokens": 0 });
    let metadata = json!({ "duration_ms": 1, "toolCallCount": 0, "turnCount": 1, "finishReason": "awaiting_input" });
    send(
        "done",
        &json!({ "usage": usage, "status": "completed", "metadata": metadata }),
    )
}

#[test]
fn a_question_of_the_gateway_ends_the_run_and_no_message_is_made_up() {
    for _ in 0..8 {
        let gateway = AskingGateway::start(Asks::AtTheEnd);
        let output = gateway.run(&["--output-format", "documents"]);
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        let answer: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
        assert_eq!(answer["metadata"]["finishReason"], "awaiting_input");
        assert_eq!(output.status.code(), Some(4), "{err}");
        assert!(err.contains("Which one?"), "{err}");
        assert_eq!(gateway.requests.lock().expect("sound").len(), 1, "{err}");
    }
    // The text is there once, too.
    let gateway = AskingGateway::start(Asks::AtTheEnd);
    let output = gateway.run(&[]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Which one?\n");
    assert_eq!(output.status.code(), Some(4));
}

#[test]
fn a_gateway_that_asks_without_end_is_left_alone() {
    let gateway = AskingGateway::start(Asks::Live);
    let output = gateway.run(&["--output-format", "json"]);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{err}");
    assert!(err.contains("question: Which one?"), "{err}");
    let result: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(
        (&result["finishReason"], &result["questions"][0]["text"]),
        (&json!("awaiting_input"), &json!("Which one?")),
        "{result}"
    );
    // It asked although it was told that nobody can answer.
    assert_eq!(
        (gateway.count("/completions"), gateway.count("/input")),
        (1, 0),
        "{err}"
    );
    let body = gateway.requests.lock().expect("sound")[0].1.clone();
    let body: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(body["streamOptions"]["liveInput"], false, "{body}");
    // One that fails is given up before that; usually after three minutes.
    let gateway = AskingGateway::start(Asks::Never);
    let output = gateway.run(&["--set", "net.retry_for=4s"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(gateway.count("/completions") <= 20);
}
