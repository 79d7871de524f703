//! Names of tools: one for the model, one for people.

use crate::config::Fingerprint;

/// Length in bytes of the longest name that providers accept.
const NAME_BYTES: usize = 64;
/// What the name of every tool of a server begins with.
const FRONT: &str = "mcp__";

/// A tool of a server, by the names that the user and the server use.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName {
    pub server: String,
    pub tool: String,
}

/// The name by which a model calls a tool: `mcp__server__tool`, of letters, digits, `_` and `-`. Six digits of a hash are added to
/// one that would be too long, or could be that of another tool.
pub fn model_name(server: &str, tool: &str) -> String {
    let (left, right) = (plain(server), plain(tool));
    let name = format!("{FRONT}{left}__{right}");
    let is_ambiguous = |it: &str| it.contains("__") || it.starts_with('_') || it.ends_with('_');
    if name.len() <= NAME_BYTES && !is_ambiguous(&left) && !is_ambiguous(&right) {
        return name;
    }
    hashed_name(server, tool)
}

/// The same with the digits in any case, for a tool whose name another tool has.
pub fn hashed_name(server: &str, tool: &str) -> String {
    let print = Fingerprint::of(&[server.as_bytes(), tool.as_bytes()]).to_string();
    let digits = print.get(..6).unwrap_or_default();
    let name = format!("{FRONT}{}__{}", plain(server), plain(tool));
    let end = name.floor_char_boundary(NAME_BYTES - 7);
    let begin = name.get(..end).unwrap_or(&name);
    format!("{}_{digits}", begin.trim_end_matches('_'))
}

fn plain(part: &str) -> String {
    let plain = |it: char| {
        if it.is_ascii_alphanumeric() || it == '-' || it == '_' {
            it
        } else {
            '_'
        }
    };
    part.chars().map(plain).collect()
}

/// The name that people are shown.
pub fn shown_name(server: &str, tool: &str) -> String {
    format!("{server} › {tool}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_plain_and_nobody_elses() {
        for (server, tool, expected) in [
            ("git", "status", "mcp__git__status"),
            ("My Server", "get.it", "mcp__My_Server__get_it"),
            ("a__b", "c", "mcp__a__b__c_"),
            ("a", "b__c", "mcp__a__b__c_"),
            ("a", "_c", "mcp__a___c_"),
        ] {
            let name = model_name(server, tool);
            assert!(name.starts_with(expected), "{name}");
            assert!(name.len() <= NAME_BYTES, "{name}");
        }
        assert_ne!(model_name("a__b", "c"), model_name("a", "b__c"));
        let long = "x".repeat(100);
        let (one, two) = (model_name(&long, "a"), model_name(&long, "b"));
        assert!(
            one != two && one.len() == NAME_BYTES && two.len() == NAME_BYTES,
            "{one} {two}"
        );
        assert_ne!(hashed_name("s", "a.b"), hashed_name("s", "a/b"));
        let name = model_name("ü🦀", "é");
        assert!(
            name.bytes()
                .all(|it| it.is_ascii_alphanumeric() || it == b'_' || it == b'-'),
            "{name}"
        );
    }
}
