//! Which tools a conversation has: what the settings allow, the model is fit for and this place can do.

use std::sync::Arc;

use crate::{
    agent::glob::Globs,
    config::Settings,
    extensions::{AllowedTool, CustomMode, ToolGroup},
    mcp::model_name,
    models::ToolSpec,
    protocol::{Mode, NotOffered},
    sandbox::Place,
    tools::{Access, Class, Tool, ToolSet, built_in, skill, web_search},
};

/// Name of the tool that a provider may have itself.
const SEARCH: &str = "web_search";

/// Windows with fewer tokens are small.
const SMALL_TOKENS: u64 = 32_000;

/// The tools of `from` that `model` with `window` tokens may be offered in some mode.
pub fn tools(settings: &Settings, model: &str, window: Option<u64>, from: &ToolSet) -> ToolSet {
    let tools = from.filtered(|it| withheld(settings, model, window, it).is_none());
    let is_by_mode = from.is_by_mode() || is_small(settings, window);
    tools.by_mode(is_by_mode)
}

/// The tools of `from` that some mode allows: what the system prompt speaks of.
pub fn of_all_modes<'a>(settings: &'a Settings, from: &'a ToolSet) -> impl Iterator<Item = &'a Arc<Tool>> {
    let is_in_some = |it: &&Arc<Tool>| !it.is_hidden && it.modes.iter().any(|mode| is_in_scope(settings, it, *mode));
    from.iter().filter(is_in_some)
}

/// The tools of `from` that may be used in `mode`.
pub fn of_mode<'a>(settings: &'a Settings, from: &'a ToolSet, mode: Mode) -> impl Iterator<Item = &'a Arc<Tool>> {
    let is_in_force =
        move |it: &&Arc<Tool>| !it.is_hidden && it.modes.contains(&mode) && is_in_scope(settings, it, mode);
    from.iter().filter(is_in_force)
}

/// The description of a tool for a model. The web search of a provider has none of ours.
pub fn spec(settings: &Settings, tool: &Tool) -> Arc<ToolSpec> {
    if tool.name == SEARCH && web_search::is_by_provider(settings) {
        return ToolSpec::at_provider(SEARCH).into();
    }
    tool.spec()
}

/// The list of a request: the same in all modes, or the tools of the mode for those who get no more.
pub fn listed<'a>(settings: &'a Settings, from: &'a ToolSet, mode: Mode) -> Vec<&'a Arc<Tool>> {
    if from.is_by_mode() {
        of_mode(settings, from, mode).collect()
    } else {
        of_all_modes(settings, from).collect()
    }
}

fn is_small(settings: &Settings, window: Option<u64>) -> bool {
    match settings.agent.profile.as_str() {
        "full" => false,
        "short" => true,
        _ => window.is_some_and(|it| it < SMALL_TOKENS),
    }
}

/// The names of the tools of `from` that are not offered, and why.
pub fn missing(settings: &Settings, model: &str, window: Option<u64>, from: &ToolSet) -> Vec<(String, NotOffered)> {
    let why = |it: &Arc<Tool>| Some((it.name.clone(), withheld(settings, model, window, it)?));
    from.iter().filter_map(why).collect()
}

/// Returns the reason for which a tool is not offered; `None`: it is.
fn withheld(settings: &Settings, model: &str, window: Option<u64>, tool: &Tool) -> Option<NotOffered> {
    let is_small = is_small(settings, window);
    if settings.tools.get(&tool.name).is_some_and(|it| !it.enabled) {
        return Some(NotOffered::SwitchedOff);
    }
    // The user says so; what is known of families of models is not sure enough for that.
    if settings.models.get(model).is_some_and(|it| it.tools == Some(false)) {
        return Some(NotOffered::ModelCallsNone);
    }
    let own = (tool.withheld)(settings, model, is_small);
    own.or_else(|| (is_small && !tool.is_basic).then_some(NotOffered::SmallWindow))
}

/// Returns true if the user's settings allow `tool` in `mode`; the mode's own limits are checked elsewhere.
pub fn is_in_scope(settings: &Settings, tool: &Tool, mode: Mode) -> bool {
    let scope = settings.tools.get(&tool.name).and_then(|it| it.modes.as_ref());
    scope.is_none_or(|it| it.iter().any(|it| Mode::parse(it) == Some(mode)))
}

/// Returns true if a custom mode allows `tool`; the limits of the mode that it narrows are checked elsewhere.
pub fn is_in(mode: &CustomMode, tool: &Tool) -> bool {
    // Talking to the user and keeping a list change nothing.
    if matches!(tool.class, Class::Talks | Class::State) {
        return true;
    }
    let means = |it: &AllowedTool| match it {
        // The commands of a skill are judged by themselves.
        AllowedTool::Group(ToolGroup::Reads) => tool.only_looks() || tool.is_apart || tool.name == skill::NAME,
        AllowedTool::Group(ToolGroup::Edits) => tool.class == Class::Writes,
        AllowedTool::Group(ToolGroup::Runs) => tool.class == Class::Runs && !tool.is_apart,
        AllowedTool::Named(name) => names_tool(name, tool),
    };
    mode.tools.as_ref().is_none_or(|it| it.iter().any(means)) && !mode.without.iter().any(means)
}

/// Returns true if `name` is a name of `tool`: its own, one that models know it by, or another program's.
fn names_tool(name: &str, tool: &Tool) -> bool {
    let others = tool
        .aliases
        .iter()
        .map(String::as_str)
        .chain(tool.foreign_names.iter().copied());
    let is_named = std::iter::once(tool.name.as_str())
        .chain(others)
        .any(|it| it.eq_ignore_ascii_case(name));
    // Other programs have one tool where there are several here.
    let group = match name.to_ascii_lowercase().as_str() {
        "edit" | "write" | "multiedit" | "patch" => tool.class == Class::Writes,
        "bash" | "shell" => tool.name == "run_terminal_cmd" || tool.name == "await_command",
        "ls" | "list" => tool.name == "list_dir",
        "glob" => tool.name == "glob_file_search",
        "webfetch" => tool.name == "web_fetch",
        "websearch" => tool.name == "web_search",
        _ => false,
    };
    is_named || group
}

/// Returns true if the user wants to be asked about every use of `tool`, or of a server's tool that it calls.
pub fn must_ask(settings: &Settings, tool: &Tool, accesses: &[Access]) -> bool {
    let is_wanted = |name: &str| settings.tools.get(name).is_some_and(|it| it.require_approval);
    is_wanted(&tool.name) || called(accesses).any(|it| is_wanted(&it))
}

/// A server's tool that a call would use although it is switched off, or not for `mode`.
pub fn switched_off(settings: &Settings, accesses: &[Access], mode: Mode) -> Option<String> {
    called(accesses).find(|name| {
        settings.tools.get(name).is_some_and(|it| {
            let is_for_mode = |modes: &Vec<String>| modes.iter().any(|it| Mode::parse(it) == Some(mode));
            !it.enabled || !it.modes.as_ref().is_none_or(is_for_mode)
        })
    })
}

/// Names of the servers' tools that a call uses: a tool that stands for all of them has another name.
fn called(accesses: &[Access]) -> impl Iterator<Item = String> {
    accesses.iter().filter_map(|it| match it {
        Access::Mcp { server, tool } => Some(model_name(server, tool)),
        _ => None,
    })
}

/// A path that a call would touch and that the user keeps from the tool.
pub fn out_of_bounds(settings: &Settings, tool: &str, accesses: &[Access]) -> Option<String> {
    let allowed = settings.tools.get(tool)?.allowed_paths.as_ref()?;
    let (globs, _) = Globs::new(allowed);
    let place = accesses.iter().filter_map(|it| match it {
        Access::Read(place) | Access::Write(place) | Access::Delete(place) => Some(place),
        Access::Command { .. } | Access::Fetch { .. } | Access::Search | Access::Mcp { .. } => None,
    });
    let mut outside = place.filter(|it| it.place != Place::Inside || !globs.matches(&it.shown));
    outside.next().map(|it| it.shown.clone())
}

/// Names in the settings that are no tool's.
pub fn unknown(settings: &Settings) -> Vec<&str> {
    // The tools of servers are not known before they are started.
    let is_tool = |name: &str| built_in().get(name).is_some() || name.starts_with("mcp_");
    settings
        .tools
        .keys()
        .map(String::as_str)
        .filter(|it| !is_tool(it))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Model;

    fn names(settings: &Settings, model: &str, window: Option<u64>) -> Vec<&'static str> {
        let tools = tools(settings, model, window, built_in());
        let offered = built_in().iter().filter(|it| tools.contains(it));
        offered.map(|it| it.name.as_str()).collect()
    }

    #[test]
    fn a_custom_mode_allows_what_it_names_and_what_changes_nothing() {
        let mode = |tools: Option<Vec<AllowedTool>>| CustomMode {
            name: "m".to_owned(),
            about: String::new(),
            base: Mode::Agent,
            tools,
            without: Vec::new(),
            model: None,
            effort: None,
            prompt: String::new(),
            path: String::new(),
        };
        let allowed = |tools: Option<Vec<AllowedTool>>| -> Vec<&str> {
            let mode = mode(tools);
            let named = built_in().iter().filter(|it| is_in(&mode, it));
            named.map(|it| it.name.as_str()).collect()
        };
        assert_eq!(allowed(None).len(), built_in().len());
        let reads = allowed(Some(vec![AllowedTool::Group(ToolGroup::Reads)]));
        for (tool, is_in) in [
            ("read_file", true),
            ("grep", true),
            ("web_fetch", true),
            ("ask", true),
            ("todo_write", true),
            ("skill", true),
            ("write", false),
            ("apply_patch", false),
            ("run_terminal_cmd", false),
            ("read_lints", false),
        ] {
            assert_eq!(reads.contains(&tool), is_in, "{tool}");
        }
        let mut narrowed = mode(None);
        narrowed.without = ["bash", "WebFetch"]
            .map(|it| AllowedTool::Named(it.to_owned()))
            .to_vec();
        for (tool, expected) in [
            ("read_file", true),
            ("write", true),
            ("run_terminal_cmd", false),
            ("web_fetch", false),
        ] {
            let tool = built_in().iter().find(|it| it.name == tool).expect("it is there");
            assert_eq!(is_in(&narrowed, tool), expected, "{}", tool.name);
        }
        let named = ["Read", "Edit", "Bash"].map(|it| AllowedTool::Named(it.to_owned()));
        let named = allowed(Some(named.to_vec()));
        for (tool, is_in) in [
            ("read_file", true),
            ("write", true),
            ("search_replace", true),
            ("run_terminal_cmd", true),
            ("grep", false),
        ] {
            assert_eq!(named.contains(&tool), is_in, "{tool}");
        }
        assert_eq!(
            allowed(Some(Vec::new())),
            ["todo_write", "create_plan", "ask", "switch_mode"]
        );
    }

    #[test]
    fn a_small_window_is_offered_the_few_that_matter_most() {
        let short = [
            "grep",
            "read_file",
            "glob_file_search",
            "list_dir",
            "search_replace",
            "write",
            "run_terminal_cmd",
            "todo_write",
            "create_plan",
            "ask",
            "skill",
        ];
        let mut settings = Settings::default();
        assert_eq!(names(&settings, "m", Some(8192)), short);
        assert_eq!(names(&settings, "m", Some(31_999)), short);
        for window in [Some(32_000), Some(200_000), None] {
            let all = names(&settings, "m", window);
            assert!(
                all.contains(&"codebase_search") && all.contains(&"switch_mode"),
                "{window:?}"
            );
        }
        settings.agent.profile = "full".to_owned();
        assert!(names(&settings, "m", Some(8192)).contains(&"codebase_search"));
        settings.agent.profile = "short".to_owned();
        assert_eq!(names(&settings, "m", None), short);
        // Whatever way of changing files is wanted, there is one.
        settings.agent.edit_style = "sketch".to_owned();
        let sketching = names(&settings, "m", None);
        assert!(sketching.contains(&"edit_file") && !sketching.contains(&"search_replace"));
    }

    #[test]
    fn the_tools_that_edit_follow_the_style_and_the_model() {
        let mut settings = Settings::default();
        let edits = |settings: &Settings, model: &str| {
            let mut names = names(settings, model, None);
            names.retain(|it| ["edit_file", "search_replace", "apply_patch"].contains(it));
            names
        };
        assert_eq!(edits(&settings, "m"), ["search_replace"]);
        assert_eq!(
            edits(&settings, "openai/gpt-5.1-codex"),
            ["search_replace", "apply_patch"]
        );
        settings.roles.apply = Some("fast/merger".to_owned());
        assert_eq!(edits(&settings, "m"), ["edit_file", "search_replace"]);
        settings.roles.apply = None;
        settings.agent.edit_style = "both".to_owned();
        assert_eq!(edits(&settings, "m"), ["edit_file", "search_replace"]);
        settings.agent.edit_style = "sketch".to_owned();
        assert_eq!(edits(&settings, "m"), ["edit_file"]);
    }

    #[test]
    fn a_model_that_calls_no_tools_is_offered_none_and_that_is_said() {
        let mut settings = Settings::default();
        let own = Model {
            tools: Some(false),
            ..Model::default()
        };
        settings.models.insert("m".to_owned(), own);
        assert!(names(&settings, "m", None).is_empty());
        assert!(!names(&settings, "n", None).is_empty());
        let missing = missing(&settings, "m", None, built_in());
        assert!(missing.iter().all(|(_, why)| *why == NotOffered::ModelCallsNone));
        assert_eq!(missing.len(), built_in().len());
    }
}
