//! Custom modes: Markdown files that narrow what the agent may do, and tell it how.
//!
//! A mode only takes away: it stands on one of the program's own modes, and what that one forbids it forbids, too.

use std::path::{Path, PathBuf};

use super::{
    folders::{Folder, HeldFile, Owner, Surroundings},
    front_matter::FrontMatter,
};
use crate::{config::Fingerprint, protocol::Mode};

/// The folder of modes of a project, and the one beside the settings.
const MODES: [&str; 1] = [".sheaf/modes"];
const OWN_MODES: &str = "modes";
/// Folders of agents, of which those that say `mode: primary` are modes.
const AGENTS: [&str; 4] = [".sheaf/agents", ".cursor/agents", ".claude/agents", ".opencode/agent"];
const OWN_AGENTS: &str = "agents";
/// A larger file is no mode.
const FILE_BYTES: u64 = 64 << 10;
/// Maximum number of modes.
const MOST: usize = 50;
/// Maximum length of a name, in characters.
const NAME_CHARS: usize = 32;

/// A group of tools, as a mode's file names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolGroup {
    Reads,
    Edits,
    Runs,
}

/// A tool or a group of tools that a mode allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedTool {
    Group(ToolGroup),
    /// By any of its names.
    Named(String),
}

/// A mode of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomMode {
    pub name: String,
    /// May be empty.
    pub about: String,
    /// The mode of the program that it narrows.
    pub base: Mode,
    /// The tools that it allows; `None`: all of its base.
    pub tools: Option<Vec<AllowedTool>>,
    /// The tools that it takes away from these.
    pub without: Vec<AllowedTool>,
    pub model: Option<String>,
    /// `off`, `low`, `medium`, `high`
    pub effort: Option<String>,
    /// Text for the model when the mode is entered. May be empty.
    pub prompt: String,
    /// Its file, as people see it.
    pub path: String,
}

/// The modes that may be used, and what is to be said of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModeSet {
    pub modes: Vec<CustomMode>,
    pub problems: Vec<(String, String)>,
    pub held: Vec<HeldFile>,
}

/// Finds the modes; of two with one name the nearest counts. Reads files.
pub fn find_modes(around: &Surroundings, may_act: &dyn Fn(&str, &Fingerprint) -> bool) -> ModeSet {
    let mut set = ModeSet::default();
    let modes = around.folders(&MODES, OWN_MODES).into_iter().map(|it| (it, false));
    let agents = around.folders(&AGENTS, OWN_AGENTS).into_iter().map(|it| (it, true));
    for (folder, is_of_agents) in modes.chain(agents) {
        for (name, is_folder) in folder.entries(Path::new(""), 1000) {
            let file = PathBuf::from(&name);
            if is_folder || file.extension().is_none_or(|it| it != "md") || set.modes.len() == MOST {
                continue;
            }
            let Ok(text) = folder.read(&file, FILE_BYTES) else {
                continue;
            };
            read(&folder, &file, &text, is_of_agents, may_act, &mut set);
        }
    }
    set
}

fn read(
    folder: &Folder,
    file: &Path,
    text: &str,
    is_of_agents: bool,
    may_act: &dyn Fn(&str, &Fingerprint) -> bool,
    set: &mut ModeSet,
) {
    let shown = folder.shown(file);
    let (front, body) = match FrontMatter::split(text) {
        Ok(found) => found,
        // An agent that cannot be read is none of ours.
        Err(_) if is_of_agents => return,
        Err(why) => return set.problems.push((shown, why)),
    };
    if is_of_agents && front.text("mode") != Some("primary") {
        return;
    }
    if folder.owner == Owner::Project {
        let print = Fingerprint::of(&[text.as_bytes()]);
        if !may_act(&shown, &print) {
            return set.held.push(HeldFile { path: shown, print });
        }
    }
    let stem = file
        .file_stem()
        .map(|it| it.to_string_lossy().into_owned())
        .unwrap_or_default();
    let name = front.text("name").map_or(stem, str::to_owned).to_lowercase();
    let is_name = !name.is_empty()
        && name.chars().count() <= NAME_CHARS
        && name.chars().all(|it| it.is_alphanumeric() || matches!(it, '-' | '_'));
    if !is_name {
        let why = format!("its name is not made of up to {NAME_CHARS} letters, digits and hyphens");
        return set.problems.push((shown, why));
    }
    let name = folder.named(name);
    if Mode::parse(&name).is_some() {
        return set
            .problems
            .push((shown, format!("`{name}` is a mode of sheaf; choose another name")));
    }
    if set.modes.iter().any(|it| it.name == name) {
        return;
    }
    let (tools, without) = (listed(&front), without(&front));
    let base = match front.text("base") {
        Some(word) => match Mode::parse(word) {
            Some(base) => base,
            None => {
                return set.problems.push((
                    shown,
                    format!("its base `{word}` is no mode: agent, plan, ask or debug"),
                ));
            }
        },
        None => nearest(tools.as_deref(), &without),
    };
    let effort = front.text("effort").map(str::to_lowercase);
    if let Some(word) = effort
        .as_ref()
        .filter(|it| !matches!(it.as_str(), "off" | "low" | "medium" | "high"))
    {
        set.problems.push((
            shown.clone(),
            format!("its effort `{word}` is not off, low, medium or high"),
        ));
    }
    set.modes.push(CustomMode {
        name,
        about: front.text("description").unwrap_or_default().to_owned(),
        base,
        tools,
        without,
        model: front.text("model").filter(|it| *it != "inherit").map(str::to_owned),
        effort: effort.filter(|it| matches!(it.as_str(), "off" | "low" | "medium" | "high")),
        prompt: folder.filled(body.trim()),
        path: shown,
    });
}

/// The tools that a head lists; `None`: all.
fn listed(front: &FrontMatter) -> Option<Vec<AllowedTool>> {
    let listed = front.list("tools");
    let is_list = front.names().any(|it| it == "tools") && !front.is_table("tools");
    (is_list && listed.iter().all(|it| it != "*")).then(|| allowed(&listed))
}

/// The tools that a head takes away: `tools: { write: false }`, `disallowedTools`, `permission: { edit: deny }`, `permissionMode: plan`,
/// `readonly`. What is said of a part of a tool takes the whole tool.
fn without(front: &FrontMatter) -> Vec<AllowedTool> {
    let mut off = front.switched_off("tools");
    off.extend(front.switched_off("permission"));
    off.extend(front.list("disallowedTools"));
    let only_reads = front.flag("readonly") == Some(true)
        || front.text("permissionMode") == Some("plan")
        || front.text("permission") == Some("deny");
    if only_reads {
        off.extend(["edits", "runs"].map(str::to_owned));
    }
    allowed(&off)
}

fn allowed(listed: &[String]) -> Vec<AllowedTool> {
    let one = |word: &String| {
        // `Bash(git:*)` names the tool; what may be run is for the rules.
        let name = word.split('(').next().unwrap_or(word);
        match name.to_ascii_lowercase().as_str() {
            "reads" => AllowedTool::Group(ToolGroup::Reads),
            "edits" => AllowedTool::Group(ToolGroup::Edits),
            "runs" => AllowedTool::Group(ToolGroup::Runs),
            _ => AllowedTool::Named(name.to_owned()),
        }
    };
    listed.iter().map(one).collect()
}

/// The program's mode that allows no more than needed: agent where something may be changed or run.
fn nearest(tools: Option<&[AllowedTool]>, without: &[AllowedTool]) -> Mode {
    let is_named = |it: &AllowedTool, group: ToolGroup, names: &[&str]| match it {
        AllowedTool::Group(it) => *it == group,
        AllowedTool::Named(name) => names.contains(&name.to_ascii_lowercase().as_str()),
    };
    let only_reads = tools.is_some_and(|it| it.iter().all(|it| is_named(it, ToolGroup::Reads, &READING)));
    let edits = without
        .iter()
        .any(|it| is_named(it, ToolGroup::Edits, &["write", "edit"]));
    let runs = without
        .iter()
        .any(|it| is_named(it, ToolGroup::Runs, &["bash", "shell"]));
    if only_reads || edits && runs {
        Mode::Ask
    } else {
        Mode::Agent
    }
}

/// Tools that read, by the names that files give them.
const READING: [&str; 16] = [
    "read",
    "read_file",
    "grep",
    "glob",
    "glob_file_search",
    "ls",
    "list",
    "list_dir",
    "codebase_search",
    "semanticsearch",
    "web_search",
    "web_fetch",
    "websearch",
    "webfetch",
    "skill",
    "todo_write",
];

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn find(files: &[(&str, &str)], is_trusted: bool) -> ModeSet {
        let top = tempfile::tempdir().unwrap();
        let around = Surroundings::test(top.path(), files);
        find_modes(&around, &|_, _| is_trusted)
    }

    #[test]
    fn modes_and_primary_agents_are_found_and_stand_on_the_nearest_mode() {
        let files = [
            (
                "work/.sheaf/modes/review.md",
                "---\ndescription: Reviews\ntools: [reads]\nmodel: m\neffort: high\n---\nLook twice.",
            ),
            (
                "work/.sheaf/modes/docs.md",
                "---\ntools: reads, edits\n---\nWrite docs.",
            ),
            ("config/modes/plain.md", "Only words."),
            ("config/modes/review.md", "The nearer one counts."),
            (
                "home/.claude/agents/boss.md",
                "---\nmode: primary\ntools: Read, Grep, Bash(git:*)\n---\nBoss.",
            ),
            (
                "home/.claude/agents/helper.md",
                "---\nname: helper\ndescription: a subagent\n---\nHelp.",
            ),
            (
                "work/.opencode/agent/safe.md",
                "---\nmode: primary\ntools:\n  write: false\n  bash: false\n---\nSafe.",
            ),
            (
                "work/.cursor/agents/ro.md",
                "---\nmode: primary\nreadonly: true\n---\nRo.",
            ),
            (
                "home/.claude/agents/calm.md",
                "---\nmode: primary\ndisallowedTools: Bash(rm:*), WebFetch\npermission:\n  edit: ask\n  grep:\n    '*': deny\n---\nCalm.",
            ),
            (
                "home/.claude/agents/planner.md",
                "---\nmode: primary\npermissionMode: plan\n---\nPlanner.",
            ),
        ];
        let set = find(&files, true);
        let told: Vec<String> = set
            .modes
            .iter()
            .map(|it| format!("{} {}", it.name, it.base.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                "docs agent",
                "review ask",
                "plain agent",
                "ro ask",
                "safe ask",
                "boss agent",
                "calm agent",
                "planner ask"
            ]
        );
        let review = set.modes.iter().find(|it| it.name == "review").unwrap();
        assert_eq!(
            (review.model.as_deref(), review.effort.as_deref()),
            (Some("m"), Some("high"))
        );
        assert_eq!(
            (review.about.as_str(), review.prompt.as_str()),
            ("Reviews", "Look twice.")
        );
        let boss = set.modes.iter().find(|it| it.name == "boss").unwrap();
        let names = ["Read", "Grep", "Bash"].map(|it| AllowedTool::Named(it.to_owned()));
        assert_eq!(boss.tools.as_deref(), Some(&names[..]));
        let calm = set.modes.iter().find(|it| it.name == "calm").unwrap();
        let off = ["grep", "Bash", "WebFetch"].map(|it| AllowedTool::Named(it.to_owned()));
        assert_eq!((calm.tools.as_ref(), calm.without.as_slice()), (None, &off[..]));
        assert_eq!(set.problems, []);
        let set = find(&files, false);
        let names: Vec<_> = set.modes.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(
            (names, set.held.len()),
            (vec!["plain", "review", "boss", "calm", "planner"], 4)
        );
    }

    #[test]
    fn a_mode_that_cannot_be_used_is_named() {
        let set = find(
            &[
                ("config/modes/agent.md", "Mine."),
                ("config/modes/a.md", "---\nname: two words\n---\nx"),
                ("config/modes/b.md", "---\nbase: free\n---\nx"),
                ("config/modes/c.md", "---\nx: [\n---\nx"),
                ("config/modes/d.md", "---\neffort: most\n---\nx"),
            ],
            true,
        );
        assert_eq!(set.modes.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["d"]);
        let why: Vec<&str> = set.problems.iter().map(|it| it.1.as_str()).collect();
        assert_eq!(why.len(), 5);
        assert_eq!(why[0], "its name is not made of up to 32 letters, digits and hyphens");
        assert_eq!(why[1], "`agent` is a mode of sheaf; choose another name");
        assert_eq!(why[2], "its base `free` is no mode: agent, plan, ask or debug");
    }
}
