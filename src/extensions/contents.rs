//! The parts of a plugin, as a person is shown them before the yes.

use super::{
    Surroundings,
    command::find_commands,
    hooks::{Isolation, find_hooks},
    mode::find_modes,
    plugin::Plugin,
    skill::find_skills,
    style::style_names,
};

/// Lists the parts of a plugin, a line each: the kind, then the name and the purpose. Reads its files.
pub fn plugin_contents(plugin: &Plugin) -> Vec<(&'static str, String)> {
    let around = Surroundings {
        plugins: vec![plugin.clone()],
        ..Surroundings::default()
    };
    let nothing_else = |_: &str, _: &_| true;
    let mut lines = Vec::new();
    let named = |name: &str, about: &str| {
        let about = about.split_whitespace().collect::<Vec<_>>().join(" ");
        if about.is_empty() {
            name.to_owned()
        } else {
            format!("{name}: {about}")
        }
    };
    let skills = find_skills(&around, &nothing_else);
    lines.extend(
        skills
            .skills
            .iter()
            .map(|it| ("skill", named(&it.name, &it.description))),
    );
    let (commands, _) = find_commands(&around, &nothing_else);
    lines.extend(
        commands
            .iter()
            .map(|it| ("command", named(&format!("/{}", it.name), &it.about))),
    );
    let modes = find_modes(&around, &nothing_else);
    lines.extend(modes.modes.iter().map(|it| ("mode", named(&it.name, &it.about))));
    lines.extend(style_names(&around).into_iter().map(|it| ("output style", it)));
    lines.extend(plugin.rules().into_iter().map(|it| ("rule", it.0)));
    let hooks = find_hooks(&around, (&[], ""), Isolation::Sandbox, &nothing_else);
    lines.extend(hooks.hooks.iter().map(|it| ("hook", named(&it.event, &it.command))));
    let servers = plugin.servers.iter();
    lines.extend(servers.map(|it| ("MCP server", named(&it.name, &it.about()))));
    let servers = plugin.language_servers.iter();
    lines.extend(servers.map(|(name, it)| {
        let command = it.command.iter().chain(&it.args).cloned().collect::<Vec<_>>().join(" ");
        (
            "language server",
            named(name, &format!("{command} ({})", it.extensions.join(" "))),
        )
    }));
    lines.extend(
        hooks
            .unsupported
            .iter()
            .map(|it| ("not supported", format!("hook {}", it.1))),
    );
    lines.extend(plugin.unused.iter().map(|it| ("not used", it.clone())));
    let problems = [skills.problems, modes.problems, hooks.problems].concat();
    let base = plugin.prefix();
    let problems = problems
        .iter()
        .map(|(path, why)| format!("{}: {why}", path.replacen(&base, "", 1)));
    lines.extend(problems.chain(plugin.problems.clone()).map(|it| ("problem", it)));
    lines
}
