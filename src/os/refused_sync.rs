//! For tests: a kernel that refuses to bring files to the disk, so that it is seen whether somebody asks for it.

/// Runs `work` on a thread on which fsync and fdatasync fail with EIO.
pub fn without_sync<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            refuse();
            work()
        });
        thread.join().expect("the work does not panic")
    })
}

#[expect(unsafe_code, reason = "a system call filter for this thread has no safe wrapper")]
fn refuse() {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const IS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    let step = |code: u32, jt, jf, k: u32| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    // The number of the call is the first word of what the filter sees.
    let mut steps = [
        step(LOAD, 0, 0, 0),
        step(IS, 1, 0, libc::SYS_fsync as u32),
        step(IS, 0, 1, libc::SYS_fdatasync as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EIO as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: the program lives during the call, which copies it; both calls are about this thread alone.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program), 0);
    }
}
