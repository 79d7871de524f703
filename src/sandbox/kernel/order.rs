//! The permissions of a command, in the form that the helper reads.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use crate::sandbox::policy::{Policy, ResourceLimits, Tier};

/// A policy, and what is to run under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub policy: Policy,
    pub directory: PathBuf,
    /// The program, absolute, and its arguments.
    pub command: Vec<OsString>,
    /// Variables that the command gets beside the helper's own: `NAME=VALUE`. The helper itself does not have them, because some
    /// act in whatever program starts with them.
    pub variables: Vec<OsString>,
    /// True if the command keeps the terminal from which it was started, for people who try the sandbox.
    pub keeps_terminal: bool,
    /// True if the command joins the network of its conversation, whose descriptors the helper has inherited.
    pub joins: bool,
    /// Programs that run beside each other in place of the command, unless there are none.
    pub programs: Vec<Program>,
}

/// One of several programs under one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The program, absolute, and its arguments.
    pub command: Vec<OsString>,
    pub directory: PathBuf,
    /// Variables beside those of all programs: `NAME=VALUE`.
    pub variables: Vec<OsString>,
    /// Its standard input, without a NUL.
    pub input: String,
    /// Maximum run time, in milliseconds.
    pub limit_ms: u64,
}

impl Order {
    /// A record for each value: a letter, the value, a NUL, which is in no path and no argument.
    pub fn encode(&self) -> Vec<u8> {
        let Policy {
            tier,
            wraps,
            workspace,
            writable,
            read_only,
            hidden,
            temporary,
            over,
            network,
            git_write,
            limits:
                ResourceLimits {
                    processes,
                    file_bytes,
                    open_files,
                    memory_bytes,
                },
        } = &self.policy;
        let mut bytes = Vec::new();
        let mut put = |letter: u8, value: &OsStr| {
            bytes.push(letter);
            bytes.extend(value.as_bytes());
            bytes.push(0);
        };
        put(b't', OsStr::new(tier.as_str()));
        put(b'w', workspace.as_os_str());
        for (letter, paths) in [(b'+', writable), (b'-', read_only), (b'h', hidden)] {
            for path in paths {
                put(letter, path.as_os_str());
            }
        }
        for (letter, path) in [(b'm', temporary), (b'o', over)] {
            if let Some(path) = path {
                put(letter, path.as_os_str());
            }
        }
        for (letter, is_so) in [
            (b'n', *network),
            (b'g', *git_write),
            (b'b', *wraps),
            (b'k', self.keeps_terminal),
            (b'j', self.joins),
        ] {
            if is_so {
                put(letter, OsStr::new(""));
            }
        }
        for (letter, number) in [
            (b'1', processes),
            (b'2', file_bytes),
            (b'3', open_files),
            (b'4', memory_bytes),
        ] {
            put(letter, OsStr::new(&number.to_string()));
        }
        put(b'd', self.directory.as_os_str());
        for argument in &self.command {
            put(b'a', argument);
        }
        for variable in &self.variables {
            put(b'e', variable);
        }
        let mut before: Option<&Program> = None;
        for program in &self.programs {
            put(b'p', program.directory.as_os_str());
            put(b'l', OsStr::new(&program.limit_ms.to_string()));
            // Most have the same, which may be long.
            if before.is_some_and(|it| it.input == program.input) {
                put(b'=', OsStr::new(""));
            } else {
                put(b'i', OsStr::new(&program.input));
            }
            before = Some(program);
            for variable in &program.variables {
                put(b'v', variable);
            }
            for argument in &program.command {
                put(b'c', argument);
            }
        }
        // Says that nothing is missing.
        put(b'.', OsStr::new(""));
        bytes
    }

    /// `None` for whatever [`Self::encode`] did not make whole.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut order = Self {
            policy: Policy {
                tier: Tier::Full,
                wraps: false,
                workspace: PathBuf::new(),
                writable: Vec::new(),
                read_only: Vec::new(),
                hidden: Vec::new(),
                temporary: None,
                over: None,
                network: false,
                git_write: false,
                limits: ResourceLimits::default(),
            },
            directory: PathBuf::new(),
            command: Vec::new(),
            variables: Vec::new(),
            keeps_terminal: false,
            joins: false,
            programs: Vec::new(),
        };
        let body = bytes.strip_suffix(b".\0")?;
        let body = body.strip_suffix(b"\0")?;
        for record in body.split(|it| *it == 0) {
            let (letter, value) = record.split_first()?;
            let path = || PathBuf::from(OsStr::from_bytes(value));
            let number = || std::str::from_utf8(value).ok()?.parse().ok();
            let policy = &mut order.policy;
            match letter {
                b't' => {
                    policy.tier = [Tier::Full, Tier::Partial, Tier::None]
                        .into_iter()
                        .find(|it| it.as_str().as_bytes() == value)?;
                }
                b'w' => policy.workspace = path(),
                b'+' => policy.writable.push(path()),
                b'-' => policy.read_only.push(path()),
                b'h' => policy.hidden.push(path()),
                b'm' => policy.temporary = Some(path()),
                b'o' => policy.over = Some(path()),
                b'n' => policy.network = true,
                b'g' => policy.git_write = true,
                b'b' => policy.wraps = true,
                b'k' => order.keeps_terminal = true,
                b'j' => order.joins = true,
                b'1' => policy.limits.processes = number()?,
                b'2' => policy.limits.file_bytes = number()?,
                b'3' => policy.limits.open_files = number()?,
                b'4' => policy.limits.memory_bytes = number()?,
                b'd' => order.directory = path(),
                b'a' => order.command.push(OsString::from_vec(value.to_vec())),
                b'e' => order.variables.push(OsString::from_vec(value.to_vec())),
                b'p' => order.programs.push(Program {
                    command: Vec::new(),
                    directory: path(),
                    variables: Vec::new(),
                    input: String::new(),
                    limit_ms: 0,
                }),
                b'l' => order.programs.last_mut()?.limit_ms = number()?,
                b'i' => order.programs.last_mut()?.input = String::from_utf8(value.to_vec()).ok()?,
                b'=' => {
                    let (last, others) = order.programs.split_last_mut()?;
                    last.input.clone_from(&others.last()?.input);
                }
                b'v' => order
                    .programs
                    .last_mut()?
                    .variables
                    .push(OsString::from_vec(value.to_vec())),
                b'c' => order
                    .programs
                    .last_mut()?
                    .command
                    .push(OsString::from_vec(value.to_vec())),
                _ => return None,
            }
        }
        let is_runnable = |it: &Program| it.directory.is_absolute() && is_absolute(it.command.first());
        let is_whole = order.directory.is_absolute() && is_absolute(order.command.first());
        let is_whole = is_whole && order.programs.iter().all(is_runnable);
        is_whole.then_some(order)
    }
}

/// The names and values of variables that are written as `NAME=VALUE`.
pub fn pairs(variables: &[OsString]) -> impl Iterator<Item = (&OsStr, &OsStr)> {
    variables.iter().filter_map(|it| {
        let at = it.as_bytes().iter().position(|it| *it == b'=')?;
        let (name, value) = it.as_bytes().split_at(at);
        Some((OsStr::from_bytes(name), OsStr::from_bytes(value.get(1..)?)))
    })
}

fn is_absolute(program: Option<&OsString>) -> bool {
    program.is_some_and(|it| Path::new(it).is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path() -> impl Strategy<Value = PathBuf> {
        prop::collection::vec(1..=255_u8, 0..12).prop_map(|it| Path::new("/").join(OsString::from_vec(it)))
    }

    fn program() -> impl Strategy<Value = Program> {
        let words = || prop::collection::vec(prop::collection::vec(1..=255_u8, 0..9), 0..3);
        (path(), words(), words(), "[a-z\n\"é]{0,1}", any::<u64>()).prop_map(
            |(directory, arguments, variables, input, limit_ms)| Program {
                command: std::iter::once(OsString::from("/bin/x"))
                    .chain(arguments.into_iter().map(OsString::from_vec))
                    .collect(),
                directory,
                variables: variables.into_iter().map(OsString::from_vec).collect(),
                input,
                limit_ms,
            },
        )
    }

    fn order() -> impl Strategy<Value = Order> {
        let paths = || prop::collection::vec(path(), 0..4);
        (
            (path(), paths(), paths(), paths(), prop::option::of(path()), path()),
            prop::array::uniform5(any::<bool>()),
            prop::array::uniform4(any::<u64>()),
            prop::array::uniform2(prop::collection::vec(prop::collection::vec(1..=255_u8, 0..9), 0..4)),
            prop::sample::select(vec![Tier::Full, Tier::Partial, Tier::None]),
            prop::collection::vec(program(), 0..3),
        )
            .prop_map(|(paths, switches, numbers, [arguments, variables], tier, programs)| {
                let (workspace, writable, read_only, hidden, temporary, directory) = paths;
                let [network, git_write, wraps, keeps_terminal, joins] = switches;
                let [processes, file_bytes, open_files, memory_bytes] = numbers;
                let mut command = vec![OsString::from("/bin/x")];
                command.extend(arguments.into_iter().map(OsString::from_vec));
                Order {
                    policy: Policy {
                        tier,
                        wraps,
                        workspace,
                        writable,
                        read_only,
                        hidden,
                        over: temporary.clone().filter(|_| joins),
                        temporary,
                        network,
                        git_write,
                        limits: ResourceLimits {
                            processes,
                            file_bytes,
                            open_files,
                            memory_bytes,
                        },
                    },
                    directory,
                    command,
                    variables: variables.into_iter().map(OsString::from_vec).collect(),
                    keeps_terminal,
                    joins,
                    programs,
                }
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn the_helper_reads_what_was_ordered(order in order()) {
            let bytes = order.encode();
            prop_assert_eq!(Order::decode(&bytes), Some(order));
            // What is cut off anywhere is no order: half a list of walls would be one with holes.
            for end in 0..bytes.len() {
                prop_assert_eq!(Order::decode(&bytes[..end]), None, "{}", end);
            }
        }

        #[test]
        fn nothing_else_confuses_it(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            Order::decode(&bytes);
        }
    }
}
