//! A server's question for the user (elicitation): its form as questions, and the answers as its schema wants them.

use serde_json::{Map, Value, json};

use super::{content::capped, host::Ask};
use crate::{protocol::QuestionAnswer, text::Sanitized};

/// Fields of one form.
const MOST_FIELDS: usize = 24;
/// Values that one field offers.
const MOST_VALUES: usize = 24;
/// Bytes of the message.
const MESSAGE_BYTES: usize = 1000;
/// Ids of the options that stand for the default of a field, and for no value.
const DEFAULT: &str = "sheaf:default";
const NOTHING: &str = "sheaf:nothing";
/// Words that name what a form must not ask for.
const SECRETS: [&str; 7] = [
    "password",
    "passphrase",
    "secret",
    "api key",
    "api_key",
    "apikey",
    "token",
];

/// A question of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// The server's name and its message, harmless.
    pub lead: String,
    fields: Vec<Field>,
    /// The address that it wants to be opened instead.
    pub url: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
struct Field {
    name: String,
    text: String,
    kind: Kind,
    /// Values and their labels; empty: free text.
    values: Vec<(String, String)>,
    default: Option<Value>,
    is_required: bool,
    bounds: Bounds,
    /// The `format` of a text; empty: any.
    format: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Integer,
    Flag,
    /// Some of the values.
    Several,
}

/// Limits of a value: of a number, of the length of a text, or of the number of values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Bounds {
    least: Option<f64>,
    most: Option<f64>,
}

/// Reads a question. Error: why it is not shown.
pub fn read(ask: &Ask) -> Result<Form, String> {
    let text = |name: &str| ask.params.get(name).and_then(Value::as_str);
    let message = capped(
        Sanitized::new(text("message").unwrap_or_default()).as_str(),
        MESSAGE_BYTES,
    );
    let lead = format!("MCP server {} asks: {message}", ask.server);
    if text("mode") == Some("url") {
        let url = text("url").and_then(|it| url::Url::parse(it).ok());
        let is_web = |it: &url::Url| {
            matches!(it.scheme(), "https" | "http") && it.host_str().is_some() && it.username().is_empty()
        };
        let url = url.filter(is_web).ok_or("its address is none of the web")?;
        return Ok(Form {
            lead,
            fields: Vec::new(),
            url: Some(url.into()),
        });
    }
    let schema = ask.params.get("requestedSchema");
    let properties = schema.and_then(|it| it.get("properties")).and_then(Value::as_object);
    let required = schema.and_then(|it| it.get("required")).and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|it| it.iter().any(|it| it == name));
    let mut fields = Vec::new();
    for (name, property) in properties.into_iter().flatten() {
        if fields.len() >= MOST_FIELDS {
            return Err(format!("it has more than {MOST_FIELDS} fields"));
        }
        let field = field(name, property, is_required(name))?;
        // What is typed freely answers the message, too.
        let asked = if field.values.is_empty() { message.as_str() } else { "" };
        let said = format!("{name} {} {asked}", field.text).to_lowercase();
        if field.kind == Kind::Text && SECRETS.iter().any(|it| said.contains(it)) {
            return Err(format!(
                "it asks for a secret (`{}`)",
                capped(Sanitized::line(name).as_str(), 40)
            ));
        }
        fields.push(field);
    }
    Ok(Form {
        lead,
        fields,
        url: None,
    })
}

fn field(name: &str, schema: &Value, is_required: bool) -> Result<Field, String> {
    let text = |member: &str| schema.get(member).and_then(Value::as_str).unwrap_or_default();
    let shown = |it: &str| capped(Sanitized::line(it).as_str(), 200);
    let mut values = values(schema);
    let kind = match text("type") {
        "array" => {
            values = schema.get("items").map(self::values).unwrap_or_default();
            Kind::Several
        }
        "boolean" => {
            values = vec![
                ("true".to_owned(), "Yes".to_owned()),
                ("false".to_owned(), "No".to_owned()),
            ];
            Kind::Flag
        }
        "number" => Kind::Number,
        "integer" => Kind::Integer,
        "string" | "" => Kind::Text,
        other => return Err(format!("a field has the type `{}`", shown(other))),
    };
    if values.len() > MOST_VALUES || kind == Kind::Several && values.is_empty() {
        return Err("a field offers too many values, or none".to_owned());
    }
    let number = |names: [&str; 3]| names.into_iter().find_map(|it| schema.get(it)).and_then(Value::as_f64);
    let default = schema.get("default").filter(|it| !it.is_null()).cloned();
    let mut asked = match text("title") {
        "" => shown(name),
        title => shown(title),
    };
    let about = shown(text("description"));
    if !about.is_empty() {
        asked = format!("{asked}: {about}");
    }
    if let Some(default) = &default {
        let default = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
        asked = format!("{asked} (default: {})", shown(&default));
    } else if !is_required {
        asked.push_str(" (optional)");
    }
    Ok(Field {
        name: name.to_owned(),
        text: asked,
        kind,
        values,
        default,
        is_required,
        bounds: Bounds {
            least: number(["minimum", "minLength", "minItems"]),
            most: number(["maximum", "maxLength", "maxItems"]),
        },
        format: text("format").to_owned(),
    })
}

/// The values of an enumeration in any of the forms that servers use, with labels.
fn values(schema: &Value) -> Vec<(String, String)> {
    let label = |it: &str| capped(Sanitized::line(it).as_str(), 100);
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let names = schema.get("enumNames").and_then(Value::as_array);
        let name = |at: usize| names.and_then(|it| it.get(at)).and_then(Value::as_str);
        let texts = values
            .iter()
            .enumerate()
            .filter_map(|(at, it)| Some((at, it.as_str()?)));
        return texts
            .map(|(at, it)| (it.to_owned(), label(name(at).unwrap_or(it))))
            .collect();
    }
    let forms = schema
        .get("oneOf")
        .or_else(|| schema.get("anyOf"))
        .and_then(Value::as_array);
    let value = |it: &Value| {
        let value = it.get("const").and_then(Value::as_str)?;
        let title = it.get("title").and_then(Value::as_str).unwrap_or(value);
        Some((value.to_owned(), label(title)))
    };
    forms.into_iter().flatten().filter_map(value).collect()
}

impl Form {
    /// The questions, as a document of kind `clarification` has them.
    pub fn questions(&self) -> Value {
        if let Some(url) = &self.url {
            let host = url::Url::parse(url)
                .ok()
                .and_then(|it| it.host_str().map(str::to_owned));
            let text = format!(
                "Open {} in the browser? The address is {}",
                host.unwrap_or_default(),
                Sanitized::line(url).as_str()
            );
            return json!([{
                "id": "open",
                "text": text,
                "options": [{ "id": "no", "label": "Do not open it" }, { "id": "yes", "label": "Open it" }],
            }]);
        }
        let question = |it: &Field| {
            let options: Vec<Value> = it
                .values
                .iter()
                .map(|(id, label)| json!({ "id": id, "label": label }))
                .collect();
            let options: Vec<Value> = options.into_iter().chain(it.way_out()).collect();
            let mut question = json!({ "id": it.name, "text": it.text, "options": options });
            if it.kind == Kind::Several {
                question["allowMultiple"] = true.into();
            }
            if it.values.is_empty() {
                question["allowFreeText"] = true.into();
            }
            question
        };
        if self.fields.is_empty() {
            return json!([{
                "id": "go_on",
                "text": "Go on?",
                "options": [{ "id": "yes", "label": "Yes" }, { "id": "no", "label": "No" }],
            }]);
        }
        self.fields.iter().map(question).collect()
    }

    /// The same questions, without those that have another name.
    pub fn questions_of(&self, names: &[String]) -> Value {
        let mut questions = self.questions();
        if let Value::Array(all) = &mut questions {
            all.retain(|it| names.iter().any(|name| it["id"] == name.as_str()));
        }
        questions
    }

    /// The answers as the server wants them. Error: the name of each field whose answer does not fit, and the reason for the
    /// user.
    pub fn answered(&self, answers: &[QuestionAnswer]) -> Result<Value, Vec<(String, String)>> {
        let chosen = |id: &str| {
            let answer = answers.iter().find(|it| it.question_id == id);
            let options = answer.map(|it| it.selected_option_ids.clone()).unwrap_or_default();
            let text = answer
                .and_then(|it| it.free_text.clone())
                .filter(|it| !it.trim().is_empty());
            (options, text)
        };
        if self.url.is_some() || self.fields.is_empty() {
            let id = if self.url.is_some() { "open" } else { "go_on" };
            let is_yes = chosen(id).0.first().is_some_and(|it| it == "yes");
            return Ok(if is_yes {
                json!({ "action": "accept", "content": {} })
            } else {
                json!({ "action": "decline" })
            });
        }
        let (mut content, mut unfit) = (Map::new(), Vec::new());
        for field in &self.fields {
            let (options, text) = chosen(&field.name);
            match field.value(options, text) {
                Ok(Some(value)) => drop(content.insert(field.name.clone(), value)),
                Ok(None) => {}
                Err(why) => unfit.push((field.name.clone(), why)),
            }
        }
        if unfit.is_empty() {
            Ok(json!({ "action": "accept", "content": content }))
        } else {
            Err(unfit)
        }
    }
}

impl Field {
    /// The option for whoever wants to give no value of their own; none where one is needed.
    fn way_out(&self) -> Option<Value> {
        if self.kind == Kind::Several {
            return None;
        }
        match &self.default {
            Some(_) => Some(json!({ "id": DEFAULT, "label": "Use the default" })),
            None if self.is_required => None,
            None => Some(json!({ "id": NOTHING, "label": "Leave it out" })),
        }
    }

    fn value(&self, options: Vec<String>, text: Option<String>) -> Result<Option<Value>, String> {
        let wrong = |why: String| format!("{}: {why}", self.text);
        let is_out = options.first().is_some_and(|it| it == DEFAULT || it == NOTHING);
        if is_out || options.is_empty() && text.is_none() {
            return match &self.default {
                Some(default) => Ok(Some(default.clone())),
                None if self.is_required => Err(wrong("an answer is needed".to_owned())),
                None => Ok(None),
            };
        }
        let said = options.first().cloned().or(text).unwrap_or_default();
        let (value, size) = match self.kind {
            Kind::Text => {
                if !self.values.is_empty() && !self.values.iter().any(|it| it.0 == said) {
                    return Err(wrong("choose one of the values".to_owned()));
                }
                if let Some(why) = misformed(&self.format, &said) {
                    return Err(wrong(why.to_owned()));
                }
                let size = if self.values.is_empty() {
                    Some(said.chars().count() as f64)
                } else {
                    None
                };
                (Value::from(said), size)
            }
            Kind::Flag => (Value::from(said == "true"), None),
            Kind::Integer => {
                let number: i64 = said
                    .trim()
                    .parse()
                    .map_err(|_| wrong("it must be a whole number".to_owned()))?;
                (Value::from(number), Some(number as f64))
            }
            Kind::Number => {
                let number = said.trim().parse().ok().filter(|it: &f64| it.is_finite());
                let number = number.ok_or_else(|| wrong("it must be a number".to_owned()))?;
                (json!(number), Some(number))
            }
            Kind::Several => {
                let known = options
                    .into_iter()
                    .filter(|it| self.values.iter().any(|value| value.0 == *it));
                let chosen: Vec<Value> = known.map(Value::from).collect();
                let count = chosen.len() as f64;
                (Value::from(chosen), Some(count))
            }
        };
        if let Some(size) = size {
            let (verb, noun) = match self.kind {
                Kind::Text => ("it must have", " characters"),
                Kind::Several => ("choose", ""),
                Kind::Number | Kind::Integer | Kind::Flag => ("it must be", ""),
            };
            if let Some(least) = self.bounds.least.filter(|it| size < *it) {
                return Err(wrong(format!("{verb} at least {least}{noun}")));
            }
            if let Some(most) = self.bounds.most.filter(|it| size > *it) {
                return Err(wrong(format!("{verb} at most {most}{noun}")));
            }
        }
        Ok(Some(value))
    }
}

/// The reason why a text is not of a format; `None`: it is, or the format is not known.
fn misformed(format: &str, text: &str) -> Option<&'static str> {
    let text = text.trim();
    let digits = |it: &str, count: usize| it.len() == count && it.bytes().all(|it| it.is_ascii_digit());
    let is_date = |it: &str| {
        let parts: Vec<&str> = it.split('-').collect();
        matches!(parts[..], [year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2)
            && (1..=12).contains(&month.parse().unwrap_or(0)) && (1..=31).contains(&day.parse().unwrap_or(0)))
    };
    let is_time = |it: &str| {
        let clock = it.split(['Z', '+', '-', '.', 'z']).next().unwrap_or_default();
        let parts: Vec<&str> = clock.split(':').collect();
        matches!(parts[..], [hour, minute, second] if [hour, minute, second].iter().all(|it| digits(it, 2)))
    };
    let (is_fine, why) = match format {
        "email" => (
            text.split_once('@').is_some_and(|(name, host)| {
                !name.is_empty() && host.len() > 2 && !host.contains('@') && !text.contains(char::is_whitespace)
            }),
            "write an e-mail address, such as kim@example.org",
        ),
        "uri" => (
            url::Url::parse(text).is_ok(),
            "write an address, such as https://example.org",
        ),
        "date" => (is_date(text), "write a date, such as 2026-03-31"),
        "date-time" => (
            text.split_once(['T', 't', ' '])
                .is_some_and(|(date, time)| is_date(date) && is_time(time)),
            "write a date and a time, such as 2026-03-31T12:30:00Z",
        ),
        _ => (true, ""),
    };
    (!is_fine).then_some(why)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn ask(params: Value) -> Ask {
        Ask {
            server: "tickets".to_owned(),
            params,
        }
    }

    fn form(properties: Value, required: &[&str]) -> Result<Form, String> {
        read(&ask(
            json!({ "message": "Please", "requestedSchema": { "properties": properties, "required": required } }),
        ))
    }

    fn answer(id: &str, chosen: &[&str], text: Option<&str>) -> QuestionAnswer {
        QuestionAnswer {
            question_id: id.to_owned(),
            selected_option_ids: chosen.iter().map(|it| (*it).to_owned()).collect(),
            free_text: text.map(str::to_owned),
            hunks: Vec::new(),
        }
    }

    #[test]
    fn a_form_becomes_questions_and_its_answers_values() {
        let form = form(
            json!({
                "name": { "type": "string", "title": "Name\u{1b}[2J", "minLength": 2 },
                "age": { "type": "integer", "minimum": 0, "maximum": 150 },
                "share": { "type": "number", "default": 0.5 },
                "ok": { "type": "boolean" },
                "size": { "type": "string", "enum": ["s", "m"], "enumNames": ["Small", "Medium"] },
                "tags": { "type": "array", "items": { "anyOf": [{ "const": "a", "title": "A" }, { "const": "b" }] }, "maxItems": 1 },
            }),
            &["name"],
        )
        .expect("a form");
        assert_eq!(form.lead, "MCP server tickets asks: Please");
        let questions = form.questions();
        assert_eq!(
            questions[0],
            json!({ "id": "name", "text": "Name", "options": [], "allowFreeText": true })
        );
        assert_eq!(questions[2]["text"], "share (default: 0.5)");
        assert_eq!(questions[4]["options"][1], json!({ "id": "m", "label": "Medium" }));
        assert_eq!(questions[5]["allowMultiple"], true);
        let all = [
            answer("name", &[], Some("Kim")),
            answer("age", &[], Some(" 42 ")),
            answer("ok", &["false"], None),
            answer("size", &["m"], None),
            answer("tags", &["b", "forged"], None),
        ];
        assert_eq!(questions[2]["options"][0]["label"], "Use the default");
        assert_eq!(questions[4]["options"][2]["label"], "Leave it out");
        let out = [
            answer("name", &[], Some("Kim")),
            answer("share", &[DEFAULT], None),
            answer("size", &[NOTHING], None),
        ];
        assert_eq!(
            form.answered(&out),
            Ok(json!({ "action": "accept", "content": { "name": "Kim", "share": 0.5 } }))
        );
        assert_eq!(
            form.answered(&all),
            Ok(json!({ "action": "accept", "content": {
                "name": "Kim", "age": 42, "share": 0.5, "ok": false, "size": "m", "tags": ["b"],
            } }))
        );
        for (wrong, expected) in [
            (
                answer("name", &[], Some("K")),
                "Name: it must have at least 2 characters",
            ),
            (
                answer("age", &[], Some("old")),
                "age (optional): it must be a whole number",
            ),
            (
                answer("age", &[], Some("200")),
                "age (optional): it must be at most 150",
            ),
            (
                answer("size", &["xl"], None),
                "size (optional): choose one of the values",
            ),
            (answer("tags", &["a", "b"], None), "tags (optional): choose at most 1"),
        ] {
            let id = wrong.question_id.clone();
            let mut answers: Vec<_> = all.iter().filter(|it| it.question_id != id).cloned().collect();
            answers.push(wrong);
            assert_eq!(form.answered(&answers), Err(vec![(id, expected.to_owned())]));
        }
        let needed = ("name".to_owned(), "Name: an answer is needed".to_owned());
        assert_eq!(form.answered(&[]), Err(vec![needed]));
    }

    #[test]
    fn what_must_not_be_asked_is_not_shown() {
        for (properties, expected) in [
            (
                json!({ "password": { "type": "string" } }),
                "it asks for a secret (`password`)",
            ),
            (
                json!({ "x": { "type": "string", "title": "Your API key" } }),
                "it asks for a secret (`x`)",
            ),
            (json!({ "x": { "type": "object" } }), "a field has the type `object`"),
            (
                json!({ "x": { "type": "array", "items": {} } }),
                "a field offers too many values, or none",
            ),
        ] {
            assert_eq!(form(properties, &[]), Err(expected.to_owned()));
        }
        let many: Map<String, Value> = (0..100)
            .map(|it| (format!("f{it}"), json!({ "type": "string" })))
            .collect();
        assert!(form(many.into(), &[]).is_err());
    }

    #[test]
    fn a_message_asks_for_no_secret_either() {
        let schema = |field: Value| {
            let message = "Type the API key of your account";
            read(&ask(
                json!({ "message": message, "requestedSchema": { "properties": { "x": field } } }),
            ))
        };
        let free = schema(json!({ "type": "string" })).map(drop);
        assert_eq!(free, Err("it asks for a secret (`x`)".to_owned()));
        assert!(schema(json!({ "type": "boolean" })).is_ok());
        assert!(schema(json!({ "type": "string", "enum": ["keep", "drop"] })).is_ok());
    }

    #[test]
    fn an_address_is_shown_with_its_host_before_it_is_opened() {
        let open = |url: &str| read(&ask(json!({ "mode": "url", "message": "Sign in", "url": url })));
        let form = open("https://login.example/x?y=1").expect("an address");
        let text = form.questions()[0]["text"].as_str().unwrap_or_default().to_owned();
        assert!(text.contains("Open login.example in the browser"), "{text}");
        assert_eq!(
            form.answered(&[answer("open", &["yes"], None)]),
            Ok(json!({ "action": "accept", "content": {} }))
        );
        assert_eq!(
            form.answered(&[answer("open", &["no"], None)]),
            Ok(json!({ "action": "decline" }))
        );
        for wrong in ["file:///etc/passwd", "javascript:alert(1)", "https://a@b.example/", "x"] {
            assert!(open(wrong).is_err(), "{wrong}");
        }
    }
}
