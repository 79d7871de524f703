//! One form for what travels in several: flat members, aliases, bare results.

use serde_json::{Map, Value, json};

use super::clarification::settle_questions;
use crate::protocol::Kind;

/// Resolves aliases of a kind's metadata; unknown members stay as they are.
///
/// The same function serves JSON documents, the payload of `document_start` and every patch.
pub fn normalise(kind: &Kind, mut members: Map<String, Value>) -> Map<String, Value> {
    rename(&mut members, "durationMs", "duration_ms");
    rename(&mut members, "exit_code", "exitCode");
    for alias in ["call_id", "callId"] {
        rename(&mut members, alias, "toolCallId");
    }
    match kind {
        Kind::FileEdit | Kind::CodeReference => {
            for alias in ["path", "file", "target_file"] {
                rename(&mut members, alias, "filePath");
            }
        }
        Kind::TerminalCommand => rename(&mut members, "cwd", "workingDirectory"),
        Kind::ToolCall => rename(&mut members, "name", "toolName"),
        Kind::Plan => rename(&mut members, "name", "title"),
        Kind::Text | Kind::CodeBlock | Kind::Clarification | Kind::Error | Kind::TodoUpdate | Kind::Other(_) => {}
    }
    match kind {
        Kind::FileEdit => settle_diff(&mut members),
        Kind::Clarification => settle_questions(&mut members),
        Kind::ToolCall => {
            if let Some(arguments) = members.get_mut("arguments") {
                *arguments = normalise_arguments(arguments.take());
            }
            if let Some(result) = members.get_mut("result") {
                *result = normalise_result(result.take());
            }
        }
        Kind::Text
        | Kind::CodeReference
        | Kind::CodeBlock
        | Kind::TerminalCommand
        | Kind::Plan
        | Kind::Error
        | Kind::TodoUpdate
        | Kind::Other(_) => {}
    }
    members
}

/// Arguments as an object: JSON text is parsed, anything else is kept under `_raw`.
pub fn normalise_arguments(arguments: Value) -> Value {
    match arguments {
        Value::Object(_) => arguments,
        Value::Null => json!({}),
        Value::String(text) if text.trim().is_empty() => json!({}),
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(whole @ Value::Object(_)) => whole,
            Ok(_) | Err(_) => json!({ "_raw": text }),
        },
        other => json!({ "_raw": other.to_string() }),
    }
}

/// A result as `{status, data}`.
pub fn normalise_result(result: Value) -> Value {
    let Value::Object(mut members) = result else {
        return json!({ "status": "success", "data": result });
    };
    if let Some("success" | "error") = members.get("status").and_then(Value::as_str) {
        members.entry("data").or_insert(Value::Null);
        return Value::Object(members);
    }
    if members.get("status").is_none() && matches!(members.get("error"), Some(Value::String(_) | Value::Object(_))) {
        return json!({ "status": "error", "data": members.shift_remove("error") });
    }
    json!({ "status": "success", "data": members })
}

/// RFC 7396: null removes, objects merge, everything else replaces.
pub fn merge_patch(target: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (name, value) in patch {
        match value {
            Value::Null => {
                target.shift_remove(&name);
            }
            Value::Object(inner) => {
                let slot = target.entry(name).or_insert_with(|| Value::Object(Map::new()));
                if !slot.is_object() {
                    *slot = Value::Object(Map::new());
                }
                if let Value::Object(members) = slot {
                    merge_patch(members, inner);
                }
            }
            other => {
                target.insert(name, other);
            }
        }
    }
}

/// `old_string` and `new_string`, inside `diff` or beside it, become one `diff`.
fn settle_diff(members: &mut Map<String, Value>) {
    for (alias, name) in [("old_string", "oldString"), ("new_string", "newString")] {
        rename(members, alias, name);
    }
    if let Some(Value::Object(diff)) = members.get_mut("diff") {
        rename(diff, "old_string", "oldString");
        rename(diff, "new_string", "newString");
        rename(diff, "start_line", "startLine");
        rename(diff, "end_line", "endLine");
    }
    let loose: Vec<_> = ["oldString", "newString", "startLine", "endLine"]
        .into_iter()
        .filter_map(|name| members.shift_remove(name).map(|value| (name, value)))
        .collect();
    if loose.is_empty() {
        return;
    }
    let slot = members.entry("diff").or_insert_with(|| json!({}));
    if !slot.is_object() {
        *slot = json!({});
    }
    if let Value::Object(diff) = slot {
        for (name, value) in loose {
            diff.entry(name).or_insert(value);
        }
    }
}

/// The member under its own name wins over its alias.
fn rename(members: &mut Map<String, Value>, alias: &str, name: &str) {
    if let Some(value) = members.shift_remove(alias)
        && members.get(name).is_none_or(Value::is_null)
    {
        members.insert(name.to_owned(), value);
    }
}

/// The fence tag for a path, `""` when its ending says nothing.
pub fn language_of(path: &str) -> &'static str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let known = |table: &[(&str, &'static str)], key: &str| {
        table
            .iter()
            .find(|(it, _)| it.eq_ignore_ascii_case(key))
            .map(|(_, tag)| *tag)
    };
    known(NAMES, name)
        .or_else(|| known(ENDINGS, ending))
        .unwrap_or_default()
}

const NAMES: &[(&str, &str)] = &[
    ("Dockerfile", "dockerfile"),
    ("Makefile", "makefile"),
    ("CMakeLists.txt", "cmake"),
    ("Cargo.lock", "toml"),
    ("Gemfile", "ruby"),
    ("Rakefile", "ruby"),
];

const ENDINGS: &[(&str, &str)] = &[
    ("rs", "rust"),
    ("py", "python"),
    ("pyi", "python"),
    ("js", "javascript"),
    ("mjs", "javascript"),
    ("cjs", "javascript"),
    ("jsx", "jsx"),
    ("ts", "typescript"),
    ("mts", "typescript"),
    ("cts", "typescript"),
    ("tsx", "tsx"),
    ("go", "go"),
    ("c", "c"),
    ("h", "c"),
    ("cc", "cpp"),
    ("cpp", "cpp"),
    ("cxx", "cpp"),
    ("hpp", "cpp"),
    ("hh", "cpp"),
    ("cs", "csharp"),
    ("java", "java"),
    ("kt", "kotlin"),
    ("kts", "kotlin"),
    ("scala", "scala"),
    ("swift", "swift"),
    ("rb", "ruby"),
    ("php", "php"),
    ("pl", "perl"),
    ("pm", "perl"),
    ("lua", "lua"),
    ("r", "r"),
    ("jl", "julia"),
    ("dart", "dart"),
    ("ex", "elixir"),
    ("exs", "elixir"),
    ("erl", "erlang"),
    ("hs", "haskell"),
    ("ml", "ocaml"),
    ("mli", "ocaml"),
    ("clj", "clojure"),
    ("zig", "zig"),
    ("nim", "nim"),
    ("sh", "bash"),
    ("bash", "bash"),
    ("zsh", "zsh"),
    ("fish", "fish"),
    ("ps1", "powershell"),
    ("sql", "sql"),
    ("html", "html"),
    ("htm", "html"),
    ("css", "css"),
    ("scss", "scss"),
    ("less", "less"),
    ("vue", "vue"),
    ("svelte", "svelte"),
    ("json", "json"),
    ("jsonc", "jsonc"),
    ("yaml", "yaml"),
    ("yml", "yaml"),
    ("toml", "toml"),
    ("ini", "ini"),
    ("xml", "xml"),
    ("md", "markdown"),
    ("tex", "latex"),
    ("proto", "protobuf"),
    ("graphql", "graphql"),
    ("tf", "terraform"),
    ("nix", "nix"),
    ("diff", "diff"),
    ("patch", "diff"),
    ("mk", "makefile"),
    ("cmake", "cmake"),
    ("dockerfile", "dockerfile"),
];
