//! One rule of an approval list: `Shell(git push)`, `Read(docs/**)`, `Write(*.md)`, `Delete(build/**)`,
//! `WebFetch(*.example.com)`, `WebSearch(*)`, `Mcp(server:tool)`. `Shell(git push) with network` also gives the command the network.
//!
//! A rule that allows is read narrowly and one that forbids or asks is read widely: letters of either case, and all that lies
//! below a folder. A shell rule is a prefix of *words*, never of characters; the other program's form, `Shell(curl:*)`, is
//! read too. What a person wrote wrong is answered with the nearest form that is right.

use std::{fmt, path::Path};

use globset::{GlobBuilder, GlobMatcher};

use crate::{
    config::nearest,
    sandbox::{Located, Place},
    shell::{
        CommandLine, Doubt, ShellWord, SimpleCommand,
        programs::{self, host_of},
    },
    tools::built_in,
};

/// An approval rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    Shell(Shell),
    Read(Files),
    Write(Files),
    Delete(Files),
    Fetch(Hosts),
    Search,
    Mcp {
        /// May hold `*`.
        server: String,
        /// May hold `*`.
        tool: String,
    },
}

/// Commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shell {
    pub form: Form,
    /// A rule that allows also gives what the command needs of the network. It says nothing in one that forbids or asks.
    pub has_network: bool,
}

/// The commands that a rule means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// The words that a command begins with. Never empty.
    Words(Vec<String>),
    /// `curl:*`: a program, and what its arguments look like, a blank between them.
    Arguments { program: String, like: String },
}

/// Paths that look like something.
#[derive(Clone, Debug)]
pub struct Files {
    /// As it was written.
    text: String,
    narrow: Vec<GlobMatcher>,
    wide: Vec<GlobMatcher>,
    is_absolute: bool,
}

impl PartialEq for Files {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Files {}

/// Names of servers, in lower case and as the network has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    All,
    One(String),
    /// `*.example.com`: everything below a name, not the name itself.
    Below(String),
}

/// Why a text is no rule, and what was probably meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid rule `{text}`: {why}{}", .meant.as_ref().map(|it| format!("\n  did you mean `{it}`?")).unwrap_or_default())]
pub struct Malformed {
    pub text: String,
    pub why: String,
    /// A rule that can be read.
    pub meant: Option<String>,
}

/// Nobody writes a longer one by hand.
const LIMIT_BYTES: usize = 1000;

const KINDS: [&str; 7] = ["Shell", "Read", "Write", "Delete", "WebFetch", "WebSearch", "Mcp"];

/// What follows a rule whose commands may use the network.
const WITH_NETWORK: &str = " with network";

impl Rule {
    /// Reads a rule. `home` is what `~` stands for.
    pub fn parse(text: &str, home: Option<&Path>) -> Result<Self, Malformed> {
        let text = text.trim();
        let wrong = |why: &str, meant: Option<String>| Malformed {
            text: text.to_owned(),
            why: why.to_owned(),
            // What is proposed is a rule, whatever was written.
            meant: meant
                .filter(|it| it != text)
                .and_then(|it| match Self::parse(&it, home) {
                    Ok(_) => Some(it),
                    Err(malformed) => malformed.meant,
                }),
        };
        if text.len() > LIMIT_BYTES {
            return Err(Malformed {
                text: text.chars().take(40).collect::<String>() + "…",
                why: "it is too long".to_owned(),
                meant: None,
            });
        }
        if let Some(bare) = text.strip_suffix(WITH_NETWORK) {
            return match Self::parse(bare, home) {
                Ok(Self::Shell(shell)) => Ok(Self::Shell(Shell {
                    has_network: true,
                    ..shell
                })),
                Ok(rule) => Err(wrong("only a command uses the network", Some(rule.to_string()))),
                Err(malformed) => Err(wrong(
                    &malformed.why,
                    malformed.meant.map(|it| format!("{it}{WITH_NETWORK}")),
                )),
            };
        }
        let form = "write a kind and, in parentheses, its subject";
        let Some((kind, rest)) = text.split_once('(') else {
            return Err(wrong(form, bare(text)));
        };
        let Some(inner) = rest.strip_suffix(')') else {
            let meant = (!rest.contains(')')).then(|| format!("{}({})", kind.trim(), rest.trim()));
            return Err(wrong("the closing parenthesis is missing at its end", meant));
        };
        let inner = inner.trim();
        if !KINDS.contains(&kind) {
            let meant = kind_meant(kind.trim()).map(|it| format!("{it}({inner})"));
            return Err(wrong(&format!("unknown kind `{kind}`"), meant));
        }
        if text.chars().any(char::is_control) {
            return Err(wrong("it has a control character", None));
        }
        match kind {
            "Shell" => Shell::parse(inner).map(Self::Shell),
            "Read" => Files::parse(inner, home).map(Self::Read),
            "Write" => Files::parse(inner, home).map(Self::Write),
            "Delete" => Files::parse(inner, home).map(Self::Delete),
            "WebFetch" => Hosts::parse(inner).map(Self::Fetch),
            "WebSearch" if matches!(inner, "" | "*") => Ok(Self::Search),
            "WebSearch" => Err(("it applies to every search".to_owned(), Some("*".to_owned()))),
            _ => parse_mcp(inner),
        }
        .map_err(|(why, inner)| wrong(&why, inner.map(|it| format!("{kind}({it})"))))
    }

    /// Why a list of what is allowed had better not hold it: it names what no rule allows.
    pub(super) fn is_useless(&self) -> Option<String> {
        let Self::Shell(shell) = self else {
            return None;
        };
        let text = match &shell.form {
            Form::Words(words) => words.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(" "),
            Form::Arguments { program, .. } => quoted(program),
        };
        let line = CommandLine::read(&text);
        let of_program = |it: &&Doubt| matches!(it, Doubt::Wrapper | Doubt::Builtin | Doubt::Keyword);
        if let Some(doubt) = line.doubts.iter().find(of_program) {
            return Some(doubt.to_string());
        }
        let needs_more =
            shell.len() < 2 && matches!(shell.form, Form::Words(_)) && programs::wants_second_word(shell.program());
        needs_more.then(|| "it runs any code; name the script too".to_owned())
    }

    /// The rule that a folder and all below it may be read.
    pub fn read_below(folder: &Path) -> Option<Self> {
        let text = format!("{}/**", globset::escape(folder.to_str()?.trim_end_matches('/')));
        Files::parse(&text, None).ok().map(Self::Read)
    }

    /// The rule that exactly this file may be read.
    pub(super) fn read_file(file: &Path) -> Option<Self> {
        Files::parse(&globset::escape(file.to_str()?), None)
            .ok()
            .map(Self::Read)
    }

    /// The rule that exactly this file may be changed.
    pub(super) fn write_file(file: &str) -> Option<Self> {
        Self::exactly(file).map(Self::Write)
    }

    /// The rule that exactly this file may be deleted.
    pub(super) fn delete_file(file: &str) -> Option<Self> {
        Self::exactly(file).map(Self::Delete)
    }

    fn exactly(file: &str) -> Option<Files> {
        let text = if file.contains('/') {
            globset::escape(file)
        } else {
            // Without the dot it would mean the files of this name in every folder.
            format!("./{}", globset::escape(file))
        };
        Files::parse(&text, None).ok()
    }
}

/// The rule that was probably meant by a text without parentheses.
fn bare(text: &str) -> Option<String> {
    if let Some(rest) = text.strip_prefix("mcp__") {
        let (server, tool) = rest.split_once("__").unwrap_or((rest, "*"));
        return Some(format!("Mcp({server}:{tool})"));
    }
    if let Some((kind, inner)) = text.split_once(' ')
        && let Some(kind) = called(kind)
    {
        return Some(format!("{kind}({})", inner.trim()));
    }
    match kind_meant(text) {
        Some("Shell") => Some("Shell(git status)".to_owned()),
        Some("Read" | "Write" | "Delete") => Some(format!("{}(**)", kind_meant(text)?)),
        Some("WebFetch") => Some("WebFetch(example.com)".to_owned()),
        Some("WebSearch") => Some("WebSearch(*)".to_owned()),
        Some(_) => Some("Mcp(server:tool)".to_owned()),
        // Most people who forget the kind mean a command.
        None => Some(format!("Shell({text})")),
    }
}

/// The kind that goes by this name, here or elsewhere.
fn called(kind: &str) -> Option<&'static str> {
    let mut rules = built_in().iter().filter_map(|it| it.rule);
    let meant = rules.find(|(_, names)| names.iter().any(|it| it.eq_ignore_ascii_case(kind)));
    meant
        .map(|it| it.0)
        .or_else(|| KINDS.into_iter().find(|it| it.eq_ignore_ascii_case(kind)))
}

fn kind_meant(kind: &str) -> Option<&'static str> {
    called(kind).or_else(|| {
        let found = nearest(kind, KINDS)?;
        KINDS.into_iter().find(|it| *it == found)
    })
}

/// Why the part in the parentheses is wrong, and the part that would be right.
type Wrong = (String, Option<String>);

impl Shell {
    fn parse(inner: &str) -> Result<Self, Wrong> {
        if inner.is_empty() {
            return Err(("it names no command".to_owned(), Some("git status".to_owned())));
        }
        let (first, _) = inner.split_once(' ').unwrap_or((inner, ""));
        // In quotes a colon is a colon.
        if let Some((program, _)) = first.split_once(':')
            && !first.starts_with(['\'', '"'])
        {
            let like = inner.get(program.len() + 1..).unwrap_or_default().trim();
            if program.is_empty() || program.contains(['*', '?', '\'', '"', '\\']) {
                return Err(("it names no program before the colon".to_owned(), None));
            }
            return Ok(match like {
                "" | "*" => Self::words(vec![program.to_owned()]),
                like => Self::of(Form::Arguments {
                    program: program.to_owned(),
                    like: like.to_owned(),
                }),
            });
        }
        let first_part = |at: usize| inner.get(..at).map(|it| it.trim().to_owned());
        if let Some(at) = operator(inner) {
            let why = "it is one command, without operators, substitutions and redirections";
            return Err((why.to_owned(), first_part(at)));
        }
        let words = words(inner).ok_or_else(|| ("a quote in it is not closed".to_owned(), None))?;
        if let Some(last) = words.last()
            && words.len() > 1
            && (last == "*" || last.ends_with(":*"))
        {
            let why = "it is the beginning of a command; what follows may be anything";
            let cut = inner.trim_end_matches('*').trim_end_matches(':').trim();
            return Err((why.to_owned(), Some(cut.to_owned())));
        }
        if words.first().is_some_and(|it| it.contains(['*', '?'])) {
            return Err(("it names its program in full".to_owned(), None));
        }
        Ok(Self::words(words))
    }

    /// A rule without the network.
    const fn of(form: Form) -> Self {
        Self {
            form,
            has_network: false,
        }
    }

    /// The rule for commands that begin with these words.
    pub const fn words(words: Vec<String>) -> Self {
        Self::of(Form::Words(words))
    }

    /// Returns true if a command has these words; a word that is no plain text is `None`.
    pub fn holds(&self, command: &[Option<&str>]) -> bool {
        match &self.form {
            Form::Words(words) => {
                command.len() >= words.len() && words.iter().zip(command).all(|(word, it)| *it == Some(word.as_str()))
            }
            Form::Arguments { program, like } => {
                let Some((first, rest)) = command.split_first() else {
                    return false;
                };
                let rest: Option<Vec<&str>> = rest.iter().copied().collect();
                *first == Some(program.as_str()) && rest.is_some_and(|it| is_like(&it.join(" "), like))
            }
        }
    }

    /// Returns true if a rule that allows holds for the command: its words are the first, and no option after them undoes
    /// what it means.
    pub fn allows(&self, command: &SimpleCommand) -> bool {
        let program = self.program();
        self.holds(&command.texts())
            && !(self.len() < 2 && matches!(self.form, Form::Words(_)) && programs::wants_second_word(program))
            && !programs::has_loose_option(command, self.len())
    }

    /// Returns true if a rule that forbids or asks may hold for the command: under another path, in other letters, behind a
    /// wrapper.
    pub fn catches(&self, command: &SimpleCommand) -> bool {
        let program = programs::base(self.program());
        let runs_others = programs::runs_others(command);
        let is_wrapper = runs_others || programs::runs_its_arguments(command);
        let is_named = (0..command.words.len()).any(|at| {
            let is_program = |it: &ShellWord| it.text.as_deref().is_some_and(|it| programs::base(it) == program);
            let rest = command.words.get(at..).unwrap_or_default();
            // An argument of a plain program is no program.
            if at > 0 && !is_wrapper || !rest.first().is_some_and(is_program) {
                return false;
            }
            let mut texts: Vec<Option<&str>> = rest.iter().map(|it| it.text.as_deref()).collect();
            if let Some(first) = texts.first_mut() {
                *first = Some(self.program());
            }
            // Options before the subcommand do not make it another one: `git -C x push`.
            let is_option = |it: Option<&str>| it.is_some_and(|it| it.starts_with('-'));
            let plain: Vec<Option<&str>> = texts.iter().copied().filter(|it| !is_option(*it)).collect();
            self.holds(&texts) || self.holds(&plain) || holds_later(self, &texts)
        });
        is_named || (runs_others && self.is_in(&programs::inner_words(command)))
    }

    /// Returns true if the command of the rule is somewhere in these words.
    fn is_in(&self, words: &[&str]) -> bool {
        let program = programs::base(self.program());
        (0..words.len()).any(|at| {
            let mut texts: Vec<Option<&str>> = words.iter().skip(at).copied().map(Some).collect();
            match texts.first_mut() {
                Some(first) if first.is_some_and(|it| programs::base(it) == program) => *first = Some(self.program()),
                Some(_) | None => return false,
            }
            self.holds(&texts) || holds_later(self, &texts)
        })
    }

    /// Number of words of a command that the rule names: options after them are not covered.
    fn len(&self) -> usize {
        match &self.form {
            Form::Words(words) => words.len(),
            Form::Arguments { .. } => 1,
        }
    }

    /// The first word: the program.
    pub fn program(&self) -> &str {
        match &self.form {
            Form::Words(words) => words.first().map(String::as_str).unwrap_or_default(),
            Form::Arguments { program, .. } => program,
        }
    }
}

/// Returns true if the second word of a rule comes after options with values of their own: `git -C folder push`.
fn holds_later(rule: &Shell, texts: &[Option<&str>]) -> bool {
    let Form::Words(words) = &rule.form else {
        return false;
    };
    let Some((_, rest)) = words.split_first().filter(|(_, rest)| !rest.is_empty()) else {
        return false;
    };
    let has_options = texts.get(1).is_some_and(|it| it.is_none_or(|it| it.starts_with('-')));
    has_options
        && texts
            .windows(rest.len())
            .any(|window| window.iter().zip(rest).all(|(it, word)| *it == Some(word.as_str())))
}

/// The offset of the first shell operator outside quotes; `None`: there are only words.
fn operator(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut rest = text.char_indices();
    while let Some((at, it)) = rest.next() {
        match (quote, it) {
            (Some(open), _) if it == open => quote = None,
            (None, '\'' | '"') => quote = Some(it),
            (None | Some('"'), '\\') => {
                rest.next();
            }
            (None | Some('"'), '`' | '$') | (None, '|' | '&' | ';' | '<' | '>') => return Some(at),
            (Some(_) | None, _) => {}
        }
    }
    None
}

/// The words of a text in which quotes and backslashes mean what they mean to a shell.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text.chars();
    while let Some(it) = rest.next() {
        match it {
            ' ' | '\t' => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        end if end == it => break,
                        '\\' if it == '"' => word.push(rest.next()?),
                        inside => word.push(inside),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(rest.next()?),
            it => word.get_or_insert_default().push(it),
        }
    }
    words.extend(word);
    Some(words)
}

/// A word as [`words`] reads it back.
fn quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_alphanumeric() || "-_./+@%,=:*?~#!^[]{}".contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns true if `text` matches `pattern`, in which `*` matches anything. Linear time.
fn is_like(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|it| text.strip_prefix(it)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        // The earliest place leaves the most for what follows.
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    true
}

impl Files {
    fn parse(inner: &str, home: Option<&Path>) -> Result<Self, Wrong> {
        if inner.is_empty() {
            return Err(("it names no file".to_owned(), Some("**".to_owned())));
        }
        let bare = inner.strip_prefix("file://").unwrap_or(inner);
        if bare != inner {
            return Err(("it is a path, not an address".to_owned(), Some(bare.to_owned())));
        }
        if bare.split('/').any(|it| it == "..") {
            return Err(("`..` is never found in a path that has been resolved".to_owned(), None));
        }
        let full = match bare.strip_prefix("~/") {
            Some(rest) => {
                let Some(home) = home.and_then(Path::to_str) else {
                    return Err(("nobody knows what `~` stands for here".to_owned(), None));
                };
                format!("{}/{rest}", globset::escape(home.trim_end_matches('/')))
            }
            None if bare.starts_with('~') => {
                let meant = bare.trim_start_matches('~').trim_start_matches('/');
                return Err((
                    "`~` stands for your own home, before a slash".to_owned(),
                    Some(format!("~/{meant}")),
                ));
            }
            None => bare.to_owned(),
        };
        let is_absolute = full.starts_with('/');
        let is_anywhere = !full.trim_end_matches('/').contains('/');
        let mut path = full.trim_start_matches("./").to_owned();
        let is_folder = path.ends_with('/') && path.len() > 1;
        if is_folder {
            path.truncate(path.trim_end_matches('/').len());
        }
        if is_anywhere && path != "**" {
            path = format!("**/{path}");
        }
        let below = format!("{}/**", path.trim_end_matches('/'));
        let itself = path.strip_suffix("/**").filter(|it| !it.is_empty()).map(str::to_owned);
        let mut narrow: Vec<_> = itself.into_iter().chain([path.clone()]).collect();
        if is_folder {
            narrow.push(below.clone());
        }
        let wide: Vec<_> = narrow.iter().cloned().chain([below]).collect();
        let build = |patterns: &[String], ignore_case: bool| -> Result<Vec<GlobMatcher>, Wrong> {
            let one = |it: &String| {
                GlobBuilder::new(it)
                    .literal_separator(true)
                    .backslash_escape(true)
                    .case_insensitive(ignore_case)
                    .build()
                    .map(|it| it.compile_matcher())
                    .map_err(|it| (it.kind().to_string(), Some(globset::escape(inner))))
            };
            patterns.iter().map(one).collect()
        };
        Ok(Self {
            text: inner.to_owned(),
            narrow: build(&narrow, false)?,
            wide: build(&wide, true)?,
            is_absolute,
        })
    }

    /// Returns true if the rule names exactly this path: for rules that allow.
    pub fn hold(&self, file: &Located) -> bool {
        self.any(&self.narrow, file)
    }

    /// Returns true if the rule names this path or a folder above it: for rules that ask or deny.
    pub fn touch(&self, file: &Located) -> bool {
        self.any(&self.wide, file)
    }

    /// Returns true if the rule names a path that is relative to the workspace, or absolute.
    pub(super) fn is_example(&self, path: &str, is_allow: bool) -> bool {
        let located = Located {
            path: Path::new(path).to_owned(),
            shown: path.trim_start_matches("./").to_owned(),
            place: Place::Inside,
            is_protected: false,
            is_folder: false,
        };
        if is_allow {
            self.hold(&located)
        } else {
            self.touch(&located)
        }
    }

    fn any(&self, globs: &[GlobMatcher], file: &Located) -> bool {
        if self.is_absolute {
            return globs.iter().any(|it| it.is_match(&file.path));
        }
        let shown = Path::new(&file.shown);
        shown.is_relative() && globs.iter().any(|it| it.is_match(shown))
    }
}

impl Hosts {
    fn parse(inner: &str) -> Result<Self, Wrong> {
        if inner.is_empty() {
            return Err(("it names no host".to_owned(), Some("example.com".to_owned())));
        }
        if inner == "*" {
            return Ok(Self::All);
        }
        if inner.contains("://") {
            let host = url::Url::parse(inner)
                .ok()
                .and_then(|it| it.host_str().map(str::to_owned));
            return Err(("it is a host, not an address".to_owned(), host));
        }
        if let Some(host) = inner.strip_prefix("domain:") {
            return Err(("the host stands alone".to_owned(), Some(host.trim().to_owned())));
        }
        if let Some((host, _)) = inner.split_once('/') {
            return Err(("it is a host, without a path".to_owned(), Some(host.to_owned())));
        }
        let (below, name) = match inner.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, inner),
        };
        if name.contains('*') {
            let why = "a `*` stands for whole labels at the front only: part of a name could be anybody's";
            let tail = name.rsplit_once('*').map(|it| it.1.trim_start_matches(['.', '-']));
            return Err((
                why.to_owned(),
                tail.filter(|it| it.contains('.')).map(|it| format!("*.{it}")),
            ));
        }
        if let Some((host, port)) = name.rsplit_once(':')
            && !host.contains(':')
            && port.bytes().all(|it| it.is_ascii_digit())
        {
            return Err(("it is a host, without a port".to_owned(), Some(host.to_owned())));
        }
        let Some(name) = host_of(name) else {
            return Err((format!("`{name}` is not the name of a host"), None));
        };
        Ok(if below { Self::Below(name) } else { Self::One(name) })
    }

    /// Returns true if `host` is one of them.
    pub fn hold(&self, host: &str) -> bool {
        match self {
            Self::All => true,
            Self::One(name) => host_of(host).is_some_and(|it| it == *name),
            Self::Below(name) => host_of(host).is_some_and(|it| {
                it.strip_suffix(name.as_str())
                    .and_then(|it| it.strip_suffix('.'))
                    .is_some_and(|it| !it.is_empty())
            }),
        }
    }
}

fn parse_mcp(inner: &str) -> Result<Rule, Wrong> {
    let is_name = |it: &str| !it.is_empty() && !it.contains([':', '(', ')']) && !it.contains(char::is_whitespace);
    match inner.split_once(':') {
        Some((server, tool)) if is_name(server.trim()) && is_name(tool.trim()) => Ok(Rule::Mcp {
            server: server.trim().to_owned(),
            tool: tool.trim().to_owned(),
        }),
        Some((server, "")) => Err(("it names no tool".to_owned(), Some(format!("{server}:*")))),
        Some(_) => Err(("it is a server and a tool with a colon between".to_owned(), None)),
        None => {
            let meant = match inner.split_once("__").or_else(|| inner.split_once('/')) {
                Some((server, tool)) => format!("{server}:{tool}"),
                None if inner.is_empty() => "server:*".to_owned(),
                None => format!("{inner}:*"),
            };
            Err(("it is a server and a tool with a colon between".to_owned(), Some(meant)))
        }
    }
}

/// Returns true if a rule names this tool of a server.
pub(super) fn is_tool(rule: (&str, &str), server: &str, tool: &str) -> bool {
    is_like(server, rule.0) && is_like(tool, rule.1)
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shell(shell) => {
                write!(f, "{shell}")?;
                f.write_str(if shell.has_network { WITH_NETWORK } else { "" })
            }
            Self::Read(files) => write!(f, "Read({})", files.text),
            Self::Write(files) => write!(f, "Write({})", files.text),
            Self::Delete(files) => write!(f, "Delete({})", files.text),
            Self::Fetch(Hosts::All) => f.write_str("WebFetch(*)"),
            Self::Fetch(Hosts::One(name)) => write!(f, "WebFetch({name})"),
            Self::Fetch(Hosts::Below(name)) => write!(f, "WebFetch(*.{name})"),
            Self::Search => f.write_str("WebSearch(*)"),
            Self::Mcp { server, tool } => write!(f, "Mcp({server}:{tool})"),
        }
    }
}

impl fmt::Display for Shell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.form {
            Form::Words(words) => {
                let mut words: Vec<_> = words.iter().map(|it| quoted(it)).collect();
                // A colon in the first word would be read as the other form.
                if let Some(first) = words.first_mut()
                    && first.contains(':')
                    && !first.starts_with('\'')
                {
                    *first = format!("'{first}'");
                }
                write!(f, "Shell({})", words.join(" "))
            }
            Form::Arguments { program, like } => write!(f, "Shell({program}:{like})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Rule, Malformed> {
        Rule::parse(text, Some(Path::new("/home/me")))
    }

    #[test]
    fn a_rule_is_printed_as_it_is_read() {
        for (text, expected) in [
            ("Shell(git push)", "Shell(git push)"),
            (" Shell( git   push ) ", "Shell(git push)"),
            ("Shell(git)", "Shell(git)"),
            ("Shell(curl:*)", "Shell(curl)"),
            ("Shell(curl:)", "Shell(curl)"),
            ("Shell(npm:run test*)", "Shell(npm:run test*)"),
            ("Shell('my tool' x)", "Shell('my tool' x)"),
            ("Shell(;:)", "Shell(';')"),
            ("Shell(find x -exec ls '{}' ';')", "Shell(find x -exec ls {} ';')"),
            (r#"Shell(a "\$x" b\>c)"#, "Shell(a '$x' 'b>c')"),
            ("Shell(\"a b\" 'it'\\''s')", r"Shell('a b' 'it'\''s')"),
            ("Shell('a:b' c)", "Shell('a:b' c)"),
            ("Shell(npm run test:unit)", "Shell(npm run test:unit)"),
            ("Shell(./scripts/a.sh)", "Shell(./scripts/a.sh)"),
            ("Shell(echo (a))", "Shell(echo '(a)')"),
            ("Read(**)", "Read(**)"),
            ("Read(src/**/*.{rs,toml})", "Read(src/**/*.{rs,toml})"),
            ("Read(~/notes/**)", "Read(~/notes/**)"),
            ("Write(*.md)", "Write(*.md)"),
            ("WebFetch(Docs.RS.)", "WebFetch(docs.rs)"),
            ("WebFetch(*.example.com)", "WebFetch(*.example.com)"),
            ("WebFetch(*)", "WebFetch(*)"),
            ("WebFetch(bücher.example)", "WebFetch(xn--bcher-kva.example)"),
            ("WebFetch([::1])", "WebFetch([::1])"),
            ("WebSearch(*)", "WebSearch(*)"),
            ("WebSearch()", "WebSearch(*)"),
            ("Mcp(tickets:read)", "Mcp(tickets:read)"),
            ("Mcp(tickets:*)", "Mcp(tickets:*)"),
            ("Shell(git push) with network", "Shell(git push) with network"),
            ("Shell(curl:*) with network", "Shell(curl) with network"),
            ("Shell(npm:run test*) with network", "Shell(npm:run test*) with network"),
            ("Delete(build/**)", "Delete(build/**)"),
        ] {
            let rule = parse(text).unwrap_or_else(|error| panic!("{error}"));
            let printed = rule.to_string();
            assert_eq!(printed, expected, "{text}");
            assert_eq!(parse(&printed), Ok(rule), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_answered_with_the_nearest_right_form() {
        for (text, meant) in [
            ("git push", "Shell(git push)"),
            ("Shell git push", "Shell(git push)"),
            ("Shell", "Shell(git status)"),
            ("shell(git push)", "Shell(git push)"),
            ("Bash(git push)", "Shell(git push)"),
            ("Bash(git push:*)", "Shell(git push)"),
            ("Shel(git push)", "Shell(git push)"),
            ("Edit(src/**)", "Write(src/**)"),
            ("Shell(git push", "Shell(git push)"),
            ("Shell()", "Shell(git status)"),
            ("Shell(git *)", "Shell(git)"),
            ("Shell(npm run test:*)", "Shell(npm run test)"),
            ("Shell(git push && ls)", "Shell(git push)"),
            ("Shell(ls > x)", "Shell(ls)"),
            ("Shell(ls \"$x\" y)", ""),
            ("Shell('ls)", ""),
            ("Shell(:push)", ""),
            ("Shell(g*t:push)", ""),
            ("Read()", "Read(**)"),
            ("Read(a[)", "Read(a[[])"),
            ("Read(../x)", ""),
            ("Read(file:///etc/hosts)", "Read(/etc/hosts)"),
            ("Read(~notes)", "Read(~/notes)"),
            ("WebFetch(https://docs.rs/x)", "WebFetch(docs.rs)"),
            ("WebFetch(domain:docs.rs)", "WebFetch(docs.rs)"),
            ("WebFetch(docs.rs/x)", "WebFetch(docs.rs)"),
            ("WebFetch(localhost:3000)", "WebFetch(localhost)"),
            ("WebFetch(*example.com)", "WebFetch(*.example.com)"),
            ("WebFetch(docs.*)", ""),
            ("WebFetch(a b)", ""),
            ("WebFetch()", "WebFetch(example.com)"),
            ("WebSearch(rust)", "WebSearch(*)"),
            ("Mcp(tickets)", "Mcp(tickets:*)"),
            ("Mcp(tickets:)", "Mcp(tickets:*)"),
            ("Mcp(tickets__read)", "Mcp(tickets:read)"),
            ("mcp__tickets__read", "Mcp(tickets:read)"),
            ("Read(a) with network", "Read(a)"),
            ("Shell(git push && ls) with network", "Shell(git push) with network"),
            ("Delete()", "Delete(**)"),
            ("delete_file(a)", "Delete(a)"),
            ("", "Shell(git status)"),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.meant.as_deref().unwrap_or_default(), meant, "{error}");
            if let Some(meant) = error.meant {
                assert!(parse(&meant).is_ok(), "{meant}");
            }
        }
        let long = format!("Shell({})", "x".repeat(5000));
        assert!(parse(&long).expect_err("too long").text.len() < 100);
        let of_size = |bytes: usize| format!("Shell({})", "x".repeat(bytes - "Shell()".len()));
        assert!(parse(&of_size(LIMIT_BYTES)).is_ok());
        assert!(parse(&of_size(LIMIT_BYTES + 1)).is_err());
    }

    #[test]
    fn the_message_says_what_to_write() {
        assert_eq!(
            parse("Shell(git *)").expect_err("wrong").to_string(),
            "invalid rule `Shell(git *)`: it is the beginning of a command; what follows may be anything\n  did you mean `Shell(git)`?"
        );
    }

    fn located(path: &str) -> Located {
        let is_inside = path.strip_prefix("/w/");
        Located {
            path: path.into(),
            shown: is_inside.unwrap_or(path).to_owned(),
            place: if is_inside.is_some() {
                Place::Inside
            } else {
                Place::Outside
            },
            is_protected: false,
            is_folder: false,
        }
    }

    #[test]
    fn paths_are_allowed_narrowly_and_forbidden_widely() {
        for (pattern, path, allows, forbids) in [
            ("src/**", "/w/src/a.rs", true, true),
            ("src/**", "/w/src/a/b.rs", true, true),
            ("src/**", "/w/src", true, true),
            ("src/**", "/w/SRC/a.rs", false, true),
            ("src/**", "/w/srcs/a.rs", false, false),
            ("src/**", "/w/a/src/b.rs", false, false),
            ("src/**", "/src/a.rs", false, false),
            ("src", "/w/src/a.rs", false, true),
            ("src/", "/w/src/a.rs", true, true),
            ("src/*", "/w/src/a.rs", true, true),
            ("src/*", "/w/src/a/b.rs", false, true),
            ("*.md", "/w/a.md", true, true),
            ("*.md", "/w/docs/a.md", true, true),
            ("*.md", "/w/a.MD", false, true),
            ("*.md", "/etc/a.md", false, false),
            ("./a.md", "/w/a.md", true, true),
            ("./a.md", "/w/docs/a.md", false, false),
            ("**", "/w/a", true, true),
            ("**", "/etc/a", false, false),
            ("/etc/*.conf", "/etc/a.conf", true, true),
            ("/etc/**", "/etc/a/b", true, true),
            ("/w/src/**", "/w/src/a", true, true),
            ("~/notes/**", "/home/me/notes/a", true, true),
            ("~/notes/**", "/home/you/notes/a", false, false),
            (".env*", "/w/a/.env.local", true, true),
        ] {
            let files = Files::parse(pattern, Some(Path::new("/home/me"))).expect(pattern);
            let file = located(path);
            assert_eq!(
                (files.hold(&file), files.touch(&file)),
                (allows, forbids),
                "{pattern} {path}"
            );
        }
    }

    #[test]
    fn a_shell_rule_is_words_not_letters() {
        for (rule, command, expected) in [
            ("git push", "git push", true),
            ("git push", "git push origin", true),
            ("git push", "git pushx", false),
            ("git push", "git", false),
            ("git push", "git -C push", false),
            ("git:push*", "git push origin", true),
            ("git:push*", "git pull", false),
            ("git:* --dry-run", "git push --dry-run", true),
            ("git:* --dry-run", "git push --dry-run --force", false),
            ("git:push", "git push", true),
            ("git:push", "git push x", false),
        ] {
            let Ok(Rule::Shell(rule)) = parse(&format!("Shell({rule})")) else {
                panic!("{rule}");
            };
            let words: Vec<_> = command.split(' ').map(Some).collect();
            assert_eq!(rule.holds(&words), expected, "{rule:?} {command}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn any_text_is_a_rule_or_an_answer(text in "(Shell|Read|Write|Delete|WebFetch|WebSearch|Mcp|x)?[(]?[ -~é]{0,20}[)]?( with network)?") {
            match parse(&text) {
                Ok(rule) => prop_assert_eq!(parse(&rule.to_string()), Ok(rule)),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }

        #[test]
        fn words_survive_being_printed(words in prop::collection::vec("[ -~é]{0,6}", 1..4)) {
            prop_assume!(!words[0].contains(['*', '?']));
            prop_assume!(words.len() < 2 || !words.last().is_some_and(|it| it == "*" || it.ends_with(":*")));
            prop_assume!(words[0].chars().any(|it| it != ' ') && !words[0].starts_with(['\'', '"', '\\']));
            let rule = Rule::Shell(Shell::words(words));
            prop_assert_eq!(parse(&rule.to_string()), Ok(rule));
        }

        #[test]
        fn likeness_is_what_a_regular_expression_says(text in "[ab]{0,8}", pattern in "[ab*]{0,6}") {
            let glob = globset::Glob::new(&pattern).expect("a glob").compile_matcher();
            prop_assert_eq!(is_like(&text, &pattern), glob.is_match(&text));
        }
    }
}
