//! Tests of layers: which value wins, and which problems are reported.

mod files;
mod whom;

use std::time::Duration;

use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;
use crate::config::KeySource;
use crate::config::{ConfiguredRule, Secret, Upstream, explain};

fn file(name: &str, text: &str) -> SettingsFile {
    SettingsFile::of_user(name, text)
}

fn environment(words: &str) -> Environment {
    words.split_whitespace().filter_map(|it| it.split_once('=')).collect()
}

fn read(user: &str) -> (Settings, Vec<String>) {
    all(user, "", "", &CommandLineSettings::default())
}

fn all(user: &str, project: &str, variables: &str, options: &CommandLineSettings) -> (Settings, Vec<String>) {
    let user = file("config.toml", user);
    let project = file("project.toml", project);
    let (settings, problems) = merge(Some(&user), Some(&project), &environment(variables), options);
    (settings, problems.iter().map(ToString::to_string).collect())
}

const NOTHING: [&str; 0] = [];

#[test]
fn nothing_at_all_gives_the_defaults() {
    let (settings, problems) = merge(None, None, &Environment::default(), &CommandLineSettings::default());
    assert_eq!((settings, problems), (Settings::default(), vec![]));
    assert_eq!(Settings::default().upstream(), Upstream::Nobody);
}

#[test]
fn every_kind_of_value_arrives() {
    let (settings, problems) = read(
        r#"
        provider = "local"
        theme = "owl"
        color = false
        [gateway]
        url = "https://gateway.example.com/"
        token_command = "pass show gateway"
        dialect = "b"
        headers = { X-Team = "ours" }
        idle_timeout = "90s"
        [providers.local]
        base_url = "http://127.0.0.1:8080/v1"
        key_command = ["pass", "show", "local"]
        allow_fields = ["tools", "stream_options"]
        max_tokens = 4_096
        temperature = 1
        first_byte_timeout = "10m"
        ca_file = "~/ca.pem"
        [models."gpt-4.1/mini"]
        window = 0x20000
        price_in = 0.4
        [serve]
        max_streams = 8
        allow_host = ["a.example", "b.example"]
        "#,
    );
    assert_eq!(problems, NOTHING);
    assert_eq!(settings.provider.as_deref(), Some("local"));
    assert_eq!(
        (settings.theme.as_str(), settings.color, settings.motion),
        ("owl", false, true)
    );
    let gateway = &settings.gateway;
    assert_eq!(gateway.connection.url(), Ok("https://gateway.example.com"));
    let line = ["sh", "-c", "pass show gateway"].map(str::to_owned).to_vec();
    assert_eq!(gateway.token, KeySource::Command(line));
    assert_eq!(gateway.dialect, "b");
    assert_eq!(gateway.connection.headers["X-Team"].expose(), "ours");
    assert_eq!(gateway.connection.idle_timeout, Duration::from_secs(90));
    assert_eq!(gateway.connection.connect_timeout, Duration::from_secs(10));
    let local = &settings.providers["local"];
    assert_eq!(
        local.key,
        KeySource::Command(["pass", "show", "local"].map(str::to_owned).to_vec())
    );
    assert_eq!(
        local.allow_fields,
        Some(vec!["tools".to_owned(), "stream_options".to_owned()])
    );
    assert_eq!((local.max_tokens, local.temperature), (Some(4096), Some(1.0)));
    assert_eq!(local.connection.first_byte_timeout, Duration::from_mins(10));
    let model = &settings.models["gpt-4.1/mini"];
    assert_eq!(
        (model.window, model.price_in, model.price_out),
        (Some(131_072), Some(0.4), None)
    );
    assert_eq!(settings.serve.allow_host, ["a.example", "b.example"]);
}

#[test]
fn a_project_only_adds_to_what_is_asked_and_denied_and_makes_runs_stricter() {
    let user = "approvals = { run = 'list', allow = ['Shell(ls)'], ask = ['Shell(a)'], deny = ['Shell(b)'] }";
    let project = "approvals = { run = 'ask', ask = ['Shell(c)'], deny = [{ rule = 'Shell(d)', match = 'd x' }] }";
    let (settings, problems) = all(user, project, "", &CommandLineSettings::default());
    assert_eq!(problems, NOTHING);
    let names = |guards: &[ConfiguredRule]| guards.iter().map(|it| it.rule.clone()).collect::<Vec<_>>();
    let approvals = &settings.approvals;
    assert_eq!(approvals.run, "ask");
    assert_eq!(names(&approvals.allow), ["Shell(ls)"]);
    assert_eq!(names(&approvals.ask), ["Shell(a)", "Shell(c)"]);
    assert_eq!(names(&approvals.deny), ["Shell(b)", "Shell(d)"]);
    assert_eq!(approvals.deny[1].matches, ["d x"]);
    assert_eq!(settings.origin("approvals.run").to_string(), "project.toml:1:21");

    let project = "approvals.run = 'sandbox'\napprovals.allow = ['Shell(rm)']\nweb.allow_private = ['localhost']\nweb.search.url = 'https://x.example'";
    let (settings, problems) = all(user, project, "", &CommandLineSettings::default());
    assert_eq!(settings.approvals.run, "list");
    assert_eq!(names(&settings.approvals.allow), ["Shell(ls)"]);
    assert_eq!(
        problems,
        [
            "project.toml:1:17: a project may not loosen `approvals.run` from `list` to `sandbox`\n  it belongs into your own config.toml",
            "project.toml:2:11: a project may not set `approvals.allow`\n  it belongs into your own config.toml",
            "project.toml:3:5: a project may not set `web.allow_private`\n  it belongs into your own config.toml",
            "project.toml:4:12: a project may not set `web.search.url`\n  it belongs into your own config.toml",
        ]
    );
    // The user's own word in the environment comes after it.
    let (settings, _) = all(
        user,
        "approvals.run = 'ask'",
        "SHEAF_APPROVALS_RUN=sandbox",
        &CommandLineSettings::default(),
    );
    assert_eq!(settings.approvals.run, "sandbox");
}

#[test]
fn a_rule_is_a_text_or_a_table_with_examples() {
    let (settings, problems) = read(
        "[approvals]\nallow = ['Shell(a, b)', { rule = 'Shell(git push)', match = ['git push x'], not_match = ['git pull'] }]",
    );
    assert_eq!(problems, NOTHING);
    let expected = ConfiguredRule {
        rule: "Shell(git push)".to_owned(),
        matches: vec!["git push x".to_owned()],
        not_matches: vec!["git pull".to_owned()],
    };
    assert_eq!(settings.approvals.allow, [ConfiguredRule::new("Shell(a, b)"), expected]);
    for (text, expected) in [
        (
            "allow = [3]",
            "`approvals.allow`: every entry of the list must be a text or a table",
        ),
        (
            "allow = 'Shell(a)'",
            "`approvals.allow`: expected list of rules, found a string",
        ),
        (
            "allow = [{ match = 'a' }]",
            "`approvals.allow`: an entry of the list has no `rule`",
        ),
        (
            "allow = [{ rule = 'Shell(a)', matches = 'a' }]",
            "`approvals.allow`: a rule has no `matches`\n  did you mean `match`?",
        ),
        (
            "allow = [{ rule = 'Shell(a)', match = 3 }]",
            "`approvals.allow`: the `match` of a rule is text",
        ),
    ] {
        let (settings, problems) = read(&format!("[approvals]\n{text}"));
        assert!(problems.len() == 1 && problems[0].contains(expected), "{problems:?}");
        assert_eq!(settings.approvals.allow, []);
    }
    let options = CommandLineSettings {
        set: vec!["approvals.allow=Shell(a, b)".to_owned()],
        ..CommandLineSettings::default()
    };
    let (settings, _) = all("", "", "", &options);
    assert_eq!(
        settings.approvals.allow,
        [ConfiguredRule::new("Shell(a, b)")],
        "a comma is part of the rule"
    );
    let set = [
        r#"approvals.allow=["Shell(a, b)", "Read(c)"]"#,
        r#"roles.fallback=["one", "two, too"]"#,
        r#"lint.rust=["cargo", "clippy"]"#,
        r"lint.go=[ -f go.mod ] && go vet",
    ];
    let options = CommandLineSettings {
        set: set.map(str::to_owned).to_vec(),
        ..CommandLineSettings::default()
    };
    let (settings, problems) = all("", "", "", &options);
    assert_eq!(problems, NOTHING);
    assert_eq!(
        settings.approvals.allow,
        [ConfiguredRule::new("Shell(a, b)"), ConfiguredRule::new("Read(c)")],
        "a list is one as in a file"
    );
    assert_eq!(settings.roles.fallback, ["one", "two, too"]);
    assert_eq!(settings.lint["rust"], ["cargo", "clippy"]);
    assert_eq!(settings.lint["go"], ["sh", "-c", "[ -f go.mod ] && go vet"]);
}

#[test]
fn a_later_layer_wins_and_each_value_knows_where_it_comes_from() {
    let user = "theme = 'user'\nmodel = 'user'\nmode = 'ask'\nui.output_rows = 5";
    let project = "theme = 'project'\nmodel = 'project'\nmode = 'plan'";
    let options = CommandLineSettings {
        theme: Some("flag".to_owned()),
        ..CommandLineSettings::default()
    };
    let (settings, problems) = all(user, project, "SHEAF_THEME=variable SHEAF_MODEL=variable", &options);
    assert_eq!(problems, NOTHING);
    let seen = (
        settings.theme.as_str(),
        settings.model.as_deref(),
        settings.mode.as_str(),
    );
    assert_eq!(seen, ("flag", Some("variable"), "plan"));
    assert_eq!(settings.ui.output_rows, 5);
    let origins = ["theme", "model", "mode", "ui.output_rows", "mouse"].map(|it| settings.origin(it).to_string());
    assert_eq!(
        origins,
        [
            "--theme",
            "$SHEAF_MODEL",
            "project.toml:3:8",
            "config.toml:4:18",
            "default"
        ]
    );
    assert_eq!(settings.origin("mode").layer, Layer::Project);
}

#[test]
fn every_mistake_is_named_at_once_and_the_rest_holds() {
    let (settings, problems) = read(concat!(
        "them = 'owl'\n",
        "mode = 'plam'\n",
        "motion = 'no'\n",
        "theme = 3\n",
        "idle_timeout = '60s'\n",
        "gateway = 'http://localhost'\n",
        "mouse = false\n",
        "[providers.local]\n",
        "base_ulr = 'http://localhost:1/v1'\n",
        "base_url = 'localhost:1/v1'\n",
        "idle_timeout = 60\n",
        "first_byte_timeout = '60 parsecs'\n",
        "connect_timeout = '0s'\n",
        "max_tokens = -1\n",
        "kind = 'opanai'\n",
        "headers = { 'X Y' = 'z' }\n",
        "allow_fields = ['a', 1]\n",
        "key_command = []\n",
        "[serve]\n",
        "max_streams = 0\n",
        "[modles.x]\n",
        "window = 1\n",
    ));
    assert_eq!(
        problems,
        [
            "config.toml:1:1: unknown key `them`\n  did you mean `theme`?",
            "config.toml:2:8: `mode`: `plam` is not among its values\n  did you mean `plan`?",
            "config.toml:3:10: `motion`: expected true | false, found a string\n  without quotes",
            "config.toml:4:9: `theme`: expected text, found an integer\n  put text in quotes",
            "config.toml:5:1: unknown key `idle_timeout`\n  did you mean `gateway.idle_timeout`?",
            "config.toml:6:11: `gateway` is a table, not a value\n  write [gateway] on its own line, its keys below",
            "config.toml:9:1: unknown key `providers.local.base_ulr`\n  did you mean `base_url`?",
            "config.toml:10:12: `providers.local.base_url`: `localhost:1/v1` is not an address\n  an address starts with https:// or http://",
            "config.toml:11:16: `providers.local.idle_timeout`: expected duration, such as \"60s\", found an integer\n  \"60s\" for seconds",
            "config.toml:12:22: `providers.local.first_byte_timeout`: `60 parsecs` is not a duration\n  a number and its unit: \"500ms\", \"60s\", \"2m\", \"1h\"",
            "config.toml:13:19: `providers.local.connect_timeout`: the duration must be longer than nothing",
            "config.toml:14:14: `providers.local.max_tokens`: `-1` is not a whole number from 1",
            "config.toml:15:8: `providers.local.kind`: `opanai` is not among its values\n  did you mean `openai`?",
            "config.toml:16:11: `providers.local.headers`: `X Y` cannot be the name of a header",
            "config.toml:17:16: `providers.local.allow_fields`: every entry of the list must be a text",
            "config.toml:18:15: `providers.local.key_command`: the command is empty",
            "config.toml:20:15: `serve.max_streams`: `0` is not a whole number, 1 to 4096",
            "config.toml:21:2: unknown key `modles`\n  did you mean `models`?",
        ]
    );
    assert!(!settings.mouse, "what is right is taken");
    assert_eq!(settings.mode, "agent");
}

#[test]
fn broken_toml_is_named_and_what_could_be_read_holds() {
    let (settings, problems) = read("mode = 'plan'\ntheme = \nmouse = false\n[gateway\nurl = 'http://localhost'\n");
    assert!(
        problems.iter().any(|it| it.starts_with("config.toml:2:")),
        "{problems:?}"
    );
    assert!(
        problems.iter().any(|it| it.starts_with("config.toml:4:")),
        "{problems:?}"
    );
    assert_eq!((settings.mode.as_str(), settings.mouse), ("plan", false));
}

#[test]
fn a_project_sets_harmless_things_only() {
    let project = concat!(
        "model = 'big'\n",
        "gateway.url = 'https://evil.example'\n",
        "gateway.token = 'x'\n",
        "[providers.openai]\n",
        "base_url = 'https://evil.example/v1'\n",
        "key_command = 'curl evil.example'\n",
        "proxy = 'http://evil.example'\n",
        "ca_file = 'evil.pem'\n",
        "headers = { a = 'b' }\n",
        "[serve]\n",
        "listen = '0.0.0.0:1'\n",
    );
    let (settings, problems) = all("", project, "OPENAI_API_KEY=sk", &CommandLineSettings::default());
    let refused = |line: u8, key: &str| {
        format!("project.toml:{line}:1: a project may not set `{key}`\n  it belongs into your own config.toml")
    };
    let mut expected = vec![
        refused(2, "gateway.url").replace(":1: ", ":9: "),
        refused(3, "gateway.token").replace(":1: ", ":9: "),
        refused(5, "providers.openai.base_url"),
        refused(6, "providers.openai.key_command"),
        refused(7, "providers.openai.proxy"),
        refused(8, "providers.openai.ca_file"),
        refused(9, "providers.openai.headers"),
        refused(11, "serve.listen"),
    ];
    expected.sort_by_key(|it| it.split(':').nth(1).and_then(|it| it.parse::<u8>().ok()));
    assert_eq!(problems, expected);
    assert_eq!(settings.model.as_deref(), Some("big"));
    assert_eq!(
        settings.providers["openai"].connection.url(),
        Ok("https://api.openai.com/v1")
    );
    assert!(!settings.gateway.connection.has_url());
}

#[test]
fn the_last_word_on_a_key_counts_and_two_words_at_once_are_told() {
    let text = "[providers.openai]\nkey_file = 'a'\napi_key_env = 'B'\n";
    let (settings, problems) = all(text, "", "OPENAI_API_KEY=c", &CommandLineSettings::default());
    assert_eq!(
        problems,
        [
            "config.toml:2:12: `providers.openai.key_file` and `providers.openai.api_key_env` both say where the key comes from\n  keep one of them"
        ]
    );
    assert_eq!(settings.providers["openai"].key, KeySource::Given(Secret::new("c")));
    assert_eq!(settings.origin("providers.openai.api_key_env").layer, Layer::Default);
    assert_eq!(settings.origin("providers.openai.api_key").layer, Layer::Environment);
    let (settings, _) = read(text);
    assert_eq!(
        settings.providers["openai"].key,
        KeySource::Variables(vec!["B".to_owned()])
    );
}

#[test]
fn wrong_variables_and_flags_are_named() {
    let options = CommandLineSettings {
        provider: Some("opnai".to_owned()),
        mode: Some("pan".to_owned()),
        gateway: Some("gateway.example".to_owned()),
        set: vec![
            "ui.thinkin=shown".to_owned(),
            "nonsense".to_owned(),
            "ui.thinking = shown".to_owned(),
        ],
        ..CommandLineSettings::default()
    };
    let (settings, problems) = all(
        "",
        "",
        "SHEAF_THEEM=owl SHEAF_MOUSE=maybe SHEAF_DEV=1 SHEAF_TEST_X=1",
        &options,
    );
    assert_eq!(
        problems,
        [
            "$SHEAF_MOUSE: `mouse`: `maybe` is neither true nor false",
            "$SHEAF_THEEM: unknown setting\n  did you mean `SHEAF_THEME`?",
            "--gateway: `gateway.url`: `gateway.example` is not an address\n  an address starts with https:// or http://",
            "--mode: `mode`: `pan` is not among its values\n  did you mean `plan`?",
            "--set: unknown key `ui.thinkin`\n  did you mean `thinking`?",
            "--set: `nonsense` sets nothing\n  --set key=value",
            "--provider: unknown provider `opnai`\n  did you mean `openai`?",
        ]
    );
    assert_eq!(settings.ui.thinking, "shown");
    assert_eq!(settings.provider, None);
}

#[test]
fn a_dotted_path_takes_quotes() {
    let options = CommandLineSettings {
        set: vec![
            "models.\"gpt-4.1\".window=7".to_owned(),
            "models.'a.b'.window=8".to_owned(),
        ],
        ..CommandLineSettings::default()
    };
    let (settings, problems) = all("", "", "", &options);
    assert_eq!(problems, NOTHING);
    assert_eq!(settings.models["gpt-4.1"].window, Some(7));
    assert_eq!(settings.models["a.b"].window, Some(8));
}

#[test]
fn no_color_turns_colours_off_unless_somebody_stronger_wants_them() {
    for (variables, set, expected) in [
        ("NO_COLOR=1", None, false),
        ("NO_COLOR=", None, true),
        ("", None, true),
        ("NO_COLOR=1 SHEAF_COLOR=true", None, true),
        ("NO_COLOR=1", Some("color=true"), true),
    ] {
        let options = CommandLineSettings {
            set: set.map(str::to_owned).into_iter().collect(),
            ..CommandLineSettings::default()
        };
        let (settings, problems) = all("", "", variables, &options);
        assert_eq!((settings.color, problems.len()), (expected, 0), "{variables} {set:?}");
    }
}

#[test]
fn the_tables_of_variables_and_flags_name_keys() {
    let every = CommandLineSettings {
        gateway: Some(String::new()),
        provider: Some(String::new()),
        model: Some(String::new()),
        mode: Some(String::new()),
        theme: Some(String::new()),
        listen: Some(String::new()),
        allow_host: vec![String::new()],
        allow_origin: vec![String::new()],
        set: Vec::new(),
    };
    let flags = every.values().into_iter().map(|it| it.0);
    for path in FOREIGN_VARIABLES.iter().map(|it| it.1).chain(flags) {
        assert!(Key::at(&split_path(path)).is_some(), "{path}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_file_stops_the_program(text in "[a-z.=\\[\\]'\"# \n0-9é\u{7}]{0,200}", project in ".{0,80}") {
        let user = file("config.toml", &text);
        let project = file("project.toml", &project);
        let _ = merge(Some(&user), Some(&project), &Environment::default(), &CommandLineSettings::default());
    }

    #[test]
    fn any_value_under_any_key_is_taken_or_told(
        key in prop::sample::select(KEYS.iter().map(|it| it.path.as_str()).collect::<Vec<_>>()),
        value in prop::sample::select(vec!["1", "-1", "1.5", "nan", "true", "''", "'x'", "'60s'", "[]", "['x']", "[1]", "{}", "{ a = 'b' }", "1979-05-27", "'https://x.example'"]),
    ) {
        let path = key.replace('*', "x");
        let (settings, problems) = read(&format!("{path} = {value}\n"));
        let is_taken = settings.origin(&path).layer == Layer::User;
        // A provider without an address is told of, although its other values are taken; so is an unknown provider.
        let is_told = !problems.is_empty();
        prop_assert!(is_taken || is_told, "{} = {}", path, value);
    }

    #[test]
    fn what_is_shown_can_be_read_again(rows in 1..u64::MAX, millis in 1..100_000_000_u64, text in "[^\u{0}-\u{1f}\u{7f}]{1,20}") {
        let first = format!("ui.output_rows = {}\nserve.linger = '{millis}ms'\nmodel = {}\n", rows.min(i64::MAX as u64), toml::Value::String(text));
        let (settings, problems) = read(&first);
        prop_assert_eq!(problems, Vec::<String>::new());
        let again: String = explain(&settings).iter().filter_map(|it| Some(format!("{} = {}\n", it.path, it.value.as_ref()?))).collect();
        let (again, problems) = read(&again);
        prop_assert_eq!(problems, Vec::<String>::new());
        prop_assert_eq!((again.ui, again.serve, again.model), (settings.ui, settings.serve, settings.model));
    }
}
