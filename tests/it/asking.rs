//! `sheaf -p` against a gateway that asks: the question ends the run, and nobody's message is made up.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Command, Output, Stdio},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    print::{home, sheaf},
    protocol::assert_valid,
};

/// How the gateway asks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    /// Each answer is a question, which ends it.
    AtTheEnd,
    /// The stream waits for the answer, and then asks again.
    Live,
    /// The same so many times, and then the answer ends.
    LiveTimes(u32),
    /// The stream waits for the answer to an approval, and then asks again.
    LiveApproval,
    /// Each answer is an approval, which ends it.
    ApprovalAtTheEnd,
    /// It takes no answers while it answers, and waits for one all the same.
    Waits,
    /// The same, with a question that has words only.
    WaitsInWords,
    /// Each answer is a question, which ends it, and no word says so.
    AtTheEndUnsaid,
    /// It refuses every request.
    Never,
    /// The same, and it may be asked again at once.
    NeverYet,
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
        self.command(home.path(), arguments)
            .arg("go on")
            .output()
            .expect("it starts")
    }

    fn command(&self, home: &Path, arguments: &[&str]) -> Command {
        let mut command = sheaf(home);
        let url = format!("http://{}", self.address);
        command.args(["-p", "--gateway", &url]).args(arguments);
        command
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
    if matches!(asks, Asks::Never | Asks::NeverYet) {
        let body = r#"{"error":{"code":"LLM_OVERLOADED","message":"not now","source":"gateway","details":""}}"#;
        let pause = if asks == Asks::NeverYet {
            "\r\nRetry-After-Ms: 1"
        } else {
            ""
        };
        let head = head("503 Unavailable", &format!("application/json{pause}"));
        return socket.write_all(format!("{head}{body}").as_bytes()).ok();
    }
    let (sender, answers) = channel();
    *inputs.lock().expect("sound") = Some(sender);
    socket.write_all(head("200 OK", "text/event-stream").as_bytes()).ok()?;
    write_stream(&mut socket, asks, &answers)
}

fn write_stream(socket: &mut TcpStream, asks: Asks, answers: &Receiver<()>) -> Option<()> {
    let mut pings = socket.try_clone().ok()?;
    let mut send = |name: &str, data: &Value| {
        let text = format!("event: {name}\ndata: {data}\n\n");
        socket.write_all(text.as_bytes()).ok()
    };
    let is_live = matches!(asks, Asks::Live | Asks::LiveTimes(_) | Asks::LiveApproval);
    let capabilities = if is_live { json!(["live_input"]) } else { json!([]) };
    let start = json!({ "id": "chat_1", "conversationId": "conv_1", "model": "m", "mode": "agent", "created": "2026-03-02T08:15:00Z",
        "status": "streaming", "capabilities": capabilities });
    send("response_start", &start)?;
    let questions = if matches!(asks, Asks::LiveApproval | Asks::ApprovalAtTheEnd) {
        let subject = json!({ "type": "terminal_command", "content": null, "metadata": { "command": "make" } });
        let options = json!([{ "id": "allow_once", "label": "Allow" }, { "id": "reject_once", "label": "Reject" }]);
        json!({ "kind": "approval", "subject": subject,
            "questions": [{ "id": "approval", "text": "Allow `make`?", "options": options }] })
    } else {
        json!({ "questions": [{ "id": "q", "text": "Which one?", "options": [] }] })
    };
    for number in 1.. {
        let id = format!("doc_{number:03}");
        send(
            "document_start",
            &json!({ "id": id, "type": "clarification", "sequence": number, "metadata": {} }),
        )?;
        let mut metadata = questions.clone();
        if asks == Asks::WaitsInWords {
            metadata = json!({});
            send("content_delta", &json!({ "documentId": id, "delta": "Which one?" }))?;
        } else {
            send("metadata_delta", &json!({ "documentId": id, "metadata": questions }))?;
        }
        if matches!(asks, Asks::Waits | Asks::WaitsInWords) {
            // Until the client has left; the connection is not idle.
            while answers.recv_timeout(Duration::from_millis(200)) == Err(RecvTimeoutError::Timeout) {
                pings.write_all(b": ping\n\n").ok()?;
            }
        }
        if is_live {
            answers.recv().ok()?;
            metadata["outcome"] = "skipped".into();
        }
        send("document_end", &json!({ "documentId": id, "metadata": metadata }))?;
        if !is_live || asks == Asks::LiveTimes(number) {
            break;
        }
    }
    let usage = json!({ "promptTokens": 0, "completionTokens": 0, "totalTokens": 0 });
    let is_said = !is_live && asks != Asks::AtTheEndUnsaid;
    let reason = if is_said { "awaiting_input" } else { "stop" };
    let metadata = json!({ "duration_ms": 1, "toolCallCount": 0, "turnCount": 1, "finishReason": reason });
    send(
        "done",
        &json!({ "usage": usage, "status": "completed", "metadata": metadata }),
    )
}

#[test]
fn what_the_client_sends_fits_the_schema() {
    let gateway = AskingGateway::start(Asks::LiveApproval);
    gateway.run(&["--tools", "edit_file,grep", "--model", "m"]);
    let plain = AskingGateway::start(Asks::AtTheEnd);
    plain.run(&[]);
    for gateway in [gateway, plain] {
        for (path, body) in gateway.requests.lock().expect("sound").iter() {
            let body: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"));
            if path.ends_with("/completions") {
                assert_valid("Request", &body);
            } else if path.ends_with("/input") {
                assert_valid("ClarificationResponse", &body);
            }
        }
    }
}

#[test]
fn a_gateway_is_told_the_name_of_a_custom_mode_beside_the_nearest_that_it_knows() {
    let gateway = AskingGateway::start(Asks::AtTheEnd);
    let home = home();
    let folder = home.path().join(".config/sheaf/modes");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("calm.md"), "---\ntools: reads\n---\nBe calm.").expect("written");
    let run = |name: &str| {
        let command = &mut gateway.command(home.path(), &["--no-session", "--agent", name]);
        command.arg("go on").output().expect("it starts")
    };
    run("calm");
    let output = run("clam");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        told.contains("no mode `clam`") && told.contains("there are calm"),
        "{told}"
    );
    let requests = gateway.requests.lock().expect("sound");
    let [(_, body)] = requests.as_slice() else {
        panic!("one is sent: {requests:?}");
    };
    let body: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(
        (&body["mode"], &body["metadata"]),
        (&json!("ask"), &json!({ "customMode": "calm" }))
    );
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
    // An answer that has to have a form is not asked for again where a question waits.
    for asks in [Asks::AtTheEnd, Asks::AtTheEndUnsaid] {
        let gateway = AskingGateway::start(asks);
        let home = home();
        let form = home.path().join("form.json");
        std::fs::write(&form, r#"{ "type": "object" }"#).expect("written");
        let output = gateway.run(&["--output-schema", form.to_str().expect("text")]);
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{err}");
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

#[test]
fn a_run_makes_at_most_20_requests_without_a_persons_message_and_says_so() {
    // A program decides nothing about a question, and everything about an approval; without one an approval is refused.
    let program = ["--permission-prompt-tool", "echo '{\"behavior\":\"allow\"}'"];
    for (asks, arguments) in [
        (Asks::Live, &program[..]),
        (Asks::LiveApproval, &program[..]),
        (Asks::LiveApproval, &[][..]),
    ] {
        for format in ["text", "json"] {
            let gateway = AskingGateway::start(asks);
            let output = gateway.run(&[arguments, &["--output-format", format]].concat());
            let err = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{err}");
            assert!(
                err.contains("reached the limit of 20 requests to the gateway for one message"),
                "{err}"
            );
            let (messages, answers) = (gateway.count("/completions"), gateway.count("/input"));
            assert_eq!((messages, answers), (1, 19), "{err}");
            if format == "json" {
                assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{err}");
            }
        }
    }
    // Tries count, too, whatever the settings allow.
    let gateway = AskingGateway::start(Asks::NeverYet);
    let output = gateway.run(&["--set", "net.retries=100", "--set", "net.retry_for=10m"]);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), gateway.count("/completions")),
        (Some(1), 20),
        "{err}"
    );
    assert!(
        err.contains("reached the limit of 20 requests to the gateway for one message"),
        "{err}"
    );
}

#[test]
fn each_answer_from_standard_input_allows_more_requests() {
    let gateway = AskingGateway::start(Asks::LiveTimes(25));
    let home = home();
    let format = ["--input-format", "stream-json", "--output-format", "stream-json"];
    let mut command = gateway.command(home.path(), &format);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
    let mut input = child.stdin.take().expect("it is piped");
    let mut say = |line: Value| writeln!(input, "{line}").expect("it reads");
    say(json!({ "type": "user", "message": { "role": "user", "content": "go on" } }));
    let mut result = Value::Null;
    for line in BufReader::new(child.stdout.take().expect("it is piped")).lines() {
        let line: Value = serde_json::from_str(&line.expect("text")).expect("JSON");
        if line["type"] == "clarification" {
            let answer = json!({ "questionId": "q", "selectedOptionIds": [], "freeText": "this one" });
            say(json!({ "type": "clarification_response", "documentId": line["document_id"], "answers": [answer] }));
        } else if line["type"] == "result" {
            result = line;
            break;
        }
    }
    drop(input);
    assert_eq!(result["subtype"], "success", "{result}");
    assert_eq!((gateway.count("/completions"), gateway.count("/input")), (1, 25));
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn a_program_gives_no_answer_that_would_be_a_message_of_its_own() {
    for _ in 0..4 {
        let gateway = AskingGateway::start(Asks::ApprovalAtTheEnd);
        let program = ["--permission-prompt-tool", "echo '{\"behavior\":\"allow\"}'"];
        let output = gateway.run(&[&program[..], &["--output-format", "json"]].concat());
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{err}");
        let result: Value = serde_json::from_slice(&output.stdout).expect("one object");
        assert_eq!(result["finishReason"], "awaiting_input", "{result}");
        assert_eq!(
            (gateway.count("/completions"), gateway.count("/input")),
            (1, 0),
            "{err}"
        );
    }
}

#[test]
fn a_gateway_that_waits_although_it_takes_no_answers_is_left_at_its_question() {
    for asks in [Asks::Waits, Asks::WaitsInWords] {
        let gateway = AskingGateway::start(asks);
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
        assert_eq!(
            (gateway.count("/completions"), gateway.count("/input")),
            (1, 0),
            "{err}"
        );
        let body = gateway.requests.lock().expect("sound")[0].1.clone();
        let body: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(body["streamOptions"]["liveInput"], false, "{body}");
    }
    // A driver that has no more to say cannot answer it either.
    let gateway = AskingGateway::start(Asks::Waits);
    let home = home();
    let format = ["--input-format", "stream-json", "--output-format", "stream-json"];
    let mut command = gateway.command(home.path(), &format);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
    let message = json!({ "type": "user", "message": { "role": "user", "content": "go on" } });
    writeln!(child.stdin.take().expect("it is piped"), "{message}").expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(4), "{out}");
    let last: Value = serde_json::from_str(out.lines().last().expect("a line")).expect("JSON");
    assert_eq!(
        (&last["type"], &last["finishReason"]),
        (&json!("result"), &json!("awaiting_input"))
    );
}

#[test]
fn a_question_that_ended_an_answer_is_announced_and_answered_over_standard_input() {
    for answer in [
        json!({ "type": "clarification_response", "documentId": "doc_001",
            "answers": [{ "questionId": "q", "selectedOptionIds": [], "freeText": "this one" }] }),
        json!({ "type": "user", "message": { "role": "user", "content": "this one" } }),
    ] {
        let gateway = AskingGateway::start(Asks::AtTheEnd);
        let home = home();
        let format = ["--input-format", "stream-json", "--output-format", "stream-json"];
        let mut command = gateway.command(home.path(), &format);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
        let mut input = child.stdin.take();
        let say = |line: &Value| writeln!(input.as_ref().expect("it is open"), "{line}").expect("it reads");
        say(&json!({ "type": "user", "message": { "role": "user", "content": "go on" } }));
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let mut next = || serde_json::from_str::<Value>(&lines.next()?.expect("text")).ok();
        let mut announced = Vec::new();
        while let Some(line) = next() {
            if line["type"] == "clarification" {
                announced.push(line["document_id"].clone());
            } else if line["type"] == "result" {
                assert_eq!(line["finishReason"], "awaiting_input", "{line}");
                break;
            }
        }
        assert_eq!(announced, [json!("doc_001")], "{answer}");
        say(&answer);
        // It is the last word, and is still heard.
        drop(input.take());
        while next().is_some() {}
        assert_eq!(child.wait().expect("it ends").code(), Some(4), "{answer}");
        let mut err = String::new();
        let mut errors = child.stderr.take().expect("it is piped");
        errors.read_to_string(&mut err).expect("text");
        // Said when nobody writes any more.
        assert_eq!(err.matches("sheaf cannot ask you here").count(), 1, "{err}");
        let requests = gateway.requests.lock().expect("sound");
        assert_eq!(requests.len(), 2, "{answer}");
        let body: Value = serde_json::from_str(&requests[1].1).expect("JSON");
        let last = body["messages"].as_array().and_then(|it| it.last()).expect("a message");
        assert_eq!(last["content"], "Which one? -> other: this one", "{answer}");
        assert_eq!(
            last["clarificationResponse"]["answers"][0]["freeText"], "this one",
            "{answer}: {last}"
        );
    }
}
