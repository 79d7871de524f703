//! `sheaf index`: the vectors of the code, and the models that make them.

use std::{
    io::{self, IsTerminal as _, Write as _},
    ops::ControlFlow,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use futures::StreamExt as _;
use serde_json::json;

use super::{
    CliContext,
    arguments::{IndexArguments, IndexTask, ModelTask, TargetArguments},
    code, complain,
    open::embeddings,
    runtime, say, search,
};
use crate::{
    config::{Connection, shown_path},
    embedding::{self, Effort, Embeddings, Installed, KNOWN_MODELS, KnownModel, Progress, SharedVectors},
    index::{self, File, Index},
    net::client::{Client, Request},
    sandbox::{Fence, Workspace},
    text::figure,
    tools::{Context, codebase_search},
};

/// Time between two lines of progress.
const PACE: Duration = Duration::from_millis(200);
/// Times that a server is asked again after it has failed.
const RETRIES: u32 = 4;

/// Runs the subcommand.
pub fn run(asked: &IndexArguments) -> Result<u8> {
    let base = || CliContext::of(&asked.common, &TargetArguments::default());
    match &asked.ask {
        IndexTask::Status { json } => status(&base()?, *json),
        IndexTask::Build => build(&base()?),
        IndexTask::Search(it) => search::run(it),
        IndexTask::Clear => clear(&base()?),
        IndexTask::Model(ModelTask::List) => Ok(list(&base()?)),
        IndexTask::Model(ModelTask::Install { name, from }) => install(&base()?, name, from.as_deref()),
        IndexTask::Model(ModelTask::Remove { name }) => remove(&base()?, name),
    }
}

/// The workspace and what is known of its code.
struct Surveyed {
    index: Index,
    files: Vec<File>,
    is_whole: bool,
}

impl Surveyed {
    async fn of(base: &CliContext) -> Result<Self> {
        let fence = Fence::configured(&base.settings, Some(&base.paths), Vec::new());
        let workspace = Workspace::fenced(&base.workspace, fence)
            .with_context(|| format!("{} cannot be opened", base.workspace.display()))?;
        let mut settings = base.settings.clone();
        // Here nobody waits for an answer.
        settings.limits.search_time = Duration::from_hours(1);
        let index = Index::stored(&base.paths.cache, workspace.root());
        let context = Context::apart(Arc::new(workspace), Arc::new(settings), Arc::default());
        Arc::clone(&context.workspace).look_once().await;
        let found = codebase_search::workspace_files(&context).await;
        let (files, is_whole) = found.map_err(|it| anyhow::anyhow!("{}", it.message))?;
        Ok(Self { index, files, is_whole })
    }
}

fn status(base: &CliContext, as_json: bool) -> Result<u8> {
    let service = embeddings(base);
    let (model, problem) = match service.get() {
        Ok(Some(embeddings)) => (Some(embeddings), None),
        Ok(None) => (None, None),
        Err(error) => (None, Some(error.to_string())),
    };
    let surveyed = runtime(false)?.block_on(Surveyed::of(base))?;
    let survey = surveyed
        .index
        .survey(&surveyed.files, &codebase_search::read, &|| false);
    let with = model.map_or(0, |it| it.count(&survey));
    let stored = embedding::stored(&base.paths.cache)?;
    let word_bytes = index::stored_word_bytes(&base.paths.cache);
    let state = match model {
        None => "lexical_only",
        Some(_) if with == survey.len() => "ready",
        Some(_) => "building",
    };
    if as_json {
        let (models, bytes) = stored.unwrap_or_default();
        let models: Vec<_> = models
            .iter()
            .map(|it| json!({ "model": it.model, "dims": it.dims, "vectors": it.vectors }))
            .collect();
        let status = json!({
            "workspace": base.workspace,
            "files": surveyed.files.len(),
            "chunks": survey.len(),
            "isWhole": surveyed.is_whole && survey.is_whole(),
            "indexState": state,
            "model": model.map(|it| it.embedder().id()),
            "problem": problem,
            "withVectors": with,
            "stored": models,
            "storedBytes": bytes,
            "storedWordBytes": word_bytes,
        });
        say(&format!("{status}\n"));
        return Ok(code::OK);
    }
    let count = |count: usize, word: &str| {
        let ending = if count == 1 { "" } else { "s" };
        format!("{} {word}{ending}", figure::grouped(count as u64))
    };
    let mut lines = vec![format!(
        "workspace  {}\n           {}, {} of code and text",
        shown_path(&base.workspace),
        count(surveyed.files.len(), "file"),
        count(survey.len(), "chunk")
    )];
    if !(surveyed.is_whole && survey.is_whole()) {
        lines.push("           not all files could be read: there are too many".to_owned());
    }
    lines.push(match (model, problem) {
        (Some(it), _) => format!(
            "model      {}{}\n           {} of {} chunks have vectors{}",
            it.embedder().id(),
            if it.embedder().is_local() { ", on this machine" } else { "" },
            figure::grouped(with as u64),
            figure::grouped(survey.len() as u64),
            if with < survey.len() { "; the rest: sheaf index build" } else { "" }
        ),
        (None, Some(problem)) => format!("model      cannot be used: {problem}"),
        (None, None) => format!(
            "model      none: code is searched by its words\n           sheaf index model install {}   finds it by its meaning as well",
            KNOWN_MODELS[0].name
        ),
    });
    if let Some(shared) = model.and_then(Embeddings::shared) {
        lines.push(format!("shared     {}", shared.address()));
    }
    if word_bytes > 0 {
        lines.push(format!("words      {} stored", figure::bytes(word_bytes)));
    }
    if let Some((models, bytes)) = stored {
        lines.push(format!(
            "stored     {} in {}",
            figure::bytes(bytes),
            shown_path(&base.paths.cache)
        ));
        for it in models {
            lines.push(format!(
                "           {} vectors by {}",
                figure::grouped(it.vectors),
                it.model
            ));
        }
    }
    say(&format!("{}\n", lines.join("\n")));
    Ok(code::OK)
}

fn build(base: &CliContext) -> Result<u8> {
    let service = Arc::new(embeddings(base));
    let embeddings = match service.get() {
        Ok(Some(embeddings)) => embeddings,
        Ok(None) => {
            complain(&format!(
                "no embedding model is installed or configured\n  sheaf index model install {}   installs one on this machine\n  \
                 sheaf config set roles.embed openai/text-embedding-3-small   uses a server",
                KNOWN_MODELS[0].name
            ));
            return Ok(code::USAGE);
        }
        Err(error) => bail!("{error}"),
    };
    let runtime = runtime(false)?;
    let surveyed = runtime.block_on(Surveyed::of(base))?;
    if !surveyed.is_whole {
        complain("not all files could be listed: there are too many");
    }
    if let Some(why) = embeddings.problem() {
        bail!("vectors cannot be stored: {why}");
    }
    let own = Arc::clone(&service);
    // Servers are asked through the runtime, from a thread that may wait.
    let work = move || match own.get() {
        Ok(Some(embeddings)) => complete(embeddings, &surveyed),
        Ok(None) | Err(_) => Ok(Progress::default()),
    };
    let done = runtime.block_on(async { tokio::task::spawn_blocking(work).await })??;
    if done.done < done.all {
        complain(&format!(
            "{} chunks have no vectors: their files have changed meanwhile, or there are more than index.size holds",
            done.all - done.done
        ));
    }
    let damaged = embeddings.shared().map_or(0, SharedVectors::damaged);
    if damaged > 0 {
        complain(&format!(
            "{} in index.cache {} damaged; what was computed here takes their place where it may be written",
            figure::count(damaged, "object", "objects"),
            if damaged == 1 { "is" } else { "are" }
        ));
    }
    if let Some(why) = embeddings.shared().and_then(SharedVectors::failure) {
        complain(&format!("index.cache was not used to the end: {why}"));
    }
    say(&format!(
        "{} chunks have vectors by {}\n",
        figure::grouped(done.done as u64),
        embeddings.embedder().id()
    ));
    Ok(code::OK)
}

/// Makes all vectors, and asks a server again that has failed.
fn complete(embeddings: &Embeddings, surveyed: &Surveyed) -> Result<Progress> {
    let survey = surveyed
        .index
        .survey(&surveyed.files, &codebase_search::read, &|| false);
    let mut shown = ProgressLine::new();
    let (mut failures, mut before) = (0, 0);
    loop {
        let mut at = 0;
        let made = embeddings.complete(
            (&survey, &surveyed.files),
            &codebase_search::read,
            Effort::Build,
            &mut |it| {
                at = it.done;
                shown.show(it);
                ControlFlow::Continue(())
            },
        );
        match made {
            Ok(progress) => {
                shown.end();
                return Ok(progress);
            }
            Err(error @ (embedding::EmbedError::Unusable(_) | embedding::EmbedError::Store(_))) => {
                shown.end();
                return Err(error.into());
            }
            Err(error) => {
                // A long build may fail now and then.
                failures = if at > before { 1 } else { failures + 1 };
                before = at;
                if failures > RETRIES {
                    shown.end();
                    bail!("{error}\n  {at} chunks have vectors; `sheaf index build` goes on from there");
                }
                std::thread::sleep(Duration::from_secs(1 << failures));
            }
        }
    }
}

/// A line on standard error that is written over, with the time that is left.
struct ProgressLine {
    is_shown: bool,
    began: Option<(Instant, usize)>,
    last: Option<Instant>,
}

impl ProgressLine {
    fn new() -> Self {
        Self {
            is_shown: io::stderr().is_terminal(),
            began: None,
            last: None,
        }
    }

    fn show(&mut self, progress: Progress) {
        let now = Instant::now();
        let (began, first) = *self.began.get_or_insert((now, progress.done));
        if !self.is_shown || self.last.is_some_and(|it| now - it < PACE) {
            return;
        }
        self.last = Some(now);
        let share = 100 * progress.done / progress.all.max(1);
        let mut line = format!(
            "{share:3} %  {} of {} chunks",
            figure::grouped(progress.done as u64),
            figure::grouped(progress.all as u64)
        );
        let made = progress.done.saturating_sub(first);
        let left = progress.all.saturating_sub(progress.done);
        if made > 0 {
            let seconds = began.elapsed().as_secs_f64() / made as f64 * left as f64;
            line.push_str(&format!("  {} left", figure::pause(seconds.ceil() as u64)));
        }
        overwrite(&line);
    }

    fn end(&mut self) {
        if self.is_shown && self.last.is_some() {
            overwrite("");
        }
    }
}

/// Writes figures over the line before, and leaves the cursor at its start.
fn overwrite(line: &str) {
    let _ = write!(io::stderr(), "\r{line:<60}\r");
}

fn clear(base: &CliContext) -> Result<u8> {
    let vectors = embedding::clear(&base.paths.cache)?;
    let words = index::clear_words(&base.paths.cache).context("the words cannot be deleted")?;
    let deleted = [(vectors, "vectors"), (words, "words")];
    let lines = deleted.map(|(bytes, what)| match bytes {
        Some(bytes) => format!("{} of {what} deleted\n", figure::bytes(bytes)),
        None => String::new(),
    });
    let text = lines.concat();
    say(if text.is_empty() { "nothing is stored\n" } else { &text });
    Ok(code::OK)
}

fn list(base: &CliContext) -> u8 {
    let installed = embedding::installed(&base.paths.data);
    let mut text = String::new();
    for it in &installed {
        text.push_str(&format!(
            "{:16} installed, {}, {} dimensions\n",
            it.name,
            figure::bytes(it.bytes),
            it.description.dims
        ));
    }
    for it in KNOWN_MODELS {
        if !installed.iter().any(|installed| installed.name == it.name) {
            text.push_str(&format!(
                "{:16} {}, {} to download\n",
                it.name,
                it.about,
                figure::bytes(it.bytes as u64)
            ));
        }
    }
    say(&text);
    code::OK
}

fn install(base: &CliContext, name: &str, from: Option<&Path>) -> Result<u8> {
    if !embedding::is_name(name) {
        complain(&format!(
            "invalid model name `{name}`: use letters, digits, `.`, `_` and `-`"
        ));
        return Ok(code::USAGE);
    }
    let data = &base.paths.data;
    let installed = match from {
        Some(from) if from.is_dir() => embedding::install_folder(data, name, from)?,
        Some(from) => {
            let bytes = std::fs::read(from).with_context(|| format!("{} cannot be read", from.display()))?;
            embedding::install_file(data, name, &bytes)?
        }
        None => {
            let Some(known) = KNOWN_MODELS.iter().find(|it| it.name == name) else {
                let names: Vec<_> = KNOWN_MODELS.iter().map(|it| it.name).collect();
                complain(&format!(
                    "there is no model `{name}` to download; known: {}\n  --from FILE|FOLDER installs one of yours",
                    names.join(", ")
                ));
                return Ok(code::USAGE);
            };
            let bytes = runtime(false)?.block_on(download(known))?;
            embedding::install_file(data, name, &bytes)?
        }
    };
    say(&told(base, &installed));
    Ok(code::OK)
}

/// The sentence after an installation.
fn told(base: &CliContext, installed: &Installed) -> String {
    let own = format!("{}{}", embedding::LOCAL, installed.name);
    let mut text = format!(
        "{} is installed: {} in {}\n",
        installed.name,
        figure::bytes(installed.bytes),
        shown_path(&installed.folder)
    );
    match base.settings.roles.embed.as_deref() {
        Some(other) if other != own => {
            text.push_str(&format!(
                "roles.embed is {other}; to use this one: sheaf config set roles.embed {own}\n"
            ));
        }
        Some(_) | None => text.push_str(
            "Searches use it, those of a running sheaf from its next start; `sheaf index build` prepares this workspace.\n",
        ),
    }
    text
}

/// Fetches the file of a model, and checks it.
async fn download(known: &KnownModel) -> Result<Vec<u8>> {
    let peer = Connection::default().at(known.host).peer()?;
    let response = Client::new(peer)?.open(Request::get(known.path)).await?;
    if !response.status.is_success() {
        bail!(
            "{} answered {}\n  --from FILE installs a file that you have downloaded: {}/{}",
            known.host,
            response.status,
            known.host,
            known.path
        );
    }
    let mut bytes = Vec::with_capacity(known.bytes);
    let mut body = response.body;
    let mut last = Instant::now();
    let is_shown = io::stderr().is_terminal();
    while let Some(piece) = body.next().await {
        bytes.extend_from_slice(&piece?);
        if bytes.len() > known.bytes {
            break;
        }
        if is_shown && last.elapsed() >= PACE {
            last = Instant::now();
            let line = format!(
                "{:3} %  {} of {}",
                100 * bytes.len() / known.bytes.max(1),
                figure::bytes(bytes.len() as u64),
                figure::bytes(known.bytes as u64)
            );
            overwrite(&line);
        }
    }
    if is_shown {
        overwrite("");
    }
    let found = embedding::hexadecimal(&bytes);
    if found != known.sha256 {
        bail!(
            "the file of {} is not the one that was expected: SHA-256 {found}, expected {}",
            known.name,
            known.sha256
        );
    }
    Ok(bytes)
}

fn remove(base: &CliContext, name: &str) -> Result<u8> {
    if embedding::remove(&base.paths.data, name)? {
        say(&format!("{name} is removed\n"));
        return Ok(code::OK);
    }
    complain(&format!("the model `{name}` is not installed"));
    Ok(code::FAILED)
}
