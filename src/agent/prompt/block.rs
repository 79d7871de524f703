//! The blocks of the system prompt, as templates, and when each is said.

use std::sync::LazyLock;

use minijinja::{Environment, UndefinedBehavior, context, syntax::SyntaxConfig};

use super::{DEBUG_TAG, Facts};
use crate::{
    agent::tags::{name, wrap_ours},
    protocol::Mode,
    sandbox::Tier,
    text,
    tools::{Class, built_in, run_terminal_cmd, todo_write},
};

/// A part of the system prompt.
pub struct PromptBlock {
    /// Its tag, and its name in the configuration. [`ROLE`] comes first and has no tag.
    pub name: &'static str,
    /// A template: `model`, `tools` and `tag` are known in it.
    pub text: &'static str,
    /// The text for a small window; `None`: the block is left out.
    pub short: Option<&'static str>,
    when: fn(&Facts<'_>) -> bool,
    /// It is said when this mode is entered, in a message; `None`: it stands in the system prompt.
    mode: Option<Mode>,
}

const ROLE: &str = "role";

/// The block whose text depends on the family of the model.
const FAMILY: &str = "model_guidance";

/// All blocks, in the order of the prompt. The words for it are the same in every conversation, so they come first.
pub const BLOCKS: &[PromptBlock] = &[
    PromptBlock {
        name: ROLE,
        text: include_str!("../../../assets/prompts/role.md"),
        short: Some(include_str!("../../../assets/prompts/short/role.md")),
        when: |_| true,
        mode: None,
    },
    PromptBlock {
        name: "communication",
        text: include_str!("../../../assets/prompts/communication.md"),
        short: None,
        when: |_| true,
        mode: None,
    },
    PromptBlock {
        name: "no_tools",
        text: include_str!("../../../assets/prompts/no_tools.md"),
        short: Some(include_str!("../../../assets/prompts/no_tools.md")),
        when: |it| it.tools.is_empty(),
        mode: None,
    },
    PromptBlock {
        name: "tool_calling",
        text: include_str!("../../../assets/prompts/tool_calling.md"),
        short: Some(include_str!("../../../assets/prompts/short/tool_calling.md")),
        when: |it| !it.tools.is_empty(),
        mode: None,
    },
    PromptBlock {
        name: "maximize_parallel_tool_calls",
        text: include_str!("../../../assets/prompts/maximize_parallel_tool_calls.md"),
        short: None,
        when: |it| it.parallel && it.tools.len() > 1,
        mode: None,
    },
    PromptBlock {
        name: "maximize_context_understanding",
        text: include_str!("../../../assets/prompts/maximize_context_understanding.md"),
        short: None,
        when: |_| true,
        mode: None,
    },
    PromptBlock {
        name: "making_code_changes",
        text: include_str!("../../../assets/prompts/making_code_changes.md"),
        short: Some(include_str!("../../../assets/prompts/short/making_code_changes.md")),
        when: |it| it.tools.iter().any(|it| changes_files(it)),
        mode: None,
    },
    PromptBlock {
        name: "using_git",
        text: include_str!("../../../assets/prompts/using_git.md"),
        short: None,
        when: |it| it.tools.contains(&run_terminal_cmd::NAME),
        mode: None,
    },
    PromptBlock {
        name: "long_work",
        text: include_str!("../../../assets/prompts/long_work.md"),
        short: None,
        when: |it| it.tools.contains(&run_terminal_cmd::NAME),
        mode: None,
    },
    PromptBlock {
        name: "citing_code",
        text: include_str!("../../../assets/prompts/citing_code.md"),
        short: Some(include_str!("../../../assets/prompts/short/citing_code.md")),
        when: |_| true,
        mode: None,
    },
    PromptBlock {
        name: "task_management",
        text: include_str!("../../../assets/prompts/task_management.md"),
        short: None,
        when: |it| it.tools.contains(&todo_write::NAME),
        mode: None,
    },
    PromptBlock {
        name: FAMILY,
        text: "",
        short: Some(""),
        when: |it| !it.tools.is_empty(),
        mode: None,
    },
    PromptBlock {
        name: "plan_mode",
        text: include_str!("../../../assets/prompts/modes/plan.md"),
        short: Some(include_str!("../../../assets/prompts/short/plan.md")),
        when: |_| true,
        mode: Some(Mode::Plan),
    },
    PromptBlock {
        name: "ask_mode",
        text: include_str!("../../../assets/prompts/modes/ask.md"),
        short: Some(include_str!("../../../assets/prompts/short/ask.md")),
        when: |_| true,
        mode: Some(Mode::Ask),
    },
    PromptBlock {
        name: "debug_mode",
        text: include_str!("../../../assets/prompts/modes/debug.md"),
        short: Some(include_str!("../../../assets/prompts/short/debug.md")),
        when: |_| true,
        mode: Some(Mode::Debug),
    },
];

/// Returns true for the name of a tool that changes files.
fn changes_files(tool: &str) -> bool {
    built_in().get(tool).is_some_and(|it| it.class == Class::Writes)
}

const REMINDERS: [(Mode, &str); 4] = [
    (Mode::Agent, include_str!("../../../assets/prompts/reminders/agent.md")),
    (Mode::Plan, include_str!("../../../assets/prompts/reminders/plan.md")),
    (Mode::Ask, include_str!("../../../assets/prompts/reminders/ask.md")),
    (Mode::Debug, include_str!("../../../assets/prompts/reminders/debug.md")),
];

/// Models that need to be told the same.
#[derive(serde::Deserialize)]
struct Family {
    name: String,
    /// Parts of their ids.
    models: Vec<String>,
    text: String,
}

/// All families, in the order in which they are tried.
static FAMILIES: LazyLock<Vec<Family>> = LazyLock::new(|| {
    #[derive(serde::Deserialize)]
    struct File {
        family: Vec<Family>,
    }
    let file: File = toml::from_str(include_str!("../../../assets/prompts/families.toml")).expect("a test reads it");
    file.family
});

/// The family of the model; `None`: nothing special is known of it.
fn family(facts: &Facts<'_>) -> Option<&'static Family> {
    if facts.is_short() {
        return FAMILIES.iter().find(|it| it.name == "small");
    }
    let model = facts.model.to_ascii_lowercase();
    let starts_word = |at: usize| {
        !model
            .get(..at)
            .is_some_and(|it| it.ends_with(|it: char| it.is_ascii_alphanumeric()))
    };
    let is_named = |part: &String| model.match_indices(part.as_str()).any(|(at, _)| starts_word(at));
    FAMILIES.iter().find(|it| it.models.iter().any(is_named))
}

/// A mistake in a template of the user's.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unsound(String);

impl PromptBlock {
    /// The text of the block, in its tag; `None` if it is empty for these facts.
    /// `mode`: the one that is entered; `None`: for the system prompt.
    pub(super) fn say(&self, facts: &Facts<'_>, mode: Option<Mode>) -> Option<String> {
        if self.mode != mode || !(self.when)(facts) {
            return None;
        }
        let own = facts.custom.and_then(|it| it.replace.get(self.name));
        let text = match own {
            Some(own) => render(own, facts).unwrap_or_else(|_| own.clone()),
            None => {
                let ours = match self.name {
                    FAMILY => family(facts)?.text.as_str(),
                    _ if facts.is_short() => self.short?,
                    _ => self.text,
                };
                render(ours, facts).expect("every block of ours is rendered by a test")
            }
        };
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        Some(match self.name {
            ROLE => text.to_owned(),
            _ if mode.is_some() => text.to_owned(),
            tag => wrap_ours(tag, text),
        })
    }
}

/// A template with the facts in it. An unknown name in it is an error, never a hole.
pub(super) fn render(template: &str, facts: &Facts<'_>) -> Result<String, Unsound> {
    let model = name(text::visible_line(facts.model).as_str());
    let known = context! {
        model => model,
        tools => facts.tools.iter().copied().map(str::to_owned).collect::<Vec<_>>(),
        tag => DEBUG_TAG,
    };
    let told = |it: minijinja::Error| {
        let line = it.line().map(|it| format!(" in line {it}")).unwrap_or_default();
        let what = it.detail().map_or_else(|| it.kind().to_string(), str::to_owned);
        Unsound(format!("{what}{line}"))
    };
    ENGINE.render_str(template, known).map_err(told)
}

/// A line with nothing but a tag of the template's on it leaves no line behind.
static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut engine = Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    engine.set_syntax(syntax.expect("the marks are the usual ones"));
    engine
});

/// The words about `mode` that go with a message: all of them when it is entered, then a line. Agent mode needs some only
/// after another one.
pub(super) fn reminder(mode: Mode, was: Option<Mode>, facts: &Facts<'_>) -> Option<String> {
    if mode == Mode::Agent && was.is_none_or(|it| it == Mode::Agent) {
        return None;
    }
    let (_, template) = REMINDERS.iter().find(|it| it.0 == mode)?;
    let known = context! { tag => DEBUG_TAG, was => was.unwrap_or_default().as_str() };
    let line = ENGINE.render_str(template, known);
    let line = line.expect("every reminder is rendered by a test").trim().to_owned();
    if was == Some(mode) || mode == Mode::Agent {
        return Some(line);
    }
    let block = BLOCKS.iter().find_map(|it| it.say(facts, Some(mode))).unwrap_or(line);
    let mut parts = Vec::new();
    if let Some(was) = was.filter(|it| *it != Mode::Agent) {
        parts.push(format!("What you were told of {was} mode no longer holds."));
    }
    parts.push(block);
    let runs = facts.tools.contains(&run_terminal_cmd::NAME) && mode.is_read_only();
    let refused = |it: &&&str| {
        let is_unheld = runs && facts.tier != Tier::Full && **it == run_terminal_cmd::NAME;
        is_unheld || built_in().get(it).is_some_and(|it| !it.modes.contains(&mode))
    };
    let refused: Vec<String> = facts.tools.iter().filter(refused).map(|it| format!("`{it}`")).collect();
    if !refused.is_empty() {
        parts.push(format!(
            "Calls of these tools are refused in {mode} mode: {}.",
            refused.join(", ")
        ));
    }
    if runs && facts.tier == Tier::Full {
        parts.push(format!(
            "Commands run in {mode} mode, but cannot change anything: they read the workspace, write in /tmp only, have no \
             network, and get no permissions. Use them to look, such as `git log`, or a test that needs no network. They do \
             not reach servers that you have started."
        ));
    }
    Some(parts.join("\n\n"))
}
