//! Taking back what the agent did to files, and going back in the conversation: the real binary, with a scripted model.

use std::{fs, path::Path};

use serde_json::json;

use crate::{
    model::{Model, Script},
    print::{home, sheaf, with_model},
    pty::Start,
};

/// What a folder holds: each file and its text.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .flatten()
        .filter(|it| it.path().is_file())
        .map(|it| {
            let text = fs::read_to_string(it.path()).expect("text");
            (it.file_name().to_string_lossy().into_owned(), text)
        })
        .collect();
    files.sort();
    files
}

struct Shop {
    home: tempfile::TempDir,
}

impl Shop {
    fn new() -> Self {
        let shop = Self { home: home() };
        fs::create_dir(shop.path()).expect("a folder");
        fs::write(shop.path().join("a.txt"), "a\n").expect("a file");
        fs::write(shop.path().join("b.txt"), "b\n").expect("a file");
        shop
    }

    fn path(&self) -> std::path::PathBuf {
        self.home.path().join("shop")
    }

    fn files(&self) -> Vec<(String, String)> {
        files(&self.path())
    }

    /// Returns what was written to standard error.
    fn ask(&self, model: &Model, arguments: &[&str]) -> String {
        let output = with_model(self.home.path(), model)
            .args(["-p", "--force"])
            .args(arguments)
            .current_dir(self.path())
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        said
    }

    /// What it printed, and whether it went well.
    fn run(&self, arguments: &[&str]) -> (String, bool) {
        let output = sheaf(self.home.path())
            .args(arguments)
            .current_dir(self.path())
            .output()
            .expect("it runs");
        let text = [output.stdout, output.stderr].concat();
        (String::from_utf8(text).expect("text"), output.status.success())
    }
}

/// Two turns: the first writes a file and changes another by a command, the second changes the first again.
fn two_turns(shop: &Shop) {
    let command = "echo more >> b.txt; rm a.txt; mkdir d; mv c.txt d/; chmod +x b.txt";
    let model = Model::with([
        Script::Calls("", vec![("write", json!({ "file_path": "c.txt", "contents": "c\n" }))]),
        Script::Calls(
            "",
            vec![(
                "run_terminal_cmd",
                json!({ "command": command, "is_background": false }),
            )],
        ),
        Script::says("One."),
        Script::Calls("", vec![("write", json!({ "file_path": "e.txt", "contents": "e\n" }))]),
        Script::says("Two."),
    ]);
    shop.ask(&model, &["first"]);
    shop.ask(&model, &["--continue", "second"]);
}

#[test]
fn what_was_done_without_a_screen_is_taken_back_without_one() {
    let shop = Shop::new();
    let before = shop.files();
    two_turns(&shop);
    let after = shop.files();
    let text = |it: &str| it.to_owned();
    assert_eq!(
        after,
        [(text("b.txt"), text("b\nmore\n")), (text("e.txt"), text("e\n"))]
    );

    let (said, is_fine) = shop.run(&["undo", "--dry-run"]);
    assert!(is_fine && said.contains("e.txt  deleted"), "{said}");
    assert_eq!(shop.files(), after, "only said");
    let (said, is_fine) = shop.run(&["undo"]);
    assert!(is_fine && said.contains("undid changes to 1 file"), "{said}");
    assert_eq!(shop.files(), [(text("b.txt"), text("b\nmore\n"))]);
    let (said, is_fine) = shop.run(&["redo"]);
    assert!(is_fine, "{said}");
    assert_eq!(shop.files(), after);

    // Somebody has changed a file since: it stays, unless one says so.
    fs::write(shop.path().join("b.txt"), "mine\n").expect("a file");
    let (said, is_fine) = shop.run(&["undo", "1"]);
    assert!(is_fine && said.contains("b.txt was edited later"), "{said}");
    assert_eq!(fs::read_to_string(shop.path().join("b.txt")).expect("text"), "mine\n");
    assert_eq!(fs::read_to_string(shop.path().join("a.txt")).expect("text"), "a\n");
    assert!(!shop.path().join("d").exists());
    let (said, is_fine) = shop.run(&["undo", "1", "--over"]);
    assert!(is_fine, "{said}");
    let mut wanted = before;
    wanted.push((text("e.txt"), text("e\n")));
    assert_eq!(shop.files(), wanted);

    // The conversation says what became of its documents.
    let (said, _) = shop.run(&["get", "1.1", "--as", "json"]);
    assert!(said.contains("\"undone\": true"), "{said}");
}

/// A program that was killed in the middle of an undo, or before the conversation heard of it: the next start finishes it, with and
/// without a screen, and `sheaf undo` does.
#[test]
fn an_undo_that_was_cut_is_finished_by_the_next_start() {
    use std::os::unix::fs::PermissionsExt as _;
    for is_cut_early in [true, false] {
        for start in ["-p", "undo", "screen", "another -p"] {
            if start == "another -p" && !is_cut_early {
                // Then there is nothing to finish for whoever opens another conversation.
                continue;
            }
            let shop = Shop::new();
            two_turns(&shop);
            let path_of = |folder: &str, end: &str| {
                let files = fs::read_dir(shop.home.path().join(folder)).expect("a folder").flatten();
                let mut files = files.map(|it| it.path());
                files
                    .find(|it| it.to_string_lossy().ends_with(end))
                    .expect("it is there")
            };
            let session = path_of(".local/share/sheaf/sessions", ".jsonl");
            let before = fs::read(&session).expect("it is there");
            let (said, is_fine) = shop.run(&["undo", "1"]);
            assert!(is_fine, "{said}");
            let wanted = shop.files();
            // As if it had been killed before this was written.
            fs::write(&session, &before).expect("written");
            if is_cut_early {
                let steps = path_of(".local/state/sheaf/checkpoints", "").join("steps");
                let text = fs::read_to_string(&steps).expect("text");
                let lines: Vec<&str> = text.lines().collect();
                let (last, rest) = lines.split_last().expect("lines");
                assert!(last.starts_with("{\"ended\""), "{last}");
                fs::write(&steps, rest.join("\n") + "\n").expect("written");
                let b = shop.path().join("b.txt");
                fs::write(&b, "b\nmore\n").expect("written");
                fs::set_permissions(&b, fs::Permissions::from_mode(0o755)).expect("ours");
                fs::write(shop.path().join(".b.txt.sheaf-0123456789ab"), "b\n").expect("written");
                // A program that was killed leaves its number.
                fs::write(steps.with_file_name("running"), "1234\n").expect("written");
                assert_ne!(shop.files(), wanted);
                let (said, is_fine) = shop.run(&["undo", "--dry-run"]);
                assert!(is_fine && said.contains("an undo was interrupted"), "{said}");
            }
            let model = Model::with([Script::says("Three.")]);
            match start {
                "-p" => {
                    let said = shop.ask(&model, &["--continue", "third"]);
                    assert!(!is_cut_early || said.contains("Finished an interrupted undo"), "{said}");
                }
                "another -p" => {
                    let said = shop.ask(&model, &["third"]);
                    assert!(said.contains("Finished an interrupted undo of another"), "{said}");
                    assert_eq!(shop.files(), wanted);
                    continue;
                }
                "undo" => {
                    let (said, is_fine) = shop.run(&["undo"]);
                    assert!(is_fine && said.contains("finished an interrupted run"), "{said}");
                }
                _ => {
                    let sheaf = Start::new(&["--continue", "--workspace", &shop.path().to_string_lossy()])
                        .with("OPENAI_BASE_URL", &format!("http://{}/v1", model.address))
                        .with("OPENAI_API_KEY", "secret-key")
                        .with("OPENAI_MODEL", "scripted")
                        .size(100, 40)
                        .run_in(shop.home.path());
                    sheaf.wait_for("finished an interrupted undo of");
                    sheaf.send("\x04");
                    sheaf.assert_left(0);
                }
            }
            assert_eq!(shop.files(), wanted, "{start} {is_cut_early}");
            let stored = fs::read_to_string(&session).expect("text");
            assert_eq!(stored.matches("did-finish-undo").count(), 1, "{start} {is_cut_early}");
            let (said, _) = shop.run(&["get", "1.1", "--as", "json"]);
            assert!(said.contains("\"undone\": true"), "{start} {is_cut_early}: {said}");
            // Once.
            shop.ask(&model, &["--continue", "fourth"]);
            let stored = fs::read_to_string(&session).expect("text");
            assert_eq!(stored.matches("did-finish-undo").count(), 1, "{start} {is_cut_early}");
            let (said, is_fine) = shop.run(&["redo"]);
            assert!(is_fine, "{said}");
            assert_eq!(
                fs::read_to_string(shop.path().join("b.txt")).expect("text"),
                "b\nmore\n"
            );
        }
    }
}

#[test]
fn the_conversation_goes_back_too_and_the_model_hears_the_branch_only() {
    let shop = Shop::new();
    two_turns(&shop);
    let (said, is_fine) = shop.run(&["rewind", "last#2", "--only", "conversation"]);
    assert!(is_fine, "{said}");
    assert!(shop.path().join("e.txt").exists(), "the files stay");
    let model = Model::with([Script::says("Three.")]);
    shop.ask(&model, &["--continue", "another second"]);
    let said = serde_json::to_string(&model.requests()[0]["messages"]).expect("JSON");
    assert!(said.contains("first") && said.contains("another second"), "{said}");
    assert!(!said.contains("Two."), "what is on another branch is not told: {said}");
    let (tree, _) = shop.run(&["sessions", "show", "last", "--tree"]);
    assert_eq!(tree, "* 1  first\n    2  second\n*   3  another second\n");
    let (found, _) = shop.run(&["sessions", "search", "Two."]);
    assert!(found.contains("#2.2"), "nothing is lost: {found}");
    let (said, is_fine) = shop.run(&["rewind", "last#1"]);
    assert!(is_fine, "{said}");
    assert_eq!(shop.files().len(), 2, "{:?}", shop.files());
}

#[test]
fn a_recording_is_held_against_another() {
    let shop = Shop::new();
    two_turns(&shop);
    let export = |name: &str| {
        let (said, is_fine) = shop.run(&["sessions", "export", "last", "-o", name]);
        assert!(is_fine, "{said}");
    };
    export("../one.jsonl");
    let (said, is_same) = shop.run(&["replay", "../one.jsonl", "--assert", "../one.jsonl"]);
    assert!(is_same && said.is_empty(), "{said}");
    let text = fs::read_to_string(shop.home.path().join("one.jsonl")).expect("text");
    fs::write(shop.home.path().join("other.jsonl"), text.replace("Two.", "Zwei.")).expect("a file");
    let (said, is_same) = shop.run(&["replay", "../one.jsonl", "--assert", "../other.jsonl"]);
    assert!(
        !is_same && said.contains("2.2 text: `Two.` instead of `Zwei.`"),
        "{said}"
    );
}
