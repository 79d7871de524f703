//! Limits the memory that a thread may take for one piece of work on hostile text.
//!
//! Work that cannot be stopped from outside and takes memory with every round would take all memory. Such work states
//! its limit when it begins. A thread that asks for more never gets it and never returns: it sleeps for ever, outside
//! of every lock of the allocator. No other thread may wait for it.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    time::Duration,
};

#[global_allocator]
static MEMORY: Counted = Counted;

thread_local! {
    /// Bytes that this thread may still take; unlimited unless set.
    static LEFT: Cell<isize> = const { Cell::new(isize::MAX) };
}

/// The system's memory, counted for threads that have a bound.
struct Counted;

/// Runs `work` with at most `bytes` more memory than the thread has now. Never returns if that is not enough.
pub(super) fn within<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    /// Takes the bound away, also when the work panics.
    struct Free;
    impl Drop for Free {
        fn drop(&mut self) {
            LEFT.set(isize::MAX);
        }
    }
    let _free = Free;
    LEFT.set(isize::try_from(bytes).unwrap_or(isize::MAX));
    work()
}

/// Counts bytes that are allocated; negative for freed ones.
fn take(bytes: isize) {
    // A thread that ends has no count any more.
    let is_over = LEFT.try_with(|left| {
        let before = left.get();
        if before == isize::MAX {
            return false;
        }
        left.set(before.saturating_sub(bytes));
        before < bytes
    });
    if is_over == Ok(true) {
        loop {
            std::thread::sleep(Duration::MAX);
        }
    }
}

fn size(layout: Layout) -> isize {
    // No layout is larger than that.
    layout.size() as isize
}

#[expect(
    unsafe_code,
    reason = "every call is handed on to the system's memory as it came; nothing is done but counting"
)]
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(size(layout));
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(size(layout));
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        take(-size(layout));
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new: usize) -> *mut u8 {
        take(new as isize - size(layout));
        unsafe { System.realloc(pointer, layout, new) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn who_takes_more_than_was_said_never_comes_back_and_nobody_else_is_held_up() {
        assert_eq!(within(1 << 20, || vec![1_u8; 1000].len()), 1000);
        // What is given back is not counted, and the bound ends with the work.
        let many = |times: usize, bytes: usize| (0..times).map(|_| vec![1_u8; bytes].len()).sum::<usize>();
        assert_eq!(within(1 << 20, || many(100, 100_000)), 10_000_000);
        assert_eq!(many(1, 4 << 20), 4 << 20);
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            tell.send("begun").ok();
            let mut grows: Vec<u64> = Vec::new();
            within(1 << 20, || {
                loop {
                    grows.push(1);
                }
            })
        });
        assert_eq!(told.recv(), Ok("begun"));
        // It neither ends, which would be seen here, nor grows: all of the test would.
        assert!(told.try_recv().is_err());
        assert_eq!(many(1, 4 << 20), 4 << 20);
    }
}
