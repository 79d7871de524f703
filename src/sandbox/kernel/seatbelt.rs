//! The profile for macOS's `sandbox-exec`, as text, made of the same policy as everything else. It is written for that
//! system and has not been run on one; until it has, commands there ask although they are held.
//!
//! The last rule that fits wins, so that what is forbidden again stands behind what is allowed. Paths are given as
//! parameters and never stand in the text: a name with a quote in it is only a name.

use std::{ffi::OsString, path::Path};

use crate::sandbox::policy::{GIT_FIXED, Policy, protected_names as name};

/// A profile and what its parameters are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    pub text: String,
    /// As `-D NAME=value` wants them.
    pub parameters: Vec<(String, OsString)>,
}

/// Rules that every program needs: itself, its children, facts about the machine, a terminal of its own.
const BASE: &str = include_str!("../../../assets/sandbox/seatbelt-base.sb");

/// Rules that the permission `network` adds. Unix sockets of other programs stay closed.
const NETWORK: &str = include_str!("../../../assets/sandbox/seatbelt-network.sb");

/// The profile that holds a policy. All its paths are without links.
pub fn profile(policy: &Policy) -> Profile {
    let mut made = Profile {
        text: BASE.to_owned(),
        parameters: Vec::new(),
    };
    for root in policy.writable.iter().chain(&policy.temporary) {
        let name = made.parameter("WRITABLE", root);
        made.rule(&format!("(allow file-write* (subpath (param \"{name}\")))"));
    }
    for root in &policy.writable {
        let root = made.parameter("WRITABLE", root);
        let (held, free) = name::patterns(policy.git_write, &GIT_FIXED);
        // What does not exist yet is held by its name; the system compares it in any case.
        for (verdict, patterns) in [("deny", held), ("allow", free)] {
            for pattern in patterns {
                made.rule(&format!(
                    "({verdict} file-write* (require-all (subpath (param \"{root}\")) (regex #\"{pattern}\")))"
                ));
            }
        }
    }
    for path in &policy.read_only {
        let name = made.parameter("KEPT", path);
        made.rule(&format!("(deny file-write* (subpath (param \"{name}\")))"));
        // Neither the thing nor a folder above it is renamed away: what is made in its place would not be held.
        made.rule(&format!("(deny file-write-unlink (literal (param \"{name}\")))"));
        made.pin(path, policy);
    }
    for path in &policy.hidden {
        let name = made.parameter("HIDDEN", path);
        made.rule(&format!(
            "(deny file-read* file-write* process-exec (subpath (param \"{name}\")))"
        ));
        made.pin(path, policy);
    }
    if policy.network {
        made.text.push_str(NETWORK);
    } else {
        made.rule("(allow network* (local ip \"localhost:*\") (remote ip \"localhost:*\"))");
        made.rule("(deny network-outbound (remote unix-socket))");
    }
    made
}

impl Profile {
    /// A parameter for `path`; one that is there already is used again.
    fn parameter(&mut self, kind: &str, path: &Path) -> String {
        let value = path.as_os_str();
        let prefix = format!("{kind}_");
        if let Some(it) = self
            .parameters
            .iter()
            .find(|it| it.1 == value && it.0.starts_with(&prefix))
        {
            return it.0.clone();
        }
        let name = format!("{prefix}{}", self.parameters.len());
        self.parameters.push((name.clone(), value.to_owned()));
        name
    }

    fn rule(&mut self, rule: &str) {
        self.text.push_str(rule);
        self.text.push('\n');
    }

    /// The folders between a writable one and `path` keep their names.
    fn pin(&mut self, path: &Path, policy: &Policy) {
        let roots = policy.writable.iter().filter(|it| path.starts_with(it));
        let Some(root) = roots.max_by_key(|it| it.as_os_str().len()) else {
            return;
        };
        let between = path.ancestors().skip(1).take_while(|it| *it != root.as_path());
        for folder in between.map(Path::to_owned).collect::<Vec<_>>() {
            let before = self.parameters.len();
            let name = self.parameter("PINNED", &folder);
            if self.parameters.len() > before {
                self.rule(&format!("(deny file-write-unlink (literal (param \"{name}\")))"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use pretty_assertions::assert_eq;

    use super::*;
    use crate::sandbox::policy::{ResourceLimits, Tier};

    fn policy(network: bool) -> Policy {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect();
        Policy {
            tier: Tier::Full,
            wraps: false,
            workspace: "/w".into(),
            writable: paths(&["/w"]),
            read_only: paths(&["/w/.git", "/w/a/b/.vscode"]),
            hidden: paths(&["/Users/kim/.ssh", "/w/a/.env\") (allow default"]),
            temporary: Some("/private/tmp/x".into()),
            over: None,
            network,
            git_write: false,
            limits: ResourceLimits::default(),
        }
    }

    #[test]
    fn what_is_forbidden_stands_behind_what_is_allowed() {
        let made = profile(&policy(false));
        let own = made.text.strip_prefix(BASE).expect("the base comes first");
        let is_by_name = |it: &&str| it.contains("(regex ");
        let by_name: Vec<_> = own.lines().filter(is_by_name).collect();
        let others: String = own
            .lines()
            .filter(|it| !is_by_name(it))
            .flat_map(|it| [it, "\n"])
            .collect();
        assert_eq!(
            by_name.first().copied(),
            Some(
                "(deny file-write* (require-all (subpath (param \"WRITABLE_0\")) (regex #\"/[.][gG][iI][tT](/|$)\")))"
            )
        );
        // Behind what may be written, and before what is named one by one.
        let at = |part: &str| own.find(part).unwrap_or_else(|| panic!("{part}: {own}"));
        assert!(at("(allow file-write* (subpath") < at("(regex ") && at("(regex ") < at("KEPT_2"));
        assert_eq!(
            others,
            "(allow file-write* (subpath (param \"WRITABLE_0\")))\n\
             (allow file-write* (subpath (param \"WRITABLE_1\")))\n\
             (deny file-write* (subpath (param \"KEPT_2\")))\n\
             (deny file-write-unlink (literal (param \"KEPT_2\")))\n\
             (deny file-write* (subpath (param \"KEPT_3\")))\n\
             (deny file-write-unlink (literal (param \"KEPT_3\")))\n\
             (deny file-write-unlink (literal (param \"PINNED_4\")))\n\
             (deny file-write-unlink (literal (param \"PINNED_5\")))\n\
             (deny file-read* file-write* process-exec (subpath (param \"HIDDEN_6\")))\n\
             (deny file-read* file-write* process-exec (subpath (param \"HIDDEN_7\")))\n\
             (allow network* (local ip \"localhost:*\") (remote ip \"localhost:*\"))\n\
             (deny network-outbound (remote unix-socket))\n"
        );
        let value = |name: &str| made.parameters.iter().find(|it| it.0 == name).map(|it| it.1.clone());
        assert_eq!(value("PINNED_4"), Some("/w/a/b".into()));
        assert_eq!(value("PINNED_5"), Some("/w/a".into()));
        // A name is a parameter, whatever it looks like.
        assert!(!made.text.contains("allow default"), "{}", made.text);
        assert_eq!(value("HIDDEN_7"), Some("/w/a/.env\") (allow default".into()));
    }

    #[test]
    fn a_protected_name_is_held_whether_it_exists_or_not_and_plans_are_free() {
        let held = |path: &str, git_write: bool| {
            let (held, free) = name::patterns(git_write, &GIT_FIXED);
            let fits = |list: &[String]| list.iter().any(|it| regex::Regex::new(it).unwrap().is_match(path));
            fits(&held) && !fits(&free)
        };
        for path in [
            "/w/.git/HEAD",
            "/w/.GIT",
            "/w/sub/.git/config",
            "/w/.vscode/tasks.json",
            "/w/.Cursor/MCP.json",
            "/w/a/b/.mcp.json",
            "/w/shop.code-workspace",
            "/w/.envrc",
            "/w/.github/workflows/x.yml",
            "/w/.sheaf/plans/.cursor/mcp.json",
        ] {
            assert!(held(path, false), "{path}");
        }
        for path in [
            "/w/src/main.rs",
            "/w/git/x",
            "/w/.gitignore",
            "/w/.env.local",
            "/w/x.mcp.json",
            "/w/.cursor/plans/a.plan.md",
            "/w/.sheaf/plans/a.md",
        ] {
            assert!(!held(path, false), "{path}");
        }
        for (path, expected) in [
            ("/w/.git/HEAD", false),
            ("/w/.git/hooks/x", true),
            ("/w/.git/config", true),
            ("/w/.git/modules/a/hooks/x", true),
            ("/w/.git/info/exclude", true),
            ("/w/.vscode/x", true),
        ] {
            assert_eq!(held(path, true), expected, "{path}");
        }
        // The table that files are judged by says the same.
        for path in [
            "/w/.git/HEAD",
            "/w/.GIT",
            "/w/.envrc",
            "/w/src/main.rs",
            "/w/.cursor/plans/a.plan.md",
        ] {
            assert_eq!(name::is_protected(Path::new(path)), held(path, false), "{path}");
        }
    }

    #[test]
    fn every_rule_is_whole_and_nothing_is_allowed_by_default() {
        for network in [false, true] {
            let text = profile(&policy(network)).text;
            let count = |it: char| text.chars().filter(|c| *c == it).count();
            assert_eq!(count('('), count(')'), "{text}");
            assert!(text.starts_with("(version 1)\n(deny default)\n"));
            assert_eq!(text.contains("remote ip \"*:*\""), network, "{text}");
            for door in ["appleevent", "pasteboard", "lsopen", "launchservices", "system-socket"] {
                assert_eq!(text.contains(door), network && door == "system-socket", "{door}");
            }
        }
    }
}
