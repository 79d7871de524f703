//! The command line: what can be said, and how `--help` teaches it.

use std::{ffi::OsString, path::PathBuf, sync::LazyLock};

use clap::{Args, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use crate::{
    config::{CommandLineSettings, distance},
    link::replay::Speed,
    print::Format,
};

/// With the commit, where the build names one in `SHEAF_COMMIT`.
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| match option_env!("SHEAF_COMMIT") {
        Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").to_owned(),
    });
    &VERSION
}

const EXAMPLES: &str = "\
Examples:
  sheaf                                  open the screen in this folder
  sheaf why does the build fail          open it with a question
  sheaf --gateway https://docs.example   talk to a documents gateway
  sheaf --provider ollama --model qwen3  talk to a model server
  sheaf -p 'what does cart.rs do?'       print the answer to stdout
  git diff | sheaf -p 'review this'      attach standard input
  sheaf -p --output-format documents …   print the answer as one JSON object
  sheaf -p --allow 'Shell(cargo test)' … allow an action without asking
  sheaf -p -o answer.md --tools '' …     write the answer to a file; offer no tools
  sheaf -p --input-format stream-json --output-format stream-json
                                         several turns over stdin and stdout
  sheaf -p --continue 'and now?'         continue the last conversation here
  sheaf --plain                          plain lines for a screen reader
  sheaf login                            store an API key; list which providers work
  sheaf tour                             play a recorded conversation that shows everything
  sheaf replay answer.sse --speed 4      play a saved stream or session
  sheaf sessions list                    list saved conversations; also export, import, rename, rm
  sheaf get 7.3                          print one document of the last conversation
  sheaf serve --replay answer.sse        serve a recording over HTTP
  sheaf conform http://127.0.0.1:8643    check a gateway
  sheaf mcp add time -- uvx mcp-server-time
                                         add an MCP server
  sheaf doctor                           check terminal, keys, network and model
  sheaf help sessions                    show help for a command
  sheaf -- status                        send a prompt that is also a command

Exit codes:
  0 answered    1 failed     2 wrong usage
  3 no sandbox is available, and a command or --sandbox on needs one
  4 answered, but an action was refused for lack of permission
  129, 130, 143 stopped by a signal

Keys and addresses come from the environment or the settings (`sheaf config path`):
  OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL   a model server
  SHEAF_TOKEN                                     a documents gateway";

/// A terminal chat for developers: every answer is a sheaf of documents.
#[derive(Debug, Parser)]
#[command(
    name = "sheaf",
    version = version(),
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    max_term_width = 100
)]
pub struct Arguments {
    #[command(subcommand)]
    pub task: Option<Task>,

    /// Message to send when the screen opens
    #[arg(value_name = "PROMPT")]
    pub prompt: Vec<String>,

    #[command(flatten)]
    pub printing: OutputArguments,

    #[command(flatten)]
    pub whom: TargetArguments,

    #[command(flatten)]
    pub run: Run,

    #[command(flatten)]
    pub common: CommonArguments,
}

/// Flags that a subcommand accepts but does not list, because they have no effect there.
const WITHOUT_EFFECT: &[(&[&str], &[&str])] = &[
    (&["serve"], &["theme", "mode"]),
    (&["replay"], &["sandbox"]),
    (&["conform"], &["theme", "sandbox"]),
    (&["config"], &["sandbox"]),
    (&["doctor"], &["mode"]),
    (&["login"], &["theme", "sandbox"]),
    (&["logout"], &["theme", "sandbox"]),
    (
        &["create-chat"],
        &["theme", "sandbox", "gateway", "provider", "model", "mode"],
    ),
    (&["status"], &["theme", "sandbox", "mode"]),
    (&["models"], &["theme", "sandbox", "model", "mode"]),
    (&["sessions"], &["theme", "sandbox"]),
    (&["plugin"], &["theme", "sandbox"]),
    (&["get"], &["theme", "sandbox"]),
    (&["search"], &["theme", "sandbox"]),
    (&["index"], &["theme", "sandbox"]),
    (&["why"], &["theme", "sandbox"]),
    (&["undo"], &["theme", "sandbox"]),
    (&["redo"], &["theme", "sandbox"]),
    (&["rewind"], &["theme", "sandbox"]),
    (&["mcp"], &["theme"]),
    (&["sandbox", "explain"], &["theme"]),
    (&["sandbox", "run"], &["theme", "sandbox"]),
];

/// Words that are subcommands of similar tools but not of sheaf, with the command to suggest.
const FOREIGN_COMMANDS: &[(&str, &str)] = &[
    ("auth", "sheaf login"),
    ("chat", "sheaf"),
    ("continue", "sheaf --continue"),
    ("exec", "sheaf -p"),
    ("init", "sheaf /init"),
    ("resume", "sheaf --resume"),
    ("update", "sheaf --version"),
    ("upgrade", "sheaf --version"),
    ("version", "sheaf --version"),
];

impl Arguments {
    /// The definition for parsing, help, completions and manual pages.
    pub fn definition() -> Command {
        fn hide(command: Command, path: &[&str], flags: &[&'static str]) -> Command {
            match path {
                [] => flags
                    .iter()
                    .fold(command, |it, flag| it.mut_arg(flag, |it| it.hide(true))),
                [name, rest @ ..] => command.mut_subcommand(name, |it| hide(it, rest, flags)),
            }
        }
        WITHOUT_EFFECT
            .iter()
            .fold(Self::command(), |it, (path, flags)| hide(it, path, flags))
    }

    /// Parses a command line that begins with the program's name.
    ///
    /// # Errors
    ///
    /// Help, the version, or a usage error; clap knows the exit code.
    pub fn read(line: &[OsString]) -> Result<Self, clap::Error> {
        let definition = Self::definition();
        let mut line = line.to_vec();
        let is_command =
            |it: &OsString| definition.find_subcommand(it).is_some() || it.as_encoded_bytes().starts_with(b"-");
        if let [_, first, rest @ ..] = line.as_slice()
            && first == "help"
            && let Some(topic) = rest.first()
        {
            if rest.len() == 1 && ["help", "--help", "-h"].iter().any(|it| topic == it) {
                line.truncate(2);
            } else if !is_command(topic) {
                // `help me with this test` is a prompt.
                line.insert(1, "--".into());
            }
        }
        Self::from_arg_matches(&definition.try_get_matches_from(line)?)
    }
}

/// Returns a hint if the first argument looks like a subcommand but is none, and what follows is no prose or begins with a
/// subcommand of it: the line would otherwise become a request to a model.
pub fn mistyped(line: &[OsString]) -> Option<String> {
    let [_, word, rest @ ..] = line else { return None };
    let word = word.to_str()?;
    if word.is_empty() || word.starts_with('-') || word.contains(char::is_whitespace) {
        return None;
    }
    let definition = Arguments::definition();
    if let ("help", [topic]) = (word, rest) {
        let topic = topic
            .to_str()
            .filter(|it| !it.contains(char::is_whitespace) && !it.starts_with('-'))?;
        if topic == "help" || definition.find_subcommand(topic).is_some() {
            return None;
        }
        let next = match nearest_command(&definition, topic) {
            Some(near) => format!("did you mean `sheaf help {near}`?"),
            None => "`sheaf --help` lists them".to_owned(),
        };
        return Some(format!(
            "`{topic}` is not a command\n  {next}\n  to send it as a prompt: sheaf -- help {topic}"
        ));
    }
    if word == "help" || definition.find_subcommand(word).is_some() {
        return None;
    }
    let foreign = FOREIGN_COMMANDS.iter().find(|it| it.0 == word);
    let near = match foreign {
        Some((_, command)) => (*command).to_owned(),
        None => format!("sheaf {}", nearest_command(&definition, word)?),
    };
    let subcommand = near
        .strip_prefix("sheaf ")
        .and_then(|it| definition.find_subcommand(it));
    // `None`: neither the command nor a prompt has the flag.
    let takes_value = |flag: &str| {
        let name = flag.trim_start_matches('-').split('=').next().unwrap_or_default();
        let own = subcommand.into_iter().flat_map(Command::get_arguments);
        let mut flags = own.chain(definition.get_arguments());
        let named = |it: &&clap::Arg| {
            let long = flag.starts_with("--").then(|| it.get_long() == Some(name));
            long.unwrap_or_else(|| it.get_short().is_some_and(|short| name.starts_with(short)))
        };
        let takes = flags.find(named)?.get_action().takes_values();
        Some(takes && flag.starts_with("--") && !flag.contains('='))
    };
    let whole: Vec<&OsString> = rest.iter().collect();
    let all: Vec<_> = line.iter().skip(1).map(|it| it.to_string_lossy()).collect();
    let mut rest = rest.iter().map(|it| it.to_string_lossy());
    let mut has_sub = false;
    while let Some(it) = rest.next() {
        let is_sub = subcommand.is_some_and(|command| command.find_subcommand(&*it).is_some())
            || near == "sheaf help" && definition.find_subcommand(&*it).is_some();
        if it == "--print" || it.starts_with("-p") || it == "--" && !has_sub {
            return None;
        } else if it == "--" {
            // What follows is for the subcommand.
            break;
        } else if it.starts_with('-') {
            match takes_value(&it) {
                // The value of a flag is no prose.
                Some(true) => _ = rest.next(),
                Some(false) => {}
                // As a prompt the line would be refused as well.
                None if it.len() > 1 && !has_sub => break,
                None => {}
            }
        } else if is_sub {
            has_sub = true;
        } else if !has_sub {
            return None;
        }
    }
    // Words after a known one may still be prose.
    if let Some(command) = subcommand.filter(|_| has_sub) {
        let line = [OsString::from("sheaf"), command.get_name().into()];
        let line = line.into_iter().chain(whole.into_iter().cloned());
        let read = definition.clone().try_get_matches_from(line);
        // A name that is missing is no prose.
        if read.is_err_and(|it| it.use_stderr() && it.kind() != clap::error::ErrorKind::MissingRequiredArgument) {
            return None;
        }
    }
    Some(format!(
        "`{word}` is not a command\n  did you mean `{near}`?\n  to send it as a prompt: sheaf -- {}",
        all.join(" ")
    ))
}

/// Returns the subcommand at an edit distance of at most 1, or 2 for words of six or more letters.
fn nearest_command<'a>(definition: &'a Command, word: &str) -> Option<&'a str> {
    let limit = if word.chars().count() < 6 { 1 } else { 2 };
    // Longer words are near nothing.
    if word.len() > 16 {
        return None;
    }
    let names = definition.get_subcommands().map(Command::get_name).chain(["help"]);
    let near = names.map(|it| (distance(word, it), it)).filter(|it| it.0 <= limit);
    near.min_by_key(|it| it.0).map(|it| it.1)
}

/// Options that apply to this run only.
#[derive(Clone, Debug, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that is given or not")]
pub struct Run {
    /// Input format: the prompt as text (text), or messages, answers and stops as lines of JSON, for several turns
    /// (stream-json; needs --output-format stream-json or events)
    #[arg(long, value_name = "FORMAT", default_value = "text", hide_possible_values = true)]
    pub input_format: InputFormat,

    /// Allow everything that no deny rule forbids; only protected files still ask
    #[arg(short, long, alias = "yolo")]
    pub force: bool,

    /// Allow an action without asking, as in 'Shell(git push)'
    #[arg(long, value_name = "RULE")]
    pub allow: Vec<String>,

    /// Refuse an action
    #[arg(long, value_name = "RULE")]
    pub deny: Vec<String>,

    /// Use a custom mode or agent, by the name of its file
    #[arg(long, value_name = "NAME", conflicts_with = "mode")]
    pub agent: Option<String>,

    /// Permissions of this run: default (your settings), acceptEdits (change, copy and list files without asking), plan
    /// (change nothing), bypassPermissions (as --force)
    #[arg(long, value_name = "MODE", conflicts_with_all = ["force", "mode"], hide_possible_values = true)]
    pub permission_mode: Option<PermissionMode>,

    /// Let this command decide approvals: it gets each as JSON on stdin and prints {"behavior": "allow"} or
    /// {"behavior": "deny", "message": "…"}
    #[arg(long, value_name = "COMMAND")]
    pub permission_prompt_tool: Option<String>,

    /// Offer only these tools to the model, as in 'read_file,grep'; '' offers none
    #[arg(long, value_name = "NAMES")]
    pub tools: Option<String>,

    /// Use this text in place of sheaf's system prompt; rules still apply
    #[arg(long, value_name = "TEXT")]
    pub system_prompt: Option<String>,

    /// Add this text to the end of the system prompt
    #[arg(long, value_name = "TEXT")]
    pub append_system_prompt: Option<String>,

    /// Trust this workspace: load its AGENTS.md, rules, settings and checkers
    #[arg(long)]
    pub trust: bool,

    /// Add a folder to work in
    #[arg(long, value_name = "FOLDER")]
    pub add_dir: Vec<PathBuf>,

    /// Send an image with the message
    #[arg(long, value_name = "FILE")]
    pub image: Vec<PathBuf>,

    /// Stop after N model requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_turns: Option<u64>,

    /// Stop once the run has cost this much, in dollars; needs a model whose price is known
    #[arg(long, value_name = "DOLLARS", value_parser = budget)]
    pub max_budget_usd: Option<f64>,

    /// Require JSON that matches the schema in this file; ask again if it does not match
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,

    /// Continue the last conversation in this workspace
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub goes_on: bool,

    /// Resume a conversation by its id; without one choose from a list
    #[arg(short, long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    pub resume: Option<String>,

    /// Open a conversation on a `sheaf serve --stateful` server; without #ID choose from a list
    #[arg(
        long,
        value_name = "URL[#ID]",
        conflicts_with_all = ["resume", "goes_on", "fork", "session_id", "gateway", "provider"]
    )]
    pub attach: Option<String>,

    /// Give the new conversation this id, for --resume later: letters, digits, '-' and '_'
    #[arg(long, value_name = "ID", value_parser = session_id)]
    pub session_id: Option<String>,

    /// With --continue or --resume: continue a copy of the conversation
    #[arg(long)]
    pub fork: bool,

    /// Do not save this conversation
    #[arg(long)]
    pub no_session: bool,

    #[command(flatten)]
    pub end: DisplayArguments,
}

/// Display of the conversation.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct DisplayArguments {
    /// Use plain lines instead of a screen, for screen readers; each line of input is a message
    #[arg(long)]
    pub plain: bool,

    /// Write into the terminal's own scrollback; only unfinished parts are redrawn
    #[arg(long, conflicts_with = "plain")]
    pub inline: bool,
}

/// Answers without a screen.
#[derive(Clone, Debug, Default, Args)]
pub struct OutputArguments {
    /// Print the answer to stdout and exit
    #[arg(short, long)]
    pub print: bool,

    /// Output format: the answer as plain text (text), one JSON object (json) or lines of JSON (stream-json), the last
    /// two as in Cursor's CLI; all documents as JSON (documents); one protocol event per line (events)
    #[arg(long, value_name = "FORMAT", default_value = "text", hide_possible_values = true)]
    pub output_format: OutputFormat,

    /// Write the answer to this file instead of stdout; implies --print
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// With stream-json: include partial text as it arrives
    #[arg(long)]
    pub stream_partial_output: bool,

    /// With stream-json: include the model's thinking
    #[arg(long)]
    pub include_thinking: bool,
}

/// Permissions of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "camelCase")]
pub enum PermissionMode {
    Default,
    AcceptEdits,
    Plan,
    BypassPermissions,
}

impl PermissionMode {
    /// The word in the first line of `stream-json`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::BypassPermissions => "bypassPermissions",
        }
    }
}

/// Reads a limit of costs. Error: why it is none.
fn budget(text: &str) -> Result<f64, String> {
    let dollars: f64 = text
        .parse()
        .map_err(|_| "it must be a number of dollars, such as 0.50")?;
    if dollars.is_finite() && dollars > 0.0 {
        Ok(dollars)
    } else {
        Err("it must be more than 0".to_owned())
    }
}

/// Reads the id of a new conversation, which becomes a file name.
fn session_id(text: &str) -> Result<String, String> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
    if text.is_empty() || text.len() > 64 || !text.chars().all(is_plain) || text.starts_with('-') {
        return Err("it must be 1 to 64 letters, digits, '-' and '_'; `uuidgen` makes one".to_owned());
    }
    Ok(text.to_owned())
}

impl OutputArguments {
    /// Why the options do not go together.
    pub fn problem(&self, input: InputFormat) -> Option<&'static str> {
        let is_stream = self.output_format == OutputFormat::StreamJson;
        if self.stream_partial_output && !is_stream {
            return Some("--stream-partial-output is for --output-format stream-json");
        }
        let is_lines = is_stream || self.output_format == OutputFormat::Events;
        if input == InputFormat::StreamJson && !is_lines {
            return Some(
                "--input-format stream-json prints several answers\n  add --output-format stream-json, or events",
            );
        }
        if self.include_thinking && !is_stream {
            return Some("--include-thinking is for --output-format stream-json");
        }
        None
    }
}

/// Format of standard input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum InputFormat {
    /// The prompt, or an attachment to it.
    #[default]
    Text,
    /// Lines of JSON: messages, answers and stops.
    StreamJson,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    #[default]
    Text,
    Json,
    StreamJson,
    Documents,
    Events,
}

impl From<OutputFormat> for Format {
    fn from(format: OutputFormat) -> Self {
        match format {
            OutputFormat::Text => Self::Text,
            OutputFormat::Json => Self::Json,
            OutputFormat::StreamJson => Self::StreamJson,
            OutputFormat::Documents => Self::Documents,
            OutputFormat::Events => Self::Events,
        }
    }
}

/// The server, model and mode to use.
#[derive(Clone, Debug, Default, Args)]
pub struct TargetArguments {
    /// Talk to the documents gateway at this address
    #[arg(long, value_name = "URL")]
    pub gateway: Option<String>,

    /// Talk to this model server: openai, ollama, … or one from the settings
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,

    /// Model to use
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,

    /// Mode of the agent
    #[arg(long, value_parser = ["agent", "plan", "ask", "debug"])]
    pub mode: Option<String>,
}

/// Options of every task.
#[derive(Clone, Debug, Default, Args)]
pub struct CommonArguments {
    /// Folder to work in [default: the repository around the current one]
    #[arg(long, value_name = "FOLDER")]
    pub workspace: Option<PathBuf>,

    /// Color theme: auto, or the name of a theme
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,

    /// Set any setting, as in `--set ui.output_rows=40`
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Write a log to this file
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,

    /// `off`: run commands without the sandbox and ask before each; `on`: refuse to run anything if no sandbox is
    /// available
    #[arg(long, value_name = "on|off", value_parser = switch)]
    pub sandbox: Option<bool>,
}

#[derive(Debug, Subcommand)]
pub enum Task {
    /// Play a saved stream, response or session
    Replay(Replay),
    /// Serve the agent (or any configured model) over HTTP
    Serve(Serve),
    /// Check a gateway or a recording for protocol conformance
    Conform(Conform),
    /// Play a recorded conversation that shows everything
    Tour(Tour),
    /// Check terminal, keys, network and model, and suggest fixes
    Doctor(Doctor),
    /// Store an API key, or list which providers work
    Login(Login),
    /// Remove a stored API key
    Logout(Logout),
    /// Show and change settings
    Config(Config),
    /// Create a conversation and print its id, for --resume
    CreateChat(Asking),
    /// Show which provider and model would be used
    Status(Asking),
    /// List the available models
    Models(Asking),
    /// Manage saved conversations: list, show, export, import, rename, delete
    Sessions(Sessions),
    /// Manage plugins: add, list, update, remove
    Plugin(Plugin),
    /// Print one document of a saved conversation, by its address
    Get(Get),
    /// Search code by words and by meaning
    Search(Search),
    /// Manage the code index: status, build, search, clear, model
    Index(IndexArguments),
    /// Show which message and model produced a line (blame for AI edits)
    Why(Why),
    /// Undo the file changes of a turn or a document
    Undo(Undo),
    /// Redo undone changes
    #[command(
        after_help = "Examples:\n  sheaf redo                  what was undone last here\n  \
                      sheaf redo last#7.3         one document\n  \
                      sheaf redo --but src/cart.rs --dry-run"
    )]
    Redo(Undo),
    /// Rewind to a message: files, conversation or both
    Rewind(Rewind),
    /// Explain the sandbox, or run a command in it
    Sandbox(Sandbox),
    /// Manage MCP servers: list, add, show, approve, test, sign in, remove
    Mcp(Mcp),
    /// Print shell completions
    #[command(
        after_help = "Examples:\n  sheaf completions bash > ~/.local/share/bash-completion/completions/sheaf\n  \
                      sheaf completions zsh > ~/.zfunc/_sheaf\n  \
                      sheaf completions fish > ~/.config/fish/completions/sheaf.fish"
    )]
    Completions {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
    /// Print the man page
    #[command(after_help = "Examples:\n  sheaf man | man -l -\n  sheaf man --dir ~/.local/share/man/man1")]
    Man {
        /// Write a page for sheaf and one for each subcommand into this folder
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub struct Asking {
    #[command(flatten)]
    pub whom: TargetArguments,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Args)]
pub struct Replay {
    /// An event stream, a response object or a session file
    pub file: PathBuf,

    /// Compare the documents with those of this recording instead of playing; exit with 1 and print the differences if
    /// they differ
    #[arg(long, value_name = "FILE")]
    pub assert: Option<PathBuf>,

    #[command(flatten)]
    pub pace: Pace,

    #[command(flatten)]
    pub printing: OutputArguments,

    #[command(flatten)]
    pub end: DisplayArguments,

    #[command(flatten)]
    pub common: CommonArguments,
}

/// Usual speed of the tour, as `--speed` takes it.
pub const TOUR_SPEED: &str = "3";

#[derive(Clone, Copy, Debug, Args)]
pub struct Pace {
    /// Playback speed; 0 or max plays at once, step shows one document per Enter
    #[arg(long, value_name = "N", default_value = "1", value_parser = speed)]
    pub speed: Speed,
}

#[derive(Debug, Args)]
pub struct Serve {
    /// Address and port to listen on [default: 127.0.0.1:8643]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,

    /// Serve a recording instead
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,

    #[command(flatten)]
    pub pace: Pace,

    /// Tools for clients: only those that read, or all of the agent's (commands run in the sandbox)
    #[arg(long, value_name = "WHICH", value_parser = ["reading", "all"])]
    pub tools: Option<String>,

    /// Store conversations: clients send new messages only, and can return to an answer
    #[arg(long)]
    pub stateful: bool,

    /// Accept this host name beside localhost
    #[arg(long, value_name = "NAME")]
    pub allow_host: Vec<String>,

    /// Accept calls from web pages of this origin
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<String>,

    #[command(flatten)]
    pub whom: TargetArguments,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Args)]
pub struct Conform {
    /// Gateway address, or a file with an event stream or a response object (the output of `curl -i` works, too); `-`
    /// reads standard input
    #[arg(value_name = "URL|FILE")]
    pub target: Option<String>,

    /// Format of the findings: text or json
    #[arg(long, value_name = "FORMAT", default_value = "text", hide_possible_values = true)]
    pub output_format: ReportFormat,

    /// Treat warnings as errors
    #[arg(long)]
    pub strict: bool,

    /// Message to send to the gateway
    #[arg(long, value_name = "TEXT")]
    pub message: Option<String>,

    /// Request only this dialect
    #[arg(long, value_parser = ["a", "b"])]
    pub dialect: Option<String>,

    /// Model to request from the gateway
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,

    /// Mode to request [default: ask, which changes nothing]
    #[arg(long, value_parser = ["agent", "plan", "ask", "debug"])]
    pub mode: Option<String>,

    /// Print the table of rules
    #[arg(long)]
    pub rules: bool,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    #[default]
    Text,
    Json,
}

#[derive(Debug, Args)]
pub struct Tour {
    /// Run the real agent in a throw-away project, with a scripted model, instead of the recording
    #[arg(long)]
    pub live: bool,

    /// Playback speed, relative to the recording; 0 or max plays at once, step shows one document per Enter
    #[arg(long, value_name = "N", default_value = TOUR_SPEED, value_parser = speed)]
    pub speed: Speed,

    #[command(flatten)]
    pub printing: OutputArguments,

    #[command(flatten)]
    pub end: DisplayArguments,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Args)]
pub struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub whom: TargetArguments,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The key is read from the terminal without showing it, or from standard input; never from an\n\
                  argument. Without PROVIDER, login lists which providers work and where their keys come from.\n\n\
                  Examples:\n  sheaf login                          which providers work\n  \
                  sheaf login anthropic                ask for a key, check it and store it\n  \
                  pass show openai | sheaf login openai\n  \
                  sheaf login openai --key-command 'pass show openai'\n\n\
                  Subscriptions (ChatGPT, Claude Pro or Max) work only in their vendors' own programs; sheaf\n\
                  needs an API key."
)]
pub struct Login {
    /// openai, anthropic, gemini, openrouter, mistral, ollama, … or one from the settings
    #[arg(value_name = "PROVIDER")]
    pub provider: Option<String>,

    /// Run this command for the key instead of storing one
    #[arg(long, value_name = "CMD", requires = "provider")]
    pub key_command: Option<String>,

    /// Store the key in the system's keyring (builds with the feature `keyring`)
    #[arg(long, requires = "provider", conflicts_with = "key_command")]
    pub keyring: bool,

    /// Model to start with, and to check the key with if the provider lists none
    #[arg(long, value_name = "ID", requires = "provider")]
    pub model: Option<String>,

    /// Store the key without checking it
    #[arg(long, requires = "provider")]
    pub no_check: bool,

    /// Caught, so that a key is not repeated in an error.
    #[arg(hide = true)]
    pub extra: Vec<String>,

    /// Caught, so that a key is not repeated in an error.
    #[arg(long, hide = true, alias = "api-key", value_name = "KEY")]
    pub key: Option<String>,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sheaf logout anthropic")]
pub struct Logout {
    /// Provider whose key to remove
    #[arg(value_name = "PROVIDER")]
    pub provider: String,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Args)]
pub struct Config {
    #[command(subcommand)]
    pub ask: Setting,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Args)]
pub struct Sandbox {
    #[command(subcommand)]
    pub ask: Boundary,
}

#[derive(Debug, Subcommand)]
pub enum Boundary {
    /// Show each layer, and why one is missing
    Explain {
        #[command(flatten)]
        common: CommonArguments,
    },
    /// Run a command in the sandbox that the model's commands use; exit with its code, or 3 without a sandbox
    Run {
        /// Allow network access
        #[arg(long)]
        network: bool,

        /// Allow changes of git's own files
        #[arg(long)]
        git_write: bool,

        /// In a partial sandbox, allow writes to the whole workspace and restore protected files afterwards
        #[arg(long)]
        guard: bool,

        #[command(flatten)]
        common: CommonArguments,

        /// Command and its arguments
        #[arg(required = true, last = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
}

#[derive(Debug, Args)]
pub struct Mcp {
    #[command(subcommand)]
    pub ask: McpTask,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Subcommand)]
pub enum McpTask {
    /// List the servers of this workspace, and whether each may start
    List {
        /// Print lines of JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a server to your settings
    #[command(after_help = "Examples:\n  sheaf mcp add time -- uvx mcp-server-time\n  \
                            sheaf mcp add notes --folder ~/notes -- npx -y @modelcontextprotocol/server-filesystem ~/notes\n  \
                            sheaf mcp add docs --url https://docs.example/mcp --header 'Authorization: Bearer ${DOCS_TOKEN}'")]
    Add(McpAdd),
    /// Show what a server runs, what it is given and what it may do
    Show {
        /// Name of the server
        name: String,
    },
    /// Show what a project's server would run, or which tools have changed, and approve it
    Approve {
        /// Name of the server
        name: String,

        /// Approve without asking
        #[arg(long)]
        yes: bool,
    },
    /// Start a server, list its tools and stop it
    Test(McpTest),
    /// Sign in to a server in the browser
    Login(McpLogin),
    /// Sign out of a server and remove its token
    Logout {
        /// Name of the server, or an address
        #[arg(value_name = "NAME|URL")]
        target: String,
    },
    /// Serve sheaf's own tools (search, read, edit, why, sessions) over stdio
    Serve,
    /// Remove a server from your settings, and its approval
    Remove {
        /// Name of the server
        name: String,
    },
}

#[derive(Debug, Args)]
pub struct McpAdd {
    /// Name of the server
    pub name: String,

    /// Address of a server that is reached over HTTP
    #[arg(
        long,
        value_name = "URL",
        conflicts_with = "command",
        required_unless_present = "command"
    )]
    pub url: Option<String>,

    /// Variable for the program; ${NAME} is a variable of yours
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,

    /// Header of every request; ${NAME} is a variable of yours
    #[arg(long, value_name = "NAME: VALUE")]
    pub header: Vec<String>,

    /// Let the program use the network
    #[arg(long)]
    pub network: bool,

    /// Let the program write this folder; `.` is the workspace
    #[arg(long, value_name = "FOLDER")]
    pub folder: Vec<String>,

    /// Program and arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

#[derive(Debug, Args)]
pub struct McpLogin {
    /// Name of the server, or an address
    #[arg(value_name = "NAME|URL")]
    pub target: String,

    /// Do not open a browser: print the address, and take the one that the browser is sent to
    #[arg(long)]
    pub no_browser: bool,

    /// Id that you have registered for sheaf there
    #[arg(long, value_name = "ID")]
    pub client_id: Option<String>,
}

#[derive(Debug, Args)]
pub struct McpTest {
    /// Name of the server, or an address
    #[arg(value_name = "NAME|URL")]
    pub target: String,

    /// Call this tool, too
    #[arg(long, value_name = "TOOL")]
    pub call: Option<String>,

    /// Arguments of the call
    #[arg(long, value_name = "JSON", requires = "call")]
    pub arguments: Option<String>,

    /// Sign in first if the server wants it
    #[arg(long)]
    pub login: bool,

    /// Id that you have registered for sheaf there
    #[arg(long, value_name = "ID", requires = "login")]
    pub client_id: Option<String>,
}

#[derive(Debug, Args)]
pub struct Sessions {
    #[command(subcommand)]
    pub ask: Session,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Subcommand)]
pub enum Session {
    /// List this workspace's conversations, newest first
    List {
        /// Include all workspaces
        #[arg(long)]
        all: bool,

        /// Include archived conversations
        #[arg(long)]
        archived: bool,

        /// Print lines of JSON
        #[arg(long)]
        json: bool,
    },
    /// Search the documents of this workspace's conversations
    #[command(after_help = "Terms; all must match, and a leading `-` negates one:\n  \
                            word, \"two words\"     its text, ignoring case\n  \
                            type:edit             its type: text, reference, code, edit, call, command, plan, question, error, todo; message\n  \
                            path:src/**           its file\n  \
                            exit!=0  exit>1       exit code of a command\n  \
                            state:failed          its state: failed, ok, open, applied, rejected, pending, running, timed_out, …\n  \
                            tool:grep  model:qwen  mode:plan\n  \
                            since:7d  until:2026-11-01\n\nExamples:\n  \
                            sheaf sessions search 'type:command exit!=0 since:7d'\n  \
                            sheaf sessions search --all 'type:edit path:src/** discount'")]
    Search {
        /// Terms, as below
        #[arg(required = true)]
        query: Vec<String>,

        /// Search all workspaces
        #[arg(long)]
        all: bool,

        /// Print lines of JSON with the whole documents
        #[arg(long)]
        json: bool,
    },
    /// Print a conversation as Markdown
    Show {
        /// Id or its beginning, title, or `last`
        session: String,

        /// Print only its branches, one line for each message
        #[arg(long)]
        tree: bool,
    },
    /// Export a conversation to a file
    #[command(after_help = "Examples:\n  sheaf sessions export last -o answer.html\n  \
                            sheaf sessions export last --redact '(?i)acme' --redact '\\b[0-9.]+@[a-z.]+' -o answer.md\n  \
                            sheaf sessions export last --as jsonl | grep document_end\n  \
                            sheaf replay <(sheaf sessions export last --as jsonl) --speed 4")]
    Export {
        /// Id or its beginning, title, or `last`
        session: String,

        /// Format: a web page, Markdown, one object, or one line for each event [default: from the extension of FILE]
        #[arg(long = "as", value_name = "FORM")]
        form: Option<ExportFormatArgument>,

        /// Output file [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,

        /// Include other branches in a page or in Markdown; the other formats always include them
        #[arg(long)]
        all_branches: bool,

        /// Remove matches of a regular expression, beside keys and matches of `export.redact`
        #[arg(long, value_name = "REGEX")]
        redact: Vec<String>,
    },
    /// Import an export (JSON or JSON lines), a saved stream or a response as a new conversation
    Import {
        /// Files to import
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Rename a conversation
    Rename {
        /// Id or its beginning, title, or `last`
        session: String,
        /// New title
        title: String,
    },
    /// Archive conversations: searches find them, lists do not show them
    Archive {
        /// Ids or their beginnings, or titles
        #[arg(required = true)]
        sessions: Vec<String>,
    },
    /// Restore archived conversations
    Unarchive {
        /// Ids or their beginnings, or titles
        #[arg(required = true)]
        sessions: Vec<String>,
    },
    /// Delete conversations and their undo data permanently (asks first)
    Rm {
        /// Ids or their beginnings
        #[arg(required = true)]
        sessions: Vec<String>,

        /// Do not ask; required without a terminal
        #[arg(short, long, alias = "force")]
        yes: bool,
    },
    /// Check the session files; exit with 1 if something is wrong
    Doctor {
        /// Repair damaged files
        #[arg(long)]
        repair: bool,
    },
}

#[derive(Debug, Args)]
pub struct Plugin {
    #[command(subcommand)]
    pub ask: PluginTask,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Subcommand)]
pub enum PluginTask {
    /// Add a plugin: list what it brings, ask, then copy it
    #[command(
        after_help = "Examples:\n  sheaf plugin add https://github.com/owner/plugin --ref v1.2.0\n  \
                            sheaf plugin add https://github.com/owner/many --path plugins/review\n  \
                            sheaf plugin add ./my-plugin"
    )]
    Add {
        /// A folder, or an address of git (https or ssh)
        #[arg(value_name = "FOLDER|URL")]
        source: String,

        /// Branch, tag or commit [default: the repository's default branch]
        #[arg(long = "ref", value_name = "REF")]
        reference: Option<String>,

        /// Folder of the plugin in the repository
        #[arg(long, value_name = "FOLDER")]
        path: Option<String>,

        /// Do not ask; required without a terminal
        #[arg(short, long)]
        yes: bool,
    },
    /// List the plugins and what they bring
    List,
    /// Fetch plugins again, show what is new, and ask
    Update {
        /// Names [default: all]
        names: Vec<String>,

        /// Do not ask; required without a terminal
        #[arg(short, long)]
        yes: bool,
    },
    /// Remove plugins
    #[command(alias = "rm")]
    Remove {
        /// Names
        #[arg(required = true)]
        names: Vec<String>,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ExportFormatArgument {
    Html,
    #[value(alias = "markdown")]
    Md,
    Json,
    Jsonl,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sheaf get 7.3                       from the last conversation in this workspace\n  \
                        sheaf get 01a1f8#7.3 --as patch | git apply"
)]
pub struct Get {
    /// `7.3`, or `SESSION#7.3`
    #[arg(value_name = "ADDRESS")]
    pub address: String,

    /// Output format
    #[arg(long = "as", value_name = "FORM", default_value = "text")]
    pub form: DocumentFormatArgument,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sheaf search where are discounts validated\n  sheaf search --in src/cart \"how is the total rounded\"\n\n\
                  Searches by words; also by meaning if an embedding model is installed:\n\
                  sheaf index model install granite-30m\n\
                  Secret files and files ignored by git or .cursorignore are left out."
)]
pub struct Search {
    /// A question, or words that describe the code
    #[arg(value_name = "QUESTION", required = true)]
    pub question: Vec<String>,

    /// Search this folder or file only; can be repeated
    #[arg(long = "in", value_name = "PATH")]
    pub folders: Vec<String>,

    /// Number of results
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    pub count: Option<u64>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Args)]
pub struct IndexArguments {
    #[command(subcommand)]
    pub ask: IndexTask,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Subcommand)]
pub enum IndexTask {
    /// Show what is indexed in this workspace, by which model, and what is stored
    Status {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Compute vectors for the whole workspace; continues where it stopped
    Build,
    /// Search code by words and by meaning (same as `sheaf search`)
    Search(Search),
    /// Delete all stored vectors, of all workspaces
    Clear,
    /// Manage embedding models on this machine: list, install, remove
    #[command(subcommand)]
    Model(ModelTask),
}

#[derive(Debug, Subcommand)]
pub enum ModelTask {
    /// List the models that are installed, and those that can be installed by name
    List,
    /// Install a model: one of the list, or one of yours
    #[command(after_help = "Examples:\n  sheaf index model install granite-30m\n  \
                            sheaf index model install granite-30m --from ~/Downloads/weights.whl\n  \
                            sheaf index model install potion --from ./potion-code-16M\n\n\
                            A folder holds tokenizer.json and model.onnx, onnx/model.onnx or model.safetensors (model2vec).\n\
                            The model is used at once, unless `roles.embed` names another one.")]
    Install {
        /// Name of the model
        name: String,

        /// Install from this file or folder instead of downloading
        #[arg(long, value_name = "FILE|FOLDER")]
        from: Option<PathBuf>,
    },
    /// Remove an installed model; vectors that it made stay
    #[command(alias = "rm")]
    Remove {
        /// Name of the model
        name: String,
    },
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  sheaf why src/cart.rs:22\n\nCommits made with `C` or /commit have notes. To share them and to read those of others:\n  \
                  git push origin refs/notes/sheaf\n  git fetch origin refs/notes/sheaf:refs/notes/sheaf"
)]
pub struct Why {
    /// File and line number
    #[arg(value_name = "FILE:LINE")]
    pub place: String,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sheaf undo                  the last turn here that changed files\n  \
                        sheaf undo last#7.3         one document\n  \
                        sheaf undo 7 --but src/cart.rs --dry-run"
)]
pub struct Undo {
    /// `7`, `7.3`, `SESSION`, `SESSION#7` or `SESSION#7.3` [default: the last turn of the last conversation here]
    #[arg(value_name = "ADDRESS")]
    pub address: Option<String>,

    /// Exclude this file or folder
    #[arg(long, value_name = "PATH")]
    pub but: Vec<String>,

    /// Overwrite later changes, too
    #[arg(long)]
    pub over: bool,

    /// Only show what would change
    #[arg(long)]
    pub dry_run: bool,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sheaf rewind last#7                     go back to before message 7\n  \
                        sheaf rewind last#7 --only files --dry-run"
)]
pub struct Rewind {
    /// Rewind only files or only the conversation
    #[arg(long, value_name = "WHICH")]
    pub only: Option<RewindPart>,

    #[command(flatten)]
    pub undo: Undo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RewindPart {
    Files,
    Conversation,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DocumentFormatArgument {
    Json,
    #[value(alias = "markdown")]
    Md,
    Text,
    Patch,
}

#[derive(Debug, Subcommand)]
pub enum Setting {
    /// Show the paths of the settings files
    Path,
    /// Print the value of a setting
    Get {
        /// Key such as `ui.output_rows`
        key: String,
    },
    /// Write a setting to your config.toml; without a value, remove it
    Set {
        /// Key such as `ui.output_rows`
        key: String,
        /// Value such as `true`, `60s` or `a,b`
        value: Option<String>,
    },
    /// Show every setting, its value and its origin
    Explain,
    /// Print the reference of all settings
    Reference,
    /// Print the built-in interface texts as a Fluent file, to start a translation from
    #[command(after_help = "Example:\n  sheaf config locale > ~/.config/sheaf/locale/fr.ftl")]
    Locale {
        /// `en`, `de`
        #[arg(default_value = "en")]
        tag: String,
    },
    /// Print the built-in keymap, which your keymap.toml overrides
    Keymap,
    /// Print a built-in theme, to start your own from
    #[command(after_help = "Example:\n  sheaf config theme dracula > ~/.config/sheaf/themes/mine.toml")]
    Theme {
        /// Name of a theme
        #[arg(default_value = "sheaf-dark")]
        name: String,
    },
}

impl CommonArguments {
    /// The command line as a layer of settings.
    pub fn options(&self, whom: &TargetArguments) -> CommandLineSettings {
        CommandLineSettings {
            gateway: whom.gateway.clone(),
            provider: whom.provider.clone(),
            // What other programs say for "whichever".
            model: whom.model.clone().filter(|it| !it.eq_ignore_ascii_case("auto")),
            mode: whom.mode.clone(),
            theme: self.theme.clone(),
            set: self.set.clone(),
            ..CommandLineSettings::default()
        }
    }
}

fn switch(word: &str) -> Result<bool, String> {
    match word {
        "on" | "enabled" => Ok(true),
        "off" | "disabled" => Ok(false),
        _ => Err("use on or off".to_owned()),
    }
}

fn speed(word: &str) -> Result<Speed, String> {
    Speed::parse(word).ok_or_else(|| "use a number such as 2 or 0.5, max, or step".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        let line: Vec<OsString> = std::iter::once("sheaf")
            .chain(line.split_whitespace())
            .map(Into::into)
            .collect();
        Arguments::read(&line)
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::definition().debug_assert();
    }

    #[test]
    fn help_teaches_by_examples() {
        insta::assert_snapshot!(Arguments::definition().render_long_help().to_string());
    }

    #[test]
    fn a_subcommand_beats_a_prompt_of_one_word_and_nothing_else() {
        for (line, prompt) in [
            ("tour", None),
            ("doctor --workspace /tmp", None),
            ("replay x.sse --speed max", None),
            ("-- tour", Some("tour")),
            ("explain tour to me", Some("explain tour to me")),
            ("-p tour", Some("tour")),
            ("", Some("")),
            ("statusx", Some("statusx")),
        ] {
            let arguments = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            let found = arguments.task.is_none().then(|| arguments.prompt.join(" "));
            assert_eq!(found.as_deref(), prompt, "{line}");
        }
    }

    #[test]
    fn help_takes_a_command_and_leaves_prose_alone() {
        for (line, prompt) in [
            ("help", None),
            ("help help", None),
            ("help status", None),
            ("help config set", None),
            ("help me", Some("help me")),
            ("help me with tour", Some("help me with tour")),
            ("help the status bar is broken", Some("help the status bar is broken")),
        ] {
            let found = parse(line).ok().map(|it| it.prompt.join(" "));
            assert_eq!(found.as_deref(), prompt, "{line}");
        }
    }

    #[test]
    fn a_mistyped_command_is_no_prompt() {
        let cases: &[(&[&str], Option<&str>)] = &[
            (&["stauts"], Some("sheaf status")),
            (&["statusx"], Some("sheaf status")),
            (&["doctr"], Some("sheaf doctor")),
            (&["dcotr"], None),
            (&["udo"], Some("sheaf undo")),
            (&["hlep"], Some("sheaf help")),
            (&["sesions", "list", "--all"], Some("sheaf sessions")),
            (&["sesions", "--workspace", "/tmp", "list"], Some("sheaf sessions")),
            (&["modles", "--provider", "ollama"], Some("sheaf models")),
            (&["modles", "--provider=ollama"], Some("sheaf models")),
            (&["stauts", "--json"], Some("sheaf status")),
            (&["help", "stauts"], Some("sheaf help status")),
            (&["help", "status"], None),
            (&["help"], None),
            (&["help", "help"], None),
            (&["help", "me", "with", "this"], None),
            (&["help me"], None),
            (&["confg", "get", "model"], Some("sheaf config")),
            (&["pluginn", "add", "./x"], Some("sheaf plugin")),
            (&["mpc", "add", "time", "--", "uvx", "x"], Some("sheaf mcp")),
            (&["mpc", "add"], Some("sheaf mcp")),
            (&["sesions", "rm", "--yes"], Some("sheaf sessions")),
            (&["serv", "--port", "1"], Some("sheaf serve")),
            (&["helpp", "sessions"], Some("sheaf help")),
            (&["update", "-y"], Some("sheaf --version")),
            (&["confg", "the", "parser"], None),
            (&["mpc", "add", "a", "server", "that", "tells", "the", "time"], None),
            (&["confg", "get", "model", "-p"], None),
            (&["update"], Some("sheaf --version")),
            (&["upgrade"], Some("sheaf --version")),
            (&["version"], Some("sheaf --version")),
            (&["init"], Some("sheaf /init")),
            (&["resume"], Some("sheaf --resume")),
            (&["continue"], Some("sheaf --continue")),
            (&["exec", "--model", "x"], Some("sheaf -p")),
            (&["chat"], Some("sheaf")),
            (&["resume", "the", "migration"], None),
            (&["auth"], Some("sheaf login")),
            (&["logn", "openai"], None),
            (&["logot"], Some("sheaf logout")),
            (&["login"], None),
            (&["status"], None),
            (&["hello"], None),
            (&["explain"], None),
            (&["update", "the", "readme"], None),
            (&["undp", "7.3"], None),
            (&["stauts -v"], None),
            (&["-p", "stauts"], None),
            (&["stauts", "-p"], None),
            (&["--", "stauts"], None),
            (&["stauts", "--"], None),
            (&[], None),
        ];
        for (words, near) in cases {
            let line: Vec<OsString> = ["sheaf"].iter().chain(*words).map(Into::into).collect();
            let found = mistyped(&line);
            let wanted = near.map(|it| format!("did you mean `{it}`?"));
            assert_eq!(found.is_some(), wanted.is_some(), "{words:?}: {found:?}");
            assert!(
                found.zip(wanted).is_none_or(|(found, wanted)| found.contains(&wanted)),
                "{words:?}"
            );
        }
        // A word that is near none.
        let line = ["sheaf", "help", "nosuch"].map(OsString::from);
        let hint = mistyped(&line).expect("a hint");
        assert!(
            hint.contains("`nosuch` is not a command") && hint.contains("sheaf --help"),
            "{hint}"
        );
    }

    #[test]
    fn flags_without_effect_are_not_listed() {
        for (path, flags) in WITHOUT_EFFECT {
            let mut command = Arguments::definition();
            for name in *path {
                command = command.find_subcommand(name).expect("a subcommand").clone();
            }
            let help = command.render_long_help().to_string();
            for flag in *flags {
                assert!(!help.contains(&format!("--{flag} ")), "{path:?} {flag}: {help}");
            }
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for line in [
            "--mode dream",
            "--output-format yaml",
            "replay",
            "replay a b",
            "tour --speed fast",
            "tour --speed -1",
            "-p --max-turns 0 x",
            "-p --continue --resume=a x",
            "--no-such",
            "config",
        ] {
            assert_eq!(parse(line).map_err(|it| it.exit_code()).err(), Some(2), "{line}");
        }
    }
}
