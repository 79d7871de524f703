//! What a model is told with a message: the conversation's opening, the message itself, and what changed in between.
//!
//! What has to be read first (rules, the user's parts of the prompt) is read on another thread from the start; a message
//! that comes earlier waits for it.

use std::{
    path::Path,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use super::{
    approval::{Rules, RunMode, Tier},
    driver::Setup,
    offer, prompt,
    rules::{self, RuleSet},
    turn::{Limits, Memory, Policy, Submission},
};
use crate::{
    config::{Paths, Settings},
    model::{Effort, ModelMessage, ModelRequest, Part, catalogue},
    protocol::{Mode, Query, Reply, ResponseId, Submit},
    sandbox::{Seen, Workspace},
};

/// What a conversation has been told so far.
pub struct Briefing {
    state: Arc<Mutex<State>>,
    is_ready: watch::Receiver<bool>,
}

#[derive(Default)]
struct State {
    rules: RuleSet,
    custom: prompt::Custom,
    /// Of the last message.
    mode: Option<Mode>,
    warnings: Vec<String>,
}

/// What the driver knows of a message.
pub struct Said {
    pub response: ResponseId,
    pub is_first: bool,
}

type Ready = Pin<Box<dyn Future<Output = Box<Submission>> + Send>>;

impl Briefing {
    pub fn start(setup: &Setup) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let (ready, is_ready) = watch::channel(false);
        let told = Arc::clone(&state);
        let settings = Arc::clone(&setup.settings);
        let paths = setup.paths.clone();
        let workspace = setup.workspace.clone();
        tokio::task::spawn_blocking(move || {
            let read = read(&settings, paths.as_ref(), workspace.as_ref());
            *lock(&told) = read;
            ready.send_replace(true);
        });
        Self { state, is_ready }
    }

    /// Makes a message ready to be sent.
    pub fn brief(&mut self, submit: Submit, said: Said, setup: &Setup) -> Ready {
        let model = submit.model.clone().unwrap_or_else(|| setup.model.clone());
        let settings = Arc::clone(&setup.settings);
        let window = settings
            .models
            .get(&model)
            .and_then(|it| it.window)
            .or_else(|| catalogue::window(&model));
        let tools = offer::tools(&settings, &model, window, &setup.tools);
        let (rules, _) = Rules::read(&settings, std::env::home_dir().as_deref());
        let mut submission = Box::new(Submission {
            parts: Vec::new(),
            opening: Vec::new(),
            system: String::new(),
            mode: submit.mode,
            maker: format!("{} {model}", setup.provider.peer()),
            fallbacks: setup.stand_ins.len(),
            effort: effort(&settings),
            tools,
            policy: Policy {
                rules,
                run: RunMode::parse(&settings.approvals.run),
                tier: Tier::None,
            },
            limits: Limits {
                requests: u32::try_from(settings.agent.max_requests).unwrap_or(u32::MAX),
                calls: u32::try_from(settings.agent.max_calls).unwrap_or(u32::MAX),
                ..Limits::default()
            },
            conversation: setup.conversation.clone(),
            response: said.response,
            is_attended: setup.is_attended,
            model,
            message: submit.message,
        });
        let state = Arc::clone(&self.state);
        let mut is_ready = self.is_ready.clone();
        Box::pin(async move {
            // The sender goes only with the thread that reads; then there is nothing to wait for.
            let _ = is_ready.wait_for(|it| *it).await;
            let mut state = lock(&state);
            let mode = submission.mode;
            let offered: Vec<&str> = submission
                .tools
                .iter()
                .filter(|it| it.modes.contains(&mode))
                .map(|it| it.name)
                .collect();
            submission.system = prompt::system(&prompt::Facts {
                mode,
                model: &submission.model,
                window,
                tools: &offered,
                parallel: true,
                rules: Some(&state.rules),
                servers: &[],
                custom: Some(&state.custom),
            });
            let reminder = prompt::reminder(mode, state.mode);
            state.mode = Some(mode);
            let text = prompt::query(&submission.message.content, reminder.as_slice());
            submission.parts = vec![Part::Text(text)];
            submission
        })
    }

    /// What is said while the model works.
    pub fn steering(&mut self, submit: &Submit) -> Vec<Part> {
        let before: [&str; 0] = [];
        vec![Part::Text(prompt::query(&submit.message.content, &before))]
    }

    /// Rules for files that have come into the conversation: they are said before the model goes on.
    pub fn touched(&mut self, seen: &Seen, memory: &mut Memory, request: &mut ModelRequest) {
        let update = lock(&self.state).rules.attach(seen.known());
        if let Some(update) = update {
            let message = ModelMessage::user(update);
            memory.messages.push(message.clone());
            request.messages.push(message);
        }
    }

    /// What the user should know of what is told, once.
    pub fn warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut lock(&self.state).warnings)
    }

    pub fn ask(
        &self,
        _query: Query,
        _setup: &Setup,
        _memory: &Memory,
    ) -> Pin<Box<dyn Future<Output = Option<Reply>> + Send>> {
        Box::pin(std::future::ready(None))
    }
}

/// Reads what stands on the disk.
fn read(settings: &Settings, paths: Option<&Paths>, workspace: Option<&Arc<Workspace>>) -> State {
    let (custom, mut warnings) = prompt::load(settings, paths);
    let rules = match workspace {
        Some(workspace) => RuleSet::load(workspace, is_trusted(settings, workspace.root())),
        None => RuleSet::default(),
    };
    let rules = rules.with_user(rules::of_user(settings, paths));
    warnings.extend(rules.warnings());
    State {
        rules,
        custom,
        mode: None,
        warnings,
    }
}

/// Whether the user has said that a workspace's own rules hold.
fn is_trusted(settings: &Settings, root: &Path) -> bool {
    settings.trusted.iter().any(|it| {
        let home = it
            .strip_prefix("~/")
            .and_then(|rest| Some(std::env::home_dir()?.join(rest)));
        let folder = home.unwrap_or_else(|| it.into());
        folder.canonicalize().is_ok_and(|it| root.starts_with(it))
    })
}

fn effort(settings: &Settings) -> Option<Effort> {
    match settings.agent.effort.as_str() {
        "off" => Some(Effort::Off),
        "low" => Some(Effort::Low),
        "medium" => Some(Effort::Medium),
        "high" => Some(Effort::High),
        _ => None,
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
