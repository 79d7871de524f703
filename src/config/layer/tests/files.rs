//! Files of settings, and the secrets in them.

use pretty_assertions::assert_eq;

use super::*;

#[test]
fn a_file_that_others_can_read_gives_no_secret() {
    let text = "theme = 'owl'\n[gateway]\ntoken = 'hidden'\nheaders = { X-Api-Key = 'hidden' }\n[serve]\ntoken = 'hidden'\n[providers.openai]\napi_key = 'hidden'\nheaders = { X-Team = 'a' }\n";
    let shared = SettingsFile {
        is_readable_by_others: true,
        ..file("config.toml", text)
    };
    let (settings, problems) = merge(
        Some(&shared),
        None,
        &Environment::default(),
        &CommandLineSettings::default(),
    );
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let unused = |place: &str, key: &str| {
        format!("config.toml:{place}: `{key}` is not used: others can read this file\n  chmod 600 config.toml")
    };
    let expected = [
        unused("3:9", "gateway.token"),
        unused("4:11", "gateway.headers"),
        unused("6:9", "serve.token"),
        unused("8:11", "providers.openai.api_key"),
    ];
    assert_eq!(problems, expected);
    assert_eq!(settings.theme, "owl");
    assert_eq!(settings.gateway.token, KeySource::None);
    assert_eq!(settings.providers["openai"].connection.headers.len(), 1);
    let private = SettingsFile {
        is_readable_by_others: false,
        ..shared
    };
    let (settings, problems) = merge(
        Some(&private),
        None,
        &Environment::default(),
        &CommandLineSettings::default(),
    );
    assert_eq!(problems, []);
    assert_eq!(settings.serve.token, Some(Secret::new("hidden")));
}

#[test]
fn files_are_found_read_and_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let paths = Paths::under(folder.path());
    let workspace = folder.path().join("work");
    let project = Paths::of_project(&workspace);
    let load = |workspace: Option<&Path>| {
        let project = workspace.and_then(SettingsFile::of_project);
        let (settings, problems) = load(
            &paths,
            project.as_ref(),
            &Environment::default(),
            &CommandLineSettings::default(),
        );
        let problems: Vec<String> = problems.iter().map(|it| it.message.clone()).collect();
        (settings.theme, settings.mode, problems.join("; "))
    };
    let seen = |theme: &str, mode: &str, problems: &str| (theme.to_owned(), mode.to_owned(), problems.to_owned());
    assert_eq!(
        load(Some(&workspace)),
        seen("auto", "agent", ""),
        "no file is no problem"
    );
    std::fs::create_dir_all(&paths.config).expect("made");
    std::fs::create_dir_all(project.parent().expect("a parent")).expect("made");
    std::fs::write(paths.settings(), "theme = 'owl'").expect("written");
    std::fs::write(&project, "mode = 'ask'").expect("written");
    assert_eq!(load(Some(&workspace)), seen("owl", "ask", ""));
    assert_eq!(
        load(None),
        seen("owl", "agent", ""),
        "a workspace that is not trusted says nothing"
    );
    std::fs::write(paths.settings(), [0xff, 0xfe]).expect("written");
    assert!(load(None).2.contains("not UTF-8"));
    std::fs::write(paths.settings(), " ".repeat(LIMIT_BYTES as usize + 1)).expect("written");
    assert!(load(None).2.ends_with("is larger than 1048576 bytes"));
    std::fs::remove_file(paths.settings()).expect("removed");
    std::fs::create_dir(paths.settings()).expect("made");
    assert!(load(None).2.ends_with("is not a regular file"));
}

#[cfg(unix)]
#[test]
fn a_file_of_settings_knows_whether_others_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config.toml");
    std::fs::write(&path, "[serve]\ntoken = 'x'").expect("written");
    for (mode, expected) in [
        (0o600, false),
        (0o400, false),
        (0o640, true),
        (0o604, true),
        (0o644, true),
    ] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
        let file = SettingsFile::read(&path).expect("readable").expect("there");
        assert_eq!(file.is_readable_by_others, expected, "{mode:o}");
    }
}

#[test]
fn no_secret_shows_in_debug_output_explanations_or_problems() {
    let text = "[gateway]\ntoken = 'covert'\nurl = 'https://me:covert@x.example'\n[gateway.headers]\nAuthorization = 'covert'\n[providers.openai]\napi_key = \"cov\\u0007ert covert\"\nbase_url = 'me:covert@x'\n";
    let variables = "OPENAI_API_KEY=covert SHEAF_SERVE_TOKEN=covert";
    let user = file("config.toml", text);
    let environment = environment(variables);
    let (settings, problems) = merge(Some(&user), None, &environment, &CommandLineSettings::default());
    assert_eq!(problems.len(), 3, "{problems:?}");
    for shown in [
        format!("{settings:?}"),
        format!("{problems:?}"),
        format!("{:?}", explain(&settings)),
        format!("{environment:?}"),
        format!("{:?} {}", Secret::new("covert"), Secret::new("covert")),
    ] {
        assert!(!shown.contains("covert"), "{shown}");
    }
}

#[test]
fn a_file_that_cannot_be_read_forbids_what_nobody_knows() {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::under(folder.path());
    std::fs::create_dir_all(&paths.config).unwrap();
    let load = || load(&paths, None, &Environment::default(), &CommandLineSettings::default());
    let long = format!("theme = 'owl'\n#{}", "x".repeat(1 << 20));
    for (bytes, is_unreadable) in [
        (&b"theme = 'owl'\n"[..], false),
        (b"theme = 'owl'\n[approvals]\ndeny = ['Shell(rm)']\n# \xff", true),
        (long.as_bytes(), true),
        // What cannot be parsed, or is no list of rules, is not known either.
        (b"theme = 'owl'\n[approvals\ndeny = ['Shell(rm)']\n", true),
        (b"[approvals]\ndeny = ['Shell(rm)'\n", true),
        (b"theme = owl\n[approvals]\ndeny = ['Shell(rm)']\n", true),
        (b"[approvals]\ndeny = 3\n", true),
        (b"[approvals]\ndeny = ['Shell(rm)', 3]\n", true),
        (b"[approvals]\nask = [{ rul = 'Shell(rm)' }]\n", true),
        (b"[approvals]\nrun = 'never'\n", true),
        (b"[approval]\ndeny = ['Shell(rm)']\n", true),
        (b"[approvals]\ndenied = ['Shell(rm)']\n", true),
        (b"[context]\nhidden = 3\n", true),
        (b"[context]\nhiden = ['notes']\n", true),
        (b"[contxt]\nhidden = ['notes']\n", true),
        (b"[ui]\nthinkin = 'all'\n", false),
        (b"[ui]\nthinking = 3\n", false),
        (b"[approvals]\nallow = 3\n", false),
    ] {
        std::fs::write(paths.settings(), bytes).unwrap();
        let (settings, problems) = load();
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned();
        assert_eq!(problems.iter().any(|it| it.leaves_open), is_unreadable, "{shown}");
        let is_known = !settings.approvals.deny.contains(&ConfiguredRule::unreadable());
        assert_eq!(is_known, !is_unreadable, "{shown}");
    }
    // What is no file is not read either, nor what its owner may not read; who may read everything can.
    std::fs::remove_file(paths.settings()).unwrap();
    assert_eq!(load().1, []);
    std::fs::create_dir(paths.settings()).unwrap();
    assert!(load().1.iter().any(|it| it.leaves_open));
    // A link that leads nowhere, such as to a disk that is not mounted, is not the same as no settings.
    std::fs::remove_dir(paths.settings()).unwrap();
    std::os::unix::fs::symlink("nowhere", paths.settings()).unwrap();
    assert!(load().1.iter().any(|it| it.leaves_open));
    std::fs::remove_dir_all(&paths.config).unwrap();
    std::os::unix::fs::symlink("nowhere", &paths.config).unwrap();
    assert!(load().1.iter().any(|it| it.leaves_open));
}
