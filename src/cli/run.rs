//! One answer without a screen, and what the command line says of one run.

use std::{
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Result;
use serde_json::Value;

use super::{
    Base,
    arguments::{Common, OutputFormat, Printing, Run},
    chat::{self, Wanted},
    code, complain, open, print_answer, runtime, schema,
};
use crate::{
    agent::{
        approval::{FORCE, Rule},
        context::mentions,
    },
    cli::open::Talk,
    config::{Guard, KeySource, Layer, Place, Upstream},
    os::file,
    print::{Options, Session},
    protocol::{Message, Submit},
    sandbox::{self, Tier},
};

/// Takes what holds for this run into the settings; what cannot be meant is said.
pub fn settle(wanted: &Run, base: &mut Base) -> Result<(), String> {
    let settings = &mut base.settings;
    let home = std::env::home_dir();
    for (flag, rules, list) in [
        ("--allow", &wanted.allow, &mut settings.approvals.allow),
        ("--deny", &wanted.deny, &mut settings.approvals.deny),
    ] {
        for rule in rules {
            let rule = Rule::parse(rule, home.as_deref()).map_err(|it| format!("{flag}: {it}"))?;
            list.push(Guard::new(&rule.to_string()));
        }
    }
    if wanted.force {
        FORCE.clone_into(&mut settings.approvals.run);
    }
    if let Some(most) = wanted.max_turns {
        settings.agent.max_requests = most;
    }
    if wanted.trust {
        settings.trusted.push(base.workspace.to_string_lossy().into_owned());
    }
    for folder in &wanted.add_dir {
        if !folder.is_dir() {
            return Err(format!("--add-dir: {} is no folder", folder.display()));
        }
    }
    Ok(())
}

/// The folders as they are called from everywhere.
pub fn folders(named: &[PathBuf]) -> Vec<PathBuf> {
    named.iter().map(|it| absolute(it)).collect()
}

fn absolute(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// What is printed of an answer in the conversation `id`.
pub fn options(base: &Base, printing: &Printing, common: &Common, id: String) -> Options {
    Options {
        format: printing.output_format.into(),
        is_partial: printing.stream_partial_output,
        has_thinking: printing.include_thinking,
        has_progress: printing.output_format == OutputFormat::Text && io::stderr().is_terminal(),
        session: Session {
            id,
            workspace: base.workspace.clone(),
            key: key(base),
        },
        form: None,
        wants_sandbox: common.sandbox != Some(false) && matches!(base.settings.upstream(), Upstream::Provider(..)),
    }
}

/// Why there is no sandbox here, where somebody insists on one. Commands of a gateway run elsewhere.
pub fn unheld(base: &Base) -> Option<String> {
    let runs_here = matches!(base.settings.upstream(), Upstream::Provider(..));
    let layers = sandbox::layers();
    (runs_here && layers.tier == Tier::None).then(|| {
        let remedies = layers
            .list
            .iter()
            .map(|it| it.remedy.as_str())
            .filter(|it| !it.is_empty());
        let remedies: String = remedies.map(|it| format!("\n  {it}")).collect();
        format!(
            "there is no sandbox here: {}{remedies}\n  without --sandbox on, commands are asked for",
            layers.why
        )
    })
}

/// Where the key comes from, in the other program's words.
fn key(base: &Base) -> &'static str {
    let (source, path) = match base.settings.upstream() {
        Upstream::Gateway(it) => (&it.token, "gateway.token".to_owned()),
        Upstream::Provider(name, it) => (&it.key, format!("providers.{name}.api_key")),
        Upstream::Nobody => return "login",
    };
    let layer = base.settings.origin(&path).layer;
    match (source, layer) {
        (KeySource::Variables(_), _) | (KeySource::Given(_), Layer::Environment) => "env",
        (KeySource::Given(_), Layer::Flag) => "flag",
        (
            KeySource::None | KeySource::Given(_) | KeySource::Command(_) | KeySource::File(_) | KeySource::Keyring(_),
            _,
        ) => "login",
    }
}

/// The pictures as they travel with a message.
fn pictures(paths: &[PathBuf]) -> Result<Vec<Value>, String> {
    let one = |path: &PathBuf| {
        let wrong = |why: &str| format!("--image: {}: {why}", path.display());
        let bytes = file::read(path, mentions::IMAGE_BYTES).map_err(|it| format!("--image: {it}"))?;
        mentions::picture(&bytes).map_err(wrong)
    };
    paths.iter().map(one).collect()
}

/// Asks, prints the answer and leaves.
pub fn print(
    base: Base,
    prompt: String,
    printing: &Printing,
    common: &Common,
    wanted: &Run,
    resumed: Option<Wanted>,
) -> Result<u8> {
    for problem in &base.problems {
        complain(&problem.to_string());
    }
    // A mistake in a file is said and the default holds. Who names a server on the command line means that one: what was
    // piped in must not go to another.
    if base.problems.iter().any(|it| matches!(it.place, Place::Flag(_))) {
        return Ok(code::USAGE);
    }
    let (prompt, form) = match &wanted.output_schema {
        None => (prompt, None),
        Some(path) => match schema::form(path) {
            Ok((asking, form)) => (format!("{prompt}\n\n{asking}"), Some(form)),
            Err(problem) => {
                complain(&format!("--output-schema: {problem}"));
                return Ok(code::USAGE);
            }
        },
    };
    let mut message = Message::user(prompt);
    match pictures(&wanted.image) {
        Ok(images) if images.is_empty() => {}
        Ok(images) => {
            message.extra.insert("images".to_owned(), images.into());
        }
        Err(problem) => {
            complain(&problem);
            return Ok(code::USAGE);
        }
    }
    runtime(false)?.block_on(async move {
        let opened = match &resumed {
            Some(it) if wanted.fork => chat::fork(&base, it, wanted.no_session)?,
            Some(it) => chat::open(&base, it, wanted.no_session)?,
            None => chat::begin(&base),
        };
        let talk = Talk {
            workspace: base.workspace.clone(),
            added: folders(&wanted.add_dir),
            log: Arc::clone(&opened.log),
            is_copy: opened.is_copy,
            is_attended: false,
        };
        let link = open::link(&base.settings, &base.environment, &talk)?.ok_or_else(open::nobody)?;
        let recorder = match opened.recorder {
            None if !wanted.no_session && resumed.is_none() => chat::keep(&base, &opened.session, link.log()),
            recorder => recorder,
        };
        let submit = Submit {
            message,
            mode: base.mode(),
            model: None,
        };
        let options = Options {
            form,
            ..options(&base, printing, common, opened.session.id.clone())
        };
        let code = print_answer(&*link, Some(submit), options).await;
        drop(link);
        if let Some(recorder) = recorder {
            recorder.finish();
        }
        Ok(code)
    })
}
