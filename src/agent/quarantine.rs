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
    sandbox::{LeftFile, Workspace},
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
    /// The question about these files, as events that open it.
    pub fn open(files: Vec<LeftFile>) -> (Self, Vec<Event>) {
        let page = Self {
            document: DocumentId::numbered(2),
            questions: questions(),
            files,
        };
        let text = format!(
            "**sheaf was killed while a command ran.** These protected files are new or changed since. They were moved \
             aside, so that nothing uses them:\n{}",
            list(&page.files)
        );
        let events = open_question(&page.document, &text, &page.questions);
        (page, events)
    }

    /// The message that opens a turn for the question in a conversation that has begun.
    pub fn message() -> Event {
        let mut message = Message::user("protected files");
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
            "Left aside. Nothing removes them.".to_owned()
        };
        close_question(&self.document, &self.questions, response, &word)
    }
}

/// A sentence about the files, for a program without anybody to ask.
pub fn warning(files: &[LeftFile]) -> String {
    let aside = |it: &LeftFile| format!("\n{} → {}", it.shown, it.aside.display());
    let listed: String = files.iter().take(MOST_NAMED).map(aside).collect();
    let more = files.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 {
        format!("\nand {more} more")
    } else {
        String::new()
    };
    format!(
        "sheaf was killed while a command ran; protected files that are new or changed since were moved aside:{listed}{more}"
    )
}

fn list(files: &[LeftFile]) -> String {
    let line = |it: &LeftFile| {
        let what = if it.is_changed { "changed" } else { "new" };
        format!(
            "\n- `{}` ({what}), now `{}`",
            plain(&it.shown),
            plain(&it.aside.to_string_lossy())
        )
    };
    let mut text: String = files.iter().take(MOST_NAMED).map(line).collect();
    if let Some(more @ 1..) = files.len().checked_sub(MOST_NAMED) {
        text.push_str(&format!("\n- and {more} more"));
    }
    text
}

fn questions() -> Value {
    json!([{
        "id": QUESTION,
        "text": "Put these files back?",
        "allowFreeText": false,
        "options": [
            { "id": LEAVE, "label": "Leave them aside", "description": "default" },
            { "id": BACK, "label": "Put them back", "description": "if you made them yourself" },
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
            Some(format!("\n- `{}` stays aside: {error}", plain(&it.shown)))
        })
        .collect();
    if failed.is_empty() {
        "Put back.".to_owned()
    } else {
        format!("Put back, but:\n{failed}")
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
