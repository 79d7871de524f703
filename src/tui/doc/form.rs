//! An answer in the making: what was picked and typed in a clarification or an approval so far.
//!
//! View state only. A key gives an answer to be sent; the question closes when the answer comes back as an event, so
//! that two windows agree. An approval is a form of one question whose options have letters.

use std::collections::BTreeSet;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyEventState, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::{
    protocol::{
        Answer, ClarificationResponse, Document, DocumentId, Message, Outcome as Dealt, QuestionKind, View,
        document::{Clarification, Question},
    },
    text::Clean,
};

/// A pasted answer is cut here.
const MOST_BYTES: usize = 16 << 10;

/// What the user has chosen and typed so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    pub document: DocumentId,
    /// Grows with every change, so that a look knows when to look again.
    pub version: u64,
    current: usize,
    /// The option that the arrows went to; none before they are used.
    cursor: Option<usize>,
    fields: Vec<Field>,
    typing: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Field {
    /// Indices into the question's options.
    picks: BTreeSet<usize>,
    text: String,
}

/// What a key did.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It is not the form's: somebody else may have it.
    Ignored,
    Changed,
    /// The answer, to be sent.
    Answer(ClarificationResponse),
}

/// The key of an option of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grant {
    Once,
    Session,
    Always,
    Never,
    /// An option of somebody else's, with its number.
    Number(usize),
}

impl Form {
    pub fn new(document: DocumentId) -> Self {
        Self {
            document,
            version: 1,
            current: 0,
            cursor: None,
            fields: Vec::new(),
            typing: None,
        }
    }

    /// Whether printable keys are text now.
    pub fn is_typing(&self) -> bool {
        self.typing.is_some()
    }

    pub fn key(&mut self, key: KeyEvent, view: &Clarification<'_>) -> Outcome {
        if key.kind == KeyEventKind::Release || view.outcome.is_some() || view.questions.is_empty() {
            return Outcome::Ignored;
        }
        self.fields.resize(view.questions.len(), Field::default());
        self.current = self.current.min(view.questions.len() - 1);
        let outcome = if self.typing.is_some() {
            self.type_key(key, view)
        } else if is_approval(view) {
            self.approval_key(key, view)
        } else {
            self.question_key(key, view)
        };
        if outcome == Outcome::Changed {
            self.version += 1;
        }
        outcome
    }

    /// Text from the clipboard; taken only while something is typed.
    pub fn paste(&mut self, text: &str) -> Outcome {
        let Some(typed) = &mut self.typing else {
            return Outcome::Ignored;
        };
        typed.push_str(&Clean::line(text));
        let end = typed.floor_char_boundary(MOST_BYTES);
        typed.truncate(end);
        self.version += 1;
        Outcome::Changed
    }

    /// The user's message that carries an answer over a link that knows nothing of answers: readable as it is.
    pub fn message(response: &ClarificationResponse, view: &Clarification<'_>) -> Message {
        let mut lines: Vec<String> = match &response.outcome {
            Dealt::Answered | Dealt::Other(_) => {
                let lines = view.questions.iter().filter_map(|question| {
                    let answer = response.answers.iter().find(|it| it.question_id == question.id)?;
                    let text = Clean::line(question.text.trim());
                    Some(format!("{text} -> {}", spoken(answer, question, is_approval(view))))
                });
                lines.collect()
            }
            Dealt::Skipped if is_approval(view) => vec!["No, do not do this.".to_owned()],
            Dealt::Skipped => vec!["I skip this; decide yourself and say what you assume.".to_owned()],
            Dealt::Cancelled => vec!["Cancelled.".to_owned()],
        };
        lines.extend(response.reason.as_ref().map(|it| format!("Reason: {it}")));
        Message {
            clarification_response: Some(response.clone()),
            ..Message::user(lines.join("\n"))
        }
    }

    pub(super) fn current(&self) -> usize {
        self.current
    }

    /// The option of the current question that the arrows are on.
    pub(super) fn cursor(&self) -> Option<usize> {
        self.cursor
    }

    pub(super) fn is_picked(&self, question: usize, option: usize) -> bool {
        self.fields.get(question).is_some_and(|it| it.picks.contains(&option))
    }

    pub(super) fn text(&self, question: usize) -> &str {
        self.fields.get(question).map_or("", |it| it.text.as_str())
    }

    /// What is being typed for the current question.
    pub(super) fn typed(&self) -> Option<&str> {
        self.typing.as_deref()
    }

    /// Whether every question has an answer, so that Enter sends.
    pub(super) fn is_complete(&self, view: &Clarification<'_>) -> bool {
        (0..view.questions.len()).all(|it| self.is_answered(it))
    }

    fn is_answered(&self, question: usize) -> bool {
        self.fields
            .get(question)
            .is_some_and(|it| !it.picks.is_empty() || !it.text.is_empty())
    }

    fn question_key(&mut self, key: KeyEvent, view: &Clarification<'_>) -> Outcome {
        let Some(question) = view.questions.get(self.current) else {
            return Outcome::Ignored;
        };
        if let Some(letter) = letter(key) {
            return match letter {
                '1'..='9' => self.pick(letter as usize - '1' as usize, view, question),
                ' ' => match self.cursor {
                    Some(option) => self.pick(option, view, question),
                    None => Outcome::Ignored,
                },
                'o' if takes_text(question) => {
                    self.typing = Some(self.text(self.current).to_owned());
                    Outcome::Changed
                }
                's' => Outcome::Answer(self.response(Dealt::Skipped, Vec::new())),
                _ => Outcome::Ignored,
            };
        }
        match key.code {
            KeyCode::BackTab => self.go_back(),
            KeyCode::Up if is_plain(key) => self.go_up(view),
            KeyCode::Down if is_plain(key) => self.go_down(view),
            KeyCode::Enter if is_plain(key) => self.enter(view, question),
            _ => Outcome::Ignored,
        }
    }

    fn approval_key(&mut self, key: KeyEvent, view: &Clarification<'_>) -> Outcome {
        let (Some(letter), Some(question)) = (letter(key), view.questions.first()) else {
            return Outcome::Ignored;
        };
        // With Caps Lock on, "a" arrives as "A": this session must not become always.
        let is_locked = key.state.contains(KeyEventState::CAPS_LOCK) && !key.modifiers.contains(KeyModifiers::SHIFT);
        let letter = if is_locked { letter.to_ascii_lowercase() } else { letter };
        let found = grants(question).into_iter().find(|(_, grant)| grant.key() == letter);
        match found {
            Some((_, Grant::Never)) if question.allow_free_text => {
                self.typing = Some(String::new());
                Outcome::Changed
            }
            Some((option, _)) => self.grant(option, question, ""),
            // Whoever asks must take a no, whatever they offer.
            None if letter == 'n' => {
                self.typing = Some(String::new());
                Outcome::Changed
            }
            None => Outcome::Ignored,
        }
    }

    fn type_key(&mut self, key: KeyEvent, view: &Clarification<'_>) -> Outcome {
        let Some(typed) = &mut self.typing else {
            return Outcome::Ignored;
        };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => self.typing = None,
            KeyCode::Enter if !key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::CONTROL) => {
                return self.finish_typing(view);
            }
            KeyCode::Backspace => {
                let last = typed.grapheme_indices(true).next_back().map_or(0, |(at, _)| at);
                typed.truncate(last);
            }
            KeyCode::Char('u') if control => typed.clear(),
            KeyCode::Char('w') if control => {
                let kept = typed.trim_end().rfind(' ').map_or(0, |at| at + 1);
                typed.truncate(kept);
            }
            KeyCode::Char(letter) if !key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::CONTROL) => {
                let letter = shifted(letter, key);
                if typed.len() + letter.len_utf8() <= MOST_BYTES && !letter.is_control() {
                    typed.push(letter);
                }
            }
            _ => return Outcome::Ignored,
        }
        Outcome::Changed
    }

    fn finish_typing(&mut self, view: &Clarification<'_>) -> Outcome {
        let text = self.typing.take().unwrap_or_default().trim().to_owned();
        if is_approval(view) {
            let Some(question) = view.questions.first() else {
                return Outcome::Ignored;
            };
            let never = grants(question).into_iter().find(|(_, grant)| *grant == Grant::Never);
            if let Some((option, _)) = never {
                return self.grant(option, question, &text);
            }
            let mut response = self.response(Dealt::Skipped, Vec::new());
            response.reason = (!text.is_empty()).then_some(text);
            return Outcome::Answer(response);
        }
        let several = view.questions.get(self.current).is_some_and(|it| it.allow_multiple);
        let is_empty = text.is_empty();
        if let Some(field) = self.fields.get_mut(self.current) {
            field.text = text;
            if !several && !is_empty {
                field.picks.clear();
            }
        }
        if is_empty { Outcome::Changed } else { self.go_on(view) }
    }

    fn pick(&mut self, option: usize, view: &Clarification<'_>, question: &Question<'_>) -> Outcome {
        if option >= question.options.len() {
            return Outcome::Ignored;
        }
        let Some(field) = self.fields.get_mut(self.current) else {
            return Outcome::Ignored;
        };
        if question.allow_multiple {
            if !field.picks.remove(&option) {
                field.picks.insert(option);
            }
            return Outcome::Changed;
        }
        field.picks = BTreeSet::from([option]);
        field.text.clear();
        self.go_on(view)
    }

    /// After an answer that is whole: the only question sends it, among several the next one without an answer is next.
    fn go_on(&mut self, view: &Clarification<'_>) -> Outcome {
        self.cursor = None;
        let is_multiple = |at: usize| view.questions.get(at).is_some_and(|it| it.allow_multiple);
        if view.questions.len() == 1 && !is_multiple(0) {
            return Outcome::Answer(self.answered(view));
        }
        let count = view.questions.len();
        let next = (self.current + 1..count)
            .chain(0..self.current)
            .find(|&it| !self.is_answered(it));
        if let Some(next) = next {
            self.current = next;
        }
        Outcome::Changed
    }

    fn enter(&mut self, view: &Clarification<'_>, question: &Question<'_>) -> Outcome {
        let open = !self.is_answered(self.current);
        if let Some(option) = self.cursor.filter(|_| open || !question.allow_multiple)
            && !self.is_picked(self.current, option)
        {
            return self.pick(option, view, question);
        }
        if self.is_complete(view) {
            return Outcome::Answer(self.answered(view));
        }
        if open && question.options.is_empty() {
            self.typing = Some(String::new());
            return Outcome::Changed;
        }
        if open {
            return Outcome::Ignored;
        }
        self.go_on(view)
    }

    fn go_back(&mut self) -> Outcome {
        match self.current.checked_sub(1) {
            Some(before) => {
                self.current = before;
                self.cursor = None;
                Outcome::Changed
            }
            None => Outcome::Ignored,
        }
    }

    /// One option up; from the first of a question to the last of the one before; beyond that the key is not ours.
    fn go_up(&mut self, view: &Clarification<'_>) -> Outcome {
        match self.cursor {
            Some(option) if option > 0 => self.cursor = Some(option - 1),
            Some(_) | None => {
                let Some(before) = self.current.checked_sub(1) else {
                    return Outcome::Ignored;
                };
                self.current = before;
                let options = view.questions.get(before).map_or(0, |it| it.options.len());
                self.cursor = options.checked_sub(1);
            }
        }
        Outcome::Changed
    }

    fn go_down(&mut self, view: &Clarification<'_>) -> Outcome {
        let options = view.questions.get(self.current).map_or(0, |it| it.options.len());
        let next = self.cursor.map_or(0, |it| it + 1);
        if next < options {
            self.cursor = Some(next);
        } else if self.current + 1 < view.questions.len() {
            self.current += 1;
            let options = view.questions.get(self.current).map_or(0, |it| it.options.len());
            self.cursor = (options > 0).then_some(0);
        } else {
            return Outcome::Ignored;
        }
        Outcome::Changed
    }

    fn answered(&self, view: &Clarification<'_>) -> ClarificationResponse {
        let answers = view.questions.iter().zip(&self.fields).map(|(question, field)| {
            let ids = field.picks.iter().filter_map(|&it| question.options.get(it));
            Answer {
                question_id: question.id.to_owned(),
                selected_option_ids: ids.map(|it| it.id.to_owned()).collect(),
                free_text: (!field.text.is_empty()).then(|| field.text.clone()),
            }
        });
        self.response(Dealt::Answered, answers.collect())
    }

    fn grant(&self, option: usize, question: &Question<'_>, reason: &str) -> Outcome {
        let Some(option) = question.options.get(option) else {
            return Outcome::Ignored;
        };
        let answer = Answer {
            question_id: question.id.to_owned(),
            selected_option_ids: vec![option.id.to_owned()],
            free_text: (!reason.is_empty()).then(|| reason.to_owned()),
        };
        Outcome::Answer(self.response(Dealt::Answered, vec![answer]))
    }

    fn response(&self, outcome: Dealt, answers: Vec<Answer>) -> ClarificationResponse {
        ClarificationResponse {
            document_id: self.document.clone(),
            outcome,
            answers,
            reason: None,
        }
    }
}

impl Grant {
    pub const fn key(self) -> char {
        match self {
            Self::Once => 'y',
            Self::Session => 'a',
            Self::Always => 'A',
            Self::Never => 'n',
            Self::Number(number @ 1..=9) => (b'0' + number as u8) as char,
            // More than nine options of a stranger's: the others have no key.
            Self::Number(_) => '\0',
        }
    }
}

/// An approval that looks like one; with several questions it is a form like any other.
pub(super) fn is_approval(view: &Clarification<'_>) -> bool {
    view.kind == QuestionKind::Approval && view.questions.len() == 1
}

/// The options of an approval by their index, each with its key.
pub(super) fn grants(question: &Question<'_>) -> Vec<(usize, Grant)> {
    let mut number = 0;
    let mut list = Vec::with_capacity(question.options.len());
    for (at, option) in question.options.iter().enumerate() {
        let known = match option.id {
            "allow_once" => Some(Grant::Once),
            "allow_session" => Some(Grant::Session),
            "allow_always" => Some(Grant::Always),
            "reject_once" => Some(Grant::Never),
            _ => None,
        };
        let is_taken = |grant: Grant| list.iter().any(|(_, it)| *it == grant);
        let grant = known.filter(|&it| !is_taken(it)).unwrap_or_else(|| {
            number += 1;
            Grant::Number(number)
        });
        list.push((at, grant));
    }
    list
}

/// The keys that answer an approval, as it stands: `y a n`.
pub fn approval_keys(document: &Document) -> String {
    let View::Clarification(view) = document.view() else {
        return String::new();
    };
    let question = view.questions.first();
    let mut keys: Vec<String> = question.map_or_else(Vec::new, |it| {
        grants(it)
            .into_iter()
            .map(|(_, grant)| grant.key().to_string())
            .collect()
    });
    // Whoever asks must take a no, whatever they offer.
    if !keys.iter().any(|it| it == "n") {
        keys.push("n".to_owned());
    }
    keys.join(" ")
}

/// Whether a question takes typed text: beside its options, or because it has none.
pub(super) fn takes_text(question: &Question<'_>) -> bool {
    question.allow_free_text || question.options.is_empty()
}

/// An answer in words: labels, and what was typed.
pub(super) fn spoken(answer: &Answer, question: &Question<'_>, is_approval: bool) -> String {
    /// Nobody reads more, and each is looked up.
    const MOST: usize = 100;
    let labels = answer.selected_option_ids.iter().take(MOST).map(|id| {
        let option = question.options.iter().find(|it| it.id == id.as_str());
        option.map_or(id.as_str(), |it| it.label).to_owned()
    });
    let mut words = labels.collect::<Vec<_>>().join(", ");
    if let Some(text) = answer.free_text.as_deref().filter(|it| !it.is_empty()) {
        if is_approval {
            words.push_str(": ");
        } else if !words.is_empty() {
            words.push_str(", other: ");
        } else if !question.options.is_empty() {
            words.push_str("other: ");
        }
        words.push_str(text);
    }
    words
}

/// Whether no key is held that gives it another meaning.
fn is_plain(key: KeyEvent) -> bool {
    key.modifiers.difference(KeyModifiers::SHIFT).is_empty()
}

/// The letter that a key types, if it types one.
fn letter(key: KeyEvent) -> Option<char> {
    match key.code {
        KeyCode::Char(letter) if is_plain(key) => Some(shifted(letter, key)),
        _ => None,
    }
}

/// Some terminals report a capital as the small letter with Shift.
fn shifted(letter: char, key: KeyEvent) -> char {
    let shift = key.modifiers.contains(KeyModifiers::SHIFT);
    if shift && letter.is_ascii_lowercase() {
        letter.to_ascii_uppercase()
    } else {
        letter
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        protocol::{Document, View},
        tui::doc::testing::closed,
    };

    fn question(metadata: Value) -> Document {
        closed("clarification", Some("Before I go on:"), metadata)
    }

    fn one() -> Document {
        question(json!({ "questions": [
            { "id": "q1", "text": "Which database?", "options": [{ "id": "pg", "label": "Postgres" }, { "id": "lite", "label": "SQLite" }] },
        ]}))
    }

    /// One of each: single choice, several choices, free text only.
    fn three() -> Document {
        question(json!({ "questions": [
            { "id": "q1", "text": "One code or many?", "options": ["one", "many"] },
            { "id": "q2", "text": "Which stores?", "options": ["redis", "disk"], "allowMultiple": true },
            { "id": "q3", "text": "What else?", "options": [] },
        ]}))
    }

    fn strict() -> Document {
        question(
            json!({ "questions": [{ "id": "q1", "text": "Now?", "options": ["yes", "no"], "allowFreeText": false }] }),
        )
    }

    fn approval(ids: &[&str], free_text: bool) -> Document {
        let options: Vec<Value> = ids
            .iter()
            .map(|id| json!({ "id": id, "label": format!("Label of {id}") }))
            .collect();
        question(json!({
            "kind": "approval",
            "subject": { "type": "terminal_command", "metadata": { "command": "git push" } },
            "questions": [{ "id": "approval", "text": "Allow `git push`?", "options": options, "allowFreeText": free_text }],
        }))
    }

    const ALL: &[&str] = &["allow_once", "allow_session", "allow_always", "reject_once"];

    /// Keys as words: a single sign is itself, the others have names.
    fn keys(script: &str) -> Vec<KeyEvent> {
        let key = |word: &str| match word {
            "enter" => KeyEvent::from(KeyCode::Enter),
            "esc" => KeyEvent::from(KeyCode::Esc),
            "space" => KeyEvent::from(KeyCode::Char(' ')),
            "back" => KeyEvent::from(KeyCode::Backspace),
            "up" => KeyEvent::from(KeyCode::Up),
            "down" => KeyEvent::from(KeyCode::Down),
            "shift-tab" => KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT),
            "ctrl-w" => KeyEvent::new(KeyCode::Char('w'), KeyModifiers::CONTROL),
            "ctrl-u" => KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL),
            "ctrl-s" => KeyEvent::new(KeyCode::Char('s'), KeyModifiers::CONTROL),
            "alt-o" => KeyEvent::new(KeyCode::Char('o'), KeyModifiers::ALT),
            "shift-a" => KeyEvent::new(KeyCode::Char('a'), KeyModifiers::SHIFT),
            "caps-a" => KeyEvent {
                state: KeyEventState::CAPS_LOCK,
                ..KeyEvent::from(KeyCode::Char('A'))
            },
            "release-y" => KeyEvent {
                kind: KeyEventKind::Release,
                ..KeyEvent::from(KeyCode::Char('y'))
            },
            word => KeyEvent::from(KeyCode::Char(word.chars().next().expect("words are not empty"))),
        };
        script.split(' ').filter(|it| !it.is_empty()).map(key).collect()
    }

    /// What the last key did; every key before it must have changed something.
    fn press(document: &Document, script: &str) -> (Form, Outcome) {
        let View::Clarification(view) = document.view() else {
            panic!("a question is a clarification");
        };
        let mut form = Form::new(document.id.clone());
        let mut last = Outcome::Ignored;
        for key in keys(script) {
            assert!(
                !matches!(last, Outcome::Answer(_)),
                "{script}: a key came after the answer"
            );
            last = form.key(key, &view);
        }
        (form, last)
    }

    /// `q1=pg q2=redis,disk q3:"text"`, `skipped`, or what else the last key did.
    fn told(document: &Document, script: &str) -> String {
        match press(document, script).1 {
            Outcome::Ignored => "ignored".to_owned(),
            Outcome::Changed => "changed".to_owned(),
            Outcome::Answer(response) => {
                assert_eq!(response.document_id, document.id);
                let answers = response.answers.iter().map(|it| {
                    let text = it.free_text.as_ref().map_or_else(String::new, |it| format!(":{it:?}"));
                    let ids = it.selected_option_ids.join(",");
                    let ids = if ids.is_empty() { ids } else { format!("={ids}") };
                    format!("{}{ids}{text}", it.question_id)
                });
                let answers: Vec<String> = answers.collect();
                let reason = response.reason.map_or_else(String::new, |it| format!(" {it:?}"));
                match response.outcome {
                    Dealt::Answered => answers.join(" "),
                    other => format!("{other}{}{reason}", answers.join(" ")),
                }
            }
        }
    }

    #[test]
    fn keys_answer_questions() {
        let cases = [
            ("a digit answers the only question at once", one(), "2", "q1=lite"),
            ("a digit beyond the options is somebody else's", one(), "3", "ignored"),
            ("zero is no option", one(), "0", "ignored"),
            ("letters are somebody else's", one(), "j", "ignored"),
            ("enter without an answer does nothing", one(), "enter", "ignored"),
            ("skip", one(), "s", "skipped"),
            ("ctrl and a letter is not the letter", one(), "ctrl-s", "ignored"),
            ("alt and a letter neither", one(), "alt-o", "ignored"),
            ("arrows choose, enter takes", one(), "down down enter", "q1=lite"),
            ("arrows go back", one(), "down down up enter", "q1=pg"),
            ("space takes too", one(), "down space", "q1=pg"),
            ("up from the top leaves the form", one(), "down up", "ignored"),
            (
                "down from the bottom leaves the form",
                one(),
                "down down down",
                "ignored",
            ),
            ("another answer is typed", one(), "o R e d i s enter", "q1:\"Redis\""),
            (
                "keys are text while typing",
                one(),
                "o s 1 space o enter",
                "q1:\"s1 o\"",
            ),
            ("backspace takes a whole sign", one(), "o a é back enter", "q1:\"a\""),
            ("a word goes", one(), "o a space b c ctrl-w d enter", "q1:\"a d\""),
            ("all of it goes", one(), "o a b ctrl-u c enter", "q1:\"c\""),
            ("esc leaves typing and keeps nothing", one(), "o a esc enter", "ignored"),
            ("an empty text is no answer", one(), "o space enter", "changed"),
            ("where no text is taken, o is somebody else's", strict(), "o", "ignored"),
            ("one of three answers only moves on", three(), "1", "changed"),
            ("choices toggle", three(), "2 1 2 1 shift-tab", "changed"),
            (
                "all three, sent by enter",
                three(),
                "2 1 2 enter o n o enter enter",
                "q1=many q2=redis,disk q3:\"no\"",
            ),
            (
                "enter moves on from a question with several choices, then begins to type",
                three(),
                "1 2 enter enter x enter enter",
                "q1=one q2=disk q3:\"x\"",
            ),
            (
                "enter before all is answered sends nothing",
                three(),
                "2 1 enter",
                "changed",
            ),
            (
                "shift and tab go back to change an answer",
                three(),
                "1 1 enter enter x enter shift-tab shift-tab 2 enter",
                "q1=many q2=redis q3:\"x\"",
            ),
            (
                "back from the first is somebody else's",
                three(),
                "shift-tab",
                "ignored",
            ),
            (
                "a choice toggled off is gone",
                three(),
                "1 1 2 1 enter enter x enter enter",
                "q1=one q2=disk q3:\"x\"",
            ),
        ];
        for (name, document, script, outcome) in cases {
            assert_eq!(told(&document, script), outcome, "{name}");
        }
    }

    #[test]
    fn keys_decide_approvals() {
        let cases = [
            ("y is once", ALL, true, "y", "approval=allow_once"),
            ("a is this session", ALL, true, "a", "approval=allow_session"),
            ("A is always", ALL, true, "A", "approval=allow_always"),
            ("shift and a too", ALL, true, "shift-a", "approval=allow_always"),
            (
                "caps lock makes no always",
                ALL,
                true,
                "caps-a",
                "approval=allow_session",
            ),
            ("a released key decides nothing", ALL, true, "release-y", "ignored"),
            ("n asks for a reason", ALL, true, "n", "changed"),
            (
                "a no with a reason",
                ALL,
                true,
                "n n o enter",
                "approval=reject_once:\"no\"",
            ),
            ("a no without one", ALL, true, "n enter", "approval=reject_once"),
            (
                "letters of the reason decide nothing",
                ALL,
                true,
                "n y A enter",
                "approval=reject_once:\"yA\"",
            ),
            ("esc takes the no back", ALL, true, "n x esc y", "approval=allow_once"),
            (
                "where no text is taken, n is enough",
                ALL,
                false,
                "n",
                "approval=reject_once",
            ),
            ("enter decides nothing", ALL, true, "enter", "ignored"),
            ("digits decide nothing where letters do", ALL, true, "1", "ignored"),
            (
                "only what is offered has a key",
                &["allow_once", "reject_once"],
                true,
                "A",
                "ignored",
            ),
            (
                "a stranger's options have digits",
                &["allow_once", "later", "never"],
                true,
                "2",
                "approval=never",
            ),
            (
                "a no is always possible",
                &["allow_once"],
                true,
                "n b a d enter",
                "skipped \"bad\"",
            ),
            ("skip is no key of an approval", ALL, true, "s", "ignored"),
        ];
        for (name, ids, free_text, script, outcome) in cases {
            assert_eq!(told(&approval(ids, free_text), script), outcome, "{name}");
        }
    }

    #[test]
    fn what_was_dealt_with_takes_no_keys() {
        let answered =
            question(json!({ "outcome": "answered", "questions": [{ "id": "q", "text": "?", "options": ["a"] }] }));
        let empty = question(json!({ "questions": [] }));
        for document in [answered, empty] {
            assert_eq!(press(&document, "1").1, Outcome::Ignored);
        }
    }

    #[test]
    fn every_change_has_its_version() {
        let (form, _) = press(&three(), "1 1 2");
        assert_eq!(form.version, 4);
        let (form, _) = press(&three(), "j k");
        assert_eq!(form.version, 1);
    }

    #[test]
    fn a_paste_is_one_line_and_bounded() {
        let (mut form, _) = press(&one(), "o");
        assert_eq!(form.paste("two\nlines\x1b[31m"), Outcome::Changed);
        assert_eq!(form.typed(), Some("two lines"));
        form.paste(&"漢".repeat(MOST_BYTES));
        assert!(form.typed().is_some_and(|it| it.len() <= MOST_BYTES));
        let (mut idle, _) = press(&one(), "");
        assert_eq!(idle.paste("x"), Outcome::Ignored);
    }

    #[test]
    fn answers_read_as_a_message() {
        let said = |document: &Document, script: &str| {
            let View::Clarification(view) = document.view() else {
                panic!("a question is a clarification");
            };
            match press(document, script).1 {
                Outcome::Answer(response) => {
                    let message = Form::message(&response, &view);
                    assert_eq!(message.clarification_response, Some(response));
                    message.content
                }
                other => panic!("{script} gave {other:?}"),
            }
        };
        let cases = [
            ("a label, not an id", one(), "1", "Which database? -> Postgres"),
            (
                "another answer says so",
                one(),
                "o R enter",
                "Which database? -> other: R",
            ),
            (
                "each question on its line; a text alone needs no word",
                three(),
                "2 1 2 enter o n o enter enter",
                "One code or many? -> many\nWhich stores? -> redis, disk\nWhat else? -> no",
            ),
            (
                "skipped",
                one(),
                "s",
                "I skip this; decide yourself and say what you assume.",
            ),
            (
                "allowed",
                approval(ALL, true),
                "y",
                "Allow `git push`? -> Label of allow_once",
            ),
            (
                "a no with its reason",
                approval(ALL, true),
                "n n o t space n o w enter",
                "Allow `git push`? -> Label of reject_once: not now",
            ),
        ];
        for (name, document, script, content) in cases {
            assert_eq!(said(&document, script), content, "{name}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        /// Whatever is typed, an answer names questions and options that were asked.
        #[test]
        fn any_keys_are_taken(script in proptest::collection::vec(
            proptest::sample::select(vec![
                "1", "2", "3", "9", "o", "s", "n", "y", "a", "A", "space", "enter", "esc", "back", "up", "down", "shift-tab",
                "ctrl-w", "漢", "é",
            ]), 0..40),
            which in 0usize..4,
        ) {
            let document = vec![one(), three(), strict(), approval(ALL, true)].swap_remove(which);
            let View::Clarification(view) = document.view() else { unreachable!() };
            let mut form = Form::new(document.id.clone());
            for key in script.iter().flat_map(|it| keys(it)) {
                let Outcome::Answer(response) = form.key(key, &view) else { continue };
                for answer in &response.answers {
                    let question = view.questions.iter().find(|it| it.id == answer.question_id);
                    let known = |id: &String| question.is_some_and(|it| it.options.iter().any(|it| it.id == id.as_str()));
                    prop_assert!(answer.selected_option_ids.iter().all(known));
                    prop_assert!(!answer.selected_option_ids.is_empty() || answer.free_text.is_some());
                }
                break;
            }
        }
    }
}
