//! What is said in lines: rows of looks with a label before them, and answers that are typed as lines.

use crate::{
    protocol::{
        Answer, Kind,
        document::{Clarification, Question},
    },
    text::{Row, Span},
};

/// Signs that are read aloud badly, and what is said in their place.
const SIGNS: [(char, &str); 17] = [
    ('✓', "ok"),
    ('✗', "failed"),
    ('◐', "running"),
    ('☑', "done:"),
    ('☐', "open:"),
    ('−', "-"),
    ('±', ""),
    ('●', ""),
    ('↗', ""),
    ('│', ""),
    ('▌', ""),
    ('─', ""),
    ('▰', ""),
    ('▱', ""),
    ('›', ""),
    ('╭', ""),
    ('╰', ""),
];

/// What a document is called.
pub fn kind(kind: &Kind, is_approval: bool) -> String {
    match kind {
        Kind::Clarification if is_approval => "approval".to_owned(),
        Kind::Clarification => "question".to_owned(),
        _ => kind.as_str().replace('_', " "),
    }
}

/// Whether the first row of a kind says what the document is about, and what follows is its content.
pub fn has_heading(kind: &Kind) -> bool {
    !matches!(kind, Kind::Text)
}

/// `7.3 file edit, src/a.rs: +3 -1, applied`.
pub fn label(address: &str, kind: &str, heading: Option<&Row>) -> String {
    let mut label = format!("{address} {kind}");
    let Some(row) = heading else { return label };
    let about = spoken(&row.spans);
    // The word at its beginning is the kind's own in another dress.
    let about = match about.split_once(' ') {
        Some((word, rest)) if kind.split(' ').any(|it| it == word) => rest.trim().to_owned(),
        _ => about,
    };
    if !about.is_empty() {
        label.push_str(", ");
        label.push_str(&about);
    }
    let facts = facts(row);
    if !facts.is_empty() {
        label.push_str(": ");
        label.push_str(&facts);
    }
    label
}

/// Rows as lines: what only the width broke is one line again, and bars are left out.
pub fn lines(rows: &[Row]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for row in rows {
        match lines.last_mut() {
            Some(line) if row.continues => {
                if row.spaced {
                    line.push(' ');
                }
                line.push_str(said(row.content()).trim_start());
            }
            Some(_) | None => lines.push(said(&row.spans)),
        }
        let facts = facts(row);
        if let Some(line) = lines.last_mut().filter(|_| !facts.is_empty()) {
            line.push_str(if line.trim().is_empty() { "" } else { ", " });
            line.push_str(&facts);
        }
    }
    for line in &mut lines {
        line.truncate(line.trim_end().len());
    }
    // One empty line says as much as three.
    lines.dedup_by(|a, b| a.is_empty() && b.is_empty());
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let first = lines.iter().position(|it| !it.is_empty()).unwrap_or(lines.len());
    lines.split_off(first)
}

/// The facts at the right of a row, one after the other.
fn facts(row: &Row) -> String {
    let texts: String = row.facts.iter().map(|it| it.text.as_str()).collect();
    let facts = texts.split("  ").map(words).filter(|it| !it.is_empty());
    facts.collect::<Vec<_>>().join(", ")
}

fn spoken(spans: &[Span]) -> String {
    words(&said(spans))
}

/// With single spaces.
fn words(text: &str) -> String {
    let text = said_of(text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn said(spans: &[Span]) -> String {
    let text: String = spans.iter().map(|it| it.text.as_str()).collect();
    said_of(&text)
}

fn said_of(text: &str) -> String {
    let mut said = String::with_capacity(text.len());
    for letter in text.chars() {
        match SIGNS.iter().find(|it| it.0 == letter) {
            Some((_, word)) => said.push_str(word),
            None => said.push(letter),
        }
    }
    said
}

/// A question as lines, its options numbered.
pub fn asked(question: &Question<'_>, of: Option<(usize, usize)>) -> Vec<String> {
    let mut lines = Vec::new();
    let text = question.text.split_whitespace().collect::<Vec<_>>().join(" ");
    lines.push(match of {
        Some((at, count)) => format!("question {at} of {count}: {text}"),
        None => format!("question: {text}"),
    });
    for (at, option) in question.options.iter().enumerate() {
        let about = option.description.map_or_else(String::new, |it| format!(": {it}"));
        lines.push(format!("  {} {}{about}", at + 1, option.label));
    }
    let how = match (
        question.options.is_empty(),
        question.allow_multiple,
        question.allow_free_text,
    ) {
        (true, ..) => "write the answer",
        (false, true, true) => "write one or more numbers, or other words",
        (false, true, false) => "write one or more numbers",
        (false, false, true) => "write a number, or other words",
        (false, false, false) => "write a number",
    };
    lines.push(format!("  {how}; s skips"));
    lines
}

/// What a line answers; what is wrong with it.
pub fn answer(question: &Question<'_>, line: &str) -> Result<Answer, String> {
    let line = line.trim();
    let count = question.options.len();
    let numbers: Option<Vec<usize>> = line
        .split([' ', ','])
        .filter(|it| !it.is_empty())
        .map(|it| it.parse().ok())
        .collect();
    let mut answer = Answer {
        question_id: question.id.to_owned(),
        selected_option_ids: Vec::new(),
        free_text: None,
    };
    if let Some(numbers) = numbers.filter(|it| count > 0 && !it.is_empty()) {
        if numbers.len() > 1 && !question.allow_multiple {
            return Err("only one of them can be chosen".to_owned());
        }
        for number in numbers {
            let option = number.checked_sub(1).and_then(|it| question.options.get(it));
            let option = option.ok_or_else(|| format!("the options are 1 to {count}"))?;
            if !answer.selected_option_ids.iter().any(|it| it == option.id) {
                answer.selected_option_ids.push(option.id.to_owned());
            }
        }
        return Ok(answer);
    }
    if line.is_empty() || (count > 0 && !question.allow_free_text) {
        return Err(match count {
            0 => "write the answer; s skips".to_owned(),
            _ => format!("write a number from 1 to {count}; s skips"),
        });
    }
    answer.free_text = Some(line.to_owned());
    Ok(answer)
}

/// The word behind a key of an approval.
pub fn grant(id: &str) -> Option<(char, &'static str)> {
    Some(match id {
        "allow_once" => ('y', "yes, this time"),
        "allow_session" => ('a', "yes, for this session"),
        "allow_always" => ('A', "yes, always"),
        "reject_once" => ('n', "no; a reason may stand behind it"),
        _ => return None,
    })
}

/// How an approval is answered, as lines.
pub fn approval(view: &Clarification<'_>) -> Vec<String> {
    let options = view.questions.first().map_or(&[][..], |it| &it.options);
    let mut lines = Vec::new();
    let mut number = 0;
    for option in options {
        lines.push(if let Some((key, word)) = grant(option.id) {
            format!("  {key} {word}")
        } else {
            number += 1;
            format!("  {number} {}", option.label)
        });
    }
    if !options.iter().any(|it| it.id == "reject_once") {
        lines.push("  n no; a reason may stand behind it".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Clean, Role};

    fn span(text: &str) -> Span {
        Span::new(Clean::new(text), Role::Text)
    }

    #[test]
    fn a_label_says_address_kind_subject_and_state() {
        let edit = Row::of([span("edit   src/a.rs")]).facts([span("+3 −1"), span("  "), span("applied")]);
        assert_eq!(
            label("7.3", "file edit", Some(&edit)),
            "7.3 file edit, src/a.rs: +3 -1, applied"
        );
        let command = Row::of([span("cargo test")]).facts([span("✓ 0  5.3 s  no network")]);
        assert_eq!(
            label("7.4", "terminal command", Some(&command)),
            "7.4 terminal command, cargo test: ok 0, 5.3 s, no network"
        );
        assert_eq!(label("7.5", "text", None), "7.5 text");
    }

    #[test]
    fn what_the_width_broke_is_one_line_again() {
        let rows = [
            Row::of([span("│ "), span("one")]),
            Row {
                continues: true,
                spaced: true,
                gutter: 1,
                ..Row::of([span("│ "), span("two")])
            },
            Row::blank(),
            Row::blank(),
            Row::of([span("three")]),
            Row::blank(),
        ];
        assert_eq!(lines(&rows), [" one two", "", "three"]);
    }

    #[test]
    fn a_line_answers_a_question() {
        let option = |id| crate::protocol::document::Choice {
            id,
            label: id,
            description: None,
        };
        let question = |many, free, options: &[&'static str]| Question {
            id: "q",
            text: "Which?",
            options: options.iter().map(|it| option(it)).collect(),
            allow_multiple: many,
            allow_free_text: free,
        };
        let told = |question: &Question<'_>, line| match answer(question, line) {
            Ok(it) => format!(
                "{}|{}",
                it.selected_option_ids.join("+"),
                it.free_text.unwrap_or_default()
            ),
            Err(why) => format!("! {why}"),
        };
        for (many, free, options, line, expected) in [
            (false, true, &["a", "b"][..], "2", "b|"),
            (false, true, &["a", "b"], "Redis", "|Redis"),
            (false, true, &["a", "b"], "3", "! the options are 1 to 2"),
            (false, true, &["a", "b"], "0", "! the options are 1 to 2"),
            (false, true, &["a", "b"], "1 2", "! only one of them can be chosen"),
            (true, false, &["a", "b"], "2, 1 2", "b+a|"),
            (false, false, &["a", "b"], "x", "! write a number from 1 to 2; s skips"),
            (false, true, &[], "42", "|42"),
            (false, false, &[], " ", "! write the answer; s skips"),
        ] {
            assert_eq!(
                told(&question(many, free, options), line),
                expected,
                "{line:?} {many} {free}"
            );
        }
    }
}
