//! Commits of accepted changes in real repositories, with real git: exactly these changes, and all else as it was.

use std::{fs, path::Path, process, sync::Arc, time::Duration};

use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};

use super::{
    Repository,
    accepted::{Accepted, Files, uncommitted},
    commit, note,
};
use crate::{
    protocol::{
        CommitOutcome, CommitPreview, CommitRequest, DocumentId, DocumentStart, Entry, Event, Kind, Message, Operation,
        Position, ResponseStart, Turn, document::COMMITTED,
    },
    sandbox::{Change, Checkpoints, Seen, Workspace},
    tools::edit::{hunks::hunks, text::Text},
    transcript::Transcript,
};

/// A repository, the agent's workspace in it, and a conversation that changes files.
struct Scene {
    _folder: tempfile::TempDir,
    workspace: Arc<Workspace>,
    seen: Seen,
    entries: Vec<Arc<Entry>>,
    documents: Vec<DocumentId>,
}

const MESSAGE: &str = "change what I accepted";

pub(super) fn git_in(root: &Path, arguments: &[&str]) -> (bool, String) {
    let output = process::Command::new("git")
        .arg("-C")
        .arg(root)
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git is there");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

impl Scene {
    /// A repository with one commit of these files; without any there is no commit.
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("work");
        fs::create_dir(&root).expect("a folder");
        git_in(&root, &["init", "-q", "-b", "main"]);
        for (name, value) in [
            ("user.name", "Ada"),
            ("user.email", "ada@example.org"),
            ("commit.gpgsign", "false"),
        ] {
            git_in(&root, &["config", name, value]);
        }
        let checkpoints = Checkpoints::open(&folder.path().join("kept"), "c").expect("a store");
        let mut scene = Self {
            workspace: Arc::new(Workspace::open(&root).expect("a workspace")),
            seen: Seen::keeping(checkpoints),
            _folder: folder,
            entries: Vec::new(),
            documents: Vec::new(),
        };
        scene.event(Event::UserMessage(Message::user("make it better\nand faster")));
        scene.event(Event::ResponseStart(ResponseStart {
            model: Some("m-1".to_owned()),
            ..ResponseStart::default()
        }));
        scene.seen.begin(1);
        for (path, text) in files {
            scene.put(path, text);
        }
        if !files.is_empty() {
            scene.git(&["add", "--all", "--force"]);
            scene.git(&["commit", "-q", "-m", "first"]);
        }
        scene
    }

    fn root(&self) -> &Path {
        self.workspace.root()
    }

    fn git(&self, arguments: &[&str]) -> String {
        let (is_well, text) = git_in(self.root(), arguments);
        assert!(is_well, "{arguments:?}: {text}");
        text
    }

    /// The person writes a file.
    fn put(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    /// The person stages a content, and the file on the disk stays.
    fn stage(&self, path: &str, text: &str) {
        let was = fs::read(self.root().join(path)).ok();
        self.put(path, text);
        self.git(&["add", path]);
        match was {
            Some(bytes) => fs::write(self.root().join(path), bytes).expect("a file"),
            None => fs::remove_file(self.root().join(path)).expect("it was there"),
        }
    }

    fn event(&mut self, event: Event) {
        let entry = Entry {
            position: Position(self.entries.len() as u64 + 1),
            turn: Turn(1),
            at_ms: 0,
            event,
        };
        self.entries.push(Arc::new(entry));
    }

    fn document(&mut self, call: usize, metadata: Value, content: Option<String>) {
        let id = DocumentId::from(format!("d{}", self.documents.len()));
        let mut metadata: Map<String, Value> = metadata.as_object().cloned().unwrap_or_default();
        metadata.insert("toolCallId".to_owned(), format!("call{call}").into());
        metadata.insert("applied".to_owned(), "applied".into());
        self.event(Event::DocumentStart(DocumentStart {
            id: id.clone(),
            kind: Kind::FileEdit,
            sequence: None,
            content: None,
            metadata: metadata.clone(),
        }));
        self.event(Event::DocumentEnd {
            document: id.clone(),
            final_content: content.map(Into::into),
            metadata,
        });
        self.documents.push(id);
    }

    /// The agent changes a file: a document for each hunk, or one.
    fn change(&mut self, path: &str, new: Option<&str>, to: Option<&str>) {
        let call = self.documents.len();
        let file = self.workspace.locate(path).expect("inside");
        let old = fs::read(&file.path).ok();
        let read = |bytes: &[u8]| Text::read(bytes).expect("text");
        let operation = match (&old, new, to) {
            (_, _, Some(_)) => Operation::Rename,
            (None, ..) => Operation::Create,
            (Some(_), None, _) => Operation::Delete,
            (Some(_), Some(_), _) => Operation::Edit,
        };
        let was = old.as_deref().map(read);
        let bytes = match (&was, new) {
            (Some(was), Some(new)) => Some(was.write(new)),
            (None, Some(new)) => Some(new.as_bytes().to_vec()),
            (_, None) if to.is_some() => old.clone(),
            (_, None) => None,
        };
        let text = was.map(|it| it.text).unwrap_or_default();
        let found = hunks(&text, new.unwrap_or(&text));
        let change = Change {
            file,
            operation: operation.clone(),
            to: to.map(|it| self.workspace.locate(it).expect("inside")),
            old: old.map(Into::into),
            new: bytes.map(Into::into),
            hunks: found.clone(),
            cell: None,
        };
        let made = self.workspace.commit_for(&self.seen, &format!("call{call}"), &[change]);
        made.expect("it can be written");
        let mut start = json!({ "filePath": path, "operation": operation.as_str() });
        if let Some(to) = to {
            start["newFilePath"] = to.into();
        }
        if found.is_empty() || matches!(operation, Operation::Create | Operation::Delete) {
            let content = new.filter(|_| operation == Operation::Create).map(str::to_owned);
            return self.document(call, start, content);
        }
        for hunk in found {
            let mut metadata = start.clone();
            metadata["diff"] = json!({
                "oldString": hunk.old, "newString": hunk.new, "startLine": hunk.start, "endLine": hunk.end,
            });
            self.document(call, metadata, Some(hunk.new));
        }
    }

    fn wanted(&self, accepted: &[usize]) -> Vec<(Turn, DocumentId)> {
        accepted
            .iter()
            .map(|it| (Turn(1), self.documents[*it].clone()))
            .collect()
    }

    async fn accepted(&self, accepted: &[usize]) -> (Repository, Arc<Accepted>) {
        let repository = Repository::open(self.root()).await.expect("a repository");
        let files = Files {
            workspace: &self.workspace,
            seen: &self.seen,
        };
        let transcript = Transcript::from_entries(&self.entries);
        let wanted = uncommitted(&transcript, self.wanted(accepted), &repository).await;
        let collected = Accepted::new(&transcript, &wanted, &repository, &files);
        (repository, Arc::new(collected))
    }

    async fn preview(&self, accepted: &[usize]) -> CommitPreview {
        let (repository, accepted) = self.accepted(accepted).await;
        commit::preview(&repository, &accepted, "short")
            .await
            .expect("a preview")
    }

    async fn commit(&self, accepted: &[usize]) -> Result<CommitOutcome, String> {
        let state = self.preview(accepted).await.state;
        let (repository, collected) = self.accepted(accepted).await;
        let request = CommitRequest {
            documents: self.wanted(accepted),
            message: MESSAGE.to_owned(),
            state,
        };
        commit::commit(&repository, &collected, &request, "short", |_| {})
            .await
            .map_err(|it| it.to_string())
    }

    /// An executable hook.
    fn hook(&self, name: &str, script: &str) {
        let path = format!(".git/hooks/{name}");
        self.put(&path, &format!("#!/bin/sh\n{script}\n"));
        let path = self.root().join(path);
        let made = process::Command::new("chmod").arg("+x").arg(path).status();
        assert!(made.expect("chmod").success());
    }

    /// The state of the repository that a person sees.
    fn state(&self) -> String {
        let (_, head) = git_in(self.root(), &["rev-parse", "HEAD"]);
        format!(
            "{head}{}{}{}",
            self.git(&["diff", "--cached"]),
            self.git(&["diff"]),
            self.git(&["status", "--short"])
        )
    }

    /// A file of the last commit, or of the index with `:`; `-` if there is none.
    fn text(&self, of: &str, path: &str) -> String {
        match git_in(self.root(), &["show", &format!("{of}:{path}")]) {
            (true, text) => text,
            (false, _) => "-".to_owned(),
        }
    }
}

/// A repository and a choice of hunks, and what must come of them.
struct Case {
    name: &'static str,
    head: &'static [(&'static str, &'static str)],
    /// What the person has staged before the agent's changes.
    staged: &'static [(&'static str, &'static str)],
    /// What the person has written before the agent's changes.
    written: &'static [(&'static str, &'static str)],
    /// What the agent writes, one call each; `-` deletes.
    changes: &'static [(&'static str, &'static str)],
    accepted: &'static [usize],
    /// Files of the commit; `-`: not in it.
    commit: &'static [(&'static str, &'static str)],
    /// Files of the index.
    index: &'static [(&'static str, &'static str)],
}

const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

const CASES: &[Case] = &[
    Case {
        name: "one hunk of two",
        head: &[("a", TEN), ("b", "b\n")],
        staged: &[],
        written: &[],
        changes: &[("a", "one\n2\n3\n4\n5\n6\n7\n8\n9\nten\n")],
        accepted: &[1],
        commit: &[("a", "1\n2\n3\n4\n5\n6\n7\n8\n9\nten\n"), ("b", "b\n")],
        index: &[("a", "1\n2\n3\n4\n5\n6\n7\n8\n9\nten\n")],
    },
    Case {
        name: "other files that are staged or changed stay so",
        head: &[("a", TEN), ("b", "b\n"), ("c", "c\n")],
        staged: &[("b", "staged\n"), ("new", "new\n")],
        written: &[("c", "changed\n")],
        changes: &[("a", "one\n2\n3\n4\n5\n6\n7\n8\n9\n10\n")],
        accepted: &[0],
        commit: &[
            ("a", "one\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"),
            ("b", "b\n"),
            ("c", "c\n"),
            ("new", "-"),
        ],
        index: &[
            ("a", "one\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"),
            ("b", "staged\n"),
            ("c", "c\n"),
            ("new", "new\n"),
        ],
    },
    Case {
        name: "a partially staged file: the person's lines stay staged, or unstaged",
        head: &[("a", TEN)],
        staged: &[("a", "1\n2\n3\n4\nstaged\n6\n7\n8\n9\n10\n")],
        written: &[("a", "1\n2\n3\n4\nstaged\n6\n7\n8\n9\nunstaged\n")],
        changes: &[("a", "agent\n2\n3\n4\nstaged\n6\n7\n8\n9\nunstaged\n")],
        accepted: &[0],
        commit: &[("a", "agent\n2\n3\n4\n5\n6\n7\n8\n9\n10\n")],
        index: &[("a", "agent\n2\n3\n4\nstaged\n6\n7\n8\n9\n10\n")],
    },
    Case {
        name: "the person has staged all of it already",
        head: &[("a", "1\n2\n3\n")],
        staged: &[("a", "1\n2\n3\nagent\n")],
        written: &[],
        changes: &[("a", "1\n2\n3\nagent\n")],
        accepted: &[0],
        commit: &[("a", "1\n2\n3\nagent\n")],
        index: &[("a", "1\n2\n3\nagent\n")],
    },
    Case {
        name: "the person has staged something else there: it stays staged",
        head: &[("a", "1\n2\n3\n")],
        staged: &[("a", "1\nmine\n3\n")],
        written: &[],
        changes: &[("a", "1\nagent\n3\n")],
        accepted: &[0],
        commit: &[("a", "1\nagent\n3\n")],
        index: &[("a", "1\nmine\n3\n")],
    },
    Case {
        name: "a later change that was not accepted",
        head: &[("a", TEN)],
        staged: &[],
        written: &[],
        changes: &[
            ("a", "1\n2\n3\n4\nV\n6\n7\n8\n9\n10\n"),
            ("a", "0\n1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n"),
        ],
        accepted: &[0],
        commit: &[("a", "1\n2\n3\n4\nV\n6\n7\n8\n9\n10\n")],
        index: &[("a", "1\n2\n3\n4\nV\n6\n7\n8\n9\n10\n")],
    },
    Case {
        name: "a new file, a deleted one, a folder",
        head: &[("a", "a\n"), ("gone", "gone\n")],
        staged: &[],
        written: &[],
        changes: &[
            ("src/x/new.rs", "fn new() {}\n"),
            ("gone", "-"),
            ("left.rs", "left out\n"),
        ],
        accepted: &[0, 1],
        commit: &[
            ("a", "a\n"),
            ("src/x/new.rs", "fn new() {}\n"),
            ("gone", "-"),
            ("left.rs", "-"),
        ],
        index: &[("src/x/new.rs", "fn new() {}\n"), ("gone", "-"), ("left.rs", "-")],
    },
    Case {
        name: "a new file and a change of it",
        head: &[("a", "a\n")],
        staged: &[],
        written: &[],
        changes: &[("new", "1\n2\n"), ("new", "1\nII\n")],
        accepted: &[0, 1],
        commit: &[("new", "1\nII\n")],
        index: &[("new", "1\nII\n")],
    },
    Case {
        name: "a repository without a commit",
        head: &[],
        staged: &[("mine", "mine\n")],
        written: &[],
        changes: &[("new", "1\n"), ("other", "2\n")],
        accepted: &[0],
        commit: &[("new", "1\n"), ("other", "-"), ("mine", "-")],
        index: &[("new", "1\n"), ("other", "-"), ("mine", "mine\n")],
    },
    Case {
        name: "files without an end of their last line, and with CRLF",
        head: &[("a", "1\n2"), ("w", "1\r\n2\r\n3\r\n")],
        staged: &[],
        written: &[],
        changes: &[("a", "1\n2\n3"), ("w", "1\nII\n3\n")],
        accepted: &[0, 1],
        commit: &[("a", "1\n2\n3"), ("w", "1\r\nII\r\n3\r\n")],
        index: &[("a", "1\n2\n3"), ("w", "1\r\nII\r\n3\r\n")],
    },
    Case {
        name: "names that a shell or git would read otherwise",
        head: &[("-a b*", "1\n"), (":(top)ü\"", "1\n")],
        staged: &[],
        written: &[],
        changes: &[("-a b*", "2\n"), (":(top)ü\"", "2\n"), ("n\tew", "n\n")],
        accepted: &[0, 1, 2],
        commit: &[("-a b*", "2\n"), (":(top)ü\"", "2\n"), ("n\tew", "n\n")],
        index: &[("-a b*", "2\n"), (":(top)ü\"", "2\n"), ("n\tew", "n\n")],
    },
];

#[tokio::test]
async fn exactly_the_accepted_hunks_are_committed() {
    for case in CASES {
        let mut scene = Scene::new(case.head);
        for (path, text) in case.staged {
            scene.stage(path, text);
        }
        for (path, text) in case.written {
            scene.put(path, text);
        }
        for (path, text) in case.changes {
            scene.change(path, Some(*text).filter(|it| *it != "-"), None);
        }
        let before = scene.state();
        let preview = scene.preview(case.accepted).await;
        assert_eq!(
            (preview.problem.as_str(), &preview.left_out),
            ("", &Vec::new()),
            "{}",
            case.name
        );
        assert_eq!(scene.state(), before, "{}: a preview changes nothing", case.name);
        let files = |scene: &Scene| -> Vec<(String, Vec<u8>)> {
            let names = case
                .changes
                .iter()
                .map(|it| it.0)
                .chain(case.written.iter().map(|it| it.0));
            names
                .filter_map(|it| Some((it.to_owned(), fs::read(scene.root().join(it)).ok()?)))
                .collect()
        };
        let on_disk = files(&scene);
        let outcome = scene.commit(case.accepted).await.expect(case.name);
        assert!(
            outcome.commit.is_some() && outcome.output.is_empty(),
            "{}: {outcome:?}",
            case.name
        );
        for (path, text) in case.commit {
            assert_eq!(scene.text("HEAD", path), *text, "{}: {path} in the commit", case.name);
        }
        for (path, text) in case.index {
            assert_eq!(scene.text("", path), *text, "{}: {path} in the index", case.name);
        }
        assert_eq!(files(&scene), on_disk, "{}: no file on the disk is touched", case.name);
        assert_eq!(scene.git(&["log", "-1", "--format=%B"]).trim(), MESSAGE);
        let left: Vec<_> = fs::read_dir(scene.root().join(".git"))
            .expect("a folder")
            .flatten()
            .map(|it| it.file_name())
            .collect();
        assert!(
            !left.iter().any(|it| it.to_string_lossy().contains("sheaf")),
            "{left:?}"
        );
        // A second time there is nothing to do, until the commit is gone.
        for (_, document) in outcome.documents {
            let commit = outcome.commit.clone().unwrap_or_default();
            let metadata = Map::from_iter([(COMMITTED.to_owned(), commit.into())]);
            scene.event(Event::DocumentUpdate { document, metadata });
        }
        let again = scene.preview(case.accepted).await;
        assert_eq!(
            again.problem, "the accepted changes are committed already",
            "{}",
            case.name
        );
    }
}

#[tokio::test]
async fn a_renamed_file_moves_and_keeps_its_mode() {
    let mut scene = Scene::new(&[("run.sh", "1\n2\n3\n")]);
    scene.git(&["update-index", "--chmod=+x", "run.sh"]);
    scene.git(&["commit", "-q", "-m", "mode"]);
    scene.git(&["checkout", "-q", "run.sh"]);
    scene.change("run.sh", Some("1\nII\n3\n"), Some("bin/go.sh"));
    scene.commit(&[0]).await.expect("a commit");
    assert_eq!(
        scene.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD"]),
        "100755 bin/go.sh\n"
    );
    assert_eq!(scene.text("HEAD", "bin/go.sh"), "1\nII\n3\n");
    assert_eq!(scene.git(&["status", "--short"]), "");
    // An edit keeps it, too; a new file has that of the disk.
    scene.change("bin/go.sh", Some("1\n2\n3\n"), None);
    scene.change("new.sh", Some("x\n"), None);
    process::Command::new("chmod")
        .arg("+x")
        .arg(scene.root().join("new.sh"))
        .status()
        .expect("chmod");
    scene.commit(&[1, 2]).await.expect("a commit");
    assert_eq!(
        scene.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD"]),
        "100755 bin/go.sh\n100755 new.sh\n"
    );
    assert_eq!(scene.git(&["status", "--short"]), "");
}

#[tokio::test]
async fn what_cannot_be_committed_is_left_out_and_named() {
    let mut scene = Scene::new(&[
        ("a", TEN),
        (".gitignore", "*.log\n"),
        (".gitattributes", "*.bin filter=lfs\n"),
        ("x.bin", "1\n"),
    ]);
    git_in(scene.root(), &["init", "-q", "other"]);
    scene.change("a", Some(&TEN.replace('5', "V")), None);
    scene.change("a", Some(&TEN.replace('5', "five")), None);
    scene.change("run.log", Some("1\n"), None);
    scene.change("x.bin", Some("2\n"), None);
    scene.change("other/file", Some("2\n"), None);
    scene.change("good", Some("2\n"), None);
    let preview = scene.preview(&[1, 2, 3, 4, 5]).await;
    assert_eq!(
        preview.left_out,
        [
            "1.2 a: builds on a change that is neither accepted nor committed",
            "1.3 run.log: git ignores it",
            "1.4 x.bin: it has the attribute filter=lfs: commit it with git",
            "1.5 other/file: outside of this repository",
        ]
    );
    assert_eq!(
        (preview.problem.as_str(), preview.hunks, preview.files.len()),
        ("", 1, 1)
    );
    let outcome = scene.commit(&[1, 2, 3, 4, 5]).await.expect("a commit");
    assert_eq!(outcome.documents, scene.wanted(&[5]));
    assert_eq!(scene.git(&["show", "--name-only", "--format=", "HEAD"]), "good\n");
    let nothing = scene.preview(&[2]).await;
    assert_eq!(nothing.problem, "none of the accepted changes can be committed");
}

#[tokio::test]
async fn an_unfinished_merge_a_missing_name_and_no_repository_are_said() {
    let mut scene = Scene::new(&[("a", "1\n")]);
    scene.change("a", Some("2\n"), None);
    for (file, problem) in [
        ("MERGE_HEAD", "a merge is not finished: finish or abort it first"),
        (
            "CHERRY_PICK_HEAD",
            "a cherry-pick is not finished: finish or abort it first",
        ),
        ("rebase-merge/x", "a rebase is not finished: finish or abort it first"),
    ] {
        let head = scene.git(&["rev-parse", "HEAD"]);
        scene.put(&format!(".git/{file}"), &head);
        assert_eq!(scene.preview(&[0]).await.problem, problem);
        assert_eq!(scene.commit(&[0]).await.expect_err("not now"), problem);
        fs::remove_file(scene.root().join(".git").join(file)).expect("it was there");
        fs::remove_dir(scene.root().join(".git/rebase-merge")).ok();
    }
    scene.git(&["checkout", "-q", "--detach"]);
    let preview = scene.preview(&[0]).await;
    assert_eq!((preview.branch, preview.problem.as_str()), (None, ""));
    assert_eq!(preview.author, "Ada <ada@example.org>");
    scene.git(&["config", "--unset", "user.name"]);
    scene.git(&["config", "--unset", "user.email"]);
    scene.git(&["config", "user.useConfigOnly", "true"]);
    let knows = scene.preview(&[0]).await;
    // Unless this machine has a name in its own configuration or environment.
    if knows.author.is_empty() {
        assert!(knows.problem.starts_with("git does not know your name"), "{knows:?}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let error = Repository::open(folder.path()).await.expect_err("none");
    assert_eq!(error.to_string(), "this folder is not in a git repository");
}

#[tokio::test]
async fn hooks_run_when_it_is_committed_and_only_then() {
    let mut scene = Scene::new(&[("a", "1\n")]);
    scene.change("a", Some("2\n"), None);
    let hook = scene.root().join(".git/hooks/pre-commit");
    scene.put(
        ".git/hooks/pre-commit",
        "#!/bin/sh\ntouch ran\necho 'tests fail' >&2\nexit 1\n",
    );
    assert_eq!(
        scene.preview(&[0]).await.hooks,
        Vec::<String>::new(),
        "it is not executable"
    );
    process::Command::new("chmod")
        .arg("+x")
        .arg(&hook)
        .status()
        .expect("chmod");
    let before = scene.state();
    assert_eq!(scene.preview(&[0]).await.hooks, ["pre-commit"]);
    assert!(!scene.root().join("ran").exists());
    let outcome = scene.commit(&[0]).await.expect("git ran");
    assert_eq!((outcome.commit, outcome.output.as_str()), (None, "tests fail"));
    fs::remove_file(scene.root().join("ran")).expect("it ran");
    assert_eq!(scene.state(), before, "nothing is lost");
    // One that changes what is committed: the index follows.
    scene.put(".git/hooks/pre-commit", "#!/bin/sh\necho formatted > a\ngit add a\n");
    scene.commit(&[0]).await.expect("git ran");
    assert_eq!(scene.text("HEAD", "a"), "formatted\n");
    assert_eq!(scene.git(&["status", "--short"]), "");
}

#[tokio::test]
async fn a_state_that_was_not_shown_is_not_committed() {
    let mut scene = Scene::new(&[("a", "1\n"), ("b", "1\n")]);
    scene.change("a", Some("2\n"), None);
    let (early, accepted) = scene.accepted(&[0]).await;
    let request = CommitRequest {
        documents: scene.wanted(&[0]),
        message: MESSAGE.to_owned(),
        state: scene.preview(&[0]).await.state,
    };
    scene.put("b", "2\n");
    scene.git(&["commit", "-q", "-m", "somebody else", "--", "b"]);
    let late = Repository::open(scene.root()).await.expect("a repository");
    for repository in [late, early] {
        let error = commit::commit(&repository, &accepted, &request, "short", |_| {})
            .await
            .expect_err("another state");
        assert_eq!(
            error.to_string(),
            "the repository has changed meanwhile: look at the changes again"
        );
    }
    assert_eq!(scene.text("HEAD", "b"), "2\n", "nobody's commit is undone");
    let preview = scene.preview(&[0]).await;
    scene.git(&["checkout", "-q", "-b", "other"]);
    assert_ne!(
        scene.preview(&[0]).await.state,
        preview.state,
        "the card names the branch"
    );
}

#[tokio::test]
async fn one_commit_runs_at_a_time() {
    let mut scene = Scene::new(&[("a", TEN)]);
    scene.change("a", Some("0\n1\n2\n3\n4\n5\n6\n7\n8\n9\nten\n"), None);
    // The first waits in its hook; another one would not.
    scene.hook(
        "pre-commit",
        "[ -e started ] && exit 0\ntouch started\nuntil [ -e gate ]; do sleep 0.02; done",
    );
    let started = async {
        while !scene.root().join("started").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let second = scene.commit(&[1]).await;
        scene.put("gate", "");
        second
    };
    let (first, second) = tokio::join!(scene.commit(&[0]), started);
    assert_eq!(
        second.expect_err("not now"),
        "a commit is running: wait until its hooks have ended"
    );
    assert!(first.expect("git ran").commit.is_some());
    assert_eq!(scene.text("HEAD", "a"), format!("0\n{TEN}"));
    assert!(scene.commit(&[1]).await.expect("git ran").commit.is_some());
}

/// A hook that runs after the commit, and does not end before `gate` is there.
const WAITS: &str = "touch started\nuntil [ -e gate ]; do sleep 0.02; done";

async fn exists(path: &Path) {
    while !path.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_commit_is_made_when_head_has_moved_however_git_ends() {
    for (name, hook, said) in [
        ("it is stopped", WAITS, "the command `git` was stopped"),
        ("it fails", "echo oh no; exit 1", "oh no"),
        ("it kills git", "touch started; kill -9 $PPID; sleep 100", ""),
    ] {
        let mut scene = Scene::new(&[("a", TEN)]);
        scene.change("a", Some("0\n1\n2\n3\n4\n5\n6\n7\n8\n9\nten\n"), None);
        scene.hook("post-commit", hook);
        let stops = async {
            if hook == WAITS {
                exists(&scene.root().join("started")).await;
                let folder = Repository::open(scene.root()).await.expect("a repository").folder;
                commit::stop(|it| it == folder).await;
            }
        };
        let (outcome, ()) = tokio::join!(scene.commit(&[0]), stops);
        let outcome = outcome.expect(name);
        assert!(outcome.commit.is_some(), "{name}");
        assert!(outcome.output.contains(said), "{name}: {}", outcome.output);
        assert_eq!(outcome.documents.len(), 1, "{name}");
        assert_eq!(scene.git(&["diff", "--cached"]), "", "{name}: nothing is staged");
        assert!(
            !scene.git(&["notes", "--ref=sheaf", "show", "HEAD"]).is_empty(),
            "{name}"
        );
    }
}

#[tokio::test]
async fn the_index_follows_while_a_hook_runs_and_when_it_replaces_the_commit() {
    let mut scene = Scene::new(&[("a", TEN)]);
    scene.change("a", Some("0\n1\n2\n3\n4\n5\n6\n7\n8\n9\nten\n"), None);
    let amends = "git commit -q --amend --no-verify -m amended";
    scene.hook("post-commit", &format!("[ -e gate ] && exit 0\n{WAITS}\n{amends}"));
    let state = scene.preview(&[0]).await.state;
    let (repository, collected) = scene.accepted(&[0]).await;
    let request = CommitRequest {
        documents: scene.wanted(&[0]),
        message: MESSAGE.to_owned(),
        state,
    };
    let mut made = Vec::new();
    let first = |outcome: &CommitOutcome| {
        if made.is_empty() {
            assert_eq!(scene.git(&["diff", "--cached"]), "", "nothing is staged");
            scene.put("gate", "");
        }
        made.push(outcome.commit.clone());
    };
    let outcome = commit::commit(&repository, &collected, &request, "short", first).await;
    let outcome = outcome.expect("git ran");
    assert_eq!(made.len(), 2);
    assert_ne!(made[0], made[1]);
    assert_eq!(made[1], outcome.commit);
    assert_eq!(scene.git(&["log", "-1", "--format=%s"]), "amended\n");
    assert_eq!(scene.git(&["diff", "--cached"]), "", "nothing is staged");
    assert!(!scene.git(&["notes", "--ref=sheaf", "show", "HEAD"]).is_empty());
}

#[tokio::test]
async fn a_commit_of_somebody_else_is_not_taken_for_ours() {
    let mut scene = Scene::new(&[("a", "1\n"), ("b", "1\n")]);
    scene.change("a", Some("2\n"), None);
    scene.put("b", "2\n");
    // Git finds then that the branch has moved.
    let theirs = "unset GIT_INDEX_FILE; [ -e gate ] && exit 0; touch gate; git commit -q -m theirs -- b";
    scene.hook("pre-commit", theirs);
    let outcome = scene.commit(&[0]).await.expect("git ran");
    assert_eq!(outcome.commit, None, "{}", outcome.output);
    assert_eq!(scene.git(&["log", "-1", "--format=%s"]), "theirs\n");
    assert_eq!(scene.text("", "a"), "1\n");
}

#[tokio::test]
async fn what_the_person_has_staged_is_never_pruned() {
    let mut scene = Scene::new(&[("a", "1\n")]);
    scene.git(&["repack", "-q"]);
    scene.put("b", "2\n");
    scene.git(&["add", "b"]);
    scene.git(&["commit", "-q", "-m", "second"]);
    scene.git(&["repack", "-q"]);
    // More packs than this repository wants: git cleans up after the next commit, at once.
    for (name, value) in [
        ("gc.autoPackLimit", "1"),
        ("gc.autoDetach", "false"),
        ("maintenance.autoDetach", "false"),
    ] {
        scene.git(&["config", name, value]);
    }
    scene.stage("mine", "staged long ago\n");
    let object = scene.git(&["rev-parse", ":mine"]);
    let (folder, name) = object.trim().split_at(2);
    let object = scene.root().join(".git/objects").join(folder).join(name);
    let aged = process::Command::new("touch")
        .args(["-d", "40 days ago"])
        .arg(&object)
        .status();
    assert!(aged.expect("touch").success());
    scene.change("a", Some("2\n"), None);
    scene.commit(&[0]).await.expect("git ran");
    assert_eq!(scene.text("", "mine"), "staged long ago\n");
    assert!(object.exists());
}

#[tokio::test]
async fn the_card_names_all_that_runs() {
    let mut scene = Scene::new(&[
        ("a", "1\n"),
        ("other", "1\n"),
        (".gitattributes", "other filter=evil\n"),
    ]);
    scene.change("a", Some("2\n"), None);
    scene.git(&["config", "core.fsmonitor", "touch ran-fsmonitor; false"]);
    scene.git(&["config", "filter.evil.clean", "touch ran-filter; cat"]);
    scene.git(&["config", "filter.evil.smudge", "touch ran-smudge; cat"]);
    // Of the same size, so that git has to compare the content.
    scene.put("other", "2\n");
    let ran = |name: &str| fs::remove_file(scene.root().join(name)).is_ok();
    scene.git(&["status"]);
    assert!(ran("ran-fsmonitor") && ran("ran-filter"), "the traps are set");
    scene.put("other", "3\n");
    scene.hook("post-index-change", "touch ran-hook");
    let preview = scene.preview(&[0]).await;
    assert_eq!(preview.hooks, ["post-index-change", "filter evil"]);
    let all = ["ran-fsmonitor", "ran-hook", "ran-filter", "ran-smudge"];
    assert_eq!(all.map(ran), [false; 4], "a preview runs nothing");
    assert!(scene.commit(&[0]).await.expect("git ran").commit.is_some());
    assert_eq!(all.map(ran), [false, true, true, false]);
}

/// CPU time of this thread so far.
#[cfg(target_os = "linux")]
fn spent() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("a number");
    Duration::from_nanos(text.split(' ').next().and_then(|it| it.parse().ok()).expect("a number"))
}

/// The thread of the screen waits for the answers, and does none of the work.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn files_are_compared_on_another_thread() {
    let count = 60_000;
    let text = |word: &str| -> String {
        let line = |it: u32| {
            if it.is_multiple_of(2) {
                format!("{it}\n")
            } else {
                format!("{word} {it}\n")
            }
        };
        (0..count).map(line).collect()
    };
    let mut scene = Scene::new(&[("a", &text("first"))]);
    scene.put("a", &text("mine"));
    scene.change("a", Some(&text("mine").replace("\n4000\n", "\nagent\n")), None);
    let repository = Repository::open(scene.root()).await.expect("a repository");
    let (_, accepted) = scene.accepted(&[0]).await;
    let before = spent();
    hunks(&text("first"), &text("mine"));
    let work = spent().saturating_sub(before);
    assert!(work > Duration::from_millis(100), "there is much to compare: {work:?}");
    let before = spent();
    super::changes::documents(&repository, &scene.workspace)
        .await
        .expect("changes");
    let diff = spent().saturating_sub(before);
    let before = spent();
    commit::preview(&repository, &accepted, "short")
        .await
        .expect("a preview");
    let preview = spent().saturating_sub(before);
    let before = spent();
    commit::patch(&repository, &accepted).await.expect("a patch");
    let patch = spent().saturating_sub(before);
    for (name, spent) in [("diff", diff), ("preview", preview), ("patch", patch)] {
        assert!(spent < work / 2, "{name}: {spent:?} here, the work is {work:?}");
    }
}

#[tokio::test]
async fn line_ends_that_git_converts_are_converted() {
    let mut scene = Scene::new(&[(".gitattributes", "* text=auto\n"), ("a", "1\n2\n")]);
    scene.put("a", "1\r\n2\r\n");
    scene.change("a", Some("1\nII\n"), None);
    scene.put("new", "");
    fs::remove_file(scene.root().join("new")).expect("it was there");
    scene.change("new", Some("1\r\n"), None);
    scene.commit(&[0, 1]).await.expect("a commit");
    assert_eq!(scene.text("HEAD", "a"), "1\nII\n");
    assert_eq!(scene.text("HEAD", "new"), "1\n");
    assert_eq!(scene.git(&["status", "--short"]), "");
}

#[tokio::test]
async fn a_note_says_who_brought_each_hunk() {
    let mut scene = Scene::new(&[("a", TEN)]);
    scene.change("a", Some("0\n1\n2\n3\n4\n5\n6\n7\n8\n9\nten\n"), None);
    scene.commit(&[0, 1]).await.expect("a commit");
    let note = scene.git(&["notes", "--ref", note::REF, "show", "HEAD"]);
    assert_eq!(
        note,
        "{\"file\":\"a\",\"lines\":\"1-1\",\"address\":\"1.1\",\"model\":\"m-1\",\"message\":\"make it better\"}\n\
         {\"file\":\"a\",\"lines\":\"11-11\",\"address\":\"1.2\",\"model\":\"m-1\",\"message\":\"make it better\"}\n"
    );
    // The line has moved since, in a change that is not committed.
    let path = scene.root().join("a");
    let text = fs::read_to_string(&path)
        .expect("text")
        .replace("0\n1\n", "new\n0\n1\n");
    let told = note::of_line(&path, text.as_bytes(), 12)
        .await
        .expect("git works")
        .expect("a note");
    assert_eq!(
        (told.line.address.as_str(), told.line.message.as_str()),
        ("1.2", "make it better")
    );
    assert_eq!(note::of_line(&path, text.as_bytes(), 5).await.expect("git works"), None);
    assert_eq!(note::of_line(&path, text.as_bytes(), 1).await.expect("git works"), None);
}

#[test]
fn what_a_note_holds_is_the_setting() {
    let hunk = super::accepted::AcceptedHunk {
        turn: Turn(7),
        document: "d".into(),
        address: "7.3".to_owned(),
        model: None,
        asked: "\n  use sk-proj-abcdefghijklmnopqrstuvwxyz0123456789 \nand more".to_owned(),
        path: "a".to_owned(),
        why_not: None,
    };
    let made = super::stage::Made {
        path: "a".to_owned(),
        operation: Operation::Delete,
        lines: 0..0,
        removed: 3,
        is_new: true,
    };
    let text = |level| {
        note::text(
            std::slice::from_ref(&hunk),
            [Some(std::slice::from_ref(&made))].into_iter(),
            level,
        )
    };
    assert_eq!(text("off"), None);
    let short = "{\"file\":\"a\",\"lines\":\"\",\"address\":\"7.3\",\"message\":\"use [redacted]\"}\n";
    assert_eq!(text("short").as_deref(), Some(short));
    assert!(text("full").is_some_and(|it| it.contains("and more") && !it.contains("sk-proj")));
}

#[tokio::test]
async fn the_trees_changes_are_documents() {
    let mut scene = Scene::new(&[("a", TEN), ("gone", "1\n"), (".gitignore", "*.log\n")]);
    scene.put("a", &TEN.replace('1', "I"));
    scene.put("new", "new\n");
    scene.put("x.log", "new\n");
    scene.put(".env", "KEY=1\n");
    fs::remove_file(scene.root().join("gone")).expect("it was there");
    let repository = Repository::open(scene.root()).await.expect("a repository");
    let found = super::changes::documents(&repository, &scene.workspace)
        .await
        .expect("changes");
    let facts = |it: &crate::protocol::Document| {
        let text = |name: &str| it.metadata[name].as_str().unwrap_or_default().to_owned();
        let line = it.metadata.get("diff").and_then(|it| it["startLine"].as_u64());
        format!(
            "{} {} {}",
            text("operation"),
            text("filePath"),
            line.unwrap_or_default()
        )
    };
    let found: Vec<String> = found.documents.iter().map(facts).collect();
    assert_eq!(found, ["edit a 1", "edit a 10", "delete gone 1", "create new 0"]);
    scene.change("a", Some("1\n"), None);
}

#[tokio::test]
async fn the_trees_changes_run_no_filter_of_the_repository() {
    for (name, problem) in [
        ("evil", None),
        (
            "a=b",
            Some("a filter of this repository cannot be switched off: use git diff"),
        ),
    ] {
        let scene = Scene::new(&[("a", "1\n"), (".gitattributes", &format!("* filter={name}\n"))]);
        scene.git(&["config", &format!("filter.{name}.clean"), "touch .git/ran; cat"]);
        let ran = || fs::remove_file(scene.root().join(".git/ran")).is_ok();
        // Of the same size, so that git has to compare the content.
        scene.put("a", "2\n");
        scene.git(&["diff"]);
        assert!(ran(), "{name}: the trap is set");
        scene.put("a", "3\n");
        let repository = Repository::open(scene.root()).await.expect("a repository");
        let found = super::changes::documents(&repository, &scene.workspace).await;
        assert!(!ran(), "{name}: something was run");
        assert_eq!(found.err().map(|it| it.to_string()).as_deref(), problem, "{name}");
    }
}
