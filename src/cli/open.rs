//! Opens links: to a gateway, to the embedded agent, or for `sheaf serve`.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::{
    agent::{
        prompt::{
            context::{self, List, mentions},
            rules::{self, RuleSet},
        },
        quarantine, runner, tool_choice, tool_selection, trust,
    },
    config::{Environment, Gateway, Paths, Provider, Settings, TrustStore, Upstream},
    embedding::{self, EmbeddingService},
    extensions::{Plugin, installed},
    index::Index,
    journal::Log,
    link::{
        About, Asker, Held, Link, SandboxStatus,
        http::{self, Http},
        local::Local,
        replay::{Audience, Recording, Replay, Speed},
    },
    mcp::{Approvals, IsTrusted, Servers, ServersSetup, State, Tokens},
    models::{
        self, Roles, catalogue,
        discover::{self, DiscoveredProvider, Evidence},
        script,
    },
    net::client::Client,
    protocol::{ConversationId, Dialect, Entry, Event, Position},
    sandbox::{self, Fence, Tier, Workspace},
    server::LinkRequest,
    tools::{self, Stop, ToolSet},
    transcript::Transcript,
};

/// Error when no server is configured and there is no screen to ask on.
const NOTHING: &str = "no model is configured\n  \
     `sheaf login` stores an API key and lists which providers work;\n  \
     or set OPENAI_API_KEY, or OPENAI_BASE_URL for your own model server,\n  \
     or name a server: --provider NAME, --gateway URL\n  \
     `sheaf doctor` shows what it finds, `sheaf tour` needs no model";

pub fn no_server_error() -> anyhow::Error {
    anyhow::anyhow!(NOTHING)
}

/// Options of the conversation that a link is opened for.
pub struct ConversationOptions {
    pub workspace: PathBuf,
    /// Additional folders to work in.
    pub added: Vec<PathBuf>,
    /// Names of the only tools that a gateway may use. `None`: its own choice.
    pub tools: Option<Vec<String>>,
    /// The conversation so far; empty for a new one.
    pub log: Arc<Log>,
    /// True if the log is a copy of another conversation.
    pub is_copy: bool,
    /// True if a user can answer questions.
    pub is_attended: bool,
    /// True if a program can answer questions.
    pub is_answered: bool,
    /// True if answers are what the user writes to standard input.
    pub has_user_answers: bool,
    /// True if standard output and standard error of commands are reported apart.
    pub is_apart: bool,
}

/// Opens a link to the server that the settings choose; `None` if they choose none. Makes no connection yet.
pub fn link(
    settings: &Settings,
    environment: &Environment,
    talk: &ConversationOptions,
) -> Result<Option<Arc<dyn Link>>> {
    match settings.upstream() {
        Upstream::Gateway(it) => {
            let context = workspace_context(settings, it, talk);
            let settings = http::Settings {
                tools: talk.tools.clone(),
                accepts_answers: talk.is_attended || talk.is_answered,
                has_user_answers: talk.has_user_answers,
                ..gateway_settings(settings, it, environment, Some(context), talk.is_attended)?
            };
            Ok(Some(Arc::new(Http::start(settings, Arc::clone(&talk.log))?)))
        }
        Upstream::Provider(_, provider) => {
            let folders = Some((talk.workspace.as_path(), talk.added.as_slice()));
            let agent = AgentTemplate::of(settings, provider, environment, folders, tools::built_in())?;
            if let Some(workspace) = agent.workspace.as_ref().filter(|_| talk.is_apart) {
                workspace.commands().set_apart(true);
            }
            let before = conversation(&talk.log).filter(|_| !talk.is_copy);
            let conversation = before.unwrap_or_else(ConversationId::fresh);
            Ok(Some(agent.link(
                Arc::clone(&talk.log),
                conversation,
                if talk.is_answered {
                    Asker::Program
                } else {
                    asker(talk.is_attended)
                },
            )))
        }
        Upstream::Nobody => Ok(None),
    }
}

/// Returns the workspace context for a gateway, as much of it as the settings allow.
fn workspace_context(settings: &Settings, gateway: &Gateway, talk: &ConversationOptions) -> http::Context {
    let path = json!({ "workspacePath": talk.workspace });
    if gateway.context == "path" {
        return path.into();
    }
    let meanwhile = path.clone();
    let (settings, is_layout) = (settings.clone(), gateway.context == "layout");
    let (folder, added, is_attended) = (talk.workspace.clone(), talk.added.clone(), talk.is_attended);
    let (root, fence) = (
        talk.workspace.clone(),
        Fence::configured(&settings, Paths::of_user().as_ref(), added.clone()),
    );
    let opened: LazyLock<Option<Workspace>, _> = LazyLock::new(move || Workspace::fenced(&root, fence).ok());
    let open = move |message: &str| {
        let Some(workspace) = &*opened else {
            return Vec::new();
        };
        let mut paths = mentions::resolve(message, workspace, &Transcript::default(), &mut RuleSet::default()).paths;
        paths.retain(|it| !it.ends_with('/'));
        paths
    };
    let find = move || {
        let paths = Paths::of_user();
        let fence = Fence::configured(&settings, paths.as_ref(), added.clone());
        let Ok(workspace) = Workspace::fenced(&folder, fence).map(Arc::new) else {
            return path.clone();
        };
        let trust = trust::trust(&settings, paths.as_ref(), &workspace, is_attended);
        let rules = RuleSet::load(&workspace, trust).with_user(rules::of_user(&settings, paths.as_ref()));
        let list = if is_layout {
            context::walk(&workspace, &Stop::default())
        } else {
            List::default()
        };
        context::for_gateway(&workspace, &list, &rules)
    };
    http::Context::Found {
        find: Arc::new(find),
        open: Arc::new(open),
        meanwhile,
    }
}

/// Returns the conversation id that a log's last answer names.
pub(super) fn conversation(log: &Log) -> Option<ConversationId> {
    let named = |entries: Vec<Arc<Entry>>| {
        entries.iter().rev().find_map(|it| match &it.event {
            Event::ResponseStart(start) => start.conversation_id.clone(),
            Event::Done(done) => done.conversation_id.clone(),
            _ => None,
        })
    };
    match log.recent() {
        // All our answers carry the id. If none near the end does, the conversation was imported and none has it, so
        // the whole log need not be read.
        Some(recent) => named(log.after(recent.after)).or_else(|| named(log.lately().unwrap_or_default())),
        None => named(log.after(Position(0))),
    }
}

/// Opens a link to a documents gateway.
pub fn gateway(
    settings: &Settings,
    gateway: &Gateway,
    environment: &Environment,
    workspace: Option<&Path>,
    is_attended: bool,
) -> Result<Arc<dyn Link>> {
    let context = workspace.map(|it| json!({ "workspacePath": it }).into());
    let settings = gateway_settings(settings, gateway, environment, context, is_attended)?;
    Ok(Arc::new(Http::start(settings, Log::new())?))
}

fn gateway_settings(
    settings: &Settings,
    gateway: &Gateway,
    environment: &Environment,
    context: Option<http::Context>,
    is_attended: bool,
) -> Result<http::Settings> {
    Ok(http::Settings {
        token: gateway.token.clone(),
        environment: environment.clone(),
        model: settings.model.clone(),
        dialect: match gateway.dialect.as_str() {
            "a" => Some(Dialect::Named),
            "b" => Some(Dialect::Data),
            _ => None,
        },
        context,
        is_attended,
        retries: gateway.connection.retry_policy(),
        ..http::Settings::new(gateway.connection.peer()?)
    })
}

/// Returns the settings of a link to the server that the settings name as the gateway, for somebody at a screen.
pub fn attach_settings(settings: &Settings, environment: &Environment) -> Result<http::Settings> {
    gateway_settings(settings, &settings.gateway, environment, None, true)
}

/// Opens a link to the embedded agent with `provider`, with all tools in `workspace`. `None`: no tools.
pub fn local_agent(
    settings: &Settings,
    provider: &Provider,
    environment: &Environment,
    workspace: Option<&Path>,
    is_attended: bool,
) -> Result<Arc<dyn Link>> {
    let folders = workspace.map(|it| (it, [].as_slice()));
    let agent = AgentTemplate::of(settings, provider, environment, folders, tools::built_in())?;
    Ok(agent.link(Log::new(), ConversationId::fresh(), asker(is_attended)))
}

/// Opens a link to the embedded agent with a provider that is in no settings. The agent stores everything under
/// `paths`.
pub fn scripted_agent(
    provider: Arc<dyn models::Provider>,
    settings: Settings,
    workspace: &Path,
    paths: Paths,
) -> Result<Arc<dyn Link>> {
    let fence = Fence::configured(&settings, Some(&paths), Vec::new());
    let workspace =
        Workspace::fenced(workspace, fence).with_context(|| format!("{} cannot be opened", workspace.display()))?;
    let agent = AgentTemplate {
        about: About {
            peer: provider.peer().to_owned(),
            model: Some(script::NAME.to_owned()),
            is_scripted: true,
            hears: true,
            runs: true,
            reads_context: true,
            workspace: Some(workspace.root().to_owned()),
            ..About::default()
        },
        provider,
        model: Some(script::NAME.to_owned()),
        workspace: Some(Arc::new(workspace)),
        tools: tools::built_in().clone(),
        roles: Arc::new(Roles::new(&settings, &Environment::default())),
        index: Arc::default(),
        embeddings: Arc::default(),
        settings: Arc::new(settings),
        served: None,
        paths: Some(paths),
    };
    Ok(agent.link(Log::new(), ConversationId::fresh(), Asker::Here))
}

fn asker(is_attended: bool) -> Asker {
    if is_attended { Asker::Here } else { Asker::Nobody }
}

/// The settings with the language servers of plugins; one that the user has set under the same name goes before it.
fn with_plugins(settings: &Settings, paths: Option<&Paths>) -> Settings {
    let mut settings = settings.clone();
    let plugins = paths.map(|it| installed(&it.data).0).unwrap_or_default();
    for (name, server) in plugins.iter().flat_map(Plugin::filled_language_servers) {
        settings.lsp.entry(name).or_insert(server);
    }
    settings
}

/// The embedded agent's parts, from which links for conversations are made.
#[derive(Clone)]
pub struct AgentTemplate {
    provider: Arc<dyn models::Provider>,
    model: Option<String>,
    about: About,
    settings: Arc<Settings>,
    workspace: Option<Arc<Workspace>>,
    tools: ToolSet,
    roles: Arc<Roles>,
    /// The chunks of the workspace's code, for all conversations.
    index: Arc<Index>,
    /// Vectors of code. The same.
    embeddings: Arc<EmbeddingService>,
    /// Variables of the process, for servers of tools; `None`: there are no such servers.
    served: Option<Environment>,
    /// Folders of rules and checkpoints.
    paths: Option<Paths>,
}

impl AgentTemplate {
    fn of(
        settings: &Settings,
        provider: &Provider,
        environment: &Environment,
        folders: Option<(&Path, &[PathBuf])>,
        tools: &ToolSet,
    ) -> Result<Self> {
        let workspace = match folders {
            Some((root, added)) => {
                let fence = Fence::configured(settings, Paths::of_user().as_ref(), added.to_vec());
                let open = Workspace::fenced(root, fence);
                Some(Arc::new(
                    open.with_context(|| format!("{} cannot be opened", root.display()))?,
                ))
            }
            None => None,
        };
        let model = settings.model().or(provider.model.as_deref());
        let model = model.or_else(|| provider.first_model()).map(str::to_owned);
        let also = other_keys(settings, provider, environment);
        let known = model.as_ref().and_then(|it| settings.models.get(it));
        let provider = models::open(provider, environment)?;
        let about = About {
            peer: provider.peer().to_owned(),
            window: known
                .and_then(|it| it.window)
                .or_else(|| model.as_deref().and_then(catalogue::window)),
            model: model.clone(),
            hears: true,
            runs: true,
            reads_context: true,
            also,
            ..About::default()
        };
        let tools = if workspace.is_some() {
            tools.clone()
        } else {
            ToolSet::default()
        };
        let (roles, paths) = (Arc::new(Roles::new(settings, environment)), Paths::of_user());
        let embeddings = paths
            .as_ref()
            .map(|it| embedding::service(settings, it, environment, Arc::clone(&roles)));
        let index = match (&paths, &workspace) {
            (Some(paths), Some(workspace)) => Index::stored(&paths.cache, workspace.root()),
            (None, _) | (_, None) => Index::default(),
        };
        Ok(Self {
            provider,
            model,
            about,
            settings: Arc::new(with_plugins(settings, paths.as_ref())),
            workspace,
            tools,
            roles,
            index: Arc::new(index),
            embeddings: Arc::new(embeddings.unwrap_or_default()),
            served: Some(environment.clone()),
            paths,
        })
    }

    fn link(&self, log: Arc<Log>, conversation: ConversationId, asker: Asker) -> Arc<dyn Link> {
        // Without a screen nobody sees the status, and the first command detects the sandbox itself.
        let workspace = self.workspace.as_ref().map(|it| Arc::new(it.fresh()));
        if asker == Asker::Here {
            let ledger = self.paths.as_ref().map(|it| TrustStore::under(&it.state));
            if let (Some(workspace), Some(ledger)) = (&workspace, ledger) {
                workspace.commands().set_guarded(ledger.is_guarded(workspace.root()));
            }
            detect_sandbox(
                &self.about.hold,
                workspace.as_ref().is_some_and(|it| it.commands().is_guarded()),
            );
        }
        let servers = self
            .served
            .as_ref()
            .zip(workspace.as_ref())
            .map(|(environment, workspace)| {
                let paths = self.paths.as_ref();
                let setup = servers_setup(&self.settings, paths, environment, workspace, asker == Asker::Here);
                Arc::new(Servers::new(setup))
            });
        let (link, inbox) = Local::new(Arc::clone(&log), self.about.clone());
        let setup = runner::Setup {
            provider: Arc::clone(&self.provider),
            model: self.model.clone().unwrap_or_default(),
            conversation,
            asker,
            // Each conversation has its own commands and current folder.
            workspace,
            settings: Arc::clone(&self.settings),
            tools: self.tools.clone(),
            servers,
            roles: Arc::clone(&self.roles),
            index: Arc::clone(&self.index),
            embeddings: Arc::clone(&self.embeddings),
            paths: self.paths.clone(),
            hold: self.about.hold.clone(),
        };
        tokio::spawn(runner::run(setup, log, inbox));
        Arc::new(link)
    }
}

/// Other services for which the environment holds a key, by their titles; empty if the settings name a provider.
fn other_keys(settings: &Settings, provider: &Provider, environment: &Environment) -> Vec<String> {
    if settings.provider.is_some() {
        return Vec::new();
    }
    let here = provider.connection.url().ok();
    let is_other =
        |it: &DiscoveredProvider| matches!(it.how, Evidence::Key { .. }) && it.provider().connection.url().ok() != here;
    let others = discover::keys(environment).into_iter().filter(is_other);
    others.map(|it| it.title).collect()
}

/// The vectors of code that the settings ask for. Nothing is opened yet.
pub fn embeddings(base: &super::CliContext) -> EmbeddingService {
    let roles = Arc::new(Roles::new(&base.settings, &base.environment));
    embedding::service(&base.settings, &base.paths, &base.environment, roles)
}

/// The servers of tools for a workspace. Nothing is read or started yet.
pub fn servers_setup(
    settings: &Settings,
    paths: Option<&Paths>,
    environment: &Environment,
    workspace: &Arc<Workspace>,
    is_attended: bool,
) -> ServersSetup {
    ServersSetup {
        settings: settings.mcp.clone(),
        only: None,
        workspace: Arc::clone(workspace),
        home: std::env::home_dir(),
        data: paths.map(|it| it.data.clone()),
        approvals: paths.map(|it| Approvals::under(&it.state)),
        is_trusted: is_trusted(settings, paths, workspace.root()),
        environment: environment.clone(),
        is_attended,
        tokens: paths.map(|it| Tokens::under(&it.state)),
    }
}

/// Returns whether the user trusts a file of the workspace with this content, as it is stored when it is asked.
pub fn is_trusted(settings: &Settings, paths: Option<&Paths>, root: &Path) -> IsTrusted {
    let is_whole = settings.is_trusted(root);
    let (store, root) = (paths.map(|it| TrustStore::under(&it.state)), root.to_owned());
    Arc::new(move |path, print| is_whole || store.as_ref().is_some_and(|it| it.record(&root).allows(path, print)))
}

/// The state of a server, as a sentence without its end.
pub fn state_line(state: &State) -> String {
    match state {
        State::Off => "it is off".to_owned(),
        State::Unapproved(_) => "you have not approved it".to_owned(),
        State::Untrusted => "its file is not trusted".to_owned(),
        State::Starting => "it did not become ready in time".to_owned(),
        State::Ready => "it is ready".to_owned(),
        State::SignIn => "it wants you to sign in".to_owned(),
        State::Unusable(why) | State::Failed(why) => why.clone(),
    }
}

/// Detects the sandbox on a thread, so that the first frame does not wait.
fn detect_sandbox(hold: &SandboxStatus, is_guarded: bool) {
    let found = hold.clone();
    let find = move || {
        let layers = sandbox::layers();
        found.found(match layers.tier {
            Tier::Full => Held::Whole,
            Tier::Partial => Held::Partly(layers.but(is_guarded).to_owned()),
            Tier::None => Held::Nothing,
        });
    };
    if let Err(error) = std::thread::Builder::new().name("sandbox".to_owned()).spawn(find) {
        tracing::warn!(%error, "the sandbox is tried at the first command");
    }
}

/// Source of the answers of `sheaf serve`. Each request gets its own link, with nobody to watch it.
pub enum ServeSource {
    Gateway(Client, Box<http::Settings>),
    AgentTemplate(Box<AgentTemplate>),
    Recording(Recording, Speed),
}

impl ServeSource {
    /// Returns the source that the settings choose; `None` if they choose none.
    pub fn of(settings: &Settings, environment: &Environment, workspace: &Path) -> Result<Option<Self>> {
        match settings.upstream() {
            Upstream::Gateway(it) => {
                let settings = gateway_settings(settings, it, environment, None, false)?;
                Ok(Some(Self::Gateway(settings.client()?, Box::new(settings))))
            }
            Upstream::Provider(_, provider) => {
                // Clients may only read unless the user allows more.
                let is_free = settings.serve.tools == "all";
                let tools = tools::built_in().filtered(|it| is_free || it.only_looks());
                let agent = AgentTemplate::of(settings, provider, environment, Some((workspace, &[])), &tools)?;
                // A server for each request would be a process for each request.
                let agent = AgentTemplate { served: None, ..agent };
                Ok(Some(Self::AgentTemplate(Box::new(agent))))
            }
            Upstream::Nobody => Ok(None),
        }
    }

    /// Looks at what a command has left whose program was killed in the folder that is served. Returns a warning if there is
    /// something to say; conversations of clients do not look themselves.
    pub fn left_behind(&self) -> Option<String> {
        let Self::AgentTemplate(agent) = self else {
            return None;
        };
        let left = agent
            .workspace
            .as_ref()
            .filter(|it| it.has_lists())?
            .left_behind(|| true);
        (!left.is_empty()).then(|| quarantine::warning(&left))
    }

    /// Returns the tools that clients can use, for the startup message.
    pub fn tools(&self) -> String {
        let names = self.tool_names();
        match self {
            Self::Gateway(..) => "those of the gateway behind it".to_owned(),
            Self::AgentTemplate(_) if !names.is_empty() => names.join(", "),
            Self::AgentTemplate(_) | Self::Recording(..) => "none".to_owned(),
        }
    }

    /// Returns the names of the tools offered to the model; empty for a gateway, whose tools are its own.
    pub fn tool_names(&self) -> Vec<String> {
        let Self::AgentTemplate(agent) = self else {
            return Vec::new();
        };
        let model = agent.model.as_deref().unwrap_or_default();
        let offered = tool_selection::tools(&agent.settings, model, agent.about.window, &agent.tools);
        offered.iter().map(|it| it.name.clone()).collect()
    }

    /// Returns true if clients may undo: the agent changes files here, and clients may let it.
    pub fn can_undo(&self) -> bool {
        match self {
            Self::AgentTemplate(agent) => agent.tools.iter().any(|it| !it.only_looks()),
            Self::Gateway(..) | Self::Recording(..) => false,
        }
    }

    /// Opens a link for a request. `log` holds the conversation before its message.
    pub fn link(&self, wanted: &LinkRequest<'_>, log: Arc<Log>) -> Arc<dyn Link> {
        let LinkRequest { request, asker } = *wanted;
        match self {
            // The client's context and tools are passed on unchanged.
            Self::Gateway(client, settings) => {
                let settings = http::Settings {
                    context: request.context.clone().map(Into::into),
                    tools: request.tools.clone(),
                    available_tools: request.available_tools.clone(),
                    accepts_answers: asker == Asker::Live,
                    ..(**settings).clone()
                };
                Arc::new(Http::over(client.clone(), settings, log))
            }
            Self::AgentTemplate(agent) => {
                let (settings, tools) = tool_choice::narrowed(
                    &agent.settings,
                    &agent.tools,
                    request.tools.as_deref(),
                    request.available_tools.as_ref(),
                );
                let agent = AgentTemplate {
                    settings,
                    tools,
                    ..(**agent).clone()
                };
                let conversation = request.conversation_id.clone();
                agent.link(log, conversation.unwrap_or_else(ConversationId::fresh), asker)
            }
            Self::Recording(recording, speed) => {
                let reply = recording.reply_to(&request.messages);
                Arc::new(Replay::start(&reply, *speed, Audience::Asking))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        journal::{Earlier, Recent},
        protocol::{Cost, Done, Message, Turn},
    };

    #[test]
    fn other_keys_are_named_unless_the_settings_choose_a_provider() {
        let variables = [
            ("OPENAI_API_KEY", "k"),
            ("ANTHROPIC_API_KEY", "k"),
            ("GEMINI_API_KEY", "k"),
        ];
        let environment = Environment::from_iter(variables);
        let mut settings = Settings::default();
        let provider = settings.provider_named("openai", &environment).unwrap();
        assert_eq!(other_keys(&settings, &provider, &environment), ["Gemini", "Anthropic"]);
        settings.provider = Some("openai".to_owned());
        assert!(other_keys(&settings, &provider, &environment).is_empty());
    }

    /// The front of a long conversation, which must not be read whole.
    #[derive(Debug)]
    struct Front(Vec<Entry>);

    impl Earlier for Front {
        fn entries(&self) -> Vec<Entry> {
            panic!("it was read whole")
        }

        fn last(&self, _: u64) -> Option<(Turn, Vec<Entry>)> {
            Some((self.0.first()?.turn, self.0.clone()))
        }

        fn spent(&self) -> Cost {
            Cost::default()
        }
    }

    fn answers(names: &[Option<&str>]) -> Vec<Entry> {
        let log = Log::new();
        for name in names {
            log.append(1, Event::UserMessage(Message::user("go")));
            let conversation_id = name.map(ConversationId::from);
            log.append(
                1,
                Event::Done(Done {
                    conversation_id,
                    ..Done::default()
                }),
            );
        }
        log.after(Position(0)).iter().map(|it| Entry::clone(it)).collect()
    }

    #[test]
    fn what_a_long_conversation_is_called_stands_near_its_end_or_nowhere() {
        for (names, wanted) in [
            ([Some("a"), Some("b"), Some("c")], Some("c")),
            ([Some("a"), Some("b"), None], Some("b")),
            ([None, None, None], None),
        ] {
            let mut entries = answers(&names);
            let recent = entries.split_off(4);
            let after = entries.last().map_or(Position(0), |it| it.position);
            let start = Recent {
                after,
                turn: Turn(3),
                title: None,
            };
            let log = Log::from_recent(start, Box::new(Front(entries)), recent);
            assert_eq!(conversation(&log).as_ref().map(ConversationId::as_str), wanted);
        }
    }
}
