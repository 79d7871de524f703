//! A limit on the time that the program takes to end after a signal.
//!
//! Signals are acted on by the event loop, which cannot when it waits for somebody to read what it writes: a full pipe, a
//! terminal that takes nothing. Then an alarm ends the process. Everything here runs in signal handlers, so it only makes
//! calls that are safe there. Handlers of tokio are installed over these and call them first; they must come later.

use std::sync::{
    OnceLock,
    atomic::{AtomicI32, Ordering},
};

/// Time for the event loop to notice the signal, in seconds.
const NOTICE_SECONDS: libc::c_uint = 2;

/// Time for an orderly end after that, in seconds: the last words, the session, running commands.
const END_SECONDS: libc::c_uint = 3;

/// The signal that has come and has not been dealt with; 0 for none.
static PENDING: AtomicI32 = AtomicI32::new(0);

/// Gives the terminal back.
static RESTORE: OnceLock<fn()> = OnceLock::new();

/// Ends the process if one of `signals` is not acted on in time, after a call of `restore`, which must be safe in a signal
/// handler. The exit code is that of the signal, 128 + its number.
pub fn limit(signals: impl IntoIterator<Item = libc::c_int>, restore: fn()) {
    RESTORE.get_or_init(|| restore);
    let handlers = signals.into_iter().map(|it| (it, on_signal as *const ()));
    for (signal, handler) in handlers.chain([(libc::SIGALRM, on_alarm as *const ())]) {
        #[expect(unsafe_code, reason = "installing a handler has no safe wrapper")]
        // SAFETY: the handlers use atomics and async-signal-safe calls only.
        unsafe {
            libc::signal(signal, handler as libc::sighandler_t);
        }
    }
}

/// Returns true if this process ignores a signal.
pub fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    #[expect(unsafe_code, reason = "sigaction(2) has no safe wrapper")]
    // SAFETY: it writes the whole structure where it succeeds, and zeros are a valid one.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// The event loop has noticed a signal. If it `ends` the program, that may take a little longer; else it goes on.
pub fn noticed(ends: bool) {
    if PENDING.load(Ordering::SeqCst) == 0 {
        return;
    }
    if ends {
        alarm(END_SECONDS);
    } else {
        alarm(0);
        PENDING.store(0, Ordering::SeqCst);
    }
}

extern "C" fn on_signal(signal: libc::c_int) {
    let is_first = PENDING.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
    if is_first.is_ok() {
        alarm(NOTICE_SECONDS);
    }
}

extern "C" fn on_alarm(_: libc::c_int) {
    if let Some(restore) = RESTORE.get() {
        restore();
    }
    #[expect(
        unsafe_code,
        reason = "_exit(2) is what a signal handler may call to end the process"
    )]
    // SAFETY: it does not return, and runs nothing of ours.
    unsafe {
        libc::_exit(128 + PENDING.load(Ordering::SeqCst));
    }
}

/// Has SIGALRM come after `seconds`; 0 cancels it.
fn alarm(seconds: libc::c_uint) {
    #[expect(unsafe_code, reason = "alarm(2) has no safe wrapper")]
    // SAFETY: it is async-signal-safe and touches no memory.
    unsafe {
        libc::alarm(seconds);
    }
}
