//! The question what becomes of protected files that were put aside because sheaf was killed while a command ran.
//!
//! They act nowhere until the user has said so. Not to answer leaves them aside, where nothing removes them.

use serde_json::{Map, Value, json};

use crate::{
    agent::tags::name,
    protocol::{
        ASIDE, ClarificationResponse, DocumentId, DocumentStart, Done, Event, FinishReason, Kind, Message, Outcome,
        ResponseStart, Status,
    },
    sandbox::{LeftBehind, LeftFile, LeftNote, Workspace},
    t,
};

/// Files that are listed by name.
const MOST_NAMED: usize = 24;
/// The question's own names.
const QUESTION: &str = "left_files";
const LEAVE: &str = "leave";
const BACK: &str = "put_back";

/// The question, while it is open.
#[derive(Debug)]
pub struct QuarantinePage {
    files: Vec<LeftFile>,
    document: DocumentId,
    questions: Value,
}

impl QuarantinePage {
    /// The question about the files that were put aside, as events that open it.
    pub fn open(left: LeftBehind) -> (Self, Vec<Event>) {
        let notes = notes(&left, |path| format!("`{}`", plain(path)));
        let page = Self {
            document: DocumentId::numbered(2),
            questions: questions(),
            files: left.aside,
        };
        let mut text = format!("**{}.** {}\n{}", t!("left-killed"), t!("left-aside"), list(&page.files));
        if !notes.is_empty() {
            text.push_str(&format!("\n\n{}\n", t!("left-as-it-is")));
            text.extend(notes.iter().map(|it| format!("\n- {it}")));
        }
        let events = open_question(&page.document, &text, &page.questions);
        (page, events)
    }

    /// The message that opens a turn for the question in a conversation that has begun.
    pub fn message() -> Event {
        let mut message = Message::user(t!("left-message"));
        message.extra.insert(ASIDE.to_owned(), true.into());
        Event::UserMessage(message)
    }

    /// Returns true if the question is this document.
    pub fn is(&self, document: &DocumentId) -> bool {
        self.document == *document
    }

    /// Carries out the answer; without one the files stay aside. Returns the events that close the question.
    pub fn close(self, response: Option<&ClarificationResponse>, workspace: &Workspace) -> Vec<Event> {
        let word = if response.is_some_and(is_back) {
            put_back(&self.files, workspace)
        } else {
            t!("left-stays-aside").to_owned()
        };
        close_question(&self.document, &self.questions, response, &word)
    }
}

/// Sentences about what was found, where nobody can be asked or there is nothing to ask about.
pub fn warning(left: &LeftBehind) -> String {
    let mut text = t!("left-killed").to_owned();
    if !left.aside.is_empty() {
        text.push_str(&format!("; {}", t!("left-killed-aside")));
        let aside = |it: &LeftFile| format!("\n{} → {}", it.shown, it.aside.display());
        text.extend(left.aside.iter().take(MOST_NAMED).map(aside));
        if let Some(more @ 1..) = left.aside.len().checked_sub(MOST_NAMED) {
            text.push_str(&format!("\n{}", t!("left-more", count = more)));
        }
    }
    let notes = notes(left, |path| format!("`{path}`"));
    text.extend(notes.iter().map(|it| format!("\n{it}")));
    text
}

/// A sentence for each finding about which nothing was done.
fn notes(left: &LeftBehind, quoted: impl Fn(&str) -> String) -> Vec<String> {
    let told = left.notes.iter().take(MOST_NAMED).map(|it| sentence(it, &quoted));
    let more = left.notes.len().saturating_sub(MOST_NAMED);
    told.chain((more > 0).then(|| t!("left-more", count = more))).collect()
}

/// A sentence without its end.
fn sentence(note: &LeftNote, quoted: impl Fn(&str) -> String) -> String {
    match note {
        LeftNote::TooLarge => t!("left-note-too-large").to_owned(),
        LeftNote::Cut => t!("left-note-cut").to_owned(),
        LeftNote::Unreadable => t!("left-note-unreadable").to_owned(),
        LeftNote::Gone { path } => t!("left-note-gone", path = quoted(path)),
        LeftNote::Stuck { path, why } => t!("left-note-stuck", path = quoted(path), why = why.as_str()),
        LeftNote::Repository { path } => t!("left-note-repository", path = quoted(path)),
        LeftNote::Later { path } => t!("left-note-later", path = quoted(path)),
        LeftNote::Unsure { path } => t!("left-note-unsure", path = quoted(path)),
        LeftNote::Packaged { path } => t!("left-note-packaged", path = quoted(path)),
    }
}

fn list(files: &[LeftFile]) -> String {
    let line = |it: &LeftFile| {
        let path = format!("`{}`", plain(&it.shown));
        let aside = format!("`{}`", plain(&it.aside.to_string_lossy()));
        let line = if it.is_changed {
            t!("left-file-changed", path = path, aside = aside)
        } else {
            t!("left-file-new", path = path, aside = aside)
        };
        format!("\n- {line}")
    };
    let mut text: String = files.iter().take(MOST_NAMED).map(line).collect();
    if let Some(more @ 1..) = files.len().checked_sub(MOST_NAMED) {
        text.push_str(&format!("\n- {}", t!("left-more", count = more)));
    }
    text
}

fn questions() -> Value {
    json!([{
        "id": QUESTION,
        "text": t!("left-question"),
        "allowFreeText": false,
        "options": [
            { "id": LEAVE, "label": t!("left-leave"), "description": t!("left-leave-about") },
            { "id": BACK, "label": t!("left-back"), "description": t!("left-back-about") },
        ],
    }])
}

fn is_back(response: &ClarificationResponse) -> bool {
    let answer = response.answers.iter().find(|it| it.question_id == QUESTION);
    let chosen = answer.map(|it| it.selected_option_ids.as_slice());
    matches!((&response.outcome, chosen), (Outcome::Answered, Some([one])) if one == BACK)
}

fn put_back(files: &[LeftFile], workspace: &Workspace) -> String {
    let failed: String = files
        .iter()
        .filter_map(|it| {
            let error = workspace.give_back(it).err()?;
            let path = format!("`{}`", plain(&it.shown));
            Some(format!(
                "\n- {}",
                t!("left-stuck", path = path, why = error.to_string())
            ))
        })
        .collect();
    if failed.is_empty() {
        t!("left-put-back").to_owned()
    } else {
        format!("{}\n{failed}", t!("left-put-back-but"))
    }
}

/// The events of an answer of the program's own: a text, and a question to the user that stays open. No model hears of it.
fn open_question(document: &DocumentId, text: &str, questions: &Value) -> Vec<Event> {
    let mut events = vec![Event::ResponseStart(ResponseStart::default())];
    events.extend(written(1, text));
    events.push(started(2, Kind::Clarification));
    events.push(Event::MetadataDelta {
        document: document.clone(),
        metadata: members([
            (ASIDE, true.into()),
            ("kind", "question".into()),
            ("questions", questions.clone()),
        ]),
        append: Vec::new(),
    });
    events
}

/// The events that close the question, and the answer, with a last word.
fn close_question(
    document: &DocumentId,
    questions: &Value,
    response: Option<&ClarificationResponse>,
    word: &str,
) -> Vec<Event> {
    let outcome = response.map_or(Outcome::Skipped, |it| it.outcome.clone());
    let answers = response.map(|it| it.answers.clone()).unwrap_or_default();
    let mut events = vec![Event::DocumentEnd {
        document: document.clone(),
        final_content: None,
        metadata: members([
            (ASIDE, true.into()),
            ("kind", "question".into()),
            ("questions", questions.clone()),
            ("outcome", json!(outcome)),
            ("answers", json!(answers)),
        ]),
    }];
    events.extend(written(3, word));
    events.push(Event::Done(Done {
        status: Some(Status::Completed),
        finish_reason: Some(FinishReason::Stop),
        ..Done::default()
    }));
    events
}

/// A path that cannot end the code it stands in, and shows what it is made of.
fn plain(path: &str) -> String {
    let path = name(path);
    crate::text::visible_line(&path).as_str().replace('`', "‹U+0060›")
}

fn started(number: u64, kind: Kind) -> Event {
    Event::DocumentStart(DocumentStart {
        id: DocumentId::numbered(number),
        kind,
        sequence: Some(number),
        content: None,
        metadata: members([(ASIDE, true.into())]),
    })
}

fn written(number: u64, text: &str) -> [Event; 2] {
    [
        started(number, Kind::Text),
        Event::DocumentEnd {
            document: DocumentId::numbered(number),
            final_content: Some(text.into()),
            metadata: members([(ASIDE, true.into()), ("format", "markdown".into())]),
        },
    ]
}

fn members<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locale;

    #[test]
    fn every_word_of_it_is_in_the_locale() {
        // A text that lacks its message shows the id.
        let path = || "x".to_owned();
        let notes = [
            LeftNote::TooLarge,
            LeftNote::Cut,
            LeftNote::Unreadable,
            LeftNote::Gone { path: path() },
            LeftNote::Stuck {
                path: path(),
                why: "full".to_owned(),
            },
            LeftNote::Repository { path: path() },
            LeftNote::Later { path: path() },
            LeftNote::Unsure { path: path() },
            LeftNote::Packaged { path: path() },
        ];
        let told: Vec<String> = notes
            .iter()
            .map(|it| sentence(it, |path| format!("`{path}`")))
            .collect();
        assert!(told.iter().all(|it| !it.contains("left-note")), "{told:?}");
        assert!(told.iter().skip(3).all(|it| it.contains("`x`")), "{told:?}");
        let left = LeftBehind {
            notes: notes.into(),
            ..LeftBehind::default()
        };
        assert!(warning(&left).starts_with(locale::text("left-killed")));
        assert!(warning(&left).contains(&told[0]));
    }
}
