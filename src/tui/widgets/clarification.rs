//! `clarification`: questions, with their keys while they wait and their answers afterwards. Approvals are drawn by
//! `approval`.

use std::collections::HashMap;

use super::{
    DocumentKind, Key, Leaf, RenderContext, approval, form,
    form::{AnswerWords, Form, is_approval, spoken, takes_text},
    heading::{Facts, KEYS_GAP, Weight, being_typed, first_line, gap, heading, key, keys_rows, line, sign, titled},
};
use crate::{
    protocol::{
        Document, Outcome, QuestionAnswer,
        document::{Clarification, Question},
    },
    t,
    text::{
        Role, Sanitized, Span, StyledLine,
        width::{pad, spans_width, width},
        wrap::wrap,
    },
};

/// Columns before the label of an option: its key and where the arrows are.
const KEY: usize = 3;

impl DocumentKind for Clarification<'_> {
    fn whole(&self, document: &Document, context: &RenderContext<'_>) -> Leaf {
        let form = form(document, context);
        if is_approval(self) {
            return approval::leaf(self, document, context, form);
        }
        let mut facts = Facts::default();
        let (state, role) = state(self, document, form);
        facts.word(Weight::Heavy, state, role);
        let title = Span::new(title(self), Role::Strong).bold();
        let mut rows = titled(&[title], &[], &[], facts, context.width);
        match &self.outcome {
            Some(Outcome::Answered | Outcome::Other(_)) => rows.extend(answers(self, context.width)),
            Some(Outcome::Skipped | Outcome::Cancelled) => rows.extend(asked(self, context.width)),
            None => rows.extend(questions(self, context.width, form)),
        }
        Leaf::block(sign("?", Role::Link), rows)
    }

    fn folded(&self, document: &Document, context: &RenderContext<'_>) -> Leaf {
        let form = form(document, context);
        let mut facts = Facts::default();
        let (state, role) = if is_approval(self) {
            approval::verdict(self, approval::subject(self, document).as_ref(), document, form)
        } else {
            state(self, document, form)
        };
        facts.word(Weight::Heavy, state, role);
        let row = if is_approval(self) {
            let title = Span::new(approval::title(self, document), Role::Text);
            heading(t!("approval-allow"), &[title], facts, context.width)
        } else {
            line(&[Span::new(title(self), Role::Text)], facts, context.width)
        };
        Leaf::line(glyph(self), row)
    }

    fn summary(&self, document: &Document) -> Sanitized {
        if is_approval(self) {
            Sanitized::line(&format!("{} {}", t!("approval-allow"), approval::title(self, document)))
        } else {
            title(self)
        }
    }

    fn depends(&self, document: &Document, context: &RenderContext<'_>, key: &mut Key) {
        key.form = form(document, context).map_or(0, |it| 1 + it.version);
    }
}

fn glyph(view: &Clarification<'_>) -> Span {
    sign("?", if is_approval(view) { Role::Waiting } else { Role::Link })
}

/// The text that leads to the questions; without one the only question, or how many there are.
fn title(view: &Clarification<'_>) -> Sanitized {
    let lead = first_line(view.content);
    if !lead.is_empty() {
        let end = lead.trim_end_matches([':', ' ']).len();
        return lead.slice(0..end);
    }
    match view.questions.as_slice() {
        [only] => first_line(only.text),
        several => Sanitized::from(t!("count-questions", count = several.len())),
    }
}

/// Returns true if the only question is the title.
fn is_title(view: &Clarification<'_>) -> bool {
    view.questions.len() == 1
        && first_line(view.content).is_empty()
        && !view.questions.iter().any(|it| it.text.contains('\n'))
}

fn state(view: &Clarification<'_>, document: &Document, form: Option<&Form>) -> (Sanitized, Role) {
    match &view.outcome {
        Some(Outcome::Answered) => (Sanitized::literal(t!("question-answered")), Role::Done),
        Some(Outcome::Skipped) => (Sanitized::literal(t!("question-skipped")), Role::Dim),
        Some(Outcome::Cancelled) => (Sanitized::literal(t!("question-cancelled")), Role::Dim),
        Some(Outcome::Other(word)) => (Sanitized::line(&word.replace('_', " ")), Role::Dim),
        None if form.is_some() || document.is_open() => (Sanitized::literal(t!("question-waiting")), Role::Waiting),
        None => (Sanitized::literal(t!("question-unanswered")), Role::Dim),
    }
}

/// The rest of the lead text, then a question under the other, each with its options.
fn questions(view: &Clarification<'_>, columns: usize, form: Option<&Form>) -> Vec<StyledLine> {
    let mut rows = lead(view, columns);
    let several = view.questions.len() > 1;
    for (at, question) in view.questions.iter().enumerate() {
        if at > 0 {
            rows.push(StyledLine::blank());
        }
        let is_current = form.is_some_and(|it| it.current() == at);
        if !is_title(view) {
            let role = if is_current || !several { Role::Text } else { Role::Dim };
            rows.extend(wrap(
                &[Span::new(Sanitized::new(question.text.trim()), role)],
                columns,
                &[],
                &[],
            ));
        }
        for option in 0..question.options.len() {
            rows.extend(option_rows(
                question,
                option,
                at,
                several,
                form.map(|it| (it, is_current)),
                columns,
            ));
        }
        if let Some(form) = form {
            rows.extend(text_rows(form, at, is_current, several, question, columns));
        }
    }
    if let Some(form) = form {
        if several {
            rows.push(StyledLine::blank());
        }
        rows.extend(hints(view, form, columns));
    }
    rows
}

/// The lead text after the line that is the title.
fn lead(view: &Clarification<'_>, columns: usize) -> Vec<StyledLine> {
    match view.content.trim().split_once('\n') {
        Some((_, rest)) if !rest.trim().is_empty() => {
            let mut rows = wrap(&[Span::new(Sanitized::new(rest.trim()), Role::Text)], columns, &[], &[]);
            rows.push(StyledLine::blank());
            rows
        }
        Some(_) | None => Vec::new(),
    }
}

fn option_rows(
    question: &Question<'_>,
    option: usize,
    at: usize,
    several: bool,
    form: Option<(&Form, bool)>,
    columns: usize,
) -> Vec<StyledLine> {
    let Some(choice) = question.options.get(option) else {
        return Vec::new();
    };
    let is_current = form.is_some_and(|(_, is_current)| is_current);
    let is_picked = form.is_some_and(|(form, _)| form.is_picked(at, option));
    let has_cursor = form.is_some_and(|(form, _)| is_current && form.cursor() == Some(option));
    let number = match option {
        0..9 if form.is_some() => (option + 1).to_string(),
        _ => "•".to_owned(),
    };
    let key = if is_current {
        Span::new(number, Role::Link).bold()
    } else {
        Span::new(number, Role::Faint)
    };
    let mut first = vec![key, sign(if has_cursor { "› " } else { "  " }, Role::Link)];
    if question.allow_multiple || several {
        let (on, off) = if question.allow_multiple {
            ("☑ ", "☐ ")
        } else {
            ("● ", "○ ")
        };
        let role = if is_picked { Role::Done } else { Role::Dim };
        first.push(sign(if is_picked { on } else { off }, role));
    }
    let rest = [gap(spans_width(&first))];
    let mut text = vec![Span::new(
        Sanitized::new(choice.label.trim()),
        if is_picked { Role::Strong } else { Role::Text },
    )];
    let Some(description) = choice.description.map(str::trim).filter(|it| !it.is_empty()) else {
        return wrap(&text, columns, &first, &rest);
    };
    let description = Span::new(Sanitized::new(description), Role::Dim);
    let beside = spans_width(&first) + spans_width(&text) + KEYS_GAP + spans_width(std::slice::from_ref(&description));
    if beside <= columns {
        text.extend([gap(KEYS_GAP), description]);
        return wrap(&text, columns, &first, &rest);
    }
    // What does not fit beside the label stands below it, whole.
    let mut rows = wrap(&text, columns, &first, &rest);
    rows.extend(wrap(&[description], columns, &rest, &rest));
    rows
}

/// The rows of a typed answer, or of one that is being typed.
fn text_rows(
    form: &Form,
    at: usize,
    is_current: bool,
    several: bool,
    question: &Question<'_>,
    columns: usize,
) -> Vec<StyledLine> {
    let typed = form.typed().filter(|_| is_current);
    let text = form.text(at);
    if typed.is_none() && text.is_empty() {
        return if several && is_current && takes_text(question) {
            wrap(&other(question), columns, &[], &[gap(KEY)])
        } else {
            Vec::new()
        };
    }
    let name = if question.options.is_empty() {
        t!("question-answer")
    } else {
        t!("question-other")
    };
    let mut spans = vec![Span::new(format!("{name} "), Role::Dim)];
    match typed {
        Some(draft) => spans.extend(being_typed(draft)),
        None => spans.push(Span::new(Sanitized::line(text), Role::Strong)),
    }
    let first = [
        if is_current {
            sign("o", Role::Link).bold()
        } else {
            sign(" ", Role::Text)
        },
        gap(KEY - 1),
    ];
    wrap(&spans, columns, &first, &[gap(KEY)])
}

/// The key that begins to type, as wide as those of the options.
fn other(question: &Question<'_>) -> Vec<Span> {
    let does = if question.options.is_empty() {
        t!("question-key-answer")
    } else {
        t!("question-key-other")
    };
    vec![sign("o", Role::Link).bold(), gap(KEY - 1), sign(does, Role::Dim)]
}

/// The keys that matter now.
fn hints(view: &Clarification<'_>, form: &Form, columns: usize) -> Vec<StyledLine> {
    let question = view.questions.get(form.current());
    let several = view.questions.len() > 1 || question.is_some_and(|it| it.allow_multiple);
    let mut keys = Vec::new();
    if form.is_typing() {
        let sends = view.questions.len() == 1 && !several;
        keys.push(key(
            "enter",
            if sends { t!("key-send") } else { t!("question-key-done") },
            Role::Link,
        ));
        keys.push(key("esc", t!("key-back"), Role::Link));
        return keys_rows(&keys, columns);
    }
    let only = question.filter(|_| view.questions.len() == 1);
    if let Some(question) = only.filter(|it| takes_text(it) && form.text(0).is_empty()) {
        keys.push(other(question));
    }
    keys.push(
        [
            sign("s", Role::Link).bold(),
            gap(KEY - 1),
            sign(t!("question-key-skip"), Role::Dim),
        ]
        .to_vec(),
    );
    if several && form.is_complete(view) {
        keys.push(key("enter", t!("key-send"), Role::Link));
    }
    keys_rows(&keys, columns)
}

/// Questions and answers beside each other; where there is no room, under each other.
fn answers(view: &Clarification<'_>, columns: usize) -> Vec<StyledLine> {
    let only = is_title(view);
    let given: HashMap<&str, &QuestionAnswer> = view.answers.iter().map(|it| (it.question_id.as_str(), it)).collect();
    let words = AnswerWords {
        other: t!("question-other"),
        more: t!("question-more-other"),
    };
    let lines: Vec<(Sanitized, Sanitized)> = view
        .questions
        .iter()
        .map(|question| {
            let answer = given.get(question.id);
            let spoken = answer
                .map(|it| spoken(it, question, &words))
                .filter(|it| !it.is_empty());
            let answer = spoken.map_or(Sanitized::literal("—"), Sanitized::from);
            (first_line(question.text), answer)
        })
        .collect();
    let widest = lines.iter().map(|(question, _)| width(question)).max().unwrap_or(0);
    let mut rows = Vec::new();
    for (question, answer) in lines {
        let answer = [Span::new(answer, Role::Text)];
        if only {
            rows.extend(wrap(&answer, columns, &[], &[]));
        } else if widest * 2 <= columns {
            let first = [Span::new(pad(&question, widest), Role::Dim), gap(2)];
            rows.extend(wrap(&answer, columns, &first, &[gap(widest + 2)]));
        } else {
            rows.extend(wrap(&[Span::new(question, Role::Dim)], columns, &[], &[]));
            rows.extend(wrap(&answer, columns, &[gap(2)], &[gap(2)]));
        }
    }
    rows
}

/// The questions alone, when nobody answered them.
fn asked(view: &Clarification<'_>, columns: usize) -> Vec<StyledLine> {
    if is_title(view) {
        return Vec::new();
    }
    let rows = view.questions.iter().flat_map(|it| {
        wrap(
            &[Span::new(Sanitized::new(it.text.trim()), Role::Dim)],
            columns,
            &[],
            &[],
        )
    });
    rows.collect()
}

#[cfg(test)]
mod tests;
