//! `ask`: questions for the user, in one form.

use serde_json::{Map, Value, json};

use super::tool::{Class, Fault, Input, Part, Tool, Work, names, schema};
use crate::protocol::{CallSubject, QuestionAnswer};

/// The description that a model is shown.
const ABOUT: &str = "\
    Ask the user one to six questions in one form, when the answer changes what you do and you cannot find it \
    out yourself. Offer short options that exclude each other; the user can always write something else. Ask \
    everything that you need at once.";

/// The tool `ask`.
pub fn tool() -> Tool {
    Tool {
        aliases: names(["AskQuestion", "ask_question", "AskUserQuestion"]),
        about: ABOUT.into(),
        schema: schema(
            json!({
                "title": { "type": "string", "description": "One line that leads to the questions" },
                "questions": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "id": { "type": "string" },
                            "prompt": { "type": "string" },
                            "options": {
                                "type": "array",
                                "items": {
                                    "type": "object",
                                    "properties": { "id": { "type": "string" }, "label": { "type": "string" } },
                                    "required": ["id", "label"]
                                }
                            },
                            "allow_multiple": { "type": "boolean" }
                        },
                        "required": ["id", "prompt", "options"]
                    }
                }
            }),
            &["questions"],
        ),
        word: "ask".into(),
        subject: CallSubject::Other,
        is_basic: true,
        examples: &[r#"{ "title": "t", "questions": [{ "id": "q", "prompt": "p",
                 "options": [{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }] }] }"#],
        ..Tool::new("ask", Class::Talks, Work::Turn(Part::Ask))
    }
}

const MOST_QUESTIONS: usize = 6;
const MOST_OPTIONS: usize = 8;

/// A form of questions.
#[derive(Clone, Debug, PartialEq)]
pub struct QuestionForm {
    pub title: String,
    pub questions: Vec<FormQuestion>,
}

/// A question of the form.
#[derive(Clone, Debug, PartialEq)]
pub struct FormQuestion {
    pub id: String,
    pub text: String,
    /// Id, label and what else there is to say; none: free text.
    pub options: Vec<(String, String, Option<String>)>,
    pub allow_multiple: bool,
}

/// The form that a model means. Ids that it left out are made up; what is too much is an error, not cut.
pub fn read(input: &Input) -> Result<QuestionForm, Fault> {
    let wrong = |message: String| {
        Fault::arguments(message)
            .hint("`questions` is a list of { id, prompt, options: [{ id, label }], allow_multiple }.")
    };
    let text = |object: &Map<String, Value>, names: &[&str]| {
        let found = names.iter().find_map(|it| object.get(*it)).and_then(Value::as_str);
        found.map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned)
    };
    let list = input
        .0
        .get("questions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    if list.is_empty() || list.len() > MOST_QUESTIONS {
        return Err(wrong(format!(
            "there are {} questions; ask 1 to {MOST_QUESTIONS}",
            list.len()
        )));
    }
    let mut questions: Vec<FormQuestion> = Vec::new();
    for (at, item) in list.iter().enumerate() {
        let object = match item {
            Value::Object(object) => object.clone(),
            Value::String(text) => Map::from_iter([("prompt".to_owned(), text.clone().into())]),
            _ => return Err(wrong(format!("question {} is no object", at + 1))),
        };
        let Some(prompt) = text(&object, &["prompt", "text", "question"]) else {
            return Err(wrong(format!("question {} has no `prompt`", at + 1)));
        };
        let given = object
            .get("options")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        if given.len() > MOST_OPTIONS {
            return Err(wrong(format!(
                "question {} has {} options; give at most {MOST_OPTIONS}",
                at + 1,
                given.len()
            )));
        }
        let mut options: Vec<(String, String, Option<String>)> = Vec::new();
        for (nth, option) in given.iter().enumerate() {
            let (id, label, about) = match option {
                Value::String(label) => (Some(label.clone()), Some(label.clone()), None),
                Value::Object(option) => {
                    let label = text(option, &["label", "text", "name", "value"]);
                    (text(option, &["id", "value"]), label, text(option, &["description"]))
                }
                _ => (None, None, None),
            };
            let Some(label) = label.or_else(|| id.clone()) else {
                return Err(wrong(format!(
                    "option {} of question {} has no `label`",
                    nth + 1,
                    at + 1
                )));
            };
            let id = id.filter(|id| options.iter().all(|(it, ..)| it != id));
            options.push((id.unwrap_or_else(|| format!("o{}", nth + 1)), label, about));
        }
        let id = text(&object, &["id"]).filter(|id| questions.iter().all(|it| it.id != *id));
        questions.push(FormQuestion {
            id: id.unwrap_or_else(|| format!("q{}", at + 1)),
            text: prompt,
            options,
            allow_multiple: ["allow_multiple", "allowMultiple", "multiSelect"]
                .iter()
                .any(|it| object.get(*it).and_then(Value::as_bool).unwrap_or_default()),
        });
    }
    Ok(QuestionForm {
        title: input.text("title").unwrap_or_default().trim().to_owned(),
        questions,
    })
}

impl QuestionForm {
    /// As the document of kind `clarification` holds them.
    pub fn questions(&self) -> Value {
        let questions = self.questions.iter().map(|it| {
            let options: Vec<Value> = it
                .options
                .iter()
                .map(|(id, label, about)| match about {
                    Some(about) => json!({ "id": id, "label": label, "description": about }),
                    None => json!({ "id": id, "label": label }),
                })
                .collect();
            let mut question = json!({ "id": it.id, "text": it.text, "options": options });
            if it.allow_multiple {
                question["allowMultiple"] = true.into();
            }
            question
        });
        questions.collect()
    }

    /// The answers for the model: a line for each question, with labels.
    pub fn answered(&self, answers: &[QuestionAnswer]) -> String {
        let lines = self.questions.iter().map(|question| {
            let answer = answers.iter().find(|it| it.question_id == question.id);
            let label = |id: &String| {
                let option = question.options.iter().find(|(it, ..)| it == id);
                option.map_or_else(|| id.clone(), |(_, label, _)| label.clone())
            };
            let mut said: Vec<String> = answer
                .into_iter()
                .flat_map(|it| it.selected_option_ids.iter().map(label))
                .collect();
            said.extend(
                answer
                    .and_then(|it| it.free_text.clone())
                    .filter(|it| !it.trim().is_empty()),
            );
            if said.is_empty() {
                said.push("(no answer: decide yourself)".to_owned());
            }
            format!("{} -> {}", question.text, said.join(", "))
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn form(value: Value) -> Result<QuestionForm, Fault> {
        read(&Input(value.as_object().cloned().unwrap_or_default()))
    }

    #[test]
    fn forms_of_other_makers_are_understood() {
        let claude = json!({ "questions": [{
            "question": "Which database?", "header": "Storage", "multiSelect": true,
            "options": [{ "label": "Postgres", "description": "a server" }, { "label": "SQLite" }],
        }] });
        let cursor = json!({ "title": "Storage", "questions": [{
            "id": "db", "prompt": "Which database?", "options": [{ "id": "pg", "label": "Postgres" }],
        }] });
        let plain = json!({ "questions": ["Which database?"] });
        let option =
            |id: &str, label: &str, about: Option<&str>| (id.to_owned(), label.to_owned(), about.map(str::to_owned));
        let question = |id: &str, options: Vec<_>, allow_multiple| FormQuestion {
            id: id.to_owned(),
            text: "Which database?".to_owned(),
            options,
            allow_multiple,
        };
        let options = vec![option("o1", "Postgres", Some("a server")), option("o2", "SQLite", None)];
        let cases = [
            (claude, "", question("q1", options, true)),
            (
                cursor,
                "Storage",
                question("db", vec![option("pg", "Postgres", None)], false),
            ),
            (plain, "", question("q1", Vec::new(), false)),
        ];
        for (value, title, want) in cases {
            let form = form(value).expect("a form");
            assert_eq!((form.title.as_str(), form.questions), (title, vec![want]));
        }
    }

    #[test]
    fn what_cannot_be_asked_is_said() {
        let many = |count: usize| json!({ "questions": vec!["a?"; count] });
        let options: Vec<String> = (0..9).map(|it| it.to_string()).collect();
        let cases = [
            (json!({}), "there are 0 questions; ask 1 to 6"),
            (many(7), "there are 7 questions; ask 1 to 6"),
            (json!({ "questions": [{ "id": "a" }] }), "question 1 has no `prompt`"),
            (json!({ "questions": ["a?", 5] }), "question 2 is no object"),
            (
                json!({ "questions": [{ "prompt": "a?", "options": options }] }),
                "question 1 has 9 options; give at most 8",
            ),
            (
                json!({ "questions": [{ "prompt": "a?", "options": [{}] }] }),
                "option 1 of question 1 has no `label`",
            ),
        ];
        for (value, want) in cases {
            assert_eq!(form(value).expect_err(want).message, want);
        }
    }

    #[test]
    fn the_model_reads_labels() {
        let form = form(json!({ "questions": [
            { "id": "a", "prompt": "Which?", "options": [{ "id": "1", "label": "One" }, { "id": "2", "label": "Two" }] },
            { "id": "b", "prompt": "Where?", "options": [] },
            { "id": "c", "prompt": "When?", "options": [] },
        ] }))
        .expect("a form");
        let answer = |id: &str, chosen: &[&str], text: Option<&str>| QuestionAnswer {
            question_id: id.to_owned(),
            selected_option_ids: chosen.iter().map(|&it| it.to_owned()).collect(),
            free_text: text.map(str::to_owned),
            hunks: Vec::new(),
        };
        assert_eq!(
            form.answered(&[answer("a", &["2", "1"], None), answer("b", &[], Some("here"))]),
            "Which? -> Two, One\nWhere? -> here\nWhen? -> (no answer: decide yourself)"
        );
    }
}
