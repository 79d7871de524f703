//! The real binary in a terminal that the test is: keys go in, a picture comes out.
//!
//! Nothing here waits for a time. A wait has a condition, and a limit that only a failure reaches; then it shows the
//! picture. The terminal answers the program's questions as a modern one does, unless the test wants a mute one.

use std::{
    io::{Read, Write},
    num::NonZeroU16,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use portable_pty::{CommandBuilder, MasterPty, NativePtySystem, PtySize, PtySystem, SlavePty};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

/// Lines that the terminal keeps of what has scrolled off its top.
const SCROLLED: usize = 1000;

/// Only a failure waits for so long; a disk that is busy with a build has made files wait for half a minute.
pub const LIMIT: Duration = Duration::from_mins(2);

/// A program that is gone says nothing more after this.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What the program writes when it gives the terminal back; the alternate screen goes last.
pub const LEFT: &[u8] = b"\x1b[?25h\x1b[?1049l";

/// Alt+Y, as a terminal with the keyboard protocol sends it.
pub const ALLOW: &str = "\x1b[121;3u";

/// Question, and what a modern terminal with a dark background says.
const ANSWERS: [(&[u8], &[u8]); 3] = [
    (b"\x1b]11;?\x1b\\", b"\x1b]11;rgb:1a1a/1b1b/2626\x1b\\"),
    (b"\x1b[?u", b"\x1b[?0u"),
    (b"\x1b[c", b"\x1b[?62;22c"),
];

/// How the program is to be started.
pub struct Start {
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    size: (u16, u16),
    is_mute: bool,
    input: Option<String>,
    files: Vec<(String, String)>,
    home: Option<Home>,
}

/// A home folder that lives as long as the last program in it, or longer.
#[derive(Clone)]
enum Home {
    Own(Arc<tempfile::TempDir>),
    Given(PathBuf),
}

impl Home {
    fn path(&self) -> &Path {
        match self {
            Self::Own(folder) => folder.path(),
            Self::Given(path) => path,
        }
    }
}

/// A running program and its terminal.
pub struct Sheaf {
    shared: Arc<Shared>,
    keyboard: Keyboard,
    master: Box<dyn MasterPty + Send>,
    /// Open until the end, so that the modes can be read when the program is gone.
    _slave: Box<dyn SlavePty + Send>,
    pid: Pid,
    modes_before: String,
    home: Home,
}

type Keyboard = Arc<Mutex<Box<dyn Write + Send>>>;

#[derive(Default)]
struct Shared {
    seen: Mutex<Option<Seen>>,
    changed: Condvar,
}

/// What the terminal has seen so far.
pub struct Seen {
    parser: vt100::Parser,
    /// Every byte that the program wrote.
    pub raw: Vec<u8>,
    exit: Option<u32>,
}

impl Seen {
    pub fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    /// What has scrolled off the top, oldest first, and what is on the screen.
    pub fn history(&self) -> Vec<String> {
        let mut screen = self.screen().clone();
        let columns = screen.size().1.get();
        screen.set_scrollback(SCROLLED);
        let mut lines = Vec::new();
        for above in (1..=screen.scrollback()).rev() {
            screen.set_scrollback(above);
            lines.extend(screen.rows(0, columns).next());
        }
        screen.set_scrollback(0);
        lines.extend(screen.rows(0, columns));
        lines
    }

    pub fn shows(&self, text: &str) -> bool {
        self.screen().contents().contains(text)
    }

    /// The line that begins at row `y`.
    pub fn line(&self, y: u16) -> String {
        let width = self.screen().size().1.get();
        self.screen().rows(0, width).nth(y.into()).unwrap_or_default()
    }

    /// Where a line holds `text`, from the top.
    pub fn line_of(&self, text: &str) -> Option<u16> {
        let rows = self.screen().size().0.get();
        (0..rows).find(|&y| self.line(y).contains(text))
    }

    pub fn wrote(&self, bytes: &[u8]) -> bool {
        self.count(bytes) > 0
    }

    pub fn count(&self, bytes: &[u8]) -> usize {
        self.raw.windows(bytes.len()).filter(|it| *it == bytes).count()
    }
}

impl Start {
    pub fn new(arguments: &[&str]) -> Self {
        Self {
            arguments: arguments.iter().map(|&it| it.to_owned()).collect(),
            variables: Vec::new(),
            size: (80, 24),
            is_mute: false,
            input: None,
            files: Vec::new(),
            home: None,
        }
    }

    /// In the home and folder of another run.
    pub fn after(mut self, sheaf: &Sheaf) -> Self {
        self.home = Some(sheaf.home.clone());
        self
    }

    /// A file below the home that is there from the start; the program works in `work`.
    pub fn file(mut self, path: &str, text: &str) -> Self {
        self.files.push((path.to_owned(), text.to_owned()));
        self
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn size(mut self, columns: u16, rows: u16) -> Self {
        self.size = (columns, rows);
        self
    }

    /// The terminal answers no question.
    pub fn mute(mut self) -> Self {
        self.is_mute = true;
        self
    }

    /// Its standard input is a pipe with this text; the keys still come from the terminal.
    pub fn piped(mut self, text: &str) -> Self {
        self.input = Some(text.to_owned());
        self
    }

    fn command(&self) -> CommandBuilder {
        let program = env!("CARGO_BIN_EXE_sheaf");
        let Some(input) = &self.input else {
            let mut command = CommandBuilder::new(program);
            command.args(&self.arguments);
            return command;
        };
        let mut command = CommandBuilder::new("/bin/sh");
        command.args(["-c", r#"text=$1; shift; printf %s "$text" | "$0" "$@""#, program, input]);
        command.args(&self.arguments);
        command
    }

    /// In a home that outlives the program.
    pub fn run_in(mut self, home: &Path) -> Sheaf {
        self.home = Some(Home::Given(home.to_owned()));
        self.run()
    }

    pub fn run(self) -> Sheaf {
        let home = self
            .home
            .clone()
            .unwrap_or_else(|| Home::Own(Arc::new(tempfile::tempdir().expect("a folder"))));
        let work = home.path().join("work");
        std::fs::create_dir_all(&work).expect("a folder");
        for (path, text) in &self.files {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            std::fs::write(path, text).expect("a file");
        }
        let pair = NativePtySystem::default().openpty(size(self.size)).expect("a pty");
        let mut command = self.command();
        command.cwd(&work);
        command.env_clear();
        command.env("HOME", home.path());
        command.env("PATH", "/usr/bin:/bin");
        command.env("TERM", "xterm-256color");
        command.env("COLORTERM", "truecolor");
        command.env("LANG", "C.UTF-8");
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        let modes_before = modes(&*pair.master);
        let mut child = pair.slave.spawn_command(command).expect("it starts");
        let pid = child.process_id().expect("it runs");
        let keyboard: Keyboard = Arc::new(Mutex::new(pair.master.take_writer().expect("a keyboard")));
        let shared = Arc::new(Shared::default());
        *shared.seen() = Some(Seen {
            parser: parser(self.size),
            raw: Vec::new(),
            exit: None,
        });
        let mut reader = pair.master.try_clone_reader().expect("a screen");
        let (screen, typist, is_mute) = (Arc::clone(&shared), Arc::clone(&keyboard), self.is_mute);
        std::thread::spawn(move || {
            let mut buffer = [0; 16 << 10];
            let mut looked_to = 0;
            while let Ok(n @ 1..) = reader.read(&mut buffer) {
                let answers = screen.change(|seen| {
                    seen.raw.extend_from_slice(&buffer[..n]);
                    seen.parser.process(&buffer[..n]);
                    if is_mute {
                        Vec::new()
                    } else {
                        answers(&seen.raw, &mut looked_to)
                    }
                });
                if !answers.is_empty() {
                    // A program that is gone wants no answer.
                    let _ = typist.lock().expect("nobody panicked").write_all(&answers);
                }
            }
        });
        let watched = Arc::clone(&shared);
        std::thread::spawn(move || {
            let status = child.wait().expect("our own child");
            watched.change(|seen| seen.exit = Some(status.exit_code()));
        });
        Sheaf {
            shared,
            keyboard,
            master: pair.master,
            _slave: pair.slave,
            pid: Pid::from_raw(i32::try_from(pid).expect("small")).expect("not zero"),
            modes_before,
            home,
        }
    }
}

impl Sheaf {
    /// Types, as bytes that a terminal sends.
    pub fn send(&self, keys: &str) {
        let mut keyboard = self.keyboard.lock().expect("nobody panicked");
        keyboard.write_all(keys.as_bytes()).expect("the terminal is open");
    }

    pub fn paste(&self, text: &str) {
        self.send(&format!("\x1b[200~{text}\x1b[201~"));
    }

    pub fn wait_for(&self, text: &str) {
        self.wait_until(&format!("the screen shows {text:?}"), |seen| seen.shows(text));
    }

    pub fn wait_gone(&self, text: &str) {
        self.wait_until(&format!("the screen shows no {text:?}"), |seen| !seen.shows(text));
    }

    pub fn wait_until(&self, what: &str, holds: impl Fn(&Seen) -> bool) {
        let mut end = Instant::now() + LIMIT;
        let mut guard = self.shared.seen();
        loop {
            let seen = guard.as_ref().expect("set at the start");
            if holds(seen) {
                return;
            }
            if seen.exit.is_some() {
                // Only its last words can still be on their way.
                end = end.min(Instant::now() + LAST_WORDS);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let picture = seen.screen().contents();
                let exit = seen.exit;
                drop(guard);
                panic!("it never came about that {what}; exit {exit:?}; the screen:\n{picture}");
            }
            guard = self
                .shared
                .changed
                .wait_timeout(guard, left)
                .expect("nobody panicked")
                .0;
        }
    }

    /// Presses a key again until it is obeyed: some keys are dropped for a moment, so that nobody decides by accident.
    pub fn insist(&self, key: &str, what: &str, holds: impl Fn(&Seen) -> bool) {
        self.insist_every(Duration::from_millis(100), key, what, holds);
    }

    /// The same for a key that counts as held when it comes again too soon.
    pub fn insist_slowly(&self, key: &str, what: &str, holds: impl Fn(&Seen) -> bool) {
        self.insist_every(Duration::from_millis(700), key, what, holds);
    }

    fn insist_every(&self, pause: Duration, key: &str, what: &str, holds: impl Fn(&Seen) -> bool) {
        let start = Instant::now();
        while !self.look(&holds) {
            assert!(
                start.elapsed() < LIMIT,
                "{key:?} never did it: {what}\n{}",
                self.picture()
            );
            self.send(key);
            let guard = self.shared.seen();
            let _unused = self
                .shared
                .changed
                .wait_timeout_while(guard, pause, |it| !it.as_ref().is_some_and(&holds))
                .expect("nobody panicked");
        }
    }

    pub fn look<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(self.shared.seen().as_ref().expect("set at the start"))
    }

    pub fn picture(&self) -> String {
        self.look(|seen| seen.screen().contents())
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        self.shared.change(|seen| {
            let [columns, rows] = [columns, rows].map(|it| NonZeroU16::new(it).expect("not zero"));
            seen.parser.screen_mut().set_size(rows, columns);
        });
        self.master.resize(size((columns, rows))).expect("the terminal is open");
    }

    pub fn process(&self) -> Pid {
        self.pid
    }

    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.pid, signal).expect("it runs");
    }

    /// Until the program has stopped itself; it is not reaped.
    pub fn wait_stopped(&self) {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
        let status = rustix::process::waitid(WaitId::Pid(self.pid), options).expect("our own child");
        assert!(status.is_some_and(|it| it.stopped()));
    }

    /// The exit code, once the program is gone.
    pub fn exit(&self) -> u32 {
        self.wait_until("the program ends", |seen| seen.exit.is_some());
        self.look(|seen| seen.exit).expect("waited for")
    }

    /// That the program ended with `code` and left the terminal as it was.
    pub fn assert_left(&self, code: u32) {
        assert_eq!(self.exit(), code, "{}", self.picture());
        self.assert_restored();
    }

    /// That the terminal is as it was before the program started.
    pub fn assert_restored(&self) {
        self.wait_until("the terminal is given back", |seen| {
            let screen = seen.screen();
            seen.wrote(LEFT)
                && !screen.alternate_screen()
                && !screen.hide_cursor()
                && !screen.bracketed_paste()
                && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
                // What is pushed is popped.
                && seen.count(b"\x1b[>5u") == seen.count(b"\x1b[<u")
                && seen.count(b"\x1b[22;0t") == seen.count(b"\x1b[23;0t")
        });
        assert_eq!(modes(&*self.master), self.modes_before);
    }

    pub fn is_raw(&self) -> bool {
        modes(&*self.master) != self.modes_before
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }
}

impl Drop for Sheaf {
    fn drop(&mut self) {
        if self.look(|seen| seen.exit.is_none()) {
            let _ = rustix::process::kill_process(self.pid, Signal::KILL);
        }
    }
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Option<Seen>> {
        self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Seen) -> T) -> T {
        let result = change(self.seen().as_mut().expect("set at the start"));
        self.changed.notify_all();
        result
    }
}

fn size((columns, rows): (u16, u16)) -> PtySize {
    PtySize {
        rows,
        cols: columns,
        pixel_width: 0,
        pixel_height: 0,
    }
}

fn parser((columns, rows): (u16, u16)) -> vt100::Parser {
    let [columns, rows] = [columns, rows].map(|it| NonZeroU16::new(it).expect("not zero"));
    vt100::Parser::new(rows, columns, SCROLLED)
}

/// Every mode of the terminal; two texts are equal when all modes are.
fn modes(master: &dyn MasterPty) -> String {
    format!("{:?}", master.get_termios().expect("it is a terminal"))
}

/// What the questions behind `looked_to` are answered with.
fn answers(raw: &[u8], looked_to: &mut usize) -> Vec<u8> {
    let mut answers = Vec::new();
    while *looked_to < raw.len() {
        let rest = &raw[*looked_to..];
        if let Some((question, answer)) = ANSWERS.iter().find(|(question, _)| rest.starts_with(question)) {
            answers.extend_from_slice(answer);
            *looked_to += question.len();
        } else if ANSWERS.iter().any(|(question, _)| question.starts_with(rest)) {
            // The rest of it is still to come.
            break;
        } else {
            *looked_to += 1;
        }
    }
    answers
}
