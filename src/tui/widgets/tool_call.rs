//! `tool_call`: one line with the argument that matters; unfolded, all arguments and the result.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{
    DocumentKind, Fold, Key, Leaf, RenderContext, copy, decision, elapsed_ms, error,
    heading::{Facts, Weight, first_line, gap, heading, line, path_heading, sign},
    second,
    value::{ValueFrame, member_rows, rows},
};
use crate::{
    locale::{self, FluentValue, figure},
    protocol::{
        CallSubject, Document, View,
        document::{COMPACT, ToolCall},
        tool_label,
    },
    t,
    text::{Role, Sanitized, Span, StyledLine, WordList, width::width},
};

/// Calls that are no tool's of the agent: their word, their subject and their names on the wire.
const OTHERS: [(&str, CallSubject, &[&str]); 2] = [
    ("task", CallSubject::Task, &["task", "Task"]),
    ("compact", CallSubject::Compact, &[COMPACT]),
];

const PATHS: WordList =
    WordList("target_file file_path path filePath relative_workspace_path absolute_path filename file");
const FOLDERS: WordList = WordList(
    "target_directory target_directories path relative_workspace_path directory dir_path targetDirectory
     targetDirectories include_pattern glob",
);

/// Members that describe a call of an unknown tool, best first.
const TELLING: WordList = WordList(
    "command cmd query pattern search_term url uri path file_path filePath target_file file filename name title
     target_mode_id description prompt text message id",
);

fn known(name: &str) -> Option<(&'static str, CallSubject)> {
    #[cfg(test)]
    tool_label::publish(crate::tools::labels);
    let other = OTHERS.iter().find(|(.., names)| names.contains(&name));
    let other = other.map(|&(word, subject, _)| (word, subject));
    other.or_else(|| tool_label::label(name).map(|it| (it.word.as_str(), it.subject)))
}

/// The word that the screen shows for a tool; a name that is not known is its own word.
pub(super) fn word(name: &str) -> &str {
    known(name).map_or(name, |(word, _)| word)
}

/// The word for a call: that of its tool, or the server and the tool that does it.
pub(super) fn call_word<'a>(call: &ToolCall<'a>) -> Cow<'a, str> {
    if call.tool_name == "mcp_call"
        && let (Some(server), Some(tool)) = (argument(call.arguments, "server"), argument(call.arguments, "tool"))
    {
        return format!("{server} › {tool}").into();
    }
    tool_label::served(call.tool_name).map_or_else(|| word(call.tool_name).into(), Cow::Owned)
}

/// Returns true for a tool of this program, by any of its names.
pub(super) fn is_ours(name: &str) -> bool {
    known(name).is_some()
}

pub(super) fn is_running(call: &ToolCall<'_>, document: &Document) -> bool {
    document.is_open() && call.result.is_none()
}

impl DocumentKind for ToolCall<'_> {
    fn folded(&self, document: &Document, context: &RenderContext<'_>) -> Leaf {
        let running = is_running(self, document);
        let failed = self.result.is_some_and(|it| it.failed);
        let missing = self.result.is_none() && !running;
        let glyph = if running {
            sign("◐", Role::Waiting)
        } else if failed || missing {
            sign("✗", Role::Error)
        } else {
            sign("●", Role::Done)
        };
        let facts = facts(self, document, context, running);
        let why = self.result.filter(|it| it.failed).and_then(|it| reason(it.data));
        let why = why.map(|it| Span::new(it, Role::Error));
        let why = why.as_ref().filter(|_| context.fold != Fold::Full);
        let mut head = head(self, facts.clone(), why, context);
        // A reason that would be cut has a row of its own.
        let below = why.filter(|it| context.fold == Fold::Usual && !head.plain().contains(it.text.as_str()));
        if below.is_some() {
            head = self::head(self, facts, None, context);
        }
        let below = below.map(|it| line(std::slice::from_ref(it), Facts::default(), context.width));
        let because = match context.approval.map(Document::view) {
            Some(View::Clarification(it)) => decision::because(&it, 1, context),
            Some(_) | None => Vec::new(),
        };
        let because: Vec<_> = below.into_iter().chain(because).collect();
        if context.fold == Fold::Folded || context.fold == Fold::Usual && because.is_empty() {
            return Leaf::line(glyph, head);
        }
        if context.fold == Fold::Usual {
            return Leaf::of(glyph, std::iter::once(head).chain(because).collect());
        }
        head.continues = false;
        let mut whole = vec![head];
        whole.extend(because);
        let plain = ValueFrame {
            columns: context.width,
            indent: &[],
            role: Role::Text,
        };
        match self.arguments.get("_raw") {
            Some(Value::String(raw)) if self.arguments.len() == 1 => {
                whole.push(line(
                    &[sign(t!("call-no-json"), Role::Dim)],
                    Facts::default(),
                    context.width,
                ));
                whole.extend(super::value::text_rows(raw, plain));
            }
            Some(_) | None => whole.extend(member_rows(self.arguments, plain)),
        }
        let bar = [sign("│ ", Role::Rule)];
        if let Some(result) = self.result {
            let role = if result.failed { Role::Error } else { Role::Dim };
            whole.extend(rows(
                readable(result.data),
                ValueFrame {
                    columns: context.width,
                    indent: &bar,
                    role,
                },
            ));
        }
        Leaf::of(glyph, whole)
    }

    fn summary(&self, _: &Document) -> Sanitized {
        let title = title(self);
        let text = format!("{} {}{}", call_word(self), title.text, title.behind);
        Sanitized::line(text.trim_end())
    }

    fn depends(&self, document: &Document, context: &RenderContext<'_>, key: &mut Key) {
        key.second = second(document, context);
        key.has_approval = context.approval.is_some();
    }

    fn is_running(&self, document: &Document) -> bool {
        is_running(self, document)
    }

    fn copy_text(&self, document: &Document) -> Sanitized {
        let mut text = self.summary(document).into_string();
        if let Some(result) = &self.result {
            text.push('\n');
            match readable(result.data) {
                Value::String(result) => text.push_str(result),
                other => text.push_str(&serde_json::to_string_pretty(other).unwrap_or_default()),
            }
        }
        Sanitized::from(text)
    }

    fn markdown(&self, document: &Document) -> String {
        let summary = self.summary(document);
        let text = self.copy_text(document);
        match text.as_str().split_once('\n') {
            Some((_, result)) => format!("{summary}\n\n{}", copy::fenced("", result)),
            None => summary.into_string(),
        }
    }
}

fn facts(call: &ToolCall<'_>, document: &Document, look: &RenderContext<'_>, running: bool) -> Facts {
    let mut facts = Facts::default();
    if running {
        if let Some(step) = document.metadata.get("progress").and_then(Value::as_object) {
            facts.word(Weight::Light, progress(step), Role::Dim);
        }
        facts.word(Weight::Heavy, seconds(elapsed_ms(document, look)), Role::Waiting);
        return facts;
    }
    match call.result {
        Some(it) if it.failed => facts.word(Weight::Heavy, t!("call-failed"), Role::Error),
        // How much room was made is all that a compaction is about.
        Some(it) if call.tool_name == COMPACT => facts.word(Weight::Heavy, outcome(call, it.data), Role::Dim),
        Some(it) => facts.word(Weight::Medium, outcome(call, it.data), Role::Dim),
        None if document.is_incomplete() => facts.word(Weight::Heavy, t!("document-broken-off"), Role::Error),
        None => facts.word(Weight::Heavy, t!("call-no-result"), Role::Error),
    }
    if let Some(word) = look.approval.and_then(decision::granted) {
        facts.word(Weight::Light, word, Role::Dim);
    }
    if call.truncated {
        facts.word(Weight::Light, t!("document-cut"), Role::Dim);
    }
    facts.duration(call.duration_ms);
    facts
}

/// A running time in whole seconds.
pub(super) fn seconds(milliseconds: u64) -> Sanitized {
    match milliseconds / 1000 {
        seconds @ 0..10 => Sanitized::from(format!("{seconds} s")),
        seconds => figure::duration(seconds * 1000),
    }
}

/// The step that a running call is at, as whoever runs it says: the number, of how many, and a word about it.
fn progress(step: &Map<String, Value>) -> Sanitized {
    let number = |name: &str| step.get(name).and_then(Value::as_u64);
    let tool = step.get("toolName").and_then(Value::as_str).map(word);
    let said = step.get("message").and_then(Value::as_str).or(tool).unwrap_or_default();
    let count = match (number("step"), number("total")) {
        (Some(step), Some(total)) => t!("call-step-of", number = step, total = total),
        (Some(step), None) => t!("call-step", number = step),
        (None, _) => String::new(),
    };
    let separator = if count.is_empty() || said.is_empty() { "" } else { ": " };
    Sanitized::line(&format!("{count}{separator}{said}"))
}

fn head(call: &ToolCall<'_>, facts: Facts, why: Option<&Span>, look: &RenderContext<'_>) -> StyledLine {
    let title = title(call);
    let mut behind = Vec::new();
    if !title.behind.is_empty() {
        behind.push(Span::new(title.behind, Role::Text));
    }
    if let Some(why) = why {
        behind.extend([gap(2), why.clone()]);
    }
    let text = Span::new(title.text, Role::Text);
    // The path gives way to what stands behind it only as far as its name.
    let word = &*call_word(call);
    if title.is_path && width(&text.text) * 2 > look.width {
        return path_heading(word, &text, &behind, facts, look.width);
    }
    let spans: Vec<Span> = std::iter::once(text).chain(behind).collect();
    heading(word, &spans, facts, look.width)
}

/// The title of a call.
struct Title {
    text: Sanitized,
    /// A range of lines, which stays when a path is cut.
    behind: Sanitized,
    is_path: bool,
}

impl Title {
    fn plain(text: &str) -> Self {
        Self {
            text: first_line(text),
            behind: Sanitized::default(),
            is_path: false,
        }
    }

    fn path(text: &str) -> Self {
        Self {
            text: Sanitized::line(text),
            behind: Sanitized::default(),
            is_path: true,
        }
    }
}

fn title(call: &ToolCall<'_>) -> Title {
    let arguments = call.arguments;
    let first = |names: &[&str]| names.iter().find_map(|name| argument(arguments, name));
    let among = |names: WordList| names.iter().find_map(|name| argument(arguments, name));
    if let Some(raw) = first(&["_raw"]) {
        return Title::plain(&raw);
    }
    let subject = known(call.tool_name).map_or(CallSubject::Other, |(_, subject)| subject);
    let found = match subject {
        CallSubject::Read => among(PATHS).map(|path| Title {
            behind: lines(arguments),
            ..Title::path(&path)
        }),
        CallSubject::File => among(PATHS)
            .map(|it| Title::path(&it))
            .or_else(|| first(&["target_notebook"]).map(|it| Title::path(&it)))
            .or_else(|| first(&["input"]).map(|it| Title::plain(&patched(&it)))),
        CallSubject::Grep => first(&["pattern", "query", "regex"]).map(|pattern| {
            let place = among(FOLDERS).filter(|it| it != ".");
            let pattern = format!("\"{pattern}\"");
            Title::plain(&match place {
                Some(place) => t!("call-in", what = pattern, place = place),
                None => pattern,
            })
        }),
        CallSubject::Search => first(&["query"]).map(|query| {
            Title::plain(&match among(FOLDERS) {
                Some(place) => t!("call-search-in", what = query, place = place),
                None => query,
            })
        }),
        CallSubject::Find => first(&["glob_pattern", "pattern", "query", "globPattern"]).map(|pattern| {
            let place = first(&["target_directory", "targetDirectory", "path"]).filter(|it| it != ".");
            Title::plain(&match place {
                Some(place) => t!("call-in", what = pattern, place = place),
                None => pattern,
            })
        }),
        CallSubject::List => Some(Title::path(&among(FOLDERS).unwrap_or_else(|| ".".to_owned()))),
        CallSubject::Lints => Some(Title::plain(
            &first(&["paths", "path"]).unwrap_or_else(|| t!("call-changed-files").to_owned()),
        )),
        CallSubject::Symbol => first(&["symbol", "name"]).map(|symbol| {
            Title::plain(&match among(PATHS) {
                Some(place) => t!("call-in", what = symbol, place = place),
                None => symbol,
            })
        }),
        CallSubject::Command => first(&["command", "cmd", "command_id"]).map(|it| Title::plain(&it)),
        CallSubject::Web => first(&["search_term", "searchTerm", "query", "url"]).map(|it| Title::plain(&it)),
        CallSubject::Task => task(arguments),
        CallSubject::Compact => first(&["keep"])
            .map(|it| Title::plain(&t!("call-keeping", what = it)))
            .or_else(|| first(&["result"]).map(|it| Title::plain(&t!("call-without-result", what = it)))),
        CallSubject::Other => None,
    };
    found.unwrap_or_else(|| other(arguments))
}

/// The files that a patch names.
fn patched(patch: &str) -> String {
    let name = |line: &str| {
        let rest = line.strip_prefix("*** ")?;
        let (word, path) = rest.split_once(" File: ")?;
        matches!(word, "Add" | "Update" | "Delete").then(|| path.trim().to_owned())
    };
    let names: Vec<String> = patch.lines().filter_map(name).take(20).collect();
    if names.is_empty() {
        patch.to_owned()
    } else {
        names.join(" ")
    }
}

fn task(arguments: &Map<String, Value>) -> Option<Title> {
    let sort = argument(arguments, "subagent_type").or_else(|| argument(arguments, "subagentType"));
    let about = argument(arguments, "description").or_else(|| argument(arguments, "prompt"))?;
    Some(Title::plain(&match sort {
        Some(sort) => format!("{sort}: {}", first_line(&about)),
        None => about,
    }))
}

fn other(arguments: &Map<String, Value>) -> Title {
    let telling = TELLING.iter().find_map(|name| argument(arguments, name));
    let any = || arguments.keys().find_map(|name| argument(arguments, name));
    Title::plain(&telling.or_else(any).unwrap_or_default())
}

/// An argument as one text, if it is a scalar or a list of them.
fn argument(arguments: &Map<String, Value>, name: &str) -> Option<String> {
    let text = match arguments.get(name)? {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Array(items) => {
            let texts: Vec<&str> = items.iter().take(20).filter_map(Value::as_str).collect();
            texts.join(" ")
        }
        Value::Object(kind) => kind.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned(),
        Value::Null | Value::Bool(_) => return None,
    };
    (!text.trim().is_empty()).then_some(text)
}

/// `  1–80`, `  from 40`, `  last 20 lines`: which lines a call reads.
fn lines(arguments: &Map<String, Value>) -> Sanitized {
    let number = |names: &[&str]| {
        let value = names.iter().find_map(|name| arguments.get(*name))?;
        value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())
    };
    let first = number(&["offset", "start_line_one_indexed", "startLine", "start_line"]);
    let limit = number(&["limit"]).filter(|&it| it > 0);
    let last = number(&["end_line_one_indexed_inclusive", "endLine", "end_line"]);
    Sanitized::from(match (first, limit, last) {
        (Some(first), _, _) if first < 0 => {
            format!("  {}", t!("call-last-lines", count = first.unsigned_abs()))
        }
        (first, Some(limit), _) => {
            let first = first.unwrap_or(1).max(1);
            format!("  {first}–{}", first.saturating_add(limit - 1))
        }
        (first, None, Some(last)) if last > 0 => format!("  {}–{last}", first.unwrap_or(1).max(1)),
        (Some(first), None, _) if first > 1 => format!("  {}", t!("call-from-line", line = first)),
        (_, None, _) => String::new(),
    })
}

/// The result in figures: `3 matches`, `10 chunks`. Empty where there is nothing to count.
fn outcome(call: &ToolCall<'_>, data: &Value) -> Sanitized {
    let number = |name: &str| data.get(name).and_then(Value::as_u64).map(|it| it as usize);
    let length = |name: &str| data.get(name).and_then(Value::as_array).map(Vec::len);
    let items = || data.as_array().map(Vec::len);
    let hits = || data.as_str().map(hits);
    let text_lines = || {
        data.as_str()
            .map(|it| it.lines().filter(|it| !it.trim().is_empty()).count())
    };
    let count = |number: Option<usize>, id: &str| {
        number.map_or_else(Sanitized::default, |it| {
            Sanitized::from(locale::format(id, &[("count", FluentValue::from(it))]))
        })
    };
    match known(call.tool_name).map_or(CallSubject::Other, |(_, subject)| subject) {
        CallSubject::Grep => {
            let number = number("matchCount")
                .or_else(|| length("matches"))
                .or_else(items)
                .or_else(hits);
            count(number, "count-matches")
        }
        CallSubject::Search => count(length("chunks").or_else(items), "count-chunks"),
        CallSubject::Find => {
            let number = number("totalFiles")
                .or_else(|| length("files"))
                .or_else(items)
                .or_else(text_lines);
            count(number, "count-files")
        }
        CallSubject::List => count(length("entries").or_else(items).or_else(text_lines), "count-entries"),
        CallSubject::Symbol => count(number("count").or_else(|| length("places")), "count-places"),
        CallSubject::Lints => {
            let files = data.get("fileDiagnostics").and_then(Value::as_array);
            let problems = files.map(|files| {
                let each = files.iter().filter_map(|it| it.get("diagnostics")?.as_array());
                each.map(Vec::len).sum()
            });
            let failed = number("failedCheckers").filter(|it| *it > 0);
            match problems {
                // What was not looked at is not clean.
                Some(0) if data.get("available") == Some(&Value::Bool(false)) => {
                    Sanitized::literal(t!("call-unchecked"))
                }
                Some(0) if failed.is_some() => count(failed, "count-failed-checkers"),
                Some(0) => Sanitized::literal(t!("call-clean")),
                other => count(other, "count-problems"),
            }
        }
        CallSubject::Web => match number("status").filter(|it| *it >= 300) {
            Some(status) => Sanitized::from(status.to_string()),
            None => count(length("results"), "count-results"),
        },
        CallSubject::Task => count(number("toolCallCount"), "count-calls"),
        CallSubject::Compact => match (number("beforeTokens"), number("afterTokens")) {
            (Some(before), Some(after)) => Sanitized::from(t!(
                "call-compacted",
                before = figure::tokens(before as u64).as_str(),
                after = figure::tokens(after as u64).as_str()
            )),
            (..) => Sanitized::default(),
        },
        CallSubject::Command => match (data.get("exitCode").and_then(Value::as_i64), data.get("state")) {
            (Some(code), _) => Sanitized::from(t!("call-exit", code = code.to_string())),
            (None, Some(Value::String(state))) if state == "background" => Sanitized::literal(t!("call-still-running")),
            (None, Some(Value::String(state))) => Sanitized::line(&state.replace('_', " ")),
            (None, _) => Sanitized::default(),
        },
        CallSubject::Read | CallSubject::File => Sanitized::default(),
        CallSubject::Other => match data {
            Value::Array(items) => count(Some(items.len()), "count-items"),
            Value::Bool(_) | Value::Number(_) => super::value::short(data).unwrap_or_default(),
            Value::Null | Value::String(_) | Value::Object(_) => Sanitized::default(),
        },
    }
}

/// Lines that look like a hit of grep: `path:21:text`, or `21:text` under the file's name.
fn hits(text: &str) -> usize {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    let is_hit = |line: &&str| {
        let mut parts = line.splitn(3, ':');
        let (first, second, rest) = (parts.next(), parts.next(), parts.next());
        match (first, second, rest) {
            (Some(number), Some(_), _) if is_number(number.trim()) => true,
            (Some(_), Some(number), Some(_)) => is_number(number),
            _ => false,
        }
    };
    text.lines().filter(is_hit).count()
}

/// Why a call failed, in one line.
fn reason(data: &Value) -> Option<Sanitized> {
    let text = match data {
        Value::String(text) => text.as_str(),
        Value::Object(members) => ["message", "error", "reason", "detail"]
            .iter()
            .find_map(|name| members.get(*name)?.as_str())?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
    };
    let Some((code, rest)) = text.strip_prefix("Error [").and_then(|it| it.split_once("]: ")) else {
        let line = first_line(text);
        return (!line.is_empty()).then_some(line);
    };
    let said = error::reason(code, rest).unwrap_or_else(|| first_line(rest));
    (!said.is_empty()).then_some(said)
}

/// The part of a result that a person reads: the file's text, the hits, the report, without what wraps them.
pub(super) fn readable(data: &Value) -> &Value {
    let Value::Object(members) = data else { return data };
    let inner = [
        "content", "matches", "chunks", "files", "results", "entries", "report", "output",
    ]
    .iter()
    .find_map(|name| members.get(*name).filter(|it| it.is_string() || it.is_array()));
    inner.unwrap_or(data)
}

#[cfg(test)]
mod tests;
