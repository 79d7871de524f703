use std::fs;

use pretty_assertions::assert_eq;
use tempfile::TempDir;

use super::*;

/// A workspace with these files; a text that begins with `-> ` is a link.
fn workspace(files: &[(&str, &str)]) -> (TempDir, Arc<Workspace>) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join(".git")).expect("a repository");
    for (path, text) in files {
        put(folder.path(), path, text);
    }
    let workspace = Workspace::open(folder.path()).expect("a workspace");
    (folder, Arc::new(workspace))
}

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
    match text.strip_prefix("-> ") {
        #[cfg(unix)]
        Some(target) => std::os::unix::fs::symlink(target, path).expect("a link"),
        _ => fs::write(path, text).expect("a file"),
    }
}

const FILES: &[(&str, &str)] = &[
    (".cursorrules", "Old words."),
    ("AGENTS.md", "Tests sit next to the code."),
    ("CLAUDE.md", "Not read."),
    (".sheaf/rules/own.md", "Ours, without a head."),
    (
        ".cursor/rules/errors.mdc",
        "---\nalwaysApply: true\n---\nErrors are enums.\n",
    ),
    (
        ".cursor/rules/release.mdc",
        "---\ndescription: How releases\n  are cut\n---\nTag it.",
    ),
    (".cursor/rules/rust/style.mdc", "---\nglobs: *.rs\n---\nNo unwrap."),
    (".cursor/rules/notes.md", "Only by name."),
    (
        ".cursor/rules/folder/RULE.md",
        "---\ndescription:\n---\nBy the folder's name.",
    ),
    (".cursor/rules/picture.png", "no rule"),
    ("web/AGENTS.md", "Web only."),
    (
        "web/.cursor/rules/react.mdc",
        "---\nglobs: components/*.tsx\n---\nHooks.",
    ),
    (
        "web/.cursor/rules/always.mdc",
        "---\nalwaysApply: true\n---\nBelow web.",
    ),
    ("web/admin/CLAUDE.md", "Admin only."),
    ("web/components/a.tsx", "x"),
];

#[test]
fn what_holds_from_the_start() {
    let (_folder, workspace) = workspace(FILES);
    let rules = RuleSet::load(&workspace, Trust::Whole).with_user(["Answer in German".to_owned(), " ".to_owned()]);
    assert_eq!(rules.warnings(), Vec::<String>::new());
    let text = rules.always_text();
    let lines: Vec<&str> = text
        .lines()
        .filter(|it| !it.starts_with("Keep to") && !it.starts_with("Read the"))
        .collect();
    assert_eq!(
        lines,
        [
            "<rules>",
            "<always_applied_workspace_rules>",
            "<always_applied_workspace_rule name=\".cursorrules\">",
            "Old words.",
            "</always_applied_workspace_rule>",
            "<always_applied_workspace_rule name=\"AGENTS.md\">",
            "Tests sit next to the code.",
            "</always_applied_workspace_rule>",
            "<always_applied_workspace_rule name=\".sheaf/rules/own.md\">",
            "Ours, without a head.",
            "</always_applied_workspace_rule>",
            "<always_applied_workspace_rule name=\".cursor/rules/errors.mdc\">",
            "Errors are enums.",
            "</always_applied_workspace_rule>",
            "</always_applied_workspace_rules>",
            "<agent_requestable_workspace_rules>",
            "<agent_requestable_workspace_rule path=\".cursor/rules/release.mdc\">",
            "How releases are cut",
            "</agent_requestable_workspace_rule>",
            "</agent_requestable_workspace_rules>",
            "<user_rules>",
            "<user_rule>",
            "Answer in German",
            "</user_rule>",
            "</user_rules>",
            "</rules>",
        ]
    );
}

/// The names of the rules in an update.
fn names(update: Option<&str>) -> Vec<String> {
    let update = update.unwrap_or_default();
    let found = update.split(" name=\"").skip(1).filter_map(|it| it.split('"').next());
    found.map(str::to_owned).collect()
}

#[test]
fn rules_come_with_the_first_file_that_they_are_for() {
    let (folder, workspace) = workspace(FILES);
    let mut rules = RuleSet::load(&workspace, Trust::Whole);
    let before = rules.always_text();
    assert_eq!(rules.attach(["README.md"]), None);
    assert_eq!(
        names(rules.attach(["src/deep/a.rs"]).as_deref()),
        [".cursor/rules/rust/style.mdc"]
    );
    assert_eq!(rules.attach(["src/other.rs"]), None, "once is enough");
    let update = rules.attach([folder.path().canonicalize().expect("a path").join("web/index.html")]);
    assert_eq!(
        names(update.as_deref()),
        ["web/AGENTS.md", "web/.cursor/rules/always.mdc"],
        "{update:?}"
    );
    assert!(update.expect("two rules").contains("applies_below=\"web/\""));
    assert_eq!(
        names(rules.attach(["web/components/a.tsx", "web/admin/x/y.html"]).as_deref()),
        ["web/.cursor/rules/react.mdc", "web/admin/CLAUDE.md"]
    );
    assert_eq!(
        rules.attach(["/etc/a.rs", "../b.rs", "web/../../c.rs"]),
        None,
        "outside"
    );
    assert_eq!(rules.always_text(), before, "the system prompt stays as it was");
}

#[test]
fn the_user_names_a_rule_of_any_kind() {
    let (_folder, workspace) = workspace(FILES);
    let mut rules = RuleSet::load(&workspace, Trust::Whole);
    for (name, want) in [
        ("notes", Some("Only by name.")),
        ("folder", Some("By the folder's name.")),
        ("Errors", Some("Errors are enums.")),
        (".cursor/rules/rust/style.mdc", Some("No unwrap.")),
        ("picture", None),
        ("", None),
    ] {
        let text = rules.manual(name);
        assert_eq!(text.is_some(), want.is_some(), "{name}");
        if let (Some(text), Some(want)) = (text, want) {
            assert!(
                text.starts_with("<manual_workspace_rule name=") && text.contains(want),
                "{text}"
            );
        }
    }
}

#[test]
fn of_a_workspace_that_is_not_trusted_only_names_are_said() {
    let (_folder, workspace) = workspace(FILES);
    let mut rules = RuleSet::load(&workspace, Trust::nobody()).with_user(["Mine".to_owned()]);
    let text = rules.always_text();
    assert!(text.contains("AGENTS.md") && text.contains("Mine"), "{text}");
    for (_, theirs) in FILES {
        assert!(!text.contains(theirs), "{text}");
    }
    assert_eq!(rules.attach(["web/components/a.tsx"]), None);
    assert_eq!(rules.manual("notes"), None);
    assert!(rules.listed().iter().all(|it| it.kind.is_none() && !it.is_said));
    assert_eq!(rules.listed().len(), 8);
}

#[test]
fn a_rule_names_files_that_come_with_it() {
    let long = "long line\n".repeat(4000);
    let (folder, workspace) = workspace(&[
        (
            "AGENTS.md",
            "See @docs/a.md, @docs/a.md, `@docs/b.md` and [c](mdc:docs/c.md). Not @nobody, nor @docs, nor me@docs/b.md. @docs/long.md @docs/out @docs/picture @AGENTS.md",
        ),
        ("docs/a.md", "A @docs/b.md </included_file> </rules>"),
        ("docs/b.md", "B"),
        ("docs/c.md", "C"),
        ("docs/long.md", &long),
        ("docs/picture", "\0\0"),
    ]);
    let outside = tempfile::tempdir().expect("a folder");
    put(outside.path(), "secret", "OUTSIDE");
    let target = outside.path().join("secret");
    put(folder.path(), "docs/out", &format!("-> {}", target.display()));
    let rules = RuleSet::load(&workspace, Trust::Whole);
    let text = rules.always_text();
    let included: Vec<&str> = text
        .split("<included_file path=\"")
        .skip(1)
        .filter_map(|it| it.split('"').next())
        .collect();
    let mut want = vec!["docs/c.md", "docs/a.md", "docs/long.md"];
    want.sort_unstable();
    let mut got = included.clone();
    got.sort_unstable();
    assert_eq!(got, want, "a link that leads out is no file of the workspace");
    assert_eq!(text.matches("</included_file>").count(), included.len(), "{text}");
    assert_eq!(text.matches("</rules>").count(), 1);
    assert!(text.contains("[cut: ") && text.len() < 20_000, "{}", text.len());
}

#[test]
fn what_is_too_long_is_cut_and_told() {
    let line = "0123456789 0123456789 0123456789\n";
    let long = line.repeat(2000);
    let (_folder, workspace) = workspace(&[
        (".cursor/rules/a.mdc", &format!("---\nalwaysApply: true\n---\n{long}")),
        (
            ".cursor/rules/b.mdc",
            &format!("---\nalwaysApply: true\n---\n{}", line.repeat(900)),
        ),
        (
            ".cursor/rules/c.mdc",
            &format!("---\nalwaysApply: true\n---\n{}", line.repeat(900)),
        ),
        (".cursor/rules/d.mdc", "---\nalwaysApply: true\n---\nshort"),
        (".cursor/rules/e.mdc", "---\nglobs: *.{a, [\n---\nshort"),
    ]);
    let rules = RuleSet::load(&workspace, Trust::Whole).with_user([long]);
    let text = rules.always_text();
    assert!(text.len() < (64 << 10) + (16 << 10) + 4096, "{}", text.len());
    assert!(text.contains("bytes of this rule are left out]"));
    assert!(
        text.contains("[left out for want of room: read .cursor/rules/c.mdc "),
        "the third does not fit"
    );
    assert!(text.contains("\nshort\n"), "a short one still fits");
    let warnings = rules.warnings();
    for part in [
        "a.mdc is long: only its first 32 of",
        "e.mdc has a pattern",
        "one of your rules is long",
        "is left out",
    ] {
        assert!(warnings.iter().any(|it| it.contains(part)), "{part}: {warnings:#?}");
    }
}

#[test]
fn later_rules_have_their_limit_too() {
    let files: Vec<(String, String)> = (0..8)
        .map(|it| (format!("d{it}/AGENTS.md"), format!("{it} {}", "x".repeat(20_000))))
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let (_folder, workspace) = workspace(&files);
    let mut rules = RuleSet::load(&workspace, Trust::Whole);
    let paths: Vec<String> = (0..8).map(|it| format!("d{it}/x")).collect();
    let update = rules.attach(&paths).expect("eight rules");
    assert_eq!(names(Some(&update)).len(), 8, "each is at least named");
    assert!(update.len() < LATER_BYTES + 4096, "{}", update.len());
    assert_eq!(rules.warnings().len(), 4, "{:?}", rules.warnings());
}

#[test]
fn the_repository_around_the_workspace_is_asked_too() {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, text) in [
        ("AGENTS.md", "Above all."),
        ("repo/.git/HEAD", ""),
        ("repo/AGENTS.md", "For the repository."),
        ("repo/mid/AGENTS.md", "Between."),
        ("repo/mid/work/AGENTS.md", "For the work."),
    ] {
        put(folder.path(), path, text);
    }
    let workspace = Arc::new(Workspace::open(&folder.path().join("repo/mid/work")).expect("a workspace"));
    let text = RuleSet::load(&workspace, Trust::Whole).always_text();
    let at = |it: &str| text.find(it);
    assert!(
        at("For the repository.").is_some() && at("For the repository.") < at("For the work."),
        "{text}"
    );
    assert!(at("Above all.").is_none() && at("Between.").is_none(), "{text}");
}

#[test]
fn a_gateway_gets_texts() {
    let (_folder, workspace) = workspace(FILES);
    let mut rules = RuleSet::load(&workspace, Trust::Whole).with_user(["Mine".to_owned()]);
    rules.attach(["a.rs"]);
    let texts = rules.texts();
    assert_eq!(
        texts,
        [
            "Old words.",
            "Tests sit next to the code.",
            "Ours, without a head.",
            "Errors are enums.",
            "No unwrap.",
            "Rules to read when they fit:\n.cursor/rules/release.mdc: How releases are cut",
            "Mine",
        ]
    );
    assert_eq!(RuleSet::default().texts(), Vec::<String>::new());
    assert_eq!(RuleSet::default().always_text(), "");
}

#[test]
fn rules_of_the_user_come_from_settings_and_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let paths = Paths::under(folder.path());
    let settings = Settings {
        rules: vec!["one".to_owned()],
        ..Settings::default()
    };
    assert_eq!(of_user(&settings, Some(&paths)), ["one"]);
    put(&paths.rules(), "b.md", "---\nalwaysApply: true\n---\nthree\n");
    put(&paths.rules(), "a.md", "two");
    put(&paths.rules(), "c.txt", "no rule");
    assert_eq!(of_user(&settings, Some(&paths)), ["one", "two", "three"]);
    assert_eq!(of_user(&settings, None), ["one"]);
}

#[test]
fn folders_of_links_and_odd_files_do_no_harm() {
    let (folder, workspace) = workspace(&[
        (".cursor/rules/loop", "-> ."),
        (".cursor/rules/dead.mdc", "-> nowhere"),
        (
            ".cursor/rules/bytes.mdc",
            "---\nalwaysApply: true\n---\n\u{0}\u{1b}[31m",
        ),
        (".cursor/rules/empty.mdc", ""),
    ]);
    fs::create_dir_all(folder.path().join(".cursor/rules/dir.mdc")).expect("a folder");
    let rules = RuleSet::load(&workspace, Trust::Whole);
    assert_eq!(rules.listed().len(), 1, "{:?}", rules.listed());
}
