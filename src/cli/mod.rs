//! The composition root: each task chooses a link and a consumer. The only module that may use all others.
//!
//! Before the first frame nothing is asked of the network and no folder is walked: arguments, settings, screen.

mod arguments;
mod attach;
pub mod doctor;
mod first;
mod open;
mod serve;
mod trace;

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

use self::arguments::{Arguments, Common, Pace, Printing, Setting, Task, Whom};
use crate::{
    config::{self, Environment, Paths, Problem, Settings},
    journal::{
        Log,
        file::{Recorder, Session, Store},
    },
    link::{
        Link,
        replay::{Audience, Recording, Replay},
    },
    os::file,
    print::{self, Ending, Format, Outputs, Stop},
    protocol::{Message, Mode, Submit},
    text::Clean,
    tui,
};

/// The exit codes that a caller may rely on.
mod code {
    pub const OK: u8 = 0;
    pub const FAILED: u8 = 1;
    pub const USAGE: u8 = 2;
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
            ExitCode::from(code::FAILED)
        }
    }
}

fn obey(arguments: Arguments) -> Result<u8> {
    let Arguments {
        task,
        prompt,
        printing,
        whom,
        common,
        no_session,
    } = arguments;
    match task {
        None => talk(prompt, &printing, &whom, &common, no_session),
        Some(Task::Replay(it)) => play(&recorded(&it.file)?, it.pace, &it.printing, &it.common),
        Some(Task::Tour(it)) => play(&tour()?, it.pace, &it.printing, &it.common),
        Some(Task::Serve(it)) => serve::run(&it),
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
    }
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

impl Base {
    fn of(common: &Common, whom: &Whom) -> Result<Self> {
        let environment = Environment::of_process();
        let paths = Paths::of_user().context("there is no home folder\n  set HOME")?;
        let workspace = workspace(common.workspace.as_deref())?;
        let (settings, problems) = config::load(&paths, None, &environment, &common.options(whom));
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
        }
    }

    /// What starts to record a conversation; does nothing when none is to be kept.
    fn recording(&self, no_session: bool) -> impl Fn(&Arc<Log>) -> Option<Recorder> + Send + use<> {
        let store = Store::new(self.paths.sessions());
        let workspace = self.workspace.to_string_lossy().into_owned();
        move |log| {
            if no_session {
                return None;
            }
            match store.record(Session::fresh(workspace.clone(), tui::now_ms()), log) {
                Ok(recorder) => Some(recorder),
                Err(error) => {
                    tracing::error!(%error, "the session cannot be recorded");
                    None
                }
            }
        }
    }
}

/// A conversation with whoever the settings name: on the screen, or one answer without it.
fn talk(prompt: Vec<String>, printing: &Printing, whom: &Whom, common: &Common, no_session: bool) -> Result<u8> {
    let base = Base::of(common, whom)?;
    let prompt = attach::prompt(prompt.join(" "), &mut |text| complain(text))?;
    if !printing.print && io::stdout().is_terminal() {
        let record = base.recording(no_session);
        let runtime = runtime(true)?;
        let recorders = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&recorders);
        let code = runtime.block_on(async move {
            let (switch, switched) = mpsc::unbounded_channel();
            let link = match open::link(&base.settings, &base.environment, &base.workspace, true)? {
                Some(link) => {
                    let recorder = record(link.log());
                    kept.lock().unwrap_or_else(PoisonError::into_inner).extend(recorder);
                    link
                }
                None => first::start(first::Chooser {
                    settings: base.settings.clone(),
                    environment: base.environment.clone(),
                    tour: tour()?,
                    switch,
                    record: Box::new(record),
                    recorders: kept,
                }),
            };
            Ok::<_, anyhow::Error>(Box::pin(tui::run(base.screen(link, switched, prompt))).await?)
        });
        // The last lines reach the disk before the runtime takes its tasks down.
        recorders.lock().unwrap_or_else(PoisonError::into_inner).clear();
        return code;
    }
    let Some(prompt) = prompt else {
        complain("there is nothing to ask\n  sheaf -p 'what does src/main.rs do?'");
        return Ok(code::USAGE);
    };
    for problem in &base.problems {
        complain(&problem.to_string());
    }
    runtime(false)?.block_on(async move {
        let link = open::link(&base.settings, &base.environment, &base.workspace, false)?.ok_or_else(open::nobody)?;
        let recorder = base.recording(no_session)(link.log());
        let submit = Submit {
            message: Message::user(prompt),
            mode: base.mode(),
            model: None,
        };
        let code = print_answer(&*link, Some(submit), printing.output_format.into()).await;
        drop(link);
        if let Some(recorder) = recorder {
            recorder.finish();
        }
        Ok(code)
    })
}

/// A recording: on the screen, where its questions can be answered, or printed as it stands.
fn play(recording: &Recording, pace: Pace, printing: &Printing, common: &Common) -> Result<u8> {
    let base = Base::of(common, &Whom::default())?;
    if !printing.print && io::stdout().is_terminal() {
        return runtime(true)?.block_on(async move {
            let link = Arc::new(Replay::start(recording, pace.speed, Audience::Present));
            let (_, switched) = mpsc::unbounded_channel();
            Ok(Box::pin(tui::run(base.screen(link, switched, None))).await?)
        });
    }
    runtime(false)?.block_on(async move {
        let link = Replay::start(recording, pace.speed, Audience::Absent);
        Ok(print_answer(&link, None, printing.output_format.into()).await)
    })
}

async fn print_answer(link: &dyn Link, submit: Option<Submit>, format: Format) -> u8 {
    let mut stops = listen();
    let mut out = io::stdout().lock();
    let mut err = io::stderr();
    let outputs = Outputs {
        out: &mut out,
        err: &mut err,
    };
    match print::run(link, submit, format, outputs, &mut stops, tui::now_ms).await {
        Ending::Answered => code::OK,
        Ending::Failed => code::FAILED,
        Ending::Refused => code::REFUSED,
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
    }
    Ok(code::OK)
}

/// The repository around the folder, else the folder.
fn workspace(wanted: Option<&Path>) -> Result<PathBuf> {
    let folder = match wanted {
        Some(folder) => std::fs::canonicalize(folder).with_context(|| format!("the workspace {}", folder.display()))?,
        None => std::env::current_dir().context("this folder is gone")?,
    };
    anyhow::ensure!(folder.is_dir(), "the workspace {} is no folder", folder.display());
    if wanted.is_some() {
        return Ok(folder);
    }
    let root = folder.ancestors().find(|it| it.join(".git").exists());
    Ok(root.map_or_else(|| folder.clone(), Path::to_owned))
}

/// Two threads for a screen, so that it answers while something is read; one answer needs none but this.
fn runtime(is_screen: bool) -> Result<tokio::runtime::Runtime> {
    let mut builder = if is_screen {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2);
        builder
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    builder.enable_all().build().context("no runtime could be started")
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
    let text = Clean::new(&format!("sheaf: {}\n", text.trim_end()));
    let _ = io::stderr().write_all(text.as_bytes());
}
