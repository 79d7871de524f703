//! Writes a setting into a file and keeps the user's comments, order and layout.

use toml_edit::{Array, DocumentMut, Item, Table, TableLike};

use super::{
    Key, McpServer, Paths, Problem, SettingsFile, SourceText,
    layer::{split_path, suggest_key},
    value::{Value, ValueKind, written},
};
use crate::os::file::{self, Access};

/// Reason why a setting was not stored.
#[derive(Debug, thiserror::Error)]
pub enum SettingsWriteError {
    #[error("{0}")]
    Wrong(Problem),
    #[error("the settings could not be written")]
    File(#[from] file::Error),
    #[error("another sheaf is writing the settings\ntry again in a moment")]
    Busy,
}

/// Sets `path` to `value` in the user's settings file, or removes it for `None`. Creates the file if needed.
pub fn store(paths: &Paths, path: &str, value: Option<&str>) -> Result<(), SettingsWriteError> {
    change(paths, |source| set(source, path, value))
}

/// Sets several paths in the user's settings file, in order and in one step; `None` removes one.
pub fn store_all(paths: &Paths, values: &[(String, Option<String>)]) -> Result<(), SettingsWriteError> {
    change(paths, |source| {
        let mut text = source.text.to_owned();
        for (path, value) in values {
            let source = SourceText {
                text: &text,
                path: source.path,
            };
            text = set(&source, path, value.as_deref())?;
        }
        Ok(text)
    })
}

/// Writes the result of `edit` to the user's settings file.
fn change(
    paths: &Paths,
    edit: impl FnOnce(&SourceText<'_>) -> Result<String, Problem>,
) -> Result<(), SettingsWriteError> {
    let target = paths.settings();
    // Two programs may change it at once; each holds the lock for one write. Some file systems know no locks.
    let _held =
        match file::private_folder(&paths.state).and_then(|()| file::lock_soon(&paths.state.join("settings.lock"))) {
            Ok(None) => return Err(SettingsWriteError::Busy),
            Ok(lock) => lock,
            Err(error) => {
                tracing::debug!(%error, "the settings are written without a lock");
                None
            }
        };
    let text = SettingsFile::read(&target)
        .map_err(SettingsWriteError::Wrong)?
        .map(|it| it.text);
    let source = SourceText {
        path: &target,
        text: text.as_deref().unwrap_or_default(),
    };
    let changed = edit(&source).map_err(SettingsWriteError::Wrong)?;
    if Some(&changed) == text.as_ref() {
        return Ok(());
    }
    if text.is_none() {
        file::private_folder(&paths.config)?;
    }
    file::write(&target, changed.as_bytes(), Access::Private)?;
    Ok(())
}

/// Stores a server of tools as `mcp.<name>` in the user's settings file; `None` removes it. Returns false if there was nothing
/// to remove.
pub fn store_server(paths: &Paths, name: &str, server: Option<&McpServer>) -> Result<bool, SettingsWriteError> {
    let mut is_done = server.is_some();
    change(paths, |source| {
        let mut document: DocumentMut = source.text.parse().map_err(|error| broken(source, &error))?;
        let problem = || {
            Problem::new(source.whole(), "`mcp` is not a table".to_owned()).hint("mend it first: nothing was written")
        };
        let servers = document.entry("mcp").or_insert_with(|| {
            let mut table = toml_edit::Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        let servers = servers.as_table_like_mut().ok_or_else(problem)?;
        match server {
            Some(server) => {
                servers.insert(name, Item::Table(server_table(server)));
            }
            None => is_done = servers.remove(name).is_some(),
        }
        if servers.is_empty() {
            document.remove("mcp");
        }
        Ok(document.to_string())
    })?;
    Ok(is_done)
}

fn server_table(server: &McpServer) -> toml_edit::Table {
    let mut table = toml_edit::Table::new();
    let texts = |it: &[String]| toml_edit::value(it.iter().collect::<Array>());
    for (name, text) in [("command", &server.command), ("url", &server.url)] {
        if let Some(text) = text {
            table.insert(name, toml_edit::value(text));
        }
    }
    for (name, list) in [("args", &server.args), ("folders", &server.folders)] {
        if !list.is_empty() {
            table.insert(name, texts(list));
        }
    }
    if server.network {
        table.insert("network", toml_edit::value(true));
    }
    let headers = server.headers.iter().map(|(name, it)| (name, it.expose()));
    let variables = server.env.iter().map(|(name, it)| (name, it.as_str()));
    let pairs: [(&str, Vec<(&String, &str)>); 2] = [("env", variables.collect()), ("headers", headers.collect())];
    for (name, pairs) in pairs {
        if !pairs.is_empty() {
            let inline: toml_edit::InlineTable = pairs.into_iter().collect();
            table.insert(name, toml_edit::value(inline));
        }
    }
    table
}

/// Adds `entry` to the list at `path` in the user's settings file, unless it is already there.
pub fn append(paths: &Paths, path: &str, entry: &str) -> Result<(), SettingsWriteError> {
    change(paths, |source| with_entry(source, path, entry))
}

/// Removes `entry` from the list at `path` in the user's settings file. An error if it is not there.
pub fn remove(paths: &Paths, path: &str, entry: &str) -> Result<(), SettingsWriteError> {
    change(paths, |source| without_entry(source, path, entry))
}

/// Returns the text of `source` without `entry` in the list at `path`.
fn without_entry(source: &SourceText<'_>, path: &str, entry: &str) -> Result<String, Problem> {
    let mut document: DocumentMut = source.text.parse().map_err(|error| broken(source, &error))?;
    let mut found = Some(document.as_item_mut());
    for part in &split_path(path) {
        found = found.and_then(|it| it.as_table_like_mut()?.get_mut(part));
    }
    let list = found.and_then(|it| it.as_array_mut());
    let at = list
        .as_ref()
        .and_then(|it| it.iter().position(|it| is_entry(it, entry)));
    let (Some(list), Some(at)) = (list, at) else {
        let problem = Problem::new(source.whole(), format!("`{entry}` is not in `{path}` of this file"));
        return Err(problem.hint("a project's file or an option has it: remove it there"));
    };
    let is_last = at + 1 == list.len();
    list.remove(at);
    if is_last && !list.is_empty() {
        // The comment beside it was about it; the bracket stays on its own line.
        let is_tall = list.iter().any(|it| {
            it.decor()
                .prefix()
                .and_then(|it| it.as_str())
                .is_some_and(|it| it.contains('\n'))
        });
        list.set_trailing(if is_tall { "\n" } else { "" });
    }
    Ok(document.to_string())
}

/// Returns true for an entry of a list that is this text, or a rule with this text and examples.
fn is_entry(value: &toml_edit::Value, entry: &str) -> bool {
    let rule = value.as_inline_table().and_then(|it| it.get("rule"));
    rule.unwrap_or(value).as_str() == Some(entry)
}

/// Returns the text of `source` with `entry` added at the end of the list at `path`.
fn with_entry(source: &SourceText<'_>, path: &str, entry: &str) -> Result<String, Problem> {
    let problem = |message: String| Problem::new(source.whole(), message);
    let mut document: DocumentMut = source.text.parse().map_err(|error| broken(source, &error))?;
    let parts = split_path(path);
    let mut found = Some(document.as_item_mut());
    for part in &parts {
        found = found.and_then(|it| it.as_table_like_mut()?.get_mut(part));
    }
    let Some(item) = found else {
        return set(source, path, Some(entry));
    };
    let Some(list) = item.as_array_mut() else {
        return Err(problem(format!("`{path}` is not a list")).hint("mend it first: nothing was written"));
    };
    if list.iter().any(|it| is_entry(it, entry)) {
        return Ok(source.text.to_owned());
    }
    // Uses the layout of the last entry: on the same line or on its own.
    let layout = list
        .iter()
        .last()
        .and_then(|it| it.decor().prefix()?.as_str().map(str::to_owned));
    let trail = list.trailing().clone();
    list.push(entry);
    if let (Some(layout), Some(last)) = (layout, list.iter_mut().last()) {
        // A comment before an entry belongs to that entry.
        let blank = layout.rsplit_once('\n').map_or_else(
            || " ".to_owned(),
            |(_, indent)| {
                format!(
                    "\n{}",
                    indent.chars().take_while(|it| it.is_whitespace()).collect::<String>()
                )
            },
        );
        *last.decor_mut() = toml_edit::Decor::new(blank, "");
    }
    list.set_trailing(trail);
    Ok(document.to_string())
}

fn broken(source: &SourceText<'_>, error: &toml_edit::TomlError) -> Problem {
    let place = error.span().map_or_else(|| source.whole(), |it| source.place(it));
    Problem::new(place, error.message().trim()).hint("mend the file first: nothing was written")
}

/// Returns the text of `source` with `path` set to `value` (in the syntax of a variable or a flag), or removed for
/// `None`.
///
/// Comments and order are kept. Errors: there is no such key, the value is invalid, or it is a secret, which does not
/// belong in this file.
pub fn set(source: &SourceText<'_>, path: &str, value: Option<&str>) -> Result<String, Problem> {
    let parts = split_path(path);
    let problem = |message: String| Problem::new(source.whole(), message);
    let Some(key) = Key::at(&parts) else {
        return Err(Problem {
            hint: suggest_key(&parts),
            ..problem(format!("unknown key `{path}`"))
        });
    };
    let is_secret = match key.kind {
        ValueKind::Secret => value.is_some(),
        ValueKind::Proxy => value.is_some_and(|it| it.contains('@')),
        _ => false,
    };
    if is_secret {
        let hint = "put it in a separate file or a password store: key_file, key_command, token_file, token_command";
        return Err(problem(format!("`{path}` is a secret and is not written into the settings")).hint(hint));
    }
    let value = match value.map(|it| (it, key.kind.parse(it))) {
        None => None,
        Some((text, Ok(value))) => Some(item(key.kind, text, value)),
        Some((_, Err(invalid))) => {
            return Err(Problem {
                hint: invalid.hint,
                ..problem(format!("`{path}`: {}", invalid.message))
            });
        }
    };
    let mut document: DocumentMut = source.text.parse().map_err(|error| broken(source, &error))?;
    let in_the_way = || problem(format!("`{path}` cannot be written: another value is in its place"));
    put(document.as_table_mut(), &parts, value).ok_or_else(in_the_way)?;
    Ok(document.to_string())
}

/// Returns a value as TOML; [`Item::None`] for headers.
fn item(kind: ValueKind, text: &str, value: Value) -> Item {
    match value {
        // A shell line is stored as given, a list of words as a list.
        Value::List(words) if kind == ValueKind::Command && words == ["sh", "-c", text] => toml_edit::value(text),
        Value::Text(it) => toml_edit::value(it),
        Value::Flag(it) => toml_edit::value(it),
        // TOML integers are 64 bits with a sign.
        Value::Whole(it) => toml_edit::value(i64::try_from(it).unwrap_or(i64::MAX)),
        Value::Number(it) => toml_edit::value(it),
        Value::Duration(it) => toml_edit::value(written(it)),
        Value::List(items) => toml_edit::value(Array::from_iter(items)),
        Value::Rules(items) => toml_edit::value(items.into_iter().map(|it| it.rule).collect::<Array>()),
        // Only a proxy without a password gets here; other secrets were refused.
        Value::Secret(it) => toml_edit::value(it.expose()),
        Value::Headers(_) | Value::Variables(_) => Item::None,
    }
}

/// Puts `item` at `path` below `table`. `None` if something else is in the way.
fn put(table: &mut dyn TableLike, path: &[String], item: Option<Item>) -> Option<()> {
    let (first, rest) = path.split_first()?;
    if rest.is_empty() {
        match (table.get_mut(first), item) {
            (_, None) => {
                table.remove(first);
            }
            (Some(Item::Value(old)), Some(Item::Value(mut new))) => {
                // A comment after the value belongs to the line.
                *new.decor_mut() = old.decor().clone();
                *old = new;
            }
            (Some(Item::Table(_) | Item::ArrayOfTables(_)), Some(_)) => return None,
            (Some(_) | None, Some(item)) => {
                table.insert(first, item);
            }
        }
        return Some(());
    }
    if !table.contains_key(first) {
        if item.is_none() {
            return Some(());
        }
        let mut inner = Table::new();
        // Implicit, so that `[providers.x]` creates no `[providers]`.
        inner.set_implicit(true);
        table.insert(first, Item::Table(inner));
    }
    let is_removal = item.is_none();
    let inner = table.get_mut(first)?.as_table_like_mut()?;
    put(inner, rest, item)?;
    // A table that has nothing left goes with its last value, unless it carries a comment.
    let is_bare = inner.is_empty() && table.get(first).is_some_and(|it| !has_comment(it));
    if is_removal && is_bare {
        table.remove(first);
    }
    Some(())
}

fn has_comment(item: &Item) -> bool {
    let decor = item.as_table().map(Table::decor);
    let texts = decor.into_iter().flat_map(|it| [it.prefix(), it.suffix()]).flatten();
    texts.filter_map(|it| it.as_str()).any(|it| it.contains('#'))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;
    use crate::config::{CommandLineSettings, Environment, KEYS, Layer, merge};

    fn edit(text: &str, path: &str, value: Option<&str>) -> Result<String, String> {
        let source = SourceText {
            path: Path::new("config.toml"),
            text,
        };
        set(&source, path, value).map_err(|it| it.to_string())
    }

    #[test]
    fn a_value_is_set_and_the_rest_stays() {
        for (sentence, text, path, value, expected) in [
            ("into nothing", "", "theme", Some("owl"), "theme = \"owl\"\n"),
            (
                "in its place, with its comments",
                "# mine\ntheme = 'owl' # at night\n\nmouse = false\n",
                "theme",
                Some("sheaf-light"),
                "# mine\ntheme = \"sheaf-light\" # at night\n\nmouse = false\n",
            ),
            (
                "at the top, before the tables",
                "mouse = false\n\n[serve] # for all\nlisten = 'x:1'\n",
                "mode",
                Some("Plan"),
                "mouse = false\nmode = \"plan\"\n\n[serve] # for all\nlisten = 'x:1'\n",
            ),
            (
                "into a table of a chosen name",
                "",
                "providers.local.base_url",
                Some("http://localhost:1/v1/"),
                "[providers.local]\nbase_url = \"http://localhost:1/v1\"\n",
            ),
            (
                "into an inline table",
                "gateway = { url = 'https://a' } # ours\n",
                "gateway.url",
                Some("https://b"),
                "gateway = { url = \"https://b\" } # ours\n",
            ),
            (
                "under a name with dots",
                "",
                "models.'gpt-4.1'.window",
                Some("7"),
                "[models.\"gpt-4.1\"]\nwindow = 7\n",
            ),
            (
                "as a line for the shell",
                "",
                "providers.a.key_command",
                Some("pass show a | head -1"),
                "[providers.a]\nkey_command = \"pass show a | head -1\"\n",
            ),
            (
                "as a list of words",
                "",
                "providers.a.key_command",
                Some("[\"pass\", \"show\"]"),
                "[providers.a]\nkey_command = [\"pass\", \"show\"]\n",
            ),
            (
                "as a list",
                "",
                "serve.allow_host",
                Some("a, b"),
                "[serve]\nallow_host = [\"a\", \"b\"]\n",
            ),
            (
                "as a duration",
                "",
                "serve.linger",
                Some("120s"),
                "[serve]\nlinger = \"2m\"\n",
            ),
            (
                "away",
                "theme = 'owl'\nmouse = false\n",
                "theme",
                None,
                "mouse = false\n",
            ),
            (
                "away, with its table",
                "[providers.a]\nkey_file = 'x'\n\n[ui]\n",
                "providers.a.key_file",
                None,
                "\n[ui]\n",
            ),
            (
                "away, from a table with a comment",
                "# mine\n[providers.a]\nkey_file = 'x'\n",
                "providers.a.key_file",
                None,
                "# mine\n[providers.a]\n",
            ),
            (
                "away, where it is not",
                "mouse = false\n",
                "gateway.url",
                None,
                "mouse = false\n",
            ),
        ] {
            assert_eq!(edit(text, path, value), Ok(expected.to_owned()), "{sentence}");
        }
    }

    #[test]
    fn what_would_be_wrong_is_not_written() {
        for (text, path, value, expected) in [
            (
                "",
                "them",
                "x",
                "config.toml: unknown key `them`\n  did you mean `theme`?",
            ),
            (
                "",
                "mode",
                "x",
                "config.toml: `mode`: `x` is not among its values\n  one of agent, plan, ask, debug",
            ),
            (
                "",
                "providers.a.api_key",
                "sk-hidden",
                "config.toml: `providers.a.api_key` is a secret and is not written into the settings\n  put it in a \
                 separate file or a password store: key_file, key_command, token_file, token_command",
            ),
            (
                "",
                "gateway.headers",
                "a=b",
                "config.toml: `gateway.headers`: headers are a table; write one line per header in config.toml",
            ),
            (
                "gateway = 3\n",
                "gateway.url",
                "https://a",
                "config.toml: `gateway.url` cannot be written: another value is in its place",
            ),
            (
                "[theme]\na = 1\n",
                "theme",
                "owl",
                "config.toml: `theme` cannot be written: another value is in its place",
            ),
        ] {
            assert_eq!(edit(text, path, Some(value)), Err(expected.to_owned()), "{path}");
        }
        let broken = edit("mouse = \n", "theme", Some("owl")).expect_err("it cannot be read");
        assert!(
            broken.starts_with("config.toml:1:") && broken.ends_with("nothing was written"),
            "{broken}"
        );
    }

    #[test]
    fn an_entry_is_added_to_a_list_and_what_stands_there_stays() {
        for (sentence, text, expected) in [
            ("into nothing", "", "[approvals]\nallow = [\"Shell(a, b)\"]\n"),
            (
                "beside others",
                "[approvals]\nallow = ['Shell(x)'] # mine\n",
                "[approvals]\nallow = ['Shell(x)', \"Shell(a, b)\"] # mine\n",
            ),
            (
                "below others, with their comments",
                "[approvals]\nallow = [\n    # old\n    'Shell(x)', # why\n    { rule = 'Shell(y)', match = ['y z'] },\n]\n",
                "[approvals]\nallow = [\n    # old\n    'Shell(x)', # why\n    { rule = 'Shell(y)', match = ['y z'] },\n    \"Shell(a, b)\",\n]\n",
            ),
            (
                "into an empty list",
                "approvals.allow = []\n",
                "approvals.allow = [\"Shell(a, b)\"]\n",
            ),
            (
                "where it is",
                "approvals.allow = ['Shell(a, b)']\n",
                "approvals.allow = ['Shell(a, b)']\n",
            ),
            (
                "where it is, with examples",
                "approvals.allow = [{ rule = 'Shell(a, b)', match = ['a, b'] }]\n",
                "approvals.allow = [{ rule = 'Shell(a, b)', match = ['a, b'] }]\n",
            ),
        ] {
            let source = SourceText {
                path: Path::new("config.toml"),
                text,
            };
            let found = with_entry(&source, "approvals.allow", "Shell(a, b)").map_err(|it| it.to_string());
            assert_eq!(found, Ok(expected.to_owned()), "{sentence}");
        }
        for text in ["approvals.allow = 'x'\n", "approvals.allow = [\n", "approvals = 3\n"] {
            let source = SourceText {
                path: Path::new("config.toml"),
                text,
            };
            assert!(with_entry(&source, "approvals.allow", "Shell(a)").is_err(), "{text}");
        }
    }

    #[test]
    fn a_rule_that_was_added_holds_at_the_next_start() {
        let folder = tempfile::tempdir().expect("a folder");
        let paths = Paths::under(folder.path());
        for _ in 0..2 {
            append(&paths, "approvals.allow", "Shell(git push)").expect("stored");
            append(&paths, "approvals.allow", "Read(/a, b/**)").expect("stored");
        }
        let (settings, problems) =
            super::super::load(&paths, None, &Environment::default(), &CommandLineSettings::default());
        assert_eq!(problems, []);
        let rules: Vec<_> = settings.approvals.allow.iter().map(|it| it.rule.as_str()).collect();
        assert_eq!(rules, ["Shell(git push)", "Read(/a, b/**)"]);
    }

    #[test]
    fn a_setting_is_stored_for_the_next_start() {
        let folder = tempfile::tempdir().expect("a folder");
        let paths = Paths::under(folder.path());
        let next = || {
            let (settings, problems) =
                super::super::load(&paths, None, &Environment::default(), &CommandLineSettings::default());
            assert_eq!(problems, []);
            (settings.theme, settings.provider)
        };
        store(&paths, "theme", Some("owl")).expect("stored");
        store(&paths, "provider", Some("ollama")).expect("stored");
        assert_eq!(next(), ("owl".to_owned(), Some("ollama".to_owned())));
        store(&paths, "theme", None).expect("removed");
        assert_eq!(next(), ("auto".to_owned(), Some("ollama".to_owned())));
        assert!(matches!(
            store(&paths, "mode", Some("x")),
            Err(SettingsWriteError::Wrong(_))
        ));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_set_is_read_or_refused(
            key in prop::sample::select(KEYS.iter().map(|it| it.path.as_str()).collect::<Vec<_>>()),
            value in prop::sample::select(vec!["1", "true", "60s", "owl", "a,b", "https://x.example", "plan", "", "é\"'\\"]),
            name in "[a-zé.\"' ]{1,6}",
        ) {
            let quoted = format!("\"{}\"", name.replace(['"', '\''], "_"));
            let path = key.replace('*', &quoted);
            let text = "# kept\nmouse = false # kept too\n[ui]\noutput_rows = 3\n";
            if let Ok(changed) = edit(text, &path, Some(value)) {
                prop_assert!(changed.contains("# kept\n") && changed.contains("# kept too\n"));
                let file = SettingsFile { path: "config.toml".into(), text: changed.clone(), is_readable_by_others: false };
                let (settings, _) = merge(Some(&file), None, &Environment::default(), &CommandLineSettings::default());
                let flat = split_path(&path).join(".");
                // A provider that nobody knows is told of and dropped again.
                prop_assert!(key == "provider" || settings.origin(&flat).layer == Layer::User, "{}", changed);
            }
        }
    }
}
