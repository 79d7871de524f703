//! What the user has put into the prompt: words at its end, and blocks in place of ours.
//!
//! From the configuration (`prompt.append`, `prompt.replace.<block>`) or from files in its folder: `prompts/append.md`,
//! `prompts/<block>.md`. The configuration wins. A block that cannot be used is left out and said; ours stands then.

use std::{collections::BTreeMap, path::Path};

use super::{
    Facts,
    block::{BLOCKS, render},
};
use crate::{
    agent::tags::guard,
    config::{Paths, Settings, suggestion},
    os::file,
};

/// The user's part in the prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Custom {
    /// Plain text in place of all blocks, no template.
    pub whole: Option<String>,
    /// Plain text, no template.
    pub append: String,
    /// Templates by the name of the block.
    pub replace: BTreeMap<String, String>,
}

impl Custom {
    /// Has a text stand for what the prompt says of how to write, unless the user has replaced that by name.
    pub fn style(&mut self, text: &str) {
        // It is a text, no template.
        let text = guard(text).replace("endraw", "end raw");
        let block = format!("{{% raw %}}{text}{{% endraw %}}");
        self.replace.entry(STYLE.to_owned()).or_insert(block);
    }
}

/// The block that says how to write.
const STYLE: &str = "communication";
/// More than this is no prompt.
const FILE_BYTES: u64 = 64 << 10;

/// Loads the user's parts of the prompt. Also returns a warning for each that cannot be used.
pub fn load(settings: &Settings, paths: Option<&Paths>) -> (Custom, Vec<String>) {
    let mut custom = Custom::default();
    let mut warnings = Vec::new();
    if let Some(folder) = paths.map(Paths::prompts) {
        let mut read = |name: &str| match file::read(&folder.join(format!("{name}.md")), FILE_BYTES) {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.is_absent() => None,
            Err(error) => {
                warnings.push(format!("{error}: it is left out of the prompt"));
                None
            }
        };
        custom.append = read("append").unwrap_or_default();
        for block in BLOCKS {
            if let Some(text) = read(block.name) {
                custom.replace.insert(block.name.to_owned(), text);
            }
        }
        warnings.extend(strangers(&folder));
    }
    if let Some(append) = &settings.prompt.append {
        custom.append.clone_from(append);
    }
    custom.whole.clone_from(&settings.prompt.given_whole);
    if let Some(end) = &settings.prompt.given_end {
        custom.append = format!("{}\n\n{end}", custom.append.trim_end());
    }
    for (name, text) in &settings.prompt.replace {
        custom.replace.insert(name.clone(), text.clone());
    }
    custom.replace.retain(|name, text| match unfit(name, text) {
        None => true,
        Some(why) => {
            warnings.push(why);
            false
        }
    });
    (custom, warnings)
}

/// Files that look like blocks and are none.
fn strangers(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries
        .flatten()
        .take(256)
        .filter_map(|it| it.file_name().into_string().ok());
    let stems = names.filter_map(|it| it.strip_suffix(".md").map(str::to_owned));
    let strange = stems.filter(|it| it != "append" && BLOCKS.iter().all(|block| block.name != it));
    strange.map(|it| no_block(&it)).collect()
}

fn no_block(name: &str) -> String {
    let known = BLOCKS.iter().map(|it| it.name);
    let hint = suggestion(name, known).map(|it| format!(": {it}")).unwrap_or_default();
    format!("the prompt has no block called `{name}`{hint}")
}

/// Why a block of the user's cannot be used.
fn unfit(name: &str, text: &str) -> Option<String> {
    if BLOCKS.iter().all(|it| it.name != name) {
        return Some(no_block(name));
    }
    let tools = ["read_file"];
    let tried = [&[][..], &tools[..]].map(|tools| Facts {
        model: "m",
        tools,
        ..Facts::default()
    });
    let error = tried.iter().map(|it| render(text, it)).find_map(Result::err)?;
    Some(format!("the block `{name}` of the prompt cannot be used: {error}"))
}
