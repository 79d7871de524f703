//! `sheaf conform`: checks a gateway or a recording against the protocol.

use std::{
    io::{self, IsTerminal as _, Read as _},
    path::Path,
};

use anyhow::{Context as _, Result};

use super::{
    CliContext, RECORDING_BYTES,
    arguments::{Conform, ReportFormat, TargetArguments},
    code, complain, runtime, say,
};
use crate::{
    config::Upstream,
    conform::{
        RULES, Report,
        probe::{self, Wish},
        recording,
        report::word,
    },
    link::http,
    net::client::Client,
    os::file,
    protocol::{Dialect, Mode, Severity},
};

/// Default message, with a short answer.
const MESSAGE: &str = "Reply with the single word ok.";

/// Line width of the report without a terminal.
const COLUMNS: usize = 100;

pub fn run(arguments: &Conform) -> Result<u8> {
    if arguments.rules {
        rules(arguments.output_format);
        return Ok(code::OK);
    }
    let Some(target) = arguments.target.as_deref() else {
        complain("name a gateway or a recording\n  sheaf conform http://127.0.0.1:8643\n  sheaf conform answer.sse");
        return Ok(code::USAGE);
    };
    let report = if target.starts_with("http://") || target.starts_with("https://") {
        asked(target, arguments)?
    } else {
        let (name, bytes) = read(target)?;
        Report {
            target: name.clone(),
            answers: vec![recording(&name, &bytes)?],
        }
    };
    match arguments.output_format {
        ReportFormat::Text => say(&report.to_text(columns())),
        ReportFormat::Json => say(&format!("{:#}\n", report.to_json())),
    }
    let bad = report.count(Severity::Error)
        + if arguments.strict {
            report.count(Severity::Warning)
        } else {
            0
        };
    Ok(if bad == 0 { code::OK } else { code::FAILED })
}

fn read(target: &str) -> Result<(String, Vec<u8>)> {
    if target == "-" {
        let mut bytes = Vec::new();
        let mut input = io::stdin().lock().take(RECORDING_BYTES + 1);
        input.read_to_end(&mut bytes).context("standard input cannot be read")?;
        anyhow::ensure!(
            bytes.len() as u64 <= RECORDING_BYTES,
            "standard input is too long to be a recording"
        );
        return Ok(("standard input".to_owned(), bytes));
    }
    let path = Path::new(target);
    let name = path
        .file_name()
        .map_or_else(|| target.to_owned(), |it| it.to_string_lossy().into_owned());
    Ok((name, file::read(path, RECORDING_BYTES)?))
}

fn asked(url: &str, arguments: &Conform) -> Result<Report> {
    let whom = TargetArguments {
        gateway: Some(url.to_owned()),
        ..TargetArguments::default()
    };
    let base = CliContext::of(&arguments.common, &whom)?;
    for problem in &base.problems {
        complain(&problem.to_string());
    }
    let Upstream::Gateway(gateway) = base.settings.upstream() else {
        anyhow::bail!("{url} is not a gateway address");
    };
    let mut peer = gateway.connection.peer()?;
    peer.base = http::root(peer.base);
    let client = Client::new(peer)?;
    let is_watched = io::stderr().is_terminal();
    runtime(false)?.block_on(async {
        let token = gateway
            .token
            .resolve(&base.environment)
            .await
            .context("the gateway's token")?;
        let wish = Wish {
            message: arguments.message.clone().unwrap_or_else(|| MESSAGE.to_owned()),
            model: arguments.model.clone().unwrap_or_else(|| "default".to_owned()),
            mode: arguments.mode.as_deref().and_then(Mode::parse).unwrap_or(Mode::Ask),
            dialect: match arguments.dialect.as_deref() {
                Some("a") => Some(Dialect::Named),
                Some("b") => Some(Dialect::Data),
                Some(_) | None => None,
            },
            token: token.map(|it| it.expose().to_owned()),
        };
        Ok(Box::pin(probe::gateway(&client, &wish, &mut |what| {
            if is_watched {
                complain(&format!("testing {what}"));
            }
        }))
        .await)
    })
}

/// Returns the terminal's width, between 40 and 200.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    size.map_or(COLUMNS, |it| usize::from(it.ws_col)).clamp(40, 200)
}

fn rules(format: ReportFormat) {
    match format {
        ReportFormat::Text => {
            for rule in RULES {
                say(&format!(
                    "{:<7} §{:<5} {:<18} {}\n",
                    word(rule.severity),
                    rule.section,
                    rule.id,
                    rule.text
                ));
            }
        }
        ReportFormat::Json => {
            let rules: Vec<_> = RULES
                .iter()
                .map(|it| {
                    serde_json::json!({
                        "id": it.id, "section": it.section, "severity": word(it.severity), "text": it.text,
                    })
                })
                .collect();
            say(&format!("{:#}\n", serde_json::Value::from(rules)));
        }
    }
}
