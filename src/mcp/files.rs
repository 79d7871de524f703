//! The files of other programs that define servers, and what becomes of all definitions together.
//!
//! | file | whose |
//! | --- | --- |
//! | `.cursor/mcp.json`, `~/.cursor/mcp.json` | Cursor |
//! | `.mcp.json`, `~/.claude.json` | Claude Code |
//! | `.vscode/mcp.json` | VS Code; comments are allowed |
//!
//! The user's own settings come first, then the project's files, then the user's, then plugins. Of two servers with one name the
//! first counts. A server of a plugin is named `PLUGIN-SERVER`, or like the plugin if both have one name.

use std::{collections::BTreeMap, path::Path, time::Duration};

use serde_json::{Map, Value};

use super::definition::{Definition, Endpoint, Given, Origin};
use crate::{
    config::{Fingerprint, McpServer, Secret},
    extensions::{Plugin, PluginForm, PluginServer},
    os::file,
    text::Sanitized,
};

/// Bytes of one file.
const FILE_BYTES: u64 = 4 << 20;
/// Servers of one file.
const MOST_SERVERS: usize = 100;

/// Files of a project, the first of them the strongest.
pub const PROJECT_FILES: [&str; 3] = [".cursor/mcp.json", ".mcp.json", ".vscode/mcp.json"];
/// Files in the user's home.
const USER_FILES: [&str; 2] = [".cursor/mcp.json", ".claude.json"];

/// All servers that are defined for a workspace.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Sorted by name.
    pub servers: Vec<Definition>,
    /// Files and entries that cannot be used, and those that another one hides: a sentence each.
    pub problems: Vec<String>,
    /// Fingerprints of the project's files that define servers.
    pub files: BTreeMap<String, Fingerprint>,
}

/// Finds all servers. `home`: where the user's files are; `None`: they are not read.
pub fn find(settings: &BTreeMap<String, McpServer>, root: &Path, home: Option<&Path>, plugins: &[Plugin]) -> Found {
    let mut found = Found::default();
    let mut all: Vec<Definition> = settings
        .iter()
        .filter_map(|(name, entry)| Definition::of_settings(name, entry))
        .collect();
    for path in PROJECT_FILES {
        let Ok(bytes) = file::read_beneath(root, path.as_ref(), FILE_BYTES) else {
            continue;
        };
        let origin = Origin::Project(path.to_owned());
        let servers = read(&bytes, &origin, root, &mut found.problems);
        if !servers.is_empty() {
            found.files.insert(path.to_owned(), Fingerprint::of(&[&bytes]));
        }
        all.extend(servers);
    }
    for path in home.into_iter().flat_map(|_| USER_FILES) {
        let Some(bytes) = home.and_then(|home| file::read(&home.join(path), FILE_BYTES).ok()) else {
            continue;
        };
        let origin = Origin::User(format!("~/{path}"));
        all.extend(read(&bytes, &origin, root, &mut found.problems));
    }
    for plugin in plugins {
        for server in plugin.servers.iter().take(MOST_SERVERS) {
            match of_plugin(plugin, server) {
                Ok(definition) => all.push(definition),
                Err(problem) => found.problems.push(problem),
            }
        }
    }
    let mut servers: BTreeMap<String, Definition> = BTreeMap::new();
    for definition in all {
        match servers.get(&definition.name) {
            Some(first) => found.problems.push(format!(
                "server `{}`: that of {} is used, not that of {}",
                definition.name,
                first.origin.shown(),
                definition.origin.shown()
            )),
            None => {
                servers.insert(definition.name.clone(), definition);
            }
        }
    }
    for (name, entry) in settings
        .iter()
        .filter(|it| it.1.command.is_none() && it.1.url.is_none())
    {
        match servers.get_mut(name) {
            Some(definition) => definition.add(entry),
            None => found.problems.push(format!(
                "mcp.{name} has neither a command nor a url, and no file defines it"
            )),
        }
    }
    found.servers = servers.into_values().collect();
    found
}

fn read(bytes: &[u8], origin: &Origin, root: &Path, problems: &mut Vec<String>) -> Vec<Definition> {
    let text = String::from_utf8_lossy(bytes);
    let value: Value = match serde_json::from_str(&without_comments(&text)) {
        Ok(value) => value,
        Err(error) => {
            problems.push(format!("{} cannot be read: {error}", origin.shown()));
            return Vec::new();
        }
    };
    let mut tables = Vec::new();
    // Claude Code's own file has servers for single folders, which are stronger.
    if let Some(local) = value
        .get("projects")
        .and_then(|it| it.get(root.to_string_lossy().as_ref()))
    {
        tables.extend(local.get("mcpServers"));
    }
    tables.extend(value.get("mcpServers"));
    tables.extend(value.get("servers"));
    let mut servers: Vec<Definition> = Vec::new();
    for (name, entry) in tables
        .into_iter()
        .filter_map(Value::as_object)
        .flatten()
        .take(MOST_SERVERS)
    {
        if let Err(problem) = named(name, origin) {
            problems.push(problem);
        } else if !servers.iter().any(|it| it.name == *name) {
            servers.push(server(name, entry, origin));
        }
    }
    servers
}

/// Checks the name of a server. Error: a sentence.
fn named(name: &str, origin: &Origin) -> Result<(), String> {
    let is_plain = |it: char| it.is_alphanumeric() || "-_. ".contains(it);
    if !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain) {
        return Ok(());
    }
    let name: String = Sanitized::line(name).as_str().chars().take(40).collect();
    Err(format!("{}: `{name}` cannot be the name of a server", origin.shown()))
}

/// A server of a plugin, with the plugin's folder filled in. Error: a sentence.
fn of_plugin(plugin: &Plugin, server: &PluginServer) -> Result<Definition, String> {
    let origin = Origin::Plugin(format!("plugin {}", plugin.name));
    named(&server.name, &origin)?;
    let name = if server.name == plugin.name {
        plugin.name.clone()
    } else {
        format!("{}-{}", plugin.name, server.name)
    };
    let mut definition = self::server(&name, &with_folder(&server.definition, plugin), &origin);
    if let Endpoint::Program { command, variables, .. } = &mut definition.endpoint {
        if let Some(inner) = command.strip_prefix("./") {
            *command = plugin.root.join(inner).to_string_lossy().into_owned();
        }
        let names = match plugin.form {
            PluginForm::Open => ["PLUGIN_ROOT", "PLUGIN_DATA"],
            PluginForm::Cursor => ["CURSOR_PLUGIN_ROOT", "PLUGIN_DATA"],
            PluginForm::Claude | PluginForm::Bare => ["CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA"],
        };
        for (name, folder) in plugin
            .variables()
            .into_iter()
            .filter(|it| names.contains(&it.0.as_str()))
        {
            if name.ends_with("_DATA") {
                definition.folders.push(folder.clone());
            }
            if variables.iter().all(|it| it.0 != name) {
                variables.push((name, Given::new(folder)));
            }
        }
    }
    Ok(definition)
}

/// Fills the folder of a plugin into each text of a definition.
fn with_folder(value: &Value, plugin: &Plugin) -> Value {
    match value {
        Value::String(text) => Plugin::filled(&plugin.root, text).into(),
        Value::Array(items) => items.iter().map(|it| with_folder(it, plugin)).collect(),
        Value::Object(members) => {
            let filled = members.iter().map(|(name, it)| (name.clone(), with_folder(it, plugin)));
            Value::Object(filled.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn server(name: &str, entry: &Value, origin: &Origin) -> Definition {
    let text = |member: &str| entry.get(member).and_then(Value::as_str).map(str::to_owned);
    let pairs = |member: &str| pairs(entry.get(member).and_then(Value::as_object));
    let endpoint = match (text("command"), text("url")) {
        (Some(command), None) => Endpoint::Program {
            command,
            arguments: texts(entry.get("args")),
            variables: pairs("env"),
            variables_file: text("envFile"),
            directory: text("cwd"),
        },
        (None, Some(_)) if text("type").as_deref() == Some("sse") => {
            Endpoint::Unusable("the transport `sse` is not supported; use the server's `http` address".to_owned())
        }
        (None, Some(url)) => Endpoint::Http {
            url,
            headers: pairs("headers"),
        },
        (Some(_), Some(_)) => Endpoint::Unusable("it has both a command and a url".to_owned()),
        (None, None) => Endpoint::Unusable("it has neither a command nor a url".to_owned()),
    };
    let mut definition = Definition::new(name, origin.clone(), endpoint);
    definition.timeout = entry
        .get("timeout")
        .and_then(Value::as_u64)
        .filter(|it| *it > 0)
        .map(Duration::from_millis);
    definition.is_enabled = entry.get("disabled").and_then(Value::as_bool) != Some(true);
    let client = entry
        .pointer("/auth/CLIENT_ID")
        .or_else(|| entry.pointer("/oauth/clientId"));
    definition.client.id = client.and_then(Value::as_str).map(str::to_owned);
    let secret = entry.pointer("/auth/CLIENT_SECRET").and_then(Value::as_str);
    definition.client.secret = secret.map(Secret::new);
    definition
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn pairs(table: Option<&Map<String, Value>>) -> Vec<(String, Given)> {
    let value = |it: &Value| match it {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let entries = table.into_iter().flatten();
    entries
        .map(|(name, it)| (name.clone(), Given::new(value(it))))
        .collect()
}

/// JSON without comments and commas at the end of lists.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut in_text = false;
    while let Some(it) = chars.next() {
        match it {
            '\\' if in_text => {
                plain.push(it);
                plain.extend(chars.next());
            }
            '"' => {
                in_text = !in_text;
                plain.push(it);
            }
            '/' if !in_text && chars.peek() == Some(&'/') => {
                while chars.peek().is_some_and(|it| *it != '\n') {
                    chars.next();
                }
            }
            '/' if !in_text && chars.peek() == Some(&'*') => {
                chars.next();
                let mut before = ' ';
                for it in chars.by_ref() {
                    if before == '*' && it == '/' {
                        break;
                    }
                    before = it;
                }
                plain.push(' ');
            }
            '}' | ']' if !in_text => {
                let end = plain.trim_end().len();
                if plain.get(..end).is_some_and(|it| it.ends_with(',')) {
                    plain.truncate(end - 1);
                }
                plain.push(it);
            }
            it => plain.push(it),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn a_server_of_a_plugin_is_somebody_elses_and_finds_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("tools");
        write(
            &root,
            ".claude-plugin/plugin.json",
            r#"{"name":"tools","mcpServers":{
                "db":{"command":"${CLAUDE_PLUGIN_ROOT}/db","args":["--at","${CLAUDE_PLUGIN_ROOT}/x"],"env":{"KEY":"${TOKEN}"}},
                "tools":{"command":"./run"},
                "taken":{"command":"${SHELL}"},
                "bad\u001b":{"command":"x"}}}"#,
        );
        let plugin = crate::extensions::read_plugin(&root, "").unwrap();
        let mut settings = BTreeMap::new();
        let grant = McpServer {
            network: true,
            ..McpServer::default()
        };
        settings.insert("tools-db".to_owned(), grant);
        let found = find(&settings, folder.path(), None, std::slice::from_ref(&plugin));
        let root = plugin.root.display();
        let variables = plugin.variables();
        let data = &variables.iter().find(|it| it.0 == "CLAUDE_PLUGIN_DATA").unwrap().1;
        let line = |it: &Definition| format!("{} ({}): {} {:?}", it.name, it.origin.shown(), it.line(), it.given());
        assert_eq!(
            found.servers.iter().map(line).collect::<Vec<_>>(),
            [
                format!(
                    "tools (plugin tools): {root}/run [\"CLAUDE_PLUGIN_ROOT={root}\", \"CLAUDE_PLUGIN_DATA={data}\"]"
                ),
                format!(
                    "tools-db (plugin tools): {root}/db --at {root}/x [\"KEY=${{TOKEN}}\", \"CLAUDE_PLUGIN_ROOT={root}\", \
                     \"CLAUDE_PLUGIN_DATA={data}\"]"
                ),
                "tools-taken (plugin tools):  []".to_owned(),
            ]
        );
        assert!(found.servers.iter().all(Definition::is_foreign));
        assert!(found.servers[1].network, "the user's entry of that name grants");
        assert_eq!(found.servers[0].reach(), [format!("writes {data}")]);
        assert_eq!(found.problems, ["plugin tools: `bad` cannot be the name of a server"]);
        let Endpoint::Unusable(why) = &found.servers[2].endpoint else {
            panic!("a variable decides what runs");
        };
        assert_eq!(why, "a variable in the command is not filled in for a plugin");
    }

    #[test]
    fn the_files_of_other_programs_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let (root, home) = (folder.path().join("work"), folder.path().join("home"));
        write(
            &root,
            ".cursor/mcp.json",
            r#"{"mcpServers":{"git":{"command":"uvx","args":["mcp-server-git"],"env":{"A":"${env:B}"}},
                "both":{"command":"a","url":"b"},"bad\u001b[2J":{"command":"x"}}}"#,
        );
        write(
            &root,
            ".mcp.json",
            r#"{"mcpServers":{"git":{"command":"evil"},"docs":{"type":"http","url":"https://d.example/mcp","headers":{"X":"1"},"timeout":5000},
                "old":{"type":"sse","url":"https://d.example/sse"}}}"#,
        );
        write(
            &root,
            ".vscode/mcp.json",
            "{ // ours\n \"inputs\": [{\"id\":\"k\"}], /* x */ \"servers\": { \"vs\": { \"command\": \"//no\", \"args\": [\"a\",], } } }",
        );
        let local = format!(
            r#"{{"mcpServers":{{"mine":{{"command":"m","disabled":true}}}},"projects":{{"{}":{{"mcpServers":{{"here":{{"command":"h"}}}}}}}}}}"#,
            root.display()
        );
        write(&home, ".claude.json", &local);
        write(&home, ".cursor/mcp.json", "not json");
        let mut settings = BTreeMap::new();
        let entry = |command: Option<&str>| McpServer {
            command: command.map(str::to_owned),
            network: true,
            disabled_tools: vec!["x".to_owned()],
            ..McpServer::default()
        };
        settings.insert("docs".to_owned(), entry(None));
        settings.insert("nobody".to_owned(), entry(None));
        settings.insert("here".to_owned(), entry(Some("own")));
        let found = find(&settings, &root, Some(&home), &[]);
        let line = |it: &Definition| format!("{} ({}): {} {:?}", it.name, it.origin.shown(), it.line(), it.given());
        assert_eq!(
            found.servers.iter().map(line).collect::<Vec<_>>(),
            [
                "both (.cursor/mcp.json):  []",
                "docs (.mcp.json): https://d.example/mcp [\"X=1\"]",
                "git (.cursor/mcp.json): uvx mcp-server-git [\"A=${env:B}\"]",
                "here (config.toml): own []",
                "mine (~/.claude.json): m []",
                "old (.mcp.json):  []",
                "vs (.vscode/mcp.json): //no a []",
            ]
        );
        let docs = found.servers.iter().find(|it| it.name == "docs").unwrap();
        assert_eq!(
            (docs.network, docs.timeout, docs.disabled_tools.len()),
            (true, Some(Duration::from_secs(5)), 1)
        );
        assert!(!found.servers.iter().find(|it| it.name == "mine").unwrap().is_enabled);
        assert_eq!(
            found.problems,
            [
                ".cursor/mcp.json: `bad` cannot be the name of a server",
                "~/.cursor/mcp.json cannot be read: expected ident at line 1 column 2",
                "server `git`: that of .cursor/mcp.json is used, not that of .mcp.json",
                "server `here`: that of config.toml is used, not that of ~/.claude.json",
                "mcp.nobody has neither a command nor a url, and no file defines it",
            ]
        );
        assert_eq!(
            found.files.keys().collect::<Vec<_>>(),
            [".cursor/mcp.json", ".mcp.json", ".vscode/mcp.json"]
        );
    }
}
