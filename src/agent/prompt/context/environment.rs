//! What holds the model's commands and edits here, in two lines. Pure.

use crate::{agent::approval::RunMode, sandbox::Tier};

/// Two lines on commands and edits. `gaps`: what a partial sandbox does not cover.
pub fn environment(tier: Tier, gaps: &str, run: RunMode) -> String {
    let holds = match tier {
        Tier::Full => {
            "run in a sandbox: no network without the permission `network`, but loopback works, also from one command to \
                       a server of another; only the workspace \
                       and /tmp are writable, and .git is read-only without `git_write`"
                .to_owned()
        }
        Tier::Partial if gaps.is_empty() => partial("some things"),
        Tier::Partial => partial(gaps),
        Tier::None => {
            "run without a sandbox, with all rights of the user: the network and .git are open to them, so change \
                       nothing outside the workspace"
                .to_owned()
        }
    };
    let asks = match (run, tier) {
        (RunMode::Force, _) => "nobody is asked first",
        (RunMode::Sandbox, Tier::Full) => "the user is asked only for more than that",
        (RunMode::List, _) => "the user is asked unless a rule allows the command",
        (RunMode::Ask | RunMode::Sandbox, _) => "the user is asked about each command",
    };
    let edits = match run {
        RunMode::Ask => "are shown to the user before they are written",
        RunMode::List | RunMode::Sandbox | RunMode::Force => "are written at once",
    };
    format!("Commands: {holds}; {asks}.\nEdits: {edits}; the user can undo each of them.")
}

fn partial(gaps: &str) -> String {
    format!(
        "run in a sandbox that does not cover {gaps}; otherwise no network without the permission `network`, only the \
         workspace and /tmp are writable, and .git is read-only without `git_write`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_lines_say_what_holds() {
        let full = environment(Tier::Full, "", RunMode::Sandbox);
        for words in [
            "no network",
            "loopback works",
            ".git is read-only",
            "asked only for more",
            "undo each",
        ] {
            assert!(full.contains(words), "{words}: {full}");
        }
        let partial = environment(Tier::Partial, "other processes", RunMode::Sandbox);
        assert!(
            partial.contains("does not cover other processes") && partial.contains("asked about each"),
            "{partial}"
        );
        let none = environment(Tier::None, "", RunMode::Ask);
        assert!(
            none.contains("without a sandbox") && none.contains("before they are written"),
            "{none}"
        );
        assert!(!none.contains("read-only"), "{none}");
        for tier in [Tier::Full, Tier::Partial, Tier::None] {
            for run in [RunMode::Ask, RunMode::List, RunMode::Sandbox, RunMode::Force] {
                assert_eq!(environment(tier, "", run).lines().count(), 2);
            }
        }
    }
}
