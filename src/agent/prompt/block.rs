//! The blocks of the system prompt, as templates, and when each is said.

use std::sync::LazyLock;

use minijinja::{Environment, UndefinedBehavior, context, syntax::SyntaxConfig};

use super::{DEBUG_TAG, Facts};
use crate::{
    agent::tags::{name, wrap_ours},
    protocol::Mode,
    text,
    tools::{Class, built_in, todo_write},
};

/// A part of the system prompt.
pub struct PromptBlock {
    /// Its tag, and its name in the configuration. [`ROLE`] comes first and has no tag.
    pub name: &'static str,
    /// A template: `mode`, `model`, `tools`, `tag` are known in it.
    pub text: &'static str,
    /// The text for a small window; `None`: the block is left out.
    pub short: Option<&'static str>,
    when: fn(&Facts<'_>) -> bool,
}

const ROLE: &str = "role";

/// All blocks, in the order of the prompt. The words for it are the same in every conversation, so they come first.
pub const BLOCKS: &[PromptBlock] = &[
    PromptBlock {
        name: ROLE,
        text: include_str!("../../../assets/prompts/role.md"),
        short: Some(include_str!("../../../assets/prompts/short/role.md")),
        when: |_| true,
    },
    PromptBlock {
        name: "communication",
        text: include_str!("../../../assets/prompts/communication.md"),
        short: None,
        when: |_| true,
    },
    PromptBlock {
        name: "no_tools",
        text: include_str!("../../../assets/prompts/no_tools.md"),
        short: Some(include_str!("../../../assets/prompts/no_tools.md")),
        when: |it| it.tools.is_empty(),
    },
    PromptBlock {
        name: "tool_calling",
        text: include_str!("../../../assets/prompts/tool_calling.md"),
        short: Some(include_str!("../../../assets/prompts/short/tool_calling.md")),
        when: |it| !it.tools.is_empty(),
    },
    PromptBlock {
        name: "maximize_parallel_tool_calls",
        text: include_str!("../../../assets/prompts/maximize_parallel_tool_calls.md"),
        short: None,
        when: |it| it.parallel && it.tools.len() > 1,
    },
    PromptBlock {
        name: "maximize_context_understanding",
        text: include_str!("../../../assets/prompts/maximize_context_understanding.md"),
        short: None,
        when: |_| true,
    },
    PromptBlock {
        name: "making_code_changes",
        text: include_str!("../../../assets/prompts/making_code_changes.md"),
        short: Some(include_str!("../../../assets/prompts/short/making_code_changes.md")),
        when: |it| !it.mode.is_read_only() && it.tools.iter().any(|it| changes_files(it)),
    },
    PromptBlock {
        name: "citing_code",
        text: include_str!("../../../assets/prompts/citing_code.md"),
        short: Some(include_str!("../../../assets/prompts/short/citing_code.md")),
        when: |_| true,
    },
    PromptBlock {
        name: "task_management",
        text: include_str!("../../../assets/prompts/task_management.md"),
        short: None,
        when: |it| !it.mode.is_read_only() && it.tools.contains(&todo_write::NAME),
    },
    PromptBlock {
        name: "plan_mode",
        text: include_str!("../../../assets/prompts/modes/plan.md"),
        short: Some(include_str!("../../../assets/prompts/short/plan.md")),
        when: |it| it.mode == Mode::Plan,
    },
    PromptBlock {
        name: "ask_mode",
        text: include_str!("../../../assets/prompts/modes/ask.md"),
        short: Some(include_str!("../../../assets/prompts/short/ask.md")),
        when: |it| it.mode == Mode::Ask,
    },
    PromptBlock {
        name: "debug_mode",
        text: include_str!("../../../assets/prompts/modes/debug.md"),
        short: Some(include_str!("../../../assets/prompts/short/debug.md")),
        when: |it| it.mode == Mode::Debug,
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

/// A mistake in a template of the user's.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unsound(String);

impl PromptBlock {
    /// The text of the block, in its tag; `None` if it is empty for these facts.
    pub(super) fn say(&self, facts: &Facts<'_>) -> Option<String> {
        if !(self.when)(facts) {
            return None;
        }
        let own = facts.custom.and_then(|it| it.replace.get(self.name));
        let text = match own {
            Some(own) => render(own, facts).unwrap_or_else(|_| own.clone()),
            None => {
                let ours = if facts.is_short() { self.short? } else { self.text };
                render(ours, facts).expect("every block of ours is rendered for every mode by a test")
            }
        };
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        Some(match self.name {
            ROLE => text.to_owned(),
            tag => wrap_ours(tag, text),
        })
    }
}

/// A template with the facts in it. An unknown name in it is an error, never a hole.
pub(super) fn render(template: &str, facts: &Facts<'_>) -> Result<String, Unsound> {
    let model = name(text::visible_line(facts.model).as_str());
    let known = context! {
        mode => facts.mode.as_str(),
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

/// The words about `mode` that go with a message; agent mode needs some only after another one.
pub(super) fn reminder(mode: Mode, was: Option<Mode>) -> Option<String> {
    if mode == Mode::Agent && was.is_none_or(|it| it == Mode::Agent) {
        return None;
    }
    let (_, template) = REMINDERS.iter().find(|it| it.0 == mode)?;
    let known = context! { tag => DEBUG_TAG, was => was.unwrap_or_default().as_str() };
    let said = ENGINE.render_str(template, known);
    Some(said.expect("every reminder is rendered by a test").trim().to_owned())
}
