//! Skills, commands and other Markdown files that users and projects add: where they are, and what they say.
//!
//! A file has a head (YAML front matter) and a body. Files of a project have an effect only if the user trusts their content;
//! the caller decides. Nothing here runs a program, and nothing is written but which skills were used last.

mod command;
mod contents;
mod folders;
mod front_matter;
pub mod hooks;
mod mode;
mod plugin;
mod shelf;
mod skill;
mod style;
mod template;

pub use command::{CommandFile, find_commands};
pub use contents::plugin_contents;
pub use folders::{HeldFile, Owner, Surroundings, repository_above};
pub use front_matter::FrontMatter;
pub use mode::{AllowedTool, CustomMode, ModeSet, ToolGroup, find_modes};
pub use plugin::{
    Plugin, PluginEntry, PluginForm, PluginIndex, PluginServer, PluginSource, installed, made_data_folder,
    read as read_plugin,
};
pub use shelf::SkillShelf;
pub use skill::{Skill, SkillSet, Visibility, find_skills};
pub use style::{find_style, project_styles};
pub use template::{Fill, Piece, pieces};
