//! Composition root: each subcommand chooses a link and a consumer. The only module that may use all others.
//!
//! Before the first frame no network request is made and no folder is walked: arguments, settings, screen.

mod arguments;
mod assert;
mod attach;
mod attached;
mod boundary;
mod cache;
mod chat;
mod completions;
mod conform;
mod dialogue;
pub mod doctor;
mod index;
mod library;
mod live_tour;
mod login;
mod mcp;
mod mcp_serve;
mod onboarding;
mod open;
mod plugin;
mod run;
mod schema;
mod search;
mod searching;
mod serve;
mod sessions;
mod trace;
mod undo;
mod why;

use std::{
    ffi::OsString,
    io::{self, IsTerminal as _, Read as _, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context as _, Result};
use tokio::sync::mpsc;

use self::{
    arguments::{
        Arguments, CommonArguments, DisplayArguments, InputFormat, OutputArguments, OutputFormat, Pace, Run, Setting,
        TargetArguments, Task, mistyped,
    },
    open::ConversationOptions,
};
use crate::{
    agent::{approval::Rules, git::commit},
    config::{self, Environment, Fingerprint, Paths, Problem, Settings, TrustStore},
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
    os::{self, file, long_text},
    print::{self, Outputs, PrintOptions, RunOutcome, StopSignal},
    protocol::{self, Mode, Notice, Query, Submit},
    sandbox,
    text::{Sanitized, redact::redact},
    theme, tools, tui,
};

/// Exit codes that callers may rely on.
mod code {
    pub const OK: u8 = 0;
    pub const FAILED: u8 = 1;
    pub const USAGE: u8 = 2;
    pub const NO_SANDBOX: u8 = 3;
    pub const REFUSED: u8 = 4;
    pub const HUNG_UP: u8 = 129;
    pub const INTERRUPTED: u8 = 130;
    pub const TERMINATED: u8 = 143;
}

/// Maximum size of a recording, in bytes.
const RECORDING_BYTES: u64 = 1 << 30;

/// The conversation of `sheaf tour`.
const TOUR: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tour-tour.jsonl.deflate"));

/// Runs the program. `arguments` begin with its name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    // First, while there is one thread: the helper of the sandbox needs that.
    if let Some(code) = sandbox::helper(&arguments) {
        return code;
    }
    os::process::seal();
    os::process::outlive_file_size_limit();
    if let Some(hint) = mistyped(&arguments) {
        complain(&hint);
        return ExitCode::from(code::USAGE);
    }
    let parsed = match Arguments::read(&arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            // Help goes to standard output and is no failure; clap decides.
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    if let Some(hint) = hidden_command(&parsed, &arguments) {
        complain(&hint);
        return ExitCode::from(code::USAGE);
    }
    protocol::tool_label::publish(tools::labels);
    let done = dispatch(parsed);
    // The terminal is the person's again, and the conversation that would have told it is gone.
    for sentence in sandbox::take_unsaid() {
        complain(&sentence);
    }
    // Servers of tools have a moment to end by themselves.
    crate::mcp::settle();
    crate::lsp::settle();
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            complain(&chain(&error));
            let is_usage = error.downcast_ref::<UsageError>().is_some();
            ExitCode::from(if is_usage { code::USAGE } else { code::FAILED })
        }
    }
}

/// An impossible command line; ends the program with exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct UsageError(String);

fn dispatch(arguments: Arguments) -> Result<u8> {
    let Arguments {
        task,
        prompt,
        printing,
        whom,
        run,
        common,
    } = arguments;
    if run.session_id.is_some() && !run.fork && (run.goes_on || run.resume.is_some()) {
        complain("--session-id is for a new conversation; add --fork to continue a copy under that id");
        return Ok(code::USAGE);
    }
    if let Some(problem) = printing.problem(run.input_format) {
        complain(problem);
        return Ok(code::USAGE);
    }
    match task {
        None => start_conversation(prompt, &printing, &whom, &run, &common),
        Some(Task::Replay(it)) if it.assert.is_some() => compare_recordings(&it),
        Some(Task::Replay(it)) => play(&read_recording(&it.file)?, it.pace, &it.printing, it.end, &it.common),
        Some(Task::Tour(it)) if it.live => play_live(&it),
        Some(Task::Tour(it)) => play(&tour()?, Pace { speed: it.speed }, &it.printing, it.end, &it.common),
        Some(Task::Serve(it)) => serve::run(&it),
        Some(Task::Conform(it)) => conform::run(&it),
        Some(Task::Doctor(it)) => {
            let base = CliContext::of(&it.common, &it.whom)?;
            let CliContext {
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
        Some(Task::Login(it)) => login::login(&it),
        Some(Task::Logout(it)) => login::logout(&it),
        Some(Task::Config(it)) => settings(&it.ask, &it.common),
        Some(Task::CreateChat(it)) => chat::create(&CliContext::of(&it.common, &it.whom)?),
        Some(Task::Status(it)) => Ok(chat::status(&CliContext::of(&it.common, &it.whom)?)),
        Some(Task::Models(it)) => chat::models(&CliContext::of(&it.common, &it.whom)?),
        Some(Task::Sessions(it)) => sessions::run(&it),
        Some(Task::Plugin(it)) => plugin::run(&it),
        Some(Task::Get(it)) => sessions::get(&it),
        Some(Task::Search(it)) => search::run(&it),
        Some(Task::Index(it)) => index::run(&it),
        Some(Task::Why(it)) => why::run(&it),
        Some(Task::Undo(it)) => undo::undo(&it),
        Some(Task::Redo(it)) => undo::redo(&it),
        Some(Task::Rewind(it)) => undo::rewind(&it),
        Some(Task::Sandbox(it)) => boundary::run(it.ask),
        Some(Task::Mcp(it)) => mcp::run(&it),
        Some(Task::Completions { shell }) => Ok(completions::completions(shell)),
        Some(Task::Man { dir }) => completions::manual(dir.as_deref()),
    }
}

/// Shows a conversation: full-screen, inline, or as plain lines.
async fn show(mut setup: tui::Setup, end: DisplayArguments) -> Result<u8> {
    let code = if end.plain {
        let columns = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |it| it.ws_col);
        let console = tui::screen_reader::Console {
            out: Box::new(io::stdout()),
            is_typed: io::stdin().is_terminal(),
            columns: if columns == 0 { 80 } else { columns },
        };
        Box::pin(tui::screen_reader::run(setup, console)).await
    } else {
        setup.is_inline = end.inline;
        Box::pin(tui::run(setup)).await
    };
    // A commit that git has made is not left half done.
    commit::settle().await;
    Ok(code?)
}

/// Follows a conversation that another sheaf has open.
fn watch(
    base: CliContext,
    followed: Followed,
    prompt: Option<String>,
    keeps: bool,
    end: DisplayArguments,
) -> Result<u8> {
    runtime(false)?.block_on(async move {
        let link = Arc::new(Follow::start(followed));
        let (_, switched) = mpsc::unbounded_channel();
        show(base.screen(link, switched, prompt, keeps, None), end).await
    })
}

/// Reads a recording from a file.
fn read_recording(path: &Path) -> Result<Recording> {
    let bytes = file::read(path, RECORDING_BYTES)?;
    let name = path
        .file_name()
        .map_or_else(String::new, |it| it.to_string_lossy().into_owned());
    Ok(Recording::read(name, &bytes)?)
}

/// Returns the built-in recorded tour.
fn tour() -> Result<Recording> {
    let mut unpacked = Vec::new();
    flate2::read::DeflateDecoder::new(TOUR).read_to_end(&mut unpacked)?;
    Ok(Recording::read("the tour", &unpacked)?)
}

/// Settings, paths and environment that every subcommand needs.
#[derive(Clone)]
struct CliContext {
    settings: Settings,
    problems: Vec<Problem>,
    paths: Paths,
    workspace: PathBuf,
    environment: Environment,
    /// Custom mode of the messages (`--agent`).
    custom_mode: Option<String>,
}

/// Source of the trust that lets a workspace's settings take effect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TrustSource {
    /// The user's stored decision on this workspace.
    Stored,
    /// The user's settings only: nobody can be shown what the workspace wants.
    Settings,
    /// `--trust` on the command line.
    CommandLine,
}

/// Returns the settings of a workspace if they are trusted.
fn trusted_settings(
    settings: &Settings,
    paths: &Paths,
    workspace: &Path,
    word: TrustSource,
) -> Option<config::SettingsFile> {
    let file = config::SettingsFile::of_project(workspace)?;
    let may_act = settings.is_trusted(workspace)
        || match word {
            TrustSource::CommandLine => true,
            TrustSource::Settings => false,
            TrustSource::Stored => {
                let inner = file.path.strip_prefix(workspace).unwrap_or(&file.path);
                let print = Fingerprint::of(&[file.text.as_bytes()]);
                TrustStore::under(&paths.state)
                    .record(workspace)
                    .allows(&inner.to_string_lossy(), &print)
            }
        };
    may_act.then_some(file)
}

impl CliContext {
    /// Loads the context for a command of a user at a terminal.
    fn of(common: &CommonArguments, whom: &TargetArguments) -> Result<Self> {
        Self::by(common, whom, TrustSource::Stored)
    }

    /// Loads the context. `word` decides if the workspace's settings take effect.
    fn by(common: &CommonArguments, whom: &TargetArguments, word: TrustSource) -> Result<Self> {
        if common.sandbox == Some(false) {
            sandbox::force_off();
        }
        let environment = Environment::of_process();
        let paths = Paths::of_user().context("no home folder\n  set HOME")?;
        long_text::SpillPolicy::in_folder(paths.scratch()).apply();
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
            custom_mode: None,
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
            custom_mode: self.custom_mode,
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

    /// Returns a function that starts to record a log, as `session` the first time and as a new session later. It
    /// returns `None` if nothing is to be stored.
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

    /// Returns the facts of a new session in this workspace.
    fn session(&self) -> Session {
        Session::fresh(self.workspace.to_string_lossy(), tui::now_ms()).on_branch(tui::git_branch(&self.workspace))
    }
}

/// Starts a conversation: on the screen, or one answer without it.
fn start_conversation(
    prompt: Vec<String>,
    printing: &OutputArguments,
    whom: &TargetArguments,
    wanted: &Run,
    common: &CommonArguments,
) -> Result<u8> {
    let end = wanted.end;
    let is_shown = !printing.print && printing.output_format == OutputFormat::Text && printing.output.is_none();
    let has_screen = is_shown && (end.plain || io::stdout().is_terminal() && !attach::is_piped());
    let word = match (wanted.trust, has_screen) {
        (true, _) => TrustSource::CommandLine,
        (false, true) => TrustSource::Stored,
        (false, false) => TrustSource::Settings,
    };
    let mut base = CliContext::by(common, whom, word)?;
    let mut words = prompt.join(" ");
    let is_open_choice = chat::is_open_choice(wanted, &words);
    if is_open_choice && (!has_screen || end.plain) {
        complain(
            "--resume without an id opens a list, which needs a screen\n  --resume=ID names a conversation, --continue resumes the last one",
        );
        return Ok(code::USAGE);
    }
    let resumed = chat::resume_target(wanted, &mut words, |it| chat::is_title(&base, it)).filter(|_| !is_open_choice);
    if let Err(problem) = run::apply_arguments(wanted, &mut base, has_screen) {
        complain(&problem);
        return Ok(code::USAGE);
    }
    if common.sandbox == Some(true)
        && let Some(problem) = run::missing_sandbox(&base)
    {
        complain(&problem);
        return Ok(code::NO_SANDBOX);
    }
    if has_screen && (!wanted.image.is_empty() || wanted.output_schema.is_some()) {
        complain("--image and --output-schema are for an answer without a screen: add -p");
        return Ok(code::USAGE);
    }
    let is_dialogue = wanted.input_format == InputFormat::StreamJson;
    if is_dialogue && wanted.output_schema.is_some() {
        complain("--output-schema is for one answer; leave out --input-format stream-json");
        return Ok(code::USAGE);
    }
    let prompt = if (end.plain && has_screen) || is_dialogue {
        // Standard input carries the lines of the conversation.
        Some(words).filter(|it| !it.trim().is_empty())
    } else {
        attach::prompt(words, &mut |text| complain(text))?
    };
    if wanted.attach.is_some() && !has_screen {
        complain("--attach opens a screen; for one answer use --gateway URL -p");
        return Ok(code::USAGE);
    }
    if !has_screen {
        if prompt.is_none() && !is_dialogue {
            complain("no prompt\n  sheaf -p 'what does src/main.rs do?'");
            return Ok(code::USAGE);
        }
        return run::print(base, prompt, printing, common, wanted, resumed);
    }
    if let Some(address) = &wanted.attach {
        return attached::run(base, address, prompt, end);
    }
    let keeps = !wanted.no_session;
    let session = chat::named(&base, base.session(), wanted.session_id.as_deref())?;
    let record = base.recording(wanted.no_session, session.clone());
    let (store, ending_store) = (chat::store(&base), chat::store(&base));
    let opened = match resumed {
        None => None,
        Some(it) if wanted.fork => Some(chat::fork(
            &base,
            &store,
            &it,
            wanted.session_id.as_deref(),
            wanted.no_session,
        )?),
        Some(it) => match chat::open(&base, &store, &it, wanted.no_session) {
            Ok(opened) => Some(opened),
            Err(error) => {
                let held = error.downcast_ref::<StoreError>();
                match held.and_then(|it| chat::followed(&store, &base.paths.state, it)) {
                    Some(followed) => return watch(base, followed, prompt, keeps, end),
                    None => return Err(error),
                }
            }
        },
    };
    let door = chat::answer_socket(
        &base.paths.state,
        opened.as_ref().map_or(&session.id, |it| &it.session.id),
    );
    let runtime = runtime(false)?;
    let recorders = Arc::new(Mutex::new(Vec::new()));
    let tour_folders = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&recorders);
    let set = Arc::clone(&tour_folders);
    let added = run::folders(&wanted.add_dir);
    let code = runtime.block_on(async move {
        let (switch, switched) = mpsc::unbounded_channel();
        let has_begun = opened.is_some();
        let is_copy = opened.as_ref().is_some_and(|it| it.is_copy);
        let (log, recorder) = opened.map_or_else(|| (Log::new(), None), |it| (it.log, it.recorder));
        kept.lock().unwrap_or_else(PoisonError::into_inner).extend(recorder);
        let talk = ConversationOptions {
            workspace: base.workspace.clone(),
            added,
            log,
            is_copy,
            is_attended: true,
            is_answered: false,
            has_user_answers: false,
            is_apart: false,
            tools: wanted.tools.as_deref().map(run::tool_names),
        };
        let library = library::SessionLibrary::new(&base, talk.added.clone(), keeps, Arc::clone(&kept));
        let library = Arc::new(library.with_list(is_open_choice));
        let mut opened_door = None;
        let link = match open::link(&base.settings, &base.environment, &talk)? {
            Some(link) => {
                if !has_begun {
                    let recorder = record(link.log());
                    kept.lock().unwrap_or_else(PoisonError::into_inner).extend(recorder);
                }
                if keeps {
                    // Without it other windows can only watch.
                    opened_door = Door::open(door, &link)
                        .inspect_err(|error| tracing::warn!(%error, "other windows cannot answer questions here"))
                        .ok();
                }
                link
            }
            None => onboarding::start(onboarding::Onboarding {
                settings: base.settings.clone(),
                environment: base.environment.clone(),
                workspace: base.workspace.clone(),
                tour: tour()?,
                switch,
                record: Box::new(record),
                recorders: kept,
                tour_folders: set,
            }),
        };
        let code = show(base.screen(link, switched, prompt, keeps, Some(library)), end).await?;
        drop(opened_door);
        Ok::<_, anyhow::Error>(code)
    });
    // Finishes writing sessions before the runtime ends their tasks. The screen is gone, and with it what it said.
    let recorders: Vec<_> = recorders
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .drain(..)
        .collect();
    let last = recorders.last().map(|it| it.id().to_owned());
    for recorder in recorders {
        if let Err(failure) = recorder.finish() {
            complain(&failure.to_string());
        }
    }
    // Nothing is written for a conversation in which nothing was said.
    if let Some(id) = last.filter(|it| ending_store.path_of(it).exists()) {
        say(&format!("Resume with: sheaf --resume {id}\n"));
    }
    // Commands of a live tour end with its tasks, which must happen before its folder is removed.
    drop(runtime);
    tour_folders.lock().unwrap_or_else(PoisonError::into_inner).clear();
    code
}

/// Plays a recording: on the screen, where its questions can be answered, or printed.
fn play(
    recording: &Recording,
    pace: Pace,
    printing: &OutputArguments,
    end: DisplayArguments,
    common: &CommonArguments,
) -> Result<u8> {
    let base = CliContext::of(common, &TargetArguments::default())?;
    if !printing.print && printing.output.is_none() && (end.plain || io::stdout().is_terminal()) {
        return runtime(false)?.block_on(async move {
            let link = Arc::new(Replay::start(recording, pace.speed, Audience::Present));
            let (_, switched) = mpsc::unbounded_channel();
            show(base.screen(link, switched, None, false, None), end).await
        });
    }
    let out = run::answer_output(printing.output.as_deref()).map_err(UsageError)?;
    runtime(false)?.block_on(async move {
        // Without a screen nobody can step.
        let speed = match pace.speed {
            Speed::ByStep => Speed::AtOnce,
            speed @ (Speed::AtOnce | Speed::Times(_)) => speed,
        };
        let link = Replay::start(recording, speed, Audience::Absent);
        let options = run::options(&base, printing, common, String::new());
        Ok(print_answer(&link, None, options, out).await)
    })
}

/// Compares the end of a recording with that of another one.
fn compare_recordings(asked: &arguments::Replay) -> Result<u8> {
    let found = read_recording(&asked.file)?;
    let Some(wanted) = &asked.assert else {
        return Ok(code::USAGE);
    };
    let said = assert::differences(&found, &read_recording(wanted)?);
    for line in &said {
        say(&format!("{line}\n"));
    }
    Ok(if said.is_empty() { code::OK } else { code::FAILED })
}

/// Plays the live tour, which needs a screen: its questions want answers.
fn play_live(tour: &arguments::Tour) -> Result<u8> {
    if tour.printing.print || !(tour.end.plain || io::stdout().is_terminal()) {
        complain("the live tour needs a terminal\n  sheaf tour -p  prints the recorded one");
        return Ok(code::USAGE);
    }
    let mut base = CliContext::of(&tour.common, &TargetArguments::default())?;
    "agent".clone_into(&mut base.settings.mode);
    let stage = live_tour::TourFolder::create()?;
    base.workspace = stage.workspace();
    let runtime = runtime(false)?;
    let code = runtime.block_on(async {
        let link = live_tour::link(&stage, tour.speed)?;
        let (_, switched) = mpsc::unbounded_channel();
        let opening = Some(live_tour::OPENING.to_owned());
        show(base.screen(link, switched, opening, false, None), tour.end).await
    });
    // Running commands end with the runtime's tasks, which must happen before their folder is removed.
    drop(runtime);
    drop(stage);
    code
}

async fn print_answer(link: &dyn Link, submit: Option<Submit>, options: PrintOptions, mut out: Box<dyn Write>) -> u8 {
    let mut stops = listen();
    let mut err = io::stderr();
    let outputs = Outputs {
        out: &mut *out,
        err: &mut err,
    };
    let outcome = print::run(link, submit, options, outputs, &mut stops, tui::now_ms).await;
    tokio::time::timeout(SHUTDOWN_TIMEOUT, link.ask(Query::EndSession))
        .await
        .ok();
    match outcome {
        RunOutcome::Answered => code::OK,
        RunOutcome::Failed => code::FAILED,
        RunOutcome::WrongInput => code::USAGE,
        RunOutcome::Refused => code::REFUSED,
        RunOutcome::NoSandbox => code::NO_SANDBOX,
        RunOutcome::Stopped(StopSignal::Interrupt) => code::INTERRUPTED,
        RunOutcome::Stopped(StopSignal::HangUp) => code::HUNG_UP,
        RunOutcome::Stopped(StopSignal::Terminate) => code::TERMINATED,
    }
}

/// Returns a channel of signals that end the program.
fn listen() -> mpsc::Receiver<StopSignal> {
    let (sender, stops) = mpsc::channel(4);
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [
            (SignalKind::interrupt(), StopSignal::Interrupt),
            (SignalKind::terminate(), StopSignal::Terminate),
            (SignalKind::hangup(), StopSignal::HangUp),
        ];
        // Under nohup a hangup is ignored from the start, and stays so.
        let is_nohup = |it: SignalKind| it == SignalKind::hangup() && os::ending::is_ignored(it.as_raw_value());
        let kinds = kinds.into_iter().filter(|it| !is_nohup(it.0));
        let kinds: Vec<_> = kinds.collect();
        os::ending::limit(kinds.iter().map(|it| it.0.as_raw_value()), || {});
        for (kind, stop) in kinds {
            let Ok(mut signals) = signal(kind) else { continue };
            let sender = sender.clone();
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    os::ending::noticed(true);
                    if sender.send(stop).await.is_err() {
                        break;
                    }
                }
            });
        }
    }
    #[cfg(not(unix))]
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() && sender.send(StopSignal::Interrupt).await.is_ok() {}
    });
    stops
}

/// Says which rules that forbid or ask cannot be read. Returns true if there are any: where nobody can be asked, the program ends.
fn has_unreadable_rules(base: &CliContext) -> bool {
    let problems = Rules::unreadable(&base.settings, std::env::home_dir().as_deref());
    for problem in &problems {
        complain(problem);
    }
    !problems.is_empty()
}

fn settings(ask: &Setting, common: &CommonArguments) -> Result<u8> {
    let base = CliContext::of(common, &TargetArguments::default())?;
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
                complain(&format!("unknown setting `{key}`\n  {hint}"));
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
                    "no built-in language `{tag}`\n  languages: {}",
                    known.join(", ")
                ));
                return Ok(code::USAGE);
            };
            say(language.text);
            if tag == "en" {
                say(&config::messages());
            }
        }
        Setting::Keymap => say(tui::app::keymap::BUILT_IN),
        Setting::Theme { name } => {
            let Some((_, text)) = theme::BUILT_IN.iter().find(|it| it.0 == name) else {
                let known: Vec<_> = theme::BUILT_IN.iter().map(|it| it.0).collect();
                complain(&format!("no built-in theme `{name}`\n  themes: {}", known.join(", ")));
                return Ok(code::USAGE);
            };
            say(text);
        }
    }
    Ok(code::OK)
}

/// Returns the wanted folder, else the repository around the current folder, else the current folder.
fn workspace(wanted: Option<&Path>) -> Result<PathBuf> {
    let folder = match wanted {
        Some(folder) => std::fs::canonicalize(folder)
            .map_err(|error| UsageError(format!("--workspace: cannot open {}: {error}", folder.display())))?,
        None => std::env::current_dir().context("the current folder no longer exists")?,
    };
    if !folder.is_dir() {
        return Err(UsageError(format!("--workspace: {} is not a folder", folder.display())).into());
    }
    if wanted.is_some() {
        return Ok(folder);
    }
    let root = folder.ancestors().find(|it| it.join(".git").exists());
    Ok(root.map_or_else(|| folder.clone(), Path::to_owned))
}

/// Creates the runtime: two threads for a server, else one for everything, the screen included.
///
/// A token that had to wake a second thread would cost several times as much as showing it. Slow work (files, colours,
/// large lines) has its own threads.
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

/// A runtime that at its end waits for work on other threads, such as a file being written, but not forever: a file
/// system that does not answer must not keep the program.
struct Runtime(Option<tokio::runtime::Runtime>);

/// Time that this work may take.
const SHUTDOWN_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(3);

impl Runtime {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.0.as_ref().expect("it is taken in `drop` only").block_on(future)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
        }
    }
}

/// Returns a hint if a word after options names a subcommand, and nothing or a part of it follows: it is then probably meant.
fn hidden_command(parsed: &Arguments, arguments: &[OsString]) -> Option<String> {
    let [word, rest @ ..] = parsed.prompt.as_slice() else {
        return None;
    };
    if parsed.task.is_some() || arguments.iter().any(|it| it == "--") {
        return None;
    }
    let known = Arguments::definition();
    let command = known.find_subcommand(word)?;
    let is_meant = rest.first().is_none_or(|it| command.find_subcommand(it).is_some());
    is_meant.then(|| {
        format!(
            "`{word}` is a command; put its options after it\n  sheaf {word} …    or, as a prompt:  sheaf … -- {word}"
        )
    })
}

fn chain(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        // Some messages repeat the cause that they wrap.
        if !text.contains(&cause) {
            text.push_str("\n  because ");
            text.push_str(&cause);
        }
    }
    text
}

/// Prints sanitized text to standard output. Errors are ignored: a closed output wants no more.
fn say(text: &str) {
    let _ = io::stdout().write_all(Sanitized::new(text).as_bytes());
}

/// Returns the stored conversations for a command without a screen: damage and failed writes are printed to standard error.
fn printing_store(base: &CliContext) -> Store {
    Store::new(base.paths.sessions()).reporting(complain_of)
}

/// Prints a notice about a session.
fn complain_of(id: &str, notice: &Notice) {
    complain(&format!("{}\nsession {id}", notice.message).replace('\n', "\n  "));
}

fn complain(text: &str) {
    let text = Sanitized::new(&redact(&format!("sheaf: {}\n", text.trim_end())));
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
        assert_eq!(ending.expect("it ends"), RunOutcome::Answered);
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
