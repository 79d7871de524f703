//! The reference of all keys as text, and the origin of each current value.

use std::{collections::BTreeSet, fmt::Write};

use super::{KEYS, Key, Origin, Settings, settings::FOREIGN_VARIABLES};

/// Returns every key with its kind, default, variable and description, as Markdown.
pub fn reference() -> String {
    let mut text = String::from(
        "# Configuration\n\n\
         From weakest to strongest: defaults, `$XDG_CONFIG_HOME/sheaf/config.toml`, `.sheaf/config.toml` of a trusted\n\
         workspace, the environment, flags. A project may set only what is marked ◇.\n",
    );
    let mut settings = Settings::default();
    let mut section = None;
    for key in KEYS.iter() {
        let here = key.path.rsplit_once('.').map(|it| it.0);
        if section != Some(here) {
            section = Some(here);
            let title = here.map_or_else(
                || "## Top level".to_owned(),
                |it| format!("## [{}]", it.replace('*', "<name>")),
            );
            let _ = write!(text, "\n{title}\n\n");
        }
        let name = key
            .path
            .rsplit_once('.')
            .map_or(key.path.as_str(), |it| it.1)
            .replace('*', "<name>");
        let default = (key.slot)(&mut settings, "").show(key.kind);
        let default = default.map_or_else(|| "unset".to_owned(), |it| format!("`{it}`"));
        let mark = if key.in_project { " ◇" } else { "" };
        let _ = writeln!(
            text,
            "- `{name}`{mark}: {}; default {default}{}",
            key.kind.describe(),
            variables(key)
        );
        let _ = writeln!(text, "  {}", key.about);
    }
    text
}

/// Returns the descriptions of all keys as Fluent messages, which is what a language translates.
pub fn messages() -> String {
    let mut text = String::from("\n## Settings, as /config describes them\n\n");
    let mut seen = BTreeSet::new();
    for key in KEYS.iter().filter(|it| seen.insert(it.about)) {
        let _ = write!(text, "{} = ", key.text_id());
        for letter in key.about.chars() {
            let _ = match letter {
                '{' | '}' => write!(text, "{{\"{letter}\"}}"),
                letter => write!(text, "{letter}"),
            };
        }
        text.push('\n');
    }
    text
}

fn variables(key: &Key) -> String {
    let foreign = FOREIGN_VARIABLES.iter().filter(|it| {
        let mut parts = it.1.split('.');
        key.parts()
            .all(|part| parts.next().is_some_and(|it| part == "*" || part == it))
            && parts.next().is_none()
    });
    let foreign = foreign.map(|it| format!("`{}` for {}", it.0, it.1));
    let all: Vec<String> = key
        .variable
        .as_ref()
        .map(|it| format!("`{it}`"))
        .into_iter()
        .chain(foreign)
        .collect();
    if all.is_empty() {
        String::new()
    } else {
        format!("; {}", all.join(", "))
    }
}

/// A current value and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedValue {
    /// Dotted path of the key, with actual names instead of `*`.
    pub path: String,
    /// As it would be written in a file, with secrets hidden. `None` if unset.
    pub value: Option<String>,
    pub origin: Origin,
}

/// Returns every key with its current value, in the order of the reference.
pub fn explain(settings: &Settings) -> Vec<ExplainedValue> {
    // Slots give write access, so this works on a copy.
    let mut copy = settings.clone();
    let mut found = Vec::new();
    for key in KEYS.iter() {
        let names: Vec<String> = match key.parts().next() {
            Some("providers") => settings.providers.keys().cloned().collect(),
            Some("models") => settings.models.keys().cloned().collect(),
            Some("tools") => settings.tools.keys().cloned().collect(),
            Some("hooks") => settings.hooks.keys().cloned().collect(),
            Some("lint") => settings.lint.keys().cloned().collect(),
            Some("mcp") => settings.mcp.keys().cloned().collect(),
            Some("lsp") => settings.lsp.keys().cloned().collect(),
            Some("prompt") if key.path.ends_with('*') => settings.prompt.replace.keys().cloned().collect(),
            Some(_) | None => vec![String::new()],
        };
        for name in names {
            let path = key.path.replace('*', &name);
            found.push(ExplainedValue {
                value: (key.slot)(&mut copy, &name).show(key.kind),
                origin: settings.origin(&path).clone(),
                path,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CommandLineSettings, Environment, SettingsFile, merge};

    #[test]
    fn a_table_of_the_users_names_is_explained_by_those_names_only() {
        let paths = |text: &str| -> Vec<String> {
            let file = SettingsFile::of_user("config.toml", text);
            let (settings, _) = merge(
                Some(&file),
                None,
                &Environment::default(),
                &CommandLineSettings::default(),
            );
            explain(&settings).into_iter().map(|it| it.path).collect()
        };
        for path in paths("").iter().chain(&paths("model = ' '")) {
            assert!(path.split('.').all(|it| !it.is_empty() && it != "*"), "{path}");
        }
        let named = paths("[tools.grep]\nenabled = false\n[lint]\nrust = ['x']");
        assert!(named.contains(&"tools.grep.enabled".to_owned()) && named.contains(&"lint.rust".to_owned()));
    }

    #[test]
    fn an_explanation_names_value_and_origin() {
        let file = SettingsFile {
            path: "config.toml".into(),
            text: "theme = 'owl'\n[providers.groq]\napi_key = 'hidden'\n".to_owned(),
            is_readable_by_others: false,
        };
        let variables = Environment::from_iter([("SHEAF_MODE", "ask")]);
        let (settings, _) = merge(Some(&file), None, &variables, &CommandLineSettings::default());
        let rows: Vec<String> = explain(&settings)
            .iter()
            .map(|it| {
                format!(
                    "{} = {} ({})",
                    it.path,
                    it.value.as_deref().unwrap_or("unset"),
                    it.origin
                )
            })
            .collect();
        for expected in [
            "theme = \"owl\" (config.toml:1:9)",
            "mode = \"ask\" ($SHEAF_MODE)",
            "model = unset (default)",
            "providers.groq.api_key = \"***\" (config.toml:3:11)",
            "providers.groq.key_file = unset (default)",
            "providers.groq.base_url = \"https://api.groq.com/openai/v1\" (default)",
        ] {
            assert!(rows.iter().any(|it| it == expected), "{expected} in {rows:#?}");
        }
    }
}
