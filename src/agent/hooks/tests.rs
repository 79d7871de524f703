//! Real programs as hooks: whatever one does, there is an answer.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::extensions::{
    Owner, Surroundings,
    hooks::{Dialect, ToolCall, find_hooks},
};

struct Bench {
    folder: tempfile::TempDir,
    hooks: Arc<Hooks>,
    news: Inbox<HookNews>,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        let workspace = Arc::new(Workspace::open(folder.path()).unwrap());
        let (hooks, news) = Hooks::new(Some(workspace));
        hooks.begin(Common {
            root: folder.path().to_string_lossy().into_owned(),
            ..Common::default()
        });
        Self { folder, hooks, news }
    }

    /// A hook before each call of a tool.
    fn hook(&self, command: &str) -> Hook {
        Hook {
            point: Point::ToolBefore,
            dialect: Dialect::Claude,
            event: "PreToolUse".to_owned(),
            command: command.to_owned(),
            matcher: None,
            condition: None,
            timeout: Duration::from_secs(20),
            fails_closed: false,
            loop_limit: 5,
            is_detached: false,
            is_once: false,
            isolation: if Commands::tier() == Tier::None {
                Isolation::Free
            } else {
                Isolation::Sandbox
            },
            path: "hooks.json".to_owned(),
            owner: Owner::User,
            directory: self.folder.path().to_owned(),
            folder: None,
            variables: Vec::new(),
        }
    }

    fn set(&self, hooks: Vec<Hook>) {
        self.hooks.set(HookSet {
            hooks,
            ..HookSet::default()
        });
    }

    async fn run(&self) -> Merged {
        let call = ToolCall {
            name: "run_terminal_cmd".to_owned(),
            arguments: json!({ "command": "git push" }).as_object().cloned().unwrap(),
            ..ToolCall::default()
        };
        self.hooks.run(Occasion::ToolBefore(call)).await
    }

    fn lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(news) = self.news.try_recv() {
            match news {
                HookNews::Line(line) | HookNews::Halt(line) | HookNews::KeepsHistory(line) => lines.push(line),
                HookNews::Ran { runs, .. } => lines.extend(runs.iter().map(ToString::to_string)),
            }
        }
        lines
    }
}

#[tokio::test]
async fn a_hook_gets_its_input_and_its_variables() {
    let bench = Bench::new();
    let check = r#"input=$(cat); case "$input" in *'"command":"git push"'*) ;; *) echo "$input" >&2; exit 2;; esac
        [ "$CLAUDE_PROJECT_DIR" = "$PWD" ] || { echo "$CLAUDE_PROJECT_DIR is not $PWD" >&2; exit 2; }
        echo '{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"sure?"}}' # end"#;
    bench.set(vec![bench.hook(check)]);
    let merged = bench.run().await;
    assert_eq!(
        (merged.decision, merged.reason.as_str()),
        (Some(Decision::Ask), "sure?")
    );
}

#[tokio::test]
async fn what_a_hook_sets_reaches_the_hooks_of_its_own_file_only() {
    let bench = Bench::new();
    let script = bench.folder.path().join("quiet.sh");
    std::fs::write(&script, "exit 0\n").unwrap();
    let env = json!({ "env": { "BASH_ENV": script, "GIVEN": "yes" } });
    let begin = Hook {
        point: Point::SessionStart,
        dialect: Dialect::Cursor,
        event: "sessionStart".to_owned(),
        path: "theirs.json".to_owned(),
        ..bench.hook(&format!("echo '{env}'"))
    };
    let guard = bench.hook("echo no >&2; exit 2");
    let theirs = Hook {
        path: "theirs.json".to_owned(),
        ..bench.hook(r#"unset BASH_ENV; [ "$GIVEN" = yes ] && exit 2"#)
    };
    for (judge, decision) in [(guard, Some(Decision::Deny)), (theirs, None)] {
        bench.set(vec![begin.clone(), judge]);
        let source = "startup".to_owned();
        bench.hooks.run(Occasion::SessionStart { source }).await;
        assert_eq!(
            bench.run().await.decision,
            decision,
            "its own file's BASH_ENV ends it at once"
        );
    }
}

#[tokio::test]
async fn whatever_a_hook_does_there_is_an_answer() {
    let mut bench = Bench::new();
    for (command, decision, line) in [
        ("echo no >&2; exit 2", Some(Decision::Deny), "denied"),
        ("echo oops >&2; exit 1", None, "exit code 1: oops"),
        ("./no-such-program", None, "was not found (exit code 127)"),
        ("kill -9 $$", None, "ended by signal 9"),
        ("kill -9 $BASHPID", None, "ended by signal 9"),
        ("sleep 60", None, "took longer than 1 s"),
        ("trap '' TERM; sleep 60", None, "took longer than 1 s"),
        ("yes | head -c 3000000", None, "printed more than 1048576 bytes"),
        ("echo '{broken'", None, "its output is not JSON"),
    ] {
        bench.set(vec![Hook {
            timeout: Duration::from_secs(1),
            ..bench.hook(command)
        }]);
        let merged = tokio::time::timeout(Duration::from_secs(30), bench.run()).await;
        let merged = merged.unwrap_or_else(|_| panic!("{command} hangs"));
        assert_eq!(merged.decision, decision, "{command}: {merged:?}");
        let lines = bench.lines().join("\n");
        assert!(lines.contains(line), "{command}: {lines}");
    }
    bench.set(vec![Hook {
        fails_closed: true,
        ..bench.hook("exit 1")
    }]);
    assert_eq!(bench.run().await.decision, Some(Decision::Deny));
}

#[tokio::test]
async fn commands_cannot_answer_for_a_hook_that_runs_without_the_sandbox() {
    let bench = Bench::new();
    let hook = Hook {
        isolation: Isolation::Free,
        ..bench.hook("for it in 0 1; do readlink -f /proc/self/fd/$it >&2; done; readlink -f /proc/$$/fd/0 >&2; exit 2")
    };
    bench.set(vec![hook]);
    let reason = bench.run().await.reason;
    let shared = bench
        .hooks
        .workspace
        .as_ref()
        .unwrap()
        .commands()
        .temporary_folder()
        .unwrap();
    assert!(reason.contains("/sheaf-hook-"), "{reason}");
    assert!(!reason.contains(shared.to_str().unwrap()), "{reason}");
    let folder = reason.lines().find(|it| it.contains("/sheaf-hook-")).unwrap();
    assert!(!Path::new(folder).parent().unwrap().exists(), "{folder}");
}

#[tokio::test]
async fn hooks_of_an_occasion_run_beside_each_other() {
    let bench = Bench::new();
    // Each waits for the other one.
    let wait = "touch one; until [ -e two ]; do sleep 0.01; done; exit 2";
    let other = "touch two; until [ -e one ]; do sleep 0.01; done; exit 0";
    bench.set(vec![bench.hook(wait), bench.hook(other)]);
    assert_eq!(bench.run().await.decision, Some(Decision::Deny));
}

#[tokio::test]
async fn a_hook_in_the_sandbox_writes_nothing_outside_of_the_workspace() {
    if Commands::tier() != Tier::Full {
        return;
    }
    let outside = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let bench = Bench::new();
    let trace = outside.path().join("trace");
    bench.set(vec![
        bench.hook(&format!("touch {0} 2>/dev/null; touch made; exit 0", trace.display())),
    ]);
    let changed = Merged {
        runs: Vec::new(),
        ..bench.run().await
    };
    assert_eq!(changed, Merged::default());
    assert!(!trace.exists() && bench.folder.path().join("made").exists());
}

#[tokio::test]
async fn a_hook_that_is_called_once_is_not_called_again() {
    let bench = Bench::new();
    bench.set(vec![Hook {
        is_once: true,
        ..bench.hook("exit 2")
    }]);
    assert_eq!(bench.run().await.decision, Some(Decision::Deny));
    assert_eq!(bench.run().await.decision, None);
}

#[tokio::test]
async fn a_hook_whose_script_was_changed_does_not_run_and_is_not_gone() {
    let bench = Bench::new();
    let root = bench.folder.path();
    std::fs::create_dir(root.join(".cursor")).unwrap();
    let file = r#"{"hooks":{"preToolUse":[{"command":"sh check.sh"}]}}"#;
    std::fs::write(root.join(".cursor/hooks.json"), file).unwrap();
    std::fs::write(root.join("check.sh"), "exit 0\n").unwrap();
    let around = Surroundings {
        workspace: Some(root.to_owned()),
        ..Surroundings::default()
    };
    let isolation = bench.hook("").isolation;
    bench.hooks.set(find_hooks(&around, (&[], ""), isolation, &|_, _| true));
    let changed = Merged {
        runs: Vec::new(),
        ..bench.run().await
    };
    assert_eq!(changed, Merged::default());
    std::fs::write(root.join("check.sh"), "touch ran; exit 0\n").unwrap();
    let merged = bench.run().await;
    assert_eq!(merged.decision, Some(Decision::Deny));
    assert!(merged.reason.contains("/trust asks about it") && !root.join("ran").exists());
}

#[test]
fn a_changed_input_keeps_what_it_does_not_name() {
    let object = |value: Value| value.as_object().cloned().unwrap();
    let before = object(json!({ "command": "a", "is_background": false, "working_directory": "sub" }));
    let synonyms: &[(&str, &[&str])] = &[("command", &["cmd"]), ("working_directory", &["cwd"])];
    for (changed, want) in [
        (
            json!({ "command": "b" }),
            json!({ "command": "b", "is_background": false, "working_directory": "sub" }),
        ),
        (
            json!({ "cmd": "b", "cwd": "x" }),
            json!({ "cmd": "b", "cwd": "x", "is_background": false }),
        ),
    ] {
        assert_eq!(changed_input(synonyms, &before, &object(changed)), object(want));
    }
}
