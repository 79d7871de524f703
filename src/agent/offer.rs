//! Which tools a conversation has: what the settings allow, the model is fit for and this place can do.

use super::rules::Globs;
use crate::{
    config::Settings,
    protocol::{Mode, NotOffered},
    sandbox::Place,
    tool::{Access, Class, TOOLS, Tool, read_lints, web_search},
};

/// What a small window has room for.
const SHORT: [&str; 10] = [
    "read_file",
    "grep",
    "glob_file_search",
    "list_dir",
    "search_replace",
    "write",
    "run_terminal_cmd",
    "ask",
    "todo_write",
    "create_plan",
];
/// Below so many tokens a window is small.
const SMALL_TOKENS: u64 = 32_000;

/// The tools that `model` with `window` tokens may be offered in some mode, of `from`.
pub fn tools(settings: &Settings, model: &str, window: Option<u64>, from: &[&'static Tool]) -> Vec<&'static Tool> {
    let is_short = match settings.agent.profile.as_str() {
        "full" => false,
        "short" => true,
        _ => window.is_some_and(|it| it < SMALL_TOKENS),
    };
    let style = settings.agent.edit_style.as_str();
    // Some tool for changes there has to be.
    let is_short_one = |it: &Tool| SHORT.contains(&it.name) || (it.name == "edit_file" && style == "sketch");
    // The user says so; what is known of families of models is not sure enough for that.
    let takes_none = settings.models.get(model).is_some_and(|it| it.tools == Some(false));
    let fits = |it: &Tool| {
        let style = match it.name {
            "edit_file" => style != "replace" || settings.roles.apply.is_some(),
            "search_replace" => style != "sketch",
            "apply_patch" => knows_patches(model),
            _ => true,
        };
        let is_on = settings.tools.get(it.name).is_none_or(|it| it.enabled);
        let is_there = it.name != web_search::TOOL.name || web_search::is_available(settings);
        style && is_on && is_there && !takes_none && (!is_short || is_short_one(it))
    };
    from.iter().copied().filter(|it| fits(it)).collect()
}

/// Tools of `from` that are not offered, and why.
pub fn missing(
    settings: &Settings,
    model: &str,
    window: Option<u64>,
    from: &[&'static Tool],
) -> Vec<(String, NotOffered)> {
    let there = tools(settings, model, window, from);
    let gone = from.iter().filter(|it| !there.contains(it));
    let why = |it: &Tool| match it.name {
        _ if settings.tools.get(it.name).is_some_and(|it| !it.enabled) => NotOffered::SwitchedOff,
        _ if settings.models.get(model).is_some_and(|it| it.tools == Some(false)) => NotOffered::ModelCallsNone,
        "web_search" if settings.web.search.kind.is_none() => NotOffered::NoSearchService,
        "edit_file" | "search_replace" => NotOffered::EditStyle,
        "apply_patch" => NotOffered::OtherModels,
        _ => NotOffered::SmallWindow,
    };
    gone.map(|it| (it.name.to_owned(), why(it))).collect()
}

/// Whether a tool leaves files and the machine as they are. To look for lints runs what checks the workspace, and that runs
/// code of the workspace: build scripts, plugins.
pub fn only_looks(tool: &Tool) -> bool {
    match tool.class {
        Class::Reads => *tool != read_lints::TOOL,
        Class::Talks | Class::State => true,
        Class::Writes | Class::Runs => false,
    }
}

/// Whether the user lets `tool` be used in `mode`; that the mode permits it is another matter.
pub fn is_in_scope(settings: &Settings, tool: &Tool, mode: Mode) -> bool {
    let scope = settings.tools.get(tool.name).and_then(|it| it.modes.as_ref());
    scope.is_none_or(|it| it.iter().any(|it| Mode::parse(it) == Some(mode)))
}

/// Whether the user wants every use of `tool` to be asked for.
pub fn must_ask(settings: &Settings, tool: &Tool) -> bool {
    settings.tools.get(tool.name).is_some_and(|it| it.require_approval)
}

/// A path that a call would touch and that the user keeps from the tool.
pub fn out_of_bounds(settings: &Settings, tool: &Tool, accesses: &[Access]) -> Option<String> {
    let allowed = settings.tools.get(tool.name)?.allowed_paths.as_ref()?;
    let (globs, _) = Globs::new(allowed);
    let place = accesses.iter().filter_map(|it| match it {
        Access::Read(place) | Access::Write(place) | Access::Delete(place) => Some(place),
        Access::Command { .. } | Access::Fetch { .. } | Access::Search | Access::Mcp { .. } => None,
    });
    let mut outside = place.filter(|it| it.place != Place::Inside || !globs.matches(&it.shown));
    outside.next().map(|it| it.shown.clone())
}

/// Models that were trained on the envelope of `apply_patch`.
fn knows_patches(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    ["gpt-4.1", "gpt-5", "gpt-6", "codex", "o3", "o4"]
        .iter()
        .any(|it| name.starts_with(it))
}

/// Names in the settings that are no tool's.
pub fn unknown(settings: &Settings) -> Vec<&str> {
    let is_tool = |name: &str| TOOLS.iter().any(|it| it.name == name);
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
        tools(settings, model, window, TOOLS).iter().map(|it| it.name).collect()
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
        let missing = missing(&settings, "m", None, TOOLS);
        assert!(missing.iter().all(|(_, why)| *why == NotOffered::ModelCallsNone));
        assert_eq!(missing.len(), TOOLS.len());
    }
}
