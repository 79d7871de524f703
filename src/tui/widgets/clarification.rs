//! `clarification`: questions, with their keys while they wait and their answers afterwards. Approvals are drawn by
//! `approval`.

use std::{collections::HashMap, ops::RangeInclusive};

use super::{
    DocumentKind, Key, Leaf, RenderContext, approval, form,
    form::{AnswerWords, Form, Row, is_approval_card, spoken},
    heading::{Facts, KEYS_GAP, Weight, being_typed, first_line, gap, heading, key, keys_rows, line, sign, titled},
};
use crate::{
    protocol::{
        Document, Outcome, QuestionAnswer,
        document::{Clarification, Question},
    },
    t,
    text::{
        Modifier, Role, Sanitized, Span, StyledLine,
        width::{cut_end, pad, spans_width, width},
        wrap::wrap,
    },
    tui::editor::draft::Draft,
};

/// Columns before the label of an option: its key and where the arrows are.
const KEY: usize = 3;

impl DocumentKind for Clarification<'_> {
    fn whole(&self, document: &Document, context: &RenderContext<'_>) -> Leaf {
        let form = form(document, context);
        if is_approval_card(self) {
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
            None => rows.extend(questions(self, context, form)),
        }
        Leaf::block(sign("?", Role::Link), rows)
    }

    fn folded(&self, document: &Document, context: &RenderContext<'_>) -> Leaf {
        let form = form(document, context);
        let mut facts = Facts::default();
        let (state, role) = if is_approval_card(self) {
            approval::verdict(self, approval::subject(self, document).as_ref(), document, form)
        } else {
            state(self, document, form)
        };
        facts.word(Weight::Heavy, state, role);
        let row = if is_approval_card(self) {
            let title = Span::new(approval::title(self, document), Role::Text);
            heading(t!("approval-allow"), &[title], facts, context.width)
        } else {
            line(&[Span::new(title(self), Role::Text)], facts, context.width)
        };
        Leaf::line(glyph(self), row)
    }

    fn summary(&self, document: &Document) -> Sanitized {
        if is_approval_card(self) {
            Sanitized::line(&format!("{} {}", t!("approval-allow"), approval::title(self, document)))
        } else {
            title(self)
        }
    }

    fn depends(&self, document: &Document, context: &RenderContext<'_>, key: &mut Key) {
        let form = form(document, context);
        key.form = form.map_or(0, |it| 1 + it.version);
        if is_approval_card(self) {
            key.context = context.context;
        }
        key.selected = context.selected && form.is_some();
    }
}

fn glyph(view: &Clarification<'_>) -> Span {
    sign(
        "?",
        if is_approval_card(view) {
            Role::Waiting
        } else {
            Role::Link
        },
    )
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

/// The rest of the lead text, then the questions. A form shows the current question with its options, after the answers that
/// were given, so that it is in view however little room there is; without a form all questions are shown.
fn questions(view: &Clarification<'_>, context: &RenderContext<'_>, form: Option<&Form>) -> Vec<StyledLine> {
    let columns = context.width;
    let mut rows = lead(view, columns);
    let several = view.questions.len() > 1;
    for (at, question) in view.questions.iter().enumerate() {
        let is_current = form.is_some_and(|it| it.current() == at);
        if let Some(form) = form.filter(|_| !is_current) {
            let given = form.answer(at, question);
            rows.extend(given.map(|it| given_row(question, &it, columns)));
            continue;
        }
        if at > 0 && form.is_none() {
            rows.push(StyledLine::blank());
        }
        if !is_title(view) {
            let number = format!("{}/{} ", at + 1, view.questions.len());
            let number = Span::new(Sanitized::new(&number), Role::Dim);
            let text = Span::new(Sanitized::new(question.text.trim()), Role::Text);
            let first: Vec<Span> = (several && form.is_some()).then_some(number).into_iter().collect();
            let rest = gap(spans_width(&first));
            rows.extend(wrap(&[text], columns, &first, &[rest]));
        }
        let marked = form.filter(|_| context.selected).and_then(|it| it.row(view));
        for row in form::rows(question) {
            rows.extend(match row {
                Row::Option(option) => option_rows(question, option, at, form.map(|it| (it, marked)), columns),
                Row::Text | Row::Skip if form.is_none() => Vec::new(),
                Row::Text => text_rows(form.and_then(|it| it.typed(at)), marked, question, columns),
                Row::Skip => {
                    let word = if several {
                        t!("question-skip-all")
                    } else {
                        t!("question-skip")
                    };
                    wrap(
                        &[sign(word, Role::Dim)],
                        columns,
                        &marker(marked == Some(row)),
                        &[gap(KEY)],
                    )
                }
            });
        }
    }
    rows.extend(match form {
        Some(form) if context.selected => hints(view, form, columns),
        Some(_) => keys_rows(&[key("tab", t!("question-key-answer"), Role::Link)], columns),
        None => Vec::new(),
    });
    rows
}

/// The rows of a form from its current question to the marked choice.
pub fn question_rows(rows: &[StyledLine]) -> Option<RangeInclusive<usize>> {
    let is_choice = |row: &StyledLine| row.spans.first().is_some_and(|it| it.modifier.contains(Modifier::KEY));
    let is_marked = |row: &StyledLine| is_choice(row) && row.spans.get(1).is_some_and(|it| it.text.starts_with('›'));
    let is_answered = |row: &StyledLine| row.spans.first().is_none_or(|it| it.text.starts_with('✓'));
    let choice = rows.iter().position(is_choice)?;
    let answered = rows.get(..choice)?.iter().rposition(is_answered);
    // The title is above the first question, and may be it.
    let first = answered.map_or(choice.min(1), |it| it + 1);
    let marked = rows.iter().position(is_marked).unwrap_or(choice);
    Some(first.min(choice.saturating_sub(1))..=marked)
}

/// The first of these rows that is shown where there is room for `height` rows: the last one is always seen.
pub fn first_row(rows: &RangeInclusive<usize>, height: usize) -> usize {
    (*rows.start()).max((rows.end() + 1).saturating_sub(height))
}

/// A question and the answer that was given to it, in one row.
fn given_row(question: &Question<'_>, answer: &QuestionAnswer, columns: usize) -> StyledLine {
    let words = AnswerWords {
        other: t!("question-other"),
        more: t!("question-more-other"),
    };
    let answer = Sanitized::line(&spoken(answer, question, &words));
    let room = columns.saturating_sub(KEY + KEYS_GAP + width(&answer).min(columns / 2));
    let text = cut_end(&first_line(question.text), room);
    let room = columns.saturating_sub(KEY + KEYS_GAP + width(&text));
    let answer = Span::new(Sanitized::line(&cut_end(&answer, room)), Role::Strong);
    let spans = [
        sign("✓  ", Role::Done),
        Span::new(text, Role::Dim),
        gap(KEYS_GAP),
        answer,
    ];
    let mut rows = wrap(&spans, columns, &[], &[gap(KEY)]);
    rows.drain(..rows.len().min(1)).next().unwrap_or_default()
}

/// The columns before a row without a number: the mark, if it is there. A click on the row marks it.
fn marker(is_marked: bool) -> [Span; 2] {
    [
        gap(KEY - 2).key(),
        sign(if is_marked { "› " } else { "  " }, Role::Link),
    ]
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
    form: Option<(&Form, Option<Row>)>,
    columns: usize,
) -> Vec<StyledLine> {
    let Some(choice) = question.options.get(option) else {
        return Vec::new();
    };
    let is_picked = form.is_some_and(|(form, _)| form.is_picked(at, option));
    let is_marked = form.is_some_and(|(_, marked)| marked == Some(Row::Option(option)));
    let key = match option {
        0..9 if form.is_some_and(|(_, marked)| marked.is_some()) => {
            Span::new((option + 1).to_string(), Role::Link).bold()
        }
        0..9 if form.is_some() => Span::new((option + 1).to_string(), Role::Faint),
        _ => sign("•", Role::Faint),
    };
    let key = if form.is_some() { key.key() } else { key };
    let mut first = vec![key, sign(if is_marked { "› " } else { "  " }, Role::Link)];
    if question.allow_multiple {
        let role = if is_picked { Role::Done } else { Role::Dim };
        first.push(sign(if is_picked { "☑ " } else { "☐ " }, role));
    }
    let rest = [gap(spans_width(&first))];
    let mut text = vec![Span::new(
        Sanitized::new(choice.label.trim()),
        if is_picked || is_marked {
            Role::Strong
        } else {
            Role::Text
        },
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

/// The rows of the answer in the user's own words: as far as it is typed, else the way to it.
fn text_rows(typed: Option<&Draft>, marked: Option<Row>, question: &Question<'_>, columns: usize) -> Vec<StyledLine> {
    let is_marked = marked == Some(Row::Text);
    let typed = typed.filter(|it| is_marked || !it.text().is_empty());
    let Some(typed) = typed else {
        let word = if question.options.is_empty() {
            t!("question-type")
        } else {
            t!("question-type-other")
        };
        return wrap(&[sign(word, Role::Dim)], columns, &marker(false), &[gap(KEY)]);
    };
    let name = if question.options.is_empty() {
        t!("question-answer")
    } else {
        t!("question-other")
    };
    let mut spans = vec![Span::new(format!("{name} "), Role::Dim)];
    if is_marked {
        spans.extend(being_typed(typed));
    } else {
        spans.push(Span::new(Sanitized::line(&typed.text()), Role::Dim));
    }
    wrap(&spans, columns, &marker(is_marked), &[gap(KEY)])
}

/// The keys that matter now.
fn hints(view: &Clarification<'_>, form: &Form, columns: usize) -> Vec<StyledLine> {
    let does = match form.row(view) {
        Some(Row::Skip) => t!("question-key-skip"),
        _ if form.is_last(view) => t!("key-send"),
        _ => t!("question-key-next"),
    };
    let mut keys = vec![key("enter", does, Role::Link)];
    let question = view.questions.get(form.current());
    if question.is_some_and(|it| it.allow_multiple) && matches!(form.row(view), Some(Row::Option(_))) {
        const DIGITS: [&str; 9] = ["1", "1-2", "1-3", "1-4", "1-5", "1-6", "1-7", "1-8", "1-9"];
        let options = question.map_or(1, |it| it.options.len()).clamp(1, DIGITS.len());
        keys.insert(0, key(DIGITS[options - 1], t!("question-key-toggle"), Role::Link));
    }
    if form.current() > 0 {
        keys.push(key("shift+tab", t!("question-key-previous"), Role::Link));
    }
    keys.push(key("esc", t!("question-key-later"), Role::Link));
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
