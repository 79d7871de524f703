//! Reads the layers of settings, weakest first, and merges them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    Environment, KEYS, Key, KnownService, Layer, Location, Origin, Paths, Problem, Settings, SourceText, secret,
    settings::{FOREIGN_VARIABLES, NON_SETTING_VARIABLES},
    suggestion,
    value::{ConfiguredRule, InvalidValue, Slot, Value, ValueKind},
};
use crate::{os::file, text::WordList};

/// Settings from command-line flags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLineSettings {
    pub gateway: Option<String>,
    pub provider: Option<String>,
    pub model: Option<String>,
    pub mode: Option<String>,
    pub theme: Option<String>,
    pub listen: Option<String>,
    pub allow_host: Vec<String>,
    pub allow_origin: Vec<String>,
    /// Values of `--set`: any key as `path=value`.
    pub set: Vec<String>,
}

impl CommandLineSettings {
    /// Returns path, value and flag of each option that was given.
    fn values(&self) -> Vec<(&'static str, String, &'static str)> {
        let given = [
            ("gateway.url", &self.gateway, "--gateway"),
            ("provider", &self.provider, "--provider"),
            ("model", &self.model, "--model"),
            ("mode", &self.mode, "--mode"),
            ("theme", &self.theme, "--theme"),
            ("serve.listen", &self.listen, "--listen"),
        ];
        let given = given
            .into_iter()
            .filter_map(|(path, value, flag)| Some((path, value.clone()?, flag)));
        let lists = [
            ("serve.allow_host", &self.allow_host, "--allow-host"),
            ("serve.allow_origin", &self.allow_origin, "--allow-origin"),
        ];
        let lists = lists.into_iter().filter(|it| !it.1.is_empty());
        given
            .chain(lists.map(|(path, values, flag)| (path, values.join(","), flag)))
            .collect()
    }
}

/// A file of settings, read but not parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsFile {
    pub path: PathBuf,
    pub text: String,
    /// True if others than its owner can read it. Secrets in it are then ignored.
    pub is_readable_by_others: bool,
}

/// Maximum size of a settings file, in bytes.
const LIMIT_BYTES: u64 = 1024 * 1024;

impl SettingsFile {
    /// Returns a file with this text that only its owner can read.
    #[cfg(test)]
    pub fn of_user(name: &str, text: &str) -> Self {
        Self {
            path: PathBuf::from(name),
            text: text.to_owned(),
            is_readable_by_others: false,
        }
    }

    /// Reads a workspace's settings. `None` if there are none, or if the file lies outside the workspace.
    ///
    /// The caller checks that the workspace is trusted.
    pub fn of_project(workspace: &Path) -> Option<Self> {
        let path = Paths::of_project(workspace);
        let inner = path.strip_prefix(workspace).ok()?;
        let bytes = file::read_beneath(workspace, inner, LIMIT_BYTES).ok()?;
        Some(Self {
            text: String::from_utf8(bytes).ok()?,
            path,
            // A repository must hold no secret of the user's.
            is_readable_by_others: true,
        })
    }

    /// Reads a file; `None` if it does not exist. Errors: it is too large, not UTF-8, or cannot be read.
    pub fn read(path: &Path) -> Result<Option<Self>, Problem> {
        let problem = |message: String| {
            let place = Location::File {
                path: path.to_owned(),
                line: 0,
                column: 0,
            };
            Problem::new(place, message)
        };
        let bytes = match file::read(path, LIMIT_BYTES) {
            Ok(it) => it,
            Err(error) if error.is_absent() => return Ok(None),
            Err(error) => {
                let cause = std::error::Error::source(&error).map(|it| format!(": {it}"));
                return Err(problem(format!("{error}{}", cause.unwrap_or_default())));
            }
        };
        let text = String::from_utf8(bytes).map_err(|_| problem("the settings are not UTF-8 text".to_owned()))?;
        Ok(Some(Self {
            path: path.to_owned(),
            text,
            is_readable_by_others: secret::is_readable_by_others(path),
        }))
    }
}

/// Reads the user's file and merges all layers. `project` is passed only if the workspace is trusted.
pub fn load(
    paths: &Paths,
    project: Option<&SettingsFile>,
    environment: &Environment,
    options: &CommandLineSettings,
) -> (Settings, Vec<Problem>) {
    let mut problems = Vec::new();
    let user = SettingsFile::read(&paths.settings());
    let user = user.unwrap_or_else(|problem| {
        problems.push(problem.open());
        None
    });
    let (mut settings, mut found) = merge(user.as_ref(), project, environment, options);
    if !problems.is_empty() {
        settings.approvals.deny.push(ConfiguredRule::unreadable());
    }
    problems.append(&mut found);
    (settings, problems)
}

/// Merges layers that have been read. Problems come in the order of the layers, those of a file by line.
pub fn merge(
    user: Option<&SettingsFile>,
    project: Option<&SettingsFile>,
    environment: &Environment,
    options: &CommandLineSettings,
) -> (Settings, Vec<Problem>) {
    let mut merger = LayerMerger {
        settings: Settings::default(),
        problems: Vec::new(),
        home: environment.get("HOME").map(PathBuf::from),
        keys_given: BTreeMap::new(),
    };
    if let Some(file) = user {
        merger.file(file, Layer::User);
    }
    if let Some(file) = project {
        merger.file(file, Layer::Project);
    }
    merger.environment(environment);
    merger.options(options);
    merger.complete(environment);
    if merger.problems.iter().any(|it| it.leaves_open) {
        merger.settings.approvals.deny.push(ConfiguredRule::unreadable());
    }
    (merger.settings, merger.problems)
}

/// Returns true if a value of this key forbids, asks or hides something, so that its default may be less.
fn restricts(key: &str) -> bool {
    matches!(
        key,
        "approvals.deny" | "approvals.ask" | "approvals.run" | "context.hidden"
    ) || key.starts_with("tools.")
}

/// Returns true if the name of an unknown key is that of one that forbids, asks or hides something, or nearly so.
fn may_mean_restriction(name: &str) -> bool {
    let names = KEYS.iter().filter(|it| restricts(&it.path) && !it.path.contains('*'));
    let mut names = names.filter_map(|it| it.parts().next_back());
    names.clone().any(|it| it == name) || suggestion(name, names.by_ref()).is_some()
}

struct LayerMerger {
    settings: Settings,
    problems: Vec<Problem>,
    home: Option<PathBuf>,
    /// By the path of a table that takes a key: the layer that set one last, and its member (`key_file`).
    keys_given: BTreeMap<String, (Layer, &'static str)>,
}

impl LayerMerger {
    fn file(&mut self, file: &SettingsFile, layer: Layer) {
        let source = SourceText {
            path: &file.path,
            text: &file.text,
        };
        let (document, errors) = DeTable::parse_recoverable(&file.text);
        let before = self.problems.len();
        for error in errors {
            let place = error.span().map_or_else(|| source.whole(), |it| source.place(it));
            let problem = Problem::new(place, error.message());
            // What stands behind it is read as well as can be; a rule may be missing. A project's only add to the user's.
            self.problems.push(match layer {
                Layer::Project => problem,
                _ => problem.open(),
            });
        }
        self.table(
            document.get_ref(),
            &mut Vec::new(),
            &source,
            file.is_readable_by_others,
            layer,
        );
        self.problems[before..].sort();
    }

    fn table(
        &mut self,
        table: &DeTable<'_>,
        path: &mut Vec<String>,
        source: &SourceText<'_>,
        is_readable_by_others: bool,
        layer: Layer,
    ) {
        for (name, value) in table {
            path.push(name.get_ref().clone().into_owned());
            if let Some(key) = Key::at(path) {
                self.entry(key, path, (name, value), source, is_readable_by_others, layer);
            } else if !has_keys_below(path) {
                let problem = Problem::new(source.place(name.span()), format!("unknown key `{}`", path.join(".")));
                let problem = Problem {
                    hint: suggest_key(path),
                    ..problem
                };
                let is_rule = |it: &str| it.contains("approvals");
                let is_open = is_rule(&path.join("."))
                    || problem.hint.as_deref().is_some_and(is_rule)
                    || may_mean_restriction(name.get_ref())
                    || value
                        .get_ref()
                        .as_table()
                        .is_some_and(|it| it.keys().any(|it| may_mean_restriction(it.get_ref())));
                self.problems.push(if is_open && layer != Layer::Project {
                    problem.open()
                } else {
                    problem
                });
            } else if let Some(inner) = value.get_ref().as_table() {
                self.table(inner, path, source, is_readable_by_others, layer);
            } else {
                let message = format!("`{}` is a table, not a value", path.join("."));
                let hint = format!("write [{}] on its own line, its keys below", path.join("."));
                self.problems
                    .push(Problem::new(source.place(value.span()), message).hint(hint));
            }
            path.pop();
        }
    }

    fn entry(
        &mut self,
        key: &'static Key,
        path: &[String],
        (name, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>),
        source: &SourceText<'_>,
        is_readable_by_others: bool,
        layer: Layer,
    ) {
        let place = source.place(value.span());
        if layer == Layer::Project && !key.in_project {
            let message = format!("a project may not set `{}`", path.join("."));
            let problem = Problem::new(source.place(name.span()), message);
            self.problems.push(problem.hint("it belongs into your own config.toml"));
            return;
        }
        if is_readable_by_others && holds_secret(key, value.get_ref()) {
            let message = format!("`{}` is not used: others can read this file", path.join("."));
            let hint = format!("chmod 600 {}", source.path.display());
            self.problems.push(Problem::new(place, message).hint(hint));
            return;
        }
        let value = key.kind.read(value.get_ref());
        self.put(key, path, value, place, layer);
    }

    /// Stores a value, or records the problem with it.
    fn put(
        &mut self,
        key: &'static Key,
        path: &[String],
        value: Result<Value, InvalidValue>,
        place: Location,
        layer: Layer,
    ) {
        let written = path.join(".");
        let value = match value {
            Ok(it) => it,
            Err(invalid) => {
                let problem = Problem::new(place, format!("`{written}`: {}", invalid.message));
                let problem = Problem {
                    hint: invalid.hint,
                    ..problem
                };
                self.problems.push(if restricts(&written) && layer != Layer::Project {
                    problem.open()
                } else {
                    problem
                });
                return;
            }
        };
        if key.gives_key() {
            let owner = path.split_last().map(|it| it.1.join(".")).unwrap_or_default();
            let last = key.parts().next_back().unwrap_or_default();
            match self.keys_given.insert(owner.clone(), (layer, last)) {
                Some((before, other)) if before == layer && other != last => {
                    let message = format!("`{written}` and `{owner}.{other}` both say where the key comes from");
                    self.problems
                        .push(Problem::new(place, message).hint("keep one of them"));
                    self.keys_given.insert(owner, (before, other));
                    return;
                }
                Some((_, other)) => {
                    // A stronger layer replaces the weaker layer's way to get a key.
                    self.settings.origins.remove(&format!("{owner}.{other}"));
                }
                None => {}
            }
        }
        let name = key.parts().position(|it| it == "*").and_then(|it| path.get(it));
        let name = name.map(String::as_str).unwrap_or_default();
        if layer == Layer::Project && key.tightens {
            self.tighten(key, written, value, place);
            return;
        }
        let fits = (key.slot)(&mut self.settings, name).put(value, self.home.as_deref());
        debug_assert!(fits, "the slot of {} takes its kind", key.path);
        let origin = Origin {
            layer,
            place: Some(place),
        };
        self.settings.origins.insert(written, origin);
    }

    /// Stores a project's value of a key that it may only make stricter.
    fn tighten(&mut self, key: &'static Key, path: String, value: Value, place: Location) {
        match (key.kind, (key.slot)(&mut self.settings, ""), value) {
            (ValueKind::Rules, Slot::Rules(slot), Value::Rules(more)) => slot.extend(more),
            // The words are ordered, the strictest first.
            (ValueKind::Word(words), Slot::Text(slot), Value::Text(word)) => {
                let at = |word: &str| words.iter().position(|it| *it == word);
                if at(&word) > at(slot) {
                    let message = format!("a project may not loosen `{path}` from `{slot}` to `{word}`");
                    self.problems
                        .push(Problem::new(place, message).hint("it belongs into your own config.toml"));
                    return;
                }
                *slot = word;
            }
            _ => debug_assert!(false, "{} cannot be tightened", key.path),
        }
        let origin = Origin {
            layer: Layer::Project,
            place: Some(place),
        };
        self.settings.origins.insert(path, origin);
    }

    fn environment(&mut self, environment: &Environment) {
        let layer = Layer::Environment;
        if environment.get("NO_COLOR").is_some() {
            self.settings.color = false;
            let origin = Origin {
                layer,
                place: Some(Location::Variable("NO_COLOR".to_owned())),
            };
            self.settings.origins.insert("color".to_owned(), origin);
        }
        let own = KEYS
            .iter()
            .filter_map(|key| Some((key.variable.as_deref()?, key.path.as_str())));
        for (variable, path) in FOREIGN_VARIABLES.iter().copied().chain(own) {
            let Some(text) = environment.get(variable) else {
                continue;
            };
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            let key = Key::at(&path).expect("the tables of variables name keys, as a test holds");
            self.put(
                key,
                &path,
                key.kind.parse(text),
                Location::Variable(variable.to_owned()),
                layer,
            );
        }
        let known = || {
            KEYS.iter()
                .filter_map(|it| it.variable.as_deref())
                .chain(NON_SETTING_VARIABLES.iter().copied())
        };
        let own = environment
            .0
            .keys()
            .filter(|it| it.starts_with("SHEAF_") && !it.starts_with("SHEAF_TEST_"));
        for name in own.filter(|name| !known().any(|it| it == *name)) {
            let problem = Problem::new(Location::Variable(name.clone()), "unknown setting");
            self.problems.push(Problem {
                hint: suggestion(name, known()),
                ..problem
            });
        }
    }

    fn options(&mut self, options: &CommandLineSettings) {
        for (path, text, flag) in options.values() {
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            let key = Key::at(&path).expect("the options name keys, as a test holds");
            self.put(
                key,
                &path,
                key.kind.parse(&text),
                Location::Flag(flag.to_owned()),
                Layer::Flag,
            );
        }
        for text in &options.set {
            let place = Location::Flag("--set".to_owned());
            let Some((path, value)) = text.split_once('=') else {
                let problem = Problem::new(place, format!("`{text}` sets nothing"));
                self.problems.push(problem.hint("--set key=value"));
                continue;
            };
            let path = split_path(path);
            if let Some(key) = Key::at(&path) {
                self.put(key, &path, key.kind.parse(value.trim()), place, Layer::Flag);
            } else {
                let problem = Problem::new(place, format!("unknown key `{}`", path.join(".")));
                self.problems.push(Problem {
                    hint: suggest_key(&path),
                    ..problem
                });
            }
        }
    }

    /// Fills in the properties of known services, and checks the result.
    fn complete(&mut self, environment: &Environment) {
        if let Some(name) = self.settings.provider.clone() {
            let configured = self.settings.providers.contains_key(&name);
            if !configured && KnownService::named(&name).is_some() {
                self.settings.providers.entry(name).or_default();
            } else if !configured {
                let own = self.settings.providers.keys().map(String::as_str);
                let known = super::SERVICES.iter().map(|it| it.name);
                let hint = suggestion(&name, own.chain(known))
                    .unwrap_or_else(|| format!("describe it under [providers.{name}]"));
                let place = self.settings.origin("provider").place.clone();
                if let Some(place) = place {
                    let message = format!("unknown provider `{name}`");
                    self.problems.push(Problem::new(place, message).hint(hint));
                }
                self.settings.provider = None;
                self.settings.origins.remove("provider");
            }
        }
        let Settings {
            providers,
            gateway,
            origins,
            net,
            ..
        } = &mut self.settings;
        gateway.connection.retry_as(net);
        for (name, provider) in providers {
            provider.connection.retry_as(net);
            let known = KnownService::named(name);
            if let Some(known) = known
                && !origins.contains_key(&format!("providers.{name}.kind"))
            {
                let own = provider.connection.url.as_deref();
                known
                    .kind_at(own.unwrap_or(known.base_url))
                    .clone_into(&mut provider.kind);
            }
            // A key belongs to a service's own address: for another address none is taken from the environment unasked.
            if let Some(known) = known
                && !provider.connection.has_url()
            {
                provider.connection.url = Some(known.url(environment));
                if !provider.key.is_some() {
                    provider.key = known.key();
                }
            }
            let path = format!("providers.{name}");
            let place = |it: &str| origins.get(&format!("{path}.{it}"))?.place.clone();
            let any = WordList("base_url kind model api_key api_key_env key_command key_file keyring headers");
            let Some(anywhere) = place("base_url").or_else(|| any.iter().find_map(place)) else {
                continue;
            };
            match provider.connection.url() {
                Ok(_) => {}
                Err(super::AddressError::Missing) => {
                    let problem = Problem::new(anywhere, format!("`{path}` has no base_url"));
                    let known = super::SERVICES.iter().map(|it| it.name);
                    let hint = suggestion(name, known).map(|it| format!("{it} if not, add its address"));
                    self.problems.push(Problem {
                        hint: Some(hint.unwrap_or_else(|| "add its address, up to /v1".to_owned())),
                        ..problem
                    });
                }
                Err(refused) => self.problems.push(refusal(anywhere, &refused)),
            }
        }
        let place = origins.get("gateway.url").and_then(|it| it.place.clone());
        if let (Some(place), Err(refused)) = (place, gateway.connection.url()) {
            self.problems.push(refusal(place, &refused));
        }
    }
}

/// Splits an error's text: its second line is the hint.
fn refusal(place: Location, refused: &super::AddressError) -> Problem {
    let text = refused.to_string();
    match text.split_once("\n  ") {
        Some((message, hint)) => Problem::new(place, message).hint(hint),
        None => Problem::new(place, text),
    }
}

/// Returns true if a value is a secret or probably contains one.
fn holds_secret(key: &Key, value: &DeValue<'_>) -> bool {
    match key.kind {
        ValueKind::Secret => true,
        ValueKind::Proxy => value.as_str().is_some_and(|it| it.contains('@')),
        // Many headers are harmless; names like these carry keys.
        ValueKind::Headers | ValueKind::Variables => value.as_table().is_some_and(|it| {
            it.keys().any(|name| {
                let name = name.get_ref().to_ascii_lowercase();
                ["auth", "key", "token", "secret", "cookie"]
                    .iter()
                    .any(|it| name.contains(it))
            })
        }),
        ValueKind::Text
        | ValueKind::Word(_)
        | ValueKind::Flag
        | ValueKind::Whole { .. }
        | ValueKind::Number
        | ValueKind::Duration
        | ValueKind::Grace
        | ValueKind::Url
        | ValueKind::Path
        | ValueKind::List
        | ValueKind::Words(_)
        | ValueKind::Rules
        | ValueKind::Command => false,
    }
}

/// Returns true if there are keys below `path`.
fn has_keys_below(path: &[String]) -> bool {
    Key::beginning_like(path).any(|key| {
        let mut parts = key.parts();
        path.iter()
            .all(|it| parts.next().is_some_and(|part| part == "*" || part == it))
            && parts.next().is_some()
    })
}

/// Returns a hint for a path that is no key: a sibling, or the same name in another table.
pub(super) fn suggest_key(path: &[String]) -> Option<String> {
    let (last, above) = path.split_last()?;
    let siblings = KEYS.iter().filter_map(|key| {
        let mut parts = key.parts();
        let is_loopback = above
            .iter()
            .all(|it| parts.next().is_some_and(|part| part == "*" || part == it));
        parts.next().filter(|part| is_loopback && *part != "*")
    });
    suggestion(last, siblings).or_else(|| {
        // The right name in the wrong table.
        let elsewhere = KEYS.iter().find(|key| key.parts().next_back() == Some(last));
        elsewhere.map(|it| format!("did you mean `{}`?", it.path.replace('*', "<name>")))
    })
}

/// Splits a dotted path into its parts, which may be quoted.
pub(super) fn split_path(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quote = None;
    for it in text.trim().chars() {
        match (quote, it) {
            (Some(open), it) if open == it => quote = None,
            (None, '"' | '\'') => quote = Some(it),
            (None, '.') => parts.push(String::new()),
            (Some(_) | None, it) => {
                if let Some(part) = parts.last_mut() {
                    part.push(it);
                }
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests;
