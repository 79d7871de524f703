//! The user's decisions on single hunks of a change that waits for approval; they go out as one answer.
//!
//! View state, like a form: another window that answers first is right. Whoever asks must list the hunks (`hunks` of the
//! planned change); without a list a change is allowed or rejected as a whole.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use serde_json::{Map, Value, json};

use super::widgets;
use crate::{
    protocol::{
        ClarificationResponse, Document, DocumentId, HunkAnswer, Outcome, QuestionAnswer, Turn, View,
        document::Clarification,
    },
    t,
    transcript::Transcript,
};

/// Most hunks that can be decided on singly; a change with more is one decision.
const MOST_HUNKS: usize = 1000;

/// Decisions on the hunks of changes that wait for approval.
#[derive(Debug, Default)]
pub struct HunkDecisions(HashMap<(Turn, DocumentId), Vec<HunkAnswer>>);

impl HunkDecisions {
    pub fn get(&self, turn: Turn, document: &DocumentId, index: u64) -> Option<&HunkAnswer> {
        let said = self.0.get(&(turn, document.clone()))?;
        said.iter().find(|it| it.index == index)
    }

    /// Changes what is said of a hunk; of one that nothing was said of it is that it is left out.
    pub fn set(&mut self, turn: Turn, document: &DocumentId, index: u64, change: impl FnOnce(&mut HunkAnswer)) {
        let said = self.0.entry((turn, document.clone())).or_default();
        let at = said.iter().position(|it| it.index == index).unwrap_or_else(|| {
            said.push(HunkAnswer {
                index,
                accepted: false,
                new_string: None,
                comment: None,
            });
            said.len() - 1
        });
        if let Some(it) = said.get_mut(at) {
            change(it);
        }
    }

    /// The answer to the question of `document`, once something is said of each of its hunks.
    pub fn answer(&self, turn: Turn, document: &Document) -> Option<ClarificationResponse> {
        let View::Clarification(view) = document.view() else {
            return None;
        };
        let count = widgets::staged(document).map(|it| count(&it))?;
        let mut said = self.0.get(&(turn, document.id.clone()))?.clone();
        said.sort_by_key(|it| it.index);
        if count == 0 || said.len() < count {
            return None;
        }
        Some(response(&view, document, said))
    }

    /// Why an answer must not go out: it would write what was left out, hunk by hunk, of this change or of another that waits.
    pub fn forbids(
        &self,
        turn: Turn,
        response: &ClarificationResponse,
        transcript: &Transcript,
    ) -> Option<&'static str> {
        let chosen = response.answers.iter().flat_map(|it| &it.selected_option_ids);
        let yes: Vec<&String> = chosen.filter(|it| it.starts_with("allow") || *it == "yes").collect();
        if yes.is_empty() {
            return None;
        }
        if self.has(turn, &response.document_id) {
            return Some(t!("action-decided-by-hunks"));
        }
        let is_waiting = |(turn, id): &(Turn, DocumentId)| {
            let place = transcript.index_of_document(*turn, id);
            place
                .and_then(|it| transcript.get(it))
                .and_then(widgets::staged)
                .is_some()
        };
        let is_once = yes.iter().all(|it| *it == "allow_once" || *it == "yes");
        (!is_once && self.0.keys().any(is_waiting)).then(|| t!("action-others-by-hunks"))
    }

    /// Counts the hunks of a change: accepted, rejected, and in all.
    pub fn tally(&self, turn: Turn, document: &Document) -> Option<(usize, usize, usize)> {
        let said = self.0.get(&(turn, document.id.clone()))?;
        let made = said.iter().filter(|it| it.accepted).count();
        Some((made, said.len() - made, count(&widgets::staged(document)?)))
    }

    /// Returns true if a hunk of the change was decided on.
    pub fn has(&self, turn: Turn, document: &DocumentId) -> bool {
        self.0.contains_key(&(turn, document.clone()))
    }

    /// It is answered.
    pub fn forget(&mut self, turn: Turn, document: &DocumentId) {
        self.0.remove(&(turn, document.clone()));
    }
}

/// The number of hunks of a planned change that can be decided on; 0 if it is allowed or rejected as a whole.
pub fn count(staged: &Document) -> usize {
    let hunks = list(staged);
    let is_list = |(it, index): (&Value, u64)| it.get("index").and_then(Value::as_u64) == Some(index);
    if hunks.len() <= MOST_HUNKS && hunks.iter().zip(1..).all(is_list) {
        hunks.len()
    } else {
        0
    }
}

fn list(staged: &Document) -> &[Value] {
    staged
        .metadata
        .get("hunks")
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// One hunk of a planned change as a change of its own, with what the user wrote in its place.
pub fn hunk(staged: &Document, index: u64, said: Option<&HunkAnswer>) -> Document {
    let mut document = staged.clone();
    let count = count(staged);
    let written = said.and_then(|it| it.new_string.as_deref());
    let members = usize::try_from(index)
        .ok()
        .and_then(|it| list(staged).get(it.checked_sub(1)?));
    if let Some(Value::Object(hunk)) = members.filter(|it| it.get("newString").is_some()) {
        let mut diff: Map<String, Value> = hunk.clone();
        diff.shift_remove("index");
        if let Some(text) = written {
            diff.insert("newString".to_owned(), text.into());
        }
        document.metadata.insert("diff".to_owned(), diff.into());
    } else if let Some(text) = written {
        document.content = Some(text.into());
    }
    document.metadata.shift_remove("hunks");
    document
        .metadata
        .insert("hunk".to_owned(), json!({ "index": index, "count": count }));
    // What is remembered of it is remembered for what it says.
    let mut hasher = DefaultHasher::new();
    (document.version, index, written).hash(&mut hasher);
    document.version = hasher.finish();
    // Its code is another than that of the whole change, and gets its own colours.
    document.id = format!("{}#{index}.{:x}", document.id, document.version).into();
    document
}

/// The text that a hunk would write.
pub fn text(hunk: &Document) -> String {
    let View::FileEdit(it) = hunk.view() else {
        return String::new();
    };
    it.diff
        .map_or_else(|| it.content.unwrap_or_default(), |it| it.new)
        .to_owned()
}

/// All of it is a yes, a part is a no, so that whoever knows nothing of hunks writes nothing and can read why. Both say of
/// each hunk what it is: what was chosen so is made, whatever becomes of the other files of the call.
fn response(view: &Clarification<'_>, document: &Document, said: Vec<HunkAnswer>) -> ClarificationResponse {
    let is_whole = said
        .iter()
        .all(|it| it.accepted && it.new_string.is_none() && it.comment.is_none());
    let option = if is_whole { "allow_once" } else { "reject_once" };
    let question = view.questions.first();
    let offered = question.is_some_and(|it| it.options.iter().any(|it| it.id == option));
    let words = (!is_whole).then(|| words(&said));
    let answer = question.map(|it| QuestionAnswer {
        question_id: it.id.to_owned(),
        selected_option_ids: if offered { vec![option.to_owned()] } else { Vec::new() },
        free_text: words,
        hunks: said,
    });
    ClarificationResponse::new(document.id.clone(), Outcome::Answered, answer.into_iter().collect())
}

/// The answer as a sentence, for a reader that knows no hunks.
fn words(said: &[HunkAnswer]) -> String {
    let numbers = |wants: bool| {
        let all = said.iter().filter(|it| it.accepted == wants);
        all.map(|it| it.index.to_string()).collect::<Vec<_>>()
    };
    let mut text = match numbers(true).as_slice() {
        [] => "none of it".to_owned(),
        some if some.len() == said.len() => "all of it, changed".to_owned(),
        some => format!("only hunk {} of {}", some.join(", "), said.len()),
    };
    for it in said {
        if let Some(comment) = &it.comment {
            text.push_str(&format!("; hunk {}: {comment}", it.index));
        }
        if let Some(written) = it.new_string.as_ref().filter(|_| it.accepted) {
            text.push_str(&format!("; hunk {} is to be:\n{written}", it.index));
        }
    }
    text
}
