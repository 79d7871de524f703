//! The conversations that are kept: listed, read, taken out and in, renamed, removed; and single documents of them.

use std::{
    collections::BTreeSet,
    io::{self, IsTerminal as _, Write as _},
    path::Path,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result, bail};
use regex::bytes::{Regex, RegexBuilder};
use serde_json::json;

use super::{
    Base,
    arguments::{Exported, Get, Got, Session as Ask, Sessions, Whom},
    cache::{Cache, Passing},
    code, complain, say,
};
use crate::{
    export::{self, Form, Single, Whole},
    journal::{
        Log,
        file::{Listed, Session, Store},
    },
    link::replay::Recording,
    os::file::{self, Access},
    print::harmless,
    protocol::{Address, ConversationId, Document, Entry, Event, Title, Turn},
    sandbox::Checkpoints,
    text::{Clean, figure},
    transcript::{
        Exchange,
        query::{Candidate, Query},
    },
    tui::now_ms,
};

/// More of a file is not taken in.
pub(super) const IMPORT_BYTES: u64 = 1 << 30;

pub fn run(asked: &Sessions) -> Result<u8> {
    let base = Base::of(&asked.common, &Whom::default())?;
    let store = Store::new(base.paths.sessions());
    match &asked.ask {
        Ask::List { all, archived, json } => {
            let here = base.workspace.to_string_lossy();
            let mut listed = store.list().context("the conversations cannot be listed")?;
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
                    "there are no conversations yet".to_owned()
                } else {
                    format!(
                        "there are none in {here}\n  sheaf sessions list --all   shows {}",
                        listed.len()
                    )
                });
            }
        }
        Ask::Search { query, all, json } => return search(&base, &store, &query.join(" "), *all, *json),
        Ask::Show { session, tree: true } => say(&tree(&whole(&base, &store, session)?)),
        Ask::Show { session, tree: false } => say(&whole(&base, &store, session)?.write(Form::Markdown)),
        Ask::Export { session, form, output } => {
            let form = form.map_or_else(|| form_of(output.as_deref()), form_named);
            let text = whole(&base, &store, session)?.write(form);
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
                bail!("a title has to say something");
            }
            let id = find(&base, &store, session)?.session.id;
            let resumed = store.resume(&id, now_ms())?;
            resumed.log.append(
                now_ms(),
                Event::Title(Title {
                    text: title,
                    by_user: true,
                }),
            );
            resumed.recorder.finish();
        }
        Ask::Archive { sessions } => mark(&base, &store, sessions, true)?,
        Ask::Unarchive { sessions } => mark(&base, &store, sessions, false)?,
        Ask::Rm { sessions, yes } => {
            let found = all_of(&base, &store, sessions)?;
            if !*yes && !is_wanted(&found) {
                return Ok(code::FAILED);
            }
            for it in found {
                remove(&store, &base.paths.state, &it.session.id)?;
            }
        }
        Ask::Doctor { repair } => return doctor(&base, &store, *repair),
    }
    Ok(code::OK)
}

/// All of them are found before anything is done with the first.
fn all_of(base: &Base, store: &Store, names: &[String]) -> Result<Vec<Listed>> {
    names.iter().map(|it| find(base, store, it)).collect()
}

fn mark(base: &Base, store: &Store, names: &[String], is_archived: bool) -> Result<()> {
    for it in all_of(base, store, names)? {
        store.archive(&it.session.id, is_archived)?;
    }
    Ok(())
}

/// Asks, where somebody is there to answer.
fn is_wanted(found: &[Listed]) -> bool {
    if !io::stdin().is_terminal() {
        return true;
    }
    for it in found {
        complain(row(it, true).trim_end());
    }
    let count = figure::count(found.len(), "conversation", "conversations");
    complain(&format!("remove {} for good? [y/N]", count.as_str()));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

/// Removes a session for good, and what is kept to take back what it did, unless another one is of the same conversation.
pub(super) fn remove(store: &Store, state: &Path, id: &str) -> Result<()> {
    let conversations = store.read(id).map(|it| conversations(&it.entries)).unwrap_or_default();
    store.remove(id)?;
    let others = store.list().unwrap_or_default();
    for conversation in conversations {
        let is_shared = others.iter().any(|it| {
            let bytes = file::read(&store.path_of(&it.session.id), IMPORT_BYTES).unwrap_or_default();
            Regex::new(&regex::escape(conversation.as_str())).is_ok_and(|it| it.is_match(&bytes))
        });
        if !is_shared {
            Checkpoints::remove(&state.join(CHECKPOINTS), conversation.as_str());
        }
    }
    Ok(())
}

/// The conversations that answers say they are of.
fn conversations(entries: &[Entry]) -> BTreeSet<ConversationId> {
    let named = entries.iter().filter_map(|it| match &it.event {
        Event::ResponseStart(start) => start.conversation_id.clone(),
        Event::Done(done) => done.conversation_id.clone(),
        _ => None,
    });
    named.collect()
}

/// What is kept of files lies below the state folder.
const CHECKPOINTS: &str = "checkpoints";
/// What belongs to no session may belong to one that is not kept and runs still.
const FORGOTTEN: Duration = Duration::from_hours(7 * 24);

fn doctor(base: &Base, store: &Store, repair: bool) -> Result<u8> {
    let examined = store
        .examine()
        .context("the folder of the conversations cannot be read")?;
    let mut left = 0;
    for finding in &examined.findings {
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
        say(&format!("{}\n  {}\n  {does}\n", finding.file, finding.wrong.words()));
    }
    let folder = base.paths.state.join(CHECKPOINTS);
    let is_known = |name: &str| {
        examined
            .conversations
            .iter()
            .any(|it| Checkpoints::is_of(name, it.as_str()))
    };
    let forgotten = |used: SystemTime| used.elapsed().is_ok_and(|it| it > FORGOTTEN);
    let orphans = Checkpoints::stores(&folder)
        .into_iter()
        .filter(|(name, _, used)| !is_known(name) && forgotten(*used));
    for (name, bytes, _) in orphans {
        if repair {
            Checkpoints::remove(&folder, &name);
        }
        left += usize::from(!repair);
        let does = if repair {
            "repaired: it is removed"
        } else {
            "--repair: it is removed"
        };
        let bytes = figure::bytes(bytes);
        say(&format!(
            "{CHECKPOINTS}/{name}\n  {} to take back what no conversation did that is still there\n  {does}\n",
            bytes.as_str()
        ));
    }
    let count = figure::count(examined.sessions, "conversation", "conversations");
    let verdict = match (examined.findings.is_empty(), left) {
        (true, 0) => "nothing is wrong".to_owned(),
        (_, 0) => "nothing is left to be done".to_owned(),
        (_, left) => format!("{} to be repaired", figure::count(left, "thing", "things").as_str()),
    };
    say(&format!("{} looked at: {verdict}\n", count.as_str()));
    Ok(if left == 0 { code::OK } else { code::FAILED })
}

/// Prints what fits, newest conversation first; 1 when nothing does, as grep says it.
fn search(base: &Base, store: &Store, query: &str, all: bool, as_json: bool) -> Result<u8> {
    let query = match Query::parse(query, now_ms()) {
        Ok(query) => query,
        Err(error) => {
            complain(&error.to_string());
            return Ok(code::USAGE);
        }
    };
    let here = base.workspace.to_string_lossy();
    let listed = store.list().context("the conversations cannot be listed")?;
    let mut cache = Cache::open(&base.paths.cache);
    let sieve = Sieve::new(&query, cache.as_ref(), &listed);
    let mut has_found = false;
    for it in listed.iter().filter(|it| all || it.session.workspace == here) {
        if !sieve.lets_through(store, it) {
            continue;
        }
        let Ok(stored) = store.read(&it.session.id) else {
            continue;
        };
        let whole = Whole::new(stored.session.clone(), stored.closed());
        for hit in hits(&whole, &query) {
            has_found = true;
            let line = if as_json {
                hit.object(&whole)
            } else {
                hit.row(&whole, &query)
            };
            if io::stdout().write_all(Clean::new(&line).as_bytes()).is_err() {
                return Ok(code::OK);
            }
        }
    }
    // Whoever looks on has what was found; the next search is faster.
    io::stdout().flush().ok();
    if let Some(cache) = &mut cache {
        cache.update(store, &listed, LEARNING);
    }
    Ok(if has_found { code::OK } else { code::FAILED })
}

/// So long the cache takes in what is new, behind a search.
const LEARNING: Duration = Duration::from_secs(2);

/// The conversations in which something fits, with a line of the first that does; read one after the other, as they are asked
/// for.
pub(super) fn found<'a>(
    store: &'a Store,
    listed: Vec<Listed>,
    query: &'a Query,
    cache: Option<&Cache>,
) -> impl Iterator<Item = (String, String)> + 'a {
    let sieve = Sieve::new(query, cache, &listed);
    listed.into_iter().filter_map(move |it| {
        if !sieve.lets_through(store, &it) {
            return None;
        }
        let stored = store.read(&it.session.id).ok()?;
        let whole = Whole::new(stored.session.clone(), stored.closed());
        let line = hits(&whole, query).next().map(|it| excerpt(&it.text().1, query))?;
        Some((it.session.id, line))
    })
}

/// Whether a conversation can hold all words of a query: as the cache knows, else as the bytes of its file tell, which is
/// much faster than its documents. An answer that was cut off is there in pieces, between which a word may be torn: such a
/// file always passes.
struct Sieve {
    words: Vec<Regex>,
    pieces: Option<Regex>,
    passing: Passing,
}

impl Sieve {
    fn new(query: &Query, cache: Option<&Cache>, listed: &[Listed]) -> Self {
        let finder = |word: &str| {
            let written = serde_json::to_string(word).ok()?;
            let bare = written.strip_prefix('"')?.strip_suffix('"')?;
            RegexBuilder::new(&regex::escape(bare))
                .case_insensitive(true)
                .build()
                .ok()
        };
        Self {
            words: query.words().filter_map(finder).collect(),
            pieces: Regex::new("\"event\":\"content_delta\"").ok(),
            passing: cache.map(|it| it.passing(query.words(), listed)).unwrap_or_default(),
        }
    }

    fn lets_through(&self, store: &Store, it: &Listed) -> bool {
        if let Some(lets) = self.passing.lets_through(&it.session.id) {
            return lets;
        }
        let Ok(bytes) = file::read(&store.path_of(&it.session.id), IMPORT_BYTES) else {
            return false;
        };
        self.words.iter().all(|it| it.is_match(&bytes)) || self.pieces.as_ref().is_some_and(|it| it.is_match(&bytes))
    }
}

/// A document, or a message, that fits.
struct Hit<'a> {
    exchange: &'a Exchange,
    document: Option<(usize, &'a Document)>,
}

fn hits<'a>(whole: &'a Whole, query: &'a Query) -> impl Iterator<Item = Hit<'a>> {
    whole.transcript.all().into_iter().rev().flat_map(move |exchange| {
        let documents = exchange.response.documents.iter().enumerate().map(Some);
        let message = exchange.message.is_some().then_some(None);
        let candidates = message.into_iter().chain(documents);
        candidates
            .map(move |document| Hit { exchange, document })
            .filter(move |it| {
                query.matches(Candidate {
                    exchange: it.exchange,
                    document: it.document.map(|it| it.1),
                })
            })
    })
}

impl Hit<'_> {
    fn number(&self) -> Option<u64> {
        Some(self.exchange.response.number(self.document?.0))
    }

    fn address(&self, whole: &Whole) -> String {
        let number = self.number().map(|it| format!(".{it}")).unwrap_or_default();
        format!("{}#{}{number}", whole.session.id, self.exchange.turn.0)
    }

    /// What it is, and what it says.
    fn text(&self) -> (&str, String) {
        match (self.document, &self.exchange.message) {
            (Some((_, document)), _) => (document.kind.as_str(), document.plain_text()),
            (None, Some(message)) => ("message", message.content.clone()),
            (None, None) => ("message", String::new()),
        }
    }

    fn row(&self, whole: &Whole, query: &Query) -> String {
        let (kind, text) = self.text();
        let ago = figure::ago(now_ms().saturating_sub(self.exchange.at_ms));
        let said = excerpt(&text, query);
        format!("{}  {kind:<16}  {:>14}  {said}\n", self.address(whole), ago.as_str())
    }

    fn object(&self, whole: &Whole) -> String {
        let object = json!({
            "address": self.address(whole),
            "at": self.exchange.at_ms,
            "message": self.exchange.message.as_ref().filter(|_| self.document.is_none()),
            "document": self.document.map(|it| it.1.to_json(self.number().unwrap_or_default())),
        });
        harmless(format!("{object}\n")).into_string()
    }
}

/// The line that holds the word, around it.
fn excerpt(text: &str, query: &Query) -> String {
    let at = query.find(text).map_or(0, |it| it.start);
    let start = text.get(..at).and_then(|it| it.rfind('\n')).map_or(0, |it| it + 1);
    let line = text
        .get(start..)
        .unwrap_or_default()
        .lines()
        .find(|it| !it.trim().is_empty())
        .unwrap_or_default();
    let before = text.get(start..at).map_or(0, |it| it.chars().count());
    let line: String = line.chars().skip(before.saturating_sub(40)).take(100).collect();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A line for each message, deeper where the way forks; `*` is the branch that one is on.
fn tree(whole: &Whole) -> String {
    let mut text = String::new();
    for fork in whole.transcript.tree() {
        let Some(exchange) = whole.transcript.of_turn(fork.turn) else {
            continue;
        };
        let message = exchange
            .message
            .as_ref()
            .map(|it| it.content.as_str())
            .unwrap_or_default();
        let line = message.lines().find(|it| !it.trim().is_empty()).unwrap_or_default();
        let line: String = line.chars().take(100).collect();
        let mark = if fork.is_here { '*' } else { ' ' };
        let way = "  ".repeat(fork.depth);
        text.push_str(&format!("{mark} {way}{}  {line}\n", exchange.turn.0));
    }
    text
}

/// `sheaf get 7.3`.
pub fn get(asked: &Get) -> Result<u8> {
    let base = Base::of(&asked.common, &Whom::default())?;
    let store = Store::new(base.paths.sessions());
    let (session, number) = asked.address.rsplit_once('#').unwrap_or(("last", &asked.address));
    let Some(address) = address(number) else {
        bail!("`{number}` is no address\n  7.3 is document 3 of turn 7, and SESSION#7.3 that of another conversation");
    };
    let whole = whole(&base, &store, session)?;
    let Some((document, number)) = whole.document(address) else {
        let last = whole.transcript.exchanges.last().map_or(0, |it| it.turn.0);
        bail!(
            "there is no document {address} in `{}`, which has {last} turns",
            whole.title()
        );
    };
    let form = match asked.form {
        Got::Json => Single::Json,
        Got::Md => Single::Markdown,
        Got::Text => Single::Text,
        Got::Patch => Single::Patch,
    };
    let Some(text) = export::single(document, number, form) else {
        bail!("{address} is a {} and no edit: it has no patch", document.kind.as_str());
    };
    if matches!(asked.form, Got::Json) {
        put(&harmless(text));
    } else {
        say(&text);
    }
    Ok(code::OK)
}

pub(super) fn address(text: &str) -> Option<Address> {
    let (turn, number) = text.split_once('.')?;
    Some(Address {
        turn: Turn(turn.parse().ok()?),
        number: number.parse().ok()?,
    })
}

fn whole(base: &Base, store: &Store, name: &str) -> Result<Whole> {
    let found = find(base, store, name)?;
    let stored = store.read(&found.session.id)?;
    for notice in &stored.notices {
        complain(&notice.message);
    }
    let session = stored.session.clone();
    Ok(Whole::new(session, stored.closed()))
}

/// By its id, the beginning of that, its title, or `last` in this workspace.
pub(super) fn find(base: &Base, store: &Store, name: &str) -> Result<Listed> {
    let mut listed = store.list().context("the conversations cannot be listed")?;
    if name == "last" {
        let here = base.workspace.to_string_lossy();
        let last = listed
            .into_iter()
            .find(|it| it.session.workspace == here && !it.is_archived);
        return last.with_context(|| format!("there is no conversation in {here}"));
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
        bail!("`{name}` may be any of {}:{rows}", found.len());
    }
    found
        .pop()
        .with_context(|| format!("there is no conversation `{name}`\n  sheaf sessions list --all   shows them all"))
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

fn form_named(form: Exported) -> Form {
    match form {
        Exported::Html => Form::Html,
        Exported::Md => Form::Markdown,
        Exported::Json => Form::Json,
        Exported::Jsonl => Form::Jsonl,
    }
}

/// What a file's name promises; a page, where nothing does.
pub(super) fn form_of(path: Option<&Path>) -> Form {
    match path.and_then(Path::extension).and_then(|it| it.to_str()) {
        Some("md" | "markdown" | "txt") => Form::Markdown,
        Some("json") => Form::Json,
        Some("jsonl" | "ndjson") => Form::Jsonl,
        _ => Form::Html,
    }
}

fn print(text: &str, form: Form) {
    match form {
        Form::Html | Form::Markdown => say(text),
        Form::Json | Form::Jsonl => put(&harmless(text.to_owned())),
    }
}

fn put(text: &Clean) {
    say(text);
}

/// Keeps what a file holds as a new conversation; gives its id.
fn import(base: &Base, store: &Store, path: &Path) -> Result<String> {
    let bytes = file::read(path, IMPORT_BYTES)?;
    let entries = Recording::read(path.display().to_string(), &bytes)?.entries().to_vec();
    let session = Session::fresh(base.workspace.to_string_lossy(), now_ms());
    let id = session.id.clone();
    let recorder = store.record(session, &Log::from_entries(entries))?;
    recorder.finish();
    if store.read(&id).is_err() {
        bail!("it could not be written to {}", store.folder().display());
    }
    Ok(id)
}
