//! HTML export: the content of the screen as one page.
//!
//! Folds are `<details>`, colours come from the built-in themes, and a content security policy in the page forbids to
//! load or run anything.

use std::fmt::Write as _;

use serde_json::Value;

use super::ExportedConversation;
use crate::{
    protocol::{
        Applied, CommandState, Document, Kind, PlanTodo as Todo, Role as Speaker, TextFormat, TodoStatus, View,
    },
    text::{
        Background, Role, Sanitized, Span,
        ansi::Output,
        code_lines,
        diff::{self, CONTEXT_LINES, Diff},
        figure,
        markdown::{escape, to_html},
    },
    theme::{GROUNDS, ROLES, Rgb, Theme, of_index},
    transcript::Exchange,
};

/// Number of lines above which outputs and new files are folded.
const MAX_OPEN_LINES: usize = 40;
/// Number of lines above which a code block is not highlighted, so that the page opens quickly.
const MAX_COLOURED_LINES: usize = 2_000;

const STYLE: &str = include_str!("../../assets/export/page.css");

/// Returns the page. With `has_others` the other branches follow at the end, folded.
pub fn page(whole: &ExportedConversation, has_others: bool) -> String {
    let title = clean(&whole.title());
    let mut out = String::with_capacity(64 << 10);
    out.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    out.push_str(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n",
    );
    let _ = write!(
        out,
        "<meta name=\"generator\" content=\"sheaf {}\">\n<title>{title}</title>\n<style>\n{}{STYLE}</style>\n</head>\n<body>\n<main>\n",
        env!("CARGO_PKG_VERSION"),
        colours(),
    );
    let _ = write!(
        out,
        "<header>\n<h1>{title}</h1>\n<p>{}</p>\n</header>\n",
        clean(&about(whole))
    );
    for exchange in &whole.transcript.exchanges {
        section(exchange, 0, &mut out);
    }
    let others = whole.transcript.other_branches();
    for (after, exchanges) in others.iter().filter(|_| has_others) {
        let _ = writeln!(
            out,
            "<details class=\"branch\"><summary>another branch, after turn {}</summary>",
            after.0
        );
        for (exchange, shared) in exchanges {
            section(exchange, *shared, &mut out);
        }
        out.push_str("</details>\n");
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn about(whole: &ExportedConversation) -> String {
    let mut facts = Vec::new();
    if !whole.session.workspace.is_empty() {
        facts.push(whole.session.workspace.clone());
    }
    let mut models: Vec<&str> = Vec::new();
    for model in whole
        .transcript
        .exchanges
        .iter()
        .filter_map(|it| it.response.model.as_deref())
    {
        if !model.is_empty() && !models.contains(&model) {
            models.push(model);
        }
    }
    facts.extend(models.into_iter().map(str::to_owned));
    // What the user did before the first message stands in an exchange without one.
    let turns = whole
        .transcript
        .exchanges
        .iter()
        .filter(|it| it.message.is_some())
        .count();
    facts.push(figure::count(turns, "turn", "turns").into_string());
    facts.join(" · ")
}

/// Writes one exchange. The first `shared` documents, and then the message, are left out: they are elsewhere on the
/// page.
fn section(exchange: &Exchange, shared: usize, out: &mut String) {
    let turn = exchange.turn.0;
    if shared == 0 {
        let _ = writeln!(out, "<section id=\"t{turn}\">");
    } else {
        out.push_str("<section>\n");
    }
    if let Some(message) = exchange.message.as_ref().filter(|_| shared == 0) {
        let _ = writeln!(
            out,
            "<article class=\"message\"><a class=\"address\" href=\"#t{turn}\">{turn}</a><div class=\"body\">{}</div></article>",
            clean(message.content.trim_end())
        );
    }
    let response = &exchange.response;
    let mut thoughts = response
        .thinking
        .iter()
        .filter(|it| shared == 0 || it.before >= shared)
        .peekable();
    for at in shared..=response.documents.len() {
        while let Some(thought) = thoughts.next_if(|it| it.before <= at) {
            let body = to_html(&thought.text, &code);
            let _ = writeln!(
                out,
                "<article class=\"thought\"><span class=\"address\">·</span><div class=\"body\"><details><summary>thought</summary><div>{body}</div></details></div></article>"
            );
        }
        if let Some(document) = response.documents.get(at) {
            let address = format!("{turn}.{}", response.number(at));
            let _ = write!(
                out,
                "<article id=\"d{address}\" class=\"{}\"><a class=\"address\" href=\"#d{address}\">{address}</a><div class=\"body\">",
                clean(document.kind.as_str())
            );
            body(document, out);
            out.push_str("</div></article>\n");
        }
    }
    out.push_str("</section>\n");
}

fn body(document: &Document, out: &mut String) {
    match document.view() {
        View::Text(it) if it.format == TextFormat::Plain => {
            let _ = write!(out, "<pre>{}</pre>", clean(it.content));
        }
        View::Text(it) => {
            let is_users = document.metadata.get("role").and_then(Value::as_str) == Some(Speaker::User.as_str());
            if is_users {
                let _ = write!(out, "<p class=\"wait\"><b>{}</b></p>", clean(it.content));
            } else {
                out.push_str(&to_html(it.content, &code));
            }
        }
        View::CodeReference(it) => {
            let lines = format!("{}–{}", it.start_line, it.end_line);
            let head = format!("↗ {}:{lines}", it.file_path);
            fold(true, &head, it.language, &code(it.language, it.content), out);
        }
        View::CodeBlock(it) => {
            let is_short = it.content.lines().count() <= MAX_OPEN_LINES;
            fold(is_short, "code", it.language, &code(it.language, it.content), out);
        }
        View::FileEdit(it) => {
            let (diff, counts) = match it.compare(CONTEXT_LINES) {
                Some(diff) => (diff_html(&diff), format!("+{} −{}", diff.added, diff.removed)),
                None => {
                    let content = it.content.unwrap_or_default();
                    (code(it.language, content), format!("+{}", content.lines().count()))
                }
            };
            let target = it.new_file_path.map(|to| format!(" → {to}")).unwrap_or_default();
            let head = format!("± {} {}{target}", it.operation, it.file_path);
            let is_short = diff.lines().count() <= 2 * MAX_OPEN_LINES;
            let facts = format!("{counts} {}", it.applied);
            fold(is_short && it.applied != Applied::Rejected, &head, &facts, &diff, out);
        }
        View::ToolCall(it) => {
            let sign = match &it.result {
                Some(result) if result.failed => "✗",
                Some(_) => "●",
                None => "○",
            };
            let took = it
                .duration_ms
                .map(|it| figure::duration(it).into_string())
                .unwrap_or_default();
            let arguments = pretty(&Value::Object(it.arguments.clone()));
            let result = it.result.map(|it| match it.data {
                Value::String(text) => text.clone(),
                other => pretty(other),
            });
            let mut inner = format!("<pre>{}</pre>", clean(&arguments));
            if let Some(result) = result {
                let _ = write!(inner, "<pre>{}</pre>", clean(&result));
            }
            let gist = it.arguments.values().find_map(Value::as_str).unwrap_or_default();
            let gist: String = gist.lines().next().unwrap_or_default().chars().take(80).collect();
            fold(false, &format!("{sign} {} {gist}", it.tool_name), &took, &inner, out);
        }
        View::TerminalCommand(it) => {
            let end = match (it.exit_code, &it.state) {
                (Some(0), _) => "✓ 0".to_owned(),
                (Some(code), _) => format!("✗ {code}"),
                (None, CommandState::Completed) => String::new(),
                (None, state) => state.to_string(),
            };
            let took = it
                .duration_ms
                .map(|it| figure::duration(it).into_string())
                .unwrap_or_default();
            let output = Output::of(it.output);
            let lines = output.lines(0..output.lines_total());
            let is_short = lines.len() <= MAX_OPEN_LINES;
            let head = format!("$ {}", it.command);
            fold(
                is_short,
                &head,
                &format!("{end} {took}"),
                &spans_html("output", lines),
                out,
            );
        }
        View::Plan(it) => {
            let _ = write!(out, "<h3>{}</h3>", clean(it.title));
            out.push_str(&to_html(it.overview, &code));
            out.push_str(&to_html(it.content, &code));
            todos(&it.todos, out);
        }
        View::Clarification(it) => {
            out.push_str(&to_html(it.content, &code));
            out.push_str("<dl>");
            for question in &it.questions {
                let _ = write!(out, "<dt>? {}</dt>", clean(question.text));
                let answer = it.answers.iter().find(|answer| answer.question_id == question.id);
                let chosen = question
                    .options
                    .iter()
                    .filter(|option| answer.is_some_and(|it| it.selected_option_ids.iter().any(|id| id == option.id)));
                let mut said: Vec<String> = chosen.map(|it| it.label.to_owned()).collect();
                said.extend(answer.and_then(|it| it.free_text.clone()));
                let said = if said.is_empty() {
                    it.outcome
                        .as_ref()
                        .map_or_else(|| "not answered".to_owned(), ToString::to_string)
                } else {
                    said.join(", ")
                };
                let _ = write!(out, "<dd><b>{}</b></dd>", clean(&said));
            }
            out.push_str("</dl>");
        }
        View::Error(it) => {
            let _ = write!(
                out,
                "<p class=\"bad\"><b>✗ {}</b> <span class=\"facts\">{} {}</span></p>",
                clean(it.content),
                clean(it.source),
                clean(it.code)
            );
            if !it.details.is_empty() {
                let _ = write!(out, "<pre>{}</pre>", clean(&it.details));
            }
        }
        _ if matches!(document.kind, Kind::Other(_)) => {
            let whole = pretty(&document.to_json(0));
            fold(
                false,
                document.kind.as_str(),
                "",
                &format!("<pre>{}</pre>", clean(&whole)),
                out,
            );
        }
        _ => {
            let _ = write!(out, "<pre>{}</pre>", clean(&document.plain_text()));
        }
    }
}

fn todos(todos: &[Todo<'_>], out: &mut String) {
    if todos.is_empty() {
        return;
    }
    out.push_str("<ul class=\"todos\">");
    for todo in todos {
        let sign = match todo.status {
            TodoStatus::Completed => "☑",
            TodoStatus::InProgress => "◐",
            TodoStatus::Cancelled => "☒",
            TodoStatus::Pending | TodoStatus::Other(_) => "☐",
        };
        let status = clean(todo.status.as_str());
        let _ = write!(out, "<li class=\"{status}\">{sign} {}</li>", clean(todo.content));
    }
    out.push_str("</ul>");
}

fn fold(is_open: bool, head: &str, facts: &str, inner: &str, out: &mut String) {
    let open = if is_open { " open" } else { "" };
    let _ = write!(
        out,
        "<details{open}><summary>{}<span class=\"facts\">{}</span></summary>{inner}</details>",
        clean(head),
        clean(facts.trim())
    );
}

/// Sanitizes and escapes text for HTML.
fn clean(text: &str) -> String {
    escape(&Sanitized::new(text))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Returns a code block with highlighting.
fn code(language: &str, text: &str) -> String {
    let lines = if text.lines().count() <= MAX_COLOURED_LINES {
        code_lines(language, text)
    } else {
        Vec::new()
    };
    if lines.is_empty() {
        return format!("<pre><code>{}</code></pre>\n", clean(text));
    }
    spans_html("code", lines.iter().map(|it| it.iter()))
}

fn spans_html<L, S>(class: &str, lines: impl IntoIterator<Item = L>) -> String
where
    L: IntoIterator<Item = S>,
    S: std::borrow::Borrow<Span>,
{
    let mut out = format!("<pre class=\"{class}\"><code>");
    for line in lines {
        for span in line {
            span_html(span.borrow(), &mut out);
        }
        out.push('\n');
    }
    out.push_str("</code></pre>\n");
    out
}

fn span_html(span: &Span, out: &mut String) {
    let text = escape(&span.text);
    let mut style = String::new();
    if let Some(colour) = colour_of(span.role) {
        let _ = write!(style, "color:{colour}");
    }
    if let Background::Indexed(_) | Background::Rgb(..) = span.background
        && let Some(behind) = ground_colour(span.background)
    {
        let _ = write!(style, ";background:{behind}");
    }
    let marks: String = [
        (crate::text::Modifier::BOLD, "b"),
        (crate::text::Modifier::ITALIC, "i"),
        (crate::text::Modifier::UNDERLINE, "u"),
        (crate::text::Modifier::STRIKE, "s"),
    ]
    .iter()
    .filter(|(mark, _)| span.modifier.contains(*mark))
    .map(|(_, class)| *class)
    .collect::<Vec<_>>()
    .join(" ");
    match (style.is_empty(), marks.is_empty()) {
        (true, true) => out.push_str(&text),
        (_, true) => {
            let _ = write!(out, "<span style=\"{style}\">{text}</span>");
        }
        (_, false) => {
            let _ = write!(out, "<span class=\"{marks}\" style=\"{style}\">{text}</span>");
        }
    }
}

fn diff_html(diff: &Diff) -> String {
    let mut out = "<pre class=\"diff\"><code>".to_owned();
    for line in &diff.lines {
        let (class, sign, number) = match line.kind {
            diff::LineKind::Context => ("context", " ", line.new),
            diff::LineKind::Removed => ("removed", "−", line.old),
            diff::LineKind::Added => ("added", "+", line.new),
            diff::LineKind::Skip(_) => ("skip", "⋯", None),
        };
        let number = number.map(|it| it.to_string()).unwrap_or_default();
        let _ = write!(
            out,
            "<span class=\"line {class}\" data-number=\"{number:>5}\" data-sign=\"{sign}\">"
        );
        for (text, is_changed) in line.pieces() {
            let text = escape(&text);
            if is_changed {
                let _ = write!(out, "<mark>{text}</mark>");
            } else {
                out.push_str(&text);
            }
        }
        out.push_str("</span>");
    }
    out.push_str("</code></pre>\n");
    out
}

/// Role for each of the ANSI colours black, red, green, yellow, blue, magenta, cyan, white. Empty: the text colour.
const SIXTEEN: [&str; 8] = ["faint", "error", "done", "waiting", "link", "keyword", "type", ""];

/// Returns the colours of the light and the dark theme as CSS variables; the browser's setting chooses.
fn colours() -> String {
    let block = |name: &str| {
        let Some(theme) = Theme::built_in(name) else {
            return String::new();
        };
        let mut out = String::from(":root {");
        if let Some(colour) = theme.background() {
            let _ = write!(out, " --ground: {};", hex(colour));
        }
        let roles = ROLES.iter().map(|(name, role)| (*name, theme.colour(*role)));
        let grounds = GROUNDS
            .iter()
            .map(|(name, ground)| (*name, theme.background_of(*ground)));
        for (name, colour) in roles.chain(grounds) {
            if let Some(colour) = colour.filter(|_| !name.is_empty()) {
                let _ = write!(out, " --{}: {};", name.replace('.', "-"), hex(colour));
            }
        }
        out + " }\n"
    };
    format!(
        "{}@media (prefers-color-scheme: dark) {{ {} }}\n",
        block("sheaf-light"),
        block("sheaf-dark")
    )
}

fn hex(colour: Rgb) -> String {
    format!("#{:02x}{:02x}{:02x}", colour.0, colour.1, colour.2)
}

fn colour_of(role: Role) -> Option<String> {
    match role {
        Role::Text => None,
        // ANSI colours become the theme's colours for the same purpose.
        Role::Indexed(index @ 0..16) => {
            let name = SIXTEEN.get(usize::from(index % 8))?;
            (!name.is_empty()).then(|| format!("var(--{name})"))
        }
        Role::Indexed(index) => Some(hex(of_index(index)?)),
        Role::Rgb(red, green, blue) => Some(hex(Rgb(red, green, blue))),
        Role::Picture(..) => None,
        other => {
            let name = ROLES.iter().find(|it| it.1 == other)?.0;
            Some(format!("var(--{})", name.replace('.', "-")))
        }
    }
}

fn ground_colour(ground: Background) -> Option<String> {
    match ground {
        Background::Indexed(index) => Some(hex(of_index(index)?)),
        Background::Rgb(red, green, blue) => Some(hex(Rgb(red, green, blue))),
        _ => None,
    }
}
