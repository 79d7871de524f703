//! `sheaf serve`: a gateway for whoever this sheaf talks to, or for a recording.

use std::{
    io::{self, Write as _},
    sync::mpsc::{SyncSender, sync_channel},
};

use anyhow::{Context as _, Result};

use super::{Base, Word, arguments::Serve, code, complain, listen, open::Source, recorded, runtime, say};
use crate::{
    config::{Secret, Settings},
    journal::{Log, file::Store},
    link::Asker,
    print::Stop,
    protocol::Request,
    serve::{Limits, Server, Setup, Visit, Wanted, token},
    text::Clean,
};

/// The made token, in the state folder.
const TOKEN: &str = "serve-token";

/// The folder of kept conversations, in the state folder.
pub(super) const KEPT: &str = "served";

pub fn run(arguments: &Serve) -> Result<u8> {
    let mut base = Base::by(&arguments.common, &arguments.whom, Word::Settings)?;
    for problem in &base.problems {
        complain(&problem.to_string());
    }
    override_with(arguments, &mut base.settings);
    let source = match &arguments.replay {
        Some(path) => Source::Recording(recorded(path)?, arguments.pace.speed),
        None => Source::of(&base.settings, &base.environment, &base.workspace)?.ok_or_else(super::open::nobody)?,
    };
    let path = base.paths.state.join(TOKEN);
    let given = base.settings.serve.token.clone();
    let is_token_given = given.is_some();
    let token: Secret = match given {
        Some(token) => token::given(token),
        None => token::kept(&path),
    }
    .context("there is no token to ask clients for")?;
    runtime(true)?.block_on(async move {
        // A conversation nobody has, to find out now what would be wrong with every other.
        let request = Request::default();
        let nobody = Wanted {
            request: &request,
            asker: Asker::Later,
        };
        let peer = source.link(&nobody, Log::new())?.about().peer;
        let settings = &base.settings.serve;
        let tools = source.tools();
        let max_streams = usize::try_from(settings.max_streams).unwrap_or(usize::MAX);
        // Apart from the user's own: whoever has the token can read what is kept here.
        let store = settings.stateful.then(|| Store::new(base.paths.state.join(KEPT)));
        let lines = settings.access_log.then(access_log);
        let server = Server::bind(Setup {
            listen: settings.listen.clone(),
            token,
            is_token_given,
            allow_host: settings.allow_host.clone(),
            allow_origin: settings.allow_origin.clone(),
            max_streams,
            store: store.clone(),
            linger: settings.linger,
            tools: source.tool_names(),
            open: Box::new(move |wanted, log| Ok(source.link(wanted, log)?)),
            visited: Box::new(move |visit| note(visit, lines.as_ref())),
            limits: Limits::for_streams(max_streams),
        })?;
        let address = server.address();
        say(&format!("sheaf serves {peer} at http://{address}\n"));
        if is_token_given {
            say("  token: the one you set\n");
        } else {
            say(&format!("  token: in {}\n", path.display()));
        }
        if let Some(store) = &store {
            say(&format!("  conversations: kept in {}\n", store.folder().display()));
        }
        say(&format!("  tools: {tools}\n"));
        if !address.ip().is_loopback() {
            complain(
                "warning: other machines can reach this gateway, and the way there is not encrypted\n  \
                 put a proxy with TLS in front of it, and name that with --allow-host",
            );
        }
        let mut stops = listen();
        let mut stopped = None;
        server
            .run(async {
                stopped = stops.recv().await;
            })
            .await;
        Ok(match stopped {
            Some(Stop::Interrupt) => code::INTERRUPTED,
            Some(Stop::Terminate) => code::TERMINATED,
            None => code::OK,
        })
    })
}

/// The options of this task are the strongest settings.
fn override_with(arguments: &Serve, settings: &mut Settings) {
    if let Some(listen) = &arguments.listen {
        settings.serve.listen.clone_from(listen);
    }
    if let Some(tools) = &arguments.tools {
        settings.serve.tools.clone_from(tools);
    }
    settings.serve.stateful |= arguments.stateful;
    settings.serve.allow_host.extend(arguments.allow_host.iter().cloned());
    settings
        .serve
        .allow_origin
        .extend(arguments.allow_origin.iter().cloned());
}

/// One line for a request. Nothing of what was said, asked for or shown as a token is in it.
fn note(visit: &Visit, lines: Option<&SyncSender<Clean>>) {
    let Visit {
        method,
        path,
        status,
        took,
    } = visit;
    let ms = took.as_millis();
    tracing::info!(target: "sheaf::serve", method, path, status, ms, "request");
    if let Some(lines) = lines {
        let path = path.replace(['\n', '\t'], " ");
        // Whoever does not read loses lines and holds nobody up.
        let _ = lines.try_send(Clean::new(&format!("{method} {path} {status} {ms} ms\n")));
    }
}

/// Lines for standard error, written by a thread of their own: a pipe that nobody empties must not stop the server.
fn access_log() -> SyncSender<Clean> {
    const WAITING: usize = 1024;
    let (sender, lines) = sync_channel::<Clean>(WAITING);
    let write = move || {
        for line in lines {
            if io::stderr().write_all(line.as_bytes()).is_err() {
                return;
            }
        }
    };
    if let Err(error) = std::thread::Builder::new().name("access log".to_owned()).spawn(write) {
        tracing::warn!(%error, "there is no access log");
    }
    sender
}
