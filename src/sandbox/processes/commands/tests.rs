//! Commands that run, print, hang, leave something behind, and end.

use std::{
    fs,
    process::Stdio,
    sync::{atomic::AtomicU64, mpsc},
};

use pretty_assertions::assert_eq;

use super::*;
use crate::sandbox::processes::running::{Ended, How};

/// Longer than anything below takes; only a test that fails waits for it.
const LONG: Duration = Duration::from_secs(30);

impl Commands {
    /// Begins a command and waits for its end. Dropping the future ends the command.
    async fn run(
        &self,
        spec: Spec,
        output: impl FnMut(&[u8]) + Send + 'static,
    ) -> Result<(Running, Ended), NotStarted> {
        let foreground = self.start(spec, output)?.foreground();
        let ended = foreground.running().ended().await;
        Ok((foreground.leave(), ended))
    }
}

struct Bench {
    folder: tempfile::TempDir,
    commands: Commands,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("logs");
        Self {
            commands: Commands::new(Ground::bare(folder.path()), Vec::new(), Some(logs), Shared::default()),
            folder,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn spec(&self, line: &str) -> Spec {
        Spec {
            line: line.replace("HERE", &self.path("").display().to_string()),
            directory: self.commands.directory(),
            permissions: Vec::new(),
            folders: Vec::new(),
            only_reads: false,
            limit: Some(LONG),
            variables: Vec::new(),
        }
    }

    fn start(&self, line: &str) -> Running {
        self.commands.start(self.spec(line), |_| {}).unwrap()
    }

    /// Returns the output, and the way it ended.
    async fn run(&self, line: &str) -> (String, How) {
        let (running, ended) = self.commands.run(self.spec(line), |_| {}).await.unwrap();
        (text(&running), ended.how)
    }

    /// The number in a file that a command writes.
    async fn number(&self, name: &str) -> Pid {
        until(|| fs::read_to_string(self.path(name)).is_ok_and(|it| it.ends_with('\n'))).await;
        let text = fs::read_to_string(self.path(name)).unwrap();
        Pid::from_raw(text.trim().parse().unwrap()).unwrap()
    }
}

fn text(running: &Running) -> String {
    let part = running.since(0);
    String::from_utf8_lossy(&[part.first, part.last].concat()).into_owned()
}

async fn until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < deadline, "it never came");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Dead, or a zombie that nobody has buried.
fn is_gone(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    rustix::process::test_kill_process(pid).is_err() || stat.rsplit(") ").next().is_some_and(|it| it.starts_with('Z'))
}

#[tokio::test]
async fn a_command_gives_its_output_in_order_and_its_code() {
    let bench = Bench::new();
    for (line, output, how) in [
        (
            "echo out; echo err >&2; echo more; exit 3",
            "out\nerr\nmore\n",
            How::Exited(3),
        ),
        ("true", "", How::Exited(0)),
        ("printf 'no end'", "no end", How::Exited(0)),
        ("cat; echo read", "read\n", How::Exited(0)),
        ("read -r line; echo \"code $?\"", "code 1\n", How::Exited(0)),
        ("set -e; false; echo never", "", How::Exited(1)),
        ("kill -SEGV $$", "", How::Killed(libc::SIGSEGV)),
        ("printf '\\xff\\xfe!'", "\u{fffd}\u{fffd}!", How::Exited(0)),
        ("cat <<'END'\n$HOME\nEND\n", "$HOME\n", How::Exited(0)),
        ("f() { echo in f; }\nf # and a comment", "in f\n", How::Exited(0)),
        (
            "[ -t 0 ] || [ -t 1 ] || echo no terminal",
            "no terminal\n",
            How::Exited(0),
        ),
        ("(: < /dev/tty) 2>/dev/null || echo none", "none\n", How::Exited(0)),
        ("exec echo replaced", "replaced\n", How::Exited(0)),
        ("ulimit -c", "0\n", How::Exited(0)),
        ("trap 'echo mine' EXIT; echo x", "x\nmine\n", How::Exited(0)),
    ] {
        assert_eq!(bench.run(line).await, (output.to_owned(), how), "{line}");
    }
    let (output, how) = bench.run("echo 'unclosed").await;
    assert!(output.contains("line 1:") && how == How::Exited(2), "{output}");
    let (output, how) = bench.run("no-such-command-at-all").await;
    assert!(output.contains("not found") && how == How::Exited(127), "{output}");
}

#[tokio::test]
async fn what_cannot_begin_says_why() {
    let bench = Bench::new();
    let folder = Spec {
        directory: bench.path("absent"),
        ..bench.spec("true")
    };
    for (spec, expected) in [
        (bench.spec("a\0b"), "the command holds a NUL character".to_owned()),
        (
            folder,
            format!("the folder `{}` does not exist", bench.path("absent").display()),
        ),
        (
            bench.spec(&"x".repeat(200_000)),
            format!("the command is longer than {LONGEST_LINE} bytes; write it to a file and run that"),
        ),
    ] {
        assert_eq!(bench.commands.start(spec, |_| {}).unwrap_err().to_string(), expected);
    }
    // The longest that is taken does begin.
    let longest = format!("echo $(( 1 + 1 )) #{}", "x".repeat(LONGEST_LINE));
    assert_eq!(
        bench.run(longest.get(..LONGEST_LINE).unwrap()).await,
        ("2\n".to_owned(), How::Exited(0))
    );
}

#[tokio::test]
async fn the_folder_is_told_and_variables_are_not_kept() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("a/b c")).unwrap();
    std::os::unix::fs::symlink(bench.path("a"), bench.path("link")).unwrap();
    let root = bench.path("").components().as_path().to_owned();
    for (line, expected) in [
        ("cd a/b\\ c", Some(bench.path("a/b c"))),
        ("cd link && true", Some(bench.path("a"))),
        ("cd a; exit 3", Some(bench.path("a"))),
        ("(cd a)", Some(root.clone())),
        ("export FOO=1", Some(root.clone())),
        ("pwd() { echo /etc; }; PWD=/etc", Some(root.clone())),
        ("echo /etc >&198; cd a", Some(bench.path("a"))),
        ("printf /etc >&198", None),
        ("cd a; exec true", None),
        ("cd a; kill -KILL $$", None),
        ("mkdir gone; cd gone; rmdir ../gone", None),
    ] {
        let ended = bench.commands.run(bench.spec(line), |_| {}).await.unwrap().1;
        assert_eq!(ended.directory, expected, "{line}");
    }
    assert_eq!(bench.run("echo [$FOO]").await.0, "[]\n");
}

#[tokio::test]
async fn the_environment_is_ours_to_say() {
    let bench = Bench::new();
    let spec = Spec {
        variables: vec![("EXTRA".to_owned(), "yes".to_owned())],
        ..bench
            .spec("env | cut -d= -f1 | sort | tr '\\n' ' '; stat -c %a \"$TMPDIR\"; mktemp; echo $EXTRA $SHEAF_SANDBOX")
    };
    let (running, _) = bench.commands.run(spec, |_| {}).await.unwrap();
    let text = text(&running);
    let mut lines = text.lines();
    let first = lines.next().unwrap();
    let allowed = [
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "PATH",
        "TMPDIR",
        "TERM",
        "PAGER",
        "GIT_PAGER",
        "GIT_TERMINAL_PROMPT",
        "GIT_EDITOR",
        "EDITOR",
        "VISUAL",
        "DEBIAN_FRONTEND",
        "SHEAF_COMMAND",
        "SHEAF_SANDBOX",
        "EXTRA",
        "PWD",
        "SHLVL",
        "_",
        "OLDPWD",
        "700",
    ];
    for name in first.split_whitespace() {
        assert!(allowed.contains(&name) || name.starts_with("LC_"), "{name}");
    }
    assert!(first.ends_with(" 700"), "{first}");
    let temporary = bench.commands.temporary().unwrap().to_owned();
    assert!(Path::new(lines.next().unwrap()).starts_with(&temporary));
    assert_eq!(lines.next(), Some("yes none"));
    drop(bench);
    assert!(!temporary.exists());
}

#[tokio::test]
async fn looking_at_what_a_command_has_made_holds_nobody_up() {
    let bench = Bench::new();
    let running = bench.start("echo $$ > HERE/pid; until [ -e HERE/go ]; do sleep 0.01; done");
    let pid = bench.number("pid").await;
    // As if the folders took long to look at. Everything else here runs on this one thread, as with the screen.
    let ground = bench.commands.ground().clone();
    let (is_held, held) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let holder = std::thread::spawn(move || {
        ground.hold_up(|| {
            is_held.send(()).unwrap();
            released.recv_timeout(LONG).is_ok()
        })
    });
    held.recv().unwrap();
    fs::write(bench.path("go"), "").unwrap();
    until(|| is_gone(pid)).await;
    assert!(running.outcome().is_none(), "it is not known yet what it has made");
    assert!(
        bench.commands.ground().limit_reached().is_none(),
        "what is known can be asked for"
    );
    // Its number may be another's by now, and a stop sends nothing to that.
    until(|| running.0.family.group.is_gone()).await;
    running.stop();
    release.send(()).unwrap();
    assert_eq!(running.ended().await.how, How::Exited(0));
    assert!(holder.join().unwrap(), "it waited until it was told to go on");
}

#[tokio::test]
async fn what_a_command_leaves_behind_ends_with_it() {
    let bench = Bench::new();
    // In the group, in a group of its own, in a session of its own, and as a daemon; some hold the output open.
    for (name, line) in [
        ("background", "sleep 600 & echo $! > HERE/pid"),
        ("quiet", "sleep 600 >/dev/null 2>&1 </dev/null & echo $! > HERE/pid"),
        ("group", "set -m; sleep 600 & echo $! > HERE/pid"),
        (
            "session",
            "setsid sh -c 'echo $$ > HERE/pid; exec sleep 600' & until [ -s HERE/pid ]; do sleep 0.01; done",
        ),
        (
            "daemon",
            "(setsid sh -c 'echo $$ > HERE/pid; exec sleep 600' >/dev/null 2>&1 &) ; until [ -s HERE/pid ]; do sleep 0.01; done",
        ),
        (
            "deaf",
            "sh -c 'trap \"\" TERM HUP INT; echo $$ > HERE/pid; sleep 600' & until [ -s HERE/pid ]; do sleep 0.01; done",
        ),
    ] {
        fs::remove_file(bench.path("pid")).ok();
        let (_, how) = bench.run(&format!("{line}; echo done")).await;
        assert_eq!(how, How::Exited(0), "{name}");
        let pid = bench.number("pid").await;
        until(|| is_gone(pid)).await;
    }
}

#[tokio::test]
async fn a_command_that_does_not_listen_is_ended() {
    let bench = Bench::new();
    for line in [
        "trap '' TERM; echo $$ > HERE/pid; while :; do sleep 0.05; done",
        "sh -c 'trap \"\" TERM; echo $$ > HERE/pid; while :; do sleep 0.05; done'",
    ] {
        let running = bench.start(line);
        let pid = bench.number("pid").await;
        running.stop();
        let ended = running.ended().await;
        assert_eq!((ended.how, ended.directory), (How::Cancelled, None));
        until(|| is_gone(pid)).await;
        fs::remove_file(bench.path("pid")).unwrap();
    }
}

#[tokio::test]
async fn a_limit_ends_a_command_and_lets_it_say_goodbye() {
    let bench = Bench::new();
    let spec = Spec {
        limit: Some(Duration::from_millis(50)),
        ..bench.spec("sleep 600")
    };
    let (_, ended) = bench.commands.run(spec, |_| {}).await.unwrap();
    assert_eq!(ended.how, How::TimedOut);

    let line = "trap 'sleep 0.1; echo bye; exit 0' TERM; echo hello; while :; do sleep 0.02; done";
    let running = bench.start(line);
    running.news(0).await;
    running.0.stop(How::TimedOut);
    assert_eq!(running.ended().await.how, How::TimedOut);
    let text = text(&running);
    assert!(text.starts_with("hello\n") && text.ends_with("bye\n"), "{text}");
}

#[tokio::test]
async fn letting_go_asks_a_command_to_end_at_once() {
    let bench = Bench::new();
    // It says itself that it was asked, so that no clock is needed.
    let running =
        bench.start("trap 'echo asked > HERE/asked; exit 0' TERM; echo $$ > HERE/pid; while :; do sleep 0.01; done");
    let pid = bench.number("pid").await;
    let foreground = running.clone().foreground();
    assert!(running.outcome().is_none());
    drop(foreground);
    assert_eq!(running.ended().await.how, How::Cancelled);
    assert!(bench.path("asked").exists());
    until(|| is_gone(pid)).await;
    // Whom nobody waits for goes on.
    let running = bench.start("sleep 600").foreground().leave();
    assert!(running.outcome().is_none());
    running.stop();
    assert_eq!(running.ended().await.how, How::Cancelled);
}

#[tokio::test]
async fn a_flood_is_bounded_whole_on_the_disk_and_can_be_stopped() {
    let bench = Bench::new();
    let count = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&count);
    let spec = bench.spec("head -c 100000000 /dev/zero | tr '\\0' x; echo end");
    let (running, ended) = bench
        .commands
        .run(spec, move |piece| {
            counter.fetch_add(piece.len() as u64, Ordering::Relaxed);
        })
        .await
        .unwrap();
    assert_eq!(
        (ended.how, count.load(Ordering::Relaxed)),
        (How::Exited(0), 100_000_004)
    );
    let part = running.since(0);
    assert!(part.first.len() + part.last.len() <= 1 << 20);
    assert!(part.last.ends_with(b"xxend\n"));
    assert_eq!(
        part.first.len() as u64 + part.skipped + part.last.len() as u64,
        100_000_004
    );
    let log = running.log();
    let log = log.unwrap_or_else(|| panic!("there is no log: {:?}", running.log_failure()));
    assert_eq!(fs::metadata(&log).unwrap().len(), 100_000_004);
    assert!(log.starts_with(bench.path("logs")));

    let running = bench.start("yes");
    running.news(1 << 20).await;
    running.stop();
    assert_eq!(running.ended().await.how, How::Cancelled);
}

#[tokio::test]
async fn output_is_given_while_it_comes_and_read_on_later() {
    let bench = Bench::new();
    let (send, receive) = mpsc::channel();
    let spec = bench.spec("echo one; until [ -e HERE/go ]; do sleep 0.01; done; echo two");
    let running = bench
        .commands
        .start(spec, move |piece| send.send(piece.to_vec()).unwrap())
        .unwrap();
    running.news(0).await;
    assert_eq!(receive.recv().unwrap(), b"one\n");
    assert_eq!(running.unread().first, b"one\n");
    let rest = running.unread();
    assert!(rest.first.is_empty() && rest.last.is_empty() && rest.skipped == 0);
    assert_eq!(running.outcome(), None);
    fs::write(bench.path("go"), "").unwrap();
    assert_eq!(running.ended().await.how, How::Exited(0));
    assert_eq!(running.unread().first, b"two\n");
    assert_eq!(bench.commands.get(running.id()).unwrap().line(), running.line());
    assert!(bench.commands.get("cmd-99").is_none());
}

#[tokio::test]
async fn the_end_of_the_conversation_ends_all_commands() {
    let bench = Bench::new();
    bench.start("trap '' TERM; (setsid sh -c 'echo $$ > HERE/stray; exec sleep 600' &); echo $$ > HERE/pid; while :; do sleep 0.05; done");
    let (pid, stray) = (bench.number("pid").await, bench.number("stray").await);
    let Bench { folder, commands } = bench;
    drop(commands);
    until(|| is_gone(pid) && is_gone(stray)).await;
    drop(folder);
}

#[test]
fn the_end_of_the_runtime_ends_all_commands() {
    let bench = Bench::new();
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let first = runtime();
    let pid = first.block_on(async {
        bench.start("trap '' TERM; echo $$ > HERE/pid; while :; do sleep 0.05; done");
        bench.number("pid").await
    });
    drop(first);
    runtime().block_on(until(|| is_gone(pid)));
    assert_eq!(bench.commands.all()[0].outcome().unwrap().how, How::Cancelled);
}

/// No test by itself: the program that the next one kills.
#[test]
#[ignore = "runs inside of another test"]
fn a_program_with_commands() {
    let folder = PathBuf::from(std::env::var_os("SHEAF_TEST_FOLDER").unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let commands = Commands::new(Ground::bare(&folder), Vec::new(), None, Shared::default());
        let line = "trap '' TERM; (setsid sh -c 'echo $$ > stray; exec sleep 600' >/dev/null 2>&1 &); \
                    echo $TMPDIR > temporary; echo $$ > pid; while :; do sleep 0.05; done";
        let spec = Spec {
            line: line.to_owned(),
            directory: folder.clone(),
            permissions: Vec::new(),
            folders: Vec::new(),
            only_reads: false,
            limit: None,
            variables: Vec::new(),
        };
        commands.run(spec, |_| {}).await.unwrap();
    });
}

#[tokio::test]
async fn a_killed_program_takes_its_commands_along() {
    let bench = Bench::new();
    let mut program = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["a_program_with_commands", "--ignored", "--quiet"])
        .env("SHEAF_TEST_FOLDER", bench.path(""))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let (pid, stray) = (bench.number("pid").await, bench.number("stray").await);
    let temporary = fs::read_to_string(bench.path("temporary")).unwrap();
    assert!(!is_gone(pid) && Path::new(temporary.trim()).is_dir());
    program.kill().unwrap();
    program.wait().unwrap();
    until(|| is_gone(pid) && is_gone(stray) && !Path::new(temporary.trim()).exists()).await;
}

#[test]
fn a_repository_is_new_unless_it_was_there_when_first_asked() {
    let bench = Bench::new();
    let make = |name: &str| {
        for folder in ["objects", "refs"] {
            fs::create_dir_all(bench.path(name).join(".git").join(folder)).unwrap();
        }
        fs::write(bench.path(name).join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    };
    make("old");
    fs::create_dir_all(bench.path("old/src")).unwrap();
    let is_new = |name: &str, is_mixed| bench.commands.is_new_repository(&bench.path(name), is_mixed);
    assert!(!is_new("old", false));
    make("new");
    for (name, alone, mixed) in [
        ("old", false, false),
        // A program of the same line may make one here, below the one that is known.
        ("old/src", false, true),
        ("new", true, true),
        ("none", true, true),
    ] {
        assert_eq!((is_new(name, false), is_new(name, true)), (alone, mixed), "{name}");
    }
}

#[tokio::test]
async fn a_service_is_found_in_the_path_that_it_is_given_or_in_the_usual_one() {
    use crate::sandbox::processes::service::{ServiceError, ServiceSpec};
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::new();
    let folder = bench.path("tools");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("only-here"), "#!/bin/sh\nexit 7\n").unwrap();
    fs::set_permissions(folder.join("only-here"), fs::Permissions::from_mode(0o755)).unwrap();
    let spec = |program: &str, variables: &[(&str, &str)]| ServiceSpec {
        program: program.to_owned(),
        arguments: Vec::new(),
        directory: bench.path(""),
        variables: variables.iter().map(|it| (it.0.to_owned(), it.1.to_owned())).collect(),
        network: false,
        folders: Vec::new(),
        has_own_cache: false,
    };
    let path = folder.to_str().unwrap();
    for variables in [&[][..], &[("OTHER", path)]] {
        let refused = bench.commands.serve(spec("only-here", variables)).map(drop);
        assert!(matches!(refused, Err(ServiceError::Absent(_))), "{refused:?}");
    }
    for (program, variables, expected) in [
        (
            "only-here",
            &[("PATH", path), ("OTHER", "/nowhere")][..],
            "exit status: 7",
        ),
        ("true", &[("OTHER", "/nowhere")], "exit status: 0"),
    ] {
        let (mut service, _streams) = bench.commands.serve(spec(program, variables)).unwrap();
        assert_eq!(service.ended().await, expected, "{program}");
    }
}
