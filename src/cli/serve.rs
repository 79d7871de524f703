//! `sheaf serve`: a gateway in front of the configured server, the embedded agent or a recording.

use std::{
    io::{self, Write as _},
    sync::mpsc::{SyncSender, sync_channel},
};

use anyhow::{Context as _, Result};

use super::{
    CliContext, TrustSource, arguments::Serve, code, complain, complain_of, has_unreadable_rules, listen,
    open::ServeSource, read_recording, runtime, say,
};
use crate::{
    config::{Secret, Settings},
    journal::{Log, file::Store},
    link::Asker,
    os::long_text,
    print::StopSignal,
    protocol::Request,
    server::{AccessRecord, Limits, LinkRequest, Server, ServerOptions, token},
    text::Sanitized,
};

/// File of the generated token, in the state folder.
const TOKEN: &str = "serve-token";

/// Maximum size of a text in memory, in bytes: a server holds many answers at a time.
const TEXT_BYTES: usize = 1 << 10;

/// Folder of stored conversations, in the state folder.
pub(super) const KEPT: &str = "served";

pub fn run(arguments: &Serve) -> Result<u8> {
    let mut base = CliContext::by(&arguments.common, &arguments.whom, TrustSource::Settings)?;
    for problem in &base.problems {
        complain(&problem.to_string());
    }
    if base.problems.iter().any(|it| it.leaves_open) || has_unreadable_rules(&base) {
        return Ok(code::USAGE);
    }
    long_text::SpillPolicy::in_folder(base.paths.scratch())
        .with_text_bytes(TEXT_BYTES)
        .apply();
    override_with(arguments, &mut base.settings);
    let source = match &arguments.replay {
        Some(path) => ServeSource::Recording(read_recording(path)?, arguments.pace.speed),
        None => ServeSource::of(&base.settings, &base.environment, &base.workspace)?
            .ok_or_else(super::open::no_server_error)?,
    };
    if let Some(warning) = source.left_behind() {
        complain(&warning);
    }
    let path = base.paths.state.join(TOKEN);
    let given = base.settings.serve.token.clone();
    let is_token_given = given.is_some();
    let token: Secret = match given {
        Some(token) => token::given(token),
        None => token::kept(&path),
    }
    .context("no token for clients")?;
    runtime(true)?.block_on(async move {
        // Opens one link now, so that configuration errors show at startup and not with the first request.
        let request = Request::default();
        let nobody = LinkRequest {
            request: &request,
            asker: Asker::Later,
        };
        let peer = source.link(&nobody, Log::new()).about().peer;
        let settings = &base.settings.serve;
        let tools = source.tools();
        let max_streams = usize::try_from(settings.max_streams).unwrap_or(usize::MAX);
        // Separate from the user's own conversations: clients with the token can read these.
        let store = settings
            .stateful
            .then(|| Store::new(base.paths.state.join(KEPT)).reporting(complain_of));
        let lines = settings.access_log.then(access_log);
        let server = Server::bind(ServerOptions {
            listen: settings.listen.clone(),
            token,
            is_token_given,
            allow_host: settings.allow_host.clone(),
            allow_origin: settings.allow_origin.clone(),
            max_streams,
            store: store.clone(),
            linger: settings.linger,
            grace: settings.grace,
            models: settings.models.clone(),
            tools: source.tool_names(),
            can_undo: source.can_undo(),
            open: Box::new(move |wanted, log| Ok(source.link(wanted, log))),
            log_access: Box::new(move |record| log_request(record, lines.as_ref())),
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
            say(&format!("  conversations: stored in {}\n", store.folder().display()));
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
            Some(StopSignal::Interrupt) => code::INTERRUPTED,
            Some(StopSignal::HangUp) => code::HUNG_UP,
            Some(StopSignal::Terminate) => code::TERMINATED,
            None => code::OK,
        })
    })
}

/// Applies the options of this subcommand, which override all settings.
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

/// Logs a request. The line contains no content, query or token.
fn log_request(record: &AccessRecord, lines: Option<&SyncSender<Sanitized>>) {
    let AccessRecord {
        method,
        path,
        status,
        took,
    } = record;
    let ms = took.as_millis();
    tracing::info!(target: "sheaf::server", method, path, status, ms, "request");
    if let Some(lines) = lines {
        let path = path.replace(['\n', '\t'], " ");
        // If nobody reads the log, lines are dropped and no request waits.
        let _ = lines.try_send(Sanitized::new(&format!("{method} {path} {status} {ms} ms\n")));
    }
}

/// Starts a thread that writes lines to standard error, so that a full pipe does not stop the server.
fn access_log() -> SyncSender<Sanitized> {
    const WAITING: usize = 1024;
    let (sender, lines) = sync_channel::<Sanitized>(WAITING);
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
