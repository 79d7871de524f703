//! Commands that the user configured: a key command, a clipboard tool, an editor.
//!
//! They run with the user's own rights and environment, without a shell unless one is asked for, and in a process
//! group of their own that dies with a timeout and with the future that waits. A group of its own also means: such
//! a command cannot read from the terminal. An editor can, through [`Command::interact`].

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::Child,
};

/// From here on no other process of the same user can look into this one: into its memory, its environment, its files.
/// A crash leaves no memory on the disk. Only Linux can be told so; elsewhere this does nothing.
pub fn seal() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "others can look into this process");
    }
}

/// Gives the calling thread, and those that it starts, the lowest priority. Does nothing elsewhere than on Linux, where `nice` is
/// of the whole process.
pub fn lower_priority() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(19) {
        tracing::debug!(%error, "a thread keeps its priority");
    }
}

/// Makes a write beyond the limit on file sizes (`ulimit -f`) an error like that of a full disk, instead of the end of the
/// process. Programs started from here have the usual behaviour.
pub fn outlive_file_size_limit() {
    #[cfg(unix)]
    {
        extern "C" fn nothing(_: libc::c_int) {}
        #[expect(unsafe_code, reason = "installing a handler has no safe wrapper")]
        // SAFETY: the handler does nothing. Unlike an ignored signal, a handler is reset when another program is executed.
        unsafe {
            libc::signal(libc::SIGXFSZ, nothing as *const () as libc::sighandler_t);
        }
    }
}

/// Maximum characters of a failed command's error output in an error.
const SAID_CHARS: usize = 300;

/// Extra time after a command's end or timeout: a child that it left behind may hold the pipe, and a killed one must be
/// reaped.
const GRACE: Duration = Duration::from_millis(100);

/// Reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the command `{program}` was not found")]
    NotFound { program: String },
    #[error("the command `{program}` could not be started")]
    Start { program: String, source: io::Error },
    #[error("the command `{program}` did not finish within {} ms", .after.as_millis())]
    TimedOut { program: String, after: Duration },
    #[error("the command `{program}` was stopped")]
    Stopped { program: String },
    #[error("the command `{program}` failed ({status}){}", after_line(.said))]
    Failed {
        program: String,
        status: ExitStatus,
        said: String,
    },
    #[error("the command `{program}` could not be waited for")]
    Wait { program: String, source: io::Error },
}

fn after_line(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("\n{text}")
    }
}

/// A command that is yet to run.
#[derive(Clone, Debug)]
pub struct Command {
    program: OsString,
    arguments: Vec<OsString>,
    /// A line for `sh`, which gets the arguments behind it.
    line: Option<OsString>,
    input: Option<Vec<u8>>,
    folder: Option<PathBuf>,
    variables: Vec<(OsString, OsString)>,
    timeout: Duration,
    limit_bytes: usize,
    output: bool,
    terminal: bool,
}

/// Output of a command.
#[derive(Clone, Debug)]
pub struct Output {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// True if the output is longer than the limit.
    pub truncated: bool,
}

impl Command {
    /// Runs `program`, found by `PATH`, for at most ten seconds, keeping at most 64 KiB of what it says.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            line: None,
            input: None,
            folder: None,
            variables: Vec::new(),
            timeout: Duration::from_secs(10),
            limit_bytes: 64 << 10,
            output: true,
            terminal: true,
        }
    }

    /// Runs `line` by `sh`, with the arguments behind it: `code --wait` becomes `code --wait FILE`.
    pub fn shell(line: impl Into<OsString>) -> Self {
        Self {
            line: Some(line.into()),
            ..Self::new("/bin/sh")
        }
    }

    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub fn args<T: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets the command's standard input; empty by default.
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Some(bytes.into());
        self
    }

    /// Sets the working folder.
    pub fn folder(mut self, folder: impl AsRef<Path>) -> Self {
        self.folder = Some(folder.as_ref().to_owned());
        self
    }

    /// Sets a variable of the command's environment, beside those that it inherits.
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Sets the time after which the command is killed.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// For each of stdout and stderr. What is beyond is read and dropped.
    pub fn limit_bytes(mut self, limit_bytes: usize) -> Self {
        self.limit_bytes = limit_bytes;
        self
    }

    /// Drops what it says. A command that leaves a child behind, as clipboard tools do, must be run so.
    pub fn without_output(mut self) -> Self {
        self.output = false;
        self
    }

    /// Runs the command in a session of its own. What asks on the terminal then fails at once; otherwise it would be stopped,
    /// and could write over the screen.
    pub fn without_terminal(mut self) -> Self {
        self.terminal = false;
        self
    }

    /// Runs the command to its end. Dropping the future kills it with all its children.
    pub async fn run(self) -> Result<Output, Error> {
        self.run_until(std::future::pending()).await
    }

    /// Runs the command to its end, or until `stop` is ready. A command that is stopped, or out of time, may remove its locks
    /// before it is killed, and is gone afterwards.
    pub async fn run_until(self, stop: impl Future<Output = ()>) -> Result<Output, Error> {
        let stream = |wanted: bool| if wanted { Stdio::piped() } else { Stdio::null() };
        let mut command = self.prepared();
        command
            .stdin(stream(self.input.is_some()))
            .stdout(stream(self.output))
            .stderr(stream(self.output));
        #[cfg(unix)]
        if self.terminal {
            command.process_group(0);
        } else {
            own_session(&mut command);
        }
        let mut child = self.spawned(&mut command)?;
        let mut group = Group::of(&child);
        let error = tokio::select! {
            biased;
            result = self.attend(&mut child) => {
                group.leave();
                return result.map_err(|source| Error::Wait {
                    program: self.name(),
                    source,
                });
            }
            () = stop => Error::Stopped { program: self.name() },
            () = tokio::time::sleep(self.timeout) => Error::TimedOut {
                program: self.name(),
                after: self.timeout,
            },
        };
        // Its number is its own until it is reaped.
        group.ask_to_end();
        tokio::time::sleep(GRACE).await;
        drop(group);
        // Usually it is gone at once and can be reaped here. What may not be killed, because it runs with other rights
        // than ours, must not turn the timeout into a wait without end.
        child.start_kill().ok();
        tokio::time::timeout(GRACE, child.wait()).await.ok();
        Err(error)
    }

    /// Runs the command; its standard output if it succeeded.
    pub async fn output(self) -> Result<Vec<u8>, Error> {
        let program = self.name();
        let Output {
            status,
            stdout,
            stderr,
            truncated: _,
        } = self.run().await?;
        if status.success() {
            return Ok(stdout);
        }
        let said = String::from_utf8_lossy(&stderr)
            .trim()
            .chars()
            .take(SAID_CHARS)
            .collect();
        Err(Error::Failed { program, status, said })
    }

    /// Runs the command on the terminal, which is its own until it ends: an editor. There is no timeout.
    pub async fn interact(self) -> Result<ExitStatus, Error> {
        let mut child = self.spawned(&mut self.prepared())?;
        child.wait().await.map_err(|source| Error::Wait {
            program: self.name(),
            source,
        })
    }

    fn prepared(&self) -> tokio::process::Command {
        #[expect(clippy::disallowed_methods, reason = "this is the place where commands are started")]
        let mut command = tokio::process::Command::new(&self.program);
        if let Some(line) = &self.line {
            let mut script = line.clone();
            // The arguments stay words of their own, whatever characters they have.
            script.push(r#" "$@""#);
            command
                .arg("-c")
                .arg(if self.arguments.is_empty() { line } else { &script })
                .arg("sh");
        }
        command.args(&self.arguments).kill_on_drop(true);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command
    }

    fn spawned(&self, command: &mut tokio::process::Command) -> Result<Child, Error> {
        command.spawn().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => Error::NotFound { program: self.name() },
            _ => Error::Start {
                program: self.name(),
                source,
            },
        })
    }

    /// Feeds, reads and waits, all at once: a command that talks before it has read everything must not hang.
    async fn attend(&self, child: &mut Child) -> io::Result<Output> {
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let feed = async {
            if let (Some(mut stdin), Some(input)) = (stdin, &self.input) {
                // A command that has read enough closes its end, which is no fault.
                stdin.write_all(input).await.ok();
                stdin.shutdown().await.ok();
            }
        };
        let (mut out, mut err) = (
            LimitedOutput::new(self.limit_bytes),
            LimitedOutput::new(self.limit_bytes),
        );
        let status = {
            let talk = async {
                tokio::join!(feed, out.fill(stdout), err.fill(stderr));
            };
            tokio::pin!(talk);
            tokio::select! {
                // Output first: the end of the command is usually seen together with its last words.
                biased;
                () = &mut talk => child.wait().await?,
                status = child.wait() => {
                    tokio::time::timeout(GRACE, talk).await.ok();
                    status?
                }
            }
        };
        let truncated = out.truncated || err.truncated;
        Ok(Output {
            status,
            stdout: out.bytes,
            stderr: err.bytes,
            truncated,
        })
    }

    /// Returns the command's name for messages.
    fn name(&self) -> String {
        self.line
            .as_deref()
            .unwrap_or(&self.program)
            .to_string_lossy()
            .into_owned()
    }
}

/// Gives the command a session without a terminal, whose process group it leads.
#[cfg(unix)]
fn own_session(command: &mut tokio::process::Command) {
    #[expect(
        unsafe_code,
        reason = "between fork and exec only a system call is made: nothing is allocated and nothing locked"
    )]
    unsafe {
        command.pre_exec(|| Ok(rustix::process::setsid().map(drop)?));
    }
}

/// The beginning of a stream, up to a limit.
struct LimitedOutput {
    bytes: Vec<u8>,
    limit_bytes: usize,
    truncated: bool,
}

impl LimitedOutput {
    fn new(limit_bytes: usize) -> Self {
        Self {
            bytes: Vec::new(),
            limit_bytes,
            truncated: false,
        }
    }

    async fn fill(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut piece = vec![0; 8 << 10];
        while let Ok(count @ 1..) = stream.read(&mut piece).await {
            let free = self.limit_bytes - self.bytes.len();
            self.truncated |= count > free;
            self.bytes.extend_from_slice(&piece[..count.min(free)]);
        }
    }
}

/// Kills a command's process group when it is dropped before the command was waited for.
struct Group(#[cfg(unix)] Option<rustix::process::Pid>);

impl Group {
    #[cfg(unix)]
    fn of(child: &Child) -> Self {
        let number = child.id().and_then(|it| i32::try_from(it).ok());
        Self(number.and_then(rustix::process::Pid::from_raw))
    }

    #[cfg(not(unix))]
    fn of(_: &Child) -> Self {
        Self()
    }

    fn ask_to_end(&self) {
        #[cfg(unix)]
        if let Some(group) = self.0 {
            rustix::process::kill_process_group(group, rustix::process::Signal::TERM).ok();
        }
    }

    /// The command has ended; what it left behind may live, and its number may soon be another's.
    fn leave(&mut self) {
        #[cfg(unix)]
        {
            self.0 = None;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(group) = self.0 {
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        }
    }
}

/// The program's file, looked for in the folders of `path` as the system does it.
pub fn find(program: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|it| it.is_absolute())
        .map(|it| it.join(program))
        .find(|it| it.metadata().is_ok_and(|it| it.is_file() && is_executable(&it)))
}

#[cfg(unix)]
fn is_executable(file: &std::fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&file.permissions()) & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &std::fs::Metadata) -> bool {
    true
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use std::time::Instant;

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    /// Waits until the process that wrote its number into `file` is gone.
    async fn gone(file: &Path) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            assert!(Instant::now() < deadline, "it lives on");
            let number = std::fs::read_to_string(file).ok().and_then(|it| it.trim().parse().ok());
            if let Some(pid) = number.and_then(rustix::process::Pid::from_raw)
                && (rustix::process::test_kill_process(pid).is_err() || is_zombie(pid))
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn is_zombie(pid: rustix::process::Pid) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|it| it.starts_with('Z'))
    }

    async fn written(file: &Path) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while std::fs::read_to_string(file).map_or(true, |it| !it.ends_with('\n')) {
            assert!(Instant::now() < deadline, "nothing was written");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn a_command_is_given_words_and_input_and_gives_output_and_status() {
        let echoed = Command::new("printf")
            .args(["%s|", "a b", "$HOME", "; true"])
            .output()
            .await
            .unwrap();
        assert_eq!(text(&echoed), "a b|$HOME|; true|");
        assert_eq!(
            text(&Command::new("cat").input("hello").output().await.unwrap()),
            "hello"
        );
        assert_eq!(
            text(&Command::new("cat").output().await.unwrap()),
            "",
            "without input there is none"
        );
        let here = Command::new("pwd").folder("/").output().await.unwrap();
        assert_eq!(text(&here), "/\n");
        let output = Command::shell("echo out; echo err >&2; exit 3").run().await.unwrap();
        assert_eq!(
            (output.status.code(), text(&output.stdout), text(&output.stderr)),
            (Some(3), "out\n", "err\n")
        );
    }

    #[tokio::test]
    async fn a_shell_line_gets_its_arguments_as_words() {
        let line = Command::shell("printf '%s|' one").args(["two words", "$(id)", "\"quoted'"]);
        assert_eq!(text(&line.output().await.unwrap()), "one|two words|$(id)|\"quoted'|");
        assert_eq!(text(&Command::shell("echo a | tr a b").output().await.unwrap()), "b\n");
    }

    #[tokio::test]
    async fn each_way_to_fail_has_its_words() {
        let error = Command::new("sheaf-no-such-command").output().await.unwrap_err();
        assert_eq!(error.to_string(), "the command `sheaf-no-such-command` was not found");
        let error = Command::shell("echo wrong key >&2; exit 2").output().await.unwrap_err();
        assert!(error.to_string().ends_with("(exit status: 2)\nwrong key"), "{error}");
        assert!(matches!(
            Command::new("/").output().await.unwrap_err(),
            Error::Start { .. }
        ));
    }

    #[tokio::test]
    async fn much_input_against_much_output_does_not_hang_and_is_capped() {
        let much = vec![b'x'; 1 << 20];
        let output = Command::new("cat")
            .input(much.clone())
            .limit_bytes(1000)
            .run()
            .await
            .unwrap();
        assert_eq!(
            (output.stdout.len(), output.truncated, output.status.success()),
            (1000, true, true)
        );
        let output = Command::new("cat")
            .input(much)
            .limit_bytes(1 << 20)
            .run()
            .await
            .unwrap();
        assert_eq!((output.stdout.len(), output.truncated), (1 << 20, false));
        let output = Command::new("true").input(vec![b'x'; 1 << 20]).run().await.unwrap();
        assert!(output.status.success(), "input that nobody reads is no fault");
    }

    #[tokio::test]
    async fn a_timeout_kills_the_whole_group() {
        let folder = tempfile::tempdir().unwrap();
        let child = folder.path().join("child");
        let line = format!("sleep 600 & echo $! > {}; wait", child.display());
        // The time must be enough for the shell to start its child.
        let error = Command::shell(line)
            .timeout(Duration::from_secs(1))
            .run()
            .await
            .unwrap_err();
        assert!(matches!(error, Error::TimedOut { .. }), "{error:?}");
        gone(&child).await;
    }

    #[tokio::test]
    async fn letting_go_kills_the_whole_group() {
        let line = |child: &Path| {
            let line = format!("sleep 600 & echo $! > {}; wait", child.display());
            Command::shell(line).timeout(Duration::from_mins(10))
        };
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        for (child, command) in [(&one, line(&one)), (&other, line(&other).without_terminal())] {
            let waiting = tokio::spawn(command.run());
            written(child).await;
            waiting.abort();
            gone(child).await;
        }
    }

    #[tokio::test]
    async fn a_child_left_behind_is_not_waited_for_and_lives() {
        let folder = tempfile::tempdir().unwrap();
        for (name, has_output) in [("with output", true), ("without output", false)] {
            let (gate, sign) = (
                folder.path().join(format!("{name} gate")),
                folder.path().join(format!("{name} sign")),
            );
            // It holds the pipes open, and what it writes later shows that it was not killed: asking whether its number
            // exists would not do, because the dead keep theirs until somebody reaps them.
            let script = r#"(until [ -e "$1" ]; do sleep 0.02; done; echo alive > "$2") & echo done;:"#;
            let mut command = Command::new("/bin/sh").args(["-c", script, "sh"]).arg(&gate).arg(&sign);
            if !has_output {
                command = command.without_output();
            }
            let output = command.timeout(Duration::from_mins(1)).run().await.unwrap();
            assert!(output.status.success(), "{name}");
            assert!(!sign.exists(), "{name}: it was waited for");
            std::fs::write(&gate, "").unwrap();
            written(&sign).await;
        }
    }

    #[tokio::test]
    async fn an_interactive_command_gives_its_status() {
        assert_eq!(Command::shell("exit 7").interact().await.unwrap().code(), Some(7));
    }

    #[test]
    fn programs_are_found_in_absolute_folders_only() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("plain"), "").unwrap();
        std::os::unix::fs::symlink("/bin/sh", folder.path().join("tool")).unwrap();
        let path = std::env::join_paths([Path::new("."), Path::new("/nowhere"), folder.path()]).unwrap();
        assert_eq!(find("tool", &path), Some(folder.path().join("tool")));
        assert_eq!(find("plain", &path), None);
        assert_eq!(find("absent", &path), None);
    }
}
