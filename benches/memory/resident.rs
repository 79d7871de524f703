//! Memory of the real program while answers pass through it: the peak of an answer, the cost of a stream, and the growth of
//! a long conversation. Each figure is printed beside its limit. `SHEAF_BENCH_PROGRAM` names another program to measure than
//! the one that was built with the bench, an older one say.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    num::NonZeroU16,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use divan::Bencher;
use portable_pty::{CommandBuilder, MasterPty, NativePtySystem, PtySize, PtySystem as _};

use super::{
    Home, Words,
    peer::{Peer, Script},
};

const MB: u64 = 1_000_000;
/// Bytes of text that count as a token.
const TOKEN_BYTES: usize = 4;
/// Only a failure waits for so long.
const PATIENCE: Duration = Duration::from_mins(20);
/// Interval between two looks at a process.
const LOOK: Duration = Duration::from_millis(2);
/// Interval between two looks at something that takes long.
const REST: Duration = Duration::from_millis(50);
/// Path of the documents protocol.
const CHAT: &str = "/api/v1/chat/completions";
const TOKEN: &str = "a-token-of-more-than-22-characters";

fn program() -> PathBuf {
    std::env::var_os("SHEAF_BENCH_PROGRAM").map_or_else(|| super::PROGRAM.into(), PathBuf::from)
}

/// Figures above their limit; the bench fails if there is one.
static ABOVE: AtomicU64 = AtomicU64::new(0);

/// Returns true if every figure was within its limit.
pub fn is_within() -> bool {
    ABOVE.load(Ordering::Relaxed) == 0
}

/// Prints a figure in bytes beside its limit.
fn judge(what: &str, bytes: u64, limit: u64) {
    let shown = |bytes: u64| {
        if limit >= MB {
            format!("{:.1} MB", bytes as f64 / MB as f64)
        } else {
            format!("{:.1} KiB", bytes as f64 / 1024.0)
        }
    };
    let mut out = std::io::stdout();
    let verdict = if bytes <= limit {
        "within"
    } else {
        ABOVE.fetch_add(1, Ordering::Relaxed);
        "ABOVE"
    };
    let _ = writeln!(out, "{what}: {}, {verdict} {}", shown(bytes), shown(limit));
}

/// A figure of `/proc/PID/status` in bytes; 0 if the process has gone.
fn status(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix(name)?.strip_prefix(':'));
    let kib = line.and_then(|it| it.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or_default() << 10
}

fn resident(pid: u32) -> u64 {
    status(pid, "VmRSS")
}

/// Follows the peak of a process until it has gone.
struct Peak {
    bytes: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Peak {
    fn of(pid: u32) -> Self {
        let bytes = Arc::new(AtomicU64::new(0));
        let shared = Arc::clone(&bytes);
        let thread = std::thread::spawn(move || {
            loop {
                match status(pid, "VmHWM") {
                    0 => return,
                    peak => shared.store(peak, Ordering::Relaxed),
                }
                std::thread::sleep(LOOK);
            }
        });
        Self { bytes, thread }
    }

    /// Waits until the process has gone.
    fn last(self) -> u64 {
        self.thread.join().expect("it only reads");
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Waits until it holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "still not: {what}");
        std::thread::sleep(REST);
    }
}

/// Something to say, about `bytes` bytes long: lines of words.
fn words(bytes: usize) -> String {
    let mut text = Words(3).text(bytes / 6);
    while text.len() < bytes {
        text.push_str("and on ");
    }
    text.truncate(bytes - 2);
    text.push_str(".\n");
    text
}

/// An answer of `documents` documents of `bytes` bytes each, a kilobyte at a time.
fn long(documents: usize, bytes: usize) -> Script {
    Script {
        documents,
        pieces: bytes >> 10,
        piece: words(1 << 10),
        is_paced: false,
        is_thought: false,
        is_held: false,
    }
}

/// Variables that name the peer as a model server, or as a gateway.
fn towards(peer: &Peer, is_gateway: bool) -> Vec<(&'static str, String)> {
    let url = format!("http://{}", peer.address);
    if is_gateway {
        vec![("SHEAF_GATEWAY", url)]
    } else {
        vec![
            ("OPENAI_BASE_URL", format!("{url}/v1")),
            ("OPENAI_API_KEY", "secret-key".to_owned()),
            ("OPENAI_MODEL", "scripted".to_owned()),
        ]
    }
}

fn command(home: &Home, variables: Vec<(&'static str, String)>) -> Command {
    let mut command = Command::new(program());
    command
        .env_clear()
        .envs(home.variables())
        .envs(variables)
        .current_dir(home.0.path())
        .stdin(Stdio::null());
    command
}

/// The peak of an answer that is printed with some options.
fn printed(script: Script, is_gateway: bool, options: &[&str]) -> u64 {
    let said = if script.is_thought && !options.contains(&"--thinking") {
        1
    } else {
        script.pieces
    };
    let least = script.documents * said * (script.piece.len() - 1);
    let (home, peer) = (Home::new(), Peer::start(script));
    let mut command = command(&home, towards(&peer, is_gateway));
    command.args(["-p", "tell me"]).args(options).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let peak = Peak::of(child.id());
    let mut out = child.stdout.take().expect("it is piped");
    let (mut some, mut count) = (vec![0; 1 << 16], 0);
    while let Ok(read @ 1..) = out.read(&mut some) {
        count += read;
    }
    assert!(child.wait().expect("it ends").success(), "{count} bytes were printed");
    assert!(count >= least, "{count} of {least} bytes were printed");
    peak.last()
}

/// The program in a terminal.
struct Screen {
    child: Box<dyn portable_pty::Child + Send + Sync>,
    keyboard: Box<dyn std::io::Write + Send>,
    shown: Arc<Mutex<vt100::Parser>>,
    has_left: Arc<AtomicBool>,
    _master: Box<dyn MasterPty + Send>,
}

impl Screen {
    fn start(home: &Home, variables: Vec<(&'static str, String)>) -> Self {
        const ROWS: NonZeroU16 = NonZeroU16::new(40).expect("not zero");
        const COLUMNS: NonZeroU16 = NonZeroU16::new(120).expect("not zero");
        let size = PtySize {
            rows: ROWS.get(),
            cols: COLUMNS.get(),
            ..PtySize::default()
        };
        let pair = NativePtySystem::default().openpty(size).expect("a terminal");
        let mut command = CommandBuilder::new(program());
        command.env_clear();
        command.cwd(home.0.path());
        for (name, value) in home.variables().into_iter().chain(variables) {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).expect("it starts");
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let keyboard = pair.master.take_writer().expect("a writer");
        let shown = Arc::new(Mutex::new(vt100::Parser::new(ROWS, COLUMNS, 0)));
        let has_left = Arc::new(AtomicBool::new(false));
        let (parser, left) = (Arc::clone(&shown), Arc::clone(&has_left));
        std::thread::spawn(move || {
            let mut some = [0; 1 << 14];
            while let Ok(count @ 1..) = reader.read(&mut some) {
                parser.lock().expect("no panic").process(&some[..count]);
            }
            left.store(true, Ordering::Relaxed);
        });
        Self {
            child,
            keyboard,
            shown,
            has_left,
            _master: pair.master,
        }
    }

    fn pid(&self) -> u32 {
        self.child.process_id().expect("it runs")
    }

    fn text(&self) -> String {
        self.shown.lock().expect("no panic").screen().contents()
    }

    fn wait_for(&self, text: &str) {
        until(text, || {
            assert!(!self.has_left.load(Ordering::Relaxed), "it ended: {}", self.text());
            self.text().contains(text)
        });
    }

    fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("it reads");
        self.keyboard.flush().expect("it reads");
    }

    /// Sends a message and waits until its answer has ended: only then something stands before the next one.
    fn asks(&mut self, peer: &Peer, words: &str) {
        let before = peer.said();
        self.types(words);
        self.wait_for(words);
        self.types("\r");
        until("the answer", || peer.said() > before);
        self.wait_until_idle();
    }

    fn wait_until_idle(&self) {
        until("the end of the answer", || {
            let text = self.text();
            assert!(!self.has_left.load(Ordering::Relaxed), "it ended: {text}");
            !text.contains("esc stop") && !text.contains('◐')
        });
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The peak of an answer on the screen.
fn shown(script: Script, is_gateway: bool) -> u64 {
    let (home, peer) = (Home::new(), Peer::start(script));
    let mut screen = Screen::start(&home, towards(&peer, is_gateway));
    let peak = Peak::of(screen.pid());
    screen.wait_for("Ask anything");
    screen.asks(&peer, "tell me");
    drop(screen);
    peak.last()
}

/// A gateway of the program in front of the peer.
struct Serve {
    child: Child,
    address: SocketAddr,
    home: Home,
}

impl Serve {
    fn start(peer: &Peer, is_gateway: bool) -> Self {
        let home = Home::new();
        let mut command = command(&home, towards(peer, is_gateway));
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        command
            .env("SHEAF_SERVE_TOKEN", TOKEN)
            .env("SHEAF_SERVE_MAX_STREAMS", "1000");
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let mut out = std::io::BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        std::io::BufRead::read_line(&mut out, &mut line).expect("it is text");
        let (_, address) = line.split_once("http://").expect("an address");
        let address = address.trim().parse().expect("an address");
        // It says a few words more, and must not fail to.
        std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
        Self { child, address, home }
    }

    fn ask(&self) -> TcpStream {
        self.ask_at(CHAT, true)
    }

    fn ask_at(&self, path: &str, is_stream: bool) -> TcpStream {
        let mut socket = TcpStream::connect(self.address).expect("it listens");
        let messages = if path == "/v1/responses" { "input" } else { "messages" };
        let body = format!(
            r#"{{"model":"scripted","max_tokens":9,"{messages}":[{{"role":"user","content":"tell me"}}],"stream":{is_stream}}}"#
        );
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        socket.write_all(request.as_bytes()).expect("it reads");
        socket
    }

    /// Asks, and reads on another thread until the answer has ended. The counter grows by what was read.
    fn read(&self, count: &Arc<AtomicU64>) -> JoinHandle<()> {
        let (mut socket, count) = (self.ask(), Arc::clone(count));
        std::thread::spawn(move || {
            let mut some = vec![0; 1 << 14];
            while let Ok(read @ 1..) = socket.read(&mut some) {
                count.fetch_add(read as u64, Ordering::Relaxed);
            }
        })
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = &self.home;
    }
}

/// The peak of `serve` in front of a model for an answer that is read.
fn served(script: Script, path: &str, is_stream: bool) -> u64 {
    let said = if script.is_thought { 1 } else { script.pieces };
    let least = said * (script.piece.len() - 1);
    let peer = Peer::start(script);
    let serve = Serve::start(&peer, false);
    let peak = Peak::of(serve.child.id());
    let mut socket = serve.ask_at(path, is_stream);
    let (mut some, mut count) = (vec![0; 1 << 16], 0);
    while let Ok(read @ 1..) = socket.read(&mut some) {
        count += read;
    }
    assert!(
        count >= least,
        "{count} of {least} bytes came: {:?}",
        String::from_utf8_lossy(&some[..count.min(999)])
    );
    drop(serve);
    peak.last()
}

/// Resident memory once nothing more is given back, as while an answer lasts.
fn resident_at_rest(pid: u32) -> u64 {
    /// Looks without a change; the program gives back what is free after three seconds.
    const LOOKS: u32 = 500;
    let (mut least, mut quiet) = (resident(pid), 0);
    until("memory is given back", || {
        let now = resident(pid);
        quiet = if now < least { 0 } else { quiet + 1 };
        least = least.min(now);
        quiet > LOOKS
    });
    least
}

/// Memory of a stream whose answer has come and not ended.
fn stream_cost(pieces: usize, is_gateway: bool) -> u64 {
    const STREAMS: usize = 300;
    const FIRST: usize = 20;
    let peer = Peer::start(Script {
        documents: 1,
        pieces,
        piece: "word ".to_owned(),
        is_paced: true,
        is_thought: false,
        is_held: true,
    });
    let serve = Serve::start(&peer, is_gateway);
    let pid = serve.child.id();
    let read = Arc::new(AtomicU64::new(0));
    // The first ones need code that all share.
    let mut readers: Vec<_> = (0..FIRST).map(|_| serve.read(&read)).collect();
    let settled = || {
        let mut last = read.load(Ordering::Relaxed);
        let mut quiet = 0;
        until("all is read", || {
            let now = read.load(Ordering::Relaxed);
            quiet = if now == last { quiet + 1 } else { 0 };
            last = now;
            quiet > 20
        });
    };
    until("the first answers", || peer.said() == FIRST);
    settled();
    let before = resident_at_rest(pid);
    readers.extend((FIRST..STREAMS).map(|_| serve.read(&read)));
    until("the answers", || peer.said() == STREAMS);
    settled();
    let after = resident_at_rest(pid);
    peer.release();
    for reader in readers {
        reader.join().expect("it only reads");
    }
    after.saturating_sub(before) / (STREAMS - FIRST) as u64
}

/// An answer of 64 MiB: 128 MB is the most that may be resident.
#[divan::bench(sample_count = 1, sample_size = 1)]
fn an_answer_of_64_mib(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| {
        // The last kilobyte is left for what surrounds it: a document of more than 64 MiB ends.
        let script = || long(1, (64 << 20) - (1 << 10));
        let formats: [&[&str]; 6] = [
            &["--output-format", "text"],
            &["--output-format", "json"],
            &["--output-format", "stream-json"],
            &["--output-format", "stream-json", "--stream-partial-output"],
            &["--output-format", "events"],
            &["--output-format", "documents"],
        ];
        for options in formats {
            let what = format!("an answer of 64 MiB, printed with {}", options.join(" "));
            judge(&what, printed(script(), false, options), 128 * MB);
        }
        judge("an answer of 64 MiB, on the screen", shown(script(), false), 128 * MB);
        for path in [CHAT, "/v1/chat/completions", "/v1/messages", "/v1/responses"] {
            for is_stream in [true, false] {
                let what = if is_stream { "as a stream" } else { "at once" };
                let peak = served(script(), path, is_stream);
                judge(&format!("an answer of 64 MiB, served {what} at {path}"), peak, 128 * MB);
            }
        }
    });
}

/// Thinking of 64 MiB: 128 MB is the most that may be resident.
#[divan::bench(sample_count = 1, sample_size = 1)]
fn thinking_of_64_mib(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| {
        let script = || Script {
            is_thought: true,
            ..long(1, (64 << 20) - (1 << 10))
        };
        let formats: [&[&str]; 3] = [
            &["--output-format", "text"],
            &["--output-format", "json"],
            &["--output-format", "stream-json"],
        ];
        for options in formats {
            let what = format!("thinking of 64 MiB, printed with {}", options.join(" "));
            judge(&what, printed(script(), false, options), 128 * MB);
        }
        judge("thinking of 64 MiB, on the screen", shown(script(), false), 128 * MB);
        judge("thinking of 64 MiB, served", served(script(), CHAT, true), 128 * MB);
    });
}

/// A gateway's documents of 60 MB: 128 MB for one, 192 MB for four.
#[divan::bench(args = [1, 4], sample_count = 1, sample_size = 1)]
fn documents_of_60_mb(bencher: Bencher<'_, '_>, count: usize) {
    bencher.bench_local(|| {
        let script = || long(count, 60_000_000);
        let limit = if count == 1 { 128 * MB } else { 192 * MB };
        judge(
            &format!("{count} documents of 60 MB, printed"),
            printed(script(), true, &[]),
            limit,
        );
        judge(
            &format!("{count} documents of 60 MB, on the screen"),
            shown(script(), true),
            limit,
        );
    });
}

/// A stream of `serve`, for answers of so many pieces: 64 KiB.
#[divan::bench(args = [10, 6400], sample_count = 1, sample_size = 1)]
fn a_stream_of_serve(bencher: Bencher<'_, '_>, pieces: usize) {
    bencher.bench_local(|| {
        for (name, is_gateway) in [("a gateway", true), ("a model", false)] {
            judge(
                &format!("a stream of serve in front of {name}, {pieces} pieces"),
                stream_cost(pieces, is_gateway),
                64 << 10,
            );
        }
    });
}

/// `serve` after 20 clients that do not read: within 30 MB of the start.
#[divan::bench(sample_count = 1, sample_size = 1)]
fn clients_that_do_not_read(bencher: Bencher<'_, '_>) {
    const CLIENTS: usize = 20;
    bencher.bench_local(|| {
        let peer = Peer::start(long(1, 24_000_000));
        let serve = Serve::start(&peer, false);
        let pid = serve.child.id();
        let before = resident(pid);
        let peak = Peak::of(pid);
        let clients: Vec<_> = (0..CLIENTS).map(|_| serve.ask()).collect();
        // What nobody reads either comes all the same or is cut off.
        let mut last = (0, Instant::now());
        until("an end", || {
            let said = peer.said();
            if said != last.0 {
                last = (said, Instant::now());
            }
            said == CLIENTS || last.1.elapsed() > Duration::from_secs(20)
        });
        let during = resident(pid);
        drop(clients);
        std::thread::sleep(Duration::from_secs(10));
        let after = resident(pid);
        drop(serve);
        let said = peer.said();
        let mut out = std::io::stdout();
        let _ = writeln!(
            out,
            "20 clients that do not read: {} MB at the start, {} MB then ({said} answers came), peak {} MB",
            before / MB,
            during / MB,
            peak.last() / MB
        );
        judge(
            "10 s after 20 clients that do not read, above the start",
            after.saturating_sub(before),
            30 * MB,
        );
    });
}

/// A conversation of 2.9 million tokens on the screen: it grows by 1 MB for 100,000 tokens.
#[divan::bench(sample_count = 1, sample_size = 1)]
fn a_conversation_of_millions_of_tokens(bencher: Bencher<'_, '_>) {
    const TURNS: usize = 100;
    const TURN_TOKENS: usize = 29_000;
    /// Turns after which all that is needed once is there.
    const WARM: usize = 20;
    bencher.bench_local(|| {
        let home = Home::new();
        let settings = home.0.path().join(".config/sheaf");
        std::fs::create_dir_all(&settings).expect("a folder");
        let window = "[models.scripted]\nwindow = 200000\n";
        std::fs::write(settings.join("config.toml"), window).expect("a file");
        let peer = Peer::start(long(1, TURN_TOKENS * TOKEN_BYTES));
        let mut screen = Screen::start(&home, towards(&peer, false));
        let peak = Peak::of(screen.pid());
        screen.wait_for("Ask anything");
        let mut sizes = Vec::new();
        for turn in 1..=TURNS {
            screen.asks(&peer, &format!("tell me more, {turn}"));
            sizes.push(resident(screen.pid()));
        }
        let grown = sizes[TURNS - 1].saturating_sub(sizes[WARM - 1]);
        let tokens = ((TURNS - WARM) * TURN_TOKENS) as u64;
        let shown: Vec<_> = sizes.iter().step_by(10).map(|it| (it / MB).to_string()).collect();
        drop(screen);
        let mut out = std::io::stdout();
        let _ = writeln!(
            out,
            "a conversation of 2.9 million tokens: MB every 10 turns: {}; peak {} MB",
            shown.join(" "),
            peak.last() / MB
        );
        judge(
            "a conversation of 2.9 million tokens, for each 100,000",
            grown * 100_000 / tokens,
            MB,
        );
    });
}
