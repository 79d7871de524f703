//! The commands of which a question can name every server.
//!
//! A question that names too few is worse than one that says "any host", so a command is known only if each of its words is.

use super::{
    authority, doubt,
    git_remote::{self, FLAGS},
    has_option, host_of,
    table::{LOCAL, RUNNING},
};
use crate::{shell::SimpleCommand, text::WordList};

/// Options of a program that fetches addresses which lead to no other server and run nothing.
struct Fetcher {
    program: &'static str,
    /// Letters of options without a value, and of those that take the next word.
    flags: &'static str,
    valued: &'static str,
    /// The same as words.
    long_flags: WordList,
    long_valued: WordList,
}

const FETCHERS: [Fetcher; 2] = [
    Fetcher {
        program: "curl",
        flags: "#IOSfgikLsv",
        valued: "AHXdmou",
        long_flags: WordList(
            "--compressed --fail --head --include --insecure --location --remote-name --show-error --silent --verbose",
        ),
        long_valued: WordList("--data --data-raw --header --max-time --output --request --retry --user --user-agent"),
    },
    Fetcher {
        program: "wget",
        flags: "cqv",
        valued: "O",
        long_flags: WordList("--continue --no-verbose --quiet -O- -nv -qO-"),
        long_valued: WordList("--output-document"),
    },
];

/// Commands of git that stay in the repository.
const LOCAL_GIT: WordList = WordList("add branch commit rev-parse status tag");

/// Returns true if [`super::hosts`] finds all servers that a command reaches. `has_remotes`: the remotes of all git commands of
/// its line are known, too.
pub fn names_all_hosts(command: &SimpleCommand, has_remotes: bool) -> bool {
    let Some(program) = command.words.first().and_then(|it| it.text.as_deref()) else {
        return false;
    };
    // With a folder in its name it may be any program.
    if LOCAL.contains(program) {
        return doubt(command).is_none() && !has_option(&RUNNING, command, 1);
    }
    let words: Option<Vec<&str>> = command.words.iter().skip(1).map(|it| it.text.as_deref()).collect();
    let Some(words) = words else { return false };
    if let Some(fetcher) = FETCHERS.iter().find(|it| it.program == program) {
        return fetcher.is_known(&words);
    }
    match (program, words.as_slice()) {
        // What follows the server and looks like an option is one of ssh's own.
        ("ssh", [server, rest @ ..]) => {
            server.contains('@') && is_server(server) && rest.first().is_none_or(|it| !it.starts_with('-'))
        }
        ("git", ["clone", rest @ ..]) => {
            let mut rest = rest.iter().skip_while(|it| FLAGS.contains(it));
            // An address without scheme or user is not taken for one in other commands.
            let is_seen = |it: &&&str| it.contains("://") || it.contains('@');
            let is_named = rest
                .next()
                .filter(is_seen)
                .is_some_and(|it| git_remote::host(it).is_some());
            is_named && rest.all(|it| !it.starts_with('-'))
        }
        ("git", ["fetch" | "ls-remote" | "pull" | "push", rest @ ..]) => {
            has_remotes && rest.iter().all(|it| !it.starts_with('-') || FLAGS.contains(it))
        }
        ("git", [subcommand, ..]) => LOCAL_GIT.contains(subcommand),
        _ => false,
    }
}

impl Fetcher {
    /// Returns true if all words are known options and addresses, of which there is one.
    fn is_known(&self, words: &[&str]) -> bool {
        let (mut words, mut has_address) = (words.iter(), false);
        while let Some(word) = words.next() {
            if self.long_flags.contains(word) {
                continue;
            }
            if self.long_valued.contains(word) {
                words.next();
                continue;
            }
            let Some(letters) = word.strip_prefix('-') else {
                has_address = true;
                if !is_address(word) {
                    return false;
                }
                continue;
            };
            let mut letters = letters.chars().rev();
            let Some(last) = letters.next() else { return false };
            if self.valued.contains(last) {
                words.next();
            } else if !self.flags.contains(last) {
                return false;
            }
            if !letters.all(|it| self.flags.contains(it)) {
                return false;
            }
        }
        has_address
    }
}

/// Returns true for an address whose host is certain.
fn is_address(word: &str) -> bool {
    let scheme_and_rest = word.split_once("://");
    let is_http = scheme_and_rest.is_none_or(|it| matches!(it.0.to_ascii_lowercase().as_str(), "http" | "https"));
    let rest = scheme_and_rest.map_or(word, |it| it.1);
    // Without a scheme only what has a dot is taken for one.
    is_http && !word.contains('\\') && (scheme_and_rest.is_some() || is_server(rest)) && authority(rest).is_some()
}

/// Returns true for `host.example` and `user@host`.
fn is_server(word: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-._@:/?=&%".contains(it);
    let host = word.rsplit('@').next().unwrap_or_default();
    let (host, _) = host.split_once(['/', ':']).unwrap_or((host, ""));
    word.starts_with(|it: char| it.is_ascii_alphanumeric())
        && word.chars().all(is_plain)
        && (word.contains('@') || host.contains('.'))
        && host_of(host).is_some()
}
