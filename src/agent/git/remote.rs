//! The servers behind the remotes of the person's repository, as git itself would reach them.

use std::path::Path;

use super::quiet;
use crate::shell::{
    CommandLine,
    programs::git_remote::{GitRemote, git_remotes, host},
};

/// The servers that the git commands of a line reach from `folder`; empty where one of them cannot be named.
pub async fn hosts(folder: &Path, line: &str) -> Vec<String> {
    let mut hosts = Vec::new();
    for remote in git_remotes(&CommandLine::read(line)) {
        let found = match remote {
            GitRemote::Cloned(url) => cloned(folder, &url).await,
            GitRemote::Named { name, is_push } => {
                let name = match name {
                    Some(name) => name,
                    None => usual(folder, is_push).await,
                };
                server(folder, &name, is_push).await
            }
        };
        let Some(found) = found else { return Vec::new() };
        if !hosts.contains(&found) {
            hosts.push(found);
        }
    }
    hosts
}

/// The remote that git chooses for the current branch.
async fn usual(folder: &Path, is_push: bool) -> String {
    let branch = output(folder, &["symbolic-ref", "--short", "HEAD"])
        .await
        .unwrap_or_default();
    let pushed = [format!("branch.{branch}.pushRemote"), "remote.pushDefault".to_owned()];
    let keys = pushed.into_iter().filter(|_| is_push);
    for key in keys.chain([format!("branch.{branch}.remote")]) {
        if let Some(name) = output(folder, &["config", "--get", &key]).await {
            return name;
        }
    }
    // With one remote git takes that one, whatever its name.
    match output(folder, &["remote"]).await {
        Some(only) if !only.contains('\n') => only,
        Some(_) | None => "origin".to_owned(),
    }
}

/// The server of an address or of a remote by its name, with the addresses that the settings put in its place. `None`: there is
/// none, or there are several.
async fn server(folder: &Path, name: &str, is_push: bool) -> Option<String> {
    let push: &[&str] = if is_push { &["--push"] } else { &[] };
    // An address may be the name of a remote, too.
    if let Some(urls) = output(folder, &[&["remote", "get-url", "--all"], push, &["--", name]].concat()).await {
        let mut hosts = urls.lines().map(host);
        let first = hosts.next()??;
        return hosts.all(|it| it.as_ref() == Some(&first)).then_some(first);
    }
    // Git does not say which of these settings hold for an address.
    let pushes = ["config", "--get-regexp", r"^url\..*\.pushinsteadof$"];
    if is_push && output(folder, &pushes).await.is_some() {
        return None;
    }
    host(&output(folder, &["ls-remote", "--get-url", "--", name]).await?)
}

/// The server of an address that is cloned: of the settings only those outside of repositories count.
async fn cloned(folder: &Path, url: &str) -> Option<String> {
    let nowhere = "--git-dir=/dev/null";
    host(&output(folder, &[nowhere, "ls-remote", "--get-url", "--", url]).await?)
}

/// What git prints, without the last line break; `None` if it fails or prints nothing.
async fn output(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = quiet(folder).args(arguments.iter().copied()).run().await.ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim_end().to_owned();
    (output.status.success() && !output.truncated && !text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(folder: &Path, arguments: &[&str]) {
        let (is_ok, said) = super::super::tests::git_in(folder, arguments);
        assert!(is_ok, "{arguments:?}: {said}");
    }

    #[tokio::test]
    async fn a_remote_is_named_by_the_server_that_git_would_reach() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        git(at, &["init", "-q", "-b", "main"]);
        for (name, url) in [
            ("origin", "https://github.com/kim/shop.git"),
            ("fork", "git@codeberg.org:kim/shop.git"),
            ("disk", "/srv/shop.git"),
            ("short", "gh:kim/shop.git"),
        ] {
            git(at, &["remote", "add", name, url]);
        }
        git(at, &["config", "url.https://elsewhere.example/.insteadOf", "gh:"]);
        git(
            at,
            &["config", "url.https://evil.example/.insteadOf", "https://docs.rs/"],
        );
        for (key, url) in [("url", "https://evil.example/x"), ("pushurl", "https://push.example/x")] {
            git(at, &["config", &format!("remote.https://named.example/x.{key}"), url]);
        }
        git(
            at,
            &["config", "remote.origin.pushurl", "ssh://git@push.example/shop.git"],
        );
        for (line, expected) in [
            ("git fetch", "github.com"),
            ("git push", "push.example"),
            ("git fetch origin && git push fork main", "github.com codeberg.org"),
            ("git pull short", "elsewhere.example"),
            ("git push disk", ""),
            ("git push nowhere", ""),
            ("git push fork && git push disk", ""),
            ("git push /srv/shop.git", ""),
            ("git push ./a:b", ""),
            // An address goes where the settings send it, unless it is cloned.
            ("git fetch https://a.example/x", "a.example"),
            ("git push 'b.example:x@a.example' main", "b.example"),
            ("git fetch gh:kim/shop", "elsewhere.example"),
            ("git ls-remote https://docs.rs/x", "evil.example"),
            ("git push https://docs.rs/x", "evil.example"),
            ("git pull https://named.example/x", "evil.example"),
            ("git push https://named.example/x", "push.example"),
            ("git clone https://docs.rs/x y && cd y", "docs.rs"),
            ("git clone gh:kim/shop", "gh"),
            (
                "git clone https://docs.rs/x && git fetch https://docs.rs/x",
                "docs.rs evil.example",
            ),
            ("git clone ext::evil", ""),
        ] {
            assert_eq!(hosts(at, line).await.join(" "), expected, "{line}");
        }
        git(
            at,
            &[
                "config",
                "url.https://evil.example/.pushInsteadOf",
                "https://p.example/",
            ],
        );
        assert_eq!(hosts(at, "git fetch https://p.example/x").await, ["p.example"]);
        assert_eq!(hosts(at, "git push https://p.example/x").await, Vec::<String>::new());
        git(at, &["config", "branch.main.remote", "fork"]);
        assert_eq!(hosts(at, "git fetch").await, ["codeberg.org"]);
        git(at, &["config", "remote.pushDefault", "origin"]);
        assert_eq!(hosts(at, "git push").await, ["push.example"]);
        git(at, &["remote", "set-url", "--add", "fork", "https://github.com/x"]);
        assert_eq!(
            hosts(at, "git fetch fork").await,
            Vec::<String>::new(),
            "it goes to two"
        );
    }

    #[tokio::test]
    async fn without_a_repository_no_server_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(hosts(folder.path(), "git push origin").await, Vec::<String>::new());
    }
}
