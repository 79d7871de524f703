//! A scripted server at the other end of two pipes.

use std::future::Future;

use pretty_assertions::assert_eq;
use tokio::io::{DuplexStream, ReadHalf, WriteHalf, duplex, split};

use super::{super::diagnostic::MOST_ITEMS, *};

/// The server's side of the connection.
struct Fake {
    from: BufReader<ReadHalf<DuplexStream>>,
    to: WriteHalf<DuplexStream>,
}

impl Fake {
    async fn next(&mut self) -> Option<Value> {
        wire::read(&mut self.from).await.ok().flatten()
    }

    async fn say(&mut self, message: Value) {
        self.to.write_all(&wire::write(&message)).await.expect("it is read");
    }

    async fn answer(&mut self, request: &Value, result: Value) {
        self.say(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }))
            .await;
    }

    /// Reads until it is told a text; returns the version.
    async fn told(&mut self, method: &str) -> Value {
        let mut message = self.until(method).await;
        message["params"]["textDocument"]["version"].take()
    }

    /// Reads until a message of this method comes.
    async fn until(&mut self, method: &str) -> Value {
        loop {
            let message = self.next().await.expect("it goes on");
            if message["method"] == method {
                return message;
            }
        }
    }

    /// Reads what asks whether it has heard all before, and refuses it as every server does.
    async fn heard(&mut self) {
        let asked = self.until(HEARD).await;
        let error = json!({ "code": -32601, "message": "unknown" });
        self.say(json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }))
            .await;
    }

    /// Answers `initialize` with these capabilities.
    async fn begin(&mut self, capabilities: Value) {
        let asked = self.until("initialize").await;
        self.answer(&asked, json!({ "capabilities": capabilities })).await;
        self.until("initialized").await;
    }

    async fn publish(&mut self, file: &str, version: Value, messages: &[&str]) {
        let items: Vec<_> = messages.iter().map(|it| problem(it)).collect();
        let report = json!({ "uri": uri(Path::new(file)), "version": version, "diagnostics": items });
        self.say(json!({ "jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": report }))
            .await;
    }
}

fn problem(message: &str) -> Value {
    let at = json!({ "line": 0, "character": 0 });
    json!({ "range": { "start": at, "end": at }, "severity": 1, "message": message })
}

fn found() -> Found {
    Found {
        name: "fake".to_owned(),
        root: "/w".into(),
        program: "fake".into(),
        arguments: Vec::new(),
        variables: Vec::new(),
        initialization: json!({ "fake": { "level": 3 } }),
        tells_when_ready: false,
    }
}

/// Starts a server that does what `script` does.
async fn start<F: Future<Output = ()> + Send + 'static>(
    script: impl FnOnce(Fake) -> F + Send + 'static,
) -> Result<Server, String> {
    let (ours, theirs) = duplex(1 << 20);
    let (from, to) = split(theirs);
    let fake = Fake {
        from: BufReader::new(from),
        to,
    };
    tokio::spawn(script(fake));
    let (output, input) = split(ours);
    Server::start(&found(), input, output, tokio::io::empty()).await
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

/// The time of a look in which the server is waited for.
fn time() -> LookTime {
    LookTime {
        until: soon(),
        patience: None,
    }
}

async fn look(server: &Server, files: &[(&str, &str)]) -> Reports {
    let files: Vec<_> = files.iter().map(|it| (PathBuf::from(it.0), it.1.to_owned())).collect();
    server.look(&files, &[], &BTreeSet::new(), time()).await
}

/// Looks at the first of the files, which was changed, and at the others.
async fn look_after(server: &Server, files: &[(&str, &str)]) -> Reports {
    let texts: Vec<_> = files.iter().map(|it| (PathBuf::from(it.0), it.1.to_owned())).collect();
    let written = [(PathBuf::from(files[0].0), DiskChange::Changed)];
    server.look(&texts, &written, &BTreeSet::new(), time()).await
}

/// The messages of the problems of each file; `None`: they are not known.
fn told(found: &Reports) -> Vec<(String, Option<Vec<String>>)> {
    let messages = |it: &Vec<Diagnostic>| it.iter().map(|it| it.message.clone()).collect();
    let one = |(file, found): (&PathBuf, &Result<Vec<Diagnostic>, Missing>)| {
        (file.display().to_string(), found.as_ref().ok().map(messages))
    };
    found.iter().map(one).collect()
}

fn all(messages: &[&str]) -> Vec<String> {
    messages.iter().map(ToString::to_string).collect()
}

#[tokio::test(start_paused = true)]
async fn a_file_is_opened_as_it_was_and_then_changed_and_others_are_looked_at_too() {
    let (send, mut said) = mpsc::unbounded_channel();
    let server = start(async move |mut fake| {
        fake.begin(json!({ "diagnosticProvider": { "identifier": "x" }, "positionEncoding": "utf-8" }))
            .await;
        let mut text = String::new();
        while let Some(message) = fake.next().await {
            let method = message["method"].as_str().unwrap_or_default().to_owned();
            let document = &message["params"]["textDocument"];
            send.send(format!(
                "{method} {} {}",
                document["uri"].as_str().unwrap_or_default(),
                document["version"]
            ))
            .ok();
            if let Some(changed) = message["params"]["contentChanges"][0]["text"].as_str() {
                changed.clone_into(&mut text);
            }
            if method == "textDocument/diagnostic" {
                assert_eq!(message["params"]["identifier"], "x");
                let is_other = document["uri"] == "file:///w/b%20c.py";
                let items = match (is_other, text.as_str()) {
                    (true, "new") => json!([problem("caller is broken")]),
                    _ => json!([]),
                };
                fake.answer(&message, json!({ "kind": "full", "items": items })).await;
            }
        }
    });
    let server = server.await.expect("it starts");
    let before = look(&server, &[("/w/a.py", "old"), ("/w/b c.py", "b")]).await;
    assert_eq!(
        told(&before),
        [
            ("/w/a.py".to_owned(), Some(all(&[]))),
            ("/w/b c.py".to_owned(), Some(all(&[])))
        ]
    );
    let after = look_after(&server, &[("/w/a.py", "new"), ("/w/b c.py", "b")]).await;
    assert_eq!(
        told(&after),
        [
            ("/w/a.py".to_owned(), Some(all(&[]))),
            ("/w/b c.py".to_owned(), Some(all(&["caller is broken"])))
        ]
    );
    let mut lines = Vec::new();
    while let Ok(line) = said.try_recv() {
        lines.push(line);
    }
    assert_eq!(
        lines,
        [
            "textDocument/didOpen file:///w/a.py 2",
            "textDocument/didOpen file:///w/b%20c.py 3",
            "textDocument/diagnostic file:///w/a.py null",
            "textDocument/diagnostic file:///w/b%20c.py null",
            "textDocument/didChange file:///w/a.py 6",
            "textDocument/didSave file:///w/a.py null",
            "workspace/didChangeWatchedFiles  null",
            "textDocument/diagnostic file:///w/a.py null",
            "textDocument/diagnostic file:///w/b%20c.py null",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_older_than_the_change_is_not_taken_for_its_result() {
    let server = start(async move |mut fake| {
        fake.begin(json!({})).await;
        let first = fake.told("textDocument/didOpen").await;
        fake.publish("/w/a.py", first.clone(), &["old problem"]).await;
        let second = fake.told("textDocument/didChange").await;
        // It was at work on what it had.
        fake.publish("/w/a.py", first, &["old problem"]).await;
        fake.publish("/w/a.py", second, &["new problem"]).await;
        fake.next().await;
        std::future::pending::<()>().await;
    });
    let server = server.await.expect("it starts");
    let before = look(&server, &[("/w/a.py", "old")]).await;
    assert_eq!(told(&before), [("/w/a.py".to_owned(), Some(all(&["old problem"])))]);
    let after = look_after(&server, &[("/w/a.py", "new")]).await;
    assert_eq!(told(&after), [("/w/a.py".to_owned(), Some(all(&["new problem"])))]);
}

#[tokio::test(start_paused = true)]
async fn a_report_about_an_earlier_opening_is_not_taken_for_one_about_the_next() {
    let server = start(async move |mut fake| {
        fake.begin(json!({})).await;
        let first = fake.told("textDocument/didOpen").await;
        fake.publish("/w/a.py", first.clone(), &[]).await;
        let second = fake.told("textDocument/didOpen").await;
        // It was still on its way.
        fake.publish("/w/a.py", first, &["of the earlier file"]).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        fake.publish("/w/a.py", second, &["of the new file"]).await;
        std::future::pending::<()>().await;
    });
    let server = server.await.expect("it starts");
    look(&server, &[("/w/a.py", "old")]).await;
    server.close(Path::new("/w/a.py"));
    let found = look(&server, &[("/w/a.py", "new")]).await;
    assert_eq!(told(&found), [("/w/a.py".to_owned(), Some(all(&["of the new file"])))]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_nothing_for_long_is_given_up_and_one_that_speaks_is_not() {
    for (speaks, over) in [(false, Some("it answers nothing")), (true, None)] {
        let server = start(async move |mut fake| {
            fake.begin(json!({ "diagnosticProvider": {} })).await;
            while let Some(message) = fake.next().await {
                if speaks && message["method"] == "$/cancelRequest" {
                    let said = json!({ "jsonrpc": "2.0", "method": "window/logMessage", "params": {} });
                    fake.say(said).await;
                }
            }
        });
        let server = server.await.expect("it starts");
        // Long ago it has been asked nothing: that is no silence.
        tokio::time::sleep(SILENCE * 2).await;
        for (wait, over) in [(30, None), (60, None), (70, over)] {
            let found = look(&server, &[("/w/a.py", "x")]).await;
            assert_eq!(found[Path::new("/w/a.py")], Err(Missing::Late));
            assert_eq!(server.over().as_deref(), over, "speaks: {speaks}");
            tokio::time::sleep(Duration::from_secs(wait)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_waits_for_a_server_that_reads_nothing_than_may() {
    let server = start(async move |mut fake| {
        fake.begin(json!({ "diagnosticProvider": {} })).await;
        std::future::pending::<()>().await;
    });
    let server = server.await.expect("it starts");
    let text = "x".repeat(4 << 20);
    let most = MOST_WAITING_BYTES / text.len();
    for at in 0..most {
        assert_eq!(server.over(), None, "{at}");
        server.tell_texts(&[(Path::new(&format!("/w/{at}.py")), &text)]);
    }
    assert_eq!(server.over().as_deref(), Some("it reads nothing"));
    // What has been read is not counted.
    let server = start(async move |mut fake| {
        fake.begin(json!({ "diagnosticProvider": {} })).await;
        while fake.next().await.is_some() {}
    });
    let server = server.await.expect("it starts");
    for at in 0..=most {
        server.tell_texts(&[(Path::new(&format!("/w/{at}.py")), &text)]);
        while server.shared.waiting_bytes.load(Ordering::Relaxed) > 0 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(server.over(), None);
}

#[tokio::test(start_paused = true)]
async fn the_last_words_of_a_server_are_one_short_line() {
    let (ours, theirs) = duplex(1 << 10);
    let (output, input) = split(ours);
    let long = "x".repeat(1000);
    let errors = format!("first\n\u{1b}[31mlast\rNew lint errors {long}");
    let (mut to, from) = duplex(1 << 12);
    to.write_all(errors.as_bytes()).await.expect("it is read");
    let starting = tokio::spawn(async move { Server::start(&found(), input, output, from).await.err() });
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(theirs);
    let why = starting.await.expect("it ends").expect("it does not start");
    assert!(why.starts_with("it has ended: last"), "{why:?}");
    assert!(!why.contains(char::is_control), "{why:?}");
    assert!(why.chars().count() <= REFUSAL_CHARS, "{why:?}");
}

#[tokio::test(start_paused = true)]
async fn one_file_that_is_refused_or_never_answered_holds_up_no_other() {
    let server = start(async move |mut fake| {
        fake.begin(json!({ "diagnosticProvider": {} })).await;
        while let Some(message) = fake.next().await {
            if message["method"] != "textDocument/diagnostic" {
                continue;
            }
            match message["params"]["textDocument"]["uri"].as_str().unwrap_or_default() {
                "file:///w/late.py" => {}
                "file:///w/odd.py" => {
                    let error = json!({ "code": -32603, "message": "no idea" });
                    fake.say(json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }))
                        .await;
                }
                _ => {
                    let items = json!([problem("one")]);
                    fake.answer(&message, json!({ "kind": "full", "items": items })).await;
                }
            }
        }
    });
    let server = server.await.expect("it starts");
    let found = look(&server, &[("/w/late.py", ""), ("/w/odd.py", ""), ("/w/z.py", "")]).await;
    let why = |name: &str| found[Path::new(name)].as_ref().err().map(|it| it.told("fake"));
    assert_eq!(why("/w/late.py").as_deref(), Some("fake has not answered in time"));
    assert_eq!(why("/w/odd.py").as_deref(), Some("fake refused: no idea"));
    assert_eq!(why("/w/z.py"), None);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_many_files_is_looked_at_as_a_whole() {
    let server = start(async move |mut fake| {
        fake.begin(json!({ "diagnosticProvider": {} })).await;
        while let Some(message) = fake.next().await {
            if message["method"] == "textDocument/diagnostic" {
                fake.answer(&message, json!({ "kind": "full", "items": [] })).await;
            }
        }
    });
    let server = server.await.expect("it starts");
    let texts: Vec<_> = (0..200)
        .map(|it| (PathBuf::from(format!("/w/{it}.py")), String::new()))
        .collect();
    let written: Vec<_> = texts.iter().map(|it| (it.0.clone(), DiskChange::Created)).collect();
    let found = server.look(&texts, &written, &BTreeSet::new(), time()).await;
    assert_eq!(
        found.values().filter(|it| it.is_ok()).count(),
        200,
        "{:?}",
        server.over()
    );
}

#[tokio::test(start_paused = true)]
async fn no_more_is_open_than_may_be_and_what_is_held_keeps_its_text() {
    let (send, mut said) = mpsc::unbounded_channel();
    let server = start(async move |mut fake| {
        fake.begin(json!({ "diagnosticProvider": {} })).await;
        while let Some(message) = fake.next().await {
            match message["method"].as_str().unwrap_or_default() {
                "textDocument/diagnostic" => fake.answer(&message, json!({ "kind": "full", "items": [] })).await,
                method => drop(send.send(format!("{method} {}", message["params"]["textDocument"]["uri"]))),
            }
        }
    });
    let server = server.await.expect("it starts");
    for at in 0..=MOST_OPEN {
        server.open(Path::new(&format!("/w/{at}.py")), "");
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    assert_eq!(server.shared.state().open.len(), MOST_OPEN);
    assert!(!server.shared.state().open.contains_key(Path::new("/w/0.py")));
    // The files are not there: what is not held is closed.
    let held = BTreeSet::from([PathBuf::from("/w/7.py")]);
    let files = [(PathBuf::from("/w/a.py"), String::new())];
    server.look(&files, &[], &held, time()).await;
    let open: BTreeSet<_> = server.shared.state().open.keys().cloned().collect();
    assert_eq!(open, BTreeSet::from(["/w/7.py".into(), "/w/a.py".into()]));
    tokio::task::yield_now().await;
    said.close();
}

#[tokio::test(start_paused = true)]
async fn where_several_files_were_changed_together_the_last_report_counts() {
    let server = start(async move |mut fake| {
        fake.begin(json!({})).await;
        let version = fake.told("textDocument/didOpen").await;
        fake.until("workspace/didChangeWatchedFiles").await;
        fake.publish("/w/app.c", version.clone(), &["the header is not known yet"])
            .await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        fake.publish("/w/app.c", version, &[]).await;
        std::future::pending::<()>().await;
    });
    let server = server.await.expect("it starts");
    let texts = [(PathBuf::from("/w/app.c"), "new".to_owned())];
    let written = [
        (PathBuf::from("/w/app.c"), DiskChange::Changed),
        (PathBuf::from("/w/cart.h"), DiskChange::Changed),
    ];
    let found = server.look(&texts, &written, &BTreeSet::new(), time()).await;
    assert_eq!(told(&found), [("/w/app.c".to_owned(), Some(all(&[])))]);
}

#[tokio::test(start_paused = true)]
async fn reports_without_a_version_count_once_it_is_quiet() {
    let server = start(async move |mut fake| {
        fake.begin(json!({})).await;
        fake.until("textDocument/didOpen").await;
        fake.heard().await;
        fake.publish("/w/a.py", Value::Null, &[]).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        fake.publish("/w/a.py", Value::Null, &["first", "second"]).await;
        std::future::pending::<()>().await;
    });
    let server = server.await.expect("it starts");
    let found = look(&server, &[("/w/a.py", "x")]).await;
    assert_eq!(told(&found), [("/w/a.py".to_owned(), Some(all(&["first", "second"])))]);
}

#[tokio::test(start_paused = true)]
async fn a_report_without_a_version_may_be_of_an_earlier_text() {
    let server = start(async move |mut fake| {
        fake.begin(json!({})).await;
        fake.until("textDocument/didOpen").await;
        fake.until("textDocument/didChange").await;
        // It comes to the first text after it was sent the second, and takes long for each.
        tokio::time::sleep(Duration::from_secs(3)).await;
        fake.publish("/w/a.py", Value::Null, &[]).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        fake.publish("/w/a.py", Value::Null, &["of the second text"]).await;
        loop {
            fake.heard().await;
        }
    });
    let server = server.await.expect("it starts");
    let brief = LookTime {
        until: Instant::now() + Duration::from_millis(100),
        patience: None,
    };
    let text = |it: &str| [(PathBuf::from("/w/a.py"), it.to_owned())];
    let first = server.look(&text("one"), &[], &BTreeSet::new(), brief).await;
    assert_eq!(first[Path::new("/w/a.py")], Err(Missing::Late));
    let second = look_after(&server, &[("/w/a.py", "two")]).await;
    assert_eq!(
        told(&second),
        [("/w/a.py".to_owned(), Some(all(&["of the second text"])))]
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_known_before_the_project_was_read_or_where_nothing_comes() {
    let server = start(async move |mut fake| {
        fake.begin(json!({ "diagnosticProvider": {} })).await;
        let work = |kind: &str| json!({ "jsonrpc": "2.0", "method": "$/progress", "params": { "token": 7, "value": { "kind": kind } } });
        fake.say(work("begin")).await;
        fake.until("textDocument/didOpen").await;
        tokio::time::sleep(Duration::from_secs(40)).await;
        fake.say(work("end")).await;
        let mut is_busy = true;
        while let Some(message) = fake.next().await {
            if message["method"] == "textDocument/diagnostic" {
                if std::mem::replace(&mut is_busy, false) {
                    let error = json!({ "code": -32802, "message": "busy", "data": { "retriggerRequest": true } });
                    fake.say(json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }))
                        .await;
                } else {
                    fake.answer(&message, json!({ "kind": "full", "items": [problem("one")] }))
                        .await;
                }
            }
        }
    });
    let server = server.await.expect("it starts");
    let files = [("/w/a.py", "x")];
    tokio::task::yield_now().await;
    // A change does not wait for what takes long.
    let texts = [(PathBuf::from("/w/a.py"), "x".to_owned())];
    let brief = LookTime {
        until: soon(),
        patience: Some(Duration::from_secs(1)),
    };
    let began = Instant::now();
    let found = server.look(&texts, &[], &BTreeSet::new(), brief).await;
    assert_eq!(found[Path::new("/w/a.py")], Err(Missing::Reading));
    assert!(began.elapsed() <= Duration::from_secs(2));
    let found = look(&server, &files).await;
    assert_eq!(found[Path::new("/w/a.py")], Err(Missing::Reading));
    assert_eq!(
        told(&look(&server, &files).await),
        [("/w/a.py".to_owned(), Some(all(&["one"])))]
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_server_asks_is_answered_and_what_it_offers_late_is_used() {
    let (send, mut said) = mpsc::unbounded_channel();
    let server = start(async move |mut fake| {
        fake.begin(json!({})).await;
        let items = json!([{ "section": "fake.level" }, { "section": "other" }, {}]);
        for (id, method, parameters) in [
            (json!("a"), "workspace/configuration", json!({ "items": items })),
            (
                json!(2),
                "client/registerCapability",
                json!({ "registrations": [{ "id": "1", "method": "textDocument/diagnostic", "registerOptions": {} }] }),
            ),
            (json!(3), "workspace/applyEdit", json!({})),
            (json!(4), "workspace/diagnostic/refresh", Value::Null),
            (json!(5), "made/up", json!([1])),
        ] {
            fake.say(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }))
                .await;
        }
        while let Some(message) = fake.next().await {
            if message["method"] == "textDocument/diagnostic" {
                fake.answer(&message, json!({ "kind": "full", "items": [] })).await;
            } else if message.get("method").is_none() {
                send.send(message).ok();
            }
        }
    });
    let server = server.await.expect("it starts");
    let files = [("/w/a.py", "x")];
    assert_eq!(
        told(&look(&server, &files).await),
        [("/w/a.py".to_owned(), Some(all(&[])))]
    );
    let mut answers = Vec::new();
    while answers.len() < 5 {
        let mut answer = said.recv().await.expect("an answer");
        answers.push((
            answer["id"].take(),
            answer["result"].take(),
            answer["error"]["code"].take(),
        ));
    }
    assert_eq!(
        answers,
        [
            (json!("a"), json!([3, null, null]), Value::Null),
            (json!(2), Value::Null, Value::Null),
            (json!(3), json!({ "applied": false }), Value::Null),
            (json!(4), Value::Null, Value::Null),
            (json!(5), Value::Null, json!(-32601)),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_dies_or_talks_nonsense_is_said_to() {
    let silent = start(async |mut fake| while fake.next().await.is_some() {}).await;
    assert_eq!(silent.err().as_deref(), Some("it did not answer within 45 s"));
    let dead = start(async |mut fake| drop(fake.next().await)).await;
    assert_eq!(dead.err().as_deref(), Some("it has ended"));
    let refused = start(async |mut fake| {
        let asked = fake.next().await.expect("a request");
        let error = json!({ "code": 1, "message": "no project" });
        fake.say(json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }))
            .await;
        fake.next().await;
    });
    assert_eq!(refused.await.err().as_deref(), Some("it refused to start: no project"));
    let huge = start(async |mut fake| {
        fake.next().await;
        fake.to.write_all(b"Content-Length: 52428800\r\n\r\n").await.ok();
        fake.next().await;
    });
    assert_eq!(huge.await.err().as_deref(), Some("its message is longer than 16 MiB"));
    // One that ends while it is asked, or answers what is no message.
    let server = start(async |mut fake| {
        fake.begin(json!({ "diagnosticProvider": {} })).await;
        for odd in [
            json!([]),
            json!("x"),
            json!({ "id": 99, "result": 1 }),
            json!({ "method": 3 }),
        ] {
            fake.say(odd).await;
        }
        let asked = fake.until("textDocument/diagnostic").await;
        fake.answer(&asked, json!("nonsense")).await;
        fake.until("textDocument/diagnostic").await;
    });
    let server = server.await.expect("it starts");
    let files = [("/w/a.py", "x")];
    for _ in 0..2 {
        assert_eq!(told(&look(&server, &files).await), [("/w/a.py".to_owned(), None)]);
    }
    assert_eq!(server.over().as_deref(), Some("it has ended"));
}

#[tokio::test(start_paused = true)]
async fn a_flood_is_bounded() {
    let server = start(async |mut fake| {
        fake.begin(json!({})).await;
        let version = fake.told("textDocument/didOpen").await;
        for nth in 0..2000 {
            fake.publish(&format!("/w/other-{nth}.py"), Value::Null, &["x"]).await;
        }
        let messages = vec!["y"; MOST_ITEMS + 10];
        fake.publish("/w/0.py", version, &messages).await;
        std::future::pending::<()>().await;
    });
    let server = server.await.expect("it starts");
    let found = look(&server, &[("/w/0.py", "x")]).await;
    assert_eq!(found.values().flatten().map(Vec::len).sum::<usize>(), MOST_ITEMS);
    assert_eq!(server.shared.state().published.len(), 1, "nobody asks about the others");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_could_not_read_the_project_knows_nothing_and_one_that_misses_something_says_so() {
    for (health, is_known, warning) in [
        ("ok", true, None),
        ("warning", true, Some("fake warns: no std")),
        ("error", false, None),
    ] {
        let server = start(async move |mut fake| {
            fake.begin(json!({ "diagnosticProvider": {} })).await;
            let status = json!({ "health": health, "quiescent": true, "message": "no\nstd" });
            fake.say(json!({ "jsonrpc": "2.0", "method": "experimental/serverStatus", "params": status }))
                .await;
            while let Some(asked) = fake.next().await {
                if asked["method"] == "textDocument/diagnostic" {
                    fake.answer(&asked, json!({ "kind": "full", "items": [] })).await;
                }
            }
        });
        let server = server.await.expect("it starts");
        // It has said so by then.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let report = look(&server, &[("/w/a.rs", "a")])
            .await
            .remove(Path::new("/w/a.rs"))
            .expect("a report");
        match report {
            Ok(found) => assert!(is_known && found.is_empty(), "{health}"),
            Err(missing) => {
                assert!(!is_known, "{health}");
                assert_eq!(missing.told("fake"), "fake could not read the project: no std");
            }
        }
        assert_eq!(server.warning().as_deref(), warning, "{health}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_server_of_typescript_is_asked_for_a_file_that_stays_clean() {
    let server = start(async |mut fake| {
        let commands = json!({ "commands": ["typescript.tsserverRequest"] });
        fake.begin(json!({ "executeCommandProvider": commands })).await;
        for (command, body) in [
            ("syntacticDiagnosticsSync", json!([])),
            (
                "semanticDiagnosticsSync",
                json!([{ "start": { "line": 1, "offset": 2 }, "category": "error", "code": 2305, "text": "no total" },
                    { "start": { "line": 1, "offset": 1 }, "category": "suggestion", "text": "unused" }]),
            ),
        ] {
            let asked = fake.until("workspace/executeCommand").await;
            let arguments = &asked["params"]["arguments"];
            assert_eq!(*arguments, json!([command, { "file": "/w/a.ts" }]));
            fake.answer(&asked, json!({ "success": true, "body": body })).await;
        }
        // It publishes nothing.
        std::future::pending::<()>().await;
    });
    let server = server.await.expect("it starts");
    let found = look(&server, &[("/w/a.ts", "ab")]).await.remove(Path::new("/w/a.ts"));
    let found = found.expect("a report").expect("it is known");
    let shown: Vec<_> = found.iter().map(Diagnostic::told).collect();
    assert_eq!(
        shown,
        [
            "1:2 error[2305]: no total (typescript)",
            "1:1 info: unused (typescript)"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_silent_for_long_is_not_waited_for_as_long_again() {
    let server = start(async |mut fake| {
        fake.begin(json!({ "diagnosticProvider": {} })).await;
        while fake.next().await.is_some() {}
    });
    let server = server.await.expect("it starts");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let wait = async || {
        let began = Instant::now();
        let found = look(&server, &[("/w/a.rs", "a")]).await;
        assert_eq!(told(&found), [("/w/a.rs".to_owned(), None)]);
        began.elapsed().as_secs()
    };
    assert_eq!(wait().await, 30);
    assert_eq!(wait().await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_proposal_is_laid_over_and_taken_back_and_no_other_look_sees_it() {
    let server = start(|mut fake| async move {
        fake.begin(json!({ "diagnosticProvider": {} })).await;
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        let short = |it: &Value| {
            it.as_str()
                .and_then(|it| it.rsplit('/').next())
                .unwrap_or_default()
                .to_owned()
        };
        while let Some(message) = fake.next().await {
            let about = &message["params"]["textDocument"];
            let file = short(&about["uri"]);
            match message["method"].as_str() {
                Some("textDocument/didOpen") => {
                    texts.insert(file, about["text"].as_str().expect("a text").to_owned());
                }
                Some("textDocument/didChange") => {
                    let text = &message["params"]["contentChanges"][0]["text"];
                    texts.insert(file, text.as_str().expect("a text").to_owned());
                }
                Some("textDocument/didClose") => drop(texts.remove(&file)),
                // What it says of a file is all that it knows.
                Some("textDocument/diagnostic") => {
                    let all: Vec<String> = texts.iter().map(|it| format!("{}={}", it.0, it.1)).collect();
                    let report = json!({ "kind": "full", "items": [problem(&all.join(" "))] });
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    fake.answer(&message, report).await;
                }
                _ => {}
            }
        }
    });
    let server = server.await.expect("it starts");
    let top = tempfile::tempdir().expect("a folder");
    let file = |name: &str| top.path().join(name);
    for (name, text) in [("a", "old"), ("b", "uses a"), ("c", "held")] {
        std::fs::write(file(name), text).expect("written");
    }
    // `c` was changed by an earlier call of the step, of which the server was not told.
    let texts = [(file("c"), "held".to_owned())];
    server.look(&texts, &[], &BTreeSet::new(), time()).await;
    std::fs::write(file("c"), "made").expect("written");
    let overlay = Overlay {
        proposed: [("a", "new"), ("n", "created"), ("c", "made")]
            .map(|(name, text)| (file(name), text.to_owned()))
            .into(),
        others: BTreeSet::from([file("b")]),
        held: BTreeSet::from([file("c")]),
    };
    let texts = [(file("b"), "uses a".to_owned())];
    let held = BTreeSet::from([file("c")]);
    let ((before, after), beside) = tokio::join!(
        server.preview(&overlay, (time(), time())),
        server.look(&texts, &[], &held, time())
    );
    let said = |reports: &Reports, name: &str| {
        let report = reports.get(&file(name)).cloned();
        report.map(|it| it.expect("a report").remove(0).message)
    };
    let then = Some("a=new b=uses a c=made n=created".to_owned());
    let now = Some("a=old b=uses a c=held".to_owned());
    assert_eq!(said(&before, "b"), now);
    assert_eq!((said(&before, "c"), said(&before, "n")), (now.clone(), None));
    assert_eq!((said(&after, "a"), said(&after, "n")), (then.clone(), then.clone()));
    assert_eq!(said(&after, "b"), then);
    assert_eq!(
        said(&beside, "b"),
        now,
        "it is looked at before or after, not meanwhile"
    );
}
