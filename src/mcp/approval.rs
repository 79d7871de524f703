//! Servers and tools that the user has approved, in a file of the program's state, outside of any project.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    content::capped,
    definition::{Definition, Origin},
    info::ToolInfo,
};
use crate::{
    config::Fingerprint,
    os::file::{self, Access},
};

/// Bytes of the file.
const LIMIT_BYTES: u64 = 32 << 20;
const VERSION: u32 = 1;
/// Bytes of a description, and of the arguments, that are kept, to show what has changed.
const ABOUT_BYTES: usize = 4 << 10;
/// Characters that are shown before the first one that has changed.
const SHOWN_BEFORE: usize = 60;

/// The user's decision on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    Approved,
    /// Nothing yet.
    New,
    /// They approved another definition: its command line or address, and what it was given.
    Changed {
        was: String,
    },
}

/// A tool that is not what was approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub tool: String,
    /// The tool before, from shortly before the difference on; `None`: it is new.
    pub was: Option<String>,
    /// The same now.
    pub now: String,
}

/// The file of approvals.
#[derive(Clone, Debug)]
pub struct Approvals {
    path: PathBuf,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct ApprovalFile {
    version: u32,
    /// By where the server is defined (a project's root, or nothing for the user's own), then by name.
    servers: BTreeMap<String, BTreeMap<String, Record>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Record {
    /// Fingerprint of the definition that was approved.
    print: Option<Fingerprint>,
    /// The same for people.
    line: String,
    tools: BTreeMap<String, KnownTool>,
    /// Its tools have been seen, even if there were none.
    #[serde(default)]
    is_seen: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct KnownTool {
    print: Fingerprint,
    about: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    schema: String,
}

impl KnownTool {
    fn of(tool: &ToolInfo) -> (String, Self) {
        let known = Self {
            print: tool.print.clone(),
            about: capped(&tool.about, ABOUT_BYTES),
            title: tool.title.clone(),
            schema: capped(&tool.schema.to_string(), ABOUT_BYTES),
        };
        (tool.name.clone(), known)
    }

    /// Its parts, as far as `other` has others: the description, else whatever differs.
    fn shown(&self, other: &Self) -> String {
        let parts = [
            (&self.title, &other.title),
            (&self.about, &other.about),
            (&self.schema, &other.schema),
        ];
        let changed: Vec<&str> = parts.iter().filter(|it| it.0 != it.1).map(|it| it.0.as_str()).collect();
        if changed.is_empty() {
            return "(what differs is beyond the part that is kept)".to_owned();
        }
        changed.join("\n")
    }

    fn change(&self, was: Option<&Self>, tool: &str) -> Change {
        let (was, now) = match was {
            None => (None, self.about.clone()),
            Some(was) => {
                let (before, after) = (was.shown(self), self.shown(was));
                let same = before.chars().zip(after.chars()).take_while(|it| it.0 == it.1).count();
                let from = |text: &str| match same.saturating_sub(SHOWN_BEFORE) {
                    0 => text.to_owned(),
                    skipped => format!("…{}", text.chars().skip(skipped).collect::<String>()),
                };
                (Some(from(&before)), from(&after))
            }
        };
        Change {
            tool: tool.to_owned(),
            was,
            now,
        }
    }
}

/// The command line or address of a definition with everything that an approval is of.
pub fn described(definition: &Definition) -> String {
    let mut line = definition.line();
    for (word, all) in [("given", definition.given()), ("and", definition.reach())] {
        if !all.is_empty() {
            line.push_str(&format!(" ({word}: {})", all.join(", ")));
        }
    }
    line
}

impl Approvals {
    /// The file below the state folder. It need not exist.
    pub fn under(state: &Path) -> Self {
        Self {
            path: state.join("mcp.json"),
        }
    }

    /// Returns the user's decision on a server of the workspace at `root`.
    pub fn standing(&self, root: &Path, definition: &Definition) -> Standing {
        if !definition.is_foreign() {
            return Standing::Approved;
        }
        let file = self.read().unwrap_or_else(|error| {
            tracing::warn!(%error, "the approvals of servers cannot be read: none counts");
            ApprovalFile::default()
        });
        let record = file
            .servers
            .get(&place(root, definition))
            .and_then(|it| it.get(&definition.name));
        match record.and_then(|it| Some((it.print.as_ref()?, &it.line))) {
            None => Standing::New,
            Some((print, _)) if *print == definition.print() => Standing::Approved,
            Some((_, line)) => Standing::Changed { was: line.clone() },
        }
    }

    /// Keeps a yes to this definition; what its tools were counts no more.
    pub fn approve(&self, root: &Path, definition: &Definition) -> Result<(), String> {
        self.change(root, definition, |record| {
            *record = Record {
                print: Some(definition.print()),
                line: described(definition),
                ..Record::default()
            };
        })
    }

    /// Forgets what was said about a server.
    pub fn forget(&self, root: &Path, definition: &Definition) -> Result<(), String> {
        self.change(root, definition, |record| *record = Record::default())
    }

    /// Compares the tools of a server with those that it had when they were first used. The first time they are kept as they
    /// are. Error: what was kept cannot be read, so nothing can be compared.
    pub fn compare(&self, root: &Path, definition: &Definition, tools: &[ToolInfo]) -> Result<Vec<Change>, String> {
        let file = self.read()?;
        let record = file
            .servers
            .get(&place(root, definition))
            .and_then(|it| it.get(&definition.name));
        let known = record.filter(|it| it.is_seen || !it.tools.is_empty());
        let Some(known) = known.map(|it| &it.tools) else {
            self.approve_tools(root, definition, tools)?;
            return Ok(Vec::new());
        };
        let change = |it: &ToolInfo| {
            let was = known.get(&it.name);
            let is_same = was.is_some_and(|known| known.print == it.print);
            let (name, now) = KnownTool::of(it);
            (!is_same).then(|| now.change(was, &name))
        };
        Ok(tools.iter().filter_map(change).collect())
    }

    /// Keeps the tools of a server as they are now.
    pub fn approve_tools(&self, root: &Path, definition: &Definition, tools: &[ToolInfo]) -> Result<(), String> {
        self.change(root, definition, |record| {
            record.is_seen = true;
            record.tools.extend(tools.iter().map(KnownTool::of));
        })
    }

    fn change(&self, root: &Path, definition: &Definition, change: impl FnOnce(&mut Record)) -> Result<(), String> {
        let failed = |it: file::Error| it.to_string();
        if let Some(folder) = self.path.parent() {
            file::private_folder(folder).map_err(failed)?;
        }
        let held = file::lock_soon(&self.path.with_extension("lock")).map_err(failed)?;
        let _held = held.ok_or_else(|| format!("{} is being written by another program", self.path.display()))?;
        let mut file = self.read()?;
        file.version = VERSION;
        let servers = file.servers.entry(place(root, definition)).or_default();
        change(servers.entry(definition.name.clone()).or_default());
        servers.retain(|_, it| *it != Record::default());
        let text = serde_json::to_vec_pretty(&file).unwrap_or_default();
        file::write(&self.path, &text, Access::Private).map_err(failed)
    }

    fn read(&self) -> Result<ApprovalFile, String> {
        let bytes = match file::read(&self.path, LIMIT_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.is_absent() => return Ok(ApprovalFile::default()),
            Err(error) => return Err(error.to_string()),
        };
        let file = serde_json::from_slice::<ApprovalFile>(&bytes).ok();
        let file = file.filter(|it| it.version <= VERSION);
        file.ok_or_else(|| format!("{} is not a list written by sheaf\nmove it aside", self.path.display()))
    }
}

/// The place of a definition: servers with one name in two projects are two.
fn place(root: &Path, definition: &Definition) -> String {
    match &definition.origin {
        Origin::Settings | Origin::User(_) => String::new(),
        Origin::Project(_) => root.as_os_str().as_encoded_bytes().escape_ascii().to_string(),
        Origin::Plugin(plugin) => plugin.clone(),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::Value;

    use super::{super::definition::Endpoint, *};

    fn definition(origin: Origin, command: &str) -> Definition {
        let endpoint = Endpoint::Program {
            command: command.to_owned(),
            arguments: Vec::new(),
            variables: Vec::new(),
            variables_file: None,
            directory: None,
        };
        Definition::new("s", origin, endpoint)
    }

    fn tool(name: &str, about: &str) -> ToolInfo {
        ToolInfo {
            name: name.to_owned(),
            title: String::new(),
            about: about.to_owned(),
            schema: Value::Null,
            print: Fingerprint::of(&[name.as_bytes(), about.as_bytes()]),
        }
    }

    #[test]
    fn a_yes_is_to_one_definition_in_one_project() {
        let folder = tempfile::tempdir().unwrap();
        let approvals = Approvals::under(&folder.path().join("state"));
        let (here, there) = (Path::new("/here"), Path::new("/there"));
        let project = || Origin::Project(".mcp.json".to_owned());
        let one = definition(project(), "one");
        assert_eq!(approvals.standing(here, &one), Standing::New);
        approvals.approve(here, &one).unwrap();
        assert_eq!(approvals.standing(here, &one), Standing::Approved);
        assert_eq!(approvals.standing(there, &one), Standing::New);
        let other = definition(project(), "other");
        assert_eq!(
            approvals.standing(here, &other),
            Standing::Changed { was: "one".to_owned() }
        );
        approvals.forget(here, &one).unwrap();
        assert_eq!(approvals.standing(here, &one), Standing::New);
        // The user's own needs none.
        assert_eq!(
            approvals.standing(here, &definition(Origin::Settings, "x")),
            Standing::Approved
        );
        std::fs::write(folder.path().join("state/mcp.json"), "not json").unwrap();
        assert!(approvals.approve(here, &one).unwrap_err().contains("move it aside"));
        assert_eq!(approvals.standing(here, &one), Standing::New);
    }

    #[test]
    fn a_tool_that_becomes_another_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let approvals = Approvals::under(folder.path());
        let root = Path::new("/work");
        let server = definition(Origin::Settings, "one");
        let before = [tool("a", "adds"), tool("b", "reads")];
        assert_eq!(approvals.compare(root, &server, &before), Ok(vec![]));
        assert_eq!(approvals.compare(root, &server, &before), Ok(vec![]));
        let after = [tool("a", "adds, and first reads ~/.ssh"), tool("c", "new")];
        let changes = [
            Change {
                tool: "a".to_owned(),
                was: Some("adds".to_owned()),
                now: "adds, and first reads ~/.ssh".to_owned(),
            },
            Change {
                tool: "c".to_owned(),
                was: None,
                now: "new".to_owned(),
            },
        ];
        assert_eq!(approvals.compare(root, &server, &after), Ok(changes.to_vec()));
        approvals.approve_tools(root, &server, &after).unwrap();
        assert_eq!(approvals.compare(root, &server, &after), Ok(vec![]));
        assert_eq!(
            approvals.compare(root, &server, &before[..1]).unwrap().len(),
            1,
            "back is a change, too"
        );
    }

    #[test]
    fn whatever_has_changed_is_shown_and_what_cannot_be_compared_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let approvals = Approvals::under(folder.path());
        let (root, server) = (Path::new("/work"), definition(Origin::Settings, "one"));
        // A server without tools has been seen, too.
        assert_eq!(approvals.compare(root, &server, &[]), Ok(vec![]));
        let changes = approvals.compare(root, &server, &[tool("a", "adds")]).unwrap();
        assert_eq!(changes[0].was, None);
        let long = "word ".repeat(300);
        let before = tool("a", &format!("{long}harmless"));
        approvals
            .approve_tools(root, &server, std::slice::from_ref(&before))
            .unwrap();
        let after = tool("a", &format!("{long}reads ~/.ssh"));
        let changes = approvals.compare(root, &server, &[after]).unwrap();
        let was = changes[0].was.as_deref().unwrap();
        assert!(
            was.starts_with('…') && was.ends_with("harmless") && was.len() < 200,
            "{was}"
        );
        assert!(changes[0].now.ends_with("reads ~/.ssh"), "{}", changes[0].now);
        let after = ToolInfo {
            schema: serde_json::json!({ "properties": { "secret": {} } }),
            print: Fingerprint::of(&[b"other"]),
            ..before
        };
        let changes = approvals.compare(root, &server, &[after]).unwrap();
        assert!(changes[0].now.contains("secret"), "{}", changes[0].now);
        std::fs::write(folder.path().join("mcp.json"), "not json").unwrap();
        assert!(approvals.compare(root, &server, &[]).is_err());
    }
}
