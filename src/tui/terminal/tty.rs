//! Taking over the terminal on entry, and restoring it on every way out.
//!
//! The bytes that restore it are a constant, written with `write(2)`, so that a panic hook and a signal handler can do it.
//! The terminal is opened anew by name: that file description can be non-blocking without affecting the shell's.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::fd::{AsFd, AsRawFd},
    os::unix::{ffi::OsStringExt, fs::OpenOptionsExt},
    sync::atomic::{AtomicBool, AtomicPtr, Ordering},
};

use tokio::io::{Interest, unix::AsyncFd};

use super::input_parser::MOST_PIXELS;

/// Ends a synchronized update, pops the keyboard protocol, turns off mouse, paste and focus reports, resets colours and
/// the scroll region, restores the title, shows the cursor and leaves the alternate screen.
const LEAVE: &[u8] =
    b"\x1b[?2026l\x1b[<u\x1b[>4m\x1b[?1006l\x1b[?1002l\x1b[?1000l\x1b[?1004l\x1b[?2031l\x1b[?2004l\x1b[m\x1b[r\x1b[23;0t\x1b[?25h\x1b[?1049l";

/// The same without an alternate screen to leave, and without moving the cursor: Konsole takes the end of the keyboard protocol
/// for the order to go back to where the cursor was saved.
const LEAVE_INLINE: &[u8] =
    b"\x1b[?2026l\x1b[m\x1b7\x1b[<u\x1b[>4m\x1b[?1006l\x1b[?1002l\x1b[?1000l\x1b[?1004l\x1b[?2031l\x1b[?2004l\x1b[r\x1b8\x1b[23;0t\x1b[?25h";

/// Has what is written next stand below what is shown.
const BELOW: &[u8] = b"\x1b[999H\r\n";

static INLINE: AtomicBool = AtomicBool::new(false);
/// A page has the whole terminal for a while.
static AWAY: AtomicBool = AtomicBool::new(false);
/// Something of ours is shown where the terminal's own lines are.
static SHOWN: AtomicBool = AtomicBool::new(false);
static ENTERED: AtomicBool = AtomicBool::new(false);
static ORIGINAL: AtomicPtr<libc::termios> = AtomicPtr::new(std::ptr::null_mut());

/// Which mouse events are handled here; all others are left to the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mouse {
    Off,
    /// The wheel scrolls.
    Wheel,
    /// The mouse scrolls, selects documents and marks text.
    #[default]
    Full,
}

impl Mouse {
    pub const ALL: [Self; 3] = [Self::Full, Self::Wheel, Self::Off];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Wheel => "wheel",
            Self::Full => "full",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}

/// Modes that the terminal is asked for.
#[derive(Clone, Copy, Debug)]
pub struct TtyOptions {
    pub mouse: Mouse,
    /// Without the alternate screen.
    pub inline: bool,
    /// tmux forwards modified keys only when asked in xterm's way.
    pub tmux: bool,
}

/// A terminal that is ours until this is dropped.
pub struct Tty {
    /// Watched for input only: being told after each write that there is room again would be a wake-up for every frame.
    file: AsyncFd<File>,
    /// The same terminal, watched for room, while it takes no more.
    full: Option<AsyncFd<File>>,
    options: TtyOptions,
}

impl Tty {
    /// Opens the terminal that standard output is, puts it into raw mode and queues what takes the screen over.
    ///
    /// Fails when standard input or output is no terminal.
    pub fn open(options: TtyOptions, out: &mut Vec<u8>) -> io::Result<Self> {
        let name = rustix::termios::ttyname(io::stdout(), Vec::new())?;
        let path = OsString::from_vec(name.into_bytes());
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC)
            .open(path)?;
        #[expect(
            unsafe_code,
            reason = "tokio wants the promise that the descriptor stays the file's own"
        )]
        // SAFETY: a `File` keeps its descriptor until it is dropped, and here it is dropped with the registration.
        let file = unsafe { AsyncFd::register_with_interest(file, Interest::READABLE)? };
        let tty = Self {
            file,
            full: None,
            options,
        };
        remember_original(tty.file.get_ref())?;
        tty.enter(out)?;
        Ok(tty)
    }

    /// Takes the terminal (again): raw mode now, sequences into `out`.
    pub fn enter(&self, out: &mut Vec<u8>) -> io::Result<()> {
        ENTERED.store(true, Ordering::SeqCst);
        let mut raw = rustix::termios::tcgetattr(self.file.get_ref().as_fd())?;
        raw.make_raw();
        rustix::termios::tcsetattr(self.file.get_ref().as_fd(), rustix::termios::OptionalActions::Now, &raw)?;
        INLINE.store(self.options.inline, Ordering::SeqCst);
        SHOWN.store(self.options.inline, Ordering::SeqCst);
        if !self.options.inline {
            out.extend_from_slice(b"\x1b[?1049h");
        }
        out.extend_from_slice(b"\x1b[22;0t\x1b[?2004h\x1b[?2031h\x1b[?1004h\x1b[>5u");
        if self.options.tmux {
            out.extend_from_slice(b"\x1b[>4;2m");
        }
        out.extend_from_slice(reports(self.options.mouse));
        Ok(())
    }

    /// Has the terminal report more or less of the mouse from now on.
    pub fn use_mouse(&mut self, mouse: Mouse, out: &mut Vec<u8>) {
        self.options.mouse = mouse;
        out.extend_from_slice(b"\x1b[?1006l\x1b[?1002l\x1b[?1000l");
        out.extend_from_slice(reports(mouse));
    }

    /// Asks for the background, the keyboard protocol, the terminal's name and what it can; the answers come with the keys.
    pub fn ask(is_inline: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\x1b]11;?\x1b\\");
        // The cursor stays where the next line belongs, whatever a terminal takes the question for.
        out.extend_from_slice(if is_inline {
            &b"\x1b7\x1b[?u\x1b8"[..]
        } else {
            b"\x1b[?u"
        });
        out.extend_from_slice(b"\x1b[>0q\x1b[c");
    }

    /// Asks for the background alone: it has changed.
    pub fn ask_colours(out: &mut Vec<u8>) {
        out.extend_from_slice(b"\x1b]11;?\x1b\\");
    }

    /// The terminal's size in cells; `None` when it says 0 (keep the old one).
    pub fn size(&self) -> Option<(u16, u16)> {
        let size = rustix::termios::tcgetwinsize(self.file.get_ref().as_fd()).ok()?;
        believable(size.ws_col, size.ws_row)
    }

    /// Pixels of a cell, where the terminal says how many it has.
    pub fn cell(&self) -> Option<(u16, u16)> {
        let size = rustix::termios::tcgetwinsize(self.file.get_ref().as_fd()).ok()?;
        let wide = size.ws_xpixel.checked_div(size.ws_col)?;
        let high = size.ws_ypixel.checked_div(size.ws_row)?;
        (wide > 0 && high > 0).then_some((wide.min(MOST_PIXELS), high.min(MOST_PIXELS)))
    }

    /// Waits for keys. `Ok(0)` and errors mean that the terminal is gone.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file
            .async_io(Interest::READABLE, |mut file| file.read(buffer))
            .await
    }

    /// Writes what the terminal takes now and keeps the rest in `out`.
    pub fn write(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let mut done = 0;
        while let Some(rest) = out.get(done..).filter(|it| !it.is_empty()) {
            match self.file.get_ref().write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        out.drain(..done);
        if out.is_empty() {
            self.full = None;
        } else if self.full.is_none() {
            let file = self.file.get_ref().try_clone()?;
            #[expect(
                unsafe_code,
                reason = "tokio wants the promise that the descriptor stays the file's own"
            )]
            // SAFETY: a `File` keeps its descriptor until it is dropped, and here it is dropped with the registration.
            let full = unsafe { AsyncFd::register_with_interest(file, Interest::WRITABLE)? };
            self.full = Some(full);
        }
        Ok(())
    }

    /// Returns true if the last write left bytes over. Bytes queued since then go with the next write.
    pub fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// Waits until the terminal takes bytes again; for ever when it does already.
    pub async fn writable(&self) -> io::Result<()> {
        match &self.full {
            Some(full) => {
                full.writable().await?.clear_ready();
                Ok(())
            }
            None => std::future::pending().await,
        }
    }
}

/// Writes text to the main screen from the alternate one.
pub fn print_below(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\x1b[?1049l\x1b[m");
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\x1b[?1049h");
}

/// Sequences that make the terminal report the mouse.
const fn reports(mouse: Mouse) -> &'static [u8] {
    match mouse {
        Mouse::Off => b"",
        Mouse::Wheel => b"\x1b[?1000h\x1b[?1006h",
        Mouse::Full => b"\x1b[?1002h\x1b[?1006h",
    }
}

/// More cells than any terminal has: whoever says so would only make us paint for ever.
const MOST_COLUMNS: u16 = 2048;
const MOST_ROWS: u16 = 1024;

fn believable(columns: u16, rows: u16) -> Option<(u16, u16)> {
    (columns > 0 && rows > 0).then_some((columns.min(MOST_COLUMNS), rows.min(MOST_ROWS)))
}

impl Drop for Tty {
    fn drop(&mut self) {
        leave();
    }
}

/// Gives the terminal back. Safe to call twice, from a panic hook and from a signal handler.
pub fn leave() {
    if ENTERED.swap(false, Ordering::SeqCst) {
        if INLINE.load(Ordering::SeqCst) {
            if AWAY.swap(false, Ordering::SeqCst) {
                write_all(b"\x1b[?1049l");
            }
            write_all(LEAVE_INLINE);
            if SHOWN.load(Ordering::SeqCst) {
                write_all(BELOW);
            }
        } else {
            write_all(LEAVE);
        }
        restore_modes();
    }
}

/// Notes that the inline region was removed and that the cursor stands where the next line belongs.
pub fn withdraw() {
    SHOWN.store(false, Ordering::SeqCst);
}

/// Notes that an inline program borrowed the alternate screen (`true`) or gave it back.
pub fn borrow_all(is_borrowed: bool) {
    AWAY.store(is_borrowed, Ordering::SeqCst);
}

/// Notes that the terminal is gone, so that [`leave`] writes nothing more.
pub fn abandon() {
    ENTERED.store(false, Ordering::SeqCst);
}

/// Stops this program until somebody continues it.
pub fn stop_here() {
    #[expect(
        unsafe_code,
        reason = "raise(3) has no safe wrapper for SIGSTOP that acts on the whole process"
    )]
    // SAFETY: raising a signal for ourselves touches no memory.
    unsafe {
        libc::kill(libc::getpid(), libc::SIGSTOP);
    }
}

/// Gives the terminal back before the process dies of a fault of its own.
pub fn guard_against_faults() {
    extern "C" fn on_fault(signal: libc::c_int) {
        leave();
        #[expect(
            unsafe_code,
            reason = "a signal handler may only use async-signal-safe calls, which libc's are"
        )]
        // SAFETY: both calls are async-signal-safe; the default action then ends the process with the right status.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
    for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGABRT, libc::SIGILL, libc::SIGFPE] {
        #[expect(unsafe_code, reason = "installing a handler has no safe wrapper")]
        // SAFETY: the handler only uses atomics, write(2) and tcsetattr(3).
        unsafe {
            libc::signal(signal, on_fault as *const () as libc::sighandler_t);
        }
    }
}

fn remember_original(file: &File) -> io::Result<()> {
    let mut termios = Box::new(std::mem::MaybeUninit::<libc::termios>::zeroed());
    #[expect(unsafe_code, reason = "the signal handler needs the plain C struct")]
    // SAFETY: the pointer is to memory of the right size that tcgetattr fills; it is kept for the life of the process.
    unsafe {
        if libc::tcgetattr(file.as_raw_fd(), termios.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let old = ORIGINAL.swap(Box::into_raw(termios).cast(), Ordering::SeqCst);
        if !old.is_null() {
            // The first one is the true original.
            ORIGINAL.store(old, Ordering::SeqCst);
        }
    }
    Ok(())
}

fn restore_modes() {
    let original = ORIGINAL.load(Ordering::SeqCst);
    if !original.is_null() {
        #[expect(
            unsafe_code,
            reason = "tcsetattr on the remembered struct, also from a signal handler"
        )]
        // SAFETY: the pointer was made by `remember_original` and is never freed.
        unsafe {
            libc::tcsetattr(libc::STDOUT_FILENO, libc::TCSANOW, original);
        }
    }
}

/// Time that a terminal which takes nothing is waited for, in milliseconds.
const PATIENCE_MS: libc::c_int = 200;

/// Returns true if the terminal takes bytes. If nobody has read what it shows, that is dropped: what restores it matters more.
fn makes_room() -> bool {
    let is_ready = |patience| {
        let mut about = libc::pollfd {
            fd: libc::STDOUT_FILENO,
            events: libc::POLLOUT,
            revents: 0,
        };
        #[expect(unsafe_code, reason = "poll(2) is what a signal handler may call")]
        // SAFETY: it reads and writes the one struct that it is given.
        let ready = unsafe { libc::poll(&raw mut about, 1, patience) };
        ready > 0
    };
    if is_ready(PATIENCE_MS) {
        return true;
    }
    #[expect(unsafe_code, reason = "tcflush(3) is what a signal handler may call")]
    // SAFETY: it touches no memory.
    unsafe {
        libc::tcflush(libc::STDOUT_FILENO, libc::TCOFLUSH);
    }
    is_ready(0)
}

fn write_all(mut bytes: &[u8]) {
    // A terminal that takes nothing for this many tries is gone.
    for _ in 0..64 {
        if !makes_room() {
            return;
        }
        #[expect(unsafe_code, reason = "write(2) is what a signal handler may call")]
        // SAFETY: the slice is valid for its length.
        let written = unsafe { libc::write(libc::STDOUT_FILENO, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(written) {
            Ok(n) if n >= bytes.len() => return,
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(_) => {
                if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_no_terminal_has_are_not_believed() {
        let cases = [
            ((120, 40), Some((120, 40))),
            ((1, 1), Some((1, 1))),
            ((0, 40), None),
            ((120, 0), None),
            ((u16::MAX, u16::MAX), Some((MOST_COLUMNS, MOST_ROWS))),
        ];
        for ((columns, rows), size) in cases {
            assert_eq!(believable(columns, rows), size, "{columns}×{rows}");
        }
    }
}
