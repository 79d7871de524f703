//! The composition root: each task chooses a link and a consumer. The only module that may use all others.
//!
//! Before the first frame nothing is asked of the network and no folder is walked: arguments, settings, screen.

mod arguments;
mod assert;
mod attach;
mod boundary;
mod cache;
mod chat;
mod conform;
pub mod doctor;
mod first;
mod library;
mod live;
mod open;
mod paper;
mod run;
mod schema;
mod searching;
mod serve;
mod sessions;
mod trace;
mod undo;
mod why;

use std::{
    ffi::OsString,
    io::{self, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context as _, Result};
use clap::Parser as _;
use tokio::sync::mpsc;

use self::{
    arguments::{Arguments, Common, End, OutputFormat, Pace, Printing, Run, Setting, Task, Whom},
    open::Talk,
};
use crate::{
    config::{self, Environment, Ledger, Paths, Print, Problem, Settings},
    journal::{
        Log,
        file::{Recorder, Session, Store, StoreError},
    },
    link::{
        Link,
        follow::{Door, Follow, Followed},
        replay::{Audience, Recording, Replay, Speed},
    },
    locale,
    os::{self, file},
    print::{self, Ending, Options, Outputs, Stop},
    protocol::{Mode, Submit},
    sandbox,
    text::{Clean, redact::redact},
    theme, tui,
};

/// The exit codes that a caller may rely on.
mod code {
    pub const OK: u8 = 0;
    pub const FAILED: u8 = 1;
    pub const USAGE: u8 = 2;
    pub const NO_SANDBOX: u8 = 3;
    pub const REFUSED: u8 = 4;
    pub const INTERRUPTED: u8 = 130;
    pub const TERMINATED: u8 = 143;
}

/// A recording larger than this is none.
const RECORDING_BYTES: u64 = 1 << 30;

/// The conversation of `sheaf tour`.
const TOUR: &str = include_str!("../../assets/tour/tour.jsonl");

/// Runs the program.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    // First of all: the helper of the sandbox has one thread.
    if let Some(code) = sandbox::helper(&arguments) {
        return code;
    }
    os::process::seal();
    let parsed = match Arguments::try_parse_from(&arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            // Help goes to standard output and is no failure; clap knows which it is.
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    if let Some(hint) = hidden_command(&parsed, &arguments) {
        complain(&hint);
        return ExitCode::from(code::USAGE);
    }
    match obey(parsed) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            complain(&chain(&error));
            let is_usage = error.downcast_ref::<Misused>().is_some();
            ExitCode::from(if is_usage { code::USAGE } else { code::FAILED })
        }
    }
}

/// The command line asks for what cannot be.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Misused(String);

fn obey(arguments: Arguments) -> Result<u8> {
    let Arguments {
        task,
        prompt,
        printing,
        whom,
        run,
        common,
    } = arguments;
    if let Some(problem) = printing.problem() {
        complain(problem);
        return Ok(code::USAGE);
    }
    match task {
        None => talk(prompt, &printing, &whom, &run, &common),
        Some(Task::Replay(it)) if it.assert.is_some() => compare(&it),
        Some(Task::Replay(it)) => play(&recorded(&it.file)?, it.pace, &it.printing, it.end, &it.common),
        Some(Task::Tour(it)) if it.live => play_live(&it),
        Some(Task::Tour(it)) => play(&tour()?, it.pace, &it.printing, it.end, &it.common),
        Some(Task::Serve(it)) => serve::run(&it),
        Some(Task::Conform(it)) => conform::run(&it),
        Some(Task::Doctor(it)) => {
            let base = Base::of(&it.common, &it.whom)?;
            let Base {
                settings,
                problems,
                paths,
                environment,
                ..
            } = &base;
            let out = io::stdout().lock();
            let examined = Box::pin(doctor::run(settings, problems, paths, environment, it.json, out));
            Ok(runtime(false)?.block_on(examined)?)
        }
        Some(Task::Config(it)) => settings(&it.ask, &it.common),
        Some(Task::CreateChat(it)) => chat::create(&Base::of(&it.common, &it.whom)?),
        Some(Task::Status(it)) => Ok(chat::status(&Base::of(&it.common, &it.whom)?)),
        Some(Task::Models(it)) => chat::models(&Base::of(&it.common, &it.whom)?),
        Some(Task::Sessions(it)) => sessions::run(&it),
        Some(Task::Get(it)) => sessions::get(&it),
        Some(Task::Why(it)) => why::run(&it),
        Some(Task::Undo(it)) => undo::undo(&it),
        Some(Task::Redo(it)) => undo::redo(&it),
        Some(Task::Rewind(it)) => undo::rewind(&it),
        Some(Task::Sandbox(it)) => boundary::run(it.ask),
        Some(Task::Completions { shell }) => Ok(paper::completions(shell)),
        Some(Task::Man) => paper::manual(),
    }
}

/// The conversation before the user, in the way that they asked for.
async fn show(mut setup: tui::Setup, end: End) -> Result<u8> {
    if end.plain {
        let columns = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |it| it.ws_col);
        let console = tui::plain::Console {
            out: Box::new(io::stdout()),
            is_typed: io::stdin().is_terminal(),
            columns: if columns == 0 { 80 } else { columns },
        };
        return Ok(Box::pin(tui::plain::run(setup, console)).await?);
    }
    setup.is_inline = end.inline;
    Ok(Box::pin(tui::run(setup)).await?)
}

/// Looks on while another sheaf has a conversation open.
fn watch(base: Base, followed: Followed, end: End) -> Result<u8> {
    runtime(false)?.block_on(async move {
        let link = Arc::new(Follow::start(followed));
        let (_, switched) = mpsc::unbounded_channel();
        show(base.screen(link, switched, None, false, None), end).await
    })
}

/// The recording in a file.
fn recorded(path: &Path) -> Result<Recording> {
    let bytes = file::read(path, RECORDING_BYTES)?;
    let name = path
        .file_name()
        .map_or_else(String::new, |it| it.to_string_lossy().into_owned());
    Ok(Recording::read(name, &bytes)?)
}

/// The recorded conversation that comes with the program.
fn tour() -> Result<Recording> {
    Ok(Recording::read("the tour", TOUR.as_bytes())?)
}

/// What every task begins with.
struct Base {
    settings: Settings,
    problems: Vec<Problem>,
    paths: Paths,
    workspace: PathBuf,
    environment: Environment,
}

/// Whose word lets the settings of a workspace act.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    /// The user's, as they gave it when they were asked.
    Kept,
    /// Somebody is there to whom nothing can be shown: only what the user's own settings name.
    Settings,
    /// It was given on the command line.
    Given,
}

/// The settings of a workspace, if they may act.
fn trusted_settings(settings: &Settings, paths: &Paths, workspace: &Path, word: Word) -> Option<config::File> {
    let file = config::File::of_project(workspace)?;
    let may_act = settings.trusts(workspace)
        || match word {
            Word::Given => true,
            Word::Settings => false,
            Word::Kept => {
                let inner = file.path.strip_prefix(workspace).unwrap_or(&file.path);
                let print = Print::of(&[file.text.as_bytes()]);
                Ledger::under(&paths.state)
                    .said(workspace)
                    .lets(&inner.to_string_lossy(), &print)
            }
        };
    may_act.then_some(file)
}

impl Base {
    /// For whoever has a terminal before them.
    fn of(common: &Common, whom: &Whom) -> Result<Self> {
        Self::by(common, whom, Word::Kept)
    }

    fn by(common: &Common, whom: &Whom, word: Word) -> Result<Self> {
        if common.sandbox == Some(false) {
            sandbox::force_off();
        }
        let environment = Environment::of_process();
        let paths = Paths::of_user().context("there is no home folder\n  set HOME")?;
        let workspace = workspace(common.workspace.as_deref())?;
        let options = common.options(whom);
        let (mut settings, mut problems) = config::load(&paths, None, &environment, &options);
        if let Some(project) = trusted_settings(&settings, &paths, &workspace, word) {
            (settings, problems) = config::load(&paths, Some(&project), &environment, &options);
        }
        if let Some(path) = &common.log {
            trace::start(path, &environment)?;
        }
        Ok(Self {
            settings,
            problems,
            paths,
            workspace,
            environment,
        })
    }

    fn mode(&self) -> Mode {
        Mode::parse(&self.settings.mode).unwrap_or_default()
    }

    fn screen(
        self,
        link: Arc<dyn Link>,
        switch: mpsc::UnboundedReceiver<Arc<dyn Link>>,
        prompt: Option<String>,
        keeps: bool,
        library: Option<Arc<dyn tui::Library>>,
    ) -> tui::Setup {
        tui::Setup {
            link,
            switch,
            mode: self.mode(),
            is_developer: self.environment.get("SHEAF_DEV") == Some("1"),
            settings: self.settings,
            paths: self.paths,
            workspace: self.workspace,
            problems: self.problems,
            prompt,
            keeps,
            library,
            is_inline: false,
        }
    }

    /// What starts to record a conversation; does nothing when none is to be kept.
    ///
    /// The first one is `session`.
    fn recording(&self, no_session: bool, session: Session) -> impl Fn(&Arc<Log>) -> Option<Recorder> + Send + use<> {
        let store = Store::new(self.paths.sessions());
        let first = Mutex::new(Some(session.clone()));
        move |log| {
            if no_session {
                return None;
            }
            let next = first.lock().unwrap_or_else(PoisonError::into_inner).take();
            let next = next.unwrap_or_else(|| Session::fresh(session.workspace.clone(), tui::now_ms()));
            chat::record(&store, next, log)
        }
    }

    /// A conversation in this workspace that has not begun.
    fn session(&self) -> Session {
        Session::fresh(self.workspace.to_string_lossy(), tui::now_ms())
    }
}

/// A conversation with whoever the settings name: on the screen, or one answer without it.
fn talk(prompt: Vec<String>, printing: &Printing, whom: &Whom, wanted: &Run, common: &Common) -> Result<u8> {
    let end = wanted.end;
    let is_shown = !printing.print && printing.output_format == OutputFormat::Text;
    let has_screen = is_shown && (end.plain || io::stdout().is_terminal() && !attach::is_piped());
    let word = match (wanted.trust, has_screen) {
        (true, _) => Word::Given,
        (false, true) => Word::Kept,
        (false, false) => Word::Settings,
    };
    let mut base = Base::by(common, whom, word)?;
    let mut words = prompt.join(" ");
    let resumed = chat::wanted(wanted, &mut words, |it| chat::is_title(&base, it));
    if let Err(problem) = run::settle(wanted, &mut base) {
        complain(&problem);
        return Ok(code::USAGE);
    }
    if common.sandbox == Some(true)
        && let Some(problem) = run::unheld(&base)
    {
        complain(&problem);
        return Ok(code::NO_SANDBOX);
    }
    if has_screen && (!wanted.image.is_empty() || wanted.output_schema.is_some()) {
        complain("--image and --output-schema are for an answer without a screen: add -p");
        return Ok(code::USAGE);
    }
    let prompt = if end.plain && has_screen {
        // What stands on standard input are the lines of the conversation.
        Some(words).filter(|it| !it.trim().is_empty())
    } else {
        attach::prompt(words, &mut |text| complain(text))?
    };
    if !has_screen {
        let Some(prompt) = prompt else {
            complain("there is nothing to ask\n  sheaf -p 'what does src/main.rs do?'");
            return Ok(code::USAGE);
        };
        return run::print(base, prompt, printing, common, wanted, resumed);
    }
    let keeps = !wanted.no_session;
    let session = base.session();
    let record = base.recording(wanted.no_session, session.clone());
    let opened = match resumed {
        None => None,
        Some(it) if wanted.fork => Some(chat::fork(&base, &it, wanted.no_session)?),
        Some(it) => match chat::open(&base, &it, wanted.no_session) {
            Ok(opened) => Some(opened),
            Err(error) => {
                let held = error.downcast_ref::<StoreError>();
                match held.and_then(|it| chat::followed(&chat::store(&base), &base.paths.state, it)) {
                    Some(followed) => return watch(base, followed, end),
                    None => return Err(error),
                }
            }
        },
    };
    let door = chat::door(
        &base.paths.state,
        opened.as_ref().map_or(&session.id, |it| &it.session.id),
    );
    let runtime = runtime(false)?;
    let recorders = Arc::new(Mutex::new(Vec::new()));
    let stages = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&recorders);
    let set = Arc::clone(&stages);
    let added = run::folders(&wanted.add_dir);
    let code = runtime.block_on(async move {
        let (switch, switched) = mpsc::unbounded_channel();
        let has_begun = opened.is_some();
        let is_copy = opened.as_ref().is_some_and(|it| it.is_copy);
        let (log, recorder) = opened.map_or_else(|| (Log::new(), None), |it| (it.log, it.recorder));
        kept.lock().unwrap_or_else(PoisonError::into_inner).extend(recorder);
        let talk = Talk {
            workspace: base.workspace.clone(),
            added,
            log,
            is_copy,
            is_attended: true,
        };
        let library = Arc::new(library::Shelf::new(&base, talk.added.clone(), keeps, Arc::clone(&kept)));
        let mut opened_door = None;
        let link = match open::link(&base.settings, &base.environment, &talk)? {
            Some(link) => {
                if !has_begun {
                    let recorder = record(link.log());
                    kept.lock().unwrap_or_else(PoisonError::into_inner).extend(recorder);
                }
                if keeps {
                    // Without it other windows only look on.
                    opened_door = Door::open(door, &link)
                        .inspect_err(|error| tracing::warn!(%error, "other windows cannot answer what is asked here"))
                        .ok();
                }
                link
            }
            None => first::start(first::Chooser {
                settings: base.settings.clone(),
                environment: base.environment.clone(),
                workspace: base.workspace.clone(),
                tour: tour()?,
                switch,
                record: Box::new(record),
                recorders: kept,
                stages: set,
            }),
        };
        let code = show(base.screen(link, switched, prompt, keeps, Some(library)), end).await?;
        drop(opened_door);
        Ok::<_, anyhow::Error>(code)
    });
    // The last lines reach the disk before the runtime takes its tasks down.
    recorders.lock().unwrap_or_else(PoisonError::into_inner).clear();
    // Commands of a live tour end with its tasks, and before its folder.
    drop(runtime);
    stages.lock().unwrap_or_else(PoisonError::into_inner).clear();
    code
}

/// A recording: on the screen, where its questions can be answered, or printed as it stands.
fn play(recording: &Recording, pace: Pace, printing: &Printing, end: End, common: &Common) -> Result<u8> {
    let base = Base::of(common, &Whom::default())?;
    if !printing.print && (end.plain || io::stdout().is_terminal()) {
        return runtime(false)?.block_on(async move {
            let link = Arc::new(Replay::start(recording, pace.speed, Audience::Present));
            let (_, switched) = mpsc::unbounded_channel();
            show(base.screen(link, switched, None, false, None), end).await
        });
    }
    runtime(false)?.block_on(async move {
        // Nobody is there to say when.
        let speed = match pace.speed {
            Speed::ByStep => Speed::AtOnce,
            speed @ (Speed::AtOnce | Speed::Times(_)) => speed,
        };
        let link = Replay::start(recording, speed, Audience::Absent);
        let options = run::options(&base, printing, common, String::new());
        Ok(print_answer(&link, None, options).await)
    })
}

/// Whether a recording ends as another one does.
fn compare(asked: &arguments::Replay) -> Result<u8> {
    let found = recorded(&asked.file)?;
    let Some(wanted) = &asked.assert else {
        return Ok(code::USAGE);
    };
    let said = assert::differences(&found, &recorded(wanted)?);
    for line in &said {
        say(&format!("{line}\n"));
    }
    Ok(if said.is_empty() { code::OK } else { code::FAILED })
}

/// The live tour, on the screen: there is nobody else who could answer what it asks.
fn play_live(tour: &arguments::Tour) -> Result<u8> {
    if tour.printing.print || !(tour.end.plain || io::stdout().is_terminal()) {
        complain("the live tour needs a terminal\n  sheaf tour -p  prints the recorded one");
        return Ok(code::USAGE);
    }
    let mut base = Base::of(&tour.common, &Whom::default())?;
    "agent".clone_into(&mut base.settings.mode);
    let stage = live::Stage::set()?;
    base.workspace = stage.workspace();
    let runtime = runtime(false)?;
    let code = runtime.block_on(async {
        let link = live::link(&stage, tour.pace.speed)?;
        let (_, switched) = mpsc::unbounded_channel();
        let opening = Some(live::OPENING.to_owned());
        show(base.screen(link, switched, opening, false, None), tour.end).await
    });
    // Commands that still run end with the runtime's tasks, and before their folder.
    drop(runtime);
    drop(stage);
    code
}

async fn print_answer(link: &dyn Link, submit: Option<Submit>, options: Options) -> u8 {
    let mut stops = listen();
    let mut out = io::stdout().lock();
    let mut err = io::stderr();
    let outputs = Outputs {
        out: &mut out,
        err: &mut err,
    };
    match print::run(link, submit, options, outputs, &mut stops, tui::now_ms).await {
        Ending::Answered => code::OK,
        Ending::Failed => code::FAILED,
        Ending::Refused => code::REFUSED,
        Ending::NoSandbox => code::NO_SANDBOX,
        Ending::Stopped(Stop::Interrupt) => code::INTERRUPTED,
        Ending::Stopped(Stop::Terminate) => code::TERMINATED,
    }
}

/// Signals that want us to end, as they come.
fn listen() -> mpsc::Receiver<Stop> {
    let (sender, stops) = mpsc::channel(4);
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        for (kind, stop) in [
            (SignalKind::interrupt(), Stop::Interrupt),
            (SignalKind::terminate(), Stop::Terminate),
            (SignalKind::hangup(), Stop::Terminate),
        ] {
            let Ok(mut signals) = signal(kind) else { continue };
            let sender = sender.clone();
            tokio::spawn(async move { while signals.recv().await.is_some() && sender.send(stop).await.is_ok() {} });
        }
    }
    #[cfg(not(unix))]
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() && sender.send(Stop::Interrupt).await.is_ok() {}
    });
    stops
}

fn settings(ask: &Setting, common: &Common) -> Result<u8> {
    let base = Base::of(common, &Whom::default())?;
    for problem in &base.problems {
        complain(&problem.to_string());
    }
    match ask {
        Setting::Path => {
            let paths = &base.paths;
            for (what, path) in [
                ("settings", paths.settings()),
                ("keys", paths.keymap()),
                ("themes", paths.themes()),
                ("sessions", paths.sessions()),
                ("state", paths.state.clone()),
                ("cache", paths.cache.clone()),
            ] {
                say(&format!("{what:<9} {}\n", path.display()));
            }
        }
        Setting::Get { key } => {
            let found = config::explain(&base.settings);
            let Some(it) = found.iter().find(|it| it.path == *key) else {
                let names = found.iter().map(|it| it.path.as_str());
                let hint = config::suggestion(key, names).unwrap_or_default();
                complain(&format!("there is no setting `{key}`\n  {hint}"));
                return Ok(code::USAGE);
            };
            say(&format!("{}\n", it.value.as_deref().unwrap_or_default()));
        }
        Setting::Set { key, value } => config::store(&base.paths, key, value.as_deref())?,
        Setting::Explain => {
            for it in config::explain(&base.settings) {
                say(&format!(
                    "{} = {}  # {}\n",
                    it.path,
                    it.value.as_deref().unwrap_or("(none)"),
                    it.origin
                ));
            }
        }
        Setting::Reference => say(&config::reference()),
        Setting::Locale { tag } => {
            let Some(language) = locale::LANGUAGES.iter().find(|it| it.tag == tag) else {
                let known: Vec<_> = locale::LANGUAGES.iter().map(|it| it.tag).collect();
                complain(&format!(
                    "there is no language `{tag}` built in\n  there are {}",
                    known.join(", ")
                ));
                return Ok(code::USAGE);
            };
            say(language.text);
        }
        Setting::Keymap => say(tui::keymap::BUILT_IN),
        Setting::Theme { name } => {
            let Some((_, text)) = theme::BUILT_IN.iter().find(|it| it.0 == name) else {
                let known: Vec<_> = theme::BUILT_IN.iter().map(|it| it.0).collect();
                complain(&format!(
                    "there is no theme `{name}` built in\n  there are {}",
                    known.join(", ")
                ));
                return Ok(code::USAGE);
            };
            say(text);
        }
    }
    Ok(code::OK)
}

/// The repository around the folder, else the folder.
fn workspace(wanted: Option<&Path>) -> Result<PathBuf> {
    let folder = match wanted {
        Some(folder) => std::fs::canonicalize(folder)
            .map_err(|error| Misused(format!("--workspace: {} cannot be had: {error}", folder.display())))?,
        None => std::env::current_dir().context("this folder is gone")?,
    };
    if !folder.is_dir() {
        return Err(Misused(format!("--workspace: {} is no folder", folder.display())).into());
    }
    if wanted.is_some() {
        return Ok(folder);
    }
    let root = folder.ancestors().find(|it| it.join(".git").exists());
    Ok(root.map_or_else(|| folder.clone(), Path::to_owned))
}

/// One thread for a conversation, screen and all: a token that had to wake a second one would cost several times what it
/// costs to show. What takes long has threads of its own (files, colours, large lines). A server needs more.
fn runtime(is_server: bool) -> Result<Runtime> {
    let mut builder = if is_server {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2);
        builder
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let runtime = builder.enable_all().build().context("no runtime could be started")?;
    Ok(Runtime(Some(runtime)))
}

/// What runs everything. In the end it waits for work on other threads, such as a change that is being written, but not for
/// ever: a file system that does not answer must not keep the program.
struct Runtime(Option<tokio::runtime::Runtime>);

/// As long as that work may take.
const LAST_MOMENT: std::time::Duration = std::time::Duration::from_secs(3);

impl Runtime {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.0.as_ref().expect("it is taken in `drop` only").block_on(future)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_timeout(LAST_MOMENT);
        }
    }
}

/// A single word behind options that names a command was meant as one, more likely than not.
fn hidden_command(parsed: &Arguments, arguments: &[OsString]) -> Option<String> {
    let [word] = parsed.prompt.as_slice() else { return None };
    if parsed.task.is_some() || arguments.iter().any(|it| it == "--") {
        return None;
    }
    let known = <Arguments as clap::CommandFactory>::command();
    known.get_subcommands().any(|it| it.get_name() == word).then(|| {
        format!("`{word}` is a command: its options stand behind it\n  sheaf {word} …    or, as a prompt:  sheaf … -- {word}")
    })
}

fn chain(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        // Some texts repeat the cause they wrap.
        if !text.contains(&cause) {
            text.push_str("\n  because ");
            text.push_str(&cause);
        }
    }
    text
}

/// To standard output; whoever closed it does not want to read on.
fn say(text: &str) {
    let _ = io::stdout().write_all(Clean::new(text).as_bytes());
}

fn complain(text: &str) {
    let text = Clean::new(&redact(&format!("sheaf: {}\n", text.trim_end())));
    let _ = io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use serde_json::Value;

    use super::*;
    use crate::{
        link::replay::Speed,
        print::Format,
        protocol::{Event, Kind, Severity, View},
        transcript::Transcript,
    };

    fn played() -> Transcript {
        let mut transcript = Transcript::default();
        for entry in tour().expect("it can be played").entries().iter() {
            transcript.apply(entry);
        }
        transcript
    }

    #[test]
    fn what_never_ends_does_not_keep_the_program() {
        let runtime = runtime(false).expect("a runtime");
        let (begun, has_begun) = std::sync::mpsc::channel();
        let (_keep, never) = std::sync::mpsc::channel::<()>();
        runtime.block_on(async {
            tokio::task::spawn_blocking(move || {
                begun.send(()).ok();
                never.recv().ok();
            });
        });
        has_begun.recv().expect("it runs");
        // Comes back although the other thread does not.
        drop(runtime);
    }

    #[test]
    fn the_tour_shows_every_kind_and_thinking() {
        let transcript = played();
        let responses = || transcript.exchanges.iter().map(|it| &it.response);
        let kinds: BTreeSet<_> = responses()
            .flat_map(|it| &it.documents)
            .map(|it| it.kind.as_str())
            .collect();
        let all: BTreeSet<_> = Kind::KNOWN.iter().copied().collect();
        assert_eq!(kinds, all);
        assert!(responses().any(|it| !it.thinking.is_empty()));
        assert_eq!(transcript.exchanges.len(), 3);
        assert_eq!(transcript.todos.progress(), (4, 4));
    }

    #[test]
    fn the_tour_is_whole_and_takes_a_minute_or_so() {
        let recording = tour().expect("it can be played");
        let entries = recording.entries();
        let repaired = entries
            .iter()
            .find(|it| matches!(&it.event, Event::Notice(notice) if notice.severity > Severity::Info));
        assert_eq!(repaired, None);
        assert!(played().exchanges.iter().all(|it| it.response.ending.is_some()));
        let takes = entries.last().map_or(0, |it| it.at_ms) - entries.first().map_or(0, |it| it.at_ms);
        assert!((60_000..90_000).contains(&takes), "{takes} ms");
    }

    #[test]
    fn the_tours_questions_can_be_answered_and_its_approval_refused() {
        let transcript = played();
        let documents = transcript.exchanges.iter().flat_map(|it| &it.response.documents);
        let questions: Vec<_> = documents
            .filter_map(|it| match it.view() {
                View::Clarification(view) => Some((it.id.clone(), view)),
                _ => None,
            })
            .collect();
        assert!(
            questions.iter().any(|(_, it)| it.questions.len() == 2),
            "a form of two questions"
        );
        assert!(questions.iter().any(|(_, it)| it.subject.is_some()), "an approval");
        for (id, it) in &questions {
            // Without a recorded outcome the player would not wait for an answer.
            assert!(it.outcome.is_some(), "{id}");
            for answer in &it.answers {
                let question = it
                    .questions
                    .iter()
                    .find(|it| it.id == answer.question_id)
                    .expect("it is asked");
                let is_option = |id: &String| question.options.iter().any(|it| it.id == *id);
                assert!(answer.selected_option_ids.iter().all(is_option), "{id}");
            }
        }
        let recording = tour().expect("it can be played");
        let marks: Vec<_> = recording
            .entries()
            .iter()
            .filter_map(|it| match &it.event {
                Event::Unknown { name, data } => Some((
                    name.clone(),
                    data.get("document").and_then(Value::as_str).map(str::to_owned),
                )),
                _ => None,
            })
            .collect();
        for pair in marks.chunks(2) {
            let [(branch, Some(document)), (join, None)] = pair else {
                panic!("a branch and its join: {pair:?}");
            };
            assert_eq!((branch.as_str(), join.as_str()), ("replay_branch", "replay_join"));
            assert!(questions.iter().any(|(id, _)| id.as_str() == document), "{document}");
        }
        assert_eq!(marks.len(), 4, "what is done and what is said when it is refused");
    }

    #[test]
    fn the_tour_says_the_same_at_any_pace() {
        let recording = tour().expect("it can be played");
        let mut paced = Transcript::default();
        for entry in recording.paced().iter() {
            paced.apply(entry);
        }
        let whole = played();
        assert_eq!(paced.exchanges.len(), whole.exchanges.len());
        for (paced, whole) in paced.exchanges.iter().zip(&whole.exchanges) {
            assert_eq!(paced.response.documents, whole.response.documents);
            assert_eq!(paced.response.thinking, whole.response.thinking);
        }
        assert!(
            recording.paced().len() > 5 * recording.entries().len(),
            "it comes in pieces"
        );
    }

    #[test]
    fn a_workspace_is_the_repository_around_or_the_folder_that_is_named() {
        let home = tempfile::tempdir().expect("a folder");
        let inner = home.path().join("a/b");
        std::fs::create_dir_all(&inner).expect("made");
        assert_eq!(
            workspace(Some(&inner)).expect("it is there"),
            inner.canonicalize().expect("it is there")
        );
        assert!(workspace(Some(&home.path().join("none"))).is_err());
        std::fs::write(inner.join("file"), "").expect("written");
        assert!(workspace(Some(&inner.join("file"))).is_err());
    }

    #[test]
    fn a_chain_of_causes_is_told_once() {
        let io = io::Error::other("the cause");
        let error = anyhow::Error::new(io).context("the file is gone");
        assert_eq!(chain(&error), "the file is gone\n  because the cause");
        let twice = anyhow::anyhow!("the cause").context("failed: the cause");
        assert_eq!(chain(&twice), "failed: the cause");
    }

    #[tokio::test]
    async fn nobody_at_the_tour_hears_all_of_it() {
        let link = Replay::start(&tour().expect("it can be played"), Speed::AtOnce, Audience::Absent);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let outputs = Outputs {
            out: &mut out,
            err: &mut err,
        };
        let (_stop, mut stops) = mpsc::channel(1);
        let printing = print::run(&link, None, Format::Text.into(), outputs, &mut stops, tui::now_ms);
        let ending = tokio::time::timeout(Duration::from_secs(30), printing).await;
        assert_eq!(ending.expect("it ends"), Ending::Answered);
        let out = String::from_utf8(out).expect("it is text");
        assert!(
            out.starts_with("**Welcome.**") && out.ends_with("one **F1** away.\n"),
            "{out}"
        );
        assert!(
            out.contains("Pushed.") && !out.contains("Not pushed"),
            "the recorded answer stands"
        );
        assert!(String::from_utf8_lossy(&err).contains("EDIT_NO_MATCH"));
    }
}
