//! Requests: written strictly, read tolerantly.

use serde_json::{Map, Value, json};

use super::payload::{take_text, text_of};
use crate::protocol::{
    ClarificationResponse, Dialect, HunkAnswer, Message, Mode, Notice, Outcome, QuestionAnswer, Request, Role,
    Severity, document::member,
};

/// Why a request cannot be answered; the client has to mend it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("the request is not a JSON object")]
    NotAnObject,
    #[error("`{member}` is missing")]
    Missing { member: String },
    #[error("`{member}` has to be {wanted}")]
    WrongType { member: String, wanted: &'static str },
    #[error("`{member}` is empty")]
    Empty { member: String },
    #[error("`{member}` cannot be {value}, known are: {known}")]
    Unknown {
        member: String,
        value: String,
        known: String,
    },
}

fn missing(member: impl Into<String>) -> RequestError {
    RequestError::Missing { member: member.into() }
}

fn wrong_type(member: &str, wanted: &'static str) -> RequestError {
    RequestError::WrongType {
        member: member.to_owned(),
        wanted,
    }
}

/// A word, or a name of a member, that is none of `known`. A wrong value is never read as a default: what it was to
/// restrict would be allowed.
fn unknown(member: &str, value: &str, known: &[&str]) -> RequestError {
    const SHOWN_CHARS: usize = 40;
    let shown: String = value.chars().take(SHOWN_CHARS).collect();
    RequestError::Unknown {
        member: member.to_owned(),
        value: format!("`{shown}`"),
        known: known.join(", "),
    }
}

/// A client's description of where it works: the workspace's path, open files, layout and rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    /// Absolute, as the gateway sees it.
    pub workspace_path: Option<String>,
    pub open_files: Vec<OpenFile>,
    /// An indented tree.
    pub project_layout: Option<String>,
    /// Rule bodies, resolved.
    pub rules: Vec<String>,
    pub extra: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenFile {
    /// From the workspace root.
    pub path: String,
    pub content: Option<String>,
    pub cursor_line: Option<u64>,
}

impl Context {
    /// Members of the wrong type count as absent.
    pub fn from_json(context: &Value) -> Self {
        let Value::Object(members) = context else {
            return Self::default();
        };
        let mut members = members.clone();
        let workspace_path = take_text(&mut members, &["workspacePath"]);
        let project_layout = take_text(&mut members, &["projectLayout"]);
        let mut list = |name: &str| match members.shift_remove(name) {
            Some(Value::Array(items)) => items,
            Some(one @ (Value::String(_) | Value::Object(_))) => vec![one],
            Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => Vec::new(),
        };
        let open_files = list("openFiles").into_iter().filter_map(OpenFile::read).collect();
        let rules = list("rules").iter().filter_map(rule).collect();
        Self {
            workspace_path,
            open_files,
            project_layout,
            rules,
            extra: members,
        }
    }

    /// Formats the context; files without content or cursor are plain paths.
    pub fn to_json(&self) -> Value {
        let mut context = Map::new();
        if let Some(path) = &self.workspace_path {
            context.insert("workspacePath".into(), path.as_str().into());
        }
        if !self.open_files.is_empty() {
            let files = self.open_files.iter().map(OpenFile::to_json).collect();
            context.insert("openFiles".into(), Value::Array(files));
        }
        if let Some(layout) = &self.project_layout {
            context.insert("projectLayout".into(), layout.as_str().into());
        }
        if !self.rules.is_empty() {
            context.insert("rules".into(), self.rules.as_slice().into());
        }
        for (name, value) in &self.extra {
            context.entry(name.clone()).or_insert_with(|| value.clone());
        }
        context.into()
    }
}

impl OpenFile {
    fn read(file: Value) -> Option<Self> {
        match file {
            Value::String(path) => Some(Self {
                path,
                ..Self::default()
            }),
            Value::Object(mut members) => Some(Self {
                path: take_text(&mut members, &["path", "filePath", "file"])?,
                content: take_text(&mut members, &["content"]),
                cursor_line: member::count(&members, "cursorLine"),
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
        }
    }

    fn to_json(&self) -> Value {
        if self.content.is_none() && self.cursor_line.is_none() {
            return self.path.as_str().into();
        }
        let mut file = Map::from_iter([("path".to_owned(), self.path.as_str().into())]);
        if let Some(content) = &self.content {
            file.insert("content".into(), content.as_str().into());
        }
        if let Some(line) = self.cursor_line {
            file.insert("cursorLine".into(), line.into());
        }
        file.into()
    }
}

/// The body of a rule, however it is wrapped.
fn rule(rule: &Value) -> Option<String> {
    match rule {
        Value::String(text) => Some(text.clone()),
        Value::Object(members) => {
            let names = ["content", "body", "text", "rule", "description"];
            names
                .iter()
                .find_map(|name| member::text(members, name).map(str::to_owned))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    }
}

impl Request {
    /// Reads the body of a request. The notices report ignored and guessed members.
    pub fn from_json(body: &Value) -> Result<(Self, Vec<Notice>), RequestError> {
        let Value::Object(members) = body else {
            return Err(RequestError::NotAnObject);
        };
        let mut members = members.clone();
        let mut notices = Vec::new();
        let mut say = |code: &str, message: String| {
            notices.push(Notice::new(Severity::Warning, code, message));
        };
        let messages = match members.shift_remove("messages") {
            Some(Value::Array(messages)) => messages,
            Some(Value::Null) | None => {
                return Err(missing("messages"));
            }
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
                return Err(wrong_type("messages", "a list of messages"));
            }
        };
        if messages.is_empty() {
            return Err(RequestError::Empty {
                member: "messages".to_owned(),
            });
        }
        let messages = messages
            .into_iter()
            .enumerate()
            .map(|(at, it)| message(it, &format!("messages[{at}]")))
            .collect::<Result<_, _>>()?;
        let model = take_text(&mut members, &["model"]).unwrap_or_default();
        if model.is_empty() {
            say(
                "missing-model",
                "the request names no model; the default is used".to_owned(),
            );
        }
        let mode = match members.shift_remove("mode") {
            None | Some(Value::Null) => Mode::default(),
            Some(Value::String(word)) => {
                Mode::parse(&word).ok_or_else(|| unknown("mode", &word, &Mode::ALL.map(Mode::as_str)))?
            }
            Some(_) => return Err(wrong_type("mode", "a word: agent, plan, ask or debug")),
        };
        let context = match members.shift_remove("context") {
            None | Some(Value::Null) => None,
            Some(context @ Value::Object(_)) => Some(Context::from_json(&context).to_json()),
            Some(_) => return Err(wrong_type("context", "an object")),
        };
        let mut registry = members.shift_remove("availableTools").filter(|it| !it.is_null());
        if let Some(registry) = &registry {
            check_registry("availableTools", registry)?;
        }
        let tools = match members.shift_remove("tools") {
            None | Some(Value::Null) => None,
            Some(Value::Array(tools)) => {
                let name = |(at, it): (usize, &Value)| {
                    tool(it).ok_or_else(|| wrong_type(&format!("tools[{at}]"), "the name of a tool"))
                };
                Some(tools.iter().enumerate().map(name).collect::<Result<_, _>>()?)
            }
            Some(Value::Object(tools)) => {
                check_registry("tools", &Value::Object(tools.clone()))?;
                let wanted = tools
                    .iter()
                    .filter(|(_, it)| is_enabled(it))
                    .map(|(name, _)| name.clone())
                    .collect();
                // The list keeps the names, the registry what it says about them.
                registry.get_or_insert(Value::Object(tools));
                Some(wanted)
            }
            Some(Value::String(name)) => Some(vec![name]),
            Some(Value::Bool(_) | Value::Number(_)) => {
                return Err(wrong_type("tools", "a list of names"));
            }
        };
        member::coerce(&mut members, &[], &[], &["stream"]);
        let stream = match members.shift_remove("stream") {
            Some(Value::Bool(stream)) => stream,
            None | Some(Value::Null) => false,
            Some(Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_)) => {
                return Err(wrong_type("stream", "true or false"));
            }
        };
        let conversation_id = take_text(&mut members, &["conversationId"]).filter(|it| !it.is_empty());
        let dialect = match members.get("streamOptions") {
            None | Some(Value::Null) => None,
            Some(Value::Object(options)) => options.get("dialect").filter(|it| !it.is_null()),
            Some(_) => return Err(wrong_type("streamOptions", "an object")),
        };
        // A dialect is a wish: every reader tells them apart.
        let dialect = dialect.and_then(|word| {
            let dialect = word.as_str().and_then(Dialect::parse);
            if dialect.is_none() {
                let word = text_of(word);
                let message = format!("there is no dialect `{word}`; the usual one is used");
                say("unknown-dialect", message);
            }
            dialect
        });
        if let Some(Value::Object(options)) = members.get_mut("streamOptions") {
            options.shift_remove("dialect");
            if options.is_empty() {
                members.shift_remove("streamOptions");
            }
        }
        let request = Self {
            model,
            mode,
            context,
            messages,
            tools,
            available_tools: registry,
            stream,
            conversation_id: conversation_id.map(Into::into),
            dialect,
            extra: members,
        };
        Ok((request, notices))
    }

    pub fn to_json(&self) -> Value {
        let mut body = Map::new();
        body.insert("model".into(), self.model.as_str().into());
        body.insert("mode".into(), self.mode.as_str().into());
        if let Some(context) = &self.context {
            body.insert("context".into(), context.clone());
        }
        body.insert("messages".into(), self.messages.iter().map(|it| json!(it)).collect());
        if let Some(tools) = &self.tools {
            body.insert("tools".into(), tools.as_slice().into());
        }
        if let Some(registry) = &self.available_tools {
            body.insert("availableTools".into(), registry.clone());
        }
        body.insert("stream".into(), self.stream.into());
        if let Some(id) = &self.conversation_id {
            body.insert("conversationId".into(), id.as_str().into());
        }
        if let Some(dialect) = self.dialect {
            let mut options = match self.extra.get("streamOptions") {
                Some(Value::Object(options)) => options.clone(),
                Some(_) | None => Map::new(),
            };
            options.insert("dialect".into(), dialect.as_str().into());
            body.insert("streamOptions".into(), options.into());
        }
        for (name, value) in &self.extra {
            body.entry(name.clone()).or_insert_with(|| value.clone());
        }
        body.into()
    }

    /// Returns the client's description of its environment; empty if it sent none.
    pub fn surroundings(&self) -> Context {
        self.context.as_ref().map(Context::from_json).unwrap_or_default()
    }

    /// Returns true if the client allows the tool, by its list and by its registry, as far as it sent them.
    pub fn permits(&self, tool: &str) -> bool {
        let listed = self.tools.as_ref().is_none_or(|it| it.iter().any(|name| name == tool));
        let registered = self
            .available_tools
            .as_ref()
            .and_then(|it| it.get(tool))
            .is_none_or(is_enabled);
        listed && registered
    }
}

/// Refuses a list of tools by name with an entry that could be read in two ways.
fn check_registry(member: &str, registry: &Value) -> Result<(), RequestError> {
    const KNOWN: [&str; 4] = ["enabled", "scope", "allowedPaths", "requireApproval"];
    let Value::Object(entries) = registry else {
        return Err(wrong_type(member, "an object with an entry for each tool"));
    };
    for (tool, entry) in entries {
        let member = format!("{member}.{tool}");
        let limits = match entry {
            Value::Object(limits) => limits,
            Value::Bool(_) | Value::Null => continue,
            _ => return Err(wrong_type(&member, "an object, or true or false")),
        };
        for (name, value) in limits.iter().filter(|(_, it)| !it.is_null()) {
            let place = format!("{member}.{name}");
            match (name.as_str(), value) {
                ("enabled" | "requireApproval", Value::Bool(_)) => {}
                ("enabled" | "requireApproval", _) => return Err(wrong_type(&place, "true or false")),
                ("scope", Value::String(word)) if word == "workspace" => {}
                ("scope", _) => return Err(unknown(&place, &text_of(value), &["workspace"])),
                ("allowedPaths", Value::Array(paths)) if paths.iter().all(Value::is_string) => {}
                ("allowedPaths", _) => return Err(wrong_type(&place, "a list of folders")),
                _ => return Err(unknown(&member, name, &KNOWN)),
            }
        }
    }
    Ok(())
}

/// A tool is on unless its entry says otherwise.
fn is_enabled(entry: &Value) -> bool {
    entry
        .as_bool()
        .or_else(|| entry.get("enabled")?.as_bool())
        .unwrap_or(true)
}

/// A tool's name: a string, a function object, or anything with a name.
fn tool(tool: &Value) -> Option<String> {
    let name = match tool {
        Value::String(name) => name,
        _ => tool
            .get("function")
            .and_then(|it| it.get("name"))
            .or_else(|| tool.get("name"))?
            .as_str()?,
    };
    (!name.is_empty()).then(|| name.to_owned())
}

fn message(value: Value, place: &str) -> Result<Message, RequestError> {
    let Value::Object(mut members) = value else {
        return Err(wrong_type(place, "an object"));
    };
    let Some(role) = take_text(&mut members, &["role"]) else {
        return Err(missing(format!("{place}.role")));
    };
    let documents = match members.shift_remove("documents") {
        Some(Value::Array(documents)) => documents,
        Some(_) | None => Vec::new(),
    };
    let content = match members.shift_remove("content") {
        None if documents.is_empty() => {
            return Err(missing(format!("{place}.content")));
        }
        None => String::new(),
        Some(content) => text_of(&content),
    };
    let clarification_response = match members.shift_remove("clarificationResponse") {
        Some(Value::Object(answer)) => Some(clarification(answer, place)?),
        Some(_) | None => None,
    };
    Ok(Message {
        role: Role::parse(role.trim()),
        content,
        clarification_response,
        documents,
        extra: members,
    })
}

impl ClarificationResponse {
    /// Reads the body of an `input` request; numbers count as ids.
    pub fn from_json(body: &Value) -> Result<Self, RequestError> {
        match body {
            Value::Object(members) => match members.get("clarificationResponse") {
                Some(Value::Object(inner)) => clarification(inner.clone(), ""),
                Some(_) | None => clarification(members.clone(), ""),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(RequestError::NotAnObject)
            }
        }
    }
}

fn clarification(mut members: Map<String, Value>, place: &str) -> Result<ClarificationResponse, RequestError> {
    let missing = |member: &str| {
        missing(if place.is_empty() {
            member.to_owned()
        } else {
            format!("{place}.clarificationResponse.{member}")
        })
    };
    let document_id = take_text(&mut members, &["documentId"]).ok_or_else(|| missing("documentId"))?;
    let answers: Vec<_> = match members.shift_remove("answers") {
        Some(Value::Array(answers)) => answers.into_iter().filter_map(answer).collect(),
        Some(_) | None => Vec::new(),
    };
    let outcome = match take_text(&mut members, &["outcome"]) {
        Some(word) => Outcome::parse(&word),
        None if answers.is_empty() => return Err(missing("outcome")),
        None => Outcome::Answered,
    };
    Ok(ClarificationResponse {
        document_id: document_id.into(),
        outcome,
        answers,
        reason: take_text(&mut members, &["reason"]),
    })
}

fn answer(value: Value) -> Option<QuestionAnswer> {
    let Value::Object(mut members) = value else { return None };
    let selected = match members.shift_remove("selectedOptionIds") {
        Some(Value::Array(ids)) => ids.iter().map(text_of).collect(),
        Some(one @ (Value::String(_) | Value::Number(_))) => vec![text_of(&one)],
        Some(Value::Null | Value::Bool(_) | Value::Object(_)) | None => Vec::new(),
    };
    let hunks = members.shift_remove("hunks").as_ref().map(HunkAnswer::list);
    Some(QuestionAnswer {
        question_id: take_text(&mut members, &["questionId"])?,
        selected_option_ids: selected,
        free_text: take_text(&mut members, &["freeText"]),
        hunks: hunks.unwrap_or_default(),
    })
}
