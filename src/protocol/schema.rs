//! JSON Schemas of the protocol, made from the tables of its members.
//!
//! They describe what a strict writer sends. Every object may have further members, and every word may be one that a later
//! version adds, because readers keep both. `docs/protocol` and its TypeScript types are made from the same tables.

mod conversations;

use serde_json::{Map, Value, json};

use super::{
    Dialect, FinishReason, KINDS, Kind, Mode, Outcome, Role, Status,
    document::{
        ANSWER, ContentRule, KindRow, Member,
        MemberForm::{self, Any, Code, Count, Details, Flag, List, Loose, Nullable, Object, Record, Text, Word},
        Need::{self, Always, Expected, Free, Placed, Structure, Timed},
        Shape,
    },
};

/// An event of a stream.
pub struct EventRow {
    pub name: &'static str,
    /// Its data in dialect A.
    pub data: &'static Shape,
    /// Member that holds the data in dialect B. `None`: the members are beside the name.
    pub wrapper: Option<&'static str>,
    /// True for events of sheaf's own programs, which no gateway sends.
    pub is_private: bool,
}

const MODE: MemberForm = Word(&[
    Mode::Agent.as_str(),
    Mode::Plan.as_str(),
    Mode::Ask.as_str(),
    Mode::Debug.as_str(),
]);
const ID: Member = ("documentId", Text, Always, "id of the document");
const PATCH: MemberForm = Record(&Any);

macro_rules! events {
    ($($name:literal, $wrapper:expr, $is_private:literal, $shape:literal, $about:literal: [$($member:expr),* $(,)?];)*) => {
        /// Every event that sheaf reads and writes, in the order of the documentation.
        pub static EVENTS: &[EventRow] = &[$(EventRow {
            name: $name,
            data: &Shape { name: $shape, about: $about, members: &[$($member),*] },
            wrapper: $wrapper,
            is_private: $is_private,
        }),*];
    };
}

events! {
    "response_start", Some("response"), false, "ResponseStart", "Begins a response: first, and once.": [
        ("id", Text, Always, "id of the response, `chat_…`"),
        ("conversationId", Text, Placed, "id of the conversation, `conv_…`"),
        ("model", Text, Always, "model that answers"),
        ("mode", MODE, Always, "mode of the answer"),
        ("created", Text, Always, "time in ISO 8601, UTC, with `Z`"),
        ("status", Word(&["streaming"]), Always, "`streaming`"),
        ("capabilities", List(&Word(&["cancel", "live_input", "stateful"])), Free, "what a client may do: §9"),
    ];
    "document_start", Some("document"), false, "DocumentStart", "Opens a document.": [
        ("id", Text, Always, "unique in the response"),
        ("type", Word(Kind::KNOWN), Always, "type of the document"),
        ("sequence", Count(1), Always, "number of the document in the response, counted from 1"),
        ("metadata", PATCH, Always, "members of the type that are known by now"),
    ];
    "content_delta", None, false, "ContentDelta", "Adds text to the content.": [
        ID,
        ("delta", Text, Always, "text to append"),
    ];
    "tool_call_start", None, false, "ToolCallStart", "Names the tool of a `tool_call`.": [
        ID,
        ("toolName", Text, Always, "name of the tool"),
        ("toolCallId", Text, Placed, "id of the call"),
    ];
    "tool_call_arguments", None, false, "ToolCallArguments", "Gives the arguments of a `tool_call`, once and whole.": [
        ID,
        ("arguments", Record(&Any), Always, "arguments of the call"),
    ];
    "tool_result", None, false, "ToolResult", "Gives the result of a `tool_call`.": [
        ID,
        ("result", Any, Always, "result of the call: of a `tool_call` a `CallResult`"),
        ("duration_ms", Count(0), Free, "duration in milliseconds"),
    ];
    "metadata_delta", None, false, "MetadataDelta", "Changes the metadata of an open document.": [
        ID,
        ("metadata", PATCH, Free, "merge patch (RFC 7396)"),
        ("append", Record(&Text), Free, "text to append to members, by their names"),
    ];
    "thinking_delta", None, false, "ThinkingDelta", "Adds to the model's reasoning, which is no document.": [
        ("delta", Text, Always, "text to append"),
    ];
    "document_end", None, false, "DocumentEnd", "Ends a document.": [
        ID,
        ("finalContent", Text, Free, "whole content; replaces what the deltas added up to"),
        ("metadata", PATCH, Always, "whole metadata: each member replaces the one before, null removes it"),
    ];
    "document_update", None, false, "DocumentUpdate", "Changes the metadata of a document that has ended.": [
        ID,
        ("metadata", PATCH, Always, "merge patch (RFC 7396)"),
    ];
    "done", None, false, "Done", "Ends a response, after every document.": [
        ("usage", Object(&USAGE), Always, "tokens of all requests to the model"),
        ("id", Text, Free, "id of the response"),
        ("conversationId", Text, Free, "id of the conversation"),
        ("model", Text, Free, "model that answered"),
        ("mode", MODE, Free, "mode of the answer"),
        ("created", Text, Free, "time in ISO 8601, UTC, with `Z`"),
        ("status", Word(Status::KNOWN), Always, "`completed` or `error`"),
        ("metadata", Object(&ENDING), Always, "facts about the response"),
    ];
    "user_message", None, true, "UserMessage", "The user's message.": [
        ("message", Object(&MESSAGE), Always, "the message"),
    ];
    "title", None, true, "Title", "A title for the conversation.": [
        ("title", Text, Always, "the title"),
        ("byUser", Flag, Free, "true if the user chose it"),
    ];
    "notice", None, true, "Notice", "A repair of a stream, or an action of the user.": [
        ("severity", Word(&["info", "warning", "error"]), Always, "weight of the notice"),
        ("code", Text, Always, "short name in kebab-case"),
        ("message", Text, Always, "the notice in words"),
        ("document", Text, Free, "id of the document"),
    ];
    "branch", None, true, "Branch", "The conversation goes on after an older turn.": [
        ("after", Count(0), Always, "turn after which it goes on; 0 for the beginning"),
        ("upto", Text, Free, "last document of that turn that belongs to the branch"),
        ("open", Flag, Free, "true if that document is a question to answer anew"),
    ];
}

static USAGE: Shape = Shape {
    name: "Usage",
    about: "Tokens of all requests to the model; 0 if unknown.",
    members: &[
        ("promptTokens", Count(0), Always, "tokens of the requests"),
        ("completionTokens", Count(0), Always, "tokens of the answers"),
        ("totalTokens", Count(0), Always, "their sum"),
    ],
};

static ENDING: Shape = Shape {
    name: "ResponseMetadata",
    about: "Facts about a response.",
    members: &[
        ("duration_ms", Count(0), Timed, "duration in milliseconds"),
        ("toolCallCount", Count(0), Always, "number of `tool_call` documents"),
        ("turnCount", Count(0), Always, "number of requests to the model"),
        (
            "finishReason",
            Word(FinishReason::KNOWN),
            Free,
            "why it ended; absent while it streams",
        ),
    ],
};

static RESPONSE: Shape = Shape {
    name: "Response",
    about: "A response as one object.",
    members: &[
        ("id", Text, Always, "`chat_` and a unique part"),
        ("conversationId", Text, Placed, "`conv_` and a unique part"),
        (
            "model",
            Text,
            Always,
            "model that answered; `unknown` if nobody named one",
        ),
        ("mode", MODE, Always, "mode of the answer"),
        ("created", Text, Always, "time in ISO 8601, UTC, with `Z`"),
        (
            "status",
            Word(Status::KNOWN),
            Always,
            "`streaming` while it runs, then `completed` or `error`",
        ),
        (
            "documents",
            List(&DOCUMENT),
            Always,
            "documents in the order of their `sequence`",
        ),
        ("usage", Object(&USAGE), Always, "tokens of all requests to the model"),
        ("metadata", Object(&ENDING), Always, "facts about the response"),
    ],
};

/// A document of any type; its schema is not made from a table of members.
const DOCUMENT: MemberForm = Object(&Shape {
    name: "Document",
    about: "",
    members: &[],
});

static MESSAGE: Shape = Shape {
    name: "Message",
    about: "One message of a conversation.",
    members: &[
        ("role", Word(Role::KNOWN), Always, "who says it"),
        (
            "content",
            Text,
            Always,
            "the message; of an earlier answer its text, which must be enough by itself",
        ),
        (
            "documents",
            List(&DOCUMENT),
            Free,
            "documents of an earlier answer, unchanged",
        ),
        (
            "clarificationResponse",
            Object(&CLARIFICATION_RESPONSE),
            Free,
            "answer to a question of the last response",
        ),
    ],
};

static CLARIFICATION_RESPONSE: Shape = Shape {
    name: "ClarificationResponse",
    about: "The user's answer to a clarification or an approval.",
    members: &[
        ("documentId", Text, Always, "id of the question's document"),
        (
            "outcome",
            Word(Outcome::KNOWN),
            Always,
            "`skipped`: the user does not answer; `cancelled`: the turn was stopped",
        ),
        (
            "answers",
            List(&Object(&ANSWER)),
            Free,
            "answers, one for each question",
        ),
        ("reason", Text, Free, "reason for a missing answer"),
    ],
};

static CONTEXT: Shape = Shape {
    name: "Context",
    about: "The client's description of where it works.",
    members: &[
        ("workspacePath", Text, Free, "absolute path as the gateway sees it"),
        (
            "openFiles",
            List(&Any),
            Free,
            "paths from the workspace root; `{path, content, cursorLine}` is read as well",
        ),
        (
            "projectLayout",
            Text,
            Free,
            "indented tree of the files, two spaces per level, folders end in `/`",
        ),
        (
            "rules",
            List(&Any),
            Free,
            "texts of rules; an object with `content` is read as well",
        ),
    ],
};

static TOOL: Shape = Shape {
    name: "ToolAccess",
    about: "Limits of one tool.",
    members: &[
        ("enabled", Flag, Free, "false turns the tool off"),
        ("scope", Text, Free, "`workspace`"),
        ("allowedPaths", List(&Text), Free, "folders that it may touch"),
        ("requireApproval", Flag, Free, "true if the user must allow each use"),
    ],
};

static STREAM_OPTIONS: Shape = Shape {
    name: "StreamOptions",
    about: "Wishes for the stream.",
    members: &[
        (
            "dialect",
            Word(&[Dialect::Named.as_str(), Dialect::Data.as_str()]),
            Free,
            "`named` is dialect A, `data` is dialect B",
        ),
        (
            "liveInput",
            Flag,
            Free,
            "false if the client cannot answer questions while the stream runs",
        ),
    ],
};

static REQUEST: Shape = Shape {
    name: "Request",
    about: "Body of `POST /api/v1/chat/completions` and `/plan`.",
    members: &[
        (
            "model",
            Text,
            Placed,
            "name of the model; `default`, or none, leaves the choice to the gateway",
        ),
        ("mode", MODE, Free, "absent means `agent`; the path `/plan` wins"),
        ("context", Object(&CONTEXT), Free, "where the client works"),
        (
            "messages",
            List(&Object(&MESSAGE)),
            Always,
            "the conversation; the last message is the user's",
        ),
        (
            "tools",
            List(&Text),
            Free,
            "names of the tools that may be used; absent for all, `[]` for none",
        ),
        (
            "availableTools",
            Record(&Object(&TOOL)),
            Free,
            "limits by name of tool; a tool must be allowed by both lists",
        ),
        ("stream", Flag, Free, "true for a stream; absent means false"),
        ("conversationId", Text, Free, "id from an earlier response"),
        ("streamOptions", Object(&STREAM_OPTIONS), Free, "wishes for the stream"),
        (
            "metadata",
            Record(&Text),
            Free,
            "labels; `customMode` is the client's name for a mode that narrows `mode`",
        ),
    ],
};

static ERROR_BODY: Shape = Shape {
    name: "ErrorBody",
    about: "Body of an answer with a status of 400 or more.",
    members: &[("error", Object(&FAILURE), Always, "reason for the refusal")],
};

static FAILURE: Shape = Shape {
    name: "Failure",
    about: "Reason for a refusal.",
    members: &[
        ("code", Text, Always, "UPPER_SNAKE, from the list in §11"),
        ("message", Text, Always, "the reason in words"),
        (
            "source",
            Text,
            Expected,
            "who refused: `gateway`, `llm` or a tool's name",
        ),
        ("details", Text, Expected, "a hint; may be `\"\"`"),
    ],
};

/// Objects of requests and answers, beside documents and events.
pub static OBJECTS: &[&Shape] = &[&REQUEST, &RESPONSE, &CLARIFICATION_RESPONSE, &ERROR_BODY];

pub use conversations::CONVERSATIONS;

/// Members that documents of every type may have.
pub static COMMON: &[Member] = &[
    (
        "incomplete",
        Flag,
        Free,
        "true if the document was cut off before its end",
    ),
    ("truncated", Flag, Free, "true if text was cut because it was too large"),
    (
        "undone",
        Any,
        Free,
        "true if the effect of the document was undone; `partly` if some of it was",
    ),
    ("committed", Text, Free, "git commit that contains the change"),
    (
        "aside",
        Flag,
        Free,
        "true if the document is only for the user; no model receives it",
    ),
];

/// Returns true if strict writers always send a member of this need.
pub const fn is_required(need: Need) -> bool {
    match need {
        Always | Structure | Expected => true,
        Placed | Timed | Free => false,
    }
}

/// Returns the name of the schema of documents (`Document`) or metadata (`Metadata`) of a type.
pub fn type_name(kind: &Kind, what: &str) -> String {
    let words = kind.as_str().split('_');
    let capital = |word: &str| word.get(..1).unwrap_or_default().to_uppercase() + word.get(1..).unwrap_or_default();
    words.map(capital).collect::<String>() + what
}

/// Every schema by its name. References have the form `#/$defs/NAME`.
pub fn definitions() -> Map<String, Value> {
    let mut defs = Map::new();
    let kinds: Vec<Value> = KINDS
        .iter()
        .map(|(kind, row)| {
            document(kind, row, &mut defs);
            reference(&type_name(kind, "Document"))
        })
        .collect();
    let unknown = frame(
        &json!({ "type": "string", "not": { "enum": Kind::KNOWN } }),
        "UnknownDocument",
        &mut defs,
    );
    defs.insert(
        "KnownDocument".into(),
        json!({ "description": "A document of a known type.", "oneOf": kinds }),
    );
    defs.insert(
        "Document".into(),
        json!({ "description": "A document.", "anyOf": [reference("KnownDocument"), unknown] }),
    );
    for shape in OBJECTS.iter().chain(CONVERSATIONS) {
        object(shape, &mut defs);
    }
    let (mut named, mut data) = (Vec::new(), Vec::new());
    for event in EVENTS {
        object(event.data, &mut defs);
        if event.is_private {
            continue;
        }
        let schema = reference(event.data.name);
        named.push(closed(&[
            ("event", json!({ "const": event.name })),
            ("data", schema.clone()),
        ]));
        let name = ("type", json!({ "const": event.name }));
        data.push(match event.wrapper {
            Some(wrapper) => closed(&[name, (wrapper, schema)]),
            None => json!({ "allOf": [closed(&[name]), schema] }),
        });
    }
    let about = "An event of dialect A: the `event:` line and the data.";
    defs.insert("NamedEvent".into(), json!({ "description": about, "oneOf": named }));
    let about = "The data of an event in dialect B. The last line of a stream is `[DONE]`.";
    defs.insert("DataEvent".into(), json!({ "description": about, "oneOf": data }));
    defs
}

/// Returns the schema of that name, with all that it refers to. `None` for unknown names.
pub fn schema(name: &str) -> Option<Value> {
    fn gather(value: &Value, all: &Map<String, Value>, used: &mut Map<String, Value>) {
        match value {
            Value::Object(members) => {
                let name = members.get("$ref").and_then(Value::as_str);
                if let Some(name) = name.and_then(|it| it.strip_prefix("#/$defs/"))
                    && !used.contains_key(name)
                    && let Some(found) = all.get(name)
                {
                    used.insert(name.to_owned(), found.clone());
                    gather(found, all, used);
                }
                members.values().for_each(|it| gather(it, all, used));
            }
            Value::Array(items) => items.iter().for_each(|it| gather(it, all, used)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let all = definitions();
    let mut whole = all.get(name)?.clone();
    let mut used = Map::new();
    gather(&whole, &all, &mut used);
    whole["$schema"] = DRAFT.into();
    whole["$defs"] = used.into();
    Some(whole)
}

/// Returns all schemas in one document.
pub fn whole() -> Value {
    json!({ "$schema": DRAFT, "title": "The documents protocol", "$defs": definitions() })
}

/// Returns the list of all schemas, each with its path below `root`.
pub fn index(root: &str) -> Value {
    let path = |name: &str| Value::from(format!("{root}/{name}"));
    let documents = KINDS
        .iter()
        .map(|(kind, _)| (kind.as_str().to_owned(), path(&type_name(kind, "Document"))));
    let events = EVENTS.iter().filter(|it| !it.is_private);
    let events = events.map(|it| (it.name.to_owned(), path(it.data.name)));
    let objects = OBJECTS
        .iter()
        .chain(CONVERSATIONS)
        .map(|it| (it.name.to_owned(), path(it.name)));
    let more = ["Document", "NamedEvent", "DataEvent"].map(|it| (it.to_owned(), path(it)));
    json!({
        "documents": documents.collect::<Map<_, _>>(),
        "events": events.collect::<Map<_, _>>(),
        "objects": objects.chain(more).collect::<Map<_, _>>(),
        "all": path(WHOLE),
    })
}

/// Name of the document with all schemas.
pub const WHOLE: &str = "schema";

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// An object that must have all of these members.
fn closed(members: &[(&str, Value)]) -> Value {
    let names: Vec<_> = members.iter().map(|it| it.0).collect();
    let properties: Map<_, _> = members.iter().map(|it| (it.0.to_owned(), it.1.clone())).collect();
    json!({ "type": "object", "required": names, "properties": properties })
}

fn document(kind: &Kind, row: &KindRow, defs: &mut Map<String, Value>) {
    let name = type_name(kind, "Metadata");
    let members: Vec<Member> = row.members.iter().chain(COMMON).copied().collect();
    let about = format!("Metadata of a `{kind}`.");
    let metadata = members_schema(&about, &members, defs);
    defs.insert(name.clone(), metadata);
    let whole = type_name(kind, "Document");
    frame(&json!({ "const": kind.as_str() }), &whole, defs);
    defs[&whole]["description"] = format!("A document of type `{kind}`.").into();
    defs[&whole]["properties"]["metadata"] = reference(&name);
    if !matches!(row.content, ContentRule::Absent | ContentRule::Nullable) {
        defs[&whole]["properties"]["content"] = json!({ "type": "string" });
    }
}

/// Adds the frame that all documents have. Returns a reference to it.
fn frame(kind: &Value, name: &str, defs: &mut Map<String, Value>) -> Value {
    let mut schema = closed(&[
        ("id", json!({ "type": "string", "minLength": 1 })),
        ("type", kind.clone()),
        ("sequence", json!({ "type": "integer", "minimum": 1 })),
        ("content", json!({ "type": ["string", "null"] })),
        ("metadata", json!({ "type": "object" })),
    ]);
    schema["description"] = "A document of another type.".into();
    defs.insert(name.to_owned(), schema);
    reference(name)
}

/// Adds the schema of an object, and those of the objects in it.
fn object(shape: &'static Shape, defs: &mut Map<String, Value>) {
    if !defs.contains_key(shape.name) {
        defs.insert(shape.name.to_owned(), Value::Null);
        let schema = members_schema(shape.about, shape.members, defs);
        defs.insert(shape.name.to_owned(), schema);
    }
}

fn members_schema(about: &str, members: &[Member], defs: &mut Map<String, Value>) -> Value {
    let mut required = Vec::new();
    let mut properties = Map::new();
    for (name, form, need, about) in members {
        let mut schema = form_schema(*form, defs);
        schema["description"] = (*about).into();
        properties.insert((*name).to_owned(), schema);
        if is_required(*need) {
            required.push(*name);
        }
    }
    json!({ "description": about, "type": "object", "required": required, "properties": properties })
}

fn form_schema(form: MemberForm, defs: &mut Map<String, Value>) -> Value {
    match form {
        Text => json!({ "type": "string" }),
        Details | Any => json!({}),
        Word(words) => json!({ "anyOf": [{ "enum": words }, { "type": "string" }] }),
        Count(least) => json!({ "type": "integer", "minimum": least }),
        Code => json!({ "type": ["integer", "null"] }),
        Flag => json!({ "type": "boolean" }),
        Object(shape) | Loose(shape) => {
            object(shape, defs);
            reference(shape.name)
        }
        Nullable(shape) => {
            object(shape, defs);
            json!({ "anyOf": [reference(shape.name), { "type": "null" }] })
        }
        List(form) => json!({ "type": "array", "items": form_schema(*form, defs) }),
        Record(form) => json!({ "type": "object", "additionalProperties": form_schema(*form, defs) }),
    }
}
