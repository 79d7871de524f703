//! Several programs beside each other behind the same walls, and what each of them printed.
//!
//! The helper stays with them: it gives each its input, stops the one whose time is over, and prints the end of each as a record.
//! No program can write or read these records: they go through a pipe that none of them inherits.

use std::{
    io::{self, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::process::{CommandExt as _, ExitStatusExt as _},
    },
    process::{Child, ChildStdin, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid},
};

use super::order::{Program, pairs};

/// Bytes of standard output that are kept; one more shows that there were too many.
const OUTPUT_BYTES: usize = 1 << 20;
/// Bytes of standard error that are kept; the rest is read and dropped.
const ERROR_BYTES: usize = 16 << 10;
/// Time that a program has to end by itself after it was asked to.
const GRACE: Duration = Duration::from_secs(2);
/// Interval at which ends are looked for, where the kernel does not tell of them.
const LOOK: Duration = Duration::from_millis(10);
/// As shells say that a program cannot be started.
const ABSENT: i32 = 127;

/// The end of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its position in the order.
    pub at: usize,
    pub end: End,
    pub took_ms: u64,
    /// Standard output, at most `OUTPUT_BYTES` and one byte more.
    pub output: Vec<u8>,
    pub errors: Vec<u8>,
}

/// The way in which one of several programs ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exited(i32),
    Killed(i32),
    TimedOut,
}

impl Report {
    /// A line of numbers, then the two texts.
    fn encode(&self) -> Vec<u8> {
        let (word, code) = match self.end {
            End::Exited(code) => ('e', code),
            End::Killed(signal) => ('k', signal),
            End::TimedOut => ('t', 0),
        };
        let Self {
            at,
            took_ms,
            output,
            errors,
            ..
        } = self;
        let head = format!("{at} {word} {code} {took_ms} {} {}\n", output.len(), errors.len());
        [head.as_bytes(), output, errors].concat()
    }

    /// Reads what helpers print. What is not whole is left out.
    pub fn decode(mut bytes: &[u8]) -> Vec<Self> {
        let mut reports = Vec::new();
        while let Some((report, rest)) = Self::first(bytes) {
            reports.push(report);
            bytes = rest;
        }
        reports
    }

    fn first(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let end = bytes.iter().position(|it| *it == b'\n')?;
        let (head, rest) = (bytes.get(..end)?, bytes.get(end + 1..)?);
        let mut words = std::str::from_utf8(head).ok()?.split(' ');
        let at = words.next()?.parse().ok()?;
        let (word, code) = (words.next()?, words.next()?.parse().ok()?);
        let end = match word {
            "e" => End::Exited(code),
            "k" => End::Killed(code),
            "t" => End::TimedOut,
            _ => return None,
        };
        let took_ms = words.next()?.parse().ok()?;
        let (output, errors): (usize, usize) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let (texts, rest) = rest.split_at_checked(output.checked_add(errors)?)?;
        let (output, errors) = texts.split_at(output);
        let report = Self {
            at,
            end,
            took_ms,
            output: output.to_vec(),
            errors: errors.to_vec(),
        };
        Some((report, rest))
    }
}

/// Runs the programs, and writes a record of each to `reports` when it ends.
pub fn run(programs: &[Program], reports: &mut impl io::Write) -> io::Result<()> {
    let mut running = Vec::new();
    for (at, program) in programs.iter().enumerate() {
        match One::start(at, program) {
            Ok(one) => running.push(one),
            Err(error) => {
                let report = Report {
                    at,
                    end: End::Exited(ABSENT),
                    took_ms: 0,
                    output: Vec::new(),
                    errors: error.to_string().into_bytes(),
                };
                reports.write_all(&report.encode())?;
            }
        }
    }
    while !running.is_empty() {
        wait(&running)?;
        let mut left = Vec::new();
        for mut one in running {
            match one.step() {
                Some(report) => reports.write_all(&report.encode())?,
                None => left.push(one),
            }
        }
        running = left;
    }
    reports.flush()
}

/// A program that runs.
struct One {
    at: usize,
    child: Child,
    /// Readable once it has ended. `None`: the kernel has no such thing.
    ended: Option<OwnedFd>,
    input: Option<(ChildStdin, Vec<u8>)>,
    output: Stream<std::process::ChildStdout>,
    errors: Stream<std::process::ChildStderr>,
    began: Instant,
    /// It is asked to end, or made to, at this time.
    deadline: Instant,
    is_late: bool,
}

/// A pipe that is read, and what was in it.
struct Stream<T> {
    pipe: Option<T>,
    kept: Vec<u8>,
    most: usize,
    /// What goes beyond is read all the same.
    drains: bool,
}

impl<T: io::Read + std::os::fd::AsFd> Stream<T> {
    fn new(pipe: Option<T>, most: usize, drains: bool) -> io::Result<Self> {
        if let Some(pipe) = &pipe {
            unblock(pipe)?;
        }
        Ok(Self {
            pipe,
            kept: Vec::new(),
            most,
            drains,
        })
    }

    /// Reads what is there.
    fn read(&mut self) {
        let mut piece = [0; 16 << 10];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut piece) {
                Ok(more @ 1..) => {
                    let free = self.most.saturating_sub(self.kept.len()).min(more);
                    self.kept.extend_from_slice(&piece[..free]);
                    if !self.drains && self.kept.len() >= self.most {
                        self.pipe = None;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => self.pipe = None,
            }
        }
    }
}

impl One {
    fn start(at: usize, program: &Program) -> io::Result<Self> {
        let mut words = program.command.iter();
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the place where the helper starts programs"
        )]
        let mut command = std::process::Command::new(words.next().ok_or(io::ErrorKind::InvalidInput)?);
        command
            .args(words)
            .envs(pairs(&program.variables))
            .current_dir(&program.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let began = Instant::now();
        let mut child = command.spawn()?;
        let ended = Pid::from_child(&child);
        let stdin = child.stdin.take();
        if let Some(pipe) = &stdin {
            unblock(pipe)?;
        }
        Ok(Self {
            at,
            ended: pidfd_open(ended, PidfdFlags::empty()).ok(),
            input: stdin.map(|it| (it, program.input.clone().into_bytes())),
            output: Stream::new(child.stdout.take(), OUTPUT_BYTES + 1, false)?,
            errors: Stream::new(child.stderr.take(), ERROR_BYTES, true)?,
            child,
            began,
            deadline: began + Duration::from_millis(program.limit_ms),
            is_late: false,
        })
    }

    /// Does what can be done without waiting. Returns the report once it has ended.
    fn step(&mut self) -> Option<Report> {
        self.write();
        self.output.read();
        self.errors.read();
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if let Ok(None) = waitid(WaitId::Pid(Pid::from_child(&self.child)), options) {
            self.hurry();
            return None;
        }
        // What it left in its group goes with it, while the number is still the group's.
        self.signal(Signal::KILL);
        let status = self.child.wait().ok();
        self.output.read();
        self.errors.read();
        let end = match status.map(|it| (it.code(), it.signal())) {
            _ if self.is_late => End::TimedOut,
            Some((Some(code), _)) => End::Exited(code),
            Some((None, Some(signal))) => End::Killed(signal),
            Some((None, None)) | None => End::Killed(0),
        };
        Some(Report {
            at: self.at,
            end,
            took_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            output: std::mem::take(&mut self.output.kept),
            errors: std::mem::take(&mut self.errors.kept),
        })
    }

    /// Writes what there is room for.
    fn write(&mut self) {
        let Some((pipe, bytes)) = &mut self.input else { return };
        while !bytes.is_empty() {
            match pipe.write(bytes) {
                Ok(written @ 1..) => drop(bytes.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // It does not read, which is its own business.
                Ok(0) | Err(_) => break,
            }
        }
        self.input = None;
    }

    /// Ends it if its time is over: asked first, made to later.
    fn hurry(&mut self) {
        if Instant::now() < self.deadline {
            return;
        }
        self.signal(if self.is_late { Signal::KILL } else { Signal::TERM });
        self.is_late = true;
        self.deadline = Instant::now() + GRACE;
    }

    /// To the group, until the child was waited for.
    fn signal(&self, signal: Signal) {
        kill_process_group(Pid::from_child(&self.child), signal).ok();
    }
}

fn unblock(pipe: impl std::os::fd::AsFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(&pipe)?;
    Ok(rustix::fs::fcntl_setfl(&pipe, flags | rustix::fs::OFlags::NONBLOCK)?)
}

/// Waits until one of them has printed something, can be written to or has ended, or its time is over.
fn wait(running: &[One]) -> io::Result<()> {
    let mut watched = Vec::new();
    for one in running {
        let mut add = |fd, flags| watched.push(PollFd::from_borrowed_fd(fd, flags));
        if let Some(pipe) = &one.output.pipe {
            add(pipe.as_fd(), PollFlags::IN);
        }
        if let Some(pipe) = &one.errors.pipe {
            add(pipe.as_fd(), PollFlags::IN);
        }
        if let Some((pipe, _)) = &one.input {
            add(pipe.as_fd(), PollFlags::OUT);
        }
        if let Some(ended) = &one.ended {
            add(ended.as_fd(), PollFlags::IN);
        }
    }
    let now = Instant::now();
    let deadlines = running.iter().map(|it| match &it.ended {
        Some(_) => it.deadline.saturating_duration_since(now),
        None => LOOK,
    });
    // A moment more, so that the time is over then.
    let time = deadlines.min().unwrap_or_default() + Duration::from_millis(1);
    let time = Timespec::try_from(time).map_err(|_| io::ErrorKind::InvalidInput)?;
    match poll(&mut watched, Some(&time)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn program(line: &str, input: &str, limit_ms: u64) -> Program {
        Program {
            command: ["/bin/bash", "-c", line].map(Into::into).into(),
            directory: "/".into(),
            variables: vec!["NAME=a=b".into()],
            input: input.to_owned(),
            limit_ms,
        }
    }

    fn reports(programs: &[Program]) -> Vec<Report> {
        let mut bytes = Vec::new();
        run(programs, &mut bytes).unwrap();
        let mut reports = Report::decode(&bytes);
        reports.sort_by_key(|it| it.at);
        reports
    }

    #[test]
    fn each_has_its_own_input_output_and_end() {
        let long = "x".repeat(300_000);
        let found = reports(&[
            program("cat; echo \"$NAME\" >&2", &long, 60_000),
            program("exec 1>&- 2>&- 0<&-; exit 3", &long, 60_000),
            program("kill -9 $$", "", 60_000),
            program("trap '' TERM; sleep 60", "", 50),
            program("sleep 60 & exit 0", "", 60_000),
            program("yes", "", 60_000),
            Program {
                directory: "/no-such-folder".into(),
                ..program("exit 0", "", 60_000)
            },
        ]);
        let ends: Vec<_> = found.iter().map(|it| it.end).collect();
        assert_eq!(
            ends,
            [
                End::Exited(0),
                End::Exited(3),
                End::Killed(9),
                End::TimedOut,
                End::Exited(0),
                End::Killed(13),
                End::Exited(127)
            ]
        );
        assert_eq!((found[0].output.len(), &found[0].errors[..]), (300_000, &b"a=b\n"[..]));
        assert_eq!(found[5].output.len(), OUTPUT_BYTES + 1);
        assert!(found[6].errors.starts_with(b"No such file"));
    }

    #[test]
    fn a_record_that_is_cut_off_is_none() {
        let report = Report {
            at: 7,
            end: End::Killed(9),
            took_ms: 12,
            output: b"one\ntwo".to_vec(),
            errors: b"\0three".to_vec(),
        };
        let bytes = report.encode();
        let twice = [&bytes[..], &bytes].concat();
        assert_eq!(Report::decode(&twice), [report.clone(), report.clone()]);
        for end in 0..bytes.len() {
            assert_eq!(Report::decode(&bytes[..end]), [], "{end}");
            assert_eq!(
                Report::decode(&twice[..bytes.len() + end]),
                std::slice::from_ref(&report),
                "{end}"
            );
        }
    }
}
