//! Whom to talk to, as a link.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::{
    agent::{
        context::{self, List},
        driver, narrow, offer,
        rules::{self, RuleSet},
        trust,
    },
    config::{Environment, Gateway, Ledger, Paths, Provider, Settings, Upstream},
    journal::Log,
    link::{
        About, Asker, Held, Hold, Link,
        http::{self, Http},
        local::Local,
        replay::{Audience, Recording, Replay, Speed},
    },
    model::{self, Roles, catalogue, script},
    protocol::{ConversationId, Dialect, Entry, Event, Position},
    sandbox::{self, Fence, Tier, Workspace},
    serve::Wanted,
    tool::{self, Stop, Tool},
};

/// What to do when nothing is configured, for those who have no screen to be asked on.
const NOTHING: &str = "there is nobody to ask\n  \
     set OPENAI_API_KEY, or OPENAI_BASE_URL for a model server of your own,\n  \
     or name a server: --provider NAME, --gateway URL\n  \
     `sheaf doctor` says what it finds, `sheaf tour` needs none of it";

/// Why there is no link, for those who have no screen to be asked on.
pub fn nobody() -> anyhow::Error {
    anyhow::anyhow!(NOTHING)
}

/// Where and with whom a conversation is.
pub struct Talk {
    pub workspace: PathBuf,
    /// Other folders to work in.
    pub added: Vec<PathBuf>,
    /// What was said before, if anything was.
    pub log: Arc<Log>,
    /// What was said was said in another conversation.
    pub is_copy: bool,
    /// Somebody is there to answer questions.
    pub is_attended: bool,
}

/// The link that the settings ask for; `None` when they name nobody. Opens no connection.
pub fn link(settings: &Settings, environment: &Environment, talk: &Talk) -> Result<Option<Arc<dyn Link>>> {
    match settings.upstream() {
        Upstream::Gateway(it) => {
            let context = surroundings(settings, it, talk);
            let settings = at_gateway(settings, it, environment, Some(context), talk.is_attended)?;
            Ok(Some(Arc::new(Http::start(settings, Arc::clone(&talk.log))?)))
        }
        Upstream::Provider(_, provider) => {
            let folders = Some((talk.workspace.as_path(), talk.added.as_slice()));
            let agent = Agent::of(settings, provider, environment, folders, tool::TOOLS)?;
            let before = conversation(&talk.log).filter(|_| !talk.is_copy);
            let conversation = before.unwrap_or_else(ConversationId::fresh);
            Ok(Some(agent.link(
                Arc::clone(&talk.log),
                conversation,
                asker(talk.is_attended),
            )))
        }
        Upstream::Nobody => Ok(None),
    }
}

/// What a gateway is told of the workspace: as much of it as the settings want.
fn surroundings(settings: &Settings, gateway: &Gateway, talk: &Talk) -> http::Context {
    let path = json!({ "workspacePath": talk.workspace });
    if gateway.context == "path" {
        return path.into();
    }
    let meanwhile = path.clone();
    let (settings, is_layout) = (settings.clone(), gateway.context == "layout");
    let (folder, added, is_attended) = (talk.workspace.clone(), talk.added.clone(), talk.is_attended);
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
        meanwhile,
    }
}

/// The conversation that a log holds, as its last answer names it.
pub(super) fn conversation(log: &Log) -> Option<ConversationId> {
    let named = |entries: Vec<Arc<Entry>>| {
        entries.iter().rev().find_map(|it| match &it.event {
            Event::ResponseStart(start) => start.conversation_id.clone(),
            Event::Done(done) => done.conversation_id.clone(),
            _ => None,
        })
    };
    match log.recent() {
        // Every answer of ours bears the name. Where none near the end does, nobody has one: an imported conversation, which
        // is not read whole for that.
        Some(recent) => named(log.after(recent.after)).or_else(|| named(log.lately().unwrap_or_default())),
        None => named(log.after(Position(0))),
    }
}

/// A documents gateway.
pub fn gateway(
    settings: &Settings,
    gateway: &Gateway,
    environment: &Environment,
    workspace: Option<&Path>,
    is_attended: bool,
) -> Result<Arc<dyn Link>> {
    let context = workspace.map(|it| json!({ "workspacePath": it }).into());
    let settings = at_gateway(settings, gateway, environment, context, is_attended)?;
    Ok(Arc::new(Http::start(settings, Log::new())?))
}

fn at_gateway(
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
        ..http::Settings::new(gateway.connection.peer()?)
    })
}

/// The embedded agent with `provider`, with all tools in `workspace`.
pub fn local(
    settings: &Settings,
    provider: &Provider,
    environment: &Environment,
    workspace: Option<&Path>,
    is_attended: bool,
) -> Result<Arc<dyn Link>> {
    let folders = workspace.map(|it| (it, [].as_slice()));
    let agent = Agent::of(settings, provider, environment, folders, tool::TOOLS)?;
    Ok(agent.link(Log::new(), ConversationId::fresh(), asker(is_attended)))
}

/// The embedded agent in `workspace` with a provider that no settings name; whatever it keeps, it keeps under `paths`.
pub fn playing(
    provider: Arc<dyn model::Provider>,
    settings: Settings,
    workspace: &Path,
    paths: Paths,
) -> Result<Arc<dyn Link>> {
    let fence = Fence::configured(&settings, Some(&paths), Vec::new());
    let workspace =
        Workspace::fenced(workspace, fence).with_context(|| format!("{} cannot be opened", workspace.display()))?;
    let agent = Agent {
        about: About {
            peer: provider.peer().to_owned(),
            model: Some(script::NAME.to_owned()),
            hears: true,
            runs: true,
            reads_context: true,
            workspace: Some(workspace.root().to_owned()),
            ..About::default()
        },
        provider,
        model: Some(script::NAME.to_owned()),
        workspace: Some(Arc::new(workspace)),
        tools: tool::TOOLS.to_vec(),
        roles: Arc::new(Roles::new(&settings, &Environment::default())),
        settings: Arc::new(settings),
        paths: Some(paths),
    };
    Ok(agent.link(Log::new(), ConversationId::fresh(), Asker::Here))
}

fn asker(is_attended: bool) -> Asker {
    if is_attended { Asker::Here } else { Asker::Nobody }
}

/// The embedded agent, before it has a conversation.
#[derive(Clone)]
pub struct Agent {
    provider: Arc<dyn model::Provider>,
    model: Option<String>,
    about: About,
    settings: Arc<Settings>,
    workspace: Option<Arc<Workspace>>,
    tools: Vec<&'static Tool>,
    roles: Arc<Roles>,
    /// Where rules and what files were are kept.
    paths: Option<Paths>,
}

impl Agent {
    fn of(
        settings: &Settings,
        provider: &Provider,
        environment: &Environment,
        folders: Option<(&Path, &[PathBuf])>,
        tools: &[&'static Tool],
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
        let model = settings.model().or(provider.model.as_deref()).map(str::to_owned);
        let known = model.as_ref().and_then(|it| settings.models.get(it));
        let provider = model::open(provider, environment)?;
        let about = About {
            peer: provider.peer().to_owned(),
            window: known
                .and_then(|it| it.window)
                .or_else(|| model.as_deref().and_then(catalogue::window)),
            model: model.clone(),
            is_replay: false,
            hears: true,
            runs: true,
            reads_context: true,
            workspace: None,
            hold: Hold::default(),
        };
        let tools = if workspace.is_some() {
            tools.to_vec()
        } else {
            Vec::new()
        };
        Ok(Self {
            provider,
            model,
            about,
            settings: Arc::new(settings.clone()),
            workspace,
            tools,
            roles: Arc::new(Roles::new(settings, environment)),
            paths: Paths::of_user(),
        })
    }

    fn link(&self, log: Arc<Log>, conversation: ConversationId, asker: Asker) -> Arc<dyn Link> {
        // Without a screen there is nobody to tell, and the first command finds it out for itself.
        let workspace = self.workspace.as_ref().map(|it| Arc::new(it.fresh()));
        if asker == Asker::Here {
            let ledger = self.paths.as_ref().map(|it| Ledger::under(&it.state));
            if let (Some(workspace), Some(ledger)) = (&workspace, ledger) {
                workspace.commands().set_guarded(ledger.is_guarded(workspace.root()));
            }
            find(
                &self.about.hold,
                workspace.as_ref().is_some_and(|it| it.commands().is_guarded()),
            );
        }
        let (link, inbox) = Local::new(Arc::clone(&log), self.about.clone());
        let setup = driver::Setup {
            provider: Arc::clone(&self.provider),
            model: self.model.clone().unwrap_or_default(),
            conversation,
            asker,
            // Commands and the folder they are in are the conversation's own.
            workspace,
            settings: Arc::clone(&self.settings),
            tools: self.tools.clone(),
            roles: Arc::clone(&self.roles),
            paths: self.paths.clone(),
            hold: self.about.hold.clone(),
        };
        tokio::spawn(driver::run(setup, log, inbox));
        Arc::new(link)
    }
}

/// What holds commands, found out on a thread of its own: the first frame does not wait.
fn find(hold: &Hold, is_guarded: bool) {
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

/// Whoever answers the requests of others, each in a conversation of its own and with nobody there to watch.
pub enum Source {
    Gateway(Box<http::Settings>),
    Agent(Box<Agent>),
    Recording(Recording, Speed),
}

impl Source {
    /// What the settings name; `None` when they name nobody.
    pub fn of(settings: &Settings, environment: &Environment, workspace: &Path) -> Result<Option<Self>> {
        match settings.upstream() {
            Upstream::Gateway(it) => {
                let settings = at_gateway(settings, it, environment, None, false)?;
                Ok(Some(Self::Gateway(Box::new(settings))))
            }
            Upstream::Provider(_, provider) => {
                // Whoever asks from outside may look and not touch, unless the user wants it otherwise.
                let is_free = settings.serve.tools == "all";
                let tools = tool::TOOLS
                    .iter()
                    .copied()
                    .filter(|it| is_free || offer::only_looks(it));
                let tools: Vec<_> = tools.collect();
                let agent = Agent::of(settings, provider, environment, Some((workspace, &[])), &tools)?;
                Ok(Some(Self::Agent(Box::new(agent))))
            }
            Upstream::Nobody => Ok(None),
        }
    }

    /// What clients can have done here, in words.
    pub fn tools(&self) -> String {
        let names = self.tool_names();
        match self {
            Self::Gateway(_) => "those of the gateway behind it".to_owned(),
            Self::Agent(_) if !names.is_empty() => names.join(", "),
            Self::Agent(_) | Self::Recording(..) => "none".to_owned(),
        }
    }

    /// What the model may call, by name, as far as it is ours.
    pub fn tool_names(&self) -> Vec<String> {
        let Self::Agent(agent) = self else { return Vec::new() };
        let model = agent.model.as_deref().unwrap_or_default();
        let offered = offer::tools(&agent.settings, model, agent.about.window, &agent.tools);
        offered.iter().map(|it| it.name.to_owned()).collect()
    }

    /// A link for a request; the conversation before its message is in `log`.
    pub fn link(&self, wanted: &Wanted<'_>, log: Arc<Log>) -> Result<Arc<dyn Link>> {
        let Wanted { request, asker } = *wanted;
        Ok(match self {
            // What the client says of its surroundings and allows goes on as it is.
            Self::Gateway(settings) => {
                let settings = http::Settings {
                    context: request.context.clone().map(Into::into),
                    tools: request.tools.clone(),
                    available_tools: request.available_tools.clone(),
                    ..(**settings).clone()
                };
                Arc::new(Http::start(settings, log)?)
            }
            Self::Agent(agent) => {
                let (settings, tools) = narrow::narrowed(
                    &agent.settings,
                    &agent.tools,
                    request.tools.as_deref(),
                    request.available_tools.as_ref(),
                );
                let agent = Agent {
                    settings: Arc::new(settings),
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
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        journal::{Earlier, Recent},
        protocol::{Done, Message, Spent, Turn},
    };

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

        fn spent(&self) -> Spent {
            Spent::default()
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
