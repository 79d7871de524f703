//! Signals end a program whose output nobody reads: a pipe that is full, a terminal that takes nothing, clients that do not read.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::fd::{AsFd, OwnedFd},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec},
    fs::OFlags,
    process::Signal,
    termios::{Action, QueueSelector},
};
use serde_json::json;

use crate::{
    model::{Model, Script},
    print::{home, with_model},
    pty::{LEFT, LIMIT},
    serve::{Gateway, request},
};

/// More than fits into any pipe or terminal.
fn flood() -> Script {
    let line = "A line of the answer that is about as long as a terminal is wide, and no longer.\n\n";
    Script::Says(vec![line.to_owned(); 20_000], Duration::ZERO)
}

/// The signals that end a program, with its exit codes. A hangup that the tests ignore, as under nohup, is ignored by what they start.
fn signals() -> Vec<(Signal, i32)> {
    let status = std::fs::read_to_string("/proc/self/status").expect("it is there");
    let ignored = status.lines().find_map(|it| it.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.expect("it is there").trim(), 16).expect("a number");
    let mut signals = vec![(Signal::TERM, 143), (Signal::INT, 130)];
    if ignored & (1 << (libc::SIGHUP - 1)) == 0 {
        signals.push((Signal::HUP, 129));
    } else {
        crate::say("\nSKIPPED: the end by a hangup, which the tests ignore: do not start them with nohup\n");
    }
    signals
}

/// Returns true if a write would block.
fn is_full(file: impl AsFd) -> bool {
    let mut about = [PollFd::new(&file, PollFlags::OUT)];
    rustix::event::poll(&mut about, Some(&Timespec::default())).expect("it can be polled") == 0
}

/// A pipe that takes nothing more.
fn full_pipe() -> (OwnedFd, OwnedFd) {
    let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
    rustix::fs::fcntl_setfl(&writer, OFlags::NONBLOCK).expect("it is ours");
    fill(&writer);
    rustix::fs::fcntl_setfl(&writer, OFlags::empty()).expect("it is ours");
    (reader, writer)
}

/// Writes until nothing more is taken, without waiting.
fn fill(to: impl AsFd) {
    while rustix::io::write(&to, &[b'.'; 4096]).is_ok() {}
}

/// Waits until the program catches signals and does nothing: it waits for somebody to read.
fn until_it_waits(child: &Child) {
    let about = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", child.id())).expect("it runs");
    until("it catches signals", || {
        let status = about("status");
        let caught = status
            .lines()
            .find_map(|it| it.strip_prefix("SigCgt:"))
            .expect("it is there");
        let caught = u64::from_str_radix(caught.trim(), 16).expect("a number");
        caught & (1 << (libc::SIGTERM - 1)) != 0
    });
    let (mut before, mut looks) = (String::new(), 0);
    until("it waits", || {
        let now = about("stat");
        let work: Vec<&str> = now
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .skip(11)
            .take(2)
            .collect();
        let work = work.join(" ");
        looks = if work == before { looks + 1 } else { 0 };
        before = work;
        looks > 60
    });
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LIMIT, "it never came about that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The exit code, once it is there. Before, the program waited for ever.
fn exit(child: &mut Child) -> Option<i32> {
    let mut code = None;
    until("the program ends", || {
        code = child.try_wait().expect("our own child");
        code.is_some()
    });
    code.and_then(|it| it.code())
}

fn send(child: &Child, signal: Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).expect("it runs");
}

#[test]
fn a_full_pipe_does_not_keep_the_program() {
    for arguments in [["-p", "x"], ["--plain", "x"]] {
        for (signal, code) in signals() {
            let home = home();
            let model = Model::with([flood()]);
            let (_reader, writer) = full_pipe();
            let mut command: Command = with_model(home.path(), &model);
            command.args(arguments);
            command
                .stdout(writer.try_clone().expect("a copy"))
                .stderr(Stdio::null());
            let mut child = command.spawn().expect("it starts");
            until_it_waits(&child);
            send(&child, signal);
            assert_eq!(exit(&mut child), Some(code), "{arguments:?} {signal:?}");
        }
    }
}

/// A terminal with a program on it and nobody who reads it.
struct Unread {
    child: Child,
    master: OwnedFd,
    slave: OwnedFd,
    /// The same, opened anew: a write to it never waits.
    own: OwnedFd,
    modes: String,
}

impl Unread {
    /// `is_stopped`: with Ctrl+S, before the program starts.
    fn start(command: &mut Command, is_stopped: bool) -> Self {
        let master =
            rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY).expect("a pty");
        rustix::pty::grantpt(&master).expect("it is ours");
        rustix::pty::unlockpt(&master).expect("it is ours");
        let name = rustix::pty::ptsname(&master, Vec::new()).expect("a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let open = |flags| rustix::fs::open(&name, flags, rustix::fs::Mode::empty()).expect("it is there");
        let (slave, own) = (open(flags), open(flags | OFlags::NONBLOCK));
        if is_stopped {
            rustix::termios::tcflow(&slave, Action::OOff).expect("a terminal");
        }
        let size = rustix::termios::Winsize {
            ws_row: 40,
            ws_col: 120,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&slave, size).expect("a size");
        let modes = modes(&slave);
        let end = || Stdio::from(slave.try_clone().expect("a copy"));
        let child = command
            .env("TERM", "xterm-256color")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("it starts");
        Self {
            child,
            master,
            slave,
            own,
            modes,
        }
    }

    /// What the terminal would show if somebody looked now.
    fn unread(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut master = File::from(self.master.try_clone().expect("a copy"));
        let mut about = [PollFd::new(&self.master, PollFlags::IN)];
        while rustix::event::poll(&mut about, Some(&Timespec::default())).is_ok_and(|it| it > 0) {
            let mut buffer = [0; 4096];
            match master.read(&mut buffer) {
                Ok(read @ 1..) => bytes.extend_from_slice(&buffer[..read]),
                Ok(_) | Err(_) => break,
            }
        }
        bytes
    }
}

fn modes(terminal: impl AsFd) -> String {
    format!("{:?}", rustix::termios::tcgetattr(terminal).expect("a terminal"))
}

#[test]
fn a_terminal_that_takes_nothing_is_given_back() {
    // Each waits for most of its time.
    std::thread::scope(|scope| {
        for is_stopped in [false, true] {
            for (signal, code) in signals() {
                scope.spawn(move || gives_the_terminal_back(is_stopped, signal, code));
            }
        }
    });
}

fn gives_the_terminal_back(is_stopped: bool, signal: Signal, code: i32) {
    let home = home();
    let model = Model::with([flood()]);
    let mut terminal = Unread::start(with_model(home.path(), &model).arg("x"), is_stopped);
    until("the screen is taken", || modes(&terminal.slave) != terminal.modes);
    // The kernel moves what was written on at a time of its own, which makes room again.
    until("the terminal takes nothing", || {
        fill(&terminal.own);
        is_full(&terminal.slave)
    });
    until_it_waits(&terminal.child);
    send(&terminal.child, signal);
    assert_eq!(
        exit(&mut terminal.child),
        Some(code),
        "{signal:?} stopped: {is_stopped}"
    );
    assert_eq!(
        modes(&terminal.slave),
        terminal.modes,
        "{signal:?} stopped: {is_stopped}"
    );
    // Nothing can be written to one that is stopped.
    if !is_stopped {
        let unread = terminal.unread();
        assert!(
            unread.windows(LEFT.len()).any(|it| it == LEFT),
            "{signal:?}: {unread:?}"
        );
    }
    rustix::termios::tcflush(&terminal.slave, QueueSelector::IOFlush).ok();
}

/// Lines, too: on a terminal that was stopped with Ctrl+S.
#[test]
fn a_stopped_terminal_does_not_keep_lines() {
    for (signal, code) in signals() {
        let home = home();
        let model = Model::with([flood()]);
        let mut terminal = Unread::start(with_model(home.path(), &model).args(["--plain", "x"]), true);
        until_it_waits(&terminal.child);
        send(&terminal.child, signal);
        assert_eq!(exit(&mut terminal.child), Some(code), "{signal:?}");
        assert_eq!(modes(&terminal.slave), terminal.modes, "{signal:?}");
        rustix::termios::tcflush(&terminal.slave, QueueSelector::IOFlush).ok();
    }
}

#[test]
fn clients_that_do_not_read_do_not_keep_a_gateway() {
    for (signal, code) in signals() {
        let home = home();
        let model = Model::with([flood()]);
        let mut gateway = Gateway::start(with_model(home.path(), &model), &["--stateful"]);
        let body = json!({ "messages": [{ "role": "user", "content": "x" }], "stream": true }).to_string();
        let mut sockets = Vec::new();
        for _ in 0..4 {
            let mut socket = gateway.connect();
            let whole = request(gateway.address, "/api/v1/chat/completions", &body);
            socket.write_all(&whole).expect("it listens");
            // It has begun to answer; nobody reads the rest.
            socket.read_exact(&mut [0; 512]).expect("an answer");
            sockets.push(socket);
        }
        send(&gateway.child, signal);
        assert_eq!(exit(&mut gateway.child), Some(code), "{signal:?}");
    }
}
