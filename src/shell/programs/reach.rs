//! The servers that a line reaches.
//!
//! A question that names too few is worse than one that says "any host", so a command is known only if each of its words is.

use super::{
    address::{self, Address},
    base, doubt,
    git_remote::{self, GIT_REMOTE},
    has_option,
    known::{KNOWN, Known},
    runs_others,
    table::{LOCAL, REACHING, RUNNING},
};
use crate::{
    shell::{CommandLine, Doubt, SimpleCommand},
    text::WordList,
};

/// The servers that a line reaches, as far as it says so.
#[derive(Debug)]
pub struct Reach {
    /// Those that it reaches for certain.
    pub hosts: Vec<String>,
    /// Those that stand in it, such as in code and in texts that are sent.
    pub mentioned: Vec<String>,
    pub others: Others,
}

/// Servers that a line reaches without naming them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Others {
    None,
    /// A program chooses them itself, as `npm install` does.
    Chosen,
    /// A word that may name one cannot be read.
    Unread,
}

/// Commands of git that stay in the repository, and change no remote.
const LOCAL_GIT: WordList = WordList("add branch commit rev-parse status tag");
/// Options of `git branch` that leave the remotes of branches alone.
const PLAIN_BRANCH: WordList = WordList("--all --list --show-current -D -a -d -r -v -vv");

impl Reach {
    /// `remotes`: the servers that all git commands of the line reach; empty if they are not known.
    pub fn of(text: &str, line: &CommandLine, remotes: &[String]) -> Self {
        let mut found = Self {
            hosts: Vec::new(),
            mentioned: Vec::new(),
            others: Others::None,
        };
        // Other doubts are about more than one command, each of which is looked at below.
        if !line
            .doubts
            .iter()
            .all(|it| matches!(it, Doubt::Wrapper | Doubt::Option))
        {
            found.others = Others::Unread;
        }
        found.scan(text);
        for command in &line.commands {
            let others = found.command(command, !remotes.is_empty());
            found.others = found.others.max(others);
        }
        for remote in remotes {
            add(&mut found.hosts, remote.clone());
        }
        found
    }

    /// All servers that are named.
    pub fn named(&self) -> impl Iterator<Item = &String> {
        let others = self.mentioned.iter().filter(|it| !self.hosts.contains(it));
        self.hosts.iter().chain(others)
    }

    fn command(&mut self, command: &SimpleCommand, has_remotes: bool) -> Others {
        let are_certain = self.mention(command);
        let Some(program) = command.words.first().and_then(|it| it.text.as_deref()) else {
            return Others::Unread;
        };
        // With a folder in its name it may be any program.
        if LOCAL.contains(program) && doubt(command).is_none() && !has_option(&RUNNING, command, 1) {
            return Others::None;
        }
        let words: Option<Vec<&str>> = command.words.iter().skip(1).map(|it| it.text.as_deref()).collect();
        let Some(words) = words else { return Others::Unread };
        let is_known = match (program, words.as_slice()) {
            ("git", ["branch", rest @ ..]) => rest.iter().all(|it| !it.starts_with('-') || PLAIN_BRANCH.contains(it)),
            ("git", [subcommand, ..]) if GIT_REMOTE.contains(subcommand) => {
                has_remotes && git_remote::remote(command).is_some()
            }
            ("git", [subcommand, ..]) => LOCAL_GIT.contains(subcommand),
            _ => match KNOWN.iter().find(|it| it.program == program) {
                Some(known) => self.known(known, &words),
                None => {
                    let name = base(program);
                    let is_chosen = are_certain && name != "git" && !REACHING.contains(&name) && !runs_others(command);
                    return if is_chosen { Others::Chosen } else { Others::Unread };
                }
            },
        };
        if is_known { Others::None } else { Others::Unread }
    }

    /// Adds the servers of a program whose options are known. Returns true if those are all.
    fn known(&mut self, known: &Known, words: &[&str]) -> bool {
        let addresses = match known.program {
            // Options may follow the server; behind them stands what runs there.
            "ssh" => known.behind_options(words).and_then(|it| {
                let (server, rest) = it.split_first()?;
                known.behind_options(rest).map(|_| vec![*server])
            }),
            // Behind the first file everything is one.
            "scp" => {
                let files = known.behind_options(words);
                let files = files.filter(|it| !it.iter().any(|it| it.starts_with('-')));
                files.map(<[&str]>::to_vec)
            }
            _ => known.arguments(words),
        };
        let Some(addresses) = addresses.filter(|it| !it.is_empty()) else {
            return false;
        };
        let mut is_known = true;
        for word in addresses {
            match known.form.read(word) {
                Address::Server(host) => add(&mut self.hosts, host),
                Address::Here => {}
                Address::Unknown => is_known = false,
            }
        }
        is_known
    }

    /// Adds what the words of a command mention. Returns false if an address among them has no certain server.
    fn mention(&mut self, command: &SimpleCommand) -> bool {
        let mut words = command.words.iter().map(|it| it.text.as_deref().unwrap_or(&it.source));
        let reaches = words.next().is_some_and(|it| REACHING.contains(&base(it)));
        let mut are_certain = true;
        for word in words {
            are_certain &= self.scan(word);
            if word.starts_with('-') || word.contains("://") {
                continue;
            }
            // user@host:path, as ssh and git have it.
            let host = match word.split_once('@') {
                Some((user, rest)) if is_name(user) && (reaches || rest.contains(':')) => address::guess(rest),
                _ if reaches
                    && (word.contains('.') || word == "localhost")
                    && !word.starts_with(['.', '/', '@', '+']) =>
                {
                    address::guess(word)
                }
                _ => None,
            };
            if let Some(host) = host {
                add(&mut self.mentioned, host);
            }
        }
        are_certain
    }

    fn scan(&mut self, text: &str) -> bool {
        address::inside(text, &mut |it| add(&mut self.mentioned, it))
    }
}

fn add(hosts: &mut Vec<String>, host: String) {
    if !hosts.contains(&host) {
        hosts.push(host);
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|it| it.is_ascii_alphanumeric() || "_-.".contains(it))
}
