//! Plugins: folders with skills, commands, hooks and modes of somebody else, which the user has added.
//!
//! Three forms are read: the open one (Agent Plugins 1.0), Cursor's and Claude Code's. Nothing of a plugin counts that is not below
//! its folder. Its parts take part like the user's own, under names with its own in front; they grant no permissions.

mod index;
mod manifest;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::config::LanguageServer;

pub use index::{PluginEntry, PluginIndex, PluginSource, installed};
pub use manifest::read;

/// Names of a plugin's folder, and of the one for its data.
const VARIABLES: [(&str, bool); 5] = [
    ("CLAUDE_PLUGIN_ROOT", false),
    ("CURSOR_PLUGIN_ROOT", false),
    ("PLUGIN_ROOT", false),
    ("CLAUDE_PLUGIN_DATA", true),
    ("PLUGIN_DATA", true),
];
/// Files of rules in one folder.
const MOST_RULES: usize = 256;

/// Programs whose form a plugin has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginForm {
    /// Agent Plugins 1.0.
    Open,
    Cursor,
    Claude,
    /// It has no manifest.
    Bare,
}

impl PluginForm {
    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "Agent Plugins 1.0",
            Self::Cursor => "Cursor",
            Self::Claude => "Claude Code",
            Self::Bare => "no manifest",
        }
    }
}

/// A kind of parts that are files in folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    Skills,
    Commands,
    Modes,
    Agents,
    Styles,
    Rules,
}

impl PartKind {
    /// The kind of the files in a folder beside the settings.
    pub fn of_folder(own: &str) -> Option<Self> {
        Some(match own {
            "skills" => Self::Skills,
            "commands" => Self::Commands,
            "modes" => Self::Modes,
            "agents" => Self::Agents,
            "output-styles" => Self::Styles,
            "rules" => Self::Rules,
            _ => return None,
        })
    }
}

/// A folder of parts, or one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub kind: PartKind,
    /// From the folder of the plugin.
    pub folder: PathBuf,
    /// The only file of the folder that counts. `None`: all count.
    pub file: Option<String>,
}

/// Hooks of a plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginHooks {
    /// Its file, from the folder of the plugin.
    pub path: String,
    /// The content, if it stands in the manifest.
    pub content: Option<Value>,
}

/// An MCP server that a plugin names.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginServer {
    pub name: String,
    pub definition: Value,
}

impl PluginServer {
    /// Its command line or its address, for people.
    pub fn about(&self) -> String {
        let text = |name: &str| self.definition.get(name).and_then(Value::as_str).map(str::to_owned);
        let arguments = self.definition.get("args").and_then(Value::as_array);
        let arguments = arguments.into_iter().flatten().filter_map(Value::as_str);
        match text("command") {
            Some(command) => std::iter::once(command.as_str())
                .chain(arguments)
                .collect::<Vec<_>>()
                .join(" "),
            None => text("url").unwrap_or_default(),
        }
    }
}

/// A plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct Plugin {
    pub name: String,
    /// May be empty.
    pub version: String,
    /// May be empty.
    pub about: String,
    pub form: PluginForm,
    /// Its folder, absolute.
    pub root: PathBuf,
    pub parts: Vec<Part>,
    pub hooks: Vec<PluginHooks>,
    /// Servers that it names. Each is approved before it starts.
    pub servers: Vec<PluginServer>,
    /// Language servers that it names, as it writes them.
    pub language_servers: Vec<(String, LanguageServer)>,
    /// Parts that sheaf has no use for, and members of the manifest that nobody knows.
    pub unused: Vec<String>,
    pub problems: Vec<String>,
}

impl Plugin {
    /// The beginning of its files' paths, as people see them.
    pub fn prefix(&self) -> String {
        format!("plugin {}/", self.name)
    }

    /// The variables by which its programs find its folder, and the one that they may write.
    pub fn variables(&self) -> Vec<(String, String)> {
        let filled = VARIABLES
            .iter()
            .map(|(name, is_data)| ((*name).to_owned(), place(&self.root, *is_data)));
        filled.collect()
    }

    /// Fills its folders into a text.
    pub fn filled(root: &Path, text: &str) -> String {
        VARIABLES.iter().fold(text.to_owned(), |text, (name, is_data)| {
            text.replace(&format!("${{{name}}}"), &place(root, *is_data))
        })
    }

    /// Its language servers, with its folders filled in.
    pub fn filled_language_servers(&self) -> impl Iterator<Item = (String, LanguageServer)> {
        let filled = |it: &String| Self::filled(&self.root, it);
        self.language_servers.iter().map(move |(name, it)| {
            let server = LanguageServer {
                command: it.command.as_ref().map(filled),
                args: it.args.iter().map(filled).collect(),
                env: it.env.iter().map(|(name, it)| (name.clone(), filled(it))).collect(),
                ..it.clone()
            };
            (name.clone(), server)
        })
    }

    /// Its files of rules: the name of each, and the file from its folder, in their order.
    pub fn rules(&self) -> Vec<(String, PathBuf)> {
        let mut found = Vec::new();
        for part in self.parts.iter().filter(|it| it.kind == PartKind::Rules) {
            let entries = std::fs::read_dir(self.root.join(&part.folder))
                .into_iter()
                .flatten()
                .flatten();
            let names = entries
                .filter_map(|it| it.file_name().into_string().ok())
                .take(MOST_RULES);
            let mut names: Vec<String> = names
                .filter(|it| part.file.as_ref().is_none_or(|only| only == it))
                .collect();
            names.sort();
            for name in names {
                let stem = name.strip_suffix(".mdc").or_else(|| name.strip_suffix(".md"));
                let Some(stem) = stem.map(|it| format!("{}:{it}", self.name)) else {
                    continue;
                };
                found.push((stem, part.folder.join(&name)));
            }
        }
        found
    }
}

/// The folder of a plugin, or the one beside the program's data that its programs may write.
fn place(root: &Path, is_data: bool) -> String {
    let folder = if is_data { data_folder(root) } else { root.to_owned() };
    folder.to_string_lossy().into_owned()
}

/// The folder that the programs of the plugin at `root` may write. It need not exist.
///
/// It is outside of the program's own folders, which no sandbox lets anybody write.
fn data_folder(root: &Path) -> PathBuf {
    let (name, data) = (root.file_name(), root.parent().and_then(Path::parent));
    match (name, data) {
        (Some(name), Some(data)) => {
            let own = data.file_name().unwrap_or_default().to_string_lossy();
            data.with_file_name(format!("{own}-plugin-data")).join(name)
        }
        (None, _) | (_, None) => root.to_owned(),
    }
}

/// Makes the folder that these variables name for a plugin's data, and returns it; `None` if they name none or it cannot be made.
pub fn made_data_folder(variables: &[(String, String)]) -> Option<PathBuf> {
    let is_data = |name: &str| VARIABLES.iter().any(|it| it.1 && it.0 == name);
    let folder = PathBuf::from(&variables.iter().find(|it| is_data(&it.0))?.1);
    match crate::os::file::private_folder(&folder) {
        Ok(()) => Some(folder),
        Err(error) => {
            tracing::warn!(%error, "a plugin has no folder for its data");
            None
        }
    }
}
