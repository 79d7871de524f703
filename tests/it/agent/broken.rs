//! Tools that break down, hang or crowd, and answers that are stopped: every call has one result, every document an end.

use super::*;

#[expect(clippy::unnecessary_wraps, reason = "what the table of a tool wants")]
fn nothing(
    _: &sheaf::tools::Input,
    _: &sheaf::tools::Context,
) -> Result<Vec<sheaf::tools::Access>, sheaf::tools::Fault> {
    Ok(Vec::new())
}

#[expect(clippy::unnecessary_wraps, reason = "what the promise of a tool gives")]
fn fine() -> Result<Outcome, sheaf::tools::Fault> {
    Ok(Outcome {
        text: "fine".to_owned(),
        ..Outcome::default()
    })
}

/// How many run beside each other, and the most that did.
static HERE: AtomicUsize = AtomicUsize::new(0);

static MOST: AtomicUsize = AtomicUsize::new(0);

async fn crowd() -> Result<Outcome, sheaf::tools::Fault> {
    let here = HERE.fetch_add(1, Ordering::SeqCst) + 1;
    MOST.fetch_max(here, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(5)).await;
    HERE.fetch_sub(1, Ordering::SeqCst);
    fine()
}

/// All that may go wrong beside all that is real.
fn tools() -> ToolSet {
    let at_once = Work::Call {
        touches: Arc::new(nothing),
        run: Arc::new(|_, _| -> sheaf::tools::Promise<_> { panic!("planted") }),
    };
    let changing = Work::Change(Arc::new(|_, _| -> sheaf::tools::Promise<_> { panic!("planted") }));
    let busy = |_, context: sheaf::tools::Context| async move {
        while !context.stop.is_set() {
            std::thread::sleep(Duration::from_millis(1));
        }
        fine()
    };
    let fakes = [
        Tool::new(
            "panics",
            Class::Reads,
            Work::call(nothing, |_, _| async { panic!("planted") }),
        ),
        Tool::new(
            "panics_early",
            Class::Reads,
            Work::call(|_, _| panic!("planted"), |_, _| async { fine() }),
        ),
        Tool::new("panics_at_once", Class::Reads, at_once),
        Tool::new("panics_changing", Class::Writes, changing),
        Tool::new(
            "panics_commanding",
            Class::Reads,
            Work::command(nothing, |_, _| async { panic!("planted") }),
        ),
        // Never comes to an end and waits decently.
        Tool::new(
            "hangs",
            Class::Reads,
            Work::call(nothing, |_, _| std::future::pending()),
        ),
        // Never comes to an end, keeps its thread busy, and looks at the sign that nobody waits.
        Tool::new("busy", Class::Reads, Work::call(nothing, busy)),
        // Works out a change for ever.
        Tool::new("ponders", Class::Writes, Work::change(|_, _| std::future::pending())),
        Tool::new("crowd", Class::Reads, Work::call(nothing, |_, _| crowd())),
    ];
    let fakes = fakes.into_iter().map(Arc::new);
    fakes.chain(built_in().iter().cloned()).collect()
}

pub(super) fn stage(script: &Arc<Script>) -> (tempfile::TempDir, tempfile::TempDir, Stage) {
    let outside = tempfile::tempdir().expect("a folder");
    let root = workspace(outside.path());
    let stage = Stage::new(root.path(), script, Settings::default(), tools());
    (outside, root, stage)
}

#[tokio::test]
async fn a_tool_that_breaks_down_fails_its_call_and_nothing_else() {
    let names = [
        "panics",
        "panics_early",
        "panics_at_once",
        "panics_changing",
        "panics_commanding",
    ];
    let mut pieces: Vec<Piece> = names.iter().map(|it| call(it, it, &json!({}))).collect();
    pieces.push(call("after", "read_file", &json!({ "target_file": "a.txt" })));
    let script = once(pieces);
    let (_outside, _root, mut stage) = stage(&script);
    stage.say("go", Mode::Agent);
    stage.done(1).await;
    assert_eq!(stage.finish(), FinishReason::Stop);
    let results = results(&script);
    let (last, broken) = results.split_last().expect("results");
    for (name, result) in names.iter().zip(broken) {
        let want = "Error [INTERNAL]: the tool broke down: planted";
        assert!(result.starts_with(want), "{name}: {result}");
    }
    assert!(last.contains("two"), "{last}");
    stage.check("panics").await;
}

#[tokio::test]
async fn fifty_calls_of_one_name_and_one_id_have_fifty_results_and_run_eight_at_a_time() {
    for id in ["same", ""] {
        MOST.store(0, Ordering::SeqCst);
        let script = once((0..50).map(|it| call(id, "crowd", &json!({ "nth": it }))).collect());
        let (_outside, _root, mut stage) = stage(&script);
        stage.say("go", Mode::Agent);
        stage.done(1).await;
        assert_eq!(results(&script), vec!["fine"; 50]);
        assert_eq!(MOST.load(Ordering::SeqCst), 8);
        let calls = stage.documents().iter().filter(|it| it.kind == Kind::ToolCall).count();
        assert_eq!(calls, 50);
        stage.check("fifty").await;
    }
}

/// What was called in a message that never came to its end is not carried out.
#[tokio::test]
async fn a_call_of_a_message_that_broke_off_never_runs() {
    let write = || call("1", "write", &json!({ "file_path": "new.txt", "contents": "x" }));
    let start = || Piece::CallStart {
        slot: 0,
        id: "1".to_owned(),
        name: "write".to_owned(),
    };
    let half = || Piece::CallArguments {
        slot: 0,
        fragment: "{\"file_path\": \"new.txt\", \"con".to_owned(),
    };
    let broke = |kind| Piece::Error(Failure::new(kind, "it broke"));
    let text = || Piece::Text("I write".to_owned());
    let cases = [
        (
            "cut in the arguments",
            vec![text(), start(), half(), broke(FailureKind::Interrupted)],
        ),
        (
            "cut behind a whole call",
            vec![text(), start(), write(), broke(FailureKind::Interrupted)],
        ),
        (
            "an error behind a whole call",
            vec![write(), broke(FailureKind::Garbled)],
        ),
        (
            "overloaded behind a whole call",
            vec![write(), broke(FailureKind::Overloaded)],
        ),
        ("no end at all behind a whole call", vec![write()]),
    ];
    for (name, pieces) in cases {
        let mut pieces = Some(pieces);
        let script = Script::new(move |_, _| pieces.take().map_or_else(ok, said));
        let (_outside, root, mut stage) = stage(&script);
        stage.say("go", Mode::Agent);
        stage.done(1).await;
        assert_ne!(stage.finish(), FinishReason::Stop, "{name}");
        assert!(stage.documents().iter().any(|it| it.kind == Kind::Error), "{name}");
        assert!(!root.path().join("new.txt").exists(), "{name}");
        stage.check(name).await;
        assert!(!root.path().join("new.txt").exists(), "{name}, later");
        let asked = script.asked();
        let told = &asked.last().expect("it was asked").messages;
        let is_call = |it: &ModelMessage| matches!(it, ModelMessage::Assistant(said) if said.iter().any(|it| matches!(it, Said::Call(_))));
        assert!(!told.iter().any(is_call), "{name}: the call is remembered");
    }
}

/// Whether a process is there that is no zombie.
fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

async fn until_dead(pid: &str, name: &str) {
    for _ in 0..2000 {
        if !is_alive(pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{name}: the command is still there");
}

/// A command that says who it is and then sleeps; its number stands in a file.
fn sleeper(folder: &Path) -> Piece {
    let file = folder.join("pid").display().to_string();
    let line = format!("echo $$ > '{file}'; echo begun; exec sleep 600");
    call(
        "1",
        "run_terminal_cmd",
        &json!({ "command": line, "is_background": false }),
    )
}

#[tokio::test]
async fn cancelling_in_any_phase_closes_everything_and_answers_every_call() {
    type Holds = fn(&Stage) -> bool;
    let is_asked: Holds = |it| !it.script.asked().is_empty();
    let has_text: Holds = |it| it.has_open(&Kind::Text);
    let is_waiting: Holds = |it| it.transcript.open_question().is_some();
    let has_call: Holds = |it| it.has_open(&Kind::ToolCall);
    let has_output: Holds = |it| {
        it.documents().iter().any(|it| {
            it.kind == Kind::TerminalCommand
                && it.is_open()
                && it.metadata.get("output").is_some_and(|it| it == "begun\n")
        })
    };
    let read = || call("0", "read_file", &json!({ "target_file": "a.txt" }));
    let form = json!({ "title": "t", "questions": [{ "id": "q", "prompt": "p", "options": [{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }] }] });
    let cases: Vec<(&str, Vec<Piece>, bool, Holds)> = vec![
        ("before it is asked", vec![], false, |_| true),
        ("while it connects", vec![], false, is_asked),
        (
            "while it writes",
            vec![Piece::Text("so far".to_owned())],
            false,
            has_text,
        ),
        (
            "behind a whole call",
            vec![Piece::Text("so far".to_owned()), read()],
            false,
            has_text,
        ),
        (
            "while a change is worked out",
            vec![call("1", "ponders", &json!({})), read()],
            true,
            |it| it.script.asked().len() == 1 && it.script.polls.load(Ordering::Relaxed) >= 3,
        ),
        (
            "while an approval is open",
            vec![
                call(
                    "1",
                    "run_terminal_cmd",
                    &json!({ "command": "ls", "is_background": false }),
                ),
                read(),
            ],
            true,
            is_waiting,
        ),
        (
            "while a form is open",
            vec![read(), call("1", "ask", &form)],
            true,
            is_waiting,
        ),
        (
            "while a mode is asked for",
            vec![read(), call("1", "switch_mode", &json!({ "target_mode_id": "ask" }))],
            true,
            is_waiting,
        ),
        (
            "while a tool runs",
            vec![read(), call("1", "hangs", &json!({})), read()],
            true,
            has_call,
        ),
        (
            "while a tool keeps its thread",
            vec![call("1", "busy", &json!({})), read()],
            true,
            has_call,
        ),
        ("while a command runs", vec![], true, has_output),
    ];
    for (name, mut pieces, ends, holds) in cases {
        let trace = tempfile::tempdir().expect("a folder");
        let is_command = name == "while a command runs";
        if is_command {
            pieces = vec![sleeper(trace.path()), read()];
        }
        let mut first = Some(pieces);
        let script = Script::new(move |_, _| match first.take() {
            Some(pieces) if ends => ending(pieces, EndReason::ToolUse),
            Some(pieces) => said_and_silent(pieces),
            None => ok(),
        });
        let (_outside, _root, mut stage) = stage(&script);
        if is_command {
            stage.answer = Some("allow_once");
        }
        stage.say("go", Mode::Agent);
        stage.until(name, |it| it.ended() == 0 && holds(it)).await;
        stage.send(Command::Cancel);
        stage.done(1).await;
        assert_eq!(stage.finish(), FinishReason::Cancelled, "{name}");
        if is_command {
            let pid = fs::read_to_string(trace.path().join("pid")).unwrap();
            until_dead(&pid, name).await;
        }
        stage.check(name).await;
        assert_eq!(stage.finish(), FinishReason::Stop, "{name}: the next answer");
    }
}

#[tokio::test]
async fn when_the_consumer_goes_its_commands_end() {
    let trace = tempfile::tempdir().expect("a folder");
    let script = once(vec![sleeper(trace.path())]);
    let (_outside, _root, mut stage) = stage(&script);
    stage.answer = Some("allow_once");
    stage.say("go", Mode::Agent);
    let file = trace.path().join("pid");
    let has_begun = |it: &Stage| {
        it.has_open(&Kind::TerminalCommand) && fs::read_to_string(&file).is_ok_and(|it| it.ends_with('\n'))
    };
    stage.until("the command", has_begun).await;
    let pid = fs::read_to_string(&file).unwrap();
    assert!(is_alive(&pid));
    drop(stage.link.take());
    (&mut stage.agent).await.expect("it ends by itself");
    until_dead(&pid, "gone").await;
    let mut batch = Vec::new();
    while stage.follower.next(&mut batch).await {}
    stage.transcript.apply_all(&batch);
    assert!(stage.documents().iter().all(|it| !it.is_open()));
    assert_eq!(stage.finish(), FinishReason::Cancelled);
}

/// While tools run or the user thinks there is nothing to do: not for the runner and not for the stream that has ended.
#[tokio::test]
async fn whoever_waits_does_not_spin() {
    let form = json!({ "title": "t", "questions": [{ "id": "q", "prompt": "p", "options": [{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }] }] });
    type Holds = fn(&Stage) -> bool;
    let has_call: Holds = |it| it.has_open(&Kind::ToolCall);
    let is_waiting: Holds = |it| it.transcript.open_question().is_some();
    for (name, piece, holds) in [
        ("a tool", call("1", "hangs", &json!({})), has_call),
        ("a question", call("1", "ask", &form), is_waiting),
    ] {
        let script = once(vec![piece]);
        let (_outside, _root, mut stage) = stage(&script);
        stage.say("go", Mode::Agent);
        stage.until(name, holds).await;
        // What is still on its way comes first.
        let mut quiet = 0;
        let mut last = stage.rounds.load(Ordering::Relaxed);
        while quiet < 100 {
            tokio::task::yield_now().await;
            std::thread::yield_now();
            let now = stage.rounds.load(Ordering::Relaxed);
            quiet = if now == last { quiet + 1 } else { 0 };
            last = now;
            assert!(now < 10_000, "{name}: it never comes to rest");
        }
        // Warming up and the like may wake it now and then.
        let polls = script.polls.load(Ordering::Relaxed);
        for _ in 0..20_000 {
            tokio::task::yield_now().await;
        }
        let more = stage.rounds.load(Ordering::Relaxed) - last;
        assert!(more < 20, "{name}: {more} rounds while there is nothing to do");
        assert_eq!(
            script.polls.load(Ordering::Relaxed),
            polls,
            "{name}: the stream that has ended was polled"
        );
        stage.send(Command::Cancel);
        stage.done(1).await;
        stage.check(name).await;
    }
}
