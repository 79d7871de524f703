//! The files of hooks, and the hooks in them.

use std::{
    collections::BTreeSet,
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use regex::RegexBuilder;
use serde_json::{Map, Value};

use super::{ApprovedFile, Dialect, Hook, HookSet, Isolation, Matcher, Point};
use crate::{
    config::{Fingerprint, Settings, shown_path},
    extensions::{
        folders::{HeldFile, Owner, Surroundings},
        plugin::PluginForm,
    },
    os::file,
    shell::NamedPaths,
};

/// A larger file holds no hooks.
const FILE_BYTES: u64 = 1 << 20;
/// More of a script is not compared.
const SCRIPT_BYTES: u64 = 4 << 20;
/// More hooks in a file are left out.
const MOST: usize = 500;
/// Time that a hook has if its file names none.
const TIMEOUT: Duration = Duration::from_mins(1);
/// The longest time that a file may name.
const LONGEST: Duration = Duration::from_mins(10);
/// Number of times that a hook may go on with an answer.
const LOOPS: u32 = 5;
/// Size of a compiled pattern.
const PATTERN_BYTES: usize = 1 << 20;

impl Place {
    /// The folder of the user or a plugin that the file is in.
    fn folder(&self) -> Option<PathBuf> {
        match self.owner {
            Owner::Project => None,
            Owner::User => self.root.join(&self.path).parent().map(Path::to_owned),
            Owner::Plugin => Some(self.root.clone()),
        }
    }

    /// The file, as people see it.
    fn shown(&self) -> String {
        match self.owner {
            Owner::Project => self.path.clone(),
            Owner::User => shown_path(&self.root.join(&self.path)),
            Owner::Plugin => format!("{}{}", self.prefix, self.path),
        }
    }
}

/// A hook in the user's own settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnHook {
    pub name: String,
    pub event: String,
    pub command: String,
    pub matcher: Option<String>,
    pub timeout: Option<Duration>,
    pub fails_closed: bool,
    pub isolation: Isolation,
}

/// A file of hooks.
struct Place {
    dialect: Dialect,
    owner: Owner,
    root: PathBuf,
    path: String,
    /// The folder in which its hooks run.
    directory: PathBuf,
    /// What it says, if that is known; otherwise it is read.
    content: Option<Value>,
    variables: Vec<(String, String)>,
    /// What precedes the path of a plugin's file.
    prefix: String,
}

impl OwnHook {
    /// The hooks of the user's settings.
    pub fn all(settings: &Settings) -> Vec<Self> {
        let own = settings.hooks.iter().map(|(name, hook)| Self {
            name: name.clone(),
            event: hook.event.clone(),
            command: hook.command.clone(),
            matcher: hook.matcher.clone(),
            timeout: Some(hook.timeout),
            fails_closed: hook.fail_closed,
            isolation: match (hook.sandbox, hook.network) {
                (false, _) => Isolation::Free,
                (true, true) => Isolation::Network,
                (true, false) => Isolation::of(settings).unwrap_or_default(),
            },
        });
        own.collect()
    }
}

impl Isolation {
    /// The boundary around hooks of files. `None`: the user has switched hooks off.
    pub fn of(settings: &Settings) -> Option<Self> {
        match settings.agent.hooks.as_str() {
            "off" => None,
            "network" => Some(Self::Network),
            "free" => Some(Self::Free),
            _ => Some(Self::Sandbox),
        }
    }
}

/// Finds the hooks. `may_act` decides on each file of the project by its path and by a hash of the file and of the scripts in the
/// workspace that it names. `isolation` holds for all hooks of files; `own` are those of the user's settings, in the file
/// `settings`. Reads files.
pub fn find_hooks(
    around: &Surroundings,
    (own, settings): (&[OwnHook], &str),
    isolation: Isolation,
    may_act: &dyn Fn(&str, &Fingerprint) -> bool,
) -> HookSet {
    let mut set = HookSet::default();
    for place in places(around) {
        read_file(&place, isolation, may_act, &mut set);
    }
    let directory = around
        .workspace
        .clone()
        .or_else(|| around.home.clone())
        .unwrap_or_default();
    for hook in own {
        let path = format!("{settings} [hooks.{}]", hook.name);
        let Some((point, dialect)) = own_point(&hook.event) else {
            set.unsupported.push((path, hook.event.clone()));
            continue;
        };
        match matcher(hook.matcher.as_deref().unwrap_or_default(), dialect) {
            Ok(matcher) => set.hooks.push(Hook {
                point,
                dialect,
                event: hook.event.clone(),
                command: hook.command.clone(),
                matcher,
                condition: None,
                timeout: hook.timeout.unwrap_or(TIMEOUT).min(LONGEST),
                fails_closed: hook.fails_closed,
                loop_limit: LOOPS,
                is_detached: false,
                is_once: false,
                isolation: hook.isolation,
                path,
                owner: Owner::User,
                directory: directory.clone(),
                folder: None,
                variables: Vec::new(),
            }),
            Err(why) => set.problems.push((path, why)),
        }
    }
    if let Some(root) = &around.workspace {
        // What the user wrote of their own hooks is not meant for a program of somebody else's.
        for hook in set.hooks.iter_mut().filter(|it| it.owner != Owner::Project) {
            if hook.isolation != Isolation::Sandbox && scripts_of(root, &hook.command).iter().any(|it| it.exists) {
                hook.isolation = Isolation::Sandbox;
            }
        }
    }
    set
}

/// The point of an event of the user's settings, and the form that its name chooses.
fn own_point(event: &str) -> Option<(Point, Dialect)> {
    let dialects = [Dialect::Sheaf, Dialect::Cursor, Dialect::Claude];
    dialects.into_iter().find_map(|it| Some((Point::of(it, event)?, it)))
}

fn places(around: &Surroundings) -> Vec<Place> {
    let mut places = Vec::new();
    if let Some(root) = &around.workspace {
        for (dialect, path) in [
            (Dialect::Sheaf, ".sheaf/hooks.json"),
            (Dialect::Cursor, ".cursor/hooks.json"),
            (Dialect::Claude, ".claude/settings.json"),
            (Dialect::Claude, ".claude/settings.local.json"),
        ] {
            places.push(Place {
                dialect,
                owner: Owner::Project,
                root: root.clone(),
                path: path.to_owned(),
                directory: root.clone(),
                content: None,
                variables: Vec::new(),
                prefix: String::new(),
            });
        }
    }
    // Who works in the home folder itself has them already.
    if let Some(home) = around.home.as_ref().filter(|it| around.workspace.as_ref() != Some(it)) {
        for (dialect, path) in [
            (Dialect::Cursor, ".cursor/hooks.json"),
            (Dialect::Claude, ".claude/settings.json"),
        ] {
            let directory = match dialect {
                Dialect::Claude => around.workspace.clone().unwrap_or_else(|| home.clone()),
                Dialect::Sheaf | Dialect::Cursor => home.join(".cursor"),
            };
            places.push(Place {
                dialect,
                owner: Owner::User,
                root: home.clone(),
                path: path.to_owned(),
                directory,
                content: None,
                variables: Vec::new(),
                prefix: String::new(),
            });
        }
    }
    for plugin in &around.plugins {
        let dialect = match plugin.form {
            PluginForm::Cursor => Dialect::Cursor,
            PluginForm::Open | PluginForm::Claude | PluginForm::Bare => Dialect::Claude,
        };
        for hooks in &plugin.hooks {
            places.push(Place {
                dialect,
                owner: Owner::Plugin,
                root: plugin.root.clone(),
                path: hooks.path.clone(),
                directory: around.workspace.clone().unwrap_or_else(|| plugin.root.clone()),
                content: hooks.content.clone(),
                variables: plugin.variables(),
                prefix: plugin.prefix(),
            });
        }
    }
    places
}

fn read_file(place: &Place, isolation: Isolation, may_act: &dyn Fn(&str, &Fingerprint) -> bool, set: &mut HookSet) {
    let shown = place.shown();
    let read = match (&place.content, place.owner) {
        (Some(content), _) => Ok(content.to_string().into_bytes()),
        (None, Owner::Project | Owner::Plugin) => file::read_beneath(&place.root, place.path.as_ref(), FILE_BYTES),
        (None, Owner::User) => {
            let read = file::read(&place.root.join(&place.path), FILE_BYTES);
            read.map_err(|it| {
                if it.is_absent() {
                    ErrorKind::NotFound.into()
                } else {
                    io::Error::other(it)
                }
            })
        }
    };
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return,
        Err(error) => {
            set.problems.push((shown, format!("cannot be read: {error}")));
            return;
        }
    };
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let whole = match serde_json::from_slice::<Value>(text) {
        Ok(whole) => whole,
        Err(error) => {
            // A settings file may hold no hooks at all.
            let is_named = String::from_utf8_lossy(text).contains("hooks");
            if is_named {
                set.problems.push((shown, format!("is not JSON: {error}")));
            }
            return;
        }
    };
    let is_off = place.dialect == Dialect::Claude && whole.get("disableAllHooks") == Some(&Value::Bool(true));
    let Some(events) = whole
        .get("hooks")
        .and_then(Value::as_object)
        .filter(|it| !it.is_empty())
    else {
        // To switch off the user's own guards takes the user.
        if is_off && place.owner == Owner::User {
            set.switched_off_by.get_or_insert(shown);
        }
        return;
    };
    let mut found = HookSet::default();
    for (event, entries) in events {
        let Some(point) = Point::of(place.dialect, event) else {
            found.unsupported.push((shown.clone(), event.clone()));
            continue;
        };
        let Some(entries) = entries.as_array() else {
            found.problems.push((shown.clone(), format!("{event} is no list")));
            continue;
        };
        for entry in entries {
            read_entry(place, &shown, (point, event), entry, isolation, &mut found);
        }
    }
    if place.owner == Owner::Project {
        let scripts = scripts(&place.root, &found.hooks);
        let print = print(&place.root, &bytes, &scripts);
        if !may_act(&shown, &print) {
            set.held.push(HeldFile { path: shown, print });
            return;
        }
        set.approved.push(ApprovedFile {
            root: place.root.clone(),
            path: shown.clone(),
            scripts,
            print,
        });
    }
    if is_off {
        // Its own hooks are off; those of others only if it is the user's.
        if place.owner == Owner::User {
            set.switched_off_by.get_or_insert(shown);
        }
        return;
    }
    found.hooks.truncate(MOST);
    set.hooks.extend(found.hooks);
    set.unsupported.extend(found.unsupported);
    set.problems.extend(found.problems);
}

/// The scripts of the workspace that these hooks name, sorted.
fn scripts(root: &Path, hooks: &[Hook]) -> Vec<String> {
    let named = hooks.iter().flat_map(|it| scripts_of(root, &it.command));
    let paths = named.map(|it| it.path);
    paths.collect::<BTreeSet<String>>().into_iter().collect()
}

/// A hash of a file and of these scripts.
fn print(root: &Path, file: &[u8], scripts: &[String]) -> Fingerprint {
    let content = |path: &String| match file::read_beneath(root, path.as_ref(), SCRIPT_BYTES) {
        Ok(content) => content,
        Err(_) => stamp(&root.join(path)),
    };
    let contents: Vec<Vec<u8>> = scripts.iter().map(content).collect();
    let parts = scripts.iter().zip(&contents);
    let parts = parts.flat_map(|(path, content)| [path.as_bytes(), content.as_slice()]);
    let parts: Vec<&[u8]> = std::iter::once(file).chain(parts).collect();
    Fingerprint::of(&parts)
}

/// Stands for the content of a file that is too large to be read: its size, and when it was changed last, which no program can set.
/// Empty for one that does not exist.
fn stamp(path: &Path) -> Vec<u8> {
    let Ok(found) = std::fs::symlink_metadata(path) else {
        return Vec::new();
    };
    format!(
        "{} {} {}.{}",
        found.ino(),
        found.len(),
        found.ctime(),
        found.ctime_nsec()
    )
    .into_bytes()
}

impl ApprovedFile {
    /// Returns true if the file and its scripts are still what the user approved. Reads them.
    pub fn is_unchanged(&self) -> bool {
        let file = file::read_beneath(&self.root, self.path.as_ref(), FILE_BYTES);
        file.is_ok_and(|it| print(&self.root, &it, &self.scripts) == self.print)
    }
}

/// A file of the workspace that a command names.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NamedFile {
    /// From the root.
    path: String,
    exists: bool,
}

/// The files of the workspace that a command names, also from a folder that it changes to; those that do not exist yet only if they are written
/// as paths.
fn scripts_of(root: &Path, command: &str) -> Vec<NamedFile> {
    let base = root.to_string_lossy();
    let mut line = command.to_owned();
    for name in ["CLAUDE_PROJECT_DIR", "CURSOR_PROJECT_DIR", "SHEAF_PROJECT_DIR"] {
        line = line
            .replace(&format!("${{{name}}}"), &base)
            .replace(&format!("${name}"), &base);
    }
    let NamedPaths { programs, others } = NamedPaths::of(&line);
    let words = line.split(|it: char| it.is_whitespace() || matches!(it, '"' | '\'' | ';' | '&' | '|' | '(' | ')'));
    let words: Vec<&str> = words.filter(|it| !it.is_empty()).collect();
    let entered = words.windows(2).filter(|it| matches!(it[0], "cd" | "pushd"));
    let folders: Vec<PathBuf> = std::iter::once(root.to_owned())
        .chain(entered.map(|it| file::lexical(&root.join(it[1]))))
        .collect();
    let written = programs.into_iter().chain(others);
    let written = written.chain(words.iter().map(|it| (*it).to_owned()));
    let mut found = Vec::new();
    for written in written.collect::<BTreeSet<String>>() {
        for folder in &folders {
            let path = file::lexical(&folder.join(&written));
            let Ok(inner) = path.strip_prefix(root) else { continue };
            let file = NamedFile {
                path: inner.to_string_lossy().into_owned(),
                exists: path.is_file(),
            };
            let is_path = written.contains('/') && !path.exists();
            if (file.exists || is_path) && !found.contains(&file) {
                found.push(file);
            }
        }
    }
    found
}

fn read_entry(
    place: &Place,
    shown: &str,
    (point, event): (Point, &str),
    entry: &Value,
    isolation: Isolation,
    set: &mut HookSet,
) {
    let Some(members) = entry.as_object() else {
        set.problems
            .push((shown.to_owned(), format!("an entry of {event} is no object")));
        return;
    };
    let written = members.get("matcher").and_then(Value::as_str).unwrap_or_default();
    let matcher = match matcher(written, place.dialect) {
        Ok(matcher) => matcher,
        Err(why) => {
            set.problems.push((shown.to_owned(), format!("{event}: {why}")));
            return;
        }
    };
    let handlers: Vec<&Map<String, Value>> = match place.dialect {
        Dialect::Claude => {
            let Some(inner) = members.get("hooks").and_then(Value::as_array) else {
                let why = format!("{event}: an entry has no list of `hooks`");
                set.problems.push((shown.to_owned(), why));
                return;
            };
            inner.iter().filter_map(Value::as_object).collect()
        }
        Dialect::Sheaf | Dialect::Cursor => vec![members],
    };
    for handler in handlers {
        let text = |name: &str| handler.get(name).and_then(Value::as_str);
        let kind = text("type").unwrap_or("command");
        if kind != "command" || text("shell").is_some_and(|it| it != "bash") {
            let kind = if kind == "command" { "powershell" } else { kind };
            set.unsupported
                .push((shown.to_owned(), format!("{event}, type {kind}")));
            continue;
        }
        let Some(command) = text("command").filter(|it| !it.trim().is_empty()) else {
            set.problems
                .push((shown.to_owned(), format!("{event}: `command` is missing")));
            continue;
        };
        let arguments = handler.get("args").and_then(Value::as_array);
        let command = match arguments {
            Some(arguments) => {
                let words = arguments.iter().filter_map(Value::as_str);
                let words: Vec<String> = std::iter::once(command).chain(words).map(quoted).collect();
                words.join(" ")
            }
            None => command.to_owned(),
        };
        let seconds = handler.get("timeout").and_then(Value::as_f64).filter(|it| *it > 0.0);
        let timeout = seconds.and_then(|it| Duration::try_from_secs_f64(it).ok());
        if handler.get("asyncRewake") == Some(&Value::Bool(true)) {
            set.unsupported
                .push((shown.to_owned(), format!("{event}, asyncRewake")));
        }
        let fails_closed = handler.get("failClosed") == Some(&Value::Bool(true)) || text("onFailure") == Some("block");
        let limit = handler.get("loop_limit").and_then(Value::as_u64);
        let flag = |name: &str| handler.get(name) == Some(&Value::Bool(true));
        set.hooks.push(Hook {
            point,
            dialect: place.dialect,
            event: event.to_owned(),
            command,
            matcher: matcher.clone(),
            condition: text("if").map(str::to_owned),
            timeout: timeout.unwrap_or(TIMEOUT).min(LONGEST),
            fails_closed,
            loop_limit: limit.and_then(|it| u32::try_from(it).ok()).unwrap_or(LOOPS).min(LOOPS),
            is_detached: flag("async") || flag("asyncRewake"),
            is_once: flag("once"),
            isolation,
            path: shown.to_owned(),
            owner: place.owner,
            directory: place.directory.clone(),
            folder: place.folder(),
            variables: place.variables.clone(),
        });
    }
}

/// A word for bash, with `${NAME}` still filled in.
fn quoted(word: &str) -> String {
    let mut quoted = String::from("\"");
    for it in word.chars() {
        if matches!(it, '"' | '\\' | '`') {
            quoted.push('\\');
        }
        quoted.push(it);
    }
    quoted.push('"');
    quoted
}

/// What a matcher fits; `None`: everything. Fails if it is no pattern.
fn matcher(written: &str, dialect: Dialect) -> Result<Option<Matcher>, String> {
    if matches!(written, "" | "*") {
        return Ok(None);
    }
    let is_name = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '|');
    if dialect == Dialect::Claude && written.chars().all(is_name) {
        return Ok(Some(Matcher::Names(written.split('|').map(str::to_owned).collect())));
    }
    let built = RegexBuilder::new(written).size_limit(PATTERN_BYTES).build();
    built.map(|it| Some(Matcher::Pattern(it))).map_err(|error| {
        let last = error.to_string();
        let last = last
            .lines()
            .last()
            .unwrap_or_default()
            .trim_start_matches("error: ")
            .to_owned();
        format!("the matcher `{written}` is no pattern: {last}")
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::{
        super::{Occasion, ToolCall},
        *,
    };

    const CURSOR: &str = r#"{"version":1,"hooks":{
        "beforeShellExecution":[{"command":".cursor/hooks/net.sh","matcher":"curl|wget","timeout":30,"failClosed":true}],
        "stop":[{"command":"./again.sh","loop_limit":2}],
        "afterAgentThought":[{"command":"x"}],
        "preToolUse":[{"type":"prompt","prompt":"is it safe?"},{"command":""},{"command":"y","matcher":"("}]}}"#;
    const CLAUDE: &str = r#"{"model":"x","hooks":{"PreToolUse":[{"matcher":"Edit|Write","hooks":[
        {"type":"command","command":"\"$CLAUDE_PROJECT_DIR\"/.claude/check.sh","timeout":10,"if":"Edit(*.rs)"},
        {"type":"command","command":"node","args":["a b.js","$X"],"onFailure":"block"},
        {"type":"http","url":"http://x"}]}],
        "Stop":[{"command":"x"},{"hooks":[{"type":"command","command":"z","asyncRewake":true}]}],
        "SessionEnd":"x",
        "SubagentStop":[{"hooks":[{"type":"command","command":"x"}]}],
        "TeammateIdle":[{"hooks":[{"type":"command","command":"x"}]}],
        "WorktreeCreate":{"command":"x"}}}"#;

    fn find(around: &Surroundings, may_act: &dyn Fn(&str, &Fingerprint) -> bool) -> HookSet {
        find_hooks(around, (&[], "~/config.toml"), Isolation::Sandbox, may_act)
    }

    #[test]
    fn a_pattern_fits_anywhere_in_a_name_and_a_name_as_a_whole() {
        for (written, name, fits) in [
            ("Edit", "Edit", true),
            ("Edit", "MultiEdit", false),
            ("Edit|Write", "Write", true),
            ("^Notebook", "NotebookEdit", true),
            ("Edit$", "NotebookEdit", true),
            ("mcp__memory__.*", "mcp__memory__create", true),
            ("^Edit", "NotebookEdit", false),
        ] {
            let matcher = matcher(written, Dialect::Claude)
                .unwrap()
                .expect("it fits not everything");
            assert_eq!(matcher.fits(&[name.to_owned()]), fits, "{written} {name}");
        }
    }

    #[test]
    fn hooks_of_both_programs_are_read() {
        let top = tempfile::tempdir().unwrap();
        let around = Surroundings::test(
            top.path(),
            &[
                ("work/.cursor/hooks.json", CURSOR),
                ("work/.claude/settings.json", CLAUDE),
            ],
        );
        let set = find(&around, &|_, _| true);
        let told: Vec<String> = set
            .hooks
            .iter()
            .map(|it| {
                let closed = if it.fails_closed { " closed" } else { "" };
                format!(
                    "{} {} {}s {}{closed}",
                    it.point.name(),
                    it.command,
                    it.timeout.as_secs(),
                    it.loop_limit
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                "shell_before .cursor/hooks/net.sh 30s 5 closed",
                "stop ./again.sh 60s 2",
                "tool_before \"$CLAUDE_PROJECT_DIR\"/.claude/check.sh 10s 5",
                "tool_before \"node\" \"a b.js\" \"$X\" 60s 5 closed",
                "stop z 60s 5",
            ]
        );
        let pairs = |list: &[(String, String)]| -> Vec<String> {
            list.iter().map(|it| format!("{}: {}", it.0, it.1)).collect()
        };
        assert_eq!(
            pairs(&set.unsupported),
            [
                ".cursor/hooks.json: afterAgentThought",
                ".cursor/hooks.json: preToolUse, type prompt",
                ".claude/settings.json: PreToolUse, type http",
                ".claude/settings.json: Stop, asyncRewake",
                ".claude/settings.json: SubagentStop",
                ".claude/settings.json: TeammateIdle",
                ".claude/settings.json: WorktreeCreate",
            ]
        );
        assert_eq!(
            pairs(&set.problems),
            [
                ".cursor/hooks.json: preToolUse: `command` is missing",
                ".cursor/hooks.json: preToolUse: the matcher `(` is no pattern: unclosed group",
                ".claude/settings.json: Stop: an entry has no list of `hooks`",
                ".claude/settings.json: SessionEnd is no list",
            ]
        );
    }

    #[test]
    fn a_file_of_a_project_is_known_by_its_content_and_by_its_scripts() {
        let top = tempfile::tempdir().unwrap();
        let around = Surroundings::test(
            top.path(),
            &[
                ("work/.cursor/hooks.json", CURSOR),
                ("work/.claude/settings.json", CLAUDE),
                ("work/.cursor/hooks/net.sh", "exit 0"),
                ("work/.claude/check.sh", "exit 0"),
                ("work/.claude/settings.local.json", r#"{"permissions":{}}"#),
                ("home/.cursor/hooks.json", r#"{"hooks":{"stop":[{"command":"mine"}]}}"#),
            ],
        );
        let prints = || -> Vec<(String, Fingerprint)> {
            let held = find(&around, &|_, _| false).held;
            held.into_iter().map(|it| (it.path, it.print)).collect()
        };
        let before = prints();
        assert_eq!(before.len(), 2, "a file without hooks asks nothing: {before:?}");
        assert_eq!(find(&around, &|_, _| false).hooks.len(), 1, "the user's own");
        assert_eq!(before, prints());
        std::fs::write(top.path().join("work/.claude/check.sh"), "exit 2").unwrap();
        let after = prints();
        assert_eq!((before[0] == after[0], before[1] == after[1]), (true, false));
        let approved = find(&around, &|_, _| true).approved;
        assert!(approved.len() == 2 && approved.iter().all(ApprovedFile::is_unchanged));
        std::fs::write(top.path().join("work/.cursor/hooks/net.sh"), "exit 2").unwrap();
        assert_ne!(prints()[0], after[0]);
        let unchanged: Vec<bool> = approved.iter().map(ApprovedFile::is_unchanged).collect();
        assert_eq!(unchanged, [false, true]);
    }

    #[test]
    fn scripts_are_known_wherever_a_command_goes_and_before_they_exist() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path();
        std::fs::create_dir_all(root.join("tools")).unwrap();
        std::fs::write(root.join("tools/check.sh"), "exit 0").unwrap();
        let names = |command: &str| -> Vec<(String, bool)> {
            let found = scripts_of(root, command);
            found.into_iter().map(|it| (it.path, it.exists)).collect()
        };
        let (there, missing) = (("tools/check.sh".to_owned(), true), ("tools/new.sh".to_owned(), false));
        for (command, expected) in [
            ("./tools/check.sh", vec![there.clone()]),
            ("bash tools/../tools/check.sh", vec![there.clone()]),
            ("cd tools && bash check.sh", vec![there.clone()]),
            ("\"$CLAUDE_PROJECT_DIR\"/tools/check.sh --all", vec![there]),
            ("./tools/new.sh", vec![missing]),
            ("cargo fmt --check", Vec::new()),
            ("/usr/bin/true", Vec::new()),
        ] {
            let found = names(command);
            assert!(expected.iter().all(|it| found.contains(it)), "{command}: {found:?}");
            assert_eq!(found.is_empty(), expected.is_empty(), "{command}: {found:?}");
        }
        let print = || print(root, b"", &["tools/large".to_owned()]);
        let large = |byte: u8| {
            let bytes = vec![byte; usize::try_from(SCRIPT_BYTES).unwrap() + 1];
            std::fs::write(root.join("tools/large"), bytes).unwrap();
        };
        let missing = print();
        large(1);
        let before = print();
        large(2);
        assert!(missing != before && before != print());
    }

    #[test]
    fn a_program_of_the_workspace_is_never_run_outside_the_sandbox() {
        let top = tempfile::tempdir().unwrap();
        let around = Surroundings::test(top.path(), &[("work/check.sh", "exit 0")]);
        let own = |command: &str| OwnHook {
            name: command.into(),
            event: "tool_before".into(),
            command: command.into(),
            isolation: Isolation::Free,
            ..OwnHook::default()
        };
        let all = [own("./check.sh"), own("notify-send hello")];
        let set = find_hooks(&around, (&all, "config.toml"), Isolation::Sandbox, &|_, _| true);
        let isolations: Vec<Isolation> = set.hooks.iter().map(|it| it.isolation).collect();
        assert_eq!(isolations, [Isolation::Sandbox, Isolation::Free]);
    }

    #[test]
    fn broken_files_are_named_and_only_the_user_switches_hooks_off() {
        let top = tempfile::tempdir().unwrap();
        let around = Surroundings::test(
            top.path(),
            &[
                ("work/.sheaf/hooks.json", "{\"hooks\": "),
                ("work/.claude/settings.json", r#"{"disableAllHooks":true}"#),
                (
                    "home/.cursor/hooks.json",
                    r#"{"hooks":{"stop":[{"command":"mine"}, 7]}}"#,
                ),
            ],
        );
        let set = find(&around, &|_, _| true);
        assert_eq!(set.hooks.len(), 1);
        assert_eq!(set.switched_off_by, None);
        assert!(set.problems[0].1.starts_with("is not JSON: "), "{:?}", set.problems);
        assert!(
            set.problems[1].1.contains("an entry of stop is no object"),
            "{:?}",
            set.problems
        );
        std::fs::create_dir_all(top.path().join("home/.claude")).unwrap();
        std::fs::write(
            top.path().join("home/.claude/settings.json"),
            r#"{"disableAllHooks":true}"#,
        )
        .unwrap();
        let set = find(&around, &|_, _| true);
        assert!(set.switched_off_by.is_some() && !set.has(Point::Stop));
    }

    #[test]
    fn hooks_of_the_settings_have_the_form_that_their_event_names() {
        let top = tempfile::tempdir().unwrap();
        let around = Surroundings::test(top.path(), &[]);
        let own = |event: &str| OwnHook {
            name: "guard".into(),
            event: event.into(),
            command: "x".into(),
            isolation: Isolation::Free,
            ..OwnHook::default()
        };
        let all = ["tool_before", "preToolUse", "PreToolUse", "subagent_start", "nonsense"].map(own);
        let set = find_hooks(&around, (&all, "config.toml"), Isolation::Sandbox, &|_, _| false);
        let forms: Vec<_> = set.hooks.iter().map(|it| (it.dialect, it.isolation)).collect();
        let free = |it| (it, Isolation::Free);
        // Our own names come first, and Cursor's are in the same form.
        assert_eq!(
            forms,
            [free(Dialect::Sheaf), free(Dialect::Sheaf), free(Dialect::Claude)]
        );
        assert_eq!(
            set.unsupported[1],
            ("config.toml [hooks.guard]".into(), "nonsense".into())
        );
    }

    #[test]
    fn a_matcher_decides_what_a_hook_is_called_for() {
        let call = |name: &str, arguments: Value| {
            Occasion::ToolBefore(ToolCall {
                name: name.to_owned(),
                arguments: arguments.as_object().cloned().unwrap_or_default(),
                root: "/w".to_owned(),
                ..ToolCall::default()
            })
        };
        let edit = call(
            "search_replace",
            serde_json::json!({ "file_path": "src/a.rs", "old_string": "a", "new_string": "b" }),
        );
        let shell = call("run_terminal_cmd", serde_json::json!({ "command": "git push origin" }));
        let is_called = |event: &str, matcher: &str, condition: Option<&str>, occasion: &Occasion| {
            let (point, dialect) = own_point(event).unwrap();
            let dialect = if event.starts_with(char::is_lowercase) {
                dialect
            } else {
                Dialect::Claude
            };
            let hook = Hook {
                point,
                dialect,
                event: event.into(),
                command: "x".into(),
                matcher: super::matcher(matcher, dialect).unwrap(),
                condition: condition.map(str::to_owned),
                timeout: TIMEOUT,
                fails_closed: false,
                loop_limit: LOOPS,
                is_detached: false,
                is_once: false,
                isolation: Isolation::Sandbox,
                path: String::new(),
                owner: Owner::User,
                directory: PathBuf::new(),
                folder: None,
                variables: Vec::new(),
            };
            let set = HookSet {
                hooks: vec![hook.clone(), hook],
                ..HookSet::default()
            };
            let count = set.at(occasion).len();
            assert!(count < 2, "the same hook is called once");
            count == 1
        };
        for (event, matcher, condition, occasion, want) in [
            ("PreToolUse", "", None, &edit, true),
            ("PreToolUse", "*", None, &edit, true),
            ("PreToolUse", "Edit|Write", None, &edit, true),
            ("PreToolUse", "Edi", None, &edit, false),
            ("PreToolUse", "Ed.*", None, &edit, true),
            ("PreToolUse", "Bash", None, &shell, true),
            ("PreToolUse", "Bash", Some("Bash(git push:*)"), &shell, true),
            ("PreToolUse", "Bash", Some("Bash(git push *)"), &shell, true),
            ("PreToolUse", "Bash", Some("Bash(git pull:*)"), &shell, false),
            ("PreToolUse", "Edit", Some("Edit(*.rs)"), &edit, true),
            ("PreToolUse", "Edit", Some("Edit(*.py)"), &edit, false),
            ("PostToolUse", "", None, &edit, false),
            ("preToolUse", "Shell", None, &shell, true),
            ("preToolUse", "Write", None, &edit, true),
            ("tool_before", "^Read$", None, &shell, false),
        ] {
            assert_eq!(
                is_called(event, matcher, condition, occasion),
                want,
                "{event} {matcher} {condition:?}"
            );
        }
    }
}
