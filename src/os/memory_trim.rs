//! Gives back what only the start of the program needed.
//!
//! A start runs through a lot of code once: arguments, settings, relocations. Its pages stay mapped although nothing looks at
//! them again, and would be more than half of what an idle program holds. They are the file's own and unchanged, so dropping
//! them costs a page fault where one is needed after all.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::sync::atomic::{AtomicUsize, Ordering};

/// Drops the pages of the program's own code and constants from memory; those that are needed again are read from the file.
/// Called some time after the start and after rare work. Does nothing where `/proc/self/maps` cannot be read.
#[cfg(target_os = "linux")]
pub fn drop_unchanged_pages() {
    use rustix::mm::{Advice, madvise};

    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else {
        return;
    };
    for (start, length) in unchanged(&maps, drop_unchanged_pages as fn() as usize) {
        #[expect(
            unsafe_code,
            reason = "code and constants of a file, mapped without the right to write: they come back the same"
        )]
        // SAFETY: `unchanged` gives whole mappings of our own file that cannot have been written to.
        let result = unsafe {
            madvise(
                std::ptr::with_exposed_provenance_mut(start),
                length,
                Advice::LinuxDontNeed,
            )
        };
        if let Err(error) = result {
            tracing::debug!(%error, "pages of the start stay");
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub fn drop_unchanged_pages() {}

/// Gives back what was freed since the last time, where it may be much: of many small pieces the allocator keeps the pages, in
/// case that they are needed once more. Takes some milliseconds for each gigabyte.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn trim_when_worth() {
    /// Pages that were resident after the last time.
    static LEAST: AtomicUsize = AtomicUsize::new(0);
    // 16 MiB on a machine with pages of 4 KiB.
    const WORTH_PAGES: usize = 4 << 10;

    let Some(before) = resident_pages() else { return };
    if before < LEAST.load(Ordering::Relaxed).saturating_add(WORTH_PAGES) {
        return;
    }
    #[expect(unsafe_code, reason = "malloc_trim(3) has no safe wrapper")]
    // SAFETY: it may be called by any thread at any time, and touches nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
    LEAST.store(resident_pages().unwrap_or(before), Ordering::Relaxed);
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn trim_when_worth() {}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn resident_pages() -> Option<usize> {
    std::fs::read_to_string("/proc/self/statm")
        .ok()?
        .split(' ')
        .nth(1)?
        .parse()
        .ok()
}

/// Start and length of the mappings of the file that holds `code` which are as they are in the file: its code, and the
/// constants at its very beginning. What lies behind has been written to by the loader before it was made read-only.
#[cfg(target_os = "linux")]
fn unchanged(maps: &str, code: usize) -> Vec<(usize, usize)> {
    let parsed = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let (from, to) = (
            usize::from_str_radix(from, 16).ok()?,
            usize::from_str_radix(to, 16).ok()?,
        );
        let rights = words.next()?.to_owned();
        let offset = u64::from_str_radix(words.next()?, 16).ok()?;
        let file = (words.next()?.to_owned(), words.next()?.to_owned());
        Some((from, to, rights, offset, file))
    };
    let all: Vec<_> = maps.lines().filter_map(parsed).collect();
    let Some(ours) = all.iter().find(|it| (it.0..it.1).contains(&code)) else {
        return Vec::new();
    };
    let is_whole = |rights: &str, offset: u64| rights == "r-xp" || (rights == "r--p" && offset == 0);
    all.iter()
        .filter(|it| it.4 == ours.4 && it.4.1 != "0" && is_whole(&it.2, it.3))
        .map(|it| (it.0, it.1 - it.0))
        .collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    const MAPS: &str = "\
1000-3000 r--p 00000000 fe:00 7   /usr/bin/sheaf
3000-5000 r-xp 00001000 fe:00 7   /usr/bin/sheaf
5000-6000 r--p 00003000 fe:00 7   /usr/bin/sheaf
6000-7000 rw-p 00004000 fe:00 7   /usr/bin/sheaf
8000-9000 r-xp 00000000 fe:00 9   /usr/lib/libc.so.6
a000-b000 r-xp 00000000 00:00 0   [vdso]
";

    #[test]
    fn what_the_loader_has_written_to_is_kept() {
        assert_eq!(unchanged(MAPS, 0x3abc), [(0x1000, 0x2000), (0x3000, 0x2000)]);
    }

    #[test]
    fn code_that_is_in_no_file_gives_nothing() {
        assert_eq!(unchanged(MAPS, 0xa010), []);
        assert_eq!(unchanged("what is this", 0xa010), []);
    }

    #[cfg(target_env = "gnu")]
    #[test]
    fn what_was_freed_goes_back_to_the_system() {
        let small: Vec<Vec<u8>> = (0..400_000).map(|it| vec![it as u8; 500]).collect();
        // Of the first of them the allocator can give back nothing by itself, because of this one behind them.
        let last = vec![1_u8; 500];
        let with = resident_pages().expect("it is Linux");
        drop(small);
        trim_when_worth();
        let after = resident_pages().expect("it is Linux");
        assert!(after + (20 << 10) < with, "{with} pages before, {after} after");
        drop(last);
    }

    #[test]
    fn everything_works_afterwards() {
        let text = format!("{:?}", vec![1, 2, 3]);
        drop_unchanged_pages();
        assert_eq!(format!("{:?}", vec![1, 2, 3]), text);
    }
}
