//! Starting a command, and the sentinel that ends it if the program is killed.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read, Seek},
    os::fd::{AsRawFd, RawFd},
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
};

use rustix::process::{Resource, Rlimit};
use tokio::process::Child;

use crate::{
    os::process::find,
    protocol::Permission,
    sandbox::{
        kernel::{
            self, FOLDER_DESCRIPTOR, NETWORK_DESCRIPTOR, ORDER_DESCRIPTOR, SharedNetwork, USER_DESCRIPTOR, hand_down,
        },
        policy::{Tier, protected_names::top_folders},
    },
};

/// Length in bytes of the longest line that the system takes, which is 128 KiB with what `shell` adds.
pub const LONGEST_LINE: usize = (128 << 10) - 200;

/// Reason why a command was not started.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    #[error("the command is longer than {LONGEST_LINE} bytes; write it to a file and run that")]
    Long,
    #[error("the command holds a NUL character")]
    Nul,
    #[error("the folder `{0}` does not exist")]
    Folder(String),
    #[error("`bash` was not found; commands need it")]
    Bash,
    #[error("the command could not be started")]
    Failed(#[from] io::Error),
}

/// Kills what a conversation left when the other end of its input is gone, however that came. It reads the groups of
/// commands that begin (`+`, with the name of their list), whose leader has been waited for (`=`), and whose list is done (`-`).
/// Once all of them is dead it notes that beside their
/// lists: what changes later is not theirs. At last it takes away the empty folders that were held for them, where nobody else
/// holds them.
const SENTINEL: &str = include_str!("../../../assets/sandbox/sentinel.sh");

/// The file that a shell writes its last folder to; it has no name, so nobody else does.
pub fn told(temporary: &Path) -> io::Result<File> {
    let path = temporary.join(format!(".folder-{}", uuid::Uuid::new_v4().simple()));
    let flags =
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CREATE | rustix::fs::OFlags::EXCL | rustix::fs::OFlags::CLOEXEC;
    let file = rustix::fs::open(&path, flags, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
    std::fs::remove_file(&path)?;
    Ok(File::from(file))
}

/// Returns the last folder of the shell, as it wrote it. `None` if it wrote none or the folder is gone.
pub fn told_folder(told: &mut File) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    told.rewind().ok()?;
    told.take(16 << 10).read_to_end(&mut bytes).ok()?;
    // A name with a line end in it is not recognised, and then the folder stays what it was.
    let path = bytes.strip_suffix(b"\n")?;
    let path = path.rsplit(|it| *it == b'\n').next()?;
    let path = PathBuf::from(<OsString as std::os::unix::ffi::OsStringExt>::from_vec(path.to_vec()));
    (path.is_absolute() && path.is_dir()).then_some(path)
}

/// Returns the sandbox of a command with these permissions.
pub fn held(tier: Tier, permissions: &[Permission]) -> Tier {
    if permissions.contains(&Permission::All) {
        Tier::None
    } else {
        tier
    }
}

/// The shell that runs a line, which also says where it ended.
pub fn shell(line: &str, variables: &[(OsString, OsString)]) -> Result<Vec<OsString>, NotStarted> {
    let path = variables.iter().find(|it| it.0 == "PATH").map(|it| it.1.clone());
    let bash = find("bash", &path.unwrap_or_default()).ok_or(NotStarted::Bash)?;
    // Behind the command on its own line, so that messages of the shell name the right lines.
    let script = format!("trap 'builtin pwd -P 2>/dev/null >&{FOLDER_DESCRIPTOR}' EXIT; {line}");
    Ok([
        bash.into(),
        "--noprofile".into(),
        "--norc".into(),
        "-c".into(),
        script.into(),
    ]
    .into())
}

/// The way to start a command.
pub enum Start {
    /// By itself.
    Plain(Vec<OsString>),
    /// Through the helper, which reads its order here and may join a network.
    Held(io::PipeReader, Option<Arc<SharedNetwork>>),
}

/// Starts a command with its output in one pipe, or with its errors in a second one.
pub fn spawn(
    start: Start,
    directory: &Path,
    variables: Vec<(OsString, OsString)>,
    (output, errors): (io::PipeWriter, Option<io::PipeWriter>),
    told: &File,
) -> Result<Child, NotStarted> {
    let (mut command, handed) = prepare_child(start)?;
    let errors = match errors {
        Some(errors) => errors,
        None => output.try_clone()?,
    };
    command
        .current_dir(directory)
        .env_clear()
        .envs(variables)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors);
    separate(&mut command, &handed, Some(told));
    Ok(command.spawn()?)
}

/// Files that a helper reads when it starts; they stay open until then.
#[derive(Default)]
pub struct Handed {
    order: Option<io::PipeReader>,
    network: Option<Arc<SharedNetwork>>,
}

/// Returns the process of a command, and what is handed to it.
pub fn prepare_child(start: Start) -> io::Result<(tokio::process::Command, Handed)> {
    let (arguments, handed) = match start {
        Start::Plain(arguments) => (arguments, Handed::default()),
        Start::Held(order, network) => {
            let order = Some(order);
            let arguments = [kernel::program()?.into(), kernel::WORD.into()];
            (arguments.into(), Handed { order, network })
        }
    };
    let (program, arguments) = arguments
        .split_first()
        .ok_or_else(|| io::Error::other("the command line is empty"))?;
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the place where a model's commands are started"
    )]
    let mut command = tokio::process::Command::new(program);
    command.args(arguments);
    Ok((command, handed))
}

/// Gives a command a session of its own, its helper's descriptors, and the file to which it writes its last folder.
pub fn separate(command: &mut tokio::process::Command, handed: &Handed, told: Option<&File>) {
    let mut handed_down: Vec<(RawFd, RawFd)> = Vec::new();
    handed_down.extend(told.map(|it| (it.as_raw_fd(), FOLDER_DESCRIPTOR)));
    handed_down.extend(handed.order.as_ref().map(|it| (it.as_raw_fd(), ORDER_DESCRIPTOR)));
    if let Some(shared) = &handed.network {
        handed_down.extend([
            (shared.network.as_raw_fd(), NETWORK_DESCRIPTOR),
            (shared.user.as_raw_fd(), USER_DESCRIPTOR),
        ]);
    }
    let before = move || -> io::Result<()> {
        // No terminal: what has one could write to the screen and read what the user types.
        rustix::process::setsid()?;
        // A crash of a command leaves no memory on the disk.
        let none = Rlimit {
            current: Some(0),
            maximum: Some(0),
        };
        rustix::process::setrlimit(Resource::Core, none).ok();
        modest();
        hand_down(&handed_down)
    };
    #[expect(
        unsafe_code,
        reason = "between fork and exec only system calls are made: nothing is allocated and nothing locked"
    )]
    unsafe {
        command.pre_exec(before);
    }
}

/// Makes the kernel end the command before this program when memory runs out.
#[cfg(target_os = "linux")]
fn modest() {
    let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(c"/proc/self/oom_score_adj", flags, rustix::fs::Mode::empty()) {
        rustix::io::write(&file, b"1000").ok();
    }
}

/// Other kernels do not let a process ask for that.
#[cfg(not(target_os = "linux"))]
fn modest() {}

/// Starts the sentinel, in a group of its own so that a key in the terminal does not reach it.
pub fn watch_over(name: &str, temporary: &Path, root: &Path, aside: Option<&Path>) -> io::Result<io::PipeWriter> {
    let (reader, writer) = io::pipe()?;
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the place where a model's commands are started"
    )]
    let mut command = std::process::Command::new("/bin/sh");
    command
        .args(["-c", SENTINEL, "sheaf-sentinel", name])
        .arg(temporary)
        .arg(root)
        .arg(aside.unwrap_or(Path::new("")))
        .args(top_folders())
        .current_dir("/")
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .stdin(reader)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn()?;
    // It ends when we do, or when the conversation does and is buried then.
    std::thread::Builder::new()
        .name("sentinel".to_owned())
        .stack_size(64 << 10)
        .spawn(move || child.wait())?;
    Ok(writer)
}
