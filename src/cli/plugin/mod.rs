//! `sheaf plugin`: adds, lists, updates and removes plugins.
//!
//! A plugin is copied whole into the folder of data, so that it stays what it was when the user said yes. Nothing of it runs
//! here: its parts take effect in the next conversation.

mod fetch;

use std::{
    fs,
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

use self::fetch::Staged;
use super::{
    CliContext, UsageError,
    arguments::{Plugin as Arguments, PluginTask, TargetArguments},
    code, complain, runtime, say,
};
use crate::{
    extensions::{Plugin, PluginEntry, PluginIndex, PluginSource, plugin_contents, read_plugin},
    os::file::{self, Access},
    text::visible::visible_line,
};

/// Digits of a commit that are shown.
const DIGITS: usize = 12;
/// Changed files of an update that are listed.
const MOST_CHANGED: usize = 50;

pub fn run(it: &Arguments) -> Result<u8> {
    let base = CliContext::of(&it.common, &TargetArguments::default())?;
    let store = Plugins::open(&base.paths.data)?;
    match &it.ask {
        PluginTask::Add {
            source,
            reference,
            path,
            yes,
        } => store.add(&source_of(source, reference.as_deref(), path.as_deref())?, *yes),
        PluginTask::List => Ok(store.list()),
        PluginTask::Update { names, yes } => store.update(names, *yes),
        PluginTask::Remove { names } => store.remove(names),
    }
}

/// The place that a word on the command line means.
fn source_of(written: &str, reference: Option<&str>, path: Option<&str>) -> Result<PluginSource> {
    let usage = |text: String| anyhow::Error::from(UsageError(text));
    let is_address = written.contains("://") || is_scp(written);
    if is_address {
        if let Some(why) = fetch::refused_address(written) {
            return Err(usage(why));
        }
        if let Some(reference) = reference.filter(|it| !fetch::is_reference(it)) {
            return Err(usage(format!("`{reference}` is no branch, tag or commit")));
        }
        let is_inner = |it: &str| !it.is_empty() && it.split('/').all(|part| !matches!(part, "" | "." | ".." | ".git"));
        if let Some(path) = path.filter(|it| !is_inner(it)) {
            return Err(usage(format!("--path {path} is no folder in a repository")));
        }
        return Ok(PluginSource::Git {
            url: written.to_owned(),
            reference: reference.map(str::to_owned),
            path: path.map(str::to_owned),
        });
    }
    if reference.is_some() {
        return Err(usage("--ref is for an address of git".to_owned()));
    }
    let folder = path.map_or_else(|| PathBuf::from(written), |it| Path::new(written).join(it));
    let is_short = written.split('/').count() == 2 && !written.starts_with(['.', '/', '~']);
    match folder.canonicalize() {
        Ok(folder) if folder.is_dir() => Ok(PluginSource::Folder { path: folder }),
        Ok(_) => Err(usage(format!("{} is no folder", folder.display()))),
        Err(_) if is_short => Err(usage(format!(
            "there is no folder {written}\n  sheaf plugin add https://github.com/{written}   adds a repository of GitHub"
        ))),
        Err(error) => Err(usage(format!("{}: {error}", folder.display()))),
    }
}

/// `user@host:path`
fn is_scp(written: &str) -> bool {
    let host = written.split_once(':').map_or("", |it| it.0);
    host.contains('@') && !host.contains('/')
}

/// The plugins of the user.
struct Plugins {
    data: PathBuf,
    index: PluginIndex,
    /// Held while they may change.
    _lock: Option<file::Lock>,
}

impl Plugins {
    fn open(data: &Path) -> Result<Self> {
        let folder = PluginIndex::folder(data);
        file::private_folder(&folder)?;
        let lock = file::lock_soon(&data.join("plugins.lock"))?;
        let index = PluginIndex::load(data).map_err(anyhow::Error::msg)?;
        Ok(Self {
            data: data.to_owned(),
            index,
            _lock: lock,
        })
    }

    fn folder(&self, name: &str) -> PathBuf {
        PluginIndex::folder(&self.data).join(name)
    }

    fn save(&self) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.index)?;
        Ok(file::write(
            &PluginIndex::path(&self.data),
            text.as_bytes(),
            Access::Private,
        )?)
    }

    fn fetch(&self, source: &PluginSource) -> Result<(Staged, Plugin)> {
        let folder = PluginIndex::folder(&self.data);
        let staged = runtime(false)?.block_on(fetch::fetch(source, &folder))?;
        let plugin = read_plugin(&staged.root, &source.last_part()).map_err(anyhow::Error::msg)?;
        Ok((staged, plugin))
    }

    fn add(mut self, source: &PluginSource, yes: bool) -> Result<u8> {
        let (staged, plugin) = self.fetch(source)?;
        if self.index.get(&plugin.name).is_some() {
            bail!(
                "a plugin `{name}` is there already\n  sheaf plugin update {name}   fetches it again\n  \
                 sheaf plugin remove {name}   removes it",
                name = plugin.name
            );
        }
        say(&format!("{}\n", told(&plugin, source, &staged.revision)));
        if !is_wanted("add it?", yes)? {
            return Ok(code::FAILED);
        }
        self.put(&plugin, source, staged)?;
        say(&format!(
            "added {}; it takes part from the next conversation on\n",
            plugin.name
        ));
        Ok(code::OK)
    }

    /// Puts the files in their place, and lists the plugin.
    fn put(&mut self, plugin: &Plugin, source: &PluginSource, staged: Staged) -> Result<()> {
        let place = self.folder(&plugin.name);
        let entry = PluginEntry {
            name: plugin.name.clone(),
            source: source.clone(),
            revision: staged.revision.clone(),
            content: staged.content.clone(),
        };
        staged.move_to(&place)?;
        self.index.plugins.retain(|it| it.name != plugin.name);
        self.index.plugins.push(entry);
        self.index.plugins.sort_by(|a, b| a.name.cmp(&b.name));
        self.save()
    }

    fn list(&self) -> u8 {
        if self.index.plugins.is_empty() {
            complain("no plugins\n  sheaf plugin add FOLDER|URL   adds one");
        }
        for entry in &self.index.plugins {
            let place = self.folder(&entry.name);
            match read_plugin(&place, &entry.name) {
                Ok(plugin) => say(&format!("{}\n", told(&plugin, &entry.source, &entry.revision))),
                Err(why) => complain(&format!("{}: {why}", entry.name)),
            }
            let is_same = fetch::content(&place).is_ok_and(|it| it == entry.content);
            if !is_same {
                complain(&format!(
                    "the files of {name} have changed since it was added\n  sheaf plugin update {name}   fetches it again",
                    name = entry.name
                ));
            }
        }
        code::OK
    }

    fn update(mut self, names: &[String], yes: bool) -> Result<u8> {
        let entries = self.named(names)?;
        let mut worst = code::OK;
        for entry in entries {
            let (staged, plugin) = match self.fetch(&entry.source) {
                Ok(found) => found,
                Err(error) => {
                    complain(&format!("{}: {}", entry.name, super::chain(&error)));
                    worst = code::FAILED;
                    continue;
                }
            };
            let place = self.folder(&entry.name);
            let is_gone = fetch::is_gone(&place);
            let now = fetch::content(&place).unwrap_or_default();
            if staged.content == now {
                say(&format!("{} is up to date ({})\n", entry.name, short(&entry.revision)));
                continue;
            }
            if plugin.name != entry.name {
                complain(&format!(
                    "{}: it is called `{}` now; remove it and add it again",
                    entry.name, plugin.name
                ));
                worst = code::FAILED;
                continue;
            }
            let before = read_plugin(&place, &entry.name);
            let before = before.map(|it| plugin_contents(&it)).unwrap_or_default();
            let changed = match fetch::changed_files(&place, &staged.root) {
                Ok(changed) => changed,
                Err(error) => {
                    complain(&format!(
                        "the files of {name} cannot be compared: {}\n  sheaf plugin remove {name}   removes it, and you can add it again",
                        super::chain(&error),
                        name = entry.name,
                    ));
                    worst = code::FAILED;
                    continue;
                }
            };
            let (old, new) = (short(&entry.revision), short(&staged.revision));
            let what = if is_gone {
                format!(
                    "{} is gone from {}; {new} is installed anew",
                    entry.name,
                    place.display()
                )
            } else {
                format!("{} {old} → {new}", entry.name)
            };
            say(&format!(
                "{what}\n{}{}",
                differences(&before, &plugin_contents(&plugin)),
                changed_texts(&changed)
            ));
            let (question, done) = if is_gone {
                ("install it anew?", "installed anew:")
            } else {
                ("update it?", "updated")
            };
            if !is_wanted(question, yes)? {
                worst = code::FAILED;
                continue;
            }
            self.put(&plugin, &entry.source, staged)?;
            say(&format!("{done} {}\n", entry.name));
        }
        Ok(worst)
    }

    fn remove(mut self, names: &[String]) -> Result<u8> {
        for entry in self.named(names)? {
            // First from the list: what is only half removed is not loaded.
            self.index.plugins.retain(|it| it.name != entry.name);
            self.save()?;
            let place = self.folder(&entry.name);
            if place.exists() {
                fs::remove_dir_all(&place).with_context(|| format!("{} cannot be removed", place.display()))?;
            }
            say(&format!("removed {}\n", entry.name));
        }
        Ok(code::OK)
    }

    /// The plugins with these names; all of them without a name.
    fn named(&self, names: &[String]) -> Result<Vec<PluginEntry>> {
        if names.is_empty() {
            return Ok(self.index.plugins.clone());
        }
        let find = |name: &String| {
            let known: Vec<&str> = self.index.plugins.iter().map(|it| it.name.as_str()).collect();
            let hint = if known.is_empty() {
                "no plugins were added".to_owned()
            } else {
                format!("there are: {}", known.join(", "))
            };
            let found = self.index.get(name).cloned();
            found.with_context(|| format!("there is no plugin `{name}`\n  {hint}"))
        };
        names.iter().map(find).collect()
    }
}

/// A plugin for people: where it is from and what it brings.
fn told(plugin: &Plugin, source: &PluginSource, revision: &str) -> String {
    let version = if plugin.version.is_empty() {
        String::new()
    } else {
        format!(" {}", plugin.version)
    };
    let mut lines = vec![format!(
        "{}{version} ({})\n  from {} at {}",
        plugin.name,
        plugin.form.name(),
        source.shown(),
        short(revision)
    )];
    if !plugin.about.is_empty() {
        lines.push(format!("  {}", plugin.about));
    }
    let contents = plugin_contents(plugin);
    if contents.is_empty() {
        lines.push("  nothing that sheaf can use".to_owned());
    }
    lines.extend(contents.iter().map(|it| format!("  {}", row(it))));
    lines.iter().map(|it| visible_lines(it)).collect::<Vec<_>>().join("\n")
}

fn row((kind, what): &(&'static str, String)) -> String {
    format!("{kind}  {what}")
}

/// What somebody is asked about is shown as it is, also what a terminal would not show.
fn visible_lines(text: &str) -> String {
    let lines = text.split('\n').map(|it| visible_line(it).into_string());
    lines.collect::<Vec<_>>().join("\n")
}

/// The lines of the contents that are new or gone; one that has changed is both.
fn differences(before: &[(&'static str, String)], after: &[(&'static str, String)]) -> String {
    let gone = before
        .iter()
        .filter(|it| !after.contains(it))
        .map(|it| format!("- {}", row(it)));
    let new = after
        .iter()
        .filter(|it| !before.contains(it))
        .map(|it| format!("+ {}", row(it)));
    gone.chain(new)
        .map(|it| format!("  {}\n", visible_lines(&it)))
        .collect()
}

/// The lines of files that are new, removed or changed.
fn changed_texts(files: &[(PathBuf, &str)]) -> String {
    let lines = files.iter().take(MOST_CHANGED);
    let mut lines: String = lines
        .map(|(path, change)| format!("  {change:<7}  {}\n", visible_lines(&path.to_string_lossy())))
        .collect();
    if files.len() > MOST_CHANGED {
        lines.push_str(&format!("  and {} more files\n", files.len() - MOST_CHANGED));
    }
    lines
}

fn short(revision: &str) -> &str {
    revision.get(..DIGITS).unwrap_or(revision)
}

/// Asks on standard input, unless the user has said yes.
fn is_wanted(question: &str, yes: bool) -> Result<bool> {
    if yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        return Err(
            UsageError("sheaf cannot ask you here\n  --yes   says yes to what is listed above".to_owned()).into(),
        );
    }
    complain(&format!("{question} [y/N]"));
    let mut answer = String::new();
    Ok(io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_folder_or_an_address_of_git() {
        let source = |written: &str, reference: Option<&str>, path: Option<&str>| {
            source_of(written, reference, path)
                .map(|it| it.shown())
                .map_err(|it| it.to_string())
        };
        for (written, reference, path, want) in [
            (
                "https://x.y/a/b",
                Some("v1"),
                Some("plugins/c"),
                "https://x.y/a/b#v1 (plugins/c)",
            ),
            ("git@x.y:a/b.git", None, None, "git@x.y:a/b.git"),
            ("ssh://git@x.y/a", None, None, "ssh://git@x.y/a"),
        ] {
            assert_eq!(source(written, reference, path), Ok(want.to_owned()));
        }
        for (written, reference, path, want) in [
            ("http://x.y/a", None, None, "is not encrypted"),
            ("git://x.y/a", None, None, "is not encrypted"),
            ("ext::sh -c x ://", None, None, "is no address"),
            ("https://me:secret@x.y/a", None, None, "holds a password"),
            ("-oProxyCommand=x@y:z", None, None, "is no address"),
            ("ssh://-oProxyCommand=x/a", None, None, "is no address"),
            ("https://x.y/a", Some("--upload-pack=x"), None, "is no branch"),
            ("https://x.y/a", Some("a:b"), None, "is no branch"),
            ("https://x.y/a", None, Some("../b"), "is no folder in a repository"),
            ("https://x.y/a", None, Some("/etc"), "is no folder in a repository"),
            ("owner/name", None, None, "https://github.com/owner/name"),
            ("/no/such/folder", None, None, "No such file"),
            ("/tmp", Some("main"), None, "--ref is for"),
        ] {
            let found = source(written, reference, path).unwrap_err();
            assert!(found.contains(want), "{written}: {found}");
            assert!(!found.contains("secret"), "{found}");
        }
    }
}
