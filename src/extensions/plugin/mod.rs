//! Plugins: folders with skills, commands, hooks and modes of somebody else, which the user has added.
//!
//! Three forms are read: the open one (Agent Plugins 1.0), Cursor's and Claude Code's. Nothing of a plugin counts that is not below
//! its folder. Its parts take part like the user's own, under names with its own in front; they grant no permissions.

mod index;
mod manifest;

use std::path::{Path, PathBuf};

use serde_json::Value;

pub use index::{PluginEntry, PluginIndex, PluginSource, installed};
pub use manifest::read;

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
    /// Parts that sheaf has no use for, and members of the manifest that nobody knows.
    pub unused: Vec<String>,
    pub problems: Vec<String>,
}

impl Plugin {
    /// The beginning of its files' paths, as people see them.
    pub fn prefix(&self) -> String {
        format!("plugin {}/", self.name)
    }

    /// The variables by which its hooks find its folder.
    pub fn variables(&self) -> Vec<(String, String)> {
        let root = self.root.to_string_lossy();
        let names = ["CLAUDE_PLUGIN_ROOT", "CURSOR_PLUGIN_ROOT", "PLUGIN_ROOT"];
        names.map(|it| (it.to_owned(), root.to_string())).into()
    }

    /// Fills its folder into a text.
    pub fn filled(root: &Path, text: &str) -> String {
        let root = root.to_string_lossy();
        ["CLAUDE_PLUGIN_ROOT", "CURSOR_PLUGIN_ROOT", "PLUGIN_ROOT"]
            .into_iter()
            .fold(text.to_owned(), |text, name| {
                text.replace(&format!("${{{name}}}"), &root)
            })
    }
}
