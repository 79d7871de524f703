//! The answer to a question in the making: options and texts so far.
//!
//! View state only. A key makes an answer to be sent; the question closes when the answer returns as an event, so that two
//! windows agree. An approval is a form with one question whose options have letters.

use std::collections::BTreeSet;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyEventState, KeyModifiers};

use crate::{
    protocol::{
        ClarificationResponse, Document, DocumentId, Outcome as Dealt, QuestionAnswer, QuestionKind, View,
        document::{Clarification, Question},
    },
    text::Sanitized,
    tui::editor::draft::{Draft, MOST_LINE_BYTES},
};

/// The options that the user has chosen, and the texts typed so far.
#[derive(Clone, Debug)]
pub struct Form {
    pub document: DocumentId,
    /// Grows with every change, so that a look knows when to look again.
    pub version: u64,
    current: usize,
    /// The option that the arrows went to; none before they are used.
    cursor: Option<usize>,
    fields: Vec<Field>,
    typing: Option<Draft>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Field {
    /// Indices into the question's options.
    picks: BTreeSet<usize>,
    text: String,
}

/// The result of a key.
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

    /// Returns true while printable keys are text.
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
        let room = MOST_LINE_BYTES.saturating_sub(typed.text().len());
        let text = Sanitized::line(text);
        typed.insert(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
        self.version += 1;
        Outcome::Changed
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

    /// The text that is being typed for the current question.
    pub(super) fn typed(&self) -> Option<&Draft> {
        self.typing.as_ref()
    }

    /// Returns true if every question has an answer, so that Enter sends.
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
                    self.typing = Some(Draft::new(self.text(self.current)));
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
                self.typing = Some(Draft::default());
                Outcome::Changed
            }
            Some((option, _)) => self.grant(option, question, ""),
            // Whoever asks must take a no, whatever they offer.
            None if letter == 'n' => {
                self.typing = Some(Draft::default());
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
            KeyCode::Char('u') if control => typed.take_all(),
            KeyCode::Char(_) if typed.text().len() >= MOST_LINE_BYTES => return Outcome::Ignored,
            KeyCode::Char(it) => {
                // Some terminals report a capital as the small letter with Shift.
                let code = KeyCode::Char(if control { it } else { shifted(it, key) });
                if !typed.edit(KeyEvent { code, ..key }) {
                    return Outcome::Ignored;
                }
            }
            _ => {
                if !typed.edit(key) {
                    return Outcome::Ignored;
                }
            }
        }
        Outcome::Changed
    }

    fn finish_typing(&mut self, view: &Clarification<'_>) -> Outcome {
        let typed = self.typing.take().unwrap_or_default();
        let text = typed.text().trim().to_owned();
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
            self.typing = Some(Draft::default());
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
            QuestionAnswer {
                question_id: question.id.to_owned(),
                selected_option_ids: ids.map(|it| it.id.to_owned()).collect(),
                free_text: (!field.text.is_empty()).then(|| field.text.clone()),
                hunks: Vec::new(),
            }
        });
        self.response(Dealt::Answered, answers.collect())
    }

    fn grant(&self, option: usize, question: &Question<'_>, reason: &str) -> Outcome {
        let Some(option) = question.options.get(option) else {
            return Outcome::Ignored;
        };
        let answer = QuestionAnswer {
            question_id: question.id.to_owned(),
            selected_option_ids: vec![option.id.to_owned()],
            free_text: (!reason.is_empty()).then(|| reason.to_owned()),
            hunks: Vec::new(),
        };
        Outcome::Answer(self.response(Dealt::Answered, vec![answer]))
    }

    fn response(&self, outcome: Dealt, answers: Vec<QuestionAnswer>) -> ClarificationResponse {
        ClarificationResponse::new(self.document.clone(), outcome, answers)
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

/// Returns true for a question that takes typed text: beside its options, or without any.
pub(super) fn takes_text(question: &Question<'_>) -> bool {
    question.allow_free_text || question.options.is_empty()
}

/// Words before a typed text.
pub(super) struct AnswerWords {
    /// Without a chosen option.
    pub other: &'static str,
    /// Behind what was chosen.
    pub more: &'static str,
}

/// An answer in words: labels, and what was typed.
pub(super) fn spoken(answer: &QuestionAnswer, question: &Question<'_>, said: &AnswerWords) -> String {
    /// Nobody reads more, and each is looked up.
    const MOST: usize = 100;
    let labels = answer.selected_option_ids.iter().take(MOST).map(|id| {
        let option = question.options.iter().find(|it| it.id == id.as_str());
        option.map_or(id.as_str(), |it| it.label).to_owned()
    });
    let mut words = labels.collect::<Vec<_>>().join(", ");
    if let Some(text) = answer.free_text.as_deref().filter(|it| !it.is_empty()) {
        if !words.is_empty() {
            words.push_str(said.more);
            words.push(' ');
        } else if !question.options.is_empty() {
            words.push_str(said.other);
            words.push(' ');
        }
        words.push_str(text);
    }
    words
}

/// Returns true for a key without a modifier that changes its meaning.
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
mod tests;
