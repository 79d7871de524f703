//! The tools that change files, on files.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{hunks::lines, text::Text};
use crate::{
    config::Settings,
    protocol::Operation,
    sandbox::{Seen, Workspace},
    tools::{Context, Fault, Proposal, Stop, Work, arguments, built_in},
};

struct Bench {
    folder: TempDir,
    context: Context,
    runtime: tokio::runtime::Runtime,
}

impl Bench {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        fs::create_dir(folder.path().join("shop")).expect("a folder");
        let workspace = Workspace::open(&folder.path().join("shop")).expect("a workspace");
        let context = Context {
            workspace: workspace.into(),
            seen: Seen::default().into(),
            index: std::sync::Arc::default(),
            embeddings: std::sync::Arc::default(),
            findings: std::sync::Arc::default(),
            servers: std::sync::Arc::default(),
            skills: std::sync::Arc::default(),
            settings: Settings::default().into(),
            apply: None,
            call: "call_1".to_owned(),
            only_reads: false,
            output: tokio::sync::mpsc::unbounded_channel().0,
            stop: Stop::default(),
        };
        Self {
            folder,
            context,
            runtime: tokio::runtime::Builder::new_current_thread()
                .build()
                .expect("a runtime"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("shop").join(name)
    }

    /// A file that the model has not read.
    fn unread(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }

    /// A file that the model has read.
    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        self.unread(name, &bytes);
        self.read(name, 1, u64::MAX);
    }

    fn read(&self, name: &str, first: u64, last: u64) {
        let file = self.context.workspace.locate(name).expect("a place");
        let bytes = fs::read(self.path(name)).expect("a file");
        self.context.seen.read(&file, &bytes, first..=last);
    }

    fn propose(&self, name: &str, arguments: Value) -> Result<Proposal, Fault> {
        let tool = built_in().iter().find(|it| it.is_called(name)).expect("a tool");
        let input = arguments::read(tool, Ok(arguments.as_object().expect("an object")))?;
        let Work::Change(propose) = &tool.work else {
            panic!("{name} changes nothing");
        };
        self.runtime.block_on(propose(input, self.context.clone()))
    }

    /// Does what the call says; the text for the model.
    #[track_caller]
    fn call(&self, name: &str, arguments: Value) -> String {
        let proposal = self
            .propose(name, arguments)
            .unwrap_or_else(|it| panic!("{}", it.text()));
        // The hunks of a notebook are those of a cell.
        for change in proposal.changes.iter().filter(|_| !proposal.data.contains_key("cell")) {
            let text = |bytes: &Option<std::sync::Arc<[u8]>>| {
                bytes.as_ref().map_or_else(String::new, |it| {
                    Text::read(it).map_or_else(|_| String::new(), |it| it.text)
                })
            };
            let (old, new) = (text(&change.old), text(&change.new));
            let mut made = String::new();
            let mut at = 0;
            for hunk in &change.hunks {
                let start = hunk.start as usize - 1;
                made.extend(lines(&old)[at..start].iter().copied());
                assert_eq!(lines(&old)[start..hunk.end as usize].concat(), hunk.old);
                made.push_str(&hunk.new);
                at = hunk.end as usize;
            }
            made.extend(lines(&old)[at..].iter().copied());
            assert_eq!(made, new, "the hunks make the change");
        }
        self.context
            .workspace
            .commit(&self.context.seen, &proposal.changes)
            .unwrap_or_else(|it| panic!("{it}"));
        proposal.text
    }

    #[track_caller]
    fn refused(&self, name: &str, arguments: Value, code: &str) -> String {
        let shown = arguments.to_string();
        match self.propose(name, arguments) {
            Ok(proposal) => panic!("{name} {shown}: {}", proposal.text),
            Err(fault) => {
                assert_eq!(fault.code, code, "{name} {shown}: {}", fault.text());
                fault.text()
            }
        }
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("a file")
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).expect("UTF-8")
    }
}

fn replacing(path: &str, old: &str, new: &str) -> Value {
    json!({ "file_path": path, "old_string": old, "new_string": new })
}

fn sketched(path: &str, sketch: &str) -> Value {
    json!({ "target_file": path, "instructions": "I change it.", "code_edit": sketch })
}

#[test]
fn the_way_a_file_is_written_stays() {
    let utf16 = |text: &str| -> Vec<u8> {
        [0xff, 0xfe]
            .into_iter()
            .chain(text.encode_utf16().flat_map(u16::to_le_bytes))
            .collect()
    };
    let cases: &[(&str, Vec<u8>, Vec<u8>)] = &[
        ("CR LF", b"a\r\nb\r\nc\r\n".to_vec(), b"a\r\nB\r\nx\r\nc\r\n".to_vec()),
        (
            "a mark",
            b"\xEF\xBB\xBFa\nb\nc\n".to_vec(),
            b"\xEF\xBB\xBFa\nB\nx\nc\n".to_vec(),
        ),
        ("no end", b"a\nb\nc".to_vec(), b"a\nB\nx\nc".to_vec()),
        ("both ends", b"a\r\nb\nc\r\n".to_vec(), b"a\r\nB\r\nx\r\nc\r\n".to_vec()),
        ("UTF-16", utf16("a\r\nb\r\nc"), utf16("a\r\nB\r\nx\r\nc")),
    ];
    for (name, before, after) in cases {
        let bench = Bench::new();
        for (tool, arguments) in [
            ("search_replace", replacing("f", "b\n", "B\nx\n")),
            (
                "edit_file",
                sketched("f", "// ... existing code ...\na\nB\nx\nc\n// ... existing code ...\n"),
            ),
            ("write", json!({ "file_path": "f", "contents": "a\nB\nx\nc\n" })),
            (
                "apply_patch",
                json!({ "input": "*** Begin Patch\n*** Update File: f\n@@\n a\n-b\n+B\n+x\n*** End Patch" }),
            ),
        ] {
            bench.put("f", before);
            bench.call(tool, arguments);
            assert_eq!(bench.bytes("f"), *after, "{name} by {tool}");
        }
    }
}

#[test]
fn a_mode_stays_and_a_link_is_followed() {
    let bench = Bench::new();
    bench.put("real/run.sh", "a\n");
    fs::set_permissions(bench.path("real/run.sh"), fs::Permissions::from_mode(0o755)).expect("a mode");
    symlink("real/run.sh", bench.path("link")).expect("a link");
    bench.call("search_replace", replacing("link", "a", "b"));
    assert_eq!(bench.text("real/run.sh"), "b\n");
    assert!(fs::symlink_metadata(bench.path("link")).expect("a link").is_symlink());
    assert_eq!(
        bench
            .path("real/run.sh")
            .metadata()
            .expect("a file")
            .permissions()
            .mode()
            & 0o777,
        0o755
    );
    // A link is not what it leads to.
    bench.refused("delete_file", json!({ "target_file": "link" }), "TOOL_FAILED");
}

#[test]
fn what_was_not_read_is_not_changed() {
    let every: [(&str, Value); 4] = [
        ("search_replace", replacing("f", "b", "c")),
        ("edit_file", sketched("f", "// ...\na\nc\nd\n")),
        ("write", json!({ "file_path": "f", "contents": "c" })),
        (
            "apply_patch",
            json!({ "input": "*** Begin Patch\n*** Update File: f\n-b\n+c\n*** End Patch" }),
        ),
    ];
    for (tool, arguments) in every {
        let bench = Bench::new();
        bench.unread("f", "a\nb\nd\n");
        assert!(
            bench
                .refused(tool, arguments.clone(), "EDIT_STALE")
                .contains("Read the file first")
        );
        bench.read("f", 1, 3);
        bench.unread("f", "a\nb\nd\nmeanwhile\n");
        assert!(bench.refused(tool, arguments.clone(), "EDIT_STALE").contains("again"));
        // Other lines than those that change.
        bench.read("f", 4, 4);
        assert!(
            bench
                .refused(tool, arguments.clone(), "EDIT_STALE")
                .contains("these lines"),
            "{tool}"
        );
        bench.read("f", 1, 2);
        bench.read("f", 3, 3);
        bench.call(tool, arguments);
        assert_ne!(bench.text("f"), "a\nb\nd\nmeanwhile\n");
    }
    // What the agent wrote it knows.
    let bench = Bench::new();
    bench.call("write", json!({ "file_path": "new/f", "contents": "a\n" }));
    bench.call("search_replace", replacing("new/f", "a", "b"));
    assert_eq!(bench.text("new/f"), "b\n");
}

#[test]
fn what_is_no_text_of_the_workspace_is_refused() {
    let bench = Bench::new();
    bench.put("binary", b"a\0b");
    bench.put("latin", b"caf\xE9\nb\n");
    bench.put("folder/file", "x");
    bench.put("huge", vec![b'a'; (10 << 20) + 1]);
    bench.put(".env", "KEY=x");
    bench.put(".git/config", "x");
    fs::write(bench.folder.path().join("outside"), "x").expect("a file");
    symlink("../outside", bench.path("out")).expect("a link");
    symlink("loop", bench.path("loop")).expect("a link");
    for (path, code) in [
        ("binary", "TOOL_FAILED"),
        ("latin", "TOOL_FAILED"),
        ("folder", "TOOL_FAILED"),
        ("huge", "TOOL_FAILED"),
        (".env", "IGNORED_FILE"),
        (".git/config", "PERMISSION_DENIED"),
        ("../outside", "PATH_OUTSIDE_WORKSPACE"),
        ("out", "PATH_OUTSIDE_WORKSPACE"),
        ("/etc/passwd", "PATH_OUTSIDE_WORKSPACE"),
        ("loop", "TOOL_ARGUMENTS_INVALID"),
        ("", "TOOL_ARGUMENTS_INVALID"),
        ("a\0b", "TOOL_ARGUMENTS_INVALID"),
    ] {
        bench.refused("search_replace", replacing(path, "a", "b"), code);
        bench.refused("edit_file", sketched(path, "// ...\na\nb\nc\n"), code);
        bench.refused("write", json!({ "file_path": path, "contents": "y" }), code);
        if !path.is_empty() {
            let patch = format!("*** Begin Patch\n*** Update File: {path}\n-a\n+b\n*** End Patch");
            bench.refused("apply_patch", json!({ "input": patch }), code);
        }
    }
    assert!(
        bench
            .refused("search_replace", replacing("latin", "b", "c"), "TOOL_FAILED")
            .contains("line 1 is not UTF-8")
    );
    for path in ["missing", "folder/file/below"] {
        bench.refused("search_replace", replacing(path, "a", "b"), "FILE_NOT_FOUND");
        bench.refused("edit_file", sketched(path, "// ...\na\n"), "FILE_NOT_FOUND");
        bench.refused("delete_file", json!({ "target_file": path }), "FILE_NOT_FOUND");
    }
    for path in [".env", ".git/config", "../outside", "out"] {
        let fault = bench
            .propose("delete_file", json!({ "target_file": path }))
            .expect_err(path);
        assert!(
            ["IGNORED_FILE", "PERMISSION_DENIED", "PATH_OUTSIDE_WORKSPACE"].contains(&fault.code),
            "{path}"
        );
    }
}

#[test]
fn a_file_that_goes_while_one_decides_is_not_made_again() {
    let bench = Bench::new();
    bench.put("f", "a\n");
    let proposal = bench
        .propose("search_replace", replacing("f", "a", "b"))
        .expect("a proposal");
    fs::remove_file(bench.path("f")).expect("a file");
    assert!(
        bench
            .context
            .workspace
            .commit(&bench.context.seen, &proposal.changes)
            .is_err()
    );
    assert!(!bench.path("f").exists());
}

#[test]
fn a_new_file_is_what_was_written() {
    let bench = Bench::new();
    for (tool, arguments) in [
        ("write", json!({ "path": "a/b/c", "content": "x\r\ny" })),
        ("create_file", json!({ "file_path": "a/b/c", "file_text": "x\r\ny" })),
        ("search_replace", replacing("a/b/c", "", "x\r\ny")),
    ] {
        let proposal = bench.propose(tool, arguments.clone()).expect("a proposal");
        assert_eq!(proposal.changes[0].operation, Operation::Create);
        assert_eq!(bench.call(tool, arguments), "Created `a/b/c` (2 lines).");
        assert_eq!(bench.text("a/b/c"), "x\r\ny");
        bench.call("delete_file", json!({ "target_file": "a/b/c" }));
    }
    bench.call("edit_file", sketched("new.rs", "```rust\nfn main() {}\n```"));
    assert_eq!(bench.text("new.rs"), "fn main() {}\n");
    bench.call("write", json!({ "file_path": "empty", "contents": "" }));
    bench.call("search_replace", replacing("empty", "", "now\n"));
    assert_eq!(bench.text("empty"), "now\n");
}

#[test]
fn the_model_is_shown_what_it_changed() {
    let bench = Bench::new();
    let text: String = (1..=30).map(|it| format!("line {it}\n")).collect();
    bench.put("f", &text);
    let shown = bench.call(
        "search_replace",
        replacing("f", "line 10\nline 11\n", "ten\neleven\nmore\n"),
    );
    assert_eq!(
        shown,
        "Changed `f`: 3 lines added, 2 removed.\n5|line 5\n6|line 6\n7|line 7\n8|line 8\n9|line 9\n10|ten\n11|eleven\n12|more\n\
         13|line 12\n14|line 13\n15|line 14\n16|line 15\n17|line 16"
    );
    let proposal = bench
        .propose("search_replace", replacing("f", "line 30\n", ""))
        .expect("a proposal");
    assert_eq!(
        Value::Object(proposal.data),
        json!({
            "filePath": "f",
            "operation": "edit",
            "linesAdded": 0,
            "linesRemoved": 1,
            "diffString": "--- a/f\n+++ b/f\n@@ -28,4 +28,3 @@\n line 27\n line 28\n line 29\n-line 30\n"
        })
    );
    assert!(proposal.text.ends_with("30|line 29"), "{}", proposal.text);
    let all = json!({ "file_path": "f", "old_string": "line", "new_string": "row", "replace_all": true });
    assert!(bench.call("search_replace", all).contains("28 places were changed"));
    let shown = bench.call(
        "StrReplace",
        json!({ "path": "f", "old_str": "  row 1\n  row 2", "new_str": "  one\n  two" }),
    );
    assert!(shown.contains("indented more or less"), "{shown}");
}

#[test]
fn several_edits_are_all_made_or_none() {
    let bench = Bench::new();
    bench.put("f", "a\nb\nc\n");
    let edits = |last: &str| {
        json!({ "file_path": "f", "edits": [
            { "old_string": "a", "new_string": "A" },
            { "oldString": "A\nb", "newString": "AB" },
            { "old_str": last, "new_str": "C" },
        ] })
    };
    let told = bench.refused("MultiEdit", edits("x"), "EDIT_NO_MATCH");
    assert!(told.contains("edit 3 of 3"), "{told}");
    bench.call("MultiEdit", edits("c"));
    assert_eq!(bench.text("f"), "AB\nC\n");
    bench.refused(
        "MultiEdit",
        json!({ "file_path": "f", "edits": [] }),
        "TOOL_ARGUMENTS_INVALID",
    );
    bench.refused(
        "MultiEdit",
        json!({ "file_path": "f", "edits": [{ "old_string": "a" }] }),
        "TOOL_ARGUMENTS_INVALID",
    );
    bench.call(
        "MultiEdit",
        json!({ "file_path": "f", "edits": "[{\"old_string\":\"AB\",\"new_string\":\"D\"}]" }),
    );
    assert_eq!(bench.text("f"), "D\nC\n");
}

#[test]
fn a_model_learns_why_nothing_was_replaced() {
    let bench = Bench::new();
    bench.put(
        "f",
        "fn total() {\n    sum(items)\n}\n\nfn main() {\n    sum(items)\n}\n",
    );
    let told = bench.refused("search_replace", replacing("f", "sum(items)", "x"), "EDIT_AMBIGUOUS");
    assert!(told.contains("2 times in `f`, at lines 2, 6"), "{told}");
    let told = bench.refused(
        "search_replace",
        replacing("f", "fn totals() {\n    sum(item)\n}", "x"),
        "EDIT_NO_MATCH",
    );
    assert!(
        told.contains("exactly") && !told.contains("line numbers in front"),
        "{told}"
    );
    let told = bench.refused(
        "search_replace",
        replacing("f", "fn total() {\n    sum(it)\n}", "x"),
        "EDIT_NO_MATCH",
    );
    assert!(told.contains("\n1|fn total() {\n2|    sum(items)\n3|}\n"), "{told}");
    bench.refused("search_replace", replacing("f", "", "x"), "TOOL_ARGUMENTS_INVALID");
    bench.refused(
        "search_replace",
        replacing("f", "main", "main"),
        "TOOL_ARGUMENTS_INVALID",
    );
    bench.refused(
        "write",
        json!({ "file_path": "f", "contents": bench.text("f") }),
        "TOOL_ARGUMENTS_INVALID",
    );
    let told = bench.refused(
        "edit_file",
        sketched("f", "// ...\nfn gone() {\n    x\n}\n"),
        "EDIT_NO_MATCH",
    );
    assert!(
        told.contains("`fn gone() {`") && told.contains("search_replace"),
        "{told}"
    );
    bench.refused(
        "edit_file",
        sketched("f", "// ...\n    sum(items)\n    more()\n}\n// ..."),
        "EDIT_AMBIGUOUS",
    );
}

#[test]
fn a_sketch_is_merged() {
    let bench = Bench::new();
    bench.put(
        "f.py",
        "import os\n\n\ndef a():\n    return 1\n\n\ndef b():\n    return 2\n",
    );
    bench.call(
        "edit_file",
        json!({ "path": "f.py", "code_edit": "# ... existing code ...\ndef a():\n    x = 0\n    return 1\n# ... existing code ...\n" }),
    );
    assert_eq!(
        bench.text("f.py"),
        "import os\n\n\ndef a():\n    x = 0\n    return 1\n\n\ndef b():\n    return 2\n"
    );
}

#[test]
fn a_sketch_that_breaks_the_syntax_is_refused() {
    let bench = Bench::new();
    let text = "fn a() {\n    1\n}\n\nfn b() {\n    2\n}\n";
    let sketch = "// ...\nfn a() {\n    if x {\n    1\n}\n\nfn b() {\n// ...";
    bench.put("f.rs", text);
    let told = bench.refused("edit_file", sketched("f.rs", sketch), "EDIT_NO_MATCH");
    assert!(told.contains("errors of syntax"), "{told}");
    // In a language without a grammar it is what the model says.
    bench.put("f.txt", text);
    bench.call("edit_file", sketched("f.txt", sketch));
}

#[test]
fn a_model_may_merge_what_lines_cannot() {
    let bench = Bench::new();
    let text = "fn one() {\n    a();\n    b();\n}\n\nfn two() {\n    a();\n    b();\n}\n";
    bench.put("f.rs", text);
    let sketch = "// ...\nfn two() {\n    // ...\n    a();\n    new();\n    b();\n// ...";
    let arguments = sketched("f.rs", sketch);
    bench.refused("edit_file", arguments.clone(), "EDIT_NO_MATCH");
    let tool = crate::tools::edit_file::tool();
    let input = arguments::read(&tool, Ok(arguments.as_object().expect("an object"))).expect("arguments");
    let question = crate::tools::edit_file::question(&input, &bench.context).expect("a question");
    let question = question.expect("the sketch has code");
    assert!(question.contains(&format!("<code>{text}</code>")), "{question}");
    let new = text
        .replace("a();\n    b();\n}\n\n", "A")
        .replace("a();\n", "a();\n    new();\n")
        .replace('A', "a();\n    b();\n}\n\n");
    let answer = format!("<updated-code>{new}</updated-code>");
    let proposal = crate::tools::edit_file::answered(&input, &bench.context, &answer).expect("a proposal");
    assert_eq!(proposal.changes[0].new.as_deref(), Some(new.as_bytes()));
    let answer = "<updated-code>a();\nb();\n</updated-code>";
    let fault = crate::tools::edit_file::answered(&input, &bench.context, answer).expect_err("no merge");
    assert_eq!(fault.code, "EDIT_NO_MATCH");
}

#[test]
fn files_and_empty_folders_are_deleted() {
    let bench = Bench::new();
    bench.unread("f", b"\0binary");
    bench.unread("full/f", "x");
    fs::create_dir(bench.path("empty")).expect("a folder");
    assert_eq!(
        bench.call("Delete", json!({ "path": "f", "explanation": "It is old." })),
        "Deleted `f`."
    );
    assert!(!bench.path("f").exists());
    bench.refused("delete_file", json!({ "target_file": "full" }), "TOOL_FAILED");
    bench.call("delete_file", json!({ "target_file": "empty" }));
    assert!(!bench.path("empty").exists());
    bench.refused("delete_file", json!({ "target_file": "." }), "TOOL_FAILED");
}

#[test]
fn a_patch_changes_several_files_or_none() {
    let bench = Bench::new();
    bench.put("edited.rs", "a\nb\nc\n");
    bench.put("moved.rs", "x\ny\n");
    bench.unread("gone.rs", "z\n");
    bench.unread("shifted.bin", b"\0");
    let patch = |last: &str| {
        let patch = format!(
            "*** Begin Patch\n*** Update File: edited.rs\n@@\n a\n-b\n+B\n*** Add File: new/n.rs\n+n\n*** Delete File: gone.rs\n\
             *** Update File: moved.rs\n*** Move to: to/here.rs\n x\n-{last}\n+Y\n*** Update File: shifted.bin\n*** Move to: s.bin\n\
             *** End Patch"
        );
        json!({ "input": patch })
    };
    bench.refused("apply_patch", patch("q"), "EDIT_NO_MATCH");
    let proposal = bench.propose("apply_patch", patch("y")).expect("a proposal");
    let operations: Vec<_> = proposal.changes.iter().map(|it| it.operation.clone()).collect();
    use Operation::{Create, Delete, Edit, Rename};
    assert_eq!(operations, [Edit, Create, Delete, Rename, Rename]);
    let told = bench.call("apply_patch", patch("y"));
    assert!(
        told.starts_with("Changed `edited.rs`: 1 line added, 1 removed.\n1|a\n2|B\n3|c\n\nCreated `new/n.rs`"),
        "{told}"
    );
    assert!(told.contains("Moved `moved.rs` to `to/here.rs`.\n1|x\n2|Y\n"), "{told}");
    assert_eq!(bench.text("edited.rs"), "a\nB\nc\n");
    assert_eq!(bench.text("new/n.rs"), "n\n");
    assert_eq!(bench.text("to/here.rs"), "x\nY\n");
    assert_eq!(bench.bytes("s.bin"), b"\0");
    assert!(
        ["gone.rs", "moved.rs", "shifted.bin"]
            .iter()
            .all(|it| !bench.path(it).exists())
    );
    for (body, code) in [
        ("*** Add File: edited.rs\n+x", "FILE_EXISTS"),
        ("*** Update File: edited.rs\n*** Move to: new/n.rs\n-a", "FILE_EXISTS"),
        (
            "*** Update File: edited.rs\n*** Move to: ../n.rs\n-a",
            "PATH_OUTSIDE_WORKSPACE",
        ),
        (
            "*** Update File: edited.rs\n-a\n*** Update File: edited.rs\n-B",
            "TOOL_ARGUMENTS_INVALID",
        ),
        ("*** Delete File: nothing", "FILE_NOT_FOUND"),
        ("*** Update File: nothing\n-a", "FILE_NOT_FOUND"),
        ("*** Add File: .env\n+x", "IGNORED_FILE"),
        ("*** Rename File: a", "TOOL_ARGUMENTS_INVALID"),
    ] {
        bench.refused(
            "apply_patch",
            json!({ "input": format!("*** Begin Patch\n{body}\n*** End Patch") }),
            code,
        );
    }
}

#[test]
fn a_notebook_is_changed_by_its_cells() {
    let bench = Bench::new();
    let notebook = "{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": 3,\n   \"metadata\": {},\n   \"outputs\": [1],\n   \
                    \"source\": [\n    \"a\\n\",\n    \"b\"\n   ]\n  }\n ],\n \"nbformat\": 4,\n \"nbformat_minor\": 4\n}\n";
    bench.put("n.ipynb", notebook);
    let call = |cell: i64, is_new: bool, language: &str, old: &str, new: &str| {
        json!({
            "target_notebook": "n.ipynb", "cell_idx": cell, "is_new_cell": is_new, "cell_language": language,
            "old_string": old, "new_string": new
        })
    };
    let proposal = bench
        .propose("edit_notebook", call(0, false, "python", "b", "c"))
        .expect("a proposal");
    let hunk = &proposal.changes[0].hunks[0];
    assert_eq!(
        (hunk.old.as_str(), hunk.new.as_str(), hunk.start, hunk.end),
        ("b", "c", 2, 2)
    );
    assert_eq!(proposal.data["cell"], 0);
    let told = bench.call("EditNotebook", call(0, false, "python", "b", "c"));
    assert_eq!(told, "Changed cell 0 of `n.ipynb`. Its source is now:\n1|a\n2|c");
    let wants = notebook
        .replace("\"b\"", "\"c\"")
        .replace("[1]", "[]")
        .replace("3,", "null,");
    assert_eq!(bench.text("n.ipynb"), wants);
    bench.call("edit_notebook", call(1, true, "markdown", "", "# Title"));
    assert!(bench.text("n.ipynb").contains("\"# Title\""));
    for (arguments, code) in [
        (call(5, false, "python", "a", "b"), "TOOL_ARGUMENTS_INVALID"),
        (call(-1, false, "python", "a", "b"), "TOOL_ARGUMENTS_INVALID"),
        (call(1, false, "python", "Title", "b"), "TOOL_ARGUMENTS_INVALID"),
        (call(0, false, "python", "q", "b"), "EDIT_NO_MATCH"),
    ] {
        bench.refused("edit_notebook", arguments, code);
    }
    bench.put("n.ipynb", "no JSON");
    bench.refused("edit_notebook", call(0, false, "python", "a", "b"), "TOOL_FAILED");
    bench.unread("n.ipynb", notebook);
    bench.refused("edit_notebook", call(0, false, "python", "b", "c"), "EDIT_STALE");
}
