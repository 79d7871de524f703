//! `sheaf sessions` and `sheaf get`: list, show, export, import, rename and remove stored conversations; print
//! documents.

use std::{
    collections::BTreeSet,
    io::{self, IsTerminal as _},
    path::Path,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result, bail};
use regex::bytes::Regex;
use serde_json::json;

use super::{
    CliContext,
    arguments::{DocumentFormatArgument, ExportFormatArgument, Get, Session as Ask, Sessions, TargetArguments},
    cache::Cache,
    code, complain, printing_store, say, searching,
    serve::KEPT,
};
use crate::{
    export::{self, DocumentFormat, ExportFormat, ExportedConversation, RedactionRules},
    journal::{
        Log,
        file::{FileFinding, Listed, Session, Store, Wrong},
    },
    link::replay::Recording,
    os::file::{self, Access},
    print::harmless,
    protocol::{Address, ConversationId, Entry, Event, Title, Turn},
    sandbox::Checkpoints,
    text::{Sanitized, figure},
    tui::now_ms,
};

/// Maximum size of an imported file, in bytes.
pub(super) const IMPORT_BYTES: u64 = 1 << 30;

pub fn run(asked: &Sessions) -> Result<u8> {
    let base = CliContext::of(&asked.common, &TargetArguments::default())?;
    let store = printing_store(&base);
    match &asked.ask {
        Ask::List { all, archived, json } => {
            let here = base.workspace.to_string_lossy();
            let mut listed = listed(&base, &store)?;
            listed.retain(|it| *archived || !it.is_archived);
            let wanted: Vec<_> = listed
                .iter()
                .filter(|it| *all || it.session.workspace == here)
                .collect();
            for it in &wanted {
                if *json {
                    say(&object(it));
                } else {
                    say(&row(it, *all));
                }
            }
            if wanted.is_empty() && !*json {
                complain(&if *all || listed.is_empty() {
                    "no saved conversations".to_owned()
                } else {
                    format!(
                        "there are none in {here}\n  sheaf sessions list --all   shows {}",
                        listed.len()
                    )
                });
            }
        }
        Ask::Search { query, all, json } => return searching::run(&base, &store, &query.join(" "), *all, *json),
        Ask::Show { session, tree: true } => say(&tree(&whole(&base, &store, session)?)),
        Ask::Show { session, tree: false } => say(&whole(&base, &store, session)?.write(ExportFormat::Markdown)),
        Ask::Export {
            session,
            form,
            output,
            all_branches,
            redact,
        } => {
            let form = form.map_or_else(|| form_of(output.as_deref()), form_named);
            let rules = base.settings.export.redact.iter().chain(redact).map(String::as_str);
            let whole = whole(&base, &store, session)?.redacted(&RedactionRules::new(rules)?);
            let text = if *all_branches {
                whole.with_branches(form)
            } else {
                whole.write(form)
            };
            match output {
                Some(path) => file::write(path, text.as_bytes(), Access::Shared)?,
                None => print(&text, form),
            }
        }
        Ask::Import { files } => {
            for path in files {
                let session = import(&base, &store, path).with_context(|| format!("{}", path.display()))?;
                say(&format!("{session}\n"));
            }
        }
        Ask::Rename { session, title } => {
            let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
            if title.is_empty() {
                bail!("the title is empty");
            }
            let id = find(&base, &store, session)?.session.id;
            let resumed = store.resume_to_change(&id, now_ms())?;
            resumed.log.append(
                now_ms(),
                Event::Title(Title {
                    text: title,
                    by_user: true,
                }),
            );
            resumed.recorder.finish()?;
        }
        Ask::Archive { sessions } => mark(&base, &store, sessions, true)?,
        Ask::Unarchive { sessions } => mark(&base, &store, sessions, false)?,
        Ask::Rm { sessions, yes } => {
            let found = all_of(&base, &store, sessions)?;
            if !*yes && !io::stdin().is_terminal() {
                complain(
                    "deleting cannot be undone, and sheaf cannot ask you here\n  sheaf sessions rm --yes …   deletes \
                     without asking",
                );
                return Ok(code::USAGE);
            }
            if !*yes && !is_wanted(&found) {
                return Ok(code::FAILED);
            }
            let mut cache = Cache::open(&base.paths.cache);
            for it in found {
                remove(&store, &base.paths.state, &it.session.id)?;
                if let Some(cache) = &mut cache {
                    cache.forget(&it.session.id);
                }
            }
        }
        Ask::Doctor { repair } => return doctor(&base, &Store::new(base.paths.sessions()), *repair),
    }
    Ok(code::OK)
}

/// Returns all conversations; files that did not change are not read again.
pub(super) fn listed(base: &CliContext, store: &Store) -> Result<Vec<Listed>> {
    let mut cache = Cache::open(&base.paths.cache);
    searching::listed(cache.as_mut(), store).context("conversations cannot be listed")
}

/// The conversations of this workspace whose titles have these words, as lines of JSON.
pub(super) fn rows(base: &CliContext, store: &Store, words: &str) -> Result<String> {
    let here = base.workspace.to_string_lossy();
    let has = |it: &Listed| {
        let title = it.title.as_deref().unwrap_or_default().to_lowercase();
        words.split_whitespace().all(|word| title.contains(word))
    };
    let mut listed = listed(base, store)?;
    listed.retain(|it| !it.is_archived && it.session.workspace == here && has(it));
    Ok(listed.iter().take(50).map(object).collect())
}

/// Finds all of them before the first one is changed.
fn all_of(base: &CliContext, store: &Store, names: &[String]) -> Result<Vec<Listed>> {
    names.iter().map(|it| find(base, store, it)).collect()
}

fn mark(base: &CliContext, store: &Store, names: &[String], is_archived: bool) -> Result<()> {
    for it in all_of(base, store, names)? {
        store.archive(&it.session.id, is_archived)?;
    }
    Ok(())
}

/// Asks for confirmation on standard input.
fn is_wanted(found: &[Listed]) -> bool {
    for it in found {
        complain(row(it, true).trim_end());
    }
    let count = figure::count(found.len(), "conversation", "conversations");
    complain(&format!("delete {} permanently? [y/N]", count.as_str()));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

/// Removes a session for good, with its checkpoints unless another session belongs to the same conversation.
pub(super) fn remove(store: &Store, state: &Path, id: &str) -> Result<()> {
    let conversations = store.read(id).map(|it| conversations(&it.entries)).unwrap_or_default();
    store.remove(id)?;
    // Without the list, the checkpoints stay: other sessions may need them.
    let Ok(others) = store.list() else { return Ok(()) };
    for conversation in conversations {
        let is_shared = others.iter().any(|it| {
            let Ok(bytes) = file::read(&store.path_of(&it.session.id), IMPORT_BYTES) else {
                return true;
            };
            Regex::new(&regex::escape(conversation.as_str())).is_ok_and(|it| it.is_match(&bytes))
        });
        if !is_shared {
            Checkpoints::remove(&state.join(CHECKPOINTS), conversation.as_str());
        }
    }
    Ok(())
}

/// Returns the conversation ids that the answers name.
fn conversations(entries: &[Entry]) -> BTreeSet<ConversationId> {
    let named = entries.iter().filter_map(|it| match &it.event {
        Event::ResponseStart(start) => start.conversation_id.clone(),
        Event::Done(done) => done.conversation_id.clone(),
        _ => None,
    });
    named.collect()
}

/// Folder of checkpoints, below the state folder.
const CHECKPOINTS: &str = "checkpoints";
/// Age from which checkpoints without a session are removed. Newer ones may belong to a running conversation that is
/// not stored.
const FORGOTTEN: Duration = Duration::from_hours(7 * 24);

/// Examines and repairs the user's sessions and those of `serve`. Both may need the checkpoints.
fn doctor(base: &CliContext, store: &Store, repair: bool) -> Result<u8> {
    let served = Store::new(base.paths.state.join(KEPT));
    let mut stores = Vec::new();
    for (folder, store) in [("", store), (KEPT, &served)] {
        let examined = store
            .examine()
            .with_context(|| format!("{} cannot be read", store.folder().display()))?;
        stores.push((folder, store, examined));
    }
    let mut left = 0;
    let findings = stores
        .iter()
        .flat_map(|(folder, store, examined)| examined.findings.iter().map(move |it| (*folder, *store, it)));
    for (folder, store, finding) in findings.clone() {
        let does = match (finding.wrong.remedy(), repair) {
            (Some(remedy), false) => format!("--repair: {remedy}"),
            (Some(remedy), true) => match store.repair(finding, now_ms()) {
                Ok(()) => format!("repaired: {remedy}"),
                Err(error) => {
                    left += 1;
                    format!("not repaired: {error}")
                }
            },
            (None, _) => finding.wrong.comfort().to_owned(),
        };
        left += usize::from(!repair && finding.wrong.remedy().is_some());
        let file = Path::new(folder).join(&finding.file);
        say(&format!("{}\n  {}\n  {does}\n", file.display(), finding.wrong.words()));
    }
    let folder = base.paths.state.join(CHECKPOINTS);
    let is_known = |name: &str| {
        let mut known = stores.iter().flat_map(|it| &it.2.conversations);
        known.any(|it| Checkpoints::is_of(name, it.as_str()))
    };
    // A file that cannot be read may need any checkpoint.
    let is_riddle = |it: &FileFinding| matches!(it.wrong, Wrong::Unreadable(_) | Wrong::Newer);
    let is_all_known = !findings.clone().any(|it| is_riddle(it.2));
    let forgotten = |used: SystemTime| is_all_known && used.elapsed().is_ok_and(|it| it > FORGOTTEN);
    let orphans = Checkpoints::stores(&folder)
        .into_iter()
        .filter(|(name, _, used)| !is_known(name) && forgotten(*used));
    for (name, bytes, _) in orphans {
        if repair {
            Checkpoints::remove(&folder, &name);
        }
        left += usize::from(!repair);
        let does = if repair {
            "repaired: removed"
        } else {
            "--repair: remove it"
        };
        let bytes = figure::bytes(bytes);
        say(&format!(
            "{CHECKPOINTS}/{name}\n  {} of undo data without a conversation\n  {does}\n",
            bytes.as_str()
        ));
    }
    let sessions = stores.iter().map(|it| it.2.sessions).sum();
    let count = figure::count(sessions, "conversation", "conversations");
    let verdict = match (findings.clone().next().is_none(), left) {
        (true, 0) => "nothing is wrong".to_owned(),
        (_, 0) => "nothing left to repair".to_owned(),
        (_, left) => format!("{} to be repaired", figure::count(left, "thing", "things").as_str()),
    };
    say(&format!("{} checked: {verdict}\n", count.as_str()));
    Ok(if left == 0 { code::OK } else { code::FAILED })
}

/// Returns a line for each message, indented at each fork; `*` marks the current branch. An answer that continues on
/// another branch from its middle has its own line.
fn tree(whole: &ExportedConversation) -> String {
    let mut text = String::new();
    for fork in whole.transcript.tree() {
        let Some(exchange) = whole.transcript.exchange_of(fork.turn) else {
            continue;
        };
        let line = exchange
            .asked()
            .lines()
            .find(|it| !it.trim().is_empty())
            .unwrap_or_default();
        let line: String = line.chars().take(100).collect();
        let mark = if fork.is_here { '*' } else { ' ' };
        let way = "  ".repeat(fork.depth);
        let turn = exchange.turn.0;
        match fork.rest_from {
            Some(at) => {
                let number = exchange.response.number(at);
                text.push_str(&format!("{mark} {way}{turn}.{number}  the rest of this answer\n"));
            }
            None => text.push_str(&format!("{mark} {way}{turn}  {line}\n")),
        }
    }
    text
}

/// `sheaf get 7.3`.
pub fn get(asked: &Get) -> Result<u8> {
    let base = CliContext::of(&asked.common, &TargetArguments::default())?;
    let store = printing_store(&base);
    let (session, number) = asked.address.rsplit_once('#').unwrap_or(("last", &asked.address));
    let Some(address) = address(number) else {
        bail!("`{number}` is not an address\n  7.3 is document 3 of turn 7; SESSION#7.3 names another conversation");
    };
    let whole = whole(&base, &store, session)?;
    let Some((document, number)) = whole.document(address) else {
        let last = whole.transcript.exchanges.last().map_or(0, |it| it.turn.0);
        let turns = figure::count(last as usize, "turn", "turns");
        bail!("no document {address} in `{}`, which has {turns}", whole.title());
    };
    let form = match asked.form {
        DocumentFormatArgument::Json => DocumentFormat::Json,
        DocumentFormatArgument::Md => DocumentFormat::Markdown,
        DocumentFormatArgument::Text => DocumentFormat::Text,
        DocumentFormatArgument::Patch => DocumentFormat::Patch,
    };
    let Some(text) = export::format_document(document, number, form) else {
        bail!(
            "{address} is a {}, not an edit: it has no patch",
            document.kind.as_str()
        );
    };
    if matches!(asked.form, DocumentFormatArgument::Json) {
        put(&harmless(text));
    } else {
        say(&text);
    }
    Ok(code::OK)
}

/// Parses a document's address, `TURN.NUMBER`.
pub(super) fn address(text: &str) -> Option<Address> {
    let (turn, number) = text.split_once('.')?;
    Some(Address {
        turn: Turn(turn.parse().ok()?),
        number: number.parse().ok()?,
    })
}

fn whole(base: &CliContext, store: &Store, name: &str) -> Result<ExportedConversation> {
    let found = find(base, store, name)?;
    let stored = store.read(&found.session.id)?;
    let session = stored.session.clone();
    Ok(ExportedConversation::new(session, stored.closed()))
}

/// Finds a session by its id, the beginning of that (4 characters or more), its title, or `last` for the newest in this
/// workspace. Error: none or several match.
pub(super) fn find(base: &CliContext, store: &Store, name: &str) -> Result<Listed> {
    let mut listed = listed(base, store)?;
    if name == "last" {
        let here = base.workspace.to_string_lossy();
        let last = listed
            .into_iter()
            .find(|it| it.session.workspace == here && !it.is_archived);
        return last.with_context(|| format!("no conversation in {here}"));
    }
    if let Some(at) = listed.iter().position(|it| it.session.id == name) {
        return Ok(listed.swap_remove(at));
    }
    let is_meant = |it: &Listed| {
        let is_title = it.title.as_ref().is_some_and(|it| it.eq_ignore_ascii_case(name));
        is_title || (name.len() >= 4 && it.session.id.starts_with(name))
    };
    let mut found: Vec<_> = listed.into_iter().filter(is_meant).collect();
    if found.len() > 1 {
        let rows: String = found
            .iter()
            .take(10)
            .map(|it| format!("\n  {}", row(it, true).trim_end()))
            .collect();
        bail!("`{name}` matches {}:{rows}", found.len());
    }
    found
        .pop()
        .with_context(|| format!("no conversation `{name}`\n  sheaf sessions list --all   lists them all"))
}

fn row(it: &Listed, with_folder: bool) -> String {
    let title = it.title.as_deref().unwrap_or("(nothing was said)");
    let title: String = title
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(60)
        .collect();
    let ago = figure::ago(now_ms().saturating_sub(it.changed));
    let turns = figure::count(it.turns as usize, "turn", "turns");
    let mut folder = if with_folder && !it.session.workspace.is_empty() {
        format!("  {}", it.session.workspace)
    } else {
        String::new()
    };
    if it.is_archived {
        folder.push_str("  (archived)");
    }
    format!(
        "{}  {:>14}  {:>9}  {title}{folder}\n",
        it.session.id,
        ago.as_str(),
        turns.as_str()
    )
}

fn object(it: &Listed) -> String {
    let object = json!({
        "id": it.session.id,
        "title": it.title,
        "workspace": it.session.workspace,
        "turns": it.turns,
        "created": it.session.created,
        "changed": it.changed,
        "bytes": it.bytes,
        "archived": it.is_archived,
    });
    harmless(format!("{object}\n")).into_string()
}

fn form_named(form: ExportFormatArgument) -> ExportFormat {
    match form {
        ExportFormatArgument::Html => ExportFormat::Html,
        ExportFormatArgument::Md => ExportFormat::Markdown,
        ExportFormatArgument::Json => ExportFormat::Json,
        ExportFormatArgument::Jsonl => ExportFormat::Jsonl,
    }
}

/// Returns the export format for a file name; HTML if it has no known extension.
pub(super) fn form_of(path: Option<&Path>) -> ExportFormat {
    match path.and_then(Path::extension).and_then(|it| it.to_str()) {
        Some("md" | "markdown" | "txt") => ExportFormat::Markdown,
        Some("json") => ExportFormat::Json,
        Some("jsonl" | "ndjson") => ExportFormat::Jsonl,
        _ => ExportFormat::Html,
    }
}

fn print(text: &str, form: ExportFormat) {
    match form {
        ExportFormat::Html | ExportFormat::Markdown => say(text),
        ExportFormat::Json | ExportFormat::Jsonl => put(&harmless(text.to_owned())),
    }
}

fn put(text: &Sanitized) {
    say(text);
}

/// Stores the content of a file as a new conversation. Returns its id.
fn import(base: &CliContext, store: &Store, path: &Path) -> Result<String> {
    let bytes = file::read(path, IMPORT_BYTES)?;
    let entries = Recording::read(path.display().to_string(), &bytes)?.entries().to_vec();
    let session = Session::fresh(base.workspace.to_string_lossy(), now_ms());
    let id = session.id.clone();
    let recorder = store.record(session, &Log::from_entries(entries))?;
    recorder.finish()?;
    if store.read(&id).is_err() {
        bail!("it could not be written to {}", store.folder().display());
    }
    Ok(id)
}
