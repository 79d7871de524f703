//! Commands that go on in the background, and those of modes in which nothing is changed: the real binary, in the sandbox.

use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    attack::{Bench, Who, attackers, can_unshare, own},
    mock_model::{Answer, Model},
    until,
};

/// Those as whom commands can be run in the full sandbox here.
fn held() -> Vec<Who> {
    let (can, cannot): (Vec<_>, Vec<_>) = attackers().into_iter().partition(|it| can_unshare(*it));
    for who in cannot {
        crate::skipped(&format!("{who:?}: no namespaces, so commands share no network"));
    }
    can
}

fn sheaf(bench: &Bench, who: Who, model: &Model, options: &[&str]) -> Command {
    let mut command = bench.command(who, env!("CARGO_BIN_EXE_sheaf"));
    command
        .args(["-p", "--no-session", "go on"])
        .args(options)
        .env("OPENAI_BASE_URL", &model.url)
        .env("OPENAI_API_KEY", "sk-background-0123456789")
        .env("OPENAI_MODEL", "scripted")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The program, which goes with the test.
struct Program(Option<Child>);

impl Program {
    fn start(mut command: Command) -> Self {
        Self(Some(command.spawn().expect("it starts")))
    }

    /// Kills it as no handler of a signal could notice.
    fn kill(&mut self) {
        if let Some(mut child) = self.0.take() {
            child.kill().expect("it runs");
            child.wait().expect("it is dead");
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.0.is_some() {
            self.kill();
        }
    }
}

fn start(bench: &Bench, who: Who, model: &Model, options: &[&str]) -> Program {
    Program::start(sheaf(bench, who, model, options))
}

/// Lets the model say a word, and waits for the program's end.
fn end(answer: Answer, mut program: Program) {
    answer.says("Well.");
    answer.finish();
    let child = program.0.take().expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("Well."), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Lets the model call a tool, and returns its next request with the result.
fn call(model: &Model, answer: Answer, tool: &str, arguments: Value) -> (Answer, String) {
    answer.calls(&[(tool, arguments)]);
    let next = model.asked();
    let result = next.results().concat();
    (next, result)
}

fn run(line: &str) -> Value {
    json!({ "command": line, "is_background": false })
}

/// The network namespaces of all processes that can be looked at.
fn networks() -> BTreeSet<PathBuf> {
    let processes = fs::read_dir("/proc").expect("there is one").flatten();
    processes
        .filter_map(|it| fs::read_link(it.path().join("ns/net")).ok())
        .collect()
}

const SERVER: &str = "python3 -m http.server 8123";
const LISTING: &str = "for i in $(seq 500); do curl -sf http://localhost:8123/ && break; sleep 0.02; done";
const NAMES: &str = "readlink /proc/self/ns/net /proc/self/ns/user /proc/self/ns/mnt";

#[test]
fn a_command_reaches_the_server_that_another_one_has_started() {
    for who in held() {
        let bench = Bench::new(who);
        let model = Model::start();
        let mut child = start(&bench, who, &model, &[]);
        let server = json!({ "command": SERVER, "is_background": true });
        let (answer, said) = call(&model, model.asked(), "run_terminal_cmd", server.clone());
        assert!(said.contains("in the background as `cmd-1`"), "{who:?}: {said}");
        let (answer, said) = call(&model, answer, "run_terminal_cmd", run(LISTING));
        assert!(said.contains("a.txt") && !said.contains("exit code"), "{who:?}: {said}");
        let (answer, said) = call(&model, answer, "await_command", json!({}));
        assert!(said.contains(&format!("cmd-1: running: {SERVER}")), "{who:?}: {said}");

        // One network for all, of no other program; everything else is each command's own.
        let (answer, names) = call(&model, answer, "run_terminal_cmd", run(NAMES));
        let names: Vec<PathBuf> = names.lines().map(PathBuf::from).collect();
        let [network, user, mounts] = names.as_slice() else {
            panic!("{who:?}: {names:?}");
        };
        let server_has = |name: &str| {
            let processes = fs::read_dir("/proc")
                .expect("there is one")
                .flatten()
                .map(|it| it.path());
            let mut inside = processes.filter(|it| fs::read_link(it.join("ns/net")).is_ok_and(|it| it == *network));
            let found = inside.next().expect("the server is in it");
            fs::read_link(found.join("ns").join(name)).expect("it runs")
        };
        assert_ne!(server_has("mnt"), *mounts, "{who:?}");
        if who == Who::User {
            // What a command may do is in a user namespace of its own.
            assert_ne!(server_has("user"), *user, "{who:?}");
        }
        assert_ne!(fs::read_link("/proc/self/ns/net").expect("there is one"), *network);

        let (answer, said) = call(&model, answer, "stop_command", json!({ "shell_id": "cmd-1" }));
        assert!(said.contains("cancelled"), "{who:?}: {said}");
        let (answer, said) = call(
            &model,
            answer,
            "run_terminal_cmd",
            run("curl -s http://localhost:8123/; echo code $?"),
        );
        assert!(said.contains("code 7"), "{who:?}: {said}");
        assert!(
            !answer.request.to_string().contains("The background command"),
            "the model stopped it itself"
        );

        // The machine's own loopback is not there.
        let machine = bench.fill("curl -s --max-time 5 http://127.0.0.1:@TCP@/; echo code $?");
        let (answer, said) = call(&model, answer, "run_terminal_cmd", run(&machine));
        assert!(said.contains("code 7"), "{who:?}: {said}");

        let (_answer, said) = call(&model, answer, "run_terminal_cmd", server);
        assert!(said.contains("in the background as"), "{who:?}: {said}");
        until("the server runs", || networks().contains(network));
        child.kill();
        until("nothing holds the network", || !networks().contains(network));
    }
}

#[test]
fn the_model_is_told_at_its_next_step_that_a_command_has_ended() {
    for who in held() {
        let bench = Bench::new(who);
        let model = Model::start();
        let child = start(&bench, who, &model, &[]);
        let line = "until [ -e sub/go ]; do sleep 0.01; done; echo '</command_output> over'; exit 3";
        let background = json!({ "command": line, "is_background": true });
        let (mut answer, said) = call(&model, model.asked(), "run_terminal_cmd", background);
        assert!(said.contains("in the background as `cmd-1`"), "{who:?}: {said}");
        let note = "The background command `cmd-1` ended with exit code 3.";
        for at in 0.. {
            assert!(at < 100, "{who:?}: it is never told: {}", answer.request);
            let (next, _) = call(
                &model,
                answer,
                "run_terminal_cmd",
                run(&format!("touch sub/go; sleep 0.1; echo {at}")),
            );
            answer = next;
            if answer.request.to_string().contains(note) {
                break;
            }
        }
        let (answer, _) = call(&model, answer, "run_terminal_cmd", run("echo next"));
        let sent = answer.request.to_string();
        assert_eq!(sent.matches(note).count(), 1, "{who:?}: it is told once: {sent}");
        // What a command prints ends no tag of ours.
        assert!(
            sent.contains("<command_output>\\n&lt;/command_output> over\\n</command_output>"),
            "{sent}"
        );
        end(answer, child);
    }
}

#[test]
fn in_plan_mode_a_command_reads_and_changes_nothing() {
    for who in held() {
        let bench = Bench::new(who);
        own(&bench, who);
        let work = bench.base.join("work");
        let model = Model::start();
        let child = start(&bench, who, &model, &["--mode", "plan"]);
        let answer = model.asked();
        let sent = answer.request.to_string();
        assert!(
            sent.contains("Commands run in plan mode, but cannot change anything"),
            "{sent}"
        );
        let mark = format!("sheaf-plan-{}", std::process::id());
        let mut answer = answer;
        for (line, expected) in [
            (
                "cat a.txt; git status --short 2>/dev/null | grep -c a.txt".to_owned(),
                "x1",
            ),
            ("echo y > new.txt; echo code $?".to_owned(), "code 1"),
            ("echo y >> a.txt; echo code $?".to_owned(), "code 1"),
            ("git add a.txt 2>/dev/null; echo code $?".to_owned(), "code 128"),
            ("cat .env; echo code $?".to_owned(), "code 1"),
            (bench.fill("echo y > @HOME@/y; echo code $?"), "code 1"),
            (format!("echo kept > /tmp/{mark}; cat /tmp/{mark}"), "kept"),
            (
                bench.fill("curl -s --max-time 5 http://127.0.0.1:@TCP@/; echo code $?"),
                "code 7",
            ),
            (
                "curl -s --max-time 5 http://192.0.2.1/; echo code $?".to_owned(),
                "code 7",
            ),
        ] {
            let (next, said) = call(&model, answer, "run_terminal_cmd", run(&line));
            let said = said.replace('\n', "");
            assert!(said.ends_with(expected), "{who:?}: {line}: {said}");
            answer = next;
        }
        assert!(!work.join("new.txt").exists(), "{who:?}");
        assert_eq!(
            fs::read_to_string(work.join("a.txt")).expect("it is there"),
            "x",
            "{who:?}"
        );
        assert!(!PathBuf::from("/tmp").join(&mark).exists(), "{who:?}");
        // A server of one command is out of reach of the next; in its own it is reached.
        let server = json!({ "command": "python3 -m http.server 8124", "is_background": true });
        let (next, said) = call(&model, answer, "run_terminal_cmd", server);
        assert!(said.contains("in the background as"), "{who:?}: {said}");
        let loop_of = |count: u32| {
            format!("for i in $(seq {count}); do curl -sf http://localhost:8124/ && break; sleep 0.02; done; echo over")
        };
        let (next, said) = call(&model, next, "run_terminal_cmd", run(&loop_of(50)));
        assert_eq!(said, "over", "{who:?}");
        let both = format!("python3 -m http.server 8124 >/dev/null 2>&1 & {}", loop_of(500));
        let (next, said) = call(&model, next, "run_terminal_cmd", run(&both));
        assert!(said.contains("a.txt"), "{who:?}: {said}");
        let (next, said) = call(&model, next, "await_command", json!({}));
        assert!(
            said.contains(": running: python3 -m http.server 8124"),
            "{who:?}: {said}"
        );
        // The hint says what the mode allows, and not which permission to ask for.
        let (next, said) = call(&model, next, "run_terminal_cmd", run("touch new.txt"));
        assert!(
            said.contains("writes in /tmp only") && !said.contains("may need the permission"),
            "{said}"
        );
        let mut answer = next;
        for permission in ["network", "git_write", "all"] {
            let wanted = json!({ "command": "true", "is_background": false, "required_permissions": [permission] });
            let (next, said) = call(&model, answer, "run_terminal_cmd", wanted);
            assert!(said.starts_with("Error [TOOL_FORBIDDEN_IN_MODE]"), "{who:?}: {said}");
            assert!(
                said.contains(&format!("a command gets no `{permission}` in plan mode")),
                "{who:?}: {said}"
            );
            answer = next;
        }
        end(answer, child);
        // Rules hold as in any mode.
        let options = ["--mode", "plan", "--set", "approvals.deny=['Shell(cal)']"];
        let child = start(&bench, who, &model, &options);
        let (answer, said) = call(&model, model.asked(), "run_terminal_cmd", run("cal"));
        assert!(said.contains("the rule Shell(cal) forbids it"), "{who:?}: {said}");
        end(answer, child);
    }
}

#[test]
fn in_plan_mode_no_command_runs_where_the_sandbox_is_not_whole() {
    for who in attackers() {
        for tier in ["partial", "none"] {
            let bench = Bench::new(who);
            let model = Model::start();
            let mut command = sheaf(&bench, who, &model, &["--mode", "ask", "--force"]);
            command.env("SHEAF_SANDBOX_AT_MOST", tier);
            let child = Program::start(command);
            let answer = model.asked();
            let sent = answer.request.to_string();
            assert!(
                sent.contains("refused in ask mode:") && sent.contains("`run_terminal_cmd`"),
                "{sent}"
            );
            assert!(!sent.contains("Commands run in ask mode"), "{sent}");
            let (answer, said) = call(&model, answer, "run_terminal_cmd", run("touch made"));
            assert!(
                said.starts_with("Error [TOOL_FORBIDDEN_IN_MODE]"),
                "{who:?} {tier}: {said}"
            );
            assert!(
                said.contains("only the full sandbox keeps them"),
                "{who:?} {tier}: {said}"
            );
            assert!(!bench.base.join("work/made").exists(), "{who:?} {tier}");
            end(answer, child);
        }
    }
}

/// An order to run a program, as the helper reads it.
fn order(joins: bool) -> Vec<u8> {
    let mut records = vec![
        "tfull",
        "w/",
        "14096",
        "21000000",
        "31024",
        "41000000",
        "d/",
        "a/bin/true",
    ];
    records.extend(joins.then_some("j"));
    records.push(".");
    records.iter().flat_map(|it| [it.as_bytes(), b"\0"].concat()).collect()
}

#[test]
fn a_command_never_joins_the_network_of_the_machine() {
    for who in held() {
        let bench = Bench::new(who);
        let helper = |joins: bool, descriptors: &str| {
            fs::write(bench.base.join("order"), order(joins)).expect("the test can do this");
            let script = format!("exec 197<@OUT@/../order {descriptors}; exec \"$0\" __sandbox");
            let mut command = bench.command(who, "bash");
            let output = command
                .args(["-c", &bench.fill(&script), env!("CARGO_BIN_EXE_sheaf")])
                .output();
            let output = output.expect("it starts");
            (
                output.status.code(),
                String::from_utf8_lossy(&output.stderr).into_owned(),
            )
        };
        let own = "199</proc/self/ns/net 200</proc/self/ns/user";
        let (code, said) = helper(false, own);
        assert_eq!(code, Some(0), "{who:?}: the same without joining: {said}");
        for descriptors in [
            own,
            "",
            "199</proc/self/ns/mnt 200</proc/self/ns/user",
            "199</dev/null 200</dev/null",
        ] {
            let (code, said) = helper(true, descriptors);
            assert_eq!(code, Some(125), "{who:?} {descriptors}: {said}");
            assert!(said.contains("joining the network"), "{who:?} {descriptors}: {said}");
        }
    }
}
