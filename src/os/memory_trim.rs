//! Gives back what only the start of the program needed.
//!
//! A start runs through a lot of code once: arguments, settings, relocations. Its pages stay mapped although nothing looks at
//! them again, and would be more than half of what an idle program holds. They are the file's own and unchanged, so dropping
//! them costs a page fault where one is needed after all.

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

/// Other systems do not say which mappings are unchanged.
#[cfg(not(target_os = "linux"))]
pub fn drop_unchanged_pages() {}

/// Returns freed memory to the system if it is worth the work: the allocator keeps the pages of small pieces in case that they are
/// needed again. Takes some milliseconds for each gigabyte.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn trim_when_worth() {
    const WORTH_BYTES: usize = 1 << 20;

    if free_bytes() < WORTH_BYTES {
        return;
    }
    #[expect(unsafe_code, reason = "malloc_trim(3) has no safe wrapper")]
    // SAFETY: it may be called by any thread at any time, and touches nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Other C libraries are not told to.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn trim_when_worth() {}

/// Returns the size in bytes of freed memory that the allocator has, resident or not. What is resident cannot be told from what is
/// allocated and was never written to.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn free_bytes() -> usize {
    #[expect(unsafe_code, reason = "mallinfo(3) has no safe wrapper")]
    // SAFETY: it only reads, and may be called by any thread at any time.
    let info = unsafe { libc::mallinfo() };
    // Above 4 GiB it wraps: then memory may be trimmed later.
    info.fordblks.cast_unsigned() as usize
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
    fn what_was_freed_goes_back_to_the_system_each_time() {
        let bytes = || {
            let status = std::fs::read_to_string("/proc/self/status").expect("it is Linux");
            let line = status.lines().find_map(|it| it.strip_prefix("RssAnon:"));
            let kib = line.expect("Linux 4.5").trim().trim_end_matches(" kB");
            kib.parse::<usize>().expect("a figure") << 10
        };
        // Allocated and never written to, as most of a buffer is: it must not be taken for what was freed and given back.
        let untouched: Vec<Vec<u8>> = (0..2000).map(|_| Vec::with_capacity(100 << 10)).collect();
        // Twice: what was in use at the first time may be free at the second.
        let mut kept = Vec::new();
        for _ in 0..2 {
            let small: Vec<Vec<u8>> = (0..400_000).map(|it| vec![it as u8; 500]).collect();
            // The allocator can return nothing by itself, because of this piece after them.
            let last = vec![1_u8; 500];
            drop(std::mem::replace(&mut kept, small));
            trim_when_worth();
            drop(last);
        }
        let last = vec![1_u8; 500];
        drop(kept);
        let before = bytes();
        trim_when_worth();
        let after = bytes();
        assert!(after + (80 << 20) < before, "{before} bytes before, {after} after");
        drop((last, untouched));
    }

    #[test]
    fn everything_works_afterwards() {
        let text = format!("{:?}", vec![1, 2, 3]);
        drop_unchanged_pages();
        assert_eq!(format!("{:?}", vec![1, 2, 3]), text);
    }
}
