//! The command line: what can be said, and how `--help` teaches it.

use std::{ffi::OsString, path::PathBuf, sync::LazyLock};

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{config::CommandLineSettings, link::replay::Speed, print::Format};

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
  sheaf -p 'what does cart.rs do?'       answer on standard output, without a screen
  git diff | sheaf -p 'review this'      with standard input attached
  sheaf -p --output-format documents …   the answer as one JSON object
  sheaf -p --allow 'Shell(cargo test)' … what it may do unasked, this time
  sheaf -p --continue 'and now?'         go on with the last conversation here
  sheaf --plain                          lines for a screen reader instead of a screen
  sheaf tour                             a recorded conversation that shows everything
  sheaf replay answer.sse --speed 4      play a saved stream or session
  sheaf sessions list                    what was said here; also export, import, rename, rm
  sheaf get 7.3                          one document of the last conversation
  sheaf serve --replay answer.sse        be a gateway for it
  sheaf conform http://127.0.0.1:8643    does a gateway speak the protocol?
  sheaf doctor                           what works here, and what to do about the rest
  sheaf -- status                        a prompt that would be a command

Exit codes:
  0 answered    1 failed     2 wrong usage
  3 there is no sandbox, and a command or --sandbox on needs one
  4 answered, but something was not done because a permission was missing
  130, 143      stopped by a signal

Keys and addresses come from the environment or from the settings, see `sheaf config path`:
  OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL   a model server
  SHEAF_TOKEN                                     a documents gateway";

/// A terminal chat for developers: every answer is a sheaf of documents.
#[derive(Debug, Parser)]
#[command(
    name = "sheaf",
    version = version(),
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct Arguments {
    #[command(subcommand)]
    pub task: Option<Task>,

    /// What to ask; opens the screen and sends it
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

/// What holds for this run only.
#[derive(Clone, Debug, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that is given or not")]
pub struct Run {
    /// Do whatever no rule forbids, without asking; only protected files stay as they are
    #[arg(short, long, alias = "yolo")]
    pub force: bool,

    /// Allow this without asking, as in 'Shell(git push)'
    #[arg(long, value_name = "RULE")]
    pub allow: Vec<String>,

    /// Never do this
    #[arg(long, value_name = "RULE")]
    pub deny: Vec<String>,

    /// The workspace's own rules hold
    #[arg(long)]
    pub trust: bool,

    /// Another folder to work in
    #[arg(long, value_name = "FOLDER")]
    pub add_dir: Vec<PathBuf>,

    /// Send a picture along
    #[arg(long, value_name = "FILE")]
    pub image: Vec<PathBuf>,

    /// Ask the model so often at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_turns: Option<u64>,

    /// The answer is JSON that fits the schema in this file; it is asked for again when it does not
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,

    /// Go on with the last conversation in this workspace
    #[arg(long = "continue", conflicts_with = "resume")]
    pub goes_on: bool,

    /// Go on with this conversation, else with the last one
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    pub resume: Option<String>,

    /// With --continue or --resume: go on with a copy, and leave the conversation as it is
    #[arg(long)]
    pub fork: bool,

    /// Do not keep this conversation
    #[arg(long)]
    pub no_session: bool,

    #[command(flatten)]
    pub end: DisplayArguments,
}

/// How the conversation is shown.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct DisplayArguments {
    /// Lines instead of a screen, for screen readers: nothing is painted, and a line of yours is a message
    #[arg(long)]
    pub plain: bool,

    /// In the terminal's own lines: what has ended stays in them, and only what is open is painted
    #[arg(long, conflicts_with = "plain")]
    pub inline: bool,
}

/// Answers without a screen.
#[derive(Clone, Debug, Default, Args)]
pub struct OutputArguments {
    /// Print the answer to standard output and leave
    #[arg(short, long)]
    pub print: bool,

    /// What to print: the text as it comes; its end as one object (json) or all of it as lines (stream-json), both as
    /// Cursor's command line does; the whole answer (documents); every event on a line (events)
    #[arg(long, value_name = "FORMAT", default_value = "text", hide_possible_values = true)]
    pub output_format: OutputFormat,

    /// With stream-json: pieces of text as they come
    #[arg(long)]
    pub stream_partial_output: bool,

    /// With stream-json: what the model thinks
    #[arg(long)]
    pub include_thinking: bool,
}

impl OutputArguments {
    /// Why the options do not go together.
    pub fn problem(&self) -> Option<&'static str> {
        let is_stream = self.output_format == OutputFormat::StreamJson;
        if self.stream_partial_output && !is_stream {
            return Some("--stream-partial-output is for --output-format stream-json");
        }
        if self.include_thinking && !is_stream {
            return Some("--include-thinking is for --output-format stream-json");
        }
        None
    }
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

/// Whom to talk to, and how.
#[derive(Clone, Debug, Default, Args)]
pub struct TargetArguments {
    /// Talk to the documents gateway at this address
    #[arg(long, value_name = "URL")]
    pub gateway: Option<String>,

    /// Talk to this model server: openai, ollama, … or one from the settings
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,

    /// The model that answers
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,

    /// How the agent works
    #[arg(long, value_parser = ["agent", "plan", "ask", "debug"])]
    pub mode: Option<String>,
}

/// What every task understands.
#[derive(Clone, Debug, Default, Args)]
pub struct CommonArguments {
    /// The folder to work in, else the repository around this one
    #[arg(long, value_name = "FOLDER")]
    pub workspace: Option<PathBuf>,

    /// The colours: auto, or the name of a theme
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,

    /// Any setting, as in `--set ui.output_rows=40`
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Write what happens inside to this file
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,

    /// `off` runs commands without the sandbox: each one asks; `on` does nothing at all where there is none
    #[arg(long, value_name = "on|off", value_parser = switch)]
    pub sandbox: Option<bool>,
}

#[derive(Debug, Subcommand)]
pub enum Task {
    /// Play a saved stream, response or session
    Replay(Replay),
    /// Be a documents gateway for whatever this sheaf talks to
    Serve(Serve),
    /// Hold a gateway or a recorded answer against the documents protocol
    Conform(Conform),
    /// A recorded conversation that shows everything
    Tour(Tour),
    /// Look at terminal, keys, network and model, and say what to do
    Doctor(Doctor),
    /// Settings: where they are, what holds, what there is
    Config(Config),
    /// Begin a conversation and print its id, for --resume
    CreateChat(Asking),
    /// Whom sheaf would talk to
    Status(Asking),
    /// The models that one may choose
    Models(Asking),
    /// The conversations that are kept: list, read, export, import, rename, remove
    Sessions(Sessions),
    /// One document of a kept conversation, by its address
    Get(Get),
    /// Who wrote a line: the document, the words and the model that brought it
    Why(Why),
    /// Take back what a turn or a document did to files
    Undo(Undo),
    /// Do again what was taken back
    Redo(Undo),
    /// Go back to before a message: files, conversation or both
    Rewind(Rewind),
    /// What the kernel holds around commands, and anything inside of it
    Sandbox(Sandbox),
    /// What a shell needs to complete sheaf's commands and options
    #[command(
        hide = true,
        after_help = "Examples:\n  sheaf completions bash > ~/.local/share/bash-completion/completions/sheaf\n  \
                      sheaf completions zsh > ~/.zfunc/_sheaf\n  \
                      sheaf completions fish > ~/.config/fish/completions/sheaf.fish"
    )]
    Completions {
        /// The shell that reads it
        shell: clap_complete::Shell,
    },
    /// The page for man(1)
    #[command(hide = true, after_help = "Example:\n  sheaf man > ~/.local/share/man/man1/sheaf.1")]
    Man,
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

    /// Do not show it: does it end with the same documents as this one? 1 says no, and what is different
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

#[derive(Clone, Copy, Debug, Args)]
pub struct Pace {
    /// Times the recorded pace; 0 or max is at once; step shows a document with each Enter
    #[arg(long, value_name = "N", default_value = "1", value_parser = speed)]
    pub speed: Speed,
}

#[derive(Debug, Args)]
pub struct Serve {
    /// Address and port, else 127.0.0.1:8643
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,

    /// Serve this recording instead
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,

    #[command(flatten)]
    pub pace: Pace,

    /// What clients can have done: reading files, or all that the agent can do, with commands in the sandbox
    #[arg(long, value_name = "WHICH", value_parser = ["reading", "all"])]
    pub tools: Option<String>,

    /// Keep conversations: clients send new messages only, and can come back to an answer
    #[arg(long)]
    pub stateful: bool,

    /// A name under which requests may ask for this server, beside localhost
    #[arg(long, value_name = "NAME")]
    pub allow_host: Vec<String>,

    /// The origin of a web page that may call
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<String>,

    #[command(flatten)]
    pub whom: TargetArguments,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Args)]
pub struct Conform {
    /// The address of a gateway, or a file with an event stream or an object, also as `curl -i` writes it; `-` is
    /// standard input
    #[arg(value_name = "URL|FILE")]
    pub target: Option<String>,

    /// The findings for a person (text) or for a program (json)
    #[arg(long, value_name = "FORMAT", default_value = "text", hide_possible_values = true)]
    pub output_format: ReportFormat,

    /// Warnings are errors
    #[arg(long)]
    pub strict: bool,

    /// What a gateway is asked
    #[arg(long, value_name = "TEXT")]
    pub message: Option<String>,

    /// Ask for this dialect only
    #[arg(long, value_parser = ["a", "b"])]
    pub dialect: Option<String>,

    /// The model that the gateway is asked for
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,

    /// The mode that the gateway is asked in, else ask, which changes nothing
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
    /// Not the recording: the real agent at work in a throw-away project, with a script for a model
    #[arg(long)]
    pub live: bool,

    #[command(flatten)]
    pub pace: Pace,

    #[command(flatten)]
    pub printing: OutputArguments,

    #[command(flatten)]
    pub end: DisplayArguments,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Args)]
pub struct Doctor {
    /// As JSON, for programs
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub whom: TargetArguments,

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
    /// Each layer, and why one is missing
    Explain {
        #[command(flatten)]
        common: CommonArguments,
    },
    /// Runs a command as one of a model's would run; ends with its exit code, or with 3 where there is no sandbox
    Run {
        /// Let it reach the network
        #[arg(long)]
        network: bool,

        /// Let it change what git keeps
        #[arg(long)]
        git_write: bool,

        /// Where the sandbox is partial: let it write the whole workspace, and put back what is protected
        #[arg(long)]
        guard: bool,

        #[command(flatten)]
        common: CommonArguments,

        /// The command and its arguments
        #[arg(required = true, last = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
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
    /// Those of this workspace, the last one first
    List {
        /// Those of all workspaces
        #[arg(long)]
        all: bool,

        /// Those that are archived, too
        #[arg(long)]
        archived: bool,

        /// As lines of JSON
        #[arg(long)]
        json: bool,
    },
    /// Documents that fit, in all conversations of this workspace
    #[command(
        after_help = "Terms, of which all have to hold, and `-` in front turns one round:\n  \
                            word, \"two words\"     what is said in it, whatever the case\n  \
                            type:edit             its kind: text, reference, code, edit, call, command, plan, question, error, todo; message\n  \
                            path:src/**           the file that it is about\n  \
                            exit!=0  exit>1       how a command ended\n  \
                            state:failed          failed, ok, open, applied, rejected, pending, running, timed_out, …\n  \
                            tool:grep  model:qwen  mode:plan\n  \
                            since:7d  until:2026-11-01\n\nExamples:\n  \
                            sheaf sessions search 'type:command exit!=0 since:7d'\n  \
                            sheaf sessions search --all 'type:edit path:src/** discount'"
    )]
    Search {
        #[arg(required = true)]
        query: Vec<String>,

        /// In those of all workspaces
        #[arg(long)]
        all: bool,

        /// As lines of JSON, with the whole documents
        #[arg(long)]
        json: bool,
    },
    /// The whole conversation as Markdown
    Show {
        /// Its id, the beginning of it, its title, or `last`
        session: String,

        /// Its branches only: a line for each message
        #[arg(long)]
        tree: bool,
    },
    /// The whole conversation as a file
    #[command(after_help = "Examples:\n  sheaf sessions export last -o answer.html\n  \
                            sheaf sessions export last --redact '(?i)acme' --redact '\\b[0-9.]+@[a-z.]+' -o answer.md\n  \
                            sheaf sessions export last --as jsonl | grep document_end\n  \
                            sheaf replay <(sheaf sessions export last --as jsonl) --speed 4")]
    Export {
        /// Its id, the beginning of it, its title, or `last`
        session: String,

        /// One page for a browser, Markdown, one object, or a line for each event; else what FILE ends with
        #[arg(long = "as", value_name = "FORM")]
        form: Option<ExportFormatArgument>,

        /// Where to, else standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,

        /// What is on other branches, too, in a page or as Markdown; the other forms always have it
        #[arg(long)]
        all_branches: bool,

        /// A regular expression of what must not be in it, beside keys and what `export.redact` names
        #[arg(long, value_name = "REGEX")]
        redact: Vec<String>,
    },
    /// Keeps what was exported as JSON or JSON lines, a saved stream or a response, as a new conversation
    Import {
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Gives it another title
    Rename {
        /// Its id, the beginning of it, its title, or `last`
        session: String,
        title: String,
    },
    /// Puts conversations out of the way: they are found, and not listed
    Archive {
        /// An id each, the beginning of it, or its title
        #[arg(required = true)]
        sessions: Vec<String>,
    },
    /// Lists them again
    Unarchive {
        /// An id each, the beginning of it, or its title
        #[arg(required = true)]
        sessions: Vec<String>,
    },
    /// Removes conversations for good, with what is kept to take back what they did; asks first
    Rm {
        /// An id each, or the beginning of it
        #[arg(required = true)]
        sessions: Vec<String>,

        /// Without asking; needed where nobody can be asked
        #[arg(short, long, alias = "force")]
        yes: bool,
    },
    /// Looks at every file of the conversations and says what is wrong; 1 when something is
    Doctor {
        /// Does what can be done about it
        #[arg(long)]
        repair: bool,
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
    after_help = "Examples:\n  sheaf get 7.3                       of the last conversation in this workspace\n  \
                        sheaf get 01a1f8#7.3 --as patch | git apply"
)]
pub struct Get {
    /// `7.3`, or `SESSION#7.3`
    #[arg(value_name = "ADDRESS")]
    pub address: String,

    /// What to make of it
    #[arg(long = "as", value_name = "FORM", default_value = "text")]
    pub form: DocumentFormatArgument,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sheaf why src/cart.rs:22")]
pub struct Why {
    /// A file and the number of a line in it
    #[arg(value_name = "FILE:LINE")]
    pub place: String,

    /// As one JSON object
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sheaf undo                  the last turn here that changed files\n  \
                        sheaf undo last#7.3         what one document did\n  \
                        sheaf undo 7 --but src/cart.rs --dry-run"
)]
pub struct Undo {
    /// `7`, `7.3`, `SESSION`, `SESSION#7` or `SESSION#7.3`; else the last turn of the last conversation here
    #[arg(value_name = "ADDRESS")]
    pub address: Option<String>,

    /// Leave this file, or folder, as it is
    #[arg(long, value_name = "PATH")]
    pub but: Vec<String>,

    /// Take back what was changed since, too
    #[arg(long)]
    pub over: bool,

    /// Only say what would become of files
    #[arg(long)]
    pub dry_run: bool,

    #[command(flatten)]
    pub common: CommonArguments,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sheaf rewind last#7                     files and conversation as before message 7\n  \
                        sheaf rewind last#7 --only files --dry-run"
)]
pub struct Rewind {
    /// One of the two only
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
    /// Where the files lie
    Path,
    /// The value of one setting
    Get {
        /// As in `ui.output_rows`
        key: String,
    },
    /// Writes one setting into your own file; without a value, takes it out
    Set {
        /// As in `ui.output_rows`
        key: String,
        /// As a variable would hold it: `true`, `60s`, `a,b`
        value: Option<String>,
    },
    /// Every setting, its value and where it comes from
    Explain,
    /// Every setting there is
    Reference,
    /// What the interface says, as a Fluent file that is built in: what a translation begins with
    #[command(after_help = "Example:\n  sheaf config locale > ~/.config/sheaf/locale/fr.ftl")]
    Locale {
        /// `en`, `de`
        #[arg(default_value = "en")]
        tag: String,
    },
    /// The keys that are built in: what a keymap.toml of your own is read over
    Keymap,
    /// The colours of a theme that is built in: what one of your own begins with
    #[command(after_help = "Example:\n  sheaf config theme dracula > ~/.config/sheaf/themes/mine.toml")]
    Theme {
        /// As in `ui.theme`
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
        _ => Err("it is on or off".to_owned()),
    }
}

fn speed(word: &str) -> Result<Speed, String> {
    Speed::parse(word).ok_or_else(|| "a speed is a number such as 2 or 0.5, max, or step".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once("sheaf").chain(line.split_whitespace()))
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn help_teaches_by_examples() {
        insta::assert_snapshot!(Arguments::command().render_long_help().to_string());
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
