//! An approval: a clarification about one planned action, which is shown whole, with hidden characters made visible.
//!
//! Its subject may name consequences in `wouldReach` and `wouldWrite`, lists of texts. The rule that "always" stores is the
//! description of the option that grants it.

use serde_json::Value;

use super::{
    Leaf, RenderContext, check_rows,
    decision::{labelled, parts, reason, reason_rows},
    file_edit,
    form::{Form, Grant, Row, grants},
    heading::{
        FACTS_FROM, Facts, Weight, being_typed, first_line, gap, key, keys_rows, sign, signed, titled, with_code, word,
    },
    tool_call,
};
use crate::{
    protocol::{
        Document, DocumentStart, Kind, Outcome, Permission, View,
        document::{Clarification, ToolCall, normalise},
    },
    t,
    text::{
        Role, Sanitized, Span, StyledLine, visible, visible_line,
        width::{expand_tabs, width},
        wrap::wrap,
    },
};

/// The widget, waiting or decided.
pub(super) fn leaf(
    view: &Clarification<'_>,
    document: &Document,
    look: &RenderContext<'_>,
    form: Option<&Form>,
) -> Leaf {
    let columns = look.width;
    let subject = subject(view, document);
    let planned = planned(view, subject.as_ref());
    let mut facts = Facts::default();
    let (state, role) = verdict(view, subject.as_ref(), document, form);
    facts.word(Weight::Heavy, state, role);
    if let Some(subject) = subject.as_ref().filter(|_| view.outcome.is_none()) {
        file_edit::check(subject, &mut facts);
    }
    let title: Vec<Span> = [
        Span::new(planned.verb, Role::Dim),
        Span::new(planned.title, Role::Strong).bold(),
    ]
    .into_iter()
    .filter(|it| !it.text.is_empty())
    .collect();
    // Whole, whatever its length: nobody can allow what is not on the screen.
    let word = word(t!("approval-allow"));
    let under = gap(width(&word.text));
    let mut rows = titled(&title, &[word], &[under], facts, columns);
    rows.extend(why(view, columns));
    if let Some(subject) = &subject {
        rows.extend(details(subject, look));
    }
    rows.extend(context(view, subject.as_ref(), columns));
    if let Some(needs) = needs(subject.as_ref()).filter(|_| columns < FACTS_FROM && view.outcome.is_none()) {
        rows.extend(labelled(
            t!("approval-needs"),
            &[Span::new(needs, Role::Waiting)],
            columns,
        ));
    }
    rows.extend(consequences(view, columns));
    match form.filter(|_| view.outcome.is_none()) {
        Some(form) => {
            rows.push(StyledLine::blank());
            rows.extend(if look.selected {
                grant_rows(view, form, columns)
            } else {
                chord_rows(view, columns)
            });
        }
        None => rows.extend(reasons(view, columns)),
    }
    Leaf::block(sign("?", Role::Waiting), rows)
}

/// The planned action as the document that it would become.
pub(super) fn subject(view: &Clarification<'_>, document: &Document) -> Option<Document> {
    let mut members = view.subject?.as_object()?.clone();
    let kind = Kind::parse(members.shift_remove("type")?.as_str()?);
    let content = members.shift_remove("content");
    if let Some(Value::Object(nested)) = members.shift_remove("metadata") {
        members.extend(nested);
    }
    Some(Document::open(
        DocumentStart {
            // Its code is another block than that of the next approval.
            id: format!("{}#subject", document.id).into(),
            sequence: None,
            content: content.as_ref().and_then(Value::as_str).map(Into::into),
            metadata: normalise(&kind, members),
            kind,
        },
        0,
    ))
}

/// The planned action in one line.
pub(super) fn title(view: &Clarification<'_>, document: &Document) -> Sanitized {
    first_line(&planned(view, subject(view, document).as_ref()).title)
}

/// The planned action and its object. The title is never cut.
struct Planned {
    verb: Sanitized,
    title: Sanitized,
}

fn planned(view: &Clarification<'_>, subject: Option<&Document>) -> Planned {
    let only = |title: Sanitized| Planned {
        verb: Sanitized::default(),
        title,
    };
    match subject.map(Document::view) {
        // Something must stand there; a subject that says nothing is no reason to show nothing.
        Some(View::TerminalCommand(it)) if !it.command.trim().is_empty() => only(visible(it.command)),
        Some(View::FileEdit(it)) => {
            let target = it.new_file_path.map(|it| format!(" → {}", visible_line(it)));
            Planned {
                verb: Sanitized::line(&format!("{} ", file_edit::verb(&it.operation))),
                title: Sanitized::from(format!("{}{}", visible_line(it.file_path), target.unwrap_or_default())),
            }
        }
        Some(View::ToolCall(it)) => match wanted_mode(&it) {
            Some((mode, _)) => only(Sanitized::from(t!("approval-mode", mode = visible_line(mode).as_str()))),
            None => match single(&it) {
                Some(text) => Planned {
                    verb: Sanitized::line(&format!("{} ", tool_call::call_word(&it))),
                    title: text,
                },
                None => only(visible_line(&tool_call::call_word(&it))),
            },
        },
        _ => only(match view.questions.first() {
            Some(question) if !question.text.trim().is_empty() => visible(question.text.trim()),
            Some(_) | None => visible(view.content.trim()),
        }),
    }
}

/// All that is said to a tool of ours, where it is one text: it needs no name.
fn single(call: &ToolCall<'_>) -> Option<Sanitized> {
    let mut arguments = call.arguments.values();
    match (arguments.next(), arguments.next()) {
        (Some(Value::String(text)), None) if tool_call::is_ours(call.tool_name) && !text.trim().is_empty() => {
            Some(visible(text))
        }
        _ => None,
    }
}

/// The mode that a call asks for, and why; none where it holds anything else.
fn wanted_mode<'a>(call: &ToolCall<'a>) -> Option<(&'a str, &'a str)> {
    let text = |name: &str| call.arguments.get(name).and_then(Value::as_str);
    let mut names = call.arguments.keys();
    let is_only = names.all(|it| it == "target_mode_id" || (it == "explanation" && text(it).is_some()));
    let mode = text("target_mode_id").filter(|_| is_only && tool_call::word(call.tool_name) == "mode")?;
    Some((mode, text("explanation").unwrap_or_default().trim()))
}

/// The command that an approval is about, every sign of it.
pub fn command_asked_for(document: &Document) -> Option<Sanitized> {
    let View::Clarification(view) = document.view() else {
        return None;
    };
    let subject = subject(&view, document)?;
    let View::TerminalCommand(it) = subject.view() else {
        return None;
    };
    Some(visible(it.command))
}

/// Details of the action that the title does not have.
fn details(subject: &Document, look: &RenderContext<'_>) -> Vec<StyledLine> {
    match subject.view() {
        View::TerminalCommand(it) => {
            let folder = it.working_directory.filter(|it| !it.is_empty());
            folder.map_or_else(Vec::new, |it| {
                labelled(
                    t!("approval-folder"),
                    &[Span::new(visible_line(it), Role::Text)],
                    look.width,
                )
            })
        }
        View::FileEdit(it) => [file_edit::body(&it, subject, look), check_rows(subject, look)].concat(),
        View::ToolCall(it) => {
            if let Some((_, why)) = wanted_mode(&it) {
                return wrap(&[Span::new(visible(why), Role::Text)], look.width, &[], &[]);
            }
            if single(&it).is_some() {
                return Vec::new();
            }
            let rows = it.arguments.iter().flat_map(|(name, value)| {
                let text = match value {
                    Value::String(text) => visible(text),
                    other => visible(&serde_json::to_string_pretty(other).unwrap_or_default()),
                };
                let name = Span::new(Sanitized::from(format!("{}: ", visible_line(name))), Role::Dim);
                wrap(&[name, Span::new(text, Role::Text)], look.width, &[], &[gap(2)])
            });
            rows.collect()
        }
        View::Unknown(_) => {
            let json = serde_json::to_string_pretty(&subject.metadata).unwrap_or_default();
            wrap(&[Span::new(visible(&json), Role::Text)], look.width, &[], &[])
        }
        _ => wrap(&[Span::new(visible(subject.text()), Role::Text)], look.width, &[], &[]),
    }
}

/// The text before the question, where it adds something.
fn context(view: &Clarification<'_>, subject: Option<&Document>, columns: usize) -> Vec<StyledLine> {
    let (together, lead) = together(subject, view.content.trim());
    let is_said = matches!(
        subject.map(Document::view),
        Some(View::ToolCall(it)) if wanted_mode(&it).is_some_and(|(_, why)| why == lead)
    );
    let is_nothing = lead.is_empty() && together.is_empty();
    if view.subject.is_none() || is_nothing || is_said || (!lead.contains('\n') && lead.ends_with('?')) {
        return Vec::new();
    }
    let role = if is_grave(view, subject) {
        Role::Error
    } else {
        Role::Dim
    };
    let mut rows = Vec::new();
    for (text, role) in [(together.as_str(), Role::Dim), (lead, role)] {
        if !text.is_empty() {
            rows.extend(wrap(&[Span::new(visible(text), role)], columns, &[], &[]));
        }
    }
    rows
}

/// That a change is one of several that are made together, in our words, and what else is said.
fn together<'a>(subject: Option<&Document>, lead: &'a str) -> (String, &'a str) {
    let number = |name: &str| subject?.metadata.get("together")?.get(name)?.as_u64();
    let (Some(at), Some(count)) = (number("at"), number("of")) else {
        return (String::new(), lead);
    };
    let own = format!("change {at} of {count} in one step");
    match lead.strip_prefix(&own) {
        // What a no means then is among our words.
        Some(rest) if rest.is_empty() || rest.starts_with([':', ';']) => (
            t!("approval-together", at = at, count = count),
            rest.split_once(';').map_or("", |it| it.1.trim_start()),
        ),
        Some(_) | None => (String::new(), lead),
    }
}

/// The warnings of an approval of a change, for every place where it is decided on.
pub(super) fn caution(document: &Document, columns: usize) -> Vec<StyledLine> {
    let View::Clarification(view) = document.view() else {
        return Vec::new();
    };
    let subject = subject(&view, document);
    let mut rows = Vec::new();
    if is_protected(&view) {
        let word = Span::new(Sanitized::literal(t!("approval-protected")), Role::Error);
        rows.extend(wrap(&[word], columns, &[], &[]));
    }
    rows.extend(context(&view, subject.as_ref(), columns));
    rows.extend(why(&view, columns));
    rows.extend(consequences(&view, columns));
    rows
}

/// A member of the planned action or of its metadata.
fn member<'a>(view: &Clarification<'a>, name: &str) -> Option<&'a Value> {
    view.subject
        .and_then(|it| it.get(name).or_else(|| it.get("metadata")?.get(name)))
}

/// Why the model wants the action, in its words.
fn why(view: &Clarification<'_>, columns: usize) -> Vec<StyledLine> {
    let why = member(view, "why").and_then(Value::as_str).map(str::trim);
    why.filter(|it| !it.is_empty()).map_or_else(Vec::new, |it| {
        let why = with_code(&visible_line(it), Role::Text);
        labelled(t!("approval-why"), &why, columns)
    })
}

/// Hosts and paths that the action reaches, and the rule that "always" would store, with its file.
fn consequences(view: &Clarification<'_>, columns: usize) -> Vec<StyledLine> {
    let mut rows = Vec::new();
    for (name, label) in [
        ("wouldReach", t!("approval-reach")),
        ("wouldWrite", t!("approval-write")),
    ] {
        for (at, text) in member(view, name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .enumerate()
        {
            let label = if at == 0 { label } else { "" };
            let text = crate::tui::spoken::worded(text);
            rows.extend(labelled(label, &[Span::new(visible_line(&text), Role::Text)], columns));
        }
    }
    let question = view.questions.first();
    let options = question.map_or(&[][..], |it| it.options.as_slice());
    let chosen = view.answers.iter().flat_map(|it| &it.selected_option_ids).next();
    let matters = view.outcome.is_none() || chosen.is_some_and(|it| it == "allow_always");
    let always = options.iter().find(|it| matters && it.id == "allow_always");
    if let Some(rule) = always.and_then(|it| it.description) {
        let rule = visible_line(rule.trim());
        let end = rule.rfind(')').map_or(rule.len(), |it| it + 1);
        let spans = [
            Span::new(rule.slice(0..end), Role::Code),
            Span::new(rule.slice(end..rule.len()), Role::Dim),
        ];
        rows.extend(labelled(t!("approval-rule"), &spans, columns));
    }
    rows
}

/// The keys that decide, or the reason that is being typed.
fn grant_rows(view: &Clarification<'_>, form: &Form, columns: usize) -> Vec<StyledLine> {
    let Some(question) = view.questions.first() else {
        return Vec::new();
    };
    if let Some(reason) = form.reason() {
        let asks = format!(" {} ", t!("approval-no-because"));
        let first = [sign("N", Role::Waiting).bold(), Span::new(asks, Role::Dim)];
        let spans = being_typed(reason);
        let mut rows = wrap(&spans, columns, &first, &[gap(2)]);
        rows.extend(keys_rows(
            &[
                key("enter", t!("key-send"), Role::Waiting),
                key("esc", t!("key-back"), Role::Waiting),
            ],
            columns,
        ));
        return rows;
    }
    let mut keys = Vec::new();
    let list = grants(question);
    let marked = form.row(view);
    for &(at, grant) in &list {
        let Some(option) = question.options.get(at) else {
            continue;
        };
        let does = match grant {
            Grant::Once => Sanitized::literal(t!("approval-key-once")),
            Grant::Session => Sanitized::literal(t!("approval-key-session")),
            Grant::Always if option.description.is_some() => Sanitized::literal(t!("approval-key-always")),
            Grant::Never => Sanitized::literal(t!("approval-key-no")),
            Grant::Always | Grant::Number(_) => expand_tabs(&visible_line(option.label), 0),
        };
        let is_marked = marked == Some(Row::Option(at));
        let letter = Span::new(grant.key().to_string(), Role::Waiting).bold().key();
        let mark = sign(if is_marked { "› " } else { "" }, Role::Waiting);
        let role = if is_marked { Role::Strong } else { Role::Dim };
        keys.push([mark, letter, gap(1), Span::new(does, role)].to_vec());
    }
    if !list.iter().any(|(_, grant)| *grant == Grant::Never) {
        keys.push(key("n", t!("approval-key-no"), Role::Waiting));
    }
    keys.push(match marked {
        Some(_) => key("enter", t!("key-confirm"), Role::Waiting),
        None => key("N", t!("approval-key-no-because"), Role::Waiting),
    });
    keys_rows(&keys, columns)
}

/// Returns the chords that decide on an approval from the composer, each with a word for its decision.
pub fn approval_chords(view: &Clarification<'_>) -> Vec<(&'static str, &'static str)> {
    let found = view.questions.first().map(grants).unwrap_or_default();
    let has = |grant: Grant| found.iter().any(|it| it.1 == grant);
    let chords = [
        (has(Grant::Once), "alt+y", t!("approval-key-once")),
        (has(Grant::Session), "alt+a", t!("approval-key-session")),
        (true, "alt+n", t!("approval-key-no")),
    ];
    let chords = chords.into_iter().filter(|it| it.0);
    chords.map(|(_, chord, does)| (chord, does)).collect()
}

/// The chords that decide from the composer, and the way to the other keys.
fn chord_rows(view: &Clarification<'_>, columns: usize) -> Vec<StyledLine> {
    let more = ("tab", t!("approval-key-more"));
    let keys = approval_chords(view).into_iter().chain([more]);
    let keys: Vec<_> = keys.map(|(chord, does)| key(chord, does, Role::Waiting)).collect();
    keys_rows(&keys, columns)
}

/// The decision on an approval, or the request for one.
pub(super) fn verdict(
    view: &Clarification<'_>,
    subject: Option<&Document>,
    document: &Document,
    form: Option<&Form>,
) -> (Sanitized, Role) {
    let is_over = !document.is_open() && form.is_none();
    match &view.outcome {
        Some(Outcome::Answered | Outcome::Other(_)) if let Some((made, count)) = parts(view) => match made {
            0 => (signed("✗", t!("approval-rejected")), Role::Error),
            _ => (
                signed("✓", &t!("approval-hunks", made = made, count = count)),
                Role::Done,
            ),
        },
        Some(Outcome::Answered | Outcome::Other(_)) => {
            let id = view.answers.iter().flat_map(|it| &it.selected_option_ids).next();
            match id.map(String::as_str) {
                Some("allow_once") => (signed("✓", t!("approval-allowed-once")), Role::Done),
                Some("allow_session") => (signed("✓", t!("approval-allowed-session")), Role::Done),
                Some("allow_always") => (signed("✓", t!("approval-allowed-always")), Role::Done),
                Some("reject_once") | None => (signed("✗", t!("approval-rejected")), Role::Error),
                Some("reject_always") => (signed("✗", t!("approval-rejected-always")), Role::Error),
                Some(id) => {
                    let options = view.questions.iter().flat_map(|it| &it.options);
                    let label = options.into_iter().find(|it| it.id == id).map_or(id, |it| it.label);
                    (Sanitized::line(label), Role::Dim)
                }
            }
        }
        Some(Outcome::Skipped) => (signed("✗", t!("approval-rejected")), Role::Error),
        Some(Outcome::Cancelled) => (Sanitized::literal(t!("question-cancelled")), Role::Dim),
        None if is_over => (Sanitized::literal(t!("question-unanswered")), Role::Dim),
        None => {
            let role = if is_grave(view, subject) {
                Role::Error
            } else {
                Role::Waiting
            };
            match needs(subject) {
                Some(names) => (
                    Sanitized::from(t!("approval-needs-names", names = names.as_str())),
                    role,
                ),
                None if is_protected(view) => (Sanitized::literal(t!("approval-protected")), role),
                None => (Sanitized::literal(t!("question-waiting")), role),
            }
        }
    }
}

/// It would change a file that other programs act on.
fn is_protected(view: &Clarification<'_>) -> bool {
    member(view, "protected") == Some(&Value::Bool(true))
}

/// Returns true if approval allows more than one action: there is no sandbox, or others act on the result. Such a question
/// is red.
fn is_grave(view: &Clarification<'_>, subject: Option<&Document>) -> bool {
    let is_unheld = match subject.map(Document::view) {
        Some(View::TerminalCommand(it)) => it.permissions.contains(&Permission::All),
        Some(_) | None => false,
    };
    is_unheld || is_protected(view)
}

/// The permissions that a planned command asks for.
fn needs(subject: Option<&Document>) -> Option<Sanitized> {
    let Some(View::TerminalCommand(it)) = subject.map(Document::view) else {
        return None;
    };
    let names: Vec<&str> = it.permissions.iter().map(permission).collect();
    let (last, others) = names.split_last()?;
    Some(visible_line(&match others {
        [] => (*last).to_owned(),
        _ => t!("list-and", first = others.join(", "), last = *last),
    }))
}

/// The name of a permission beyond those that every command has.
fn permission(permission: &Permission) -> &str {
    match permission {
        Permission::Network => t!("permission-network"),
        Permission::GitWrite => t!("permission-git-write"),
        Permission::All => t!("permission-all"),
        Permission::Other(word) => word,
    }
}

fn reasons(view: &Clarification<'_>, columns: usize) -> Vec<StyledLine> {
    if parts(view).is_some() {
        // What was left out stands below, as changes that were rejected; here is what was said of each.
        let hunks = view.answers.iter().flat_map(|it| &it.hunks);
        let said = hunks.filter_map(|it| Some((it.index, it.comment.as_deref()?)));
        let rows = said.flat_map(|(index, comment)| {
            let comment = [Span::new(Sanitized::new(comment.trim()), Role::Text)];
            labelled(&t!("approval-hunk", index = index), &comment, columns)
        });
        return rows.collect();
    }
    reason(view).map_or_else(Vec::new, |it| reason_rows(it, columns))
}
