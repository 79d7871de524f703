//! Documents as lines of plain text with a label, for reading aloud, and answers that are typed as lines.

use ratatui::buffer::Buffer;

use crate::{
    locale,
    protocol::{
        Kind, QuestionAnswer,
        document::{Clarification, Question},
        sentence::Sentence,
    },
    t,
    text::{Role, Span, StyledLine},
    tui::terminal::surface::text_of,
};

/// The word for a sign that is read aloud badly; `None` for other signs.
fn sign(letter: char) -> Option<&'static str> {
    Some(match letter {
        '✓' => t!("plain-sign-ok"),
        '✗' => t!("plain-sign-failed"),
        '◐' => t!("plain-sign-running"),
        '☑' => t!("plain-sign-done"),
        '☐' => t!("plain-sign-open"),
        '−' => "-",
        '±' | '●' | '↗' | '│' | '▌' | '─' | '▰' | '▱' | '›' | '╭' | '╰' => "",
        _ => return None,
    })
}

/// A sentence of the agent or of a gateway in the language of the interface, where there is a message for it.
pub fn worded(sentence: &str) -> String {
    match Sentence::find(sentence) {
        Some((found, name)) => locale::format(found.message, &[("name", name.into())]),
        None => sentence.to_owned(),
    }
}

/// The name of a kind of document.
pub fn kind(kind: &Kind, is_approval: bool) -> String {
    match kind {
        Kind::Other(word) => word.replace('_', " "),
        Kind::Clarification if is_approval => t!("plain-kind-approval").to_owned(),
        _ => locale::text(kind.row().label).to_owned(),
    }
}

/// Returns the word at the start of a heading that says no more than the kind's name does.
fn own_word(kind: &Kind) -> Option<&str> {
    match kind {
        Kind::Other(word) => Some(word),
        _ => kind.row().heading.map(locale::text),
    }
}

/// Returns true if the first row of this kind is a heading, and the rest its content.
pub fn has_heading(kind: &Kind) -> bool {
    !matches!(kind, Kind::Text)
}

/// The heading of rows as one row, and how many rows it took: only the width broke it.
pub fn heading(rows: &[StyledLine]) -> Option<(StyledLine, usize)> {
    let mut heading = rows.first()?.clone();
    let mut taken = 1;
    for row in rows.iter().skip(1) {
        let is_facts = row.spans.is_empty() && !row.facts.is_empty() && heading.facts.is_empty();
        if !row.continues && !is_facts {
            break;
        }
        if row.spaced {
            heading.spans.push(Span::new(" ", Role::Text));
        }
        heading.spans.extend_from_slice(row.content());
        heading.facts.extend_from_slice(&row.facts);
        taken += 1;
        if is_facts {
            break;
        }
    }
    Some((heading, taken))
}

/// `7.3 file edit, src/a.rs: +3 -1, applied`.
pub fn label(address: &str, kind: &Kind, is_approval: bool, heading: Option<&StyledLine>) -> String {
    let mut label = format!("{address} {}", self::kind(kind, is_approval));
    let Some(row) = heading else { return label };
    let about = spoken(&row.spans);
    let rest = own_word(kind).and_then(|it| about.strip_prefix(it)?.strip_prefix(' '));
    let about = rest.map_or(about.as_str(), str::trim);
    if !about.is_empty() {
        label.push_str(", ");
        label.push_str(about);
    }
    let facts = facts(row);
    if !facts.is_empty() {
        label.push_str(": ");
        label.push_str(&facts);
    }
    label
}

/// Rows as lines: what only the width broke is one line again, and bars are left out.
pub fn lines(rows: &[StyledLine]) -> Vec<String> {
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
    tidied(lines)
}

/// The lines of a drawing, without bars. What stands at the right end of the first line follows its title after a comma.
pub fn drawn(buffer: &Buffer) -> Vec<String> {
    let rows = buffer.area.rows();
    let mut lines: Vec<String> = rows.map(|it| said_of(&text_of(buffer, it))).collect();
    if let Some(first) = lines.first_mut()
        && let Some((title, facts)) = first.trim_end().rsplit_once("    ")
    {
        *first = format!("{}, {}", title.trim_end(), facts.trim_start());
    }
    tidied(lines)
}

fn tidied(mut lines: Vec<String>) -> Vec<String> {
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
fn facts(row: &StyledLine) -> String {
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

/// Returns true if a sign is followed by a word that means the same.
fn is_in_words(behind: &str) -> bool {
    let behind = behind.trim_start();
    let words = [
        t!("command-running"),
        t!("command-background"),
        t!("edit-writing"),
        t!("review-not-written-yet"),
        t!("review-accepted"),
        t!("review-left-out"),
        t!("review-rejected"),
        t!("review-failed"),
        t!("approval-rejected"),
    ];
    let mut words = words.iter().map(|it| it.trim_start_matches(['◐', '✓', '✗', ' ']));
    words.any(|it| {
        behind
            .strip_prefix(it)
            .is_some_and(|it| !it.starts_with(char::is_alphanumeric))
    })
}

fn said_of(text: &str) -> String {
    let mut said = String::with_capacity(text.len());
    for (at, letter) in text.char_indices() {
        match sign(letter) {
            Some("") => {}
            Some(_) if is_in_words(text.get(at + letter.len_utf8()..).unwrap_or_default()) => {}
            Some(word) => said.push_str(word),
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
        Some((at, count)) => t!("plain-question-of", place = at, count = count, text = text),
        None => t!("plain-question", text = text),
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
        (true, ..) => t!("plain-how-answer"),
        (false, true, true) => t!("plain-how-numbers-or-words"),
        (false, true, false) => t!("plain-how-numbers"),
        (false, false, true) => t!("plain-how-number-or-words"),
        (false, false, false) => t!("plain-how-number"),
    };
    lines.push(format!("  {how}"));
    lines
}

/// The answer that a line gives to a question, or what is wrong with it.
pub fn answer(question: &Question<'_>, line: &str) -> Result<QuestionAnswer, String> {
    let line = line.trim();
    let count = question.options.len();
    let numbers: Option<Vec<usize>> = line
        .split([' ', ','])
        .filter(|it| !it.is_empty())
        .map(|it| it.parse().ok())
        .collect();
    let mut answer = QuestionAnswer {
        question_id: question.id.to_owned(),
        selected_option_ids: Vec::new(),
        free_text: None,
        hunks: Vec::new(),
    };
    if let Some(numbers) = numbers.filter(|it| count > 0 && !it.is_empty()) {
        if numbers.len() > 1 && !question.allow_multiple {
            return Err(t!("plain-only-one").to_owned());
        }
        for number in numbers {
            let option = number.checked_sub(1).and_then(|it| question.options.get(it));
            let option = option.ok_or_else(|| t!("plain-options", count = count))?;
            if !answer.selected_option_ids.iter().any(|it| it == option.id) {
                answer.selected_option_ids.push(option.id.to_owned());
            }
        }
        return Ok(answer);
    }
    if line.is_empty() || (count > 0 && !question.allow_free_text) {
        return Err(match count {
            0 => t!("plain-how-answer").to_owned(),
            _ => t!("plain-number-to", count = count),
        });
    }
    answer.free_text = Some(line.to_owned());
    Ok(answer)
}

/// The word behind a key of an approval.
pub fn grant(id: &str) -> Option<(char, &'static str)> {
    Some(match id {
        "allow_once" => ('y', t!("plain-yes-once")),
        "allow_session" => ('a', t!("plain-yes-session")),
        "allow_always" => ('A', t!("plain-yes-always")),
        "reject_once" => ('n', t!("plain-no")),
        _ => return None,
    })
}

/// Instructions for answering an approval, as lines.
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
        lines.push(format!("  n {}", t!("plain-no")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Role, Sanitized};

    fn span(text: &str) -> Span {
        Span::new(Sanitized::new(text), Role::Text)
    }

    #[test]
    fn a_label_says_address_kind_subject_and_state() {
        let edit = StyledLine::of([span("edit   src/a.rs")]).facts([span("+3 −1"), span("  "), span("applied")]);
        assert_eq!(
            label("7.3", &Kind::FileEdit, false, Some(&edit)),
            "7.3 file edit, src/a.rs: +3 -1, applied"
        );
        let command = StyledLine::of([span("cargo test")]).facts([span("✓ 0  5.3 s  no network")]);
        assert_eq!(
            label("7.4", &Kind::TerminalCommand, false, Some(&command)),
            "7.4 terminal command, cargo test: ok 0, 5.3 s, no network"
        );
        assert_eq!(label("7.5", &Kind::Text, false, None), "7.5 text");
        for (shown, words) in [
            ("a.rs  ◐ not written yet", " not written yet"),
            ("◐ running", " running"),
            ("✗ rejected", " rejected"),
            ("✓ accepted, changed", " accepted, changed"),
            ("◐ read a.rs", "running read a.rs"),
            ("✗ 2", "failed 2"),
        ] {
            let heard = lines(&[StyledLine::of([span(shown)])]).concat();
            assert!(
                heard.ends_with(words) || heard == words.trim_start(),
                "{shown}: {heard}"
            );
            assert!(
                !heard.contains("running not") && !heard.contains("failed rejected"),
                "{heard}"
            );
        }
    }

    #[test]
    fn what_the_width_broke_is_one_line_again() {
        let rows = [
            StyledLine::of([span("│ "), span("one")]),
            StyledLine {
                continues: true,
                spaced: true,
                gutter: 1,
                ..StyledLine::of([span("│ "), span("two")])
            },
            StyledLine::blank(),
            StyledLine::blank(),
            StyledLine::of([span("three")]),
            StyledLine::blank(),
        ];
        assert_eq!(lines(&rows), [" one two", "", "three"]);
    }

    #[test]
    fn a_line_answers_a_question() {
        let option = |id| crate::protocol::document::QuestionOption {
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
            (false, true, &["a", "b"], "1 2", "! choose only one"),
            (true, false, &["a", "b"], "2, 1 2", "b+a|"),
            (false, false, &["a", "b"], "x", "! type a number from 1 to 2; s skips"),
            (false, true, &[], "42", "|42"),
            (false, false, &[], " ", "! type your answer; s skips"),
        ] {
            assert_eq!(
                told(&question(many, free, options), line),
                expected,
                "{line:?} {many} {free}"
            );
        }
    }

    #[test]
    fn a_heading_that_the_width_broke_is_read_in_one_piece() {
        let text = [Span::new(
            "for i in 1 2 3; do echo line $i; done; sleep 2",
            Role::Strong,
        )];
        let mut rows = crate::text::wrap::wrap(&text, 20, &[], &[Span::new("  ", Role::Text)]);
        rows[0].facts = vec![Span::new("2.0 s", Role::Dim)];
        let broken = rows.len();
        assert!(broken > 1);
        rows.push(StyledLine::of([Span::new("line 1", Role::Text)]));
        let (heading, taken) = heading(&rows).expect("there is one");
        assert_eq!(taken, broken);
        assert_eq!(
            label("1.2", &Kind::TerminalCommand, false, Some(&heading)),
            "1.2 terminal command, for i in 1 2 3; do echo line $i; done; sleep 2: 2.0 s"
        );
    }
}
