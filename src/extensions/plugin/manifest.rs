//! Reads what a plugin's folder says of itself.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use serde_json::{Map, Value};

use super::{Part, PartKind, Plugin, PluginForm, PluginHooks, PluginServer};
use crate::{config::LanguageServer, os::file};

/// A larger file is no manifest.
const FILE_BYTES: u64 = 256 << 10;
/// Maximum length of a name, in characters.
const NAME_CHARS: usize = 64;
/// The end of the address of the open form's schema. It is compared and never fetched.
const SCHEMA: &str = "/schemas/1.0.0/plugin.schema.json";
/// Members of the open form; it has no others.
const OPEN_MEMBERS: [&str; 10] = [
    "$schema",
    "name",
    "version",
    "description",
    "author",
    "homepage",
    "repository",
    "license",
    "keywords",
    "extensions",
];
/// Members of the others that say nothing about parts.
const TOLD_MEMBERS: [&str; 12] = [
    "$schema",
    "name",
    "displayName",
    "version",
    "description",
    "author",
    "homepage",
    "repository",
    "license",
    "keywords",
    "logo",
    "category",
];
/// Members that name parts, with the kind and the folder where they are anyway.
const PARTS: [(&str, PartKind, &str); 6] = [
    ("skills", PartKind::Skills, "skills"),
    ("commands", PartKind::Commands, "commands"),
    ("modes", PartKind::Modes, "modes"),
    ("agents", PartKind::Agents, "agents"),
    ("outputStyles", PartKind::Styles, "output-styles"),
    ("rules", PartKind::Rules, "rules"),
];
/// Members, and folders or files, of parts that sheaf has no use for.
const UNUSED: [&str; 1] = ["variables"];
/// The file of language servers.
const LANGUAGE_SERVERS: &str = ".lsp.json";
/// Maximum number of language servers.
const MOST_LANGUAGE_SERVERS: usize = 32;

/// Reads a plugin; `otherwise` is its name if it has no manifest. Fails with a sentence if it is none, or cannot be used.
pub fn read(root: &Path, otherwise: &str) -> Result<Plugin, String> {
    let root = root
        .canonicalize()
        .map_err(|it| format!("{} cannot be read: {it}", root.display()))?;
    let (form, manifest) = manifest(&root)?;
    let text = |name: &str| -> Result<String, String> {
        match manifest.get(name) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.trim().to_owned()),
            Some(_) => Err(format!("`{name}` of its manifest is no text")),
        }
    };
    let name = match form {
        PluginForm::Bare => usable(otherwise),
        PluginForm::Open | PluginForm::Cursor | PluginForm::Claude => text("name")?,
    };
    if !is_name(&name) {
        return Err(format!(
            "its name `{name}` is not made of 1 to {NAME_CHARS} of `a-z`, `0-9`, `-` and `.`, with a letter or digit first"
        ));
    }
    let mut plugin = Plugin {
        name,
        version: text("version")?,
        about: text("description")?,
        form,
        root: root.clone(),
        parts: Vec::new(),
        hooks: Vec::new(),
        servers: Vec::new(),
        language_servers: Vec::new(),
        unused: Vec::new(),
        problems: Vec::new(),
    };
    match form {
        PluginForm::Open => open(&mut plugin, &manifest)?,
        PluginForm::Cursor | PluginForm::Claude | PluginForm::Bare => vendor(&mut plugin, &manifest),
    }
    let is_empty = plugin.parts.is_empty() && plugin.hooks.is_empty() && plugin.servers.is_empty();
    if form == PluginForm::Bare && is_empty {
        return Err(format!(
            "no plugin here: there is no manifest, and no skill, command, hook or mode{}",
            market(&root)
        ));
    }
    Ok(plugin)
}

/// The manifest; of several the one that can say the most.
fn manifest(root: &Path) -> Result<(PluginForm, Map<String, Value>), String> {
    for (form, path) in [
        (PluginForm::Claude, ".claude-plugin/plugin.json"),
        (PluginForm::Cursor, ".cursor-plugin/plugin.json"),
        (PluginForm::Open, "plugin.json"),
    ] {
        if fs::symlink_metadata(root.join(path)).is_err() {
            continue;
        }
        let value = json(root, path)?;
        let Value::Object(members) = value else {
            return Err(format!("{path} is no JSON object"));
        };
        let schema = members.get("$schema").and_then(Value::as_str).unwrap_or_default();
        // A file of this name may be anything's.
        if form == PluginForm::Open && !schema.ends_with(SCHEMA) {
            return Err(format!(
                "`$schema` of plugin.json is not that of Agent Plugins 1.0 (…{SCHEMA})"
            ));
        }
        return Ok((form, members));
    }
    Ok((PluginForm::Bare, Map::new()))
}

/// A hint at the plugins of a marketplace, which sheaf does not read.
fn market(root: &Path) -> String {
    let Ok(market) = json(root, ".claude-plugin/marketplace.json") else {
        return String::new();
    };
    let plugins = market.get("plugins").and_then(Value::as_array);
    let sources = plugins
        .into_iter()
        .flatten()
        .filter_map(|it| it.get("source")?.as_str());
    let folders: Vec<&str> = sources.map(|it| it.trim_start_matches("./")).take(10).collect();
    format!(
        "\n  it is a marketplace; add one of its plugins by its folder: --path {}",
        folders.join(", --path ")
    )
}

fn json(root: &Path, path: &str) -> Result<Value, String> {
    let bytes =
        file::read_beneath(root, path.as_ref(), FILE_BYTES).map_err(|it| format!("{path} cannot be read: {it}"))?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    serde_json::from_slice(bytes).map_err(|it| format!("{path} is not JSON: {it}"))
}

/// The open form: parts are at fixed places only, members of a wrong type are an error.
fn open(plugin: &mut Plugin, manifest: &Map<String, Value>) -> Result<(), String> {
    for (name, value) in manifest {
        let is_right = match name.as_str() {
            "author" | "extensions" => value.is_object(),
            "keywords" => value.as_array().is_some_and(|it| it.iter().all(Value::is_string)),
            name if OPEN_MEMBERS.contains(&name) => value.is_string(),
            _ => {
                plugin.unused.push(format!("member `{name}` of plugin.json"));
                true
            }
        };
        if !is_right {
            return Err(format!("`{name}` of plugin.json has the wrong type"));
        }
    }
    add_folder(plugin, PartKind::Skills, "skills");
    if plugin.root.join("mcp.json").is_file() {
        add_servers(plugin, "mcp.json");
    }
    Ok(())
}

/// Cursor's and Claude Code's form: parts are at usual places, and where the manifest says.
fn vendor(plugin: &mut Plugin, manifest: &Map<String, Value>) {
    for (member, kind, folder) in PARTS {
        // Only Cursor's have them: elsewhere a folder of this name is anything's.
        if kind == PartKind::Rules && plugin.form != PluginForm::Cursor {
            continue;
        }
        add_folder(plugin, kind, folder);
        for path in paths(plugin, manifest, member) {
            add_part(plugin, kind, &path);
        }
    }
    add_hooks(plugin, manifest);
    for path in [".mcp.json", "mcp.json"] {
        if plugin.root.join(path).is_file() {
            add_servers(plugin, path);
        }
    }
    match manifest.get("mcpServers") {
        Some(Value::Object(servers)) => name_servers(plugin, servers),
        Some(_) => {
            for path in paths(plugin, manifest, "mcpServers") {
                add_servers(plugin, &path);
            }
        }
        None => {}
    }
    if plugin.root.join(LANGUAGE_SERVERS).is_file() {
        add_language_servers(plugin, LANGUAGE_SERVERS);
    }
    match manifest.get("lspServers") {
        Some(Value::Object(servers)) => name_language_servers(plugin, servers),
        Some(_) => {
            for path in paths(plugin, manifest, "lspServers") {
                add_language_servers(plugin, &path);
            }
        }
        None => {}
    }
    for member in UNUSED.into_iter().filter(|it| manifest.contains_key(*it)) {
        plugin.unused.push(member.to_owned());
    }
    let is_known = |it: &str| {
        TOLD_MEMBERS.contains(&it)
            || PARTS.iter().any(|part| part.0 == it)
            || UNUSED.contains(&it)
            || matches!(it, "hooks" | "mcpServers" | "lspServers")
    };
    let unknown = manifest.keys().filter(|it| !is_known(it));
    plugin
        .unused
        .extend(unknown.map(|it| format!("member `{it}` of the manifest")));
}

/// The paths of a member: a text or a list of texts. Those that lead out of the plugin are problems.
fn paths(plugin: &mut Plugin, manifest: &Map<String, Value>, member: &str) -> Vec<String> {
    let written: Vec<String> = match manifest.get(member) {
        Some(Value::String(path)) => vec![path.clone()],
        Some(Value::Array(list)) => list.iter().filter_map(|it| Some(it.as_str()?.to_owned())).collect(),
        Some(_) | None => Vec::new(),
    };
    let mut found = Vec::new();
    for path in written {
        match inner(&plugin.root, &path) {
            Some(inner) => found.push(inner),
            None => plugin
                .problems
                .push(format!("`{member}` names `{path}`, which is not in the plugin")),
        }
    }
    found
}

/// A path of the manifest, from the root of the plugin. `None`: nothing is there, or it leads out.
fn inner(root: &Path, written: &str) -> Option<String> {
    let path = Path::new(written);
    let is_plain = |it: Component<'_>| matches!(it, Component::CurDir | Component::Normal(_));
    if !path.components().all(is_plain) {
        return None;
    }
    let resolved = root.join(path).canonicalize().ok()?;
    let inner = resolved.strip_prefix(root).ok()?;
    Some(inner.to_string_lossy().into_owned())
}

fn add_folder(plugin: &mut Plugin, kind: PartKind, folder: &str) {
    if plugin.root.join(folder).is_dir() {
        add_part(plugin, kind, folder);
    }
}

fn add_part(plugin: &mut Plugin, kind: PartKind, path: &str) {
    let whole = plugin.root.join(path);
    let part = if whole.is_dir() {
        // A skill may be named by its own folder.
        let is_skill = kind == PartKind::Skills && whole.join("SKILL.md").is_file();
        let (folder, file) = match Path::new(path).parent() {
            Some(above) if is_skill => (above.to_owned(), Path::new(path).file_name()),
            Some(_) | None => (PathBuf::from(path), None),
        };
        Part {
            kind,
            folder,
            file: file.map(|it| it.to_string_lossy().into_owned()),
        }
    } else {
        let path = Path::new(path);
        Part {
            kind,
            folder: path.parent().map(Path::to_owned).unwrap_or_default(),
            file: path.file_name().map(|it| it.to_string_lossy().into_owned()),
        }
    };
    let is_had = |it: &Part| it.kind == kind && it.folder == part.folder && (it.file.is_none() || it.file == part.file);
    if !plugin.parts.iter().any(is_had) {
        plugin.parts.push(part);
    }
}

fn add_hooks(plugin: &mut Plugin, manifest: &Map<String, Value>) {
    const USUAL: &str = "hooks/hooks.json";
    let mut add = |path: String, content| {
        if plugin.hooks.iter().all(|it| it.path != path) {
            plugin.hooks.push(PluginHooks { path, content });
        }
    };
    if plugin.root.join(USUAL).is_file() {
        add(USUAL.to_owned(), None);
    }
    if let Some(content @ Value::Object(members)) = manifest.get("hooks") {
        // With or without the member that a file has.
        let content = match members.get("hooks") {
            Some(Value::Object(_)) => content.clone(),
            Some(_) | None => serde_json::json!({ "hooks": content }),
        };
        add("the manifest".to_owned(), Some(content));
        return;
    }
    for path in paths(plugin, manifest, "hooks") {
        if plugin.hooks.iter().all(|it| it.path != path) {
            plugin.hooks.push(PluginHooks { path, content: None });
        }
    }
}

fn add_servers(plugin: &mut Plugin, path: &str) {
    match json(&plugin.root, path) {
        Ok(file) => match file.get("mcpServers").or(Some(&file)).and_then(Value::as_object) {
            Some(servers) => name_servers(plugin, servers),
            None => plugin.problems.push(format!("{path} names no servers")),
        },
        Err(why) => plugin.problems.push(why),
    }
}

fn name_servers(plugin: &mut Plugin, servers: &Map<String, Value>) {
    for (name, definition) in servers.iter().filter(|it| it.1.is_object()) {
        if plugin.servers.iter().all(|it| it.name != *name) {
            plugin.servers.push(PluginServer {
                name: name.clone(),
                definition: definition.clone(),
            });
        }
    }
}

fn add_language_servers(plugin: &mut Plugin, path: &str) {
    match json(&plugin.root, path) {
        Ok(file) => match file.get("lspServers").or(Some(&file)).and_then(Value::as_object) {
            Some(servers) => name_language_servers(plugin, servers),
            None => plugin.problems.push(format!("{path} names no language servers")),
        },
        Err(why) => plugin.problems.push(why),
    }
}

fn name_language_servers(plugin: &mut Plugin, servers: &Map<String, Value>) {
    for (name, definition) in servers.iter().take(MOST_LANGUAGE_SERVERS) {
        if plugin.language_servers.iter().any(|it| it.0 == *name) {
            continue;
        }
        let text = |name: &str| definition.get(name).and_then(Value::as_str).map(str::to_owned);
        let extensions = definition.get("extensionToLanguage").and_then(Value::as_object);
        let extensions: Vec<String> = extensions.into_iter().flatten().map(|it| it.0.clone()).collect();
        let is_stdio = text("transport").is_none_or(|it| it == "stdio");
        let (Some(command), true, false) = (text("command"), is_stdio, extensions.is_empty()) else {
            plugin.problems.push(format!(
                "the language server `{name}` needs a command, extensionToLanguage and stdio"
            ));
            continue;
        };
        let arguments = definition.get("args").and_then(Value::as_array);
        let arguments = arguments.into_iter().flatten().filter_map(Value::as_str);
        let env = definition.get("env").and_then(Value::as_object);
        let env = env
            .into_iter()
            .flatten()
            .filter_map(|(name, it)| Some((name.clone(), it.as_str()?.to_owned())));
        let server = LanguageServer {
            command: Some(command),
            args: arguments.map(str::to_owned).collect(),
            extensions,
            initialization: definition
                .get("initializationOptions")
                .map_or_else(String::new, Value::to_string),
            env: env.collect(),
            ..LanguageServer::default()
        };
        plugin.language_servers.push((name.clone(), server));
    }
}

fn is_name(name: &str) -> bool {
    let is_letter = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit();
    (1..=NAME_CHARS).contains(&name.len())
        && name.chars().all(|it| is_letter(it) || matches!(it, '-' | '.'))
        && name.starts_with(is_letter)
        && name.ends_with(is_letter)
        && !name.contains("..")
}

/// A name of a folder or a repository as a name of a plugin.
fn usable(name: &str) -> String {
    let name = name.trim_end_matches(".git").to_lowercase();
    let usable: String = name
        .chars()
        .map(|it| {
            if it.is_ascii_alphanumeric() || it == '.' {
                it
            } else {
                '-'
            }
        })
        .take(NAME_CHARS)
        .collect();
    usable.trim_matches(['-', '.']).to_owned()
}
