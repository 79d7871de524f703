//! A change of which the user lets only some hunks be written: what stands on the disk, what the model and the conversation
//! are told, and what taking it back does.

use sheaf::protocol::HunkAnswer;

use super::*;

const BEFORE: &str = "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n";

/// A model that reads a file, changes it in three places, and is done.
fn script() -> Arc<Script> {
    Script::new(|at, _| match at {
        0 => ending(
            vec![call("1", "read_file", &json!({ "path": "a.txt" }))],
            EndReason::ToolUse,
        ),
        1 => ending(
            vec![call(
                "2",
                "write",
                &json!({ "file_path": "a.txt", "contents": "ONE\n2\n3\n4\nFIVE\n6\n7\n8\nNINE\n" }),
            )],
            EndReason::ToolUse,
        ),
        _ => ok(),
    })
}

async fn stage(root: &Path, script: &Arc<Script>) -> Stage {
    fs::write(root.join("a.txt"), BEFORE).expect("written");
    let mut settings = Settings::default();
    "ask".clone_into(&mut settings.approvals.run);
    let mut stage = Stage::new(root, script, settings, built_in().clone());
    stage.say("go", Mode::Agent);
    stage
        .until("the question", |it| it.transcript.open_question().is_some())
        .await;
    stage
}

fn answer(stage: &Stage, hunks: Vec<HunkAnswer>) -> Command {
    let place = stage.transcript.open_question().expect("it is open");
    Command::Answer {
        turn: Turn(1),
        response: ClarificationResponse {
            document_id: stage.transcript.get(place).expect("it is there").id.clone(),
            outcome: Dealt::Answered,
            answers: vec![QuestionAnswer {
                question_id: "approval".to_owned(),
                selected_option_ids: vec!["reject_once".to_owned()],
                free_text: None,
                hunks,
            }],
            reason: None,
        },
    }
}

fn hunk(index: u64, accepted: bool, new: Option<&str>, comment: Option<&str>) -> HunkAnswer {
    HunkAnswer {
        index,
        accepted,
        new_string: new.map(str::to_owned),
        comment: comment.map(str::to_owned),
    }
}

#[tokio::test]
async fn a_part_of_a_change_is_written_told_and_taken_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = script();
    let mut stage = stage(folder.path(), &script).await;
    let read = || fs::read_to_string(folder.path().join("a.txt")).expect("a file");
    assert_eq!(read(), BEFORE, "nothing is written before the answer");
    stage.send(answer(
        &stage,
        vec![
            hunk(1, true, None, None),
            hunk(2, false, None, Some("five stays")),
            hunk(3, true, Some("neuf\n"), None),
        ],
    ));
    stage.done(1).await;
    assert_eq!(read(), "ONE\n2\n3\n4\nfive\n6\n7\n8\nneuf\n");
    let edits: Vec<(String, String)> = stage
        .documents()
        .into_iter()
        .filter(|it| it.kind == Kind::FileEdit)
        .map(|it| (it.metadata["applied"].to_string(), it.text().to_owned()))
        .collect();
    let wants = [("applied", "ONE\n"), ("rejected", "FIVE\n"), ("applied", "neuf\n")];
    let wants = wants.map(|(applied, text)| (format!("{applied:?}"), text.to_owned()));
    assert_eq!(edits, wants, "the conversation holds what happened");
    let asked = script.asked();
    let told = format!("{:?}", asked.last().expect("a request").messages.last());
    for text in [
        "let 2 of 3 hunks of `a.txt` be written",
        "five stays",
        "neuf",
        "rewritten by the user",
    ] {
        assert!(told.contains(text), "{text}: {told}");
    }
    // The hunk that the user wrote is taken back where it stands; the one that was left out moves nothing.
    let last = stage.documents().into_iter().rfind(|it| it.kind == Kind::FileEdit);
    stage.send(Command::Update {
        turn: Turn(1),
        document: last.expect("it is there").id.clone(),
        metadata: json!({ "applied": "rejected" }).as_object().expect("members").clone(),
    });
    let back = "ONE\n2\n3\n4\nfive\n6\n7\n8\nnine\n";
    stage.until("it is taken back", |_| read() == back).await;
}

#[tokio::test]
async fn what_changed_on_the_disk_meanwhile_is_not_written_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = script();
    let mut stage = stage(folder.path(), &script).await;
    fs::write(folder.path().join("a.txt"), "mine\n").expect("written");
    stage.send(answer(
        &stage,
        vec![hunk(1, true, None, None), hunk(2, false, None, None)],
    ));
    stage.done(1).await;
    assert_eq!(
        fs::read_to_string(folder.path().join("a.txt")).expect("a file"),
        "mine\n"
    );
    let asked = script.asked();
    let told = format!("{:?}", asked.last().expect("a request").messages.last());
    assert!(told.contains("EDIT_STALE"), "{told}");
}

#[tokio::test]
async fn nothing_is_written_where_no_hunk_is_accepted() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = script();
    let mut stage = stage(folder.path(), &script).await;
    stage.send(answer(&stage, vec![hunk(1, false, None, Some("leave it"))]));
    stage.done(1).await;
    assert_eq!(fs::read_to_string(folder.path().join("a.txt")).expect("a file"), BEFORE);
    let asked = script.asked();
    let told = format!("{:?}", asked.last().expect("a request").messages.last());
    assert!(told.contains("TOOL_REJECTED") && told.contains("leave it"), "{told}");
}
