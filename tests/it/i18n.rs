//! What the interface says stands in the Fluent files: every id is there, every message is used, and nothing that a reader sees
//! is a literal of the screen's code.
//!
//! Data stays literal: what is typed, sent, stored or compared. What is drawn around it is said in the reader's language.

use std::collections::{BTreeMap, BTreeSet};

use fluent_syntax::ast::{Entry, Expression, InlineExpression, Pattern, PatternElement};
use sheaf::{locale::LANGUAGES, tui::actions::ACTIONS};

use crate::source::{Source, Token, shipped_with_texts, untested};

/// What speaks to who writes the program, not to who uses it; and what reads words instead of showing them.
const UNSEEN: [&str; 20] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "concat",
    "contains",
    "debug",
    "debug_assert",
    "ends_with",
    "env",
    "error!",
    "expect",
    "panic",
    "t!",
    "split_once",
    "starts_with",
    "strip_prefix",
    "trace",
    "unreachable",
    "warn",
    "WordList",
];

/// What is shown when it is called with a word; one word is enough.
const SHOWS: [&str; 10] = [
    "Sanitized",
    "Part",
    "Prompt",
    "Span",
    "count",
    "heading",
    "labelled",
    "t",
    "sign",
    "toast",
];

const KEYMAP: &str = "a fault of a file of settings, in the same words as those of the other files";

/// Words that are no speech: the file, what the literal begins with, and why.
const DATA: &[(&str, &str, &str)] = &[
    ("tui/app/action.rs", "markdown all", "it is typed behind /copy"),
    ("tui/app/action.rs", "plain all", "it is typed behind /copy"),
    ("tui/app/action.rs", "code all", "it is typed behind /copy"),
    ("tui/overlays/picker.rs", "markdown all", "it is typed behind /copy"),
    ("tui/overlays/picker.rs", "plain all", "it is typed behind /copy"),
    ("tui/overlays/picker.rs", "code all", "it is typed behind /copy"),
    ("tui/overlays/picker.rs", "everything", "it is typed behind /filter"),
    ("tui/app/keymap.rs", "`{}` must be a table", KEYMAP),
    ("tui/app/keymap.rs", "`{}` is no key", KEYMAP),
    ("tui/app/keymap.rs", "keys look like", KEYMAP),
    ("tui/app/keymap.rs", "the name of an action", KEYMAP),
    ("tui/app/keymap.rs", "unknown {what}", KEYMAP),
    ("tui/app/keymap.rs", "could not be read", KEYMAP),
    ("tui/app/keymap.rs", "`{}` is the same key", KEYMAP),
    ("tui/app/keymap.rs", "`{chord}` ", KEYMAP),
    ("tui/app/keymap.rs", "put ctrl or alt", KEYMAP),
    ("tui/app/keymap.rs", "\\\"{chord}", KEYMAP),
    ("tui/app/keymap.rs", "give `{}` another", KEYMAP),
    (
        "tui/widgets/approval.rs",
        "change {at} of {count} in one",
        "what the agent puts on the wire",
    ),
    (
        "tui/overlays/page.rs",
        "system calls",
        "the name of a wall, which has a word of its own",
    ),
    ("tui/overlays/inspector.rs", "event: {name}", "the wire"),
    (
        "tui/overlays/inspector.rs",
        "{:02}:{:02}",
        "UTC is called so everywhere",
    ),
    ("tui/screen.rs", "sheaf {} {info}", "a report of a crash"),
    (
        "tui/screen.rs",
        "sheaf failed",
        "a shell sees it when the screen is gone",
    ),
    (
        "tui/screen.rs",
        "the report is in",
        "a shell sees it when the screen is gone",
    ),
    ("tui/update/keys.rs", "cd {} && sheaf", "a command for a shell"),
    ("tui/editor/vim.rs", "visual line", "Vim's own name"),
    ("tui/actions/plan.rs", "Build the plan", "it is sent to the model"),
    (
        "tui/actions/plan_edits.rs",
        "{}\\n\\nThis is the plan as",
        "it is sent to the model",
    ),
    (
        "tui/actions/plan.rs",
        "{text} This is the plan",
        "it is sent to the model",
    ),
    ("tui/terminal/notifications.rs", "◐ sheaf", "a sign and a name"),
    ("tui/terminal/notifications.rs", "? sheaf", "a sign and a name"),
    ("tui/widgets/tool_call.rs", " File: ", "it is read in a patch"),
    ("tui/widgets/tool_call.rs", "background", "it is compared"),
    ("tui/widgets/value.rs", "null", "JSON"),
    ("tui/hunk_decisions.rs", "none of it", "it is sent to the model"),
    ("tui/hunk_decisions.rs", "all of it, changed", "it is sent to the model"),
    ("tui/hunk_decisions.rs", "only hunk", "it is sent to the model"),
    ("tui/hunk_decisions.rs", "; hunk", "it is sent to the model"),
    ("tui/view.rs", "sheaf ", "a name"),
];

/// The variables that a pattern names.
fn variables(pattern: &Pattern<&str>, into: &mut BTreeSet<String>) {
    fn any(it: &Expression<&str>, into: &mut BTreeSet<String>) {
        let selector = match it {
            Expression::Inline(it) => it,
            Expression::Select { selector, variants } => {
                for it in variants {
                    variables(&it.value, into);
                }
                selector
            }
        };
        match selector {
            InlineExpression::VariableReference { id } => {
                into.insert(id.name.to_owned());
            }
            InlineExpression::FunctionReference { arguments, .. } => {
                let named = arguments.positional.iter().filter_map(|it| match it {
                    InlineExpression::VariableReference { id } => Some(id.name.to_owned()),
                    _ => None,
                });
                into.extend(named);
            }
            InlineExpression::Placeable { expression } => any(expression, into),
            _ => {}
        }
    }
    for element in &pattern.elements {
        if let PatternElement::Placeable { expression } = element {
            any(expression, into);
        }
    }
}

/// What English says, with what it wants to know.
fn english() -> BTreeMap<String, BTreeSet<String>> {
    let resource = fluent_syntax::parser::parse(LANGUAGES[0].text).expect("it is read");
    let of = resource.body.into_iter().filter_map(|it| match it {
        Entry::Message(message) => {
            let mut wants = BTreeSet::new();
            variables(message.value.as_ref()?, &mut wants);
            Some((message.id.name.to_owned(), wants))
        }
        _ => None,
    });
    of.collect()
}

/// Ids that are made from the names of a table.
fn derived() -> BTreeSet<String> {
    let of = ACTIONS
        .iter()
        .map(|it| it.name.replace('.', "-"))
        .flat_map(|it| [format!("hint-{it}"), format!("about-{it}")]);
    of.collect()
}

/// Every `t!` of a file: its id and the names of its arguments.
fn said(source: &Source) -> Vec<(String, BTreeSet<String>)> {
    let tokens = &source.tokens;
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let is_call = tokens[at].is("t") && tokens.get(at + 1).is_some_and(|it| it.is("!"));
        let Some(id) = tokens.get(at + 3).and_then(Token::text).filter(|_| is_call) else {
            continue;
        };
        let inside = &tokens[at + 3..crate::source::group_end(tokens, at + 2) - 1];
        let (mut depth, mut names) = (0_usize, BTreeSet::new());
        for (it, token) in inside.iter().enumerate() {
            match token {
                Token::Sign('(' | '[' | '{') => depth += 1,
                Token::Sign(')' | ']' | '}') => depth -= 1,
                Token::Sign(',') if depth == 0 && inside.get(it + 2).is_some_and(|it| it.is("=")) => {
                    names.extend(inside[it + 1].word().map(str::to_owned));
                }
                Token::Sign(_) | Token::Word(_) | Token::Text(_) => {}
            }
        }
        found.push((id.to_owned(), names));
    }
    found
}

/// What stands in front of a bracket: `error!` of `tracing::error!(`, `Sanitized` of `Sanitized::literal(`, `say` of `app.say(`.
fn callee(tokens: &[Token], open: usize) -> String {
    let mut at = open;
    let mut sign = "";
    if at > 0 && tokens[at - 1].is("!") {
        (at, sign) = (at - 1, "!");
    }
    let Some(name) = at.checked_sub(1).and_then(|it| tokens[it].word()) else {
        return if at > 0 && tokens[at - 1].is("#") {
            "#".into()
        } else {
            String::new()
        };
    };
    let is_path = at > 3 && tokens[at - 2].is(":") && tokens[at - 3].is(":") && sign.is_empty();
    let of_type = is_path.then(|| tokens[at - 4].word()).flatten();
    let of_type = of_type.filter(|it| it.starts_with(char::is_uppercase));
    // `error!` logs; `error(…)` may be anything. The other macros have names of their own.
    let sign = if matches!(name, "error" | "t") { sign } else { "" };
    format!("{}{sign}", of_type.unwrap_or(name))
}

/// Letters that follow each other, and whether a blank is beside one of these words. What stands in braces is put in.
fn words(text: &str) -> (usize, bool) {
    let mut plain = String::new();
    let mut depth = 0_usize;
    let mut escaped = false;
    for letter in text.chars() {
        match letter {
            _ if escaped => {
                escaped = false;
                plain.push(' ');
            }
            '\\' => escaped = true,
            '{' => depth += 1,
            '}' => {
                depth = depth.saturating_sub(1);
                plain.push('0');
            }
            it if depth == 0 => plain.push(it),
            _ => {}
        }
    }
    let is_word = |it: &str| {
        // A command or a flag is data.
        let it = if it.starts_with(['/', '-']) { "" } else { it };
        let it = it.trim_matches(|it: char| !it.is_alphanumeric());
        it.chars().count() >= 2 && it.chars().all(|it| it.is_alphabetic() || "'’-".contains(it))
    };
    let count = plain.split_whitespace().filter(|it| is_word(it)).count();
    (count, plain.contains(char::is_whitespace))
}

/// The literals of a file that a reader would see.
fn breaches(source: &Source, ids: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let tokens = &source.tokens;
    let mut found = Vec::new();
    let mut calls: Vec<String> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Sign('(' | '[' | '{') => calls.push(callee(tokens, at)),
            Token::Sign(')' | ']' | '}') => {
                calls.pop();
            }
            Token::Sign(_) | Token::Word(_) => {}
            Token::Text(text) => {
                let is_unseen = calls.iter().any(|it| it == "#" || UNSEEN.contains(&it.as_str()));
                let (count, has_blank) = words(text);
                let innermost = calls.iter().rfind(|it| !it.is_empty());
                let is_shown = innermost.is_some_and(|it| SHOWS.contains(&it.as_str()));
                if !is_unseen && count > 0 && (has_blank || is_shown) {
                    found.push(text.clone());
                }
            }
        }
    }
    let is_data = |text: &str| {
        DATA.iter()
            .any(|(path, start, _)| *path == source.path && text.starts_with(start))
    };
    // A table names what is said by its id.
    found.retain(|it| !is_data(it) && !ids.contains_key(it));
    found
}

#[test]
fn every_id_is_in_english_with_the_arguments_that_it_is_given() {
    let english = english();
    let mut wrong = Vec::new();
    for source in shipped_with_texts() {
        for (id, names) in said(&source) {
            match english.get(&id) {
                None => wrong.push(format!("{}: there is no {id}", source.path)),
                Some(wants) if *wants != names => {
                    wrong.push(format!("{}: {id} wants {wants:?} and is given {names:?}", source.path));
                }
                Some(_) => {}
            }
        }
    }
    let missing = derived().into_iter().filter(|it| !english.contains_key(it));
    wrong.extend(missing.map(|it| format!("there is no {it}")));
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn every_message_is_used() {
    let mut used = derived();
    for source in shipped_with_texts() {
        // A table names an id by itself, a `t!` in itself: both are strings of the code.
        used.extend(source.tokens.iter().filter_map(Token::text).map(str::to_owned));
    }
    let unused: Vec<_> = english().into_keys().filter(|it| !used.contains(it)).collect();
    assert_eq!(unused, Vec::<String>::new());
}

#[test]
fn nothing_that_is_seen_is_a_literal() {
    let mut found = BTreeMap::new();
    let (sources, ids) = (shipped_with_texts(), english());
    for source in sources.iter().filter(|it| it.top() == "tui") {
        let literals = breaches(source, &ids);
        if !literals.is_empty() {
            found.insert(&source.path, literals);
        }
    }
    assert!(found.is_empty(), "say it in assets/locale: {found:#?}");
    for &(path, start, why) in DATA {
        assert!(!why.is_empty());
        let source = sources.iter().find(|it| it.path == path);
        let is_there =
            source.is_some_and(|it| it.tokens.iter().filter_map(Token::text).any(|it| it.starts_with(start)));
        assert!(is_there, "{path} does not say {start:?} any more");
    }
}

#[test]
fn a_planted_literal_is_seen() {
    let planted = |text: &str| {
        let sources = untested(vec![Source::with_texts("tui/planted.rs", text)]);
        let of = |it: &Source| breaches(it, &BTreeMap::new());
        sources.iter().flat_map(of).collect::<Vec<_>>()
    };
    let seen = [
        (r#"app.say("nothing waits");"#, "nothing waits"),
        (r#"app.say(format!("{name} is stored"));"#, "{name} is stored"),
        (r#"match it { A => "not yet", B => "a" }"#, "not yet"),
        (r#"Span::new(Sanitized::literal("stored"), Role::Dim)"#, "stored"),
        (
            r#"const A: Action = Action { about: "send the message" };"#,
            "send the message",
        ),
        (r##"let it = r#"two words"#;"##, "two words"),
    ];
    for (code, text) in seen {
        assert_eq!(planted(code), [text], "{code}");
    }
    for code in [
        r#"t!("phase-writing")"#,
        r#"app.say(t!("pane-stored", name = find("the name")))"#,
        r#"it.expect("it was pushed above"); tracing::error!("it broke down"); unreachable!("a b")"#,
        r#"#[expect(clippy::x, reason = "two words")] fn f() {}"#,
        r#"#[cfg(test)] mod tests { const A: &str = "two words"; }"#,
        r#"let text = format!("{} {}", a, b); let wire = "read_file"; let blank = "  ";"#,
        r#"text.starts_with("data: words")"#,
    ] {
        assert_eq!(planted(code), Vec::<String>::new(), "{code}");
    }
}

#[test]
fn a_planted_id_is_seen() {
    let source = Source::with_texts(
        "tui/a.rs",
        r#"t!("a-b", count = list(|it| it.len(), x), name = "c, d = e")"#,
    );
    let names = ["count", "name"].map(str::to_owned).into_iter().collect();
    assert_eq!(said(&source), [("a-b".to_owned(), names)]);
}
