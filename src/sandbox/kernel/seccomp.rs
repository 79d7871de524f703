//! The system calls that a command may not make, as a filter of the kernel's.

use std::collections::BTreeMap;

use libc::c_long;
#[cfg(target_arch = "x86_64")]
use seccompiler::sock_filter;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Is, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use crate::sandbox::policy::{Policy, Tier};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Never, whatever the arguments: doors into other processes, into the kernel and out of the walls.
const NEVER: &[c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_kexec_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// New namespaces bring capabilities back.
const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Requests that type into a terminal as if the user did, TIOCSTI and TIOCLINUX. Only the low half of a request counts.
const TYPING: &[u64] = &[0x5412, 0x541c];

/// Memory, queues and locks of all processes, which only a namespace keeps apart.
const OF_OTHERS: &[c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
];

/// Puts the filters into force, for good.
pub fn apply(policy: &Policy) -> Result<(), Error> {
    for filter in filters(policy)? {
        seccompiler::apply_filter(&filter)?;
    }
    Ok(())
}

fn filters(policy: &Policy) -> Result<Vec<BpfProgram>, Error> {
    let mut denied: BTreeMap<c_long, Vec<SeccompRule>> = NEVER.iter().map(|it| (*it, Vec::new())).collect();
    let namespaces = NAMESPACES.iter().map(|it| {
        let flag = *it as u64;
        rule(&[(0, Width::Qword, Is::MaskedEq(flag), flag)])
    });
    denied.insert(libc::SYS_clone, namespaces.collect::<Result<_, _>>()?);
    let typing = TYPING.iter().map(|it| rule(&[(1, Width::Dword, Is::Eq, *it)]));
    denied.insert(libc::SYS_ioctl, typing.collect::<Result<_, _>>()?);
    denied.insert(libc::SYS_socket, sockets(policy)?);
    denied.insert(libc::SYS_socketpair, pairs()?);
    if policy.tier == Tier::Partial {
        denied.extend(OF_OTHERS.iter().map(|it| (*it, Vec::new())));
        denied.extend(on_others()?);
    }
    // It tells its flags in memory, where a filter cannot look. Who is told that there is no such call uses the older one.
    let absent = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let mut programs = vec![program(denied, libc::EPERM)?, program(absent, libc::ENOSYS)?];
    #[cfg(target_arch = "x86_64")]
    programs.push(other_numbers());
    Ok(programs)
}

/// The sockets that may not be made; no condition: none may.
fn sockets(policy: &Policy) -> Result<Vec<SeccompRule>, Error> {
    // In a network of its own a command may talk to itself.
    if policy.tier != Tier::Full && !policy.network {
        return Ok(Vec::new());
    }
    let (four, six, netlink) = (libc::AF_INET as u64, libc::AF_INET6 as u64, libc::AF_NETLINK as u64);
    Ok(vec![
        rule(&[
            (0, Width::Dword, Is::Ne, four),
            (0, Width::Dword, Is::Ne, six),
            (0, Width::Dword, Is::Ne, netlink),
        ])?,
        rule(&[
            (0, Width::Dword, Is::Eq, netlink),
            (2, Width::Dword, Is::Ne, libc::NETLINK_ROUTE as u64),
        ])?,
    ])
}

/// The pairs of sockets that may not be made. One of datagrams also sends to any socket outside that has a path; a raw one is
/// one of datagrams.
fn pairs() -> Result<Vec<SeccompRule>, Error> {
    const KIND: u64 = 0xf;
    let of_kind = |kind: i32| rule(&[(1, Width::Dword, Is::MaskedEq(KIND), kind as u64)]);
    Ok(vec![
        rule(&[(0, Width::Dword, Is::Ne, libc::AF_UNIX as u64)])?,
        of_kind(libc::SOCK_DGRAM)?,
        of_kind(libc::SOCK_RAW)?,
    ])
}

/// The calls that change limits and priorities of a process by its number, or of a user's, where no namespace hides others. A filter
/// cannot tell the caller's own number from that of another process.
fn on_others() -> Result<BTreeMap<c_long, Vec<SeccompRule>>, Error> {
    const IOPRIO_WHO_USER: u64 = 3;
    let names_other = |argument: u8| rule(&[(argument, Width::Dword, Is::Ne, 0)]);
    let is_user = |user: u64| rule(&[(0, Width::Dword, Is::Eq, user)]);
    let scheduling = [
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setattr,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setscheduler,
    ];
    let mut denied = BTreeMap::new();
    for call in scheduling {
        denied.insert(call, vec![names_other(0)?]);
    }
    // To ask for the limits of another process changes nothing.
    let limits = rule(&[(0, Width::Dword, Is::Ne, 0), (2, Width::Qword, Is::Ne, 0)])?;
    denied.insert(libc::SYS_prlimit64, vec![limits]);
    denied.insert(
        libc::SYS_setpriority,
        vec![names_other(1)?, is_user(libc::PRIO_USER.into())?],
    );
    denied.insert(libc::SYS_ioprio_set, vec![names_other(1)?, is_user(IOPRIO_WHO_USER)?]);
    Ok(denied)
}

fn rule(conditions: &[(u8, Width, Is, u64)]) -> Result<SeccompRule, Error> {
    let conditions = conditions
        .iter()
        .map(|(argument, width, is, value)| SeccompCondition::new(*argument, width.clone(), is.clone(), *value))
        .collect::<Result<_, _>>()?;
    Ok(SeccompRule::new(conditions)?)
}

/// A call that has no rule is denied with any arguments. Calls of another architecture end the process.
fn program(rules: BTreeMap<c_long, Vec<SeccompRule>>, error: i32) -> Result<BpfProgram, Error> {
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(error as u32),
        std::env::consts::ARCH.try_into()?,
    )?;
    Ok(filter.try_into()?)
}

/// The same calls have second numbers on x86-64, in case the kernel was built with them.
#[cfg(target_arch = "x86_64")]
fn other_numbers() -> BpfProgram {
    const X32: u32 = 0x4000_0000;
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let line = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        line(LOAD, 0, 0, 0),
        line(IF_AT_LEAST, 0, 1, X32),
        line(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        line(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}
