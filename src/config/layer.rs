//! The layers, weakest first, and how they become one.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    KEYS, Key, Known, Paths, Place, Problem, Settings, Source,
    key::{FOREIGN, OTHER},
    secret, suggestion,
    value::{Kind, Slot, Unfit, Value},
};
use crate::os::file;

/// Who said it; the later one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    Default,
    User,
    Project,
    Environment,
    Flag,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub layer: Layer,
    /// None for a default.
    pub place: Option<Place>,
}

impl Origin {
    pub(super) const DEFAULT: Self = Self {
        layer: Layer::Default,
        place: None,
    };
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            None => f.write_str("default"),
            Some(place) => place.fmt(f),
        }
    }
}

/// The environment of the process, as far as it is text, or one that a test made up.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    pub fn of_process() -> Self {
        let pairs = std::env::vars_os();
        Self(
            pairs
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
        )
    }

    /// The value of a variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|it| !it.is_empty())
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Self(
            pairs
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}

impl std::fmt::Debug for Environment {
    /// Names only: values may be keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// What the command line sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub gateway: Option<String>,
    pub provider: Option<String>,
    pub model: Option<String>,
    pub mode: Option<String>,
    pub theme: Option<String>,
    pub listen: Option<String>,
    pub allow_host: Vec<String>,
    pub allow_origin: Vec<String>,
    /// Any key as `path=value`.
    pub set: Vec<String>,
}

impl Options {
    /// Path, value and flag of each option that was given.
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

/// A file of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub path: PathBuf,
    pub text: String,
    /// Whether others than its owner can read it: then it may hold no secret.
    pub is_shared: bool,
}

/// A file of settings is a page of text; what is larger is something else.
const LIMIT_BYTES: u64 = 1024 * 1024;

impl File {
    /// One with this text that only its owner can read.
    #[cfg(test)]
    pub fn of_user(name: &str, text: &str) -> Self {
        Self {
            path: PathBuf::from(name),
            text: text.to_owned(),
            is_shared: false,
        }
    }

    /// The settings of a workspace, which is not asked for by whom it is read: whoever takes them over asks first. None
    /// where there is none that lies in the workspace itself.
    pub fn of_project(workspace: &Path) -> Option<Self> {
        let path = Paths::of_project(workspace);
        let inner = path.strip_prefix(workspace).ok()?;
        let bytes = file::read_beneath(workspace, inner, LIMIT_BYTES).ok()?;
        Some(Self {
            text: String::from_utf8(bytes).ok()?,
            path,
            // Whoever wrote it, a repository may hold no secret of the user's.
            is_shared: true,
        })
    }

    /// Reads a file; none when there is no such file.
    pub fn read(path: &Path) -> Result<Option<Self>, Problem> {
        let problem = |message: String| {
            let place = Place::File {
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
            is_shared: secret::is_shared(path),
        }))
    }
}

/// Reads all layers. `project` is given only when the user lets it act.
pub fn load(
    paths: &Paths,
    project: Option<&File>,
    environment: &Environment,
    options: &Options,
) -> (Settings, Vec<Problem>) {
    let mut problems = Vec::new();
    let user = File::read(&paths.settings()).unwrap_or_else(|problem| {
        problems.push(problem);
        None
    });
    let (settings, mut found) = merge(user.as_ref(), project, environment, options);
    problems.append(&mut found);
    (settings, problems)
}

/// Merges layers that have been read. Problems come in the order of the layers, those of a file by line.
pub fn merge(
    user: Option<&File>,
    project: Option<&File>,
    environment: &Environment,
    options: &Options,
) -> (Settings, Vec<Problem>) {
    let mut merging = Merging {
        settings: Settings::default(),
        problems: Vec::new(),
        home: environment.get("HOME").map(PathBuf::from),
        keys_given: BTreeMap::new(),
    };
    if let Some(file) = user {
        merging.file(file, Layer::User);
    }
    if let Some(file) = project {
        merging.file(file, Layer::Project);
    }
    merging.environment(environment);
    merging.options(options);
    merging.complete(environment);
    (merging.settings, merging.problems)
}

struct Merging {
    settings: Settings,
    problems: Vec<Problem>,
    home: Option<PathBuf>,
    /// By the name of what wants a key: the layer that gave one last, and how.
    keys_given: BTreeMap<String, (Layer, &'static str)>,
}

impl Merging {
    fn file(&mut self, file: &File, layer: Layer) {
        let source = Source {
            path: &file.path,
            text: &file.text,
        };
        let (document, errors) = DeTable::parse_recoverable(&file.text);
        let before = self.problems.len();
        for error in errors {
            let place = error.span().map_or_else(|| source.whole(), |it| source.place(it));
            self.problems.push(Problem::new(place, error.message()));
        }
        self.table(document.get_ref(), &mut Vec::new(), &source, file.is_shared, layer);
        self.problems[before..].sort();
    }

    fn table(
        &mut self,
        table: &DeTable<'_>,
        path: &mut Vec<String>,
        source: &Source<'_>,
        is_shared: bool,
        layer: Layer,
    ) {
        for (name, value) in table {
            path.push(name.get_ref().clone().into_owned());
            if let Some(key) = Key::at(path) {
                self.entry(key, path, (name, value), source, is_shared, layer);
            } else if !has_below(path) {
                let problem = Problem::new(
                    source.place(name.span()),
                    format!("there is no key `{}`", path.join(".")),
                );
                self.problems.push(Problem {
                    hint: meant(path),
                    ..problem
                });
            } else if let Some(inner) = value.get_ref().as_table() {
                self.table(inner, path, source, is_shared, layer);
            } else {
                let message = format!("`{}` is a table, not a value", path.join("."));
                let hint = format!("[{}] on a line of its own, its keys below", path.join("."));
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
        source: &Source<'_>,
        is_shared: bool,
        layer: Layer,
    ) {
        let place = source.place(value.span());
        if layer == Layer::Project && !key.in_project {
            let message = format!("a project may not set `{}`", path.join("."));
            let problem = Problem::new(source.place(name.span()), message);
            self.problems.push(problem.hint("it belongs into your own config.toml"));
            return;
        }
        if is_shared && holds_secret(key, value.get_ref()) {
            let message = format!("`{}` is not used: others can read this file", path.join("."));
            let hint = format!("chmod 600 {}", source.path.display());
            self.problems.push(Problem::new(place, message).hint(hint));
            return;
        }
        let value = key.kind.read(value.get_ref());
        self.put(key, path, value, place, layer);
    }

    /// Takes over a value, or the problem with it.
    fn put(&mut self, key: &'static Key, path: &[String], value: Result<Value, Unfit>, place: Place, layer: Layer) {
        let written = path.join(".");
        let value = match value {
            Ok(it) => it,
            Err(unfit) => {
                let problem = Problem::new(place, format!("`{written}`: {}", unfit.message));
                self.problems.push(Problem {
                    hint: unfit.hint,
                    ..problem
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
                    // The weaker layer's way to a key holds no longer.
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

    /// Takes over what a project adds to the user's own caution.
    fn tighten(&mut self, key: &'static Key, path: String, value: Value, place: Place) {
        match (key.kind, (key.slot)(&mut self.settings, ""), value) {
            (Kind::Rules, Slot::Rules(slot), Value::Rules(more)) => slot.extend(more),
            // The words stand in their order, the strictest first.
            (Kind::Word(words), Slot::Text(slot), Value::Text(word)) => {
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
                place: Some(Place::Variable("NO_COLOR".to_owned())),
            };
            self.settings.origins.insert("color".to_owned(), origin);
        }
        let own = KEYS.iter().filter_map(|key| Some((key.variable?, key.path)));
        for (variable, path) in FOREIGN.iter().copied().chain(own) {
            let Some(text) = environment.get(variable) else {
                continue;
            };
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            let key = Key::at(&path).expect("the tables of variables name keys, as a test holds");
            self.put(
                key,
                &path,
                key.kind.parse(text),
                Place::Variable(variable.to_owned()),
                layer,
            );
        }
        let known = || KEYS.iter().filter_map(|it| it.variable).chain(OTHER.iter().copied());
        let own = environment
            .0
            .keys()
            .filter(|it| it.starts_with("SHEAF_") && !it.starts_with("SHEAF_TEST_"));
        for name in own.filter(|name| !known().any(|it| it == *name)) {
            let problem = Problem::new(Place::Variable(name.clone()), "there is no such setting");
            self.problems.push(Problem {
                hint: suggestion(name, known()),
                ..problem
            });
        }
    }

    fn options(&mut self, options: &Options) {
        for (path, text, flag) in options.values() {
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            let key = Key::at(&path).expect("the options name keys, as a test holds");
            self.put(
                key,
                &path,
                key.kind.parse(&text),
                Place::Flag(flag.to_owned()),
                Layer::Flag,
            );
        }
        for text in &options.set {
            let place = Place::Flag("--set".to_owned());
            let Some((path, value)) = text.split_once('=') else {
                let problem = Problem::new(place, format!("`{text}` sets nothing"));
                self.problems.push(problem.hint("--set key=value"));
                continue;
            };
            let path = split_path(path);
            if let Some(key) = Key::at(&path) {
                self.put(key, &path, key.kind.parse(value.trim()), place, Layer::Flag);
            } else {
                let problem = Problem::new(place, format!("there is no key `{}`", path.join(".")));
                self.problems.push(Problem {
                    hint: meant(&path),
                    ..problem
                });
            }
        }
    }

    /// Fills in what a service's name says, and looks over the whole.
    fn complete(&mut self, environment: &Environment) {
        if let Some(name) = self.settings.provider.clone() {
            let configured = self.settings.providers.contains_key(&name);
            if !configured && Known::named(&name).is_some() {
                self.settings.providers.entry(name).or_default();
            } else if !configured {
                let own = self.settings.providers.keys().map(String::as_str);
                let known = super::SERVICES.iter().map(|it| it.name);
                let hint = suggestion(&name, own.chain(known))
                    .unwrap_or_else(|| format!("describe it under [providers.{name}]"));
                let place = self.settings.origin("provider").place.clone();
                if let Some(place) = place {
                    let message = format!("there is no provider `{name}`");
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
            ..
        } = &mut self.settings;
        for (name, provider) in providers {
            let known = Known::named(name);
            if let Some(known) = known
                && !origins.contains_key(&format!("providers.{name}.kind"))
            {
                let own = provider.connection.url.as_deref();
                known
                    .kind_at(own.unwrap_or(known.base_url))
                    .clone_into(&mut provider.kind);
            }
            // A key belongs to the place it was made for: with another address none is taken from the environment unasked.
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
            let any = [
                "base_url",
                "kind",
                "model",
                "api_key",
                "api_key_env",
                "key_command",
                "key_file",
                "keyring",
                "headers",
            ];
            let Some(anywhere) = place("base_url").or_else(|| any.iter().find_map(|it| place(it))) else {
                continue;
            };
            match provider.connection.url() {
                Ok(_) => {}
                Err(super::Refused::Missing) => {
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

/// A refusal carries its hint on a second line.
fn refusal(place: Place, refused: &super::Refused) -> Problem {
    let text = refused.to_string();
    match text.split_once("\n  ") {
        Some((message, hint)) => Problem::new(place, message).hint(hint),
        None => Problem::new(place, text),
    }
}

/// Whether a value is a secret, or likely to hold one.
fn holds_secret(key: &Key, value: &DeValue<'_>) -> bool {
    match key.kind {
        Kind::Secret => true,
        Kind::Proxy => value.as_str().is_some_and(|it| it.contains('@')),
        // Many headers are harmless; those that carry keys are named so.
        Kind::Headers => value.as_table().is_some_and(|it| {
            it.keys().any(|name| {
                let name = name.get_ref().to_ascii_lowercase();
                ["auth", "key", "token", "secret", "cookie"]
                    .iter()
                    .any(|it| name.contains(it))
            })
        }),
        Kind::Text
        | Kind::Word(_)
        | Kind::Flag
        | Kind::Whole { .. }
        | Kind::Number
        | Kind::Duration
        | Kind::Url
        | Kind::Path
        | Kind::List
        | Kind::Words(_)
        | Kind::Rules
        | Kind::Command => false,
    }
}

/// Whether keys stand below `path`.
fn has_below(path: &[String]) -> bool {
    KEYS.iter().any(|key| {
        let mut parts = key.parts();
        path.iter()
            .all(|it| parts.next().is_some_and(|part| part == "*" || part == it))
            && parts.next().is_some()
    })
}

/// What was probably meant by a path at which nothing stands.
pub(super) fn meant(path: &[String]) -> Option<String> {
    let (last, above) = path.split_last()?;
    let siblings = KEYS.iter().filter_map(|key| {
        let mut parts = key.parts();
        let is_here = above
            .iter()
            .all(|it| parts.next().is_some_and(|part| part == "*" || part == it));
        parts.next().filter(|part| is_here && *part != "*")
    });
    suggestion(last, siblings).or_else(|| {
        // The right name in the wrong table.
        let elsewhere = KEYS.iter().find(|key| key.parts().next_back() == Some(last));
        elsewhere.map(|it| format!("did you mean `{}`?", it.path.replace('*', "<name>")))
    })
}

/// The parts of a dotted path, of which some may stand in quotes.
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
mod tests {
    use std::time::Duration;

    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;
    use crate::config::KeySource;
    use crate::config::{Guard, Secret, Upstream, explain};

    fn file(name: &str, text: &str) -> File {
        File::of_user(name, text)
    }

    fn environment(words: &str) -> Environment {
        words.split_whitespace().filter_map(|it| it.split_once('=')).collect()
    }

    fn read(user: &str) -> (Settings, Vec<String>) {
        all(user, "", "", &Options::default())
    }

    fn all(user: &str, project: &str, variables: &str, options: &Options) -> (Settings, Vec<String>) {
        let user = file("config.toml", user);
        let project = file("project.toml", project);
        let (settings, problems) = merge(Some(&user), Some(&project), &environment(variables), options);
        (settings, problems.iter().map(ToString::to_string).collect())
    }

    const NOTHING: [&str; 0] = [];

    #[test]
    fn nothing_at_all_gives_the_defaults() {
        let (settings, problems) = merge(None, None, &Environment::default(), &Options::default());
        assert_eq!((settings, problems), (Settings::default(), vec![]));
        assert_eq!(Settings::default().upstream(), Upstream::Nobody);
    }

    #[test]
    fn every_kind_of_value_arrives() {
        let (settings, problems) = read(
            r#"
            provider = "local"
            theme = "owl"
            color = false
            [gateway]
            url = "https://gateway.example.com/"
            token_command = "pass show gateway"
            dialect = "b"
            headers = { X-Team = "ours" }
            idle_timeout = "90s"
            [providers.local]
            base_url = "http://127.0.0.1:8080/v1"
            key_command = ["pass", "show", "local"]
            allow_fields = ["tools", "stream_options"]
            max_tokens = 4_096
            temperature = 1
            first_byte_timeout = "10m"
            ca_file = "~/ca.pem"
            [models."gpt-4.1/mini"]
            window = 0x20000
            price_in = 0.4
            [serve]
            max_streams = 8
            allow_host = ["a.example", "b.example"]
            "#,
        );
        assert_eq!(problems, NOTHING);
        assert_eq!(settings.provider.as_deref(), Some("local"));
        assert_eq!(
            (settings.theme.as_str(), settings.color, settings.motion),
            ("owl", false, true)
        );
        let gateway = &settings.gateway;
        assert_eq!(gateway.connection.url(), Ok("https://gateway.example.com"));
        let line = ["sh", "-c", "pass show gateway"].map(str::to_owned).to_vec();
        assert_eq!(gateway.token, KeySource::Command(line));
        assert_eq!(gateway.dialect, "b");
        assert_eq!(gateway.connection.headers["X-Team"].expose(), "ours");
        assert_eq!(gateway.connection.idle_timeout, Duration::from_secs(90));
        assert_eq!(gateway.connection.connect_timeout, Duration::from_secs(10));
        let local = &settings.providers["local"];
        assert_eq!(
            local.key,
            KeySource::Command(["pass", "show", "local"].map(str::to_owned).to_vec())
        );
        assert_eq!(
            local.allow_fields,
            Some(vec!["tools".to_owned(), "stream_options".to_owned()])
        );
        assert_eq!((local.max_tokens, local.temperature), (Some(4096), Some(1.0)));
        assert_eq!(local.connection.first_byte_timeout, Duration::from_mins(10));
        let model = &settings.models["gpt-4.1/mini"];
        assert_eq!(
            (model.window, model.price_in, model.price_out),
            (Some(131_072), Some(0.4), None)
        );
        assert_eq!(settings.serve.allow_host, ["a.example", "b.example"]);
    }

    #[test]
    fn a_project_only_adds_to_what_is_asked_and_denied_and_makes_runs_stricter() {
        let user = "approvals = { run = 'list', allow = ['Shell(ls)'], ask = ['Shell(a)'], deny = ['Shell(b)'] }";
        let project = "approvals = { run = 'ask', ask = ['Shell(c)'], deny = [{ rule = 'Shell(d)', match = 'd x' }] }";
        let (settings, problems) = all(user, project, "", &Options::default());
        assert_eq!(problems, NOTHING);
        let names = |guards: &[Guard]| guards.iter().map(|it| it.rule.clone()).collect::<Vec<_>>();
        let approvals = &settings.approvals;
        assert_eq!(approvals.run, "ask");
        assert_eq!(names(&approvals.allow), ["Shell(ls)"]);
        assert_eq!(names(&approvals.ask), ["Shell(a)", "Shell(c)"]);
        assert_eq!(names(&approvals.deny), ["Shell(b)", "Shell(d)"]);
        assert_eq!(approvals.deny[1].matches, ["d x"]);
        assert_eq!(settings.origin("approvals.run").to_string(), "project.toml:1:21");

        let project = "approvals.run = 'sandbox'\napprovals.allow = ['Shell(rm)']\nweb.allow_private = ['localhost']\nweb.search.url = 'https://x.example'";
        let (settings, problems) = all(user, project, "", &Options::default());
        assert_eq!(settings.approvals.run, "list");
        assert_eq!(names(&settings.approvals.allow), ["Shell(ls)"]);
        assert_eq!(
            problems,
            [
                "project.toml:1:17: a project may not loosen `approvals.run` from `list` to `sandbox`\n  it belongs into your own config.toml",
                "project.toml:2:11: a project may not set `approvals.allow`\n  it belongs into your own config.toml",
                "project.toml:3:5: a project may not set `web.allow_private`\n  it belongs into your own config.toml",
                "project.toml:4:12: a project may not set `web.search.url`\n  it belongs into your own config.toml",
            ]
        );
        // The user's own word in the environment comes after it.
        let (settings, _) = all(
            user,
            "approvals.run = 'ask'",
            "SHEAF_APPROVALS_RUN=sandbox",
            &Options::default(),
        );
        assert_eq!(settings.approvals.run, "sandbox");
    }

    #[test]
    fn a_rule_is_a_text_or_a_table_with_examples() {
        let (settings, problems) = read(
            "[approvals]\nallow = ['Shell(a, b)', { rule = 'Shell(git push)', match = ['git push x'], not_match = ['git pull'] }]",
        );
        assert_eq!(problems, NOTHING);
        let expected = Guard {
            rule: "Shell(git push)".to_owned(),
            matches: vec!["git push x".to_owned()],
            not_matches: vec!["git pull".to_owned()],
        };
        assert_eq!(settings.approvals.allow, [Guard::new("Shell(a, b)"), expected]);
        for (text, expected) in [
            (
                "allow = [3]",
                "`approvals.allow`: every entry of the list must be a text or a table",
            ),
            (
                "allow = 'Shell(a)'",
                "`approvals.allow`: wants list of rules, this is a string",
            ),
            (
                "allow = [{ match = 'a' }]",
                "`approvals.allow`: an entry of the list has no `rule`",
            ),
            (
                "allow = [{ rule = 'Shell(a)', matches = 'a' }]",
                "`approvals.allow`: a rule has no `matches`\n  did you mean `match`?",
            ),
            (
                "allow = [{ rule = 'Shell(a)', match = 3 }]",
                "`approvals.allow`: the `match` of a rule is text",
            ),
        ] {
            let (settings, problems) = read(&format!("[approvals]\n{text}"));
            assert!(problems.len() == 1 && problems[0].contains(expected), "{problems:?}");
            assert_eq!(settings.approvals.allow, []);
        }
        let options = Options {
            set: vec!["approvals.allow=Shell(a, b)".to_owned()],
            ..Options::default()
        };
        let (settings, _) = all("", "", "", &options);
        assert_eq!(
            settings.approvals.allow,
            [Guard::new("Shell(a, b)")],
            "a comma is part of the rule"
        );
        let set = [
            r#"approvals.allow=["Shell(a, b)", "Read(c)"]"#,
            r#"roles.fallback=["one", "two, too"]"#,
            r#"lint.rust=["cargo", "clippy"]"#,
            r"lint.go=[ -f go.mod ] && go vet",
        ];
        let options = Options {
            set: set.map(str::to_owned).to_vec(),
            ..Options::default()
        };
        let (settings, problems) = all("", "", "", &options);
        assert_eq!(problems, NOTHING);
        assert_eq!(
            settings.approvals.allow,
            [Guard::new("Shell(a, b)"), Guard::new("Read(c)")],
            "a list is one as in a file"
        );
        assert_eq!(settings.roles.fallback, ["one", "two, too"]);
        assert_eq!(settings.lint["rust"], ["cargo", "clippy"]);
        assert_eq!(settings.lint["go"], ["sh", "-c", "[ -f go.mod ] && go vet"]);
    }

    #[test]
    fn a_later_layer_wins_and_each_value_knows_where_it_comes_from() {
        let user = "theme = 'user'\nmodel = 'user'\nmode = 'ask'\nui.output_rows = 5";
        let project = "theme = 'project'\nmodel = 'project'\nmode = 'plan'";
        let options = Options {
            theme: Some("flag".to_owned()),
            ..Options::default()
        };
        let (settings, problems) = all(user, project, "SHEAF_THEME=variable SHEAF_MODEL=variable", &options);
        assert_eq!(problems, NOTHING);
        let seen = (
            settings.theme.as_str(),
            settings.model.as_deref(),
            settings.mode.as_str(),
        );
        assert_eq!(seen, ("flag", Some("variable"), "plan"));
        assert_eq!(settings.ui.output_rows, 5);
        let origins = ["theme", "model", "mode", "ui.output_rows", "mouse"].map(|it| settings.origin(it).to_string());
        assert_eq!(
            origins,
            [
                "--theme",
                "$SHEAF_MODEL",
                "project.toml:3:8",
                "config.toml:4:18",
                "default"
            ]
        );
        assert_eq!(settings.origin("mode").layer, Layer::Project);
    }

    #[test]
    fn every_mistake_is_named_at_once_and_the_rest_holds() {
        let (settings, problems) = read(concat!(
            "them = 'owl'\n",
            "mode = 'plam'\n",
            "motion = 'no'\n",
            "theme = 3\n",
            "idle_timeout = '60s'\n",
            "gateway = 'http://localhost'\n",
            "mouse = false\n",
            "[providers.local]\n",
            "base_ulr = 'http://localhost:1/v1'\n",
            "base_url = 'localhost:1/v1'\n",
            "idle_timeout = 60\n",
            "first_byte_timeout = '60 parsecs'\n",
            "connect_timeout = '0s'\n",
            "max_tokens = -1\n",
            "kind = 'opanai'\n",
            "headers = { 'X Y' = 'z' }\n",
            "allow_fields = ['a', 1]\n",
            "key_command = []\n",
            "[serve]\n",
            "max_streams = 0\n",
            "[modles.x]\n",
            "window = 1\n",
        ));
        assert_eq!(
            problems,
            [
                "config.toml:1:1: there is no key `them`\n  did you mean `theme`?",
                "config.toml:2:8: `mode`: `plam` is not among its values\n  did you mean `plan`?",
                "config.toml:3:10: `motion`: wants true | false, this is a string\n  without quotes",
                "config.toml:4:9: `theme`: wants text, this is an integer\n  a text stands in quotes",
                "config.toml:5:1: there is no key `idle_timeout`\n  did you mean `gateway.idle_timeout`?",
                "config.toml:6:11: `gateway` is a table, not a value\n  [gateway] on a line of its own, its keys below",
                "config.toml:9:1: there is no key `providers.local.base_ulr`\n  did you mean `base_url`?",
                "config.toml:10:12: `providers.local.base_url`: `localhost:1/v1` is not an address\n  an address starts with https:// or http://",
                "config.toml:11:16: `providers.local.idle_timeout`: wants duration, such as \"60s\", this is an integer\n  \"60s\" for seconds",
                "config.toml:12:22: `providers.local.first_byte_timeout`: `60 parsecs` is not a duration\n  a number and its unit: \"500ms\", \"60s\", \"2m\", \"1h\"",
                "config.toml:13:19: `providers.local.connect_timeout`: the duration must be longer than nothing",
                "config.toml:14:14: `providers.local.max_tokens`: `-1` is not a whole number from 1",
                "config.toml:15:8: `providers.local.kind`: `opanai` is not among its values\n  did you mean `openai`?",
                "config.toml:16:11: `providers.local.headers`: `X Y` cannot be the name of a header",
                "config.toml:17:16: `providers.local.allow_fields`: every entry of the list must be a text",
                "config.toml:18:15: `providers.local.key_command`: the command is empty",
                "config.toml:20:15: `serve.max_streams`: `0` is not a whole number, 1 to 4096",
                "config.toml:21:2: there is no key `modles`\n  did you mean `models`?",
            ]
        );
        assert!(!settings.mouse, "what is right is taken");
        assert_eq!(settings.mode, "agent");
    }

    #[test]
    fn broken_toml_is_named_and_what_could_be_read_holds() {
        let (settings, problems) = read("mode = 'plan'\ntheme = \nmouse = false\n[gateway\nurl = 'http://localhost'\n");
        assert!(
            problems.iter().any(|it| it.starts_with("config.toml:2:")),
            "{problems:?}"
        );
        assert!(
            problems.iter().any(|it| it.starts_with("config.toml:4:")),
            "{problems:?}"
        );
        assert_eq!((settings.mode.as_str(), settings.mouse), ("plan", false));
    }

    #[test]
    fn a_project_sets_harmless_things_only() {
        let project = concat!(
            "model = 'big'\n",
            "gateway.url = 'https://evil.example'\n",
            "gateway.token = 'x'\n",
            "[providers.openai]\n",
            "base_url = 'https://evil.example/v1'\n",
            "key_command = 'curl evil.example'\n",
            "proxy = 'http://evil.example'\n",
            "ca_file = 'evil.pem'\n",
            "headers = { a = 'b' }\n",
            "[serve]\n",
            "listen = '0.0.0.0:1'\n",
        );
        let (settings, problems) = all("", project, "OPENAI_API_KEY=sk", &Options::default());
        let refused = |line: u8, key: &str| {
            format!("project.toml:{line}:1: a project may not set `{key}`\n  it belongs into your own config.toml")
        };
        let mut expected = vec![
            refused(2, "gateway.url").replace(":1: ", ":9: "),
            refused(3, "gateway.token").replace(":1: ", ":9: "),
            refused(5, "providers.openai.base_url"),
            refused(6, "providers.openai.key_command"),
            refused(7, "providers.openai.proxy"),
            refused(8, "providers.openai.ca_file"),
            refused(9, "providers.openai.headers"),
            refused(11, "serve.listen"),
        ];
        expected.sort_by_key(|it| it.split(':').nth(1).and_then(|it| it.parse::<u8>().ok()));
        assert_eq!(problems, expected);
        assert_eq!(settings.model.as_deref(), Some("big"));
        assert_eq!(
            settings.providers["openai"].connection.url(),
            Ok("https://api.openai.com/v1")
        );
        assert!(!settings.gateway.connection.has_url());
    }

    #[test]
    fn a_file_that_others_can_read_gives_no_secret() {
        let text = "theme = 'owl'\n[gateway]\ntoken = 'hidden'\nheaders = { X-Api-Key = 'hidden' }\n[serve]\ntoken = 'hidden'\n[providers.openai]\napi_key = 'hidden'\nheaders = { X-Team = 'a' }\n";
        let shared = File {
            is_shared: true,
            ..file("config.toml", text)
        };
        let (settings, problems) = merge(Some(&shared), None, &Environment::default(), &Options::default());
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let unused = |place: &str, key: &str| {
            format!("config.toml:{place}: `{key}` is not used: others can read this file\n  chmod 600 config.toml")
        };
        let expected = [
            unused("3:9", "gateway.token"),
            unused("4:11", "gateway.headers"),
            unused("6:9", "serve.token"),
            unused("8:11", "providers.openai.api_key"),
        ];
        assert_eq!(problems, expected);
        assert_eq!(settings.theme, "owl");
        assert_eq!(settings.gateway.token, KeySource::None);
        assert_eq!(settings.providers["openai"].connection.headers.len(), 1);
        let private = File {
            is_shared: false,
            ..shared
        };
        let (settings, problems) = merge(Some(&private), None, &Environment::default(), &Options::default());
        assert_eq!(problems, []);
        assert_eq!(settings.serve.token, Some(Secret::new("hidden")));
    }

    #[test]
    fn no_secret_shows_in_debug_output_explanations_or_problems() {
        let text = "[gateway]\ntoken = 'covert'\nurl = 'https://me:covert@x.example'\n[gateway.headers]\nAuthorization = 'covert'\n[providers.openai]\napi_key = \"cov\\u0007ert covert\"\nbase_url = 'me:covert@x'\n";
        let variables = "OPENAI_API_KEY=covert SHEAF_SERVE_TOKEN=covert";
        let user = file("config.toml", text);
        let environment = environment(variables);
        let (settings, problems) = merge(Some(&user), None, &environment, &Options::default());
        assert_eq!(problems.len(), 3, "{problems:?}");
        for shown in [
            format!("{settings:?}"),
            format!("{problems:?}"),
            format!("{:?}", explain(&settings)),
            format!("{environment:?}"),
            format!("{:?} {}", Secret::new("covert"), Secret::new("covert")),
        ] {
            assert!(!shown.contains("covert"), "{shown}");
        }
    }

    #[test]
    fn the_last_word_on_a_key_counts_and_two_words_at_once_are_told() {
        let text = "[providers.openai]\nkey_file = 'a'\napi_key_env = 'B'\n";
        let (settings, problems) = all(text, "", "OPENAI_API_KEY=c", &Options::default());
        assert_eq!(
            problems,
            [
                "config.toml:2:12: `providers.openai.key_file` and `providers.openai.api_key_env` both say where the key comes from\n  keep one of them"
            ]
        );
        assert_eq!(settings.providers["openai"].key, KeySource::Given(Secret::new("c")));
        assert_eq!(settings.origin("providers.openai.api_key_env").layer, Layer::Default);
        assert_eq!(settings.origin("providers.openai.api_key").layer, Layer::Environment);
        let (settings, _) = read(text);
        assert_eq!(
            settings.providers["openai"].key,
            KeySource::Variables(vec!["B".to_owned()])
        );
    }

    #[test]
    fn wrong_variables_and_flags_are_named() {
        let options = Options {
            provider: Some("opnai".to_owned()),
            mode: Some("pan".to_owned()),
            gateway: Some("gateway.example".to_owned()),
            set: vec![
                "ui.thinkin=shown".to_owned(),
                "nonsense".to_owned(),
                "ui.thinking = shown".to_owned(),
            ],
            ..Options::default()
        };
        let (settings, problems) = all(
            "",
            "",
            "SHEAF_THEEM=owl SHEAF_MOUSE=maybe SHEAF_DEV=1 SHEAF_TEST_X=1",
            &options,
        );
        assert_eq!(
            problems,
            [
                "$SHEAF_MOUSE: `mouse`: `maybe` is neither true nor false",
                "$SHEAF_THEEM: there is no such setting\n  did you mean `SHEAF_THEME`?",
                "--gateway: `gateway.url`: `gateway.example` is not an address\n  an address starts with https:// or http://",
                "--mode: `mode`: `pan` is not among its values\n  did you mean `plan`?",
                "--set: there is no key `ui.thinkin`\n  did you mean `thinking`?",
                "--set: `nonsense` sets nothing\n  --set key=value",
                "--provider: there is no provider `opnai`\n  did you mean `openai`?",
            ]
        );
        assert_eq!(settings.ui.thinking, "shown");
        assert_eq!(settings.provider, None);
    }

    #[test]
    fn a_dotted_path_takes_quotes() {
        let options = Options {
            set: vec![
                "models.\"gpt-4.1\".window=7".to_owned(),
                "models.'a.b'.window=8".to_owned(),
            ],
            ..Options::default()
        };
        let (settings, problems) = all("", "", "", &options);
        assert_eq!(problems, NOTHING);
        assert_eq!(settings.models["gpt-4.1"].window, Some(7));
        assert_eq!(settings.models["a.b"].window, Some(8));
    }

    #[test]
    fn no_color_turns_colours_off_unless_somebody_stronger_wants_them() {
        for (variables, set, expected) in [
            ("NO_COLOR=1", None, false),
            ("NO_COLOR=", None, true),
            ("", None, true),
            ("NO_COLOR=1 SHEAF_COLOR=true", None, true),
            ("NO_COLOR=1", Some("color=true"), true),
        ] {
            let options = Options {
                set: set.map(str::to_owned).into_iter().collect(),
                ..Options::default()
            };
            let (settings, problems) = all("", "", variables, &options);
            assert_eq!((settings.color, problems.len()), (expected, 0), "{variables} {set:?}");
        }
    }

    /// Who is asked, where, with which key and model.
    fn asked(user: &str, variables: &str, options: &Options) -> String {
        let (settings, problems) = all(user, "", variables, options);
        assert_eq!(problems, NOTHING, "{user} {variables}");
        let model = settings.model().unwrap_or("-");
        match settings.upstream() {
            Upstream::Nobody => format!("nobody {model}"),
            Upstream::Gateway(it) => format!("gateway {} {model}", it.connection.url().unwrap_or("-")),
            Upstream::Provider(name, it) => {
                let key = match &it.key {
                    KeySource::None => "none",
                    KeySource::Given(it) => it.expose(),
                    KeySource::Variables(names) => &names.join(" "),
                    KeySource::Keyring(_) => "keyring",
                    KeySource::Command(_) => "command",
                    KeySource::File(_) => "file",
                };
                format!("{name} {} {key} {model}", it.connection.url().unwrap_or("-"))
            }
        }
    }

    #[test]
    fn the_strongest_word_decides_whom_to_ask_for_which_model() {
        let gateway = "gateway.url = 'https://g'\n";
        let two = "[providers.a]\nbase_url = 'https://a'\nmodel = 'm'\n[providers.b]\nbase_url = 'https://b'\n";
        let options = |it: &str| {
            let mut options = Options::default();
            for pair in it.split_whitespace() {
                let (name, value) = pair.split_once('=').expect("a pair");
                let slot = match name {
                    "gateway" => &mut options.gateway,
                    "provider" => &mut options.provider,
                    _ => &mut options.model,
                };
                *slot = Some(value.to_owned());
            }
            options
        };
        for (user, variables, flags, expected) in [
            ("", "", "", "nobody -"),
            ("", "OPENAI_MODEL=m", "", "nobody -"),
            (
                "[providers.ollama]\nmodel = 'q'",
                "OPENAI_MODEL=m",
                "",
                "ollama http://127.0.0.1:11434 none q",
            ),
            ("", "OPENAI_API_KEY=k", "", "openai https://api.openai.com/v1 k -"),
            (
                "",
                "OPENAI_API_KEY=k OPENAI_MODEL=m",
                "",
                "openai https://api.openai.com/v1 k m",
            ),
            (
                "",
                "OPENAI_BASE_URL=http://localhost:1/v1",
                "",
                "openai http://localhost:1/v1 none -",
            ),
            (
                "",
                "OPENAI_BASE_URL=http://localhost:1/v1 OPENAI_API_KEY=k OPENAI_MODEL=m",
                "model=n",
                "openai http://localhost:1/v1 k n",
            ),
            (
                "",
                "GROQ_API_KEY=k",
                "provider=groq",
                "groq https://api.groq.com/openai/v1 GROQ_API_KEY -",
            ),
            (
                "",
                "",
                "provider=ollama model=q",
                "ollama http://127.0.0.1:11434 none q",
            ),
            (gateway, "", "", "gateway https://g -"),
            (gateway, "OPENAI_API_KEY=k", "", "gateway https://g -"),
            (gateway, "", "provider=ollama", "ollama http://127.0.0.1:11434 none -"),
            (two, "", "", "nobody -"),
            (two, "", "provider=a", "a https://a none m"),
            (two, "", "provider=b", "b https://b none -"),
            (two, "SHEAF_GATEWAY=https://g", "provider=a", "a https://a none m"),
            (two, "SHEAF_PROVIDER=a", "gateway=https://g", "gateway https://g -"),
            (
                two,
                "SHEAF_PROVIDER=a SHEAF_GATEWAY=https://g",
                "",
                "gateway https://g -",
            ),
            (two, "SHEAF_MODEL=x", "provider=a", "a https://a none x"),
            ("[providers.a]\nbase_url = 'https://a'", "", "", "a https://a none -"),
            (
                "model = 'x'\n[providers.a]\nbase_url = 'https://a'\nmodel = 'm'",
                "",
                "",
                "a https://a none m",
            ),
            (
                "[providers.mistral]\nbase_url = 'https://mine'",
                "MISTRAL_API_KEY=k",
                "",
                "mistral https://mine none -",
            ),
        ] {
            assert_eq!(
                asked(user, variables, &options(flags)),
                expected,
                "{user}|{variables}|{flags}"
            );
        }
    }

    #[test]
    fn a_project_that_names_a_model_chooses_nobody() {
        let project = "[providers.groq]\nmodel = 'big'\n";
        let (settings, problems) = all("", project, "GROQ_API_KEY=k", &Options::default());
        assert_eq!((settings.upstream(), problems.len()), (Upstream::Nobody, 0));
    }

    #[test]
    fn a_provider_that_cannot_be_reached_is_told() {
        for (text, expected) in [
            (
                "[providers.olama]\nmodel = 'x'",
                "config.toml:2:9: `providers.olama` has no base_url\n  did you mean `ollama`? if not, add its address",
            ),
            (
                "[providers.far]\nbase_url = 'http://far.example/v1'",
                "config.toml:2:12: `http://far.example/v1` would send the key and the conversation unencrypted\n  use https://, or set `allow_http = true` beside it",
            ),
            (
                "[gateway]\nurl = 'http://10.0.0.1'",
                "config.toml:2:7: `http://10.0.0.1` would send the key and the conversation unencrypted\n  use https://, or set `allow_http = true` beside it",
            ),
            ("[gateway]\nurl = 'http://10.0.0.1'\nallow_http = true", ""),
        ] {
            assert_eq!(read(text).1.join("|"), expected, "{text}");
        }
    }

    #[test]
    fn the_tables_of_variables_and_flags_name_keys() {
        let every = Options {
            gateway: Some(String::new()),
            provider: Some(String::new()),
            model: Some(String::new()),
            mode: Some(String::new()),
            theme: Some(String::new()),
            listen: Some(String::new()),
            allow_host: vec![String::new()],
            allow_origin: vec![String::new()],
            set: Vec::new(),
        };
        let flags = every.values().into_iter().map(|it| it.0);
        for path in FOREIGN.iter().map(|it| it.1).chain(flags) {
            assert!(Key::at(&split_path(path)).is_some(), "{path}");
        }
    }

    #[test]
    fn files_are_found_read_and_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let paths = Paths::under(folder.path());
        let workspace = folder.path().join("work");
        let project = Paths::of_project(&workspace);
        let load = |workspace: Option<&Path>| {
            let project = workspace.and_then(File::of_project);
            let (settings, problems) = load(&paths, project.as_ref(), &Environment::default(), &Options::default());
            let problems: Vec<String> = problems.iter().map(|it| it.message.clone()).collect();
            (settings.theme, settings.mode, problems.join("; "))
        };
        let seen = |theme: &str, mode: &str, problems: &str| (theme.to_owned(), mode.to_owned(), problems.to_owned());
        assert_eq!(
            load(Some(&workspace)),
            seen("auto", "agent", ""),
            "no file is no problem"
        );
        std::fs::create_dir_all(&paths.config).expect("made");
        std::fs::create_dir_all(project.parent().expect("a parent")).expect("made");
        std::fs::write(paths.settings(), "theme = 'owl'").expect("written");
        std::fs::write(&project, "mode = 'ask'").expect("written");
        assert_eq!(load(Some(&workspace)), seen("owl", "ask", ""));
        assert_eq!(
            load(None),
            seen("owl", "agent", ""),
            "a workspace that is not trusted says nothing"
        );
        std::fs::write(paths.settings(), [0xff, 0xfe]).expect("written");
        assert!(load(None).2.contains("not UTF-8"));
        std::fs::write(paths.settings(), " ".repeat(LIMIT_BYTES as usize + 1)).expect("written");
        assert!(load(None).2.ends_with("is larger than 1048576 bytes"));
        std::fs::remove_file(paths.settings()).expect("removed");
        std::fs::create_dir(paths.settings()).expect("made");
        assert!(load(None).2.ends_with("is not a regular file"));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_of_settings_knows_whether_others_can_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config.toml");
        std::fs::write(&path, "[serve]\ntoken = 'x'").expect("written");
        for (mode, expected) in [
            (0o600, false),
            (0o400, false),
            (0o640, true),
            (0o604, true),
            (0o644, true),
        ] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
            let file = File::read(&path).expect("readable").expect("there");
            assert_eq!(file.is_shared, expected, "{mode:o}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn no_file_stops_the_program(text in "[a-z.=\\[\\]'\"# \n0-9é\u{7}]{0,200}", project in ".{0,80}") {
            let user = file("config.toml", &text);
            let project = file("project.toml", &project);
            let _ = merge(Some(&user), Some(&project), &Environment::default(), &Options::default());
        }

        #[test]
        fn any_value_under_any_key_is_taken_or_told(
            key in prop::sample::select(KEYS.iter().map(|it| it.path).collect::<Vec<_>>()),
            value in prop::sample::select(vec!["1", "-1", "1.5", "nan", "true", "''", "'x'", "'60s'", "[]", "['x']", "[1]", "{}", "{ a = 'b' }", "1979-05-27", "'https://x.example'"]),
        ) {
            let path = key.replace('*', "x");
            let (settings, problems) = read(&format!("{path} = {value}\n"));
            let is_taken = settings.origin(&path).layer == Layer::User;
            // A provider without an address is told of, although its other values are taken; so is an unknown provider.
            let is_told = !problems.is_empty();
            prop_assert!(is_taken || is_told, "{} = {}", path, value);
        }

        #[test]
        fn what_is_shown_can_be_read_again(rows in 1..u64::MAX, millis in 1..100_000_000_u64, text in "[^\u{0}-\u{1f}\u{7f}]{1,20}") {
            let first = format!("ui.output_rows = {}\nserve.linger = '{millis}ms'\nmodel = {}\n", rows.min(i64::MAX as u64), toml::Value::String(text));
            let (settings, problems) = read(&first);
            prop_assert_eq!(problems, Vec::<String>::new());
            let again: String = explain(&settings).iter().filter_map(|it| Some(format!("{} = {}\n", it.path, it.value.as_ref()?))).collect();
            let (again, problems) = read(&again);
            prop_assert_eq!(problems, Vec::<String>::new());
            prop_assert_eq!((again.ui, again.serve, again.model), (settings.ui, settings.serve, settings.model));
        }
    }
}
