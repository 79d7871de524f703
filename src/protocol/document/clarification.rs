//! `clarification`: questions for the user; an approval is one too.

use serde_json::{Map, Value, json};

use super::{
    Document, KindGroup, KindRow,
    MemberForm::{Any, Count, Flag, List, Object, Record, Text, Word},
    Need::{Always, Free, Placed},
    Shape, member,
    normal::rename,
};
use crate::{
    protocol::{ClarificationResponse, Kind, Outcome, QuestionAnswer, QuestionKind},
    text::Role,
};

#[derive(Clone, Debug, PartialEq)]
pub struct Clarification<'a> {
    /// The text that leads to the questions.
    pub content: &'a str,
    pub kind: QuestionKind,
    pub questions: Vec<Question<'a>>,
    /// For an approval: the planned action, a document without id and sequence.
    pub subject: Option<&'a Value>,
    pub tool_call_id: Option<&'a str>,
    /// `None` until somebody answers, skips or cancels it.
    pub outcome: Option<Outcome>,
    pub answers: Vec<QuestionAnswer>,
    /// Reason for a missing answer.
    pub reason: Option<&'a str>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Question<'a> {
    pub id: &'a str,
    pub text: &'a str,
    /// Empty: free text.
    pub options: Vec<QuestionOption<'a>>,
    pub allow_multiple: bool,
    pub allow_free_text: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct QuestionOption<'a> {
    pub id: &'a str,
    pub label: &'a str,
    pub description: Option<&'a str>,
}

impl<'a> Clarification<'a> {
    pub(super) fn read(it: &'a Document) -> Self {
        let members = &it.metadata;
        Self {
            content: it.text(),
            kind: member::text(members, "kind").map_or(QuestionKind::Question, QuestionKind::parse),
            questions: member::list(members, "questions")
                .iter()
                .filter_map(Value::as_object)
                .map(Question::read)
                .collect(),
            subject: members.get("subject").filter(|it| it.is_object()),
            tool_call_id: member::text(members, "toolCallId"),
            outcome: member::text(members, "outcome").map(Outcome::parse),
            answers: member::list(members, "answers")
                .iter()
                .filter_map(|it| serde_json::from_value(it.clone()).ok())
                .collect(),
            reason: member::text(members, "reason"),
        }
    }

    pub(super) fn plain_text(&self) -> String {
        let mut text = self.content.to_owned();
        for question in &self.questions {
            text.extend(["\n", question.text]);
            for option in &question.options {
                text.extend(["\n- ", option.label]);
            }
        }
        text.trim_start().to_owned()
    }

    /// Formats an answer with one line per question, for readers that see only the message.
    pub fn readable(&self, response: &ClarificationResponse) -> String {
        if response.outcome != Outcome::Answered {
            return response.reason.clone().unwrap_or_else(|| response.outcome.to_string());
        }
        let line = |answer: &QuestionAnswer| {
            let question = self.questions.iter().find(|it| it.id == answer.question_id);
            let label = |id: &String| {
                question
                    .and_then(|it| it.options.iter().find(|option| option.id == id))
                    .map_or_else(|| id.clone(), |option| option.label.to_owned())
            };
            let mut said: Vec<_> = answer.selected_option_ids.iter().map(label).collect();
            said.extend(answer.free_text.iter().map(|it| format!("other: {it}")));
            let text = question.map_or(answer.question_id.as_str(), |it| it.text);
            format!("{text} -> {}", said.join(", "))
        };
        response.answers.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl<'a> Question<'a> {
    fn read(members: &'a Map<String, Value>) -> Self {
        let options = member::list(members, "options")
            .iter()
            .filter_map(Value::as_object)
            .map(QuestionOption::read);
        Self {
            id: member::text(members, "id").unwrap_or_default(),
            text: member::text(members, "text").unwrap_or_default(),
            options: options.collect(),
            allow_multiple: member::boolean(members, "allowMultiple").unwrap_or(false),
            allow_free_text: member::boolean(members, "allowFreeText").unwrap_or(true),
        }
    }
}

impl<'a> QuestionOption<'a> {
    fn read(members: &'a Map<String, Value>) -> Self {
        let id = member::text(members, "id").unwrap_or_default();
        Self {
            id,
            label: member::text(members, "label").unwrap_or(id),
            description: member::text(members, "description"),
        }
    }
}

/// A question, as a member.
pub static QUESTION: Shape = Shape {
    name: "Question",
    about: "A question for the user.",
    members: &[
        ("id", Text, Always, "unique in the document"),
        ("text", Text, Always, "the question"),
        (
            "options",
            List(&Object(&OPTION)),
            Always,
            "answers to choose from; an empty list asks for free text",
        ),
        (
            "allowMultiple",
            Flag,
            Free,
            "true if several options may be chosen; absent means false",
        ),
        (
            "allowFreeText",
            Flag,
            Free,
            "true if the user may write an answer instead; absent means true",
        ),
    ],
};

static OPTION: Shape = Shape {
    name: "QuestionOption",
    about: "An answer to choose.",
    members: &[
        (
            "id",
            Text,
            Always,
            "unique in the question; of an approval `allow_once`, `allow_session`, `allow_always`, `reject_once` or `reject_always`",
        ),
        ("label", Text, Always, "the answer in words"),
        ("description", Text, Free, "more about it"),
    ],
};

static SUBJECT: Shape = Shape {
    name: "Subject",
    about: "A planned action: a document without id and sequence.",
    members: &[
        (
            "type",
            Word(Kind::KNOWN),
            Always,
            "type of the document that the action would be",
        ),
        ("content", Any, Placed, "its content; null if it has none"),
        (
            "metadata",
            Record(&Any),
            Placed,
            "its metadata; a `file_edit` may have `hunks`, which can be accepted one by one",
        ),
    ],
};

/// An answer to a question, as a member.
pub static ANSWER: Shape = Shape {
    name: "Answer",
    about: "An answer to one question.",
    members: &[
        ("questionId", Text, Always, "id of the question"),
        (
            "selectedOptionIds",
            List(&Text),
            Always,
            "ids of the chosen options; empty if the answer is free text",
        ),
        (
            "freeText",
            Text,
            Free,
            "answer in the user's words; with a rejection the reason",
        ),
        (
            "hunks",
            List(&Object(&HUNK_ANSWER)),
            Free,
            "decisions on the hunks of a change; a hunk without one is not written",
        ),
    ],
};

static HUNK_ANSWER: Shape = Shape {
    name: "HunkAnswer",
    about: "The user's decision on one hunk of a change that needs approval.",
    members: &[
        ("index", Count(0), Always, "number of the hunk, counted from 1"),
        ("accepted", Flag, Always, "true if the hunk is to be written"),
        ("newString", Text, Free, "text to write instead of the proposed one"),
        ("comment", Text, Free, "comment for the model"),
    ],
};

/// The row of the kind `clarification`: its members, and how it is normalised and shown.
pub(super) static ROW: KindRow = KindRow {
    aliases: &["question"],
    members: &[
        ("questions", List(&Object(&QUESTION)), Always, "questions, at least one"),
        (
            "kind",
            Word(QuestionKind::KNOWN),
            Free,
            "absent means `question`; an `approval` asks whether an action may be carried out",
        ),
        (
            "outcome",
            Word(Outcome::KNOWN),
            Free,
            "present when the questions were dealt with",
        ),
        ("answers", List(&Object(&ANSWER)), Free, "answers that were given"),
        ("subject", Object(&SUBJECT), Free, "planned action of an approval"),
        ("toolCallId", Text, Free, "call that waits for the answer"),
        ("reason", Text, Free, "reason for a missing answer"),
    ],
    group: KindGroup::Page,
    label: "plain-kind-question",
    sign: ("?", Role::Waiting),
    normalise: settle_questions,
    fill: |metadata, _| {
        member::default(metadata, "questions", Vec::<Value>::new());
        settle_questions(metadata);
    },
    ..KindRow::DEFAULT
};

/// Gives questions ids and turns plain strings into options; done on arrival, so that an open form can be answered.
fn settle_questions(metadata: &mut Map<String, Value>) {
    let Some(Value::Array(questions)) = metadata.get_mut("questions") else {
        return;
    };
    for (at, question) in questions.iter_mut().enumerate() {
        if let Value::String(text) = question {
            *question = json!({ "text": std::mem::take(text) });
        }
        let Value::Object(members) = question else { continue };
        for alias in ["prompt", "question"] {
            rename(members, alias, "text");
        }
        member::default(members, "text", "");
        member::coerce(members, &["id", "text"], &[], &["allowMultiple", "allowFreeText"]);
        member::default(members, "id", format!("q{}", at + 1));
        member::default(members, "options", Vec::<Value>::new());
        let Some(Value::Array(options)) = members.get_mut("options") else {
            continue;
        };
        for option in options.iter_mut() {
            match option {
                Value::String(label) => *option = json!({ "id": label.clone(), "label": std::mem::take(label) }),
                Value::Object(members) => {
                    member::coerce(members, &["id", "label", "description"], &[], &[]);
                    let label = member::text(members, "label").unwrap_or_default().to_owned();
                    member::default(members, "id", label);
                    let id = member::text(members, "id").unwrap_or_default().to_owned();
                    member::default(members, "label", id);
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                    let label = option.to_string();
                    *option = json!({ "id": label.clone(), "label": label });
                }
            }
        }
    }
}
