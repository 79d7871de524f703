use std::sync::Mutex;

use super::*;
use crate::{
    journal::Log,
    link::{
        About,
        local::{Local, Request},
        replay::{Audience, Recording, Replay, Speed},
    },
    protocol::Message,
};

fn submit() -> Submit {
    Submit {
        message: Message::user("x"),
        mode: Mode::Agent,
        model: None,
    }
}

struct Printed {
    ending: RunOutcome,
    out: String,
    err: String,
}

async fn print(link: &dyn Link, submit: Option<Submit>, format: Format, stop: Option<StopSignal>) -> Printed {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let (sender, mut stops) = mpsc::channel(2);
    if let Some(stop) = stop {
        sender.send(stop).await.expect("there is room");
    }
    let outputs = Outputs {
        out: &mut out,
        err: &mut err,
    };
    let run = run(link, submit, format.into(), outputs, &mut stops, || 1_000_000);
    let ending = tokio::time::timeout(Duration::from_secs(20), run)
        .await
        .expect("it ends");
    Printed {
        ending,
        out: String::from_utf8(out).expect("it is text"),
        err: String::from_utf8(err).expect("it is text"),
    }
}

fn played(stream: &str, audience: Audience) -> Replay {
    let recording = Recording::read("test", stream.as_bytes()).expect("it can be played");
    Replay::start(&recording, Speed::AtOnce, audience)
}

const APPROVAL: &str = "event: document_start\ndata: {\"id\":\"q\",\"type\":\"clarification\",\"metadata\":{\"kind\":\"approval\",\
    \"questions\":[{\"id\":\"approval\",\"text\":\"Allow `git push`?\",\"options\":[\"yes\",\"no\"]}]}}\n\n\
    event: document_end\ndata: {\"documentId\":\"q\",\"metadata\":{\"kind\":\"approval\",\"outcome\":\"answered\",\"answers\":[],\
    \"questions\":[{\"id\":\"approval\",\"text\":\"Allow `git push`?\",\"options\":[\"yes\",\"no\"]}]}}\n\n\
    event: document_start\ndata: {\"id\":\"t\",\"type\":\"text\",\"content\":\"then\"}\n\n\
    event: document_end\ndata: {\"documentId\":\"t\"}\n\nevent: done\ndata: {}\n\n";

/// Standard output and standard error at one terminal.
#[derive(Clone, Default)]
struct Terminal(Arc<Mutex<Vec<u8>>>);

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn what_is_done_is_told_between_what_is_said_before_and_after() {
    let stream = "event: document_start\ndata: {\"id\":\"a\",\"type\":\"text\",\"content\":\"I look.\"}\n\n\
        event: document_end\ndata: {\"documentId\":\"a\"}\n\n\
        event: document_start\ndata: {\"id\":\"b\",\"type\":\"tool_call\",\"metadata\":{\"toolName\":\"read_file\",\
        \"arguments\":{\"target_file\":\"a.rs\"},\"result\":{\"status\":\"success\",\"data\":\"x\"}}}\n\n\
        event: document_end\ndata: {\"documentId\":\"b\"}\n\n\
        event: document_start\ndata: {\"id\":\"c\",\"type\":\"text\",\"content\":\"Done.\"}\n\n\
        event: document_end\ndata: {\"documentId\":\"c\"}\n\nevent: done\ndata: {}\n\n";
    let terminal = Terminal::default();
    let (mut out, mut err) = (terminal.clone(), terminal.clone());
    let outputs = Outputs {
        out: &mut out,
        err: &mut err,
    };
    let options = PrintOptions {
        has_progress: true,
        ..PrintOptions::default()
    };
    let (_stop, mut stops) = mpsc::channel(1);
    let link = played(stream, Audience::Absent);
    assert_eq!(
        run(&link, None, options, outputs, &mut stops, || 0).await,
        RunOutcome::Answered
    );
    let shown = terminal.0.lock().expect("nobody panics").clone();
    let shown = String::from_utf8(shown).expect("it is text");
    let lines: Vec<_> = shown.lines().filter(|it| !it.is_empty()).collect();
    assert_eq!(lines, ["I look.", "· read a.rs", "Done."]);
}

#[tokio::test]
async fn who_waits_for_a_list_of_models_is_told() {
    let log = Log::new();
    let (link, mut inbox) = Local::new(Arc::clone(&log), About::default());
    let terminal = Terminal::default();
    let shown = terminal.clone();
    let is_told = move || {
        let shown = shown.0.lock().expect("nobody panics");
        String::from_utf8_lossy(&shown).contains("· asking openai for its models\n")
    };
    tokio::spawn(async move {
        while let Some(request) = inbox.recv().await {
            if let Request::Command(Command::Submit(it) | Command::Begin(it)) = request {
                log.append(1, Event::UserMessage(it.message));
                let peer = "openai".to_owned();
                log.append(1, Event::Progress(Progress::Listing { peer }));
                while !is_told() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                log.append(1, Event::Done(crate::protocol::Done::default()));
            }
        }
    });
    let (mut out, mut err) = (terminal.clone(), terminal.clone());
    let outputs = Outputs {
        out: &mut out,
        err: &mut err,
    };
    let options = PrintOptions {
        has_progress: true,
        ..PrintOptions::default()
    };
    let (_stop, mut stops) = mpsc::channel(1);
    let run = run(&link, Some(submit()), options, outputs, &mut stops, || 0);
    let ended = tokio::time::timeout(Duration::from_secs(20), run).await;
    assert!(ended.is_ok(), "it is told before the list is there");
}

#[tokio::test]
async fn a_recorded_question_is_not_put_to_us() {
    let printed = print(&played(APPROVAL, Audience::Absent), None, Format::Text, None).await;
    assert_eq!((printed.ending, printed.err.as_str()), (RunOutcome::Answered, ""));
    assert!(printed.out.ends_with("then\n"), "{}", printed.out);
}

#[tokio::test]
async fn an_approval_is_refused_when_nobody_is_there() {
    let printed = print(
        &played(APPROVAL, Audience::Asking),
        Some(submit()),
        Format::Documents,
        None,
    )
    .await;
    assert_eq!(printed.ending, RunOutcome::Refused);
    assert_eq!(printed.err, "refused: Allow `git push`?\n");
    let answer: serde_json::Value = serde_json::from_str(&printed.out).expect("one object");
    assert_eq!(answer["documents"][0]["metadata"]["outcome"], "skipped");
    assert_eq!(answer["documents"][1]["content"], "then");
}

#[tokio::test]
async fn a_refused_approval_is_named_by_its_action() {
    for (subject, named) in [
        (
            r#"{"type":"terminal_command","metadata":{"command":"git push"}}"#,
            "git push",
        ),
        (
            r#"{"type":"file_edit","metadata":{"operation":"delete","filePath":"a.txt"}}"#,
            "delete a.txt",
        ),
        (
            r#"{"type":"tool_call","metadata":{"toolName":"web_fetch","arguments":{"url":"https://x"}}}"#,
            r#"web_fetch {"url":"https://x"}"#,
        ),
    ] {
        let with_subject = format!("\"subject\":{subject},\"questions\":");
        let asked = APPROVAL.replace("\"questions\":", &with_subject);
        let printed = print(
            &played(&asked, Audience::Asking),
            Some(submit()),
            Format::Documents,
            None,
        )
        .await;
        assert_eq!(printed.err, format!("refused: {named}\n"));
    }
}

#[tokio::test]
async fn a_plain_question_that_nobody_can_answer_ends_the_run() {
    let question = APPROVAL.replace("\"kind\":\"approval\",", "");
    let hint = "question: Allow `git push`?\n  sheaf cannot ask you here; `sheaf --continue` opens the conversation on the screen\n";
    for format in [Format::Text, Format::Json] {
        let printed = print(&played(&question, Audience::Asking), Some(submit()), format, None).await;
        assert_eq!((printed.ending, printed.err.as_str()), (RunOutcome::Refused, hint));
        assert!(!printed.out.contains("then"), "{}", printed.out);
        if format == Format::Json {
            let result: serde_json::Value = serde_json::from_str(&printed.out).expect("one object");
            assert_eq!(result["finishReason"], "awaiting_input");
            assert_eq!(result["questions"][0]["text"], "Allow `git push`?");
        }
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_printed_and_is_a_failure() {
    let cut = "event: document_start\ndata: {\"id\":\"t\",\"type\":\"text\",\"content\":\"half\"}\n\n";
    let printed = print(&played(cut, Audience::Absent), None, Format::Text, None).await;
    assert_eq!((printed.ending, printed.out.as_str()), (RunOutcome::Failed, "half\n"));
    assert!(printed.err.starts_with("error: "), "{}", printed.err);
}

#[tokio::test]
async fn a_stop_prints_what_came_and_how_it_ended() {
    let recording = Recording::read("test", APPROVAL.as_bytes()).expect("it can be played");
    for (format, says) in [
        (Format::Text, ""),
        (Format::Documents, "\"finishReason\": \"cancelled\""),
    ] {
        let link = Replay::start(&recording, Speed::Times(1e-6), Audience::Asking);
        let printed = print(&link, Some(submit()), format, Some(StopSignal::Interrupt)).await;
        assert_eq!(printed.ending, RunOutcome::Stopped(StopSignal::Interrupt));
        assert!(printed.out.contains(says), "{}", printed.out);
    }
}

#[tokio::test]
async fn a_pause_that_is_too_long_is_not_waited_for() {
    let log = Log::new();
    let (link, mut inbox) = Local::new(Arc::clone(&log), About::default());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let commands = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Some(Request::Command(command)) = inbox.recv().await {
            match &command {
                Command::Submit(submit) | Command::Begin(submit) | Command::Steer(submit) => {
                    log.append(1, Event::UserMessage(submit.message.clone()));
                    log.append(
                        1,
                        Event::Progress(Progress::Retrying {
                            attempt: 1,
                            of: 3,
                            at_ms: 1_000_000 + 200_000,
                            because: "the server wants a pause".to_owned(),
                        }),
                    );
                }
                Command::Cancel => {
                    log.append(1, Event::Done(crate::protocol::Done::default()));
                }
                Command::Run { .. }
                | Command::RepeatCall { .. }
                | Command::Restrict(_)
                | Command::Background
                | Command::StopCommand { .. }
                | Command::Compact { .. }
                | Command::Rename(_)
                | Command::Answer { .. }
                | Command::Update { .. }
                | Command::Restore(_)
                | Command::SwitchBranch(_)
                | Command::Record(_)
                | Command::Next => {}
            }
            commands.lock().expect("nobody panics").push(command);
        }
    });
    let printed = print(&link, Some(submit()), Format::Text, None).await;
    assert_eq!(printed.ending, RunOutcome::Failed);
    assert!(
        printed.err.contains("the server wants a pause") && printed.err.contains("200 s"),
        "{}",
        printed.err
    );
    assert_eq!(seen.lock().expect("nobody panics").last(), Some(&Command::Cancel));
}

#[tokio::test]
async fn what_is_said_of_a_failure_is_clean() {
    let evil = "event: document_start\ndata: {\"id\":\"e\",\"type\":\"error\",\"content\":\"a\\u001b[2Jb\\u009bc\",\
        \"metadata\":{\"errorCode\":\"X\\u0007\",\"details\":\"one\\ntwo\"}}\n\n\
        event: document_end\ndata: {\"documentId\":\"e\"}\n\nevent: done\ndata: {\"status\":\"error\"}\n\n";
    let printed = print(&played(evil, Audience::Absent), None, Format::Text, None).await;
    assert_eq!(printed.ending, RunOutcome::Failed);
    assert_eq!(printed.err, "error: ab (X)\n  one\n  two\n");
}

#[test]
fn the_line_of_an_event_is_the_same_wherever_its_text_is() {
    let event = Event::DocumentEnd {
        document: "a".into(),
        final_content: Some("ä \"x\"\n".into()),
        metadata: [("format".to_owned(), "markdown".into())].into_iter().collect(),
    };
    assert_eq!(to_long_text(&event), event_line(&event));
}
