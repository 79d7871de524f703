//! The answer to a question in the making: options and texts so far.
//!
//! View state only. A key makes an answer to be sent; the question closes when the answer returns as an event, so that two
//! windows agree. An approval is a form with one question whose options have letters.

use std::collections::BTreeSet;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::{
    protocol::{
        ClarificationResponse, Document, DocumentId, Outcome as Dealt, QuestionAnswer, QuestionKind, View,
        document::{Clarification, Question},
    },
    text::Sanitized,
    tui::editor::draft::{Draft, MOST_LINE_BYTES},
};

/// The answer to a question so far: options and texts.
#[derive(Clone, Debug)]
pub struct Form {
    pub document: DocumentId,
    /// Grows with every change, so that a look knows when to look again.
    pub version: u64,
    current: usize,
    fields: Vec<Field>,
    /// Digits that marked an option just now, and the field before them: with a letter after them they are text.
    digits: Option<(String, Field)>,
    /// The last key was an arrow.
    has_moved: bool,
    /// The reason of a no while it is typed.
    reason: Option<Draft>,
}

/// The answer to one question so far.
#[derive(Clone, Debug, Default)]
struct Field {
    /// The marked row; `None` on an approval before one is marked.
    mark: Option<usize>,
    /// Indices into the question's options.
    picks: BTreeSet<usize>,
    /// The text as it is typed.
    typed: Draft,
    /// The text that is part of the answer.
    text: String,
    is_answered: bool,
}

impl Field {
    fn answer(&self, text: &str, question: &Question<'_>) -> QuestionAnswer {
        let ids = self.picks.iter().filter_map(|&it| question.options.get(it));
        QuestionAnswer {
            question_id: question.id.to_owned(),
            selected_option_ids: ids.map(|it| it.id.to_owned()).collect(),
            free_text: (!text.is_empty()).then(|| text.to_owned()),
            hunks: Vec::new(),
        }
    }
}

/// A row of a question that can be marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    Option(usize),
    /// The answer in the user's own words.
    Text,
    /// Skips the whole form.
    Skip,
}

/// The rows of a question, from the top.
pub(super) fn rows(question: &Question<'_>) -> Vec<Row> {
    let options = (0..question.options.len()).map(Row::Option);
    options
        .chain(takes_text(question).then_some(Row::Text))
        .chain([Row::Skip])
        .collect()
}

/// The result of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It is not the form's: somebody else may have it.
    Ignored,
    Changed,
    /// The beginning of a message: the question takes no text.
    Message(String),
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
            fields: Vec::new(),
            digits: None,
            has_moved: false,
            reason: None,
        }
    }

    /// Handles a key. Only Enter, and `y` and `n` on an approval, can answer.
    pub fn key(&mut self, key: KeyEvent, view: &Clarification<'_>) -> Outcome {
        if key.kind == KeyEventKind::Release || view.outcome.is_some() || view.questions.is_empty() {
            return Outcome::Ignored;
        }
        self.prepare(view);
        let outcome = match view.questions.first().filter(|_| is_approval_card(view)) {
            Some(question) => self.approval_key(key, question),
            None => self.question_key(key, view),
        };
        if outcome != Outcome::Ignored {
            self.version += 1;
        }
        outcome
    }

    /// Makes a field for each question, with the first row marked.
    fn prepare(&mut self, view: &Clarification<'_>) {
        let mark = (!is_approval_card(view)).then_some(0);
        let field = Field {
            mark,
            ..Field::default()
        };
        self.fields.resize(view.questions.len(), field);
        self.current = self.current.min(view.questions.len().saturating_sub(1));
    }

    /// Inserts text from the clipboard into the answer that is typed; false if the question takes none.
    pub fn paste(&mut self, text: &str, view: &Clarification<'_>) -> bool {
        self.prepare(view);
        if let Some(question) = view.questions.get(self.current).filter(|_| !is_approval_card(view)) {
            self.mark_row(Row::Text, question);
        }
        let current = self.current;
        let is_typing = self.row(view) == Some(Row::Text);
        let typed = match &mut self.reason {
            Some(reason) => Some(reason),
            None => self
                .fields
                .get_mut(current)
                .filter(|_| is_typing)
                .map(|it| &mut it.typed),
        };
        let Some(typed) = typed else { return false };
        let room = MOST_LINE_BYTES.saturating_sub(typed.text().len());
        let text = Sanitized::line(text);
        typed.insert(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
        self.version += 1;
        true
    }

    pub(super) fn current(&self) -> usize {
        self.current
    }

    /// The marked row of the current question; of an approval `None` until one is marked.
    pub(super) fn row(&self, view: &Clarification<'_>) -> Option<Row> {
        let question = view.questions.get(self.current)?;
        let first = (!is_approval_card(view)).then_some(0);
        let mark = self.fields.get(self.current).map_or(first, |it| it.mark)?;
        rows(question).get(mark).copied()
    }

    pub(super) fn is_picked(&self, question: usize, option: usize) -> bool {
        self.fields.get(question).is_some_and(|it| it.picks.contains(&option))
    }

    /// The text that is typed for a question; empty if there is none.
    pub(super) fn typed(&self, question: usize) -> Option<&Draft> {
        self.fields.get(question).map(|it| &it.typed)
    }

    /// The reason of a no, while it is typed.
    pub fn reason(&self) -> Option<&Draft> {
        self.reason.as_ref()
    }

    pub(super) fn is_answered(&self, question: usize) -> bool {
        self.fields.get(question).is_some_and(|it| it.is_answered)
    }

    /// The answer to a question so far, for those that are answered.
    pub(super) fn answer(&self, at: usize, question: &Question<'_>) -> Option<QuestionAnswer> {
        let field = self.fields.get(at).filter(|it| it.is_answered)?;
        Some(field.answer(&field.text, question))
    }

    /// The answer to a question that was checked or typed and that no Enter has confirmed.
    fn unconfirmed(&self, at: usize, question: &Question<'_>) -> Option<QuestionAnswer> {
        let field = self.fields.get(at).filter(|it| !it.is_answered)?;
        let row = rows(question).get(field.mark.unwrap_or_default()).copied();
        let typed = field.typed.text();
        let text = if row == Some(Row::Text) || question.allow_multiple {
            typed.trim()
        } else {
            ""
        };
        let is_given = !text.is_empty() || !field.picks.is_empty();
        is_given.then(|| field.answer(text, question))
    }

    /// Returns true if the next Enter sends: this is the last question, and the others have an answer.
    pub(super) fn is_last(&self, view: &Clarification<'_>) -> bool {
        let count = view.questions.len();
        self.current + 1 == count && (0..count).all(|it| it == self.current || self.is_answered(it))
    }

    /// The answers that were given so far, for a message that is sent instead, as a response: also what was checked or typed last.
    /// `None` if there are none.
    pub fn given(&self, view: &Clarification<'_>) -> Option<ClarificationResponse> {
        let given = |(at, it): (usize, &Question<'_>)| {
            let last = || self.unconfirmed(at, it).filter(|_| !is_approval_card(view));
            self.answer(at, it).or_else(last)
        };
        let answers: Vec<_> = view.questions.iter().enumerate().filter_map(given).collect();
        (!answers.is_empty()).then(|| self.response(Dealt::Answered, answers))
    }

    fn answers(&self, view: &Clarification<'_>) -> Vec<QuestionAnswer> {
        let questions = view.questions.iter().enumerate();
        questions.filter_map(|(at, it)| self.answer(at, it)).collect()
    }

    fn question_key(&mut self, key: KeyEvent, view: &Clarification<'_>) -> Outcome {
        let Some(question) = view.questions.get(self.current) else {
            return Outcome::Ignored;
        };
        let (digits, has_moved) = (self.digits.take(), std::mem::take(&mut self.has_moved));
        let is_typing = self.row(view) == Some(Row::Text);
        match key.code {
            KeyCode::BackTab => self.go_back(),
            KeyCode::Up if is_plain(key) => self.step(-1, view),
            KeyCode::Down if is_plain(key) => self.step(1, view),
            KeyCode::Enter if is_plain(key) => self.enter(view, question),
            _ if is_typing => match self.fields.get_mut(self.current) {
                Some(field) => type_key(&mut field.typed, key),
                None => Outcome::Ignored,
            },
            _ => match letter(key) {
                Some(letter) => self.letter(letter, digits, has_moved, question),
                None => Outcome::Ignored,
            },
        }
    }

    /// A letter on an option: digits mark, Space marks after an arrow, everything else begins a text.
    fn letter(
        &mut self,
        letter: char,
        digits: Option<(String, Field)>,
        has_moved: bool,
        question: &Question<'_>,
    ) -> Outcome {
        let Some(field) = self.fields.get_mut(self.current) else {
            return Outcome::Ignored;
        };
        let option = letter.to_digit(10).and_then(|it| (it as usize).checked_sub(1));
        if let Some(option) = option.filter(|it| *it < question.options.len()) {
            let (mut text, before) = digits.unwrap_or_else(|| (String::new(), field.clone()));
            text.push(letter);
            self.digits = Some((text, before));
            if question.allow_multiple {
                self.toggle(option);
            } else {
                self.mark_row(Row::Option(option), question);
            }
            return Outcome::Changed;
        }
        if letter == ' ' && has_moved {
            if let Some(option) = field
                .mark
                .filter(|it| question.allow_multiple && *it < question.options.len())
            {
                self.toggle(option);
            }
            return Outcome::Changed;
        }
        // The digits were the beginning of a text.
        let mut text = String::new();
        if let Some((digits, before)) = digits {
            *field = before;
            text = digits;
        }
        text.push(letter);
        if !takes_text(question) {
            return Outcome::Message(text);
        }
        field.typed.insert(&text);
        self.mark_row(Row::Text, question);
        Outcome::Changed
    }

    fn approval_key(&mut self, key: KeyEvent, question: &Question<'_>) -> Outcome {
        if let Some(reason) = &mut self.reason {
            match key.code {
                KeyCode::Esc => self.reason = None,
                KeyCode::Enter if is_plain(key) => {
                    let text = self.reason.take().unwrap_or_default().text().trim().to_owned();
                    return self.reject(question, &text);
                }
                _ => return type_key(reason, key),
            }
            return Outcome::Changed;
        }
        match key.code {
            KeyCode::Up | KeyCode::Down if is_plain(key) => {
                let mark = self.fields.first().and_then(|it| it.mark);
                let next = match (key.code, mark) {
                    (KeyCode::Down, None) => Some(0),
                    (KeyCode::Down, Some(at)) => Some(at + 1).filter(|it| *it < question.options.len()),
                    (_, at) => at.and_then(|it| it.checked_sub(1)),
                };
                return next.map_or(Outcome::Ignored, |it| self.mark_grant(it));
            }
            // Without a mark it decides nothing: somebody who writes presses it out of habit.
            KeyCode::Enter if is_plain(key) => {
                return match self.fields.first().and_then(|it| it.mark) {
                    Some(option) => self.grant(option, question, ""),
                    None => Outcome::Changed,
                };
            }
            _ => {}
        }
        let Some(letter) = letter(key) else {
            return Outcome::Ignored;
        };
        let found = grants(question).into_iter().find(|(_, grant)| grant.key() == letter);
        match (letter, found) {
            (_, Some((option, Grant::Once))) => self.grant(option, question, ""),
            ('n', _) => self.reject(question, ""),
            ('N', _) => {
                self.reason = Some(Draft::default());
                Outcome::Changed
            }
            (_, Some((option, _))) => self.mark_grant(option),
            (_, None) => Outcome::Ignored,
        }
    }

    /// Handles a click on row `at` of the current question: marks it, or has the effect of Enter where it is marked already.
    pub fn click(&mut self, at: usize, view: &Clarification<'_>) -> Outcome {
        self.prepare(view);
        let question = view.questions.get(self.current).filter(|_| !is_approval_card(view));
        let Some((question, row)) = question.and_then(|it| Some((it, *rows(it).get(at)?))) else {
            return Outcome::Ignored;
        };
        self.version += 1;
        match row {
            Row::Option(option) if question.allow_multiple => self.toggle(option),
            Row::Option(_) | Row::Text | Row::Skip if self.row(view) == Some(row) => {
                return self.key(KeyCode::Enter.into(), view);
            }
            Row::Option(_) | Row::Text | Row::Skip => self.mark_row(row, question),
        }
        Outcome::Changed
    }

    /// Marks the option of an approval that grants for the session, so that Enter decides; false if there is none.
    pub fn mark_session(&mut self, view: &Clarification<'_>) -> bool {
        self.prepare(view);
        let found = view.questions.first().map(grants).unwrap_or_default();
        let option = found.into_iter().find(|(_, grant)| *grant == Grant::Session);
        option.is_some_and(|(option, _)| self.mark_grant(option) == Outcome::Changed)
    }

    fn mark_grant(&mut self, option: usize) -> Outcome {
        if let Some(field) = self.fields.first_mut() {
            field.mark = Some(option);
            self.version += 1;
        }
        Outcome::Changed
    }

    fn reject(&self, question: &Question<'_>, reason: &str) -> Outcome {
        let never = grants(question).into_iter().find(|(_, grant)| *grant == Grant::Never);
        if let Some((option, _)) = never {
            return self.grant(option, question, reason);
        }
        // Whoever asks must take a no, whatever they offer.
        let mut response = self.response(Dealt::Skipped, Vec::new());
        response.reason = (!reason.is_empty()).then(|| reason.to_owned());
        Outcome::Answer(response)
    }

    fn mark_row(&mut self, row: Row, question: &Question<'_>) {
        let at = rows(question).iter().position(|it| *it == row);
        if let (Some(at), Some(field)) = (at, self.fields.get_mut(self.current)) {
            field.mark = Some(at);
        }
    }

    fn toggle(&mut self, option: usize) {
        if let Some(field) = self.fields.get_mut(self.current) {
            field.mark = Some(option);
            if !field.picks.remove(&option) {
                field.picks.insert(option);
            }
        }
    }

    /// Answers the current question with what is marked and shows the next one; the last one sends.
    fn enter(&mut self, view: &Clarification<'_>, question: &Question<'_>) -> Outcome {
        let row = self.row(view);
        let Some(field) = self.fields.get_mut(self.current) else {
            return Outcome::Ignored;
        };
        let typed = field.typed.text().trim().to_owned();
        match row {
            Some(Row::Option(option)) if !question.allow_multiple => {
                field.picks = BTreeSet::from([option]);
                field.text.clear();
            }
            Some(Row::Option(option)) => {
                if field.picks.is_empty() {
                    field.picks.insert(option);
                }
                field.text = typed;
            }
            Some(Row::Text) if typed.is_empty() && field.picks.is_empty() => return Outcome::Changed,
            Some(Row::Text) => {
                if !question.allow_multiple {
                    field.picks.clear();
                }
                field.text = typed;
            }
            Some(Row::Skip) => return Outcome::Answer(self.response(Dealt::Skipped, Vec::new())),
            None => return Outcome::Ignored,
        }
        field.is_answered = true;
        let next = self.current + 1;
        let open = || (0..view.questions.len()).find(|&it| !self.is_answered(it));
        match (next < view.questions.len()).then_some(next).or_else(open) {
            Some(next) => {
                self.current = next;
                Outcome::Changed
            }
            None => Outcome::Answer(self.response(Dealt::Answered, self.answers(view))),
        }
    }

    fn go_back(&mut self) -> Outcome {
        let Some(before) = self.current.checked_sub(1) else {
            return Outcome::Ignored;
        };
        self.current = before;
        Outcome::Changed
    }

    /// Marks the row above or below; beyond the first and the last one the key is not the form's.
    fn step(&mut self, by: isize, view: &Clarification<'_>) -> Outcome {
        let count = view.questions.get(self.current).map_or(0, |it| rows(it).len());
        let Some(field) = self.fields.get_mut(self.current) else {
            return Outcome::Ignored;
        };
        let next = field.mark.unwrap_or(0).checked_add_signed(by);
        let Some(next) = next.filter(|it| *it < count) else {
            return Outcome::Ignored;
        };
        field.mark = Some(next);
        self.has_moved = true;
        Outcome::Changed
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

/// Edits a text of one line by a key.
fn type_key(typed: &mut Draft, key: KeyEvent) -> Outcome {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let is_taken = match key.code {
        KeyCode::Char('u') if control => {
            typed.take_all();
            true
        }
        KeyCode::Char(_) if typed.text().len() >= MOST_LINE_BYTES => false,
        KeyCode::Char(it) => {
            // Some terminals report a capital as the small letter with Shift.
            let code = KeyCode::Char(if control { it } else { shifted(it, key) });
            typed.edit(KeyEvent { code, ..key })
        }
        KeyCode::Esc | KeyCode::Enter | KeyCode::Tab => false,
        _ => typed.edit(key),
    };
    if is_taken { Outcome::Changed } else { Outcome::Ignored }
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
pub(super) fn is_approval_card(view: &Clarification<'_>) -> bool {
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
