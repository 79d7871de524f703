//! The judgement of a call.
//!
//! | what | without a rule |
//! | --- | --- |
//! | reading in the workspace, listing, searching | goes on |
//! | reading elsewhere | asks, once for a folder; hidden files never |
//! | changing a file of the workspace | `ask`: asks; `list`, `sandbox`: goes on, under a checkpoint, in every tier |
//! | changing a protected file | always asks, whatever the rules say |
//! | deleting | asks, unless a rule for deleting names the file; a protected one always |
//! | changing git's own files or anything elsewhere | refused |
//! | a command in plan and ask mode | refused unless the fence is whole, and with any permission; else as below, read-only |
//! | a command | `sandbox` with a whole fence: goes on; so where nobody can be asked and the fence is partial; else asks |
//! | a command that wants `network` or `git_write` | asks |
//! | a command that wants `all`, or without any fence | always asks, whatever the rules say |
//! | fetching a page | asks, once for a host |
//! | searching the web | `ask`: asks; else goes on, for who sets up a search service means it to be used |
//! | somebody else's tool | asks, unless its server is trusted and it only reads |
//!
//! Changes of files do not depend on the fence: they are made by this program, through its own resolver, and can be taken
//! back. A rule for a command covers `git_write`, since who says "always" to `git commit` says it to what that needs, and `network`
//! where it says so; it never covers `all`. For git it holds in repositories that were there at the start: one that a command made
//! has the hooks that it likes. Rules beat the run mode in both directions, so that "always" means the same everywhere.

use std::path::Path;

use super::{
    rule::{Files, Hosts, Rule, Shell, is_tool},
    rules::{Rules, RunMode},
};
use crate::{
    protocol::{Mode, Permission, sentence},
    sandbox::{Located, LookLimit, Place, Tier},
    shell::{
        CommandLine, Doubt, Redirect, SimpleCommand,
        programs::{self, Others, Reach},
    },
    tools::{Access, Class},
};

/// Everything that a judgement depends on beside the call.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub mode: Mode,
    pub run: RunMode,
    pub tier: Tier,
    /// The gaps of the sandbox here, or why there is none. Empty: nothing is missing.
    pub gaps: &'a str,
    pub rules: &'a Rules,
    /// Somebody is there to answer.
    pub is_attended: bool,
    /// A command has changed what is protected: no rule lets another one run unasked.
    pub is_halted: bool,
    /// The reason for which not all that should be is protected from a command.
    pub limit_reached: Option<LookLimit>,
    /// Git would work in a repository that was not there when the conversation began.
    pub is_new_repository: bool,
    /// Why there is no fence: the user has switched it off.
    pub is_sandbox_off: bool,
    /// Servers behind the remotes that a command's git reaches.
    pub remotes: &'a [String],
}

/// The decision on a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Allow,
    /// Why not, in words for the model and the user.
    Deny(String),
    Ask(Question),
}

/// A question for the user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// Rules that "always" would store; empty: it is not offered.
    pub always: Vec<Rule>,
    /// Rules that "for this session" would add; empty: it is not offered.
    pub session: Vec<Rule>,
    /// Servers that would be reached; [`sentence::ANY_HOST`] where it could be any.
    pub reaches: Vec<String>,
    /// Paths outside of the call's own that a command would write, as it names them.
    pub writes: Vec<String>,
    pub is_protected: bool,
    /// A rule or a setting of the user's wants the question.
    pub is_wanted: bool,
    /// Only a person may say yes, whatever the run mode.
    pub needs_person: bool,
    /// A sentence without its end: why it is not simply done.
    pub why: String,
}

/// Judges a call by all that it touches.
pub fn judge(accesses: &[Access], class: Class, facts: &Facts<'_>) -> Verdict {
    let mut asked: Option<Question> = None;
    let is_unheld =
        |it: &Access| matches!(it, Access::Command { permissions, .. } if permissions.contains(&Permission::All));
    let is_unheld = accesses.iter().any(is_unheld);
    for access in accesses {
        let found = match access {
            // A command that may do everything asks as a whole: of what it reads only a rule that forbids it counts.
            Access::Read(file) if is_unheld => forbidden_read(file, facts).unwrap_or(Verdict::Allow),
            _ => one(access, class, facts),
        };
        let found = match found {
            Verdict::Allow if facts.rules.is_unread => ask("the settings cannot be read, so everything asks"),
            Verdict::Allow if facts.rules.is_doubtful => {
                ask("a rule in the settings cannot be read, so everything asks")
            }
            it => it,
        };
        match found {
            Verdict::Allow => {}
            Verdict::Deny(why) => return Verdict::Deny(why),
            Verdict::Ask(question) => {
                asked = Some(match asked {
                    Some(before) => both(before, question),
                    None => question,
                });
            }
        }
    }
    match asked {
        None => Verdict::Allow,
        Some(mut question) => {
            // Other programs act on what is protected, long after this run; and what a broken rule forbids is not known.
            question.needs_person =
                question.is_protected || facts.rules.is_doubtful || facts.is_halted || facts.limit_reached.is_some();
            match (facts.run, facts.is_attended) {
                (RunMode::Force, _) if !question.needs_person => Verdict::Allow,
                (_, true) => Verdict::Ask(question),
                (_, false) => Verdict::Deny(unattended(&question)),
            }
        }
    }
}

/// A question without a choice for later.
fn ask(why: impl Into<String>) -> Verdict {
    ask_of(false, why)
}

/// A question without a choice for later; about protected files if `is_protected`.
fn ask_of(is_protected: bool, why: impl Into<String>) -> Verdict {
    Verdict::Ask(Question {
        is_protected,
        why: why.into(),
        ..Question::default()
    })
}

/// The question that a rule wants; about protected files if `is_protected`.
fn ask_by_rule(is_protected: bool, why: String) -> Verdict {
    Verdict::Ask(Question {
        is_protected,
        is_wanted: true,
        why,
        ..Question::default()
    })
}

/// A question whose choices for later add `rule`.
fn ask_for(rule: Option<Rule>, why: impl Into<String>) -> Verdict {
    let rules: Vec<Rule> = rule.into_iter().collect();
    Verdict::Ask(Question {
        always: rules.clone(),
        session: rules,
        why: why.into(),
        ..Question::default()
    })
}

/// One question for two reasons. A choice for later is offered only if it covers both.
fn both(mut left: Question, right: Question) -> Question {
    let merge = |left: &mut Vec<Rule>, right: Vec<Rule>| {
        if left.is_empty() || right.is_empty() {
            left.clear();
        } else {
            left.extend(right.into_iter().filter(|it| !left.contains(it)).collect::<Vec<_>>());
        }
    };
    merge(&mut left.always, right.always);
    merge(&mut left.session, right.session);
    for (into, more) in [(&mut left.reaches, right.reaches), (&mut left.writes, right.writes)] {
        for it in more {
            if !into.contains(&it) {
                into.push(it);
            }
        }
    }
    left.is_protected |= right.is_protected;
    left.is_wanted |= right.is_wanted;
    if !left.why.contains(&right.why) {
        left.why = format!("{}; {}", left.why, right.why);
    }
    left
}

/// Nobody is there: what is missing, and what would allow it.
fn unattended(question: &Question) -> String {
    let Question { always, why, .. } = question;
    if always.is_empty() {
        return format!("{why}; sheaf cannot ask for approval here, and no rule allows this");
    }
    let rules: Vec<_> = always.iter().map(|it| format!("{:?}", it.to_string())).collect();
    format!(
        "{why}; sheaf cannot ask for approval here\nto allow it, add to your settings: approvals.allow = [{}]",
        rules.join(", ")
    )
}

fn one(access: &Access, class: Class, facts: &Facts<'_>) -> Verdict {
    let only_reads = facts.mode.is_read_only();
    let not_now = |what: &str| Verdict::Deny(format!("{what} in {} mode", facts.mode.as_str()));
    match access {
        Access::Read(file) => read(file, facts),
        Access::Write(_) | Access::Delete(_) if only_reads => not_now("no file is changed"),
        Access::Write(file) => write(file, facts),
        Access::Delete(file) => delete(file, facts),
        Access::Command {
            line,
            directory,
            permissions,
            is_background: _,
        } => match unfit(facts.mode, facts.tier, facts.gaps, permissions) {
            Some(reason) => Verdict::Deny(reason),
            None => command(line, directory, permissions, facts),
        },
        Access::Fetch { url: _, host } => fetch(host, facts),
        Access::Search => {
            let is_search = |it: &Rule| matches!(it, Rule::Search);
            simple(
                facts,
                is_search,
                facts.run != RunMode::Ask,
                "the words of the search leave this machine",
                Some(Rule::Search),
            )
        }
        Access::Mcp { server, tool } if only_reads && class != Class::Reads && !is_named(server, tool, facts.rules) => {
            not_now("no tool of a server is used, unless a rule names it,")
        }
        Access::Mcp { server, tool } => {
            let is_meant = |it: &Rule| match it {
                Rule::Mcp { server: s, tool: t } => is_tool((s, t), server, tool),
                Rule::Shell(_) | Rule::Read(_) | Rule::Write(_) | Rule::Delete(_) | Rule::Fetch(_) | Rule::Search => {
                    false
                }
            };
            let is_free = class == Class::Reads && facts.run != RunMode::Ask;
            let rule = Rule::parse(&format!("Mcp({}:{tool})", server.replace(' ', "?")), None).ok();
            simple(
                facts,
                is_meant,
                is_free,
                &format!("`{tool}` is a tool of the MCP server `{server}`; sheaf does not know what it does"),
                rule,
            )
        }
    }
}

/// Why no command is run in `mode` here, or none with these permissions; `None`: it may be, as rules allow. In a mode that
/// changes nothing the full sandbox keeps a command from it, whatever the command is.
pub fn unfit(mode: Mode, tier: Tier, gaps: &str, permissions: &[Permission]) -> Option<String> {
    if !mode.is_read_only() {
        return None;
    }
    if tier != Tier::Full {
        let gaps = if gaps.is_empty() { "nothing holds them" } else { gaps };
        return Some(format!(
            "commands cannot be run in {mode} mode here: only the full sandbox keeps them from changing anything ({gaps})"
        ));
    }
    let wanted: Vec<&str> = permissions.iter().map(Permission::as_str).collect();
    (!wanted.is_empty()).then(|| {
        format!(
            "a command gets no `{}` in {mode} mode: it reads, writes in /tmp only, and has no network",
            wanted.join("`, `")
        )
    })
}

/// Returns true if the user's settings allow exactly this tool. A pattern says nothing about what a tool does.
fn is_named(server: &str, tool: &str, rules: &Rules) -> bool {
    let is_it = |it: &Rule| matches!(it, Rule::Mcp { server: s, tool: t } if s == server && t == tool);
    rules.allow.iter().any(is_it)
}

/// Judges an access that a rule either names or does not.
fn simple(
    facts: &Facts<'_>,
    is_meant: impl Fn(&Rule) -> bool,
    is_free: bool,
    why: &str,
    rule: Option<Rule>,
) -> Verdict {
    let Rules {
        deny,
        ask: asks,
        allow,
        session,
        is_doubtful: _,
        is_unread: _,
    } = facts.rules;
    if let Some(rule) = deny.iter().find(|it| is_meant(it)) {
        return Verdict::Deny(format!("the rule {rule} forbids it"));
    }
    if let Some(rule) = asks.iter().find(|it| is_meant(it)) {
        return ask_by_rule(false, format!("the rule {rule} asks"));
    }
    if is_free || allow.iter().chain(session).any(is_meant) {
        return Verdict::Allow;
    }
    ask_for(rule, why)
}

fn reads(rule: &Rule) -> Option<&Files> {
    let Rule::Read(files) = rule else { return None };
    Some(files)
}

fn writes(rule: &Rule) -> Option<&Files> {
    let Rule::Write(files) = rule else { return None };
    Some(files)
}

fn deletes(rule: &Rule) -> Option<&Files> {
    let Rule::Delete(files) = rule else { return None };
    Some(files)
}

fn shell(rule: &Rule) -> Option<&Shell> {
    let Rule::Shell(shell) = rule else { return None };
    Some(shell)
}

fn hosts(rule: &Rule) -> Option<&Hosts> {
    let Rule::Fetch(hosts) = rule else { return None };
    Some(hosts)
}

/// The verdict of a rule that forbids reading a file.
fn forbidden_read(file: &Located, facts: &Facts<'_>) -> Option<Verdict> {
    let rule = caught_read(&facts.rules.deny, file)?;
    Some(Verdict::Deny(format!(
        "the rule {rule} forbids reading `{}`",
        file.shown
    )))
}

fn caught_read<'a>(rules: &'a [Rule], file: &Located) -> Option<&'a Rule> {
    rules.iter().find(|it| reads(it).is_some_and(|it| it.touch(file)))
}

/// Of two reasons why a file is not touched at all the user's own is said.
fn hidden(file: &Located, facts: &Facts<'_>) -> Verdict {
    let own = || Verdict::Deny(format!("`{}` is hidden by an ignore file or is a secret", file.shown));
    forbidden_read(file, facts).unwrap_or_else(own)
}

fn read(file: &Located, facts: &Facts<'_>) -> Verdict {
    let rules = facts.rules;
    if file.place == Place::Hidden {
        return hidden(file, facts);
    }
    if let Some(verdict) = forbidden_read(file, facts) {
        return verdict;
    }
    if let Some(rule) = caught_read(&rules.ask, file) {
        return ask_by_rule(false, format!("the rule {rule} asks before `{}` is read", file.shown));
    }
    let mut allowed = rules.allow.iter().chain(&rules.session);
    match file.place {
        Place::Inside | Place::Added => Verdict::Allow,
        Place::Outside if allowed.any(|it| reads(it).is_some_and(|it| it.hold(file))) => Verdict::Allow,
        Place::Outside | Place::Hidden => ask_for(readable(file), format!("`{}` is outside the workspace", file.shown)),
    }
}

/// The rule that a permission to read `file` adds: its folder, or the file's own folder. Not for a whole home or a
/// folder right below the root: then only the file, and nothing for a folder.
fn readable(file: &Located) -> Option<Rule> {
    let is_narrow = |it: &Path| {
        let is_home = it
            .parent()
            .is_some_and(|it| it == Path::new("/home") || it == Path::new("/Users"));
        it.components().count() > 2 && !is_home
    };
    if file.is_folder {
        return is_narrow(&file.path).then(|| Rule::read_below(&file.path)).flatten();
    }
    match file.path.parent() {
        Some(parent) if is_narrow(parent) => Rule::read_below(parent),
        Some(_) | None => Rule::read_file(&file.path),
    }
}

/// The verdict on a change that is refused or asked about whatever the rules allow.
fn no_change(file: &Located, facts: &Facts<'_>) -> Option<Verdict> {
    let is_git = file.path.components().any(|it| {
        it.as_os_str()
            .to_string_lossy()
            .trim_end_matches(['.', ' '])
            .eq_ignore_ascii_case(".git")
    });
    match file.place {
        Place::Hidden => Some(hidden(file, facts)),
        Place::Outside => Some(Verdict::Deny(format!("`{}` is outside the workspace", file.shown))),
        Place::Inside | Place::Added if is_git => Some(Verdict::Deny(format!(
            "`{}` belongs to git; change it with a git command that has git_write",
            file.shown
        ))),
        Place::Inside | Place::Added => None,
    }
}

/// A rule that forbids or asks, with the verdict.
fn caught_change(file: &Located, facts: &Facts<'_>) -> Option<Verdict> {
    // A change shows what was there, so what must not be read is not changed either.
    let touches = |it: &&Rule| writes(it).or_else(|| reads(it)).is_some_and(|it| it.touch(file));
    if let Some(rule) = facts.rules.deny.iter().find(touches) {
        return Some(Verdict::Deny(format!(
            "the rule {rule} forbids changing `{}`",
            file.shown
        )));
    }
    let rule = facts
        .rules
        .ask
        .iter()
        .find(|it| writes(it).is_some_and(|it| it.touch(file)))?;
    Some(ask_by_rule(
        file.is_protected,
        format!("the rule {rule} asks before `{}` is changed", file.shown),
    ))
}

fn write(file: &Located, facts: &Facts<'_>) -> Verdict {
    if let Some(verdict) = no_change(file, facts).or_else(|| caught_change(file, facts)) {
        return verdict;
    }
    if file.is_protected {
        return ask_of(
            true,
            format!("`{}` is protected: other programs act on its content", file.shown),
        );
    }
    let mut allowed = facts.rules.allow.iter().chain(&facts.rules.session);
    let is_allowed = allowed.any(|it| writes(it).is_some_and(|it| it.hold(file)));
    match facts.run {
        RunMode::List | RunMode::Sandbox | RunMode::Force => Verdict::Allow,
        RunMode::Ask if is_allowed => Verdict::Allow,
        RunMode::Ask => {
            let always: Vec<_> = Rule::write_file(&file.shown).into_iter().collect();
            let everything = Rule::parse("Write(**)", None).ok();
            Verdict::Ask(Question {
                // A person who has seen enough wants the rest of the session, not this one file.
                session: if file.place == Place::Inside {
                    everything.into_iter().collect()
                } else {
                    always.clone()
                },
                always,
                why: changes(file),
                ..Question::default()
            })
        }
    }
}

fn delete(file: &Located, facts: &Facts<'_>) -> Verdict {
    if let Some(verdict) = no_change(file, facts).or_else(|| caught_change(file, facts)) {
        return verdict;
    }
    let meant = |list: &[Rule]| {
        list.iter()
            .find(|it| deletes(it).is_some_and(|it| it.touch(file)))
            .cloned()
    };
    if let Some(rule) = meant(&facts.rules.deny) {
        return Verdict::Deny(format!("the rule {rule} forbids deleting `{}`", file.shown));
    }
    if let Some(rule) = meant(&facts.rules.ask) {
        let why = format!("the rule {rule} asks before `{}` is deleted", file.shown);
        return ask_by_rule(file.is_protected, why);
    }
    let why = format!("it deletes `{}`", file.shown);
    if file.is_protected {
        return ask_of(true, why);
    }
    let mut allowed = facts.rules.allow.iter().chain(&facts.rules.session);
    if allowed.any(|it| deletes(it).is_some_and(|it| it.hold(file))) {
        return Verdict::Allow;
    }
    ask_for(Rule::delete_file(&file.shown), why)
}

fn fetch(host: &str, facts: &Facts<'_>) -> Verdict {
    let is_meant = |it: &Rule| hosts(it).is_some_and(|it| it.hold(host));
    let rule = Rule::parse(&format!("WebFetch({host})"), None).ok();
    let verdict = simple(facts, is_meant, false, &format!("it reaches {host}"), rule);
    match verdict {
        Verdict::Ask(mut question) => {
            question.reaches = vec![host.to_owned()];
            Verdict::Ask(question)
        }
        Verdict::Allow | Verdict::Deny(_) => verdict,
    }
}

fn command(text: &str, directory: &Located, permissions: &[Permission], facts: &Facts<'_>) -> Verdict {
    let Rules {
        deny,
        ask: asks,
        allow,
        session,
        is_doubtful: _,
        is_unread: _,
    } = facts.rules;
    if let Some(Permission::Other(word)) = permissions.iter().find(|it| matches!(it, Permission::Other(_))) {
        return Verdict::Deny(format!("unknown permission `{word}`: use network, git_write or all"));
    }
    match directory.place {
        Place::Hidden => return hidden(directory, facts),
        Place::Outside => {
            return Verdict::Deny(format!(
                "`{}` is outside the workspace: commands cannot start there",
                directory.shown
            ));
        }
        Place::Inside | Place::Added => {}
    }
    let line = CommandLine::read(text);
    let has_all = permissions.contains(&Permission::All) || facts.tier == Tier::None;
    let has_network = has_all || permissions.contains(&Permission::Network);
    let reach = Reach::of(text, &line, facts.remotes);
    let places = Places::of(&line, directory);

    let catches = |rule: &&Rule| {
        shell(rule).is_some_and(|shell| line.commands.iter().any(|it| shell.catches(it)))
            || hosts(rule).is_some_and(|hosts| has_network && reach.named().any(|it| hosts.hold(it)))
            || writes(rule).is_some_and(|files| places.all.iter().any(|it| files.touch(it)))
            || deletes(rule).is_some_and(|files| places.removed.iter().any(|it| files.touch(it)))
    };
    if let Some(rule) = deny.iter().find(catches) {
        return Verdict::Deny(format!("the rule {rule} forbids it"));
    }
    let mut question = Question {
        reaches: if has_network {
            if reach.others == Others::None && !reach.hosts.is_empty() {
                reach.hosts.clone()
            } else {
                let any = sentence::ANY_HOST.text().to_owned();
                reach.named().cloned().chain([any]).collect()
            }
        } else {
            Vec::new()
        },
        writes: places.written,
        ..Question::default()
    };
    if let Some(rule) = asks.iter().find(catches) {
        question.why = format!("the rule {rule} asks");
        question.is_wanted = true;
        return Verdict::Ask(question);
    }
    let is_about_changes = |it: &Rule| writes(it).or(deletes(it)).is_some();
    if places.is_lost && deny.iter().chain(asks).any(is_about_changes) {
        "it writes in a folder that is not known beforehand, so rules that forbid or ask cannot be applied"
            .clone_into(&mut question.why);
        question.is_wanted = true;
        return Verdict::Ask(question);
    }
    let is_unread = has_network && reach.others == Others::Unread;
    if is_unread && deny.iter().chain(asks).any(|it| hosts(it).is_some()) {
        "it is not certain which servers its words name, so rules that forbid or ask cannot be applied"
            .clone_into(&mut question.why);
        question.is_wanted = true;
        return Verdict::Ask(question);
    }
    let has_shell_rules = deny.iter().chain(asks).any(|it| shell(it).is_some());
    if has_shell_rules && let Some(doubt) = unclear(&line) {
        question.why = format!("{doubt}, so rules that forbid or ask cannot be applied");
        question.is_wanted = true;
        return Verdict::Ask(question);
    }
    // Nothing holds such a command, so no rule does either.
    if facts.tier == Tier::None {
        question.why = if facts.is_sandbox_off {
            "the sandbox is switched off, so every command asks".to_owned()
        } else {
            format!("this system has no sandbox ({}), so every command asks", facts.gaps)
        };
        return Verdict::Ask(question);
    }
    let is_unheld = permissions.contains(&Permission::All);
    if is_unheld || facts.is_halted || facts.limit_reached.is_some() {
        // What it wants comes first: it is what is decided.
        let wanted = (!is_unheld && !permissions.is_empty()).then(|| wants(permissions));
        let incomplete = facts
            .limit_reached
            .map(|it| format!("{}, so not all are protected and every command asks", it.reason()));
        let reasons = [
            is_unheld.then_some("it would run outside the sandbox"),
            wanted.as_deref(),
            facts
                .is_halted
                .then_some("a command changed protected files, so every command asks"),
            incomplete.as_deref(),
        ];
        question.why = reasons.into_iter().flatten().collect::<Vec<_>>().join("; ");
        return Verdict::Ask(question);
    }
    // What a partial one holds it holds by itself: where nobody can be asked, commands make do with that.
    let is_held = facts.tier == Tier::Full || (facts.tier.is_strict() && !facts.is_attended);
    if permissions.is_empty() && facts.run == RunMode::Sandbox && is_held {
        return Verdict::Allow;
    }
    let allowed: Vec<&Rule> = allow.iter().chain(session).collect();
    let wants_network = permissions.contains(&Permission::Network);
    let missing = missing(&line, &allowed, &places.redirected, wants_network);
    if facts.is_new_repository && runs_git(&line) {
        "it runs git in a repository that was not there when this session began".clone_into(&mut question.why);
        return Verdict::Ask(question);
    }
    if let Some(missing) = &missing
        && missing.is_empty()
    {
        return Verdict::Allow;
    }
    let rules = missing.unwrap_or_default();
    question.why = if permissions.is_empty() {
        match (rules.is_empty(), facts.run) {
            (true, _) => because(&line),
            (false, RunMode::Sandbox) => {
                format!(
                    "this system's sandbox is partial ({}), and no rule allows it",
                    facts.gaps
                )
            }
            (false, RunMode::Ask | RunMode::List | RunMode::Force) => "no rule allows it".to_owned(),
        }
    } else {
        wants(permissions)
    };
    question.always.clone_from(&rules);
    question.session = rules;
    Verdict::Ask(question)
}

/// Why a command asks that no rule lets have what it wants.
pub fn wants(permissions: &[Permission]) -> String {
    let words: Vec<_> = permissions.iter().map(Permission::as_str).collect();
    format!("it needs the permission {}", words.join(" and "))
}

/// Why a change of a file asks where each one does.
pub fn changes(file: &Located) -> String {
    format!("it changes `{}`", file.shown)
}

/// Why no rule that would allow a line is offered.
fn because(line: &CommandLine) -> String {
    match line.doubts.first() {
        Some(doubt) => format!("{doubt}, so no rule allows it"),
        None => "no rule allows it, and none is offered: its effect depends on its arguments".to_owned(),
    }
}

/// Why it is not known which programs a line runs. `None`: at most arguments are in doubt.
fn unclear(line: &CommandLine) -> Option<Doubt> {
    let doubt = line.doubts.iter().find(|it| !matches!(it, Doubt::Option)).copied();
    doubt.or_else(|| {
        line.commands
            .iter()
            .any(programs::runs_others)
            .then_some(Doubt::Wrapper)
    })
}

/// Returns true if one of the commands is git, which runs the hooks of its repository.
fn runs_git(line: &CommandLine) -> bool {
    let program = |it: &SimpleCommand| it.words.first().and_then(|it| it.text.as_deref()).map(programs::base);
    line.commands.iter().any(|it| program(it).is_some_and(|it| it == "git"))
}

/// The rules that are still needed for a line; `None` where none would do.
fn missing(
    line: &CommandLine,
    allowed: &[&Rule],
    redirected: &[Option<Located>],
    wants_network: bool,
) -> Option<Vec<Rule>> {
    if !line.is_plain() {
        return None;
    }
    let mut missing = Vec::new();
    let mut add = |rule: Rule| {
        if !missing.contains(&rule) {
            missing.push(rule);
        }
    };
    for command in &line.commands {
        let is_enough = |it: &Shell| it.allows(command) && (it.has_network || !wants_network);
        let is_allowed = |it: &&Rule| shell(it).is_some_and(is_enough);
        if command.is_free() || allowed.iter().any(is_allowed) {
            continue;
        }
        let rule = Shell {
            has_network: wants_network,
            ..Shell::words(programs::prefix(command)?)
        };
        // The words of the rule may not reach as far as an option that runs something.
        if !rule.allows(command) {
            return None;
        }
        add(Rule::Shell(rule));
    }
    for file in redirected {
        let file = file.as_ref()?;
        if allowed.iter().any(|it| writes(it).is_some_and(|it| it.hold(file))) {
            continue;
        }
        add(Rule::write_file(&file.shown)?);
    }
    Some(missing)
}

/// The files that a line writes.
struct Places {
    /// As it names them.
    written: Vec<String>,
    /// Those it is redirected to; none where it is not certain which that is.
    redirected: Vec<Option<Located>>,
    /// All, as far as they can be known.
    all: Vec<Located>,
    /// Those of them that are removed.
    removed: Vec<Located>,
    /// A relative path is written in a folder that is not known.
    is_lost: bool,
}

impl Places {
    fn of(line: &CommandLine, directory: &Located) -> Self {
        let mut found = Self {
            written: Vec::new(),
            redirected: Vec::new(),
            all: Vec::new(),
            removed: Vec::new(),
            is_lost: false,
        };
        // Behind it a relative path leads somewhere else.
        let moves = line.commands.iter().any(SimpleCommand::is_move);
        let folders = folders(line, directory);
        let into_files = line.redirects.iter().filter(|it| it.writes && !it.is_harmless());
        for Redirect { file, .. } in into_files {
            found.add(file.text.clone().unwrap_or_else(|| file.source.clone()));
            let located = file.text.as_deref().and_then(|it| below(directory, it));
            found.write(file.text.as_deref(), &folders, false);
            // What begins with a dot is a matter of taste for programs, and of trust.
            let is_plain =
                |it: &Located| !it.shown.split('/').any(|it| it.starts_with('.')) && !file.source.starts_with('~');
            found.redirected.push(located.filter(|it| !moves && is_plain(it)));
        }
        for command in &line.commands {
            for path in programs::written(command) {
                found.write(Some(&path), &folders, programs::removes(command));
                found.add(path);
            }
        }
        found
    }

    /// Notes a path that is written, in each folder where that may be.
    fn write(&mut self, path: Option<&str>, folders: &Folders, is_removed: bool) {
        let Some(path) = path else { return };
        self.is_lost |= folders.is_lost && !path.starts_with('/');
        let places = folders.known.iter().filter_map(|it| below(it, path));
        for place in places {
            if is_removed {
                self.removed.push(place.clone());
            }
            self.all.push(place);
        }
    }

    fn add(&mut self, path: String) {
        if !self.written.contains(&path) {
            self.written.push(path);
        }
    }
}

/// The folders in which the commands of a line may run.
struct Folders {
    /// Where it begins, and each to which it goes by name.
    known: Vec<Located>,
    /// It goes somewhere else, too.
    is_lost: bool,
}

fn folders(line: &CommandLine, start: &Located) -> Folders {
    let mut folders = Folders {
        known: vec![start.clone()],
        is_lost: false,
    };
    for command in line.commands.iter().filter(|it| it.is_move()) {
        let to = match command.texts().as_slice() {
            [Some("cd" | "pushd"), Some(to)] => folders.known.last().and_then(|it| below(it, to)),
            _ => None,
        };
        folders.is_lost |= to.is_none();
        folders.known.extend(to);
    }
    folders
}

/// The place of a path in a command. Links are not followed: the sandbox does that.
fn below(directory: &Located, path: &str) -> Option<Located> {
    if path.is_empty() || path.split('/').any(|it| it == "..") || path.contains('\0') {
        return None;
    }
    let mut rest = path;
    while let Some(shorter) = rest.strip_prefix("./") {
        rest = shorter;
    }
    let absolute = directory.path.join(rest);
    let base = match directory.shown.as_str() {
        "" | "." => Some(String::new()),
        shown if shown.starts_with('/') => None,
        shown => Some(format!("{}/", shown.trim_end_matches('/'))),
    };
    let shown = match base {
        Some(base) if !rest.starts_with('/') => format!("{base}{rest}"),
        Some(_) | None => absolute.to_string_lossy().into_owned(),
    };
    Some(Located {
        path: absolute,
        shown,
        place: directory.place,
        is_protected: false,
        is_folder: false,
    })
}
