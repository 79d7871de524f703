//! Which of the tools a client of a gateway wants to be used, and for what. It can take away and never add.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    agent::glob::Globs,
    config::Settings,
    tools::{Class, Tool, ToolSet, Work},
};

/// The name by which the protocol's requests mean every tool that changes files.
const EDIT_FAMILY: &str = "edit_file";

/// Returns true if a client that says `name` means `tool`. Which tool edits depends on the model and the settings, which
/// no client knows; so `EDIT_FAMILY` stands for all of them, in what it allows and in what it limits.
pub fn is_meant(tool: &Tool, name: &str) -> bool {
    tool.is_called(name) || (name == EDIT_FAMILY && tool.class == Class::Writes)
}

/// The settings and tools for one request: `wanted` lists names, `registry` says more about some of them.
pub fn narrowed(
    settings: &Arc<Settings>,
    tools: &ToolSet,
    wanted: Option<&[String]>,
    registry: Option<&Value>,
) -> (Arc<Settings>, ToolSet) {
    let mut settings = Arc::clone(settings);
    let left = tools.filtered(|tool| wanted.is_none_or(|it| it.iter().any(|name| is_meant(tool, name))));
    let left = left.by_mode(wanted.is_some() || tools.is_by_mode());
    let Some(registry) = registry.and_then(Value::as_object) else {
        return (settings, left);
    };
    let narrowed = Arc::make_mut(&mut settings);
    let mut may_be_used = |tool: &Tool| {
        let mut said = registry.iter().filter(|(name, _)| is_meant(tool, name));
        said.all(|(_, said)| apply(narrowed, tool, said))
    };
    let used: ToolSet = left.iter().filter(|it| may_be_used(it)).cloned().collect();
    // A command can do what the edits may not: who limits these is asked about each, unless it says more about commands.
    let is_limited = registry.get(EDIT_FAMILY).is_some_and(limits);
    let commands = used.iter().filter(|tool| matches!(tool.work, Work::Command { .. }));
    for tool in commands.filter(|_| is_limited) {
        if !registry.keys().any(|name| tool.is_called(name)) {
            narrowed.tools.entry(tool.name.clone()).or_default().require_approval = true;
        }
    }
    (settings, used.by_mode(left.is_by_mode()))
}

/// Returns true if an entry of the registry allows less than everything.
fn limits(said: &Value) -> bool {
    let Some(members) = said.as_object() else {
        return !(said.is_null() || *said == Value::Bool(true));
    };
    let is_free = |name: &str, free: bool| {
        members
            .get(name)
            .is_none_or(|it| it.is_null() || *it == Value::Bool(free))
    };
    let has_paths = members.get("allowedPaths").is_some_and(|it| !it.is_null());
    !is_free("enabled", true) || !is_free("requireApproval", false) || has_paths
}

/// Applies the registry's entry for a tool. Returns false if the tool is not to be used; an entry that cannot be read
/// counts as a no.
fn apply(settings: &mut Settings, tool: &Tool, said: &Value) -> bool {
    let said = match said {
        Value::Bool(is_enabled) => return *is_enabled,
        Value::Null => return true,
        Value::Object(said) => said,
        Value::Number(_) | Value::String(_) | Value::Array(_) => return false,
    };
    let flag = |name: &str, absent: bool| match said.get(name) {
        None | Some(Value::Null) => Some(absent),
        Some(it) => it.as_bool(),
    };
    // Tools reach no further than the workspace, so the one scope that there is holds anyway.
    let is_in_scope = said.get("scope").is_none_or(|it| it.is_null() || *it == "workspace");
    let (Some(true), Some(asks), true) = (flag("enabled", true), flag("requireApproval", false), is_in_scope) else {
        return false;
    };
    let paths = match said.get("allowedPaths") {
        None | Some(Value::Null) => None,
        Some(Value::Array(paths)) => Some(paths.iter().filter_map(Value::as_str).collect::<Vec<_>>()),
        Some(_) => return false,
    };
    let own = settings.tools.entry(tool.name.clone()).or_default();
    own.require_approval |= asks;
    if let Some(paths) = paths {
        own.allowed_paths = Some(both(own.allowed_paths.as_deref(), &paths));
    }
    true
}

/// Patterns for what both the user and the client allow; rather too few than too many.
fn both(own: Option<&[String]>, folders: &[&str]) -> Vec<String> {
    let folders: Vec<String> = folders.iter().filter_map(|it| folder(it)).collect();
    let Some(own) = own else {
        return folders.iter().flat_map(|it| patterns(it)).collect();
    };
    let (globs, _) = Globs::new(own);
    let has_exceptions = own.iter().any(|it| it.starts_with('!'));
    let mut found = Vec::new();
    for folder in &folders {
        // A pattern of the user's that lies within the client's folder holds as it stands.
        let within = own.iter().filter(|it| {
            let it = it.trim_start_matches("./").trim_start_matches('/');
            folder.is_empty() || it.starts_with(&format!("{folder}/"))
        });
        found.extend(within.cloned());
        // A folder of the client's that lies within the user's patterns does, too, unless they take something out of it.
        let probe = format!("{folder}/any/where.x");
        if !folder.is_empty() && !has_exceptions && globs.matches(&probe) && globs.matches(&format!("{folder}/x")) {
            found.extend(patterns(folder));
        }
    }
    if has_exceptions {
        found.extend(own.iter().filter(|it| it.starts_with('!')).cloned());
    }
    found
}

/// The folder and all below it.
fn patterns(folder: &str) -> Vec<String> {
    if folder.is_empty() {
        return vec!["/**".to_owned()];
    }
    vec![format!("/{folder}"), format!("/{folder}/")]
}

/// A folder of the workspace as it is written in patterns; `None` for what is none, or could be read as a pattern.
fn folder(written: &str) -> Option<String> {
    let written = written.trim();
    let is_plain = !written.contains(['*', '?', '[', ']', '{', '}', '!', '\\', '\0']);
    let mut parts = Vec::new();
    for part in written.split('/') {
        match part {
            "" | "." => {}
            ".." => return None,
            part => parts.push(part),
        }
    }
    let is_absolute = written.len() > 1 && written.starts_with('/');
    (is_plain && !written.is_empty() && !is_absolute).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{config::ToolSettings, tools::built_in};

    fn names(wanted: Option<&[&str]>, registry: Value) -> Vec<String> {
        let wanted: Option<Vec<String>> = wanted.map(|it| it.iter().map(|it| (*it).to_owned()).collect());
        let all = ["read_file", "grep", "edit_file"];
        let tools = all.map(|it| built_in().get(it).expect("a tool").clone());
        let tools = tools.into_iter().collect();
        let (_, left) = narrowed(&Arc::default(), &tools, wanted.as_deref(), Some(&registry));
        left.iter().map(|it| it.name.clone()).collect()
    }

    #[test]
    fn a_tool_has_to_be_allowed_by_both_lists() {
        let all = ["read_file", "grep", "edit_file"];
        for (name, wanted, registry, left) in [
            ("nothing is said", None, Value::Null, &all[..]),
            ("none", Some(&[][..]), Value::Null, &[]),
            ("one", Some(&["grep"][..]), Value::Null, &["grep"]),
            ("an alias", Some(&["Read"]), Value::Null, &["read_file"]),
            (
                "what is not here",
                Some(&["grep", "run_terminal_cmd", "x"]),
                Value::Null,
                &["grep"],
            ),
            (
                "switched off",
                None,
                json!({ "grep": { "enabled": false } }),
                &["read_file", "edit_file"],
            ),
            (
                "by a plain no",
                None,
                json!({ "grep": false, "Read": true }),
                &["read_file", "edit_file"],
            ),
            (
                "by both",
                Some(&["grep", "read_file"]),
                json!({ "grep": { "enabled": false } }),
                &["read_file"],
            ),
            (
                "a registry does not add",
                Some(&["grep"]),
                json!({ "read_file": { "enabled": true } }),
                &["grep"],
            ),
            (
                "no sense",
                None,
                json!({ "grep": 7, "read_file": { "enabled": "no" }, "edit_file": { "allowedPaths": 1 } }),
                &[],
            ),
            (
                "another scope",
                None,
                json!({ "grep": { "scope": "machine" } }),
                &["read_file", "edit_file"],
            ),
            ("the scope", None, json!({ "grep": { "scope": "workspace" } }), &all),
        ] {
            assert_eq!(names(wanted, registry), left, "{name}");
        }
        assert!(built_in().len() > 3);
    }

    #[test]
    fn commands_ask_where_edits_are_limited() {
        for (registry, expected) in [
            (json!({ "edit_file": { "requireApproval": true } }), true),
            (json!({ "edit_file": { "allowedPaths": ["src/"] } }), true),
            (json!({ "edit_file": { "enabled": false } }), true),
            (json!({ "edit_file": false }), true),
            (json!({ "edit_file": { "enabled": true, "allowedPaths": null } }), false),
            (json!({ "edit_file": true, "grep": false }), false),
            // The client says itself what it thinks of commands.
            (
                json!({ "edit_file": { "requireApproval": true }, "run_terminal_cmd": { "enabled": true } }),
                false,
            ),
        ] {
            let (settings, left) = narrowed(&Arc::default(), built_in(), None, Some(&registry));
            let command = settings.tools.get("run_terminal_cmd");
            assert_eq!(command.is_some_and(|it| it.require_approval), expected, "{registry}");
            assert!(left.get("run_terminal_cmd").is_some());
        }
    }

    #[test]
    fn edit_file_stands_for_every_tool_that_changes_files() {
        let names = |tools: &ToolSet| tools.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        let edits = names(&built_in().filtered(|it| it.class == Class::Writes));
        assert!(edits.len() > 4, "{edits:?}");
        let wanted = ["grep".to_owned(), "edit_file".to_owned()];
        let (_, left) = narrowed(&Arc::default(), built_in(), Some(&wanted), None);
        assert_eq!(names(&left), [&["grep".to_owned()][..], &edits].concat());

        let registry = json!({
            "edit_file": { "requireApproval": true, "allowedPaths": ["src/"] },
            "write": { "allowedPaths": ["src/b", "tests"], "requireApproval": false },
            "delete_file": { "enabled": false },
        });
        let (settings, left) = narrowed(&Arc::default(), built_in(), Some(&wanted), Some(&registry));
        assert!(left.get("delete_file").is_none() && left.get("write").is_some());
        for name in &names(&left) {
            let tool = settings.tools.get(name);
            assert_eq!(tool.is_some_and(|it| it.require_approval), name != "grep", "{name}");
            let Some(paths) = tool.and_then(|it| it.allowed_paths.as_ref()) else {
                assert_eq!(name, "grep");
                continue;
            };
            let allows = |path: &str| Globs::new(paths).0.matches(path);
            assert!(allows("src/b/c.rs"), "{name}: {paths:?}");
            assert_eq!(allows("src/a.rs"), name != "write", "{name}: {paths:?}");
            assert!(!allows("tests/x") && !allows("notes.txt"), "{name}: {paths:?}");
        }
        let off = json!({ "edit_file": { "enabled": false }, "write": { "enabled": true } });
        let (_, left) = narrowed(&Arc::default(), built_in(), None, Some(&off));
        assert!(left.iter().all(|it| it.class != Class::Writes), "{:?}", names(&left));
    }

    #[test]
    fn paths_and_questions_are_only_ever_added_to() {
        let paths = |own: Option<&[&str]>, asked: Value| {
            let mut settings = Settings::default();
            let own = own.map(|it| it.iter().map(|it| (*it).to_owned()).collect());
            let tool = ToolSettings {
                allowed_paths: own,
                require_approval: true,
                ..ToolSettings::default()
            };
            settings.tools.insert("read_file".to_owned(), tool);
            let registry = json!({ "read_file": { "allowedPaths": asked, "requireApproval": false } });
            let (settings, _) = narrowed(
                &Arc::new(settings.clone()),
                &built_in().filtered(|it| it.name == "read_file"),
                None,
                Some(&registry),
            );
            let tool = &settings.tools["read_file"];
            assert!(tool.require_approval, "the user's own wish holds");
            tool.allowed_paths.clone().expect("some")
        };
        let allows = |patterns: &[String], path: &str| Globs::new(patterns).0.matches(path);
        for (own, asked, yes, no) in [
            (
                None,
                json!(["src/"]),
                &["src/a.rs", "src/b/c.rs"][..],
                &["srcs/a.rs", "a.rs", "lib/src/a.rs"][..],
            ),
            (
                None,
                json!(["./src/b", "tests"]),
                &["src/b/c.rs", "tests/x"],
                &["src/a.rs"],
            ),
            (None, json!(["."]), &["a.rs", "src/a.rs"], &[]),
            (
                None,
                json!(["../x", "/etc", "**", "a/../..", ""]),
                &[],
                &["x", "etc/passwd", "src/a.rs"],
            ),
            (None, json!([]), &[], &["a.rs"]),
            (Some(&["src/**"][..]), json!(["src/b"]), &["src/b/c.rs"], &["src/a.rs"]),
            (
                Some(&["src/b/**"]),
                json!(["src"]),
                &["src/b/c.rs"],
                &["src/a.rs", "tests/x"],
            ),
            (Some(&["src/**"]), json!(["tests"]), &[], &["src/a.rs", "tests/x"]),
            (
                Some(&["src/**", "!src/key.rs"]),
                json!(["src"]),
                &["src/a.rs"],
                &["src/key.rs"],
            ),
            (
                Some(&["src/**", "!src/b/key.rs"]),
                json!(["src/b"]),
                &[],
                &["src/b/key.rs", "src/a.rs"],
            ),
            (Some(&["*.rs"]), json!(["src"]), &[], &["src/a.txt", "tests/a.rs"]),
            (Some(&["*.rs"]), json!(["."]), &["src/a.rs"], &["src/a.txt"]),
        ] {
            let patterns = paths(own, asked.clone());
            for path in yes {
                assert!(allows(&patterns, path), "{own:?} and {asked}: {path} in {patterns:?}");
            }
            for path in no {
                assert!(!allows(&patterns, path), "{own:?} and {asked}: {path} in {patterns:?}");
            }
        }
    }
}
