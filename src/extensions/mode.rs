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
    let tools = tools(&front);
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
        None => nearest(tools.as_deref()),
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
        model: front.text("model").filter(|it| *it != "inherit").map(str::to_owned),
        effort: effort.filter(|it| matches!(it.as_str(), "off" | "low" | "medium" | "high")),
        prompt: folder.filled(body.trim()),
        path: shown,
    });
}

/// The tools of a head: a list of names and groups, or a table `write: false` of what is taken away.
fn tools(front: &FrontMatter) -> Option<Vec<AllowedTool>> {
    if front.names().any(|it| it == "tools") {
        let off = front.switched_off("tools");
        if !off.is_empty() {
            return Some(remaining(&off));
        }
        let listed = front.list("tools");
        let is_all = listed.iter().any(|it| it == "*");
        // A table that takes nothing away allows all.
        let is_free = is_all || listed.is_empty() && front.is_table("tools");
        return (!is_free).then(|| allowed(&listed));
    }
    front
        .flag("readonly")
        .filter(|it| *it)
        .map(|_| vec![AllowedTool::Group(ToolGroup::Reads)])
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

/// The groups that are left where these tools are taken away.
fn remaining(off: &[String]) -> Vec<AllowedTool> {
    let is_off = |names: &[&str]| off.iter().any(|it| names.contains(&it.to_ascii_lowercase().as_str()));
    let mut left = vec![AllowedTool::Group(ToolGroup::Reads)];
    if !is_off(&["write", "edit", "edits", "patch", "multiedit"]) {
        left.push(AllowedTool::Group(ToolGroup::Edits));
    }
    if !is_off(&["bash", "shell", "runs"]) {
        left.push(AllowedTool::Group(ToolGroup::Runs));
    }
    left
}

/// The program's mode that allows no more than needed: agent where something may be changed or run.
fn nearest(tools: Option<&[AllowedTool]>) -> Mode {
    let only_reads = |it: &AllowedTool| match it {
        AllowedTool::Group(group) => *group == ToolGroup::Reads,
        AllowedTool::Named(name) => READING.contains(&name.to_ascii_lowercase().as_str()),
    };
    match tools {
        Some(tools) if tools.iter().all(only_reads) => Mode::Ask,
        Some(_) | None => Mode::Agent,
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
                "boss agent"
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
        assert_eq!(set.problems, []);
        let set = find(&files, false);
        let names: Vec<_> = set.modes.iter().map(|it| it.name.as_str()).collect();
        assert_eq!((names, set.held.len()), (vec!["plain", "review", "boss"], 4));
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
