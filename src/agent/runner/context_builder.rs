//! What a model is told with a message: the conversation's opening, the message itself, and what changed in between.
//!
//! What has to be read first (rules, the user's parts of the prompt, the tree) is read on other threads from the start; a
//! message that comes earlier waits a moment and says what is there.

use std::{
    path::PathBuf,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::{Map, Value};
use tokio::sync::watch;

use super::{
    checks::{self, Checks, Lints, Look},
    expansion::{self, Expansion},
    message_hooks,
    setup::Setup,
};
use crate::{
    agent::{
        approval::{self, Rules, RunMode},
        history::{
            message_history::{MessageHistory, skills_in},
            told::{MarkBaseline, Restored, ToldContext, ToldFacts, ToldRecorder},
        },
        hooks::{HookNews, Hooks},
        prompt::{
            self,
            context::{self, FileWatch, Files, FirstContext, Gathering, Sent, Surroundings},
            rules::{self, RuleSet, Trust},
        },
        served, tool_selection,
        trust::{self, Standing},
        turn::{AnswerLimits, AnswerModel, AnswerSetup, Memory, Policy, Purpose, Submission},
    },
    config::{Fingerprint, Paths, Settings, shown_path},
    extensions::{
        self, CommandFile, CustomMode, ModeSet, SkillSet, SkillShelf, find_commands, find_modes, find_skills,
        find_style,
        hooks::{HookSet, Isolation, OwnHook, find_hooks},
    },
    index::Symbols,
    journal::Log,
    link::Asker,
    lsp::LanguageServers,
    models::{Chosen, Effort, ModelMessage, ModelRequest, Part, ToolSpec, catalogue},
    os::{self, lazy_channel::Inbox},
    protocol::{ContextPart, Message, Mode, NotOffered, Position, Reply, ResponseId, Submit, Turn},
    sandbox::{self, Commands, Place, Seen, Tier, Workspace},
    tools::{
        OF_SERVERS, ToolSet,
        lints::{Findings, checkers},
        read_lints, skill,
    },
    transcript::Transcript,
};

/// Builds the context of messages, and remembers what the model has been told.
pub struct ContextBuilder {
    state: Arc<Mutex<ContextState>>,
    is_ready: watch::Receiver<bool>,
    /// Until the first message takes it.
    gathering: Option<Gathering>,
    files: Option<Files>,
    symbols: Arc<Symbols>,
    checks: Checks,
    skills: Arc<SkillShelf>,
    hooks: Arc<Hooks>,
    /// News of hooks for the user.
    pub hook_news: Inbox<HookNews>,
    told: ToldRecorder,
    /// What was told before, until the next message takes it over.
    earlier: Option<ToldContext>,
}

#[derive(Default)]
struct ContextState {
    rules: RuleSet,
    custom: prompt::Custom,
    first: FirstContext,
    /// The files that the agent knew when the last answer ended.
    watch: FileWatch,
    /// Files that the user has named.
    open: Vec<String>,
    /// The mode of the last message.
    mode: Option<Mode>,
    warnings: Vec<String>,
    /// The trust in the workspace; `None` without a workspace.
    standing: Option<Standing>,
    /// Tools that need a checker or a language server, where there is none.
    absent: Vec<(&'static str, NotOffered)>,
    /// Commands and modes of files that may act.
    commands: Vec<CommandFile>,
    modes: ModeSet,
    /// The custom mode of the last message.
    custom_mode: Option<String>,
}

impl ContextState {
    /// Has a message answered in the custom mode that it names. Returns what the model is told of it: when it is entered or
    /// left. A message in a mode that is not there is not sent, because it would be allowed more.
    fn enter_custom(&mut self, submission: &mut Submission) -> Option<String> {
        let name = submission.message.custom_mode().map(str::to_owned);
        let mode = name
            .as_ref()
            .map(|name| self.modes.modes.iter().find(|it| it.name == *name));
        if let Some(None) = mode {
            let name = name.unwrap_or_default();
            let names: Vec<&str> = self.modes.modes.iter().map(|it| it.name.as_str()).collect();
            let others = if names.is_empty() {
                String::new()
            } else {
                format!("; there are {}", names.join(", "))
            };
            submission.blocked = Some(format!("there is no mode `{name}` here, or it is not trusted{others}"));
            return None;
        }
        let mode: Option<&CustomMode> = mode.flatten();
        if let Some(mode) = mode {
            if !submission.mode.is_read_only() {
                submission.mode = mode.base;
            }
            let own = submission.message.extra.contains_key("effort");
            let effort = mode.effort.as_deref().and_then(effort).filter(|_| !own);
            submission.setup.model.effort = effort.or(submission.setup.model.effort);
            submission.setup.custom_mode = Some(Arc::new(mode.clone()));
        }
        let was = std::mem::replace(&mut self.custom_mode, name.clone());
        if was == name {
            return None;
        }
        let mut told = Vec::new();
        told.extend(was.map(|it| format!("What you were told of the mode {it} no longer holds.")));
        if let Some(mode) = mode {
            told.push(format!(
                "The user has chosen the mode {}. {}",
                mode.name,
                prompt::custom_mode(mode)
            ));
        }
        Some(prompt::reminded(told.join("\n\n").trim()))
    }

    /// Takes over what the model was told before.
    fn resume(&mut self, earlier: ToldContext) {
        self.rules.remember(earlier.rules);
        self.open = earlier.open;
        self.mode = earlier.mode;
        self.custom_mode = earlier.custom_mode;
    }
}

/// The runner's facts about a message.
pub struct MessageFacts {
    pub response: ResponseId,
    pub is_first: bool,
    /// The model is told nothing.
    pub is_aside: bool,
    /// The provider and the model that answer.
    pub chosen: Chosen,
    pub seen: Arc<Seen>,
    pub log: Arc<Log>,
    /// The first context as the model was told it before this program ran.
    pub opened: Option<String>,
}

/// A message that is sent while the model works, as the user wrote it and as the model is told it.
pub struct Steering {
    pub submit: Submit,
    pub parts: Vec<Part>,
}

type Ready<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The member of a message that says what is around the program it was written in.
const CONTEXT: &str = "context";

/// The longest that a message waits for its context.
const PATIENCE: Duration = Duration::from_millis(250);
/// Time that a message waits for servers of tools that are being started; those that come later join the next one.
const SERVER_PATIENCE: Duration = Duration::from_secs(1);
/// The same where nobody sends a next one.
const SERVER_PATIENCE_ALONE: Duration = Duration::from_secs(15);
/// The longest that a background check waits for the list of recently changed files.
const TREE_PATIENCE: Duration = Duration::from_mins(1);

impl ContextBuilder {
    /// Starts to read rules, the prompt's parts and the first context on other threads.
    pub fn start(setup: &Setup) -> Self {
        let state = Arc::new(Mutex::new(ContextState::default()));
        let (ready, is_ready) = watch::channel(false);
        let told = Arc::clone(&state);
        let reading = DiskReading::of(setup);
        let uses = setup.paths.as_ref().map(|it| it.state.join("skill-uses.json"));
        let skills = Arc::new(SkillShelf::new(setup.conversation.to_string(), uses));
        let shelf = Arc::clone(&skills);
        let (hooks, hook_news) = Hooks::new(setup.workspace.clone());
        let called = Arc::clone(&hooks);
        tokio::task::spawn_blocking(move || {
            let (read, skills, hooks) = reading.read();
            shelf.set(skills);
            called.set(hooks);
            *lock(&told) = read;
            ready.send_replace(true);
        });
        let gathering = setup.workspace.clone();
        let run = RunMode::parse(&setup.settings.approvals.run);
        let gathering = gathering.map(|it| Gathering::start(it, run));
        let files = gathering.as_ref().map(Gathering::files);
        let checks = Checks::start(setup);
        if let (true, Asker::Here, Some(files)) = (checks.are_on(), setup.asker, files.clone()) {
            let (look, mut is_ready) = (checks.looker(), is_ready.clone());
            tokio::spawn(async move {
                let _ = is_ready.wait_for(|it| *it).await;
                let list = files.dated(TREE_PATIENCE).await.unwrap_or_default();
                look(Look {
                    named: list.worked_on().into_iter().map(str::to_owned).collect(),
                    ..Look::default()
                });
            });
        }
        Self {
            state,
            is_ready,
            gathering,
            files,
            symbols: Arc::new(Symbols::of(Arc::clone(&setup.index))),
            checks,
            skills,
            hooks,
            hook_news,
            told: ToldRecorder::default(),
            earlier: None,
        }
    }

    /// The results of the checkers in this conversation.
    pub fn findings(&self) -> Arc<Findings> {
        self.checks.findings()
    }

    /// The language servers of this conversation.
    pub fn servers(&self) -> Arc<LanguageServers> {
        self.checks.servers()
    }

    /// The skills of this conversation.
    pub fn skills(&self) -> Arc<SkillShelf> {
        Arc::clone(&self.skills)
    }

    /// The hooks of this conversation.
    pub fn hooks(&self) -> Arc<Hooks> {
        Arc::clone(&self.hooks)
    }

    /// Looks up which skills the model has in its context.
    pub fn note_skills(&self, history: &MessageHistory) {
        let told = skills_in(&history.messages).into_iter().map(|it| it.0);
        self.skills.set_told(told.collect());
    }

    /// Returns true once rules, commands, modes and the like have been read.
    pub fn is_read(&self) -> bool {
        *self.is_ready.borrow() || self.is_ready.has_changed().is_err()
    }

    /// Waits until rules, commands, modes and the like have been read.
    pub fn read(&self) -> Ready<()> {
        let mut is_ready = self.is_ready.clone();
        Box::pin(async move {
            let _ = is_ready.wait_for(|it| *it).await;
        })
    }

    /// Returns the model that the command, skill or mode of a message asks for, and who asks: `/name` or `mode name`.
    pub fn asked_model(&self, message: &Message) -> Option<(String, String)> {
        let state = lock(&self.state);
        let custom = message.custom_mode();
        let custom = custom.and_then(|name| state.modes.modes.iter().find(|it| it.name == name));
        let command = message.command().map(|(name, _)| name);
        let by_command = command.and_then(|name| match state.commands.iter().find(|it| it.name == name) {
            Some(command) => command.model.clone(),
            None => self.skills.skills().get(name).and_then(|it| it.model.clone()),
        });
        let asked = match by_command {
            Some(model) => Some((model, format!("/{}", command.unwrap_or_default()))),
            None => custom.and_then(|it| Some((it.model.clone()?, format!("mode {}", it.name)))),
        };
        asked.filter(|it| it.0 != "inherit")
    }

    /// The checkers for files that calls have changed; `None`: they are off.
    pub fn lints(&self) -> Option<Lints> {
        self.checks.lints()
    }

    /// A message of the user's begins: what was told of files while the last one was answered counts no more.
    pub fn begin(&self) {
        if let Some(lints) = self.checks.lints() {
            lints.begin();
        }
    }

    /// The trust in the workspace, once it is known; `None` without a workspace.
    pub fn standing(&self) -> Ready<Option<Standing>> {
        let state = Arc::clone(&self.state);
        let mut is_ready = self.is_ready.clone();
        Box::pin(async move {
            let _ = is_ready.wait_for(|it| *it).await;
            lock(&state).standing.clone()
        })
    }

    /// Looks again at what the workspace would do, and takes over what the user has let act since.
    pub fn look_again(&mut self, setup: &Setup) -> Ready<Option<Standing>> {
        let reading = DiskReading::of(setup);
        let state = Arc::clone(&self.state);
        // The next message waits for it.
        let (ready, is_ready) = watch::channel(false);
        self.is_ready = is_ready;
        let (shelf, hooks) = (Arc::clone(&self.skills), Arc::clone(&self.hooks));
        tokio::task::spawn_blocking(move || {
            let (read, skills, found) = reading.read();
            shelf.set(skills);
            hooks.set(found);
            let mut state = lock(&state);
            state.commands = read.commands;
            state.modes = read.modes;
            state.rules = read.rules;
            state.warnings.extend(read.warnings);
            state.standing = read.standing;
            state.absent = read.absent;
            drop(state);
            ready.send_replace(true);
        });
        self.standing()
    }

    /// Makes a message ready to be sent.
    pub fn brief(&mut self, submit: Submit, said: MessageFacts, setup: &Setup) -> Ready<Box<Submission>> {
        let MessageFacts {
            response,
            is_first,
            is_aside,
            chosen,
            seen,
            log,
            opened,
        } = said;
        let earlier = self.earlier.take_if(|_| !is_aside);
        let is_resumed = earlier.is_some();
        let is_first = is_first && !is_aside;
        let Chosen { provider, model } = chosen;
        let settings = Arc::clone(&setup.settings);
        let known = catalogue::known(&model, &settings.models);
        let (rules, _) = Rules::read(&settings, std::env::home_dir().as_deref());
        let fast = setup.roles.fast().ok().flatten();
        let mut submission = Box::new(Submission {
            parts: Vec::new(),
            opening: Vec::new(),
            mode: submit.mode,
            maker: format!("{} {model}", provider.peer()),
            policy: Policy {
                rules,
                run: run_mode(&submit.message, &settings.approvals.run),
                is_sandbox_off: sandbox::is_off(),
                file: setup
                    .paths
                    .as_ref()
                    .map_or_else(String::new, |it| shown_path(&it.settings())),
            },
            setup: AnswerSetup {
                absent: Vec::new(),
                purpose: Purpose::Answer,
                turn: Turn(0),
                conversation: setup.conversation.clone(),
                response,
                tools: ToolSet::default(),
                limits: AnswerLimits {
                    requests: u32::try_from(settings.agent.max_requests).unwrap_or(u32::MAX),
                    calls: u32::try_from(settings.agent.max_calls).unwrap_or(u32::MAX),
                    warn_failures: u32::try_from(settings.agent.warn_failures).unwrap_or(u32::MAX),
                    max_failures: u32::try_from(settings.agent.max_failures).unwrap_or(u32::MAX),
                    dollars: settings.agent.max_dollars,
                    dollars_name: if settings.agent.is_budget_given {
                        "--max-budget-usd"
                    } else {
                        "agent.max_dollars"
                    },
                    dollars_in_all: settings.agent.max_dollars_in_all,
                    ..AnswerLimits::default()
                },
                model: AnswerModel {
                    summarist: fast.map_or_else(|| model.clone(), |it| it.model),
                    system: Arc::default(),
                    fallbacks: setup.roles.fallback().len(),
                    effort: wish(&submit.message, &settings.agent.effort),
                    is_blind: known.images == Some(false),
                    name: model,
                },
                settings,
                asker: setup.asker,
                tier: Tier::None,
                custom_mode: None,
            },
            message: submit.message,
            is_shown: false,
            blocked: None,
        });
        let state = Arc::clone(&self.state);
        let mut is_ready = self.is_ready.clone();
        let workspace = setup.workspace.clone();
        let gathering = self.gathering.take_if(|_| is_first || is_resumed);
        let files = self.files.clone();
        let findings = self.checks.findings();
        let shelf = Arc::clone(&self.skills);
        let is_afar = setup.asker.is_afar();
        let hooks = Arc::clone(&self.hooks);
        let root = workspace.as_ref().map(|it| it.root().to_owned()).unwrap_or_default();
        let (all, servers) = (setup.tools.clone(), setup.servers.clone());
        let patience = match setup.asker {
            Asker::Here => SERVER_PATIENCE,
            // Nobody sends a second message, with the tools that come late.
            Asker::Nobody | Asker::Program | Asker::Live | Asker::Later => SERVER_PATIENCE_ALONE,
        };
        Box::pin(async move {
            // A server that is asked about its models before the first request says what they hold; others do not wait.
            let window = match known.window {
                Some(window) => Some(window),
                None => {
                    let own = provider.window(submission.setup.model.name.clone());
                    tokio::time::timeout(PATIENCE, own).await.ok().flatten()
                }
            };
            if let Some(servers) = &servers {
                servers.settled(patience).await;
            }
            let all = served::with_servers(&all, servers.as_ref(), window);
            submission.setup.tools =
                tool_selection::tools(&submission.setup.settings, &submission.setup.model.name, window, &all);
            // The sender goes only with the thread that reads; then there is nothing to wait for.
            let _ = is_ready.wait_for(|it| *it).await;
            if let Some(earlier) = earlier {
                lock(&state).resume(earlier);
            }
            let absent = lock(&state).absent.clone();
            let tools = &mut submission.setup.tools;
            *tools = tools.filtered(|it| !absent.iter().any(|(name, _)| *name == it.name));
            submission.setup.absent = absent;
            let skills = shelf.skills();
            let has_skills = skills.for_model().next().is_some();
            *tools = tools.filtered(|it| has_skills || it.name != skill::NAME);
            submission.policy.rules.allow.extend(expansion::readable(&skills));
            let afar = lock(&state).rules.readable();
            let afar = afar.iter().filter_map(|it| approval::Rule::read_below(it));
            submission.policy.rules.allow.extend(afar);
            let mut since: Vec<String> = Vec::new();
            if gathering.is_none() && is_first && workspace.is_some() {
                // It was told on another branch.
                submission.opening = vec![lock(&state).first.part()];
            }
            if let Some(gathering) = gathering {
                let first = gathering.ready(PATIENCE).await;
                match &opened {
                    Some(before) => since.extend(first.since(before)),
                    None => submission.opening = vec![first.part()],
                }
                lock(&state).first = first;
            }
            let was_custom = lock(&state).custom_mode.clone();
            let entered = lock(&state).enter_custom(&mut submission);
            let mode = submission.mode;
            if is_aside {
                submission.setup.model.system =
                    system(&submission, window, known.parallel, &skills, &lock(&state), &[]);
                return submission;
            }
            // It is known by now, or is found on a thread that may wait.
            let tier = tokio::task::spawn_blocking(Commands::tier).await;
            submission.setup.tier = tier.unwrap_or(Tier::None);
            hooks.begin(message_hooks::common(&submission, root));
            let asked = message_hooks::run(&hooks, &submission.message, is_first, is_resumed).await;
            submission.blocked = submission.blocked.take().or(asked.blocked);
            let mut prompt = Vec::new();
            if submission.blocked.is_none() {
                match served::prompt_of(&submission.message.content, servers.as_deref()).await {
                    Ok(parts) => prompt = parts,
                    Err(why) => submission.blocked = Some(why),
                }
            }
            if submission.blocked.is_some() {
                // The model is told nothing of it: no command in it runs, and its mode is news again next time.
                lock(&state).custom_mode = was_custom;
                submission.parts.clear();
                submission.setup.model.system =
                    system(&submission, window, known.parallel, &skills, &lock(&state), &[]);
                return submission;
            }
            let commands = lock(&state).commands.clone();
            let around = expansion::Around {
                shelf: &shelf,
                hooks: &hooks,
                commands: &commands,
                workspace: workspace.as_ref(),
                limits: &submission.setup.settings.limits,
                policy: &submission.policy,
                mode,
            };
            let invoked = submission.message.command().filter(|_| !is_afar);
            let expanded = match invoked {
                Some((name, arguments)) => expansion::expand(name, arguments, &around).await,
                None => None,
            };
            let Expansion {
                text,
                outputs,
                before,
                rules,
                warnings,
            } = expanded.unwrap_or_default();
            let text = text.unwrap_or_else(|| submission.message.content.clone());
            submission.policy.rules.allow.extend(rules);
            lock(&state).warnings.extend(warnings);
            let answer = &submission.setup;
            let tier = answer.tier;
            let told_tools = (
                Arc::clone(&answer.settings),
                answer.tools.clone(),
                answer.model.name.clone(),
            );
            let client = submission.message.extra.get(CONTEXT).cloned();
            let tell = move |state: &mut ContextState| {
                let mut transcript = Transcript::default();
                // Only what is quoted has to be looked up.
                if text.contains('#') {
                    transcript.apply_all(&log.after(Position(0)));
                }
                let list = files.map(|it| it.list());
                let names = prompt_tools(&told_tools.0, &told_tools.1);
                let around = Surroundings {
                    mode,
                    prompt: &prompt::Facts {
                        model: &told_tools.2,
                        window,
                        tools: &names,
                        tier,
                        custom: Some(&state.custom),
                        ..prompt::Facts::default()
                    },
                    was: state.mode,
                    workspace: workspace.as_deref(),
                    transcript: &transcript,
                    seen: &seen,
                    files: list.as_deref(),
                    findings: &findings,
                };
                let mut told = context::message_parts(&text, &around, &mut state.rules, &state.watch, &mut state.open);
                if let (Some(client), Some(workspace)) = (&client, &workspace) {
                    context::client::note_read(client, workspace, &seen);
                }
                if let (true, Some(workspace)) = (is_resumed, &workspace) {
                    since.extend(context::stale(workspace, &seen));
                }
                told.parts.splice(0..0, since.into_iter().map(Part::Text));
                state.mode = Some(mode);
                state.warnings.extend(told.warnings);
                told.parts
            };
            let held = Arc::clone(&state);
            let parts = tokio::task::spawn_blocking(move || tell(&mut lock(&held))).await;
            let plain = || vec![Part::Text(submission.message.content.clone())];
            submission.parts = parts.unwrap_or_else(|_| plain());
            expansion::fill_in(&mut submission.parts, &outputs);
            let before = before.into_iter().chain(asked.told).chain(entered);
            submission.parts.splice(0..0, before.map(Part::Text));
            if let Some(said) = submission.message.extra.get(CONTEXT).and_then(context::client::told) {
                submission.parts.insert(0, Part::Text(said));
            }
            if submission.message.extra.contains_key("images") {
                let message = submission.message.clone();
                let sent = tokio::task::spawn_blocking(move || context::mentions::pictures(&message)).await;
                let (pictures, warnings) = sent.unwrap_or_default();
                submission.parts.extend(pictures.into_iter().map(Part::Image));
                lock(&state).warnings.extend(warnings);
            }
            if submission.setup.model.is_blind && submission.parts.iter().any(|it| matches!(it, Part::Image(_))) {
                lock(&state).warnings.push(format!(
                    "{model} does not accept images and is only told that there is one; models.\"{model}\".images = \
                     true sends it",
                    model = submission.setup.model.name
                ));
            }
            if let Some(servers) = &servers {
                let (named, warnings) = served::resources_of(&submission.message.content, servers).await;
                submission.parts.extend(named);
                submission.parts.extend(prompt);
                lock(&state).warnings.extend(warnings);
            }
            let said = served::instructions(servers.as_ref(), &submission.setup.tools);
            submission.setup.model.system = system(&submission, window, known.parallel, &skills, &lock(&state), &said);
            submission
        })
    }

    /// Builds the context of a message that is sent while the model works in the mode `was`: its attachments, and a
    /// note if the mode changes.
    pub fn steering(
        &mut self,
        submit: Submit,
        was: Option<Mode>,
        said: MessageFacts,
        setup: &Setup,
    ) -> Ready<Steering> {
        let state = Arc::clone(&self.state);
        let workspace = setup.workspace.clone();
        let files = self.files.clone();
        let findings = self.checks.findings();
        let (settings, all) = (Arc::clone(&setup.settings), setup.tools.clone());
        Box::pin(async move {
            let held = Arc::clone(&state);
            let message = submit.message.clone();
            let mode = submit.mode;
            let work = move || {
                let mut state = lock(&held);
                let state = &mut *state;
                let text = &message.content;
                let mut transcript = Transcript::default();
                if text.contains('#') {
                    transcript.apply_all(&said.log.after(Position(0)));
                }
                let list = files.map(|it| it.list());
                let names = prompt_tools(&settings, &all);
                let around = Surroundings {
                    mode,
                    prompt: &prompt::Facts {
                        tools: &names,
                        tier: Commands::tier(),
                        custom: Some(&state.custom),
                        ..prompt::Facts::default()
                    },
                    was,
                    workspace: workspace.as_deref(),
                    transcript: &transcript,
                    seen: &said.seen,
                    files: list.as_deref(),
                    findings: &findings,
                };
                let mut told = context::steering_parts(text, &around, &mut state.rules, &mut state.open);
                state.mode = Some(mode);
                if message.extra.contains_key("images") {
                    let (pictures, warnings) = context::mentions::pictures(&message);
                    told.parts.extend(pictures.into_iter().map(Part::Image));
                    told.warnings.extend(warnings);
                }
                state.warnings.extend(told.warnings);
                told.parts
            };
            let parts = tokio::time::timeout(PATIENCE, tokio::task::spawn_blocking(work)).await;
            let before: [&str; 0] = [];
            let plain = || vec![Part::Text(prompt::query(&submit.message.content, &before))];
            let parts = parts.ok().and_then(Result::ok).unwrap_or_else(plain);
            Steering { submit, parts }
        })
    }

    /// Rules for files that have come into the conversation: they are said before the model goes on.
    /// So is the mode, where what was said of it is told no more.
    pub fn touched(&mut self, seen: &Seen, mode: Mode, memory: &mut Memory, request: &mut ModelRequest) {
        let mut state = lock(&self.state);
        let mode = state.mode.is_none().then(|| {
            let names: Vec<&str> = request.tools.iter().map(|it| it.name.as_str()).collect();
            let facts = prompt::Facts {
                model: &request.model,
                tools: &names,
                tier: Commands::tier(),
                custom: Some(&state.custom),
                ..prompt::Facts::default()
            };
            (mode, prompt::reminder(mode, None, &facts))
        });
        let mut updates = Vec::new();
        if let Some((mode, reminder)) = mode {
            state.mode = Some(mode);
            updates.extend(reminder);
        }
        updates.extend(state.rules.attach(seen.known()));
        drop(state);
        for update in updates {
            let message = ModelMessage::user(update);
            memory.history.messages.push(message.clone());
            request.messages.push(message);
        }
    }

    /// Takes over what the model was told before; `None`: there is no record of it.
    pub fn resume(&mut self, restored: Option<&Restored>) {
        self.told = restored.map(ToldRecorder::after).unwrap_or_default();
        self.earlier = restored.map(|it| it.facts.context.clone());
        if restored.is_none() {
            self.forgot();
        }
    }

    /// The record of what the model was told since the last one; `None`: nothing.
    pub fn record(
        &mut self,
        memory: &Memory,
        seen: &Seen,
        marks: Option<MarkBaseline>,
        workspace: Option<&Arc<Workspace>>,
    ) -> Option<Map<String, Value>> {
        let state = lock(&self.state);
        let context = ToldContext {
            rules: state.rules.said(),
            open: state.open.clone(),
            mode: state.mode,
            custom_mode: state.custom_mode.clone(),
            marks,
        };
        drop(state);
        let facts = ToldFacts {
            prompt: memory.prompt.clone(),
            files: seen.record(),
            context: self.earlier.clone().unwrap_or(context),
        };
        self.told.record(&memory.history, facts, workspace.map(|it| it.root()))
    }

    /// A part of what was told is told no more: rules for files in the conversation are said again.
    pub fn forgot(&self) {
        let mut state = lock(&self.state);
        state.rules.forget();
        state.mode = None;
        state.custom_mode = None;
    }

    /// An answer has ended: what the user changes from here on is said with the next message.
    pub fn ended(&self, seen: &Arc<Seen>, workspace: Option<&Arc<Workspace>>) {
        let Some(workspace) = workspace.cloned() else { return };
        let state = Arc::clone(&self.state);
        let (known, changed): (Vec<PathBuf>, Vec<PathBuf>) = (seen.known(), seen.changed());
        let (files, look) = (self.files.clone(), self.checks.looker());
        tokio::task::spawn_blocking(move || {
            let mut watch = FileWatch::default();
            watch.remember(&workspace, &known);
            let mut state = lock(&state);
            state.watch = watch;
            let mut named = state.open.clone();
            drop(state);
            let list = files.map(|it| it.list()).unwrap_or_default();
            named.extend(list.worked_on().into_iter().map(str::to_owned));
            look(Look {
                named,
                has_changed: !changed.is_empty(),
                known: changed.into_iter().chain(known).collect(),
            });
        });
    }

    /// The user has looked at a file, and may have changed it: checkers look at it, too.
    pub fn opened(&self, path: String, workspace: &Workspace) {
        let Ok(file) = workspace.locate(&path) else { return };
        if !matches!(file.place, Place::Inside | Place::Added) {
            return;
        }
        let mut state = lock(&self.state);
        context::open(&mut state.open, file.shown);
        let named = state.open.clone();
        drop(state);
        self.checks.looker()(Look {
            named,
            ..Look::default()
        });
    }

    /// Takes the warnings for the user that have come up since the last call.
    pub fn warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut lock(&self.state).warnings)
    }

    /// Files whose path fits `pattern`, best first; `None` without a workspace.
    pub fn find_files(&self, pattern: String, limit: usize) -> Ready<Option<Reply>> {
        let files = self.files.clone();
        Box::pin(async move {
            let files = files?;
            files.ready(PATIENCE).await;
            let ranked = tokio::task::spawn_blocking(move || files.rank(&pattern, limit)).await;
            ranked.ok().map(Reply::Files)
        })
    }

    /// Functions and types whose name fits `pattern`, best first.
    pub fn find_symbols(&self, workspace: Arc<Workspace>, pattern: String, limit: usize) -> Ready<Option<Reply>> {
        let symbols = Arc::clone(&self.symbols);
        Box::pin(async move {
            let find = move || context::symbols::find(&symbols, &workspace, &pattern, limit);
            let found = tokio::task::spawn_blocking(find).await;
            found.ok().map(Reply::Symbols)
        })
    }

    /// The parts of the next request and their sizes.
    pub fn context(&self, setup: &Setup, chosen: &Chosen, memory: &Memory) -> Vec<ContextPart> {
        let state = lock(&self.state);
        let mode = state.mode.unwrap_or_default();
        let mut known = catalogue::known(&chosen.model, &setup.settings.models);
        known.window = known.window.or(memory.window.tokens);
        let all = served::with_servers(&setup.tools, setup.servers.as_ref(), known.window);
        let tools = tool_selection::tools(&setup.settings, &chosen.model, known.window, &all);
        let said = served::instructions(setup.servers.as_ref(), &all);
        let skills = self.skills.skills();
        let has_skills = skills.for_model().next().is_some();
        let absent = state.absent.iter().filter(|(name, _)| tools.get(name).is_some());
        let absent: Vec<(&str, NotOffered)> = absent.copied().collect();
        let has_idle_skill = !has_skills && tools.get(skill::NAME).is_some();
        let offered = tools.filtered(|it| !absent.iter().any(|(name, _)| *name == it.name));
        let offered = offered.filtered(|it| has_skills || it.name != skill::NAME);
        let names = prompt_tools(&setup.settings, &offered);
        let listed = tool_selection::listed(&setup.settings, &offered, mode);
        let specs: Vec<Arc<ToolSpec>> = listed
            .into_iter()
            .map(|it| tool_selection::spec(&setup.settings, it))
            .collect();
        let mut missing = tool_selection::missing(&setup.settings, &chosen.model, known.window, &setup.tools);
        missing.extend(absent.into_iter().map(|(name, why)| (name.to_owned(), why)));
        missing.extend(has_idle_skill.then(|| (skill::NAME.to_owned(), NotOffered::NoSkill)));
        // The surroundings are counted by themselves.
        let told = memory.history.messages.iter().enumerate();
        let told = told.filter(|(at, _)| memory.history.opened_at != Some(*at));
        let messages: Vec<&ModelMessage> = told.map(|it| it.1).collect();
        context::measure(&Sent {
            facts: prompt::Facts {
                model: &chosen.model,
                window: known.window,
                tools: &names,
                parallel: known.parallel.unwrap_or(true),
                rules: Some(&state.rules),
                servers: &said,
                custom: Some(&state.custom),
                skills: Some(&skills),
                ..prompt::Facts::default()
            },
            first: state.first.parts(),
            messages: &messages,
            tools: &specs,
            missing,
            counted: Some(memory.history.counted()).filter(|it| *it > 0),
            is_priced: known.prices.is_some(),
        })
    }
}

/// The system prompt of a submission.
fn system(
    submission: &Submission,
    window: Option<u64>,
    parallel: Option<bool>,
    skills: &SkillSet,
    state: &ContextState,
    servers: &[(String, String)],
) -> Arc<str> {
    let answer = &submission.setup;
    prompt::system(&prompt::Facts {
        model: &answer.model.name,
        window,
        tools: &prompt_tools(&answer.settings, &answer.tools),
        parallel: parallel.unwrap_or(true),
        rules: Some(&state.rules),
        servers,
        custom: Some(&state.custom),
        skills: Some(skills),
        ..prompt::Facts::default()
    })
}

/// Names of the tools that the system prompt speaks of.
fn prompt_tools<'a>(settings: &'a Settings, tools: &'a ToolSet) -> Vec<&'a str> {
    tool_selection::of_all_modes(settings, tools)
        .map(|it| it.name.as_str())
        .collect()
}

/// Everything that is needed to read rules and prompt parts from the disk.
struct DiskReading {
    settings: Arc<Settings>,
    paths: Option<Paths>,
    workspace: Option<Arc<Workspace>>,
    is_attended: bool,
    /// The settings let checkers and language servers run.
    may_check: bool,
}

impl DiskReading {
    fn of(setup: &Setup) -> Self {
        Self {
            settings: Arc::clone(&setup.settings),
            paths: setup.paths.clone(),
            workspace: setup.workspace.clone(),
            is_attended: setup.asker == Asker::Here,
            may_check: checks::may_run(setup),
        }
    }

    /// The tools that need a checker or a language server, where there is none.
    fn absent(&self, standing: Option<&Standing>) -> Vec<(&'static str, NotOffered)> {
        let workspace = self.workspace.as_ref();
        let may_act = workspace.is_some_and(|it| it.may_act());
        let is_there =
            self.may_check && workspace.is_some_and(|it| LanguageServers::is_any_installed(it, &self.settings));
        let has_server = is_there && workspace.is_some_and(|it| LanguageServers::has_any(it, &self.settings));
        let has_checker = self.has_checker(standing);
        let why = |is_there: bool, otherwise| {
            if is_there && !may_act {
                NotOffered::Untrusted
            } else {
                otherwise
            }
        };
        let mut absent = Vec::new();
        if !(has_server || has_checker && may_act) {
            absent.push((read_lints::NAME, why(is_there || has_checker, NotOffered::NoChecker)));
        }
        if !has_server {
            absent.extend(OF_SERVERS.map(|it| (it, why(is_there, NotOffered::NoServer))));
        }
        absent
    }

    /// Returns true if some checker could be run for `read_lints`, where the workspace may act.
    fn has_checker(&self, standing: Option<&Standing>) -> bool {
        let (Some(workspace), Some(standing)) = (&self.workspace, standing) else {
            return false;
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = |program: &str| os::process::find(program, &path).is_some();
        let mut checkers = standing.checkers.iter();
        let has_any = checkers.any(|it| checkers::can_run(it, workspace.root(), &is_there));
        has_any || !self.settings.lint.is_empty()
    }

    fn read(&self) -> (ContextState, SkillSet, HookSet) {
        let paths = self.paths.as_ref();
        let (mut custom, mut warnings) = prompt::load(&self.settings, paths);
        let standing = self.workspace.as_ref().map(|workspace| {
            let trust = trust::trust(&self.settings, paths, workspace, self.is_attended);
            trust::look(workspace, trust, &self.settings)
        });
        let rules = match (&self.workspace, &standing) {
            (Some(workspace), Some(standing)) => RuleSet::load(workspace, standing.trust.clone()),
            (Some(_) | None, _) => RuleSet::default(),
        };
        let root = self.workspace.as_ref().map(|it| it.root().to_owned());
        let (around, broken) = extensions::Surroundings::of_user(root, paths);
        let rules = rules
            .with_plugins(&around.plugins)
            .with_user(rules::of_user(&self.settings, paths));
        warnings.extend(rules.warnings());
        warnings.extend(broken.iter().map(|(name, why)| format!("plugin {name}: {why}")));
        let trust = standing.as_ref().map(|it| it.trust.clone());
        let may_act = |path: &str, print: &Fingerprint| trust.as_ref().is_some_and(|it| it.lets(path, print));
        if let Some(name) = &self.settings.prompt.style {
            match find_style(&around, name, &may_act) {
                Some(text) => custom.style(&text),
                None => warnings.push(format!("there is no output style `{name}` here, or it is not trusted")),
            }
        }
        let skills = find_skills(&around, &may_act);
        let (commands, _) = find_commands(&around, &may_act);
        let mut hooks = self.hooks(&around, &may_act);
        // A guard that is written wrongly guards nothing.
        warnings.extend(
            hooks
                .problems
                .iter()
                .map(|(path, why)| format!("hooks in {path}: {why}")),
        );
        // Whoever trusts all of it trusts what becomes of it.
        if trust == Some(Trust::Whole) {
            hooks.approved.clear();
        }
        let read = ContextState {
            rules,
            custom,
            warnings,
            absent: self.absent(standing.as_ref()),
            standing,
            commands,
            modes: find_modes(&around, &may_act),
            ..ContextState::default()
        };
        (read, skills, hooks)
    }

    /// The hooks of files and of the settings, unless the user has switched them off.
    fn hooks(&self, around: &extensions::Surroundings, may_act: &dyn Fn(&str, &Fingerprint) -> bool) -> HookSet {
        let Some(isolation) = Isolation::of(&self.settings) else {
            return HookSet::default();
        };
        let own = OwnHook::all(&self.settings);
        let settings = self
            .paths
            .as_ref()
            .map_or_else(String::new, |it| shown_path(&it.settings()));
        find_hooks(around, (&own, &settings), isolation, may_act)
    }
}

/// Calls that run without a question: as the settings say, unless the message wants to be asked first.
fn run_mode(message: &Message, otherwise: &str) -> RunMode {
    match message.extra.get("approvals").and_then(serde_json::Value::as_str) {
        Some("ask") => RunMode::Ask,
        Some(_) | None => RunMode::parse(otherwise),
    }
}

/// The reasoning effort: from the message, else from the settings; `None`: automatic.
fn wish(message: &Message, otherwise: &str) -> Option<Effort> {
    let said = message.extra.get("effort").and_then(serde_json::Value::as_str);
    let word = said.filter(|it| *it == "auto" || effort(it).is_some());
    effort(word.unwrap_or(otherwise))
}

fn effort(word: &str) -> Option<Effort> {
    match word {
        "off" => Some(Effort::Off),
        "low" => Some(Effort::Low),
        "medium" => Some(Effort::Medium),
        "high" => Some(Effort::High),
        _ => None,
    }
}

fn lock(state: &Mutex<ContextState>) -> MutexGuard<'_, ContextState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
